//! The ids in an [`IdBitmap`], on their way to the processes that rank them: one message for each
//! range of ids.
//!
//! Invariant: the messages of several sets make the set that all their edges would have made,
//! because saturating counters do not depend on the order.

use std::ops::Range;
use std::sync::atomic::Ordering;

use bytemuck::{AnyBitPattern, NoUninit};

use crate::error::Result;
use crate::message::{Message, put, take};
use crate::order::bitmap::{IdBitmap, PAGE_IDS, PAGE_WORDS, PAGES, Page, SLAB_BYTES};

/// Pages of a range of ids.
const RANGE_PAGES: usize = 1 << 7;
/// Ids of a range.
const RANGE_IDS: u64 = (RANGE_PAGES * PAGE_IDS) as u64;
/// The end of the ids in a set.
const END: u64 = (PAGES * PAGE_IDS) as u64;
/// The maximum bytes of a message.
pub(crate) const MESSAGE_BYTES: u64 = (RANGE_PAGES * (size_of::<Page>() + PAGE_IDS + 64)) as u64;

/// The numbers of the ranges with ids in `ids`; `None` if a set has no room for one of them.
pub(crate) fn ranges_of(ids: &Range<u64>) -> Option<Range<usize>> {
    let ranges = (ids.start / RANGE_IDS) as usize..ids.end.div_ceil(RANGE_IDS) as usize;
    (ids.end <= END || ids.is_empty()).then_some(if ids.is_empty() { 0..0 } else { ranges })
}

/// Memory of the set of a range, in bytes.
pub(crate) fn set_bytes() -> u64 {
    IdBitmap::bytes_of(RANGE_IDS) + IdBitmap::BASE_BYTES + SLAB_BYTES as u64
}

impl IdBitmap {
    /// Passes the message of each range with ids to `send`, with the number of the range.
    pub(crate) fn send_ranges(
        &self,
        mut send: impl FnMut(usize, Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        for (range, slots) in self.pages.chunks(RANGE_PAGES).enumerate() {
            let mut message = Vec::new();
            let numbered = slots.iter().enumerate();
            for (at, page) in numbered.filter_map(|(at, slot)| Some((at, slot.get()?))) {
                put(&mut message, &[(range * RANGE_PAGES + at) as u64]);
                for words in [&page.connected, &page.declared] {
                    let words = words.each_ref().map(|word| word.load(Ordering::Relaxed));
                    put(&mut message, &words);
                }
                let counters = self.counters(page).unwrap_or_default().iter();
                let counters: Vec<u8> = counters.map(|one| one.load(Ordering::Relaxed)).collect();
                put(&mut message, &counters);
            }
            if !message.is_empty() {
                send(range, message)?;
            }
        }
        Ok(())
    }

    /// Adds the ids of a message; `None` if it is damaged.
    pub(crate) fn add_range(&self, message: &Message) -> Option<()> {
        let mut rest = (**message).as_ref();
        while !rest.is_empty() {
            let page = take_some::<u64>(&mut rest, 1)?[0];
            let page = self.page(page.checked_mul(PAGE_IDS as u64)?)?;
            for words in [&page.connected, &page.declared] {
                let more = take_some::<u64>(&mut rest, PAGE_WORDS)?;
                words.iter().zip(more).for_each(|(word, more)| {
                    word.fetch_or(more, Ordering::Relaxed);
                });
            }
            let more = take_some::<u8>(&mut rest, PAGE_IDS)?;
            for (counter, more) in self.counters(page)?.iter().zip(more) {
                let sum = counter.load(Ordering::Relaxed).saturating_add(more);
                counter.store(sum, Ordering::Relaxed);
            }
        }
        Some(())
    }

    /// Declares the ids of `ids` in a range.
    pub(crate) fn declare_in(&self, range: usize, ids: &Range<u64>) {
        let start = range as u64 * RANGE_IDS;
        self.insert_range(ids.start.max(start)..ids.end.min(start + RANGE_IDS));
    }
}

/// The next records of a message, which must be `count`.
fn take_some<T: AnyBitPattern + NoUninit>(rest: &mut &[u8], count: usize) -> Option<Vec<T>> {
    let mut records = Vec::new();
    take(rest, &mut records)?;
    (records.len() == count).then_some(records)
}
