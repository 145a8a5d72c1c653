//! What a run needs, worked out before it begins.
//!
//! Resident always: tables of the graph, and the buffers of every worker. Then the signals that sources send, or, where those do not
//! fit, as wide a window of them as does. With room to spare, in this order: more reads in flight, states, next signals, degrees, and then
//! as many packed segments as fit; where everything fits, more reads in flight come last. Invariant: the sum of all parts is within the budget.

use std::sync::Mutex;

use brimful_graph::Graph;
use brimful_graph::shards::ShardFile;
use brimful_store::Budget;

use crate::collect::Partial;
use crate::error::Result;
use crate::frontier::Frontier;
use crate::options::RunOptions;
use crate::program::{Mode, Program, SignalOf, SumOf};
use crate::residency::{columns, unit_bytes};
use crate::run::asynchronous;
use crate::schedule::Schedule;
use crate::sparse;
use crate::sums::KeptSums;
use crate::sweep;

/// Fewest and most reads in flight per worker.
const READS: (u64, u64) = (1, 4);
/// Buffers of sums per worker: its own, and the totals of intervals under way.
pub const SUMS_PER_WORKER: u64 = 3;
/// The same where sums are kept in scratch: a total, and what is merged into it.
const SUMS_PER_WORKER_IF_KEPT: u64 = 2;

/// Where everything lives during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Reads in flight per worker.
    pub reads: usize,
    /// Vertices whose signals are in memory at a time, whole intervals; `None`: all. There is no asynchronous or sparse superstep then.
    pub source_window: Option<usize>,
    /// States stay in memory.
    pub states_resident: bool,
    /// The signals of the next superstep stay in memory while they are made.
    pub next_resident: bool,
    /// Degrees stay in memory.
    pub degrees_resident: bool,
    /// Supersteps may be sparse.
    pub sparse: bool,
    /// Bytes of packed units that stay in memory.
    pub pinned_bytes: u64,
    /// Bytes reserved in all.
    pub total_bytes: u64,
}

impl Plan {
    /// Plans a run of `P` over `shards`.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] naming the smallest budget that works.
    pub fn new<P: Program>(
        graph: &Graph,
        shards: &[&ShardFile],
        options: &RunOptions,
        workers: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let (vertices, workers, weighted) = (graph.connected(), workers as u64, options.weighted);
        let interval = 1 << graph.description().interval_bits;
        let window = vertices.min(interval);
        let units = || {
            let files = shards.iter().flat_map(|s| columns(s, weighted).map(move |file| (s, file)));
            files.flat_map(|(shards, file)| unit_bytes(shards, file))
        };
        let largest = units().max().unwrap_or(0);
        // Beside the reads in flight each worker has a unit of every file at hand.
        let files = shards.iter().flat_map(|s| columns(s, weighted)).count() as u64;
        let at_hand = files + u64::from(weighted);
        let unpacked = shards.iter().map(|s| s.largest_unpacked()).max().unwrap_or(0);
        let with_sums = |count: u64| {
            let sums = count * interval * size_of::<SumOf<P>>() as u64;
            workers * (sums + windows::<P>(window) + unpacked + (READS.0 + at_hand) * largest)
        };
        let tables = tables::<P>(graph, shards);
        let asynchronous = if options.asynchronous { asynchronous::memory_bytes(vertices) } else { 0 };
        let resident = tables + with_sums(SUMS_PER_WORKER) + asynchronous + signals::<P>(vertices);
        let windowed = tables + with_sums(SUMS_PER_WORKER_IF_KEPT) + signals::<P>(window);
        let in_windows = resident > budget.limit() && windowed < resident && !options.asynchronous;
        let (mut plan, mut spare) = Self::smallest(if in_windows { windowed } else { resident }, budget)?;
        if in_windows {
            plan.source_window = Some(widest_window(graph, signals::<P>(window), &mut spare) as usize);
        }
        let sparse = sparse::memory_bytes::<SumOf<P>>(shards, graph.connected(), workers);
        let may_be_sparse = P::MODE != Mode::Full && !options.asynchronous && !in_windows;
        // Where everything fits, it is read once: more reads in flight then come last.
        let packed: u64 = units().sum();
        let vertex_bytes: u64 = vertex_bytes::<P>(vertices, weighted).iter().sum();
        let all_fits = vertex_bytes + packed + if may_be_sparse { sparse } else { 0 } <= spare;
        let mut afford = |bytes: u64| afford(&mut spare, bytes);
        plan.reads += usize::from(!all_fits && afford(workers * largest));
        plan.keep_vertices::<P>(vertices, weighted, &mut afford);
        let out_of_turn = if all_fits { 0 } else { workers * at_hand * largest };
        plan.sparse =
            may_be_sparse && (plan.degrees_resident || !P::NEEDS_DEGREES) && afford(sparse + out_of_turn);
        if all_fits && afford(packed) {
            plan.pinned_bytes = packed;
        }
        let may_read_more = all_fits || plan.reads > READS.0 as usize;
        while may_read_more && (plan.reads as u64) < READS.1 && afford(workers * largest) {
            plan.reads += 1;
        }
        if !all_fits {
            plan.pinned_bytes = spare.min(packed);
            spare -= plan.pinned_bytes;
        }
        plan.total_bytes = budget.limit() - spare;
        Ok(plan)
    }

    /// Plans a run of `P` over records in blocks of at most `block_bytes`.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] naming the smallest budget that works.
    pub(crate) fn of_records<P: Program>(
        graph: &Graph,
        block_bytes: u64,
        weighted: bool,
        workers: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let minimum = Self::records_bytes::<P>(graph, block_bytes, workers as u64);
        let (mut plan, mut spare) = Self::smallest(minimum, budget)?;
        plan.keep_vertices::<P>(graph.connected(), weighted, |bytes| afford(&mut spare, bytes));
        plan.total_bytes = budget.limit() - spare;
        Ok(plan)
    }

    /// The smallest budget of a run over records in blocks of at most `block_bytes`.
    pub(crate) fn records_bytes<P: Program>(graph: &Graph, block_bytes: u64, workers: u64) -> u64 {
        let vertices = graph.connected();
        let window = vertices.min(1 << graph.description().interval_bits);
        // The sums of an interval and of a block, the states of a block and where they are.
        let of_block = window * (2 * size_of::<SumOf<P>>() + size_of::<P::State>() + 8) as u64;
        signals::<P>(vertices) + workers * (windows::<P>(window) + of_block + block_bytes)
    }

    /// Nothing but what there must be, and the bytes to spare.
    fn smallest(minimum: u64, budget: &Budget) -> Result<(Self, u64)> {
        budget.require(minimum, "to run this program on this graph")?;
        let plan = Self {
            reads: READS.0 as usize,
            source_window: None,
            states_resident: false,
            next_resident: false,
            degrees_resident: false,
            sparse: false,
            pinned_bytes: 0,
            total_bytes: minimum,
        };
        Ok((plan, budget.limit() - minimum))
    }

    /// Keeps in memory what there is of each vertex, as far as that can be afforded.
    fn keep_vertices<P: Program>(
        &mut self,
        vertices: u64,
        weighted: bool,
        mut afford: impl FnMut(u64) -> bool,
    ) {
        let [states, next, degrees] = vertex_bytes::<P>(vertices, weighted);
        self.states_resident = afford(states);
        self.next_resident = afford(next);
        self.degrees_resident = P::NEEDS_DEGREES && afford(degrees);
    }
}

/// Vertices of the widest window of sources, whole intervals; signals of one are paid, those of more taken from what is spare.
/// Of windows that are as many, the narrowest.
fn widest_window(graph: &Graph, of_interval: u64, spare: &mut u64) -> u64 {
    let affordable = 1 + *spare / of_interval.max(1);
    let windows = graph.intervals().div_ceil(affordable).max(1);
    let intervals = graph.intervals().div_ceil(windows).max(1);
    *spare -= (intervals - 1) * of_interval;
    intervals << graph.description().interval_bits
}

/// Bytes of what is known of every segment, every interval and every block of the activity maps.
fn tables<P: Program>(graph: &Graph, shards: &[&ShardFile]) -> u64 {
    let segments: u64 = shards.iter().map(|shards| shards.segments().len() as u64).sum();
    // Of a segment at most one item begins, and of an interval one that has no segment.
    let items = segments + graph.intervals();
    let of_interval = size_of::<Mutex<Partial<P::Aggregate>>>() as u64 + sweep::INTERVAL_BYTES;
    Schedule::memory_bytes(segments, items, graph.intervals())
        + graph.intervals() * of_interval
        + KeptSums::memory_bytes(graph.intervals(), items)
        + Frontier::memory_bytes(graph.connected())
}

/// Takes `bytes` from what is spare, if there are as many.
fn afford(spare: &mut u64, bytes: u64) -> bool {
    let fits = bytes <= *spare;
    *spare -= if fits { bytes } else { 0 };
    fits
}

/// Bytes of all states, of the signals being made, and of degrees.
fn vertex_bytes<P: Program>(vertices: u64, weighted: bool) -> [u64; 3] {
    let degree = match (P::NEEDS_DEGREES, weighted) {
        (false, _) => 0,
        (true, false) => 4,
        (true, true) => 8,
    };
    [vertices * size_of::<P::State>() as u64, signals::<P>(vertices), vertices * degree]
}

/// Bytes of the signals of all vertices.
fn signals<P: Program>(vertices: u64) -> u64 {
    vertices * size_of::<SignalOf<P>>() as u64
}

/// Bytes of a window of everything that is on disk for each vertex.
fn windows<P: Program>(window: u64) -> u64 {
    let degrees = if P::NEEDS_DEGREES { 8 + 8 } else { 0 };
    let external = if P::NEEDS_EXTERNAL { 8 } else { 0 };
    window * ((size_of::<P::State>() + size_of::<SignalOf<P>>()) as u64 + degrees + external)
}
