//! What is to go wrong in a [`FaultFolder`], said by the test before it happens.
//!
//! Invariant: a plan is data; the same plan on the same single-threaded calls gives the same
//! faults.

use std::io;

use rustix::io::Errno;

#[cfg(doc)]
use super::FaultFolder;
#[cfg(doc)]
use crate::device::{Device, Folder};

/// A class of operations, counted together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Operation {
    /// [`Device::read_at`].
    Read,
    /// [`Device::write_at`].
    Write,
    /// [`Device::sync`] and [`Folder::sync`].
    Sync,
    /// [`Folder::create`] and [`Folder::scratch`].
    Create,
    /// [`Folder::open`].
    Open,
    /// [`Folder::rename`].
    Rename,
    /// [`Folder::remove`].
    Remove,
    /// [`Folder::list`].
    List,
}

pub(super) const OPERATIONS: usize = Operation::List as usize + 1;

/// What a failing operation returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// EIO: the medium failed.
    Io,
    /// ENOSPC: the disk is full.
    Full,
    /// EINTR: a signal came; the caller is to try again.
    Interrupted,
}

impl Fault {
    pub(super) fn error(self) -> io::Error {
        match self {
            Self::Io => Errno::IO,
            Self::Full => Errno::NOSPC,
            Self::Interrupted => Errno::INTR,
        }
        .into()
    }
}

/// What goes wrong, and when. The default: nothing.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    pub(super) failures: Vec<(Operation, u64, Fault)>,
    pub(super) most_bytes: Option<usize>,
    pub(super) varying: bool,
    pub(super) freeze_from_sync: Option<u64>,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) torn: bool,
    pub(super) seed: u64,
}

impl FaultPlan {
    /// Nothing goes wrong.
    pub fn new() -> Self {
        Self::default()
    }

    /// The operation of this class that is the `number`-th (from 1) under this plan fails, and has
    /// no effect. A failed [`Device::sync`] also forgets what it was to write, as Linux does: a
    /// later sync succeeds without those bytes.
    pub fn fail(mut self, operation: Operation, number: u64, fault: Fault) -> Self {
        self.failures.push((operation, number, fault));
        self
    }

    /// Every read and write moves at most `bytes` bytes (at least 1).
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.most_bytes = Some(bytes.max(1));
        self
    }

    /// Every read and write moves between 1 and `bytes` bytes, chosen by `seed`.
    pub fn varying(mut self, bytes: usize, seed: u64) -> Self {
        (self.varying, self.seed) = (true, seed);
        self.at_most(bytes)
    }

    /// The power fails during the `number`-th sync (from 1): that one and everything after it seems
    /// to succeed, and nothing of it becomes durable.
    pub fn freeze_from_sync(mut self, number: u64) -> Self {
        self.freeze_from_sync = Some(number);
        self
    }

    /// The files together hold at most `bytes` bytes; a write that does not fit is cut, then
    /// ENOSPC.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity_bytes = Some(bytes);
        self
    }

    /// At a crash a subset of the 512-byte sectors that were written and not synced survives, and
    /// so do the first few name changes not synced, chosen by `seed`. Otherwise none of them does.
    pub fn torn(mut self, seed: u64) -> Self {
        (self.torn, self.seed) = (true, seed);
        self
    }
}
