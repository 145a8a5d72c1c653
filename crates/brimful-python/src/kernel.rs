//! `run_kernel`: programs in Python, as kernels on the shards of a graph.
//!
//! A state and a signal are one number of 64 bits each. The shapes below give the engine their
//! types; the kernel does the vertex phase, and the edges too unless [`Along`] describes them
//! fully. Invariant: a vertex that receives nothing keeps its state, as on a store.

use std::path::PathBuf;
use std::sync::Arc;

use brimful::algos::registry::{Finished, Request};
use brimful::engine::checkpoint;
use brimful::engine::vertex::kernel::{ABI_VERSION, Context};
use brimful::engine::{
    Along, Combiner, Error, Isolated, Kernel, KernelProgram, Max, Min, Mode, Or, Output,
    ResultTable, RunOptions, Shape, Values, run,
};
use brimful::graph::Graph as Inner;
use brimful::store::Resources;
use pyo3::prelude::*;

use crate::call::{Limits, with_resources};
use crate::cluster::GivenShare;
use crate::errors::Failure;
use crate::graph::Graph;
use crate::request::{checkpoint_options, where_to_go_on};
use crate::run::{Figures, Result};

/// The most supersteps of a run that names no limit: a program that oscillates ends.
const DEFAULT_MAX_SUPERSTEPS: u64 = 10_000;

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

/// Every vertex signals in every superstep, and sums are collected.
struct Sums<const KNOWN: usize>;

impl<const KNOWN: usize> Shape for Sums<KNOWN> {
    type State = u64;
    type Combiner = Total;
    const MODE: Mode = Mode::Full;
    const NEEDS_DEGREES: bool = true;

    #[inline(always)]
    fn along(along: Along, signal: f64, weight: f64) -> f64 {
        float_along(known::<KNOWN>(along), signal, weight)
    }
}

/// A vertex signals when its state changed; the least or greatest signal, or the union of bits, is
/// collected.
macro_rules! idempotent {
    ($($name:ident: $combiner:ty, $along:expr;)*) => {$(
        struct $name<const KNOWN: usize>;

        impl<const KNOWN: usize> Shape for $name<KNOWN> {
            type State = u64;
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
    /// It calls the methods of the program with arrays; else it is compiled.
    of_arrays: bool,
    /// The address of the kernel, and the version of the interface that it was compiled for.
    address: usize,
    abi_version: u32,
    combiner: String,
    /// Signals and states are floats, else integers.
    float_signals: bool,
    float_states: bool,
    /// The change of a signal along an edge; `None`: the kernel makes it.
    along: Option<String>,
    /// Bits of the numbers that the program uses.
    parameters: Vec<u64>,
    /// The least external id, from which the kernel counts; 0 if the program reads none.
    least_id: i64,
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
#[pyo3(signature = (graph, description, *, mode, max_supersteps, weighted, checkpoint_every, checkpoint_dir, resume, identity, threads, budget, process_budget, reserve_bytes, progress, share))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn run_kernel<'py>(
    py: Python<'py>,
    graph: &Bound<'py, Graph>,
    description: Described,
    mode: &str,
    max_supersteps: Option<u64>,
    weighted: bool,
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
    let options = RunOptions {
        max_supersteps: max_supersteps.unwrap_or(DEFAULT_MAX_SUPERSTEPS),
        asynchronous: mode == "async",
        weighted,
        checkpoints,
        share: share.map(|given| given.share(py)),
        ..RunOptions::default()
    };
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    let (finished, scratch) = with_resources(py, progress, limits, |resources| {
        let finished = of_shape(&description, &inner, &options, resources)?;
        if max_supersteps.is_none() && finished.stats.supersteps >= DEFAULT_MAX_SUPERSTEPS {
            resources.job.say(
                "the program did not end within 10,000 supersteps, the default limit; set \
                 max_supersteps to change it",
            );
        }
        Ok((finished, resources.job.traffic().most_scratch()))
    })
    .map_err(|error| where_to_go_on(py, error, folder.as_deref()))?;
    let request = Request {
        algorithm: description.name,
        asynchronous: options.asynchronous,
        weighted,
        ..Request::default()
    };
    Result::new(
        py,
        finished,
        &Figures { request: &request, precision: "f64", limits, scratch },
        folder,
    )
}

fn of_shape(
    description: &Described,
    graph: &Arc<Inner>,
    options: &RunOptions,
    resources: &Resources,
) -> std::result::Result<Finished, Failure> {
    let along = description.along();
    match (description.combiner.as_str(), description.float_signals) {
        ("sum", true) => match along {
            Some(Along::Unchanged) => {
                run_shape::<Sums<UNCHANGED>>(description, graph, options, resources)
            }
            Some(Along::Times) => run_shape::<Sums<TIMES>>(description, graph, options, resources),
            _ => run_shape::<Sums<ANY>>(description, graph, options, resources),
        },
        ("min", true) => match along {
            Some(Along::Plus) => {
                run_shape::<LeastFloat<PLUS>>(description, graph, options, resources)
            }
            _ => run_shape::<LeastFloat<ANY>>(description, graph, options, resources),
        },
        ("min", false) => run_shape::<LeastInteger<ANY>>(description, graph, options, resources),
        ("max", true) => run_shape::<GreatestFloat<ANY>>(description, graph, options, resources),
        ("max", false) => run_shape::<GreatestInteger<ANY>>(description, graph, options, resources),
        ("or", false) => run_shape::<Union<ANY>>(description, graph, options, resources),
        (other, _) => {
            let what = format!("the combiner {other:?} does not fit the signals of the program");
            Err(Error::Usage(what).into())
        }
    }
}

fn run_shape<S: Shape<State = u64>>(
    description: &Described,
    graph: &Arc<Inner>,
    options: &RunOptions,
    resources: &Resources,
) -> std::result::Result<Finished, Failure> {
    let mut parameters = vec![f64::from_bits(description.least_id.cast_unsigned())];
    parameters.extend(description.parameters.iter().map(|bits| f64::from_bits(*bits)));
    let (kernel, program) = program_of::<S>(description, parameters.clone())?;
    // The first parameter is there for the vertices without edges as well.
    let initial = move |place: u64| initial_state(kernel, &parameters, place);
    let Output { states, isolated, stats, .. } = run(&program, graph, options, resources)?;
    let of_isolated = move |place: u64| match isolated {
        Isolated::Same(state) => state,
        Isolated::Initial => initial(place),
    };
    let values = match description.float_states {
        true => Values::floats(
            states,
            |state| Some(f64::from_bits(state)),
            move |place| Some(f64::from_bits(of_isolated(place))),
        ),
        false => Values::integers(
            states,
            |state: u64| Some(state.cast_signed()),
            move |place| Some(of_isolated(place).cast_signed()),
        ),
    };
    let table = ResultTable::new(Arc::clone(graph), "state", values.without_nulls())?;
    let variant = if description.of_arrays { "arrays" } else { "compiled" };
    Ok(Finished { table, stats, variant })
}

#[expect(unsafe_code, reason = "a kernel is known by its address alone")]
fn program_of<S: Shape>(
    description: &Described,
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
    let program = match description.along() {
        Some(along) => program.with_along(along),
        None => program,
    };
    // The first sum counts the vertices whose signal score exceeds the threshold.
    let program = if S::MODE == Mode::Full { program.until(0, 0.0)? } else { program };
    Ok((kernel, program))
}

/// The first state of a vertex without edges, by the place of its external id. The kernel set the
/// first states of other vertices without an error, and is a pure function.
#[expect(unsafe_code, reason = "a call to a function that is known by its address alone")]
fn initial_state(kernel: Kernel, parameters: &[f64], place: u64) -> u64 {
    let vertex = brimful::engine::Vertex { id: 0, degree: 0, strength: 0.0, external: place };
    let (mut state, mut signal, mut partial, aggregate) =
        (0_u64, 0_u64, [0.0_f64; 4], [0.0_f64; 4]);
    let mut context = Context {
        abi_version: ABI_VERSION,
        size: size_of::<Context>() as u32,
        call: 0,
        state_words: 1,
        count: 1,
        failed: u64::MAX,
        parameters: parameters.as_ptr(),
        parameter_count: parameters.len() as u64,
        silence: 0,
        sources: std::ptr::null(),
        targets: std::ptr::null(),
        weights: std::ptr::null(),
        first_source: 0,
        first_target: 0,
        source_signals: std::ptr::null(),
        sums: std::ptr::null_mut(),
        vertices: &raw const vertex,
        states: &raw mut state,
        signals: &raw mut signal,
        vertex_count: 1,
        superstep: 0,
        round: 0,
        aggregate: aggregate.as_ptr(),
        partial: partial.as_mut_ptr(),
        signal_threshold: 0.0,
        collect_threshold: 0.0,
        score: 0.0,
    };
    // SAFETY: as in `program_of`; every pointer is to an array of the length that the call names.
    unsafe { kernel(&raw mut context) };
    state
}
