//! Algorithms, one file each, written against the engine's public traits; and the registry of their
//! names.

pub mod bfs;
mod clustering;
pub mod color;
pub mod connected_components;
pub mod count_paths;
pub mod degrees;
pub mod delta_pagerank;
mod diameter;
pub mod hits;
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

/// Errors of either path: the disk path's come out as what they are, see
/// [`brimful_vertices::Error`].
pub use brimful_vertices::{Error, Result};
