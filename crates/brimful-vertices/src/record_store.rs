//! Bytes by key: what the author of a store writes.
//!
//! Keys are ids, records are vertices without their ids, both already serialized. A store belongs to one worker.

use crate::error::Result;

/// Sees a key and its record; returns true if it put a new record into the buffer, which then replaces the old one.
pub type Visitor<'f> = dyn FnMut(&[u8], &[u8], &mut Vec<u8>) -> Result<bool> + 'f;

/// Records by key.
pub trait RecordStore: Send {
    /// Lets `found` see the record of `key`; false if there is none.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;

    /// Stores a record, whether or not there is one of that key; true if there was none.
    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<bool>;

    /// Removes a record; false if there is none.
    fn remove(&mut self, key: &[u8]) -> Result<bool>;

    /// Lets `visitor` see every record once, in any order, and replaces those that it changes.
    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()>;

    /// Number of records.
    fn len(&self) -> u64;

    /// True if there is no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Makes everything as durable as the store can.
    fn sync(&mut self) -> Result<()>;

    /// Bytes of memory and bytes on disk.
    fn bytes(&self) -> Result<(u64, u64)>;
}
