//! The connection between the processes that make a run together.
//!
//! An exchange only moves bytes. Their meaning is defined in `run/distributed.rs`,
//! `gather/distributed.rs` and, for programs on stores, in `brimful-execution`.
//!
//! `division`: the part of each process.

pub(crate) mod division;

use std::fmt::Debug;
use std::sync::Arc;

use brimful_store::Job;

use crate::error::Result;

/// Bytes that a process received.
pub type Received = Box<dyn AsRef<[u8]> + Send>;

/// The contribution of a process to a superstep, for the others.
pub struct Contribution {
    /// Partial results and figures, for all processes.
    pub facts: Received,
    /// New signals or states. [`Exchange::all_gather`] delivers them to all processes but the
    /// driver; they are empty if no process reads them. [`Exchange::scatter`] delivers the part
    /// for this process.
    pub signals: Received,
}

/// The connection to the other processes of a run. All processes make the same calls. Those that
/// own intervals of a graph, or partitions of its vertices, are numbered; the driver owns none.
pub trait Exchange: Debug + Send + Sync {
    /// Sends the contribution of this process, and waits for those of all processes that own
    /// intervals, in order. The driver contributes nothing.
    ///
    /// # Errors
    /// [`crate::Error::Exchange`] if a process is lost; [`brimful_store::Error::Interrupted`] after
    /// a cancellation of `job`.
    fn all_gather(&self, facts: &[u8], signals: &[u8], job: &Job) -> Result<Vec<Contribution>>;

    /// Sends facts to all processes and a part to each: to those that own intervals, in order, and
    /// last to the driver. Waits for the contributions of all processes that own intervals, in
    /// order. The part of a process for itself is not sent, and it receives an empty one.
    ///
    /// # Errors
    /// As [`Exchange::all_gather`].
    fn scatter(&self, facts: &[u8], parts: &[&[u8]], job: &Job) -> Result<Vec<Contribution>>;

    /// Sends the records of this process's vertices to the driver. The driver sends nothing,
    /// and receives the records of all processes that own intervals, in order. Other processes
    /// receive nothing.
    ///
    /// # Errors
    /// As [`Exchange::all_gather`].
    fn gather(&self, records: &[u8], job: &Job) -> Result<Vec<Received>>;

    /// Sends the signals of all later supersteps through memory that the processes share. The
    /// signals of one superstep have at most `max_bytes` bytes. The memory has two slots of that
    /// size, which the caller has reserved.
    ///
    /// # Errors
    /// [`crate::Error::Exchange`] if the processes cannot share memory.
    fn share_memory(&self, max_bytes: u64) -> Result<()>;
}

/// The connection of this process to the others of a run, and its place among them.
#[derive(Debug, Clone)]
pub struct Communicator {
    /// Processes that own intervals.
    pub count: usize,
    /// The position of this process among those; `None`: it is the driver.
    pub index: Option<usize>,
    /// True if the processes that own intervals can share memory.
    pub shares_memory: bool,
    /// The connection to the other processes.
    pub exchange: Arc<dyn Exchange>,
}

impl Communicator {
    /// Like [`Exchange::all_gather`]: one contribution of each process that owns intervals.
    ///
    /// # Errors
    /// As [`Exchange::all_gather`]; [`crate::Error::Exchange`] for another number of contributions.
    pub fn all_gather(&self, facts: &[u8], signals: &[u8], job: &Job) -> Result<Vec<Contribution>> {
        self.of_all(self.exchange.all_gather(facts, signals, job)?)
    }

    /// Like [`Exchange::scatter`]: one contribution of each process that owns intervals.
    ///
    /// # Errors
    /// As [`Communicator::all_gather`].
    pub fn scatter(&self, facts: &[u8], parts: &[&[u8]], job: &Job) -> Result<Vec<Contribution>> {
        self.of_all(self.exchange.scatter(facts, parts, job)?)
    }

    fn of_all(&self, all: Vec<Contribution>) -> Result<Vec<Contribution>> {
        if all.len() == self.count { Ok(all) } else { Err(malformed()) }
    }
}

/// The error of bytes that no process of this run sends.
pub fn malformed() -> crate::Error {
    crate::Error::Exchange("a worker sent bytes of another run; please report it".into())
}

impl Communicator {
    /// True if this process is the driver.
    pub fn is_driver(&self) -> bool {
        self.index.is_none()
    }
}
