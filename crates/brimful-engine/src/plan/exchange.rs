//! The cost of the exchange between the workers of a cluster after a superstep (see
//! `run/distributed.rs` and `gather/distributed.rs`).
//!
//! Each worker publishes the new signals of its vertices once, and copies those of all others into
//! its own array. Between machines each slice travels once to every other machine, in both
//! directions at once. Invariant: bytes follow from the division of the graph. The constants below
//! come from runs on one machine with two cores (docs/scale.md), so a forecast of seconds is rough.

use crate::plan::partitioning::{Cluster, ClusterSize, PartitionSize};

/// Bytes that one core publishes in a second through memory that workers of a node share.
const SHARED_MEMORY_RATE: f64 = 5e9;
/// Bytes that one core publishes in a second through Ray's object store, between two actors
/// (docs/adr/0054-one-run-in-several-processes.md).
const OBJECT_STORE_RATE: f64 = 0.85e9;
/// Bytes that one core receives in a second.
const RECEIVE_RATE: f64 = 5e9;
/// Slots of memory that workers of a node share: others may still read the last superstep's signals
/// from one.
const SLOTS: u64 = 2;
/// Seconds that a superstep without signals takes.
const IDLE_SUPERSTEP_SECONDS: f64 = 0.001;
/// Seconds of a core for each message of the exchange.
const MESSAGE_SECONDS: f64 = 0.0015;
/// The exchange of a superstep in which all vertices signal.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ExchangeForecast {
    /// Workers.
    pub workers: u64,
    /// Workers on each machine.
    pub on_a_machine: u64,
    /// The cores that these share; `None`: a worker has a machine to itself.
    cores: Option<u64>,
    /// The most bytes that a worker publishes, for all others.
    pub published_bytes: u64,
    /// The most bytes that a worker sends, to all others together.
    pub sent_bytes: u64,
    /// The most bytes that a worker receives.
    pub received_bytes: u64,
    /// Bytes of the memory through which a worker sends its signals or states; 0: through Ray's
    /// object store.
    pub memory_bytes: u64,
}

/// Bytes of the memory through which a process shares the signals of its vertices.
pub(crate) fn slot_bytes(vertices: u64, signal: u64) -> u64 {
    SLOTS * vertices * signal
}

impl ExchangeForecast {
    /// Seconds from the call to the first superstep: 3 on a fast machine, 11 to 15 on a loaded one.
    pub const START_SECONDS: f64 = 6.0;

    /// The exchange of signals of the given size between workers that own parts of a graph, in
    /// shared memory if they are on one machine.
    pub(crate) fn of(cluster: &Cluster, whole: &PartitionSize, signal: u64) -> Self {
        let ClusterSize { workers, cores } = cluster.size;
        let vertices = || cluster.parts.iter().map(|part| part.vertices);
        let most = cluster.max_vertices();
        let fewest = match cluster.parts.len() as u64 == workers {
            true => vertices().min().unwrap_or(0),
            false => whole.vertices / workers,
        };
        Self {
            workers,
            on_a_machine: if cores.is_some() { workers } else { 1 },
            cores,
            published_bytes: if workers > 1 { most * signal } else { 0 },
            sent_bytes: (most * signal).saturating_mul(workers - 1),
            received_bytes: (whole.vertices - fewest) * signal,
            memory_bytes: match (cores, workers) {
                (None, _) | (_, 1) => 0,
                _ => slot_bytes(most, signal),
            },
        }
    }

    /// The same exchange with this many bytes of shared memory.
    #[must_use]
    pub(crate) fn in_memory(self, memory_bytes: u64) -> Self {
        Self { memory_bytes, ..self }
    }

    /// Seconds of an exchange in which all vertices signal.
    pub(crate) fn seconds(&self, network: f64) -> f64 {
        let travelling = match self.cores {
            Some(_) => 0.0,
            None => self.sent_bytes.max(self.received_bytes) as f64 / network,
        };
        let published = if self.memory_bytes > 0 { SHARED_MEMORY_RATE } else { OBJECT_STORE_RATE };
        let copying =
            self.published_bytes as f64 / published + self.received_bytes as f64 / RECEIVE_RATE;
        self.idle_seconds() + travelling + copying * self.waiting()
    }

    /// Seconds of an exchange in which hardly any vertex signals.
    pub(crate) fn idle_seconds(&self) -> f64 {
        // Each worker asks all others, and answers them and the caller.
        let messages = 2 * self.workers - 1;
        IDLE_SUPERSTEP_SECONDS + messages as f64 * MESSAGE_SECONDS * self.waiting()
    }

    /// The factor by which a worker is slower because others use its core too.
    fn waiting(&self) -> f64 {
        self.cores.map_or(1.0, |cores| (self.workers as f64 / cores as f64).max(1.0))
    }
}
