//! Every text format of edges, as a header that says how the body is read.
//!
//! `reader` cuts files into chunks and lets the format's own module read the header: `edge_list`,
//! `mtx`, `gr` (DIMACS and PACE), `jlg`, `metis`, `adjacency`, [`graphalytics`]. All of them end in
//! one of three shapes, `lines` (an edge a line), `records` (an edge a record of CSV) or `lists`
//! (the targets of one vertex a line), which `parser` reads on all cores. [`webgraph`] is the
//! binary one, with its `bits`. [`foreign`] names formats that are not read.
//!
//! Invariant: what a header claims is believed only about the meaning of words, never about sizes:
//! nothing is allocated for a count, and counts are compared with what was found.

use std::path::PathBuf;

use crate::columns::{ColumnChoice, Columns, Doubt, Roles};
use crate::declaration::Declaration;
use crate::text::{self, Span};

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
pub(crate) mod reader;
pub(crate) mod records;
pub mod webgraph;

pub(crate) use lines::Lines;
pub(crate) use lists::Lists;
pub(crate) use records::Records;

/// A format of text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextFormat {
    /// The first line decides: `mtx`, `.gr` and `jlg` are known by it, anything else is an edge
    /// list.
    Auto,
    /// Words: source and target, and perhaps a weight.
    EdgeList,
    /// Records of CSV, perhaps with a header; fields are separated by this, or by what the first
    /// records tell.
    Delimited(Option<u8>),
    /// MatrixMarket coordinates.
    Mtx,
    /// METIS and Chaco adjacency lists.
    Metis,
    /// `p sp n m`, then `a source target weight`.
    Dimacs,
    /// `p tw n m`, then `source target`.
    Pace,
    /// DIMACS or PACE, which the header decides.
    Gr,
    /// The number of vertices, then the targets of vertex 0, 1, ... a line.
    Adjacency,
    /// `id target target ...`.
    AdjacencyIds,
    /// `n,m,u|d,name`, then `source,target`.
    Jlg,
    /// An edge file of Graphalytics.
    Graphalytics(graphalytics::EdgeFile),
    /// A vertex file of Graphalytics.
    Vertices,
}

impl TextFormat {
    /// The format called `name`; `None` if there is none among those whose files stand alone.
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

    /// What a file that begins with `line` (not blank) is.
    pub(crate) fn of_first_line(line: &[u8]) -> Self {
        let mut words = text::words(line);
        match words.next() {
            Some(word) if mtx::is_banner(word) => Self::Mtx,
            Some(b"c" | b"p") => Self::Gr,
            _ if jlg::is_header(line) => Self::Jlg,
            _ => Self::EdgeList,
        }
    }

    /// What a file of this format that begins with `start` is: an edge list that declares itself is
    /// one by any name.
    pub(crate) fn of_start(self, start: &[u8]) -> Self {
        match self {
            Self::Delimited(_) if Declaration::begins(start) => Self::EdgeList,
            _ => self,
        }
    }

    /// True if its vertices may be called by strings.
    pub(crate) fn may_have_names(self) -> bool {
        matches!(self, Self::Auto | Self::EdgeList | Self::Delimited(_) | Self::AdjacencyIds)
    }

    /// True if the user may say which columns are the edges.
    pub(crate) fn has_columns(self) -> bool {
        matches!(
            self,
            Self::Auto
                | Self::EdgeList
                | Self::Delimited(_)
                | Self::Graphalytics(_)
                | Self::Vertices
        )
    }

    /// Its name in messages.
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
            Self::Graphalytics(_) | Self::Vertices => "graphalytics",
        }
    }

    /// Reads a line before the body, without its end.
    fn header(self, line: &[u8], draft: &mut Draft) -> Result<Step, HeaderFlaw> {
        match self {
            // Settled by the reader before a header is looked for.
            Self::Auto | Self::EdgeList => edge_list::header(line, draft),
            Self::Mtx => mtx::header(line, draft),
            Self::Metis => metis::header(line, draft),
            Self::Dimacs => gr::header(line, Some(gr::Problem::Dimacs)),
            Self::Pace => gr::header(line, Some(gr::Problem::Pace)),
            Self::Gr => gr::header(line, None),
            Self::Adjacency => adjacency::header(line),
            Self::Jlg => jlg::header(line),
            Self::Graphalytics(file) => graphalytics::header(line, file, draft),
            // The reader looks at the beginning of a table at once.
            Self::Delimited(_) | Self::AdjacencyIds | Self::Vertices => {
                Ok(self.without_header(draft.names).map_or(Step::Skip, Step::Data))
            }
        }
    }

    /// The body of a format that has nothing before it.
    fn without_header(self, names: bool) -> Option<Body> {
        match self {
            Self::AdjacencyIds => Some(adjacency::with_ids(names)),
            Self::Vertices => Some(Body::new(Shape::Vertices)),
            _ => None,
        }
    }

    /// What a file without a body lacks; `None` if a file may end there.
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

/// How the edges of a table of text are laid out, by its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextLayout {
    /// What separates columns; `None`: blanks, tabs and commas.
    pub delimiter: Option<u8>,
    /// The columns that are the edges.
    pub roles: Roles,
    /// Bytes before the first edge, comments aside.
    pub skip: usize,
}

/// The layout of text that begins with `start`; `None` if it is no table, or the import will refuse
/// it.
pub fn text_layout(
    start: &[u8],
    ended: bool,
    format: TextFormat,
    choice: &ColumnChoice,
) -> Option<TextLayout> {
    let text = reader::without_mark(start);
    let mark = start.len() - text.len();
    match format.of_start(text) {
        TextFormat::Delimited(delimiter) => {
            let begun = records::begin(text, ended, delimiter, choice, false).ok()??;
            let (delimiter, roles) = (Some(begun.records.delimiter()), begun.records.roles);
            Some(TextLayout { delimiter, roles, skip: mark + begun.skip })
        }
        TextFormat::EdgeList => {
            if let Some(roles) = edge_list::declared_roles(text) {
                return Some(TextLayout { delimiter: None, roles, skip: mark });
            }
            let mut lines = edge_list::data_lines(text, ended);
            let (first, second) = (lines.next()?, lines.next());
            let (roles, columns) = edge_list::settle(first, second, choice).ok()?;
            let header_end = (first.as_ptr().addr() - text.as_ptr().addr()) + first.len() + 1;
            let skip = if columns.header == Some(true) { mark + header_end } else { mark };
            Some(TextLayout { delimiter: None, roles, skip })
        }
        _ => None,
    }
}

/// A file to be read, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFile {
    /// `-` is standard input.
    pub path: PathBuf,
    /// Its format.
    pub format: TextFormat,
}

/// What the words are that ids are read from.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IdWords {
    /// Integers.
    #[default]
    Integers,
    /// Integers, though the format has room for names.
    NotNames,
    /// Names.
    Names,
}

impl IdWords {
    fn of(names: bool) -> Self {
        if names { Self::Names } else { Self::NotNames }
    }
}

/// How a body is laid out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// An edge a line.
    Lines(Lines),
    /// An edge a record.
    Records(Records),
    /// The targets of a vertex a line.
    Lists(Lists),
    /// A vertex a line.
    Vertices,
}

/// What a header says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Body {
    pub(crate) shape: Shape,
    /// Edges have no direction.
    pub(crate) undirected: bool,
    pub(crate) weighted: bool,
    /// The vertices that exist whatever the edges are; edges have no others.
    pub(crate) declared: Option<Span>,
    pub(crate) claim: Option<Claim>,
}

impl Body {
    pub(crate) fn new(shape: Shape) -> Self {
        Self { shape, undirected: false, weighted: false, declared: None, claim: None }
    }
}

/// A count in a header, to be compared with what was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Claim {
    /// So many entries.
    Entries(u64),
    /// So many edges, each of them listed at both its ends.
    Mirrored(u64),
    /// The counts of an export.
    Declared(Declaration),
    /// So many arcs, or so many pairs of them.
    Arcs(u64),
}

/// What is kept between the lines of a header.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    mtx: Option<mtx::Banner>,
    /// What the user says about columns.
    pub(crate) choice: ColumnChoice,
    /// The line after the first that is no comment, where both are near the beginning of the file.
    pub(crate) second_line: Option<Vec<u8>>,
    /// The columns that were taken.
    pub(crate) columns: Option<Columns>,
    /// Store every edge in the direction it is written.
    pub(crate) directed: bool,
    /// Ids are strings.
    pub(crate) names: bool,
}

/// What a line before the body was.
pub(crate) enum Step {
    /// A comment, or a part of the header.
    Skip,
    /// The last line of the header.
    Header(Body),
    /// The first line of the body.
    Data(Body),
}

/// A header that is not what it should be.
#[derive(Debug)]
pub(crate) enum HeaderFlaw {
    /// A word at an offset in its line where something else was expected.
    Wrong { at: usize, expected: String },
    /// The user must say more.
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

/// Counts in a line of a header, with their places.
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

/// The ids of `count` vertices from `first` on, if 64 bits hold them all.
fn span(first: u64, count: u64, at: usize) -> Result<Span, HeaderFlaw> {
    match first.checked_add(count) {
        Some(end) if end <= 1 << 63 => Ok(Span { first, count }),
        _ => Err(HeaderFlaw::new(at, "fewer than 2^63 vertices")),
    }
}
