//! The request of a caller to an algorithm, and its result.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful_engine::checkpoint::CheckpointOptions;
use brimful_engine::exchange::Communicator;
use brimful_engine::plan::partitioning::ClusterSize;
use brimful_engine::{
    self as engine, Output, Program, Reason, ResultTable, RowTable, RunOptions, Stats, Values,
};
use brimful_execution::from_graph::StoreOptions;
use brimful_execution::numeric::{self, NumericOptions};
use brimful_execution::{self as execution, ListLocation, Partitioning, RunMode, Scheduler};
use brimful_graph::Graph;
use brimful_graph::build::import::EdgeStream;
use brimful_graph::codec::WeightType;
use brimful_graph::ids::external::ExternalId;
use brimful_store::{Job, Resources};
use brimful_vertices::Schemes;
use brimful_vertices::cache::Choice;

use brimful_graph::read::name_cursor::NameCursor;

use crate::sources::Sources;
use crate::{Error, Result};

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq)]
pub enum Parameter {
    /// A number.
    Number(f64),
    /// A word.
    Word(String),
    /// A list of numbers.
    Numbers(Vec<f64>),
}

impl fmt::Display for Parameter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Word(word) => word.fmt(f),
            Self::Numbers(numbers) => {
                let texts: Vec<String> = numbers.iter().map(f64::to_string).collect();
                texts.join(",").fmt(f)
            }
        }
    }
}

/// A request to run an algorithm.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Name of the algorithm, as in the registry.
    pub algorithm: String,
    /// Parameters of the algorithm, by name; the defaults apply to the others.
    pub parameters: BTreeMap<String, Parameter>,
    /// External ids of the sources, in any order; empty if there are none.
    pub sources: Vec<ExternalId>,
    /// The weight of each source, in the same order; empty if all weights are equal.
    pub source_weights: Vec<f64>,
    /// Pairs of vertices, if there are any.
    pub pairs: Option<Pairs>,
    /// Use 32-bit signals.
    pub narrow: bool,
    /// Use edge weights.
    pub weighted: bool,
    /// True: signals are received within the same sweep. In a store, the run then has no
    /// supersteps.
    pub asynchronous: bool,
    /// The store of the vertices; `None`: the run is on shards.
    pub store: Option<StoreChoice>,
    /// The tolerance for stopping; `None`: the algorithm's default.
    pub tolerance: Option<f64>,
    /// The maximum number of supersteps; `None`: the algorithm's default.
    pub max_supersteps: Option<u64>,
    /// Checkpoint and resume options. The registry fills in their identity.
    pub checkpoints: Option<CheckpointOptions>,
    /// The connection to the other processes, if several make the run; `None`: this process
    /// makes the whole run.
    pub communicator: Option<Communicator>,
    /// The workers of the cluster, in a forecast for one.
    pub cluster_size: Option<ClusterSize>,
}

/// A table of pairs of vertices, read once; clones share it.
#[derive(Clone, Default)]
pub struct Pairs(Option<Arc<Mutex<dyn EdgeStream>>>);

impl Pairs {
    /// The pairs are the edges of `stream`. [`Pairs::default`] has no stream, and is for forecasts,
    /// which read no pairs.
    pub fn new(stream: impl EdgeStream + 'static) -> Self {
        Self(Some(Arc::new(Mutex::new(stream))))
    }

    /// The stream, locked for the caller; `None` if there is no stream.
    pub(crate) fn stream(&self) -> Option<MutexGuard<'_, dyn EdgeStream + 'static>> {
        let stream = self.0.as_ref()?;
        Some(stream.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl fmt::Debug for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pairs").finish_non_exhaustive()
    }
}

/// A store of vertices, and its options.
#[derive(Debug, Clone)]
pub struct StoreChoice {
    /// URL of the store.
    pub url: String,
    /// The available kinds of stores, by URL scheme.
    pub schemes: Arc<Schemes>,
    /// Name of the serializer of vertices (see [`brimful_vertices::serializer::named()`]); `None`:
    /// the layout in memory.
    pub serializer: Option<String>,
    /// The cache in front of the store; `None`: no cache.
    pub cache: Option<Choice>,
    /// The location of vertices that wait to signal, and of signals that wait to be collected.
    pub lists: ListLocation,
    /// The assignment of vertices to partitions.
    pub partitioning: Partitioning,
    /// The order of vertices in the asynchronous mode; `None`: the default.
    pub schedule: Option<Scheduler>,
}

impl StoreChoice {
    /// The options of the store for a run.
    pub fn options(&self) -> StoreOptions<'_> {
        StoreOptions {
            store: &self.url,
            schemes: &self.schemes,
            cache: self.cache,
            partitioning: self.partitioning,
            kept: None,
        }
    }

    /// The mode of the run.
    ///
    /// # Errors
    /// [`execution::Error::Usage`] if the run has supersteps and a scheduler is given.
    pub fn mode(&self, asynchronous: bool) -> execution::Result<RunMode> {
        match (asynchronous, self.schedule) {
            (true, schedule) => Ok(RunMode::Asynchronous(schedule.unwrap_or_default())),
            (false, None) => Ok(RunMode::Synchronous),
            (false, Some(_)) => Err(execution::Error::Usage(
                "--scheduler applies to the asynchronous mode only; add --mode async, or leave \
                 --scheduler out"
                    .into(),
            )),
        }
    }
}

/// A finished run.
#[derive(Debug)]
pub struct Finished<T = ResultTable> {
    /// The result.
    pub table: T,
    /// The figures of the run.
    pub stats: engine::Stats,
    /// The variant of the algorithm that ran.
    pub variant: &'static str,
}

/// A finished run with a table of rows.
pub type FinishedRows = Finished<RowTable>;

/// The tolerance of a program.
///
/// # Errors
/// A message, if it is not at least 0.
pub(crate) fn checked_tolerance(tolerance: f64) -> std::result::Result<f64, String> {
    match tolerance >= 0.0 {
        true => Ok(tolerance),
        false => Err(format!("tolerance must be at least 0, not {tolerance}")),
    }
}

impl Request {
    /// Refuses a request without sources, for an algorithm that needs them.
    pub(crate) fn require_sources(&self) -> Result<()> {
        if !self.sources.is_empty() {
            return Ok(());
        }
        let name = &self.algorithm;
        let problem = format!("{name} needs a source vertex; name it with --source ID");
        Err(Error::Usage(problem))
    }

    /// The sources of the request.
    pub(crate) fn sources(&self, graph: &Graph, job: &Job) -> Result<Sources> {
        self.require_sources()?;
        Sources::find(&self.sources, &self.source_weights, graph, job)
    }

    /// Runs `program` with the options of the request, on shards or on its store. `max_supersteps`
    /// is the limit if the request has none.
    ///
    /// # Errors
    /// Errors of the run; `Error::Usage` if its options do not fit the graph or the store.
    pub fn run<P: Program>(
        &self,
        program: &P,
        max_supersteps: u64,
        graph: &Graph,
        resources: &Resources,
    ) -> Result<Output<P>> {
        self.run_with(program, self.options(max_supersteps), graph, resources)
    }

    /// Runs `program`, which has finished after `supersteps` supersteps. The caller refuses another
    /// number in the request.
    ///
    /// # Errors
    /// As [`Request::run`].
    pub(crate) fn run_all<P: Program>(
        &self,
        program: &P,
        supersteps: u64,
        graph: &Graph,
        resources: &Resources,
    ) -> Result<Output<P>> {
        let mut output = self.run(program, supersteps, graph, resources)?;
        let Stats { reason, supersteps: done, .. } = &mut output.stats;
        if *reason == Reason::MaxSupersteps && *done == supersteps {
            *reason = Reason::Finished;
        }
        Ok(output)
    }

    /// Runs `program` on shards, or on the store of the request.
    pub(crate) fn run_with<P: Program>(
        &self,
        program: &P,
        options: RunOptions,
        graph: &Graph,
        resources: &Resources,
    ) -> Result<Output<P>> {
        let Some(store) = &self.store else {
            return Ok(engine::run(program, graph, &options, resources)?);
        };
        let options = NumericOptions {
            stores: store.options(),
            serializer: store.serializer.as_deref(),
            mode: store.mode(self.asynchronous)?,
            lists: store.lists,
            run: options,
        };
        numeric::run(program, graph, &options, resources)
    }

    /// True if several processes make the run.
    pub fn is_divided(&self) -> bool {
        self.communicator.is_some() || self.cluster_size.is_some()
    }

    /// The options of a run; `max_supersteps` is the limit if the request has none.
    pub(crate) fn options(&self, max_supersteps: u64) -> RunOptions {
        RunOptions {
            max_supersteps: self.max_supersteps.unwrap_or(max_supersteps),
            weighted: self.weighted,
            // A store has a separate asynchronous mode.
            asynchronous: self.asynchronous && self.store.is_none(),
            checkpoints: self.checkpoints.clone(),
            communicator: self.communicator.clone(),
            ..Default::default()
        }
    }

    /// Refuses a limit of supersteps, for an algorithm that has none.
    pub(crate) fn refuse_max_supersteps(&self) -> Result<()> {
        if self.max_supersteps.is_none() {
            return Ok(());
        }
        Err(inapplicable("max-supersteps", &self.algorithm))
    }

    /// Refuses negative weights, if the run uses weights.
    pub(crate) fn refuse_negative_weights(&self, graph: &Graph, job: &Job) -> Result<()> {
        let Some(range) =
            graph.description().weights.filter(|range| self.weighted && range.any_negative())
        else {
            return Ok(());
        };
        let is_negative = |_, _, weight: f64| Ok(weight < 0.0);
        let example =
            match graph.find_edge(&[WeightType::F32, WeightType::F64], job, is_negative)? {
                Some((source, target, weight)) => {
                    let (source, target) = (shown(graph, source)?, shown(graph, target)?);
                    format!("the edge from {source} to {target} has {weight}, and ")
                }
                None => String::new(),
            };
        let problem = format!(
            "{} needs weights of at least 0; {example}the smallest is {}; run it without \
             --weighted or import the graph with other weights",
            self.algorithm, range.min
        );
        Err(brimful_graph::Error::input(graph.path(), problem).into())
    }
}

/// The error for an option that does not apply to an algorithm or a method.
pub(crate) fn inapplicable(option: &str, name: &str) -> Error {
    Error::Usage(format!("--{option} does not apply to {name}; leave it out"))
}

impl Finished {
    /// A result with the column `name`.
    pub(crate) fn new(
        graph: &Arc<Graph>,
        name: &'static str,
        values: Values,
        stats: engine::Stats,
        variant: &'static str,
    ) -> Result<Self> {
        let table = ResultTable::new(Arc::clone(graph), name, values)?;
        Ok(Self { table, stats, variant })
    }
}

/// The external id of a vertex as messages show it.
pub(crate) fn shown(graph: &Graph, vertex: u64) -> Result<String> {
    let mut bits = [0];
    graph.external_ids(vertex, &mut bits)?;
    Ok(match graph.longest_name() {
        Some(_) => format!("{:?}", NameCursor::default().labels(graph, &bits)?.get(0)),
        None => graph.id_type().number(bits[0]).to_string(),
    })
}
