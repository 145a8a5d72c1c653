//! Programs on the vertices of a graph: opens stores and fills them from shards.
//!
//! - `edges`: the data of an edge; `hubs`: memory for vertices with very many edges; `shards`:
//!   whole vertices from shards; `memory`: the processes of the budget.
//!
//! Vertices are ranks in the graph's internal order; errors name them by their external ids.

mod edges;
mod memory;
mod shards;

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use brimful_engine::RunOptions;
use brimful_engine::scratch::scratch_folder;
use brimful_graph::read::name_cursor::NameCursor;
use brimful_graph::{Graph, Index};
use brimful_store::external::TemporaryFolder;
use brimful_store::wording::counted;
use brimful_store::{DiskFolder, Folder, Resources};
use brimful_vertices::cache::ScoreFunction;
use brimful_vertices::{
    CacheMemory, Edges, PartitionOptions, Schemes, Serializer, Stored, VertexStore, in_steps,
};

use crate::checkpoint::RunCheckpoints;
use crate::error::{Error, Result, element, of_batch};
use crate::hubs::{Copies, Hubs, bytes_of_graph};
use crate::process_partitions::ProcessPartitions;
use crate::program::{VertexOf, VertexProgram};
use crate::{Execution, ExecutionOptions, Loading, Partitioner, Partitioning};

pub use crate::options::StoreOptions;
pub use edges::EdgeData;
pub(crate) use edges::{ALONG, Tagged, direction, plain_field};
pub(crate) use memory::{LoadingShares, memory_of_processes};
pub(crate) use shards::edge_bytes;

/// The store of a partition.
pub type StoreOf<V> = Box<dyn VertexStore<V>>;

/// Creates the serializer of a partition's records.
pub type MakeSerializer<'f, V> = dyn Fn() -> brimful_vertices::Result<Box<dyn Serializer<V>>> + 'f;

/// The vertices and edges of a graph to load.
#[derive(Clone, Copy)]
pub(crate) struct GraphPart<'g> {
    pub(crate) graph: &'g Graph,
    /// The indexes whose edges are loaded, in the direction of their signals.
    pub(crate) indexes: &'g [Index],
    /// Vertices, from rank 0 on.
    pub(crate) vertices: u64,
    pub(crate) is_weighted: bool,
}

/// Loads all vertices of `graph` with their outgoing edges into a store, and prepares to run
/// `program` on them. Edges carry their weight if `is_weighted`, else 1. If the run resumes from a
/// checkpoint, the vertices are those of the checkpoint.
///
/// With [`ExecutionOptions::communicator`] the vertices are those of the partitions of this
/// process. All processes have partitions of consecutive vertices with about as much work, a vertex
/// counting as eight edges, and each reads all edges of the graph once.
///
/// # Errors
/// [`Error::Usage`] for an unknown store, missing weights, or vertices of several processes that a
/// hash divides; [`Error::Program`] if a vertex has no initial state; a budget error with the needs
/// of all vertices if they do not fit; errors of the store.
pub fn start<'r, P: VertexProgram<Id = u64, Edge = f64> + Send>(
    program: P,
    (graph, is_weighted): (&Graph, bool),
    (stores, execution): (&StoreOptions<'_>, &ExecutionOptions),
    serializer: &MakeSerializer<'_, VertexOf<P>>,
    checkpoints: Option<&mut RunCheckpoints<'_>>,
    resources: &'r Resources,
) -> Result<Execution<'r, P, StoreOf<VertexOf<P>>>> {
    RunOptions { weighted: is_weighted, ..RunOptions::default() }.check_weights(graph)?;
    let part = GraphPart { graph, indexes: &[Index::In], vertices: graph.vertices(), is_weighted };
    load(program, part, (stores, execution), serializer, checkpoints, resources, &mut Loading::add)
        .map_err(|error| by_external_id(error, graph))
}

/// The same error, with the external id of the vertex instead of its rank.
pub(crate) fn by_external_id(error: Error, graph: &Graph) -> Error {
    error.of_vertex(|rank| {
        let mut bits = [0];
        graph.external_ids(rank.parse().ok()?, &mut bits).ok()?;
        match graph.longest_name() {
            Some(_) => NameCursor::default().label(graph, bits[0]).ok(),
            None => Some(graph.id_type().number(bits[0]).to_string()),
        }
    })
}

/// The same error, with the external id of the vertex at which a kernel on shards failed.
#[must_use]
pub fn of_kernel(error: Error, graph: &Graph) -> Error {
    match error {
        Error::Engine(source @ brimful_engine::Error::Kernel { vertex: Some(vertex), .. }) => {
            by_external_id(of_batch(vertex, "act", source.into()), graph)
        }
        other => other,
    }
}

/// Adds a vertex with this rank and these edges.
pub(crate) type Add<'f, 'r, P> = dyn FnMut(
        &mut Loading<'r, P, StoreOf<VertexOf<P>>>,
        u64,
        Edges<u64, <P as VertexProgram>::Edge>,
    ) -> Result<()>
    + Send
    + 'f;

/// [`start`] for any part of a graph and any type of edge data.
pub(crate) fn load<'r, P: VertexProgram<Id = u64> + Send>(
    program: P,
    part: GraphPart<'_>,
    (options, execution): (&StoreOptions<'_>, &ExecutionOptions),
    serializer: &MakeSerializer<'_, VertexOf<P>>,
    checkpoints: Option<&mut RunCheckpoints<'_>>,
    resources: &'r Resources,
    add: &mut Add<'_, 'r, P>,
) -> Result<Execution<'r, P, StoreOf<VertexOf<P>>>>
where
    P::Edge: EdgeData,
{
    let each = partitions_of(options, resources.workers())?;
    let processes = execution
        .communicator
        .as_ref()
        .map(|communicator| ProcessPartitions::new(communicator, each));
    let all = processes.as_ref().map_or(each, ProcessPartitions::partitions);
    let own = processes.as_ref().map_or(0..each, ProcessPartitions::own);
    let existing = options.kept.filter(|kept| !kept.edges.is_empty());
    let copies = Copies::new(options, size_of::<P::Edge>() as u64, resources.workers().min(each))?;
    let mut hubs = match own.is_empty() {
        true => Hubs::new(copies, &resources.budget)?,
        false => {
            Hubs::of_graph(copies, (part.graph, part.indexes, part.vertices), &resources.budget)?
        }
    };
    // The driver needs less, but the run needs a budget that suffices for the other processes.
    let lists = each + processes.as_ref().map_or(0, ProcessPartitions::partitions);
    let shared = memory::shared(resources, lists, edge_bytes(part.is_weighted))
        + processes.as_ref().map_or(0, ProcessPartitions::minimum_bytes);
    let memory_bytes = memory::of_each_store(resources, each, shared)?;
    let score = program.cache_score().map(|score| -> ScoreFunction<VertexOf<P>> {
        Arc::new(move |vertex| {
            let named = |failure| Error::program(vertex.id(), "give a cache score", failure);
            Ok(score(vertex).map_err(named)?)
        })
    });
    let make = (serializer, score);
    let stores = open(options, own.clone(), memory_bytes, make, resources)?;
    // Kept vertices stay in their partitions.
    let more = if options.kept.is_some() { 0 } else { COLLECT_SIGNALS };
    let partitioner = partitioner(options, part.graph, (part.vertices, more), all)?;
    let ranks = match &processes {
        None => 0..part.vertices,
        Some(_) => partitioner.vertices(own, part.vertices).ok_or_else(needs_ranges)?,
    };
    let mut loading = Loading::divided(program, partitioner, (stores, processes), resources)?;
    let folder = match &execution.scratch_folder {
        Some(folder) => folder.clone(),
        None => scratch_folder(part.graph)?,
    };
    let execution = ExecutionOptions { scratch_folder: Some(folder.clone()), ..execution.clone() };
    let folder = DiskFolder::new(folder);
    let is_resumed = match checkpoints {
        Some(checkpoints) => loading.resume(checkpoints, &mut *serializer()?)?,
        None => false,
    };
    if let Some(kept) = existing.filter(|_| !is_resumed) {
        loading.continue_kept(kept.edges, kept.start)?;
    } else if !is_resumed && !ranks.is_empty() {
        let (mut vertices, mut edges) = (0, 0);
        let within = (&folder as &dyn Folder, resources);
        let mut count_and_add = |rank, its_edges: Edges<u64, P::Edge>| {
            (vertices, edges) = (vertices + 1, edges + its_edges.len() as u64);
            add(&mut loading, rank, its_edges)
        };
        let filled = shards::vertices((part, ranks.clone()), within, &mut hubs, &mut count_and_add);
        if let Err(error) = filled {
            // An estimate: processes have about as many edges.
            let arcs = part.graph.description().arcs * part.indexes.len() as u64 * each as u64;
            let filled = memory::FilledStores {
                bytes: loading.store_bytes()?,
                vertices: (vertices, ranks.end - ranks.start),
                edges: (edges, arcs / all as u64),
            };
            return Err(memory::too_small(error, resources, shared, &filled));
        }
    }
    Execution::start(loading.with_hubs(hubs), &execution)
}

/// The vertices in the stores of all partitions, between two runs.
pub struct Partitions<V> {
    stores: Vec<StoreOf<V>>,
    partitioner: Partitioner<u64>,
}

impl<V: Stored<Id = u64>> Partitions<V> {
    /// Opens the vertices of `graph` that a run left in a store, in memory of `resources`.
    /// `partitioner` is that of the run; `None` for kept vertices, whose partitions follow from the
    /// graph.
    ///
    /// # Errors
    /// Budget errors; errors of the store.
    pub fn open(
        (options, partitions): (&StoreOptions<'_>, usize),
        of_run: Option<Partitioner<u64>>,
        graph: &Graph,
        serializer: &MakeSerializer<'_, V>,
        resources: &Resources,
    ) -> Result<Self> {
        let memory_bytes = resources.budget.free() / 2 / partitions as u64;
        let partitioner = match of_run {
            Some(partitioner) => partitioner,
            None => partitioner(options, graph, (graph.vertices(), 0), partitions)?,
        };
        let stores = open(options, 0..partitions, memory_bytes, (serializer, None), resources)?;
        Ok(Self { stores, partitioner })
    }

    /// The number of the partition of a vertex.
    pub fn partition(&self, id: u64) -> usize {
        self.partitioner.partition(&id, &mut Vec::new(), self.stores.len())
    }

    /// The store of a vertex.
    ///
    /// # Errors
    /// [`Error::Internal`] if the partition of the vertex has no store, through a fault of brimful.
    pub fn store(&mut self, id: u64) -> Result<&mut StoreOf<V>> {
        let partition = self.partition(id);
        element(&mut self.stores, partition, "partition")
    }

    /// The stores of all partitions.
    pub fn stores(&mut self) -> impl Iterator<Item = &mut StoreOf<V>> {
        self.stores.iter_mut()
    }
}

/// The URL of the store `url` for one run, and guards of its folders. A store on disk gets a new
/// folder within each folder that `url` names. Dropping the guards removes the new folders; drop
/// them after the stores.
///
/// # Errors
/// [`Error::Usage`] for an unknown store; I/O.
pub fn of_one_run(url: &str, schemes: &Schemes) -> Result<(String, Vec<TemporaryFolder>)> {
    let Some((name, folders)) = schemes.folders(url)? else {
        return Ok((url.to_owned(), Vec::new()));
    };
    let own = |folder: &Path| TemporaryFolder::create(folder, ".brimful-run-");
    let folders = folders.into_iter().map(own).collect::<Result<Vec<_>, _>>()?;
    let paths: Vec<String> = folders.iter().map(|own| own.path().display().to_string()).collect();
    Ok((format!("{name}:{}", paths.join(",")), folders))
}

/// The number of partitions of a run. Kept vertices stay in their partitions. Otherwise there is
/// one for each worker or each disk, whichever are more, up to the maximum of the store.
pub(crate) fn partitions_of(stores: &StoreOptions<'_>, workers: usize) -> Result<usize> {
    if let Some(kept) = stores.kept.filter(|kept| !kept.edges.is_empty()) {
        return Ok(kept.edges.len());
    }
    let disks = stores.schemes.folders(stores.store)?.map_or(1, |(_, folders)| folders.len());
    let wanted = workers.max(disks);
    Ok(stores.schemes.max_partitions(stores.store)?.map_or(wanted, |most| wanted.min(most)))
}

/// Refuses a budget that is too small to load the graph and run a program with float weights. The
/// error names the sum of both needs, so that the budget that it names works.
///
/// `others` returns the bytes that the caller has yet to reserve, given those of the run.
///
/// # Errors
/// [`brimful_store::Error::Budget`]; [`Error::Usage`] for an unknown store; I/O.
pub fn require_minimum(
    (graph, is_weighted): (&Graph, bool),
    stores: &StoreOptions<'_>,
    others: impl FnOnce(u64) -> u64,
    resources: &Resources,
) -> Result<()> {
    let partitions = partitions_of(stores, resources.workers())?;
    let at_once = resources.workers().min(partitions);
    let copies = Copies::new(stores, size_of::<f64>() as u64, at_once)?;
    let hubs = bytes_of_graph(copies, (graph, &[Index::In], graph.vertices()))?;
    let shared = memory::shared(resources, partitions, edge_bytes(is_weighted)) + in_steps(hubs);
    memory::of_each_store(resources, partitions, shared.saturating_add(others(shared)))?;
    Ok(())
}

/// Opens the stores of all partitions; refuses vertices of another run in them.
fn open<V: Stored>(
    options: &StoreOptions<'_>,
    partitions: Range<usize>,
    memory_bytes: u64,
    (serializer, score): (&MakeSerializer<'_, V>, Option<ScoreFunction<V>>),
    resources: &Resources,
) -> Result<Vec<StoreOf<V>>> {
    let shared = Arc::new(resources.clone());
    let is_of_store = !options.schemes.kind(options.store)?.has_share();
    let memory =
        CacheMemory { budget: &resources.budget, partitions: partitions.len(), is_of_store };
    let is_kept = options.kept.is_some();
    let open = |partition| {
        let of_partition =
            PartitionOptions { partition, resources: Arc::clone(&shared), memory_bytes, is_kept };
        let store = options.schemes.open(options.store, &of_partition, serializer()?)?;
        match options.cache {
            Some(cache) => cache.over(store, score.clone(), memory),
            None => Ok(store),
        }
    };
    let stores = partitions.map(open).collect::<brimful_vertices::Result<Vec<_>>>()?;
    let left: u64 = stores.iter().map(|store| store.len()).sum();
    if left > 0 && options.kept.is_none_or(|kept| kept.edges.is_empty()) {
        return Err(Error::Usage(format!(
            "the store {:?} has {} of another run; remove it or name another",
            options.store,
            counted(left, "vertex")
        )));
    }
    Ok(stores)
}

/// The numbers of vertices and outgoing edges of each process, of the first `vertices` of `graph`.
///
/// # Errors
/// [`Error::Usage`] for vertices that a hash divides; I/O.
pub(crate) fn vertices_of_processes(
    stores: &StoreOptions<'_>,
    graph: &Graph,
    vertices: u64,
    processes: &ProcessPartitions,
) -> Result<Vec<(u64, u64)>> {
    let all = (vertices, COLLECT_SIGNALS);
    let partitioner = partitioner(stores, graph, all, processes.partitions())?;
    let mut degrees = graph.degrees_of_first(vertices);
    let of_process = |index| -> Result<(u64, u64)> {
        let own = partitioner.vertices(processes.of_process(index), vertices);
        let own = own.ok_or_else(needs_ranges)?;
        let count = own.end - own.start;
        // The vertices of processes follow each other.
        let edges = degrees.by_ref().take(count as usize).sum::<brimful_graph::Result<u64>>()?;
        Ok((count, edges))
    };
    (0..processes.communicator.count).map(of_process).collect()
}

/// The error if the vertices of a process are not a range.
fn needs_ranges() -> Error {
    Error::Usage("a run on several processes needs the partitioner range, not hash".into())
}

/// The number of signals that take about as long as the fixed part of collecting a vertex.
const COLLECT_SIGNALS: u64 = 7;

/// The assignment of the first `count` vertices to partitions. A vertex counts as its edges, one,
/// and `more`.
fn partitioner(
    stores: &StoreOptions<'_>,
    graph: &Graph,
    (count, more): (u64, u64),
    partitions: usize,
) -> Result<Partitioner<u64>> {
    if stores.partitioning == Partitioning::Hash {
        return Ok(Partitioner::Hash);
    }
    let degrees = (0..).zip(graph.degrees_of_first(count));
    let all = (count, graph.description().arcs + more * count);
    Partitioner::balanced(degrees.map(|(id, degree)| Ok((id, degree? + more))), all, partitions)
}
