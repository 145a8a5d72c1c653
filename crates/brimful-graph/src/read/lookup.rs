//! Look-ups: degrees, neighbors and edges of single vertices, and of many at once.
//!
//! `walk` reads the few blocks of an index that may hold a vertex; `recent` caches parts of the
//! directory, external ids, degrees and weights. The edges of a vertex are in the shards of all of
//! its targets, so a look-up costs a binary search and a block for each interval, until all edges
//! that its degree promises are found. Look-ups of in-neighbors do the same in the reverse index.
//! Invariant: besides the answer, memory is [`Lookup::MEMORY_BYTES`], or the size of one unit if
//! that is more, and 1 MiB for each thread.

mod arrays;
mod between;
mod nearby;
mod neighbor_reader;
mod recent;
mod walk;

use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brimful_store::wording::counted;
use brimful_store::{Job, Resources};

use crate::error::{Error, Result};
use crate::ids::ascending::{AscendingFile, BLOCK_NUMBERS, PackedBlock};
use crate::ids::external::{ExternalId, name_of_number};
use crate::read::graph::Graph;
use crate::read::index::Index;
use crate::read::name_cursor::{Labels, NameCursor};
pub use between::Between;
pub use nearby::vertices_by_distance;
pub use neighbor_reader::NeighborReader;

use arrays::{Nearby, NearbyBlock};
use recent::Recent;
use walk::{Blocks, Reach};

/// Vertices that are found between two checks for Ctrl-C.
const FOUND_AT_ONCE: usize = 1 << 12;
/// Vertices and edges for which a thread of its own is worth the start.
const THREAD_WORK: u64 = 1 << 13;

/// The direction of the edges of a vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// Edges that leave the vertex.
    Out,
    /// Edges that reach the vertex; in an undirected graph the same as `Out`.
    In,
}

impl Direction {
    /// The direction called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "out" => Ok(Self::Out),
            "in" => Ok(Self::In),
            _ => Err(Error::Usage(format!("there is no direction {name:?}; choose from: out, in"))),
        }
    }

    /// The index whose sources are the vertices in question.
    pub fn index(self) -> Index {
        match self {
            Self::Out => Index::In,
            Self::In => Index::Reverse,
        }
    }
}

/// Neighbors of a vertex: one entry per edge, ascending by external id, then by the bits of the
/// weight.
#[derive(Debug, Default, PartialEq)]
pub struct Neighbors {
    /// The bits of the external ids of the neighbors.
    pub ids: Vec<u64>,
    /// The weight of each edge; empty unless requested.
    pub weights: Vec<f64>,
}

/// An array with a number per vertex.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Array {
    Ids,
    DegreeSums,
}

/// Look-ups in one graph. Threads can share it.
#[derive(Debug)]
pub struct Lookup {
    graph: Arc<Graph>,
    forward: OnceLock<Blocks>,
    reverse: OnceLock<Blocks>,
    arrays: Recent<(Array, usize), PackedBlock>,
    names: Mutex<NameCursor>,
}

impl Lookup {
    /// The maximum bytes of the cache, besides one unit and [`NameCursor::MEMORY_BYTES`] for string
    /// ids.
    pub const MEMORY_BYTES: u64 = 64 << 20;
    /// The maximum bytes of the cache per index.
    const INDEX_BYTES: u64 = Self::MEMORY_BYTES / 4;

    /// Look-ups in `graph`; nothing is read before the first one.
    pub fn new(graph: Arc<Graph>) -> Self {
        let (forward, reverse) = (OnceLock::new(), OnceLock::new());
        let arrays = Recent::new(Self::MEMORY_BYTES - 2 * Self::INDEX_BYTES);
        Self { graph, forward, reverse, arrays, names: Mutex::default() }
    }

    /// The maximum memory, in bytes, of work that only finds vertices of `graph`.
    pub fn finding_bytes(graph: &Graph) -> u64 {
        let ids = graph.vertices().next_multiple_of(BLOCK_NUMBERS as u64) * 8;
        let names = graph.longest_name().map_or(0, |_| NameCursor::MEMORY_BYTES);
        // A block is unpacked to verify it, to look up many ids, and while it is read.
        let unpacked = 3 * 8 * BLOCK_NUMBERS as u64;
        ids.min(Self::MEMORY_BYTES - 2 * Self::INDEX_BYTES) + unpacked + names
    }

    /// The graph.
    pub fn graph(&self) -> &Arc<Graph> {
        &self.graph
    }

    /// The internal id of the vertex with external id `id`.
    ///
    /// # Errors
    /// [`Error::NoSuchVertex`], also if the graph's ids are of the other kind.
    pub fn find(&self, id: &ExternalId) -> Result<u64> {
        Ok(self.locate(id)?.0)
    }

    /// The internal ids of the vertices with these external ids.
    ///
    /// # Errors
    /// As [`Lookup::find`].
    pub fn find_all(&self, ids: &[ExternalId], job: &Job) -> Result<Vec<u64>> {
        let mut order: Vec<usize> = (0..ids.len()).collect();
        if self.graph.names().is_some() {
            // In their order, neighboring names are found in the same parts of memory.
            order.sort_by(|left, right| ids[*left].cmp(&ids[*right]));
        }
        let missing = |place: usize| Error::no_such_vertex(&ids[place], self.graph.id_type());
        let mut wanted = Vec::with_capacity(ids.len());
        for chunk in order.chunks(FOUND_AT_ONCE) {
            job.check()?;
            for &place in chunk {
                wanted.push((self.bits(&ids[place])?.ok_or_else(|| missing(place))?, place));
            }
        }
        wanted.sort_unstable();
        let mut vertices = vec![None; ids.len()];
        self.find_ascending(&wanted, &mut vertices, job)?;
        vertices
            .iter()
            .enumerate()
            .map(|(place, vertex)| vertex.ok_or_else(|| missing(place)))
            .collect()
    }

    /// Sets `vertices[place]` for each `(bits, place)` of `wanted`, which ascend, that is found.
    fn find_ascending(
        &self,
        wanted: &[(u64, usize)],
        vertices: &mut [Option<u64>],
        job: &Job,
    ) -> Result<()> {
        // Few ids are found faster one by one than by a pass over the table of blocks.
        let file = self.graph.ids_file().filter(|file| 16 * wanted.len() > file.blocks());
        let Some(file) = file else {
            for chunk in wanted.chunks(FOUND_AT_ONCE) {
                job.check()?;
                for &(bits, place) in chunk {
                    vertices[place] = self.find_bits(bits)?;
                }
            }
            return Ok(());
        };
        for index in 0..file.blocks() {
            let (first, last) = file.bounds(index);
            let begin = wanted.partition_point(|(bits, _)| *bits < first);
            let length = wanted[begin..].partition_point(|(bits, _)| *bits <= last);
            if length == 0 {
                continue;
            }
            job.check()?;
            let mut block = NearbyBlock::new(index, self.block(Array::Ids, file, index)?);
            for &(bits, place) in &wanted[begin..begin + length] {
                vertices[place] = vertices[place].or_else(|| block.find(bits));
            }
        }
        Ok(())
    }

    /// The internal id of the vertex with external id `id`, and the bits of the external id.
    ///
    /// # Errors
    /// As [`Lookup::find`].
    pub fn locate(&self, id: &ExternalId) -> Result<(u64, u64)> {
        let bits = self.bits(id)?;
        let found = bits.map_or(Ok(None), |bits| self.find_bits(bits))?;
        let missing = || Error::no_such_vertex(id, self.graph.id_type());
        found.zip(bits).ok_or_else(missing)
    }

    /// The bits of an external id; `None` if no vertex can have it.
    fn bits(&self, id: &ExternalId) -> Result<Option<u64>> {
        match (id, self.graph.names()) {
            (ExternalId::Number(number), None) => Ok(self.graph.id_type().bits(*number)),
            (ExternalId::Name(name), Some(file)) => self.names().find(file, name),
            (ExternalId::Number(number), Some(file)) => {
                self.names().find(file, &name_of_number(*number))
            }
            (ExternalId::Name(_), None) => Ok(None),
        }
    }

    fn find_bits(&self, bits: u64) -> Result<Option<u64>> {
        let Some(file) = self.graph.ids_file() else {
            return self.graph.find_bits(bits);
        };
        for index in file.candidates(bits) {
            let found = self.block(Array::Ids, file, index)?.find(bits);
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// The strings of the vertices with these bits of external ids.
    ///
    /// # Errors
    /// As [`NameCursor::labels`].
    pub fn labels(&self, ids: &[u64]) -> Result<Labels> {
        self.names().labels(&self.graph, ids)
    }

    fn names(&self) -> std::sync::MutexGuard<'_, NameCursor> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of edges of a vertex; see [`Lookup::degrees`].
    ///
    /// # Errors
    /// As [`Lookup::degrees`].
    pub fn degree(&self, vertex: u64, direction: Direction) -> Result<u64> {
        match self.known_degree(vertex, direction)? {
            Some(degree) => Ok(degree),
            None => Ok(self.counted(&[vertex], direction)?[0]),
        }
    }

    /// The number of edges of each of `vertices`, with multiplicity; a self-loop counts once.
    ///
    /// In-degrees of a directed graph are counted in the reverse index; other degrees are read.
    ///
    /// # Errors
    /// [`Error::MissingIndex`].
    pub fn degrees(&self, vertices: &[u64], direction: Direction) -> Result<Vec<u64>> {
        let degrees = vertices.iter().map(|vertex| self.known_degree(*vertex, direction));
        if let Some(degrees) = degrees.collect::<Result<Option<Vec<_>>>>()? {
            return Ok(degrees);
        }
        let mut distinct = vertices.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let counts = self.counted(&distinct, direction)?;
        let count = |vertex: &u64| counts[distinct.partition_point(|other| other < vertex)];
        Ok(vertices.iter().map(count).collect())
    }

    /// The number of edges of each of `vertices` in an index; `vertices` ascend and are distinct.
    fn counted(&self, vertices: &[u64], direction: Direction) -> Result<Vec<u64>> {
        let mut counts = vec![0; vertices.len()];
        self.blocks(direction)?.walk(vertices, Reach::Everywhere, false, |place, _, _| {
            counts[place] += 1;
            true
        })?;
        Ok(counts)
    }

    /// The degree, if it is on disk.
    fn known_degree(&self, vertex: u64, direction: Direction) -> Result<Option<u64>> {
        if vertex >= self.graph.connected() {
            return Ok(Some(0));
        }
        if direction == Direction::In && self.graph.description().directed {
            return Ok(None);
        }
        Ok(Some(self.degree_from(&mut Nearby::new(self, Array::DegreeSums), vertex)?))
    }

    /// The out-degree of a vertex with edges.
    fn degree_from(&self, sums: &mut Nearby<'_>, vertex: u64) -> Result<u64> {
        let before = vertex.checked_sub(1).map_or(Ok(0), |before| sums.of(before))?;
        sums.of(vertex)?.checked_sub(before).ok_or_else(|| {
            let file = self.graph.degree_sums();
            let problem = "the sums of degrees do not ascend";
            file.sealed().corrupt(file.block_of(vertex), problem).into()
        })
    }

    /// The neighbors of a vertex at the other ends of its edges in `direction`.
    ///
    /// # Errors
    /// [`Error::MissingIndex`]; [`Error::Usage`] if `weighted` is true but the edges have no
    /// weights.
    pub fn neighbors(
        &self,
        vertex: u64,
        direction: Direction,
        weighted: bool,
    ) -> Result<Neighbors> {
        let mut edges = Vec::new();
        self.collect(&[vertex], direction, weighted, |_, target, weight| {
            edges.push((target, weight))
        })?;
        let key = |bits: u64| self.graph.id_type().order_key(bits);
        edges.sort_by_key(|(bits, _)| key(*bits));
        let weights =
            if weighted { edges.iter().map(|(_, weight)| *weight).collect() } else { Vec::new() };
        Ok(Neighbors { ids: edges.into_iter().map(|(bits, _)| bits).collect(), weights })
    }

    /// True if an edge leads from `source` to `target`.
    pub fn has_edge(&self, source: u64, target: u64) -> Result<bool> {
        let mut found = false;
        if source.max(target) < self.graph.connected() {
            let reach = Reach::IntervalOf(target);
            self.blocks(Direction::Out)?.walk(&[source], reach, false, |_, other, _| {
                found |= other == target;
                !found
            })?;
        }
        Ok(found)
    }

    /// Calls `take(place, bits, weight)` for each edge of `vertices`, which ascend and are
    /// distinct: the vertex's place among them, and the bits of the other end's external id.
    fn collect(
        &self,
        vertices: &[u64],
        direction: Direction,
        weighted: bool,
        take: impl FnMut(usize, u64, f64),
    ) -> Result<()> {
        let vertices = self.with_edges(vertices, weighted)?;
        let wanted = self.wanted(vertices, direction)?;
        let count = self.walk(vertices, direction, weighted, Reach::Everywhere, wanted, take)?;
        self.check_count(count, wanted)
    }

    /// [`Lookup::collect`] by several threads, each with its part of the intervals; ordered by
    /// vertex and neighbor.
    fn collect_in_parallel(
        &self,
        vertices: &[u64],
        direction: Direction,
        weighted: bool,
    ) -> Result<Vec<(u32, u64, f64)>> {
        let vertices = self.with_edges(vertices, weighted)?;
        let wanted = self.wanted(vertices, direction)?;
        let work = wanted.saturating_add(vertices.len() as u64);
        let threads = Resources::threads(None).min(work.div_ceil(THREAD_WORK) as usize).max(1);
        let walk = |part: usize| -> Result<Vec<(u32, u64, f64)>> {
            let mut edges = Vec::new();
            let reach = Reach::Part { part, parts: threads };
            self.walk(vertices, direction, weighted, reach, wanted, |place, bits, weight| {
                edges.push((place as u32, bits, weight));
            })?;
            self.sort_edges(&mut edges);
            Ok(edges)
        };
        let parts = std::thread::scope(|scope| {
            let walk = &walk;
            let others: Vec<_> = (1..threads).map(|part| scope.spawn(move || walk(part))).collect();
            let own = walk(0);
            let others = others
                .into_iter()
                .map(|other| other.join().unwrap_or_else(|panic| resume_unwind(panic)));
            std::iter::once(own).chain(others).collect::<Result<Vec<_>>>()
        })?;
        let mut parts = parts.into_iter();
        let mut edges = parts.next().unwrap_or_default();
        parts.for_each(|part| edges.extend(part));
        self.check_count(edges.len() as u64, wanted)?;
        // Merges the sorted parts.
        self.sort_edges(&mut edges);
        Ok(edges)
    }

    /// Sorts edges by vertex and neighbor. Edges with equal ends stay in order of weight.
    fn sort_edges(&self, edges: &mut [(u32, u64, f64)]) {
        let key = |bits: u64| self.graph.id_type().order_key(bits);
        edges.sort_by_key(|(place, bits, _)| (*place, key(*bits)));
    }

    /// The part of `vertices`, which ascend, that may have edges.
    fn with_edges<'v>(&self, vertices: &'v [u64], weighted: bool) -> Result<&'v [u64]> {
        if weighted {
            self.graph.require_weights("look up neighbors without them")?;
        }
        Ok(&vertices[..vertices.partition_point(|vertex| *vertex < self.graph.connected())])
    }

    /// The number of edges of `vertices`, which ascend and may repeat; `u64::MAX` if it is unknown.
    fn wanted(&self, vertices: &[u64], direction: Direction) -> Result<u64> {
        if direction == Direction::In && self.graph.description().directed {
            return Ok(u64::MAX);
        }
        let mut sums = Nearby::new(self, Array::DegreeSums);
        vertices
            .iter()
            .take_while(|vertex| **vertex < self.graph.connected())
            .try_fold(0_u64, |wanted, vertex| {
                Ok(wanted.saturating_add(self.degree_from(&mut sums, *vertex)?))
            })
    }

    /// Calls `take` for edges to the targets in `reach`, until `wanted` are found; their number.
    fn walk(
        &self,
        vertices: &[u64],
        direction: Direction,
        weighted: bool,
        reach: Reach,
        wanted: u64,
        mut take: impl FnMut(usize, u64, f64),
    ) -> Result<u64> {
        let (mut count, mut failed) = (0, None);
        if vertices.is_empty() || wanted == 0 {
            return Ok(count);
        }
        let mut ids = Nearby::new(self, Array::Ids);
        self.blocks(direction)?.walk(vertices, reach, weighted, |place, target, weight| {
            match ids.of(target) {
                Ok(bits) => take(place, bits, weight),
                Err(error) => failed = Some(error),
            }
            count += 1;
            failed.is_none() && count < wanted
        })?;
        failed.map_or(Ok(count), Err)
    }

    /// Reports corruption if `count` edges are fewer than `wanted`.
    fn check_count(&self, count: u64, wanted: u64) -> Result<()> {
        if wanted == u64::MAX || count == wanted {
            return Ok(());
        }
        let wanted = counted(wanted, "edge");
        let problem = format!("expected {wanted} of the requested vertices, found {count}");
        Err(self.graph.degree_sums().sealed().corrupt(0, problem).into())
    }

    fn blocks(&self, direction: Direction) -> Result<&Blocks> {
        let index = direction.index();
        let missing =
            || Error::MissingIndex { path: self.graph.path().into(), index: index.name() };
        let shards = self.graph.shards(index).ok_or_else(missing)?;
        let is_forward = direction == Direction::Out || !self.graph.description().directed;
        let open = if is_forward { &self.forward } else { &self.reverse };
        match open.get() {
            Some(blocks) => Ok(blocks),
            None => {
                let blocks = Blocks::open(shards, self.graph.connected(), Self::INDEX_BYTES)?;
                Ok(open.get_or_init(|| blocks))
            }
        }
    }

    fn block(&self, array: Array, file: &AscendingFile, index: usize) -> Result<Arc<PackedBlock>> {
        self.arrays.get((array, index), || file.packed_block(index), PackedBlock::memory_bytes)
    }
}
