//! Durable pages: root, directory, page table, and the collections on them.

use std::sync::Arc;

use brimful_collections::{DiskMap, FrequencyCounter, Options, RecordBag, RecordBox};
use brimful_store::fault::FaultFolder;
use brimful_store::{Budget, Folder, Job, Resources, checksum};

use crate::seal::put;

const ROOT_BYTES: usize = 4096;
const ENTRY_BYTES: usize = 16;

fn u64_at(bytes: &[u8], at: usize) -> usize {
    bytes.get(at..at + 8).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes)
        as usize
}

/// Where a slot is, if it is in the file.
fn slot(bytes: &[u8], page_bytes: usize, number: usize) -> Option<std::ops::Range<usize>> {
    let first = (2 * ROOT_BYTES).checked_next_multiple_of(page_bytes)?;
    let start = number.checked_mul(page_bytes)?.checked_add(first)?;
    let end = start.checked_add(page_bytes)?;
    (end <= bytes.len()).then_some(start..end)
}

fn forge(bytes: &mut [u8]) {
    let page_bytes = u64_at(bytes, 24);
    if page_bytes < ENTRY_BYTES {
        return;
    }
    let per_page = page_bytes / ENTRY_BYTES;
    let homes: usize = (0..4)
        .map(|stream| u64_at(bytes, 32 + 8 * stream).div_ceil(per_page))
        .fold(0, usize::saturating_add);
    if let Some(directory) = slot(bytes, page_bytes, u64_at(bytes, 64)) {
        let used = homes.saturating_mul(ENTRY_BYTES).min(page_bytes);
        for entry in (directory.start..directory.start + used).step_by(ENTRY_BYTES) {
            if let Some(page) = slot(bytes, page_bytes, u64_at(bytes, entry)) {
                let sum = checksum(&bytes[page]);
                put(bytes, entry + 8, sum);
            }
        }
        let sum = checksum(&bytes[directory.start..directory.start + used]);
        put(bytes, 72, sum);
    }
    if let Some(sum) = bytes.get(..ROOT_BYTES - 8).map(checksum) {
        put(bytes, ROOT_BYTES - 8, sum);
    }
}

/// Opens the pages as every collection, with the checksums from the root to the page table put
/// right.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    forge(&mut bytes);
    let folder = FaultFolder::new();
    folder.create("pages").and_then(|device| device.write_at(&bytes, 0)).expect("memory takes all");
    let resources = Resources::new(Budget::new(32 << 20, 0), Arc::new(Job::new()), Some(1))
        .expect("one thread");
    let resources = Arc::new(resources);
    let mut accepted = false;
    let options = || Options::new(&resources);
    if let Ok(bag) = RecordBag::open_in(&folder, b"bytes", options()) {
        accepted |= bag.verify().is_ok();
        let _ = (0..bag.len().min(100)).try_for_each(|id| bag.get(id).map(drop));
    }
    if let Ok(map) = DiskMap::open_in(&folder, options()) {
        accepted |= map.verify().is_ok();
        let _ = map.for_each(|_, _| Ok(()));
    }
    if let Ok(counter) = FrequencyCounter::open_in(&folder, options()) {
        accepted |= counter.verify().is_ok();
        let _ = counter.top(3);
    }
    if let Ok(records) = RecordBox::open_in(&folder, 8, b"<f8", options()) {
        accepted |= records.verify().is_ok();
    }
    accepted
}
