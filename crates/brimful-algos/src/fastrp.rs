//! Embeddings of vertices by fast random projection.
//!
//! Returns a row for each vertex, ascending (`vertex`, and `embedding`: a list of `dimensions`
//! float32): its row of the sum over k, from 1 on, of
//!
//! ```text
//! weight k * (D^-1 A)^k L R
//! ```
//!
//! (Chen, Sultan, Tian, Chen, Skiena 2019, "Fast and Accurate Network Embeddings via Very Sparse
//! Random Projection"). A holds the arcs between two vertices in either direction, with
//! multiplicity or by weight, and D the sums of its rows; L is diagonal, with the entries (d /
//! 2m)^normalization of a vertex with the sum d, where 2m is the sum of all. R is random: an entry
//! is the square root of 3 or its negative with probability 1/6 each, else 0 (Achlioptas 2003). An
//! entry depends only on the seed, the offset of the external id and the dimension. An embedding
//! therefore does not depend on memory and threads, and one with fewer dimensions is a prefix of
//! one with more. Embeddings of vertices without edges are zero.
//!
//! Method: sixteen dimensions at a time take a superstep for each k, over the arcs in both
//! directions, and one more to learn d if L is not the identity. State: float32 of the last power
//! and of the sum. Signal: float64 of the last power, and the weight of the edge. Memory: 264 bytes
//! a vertex, paged in smaller budgets; an external sort by vertex puts the dimensions together, in
//! any budget.

use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::plan::needs::Needs;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::scratch::in_scratch;
use brimful_engine::{
    AddEach, Globals, Mode, Program, RowColumn, RowWriter, RunOptions, Stats, Vertex,
    run as run_program,
};
use brimful_graph::random::Random;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::sorter::{self, Record, SortWriter, Sorter};
use bytemuck::{Pod, Zeroable};

use crate::info::{Info, Run, Takes};
use crate::one_pass::OnePass;
use crate::out_weights::{self, AT_ONCE};
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{FinishedRows, Request};
use crate::{Error, Result};

const PURPOSE: &str = "to embed the vertices";
/// Dimensions that share a run over the edges.
const LANES: usize = 16;
/// The maximum number of dimensions.
const MAX_DIMENSIONS: u64 = 4096;
/// The maximum number of powers.
const MAX_POWERS: usize = 64;

/// Columns besides the embedding.
const COLUMNS: &[RowColumn] = &[("vertex", Kind::Vertex)];

const BOTH_WAYS: &[Index] = &[Index::In, Index::Reverse];

const DIMENSIONS: ParameterInfo = ParameterInfo {
    name: "dimensions",
    values: Accepts::Count(128),
    meaning: "length of an embedding, at most 4096",
};
const ITERATION_WEIGHTS: ParameterInfo = ParameterInfo {
    name: "iteration_weights",
    values: Accepts::Numbers(&[0.0, 1.0, 1.0]),
    meaning: "weights of the neighbors at 1, 2, ... steps of a walk",
};
const NORMALIZATION: ParameterInfo = ParameterInfo {
    name: "normalization",
    values: Accepts::Number(0.0),
    meaning: "below 0: vertices with many edges count less; the paper's beta",
};
const SEED: ParameterInfo = ParameterInfo {
    name: "seed",
    values: Accepts::Count(0),
    meaning: "a different seed gives a different projection",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "fastrp",
    computes: "embeddings: nearby vertices have similar vectors (FastRP); direction ignored",
    column: "embedding",
    takes: Takes { weights: true, ..Takes::NOTHING },
    parameters: &[DIMENSIONS, ITERATION_WEIGHTS, NORMALIZATION, SEED],
    run: Run::Rows(COLUMNS, run),
    plan,
};

/// The choices of a request.
struct Settings {
    dimensions: usize,
    weights: Vec<f64>,
    normalization: f64,
    seed: u64,
}

impl Settings {
    fn of(request: &Request) -> Result<Self> {
        request.refuse_max_supersteps()?;
        let dimensions = DIMENSIONS.count(request)?;
        if !(1..=MAX_DIMENSIONS).contains(&dimensions) {
            let problem =
                format!("dimensions must be from 1 to {MAX_DIMENSIONS}, not {dimensions}");
            return Err(Error::Usage(problem));
        }
        let weights = ITERATION_WEIGHTS.numbers(request)?;
        if !(1..=MAX_POWERS).contains(&weights.len()) {
            let problem = format!(
                "iteration_weights must be 1 to {MAX_POWERS} numbers, not {}",
                weights.len()
            );
            return Err(Error::Usage(problem));
        }
        let normalization = NORMALIZATION.number(request)?;
        let seed = SEED.count(request)?;
        Ok(Self { dimensions: dimensions as usize, weights, normalization, seed })
    }

    /// Runs over the edges, one for each [`LANES`] dimensions.
    fn blocks(&self) -> u64 {
        self.dimensions.div_ceil(LANES) as u64
    }

    /// Supersteps of a run: one for each power, and one for the strengths if L needs them.
    fn supersteps(&self) -> u64 {
        self.weights.len() as u64 + u64::from(self.normalization != 0.0)
    }
}

/// The dimensions of one run: of the last power, and of the weighted sum.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
struct Dimensions {
    last: [f32; LANES],
    sum: [f32; LANES],
}

/// The projection to one block of dimensions.
#[derive(Debug, Clone)]
struct Projection {
    /// The seed of this block of dimensions.
    seed: u64,
    weights: Vec<f64>,
    normalization: f64,
    /// The factor of weights, a power of two, so that their sums neither overflow nor vanish.
    scale: f64,
    /// The sum of the entries of A, scaled.
    whole: f64,
}

impl Projection {
    fn new(settings: &Settings, block: u64, scale: f64, whole: f64) -> Self {
        let Settings { weights, normalization, seed, .. } = settings;
        let (weights, normalization) = (weights.clone(), *normalization);
        Self { seed: Random::of(*seed, block).next(), weights, normalization, scale, whole }
    }

    /// The row of R of the vertex with this offset.
    fn random(&self, id_offset: u64) -> [f32; LANES] {
        let mut random = Random::of(self.seed, id_offset);
        std::array::from_fn(|_| match random.below(6) {
            0 => 3_f32.sqrt(),
            1 => -3_f32.sqrt(),
            _ => 0.0,
        })
    }
}

impl Program for Projection {
    type State = Dimensions;
    /// The dimensions of neighbors times the weights of edges, and these weights.
    type Combiner = AddEach<{ LANES + 1 }>;
    type Aggregate = ();
    const MODE: Mode = Mode::Full;
    const NEEDS_EXTERNAL: bool = true;

    fn indexes(&self) -> &'static [Index] {
        BOTH_WAYS
    }

    fn initial(&self, vertex: Vertex, _: &Globals<()>) -> Dimensions {
        Dimensions { last: self.random(vertex.external), sum: [0.0; LANES] }
    }

    fn signal(&self, _: Vertex, dimensions: Dimensions) -> [f64; LANES + 1] {
        let number = |lane| dimensions.last.get(lane).map_or(1.0, |number| f64::from(*number));
        std::array::from_fn(number)
    }

    #[inline]
    fn along(&self, signal: [f64; LANES + 1], weight: f64) -> [f64; LANES + 1] {
        let factor = weight * self.scale;
        signal.map(|number| number * factor)
    }

    fn collect(
        &self,
        _: Vertex,
        dimensions: Dimensions,
        sums: [f64; LANES + 1],
        globals: &Globals<()>,
    ) -> Dimensions {
        let Dimensions { last, sum } = dimensions;
        let weight = sums[LANES];
        let normalizes = self.normalization != 0.0;
        if normalizes && globals.superstep == 0 {
            let factor =
                if weight > 0.0 { (weight / self.whole).powf(self.normalization) } else { 0.0 };
            return Dimensions {
                last: last.map(|number| (f64::from(number) * factor) as f32),
                sum,
            };
        }
        let power = globals.superstep as usize - usize::from(normalizes);
        let last: [f32; LANES] =
            std::array::from_fn(|lane| if weight > 0.0 { sums[lane] / weight } else { 0.0 } as f32);
        let share = self.weights[power];
        let sum = std::array::from_fn(|lane| sum[lane] + (share * f64::from(last[lane])) as f32);
        Dimensions { last, sum }
    }
}

/// A block of the dimensions of a vertex, as bits of float32.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
struct Part {
    /// The offset of the external id.
    id_offset: u64,
    block: u64,
    numbers: [u32; LANES],
}

impl Record for Part {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        self.id_offset
    }
}

/// The minimum bytes besides those of a run over the edges.
fn min_bytes(workers: usize) -> u64 {
    sorter::minimum_bytes(workers, size_of::<Part>()) + RowWriter::MINIMUM_BYTES
}

/// The needs of a run over the edges.
fn needs(settings: &Settings) -> Needs {
    Needs::of(&Projection::new(settings, 0, 1.0, 1.0))
}

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    let settings = Settings::of(planner.request)?;
    let supersteps = settings.blocks() * settings.supersteps();
    let program = Projection::new(&settings, 0, 1.0, 1.0);
    let forecast = planner.program(&program, Steps::exactly(supersteps))?;
    let (vertices, workers) = planner.of_scan(|setting| (setting.extent.vertices, setting.workers));
    let minimum_bytes = forecast.minimum_bytes + min_bytes(workers);
    let parts = vertices * settings.blocks() * size_of::<Part>() as u64;
    let rows = vertices * (8 + 4 * settings.dimensions as u64);
    let limit = planner.limit().max(minimum_bytes);
    let resident = (planner.limit().saturating_sub(minimum_bytes) / 2).min(parts + rows);
    Ok(Forecast {
        minimum_bytes,
        memory_bytes: (forecast.memory_bytes + min_bytes(workers) + resident).min(limit),
        scratch_bytes: forecast.scratch_bytes + (parts + rows).saturating_sub(resident),
        timed: false,
        ..forecast
    })
}

/// The scale of weights, and the sum of the entries of A times this scale, which only L needs.
fn scales(request: &Request, settings: &Settings, graph: &Graph) -> Result<(f64, f64)> {
    let scale = out_weights::scale_of_weights(graph, request.weighted);
    if settings.normalization == 0.0 {
        return Ok((scale, 1.0));
    }
    let mut whole = 0.0;
    match request.weighted {
        true => out_weights::for_each(graph, |start, sums| {
            out_weights::require_finite(graph, start, sums)?;
            whole += sums.iter().map(|sum| sum * scale).sum::<f64>();
            Ok(())
        })?,
        false => whole = graph.description().arcs as f64,
    }
    Ok((scale, if graph.description().directed { 2.0 * whole } else { whole }))
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    let settings = Settings::of(request)?;
    request.options(0).check_weights(graph)?;
    request.refuse_negative_weights(graph, &resources.job)?;
    let (workers, job) = (resources.workers(), &resources.job);
    let extent = Extent::of(graph, BOTH_WAYS, request.weighted);
    let minimum = Setting::new(&extent, resources).min_of_program(&needs(&settings), false);
    let (extra, limit) = (min_bytes(workers), resources.budget.limit());
    let _memory = resources.budget.reserve_all(minimum + extra, PURPOSE)?;
    // Half of the remaining bytes are for runs over the edges, a quarter each for sorting and rows.
    let spare = (limit - minimum - extra) / 4;
    let mut pass = OnePass::begin(graph, resources);
    let run_resources = resources.within(limit - extra - 2 * spare);
    let sorting = sorter::minimum_bytes(workers, size_of::<Part>()) + spare;
    let options = RunOptions {
        max_supersteps: settings.supersteps(),
        weighted: request.weighted,
        ..RunOptions::default()
    };
    let sorter = in_scratch(graph, &|folder| Sorter::<Part>::new(folder, sorting, workers, job))?;
    let (edges, index_seconds) =
        project(request, &settings, graph, &options, &run_resources, &sorter)?;
    pass.end("project");
    let rows = write_rows(&settings, graph, sorter, RowWriter::MINIMUM_BYTES + spare, resources)?;
    let stats = Stats { index_seconds, ..pass.finish("sort", Traversal::Dense, edges) };
    Ok(FinishedRows { table: rows.finish()?, stats, variant: "very sparse" })
}

/// Computes all blocks of dimensions, and passes them to `sorter`; returns the number of edges
/// visited, and the seconds that a missing index took.
fn project(
    request: &Request,
    settings: &Settings,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
    sorter: &Sorter<'_, Part>,
) -> Result<(u64, f64)> {
    let (scale, whole) = scales(request, settings, graph)?;
    let (mut edges, mut index_seconds) = (0, 0.0);
    let mut writer = sorter.writer();
    let (connected, isolated) = (0..graph.connected(), graph.connected()..graph.vertices());
    for block in 0..settings.blocks() {
        let program = Projection::new(settings, block, scale, whole);
        let output = run_program(&program, graph, options, resources)?;
        edges += output.stats.edges_visited;
        index_seconds += output.stats.index_seconds;
        let mut buffer = Vec::new();
        push_block(graph, connected.clone(), block, &mut writer, &mut |start, count| {
            let states = output.states.slice(start..start + count, &mut buffer)?;
            if !states.iter().all(|state| state.sum.iter().all(|number| number.is_finite())) {
                let problem = "an embedding exceeds a 32-bit float; use a normalization nearer \
                               to 0, or smaller iteration_weights";
                return Err(Error::Usage(problem.into()));
            }
            Ok(states.iter().map(|state| state.sum.map(f32::to_bits)).collect())
        })?;
        push_block(graph, isolated.clone(), block, &mut writer, &mut |_, count| {
            Ok(vec![[0; LANES]; count])
        })?;
    }
    writer.finish()?;
    Ok((edges, index_seconds))
}

/// Joins the sorted blocks of each vertex into its row, in `bytes` of memory.
fn write_rows<'g>(
    settings: &Settings,
    graph: &'g Arc<Graph>,
    sorter: Sorter<'_, Part>,
    bytes: u64,
    resources: &'g Resources,
) -> Result<RowWriter<'g>> {
    let job = &resources.job;
    let lists = (INFO.column, settings.dimensions);
    let mut rows = RowWriter::new(graph, COLUMNS, bytes, job).with_lists(lists);
    job.begin("sort embeddings", sorter.len());
    let (mut row, mut numbers) = (Vec::new(), Vec::new());
    sorter.merge(&resources.pool, |parts| {
        job.check()?;
        for part in parts {
            numbers.extend(part.numbers);
            if part.block + 1 == settings.blocks() {
                numbers.truncate(settings.dimensions);
                row.clear();
                row.push(part.id_offset);
                row.extend(numbers.chunks(2).map(|pair| {
                    pair.iter().rev().fold(0, |word, bits| word << u32::BITS | u64::from(*bits))
                }));
                rows.push(&row)?;
                numbers.clear();
            }
        }
        job.advance(parts.len() as u64);
        Ok::<(), Error>(())
    })?;
    Ok(rows)
}

/// Writes a block of the dimensions of `vertices`; `numbers(first, count)` reads them.
fn push_block(
    graph: &Graph,
    vertices: std::ops::Range<u64>,
    block: u64,
    writer: &mut SortWriter<'_, '_, Part>,
    numbers: &mut dyn FnMut(usize, usize) -> Result<Vec<[u32; LANES]>>,
) -> Result<()> {
    let (offsets, mut id_offsets) = (graph.id_offsets()?, Vec::new());
    for start in vertices.clone().step_by(AT_ONCE) {
        id_offsets.resize((vertices.end - start).min(AT_ONCE as u64) as usize, 0);
        graph.external_offsets(offsets, start, &mut id_offsets)?;
        for (id_offset, numbers) in
            id_offsets.iter().zip(numbers(start as usize, id_offsets.len())?)
        {
            writer.push(Part { id_offset: *id_offset, block, numbers })?;
        }
    }
    Ok(())
}
