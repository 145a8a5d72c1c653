//! First-fit in one pass over sorted edges, in any budget.
//!
//! Vertices are numbered in their order; the number is the *rank*. Edges are sorted by their
//! earlier ends (time-forward processing: Chiang, Goodrich, Grove, Tamassia, Vengroff, Vitter 1995,
//! "External-memory graph algorithms"). When the merge reaches the edges of a vertex, its earlier
//! neighbors have marked their colors as taken. The vertex takes the least color without a mark,
//! and marks it at its later neighbors.
//!
//! A mark is a bit, and all marks are about three bits an edge. If memory does not hold these,
//! ranks are cut into parts. Edges are sorted by the part of their later ends first, and colors of
//! earlier parts are read in order. The number of bytes that are sorted does not depend on the
//! memory.

mod memory;
mod parts;

use std::ops::Range;
use std::sync::atomic::{AtomicUsize, Ordering};

use brimful_engine::Stats;
use brimful_engine::plan::extent::Extent;
use brimful_engine::result::stats::Traversal;
use brimful_engine::scratch::{in_scratch, scratch_array};
use brimful_graph::random::splitmix64;
use brimful_graph::read::segment_reader::SegmentReader;
use brimful_graph::{Graph, Index};
use brimful_store::huge::HugeArray;
use brimful_store::scratch::{ScratchArray, ScratchWindow};
use brimful_store::sorter::{Record, Sorter};
use brimful_store::{Error as StoreError, Resources};
use bytemuck::{Pod, Zeroable};

use crate::Result;
use crate::one_pass::OnePass;
use crate::out_weights::AT_ONCE;
use crate::sorting::sorted;
pub(super) use memory::forecast;
use memory::{Memory, WORD};
pub(super) use parts::TOO_MANY;
use parts::{CLASSES, Keys, Part, bands};

/// Ranks, vertices or colors that are read or written at once.
const BATCH: usize = 1 << 16;
/// Bytes of a rank, a vertex or a color.
const NUMBER: u64 = size_of::<u32>() as u64;

/// A vertex in its order: the complements of its class and of the hash of its id offset come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
struct Turn([u64; 2]);

impl Turn {
    /// Bits of a class.
    const CLASS: u32 = CLASSES.ilog2();

    fn new(class: usize, id_offset: u64, vertex: u32) -> Self {
        let (class, hash) = ((CLASSES - 1 - class) as u64, !splitmix64(id_offset));
        let shift = u64::BITS - Self::CLASS;
        Self([class << shift | hash >> Self::CLASS, hash << shift | u64::from(vertex)])
    }

    fn vertex(self) -> u32 {
        self.0[1] as u32
    }
}

impl Record for Turn {
    const RADIX_IS_WHOLE: bool = false;

    fn radix(&self) -> u64 {
        self.0[0]
    }
}

/// The color of each vertex with edges.
///
/// # Errors
/// [`brimful_store::Error::Budget`] before any work; corruption and I/O errors when they occur.
pub(super) fn colors(graph: &Graph, resources: &Resources) -> Result<(ScratchArray<u32>, Stats)> {
    const PURPOSE: &str = "to color a graph";
    let extent = Extent::of(graph, &[Index::In], false);
    let (directed, limit) = (graph.description().directed, resources.budget.limit());
    let memory = Memory::new(&extent, directed, resources.workers(), limit);
    resources.budget.require(memory.minimum, PURPOSE)?;
    let _reserved = resources.budget.reserve(limit, PURPOSE)?;
    Run { graph, resources, directed, memory }.colors()
}

struct Run<'r> {
    graph: &'r Graph,
    resources: &'r Resources,
    directed: bool,
    memory: Memory,
}

/// The order of the vertices.
struct Order {
    /// The number of vertices of each class.
    classes: [u64; CLASSES],
    /// The rank of each vertex.
    ranks: ScratchArray<u32>,
    /// The vertex of each rank.
    vertices: ScratchArray<u32>,
}

impl<'r> Run<'r> {
    fn colors(&self) -> Result<(ScratchArray<u32>, Stats)> {
        let graph = self.graph;
        let mut pass = OnePass::begin(graph, self.resources);
        let Order { classes, ranks, vertices } = self.order()?;
        pass.end("order");
        let keys = Keys::of(graph.connected());
        let parts = Part::cut(bands(&classes), self.memory.bits_of_part(), keys.max_len());
        if parts.len() > Keys::MAX_PARTS {
            return Err(self.contradiction().into());
        }
        let edges = self.sort(keys, &parts, &ranks)?;
        drop(ranks);
        pass.end("sort");
        let colors = self.color(keys, &parts, edges)?;
        pass.end("color");
        let colors = self.by_vertex(&vertices, &colors)?;
        Ok((colors, pass.finish("write", Traversal::Scan, graph.description().arcs)))
    }

    fn contradiction(&self) -> StoreError {
        let problem = "the degrees of vertices contradict the edges";
        StoreError::corrupt(self.graph.path(), 0, problem)
    }

    /// An array of a number for each vertex with edges.
    fn numbers(&self, resident: bool) -> Result<ScratchArray<u32>> {
        let (graph, resources) = (self.graph, self.resources);
        let shape = (graph.connected() as usize, 1 << graph.forward().interval_bits());
        Ok(scratch_array(resident, shape, graph, resources)?)
    }

    /// Calls `vertex(vertex, degree)` for every vertex with edges. Self-loops do not count.
    fn for_each_degree(&self, mut vertex: impl FnMut(u64, u64) -> Result<()>) -> Result<()> {
        let (graph, shards, job) = (self.graph, self.graph.forward(), &self.resources.job);
        let (mut reader, mut degrees, mut next) = (SegmentReader::default(), Vec::new(), 0);
        job.begin("count edges", shards.edges());
        for interval in 0..graph.intervals() {
            let start = interval << shards.interval_bits();
            let len = (graph.connected() - start).min(1 << shards.interval_bits());
            degrees.clear();
            degrees.resize(len as usize, 0);
            if self.directed {
                graph.degrees(start, &mut degrees)?;
            }
            while let Some(segment) =
                shards.segments().get(next).filter(|segment| segment.interval == interval)
            {
                job.check()?;
                reader.for_each_edge(shards, next, |source, target, _| {
                    let degree = &mut degrees[(target - start) as usize];
                    *degree = match (source == target, self.directed) {
                        (false, _) => degree.wrapping_add(1),
                        // The loop is an outgoing arc.
                        (true, true) => degree.wrapping_sub(1),
                        (true, false) => *degree,
                    };
                })?;
                job.advance(u64::from(segment.edges));
                next += 1;
            }
            (start..).zip(&degrees).try_for_each(|(at, degree)| vertex(at, *degree))?;
        }
        Ok(())
    }

    fn order(&self) -> Result<Order> {
        let (graph, resources, job) = (self.graph, self.resources, &self.resources.job);
        let [of_turns, of_ranks] = self.memory.ordering(resources.workers());
        let (offsets, mut id_offsets) = (graph.id_offsets()?, Vec::new());
        let mut classes = [0; CLASSES];
        let turns = sorted(graph, of_turns, resources, |writer| {
            self.for_each_degree(|vertex, degree| {
                let at = vertex as usize % AT_ONCE;
                if at == 0 {
                    id_offsets.resize((graph.connected() - vertex).min(AT_ONCE as u64) as usize, 0);
                    graph.external_offsets(offsets, vertex, &mut id_offsets)?;
                }
                let class = degree.checked_ilog2().map_or(0, |bits| bits as usize + 1);
                let class = class.min(CLASSES - 1);
                classes[class] += 1;
                Ok(writer.push(Turn::new(class, id_offsets[at], vertex as u32))?)
            })
        })?;
        let mut vertices = Appended::new(self.numbers(false)?);
        job.begin("order vertices", turns.len());
        let ranks = sorted(graph, of_ranks, resources, |writer| {
            let mut rank = 0_u64;
            turns.merge(&resources.pool, |turns| {
                job.check()?;
                for turn in turns {
                    vertices.push(turn.vertex())?;
                    writer.push(u64::from(turn.vertex()) << u32::BITS | rank)?;
                    rank += 1;
                }
                job.advance(turns.len() as u64);
                Ok(())
            })
        })?;
        Ok(Order { classes, ranks: self.in_order(ranks)?, vertices: vertices.finish()? })
    }

    /// The lower halves of sorted words.
    fn in_order(&self, words: Sorter<'_, u64>) -> Result<ScratchArray<u32>> {
        let mut numbers = Appended::new(self.numbers(self.memory.numbers > 0)?);
        words.merge(&self.resources.pool, |words| {
            self.resources.job.check()?;
            words.iter().try_for_each(|word| numbers.push(*word as u32))
        })?;
        Ok(numbers.finish()?)
    }

    /// Sorts the edges by their keys.
    fn sort(
        &self,
        keys: Keys,
        parts: &[Part],
        ranks: &ScratchArray<u32>,
    ) -> Result<Sorter<'r, u64>> {
        let (shards, resources, job) = (self.graph.forward(), self.resources, &self.resources.job);
        let sorter = in_scratch(self.graph, &|folder| {
            Sorter::new(folder, self.memory.sorting(), resources.workers(), job)
        })?;
        let window = 1 << shards.interval_bits();
        let mut units: Vec<Range<usize>> = Vec::with_capacity(shards.units());
        for unit in shards.segments().chunk_by(|_, next| !next.begins_unit) {
            let start = units.last().map_or(0, |last| last.end);
            units.push(start..start + unit.len());
        }
        job.begin("sort edges", shards.edges());
        let next = AtomicUsize::new(0);
        let made = resources.broadcast(|_| -> Result<()> {
            let (mut reader, mut writer) = (SegmentReader::default(), sorter.writer());
            let [mut of_sources, mut of_targets] = [(); 2].map(|()| ScratchWindow::default());
            let mut push = |source: u64, target: u64| {
                let source = u64::from(*of_sources.get(ranks, source as usize, window)?);
                let target = u64::from(*of_targets.get(ranks, target as usize, window)?);
                let (earlier, later) = (source.min(target), source.max(target));
                writer.push(keys.key(parts, earlier, later))
            };
            while let Some(unit) = units.get(next.fetch_add(1, Ordering::Relaxed)) {
                for index in unit.clone() {
                    job.check()?;
                    let mut pushed = Ok(());
                    reader.for_each_edge(shards, index, |source, target, _| {
                        // One arc of an undirected edge is enough.
                        let is_second = !self.directed && source > target;
                        if source != target && !is_second && pushed.is_ok() {
                            pushed = push(source, target);
                        }
                    })?;
                    pushed?;
                    job.advance(u64::from(shards.segments()[index].edges));
                }
            }
            Ok(writer.finish()?)
        });
        made.into_iter().collect::<Result<()>>()?;
        Ok(sorter)
    }

    /// The color of each rank.
    fn color(
        &self,
        keys: Keys,
        parts: &[Part],
        edges: Sorter<'_, u64>,
    ) -> Result<ScratchArray<u32>> {
        let job = &self.resources.job;
        let bits = parts.iter().map(|part| part.bits).max().unwrap_or(0);
        let mut coloring = Coloring {
            run: self,
            parts,
            part: 0,
            marks: HugeArray::zeroed(Memory::bytes_of(bits) as usize / size_of::<u64>()),
            colors: Appended::new(self.numbers(false)?),
            seen: Vec::new(),
            first_seen: 0,
        };
        job.begin("color", edges.len());
        let (mut last, mut color) = (None, 0);
        edges.merge(&self.resources.pool, |edges| {
            job.check()?;
            for key in edges {
                let (part, earlier, within) = keys.parts_of(*key);
                if last != Some((part, earlier)) {
                    coloring.turn_to(part)?;
                    (last, color) = (Some((part, earlier)), coloring.color(earlier)?);
                }
                coloring.mark(within, color);
            }
            job.advance(edges.len() as u64);
            Ok::<(), StoreError>(())
        })?;
        coloring.turn_to(parts.len())?;
        Ok(coloring.colors.finish()?)
    }

    /// The colors of the vertices, from those of the ranks.
    fn by_vertex(
        &self,
        vertices: &ScratchArray<u32>,
        colors: &ScratchArray<u32>,
    ) -> Result<ScratchArray<u32>> {
        let bytes = self.memory.shared - self.memory.numbers;
        let (mut of_vertices, mut of_colors) = (Vec::new(), Vec::new());
        let words = sorted(self.graph, bytes, self.resources, |writer| {
            for start in (0..vertices.len()).step_by(BATCH) {
                self.resources.job.check()?;
                let range = start..vertices.len().min(start + BATCH);
                let vertices = vertices.slice(range.clone(), &mut of_vertices)?;
                let colors = colors.slice(range, &mut of_colors)?;
                for (vertex, color) in vertices.iter().zip(colors) {
                    writer.push(u64::from(*vertex) << u32::BITS | u64::from(*color))?;
                }
            }
            Ok(())
        })?;
        self.in_order(words)
    }
}

/// An array that is written from the first number to the last.
struct Appended {
    array: ScratchArray<u32>,
    /// The numbers from `start` on that are not written yet.
    batch: Vec<u32>,
    start: usize,
}

impl Appended {
    fn new(array: ScratchArray<u32>) -> Self {
        Self { array, batch: Vec::with_capacity(BATCH), start: 0 }
    }

    fn len(&self) -> u64 {
        (self.start + self.batch.len()) as u64
    }

    fn push(&mut self, number: u32) -> Result<(), StoreError> {
        self.batch.push(number);
        if self.batch.len() == BATCH { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), StoreError> {
        self.array.windows().write(self.start, &self.batch)?;
        self.start += self.batch.len();
        self.batch.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<ScratchArray<u32>, StoreError> {
        self.flush()?;
        Ok(self.array)
    }
}

/// The state of a pass over sorted edges.
struct Coloring<'p> {
    run: &'p Run<'p>,
    parts: &'p [Part],
    /// The part whose marks are in memory.
    part: usize,
    /// A bit for each color that is taken, and a word more, because words are read from any bit on.
    marks: HugeArray<u64>,
    /// The colors of the ranks so far.
    colors: Appended,
    /// Colors of earlier parts, from rank `first_seen` on.
    seen: Vec<u32>,
    first_seen: u64,
}

impl Coloring<'_> {
    /// Colors the ranks of the parts before `part`.
    fn turn_to(&mut self, part: usize) -> Result<(), StoreError> {
        while self.part < part {
            self.color_to(self.parts[self.part].ranks.end)?;
            self.colors.flush()?;
            self.seen.clear();
            self.marks.fill(0);
            self.part += 1;
        }
        Ok(())
    }

    /// The color of a rank whose earlier neighbors have marked their colors.
    fn color(&mut self, rank: u64) -> Result<u32, StoreError> {
        let first = self.parts[self.part].ranks.start;
        if rank >= first {
            return self.color_to(rank + 1);
        }
        // Ranks ascend within a part.
        if rank.wrapping_sub(self.first_seen) >= self.seen.len() as u64 {
            self.seen.resize((first - rank).min(BATCH as u64) as usize, 0);
            self.colors.array.read(rank as usize, &mut self.seen)?;
            self.first_seen = rank;
        }
        Ok(self.seen[(rank - self.first_seen) as usize])
    }

    /// Colors all ranks below `end`; returns the color of the last.
    fn color_to(&mut self, end: u64) -> Result<u32, StoreError> {
        let mut color = 0;
        for rank in self.colors.len()..end {
            color = self.first_free(self.parts[self.part].bits_of(rank))?;
            self.colors.push(color)?;
        }
        Ok(color)
    }

    /// The least color without a mark.
    fn first_free(&self, bits: Range<u64>) -> Result<u32, StoreError> {
        let mut at = bits.start;
        while at < bits.end {
            let (word, shift) = ((at / WORD) as usize, at % WORD);
            let next = self.marks[word + 1].checked_shl((WORD - shift) as u32).unwrap_or(0);
            let taken = (self.marks[word] >> shift | next).trailing_ones();
            at += u64::from(taken);
            if u64::from(taken) < WORD && at < bits.end {
                return Ok((at - bits.start) as u32);
            }
        }
        Err(self.run.contradiction())
    }

    /// Marks a color as taken at the vertex with this number in the part. A vertex has no bits for
    /// colors that it does not need.
    #[inline]
    fn mark(&mut self, within: u64, color: u32) {
        let part = &self.parts[self.part];
        let bits = part.bits_of(part.ranks.start + within);
        let bit = bits.start + u64::from(color);
        if bit < bits.end {
            self.marks[(bit / WORD) as usize] |= 1 << (bit % WORD);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brimful_graph::build::import::{ImportOptions, Input, import};
    use brimful_graph::generate::{Generator, Kind};
    use brimful_graph::read::segment_reader::for_each_edge;
    use brimful_store::{Budget, Job};

    use super::*;

    /// The colors by the definition.
    fn first_fit(graph: &Graph, job: &Job) -> Vec<u32> {
        let mut neighbors = vec![Vec::new(); graph.connected() as usize];
        for_each_edge(graph.forward(), false, ("read", job), |source, target, _| {
            if source != target {
                neighbors[target as usize].push(source as usize);
                if graph.description().directed {
                    neighbors[source as usize].push(target as usize);
                }
            }
            Ok::<(), StoreError>(())
        })
        .unwrap();
        let id_offsets = crate::id_offsets::id_offsets(graph, job).unwrap();
        let mut order: Vec<usize> = (0..neighbors.len()).collect();
        order.sort_by_key(|vertex| {
            let class = neighbors[*vertex].len().checked_ilog2().map_or(0, |bits| bits + 1);
            std::cmp::Reverse((class, splitmix64(id_offsets[*vertex])))
        });
        let mut colors = vec![u32::MAX; neighbors.len()];
        for vertex in order {
            let is_free =
                |color: &u32| neighbors[vertex].iter().all(|other| colors[*other] != *color);
            colors[vertex] = (0..).find(is_free).unwrap();
        }
        colors
    }

    #[test]
    fn colors_agree_with_the_definition_whatever_the_number_of_parts() {
        let folder = tempfile::tempdir().unwrap();
        for (at, (scale, edge_factor)) in
            [(10, 12), (3, 1), (12, 1), (1, 1)].into_iter().enumerate()
        {
            for undirected in [false, true] {
                let path = folder.path().join(format!("{at}-{undirected}.brimful"));
                let resources =
                    Resources::new(Budget::new(1 << 28, 0), Arc::default(), Some(2)).unwrap();
                let generator = Generator::new(Kind::Rmat { scale, edge_factor }, 3).unwrap();
                let options = ImportOptions { undirected, ..Default::default() };
                let input = Input::Numbered(&generator, generator.vertices());
                import(input, &path, &options, &resources).unwrap();
                let graph = Graph::open(&path, resources.job.traffic()).unwrap();
                let wanted = first_fit(&graph, &resources.job);
                let extent = Extent::of(&graph, &[Index::In], false);
                let ample = Memory::new(&extent, !undirected, 2, 1 << 28);
                for marks in [ample.marks, 1 << 10, 1 << 7, 16] {
                    for numbers in [ample.numbers, 0] {
                        let memory = Memory { marks, numbers, ..ample };
                        let run = Run {
                            graph: &graph,
                            resources: &resources,
                            directed: !undirected,
                            memory,
                        };
                        let (colors, _) = run.colors().unwrap();
                        let found =
                            colors.slice(0..wanted.len(), &mut Vec::new()).unwrap().to_vec();
                        assert_eq!(found, wanted, "scale {scale}, {marks} bytes of marks");
                    }
                }
            }
        }
    }
}
