//! Records in LMDB, an embedded B-tree, by way of `heed`.
//!
//! Ids are written high bytes first, so that neighbors in the tree are consecutive ids. A key that
//! the tree cannot hold is represented by its checksum, and its record begins with the key. LMDB
//! maps its file, so that pages of the file count as memory of the process. When the process comes
//! near its budget, the store gives the pages back; they stay in the page cache of the system.
//! Invariant: no transaction outlives a call, and one that writes holds few pages.
//!
//! Nothing is synced before [`BulkStore::sync`]: a crash may leave an unreadable file. So a folder
//! that a run left without a sync is not opened.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::ops::Bound;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_store::external::{make_folder, require_space};
use brimful_store::memory::{self, Mapping};
use brimful_store::{Budget, Error as StoreError, Reservation};
use heed::types::Bytes;
use heed::{Database, Env, EnvFlags, EnvOpenOptions, PutFlags, RoTxn, RwTxn, WithoutTls};
use xxhash_rust::xxh3::xxh3_128;

use crate::bulk::{BATCH_BYTES, BATCH_RECORDS, BulkStore, Found, Pair};
use crate::error::{Error, Result};

/// Bytes of address space for the map of the file. The file itself is only as large as its records.
const MAX_FILE_BYTES: usize = 1 << 40;
/// A failed write counts as a full disk if less than this is free: LMDB reports a partial write as
/// an I/O error of the device.
const NO_ROOM_BYTES: u64 = 1 << 20;
/// Bytes of the longest key in the tree; one of them is its encoding.
const LONGEST_KEY: usize = 511;
/// The first byte of a key that is a checksum, and of one that is written in full. Older versions
/// wrote keys with their bytes reversed.
const REVERSED: u8 = 0;
const CHECKSUM: u8 = 1;
const WHOLE: u8 = 2;
/// Memory of a page that a transaction changes, and of those above it in the tree.
const PAGE_BYTES: u64 = 8192;
/// Pages of a transaction take at most one part in this many of the memory.
const CHANGED: u64 = 4;
/// Minimum number of records of a transaction.
const MIN_RECORDS: u64 = 16;
/// Memory of the window of pages that the system maps with the one that is read.
const MAPPED_BYTES: usize = 64 << 10;
/// Maximum bytes that are mapped between two checks of the memory of the process.
const MAX_UNCHECKED: u64 = 16 << 20;

/// The records of one partition.
pub struct KvStore {
    env: Env<WithoutTls>,
    tree: Database<Bytes, Bytes>,
    path: PathBuf,
    memory: Reservation,
    mapping: Option<Mapping>,
    /// Resident memory of the process at which the pages of the file are given back: at least
    /// `min_ceiling_bytes`.
    ceiling_bytes: Cell<u64>,
    min_ceiling_bytes: u64,
    /// The pages mapped since the last check of the memory of the process.
    mapped: Mapped,
    /// The last key of a scan.
    scanned: Option<Vec<u8>>,
}

/// A bound of the pages that are mapped because records are read.
#[derive(Debug, Default)]
struct Mapped {
    /// The window of the last record.
    window: Option<usize>,
    bytes: usize,
}

impl Mapped {
    /// Adds the pages of a record: a window for the page above it in the tree, and each of its own
    /// windows but the last one known.
    fn add(&mut self, record: &[u8]) {
        let start = record.as_ptr().addr();
        let (first, last) = (start / MAPPED_BYTES, (start + record.len()) / MAPPED_BYTES);
        if self.window != Some(first) || first != last {
            self.bytes += (last - first + 2) * MAPPED_BYTES;
            self.window = Some(last);
        }
    }
}

impl fmt::Debug for KvStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KvStore").field("path", &self.path).finish_non_exhaustive()
    }
}

impl KvStore {
    /// Creates an empty store in the new folder `path`, with pages of at most `memory_bytes` of
    /// `budget` in the memory of the process.
    ///
    /// # Errors
    /// [`Error::Usage`] if the folder has a store with records; budget errors; I/O.
    pub fn create(path: &Path, memory_bytes: u64, budget: &Arc<Budget>) -> Result<Self> {
        let store = Self::open(path, memory_bytes, budget)?;
        if !store.read(|tree, txn| tree.is_empty(txn))? {
            let place = store.path.display();
            return Err(Error::Usage(format!("{place} holds records of another run; remove it")));
        }
        Ok(store)
    }

    /// Opens the store in the folder `path`, or creates it.
    ///
    /// # Errors
    /// [`Error::Usage`] for the records of an older version; budget errors; I/O.
    pub fn open(path: &Path, memory_bytes: u64, budget: &Arc<Budget>) -> Result<Self> {
        let memory = budget.reserve(memory_bytes, "to keep pages of a store in memory")?;
        make_folder(path)?;
        let path = path.canonicalize().map_err(|e| brimful_store::Error::io(path, "open", e))?;
        // The budget is that of the process, or of brimful besides all other memory of the process.
        let others = memory::resident_bytes().unwrap_or(0);
        let others = others.saturating_sub(budget.limit() - budget.free());
        let all = budget.total().max(budget.limit().saturating_add(others));
        let min_ceiling_bytes = all.saturating_sub(memory.bytes() / 2);
        let ceiling_bytes = Cell::new(min_ceiling_bytes);
        let (env, tree) = environment(&path).map_err(|error| failed(&path, "open", error))?;
        let mapped = Mapped::default();
        let store = Self {
            mapping: Mapping::find(&path.join("data.mdb")),
            env,
            tree,
            path,
            memory,
            ceiling_bytes,
            min_ceiling_bytes,
            mapped,
            scanned: None,
        };
        let is_older = store.read(|tree, txn| {
            Ok(tree.first(txn)?.is_some_and(|(own, _)| own.first() == Some(&REVERSED)))
        })?;
        if is_older {
            let place = store.path.display();
            return Err(Error::Usage(format!(
                "{place} holds records of an older version of brimful; remove it, and load the \
                 vertices again"
            )));
        }
        Ok(store)
    }

    fn read<T>(
        &self,
        work: impl FnOnce(&Database<Bytes, Bytes>, &RoTxn<'_, WithoutTls>) -> heed::Result<T>,
    ) -> Result<T> {
        let done = self.env.read_txn().and_then(|txn| work(&self.tree, &txn));
        done.map_err(|error| failed(&self.path, "read", error))
    }

    /// Calls `work` with `items` in the order of their keys, in transactions of few pages.
    fn write<T>(
        &self,
        items: &[T],
        key: impl Fn(&T) -> &[u8],
        mut work: impl FnMut(&mut RwTxn<'_>, &[u8], &T) -> heed::Result<()>,
    ) -> Result<()> {
        let keys = Keys::new(items.iter().map(&key));
        let records = (self.memory.bytes() / CHANGED / PAGE_BYTES).max(MIN_RECORDS);
        let failed = |error| write_failed(&self.path, error);
        for part in keys.order.chunks(records as usize) {
            let mut txn = self.env.write_txn().map_err(failed)?;
            for &place in part {
                let item = &items[place];
                if !is_short(key(item)) {
                    let there = self.tree.get(&txn, keys.get(place)).map_err(failed)?;
                    there.map_or(Ok(&[][..]), |stored| self.record_of(key(item), stored))?;
                }
                work(&mut txn, keys.get(place), item).map_err(failed)?;
            }
            txn.commit().map_err(failed)?;
        }
        self.give_back();
        Ok(())
    }

    /// The record of `key` in the bytes that the tree has for it.
    ///
    /// # Errors
    /// [`Error::Usage`] if the checksum belongs to another key; corruption.
    fn record_of<'r>(&self, key: &[u8], stored: &'r [u8]) -> Result<&'r [u8]> {
        if is_short(key) {
            return Ok(stored);
        }
        let (own, record) = split(stored).ok_or_else(|| self.damaged())?;
        if own != key {
            return Err(Error::Usage(format!(
                "two ids, one of {} bytes, have the same checksum; use a store other than kv",
                key.len()
            )));
        }
        Ok(record)
    }

    fn damaged(&self) -> Error {
        let problem = "a record ends within its key".into();
        let remedy = "remove the folder and load the vertices again";
        StoreError::Corrupt { path: self.path.clone(), offset: 0, problem, remedy }.into()
    }

    /// Releases the mapped pages of the file if the process is near its budget.
    ///
    /// Memory that no budget covers may grow and stay. Beside it the pages keep half of the memory
    /// that is reserved for them; otherwise each record would release them.
    #[expect(unsafe_code, reason = "only the owner of a mapping knows that it stays")]
    fn give_back(&self) {
        if memory::resident_bytes().is_none_or(|bytes| bytes <= self.ceiling_bytes.get()) {
            return;
        }
        let Some(mapping) = &self.mapping else { return };
        // SAFETY: `env` maps the file at one address until it is dropped, and it is borrowed here.
        unsafe { mapping.release() };
        let others = memory::resident_bytes().unwrap_or(0);
        self.ceiling_bytes.set(self.min_ceiling_bytes.max(others + self.memory.bytes() / 2));
    }

    /// Bytes that may be mapped between two calls of [`KvStore::give_back`]: half of the memory.
    fn max_unchecked(&self) -> usize {
        (self.memory.bytes() / 2).min(MAX_UNCHECKED) as usize
    }
}

#[expect(unsafe_code, reason = "a mapped file is undefined behavior if others change it")]
fn environment(path: &Path) -> heed::Result<(Env<WithoutTls>, Database<Bytes, Bytes>)> {
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(MAX_FILE_BYTES);
    // SAFETY: the folder belongs to one run, which holds a lock on it, and to one store of that
    // run. A store is called by one thread at a time, and no transaction outlives a call, so that
    // locks of LMDB's own are not needed. A crash may lose changes before a sync; then the folder
    // is not opened.
    let env = unsafe {
        options.flags(EnvFlags::NO_LOCK | EnvFlags::NO_SYNC | EnvFlags::NO_READ_AHEAD);
        options.open(path)?
    };
    let mut txn = env.write_txn()?;
    let tree = env.create_database(&mut txn, None)?;
    txn.commit()?;
    Ok((env, tree))
}

fn write_failed(path: &Path, error: heed::Error) -> Error {
    let full = matches!(error, heed::Error::Io(_)) && require_space(path, NO_ROOM_BYTES).is_err();
    let error = if full { io::Error::from(io::ErrorKind::StorageFull).into() } else { error };
    failed(path, "write", error)
}

fn failed(path: &Path, operation: &'static str, error: heed::Error) -> Error {
    match error {
        heed::Error::Io(source) => brimful_store::Error::io(path, operation, source).into(),
        other => Error::Plugin { store: "kv".into(), source: Box::new(other) },
    }
}

fn is_short(key: &[u8]) -> bool {
    key.len() < LONGEST_KEY
}

/// Appends `key` as it is in the tree.
fn write_key(key: &[u8], out: &mut Vec<u8>) {
    if is_short(key) {
        out.push(WHOLE);
        out.extend_from_slice(key);
    } else {
        out.push(CHECKSUM);
        out.extend_from_slice(&xxh3_128(key).to_le_bytes());
    }
}

/// A record as it is in the tree.
fn stored<'r>(key: &[u8], record: &'r [u8], buffer: &'r mut Vec<u8>) -> &'r [u8] {
    if is_short(key) {
        return record;
    }
    buffer.clear();
    buffer.extend_from_slice(&(key.len() as u64).to_le_bytes());
    buffer.extend_from_slice(key);
    buffer.extend_from_slice(record);
    buffer
}

/// The key and the record in the bytes that the tree has for a checksum.
fn split(stored: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = stored.split_first_chunk()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

/// Keys as they are in the tree, and the places of the keys in that order.
struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
    order: Vec<usize>,
}

impl Keys {
    fn new<'k>(keys: impl Iterator<Item = &'k [u8]>) -> Self {
        let (mut bytes, mut ends) = (Vec::new(), Vec::new());
        for key in keys {
            write_key(key, &mut bytes);
            ends.push(bytes.len());
        }
        let mut made = Self { order: (0..ends.len()).collect(), bytes, ends };
        let mut order = std::mem::take(&mut made.order);
        // Of equal keys the first comes first.
        order.sort_by(|a, b| made.get(*a).cmp(made.get(*b)));
        made.order = order;
        made
    }

    fn get(&self, place: usize) -> &[u8] {
        let end = |place: usize| self.ends.get(place).copied().unwrap_or(0);
        let start = place.checked_sub(1).map_or(0, end);
        self.bytes.get(start..end(place)).unwrap_or_default()
    }
}

impl BulkStore for KvStore {
    fn load(&mut self, pairs: &[Pair<'_>]) -> Result<u64> {
        let (mut skipped, mut buffer) = (0, Vec::new());
        self.write(
            pairs,
            |(key, _)| key,
            |txn, own, (key, record)| {
                let value = stored(key, record, &mut buffer);
                match self.tree.put_with_flags(txn, PutFlags::NO_OVERWRITE, own, value) {
                    Err(heed::Error::Mdb(heed::MdbError::KeyExist)) => {
                        skipped += 1;
                        Ok(())
                    }
                    done => done,
                }
            },
        )?;
        Ok(skipped)
    }

    fn get_many(&mut self, keys: &[&[u8]], found: &mut Found<'_>) -> Result<()> {
        let own = Keys::new(keys.iter().copied());
        let (mut outcome, mut mapped) = (Ok(()), std::mem::take(&mut self.mapped));
        self.read(|tree, txn| {
            for &place in &own.order {
                let value = tree.get(txn, own.get(place))?;
                // Without a record the window of its page is unknown.
                match value {
                    Some(value) => mapped.add(value),
                    None => mapped.bytes += MAPPED_BYTES,
                }
                if let (Some(value), Some(key)) = (value, keys.get(place)) {
                    outcome = self.record_of(key, value).and_then(|record| found(place, record));
                    if outcome.is_err() {
                        break;
                    }
                }
                if mapped.bytes >= self.max_unchecked() {
                    self.give_back();
                    mapped = Mapped::default();
                }
            }
            Ok(())
        })?;
        self.mapped = mapped;
        outcome
    }

    fn put_many(&mut self, pairs: &[Pair<'_>]) -> Result<()> {
        let mut buffer = Vec::new();
        self.write(
            pairs,
            |(key, _)| key,
            |txn, own, (key, record)| self.tree.put(txn, own, stored(key, record, &mut buffer)),
        )
    }

    fn remove_many(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.write(keys, |key| key, |txn, own, _| self.tree.delete(txn, own).map(|_| ()))
    }

    fn begin_scan(&mut self) -> Result<()> {
        self.scanned = None;
        Ok(())
    }

    fn next_batch(&mut self, each: &mut dyn FnMut(&[u8], &[u8])) -> Result<bool> {
        let after = self.scanned.take();
        let start = after.as_deref().map_or(Bound::Unbounded, Bound::Excluded);
        let mut is_whole = true;
        let last = self.read(|tree, txn| {
            let (mut bytes, mut last) = (0, None);
            for next in tree.range(txn, &(start, Bound::Unbounded))?.take(BATCH_RECORDS) {
                let (own, value) = next?;
                match own.split_first() {
                    Some((&WHOLE, key)) => each(key, value),
                    // Only `stored` writes the others.
                    _ => match split(value) {
                        Some((key, record)) => each(key, record),
                        None => is_whole = false,
                    },
                }
                bytes += own.len() + value.len();
                last = Some(own);
                if bytes >= BATCH_BYTES {
                    break;
                }
            }
            Ok(last.map(<[u8]>::to_vec))
        })?;
        if !is_whole {
            return Err(self.damaged());
        }
        self.scanned = last;
        self.give_back();
        Ok(self.scanned.is_some())
    }

    fn count(&mut self) -> Result<u64> {
        self.read(|tree, txn| tree.len(txn))
    }

    fn sync(&mut self) -> Result<()> {
        self.env.force_sync().map_err(|error| failed(&self.path, "sync", error))
    }

    fn disk_bytes(&self) -> Result<u64> {
        self.env.real_disk_size().map_err(|error| failed(&self.path, "read", error))
    }
}

#[cfg(test)]
mod tests;
