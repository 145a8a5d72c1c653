//! The graph directory and its readers: shards, single vertices, the graph in memory.

pub mod block_cursor;
pub(crate) mod degree_counter;
pub mod description;
pub mod directory;
pub(crate) mod external_ids;
pub mod external_order;
pub mod graph;
pub mod index;
pub mod lookup;
pub mod matrix;
pub mod name_cursor;
mod names;
pub mod segment_reader;
pub(crate) mod shard_edges;
pub mod shards;
pub mod tables;
pub mod verify;
pub mod versioned;
pub mod weight_range;
