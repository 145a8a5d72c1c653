//! Passes the records of a box to a function, and writes back the records that changed.

use super::RecordBox;
use crate::error::Result;
use crate::order::{Ids, Order};
use crate::pipeline;

impl RecordBox {
    /// Passes the records of `order` to `f`, in batches, on all threads, while it reads ahead;
    /// writes back the records that changed. Other threads may use the box at the same time; a
    /// record that they store while `f` changes it may be lost. `f` may fetch from the box.
    ///
    /// # Errors
    /// Errors of `f`; `Error::OutOfRange` for an id of `order`.
    pub fn process(
        &self,
        order: &Order,
        f: impl Fn(&Ids, &mut [u8]) -> Result<()> + Sync,
    ) -> Result<()> {
        if let Some(largest) = order.largest() {
            self.check(largest)?;
        }
        order.require_once()?;
        let batches = order.batches(self.len(), self.batch_len());
        let read = |ids: &Ids| {
            let mut buffer = brimful_store::sealed::Buffer::zeroed(ids.len() * self.record_bytes);
            match ids {
                Ids::Range(range) => self.fetch_pages(range.start, buffer.bytes_mut())?,
                Ids::List(ids) => self.fetch_ids(ids, buffer.bytes_mut())?,
            }
            Ok(buffer)
        };
        pipeline::stream(&self.options.resources, &batches, read, |ids, mut buffer| {
            let before = buffer.bytes().to_vec();
            f(ids, buffer.bytes_mut())?;
            if before == buffer.bytes() {
                return Ok(());
            }
            match ids {
                Ids::Range(range) => self.write_back(range.start, &before, buffer.bytes()),
                Ids::List(ids) => {
                    let records = before.chunks_exact(self.record_bytes);
                    let changed =
                        records.zip(buffer.bytes().chunks_exact(self.record_bytes)).zip(ids);
                    for ((_, after), id) in changed.filter(|((before, after), _)| before != after) {
                        self.store(*id, after)?;
                    }
                    Ok(())
                }
            }
        })
    }

    /// Writes the records that changed. Replaces a whole page without reading it, unless another
    /// thread has changed the page since then.
    fn write_back(&self, start: u64, before: &[u8], after: &[u8]) -> Result<()> {
        let writing = self.pages.write();
        let mut page_bytes = vec![0; self.pages.page_bytes()];
        let (mut id, mut at) = (start, 0);
        while at < after.len() {
            let (page, offset) = self.place(id);
            let count = (self.per_page - id as usize % self.per_page)
                .min((after.len() - at) / self.record_bytes);
            let range = at..at + count * self.record_bytes;
            let (old, new) = (
                before.get(range.clone()).unwrap_or_default(),
                after.get(range).unwrap_or_default(),
            );
            (id, at) = (id + count as u64, at + new.len());
            if old == new {
                continue;
            }
            if count == self.per_page {
                let mut with = |records: &[u8]| {
                    page_bytes
                        .get_mut(..records.len())
                        .unwrap_or_default()
                        .copy_from_slice(records);
                };
                with(old);
                let expected = brimful_store::checksum(&page_bytes);
                page_bytes.get_mut(..new.len()).unwrap_or_default().copy_from_slice(new);
                if self.pages.replace(&writing, page, expected, &page_bytes)? {
                    continue;
                }
            }
            self.pages.update(&writing, page, |page| {
                let place =
                    page.bytes_mut().get_mut(offset..offset + new.len()).unwrap_or_default();
                let records = place
                    .chunks_exact_mut(self.record_bytes)
                    .zip(old.chunks_exact(self.record_bytes));
                for ((place, old), new) in records.zip(new.chunks_exact(self.record_bytes)) {
                    if old != new {
                        place.copy_from_slice(new);
                    }
                }
            })?;
        }
        Ok(())
    }
}
