//! Figures of runs and imports, as Python dicts.

use brimful::engine::Stats;
use brimful::graph::read::description::Description;
use brimful::store::memory::peak_resident_bytes;
use brimful::store::{Content, Moved};
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Adds the sizes of a graph and the counts of its import.
pub(crate) fn describe(out: &Bound<'_, PyDict>, graph: &Description) -> PyResult<()> {
    out.set_item("vertices", graph.vertices)?;
    out.set_item("edges", graph.edges)?;
    out.set_item("arcs", graph.arcs)?;
    out.set_item("directed", graph.directed)?;
    out.set_item("weighted", graph.weighted)?;
    out.set_item("lines", graph.counts.lines)?;
    out.set_item("self_loops", graph.counts.self_loops)?;
    out.set_item("duplicates", graph.counts.duplicates)?;
    out.set_item("rejected", graph.counts.rejected)?;
    out.set_item("self_loops_dropped", graph.counts.self_loops_dropped)?;
    out.set_item("duplicates_dropped", graph.counts.duplicates_dropped)?;
    // Edges, weights and the starts of blocks, per stored arc.
    out.set_item("bytes_per_edge", ratio(graph.forward.layers[0].bytes, graph.arcs))
}

/// Bytes per stored arc.
pub(crate) fn ratio(bytes: u64, arcs: u64) -> f64 {
    bytes as f64 / arcs.max(1) as f64
}

/// Seconds by phase; a repeated phase has one sum.
pub(crate) fn phases<'py>(
    py: Python<'py>,
    phases: &[(&'static str, f64)],
) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    for (name, seconds) in phases {
        let before = out.get_item(name)?.map_or(Ok(0.0), |sum| sum.extract::<f64>())?;
        out.set_item(name, before + seconds)?;
    }
    Ok(out)
}

/// The figures of this process in a run that several made.
pub(crate) fn process_figures<'py>(py: Python<'py>, stats: &Stats) -> PyResult<Bound<'py, PyDict>> {
    let out = PyDict::new(py);
    out.set_item("threads", stats.threads)?;
    out.set_item("supersteps", stats.supersteps)?;
    out.set_item("superstep_seconds", stats.durations.total())?;
    out.set_item("bytes_read", stats.moved.bytes_read())?;
    out.set_item("bytes_written", stats.moved.bytes_written())?;
    out.set_item("bytes_found", stats.moved.bytes_found())?;
    out.set_item("read_seconds", stats.moved.reads().seconds())?;
    out.set_item("peak_rss_bytes", peak_resident_bytes())?;
    Ok(out)
}

/// Transfers between files and memory; bytes read, written and found there, in total and by
/// content.
pub(crate) fn bytes_moved(out: &Bound<'_, PyDict>, moved: Moved) -> PyResult<()> {
    let by_content = |bytes: &dyn Fn(Content) -> u64| {
        let by = PyDict::new(out.py());
        Content::ALL
            .into_iter()
            .try_for_each(|content| by.set_item(content.name(), bytes(content)))?;
        PyResult::Ok(by)
    };
    for (transfers, count, seconds) in
        [(moved.reads(), "reads", "read_seconds"), (moved.writes(), "writes", "write_seconds")]
    {
        out.set_item(count, transfers.count)?;
        out.set_item(seconds, transfers.seconds())?;
    }
    out.set_item("bytes_read", moved.bytes_read())?;
    out.set_item("bytes_read_by", by_content(&|content| moved.read(content))?)?;
    out.set_item("bytes_written", moved.bytes_written())?;
    out.set_item("bytes_written_by", by_content(&|content| moved.written(content))?)?;
    out.set_item("bytes_found", moved.bytes_found())?;
    out.set_item("bytes_found_by", by_content(&|content| moved.found(content))?)
}
