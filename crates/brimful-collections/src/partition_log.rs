//! Pending keys: sorted into partitions on arrival, and applied one partition at a time.
//!
//! Applied directly, each random key would touch another page. Instead, keys are appended to
//! partitions of a working file by their leading bits, in blocks of 4 bytes a key if all keys of
//! the block are small, else of 8. Partitions are applied once they have enough keys to justify
//! reading their pages.
//!
//! A hot key can make its partition as long as the whole log. A partition is therefore applied in
//! pieces of bounded length, oldest first: memory does not depend on the distribution of the keys.
//! Invariant: a key is passed on once, in a sorted piece of one partition. The log does not survive
//! a crash, so a sync applies it first.
//!
//! The log works on threads of its own: a thread of the pool may use a collection and wait for the
//! gate, so a holder of the gate must not wait for the pool.

use std::collections::VecDeque;
use std::panic::resume_unwind;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use brimful_store::durable::minimum_bytes;
use brimful_store::sorter::sort_in_memory;
use brimful_store::{Error as StoreError, ErrorKind, Folder, Reservation, StoreFile};

use crate::error::{Error, Result};
use crate::options::Options;

/// Leading bits of a key that select its partition.
const BITS: u32 = 8;
const PARTITIONS: usize = 1 << BITS;
/// Keys of a partition in memory, and keys of a block.
const BUFFER_LEN: usize = 4096;
/// Bytes written between starts of write-back.
const START_BYTES: u64 = 1 << 20;
/// Keys that a thread partitions at once, so that they stay in its cache.
const CHUNK_LEN: usize = 1 << 16;
/// The number of pending keys that justifies a thread: fewer are applied sooner than it starts.
const KEYS_PER_THREAD: u64 = 64;

#[derive(Debug, Default)]
struct Part {
    buffer: Vec<u64>,
    /// The blocks of [`BUFFER_LEN`] keys, oldest first.
    blocks: VecDeque<LogBlock>,
}

impl Part {
    fn is_empty(&self) -> bool {
        self.blocks.is_empty() && self.buffer.is_empty()
    }
}

#[derive(Debug, Clone, Copy)]
struct LogBlock {
    offset: u64,
    /// True if every key takes 4 bytes.
    is_narrow: bool,
}

/// Keys in partitions, in memory and in a nameless file.
#[derive(Debug)]
pub(crate) struct PartitionLog {
    file: StoreFile,
    end: AtomicU64,
    parts: Vec<Mutex<Part>>,
    /// Number of pending keys.
    len: AtomicU64,
    /// Number of keys accepted so far.
    accepted: AtomicU64,
    /// Held shared during a push, exclusively during a drain.
    gate: RwLock<()>,
    /// Blocks per piece.
    piece_blocks: usize,
    /// A push or the application of a piece failed half-way: only the state of the last sync is
    /// valid.
    broken: AtomicBool,
    _memory: Reservation,
}

impl PartitionLog {
    /// Limit of the memory of the partitions, in bytes.
    pub(crate) const BUFFER_BYTES: u64 = (PARTITIONS * BUFFER_LEN * 8) as u64;

    /// Reserves the memory of the partitions, at most half of that of the collection. Returns it
    /// with the options for the pages next to the log, which have the rest.
    ///
    /// # Errors
    /// `Error::Store` for a collection with less memory; `Error::Usage` for its page size.
    pub(crate) fn reserve(mut options: Options) -> Result<(Reservation, Options)> {
        options.require_page_size()?;
        let purpose = "for the keys of a collection";
        let rest = Options::memory_for_pages(minimum_bytes(options.page_bytes));
        options.require(Self::BUFFER_BYTES + rest.max(Self::BUFFER_BYTES), purpose)?;
        let memory = options.resources.budget.reserve(Self::BUFFER_BYTES, purpose)?;
        options.memory_bytes -= Self::BUFFER_BYTES;
        Ok((memory, options))
    }

    /// A log in a nameless file of `folder`, with the memory and the options from
    /// [`PartitionLog::reserve`].
    pub(crate) fn new(folder: &dyn Folder, options: &Options, memory: Reservation) -> Result<Self> {
        // A worker holds the piece that it applies, and as much memory again to sort it.
        let share = options.batch_bytes() / options.resources.workers() / 18;
        Ok(Self {
            file: StoreFile::scratch(folder, options.resources.job.traffic())?,
            end: AtomicU64::new(0),
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            len: AtomicU64::new(0),
            accepted: AtomicU64::new(0),
            gate: RwLock::new(()),
            piece_blocks: (share / BUFFER_LEN).max(1),
            broken: AtomicBool::new(false),
            _memory: memory,
        })
    }

    /// Number of pending keys.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Number of keys accepted so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.accepted.load(Ordering::Relaxed)
    }

    /// True if the keys should be applied now.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= (self.piece_blocks * BUFFER_LEN * PARTITIONS) as u64
    }

    /// Fails if a push or the application of a piece failed half-way.
    pub(crate) fn usable(&self) -> Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Poisoned { path: self.file.path().into() }.into());
        }
        Ok(())
    }

    /// Accepts `keys`. The leading bits of `map(key)` must be evenly spread, and
    /// [`PartitionLog::drain`] must get the same `map`: the log stores the keys themselves, which
    /// are often small. Accepts all keys, or fails and refuses all later use.
    pub(crate) fn push(
        &self,
        keys: &[u64],
        map: impl Fn(u64) -> u64 + Sync,
        options: &Options,
    ) -> Result<()> {
        self.usable()?;
        let _pushing = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let chunk = |keys: &[u64]| {
            let mut sorted: Vec<Vec<u64>> = vec![Vec::new(); PARTITIONS];
            for key in keys {
                if let Some(part) = sorted.get_mut((map(*key) >> (64 - BITS)) as usize) {
                    part.push(*key);
                }
            }
            sorted.iter().zip(&self.parts).try_for_each(|(keys, part)| {
                self.append(&mut part.lock().unwrap_or_else(PoisonError::into_inner), keys)
            })
        };
        let next = AtomicUsize::new(0);
        let threads = options.resources.workers().min(keys.len().div_ceil(CHUNK_LEN));
        let results = on_own_threads(threads, || {
            let mut chunks = std::iter::from_fn(|| {
                keys.chunks(CHUNK_LEN).nth(next.fetch_add(1, Ordering::Relaxed))
            });
            chunks.try_for_each(chunk)
        });
        let pushed: Result<()> = results.into_iter().collect();
        if pushed.is_err() {
            self.broken.store(true, Ordering::Relaxed);
            return pushed;
        }
        self.len.fetch_add(keys.len() as u64, Ordering::Relaxed);
        self.accepted.fetch_add(keys.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn append(&self, part: &mut Part, keys: &[u64]) -> Result<()> {
        let mut remaining = keys;
        while !remaining.is_empty() {
            let (now, later) =
                remaining.split_at(remaining.len().min(BUFFER_LEN - part.buffer.len()));
            part.buffer.extend_from_slice(now);
            remaining = later;
            if part.buffer.len() == BUFFER_LEN {
                let narrow = narrowed(&part.buffer);
                let bytes: &[u8] = match &narrow {
                    Some(narrow) => bytemuck::cast_slice(narrow),
                    None => bytemuck::cast_slice(&part.buffer),
                };
                let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.file.write_all_at(bytes, offset)?;
                // Starts write-back early, so that under a hard memory limit no thread waits for
                // dirty pages later.
                if offset / START_BYTES != (offset + bytes.len() as u64) / START_BYTES {
                    self.file.start_writing(offset / START_BYTES * START_BYTES, START_BYTES);
                }
                part.blocks.push_back(LogBlock { offset, is_narrow: narrow.is_some() });
                part.buffer.clear();
            }
        }
        Ok(())
    }

    /// Passes all keys, converted by `map`, to `apply` on as many threads as the pool has, one
    /// sorted piece of a partition at a time; pushes wait until the drain ends. `apply` must not
    /// wait for the pool. A cancellation interrupts the drain between two pieces or within one, and
    /// a budget that is too small within one. Within a piece, the error of `apply` has the number
    /// of keys applied, and the other keys of the piece, restored by `unmap`, stay in the log.
    /// After any other error within a piece, the log refuses all use.
    pub(crate) fn drain(
        &self,
        options: &Options,
        map: impl Fn(u64) -> u64 + Sync,
        unmap: impl Fn(u64) -> u64 + Sync,
        apply: impl Fn(&[u64]) -> Result<(), (usize, Error)> + Sync,
    ) -> Result<()> {
        self.usable()?;
        if self.len() == 0 {
            return Ok(());
        }
        let _draining = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        // Threads take partitions in order, so that they write adjacent pages.
        let next = AtomicUsize::new(0);
        let threads = self.len().div_ceil(KEYS_PER_THREAD);
        let threads = threads.min(options.resources.workers() as u64) as usize;
        let results = on_own_threads(threads, || {
            let (mut keys, mut buffer) = (Vec::new(), Vec::new());
            while let Some(part) = self.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                while !part.is_empty() {
                    self.usable()?;
                    options.resources.job.check()?;
                    self.take_piece(&mut part, &mut keys)?;
                    keys.iter_mut().for_each(|key| *key = map(*key));
                    sort_in_memory(&mut keys, &mut buffer);
                    let Err((count, error)) = apply(&keys) else {
                        continue;
                    };
                    keys.drain(..count.min(keys.len()));
                    keys.iter_mut().for_each(|key| *key = unmap(*key));
                    let is_stop =
                        matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::Budget);
                    if !is_stop || self.append(&mut part, &keys).is_err() {
                        self.broken.store(true, Ordering::Relaxed);
                    }
                    return Err(error);
                }
            }
            Ok(())
        });
        // A thread whose piece fails makes the others refuse the log: its error is the cause.
        let is_refusal = |error: &Error| matches!(error, Error::Store(StoreError::Poisoned { .. }));
        let errors = results.into_iter().filter_map(Result::err);
        let cause = errors.reduce(|a, b| if is_refusal(&a) { b } else { a });
        cause.map_or(Ok(()), Err)?;
        self.len.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        Ok(())
    }

    /// Moves the next piece of a partition to `keys`. After a failure the piece is still in the
    /// partition.
    fn take_piece(&self, part: &mut Part, keys: &mut Vec<u64>) -> Result<()> {
        let blocks = part.blocks.len().min(self.piece_blocks);
        keys.clear();
        // Reserves the exact number, because growth by doubling would exceed the budget.
        keys.reserve_exact(blocks * BUFFER_LEN + part.buffer.len());
        keys.resize(blocks * BUFFER_LEN, 0);
        let mut narrow = vec![0_u32; BUFFER_LEN];
        for (block, keys) in part.blocks.iter().zip(keys.chunks_mut(BUFFER_LEN)) {
            if block.is_narrow {
                self.file.read_exact_at(bytemuck::cast_slice_mut(&mut narrow), block.offset)?;
                keys.iter_mut().zip(&narrow).for_each(|(key, narrow)| *key = u64::from(*narrow));
            } else {
                self.file.read_exact_at(bytemuck::cast_slice_mut(keys), block.offset)?;
            }
        }
        part.blocks.drain(..blocks);
        // The buffer is younger than every block, so it follows the last block.
        if part.blocks.is_empty() {
            keys.append(&mut part.buffer);
        }
        Ok(())
    }
}

/// Calls `work` on the calling thread and on others, `threads` in all, and returns all results.
fn on_own_threads<R: Send>(threads: usize, work: impl Fn() -> R + Sync) -> Vec<R> {
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads).map(|_| scope.spawn(&work)).collect();
        let own = work();
        let others = others
            .into_iter()
            .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
        std::iter::once(own).chain(others).collect()
    })
}

/// The keys in 4 bytes each, if all of them fit.
fn narrowed(keys: &[u64]) -> Option<Vec<u32>> {
    let all = keys.iter().fold(0, |all, key| all | key);
    (all <= u64::from(u32::MAX)).then(|| keys.iter().map(|key| *key as u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_of_a_piece_comes_before_the_refusals_that_it_causes() {
        let folder = brimful_store::fault::FaultFolder::new();
        let (memory, options) = PartitionLog::reserve(Options::of_test(32 << 20)).unwrap();
        let log = PartitionLog::new(&folder, &options, memory).unwrap();
        let keys: Vec<u64> = (0..256).map(|part| part << (64 - BITS)).collect();
        log.push(&keys, |key| key, &options).unwrap();
        let first = AtomicBool::new(true);
        let drained = log.drain(
            &options,
            |key| key,
            |key| key,
            |_| {
                if first.swap(false, Ordering::Relaxed) {
                    return Err((0, StoreError::corrupt_pages("x", 0, "damaged").into()));
                }
                while log.usable().is_ok() {
                    std::thread::yield_now();
                }
                Ok(())
            },
        );
        assert_eq!(drained.unwrap_err().kind(), ErrorKind::Corrupt);
    }
}
