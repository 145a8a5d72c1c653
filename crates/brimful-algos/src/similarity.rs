//! Similarity of two vertices by their common neighbors.
//!
//! Returns rows (`source`, `target`, `score`: float64) for given pairs, in their order, or for each
//! vertex, ascending, and the `k` other vertices with the greatest scores above 0, in descending
//! order. Let N(u) and N(v) be the sets of neighbors, and w their common neighbors other than u and
//! v:
//! - `jaccard`: the number of w over the size of the union of N(u) and N(v), 0 without neighbors
//!   (Jaccard 1901);
//! - `adamic_adar`: the sum of 1 / ln(degree(w)) (Adamic and Adar 2003);
//! - `common_neighbors`: the number of w;
//! - `overlap`: the number of w over the smaller of |N(u)| and |N(v)| (Simpson 1943);
//! - `resource_allocation`: the sum of 1 / degree(w) (Zhou, Lu, Zhang 2009).
//!
//! Direction and parallel edges are ignored; a self-loop makes a vertex its own neighbor, and adds
//! two to its degree: all as in NetworkX. Exact. Ties of partners are decided by the order of
//! internal ids, which the import fixes. A vertex paired with itself has an infinite `adamic_adar`
//! if one of its neighbors has no other neighbor.
//!
//! Method: lists of neighbors by the external sorter, in memory where they fit, else in scratch
//! ([`crate::neighbor_lists`]). Pairs stream in batches. A pair takes one merge of two lists, or a
//! search of the longer list for each entry of the shorter one. The scores of partners are summed
//! in an array of all vertices for each thread. Memory: 8 bytes a vertex and, for partners, 8 more
//! and 12 for each thread, and 16 for each of the partners of at least 16 vertices a thread; rows
//! beyond the budget go to scratch. Time: O(|E| log |E|), and for partners the sum over vertices of
//! the square of their degree.

use std::collections::BinaryHeap;
use std::sync::Arc;

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::Forecast;
use brimful_engine::result::stats::Traversal;
use brimful_engine::result::table::Kind;
use brimful_engine::{RowColumn, RowWriter};
use brimful_graph::edges::{BATCH_EDGES, EdgeBatch};
use brimful_graph::ids::external::ExternalId;
use brimful_graph::ids::names::NameBatch;
use brimful_graph::read::external_order::{self, ExternalOrder};
use brimful_graph::read::lookup::Lookup;
use brimful_graph::{Graph, Index};
use brimful_store::{Job, Resources};

use crate::id_offsets::{id_offset_bytes, id_offsets};
use crate::info::{Info, Run, Takes};
use crate::neighbor_lists::{Listed, NeighborLists, common};
use crate::one_pass::OnePass;
use crate::parameter::{Accepts, ParameterInfo};
use crate::planning::Planner;
use crate::request::{FinishedRows, Pairs, Request};
use crate::{Error, Result};

/// Pairs that a thread takes at a time.
const CLAIM: usize = 1 << 10;
/// The maximum number of vertices whose partners are in memory together, and the number that a
/// thread takes at a time.
const VERTICES: u64 = 1 << 12;
const VERTEX_CLAIM: usize = 1 << 4;
/// Bytes for partners in the smallest budget, unless one claim of each thread takes more.
const PARTNER_BYTES: u64 = 1 << 20;
/// Bytes of a batch of pairs: the ends twice, the order, the scores, and the ids of the ends.
const BATCH_BYTES: u64 = BATCH_EDGES as u64 * (2 * 16 + 4 + 8 + 2 * 64);

const COLUMNS: &[RowColumn] =
    &[("source", Kind::Vertex), ("target", Kind::Vertex), ("score", Kind::Float)];

const MEASURE: ParameterInfo = ParameterInfo {
    name: "measure",
    values: Accepts::Words(MEASURES),
    meaning: "how common neighbors count",
};
const K: ParameterInfo = ParameterInfo {
    name: "k",
    values: Accepts::Count(10),
    meaning: "number of partners for each vertex; does not apply to given pairs",
};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "similarity",
    computes: "similarity by common neighbors: of given pairs, or of each vertex and its most \
               similar partners",
    column: "score",
    takes: Takes { pairs: true, ..Takes::NOTHING },
    parameters: &[MEASURE, K],
    run: Run::Rows(COLUMNS, run),
    plan,
};

const MEASURES: &[&str] =
    &["jaccard", "adamic_adar", "common_neighbors", "overlap", "resource_allocation"];

/// The measure: the weight of a common neighbor, and the divisor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Measure {
    Jaccard,
    AdamicAdar,
    CommonNeighbors,
    Overlap,
    ResourceAllocation,
}

impl Measure {
    fn of(request: &Request) -> Result<Self> {
        Ok(match MEASURE.word(request)? {
            "adamic_adar" => Self::AdamicAdar,
            "common_neighbors" => Self::CommonNeighbors,
            "overlap" => Self::Overlap,
            "resource_allocation" => Self::ResourceAllocation,
            _ => Self::Jaccard,
        })
    }

    /// The share of a common neighbor with this degree.
    #[inline]
    fn share(self, degree: usize) -> f64 {
        match self {
            Self::Jaccard | Self::CommonNeighbors | Self::Overlap => 1.0,
            Self::AdamicAdar => (degree as f64).ln().recip(),
            Self::ResourceAllocation => (degree as f64).recip(),
        }
    }

    /// The score for a sum of shares. The vertices have `counts` neighbors; `common` of
    /// them are neighbors of both, including the two vertices themselves.
    #[inline]
    fn score(self, sum: f64, counts: [usize; 2], common: usize) -> f64 {
        let denominator = match self {
            Self::Jaccard => counts[0] + counts[1] - common,
            Self::Overlap => counts[0].min(counts[1]),
            _ => return sum,
        };
        if denominator == 0 { 0.0 } else { sum / denominator as f64 }
    }
}

/// The lists of a graph, with a measure.
struct Similarity {
    lists: NeighborLists,
    measure: Measure,
    /// A bit for each vertex: 1 if it has a self-loop.
    loops: Vec<u64>,
}

impl Similarity {
    fn new(lists: NeighborLists, measure: Measure, resources: &Resources) -> Result<Self> {
        let words = lists.len().div_ceil(64);
        resources.job.begin("find self-loops", words as u64);
        let loops =
            resources.parallel_map(words, |word, buffer: &mut Vec<u32>| -> Result<u64> {
                let mut bits = 0;
                for vertex in word * 64..lists.len().min((word + 1) * 64) {
                    let vertex = vertex as u32;
                    let is_loop = lists.of_vertex(vertex, buffer)?.binary_search(&vertex).is_ok();
                    bits |= u64::from(is_loop) << (vertex % 64);
                }
                resources.job.advance(1);
                Ok(bits)
            })?;
        Ok(Self { lists, measure, loops })
    }

    #[inline]
    fn has_loop(&self, vertex: u32) -> bool {
        self.loops[vertex as usize / 64] >> (vertex % 64) & 1 == 1
    }

    #[inline]
    fn share(&self, vertex: u32) -> f64 {
        self.measure.share(self.lists.count(vertex) + usize::from(self.has_loop(vertex)))
    }

    /// The score of a pair of vertices with edges.
    fn score(&self, a: u32, b: u32, buffers: &mut [Vec<u32>; 2]) -> Result<f64> {
        let [buffer_a, buffer_b] = buffers;
        let list_a = self.lists.of_vertex(a, buffer_a)?;
        let list_b = self.lists.of_vertex(b, buffer_b)?;
        let (mut sum, mut count) = (0.0, 0);
        common(list_a, list_b, |at, _| {
            let vertex = list_a[at];
            count += 1;
            if vertex != a && vertex != b {
                sum += self.share(vertex);
            }
        });
        Ok(self.measure.score(sum, [list_a.len(), list_b.len()], count))
    }
}

/// The batches of vertices whose partners are in memory together.
#[derive(Clone, Copy)]
struct Batches {
    /// The maximum bytes of the partners of a vertex.
    vertex_bytes: u64,
    workers: usize,
}

impl Batches {
    fn new(k: u64, vertices: u64, workers: usize) -> Self {
        // A search holds one partner more than it returns.
        let partners = k.saturating_add(1).min(vertices).max(1);
        Self { vertex_bytes: partners * size_of::<Partner>() as u64, workers }
    }

    /// The number of vertices of a batch in `bytes` of memory, and at least a claim of each thread.
    fn vertices(self, bytes: u64) -> u64 {
        let least = (self.workers * VERTEX_CLAIM) as u64;
        (bytes / self.vertex_bytes).min(VERTICES).max(least)
    }

    fn min_bytes(self) -> u64 {
        self.vertices(PARTNER_BYTES) * self.vertex_bytes
    }
}

/// Bytes of memory besides those of making lists. `finding` is the bytes for finding the vertices
/// of pairs; `None` without pairs.
fn array_bytes(vertices: u64, longest: u64, finding: Option<u64>, batches: Batches) -> u64 {
    let workers = batches.workers;
    // Two lists for each thread.
    let buffers = workers as u64 * 2 * longest * size_of::<u32>() as u64;
    let task_bytes = match finding {
        Some(finding) => BATCH_BYTES + finding,
        None => {
            id_offset_bytes(vertices)
                + workers as u64 * vertices * 12
                + batches.min_bytes()
                + external_order::MEMORY_BYTES
        }
    };
    vertices.div_ceil(8) + buffers + task_bytes + RowWriter::MINIMUM_BYTES
}

/// The maximum number of neighbors of a vertex, or a bound of it.
fn longest_list(graph: &Graph) -> u64 {
    let lists = graph.description().longest_lists;
    // The list of a vertex has neighbors in both directions, so the bound holds for undirected
    // graphs only.
    let longest = lists.filter(|_| !graph.description().directed).map(|lists| lists.outgoing);
    longest.map_or(graph.connected(), |longest| longest.min(graph.connected()))
}

/// The maximum bytes of the rows of partners.
fn most_row_bytes(vertices: u64, k: u64) -> u64 {
    let row_bytes = (COLUMNS.len() * size_of::<u64>()) as u64;
    let rows = vertices.saturating_mul(k.min(vertices.saturating_sub(1)));
    // No disk holds the limit, and a forecast can add to it.
    rows.saturating_mul(row_bytes).min(u64::MAX / 4)
}

/// The time is unknown, because it depends on the lengths of lists.
fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    let request = planner.request;
    let (_, k) = settings(request)?;
    let entries = Listed::Symmetric.max_entries(planner.arcs(), planner.is_directed());
    let forecast = planner.scans(1, |setting| {
        let (vertices, workers) = (setting.extent.vertices, setting.workers);
        let longest = planner.of_graph(longest_list, vertices);
        let finding = request.pairs.as_ref().map(|_| planner.of_graph(finding_bytes, 0));
        let bytes = NeighborLists::array_bytes(vertices, workers)
            + array_bytes(vertices, longest, finding, Batches::new(k, vertices, workers));
        (bytes, bytes, 0)
    });
    let left = planner.limit().saturating_sub(forecast.minimum_bytes);
    let (memory, lists) = Listed::Symmetric.forecast_bytes(entries, left);
    // The number of pairs is unknown.
    let rows = match request.pairs {
        Some(_) => 0,
        None => most_row_bytes(planner.of_scan(|setting| setting.extent.vertices), k),
    };
    Ok(Forecast {
        memory_bytes: forecast.minimum_bytes + memory,
        scratch_bytes: lists + rows.saturating_sub(left),
        moves: false,
        timed: false,
        ..forecast
    })
}

fn settings(request: &Request) -> Result<(Measure, u64)> {
    request.refuse_max_supersteps()?;
    let k = K.count(request)?;
    if k == 0 {
        return Err(Error::Usage("k must be at least 1; leave it out for 10".into()));
    }
    if request.pairs.is_some() && K.is_given(request) {
        let problem =
            "k limits the partners of each vertex, and pairs names them; leave out k or pairs";
        return Err(Error::Usage(problem.into()));
    }
    Ok((Measure::of(request)?, k))
}

fn run(request: &Request, graph: &Arc<Graph>, resources: &Resources) -> Result<FinishedRows> {
    const PURPOSE: &str = "to compare neighbors";
    let (measure, k) = settings(request)?;
    let workers = resources.workers();
    let extent = Extent::of(graph, &[Index::In], false);
    let finding = request.pairs.as_ref().map(|_| finding_bytes(graph));
    let batches = Batches::new(k, extent.vertices, workers);
    let needed = NeighborLists::min_bytes(&extent, workers)
        + array_bytes(extent.vertices, longest_list(graph), finding, batches);
    let memory = resources.budget.reserve_all(needed, PURPOSE)?;
    let mut pass = OnePass::begin(graph, resources);
    let spare = memory.bytes() - needed;
    let lists = NeighborLists::of(graph, Listed::Symmetric, spare, resources)?;
    pass.end("list");
    let spare = spare.saturating_sub(lists.resident_bytes());
    // Partners take at most half of the bytes that lists leave, and rows the rest.
    let batch = batches.vertices(batches.min_bytes() + spare / 2);
    let partner_bytes = (batch * batches.vertex_bytes).saturating_sub(batches.min_bytes());
    let more = if request.pairs.is_some() { spare } else { spare - partner_bytes };
    let row_bytes = RowWriter::MINIMUM_BYTES + more;
    let edges = lists.entries();
    let similarity = Similarity::new(lists, measure, resources)?;
    let mut rows = RowWriter::new(graph, COLUMNS, row_bytes, &resources.job);
    match &request.pairs {
        Some(pairs) => push_pairs(&similarity, pairs, graph, &mut rows, resources)?,
        None => push_partners(&similarity, (k, batch), graph, &mut rows, resources)?,
    }
    let stats = pass.finish("compare", Traversal::Scan, edges);
    Ok(FinishedRows { table: rows.finish()?, stats, variant: MEASURE.word(request)? })
}

/// Bytes for finding the vertices of pairs.
fn finding_bytes(graph: &Graph) -> u64 {
    Lookup::finding_bytes(graph) + graph.longest_name().map_or(0, |_| NameBatch::MEMORY_BYTES)
}

/// An end of a pair: the internal id, and the offset of the external id.
type End = (u64, u64);

/// Adds a row for each pair.
fn push_pairs(
    similarity: &Similarity,
    pairs: &Pairs,
    graph: &Arc<Graph>,
    rows: &mut RowWriter<'_>,
    resources: &Resources,
) -> Result<()> {
    let Some(mut stream) = pairs.stream() else { return Ok(()) };
    let lookup = Lookup::new(Arc::clone(graph));
    let (mut batch, mut names) = (EdgeBatch::default(), NameBatch::default());
    let connected = graph.connected();
    resources.job.begin("compare", 0);
    loop {
        let ids: Vec<ExternalId> = if stream.has_names() {
            if !stream.next_names(&mut names)? {
                break;
            }
            let name = |name: &[u8]| ExternalId::Name(String::from_utf8_lossy(name).into_owned());
            names.iter().map(name).collect()
        } else {
            if !stream.next(&mut batch)? {
                break;
            }
            let (ends, id_type) = (batch.sources.iter().zip(&batch.targets), stream.id_type()?);
            ends.flat_map(|(source, target)| [*source, *target])
                .map(|bits| ExternalId::Number(id_type.number(bits)))
                .collect()
        };
        let ends = located(ids, &lookup, &resources.job)?;
        let pairs: Vec<[End; 2]> = ends.chunks_exact(2).map(|pair| [pair[0], pair[1]]).collect();
        let mut order: Vec<u32> = (0..pairs.len() as u32).collect();
        order.sort_unstable_by_key(|at| pairs[*at as usize].map(|(vertex, _)| vertex));
        let chunks: Vec<&[u32]> = order.chunks(CLAIM).collect();
        let scores = resources.parallel_map(
            chunks.len(),
            |chunk, buffers: &mut [Vec<u32>; 2]| -> Result<Vec<f64>> {
                let score = |at: &u32| {
                    let [a, b] = pairs[*at as usize].map(|(vertex, _)| vertex);
                    // Vertices without edges have no neighbors.
                    match a.max(b) < connected {
                        true => similarity.score(a as u32, b as u32, buffers),
                        false => Ok(0.0),
                    }
                };
                chunks[chunk].iter().map(score).collect()
            },
        )?;
        let mut by_pair = vec![0.0; pairs.len()];
        for (at, score) in order.iter().zip(scores.into_iter().flatten()) {
            by_pair[*at as usize] = score;
        }
        for ([(_, source), (_, target)], score) in pairs.iter().zip(by_pair) {
            rows.push(&[*source, *target, score.to_bits()])?;
        }
        resources.job.advance(pairs.len() as u64);
    }
    Ok(())
}

/// The vertices with these ids. Look-ups are in the order of the ids, so that a block of ids is
/// read once.
fn located(ids: Vec<ExternalId>, lookup: &Lookup, job: &Job) -> Result<Vec<End>> {
    let graph = lookup.graph();
    let offsets = graph.id_offsets()?;
    let mut order: Vec<u32> = (0..ids.len() as u32).collect();
    order.sort_unstable_by(|a, b| ids[*a as usize].cmp(&ids[*b as usize]));
    let (mut ends, mut last) = (vec![(0, 0); ids.len()], None);
    for (count, at) in order.into_iter().enumerate() {
        if count % CLAIM == 0 {
            job.check()?;
        }
        let id = &ids[at as usize];
        let end = match last {
            Some((last_id, end)) if last_id == id => end,
            _ => {
                let (vertex, bits) = lookup.locate(id)?;
                (vertex, offsets.of(bits))
            }
        };
        (ends[at as usize], last) = (end, Some((id, end)));
    }
    Ok(ends)
}

/// Adds rows for the `k` best partners of each vertex, `batch` vertices at a time.
fn push_partners(
    similarity: &Similarity,
    (k, batch): (u64, u64),
    graph: &Arc<Graph>,
    rows: &mut RowWriter<'_>,
    resources: &Resources,
) -> Result<()> {
    let (id_offsets, connected) = (id_offsets(graph, &resources.job)?, graph.connected());
    let mut order = ExternalOrder::new(Arc::clone(graph));
    resources.job.begin("compare", connected);
    loop {
        let (mut vertices, mut ids) = (Vec::new(), Vec::new());
        order.next_batch(batch as usize, &mut vertices, &mut ids)?;
        if vertices.is_empty() {
            return Ok(());
        }
        vertices.retain(|vertex| *vertex < connected);
        let claims: Vec<&[u64]> = vertices.chunks(VERTEX_CLAIM).collect();
        let partners_by_vertex = resources.parallel_map(
            claims.len(),
            |claim, search: &mut Search| -> Result<Vec<(u32, Vec<Partner>)>> {
                let partners_of = |vertex: &u64| {
                    let vertex = *vertex as u32;
                    Ok((vertex, search.partners(similarity, vertex, k as usize)?))
                };
                let partners_by_vertex = claims[claim].iter().map(partners_of).collect();
                resources.job.advance(claims[claim].len() as u64);
                partners_by_vertex
            },
        )?;
        for (vertex, partners) in partners_by_vertex.into_iter().flatten() {
            for partner in partners {
                let ends = [vertex, partner.vertex].map(|end| id_offsets[end as usize]);
                rows.push(&[ends[0], ends[1], partner.score.to_bits()])?;
            }
        }
    }
}

/// A partner. In the order of the type, a worse partner is greater.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Partner {
    score: f64,
    vertex: u32,
}

impl Eq for Partner {}

impl PartialOrd for Partner {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Partner {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        other.score.total_cmp(&self.score).then(self.vertex.cmp(&other.vertex))
    }
}

/// The working memory of a thread.
#[derive(Default)]
struct Search {
    /// The sum of shares of each vertex.
    sums: Vec<f64>,
    /// The vertices whose sum is not 0.
    seen: Vec<u32>,
    /// The list of the vertex.
    list: Vec<u32>,
    /// The list of a neighbor.
    neighbor_list: Vec<u32>,
}

impl Search {
    /// The `k` best partners of a vertex, best first.
    fn partners(&mut self, similarity: &Similarity, vertex: u32, k: usize) -> Result<Vec<Partner>> {
        let Self { sums, seen, list, neighbor_list } = self;
        sums.resize(similarity.lists.len(), 0.0);
        let list = similarity.lists.of_vertex(vertex, list)?;
        for &between in list.iter().filter(|between| **between != vertex) {
            let share = similarity.share(between);
            // In ascending order, as for a pair, so that both sums have the same bits.
            for &other in similarity.lists.of_vertex(between, neighbor_list)? {
                if other != vertex && other != between {
                    let sum = &mut sums[other as usize];
                    if *sum == 0.0 {
                        seen.push(other);
                    }
                    *sum += share;
                }
            }
        }
        let mut best = BinaryHeap::with_capacity(k.min(seen.len()) + 1);
        for other in seen.drain(..) {
            let sum = std::mem::take(&mut sums[other as usize]);
            let counts = [vertex, other].map(|end| similarity.lists.count(end));
            let common = match similarity.measure {
                Measure::Jaccard => {
                    let loops = [vertex, other].map(|end| usize::from(similarity.has_loop(end)));
                    let are_neighbors = loops != [0; 2] && list.binary_search(&other).is_ok();
                    sum as usize + if are_neighbors { loops[0] + loops[1] } else { 0 }
                }
                _ => 0,
            };
            let partner =
                Partner { score: similarity.measure.score(sum, counts, common), vertex: other };
            if best.len() < k || best.peek().is_some_and(|worst| partner < *worst) {
                best.push(partner);
            }
            if best.len() > k {
                best.pop();
            }
        }
        Ok(best.into_sorted_vec())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_partner_comes_first() {
        let partner = |score, vertex| Partner { score, vertex };
        let heap: BinaryHeap<Partner> =
            [partner(0.5, 2), partner(1.0, 7), partner(0.5, 1)].into_iter().collect();
        let sorted: Vec<u32> = heap.into_sorted_vec().iter().map(|one| one.vertex).collect();
        assert_eq!(sorted, [7, 1, 2]);
    }
}
