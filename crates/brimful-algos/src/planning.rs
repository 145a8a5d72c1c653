//! Forecasts of requests: each algorithm names the program that a request would run; the engine
//! forecasts its cost.

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::forecast::{Forecast, Setting, Steps};
use brimful_engine::plan::needs::{GatherNeeds, Needs};
use brimful_engine::plan::partitioning::Cluster;
use brimful_engine::{Gather, Program};
use brimful_execution::numeric;
use brimful_execution::numeric::forecast::{Planned, Taken};
use brimful_graph::build::sizes::Sizes;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::diameter::supersteps_across;
use crate::parameter::ParameterInfo;
use crate::request::{Request, StoreChoice};
use crate::{Error, Result};

/// The factor of passes over the edges in a wide graph: until edges are unpacked, a block is read
/// for each of its sources that signals.
const WIDE: f64 = 8.0;

/// The graph of a forecast.
#[derive(Debug, Clone, Copy)]
pub enum Subject<'g> {
    /// A graph on disk.
    Graph(&'g Graph),
    /// A graph that is not built.
    Sizes(Sizes),
}

/// The condition under which a method that holds the whole graph, or arrays of all vertices, in
/// memory replaces supersteps.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum InMemory {
    /// In any budget.
    Always,
    /// If the budget is large enough.
    IfItFits,
    /// In no budget.
    Never,
}

impl InMemory {
    /// The choice of a request between the method `in_memory` and the method `other`, which has
    /// supersteps.
    pub(crate) fn chosen(
        request: &Request,
        method: &ParameterInfo,
        in_memory: &'static str,
        other: &'static str,
    ) -> Result<Self> {
        let method = method.word(request)?;
        let in_supersteps = request.max_supersteps.is_some()
            || request.store.is_some()
            || request.checkpoints.is_some()
            || request.is_divided();
        if method == in_memory && in_supersteps {
            let problem = format!(
                "the method {in_memory} has no supersteps to limit, no store, no checkpoints and \
                 no cluster; use the method {other}"
            );
            return Err(Error::Usage(problem));
        }
        Ok(match method {
            "auto" if !in_supersteps => Self::IfItFits,
            _ if method == in_memory => Self::Always,
            _ => Self::Never,
        })
    }

    /// True if the method is to run in a budget of `limit` bytes; `least` is the smallest budget of
    /// the method; `None` if the graph is too large for it.
    pub(crate) fn applies(self, least: Option<u64>, limit: u64) -> bool {
        match self {
            Self::Always => true,
            Self::IfItFits => least.is_some_and(|least| least <= limit),
            Self::Never => false,
        }
    }

    /// The forecast of the method, or of supersteps; `method` is an error if the graph is too large
    /// for it. If the budget decides, the minimum budget is the smaller one of both.
    pub(crate) fn forecast(
        self,
        limit: u64,
        method: Result<Forecast>,
        supersteps: impl FnOnce() -> Result<Forecast>,
    ) -> Result<Forecast> {
        match (self, method) {
            (Self::Always, method) => method,
            (Self::Never, _) | (Self::IfItFits, Err(_)) => supersteps(),
            (Self::IfItFits, Ok(method)) => {
                let (least, other) = (method.minimum_bytes, supersteps()?);
                let minimum_bytes = least.min(other.minimum_bytes);
                Ok(Forecast { minimum_bytes, ..if least <= limit { method } else { other } })
            }
        }
    }
}

/// Refuses a budget on shards that is too small for each of two methods; the error names the
/// smaller of the two minimum budgets, which `plan` forecasts.
pub(crate) fn require_either(
    request: &Request,
    graph: &Graph,
    resources: &Resources,
    plan: impl Fn(&Planner<'_>) -> Result<Forecast>,
    purpose: &str,
) -> Result<()> {
    if request.store.is_some() {
        return Ok(());
    }
    let planner = Planner::of_run(request, graph, resources)?;
    Ok(resources.budget.require(plan(&planner)?.minimum_bytes, purpose)?)
}

/// A request to forecast, with its graph and resources.
#[derive(Debug, Clone, Copy)]
pub struct Planner<'p> {
    pub(crate) request: &'p Request,
    subject: Subject<'p>,
    workers: usize,
    /// Budget in bytes, beyond those of the process.
    limit: u64,
}

impl<'p> Planner<'p> {
    /// A planner for `subject`.
    ///
    /// # Errors
    /// [`brimful_engine::Error::Usage`] for weights that a graph does not have.
    pub(crate) fn new(
        request: &'p Request,
        subject: Subject<'p>,
        workers: usize,
        limit: u64,
    ) -> Result<Self> {
        if let Subject::Graph(graph) = subject {
            request.options(0).check_weights(graph)?;
        }
        Ok(Self { request, subject, workers, limit })
    }

    /// A planner for a run.
    ///
    /// # Errors
    /// As [`Planner::new`].
    pub(crate) fn of_run(
        request: &'p Request,
        graph: &'p Graph,
        resources: &Resources,
    ) -> Result<Self> {
        let (workers, limit) = (resources.workers(), resources.budget.limit());
        Self::new(request, Subject::Graph(graph), workers, limit)
    }

    /// Calls `plan` with a planner for the same request in the synchronous mode.
    pub(crate) fn in_supersteps<T>(&self, plan: impl FnOnce(&Planner<'_>) -> T) -> T {
        let request = Request { asynchronous: false, ..self.request.clone() };
        plan(&Planner { request: &request, ..*self })
    }

    /// The forecast of `program` over shards, or in the store of the request.
    pub(crate) fn program<P: Program>(&self, program: &P, steps: Steps) -> Result<Forecast> {
        let (needs, asynchronous) = (Needs::of(program), self.request.asynchronous);
        let (extent, steps) = (self.extent(needs.indexes), self.limited(steps));
        let cluster = self.cluster(needs.indexes, &extent)?;
        let setting = Setting { cluster: cluster.as_ref(), ..self.setting(&extent) };
        if let Some(store) = &self.request.store {
            store.mode(asynchronous)?;
            let Taken { minimum, memory, result, scratch } =
                self.on_store(store, &needs, &extent)?;
            return Ok(setting.forecast_other([minimum, memory, result, scratch], steps));
        }
        let first = Needs::first_indexes(program, extent.vertices);
        Ok(setting.forecast_program(&needs, first, asynchronous, steps)?)
    }

    /// The forecast of a run on `store`.
    fn on_store(&self, store: &StoreChoice, needs: &Needs, extent: &Extent) -> Result<Taken> {
        let (all, directed) = match self.subject {
            Subject::Graph(graph) => (graph.vertices(), graph.description().directed),
            Subject::Sizes(sizes) => (sizes.vertices, !sizes.undirected),
        };
        let stores = store.options();
        let (weighted, workers) = (extent.weighted, self.workers);
        let hubs = match self.subject {
            Subject::Graph(graph) => {
                numeric::forecast::hub_bytes(needs, graph, &stores, (weighted, workers))?
            }
            // The degrees of single vertices are unknown.
            Subject::Sizes(_) => 0,
        };
        let planned = Planned {
            stores,
            serializer: store.serializer.as_deref(),
            lists: store.lists,
            vertices: (all, extent.vertices),
            edges: extent.edges(),
            directed,
            weighted,
            workers,
            limit: self.limit,
            hubs,
        };
        numeric::forecast::forecast(needs, &planned)
    }

    /// The forecast of `program` over neighbor lists.
    pub(crate) fn gather<G: Gather>(&self, program: &G, steps: Steps) -> Result<Forecast> {
        let needs = GatherNeeds::of(program);
        let extent = self.extent(needs.indexes);
        let cluster = self.cluster(needs.indexes, &extent)?;
        let setting = Setting { cluster: cluster.as_ref(), ..self.setting(&extent) };
        Ok(setting.forecast_gather(&needs, self.limited(steps))?)
    }

    /// The forecast of scans of the forward index with arrays; `arrays` returns their bytes during
    /// and after the scans, and the bytes of the result.
    pub(crate) fn scans(
        &self,
        passes: u64,
        arrays: impl Fn(&Setting<'_>) -> (u64, u64, u64),
    ) -> Forecast {
        self.of_scan(|setting| {
            let (scanning, after, result) = arrays(setting);
            setting.forecast_scans((scanning, after), result, passes)
        })
    }

    /// The result of `ask` for a scan of the forward index.
    pub(crate) fn of_scan<T>(&self, ask: impl Fn(&Setting<'_>) -> T) -> T {
        self.of_indexes(&[Index::In], ask)
    }

    /// The result of `ask` for a scan of these indexes.
    pub(crate) fn of_indexes<T>(&self, indexes: &[Index], ask: impl Fn(&Setting<'_>) -> T) -> T {
        ask(&self.setting(&self.extent(indexes)))
    }

    /// Budget in bytes, beyond those of the process.
    pub(crate) fn limit(&self) -> u64 {
        self.limit
    }

    /// True if offsets of external ids fit in 32 bits. The ids of a graph that is not built are
    /// assumed to be consecutive.
    pub(crate) fn has_narrow_id_offsets(&self) -> Result<bool> {
        Ok(fits_narrow(match self.subject {
            Subject::Graph(graph) => graph.largest_id_offset()?,
            Subject::Sizes(sizes) => sizes.vertices,
        }))
    }

    /// False if every edge leads both ways.
    pub(crate) fn is_directed(&self) -> bool {
        match self.subject {
            Subject::Graph(graph) => graph.description().directed,
            Subject::Sizes(sizes) => !sizes.undirected,
        }
    }

    /// The number of vertices with edges.
    pub(crate) fn connected(&self) -> u64 {
        match self.subject {
            Subject::Graph(graph) => graph.connected(),
            Subject::Sizes(sizes) => sizes.vertices,
        }
    }

    /// The number of stored arcs.
    pub(crate) fn arcs(&self) -> u64 {
        match self.subject {
            Subject::Graph(graph) => graph.description().arcs,
            Subject::Sizes(sizes) => sizes.arcs(),
        }
    }

    /// The result of `measure` for a graph on disk; `default` for a graph that is not built.
    pub(crate) fn of_graph<T>(&self, measure: impl FnOnce(&Graph) -> T, default: T) -> T {
        match self.subject {
            Subject::Graph(graph) => measure(graph),
            Subject::Sizes(_) => default,
        }
    }

    fn extent(&self, indexes: &[Index]) -> Extent {
        match self.subject {
            Subject::Graph(graph) => Extent::of(graph, indexes, self.request.weighted),
            Subject::Sizes(sizes) => {
                Extent::estimate(&Sizes { weighted: self.request.weighted, ..sizes }, indexes)
            }
        }
    }

    fn setting<'e>(&self, extent: &'e Extent) -> Setting<'e> {
        Setting { extent, workers: self.workers, limit: self.limit, cluster: None }
    }

    /// The cluster of the request, with the parts of a graph of this extent.
    fn cluster(&self, indexes: &[Index], extent: &Extent) -> Result<Option<Cluster>> {
        let Some(size) = self.request.cluster_size else { return Ok(None) };
        Ok(Some(match self.subject {
            Subject::Graph(graph) => Cluster::of(size, graph, indexes, extent),
            Subject::Sizes(_) => Cluster::even(size, extent),
        }))
    }

    /// The steps of a program whose signals spread from vertex to vertex: `narrow`, unless the
    /// graph is wide.
    pub(crate) fn spreading(&self, narrow: Steps) -> Result<Steps> {
        let across = match self.subject {
            Subject::Graph(graph) => supersteps_across(graph)?,
            // The graph is not built, so its width is unknown.
            Subject::Sizes(_) => None,
        };
        Ok(across.map_or(narrow, |supersteps| {
            let steps = Steps::about(supersteps.max(narrow.supersteps), WIDE * narrow.passes);
            Steps { wide: true, ..steps }
        }))
    }

    fn limited(&self, steps: Steps) -> Steps {
        self.request.max_supersteps.map_or(steps, |most| steps.at_most(most))
    }
}

/// Supersteps until a change of 2 that shrinks by the factor `damping` in each superstep falls to
/// `tolerance`, but at most `most`; `most` for a tolerance of 0.
pub(crate) fn supersteps_of_a_power(damping: f64, tolerance: f64, most: u64) -> u64 {
    let bound = (tolerance / 2.0).ln() / damping.ln();
    if bound.is_finite() { (bound.ceil().max(1.0) as u64).min(most) } else { most }
}

/// True if 32-bit labels can hold all offsets of ids up to `range`, and one greater value.
pub fn fits_narrow(range: u64) -> bool {
    range < u64::from(u32::MAX)
}
