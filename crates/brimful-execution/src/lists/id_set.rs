//! The to-signal list: the ids of the vertices that are due to signal.
//!
//! Ids are in memory up to a limit and on disk beyond it, with or without a score. Taking ids out
//! may stop and continue while others arrive. Invariant: an id is in memory once. Spilled ids are
//! made unique when they are read; an id that was inserted again meanwhile may be returned twice.

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_store::wording::counted;
use brimful_vertices::Id;

use crate::error::Result;
use crate::lists::message_table::MessageTable;
use crate::lists::spill::SpillFile;

/// Ids, each once.
#[derive(Debug)]
pub struct IdSet<I> {
    table: MessageTable,
    key: Vec<u8>,
    /// The scores that arrived since the open generation began.
    arriving: ScoreSum,
    /// The scores of the open generation.
    ready: ScoreSum,
    ids: PhantomData<fn() -> I>,
}

#[derive(Debug, Default, Clone, Copy)]
struct ScoreSum {
    sum: f64,
    count: u64,
}

impl<I: Id> IdSet<I> {
    /// A set that takes up to `bytes` of memory, at least [`crate::lists::MINIMUM_BYTES`], and
    /// spills to `file`.
    pub fn new(bytes: u64, file: &Arc<SpillFile>) -> Self {
        let (arriving, ready) = (ScoreSum::default(), ScoreSum::default());
        Self {
            table: MessageTable::new(bytes, file),
            key: Vec::new(),
            arriving,
            ready,
            ids: PhantomData,
        }
    }

    /// Adds `id`, unless it is in the set.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn insert(&mut self, id: &I) -> Result<()> {
        self.key.clear();
        id.write_key(&mut self.key);
        self.table.add(&self.key, None, None)?;
        Ok(())
    }

    /// Adds `id` with a score, or replaces its score.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn insert_scored(&mut self, id: &I, score: f64) -> Result<()> {
        self.key.clear();
        id.write_key(&mut self.key);
        let replace = |_: &[u8], new: &[u8], out: &mut Vec<u8>| {
            out.extend_from_slice(new);
            Ok(())
        };
        self.table.add(&self.key, Some(&score.to_le_bytes()), Some(&replace))?;
        self.arriving.sum += score;
        self.arriving.count += 1;
        Ok(())
    }

    /// Takes an id with its score; `None` at the end of the generation. A generation holds the ids
    /// that had arrived when its first one was taken; later ones belong to the next.
    ///
    /// # Errors
    /// Errors of spilling, and of reading spilled ids.
    pub fn take(&mut self) -> Result<Option<(I, Option<f64>)>> {
        if !self.table.is_open() {
            self.ready = std::mem::take(&mut self.arriving);
        }
        let Some(mut group) = self.table.next_group()? else { return Ok(None) };
        let id = read_id(group.key())?;
        let mut score = None;
        while let Some(message) = group.next_message()? {
            score = message.first_chunk().map(|bytes| f64::from_le_bytes(*bytes));
        }
        Ok(Some((id, score)))
    }

    /// Up to `most` ids that are taken next, as far as they are known.
    ///
    /// # Errors
    /// Errors of ids that cannot be read.
    pub fn upcoming(&self, most: usize) -> Result<Vec<I>> {
        self.table.upcoming(most).map(read_id).collect()
    }

    /// True if `score` is not below the average of the scores inserted for the open generation; a
    /// replaced score counts.
    pub fn is_average(&self, score: f64) -> bool {
        let average = self.ready.sum / self.ready.count as f64;
        // Rounding must not put one of equal scores below the average.
        !average.is_finite() || score >= average - average.abs() * 1e-9
    }

    /// Calls `each` once for every id; removes nothing.
    ///
    /// # Errors
    /// Errors of `each`, and of reading spilled ids.
    pub fn for_each(&mut self, mut each: impl FnMut(I) -> Result<()>) -> Result<()> {
        self.table.for_each_key(|key| each(read_id(key)?))
    }

    /// True if there is no id.
    pub fn is_empty(&mut self) -> Result<bool> {
        self.table.is_empty()
    }

    /// Number of spills to disk because memory was full.
    pub fn spills(&self) -> u64 {
        self.table.spills()
    }
}

pub(super) fn read_id<I: Id>(mut key: &[u8]) -> Result<I> {
    let bytes = key;
    match I::read_key(&mut key) {
        Some(id) if key.is_empty() => Ok(id),
        _ => Err(crate::Error::Usage(format!(
            "an id cannot read the {} that it wrote, {bytes:02x?}; correct its `read_key`",
            counted(bytes.len(), "byte")
        ))),
    }
}

#[cfg(test)]
mod tests {
    use brimful_store::{DiskFolder, Job};
    use brimful_vertices::AnyId;

    use super::*;

    fn set<I: Id>(bytes: u64) -> IdSet<I> {
        let folder = tempfile::tempdir().unwrap();
        IdSet::new(
            bytes,
            &Arc::new(
                SpillFile::new(&DiskFolder::new(folder.path()), &Arc::new(Job::new())).unwrap(),
            ),
        )
    }

    fn all<I: Id>(set: &mut IdSet<I>) -> Vec<I> {
        let mut ids = Vec::new();
        set.for_each(|id| {
            ids.push(id);
            Ok(())
        })
        .unwrap();
        ids.sort_unstable();
        ids
    }

    fn drain<I: Id>(set: &mut IdSet<I>) -> Vec<I> {
        let mut ids: Vec<I> =
            std::iter::from_fn(|| set.take().unwrap()).map(|(id, _)| id).collect();
        ids.sort_unstable();
        ids
    }

    /// Facts from the thesis about the set of vertex ids.
    #[test]
    fn ids_are_unique_looking_keeps_them_and_taking_empties() {
        for bytes in [64 << 20, 0] {
            let mut set = set::<u64>(bytes);
            assert!(set.is_empty().unwrap());
            let expected: Vec<u64> = (0..50_000).collect();
            for id in expected.iter().chain(&expected).rev() {
                set.insert(id).unwrap();
            }
            assert_eq!(set.spills() > 0, bytes == 0);
            assert!(all(&mut set) == expected && all(&mut set) == expected);
            assert!(!set.is_empty().unwrap());
            assert!(drain(&mut set) == expected);
            assert!(set.is_empty().unwrap() && all(&mut set).is_empty());
        }
    }

    #[test]
    fn a_number_and_its_text_are_two_ids() {
        let mut set = set::<AnyId>(1 << 20);
        let ids = [AnyId::Integer(1), AnyId::Text(String::new()), AnyId::Text("1".into())];
        ids.iter().chain(&ids).for_each(|id| set.insert(id).unwrap());
        assert_eq!(drain(&mut set), ids);
    }

    #[test]
    fn taking_stops_and_goes_on_while_ids_arrive() {
        let mut set = set::<u64>(1 << 20);
        (0..10).for_each(|id| set.insert(&id).unwrap());
        let taken: Vec<u64> =
            (0..4).filter_map(|_| set.take().unwrap()).map(|(id, _)| id).collect();
        assert_eq!(taken, [0, 1, 2, 3]);
        // One taken out already, one not yet, one new.
        [0, 7, 20].iter().for_each(|id| set.insert(id).unwrap());
        assert_eq!(all(&mut set), [0, 4, 5, 6, 7, 8, 9, 20]);
        assert_eq!(drain(&mut set), [4, 5, 6, 7, 8, 9]);
        assert_eq!(drain(&mut set), [0, 20]);
        assert!(drain(&mut set).is_empty());
    }

    #[test]
    fn the_latest_score_counts_and_the_average_is_that_of_the_generation() {
        let mut set = set::<u64>(1 << 20);
        for (id, score) in [(1, 9.0), (2, 2.0), (3, 4.0), (1, 1.0)] {
            set.insert_scored(&id, score).unwrap();
        }
        assert_eq!(set.take().unwrap(), Some((1, Some(1.0))));
        set.insert_scored(&5, 1e9).unwrap();
        assert!(set.is_average(4.0) && !set.is_average(3.9));
        assert_eq!(set.take().unwrap(), Some((2, Some(2.0))));
        assert_eq!(set.take().unwrap(), Some((3, Some(4.0))));
        assert_eq!(set.take().unwrap(), None);
        assert_eq!(set.take().unwrap(), Some((5, Some(1e9))));
        assert!(set.is_average(1e9));
    }

    #[test]
    fn of_equal_or_infinite_scores_none_is_below_the_average() {
        for score in [0.1, 1e-300, f64::INFINITY, f64::MAX, -0.7] {
            let mut set = set::<u64>(1 << 20);
            (0..7).for_each(|id| set.insert_scored(&id, score).unwrap());
            while let Some((_, score)) = set.take().unwrap() {
                assert!(set.is_average(score.unwrap()), "{score:?}");
            }
        }
    }
}
