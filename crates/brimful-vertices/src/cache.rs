//! Caches over any store: live vertices, so that those in use are neither read nor written.
//!
//! A policy chooses the evictions: [`Lru`] evicts the least recently used vertex, [`Score`] all
//! below the average score at once. (*Making Signal/Collect Scale*, section 3.4. Its LRU cache
//! admitted no vertices on reads, and its score cache lost updates.)
//!
//! Loading fills the cache first; the store below gets these vertices when they are evicted. Scans
//! and loans without edges admit no vertices: otherwise a pass over all vertices would evict each
//! one shortly before its next use.
//!
//! Invariants: a cached vertex that is not new is in the store below, with the same contents if it
//! is clean. A vertex is evicted only after it was written, so that an error of writing loses
//! nothing. A cache that cannot have its memory passes loans on to the store below.

mod choice;
mod lru;
mod score;
mod shelf;

use std::sync::Arc;

use brimful_store::Budget;

pub use choice::Choice;
pub use lru::Lru;
pub use score::{Score, ScoreFunction};
use shelf::{Shelf, SyncState};

use crate::error::{Error, Result};
use crate::field::Field;
use crate::serializer::Serializer;
use crate::store::partition_chunk::PartitionChunk;
use crate::store::{Borrower, CacheStats, StoreStats, VertexStore};
use crate::vertex::Stored;

/// The policy of evictions. Slots are numbered from 0; each holds at most one vertex.
pub trait EvictionPolicy<V>: Send {
    /// A new vertex is in this slot.
    ///
    /// # Errors
    /// Errors of a score function of the user.
    fn admitted(&mut self, slot: usize, vertex: &V) -> Result<()>;
    /// The vertex in this slot was lent.
    fn used(&mut self, slot: usize);
    /// The slot is now empty.
    fn left(&mut self, slot: usize);
    /// Chooses the evictions from a full cache: at least one slot, unless all are empty.
    fn choose(&mut self, out: &mut Vec<usize>);
}

/// The memory of a cache.
#[derive(Debug, Clone, Copy)]
pub struct CacheMemory<'b> {
    /// The budget.
    pub budget: &'b Arc<Budget>,
    /// Number of caches that share it.
    pub partitions: usize,
    /// True if the store below takes memory of this budget for each vertex that it gets.
    pub is_of_store: bool,
}

/// A cache of at most `capacity` vertices over a store.
#[derive(Debug)]
pub struct Cache<T, V, P> {
    store: T,
    shelf: Shelf<V, P>,
    capacity: usize,
    budget: Arc<Budget>,
    /// Bytes of the budget that a cache leaves free while it is loaded.
    spared: u64,
    /// Slots that are being evicted.
    leaving: Vec<usize>,
    stats: CacheStats,
}

impl<T: VertexStore<V>, V: Stored, P: EvictionPolicy<V>> Cache<T, V, P> {
    /// An empty cache over `store` of at most `capacity` vertices; it holds fewer if they would
    /// take more than half of the memory, or if memory runs short.
    ///
    /// # Errors
    /// [`Error::Usage`] for a capacity of 0.
    pub fn new(store: T, capacity: usize, policy: P, memory: CacheMemory<'_>) -> Result<Self> {
        if capacity == 0 {
            let problem = "the cache size must be at least 1";
            return Err(Error::Usage(problem.to_owned()));
        }
        let free = memory.budget.free() / memory.partitions.max(1) as u64;
        Ok(Self {
            store,
            shelf: Shelf::new(policy, memory, free / 2)?,
            capacity,
            budget: Arc::clone(memory.budget),
            spared: free / 8,
            leaving: Vec::new(),
            stats: CacheStats::default(),
        })
    }

    /// True if the vertex is cached.
    #[cfg(test)]
    fn holds(&self, id: &V::Id) -> bool {
        self.shelf.find(id).is_some()
    }

    /// Writes the vertex in `slot`, unless it is the same in the store below.
    fn write(&mut self, slot: usize) -> Result<()> {
        self.shelf.release_record(slot);
        match self.shelf.unwritten(slot) {
            Some((vertex, SyncState::New)) => self.store.add(vertex)?,
            Some((vertex, _)) => self.store.replace(vertex)?,
            None => return Ok(()),
        }
        self.shelf.mark_clean(slot);
        self.stats.written += 1;
        Ok(())
    }

    fn write_all(&mut self) -> Result<()> {
        (0..self.shelf.slots()).try_for_each(|slot| self.write(slot))
    }

    /// Evicts the vertices that the policy chooses.
    fn evict(&mut self) -> Result<()> {
        let mut leaving = std::mem::take(&mut self.leaving);
        leaving.clear();
        self.shelf.choose(&mut leaving);
        for slot in &leaving {
            self.write(*slot)?;
            self.shelf.clear(*slot);
            self.stats.evicted += 1;
        }
        self.leaving = leaving;
        Ok(())
    }

    /// Caches a vertex that is the same in the store below, and returns its slot; `None` if there
    /// is no memory for it.
    fn admit(&mut self, vertex: V) -> Result<Option<usize>> {
        if self.shelf.len() >= self.capacity {
            self.evict()?;
        }
        // If the budget is short, the cache stays below its capacity.
        while !self.shelf.reserve_for(&vertex, SyncState::Clean)? {
            if self.shelf.len() == 0 {
                return Ok(None);
            }
            self.evict()?;
        }
        self.shelf.place(vertex, SyncState::Clean).map(Some)
    }

    /// Fills the cache with the first of `vertices`, which the empty store below does not get.
    /// Returns the number of duplicates, and the first vertex without a place.
    fn fill(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<(u64, Option<V>)> {
        let mut duplicates = 0;
        while self.store.is_empty() && self.shelf.len() < self.capacity {
            let Some(vertex) = vertices.next() else { break };
            if self.shelf.find(vertex.id()).is_some() {
                duplicates += 1;
            } else if self.shelf.reserve_for(&vertex, SyncState::New)? {
                self.shelf.place(vertex, SyncState::New)?;
            } else {
                return Ok((duplicates, Some(vertex)));
            }
        }
        Ok((duplicates, None))
    }
}

impl<T: VertexStore<V>, V: Stored, P: EvictionPolicy<V>> VertexStore<V> for Cache<T, V, P> {
    fn insert(&mut self, vertex: V) -> Result<bool> {
        if self.shelf.find(vertex.id()).is_some() || !self.store.insert(vertex.clone())? {
            return Ok(false);
        }
        self.admit(vertex)?;
        Ok(true)
    }

    /// Fills the cache; the other vertices bypass it.
    fn load(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<u64> {
        let (mut duplicates, left) = self.fill(vertices)?;
        self.leave_free(self.spared)?;
        let Self { store, shelf, .. } = self;
        let mut others = left.into_iter().chain(vertices).filter(|vertex| {
            let is_cached = shelf.find(vertex.id()).is_some();
            duplicates += u64::from(is_cached);
            !is_cached
        });
        let below = store.load(&mut others)?;
        Ok(duplicates + below)
    }

    fn put(&mut self, vertex: &V) -> Result<()> {
        match self.shelf.find(vertex.id()) {
            Some(slot) => self.shelf.lend(vertex.id(), slot, &mut |loan| {
                (**loan).clone_from(vertex);
                Ok(())
            }),
            None => {
                self.store.put(vertex)?;
                self.admit(vertex.clone())?;
                Ok(())
            }
        }
    }

    fn lookahead(&self) -> usize {
        self.store.lookahead()
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        let is_cached =
            |mut key: &[u8]| V::Id::read(&mut key).is_some_and(|id| self.shelf.find(&id).is_some());
        let new: Vec<&[u8]> = keys.iter().copied().filter(|key| !is_cached(key)).collect();
        self.store.prefetch(&new)
    }

    #[inline]
    fn lend(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        if let Some(slot) = self.shelf.find(id) {
            self.stats.hits += 1;
            self.shelf.lend(id, slot, borrower)?;
            return Ok(true);
        }
        let mut found = None;
        self.store.lend(id, &mut |vertex| {
            found = Some((**vertex).clone());
            Ok(())
        })?;
        let Some(vertex) = found else {
            return Ok(false);
        };
        self.stats.misses += 1;
        match self.admit(vertex)? {
            Some(slot) => self.shelf.lend(id, slot, borrower).map(|()| true),
            None => self.store.lend(id, borrower),
        }
    }

    #[inline]
    fn lend_without_edges(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        if let Some(slot) = self.shelf.find(id) {
            self.stats.hits += 1;
            self.shelf.lend(id, slot, borrower)?;
            return Ok(true);
        }
        let is_there = self.store.lend_without_edges(id, borrower)?;
        self.stats.misses += u64::from(is_there);
        Ok(is_there)
    }

    /// The cached vertices, then the others in the order of the store below.
    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()> {
        self.for_each_except(&|_| false, borrower)
    }

    fn for_each_except(
        &mut self,
        is_left_out: &dyn Fn(&V::Id) -> bool,
        borrower: &mut Borrower<'_, V>,
    ) -> Result<()> {
        let Self { store, shelf, stats, .. } = self;
        stats.hits += shelf.lend_all(is_left_out, borrower)?;
        if store.is_empty() {
            return Ok(());
        }
        let is_lent = |id: &V::Id| shelf.find(id).is_some() || is_left_out(id);
        store.for_each_except(&is_lent, &mut |vertex| {
            stats.misses += 1;
            borrower(vertex)
        })
    }

    fn pack(
        &mut self,
        serializer: &mut dyn Serializer<V>,
        each: &mut dyn FnMut(PartitionChunk) -> Result<()>,
    ) -> Result<()> {
        self.write_all()?;
        self.store.pack(serializer, each)
    }

    fn remove(&mut self, id: &V::Id) -> Result<bool> {
        let Some(slot) = self.shelf.find(id) else { return self.store.remove(id) };
        if !matches!(self.shelf.unwritten(slot), Some((_, SyncState::New))) {
            self.store.remove(id)?;
        }
        self.shelf.clear(slot);
        Ok(true)
    }

    fn len(&self) -> u64 {
        self.store.len() + self.shelf.new_vertices()
    }

    fn sync(&mut self) -> Result<()> {
        self.write_all()?;
        self.store.sync()
    }

    /// Evicts vertices until the budget has `bytes` free bytes.
    fn leave_free(&mut self, bytes: u64) -> Result<()> {
        while self.budget.free() < bytes && self.shelf.len() > 0 {
            self.evict()?;
        }
        self.store.leave_free(bytes)
    }

    fn stats(&self) -> Result<StoreStats> {
        let mut stats = self.store.stats()?;
        stats.vertices = self.len();
        stats.memory_bytes += self.shelf.bytes();
        stats.caches.insert(0, self.stats);
        Ok(stats)
    }
}

#[cfg(test)]
mod tests;
