//! Generated weights.
//!
//! Invariant: a hashed weight depends only on the two external ids, and not on the edge's
//! direction.

use crate::edges::{EdgeBatch, EdgeSource};
use crate::error::Result;
use brimful_store::splitmix::{GOLDEN, splitmix64};

/// The origin of edge weights.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Weights {
    /// From the input, if it has any.
    #[default]
    Input,
    /// [`hash`] of the two ids, whatever the input contains.
    Hash,
}

impl Weights {
    /// The weights called `name`, or `None`.
    pub fn from_name(name: &str) -> Option<Self> {
        match name {
            "input" => Some(Self::Input),
            "hash" => Some(Self::Hash),
            _ => None,
        }
    }
}

/// The weight, from 1 to 100, that `--weights hash` gives the edge between two external ids: 1 +
/// (splitmix64(min * 0x9E3779B97F4A7C15 xor max) mod 100), with multiplication modulo 2^64.
///
/// Ids are taken as unsigned 64-bit numbers. Both directions of an edge have the same weight.
///
/// ```
/// use brimful_graph::build::weights::hash;
/// assert_eq!((hash(0, 1), hash(1, 0), hash(41, 42)), (66.0, 66.0, 35.0));
/// ```
pub fn hash(one: u64, other: u64) -> f64 {
    let (min, max) = (one.min(other), one.max(other));
    // Below 101, and therefore exact.
    (1 + splitmix64(min.wrapping_mul(GOLDEN) ^ max) % 100) as f64
}

/// A source whose edges have hashed weights instead of their own, if `is_hashed`. Weights are
/// computed from external ids, before these are mapped.
pub(crate) struct Hashed<'s> {
    pub(crate) source: Box<dyn EdgeSource + 's>,
    pub(crate) is_hashed: bool,
}

impl EdgeSource for Hashed<'_> {
    fn parts(&self) -> usize {
        self.source.parts()
    }

    fn read_part(&self, part: usize, batch: &mut EdgeBatch) -> Result<()> {
        self.source.read_part(part, batch)?;
        if self.is_hashed {
            hash_all(batch);
        }
        Ok(())
    }
}

/// Gives edges hashed weights instead of their own.
pub(crate) fn hash_all(batch: &mut EdgeBatch) {
    let EdgeBatch { sources, targets, weights, .. } = batch;
    weights.clear();
    weights.extend(sources.iter().zip(targets).map(|(source, target)| hash(*source, *target)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashed_weights_are_pinned_and_symmetric() {
        // Pinned, because other implementations of the formula compare their results with ours.
        let pairs =
            [(0, 0), (0, 1), (1, 2), (41, 42), (7, 1 << 40), (u64::MAX, 3), (1 << 63, u64::MAX)];
        let weights = pairs.map(|(one, other)| hash(one, other));
        assert_eq!(weights, [36.0, 66.0, 27.0, 35.0, 57.0, 16.0, 40.0]);
        for (one, other) in pairs {
            assert_eq!(hash(one, other), hash(other, one));
        }
    }

    #[test]
    fn hashed_weights_are_spread_over_1_to_100() {
        let mut counts = [0_u32; 101];
        (0..300_u64)
            .flat_map(|s| (0..300).map(move |t| (s, t)))
            .for_each(|(s, t)| counts[hash(s, t) as usize] += 1);
        assert_eq!(counts[0], 0);
        assert!(counts[1..].iter().all(|&count| (700..1_100).contains(&count)), "{counts:?}");
    }
}
