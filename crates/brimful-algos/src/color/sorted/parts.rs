//! Ranks whose marks are in memory together, and the keys of edges.
//!
//! A vertex of degree n finds a free color among the first n + 1, and one with r vertices before it
//! among the first r + 1. Vertices whose degrees have the same bit length follow one another and
//! have equally many bits, so that no array holds the positions of their marks. Invariant: parts
//! are few enough for the key of an edge.

use std::ops::Range;

/// Classes of vertices: bit lengths of degrees.
pub(super) const CLASSES: usize = u64::BITS as usize;
/// Bits of the number of a part in the key of an edge. At most half of the parts end because of
/// their numbers of vertices, the others for lack of memory.
pub(super) const PART_BITS: u32 = 12;
/// The number of vertices from which on a key does not hold an edge.
pub(in super::super) const TOO_MANY: u64 = 1 << 31;

/// Consecutive ranks whose vertices have equally many bits of marks.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Band {
    ranks: Range<u64>,
    /// Bits of a vertex.
    bits: u64,
    /// The first bit of the band in the marks of its part.
    start: u64,
}

/// The bands of vertices that have the given numbers by class, greatest class first.
pub(super) fn bands(classes: &[u64; CLASSES]) -> impl Iterator<Item = Band> {
    let mut end = 0;
    classes.iter().enumerate().rev().filter(|(_, count)| **count > 0).map(move |(class, count)| {
        let ranks = end..end + count;
        end = ranks.end;
        Band { bits: (1 << class.min(32)).min(end), ranks, start: 0 }
    })
}

/// Consecutive ranks whose marks are in memory together.
#[derive(Debug, PartialEq)]
pub(super) struct Part {
    pub(super) ranks: Range<u64>,
    bands: Vec<Band>,
    /// Bits of marks.
    pub(super) bits: u64,
}

impl Part {
    fn from(rank: u64) -> Self {
        Self { ranks: rank..rank, bands: Vec::new(), bits: 0 }
    }

    /// Cuts bands into parts of at most `max_bits` bits and `max_len` vertices. A part of one
    /// vertex may have more bits.
    pub(super) fn cut(bands: impl Iterator<Item = Band>, max_bits: u64, max_len: u64) -> Vec<Self> {
        let (mut parts, mut part) = (Vec::new(), Self::from(0));
        for Band { mut ranks, bits, .. } in bands {
            while !ranks.is_empty() {
                let room = max_len - (part.ranks.end - part.ranks.start);
                let fits = room.min(max_bits.saturating_sub(part.bits) / bits);
                if fits == 0 && !part.bands.is_empty() {
                    parts.push(std::mem::replace(&mut part, Self::from(ranks.start)));
                    continue;
                }
                let end = ranks.end.min(ranks.start + fits.max(1));
                part.bands.push(Band { ranks: ranks.start..end, bits, start: part.bits });
                part.bits += (end - ranks.start) * bits;
                (part.ranks.end, ranks.start) = (end, end);
            }
        }
        parts.push(part);
        parts
    }

    /// The bits of a rank in the marks.
    #[inline]
    pub(super) fn bits_of(&self, rank: u64) -> Range<u64> {
        let band = &self.bands[self.bands.partition_point(|band| band.ranks.end <= rank)];
        let start = band.start + (rank - band.ranks.start) * band.bits;
        start..start + band.bits
    }
}

/// The format of the key of an edge: the part of its later end, its earlier end, and its later end
/// counted within the part.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keys {
    /// Bits of a rank within a part.
    within: u32,
}

impl Keys {
    /// The maximum number of parts.
    pub(super) const MAX_PARTS: usize = 1 << PART_BITS;

    pub(super) fn of(vertices: u64) -> Self {
        let rank = u64::BITS - vertices.leading_zeros();
        Self { within: rank.min(u64::BITS - PART_BITS - rank) }
    }

    /// The maximum number of vertices in a part.
    pub(super) fn max_len(self) -> u64 {
        1 << self.within
    }

    #[inline]
    pub(super) fn key(self, parts: &[Part], earlier: u64, later: u64) -> u64 {
        let part = parts.partition_point(|part| part.ranks.end <= later);
        let within = later - parts[part].ranks.start;
        (part as u64) << (u64::BITS - PART_BITS) | earlier << self.within | within
    }

    /// The part, the earlier end, and the later end within the part.
    #[inline]
    pub(super) fn parts_of(self, key: u64) -> (usize, u64, u64) {
        let earlier = key << PART_BITS >> (PART_BITS + self.within);
        ((key >> (u64::BITS - PART_BITS)) as usize, earlier, key & (self.max_len() - 1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_hold_all_ranks_and_no_more_than_fits() {
        let mut classes = [0; CLASSES];
        (classes[20], classes[3], classes[1], classes[0]) = (3, 50, 1000, 7);
        let bits = |parts: &[Part]| {
            let each = |part: &Part| part.ranks.clone().map(|rank| part.bits_of(rank)).collect();
            parts.iter().map(each).collect::<Vec<Vec<_>>>()
        };
        let whole = Part::cut(bands(&classes), 1 << 20, 1 << 20);
        // The first three have at most two others before them.
        let sum = 3 * 3 + 50 * 8 + 1000 * 2 + 7;
        assert_eq!((whole.len(), whole[0].ranks.clone(), whole[0].bits), (1, 0..1060, sum));
        let mut end = 0;
        for range in &bits(&whole)[0] {
            assert_eq!(range.start, end);
            end = range.end;
        }
        assert_eq!(end, sum);
        for (max_bits, max_len) in [(16, 1000), (1000, 9), (100, 100), (1, 1)] {
            let parts = Part::cut(bands(&classes), max_bits, max_len);
            let ranks = |part: &Part| part.ranks.clone();
            assert!(parts.iter().flat_map(ranks).eq(0..1060));
            for (part, bits) in parts.iter().zip(bits(&parts)) {
                assert!(part.bits <= max_bits.max(8) && bits.len() as u64 <= max_len);
                assert_eq!(bits.iter().map(|range| range.end).max(), Some(part.bits));
            }
            let fuller = parts.windows(2).filter(|pair| {
                pair[0].bits + pair[1].bits > max_bits
                    || (pair[0].ranks.end - pair[0].ranks.start) == max_len
            });
            assert_eq!(fuller.count(), parts.len() - 1);
        }
    }

    #[test]
    fn keys_hold_any_edge_and_ascend_by_part_and_earlier_end() {
        let mut classes = [0; CLASSES];
        classes[1] = TOO_MANY - 1;
        let keys = Keys::of(TOO_MANY - 1);
        let parts = Part::cut(bands(&classes), u64::MAX, keys.max_len());
        assert!(parts.len() <= Keys::MAX_PARTS / 2);
        let mut last = None;
        for later in (9..TOO_MANY - 1).step_by(99_999_989).chain([TOO_MANY - 2]) {
            for earlier in [0, later / 2, later - 1] {
                let key = keys.key(&parts, earlier, later);
                let (part, found, within) = keys.parts_of(key);
                assert_eq!((found, parts[part].ranks.start + within), (earlier, later));
                let order = Some((part, earlier));
                assert!(last < Some((order, key)));
                last = Some((order, key));
            }
        }
    }
}
