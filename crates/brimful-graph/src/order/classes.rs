//! Degree classes: they decide a vertex's position in the internal order.
//!
//! One edge in 8, chosen by a hash of its ends, counts once for its source and once for its target.
//! A class spans a factor of 8 in that count, so class k holds degrees of about 2^(3k) to 2^(3k +
//! 3); the highest class already begins at a count of 255, where counters saturate. Hubs come
//! first: the shards of their intervals then hold most edges, and their sums and signals stay in
//! cache. The order is a list of *runs*: the classes from hubs down, then the isolated vertices.
//! Invariant: within a run, external ids ascend; a vertex's run depends only on the multiset of
//! edges and on the declared ids.

use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};

/// Number of runs in the degree order: five classes and the isolated vertices.
pub(crate) const RUNS: usize = 6;
/// The last run, of vertices without edges.
pub(crate) const ISOLATED: usize = RUNS - 1;

/// One edge in 2^SAMPLE_BITS is counted.
const SAMPLE_BITS: u32 = 3;

/// True if an edge is counted: the leading bits of a hash of its ends are zero. The hash is
/// symmetric, because an undirected edge may be written in either direction.
#[inline]
pub(crate) fn is_counted(source: u64, target: u64) -> bool {
    let (low, high) = (source.min(target), source.max(target));
    let mixed = low.wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ high;
    (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93) >> (u64::BITS - SAMPLE_BITS) == 0
}

/// The run of a vertex with edges, `count` of which are counted (saturated at 255).
#[inline]
pub(crate) fn run_of(count: u8) -> usize {
    match count {
        u8::MAX => 0,
        64.. => 1,
        8.. => 2,
        1.. => 3,
        0 => 4,
    }
}

/// The edges of a vertex in a part of the input: whether there are any, and how many are counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Pod, Zeroable)]
#[repr(transparent)]
pub(crate) struct Mark(u16);

impl Mark {
    /// The mark of a vertex with edges, `count` of which are counted.
    pub(crate) fn connected(count: usize) -> Self {
        Self(1 + count.min(u8::MAX.into()) as u16)
    }

    /// The mark of the edges of both parts.
    pub(crate) fn and(self, other: Self) -> Self {
        match (self.0.checked_sub(1), other.0.checked_sub(1)) {
            (Some(own), Some(more)) => Self::connected(usize::from(own) + usize::from(more)),
            _ => Self(self.0.max(other.0)),
        }
    }

    /// The run of a vertex with this mark in the whole input.
    pub(crate) fn run(self) -> usize {
        self.0.checked_sub(1).map_or(ISOLATED, |count| run_of(count as u8))
    }

    /// The mark as a number below 2^16.
    pub(crate) fn bits(self) -> u16 {
        self.0
    }

    /// The mark with these bits.
    pub(crate) fn from_bits(bits: u16) -> Self {
        Self(bits)
    }
}

/// The number of vertices in each run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Tally(pub(crate) [u64; RUNS]);

impl Tally {
    /// Number of vertices with edges.
    pub(crate) fn connected(&self) -> u64 {
        self.0[..ISOLATED].iter().sum()
    }

    /// Number of vertices.
    pub(crate) fn vertices(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The first internal id of each run, including empty ones.
    pub(crate) fn starts(&self) -> [u64; RUNS] {
        let mut sum = 0;
        self.0.map(|count| {
            sum += count;
            sum - count
        })
    }

    /// The first internal id of each run that is not empty.
    pub(crate) fn runs(&self) -> Vec<u64> {
        self.starts()
            .into_iter()
            .zip(self.0)
            .filter(|(_, count)| *count > 0)
            .map(|(start, _)| start)
            .collect()
    }

    /// True if the classes have an effect: at least two are not empty.
    pub(crate) fn has_classes(&self) -> bool {
        self.0[..ISOLATED].iter().filter(|count| **count > 0).count() > 1
    }

    /// The tally of the external order, in which vertices with edges form one run.
    pub(crate) fn flattened(&self) -> Self {
        let mut flat = Self::default();
        (flat.0[0], flat.0[ISOLATED]) = (self.connected(), self.0[ISOLATED]);
        flat
    }
}

/// A source of all external ids in internal order.
pub(crate) trait InInternalOrder {
    /// Calls `f` with the bits of each id until it returns false.
    fn for_each_id(&self, f: &mut dyn FnMut(u64) -> Result<bool>) -> Result<()>;

    /// The first id, if consecutive internal ids have consecutive external ids.
    fn consecutive_from(&self) -> Result<Option<u64>> {
        let (mut first, mut next) = (None, 0_u64);
        self.for_each_id(&mut |bits| {
            let follows = bits == next || first.is_none();
            first = if follows { first.or(Some(bits)) } else { None };
            next = bits.wrapping_add(1);
            Ok(follows)
        })?;
        Ok(first)
    }
}

/// The error about an id that the first pass did not see.
pub(crate) fn changed() -> Error {
    Error::input("(input)", "it changed while it was read; import it again")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_edge_in_eight_is_counted_also_where_ids_have_structure() {
        let shapes: [fn(u64) -> (u64, u64); 5] = [
            |i| (i, i + 1),
            |i| (7, i),
            |i| (i, 7),
            |i| (i / 1000, i % 1000),
            |i| (i << 20, i << 40),
        ];
        for (number, shape) in shapes.into_iter().enumerate() {
            let counted = (0..80_000).filter(|&i| is_counted(shape(i).0, shape(i).1)).count();
            assert!((9_000..11_000).contains(&counted), "shape {number}: {counted}");
        }
    }

    #[test]
    fn classes_are_factors_of_eight() {
        let runs: Vec<usize> = [0, 1, 7, 8, 63, 64, 254, 255].map(run_of).into();
        assert_eq!(runs, [4, 3, 3, 2, 2, 1, 1, 0]);
    }

    #[test]
    fn marks_of_parts_make_the_mark_of_the_whole() {
        let (none, some) = (Mark::default(), Mark::connected);
        assert_eq!(
            [none.and(none), none.and(some(3)), some(3).and(none)].map(Mark::run),
            [5, 3, 3]
        );
        assert_eq!((some(0).run(), some(60).and(some(4)).run()), (4, 1));
        assert_eq!((some(200).and(some(54)).run(), some(200).and(some(55)).run()), (1, 0));
        assert_eq!(some(1000), some(255).and(some(255)));
    }

    #[test]
    fn empty_runs_are_not_listed() {
        let tally = Tally([0, 3, 0, 2, 0, 4]);
        assert_eq!((tally.connected(), tally.vertices()), (5, 9));
        assert_eq!(tally.runs(), [0, 3, 5]);
        assert_eq!(tally.flattened().runs(), [0, 5]);
        assert!(tally.has_classes() && !tally.flattened().has_classes());
    }
}
