//! The engine: supersteps over the shards of a graph.
//!
//! - [`vertex`]: the interface of programs, and the vertex phase of a superstep. Also combiners,
//!   aggregators, programs that take batches, and kernels: compiled functions behind a C interface.
//! - [`plan`]: the user's choices, the needs of a program, the extent of a graph, the division of
//!   the budget, and the forecast of a run.
//! - [`traverse`]: the edges of a superstep. Dense and sparse traversal, frontiers, edges kept in
//!   memory, and vertices in an order of their own.
//! - [`result`]: figures, and states in the user's ids.
//! - [`mod@run`] is a run over shards, synchronous or asynchronous; [`mod@gather`] programs read
//!   whole neighbor lists. [`supersteps`] is the loop that all of them share. [`checkpoint`] saves
//!   the state between two supersteps. Several processes make one run through an [`exchange`].
//!   [`scratch`] is the folder for data that exceeds memory.

pub mod checkpoint;
pub mod error;
pub mod exchange;
pub mod gather;
pub mod run;
pub mod scratch;
pub mod supersteps;

pub mod plan;
pub mod result;
pub mod traverse;
pub mod vertex;

pub use error::{Error, KernelArguments, Result};
pub use gather::{Gathered, gather};
pub use plan::options::{RunOptions, TraversalMode};
pub use result::row_table::{ListColumn, RowColumn, RowTable, RowWriter};
pub use result::stats::{Reason, Stats};
pub use result::table::ResultTable;
pub use result::table::rows::Rows;
pub use result::values::Values;
pub use run::{Output, run};
pub use vertex::aggregate::{Aggregate, Count, Greatest, Least, Sum};
pub use vertex::combiner::{Add, AddEach, Combiner, Max, Min, Or};
pub use vertex::gather::{Gather, Neighbors};
pub use vertex::isolated::Isolated;
pub use vertex::kernel::{Along, Kernel, KernelProgram, Master, Shape};
pub use vertex::program::{Globals, Mode, Program, SignalOf, SumOf, Vertex};
pub use vertex::turn::{COLLECT_THRESHOLD, SIGNAL_THRESHOLD, Thresholds, Turn};
