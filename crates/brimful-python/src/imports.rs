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
use brimful::graph::input::formats::TextFormat;
use brimful::graph::input::kept::{KeptFiles, KeptKind};
use brimful::graph::input::policy::{Duplicates, Policy, SelfLoops};
use brimful::graph::{Error as GraphError, Index};
use brimful::store::Job;
use brimful::store::external::require_space;
use brimful::store::memory::peak_resident_bytes;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::arrow_in::ArrowEdges;
use crate::arrow_names::ColumnIds;
use crate::call::{Limits, with_resources, with_stream};
use crate::columns::{EdgeColumns, described};
use crate::errors::Failure;
use crate::figures::{bytes_moved, describe, phases};
use crate::kept::kept_of;
use crate::parsed::{on_error_of, text_format};
use crate::vertex::Vertex;

/// The options `--ids`, `--on-error`, `--weights`, `--self-loops` and `--duplicates`.
struct Choices<'a> {
    ids: IdChoice,
    on_error: &'a str,
    weights: &'a str,
    self_loops: &'a str,
    duplicates: &'a str,
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

/// `undirected`: `Some(false)` for `--directed`, `Some(true)` for `--undirected`, `None` for the
/// default of the format.
fn options(
    undirected: Option<bool>,
    vertices: Option<u64>,
    index: &[String],
    choices: &Choices<'_>,
    origin: Option<String>,
) -> Result<ImportOptions, Failure> {
    let on_error = on_error_of(choices.on_error)?;
    let indexes = index.iter().map(|name| Index::from_name(name)).collect::<Result<Vec<_>, _>>()?;
    if !indexes.contains(&Index::In) {
        return Err(
            GraphError::Usage("the index `in` is required; add it to --index".into()).into()
        );
    }
    let weights = Weights::from_name(choices.weights).ok_or_else(|| {
        GraphError::Usage(format!("weights must be input or hash, not {:?}", choices.weights))
    })?;
    let policy = Policy {
        self_loops: SelfLoops::from_name(choices.self_loops)?,
        duplicates: Duplicates::from_name(choices.duplicates)?,
    };
    Ok(ImportOptions {
        policy,
        weights,
        ids: choices.ids,
        undirected: undirected == Some(true),
        directed: undirected == Some(false),
        on_error,
        vertices,
        reverse: indexes.contains(&Index::Reverse),
        origin,
        ..Default::default()
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
#[pyo3(signature = (
    format, files, *, weights, self_loops, duplicates, threads, budget, process_budget,
    reserve_bytes
))]
pub(crate) fn require_import_budget(
    format: &str,
    files: Vec<PathBuf>,
    weights: &str,
    self_loops: &str,
    duplicates: &str,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    reserve_bytes: u64,
) -> PyResult<()> {
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    let choices =
        Choices { ids: IdChoice::Auto, on_error: "fail", weights, self_loops, duplicates };
    let options = options(None, None, &[Index::In.name().into()], &choices, None)?;
    let minimum = options.minimum_bytes(limits.workers(), format != "u32pairs", true);
    let decoding =
        decoding_bytes(limits.workers(), &files, &Arc::new(Job::new())).map_err(Failure::from)?;
    Ok(limits.require(minimum.saturating_add(decoding), "to build a graph")?)
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
/// in the place of the graph there. `kept`: whether ids are strings, and the processes that read
/// the files and keep their edges.
#[pyfunction]
#[pyo3(signature = (
    paths, out, *, format, columns, undirected, vertices, ids, on_error, index, weights, self_loops,
    duplicates, threads, budget, process_budget, origin, replace, progress, kept
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn import_files<'py>(
    py: Python<'py>,
    paths: Vec<PathBuf>,
    out: PathBuf,
    format: &str,
    columns: EdgeColumns,
    undirected: Option<bool>,
    vertices: Option<u64>,
    ids: &str,
    on_error: &str,
    index: Vec<String>,
    weights: &str,
    self_loops: &str,
    duplicates: &str,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    origin: Option<String>,
    replace: bool,
    progress: Option<&Bound<'py, PyAny>>,
    kept: Option<(bool, Py<PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = Limits { threads, budget, process_budget, reserve_bytes: 0 };
    let ids = IdChoice::from_name(ids).map_err(Failure::from)?;
    let choices = Choices { ids, on_error, weights, self_loops, duplicates };
    let columns = ColumnChoice::try_from(columns)?;
    let options = ImportOptions {
        columns,
        replace,
        ..options(undirected, vertices, &index, &choices, origin)?
    };
    let input = match kept {
        Some((names, kept)) => {
            let kind = KeptKind::Text(text_format(format)?, names);
            Input::Kept(KeptFiles { paths, kind, edges: kept_of(kept) })
        }
        None => input_of(format, paths)?,
    };
    let done = with_resources(py, progress, limits, |resources| {
        Ok(import(input, &out, &options, resources)?)
    })?;
    report(py, &done, limits)
}

/// Imports anything with `__arrow_c_stream__`, as [`import_files`] does files. `kept`: the names of
/// tables that other processes read, and these processes; then only the schema of `stream` is read.
#[pyfunction]
#[pyo3(signature = (
    stream, out, *, name, source, target, weight, ignored, undirected, vertices, ids, isolated,
    vertex_rows, on_error, index, weights, self_loops, duplicates, threads, budget, process_budget,
    reserve_bytes, origin, replace, progress, kept
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
    undirected: Option<bool>,
    vertices: Option<u64>,
    ids: &str,
    isolated: Vec<Vertex>,
    vertex_rows: bool,
    on_error: &str,
    index: Vec<String>,
    weights: &str,
    self_loops: &str,
    duplicates: &str,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    reserve_bytes: u64,
    origin: Option<String>,
    replace: bool,
    progress: Option<&Bound<'py, PyAny>>,
    kept: Option<(Vec<PathBuf>, Py<PyAny>)>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = Limits { threads, budget, process_budget, reserve_bytes };
    // The schema of the stream defines the type of its ids.
    let choices = Choices { ids: IdChoice::Auto, on_error, weights, self_loops, duplicates };
    let options = options(undirected, vertices, &index, &choices, origin)?;
    let options = ImportOptions { replace, ..options };
    let ids = ColumnIds::from_name(ids).map_err(Failure::from)?;
    let origin = Path::new(&name);
    let mut edges =
        ArrowEdges::open(stream, origin, source, target, weight, ids, Some(options.on_error))?;
    edges.leave_out(ignored);
    edges.take_vertex_rows(vertex_rows);
    let (numbers, names) = split(isolated);
    edges.declare(id_bits(&numbers)?);
    edges.declare_names(names);
    let input = match kept {
        None => Input::Stream(&mut edges),
        Some((paths, kept)) => {
            let kind = KeptKind::Tables(&mut edges);
            Input::Kept(KeptFiles { paths, kind, edges: kept_of(kept) })
        }
    };
    let done = with_stream(py, progress, limits, stream, |resources| {
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
#[pyo3(signature = (
    kind, out, params, *, seed, undirected, index, weights, self_loops, duplicates, threads, budget,
    process_budget, progress
))]
#[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
pub(crate) fn generate<'py>(
    py: Python<'py>,
    kind: &str,
    out: PathBuf,
    params: &Bound<'py, PyDict>,
    seed: u64,
    undirected: bool,
    index: Vec<String>,
    weights: &str,
    self_loops: &str,
    duplicates: &str,
    threads: Option<usize>,
    budget: Option<u64>,
    process_budget: bool,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Bound<'py, PyDict>> {
    let limits = Limits { threads, budget, process_budget, reserve_bytes: 0 };
    let kind = self::kind(kind, params, undirected)?;
    let undirected = undirected || kind.is_undirected();
    let choices =
        Choices { ids: IdChoice::Auto, on_error: "fail", weights, self_loops, duplicates };
    let options = options(Some(undirected), None, &index, &choices, None)?;
    let generator = Generator::new(kind, seed).map_err(Failure::from)?;
    let done = with_resources(py, progress, limits, |resources| {
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
