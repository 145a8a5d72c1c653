//! Files that a library of another format writes and reads, under checksums of ours.
//!
//! Such a file has two checksums: one of all its bytes, and one of its *tail*, where its format
//! keeps the index of the rest. Invariant: the bytes are hashed after they are durable.

use std::sync::Arc;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::file::StoreFile;
use crate::job::Job;
use crate::traffic::Traffic;
use crate::wording::counted;

/// Bytes that are hashed at once.
const PART_BYTES: u64 = 1 << 20;
/// The maximum bytes of a tail, which is in memory as a whole.
const MAX_TAIL_BYTES: u64 = 64 << 20;

/// Length and checksums of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChecksummedFile {
    /// Length in bytes.
    pub bytes: u64,
    /// XXH3-64 of all bytes.
    pub checksum: u64,
    /// Length of the tail in bytes.
    pub tail_bytes: u64,
    /// XXH3-64 of the tail.
    pub tail_checksum: u64,
}

impl ChecksummedFile {
    /// Makes the file `name` durable and hashes it. Its last `tail_bytes` bytes are the tail.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if the file is shorter than its tail; [`Error::Io`].
    pub fn seal(
        folder: &dyn Folder,
        name: &str,
        tail_bytes: u64,
        job: &Job,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = StoreFile::open_to_change(folder, name, traffic)?;
        file.sync()?;
        let bytes = file.len()?;
        let tail_checksum = tail_checksum(&file, bytes, tail_bytes)?;
        Ok(Self { bytes, checksum: hash(&file, bytes, job)?, tail_bytes, tail_checksum })
    }

    /// Checks the length and the tail of the file `name`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] if they differ; [`Error::Io`].
    pub fn check(&self, folder: &dyn Folder, name: &str, traffic: &Arc<Traffic>) -> Result<()> {
        let file = StoreFile::open(folder, name, traffic)?;
        let bytes = file.len()?;
        if bytes != self.bytes {
            let problem = format!("expected {}, found {bytes}", counted(self.bytes, "byte"));
            return Err(Error::corrupt(file.path(), bytes.min(self.bytes), problem));
        }
        if tail_checksum(&file, bytes, self.tail_bytes)? != self.tail_checksum {
            let at = bytes - self.tail_bytes;
            return Err(Error::corrupt(file.path(), at, "the end of the file fails its checksum"));
        }
        Ok(())
    }

    /// Checks every byte of the file `name`.
    ///
    /// # Errors
    /// As [`ChecksummedFile::check`]; [`Error::Interrupted`].
    pub fn verify(
        &self,
        folder: &dyn Folder,
        name: &str,
        job: &Job,
        traffic: &Arc<Traffic>,
    ) -> Result<()> {
        self.check(folder, name, traffic)?;
        let file = StoreFile::open(folder, name, traffic)?;
        if hash(&file, self.bytes, job)? != self.checksum {
            return Err(Error::corrupt(file.path(), 0, "the file fails its checksum"));
        }
        Ok(())
    }
}

fn tail_checksum(file: &StoreFile, bytes: u64, tail_bytes: u64) -> Result<u64> {
    if tail_bytes > bytes.min(MAX_TAIL_BYTES) {
        let problem =
            format!("a tail of {} cannot be in a file of {bytes}", counted(tail_bytes, "byte"));
        return Err(Error::corrupt(file.path(), 0, problem));
    }
    let mut tail = vec![0; tail_bytes as usize];
    file.read_exact_at(&mut tail, bytes - tail_bytes)?;
    Ok(crate::checksum(&tail))
}

fn hash(file: &StoreFile, bytes: u64, job: &Job) -> Result<u64> {
    let (mut hasher, mut part, mut at) = (xxhash_rust::xxh3::Xxh3::new(), Vec::new(), 0);
    while at < bytes {
        job.check()?;
        part.resize((bytes - at).min(PART_BYTES) as usize, 0);
        file.read_exact_at(&mut part, at)?;
        hasher.update(&part);
        at += part.len() as u64;
        job.advance(part.len() as u64);
    }
    Ok(hasher.digest())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::device::DiskFolder;

    #[test]
    fn every_changed_byte_is_noticed_and_those_of_the_tail_at_once() {
        let place = tempfile::tempdir().unwrap();
        let (folder, traffic) = (DiskFolder::new(place.path()), Arc::new(Traffic::default()));
        let content: Vec<u8> = (0..3 * PART_BYTES / 2).map(|at| (at % 251) as u8).collect();
        let write = |bytes: &[u8]| {
            let _ = folder.remove("table");
            let file = StoreFile::create(&folder, "table", &traffic).unwrap();
            file.write_all_at(bytes, 0).unwrap();
        };
        write(&content);
        let whole = ChecksummedFile::seal(&folder, "table", 100, &Job::new(), &traffic).unwrap();
        assert_eq!(whole.checksum, crate::checksum(&content));
        whole.verify(&folder, "table", &Job::new(), &traffic).unwrap();
        for (at, in_tail) in [(0, false), (content.len() - 101, false), (content.len() - 1, true)] {
            let mut changed = content.clone();
            changed[at] ^= 1;
            write(&changed);
            assert_eq!(whole.check(&folder, "table", &traffic).is_err(), in_tail, "{at}");
            assert!(whole.verify(&folder, "table", &Job::new(), &traffic).is_err(), "{at}");
        }
        write(&content[1..]);
        assert!(whole.check(&folder, "table", &traffic).is_err());
        assert!(ChecksummedFile::seal(&folder, "table", u64::MAX, &Job::new(), &traffic).is_err());
    }
}
