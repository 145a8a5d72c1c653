//! Vertices as records in exchangeable stores: the store path.
//!
//! - [`program`]: what an algorithm provides; [`mod@vertex`]: what it works on; [`id`] and [`field`]: what those are made of.
//! - [`store`]: vertices by id, lent to whoever changes them; [`memory`]: live objects; [`serialized`]: records.
//! - [`record_store`]: bytes by key, what the author of a store writes; [`mod@bytes`]: in memory, `arena` below it; [`mod@file`]: on disk.
//! - [`partition_chunk`]: whole partitions as bytes, from store to store.
//! - [`open`]: stores by name; [`cache`]: live vertices over any store.
//! - [`serializer`]: how vertices become records.
//! - [`lists`]: vertices that are to signal, and signals that are to be collected.
//! - [`execution`]: workers, partitions, synchronous and asynchronous runs.
//! - [`from_graph`]: stores filled from a graph; [`numeric`]: programs of the disk path on any store.
//! - `growth`: memory that grows, taken from the budget in steps; `index`: where things are, by hash.
//! - [`conformance`]: what every store and serializer must do.
//! - [`error`]: what can go wrong.

mod arena;
pub mod bytes;
pub mod cache;
pub mod conformance;
pub mod error;
pub mod execution;
pub mod field;
pub mod file;
pub mod from_graph;
mod growth;
pub mod id;
mod index;
pub mod lists;
pub mod memory;
pub mod numeric;
pub mod open;
pub mod partition_chunk;
pub mod program;
pub mod record_store;
pub mod serialized;
pub mod serializer;
pub mod store;
pub mod vertex;

pub use bytes::BytesStore;
pub use cache::{Cache, Lru, Score};
pub use error::{Error, Failure, Result};
pub use execution::{
    Execution, ExecutionOptions, Limits, Lists, Loading, Mode, Partitioner, Pause, Schedule, Stats,
};
pub use field::Field;
pub use file::FileStore;
pub use growth::Growth;
pub use id::{AnyId, Id};
pub use memory::MemoryStore;
pub use open::{Place, Schemes};
pub use partition_chunk::PartitionChunk;
pub use program::{COLLECT_THRESHOLD, Delivery, SIGNAL_THRESHOLD, VertexOf, VertexProgram};
pub use record_store::RecordStore;
pub use serialized::Serialized;
pub use serializer::Serializer;
pub use store::{Borrower, CacheStats, Loan, StoreStats, VertexStore};
pub use vertex::{Edge, Edges, EdgesMark, Stored, Vertex};
