//! The engine: supersteps over the shards of a graph.
//!
//! - Programs: [`program`] is the interface of algorithms, [`combiner`] folds signals into sums,
//!   [`aggregate`] holds global values. [`mod@gather`] programs read whole neighbour lists.
//!   [`batch`] programs take many edges or vertices at a time; [`kernel`] programs are compiled
//!   functions behind a C interface.
//! - Runs: `options` holds the user's choices, [`mod@run`] is a run over shards, synchronous or
//!   not, and [`supersteps`] is the loop that all runs share.
//! - Supersteps: `sweep` is one pass over the shards, in the order of a `schedule`, into `sums`;
//!   `collect` is the vertex phase. `sparse` traverses the edges of a small `frontier`; the
//!   `cost_model` chooses it. `worklist` orders vertices without supersteps, along an unpacked
//!   [`adjacency`], which the supersteps of other long runs also use. [`scan`] visits all edges for
//!   other algorithms. [`residency`] pins units in memory and streams the others.
//! - Vertices without edges share one state (`isolated`).
//! - Planning: [`plan`] divides the budget, from the [`needs`] of the program and the [`extent`] of
//!   the graph; [`forecast`] estimates the cost of a run.
//! - Results: [`stats`] holds figures, `log` reports supersteps, [`table`] is the result in the
//!   user's ids, `rows` reads it in order, and `values` converts states.

pub mod adjacency;
pub mod aggregate;
pub mod batch;
pub mod checkpoint;
mod collect;
pub mod combiner;
mod cost_model;
pub mod error;
pub mod extent;
pub mod forecast;
mod frontier;
pub mod gather;
mod isolated;
pub mod kernel;
mod log;
pub mod needs;
mod options;
pub mod plan;
pub mod program;
pub mod residency;
mod rows;
pub mod run;
pub mod scan;
mod schedule;
mod sparse;
pub mod stats;
mod sums;
pub mod supersteps;
mod sweep;
pub mod table;
mod values;
mod worklist;

pub use aggregate::{Aggregate, Count, Greatest, Least, Sum, Top};
pub use collect::{Thresholds, Turn};
pub use combiner::{Add, Combiner, Max, Min, Or};
pub use error::{Error, Result};
pub use gather::{Gather, Gathered, Neighbours, gather};
pub use isolated::Isolated;
pub use kernel::{Kernel, KernelProgram, Shape};
pub use options::{RunOptions, TraversalMode};
pub use program::{Globals, Mode, Program, SignalOf, SumOf, Vertex};
pub use rows::Rows;
pub use run::{Output, run};
pub use stats::{Reason, Stats};
pub use table::ResultTable;
pub use values::Values;
