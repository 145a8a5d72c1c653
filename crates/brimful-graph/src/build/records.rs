//! Edges as fixed-size records for the external sorter.

use brimful_store::sorter::Record;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::input_position::UNKNOWN;

/// The sort key of an edge: interval of the target, source, target within the interval.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct KeyLayout {
    /// Bits of a vertex id.
    pub vertex_bits: u32,
    /// Bits of a target within its interval.
    pub interval_bits: u32,
}

impl KeyLayout {
    /// The layout for a graph of `vertices` vertices.
    pub fn new(vertices: u64, interval_bits: u32) -> Self {
        let vertex_bits =
            (u64::BITS - vertices.saturating_sub(1).leading_zeros()).max(interval_bits);
        Self { vertex_bits, interval_bits }
    }

    /// True if a key fits in 64 bits.
    pub fn is_narrow(self) -> bool {
        2 * self.vertex_bits <= u64::BITS
    }

    /// Does `work` with the records of edges that have these keys, with weights if `weighted`, and
    /// with input positions if `positioned`.
    pub(crate) fn with_records<W: RecordWork>(
        self,
        weighted: bool,
        positioned: bool,
        work: W,
    ) -> W::Done {
        match (self.is_narrow(), weighted, positioned) {
            (true, false, false) => work.with::<u64>(),
            (true, true, false) => work.with::<WeightedKey>(),
            (false, false, false) => work.with::<Pair>(),
            (false, true, false) => work.with::<WeightedPair>(),
            (true, false, true) => work.with::<PositionedKey>(),
            (true, true, true) => work.with::<PositionedWeightedKey>(),
            (false, false, true) => work.with::<PositionedPair>(),
            (false, true, true) => work.with::<PositionedWeightedPair>(),
        }
    }

    #[inline]
    fn key(self, source: u64, target: u64) -> u64 {
        let (interval, within) =
            (target >> self.interval_bits, target & ((1 << self.interval_bits) - 1));
        (interval << self.vertex_bits | source) << self.interval_bits | within
    }

    #[inline]
    fn edge(self, key: u64) -> (u64, u64) {
        let within = key & ((1 << self.interval_bits) - 1);
        let rest = key >> self.interval_bits;
        let interval = rest >> self.vertex_bits;
        (rest & ((1 << self.vertex_bits) - 1), interval << self.interval_bits | within)
    }

    /// A key of up to 128 bits, left-aligned, so that the high half distinguishes most keys.
    fn wide_key(self, source: u64, target: u64) -> (u64, u64) {
        let within = target & ((1 << self.interval_bits) - 1);
        let interval = u128::from(target >> self.interval_bits);
        let key = (interval << self.vertex_bits | u128::from(source)) << self.interval_bits
            | u128::from(within);
        let key = key << (u128::BITS - 2 * self.vertex_bits);
        ((key >> 64) as u64, key as u64)
    }

    fn wide_edge(self, high: u64, low: u64) -> (u64, u64) {
        let key = (u128::from(high) << 64 | u128::from(low)) >> (u128::BITS - 2 * self.vertex_bits);
        let within = key as u64 & ((1 << self.interval_bits) - 1);
        let rest = key >> self.interval_bits;
        let source = rest as u64 & (u64::MAX >> (u64::BITS - self.vertex_bits));
        let interval = (rest >> self.vertex_bits) as u64;
        (source, interval << self.interval_bits | within)
    }
}

/// Work with records of any type.
pub(crate) trait RecordWork {
    /// The result.
    type Done;
    /// Does the work with records of type `R`.
    fn with<R: EdgeRecord>(self) -> Self::Done;
}

/// An edge as a sortable record.
pub trait EdgeRecord: Record {
    /// True if the record has a weight.
    const WEIGHTED: bool;
    /// True if the record has an input position.
    const POSITIONED: bool = false;
    /// Packs an edge.
    fn pack(layout: KeyLayout, source: u64, target: u64, weight: f64, position: u64) -> Self;
    /// Source, target and, if the record has one, weight.
    fn unpack(&self, layout: KeyLayout) -> (u64, u64, Option<f64>);
    /// The input position; [`UNKNOWN`] if the record has none.
    fn position(&self) -> u64 {
        UNKNOWN
    }
}

impl EdgeRecord for u64 {
    const WEIGHTED: bool = false;

    #[inline]
    fn pack(layout: KeyLayout, source: u64, target: u64, _weight: f64, _position: u64) -> Self {
        layout.key(source, target)
    }

    #[inline]
    fn unpack(&self, layout: KeyLayout) -> (u64, u64, Option<f64>) {
        let (source, target) = layout.edge(*self);
        (source, target, None)
    }
}

macro_rules! record {
    ($(#[$doc:meta])* $name:ident { $first:ident, $($rest:ident),* }) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
        #[repr(C)]
        pub struct $name { pub(crate) $first: u64, $(pub(crate) $rest: u64),* }

        impl Record for $name {
            const RADIX_IS_WHOLE: bool = false;
            fn radix(&self) -> u64 { self.$first }
        }
    };
}

record! {
    /// A 64-bit key and the bits of a weight.
    WeightedKey { key, weight_bits }
}
record! {
    /// Two numbers: a key of up to 128 bits, or the two ends of an edge.
    Pair { first, second }
}
record! {
    /// Two numbers and the bits of a weight.
    WeightedPair { first, second, weight_bits }
}

impl EdgeRecord for WeightedKey {
    const WEIGHTED: bool = true;

    #[inline]
    fn pack(layout: KeyLayout, source: u64, target: u64, weight: f64, _position: u64) -> Self {
        Self { key: layout.key(source, target), weight_bits: weight.to_bits() }
    }

    #[inline]
    fn unpack(&self, layout: KeyLayout) -> (u64, u64, Option<f64>) {
        let (source, target) = layout.edge(self.key);
        (source, target, Some(f64::from_bits(self.weight_bits)))
    }
}

impl EdgeRecord for Pair {
    const WEIGHTED: bool = false;

    fn pack(layout: KeyLayout, source: u64, target: u64, _weight: f64, _position: u64) -> Self {
        let (first, second) = layout.wide_key(source, target);
        Self { first, second }
    }

    fn unpack(&self, layout: KeyLayout) -> (u64, u64, Option<f64>) {
        let (source, target) = layout.wide_edge(self.first, self.second);
        (source, target, None)
    }
}

impl EdgeRecord for WeightedPair {
    const WEIGHTED: bool = true;

    fn pack(layout: KeyLayout, source: u64, target: u64, weight: f64, _position: u64) -> Self {
        let (first, second) = layout.wide_key(source, target);
        Self { first, second, weight_bits: weight.to_bits() }
    }

    fn unpack(&self, layout: KeyLayout) -> (u64, u64, Option<f64>) {
        let (source, target) = layout.wide_edge(self.first, self.second);
        (source, target, Some(f64::from_bits(self.weight_bits)))
    }
}

/// A record with the input position of its edge; among equal edges, the earlier sorts first.
macro_rules! positioned {
    ($(#[$doc:meta])* $name:ident($plain:ty)) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
        #[repr(C)]
        pub struct $name { edge: $plain, position: u64 }

        impl Record for $name {
            const RADIX_IS_WHOLE: bool = false;
            fn radix(&self) -> u64 { self.edge.radix() }
        }

        impl EdgeRecord for $name {
            const WEIGHTED: bool = <$plain as EdgeRecord>::WEIGHTED;
            const POSITIONED: bool = true;

            #[inline]
            fn pack(
                layout: KeyLayout,
                source: u64,
                target: u64,
                weight: f64,
                position: u64,
            ) -> Self {
                Self { edge: <$plain>::pack(layout, source, target, weight, position), position }
            }

            #[inline]
            fn unpack(&self, layout: KeyLayout) -> (u64, u64, Option<f64>) {
                self.edge.unpack(layout)
            }

            #[inline]
            fn position(&self) -> u64 { self.position }
        }
    };
}

positioned! {
    /// A 64-bit key and a position.
    PositionedKey(u64)
}
positioned! {
    /// A 64-bit key, the bits of a weight and a position.
    PositionedWeightedKey(WeightedKey)
}
positioned! {
    /// A [`Pair`] and a position.
    PositionedPair(Pair)
}
positioned! {
    /// A [`WeightedPair`] and a position.
    PositionedWeightedPair(WeightedPair)
}

/// The two ends of an edge, sorted by the first.
pub(crate) trait EndsRecord: EdgeRecord {
    fn new(first: u64, second: u64, weight: f64, position: u64) -> Self;
    fn ends(&self) -> (u64, u64);
    fn weight(&self) -> Option<f64>;
}

impl EndsRecord for Pair {
    fn new(first: u64, second: u64, _weight: f64, _position: u64) -> Self {
        Self { first, second }
    }

    fn ends(&self) -> (u64, u64) {
        (self.first, self.second)
    }

    fn weight(&self) -> Option<f64> {
        None
    }
}

impl EndsRecord for WeightedPair {
    fn new(first: u64, second: u64, weight: f64, _position: u64) -> Self {
        Self { first, second, weight_bits: weight.to_bits() }
    }

    fn ends(&self) -> (u64, u64) {
        (self.first, self.second)
    }

    fn weight(&self) -> Option<f64> {
        Some(f64::from_bits(self.weight_bits))
    }
}

impl EndsRecord for PositionedPair {
    fn new(first: u64, second: u64, weight: f64, position: u64) -> Self {
        Self { edge: Pair::new(first, second, weight, position), position }
    }

    fn ends(&self) -> (u64, u64) {
        self.edge.ends()
    }

    fn weight(&self) -> Option<f64> {
        self.edge.weight()
    }
}

impl EndsRecord for PositionedWeightedPair {
    fn new(first: u64, second: u64, weight: f64, position: u64) -> Self {
        Self { edge: WeightedPair::new(first, second, weight, position), position }
    }

    fn ends(&self) -> (u64, u64) {
        self.edge.ends()
    }

    fn weight(&self) -> Option<f64> {
        self.edge.weight()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_round_trip_and_sort_by_interval_source_target() {
        for vertices in [1, 2, 1 << 18, (1 << 18) + 1, 1 << 32, (1 << 33) + 5, u64::MAX] {
            let layout = KeyLayout::new(vertices, 18);
            let last = vertices - 1;
            let edges = [(0, 0), (last, 0), (0, last), (last, last), (last / 2, last / 3)];
            for (source, target) in edges {
                let weighted = WeightedPair::pack(layout, source, target, -0.5, 3);
                assert_eq!(weighted.unpack(layout), (source, target, Some(-0.5)));
                assert_eq!(
                    (Pair::pack(layout, source, target, 0.0, 3).unpack(layout)),
                    (source, target, None)
                );
                let positioned = PositionedWeightedPair::pack(layout, source, target, -0.5, 3);
                assert_eq!(
                    (positioned.unpack(layout), positioned.position()),
                    ((source, target, Some(-0.5)), 3)
                );
                if layout.is_narrow() {
                    let narrow = u64::pack(layout, source, target, 0.0, 3);
                    assert_eq!(
                        (narrow.unpack(layout), narrow.position()),
                        ((source, target, None), UNKNOWN)
                    );
                    let positioned = PositionedKey::pack(layout, source, target, 0.0, 3);
                    assert_eq!(
                        (positioned.unpack(layout), positioned.position()),
                        ((source, target, None), 3)
                    );
                }
            }
            let order = |&(source, target): &(u64, u64)| (target >> 18, source, target);
            let mut by_key = edges;
            by_key.sort_by_key(|&(s, t)| Pair::pack(layout, s, t, 0.0, 0));
            assert!(by_key.is_sorted_by_key(order), "{vertices}");
        }
    }
}
