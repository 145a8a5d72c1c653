//! Keys put off: sorted into partitions as they come, applied a partition at a time.
//!
//! Random keys would touch a page each. Here they are appended to the part of a working file that their
//! leading bits choose, 8 bytes a key, and applied when a partition's pages are worth reading.
//! Invariant: a key is handed out once, in a partition of ascending leading bits; nothing survives a
//! crash, so whoever syncs applies first.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use brimful_store::{Folder, StoreFile, Traffic};
use rayon::prelude::*;

use crate::error::Result;
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
    blocks: Vec<u64>,
}

/// Keys in partitions, in memory and in a nameless file.
#[derive(Debug)]
pub(crate) struct PartitionLog {
    file: StoreFile,
    end: AtomicU64,
    parts: Vec<Mutex<Part>>,
    len: AtomicU64,
    /// Held shared by those who push, exclusively by who drains.
    gate: RwLock<()>,
    /// Keys after which they should be applied.
    most: u64,
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
        // Each worker has one partition in memory when it is applied.
        let share = options.batch_bytes() / options.resources.workers() / 16;
        Ok(Self {
            file: StoreFile::scratch(folder, traffic)?,
            end: AtomicU64::new(0),
            parts: (0..PARTITIONS).map(|_| Mutex::default()).collect(),
            len: AtomicU64::new(0),
            gate: RwLock::new(()),
            most: (share.max(BUFFER_LEN) * PARTITIONS) as u64,
        })
    }

    /// Keys waiting.
    pub(crate) fn len(&self) -> u64 {
        self.len.load(Ordering::Relaxed)
    }

    /// True if it is time to apply them.
    pub(crate) fn is_full(&self) -> bool {
        self.len() >= self.most
    }

    /// Takes `keys`, each turned by `map` into one whose leading bits are evenly spread.
    pub(crate) fn push(
        &self,
        keys: &[u64],
        map: impl Fn(u64) -> u64 + Sync,
        options: &Options,
    ) -> Result<()> {
        let _pushing = self.gate.read().unwrap_or_else(PoisonError::into_inner);
        let chunk = |keys: &[u64]| {
            let mut sorted: Vec<Vec<u64>> = vec![Vec::new(); PARTITIONS];
            for key in keys {
                let key = map(*key);
                if let Some(part) = sorted.get_mut((key >> (64 - BITS)) as usize) {
                    part.push(key);
                }
            }
            sorted.iter().zip(&self.parts).try_for_each(|(keys, part)| self.append(part, keys))
        };
        if keys.len() <= CHUNK_LEN {
            chunk(keys)?;
        } else {
            options.resources.pool.install(|| keys.par_chunks(CHUNK_LEN).try_for_each(chunk))?;
        }
        self.len.fetch_add(keys.len() as u64, Ordering::Relaxed);
        Ok(())
    }

    fn append(&self, part: &Mutex<Part>, keys: &[u64]) -> Result<()> {
        let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
        let mut rest = keys;
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(BUFFER_LEN - part.buffer.len()));
            part.buffer.extend_from_slice(now);
            rest = later;
            if part.buffer.len() == BUFFER_LEN {
                let bytes: &[u8] = bytemuck::cast_slice(&part.buffer);
                let offset = self.end.fetch_add(bytes.len() as u64, Ordering::Relaxed);
                self.file.write_all_at(bytes, offset)?;
                // Under a hard limit nobody should wait for dirty pages later.
                if offset / START_BYTES != (offset + bytes.len() as u64) / START_BYTES {
                    self.file.start_writing(offset / START_BYTES * START_BYTES, START_BYTES);
                }
                part.blocks.push(offset);
                part.buffer.clear();
            }
        }
        Ok(())
    }

    /// Hands out all keys, a sorted partition at a time, to the threads of the pool; whoever pushes
    /// waits. After an error the partitions that were not applied are still here.
    pub(crate) fn drain(&self, options: &Options, apply: impl Fn(&[u64]) -> Result<()> + Sync) -> Result<()> {
        let _draining = self.gate.write().unwrap_or_else(PoisonError::into_inner);
        if self.len() == 0 {
            return Ok(());
        }
        options.resources.pool.install(|| {
            self.parts.par_iter().try_for_each(|part| {
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                let mut keys = vec![0; part.blocks.len() * BUFFER_LEN];
                for (offset, block) in part.blocks.iter().zip(keys.chunks_mut(BUFFER_LEN)) {
                    self.file.read_exact_at(bytemuck::cast_slice_mut(block), *offset)?;
                }
                keys.extend_from_slice(&part.buffer);
                keys.sort_unstable();
                apply(&keys)?;
                part.blocks.clear();
                part.buffer.clear();
                Ok::<(), crate::Error>(())
            })
        })?;
        self.len.store(0, Ordering::Relaxed);
        self.end.store(0, Ordering::Relaxed);
        Ok(())
    }
}
