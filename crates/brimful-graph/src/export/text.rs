//! Formats that hold edges alone: edgelist, csv, u32pairs.
//!
//! Vertices without edges and the direction are not in them: `--vertices` and `--undirected` give them
//! back at import. Invariant: weights are written in the shortest form that reads back the same.

use std::fmt::Write as _;

use super::{Exporting, FLUSH_BYTES, Format, each_edge, each_named_edge};
use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::export::EdgeReader;
use crate::text::push_csv;

/// Writes the graph; returns the number of edges.
pub(super) fn write(exporting: &Exporting<'_>) -> Result<u64> {
    let graph = exporting.graph.description();
    let (heading, separator) = match exporting.options.format {
        Format::U32Pairs => return write_pairs(exporting),
        Format::Csv if graph.weighted => ("source,target,weight\n".to_owned(), ','),
        Format::Csv => ("source,target\n".to_owned(), ','),
        _ => {
            let kind = if graph.directed { "directed" } else { "undirected" };
            (format!("# {kind}, {} vertices, {} edges\n", graph.vertices, graph.edges), '\t')
        }
    };
    let mut out = exporting.sink()?;
    out.write(heading.as_bytes())?;
    if exporting.graph.longest_name().is_some() {
        let edges = each_named_edge(exporting, &mut out, |text, source, target, weight| {
            for (name, behind) in [(source, Some(separator)), (target, None)] {
                match separator {
                    ',' => push_csv(one_line(name)?, text),
                    _ => text.push_str(one_word(name, behind.is_some())?),
                }
                text.extend(behind);
            }
            if let Some(weight) = weight {
                // Writing to a string cannot fail.
                let _ = write!(text, "{separator}{weight}");
            }
            text.push('\n');
            Ok(())
        })?;
        out.finish()?;
        return Ok(edges);
    }
    let edges = each_edge(exporting, &mut out, |text, source, target, weight| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{source}{separator}{target}");
        if let Some(weight) = weight {
            let _ = write!(text, "{separator}{weight}");
        }
        text.push('\n');
    })?;
    out.finish()?;
    Ok(edges)
}

/// A name that stands on one line.
fn one_line(name: &str) -> Result<&str> {
    if !name.contains(['\n', '\r']) {
        return Ok(name);
    }
    let what = format!("the vertex {name:?} has a line end in its id, which csv could not be read back with");
    Err(Error::Usage(what + "; export as parquet or arrow"))
}

/// A name that is a word of an edge list, and begins no comment where it is the `first` of its line.
fn one_word(name: &str, first: bool) -> Result<&str> {
    let separates = |byte: u8| crate::text::is_separator(byte) || byte == b'\n';
    let comment = first && name.starts_with(['#', '%']);
    if !(name.is_empty() || comment || name.bytes().any(separates)) {
        return Ok(name);
    }
    Err(Error::Usage(format!(
        "the vertex {name:?} is no word of an edge list, where blanks and commas separate ids and lines that begin \
         with # or % are comments; export as csv, parquet or arrow"
    )))
}

fn write_pairs(exporting: &Exporting<'_>) -> Result<u64> {
    let (graph, job) = (exporting.graph, &exporting.resources.job);
    if graph.longest_name().is_some() {
        let what = "u32pairs hold integers, and the ids of this graph are strings; export as edgelist or csv";
        return Err(Error::Usage(what.into()));
    }
    if graph.description().weighted {
        return Err(Error::Usage("u32pairs have no weights; export as edgelist or csv".into()));
    }
    let mut out = exporting.sink()?;
    job.begin("export", graph.description().edges);
    let mut reader = EdgeReader::new(std::sync::Arc::clone(graph));
    let (mut batch, mut bytes, mut edges) = (EdgeBatch::default(), Vec::new(), 0);
    while reader.next(&mut batch)? {
        job.check()?;
        for id in batch.sources.iter().zip(&batch.targets).flat_map(|(source, target)| [*source, *target]) {
            let Ok(id) = u32::try_from(id) else {
                let what = "u32pairs hold ids below 2^32 only; export as edgelist or csv";
                return Err(Error::Usage(what.into()));
            };
            bytes.extend_from_slice(&id.to_le_bytes());
            if bytes.len() >= FLUSH_BYTES {
                out.write(&bytes)?;
                bytes.clear();
            }
        }
        edges += batch.len() as u64;
        job.advance(batch.len() as u64);
    }
    out.write(&bytes)?;
    out.finish()?;
    Ok(edges)
}
