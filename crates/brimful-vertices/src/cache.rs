//! Caches over any store: live vertices, so that those in use are neither read nor written.
//!
//! A policy chooses the evictions: [`Lru`] evicts the least recently used vertex, [`Score`] all
//! below the average score at once. (*Making Signal/Collect Scale*, section 3.4. Its LRU cache
//! admitted no vertices on reads, and its score cache lost updates.)
//!
//! Invariants: every cached vertex is in the store below; the cached one is newer if it is dirty,
//! else the same. A vertex is evicted only after it was written, so that an error of writing loses
//! nothing.

mod choice;
mod lru;
mod score;
mod shelf;

use std::sync::Arc;

use brimful_store::Budget;

pub use choice::Choice;
pub use lru::Lru;
pub use score::Score;
use shelf::Shelf;

use crate::error::{Error, Result};
use crate::field::Field;
use crate::serializer::Serializer;
use crate::store::partition_chunk::PartitionChunk;
use crate::store::{Borrower, CacheStats, StoreStats, VertexStore};
use crate::vertex::Stored;

/// The policy of evictions. Slots are numbered from 0; each holds at most one vertex.
pub trait EvictionPolicy: Send {
    /// A new vertex is in this slot.
    fn admitted(&mut self, slot: usize);
    /// The vertex in this slot was lent.
    fn used(&mut self, slot: usize);
    /// The slot is now empty.
    fn left(&mut self, slot: usize);
    /// Chooses the evictions from a full cache: at least one slot, unless all are empty.
    fn choose(&mut self, out: &mut Vec<usize>);
}

/// A cache of at most `capacity` vertices over a store.
#[derive(Debug)]
pub struct Cache<T, V, P> {
    store: T,
    shelf: Shelf<V, P>,
    capacity: usize,
    /// Slots that are being evicted.
    leaving: Vec<usize>,
    stats: CacheStats,
}

impl<T: VertexStore<V>, V: Stored, P: EvictionPolicy> Cache<T, V, P> {
    /// An empty cache over `store` of at most `capacity` vertices, or fewer if `budget` is short.
    ///
    /// # Errors
    /// [`Error::Usage`] for a capacity of 0.
    pub fn new(store: T, capacity: usize, policy: P, budget: &Arc<Budget>) -> Result<Self> {
        if capacity == 0 {
            let what = "the cache size must be at least 1";
            return Err(Error::Usage(what.to_owned()));
        }
        let shelf = Shelf::new(policy, budget)?;
        Ok(Self { store, shelf, capacity, leaving: Vec::new(), stats: CacheStats::default() })
    }

    /// True if the vertex is cached.
    #[cfg(test)]
    fn holds(&self, id: &V::Id) -> bool {
        self.shelf.find(id).is_some()
    }

    /// Writes the vertex in `slot`, if it is newer than in the store below.
    fn write(&mut self, slot: usize) -> Result<()> {
        if let Some(vertex) = self.shelf.dirty(slot) {
            self.store.replace(vertex)?;
            self.shelf.is_clean(slot);
            self.stats.written += 1;
        }
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

    /// Caches a vertex that is in the store below; returns its slot.
    fn admit(&mut self, vertex: V) -> Result<usize> {
        if self.shelf.len() >= self.capacity {
            self.evict()?;
        }
        // If the budget is short, the cache stays below its capacity.
        while let Err(refused) = self.shelf.evict_for(&vertex) {
            if self.shelf.len() == 0 {
                return Err(refused);
            }
            self.evict()?;
        }
        Ok(self.shelf.place(vertex))
    }
}

impl<T: VertexStore<V>, V: Stored, P: EvictionPolicy> VertexStore<V> for Cache<T, V, P> {
    fn insert(&mut self, vertex: V) -> Result<bool> {
        if self.shelf.find(vertex.id()).is_some() || !self.store.insert(vertex.clone())? {
            return Ok(false);
        }
        self.admit(vertex)?;
        Ok(true)
    }

    /// Bypasses the cache, whose capacity a bulk load would exceed.
    fn load(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<u64> {
        self.store.load(vertices)
    }

    fn put(&mut self, vertex: &V) -> Result<()> {
        match self.shelf.find(vertex.id()) {
            Some(slot) => self.shelf.lend(vertex.id(), slot, &mut |loan| {
                (**loan).clone_from(vertex);
                Ok(())
            }),
            None => {
                self.store.put(vertex)?;
                self.admit(vertex.clone()).map(drop)
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
        let slot = self.admit(vertex)?;
        self.shelf.lend(id, slot, borrower)?;
        Ok(true)
    }

    /// In the order of the store below, bypassing the cache, which would otherwise end up with the
    /// last vertices.
    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()> {
        self.write_all()?;
        let Self { store, shelf, .. } = self;
        store.for_each(&mut |vertex| {
            let done = borrower(vertex);
            // The cached copy of a changed vertex is stale.
            if vertex.is_changed() {
                shelf.find(vertex.id()).into_iter().for_each(|slot| shelf.clear(slot));
            }
            done
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
        let is_there = self.store.remove(id)?;
        if let Some(slot) = self.shelf.find(id) {
            self.shelf.clear(slot);
        }
        Ok(is_there)
    }

    fn len(&self) -> u64 {
        self.store.len()
    }

    fn sync(&mut self) -> Result<()> {
        self.write_all()?;
        self.store.sync()
    }

    fn stats(&self) -> Result<StoreStats> {
        let mut stats = self.store.stats()?;
        stats.memory_bytes += self.shelf.bytes();
        stats.caches.insert(0, self.stats);
        Ok(stats)
    }
}

#[cfg(test)]
mod tests;
