//! The data of an edge: the minimum that the run needs.

use brimful_graph::Index;
use brimful_vertices::Field;
use bytemuck::{Pod, Zeroable};
use serde::Serialize;
use serde::de::DeserializeOwned;

/// Bits for edges that are walked along their direction, and against it.
pub(crate) const ALONG: u8 = 1;
pub(crate) const AGAINST: u8 = 2;

/// The direction in which edges of an index are walked.
pub(crate) fn direction(index: Index) -> u8 {
    match index {
        Index::In => ALONG,
        Index::Reverse => AGAINST,
    }
}

/// Implements [`Field`] for types of plain bytes, for every serializer.
macro_rules! plain_field {
    ($($name:ty [$($of:tt)*] $({ $($lists:tt)* })?)+) => {$(
        impl<$($of)*> brimful_vertices::Field for $name {
            $($($lists)*)?
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(bytemuck::bytes_of(self));
            }
            fn read(input: &mut &[u8]) -> Option<Self> {
                brimful_vertices::field::take(input, size_of::<Self>())
                    .map(bytemuck::pod_read_unaligned)
            }
        }
        impl<$($of)*> serde::Serialize for $name {
            fn serialize<Z: serde::Serializer>(&self, serializer: Z) -> Result<Z::Ok, Z::Error> {
                serializer.serialize_bytes(bytemuck::bytes_of(self))
            }
        }
        impl<'de, $($of)*> serde::Deserialize<'de> for $name {
            fn deserialize<Z: serde::Deserializer<'de>>(deserializer: Z) -> Result<Self, Z::Error> {
                let bytes = <&[u8]>::deserialize(deserializer)?;
                bytemuck::try_pod_read_unaligned(bytes).map_err(serde::de::Error::custom)
            }
        }
    )+};
}
pub(crate) use plain_field;
plain_field! { Tagged [] {
    // Weights and directions stand apart, so that values of one kind are packed together.
    fn write_list(values: &[Self], out: &mut Vec<u8>) {
        f64::write_list(&values.iter().map(|one| one.weight).collect::<Vec<_>>(), out);
        u8::write_list(&values.iter().map(|one| one.direction).collect::<Vec<_>>(), out);
    }
    fn read_list(count: usize, input: &mut &[u8], values: &mut Vec<Self>) -> Option<()> {
        let (mut weights, mut directions) = (Vec::new(), Vec::new());
        f64::read_list(count, input, &mut weights)?;
        u8::read_list(count, input, &mut directions)?;
        let pairs = weights.into_iter().zip(directions);
        values.extend(pairs.map(|(weight, direction)| Self { weight, direction }));
        Some(())
    }
} }

/// The data of an edge of a graph.
pub trait EdgeData: Field + Pod + Serialize + DeserializeOwned {
    /// The data of an edge with this weight, walked in one direction.
    fn new(weight: f64, direction: u8) -> Self;
    /// The weight of the edge.
    fn weight(&self) -> f64;
    /// The direction in which the edge is walked, if edges store it.
    fn direction(&self) -> Option<u8>;
}

/// A weight and a direction.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C, packed)]
pub(crate) struct Tagged {
    weight: f64,
    direction: u8,
}

impl EdgeData for () {
    fn new(_: f64, _: u8) -> Self {}
    fn weight(&self) -> f64 {
        1.0
    }
    fn direction(&self) -> Option<u8> {
        None
    }
}

impl EdgeData for f64 {
    fn new(weight: f64, _: u8) -> Self {
        weight
    }
    fn weight(&self) -> f64 {
        *self
    }
    fn direction(&self) -> Option<u8> {
        None
    }
}

impl EdgeData for u8 {
    fn new(_: f64, direction: u8) -> Self {
        direction
    }
    fn weight(&self) -> f64 {
        1.0
    }
    fn direction(&self) -> Option<u8> {
        Some(*self)
    }
}

impl EdgeData for Tagged {
    fn new(weight: f64, direction: u8) -> Self {
        Self { weight, direction }
    }
    fn weight(&self) -> f64 {
        self.weight
    }
    fn direction(&self) -> Option<u8> {
        Some(self.direction)
    }
}
