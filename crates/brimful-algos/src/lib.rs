//! Algorithms, one file each, written against the engine's public traits; and their registry by
//! name.

pub mod betweenness;
pub mod bfs;
pub mod bipartite;
mod blocks;
pub mod closeness;
mod clustering;
pub mod color;
mod communities;
pub mod connected_components;
pub mod count_paths;
pub mod degrees;
mod diameter;
pub mod distances;
mod edge_rows;
pub mod eigenvector;
mod fastrp;
pub mod hits;
mod id_offsets;
pub mod info;
pub mod katz;
pub mod kcore;
mod ktruss;
pub mod label_propagation;
mod neighbor_lists;
mod one_pass;
mod out_weights;
pub mod pagerank;
pub mod parameter;
pub mod partition;
pub mod planning;
mod random_walks;
pub mod registry;
mod request;
pub mod scc;
mod similarity;
mod sorting;
pub mod sources;
mod spanning_forest;
pub mod sssp;
pub mod topological_order;

/// Errors of runs on shards and on stores. Errors of runs on shards keep their types, see
/// [`brimful_execution::Error`].
pub use brimful_execution::{Error, Result};
