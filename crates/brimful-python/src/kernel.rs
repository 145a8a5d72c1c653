//! `run_kernel`: programs in Python, as kernels on the shards of a graph or on a store of vertices.
//!
//! A signal is one number of 64 bits, and a state one such number; both may be records of several
//! fields.
//! The kernel computes the vertex phase, and the signals along edges unless [`Along`] describes
//! them. Invariant: a vertex that receives nothing keeps its state, as on a store.

mod isolated;
mod shapes;
mod steps;

use std::sync::Arc;

use brimful::algos::registry::{Finished, Request};
use brimful::engine::checkpoint;
use brimful::engine::result::table::Kind;
use brimful::engine::vertex::kernel::AGGREGATES;
use brimful::engine::vertex::slot::{Slot, rule};
use brimful::engine::{
    Aggregate, Along, Error, Isolated, Kernel, KernelProgram, Mode, Output, Reason, ResultTable,
    Shape, Values,
};
use brimful::execution::from_graph::of_kernel;
use brimful::graph::Graph as Inner;
use brimful::store::Resources;
use brimful::store::scratch::ScratchArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use self::isolated::{WordCounts, check_isolated, initial_state};
use self::shapes::{
    ANY, GreatestFloat, GreatestInteger, LeastFloat, LeastInteger, PLUS, Structured, Sums, TIMES,
    UNCHANGED, Union,
};
use self::steps::{Steps, Words};
use crate::call::GivenResources;
use crate::cluster::GivenCommunicator;
use crate::errors::{Failure, internal};
use crate::graph::Graph;
use crate::plugin::{library_bytes, with_store};
use crate::request::{
    DEFAULT_MAX_SUPERSTEPS, GivenCheckpoints, GivenSteps, Store, say_default_limit,
    with_resume_advice,
};
use crate::run::{Figures, Result, store_figures};

/// A kernel, as Python describes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Description {
    /// The name of the program, for checkpoints and messages.
    name: String,
    /// True if the kernel calls the methods of the program with arrays; false if it is compiled.
    of_arrays: bool,
    /// The address of the kernel, and the version of the interface that it was compiled for.
    address: usize,
    abi_version: u32,
    combiner: String,
    /// True if signals are floats; false if they are integers.
    float_signals: bool,
    /// Words of 64 bits in a state.
    words: usize,
    /// Words of a structured message, which the kernel combines; 0: a signal is a number.
    message_words: usize,
    /// True if every vertex computes in every superstep; for programs with structured messages.
    is_full: bool,
    /// Name, type and first byte of each field of a state.
    fields: Vec<(String, String, usize)>,
    /// The change of a signal along an edge; `None`: the kernel makes it.
    along: Option<String>,
    /// True if the kernel reads the degrees of vertices.
    degrees: bool,
    /// Bits of the numbers that the program uses.
    parameters: Vec<u64>,
    /// Name, rule, bits of the initial value, and place of each aggregator.
    aggregators: Vec<(String, u64, u64, usize)>,
    /// The place of the largest change of a state in a superstep, and the tolerance that ends the
    /// run, if there is one.
    tolerance: Option<(usize, f64)>,
    /// The least external id, from which the kernel counts; 0 if the program reads none.
    least_id: i64,
    /// True if the first states are those after superstep 0, as in Pregel.
    begins_with_superstep: bool,
    /// The object that acts between supersteps, if there is one.
    steps: Option<Py<PyAny>>,
}

impl Description {
    fn along(&self) -> RunResult<Option<Along>> {
        let Some(along) = self.along.as_deref() else { return Ok(None) };
        Ok(Some(match along {
            "plus" => Along::Plus,
            "times" => Along::Times,
            "least" => Along::Least,
            "greatest" => Along::Greatest,
            "unchanged" => Along::Unchanged,
            other => return Err(internal(format!("no rule along edges is called {other}"))),
        }))
    }
}

/// Runs a kernel on a graph.
#[pyfunction]
#[pyo3(signature = (
    graph, description, *, steps, store, checkpoints, identity, resources, communicator
))]
pub(crate) fn run_kernel<'py>(
    py: Python<'py>,
    graph: &Bound<'py, Graph>,
    description: Description,
    steps: GivenSteps,
    store: Store,
    checkpoints: GivenCheckpoints<'py>,
    identity: Vec<(String, String)>,
    resources: GivenResources<'py>,
    communicator: Option<GivenCommunicator>,
) -> PyResult<Result> {
    let inner = Arc::clone(&graph.get().inner);
    let mut checkpoints =
        checkpoints.options(|| checkpoint::default_folder(&inner, &description.name))?;
    if let Some(chosen) = &mut checkpoints {
        chosen.identity = identity;
    }
    let folder = checkpoints.as_ref().map(|chosen| chosen.folder.clone());
    let first = u64::from(description.begins_with_superstep);
    let request = Request {
        algorithm: description.name.clone(),
        asynchronous: steps.mode == "async",
        weighted: steps.weighted,
        max_supersteps: steps.max_supersteps.map(|count| count.saturating_sub(first)),
        store: store.choice()?,
        checkpoints,
        communicator: communicator.map(|communicator| communicator.communicator(py)),
        ..Request::default()
    };
    let GivenResources { limits, progress } = resources;
    let limits = limits.beside(library_bytes(store.opener.as_ref())?);
    let (output, scratch) =
        with_store(py, progress.as_ref(), limits, store.opener.as_ref(), |resources| {
            let output = run_described(&description, &inner, &request, resources)?;
            if steps.max_supersteps.is_none()
                && output.finished.stats.supersteps >= DEFAULT_MAX_SUPERSTEPS
            {
                say_default_limit(&resources.job);
            }
            Ok((output, resources.job.traffic().max_scratch()))
        })
        .map_err(|error| with_resume_advice(py, error, folder.as_deref()))?;
    let store_stats = output.finished.stats.store.clone();
    let figures = Figures { request: &request, precision: "f64", limits, scratch };
    let result = Result::with_fields(py, output.finished, output.more, &figures, folder)?;
    store_figures(result.stats.bind(py), &store, store_stats.as_ref())?;
    let aggregates = match &description.steps {
        Some(steps) => {
            let words: Words = bytemuck::cast(output.aggregate);
            steps.bind(py).call_method1("end", (words,))?.cast_into()?
        }
        None => aggregates(py, &description.aggregators, &output.aggregate)?,
    };
    if !aggregates.is_empty() {
        let out = PyDict::new(py);
        out.set_item("aggregates", aggregates)?;
        result.add_stats(py, &out)?;
    }
    Ok(result)
}

/// The values of aggregators after the last superstep, as `stats` has them; `None` for a sum that
/// 64 bits cannot hold.
fn aggregates<'py>(
    py: Python<'py>,
    aggregators: &[(String, u64, u64, usize)],
    slots: &[Slot],
) -> PyResult<Bound<'py, PyDict>> {
    let values = PyDict::new(py);
    for (name, rule, initial, place) in aggregators {
        let initial = Slot { rule: *rule, value: *initial };
        let slot = initial.merge(slots.get(*place).copied().unwrap_or(Slot::NOTHING));
        match slot.rule & !rule::PERSISTENT {
            rule::SUM_FLOAT | rule::MIN_FLOAT | rule::MAX_FLOAT => {
                values.set_item(name, f64::from_bits(slot.value))?;
            }
            rule::ANY | rule::ALL => values.set_item(name, slot.value == 1)?,
            rule::OVERFLOW => values.set_item(name, py.None())?,
            _ => values.set_item(name, slot.value.cast_signed())?,
        }
    }
    Ok(values)
}

/// The results of a run.
struct KernelOutput {
    /// The first field of the states.
    finished: Finished,
    /// The other fields.
    more: Vec<ResultTable>,
    /// The aggregate of the last superstep.
    aggregate: [Slot; AGGREGATES],
}

type RunResult<T = KernelOutput> = std::result::Result<T, Failure>;

/// Runs a program, with a loop over edges of its own where its change along edges is frequent.
fn run_described(
    description: &Description,
    graph: &Arc<Inner>,
    request: &Request,
    resources: &Resources,
) -> RunResult {
    macro_rules! run {
        ($shape:ty) => {
            run_shape::<$shape>(description, graph, request, resources)
        };
    }
    match (description.message_words, description.is_full) {
        (0, _) => {}
        (2, true) => return run!(Structured<true, 2>),
        (3, true) => return run!(Structured<true, 3>),
        (8, true) => return run!(Structured<true, 8>),
        (2, false) => return run!(Structured<false, 2>),
        (3, false) => return run!(Structured<false, 3>),
        (8, false) => return run!(Structured<false, 8>),
        (words, _) => return Err(internal(format!("a message has {words} words"))),
    }
    let along = description.along()?;
    match (description.combiner.as_str(), description.float_signals, along) {
        ("sum", true, Some(Along::Unchanged)) => run!(Sums<UNCHANGED>),
        ("sum", true, Some(Along::Times)) => run!(Sums<TIMES>),
        ("sum", true, _) => run!(Sums<ANY>),
        ("min", true, Some(Along::Plus)) => run!(LeastFloat<PLUS>),
        ("min", true, _) => run!(LeastFloat<ANY>),
        ("min", false, _) => run!(LeastInteger<ANY>),
        ("max", true, _) => run!(GreatestFloat<ANY>),
        ("max", false, _) => run!(GreatestInteger<ANY>),
        ("or", false, _) => run!(Union<ANY>),
        (combiner, ..) => {
            let problem =
                format!("the combiner {combiner:?} does not fit the signals of the program");
            Err(Error::Usage(problem).into())
        }
    }
}

/// Runs a program of the shape `S`.
fn run_shape<S: Shape>(
    description: &Description,
    graph: &Arc<Inner>,
    request: &Request,
    resources: &Resources,
) -> RunResult {
    let mut parameters = vec![f64::from_bits(description.least_id.cast_unsigned())];
    parameters.extend(description.parameters.iter().map(|bits| f64::from_bits(*bits)));
    let (kernel, program) = program_of::<S>(description, graph, parameters.clone())?;
    let words = WordCounts { state: description.words, signal: description.message_words.max(1) };
    if S::MODE != Mode::Full {
        let checked = check_isolated(kernel, &parameters, words, graph);
        checked.map_err(|error| of_kernel(error.into(), graph))?;
    }
    let first = u64::from(description.begins_with_superstep);
    let Output { states, isolated, mut stats, mut aggregate } = request
        .run(&program, DEFAULT_MAX_SUPERSTEPS - first, graph, resources)
        .map_err(|error| of_kernel(error, graph))?;
    stats.supersteps += first;
    if first == 1 && stats.reason == Reason::Converged {
        // Without a tolerance, no vertex goes on, or the master has ended the run.
        let goes_on = aggregate[0].float() > 0.0;
        stats.reason = if goes_on { Reason::Halted } else { Reason::NoChange };
    }
    // Vertices that changed, and return no signal, have another superstep, in which none collects.
    // For the engine they are silent.
    let is_open = stats.reason == Reason::NoChange && aggregate[0].float() > 0.0;
    let is_left = stats.supersteps < request.max_supersteps.unwrap_or(DEFAULT_MAX_SUPERSTEPS);
    if S::MODE != Mode::Full && first == 0 && !request.asynchronous && is_open && is_left {
        stats.supersteps += 1;
        aggregate = <[Slot; AGGREGATES]>::NOTHING.after(aggregate);
    }
    let (states, parameters) = (Arc::new(states), Arc::new(parameters));
    let of_isolated: OfIsolated = Arc::new(move |place| match &isolated {
        Isolated::Same(state) => state.clone(),
        // The first parameter is there for the vertices without edges as well.
        Isolated::Initial => initial_state(kernel, &parameters, words, place),
    });
    let column = |(name, kind, offset): &(String, String, usize)| {
        let values = field_of((&states, words.state), &of_isolated, kind, *offset)?;
        Ok(ResultTable::new(Arc::clone(graph), name.clone(), values)?)
    };
    let mut tables =
        description.fields.iter().map(column).collect::<RunResult<Vec<_>>>()?.into_iter();
    let Some(table) = tables.next() else {
        return Err(internal("a state has no field"));
    };
    let variant = if description.of_arrays { "arrays" } else { "compiled" };
    Ok(KernelOutput {
        finished: Finished { table, stats, variant },
        more: tables.collect(),
        aggregate,
    })
}

/// The state of a vertex without edges.
type OfIsolated = Arc<dyn Fn(u64) -> Vec<u64> + Send + Sync>;

/// The values of one field of states: the number of a NumPy type at an offset in bytes.
fn field_of(
    (states, words): (&Arc<ScratchArray<u64>>, usize),
    of_isolated: &OfIsolated,
    kind: &str,
    offset: usize,
) -> std::result::Result<Values, Failure> {
    macro_rules! values {
        ($kind:ident, $number:ty, $bits:expr) => {{
            let place = offset..offset + size_of::<$number>();
            if place.end > words * size_of::<u64>() {
                return Err(internal(format!("a field ends at byte {} of a state", place.end)));
            }
            let value = move |state: &[u64]| {
                let bytes = &bytemuck::cast_slice::<u64, u8>(state)[place.clone()];
                $bits(bytemuck::pod_read_unaligned::<$number>(bytes).into())
            };
            let of_isolated = Arc::clone(of_isolated);
            let isolated = move |place| of_isolated(place);
            Values::of_words(Kind::$kind, (Arc::clone(states), words), value, isolated)
        }};
    }
    Ok(match kind {
        "f8" => values!(Float, f64, f64::to_bits),
        "f4" => values!(Float, f32, f64::to_bits),
        "i8" => values!(Integer, i64, i64::cast_unsigned),
        "i4" => values!(Integer, i32, i64::cast_unsigned),
        "i2" => values!(Integer, i16, i64::cast_unsigned),
        "i1" => values!(Integer, i8, i64::cast_unsigned),
        "u4" => values!(Integer, u32, i64::cast_unsigned),
        "u2" => values!(Integer, u16, i64::cast_unsigned),
        "u1" | "b1" => values!(Integer, u8, i64::cast_unsigned),
        _ => return Err(internal(format!("a field has the type {kind:?}"))),
    })
}

/// The kernel at the address that Python passes, and its program.
#[expect(unsafe_code, reason = "a kernel is known by its address alone")]
fn program_of<S: Shape>(
    description: &Description,
    graph: &Arc<Inner>,
    parameters: Vec<f64>,
) -> std::result::Result<(Kernel, KernelProgram<S>), Failure> {
    // SAFETY: the address is that of a function which Numba compiled from the template of
    // `brimful.kernels`, or of a callback of `brimful.kernels.arrays`, with the signature of a
    // kernel; that package keeps it alive as long as the result. Both follow docs/kernel-abi.md
    // and catch all exceptions.
    let (kernel, program) = unsafe {
        let kernel = std::mem::transmute::<usize, Kernel>(description.address);
        (
            kernel,
            KernelProgram::<S>::new(
                kernel,
                description.abi_version,
                description.words,
                parameters,
            )?,
        )
    };
    let program = program.with_graph(Arc::clone(graph));
    let program = match description.along()? {
        Some(along) => program.with_along(along),
        None => program,
    };
    let program = if description.degrees { program.with_degrees() } else { program };
    let program = match description.begins_with_superstep {
        true => program.beginning_with_superstep(),
        false => program,
    };
    let has_master = description.steps.is_some();
    let program = match &description.steps {
        Some(steps) => {
            program.with_master(Arc::new(Steps(Python::attach(|py| steps.clone_ref(py)))))
        }
        None => program,
    };
    // The first sum counts the vertices whose signal score exceeds the threshold.
    let program =
        if S::MODE == Mode::Full || has_master { program.until(0, 0.0)? } else { program };
    let program = match description.tolerance {
        Some((place, tolerance)) => program.until(place, tolerance)?,
        None => program,
    };
    Ok((kernel, program))
}
