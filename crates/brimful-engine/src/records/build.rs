//! Makes records from shards: interval by interval, in blocks that fit.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful_graph::Graph;
use brimful_graph::codec::{BATCH, Unpack};
use brimful_graph::shards::ShardFile;
use brimful_store::{Content, Error as StoreError, Resources, StoreFile};
use bytemuck::Pod;

use super::{Block, COUNT, Interval, Part, Records, Shape};
use crate::error::{Error, Result};
use crate::extent::Extent;
use crate::needs::Needs;
use crate::options::{Layout, RunOptions};
use crate::plan::Plan;
use crate::program::Program;
use crate::residency::{Resident, Spare};

/// Fewest and most bytes of a block, where its first record is not larger.
const BLOCK_BYTES: (u64, u64) = (1 << 12, 1 << 23);

/// The parts of interval `interval`, and whether they are summed apart: as [`crate::sweep::Schedule`] has it.
fn parts(files: &[Resident], interval: u64) -> (Vec<Part>, bool) {
    let mut parts = Vec::new();
    for (file, resident) in files.iter().enumerate() {
        let segments = resident.shards().segments();
        let start = segments.partition_point(|segment| segment.interval < interval);
        let end = segments.partition_point(|segment| segment.interval <= interval);
        let mut next = start;
        for window in segments[start..end].chunk_by(|a, b| a.window == b.window) {
            parts.push(Part { file, segments: next..next + window.len() });
            next += window.len();
        }
    }
    if parts.is_empty() {
        // An interval without edges has records all the same.
        parts.push(Part { file: 0, segments: 0..0 });
    }
    let heavy = parts.windows(2).any(|pair| pair[0].file == pair[1].file);
    (parts, heavy)
}

/// Puts `item` at place `at` of an array.
fn put<T: Pod>(bytes: &mut [u8], at: usize, item: T) {
    bytes[at * size_of::<T>()..][..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&item));
}

/// Bytes for each target and part while records are made: its count and its place.
const MEASURED_BYTES: u64 = 4 + 16;

/// How memory is shared out while records are made, in bytes.
pub(crate) struct Blocks {
    /// The smallest budget.
    pub(crate) minimum: u64,
    /// What all workers make them with, beside blocks.
    pub(crate) building: u64,
    /// Of a block, and of one that is a single record.
    pub(crate) usual: u64,
    most: u64,
}

impl Blocks {
    /// For records of `layout`, in `limit` bytes. A block holds the record of the vertex that has most edges.
    pub(crate) fn new(needs: &Needs, extent: &Extent, layout: Layout, workers: u64, limit: u64) -> Self {
        let (window, parts) = (extent.vertices.min(extent.interval()), extent.most_parts.max(1));
        let record = Shape::new(needs, extent, layout).bytes_of(1, extent.longest_list, parts);
        let units: u64 = extent.columns().map(|column| column.largest).sum();
        let building = workers * (units + extent.unpacked() + window * parts * MEASURED_BYTES);
        let beside = building.max(Plan::records_bytes(needs, extent, 0, workers));
        let most = limit.saturating_sub(beside) / workers;
        let usual = (most / 2).clamp(BLOCK_BYTES.0, BLOCK_BYTES.1);
        Self { minimum: beside + workers * record.max(BLOCK_BYTES.0), building, usual, most }
    }
}

impl Shape {
    /// How records of `layout` look.
    pub(crate) fn new(needs: &Needs, extent: &Extent, layout: Layout) -> Self {
        Self {
            state: if layout == Layout::Coupled { needs.state as usize } else { 0 },
            weighted: extent.weighted,
            source: if extent.vertices > u64::from(u32::MAX) { 8 } else { 4 },
        }
    }

    /// Bytes of the records of so many vertices that have so many edges, of that many parts an interval.
    fn bytes_of(self, vertices: u64, edges: u64, parts: u64) -> u64 {
        vertices * (self.state as u64 + parts * COUNT as u64) + edges * self.edge() as u64
    }

    /// Bytes of all records, of that many parts an interval.
    pub(crate) fn bytes(self, extent: &Extent, parts: u64) -> u64 {
        self.bytes_of(extent.vertices, extent.edges(), parts)
    }

    /// Bytes of the records of the interval that has most edges.
    pub(crate) fn bytes_of_largest(self, extent: &Extent, parts: u64) -> u64 {
        let edges: u64 = extent.indexes.iter().map(|index| index.largest_shard).sum();
        self.bytes_of(extent.vertices.min(extent.interval()), edges, parts)
    }
}

/// What one worker builds with.
#[derive(Default)]
struct Building {
    spares: Vec<[Spare; 2]>,
    plain: Vec<u8>,
    /// Edges of each target in each part.
    counts: Vec<u32>,
    /// Where the edges of each target in each part go, and how many are there.
    places: Vec<(usize, u32)>,
    bytes: Vec<u8>,
}

impl Records {
    /// Lists the edges of `shards` in the layout chosen, which is not shards, for a run of `P`.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] naming the smallest budget that works.
    pub(crate) fn of_graph<P: Program>(
        program: &P,
        graph: &Graph,
        shards: &[Arc<ShardFile>],
        options: &RunOptions,
        resources: &Resources,
    ) -> Result<Self> {
        const PURPOSE: &str = "to list the edges of this graph by vertex";
        let (budget, workers) = (&resources.budget, resources.workers() as u64);
        let borrowed: Vec<&Arc<ShardFile>> = shards.iter().collect();
        let extent = Extent::of_shards(graph, &borrowed, options.weighted);
        let needs = Needs::of(program);
        let shape = Shape::new(&needs, &extent, options.layout);
        let files = Resident::spread(shards.to_vec(), options.weighted, 0);
        let blocks = Blocks::new(&needs, &extent, options.layout, workers, budget.limit());
        budget.require(blocks.minimum, PURPOSE)?;
        let _memory = budget.reserve(blocks.building + workers * blocks.most, PURPOSE)?;
        let file = options
            .in_scratch(graph, |folder| StoreFile::scratch(folder, resources.job.traffic()))?
            .counted_as(Content::Lists);
        Self::build(graph, &files, file, shape, (blocks.usual, blocks.most), resources)
    }

    /// Lists the edges of `files` in `file`, in blocks of about `block_bytes` and `most_bytes` at most. Memory: a block,
    /// 16 bytes for each target and part, and a unit of every column, for each worker.
    ///
    /// # Errors
    /// Corruption where a record is larger than `most_bytes`.
    pub(super) fn build(
        graph: &Graph,
        files: &[Resident],
        file: StoreFile,
        shape: Shape,
        (block_bytes, most_bytes): (u64, u64),
        resources: &Resources,
    ) -> Result<Self> {
        let (end, largest) = (AtomicU64::new(0), AtomicU64::new(0));
        let count = graph.intervals() as usize;
        resources.job.begin("list edges by vertex", count as u64);
        let intervals = resources.share(count, |index, room: &mut Building| -> Result<Interval> {
            let window = 1_u64 << graph.description().interval_bits;
            let targets = window.min(graph.connected() - index as u64 * window) as usize;
            let (parts, apart) = parts(files, index as u64);
            room.measure(files, &parts, targets, resources)?;
            let mut blocks = room.cut(parts.len(), shape, block_bytes);
            for block in &mut blocks {
                let bytes = block.bytes as u64;
                if bytes > most_bytes {
                    // The budget was planned for the longest list that the manifest tells of.
                    let what = format!("the record of a vertex takes {bytes} bytes, more than its longest list of neighbours can");
                    return Err(StoreError::corrupt(graph.path(), 0, what).into());
                }
                largest.fetch_max(bytes, Ordering::Relaxed);
                block.offset = end.fetch_add(bytes, Ordering::Relaxed);
                room.fill(files, &parts, block, shape, resources)?;
                file.write_all_at(&room.bytes, block.offset)?;
            }
            resources.job.advance(1);
            Ok(Interval { parts, apart, blocks })
        })?;
        Ok(Self { file, intervals, shape, largest_block: largest.into_inner() })
    }
}

impl Building {
    /// Calls `edge(self, part, source, target, weight)` for all edges of `parts`, in order.
    fn each_edge(
        &mut self,
        files: &[Resident],
        parts: &[Part],
        weighted: bool,
        resources: &Resources,
        mut edge: impl FnMut(&mut Self, usize, u64, usize, f64) -> bool,
    ) -> Result<()> {
        let (mut spares, mut plain) = (std::mem::take(&mut self.spares), std::mem::take(&mut self.plain));
        spares.resize_with(files.len(), Default::default);
        for (at, part) in parts.iter().enumerate() {
            let (resident, [spare, spare_weights]) = (&files[part.file], &mut spares[part.file]);
            let shards = resident.shards();
            let bits = shards.interval_bits();
            for index in part.segments.clone() {
                resources.job.check()?;
                let unit = resident.unit(0, shards.unit(index), spare)?;
                let mut packed = match weighted {
                    true => {
                        Some(shards.weights(index, resident.unit(1, shards.unit(index), spare_weights)?)?)
                    }
                    false => None,
                };
                shards.decode(index, (unit, None), Unpack::fastest(), &mut plain, |base, keys, _| {
                    let mut weights = [1.0; BATCH];
                    if let Some(packed) = &mut packed {
                        packed.take(&mut weights[..keys.len()]);
                    }
                    keys.iter().zip(weights).all(|(key, weight)| {
                        let target = key & ((1 << bits) - 1);
                        edge(self, at, base + u64::from(key >> bits), target as usize, weight)
                    })
                })?;
            }
        }
        (self.spares, self.plain) = (spares, plain);
        Ok(())
    }

    /// Counts the edges of each target in each part.
    fn measure(
        &mut self,
        files: &[Resident],
        parts: &[Part],
        targets: usize,
        resources: &Resources,
    ) -> Result<()> {
        self.counts.clear();
        self.counts.resize(targets * parts.len(), 0);
        let mut long = false;
        self.each_edge(files, parts, false, resources, |room, part, _, target, _| {
            let count = room.counts.get_mut(target * parts.len() + part);
            count.is_some_and(|count| {
                let (more, over) = count.overflowing_add(1);
                *count = more;
                long |= over;
                true
            })
        })?;
        if long {
            return Err(Error::Usage("a vertex has 2^32 edges or more; choose the layout shards".into()));
        }
        Ok(())
    }

    /// Cuts what was measured into blocks of at most `most` bytes, or a single record.
    fn cut(&self, parts: usize, shape: Shape, most: u64) -> Vec<Block> {
        let mut blocks: Vec<Block> = Vec::new();
        for (target, counts) in self.counts.chunks_exact(parts).enumerate() {
            let edges: usize = counts.iter().map(|count| *count as usize).sum();
            let bytes = shape.state + parts * COUNT + edges * shape.edge();
            match blocks.last_mut().filter(|block| (block.bytes + bytes) as u64 <= most) {
                Some(block) => (block.targets.end, block.bytes) = (target + 1, block.bytes + bytes),
                None => blocks.push(Block { targets: target..target + 1, offset: 0, bytes }),
            }
        }
        blocks
    }

    /// Makes the bytes of a block; states are zeros.
    fn fill(
        &mut self,
        files: &[Resident],
        parts: &[Part],
        block: &Block,
        shape: Shape,
        resources: &Resources,
    ) -> Result<()> {
        let (targets, width) = (block.targets.clone(), parts.len());
        self.bytes.clear();
        // What grows by itself may grow to twice what is needed.
        self.bytes.reserve_exact(block.bytes);
        self.places.clear();
        self.places.reserve_exact(targets.len() * width);
        for counts in self.counts[targets.start * width..targets.end * width].chunks_exact(width) {
            self.bytes.resize(self.bytes.len() + shape.state, 0);
            self.bytes.extend_from_slice(bytemuck::cast_slice(counts));
            for count in counts {
                self.places.push((self.bytes.len(), 0));
                self.bytes.resize(self.bytes.len() + *count as usize * shape.edge(), 0);
            }
        }
        self.each_edge(files, parts, shape.weighted, resources, |room, part, source, target, weight| {
            if !targets.contains(&target) {
                return true;
            }
            let count = room.counts[target * width + part] as usize;
            let (start, done) = &mut room.places[(target - targets.start) * width + part];
            let (sources, weights) = room.bytes[*start..].split_at_mut(count * shape.source);
            let at = *done as usize;
            *done += 1;
            match shape.source {
                4 => put(sources, at, source as u32),
                _ => put(sources, at, source),
            }
            if shape.weighted {
                put(weights, at, weight);
            }
            true
        })
    }
}
