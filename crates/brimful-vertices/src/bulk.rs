//! Databases as stores of records: whole batches instead of single records.
//!
//! [`BulkStore`] is the interface for databases, and [`Buffered`] makes a [`RecordStore`] of a
//! database. The buffer holds the records of the next vertices, which a worker announces, and
//! changed records until it is full. Invariant: a dirty entry is newer than the database; a clean
//! one is the same; a dirty entry leaves the buffer only after the database has accepted it.

use std::sync::Arc;

use brimful_store::{Budget, Reservation};
use hashbrown::HashMap;

use crate::error::Result;
use crate::record_store::{RecordStore, Visitor};

/// A key and its record.
pub type Pair<'p> = (&'p [u8], &'p [u8]);

/// The receiver of found records: the position of the key, and the record.
pub type Found<'f> = dyn FnMut(usize, &[u8]) -> Result<()> + 'f;

/// Records by key in a database, in batches of at most [`BATCH_RECORDS`] and about [`BATCH_BYTES`].
pub trait BulkStore: Send {
    /// Adds records, the first of each key; returns the number skipped.
    fn load(&mut self, pairs: &[Pair<'_>]) -> Result<u64>;

    /// Calls `found` for each of `keys` that has a record; the keys are distinct.
    fn get_many(&mut self, keys: &[&[u8]], found: &mut Found<'_>) -> Result<()>;

    /// Adds or replaces records; the keys are distinct.
    fn put_many(&mut self, pairs: &[Pair<'_>]) -> Result<()>;

    /// Removes records; keys without a record have no effect.
    fn remove_many(&mut self, keys: &[&[u8]]) -> Result<()>;

    /// Begins a scan of all records, in any order. Another scan ends here.
    fn begin_scan(&mut self) -> Result<()>;

    /// Passes on the next records of the scan; false at its end. Records that were passed on may be
    /// replaced before the next call, and do not appear again.
    fn next_batch(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool>;

    /// Number of records.
    fn count(&mut self) -> Result<u64>;

    /// Makes all changes as durable as the database can.
    fn sync(&mut self) -> Result<()>;

    /// Bytes on disk; 0 if the database does not report them.
    fn disk_bytes(&self) -> Result<u64>;
}

/// The maximum number of records of a batch; [`BATCH_BYTES`] is the number of bytes at which a
/// batch is full.
pub const BATCH_RECORDS: usize = 1024;
/// See [`BATCH_RECORDS`].
pub const BATCH_BYTES: usize = 256 << 10;

/// Minimum bytes of a buffer.
const MIN_BYTES: u64 = 1 << 20;
/// Maximum bytes of a buffer: more memory serves a database better in its own cache.
const MAX_BYTES: u64 = 64 << 20;
/// Approximate bytes of an entry besides its key and its record.
const ENTRY_BYTES: usize = 96;

/// The share of a buffer of `memory_bytes` that holds entries. The batches in flight take the rest.
const ENTRIES: (u64, u64) = (1, 2);

#[derive(Debug)]
struct Entry {
    /// `None`: there is no record, or it is to be removed.
    record: Option<Vec<u8>>,
    is_dirty: bool,
}

/// A database as a store of records.
#[derive(Debug)]
pub struct Buffered<B> {
    below: B,
    entries: HashMap<Box<[u8]>, Entry>,
    bytes: usize,
    max_bytes: usize,
    len: u64,
    memory: Reservation,
}

impl<B: BulkStore> Buffered<B> {
    /// The records of `below`, with a buffer of at most `memory_bytes` of `budget`.
    ///
    /// # Errors
    /// A budget error for less than a mebibyte; errors of `below`.
    pub fn new(mut below: B, memory_bytes: u64, budget: &Arc<Budget>) -> Result<Self> {
        let bytes = memory_bytes.clamp(MIN_BYTES, MAX_BYTES);
        let memory = budget.reserve(bytes, "to keep records of a database in memory")?;
        let len = below.count()?;
        let max_bytes = (bytes * ENTRIES.0 / ENTRIES.1) as usize;
        Ok(Self { below, entries: HashMap::new(), bytes: 0, max_bytes, len, memory })
    }

    /// Writes the dirty entries.
    fn flush(&mut self) -> Result<()> {
        let Self { below, entries, .. } = self;
        let dirty = || entries.iter().filter(|(_, entry)| entry.is_dirty);
        let mut pairs: Vec<Pair<'_>> =
            dirty().filter_map(|(key, entry)| Some((&**key, entry.record.as_deref()?))).collect();
        // Ids are written high bytes first, so that consecutive ones get into one batch.
        pairs.sort_unstable_by_key(|(key, _)| *key);
        for batch in batches(&pairs, |(key, record)| key.len() + record.len()) {
            below.put_many(batch)?;
        }
        let gone: Vec<&[u8]> =
            dirty().filter(|(_, entry)| entry.record.is_none()).map(|(key, _)| &**key).collect();
        for batch in batches(&gone, |key| key.len()) {
            below.remove_many(batch)?;
        }
        entries.values_mut().for_each(|entry| entry.is_dirty = false);
        Ok(())
    }

    /// Empties the buffer.
    fn clear(&mut self) -> Result<()> {
        self.flush()?;
        self.entries.clear();
        self.bytes = 0;
        Ok(())
    }

    /// Empties the buffer if it has no room for `bytes` more bytes.
    fn make_room(&mut self, bytes: usize) -> Result<()> {
        if self.bytes + bytes > self.max_bytes && self.bytes > 0 { self.clear() } else { Ok(()) }
    }

    /// Reads the records of `keys`, which are not in the buffer; false if some were left out.
    fn fetch(&mut self, keys: &[&[u8]]) -> Result<bool> {
        let Self { below, entries, bytes, max_bytes, .. } = self;
        let mut found: Vec<Option<Vec<u8>>> = vec![None; keys.len()];
        let mut sum = *bytes;
        // Records that exceed the memory for entries are left out; each is read again alone when it
        // is needed.
        let mut left = false;
        below.get_many(keys, &mut |place, record| {
            if let (Some(key), Some(slot)) = (keys.get(place), found.get_mut(place)) {
                sum += entry_bytes(key, Some(record));
                left |= sum > *max_bytes && keys.len() > 1;
                *slot = (!left).then(|| record.to_vec());
            }
            Ok(())
        })?;
        for (key, record) in keys.iter().zip(found) {
            if left && record.is_none() {
                continue;
            }
            *bytes += entry_bytes(key, record.as_deref());
            entries.insert((*key).into(), Entry { record, is_dirty: false });
        }
        Ok(!left)
    }

    /// Brings the entry of `key` into the buffer; true if it has a record.
    fn find(&mut self, key: &[u8]) -> Result<bool> {
        if !self.entries.contains_key(key) {
            self.make_room(entry_bytes(key, None))?;
            self.fetch(&[key])?;
        }
        Ok(self.entries.get(key).is_some_and(|entry| entry.record.is_some()))
    }

    /// Changes an entry; `None` removes the record.
    fn change(&mut self, key: &[u8], record: Option<&[u8]>) -> Result<()> {
        self.make_room(entry_bytes(key, record))?;
        let entry = Entry { record: record.map(<[u8]>::to_vec), is_dirty: true };
        self.bytes += entry_bytes(key, record);
        if let Some(old) = self.entries.insert(key.into(), entry) {
            self.bytes -= entry_bytes(key, old.record.as_deref());
        }
        Ok(())
    }
}

fn entry_bytes(key: &[u8], record: Option<&[u8]>) -> usize {
    ENTRY_BYTES + key.len() + record.map_or(0, <[u8]>::len)
}

/// Parts of `items` of at most [`BATCH_RECORDS`]. A part ends with the item that makes it reach
/// [`BATCH_BYTES`].
fn batches<T>(mut items: &[T], bytes: impl Fn(&T) -> usize) -> impl Iterator<Item = &[T]> {
    std::iter::from_fn(move || {
        let mut sum = 0;
        let full = items.iter().take(BATCH_RECORDS).take_while(|item| {
            let is_open = sum < BATCH_BYTES;
            sum += bytes(item);
            is_open
        });
        let (batch, rest) = items.split_at(full.count());
        items = rest;
        (!batch.is_empty()).then_some(batch)
    })
}

impl<B: BulkStore> RecordStore for Buffered<B> {
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        self.find(key)?;
        match self.entries.get(key).and_then(|entry| entry.record.as_deref()) {
            Some(record) => found(record).map(|()| true),
            None => Ok(false),
        }
    }

    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        self.len += u64::from(!self.find(key)?);
        self.change(key, Some(record))
    }

    fn replace(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        self.change(key, Some(record))
    }

    fn add(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        self.len += 1;
        self.change(key, Some(record))
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        let is_there = self.find(key)?;
        if is_there {
            self.len -= 1;
            self.change(key, None)?;
        }
        Ok(is_there)
    }

    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()> {
        self.clear()?;
        self.below.begin_scan()?;
        let mut batch: Vec<(Vec<u8>, Vec<u8>)> = Vec::new();
        let mut changed = Vec::new();
        let mut out = Vec::new();
        while self.below.next_batch(&mut |key, record| batch.push((key.into(), record.into())))? {
            let mut visited = Ok(());
            for (key, record) in batch.drain(..) {
                out.clear();
                match visitor(&key, &record, &mut out) {
                    Ok(true) => changed.push((key, out.clone())),
                    Ok(false) => {}
                    Err(error) => {
                        visited = Err(error);
                        break;
                    }
                }
            }
            let pairs: Vec<Pair<'_>> =
                changed.iter().map(|(key, record)| (key.as_slice(), record.as_slice())).collect();
            for batch in batches(&pairs, |(key, record)| key.len() + record.len()) {
                self.below.put_many(batch)?;
            }
            changed.clear();
            visited?;
        }
        Ok(())
    }

    fn len(&self) -> u64 {
        self.len
    }

    fn sync(&mut self) -> Result<()> {
        self.flush()?;
        self.below.sync()
    }

    fn bytes(&self) -> Result<(u64, u64)> {
        Ok((self.memory.bytes(), self.below.disk_bytes()?))
    }

    fn insert(&mut self, key: &[u8], record: &[u8]) -> Result<bool> {
        let is_new = !self.find(key)?;
        if is_new {
            self.len += 1;
            self.change(key, Some(record))?;
        }
        Ok(is_new)
    }

    fn insert_many(&mut self, pairs: &[Pair<'_>]) -> Result<u64> {
        self.clear()?;
        let mut skipped = 0;
        for batch in batches(pairs, |(key, record)| key.len() + record.len()) {
            skipped += self.below.load(batch)?;
        }
        self.len += pairs.len() as u64 - skipped;
        Ok(skipped)
    }

    fn lookahead(&self) -> usize {
        BATCH_RECORDS
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        let missing = |entries: &HashMap<Box<[u8]>, Entry>, key: &[u8]| !entries.contains_key(key);
        let new: Vec<&[u8]> =
            keys.iter().copied().filter(|key| missing(&self.entries, key)).collect();
        if new.is_empty() {
            return Ok(());
        }
        // The new records take about as much as those before. If they take more, the others leave.
        let mean_bytes = self.bytes / self.entries.len().max(1);
        let new_bytes = new.len() * mean_bytes.max(ENTRY_BYTES);
        let was_empty = self.entries.is_empty();
        if self.bytes + new_bytes <= self.max_bytes && (self.fetch(&new)? || was_empty) {
            return Ok(());
        }
        self.clear()?;
        self.fetch(keys)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Mutex;

    use super::*;
    use crate::conformance::{
        SampleVertex, check_id_types, check_records, check_vertices, samples,
    };
    use crate::error::Error;
    use crate::serializer::Compact;
    use crate::{Serialized, VertexStore};

    /// A database in memory that counts its calls and fails on request.
    #[derive(Debug, Default)]
    struct Database {
        records: BTreeMap<Vec<u8>, Vec<u8>>,
        last: Option<Vec<u8>>,
        calls: Arc<Mutex<Calls>>,
    }

    #[derive(Debug, Default)]
    struct Calls {
        gets: u64,
        puts: u64,
        fails: bool,
    }

    impl BulkStore for Database {
        fn load(&mut self, pairs: &[Pair<'_>]) -> Result<u64> {
            let before = self.records.len();
            for (key, record) in pairs {
                self.records.entry(key.to_vec()).or_insert_with(|| record.to_vec());
            }
            Ok((pairs.len() + before - self.records.len()) as u64)
        }

        fn get_many(&mut self, keys: &[&[u8]], found: &mut Found<'_>) -> Result<()> {
            self.calls.lock().unwrap().gets += 1;
            for (place, key) in keys.iter().enumerate() {
                if let Some(record) = self.records.get(*key) {
                    found(place, record)?;
                }
            }
            Ok(())
        }

        fn put_many(&mut self, pairs: &[Pair<'_>]) -> Result<()> {
            let mut calls = self.calls.lock().unwrap();
            if calls.fails {
                return Err(Error::Usage("the database is away".into()));
            }
            calls.puts += 1;
            assert!(pairs.len() <= BATCH_RECORDS);
            self.records.extend(pairs.iter().map(|(key, record)| (key.to_vec(), record.to_vec())));
            Ok(())
        }

        fn remove_many(&mut self, keys: &[&[u8]]) -> Result<()> {
            keys.iter().for_each(|key| drop(self.records.remove(*key)));
            Ok(())
        }

        fn begin_scan(&mut self) -> Result<()> {
            self.last = None;
            Ok(())
        }

        fn next_batch(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool> {
            use std::ops::Bound::{Excluded, Unbounded};
            let after = self.last.take().map_or(Unbounded, Excluded);
            let batch = self.records.range((after, Unbounded)).take(100);
            let batch: Vec<_> = batch.map(|(key, record)| (key.clone(), record.clone())).collect();
            batch.iter().for_each(|(key, record)| each(key, record));
            self.last = batch.last().map(|(key, _)| key.clone());
            Ok(self.last.is_some())
        }

        fn count(&mut self) -> Result<u64> {
            Ok(self.records.len() as u64)
        }

        fn sync(&mut self) -> Result<()> {
            Ok(())
        }

        fn disk_bytes(&self) -> Result<u64> {
            Ok(0)
        }
    }

    fn budget() -> Arc<Budget> {
        Budget::new(64 << 20, 0)
    }

    #[test]
    fn a_database_conforms() {
        let budget = budget();
        let make = || Buffered::new(Database::default(), 1 << 20, &budget);
        check_records(&mut || make()).unwrap();
        check_vertices(&mut || Ok(Serialized::new(make()?, Compact))).unwrap();
        check_id_types(Serialized::new(make().unwrap(), Compact)).unwrap();
    }

    #[test]
    fn announced_vertices_are_read_in_one_batch_and_written_in_another() {
        let database = Database::default();
        let calls = Arc::clone(&database.calls);
        let mut store =
            Serialized::new(Buffered::new(database, 8 << 20, &budget()).unwrap(), Compact);
        store.load(&mut samples().into_iter()).unwrap();
        let ids: Vec<u64> = samples().iter().map(|vertex| *vertex.id()).collect();
        let keys: Vec<Vec<u8>> = ids
            .iter()
            .map(|id| {
                let mut key = Vec::new();
                crate::Field::write(id, &mut key);
                key
            })
            .collect();
        let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
        store.prefetch(&keys).unwrap();
        for id in &ids {
            let change = &mut |vertex: &mut crate::Loan<'_, SampleVertex>| {
                vertex.state += 1.0;
                Ok(())
            };
            assert!(store.lend(id, change).unwrap());
        }
        store.sync().unwrap();
        let calls = calls.lock().unwrap();
        assert_eq!((calls.gets, calls.puts), (1, 1));
    }

    #[test]
    fn a_failed_write_is_repeated_and_loses_nothing() {
        let database = Database::default();
        let calls = Arc::clone(&database.calls);
        let mut store = Buffered::new(database, 1 << 20, &budget()).unwrap();
        store.put(b"a", b"1").unwrap();
        calls.lock().unwrap().fails = true;
        store.sync().unwrap_err();
        calls.lock().unwrap().fails = false;
        store.sync().unwrap();
        assert_eq!(store.below.records[b"a".as_slice()], b"1");
    }

    #[test]
    fn records_larger_than_the_buffer_pass_through_it() {
        let mut store = Buffered::new(Database::default(), 1 << 20, &budget()).unwrap();
        let large = vec![7; 3 << 20];
        let keys: [&[u8]; 3] = [b"a", b"b", b"c"];
        for key in keys {
            store.put(key, &large).unwrap();
        }
        store.prefetch(&keys).unwrap();
        for key in keys {
            let mut length = 0;
            store
                .get(key, &mut |record| {
                    length = record.len();
                    Ok(())
                })
                .unwrap();
            assert_eq!(length, large.len());
        }
        assert_eq!(store.len(), 3);
    }

    #[test]
    fn large_records_after_small_ones_do_not_overfill_the_buffer() {
        let mut database = Database::default();
        let calls = Arc::clone(&database.calls);
        let key = |id: u64| id.to_be_bytes().to_vec();
        let length = |id| if id < 1000 { 200 } else { 8000 };
        database.records.extend((0..1050).map(|id| (key(id), vec![7; length(id)])));
        let mut store = Buffered::new(database, 1 << 20, &budget()).unwrap();
        for ids in [0..1000, 1000..1050] {
            let keys: Vec<Vec<u8>> = ids.clone().map(key).collect();
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            store.prefetch(&keys).unwrap();
            assert!(store.bytes <= store.max_bytes, "{} bytes", store.bytes);
            for (id, key) in ids.zip(keys) {
                let mut found = 0;
                store
                    .get(key, &mut |record| {
                        found = record.len();
                        Ok(())
                    })
                    .unwrap();
                assert_eq!(found, length(id));
            }
        }
        // The large records are read once with the small ones in the buffer, and once without.
        assert_eq!(calls.lock().unwrap().gets, 3);
    }
}
