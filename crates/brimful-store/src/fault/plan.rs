//! The faults of a [`FaultFolder`], which a test sets in advance.
//!
//! Invariant: a plan is data; the same plan with the same single-threaded calls gives the same
//! faults.

use std::io;

use rustix::io::Errno;

#[cfg(doc)]
use super::FaultFolder;
#[cfg(doc)]
use crate::device::{Device, Folder};

/// A class of operations with a common count.
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

impl Operation {
    /// All classes.
    pub const ALL: [Self; 8] = [
        Self::Read,
        Self::Write,
        Self::Sync,
        Self::Create,
        Self::Open,
        Self::Rename,
        Self::Remove,
        Self::List,
    ];
}

/// The error of a failing operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// EIO: the medium failed.
    Io,
    /// ENOSPC: the disk is full.
    Full,
    /// EINTR: a signal arrived; the caller should retry.
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

/// The faults and their times. The default plan has none.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    pub(super) failures: Vec<(Operation, u64, Fault)>,
    pub(super) max_bytes: Option<usize>,
    pub(super) varying: bool,
    pub(super) freeze_from_sync: Option<u64>,
    pub(super) capacity_bytes: Option<u64>,
    pub(super) torn: bool,
    pub(super) seed: u64,
}

impl FaultPlan {
    /// A plan without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Operation `number` of this class, counted from 1 under this plan, fails without effect. A
    /// failed [`Device::sync`] also loses the bytes that it should make durable, as on Linux: a
    /// later sync succeeds without them.
    pub fn fail(mut self, operation: Operation, number: u64, fault: Fault) -> Self {
        self.failures.push((operation, number, fault));
        self
    }

    /// Every read and write moves at most `bytes` bytes (at least 1).
    pub fn at_most(mut self, bytes: usize) -> Self {
        self.max_bytes = Some(bytes.max(1));
        self
    }

    /// Every read and write moves between 1 and `bytes` bytes, chosen by `seed`.
    pub fn varying(mut self, bytes: usize, seed: u64) -> Self {
        (self.varying, self.seed) = (true, seed);
        self.at_most(bytes)
    }

    /// The power fails during sync `number` (from 1): that sync and everything after it appears to
    /// succeed, and nothing of it becomes durable.
    pub fn freeze_from_sync(mut self, number: u64) -> Self {
        self.freeze_from_sync = Some(number);
        self
    }

    /// The files hold at most `bytes` bytes in total; a write that does not fit is cut, and the
    /// next one fails with ENOSPC.
    pub fn capacity(mut self, bytes: u64) -> Self {
        self.capacity_bytes = Some(bytes);
        self
    }

    /// At a crash, a subset of the unsynced 512-byte sectors survives, and so do the first few
    /// unsynced name changes, chosen by `seed`. Without this call none of them survives.
    pub fn torn(mut self, seed: u64) -> Self {
        (self.torn, self.seed) = (true, seed);
        self
    }
}
