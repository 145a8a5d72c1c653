//! Programs behind the C interface, compared with the same programs in Rust: the same bits by every
//! traversal, at one to three threads and two budgets. The kernels are written as an external
//! compiler would generate them.

#![expect(unsafe_code, reason = "kernels get pointers")]

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brimful_algos::pagerank::{PageRank, Variant};
use brimful_algos::sssp::ShortestPaths;
use brimful_engine::result::stats::Traversal;
use brimful_engine::vertex::kernel::{ABI_VERSION, AGGREGATES, Call, Context};
use brimful_engine::vertex::program::BATCH;
use brimful_engine::vertex::slot::{Slot, rule};
use brimful_engine::{
    Add, Combiner, Error, Globals, Kernel, KernelProgram, Min, Mode, Program, RunOptions, Shape,
    Stats, TraversalMode, Vertex, run,
};
use brimful_graph::Graph;
use brimful_graph::generate::Kind;
use brimful_graph::read::shards::Geometry;
use brimful_store::ErrorKind;

use crate::{LARGE, SMALL, outcome, resources, reversed, smallest, threads};

/// Several batches in a segment, and in an interval.
const WIDE: Geometry =
    Geometry { interval_bits: 11, window_edges: 9000, segment_edges: 5000, unit_bytes: 4000 };

/// A lock for tests with graphs: open files are counted per process.
fn turn_with_graphs() -> MutexGuard<'static, ()> {
    static GRAPHS: Mutex<()> = Mutex::new(());
    GRAPHS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `check` with graphs with sinks, isolated vertices and self-loops, and with a long path.
fn for_each_graph(check: impl Fn(&Graph)) {
    let cases = [
        (Kind::Rmat { scale: 9, edge_factor: 14 }, SMALL),
        (Kind::Rmat { scale: 12, edge_factor: 5 }, WIDE),
        (Kind::Chain { vertices: 120 }, SMALL),
    ];
    for (kind, geometry) in cases {
        let folder = tempfile::tempdir().unwrap();
        check(&reversed(folder.path(), kind, geometry, false));
    }
}

/// A program whose states have one word.
fn program<S: Shape>(kernel: Kernel, parameters: &[f64]) -> KernelProgram<S> {
    // SAFETY: the kernels below keep to docs/kernel-abi.md.
    unsafe { KernelProgram::new(kernel, ABI_VERSION, 1, parameters.to_vec()).unwrap() }
}

/// Runs both programs by every traversal that `P` supports.
fn compare<P: Program, S: Shape>(
    rust: &P,
    kernel: &KernelProgram<S>,
    graph: &Graph,
    weighted: bool,
) {
    let mut ways: Vec<(TraversalMode, bool)> = vec![(TraversalMode::Dense, false)];
    ways.extend((P::MODE != Mode::Full).then_some((TraversalMode::Sparse, false)));
    let asynchronous = P::ASYNCHRONOUS && P::MODE != Mode::Delta;
    ways.extend(asynchronous.then_some((TraversalMode::Dense, true)));
    for (traversal, asynchronous) in ways {
        let options = RunOptions {
            weighted,
            traversal,
            asynchronous,
            max_supersteps: 40_000,
            ..Default::default()
        };
        let sparse = |stats: &Stats| stats.durations.count(Traversal::Sparse);
        let (wanted, before) = outcome(rust, graph, &options, 1, LARGE).unwrap();
        assert!(before.supersteps > 1);
        assert_eq!(sparse(&before) > 0, traversal == TraversalMode::Sparse);
        for threads in threads(1..=3) {
            let needed = smallest(|budget| outcome(kernel, graph, &options, threads, budget));
            for budget in [needed, LARGE] {
                let (found, stats) = outcome(kernel, graph, &options, threads, budget).unwrap();
                let way = format!(
                    "{traversal:?}, asynchronous {asynchronous}, {threads} threads, {budget} bytes"
                );
                assert!(found == wanted, "{way}");
                // On a small budget supersteps may take the place of sweeps.
                if !asynchronous || budget == LARGE {
                    let figures = |stats: &Stats| (stats.supersteps, stats.signals);
                    assert_eq!(figures(&stats), figures(&before), "{way}");
                }
                assert!(budget < LARGE || sparse(&stats) == sparse(&before), "{way}");
            }
        }
    }
}

/// Folds each edge of a call: `fold(bits of the sum, bits of the signal, weight)`.
unsafe fn fold_edges(context: &Context, fold: impl Fn(u64, u64, f64) -> u64) {
    for at in 0..context.count as usize {
        // SAFETY: the interface: `count` sources and targets, with valid signals and sums, and
        // perhaps as many weights.
        unsafe {
            let weight = if context.weights.is_null() { 1.0 } else { *context.weights.add(at) };
            let signal = *context.source_signals.add(*context.sources.add(at) as usize);
            let sum = context.sums.add(*context.targets.add(at) as usize);
            *sum = fold(*sum, signal, weight);
        }
    }
}

/// Replaces the state of each vertex of a call: `turn(context, vertex, state, bits of the sum)`
/// gives the new state and the bits of the signal.
unsafe fn turn_vertices<S: Copy>(
    context: &mut Context,
    mut turn: impl FnMut(&mut Context, Vertex, S, u64) -> (S, u64),
) {
    assert_eq!(size_of::<S>(), context.state_words as usize * 8);
    for at in 0..context.count as usize {
        // SAFETY: the interface: `count` vertices, states and signals, and sums when collecting.
        unsafe {
            let state = context.states.cast::<S>().add(at);
            let sum = if context.sums.is_null() { 0 } else { *context.sums.add(at) };
            let (new, signal) = turn(context, *context.vertices.add(at), *state, sum);
            *state = new;
            *context.signals.add(at) = signal;
        }
    }
}

/// Adds to the aggregate.
unsafe fn add(context: &Context, place: usize, number: f64) {
    // SAFETY: the interface: the aggregate has eight values.
    let partial = unsafe { &mut *context.partial.add(place) };
    let sum = f64::from_bits(partial.value) + number;
    *partial = Slot { rule: rule::SUM_FLOAT, value: sum.to_bits() };
}

unsafe fn parameter(context: &Context, place: usize) -> f64 {
    assert!((place as u64) < context.parameter_count);
    // SAFETY: the position was checked above.
    unsafe { *context.parameters.add(place) }
}

/// Normalized PageRank; parameter: damping. Aggregate: mass of vertices with out-edges, L1 change.
unsafe extern "C" fn pagerank(context: *mut Context) -> i32 {
    // SAFETY: the interface.
    unsafe {
        let context = &mut *context;
        if context.call == Call::Edges as u32 {
            fold_edges(context, |sum, signal, weight| {
                (f64::from_bits(sum) + f64::from_bits(signal) * weight).to_bits()
            });
            return 0;
        }
        let (n, damping) = (context.vertex_count as f64, parameter(context, 0));
        let missing = 1.0 - (*context.aggregate).float();
        turn_vertices(context, |context, vertex, old: f64, sum| {
            let (old, new) = match context.call == Call::Initial as u32 {
                true => (1.0 / n, 1.0 / n),
                false => (old, (1.0 - damping) / n + damping * (f64::from_bits(sum) + missing / n)),
            };
            let sink = vertex.strength == 0.0;
            add(context, 0, if sink { 0.0 } else { new });
            add(context, 1, (new - old).abs());
            context.score += (new - old).abs();
            (new, if sink { 0.0_f64 } else { new / vertex.strength }.to_bits())
        });
    }
    0
}

#[derive(Debug)]
struct Ranks;
impl Shape for Ranks {
    type Combiner = Add<f64>;
    const MODE: Mode = Mode::Full;
    const ASYNCHRONOUS: bool = true;
}

/// Shortest paths; parameter: internal id of the source.
unsafe extern "C" fn shortest_paths(context: *mut Context) -> i32 {
    // SAFETY: the interface.
    unsafe {
        let context = &mut *context;
        if context.call == Call::Edges as u32 {
            fold_edges(context, |sum, signal, weight| {
                let length = f64::from_bits(signal) + weight;
                if length < f64::from_bits(sum) { length.to_bits() } else { sum }
            });
            return 0;
        }
        let source = parameter(context, 0) as u64;
        turn_vertices(context, |context, vertex, old: f64, sum| {
            if context.call == Call::Initial as u32 {
                let new = if vertex.id == source { 0.0 } else { f64::INFINITY };
                return (new, new.to_bits());
            }
            let least = f64::from_bits(sum);
            let changed = 1.0 > context.collect_threshold && least < old;
            context.score += f64::from(u8::from(changed));
            let new = if changed { least } else { old };
            (
                new,
                if changed && 1.0 > context.signal_threshold {
                    new.to_bits()
                } else {
                    context.silence
                },
            )
        });
    }
    0
}

#[derive(Debug)]
struct Distances;
impl Shape for Distances {
    type Combiner = Min<f64>;
    const MODE: Mode = Mode::Idempotent;
    const SELF_LOOPS: bool = false;
    const ASYNCHRONOUS: bool = true;
}

/// [`ShortestPaths`] without signals along self-loops: there are fewer signals.
struct LooplessPaths<const ASYNCHRONOUS: bool>(ShortestPaths);
impl<const ASYNCHRONOUS: bool> Program for LooplessPaths<ASYNCHRONOUS> {
    type State = f64;
    type Combiner = Min<f64>;
    type Aggregate = ();
    const MODE: Mode = Mode::Idempotent;
    const SELF_LOOPS: bool = false;
    const ASYNCHRONOUS: bool = ASYNCHRONOUS;

    fn initial(&self, vertex: Vertex, globals: &Globals<()>) -> f64 {
        self.0.initial(vertex, globals)
    }
    fn signal(&self, vertex: Vertex, distance: f64) -> f64 {
        self.0.signal(vertex, distance)
    }
    fn along(&self, distance: f64, weight: f64) -> f64 {
        self.0.along(distance, weight)
    }
    fn collect(&self, vertex: Vertex, distance: f64, least: f64, globals: &Globals<()>) -> f64 {
        self.0.collect(vertex, distance, least, globals)
    }
}

/// [`shortest_paths`] with signals of two words, a mark and a length, which the kernel merges.
unsafe extern "C" fn marked_paths(context: *mut Context) -> i32 {
    /// Combines a signal after an edge of `weight` into a sum.
    unsafe fn meet(sum: *mut [u64; 2], [mark, length]: [u64; 2], weight: f64) {
        // SAFETY: the caller passes a valid sum.
        let sum = unsafe { &mut *sum };
        let length = f64::from_bits(length) + weight;
        if mark == 1 && (sum[0] == 0 || length < f64::from_bits(sum[1])) {
            *sum = [1, length.to_bits()];
        }
    }

    // SAFETY: the interface, with two words for each signal and sum.
    unsafe {
        let context = &mut *context;
        let (sums, sent) =
            (context.sums.cast::<[u64; 2]>(), context.source_signals.cast::<[u64; 2]>());
        let source = parameter(context, 0) as u64;
        for at in 0..context.count as usize {
            if context.call == Call::Merge as u32 {
                MERGED.fetch_add(1, Ordering::Relaxed);
                meet(sums.add(at), *sent.add(at), 0.0);
                continue;
            }
            if context.call == Call::Edges as u32 {
                let weight = if context.weights.is_null() { 1.0 } else { *context.weights.add(at) };
                let signal = *sent.add(*context.sources.add(at) as usize);
                meet(sums.add(*context.targets.add(at) as usize), signal, weight);
                continue;
            }
            let state = &mut *context.states.cast::<f64>().add(at);
            let is_reached = if context.call == Call::Initial as u32 {
                let is_source = (*context.vertices.add(at)).id == source;
                *state = if is_source { 0.0 } else { f64::INFINITY };
                is_source
            } else {
                let [mark, length] = *sums.add(at);
                let is_shorter = mark == 1 && f64::from_bits(length) < *state;
                *state = if is_shorter { f64::from_bits(length) } else { *state };
                is_shorter
            };
            context.score += f64::from(u8::from(is_reached));
            let signal = if is_reached { [1, state.to_bits()] } else { [0; 2] };
            *context.signals.cast::<[u64; 2]>().add(at) = signal;
        }
    }
    0
}

/// Sums that [`marked_paths`] merged.
static MERGED: AtomicU64 = AtomicU64::new(0);

#[derive(Debug)]
struct Marked;
impl Combiner for Marked {
    type Signal = [u64; 2];
    type Sum = [u64; 2];
    const IDEMPOTENT: bool = false;
    const IDENTITY: [u64; 2] = [0; 2];
    const SILENCE: [u64; 2] = [0; 2];

    fn combine(_: [u64; 2], _: [u64; 2]) -> [u64; 2] {
        unreachable!("the kernel combines")
    }
    fn merge(_: [u64; 2], _: [u64; 2]) -> [u64; 2] {
        unreachable!("the kernel merges")
    }
}

#[derive(Debug)]
struct MarkedDistances;
impl Shape for MarkedDistances {
    type Combiner = Marked;
    const MODE: Mode = Mode::Delta;
    const SELF_LOOPS: bool = false;
    const MERGES: bool = true;
}

#[test]
fn kernels_give_the_bits_of_the_same_programs_in_rust() {
    let _turn = turn_with_graphs();
    for_each_graph(|graph| {
        let source = graph.find(7).unwrap();
        let rust = PageRank::<f64>::new(Variant::Normalized, 0.85, 1e-9).unwrap();
        let ranks = program::<Ranks>(pagerank, &[0.85]).with_degrees().until(1, 1e-9).unwrap();
        for weighted in [false, true] {
            compare(&rust, &ranks, graph, weighted);
            let distances = program::<Distances>(shortest_paths, &[source as f64]);
            let loopless = LooplessPaths::<true>(ShortestPaths { sources: source.into() });
            compare(&loopless, &distances, graph, weighted);
            let marked = program::<MarkedDistances>(marked_paths, &[source as f64]);
            let synchronous = LooplessPaths::<false>(loopless.0);
            compare(&synchronous, &marked, graph, weighted);
        }
    });
    assert!(MERGED.load(Ordering::Relaxed) > 0);
}

/// [`shortest_paths`], but it fails with status -3, at the last item, in a call `parameters[1]` for
/// at least `parameters[2]` items.
unsafe extern "C" fn failing(context: *mut Context) -> i32 {
    // SAFETY: the interface.
    unsafe {
        let context = &mut *context;
        if f64::from(context.call) == parameter(context, 1)
            && context.count as f64 >= parameter(context, 2)
        {
            context.failed = context.count - 1;
            return -3;
        }
        shortest_paths(context)
    }
}

#[test]
fn a_status_ends_the_run_with_an_error_that_names_it() {
    let _turn = turn_with_graphs();
    let fail = |graph: &Graph, call: Call, count: usize, traversal, threads| {
        let source = graph.find(0).unwrap();
        let parameters = [source as f64, f64::from(call as u32), count as f64];
        let options = RunOptions { traversal, ..Default::default() };
        let program = program::<Distances>(failing, &parameters);
        let error = run(&program, graph, &options, &resources(threads, 1 << 28)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Program);
        assert!(error.to_string().contains("status -3"), "{error}");
        let Error::Kernel { status: -3, vertex: Some(vertex), received, .. } = error else {
            panic!("{error:?}")
        };
        let has = received.map(|received| (received.state.is_some(), received.sum.is_some()));
        assert_eq!(
            has,
            match call {
                Call::Initial => Some((false, false)),
                Call::Edges | Call::Merge => None,
                Call::Collect => Some((true, true)),
            }
        );
        assert!(vertex < graph.connected());
        (vertex, source)
    };
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let chain = reversed(folder.path(), Kind::Chain { vertices: 300 }, SMALL, false);
    let rmat = reversed(other.path(), Kind::Rmat { scale: 12, edge_factor: 5 }, WIDE, false);
    for (traversal, threads) in [
        (TraversalMode::Dense, 1),
        (TraversalMode::Dense, 3),
        (TraversalMode::Sparse, 1),
        (TraversalMode::Sparse, 3),
    ] {
        for call in [Call::Initial, Call::Edges, Call::Collect] {
            fail(&chain, call, 1, traversal, threads);
        }
        // In a chain only the source signals in the first superstep.
        let (vertex, source) = fail(&chain, Call::Edges, 1, traversal, threads);
        assert_eq!(vertex, source);
        // A failure in the middle of a segment.
        fail(&rmat, Call::Edges, BATCH * 3 / 4 + 1, traversal, threads);
    }
}

#[test]
fn what_cannot_be_is_refused_before_the_run() {
    // SAFETY: the kernel keeps to docs/kernel-abi.md.
    let old = unsafe { KernelProgram::<Ranks>::new(pagerank, ABI_VERSION + 1, 1, vec![0.85]) };
    let error = old.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage);
    assert!(error.to_string().contains(&format!("version {}", ABI_VERSION + 1)), "{error}");
    // SAFETY: the kernel is never called.
    let empty = unsafe { KernelProgram::<Ranks>::new(pagerank, ABI_VERSION, 0, vec![0.85]) };
    assert!(empty.unwrap_err().to_string().contains("at least one word"));
    assert_eq!(
        program::<Ranks>(pagerank, &[]).until(AGGREGATES, 0.0).unwrap_err().kind(),
        ErrorKind::Usage
    );
}
