//! The user's options of an execution.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use brimful_engine::exchange::Communicator;
use brimful_vertices::Schemes;
use brimful_vertices::cache::Choice;

use crate::error::{Error, Result};

/// The location of the lists of an execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ListLocation {
    /// In memory, up to a part of the free budget, and on disk beyond it.
    #[default]
    Memory,
    /// On disk, except for small buffers.
    Disk,
}

impl ListLocation {
    /// The name of the location.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

impl FromStr for ListLocation {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Self::Memory, Self::Disk].into_iter().find(|lists| lists.name() == name).ok_or_else(|| {
            Error::Usage(format!(
                "lists must be in memory or on disk, not {name:?}; choose memory or disk"
            ))
        })
    }
}

/// The user's options of an execution.
#[derive(Debug, Clone, Default)]
pub struct ExecutionOptions {
    /// A vertex signals if its score exceeds this; `None`: [`crate::SIGNAL_THRESHOLD`].
    pub signal_threshold: Option<f64>,
    /// A vertex collects if its score exceeds this; `None`: [`crate::COLLECT_THRESHOLD`].
    pub collect_threshold: Option<f64>,
    /// The location of the lists.
    pub lists: ListLocation,
    /// The folder for data that exceeds memory; `None`: next to the graph if the vertices are those
    /// of a graph and its folder is writable, else the system's folder for temporary files.
    pub scratch_folder: Option<PathBuf>,
    /// The connection to the other processes, if several make the run together; see
    /// [`crate::from_graph::start`].
    pub communicator: Option<Communicator>,
    /// True if the memory of stores no longer grows: lists may then take most of the rest,
    /// otherwise half of it.
    pub has_fixed_stores: bool,
}

/// The order in which vertices act without supersteps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Scheduler {
    /// Collect all waiting signals, then let the vertices signal whose score is not below the
    /// average; the others wait for more signals. Needs the fewest loans of vertices.
    Throughput,
    /// Collect for a vertex as soon as signals wait for it, and let it signal at once
    /// (Gauss-Seidel). Changes spread fastest, and in measurements it needs the fewest signals.
    #[default]
    LowLatency,
}

impl Scheduler {
    /// The name of the schedule.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::LowLatency => "latency",
        }
    }
}

impl FromStr for Scheduler {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::LowLatency, Self::Throughput];
        all.into_iter().find(|schedule| schedule.name() == name).ok_or_else(|| {
            Error::Usage(format!("there is no scheduler {name:?}; choose latency or throughput"))
        })
    }
}

/// The assignment of the vertices of a graph to partitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Partitioning {
    /// Ranges of vertices, in the graph's order, with about equally many edges.
    #[default]
    Range,
    /// By a hash of the vertex: neighbors in the graph's order are apart, and so is their work.
    Hash,
}

impl Partitioning {
    /// The name of the assignment.
    pub fn name(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Hash => "hash",
        }
    }
}

impl FromStr for Partitioning {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Self::Range, Self::Hash].into_iter().find(|one| one.name() == name).ok_or_else(|| {
            Error::Usage(format!("there is no partitioner {name:?}; choose range or hash"))
        })
    }
}

/// The mode of a run: with or without supersteps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunMode {
    /// In supersteps: all vertices signal, then all collect.
    Synchronous,
    /// Without supersteps: each worker continues as soon as it can.
    Asynchronous(Scheduler),
}

/// The limits of a run.
#[derive(Debug, Clone)]
pub struct RunLimits {
    /// The maximum number of supersteps of this call, if synchronous.
    pub max_supersteps: u64,
    /// After this many seconds, no superstep begins, and an asynchronous run stops. At least one
    /// superstep is done. `None`: no limit.
    pub max_seconds: Option<f64>,
    /// Time between two checks of the global condition, if asynchronous.
    pub check_every: Duration,
}

impl Default for RunLimits {
    /// No limits; the condition is checked after each superstep, or ten times a second.
    fn default() -> Self {
        Self {
            max_supersteps: u64::MAX,
            max_seconds: None,
            check_every: Duration::from_millis(100),
        }
    }
}

/// The store for the vertices of a graph.
#[derive(Clone, Copy)]
pub struct StoreOptions<'s> {
    /// URL of the store.
    pub store: &'s str,
    /// The known stores.
    pub schemes: &'s Schemes,
    /// A cache in front of the store.
    pub cache: Option<Choice>,
    /// The assignment of vertices to partitions.
    pub partitioning: Partitioning,
    /// `None`: the store is empty, and for one run.
    pub kept: Option<KeptVertices<'s>>,
}

impl StoreOptions<'_> {
    /// True if the store takes a fixed share of the budget, and has no cache that grows.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown store.
    pub(crate) fn are_fixed(&self) -> Result<bool> {
        Ok(self.schemes.kind(self.store)?.has_share() && self.cache.is_none())
    }
}

/// The vertices of a store that stays after the run.
#[derive(Debug, Clone, Copy)]
pub struct KeptVertices<'s> {
    /// The edges of each partition, a vertex counting as one; empty if there are no vertices yet.
    pub edges: &'s [u64],
    /// The start of a run on kept vertices.
    pub start: Start,
}

/// The start of a run on kept vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Start {
    /// Every vertex gets its first state.
    #[default]
    Fresh,
    /// The vertices stay as they are.
    Continue,
}
