//! Records on disk: a bag of records and a table of their keys, within a part of the budget.
//!
//! All changes before the last sync survive a crash.

use std::path::Path;

use brimful_collections::{DiskMap, Options};

use crate::error::Result;
use crate::record_store::{RecordStore, Visitor};

/// Records on disk. The owner must reserve memory for the longest record.
#[derive(Debug)]
pub struct FileStore {
    map: DiskMap,
    memory_bytes: u64,
}

impl FileStore {
    /// Opens the store in the folder `path`, or creates it.
    ///
    /// # Errors
    /// [`crate::Error::Collection`] if the folder has other contents, is in use or damaged, or the
    /// budget is too small.
    pub fn open(path: &Path, options: Options) -> Result<Self> {
        let memory_bytes = options.memory_bytes;
        Ok(Self { map: DiskMap::open(path, options)?.with_any_value(), memory_bytes })
    }

    /// For each of `pairs`, true if its key is in the store or in an earlier pair.
    fn are_duplicates(&self, pairs: &[(&[u8], &[u8])]) -> Result<Vec<bool>> {
        let keys: Vec<&[u8]> = pairs.iter().map(|(key, _)| *key).collect();
        let mut are_duplicates: Vec<bool> =
            self.map.get_many(&keys)?.iter().map(Option::is_some).collect();
        let mut order: Vec<usize> = (0..keys.len()).collect();
        order.sort_by_key(|index| keys[*index]);
        for pair in order.windows(2) {
            are_duplicates[pair[1]] |= keys[pair[0]] == keys[pair[1]];
        }
        Ok(are_duplicates)
    }
}

impl RecordStore for FileStore {
    fn get(&mut self, key: &[u8], found: &mut dyn FnMut(&[u8]) -> Result<()>) -> Result<bool> {
        match self.map.get(key)? {
            None => Ok(false),
            Some(record) => found(&record).map(|()| true),
        }
    }

    fn put(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        Ok(self.map.insert(key, record)?)
    }

    fn remove(&mut self, key: &[u8]) -> Result<bool> {
        Ok(self.map.remove(key)?)
    }

    fn for_each(&mut self, visitor: &mut Visitor<'_>) -> Result<()> {
        let mut changed = Vec::new();
        let mut failed = None;
        let done = self.map.for_each(|key, record| {
            changed.clear();
            match visitor(key, record, &mut changed) {
                Ok(false) => Ok(()),
                // A replaced record keeps its number, so it is not visited again.
                Ok(true) => self.map.insert(key, &changed),
                Err(error) => {
                    failed = Some(error);
                    Err(brimful_store::Error::Interrupted.into())
                }
            }
        });
        match failed {
            Some(error) => Err(error),
            None => Ok(done?),
        }
    }

    /// Two keys with the same 64-bit hash count as one.
    fn len(&self) -> u64 {
        self.map.len()
    }

    fn sync(&mut self) -> Result<()> {
        Ok(self.map.sync()?)
    }

    fn has_uncounted_bytes(&self) -> bool {
        false
    }

    fn bytes(&self) -> Result<(u64, u64)> {
        Ok((self.memory_bytes, self.map.file_bytes()?))
    }

    fn insert_many(&mut self, pairs: &[(&[u8], &[u8])]) -> Result<u64> {
        let are_duplicates = self.are_duplicates(pairs)?;
        let mut new = Vec::with_capacity(pairs.len());
        new.extend(
            pairs
                .iter()
                .zip(are_duplicates)
                .filter(|(_, is_duplicate)| !is_duplicate)
                .map(|(pair, _)| *pair),
        );
        self.map.insert_in_order(&new)?;
        Ok((pairs.len() - new.len()) as u64)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brimful_store::{Budget, ErrorKind, Job, Resources};

    use super::*;
    use crate::conformance::{SampleVertex, samples};
    use crate::serializer::{Compact, Native};
    use crate::{Serialized, VertexStore};

    fn options(budget_bytes: u64) -> Options {
        let job = Arc::new(Job::new());
        let resources = Resources::new(Budget::new(budget_bytes, 0), job, Some(1)).unwrap();
        Options::new(&Arc::new(resources)).memory(4 << 20)
    }

    #[test]
    fn what_was_synced_is_there_again_for_the_serializer_that_wrote_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vertices");
        let mut store =
            Serialized::new(FileStore::open(&path, options(16 << 20)).unwrap(), Compact);
        store.load(&mut samples().into_iter()).unwrap();
        store.sync().unwrap();
        drop(store);

        let mut store =
            Serialized::new(FileStore::open(&path, options(16 << 20)).unwrap(), Compact);
        let mut found: Vec<SampleVertex> = Vec::new();
        let read = store.for_each(&mut |vertex| {
            found.push((**vertex).clone());
            Ok(())
        });
        read.unwrap();
        found.sort_by_key(|vertex| *vertex.id());
        assert_eq!(found, samples());
        drop(store);

        let records = FileStore::open(&path, options(16 << 20)).unwrap();
        let error = Serialized::<_, _, SampleVertex>::new(records, Native)
            .for_each(&mut |_| Ok(()))
            .unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert!(
            error.to_string().ends_with("open the store with the serializer that wrote it"),
            "{error}"
        );
    }

    #[test]
    fn records_are_visited_in_the_order_in_which_they_were_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let mut store = FileStore::open(&folder.path().join("v"), options(16 << 20)).unwrap();
        let keys: Vec<[u8; 8]> = (0..3000_u64).map(u64::to_be_bytes).collect();
        let pairs: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..], &key[..])).collect();
        // A key that is loaded again keeps its place.
        let again = [&pairs[..2000], &pairs[1000..]].concat();
        assert_eq!(store.insert_many(&again).unwrap(), 1000);
        let mut visited: Vec<Vec<u8>> = Vec::new();
        store
            .for_each(&mut |key, record, _| {
                assert_eq!(key, record);
                visited.push(key.to_vec());
                Ok(false)
            })
            .unwrap();
        assert_eq!(visited, keys);
    }

    #[test]
    fn a_folder_in_use_and_a_budget_that_is_too_small_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("vertices");
        let error = FileStore::open(&path, options(64 << 10)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Budget);
        let _open = FileStore::open(&path, options(16 << 20)).unwrap();
        assert!(FileStore::open(&path, options(16 << 20)).is_err());
    }
}
