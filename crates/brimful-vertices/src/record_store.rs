//! Bytes by key: the interface for authors of stores.
//!
//! Keys are ids, records are vertices without their ids, both serialized. A store belongs to one
//! worker, so there are no locks.

use crate::error::Result;

/// Receives a key and its record. Returns true if it wrote a new record into the buffer, which is
/// empty before, to replace the old one.
pub type Visitor<'f> = dyn FnMut(&[u8], &[u8], &mut Vec<u8>) -> Result<bool> + 'f;

/// Records by key.
pub trait RecordStore: Send {
    /// Calls `found` with the record of `key`; false if there is none.
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool>;

    /// Adds or replaces a record.
    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()>;

    /// Replaces a record that exists.
    fn replace(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        self.put(key, record)
    }

    /// Adds a record whose key is new.
    fn add(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        self.put(key, record)
    }

    /// Removes a record; false if it does not exist.
    fn remove(&mut self, key: &[u8]) -> Result<bool>;

    /// Calls `visitor` once for every record, in any order, and replaces those that it changes. A
    /// replaced record is not visited again.
    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()>;

    /// Number of records.
    fn len(&self) -> u64;

    /// Makes all changes as durable as the store can.
    fn sync(&mut self) -> Result<()>;

    /// Bytes of memory, including indexes and unused space, and bytes on disk.
    fn bytes(&self) -> Result<(u64, u64)>;

    /// True if the store reads or writes bytes that the traffic of the job does not count.
    fn has_uncounted_bytes(&self) -> bool {
        true
    }

    /// True if there is no record.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Prepares for about `more` records.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let _ = more;
        Ok(())
    }

    /// Adds a record; false, without effect, if its key exists.
    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<bool> {
        let is_new = !self.get(key, &mut |_| Ok(()))?;
        if is_new {
            self.put(key, record)?;
        }
        Ok(is_new)
    }

    /// Adds records, the first of each key; returns the number skipped.
    fn insert_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<u64> {
        let mut left_out = 0;
        for (key, record) in pairs {
            left_out += u64::from(!self.insert(key, record)?);
        }
        Ok(left_out)
    }

    /// The number of keys that a caller should announce at a time; 0 if the store gains nothing.
    fn lookahead(&self) -> usize {
        0
    }

    /// Announces distinct keys whose records will be read next.
    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        let _ = keys;
        Ok(())
    }
}

impl<T: RecordStore + ?Sized> RecordStore for Box<T> {
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        (**self).get(key, found)
    }
    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        (**self).put(key, record)
    }
    fn replace(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        (**self).replace(key, record)
    }
    fn add(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        (**self).add(key, record)
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
    fn has_uncounted_bytes(&self) -> bool {
        (**self).has_uncounted_bytes()
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
    fn lookahead(&self) -> usize {
        (**self).lookahead()
    }
    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        (**self).prefetch(keys)
    }
}
