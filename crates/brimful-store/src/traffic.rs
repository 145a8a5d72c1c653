//! Transfers between files and memory: counts, bytes and times.

use std::ops::{Add, Sub};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// The content of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// Manifests and the pointer to them.
    Manifest,
    /// External ids and names.
    Ids,
    /// Degrees and strengths.
    Degrees,
    /// Edges and their directory.
    Edges,
    /// Weights of edges.
    Weights,
    /// States of vertices.
    States,
    /// Signals between vertices.
    Signals,
    /// Edges listed by vertex, spilled by programs over neighbor lists.
    Lists,
    /// Records of collections.
    Records,
    /// Checkpoints of runs.
    Checkpoints,
    /// Intermediate data: runs of a sort, spools, logs of changes.
    Working,
    /// The user's input, if it is read in place.
    Input,
}

impl Content {
    /// All contents.
    pub const ALL: [Self; 12] = [
        Self::Manifest,
        Self::Ids,
        Self::Degrees,
        Self::Edges,
        Self::Weights,
        Self::States,
        Self::Signals,
        Self::Lists,
        Self::Records,
        Self::Checkpoints,
        Self::Working,
        Self::Input,
    ];

    /// The name in logs and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Manifest => "manifest",
            Self::Ids => "ids",
            Self::Degrees => "degrees",
            Self::Edges => "edges",
            Self::Weights => "weights",
            Self::States => "states",
            Self::Signals => "signals",
            Self::Lists => "lists",
            Self::Records => "records",
            Self::Checkpoints => "checkpoints",
            Self::Working => "working",
            Self::Input => "input",
        }
    }
}

/// Transfers in one direction.
#[derive(Debug, Default)]
struct Counter {
    count: AtomicU64,
    nanoseconds: AtomicU64,
}

impl Counter {
    fn add(&self, took: Duration) {
        self.count.fetch_add(1, Ordering::Relaxed);
        self.nanoseconds.fetch_add(took.as_nanos() as u64, Ordering::Relaxed);
    }

    fn transfers(&self) -> Transfers {
        let load = |number: &AtomicU64| number.load(Ordering::Relaxed);
        Transfers { count: load(&self.count), nanoseconds: load(&self.nanoseconds) }
    }
}

/// Transfers of a job in one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Transfers {
    /// Number of transfers.
    pub count: u64,
    /// Sum of the durations of all transfers; transfers of several threads overlap.
    pub nanoseconds: u64,
}

impl Transfers {
    /// Sum of the durations of all transfers, in seconds.
    pub fn seconds(self) -> f64 {
        self.nanoseconds as f64 / 1e9
    }
}

/// Bytes moved so far by the files of one job.
#[derive(Debug, Default)]
pub struct Traffic {
    reads: Counter,
    writes: Counter,
    read: [AtomicU64; Content::ALL.len()],
    written: [AtomicU64; Content::ALL.len()],
    found: [AtomicU64; Content::ALL.len()],
    /// Current and greatest total bytes of nameless files.
    scratch: AtomicU64,
    max_scratch: AtomicU64,
}

impl Traffic {
    /// Counts the growth of nameless files.
    pub(crate) fn add_scratch(&self, bytes: u64) {
        let now = self.scratch.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.max_scratch.fetch_max(now, Ordering::Relaxed);
    }

    /// Counts the end of a nameless file of `bytes` bytes.
    pub(crate) fn remove_scratch(&self, bytes: u64) {
        self.scratch.fetch_sub(bytes, Ordering::Relaxed);
    }

    /// The greatest total bytes of nameless files at any time.
    pub fn max_scratch(&self) -> u64 {
        self.max_scratch.load(Ordering::Relaxed)
    }

    pub(crate) fn add_read(&self, content: Content, bytes: u64, took: Duration) {
        self.reads.add(took);
        self.read[content as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_written(&self, content: Content, bytes: u64, took: Duration) {
        self.writes.add(took);
        self.written[content as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    pub(crate) fn add_found(&self, content: Content, bytes: u64) {
        self.found[content as usize].fetch_add(bytes, Ordering::Relaxed);
    }

    /// The transfers so far.
    pub fn moved(&self) -> Moved {
        let load = |counters: &[AtomicU64; Content::ALL.len()]| {
            std::array::from_fn(|index| counters[index].load(Ordering::Relaxed))
        };
        Moved {
            reads: self.reads.transfers(),
            writes: self.writes.transfers(),
            read: load(&self.read),
            written: load(&self.written),
            found: load(&self.found),
        }
    }

    /// Bytes read so far.
    pub fn bytes_read(&self) -> u64 {
        self.moved().bytes_read()
    }

    /// Bytes written so far.
    pub fn bytes_written(&self) -> u64 {
        self.moved().bytes_written()
    }
}

/// Bytes moved, by content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Moved {
    reads: Transfers,
    writes: Transfers,
    read: [u64; Content::ALL.len()],
    written: [u64; Content::ALL.len()],
    found: [u64; Content::ALL.len()],
}

impl Moved {
    /// Bytes of `content` read.
    pub fn read(&self, content: Content) -> u64 {
        self.read[content as usize]
    }

    /// Bytes of `content` written.
    pub fn written(&self, content: Content) -> u64 {
        self.written[content as usize]
    }

    /// Bytes of `content` found in memory instead of read, because a run had pinned them.
    pub fn found(&self, content: Content) -> u64 {
        self.found[content as usize]
    }

    /// Transfers from files.
    pub fn reads(&self) -> Transfers {
        self.reads
    }

    /// Transfers to files.
    pub fn writes(&self) -> Transfers {
        self.writes
    }

    /// Bytes read in total.
    pub fn bytes_read(&self) -> u64 {
        self.read.iter().sum()
    }

    /// Bytes written in total.
    pub fn bytes_written(&self) -> u64 {
        self.written.iter().sum()
    }

    /// Bytes found in memory in total.
    pub fn bytes_found(&self) -> u64 {
        self.found.iter().sum()
    }

    /// Logs the transfers of each content that had any.
    pub fn log(&self) {
        for content in Content::ALL {
            let [read, written, found] =
                [self.read(content), self.written(content), self.found(content)];
            if read + written + found > 0 {
                let content = content.name();
                tracing::info!(
                    content,
                    bytes_read = read,
                    bytes_written = written,
                    bytes_found = found,
                    "traffic"
                );
            }
        }
    }

    fn combine(self, other: Self, f: impl Fn(u64, u64) -> u64) -> Self {
        let both = |a: [u64; Content::ALL.len()], b: [u64; Content::ALL.len()]| {
            std::array::from_fn(|index| f(a[index], b[index]))
        };
        let transfers = |a: Transfers, b: Transfers| Transfers {
            count: f(a.count, b.count),
            nanoseconds: f(a.nanoseconds, b.nanoseconds),
        };
        Self {
            reads: transfers(self.reads, other.reads),
            writes: transfers(self.writes, other.writes),
            read: both(self.read, other.read),
            written: both(self.written, other.written),
            found: both(self.found, other.found),
        }
    }
}

impl Add for Moved {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        self.combine(other, |a, b| a + b)
    }
}

/// The transfers between two readings of the same traffic, the later one first.
impl Sub for Moved {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        self.combine(earlier, |a, b| a - b)
    }
}

/// Figures of a cache.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CacheStats {
    /// Loans of vertices that were in the cache.
    pub hits: u64,
    /// Loans of vertices that were not in the cache.
    pub misses: u64,
    /// Vertices that were evicted.
    pub evicted: u64,
    /// Vertices written to the store below, for an eviction, a checkpoint or a sync.
    pub written: u64,
}

impl CacheStats {
    /// The fraction of loans that the cache served; 0 if there was no loan.
    pub fn hit_ratio(&self) -> f64 {
        let all = self.hits + self.misses;
        if all == 0 { 0.0 } else { self.hits as f64 / all as f64 }
    }
}
