//! Queries for many keys, one range of mixed keys after another.
//!
//! The keys stay in the caller's memory. For each range, a thread scans all keys and sorts those
//! within it, so that a pass reads each page of a structure once. Skipping a key costs about a
//! nanosecond. Invariant: the keys sorted at once fit in the memory of a batch, even if many keys
//! are equal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::Job;
use brimful_store::durable::{PageId, Scanner};
use brimful_store::sorter::{Record, sort_in_memory};
use bytemuck::{Pod, Zeroable};

use crate::error::Result;
use crate::options::Options;

/// The maximum number of ranges per pass: with more, skipping keys would cost more than the
/// answers.
const MAX_RANGES: usize = 64;
/// Parts per range: one part is sorted within a processor's cache.
const PARTS: usize = 32;
/// The minimum number of keys that justifies a range.
const FEWEST_KEYS: usize = 1 << 14;
/// The minimum number of keys that justifies a pass over a structure.
const FEWEST_COPIED: usize = 1 << 18;

/// Keys per query for callers that copy keys and answers: both copies together take the half of a
/// batch's memory that is not for sorting, or at least 4 MiB.
pub(crate) fn question_len(options: &Options) -> usize {
    (options.batch_bytes() / 2 / (2 * size_of::<u64>())).max(FEWEST_COPIED)
}

/// A requested key: its mixed value, and its index in the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Asked {
    pub(crate) mixed: u64,
    pub(crate) index: u32,
    /// Padding to a multiple of 8 bytes.
    zero: u32,
}

impl Asked {
    pub(crate) fn new(mixed: u64, index: u32) -> Self {
        Self { mixed, index, zero: 0 }
    }
}

impl Record for Asked {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        // The upper 32 bits distinguish nearly all mixed keys of a part, and take only two radix
        // passes.
        self.mixed >> 32
    }
}

/// The answer for each of `keys`, in the order of `keys`; `absent` if there is none. Each thread
/// makes an asker, which receives ascending mixed keys and pushes, for each key found, its index
/// and its answer.
pub(crate) fn by_range<R, Ask>(
    options: &Options,
    keys: &[u64],
    absent: R,
    mix: impl Fn(u64) -> u64 + Sync,
    asker: impl Fn() -> Ask + Sync,
) -> Result<Vec<R>>
where
    R: Copy + Send + Sync,
    Ask: FnMut(&[Asked], &mut Vec<(u32, R)>) -> Result<()>,
{
    let mut answers = vec![absent; keys.len()];
    let workers = options.resources.workers();
    // Takes half of the batch's memory, because pages that the system reads ahead need memory, too.
    let max_range_len = (options.batch_bytes() / 2 / size_of::<Asked>() / workers).max(FEWEST_KEYS);
    let chunk_len = max_range_len.saturating_mul(MAX_RANGES).min(u32::MAX as usize);
    for (keys, answers) in keys.chunks(chunk_len).zip(answers.chunks_mut(chunk_len)) {
        let ranges = match keys.len() {
            few if few <= FEWEST_KEYS => 1,
            many => with_spare(many).div_ceil(max_range_len).max(workers),
        };
        let part_len = with_spare(keys.len() / ranges / PARTS);
        let (next, answers) = (AtomicUsize::new(0), Mutex::new(answers));
        let work = |_: usize| {
            let mut query = PartQuery::new(part_len, asker(), &answers, &options.resources.job);
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed);
                if range >= ranges {
                    return Ok(());
                }
                let (low, last) = bounds(range, ranges);
                for (key, index) in keys.iter().zip(0..) {
                    let mixed = mix(*key);
                    if mixed.wrapping_sub(low) <= last - low {
                        query.add(part_of(mixed, ranges), Asked::new(mixed, index))?;
                    }
                }
                query.answer()?;
            }
        };
        if ranges == 1 {
            work(0)?;
        } else {
            let results = options.resources.broadcast(work);
            results.into_iter().collect::<Result<()>>()?;
        }
    }
    Ok(answers)
}

/// Passes the bytes of each page that has some of `sorted`, and those keys, to `visit`; the page of
/// a mixed key is `page_of(key)`, which ascends.
pub(crate) fn visit_pages(
    scanner: &mut Scanner<'_>,
    job: &Job,
    sorted: &[Asked],
    page_of: impl Fn(u64) -> PageId,
    mut visit: impl FnMut(&[u8], &[Asked]),
) -> Result<()> {
    let page_of = |asked: &Asked| page_of(asked.mixed);
    let groups = sorted.chunk_by(|a, b| page_of(a) == page_of(b));
    let wanted = groups.filter_map(|group| group.first()).map(page_of);
    scanner.visit(wanted, |page, bytes| {
        job.check()?;
        let from = sorted.partition_point(|asked| page_of(asked) < page);
        let rest = sorted.get(from..).unwrap_or_default();
        let count = rest.iter().take_while(|asked| page_of(asked) == page).count();
        visit(bytes, rest.get(..count).unwrap_or_default());
        Ok(())
    })?;
    Ok(())
}

/// The smallest and the greatest mixed key of a range: the product of a mixed key and the number of
/// ranges has the number of the range in its upper 64 bits.
fn bounds(range: usize, ranges: usize) -> (u64, u64) {
    let first = |range: usize| ((range as u128) << u64::BITS).div_ceil(ranges as u128);
    (first(range) as u64, (first(range + 1) - 1) as u64)
}

/// The part of a mixed key in its range, from the lower 64 bits of that product: they are the
/// position in the range.
#[inline]
fn part_of(mixed: u64, ranges: usize) -> usize {
    let position = mixed.wrapping_mul(ranges as u64);
    (position >> (u64::BITS - PARTS.ilog2())) as usize
}

/// The keys of a range that one thread has not yet asked for, by part.
struct PartQuery<'a, R, Ask> {
    parts: Vec<Vec<Asked>>,
    part_len: usize,
    ask: Ask,
    answers: &'a Mutex<&'a mut [R]>,
    job: &'a Job,
    sort_buffer: Vec<Asked>,
    answers_of_part: Vec<(u32, R)>,
}

impl<'a, R, Ask> PartQuery<'a, R, Ask>
where
    Ask: FnMut(&[Asked], &mut Vec<(u32, R)>) -> Result<()>,
{
    fn new(part_len: usize, ask: Ask, answers: &'a Mutex<&'a mut [R]>, job: &'a Job) -> Self {
        Self {
            parts: (0..PARTS).map(|_| Vec::with_capacity(part_len)).collect(),
            part_len,
            ask,
            answers,
            job,
            sort_buffer: Vec::with_capacity(part_len),
            answers_of_part: Vec::new(),
        }
    }

    /// Adds a key to a part; answers all keys if the part is full.
    #[inline]
    fn add(&mut self, part: usize, asked: Asked) -> Result<()> {
        let part = &mut self.parts[part];
        part.push(asked);
        if part.len() == self.part_len { self.answer() } else { Ok(()) }
    }

    /// Answers the keys of all parts.
    fn answer(&mut self) -> Result<()> {
        for part in self.parts.iter_mut().filter(|part| !part.is_empty()) {
            self.job.check()?;
            sort_in_memory(part, &mut self.sort_buffer);
            (self.ask)(part, &mut self.answers_of_part)?;
            let mut answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
            for (index, value) in self.answers_of_part.drain(..) {
                answers[index as usize] = value;
            }
            part.clear();
        }
        Ok(())
    }
}

/// A little more than `keys`, because some ranges get more keys than others.
fn with_spare(keys: usize) -> usize {
    keys + keys / 8 + 64
}
