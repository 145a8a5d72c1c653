//! The vertices whose states changed in a superstep.
//!
//! If the program reads no globals, only they and their neighbors can change in the next
//! superstep.

use bytemuck::Pod;

use super::step::differ;

/// Only lists that changes reach are gathered if the changed vertices have at most one in
/// `FEW_EDGES` edges. With more, most long lists have a changed neighbor.
const FEW_EDGES: u64 = 256;
const WORD_BITS: usize = u64::BITS as usize;

/// A set of vertices.
pub(crate) struct Changes {
    words: Vec<u64>,
}

impl Changes {
    /// The vertices whose states differ, if they have few of the edges that `lengths` count.
    pub(super) fn few<S: Pod>(before: &[S], now: &[S], lengths: &[u32]) -> Option<Self> {
        let edges = |lengths: &[u32]| lengths.iter().map(|length| u64::from(*length)).sum::<u64>();
        let most = edges(lengths) / FEW_EDGES;
        let (mut words, mut near) = (Vec::with_capacity(now.len().div_ceil(WORD_BITS)), 0);
        let blocks = before.chunks(WORD_BITS).zip(now.chunks(WORD_BITS));
        for ((before, now), lengths) in blocks.zip(lengths.chunks(WORD_BITS)) {
            let mut word = 0;
            for (at, (before, now)) in before.iter().zip(now).enumerate() {
                let changed = differ(before, now);
                word |= u64::from(changed) << at;
                near += u64::from(lengths[at]) * u64::from(changed);
            }
            words.push(word);
            if near > most {
                return None;
            }
        }
        Some(Self { words })
    }

    /// True if a vertex is in the set.
    #[inline]
    pub(super) fn contains(&self, vertex: usize) -> bool {
        self.words[vertex / WORD_BITS] >> (vertex % WORD_BITS) & 1 != 0
    }

    /// True if a vertex or one of its neighbors is in the set.
    pub(super) fn reach(&self, vertex: usize, neighbors: &[u32]) -> bool {
        self.contains(vertex) || neighbors.iter().any(|id| self.contains(*id as usize))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_changes_are_found_and_many_are_not_followed() {
        let mut lengths = vec![300_u32; 1000];
        let before: Vec<u64> = (0..1000).collect();
        let mut now = before.clone();
        for vertex in [0, 63, 999] {
            now[vertex] = 5;
        }
        let changed = |lengths: &[u32], now: &[u64]| {
            let changes = Changes::few(&before, now, lengths)?;
            Some((0..1000).filter(|vertex| changes.contains(*vertex)).collect::<Vec<_>>())
        };
        assert_eq!(changed(&lengths, &now), Some(vec![0, 63, 999]));
        assert_eq!(changed(&lengths, &before), Some(Vec::new()));
        now[64] = 5;
        assert_eq!(changed(&lengths, &now), None);
        lengths[64] = 0;
        assert_eq!(changed(&lengths, &now), Some(vec![0, 63, 64, 999]));
    }
}
