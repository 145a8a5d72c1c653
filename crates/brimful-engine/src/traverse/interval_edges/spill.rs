//! The edges of intervals whose lists do not fit in memory together, in scratch files, part by
//! part.
//!
//! Without these files, each part of an interval would read all edges of that interval, in every
//! superstep. The files are written once.
//! Invariant: the edges of a part are in the order of the shards.

use std::ops::Range;

use brimful_store::{Content, Job, Resources, StoreFile};

use super::{Ends, IntervalEdges, Reader, Shards};
use crate::error::{Error, Result};
use crate::plan::extent::Extent;
use crate::scratch::in_scratch;

/// An edge: its source, and its target counted within the interval.
pub(crate) type Pair = [u32; 2];

/// Bytes of a pair, and of a weight. They have a file each, so that an edge has the same position
/// in both.
const EDGE_BYTES: u64 = 8;
/// Edges read at once.
const READ_EDGES: usize = 1 << 12;
/// Minimum number of edges that are written at once.
const WRITE_EDGES: usize = 1 << 9;
/// Maximum number of parts that are filled at once.
const MAX_PARTS: usize = 1 << 10;

/// Bytes of disk of an edge.
pub(crate) fn edge_bytes(weighted: bool) -> u64 {
    if weighted { 2 * EDGE_BYTES } else { EDGE_BYTES }
}

/// Bytes of memory that a worker reads with.
pub(crate) fn read_bytes(extent: &Extent) -> u64 {
    extent.edges().min(READ_EDGES as u64) * edge_bytes(extent.weighted)
}

/// Consecutive targets of an interval, and the position of their edges.
#[derive(Debug)]
pub(crate) struct IntervalPart {
    pub(crate) targets: Range<usize>,
    /// Position of the first edge, counted in edges.
    start: u64,
    edges: u64,
}

impl IntervalPart {
    /// The position after the last edge.
    fn end(&self) -> u64 {
        self.start + self.edges
    }
}

/// The parts of all intervals that have several.
#[derive(Debug)]
pub(crate) struct Spill {
    pairs: StoreFile,
    weights: Option<StoreFile>,
    /// By interval; empty if the lists of the interval fit together.
    parts: Vec<Vec<IntervalPart>>,
}

/// The buffers with which parts of one interval are filled together.
#[derive(Default)]
struct Filling {
    reader: Reader,
    /// The part of each target of the interval.
    part_of: Vec<u16>,
    parts: Vec<UnwrittenEdges>,
}

/// The edges of a part that are not yet written.
#[derive(Default)]
struct UnwrittenEdges {
    pairs: Vec<Pair>,
    weights: Vec<f64>,
    /// The position of the first of them.
    start: u64,
}

/// Marks targets of parts that are not filled now.
const OTHER: u16 = u16::MAX;

impl Spill {
    /// Writes the parts in `cuts`: consecutive targets, not beyond an interval, with the number of
    /// edges to them. `None` if every interval is one part. Filling takes memory for up to
    /// `list_edges` edges per thread.
    pub(crate) fn new(
        shards: &Shards,
        cuts: Vec<(Range<usize>, u64)>,
        list_edges: u64,
        weighted: bool,
        graph: &brimful_graph::Graph,
        resources: &Resources,
    ) -> Result<Option<Self>> {
        let (mut parts, mut end) = (Vec::new(), 0);
        parts.resize_with(shards.intervals(), Vec::new);
        for cut in
            cuts.chunk_by(|(a, _), (b, _)| shards.interval(a.start) == shards.interval(b.start))
        {
            if let [_, _, ..] = cut {
                let (first, _) = &cut[0];
                parts[shards.interval(first.start)].extend(cut.iter().map(|(targets, edges)| {
                    end += edges;
                    IntervalPart { targets: targets.clone(), start: end - edges, edges: *edges }
                }));
            }
        }
        if end == 0 {
            return Ok(None);
        }
        let file = || {
            let file =
                in_scratch(graph, &|folder| StoreFile::scratch(folder, resources.job.traffic()))?;
            Ok::<_, Error>(file.counted_as(Content::Lists))
        };
        let spill = Self { pairs: file()?, weights: weighted.then(file).transpose()?, parts };
        spill.fill(shards, list_edges, resources)?;
        Ok(Some(spill))
    }

    /// Distributes the edges to their parts: as many parts of an interval at a time as there is
    /// memory to write them.
    fn fill(&self, shards: &Shards, list_edges: u64, resources: &Resources) -> Result<()> {
        let at_once = (list_edges as usize / 4 / WRITE_EDGES).clamp(2, MAX_PARTS);
        let groups: Vec<(usize, &[IntervalPart])> = (0..)
            .zip(&self.parts)
            .flat_map(|(interval, parts)| parts.chunks(at_once).map(move |group| (interval, group)))
            .collect();
        resources.job.begin("split lists", groups.len() as u64);
        resources.parallel_map(groups.len(), |index, filling: &mut Filling| {
            let (interval, group) = groups[index];
            self.fill_group(shards, interval, group, filling, &resources.job)?;
            resources.job.advance(1);
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    /// Writes the edges of the parts in `group`, which belong to one interval.
    fn fill_group(
        &self,
        shards: &Shards,
        interval: usize,
        group: &[IntervalPart],
        filling: &mut Filling,
        job: &Job,
    ) -> Result<()> {
        let Filling { reader, part_of, parts } = filling;
        let window = shards.window(interval);
        part_of.clear();
        part_of.resize(window.len(), OTHER);
        parts.resize_with(group.len(), UnwrittenEdges::default);
        for (number, (part, unwritten)) in group.iter().zip(&mut *parts).enumerate() {
            let Range { start, end } = part.targets;
            part_of[start - window.start..end - window.start].fill(number as u16);
            unwritten.start = part.start;
        }
        let write = |number: usize, unwritten: &mut UnwrittenEdges| match unwritten.start
            + unwritten.pairs.len() as u64
            > group[number].end()
        {
            true => Err(shards.changed(interval).into()),
            false => self.write(unwritten),
        };
        let mut written = Ok(());
        shards
            .each(interval, self.weights.is_some(), job, reader, &mut |edges| {
                let mut edge_weights = edges.weights.iter();
                edges.all(|source, target| {
                    let weight = edge_weights.next();
                    let number = usize::from(part_of[target]);
                    let Some(unwritten) = parts.get_mut(number) else { return true };
                    unwritten.pairs.push([source as u32, target as u32]);
                    unwritten.weights.extend(weight);
                    if unwritten.pairs.len() >= WRITE_EDGES {
                        written = write(number, unwritten);
                    }
                    written.is_ok()
                })
            })
            .and(written)?;
        for (number, unwritten) in parts.iter_mut().enumerate() {
            write(number, unwritten)?;
        }
        // Each part must have received the edges that were counted.
        match parts.iter().zip(group).all(|(unwritten, part)| unwritten.start == part.end()) {
            true => Ok(()),
            false => Err(shards.changed(interval).into()),
        }
    }

    /// Writes the edges of a part, and makes room for more.
    fn write(&self, unwritten: &mut UnwrittenEdges) -> Result<()> {
        let UnwrittenEdges { pairs, weights, start } = unwritten;
        self.pairs.write_all_at(bytemuck::cast_slice(pairs), *start * EDGE_BYTES)?;
        if let Some(file) = &self.weights {
            file.write_all_at(bytemuck::cast_slice(weights), *start * EDGE_BYTES)?;
        }
        *start += pairs.len() as u64;
        pairs.clear();
        weights.clear();
        Ok(())
    }

    /// The parts of an interval; empty if its lists fit together.
    pub(crate) fn parts(&self, interval: usize) -> &[IntervalPart] {
        &self.parts[interval]
    }

    /// Calls `batch` for the edges of a part, in order, and stops without an error when `batch`
    /// returns false. Returns the number of edges of the whole part.
    pub(crate) fn each(
        &self,
        part: &IntervalPart,
        job: &Job,
        pairs: &mut Vec<Pair>,
        weights: &mut Vec<f64>,
        batch: &mut dyn FnMut(IntervalEdges<'_>) -> bool,
    ) -> Result<u64> {
        for start in (0..part.edges).step_by(READ_EDGES) {
            job.check()?;
            let count = (part.edges - start).min(READ_EDGES as u64) as usize;
            let offset = (part.start + start) * EDGE_BYTES;
            pairs.resize(count, [0; 2]);
            self.pairs.read_exact_at(bytemuck::cast_slice_mut(pairs), offset)?;
            weights.resize(if self.weights.is_some() { count } else { 0 }, 1.0);
            if let Some(file) = &self.weights {
                file.read_exact_at(bytemuck::cast_slice_mut(weights), offset)?;
            }
            if !batch(IntervalEdges { ends: Ends::Pairs(pairs), weights }) {
                break;
            }
        }
        Ok(part.edges)
    }
}
