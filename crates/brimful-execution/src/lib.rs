//! Running programs on stores of vertices: synchronous supersteps and true asynchrony over one
//! core.
//!
//! - [`program`]: the interface of algorithms.
//! - [`run`]: an execution, step by step or until it ends; `synchronous` and `asynchronous`: the
//!   modes; [`options`]: the user's options; [`stats`]: figures.
//! - [`partitioner`]: the partition of a vertex; [`loading`]: fills the stores with vertices.
//! - `worker`: the partitions that a thread owns; `context`: its lists and packets; `outbox`: the
//!   signals that gather for a partition; `exchange`: queues between workers, and the detection of
//!   termination.
//! - [`lists`]: vertices that are due to signal, and signals that wait to be collected.
//! - `process_partitions`: the partitions of several processes that make a run together;
//!   `distributed`: their exchange.
//! - `hubs`: memory for vertices with very many edges; `together`: supersteps on arrays of
//!   vertices.
//! - [`checkpoint`]: checkpoints of vertices; `due`: their lists of vertices that are due to
//!   signal; [`kept`]: stores that stay after a run.
//! - [`from_graph`]: stores filled from a graph; [`numeric`]: programs for shards on any store.
//! - [`error`]: the errors of all these.
//!
//! Giraph's example of shortest paths, on two partitions of live objects:
//!
//! ```
//! # use std::sync::Arc;
//! # use brimful_engine::Reason;
//! # use brimful_store::{Budget, Job, Resources};
//! # use brimful_execution::{Failure, VertexOf, VertexProgram};
//! # use brimful_vertices::{Edge, Loan};
//! use brimful_execution::{Execution, ExecutionOptions, Loading, Partitioner};
//! use brimful_execution::{RunLimits, RunMode, Scheduler};
//! use brimful_vertices::{Edges, MemoryStore};
//!
//! # struct Distances { source: u64 }
//! # impl VertexProgram for Distances {
//! #     type Id = u64;
//! #     type State = f64;
//! #     type Edge = f64;
//! #     type Signal = f64;
//! #     fn initial(&self, id: &u64, _: &Edges<u64, f64>) -> Result<f64, Failure> {
//! #         Ok(if *id == self.source { 0.0 } else { f64::INFINITY })
//! #     }
//! #     fn signal(
//! #         &self,
//! #         source: &VertexOf<Self>,
//! #         edge: Edge<'_, u64, f64>,
//! #     ) -> Result<Option<f64>, Failure> {
//! #         Ok(source.state.is_finite().then(|| source.state + edge.data))
//! #     }
//! #     fn collect(
//! #         &self,
//! #         vertex: &mut Loan<'_, VertexOf<Self>>,
//! #         signals: &[f64],
//! #     ) -> Result<(), Failure> {
//! #         let least = signals.iter().fold(vertex.state, |least, signal| least.min(*signal));
//! #         if least < vertex.state {
//! #             vertex.state = least;
//! #         }
//! #         Ok(())
//! #     }
//! # }
//! let resources = Resources::new(Budget::new(64 << 20, 0), Arc::new(Job::new()), Some(2))?;
//! let stores = vec![MemoryStore::new(&resources.budget)?, MemoryStore::new(&resources.budget)?];
//! let mut loading = Loading::new(Distances { source: 1 }, Partitioner::Hash, stores, &resources)?;
//! loading.add(1, Edges::from_iter([(2, 1.0), (3, 3.0)]))?;
//! loading.add(2, Edges::from_iter([(3, 1.0), (4, 10.0)]))?;
//! loading.add(3, Edges::from_iter([(4, 2.0)]))?;
//! loading.add(4, Edges::default())?;
//! let mut execution = Execution::start(loading, &ExecutionOptions::default())?;
//! let mode = RunMode::Asynchronous(Scheduler::default());
//! assert_eq!(execution.run(mode, &RunLimits::default(), |_| Ok(false))?, Reason::NoChange);
//!
//! let mut farthest: f64 = 0.0;
//! execution.for_each(&mut |vertex| {
//!     farthest = farthest.max(vertex.state);
//!     Ok(())
//! })?;
//! assert_eq!(farthest, 4.0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod asynchronous;
pub mod checkpoint;
mod context;
mod distributed;
mod due;
pub mod error;
mod exchange;
pub mod from_graph;
mod hubs;
pub mod kept;
pub mod lists;
pub mod loading;
pub mod numeric;
pub mod options;
mod outbox;
pub mod partitioner;
mod process_partitions;
pub mod program;
pub mod run;
pub mod stats;
mod synchronous;
mod together;
mod worker;

pub use error::{Error, Failure, Result};
pub use loading::Loading;
pub use options::{
    ExecutionOptions, KeptVertices, ListLocation, Partitioning, RunLimits, RunMode, Scheduler,
    Start,
};
pub use partitioner::Partitioner;
pub use program::{
    COLLECT_THRESHOLD, Collecting, Delivery, SIGNAL_THRESHOLD, VertexOf, VertexProgram,
};
pub use run::Execution;
pub use stats::{ExecutionStats, SuperstepFigures};
