//! `Graph`.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use brimful::graph::Index;
use brimful::graph::build::import::build_reverse;
use brimful::graph::export::{self, Compression, EdgeReader, ExportOptions, Format};
use brimful::graph::ids::external::IdType;
use brimful::graph::read::matrix::Matrix;
use brimful::graph::read::name_cursor::NameCursor;
use brimful::graph::read::tables::TableName;
use brimful::graph::read::verify;
use brimful::store::Traffic;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyCapsule, PyDict};

use crate::arrow_out::{Edges, VertexReader, capsule};
use crate::call::{GivenResources, Limits, with_job, with_resources};
use crate::columns::described;
use crate::errors::Failure;
use crate::figures::{describe, ratio};
use crate::fs_path::FsPath;

/// A graph directory open for reading.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Graph {
    pub(crate) inner: Arc<brimful::graph::Graph>,
}

fn open(path: PathBuf) -> Result<Graph, Failure> {
    let traffic = Arc::new(Traffic::default());
    Ok(Graph { inner: Arc::new(brimful::graph::Graph::open(&path, &traffic)?) })
}

#[pymethods]
impl Graph {
    #[staticmethod]
    #[pyo3(name = "open")]
    pub(crate) fn open_path(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        Ok(py.detach(|| open(path))?)
    }

    #[getter]
    fn path(&self) -> FsPath {
        FsPath::new(self.inner.path())
    }

    /// A fingerprint of the content of the graph, in hexadecimal digits.
    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:016x}", self.inner.fingerprint())
    }

    #[getter]
    fn vertices(&self) -> u64 {
        self.inner.vertices()
    }

    #[getter]
    fn edges(&self) -> u64 {
        self.inner.description().edges
    }

    #[getter]
    fn arcs(&self) -> u64 {
        self.inner.description().arcs
    }

    /// The most edges to a vertex, or a bound of them.
    #[getter]
    fn longest_in_list(&self) -> u64 {
        let of_graph = self.inner.description();
        of_graph.longest_lists.map_or(of_graph.arcs, |lists| lists.incoming)
    }

    #[getter]
    fn directed(&self) -> bool {
        self.inner.description().directed
    }

    #[getter]
    fn weighted(&self) -> bool {
        self.inner.description().weighted
    }

    /// Refuses a graph without edge weights.
    fn require_weights(&self, remedy: &str) -> PyResult<()> {
        Ok(self.inner.require_weights(remedy).map_err(Failure::from)?)
    }

    /// Bytes of the files of the graph.
    #[getter]
    fn bytes_on_disk(&self) -> PyResult<u64> {
        Ok(self.inner.bytes_on_disk().map_err(Failure::from)?)
    }

    #[getter]
    fn id_type(&self) -> &'static str {
        self.inner.id_type().name()
    }

    /// The least and the greatest id; `None` if ids are strings, or not integers of 64 bits with
    /// a sign, or there are none.
    fn signed_ids(&self) -> PyResult<Option<(i64, i64)>> {
        if self.inner.longest_name().is_some() {
            return Ok(None);
        }
        let id_type = self.inner.id_type();
        let bounds = self.inner.key_bounds().map_err(Failure::from)?;
        Ok(bounds.and_then(|(least, greatest)| {
            let signed = |key| i64::try_from(id_type.number(id_type.from_order_key(key))).ok();
            Some((signed(least)?, signed(greatest)?))
        }))
    }

    #[getter]
    fn origin(&self) -> Option<String> {
        self.inner.description().origin.clone()
    }

    /// The path of the table `name`, if the graph has it.
    fn table_path(&self, name: &str) -> PyResult<Option<FsPath>> {
        let name = TableName::from_name(name).map_err(Failure::from)?;
        let table = self.inner.description().tables.get(&name);
        Ok(table.map(|table| FsPath::new(self.inner.path().join(table.file_name()))))
    }

    #[getter]
    fn indexes(&self) -> Vec<&'static str> {
        let built = |index: &Index| self.inner.shards(*index).is_some();
        [Index::In, Index::Reverse]
            .iter()
            .filter(|index| built(index))
            .map(|index| index.name())
            .collect()
    }

    fn info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (graph, out) = (self.inner.description(), PyDict::new(py));
        let bytes = self.inner.bytes_on_disk().map_err(Failure::from)?;
        out.set_item("path", self.path())?;
        out.set_item("format", graph.format)?;
        out.set_item("created_by", &graph.created_by)?;
        describe(&out, graph)?;
        out.set_item("weight_min", graph.weights.map(|range| range.min))?;
        out.set_item("weight_max", graph.weights.map(|range| range.max))?;
        out.set_item("order", graph.order.name.name())?;
        out.set_item("isolated", graph.vertices - graph.connected)?;
        out.set_item("columns", described(py, graph.columns.as_ref())?)?;
        out.set_item("id_type", graph.ids.id_type.name())?;
        out.set_item("ids_consecutive", graph.ids.first.is_some())?;
        if let Some(names) = self.inner.name_sizes().map_err(Failure::from)? {
            let one = PyDict::new(py);
            one.set_item("bytes", names.bytes)?;
            one.set_item("blocks", names.blocks)?;
            one.set_item("longest_bytes", names.longest_bytes)?;
            out.set_item("names", one)?;
        }
        out.set_item("intervals", self.inner.intervals())?;
        out.set_item("interval_bits", graph.interval_bits)?;
        out.set_item("bytes_on_disk", bytes)?;
        out.set_item("indexes", self.index_info(py)?)?;
        Ok(out)
    }

    #[pyo3(signature = (*, progress))]
    fn verify<'py>(
        &self,
        py: Python<'py>,
        progress: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let begin = Instant::now();
        let verified = with_job(py, progress, |job| Ok(verify::verify(&self.inner, job)?))?;
        let out = PyDict::new(py);
        out.set_item("files", verified.files)?;
        out.set_item("bytes", verified.bytes)?;
        out.set_item("arcs", verified.arcs)?;
        out.set_item("seconds", begin.elapsed().as_secs_f64())?;
        Ok(out)
    }

    #[pyo3(signature = (names, *, resources))]
    fn build_index<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        resources: GivenResources<'py>,
    ) -> PyResult<Bound<'py, PyDict>> {
        let wanted = names.iter().map(|name| Index::from_name(name)).collect::<Result<Vec<_>, _>>();
        let wanted = wanted.map_err(Failure::from)?;
        let GivenResources { limits, progress } = resources;
        // The index `in` always exists.
        let seconds = match wanted.contains(&Index::Reverse) {
            true => with_resources(py, progress.as_ref(), limits, |resources| {
                Ok(build_reverse(&self.inner, resources)?)
            })?,
            false => 0.0,
        };
        let out = PyDict::new(py);
        out.set_item("seconds", seconds)?;
        Ok(out)
    }

    fn vertex_stream(&self) -> Stream {
        Stream::of_vertices(&self.inner)
    }

    /// The edges between the ranks of vertices by id.
    fn rank_stream(&self) -> Stream {
        Stream { graph: Arc::clone(&self.inner), content: Content::Ranks }
    }

    /// The adjacency matrix in compressed sparse row format: row starts and columns of 32 bits, or
    /// 64 if necessary, and values of 64, as bytes; and the number of entries, which may be less
    /// than the room for columns and values.
    fn matrix<'py>(&self, py: Python<'py>) -> PyResult<MatrixParts<'py>> {
        let matrix = py.detach(|| Matrix::new(&self.inner)).map_err(Failure::from)?;
        let (rows, arcs, weighted) = (matrix.rows(), matrix.arcs() as usize, self.weighted());
        let width = if matrix.is_narrow() { 4 } else { 8 };
        let (mut columns, mut values, mut entries) =
            (PyByteArray::new(py, &[]), PyByteArray::new(py, &[]), 0);
        // An empty array may lie at any address, but numbers must be aligned.
        let bytes = |count: usize, width: usize| (count * width).max(8);
        let starts = PyByteArray::new_with(py, bytes(rows + 1, width), |starts| {
            columns = PyByteArray::new_with(py, bytes(arcs, width), |columns| {
                values = PyByteArray::new_with(py, bytes(arcs, 8), |values| {
                    let starts = &mut starts[..(rows + 1) * width];
                    let (columns, values) = (&mut columns[..arcs * width], &mut values[..arcs * 8]);
                    entries = with_job(py, None, |job| {
                        Ok(matrix.fill_bytes(starts, columns, values, weighted, job)?)
                    })?;
                    Ok(())
                })?;
                Ok(())
            })?;
            Ok(())
        })?;
        Ok((starts, columns, values, entries))
    }

    /// The edges; with `declared`, in the form of an export.
    #[pyo3(signature = (*, declared, resources))]
    fn edge_stream(&self, declared: bool, resources: Limits) -> PyResult<Stream> {
        let names = if self.inner.longest_name().is_some() { NameCursor::MEMORY_BYTES } else { 0 };
        resources.require(export::READING_BYTES + names, "to export edges")?;
        let content = if declared { Content::Export } else { Content::Edges };
        Ok(Stream { graph: Arc::clone(&self.inner), content })
    }

    #[pyo3(signature = (
        out, *, format, compression, renumber, lossy, overwrite, resources
    ))]
    fn export_text(
        &self,
        py: Python<'_>,
        out: PathBuf,
        format: &str,
        compression: Option<&str>,
        renumber: bool,
        lossy: bool,
        overwrite: bool,
        resources: GivenResources<'_>,
    ) -> PyResult<(u64, Vec<String>)> {
        let format = Format::from_name(format).map_err(Failure::from)?;
        let compression =
            compression.map(Compression::from_suffix).transpose().map_err(Failure::from)?;
        let options = ExportOptions { format, compression, overwrite, renumber, lossy };
        let GivenResources { limits, progress } = resources;
        let done = with_resources(py, progress.as_ref(), limits, |resources| {
            Ok(export::write(&self.inner, &out, &options, resources)?)
        })?;
        Ok((done.edges, done.lost))
    }
}

impl Graph {
    fn index_info<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let out = PyDict::new(py);
        for index in [Index::In, Index::Reverse] {
            let Some(shards) = self.inner.shards(index) else {
                continue;
            };
            let one = PyDict::new(py);
            let (arcs, bytes) = (shards.edges(), shards.len_bytes().map_err(Failure::from)?);
            one.set_item("arcs", arcs)?;
            one.set_item("bytes", bytes)?;
            one.set_item("bytes_per_edge", ratio(bytes, arcs))?;
            one.set_item("units", shards.units())?;
            one.set_item("segments", shards.segments().len())?;
            let codecs = PyDict::new(py);
            for (packing, [segments, edges, bytes]) in shards.packings() {
                let codec = PyDict::new(py);
                codec.set_item("segments", segments)?;
                codec.set_item("arcs", edges)?;
                codec.set_item("bytes", bytes)?;
                codec.set_item("bytes_per_edge", ratio(bytes, edges))?;
                codecs.set_item(packing.name(), codec)?;
            }
            one.set_item("codecs", codecs)?;
            let mut sizes: Vec<u64> = shards.shard_edges().collect();
            sizes.sort_unstable();
            one.set_item("shards", sizes.len())?;
            one.set_item("smallest_shard_arcs", sizes.first().copied().unwrap_or(0))?;
            one.set_item("median_shard_arcs", sizes.get(sizes.len() / 2).copied().unwrap_or(0))?;
            one.set_item("largest_shard_arcs", sizes.last().copied().unwrap_or(0))?;
            // Number of shards with at least 2^k arcs and fewer than 2^(k + 1).
            let mut counts = BTreeMap::<u32, u64>::new();
            for size in sizes {
                *counts.entry(size.ilog2()).or_default() += 1;
            }
            let histogram = PyDict::new(py);
            for (power, count) in counts {
                histogram.set_item((1_u64 << power).to_string(), count)?;
            }
            one.set_item("shard_histogram", histogram)?;
            out.set_item(index.name(), one)?;
        }
        Ok(out)
    }
}

/// Row starts, columns and values, and the number of entries.
type MatrixParts<'py> =
    (Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, Bound<'py, PyByteArray>, u64);

/// The content of a stream.
#[derive(Debug, Clone, Copy)]
enum Content {
    Vertices,
    Edges,
    /// Edges between the ranks of vertices by id.
    Ranks,
    /// The edges and all else of an export.
    Export,
}

/// Vertices or edges of a graph as an Arrow stream; can be read many times.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct Stream {
    graph: Arc<brimful::graph::Graph>,
    content: Content,
}

impl Stream {
    /// The vertices of a graph, by ascending id.
    pub(crate) fn of_vertices(graph: &Arc<brimful::graph::Graph>) -> Self {
        Self { graph: Arc::clone(graph), content: Content::Vertices }
    }
}

#[pymethods]
impl Stream {
    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The interface allows us to ignore the request: the consumer casts.
        let _ = requested_schema;
        let (graph, weighted) = (Arc::clone(&self.graph), self.graph.description().weighted);
        let (mut reader, id_type) = match self.content {
            Content::Vertices => return capsule(py, VertexReader::new(graph)),
            Content::Export => return capsule(py, Edges::declared(&graph).map_err(Failure::from)?),
            Content::Edges => (EdgeReader::new(graph), self.graph.id_type()),
            Content::Ranks => {
                (py.detach(|| EdgeReader::ranked(graph)).map_err(Failure::from)?, IdType::Int64)
            }
        };
        capsule(py, Edges::new(&self.graph, id_type, weighted, move |batch| reader.next(batch)))
    }
}
