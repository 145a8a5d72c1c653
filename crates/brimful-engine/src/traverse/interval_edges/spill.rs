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
use crate::plan::options::RunOptions;

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
    /// By part, the pairs that are not yet written.
    pairs: Vec<Vec<Pair>>,
    /// By part, their weights.
    weights: Vec<Vec<f64>>,
    /// By part, the position of the next edge to write.
    next: Vec<u64>,
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
        options: &RunOptions,
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
            let file = options
                .in_scratch(graph, |folder| StoreFile::scratch(folder, resources.job.traffic()))?;
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
        resources.job.begin("take lists apart", groups.len() as u64);
        resources.share(groups.len(), |index, filling: &mut Filling| {
            let (interval, group) = groups[index];
            self.fill_group(shards, interval, group, filling, &resources.job)?;
            resources.job.advance(1);
            Ok::<_, Error>(())
        })?;
        Ok(())
    }

    fn fill_group(
        &self,
        shards: &Shards,
        interval: usize,
        group: &[IntervalPart],
        filling: &mut Filling,
        job: &Job,
    ) -> Result<()> {
        let Filling { reader, part_of, pairs, weights, next } = filling;
        let window = shards.window(interval);
        part_of.clear();
        part_of.resize(window.len(), OTHER);
        for (number, part) in group.iter().enumerate() {
            part_of[part.targets.start - window.start..part.targets.end - window.start]
                .fill(number as u16);
        }
        pairs.resize_with(group.len(), Vec::new);
        weights.resize_with(group.len(), Vec::new);
        next.clear();
        next.extend(group.iter().map(|part| part.start));
        let mut write =
            |number: usize, pairs: &mut Vec<Pair>, weights: &mut Vec<f64>| -> Result<()> {
                let start = next[number];
                next[number] += pairs.len() as u64;
                if next[number] > group[number].end() {
                    return Err(shards.changed(interval).into());
                }
                self.pairs.write_all_at(bytemuck::cast_slice(pairs), start * EDGE_BYTES)?;
                if let Some(file) = &self.weights {
                    file.write_all_at(bytemuck::cast_slice(weights), start * EDGE_BYTES)?;
                }
                pairs.clear();
                weights.clear();
                Ok(())
            };
        let mut failed = Ok(());
        shards
            .each(interval, self.weights.is_some(), job, reader, &mut |edges| {
                let mut edge_weights = edges.weights.iter();
                edges.all(|source, target| {
                    let weight = edge_weights.next();
                    let number = usize::from(part_of[target]);
                    let (Some(pairs), Some(weights)) =
                        (pairs.get_mut(number), weights.get_mut(number))
                    else {
                        return true;
                    };
                    pairs.push([source as u32, target as u32]);
                    weights.extend(weight);
                    if pairs.len() >= WRITE_EDGES {
                        failed = write(number, pairs, weights);
                    }
                    failed.is_ok()
                })
            })
            .and_then(|edges| failed.map(|()| edges))?;
        for (number, (pairs, weights)) in
            pairs.iter_mut().zip(weights).enumerate().take(group.len())
        {
            write(number, pairs, weights)?;
        }
        // Each part must have received the edges that were counted.
        match next.iter().zip(group).all(|(next, part)| *next == part.end()) {
            true => Ok(()),
            false => Err(shards.changed(interval).into()),
        }
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
