//! The edges into an interval, a batch at a time, from which lists are made.
//!
//! Lists are made from the shards: sources are written to the lists of their targets, which keeps
//! them in order. No adjacency on disk is needed; the in-shards that every graph has are enough.
//! Invariant: the source and target of every edge are vertices.

pub(crate) mod spill;

use std::path::PathBuf;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::codec::{Keys, Unpack};
use brimful_graph::read::shards::ShardFile;
use brimful_store::{Error as StoreError, Job};

use crate::error::Result;
use crate::traverse::residency::{PinnedIndex, Shard, Spare, segments_of_intervals};
use spill::{IntervalPart, Pair, Spill};

/// A batch of edges into one interval; sources ascend.
pub(crate) struct IntervalEdges<'b> {
    pub(crate) ends: Ends<'b>,
    /// The weight of each edge; empty if the run does not use weights.
    pub(crate) weights: &'b [f64],
}

/// Sources and targets of a batch.
pub(crate) enum Ends<'b> {
    /// Edges of a segment, which may be corrupt.
    Keys {
        /// The source of an edge is this plus the high bits of its key.
        base: u64,
        keys: Keys<'b>,
        /// Low bits of a key, which hold the target.
        bits: u32,
        /// Number of vertices of the graph.
        vertices: u64,
        /// Number of vertices of the interval.
        targets: usize,
    },
    /// Spilled edges.
    Pairs(&'b [Pair]),
}

impl IntervalEdges<'_> {
    /// Calls `edge(source, target)`, the target counted within its interval. False if `edge`
    /// returns false, or an end is not a vertex.
    #[inline]
    pub(crate) fn all(&self, mut edge: impl FnMut(u64, usize) -> bool) -> bool {
        match &self.ends {
            Ends::Keys { base, keys, bits, vertices, targets } => {
                let mask = (1_u32 << bits) - 1;
                keys.iter().all(|key| {
                    let (source, target) = (base + u64::from(key >> bits), (key & mask) as usize);
                    source < *vertices && target < *targets && edge(source, target)
                })
            }
            Ends::Pairs(pairs) => {
                pairs.iter().all(|[source, target]| edge(u64::from(*source), *target as usize))
            }
        }
    }
}

/// The buffers with which one worker reads edges.
#[derive(Default)]
pub(crate) struct Reader {
    /// For each file, one for each column.
    spares: Vec<[Spare; 2]>,
    plain: Vec<u8>,
    /// Edges of spilled parts.
    pairs: Vec<Pair>,
    weights: Vec<f64>,
}

impl Reader {
    /// Calls `batch` for the edges of a part, as [`Spill::each`].
    pub(crate) fn each_of_part(
        &mut self,
        spill: &Spill,
        part: &IntervalPart,
        job: &Job,
        batch: &mut dyn FnMut(IntervalEdges<'_>) -> bool,
    ) -> Result<u64> {
        spill.each(part, job, &mut self.pairs, &mut self.weights, batch)
    }
}

/// The indexes from which lists are made, with their edges.
pub(crate) struct Shards {
    files: Vec<PinnedIndex>,
    /// For each interval, its segments in each file.
    intervals: Vec<Shard>,
    bits: u32,
    vertices: usize,
}

impl Shards {
    /// Pins `pinned_bytes` of packed edges of the intervals `owned`, and of their weights if the
    /// run uses them.
    pub(crate) fn new(
        graph: &Graph,
        files: Vec<Arc<ShardFile>>,
        weighted: bool,
        pinned_bytes: u64,
        owned: &std::ops::Range<usize>,
    ) -> Self {
        Self {
            intervals: segments_of_intervals(&files, graph.intervals() as usize),
            files: PinnedIndex::pin(files, weighted, pinned_bytes, owned),
            bits: graph.description().interval_bits,
            vertices: graph.connected() as usize,
        }
    }

    /// Number of intervals.
    pub(crate) fn intervals(&self) -> usize {
        self.intervals.len()
    }

    /// The vertices of an interval.
    pub(crate) fn window(&self, interval: usize) -> std::ops::Range<usize> {
        interval << self.bits..((interval + 1) << self.bits).min(self.vertices)
    }

    /// The interval of a vertex.
    pub(crate) fn interval(&self, vertex: usize) -> usize {
        vertex >> self.bits
    }

    /// The error of an interval whose edges differ from those counted before.
    pub(crate) fn changed(&self, interval: usize) -> StoreError {
        let path =
            self.files.first().map_or_else(PathBuf::new, |file| file.shards().file().path().into());
        StoreError::corrupt(
            path,
            0,
            format!("the edges into interval {interval} changed while they were read"),
        )
    }

    /// Calls `batch` for the edges into an interval, in order within each index; returns their
    /// number.
    ///
    /// # Errors
    /// Errors of reading; corruption also if `batch` returns false.
    pub(crate) fn each(
        &self,
        interval: usize,
        weighted: bool,
        job: &Job,
        reader: &mut Reader,
        batch: &mut dyn FnMut(IntervalEdges<'_>) -> bool,
    ) -> Result<u64> {
        self.each_from(&(0..self.vertices), interval, weighted, job, reader, batch)
    }

    /// [`Shards::each`] for the segments that may have edges of `sources`.
    pub(crate) fn each_from(
        &self,
        sources: &std::ops::Range<usize>,
        interval: usize,
        weighted: bool,
        job: &Job,
        reader: &mut Reader,
        batch: &mut dyn FnMut(IntervalEdges<'_>) -> bool,
    ) -> Result<u64> {
        let (vertices, targets) = (self.vertices as u64, self.window(interval).len());
        let bits = self.bits;
        let (unpack, mut edges) = (Unpack::fastest(), 0);
        let Reader { spares, plain, .. } = reader;
        spares.resize_with(self.files.len(), Default::default);
        for (file, segments) in &self.intervals[interval] {
            let (resident, [spare, weights_spare]) = (&self.files[*file], &mut spares[*file]);
            let shards = resident.shards();
            for index in segments.clone() {
                let segment = &shards.segments()[index];
                let is_beyond = segment.first_source >= sources.end as u64;
                if is_beyond || segment.last_source < sources.start as u64 {
                    continue;
                }
                job.check()?;
                let unit = resident.unit(0, shards.unit(index), spare)?;
                let weights = match weighted {
                    true => Some(resident.unit(1, shards.unit(index), weights_spare)?),
                    false => None,
                };
                shards.decode(index, unit, weights, unpack, plain, |base, keys, weights| {
                    let weights = if weighted { &weights[..keys.len()] } else { &[] };
                    let ends = Ends::Keys { base, keys, bits, vertices, targets };
                    batch(IntervalEdges { ends, weights })
                })?;
                edges += u64::from(segment.edges);
            }
        }
        Ok(edges)
    }
}
