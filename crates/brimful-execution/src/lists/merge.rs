//! A merge of sorted runs: groups in ascending order of their keys, with the messages of all runs.
//!
//! Invariant: the messages to one key are in the order of the runs, and in each run in their order
//! there.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;

use crate::error::Result;
use crate::lists::spill::{SpillFile, SpilledRun, SpilledRunReader, SpilledRunWriter};

/// Reads runs as one; a clone continues from the same position.
#[derive(Debug, Clone)]
pub(super) struct Merge {
    readers: Vec<SpilledRunReader>,
    /// The next key of each run that has one.
    heads: BinaryHeap<Reverse<(Vec<u8>, usize)>>,
    /// The key of the current group, and the runs that contain it, ascending.
    key: Vec<u8>,
    of_key: Vec<usize>,
    /// Number of these runs whose part of the group has been read.
    done: usize,
}

impl Merge {
    /// A merge of `runs`, in the order in which they were written.
    pub(super) fn new(runs: Vec<Arc<SpilledRun>>) -> Result<Self> {
        let readers = runs.into_iter().map(SpilledRunReader::new).collect();
        let mut merge =
            Self { readers, heads: BinaryHeap::new(), key: vec![], of_key: vec![], done: 0 };
        (0..merge.readers.len()).try_for_each(|run| merge.advance(run, Vec::new()))?;
        Ok(merge)
    }

    fn advance(&mut self, run: usize, mut key: Vec<u8>) -> Result<()> {
        let Some(reader) = self.readers.get_mut(run) else { return Ok(()) };
        if reader.next_group(&mut key)? {
            self.heads.push(Reverse((key, run)));
        }
        Ok(())
    }

    /// True if there is no further group.
    pub(super) fn is_at_end(&self) -> bool {
        self.heads.is_empty() && self.done == self.of_key.len()
    }

    /// Moves to the next group and skips unread messages of the last one. False at the end.
    pub(super) fn next_group(&mut self) -> Result<bool> {
        self.pass()?;
        let Some(Reverse((key, run))) = self.heads.pop() else { return Ok(false) };
        self.of_key.push(run);
        while let Some(Reverse((other, run))) = self.heads.peek() {
            if *other != key {
                break;
            }
            self.of_key.push(*run);
            self.heads.pop();
        }
        self.key = key;
        Ok(true)
    }

    /// Skips the rest of the group and reads the next keys.
    pub(super) fn pass(&mut self) -> Result<()> {
        while self.next_message()?.is_some() {}
        for run in std::mem::take(&mut self.of_key) {
            self.advance(run, Vec::new())?;
        }
        self.done = 0;
        Ok(())
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    /// The next message of the group.
    pub(super) fn next_message(&mut self) -> Result<Option<&[u8]>> {
        while let Some(reader) =
            self.of_key.get(self.done).and_then(|run| self.readers.get_mut(*run))
        {
            // Borrowed again below: the borrow checker rejects a conditional return of this borrow.
            if reader.has_message()? {
                break;
            }
            self.done += 1;
        }
        match self.of_key.get(self.done).and_then(|run| self.readers.get_mut(*run)) {
            Some(reader) => reader.take_message().map(Some),
            None => Ok(None),
        }
    }

    /// Writes all groups as one run.
    pub(super) fn into_run(mut self, file: &Arc<SpillFile>) -> Result<SpilledRun> {
        let mut writer = SpilledRunWriter::new(file);
        while self.next_group()? {
            writer.begin(&self.key)?;
            while let Some(message) = self.next_message()? {
                writer.message(message)?;
            }
            writer.end()?;
        }
        writer.finish()
    }
}
