//! Keys put off: sorted into partitions as they come, applied a partition at a time.
//!
//! Random keys would touch a page each. Here they are appended to the part of a working file that their
//! leading bits choose, 4 bytes a key where they are small and 8 where not, and applied when a partition's
//! pages are worth reading.
//! Invariant: a key is handed out once, in a partition of ascending leading bits; nothing survives a
//! crash, so whoever syncs applies first.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use brimful_store::sorter::sort_in_memory;
use brimful_store::{Error as StoreError, Folder, StoreFile, Traffic};
use rayon::prelude::*;

use crate::error::{Error, Result};
use crate::home::Options;

/// Partitions: the leading bits of a key.
const BITS: u32 = 8;
const PARTITIONS: usize = 1 << BITS;
/// Keys that a partition holds in memory.
const BUFFER_LEN: usize = 4096;
/// Bytes after which what was written starts to go to the disk.
const START_BYTES: u64 = 1 << 20;
/// Keys that a thread partitions at once: they stay in its cache.
const CHUNK_LEN: usize = 1 << 16;

#[derive(Debug, Default)]
struct Part {
    buffer: Vec<u64>,
    /// Where its blocks of [`BUFFER_LEN`] keys are.
    blocks: Vec<Block>,
}

#[derive(Debug, Clone, Copy)]
struct Block {
    offset: u64,
    /// Every key takes 4 bytes.
    is_narrow: bool,
}

/// Keys in partitions, in memory and in a nameless file.
#[derive(Debug)]
pub(crate) struct PartitionLog {
    file: StoreFile,
    end: AtomicU64,
    parts: Vec<Mutex<Part>>,
    len: AtomicU64,
    taken: AtomicU64,
    /// Held shared by those who push, exclusively by who drains.
    gate: RwLock<()>,
    /// Keys after which they should be applied.
    most: u64,
    /// Keys were taken, or a partition was applied, in part: what is known is what the last sync said.
    broken: AtomicBool,
}

impl PartitionLog {
    /// Bytes of memory that the partitions hold at most.
    pub(crate) const BUFFER_BYTES: u64 = (PARTITIONS * BUFFER_LEN * 8) as u64;

    /// The options of the pages beside a log: what the partitions hold is not theirs.
    pub(crate) fn leave(mut options: Options) -> Options {
        options.memory_bytes = options.memory_bytes.saturating_sub(Self::BUFFER_BYTES);
        options
    }

    pub(crate) fn new(folder: &dyn Folder, options: &Options, traffic: &Arc<Traffic>) -> Result<Self> {
        // Each worker has one partition in memory when it is applied, and as much room to sort it; some
        // partitions get more keys than others.
        let share = options.batch_bytes() / options.resources.workers() / 18;
        Ok(Self {
            file: StoreFile::scratch(folder, traffic)?,
            end: AtomicU64::new(0),
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            len: AtomicU64::new(0),
            taken: AtomicU64::new(0),
            gate: RwLock::new(()),
            most: (share.max(BUFFER_LEN) * PARTITIONS) as u64,
            broken: AtomicBool::new(false),
        })
    }

    /// Keys waiting.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// Keys taken so far.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }

    /// True if it is time to apply them.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.most
    }

    /// Fails if keys were taken, or a partition was applied, in part.
    pub(crate) fn usable(&self) -> Result<()> {
        if self.broken.load(Ordering::Relaxed) {
            return Err(StoreError::Poisoned { path: self.file.path().into() }.into());
        }
        Ok(())
    }

    /// Takes `keys`; the leading bits of what `map` makes of them are evenly spread. [`PartitionLog::drain`]
    /// must be given the same `map`: what is kept is the keys, which are often small. Takes all of them, or
    /// fails and refuses everything from then on.
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
        let taken = if keys.len() <= CHUNK_LEN {
            chunk(keys)
        } else {
            options.resources.pool.install(|| keys.par_chunks(CHUNK_LEN).try_for_each(chunk))
        };
        if taken.is_err() {
            self.broken.store(true, Ordering::Relaxed);
            return taken;
        }
        self.len.fetch_add(keys.len() as u64, Ordering::Relaxed);
        self.taken.fetch_add(keys.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn append(&self, part: &mut Part, keys: &[u64]) -> Result<()> {
        let mut rest = keys;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BUFFER_LEN - part.buffer.len()));
            part.buffer.extend_from_slice(now);
            rest = later;
            if part.buffer.len() == BUFFER_LEN {
                let narrow = narrowed(&part.buffer);
                let bytes: &[u8] = match &narrow {
                    Some(narrow) => bytemuck::cast_slice(narrow),
                    None => bytemuck::cast_slice(&part.buffer),
                };
                let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.file.write_all_at(bytes, offset)?;
                // Under a hard limit nobody should wait for dirty pages later.
                if offset / START_BYTES != (offset + bytes.len() as u64) / START_BYTES {
                    self.file.start_writing(offset / START_BYTES * START_BYTES, START_BYTES);
                }
                part.blocks.push(Block { offset, is_narrow: narrow.is_some() });
                part.buffer.clear();
            }
        }
        Ok(())
    }

    /// Hands out all keys as `map` turns them, a sorted partition at a time, to the threads of the pool;
    /// whoever pushes waits. A cancelled job stops it between two partitions, or within one: `apply` says how
    /// many of its keys were applied, `unmap` undoes `map`, and the others are still here. After any other
    /// error within a partition everything is refused.
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
        // In their order, so that what the threads write lies side by side.
        let next = AtomicUsize::new(0);
        let results = options.resources.broadcast(|_| {
            let (mut keys, mut room) = (Vec::new(), Vec::new());
            while let Some(part) = self.parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.usable()?;
                options.resources.job.check()?;
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                self.read(&part, &mut keys)?;
                keys.iter_mut().for_each(|key| *key = map(*key));
                sort_in_memory(&mut keys, &mut room);
                let applied = apply(&keys);
                part.blocks.clear();
                part.buffer.clear();
                let Err((count, error)) = applied else {
                    continue;
                };
                let left: Vec<u64> =
                    keys.get(count..).unwrap_or_default().iter().map(|key| unmap(*key)).collect();
                let is_stop = matches!(error, Error::Store(StoreError::Interrupted));
                if !is_stop || self.append(&mut part, &left).is_err() {
                    self.broken.store(true, Ordering::Relaxed);
                }
                return Err(error);
            }
            Ok(())
        });
        results.into_iter().collect::<Result<()>>()?;
        self.len.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        Ok(())
    }

    fn read(&self, part: &Part, keys: &mut Vec<u64>) -> Result<()> {
        keys.clear();
        // Exactly: growth by doubling would go beyond the budget.
        keys.reserve_exact(part.blocks.len() * BUFFER_LEN + part.buffer.len());
        keys.resize(part.blocks.len() * BUFFER_LEN, 0);
        let mut narrow = vec![0_u32; BUFFER_LEN];
        for (block, keys) in part.blocks.iter().zip(keys.chunks_mut(BUFFER_LEN)) {
            if block.is_narrow {
                self.file.read_exact_at(bytemuck::cast_slice_mut(&mut narrow), block.offset)?;
                keys.iter_mut().zip(&narrow).for_each(|(key, narrow)| *key = u64::from(*narrow));
            } else {
                self.file.read_exact_at(bytemuck::cast_slice_mut(keys), block.offset)?;
            }
        }
        keys.extend_from_slice(&part.buffer);
        Ok(())
    }
}

/// The keys in 4 bytes each, if all fit.
fn narrowed(keys: &[u64]) -> Option<Vec<u32>> {
    let all = keys.iter().fold(0, |all, key| all | key);
    (all <= u64::from(u32::MAX)).then(|| keys.iter().map(|key| *key as u32).collect())
}
