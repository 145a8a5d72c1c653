//! Vertices as records in interchangeable stores: the store path.
//!
//! - [`program`]: the interface of algorithms; [`mod@vertex`]: vertices, composed of [`id`]s and
//!   [`field`]s.
//! - [`store`]: vertices by id, lent for changes; [`memory`]: live objects; [`serialized`]:
//!   records.
//! - [`record_store`]: bytes by key, the interface for authors of stores; [`mod@bytes`]: in memory,
//!   in an `arena`; [`mod@file`]: on disk.
//! - [`partition_chunk`]: whole partitions as bytes, from store to store.
//! - [`open`]: stores by name; [`cache`]: live vertices over any store.
//! - [`serializer`]: the conversion of vertices to records and back.
//! - [`lists`]: vertices that are due to signal, and signals that wait to be collected.
//! - [`execution`]: workers, partitions, synchronous and asynchronous runs.
//! - [`from_graph`]: stores filled from a graph; [`numeric`]: programs for shards on any store.
//! - `growth`: growing memory, reserved from the budget in steps; `index`: positions by hash.
//! - [`conformance`]: the tests of every store and serializer.
//! - [`error`]: the errors of all these.

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
pub use open::{PartitionOptions, Schemes};
pub use partition_chunk::PartitionChunk;
pub use program::{COLLECT_THRESHOLD, Delivery, SIGNAL_THRESHOLD, VertexOf, VertexProgram};
pub use record_store::RecordStore;
pub use serialized::Serialized;
pub use serializer::Serializer;
pub use store::{Borrower, CacheStats, Loan, StoreStats, VertexStore};
pub use vertex::{Edge, Edges, EdgesMark, Stored, Vertex};
