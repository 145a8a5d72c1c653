//! Chooses the internal order that encodes smaller: lays out a sample of edges in both orders and
//! sums the bits.
//!
//! The sample contains all edges of some blocks of 64 consecutive source ids. No edge of a sampled
//! block is missing, so the gaps between its edges in a shard are real. A hash and a *level* select
//! the blocks; whenever the sample exceeds its cap, the level rises, which halves the sample.
//! Invariant: the sample depends on the multiset of edges alone, because the level ends as the
//! lowest at which the sample fits.
//!
//! The cost of an order: sampled edges are sorted as in shards, by (interval of 2^16 targets,
//! source, target). An edge needs the significant bits of its *gap*, the difference of its key
//! (source and target within the interval) from the previous key. Between edges of different blocks
//! lie those of about 2^level - 1 unsampled blocks; dividing the gap by 2^level removes their
//! share. Gaps are packed 256 at a time at the one width that makes them smallest. Wider gaps are
//! exceptions, with 8 bits for the place and at least 8 for the rest. The sum of significant bits
//! alone would favor gaps of very mixed widths: for an undirected web graph (cnr-2000) it prefers
//! the external order by a hair, although packing then needs 10 % more bytes.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

use serde::{Deserialize, Serialize};

use crate::edges::EdgeBatch;
use crate::error::Result;
use crate::ids::external::IdType;

/// A rule for the order of vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OrderName {
    /// Ascending external ids.
    External,
    /// Degree classes, the highest first.
    Degree,
}

impl OrderName {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::External => "external",
            Self::Degree => "degree",
        }
    }
}

/// The maximum number of edges in the sample.
const MAX_EDGES: usize = 1 << 17;
/// Memory of sampling and choosing: the sample, twice, and the edges that workers hold.
pub(crate) fn memory_bytes(workers: usize) -> u64 {
    ((2 * MAX_EDGES + workers * FOUND_EDGES) * size_of::<[u64; 2]>()) as u64
}
/// Edges that a worker collects before it locks the sample.
const FOUND_EDGES: usize = 1 << 12;
/// Bits of a source within its block.
const BLOCK_BITS: u32 = 6;
/// Bits of a target within its interval, for the cost.
const INTERVAL_BITS: u32 = 16;
/// Bits of a position; a tag of the block uses the bits above.
const POSITION_BITS: u32 = 44;

/// The hash of a source's block. A single multiplication would select blocks at a fixed stride,
/// which ids may have too.
#[inline]
fn hash_of_block(source: u64) -> u64 {
    let mixed = (source >> BLOCK_BITS).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ mixed >> 32).wrapping_mul(0xD6E8_FEB8_6659_FD93);
    mixed ^ mixed >> 32
}

/// The greatest hash in the sample at a level.
fn greatest_hash(level: u32) -> u64 {
    u64::MAX.checked_shr(level).unwrap_or(0)
}

/// The highest level at which the edges of a source are in the sample.
#[inline]
fn level_of(source: u64) -> u32 {
    hash_of_block(source).leading_zeros()
}

/// A sample of edges, filled by many threads.
pub(crate) struct EdgeSample {
    level: AtomicU32,
    edges: Mutex<Vec<[u64; 2]>>,
    most: usize,
    /// True if every edge also exists in the opposite direction.
    undirected: AtomicBool,
}

impl EdgeSample {
    /// An empty sample of the edges to be stored.
    pub(crate) fn new(undirected: bool) -> Self {
        Self::with_cap(undirected, MAX_EDGES)
    }

    fn with_cap(undirected: bool, most: usize) -> Self {
        let undirected = AtomicBool::new(undirected);
        Self { level: AtomicU32::new(0), edges: Mutex::default(), most, undirected }
    }

    /// From now on, adds edges in both directions. Earlier edges are not added again.
    pub(crate) fn take_both_directions(&self) {
        self.undirected.store(true, Ordering::Relaxed);
    }

    /// Adds the sampled edges of a batch.
    pub(crate) fn add(&self, batch: &EdgeBatch) {
        let mut sampled = Vec::new();
        self.sample_runs(&batch.sources, &batch.targets, &mut sampled);
        if self.undirected.load(Ordering::Relaxed) {
            // A self-loop is added twice, which does no harm.
            self.sample_runs(&batch.targets, &batch.sources, &mut sampled);
        }
        self.keep(&mut sampled, 0);
    }

    /// Adds the sample of other edges, of the same directions and cap.
    pub(crate) fn add_sampled(&self, mut other: Sampled) {
        self.keep(&mut other.edges, other.level);
    }

    fn sample_runs(&self, sources: &[u64], targets: &[u64], sampled: &mut Vec<[u64; 2]>) {
        // The level may have risen since then; it is checked again under the lock.
        let level = || greatest_hash(self.level.load(Ordering::Relaxed));
        let mut greatest = level();
        for (&source, &target) in sources.iter().zip(targets) {
            if hash_of_block(source) <= greatest {
                sampled.push([source, target]);
                if sampled.len() == FOUND_EDGES {
                    self.keep(sampled, 0);
                    greatest = level();
                }
            }
        }
    }

    /// Keeps sampled edges, which are all of those at the level `least` or above.
    fn keep(&self, sampled: &mut Vec<[u64; 2]>, least: u32) {
        if sampled.is_empty() && least == 0 {
            return;
        }
        let mut edges = self.edges.lock().unwrap_or_else(PoisonError::into_inner);
        let mut level = self.level.load(Ordering::Relaxed);
        if level < least {
            level = least;
            edges.retain(|[source, _]| level_of(*source) >= level);
        }
        if edges.capacity() == 0 {
            edges.reserve_exact(self.most + 1);
        }
        for edge in sampled.drain(..) {
            if level_of(edge[0]) < level {
                continue;
            }
            edges.push(edge);
            while edges.len() > self.most {
                level += 1;
                edges.retain(|[source, _]| level_of(*source) >= level);
            }
        }
        self.level.store(level, Ordering::Relaxed);
    }

    /// Ends sampling.
    pub(crate) fn finish(self) -> Sampled {
        Sampled {
            level: self.level.into_inner(),
            edges: self.edges.into_inner().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

/// The order that was chosen, and some of the sampled edges in it.
#[derive(Debug, PartialEq)]
pub(crate) struct LaidOut {
    pub(crate) name: OrderName,
    /// The internal ids of targets, ascending.
    pub(crate) targets: Vec<u64>,
}

/// The maximum number of targets that remain of a sample.
const MAX_TARGETS: usize = 1 << 13;

impl LaidOut {
    /// The order where both are the same.
    pub(crate) fn same() -> Self {
        Self { name: OrderName::External, targets: Vec::new() }
    }
}

/// The finished sample.
#[derive(Default)]
pub(crate) struct Sampled {
    pub(crate) level: u32,
    pub(crate) edges: Vec<[u64; 2]>,
}

impl Sampled {
    /// The order that needs fewer bits; on a tie the degree order.
    ///
    /// `places(order)` returns a function from the bits of an id to its internal id; it is called
    /// with ids in ascending order.
    pub(crate) fn cheaper<P: FnMut(u64) -> Result<u64>>(
        self,
        id_type: IdType,
        mut places: impl FnMut(OrderName) -> P,
    ) -> Result<LaidOut> {
        let mut cost = |name| cost(self.edges.clone(), self.level, id_type, || places(name));
        let (degree, by_degree) = cost(OrderName::Degree)?;
        let (external, by_external) = cost(OrderName::External)?;
        Ok(match external < degree {
            true => LaidOut { name: OrderName::External, targets: by_external },
            false => LaidOut { name: OrderName::Degree, targets: by_degree },
        })
    }
}

/// The number of bits that the edges need in an order, and the targets of some of them.
fn cost<P: FnMut(u64) -> Result<u64>>(
    mut edges: Vec<[u64; 2]>,
    level: u32,
    id_type: IdType,
    mut places: impl FnMut() -> P,
) -> Result<(u64, Vec<u64>)> {
    let tag_of = |source| hash_of_block(source) << POSITION_BITS;
    for end in [0, 1] {
        let mut place = places();
        // The source is replaced first; with its tag it is no longer an id.
        edges.sort_unstable_by_key(|edge| id_type.order_key(edge[end]));
        for edge in &mut edges {
            let tag = if end == 0 { tag_of(edge[end]) } else { 0 };
            edge[end] = place(edge[end])? | tag;
        }
    }
    let source = |edge: &[u64; 2]| edge[0] & ((1 << POSITION_BITS) - 1);
    let key = |edge: &[u64; 2]| {
        u128::from(source(edge)) << INTERVAL_BITS | u128::from(edge[1] & ((1 << INTERVAL_BITS) - 1))
    };
    let interval = |edge: &[u64; 2]| edge[1] >> INTERVAL_BITS;
    edges.sort_unstable_by_key(|edge| (interval(edge), key(edge)));
    let mut total = 0;
    for shard in edges.chunk_by(|a, b| interval(a) == interval(b)) {
        for (number, block) in shard.chunks(PACKED_EDGES).enumerate() {
            let mut before =
                number.checked_sub(1).and_then(|_| shard.get(number * PACKED_EDGES - 1));
            let mut widths = [0; WIDTHS];
            for edge in block {
                let gap = key(edge) - before.map_or(0, key);
                let same_block =
                    before.is_some_and(|b| b[0] >> POSITION_BITS == edge[0] >> POSITION_BITS);
                let gap = if same_block { gap } else { gap >> level };
                widths[(u128::BITS - gap.leading_zeros()) as usize % WIDTHS] += 1;
                before = Some(edge);
            }
            total += packed_bits(&widths);
        }
    }
    let step = edges.len().div_ceil(MAX_TARGETS).max(1);
    let mut targets: Vec<u64> = edges.iter().step_by(step).map(|edge| edge[1]).collect();
    targets.sort_unstable();
    Ok((total, targets))
}

/// Number of gaps packed at one width.
const PACKED_EDGES: usize = 256;
/// Number of possible widths of a gap, 0 included.
const WIDTHS: usize = (POSITION_BITS + INTERVAL_BITS) as usize + 1;

/// The bits of packed gaps, given the number of gaps of each width.
fn packed_bits(widths: &[u64; WIDTHS]) -> u64 {
    let count: u64 = widths.iter().sum();
    let bits_at = |width: usize| {
        let wider = widths.iter().enumerate().skip(width + 1);
        let exceptions = wider.map(|(needed, count)| count * (8 + (needed - width).max(8) as u64));
        count * width as u64 + exceptions.sum::<u64>()
    };
    (0..WIDTHS).map(bits_at).min().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn batch(edges: &[[u64; 2]]) -> EdgeBatch {
        EdgeBatch {
            sources: edges.iter().map(|e| e[0]).collect(),
            targets: edges.iter().map(|e| e[1]).collect(),
            ..EdgeBatch::default()
        }
    }

    fn sampled(edges: &[[u64; 2]], most: usize, threads: usize) -> (u32, Vec<[u64; 2]>) {
        let sample = EdgeSample::with_cap(false, most);
        std::thread::scope(|scope| {
            for part in edges.chunks(edges.len().div_ceil(threads).max(1)) {
                scope.spawn(|| part.chunks(700).for_each(|chunk| sample.add(&batch(chunk))));
            }
        });
        let mut done = sample.finish();
        done.edges.sort_unstable();
        (done.level, done.edges)
    }

    #[test]
    fn the_sample_depends_on_the_edges_and_holds_whole_blocks() {
        let mut edges: Vec<[u64; 2]> = (0..60_000).map(|i| [i * 7919 % 20_000, i % 1000]).collect();
        let wanted = sampled(&edges, 1000, 1);
        assert!(wanted.0 > 3 && (300..=1000).contains(&wanted.1.len()), "{}", wanted.1.len());
        let mut whole: Vec<[u64; 2]> =
            edges.iter().copied().filter(|e| level_of(e[0]) >= wanted.0).collect();
        whole.sort_unstable();
        assert!(whole == wanted.1);
        let lower = edges.iter().filter(|e| level_of(e[0]) >= wanted.0 - 1).count();
        assert!(lower > 1000, "the level is no higher than it must be");
        edges.reverse();
        for threads in 1..=4 {
            assert!(sampled(&edges, 1000, threads) == wanted);
        }
        let joined = EdgeSample::with_cap(false, 1000);
        for part in edges.chunks(25_000) {
            let (level, edges) = sampled(part, 1000, 1);
            joined.add_sampled(Sampled { level, edges });
        }
        let Sampled { level, edges: mut kept } = joined.finish();
        kept.sort_unstable();
        assert!((level, kept) == wanted);
        assert_eq!(sampled(&edges, 60_000, 2).1.len(), 60_000);
        // One block with more edges than the cap.
        let hub: Vec<[u64; 2]> = (0..1001).map(|i| [5, i]).collect();
        assert!(sampled(&hub, 1000, 1).1.is_empty());
    }

    #[test]
    fn a_few_wide_gaps_are_exceptions() {
        let mut widths = [0; WIDTHS];
        (widths[3], widths[20]) = (250, 2);
        assert_eq!(packed_bits(&widths), 252 * 3 + 2 * (8 + 17));
        assert_eq!(packed_bits(&[0; WIDTHS]), 0);
    }

    #[test]
    fn neighbors_of_neighbors_are_cheaper_in_their_own_order() {
        let near: Vec<[u64; 2]> = (0..50_000).map(|i| [i, i + 1]).collect();
        let shuffle = |id: u64| Ok(id.wrapping_mul(0x9E37_79B1) % 65_537);
        let choose = |shuffled: OrderName| {
            let sampled = Sampled { level: 0, edges: near.clone() };
            let place = |order| move |id| if order == shuffled { shuffle(id) } else { Ok(id) };
            sampled.cheaper(IdType::Int64, place).unwrap().name
        };
        assert_eq!(choose(OrderName::Degree), OrderName::External);
        assert_eq!(choose(OrderName::External), OrderName::Degree);
        let none = Sampled::default().cheaper(IdType::Int64, |_| Ok).unwrap().name;
        assert_eq!(none, OrderName::Degree);
    }
}
