//! Bytes by key: what the author of a store writes.
//!
//! Keys are ids, records are vertices without their ids, both already serialized. A store belongs
//! to one worker: there are no locks.

use crate::error::Result;
use crate::partition_chunk::PartitionChunk;

/// Sees a key and its record; returns true if it put a new record into the buffer, which is empty
/// before, to replace the old one.
pub type Visitor<'f> = dyn FnMut(&[u8], &[u8], &mut Vec<u8>) -> Result<bool> + 'f;

/// Records by key.
pub trait RecordStore: Send {
    /// Lets `found` see the record of `key`; false if there is none.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;

    /// Stores a record, whether or not there is one of that key.
    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()>;

    /// Removes a record; false if there is none.
    fn remove(&mut self, key: &[u8]) -> Result<bool>;

    /// Lets `visitor` see every record once, in any order, and replaces those that it changes. A
    /// record that is replaced is not seen again.
    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()>;

    /// Number of records.
    fn len(&self) -> u64;

    /// Makes everything as durable as the store can.
    fn sync(&mut self) -> Result<()>;

    /// Bytes of memory, indexes and unused space included, and bytes on disk.
    fn bytes(&self) -> Result<(u64, u64)>;

    /// True if there is no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prepares for `more` records, about.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let _ = more;
        Ok(())
    }

    /// Adds a record; false if there is one of that key, which stays as it is.
    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<bool> {
        let is_new = !self.get(key, &mut |_| Ok(()))?;
        if is_new {
            self.put(key, record)?;
        }
        Ok(is_new)
    }

    /// Adds records, the first of each key; returns how many were left out.
    fn insert_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<u64> {
        let mut left_out = 0;
        for (key, record) in pairs {
            left_out += u64::from(!self.insert(key, record)?);
        }
        Ok(left_out)
    }

    /// Adds the records of a chunk, the first of each key; returns how many were left out.
    fn adopt(&mut self, chunk: &PartitionChunk) -> Result<u64> {
        let pairs: Vec<(&[u8], &[u8])> = chunk.records().collect();
        self.insert_many(&pairs)
    }

    /// Lets `found` see the records of these keys, in their order, each with its place in `keys`;
    /// keys without a record are passed over.
    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        for (index, key) in keys.iter().enumerate() {
            self.get(key, &mut |record| found(index, record))?;
        }
        Ok(())
    }

    /// Stores records, whether or not there are some of these keys, each at most once in `pairs`.
    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        pairs.iter().try_for_each(|(key, record)| self.put(key, record))
    }
}

impl<T: RecordStore + ?Sized> RecordStore for Box<T> {
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        (**self).get(key, found)
    }
    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        (**self).put(key, record)
    }
    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        (**self).remove(key)
    }
    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()> {
        (**self).for_each(visitor)
    }
    fn len(&self) -> u64 {
        (**self).len()
    }
    fn sync(&mut self) -> Result<()> {
        (**self).sync()
    }
    fn bytes(&self) -> Result<(u64, u64)> {
        (**self).bytes()
    }
    fn reserve(&mut self, more: usize) -> Result<()> {
        (**self).reserve(more)
    }
    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<bool> {
        (**self).insert(key, record)
    }
    fn insert_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<u64> {
        (**self).insert_many(pairs)
    }
    fn adopt(&mut self, chunk: &PartitionChunk) -> Result<u64> {
        (**self).adopt(chunk)
    }
    fn get_many(
        &mut self,
        keys: &[&[u8]],
        found: &mut dyn FnMut(usize, &[u8]) -> Result<()>,
    ) -> Result<()> {
        (**self).get_many(keys, found)
    }
    fn put_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<()> {
        (**self).put_many(pairs)
    }
}
