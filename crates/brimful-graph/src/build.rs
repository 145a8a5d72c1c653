//! From edges with internal ids to shards: pack, sort, encode, count.
//!
//! Invariant: the shard file's bytes depend on the multiset of edges alone.

use std::sync::atomic::{AtomicUsize, Ordering};

use brimful_store::array::ArrayWriter;
use brimful_store::in_order::InOrder;
use brimful_store::sealed::{Buffer, Kind};
use brimful_store::sorter::{SortWriter, Sorter};
use brimful_store::{Folder, Resources};

use crate::error::Result;
use crate::graph::{DEGREES, STRENGTHS};
use crate::records::{EdgeRecord, KeyLayout};
use crate::shards::{Geometry, ShardFile, ShardWriter};

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
    /// Edges equal to an earlier one.
    pub duplicates: u64,
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

    /// Writes all edges as the shard file `name`.
    pub fn write(self, folder: &dyn Folder, name: &str, resources: &Resources) -> Result<Built> {
        let total = self.sorter.len();
        resources.job.begin("write shards", total);
        let (layout, undirected) = (self.layout, self.undirected);
        let mut shards = ShardWriter::create(folder, name, self.geometry, resources.job.traffic())?;
        let mut last = None;
        let mut duplicates = 0;
        self.sorter.merge(&resources.pool, |batch| {
            for record in batch {
                let (source, target, weight) = record.unpack(layout);
                // Both directions of an undirected edge are stored; one of them counts.
                let counts = !undirected || source <= target;
                duplicates += u64::from(last == Some((source, target)) && counts);
                last = Some((source, target));
                shards.push(source, target, weight)?;
            }
            resources.job.advance(batch.len() as u64);
            Ok::<(), crate::Error>(())
        })?;
        let (arcs, bytes) = shards.finish()?;
        Ok(Built { arcs, duplicates, bytes })
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

/// Counts arcs, and sums weights, by source: one pass over the shards for every window of sources
/// that fits `bytes`. Writes the files of degrees and, if weighted, of strengths.
pub fn write_degrees(
    folder: &dyn Folder,
    shards: &ShardFile,
    vertices: u64,
    degree_bytes: u32,
    weighted: bool,
    bytes: u64,
    resources: &Resources,
) -> Result<()> {
    let job = &resources.job;
    let workers = resources.workers();
    let per_vertex = if weighted { 16 } else { 8 };
    let largest = shards.file().entries().iter().map(|e| e.len).max().unwrap_or(0);
    let each = (bytes / workers as u64).saturating_sub(largest) / per_vertex;
    let window = each.min(vertices.div_ceil(workers as u64)).max(1 << 12);
    let windows = vertices.div_ceil(window) as usize;
    job.begin("count degrees", windows as u64);
    let out = InOrder::new(DegreeFiles::create(folder, degree_bytes, weighted, job)?);
    let next = AtomicUsize::new(0);
    let results = resources.pool.broadcast(|_| {
        let _wake = out.wake_on_panic();
        let mut counter = DegreeCounter::default();
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= windows {
                return Ok(());
            }
            let start = number as u64 * window;
            let counted = counter.count(shards, start..vertices.min(start + window), weighted, job);
            if !out.pass(number, |files| counted.and_then(|()| files.append(&counter)))? {
                return Ok(());
            }
            job.advance(1);
        }
    });
    results.into_iter().collect::<Result<()>>()?;
    out.into_inner().finish()
}

/// Counts the arcs of a range of sources.
#[derive(Default)]
pub(crate) struct DegreeCounter {
    pub(crate) degrees: Vec<u64>,
    pub(crate) strengths: Vec<f64>,
    block: Buffer,
    weights: Vec<f64>,
}

impl DegreeCounter {
    pub(crate) fn count(
        &mut self,
        shards: &ShardFile,
        sources: std::ops::Range<u64>,
        weighted: bool,
        job: &brimful_store::Job,
    ) -> Result<()> {
        let length = (sources.end - sources.start) as usize;
        self.degrees.clear();
        self.degrees.resize(length, 0);
        self.strengths.clear();
        self.strengths.resize(if weighted { length } else { 0 }, 0.0);
        for (index, segment) in shards.segments().iter().enumerate() {
            if segment.last_source < sources.start || segment.first_source >= sources.end {
                continue;
            }
            job.check()?;
            shards.file().read_block(index, &mut self.block)?;
            if weighted {
                shards.packed(index, self.block.bytes())?.decode_weights(&mut self.weights);
            }
            let (degrees, strengths, weights) = (&mut self.degrees, &mut self.strengths, &self.weights);
            shards.for_each_edge(index, self.block.bytes(), |source, _, position| {
                // Below the range the difference wraps round to beyond its end.
                let at = source.wrapping_sub(sources.start) as usize;
                if let Some(degree) = degrees.get_mut(at) {
                    *degree += 1;
                    if let Some(strength) = strengths.get_mut(at) {
                        *strength += weights.get(position).copied().unwrap_or_default();
                    }
                }
            })?;
        }
        Ok(())
    }
}

enum DegreeArray {
    Narrow(ArrayWriter<u32>),
    Wide(ArrayWriter<u64>),
}

struct DegreeFiles {
    degrees: DegreeArray,
    strengths: Option<ArrayWriter<f64>>,
}

impl DegreeFiles {
    fn create(
        folder: &dyn Folder,
        degree_bytes: u32,
        weighted: bool,
        job: &brimful_store::Job,
    ) -> Result<Self> {
        let traffic = job.traffic();
        let degrees = if degree_bytes == 4 {
            DegreeArray::Narrow(ArrayWriter::create(folder, DEGREES, Kind::Degrees, traffic)?)
        } else {
            DegreeArray::Wide(ArrayWriter::create(folder, DEGREES, Kind::Degrees, traffic)?)
        };
        let strengths = match weighted {
            true => Some(ArrayWriter::create(folder, STRENGTHS, Kind::Strengths, traffic)?),
            false => None,
        };
        Ok(Self { degrees, strengths })
    }

    fn append(&mut self, counted: &DegreeCounter) -> Result<()> {
        for &degree in &counted.degrees {
            match &mut self.degrees {
                DegreeArray::Narrow(file) => file.push(degree as u32)?,
                DegreeArray::Wide(file) => file.push(degree)?,
            }
        }
        if let Some(file) = &mut self.strengths {
            for &strength in &counted.strengths {
                file.push(strength)?;
            }
        }
        Ok(())
    }

    fn finish(self) -> Result<()> {
        match self.degrees {
            DegreeArray::Narrow(file) => file.finish()?,
            DegreeArray::Wide(file) => file.finish()?,
        };
        if let Some(file) = self.strengths {
            file.finish()?;
        }
        Ok(())
    }
}
