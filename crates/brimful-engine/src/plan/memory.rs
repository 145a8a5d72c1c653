//! The plan of a run: the division of the budget, made before the run begins.
//!
//! The plan always includes the tables of the graph and the buffers of every worker. Next are the
//! signals of all sources or, if they do not fit, of the widest window of sources that fits. If all
//! packed edges take no more memory than the buffers for reading them, they are in memory. Spare
//! memory serves, in this order, sparse supersteps, memory that processes share for their exchange,
//! a second read in flight, states, next signals, degrees, more reads in flight, and then as many
//! packed units as fit. If the program needs degrees, sparse supersteps come after them. If
//! everything fits, all further reads in flight come last. Programs and graphs are described by
//! plain numbers, so that a run and its forecast have the same plan. Invariant: the sum of all
//! parts is within the budget.

use brimful_store::Budget;

use crate::error::Result;
use crate::plan::extent::Extent;
use crate::plan::needs::Needs;
use crate::traverse::adjacency::Adjacency;
use crate::traverse::by_source::EdgesBySource;
use crate::traverse::frontier::ACTIVITY_BITS;
use crate::traverse::frontier::Frontier;
use crate::traverse::priority_queue;
use crate::traverse::schedule::Schedule;
use crate::traverse::sparse::{self, Limits, Touched};
use crate::traverse::sums::SpilledSums;
use crate::traverse::sweep;

/// The purpose of the budget, in error messages.
pub(crate) const PURPOSE: &str = "to run this program on this graph";

/// Minimum number of reads in flight per worker.
const MIN_READS: u64 = 1;
/// Maximum number of reads in flight per worker.
const MAX_READS: u64 = 4;
/// Source windows rule out sparse supersteps, so they must save at least one byte in this many.
const LEAST_SAVED_BY_WINDOWS: u64 = 2;
/// Buffers of sums per worker: the sums that it makes, and the totals of unfinished intervals.
pub const SUMS_PER_WORKER: u64 = 3;
/// Buffers of sums per worker if sums are spilled: a total, and the sums to merge into it.
const SUMS_PER_WORKER_IF_SPILLED: u64 = 2;

/// The division of the budget, and the location of all arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// True if the run takes asynchronous sweeps.
    pub asynchronous: bool,
    /// Reads in flight per worker.
    pub reads: usize,
    /// Width of the source window in vertices, a multiple of the interval; `None`: the signals of
    /// all vertices are in memory. With a window there are no asynchronous or sparse supersteps.
    pub source_window: Option<usize>,
    /// True if states stay in memory.
    pub states_resident: bool,
    /// True if the signals of the next superstep stay in memory while they are computed.
    pub next_resident: bool,
    /// True if degrees stay in memory.
    pub degrees_resident: bool,
    /// The limits of sparse supersteps; `None`: all are dense.
    pub sparse: Option<Limits>,
    /// True if the rest of a long run may traverse edges unpacked in memory, in order
    /// (`prioritized`) or in supersteps.
    pub unpacked: bool,
    /// Bytes of the memory through which processes of one machine exchange signals; 0: there is
    /// none, or it does not fit.
    pub exchange_bytes: u64,
    /// Bytes of packed units that stay in memory.
    pub pinned_bytes: u64,
    /// Bytes reserved in total.
    pub total_bytes: u64,
}

/// The smallest memory of a run in bytes.
#[derive(Debug, Clone, Copy)]
struct Minimum {
    /// With all signals in memory.
    resident: u64,
    /// The part of it for sparse supersteps; 0: the program has none, or can do without.
    sparse: u64,
    /// With a window of signals, if that is allowed.
    windowed: Option<u64>,
}

impl Minimum {
    fn new(needs: &Needs, extent: &Extent, asynchronous: bool, workers: u64) -> Self {
        let (vertices, window) = (extent.vertices, extent.vertices.min(extent.interval()));
        let window_bytes = needs.windows(window).iter().sum::<u64>();
        let with_sums = |count: u64| {
            workers * (count * buffer_bytes(needs, extent) + window_bytes)
                + reading_bytes(extent, workers)
        };
        let tables = tables(needs, extent);
        let asynchronous_bytes = if asynchronous { asynchronous_bytes(vertices) } else { 0 };
        // A frontier that stays small takes up to a hundred times as long in windows.
        let is_sparse = !needs.full && !needs.degrees && !needs.distributed;
        let sparse = if is_sparse {
            let dense = dense_bytes(needs, extent, workers);
            sparse::memory_bytes(needs, extent, Limits::scarce(vertices), workers, dense)
        } else {
            0
        };
        let resident = tables
            + sparse
            + with_sums(SUMS_PER_WORKER)
            + asynchronous_bytes
            + vertices * needs.signal
            + list_bytes(needs, vertices);
        let windowed = tables + with_sums(SUMS_PER_WORKER_IF_SPILLED) + window * needs.signal;
        let least_saved = if is_sparse { resident / LEAST_SAVED_BY_WINDOWS } else { 1 };
        let saves = windowed + least_saved <= resident;
        let is_allowed = !asynchronous && !needs.distributed;
        Self { resident, sparse, windowed: (saves && is_allowed).then_some(windowed) }
    }
}

impl Plan {
    /// The smallest budget of a run, in bytes beyond those of the process.
    pub fn minimum_bytes(
        needs: &Needs,
        extent: &Extent,
        asynchronous: bool,
        workers: usize,
    ) -> u64 {
        // Supersteps may take the place of sweeps, except for full programs.
        let minimum = Minimum::new(needs, extent, asynchronous && needs.full, workers as u64);
        minimum.windowed.unwrap_or(minimum.resident)
    }

    /// A budget, in bytes beyond those of the process, that keeps the arrays of all vertices in
    /// memory and allows sparse supersteps; a budget smaller by some MiB may suffice.
    pub fn in_memory_bytes(
        needs: &Needs,
        extent: &Extent,
        asynchronous: bool,
        workers: usize,
    ) -> u64 {
        let workers = workers as u64;
        let dense = sparse::reading_bytes(extent, workers) + sum_bytes(needs, extent, workers);
        let ample = Limits::ample(extent.vertices);
        let minimum = Minimum::new(needs, extent, asynchronous, workers);
        let sparse =
            if needs.full { 0 } else { sparse::memory_bytes(needs, extent, ample, workers, dense) };
        let arrays: u64 = needs.of_vertices(extent.vertices, extent.weighted).iter().sum();
        // A second read in flight of every worker comes before the arrays.
        let second = workers * extent.largest_unit();
        (minimum.resident - minimum.sparse)
            + sparse.max(minimum.sparse)
            + needs.exchange
            + arrays
            + second
    }

    /// Plans a run of a program that needs `needs` over a graph of `extent`.
    ///
    /// # Errors
    /// [`brimful_store::Error::Budget`] naming the smallest budget that works.
    pub fn new(
        needs: &Needs,
        extent: &Extent,
        asynchronous: bool,
        workers: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let plan = |asynchronous| Self::of_mode(needs, extent, asynchronous, workers, budget);
        if !asynchronous || needs.full {
            return plan(asynchronous);
        }
        // A sweep visits whole blocks, however few of their vertices signal. If sparse supersteps
        // or unpacked edges do not fit beside sweeps, but without them, supersteps visit fewer
        // edges.
        let (sweeps, supersteps) = (plan(true), plan(false)?);
        let is_as_good = |plan: &Self| {
            (plan.sparse.is_some() || supersteps.sparse.is_none())
                && (plan.unpacked || !supersteps.unpacked)
        };
        Ok(sweeps.ok().filter(is_as_good).unwrap_or(supersteps))
    }

    /// Plans a run with or without asynchronous sweeps.
    fn of_mode(
        needs: &Needs,
        extent: &Extent,
        asynchronous: bool,
        workers: usize,
        budget: &Budget,
    ) -> Result<Self> {
        let workers = workers as u64;
        let (mut plan, spare) = Self::least(needs, extent, asynchronous, workers, budget)?;
        plan.total_bytes = budget.limit() - plan.spend(spare, needs, extent, workers);
        plan.allow_unpacked(needs, extent, budget);
        Ok(plan)
    }

    /// A plan with the mandatory parts only, and the bytes to spare.
    fn least(
        needs: &Needs,
        extent: &Extent,
        asynchronous: bool,
        workers: u64,
        budget: &Budget,
    ) -> Result<(Self, u64)> {
        let minimum = Minimum::new(needs, extent, asynchronous, workers);
        let windowed = minimum.windowed.filter(|_| minimum.resident > budget.limit());
        let (mut plan, mut spare) = Self::smallest(windowed.unwrap_or(minimum.resident), budget)?;
        plan.asynchronous = asynchronous;
        if windowed.is_some() {
            let signal_bytes = extent.vertices.min(extent.interval()) * needs.signal;
            plan.source_window = Some(widest_window(extent, signal_bytes, &mut spare) as usize);
        } else {
            // `spend` takes them for sparse supersteps.
            spare += minimum.sparse;
        }
        if is_pinned(extent, workers) {
            plan.pinned_bytes = extent.packed();
        }
        Ok((plan, spare))
    }

    /// Spends `spare` bytes on optional parts; returns the rest.
    fn spend(&mut self, mut spare: u64, needs: &Needs, extent: &Extent, workers: u64) -> u64 {
        let (vertices, weighted) = (extent.vertices, extent.weighted);
        let (largest, packed) = (extent.largest_unit(), extent.packed());
        let to_pin = packed - self.pinned_bytes;
        let dense = dense_bytes(needs, extent, workers);
        let sparse_bytes = |limits| sparse::memory_bytes(needs, extent, limits, workers, dense);
        let ample = Limits::ample(vertices);
        let limits = [ample, Limits::scarce(vertices)].map(|limits| (limits, sparse_bytes(limits)));
        let may_be_sparse = !needs.full && self.source_window.is_none();
        // If everything fits, each unit is read only once, so more reads in flight come last.
        let vertex_bytes: u64 = needs.of_vertices(vertices, weighted).iter().sum();
        let max_sparse_bytes = if may_be_sparse { limits[0].1 } else { 0 };
        let all_fits = vertex_bytes + to_pin + max_sparse_bytes + needs.exchange <= spare;
        let mut take = |bytes: u64| take(&mut spare, bytes);
        // Sparse supersteps come first because they read little: hundreds of supersteps with small
        // frontiers take a tenth of the time.
        if may_be_sparse && !needs.degrees {
            self.sparse = first_that_fits(&limits, &mut take);
        }
        if take(needs.exchange) {
            self.exchange_bytes = needs.exchange;
        }
        self.reads += usize::from(!all_fits && to_pin > 0 && take(workers * largest));
        self.keep_vertices(needs, vertices, weighted, &mut take);
        if may_be_sparse && self.degrees_resident {
            self.sparse = first_that_fits(&limits, &mut take);
        }
        if all_fits && take(to_pin) {
            self.pinned_bytes = packed;
        }
        let may_read_more = all_fits || self.reads > MIN_READS as usize;
        while may_read_more && (self.reads as u64) < MAX_READS && take(workers * largest) {
            self.reads += 1;
        }
        if !all_fits {
            let pinned_bytes = spare.min(to_pin);
            self.pinned_bytes += pinned_bytes;
            spare -= pinned_bytes;
        }
        spare
    }

    /// Allows unpacked edges if they fit in the budget beside the arrays of vertices.
    fn allow_unpacked(&mut self, needs: &Needs, extent: &Extent, budget: &Budget) {
        let has_vertices = self.states_resident
            && self.source_window.is_none()
            && (self.degrees_resident || !needs.degrees);
        let unpacked = Self::unpacked_bytes(needs, extent).filter(|bytes| *bytes <= budget.limit());
        // A process that owns only some intervals cannot unpack: unpacked edges are those into all
        // intervals.
        if let Some(bytes) = unpacked.filter(|_| has_vertices && !needs.distributed) {
            self.unpacked = true;
            self.total_bytes = self.total_bytes.max(bytes);
        }
    }

    /// Bytes while vertices signal along unpacked edges, when no packed edges are in memory; `None`
    /// if that is impossible.
    pub(crate) fn unpacked_bytes(needs: &Needs, extent: &Extent) -> Option<u64> {
        // An ordered traversal has no signals for a next superstep.
        let (edge_bytes, signals) = match (needs.ordered, needs.commutes && !needs.full) {
            (true, _) => (priority_queue::memory_bytes(extent)?, 1),
            (false, true) => (adjacency_and_sums_bytes(needs, extent)?, 2),
            (false, false) => return None,
        };
        let vertex_bytes = signals * needs.signal + needs.state + if needs.degrees { 8 } else { 0 };
        Some(
            tables(needs, extent)
                + extent.vertices * vertex_bytes
                + EdgesBySource::reading_bytes(extent)
                + edge_bytes,
        )
    }

    /// A plan of `minimum` bytes in which nothing else is in memory, and the bytes to spare.
    fn smallest(minimum: u64, budget: &Budget) -> Result<(Self, u64)> {
        budget.require(minimum, PURPOSE)?;
        let plan = Self {
            asynchronous: false,
            reads: MIN_READS as usize,
            source_window: None,
            states_resident: false,
            next_resident: false,
            degrees_resident: false,
            sparse: None,
            unpacked: false,
            exchange_bytes: 0,
            pinned_bytes: 0,
            total_bytes: minimum,
        };
        Ok((plan, budget.limit() - minimum))
    }

    /// Keeps the arrays of vertices in memory, as far as the budget allows.
    fn keep_vertices(
        &mut self,
        needs: &Needs,
        vertices: u64,
        weighted: bool,
        mut take: impl FnMut(u64) -> bool,
    ) {
        let [states, next, degrees] = needs.of_vertices(vertices, weighted);
        self.states_resident = take(states);
        self.next_resident = take(next);
        self.degrees_resident = needs.degrees && take(degrees);
    }

    /// Bytes of the reservation that a run over shards is likely to fill if it reads `read`
    /// different bytes of edges. The run fills less than it reserves: few reads are in flight if
    /// most units are pinned, only arrays on disk need windows, and a growing list may be half
    /// empty. One of several processes fills only the states of its `own_vertices`.
    pub fn likely_bytes(
        &self,
        needs: &Needs,
        extent: &Extent,
        workers: usize,
        own_vertices: u64,
        read: u64,
    ) -> u64 {
        let (workers, vertices) = (workers as u64, extent.vertices);
        let [_, next, degrees] = needs.of_vertices(vertices, extent.weighted);
        let states = own_vertices * needs.state;
        let resident = [self.states_resident, self.next_resident, self.degrees_resident];
        let bytes_if = |(bytes, counts): (u64, bool)| if counts { bytes } else { 0 };
        let vertex_bytes: u64 =
            [states, next, degrees].into_iter().zip(resident).map(bytes_if).sum();
        let signals = self.source_window.map_or(vertices, |window| vertices.min(window as u64))
            * needs.signal;
        let window = vertices.min(extent.interval());
        let [state, signal, degree, external] = needs.windows(window);
        let paged: u64 = [state, signal, degree]
            .into_iter()
            .zip(resident)
            .map(|(bytes, is_resident)| bytes_if((bytes, !is_resident)))
            .sum();
        let sums =
            if self.source_window.is_some() { SUMS_PER_WORKER_IF_SPILLED } else { SUMS_PER_WORKER };
        let pinned = self.pinned_bytes.min(read);
        let in_flight =
            workers * (self.reads as u64 + units_in_memory(extent)) * extent.largest_unit();
        let in_flight = in_flight.min(read - pinned);
        let edge_buffers =
            sums * buffer_bytes(needs, extent) + external + extent.plain_segment_bytes();
        let worker_bytes = paged + if read > 0 { edge_buffers } else { 0 };
        let dense =
            in_flight + workers * extent.plain_segment_bytes() + sum_bytes(needs, extent, workers);
        let sparse_bytes = |limits| sparse::likely_bytes(needs, extent, limits, workers, dense);
        let sparse = self.sparse.filter(|_| read > 0).map_or(0, sparse_bytes);
        let likely = tables(needs, extent) / 2
            + signals
            + vertex_bytes
            + workers * worker_bytes
            + self.exchange_bytes
            + in_flight
            + pinned
            + sparse;
        likely.min(self.total_bytes)
    }

    /// Bytes of scratch files for the states and for the signals of this many vertices; 0 for an
    /// array in memory.
    pub fn paged_bytes(&self, needs: &Needs, vertices: u64) -> [u64; 2] {
        let [states, next, _] = needs.of_vertices(vertices, false);
        let paged = |bytes: u64, resident: bool| if resident { 0 } else { bytes };
        [paged(states, self.states_resident), paged(next, self.next_resident)]
    }

    /// Bytes of sums that a superstep over all edges spills between source windows.
    pub fn spilled_bytes(&self, needs: &Needs, extent: &Extent) -> u64 {
        if self.source_window.is_some() {
            extent.sum_arrays * buffer_bytes(needs, extent)
        } else {
            0
        }
    }

    /// Source windows of a superstep.
    pub fn source_windows(&self, extent: &Extent) -> u64 {
        self.source_window.map_or(1, |window| extent.vertices.div_ceil(window as u64).max(1))
    }
}

/// Maximum bytes of the signal lists that a process sends and receives: the ids and signals of its
/// own vertices, their ids, and the ids of all vertices. A list has fewer bytes than all signals of
/// its vertices.
fn list_bytes(needs: &Needs, vertices: u64) -> u64 {
    let of_ids = 8 * needs.signal / (8 + needs.signal);
    if needs.distributed && !needs.full { vertices * (needs.signal + 2 * of_ids) } else { 0 }
}

/// The smaller of the bytes of the packed edges and of the buffers that read them.
fn reading_bytes(extent: &Extent, workers: u64) -> u64 {
    unit_bytes(extent, workers).min(extent.packed()) + workers * extent.plain_segment_bytes()
}

/// Bytes of reading and of sums in dense supersteps, which are free during sparse ones.
fn dense_bytes(needs: &Needs, extent: &Extent, workers: u64) -> u64 {
    let reading = match is_pinned(extent, workers) {
        true => sparse::reading_bytes(extent, workers),
        false => reading_bytes(extent, workers),
    };
    reading + sum_bytes(needs, extent, workers)
}

/// Bytes of a buffer of sums.
fn buffer_bytes(needs: &Needs, extent: &Extent) -> u64 {
    needs.sum_targets(extent.vertices, extent.interval()) * needs.sum
}

/// Bytes of the sums of all workers in dense supersteps.
fn sum_bytes(needs: &Needs, extent: &Extent, workers: u64) -> u64 {
    workers * SUMS_PER_WORKER * buffer_bytes(needs, extent)
}

/// True if all packed edges are in memory on any budget.
fn is_pinned(extent: &Extent, workers: u64) -> bool {
    extent.packed() <= unit_bytes(extent, workers)
}

/// Bytes of the units of all workers.
fn unit_bytes(extent: &Extent, workers: u64) -> u64 {
    workers * (MIN_READS + units_in_memory(extent)) * extent.largest_unit()
}

/// Units that each worker holds, in addition to those in flight: one of every file.
fn units_in_memory(extent: &Extent) -> u64 {
    extent.columns().count() as u64 + u64::from(extent.weighted)
}

/// Vertices of the widest source window, a multiple of the interval. The signals of an interval
/// take `signal_bytes`; those of one interval are already reserved, those of more intervals come
/// from `spare`. Among widths with equally many windows, the smallest is chosen.
fn widest_window(extent: &Extent, signal_bytes: u64, spare: &mut u64) -> u64 {
    let affordable = 1 + *spare / signal_bytes.max(1);
    let windows = extent.intervals().div_ceil(affordable).max(1);
    let intervals = extent.intervals().div_ceil(windows).max(1);
    *spare -= (intervals - 1) * signal_bytes;
    intervals << extent.interval_bits
}

/// Bytes of the tables of segments and intervals, and of the activity maps.
fn tables(needs: &Needs, extent: &Extent) -> u64 {
    // At most one item begins at a segment, or at an interval without segments.
    let (segments, intervals) = (extent.segments(), extent.intervals());
    let items = segments + intervals;
    Schedule::memory_bytes(segments, items, intervals)
        + intervals * (needs.partial + sweep::INTERVAL_BYTES)
        + SpilledSums::memory_bytes(intervals, items)
        + Frontier::memory_bytes(extent.vertices)
}

/// The first limits of sparse supersteps that fit in the spare memory.
fn first_that_fits(limits: &[(Limits, u64)], mut take: impl FnMut(u64) -> bool) -> Option<Limits> {
    limits.iter().find(|(_, bytes)| take(*bytes)).map(|(limits, _)| *limits)
}

/// Takes `bytes` from `spare`; false, without effect, if `spare` is smaller.
fn take(spare: &mut u64, bytes: u64) -> bool {
    let fits = bytes <= *spare;
    *spare -= if fits { bytes } else { 0 };
    fits
}

/// Maximum number of groups of blocks; each group has one score.
pub(crate) const MAX_GROUPS: usize = 256;

/// Bytes of memory of asynchronous supersteps, in addition to those of synchronous ones.
fn asynchronous_bytes(vertices: u64) -> u64 {
    (MAX_GROUPS * MAX_GROUPS * size_of::<f32>()) as u64 + (vertices >> ACTIVITY_BITS) * 8
}

/// Maximum bytes of edges, sums and lists of a superstep over unpacked edges; `None` if the edges
/// cannot be unpacked.
fn adjacency_and_sums_bytes(needs: &Needs, extent: &Extent) -> Option<u64> {
    let (vertices, files) = (extent.vertices, extent.indexes.len() as u64);
    let of_targets =
        Touched::<()>::memory_bytes(vertices, needs.sum) + vertices * 2 * (needs.target_sum + 8);
    // Every file has its own table of the first edge of each source.
    Adjacency::memory_bytes(extent).map(|edges| edges + files * 4 * vertices + of_targets)
}
