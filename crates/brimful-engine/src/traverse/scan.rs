//! All edges of an index, in no particular order, for algorithms whose result does not depend on
//! the order.
//!
//! Edges that fit in memory stay there, packed, for the next scan; the rest streams, with
//! reads in flight. Invariant: a scan visits every edge exactly once.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use brimful_graph::codec::{Keys, Unpack};
use brimful_graph::read::shards::ShardFile;
use brimful_store::Resources;
use brimful_store::read_ahead::ReadPool;

use crate::error::Result;
use crate::plan::extent::Extent;
use crate::traverse::residency::{ALL_INTERVALS, Feed, PinnedIndex};

/// Edges into one interval: a source is `source + (key >> bits)`, a target `target + (key &
/// mask)`, ascending.
#[derive(Debug, Clone, Copy)]
pub struct ScannedEdges<'k> {
    /// Source of key 0.
    pub source: u64,
    /// First target of the interval.
    pub target: u64,
    /// Bits of a target within its interval.
    pub bits: u32,
    /// The keys.
    pub keys: Keys<'k>,
}

impl ScannedEdges<'_> {
    /// Sources and targets, in order.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + use<'_> {
        let (source, target, bits) = (self.source, self.target, self.bits);
        let mask = (1_u32 << bits) - 1;
        self.keys
            .iter()
            .map(move |key| (source + u64::from(key >> bits), target + u64::from(key & mask)))
    }
}

/// An index to scan.
pub struct Scan {
    files: Vec<PinnedIndex>,
    /// Segments of each unit.
    units: Vec<std::ops::Range<usize>>,
    pool: ReadPool,
}

/// Reads in flight per worker.
const READS: usize = 2;

impl Scan {
    /// The minimum memory of a scan in bytes, without the memory of the caller.
    pub fn minimum_bytes(extent: &Extent, workers: usize) -> u64 {
        workers as u64 * ((READS as u64 + 1) * extent.largest_unit() + extent.plain_segment_bytes())
    }

    /// Bytes that a scan in `bytes` of memory is likely to fill: resident units, and buffers for
    /// the others.
    pub fn likely_bytes(extent: &Extent, bytes: u64, workers: usize) -> u64 {
        let minimum = Self::minimum_bytes(extent, workers);
        let pinned = bytes.saturating_sub(minimum).min(extent.packed());
        pinned + minimum.min(extent.packed() - pinned)
    }

    /// Scans of `shards`, with the given extent, in `bytes` of memory, at least
    /// [`Scan::minimum_bytes`].
    pub fn new(
        shards: Arc<ShardFile>,
        extent: &Extent,
        bytes: u64,
        workers: usize,
    ) -> Result<Self> {
        let pinned = bytes.saturating_sub(Self::minimum_bytes(extent, workers));
        let mut units: Vec<std::ops::Range<usize>> = Vec::with_capacity(shards.units());
        for index in 0..shards.segments().len() {
            match units.get_mut(shards.unit(index)) {
                Some(unit) => unit.end = index + 1,
                None => units.push(index..index + 1),
            }
        }
        let files = PinnedIndex::pin(vec![shards], false, pinned, &ALL_INTERVALS);
        Ok(Self { files, units, pool: ReadPool::new(READS * workers.clamp(1, 4))? })
    }

    /// Calls `each(edges)` for all edges, a batch of at most 256 at a time, from all threads.
    ///
    /// # Errors
    /// Errors of reading; corruption also if `each` returns false because edges are impossible.
    pub fn for_each(
        &self,
        resources: &Resources,
        each: impl Fn(ScannedEdges<'_>) -> bool + Sync,
    ) -> Result<()> {
        let shards = self.files[0].shards();
        resources.job.begin("scan", shards.edges());
        let next = AtomicUsize::new(0);
        let parts = resources.broadcast(|_| -> Result<()> {
            let (mut feed, mut buffer) = (Feed::new(&self.files, &self.pool), Vec::new());
            let mut claimed = std::collections::VecDeque::new();
            let unpack = Unpack::fastest();
            loop {
                while claimed.len() < READS {
                    let unit = next.fetch_add(1, Ordering::Relaxed);
                    let Some(segments) = self.units.get(unit) else { break };
                    claimed.push_back((segments.clone(), feed.announce(0, segments.start)));
                }
                let Some((segments, announced)) = claimed.pop_front() else { return Ok(()) };
                if let Some(announced) = announced {
                    feed.turn_to(0, announced)?;
                }
                for index in segments {
                    resources.job.check()?;
                    let segment = &shards.segments()[index];
                    let (target, bits) =
                        (segment.interval << shards.interval_bits(), shards.interval_bits());
                    let unit = feed.bytes(0, 0);
                    shards.decode(index, unit, None, unpack, &mut buffer, |source, keys, _| {
                        each(ScannedEdges { source, target, bits, keys })
                    })?;
                    resources.job.advance(u64::from(segment.edges));
                }
            }
        });
        parts.into_iter().collect()
    }
}
