//! The cost model: estimates the time of dense and sparse traversal for a frontier.
//!
//! The unit is the time of one edge in a dense superstep, about a nanosecond. The constants are
//! measured. A wrong estimate costs time, never a result.

use std::ops::Range;

use brimful_graph::codec::BATCH;
use brimful_graph::read::directory::Directory;
use brimful_graph::read::shards::Segment;

use crate::traverse::residency::{PinnedIndex, Shard};

/// Number of frontier vertices in the sample. They are taken in runs, because neighboring vertices
/// may share blocks.
const SAMPLE: usize = 256;
const RUN: usize = 32;
/// The cost of an edge of a block in sparse traversal.
const SPARSE_EDGE: u64 = 3;
/// The cost of a vertex in dense traversal.
const VERTEX: u64 = 2;
/// Bytes read in the time of an edge, in either traversal.
const BYTES_PER_EDGE_TIME: u64 = 2;
/// The cost of reading a single block.
const READ: u64 = 100_000;

/// The estimated time of a traversal.
#[derive(Default)]
struct Estimate {
    decode: u64,
    /// The time of reading, which depends on the units that are in memory.
    read: u64,
}

/// The indexes of a superstep, and the positions of their edges.
pub(crate) struct Indexes<'i> {
    pub(crate) vertices: u64,
    pub(crate) weighted: bool,
    /// For each file, whether its edges are walked.
    pub(crate) walked: &'i [bool],
    pub(crate) files: &'i [PinnedIndex],
    /// For each interval, its segments in each file.
    pub(crate) intervals: &'i [Shard],
    /// One for each file.
    pub(crate) directories: &'i [Directory],
}

/// The estimated times of both traversals for a frontier.
pub(crate) struct CostModel {
    sparse: Estimate,
    dense: Estimate,
    /// For each index and unit not in memory, whether reading its blocks one by one is faster than
    /// reading the unit.
    single: Vec<Vec<bool>>,
}

impl CostModel {
    /// Estimates the times for the indexes that are walked.
    pub(crate) fn new(frontier: &[u64], indexes: &Indexes<'_>) -> Self {
        let Indexes { vertices, weighted, walked, files, intervals, directories } = *indexes;
        let step = frontier.len().div_ceil(SAMPLE).max(1);
        let runs = frontier.chunks(RUN * step).flat_map(|part| &part[..part.len().min(RUN)]);
        let sample: Vec<u64> = runs.copied().collect();
        let mut blocks = 0;
        let mut dense = Estimate { decode: vertices * VERTEX, read: 0 };
        // For each unit, the number of blocks needed, and whether they may be read one by one.
        let mut units: Vec<Vec<(u64, bool)>> =
            files.iter().map(|file| vec![(0, !weighted); file.shards().units()]).collect();
        for (file, range) in intervals.iter().flatten().filter(|(file, _)| walked[*file]) {
            let shards = files[*file].shards();
            for index in Range::clone(range) {
                let segment = &shards.segments()[index];
                let sources = within(frontier, segment);
                if sources.is_empty() {
                    continue;
                }
                dense.decode += u64::from(segment.edges);
                let (mut wanted_blocks, mut done) = (0, 0);
                for source in within(&sample, segment) {
                    let offset = (source - segment.first_source) as u32;
                    let blocks = directories[*file].find(index, done, offset);
                    wanted_blocks += u64::from(blocks.end.saturating_sub(blocks.start.max(done)));
                    done = done.max(blocks.end);
                }
                let wanted_blocks = (wanted_blocks * step as u64).min(u64::from(segment.blocks));
                blocks += wanted_blocks;
                let (looked_for, single) = &mut units[*file][shards.unit(index)];
                *looked_for += wanted_blocks;
                *single &= !segment.packing.compressed;
            }
        }
        let mut sparse = Estimate { decode: blocks * BATCH as u64 * SPARSE_EDGE, read: 0 };
        let mut single: Vec<Vec<bool>> = Vec::with_capacity(files.len());
        for (file, units) in files.iter().zip(&units) {
            let decide = |(unit, (looked_for, single)): (usize, &(u64, bool))| {
                let whole = file.unread_bytes(unit) / BYTES_PER_EDGE_TIME;
                // Dense traversal reads the unit too. If memory is short, it hardly reads ahead, so
                // the time of reading is not hidden.
                dense.read += if *looked_for > 0 { whole } else { 0 };
                let single = *single && looked_for * READ < whole;
                sparse.read += match (looked_for, single) {
                    (0, _) => 0,
                    (_, true) => looked_for * READ,
                    (_, false) => whole,
                };
                single
            };
            single.push(units.iter().enumerate().map(decide).collect());
        }
        Self { sparse, dense, single }
    }

    /// True if sparse traversal is estimated to be faster.
    pub(crate) fn prefers_sparse(&self) -> bool {
        self.sparse.decode + self.sparse.read <= self.dense.decode + self.dense.read
    }

    /// True if decoding is estimated to be faster in sparse traversal. The answer does not depend
    /// on the units that are in memory.
    pub(crate) fn prefers_sparse_decoding(&self) -> bool {
        self.sparse.decode <= self.dense.decode
    }

    /// True if reading the blocks of a unit one by one is estimated to be faster.
    pub(crate) fn one_by_one(&self, file: usize, unit: usize) -> bool {
        self.single[file][unit]
    }
}

/// The part of `sources`, ascending, that may have edges in a segment.
pub(crate) fn within<'s>(sources: &'s [u64], segment: &Segment) -> &'s [u64] {
    let from = sources.partition_point(|source| *source < segment.first_source);
    let rest = &sources[from..];
    &rest[..rest.partition_point(|source| *source <= segment.last_source)]
}
