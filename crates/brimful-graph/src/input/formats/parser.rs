//! Parses bodies of text into edges on all cores, and handles lines that are not edges.
//!
//! Invariant: every entry is stored, mirrored by a stored entry, or rejected and counted. At the
//! end, the counts equal those that the headers claim.

mod summary;
mod tally;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::reader::{Chunk, FileEnd, Start};
use super::{Shape, TextFile, lines};
use crate::edges::{BATCH_EDGES, EdgeBatch};
use crate::error::{Error, Result};
use crate::ids::names::NameBatch;
use crate::input::text::{self, Flaw, Id, Reason, Signs};
use crate::order::bitmap::IdBitmap;
use summary::ReasonCount;
pub(crate) use summary::{Found, Summary, VertexClaim};
use tally::Tally;

/// The treatment of a line that is not an edge.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum OnError {
    /// End the import.
    #[default]
    Fail,
    /// Leave out and count the line.
    Skip,
}

/// Vertices per batch: few compared with edges, so that the memory plan covers edges only.
const BATCH_DECLARED: usize = BATCH_EDGES / 16;

/// The output of one worker.
#[derive(Debug, Default)]
pub(crate) struct Output {
    /// Edges; the caller takes them when [`Output::is_full`].
    pub(crate) edges: EdgeBatch,
    /// Vertices declared apart from edges, stored in pairs as if they were edges.
    pub(crate) declared: EdgeBatch,
    /// Edges and vertices whose ids are strings.
    pub(crate) names: NameBatch,
    pub(crate) declared_names: NameBatch,
    pub(crate) signs: Signs,
    pub(crate) tally: Tally,
}

impl Output {
    /// True if the caller should take edges or vertices now.
    pub(crate) fn is_full(&self) -> bool {
        self.edges.len() >= BATCH_EDGES
            || self.declared.len() >= BATCH_DECLARED
            || self.names.is_full()
            || self.declared_names.is_full()
    }

    #[inline]
    pub(crate) fn push(&mut self, source: Id, target: Id, weight: Option<f64>) {
        self.signs.note(source);
        self.signs.note(target);
        self.edges.sources.push(source.bits);
        self.edges.targets.push(target.bits);
        self.edges.weights.extend(weight);
        self.tally.entries += 1;
    }

    pub(crate) fn declare(&mut self, id: Id) {
        self.signs.note(id);
        self.declared.sources.push(id.bits);
        self.declared.targets.push(id.bits);
    }
}

/// A chunk being parsed.
pub(crate) struct Work<'w> {
    chunk: &'w Chunk,
    shape: Shape,
    parser: &'w TextParser<'w>,
    positions: bool,
    /// The line at the current offset, and the offset at which it begins. Each line end is counted
    /// once.
    line: u64,
    line_begin: usize,
    reached: usize,
}

impl<'w> Work<'w> {
    pub(crate) fn bytes(&self) -> &'w [u8] {
        &self.chunk.bytes
    }

    pub(crate) fn from(&self) -> usize {
        self.chunk.from
    }

    /// The ids that edges may name; `None`: all ids.
    #[inline]
    pub(crate) fn members(&self) -> Option<&'w IdBitmap> {
        self.parser.members
    }

    /// The first word of the list in which the chunk begins; `None` if it was rejected.
    pub(crate) fn name(&self) -> Option<&'w [u8]> {
        self.chunk.name.as_deref()
    }

    pub(crate) fn start(&self) -> Start {
        self.chunk.start
    }

    /// Counts the lines up to offset `at`, which must not precede the current one.
    #[inline]
    fn go_to(&mut self, at: usize) {
        let passed = self.chunk.bytes.get(self.reached..at).unwrap_or_default();
        for end in self.shape.line_ends(passed) {
            self.line += 1;
            self.line_begin = self.reached + end + 1;
        }
        self.reached = self.reached.max(at);
    }

    /// Records the position of the edge that ends at `at`, if positions are requested.
    #[inline]
    pub(crate) fn note_position(&mut self, at: usize, positions: &mut Vec<u64>) {
        if self.positions {
            self.go_to(at);
            positions.push(self.chunk.lines_before + self.line);
        }
    }

    /// Ends the parsing with an error, or counts a rejection.
    #[cold]
    pub(crate) fn judge(&mut self, flaw: Flaw, out: &mut Output) -> Result<()> {
        self.go_to(flaw.at);
        if self.parser.on_error == OnError::Skip {
            out.tally.rejected += 1;
            let mut rejections = self.parser.rejections();
            let position = (self.chunk.file, self.line);
            let counted = rejections.entry(flaw.reason).or_default();
            counted.count += 1;
            if counted.count == 1 || position < counted.position {
                (counted.position, counted.found) = (position, self.shown(flaw));
            }
            return Ok(());
        }
        Err(Error::Parse {
            path: self.path(),
            line: self.line,
            column: self.column(flaw.at),
            expected: match self.shape {
                Shape::Lines(lines) => lines.expected(flaw.reason),
                Shape::Records(records) => records.expected(flaw.reason),
                Shape::Lists(lists) => lists.expected(flaw.reason),
                Shape::Vertices => lines::expected(flaw.reason, None),
            },
            found: self.shown(flaw),
            advice: "correct the line, or leave such lines out with --on-error skip".into(),
        })
    }

    /// The error of a text that ends within the record at `at`.
    #[cold]
    pub(crate) fn unfinished(&mut self, at: usize, expected: &str) -> Error {
        self.go_to(at);
        Error::Parse {
            path: self.path(),
            line: self.line,
            column: self.column(at),
            expected: expected.into(),
            found: "the end of the file".into(),
            advice: "correct the file, or get it again if it was cut".into(),
        }
    }

    fn path(&self) -> PathBuf {
        self.parser.files.get(self.chunk.file).map(|file| file.path.clone()).unwrap_or_default()
    }

    /// The column of an offset in the current line.
    fn column(&self, at: usize) -> u64 {
        let first_line = self.line_begin <= self.chunk.from;
        let before_chunk = if first_line { self.chunk.start.column } else { 0 };
        before_chunk + (at - self.line_begin.max(self.chunk.from)) as u64 + 1
    }

    fn shown(&self, flaw: Flaw) -> String {
        let shown = match self.shape {
            Shape::Records(records) => records.shown(&self.chunk.bytes, flaw),
            _ => text::shown(&self.chunk.bytes, flaw.at),
        };
        if flaw.reason != Reason::Rounded {
            return shown;
        }
        let rest = self.chunk.bytes.get(flaw.at..).unwrap_or_default().trim_ascii_start();
        let unquoted = rest.strip_prefix(b"\"").unwrap_or(rest).trim_ascii_start();
        let end = unquoted.iter().position(|byte| !b"+-0123456789".contains(byte));
        let digits = unquoted.get(..end.unwrap_or(unquoted.len())).unwrap_or_default();
        let number = str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok());
        number.map_or_else(|| shown.clone(), |number| text::shown_rounded(&shown, number))
    }
}

/// The parser shared by all workers.
pub(crate) struct TextParser<'a> {
    files: &'a [TextFile],
    on_error: OnError,
    positions: bool,
    members: Option<&'a IdBitmap>,
    tallies: Mutex<Vec<Tally>>,
    rejections: Mutex<BTreeMap<Reason, ReasonCount>>,
}

impl<'a> TextParser<'a> {
    /// A parser for chunks of `files`.
    pub(crate) fn new(files: &'a [TextFile], on_error: OnError) -> Self {
        let tallies = Mutex::new(vec![Tally::default(); files.len()]);
        Self {
            files,
            on_error,
            positions: false,
            members: None,
            tallies,
            rejections: Mutex::default(),
        }
    }

    /// Records the input position of every edge, if `positions`.
    pub(crate) fn noting_positions(self, positions: bool) -> Self {
        Self { positions, ..self }
    }

    /// Restricts edges to the declared ids of `members`, if given.
    pub(crate) fn among(self, members: Option<&'a IdBitmap>) -> Self {
        Self { members, ..self }
    }

    fn rejections(&self) -> MutexGuard<'_, BTreeMap<Reason, ReasonCount>> {
        self.rejections.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Appends the contents of `chunk` to `out`; calls `full` whenever `out` is full.
    pub(crate) fn parse(
        &self,
        chunk: &Chunk,
        out: &mut Output,
        full: &mut impl FnMut(&mut Output) -> Result<()>,
    ) -> Result<()> {
        let Some(shape) = chunk.shape else {
            return Ok(());
        };
        let (positions, line, from) = (self.positions, chunk.start.line, chunk.from);
        let mut work =
            Work { chunk, shape, parser: self, positions, line, line_begin: from, reached: from };
        out.tally = Tally::default();
        match shape {
            Shape::Lines(lines) => lines.parse(&mut work, out, full)?,
            Shape::Records(records) => records.parse(&mut work, out, full)?,
            Shape::Lists(lists) => lists.parse(&mut work, out, full)?,
            Shape::Vertices => lines::parse_vertices(&mut work, out, full)?,
        }
        let mut tallies = self.tallies.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(tally) = tallies.get_mut(chunk.file) {
            tally.merge(&out.tally);
        }
        Ok(())
    }

    /// The facts found in the files, which end with `ends`; `signs` are those of all ids.
    pub(crate) fn found(self, ends: Vec<FileEnd>, signs: Signs) -> Found {
        let tallies = self.tallies.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rejections = self.rejections.into_inner().unwrap_or_else(PoisonError::into_inner);
        Found::new(ends, tallies, rejections, signs)
    }

    /// Compares the counts with the headers.
    pub(crate) fn finish(self, ends: Vec<FileEnd>) -> Result<Summary> {
        let files = self.files;
        self.found(ends, Signs::default()).summary(files)
    }
}
