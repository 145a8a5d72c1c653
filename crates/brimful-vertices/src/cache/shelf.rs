//! The cached vertices in their slots, each compared with the store below: clean, dirty or new.

use std::hash::BuildHasher;

use brimful_store::{ErrorKind, Reservation};
use hashbrown::DefaultHashBuilder;

use super::{CacheMemory, EvictionPolicy};
use crate::error::Result;
use crate::growth::Growth;
use crate::index::PositionIndex;
use crate::memory::lend_live;
use crate::store::{Borrower, keeps_id};
use crate::vertex::Stored;

const PURPOSE: &str = "to cache vertices";
const RECORDS: &str = "to hold the records of cached vertices";

/// A cached vertex, compared with the store below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SyncState {
    /// The store below has the same contents.
    Clean,
    /// The store below has older contents.
    Dirty,
    /// The store below does not have the vertex.
    New,
}

#[derive(Debug)]
struct CachedVertex<V> {
    vertex: V,
    state: SyncState,
    /// Bytes that are reserved for its record.
    record_bytes: u64,
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
    max_bytes: u64,
    new_vertices: u64,
    /// Memory for the records of new vertices, if the store below takes it of the same budget. It
    /// has no spare bytes, which the store would miss.
    records: Option<Reservation>,
}

/// Approximate bytes of the record of a vertex of the given bytes on the heap, with its key and its
/// place in an index. Text formats take a byte more for each number.
fn record_bytes(heap_bytes: u64) -> u64 {
    heap_bytes / 8 * 9 + 96
}

impl<V: Stored, P: EvictionPolicy<V>> Shelf<V, P> {
    /// No vertices yet, and never more than `max_bytes` of them.
    pub(super) fn new(policy: P, memory: CacheMemory<'_>, max_bytes: u64) -> Result<Self> {
        let budget = memory.budget;
        let records = || budget.reserve(0, RECORDS);
        Ok(Self {
            records: memory.is_of_store.then(records).transpose()?,
            policy,
            slots: Vec::new(),
            free: Vec::new(),
            index: PositionIndex::new(budget, PURPOSE)?,
            hasher: DefaultHashBuilder::default(),
            growth: Growth::new(budget, PURPOSE)?,
            max_bytes,
            new_vertices: 0,
        })
    }

    pub(super) fn len(&self) -> usize {
        self.index.len()
    }

    /// Number of vertices that the store below does not have.
    pub(super) fn new_vertices(&self) -> u64 {
        self.new_vertices
    }

    pub(super) fn slots(&self) -> usize {
        self.slots.len()
    }

    pub(super) fn bytes(&self) -> u64 {
        self.growth.used() + self.index.bytes()
    }

    #[inline]
    pub(super) fn find(&self, id: &V::Id) -> Option<usize> {
        let has_id = |slot: u64| {
            self.slots[slot as usize].as_ref().is_some_and(|entry| entry.vertex.id() == id)
        };
        self.index.find(self.hasher.hash_one(id), has_id).map(|slot| slot as usize)
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
        let before = entry.state;
        entry.state = if before == SyncState::New { before } else { SyncState::Dirty };
        let is_changed = lend_live(&mut entry.vertex, &mut self.growth, borrower)?;
        if !is_changed {
            entry.state = before;
        }
        let kept = if is_changed { keeps_id(id, &entry.vertex) } else { Ok(()) };
        if kept.is_err() {
            // The vertex must never be written: its new id may belong to another vertex.
            self.empty(self.hasher.hash_one(id), slot);
        }
        kept
    }

    /// Lends all vertices except those for which `is_left_out` returns true; returns their number.
    pub(super) fn lend_all(
        &mut self,
        is_left_out: &dyn Fn(&V::Id) -> bool,
        borrower: &mut Borrower<'_, V>,
    ) -> Result<u64> {
        let mut lent = 0;
        for slot in 0..self.slots.len() {
            let Some(entry) = &self.slots[slot] else { continue };
            let id = entry.vertex.id().clone();
            if !is_left_out(&id) {
                self.lend(&id, slot, borrower)?;
                lent += 1;
            }
        }
        Ok(lent)
    }

    /// The vertex in `slot`, if it is not the same in the store below.
    pub(super) fn unwritten(&self, slot: usize) -> Option<(&V, SyncState)> {
        let entry = self.slots[slot].as_ref().filter(|entry| entry.state != SyncState::Clean);
        entry.map(|entry| (&entry.vertex, entry.state))
    }

    /// Releases the memory for the record of a new vertex, which is written next.
    pub(super) fn release_record(&mut self, slot: usize) {
        if let (Some(entry), Some(records)) = (&mut self.slots[slot], &mut self.records) {
            records.shrink(records.bytes() - std::mem::take(&mut entry.record_bytes));
        }
    }

    /// Marks the vertex in `slot` as clean.
    pub(super) fn mark_clean(&mut self, slot: usize) {
        if let Some(entry) = &mut self.slots[slot] {
            self.new_vertices -= u64::from(entry.state == SyncState::New);
            entry.state = SyncState::Clean;
        }
    }

    /// Removes the vertex from `slot`.
    pub(super) fn clear(&mut self, slot: usize) {
        if let Some(entry) = &self.slots[slot] {
            self.empty(self.hasher.hash_one(entry.vertex.id()), slot);
        }
    }

    /// Empties `slot`, whose entry in the index has the hash `hash`.
    fn empty(&mut self, hash: u64, slot: usize) {
        self.release_record(slot);
        self.index.remove(hash, |place| place == slot as u64);
        if let Some(entry) = self.slots[slot].take() {
            self.growth.give(entry.vertex.heap_bytes() as u64);
            self.new_vertices -= u64::from(entry.state == SyncState::New);
            self.free.push(slot);
            self.policy.left(slot);
        }
    }

    pub(super) fn choose(&mut self, out: &mut Vec<usize>) {
        self.policy.choose(out);
    }

    /// Reserves memory for one more vertex, which is placed next; false if there is none.
    pub(super) fn reserve_for(&mut self, vertex: &V, state: SyncState) -> Result<bool> {
        match self.try_reserve(vertex.heap_bytes() as u64, state) {
            Err(error) if error.kind() == ErrorKind::Budget => Ok(false),
            done => done,
        }
    }

    fn try_reserve(&mut self, heap_bytes: u64, state: SyncState) -> Result<bool> {
        let Self { slots, index, hasher, growth, free, max_bytes, records, .. } = self;
        // A slot, its number in the list of free ones, and the policy's data for it.
        let each = (size_of::<Option<CachedVertex<V>>>() + 4 * size_of::<usize>()) as u64;
        let old = slots.capacity();
        let is_full = free.is_empty() && slots.len() == old;
        let more = if is_full { old / 4 + 16 } else { 0 };
        if growth.used() + index.bytes() + more as u64 * each + heap_bytes > *max_bytes {
            return Ok(false);
        }
        let rehash = |slot: u64| {
            slots[slot as usize].as_ref().map_or(0, |entry| hasher.hash_one(entry.vertex.id()))
        };
        index.reserve(1, rehash)?;
        if is_full {
            growth.take((old + more) as u64 * each)?;
            slots.reserve_exact(more);
            growth.give(old as u64 * each);
        }
        growth.take(heap_bytes)?;
        if let Some(records) = records.as_mut().filter(|_| state == SyncState::New) {
            // Without the record, the vertex has no place either.
            let bytes = records.bytes() + record_bytes(heap_bytes);
            records.resize(bytes, RECORDS).inspect_err(|_| growth.give(heap_bytes))?;
        }
        Ok(true)
    }

    /// Places a vertex, to which `state` applies; returns its slot.
    ///
    /// # Errors
    /// Errors of a score function of the user; then the memory of the vertex is given back.
    pub(super) fn place(&mut self, vertex: V, state: SyncState) -> Result<usize> {
        let slot = self.free.last().copied().unwrap_or(self.slots.len());
        let record_bytes = match (state, &self.records) {
            (SyncState::New, Some(_)) => record_bytes(vertex.heap_bytes() as u64),
            _ => 0,
        };
        if let Err(error) = self.policy.admitted(slot, &vertex) {
            self.growth.give(vertex.heap_bytes() as u64);
            if let Some(records) = &mut self.records {
                records.shrink(records.bytes() - record_bytes);
            }
            return Err(error);
        }
        self.free.pop();
        self.index.insert(self.hasher.hash_one(vertex.id()), slot as u64);
        self.new_vertices += u64::from(state == SyncState::New);
        let entry = Some(CachedVertex { vertex, state, record_bytes });
        match self.slots.get_mut(slot) {
            Some(place) => *place = entry,
            None => self.slots.push(entry),
        }
        Ok(slot)
    }
}
