//! The content of a disk: files of sectors, each written whole or not at all, and names for them.
//!
//! Invariant: only a sync changes the durable image.

use std::collections::{BTreeMap, BTreeSet};

/// Bytes that a disk writes as a unit.
const SECTOR_BYTES: usize = 512;

/// A file's two images. Names refer to it, and it outlives them.
#[derive(Debug, Default)]
pub(super) struct Inode {
    pub(super) live: Vec<u8>,
    pub(super) durable: Vec<u8>,
    /// Sectors whose live bytes are not durable.
    pub(super) dirty: BTreeSet<usize>,
    pub(super) open: usize,
}

impl Inode {
    pub(super) fn write(&mut self, bytes: &[u8], offset: usize) {
        if bytes.is_empty() {
            return;
        }
        let end = offset + bytes.len();
        // A write beyond the end also changes the zeros of the gap.
        let first = offset.min(self.live.len()) / SECTOR_BYTES;
        if self.live.len() < end {
            self.live.resize(end, 0);
        }
        self.live[offset..end].copy_from_slice(bytes);
        self.dirty.extend(first..end.div_ceil(SECTOR_BYTES));
    }

    /// Cuts or extends the live bytes. The durable bytes stay until a sync: a file system may lose
    /// a cut but never invents one. The zeros that follow a cut are dirty like other bytes.
    pub(super) fn set_len(&mut self, len: usize) {
        let first = len.min(self.live.len()) / SECTOR_BYTES;
        self.live.resize(len, 0);
        self.dirty.extend(first..len.div_ceil(SECTOR_BYTES));
    }

    /// Makes the dirty sectors durable, and no others: bytes that a failed sync lost stay lost.
    pub(super) fn sync(&mut self) {
        self.durable = self.survivor(|| true);
        self.durable.truncate(self.live.len());
        self.dirty.clear();
    }

    /// The durable bytes, and the dirty sectors for which `keep` returns true.
    pub(super) fn survivor(&self, mut keep: impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for sector in &self.dirty {
            let from = sector * SECTOR_BYTES;
            let to = self.live.len().min(from + SECTOR_BYTES);
            if keep() && from < to {
                bytes.resize(bytes.len().max(to), 0);
                bytes[from..to].copy_from_slice(&self.live[from..to]);
            }
        }
        // A file system may have extended the file before it wrote the bytes.
        if keep() {
            bytes.resize(bytes.len().max(self.live.len()), 0);
        }
        bytes
    }
}

pub(super) type Names = BTreeMap<String, u64>;

/// A change of the names, repeated at a crash.
#[derive(Debug)]
pub(super) enum NameChange {
    Create(String, u64),
    Rename(String, String),
    Remove(String),
}

impl NameChange {
    pub(super) fn apply(&self, names: &mut Names) {
        match self {
            Self::Create(name, inode) => {
                names.insert(name.clone(), *inode);
            }
            Self::Rename(from, to) => {
                if let Some(inode) = names.remove(from) {
                    names.insert(to.clone(), inode);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}
