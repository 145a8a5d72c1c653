//! Parsers of text: whole, in small chunks, and leaving out broken lines.

use brimful_graph::build::import::OnError;
use brimful_graph::error::Error;
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::input::declaration::Declaration;
use brimful_graph::input::formats::TextFormat;
use brimful_graph::input::formats::graphalytics::EdgeFile;
use brimful_graph::input::formats::parse::{has_position, parse_columns, parse_webgraph};

/// The parser of the format of this name.
pub(crate) fn check(name: &str, bytes: &[u8]) -> bool {
    check_columns(format(name), &ColumnChoice::default(), bytes)
}

fn format(name: &str) -> TextFormat {
    TextFormat::from_name(name).expect("a target is named after a format")
}

/// Parses `bytes`; neither the size of chunks nor rejections change the edges.
fn check_columns(format: TextFormat, choice: &ColumnChoice, bytes: &[u8]) -> bool {
    let parse = |chunk, on_error| parse_columns(format, choice, bytes, chunk, on_error);
    let whole = parse(1 << 20, OnError::Fail);
    let cut = parse(200, OnError::Fail);
    let skipped = parse(1 << 20, OnError::Skip);
    match (&whole, &cut) {
        (Ok(whole), Ok(cut)) => {
            assert_eq!(whole, cut);
            // Even an entry of a list has a byte of its own.
            assert!(whole.edges.len() + whole.listed.len() <= bytes.len());
            assert!(whole.rejections.is_empty());
            assert_eq!(skipped.as_ref().ok(), Some(whole));
        }
        (Err(error), Err(again)) => {
            assert!(has_position(error), "{error}");
            let too_long = again.to_string().contains("without a line end");
            assert!(too_long || error.to_string() == again.to_string(), "{error} / {again}");
        }
        // A header longer than a small chunk.
        (_, Err(error)) => assert!(error.to_string().contains("without a line end"), "{error}"),
        (Err(error), Ok(_)) => panic!("{error} only in one piece"),
    }
    if let Ok(skipped) = &skipped {
        let entries = skipped.edges.len() + skipped.listed.len();
        let rejected: u64 = skipped.rejections.iter().map(|rejection| rejection.count).sum();
        assert!(entries as u64 + rejected <= bytes.len() as u64);
        assert!(skipped.rejections.iter().all(|r| r.line >= 1 && r.line <= skipped.lines));
    }
    whole.is_ok()
}

/// The bodies of `graphalytics`: a vertex file and an edge file of the same bytes.
pub(crate) fn graphalytics(bytes: &[u8]) -> bool {
    let choice = ColumnChoice::default();
    let vertices = check_columns(TextFormat::Vertices(None), &choice, bytes);
    check_columns(TextFormat::Graphalytics(EdgeFile::default()), &choice, bytes) || vertices
}

/// The columns of tables of text.
///
/// The first byte says which kind of text, which delimiter, and whether there is a header. The
/// three lines that follow name the columns of sources, targets and weights, or are empty; the rest
/// is the file.
pub(crate) fn columns(bytes: &[u8]) -> bool {
    let Some((&kind, rest)) = bytes.split_first() else { return false };
    let mut lines: Vec<&[u8]> = rest.splitn(4, |byte| *byte == b'\n').collect();
    let file = if lines.len() == 4 { lines.pop().unwrap_or_default() } else { &[] };
    let choice = choice(kind, &lines);
    let names: Vec<String> = file
        .split(|byte| *byte == b',')
        .map(|name| String::from_utf8_lossy(name).into_owned())
        .collect();
    if let Ok(roles) = choice.of_names(&names) {
        assert!(roles.source != roles.target && roles.source.max(roles.target) < names.len());
        assert_eq!(roles.ignored().count(), names.len() - 2 - usize::from(roles.weight.is_some()));
    }
    check_columns(format(["csv", "tsv", "edgelist", "auto"][usize::from(kind) % 4]), &choice, file)
}

fn choice(kind: u8, lines: &[&[u8]]) -> ColumnChoice {
    let line = |at: usize| lines.get(at).filter(|line| !line.is_empty());
    let column = |at: usize| line(at).map(|line| String::from_utf8_lossy(line).into_owned());
    ColumnChoice {
        source: column(0),
        target: column(1),
        weight: column(2),
        header: [None, Some(true), Some(false)][usize::from(kind >> 2) % 3],
        delimiter: [None, Some(b';'), Some(b'|'), Some(b' ')][usize::from(kind >> 5) % 4],
        ignore_extra: kind >= 128,
    }
}

/// Declarations of exported graphs: two lines, alone and joined, and an edge list that begins with
/// the first.
pub(crate) fn declaration(bytes: &[u8]) -> bool {
    check("edgelist", &[&b"# brimful: "[..], bytes].concat());
    let Ok(lines) = std::str::from_utf8(bytes) else { return false };
    let mut read = lines.lines().map(Declaration::parse);
    let (Some(Ok(one)), other) = (read.next(), read.next()) else { return false };
    assert_eq!(Declaration::parse(&one.to_string()), Ok(one));
    assert!(one.listed() <= one.vertices);
    if let Some(Ok(other)) = other {
        assert_eq!(one.join(&other), other.join(&one));
        if let Some(joined) = one.join(&other) {
            assert!(
                joined.edges >= one.edges && joined.vertices >= one.vertices.max(other.vertices)
            );
        }
    }
    true
}

/// The reader of WebGraph: properties, an empty line, the graph.
pub(crate) fn webgraph(bytes: &[u8]) -> bool {
    let split = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let (properties, graph) = bytes.split_at(split);
    match parse_webgraph(properties, graph.get(2..).unwrap_or_default(), 1 << 16) {
        // Intervals and copies write many arcs in few bits; the properties bound their number.
        Ok(parsed) => {
            let text = String::from_utf8_lossy(properties).into_owned();
            let mut numbers = text.split(|c: char| !c.is_ascii_digit());
            assert!(numbers.any(|number| number.parse() == Ok(parsed.edges.len())), "{text:?}");
            true
        }
        Err(error) => {
            assert!(has_position(&error) || matches!(&error, Error::Input { .. }), "{error}");
            false
        }
    }
}
