//! Time: supersteps over the shards of a graph.
//!
//! - [`program`]: what an algorithm provides.
//! - [`mod@run`]: the superstep loop; `sweep`: one pass over the shards; `collect`: the vertex phase;
//!   [`residency`]: which units stay in memory and how the others stream.
//! - `isolated`: vertices without edges, one state for all. [`plan`]: what a run needs before it begins; [`stats`]: what it did;
//!   [`table`]: its result in the user's ids, `rows`: row after row.

mod collect;
pub mod error;
mod isolated;
pub mod plan;
pub mod program;
pub mod residency;
mod rows;
pub mod run;
pub mod stats;
mod sweep;
pub mod table;

pub use error::{Error, Result};
pub use isolated::Isolated;
pub use program::{Aggregate, Globals, Mode, Program, Vertex};
pub use rows::Rows;
pub use run::{Output, RunOptions, run};
pub use stats::{Reason, Stats};
pub use table::{ResultTable, Values};
