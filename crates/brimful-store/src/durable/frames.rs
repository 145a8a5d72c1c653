//! Pages in memory: frames in stripes, each stripe with its own lock.
//!
//! Invariant: a page has at most one frame, in the stripe that its number selects; a dirty frame
//! holds the only copy of its content.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use super::table::PageId;

/// Distributes consecutive page numbers over a hash map.
#[derive(Default)]
pub(super) struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u64(&mut self, number: u64) {
        self.0 = (self.0 ^ number).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(26);
    }
}

/// One page in memory.
#[derive(Debug)]
pub(super) struct Frame {
    pub(super) page: Option<PageId>,
    pub(super) bytes: Box<[u8]>,
    pub(super) dirty: bool,
    /// True if the page was used since the clock hand last passed.
    touched: bool,
}

/// The frames under one lock.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    frames: Vec<Frame>,
    frame_of: HashMap<u64, usize, BuildHasherDefault<PageHasher>>,
    empty: Vec<usize>,
    hand: usize,
}

impl Stripe {
    /// Finds the frame of a page.
    #[inline]
    pub(super) fn find(&mut self, page: PageId) -> Option<&mut Frame> {
        let at = *self.frame_of.get(&page.packed())?;
        let frame = self.frames.get_mut(at)?;
        frame.touched = true;
        Some(frame)
    }

    pub(super) fn contains(&self, page: PageId) -> bool {
        self.frame_of.contains_key(&page.packed())
    }

    /// True if a page can enter without evicting another.
    pub(super) fn has_free_frame(&self, most: usize) -> bool {
        self.frames.len() - self.empty.len() < most
    }

    /// The next frame to evict: the first that was not used since the hand last passed.
    pub(super) fn victim(&mut self) -> Option<&mut Frame> {
        for _ in 0..self.frames.len() * 2 {
            self.hand = (self.hand + 1) % self.frames.len().max(1);
            let frame = self.frames.get_mut(self.hand)?;
            if frame.page.is_some() && !std::mem::take(&mut frame.touched) {
                return self.frames.get_mut(self.hand);
            }
        }
        None
    }

    /// Removes a page and leaves its frame empty.
    pub(super) fn remove(&mut self, page: PageId) {
        let Some(at) = self.frame_of.remove(&page.packed()) else {
            return;
        };
        if let Some(frame) = self.frames.get_mut(at) {
            (frame.page, frame.dirty) = (None, false);
            self.empty.push(at);
        }
    }

    /// Returns the memory of an empty frame, or new memory if there is none. Frees the memory of
    /// empty frames beyond `most` frames.
    pub(super) fn take_empty(&mut self, page_bytes: usize, most: usize) -> Box<[u8]> {
        while let Some(at) = self.empty.pop() {
            let Some(frame) = self.frames.get_mut(at) else {
                continue;
            };
            let bytes = std::mem::take(&mut frame.bytes);
            self.forget(at);
            if self.frames.len() < most {
                return bytes;
            }
        }
        vec![0; page_bytes].into()
    }

    /// Inserts a page.
    pub(super) fn insert(
        &mut self,
        page: PageId,
        bytes: Box<[u8]>,
        dirty: bool,
    ) -> Option<&mut Frame> {
        let at = self.frames.len();
        self.frames.push(Frame { page: Some(page), bytes, dirty, touched: true });
        self.frame_of.insert(page.packed(), at);
        self.frames.get_mut(at)
    }

    /// The dirty pages.
    pub(super) fn dirty(&self) -> impl Iterator<Item = PageId> {
        self.frames.iter().filter(|frame| frame.dirty).filter_map(|frame| frame.page)
    }

    /// Removes frame `at`; the last frame takes its place.
    fn forget(&mut self, at: usize) {
        self.frames.swap_remove(at);
        if let Some(page) = self.frames.get(at).and_then(|frame| frame.page) {
            self.frame_of.insert(page.packed(), at);
        }
        let moved = self.frames.len();
        self.empty.iter_mut().filter(|e| **e == moved).for_each(|e| *e = at);
    }
}
