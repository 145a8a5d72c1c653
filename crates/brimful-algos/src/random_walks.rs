//! Random walks along edges: uniform, by weights, and node2vec's.
//!
//! Returns rows (`walk` and `step`: int64, `vertex`): `walks` walks from each vertex, by ascending
//! vertex, each of at most `length` vertices, the first of which is step 0. A walk ends early where
//! no edge leads on. Each arc is taken with equal probability, parallel ones each, or in proportion
//! to its weight, which must not be negative. With p or q other than 1, the probability of an arc
//! to x, from a vertex that was reached from t, is multiplied by 1 / p if x is t, by 1 if an arc
//! leads from t to x, and else by 1 / q (Grover and Leskovec 2016, "node2vec").
//!
//! The random numbers of a step depend on the seed, the walk and the step alone, so walks are the
//! same at any budget and number of threads.
//!
//! Method: the external sorter makes lists of neighbors, in memory if they fit, else in scratch. As
//! many walkers as the budget holds take a step together, in the order of their vertices, so that
//! lists are read in sequence. Steps of node2vec are drawn by rejection (Yang et al. 2019,
//! "KnightKing"), with a search of the list of t; after too many rejections, from the shares of all
//! arcs. Memory: 16 bytes a vertex, 32 bytes for each thread and entry of the longest list, and the
//! walks of 4,096 walkers. Rows beyond the budget go to scratch.

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::{RowColumn, RowWriter};
use brimful_graph::ids::offsets::IdOffsets;
use brimful_graph::random::Random;
use brimful_graph::read::external_order::{self, ExternalOrder};
use brimful_graph::{Graph, Index};
use brimful_store::{Job, Resources};

use crate::id_offsets::{id_offset_bytes, id_offsets};
use crate::info::{Info, Run, Takes};
use crate::neighbor_lists::{Listed, NeighborLists};
use crate::one_pass::OnePass;
use crate::out_weights::scale_of_weights;
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{FinishedRows, Request};
use crate::{Error, Result};

/// The maximum number of walks of a vertex, and of vertices of a walk.
const MAX_COUNT: u64 = 1 << 31;
/// The minimum and the maximum number of walkers at a time.
const MIN_WALKERS: u64 = 1 << 12;
const MAX_WALKERS: u64 = 1 << 22;
/// Rejected trials after which a step is drawn from the shares of all arcs.
const TRIALS: usize = 32;
/// Walkers that a thread takes at a time.
const CLAIM: usize = 1 << 10;
/// The vertex of a walk that has ended.
const ENDED: u32 = u32::MAX;

const COLUMNS: &[RowColumn] =
    &[("walk", Kind::Integer), ("step", Kind::Integer), ("vertex", Kind::Vertex)];

const WALKS: ParameterInfo =
    ParameterInfo { name: "walks", values: Accepts::Count(10), meaning: "walks from each vertex" };
const LENGTH: ParameterInfo = ParameterInfo {
    name: "length",
    values: Accepts::Count(80),
    meaning: "maximum number of vertices of a walk",
};
const P: ParameterInfo = ParameterInfo {
    name: "p",
    values: Accepts::Number(1.0),
    meaning: "node2vec: below 1, walks turn back more often",
};
const Q: ParameterInfo = ParameterInfo {
    name: "q",
    values: Accepts::Number(1.0),
    meaning: "node2vec: below 1, walks go farther away",
};
const SEED: ParameterInfo = ParameterInfo {
    name: "seed",
    values: Accepts::Count(0),
    meaning: "a different seed gives different walks",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "random_walks",
    computes: "random walks from each vertex: uniform, by weights, or node2vec's with p and q",
    column: "vertex",
    takes: Takes { weights: true, ..Takes::NOTHING },
    parameters: &[WALKS, LENGTH, P, Q, SEED],
    run: Run::Rows(COLUMNS, run),
    plan,
};

/// The choices of a request.
struct Settings {
    walks: u64,
    length: u64,
    p: f64,
    q: f64,
    seed: u64,
    weighted: bool,
    /// The factor of weights, so that their sums do not overflow: only ratios matter.
    scale: f64,
}

impl Settings {
    fn of(request: &Request) -> Result<Self> {
        request.refuse_max_supersteps()?;
        let [walks, length] = [WALKS, LENGTH].map(|one| match one.count(request)? {
            count @ 1..=MAX_COUNT => Ok(count),
            count => Err(Error::Usage(format!("{} must be from 1 to 2^31, not {count}", one.name))),
        });
        let [p, q] = [P, Q].map(|one| match one.number(request)? {
            number if number > 0.0 && number.is_finite() => Ok(number),
            number => Err(Error::Usage(format!("{} must be above 0, not {number}", one.name))),
        });
        let (walks, length, p, q) = (walks?, length?, p?, q?);
        let seed = SEED.count(request)?;
        Ok(Self { walks, length, p, q, seed, weighted: request.weighted, scale: 1.0 })
    }

    fn listed(&self) -> Listed {
        if self.weighted { Listed::Weighted } else { Listed::Outgoing }
    }

    /// Bytes for each walker: its walk, its start vertex, and its entries in the order and in the
    /// next steps.
    fn walker_bytes(&self) -> u64 {
        4 * self.length + 32
    }

    /// Bytes besides those of making lists; the longest list has `longest` entries.
    fn array_bytes(&self, vertices: u64, longest: u64, workers: usize) -> u64 {
        // The lists of the vertex and of the previous vertex, the weights, and the sums of weights
        // and of shares.
        let lists = longest * (4 + 4 + 8 + 8 + 8);
        id_offset_bytes(vertices)
            + workers as u64 * lists
            + MIN_WALKERS * self.walker_bytes()
            + external_order::MEMORY_BYTES
            + RowWriter::MINIMUM_BYTES
    }
}

/// The maximum number of arcs that leave a vertex.
fn longest_list(graph: &Graph) -> u64 {
    let lists = graph.description().longest_lists;
    lists.map_or(graph.description().arcs, |lists| lists.outgoing)
}

/// The time is unknown, because it depends on whether lists are in memory.
fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    let settings = Settings::of(planner.request)?;
    let arcs = planner.arcs();
    let forecast = planner.scans(1, |setting| {
        let (vertices, workers) = (setting.extent.vertices, setting.workers);
        let longest = planner.of_graph(longest_list, vertices);
        let bytes = NeighborLists::array_bytes(vertices, workers)
            + settings.array_bytes(vertices, longest, workers);
        (bytes, bytes, 0)
    });
    let left = planner.limit().saturating_sub(forecast.minimum_bytes);
    let (memory, lists) = settings.listed().forecast_bytes(arcs, left);
    let vertices = planner.of_scan(|setting| setting.extent.vertices);
    let rows = vertices.saturating_mul(settings.walks).saturating_mul(settings.length);
    Ok(Forecast {
        memory_bytes: forecast.minimum_bytes + memory,
        scratch_bytes: lists.saturating_add(rows.saturating_mul(24).saturating_sub(left)),
        moves: false,
        timed: false,
        ..forecast
    })
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    const PURPOSE: &str = "to walk along edges";
    let scale = scale_of_weights(graph, request.weighted);
    let settings = Settings { scale, ..Settings::of(request)? };
    request.options(0).check_weights(graph)?;
    request.refuse_negative_weights(graph, &resources.job)?;
    let workers = resources.workers();
    let extent = Extent::of(graph, &[Index::In], request.weighted);
    let arrays = settings.array_bytes(extent.vertices, longest_list(graph), workers);
    let needed = NeighborLists::min_bytes(&extent, workers) + arrays;
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let mut pass = OnePass::begin(graph, resources);
    let spare = memory.bytes() - needed;
    let lists = NeighborLists::of(graph, settings.listed(), spare, resources)?;
    pass.end("list");
    // Half of the bytes that lists leave is for walkers, and half for rows.
    let spare = spare.saturating_sub(lists.resident_bytes()) / 2;
    let more = (spare / settings.walker_bytes()).min(MAX_WALKERS);
    let (walkers, edges) = ((MIN_WALKERS + more) as usize, lists.entries());
    let id_offsets = id_offsets(graph, &resources.job)?;
    let rows_bytes = RowWriter::MINIMUM_BYTES + spare;
    let mut rows = RowWriter::new(graph, COLUMNS, rows_bytes, &resources.job);
    let walking = Walking { lists: &lists, settings: &settings, resources };
    let mut starts = Starts::new(graph, settings.walks)?;
    resources.job.begin("walk", graph.vertices().saturating_mul(settings.walks));
    let mut first = 0;
    while let Some(batch) = starts.next_batch(walkers, &resources.job)? {
        let inside = batch.iter().map(|start| start.vertex.unwrap_or(ENDED)).collect();
        let walks = walking.walk(inside, first)?;
        let mut walks = batch.iter().zip(walks.chunks(settings.length as usize));
        while walks.len() > 0 {
            resources.job.check()?;
            let before = first;
            for (start, walk) in walks.by_ref().take(CLAIM) {
                rows.push(&[first, 0, start.id_offset])?;
                let vertices = walk.iter().skip(1).take_while(|vertex| **vertex != ENDED);
                for (step, vertex) in (1..).zip(vertices) {
                    rows.push(&[first, step, id_offsets[*vertex as usize]])?;
                }
                first += 1;
            }
            resources.job.advance(first - before);
        }
    }
    let stats = pass.finish("walk", Traversal::Scan, edges);
    let variant = match (settings.p, settings.q) {
        (1.0, 1.0) => "first-order",
        _ => "node2vec",
    };
    Ok(FinishedRows { table: rows.finish()?, stats, variant })
}

/// The first vertex of a walk.
#[derive(Clone, Copy)]
struct Start {
    /// `None` for a vertex without edges.
    vertex: Option<u32>,
    /// The offset of its external id.
    id_offset: u64,
}

/// The first vertices of all walks, by ascending id.
struct Starts {
    order: ExternalOrder<Arc<Graph>>,
    graph: Arc<Graph>,
    offsets: IdOffsets,
    walks: u64,
    /// The vertex at which the last batch ended, and the number of its walks that are left.
    rest: Option<(Start, u64)>,
}

impl Starts {
    fn new(graph: &Arc<Graph>, walks: u64) -> Result<Self> {
        let offsets = graph.id_offsets()?;
        let order = ExternalOrder::new(Arc::clone(graph));
        Ok(Self { order, graph: Arc::clone(graph), offsets, walks, rest: None })
    }

    /// The next first vertices, at most `most`; `None` at the end.
    fn next_batch(&mut self, most: usize, job: &Job) -> Result<Option<Vec<Start>>> {
        let all = self.walks.saturating_mul(self.graph.vertices());
        let mut batch = Vec::with_capacity(most.min(usize::try_from(all).unwrap_or(most)));
        while batch.len() < most {
            job.check()?;
            let (start, left) = match self.rest.take() {
                Some(rest) => rest,
                None => {
                    let (mut vertices, mut ids) = (Vec::new(), Vec::new());
                    self.order.next_batch(1, &mut vertices, &mut ids)?;
                    let (Some(&vertex), Some(&id)) = (vertices.first(), ids.first()) else { break };
                    let inside = vertex < self.graph.connected();
                    let vertex = inside.then_some(vertex as u32);
                    (Start { vertex, id_offset: self.offsets.of(id) }, self.walks)
                }
            };
            let now = left.min((most - batch.len()) as u64);
            batch.extend(std::iter::repeat_n(start, now as usize));
            self.rest = (left > now).then_some((start, left - now));
        }
        Ok((!batch.is_empty()).then_some(batch))
    }
}

/// The lists and choices that all steps read.
struct Walking<'w> {
    lists: &'w NeighborLists,
    settings: &'w Settings,
    resources: &'w Resources,
}

impl Walking<'_> {
    /// The vertices of walks from `starts`, walk by walk; the first walk has the number `first`.
    fn walk(&self, starts: Vec<u32>, first: u64) -> Result<Vec<u32>> {
        let length = self.settings.length as usize;
        let mut walks = vec![ENDED; starts.len() * length];
        for (walk, start) in walks.chunks_mut(length).zip(&starts) {
            walk[0] = *start;
        }
        let mut order: Vec<u32> = (0..starts.len() as u32).collect();
        drop(starts);
        for step in 1..length {
            let at = |walker: u32| walks[walker as usize * length + step - 1];
            self.resources.job.check()?;
            order.retain(|walker| at(*walker) != ENDED);
            if order.is_empty() {
                break;
            }
            order.sort_unstable_by_key(|walker| (at(*walker), *walker));
            let claims: Vec<&[u32]> = order.chunks(CLAIM).collect();
            let next = self.resources.parallel_map(
                claims.len(),
                |claim, walker: &mut Walker| -> Result<Vec<u32>> {
                    let next = |number: &u32| {
                        let walk = &walks[*number as usize * length..][..step];
                        let counter = (first + u64::from(*number)) * length as u64 + step as u64;
                        walker.next(self, walk, Random::of(self.settings.seed, counter))
                    };
                    claims[claim].iter().map(next).collect()
                },
            )?;
            for (walker, next) in order.iter().zip(next.into_iter().flatten()) {
                walks[*walker as usize * length + step] = next;
            }
        }
        Ok(walks)
    }
}

/// The lists that a thread has in memory.
#[derive(Default)]
struct Walker {
    /// The vertex that `list` belongs to, if lists are on disk.
    loaded: Option<u32>,
    list: Vec<u32>,
    weights: Vec<f64>,
    before: Vec<u32>,
    /// The vertex that `sums` belongs to; `sums` are the prefix sums of the weights of its arcs.
    summed: Option<u32>,
    sums: Vec<f64>,
}

impl Walker {
    /// The next vertex of a walk; [`ENDED`] if no edge leads on.
    fn next(&mut self, walking: &Walking<'_>, walk: &[u32], mut random: Random) -> Result<u32> {
        let (lists, settings) = (walking.lists, walking.settings);
        let vertex = walk[walk.len() - 1];
        if settings.weighted && self.summed != Some(vertex) {
            self.sums.clear();
            let mut sum = 0.0;
            self.sums.extend(lists.weights_of(vertex, &mut self.weights)?.iter().map(|weight| {
                sum += weight * settings.scale;
                sum
            }));
            self.summed = Some(vertex);
        }
        // Walkers at the same vertex follow each other.
        let list = match self.loaded == Some(vertex) && !lists.is_resident() {
            true => &self.list[..],
            false => lists.of_vertex(vertex, &mut self.list)?,
        };
        self.loaded = Some(vertex);
        let whole = if settings.weighted { self.sums.last().copied().unwrap_or(0.0) } else { 1.0 };
        if list.is_empty() || whole == 0.0 {
            return Ok(ENDED);
        }
        let sums = &self.sums;
        let draw = |random: &mut Random| match settings.weighted {
            false => list[random.below(list.len() as u64) as usize],
            true => list[drawn(sums, random)],
        };
        let (1.., true) = (walk.len() - 1, settings.p != 1.0 || settings.q != 1.0) else {
            return Ok(draw(&mut random));
        };
        let previous = walk[walk.len() - 2];
        let [back, near, far] = [settings.p.recip(), 1.0, settings.q.recip()];
        let (most, surely) = (back.max(near).max(far), near.min(far));
        let before = lists.of_vertex(previous, &mut self.before)?;
        let counts = |next: u32| match next == previous {
            true => back,
            false if before.binary_search(&next).is_ok() => near,
            false => far,
        };
        for _ in 0..TRIALS {
            let (next, bound) = (draw(&mut random), random.unit() * most);
            // A search for the arc from `previous` is needed only between the two bounds.
            if next != previous && bound < surely || bound < counts(next) {
                return Ok(next);
            }
        }
        let (mut sum, mut last) = (0.0, 0.0);
        let shares = list.iter().enumerate().map(|(at, next)| {
            let before = std::mem::replace(&mut last, sums.get(at).copied().unwrap_or(0.0));
            let weight = if settings.weighted { last - before } else { 1.0 };
            sum += weight * counts(*next);
            sum
        });
        let shares: Vec<f64> = shares.collect();
        Ok(list[drawn(&shares, &mut random)])
    }
}

/// Draws a position with a probability in proportion to its share; `sums` are prefix sums of
/// shares.
fn drawn(sums: &[f64], random: &mut Random) -> usize {
    let drawn = random.unit() * sums.last().copied().unwrap_or(0.0);
    // Rounding may reach the last sum itself.
    sums.partition_point(|sum| *sum <= drawn).min(sums.len() - 1)
}
