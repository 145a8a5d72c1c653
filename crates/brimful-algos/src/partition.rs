//! Measures of a given partition of the vertices, such as the result of `louvain`.
//!
//! Vertices with the same value are a community. An edge has an arc in both directions; parallel
//! edges add up; a self-loop has two arcs. Let `inside` be the weight of the arcs within a
//! community, `strength` the weight of all arcs of its vertices, and 2m the weight of all arcs:
//! - *modularity* with the resolution g: the sum of `inside / 2m - g (strength / 2m)^2` (Newman and
//!   Girvan 2004; Reichardt and Bornholdt 2006);
//! - *conductance* of a community: `(strength - inside) / min(strength, 2m - strength)` (Kannan,
//!   Vempala, Vetta 2004), null if the divisor is 0.
//!
//! Exact but for rounding. One pass over the edges in one thread; 20 bytes a vertex.

use brimful_engine::plan::extent::Extent;
use brimful_engine::result::stats::Traversal;
use brimful_engine::traverse::scan::Scan;
use brimful_engine::{ResultTable, Values};
use brimful_graph::read::segment_reader::for_each_edge;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;

use crate::one_pass::OnePass;
use crate::out_weights::{AT_ONCE, scale_of_weights};
use crate::request::{Finished, Request};
use crate::{Error, Result};

/// Bytes for each vertex with edges: the number of its community, and two sums for each community;
/// there are at most as many communities as vertices. Sorting the values before takes less.
const VERTEX_BYTES: u64 = 4 + 16;

/// The communities of a partition, and the weights of their arcs.
struct Communities {
    /// For each vertex with edges, the number of its community.
    numbers: Vec<u32>,
    inside: Vec<f64>,
    strengths: Vec<f64>,
}

impl Communities {
    fn of(partition: &ResultTable, request: &Request, resources: &Resources) -> Result<Self> {
        const PURPOSE: &str = "to measure communities";
        let graph = partition.graph();
        request.options(0).check_weights(graph)?;
        request.refuse_negative_weights(graph, &resources.job)?;
        if graph.connected() >= u64::from(u32::MAX) {
            let problem = "measures of communities support fewer than 2^32 vertices with edges";
            return Err(Error::Usage(problem.into()));
        }
        let extent = Extent::of(graph, &[Index::In], request.weighted);
        let needed = extent.vertices * VERTEX_BYTES + Scan::minimum_bytes(&extent, 1);
        let _memory = resources.budget.reserve(needed, PURPOSE)?;
        let (numbers, count) = numbered(partition, resources)?;
        let mut communities =
            Self { numbers, inside: vec![0.0; count], strengths: vec![0.0; count] };
        communities.add_edges(graph, request.weighted, resources)?;
        Ok(communities)
    }

    fn add_edges(&mut self, graph: &Graph, weighted: bool, resources: &Resources) -> Result<()> {
        let directed = graph.description().directed;
        let phase = ("measure", &*resources.job);
        // Only ratios of weights matter.
        let scale = scale_of_weights(graph, weighted);
        for_each_edge(graph.forward(), weighted, phase, |source, target, weight| {
            let [one, other] = [source, target].map(|end| self.numbers[end as usize] as usize);
            // An undirected edge is stored as two arcs, but a self-loop as one.
            let weight = if directed || source == target { weight } else { weight / 2.0 } * scale;
            self.strengths[one] += weight;
            self.strengths[other] += weight;
            if one == other {
                self.inside[one] += 2.0 * weight;
            }
            Ok(())
        })
    }

    fn whole(&self) -> f64 {
        self.strengths.iter().sum()
    }
}

/// For each vertex with edges, the number of its community, in the order of the values; and the
/// number of communities.
fn numbered(partition: &ResultTable, resources: &Resources) -> Result<(Vec<u32>, usize)> {
    let vertices = partition.graph().connected();
    let mut values = Vec::with_capacity(vertices as usize);
    let each = |each: &mut dyn FnMut(u64)| -> Result<()> {
        let mut part = Vec::new();
        for start in (0..vertices).step_by(AT_ONCE) {
            resources.job.check()?;
            let count = (AT_ONCE as u64).min(vertices - start) as usize;
            partition.read_raw(start, count, &mut part)?;
            for value in &part {
                each(value.ok_or_else(|| {
                    Error::Usage(format!(
                        "a partition needs a value for every vertex, but {} has nulls; pass a \
                         result without nulls",
                        partition.name()
                    ))
                })?);
            }
        }
        Ok(())
    };
    each(&mut |value| values.push(value))?;
    values.sort_unstable();
    values.dedup();
    let mut numbers = Vec::with_capacity(vertices as usize);
    // Every value is found, because the vector has all of them.
    each(&mut |value| numbers.push(values.partition_point(|other| *other < value) as u32))?;
    Ok((numbers, values.len()))
}

/// The request of a measure.
fn request(measure: &str, weighted: bool) -> Request {
    Request { algorithm: measure.to_owned(), weighted, ..Default::default() }
}

/// The modularity of a partition, at most 1, with the given resolution and with or without edge
/// weights; 0 if the graph has no edges.
///
/// # Errors
/// [`Error::Usage`] if a vertex has no value, if the graph has no weights although they are wanted,
/// or if it is too large; [`brimful_graph::Error::Input`] for negative weights.
pub fn modularity(
    partition: &ResultTable,
    (resolution, weighted): (f64, bool),
    resources: &Resources,
) -> Result<f64> {
    let communities = Communities::of(partition, &request("modularity", weighted), resources)?;
    let whole = communities.whole();
    if whole == 0.0 {
        return Ok(0.0);
    }
    let of = |(inside, strength): (&f64, &f64)| {
        inside / whole - resolution * (strength / whole) * (strength / whole)
    };
    Ok(communities.inside.iter().zip(&communities.strengths).map(of).sum())
}

/// For each vertex, the conductance of its community; and the request that describes the result.
///
/// # Errors
/// As [`modularity`].
pub fn conductance(
    partition: &ResultTable,
    weighted: bool,
    resources: &Resources,
) -> Result<(Finished, Request)> {
    let (request, graph) = (request("conductance", weighted), partition.graph());
    let pass = OnePass::begin(graph, resources);
    let Communities { numbers, inside, strengths } =
        Communities::of(partition, &request, resources)?;
    let whole: f64 = strengths.iter().sum();
    let conductance = move |number: u32| {
        let (inside, strength) = (inside[number as usize], strengths[number as usize]);
        let smaller = strength.min(whole - strength);
        (smaller > 0.0).then(|| (strength - inside) / smaller)
    };
    let window = 1 << graph.description().interval_bits;
    let numbers = ScratchArray::of(numbers.into(), window);
    let values = Values::floats(numbers, conductance, |_| None);
    let stats = pass.finish("measure", Traversal::Scan, graph.description().arcs);
    let finished = Finished::new(graph, "conductance", values, stats, "strength")?;
    Ok((finished, request))
}
