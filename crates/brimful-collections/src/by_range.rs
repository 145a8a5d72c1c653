//! Queries for many keys, one range of mixed keys after another.
//!
//! The keys stay in the caller's memory. For each range, a thread scans all keys and sorts those
//! within it, so that a pass reads each page of a structure once. Skipping a key costs about a
//! nanosecond. Invariant: the keys sorted at once fit in the memory of a batch, even if many keys
//! are equal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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
        let next = AtomicUsize::new(0);
        let answers = Mutex::new(answers);
        let work = |_: usize| {
            let mut ask = asker();
            let mut parts: Vec<Vec<Asked>> =
                (0..PARTS).map(|_| Vec::with_capacity(part_len)).collect();
            let (mut buffer, mut found_in_part) = (Vec::with_capacity(part_len), Vec::new());
            let mut answer = |parts: &mut [Vec<Asked>]| -> Result<()> {
                for part in parts.iter_mut().filter(|part| !part.is_empty()) {
                    options.resources.job.check()?;
                    sort_in_memory(part, &mut buffer);
                    ask(part, &mut found_in_part)?;
                    let mut answers = answers.lock().unwrap_or_else(PoisonError::into_inner);
                    for (index, value) in found_in_part.drain(..) {
                        if let Some(answer) = answers.get_mut(index as usize) {
                            *answer = value;
                        }
                    }
                    part.clear();
                }
                Ok(())
            };
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed);
                if range >= ranges {
                    return Ok(());
                }
                // The product of a mixed key and the number of ranges has the number of the range
                // in its upper 64 bits.
                let first = |range: usize| ((range as u128) << u64::BITS).div_ceil(ranges as u128);
                let (low, last) = (first(range) as u64, (first(range + 1) - 1) as u64);
                for (key, index) in keys.iter().zip(0..) {
                    let mixed = mix(*key);
                    if mixed.wrapping_sub(low) > last - low {
                        continue;
                    }
                    // Its upper 64 bits are the number of the range, the lower ones the position in
                    // that range.
                    let scaled = u128::from(mixed) * ranges as u128;
                    let part = (scaled as u64 >> (u64::BITS - PARTS.ilog2())) as usize;
                    let is_full = parts.get_mut(part).is_some_and(|part| {
                        part.push(Asked::new(mixed, index));
                        part.len() == part_len
                    });
                    if is_full {
                        answer(&mut parts)?;
                    }
                }
                answer(&mut parts)?;
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

/// A little more than `keys`, because some ranges get more keys than others.
fn with_spare(keys: usize) -> usize {
    keys + keys / 8 + 64
}
