//! Stores of vertices by id, as the execution uses them.
//!
//! A store belongs to one partition, which belongs to one worker, so there are no locks. A vertex
//! is lent, never moved out: the store writes it back if the borrower changed it. No update can
//! therefore be forgotten, and lending returns errors of writing.

pub mod partition_chunk;

use std::ops::{Deref, DerefMut};

pub use brimful_store::CacheStats;

use crate::error::{Error, Result};
use crate::serializer::Serializer;
use crate::vertex::Stored;
use partition_chunk::PartitionChunk;

/// A vertex on loan. Borrowing it mutably marks it as changed.
#[derive(Debug)]
pub struct Loan<'a, V> {
    vertex: &'a mut V,
    is_changed: bool,
}

impl<'a, V> Loan<'a, V> {
    /// Lends `vertex`; for authors of stores.
    #[inline]
    pub fn new(vertex: &'a mut V) -> Self {
        Self { vertex, is_changed: false }
    }

    /// True if the vertex was borrowed for writing.
    #[inline]
    pub fn is_changed(&self) -> bool {
        self.is_changed
    }
}

impl<V> Deref for Loan<'_, V> {
    type Target = V;
    #[inline]
    fn deref(&self) -> &V {
        self.vertex
    }
}

impl<V> DerefMut for Loan<'_, V> {
    #[inline]
    fn deref_mut(&mut self) -> &mut V {
        self.is_changed = true;
        self.vertex
    }
}

/// Checks that a vertex still has its `id` after a loan.
#[inline]
pub(crate) fn keeps_id<V: Stored>(id: &V::Id, vertex: &V) -> Result<()> {
    let found = vertex.id();
    if found == id {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "vertex {id} came back from its loan as {found}; ids never change, insert a new vertex \
         instead"
    )))
}

/// The borrower of a vertex. If it fails, the loan ends with its error and the change is not
/// written; a store of live objects keeps the changed vertex.
pub type Borrower<'f, V> = dyn FnMut(&mut Loan<'_, V>) -> Result<()> + 'f;

/// Vertices by id.
pub trait VertexStore<V: Stored>: Send {
    /// Adds a vertex; false, without effect, if its id exists.
    fn insert(&mut self, vertex: V) -> Result<bool>;

    /// Adds vertices in bulk, the first of each id; returns the number skipped.
    ///
    /// # Errors
    /// After an error, some of the vertices are in the store.
    fn load(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<u64> {
        let mut duplicates = 0;
        for vertex in vertices {
            duplicates += u64::from(!self.insert(vertex)?);
        }
        Ok(duplicates)
    }

    /// Adds or replaces a vertex.
    fn put(&mut self, vertex: &V) -> Result<()>;

    /// Replaces a vertex that exists.
    fn replace(&mut self, vertex: &V) -> Result<()> {
        self.put(vertex)
    }

    /// Adds a vertex whose id is new.
    fn add(&mut self, vertex: &V) -> Result<()> {
        self.put(vertex)
    }

    /// The number of vertices that a caller should announce at a time; 0 if the store gains
    /// nothing.
    fn lookahead(&self) -> usize {
        0
    }

    /// Announces distinct vertices that are lent next, by their serialized ids.
    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        let _ = keys;
        Ok(())
    }

    /// Lends the vertex `id` and writes it back if it was changed; false if it does not exist.
    fn lend(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool>;

    /// Lends a vertex to a borrower that neither reads nor changes its edges: they may be missing.
    ///
    /// # Errors
    /// [`Error::Usage`] if missing edges were changed.
    fn lend_without_edges(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        self.lend(id, borrower)
    }

    /// Lends every vertex once, in any order.
    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()>;

    /// Lends every vertex once, in any order, except those for which `is_left_out` returns true.
    fn for_each_except(
        &mut self,
        is_left_out: &dyn Fn(&V::Id) -> bool,
        borrower: &mut Borrower<'_, V>,
    ) -> Result<()> {
        self.for_each(&mut |vertex| match is_left_out(vertex.id()) {
            true => Ok(()),
            false => borrower(vertex),
        })
    }

    /// Packs every vertex into chunks with `serializer`; [`partition_chunk::unpack`] reads them.
    fn pack(
        &mut self,
        serializer: &mut dyn Serializer<V>,
        each: &mut dyn FnMut(PartitionChunk) -> Result<()>,
    ) -> Result<()> {
        partition_chunk::pack(self, serializer, each)
    }

    /// Removes a vertex; false if it does not exist.
    fn remove(&mut self, id: &V::Id) -> Result<bool>;

    /// Number of vertices.
    fn len(&self) -> u64;

    /// True if there is no vertex.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Writes all changes to the store below, and makes them as durable as that store can.
    fn sync(&mut self) -> Result<()>;

    /// Releases memory that the store does not need, until the budget has `bytes` free bytes.
    fn leave_free(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// Figures of the store.
    fn stats(&self) -> Result<StoreStats>;
}

/// Figures of a store.
#[derive(Debug, Clone, Default, PartialEq)]
#[non_exhaustive]
pub struct StoreStats {
    /// Vertices.
    pub vertices: u64,
    /// Bytes of memory, including indexes and unused space; for a store on disk, the limit for its
    /// pages.
    pub memory_bytes: u64,
    /// Bytes on disk.
    pub disk_bytes: u64,
    /// True if it reads or writes bytes that the traffic of the job does not count.
    pub has_uncounted_bytes: bool,
    /// Vertices read from records, and written to them, since the store was opened.
    pub reads: u64,
    /// See [`StoreStats::reads`].
    pub writes: u64,
    /// The caches, the outermost first.
    pub caches: Vec<CacheStats>,
}

impl<V: Stored, T: VertexStore<V> + ?Sized> VertexStore<V> for Box<T> {
    fn insert(&mut self, vertex: V) -> Result<bool> {
        (**self).insert(vertex)
    }
    fn load(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<u64> {
        (**self).load(vertices)
    }
    fn put(&mut self, vertex: &V) -> Result<()> {
        (**self).put(vertex)
    }
    fn replace(&mut self, vertex: &V) -> Result<()> {
        (**self).replace(vertex)
    }
    fn add(&mut self, vertex: &V) -> Result<()> {
        (**self).add(vertex)
    }
    fn lookahead(&self) -> usize {
        (**self).lookahead()
    }
    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        (**self).prefetch(keys)
    }
    fn lend(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        (**self).lend(id, borrower)
    }
    fn lend_without_edges(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        (**self).lend_without_edges(id, borrower)
    }
    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()> {
        (**self).for_each(borrower)
    }
    fn for_each_except(
        &mut self,
        is_left_out: &dyn Fn(&V::Id) -> bool,
        borrower: &mut Borrower<'_, V>,
    ) -> Result<()> {
        (**self).for_each_except(is_left_out, borrower)
    }
    fn pack(
        &mut self,
        serializer: &mut dyn Serializer<V>,
        each: &mut dyn FnMut(PartitionChunk) -> Result<()>,
    ) -> Result<()> {
        (**self).pack(serializer, each)
    }
    fn remove(&mut self, id: &V::Id) -> Result<bool> {
        (**self).remove(id)
    }
    fn len(&self) -> u64 {
        (**self).len()
    }
    fn sync(&mut self) -> Result<()> {
        (**self).sync()
    }
    fn leave_free(&mut self, bytes: u64) -> Result<()> {
        (**self).leave_free(bytes)
    }
    fn stats(&self) -> Result<StoreStats> {
        (**self).stats()
    }
}
