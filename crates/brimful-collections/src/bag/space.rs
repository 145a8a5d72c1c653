//! The free space in the pages of a bag.
//!
//! On disk, four bytes describe a page: its class, and the number of its slots in use or reserved.
//! Invariant: a reserved slot exists on its page; a page without records is free.

use std::collections::BTreeMap;

use brimful_store::Result as StoreResult;

use super::layout::{Classes, SPAN};
use crate::fields::u32_at;

/// The state of one page.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Info {
    kind: Kind,
    live: u16,
    /// True if the page is in the list `open` of its class.
    listed: bool,
    /// True while the records of the page move elsewhere: its free slots must not be reserved.
    draining: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Free,
    Class(u8),
    /// A part of a span.
    Span,
}

impl Info {
    fn encode(self) -> [u8; 4] {
        let kind = match self.kind {
            Kind::Free => 0,
            Kind::Class(class) => class + 1,
            Kind::Span => SPAN,
        };
        (u32::from(kind) | u32::from(self.live) << 8).to_le_bytes()
    }

    fn decode(word: u32) -> Self {
        let kind = match word as u8 {
            0 => Kind::Free,
            SPAN => Kind::Span,
            class => Kind::Class(class - 1),
        };
        Self { kind, live: (word >> 8) as u16, ..Self::default() }
    }
}

/// Bytes of memory for a page in the lists of pages with free slots, which grow by doubling.
const LISTED_BYTES: usize = 16;
/// Bytes of the state of a page on disk.
pub(super) const INFO_BYTES: usize = 4;

/// The pages of a bag.
#[derive(Debug)]
pub(super) struct Space {
    infos: Vec<Info>,
    /// Pages with free slots, by class.
    open: Vec<Vec<u64>>,
    /// Runs of free pages: start and length.
    free: BTreeMap<u64, u64>,
    /// Changed parts of the state; each part fills one page.
    changed: Vec<bool>,
    per_page: usize,
    /// Bytes of all slots in class pages, and of the slots in use or reserved.
    slot_bytes: u64,
    taken_bytes: u64,
}

impl Space {
    pub(super) fn new(page_bytes: usize, classes: &Classes) -> Self {
        Self {
            infos: Vec::new(),
            open: vec![Vec::new(); classes.count()],
            free: BTreeMap::new(),
            changed: Vec::new(),
            per_page: page_bytes / INFO_BYTES,
            slot_bytes: 0,
            taken_bytes: 0,
        }
    }

    /// Decodes the state of the next pages.
    pub(super) fn decode(&mut self, bytes: &[u8], pages: u64, classes: &Classes) {
        let left = (pages as usize).saturating_sub(self.infos.len()).min(self.per_page);
        for at in 0..left {
            let (number, mut info) =
                (self.infos.len() as u64, Info::decode(u32_at(bytes, at * INFO_BYTES)));
            match info.kind {
                Kind::Free => give(&mut self.free, number, 1),
                Kind::Class(class) => {
                    let slots = classes.slots(class);
                    self.slot_bytes += u64::from(slots) * classes.slot_bytes(class) as u64;
                    self.taken_bytes += u64::from(info.live) * classes.slot_bytes(class) as u64;
                    if info.live < slots {
                        info.listed = true;
                        if let Some(open) = self.open.get_mut(usize::from(class)) {
                            open.push(number);
                        }
                    }
                }
                Kind::Span => {}
            }
            self.infos.push(info);
        }
        self.changed.resize(self.infos.len().div_ceil(self.per_page), false);
    }

    /// The parts that changed since the last call, each with its bytes.
    pub(super) fn take_changed(&mut self) -> Vec<(u64, Vec<u8>)> {
        let mut parts = Vec::new();
        for (number, changed) in self.changed.iter_mut().enumerate() {
            if std::mem::take(changed) {
                let infos = self.infos.chunks(self.per_page).nth(number).unwrap_or_default();
                parts.push((number as u64, infos.iter().flat_map(|info| info.encode()).collect()));
            }
        }
        parts
    }

    /// Makes the next sync write this part again.
    pub(super) fn mark_changed(&mut self, part: u64) {
        if let Some(changed) = self.changed.get_mut(part as usize) {
            *changed = true;
        }
    }

    /// Number of pages, including free ones.
    pub(super) fn pages(&self) -> u64 {
        self.infos.len() as u64
    }

    /// Number of slots in use or reserved.
    pub(super) fn taken_slots(&self) -> u64 {
        self.infos.iter().map(|info| u64::from(info.live)).sum()
    }

    /// Takes memory for the states of `pages` pages, if `may_hold` allows all bytes of the space.
    pub(super) fn reserve(
        &mut self,
        pages: usize,
        may_hold: impl FnOnce(u64) -> StoreResult<()>,
    ) -> StoreResult<()> {
        if pages > self.infos.capacity() {
            may_hold((pages * (size_of::<Info>() + LISTED_BYTES)) as u64)?;
            self.infos.reserve_exact(pages - self.infos.len());
        }
        Ok(())
    }

    /// True if more than a third of the bytes of all slots, beyond 4 MiB, is free.
    pub(super) fn is_sparse(&self) -> bool {
        self.slot_bytes > self.taken_bytes + self.taken_bytes / 2 + (4 << 20)
    }

    /// Reserves up to `want` slots of a class on one page; returns the page and the number of
    /// slots. `may_hold` is as in [`Space::reserve`].
    pub(super) fn promise(
        &mut self,
        class: u8,
        want: usize,
        classes: &Classes,
        may_hold: impl Fn(u64) -> StoreResult<()>,
    ) -> StoreResult<(u64, usize)> {
        let slots = classes.slots(class);
        let bytes = classes.slot_bytes(class) as u64;
        let page = loop {
            let listed = self.open.get(usize::from(class)).and_then(|open| open.last().copied());
            let Some(page) = listed else {
                let page = self.allocate(1, may_hold)?;
                self.slot_bytes += u64::from(slots) * bytes;
                self.set(page, Info { kind: Kind::Class(class), listed: true, ..Info::default() });
                if let Some(open) = self.open.get_mut(usize::from(class)) {
                    open.push(page);
                }
                break page;
            };
            let info = self.get(page);
            if info.kind == Kind::Class(class) && info.live < slots && !info.draining {
                break page;
            }
            self.unlist(class, page, info);
        };
        let info = self.get(page);
        let count = want.min(usize::from(slots - info.live)).max(1);
        self.taken_bytes += count as u64 * bytes;
        self.set(page, Info { live: info.live + count as u16, ..info });
        Ok((page, count))
    }

    /// Removes the last entry of a class's list, whose page has no slot to reserve.
    fn unlist(&mut self, class: u8, page: u64, info: Info) {
        if let Some(open) = self.open.get_mut(usize::from(class)) {
            open.pop();
        }
        if info.kind == Kind::Class(class) {
            self.set(page, Info { listed: false, ..info });
        }
    }

    /// Frees a slot. Returns true if the page is now empty and free; the caller must then discard
    /// it.
    pub(super) fn release(&mut self, page: u64, classes: &Classes) -> bool {
        let info = self.get(page);
        let Kind::Class(class) = info.kind else {
            return false;
        };
        let bytes = classes.slot_bytes(class) as u64;
        self.taken_bytes = self.taken_bytes.saturating_sub(bytes);
        let live = info.live.saturating_sub(1);
        if live == 0 {
            self.slot_bytes =
                self.slot_bytes.saturating_sub(u64::from(classes.slots(class)) * bytes);
            // Its entry in the list, if any, is skipped later.
            self.set(page, Info::default());
            give(&mut self.free, page, 1);
            return true;
        }
        if !info.listed
            && !info.draining
            && let Some(open) = self.open.get_mut(usize::from(class))
        {
            open.push(page);
        }
        self.set(page, Info { live, listed: !info.draining, ..info });
        false
    }

    /// Allocates consecutive pages for a span.
    pub(super) fn allocate_span(
        &mut self,
        count: u64,
        may_hold: impl Fn(u64) -> StoreResult<()>,
    ) -> StoreResult<u64> {
        let first = self.allocate(count, may_hold)?;
        (first..first + count)
            .for_each(|page| self.set(page, Info { kind: Kind::Span, ..Info::default() }));
        Ok(first)
    }

    /// Frees the pages of a span.
    pub(super) fn release_span(&mut self, first: u64, count: u64) {
        (first..first + count).for_each(|page| self.set(page, Info::default()));
        give(&mut self.free, first, count);
    }

    /// Up to `most` pages with less than three quarters of their slots taken, by class, the
    /// emptiest first. Their free slots are not reserved until [`Space::end_draining`].
    pub(super) fn sparse_pages(&mut self, most: usize, classes: &Classes) -> Vec<u64> {
        let mut found = Vec::new();
        for class in 0..self.open.len() as u8 {
            let slots = classes.slots(class);
            let listed =
                self.open.get_mut(usize::from(class)).map(std::mem::take).unwrap_or_default();
            let mut pages: Vec<u64> = listed
                .into_iter()
                .filter(|page| {
                    let info = self.get(*page);
                    info.kind == Kind::Class(class) && info.listed && info.live < slots
                })
                .collect();
            pages.sort_unstable_by_key(|page| (self.get(*page).live, *page));
            pages.dedup();
            // One page with free slots stays, as a target for the records that move.
            let sparse = pages
                .iter()
                .take(pages.len().saturating_sub(1))
                .take(most.saturating_sub(found.len()));
            let count = sparse.take_while(|page| self.get(**page).live * 4 < slots * 3).count();
            let kept = pages.split_off(count);
            for page in &pages {
                let info = self.get(*page);
                self.set(*page, Info { listed: false, draining: true, ..info });
            }
            found.extend(pages);
            if let Some(open) = self.open.get_mut(usize::from(class)) {
                // The fullest pages are filled first.
                *open = kept;
            }
        }
        found
    }

    /// Ends the draining of a page that still has records; see [`Space::sparse_pages`].
    pub(super) fn end_draining(&mut self, page: u64) {
        let info = self.get(page);
        let Kind::Class(class) = info.kind else {
            return;
        };
        if info.draining {
            if let Some(open) = self.open.get_mut(usize::from(class)) {
                open.push(page);
            }
            self.set(page, Info { draining: false, listed: true, ..info });
        }
    }

    fn allocate(
        &mut self,
        count: u64,
        may_hold: impl Fn(u64) -> StoreResult<()>,
    ) -> StoreResult<u64> {
        let run =
            self.free.iter().find(|(_, len)| **len >= count).map(|(start, len)| (*start, *len));
        if let Some((start, len)) = run {
            self.free.remove(&start);
            if len > count {
                self.free.insert(start + count, len - count);
            }
            return Ok(start);
        }
        // The new pages begin with the free run at the end, if there is one.
        let end = self.infos.len() as u64;
        let last = self
            .free
            .last_key_value()
            .filter(|(start, len)| **start + **len == end)
            .map(|(start, _)| *start);
        let start = last.unwrap_or(end);
        let pages = (start + count) as usize;
        if pages > self.infos.capacity() {
            // Grows by an eighth, so that the cost for a page is constant, or by what is needed.
            let spare = self.infos.capacity() / 8;
            self.reserve(pages + spare, &may_hold).or_else(|_| self.reserve(pages, &may_hold))?;
        }
        self.free.remove(&start);
        self.infos.resize(pages, Info::default());
        self.changed.resize(self.infos.len().div_ceil(self.per_page), true);
        Ok(start)
    }

    fn get(&self, page: u64) -> Info {
        self.infos.get(page as usize).copied().unwrap_or_default()
    }

    fn set(&mut self, page: u64, info: Info) {
        if let Some(old) = self.infos.get_mut(page as usize) {
            *old = info;
        }
        self.mark_changed(page / self.per_page as u64);
    }
}

/// Adds a run to the free ones and joins it with its neighbors.
fn give(free: &mut BTreeMap<u64, u64>, mut start: u64, mut len: u64) {
    let before = free.range(..start).next_back().map(|(before, count)| (*before, *count));
    if let Some((before, count)) = before.filter(|(before, count)| before + count == start) {
        free.remove(&before);
        (start, len) = (before, len + count);
    }
    if let Some(count) = free.remove(&(start + len)) {
        len += count;
    }
    free.insert(start, len);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn any(_: u64) -> StoreResult<()> {
        Ok(())
    }

    #[test]
    fn pages_are_promised_filled_freed_and_reused() {
        let classes = Classes::new(4096);
        let mut space = Space::new(4096, &classes);
        let class = classes.of(500).unwrap();
        let slots = usize::from(classes.slots(class));
        assert_eq!(space.promise(class, 3, &classes, any).unwrap(), (0, 3));
        assert_eq!(space.promise(class, 100, &classes, any).unwrap(), (0, slots - 3));
        assert_eq!(space.promise(class, 1, &classes, any).unwrap(), (1, 1));
        assert!(space.release(1, &classes));
        assert!(!space.release(0, &classes));
        assert_eq!(space.promise(class, 9, &classes, any).unwrap(), (0, 1));
        assert_eq!(space.allocate_span(3, any).unwrap(), 1);
        space.release_span(1, 3);
        assert_eq!(
            (
                space.allocate_span(2, any).unwrap(),
                space.allocate_span(1, any).unwrap(),
                space.allocate_span(1, any).unwrap()
            ),
            (1, 3, 4)
        );
    }

    #[test]
    fn what_is_written_is_read() {
        let classes = Classes::new(4096);
        let mut space = Space::new(4096, &classes);
        let class = classes.of(100).unwrap();
        for _ in 0..5000 {
            space.promise(class, 1, &classes, any).unwrap();
        }
        space.allocate_span(4, any).unwrap();
        let mut again = Space::new(4096, &classes);
        for (_, bytes) in space.take_changed() {
            again.decode(&bytes, space.pages(), &classes);
        }
        assert!(space.take_changed().is_empty());
        let plain =
            |space: &Space| space.infos.iter().map(|i| (i.kind, i.live)).collect::<Vec<_>>();
        assert_eq!(plain(&again), plain(&space));
        assert_eq!((again.slot_bytes, again.taken_bytes), (space.slot_bytes, space.taken_bytes));
        assert_eq!(
            again.promise(class, 1, &classes, any).unwrap(),
            space.promise(class, 1, &classes, any).unwrap()
        );
    }

    #[test]
    fn sparse_pages_are_the_emptiest_and_are_promised_to_nobody() {
        let classes = Classes::new(4096);
        let mut space = Space::new(4096, &classes);
        let class = classes.of(400).unwrap();
        let slots = usize::from(classes.slots(class));
        for _ in 0..10 {
            assert_eq!(space.promise(class, slots, &classes, any).unwrap().1, slots);
        }
        for page in [2, 5, 7] {
            (0..slots - 1).for_each(|_| assert!(!space.release(page, &classes)));
        }
        (0..2).for_each(|_| assert!(!space.release(1, &classes)));
        let sparse = space.sparse_pages(10, &classes);
        assert_eq!(sparse, [2, 5, 7]);
        assert_eq!(space.promise(class, 1, &classes, any).unwrap().0, 1);
        // On a page that is being emptied, freed slots are not reserved again.
        assert!(space.release(2, &classes));
        space.end_draining(5);
        assert_eq!(space.promise(class, 1, &classes, any).unwrap().0, 5);
    }
}
