//! `import_files`, `import_stream`, `generate`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful::graph::build::import::forecast::{self, Reading, forecast};
use brimful::graph::build::import::{
    IdChoice, ImportOptions, ImportReport, Input, Rejection, decoding_bytes, import,
};
use brimful::graph::build::sizes::Sizes;
use brimful::graph::build::weights::Weights;
use brimful::graph::generate::{Amount, Generator, Kind};
use brimful::graph::input::columns::ColumnChoice;
use brimful::graph::input::declaration::Declaration;
use brimful::graph::input::distributed::{DistributedFiles, DistributedKind};
use brimful::graph::input::formats::TextFormat;
use brimful::graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful::graph::{Error as GraphError, Index};
use brimful::store::Job;
use brimful::store::external::require_space;
use brimful::store::memory::peak_resident_bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow_in::ArrowEdges;
use crate::arrow_names::ColumnIds;
use crate::call::{GivenResources, Limits, with_resources, with_stream};
use crate::columns::{EdgeColumns, described};
use crate::distributed::distributed_of;
use crate::errors::Failure;
use crate::figures::{bytes_moved, describe, phases};
use crate::parsed::{on_error_of, text_format};
use crate::vertex::Vertex;

/// The options of the edges of a new graph, as given from Python.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct GivenEdges {
    /// `Some(false)` for `--directed`, `Some(true)` for `--undirected`, `None` for the default of
    /// the format.
    undirected: Option<bool>,
    vertices: Option<u64>,
    ids: String,
    on_error: String,
    index: Vec<String>,
    weights: String,
    self_loops: String,
    duplicates: String,
}

impl GivenEdges {
    /// The options of an import, without those of ids.
    fn options(&self) -> Result<ImportOptions, Failure> {
        let indexes = self.index.iter().map(|name| Index::from_name(name));
        let indexes = indexes.collect::<Result<Vec<_>, _>>()?;
        if !indexes.contains(&Index::In) {
            let problem = "the index `in` is required; add it to --index";
            return Err(GraphError::Usage(problem.into()).into());
        }
        let weights = Weights::from_name(&self.weights).ok_or_else(|| {
            GraphError::Usage(format!("weights must be input or hash, not {:?}", self.weights))
        })?;
        let policy = Policy {
            self_loops: SelfLoops::from_name(&self.self_loops)?,
            duplicates: Duplicates::from_name(&self.duplicates)?,
        };
        Ok(ImportOptions {
            policy,
            weights,
            undirected: self.undirected == Some(true),
            directed: self.undirected == Some(false),
            on_error: on_error_of(&self.on_error)?,
            vertices: self.vertices,
            reverse: indexes.contains(&Index::Reverse),
            ..Default::default()
        })
    }
}

/// The input of `paths`, files of a format other than tables.
pub(crate) fn input_of<'i>(format: &str, paths: Vec<PathBuf>) -> Result<Input<'i>, Failure> {
    Ok(match format {
        "u32pairs" => Input::Pairs(paths),
        "graphalytics" => Input::Graphalytics(paths),
        "webgraph" => match <[PathBuf; 1]>::try_from(paths) {
            Ok([path]) => Input::WebGraph(path),
            Err(_) => {
                let problem = "a graph in the format webgraph is imported by itself; import the \
                               others separately";
                return Err(GraphError::Usage(problem.into()).into());
            }
        },
        _ => match TextFormat::from_name(format) {
            Some(format) => Input::Text(format, paths),
            None => return Err(GraphError::Usage(format!("there is no format {format:?}")).into()),
        },
    })
}

fn report<'py>(
    py: Python<'py>,
    report: &ImportReport,
    limits: Limits,
) -> PyResult<Bound<'py, PyDict>> {
    let (graph, out) = (&report.description, PyDict::new(py));
    describe(&out, graph)?;
    out.set_item("rejections", kinds(py, &report.rejections)?)?;
    out.set_item("left_out", kinds(py, &report.left_out)?)?;
    out.set_item("columns", described(py, graph.columns.as_ref())?)?;
    out.set_item("seconds", report.seconds)?;
    out.set_item("peak_rss_bytes", peak_resident_bytes())?;
    out.set_item("bytes_on_disk", report.bytes_on_disk)?;
    out.set_item("scratch_bytes", report.scratch_bytes)?;
    out.set_item("budget_bytes", limits.budget_bytes())?;
    out.set_item("phases", phases(py, &report.phases)?)?;
    bytes_moved(&out, report.moved)?;
    Ok(out)
}

fn kinds<'py>(py: Python<'py>, kinds: &[Rejection]) -> PyResult<Vec<Bound<'py, PyDict>>> {
    kinds
        .iter()
        .map(|kind| {
            let out = PyDict::new(py);
            out.set_item("reason", kind.reason)?;
            out.set_item("count", kind.count)?;
            out.set_item("input", kind.path.to_string_lossy())?;
            out.set_item("first_line", kind.line)?;
            out.set_item("found", &kind.found)?;
            Ok(out)
        })
        .collect()
}

/// Refuses a budget that is too small for any import of `files` of this format, before more than
/// their headers is read.
#[pyfunction]
#[pyo3(signature = (format, files, *, edges, resources))]
pub(crate) fn require_import_budget(
    format: &str,
    files: Vec<PathBuf>,
    edges: GivenEdges,
    resources: Limits,
) -> PyResult<()> {
    let workers = resources.workers();
    let minimum = edges.options()?.minimum_bytes(workers, format != "u32pairs", true);
    let decoding = decoding_bytes(workers, &files, &Arc::new(Job::new())).map_err(Failure::from)?;
    Ok(resources.require(minimum.saturating_add(decoding), "to build a graph")?)
}

/// Refuses an import that takes `temporary_bytes` and leaves `graph_bytes` if the disk of `out`
/// cannot hold them.
#[pyfunction]
#[pyo3(signature = (out, *, temporary_bytes, graph_bytes))]
pub(crate) fn require_disk(out: PathBuf, temporary_bytes: u64, graph_bytes: u64) -> PyResult<()> {
    let bytes = forecast::min_disk_bytes(temporary_bytes, graph_bytes);
    Ok(require_space(&out, bytes).map_err(Failure::from)?)
}

/// Imports files of any format other than tables as the new graph directory `out`; with `replace`,
/// in the place of the graph there. `distributed`: whether ids are strings, and the processes that
/// read the files and keep their edges.
#[pyfunction]
#[pyo3(signature = (
    paths, out, *, format, columns, edges, resources, origin, replace, distributed
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn import_files<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    format: &str,
    columns: EdgeColumns,
    edges: GivenEdges,
    resources: GivenResources<'py>,
    origin: Option<String>,
    replace: bool,
    distributed: Option<(bool, Py<PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let ids = IdChoice::from_name(&edges.ids).map_err(Failure::from)?;
    let columns = ColumnChoice::try_from(columns)?;
    let options = ImportOptions { columns, ids, origin, replace, ..edges.options()? };
    let input = match distributed {
        Some((names, edges)) => {
            let kind = DistributedKind::Text(text_format(format)?, names);
            Input::Distributed(DistributedFiles { paths, kind, edges: distributed_of(edges) })
        }
        None => input_of(format, paths)?,
    };
    let GivenResources { limits, progress } = resources;
    let done = with_resources(py, progress.as_ref(), limits, |resources| {
        Ok(import(input, &out, &options, resources)?)
    })?;
    report(py, &done, limits)
}

/// Imports anything with `__arrow_c_stream__`, as [`import_files`] does files. `distributed`: the
/// names of tables that other processes read, and these processes; then only the schema of `stream`
/// is read.
#[pyfunction]
#[pyo3(signature = (
    stream, out, *, name, source, target, weight, ignored, isolated, vertex_rows, edges, resources,
    origin, replace, distributed
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn import_stream<'py>(
    py: Python<'py>,
    stream: &Bound<'py, PyAny>,
    out: PathBuf,
    name: String,
    source: &str,
    target: &str,
    weight: Option<&str>,
    ignored: Option<Vec<String>>,
    isolated: Vec<Vertex>,
    vertex_rows: bool,
    edges: GivenEdges,
    resources: GivenResources<'py>,
    origin: Option<String>,
    replace: bool,
    distributed: Option<(Vec<PathBuf>, Py<PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let ids = ColumnIds::from_name(&edges.ids).map_err(Failure::from)?;
    let options = ImportOptions { origin, replace, ..edges.options()? };
    let (path, on_error) = (Path::new(&name), Some(options.on_error));
    let mut rows = ArrowEdges::open(stream, path, source, target, weight, ids, on_error)?;
    rows.leave_out(ignored);
    rows.take_vertex_rows(vertex_rows);
    let (numbers, names) = split(isolated);
    rows.declare(id_bits(&numbers)?);
    rows.declare_names(names);
    let input = match distributed {
        None => Input::Stream(&mut rows),
        Some((paths, edges)) => {
            let kind = DistributedKind::Tables(&mut rows);
            Input::Distributed(DistributedFiles { paths, kind, edges: distributed_of(edges) })
        }
    };
    let GivenResources { limits, progress } = resources;
    let done = with_stream(py, progress.as_ref(), limits, stream, |resources| {
        Ok(import(input, &out, &options, resources)?)
    })?;
    report(py, &done, limits)
}

/// The declaration of two tables that are parts of one graph; None if they contradict each other.
#[pyfunction]
pub(crate) fn join_declarations(first: &str, second: &str) -> PyResult<Option<String>> {
    let parse = |text: &str| {
        Declaration::parse(text).map_err(|damage| {
            let problem = format!(
                "a schema declares a graph and is damaged: expected {} at byte {}, found {text:?}; \
                 export the graph again",
                damage.expected, damage.at
            );
            Failure::from(GraphError::input("the table", problem))
        })
    };
    Ok(parse(first)?.join(&parse(second)?).map(|joined| joined.to_string()))
}

/// Separates integers from strings.
fn split(ids: Vec<Vertex>) -> (Vec<i128>, Vec<String>) {
    let (mut numbers, mut names) = (Vec::new(), Vec::new());
    for id in ids {
        match id {
            Vertex::Number(number) => numbers.push(number),
            Vertex::Name(name) => names.push(name),
        }
    }
    (numbers, names)
}

/// Ids as 64 bits each.
fn id_bits(ids: &[i128]) -> Result<Vec<u64>, Failure> {
    let bits = |id: &i128| {
        let signed = i64::try_from(*id).map(i64::cast_unsigned);
        signed.or_else(|_| u64::try_from(*id)).map_err(|_| {
            let problem =
                format!("{id} is not a vertex id; ids must be integers between -2^63 and 2^64-1");
            GraphError::Usage(problem).into()
        })
    };
    ids.iter().map(bits).collect()
}

fn kind(name: &str, params: &Bound<'_, PyDict>, undirected: bool) -> PyResult<Kind> {
    let missing = |key: &str| {
        Failure::from(GraphError::Usage(format!("{name} needs --{}", key.replace('_', "-"))))
    };
    let get = |key: &str| -> PyResult<Bound<'_, PyAny>> {
        Ok(params.get_item(key)?.ok_or_else(|| missing(key))?)
    };
    Ok(match name {
        "rmat" => Kind::Rmat {
            scale: get("scale")?.extract()?,
            edge_factor: get("edge_factor")?.extract()?,
        },
        "lognormal" => Kind::LogNormal {
            vertices: get("vertices")?.extract()?,
            mu: get("mu")?.extract()?,
            sigma: get("sigma")?.extract()?,
        },
        "chain" => Kind::Chain { vertices: get("vertices")?.extract()? },
        "ring" => Kind::Ring { vertices: get("vertices")?.extract()? },
        "star" => Kind::Star { vertices: get("vertices")?.extract()? },
        "grid" => Kind::Grid {
            rows: get("rows")?.extract()?,
            columns: get("columns")?.extract()?,
            torus: get("torus")?.extract::<u64>()? != 0,
        },
        "mesh" => Kind::Mesh { vertices: get("vertices")?.extract()? },
        "watts-strogatz" => Kind::WattsStrogatz {
            vertices: get("vertices")?.extract()?,
            neighbors: get("neighbors")?.extract()?,
            rewire: get("probability")?.extract()?,
        },
        "erdos-renyi" => Kind::ErdosRenyi {
            vertices: get("vertices")?.extract()?,
            amount: match params.get_item("edges")? {
                Some(edges) => Amount::Edges(edges.extract()?),
                None => Amount::Probability(get("probability")?.extract()?),
            },
            undirected,
        },
        _ => {
            let problem = format!(
                "there is no generator {name:?}; choose from: rmat, lognormal, chain, ring, star, \
                 grid, mesh, watts-strogatz, erdos-renyi"
            );
            return Err(Failure::from(GraphError::Usage(problem)).into());
        }
    })
}

/// Generates a graph as the new graph directory `out`.
#[pyfunction]
#[pyo3(signature = (kind, out, params, *, seed, edges, resources))]
pub(crate) fn generate<'py>(
    py: Python<'py>,
    kind: &str,
    out: PathBuf,
    params: &Bound<'py, PyDict>,
    seed: u64,
    edges: GivenEdges,
    resources: GivenResources<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let GivenResources { limits, progress } = resources;
    let kind = self::kind(kind, params, edges.undirected == Some(true))?;
    let undirected = edges.undirected == Some(true) || kind.is_undirected();
    let options = ImportOptions { undirected, directed: !undirected, ..edges.options()? };
    let generator = Generator::new(kind, seed).map_err(Failure::from)?;
    let done = with_resources(py, progress.as_ref(), limits, |resources| {
        let sizes = Sizes {
            vertices: generator.vertices(),
            edges: generator.edges(),
            undirected,
            weighted: options.weights == Weights::Hash || options.policy.weighted(false),
            reverse: options.reverse,
            bytes_per_edge: None,
        };
        let reading = Reading {
            spooled: false,
            weighted: false,
            hashes_weights: options.weights == Weights::Hash,
            policy: options.policy,
        };
        let minimum = options.minimum_bytes(resources.workers(), false, false);
        resources.budget.require(minimum, "to build a graph")?;
        let foreseen = forecast(&sizes, &reading, resources.budget.limit(), resources.workers());
        require_space(&out, foreseen.min_disk_bytes())?;
        Ok(import(Input::Numbered(&generator, generator.vertices()), &out, &options, resources)?)
    })?;
    report(py, &done, limits)
}
