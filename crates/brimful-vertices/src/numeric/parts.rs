//! What numeric vertices are made of: plain bytes all of it, so that every serializer can write them.

#![expect(clippy::multiple_bound_locations, reason = "a derived implementation has a bound of its own")]

use bytemuck::{Pod, Zeroable};

use crate::field::{Field, take};

/// Edges that are walked along their direction, and against it: bits of a mask.
pub(super) const ALONG: u8 = 1;
pub(super) const AGAINST: u8 = 2;

/// Any plain bytes as a signal.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Plain<T>(pub(super) T);

/// The state of a numeric vertex.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub(super) struct Cell<S: Pod> {
    /// What the program keeps.
    pub(super) state: S,
    /// Sum of outgoing weights; the degree where the run is not weighted.
    pub(super) strength: f64,
}

impl<S: Pod> PartialEq for Cell<S> {
    /// As the engine compares states: byte by byte.
    fn eq(&self, other: &Self) -> bool {
        bytemuck::bytes_of(self) == bytemuck::bytes_of(other)
    }
}

macro_rules! plain_field {
    ($($name:ty [$($of:tt)*])+) => {$(
        impl<$($of)*> Field for $name {
            fn write(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(bytemuck::bytes_of(self));
            }
            fn read(input: &mut &[u8]) -> Option<Self> {
                take(input, size_of::<Self>()).map(bytemuck::pod_read_unaligned)
            }
        }
    )+};
}
plain_field! { Plain<T> [T: Pod + Send] Cell<S> [S: Pod + Send] Tagged [] }

/// What a numeric edge carries: as little as the run needs.
pub(super) trait EdgeData: Field + Pod {
    /// An edge of this weight, walked in one of the ways.
    fn new(weight: f64, way: u8) -> Self;
    /// Its weight.
    fn weight(&self) -> f64;
    /// The ways in which it is walked, if edges differ.
    fn way(&self) -> Option<u8>;
}

/// A weight and a way.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
pub(super) struct Tagged {
    weight: f64,
    way: u64,
}

impl EdgeData for () {
    fn new(_: f64, _: u8) -> Self {}
    fn weight(&self) -> f64 {
        1.0
    }
    fn way(&self) -> Option<u8> {
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
    fn way(&self) -> Option<u8> {
        None
    }
}

impl EdgeData for u8 {
    fn new(_: f64, way: u8) -> Self {
        way
    }
    fn weight(&self) -> f64 {
        1.0
    }
    fn way(&self) -> Option<u8> {
        Some(*self)
    }
}

impl EdgeData for Tagged {
    fn new(weight: f64, way: u8) -> Self {
        Self { weight, way: way.into() }
    }
    fn weight(&self) -> f64 {
        self.weight
    }
    fn way(&self) -> Option<u8> {
        Some(self.way as u8)
    }
}
