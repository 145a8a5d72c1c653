//! The memory that a program needs for each vertex, in plain numbers, for a run and for its
//! forecast.

use std::sync::Mutex;

use brimful_graph::Index;

use crate::vertex::aggregate::Aggregate;
use crate::vertex::combiner::Combiner;
use crate::vertex::gather::Gather;
use crate::vertex::program::{Globals, Mode, Program, SignalOf, SumOf};
use crate::vertex::turn::Partial;

/// The largest sum in bytes of which a buffer always holds as many as an interval has targets.
const MAX_SMALL_SUM: u64 = 256;

/// Bytes and properties of a program over signals.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Needs {
    /// Bytes of a state.
    pub state: u64,
    /// Bytes of a signal.
    pub signal: u64,
    /// Bytes of a sum.
    pub sum: u64,
    /// True if buffers of sums hold no more targets than the graph has. Each target is then
    /// checked, which costs little beside a large sum.
    pub large_sums: bool,
    /// Bytes of a target and its sum.
    pub target_sum: u64,
    /// Bytes of the partial result of an interval, including its lock.
    pub partial: u64,
    /// True if degrees are used.
    pub degrees: bool,
    /// True if external ids are used.
    pub external: bool,
    /// True if all vertices signal in every superstep.
    pub full: bool,
    /// True if vertices may signal in an order ([`Program::ORDERED`]).
    pub ordered: bool,
    /// True if sums are the same in any order of signals ([`Combiner::COMMUTES`]).
    pub commutes: bool,
    /// True if the run is divided among processes, which keep the signals of all vertices in
    /// memory.
    pub distributed: bool,
    /// Bytes of the memory through which processes of one machine exchange signals; 0: there is
    /// none.
    pub exchange: u64,
    /// Indexes that are walked.
    pub indexes: &'static [Index],
}

impl Needs {
    /// The needs of `program`.
    pub fn of<P: Program>(program: &P) -> Self {
        Self {
            state: (program.state_len() * size_of::<P::State>()) as u64,
            signal: size_of::<SignalOf<P>>() as u64,
            sum: size_of::<SumOf<P>>() as u64,
            large_sums: !P::BATCHED && size_of::<SumOf<P>>() as u64 > MAX_SMALL_SUM,
            target_sum: size_of::<(u32, SumOf<P>)>() as u64,
            partial: size_of::<Mutex<Partial<P::Aggregate>>>() as u64,
            degrees: program.needs_degrees(),
            external: P::NEEDS_EXTERNAL,
            full: P::MODE == Mode::Full,
            ordered: P::ORDERED,
            commutes: P::Combiner::COMMUTES,
            distributed: false,
            exchange: 0,
            indexes: program.indexes(),
        }
    }

    /// The same needs, in a run that is divided among processes if `distributed` is true.
    #[must_use]
    pub fn distributed(self, distributed: bool) -> Self {
        Self { distributed, ..self }
    }

    /// The same needs, with bytes of memory that processes share.
    #[must_use]
    pub fn with_exchange(self, exchange: u64) -> Self {
        Self { exchange, ..self }
    }

    /// The number of indexes that `program` walks in the first superstep on `vertices` vertices.
    pub fn first_indexes<P: Program>(program: &P, vertices: u64) -> usize {
        let start = Globals { vertices, superstep: 0, round: 0, aggregate: P::Aggregate::NOTHING };
        program.indexes().iter().filter(|index| program.walks(**index, &start)).count()
    }

    /// Number of targets in a buffer of sums, of a graph of `vertices` in intervals of `interval`.
    pub(crate) fn sum_targets(&self, vertices: u64, interval: u64) -> u64 {
        if self.large_sums { vertices.min(interval) } else { interval }
    }

    /// Bytes of all states, of the next signals, and of degrees.
    pub(crate) fn of_vertices(&self, vertices: u64, weighted: bool) -> [u64; 3] {
        let degree = match (self.degrees, weighted) {
            (false, _) => 0,
            (true, false) => 4,
            (true, true) => 8,
        };
        [vertices * self.state, vertices * self.signal, vertices * degree]
    }

    /// Bytes of a window of each of those arrays, if it is on disk, and of external ids.
    pub(crate) fn windows(&self, window: u64) -> [u64; 4] {
        let degrees = if self.degrees { 8 + 8 } else { 0 };
        let external = if self.external { 8 } else { 0 };
        [self.state, self.signal, degrees, external].map(|bytes| window * bytes)
    }
}

/// Bytes and properties of a program over neighbor lists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GatherNeeds {
    /// Bytes of a state.
    pub state: u64,
    /// Bytes of scratch buffers for each neighbor of a vertex.
    pub buffers: u64,
    /// True if degrees are used.
    pub degrees: bool,
    /// True if ids of neighbors are used ([`Gather::READS_IDS`]).
    pub ids: bool,
    /// True if final states follow from the final states of neighbors ([`Gather::SETTLES`]).
    pub settles: bool,
    /// The indexes from which lists are made.
    pub indexes: &'static [Index],
    /// Bytes of memory in which processes exchange states; 0: one process makes the run.
    pub exchange: u64,
}

impl GatherNeeds {
    /// The needs of `program`.
    pub fn of<G: Gather>(program: &G) -> Self {
        Self {
            state: size_of::<G::State>() as u64,
            buffers: G::BUFFER_BYTES,
            degrees: G::NEEDS_DEGREES,
            ids: G::READS_IDS,
            settles: G::SETTLES,
            indexes: program.indexes(),
            exchange: 0,
        }
    }

    /// The same needs, with bytes of memory in which processes exchange states.
    #[must_use]
    pub(crate) fn with_exchange(self, exchange: u64) -> Self {
        Self { exchange, ..self }
    }
}
