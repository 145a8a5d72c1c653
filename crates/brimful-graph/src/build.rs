//! From edges with internal ids to shards: pack, sort, encode, count.
//!
//! Invariant: the shard file's bytes depend on the multiset of edges alone.

use brimful_store::sorter::{SortWriter, Sorter};
use brimful_store::{Folder, Resources};

use crate::degrees::DegreeCounter;
use crate::error::{Error, Result};
use crate::policy::{Applied, Merger, Policy};
use crate::records::{EdgeRecord, KeyLayout};
use crate::shards::{Geometry, ShardWriter};

/// Edges with internal ids, going into shards.
pub struct ShardSorter<'j, R: EdgeRecord> {
    sorter: Sorter<'j, R>,
    layout: KeyLayout,
    geometry: Geometry,
    undirected: bool,
}

/// What writing shards counted.
#[derive(Debug, Clone, Copy, Default)]
pub struct Built {
    /// Arcs stored.
    pub arcs: u64,
    /// What became of self-loops and duplicates, and the range of weights.
    pub applied: Applied,
    /// Length of the file in bytes.
    pub bytes: u64,
}

impl<'j, R: EdgeRecord> ShardSorter<'j, R> {
    /// A sorter that stores each edge in both directions if `undirected`.
    pub fn new(
        folder: &dyn Folder,
        layout: KeyLayout,
        geometry: Geometry,
        undirected: bool,
        bytes: u64,
        workers: usize,
        job: &'j brimful_store::Job,
    ) -> Result<Self> {
        Ok(Self { sorter: Sorter::new(folder, bytes, workers, job)?, layout, geometry, undirected })
    }

    /// A writer for one worker.
    pub fn writer(&self) -> ShardSortWriter<'_, 'j, R> {
        ShardSortWriter { writer: self.sorter.writer(), layout: self.layout, undirected: self.undirected }
    }

    /// Writes the edges that `policy` passes on as the shard file `name` and tells `degrees` of each.
    pub(crate) fn write(
        self,
        folder: &dyn Folder,
        name: &str,
        policy: Policy,
        degrees: &mut DegreeCounter,
        resources: &Resources,
    ) -> Result<Built> {
        let total = self.sorter.len();
        resources.job.begin("write shards", total);
        let (layout, undirected) = (self.layout, self.undirected);
        let mut shards = ShardWriter::create(folder, name, self.geometry, resources.job.traffic())?;
        let mut merger = Merger::new(policy, undirected);
        let mut emit = |source, target, weight| {
            degrees.add(source, weight);
            shards.push(source, target, weight)
        };
        self.sorter.merge(&resources.pool, |batch| {
            for record in batch {
                let (source, target, weight) = record.unpack(layout);
                merger.push(source, target, weight, &mut emit)?;
            }
            resources.job.advance(batch.len() as u64);
            Ok::<(), Error>(())
        })?;
        let applied = merger.finish(&mut emit)?;
        if applied.weights.is_some_and(|range| range.any_infinite()) {
            let what = "the weights of equal edges add up to more than 64-bit floating point holds; scale \
                        them down, or choose another of --duplicates keep, drop, min";
            return Err(Error::input("(input)", what));
        }
        let (arcs, bytes) = shards.finish()?;
        Ok(Built { arcs, applied, bytes })
    }
}

/// One worker's end of a [`ShardSorter`]. [`ShardSortWriter::finish`] must be called.
pub struct ShardSortWriter<'s, 'j, R> {
    writer: SortWriter<'s, 'j, R>,
    layout: KeyLayout,
    undirected: bool,
}

impl<R: EdgeRecord> ShardSortWriter<'_, '_, R> {
    /// Adds an edge.
    #[inline]
    pub fn push(&mut self, source: u64, target: u64, weight: f64) -> Result<()> {
        self.writer.push(R::pack(self.layout, source, target, weight))?;
        if self.undirected && source != target {
            self.writer.push(R::pack(self.layout, target, source, weight))?;
        }
        Ok(())
    }

    /// Hands over what is left.
    pub fn finish(self) -> Result<()> {
        Ok(self.writer.finish()?)
    }
}

/// Bytes needed beside the sorter while shards are encoded: one segment, twice, with weights.
pub fn encoding_bytes(weighted: bool) -> u64 {
    u64::from(Geometry::default().segment_edges) * if weighted { 3 * 8 + 2 * 4 } else { 2 * 4 }
}
