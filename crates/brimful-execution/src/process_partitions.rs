//! The partitions of the processes that make an execution together, and their connection.
//!
//! Invariant: all processes divide the partitions in the same way, and keep batches of signals
//! within their budgets.

use std::ops::Range;

use brimful_engine::exchange::{Communicator, Contribution};
use brimful_store::{Job, Reservation, Resources};
use brimful_vertices::Growth;

use crate::error::{Error, Failure, Result};
use crate::stats::ExecutionStats;

/// The least and the most bytes of a batch of signals to one process.
const MIN_BATCH: u64 = 64 << 10;
const MAX_BATCH: u64 = 8 << 20;

/// The partitions of an execution, by process.
#[derive(Debug, Clone)]
pub(crate) struct ProcessPartitions {
    pub(crate) communicator: Communicator,
    /// Partitions of each process.
    each: usize,
}

impl ProcessPartitions {
    pub(crate) fn new(communicator: &Communicator, each: usize) -> Self {
        Self { communicator: communicator.clone(), each }
    }

    /// The number of partitions of all processes.
    pub(crate) fn partitions(&self) -> usize {
        self.communicator.count * self.each
    }

    /// The partitions of process `index`.
    pub(crate) fn of_process(&self, index: usize) -> Range<usize> {
        index * self.each..(index + 1) * self.each
    }

    /// The partitions of this process.
    pub(crate) fn own(&self) -> Range<usize> {
        self.communicator.index.map_or(0..0, |index| self.of_process(index))
    }

    /// The relays of this process.
    pub(crate) fn relays(&self) -> usize {
        if self.communicator.is_driver() { 0 } else { self.partitions() }
    }

    /// Batches in memory at once: one to each process, and one from each.
    fn batches(&self) -> u64 {
        2 * self.communicator.count as u64
    }

    /// The minimum memory of batches.
    pub(crate) fn minimum_bytes(&self) -> u64 {
        self.batches() * MIN_BATCH
    }
}

/// The connection of an execution to those of the other processes, and the memory of batches.
#[derive(Debug)]
pub(crate) struct Connected {
    pub(crate) processes: ProcessPartitions,
    /// Bytes after which a batch is sent.
    pub(crate) batch_bytes: usize,
    #[expect(dead_code, reason = "holds the memory of batches")]
    memory: Reservation,
    /// Bytes of batches that a long signal made longer.
    pub(crate) excess: Growth,
    /// At the end, in the driver: the figures of the other processes.
    pub(crate) others: Option<ExecutionStats>,
}

impl Connected {
    pub(crate) fn new(processes: ProcessPartitions, resources: &Resources) -> Result<Self> {
        let (batches, budget) = (processes.batches(), &resources.budget);
        let each = (budget.free() / 16 / batches).clamp(MIN_BATCH, MAX_BATCH);
        let memory = budget.reserve(batches * each, "for signals to and from other workers")?;
        let excess = Growth::new(budget, "for long signals to and from other workers")?;
        Ok(Self { processes, batch_bytes: each as usize, memory, excess, others: None })
    }

    /// The figures of the other processes, once the driver has received them.
    pub(crate) fn others(&self) -> Option<&ExecutionStats> {
        self.others.as_ref()
    }

    /// Sends facts to all processes, and returns those of all that own partitions.
    pub(crate) fn all_gather(&self, facts: &[u8], job: &Job) -> Result<Vec<Contribution>> {
        Ok(self.processes.communicator.all_gather(facts, &[], job)?)
    }

    /// Sends facts to all processes, and a part to each: see [`Communicator`].
    pub(crate) fn scatter(
        &self,
        facts: &[u8],
        parts: &[&[u8]],
        job: &Job,
    ) -> Result<Vec<Contribution>> {
        Ok(self.processes.communicator.scatter(facts, parts, job)?)
    }
}

/// The error of bytes that no process of this run sends.
pub(crate) fn malformed() -> Error {
    brimful_engine::exchange::malformed().into()
}

/// The error of a program that failed apart from a vertex: the other processes lose this one.
pub(crate) fn failed(failure: Failure) -> Error {
    Error::Engine(brimful_engine::Error::ProgramCall(failure))
}
