//! Time: supersteps over the shards of a graph.
//!
//! - [`program`]: what an algorithm provides, [`combiner`]: how signals become sums, [`aggregate`]:
//!   what is known of all vertices; [`mod@gather`]: programs of another kind, over whole neighbour
//!   lists.
//! - [`batch`]: programs that take many edges or vertices at a time; [`kernel`]: of those, compiled
//!   functions behind a C interface.
//! - `options`: what the user chose; [`mod@run`]: a run over shards, synchronous or not;
//!   [`supersteps`]: the loop that all runs share; `sweep`: one pass over the shards, in the order
//!   of a `schedule`, into `sums`; `collect`: the vertex phase; `sparse`: a superstep of few
//!   vertices, the `frontier`, chosen by the `cost_model`; `worklist`: vertices that signal in an
//!   order, without supersteps, along an [`adjacency`], as the supersteps of other long runs do;
//!   [`scan`]: all edges for algorithms of another kind; [`residency`]: which units stay in memory
//!   and how the others stream.
//! - `isolated`: vertices without edges, one state for all. [`plan`]: what a run needs before it
//!   begins, from what the program [`needs`] and the [`extent`] of the graph; [`forecast`]: what it
//!   will take; [`stats`]: what it did; `log`: what is told meanwhile; [`table`]: its result in the
//!   user's ids, `rows`: row after row, `values`: from states.

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
