//! Maps strings to numbers while an input is read: one hash table per generation.
//!
//! A name gets a *local* number, which is valid within its generation. A generation is a table in
//! memory, filled by all workers. When it has used its share of memory, it is sorted and written as
//! a run, and the next one begins. Edges go to a spool as pairs of local numbers; a part of the
//! spool belongs to one generation. Invariant: the names and the edges do not depend on threads or
//! memory. Local numbers do, and nothing permanent is derived from them.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError, RwLock};

use brimful_store::{Folder, Resources, checksum};

use super::batch::{NameBatch, place};
use super::runs::{RunWriter, Runs};
use crate::edges::{EdgeBatch, Spool, SpooledEdges};
use crate::error::Result;

/// Bits of a hash that select the part of a table; each part has a lock.
const SHARD_BITS: u32 = 6;
const SHARDS: usize = 1 << SHARD_BITS;
/// The maximum number of names of a part, and the maximum bytes of its names: local numbers and
/// offsets have 32 bits.
const SHARD_NAMES: usize = (1 << (32 - SHARD_BITS)) - (1 << 20);
const SHARD_BYTES: usize = (1 << 32) - (1 << 24);
/// Names written between two checks for cancellation.
const CHECK_EVERY: usize = 1 << 16;
/// Number of slots of a new part.
const FIRST_SLOTS: usize = 1 << 6;
/// Bytes per name that sorting needs beyond the slots. The slots take at least 10 bytes per name,
/// and are freed before sorting.
const SORTING_BYTES: usize = size_of::<Key>() - 10;

/// A part of a table: open addressing, linear probing.
#[derive(Default)]
struct Shard {
    /// 0 if free; otherwise 32 bits of the hash above the number of the name, counted from 1.
    slots: Vec<u64>,
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Shard {
    #[inline]
    fn name(&self, at: usize) -> &[u8] {
        &self.bytes[place(&self.ends, at)]
    }

    /// The number of `name` in this part; a new name gets a new number.
    #[inline]
    fn intern(&mut self, hash: u64, name: &[u8], memory: &Memory) -> u32 {
        let tag = hash & u64::from(u32::MAX);
        if (self.ends.len() + 1) * 4 > self.slots.len() * 3 {
            self.grow(memory);
        }
        let mask = self.slots.len() - 1;
        let mut at = tag as usize & mask;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                let number = self.ends.len() as u32;
                self.slots[at] = tag << 32 | u64::from(number + 1);
                self.append(name, memory);
                return number;
            }
            let number = slot as u32 - 1;
            if slot >> 32 == tag && self.name(number as usize) == name {
                return number;
            }
            at = (at + 1) & mask;
        }
    }

    fn append(&mut self, name: &[u8], memory: &Memory) {
        if self.ends.len() == self.ends.capacity() {
            let more = self.ends.len() / 8 + 64;
            memory.charge(more * (size_of::<u32>() + SORTING_BYTES));
            self.ends.reserve_exact(more);
        }
        if self.bytes.capacity() - self.bytes.len() < name.len() {
            let more = self.bytes.len() / 8 + name.len().max(1 << 10);
            memory.charge(more);
            self.bytes.reserve_exact(more);
        }
        self.bytes.extend_from_slice(name);
        self.ends.push(self.bytes.len() as u32);
        if self.ends.len() >= SHARD_NAMES || self.bytes.len() >= SHARD_BYTES {
            memory.full.store(true, Ordering::Relaxed);
        }
    }

    /// Doubles the slots, unless the generation is about to end and the free slots suffice until
    /// then.
    #[cold]
    fn grow(&mut self, memory: &Memory) {
        let slots = (2 * self.slots.len()).max(FIRST_SLOTS);
        let bytes = slots * size_of::<u64>();
        let crowded = (self.ends.len() + 1) * 32 > self.slots.len() * 31;
        if !crowded && !memory.has_room(bytes) {
            memory.full.store(true, Ordering::Relaxed);
            return;
        }
        memory.charge(bytes - self.slots.len() * size_of::<u64>());
        let old = std::mem::replace(&mut self.slots, vec![0; slots]);
        for slot in old.into_iter().filter(|slot| *slot != 0) {
            let mut at = (slot >> 32) as usize & (slots - 1);
            while self.slots[at] != 0 {
                at = (at + 1) & (slots - 1);
            }
            self.slots[at] = slot;
        }
    }
}

/// The memory limit and use of a generation, in bytes.
struct Memory {
    used: AtomicU64,
    limit: u64,
    full: AtomicBool,
}

impl Memory {
    fn charge(&self, bytes: usize) {
        let used = self.used.fetch_add(bytes as u64, Ordering::Relaxed) + bytes as u64;
        if used > self.limit {
            self.full.store(true, Ordering::Relaxed);
        }
    }

    fn has_room(&self, bytes: usize) -> bool {
        self.used.load(Ordering::Relaxed) + bytes as u64 <= self.limit
    }
}

/// A table in memory.
struct Generation {
    shards: Vec<Mutex<Shard>>,
    memory: Memory,
    /// The first part of the spool with local numbers of this generation.
    first_part: usize,
}

impl Generation {
    fn new(limit: u64, first_part: usize) -> Self {
        let memory = Memory { used: AtomicU64::new(0), limit, full: AtomicBool::new(false) };
        Self { shards: (0..SHARDS).map(|_| Mutex::default()).collect(), memory, first_part }
    }
}

/// A name for sorting by bytes; the prefix decides most comparisons.
#[derive(Clone, Copy)]
struct Key {
    prefix: u64,
    local: u32,
}

/// The part of a local number, and the number within that part.
fn parts_of(local: u32) -> (usize, usize) {
    (local as usize % SHARDS, local as usize / SHARDS)
}

fn local_of(shard: usize, number: u32) -> u32 {
    number << SHARD_BITS | shard as u32
}

/// The first 8 bytes of a name, as a number of the same order.
fn prefix_of(name: &[u8]) -> u64 {
    let mut first = [0; 8];
    let len = name.len().min(8);
    first[..len].copy_from_slice(&name[..len]);
    u64::from_be_bytes(first)
}

/// The scratch buffers of one worker.
#[derive(Default)]
pub(crate) struct InternBuffers {
    hashes: Vec<u64>,
    /// Names of the batch, sorted by part.
    order: Vec<u32>,
    locals: Vec<u32>,
    edges: EdgeBatch,
    bytes: Vec<u8>,
}

/// A generation that was written: its parts of the spool, and the length of a table of its numbers.
pub(crate) struct Written {
    pub(crate) parts: Range<usize>,
    /// The greatest local number plus one.
    pub(crate) locals: usize,
}

/// Collects names from many threads.
pub(crate) struct Interner<'r> {
    current: RwLock<Generation>,
    spool: Spool,
    runs: Mutex<(RunWriter, Vec<Written>)>,
    limit: u64,
    resources: &'r Resources,
}

impl<'r> Interner<'r> {
    /// An interner with about `bytes` of memory and scratch files in `folder`.
    pub(crate) fn new(folder: &dyn Folder, bytes: u64, resources: &'r Resources) -> Result<Self> {
        Ok(Self {
            current: RwLock::new(Generation::new(bytes, 0)),
            spool: Spool::new(folder, &resources.job)?,
            runs: Mutex::new((RunWriter::new(folder, &resources.job)?, Vec::new())),
            limit: bytes,
            resources,
        })
    }

    /// Adds the names of edges, and spools the edges.
    pub(crate) fn add_edges(&self, batch: &NameBatch, buffers: &mut InternBuffers) -> Result<()> {
        self.add(batch, buffers, |spool, buffers| {
            buffers.edges.clear();
            for ends in buffers.locals.as_chunks::<2>().0 {
                buffers.edges.sources.push(ends[0].into());
                buffers.edges.targets.push(ends[1].into());
            }
            buffers.edges.weights.extend_from_slice(&batch.weights);
            buffers.edges.positions.extend_from_slice(&batch.positions);
            spool.append(&buffers.edges, &mut buffers.bytes)
        })
    }

    /// Adds the names of vertices.
    pub(crate) fn add_vertices(
        &self,
        batch: &NameBatch,
        buffers: &mut InternBuffers,
    ) -> Result<()> {
        self.add(batch, buffers, |_, _| Ok(()))
    }

    fn add(
        &self,
        batch: &NameBatch,
        buffers: &mut InternBuffers,
        keep: impl FnOnce(&Spool, &mut InternBuffers) -> Result<()>,
    ) -> Result<()> {
        if batch.is_empty() {
            return Ok(());
        }
        sort_by_shard(batch, buffers);
        loop {
            let generation = self.current.read().unwrap_or_else(PoisonError::into_inner);
            if generation.memory.full.load(Ordering::Relaxed) {
                drop(generation);
                self.next_generation()?;
                continue;
            }
            intern(&generation, batch, buffers);
            // The guard is still held, so a part never belongs to two generations.
            return keep(&self.spool, buffers);
        }
    }

    /// Writes the generation, if it is still full, and begins the next.
    fn next_generation(&self) -> Result<()> {
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        if !current.memory.full.load(Ordering::Relaxed) {
            return Ok(());
        }
        let fresh = Generation::new(self.limit, self.spool.parts());
        let old = std::mem::replace(&mut *current, fresh);
        self.write(old)
    }

    fn write(&self, generation: Generation) -> Result<()> {
        let parts = generation.first_part..self.spool.parts();
        let shards = generation.shards.into_iter();
        let mut shards: Vec<Shard> = shards
            .map(|shard| shard.into_inner().unwrap_or_else(PoisonError::into_inner))
            .collect();
        // Sorting reuses the memory of the slots.
        shards.iter_mut().for_each(|shard| shard.slots = Vec::new());
        let keys = sort(&shards, self.resources);
        let mut runs = self.runs.lock().unwrap_or_else(PoisonError::into_inner);
        for (at, key) in keys.iter().enumerate() {
            if at.is_multiple_of(CHECK_EVERY) {
                self.resources.job.check()?;
            }
            let (shard, number) = parts_of(key.local);
            runs.0.push(shards[shard].name(number), key.local)?;
        }
        runs.0.end_run()?;
        let locals = shards.iter().map(|shard| shard.ends.len()).max().unwrap_or(0) * SHARDS;
        runs.1.push(Written { parts, locals });
        Ok(())
    }

    /// Ends the collection. Returns the runs, the edges as local numbers, and the generations of
    /// these numbers.
    pub(crate) fn finish(self) -> Result<(Runs, SpooledEdges, Vec<Written>)> {
        let fresh = Generation::new(0, 0);
        let mut current = self.current.write().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(&mut *current, fresh);
        drop(current);
        self.write(last)?;
        let (runs, written) = self.runs.into_inner().unwrap_or_else(PoisonError::into_inner);
        Ok((runs.finish()?, self.spool.into_source(), written))
    }
}

/// Hashes all names and sorts them by part, so that each lock is taken once.
fn sort_by_shard(batch: &NameBatch, buffers: &mut InternBuffers) {
    buffers.hashes.clear();
    buffers.hashes.extend(batch.iter().map(checksum));
    let mut starts = [0_u32; SHARDS + 1];
    for hash in &buffers.hashes {
        starts[shard_of(*hash) + 1] += 1;
    }
    for shard in 0..SHARDS {
        starts[shard + 1] += starts[shard];
    }
    buffers.order.resize(buffers.hashes.len(), 0);
    for (at, hash) in buffers.hashes.iter().enumerate() {
        let next = &mut starts[shard_of(*hash)];
        buffers.order[*next as usize] = at as u32;
        *next += 1;
    }
}

fn shard_of(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARD_BITS)) as usize
}

fn intern(generation: &Generation, batch: &NameBatch, buffers: &mut InternBuffers) {
    let InternBuffers { hashes, order, locals, .. } = buffers;
    locals.resize(hashes.len(), 0);
    let group = |a: &u32, b: &u32| shard_of(hashes[*a as usize]) == shard_of(hashes[*b as usize]);
    for names in order.chunk_by(group) {
        let shard = names.first().map_or(0, |first| shard_of(hashes[*first as usize]));
        let mut part = generation.shards[shard].lock().unwrap_or_else(PoisonError::into_inner);
        for at in names.iter().map(|at| *at as usize) {
            locals[at] =
                local_of(shard, part.intern(hashes[at], batch.name(at), &generation.memory));
        }
    }
}

/// The local numbers of all names, in the order of the names' bytes.
fn sort(shards: &[Shard], resources: &Resources) -> Vec<Key> {
    let name = |key: &Key| {
        let (shard, number) = parts_of(key.local);
        shards[shard].name(number)
    };
    let common = common_prefix(shards);
    let count = shards.iter().map(|shard| shard.ends.len()).sum();
    let mut keys = Vec::with_capacity(count);
    for (shard, part) in shards.iter().enumerate() {
        keys.extend((0..part.ends.len()).map(|number| Key {
            prefix: prefix_of(&part.name(number)[common..]),
            local: local_of(shard, number as u32),
        }));
    }
    resources.pool.install(|| {
        use rayon::slice::ParallelSliceMut;
        let order = |a: &Key, b: &Key| a.prefix.cmp(&b.prefix).then_with(|| name(a).cmp(name(b)));
        keys.par_sort_unstable_by(order);
    });
    keys
}

/// Length of the prefix that all names share, such as a scheme and a host.
fn common_prefix(shards: &[Shard]) -> usize {
    let mut names = shards.iter().flat_map(|shard| (0..shard.ends.len()).map(|at| shard.name(at)));
    let Some(first) = names.next() else { return 0 };
    let same = |name: &[u8], common: usize| {
        first.iter().zip(name).take(common).take_while(|(a, b)| a == b).count()
    };
    names.fold(first.len(), |common, name| same(name, common))
}
