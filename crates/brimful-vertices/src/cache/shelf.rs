//! The cached vertices in their slots, with marks for those that are newer than in the store below.

use std::hash::BuildHasher;
use std::sync::Arc;

use brimful_store::Budget;
use hashbrown::DefaultHashBuilder;

use super::EvictionPolicy;
use crate::error::Result;
use crate::growth::Growth;
use crate::index::PositionIndex;
use crate::memory::lend_live;
use crate::store::{Borrower, keeps_id};
use crate::vertex::Stored;

const PURPOSE: &str = "to cache vertices";

#[derive(Debug)]
struct CachedVertex<V> {
    vertex: V,
    is_dirty: bool,
}

/// Slots, each with at most one vertex.
#[derive(Debug)]
pub(super) struct Shelf<V, P> {
    policy: P,
    slots: Vec<Option<CachedVertex<V>>>,
    free: Vec<usize>,
    index: PositionIndex,
    hasher: DefaultHashBuilder,
    growth: Growth,
}

impl<V: Stored, P: EvictionPolicy> Shelf<V, P> {
    pub(super) fn new(policy: P, budget: &Arc<Budget>) -> Result<Self> {
        Ok(Self {
            policy,
            slots: Vec::new(),
            free: Vec::new(),
            index: PositionIndex::new(budget, PURPOSE)?,
            hasher: DefaultHashBuilder::default(),
            growth: Growth::new(budget, PURPOSE)?,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.growth.used() + self.index.bytes()
    }

    #[inline]
    pub(super) fn find(&self, id: &V::Id) -> Option<usize> {
        let is_it = |slot: u64| matches!(&self.slots[slot as usize], Some(entry) if entry.vertex.id() == id);
        self.index.find(self.hasher.hash_one(id), is_it).map(|slot| slot as usize)
    }

    /// Lends vertex `id`, which is in `slot`.
    #[inline]
    pub(super) fn lend(
        &mut self,
        id: &V::Id,
        slot: usize,
        borrower: &mut Borrower<'_, V>,
    ) -> Result<()> {
        let Some(entry) = &mut self.slots[slot] else {
            return Ok(());
        };
        self.policy.used(slot);
        // Dirty until the loan ends well: a borrower that fails or panics may have changed the
        // vertex.
        let was_dirty = std::mem::replace(&mut entry.is_dirty, true);
        let is_changed = lend_live(&mut entry.vertex, &mut self.growth, borrower)?;
        entry.is_dirty = was_dirty || is_changed;
        let kept = if is_changed { keeps_id(id, &entry.vertex) } else { Ok(()) };
        if kept.is_err() {
            // It must never be written: its new id may belong to another vertex.
            self.empty(self.hasher.hash_one(id), slot);
        }
        kept
    }

    /// The vertex in `slot`, if it is newer than in the store below.
    pub(super) fn dirty(&self, slot: usize) -> Option<&V> {
        self.slots[slot].as_ref().filter(|entry| entry.is_dirty).map(|entry| &entry.vertex)
    }

    /// Marks the vertex in `slot` as the same in the store below.
    pub(super) fn is_clean(&mut self, slot: usize) {
        self.slots[slot].iter_mut().for_each(|entry| entry.is_dirty = false);
    }

    /// Removes the vertex from `slot`.
    pub(super) fn clear(&mut self, slot: usize) {
        if let Some(entry) = &self.slots[slot] {
            self.empty(self.hasher.hash_one(entry.vertex.id()), slot);
        }
    }

    /// Empties `slot`, whose entry in the index has the hash `hash`.
    fn empty(&mut self, hash: u64, slot: usize) {
        self.index.remove(hash, |place| place == slot as u64);
        if let Some(entry) = self.slots[slot].take() {
            self.growth.give(entry.vertex.heap_bytes() as u64);
            self.free.push(slot);
            self.policy.left(slot);
        }
    }

    /// Chooses slots to evict.
    pub(super) fn choose(&mut self, out: &mut Vec<usize>) {
        self.policy.choose(out);
    }

    /// Reserves memory for one more vertex, which is placed next.
    pub(super) fn evict_for(&mut self, vertex: &V) -> Result<()> {
        let Self { slots, index, hasher, growth, free, .. } = self;
        let rehash = |slot: u64| {
            slots[slot as usize].as_ref().map_or(0, |entry| hasher.hash_one(entry.vertex.id()))
        };
        index.reserve(1, rehash)?;
        let old = slots.capacity();
        if free.is_empty() && slots.len() == old {
            let more = old / 4 + 16;
            // A slot, its number in the list of free ones, and the policy's data for it.
            let each = (size_of::<Option<CachedVertex<V>>>() + 4 * size_of::<usize>()) as u64;
            growth.take((old + more) as u64 * each)?;
            slots.reserve_exact(more);
            growth.give(old as u64 * each);
        }
        growth.take(vertex.heap_bytes() as u64)
    }

    /// Places a vertex that is the same in the store below; returns its slot.
    pub(super) fn place(&mut self, vertex: V) -> usize {
        let slot = self.free.pop().unwrap_or(self.slots.len());
        self.index.insert(self.hasher.hash_one(vertex.id()), slot as u64);
        self.policy.admitted(slot);
        let entry = Some(CachedVertex { vertex, is_dirty: false });
        match self.slots.get_mut(slot) {
            Some(place) => *place = entry,
            None => self.slots.push(entry),
        }
        slot
    }
}
