//! Betweenness centrality, exact or from sampled sources.
//!
//! Returns for each vertex the sum over pairs of other vertices of the share of their shortest
//! paths, along edges, that pass through it (`betweenness`, float64; Freeman 1977). Every edge has
//! the length 1; parallel edges make separate paths. *Normalized*: the sum is divided by the number
//! of such pairs, (n-1)(n-2) for n vertices. *Unnormalized*: it is divided by 1, or by 2 in an
//! undirected graph, where each pair is counted twice.
//!
//! Method (Brandes 2001): from a source, levels of a breadth-first search count shortest paths;
//! then, from the last level back, each vertex v adds up its dependency, the sum over its
//! successors w of `paths(v) / paths(w) * (1 + dependency(w))`. Eight sources at a time share a
//! pass over the edges. *Sampled* from k of n sources (Brandes and Pich 2007), the sum is
//! multiplied by n / k. With k = ln(2 n / p) / (2 e^2) sources that are drawn at random, all
//! normalized values are within e of the exact ones with a probability of at least 1 - p
//! (Hoeffding's inequality). Here the sources are the vertices with the smallest splitmix64 of the
//! offset of the external id, so that runs are reproducible.
//!
//! Every superstep reads all edges, first along them and then against them: 2 M + 1 supersteps for
//! eight sources, if M is the greatest level. State: for each source, the level, the number of
//! paths, the dependency and the next signal, together 224 bytes a vertex. Signals take 64 bytes a
//! vertex twice, and the sum takes 8, which the budget must hold. O(sources * |E| * M / 8).

pub(crate) mod edges;

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::plan::needs::Needs;
use brimful_engine::result::stats::Traversal;
use brimful_engine::{
    AddEach, Globals, Greatest, Mode, Program, RunOptions, Stats, Values, Vertex,
    run as run_program,
};
use brimful_graph::random::splitmix64;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;
use bytemuck::{Pod, Zeroable};

use crate::id_offsets::for_each_id_offset;
use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::out_weights::AT_ONCE;
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{Finished, Request};
use crate::{Error, Result};

/// Sources that share a run.
const LANES: usize = 8;
/// The level of a vertex that no path has reached.
const UNREACHED: u32 = u32::MAX;

const SAMPLES: ParameterInfo = ParameterInfo {
    name: "samples",
    values: Accepts::CountOrNone("all vertices"),
    meaning: "estimate from this many sampled sources",
};
const VARIANT: ParameterInfo = ParameterInfo {
    name: "variant",
    values: Accepts::Words(&["normalized", "unnormalized"]),
    meaning: "normalized: divided by the number of pairs of vertices; unnormalized: not divided",
};

const PARAMETERS: &[ParameterInfo] = &[SAMPLES, VARIANT];

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "betweenness",
    computes: "betweenness centrality: share of shortest paths through a vertex, exact or from \
               sampled sources",
    column: "betweenness",
    takes: Takes::NOTHING,
    parameters: PARAMETERS,
    run: Run::Vertices(run),
    plan,
};

/// Shortest paths from each source to a vertex.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub struct Paths {
    levels: [u32; LANES],
    counts: [f64; LANES],
    dependencies: [f64; LANES],
    sends: [f64; LANES],
}

/// Dependencies of up to eight sources.
#[derive(Debug, Clone)]
pub struct Dependencies {
    /// Internal ids, in the order of the lanes.
    sources: Vec<u64>,
}

impl Dependencies {
    /// The program for these sources, as internal ids of vertices with edges. Only the first eight
    /// count.
    pub fn new(sources: &[u64]) -> Self {
        Self { sources: sources.iter().copied().take(LANES).collect() }
    }
}

/// True in the forward phase: the last superstep has reached a new level.
fn goes_forward(globals: &Globals<Greatest>) -> bool {
    globals.aggregate.0 == globals.superstep as f64
}

impl Program for Dependencies {
    type State = Paths;
    type Combiner = AddEach<LANES>;
    /// The greatest level so far.
    type Aggregate = Greatest;
    const MODE: Mode = Mode::Full;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn walks(&self, index: Index, globals: &Globals<Greatest>) -> bool {
        index == if goes_forward(globals) { Index::In } else { Index::Reverse }
    }

    fn initial(&self, vertex: Vertex, _: &Globals<Greatest>) -> Paths {
        let mut paths = Paths { levels: [UNREACHED; LANES], ..Paths::zeroed() };
        for (lane, _) in self.sources.iter().enumerate().filter(|(_, id)| **id == vertex.id) {
            (paths.levels[lane], paths.counts[lane], paths.sends[lane]) = (0, 1.0, 1.0);
        }
        paths
    }

    #[inline]
    fn signal(&self, _: Vertex, paths: Paths) -> [f64; LANES] {
        paths.sends
    }

    #[inline]
    fn collect(
        &self,
        _: Vertex,
        mut paths: Paths,
        sum: [f64; LANES],
        globals: &Globals<Greatest>,
    ) -> Paths {
        paths.sends = [0.0; LANES];
        if goes_forward(globals) {
            for (lane, count) in sum.into_iter().enumerate() {
                if paths.levels[lane] == UNREACHED && count > 0.0 {
                    paths.levels[lane] = globals.superstep as u32 + 1;
                    (paths.counts[lane], paths.sends[lane]) = (count, count);
                }
            }
            return paths;
        }
        // The backward phase begins with the last level, which receives no signal.
        let level = (2 * globals.aggregate.0 as u64 + 1).saturating_sub(globals.superstep);
        for (lane, sum) in sum.into_iter().enumerate() {
            if u64::from(paths.levels[lane]) == level {
                paths.dependencies[lane] = paths.counts[lane] * sum;
                paths.sends[lane] = (1.0 + paths.dependencies[lane]) / paths.counts[lane];
            }
        }
        paths
    }

    #[inline]
    fn aggregate(&self, _: Vertex, _: Paths, new: Paths) -> Greatest {
        let reached = new.levels.into_iter().filter(|level| *level != UNREACHED).max();
        reached.map_or(Greatest(f64::NEG_INFINITY), |level| Greatest(f64::from(level)))
    }

    /// Stops at level 1: a source has no dependency on itself.
    fn converged(&self, globals: &Globals<Greatest>) -> bool {
        globals.superstep as f64 > 2.0 * globals.aggregate.0
    }
}

/// Bytes of the sums of all sources.
fn sum_bytes(vertices: u64) -> u64 {
    vertices * size_of::<f64>() as u64
}

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    let extra = planner.of_scan(|setting| sum_bytes(setting.extent.vertices));
    Ok(Forecast { result_bytes: extra, ..plan_sources(planner, extra)? })
}

/// The forecast of searches from all sources, with `extra` bytes for the caller.
fn plan_sources(planner: &Planner<'_>, extra: u64) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    let vertices = planner.of_scan(|setting| setting.extent.vertices);
    let samples = SAMPLES.count_or_none(planner.request)?;
    let extra = extra + sample_bytes(samples, planner.connected());
    let sources = samples.unwrap_or(vertices).min(vertices);
    // R-MAT graphs have about seven levels; each superstep walks one of two indexes.
    let supersteps = 16 * sources.div_ceil(LANES as u64);
    let steps = Steps::about(supersteps, supersteps as f64 / 2.0);
    let forecast = planner.program(&Dependencies::new(&[]), steps)?;
    Ok(Forecast {
        minimum_bytes: forecast.minimum_bytes + extra,
        in_memory_bytes: forecast.in_memory_bytes + extra,
        memory_bytes: forecast.memory_bytes + extra,
        result_bytes: 0,
        ..forecast
    })
}

/// A finished pass over all sources.
struct Passed {
    /// The number of sources over the number of vertices with edges: no path begins at other
    /// vertices.
    share: f64,
    variant: &'static str,
    stats: Stats,
}

/// Passes the states of every run of up to eight sources to `add`. The caller keeps `extra` bytes
/// of the budget.
fn for_all_sources(
    request: &Request,
    graph: &Graph,
    resources: &Resources,
    extra: u64,
    mut add: impl FnMut(&ScratchArray<Paths>) -> Result<()>,
) -> Result<Passed> {
    const PURPOSE: &str = "to keep the sums of all sources";
    request.refuse_max_supersteps()?;
    let variant = VARIANT.word(request)?;
    let connected = graph.connected();
    let samples = SAMPLES.count_or_none(request)?;
    if samples == Some(0) {
        return Err(Error::Usage(
            "samples must be at least 1; leave it out to search from all vertices".into(),
        ));
    }
    let needs = Needs::of(&Dependencies::new(&[]));
    let extent = Extent::of(graph, needs.indexes, false);
    let least = Setting::new(&extent, resources).min_of_program(&needs, false);
    let extra = extra + sample_bytes(samples, connected);
    let _memory = resources.budget.reserve_all(least + extra, PURPOSE)?;
    let pass = OnePass::begin(graph, resources);
    let within = resources.within(resources.budget.limit() - extra);
    let count = samples.unwrap_or(connected).min(connected);
    let sampled =
        (count < connected).then(|| sampled(graph, count as usize, resources)).transpose()?;
    let mut edges = 0;
    for first in (0..count).step_by(LANES) {
        let range = first..count.min(first + LANES as u64);
        let sources: Vec<u64> = match &sampled {
            Some(sampled) => sampled[range.start as usize..range.end as usize].to_vec(),
            None => range.collect(),
        };
        let program = Dependencies::new(&sources);
        let output = run_program(&program, graph, &RunOptions::default(), &within)?;
        edges += output.stats.edges_visited;
        add(&output.states)?;
    }
    let stats = pass.finish("search", Traversal::Dense, edges);
    Ok(Passed { share: count as f64 / connected.max(1) as f64, variant, stats })
}

/// Refuses sums that overflowed, because the number of paths exceeds the largest f64.
fn check_finite(totals: &[f64]) -> Result<()> {
    if totals.iter().all(|total| total.is_finite()) {
        return Ok(());
    }
    let problem = "two vertices have more than 1.8e308 shortest paths, too many for a 64-bit float";
    Err(brimful_engine::Error::Program(problem.into()).into())
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<Finished> {
    let mut totals = vec![0.0; graph.connected() as usize];
    let extra = sum_bytes(graph.connected());
    let passed =
        for_all_sources(request, graph, resources, extra, |states| add(states, &mut totals))?;
    check_finite(&totals)?;
    let n = graph.vertices() as f64;
    let pairs = match passed.variant {
        "normalized" => ((n - 1.0) * (n - 2.0)).max(1.0),
        _ if graph.description().directed => 1.0,
        _ => 2.0,
    };
    let whole = pairs * passed.share;
    let totals = ScratchArray::of(totals.into(), 1 << graph.description().interval_bits);
    let values = Values::floats(totals, move |total: f64| Some(total / whole), |_| Some(0.0));
    Finished::new(graph, "betweenness", values.without_nulls(), passed.stats, passed.variant)
}

/// Adds the dependencies of all sources.
fn add(states: &ScratchArray<Paths>, totals: &mut [f64]) -> Result<()> {
    let mut part = vec![Paths::zeroed(); AT_ONCE.min(states.len())];
    for (at, totals) in totals.chunks_mut(AT_ONCE).enumerate() {
        states.read(at * AT_ONCE, &mut part[..totals.len()])?;
        for (total, paths) in totals.iter_mut().zip(&part) {
            *total += paths.dependencies.iter().sum::<f64>();
        }
    }
    Ok(())
}

/// Bytes for the choice of `samples` sources among `connected` vertices: 16 for each in a heap, and
/// 8 in the list of the chosen ones.
fn sample_bytes(samples: Option<u64>, connected: u64) -> u64 {
    samples.filter(|count| *count < connected).map_or(0, |count| 24 * (count + 1))
}

/// The vertices with edges whose offsets have the `count` smallest hashes, by ascending internal
/// id.
fn sampled(graph: &Graph, count: usize, resources: &Resources) -> Result<Vec<u64>> {
    let mut least: BinaryHeap<(u64, Reverse<u64>)> = BinaryHeap::with_capacity(count + 1);
    for_each_id_offset(graph, 0..graph.connected(), &resources.job, |vertex, id_offset| {
        least.push((splitmix64(id_offset), Reverse(vertex)));
        if least.len() > count {
            least.pop();
        }
        Ok(())
    })?;
    let mut sources: Vec<u64> = least.into_iter().map(|(_, Reverse(vertex))| vertex).collect();
    sources.sort_unstable();
    Ok(sources)
}
