//! `run_kernel`: programs in Python, as kernels on the shards of a graph or on a store of vertices.
//!
//! A signal is one number of 64 bits, and a state one such number or a record of several fields.
//! The shapes below give the engine their types; the kernel does the vertex phase, and the edges
//! too unless [`Along`] describes them fully. Invariant: a vertex that receives nothing keeps its
//! state, as on a store.

use std::path::PathBuf;
use std::sync::Arc;

use brimful::algos::registry::{Finished, Request};
use brimful::engine::checkpoint;
use brimful::engine::vertex::attributes::VertexAttributes;
use brimful::engine::vertex::kernel::{ABI_VERSION, AGGREGATES, Context, NO_SIGNAL};
use brimful::engine::vertex::program::BATCH;
use brimful::engine::vertex::slot::{Slot, rule};
use brimful::engine::{
    Aggregate, Along, Combiner, Error, Isolated, Kernel, KernelProgram, Master, Max, Min, Mode, Or,
    Output, Reason, Received, ResultTable, Shape, Values, Vertex,
};
use brimful::execution::from_graph::of_kernel;
use brimful::graph::Graph as Inner;
use brimful::store::Resources;
use brimful::store::scratch::ScratchArray;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::Limits;
use crate::cluster::GivenShare;
use crate::errors::Failure;
use crate::graph::Graph;
use crate::plugin::with_store;
use crate::request::{DEFAULT_MAX_SUPERSTEPS, Store, checkpoint_options, with_resume_advice};
use crate::run::{Figures, Result, store_figures};

/// The sum of floats. The sum of no signals is -0.0, which no sum of other signals is.
struct Total;

impl Combiner for Total {
    type Signal = f64;
    type Sum = f64;
    const IDEMPOTENT: bool = false;
    const IDENTITY: f64 = -0.0;
    const SILENCE: f64 = -0.0;

    #[inline]
    fn combine(sum: f64, signal: f64) -> f64 {
        sum + signal
    }

    #[inline]
    fn merge(earlier: f64, later: f64) -> f64 {
        earlier + later
    }
}

/// `signal` after an edge of `weight`.
#[inline(always)]
fn float_along(along: Along, signal: f64, weight: f64) -> f64 {
    match along {
        Along::Unchanged => signal,
        Along::Plus => signal + weight,
        Along::Times => signal * weight,
        // As in Python: of equal numbers, the first.
        Along::Least => {
            if weight < signal {
                weight
            } else {
                signal
            }
        }
        Along::Greatest => {
            if weight > signal {
                weight
            } else {
                signal
            }
        }
    }
}

/// The weight of an edge is a float; signals of integers pass edges unchanged.
#[inline(always)]
fn unchanged<T>(_: Along, signal: T, _: f64) -> T {
    signal
}

/// Changes along edges that are known at compile time, which makes the loop over edges faster;
/// [`ANY`]: every change.
const ANY: usize = 0;
const UNCHANGED: usize = 1;
const PLUS: usize = 2;
const TIMES: usize = 3;

/// The change along edges, if the shape `KNOWN` fixes it.
#[inline(always)]
fn known<const KNOWN: usize>(along: Along) -> Along {
    match KNOWN {
        UNCHANGED => Along::Unchanged,
        PLUS => Along::Plus,
        TIMES => Along::Times,
        _ => along,
    }
}

/// A state of `WORDS` 64-bit words.
type State<const WORDS: usize> = [u64; WORDS];

/// Every vertex signals in every superstep, and sums are collected.
struct Sums<const KNOWN: usize, const WORDS: usize>;

impl<const KNOWN: usize, const WORDS: usize> Shape for Sums<KNOWN, WORDS> {
    type State = State<WORDS>;
    type Combiner = Total;
    const MODE: Mode = Mode::Full;
    const NEEDS_DEGREES: bool = true;

    #[inline(always)]
    fn along(along: Along, signal: f64, weight: f64) -> f64 {
        let along = known::<KNOWN>(along);
        // No signal of a vertex stays so along every edge.
        let is_silent = !matches!(along, Along::Unchanged)
            && signal.to_bits() == <Total as Combiner>::SILENCE.to_bits();
        if is_silent { signal } else { float_along(along, signal, weight) }
    }
}

/// A vertex signals when its state changed; the least or greatest signal, or the union of bits, is
/// collected.
macro_rules! idempotent {
    ($($name:ident: $combiner:ty, $along:expr;)*) => {$(
        struct $name<const KNOWN: usize, const WORDS: usize>;

        impl<const KNOWN: usize, const WORDS: usize> Shape for $name<KNOWN, WORDS> {
            type State = State<WORDS>;
            type Combiner = $combiner;
            const MODE: Mode = Mode::Idempotent;
            const NEEDS_EXTERNAL: bool = true;
            const ASYNCHRONOUS: bool = true;
            const KEEPS_SILENCE: bool = true;

            #[inline(always)]
            fn along(
                along: Along,
                signal: <$combiner as Combiner>::Signal,
                weight: f64,
            ) -> <$combiner as Combiner>::Signal {
                let along = known::<KNOWN>(along);
                // An infinite signal stays so in a sum with a weight, which is finite.
                let is_silent = !matches!(along, Along::Unchanged | Along::Plus)
                    && signal == <$combiner as Combiner>::SILENCE;
                if is_silent { signal } else { $along(along, signal, weight) }
            }
        }
    )*};
}

idempotent! {
    LeastFloat: Min<f64>, float_along;
    GreatestFloat: Max<f64>, float_along;
    LeastInteger: Min<i64>, unchanged;
    GreatestInteger: Max<i64>, unchanged;
    Union: Or, unchanged;
}

/// A kernel, as Python describes it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Described {
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
    /// Words of 64 bits in a state: 1, 2, 4 or 8.
    words: usize,
    /// Name, type and first byte of each field of a state.
    fields: Vec<(String, String, usize)>,
    /// The change of a signal along an edge; `None`: the kernel makes it.
    along: Option<String>,
    /// Bits of the numbers that the program uses.
    parameters: Vec<u64>,
    /// Name, rule, bits of the initial value, and place of each aggregator.
    aggregators: Vec<(String, u64, u64, usize)>,
    /// The least external id, from which the kernel counts; 0 if the program reads none.
    least_id: i64,
    /// True if the first states are those after superstep 0, as in Pregel.
    begins_with_superstep: bool,
    /// The object that acts between supersteps, if there is one.
    steps: Option<Py<PyAny>>,
}

/// An object of the class `brimful.kernels.steps.KernelSteps`, which acts between supersteps. It
/// takes and returns the words of the aggregate.
#[derive(Debug)]
struct Steps(Py<PyAny>);

impl Steps {
    /// Calls a method of the object. Its exceptions reach the caller of the run as they are.
    fn call<T>(
        &self,
        work: impl for<'py> FnOnce(&Bound<'py, PyAny>) -> PyResult<T>,
    ) -> std::result::Result<T, Error> {
        Python::attach(|py| work(self.0.bind(py))).map_err(|error| Error::Exchange(Box::new(error)))
    }
}

/// The words of an aggregate.
type Words = [u64; 2 * AGGREGATES];

impl Master for Steps {
    fn begin(&self, aggregate: &mut [Slot; AGGREGATES]) -> std::result::Result<(), Error> {
        let words: Words = self.call(|steps| steps.call_method0("begin")?.extract())?;
        *aggregate = bytemuck::cast(words);
        Ok(())
    }

    fn next_superstep(
        &self,
        done: u64,
        aggregate: &mut [Slot; AGGREGATES],
    ) -> std::result::Result<bool, Error> {
        let words: Words = bytemuck::cast(*aggregate);
        // The call *initial* was superstep 0.
        let words: Option<Words> =
            self.call(|steps| steps.call_method1("next_superstep", (done + 1, words))?.extract())?;
        if let Some(words) = words {
            *aggregate = bytemuck::cast(words);
        }
        Ok(words.is_some())
    }

    fn save(&self) -> std::result::Result<String, Error> {
        self.call(|steps| steps.call_method0("save")?.extract())
    }

    fn restore(&self, saved: &str) -> std::result::Result<(), Error> {
        self.call(|steps| steps.call_method1("restore", (saved,)).map(drop))
    }
}

impl Described {
    fn along(&self) -> Option<Along> {
        Some(match self.along.as_deref()? {
            "plus" => Along::Plus,
            "times" => Along::Times,
            "least" => Along::Least,
            "greatest" => Along::Greatest,
            _ => Along::Unchanged,
        })
    }
}

/// Runs a kernel on a graph.
#[pyfunction]
#[pyo3(signature = (
    graph, description, *, mode, max_supersteps, weighted, store, checkpoint_every, checkpoint_dir,
    resume, identity, threads, budget, process_budget, reserve_bytes, progress, share
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn run_kernel<'py>(
    py: Python<'py>,
    graph: &Bound<'py, Graph>,
    description: Described,
    mode: &str,
    max_supersteps: Option<u64>,
    weighted: bool,
    store: Store,
    checkpoint_every: Option<&str>,
    checkpoint_dir: Option<PathBuf>,
    resume: bool,
    identity: Vec<(String, String)>,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    reserve_bytes: u64,
    progress: Option<&Bound<'py, PyAny>>,
    share: Option<GivenShare>,
) -> PyResult<Result> {
    let inner = Arc::clone(&graph.get().inner);
    let mut checkpoints = checkpoint_options(checkpoint_every, checkpoint_dir, resume, || {
        checkpoint::default_folder(&inner, &description.name)
    })?;
    if let Some(chosen) = &mut checkpoints {
        chosen.identity = identity;
    }
    let folder = checkpoints.as_ref().map(|chosen| chosen.folder.clone());
    let first = u64::from(description.begins_with_superstep);
    let request = Request {
        algorithm: description.name.clone(),
        asynchronous: mode == "async",
        weighted,
        max_supersteps: max_supersteps.map(|count| count.saturating_sub(first)),
        store: store.choice()?,
        checkpoints,
        share: share.map(|given| given.share(py)),
        ..Request::default()
    };
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    let (ended, scratch) = with_store(py, progress, limits, store.opener.as_ref(), |resources| {
        let ran = of_words(&description, &inner, &request, resources)?;
        if max_supersteps.is_none() && ran.finished.stats.supersteps >= DEFAULT_MAX_SUPERSTEPS {
            resources.job.say(
                "the program did not end within 10,000 supersteps, the default limit; set \
                 max_supersteps to change it",
            );
        }
        Ok((ran, resources.job.traffic().max_scratch()))
    })
    .map_err(|error| with_resume_advice(py, error, folder.as_deref()))?;
    let of_store = ended.finished.stats.store.clone();
    let figures = Figures { request: &request, precision: "f64", limits, scratch };
    let result = Result::with_fields(py, ended.finished, ended.more, &figures, folder)?;
    store_figures(result.stats.bind(py), &store, of_store.as_ref())?;
    let aggregates = match &description.steps {
        Some(steps) => {
            let words: Words = bytemuck::cast(ended.aggregate);
            steps.bind(py).call_method1("end", (words,))?.cast_into()?
        }
        None => aggregates(py, &description.aggregators, &ended.aggregate)?,
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
            rule::SUM_FLOAT | rule::MIN_FLOAT | rule::GREATEST_FLOAT => {
                values.set_item(name, f64::from_bits(slot.value))?;
            }
            rule::ANY | rule::ALL => values.set_item(name, slot.value == 1)?,
            rule::OVERFLOW => values.set_item(name, py.None())?,
            _ => values.set_item(name, slot.value.cast_signed())?,
        }
    }
    Ok(values)
}

struct Ended {
    /// The first field of the states.
    finished: Finished,
    /// The other fields.
    more: Vec<ResultTable>,
    /// The aggregate of the last superstep.
    aggregate: [Slot; AGGREGATES],
}

type Ran<T = Ended> = std::result::Result<T, Failure>;

/// A fault of `brimful.kernels`, which describes programs.
fn fault(what: String) -> Failure {
    brimful::execution::Error::Internal(what).into()
}

fn of_words(
    description: &Described,
    graph: &Arc<Inner>,
    request: &Request,
    resources: &Resources,
) -> Ran {
    match description.words {
        1 => of_shape(description, graph, request, resources),
        2 => of_record::<2>(description, graph, request, resources),
        4 => of_record::<4>(description, graph, request, resources),
        8 => of_record::<8>(description, graph, request, resources),
        words => Err(fault(format!("a state has {words} words"))),
    }
}

/// Runs a program whose states have one word, with the loops over edges that are frequent.
fn of_shape(
    description: &Described,
    graph: &Arc<Inner>,
    request: &Request,
    resources: &Resources,
) -> Ran {
    let along = description.along();
    match (description.combiner.as_str(), description.float_signals, along) {
        ("sum", true, Some(Along::Unchanged)) => {
            run_shape::<Sums<UNCHANGED, 1>, 1>(description, graph, request, resources)
        }
        ("sum", true, Some(Along::Times)) => {
            run_shape::<Sums<TIMES, 1>, 1>(description, graph, request, resources)
        }
        ("min", true, Some(Along::Plus)) => {
            run_shape::<LeastFloat<PLUS, 1>, 1>(description, graph, request, resources)
        }
        _ => of_record::<1>(description, graph, request, resources),
    }
}

/// Runs a program whose states have some words, with any change of signals along edges.
fn of_record<const WORDS: usize>(
    description: &Described,
    graph: &Arc<Inner>,
    request: &Request,
    resources: &Resources,
) -> Ran {
    match (description.combiner.as_str(), description.float_signals) {
        ("sum", true) => {
            run_shape::<Sums<ANY, WORDS>, WORDS>(description, graph, request, resources)
        }
        ("min", true) => {
            run_shape::<LeastFloat<ANY, WORDS>, WORDS>(description, graph, request, resources)
        }
        ("min", false) => {
            run_shape::<LeastInteger<ANY, WORDS>, WORDS>(description, graph, request, resources)
        }
        ("max", true) => {
            run_shape::<GreatestFloat<ANY, WORDS>, WORDS>(description, graph, request, resources)
        }
        ("max", false) => {
            run_shape::<GreatestInteger<ANY, WORDS>, WORDS>(description, graph, request, resources)
        }
        ("or", false) => {
            run_shape::<Union<ANY, WORDS>, WORDS>(description, graph, request, resources)
        }
        (other, _) => {
            let what = format!("the combiner {other:?} does not fit the signals of the program");
            Err(Error::Usage(what).into())
        }
    }
}

fn run_shape<S: Shape<State = State<WORDS>>, const WORDS: usize>(
    description: &Described,
    graph: &Arc<Inner>,
    request: &Request,
    resources: &Resources,
) -> Ran {
    let mut parameters = vec![f64::from_bits(description.least_id.cast_unsigned())];
    parameters.extend(description.parameters.iter().map(|bits| f64::from_bits(*bits)));
    let (kernel, program) = program_of::<S>(description, graph, parameters.clone())?;
    if S::MODE != Mode::Full {
        let checked = check_isolated::<WORDS>(kernel, &parameters, graph);
        checked.map_err(|error| of_kernel(error.into(), graph))?;
    }
    let first = u64::from(description.begins_with_superstep);
    let Output { states, isolated, mut stats, mut aggregate } = request
        .run(&program, DEFAULT_MAX_SUPERSTEPS - first, graph, resources)
        .map_err(|error| of_kernel(error, graph))?;
    stats.supersteps += first;
    if first == 1 && stats.reason == Reason::Converged && aggregate[0].float() <= 0.0 {
        // The count of vertices that go on is 0, and no tolerance has ended the run.
        stats.reason = Reason::NoChange;
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
    let of_isolated = move |place: u64| match isolated {
        Isolated::Same(state) => state,
        // The first parameter is there for the vertices without edges as well.
        Isolated::Initial => initial_state(kernel, &parameters, place),
    };
    let column = |(name, kind, offset): &(String, String, usize)| {
        let values = field_of(&states, of_isolated.clone(), kind, *offset)?;
        Ok(ResultTable::new(Arc::clone(graph), name.clone(), values.without_nulls())?)
    };
    let mut tables = description.fields.iter().map(column).collect::<Ran<Vec<_>>>()?.into_iter();
    let Some(table) = tables.next() else {
        return Err(fault("a state has no field".into()));
    };
    let variant = if description.of_arrays { "arrays" } else { "compiled" };
    Ok(Ended { finished: Finished { table, stats, variant }, more: tables.collect(), aggregate })
}

/// The values of one field of states: the number of a NumPy type at an offset in bytes.
fn field_of<const WORDS: usize>(
    states: &Arc<ScratchArray<State<WORDS>>>,
    of_isolated: impl Fn(u64) -> State<WORDS> + Send + Sync + 'static,
    kind: &str,
    offset: usize,
) -> std::result::Result<Values, Failure> {
    macro_rules! values {
        ($make:ident, $number:ty, $shown:ty) => {{
            let field = move |state: State<WORDS>| {
                let bytes =
                    bytemuck::bytes_of(&state).get(offset..offset + size_of::<$number>())?;
                let number = bytemuck::pod_read_unaligned::<$number>(bytes);
                Some(<$shown>::from(number))
            };
            Values::$make(Arc::clone(states), field, move |place| field(of_isolated(place)))
        }};
    }
    Ok(match kind {
        "f8" => values!(floats, f64, f64),
        "f4" => values!(floats, f32, f64),
        "i8" => values!(integers, i64, i64),
        "i4" => values!(integers, i32, i64),
        "i2" => values!(integers, i16, i64),
        "i1" => values!(integers, i8, i64),
        "u4" => values!(integers, u32, i64),
        "u2" => values!(integers, u16, i64),
        "u1" | "b1" => values!(integers, u8, i64),
        _ => return Err(fault(format!("a field has the type {kind:?}"))),
    })
}

#[expect(unsafe_code, reason = "a kernel is known by its address alone")]
fn program_of<S: Shape>(
    description: &Described,
    graph: &Arc<Inner>,
    parameters: Vec<f64>,
) -> std::result::Result<(Kernel, KernelProgram<S>), Failure> {
    // SAFETY: the address is that of a function which Numba compiled from the template of
    // `brimful.kernels`, or of a callback of `brimful.kernels.arrays`, with the signature of a
    // kernel; that package keeps it alive as long as the result. Both follow docs/kernel-abi.md
    // and catch all exceptions.
    let (kernel, program) = unsafe {
        let kernel = std::mem::transmute::<usize, Kernel>(description.address);
        (kernel, KernelProgram::<S>::new(kernel, description.abi_version, parameters)?)
    };
    let program = program.with_graph(Arc::clone(graph));
    let program = match description.along() {
        Some(along) => program.with_along(along),
        None => program,
    };
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
    Ok((kernel, program))
}

/// Checks that vertices without edges have first states: the run never asks for them.
fn check_isolated<const WORDS: usize>(
    kernel: Kernel,
    parameters: &[f64],
    graph: &Inner,
) -> std::result::Result<(), Error> {
    let offsets = graph.id_offsets()?;
    let (mut attributes, mut states) = (VertexAttributes::default(), vec![[0; WORDS]; BATCH]);
    for first in (graph.connected()..graph.vertices()).step_by(BATCH) {
        let range = first as usize..graph.vertices().min(first + BATCH as u64) as usize;
        attributes.read_external(graph, Some(offsets), &range)?;
        let vertices: Vec<Vertex> =
            (0..range.len()).map(|at| attributes.vertex(range.start, at)).collect();
        if let Err((status, failed)) = set_first_states(kernel, parameters, &vertices, &mut states)
        {
            let received = Received {
                degree: 0,
                superstep: 0,
                state: None,
                sum: None,
                aggregate: vec![0; 2 * AGGREGATES],
            };
            let vertex = (failed < BATCH as u64).then_some(first + failed);
            let received = Some(Box::new(received));
            return Err(Error::Kernel { status, call: "first states", vertex, received });
        }
    }
    Ok(())
}

/// The first state of a vertex without edges, by the place of its external id. [`check_isolated`]
/// has made the same call without an error, and a kernel is a pure function.
fn initial_state<const WORDS: usize>(
    kernel: Kernel,
    parameters: &[f64],
    place: u64,
) -> State<WORDS> {
    let vertex = Vertex { id: 0, degree: 0, strength: 0.0, external: place };
    let mut states = [[0; WORDS]];
    let done = set_first_states(kernel, parameters, &[vertex], &mut states);
    debug_assert!(done.is_ok(), "the same call succeeded before");
    states[0]
}

/// Sets the first states of vertices without edges. The error is the status of the kernel, and the
/// position of the vertex that failed.
#[expect(unsafe_code, reason = "a call to a function that is known by its address alone")]
fn set_first_states<const WORDS: usize>(
    kernel: Kernel,
    parameters: &[f64],
    vertices: &[Vertex],
    states: &mut [State<WORDS>],
) -> std::result::Result<(), (i32, u64)> {
    let (mut from, mut is_silent) = (0, false);
    loop {
        let (those, states) = (&vertices[from..], &mut states[from..vertices.len()]);
        let mut signals = vec![0_u64; those.len()];
        let (mut partial, aggregate) = ([Slot::NOTHING; AGGREGATES], [Slot::NOTHING; AGGREGATES]);
        let mut context = Context {
            abi_version: ABI_VERSION,
            size: size_of::<Context>() as u32,
            call: 0,
            state_words: WORDS as u32,
            count: those.len() as u64,
            // A signal that cannot be computed has no edge to pass.
            failed: if is_silent { 0 } else { u64::MAX },
            parameters: parameters.as_ptr(),
            parameter_count: parameters.len() as u64,
            vertices: those.as_ptr(),
            states: states.as_mut_ptr().cast(),
            signals: signals.as_mut_ptr(),
            vertex_count: vertices.len() as u64,
            aggregate: aggregate.as_ptr(),
            partial: partial.as_mut_ptr(),
            ..bytemuck::Zeroable::zeroed()
        };
        // SAFETY: as in `program_of`; every pointer is null or to an array of the length that the
        // call names.
        let status = unsafe { kernel(&raw mut context) };
        let failed = usize::try_from(context.failed).unwrap_or(usize::MAX).saturating_add(from);
        match status {
            0 => return Ok(()),
            NO_SIGNAL if failed < vertices.len() && !(is_silent && failed == from) => {
                (from, is_silent) = (failed, true);
            }
            _ => return Err((status, failed as u64)),
        }
    }
}
