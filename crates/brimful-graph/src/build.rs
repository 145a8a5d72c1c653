//! From batches of edges to a graph directory: ids, degrees, and edges sorted into shards.

pub(crate) mod degrees;
pub mod divided;
pub(crate) mod edge_writer;
pub mod import;
pub mod mapping;
pub mod numbering;
pub mod probe;
pub mod records;
pub mod shards;
pub mod sizes;
pub mod tables;
pub mod weights;
