//! Loads vertices into their stores in bulk, with all their edges.
//!
//! Vertices gather by partition. When the reserved memory is full, all partitions store theirs in
//! parallel, while the caller waits.
//! Invariant: of vertices with the same id the first one stays, and the others are counted.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use brimful_store::{Reservation, Resources};
use brimful_vertices::{Edges, Stored, Vertex, VertexStore};
use serde::{Deserialize, Serialize};

use crate::due::DueVertices;
use crate::error::{Error, Result, element};
use crate::hubs::Hubs;
use crate::options::Start;
use crate::partitioner::Partitioner;
use crate::process_partitions::ProcessPartitions;
use crate::program::{VertexOf, VertexProgram};

/// Maximum and minimum bytes of gathered vertices.
const MAX_GATHERED: u64 = 64 << 20;
pub(crate) const MIN_GATHERED: u64 = 1 << 20;
/// Bytes of gathered vertices for one worker and stores without batches, which take them while they
/// are in the processor's cache. The C library keeps so little freed memory for the next vertices.
const GATHERED_ALONE: u64 = 64 << 10;

/// Bytes of gathered vertices if `free` bytes are free; half of them for growing lists.
pub(crate) fn gathered_bytes(free: u64) -> u64 {
    (free / 16).clamp(MIN_GATHERED, MAX_GATHERED)
}

/// Figures of the run that this one resumes.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PriorRun {
    pub(crate) supersteps: u64,
    pub(crate) signals_sent: u64,
    pub(crate) edges_visited: u64,
    /// The number of vertices that are due to signal.
    pub(crate) due: u64,
    /// The string that the caller saved in addition to the vertices.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub(crate) extra_state: String,
}

/// The result of loading.
pub(crate) struct Loaded<P: VertexProgram, S> {
    pub(crate) program: P,
    pub(crate) partitioner: Partitioner<P::Id>,
    /// The stores, and the edges of each; a vertex counts as an edge.
    pub(crate) parts: Vec<(S, u64)>,
    /// Vertices that were skipped, because their id existed already.
    pub(crate) duplicates: u64,
    pub(crate) prior: PriorRun,
    /// The vertices that signal first; `None`: every vertex decides whether it signals.
    pub(crate) due: Option<DueVertices>,
    pub(crate) hubs: Option<Hubs>,
    pub(crate) processes: Option<ProcessPartitions>,
}

/// A partition in loading.
struct LoadingPartition<P: VertexProgram, S> {
    store: S,
    gathered: Vec<VertexOf<P>>,
    edges: u64,
}

/// A program and the stores of its partitions, in loading.
pub struct Loading<'r, P: VertexProgram, S> {
    pub(crate) program: P,
    pub(crate) partitioner: Partitioner<P::Id>,
    pub(crate) resources: &'r Resources,
    parts: Vec<Mutex<LoadingPartition<P, S>>>,
    #[expect(dead_code, reason = "holds the memory of the gathered vertices")]
    memory: Reservation,
    gathered_bytes: u64,
    most_gathered: u64,
    duplicates: u64,
    pub(crate) prior: PriorRun,
    pub(crate) due: Option<DueVertices>,
    /// Reserves the memory for copies of the largest vertices.
    hubs: Option<Hubs>,
    /// The processes of the partitions, if several processes make the run.
    processes: Option<ProcessPartitions>,
    key: Vec<u8>,
}

impl<'r, P: VertexProgram, S: VertexStore<VertexOf<P>>> Loading<'r, P, S> {
    /// Starts loading into `stores`, one for each partition; their existing vertices stay and take
    /// part.
    ///
    /// # Errors
    /// [`Error::Usage`] if there is no store; a budget error if less than a mebibyte is free.
    pub fn new(
        program: P,
        partitioner: Partitioner<P::Id>,
        stores: Vec<S>,
        resources: &'r Resources,
    ) -> Result<Self> {
        if stores.is_empty() {
            return Err(Error::Usage("there is no partition; give at least one store".into()));
        }
        Self::divided(program, partitioner, (stores, None), resources)
    }

    /// Starts loading into the stores of the partitions of this process; the driver of a run has
    /// none.
    ///
    /// # Errors
    /// A budget error if less than a mebibyte is free.
    pub(crate) fn divided(
        program: P,
        partitioner: Partitioner<P::Id>,
        (stores, processes): (Vec<S>, Option<ProcessPartitions>),
        resources: &'r Resources,
    ) -> Result<Self> {
        let bytes = gathered_bytes(resources.budget.free());
        let memory = resources.budget.reserve(bytes, "to load vertices")?;
        let gains_nothing =
            resources.workers() == 1 && stores.iter().all(|store| store.lookahead() == 0);
        let part = |store| Mutex::new(LoadingPartition { store, gathered: Vec::new(), edges: 0 });
        Ok(Self {
            program,
            partitioner,
            resources,
            parts: stores.into_iter().map(part).collect(),
            memory,
            gathered_bytes: 0,
            most_gathered: match gains_nothing {
                true => GATHERED_ALONE,
                // A growing list has up to double the capacity.
                false => bytes / 2,
            },
            duplicates: 0,
            prior: PriorRun::default(),
            due: None,
            hubs: None,
            processes,
            key: Vec::new(),
        })
    }

    /// Holds the memory of `hubs` as long as the vertices.
    pub(crate) fn with_hubs(self, hubs: Hubs) -> Self {
        Self { hubs: Some(hubs), ..self }
    }

    /// The program.
    pub fn program(&self) -> &P {
        &self.program
    }

    /// Adds the vertex `id` with all its edges, in its initial state.
    ///
    /// # Errors
    /// [`Error::Program`] if the program has no initial state for it; else those of its store.
    pub fn add(&mut self, id: P::Id, edges: Edges<P::Id, P::Edge>) -> Result<()> {
        let state = self.program.initial(&id, &edges);
        let state =
            state.map_err(|failure| Error::program(&id, "make the first state", failure))?;
        self.add_vertex(Vertex::new(id, state, edges))
    }

    /// Adds a vertex with the state that it has.
    ///
    /// # Errors
    /// Errors of its store.
    pub fn add_vertex(&mut self, vertex: VertexOf<P>) -> Result<()> {
        let processes = self.processes.as_ref();
        let partitions = processes.map_or(self.parts.len(), ProcessPartitions::partitions);
        let first = processes.map_or(0, |processes| processes.own().start);
        let partition = self.partitioner.partition(vertex.id(), &mut self.key, partitions);
        self.gathered_bytes += (size_of::<VertexOf<P>>() + vertex.heap_bytes()) as u64;
        // A partition of another process has no element.
        let part = element(&mut self.parts, partition.wrapping_sub(first), "partition")?;
        let part = part.get_mut().unwrap_or_else(PoisonError::into_inner);
        part.edges += vertex.edges().len() as u64 + 1;
        part.gathered.push(vertex);
        if self.gathered_bytes > self.most_gathered {
            self.store()?;
        }
        Ok(())
    }

    /// Bytes of memory of the stores.
    pub(crate) fn store_bytes(&mut self) -> Result<u64> {
        let part = |part: &mut Mutex<LoadingPartition<P, S>>| {
            Ok(part.get_mut().unwrap_or_else(PoisonError::into_inner).store.stats()?.memory_bytes)
        };
        self.parts.iter_mut().map(part).sum()
    }

    /// Stores the gathered vertices.
    fn store(&mut self) -> Result<()> {
        self.gathered_bytes = 0;
        let (parts, job, next) = (&self.parts, &self.resources.job, AtomicUsize::new(0));
        let store = || {
            let mut duplicates = 0;
            while let Some(part) = parts.get(next.fetch_add(1, Ordering::Relaxed)) {
                job.check()?;
                let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
                let LoadingPartition { store, gathered, .. } = &mut *part;
                duplicates += store.load(&mut gathered.drain(..))?;
            }
            Ok::<u64, Error>(duplicates)
        };
        // A caller on a thread of the pool must not wait for the other threads.
        let works_here = self.resources.workers() == 1 || rayon::current_thread_index().is_some();
        let results = match works_here {
            true => vec![store()],
            false => self.resources.broadcast(|_| store()),
        };
        for duplicates in results {
            self.duplicates += duplicates?;
        }
        Ok(())
    }

    /// Gives vertices that are in the stores already their first states, and sets the edges of
    /// each partition.
    pub(crate) fn continue_kept(&mut self, edges: &[u64], start: Start) -> Result<()> {
        let Self { program, parts, resources, .. } = self;
        for (part, edges) in parts.iter_mut().zip(edges) {
            part.get_mut().unwrap_or_else(PoisonError::into_inner).edges = *edges;
        }
        if start == Start::Continue {
            return Ok(());
        }
        let (program, parts, resources) = (&*program, &*parts, *resources);
        let all = resources.parallel_map(parts.len(), |index, (): &mut ()| -> Result<()> {
            let Some(part) = parts.get(index) else { return Ok(()) };
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let done = part.store.for_each(&mut |vertex| {
                resources.job.check()?;
                let state = program.restart(vertex).map_err(|failure| {
                    Error::program(vertex.id(), "make the first state", failure)
                })?;
                vertex.state = state;
                vertex.forget_signals();
                Ok(())
            });
            // Even after an error of the program, so that the files of the store are consistent.
            part.store.sync()?;
            Ok(done?)
        });
        all.map(drop)
    }

    /// Stores the remaining vertices and ends loading.
    pub(crate) fn finish(mut self) -> Result<Loaded<P, S>> {
        self.store()?;
        let Self { program, partitioner, parts, duplicates, prior, due, hubs, processes, .. } =
            self;
        let part = |part: Mutex<LoadingPartition<P, S>>| {
            part.into_inner().unwrap_or_else(PoisonError::into_inner)
        };
        let parts = parts.into_iter().map(part).map(|part| (part.store, part.edges)).collect();
        Ok(Loaded { program, partitioner, parts, duplicates, prior, due, hubs, processes })
    }
}
