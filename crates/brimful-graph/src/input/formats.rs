//! All text formats of edges; the header of a file decides how its body is read.
//!
//! `reader` cuts files into chunks and calls the format's own module for the header: `edge_list`,
//! `mtx`, `gr` (DIMACS and PACE), `jlg`, `metis`, `adjacency`, [`graphalytics`]. Each format has
//! one of three shapes, which `parser` reads on all cores: `lines` (one edge a line), `records`
//! (one edge a CSV record) or `lists` (the targets of one vertex a line). [`webgraph`] is the
//! binary format, with its `bits`. [`foreign`] recognizes formats that are not read.
//!
//! Invariant: a header decides the meaning of words, never a size. Nothing is allocated for a
//! count; counts are compared with the contents.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::input::columns::{ColumnChoice, Columns, Doubt};
use crate::input::declaration::Declaration;
use crate::input::text::{self, Span};

mod adjacency;
mod bits;
pub(crate) mod edge_list;
pub mod foreign;
mod gr;
pub mod graphalytics;
mod jlg;
mod lines;
mod lists;
mod metis;
mod mtx;
mod named;
pub mod parse;
pub(crate) mod parser;
pub(crate) mod properties;
pub(crate) mod reader;
pub(crate) mod records;
pub mod webgraph;

pub(crate) use lines::Lines;
pub(crate) use lists::Lists;
pub(crate) use records::Records;

/// A text format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// The first line decides: `mtx`, `.gr` and `jlg` have a first line of their own; anything else
    /// is an edge list.
    Auto,
    /// Words: source, target and an optional weight.
    EdgeList,
    /// CSV records, with or without a header. The fields are separated by this byte; `None`: the
    /// first records decide.
    Delimited(Option<u8>),
    /// MatrixMarket coordinates.
    Mtx,
    /// METIS and Chaco adjacency lists.
    Metis,
    /// `p sp n m`, then `a source target weight`.
    Dimacs,
    /// `p tw n m`, then `source target`.
    Pace,
    /// DIMACS or PACE; the header decides.
    Gr,
    /// The number of vertices, then one line of targets for each vertex 0, 1, ...
    Adjacency,
    /// `id target target ...`.
    AdjacencyIds,
    /// `n,m,u|d,name`, then `source,target`.
    Jlg,
    /// An edge file of Graphalytics.
    Graphalytics(graphalytics::EdgeFile),
    /// A vertex file of Graphalytics, and the number of its vertices if it is stated.
    Vertices(Option<u64>),
}

impl TextFormat {
    /// The format called `name`, among the formats whose files stand alone.
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "auto" => Self::Auto,
            "edgelist" => Self::EdgeList,
            "csv" => Self::Delimited(None),
            "tsv" => Self::Delimited(Some(b'\t')),
            "mtx" => Self::Mtx,
            "metis" => Self::Metis,
            "dimacs" => Self::Dimacs,
            "pace" => Self::Pace,
            "gr" => Self::Gr,
            "adjacency" => Self::Adjacency,
            "adjacency-ids" => Self::AdjacencyIds,
            "jlg" => Self::Jlg,
            _ => return None,
        })
    }

    /// The format of a file that begins with `line` (not blank).
    pub(crate) fn of_first_line(line: &[u8]) -> Self {
        let mut words = text::words(line);
        match words.next() {
            Some(word) if mtx::is_banner(word) => Self::Mtx,
            Some(b"c" | b"p") => Self::Gr,
            _ if jlg::is_header(line) => Self::Jlg,
            _ => Self::EdgeList,
        }
    }

    /// The actual format of a file of this format that begins with `start`: an edge list with a
    /// declaration is an edge list under any format name.
    pub(crate) fn of_start(self, start: &[u8]) -> Self {
        match self {
            Self::Delimited(_) if Declaration::begins(start) => Self::EdgeList,
            _ => self,
        }
    }

    /// True if its vertex ids may be strings.
    pub(crate) fn may_have_names(self) -> bool {
        matches!(self, Self::Auto | Self::EdgeList | Self::Delimited(_) | Self::AdjacencyIds)
    }

    /// True if the user may choose the columns.
    pub(crate) fn has_columns(self) -> bool {
        matches!(
            self,
            Self::Auto
                | Self::EdgeList
                | Self::Delimited(_)
                | Self::Graphalytics(_)
                | Self::Vertices(_)
        )
    }

    /// The name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Auto | Self::EdgeList => "edgelist",
            Self::Delimited(_) => "csv",
            Self::Mtx => "mtx",
            Self::Metis => "metis",
            Self::Dimacs => "dimacs",
            Self::Pace => "pace",
            Self::Gr => "dimacs or pace",
            Self::Adjacency => "adjacency",
            Self::AdjacencyIds => "adjacency-ids",
            Self::Jlg => "jlg",
            Self::Graphalytics(_) | Self::Vertices(_) => "graphalytics",
        }
    }

    /// Reads a line before the body, without its line end.
    fn header(self, line: &[u8], draft: &mut Draft) -> Result<Step, HeaderFlaw> {
        match self {
            // The reader has replaced `Auto` before it looks for a header.
            Self::Auto | Self::EdgeList => edge_list::header(line, draft),
            Self::Mtx => mtx::header(line, draft),
            Self::Metis => metis::header(line, draft),
            Self::Dimacs => gr::header(line, Some(gr::Problem::Dimacs)),
            Self::Pace => gr::header(line, Some(gr::Problem::Pace)),
            Self::Gr => gr::header(line, None),
            Self::Adjacency => adjacency::header(line),
            Self::Jlg => jlg::header(line),
            Self::Graphalytics(file) => graphalytics::header(line, file, draft),
            // The reader examines the beginning of a table as a whole.
            Self::Delimited(_) | Self::AdjacencyIds | Self::Vertices(_) => {
                Ok(self.without_header(draft.names).map_or(Step::Skip, Step::Data))
            }
        }
    }

    /// The body of a format that has no header.
    fn without_header(self, names: bool) -> Option<Body> {
        match self {
            Self::AdjacencyIds => Some(adjacency::with_ids(names)),
            Self::Vertices(claimed) => {
                let claim = claimed.map(Claim::Lines);
                Some(Body { claim, ..Body::new(Shape::Vertices) })
            }
            _ => None,
        }
    }

    /// The missing part of a file without a body; `None` if a file may end there.
    fn missing_header(self) -> Option<&'static str> {
        match self {
            Self::Delimited(_) => Some(records::HEADER),
            Self::Mtx => Some(mtx::HEADER),
            Self::Metis => Some(metis::HEADER),
            Self::Dimacs | Self::Pace | Self::Gr => Some(gr::HEADER),
            Self::Adjacency => Some(adjacency::HEADER),
            Self::Jlg => Some(jlg::HEADER),
            _ => None,
        }
    }
}

/// A file to be read, and its format.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// `-` is standard input.
    pub path: PathBuf,
    /// The format.
    pub format: TextFormat,
}

/// The kind of words that are ids.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdWords {
    /// Integers.
    #[default]
    Integers,
    /// Integers, although the format allows names.
    NotNames,
    /// Names.
    Names,
}

impl IdWords {
    fn of(names: bool) -> Self {
        if names { Self::Names } else { Self::NotNames }
    }
}

/// The layout of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One edge a line.
    Lines(Lines),
    /// One edge a record.
    Records(Records),
    /// The targets of one vertex a line.
    Lists(Lists),
    /// One vertex a line.
    Vertices,
}

impl Shape {
    /// The offsets of the line ends in `bytes`. Other formats than records refuse CR alone.
    pub(crate) fn line_ends(self, bytes: &[u8]) -> impl DoubleEndedIterator<Item = usize> {
        let alone = matches!(self, Self::Records(_));
        text::record_line_ends(bytes).filter(move |at| alone || bytes[*at] == b'\n')
    }
}

/// The facts that a header states.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) shape: Shape,
    /// True if edges are undirected.
    pub(crate) undirected: bool,
    pub(crate) weighted: bool,
    /// The declared vertices. They exist without edges, and edges may name no others.
    pub(crate) declared: Option<Span>,
    pub(crate) claim: Option<Claim>,
}

impl Body {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, undirected: false, weighted: false, declared: None, claim: None }
    }
}

/// The facts that a header states about the contents of its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stated {
    /// True if the body lists vertices, not edges.
    pub(crate) vertices: bool,
    pub(crate) undirected: bool,
    pub(crate) weighted: bool,
    pub(crate) declared: Option<Span>,
    pub(crate) claim: Option<Claim>,
}

impl From<Body> for Stated {
    fn from(body: Body) -> Self {
        let Body { shape, undirected, weighted, declared, claim } = body;
        Self { vertices: shape == Shape::Vertices, undirected, weighted, declared, claim }
    }
}

/// A count in a header, to be compared with the contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Claim {
    /// Number of entries.
    Entries(u64),
    /// Number of edges, or of vertices, in a file beside the one that states it.
    Lines(u64),
    /// Number of edges, each of which is listed at both ends.
    Mirrored(u64),
    /// The counts of an export.
    Declared(Declaration),
    /// Number of arcs, or of pairs of arcs.
    Arcs(u64),
}

/// The state between two lines of a header.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    mtx: Option<mtx::Banner>,
    /// The user's choice of columns.
    pub(crate) choice: ColumnChoice,
    /// The second line that is not a comment, if both are near the beginning of the file.
    pub(crate) second_line: Option<Vec<u8>>,
    /// The chosen columns.
    pub(crate) columns: Option<Columns>,
    /// The user's choice of direction, in place of the one that the input states. `true`: store
    /// every edge only in its written direction.
    pub(crate) directed: Option<bool>,
    /// True if ids are strings.
    pub(crate) names: bool,
    /// True if a comment says that edges have no direction.
    is_symmetric: bool,
}

/// The role of a line before the body.
pub(crate) enum Step {
    /// A comment, or a part of the header.
    Skip,
    /// The last line of the header.
    Header(Body),
    /// The first line of the body.
    Data(Body),
}

/// A malformed header.
#[derive(Debug)]
pub(crate) enum HeaderFlaw {
    /// An unexpected word, at an offset in its line.
    Wrong { at: usize, expected: String },
    /// The user must give more options.
    Doubt(Doubt),
}

impl HeaderFlaw {
    pub(crate) fn new(at: usize, expected: impl Into<String>) -> Self {
        Self::Wrong { at, expected: expected.into() }
    }
}

impl From<Doubt> for HeaderFlaw {
    fn from(doubt: Doubt) -> Self {
        Self::Doubt(doubt)
    }
}

/// Counts in a line of a header, with their offsets.
struct HeaderWords<'a> {
    line: &'a [u8],
    at: usize,
}

impl<'a> HeaderWords<'a> {
    fn new(line: &'a [u8]) -> Self {
        Self { line, at: text::skip(line, 0) }
    }

    /// The next word, with its offset; empty at the end.
    fn next(&mut self) -> (usize, &'a [u8]) {
        let (at, word) = (self.at, text::word(self.line, self.at));
        self.at = text::skip(self.line, at + word.len());
        (at, word)
    }

    fn count(&mut self, expected: &str) -> Result<u64, HeaderFlaw> {
        let (at, word) = self.next();
        text::parse_count(word).ok_or_else(|| HeaderFlaw::new(at, expected))
    }

    fn end(&mut self, expected: &str) -> Result<(), HeaderFlaw> {
        let (at, word) = self.next();
        if word.is_empty() { Ok(()) } else { Err(HeaderFlaw::new(at, expected)) }
    }
}

/// The ids of `count` vertices from `first` on, if all fit in 64 bits.
fn span(first: u64, count: u64, at: usize) -> Result<Span, HeaderFlaw> {
    match first.checked_add(count) {
        Some(end) if end <= 1 << 63 => Ok(Span { first, count }),
        _ => Err(HeaderFlaw::new(at, "fewer than 2^63 vertices")),
    }
}
