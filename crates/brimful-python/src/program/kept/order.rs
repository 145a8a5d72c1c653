//! The vertices of a store in the order of their external ids, sorted on disk.
//!
//! Invariant: memory does not grow with the vertices of the graph; that of created vertices is
//! counted.

use std::sync::Arc;

use brimful::execution::Error;
use brimful::execution::from_graph::{Partitions, of_one_run};
use brimful::store::scratch::ScratchArray;
use brimful::store::sorter::{self, Record, Sorter};
use brimful::store::{Budget, DiskFolder, Job, Resources};
use brimful::vertices::{Growth, VertexStore as _};
use bytemuck::{Pod, Zeroable};

use super::{ProgramVertex, StoreChoice};
use crate::program::ids::{Ids, try_partition_point};

/// Memory of a sort: more saves little, as two words of a vertex are sorted.
const SORT_BYTES: u64 = 64 << 20;
/// Ranks in a window of the file. A reader passes windows over.
const WINDOW: usize = 8192;

/// A vertex of the graph: the order key of its id, and its rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
struct KeyAndRank([u64; 2]);

impl Record for KeyAndRank {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        self.0[0]
    }
}

/// The ranks of the vertices that exist, in the order of their external ids.
pub(super) struct Order {
    /// Ranks of vertices of the graph, in a nameless file.
    of_graph: ScratchArray<u64>,
    /// Positions and ranks of created vertices.
    created: Vec<(usize, u64)>,
    _memory: Growth,
}

impl Order {
    /// Sorts the vertices of `partitions`, in a folder beside them.
    pub(super) fn new(
        partitions: &mut Partitions<ProgramVertex>,
        ids: &Ids,
        choice: &StoreChoice,
        budget: &Arc<Budget>,
    ) -> Result<Self, Error> {
        const PURPOSE: &str = "to order the vertices of a store";
        let least = sorter::minimum_bytes(1, size_of::<KeyAndRank>());
        let bytes = SORT_BYTES.min(budget.free() / 2).max(least);
        let _sorting = budget.reserve(bytes, PURPOSE)?;
        let mut memory = Growth::new(budget, PURPOSE)?;
        let resources = Resources::new(Arc::clone(budget), Arc::new(Job::new()), Some(1))?;
        let (_, folders) = of_one_run(&choice.url, &choice.schemes)?;
        let [folder, ..] = &folders[..] else {
            return Err(Error::Internal("the vertices in order are in no folder".into()));
        };
        let folder = DiskFolder::new(folder.path());
        let sorter = Sorter::new(&folder, bytes, 1, &resources.job)?;
        let (mut writer, mut created, mut count) = (sorter.writer(), Vec::new(), 0);
        for store in partitions.stores() {
            store.for_each(&mut |vertex| {
                let rank = *vertex.id();
                match ids.order_key(rank)? {
                    Some(key) => {
                        count += 1;
                        writer.push(KeyAndRank([key, rank]))?;
                    }
                    None => {
                        memory.take(size_of::<(usize, u64)>() as u64)?;
                        created.push((0, rank));
                    }
                }
                Ok(())
            })?;
        }
        writer.finish()?;
        let mut of_graph = ScratchArray::paged(count, WINDOW, &folder, &resources.job)?;
        let (windows, mut end, mut ranks) = (of_graph.windows(), 0, Vec::new());
        sorter.merge(&resources.pool, |batch: &[KeyAndRank]| {
            for part in batch.chunks(WINDOW) {
                ranks.clear();
                ranks.extend(part.iter().map(|place| place.0[1]));
                windows.write(end, &ranks)?;
                end += ranks.len();
            }
            Ok::<(), Error>(())
        })?;
        let mut own = Self { of_graph, created, _memory: memory };
        own.place_created(ids)?;
        Ok(own)
    }

    /// Gives created vertices their positions among those of the graph.
    fn place_created(&mut self, ids: &Ids) -> Result<(), Error> {
        ids.sort_created(&mut self.created);
        let (mut first, before) = (0, &self.of_graph);
        for (number, (position, rank)) in self.created.iter_mut().enumerate() {
            first = try_partition_point(first..before.len(), |at| {
                let mut other = [0];
                before.read(at, &mut other)?;
                ids.is_before(other[0], *rank)
            })?;
            *position = first + number;
        }
        Ok(())
    }

    /// The ranks of at most `count` vertices from position `start` on.
    pub(super) fn ranks(&self, start: usize, count: usize) -> Result<Vec<u64>, Error> {
        let len = self.of_graph.len() + self.created.len();
        let (start, end) = (start.min(len), start.saturating_add(count).min(len));
        let of = |position: usize| self.created.partition_point(|(own, _)| *own < position);
        let created = &self.created[of(start)..of(end)];
        let mut ranks = vec![0; end - start - created.len()];
        self.of_graph.read(start - of(start), &mut ranks)?;
        if created.is_empty() {
            return Ok(ranks);
        }
        let (mut of_graph, mut created) = (ranks.into_iter(), created.iter().peekable());
        let next = |position| match created.next_if(|(own, _)| *own == position) {
            Some((_, rank)) => Some(*rank),
            None => of_graph.next(),
        };
        Ok((start..end).filter_map(next).collect())
    }
}
