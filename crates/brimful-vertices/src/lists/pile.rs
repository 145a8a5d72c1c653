//! Letters by key, taken out group by group while others arrive: what both lists are made of.
//!
//! A *group* is a key with all letters to it. What arrives goes to one table; what is taken out comes from
//! another, and when that is empty they change places: a *generation*. A table that is full goes to disk as a
//! sorted run; such a generation is read by merging its runs, and its groups come by ascending keys, else in the order in
//! which they arrived. Invariant: whoever takes may stop after any group, add, and go on; no letter is lost or
//! handed out twice, and memory stays within the limit.

use std::sync::Arc;

use brimful_store::Error as StoreError;

use crate::error::Result;
use crate::lists::merge::Merge;
use crate::lists::spill::{BLOCK_BYTES, Run, RunWriter, SpillFile};
use crate::lists::table::{Added, Fold, Key, Table, TableLetters};

/// Bytes that a pile takes at least: two tables, one of which is room to merge four runs into one.
pub const MINIMUM_BYTES: u64 = 2 * TABLE_BYTES as u64;
const TABLE_BYTES: usize = 5 * BLOCK_BYTES;

/// Letters by key.
#[derive(Debug)]
pub(super) struct Pile {
    arriving: Table,
    /// What did not fit into `arriving`, in order.
    runs: Vec<Arc<Run>>,
    ready: Table,
    /// The next entry of `ready` to be taken out.
    next: Option<u32>,
    /// What is taken out instead of `ready` if the generation went to disk.
    merge: Option<Merge>,
    /// A generation is being taken out.
    is_open: bool,
    /// Bytes of either table, the writer's block included.
    half: usize,
    file: Arc<SpillFile>,
    spills: u64,
}

impl Pile {
    /// A pile that takes up to `bytes` of memory, at least [`MINIMUM_BYTES`], and the rest to `file`.
    pub(super) fn new(bytes: u64, file: &Arc<SpillFile>) -> Self {
        let half = usize::try_from(bytes / 2).unwrap_or(usize::MAX).max(TABLE_BYTES);
        // Beside what is in it, a table that goes to disk needs the writer's block.
        let table = || Table::new(half - BLOCK_BYTES);
        Self {
            arriving: table(),
            runs: Vec::new(),
            ready: table(),
            next: None,
            merge: None,
            is_open: false,
            half,
            file: Arc::clone(file),
            spills: 0,
        }
    }

    /// Adds `letter`, or nothing but the key, to the group of `key`. False if the group was there in memory.
    pub(super) fn add<'k>(
        &mut self,
        key: impl Into<Key<'k>>,
        letter: Option<&[u8]>,
        fold: Option<Fold<'_>>,
    ) -> Result<bool> {
        let key = key.into();
        if self.ready.waits(key, self.next) && self.ready.add(key, letter, fold)? == Added::Known {
            return Ok(false);
        }
        loop {
            match self.arriving.add(key, letter, fold)? {
                Added::New => return Ok(true),
                Added::Known => return Ok(false),
                Added::Full if self.arriving.len() > 0 => self.spill()?,
                Added::Full => return Err(self.too_long(key.bytes.len() + letter.map_or(0, <[u8]>::len))),
            }
        }
    }

    /// Reads what adding letters to `keys` will read, see [`Table::warm`].
    pub(super) fn warm<'k>(&self, keys: impl Iterator<Item = Key<'k>> + Clone) {
        if self.next.is_some() {
            self.ready.warm(keys.clone());
        }
        self.arriving.warm(keys);
    }

    /// True while a generation is being taken out.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Goes to the next group of the generation, and begins one if none is begun; `None` at its end.
    pub(super) fn next_group(&mut self) -> Result<Option<Group<'_>>> {
        if !self.is_open {
            self.begin()?;
        }
        if let Some(merge) = &mut self.merge {
            if merge.next_group()? {
                // Asked again: a borrow that is returned on one way lasts on all.
                return Ok(self.merge.as_mut().map(Group::Disk));
            }
            self.merge = None;
        } else if let Some(entry) = self.next {
            self.next = self.ready.after(entry);
            let (key, letters) = (self.ready.key(entry), self.ready.letters(entry));
            return Ok(Some(Group::Memory { key, letters }));
        }
        self.ready.clear();
        self.is_open = false;
        Ok(None)
    }

    /// True if no group is left, of this generation or the next.
    pub(super) fn is_empty(&mut self) -> Result<bool> {
        if let Some(merge) = &mut self.merge {
            // The letters of the last group that nobody read.
            merge.pass()?;
        }
        let is_read = self.merge.as_ref().map_or(self.next.is_none(), Merge::is_at_end);
        Ok(is_read && self.arriving.len() == 0 && self.runs.is_empty())
    }

    /// Groups in memory.
    pub(super) fn len_in_memory(&self) -> usize {
        let left = std::iter::successors(self.next, |entry| self.ready.after(*entry)).count();
        left + self.arriving.len()
    }

    /// Times that a table went to disk.
    pub(super) fn spills(&self) -> u64 {
        self.spills
    }

    fn too_long(&self, bytes: usize) -> crate::error::Error {
        // Two tables, each with a block for the writer and one for its own tables.
        let (budget, needed) = (2 * self.half as u64, 2 * (bytes + 2 * BLOCK_BYTES) as u64);
        let purpose = format!("for a list that keeps a signal of {bytes} bytes, its vertex's id included");
        StoreError::Budget { budget, needed, purpose }.into()
    }

    /// Makes what arrived the generation to be taken out.
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

    /// The runs as one; in the memory of the table that is not in use.
    fn merge_of_runs(&mut self) -> Result<Merge> {
        self.ready.release();
        let most = self.half / BLOCK_BYTES - 1;
        while self.runs.len() > most {
            // The oldest become the oldest.
            let oldest = self.runs.iter().take(most).cloned().collect();
            let run = Merge::new(oldest)?.into_run(&self.file)?;
            self.runs.splice(..most, [Arc::new(run)]);
        }
        Merge::new(self.runs.clone())
    }

    /// Hands out every key that there is, once, and takes none out.
    pub(super) fn for_each_key(&mut self, mut each: impl FnMut(&[u8]) -> Result<()>) -> Result<()> {
        if self.merge.is_none() && self.runs.is_empty() {
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

    /// Ends the generation: what is left of it is as if it had just arrived, before all else.
    fn close(&mut self) -> Result<()> {
        self.spill()?;
        if let Some(merge) = self.merge.take() {
            let run = merge.into_run(&self.file)?;
            self.runs.insert(0, Arc::new(run));
        } else if self.next.is_some() {
            let from = self.next.take();
            let mut left = self.ready.sorted();
            left.retain(|entry| Some(*entry) >= from);
            let run = write(&self.ready, left, &self.file)?;
            self.runs.insert(0, Arc::new(run));
        }
        self.is_open = false;
        Ok(())
    }
}

/// Writes groups of `table` as a run.
fn write(table: &Table, entries: Vec<u32>, file: &Arc<SpillFile>) -> Result<Run> {
    let mut writer = RunWriter::new(file);
    for entry in entries {
        writer.begin(table.key(entry))?;
        table.letters(entry).try_for_each(|letter| writer.letter(letter))?;
        writer.end()?;
    }
    writer.finish()
}

/// A key and the letters to it.
#[derive(Debug)]
pub(super) enum Group<'p> {
    Memory { key: &'p [u8], letters: TableLetters<'p> },
    Disk(&'p mut Merge),
}

impl Group<'_> {
    /// The key.
    pub(super) fn key(&self) -> &[u8] {
        match self {
            Self::Memory { key, .. } => key,
            Self::Disk(merge) => merge.key(),
        }
    }

    /// The next letter, in the order in which they came.
    pub(super) fn next_letter(&mut self) -> Result<Option<&[u8]>> {
        match self {
            Self::Memory { letters, .. } => Ok(letters.next()),
            Self::Disk(merge) => merge.next_letter(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use brimful_store::fault::{FaultFolder, FaultPlan};
    use brimful_store::{DiskFolder, Job};

    use super::*;

    fn pile(bytes: u64) -> Pile {
        let folder = tempfile::tempdir().unwrap();
        let file = SpillFile::new(&DiskFolder::new(folder.path()), &Job::new()).unwrap();
        Pile::new(bytes, &Arc::new(file))
    }

    fn mix(seed: u64) -> u64 {
        let z = (seed ^ (seed >> 30)).wrapping_add(0x9E37_79B9_7F4A_7C15).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    type Letters = BTreeMap<Vec<u8>, Vec<Vec<u8>>>;

    /// Takes out up to `most` groups and adds them to `out`; false at the end of a generation.
    fn take(pile: &mut Pile, most: usize, out: &mut Letters) -> bool {
        for _ in 0..most {
            let Some(mut group) = pile.next_group().unwrap() else { return false };
            let letters = out.entry(group.key().to_vec()).or_default();
            while let Some(letter) = group.next_letter().unwrap() {
                letters.push(letter.to_vec());
            }
        }
        true
    }

    /// Letters of many lengths to `keys` keys; the first bytes tell the order in which they come.
    fn letter(number: u64, keys: u64) -> (Vec<u8>, Vec<u8>) {
        let random = mix(number);
        let mut key = (random % keys).to_be_bytes()[8 - 1 - (random % 3) as usize..].to_vec();
        key.push(7);
        let mut letter = number.to_be_bytes().to_vec();
        letter.resize(8 + (random >> 40) as usize % 30, random as u8);
        (key, letter)
    }

    #[test]
    fn what_is_added_is_taken_out_once_and_in_order() {
        // In memory, with some runs, and with runs of runs.
        for (letters, keys, bytes) in [(3000, 200, 64 << 20), (60_000, 5000, 0), (120_000, 1 << 40, 0)] {
            let mut pile = pile(bytes);
            let mut expected = Letters::new();
            for number in 0..letters {
                let (key, letter) = letter(number, keys);
                pile.add(&key, Some(&letter), None).unwrap();
                expected.entry(key).or_default().push(letter);
            }
            assert_eq!(pile.spills() > 0, bytes == 0);
            let mut out = Letters::new();
            assert!(!take(&mut pile, usize::MAX, &mut out));
            assert!(out == expected, "{letters} letters");
            assert!(pile.is_empty().unwrap());
            assert!(!take(&mut pile, 1, &mut out));
        }
    }

    #[test]
    fn taking_out_stops_and_goes_on_while_letters_arrive() {
        for bytes in [64 << 20, 0] {
            let mut pile = pile(bytes);
            let (mut expected, mut out) = (Letters::new(), Letters::new());
            for number in 0..90_000 {
                let (key, letter) = letter(number, 3000);
                pile.add(&key, Some(&letter), None).unwrap();
                expected.entry(key).or_default().push(letter);
                if number % 5000 < 40 {
                    take(&mut pile, 20, &mut out);
                }
            }
            while !pile.is_empty().unwrap() {
                take(&mut pile, 1000, &mut out);
            }
            assert!(out == expected, "{bytes} bytes");
        }
    }

    #[test]
    fn the_disk_space_of_what_was_taken_out_is_used_again() {
        let mut pile = pile(0);
        let mut sizes = Vec::new();
        for round in 0..6 {
            for number in 0..40_000 {
                let (key, letter) = letter(number + round * 40_000, 1 << 40);
                pile.add(&key, Some(&letter), None).unwrap();
            }
            take(&mut pile, usize::MAX, &mut Letters::new());
            sizes.push(pile.file.file_bytes());
        }
        assert!(sizes[0] > 0 && sizes[5] <= sizes[0] * 5 / 4, "{sizes:?}");
    }

    #[test]
    fn a_full_disk_loses_nothing_that_was_taken() {
        let folder = FaultFolder::new();
        let file = SpillFile::new(&folder, &Job::new()).unwrap();
        let mut pile = Pile::new(0, &Arc::new(file));
        let (mut expected, mut failures) = (Letters::new(), 0);
        for number in 0..60_000 {
            folder.set_plan(FaultPlan::new().capacity(if number < 40_000 { 200_000 } else { u64::MAX / 2 }));
            let (key, letter) = letter(number, 5000);
            match pile.add(&key, Some(&letter), None) {
                Ok(_) => expected.entry(key).or_default().push(letter),
                Err(error) => {
                    failures += 1;
                    assert!(error.to_string().contains("the disk is full"), "{error}");
                }
            }
        }
        assert!(failures > 1000, "{failures}");
        let mut out = Letters::new();
        take(&mut pile, usize::MAX, &mut out);
        assert!(out == expected);
    }

    #[test]
    fn a_fold_keeps_one_letter_a_key_whatever_its_length() {
        for bytes in [64 << 20, 0] {
            let mut pile = pile(bytes);
            let join = |old: &[u8], new: &[u8], out: &mut Vec<u8>| {
                out.extend_from_slice(old.max(new));
                Ok(())
            };
            let mut expected: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
            for number in 0..100_000 {
                let (key, letter) = letter(number, 900_000);
                pile.add(&key, Some(&letter), Some(&join)).unwrap();
                let most = expected.entry(key).or_default();
                *most = std::mem::take(most).max(letter);
            }
            let mut out = Letters::new();
            take(&mut pile, usize::MAX, &mut out);
            assert_eq!(out.len(), expected.len());
            for (key, letters) in out {
                assert!(bytes == 0 || letters.len() == 1, "{} letters", letters.len());
                assert_eq!(letters.into_iter().max(), expected.remove(&key));
            }
        }
    }

    #[test]
    fn keys_without_letters_are_groups_too_and_are_seen_without_being_taken_out() {
        for bytes in [64 << 20, 0] {
            let mut pile = pile(bytes);
            let key = |number: u64| mix(number % 30_000).to_be_bytes();
            for number in 0..60_000 {
                let is_new = pile.add(&key(number), None, None).unwrap();
                assert!(is_new || number >= 30_000 || bytes == 0);
            }
            let mut out = Letters::new();
            take(&mut pile, 1000, &mut out);
            (0..100).for_each(|number| _ = pile.add(&key(number), None, None).unwrap());
            for _ in 0..2 {
                let mut seen = Vec::new();
                pile.for_each_key(|key| {
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
            while !pile.is_empty().unwrap() {
                take(&mut pile, usize::MAX, &mut out);
            }
            assert_eq!(out.len(), 30_000);
            assert!(out.values().all(Vec::is_empty));
        }
    }

    #[test]
    fn a_letter_longer_than_all_memory_is_refused_by_a_figure() {
        let mut pile = pile(0);
        let error = pile.add(b"v", Some(&vec![0; 1 << 20]), None).unwrap_err().to_string();
        assert!(error.contains("a signal of 1048577 bytes"), "{error}");
        let mut larger = super::tests::pile(2 * ((1 << 20) + 1 + 2 * BLOCK_BYTES as u64));
        larger.add(b"v", Some(&vec![0; 1 << 20]), None).unwrap();
    }
}
