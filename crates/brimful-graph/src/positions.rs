//! Internal ids of the ids of an [`IdBitmap`], in two memory reads each.
//!
//! For 64 ids, 40 bytes: three bit planes hold a code per id (0: absent, else 1 + its run), and for each
//! run how many of its members come before in the page; the page knows how many come before the page.
//! That is 5 bits per id of a used page. Invariant: internal ids are the runs one after another, each
//! ascending by external id.

use std::sync::atomic::Ordering;

use crate::bitmap::{IdBitmap, PAGE_IDS, PAGE_WORDS, Page};
use crate::classes::{ISOLATED, InInternalOrder, RUNS, Tally, run_of};
use crate::error::Result;

/// Codes: absent, and one per run; as many as three bits tell apart.
const CODES: usize = 8;

#[derive(Clone, Copy, Default)]
struct Word {
    planes: [u64; 3],
    /// Members of each code before this word within the page: at most 2^16 - 64.
    before: [u16; CODES],
}

impl Word {
    fn code(&self, bit: u32) -> usize {
        let plane = |index: usize| (self.planes[index] >> bit & 1) << index;
        (plane(0) | plane(1) | plane(2)) as usize
    }

    fn set(&mut self, bit: u32, code: usize) {
        for (index, plane) in self.planes.iter_mut().enumerate() {
            *plane |= (code as u64 >> index & 1) << bit;
        }
    }

    /// The ids of the word that have `code`.
    fn members(&self, code: usize) -> u64 {
        let same = |index: usize| {
            // All ones where the code has a zero: the plane is taken inverted.
            let invert = (code as u64 >> index & 1).wrapping_sub(1);
            self.planes[index] ^ invert
        };
        same(0) & same(1) & same(2)
    }
}

/// The positions of 2^16 ids.
pub(crate) struct PositionPage {
    /// The internal id of the first member of each code.
    base: [u64; CODES],
    words: [Word; PAGE_WORDS],
}

/// The internal id of every id.
pub(crate) struct IdPositions {
    pages: Box<[Option<Box<PositionPage>>]>,
    tally: Tally,
}

/// A place among 2^32 ids.
#[inline]
fn place(id: u64) -> Option<(usize, usize, u32)> {
    let id = usize::try_from(id).ok()?;
    Some((id / PAGE_IDS, id % PAGE_IDS / 64, (id % 64) as u32))
}

impl IdPositions {
    /// Positions in the degree order.
    pub(crate) fn new(bitmap: &IdBitmap) -> Self {
        let mut tally = Tally::default();
        let pages = bitmap.pages().map(|page| page.map(|page| code_page(bitmap, page, &mut tally)));
        let mut positions = Self { pages: pages.collect(), tally };
        let starts = tally.starts();
        for page in positions.pages.iter_mut().flatten() {
            page.base[1..].iter_mut().zip(starts).for_each(|(base, start)| *base += start);
        }
        positions
    }

    /// How many vertices each run has.
    pub(crate) fn tally(&self) -> Tally {
        self.tally
    }

    /// Bytes of memory held.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let pages = self.pages.iter().flatten().count() * size_of::<PositionPage>();
        (pages + self.pages.len() * size_of::<Option<Box<PositionPage>>>()) as u64
    }

    /// The internal id of an id of the set; `None` for any other.
    #[inline]
    pub(crate) fn internal(&self, id: u64) -> Option<u64> {
        let (page, word, bit) = place(id)?;
        let page = self.pages.get(page)?.as_ref()?;
        let word = &page.words[word];
        let code = word.code(bit);
        let below = (word.members(code) & ((1 << bit) - 1)).count_ones();
        (code != 0).then_some(page.base[code] + u64::from(word.before[code]) + u64::from(below))
    }

    /// The internal id that an id with edges would have in the external order.
    pub(crate) fn external(&self, id: u64) -> Option<u64> {
        let (page, word, bit) = place(id)?;
        let page = self.pages.get(page)?.as_ref()?;
        let word = &page.words[word];
        let starts = self.tally.starts();
        let before = (0..ISOLATED).map(|run| {
            let code = run + 1;
            let below = (word.members(code) & ((1 << bit) - 1)).count_ones();
            page.base[code] - starts[run] + u64::from(word.before[code]) + u64::from(below)
        });
        (word.code(bit) != 0).then(|| before.sum())
    }

    /// Turns the degree order into the external order: the classes become one run.
    pub(crate) fn flatten(&mut self) {
        let starts = self.tally.starts();
        self.tally = self.tally.flattened();
        let isolated = ISOLATED + 1;
        for page in self.pages.iter_mut().flatten() {
            let before: u64 = (1..isolated).map(|code| page.base[code] - starts[code - 1]).sum();
            page.base = [0, before, 0, 0, 0, 0, page.base[isolated], 0];
            for word in &mut page.words {
                let last = word.members(isolated);
                let connected = (1..isolated).fold(0, |all, code| all | word.members(code));
                let before = word.before[1..isolated].iter().sum();
                word.before = [0, before, 0, 0, 0, 0, word.before[isolated], 0];
                // Code 1 is the first plane, code 6 the others.
                word.planes = [connected, last, last];
            }
        }
    }
}

impl InInternalOrder for IdPositions {
    fn for_each_id(&self, f: &mut dyn FnMut(u64) -> Result<bool>) -> Result<()> {
        for run in (0..RUNS).filter(|run| self.tally.0[*run] > 0) {
            for (number, page) in self.pages.iter().enumerate() {
                for (index, word) in page.iter().flat_map(|page| page.words.iter().enumerate()) {
                    let start = (number * PAGE_IDS + index * 64) as u64;
                    let mut members = word.members(run + 1);
                    while members != 0 {
                        if !f(start + u64::from(members.trailing_zeros()))? {
                            return Ok(());
                        }
                        members &= members - 1;
                    }
                }
            }
        }
        Ok(())
    }
}

/// Gives every id of a page its code; `tally` holds the members before the page and gets its own.
fn code_page(bitmap: &IdBitmap, page: &Page, tally: &mut Tally) -> Box<PositionPage> {
    let mut coded = Box::new(PositionPage { base: [0; CODES], words: [Word::default(); PAGE_WORDS] });
    coded.base[1..=RUNS].copy_from_slice(&tally.0);
    let counters = bitmap.counters(page).unwrap_or_default();
    let mut members = [0_u16; CODES];
    for (index, word) in coded.words.iter_mut().enumerate() {
        word.before = members;
        let connected = page.connected[index].load(Ordering::Relaxed);
        let mut present = connected | page.declared[index].load(Ordering::Relaxed);
        while present != 0 {
            let bit = present.trailing_zeros();
            present &= present - 1;
            let count = counters.get(index * 64 + bit as usize).map_or(0, |c| c.load(Ordering::Relaxed));
            let run = if connected >> bit & 1 == 1 { run_of(count) } else { ISOLATED };
            word.set(bit, run + 1);
            tally.0[run] += 1;
            // After the last word this may wrap round; nobody reads it then.
            members[run + 1] = members[run + 1].wrapping_add(1);
        }
    }
    coded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::classes::is_counted;
    use crate::edges::EdgeBatch;

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
        EdgeBatch { sources, targets, weights: vec![] }
    }

    #[test]
    fn positions_count_up_in_either_order() {
        let bitmap = IdBitmap::new(1 << 30);
        let mut edges: Vec<(u64, u64)> =
            (0..5000_u64).map(|i| (i * i * 37 % 4_000_000_007 % (1 << 32), i % 90 * i)).collect();
        edges.extend([(0, 63), (64, 65_535), (65_536, (1 << 32) - 1)]);
        bitmap.insert_edges(&batch(&edges));
        bitmap.insert_range(70_000);
        assert!(!bitmap.gave_up());
        let mut positions = bitmap.into_positions();
        let mut connected: Vec<u64> = edges.iter().flat_map(|&(s, t)| [s, t]).collect();
        connected.sort_unstable();
        connected.dedup();
        let tally = positions.tally();
        assert!(tally.has_classes());
        assert_eq!(tally.connected(), connected.len() as u64);
        let by_degree = ids_of(&positions);
        assert_eq!(by_degree.len() as u64, tally.vertices());
        assert!(by_degree.iter().enumerate().all(|(at, &id)| positions.internal(id) == Some(at as u64)));
        for (at, &id) in connected.iter().enumerate() {
            assert_eq!(positions.external(id), Some(at as u64));
        }
        assert_eq!(positions.internal(100_001), None);
        positions.flatten();
        let external = ids_of(&positions);
        assert_eq!(external[..connected.len()], connected);
        assert!(external[connected.len()..].is_sorted());
        assert_eq!(external.len(), by_degree.len());
        assert!(external.iter().enumerate().all(|(at, &id)| positions.internal(id) == Some(at as u64)));
        assert_eq!(positions.consecutive_from().unwrap(), None);
    }

    #[test]
    fn hubs_come_first_and_isolated_ids_last() {
        let counted: Vec<u64> = (100..).filter(|&t| is_counted(7, t)).take(300).collect();
        let mut edges: Vec<(u64, u64)> = counted.iter().map(|&t| (7, t)).collect();
        let quiet = (1000..).find(|&t| !is_counted(3, t) && !counted.contains(&t)).unwrap();
        edges.push((3, quiet));
        let bitmap = IdBitmap::new(1 << 30);
        bitmap.insert_range(2);
        bitmap.insert_edges(&batch(&edges));
        let positions = bitmap.into_positions();
        assert_eq!(positions.tally(), Tally([1, 0, 0, 300, 2, 2]));
        let ids = ids_of(&positions);
        assert_eq!((ids[0], &ids[1..301], &ids[301..]), (7, &counted[..], &[3, quiet, 0, 1][..]));
    }

    #[test]
    fn full_pages_are_consecutive() {
        let bitmap = IdBitmap::new(1 << 30);
        bitmap.insert_range(200_000);
        let positions = bitmap.into_positions();
        assert!((0..200_000).all(|id| positions.internal(id) == Some(id)));
        assert_eq!(positions.consecutive_from().unwrap(), Some(0));
        assert_eq!(positions.tally(), Tally([0, 0, 0, 0, 0, 200_000]));
    }

    #[test]
    #[ignore = "a measurement: cargo test --release -p brimful-graph -- --ignored --nocapture positions"]
    fn how_long_a_position_takes() {
        let bitmap = IdBitmap::new(1 << 30);
        let mix = |i: u64| i.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
        for start in (0..1 << 24).step_by(1 << 16) {
            let ids: Vec<u64> = (start..start + (1 << 16)).collect();
            let targets = ids.iter().map(|&i| mix(i) * mix(i) >> 24).collect();
            bitmap.insert_edges(&EdgeBatch { sources: ids, targets, weights: vec![] });
        }
        let positions = bitmap.into_positions();
        let begin = std::time::Instant::now();
        let calls = 1 << 26;
        let sum = (0..calls).fold(0, |sum: u64, i| sum ^ positions.internal(mix(i)).unwrap_or(0));
        let ns = begin.elapsed().as_secs_f64() / calls as f64 * 1e9;
        eprintln!("{ns:.2} ns per call of 2^24 random ids ({sum}); {} bytes", positions.memory_bytes());
    }
}
