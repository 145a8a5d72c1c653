//! Errors of a run.

use brimful_store::ErrorKind;

use crate::result::stats::Stats;

/// A result of the engine.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// Anything that can end a run early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// An error of the graph.
    #[error(transparent)]
    Graph(#[from] brimful_graph::Error),
    /// An error of the storage layer.
    #[error(transparent)]
    Store(#[from] brimful_store::Error),
    /// An invalid program or parameter.
    #[error("{0}")]
    Usage(String),
    /// Another process of the run is lost or has failed.
    #[error("{0}")]
    Exchange(Box<dyn std::error::Error + Send + Sync>),
    /// No failure: this process has finished its part of a run, and the driver has the result.
    #[error("this process has finished its part of a run")]
    ProcessDone(Box<Stats>),
    /// The program failed.
    #[error("{0}")]
    Program(String),
    /// The program failed apart from a vertex, such as between supersteps. Its error reaches the
    /// caller as it is.
    #[error("{0}")]
    ProgramCall(Box<dyn std::error::Error + Send + Sync>),
    /// A fault of brimful itself.
    #[error("internal error: {0}; this is a fault of brimful, please report it with this message")]
    Internal(String),
    /// The kernel returned a status other than 0.
    #[error(
        "the kernel returned status {status}, not 0, when called for {call}{}; look up the status \
         in the program",
        vertex.map_or(String::new(), |vertex| format!(" at internal vertex {vertex}"))
    )]
    Kernel {
        /// The status that the kernel returned.
        status: i32,
        /// The purpose of the call.
        call: &'static str,
        /// Internal id of the vertex, or of the source of the edge, that the kernel names as the
        /// cause.
        vertex: Option<u64>,
        /// The arguments of the call for that vertex, unless the call was for edges.
        received: Option<Box<KernelArguments>>,
    },
}

/// The arguments of a kernel for a vertex, so that the failed call can be repeated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KernelArguments {
    /// Outgoing arcs, if the program needs degrees.
    pub degree: u64,
    /// Supersteps completed.
    pub superstep: u64,
    /// The words of its state, which the kernel may have replaced; `None` in the call that sets the
    /// first states.
    pub state: Option<Vec<u64>>,
    /// The words of the sum that it collects, if the call collects.
    pub sum: Option<Vec<u64>>,
    /// The words of the aggregate.
    pub aggregate: Vec<u64>,
}

impl Error {
    /// The kind of this error.
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Graph(error) => error.kind(),
            Self::Store(error) => error.kind(),
            Self::Usage(_) => ErrorKind::Usage,
            Self::ProcessDone(_) | Self::Internal(_) => ErrorKind::Internal,
            Self::Exchange(_) => ErrorKind::Io,
            Self::Program(_) | Self::ProgramCall(_) | Self::Kernel { .. } => ErrorKind::Program,
        }
    }
}
