//! Vertices as records in exchangeable stores: the store path.
//!
//! - [`program`]: what an algorithm provides; [`mod@vertex`]: what it works on; [`id`] and [`field`]: what those are made of.
//! - [`store`]: vertices by id, lent to whoever changes them; [`memory`]: live objects.
//! - [`record_store`]: bytes by key, what the author of a store writes.
//! - `growth`: memory that grows, taken from the budget in steps.
//! - [`error`]: what can go wrong.

pub mod error;
pub mod field;
mod growth;
pub mod id;
pub mod memory;
pub mod program;
pub mod record_store;
pub mod store;
pub mod vertex;

pub use error::{Error, Failure, Result};
pub use field::Field;
pub use growth::Growth;
pub use id::{AnyId, Id};
pub use memory::MemoryStore;
pub use program::{COLLECT_THRESHOLD, Delivery, SIGNAL_THRESHOLD, VertexOf, VertexProgram};
pub use record_store::RecordStore;
pub use store::{CacheStats, Loan, StoreStats, VertexStore};
pub use vertex::{Edge, Edges, Stored, Vertex};
