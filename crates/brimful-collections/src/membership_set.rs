//! Which keys were seen.

use std::path::Path;

use brimful_store::Folder;

use crate::error::Result;
use crate::keyed::Keyed;
use crate::options::Options;

const KIND: u32 = 4;

/// A set of 64-bit keys, exact and larger than memory: 8 bytes a key and some room.
///
/// Keys added are put off and merged partition by partition; keys asked for go in the order of
/// their pages. Random keys cost no random access either way.
#[derive(Debug)]
pub struct MembershipSet(Keyed);

impl MembershipSet {
    /// Opens the set at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open(path, KIND, 1, options)?))
    }

    /// [`MembershipSet::open`] in any folder; the caller sees to it that nobody else has it open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open_in(folder, KIND, 1, options)?))
    }

    /// Keys put off: the next question applies them first, which may take long.
    pub fn waiting(&self) -> u64 {
        self.0.waiting()
    }

    /// Keys taken since the set was opened, repeats included.
    pub fn taken(&self) -> u64 {
        self.0.taken()
    }

    /// Where the set is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Adds keys: all of them, or none if it fails. After an I/O error the set is refused until it
    /// is opened again, and is then what it was at the last sync.
    pub fn add_many(&self, keys: &[u64]) -> Result<()> {
        self.0.add_many(keys)
    }

    /// True if `key` is in the set.
    pub fn contains(&self, key: u64) -> Result<bool> {
        Ok(self.0.get(key)?.is_some())
    }

    /// Keys that are best asked for at once by a caller who copies them and the answers: as many as
    /// the budget has memory for. Others cost no copy however many they are, and are best asked for
    /// all at once.
    pub fn question_len(&self) -> usize {
        self.0.question_len()
    }

    /// Which of `keys` are in the set, in their order.
    pub fn contains_many(&self, keys: &[u64]) -> Result<Vec<bool>> {
        self.0.get_many(keys, false, |_| true)
    }

    /// Removes a key; false if it was not there.
    pub fn remove(&self, key: u64) -> Result<bool> {
        self.0.remove(key)
    }

    /// Keys in the set.
    pub fn len(&self) -> Result<u64> {
        self.0.len()
    }

    /// True if there is none.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Bytes of the file.
    pub fn file_bytes(&self) -> Result<u64> {
        self.0.file_bytes()
    }

    /// Calls `f` with all keys, in no particular order; one sequential pass.
    pub fn for_each(&self, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
        self.0.for_each(|key, _| f(key))
    }

    /// Reads everything that stands on disk and compares it with its checksums and its order.
    /// Returns the bytes read.
    ///
    /// # Errors
    /// Corruption that names the offset.
    pub fn verify(&self) -> Result<u64> {
        self.0.verify()
    }

    /// Makes everything added so far survive a crash.
    pub fn sync(&self) -> Result<()> {
        self.0.sync()
    }
}
