//! Vertices and edges: from the user's file to shards on disk, and back.
//!
//! The modules are in the order in which an edge passes through them. A module imports only modules
//! listed above it.
//!
//! - [`edges`] holds edges on their way, [`codec`] packs them, [`message`] takes them between
//!   processes, [`random`] gives random numbers.
//! - [`ids`]: external ids, integers or names. [`order`]: the internal order of vertices.
//! - [`input`]: formats, columns, the first pass over an input, self-loops and duplicates.
//!   [`generate`]: graphs made from a seed.
//! - [`read`]: the graph directory, its shards, single vertices, the check of all its bytes.
//! - [`build`]: from input to graph: ids, degrees, and edges sorted into shards.
//! - [`export`]: the graph as a file.

pub mod codec;
pub mod edges;
pub mod error;
pub mod export;
pub mod generate;
pub mod input_position;
pub mod message;
pub mod random;

pub mod build;
pub mod ids;
pub mod input;
pub mod order;
pub mod read;

pub use error::{Error, Result};
pub use read::graph::Graph;
pub use read::index::Index;
