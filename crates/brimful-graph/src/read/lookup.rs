//! Look-ups: degrees, neighbors and edges of single vertices, and of many at once.
//!
//! `walk` reads the few blocks of an index that may hold a vertex; `recent` caches parts of the
//! directory, external ids, degrees and weights. The edges of a vertex lie in the shards of all of
//! its targets, so a look-up costs a binary search and a block for each interval, until all edges
//! that its degree promises are found. In-neighbors are looked up alike in the reverse index.
//! Invariant: besides the answer, memory is [`Lookup::MEMORY_BYTES`], or the size of one unit if
//! that is more.

mod between;
mod nearby;
mod recent;
mod walk;

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use brimful_store::{Job, Resources};

use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::ids::ascending::{AscendingFile, BLOCK_NUMBERS};
use crate::ids::external::ExternalId;
use crate::read::graph::Graph;
use crate::read::index::Index;
use crate::read::name_cursor::{Labels, NameCursor};
pub use between::Between;
pub use nearby::vertices_by_distance;

use recent::Recent;
use walk::{Blocks, Reach};

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
    arrays: Recent<(Array, usize), Vec<u64>>,
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
        ids.min(Self::MEMORY_BYTES - 2 * Self::INDEX_BYTES) + names
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
        // In their order, neighboring ids are found in the same parts of memory.
        let mut order: Vec<usize> = (0..ids.len()).collect();
        order.sort_by(|left, right| ids[*left].cmp(&ids[*right]));
        let mut vertices = vec![0; ids.len()];
        for chunk in order.chunks(FOUND_AT_ONCE) {
            job.check()?;
            for &place in chunk {
                vertices[place] = self.find(&ids[place])?;
            }
        }
        Ok(vertices)
    }

    /// The internal id of the vertex with external id `id`, and the bits of the external id.
    ///
    /// # Errors
    /// As [`Lookup::find`].
    pub fn locate(&self, id: &ExternalId) -> Result<(u64, u64)> {
        let bits = match (id, self.graph.names()) {
            (ExternalId::Number(number), None) => self.graph.id_type().bits(*number),
            (ExternalId::Name(name), Some(file)) => self.names().find(file, name)?,
            _ => None,
        };
        let found = bits.map_or(Ok(None), |bits| self.find_bits(bits))?;
        let missing = || Error::NoSuchVertex { vertex: id.to_string() };
        found.zip(bits).ok_or_else(missing)
    }

    fn find_bits(&self, bits: u64) -> Result<Option<u64>> {
        let Some(file) = self.graph.ids_file() else {
            return self.graph.find_bits(bits);
        };
        for index in file.candidates(bits) {
            let found = file.find_in(index, &self.numbers(Array::Ids, file, index)?, bits);
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
        let known = vertices.iter().map(|vertex| self.known_degree(*vertex, direction));
        if let Some(degrees) = known.collect::<Result<Option<Vec<_>>>>()? {
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
            let what = "the sums of degrees do not ascend";
            file.sealed().corrupt(file.block_of(vertex), what).into()
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
        let found = self.walk((vertices, direction, weighted), Reach::Everywhere, wanted, take)?;
        self.check_found(found, wanted)
    }

    /// [`Lookup::collect`] by several threads, each with its part of the intervals.
    fn collect_in_parallel(
        &self,
        vertices: &[u64],
        direction: Direction,
        weighted: bool,
    ) -> Result<Vec<(u32, u64, f64)>> {
        let vertices = self.with_edges(vertices, weighted)?;
        let wanted = self.wanted(vertices, direction)?;
        let threads = Resources::threads(None).min(wanted.div_ceil(THREAD_EDGES) as usize).max(1);
        let walk = |part: usize| -> Result<Vec<(u32, u64, f64)>> {
            let mut found = Vec::new();
            let reach = Reach::Part { part, of: threads };
            self.walk((vertices, direction, weighted), reach, wanted, |place, bits, weight| {
                found.push((place as u32, bits, weight));
            })?;
            Ok(found)
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
        let mut found = parts.next().unwrap_or_default();
        parts.for_each(|part| found.extend(part));
        self.check_found(found.len() as u64, wanted)?;
        Ok(found)
    }

    /// Those of `vertices`, which ascend, that may have edges.
    fn with_edges<'v>(&self, vertices: &'v [u64], weighted: bool) -> Result<&'v [u64]> {
        if weighted && !self.graph.description().weighted {
            let what =
                format!("{} has no edge weights; ask without them", self.graph.path().display());
            return Err(Error::Usage(what));
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
        (vertices, direction, weighted): (&[u64], Direction, bool),
        reach: Reach,
        wanted: u64,
        mut take: impl FnMut(usize, u64, f64),
    ) -> Result<u64> {
        let (mut found, mut failed) = (0, None);
        if vertices.is_empty() || wanted == 0 {
            return Ok(found);
        }
        let mut ids = Nearby::new(self, Array::Ids);
        self.blocks(direction)?.walk(vertices, reach, weighted, |place, target, weight| {
            match ids.of(target) {
                Ok(bits) => take(place, bits, weight),
                Err(error) => failed = Some(error),
            }
            found += 1;
            failed.is_none() && found < wanted
        })?;
        failed.map_or(Ok(found), Err)
    }

    /// Reports corruption if `found` edges are fewer than `wanted`.
    fn check_found(&self, found: u64, wanted: u64) -> Result<()> {
        if wanted == u64::MAX || found == wanted {
            return Ok(());
        }
        let what = format!("expected {wanted} edges of the vertices asked for, found {found}");
        Err(self.graph.degree_sums().sealed().corrupt(0, what).into())
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

    /// The numbers of a block of an array.
    fn numbers(&self, array: Array, file: &AscendingFile, index: usize) -> Result<Arc<Vec<u64>>> {
        self.arrays.get(
            (array, index),
            || file.read_block(index),
            |numbers| 8 * numbers.capacity() as u64,
        )
    }
}

/// Numbers of vertices that mostly lie close together.
struct Nearby<'l> {
    lookup: &'l Lookup,
    array: Array,
    /// Recent blocks, in a slot by block number modulo the number of slots.
    blocks: [Option<(usize, Arc<Vec<u64>>)>; 8],
    /// The slot of the block that was used last, and its range of vertices.
    last: (usize, Range<u64>),
}

impl<'l> Nearby<'l> {
    fn new(lookup: &'l Lookup, array: Array) -> Self {
        Self { lookup, array, blocks: Default::default(), last: (0, 0..0) }
    }

    /// The number of `vertex`.
    #[inline]
    fn of(&mut self, vertex: u64) -> Result<u64> {
        let (slot, places) = &self.last;
        if let (true, Some((_, numbers))) = (places.contains(&vertex), &self.blocks[*slot]) {
            return Ok(numbers[(vertex - places.start) as usize]);
        }
        let graph = &self.lookup.graph;
        let file = match self.array {
            Array::DegreeSums => graph.degree_sums(),
            Array::Ids => {
                let Some(file) = graph.ids_file() else {
                    let mut id = [0];
                    graph.external_ids(vertex, &mut id)?;
                    return Ok(id[0]);
                };
                file
            }
        };
        let index = file.block_of(vertex);
        let slot = index % self.blocks.len();
        if self.blocks[slot].as_ref().is_none_or(|(block, _)| *block != index) {
            self.blocks[slot] = Some((index, self.lookup.numbers(self.array, file, index)?));
        }
        self.last = (slot, file.places(index));
        let number = self.blocks[slot]
            .as_ref()
            .and_then(|(_, numbers)| numbers.get((vertex - self.last.1.start) as usize));
        number.copied().ok_or_else(|| Error::NoSuchVertex { vertex: vertex.to_string() })
    }
}

/// Reads the edges of many vertices, some thousand vertices at a time.
#[derive(Debug)]
pub struct NeighborReader {
    lookup: Arc<Lookup>,
    vertices: Vec<u64>,
    direction: Direction,
    weighted: bool,
    at: usize,
}

/// Vertices that are found between two checks for Ctrl-C.
const FOUND_AT_ONCE: usize = 1 << 12;
/// The maximum number of vertices whose edges are read at once.
const BATCH_VERTICES: usize = 1 << 14;
/// If degrees are known, a batch of several vertices has at most this many edges.
const BATCH_EDGES: u64 = 1 << 18;
/// Edges for which a thread of its own is worth the start.
const THREAD_EDGES: u64 = 1 << 15;

impl NeighborReader {
    /// A reader of the edges of `vertices` (internal ids), in that order.
    pub fn new(
        lookup: Arc<Lookup>,
        vertices: Vec<u64>,
        direction: Direction,
        weighted: bool,
    ) -> Self {
        Self { lookup, vertices, direction, weighted, at: 0 }
    }

    /// Replaces `batch` by the edges of the next vertices, with external ids; false at the end.
    ///
    /// # Errors
    /// As [`Lookup::neighbors`].
    pub fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        let rest = &self.vertices[self.at..];
        if rest.is_empty() {
            return Ok(false);
        }
        let mut count = rest.len().min(BATCH_VERTICES);
        let mut distinct = rest[..count].to_vec();
        distinct.sort_unstable();
        while count > 1 {
            let edges = self.lookup.wanted(&distinct, self.direction)?;
            if edges <= BATCH_EDGES || edges == u64::MAX {
                break;
            }
            count = count.div_ceil(2);
            distinct.clear();
            distinct.extend(&rest[..count]);
            distinct.sort_unstable();
        }
        let asked = &rest[..count];
        self.at += count;
        distinct.dedup();
        let key = |bits: u64| self.lookup.graph.id_type().order_key(bits);
        let mut found =
            self.lookup.collect_in_parallel(&distinct, self.direction, self.weighted)?;
        // A stable sort: edges with equal ends stay in order of weight.
        found.sort_by_key(|(place, bits, _)| (*place, key(*bits)));
        let mut ids = Nearby::new(&self.lookup, Array::Ids);
        for vertex in asked {
            let place = distinct.partition_point(|other| other < vertex) as u32;
            let own = ids.of(*vertex)?;
            let begin = found.partition_point(|(other, _, _)| *other < place);
            let edges = found[begin..].iter().take_while(|(other, _, _)| *other == place);
            for &(_, other, weight) in edges {
                let (source, target) = match self.direction {
                    Direction::Out => (own, other),
                    Direction::In => (other, own),
                };
                batch.sources.push(source);
                batch.targets.push(target);
                batch.weights.extend(self.weighted.then_some(weight));
            }
        }
        Ok(true)
    }
}
