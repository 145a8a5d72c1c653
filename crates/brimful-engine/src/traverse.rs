//! The edges of a superstep: dense and sparse traversal, and the order of both.

pub mod adjacency;
pub mod by_source;
pub(crate) mod frontier;
pub(crate) mod interval_edges;
pub(crate) mod priority_queue;
pub mod residency;
pub mod scan;
pub(crate) mod schedule;
pub(crate) mod sparse;
pub(crate) mod sums;
pub(crate) mod sweep;
