//! Algorithms: one file each, with a verifier that is a different algorithm.

pub mod connected_components;
pub mod pagerank;
pub mod registry;
