//! Vertices in interchangeable stores, which know neither graphs nor programs.
//!
//! - [`mod@vertex`]: vertices, composed of [`id`]s and [`field`]s.
//! - [`store`]: vertices by id, lent for changes; [`memory`]: live objects; [`serialized`]:
//!   records.
//! - [`record_store`]: bytes by key, the interface for authors of stores; [`mod@bytes`]: in memory,
//!   in an `arena`; [`mod@file`]: on disk.
//! - [`bulk`]: databases as stores of records, in batches; `kv`: an embedded one.
//! - [`serializer`]: the conversion of vertices to records and back.
//! - [`partition_chunk`]: whole partitions as bytes.
//! - [`open`]: stores by name; [`cache`]: live vertices over any store.
//! - `growth`: growing memory, reserved from the budget in steps; `index`: positions by hash.
//! - [`conformance`]: the tests of every store and serializer.
//! - [`error`]: the errors of all these.

mod arena;
pub mod bulk;
pub mod bytes;
pub mod cache;
pub mod conformance;
pub mod error;
pub mod field;
pub mod file;
mod growth;
pub mod id;
mod index;
#[cfg(feature = "kv")]
pub mod kv;
pub mod memory;
pub mod open;
pub mod record_store;
pub mod serialized;
pub mod serializer;
pub mod store;
pub mod vertex;

pub use bulk::{Buffered, BulkStore};
pub use bytes::BytesStore;
pub use cache::{Cache, CacheMemory, Lru, Score};
pub use error::{Error, Result};
pub use field::Field;
pub use file::FileStore;
pub use growth::{Growth, in_steps};
pub use id::{AnyId, Id};
pub use index::index_bytes;
#[cfg(feature = "kv")]
pub use kv::KvStore;
pub use memory::MemoryStore;
pub use open::{PARTITION, PartitionOptions, Schemes, StoreKind};
pub use record_store::RecordStore;
pub use serialized::Serialized;
pub use serializer::Serializer;
pub use store::partition_chunk::{self, PartitionChunk};
pub use store::{Borrower, CacheStats, Loan, StoreStats, VertexStore};
pub use vertex::{Edge, Edges, EdgesMark, Stored, Vertex};
