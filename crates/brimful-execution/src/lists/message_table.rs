//! The message table: messages by key, taken out group by group while others arrive.
//!
//! A *group* is a key with all messages to it. Messages arrive in one memory table and are taken
//! out of another. When the second is empty, the two are swapped: a *generation* begins. A full
//! table goes to disk as a sorted run. A generation with runs is read by merging them, in ascending
//! order of the keys; any other comes in the order of arrival, or in that of the keys if the reader
//! asks for it. Invariant: the reader may stop after any group, add messages, and continue. No
//! message is lost or returned twice, and memory stays within the limit.

use std::sync::Arc;

use brimful_store::Error as StoreError;

use crate::error::Result;
use crate::lists::memory_table::{Added, Fold, HashedKey, MemoryMessages, MemoryTable};
use crate::lists::merge::Merge;
use crate::lists::spill::{BLOCK_BYTES, SpillFile, SpilledRun, SpilledRunWriter};

/// The minimum memory of a message table, in bytes: two memory tables, one of which can merge four
/// runs into one.
pub const MINIMUM_BYTES: u64 = 2 * TABLE_BYTES as u64;
const TABLE_BYTES: usize = 5 * BLOCK_BYTES;

/// Messages by key, in memory and on disk.
#[derive(Debug)]
pub(super) struct MessageTable {
    arriving: MemoryTable,
    /// Spilled from `arriving`, in order.
    runs: Vec<Arc<SpilledRun>>,
    ready: MemoryTable,
    /// The next entry of `ready` to be taken out in the order of arrival.
    next: Option<u32>,
    /// The entries of `ready` that are taken out in the order of their keys, the last one first.
    sorted: Vec<u32>,
    /// The source instead of `ready` if the generation was spilled.
    merge: Option<Merge>,
    /// True while groups of a generation are being taken out.
    is_open: bool,
    /// Bytes of each table, including the writer's block.
    half: usize,
    file: Arc<SpillFile>,
    spills: u64,
}

impl MessageTable {
    /// A table that takes up to `bytes` of memory, at least [`MINIMUM_BYTES`], and spills to
    /// `file`.
    pub(super) fn new(bytes: u64, file: &Arc<SpillFile>) -> Self {
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX).max(TABLE_BYTES);
        // A table that spills needs the writer's block in addition to its contents.
        let table = || MemoryTable::new(half - BLOCK_BYTES);
        Self {
            arriving: table(),
            runs: Vec::new(),
            ready: table(),
            next: None,
            sorted: Vec::new(),
            merge: None,
            is_open: false,
            half,
            file: Arc::clone(file),
            spills: 0,
        }
    }

    /// Adds `message`, or the key alone, to the group of `key`. False if the group was in memory
    /// already.
    pub(super) fn add<'k>(
        &mut self,
        key: impl Into<HashedKey<'k>>,
        message: Option<&[u8]>,
        fold: Option<Fold<'_>>,
    ) -> Result<bool> {
        let key = key.into();
        if self.ready.waits(key, self.next)
            && self.ready.add(key, message, fold)? == Added::Existing
        {
            return Ok(false);
        }
        loop {
            match self.arriving.add(key, message, fold)? {
                Added::New => return Ok(true),
                Added::Existing => return Ok(false),
                Added::Full if self.arriving.len() > 0 => self.spill()?,
                Added::Full => {
                    return Err(self.too_long(key.bytes.len() + message.map_or(0, <[u8]>::len)));
                }
            }
        }
    }

    /// Brings the entries of `keys` into the processor's cache, see [`MemoryTable::warm`].
    pub(super) fn warm<'k>(&self, keys: impl Iterator<Item = HashedKey<'k>> + Clone) {
        if self.next.is_some() {
            self.ready.warm(keys.clone());
        }
        self.arriving.warm(keys);
    }

    /// True while a generation is being taken out.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Moves to the next group, and begins a generation if none is open; `None` at its end.
    pub(super) fn next_group(&mut self) -> Result<Option<Group<'_>>> {
        if !self.is_open {
            self.begin()?;
        }
        if let Some(merge) = &mut self.merge {
            if merge.next_group()? {
                // Repeated, because the borrow checker extends a conditionally returned borrow to
                // all paths.
                return Ok(self.merge.as_mut().map(Group::Disk));
            }
            self.merge = None;
        } else if let Some(entry) = self.sorted.pop().or(self.next) {
            self.next = self.next.and_then(|entry| self.ready.after(entry));
            let (key, messages) = (self.ready.key(entry), self.ready.messages(entry));
            return Ok(Some(Group::Memory { key, messages }));
        }
        self.ready.clear();
        self.is_open = false;
        Ok(None)
    }

    /// The keys of up to `most` groups that are taken out next. Those of a spilled generation are
    /// not known before they are read.
    pub(super) fn upcoming(&self, most: usize) -> impl Iterator<Item = &[u8]> {
        let arrived = std::iter::successors(self.next, |entry| self.ready.after(*entry));
        let entries = self.sorted.iter().rev().copied().chain(arrived);
        entries.take(most).map(|entry| self.ready.key(entry))
    }

    /// True if neither this generation nor the next has a group left.
    pub(super) fn is_empty(&mut self) -> Result<bool> {
        if let Some(merge) = &mut self.merge {
            // Skips unread messages of the last group.
            merge.pass()?;
        }
        let is_taken = self.next.is_none() && self.sorted.is_empty();
        let is_read = self.merge.as_ref().map_or(is_taken, Merge::is_at_end);
        Ok(is_read && self.arriving.len() == 0 && self.runs.is_empty())
    }

    /// Number of spills to disk.
    pub(super) fn spills(&self) -> u64 {
        self.spills
    }

    fn too_long(&self, bytes: usize) -> crate::error::Error {
        // Two tables, each with a block for the writer and one for its own tables.
        let (budget, needed) = (2 * self.half as u64, 2 * (bytes + 2 * BLOCK_BYTES) as u64);
        let purpose =
            format!("for a list that keeps a signal of {bytes} bytes, its vertex's id included");
        StoreError::too_small(budget, needed, purpose).into()
    }

    /// Begins a generation whose groups come in ascending order of their keys, unless one is open.
    pub(super) fn begin_in_order(&mut self) -> Result<()> {
        if self.is_open {
            return Ok(());
        }
        self.begin()?;
        if self.next.take().is_some() {
            self.sorted = self.ready.sorted();
            self.sorted.reverse();
        }
        Ok(())
    }

    /// Begins a generation with the messages that have arrived.
    fn begin(&mut self) -> Result<()> {
        if self.runs.is_empty() {
            std::mem::swap(&mut self.arriving, &mut self.ready);
            self.next = self.ready.first();
        } else {
            self.spill()?;
            self.merge = Some(self.merge_of_runs()?);
            self.runs.clear();
        }
        self.is_open = true;
        Ok(())
    }

    fn spill(&mut self) -> Result<()> {
        if self.arriving.len() > 0 {
            let run = write(&self.arriving, self.arriving.sorted(), &self.file)?;
            tracing::info!(recipients = self.arriving.len(), "spill");
            self.runs.push(Arc::new(run));
            self.arriving.clear();
            self.spills += 1;
        }
        Ok(())
    }

    /// Merges the runs, in the memory of the unused table.
    fn merge_of_runs(&mut self) -> Result<Merge> {
        self.ready.release();
        let most = self.half / BLOCK_BYTES - 1;
        let mut at = 0;
        while self.runs.len() > most {
            // Each pass over the runs merges neighbors, and copies each message at most once; the
            // last pass copies only as many as are too many.
            let count = most.min(self.runs.len() - most + 1);
            let end = self.runs.len().min(at + count);
            let run = Merge::new(self.runs[at..end].to_vec())?.into_run(&self.file)?;
            self.runs.splice(at..end, [Arc::new(run)]);
            at += 1;
            if at + 1 >= self.runs.len() {
                at = 0;
            }
        }
        Merge::new(self.runs.clone())
    }

    /// Calls `each` once for every key; removes nothing.
    pub(super) fn for_each_key(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.merge.is_none() && self.runs.is_empty() && self.sorted.is_empty() {
            let mut next = self.next;
            while let Some(entry) = next {
                each(self.ready.key(entry))?;
                next = self.ready.after(entry);
            }
            let mut next = self.arriving.first();
            while let Some(entry) = next {
                let key = self.arriving.key(entry);
                if !self.ready.waits(key.into(), self.next) {
                    each(key)?;
                }
                next = self.arriving.after(entry);
            }
            return Ok(());
        }
        self.close()?;
        let mut merge = self.merge_of_runs()?;
        while merge.next_group()? {
            each(merge.key())?;
        }
        Ok(())
    }

    /// Ends the generation: its remaining groups count as the first arrivals of the next one.
    fn close(&mut self) -> Result<()> {
        self.spill()?;
        if let Some(merge) = self.merge.take() {
            let run = merge.into_run(&self.file)?;
            self.runs.insert(0, Arc::new(run));
        } else if self.next.is_some() || !self.sorted.is_empty() {
            let mut left = std::mem::take(&mut self.sorted);
            left.reverse();
            if let Some(from) = self.next.take() {
                left = self.ready.sorted();
                left.retain(|entry| *entry >= from);
            }
            let run = write(&self.ready, left, &self.file)?;
            self.runs.insert(0, Arc::new(run));
        }
        self.is_open = false;
        Ok(())
    }
}

/// Writes groups of `table` as a run.
fn write(table: &MemoryTable, entries: Vec<u32>, file: &Arc<SpillFile>) -> Result<SpilledRun> {
    let mut writer = SpilledRunWriter::new(file);
    for entry in entries {
        writer.begin(table.key(entry))?;
        table.messages(entry).try_for_each(|message| writer.message(message))?;
        writer.end()?;
    }
    writer.finish()
}

/// A key and the messages to it.
#[derive(Debug)]
pub(super) enum Group<'p> {
    Memory { key: &'p [u8], messages: MemoryMessages<'p> },
    Disk(&'p mut Merge),
}

impl Group<'_> {
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Self::Memory { key, .. } => key,
            Self::Disk(merge) => merge.key(),
        }
    }

    /// The next message, in the order of arrival.
    pub(super) fn next_message(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Self::Memory { messages, .. } => Ok(messages.next()),
            Self::Disk(merge) => merge.next_message(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brimful_store::fault::{FaultFolder, FaultPlan};
    use brimful_store::{DiskFolder, Job};

    use super::*;

    fn table(bytes: u64) -> MessageTable {
        let folder = tempfile::tempdir().unwrap();
        let file = SpillFile::new(&DiskFolder::new(folder.path()), &Arc::new(Job::new())).unwrap();
        MessageTable::new(bytes, &Arc::new(file))
    }

    fn mix(seed: u64) -> u64 {
        let z = (seed ^ (seed >> 30))
            .wrapping_add(0x9E37_79B9_7F4A_7C15)
            .wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    type Messages = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

    /// Takes out up to `most` groups and adds them to `out`; false at the end of a generation.
    fn take(table: &mut MessageTable, most: usize, out: &mut Messages) -> bool {
        for _ in 0..most {
            let Some(mut group) = table.next_group().unwrap() else { return false };
            let messages = out.entry(group.key().to_vec()).or_default();
            while let Some(message) = group.next_message().unwrap() {
                messages.push(message.to_vec());
            }
        }
        true
    }

    /// Messages of many lengths to `keys` keys; the first bytes contain their order.
    fn message(number: u64, keys: u64) -> (Vec<u8>, Vec<u8>) {
        let random = mix(number);
        let mut key = (random % keys).to_be_bytes()[8 - 1 - (random % 3) as usize..].to_vec();
        key.push(7);
        let mut message = number.to_be_bytes().to_vec();
        message.resize(8 + (random >> 40) as usize % 30, random as u8);
        (key, message)
    }

    #[test]
    fn what_is_added_is_taken_out_once_and_in_order() {
        // In memory, with some runs, and with runs of runs.
        for (messages, keys, bytes) in
            [(3000, 200, 64 << 20), (60_000, 5000, 0), (120_000, 1 << 40, 0)]
        {
            let mut table = table(bytes);
            let mut expected = Messages::new();
            for number in 0..messages {
                let (key, message) = message(number, keys);
                table.add(&key, Some(&message), None).unwrap();
                expected.entry(key).or_default().push(message);
            }
            assert_eq!(table.spills() > 0, bytes == 0);
            let mut out = Messages::new();
            assert!(!take(&mut table, usize::MAX, &mut out));
            assert!(out == expected, "{messages} messages");
            assert!(table.is_empty().unwrap());
            assert!(!take(&mut table, 1, &mut out));
        }
    }

    #[test]
    fn taking_out_stops_and_goes_on_while_messages_arrive() {
        for bytes in [64 << 20, 0] {
            let mut table = table(bytes);
            let (mut expected, mut out) = (Messages::new(), Messages::new());
            for number in 0..90_000 {
                let (key, message) = message(number, 3000);
                table.add(&key, Some(&message), None).unwrap();
                expected.entry(key).or_default().push(message);
                if number % 5000 < 40 {
                    take(&mut table, 20, &mut out);
                }
            }
            while !table.is_empty().unwrap() {
                take(&mut table, 1000, &mut out);
            }
            assert!(out == expected, "{bytes} bytes");
        }
    }

    #[test]
    fn a_generation_in_order_comes_by_ascending_keys_and_may_be_stopped() {
        for bytes in [64 << 20, 0] {
            let mut table = table(bytes);
            let mut expected = Messages::new();
            for number in 0..20_000 {
                let (key, message) = message(number, 3000);
                table.add(&key, Some(&message), None).unwrap();
                expected.entry(key).or_default().push(message);
            }
            table.begin_in_order().unwrap();
            let (mut keys, mut out) = (Vec::new(), Messages::new());
            while keys.len() < 1000 {
                let next = table.upcoming(1).next().map(<[u8]>::to_vec);
                let mut group = table.next_group().unwrap().unwrap();
                keys.push(group.key().to_vec());
                assert!(next.is_none_or(|next| next == group.key()));
                let messages = out.entry(group.key().to_vec()).or_default();
                while let Some(message) = group.next_message().unwrap() {
                    messages.push(message.to_vec());
                }
            }
            assert!(keys.is_sorted(), "{bytes} bytes");
            let mut left = 0;
            table
                .for_each_key(|_| {
                    left += 1;
                    Ok(())
                })
                .unwrap();
            assert_eq!(left, expected.len() - keys.len());
            table.begin_in_order().unwrap();
            assert!(!take(&mut table, usize::MAX, &mut out));
            assert!(out == expected && table.is_empty().unwrap(), "{bytes} bytes");
        }
    }

    #[test]
    fn many_runs_are_merged_in_few_passes_which_a_cancelled_job_ends() {
        let mut table = table(0);
        let (mut number, mut bytes) = (0, 0);
        while table.spills() < 64 {
            let (key, message) = message(number, 1 << 40);
            bytes += (key.len() + message.len()) as u64;
            table.add(&key, Some(&message), None).unwrap();
            number += 1;
        }
        table.spill().unwrap();
        let interrupted = |error: Option<crate::error::Error>| {
            error.is_some_and(|error| error.to_string().contains("interrupted"))
        };
        table.file.job().cancel();
        assert!(interrupted(table.next_group().err()), "while runs are merged into fewer");
        table.file.job().resume();
        assert!(table.next_group().unwrap().is_some());
        table.file.job().cancel();
        let error = (0..number).find_map(|_| table.next_group().err());
        assert!(interrupted(error), "while the last runs are read");
        table.file.job().resume();
        // Written when they spilled, and in three passes; one by one it would be eleven times.
        let written = table.file.written_bytes();
        assert!(written < 6 * bytes, "{written} of {bytes}");
    }

    #[test]
    fn the_disk_space_of_what_was_taken_out_is_used_again() {
        let mut table = table(0);
        let mut sizes = Vec::new();
        for round in 0..6 {
            for number in 0..40_000 {
                let (key, message) = message(number + round * 40_000, 1 << 40);
                table.add(&key, Some(&message), None).unwrap();
            }
            take(&mut table, usize::MAX, &mut Messages::new());
            sizes.push(table.file.file_bytes());
        }
        assert!(sizes[0] > 0 && sizes[5] <= sizes[0] * 5 / 4, "{sizes:?}");
    }

    #[test]
    fn a_full_disk_loses_nothing_that_was_taken() {
        let folder = FaultFolder::new();
        let file = SpillFile::new(&folder, &Arc::new(Job::new())).unwrap();
        let mut table = MessageTable::new(0, &Arc::new(file));
        let (mut expected, mut failures) = (Messages::new(), 0);
        folder.set_plan(FaultPlan::new().capacity(200_000));
        for number in 0..25_000 {
            if failures == 50 {
                folder.set_plan(FaultPlan::new().capacity(u64::MAX / 2));
            }
            let (key, message) = message(number, 5000);
            match table.add(&key, Some(&message), None) {
                Ok(_) => expected.entry(key).or_default().push(message),
                Err(error) => {
                    failures += 1;
                    assert!(error.to_string().contains("the disk is full"), "{error}");
                }
            }
        }
        assert_eq!(failures, 50);
        let mut out = Messages::new();
        take(&mut table, usize::MAX, &mut out);
        assert!(out == expected);
    }

    #[test]
    fn a_fold_keeps_one_message_a_key_whatever_its_length() {
        for bytes in [64 << 20, 0] {
            let mut table = table(bytes);
            let join = |old: &[u8], new: &[u8], out: &mut Vec<u8>| {
                out.extend_from_slice(old.max(new));
                Ok(())
            };
            let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for number in 0..100_000 {
                let (key, message) = message(number, 900_000);
                table.add(&key, Some(&message), Some(&join)).unwrap();
                let most = expected.entry(key).or_default();
                *most = std::mem::take(most).max(message);
            }
            let mut out = Messages::new();
            take(&mut table, usize::MAX, &mut out);
            assert_eq!(out.len(), expected.len());
            for (key, messages) in out {
                assert!(bytes == 0 || messages.len() == 1, "{} messages", messages.len());
                assert_eq!(messages.into_iter().max(), expected.remove(&key));
            }
        }
    }

    #[test]
    fn keys_without_messages_are_groups_too_and_are_seen_without_being_taken_out() {
        for bytes in [64 << 20, 0] {
            let mut table = table(bytes);
            let key = |number: u64| mix(number % 30_000).to_be_bytes();
            for number in 0..60_000 {
                let is_new = table.add(&key(number), None, None).unwrap();
                assert!(is_new || number >= 30_000 || bytes == 0);
            }
            let mut out = Messages::new();
            take(&mut table, 1000, &mut out);
            (0..100).for_each(|number| _ = table.add(&key(number), None, None).unwrap());
            for _ in 0..2 {
                let mut seen = Vec::new();
                table
                    .for_each_key(|key| {
                        seen.push(key.to_vec());
                        Ok(())
                    })
                    .unwrap();
                let count = seen.len();
                seen.sort_unstable();
                seen.dedup();
                assert_eq!(seen.len(), count, "none comes twice");
                assert!((29_000..=29_100).contains(&count), "{count}");
            }
            while !table.is_empty().unwrap() {
                take(&mut table, usize::MAX, &mut out);
            }
            assert_eq!(out.len(), 30_000);
            assert!(out.values().all(Vec::is_empty));
        }
    }

    #[test]
    fn a_message_longer_than_all_memory_is_refused_by_a_figure() {
        let mut table = table(0);
        let error = table.add(b"v", Some(&vec![0; 1 << 20]), None).unwrap_err().to_string();
        assert!(error.contains("a signal of 1048577 bytes"), "{error}");
        let mut larger = super::tests::table(2 * ((1 << 20) + 1 + 2 * BLOCK_BYTES as u64));
        larger.add(b"v", Some(&vec![0; 1 << 20]), None).unwrap();
    }
}
