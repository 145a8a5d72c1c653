//! The internal ids of the ids in an [`IdBitmap`], found with one memory read each.
//!
//! A cache line serves 64 ids. Three bit planes hold a code per id (0: absent, otherwise 1 + its
//! run); for each run the line holds the internal id of its first member in the line. This takes
//! one byte per id of a page in use. Invariant: internal ids number the runs in sequence, and each
//! run ascends by external id.

use std::borrow::Cow;
use std::sync::atomic::Ordering;

use brimful_store::huge::HugeArray;
use bytemuck::{Pod, Zeroable};

use crate::error::Result;
use crate::message::{Message, put, records_of, take};
use crate::order::bitmap::{IdBitmap, PAGE_IDS, PAGES, Page};
use crate::order::classes::{ISOLATED, InInternalOrder, RUNS, Tally, run_of};

/// Number of ids in a line.
const LINE_IDS: usize = 64;
const PAGE_LINES: usize = PAGE_IDS / LINE_IDS;
/// Number of ids looked up together.
const MAPPED_AT_ONCE: usize = 128;

/// Three planes of the codes of 64 ids.
type Planes = [u64; 3];

/// 64 ids in a cache line.
#[derive(Clone, Copy, Pod, Zeroable)]
#[repr(C, align(64))]
struct Line {
    planes: Planes,
    /// By code: the internal id of the first member in this line or, if there is none, after it. In
    /// the latter case it may be 2^32 and wrap, but it is never read. The last two entries only
    /// fill the line.
    next: [u32; 10],
}

impl Line {
    /// The internal id of an id of this line, or `None`.
    #[inline]
    fn internal(&self, id: u64) -> Option<u64> {
        let (code, before) = code_of(&self.planes, (id % LINE_IDS as u64) as u32);
        (code != 0).then(|| u64::from(self.next[code]) + u64::from(before.count_ones()))
    }
}

/// The code of an id, and the smaller ids of the line with the same code.
#[inline]
fn code_of(planes: &Planes, bit: u32) -> (usize, u64) {
    let ones = planes.map(|plane| plane >> bit & 1);
    // All ones if the code's bit is zero; the plane is then inverted.
    let same = |index: usize| planes[index] ^ ones[index].wrapping_sub(1);
    let below = (1 << bit) - 1;
    ((ones[0] | ones[1] << 1 | ones[2] << 2) as usize, same(0) & same(1) & same(2) & below)
}

fn set_code(planes: &mut Planes, bit: u32, code: usize) {
    for (index, plane) in planes.iter_mut().enumerate() {
        *plane |= (code as u64 >> index & 1) << bit;
    }
}

/// The ids of the planes with code `code`.
fn members(planes: &Planes, code: usize) -> u64 {
    let same = |index: usize| planes[index] ^ (code as u64 >> index & 1).wrapping_sub(1);
    same(0) & same(1) & same(2)
}

/// The internal id of every id.
pub(crate) struct IdRanks {
    /// The position of the lines of each page of ids, or [`UNUSED`].
    slots: Box<[u32]>,
    /// The lines of all slots, in one allocation on huge pages.
    lines: HugeArray<Line>,
    tally: Tally,
}

/// The slot of an unused page; its lines would be beyond the end.
const UNUSED: u32 = u32::MAX;

/// Bytes of the lines of a page of ids.
pub(crate) const PAGE_BYTES: usize = PAGE_LINES * size_of::<Line>();

impl IdRanks {
    /// The ranks in degree order.
    pub(crate) fn new(bitmap: &IdBitmap) -> Self {
        let mut ranks = Self::within_runs(bitmap);
        shift(&mut ranks.lines, ranks.tally.starts());
        ranks
    }

    /// The ranks of the ids of a set within each run.
    fn within_runs(bitmap: &IdBitmap) -> Self {
        let used = bitmap.pages().flatten().count();
        let mut lines: HugeArray<Line> = HugeArray::zeroed(used * PAGE_LINES);
        let (mut tally, mut slots, mut slot) = (Tally::default(), Vec::new(), 0);
        let mut rest = lines.chunks_exact_mut(PAGE_LINES);
        for page in bitmap.pages() {
            slots.push(match page.and_then(|page| Some((page, rest.next()?))) {
                None => UNUSED,
                Some((page, lines)) => {
                    code_page(bitmap, page, lines, &mut tally);
                    slot += 1;
                    slot - 1
                }
            });
        }
        Self { slots: slots.into(), lines, tally }
    }

    /// The message of the ids of a set, to be joined with those of other ranges.
    pub(crate) fn message_of(bitmap: &IdBitmap) -> Vec<u8> {
        let Self { slots, lines, tally } = Self::within_runs(bitmap);
        let used = slots.iter().zip(0_u64..).filter(|(slot, _)| **slot != UNUSED);
        let (mut message, pages) = (Vec::new(), used.map(|(_, page)| page).collect::<Vec<_>>());
        put(&mut message, &tally.0);
        put(&mut message, &pages);
        message.extend_from_slice(bytemuck::cast_slice(&lines));
        message
    }

    /// The ranks of all ids, from the messages of ranges in ascending order; `None` if one is
    /// damaged.
    pub(crate) fn joined(messages: &[Message]) -> Option<Self> {
        let parts = messages.iter().map(|message| Part::of((**message).as_ref()));
        let parts = parts.collect::<Option<Vec<_>>>()?;
        let used: usize = parts.iter().map(|part| part.pages.len()).sum();
        let mut lines: HugeArray<Line> = HugeArray::zeroed(used * PAGE_LINES);
        let (mut tally, mut slots, mut slot) = (Tally::default(), vec![UNUSED; PAGES], 0);
        let mut rest = &mut lines[..];
        for Part { pages, lines, tally: own } in parts {
            for page in &pages {
                *slots.get_mut(usize::try_from(*page).ok()?)? = slot;
                slot += 1;
            }
            let (copied, after) = rest.split_at_mut(pages.len() * PAGE_LINES);
            bytemuck::cast_slice_mut(copied).copy_from_slice(lines);
            shift(copied, tally.0);
            tally.0.iter_mut().zip(own.0).for_each(|(all, own)| *all += own);
            rest = after;
        }
        shift(&mut lines, tally.starts());
        Some(Self { slots: slots.into(), lines, tally })
    }

    /// The ranks for look-ups.
    pub(crate) fn table(&self) -> RankTable<'_> {
        RankTable { slots: Cow::Borrowed(&self.slots), lines: Cow::Borrowed(&self.lines) }
    }

    /// The number of vertices in each run.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Memory in bytes.
    pub(crate) fn memory_bytes(&self) -> u64 {
        (self.lines.len() * size_of::<Line>() + self.slots.len() * size_of::<u32>()) as u64
    }

    #[inline]
    fn line(&self, id: u64) -> Option<&Line> {
        line_of(&self.slots, &self.lines, id)
    }

    /// The internal id of an id of the set; `None` for any other id.
    #[inline]
    pub(crate) fn internal(&self, id: u64) -> Option<u64> {
        self.line(id)?.internal(id)
    }

    /// The internal id that an id with edges would have in external order.
    pub(crate) fn external(&self, id: u64) -> Option<u64> {
        let (line, bit) = (self.line(id)?, (id % LINE_IDS as u64) as u32);
        let starts = self.tally.starts();
        let before = (0..ISOLATED).map(|run| {
            let within_run = line.next[run + 1].wrapping_sub(starts[run] as u32);
            let before = members(&line.planes, run + 1) & ((1 << bit) - 1);
            u64::from(within_run) + u64::from(before.count_ones())
        });
        (code_of(&line.planes, bit).0 != 0).then(|| before.sum())
    }

    /// Changes degree order to external order: the classes become one run.
    pub(crate) fn flatten(&mut self) {
        let starts = self.tally.starts();
        self.tally = self.tally.flattened();
        for line in self.lines.iter_mut() {
            let within_run = |run: usize| line.next[run + 1].wrapping_sub(starts[run] as u32);
            let first = (0..ISOLATED).fold(0, |sum: u32, run| sum.wrapping_add(within_run(run)));
            line.next[1] = first;
            let isolated = members(&line.planes, ISOLATED + 1);
            let connected = (1..=ISOLATED).fold(0, |all, code| all | members(&line.planes, code));
            // Code 1 is the first plane; code 6 is the other two.
            line.planes = [connected, isolated, isolated];
        }
    }
}

/// A range of ids with the ranks within the runs of the range.
struct Part<'m> {
    pages: Vec<u64>,
    lines: &'m [u8],
    tally: Tally,
}

impl<'m> Part<'m> {
    /// The content of a message; `None` if it is damaged.
    fn of(mut rest: &'m [u8]) -> Option<Self> {
        let (mut tally, mut pages) = (Vec::new(), Vec::new());
        take(&mut rest, &mut tally)?;
        take(&mut rest, &mut pages)?;
        let tally = Tally(<[u64; RUNS]>::try_from(tally).ok()?);
        (rest.len() == pages.len() * PAGE_BYTES).then_some(Self { pages, lines: rest, tally })
    }
}

/// Adds the number of earlier members of each run.
fn shift(lines: &mut [Line], before: [u64; RUNS]) {
    for line in lines {
        let next = line.next[1..].iter_mut().zip(before);
        next.for_each(|(next, before)| *next = next.wrapping_add(before as u32));
    }
}

#[inline]
fn line_of<'l>(slots: &[u32], lines: &'l [Line], id: u64) -> Option<&'l Line> {
    let at = usize::try_from(id).ok()?;
    let slot = *slots.get(at / PAGE_IDS)? as usize;
    lines.get(slot * PAGE_LINES + at % PAGE_IDS / LINE_IDS)
}

/// Ranks for look-ups, perhaps in the memory of another process.
pub(crate) struct RankTable<'a> {
    slots: Cow<'a, [u32]>,
    lines: Cow<'a, [Line]>,
}

impl<'a> RankTable<'a> {
    /// The table with these bytes.
    pub(crate) fn of([slots, lines]: [&'a [u8]; 2]) -> Self {
        Self { slots: records_of(slots), lines: records_of(lines) }
    }

    /// The bytes of the table.
    pub(crate) fn bytes(&self) -> [&[u8]; 2] {
        [bytemuck::cast_slice(&self.slots), bytemuck::cast_slice(&self.lines)]
    }

    /// Replaces ids of the set by their internal ids; false if an id is not in the set.
    pub(crate) fn map(&self, ids: &mut [u64]) -> bool {
        const NONE: Line = Line { planes: [0; 3], next: [0; 10] };
        let (slots, all) = (&*self.slots, &*self.lines);
        let mut lines = [&NONE; MAPPED_AT_ONCE];
        ids.chunks_mut(MAPPED_AT_ONCE).all(|ids| {
            let lines = &mut lines[..ids.len()];
            for (line, &id) in lines.iter_mut().zip(&*ids) {
                *line = line_of(slots, all, id).unwrap_or(&NONE);
            }
            // Reading all lines first lets the processor wait for many together; only few look-ups
            // overlap otherwise.
            std::hint::black_box(lines.iter().fold(0, |all, line| all ^ line.planes[0]));
            ids.iter_mut()
                .zip(lines)
                .all(|(id, line)| line.internal(*id).map(|internal| *id = internal).is_some())
        })
    }
}

impl InInternalOrder for IdRanks {
    fn for_each_id(&self, f: &mut dyn FnMut(u64) -> Result<bool>) -> Result<()> {
        for run in (0..RUNS).filter(|run| self.tally.0[*run] > 0) {
            for (number, slot) in self.slots.iter().enumerate().filter(|(_, slot)| **slot != UNUSED)
            {
                let lines = self.lines.iter().skip(*slot as usize * PAGE_LINES).take(PAGE_LINES);
                for (index, line) in lines.enumerate() {
                    let start = (number * PAGE_IDS + index * LINE_IDS) as u64;
                    let mut left = members(&line.planes, run + 1);
                    while left != 0 {
                        if !f(start + u64::from(left.trailing_zeros()))? {
                            return Ok(());
                        }
                        left &= left - 1;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Sets the code of every id of a page, and adds its members to `tally`.
fn code_page(bitmap: &IdBitmap, page: &Page, lines: &mut [Line], tally: &mut Tally) {
    let counters = bitmap.counters(page).unwrap_or_default();
    for (index, line) in lines.iter_mut().enumerate() {
        // The starts of the runs are added when all are known.
        line.next[1..].iter_mut().zip(tally.0).for_each(|(next, count)| *next = count as u32);
        let connected = page.connected[index].load(Ordering::Relaxed);
        let mut present = connected | page.declared[index].load(Ordering::Relaxed);
        while present != 0 {
            let bit = present.trailing_zeros();
            present &= present - 1;
            let count = counters
                .get(index * LINE_IDS + bit as usize)
                .map_or(0, |c| c.load(Ordering::Relaxed));
            let run = if connected >> bit & 1 == 1 { run_of(count) } else { ISOLATED };
            set_code(&mut line.planes, bit, run + 1);
            tally.0[run] += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::edges::EdgeBatch;
    use crate::order::classes::is_counted;

    fn ids_of(order: &dyn InInternalOrder) -> Vec<u64> {
        let mut ids = Vec::new();
        order
            .for_each_id(&mut |id| {
                ids.push(id);
                Ok(true)
            })
            .unwrap();
        ids
    }

    fn batch(edges: &[(u64, u64)]) -> EdgeBatch {
        let (sources, targets) = edges.iter().copied().unzip();
        EdgeBatch { sources, targets, ..EdgeBatch::default() }
    }

    #[test]
    fn positions_count_up_in_either_order() {
        let bitmap = IdBitmap::new(1 << 30);
        let mut edges: Vec<(u64, u64)> =
            (0..5000_u64).map(|i| (i * i * 37 % 4_000_000_007 % (1 << 32), i % 90 * i)).collect();
        edges.extend([(0, 63), (64, 65_535), (65_536, (1 << 32) - 1)]);
        bitmap.insert_edges(&batch(&edges));
        bitmap.insert_range(0..70_000);
        assert!(!bitmap.is_incomplete());
        let mut ranks = bitmap.into_ranks();
        let mut connected: Vec<u64> = edges.iter().flat_map(|&(s, t)| [s, t]).collect();
        connected.sort_unstable();
        connected.dedup();
        let tally = ranks.tally();
        assert!(tally.has_classes());
        assert_eq!(tally.connected(), connected.len() as u64);
        let by_degree = ids_of(&ranks);
        assert_eq!(by_degree.len() as u64, tally.vertices());
        assert!(
            by_degree.iter().enumerate().all(|(at, &id)| ranks.internal(id) == Some(at as u64))
        );
        for (at, &id) in connected.iter().enumerate() {
            assert_eq!(ranks.external(id), Some(at as u64));
        }
        assert_eq!(ranks.internal(100_001), None);
        ranks.flatten();
        let external = ids_of(&ranks);
        assert_eq!(external[..connected.len()], connected);
        assert!(external[connected.len()..].is_sorted());
        assert_eq!(external.len(), by_degree.len());
        assert!(external.iter().enumerate().all(|(at, &id)| ranks.internal(id) == Some(at as u64)));
        assert_eq!(ranks.consecutive_from().unwrap(), None);
    }

    #[test]
    fn hubs_come_first_and_isolated_ids_last() {
        let counted: Vec<u64> = (100..).filter(|&t| is_counted(7, t)).take(300).collect();
        let mut edges: Vec<(u64, u64)> = counted.iter().map(|&t| (7, t)).collect();
        let quiet = (1000..).find(|&t| !is_counted(3, t) && !counted.contains(&t)).unwrap();
        edges.push((3, quiet));
        let bitmap = IdBitmap::new(1 << 30);
        bitmap.insert_range(0..2);
        bitmap.insert_edges(&batch(&edges));
        let ranks = bitmap.into_ranks();
        assert_eq!(ranks.tally(), Tally([1, 0, 0, 300, 2, 2]));
        let ids = ids_of(&ranks);
        assert_eq!((ids[0], &ids[1..301], &ids[301..]), (7, &counted[..], &[3, quiet, 0, 1][..]));
    }

    #[test]
    fn full_pages_are_consecutive() {
        let bitmap = IdBitmap::new(1 << 30);
        bitmap.insert_range(0..200_000);
        let ranks = bitmap.into_ranks();
        assert!((0..200_000).all(|id| ranks.internal(id) == Some(id)));
        assert_eq!(ranks.consecutive_from().unwrap(), Some(0));
        assert_eq!(ranks.tally(), Tally([0, 0, 0, 0, 0, 200_000]));
    }
}
