//! Algorithms, one file each, written against the engine's public traits; and their registry by
//! name.

pub mod bfs;
mod clustering;
pub mod color;
pub mod connected_components;
pub mod count_paths;
pub mod degrees;
mod diameter;
pub mod hits;
pub mod info;
pub mod kcore;
pub mod label_propagation;
mod out_weights;
pub mod pagerank;
pub mod planning;
pub mod registry;
mod request;
pub mod scc;
pub mod sources;
pub mod sssp;

/// Errors of runs on shards and on stores. Those on shards keep their types, see
/// [`brimful_execution::Error`].
pub use brimful_execution::{Error, Result};
