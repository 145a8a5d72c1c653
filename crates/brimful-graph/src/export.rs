//! The way out: every edge once, in external ids, segment by segment.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use brimful_store::Job;
use brimful_store::external::OutputFile;

use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::graph::{Graph, Index, Names};
use crate::shards::SegmentReader;

/// A text or binary format for edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// `source<TAB>target[<TAB>weight]`, a comment line first.
    EdgeList,
    /// A heading, then `source,target[,weight]`.
    Csv,
    /// Little-endian pairs of 32 bits.
    U32Pairs,
}

impl Format {
    /// The format of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] naming the ones there are.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "edgelist" => Ok(Self::EdgeList),
            "csv" => Ok(Self::Csv),
            "u32pairs" => Ok(Self::U32Pairs),
            _ => Err(Error::Usage(format!("cannot write {name:?}; choose from: edgelist, csv, u32pairs"))),
        }
    }
}

/// Most bytes of memory that reading edges takes, beside what the caller keeps.
pub const READING_BYTES: u64 = 40 << 20;

/// Ids looked up at once.
const WINDOW: usize = 64 << 10;

/// Pulls the edges of a graph, a segment a time, in external ids.
pub struct EdgeReader {
    graph: Arc<Graph>,
    segment: usize,
    reader: SegmentReader,
    interval: Option<u64>,
    targets: Vec<u64>,
    sources: Names,
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
            sources: Names::default(),
        }
    }

    /// Replaces `batch` by the edges of the next segment; false at the end. Each edge of an undirected
    /// graph comes once (so the batch may be empty), from the smaller id to the larger.
    pub fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        let graph = Arc::clone(&self.graph);
        let Some(shards) = graph.shards(Index::In) else {
            return Ok(false);
        };
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
        self.name_targets(segment.interval, batch)?;
        for source in &mut batch.sources {
            // Sources ascend within a segment, so the window moves along.
            *source = self.sources.of(&graph, *source)?;
        }
        if !both {
            let key = |id: u64| graph.id_type().order_key(id);
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
        batch.targets.iter_mut().for_each(|target| *target = self.targets[(*target - start) as usize]);
        Ok(())
    }
}

/// Writes all edges as `path`. Returns how many.
///
/// # Errors
/// [`Error::Usage`] if the format cannot hold the graph's ids or weights.
pub fn write(graph: &Arc<Graph>, path: &Path, format: Format, overwrite: bool, job: &Job) -> Result<u64> {
    if format == Format::U32Pairs && graph.description().weighted {
        return Err(Error::Usage("u32pairs have no weights; export as edgelist or csv".into()));
    }
    let mut out = OutputFile::create(path, overwrite)?;
    job.begin("export", graph.description().arcs);
    if format == Format::Csv {
        out.write(if graph.description().weighted { b"source,target,weight\n" } else { b"source,target\n" })?;
    } else if format == Format::EdgeList {
        let kind = if graph.description().directed { "directed" } else { "undirected" };
        let heading =
            format!("# {kind}, {} vertices, {} edges\n", graph.vertices(), graph.description().edges);
        out.write(heading.as_bytes())?;
    }
    let mut reader = EdgeReader::new(Arc::clone(graph));
    let (mut batch, mut text, mut edges) = (EdgeBatch::default(), String::new(), 0);
    while reader.next(&mut batch)? {
        for start in (0..batch.len()).step_by(WINDOW) {
            job.check()?;
            let range = start..batch.len().min(start + WINDOW);
            match format {
                Format::U32Pairs => write_pairs(&mut out, &batch, range)?,
                Format::EdgeList => write_text(&mut out, graph, &batch, range, '\t', &mut text)?,
                Format::Csv => write_text(&mut out, graph, &batch, range, ',', &mut text)?,
            }
        }
        edges += batch.len() as u64;
        job.advance(batch.len() as u64);
    }
    out.finish()?;
    Ok(edges)
}

fn write_pairs(out: &mut OutputFile, batch: &EdgeBatch, range: std::ops::Range<usize>) -> Result<()> {
    let mut bytes = Vec::with_capacity(range.len() * 8);
    for at in range {
        for id in [batch.sources[at], batch.targets[at]] {
            let Ok(id) = u32::try_from(id) else {
                return Err(Error::Usage(
                    "u32pairs hold ids below 2^32 only; export as edgelist or csv".into(),
                ));
            };
            bytes.extend_from_slice(&id.to_le_bytes());
        }
    }
    Ok(out.write(&bytes)?)
}

fn write_text(
    out: &mut OutputFile,
    graph: &Graph,
    batch: &EdgeBatch,
    range: std::ops::Range<usize>,
    separator: char,
    text: &mut String,
) -> Result<()> {
    text.clear();
    let id_type = graph.id_type();
    for at in range {
        let (source, target) = (id_type.number(batch.sources[at]), id_type.number(batch.targets[at]));
        // Writing to a string cannot fail.
        let _ = write!(text, "{source}{separator}{target}");
        if let Some(weight) = batch.weights.get(at) {
            let _ = write!(text, "{separator}{weight}");
        }
        text.push('\n');
    }
    Ok(out.write(text.as_bytes())?)
}
