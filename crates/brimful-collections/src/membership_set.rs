//! A set of keys.

use std::ops::Deref;
use std::path::Path;

use brimful_store::Folder;

use crate::error::Result;
use crate::folder::Kind;
use crate::keyed::Keyed;
use crate::options::Options;

/// An exact set of 64-bit keys, larger than memory: 8 bytes a key and some spare space on disk.
///
/// New keys stay pending and are merged partition by partition; queries read pages in order. Random
/// keys therefore cost no random access.
#[derive(Debug)]
pub struct MembershipSet(Keyed);

impl Deref for MembershipSet {
    type Target = Keyed;

    fn deref(&self) -> &Keyed {
        &self.0
    }
}

impl MembershipSet {
    /// Opens the set at `path`, or makes it.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open(path, Kind::MembershipSet, 1, options)?))
    }

    /// Like [`MembershipSet::open`], in any folder; the caller ensures that no other process has it
    /// open.
    pub fn open_in(folder: &dyn Folder, options: Options) -> Result<Self> {
        Ok(Self(Keyed::open_in(folder, Kind::MembershipSet, 1, options)?))
    }

    /// True if `key` is in the set.
    pub fn contains(&self, key: u64) -> Result<bool> {
        Ok(self.0.get(key)?.is_some())
    }

    /// Membership of each of `keys`, in the order of `keys`.
    pub fn contains_many(&self, keys: &[u64]) -> Result<Vec<bool>> {
        self.0.get_many(keys, false, |_| true)
    }

    /// Removes a key; false if it was not in the set.
    pub fn remove(&self, key: u64) -> Result<bool> {
        self.0.remove(key)
    }

    /// Passes all keys to `f`, in no particular order; one sequential pass.
    pub fn for_each(&self, mut f: impl FnMut(u64) -> Result<()>) -> Result<()> {
        self.0.for_each(|key, _| f(key))
    }
}
