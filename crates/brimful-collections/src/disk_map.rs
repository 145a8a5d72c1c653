//! A map from keys to values, both of any length.
//!
//! A table of hashed keys refers to the records of a bag. A record is a chain of all keys with the
//! same hash, each with its values. Invariant: keys are compared in full, so keys with equal hashes
//! stay distinct.

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use brimful_store::Folder;

use crate::bag::{RecordBag, Records};
use crate::by_range::Asked;
use crate::error::{Error, Result};
use crate::fields::u32_at;
use crate::hash_pages::mix;
use crate::options::Options;
use crate::partition_log::PartitionLog;

const SCHEMA: &[u8] = b"map";
const LOCKS: usize = 64;
/// Keys per batch of look-ups.
const BATCH: usize = 1 << 16;
/// Bytes of a link besides key and value: their lengths.
const LINK_BYTES: usize = 8;

/// A map from keys to one or more values each, larger than memory.
///
/// ```
/// # use std::sync::Arc;
/// use brimful_collections::{DiskMap, Options};
/// use brimful_store::{Budget, Job, Resources};
///
/// # let folder = tempfile::tempdir()?;
/// let resources = Arc::new(Resources::new(Budget::new(16 << 20, 0), Arc::new(Job::new()), None)?);
/// let map = DiskMap::open(&folder.path().join("map"), Options::new(&resources))?;
/// map.insert(b"one", b"1")?;
/// map.chain(b"one", b"uno")?;
/// assert_eq!(map.get(b"one")?.as_deref(), Some(b"1".as_slice()));
/// assert_eq!(map.get_all(b"one")?, [b"1".to_vec(), b"uno".to_vec()]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DiskMap {
    bag: RecordBag,
    /// Locks that order the changes of keys with equal hashes.
    locks: Vec<Mutex<()>>,
}

/// A key with one value in a chain.
struct Link<'a> {
    key: &'a [u8],
    value: &'a [u8],
    len: usize,
}

/// The links of a chain. An item `None` means that the chain is damaged, and is the last one.
fn links(chain: &[u8]) -> impl Iterator<Item = Option<Link<'_>>> {
    let mut rest = chain;
    std::iter::from_fn(move || {
        if rest.is_empty() {
            return None;
        }
        if rest.len() < LINK_BYTES {
            rest = &[];
            return Some(None);
        }
        let (key_len, value_len) = (u32_at(rest, 0) as usize, u32_at(rest, 4) as usize);
        let len = LINK_BYTES + key_len + value_len;
        let key_end = LINK_BYTES + key_len;
        let link = (rest.get(LINK_BYTES..key_end), rest.get(key_end..len));
        rest = rest.get(len..).unwrap_or_default();
        match link {
            (Some(key), Some(value)) => Some(Some(Link { key, value, len })),
            _ => {
                rest = &[];
                Some(None)
            }
        }
    })
}

/// A check of a chain piece by piece: all its keys have one hash, and its last link is complete.
struct ChainCheck {
    hash: u64,
    /// The lengths and the key of the link, as far as they were read.
    head: Vec<u8>,
    /// Bytes of its value that were not read.
    value: usize,
    is_right: bool,
}

impl ChainCheck {
    fn new(hash: u64) -> Self {
        Self { hash, head: Vec::new(), value: 0, is_right: true }
    }

    fn add(&mut self, mut piece: &[u8]) {
        while !piece.is_empty() {
            if self.value > 0 {
                let (value, rest) = piece.split_at(self.value.min(piece.len()));
                (self.value, piece) = (self.value - value.len(), rest);
                continue;
            }
            let key = if self.head.len() < LINK_BYTES { 0 } else { u32_at(&self.head, 0) as usize };
            let missing = LINK_BYTES + key - self.head.len();
            let (head, rest) = piece.split_at(missing.min(piece.len()));
            self.head.extend_from_slice(head);
            piece = rest;
            let Some(key) = self.head.get(LINK_BYTES..) else { continue };
            if key.len() == u32_at(&self.head, 0) as usize {
                self.is_right &= hash(key) == self.hash;
                self.value = u32_at(&self.head, 4) as usize;
                self.head.clear();
            }
        }
    }

    fn is_right(&self) -> bool {
        self.is_right && self.head.is_empty() && self.value == 0
    }
}

fn link(key: &[u8], value: &[u8]) -> Vec<u8> {
    let lens = [key.len() as u32, value.len() as u32].map(u32::to_le_bytes);
    [lens.concat().as_slice(), key, value].concat()
}

impl DiskMap {
    /// Bytes of memory that a forecast sets aside for the keys of one map. The map itself has no
    /// pending keys: all of its memory is for pages and batches.
    pub const KEY_BYTES: u64 = PartitionLog::BUFFER_BYTES;

    /// Opens the map at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self::over(RecordBag::open(path, SCHEMA, options)?))
    }

    /// Like [`DiskMap::open`], in any folder; the caller ensures that no other process has it open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self::over(RecordBag::open_in(folder, SCHEMA, options)?))
    }

    /// Lifts the limit on the length of values, for an owner that has reserved memory for the
    /// longest value: six times its bytes.
    pub fn with_any_value(self) -> Self {
        Self { bag: self.bag.with_any_record(), ..self }
    }

    fn over(bag: RecordBag) -> Self {
        Self { bag, locks: (0..LOCKS).map(|_| Mutex::default()).collect() }
    }

    /// The path of the map.
    pub fn path(&self) -> &Path {
        self.bag.path()
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.bag.file_bytes()
    }

    fn lock(&self, mixed: u64) -> MutexGuard<'_, ()> {
        self.locks[mixed as usize % LOCKS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check(&self, key: &[u8], value: &[u8]) -> Result<()> {
        let longest = key.len().max(value.len()) as u64;
        if longest >= 1 << 31 {
            return Err(Error::RecordBytes {
                path: self.path().into(),
                expected: (1 << 31) - 1,
                found: longest,
            });
        }
        // The map could not read the value again.
        let len = (LINK_BYTES + key.len() + value.len()) as u64;
        self.bag.require_bytes(len, || "a key with its value".into())
    }

    /// The record id and the bytes of the chain of a hash.
    fn chain_of(&self, mixed: u64) -> Result<Option<(u64, Vec<u8>)>> {
        let Some(id) = self.bag.keys().get(self.bag.pages(), mixed)? else {
            return Ok(None);
        };
        Ok(Some((id, self.bag.get_within(id)?)))
    }

    fn broken(&self, id: u64) -> Error {
        Error::Codec { path: self.path().into(), id, problem: "a chain of keys breaks off".into() }
    }

    /// The first value of `key`.
    ///
    /// # Errors
    /// `Error::Codec` if the chain of the key is damaged.
    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>> {
        let mut first = None;
        self.find(key, |value| {
            first = Some(value.to_vec());
            false
        })?;
        Ok(first)
    }

    /// All values of `key`, oldest first.
    pub fn get_all(&self, key: &[u8]) -> Result<Vec<Vec<u8>>> {
        let mut values = Vec::new();
        self.find(key, |value| {
            values.push(value.to_vec());
            true
        })?;
        Ok(values)
    }

    /// Passes the values of `key` to `f`, oldest first, until `f` returns false.
    fn find(&self, key: &[u8], mut f: impl FnMut(&[u8]) -> bool) -> Result<()> {
        let mixed = hash(key);
        // Reads under the lock, because another thread could remove the chain between the two
        // reads.
        let found = {
            let _changing = self.lock(mixed);
            self.chain_of(mixed)?
        };
        let Some((id, chain)) = found else {
            return Ok(());
        };
        for link in links(&chain) {
            let link = link.ok_or_else(|| self.broken(id))?;
            if link.key == key && !f(link.value) {
                break;
            }
        }
        Ok(())
    }

    /// True if `key` has a value.
    pub fn contains(&self, key: &[u8]) -> Result<bool> {
        let mut is_there = false;
        self.find(key, |_| {
            is_there = true;
            false
        })?;
        Ok(is_there)
    }

    /// Makes `value` the only value of `key`.
    ///
    /// # Errors
    /// `Error::RecordBytes` for a key or value of 2 GiB or more; a budget error for a pair of more
    /// than a quarter of the map's memory.
    pub fn insert(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(key, value)?;
        let mixed = hash(key);
        let _changing = self.lock(mixed);
        match self.chain_of(mixed)? {
            None => self.bag.append_linked([(mixed, link(key, value))]),
            Some((id, chain)) => {
                let mut others = self.without(id, &chain, key)?;
                // Freed before the new chain is stored, because both may be long.
                drop(chain);
                others.extend(link(key, value));
                self.bag.store(id, &others)
            }
        }
    }

    /// Adds a value to the values of `key`: amortized O(1).
    ///
    /// # Errors
    /// As [`DiskMap::insert`].
    pub fn chain(&self, key: &[u8], value: &[u8]) -> Result<()> {
        self.check(key, value)?;
        let mixed = hash(key);
        let _changing = self.lock(mixed);
        match self.bag.keys().get(self.bag.pages(), mixed)? {
            None => self.bag.append_linked([(mixed, link(key, value))]),
            Some(id) => self.bag.append_to(id, &link(key, value)),
        }
    }

    /// The first value of each of `keys`, in the order of `keys`. Reads the table and the records
    /// in page order.
    pub fn get_many(&self, keys: &[impl AsRef<[u8]>]) -> Result<Vec<Option<Vec<u8>>>> {
        let job = &self.bag.options().resources.job;
        let mut out = vec![None; keys.len()];
        for (keys, out) in keys.chunks(BATCH).zip(out.chunks_mut(BATCH)) {
            job.check()?;
            let asked =
                keys.iter().zip(0..).map(|(key, index)| Asked::new(hash(key.as_ref()), index));
            let mut sorted: Vec<Asked> = asked.collect();
            sorted.sort_unstable();
            let mut found = Vec::new();
            self.bag.keys().get_sorted(
                &mut self.bag.pages().scanner(),
                job,
                &sorted,
                |index, id| found.push((index, id)),
            )?;
            let ids: Vec<u64> = found.iter().map(|(_, id)| *id).collect();
            let batches = match self.bag.fetch_batch(&ids) {
                // A chain became empty and was removed after the look-up in the table.
                Err(Error::Removed { .. }) => {
                    for (key, place) in keys.iter().zip(&mut *out) {
                        *place = self.get(key.as_ref())?;
                    }
                    continue;
                }
                batches => batches?,
            };
            let chains = batches.iter().flat_map(|records| records.iter());
            for ((index, id), chain) in found.iter().zip(chains) {
                let index = *index as usize;
                let (Some(key), Some(place)) = (keys.get(index), out.get_mut(index)) else {
                    continue;
                };
                for link in links(chain) {
                    let link = link.ok_or_else(|| self.broken(*id))?;
                    if link.key == key.as_ref() {
                        *place = Some(link.value.to_vec());
                        break;
                    }
                }
            }
        }
        Ok(out)
    }

    /// Like [`DiskMap::insert`] for each key and value, in the page order of the table; the last
    /// value of a repeated key stays. After a failure or cancellation, some of the pairs are in the
    /// map.
    pub fn insert_many<B: AsRef<[u8]>>(&self, pairs: &[(B, B)]) -> Result<()> {
        self.in_order(pairs, |key, value| self.insert(key, value))
    }

    /// Like [`DiskMap::insert_many`]; [`DiskMap::for_each`] has new keys in the order of `pairs`,
    /// except those with the hash of another key.
    pub fn insert_in_order<B: AsRef<[u8]>>(&self, pairs: &[(B, B)]) -> Result<()> {
        let (bag, job) = (&self.bag, &self.bag.options().resources.job);
        for some in pairs.chunks(BATCH) {
            job.check()?;
            bag.keys().grow(bag.pages())?;
            some.iter().try_for_each(|(key, value)| self.check(key.as_ref(), value.as_ref()))?;
            let mut sorted: Vec<(u64, usize)> =
                some.iter().zip(0..).map(|((key, _), at)| (hash(key.as_ref()), at)).collect();
            sorted.sort_unstable();
            let mut new = Vec::with_capacity(some.len());
            let mut others = Vec::new();
            let changing: Vec<_> = (0..LOCKS as u64).map(|mixed| self.lock(mixed)).collect();
            for equal in sorted.chunk_by(|(one, _), (other, _)| one == other) {
                match equal {
                    [(mixed, at)] if bag.keys().get(bag.pages(), *mixed)?.is_none() => {
                        new.push((*at, *mixed));
                    }
                    _ => others.extend(equal.iter().map(|(_, at)| *at)),
                }
            }
            new.sort_unstable();
            let pair = |at: usize| some.get(at).map(|(key, value)| (key.as_ref(), value.as_ref()));
            bag.append_linked(new.iter().filter_map(|(at, mixed)| {
                pair(*at).map(|(key, value)| (*mixed, link(key, value)))
            }))?;
            drop(changing);
            for (key, value) in others.into_iter().filter_map(pair) {
                self.insert(key, value)?;
            }
        }
        Ok(())
    }

    /// Like [`DiskMap::chain`] for each key and value, in the page order of the table.
    pub fn chain_many<B: AsRef<[u8]>>(&self, pairs: &[(B, B)]) -> Result<()> {
        self.in_order(pairs, |key, value| self.chain(key, value))
    }

    fn in_order<B: AsRef<[u8]>>(
        &self,
        pairs: &[(B, B)],
        change: impl Fn(&[u8], &[u8]) -> Result<()>,
    ) -> Result<()> {
        let job = &self.bag.options().resources.job;
        let mut sorted: Vec<(u64, &(B, B))> =
            pairs.iter().map(|pair| (hash(pair.0.as_ref()), pair)).collect();
        // Stable, so that values keep their order.
        sorted.sort_by_key(|(mixed, _)| *mixed);
        for some in sorted.chunks(BATCH / 64) {
            job.check()?;
            self.bag.keys().grow(self.bag.pages())?;
            for (_, (key, value)) in some {
                change(key.as_ref(), value.as_ref())?;
            }
        }
        Ok(())
    }

    /// Removes `key` with all its values; false if it had none.
    pub fn remove(&self, key: &[u8]) -> Result<bool> {
        let mixed = hash(key);
        let _changing = self.lock(mixed);
        let Some((id, chain)) = self.chain_of(mixed)? else {
            return Ok(false);
        };
        let others = self.without(id, &chain, key)?;
        if others.len() == chain.len() {
            return Ok(false);
        }
        if others.is_empty() {
            self.bag.unlink(mixed, id)?;
        } else {
            self.bag.store(id, &others)?;
        }
        Ok(true)
    }

    /// The chain without the links of `key`.
    fn without(&self, id: u64, chain: &[u8], key: &[u8]) -> Result<Vec<u8>> {
        let (mut others, mut at) = (Vec::with_capacity(chain.len()), 0);
        for link in links(chain) {
            let link = link.ok_or_else(|| self.broken(id))?;
            if link.key != key {
                others.extend_from_slice(chain.get(at..at + link.len).unwrap_or_default());
            }
            at += link.len;
        }
        Ok(others)
    }

    /// Passes every key and value to `f`, in one pass, in the order in which the chains were made.
    ///
    /// # Errors
    /// Errors of `f`; `Error::Codec` if a chain is damaged.
    pub fn for_each(&self, mut f: impl FnMut(&[u8], &[u8]) -> Result<()>) -> Result<()> {
        let (mut records, mut next) = (Records::default(), Some(0));
        while let Some(start) = next {
            next = self.chains(&mut records, start, |id, chain| {
                links(chain).try_for_each(|link| {
                    link.ok_or_else(|| self.broken(id)).and_then(|l| f(l.key, l.value))
                })
            })?;
        }
        Ok(())
    }

    /// Like [`DiskMap::for_each`], with only the first value of each key and for one batch: `start`
    /// is 0 or the result of the previous call. Returns `None` at the end.
    pub fn first_values(
        &self,
        start: u64,
        mut f: impl FnMut(&[u8], &[u8]) -> Result<()>,
    ) -> Result<Option<u64>> {
        self.chains(&mut Records::default(), start, |id, chain| {
            // A chain nearly always has one key; it has more only if hashes are equal.
            let mut seen: Vec<&[u8]> = Vec::new();
            for link in links(chain) {
                let link = link.ok_or_else(|| self.broken(id))?;
                if !seen.contains(&link.key) {
                    seen.push(link.key);
                    f(link.key, link.value)?;
                }
            }
            Ok(())
        })
    }

    /// Passes the id and the bytes of each chain of one batch to `f`; returns the start of the next
    /// batch. `records` has the memory of an earlier batch.
    fn chains(
        &self,
        records: &mut Records,
        start: u64,
        mut f: impl FnMut(u64, &[u8]) -> Result<()>,
    ) -> Result<Option<u64>> {
        self.bag.options().resources.job.check()?;
        self.bag.fetch_next_into(records, start, self.bag.batch_len())?;
        for (index, id) in (0..records.len()).zip(start..) {
            records.get(index).map_or(Ok(()), |chain| f(id, chain))?;
        }
        Ok((!records.is_empty()).then_some(start + records.len() as u64))
    }

    /// Number of different hashes of keys: the number of keys, unless hashes are equal.
    pub fn len(&self) -> u64 {
        self.bag.keys().len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Like [`RecordBag::verify`], and checks that every key refers to its own chain. Returns the
    /// number of bytes read. The map must not change during the call.
    ///
    /// # Errors
    /// Corruption; the error names the offset or the record.
    pub fn verify(&self) -> Result<u64> {
        let read = self.bag.verify()?;
        let job = &self.bag.options().resources.job;
        self.bag.keys().verify(self.bag.pages(), job, |mixed, id| {
            let mut chain = ChainCheck::new(mixed);
            self.bag.visit(id, |_| (), |piece| chain.add(piece))?;
            if chain.is_right() { Ok(()) } else { Err(self.broken(id)) }
        })?;
        Ok(read)
    }

    /// Makes all stored data durable.
    pub fn sync(&self) -> Result<()> {
        self.bag.sync()
    }

    /// Frees unused space and makes everything durable.
    pub fn compact(&self) -> Result<()> {
        self.bag.compact()
    }
}

fn hash(key: &[u8]) -> u64 {
    mix(brimful_store::checksum(key))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_is_checked_in_pieces_of_any_size() {
        let chain =
            [link(b"key", b"a value"), link(b"key", b""), link(b"key", b"another")].concat();
        let is_right = |mixed, chain: &[u8], size| {
            let mut check = ChainCheck::new(mixed);
            chain.chunks(size).for_each(|piece| check.add(piece));
            check.is_right()
        };
        for size in 1..=chain.len() {
            assert!(is_right(hash(b"key"), &chain, size));
            assert!(!is_right(hash(b"other"), &chain, size));
            for len in [1, LINK_BYTES, chain.len() - 1] {
                assert!(!is_right(hash(b"key"), &chain[..len], size), "{len} bytes");
            }
        }
    }
}
