//! METIS: a line per vertex that lists its neighbors, with each edge in both lines. (Karypis and
//! Kumar, *METIS 5.1 manual*, section 4.1.1.)
//!
//! Both directions of every edge go through the external sorter, so memory stays within the budget
//! for any degrees. A graph that METIS cannot hold is refused: before the work if its counts show
//! it, otherwise when the offending edge is met; then no file is written. Invariant: the lines hold
//! exactly twice the announced number of edges.

use std::fmt::Write as _;

use brimful_store::DiskFolder;
use brimful_store::sorter::{self, Sorter};

use super::numbering::Numbering;
use super::sink::Sink;
use super::{EdgeReader, Exporting, FLUSH_BYTES, OTHERS, READING_BYTES};
use crate::build::records::{EdgeRecord, KeyLayout, RecordWork, WeightedPair};
use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::input_position::UNKNOWN;

/// The least memory for sorting the lines, in bytes.
pub(super) fn minimum_bytes(workers: usize) -> u64 {
    sorter::minimum_bytes(workers, size_of::<WeightedPair>())
}

/// Writes the graph; returns the number of edges.
pub(super) fn write(exporting: &Exporting<'_>) -> Result<u64> {
    let graph = exporting.graph.description();
    if graph.directed {
        return refuse("METIS graphs have no direction; import the graph with --undirected");
    }
    if graph.counts.self_loops > graph.counts.self_loops_dropped {
        return refuse(SELF_LOOP);
    }
    // Dropped self-loops may have been duplicates; then only the edges show whether others remain.
    if graph.counts.self_loops_dropped == 0
        && graph.counts.duplicates > graph.counts.duplicates_dropped
    {
        return refuse(PARALLEL_EDGES);
    }
    if graph.weights.is_some_and(|range| range.min < 1.0) {
        return refuse(WEIGHT);
    }
    let numbering = Numbering::of(exporting)?;
    // Records sort by vertex, then by neighbor.
    let vertex_bits = KeyLayout::new(exporting.graph.vertices(), 1).vertex_bits;
    let layout = KeyLayout { vertex_bits, interval_bits: 0 };
    layout.with_records(graph.weighted, false, LineWriting { exporting, numbering, layout })
}

/// The lines of the vertices, to be written.
struct LineWriting<'e, 'g> {
    exporting: &'e Exporting<'g>,
    numbering: Numbering<'e>,
    layout: KeyLayout,
}

impl RecordWork for LineWriting<'_, '_> {
    type Done = Result<u64>;

    fn with<R: EdgeRecord>(self) -> Result<u64> {
        write_lines::<R>(self.exporting, self.numbering, self.layout)
    }
}

const SELF_LOOP: &str =
    "METIS graphs have no self-loops, and this one has some; import it with --self-loops drop";
const PARALLEL_EDGES: &str = "METIS graphs have no parallel edges, and this one has some; import it \
                          with --duplicates drop, sum or min";
const WEIGHT: &str =
    "METIS weights are whole numbers from 1, but this graph has other weights; export as mtx";

fn refuse<T>(problem: &str) -> Result<T> {
    Err(Error::Usage(format!("{problem}, or {OTHERS}")))
}

fn write_lines<R: EdgeRecord>(
    exporting: &Exporting<'_>,
    numbering: Numbering<'_>,
    layout: KeyLayout,
) -> Result<u64> {
    let (graph, resources) = (exporting.graph, exporting.resources);
    let job = &resources.job;
    let bytes = exporting
        .memory_bytes
        .saturating_sub(READING_BYTES)
        .max(minimum_bytes(resources.workers()));
    let folder = DiskFolder::new(exporting.folder());
    let sorter = Sorter::<R>::new(&folder, bytes, resources.workers(), job)?;
    let mut writer = sorter.writer();
    let mut reader = EdgeReader::new(std::sync::Arc::clone(graph));
    let mut batch = EdgeBatch::default();
    let id_type = graph.id_type();
    job.begin("sort", graph.description().edges);
    while reader.next(&mut batch)? {
        job.check()?;
        for (at, (&source, &target)) in batch.sources.iter().zip(&batch.targets).enumerate() {
            let source = numbering.number(id_type.number(source))?;
            let target = numbering.number(id_type.number(target))?;
            let weight = batch.weight(at);
            if source == target {
                return refuse(SELF_LOOP);
            }
            // The layout sorts by target first, so the vertex of the list is the target. Keys count
            // from 0.
            writer.push(R::pack(layout, target - 1, source - 1, weight, UNKNOWN))?;
            writer.push(R::pack(layout, source - 1, target - 1, weight, UNKNOWN))?;
        }
        job.advance(batch.len() as u64);
    }
    writer.finish()?;

    job.begin("export", sorter.len());
    let edges = sorter.len() / 2;
    let mut lines = Lines::create(exporting, edges)?;
    sorter.merge(&resources.pool, |batch| {
        for record in batch {
            let (neighbor, vertex, weight) = record.unpack(layout);
            lines.push(vertex, neighbor, weight)?;
        }
        job.advance(batch.len() as u64);
        Ok::<(), Error>(())
    })?;
    lines.finish(graph.vertices())?;
    Ok(edges)
}

/// Writes the lines from neighbors that are sorted by vertex.
struct Lines {
    out: Sink,
    text: String,
    /// The vertex of the current line, and its last neighbor.
    vertex: u64,
    last: Option<u64>,
}

impl Lines {
    fn create(exporting: &Exporting<'_>, edges: u64) -> Result<Self> {
        let format = if exporting.graph.description().weighted { " 001" } else { "" };
        let mut out = exporting.sink()?;
        out.write(format!("{} {edges}{format}\n", exporting.graph.vertices()).as_bytes())?;
        Ok(Self { out, text: String::new(), vertex: 0, last: None })
    }

    #[inline]
    fn push(&mut self, vertex: u64, neighbor: u64, weight: Option<f64>) -> Result<()> {
        self.end_lines(vertex)?;
        if self.last == Some(neighbor) {
            return refuse(PARALLEL_EDGES);
        }
        let space = if self.last.is_some() { " " } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{space}{}", neighbor + 1);
        if let Some(weight) = weight {
            if weight < 1.0 || weight.fract() != 0.0 {
                return refuse(WEIGHT);
            }
            let _ = write!(self.text, " {weight}");
        }
        self.last = Some(neighbor);
        self.flush(FLUSH_BYTES)
    }

    /// Ends the lines of all vertices before `vertex`.
    fn end_lines(&mut self, vertex: u64) -> Result<()> {
        while self.vertex < vertex {
            self.text.push('\n');
            self.vertex += 1;
            self.last = None;
            self.flush(FLUSH_BYTES)?;
        }
        Ok(())
    }

    fn flush(&mut self, limit: usize) -> Result<()> {
        if self.text.len() >= limit {
            self.out.write(self.text.as_bytes())?;
            self.text.clear();
        }
        Ok(())
    }

    fn finish(mut self, vertices: u64) -> Result<()> {
        self.end_lines(vertices)?;
        self.flush(0)?;
        self.out.finish()
    }
}
