//! Figures of a run.

pub mod store;

use std::ops::{AddAssign, Sub};

use brimful_store::Moved;
use serde::{Deserialize, Serialize};

use store::ExecutionStats;

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    /// The program's convergence condition held.
    Converged,
    /// No vertex changed.
    NoChange,
    /// The master of the program ended the run.
    Halted,
    /// All passes were done.
    Finished,
    /// The limit of supersteps was reached.
    MaxSupersteps,
    /// The limit of time was reached.
    MaxSeconds,
}

impl Reason {
    /// A phrase for messages.
    pub fn phrase(self) -> &'static str {
        match self {
            Self::Converged => "converged within the tolerance",
            Self::NoChange => "converged: no vertex changed",
            Self::Halted => "halted by the master",
            Self::Finished => "finished",
            Self::MaxSupersteps => "reached the maximum number of supersteps",
            Self::MaxSeconds => "reached the maximum number of seconds",
        }
    }
}

/// The traversal of the edges in a superstep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Traversal {
    /// All edges, with the signals of all vertices in memory.
    Dense,
    /// All edges, with the signals of a window of sources in memory at a time.
    Windows,
    /// The blocks with edges of the frontier only.
    Sparse,
    /// The blocks with edges of the first vertices of the frontier, ordered by signal.
    Ordered,
    /// The edges of the frontier only, unpacked in memory.
    Unpacked,
    /// All edges, asynchronously: signals are received within the superstep.
    Sweep,
    /// The edges of one vertex after another, ordered by signal: the rest of the run.
    PriorityQueue,
    /// Lists of neighbors.
    Gather,
    /// The edges of the vertices of a store.
    Store,
    /// All edges once, in any order, for the whole run.
    Scan,
    /// Depth-first search, for the whole run.
    Search,
    /// Divided among processes.
    Cluster,
}

impl Traversal {
    /// All traversals.
    pub const ALL: [Self; 12] = [
        Self::Dense,
        Self::Windows,
        Self::Sparse,
        Self::Ordered,
        Self::Unpacked,
        Self::Sweep,
        Self::PriorityQueue,
        Self::Gather,
        Self::Store,
        Self::Scan,
        Self::Search,
        Self::Cluster,
    ];

    /// The name of the traversal.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Windows => "windows",
            Self::Sparse => "sparse",
            Self::Ordered => "ordered",
            Self::Unpacked => "unpacked",
            Self::Sweep => "sweep",
            Self::PriorityQueue => "priority_queue",
            Self::Gather => "gather",
            Self::Store => "store",
            Self::Scan => "scan",
            Self::Search => "search",
            Self::Cluster => "cluster",
        }
    }
}

/// The work of a superstep.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Work {
    /// Its duration in seconds.
    pub seconds: f64,
    /// The vertices of the frontier: those that signal, or gather; `None` for a traversal without a
    /// frontier.
    pub frontier: Option<u64>,
    /// Signals and edges.
    #[serde(flatten)]
    pub swept: Swept,
    /// Bytes read from files; `None` if a store does not count them.
    pub bytes_read: Option<u64>,
    /// Bytes written to files, likewise.
    pub bytes_written: Option<u64>,
    /// Bytes found in memory instead of read, because the run had pinned them.
    pub bytes_found: u64,
}

impl Work {
    /// The work of a superstep of `seconds` seconds with this `frontier` and these counts of
    /// signals, edges and bytes.
    pub fn new(seconds: f64, frontier: Option<u64>, swept: Swept, moved: Option<Moved>) -> Self {
        Self {
            seconds,
            frontier,
            swept,
            bytes_read: moved.map(|moved| moved.bytes_read()),
            bytes_written: moved.map(|moved| moved.bytes_written()),
            bytes_found: moved.map_or(0, |moved| moved.bytes_found()),
        }
    }
}

/// Durations, work and traversals of supersteps. As there may be millions, only the first are
/// listed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Durations {
    first: Vec<Work>,
    /// The largest frontier, if any superstep had one.
    largest_frontier: Option<u64>,
    count: u64,
    total: f64,
    least: f64,
    greatest: f64,
    /// Number of supersteps by class of duration; durations of one class differ by at most 1/32.
    classes: Vec<u64>,
    /// Number of supersteps by traversal, as in [`Traversal::ALL`].
    traversals: [u64; Traversal::ALL.len()],
    last: Option<Traversal>,
}

/// The shortest duration with a class of its own, in seconds.
const SHORTEST: f64 = 1e-9;
/// A class is a power of two and the 5 bits below it: the high bits of a float.
const CLASS_SHIFT: u32 = f64::MANTISSA_DIGITS - 1 - 5;
const FIRST_CLASS: u64 = SHORTEST.to_bits() >> CLASS_SHIFT;

fn class_of(seconds: f64) -> usize {
    ((seconds.max(SHORTEST).to_bits() >> CLASS_SHIFT) - FIRST_CLASS) as usize
}

impl Durations {
    /// The most supersteps that are listed.
    pub const MAX_LISTED: usize = 1000;

    /// Adds a superstep with its traversal.
    pub fn push(&mut self, work: Work, traversal: Traversal) {
        let seconds = work.seconds;
        self.traversals[traversal as usize] += 1;
        self.last = Some(traversal);
        if self.first.len() < Self::MAX_LISTED {
            self.first.push(work);
        }
        self.largest_frontier = self.largest_frontier.max(work.frontier);
        self.least = if self.count == 0 { seconds } else { self.least.min(seconds) };
        self.greatest = self.greatest.max(seconds);
        self.count += 1;
        self.total += seconds;
        let class = class_of(seconds);
        if self.classes.len() <= class {
            self.classes.resize(class + 1, 0);
        }
        self.classes[class] += 1;
    }

    /// The work of the first supersteps, at most [`Durations::MAX_LISTED`].
    pub fn listed(&self) -> &[Work] {
        &self.first
    }

    /// Seconds of the first supersteps, as [`Durations::listed`].
    pub fn seconds(&self) -> Vec<f64> {
        self.first.iter().map(|work| work.seconds).collect()
    }

    /// The largest frontier of all supersteps; `None` if none had one.
    pub fn largest_frontier(&self) -> Option<u64> {
        self.largest_frontier
    }

    /// Number of supersteps with this traversal.
    pub fn count(&self, traversal: Traversal) -> u64 {
        self.traversals[traversal as usize]
    }

    /// The traversal of the last superstep.
    pub fn last_traversal(&self) -> Option<Traversal> {
        self.last
    }

    /// Seconds of all supersteps together.
    pub fn total(&self) -> f64 {
        self.total
    }

    /// Seconds of the shortest, the median and the longest superstep; the median of more than 1,000
    /// has an error of at most 3 %. `None` if there was no superstep.
    pub fn spread(&self) -> Option<[f64; 3]> {
        let middle = self.count / 2;
        let median = if self.count <= Self::MAX_LISTED as u64 {
            let mut sorted = self.seconds();
            sorted.sort_by(f64::total_cmp);
            *sorted.get(middle as usize)?
        } else {
            let mut seen = 0;
            let class = self.classes.iter().position(|count| {
                seen += count;
                seen > middle
            })?;
            f64::from_bits((class as u64 + FIRST_CLASS) << CLASS_SHIFT)
                .clamp(self.least, self.greatest)
        };
        Some([self.least, median, self.greatest])
    }
}

/// Counts of signals and edges in traversals.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Swept {
    /// Signals combined.
    pub signals: u64,
    /// Edges visited, whether their sources signalled or not.
    pub edges: u64,
}

impl AddAssign for Swept {
    fn add_assign(&mut self, other: Self) {
        self.signals += other.signals;
        self.edges += other.edges;
    }
}

impl Sub for Swept {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self { signals: self.signals - other.signals, edges: self.edges - other.edges }
    }
}

/// Figures of a run. Those of a resumed run include earlier supersteps, except for seconds and
/// bytes.
#[derive(Debug, Clone)]
pub struct Stats {
    /// Supersteps done.
    pub supersteps: u64,
    /// Why the run ended.
    pub reason: Reason,
    /// Durations and traversals of supersteps.
    pub durations: Durations,
    /// Seconds from the first byte read to the last superstep, without building indexes.
    pub seconds: f64,
    /// Seconds of building a missing index.
    pub index_seconds: f64,
    /// Signals combined.
    pub signals: u64,
    /// Edges visited, whether their sources signalled or not.
    pub edges_visited: u64,
    /// Bytes read from files and written to them.
    pub moved: Moved,
    /// Seconds by phase, in order.
    pub phases: Vec<(&'static str, f64)>,
    /// Compute threads.
    pub threads: usize,
    /// The superstep of the checkpoint that the run resumed from.
    pub resumed_from: Option<u64>,
    /// Figures of the store, for a run on vertices.
    pub store: Option<ExecutionStats>,
}

impl Stats {
    /// Figures of an algorithm with one pass over the edges: its traversal, phases with their
    /// seconds, edges visited, and bytes moved.
    pub fn one_pass(
        traversal: Traversal,
        phases: Vec<(&'static str, f64)>,
        edges: u64,
        moved: Moved,
        threads: usize,
    ) -> Self {
        let seconds = phases.iter().map(|(_, seconds)| seconds).sum();
        let mut durations = Durations::default();
        let swept = Swept { signals: edges, edges };
        durations.push(Work::new(seconds, None, swept, Some(moved)), traversal);
        Self {
            supersteps: 1,
            reason: Reason::Finished,
            durations,
            seconds,
            index_seconds: 0.0,
            signals: edges,
            edges_visited: edges,
            moved,
            phases,
            threads,
            resumed_from: None,
            store: None,
        }
    }

    /// True if the run ended by itself.
    pub fn converged(&self) -> bool {
        !matches!(self.reason, Reason::MaxSupersteps | Reason::MaxSeconds)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_many_durations_is_nearly_right() {
        let work = |seconds, frontier| Work { seconds, frontier, ..Work::default() };
        let mut durations = Durations::default();
        assert_eq!(durations.spread(), None);
        for index in 0..3 {
            durations.push(work(f64::from(3 - index), Some(9)), Traversal::Dense);
        }
        assert_eq!(durations.spread(), Some([1.0, 2.0, 3.0]));
        for index in 0..5000 {
            durations.push(work(f64::from(index) * 1e-6, None), Traversal::Sparse);
        }
        assert_eq!(durations.largest_frontier(), Some(9));
        let [least, median, greatest] = durations.spread().unwrap();
        assert_eq!((least, greatest, durations.listed().len()), (0.0, 3.0, 1000));
        assert!((median / 2.5e-3 - 1.0).abs() < 0.03, "{median}");
        let counts = Traversal::ALL.map(|traversal| durations.count(traversal));
        assert_eq!(counts, [3, 0, 5000, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(durations.last_traversal(), Some(Traversal::Sparse));
        assert!(Traversal::ALL.iter().enumerate().all(|(at, traversal)| *traversal as usize == at));
    }
}
