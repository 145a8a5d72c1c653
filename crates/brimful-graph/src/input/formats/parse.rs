//! Parses a whole input in memory on one thread, with the reader and the parsers of an import.
//!
//! For fuzzing and tests: chunks may be a few bytes long, so that lines are cut at every position.

use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use super::parser::{OnError, Output, TextParser};
use super::reader::{Chunk, TextReader};
use super::webgraph::WebGraph;
use super::{TextFile, TextFormat};
use crate::edges::EdgeBatch;
use crate::error::{Error, Result};
use crate::input::columns::ColumnChoice;
use crate::input::stream::{EdgeStream, Rejection};

/// The contents of an input.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct ParsedInput {
    /// Source, target and weight (1 without weights); ids as 64 bits.
    pub edges: Vec<(u64, u64, f64)>,
    /// Isolated vertices that were listed one by one.
    pub listed: Vec<u64>,
    /// First id and number of vertices, if a header declares them.
    pub declared: Option<(u64, u64)>,
    /// True if edges are undirected.
    pub undirected: bool,
    /// True if edges have weights.
    pub weighted: bool,
    /// Number of lines.
    pub lines: u64,
    /// The line of each edge.
    pub positions: Vec<u64>,
    /// Rejected lines, by reason.
    pub rejections: Vec<Rejection>,
}

impl ParsedInput {
    fn take(&mut self, edges: &mut EdgeBatch) {
        for at in 0..edges.len() {
            let ends = edges.sources.get(at).zip(edges.targets.get(at));
            self.edges.extend(ends.map(|(&source, &target)| (source, target, edges.weight(at))));
        }
        self.positions.append(&mut edges.positions);
        edges.clear();
    }
}

/// Parses text in `format` in chunks of `chunk_bytes`. Errors call the file `NAME`.
///
/// # Errors
/// Errors of an import.
pub fn parse_text(
    format: TextFormat,
    bytes: &[u8],
    chunk_bytes: usize,
    on_error: OnError,
) -> Result<ParsedInput> {
    parse_columns(format, &ColumnChoice::default(), bytes, chunk_bytes, on_error)
}

/// [`parse_text`] with the user's choice of columns.
///
/// # Errors
/// Errors of an import.
pub fn parse_columns(
    format: TextFormat,
    choice: &ColumnChoice,
    bytes: &[u8],
    chunk_bytes: usize,
    on_error: OnError,
) -> Result<ParsedInput> {
    let files = [TextFile { path: PathBuf::from("NAME"), format }];
    let mut reader = reader_of(&files, bytes, chunk_bytes, choice);
    let parser = TextParser::new(&files, on_error).noting_positions(true);
    let (mut chunk, mut out, mut parsed) =
        (Chunk::default(), Output::default(), ParsedInput::default());
    let mut full = |out: &mut Output| {
        parsed.take(&mut out.edges);
        parsed.listed.append(&mut out.declared.sources);
        out.declared.clear();
        Ok(())
    };
    while reader.next(&mut chunk)? {
        parser.parse(&chunk, &mut out, &mut full)?;
    }
    full(&mut out)?;
    let summary = parser.finish(reader.into_ends())?;
    Ok(ParsedInput {
        declared: summary.declared.map(|span| (span.first, span.count)),
        undirected: summary.undirected,
        weighted: summary.weighted,
        lines: summary.lines,
        rejections: summary.rejections,
        ..parsed
    })
}

/// [`parse_text`] for string ids: the ends of the edges, and the isolated vertices.
///
/// # Errors
/// Errors of an import.
pub fn parse_names(
    format: TextFormat,
    bytes: &[u8],
    chunk_bytes: usize,
    on_error: OnError,
) -> Result<(Vec<String>, Vec<String>)> {
    let files = [TextFile { path: PathBuf::from("NAME"), format }];
    // Any two words form an edge.
    let choice = match format {
        TextFormat::EdgeList => {
            ColumnChoice { header: Some(false), ignore_extra: true, ..ColumnChoice::default() }
        }
        _ => ColumnChoice::default(),
    };
    let mut reader = reader_of(&files, bytes, chunk_bytes, &choice).with_names();
    let parser = TextParser::new(&files, on_error);
    let (mut chunk, mut out) = (Chunk::default(), Output::default());
    let (mut ends, mut alone) = (Vec::new(), Vec::new());
    let mut full = |out: &mut Output| {
        for (names, taken) in [(&mut out.names, &mut ends), (&mut out.declared_names, &mut alone)] {
            taken.extend(names.iter().map(|name| String::from_utf8_lossy(name).into_owned()));
            names.clear();
        }
        Ok(())
    };
    while reader.next(&mut chunk)? {
        parser.parse(&chunk, &mut out, &mut full)?;
    }
    full(&mut out)?;
    parser.finish(reader.into_ends())?;
    Ok((ends, alone))
}

fn reader_of<'f>(
    files: &'f [TextFile],
    bytes: &[u8],
    chunk_bytes: usize,
    choice: &ColumnChoice,
) -> TextReader<'f> {
    let input = bytes.to_vec();
    let open = Box::new(move |_: &Path| -> Result<Box<dyn Read + Send>> {
        Ok(Box::new(Cursor::new(input.clone())))
    });
    TextReader::new(files, None, chunk_bytes, open).with_columns(choice)
}

/// Parses a WebGraph from its two files; lists may use `memory_bytes`.
///
/// # Errors
/// Errors of an import.
pub fn parse_webgraph(properties: &[u8], graph: &[u8], memory_bytes: u64) -> Result<ParsedInput> {
    let mut stream = WebGraph::open(Path::new("NAME.graph"), memory_bytes, |path| {
        let is_graph = path.extension().is_some_and(|suffix| suffix == "graph");
        Ok(Box::new(Cursor::new(if is_graph { graph.to_vec() } else { properties.to_vec() })))
    })?;
    let (mut batch, mut parsed) = (EdgeBatch::default(), ParsedInput::default());
    while stream.next(&mut batch)? {
        parsed.take(&mut batch);
    }
    Ok(ParsedInput { declared: Some((0, stream.declared().end)), ..parsed })
}

/// True if an error names a position in the text, or concerns the file as a whole: its columns or
/// its format.
pub fn has_position(error: &Error) -> bool {
    let is_of_the_file =
        matches!(error, Error::Usage(_) | Error::Input { .. } | Error::NoColumn { .. });
    is_of_the_file || matches!(error, Error::Parse { line: 1.., column: 1.., .. })
}
