//! Before a run: the needs of a program, the extent of a graph, and the division of the budget.

pub(crate) mod cost_model;
pub mod exchange;
pub mod extent;
pub mod forecast;
pub(crate) mod gather;
pub mod memory;
pub mod needs;
pub(crate) mod options;
pub mod partitioning;
pub mod speed;
