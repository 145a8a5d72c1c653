//! `plan`: the forecast of a run, and of an import before it.

use std::path::PathBuf;
use std::sync::Arc;

use brimful::algos::planning::Subject;
use brimful::algos::registry::{Request, plan_request};
use brimful::engine::Error as EngineError;
use brimful::engine::checkpoint::CheckpointOptions;
use brimful::engine::plan::exchange::ExchangeForecast;
use brimful::engine::plan::forecast::{Bandwidths, Forecast};
use brimful::engine::plan::speed::working_bandwidth;
use brimful::graph::build::import::forecast::{self, Forecast as ImportForecast, Reading};
use brimful::graph::build::sizes::Sizes;
use brimful::graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful::store::Budget;
use brimful::store::bandwidth::disk_bandwidth;
use brimful::store::memory::resident_bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::call::{Limits, whole, with_resources};
use crate::errors::Failure;
use crate::graph::Graph;
use crate::plugin::library_bytes;
use crate::request::{Asked, request};

/// The forecast of a run for a process, as Python sees it.
pub(crate) struct Prediction {
    forecast: Forecast,
    /// The limits of the run. Its reserve is 0 if the memory of later work is free during the run.
    limits: Limits,
    /// Memory of later work, in bytes.
    reserve_bytes: u64,
    /// The budget before the run, because the process grows during it.
    budget: Arc<Budget>,
    /// Resident memory of the process before the run, in bytes.
    resident: u64,
    /// Memory of the library of a store, in bytes.
    library_bytes: u64,
    fits: bool,
}

impl Prediction {
    /// The forecast of a request for `subject` within `limits`, besides the memory of the library
    /// of a store. A run that fits beside the memory of later work also uses that memory, if its
    /// result leaves it free.
    pub(crate) fn new(
        request: &Request,
        subject: Subject<'_>,
        limits: Limits,
        library_bytes: u64,
    ) -> Result<Self, Failure> {
        let beside = Self {
            library_bytes,
            ..Self::within(request, subject, limits.beside(library_bytes), limits.reserve_bytes)?
        };
        // Drivers of databases keep memory after the run.
        let shares = limits.reserve_bytes > 0 && request.store.is_none() && !request.is_divided();
        if !(shares && beside.fits) {
            return Ok(beside);
        }
        let during = Limits { reserve_bytes: 0, ..limits };
        let whole = Self::within(request, subject, during, limits.reserve_bytes)?;
        let leaves_room = whole.forecast.result_bytes <= beside.budget.limit();
        Ok(if leaves_room { whole } else { beside })
    }

    fn within(
        request: &Request,
        subject: Subject<'_>,
        limits: Limits,
        reserve_bytes: u64,
    ) -> Result<Self, Failure> {
        let (budget, resident) = (limits.budget(), resident_bytes().unwrap_or(0));
        let forecast = plan_request(request, subject, limits.workers(), budget.limit())?;
        let fits = forecast.minimum_bytes <= budget.limit();
        Ok(Self { forecast, limits, reserve_bytes, budget, resident, library_bytes: 0, fits })
    }

    /// The limits of the run.
    pub(crate) fn limits(&self) -> Limits {
        self.limits
    }

    /// The figures of the forecast, except for time.
    pub(crate) fn figures<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        let Self { forecast, limits, reserve_bytes, budget, resident, library_bytes, fits } = self;
        // The worker of a cluster is another process, and has Ray in it.
        let resident = if forecast.exchange.is_some() { 0 } else { *resident };
        let peak = forecast.peak_bytes().max(forecast.result_bytes + reserve_bytes);
        out.set_item("fits", fits)?;
        out.set_item("minimum_budget_bytes", whole(budget, forecast.minimum_bytes))?;
        out.set_item("in_memory_budget_bytes", whole(budget, forecast.in_memory_bytes))?;
        out.set_item("budget_bytes", budget.total())?;
        out.set_item("threads", limits.workers())?;
        out.set_item("peak_memory_bytes", resident + library_bytes + peak)?;
        out.set_item("disk_bytes", forecast.disk_bytes())?;
        out.set_item("scratch_bytes", forecast.scratch_bytes)?;
        out.set_item("index_bytes", forecast.index.map_or(0, |index| index.graph_bytes))?;
        let moved = |bytes: u64| forecast.moves.then_some(bytes);
        out.set_item("read_once_bytes", moved(forecast.read_once_bytes))?;
        out.set_item("read_bytes_per_superstep", moved(forecast.read_bytes))?;
        out.set_item("written_bytes_per_superstep", moved(forecast.written_bytes))?;
        out.set_item("supersteps", forecast.steps.supersteps)?;
        out.set_item("supersteps_guessed", forecast.steps.guessed)?;
        out.set_item("passes", forecast.steps.passes)?;
        let exchange = forecast.exchange;
        out.set_item("workers", exchange.map(|exchange| exchange.workers))?;
        out.set_item("sent_bytes_per_superstep", exchange.map(|exchange| exchange.sent_bytes))?;
        out.set_item(
            "received_bytes_per_superstep",
            exchange.map(|exchange| exchange.received_bytes),
        )?;
        out.set_item("exchange_memory_bytes", exchange.map(|exchange| exchange.memory_bytes))?;
        out.set_item("start_seconds", exchange.map(|_| ExchangeForecast::START_SECONDS))?;
        Ok(out)
    }
}

/// The forecast of an import for a process, as Python sees it.
fn import_figures<'py>(
    py: Python<'py>,
    import: &ImportForecast,
    limits: Limits,
    resident: u64,
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("minimum_budget_bytes", limits.whole(import.minimum_bytes))?;
    out.set_item("peak_memory_bytes", resident + import.memory_bytes)?;
    out.set_item("temporary_bytes", import.temporary_bytes)?;
    out.set_item("graph_bytes", import.graph_bytes)?;
    out.set_item("disk_bytes", import.graph_bytes.saturating_add(import.temporary_bytes))?;
    Ok(out)
}

/// The forecast of an import, except for time.
#[pyfunction]
#[pyo3(signature = (sizes, *, weighted, resources))]
pub(crate) fn plan_import(
    py: Python<'_>,
    sizes: GivenSizes,
    weighted: bool,
    resources: Limits,
) -> PyResult<Bound<'_, PyDict>> {
    let limits = resources;
    let reading = sizes.reading(weighted)?;
    let graph_sizes = sizes.sizes(reading.policy.weighted(weighted) || sizes.hashes_weights)?;
    let import =
        forecast::forecast(&graph_sizes, &reading, limits.budget().limit(), limits.workers());
    // A reader reserves memory for the largest possible pages; mostly it takes a quarter.
    import_figures(py, &import, limits, resident_bytes().unwrap_or(0) + limits.reserve_bytes / 4)
}

/// The machine of a forecast: bandwidths in GB/s, as given or measured.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct Machine {
    memory: Option<f64>,
    disk: Option<f64>,
    /// The network in Gbit/s.
    network: f64,
    /// The threads of all processes on it.
    threads: usize,
    /// The folder in which the disk is measured.
    folder: PathBuf,
}

impl Machine {
    fn bandwidths(&self, py: Python<'_>, limits: Limits) -> PyResult<Bandwidths> {
        let bandwidth = |value: Option<f64>, name: &str| match value {
            Some(value) if !(value.is_finite() && value > 0.0) => {
                let problem = format!("{name} must be a number of GB/s above 0, not {value}");
                Err(Failure::from(EngineError::Usage(problem)))
            }
            other => Ok(other.map(|gigabytes| gigabytes * 1e9)),
        };
        let (memory, disk) = (bandwidth(self.memory, "memory")?, bandwidth(self.disk, "disk")?);
        if !(self.network.is_finite() && self.network > 0.0) {
            let problem =
                format!("network must be a number of Gbit/s above 0, not {}", self.network);
            return Err(Failure::from(EngineError::Usage(problem)).into());
        }
        let network = self.network * 1e9 / 8.0;
        if let (Some(memory), Some(disk)) = (memory, disk) {
            return Ok(Bandwidths { memory, disk, network });
        }
        let limits = Limits { threads: Some(self.threads), ..limits };
        with_resources(py, None, limits, |resources| {
            let here =
                || disk_bandwidth(&self.folder).or_else(|_| disk_bandwidth(&std::env::temp_dir()));
            Ok(Bandwidths {
                memory: memory.unwrap_or_else(|| working_bandwidth(resources)),
                disk: match disk {
                    Some(disk) => disk,
                    None => here()?,
                },
                network,
            })
        })
    }
}

/// The sizes of a graph that is not built, as given from Python.
#[derive(Debug, FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenSizes {
    vertices: u64,
    edges: u64,
    undirected: bool,
    bytes_per_edge: Option<f64>,
    spooled: bool,
    reverse: bool,
    hashes_weights: bool,
    self_loops: String,
    duplicates: String,
}

/// The maximum numbers of vertices and of edges of a forecast.
const MOST: u64 = 1 << 44;

impl GivenSizes {
    /// The way to read an input with or without weights.
    fn reading(&self, weighted: bool) -> Result<Reading, Failure> {
        let policy = Policy {
            self_loops: SelfLoops::from_name(&self.self_loops)?,
            duplicates: Duplicates::from_name(&self.duplicates)?,
        };
        Ok(Reading { spooled: self.spooled, weighted, hashes_weights: self.hashes_weights, policy })
    }

    fn sizes(&self, weighted: bool) -> Result<Sizes, Failure> {
        let Self { vertices, edges, undirected, bytes_per_edge, reverse, .. } = *self;
        let problem = if vertices > MOST || edges > MOST {
            format!("vertices and edges must be at most 2^44, not {}", vertices.max(edges))
        } else if bytes_per_edge.is_some_and(|bytes| !(0.05..=16.0).contains(&bytes)) {
            "bytes_per_edge must be between 0.05 and 16; brimful info shows it for a similar graph"
                .into()
        } else if vertices == 0 && edges > 0 {
            "--vertices must be above 0 if there are edges; give the number of vertices with edges"
                .into()
        } else {
            return Ok(Sizes { vertices, edges, undirected, weighted, reverse, bytes_per_edge });
        };
        Err(EngineError::Usage(problem).into())
    }
}

/// The forecast of a run and, for a graph that is not built, of its import; of time only for a
/// machine.
#[pyfunction]
#[pyo3(signature = (graph, sizes, asked, *, machine, resources, checkpoints))]
pub(crate) fn plan<'py>(
    py: Python<'py>,
    graph: Option<&Bound<'py, Graph>>,
    sizes: Option<GivenSizes>,
    asked: Asked<'py>,
    machine: Option<Machine>,
    resources: Limits,
    checkpoints: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = resources;
    let mut request = request(&asked)?;
    // The folder does not matter; the existence of checkpoints may change the method.
    request.checkpoints = checkpoints.then(|| CheckpointOptions::new("."));
    let inner = graph.map(|graph| Arc::clone(&graph.get().inner));
    let subject = match (&inner, &sizes) {
        (Some(graph), _) => Subject::Graph(graph),
        (None, Some(sizes)) => Subject::Sizes(sizes.sizes(request.weighted)?),
        (None, None) => {
            let problem = "a plan needs a graph, or its numbers of vertices and edges: give \
                           --vertices and --edges";
            return Err(Failure::from(EngineError::Usage(problem.into())).into());
        }
    };
    let library = library_bytes(asked.store.opener.as_ref())?;
    let prediction = Prediction::new(&request, subject, limits, library)?;
    let out = prediction.figures(py)?;
    let bandwidths = machine.map(|machine| machine.bandwidths(py, limits)).transpose()?;
    let (forecast, timed) =
        (&prediction.forecast, bandwidths.filter(|_| prediction.forecast.timed));
    out.set_item("seconds_per_superstep", timed.map(|at| forecast.seconds_of_pass(at)))?;
    out.set_item("seconds", timed.map(|at| forecast.seconds(at)))?;
    out.set_item("memory_bandwidth", bandwidths.map(|at| at.memory / 1e9))?;
    out.set_item("disk_bandwidth", bandwidths.map(|at| at.disk / 1e9))?;
    let imported = match (subject, sizes) {
        (Subject::Sizes(graph_sizes), Some(sizes)) => {
            let limit = limits.budget().limit();
            let import = forecast::forecast(
                &graph_sizes,
                &sizes.reading(graph_sizes.weighted)?,
                limit,
                limits.workers(),
            );
            let one = import_figures(py, &import, limits, prediction.resident)?;
            one.set_item("seconds", bandwidths.map(|at| import.seconds(at.memory, at.disk)))?;
            Some(one)
        }
        _ => None,
    };
    out.set_item("import", imported)?;
    Ok(out)
}
