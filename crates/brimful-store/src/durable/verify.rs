//! Verifies the checksum of every page on disk.
//!
//! Invariant: verification changes nothing. It skips bytes that are never read: free slots, and the
//! gap after the roots.

use std::sync::PoisonError;

use super::root::{ROOT_BYTES, ROOT_OFFSETS, ROOTS_BYTES, Root};
use super::{PageFile, PageId};
use crate::error::{Error, Result};
use crate::job::Job;

impl PageFile {
    /// Number of pages of address space `stream`, including pages that were never written. All
    /// pages beyond read as zeros.
    pub fn pages(&self, stream: u8) -> u64 {
        // Looks at dirty pages first: a page that is written during the look is in the table
        // afterwards.
        let mut waiting = 0;
        for stripe in &self.stripes {
            let dirty = stripe.lock().unwrap_or_else(PoisonError::into_inner);
            let ours = dirty.dirty().filter(|page| page.stream() == usize::from(stream));
            waiting = ours.map(|page| page.number() + 1).fold(waiting, u64::max);
        }
        let written = self.space().table.pages().get(usize::from(stream)).copied();
        written.unwrap_or(0).max(waiting)
    }

    /// Reads every page on disk and both copies of the root; the page table was read on opening the
    /// file. Returns the bytes read. For a page with unwritten changes it verifies the copy on
    /// disk.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming the offset.
    pub fn verify(&self, job: &Job) -> Result<u64> {
        self.file.usable()?;
        job.begin("verify", self.file.len()?);
        self.verify_roots()?;
        let (mut bytes, mut read) = (vec![0; self.page_bytes], ROOTS_BYTES);
        for stream in 0..super::STREAMS as u8 {
            for number in 0..self.pages(stream) {
                job.check()?;
                let page = PageId::new(stream, number);
                // The lock keeps the page in its slot.
                let stripe = self.stripe(page);
                let entry = self.space().table.get(page);
                if let Some(slot) = entry.slot() {
                    self.read_slot(slot, entry.checksum, &mut bytes)?;
                    read += bytes.len() as u64;
                    job.advance(bytes.len() as u64);
                }
                drop(stripe);
            }
        }
        Ok(read)
    }

    fn verify_roots(&self) -> Result<()> {
        // The lock keeps other threads from writing a root.
        let _committed = self.committed();
        let mut copy = vec![0; ROOT_BYTES];
        for offset in ROOT_OFFSETS {
            self.file.read_exact_at(&mut copy, offset)?;
            Root::decode(&copy, self.file.path(), offset).map_err(|error| match error {
                Error::Corrupt { path, offset, problem, .. } => Error::Corrupt {
                    path,
                    offset,
                    problem: format!("one of the two copies of the root is damaged: {problem}"),
                    remedy: "nothing is lost while the other copy is intact; the next sync writes \
                             this one again",
                },
                error => error,
            })?;
        }
        Ok(())
    }
}
