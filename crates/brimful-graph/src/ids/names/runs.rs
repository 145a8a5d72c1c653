//! Generations as sorted runs, and the merge of runs into ranks.
//!
//! The external sorter needs records of one size that compare by their own bytes, and strings are
//! not such records. But a generation is in memory when it ends, so it is sorted there, and one
//! merge remains. Invariant: every name gets one rank, the number of names that are smaller by
//! bytes.

use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;

use brimful_store::varint::write_varint;
use brimful_store::{Error as StoreError, Folder, Job, Resources, StoreFile};
use bytemuck::{Pod, Zeroable};

use crate::error::{Error, Result};

/// Bytes written or read at once; the reader or writer of one run uses less if there are many runs.
const WINDOW: usize = 64 << 10;
const MIN_WINDOW: usize = 4 << 10;
/// Bytes of a run that are sent together.
const PIECE_BYTES: usize = 1 << 20;
/// Names between two checks for cancellation.
const CHECK_EVERY: u64 = 1 << 16;

/// The local number of a name and its rank among all names.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Ranked {
    pub(crate) local: u32,
    pub(crate) rank: u32,
}

/// Writes runs in sequence. For each name: the number of bytes shared with the previous name, the
/// number of further bytes, the local number, and the further bytes.
pub(crate) struct RunWriter {
    file: StoreFile,
    pending: Vec<u8>,
    end: u64,
    last: Vec<u8>,
    names: u64,
    longest: usize,
    runs: Vec<(Range<u64>, u64)>,
}

impl RunWriter {
    pub(crate) fn new(folder: &dyn Folder, job: &Job) -> Result<Self> {
        let file = StoreFile::scratch(folder, job.traffic())?;
        let (pending, last, runs) = (Vec::with_capacity(2 * WINDOW), Vec::new(), Vec::new());
        Ok(Self { file, pending, end: 0, last, names: 0, longest: 0, runs })
    }

    /// Appends the next name of the run, which must be greater than the previous one.
    pub(super) fn push(&mut self, name: &[u8], local: u32) -> Result<()> {
        let shared = self.last.iter().zip(name).take_while(|(a, b)| a == b).count();
        let rest = &name[shared..];
        write_varint(shared as u64, &mut self.pending);
        write_varint(rest.len() as u64, &mut self.pending);
        self.pending.extend_from_slice(&local.to_le_bytes());
        self.pending.extend_from_slice(rest);
        self.last.truncate(shared);
        self.last.extend_from_slice(rest);
        self.longest = self.longest.max(name.len());
        self.names += 1;
        if self.pending.len() >= WINDOW { self.flush() } else { Ok(()) }
    }

    /// Appends a piece of a run that another process has written; `facts` are those of the run.
    pub(crate) fn append(&mut self, facts: RunFacts, piece: &[u8]) -> Result<()> {
        self.names = facts.names;
        self.longest = self.longest.max(usize::try_from(facts.longest).unwrap_or(usize::MAX));
        self.pending.extend_from_slice(piece);
        if self.pending.len() >= WINDOW { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        self.file.write_all_at(&self.pending, self.end)?;
        self.end += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }

    pub(crate) fn end_run(&mut self) -> Result<()> {
        self.flush()?;
        let start = self.runs.last().map_or(0, |(bytes, _)| bytes.end);
        self.runs.push((start..self.end, std::mem::take(&mut self.names)));
        self.last.clear();
        Ok(())
    }

    pub(crate) fn finish(self) -> Result<Runs> {
        Ok(Runs { file: self.file, runs: self.runs, longest: self.longest })
    }
}

/// All runs.
pub(crate) struct Runs {
    file: StoreFile,
    /// The range of each run in the file, and its number of names.
    runs: Vec<(Range<u64>, u64)>,
    longest: usize,
}

/// The facts about a run that its reader must know.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct RunFacts {
    /// Number of names.
    names: u64,
    /// Bytes of the longest name, at least.
    longest: u64,
}

impl Runs {
    /// Passes the bytes of a run to `send`, in pieces, for [`RunWriter::append`].
    pub(crate) fn send(
        &self,
        run: usize,
        mut send: impl FnMut(RunFacts, &[u8]) -> Result<()>,
    ) -> Result<()> {
        let (bytes, names) = self.runs[run].clone();
        let facts = RunFacts { names, longest: self.longest as u64 };
        let mut piece = Vec::new();
        for start in bytes.clone().step_by(PIECE_BYTES) {
            piece.resize((bytes.end - start).min(PIECE_BYTES as u64) as usize, 0);
            self.file.read_exact_at(&mut piece, start)?;
            send(facts, &piece)?;
        }
        Ok(())
    }

    /// Calls `each` with every distinct name, ascending, and returns the ranks of each run's names.
    ///
    /// # Errors
    /// A budget error if `bytes` of memory are too few for the number of runs.
    pub(crate) fn merge(
        self,
        folder: &dyn Folder,
        bytes: u64,
        resources: &Resources,
        mut each: impl FnMut(&[u8]) -> Result<()>,
    ) -> Result<RankTables> {
        // Each run needs a reader with its current name, and a writer of ranks.
        let share = bytes / self.runs.len().max(1) as u64;
        let window =
            usize::try_from(share.saturating_sub(self.longest as u64) / 2).unwrap_or(usize::MAX);
        if window < MIN_WINDOW {
            let more = (self.runs.len() * (2 * MIN_WINDOW + self.longest)) as u64 - bytes;
            resources
                .budget
                .require(resources.budget.limit() + more, "to sort the names of the vertices")?;
        }
        let window = window.clamp(MIN_WINDOW, WINDOW);
        let mut heads = BinaryHeap::with_capacity(self.runs.len());
        let (mut tables, mut start) = (RankTables::new(folder, &resources.job)?, 0);
        let mut writers = Vec::with_capacity(self.runs.len());
        for (run, (bytes, names)) in self.runs.iter().enumerate() {
            let mut head = Head::new(run, &self.file, bytes.clone(), window);
            if head.next()? {
                heads.push(head);
            }
            tables.starts.push(start);
            writers.push(RankWriter { at: start, pending: Vec::new() });
            start += names;
        }
        tables.starts.push(start);
        let (mut last, mut rank, mut taken) = (Vec::new(), None, 0_u64);
        while let Some(mut head) = heads.peek_mut() {
            let place = match rank {
                Some(rank) if last == head.name => rank,
                before => {
                    let place = before
                        .map_or(Some(0), |rank: u32| rank.checked_add(1))
                        .ok_or_else(too_many)?;
                    each(&head.name)?;
                    last.clone_from(&head.name);
                    place
                }
            };
            rank = Some(place);
            let ranked = Ranked { local: head.local, rank: place };
            writers[head.run].push(&tables.file, ranked, window)?;
            taken += 1;
            if taken.is_multiple_of(CHECK_EVERY) {
                resources.job.check()?;
                resources.job.advance(CHECK_EVERY);
            }
            if !head.next()? {
                std::collections::binary_heap::PeekMut::pop(head);
            }
        }
        for writer in &mut writers {
            writer.flush(&tables.file)?;
        }
        tables.names = rank.map_or(0, |rank| u64::from(rank) + 1);
        Ok(tables)
    }

    /// Number of names in all runs; a name in several runs counts several times.
    pub(crate) fn names(&self) -> u64 {
        self.runs.iter().map(|(_, names)| names).sum()
    }
}

#[cold]
fn too_many() -> Error {
    Error::Usage(
        "a graph has at most 2^32 vertices with string ids; number them and use --ids int".into(),
    )
}

/// The current name of a run.
struct Head<'f> {
    run: usize,
    file: &'f StoreFile,
    rest: Range<u64>,
    buffer: Vec<u8>,
    at: usize,
    window: usize,
    name: Vec<u8>,
    local: u32,
}

impl<'f> Head<'f> {
    fn new(run: usize, file: &'f StoreFile, rest: Range<u64>, window: usize) -> Self {
        Self { run, file, rest, buffer: Vec::new(), at: 0, window, name: Vec::new(), local: 0 }
    }

    /// Moves to the next name; false at the end.
    fn next(&mut self) -> Result<bool> {
        if self.at == self.buffer.len() && self.rest.is_empty() {
            return Ok(false);
        }
        let shared = self.number()? as usize;
        let more = self.number()? as usize;
        let mut local = [0; 4];
        for byte in &mut local {
            *byte = self.byte()?;
        }
        self.local = u32::from_le_bytes(local);
        self.name.truncate(shared);
        let mut left = more;
        while left > 0 {
            if self.at == self.buffer.len() {
                self.fill()?;
            }
            let count = left.min(self.buffer.len() - self.at);
            self.name.extend_from_slice(&self.buffer[self.at..self.at + count]);
            self.at += count;
            left -= count;
        }
        Ok(true)
    }

    fn number(&mut self) -> Result<u64> {
        let (mut number, mut shift) = (0, 0);
        loop {
            let byte = self.byte()?;
            number |= u64::from(byte & 127) << shift;
            shift += 7;
            if byte < 128 {
                return Ok(number);
            }
        }
    }

    #[inline]
    fn byte(&mut self) -> Result<u8> {
        if self.at == self.buffer.len() {
            self.fill()?;
        }
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    fn fill(&mut self) -> Result<()> {
        let count = self.window.min((self.rest.end - self.rest.start) as usize);
        if count == 0 {
            let problem = "a run of names ends in the middle of one";
            return Err(StoreError::corrupt(self.file.path(), self.rest.end, problem).into());
        }
        self.buffer.resize(count, 0);
        self.file.read_exact_at(&mut self.buffer, self.rest.start)?;
        self.rest.start += count as u64;
        self.at = 0;
        Ok(())
    }
}

impl PartialEq for Head<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Head<'_> {}

impl PartialOrd for Head<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Head<'_> {
    /// Reversed, because the heap has its greatest element on top and the merge needs the least.
    fn cmp(&self, other: &Self) -> Ordering {
        other.name.cmp(&self.name).then(other.run.cmp(&self.run))
    }
}

struct RankWriter {
    at: u64,
    pending: Vec<Ranked>,
}

impl RankWriter {
    fn push(&mut self, file: &StoreFile, ranked: Ranked, window: usize) -> Result<()> {
        self.pending.push(ranked);
        if self.pending.len() * size_of::<Ranked>() >= window { self.flush(file) } else { Ok(()) }
    }

    fn flush(&mut self, file: &StoreFile) -> Result<()> {
        file.write_all_at(
            bytemuck::cast_slice(&self.pending),
            self.at * size_of::<Ranked>() as u64,
        )?;
        self.at += self.pending.len() as u64;
        self.pending.clear();
        Ok(())
    }
}

/// The ranks of the names of every run, on disk.
pub(crate) struct RankTables {
    file: StoreFile,
    /// The start of the ranks of each run, and the end of the last.
    starts: Vec<u64>,
    /// Number of distinct names.
    pub(crate) names: u64,
}

impl RankTables {
    fn new(folder: &dyn Folder, job: &Job) -> Result<Self> {
        Ok(Self { file: StoreFile::scratch(folder, job.traffic())?, starts: Vec::new(), names: 0 })
    }

    /// Sets `table[local]` to the rank of each name of `run`.
    pub(crate) fn load(&self, run: usize, table: &mut [u32]) -> Result<()> {
        let mut window = vec![Ranked::zeroed(); WINDOW / size_of::<Ranked>()];
        let (mut at, end) = (self.starts[run], self.starts[run + 1]);
        while at < end {
            let count = window.len().min((end - at) as usize);
            let ranks = &mut window[..count];
            self.file
                .read_exact_at(bytemuck::cast_slice_mut(ranks), at * size_of::<Ranked>() as u64)?;
            for ranked in ranks {
                table[ranked.local as usize] = ranked.rank;
            }
            at += count as u64;
        }
        Ok(())
    }
}
