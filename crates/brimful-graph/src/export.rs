//! Export: every edge once, with external ids, segment by segment.
//!
//! [`EdgeReader`] yields the edges. `text` writes the formats that hold edges alone; every other
//! format has its own module. `numbering` names vertices in formats that cannot store ids; `sink`
//! is the file. Invariant: a graph that a format cannot hold is refused with a format that can;
//! nothing is left out silently.

mod declared;
mod graphalytics;
mod metis;
mod mtx;
mod numbering;
mod sink;
mod text;

use std::path::Path;
use std::sync::Arc;

use brimful_store::Resources;

use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::export::sink::Sink;
use crate::ids::external::present;
use crate::read::external_ids::ExternalIds;
use crate::read::external_order::ranks;
use crate::read::graph::Graph;
use crate::read::name_cursor::NameCursor;
use crate::read::segment_reader::SegmentReader;

pub use crate::export::sink::Compression;

/// A text or binary format for graphs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A [declaration](crate::input::declaration), then `source<TAB>target[<TAB>weight]`, and a
    /// comment line per vertex without edges.
    EdgeList,
    /// A heading, then `source,target[,weight]`; directed, without isolated vertices.
    Csv,
    /// Little-endian pairs of 32 bits; directed, without isolated vertices.
    U32Pairs,
    /// Matrix Market: ids 1 to n.
    Mtx,
    /// METIS: ids 1 to n, undirected, no self-loop or parallel edge, integer weights from 1.
    Metis,
    /// Graphalytics: three files that hold any graph.
    Graphalytics,
}

/// Every format.
const FORMATS: [Format; 6] = [
    Format::EdgeList,
    Format::Csv,
    Format::U32Pairs,
    Format::Mtx,
    Format::Metis,
    Format::Graphalytics,
];

impl Format {
    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::EdgeList => "edgelist",
            Self::Csv => "csv",
            Self::U32Pairs => "u32pairs",
            Self::Mtx => "mtx",
            Self::Metis => "metis",
            Self::Graphalytics => "graphalytics",
        }
    }

    /// The format called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self> {
        FORMATS.into_iter().find(|format| format.name() == name).ok_or_else(|| {
            let names = FORMATS.map(Self::name).join(", ");
            Error::Usage(format!("cannot write {name:?}; choose from: {names}"))
        })
    }
}

/// Options of an export.
#[derive(Debug, Clone, Copy)]
pub struct ExportOptions {
    /// The format.
    pub format: Format,
    /// The compression, if any.
    pub compression: Option<Compression>,
    /// True to replace an existing file.
    pub overwrite: bool,
    /// True to write consecutive ids as 1 to n if the format has no other ids.
    pub renumber: bool,
    /// True to leave out facts that the format cannot hold.
    pub lossy: bool,
}

/// The result of an export.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Exported {
    /// Number of edges.
    pub edges: u64,
    /// The facts about the graph that the file does not hold, in words.
    pub lost: Vec<String>,
}

impl ExportOptions {
    /// The defaults: no compression, no overwriting, no loss.
    pub fn new(format: Format) -> Self {
        Self { format, compression: None, overwrite: false, renumber: false, lossy: false }
    }
}

/// Advice if a format cannot hold a graph.
const OTHERS: &str = "export as parquet or arrow, which hold every graph";

/// The maximum memory for reading edges, in bytes, besides the caller's.
pub const READING_BYTES: u64 = 40 << 20;

/// Ids looked up at once.
const WINDOW: usize = 64 << 10;

/// Edges whose ends are named at once.
const NAMED_EDGES: usize = 64 << 10;

/// Text is written in pieces of about this many bytes.
const FLUSH_BYTES: usize = 1 << 20;

/// Reads the edges of a graph with external ids, one segment at a time.
pub struct EdgeReader {
    graph: Arc<Graph>,
    segment: usize,
    reader: SegmentReader,
    interval: Option<u64>,
    targets: Vec<u64>,
    sources: ExternalIds,
    /// Replacements of external ids, by internal id.
    ranks: Option<Vec<u64>>,
}

impl EdgeReader {
    /// A reader at the first edge.
    pub fn new(graph: Arc<Graph>) -> Self {
        Self {
            graph,
            segment: 0,
            reader: SegmentReader::default(),
            interval: None,
            targets: Vec::new(),
            sources: ExternalIds::default(),
            ranks: None,
        }
    }

    /// A reader that yields the ranks of vertices by external id instead of the ids. Memory: 8
    /// bytes a vertex.
    pub fn ranked(graph: Arc<Graph>) -> Result<Self> {
        let ranks = Some(ranks(&graph)?);
        Ok(Self { ranks, ..Self::new(graph) })
    }

    /// Replaces `batch` by the edges of the next segment; false at the end. Each edge of an
    /// undirected graph comes once, from the smaller id to the larger, so a batch may be empty.
    pub fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        let graph = Arc::clone(&self.graph);
        let shards = graph.forward();
        let Some(segment) = shards.segments().get(self.segment) else {
            return Ok(false);
        };
        let (both, weighted) = (graph.description().directed, graph.description().weighted);
        self.reader.for_each_edge(shards, self.segment, |source, target, weight| {
            if both || source <= target {
                batch.sources.push(source);
                batch.targets.push(target);
                batch.weights.extend(weighted.then_some(weight));
            }
        })?;
        match &self.ranks {
            Some(ranks) => {
                batch.sources.iter_mut().chain(&mut batch.targets).try_for_each(|vertex| {
                    let rank = ranks
                        .get(*vertex as usize)
                        .ok_or_else(|| shards.contradiction(self.segment))?;
                    *vertex = *rank;
                    Ok::<_, Error>(())
                })?
            }
            None => {
                self.name_targets(segment.interval, batch)?;
                for source in &mut batch.sources {
                    // Sources ascend within a segment, so the window only moves forward.
                    *source = self.sources.of(&graph, *source)?;
                }
            }
        }
        if !both {
            let is_rank = self.ranks.is_some();
            let key = |id: u64| if is_rank { id } else { graph.id_type().order_key(id) };
            for (source, target) in batch.sources.iter_mut().zip(&mut batch.targets) {
                if key(*source) > key(*target) {
                    std::mem::swap(source, target);
                }
            }
        }
        self.segment += 1;
        Ok(true)
    }

    fn name_targets(&mut self, interval: u64, batch: &mut EdgeBatch) -> Result<()> {
        let bits = self.graph.description().interval_bits;
        let start = interval << bits;
        if self.interval != Some(interval) {
            self.targets.resize((self.graph.vertices() - start).min(1 << bits) as usize, 0);
            self.graph.external_ids(start, &mut self.targets)?;
            self.interval = Some(interval);
        }
        for target in &mut batch.targets {
            // The segment reader has checked that targets are vertices.
            let id = self.targets.get((*target - start) as usize).copied();
            *target = id.ok_or_else(|| Error::no_such_rank(*target))?;
        }
        Ok(())
    }
}

/// The arguments of every format's writer.
struct Exporting<'a> {
    graph: &'a Arc<Graph>,
    path: &'a Path,
    options: &'a ExportOptions,
    resources: &'a Resources,
    /// The export's share of the budget, in bytes.
    memory_bytes: u64,
}

impl Exporting<'_> {
    fn sink(&self) -> Result<Sink> {
        Sink::create(self.path, self.options.overwrite, self.options.compression)
    }

    /// The folder of the output, where scratch files go.
    fn folder(&self) -> &Path {
        self.path.parent().filter(|folder| *folder != Path::new("")).unwrap_or(Path::new("."))
    }
}

/// The minimum memory of an export in bytes, besides that of the process and of string ids.
pub fn minimum_bytes(options: &ExportOptions, workers: usize) -> u64 {
    let sorting = if options.format == Format::Metis { metis::minimum_bytes(workers) } else { 0 };
    READING_BYTES + sorting + options.compression.map_or(0, Compression::memory_bytes)
}

/// Writes the graph as `path` (Graphalytics: as three files next to it).
///
/// Memory: [`minimum_bytes`], and `NameCursor::MEMORY_BYTES` for string ids. METIS sorts in the
/// whole budget, with scratch space next to the output: 16 bytes an edge, or 32 with weights.
///
/// # Errors
/// [`Error::Usage`] if the format cannot hold the graph, with the reason and a format that can.
pub fn write(
    graph: &Arc<Graph>,
    path: &Path,
    options: &ExportOptions,
    resources: &Resources,
) -> Result<Exported> {
    let mut lost = text::losses(graph, options.format);
    if !lost.is_empty() && !options.lossy {
        return Err(text::refusal(options.format, &lost));
    }
    let names = if graph.longest_name().is_some() { NameCursor::MEMORY_BYTES } else { 0 };
    let minimum = minimum_bytes(options, resources.workers()) + names;
    let memory = resources.budget.reserve_all(minimum, "to export edges")?;
    let compressing = options.compression.map_or(0, Compression::memory_bytes);
    let memory_bytes = memory.bytes() - compressing - names;
    let exporting = Exporting { graph, path, options, resources, memory_bytes };
    let edges = match options.format {
        Format::EdgeList | Format::Csv | Format::U32Pairs => text::write(&exporting, &mut lost),
        Format::Mtx => mtx::write(&exporting),
        Format::Metis => metis::write(&exporting),
        Format::Graphalytics => graphalytics::write(&exporting),
    }?;
    Ok(Exported { edges, lost })
}

/// Calls `each` with the ids of the vertices without edges, ascending, a batch at a time.
pub fn each_isolated(graph: &Graph, mut each: impl FnMut(&[u64]) -> Result<()>) -> Result<()> {
    let mut ids = Vec::new();
    for start in (graph.connected()..graph.vertices()).step_by(WINDOW) {
        ids.resize((graph.vertices() - start).min(WINDOW as u64) as usize, 0);
        graph.external_ids(start, &mut ids)?;
        each(&ids)?;
    }
    Ok(())
}

/// [`each_edge`] for a graph with string ids.
fn each_named_edge(
    exporting: &Exporting<'_>,
    out: &mut Sink,
    mut line: impl FnMut(&mut String, &str, &str, Option<f64>) -> Result<()>,
) -> Result<u64> {
    let (graph, job) = (exporting.graph, &exporting.resources.job);
    job.begin("export", graph.description().edges);
    let mut reader = EdgeReader::new(Arc::clone(graph));
    let (mut batch, mut text, mut edges) = (EdgeBatch::default(), String::new(), 0);
    let mut names = NameCursor::default();
    while reader.next(&mut batch)? {
        let mut start = 0;
        while start < batch.len() {
            job.check()?;
            let part = start..batch.len().min(start + NAMED_EDGES);
            let ends = [&batch.sources, &batch.targets].map(|ids| present(&ids[part.clone()]));
            let (rows, labels) = names.rows(graph, &[&ends[0], &ends[1]])?;
            for at in 0..rows {
                let [source, target] =
                    [0, 1].map(|end: usize| labels.get(end).map_or("", |l| l.get(at)));
                line(&mut text, source, target, batch.weights.get(start + at).copied())?;
                if text.len() >= FLUSH_BYTES {
                    out.write(text.as_bytes())?;
                    text.clear();
                }
            }
            start += rows;
        }
        edges += batch.len() as u64;
        job.advance(batch.len() as u64);
    }
    out.write(text.as_bytes())?;
    Ok(edges)
}

/// Writes the `line` of each edge (source, target, weight) to `out`; returns the number of edges.
fn each_edge(
    exporting: &Exporting<'_>,
    out: &mut Sink,
    mut line: impl FnMut(&mut String, i128, i128, Option<f64>) -> Result<()>,
) -> Result<u64> {
    let (graph, job) = (exporting.graph, &exporting.resources.job);
    job.begin("export", graph.description().edges);
    let mut reader = EdgeReader::new(Arc::clone(graph));
    let (mut batch, mut text, mut edges) = (EdgeBatch::default(), String::new(), 0);
    let id_type = graph.id_type();
    while reader.next(&mut batch)? {
        for (at, (&source, &target)) in batch.sources.iter().zip(&batch.targets).enumerate() {
            line(
                &mut text,
                id_type.number(source),
                id_type.number(target),
                batch.weights.get(at).copied(),
            )?;
            if text.len() >= FLUSH_BYTES {
                job.check()?;
                out.write(text.as_bytes())?;
                text.clear();
            }
        }
        edges += batch.len() as u64;
        job.advance(batch.len() as u64);
    }
    out.write(text.as_bytes())?;
    Ok(edges)
}
