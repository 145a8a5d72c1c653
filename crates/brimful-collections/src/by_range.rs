//! Questions about many keys, range after range of what they are mixed to.
//!
//! The keys stay where the caller has them. Each thread goes through all of them for the next range and
//! sorts those within it, so that however many keys a call has, each page of a structure is read once.
//! Passing over a key costs about a nanosecond. Invariant: what is sorted at once fits in the memory of a
//! batch, also where many keys are equal.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::error::Result;
use crate::home::Options;

/// Most ranges of one pass: more would make passing over the keys cost more than the answers.
const MOST_RANGES: usize = 64;
/// Fewest keys that are worth a range.
const FEWEST_KEYS: usize = 1 << 14;

/// What `ask` finds for each of `keys`, in their order; `absent` where it finds nothing. `ask` is given
/// mixed keys, ascending, each with an index, and pushes that index with what it found.
pub(crate) fn by_range<R: Copy + Send + Sync>(
    options: &Options,
    keys: &[u64],
    absent: R,
    mix: impl Fn(u64) -> u64 + Sync,
    ask: impl Fn(&[(u64, u32)], &mut Vec<(u32, R)>) -> Result<()> + Sync,
) -> Result<Vec<R>> {
    let mut out = vec![absent; keys.len()];
    let workers = options.resources.workers();
    // A pair, its answer, and where its page begins.
    let pair_bytes = size_of::<(u64, u32)>() + size_of::<(u32, R)>() + size_of::<&[(u64, u32)]>();
    let most = (options.batch_bytes() / pair_bytes / workers).max(FEWEST_KEYS);
    let step = most.saturating_mul(MOST_RANGES).min(u32::MAX as usize);
    for (keys, out) in keys.chunks(step).zip(out.chunks_mut(step)) {
        // A little more than needed, as some ranges get more keys than others.
        let ranges = match keys.len() {
            few if few <= FEWEST_KEYS => 1,
            many => (many + many / 8).div_ceil(most).max(workers),
        } as u64;
        let next = AtomicUsize::new(0);
        let out = Mutex::new(out);
        let work = |_: usize| {
            let (mut sorted, mut found) = (Vec::new(), Vec::new());
            let mut answer = |sorted: &mut Vec<(u64, u32)>| -> Result<()> {
                options.resources.job.check()?;
                sorted.sort_unstable();
                ask(sorted, &mut found)?;
                let mut out = out.lock().unwrap_or_else(PoisonError::into_inner);
                for (index, value) in found.drain(..) {
                    if let Some(place) = out.get_mut(index as usize) {
                        *place = value;
                    }
                }
                sorted.clear();
                Ok(())
            };
            loop {
                let range = next.fetch_add(1, Ordering::Relaxed) as u64;
                if range >= ranges {
                    return Ok(());
                }
                sorted.reserve_exact(keys.len().min(most));
                for (key, index) in keys.iter().zip(0..) {
                    let mixed = mix(*key);
                    if ((u128::from(mixed) * u128::from(ranges)) >> 64) as u64 == range {
                        sorted.push((mixed, index));
                        if sorted.len() == most {
                            answer(&mut sorted)?;
                        }
                    }
                }
                answer(&mut sorted)?;
            }
        };
        if ranges == 1 {
            work(0)?;
        } else {
            let results = options.resources.pool.broadcast(|context| work(context.index()));
            results.into_iter().collect::<Result<()>>()?;
        }
    }
    Ok(out)
}
