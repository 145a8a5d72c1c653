//! A set of keys.

use std::path::Path;

use brimful_store::Folder;

use crate::error::Result;
use crate::keyed::Keyed;
use crate::options::Options;

const KIND: u32 = 4;

/// A set of 64-bit keys, exact and larger than memory: 8 bytes a key and some spare space.
///
/// New keys stay pending and are merged partition by partition; queries read pages in order. Random
/// keys therefore cost no random access.
#[derive(Debug)]
pub struct MembershipSet(Keyed);

impl MembershipSet {
    /// Opens the set at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open(path, KIND, 1, options)?))
    }

    /// Like [`MembershipSet::open`], in any folder; the caller ensures that no other process has it
    /// open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open_in(folder, KIND, 1, options)?))
    }

    /// Number of pending keys: the next query applies them first, which may take long.
    pub fn waiting(&self) -> u64 {
        self.0.waiting()
    }

    /// Number of keys accepted since the set was opened, including repeats.
    pub fn taken(&self) -> u64 {
        self.0.taken()
    }

    /// The path of the set.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds all keys, or none after a failure. After an I/O error the set refuses use until it is
    /// opened again, in the state of the last sync.
    pub fn add_many(&self, keys: &[u64]) -> Result<()> {
        self.0.add_many(keys)
    }

    /// True if `key` is in the set.
    pub fn contains(&self, key: u64) -> Result<bool> {
        Ok(self.0.get(key)?.is_some())
    }

    /// The number of keys per query for callers that copy keys and answers: as many as the budget
    /// has memory for. Other callers should ask for all keys at once, which costs no copy.
    pub fn question_len(&self) -> usize {
        self.0.question_len()
    }

    /// Membership of each of `keys`, in the order of `keys`.
    pub fn contains_many(&self, keys: &[u64]) -> Result<Vec<bool>> {
        self.0.get_many(keys, false, |_| true)
    }

    /// Removes a key; false if it was not in the set.
    pub fn remove(&self, key: u64) -> Result<bool> {
        self.0.remove(key)
    }

    /// Number of keys.
    pub fn len(&self) -> Result<u64> {
        self.0.len()
    }

    /// True if there is no key.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.0.file_bytes()
    }

    /// Passes all keys to `f`, in no particular order; one sequential pass.
    pub fn for_each(&self, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
        self.0.for_each(|key, _| f(key))
    }

    /// Reads everything on disk and verifies its checksums and its order. Returns the bytes read.
    ///
    /// # Errors
    /// Corruption, naming the offset.
    pub fn verify(&self) -> Result<u64> {
        self.0.verify()
    }

    /// Makes all added keys durable.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
