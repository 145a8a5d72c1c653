//! Triangles and local clustering coefficients.
//!
//! `triangles`: for each vertex the number of triangles that contain it (`triangles`, int64).
//! `clustering`: for each vertex the share of ordered pairs of its neighbors with an arc from the
//! first to the second (`coefficient`, float64; LDBC Graphalytics' LCC). Neighbors in either
//! direction count once; arcs among them count in each direction. The coefficient is 0 with fewer
//! than two neighbors. Self-loops and parallel arcs do not count. Exact.
//!
//! Method: every pair of neighbors is stored once, with its directions, at the end with the larger
//! internal id, which in degree order is nearly always the one with fewer neighbors; lists are
//! intersected along these pairs (Schank and Wagner 2005, "forward"). Time is O(|E|^1.5); memory is
//! 4 bytes for each arc and, for each vertex, 36 bytes and one for each thread.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::traverse::scan::Scan;
use brimful_engine::{Stats, Values};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::huge::{HugeArray, advise_spare};
use brimful_store::scratch::ScratchArray;
use bytemuck::{Pod, Zeroable};

use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::planning::Planner;
use crate::request::{Finished, Request};
use crate::{Error, Result};

/// The registry entry of triangles.
pub(crate) const TRIANGLES: Info = Info {
    name: "triangles",
    computes: "number of triangles that a vertex is part of, whatever the direction of edges",
    column: "triangles",
    takes: Takes::NOTHING,
    parameters: &[],
    run: Run::Vertices(|request, graph, resources| {
        let (counts, stats) = count(request, graph, resources)?;
        let values =
            Values::integers(counts, |c: Counts| i64::try_from(c.triangles).ok(), |_| Some(0))
                .without_nulls();
        Finished::new(graph, "triangles", values, stats, "forward")
    }),
    plan,
};

/// The registry entry of clustering coefficients.
pub(crate) const CLUSTERING: Info = Info {
    name: "clustering",
    computes: "local clustering coefficient: share of the ordered pairs of neighbors that have an \
               arc",
    column: "coefficient",
    takes: Takes::NOTHING,
    parameters: &[],
    run: Run::Vertices(|request, graph, resources| {
        let (counts, stats) = count(request, graph, resources)?;
        let values = Values::floats(counts, |c: Counts| Some(c.coefficient()), |_| Some(0.0))
            .without_nulls();
        Finished::new(graph, "coefficient", values, stats, "forward")
    }),
    plan,
};

/// The counts of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(C)]
struct Counts {
    neighbors: u64,
    triangles: u64,
    /// Arcs among neighbors.
    arcs: u64,
}

impl Counts {
    fn coefficient(&self) -> f64 {
        let pairs = self.neighbors as f64 * self.neighbors.saturating_sub(1) as f64;
        if pairs == 0.0 { 0.0 } else { self.arcs as f64 / pairs }
    }
}

/// An entry of a list has this many bits of direction below the id.
const DIRECTION_BITS: u32 = 2;
/// Vertices whose lists a thread intersects at a time.
const CLAIM: usize = 256;
/// Vertices whose lists a thread sorts at a time.
const PART: usize = 1 << 12;

/// For each vertex, its neighbors with smaller ids.
struct Lists {
    /// Position of the first entry of each vertex.
    starts: Vec<u64>,
    /// Number of entries of each vertex, duplicates merged.
    lengths: Vec<u32>,
    /// Ids shifted left by two; bit 0: an arc to the smaller id, bit 1: one from it.
    entries: Vec<u32>,
}

/// Bytes of the lists alone, and of the lists and counts together.
fn array_bytes(extent: &Extent, workers: usize) -> (u64, u64) {
    let lists = extent.vertices * (8 + 4) + 4 * extent.edges();
    (lists, lists + extent.vertices * (size_of::<Counts>() + workers) as u64)
}

/// The time of intersections is unknown until the lists are read.
fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let forecast = planner.scans(2, |setting| {
        let (lists, all) = array_bytes(setting.extent, setting.workers);
        (lists, all, setting.extent.vertices * size_of::<Counts>() as u64)
    });
    Ok(Forecast { timed: false, ..forecast })
}

fn count(
    request: &Request,
    graph: &Graph,
    resources: &Resources,
) -> Result<(ScratchArray<Counts>, Stats)> {
    const PURPOSE: &str = "to keep neighbors in memory";
    request.refuse_max_supersteps()?;
    let (workers, vertices) = (resources.workers(), graph.connected());
    if vertices >= 1 << (u32::BITS - DIRECTION_BITS) {
        return Err(Error::Usage(
            "triangle counts support fewer than 2^30 vertices with edges".into(),
        ));
    }
    let shards = graph.forward();
    let extent = Extent::of(graph, &[Index::In], false);
    let (_, arrays) = array_bytes(&extent, workers);
    let needed = arrays + Scan::minimum_bytes(&extent, workers);
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let mut pass = OnePass::begin(graph, resources);
    let scan = Scan::new(Arc::clone(shards), &extent, memory.bytes() - arrays, workers)?;
    let lists = lists(vertices as usize, &scan, resources)?;
    drop(scan);
    pass.end("list");
    let counts = triangles(&lists, resources)?;
    let stats = pass.finish("intersect", Traversal::Scan, shards.edges());
    Ok((ScratchArray::of(counts, 1 << graph.description().interval_bits), stats))
}

/// Lists every pair of neighbors once, at the larger id.
fn lists(vertices: usize, scan: &Scan, resources: &Resources) -> Result<Lists> {
    let ends: Vec<AtomicU32> = (0..vertices).map(|_| AtomicU32::new(0)).collect();
    let inside = |one: u64, other: u64| one.max(other) < vertices as u64;
    scan.for_each(resources, |edges| {
        edges.iter().all(|(source, target)| {
            if source != target && inside(source, target) {
                ends[source.max(target) as usize].fetch_add(1, Ordering::Relaxed);
            }
            inside(source, target)
        })
    })?;
    let mut total = 0;
    let starts: Vec<u64> = ends
        .iter()
        .map(|length| {
            let start = total;
            total += u64::from(length.swap(0, Ordering::Relaxed));
            start
        })
        .collect();
    let mut entries = Vec::with_capacity(total as usize);
    advise_spare(&mut entries);
    entries.extend((0..total).map(|_| AtomicU32::new(0)));
    scan.for_each(resources, |edges| {
        edges.iter().all(|(source, target)| {
            if source != target {
                let (low, high) = (source.min(target), source.max(target) as usize);
                let place = starts[high] + u64::from(ends[high].fetch_add(1, Ordering::Relaxed));
                let direction = if source > target { 1 } else { 2 };
                entries[place as usize]
                    .store((low as u32) << DIRECTION_BITS | direction, Ordering::Relaxed);
            }
            true
        })
    })?;
    // `collect` reuses the memory, because both types have the same size.
    let entries: Vec<u32> = entries.into_iter().map(AtomicU32::into_inner).collect();
    let lengths: Vec<u32> = ends.into_iter().map(AtomicU32::into_inner).collect();
    let mut lists = Lists { starts, lengths, entries };
    lists.merge(resources)?;
    Ok(lists)
}

impl Lists {
    fn of(&self, vertex: usize) -> &[u32] {
        let start = self.starts[vertex] as usize;
        &self.entries[start..start + self.lengths[vertex] as usize]
    }

    /// Sorts each list and merges the directions of entries of the same id.
    fn merge(&mut self, resources: &Resources) -> Result<()> {
        let (mut parts, mut entries) = (Vec::new(), &mut self.entries[..]);
        for lengths in self.lengths.chunks_mut(PART) {
            let count: usize = lengths.iter().map(|length| *length as usize).sum();
            let (some, rest) = entries.split_at_mut(count);
            parts.push(Mutex::new((lengths, some)));
            entries = rest;
        }
        resources.job.begin("sort lists", parts.len() as u64);
        resources.parallel_map(parts.len(), |index, (): &mut ()| -> Result<()> {
            let mut part = parts[index].lock().unwrap_or_else(PoisonError::into_inner);
            let (lengths, entries) = &mut *part;
            let mut start = 0;
            for length in lengths.iter_mut() {
                let end = start + *length as usize;
                *length = merge(&mut entries[start..end]);
                start = end;
            }
            resources.job.advance(1);
            Ok(())
        })?;
        Ok(())
    }
}

/// Sorts entries and merges those of the same id; returns the number of merged entries, which are
/// at the front.
fn merge(list: &mut [u32]) -> u32 {
    list.sort_unstable();
    let mut kept = 0;
    for at in 0..list.len() {
        let entry = list[at];
        match list[..kept].last_mut() {
            Some(last) if *last >> DIRECTION_BITS == entry >> DIRECTION_BITS => *last |= entry,
            _ => {
                list[kept] = entry;
                kept += 1;
            }
        }
    }
    kept as u32
}

/// [`Counts`] that threads share.
#[derive(Default)]
struct SharedCounts {
    neighbors: AtomicU64,
    triangles: AtomicU64,
    arcs: AtomicU64,
}

impl SharedCounts {
    fn add(&self, neighbors: u64, triangles: u64, arcs: u64) {
        self.neighbors.fetch_add(neighbors, Ordering::Relaxed);
        self.triangles.fetch_add(triangles, Ordering::Relaxed);
        self.arcs.fetch_add(arcs, Ordering::Relaxed);
    }
}

fn arcs(directions: u32) -> u64 {
    u64::from((directions & ((1 << DIRECTION_BITS) - 1)).count_ones())
}

/// Counts the triangles of every vertex; each is found at its largest corner.
fn triangles(lists: &Lists, resources: &Resources) -> Result<HugeArray<Counts>> {
    let vertices = lists.lengths.len();
    let counts: Vec<SharedCounts> = (0..vertices).map(|_| SharedCounts::default()).collect();
    resources.job.begin("intersect lists", vertices.div_ceil(CLAIM) as u64);
    resources.parallel_map(
        vertices.div_ceil(CLAIM),
        |claim, marks: &mut Vec<u8>| -> Result<()> {
            // The directions of the pairs of this vertex, by its neighbor.
            marks.resize(vertices, 0);
            for vertex in claim * CLAIM..vertices.min((claim + 1) * CLAIM) {
                let list = lists.of(vertex);
                let all = (1 << DIRECTION_BITS) - 1;
                for entry in list {
                    marks[(entry >> DIRECTION_BITS) as usize] = (entry & all) as u8;
                }
                let (mut triangles, mut among) = (0, 0);
                for entry in list {
                    let second = (entry >> DIRECTION_BITS) as usize;
                    let (mut of_second, mut among_second) = (0, 0);
                    for other in lists.of(second) {
                        let third = (other >> DIRECTION_BITS) as usize;
                        let mark = u32::from(marks[third]);
                        if mark != 0 {
                            of_second += 1;
                            among += arcs(*other);
                            among_second += arcs(mark);
                            counts[third].triangles.fetch_add(1, Ordering::Relaxed);
                            counts[third].arcs.fetch_add(arcs(*entry), Ordering::Relaxed);
                        }
                    }
                    triangles += of_second;
                    counts[second].add(1, of_second, among_second);
                }
                counts[vertex].add(list.len() as u64, triangles, among);
                for entry in list {
                    marks[(entry >> DIRECTION_BITS) as usize] = 0;
                }
            }
            resources.job.advance(1);
            Ok(())
        },
    )?;
    let counts: Vec<Counts> = counts
        .into_iter()
        .map(|shared| Counts {
            neighbors: shared.neighbors.into_inner(),
            triangles: shared.triangles.into_inner(),
            arcs: shared.arcs.into_inner(),
        })
        .collect();
    Ok(counts.into())
}
