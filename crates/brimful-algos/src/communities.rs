//! Communities of high modularity: Louvain and Leiden.
//!
//! Both return for each vertex its community, named by its smallest vertex (`label`, of the type of
//! ids). Modularity (Newman and Girvan 2004, with the resolution g of Reichardt and Bornholdt 2006)
//! is the sum over communities of `inside / 2m - g (strength / 2m)^2`, where `inside` is the weight
//! of the arcs within a community, `strength` the sum of the strengths of its vertices, and 2m the
//! weight of all arcs. Direction is ignored: an edge has an arc in both directions; parallel edges
//! add up; a self-loop has two arcs. Weights must not be negative. Vertices without edges are
//! communities of their own.
//!
//! - `louvain` (Blondel, Guillaume, Lambiotte, Lefebvre 2008): vertices move, one after another, to
//!   the community of a neighbor that adds the most to the modularity, until a sweep over all
//!   vertices adds no more than the tolerance. Then communities become the vertices of the next
//!   level. The method ends when no vertex moves.
//! - `leiden` (Traag, Waltman, van Eck 2019): between moving and the next level, each community is
//!   refined into connected parts. These become the vertices of the next level, and begin in the
//!   community that they are part of. At the end, communities are divided into their connected
//!   parts.
//!
//! Then another iteration begins with the vertices of the graph in the communities found so far,
//! and goes up the hierarchy again. It separates vertices that the first iteration joined too
//! early.
//!
//! Vertices move in a fixed order ([`lists::Order`]); the community with the least number wins a
//! tie; and refinement takes the best part, where Traag et al. draw one at random. So results
//! depend on the graph alone, and are bitwise equal at any budget and number of threads.
//!
//! Out of core: the external sorter makes the lists of neighbors of a level, in memory if they fit,
//! else in scratch ([`lists`]). Sweeps read them in sequence. Other arrays take
//! [`Method::vertex_bytes`] a vertex. Moves run in one thread, because their order is fixed. A
//! sweep is one pass over the lists, 12 bytes an arc; most graphs take 5 to 20 sweeps of the first
//! level; later levels are much smaller.

pub(crate) mod hierarchy;
mod lists;
mod moving;
mod refining;

use std::sync::Arc;

use brimful_engine::Values;
use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_graph::{Graph, Index};
use brimful_store::{Reservation, Resources};

use crate::communities::lists::{ListBudget, Lists, Order};
use crate::communities::moving::{Level, Moves};
use crate::connected_components::labels::{WINDOW, labels};
use crate::connected_components::propagation::Label;
use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::{Planner, fits_narrow};
use crate::request::{Finished, Request};
use crate::{Error, Result};

/// The default gain of modularity by a sweep below which a level ends.
const TOLERANCE: f64 = 1e-7;

const TAKES: Takes = Takes { tolerance: Some(TOLERANCE), weights: true, ..Takes::NOTHING };

const RESOLUTION: ParameterInfo = ParameterInfo {
    name: "resolution",
    values: Accepts::Number(1.0),
    meaning: "above 1: more and smaller communities; below: fewer and larger ones",
};
const ITERATIONS: ParameterInfo = ParameterInfo {
    name: "iterations",
    values: Accepts::Count(2),
    meaning: "passes up the hierarchy; each starts from single vertices and improves the \
              previous result",
};
const LEVELS: ParameterInfo = ParameterInfo {
    name: "levels",
    values: Accepts::CountOrNone("all"),
    meaning: "stop after this many levels of the hierarchy, in a single iteration",
};

const PARAMETERS: &[ParameterInfo] = &[RESOLUTION, ITERATIONS, LEVELS];

/// The registry entry of Louvain's method.
pub(crate) const LOUVAIN: Info = Info {
    name: "louvain",
    computes: "communities of high modularity, level by level; direction ignored (Louvain)",
    column: "label",
    takes: TAKES,
    parameters: PARAMETERS,
    run: Run::Vertices(|request, graph, resources| {
        run_narrowest(Method::Louvain, request, graph, resources)
    }),
    plan: |planner| plan(Method::Louvain, planner),
};

/// The registry entry of Leiden's method.
pub(crate) const LEIDEN: Info = Info {
    name: "leiden",
    computes: "communities of high modularity, each connected; direction ignored (Leiden)",
    column: "label",
    takes: TAKES,
    parameters: PARAMETERS,
    run: Run::Vertices(|request, graph, resources| {
        run_narrowest(Method::Leiden, request, graph, resources)
    }),
    plan: |planner| plan(Method::Leiden, planner),
};

/// The method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    Louvain,
    Leiden,
}

impl Method {
    fn name(self) -> &'static str {
        match self {
            Self::Louvain => "louvain",
            Self::Leiden => "leiden",
        }
    }

    /// Bytes of memory for each vertex with edges, besides lists of neighbors: lengths of lists and
    /// strengths of the graph, the current level and the next 36; communities of the level 4, their
    /// sums 8, weights to them 12, marks 1; its vertices' numbers in the next level 4, twice while
    /// they are made; and the vertex of the level that holds a vertex of the graph 4. Refinement
    /// takes 17 for its parts. Labels at the end take less.
    fn vertex_bytes(self) -> u64 {
        match self {
            Self::Louvain => 73,
            Self::Leiden => 90,
        }
    }

    /// Bytes of memory besides lists of neighbors and those for reading the graph.
    fn array_bytes(self, vertices: u64, workers: usize) -> u64 {
        let windows = (workers * WINDOW * size_of::<u64>()) as u64;
        vertices * self.vertex_bytes() + windows + lists::min_bytes(workers)
    }
}

/// The choices of a request.
struct Settings {
    method: Method,
    resolution: f64,
    levels: u64,
    iterations: u64,
    tolerance: f64,
    weighted: bool,
}

fn settings(method: Method, request: &Request) -> Result<Settings> {
    let resolution = RESOLUTION.number(request)?;
    let tolerance = request.tolerance.unwrap_or(TOLERANCE);
    for (name, number) in [("resolution", resolution), ("tolerance", tolerance)] {
        if number.is_nan() || number < 0.0 {
            return Err(Error::Usage(format!("{name} must be at least 0, not {number}")));
        }
    }
    request.refuse_max_supersteps()?;
    let (levels, iterations) = (LEVELS.count_or_none(request)?, ITERATIONS.count(request)?);
    if levels.is_some() && ITERATIONS.is_given(request) && iterations != 1 {
        let problem = "levels applies to a single iteration; leave out levels or iterations";
        return Err(Error::Usage(problem.into()));
    }
    let iterations = if levels.is_some() { 1 } else { iterations };
    let (levels, weighted) = (levels.unwrap_or(u64::MAX), request.weighted);
    Ok(Settings { method, resolution, levels, iterations, tolerance, weighted })
}

/// The maximum number of arcs in the lists of neighbors.
fn listed_arcs(arcs: u64, directed: bool) -> u64 {
    if directed { 2 * arcs } else { arcs }
}

/// The number of sweeps is unknown until they are done.
fn plan(method: Method, planner: &Planner<'_>) -> Result<Forecast> {
    settings(method, planner.request)?;
    let entries = lists::ENTRY_BYTES * listed_arcs(planner.arcs(), planner.is_directed());
    let limit = planner.limit();
    let forecast = planner.scans(1, |setting| {
        let all = method.array_bytes(setting.extent.vertices, setting.workers);
        (all, all, setting.extent.vertices * 8)
    });
    // The lists of two levels, and the records from which they are sorted.
    let lists = lists::bytes_of_levels(entries);
    let fits = forecast.minimum_bytes + lists <= limit;
    Ok(Forecast {
        memory_bytes: (forecast.minimum_bytes + lists).min(limit.max(forecast.minimum_bytes)),
        scratch_bytes: if fits { 0 } else { lists },
        moves: false,
        timed: false,
        ..forecast
    })
}

/// Runs a method with labels as narrow as the ids allow.
fn run_narrowest(
    method: Method,
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    match fits_narrow(graph.largest_id_offset()?) {
        true => run::<u32>(method, request, graph, resources),
        false => run::<u64>(method, request, graph, resources),
    }
}

fn run<L: Label>(
    method: Method,
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let settings = settings(method, request)?;
    let (_memory, budget) = prepared(&settings, request, graph, resources, 0)?;
    let mut pass = OnePass::begin(graph, resources);
    let lists = Lists::of(graph, settings.weighted, &budget)?;
    pass.end("list");
    let (communities, edges) = communities(lists, &settings, &budget, None)?;
    pass.end("move");
    let order = Order::of(graph);
    let community = |vertex| communities[order.number(vertex) as usize];
    let labels = labels::<L>(graph, &community, resources)?;
    let stats = pass.finish("label", Traversal::Scan, edges);
    let values = Values::vertices(labels, |label: L| Some(label.into()), Some).without_nulls();
    Finished::new(graph, "label", values, stats, method.name())
}

/// The memory of a run, with `extra` bytes for other purposes, and the part of it that lists may
/// take.
///
/// # Errors
/// `Error::Usage` for a graph that is too large; errors of unsuitable weights;
/// [`brimful_store::Error::Budget`] before any work.
fn prepared<'r>(
    settings: &Settings,
    request: &Request,
    graph: &'r Graph,
    resources: &'r Resources,
    extra: u64,
) -> Result<(Reservation, ListBudget<'r>)> {
    const PURPOSE: &str = "to find communities";
    let (method, workers) = (settings.method, resources.workers());
    request.options(0).check_weights(graph)?;
    request.refuse_negative_weights(graph, &resources.job)?;
    if graph.connected() >= u64::from(u32::MAX) {
        let problem = format!("{} supports fewer than 2^32 vertices with edges", method.name());
        return Err(Error::Usage(problem));
    }
    let extent = Extent::of(graph, &[Index::In], settings.weighted);
    let needed = lists::reading_bytes(&extent, workers)
        + method.array_bytes(extent.vertices, workers)
        + extra;
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let budget = ListBudget::new(memory.bytes() - needed, graph, resources);
    Ok((memory, budget))
}

/// Receives the communities of a level: one number for each vertex of the lists.
type TakeLevel<'t> = dyn FnMut(&[u32]) -> Result<()> + 't;

/// The community of each vertex of the lists, as a number below the number of vertices; and the
/// number of entries read. `each_level` receives the communities of each level, of at least one.
fn communities<'r>(
    lists: Lists<'r>,
    settings: &Settings,
    budget: &'r ListBudget<'r>,
    mut each_level: Option<&mut TakeLevel<'_>>,
) -> Result<(Vec<u32>, u64)> {
    let base = Level::new(lists, budget)?;
    let whole = base.strength();
    let mut community: Vec<u32> = (0..base.len() as u32).collect();
    let mut edges = base.entries();
    // If all weights are 0, all partitions have the same modularity.
    if whole > 0.0 {
        let climb = Climb {
            settings,
            scale: settings.resolution / whole,
            min_gain: settings.tolerance * whole / 2.0,
            budget,
        };
        for _ in 0..settings.iterations {
            let moves = climb.climb(&base, &mut community, each_level.as_deref_mut())?;
            edges += moves.entries;
            if settings.method == Method::Leiden {
                community = base.connected_parts(&community, budget)?;
                edges += base.entries();
            }
            if moves.count == 0 {
                break;
            }
        }
    } else if let Some(take) = each_level {
        take(&community)?;
    }
    Ok((community, edges))
}

/// One iteration: from the vertices of the graph up the hierarchy.
struct Climb<'c, 'r> {
    settings: &'c Settings,
    /// The resolution over the weight of all arcs.
    scale: f64,
    /// The gain below which a level ends, in the unit of moves.
    min_gain: f64,
    budget: &'r ListBudget<'r>,
}

impl<'r> Climb<'_, 'r> {
    /// Improves the communities of the vertices of `base`.
    fn climb(
        &self,
        base: &Level<'r>,
        community: &mut Vec<u32>,
        mut each_level: Option<&mut TakeLevel<'_>>,
    ) -> Result<Moves> {
        let Self { settings, scale, min_gain, budget } = *self;
        // The vertex of the level that holds each vertex of the base.
        let mut holders: Vec<u32> = (0..base.len() as u32).collect();
        let (mut upper, mut done): (Option<Level<'r>>, u64) = (None, 0);
        let mut all = Moves::default();
        while done < settings.levels {
            let level = upper.as_ref().unwrap_or(base);
            budget.job().begin(format!("level {}", done + 1), 0);
            let moves = level.move_vertices(community, scale, min_gain, budget)?;
            (all.count, all.entries) = (all.count + moves.count, all.entries + moves.entries);
            done += 1;
            // Communities without moves in this level may still be joined at the next level.
            let is_single = |community: &[u32]| (0..).zip(community).all(|(at, own)| at == *own);
            let is_last = moves.count == 0 && is_single(community);
            if let Some(take) = each_level.as_deref_mut().filter(|_| !is_last || done == 1) {
                let own = |holder: &u32| community[*holder as usize];
                let mut all_own: Vec<u32> = holders.iter().map(own).collect();
                if settings.method == Method::Leiden {
                    all_own = base.connected_parts(&all_own, budget)?;
                }
                take(&all_own)?;
            }
            if is_last {
                break;
            }
            let mut parts = match settings.method {
                Method::Louvain => community.clone(),
                Method::Leiden => {
                    all.entries += 2 * level.entries();
                    level.refine(community, scale, budget)?
                }
            };
            let count = renumber(&mut parts);
            if count == level.len() {
                break;
            }
            all.entries += level.entries();
            let next = level.contract(&parts, count, budget)?;
            *community = communities_of_parts(&parts, community, count);
            holders.iter_mut().for_each(|holder| *holder = parts[*holder as usize]);
            upper = Some(next);
        }
        holders.iter_mut().for_each(|holder| *holder = community[*holder as usize]);
        *community = holders;
        Ok(all)
    }
}

/// The community in which each of `count` parts begins, named by the least of its parts.
fn communities_of_parts(parts: &[u32], community: &[u32], count: usize) -> Vec<u32> {
    let mut names = vec![u32::MAX; parts.len()];
    for (part, own) in parts.iter().zip(community) {
        let name = &mut names[*own as usize];
        *name = (*part).min(*name);
    }
    let mut within = vec![0; count];
    for (part, own) in parts.iter().zip(community) {
        within[*part as usize] = names[*own as usize];
    }
    within
}

/// Renumbers parts consecutively, in the same order; returns the number of parts.
fn renumber(parts: &mut [u32]) -> usize {
    let mut numbers = vec![0_u32; parts.len()];
    parts.iter().for_each(|part| numbers[*part as usize] = 1);
    let mut count = 0;
    for number in &mut numbers {
        let occurs = *number;
        *number = count;
        count += occurs;
    }
    parts.iter_mut().for_each(|part| *part = numbers[*part as usize]);
    count as usize
}
