//! Figures of a run on stores of vertices.

use brimful_store::CacheStats;
use serde::{Deserialize, Serialize};

use super::{Reason, Swept, Work};

/// Figures of one synchronous superstep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct SuperstepFigures {
    /// The number of the superstep, from 1.
    pub superstep: u64,
    /// Seconds in which vertices signalled.
    pub signal_seconds: f64,
    /// Seconds in which vertices collected.
    pub collect_seconds: f64,
    /// Resident memory of the process after the superstep; `None` if the system does not report it.
    pub memory_bytes: Option<u64>,
    /// Vertices that signalled.
    pub frontier: u64,
    /// Edges of the vertices that signalled.
    pub edges: u64,
    /// Bytes read from files; `None` if a store has files, or a server, that brimful does not read
    /// itself.
    pub bytes_read: Option<u64>,
    /// Bytes written to files; `None` as for those read.
    pub bytes_written: Option<u64>,
    /// Vertices read from records.
    pub vertex_reads: u64,
    /// Vertices written to records.
    pub vertex_writes: u64,
    /// Loans of vertices that were in a cache.
    pub cache_hits: u64,
    /// Loans of vertices that were in no cache.
    pub cache_misses: u64,
    /// Signals that arrived in a mailbox.
    pub signals: u64,
    /// Spills of lists to disk.
    pub spills: u64,
}

impl SuperstepFigures {
    /// The maximum number of supersteps whose figures are kept.
    pub const MOST: usize = 1000;

    /// Sets the counts to the differences of the figures `after` and `before` the superstep.
    #[must_use]
    pub fn between(self, before: &ExecutionStats, after: &ExecutionStats) -> Self {
        let hits =
            |stats: &ExecutionStats| stats.caches.iter().map(|cache| cache.hits).sum::<u64>();
        // A miss of the last cache reaches the store.
        let misses = |stats: &ExecutionStats| stats.caches.last().map_or(0, |cache| cache.misses);
        let is_known = !after.has_uncounted_bytes;
        Self {
            bytes_read: self.bytes_read.filter(|_| is_known),
            bytes_written: self.bytes_written.filter(|_| is_known),
            frontier: after.vertices_signalled - before.vertices_signalled,
            edges: after.edges_visited - before.edges_visited,
            vertex_reads: after.vertices_read - before.vertices_read,
            vertex_writes: after.vertices_written - before.vertices_written,
            cache_hits: hits(after) - hits(before),
            cache_misses: misses(after) - misses(before),
            signals: after.signals_received - before.signals_received,
            spills: after.spills - before.spills,
            ..self
        }
    }

    /// The figures of two processes of a run: sums of counts, and the longer and larger of others.
    #[must_use]
    pub fn with(self, other: &Self) -> Self {
        let sum = |left: Option<u64>, right: Option<u64>| Some(left? + right?);
        Self {
            superstep: self.superstep,
            signal_seconds: self.signal_seconds.max(other.signal_seconds),
            collect_seconds: self.collect_seconds.max(other.collect_seconds),
            memory_bytes: self.memory_bytes.max(other.memory_bytes),
            frontier: self.frontier + other.frontier,
            edges: self.edges + other.edges,
            bytes_read: sum(self.bytes_read, other.bytes_read),
            bytes_written: sum(self.bytes_written, other.bytes_written),
            vertex_reads: self.vertex_reads + other.vertex_reads,
            vertex_writes: self.vertex_writes + other.vertex_writes,
            cache_hits: self.cache_hits + other.cache_hits,
            cache_misses: self.cache_misses + other.cache_misses,
            signals: self.signals + other.signals,
            spills: self.spills + other.spills,
        }
    }

    /// The figures that supersteps of every kind of run have.
    pub fn work(&self) -> Work {
        Work {
            seconds: self.signal_seconds + self.collect_seconds,
            frontier: Some(self.frontier),
            swept: Swept { signals: self.signals, edges: self.edges },
            bytes_read: self.bytes_read,
            bytes_written: self.bytes_written,
            bytes_found: 0,
        }
    }

    /// Logs the figures.
    pub fn log(&self) {
        tracing::info!(
            superstep = self.superstep,
            signal_seconds = self.signal_seconds,
            collect_seconds = self.collect_seconds,
            memory_bytes = self.memory_bytes,
            frontier = self.frontier,
            edges = self.edges,
            bytes_read = self.bytes_read,
            bytes_written = self.bytes_written,
            vertex_reads = self.vertex_reads,
            vertex_writes = self.vertex_writes,
            cache_hits = self.cache_hits,
            cache_misses = self.cache_misses,
            signals = self.signals,
            spills = self.spills,
            "store superstep"
        );
    }
}

/// Figures of an execution since it was loaded. Supersteps and signals count from the start of the
/// run, even if it resumed from a checkpoint.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ExecutionStats {
    /// Synchronous supersteps done.
    pub supersteps: u64,
    /// Why the last run ended.
    #[serde(skip)]
    pub reason: Option<Reason>,
    /// Seconds spent running.
    pub seconds: f64,
    /// Vertices that signalled; a vertex is counted each time.
    pub vertices_signalled: u64,
    /// Vertices that collected; a vertex is counted each time.
    pub vertices_collected: u64,
    /// Edges of vertices that signalled; an edge is counted each time.
    pub edges_visited: u64,
    /// Signals sent along edges.
    pub signals_sent: u64,
    /// Signals that arrived in a mailbox.
    pub signals_received: u64,
    /// Received signals that were combined with another on arrival.
    pub signals_combined: u64,
    /// Signals to vertices that do not exist.
    pub signals_undelivered: u64,
    /// Spills of lists to disk.
    pub spills: u64,
    /// Bytes that lists wrote to disk.
    pub spilled_bytes: u64,
    /// The caches of all stores, summed, the outermost first.
    #[serde(skip)]
    pub caches: Vec<CacheStats>,
    /// Vertices read from records of all stores, including those of loading and of the result.
    pub vertices_read: u64,
    /// Vertices written to records.
    pub vertices_written: u64,
    /// Figures of the first 1,000 supersteps of this execution.
    #[serde(skip)]
    pub by_superstep: Vec<SuperstepFigures>,
    /// Bytes of memory of all stores.
    pub store_memory_bytes: u64,
    /// Bytes on disk of all stores.
    pub store_disk_bytes: u64,
    /// True if bytes that a store reads and writes are not counted.
    pub has_uncounted_bytes: bool,
}

impl ExecutionStats {
    /// Adds the counts of another process of the run.
    pub fn add_counts(&mut self, other: &Self) {
        self.vertices_signalled += other.vertices_signalled;
        self.vertices_collected += other.vertices_collected;
        self.edges_visited += other.edges_visited;
        self.signals_sent += other.signals_sent;
        self.signals_received += other.signals_received;
        self.signals_combined += other.signals_combined;
        self.signals_undelivered += other.signals_undelivered;
        self.spills += other.spills;
        self.spilled_bytes += other.spilled_bytes;
        self.vertices_read += other.vertices_read;
        self.vertices_written += other.vertices_written;
        self.store_memory_bytes += other.store_memory_bytes;
        self.store_disk_bytes += other.store_disk_bytes;
        self.has_uncounted_bytes |= other.has_uncounted_bytes;
        self.add_caches(&other.caches);
    }

    /// Adds the figures of the caches of a store, the outermost first.
    pub fn add_caches(&mut self, caches: &[CacheStats]) {
        let deeper = caches.len().saturating_sub(self.caches.len());
        self.caches.extend(std::iter::repeat_n(CacheStats::default(), deeper));
        for (all, cache) in self.caches.iter_mut().zip(caches) {
            all.hits += cache.hits;
            all.misses += cache.misses;
            all.evicted += cache.evicted;
            all.written += cache.written;
        }
    }
}
