//! Live objects: the fastest store, and the largest.
//!
//! Vertices lie in one array, an index says where. Removing one moves the last into its place.

use std::hash::BuildHasher;
use std::sync::Arc;

use brimful_store::Budget;
use hashbrown::{DefaultHashBuilder, HashTable};

use crate::error::Result;
use crate::growth::Growth;
use crate::store::{Borrower, Loan, StoreStats, VertexStore};
use crate::vertex::Stored;

/// Vertices as live objects.
#[derive(Debug)]
pub struct MemoryStore<V> {
    vertices: Vec<V>,
    index: HashTable<usize>,
    hasher: DefaultHashBuilder,
    growth: Growth,
}

impl<V: Stored> MemoryStore<V> {
    /// An empty store within `budget`.
    pub fn new(budget: &Arc<Budget>) -> Result<Self> {
        Ok(Self {
            vertices: Vec::new(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            growth: Growth::new(budget, "for vertices as live objects")?,
        })
    }

    #[inline]
    fn find(&self, id: &V::Id) -> Option<usize> {
        let vertices = &self.vertices;
        self.index.find(self.hasher.hash_one(id), |at| vertices[*at].id() == id).copied()
    }

    fn push(&mut self, vertex: V) -> Result<()> {
        self.growth.take((size_of::<V>() + vertex.heap_bytes()) as u64)?;
        let hash = self.hasher.hash_one(vertex.id());
        let (vertices, hasher) = (&self.vertices, &self.hasher);
        self.index.insert_unique(hash, vertices.len(), |at| hasher.hash_one(vertices[*at].id()));
        self.vertices.push(vertex);
        Ok(())
    }
}

impl<V: Stored> VertexStore<V> for MemoryStore<V> {
    fn insert(&mut self, vertex: V) -> Result<bool> {
        let is_new = self.find(vertex.id()).is_none();
        if is_new {
            self.push(vertex)?;
        }
        Ok(is_new)
    }

    fn put(&mut self, vertex: V) -> Result<()> {
        match self.find(vertex.id()) {
            Some(at) => self.vertices[at] = vertex,
            None => self.push(vertex)?,
        }
        Ok(())
    }

    #[inline]
    fn lend(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        let Some(at) = self.find(id) else {
            return Ok(false);
        };
        borrower(&mut Loan::new(&mut self.vertices[at]))?;
        Ok(true)
    }

    #[inline]
    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()> {
        self.vertices.iter_mut().try_for_each(|vertex| borrower(&mut Loan::new(vertex)))
    }

    fn remove(&mut self, id: &V::Id) -> Result<bool> {
        let vertices = &self.vertices;
        let hash = self.hasher.hash_one(id);
        let Ok(entry) = self.index.find_entry(hash, |at| vertices[*at].id() == id) else {
            return Ok(false);
        };
        let (at, _) = entry.remove();
        let removed = self.vertices.swap_remove(at);
        if let Some(moved) = self.vertices.get(at) {
            let last = self.vertices.len();
            let hash = self.hasher.hash_one(moved.id());
            if let Some(place) = self.index.find_mut(hash, |known| *known == last) {
                *place = at;
            }
        }
        self.growth.give((size_of::<V>() + removed.heap_bytes()) as u64);
        Ok(true)
    }

    fn len(&self) -> u64 {
        self.vertices.len() as u64
    }

    fn sync(&mut self) -> Result<()> {
        Ok(())
    }

    fn stats(&self) -> Result<StoreStats> {
        let vertices = self.len();
        Ok(StoreStats { vertices, memory_bytes: self.growth.used(), ..StoreStats::default() })
    }
}
