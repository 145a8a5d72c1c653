//! The store of live objects: the fastest store, which takes the most memory.
//!
//! One array holds the vertices, with an index of positions. Removing a vertex moves the last one
//! to its position. The position of consecutive ids, as in a graph, follows from the id alone.

use std::hash::BuildHasher;
use std::sync::Arc;

use brimful_store::Budget;
use hashbrown::DefaultHashBuilder;

use crate::error::Result;
use crate::growth::Growth;
use crate::id::Id;
use crate::index::PositionIndex;
use crate::store::{Borrower, Loan, StoreStats, VertexStore, keeps_id};
use crate::vertex::Stored;

const PURPOSE: &str = "to hold the vertices as live objects";

/// Vertices as live objects.
#[derive(Debug)]
pub struct MemoryStore<V> {
    vertices: Vec<V>,
    index: PositionIndex,
    hasher: DefaultHashBuilder,
    growth: Growth,
}

impl<V: Stored> MemoryStore<V> {
    /// An empty store within `budget`.
    pub fn new(budget: &Arc<Budget>) -> Result<Self> {
        Ok(Self {
            vertices: Vec::new(),
            index: PositionIndex::new(budget, PURPOSE)?,
            hasher: DefaultHashBuilder::default(),
            growth: Growth::new(budget, PURPOSE)?,
        })
    }

    #[inline]
    fn find(&self, id: &V::Id) -> Option<usize> {
        self.find_by_number(id).or_else(|| self.find_by_hash(id))
    }

    /// The position of a vertex whose distance from the first one is that of their numbers. Ids
    /// that follow one another and are loaded in ascending order are all found so.
    #[inline]
    fn find_by_number(&self, id: &V::Id) -> Option<usize> {
        let first = self.vertices.first()?.id().number()?;
        let at = usize::try_from(id.number()?.checked_sub(first)?).ok()?;
        (self.vertices.get(at)?.id() == id).then_some(at)
    }

    fn find_by_hash(&self, id: &V::Id) -> Option<usize> {
        let has_id = |at: u64| self.vertices[at as usize].id() == id;
        self.index.find(self.hasher.hash_one(id), has_id).map(|at| at as usize)
    }

    fn push(&mut self, vertex: V) -> Result<()> {
        self.reserve(1)?;
        let Self { vertices, index, hasher, growth } = self;
        growth.take(vertex.heap_bytes() as u64)?;
        index.insert(hasher.hash_one(vertex.id()), vertices.len() as u64);
        vertices.push(vertex);
        Ok(())
    }

    /// Reserves memory for `more` vertices. The old array and the new one coexist for a moment.
    fn reserve(&mut self, more: usize) -> Result<()> {
        let Self { vertices, index, hasher, growth } = self;
        index.reserve(more, |at| hasher.hash_one(vertices[at as usize].id()))?;
        let (old, needed) = (vertices.capacity(), vertices.len() + more);
        if needed <= old {
            return Ok(());
        }
        let new = needed.max(old + old / 4 + 16);
        growth.take((new * size_of::<V>()) as u64)?;
        vertices.reserve_exact(new - vertices.len());
        growth.give((old * size_of::<V>()) as u64);
        Ok(())
    }
}

/// Lends a live object and accounts for its growth; true if it was changed.
#[inline]
pub(crate) fn lend_live<V: Stored>(
    vertex: &mut V,
    growth: &mut Growth,
    borrower: &mut Borrower<'_, V>,
) -> Result<bool> {
    let before = vertex.heap_bytes() as u64;
    let mut loan = Loan::new(vertex);
    let done = borrower(&mut loan);
    let is_changed = loan.is_changed();
    if is_changed {
        let after = vertex.heap_bytes() as u64;
        growth.give(before.saturating_sub(after));
        let more = growth.take(after.saturating_sub(before));
        done.and(more)?;
        return Ok(true);
    }
    done?;
    Ok(false)
}

impl<V: Stored> VertexStore<V> for MemoryStore<V> {
    fn insert(&mut self, vertex: V) -> Result<bool> {
        let is_new = self.find(vertex.id()).is_none();
        if is_new {
            self.push(vertex)?;
        }
        Ok(is_new)
    }

    fn load(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<u64> {
        self.reserve(vertices.size_hint().0)?;
        let mut duplicates = 0;
        for vertex in vertices {
            duplicates += u64::from(!self.insert(vertex)?);
        }
        Ok(duplicates)
    }

    fn put(&mut self, vertex: &V) -> Result<()> {
        match self.find(vertex.id()) {
            Some(at) => {
                lend_live(&mut self.vertices[at], &mut self.growth, &mut |loan| {
                    (**loan).clone_from(vertex);
                    Ok(())
                })?;
            }
            None => self.push(vertex.clone())?,
        }
        Ok(())
    }

    #[inline]
    fn lend(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        let Some(at) = self.find(id) else {
            return Ok(false);
        };
        if lend_live(&mut self.vertices[at], &mut self.growth, borrower)? {
            keeps_id(id, &self.vertices[at])?;
        }
        Ok(true)
    }

    #[inline]
    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()> {
        let Self { vertices, growth, .. } = self;
        vertices.iter_mut().try_for_each(|vertex| {
            let id = vertex.id().clone();
            if lend_live(vertex, growth, borrower)? { keeps_id(&id, vertex) } else { Ok(()) }
        })
    }

    fn remove(&mut self, id: &V::Id) -> Result<bool> {
        let Self { vertices, index, hasher, growth } = self;
        let hash = hasher.hash_one(id);
        let Some(at) = index.remove(hash, |at| vertices[at as usize].id() == id) else {
            return Ok(false);
        };
        let removed = vertices.swap_remove(at as usize);
        growth.give(removed.heap_bytes() as u64);
        if let Some(moved) = vertices.get(at as usize) {
            index.relocate(hasher.hash_one(moved.id()), vertices.len() as u64, at);
        }
        Ok(true)
    }

    fn len(&self) -> u64 {
        self.vertices.len() as u64
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Result<StoreStats> {
        let memory_bytes = self.growth.used() + self.index.bytes();
        Ok(StoreStats { vertices: self.len(), memory_bytes, ..StoreStats::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vertex::{Edges, Vertex};

    #[test]
    fn ids_that_follow_one_another_tell_their_positions() {
        let mut store = MemoryStore::new(&Budget::new(1 << 20, 0)).unwrap();
        for id in 10..20_u64 {
            assert!(store.insert(Vertex::<u64, u64>::new(id, id, Edges::default())).unwrap());
        }
        let by_number = |store: &MemoryStore<Vertex<u64, u64>>| -> Vec<u64> {
            (0..30).filter(|id| store.find_by_number(id).is_some()).collect()
        };
        assert_eq!(by_number(&store), Vec::from_iter(10..20));
        assert!(!store.insert(Vertex::new(15, 0, Edges::default())).unwrap());
        // The last vertex takes the place of a removed one, and is found by its hash.
        assert!(store.remove(&12).unwrap());
        assert_eq!(by_number(&store), [10, 11, 13, 14, 15, 16, 17, 18]);
        // With another first vertex, no position follows from an id.
        assert!(store.remove(&10).unwrap());
        assert!(store.insert(Vertex::new(7, 7, Edges::default())).unwrap());
        for id in 0..30 {
            let mut state = None;
            let mut read = |vertex: &mut Loan<'_, Vertex<u64, u64>>| {
                state = Some(vertex.state);
                Ok(())
            };
            let is_there = store.lend(&id, &mut read).unwrap();
            let expected = (id == 7 || (10..20).contains(&id)) && id != 10 && id != 12;
            assert_eq!((is_there, state), (expected, expected.then_some(id)), "{id}");
        }
    }
}
