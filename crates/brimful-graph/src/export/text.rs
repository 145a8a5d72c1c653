//! Formats that hold edges alone: edgelist, csv, u32pairs.
//!
//! An edge list declares the other facts in comments ([`Declaration`]). The other two cannot hold
//! them, so an undirected graph, or one with isolated vertices, is refused or loses these facts.
//! Invariant: weights are written in the shortest form that reads back the same.

use std::fmt::Write as _;

use super::{
    Exporting, FLUSH_BYTES, Format, OTHERS, Sink, each_edge, each_isolated, each_named_edge,
};
use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::export::EdgeReader;
use crate::ids::external::present;
use crate::input::declaration::Declaration;
use crate::input::id_choice::{LOOKED_AT_LINES, are_names};
use crate::input::text::{is_integer, push_csv};
use crate::read::graph::Graph;
use crate::read::name_cursor::NameCursor;

/// The facts about the graph that the format cannot hold.
pub(super) fn losses(graph: &Graph, format: Format) -> Vec<String> {
    let (description, mut lost) = (graph.description(), Vec::new());
    if !matches!(format, Format::Csv | Format::U32Pairs) {
        return lost;
    }
    if !description.directed {
        lost.push("the direction of the graph (undirected)".to_owned());
    }
    match graph.vertices() - graph.connected() {
        0 => {}
        1 => lost.push("a vertex without edges".to_owned()),
        isolated => lost.push(format!("{isolated} vertices without edges")),
    }
    if format == Format::U32Pairs && description.weighted {
        lost.push("the weights of edges".to_owned());
    }
    lost
}

/// The error for a graph that would lose facts.
pub(super) fn refusal(format: Format, lost: &[String]) -> Error {
    Error::Usage(format!(
        "{} cannot hold {}; {OTHERS}, or leave this out with --lossy",
        format.name(),
        lost.join(" and ")
    ))
}

/// Writes the graph; returns the number of edges. Adds lost facts to `lost`.
pub(super) fn write(exporting: &Exporting<'_>, lost: &mut Vec<String>) -> Result<u64> {
    let graph = exporting.graph.description();
    if exporting.options.format == Format::U32Pairs {
        return write_pairs(exporting);
    }
    let mut out = exporting.sink()?;
    let declaration = Declaration::of(exporting.graph)?;
    let heading = match (exporting.options.format, graph.weighted) {
        (Format::Csv, true) => "source,target,weight\n".to_owned(),
        (Format::Csv, false) => "source,target\n".to_owned(),
        _ => declaration.comment(),
    };
    out.write(heading.as_bytes())?;
    let edges = match exporting.graph.longest_name() {
        Some(_) => write_named(exporting, &mut out, lost)?,
        None => {
            let separator = separator(exporting);
            each_edge(exporting, &mut out, |text, source, target, weight| {
                // Writing to a string cannot fail.
                let _ = write!(text, "{source}{separator}{target}");
                if let Some(weight) = weight {
                    let _ = write!(text, "{separator}{weight}");
                }
                text.push('\n');
                Ok(())
            })?
        }
    };
    if exporting.options.format == Format::EdgeList && declaration.listed() > 0 {
        write_isolated(exporting, &mut out)?;
    }
    out.finish()?;
    Ok(edges)
}

fn separator(exporting: &Exporting<'_>) -> char {
    if exporting.options.format == Format::Csv { ',' } else { '\t' }
}

/// Writes the edges of a graph with string ids.
fn write_named(exporting: &Exporting<'_>, out: &mut Sink, lost: &mut Vec<String>) -> Result<u64> {
    let (separator, csv) = (separator(exporting), exporting.options.format == Format::Csv);
    // The counts by which a reader of the CSV file decides the type of ids.
    let (mut seen, mut others) = (0, 0);
    let edges = each_named_edge(exporting, out, |text, source, target, weight| {
        for (name, behind) in [(source, Some(separator)), (target, None)] {
            match csv {
                true => push_csv(one_line(name)?, text),
                false => text.push_str(one_word(name, behind.is_some())?),
            }
            text.extend(behind);
            if csv && seen < 2 * LOOKED_AT_LINES {
                seen += 1;
                others += usize::from(!is_integer(name.trim().as_bytes()));
            }
        }
        if let Some(weight) = weight {
            // Writing to a string cannot fail.
            let _ = write!(text, "{separator}{weight}");
        }
        text.push('\n');
        Ok(())
    })?;
    if csv && !are_names(seen, others) {
        let words = "the type of the ids (strings that look like integers)".to_owned();
        if !exporting.options.lossy {
            return Err(refusal(Format::Csv, &[words]));
        }
        lost.push(words);
    }
    Ok(edges)
}

/// Writes a comment line for every vertex without edges.
fn write_isolated(exporting: &Exporting<'_>, out: &mut Sink) -> Result<()> {
    let (graph, mut names, mut text) = (exporting.graph, NameCursor::default(), String::new());
    each_isolated(graph, |ids| {
        let mut start = 0;
        while let Some(rest @ [_, ..]) = ids.get(start..) {
            exporting.resources.job.check()?;
            text.clear();
            if graph.longest_name().is_some() {
                let (rows, labels) = names.rows(graph, &[&present(rest)])?;
                for name in labels.iter().flat_map(|labels| labels.iter()) {
                    Declaration::begin_vertex(&mut text);
                    text.push_str(one_word(name, false)?);
                    text.push('\n');
                }
                start += rows;
            } else {
                for &id in rest {
                    Declaration::begin_vertex(&mut text);
                    // Writing to a string cannot fail.
                    let _ = writeln!(text, "{}", graph.id_type().number(id));
                }
                start = ids.len();
            }
            out.write(text.as_bytes())?;
        }
        Ok(())
    })
}

/// The name, or an error if it contains a line end.
fn one_line(name: &str) -> Result<&str> {
    if !name.contains(['\n', '\r']) {
        return Ok(name);
    }
    let problem = format!(
        "the id {name:?} contains a line end, which an import from csv would not read back"
    );
    Err(Error::Usage(format!("{problem}; {OTHERS}")))
}

/// Returns the name, or an error if it is more than one word of an edge list or, as the `first`
/// word of a line, would begin a comment.
fn one_word(name: &str, first: bool) -> Result<&str> {
    let separates = |byte: u8| crate::input::text::is_separator(byte) || byte == b'\n';
    let comment = first && name.starts_with(['#', '%']);
    if !(name.is_empty() || comment || name.bytes().any(separates)) {
        return Ok(name);
    }
    Err(Error::Usage(format!(
        "the id {name:?} cannot be written to an edge list, where blanks and commas separate ids \
         and lines that begin with # or % are comments; {OTHERS}"
    )))
}

fn write_pairs(exporting: &Exporting<'_>) -> Result<u64> {
    let (graph, job) = (exporting.graph, &exporting.resources.job);
    if graph.longest_name().is_some() {
        let problem = "u32pairs hold integers, and the ids of this graph are strings";
        return Err(Error::Usage(format!("{problem}; {OTHERS}")));
    }
    let mut out = exporting.sink()?;
    job.begin("export", graph.description().edges);
    let mut reader = EdgeReader::new(std::sync::Arc::clone(graph));
    let (mut batch, mut bytes, mut edges) = (EdgeBatch::default(), Vec::new(), 0);
    while reader.next(&mut batch)? {
        job.check()?;
        for id in
            batch.sources.iter().zip(&batch.targets).flat_map(|(source, target)| [*source, *target])
        {
            let Ok(id) = u32::try_from(graph.id_type().number(id)) else {
                let problem = "u32pairs hold ids from 0 to 2^32-1 only";
                return Err(Error::Usage(format!("{problem}; {OTHERS}")));
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
