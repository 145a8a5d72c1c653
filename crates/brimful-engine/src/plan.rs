//! What a run needs, worked out before it begins.
//!
//! Resident always: the signals that sources send, and the buffers of every worker. With room to
//! spare, in this order: more reads in flight, states, next signals, degrees, and then as many
//! packed segments as fit. Invariant: the sum of all parts is within the budget.

use brimful_graph::Graph;
use brimful_graph::shards::ShardFile;
use brimful_store::Budget;

use crate::error::Result;
use crate::options::RunOptions;
use crate::program::{Mode, Program, SignalOf, SumOf};
use crate::residency::{columns, unit_bytes};
use crate::run::asynchronous;
use crate::sparse;

/// Fewest and most reads in flight per worker.
const READS: (u64, u64) = (1, 4);
/// Buffers of sums per worker: its own, and the totals of intervals under way.
pub const SUMS_PER_WORKER: u64 = 3;

/// Where everything lives during a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Reads in flight per worker.
    pub reads: usize,
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
        let window = vertices.min(1 << graph.description().interval_bits);
        let (state, signal) = (size_of::<P::State>() as u64, size_of::<SignalOf<P>>() as u64);
        let units = || {
            let files = shards.iter().flat_map(|s| columns(s, weighted).map(move |file| (s, file)));
            files.flat_map(|(shards, file)| unit_bytes(shards, file))
        };
        let largest = units().max().unwrap_or(0);
        // Beside the reads in flight each worker has a unit of every file at hand.
        let files = shards.iter().flat_map(|s| columns(s, weighted)).count() as u64;
        let at_hand = files + u64::from(weighted);
        let unpacked = shards.iter().map(|s| s.largest_unpacked()).max().unwrap_or(0);
        let degree_window = if P::NEEDS_DEGREES { window * (8 + 8) } else { 0 };
        let degree_window = degree_window + if P::NEEDS_EXTERNAL { window * 8 } else { 0 };
        let per_worker = SUMS_PER_WORKER * window * size_of::<SumOf<P>>() as u64
            + window * (state + signal)
            + degree_window
            + unpacked
            + (READS.0 + at_hand) * largest;
        let asynchronous = if options.asynchronous { asynchronous::memory_bytes(vertices) } else { 0 };
        let minimum = vertices * signal + workers * per_worker + asynchronous;
        budget.require(minimum, "to run this program on this graph")?;

        let mut plan = Self {
            reads: READS.0 as usize,
            states_resident: false,
            next_resident: false,
            degrees_resident: false,
            sparse: false,
            pinned_bytes: 0,
            total_bytes: minimum,
        };
        let mut spare = budget.limit() - minimum;
        let mut afford = |bytes: u64| {
            let fits = bytes <= spare;
            spare -= if fits { bytes } else { 0 };
            fits
        };
        plan.reads += usize::from(afford(workers * largest));
        plan.states_resident = afford(vertices * state);
        plan.next_resident = afford(vertices * signal);
        plan.degrees_resident = P::NEEDS_DEGREES && afford(vertices * if weighted { 8 } else { 4 });
        let sparse = sparse::memory_bytes::<SumOf<P>>(shards, graph.connected(), workers);
        plan.sparse = P::MODE != Mode::Full
            && !options.asynchronous
            && (plan.degrees_resident || !P::NEEDS_DEGREES)
            && afford(sparse + workers * at_hand * largest);
        while plan.reads > READS.0 as usize && (plan.reads as u64) < READS.1 && afford(workers * largest) {
            plan.reads += 1;
        }
        plan.pinned_bytes = spare.min(units().sum());
        plan.total_bytes = budget.limit() - spare + plan.pinned_bytes;
        Ok(plan)
    }
}
