//! Checks that index, records and page states agree.
//!
//! Invariant: verification changes nothing.

use brimful_store::Error as StoreError;
use brimful_store::wording::counted;

use super::RecordBag;
use crate::error::{Error, Result};

impl RecordBag {
    /// Reads everything on disk, verifies its checksums, and checks that every id leads to its
    /// record. Returns the number of bytes read. The bag must not change during the call.
    ///
    /// # Errors
    /// Corruption; the error names the offset or the record.
    pub fn verify(&self) -> Result<u64> {
        let job = &self.options.resources.job;
        let read = self.pages.verify(job)?;
        let broken =
            |problem: String| Error::from(StoreError::corrupt_pages(self.pages.path(), 0, problem));
        let (mut removed, mut taken) = (0, 0);
        for id in 0..self.len() {
            job.check()?;
            let Some(position) = self.position(id)? else {
                removed += 1;
                continue;
            };
            if position.is_span() {
                self.visit_span(position, &self.span_head(id, position)?, |_| ())?;
            } else {
                self.read_at(id, position)?;
                taken += 1;
            }
        }
        let expected = self.len() - self.count();
        if removed != expected {
            return Err(broken(format!(
                "expected {}, found {removed}",
                counted(expected, "removed record")
            )));
        }
        let slots = self.space().taken_slots();
        if taken != slots {
            return Err(broken(format!(
                "expected {} in slots, found {taken}",
                counted(slots, "record")
            )));
        }
        Ok(read)
    }
}
