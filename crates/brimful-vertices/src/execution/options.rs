//! What the user chose for an execution.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use crate::error::{Error, Result};

/// Where the lists of vertices that wait are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Lists {
    /// In memory as far as half of the free budget goes, on disk beyond it.
    #[default]
    Memory,
    /// On disk but for small buffers.
    Disk,
}

impl Lists {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Disk => "disk",
        }
    }
}

impl FromStr for Lists {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        [Self::Memory, Self::Disk].into_iter().find(|lists| lists.name() == name).ok_or_else(|| {
            Error::Usage(format!(
                "lists are in memory or on disk, not {name:?}; choose memory or disk"
            ))
        })
    }
}

/// What the user chose for an execution.
#[derive(Debug, Clone, Default)]
pub struct ExecutionOptions {
    /// A vertex signals if its score exceeds this; `None`: [`crate::SIGNAL_THRESHOLD`].
    pub signal_threshold: Option<f64>,
    /// A vertex collects if its score exceeds this; `None`: [`crate::COLLECT_THRESHOLD`].
    pub collect_threshold: Option<f64>,
    /// Where the lists are.
    pub lists: Lists,
    /// The folder for what exceeds memory; `None`: the system's for temporary files.
    pub scratch: Option<PathBuf>,
}

/// In which order vertices act where no superstep orders them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Schedule {
    /// Collect all that waits, then let those signal whose score is not below the average; the
    /// others wait for what comes. Fewest loans of vertices.
    Throughput,
    /// Collect for a vertex as soon as something waits for it, and let it signal at once
    /// (Gauss-Seidel). Shortest way of a change through the graph, and by measurement fewest
    /// signals.
    #[default]
    LowLatency,
}

impl Schedule {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Throughput => "throughput",
            Self::LowLatency => "latency",
        }
    }
}

impl FromStr for Schedule {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let all = [Self::LowLatency, Self::Throughput];
        all.into_iter().find(|schedule| schedule.name() == name).ok_or_else(|| {
            Error::Usage(format!("there is no scheduler {name:?}; choose latency or throughput"))
        })
    }
}

/// How vertices take turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// In supersteps: all signal, then all collect.
    Synchronous,
    /// Each worker as soon as it can.
    Asynchronous(Schedule),
}

/// When a run ends, if it does not before.
#[derive(Debug, Clone)]
pub struct Limits {
    /// After so many supersteps of this call, if synchronous.
    pub max_supersteps: u64,
    /// No superstep begins after this time; an asynchronous run is stopped then. At least one
    /// superstep is done.
    pub max_seconds: Option<f64>,
    /// Supersteps between two looks at the global condition, if synchronous; at least 1.
    pub check_supersteps: u64,
    /// Time between two looks at it, if asynchronous.
    pub check_every: Duration,
}

impl Default for Limits {
    /// Until nothing is left to do; the condition is looked at after each superstep, or ten times a
    /// second.
    fn default() -> Self {
        Self {
            max_supersteps: u64::MAX,
            max_seconds: None,
            check_supersteps: 1,
            check_every: Duration::from_millis(100),
        }
    }
}
