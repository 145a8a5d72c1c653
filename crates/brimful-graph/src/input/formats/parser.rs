//! Parses bodies of text into edges on all cores, and decides about lines that are no edges.
//!
//! Invariant: every entry is stored, mirrored by a stored entry, or rejected and counted. At the
//! end, the counts equal those that the headers claim.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};

use super::reader::{Chunk, FileEnd, Start};
use super::{Claim, Shape, Stated, TextFile, TextFormat, lines};
use crate::edges::{BATCH_EDGES, EdgeBatch};
use crate::error::{Error, Result};
use crate::ids::names::NameBatch;
use crate::input::columns::Columns;
use crate::input::stream::Rejection;
use crate::input::text::{self, Flaw, Id, Reason, Signs, Span};
use crate::input_position::InputPart;
use crate::order::bitmap::IdBitmap;

/// The treatment of a line that is no edge.
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

/// The counts of one file, to be compared with its header.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) entries: u64,
    /// Isolated vertices that comment lines name.
    pub(crate) listed: u64,
    rejected: u64,
    loops: u64,
    /// Number and order-independent checksum of the entries that name a higher vertex.
    up: (u64, u64),
    /// The same for entries that name a lower vertex, computed with both ends swapped.
    down: (u64, u64),
}

impl Tally {
    /// Counts an entry of a list that contains every edge twice.
    #[inline]
    pub(crate) fn mirror(&mut self, source: u64, target: u64, weight: f64) {
        if source == target {
            self.loops += 1;
            return;
        }
        let (low, high) = (source.min(target), source.max(target));
        let mixed = mix(mix(mix(low).wrapping_add(high)).wrapping_add(weight.to_bits()));
        let side = if source < target { &mut self.up } else { &mut self.down };
        *side = (side.0 + 1, side.1.wrapping_add(mixed));
    }

    fn merge(&mut self, other: &Self) {
        let add = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1.wrapping_add(b.1));
        self.entries += other.entries;
        self.listed += other.listed;
        self.rejected += other.rejected;
        self.loops += other.loops;
        (self.up, self.down) = (add(self.up, other.up), add(self.down, other.down));
    }
}

/// The finaliser of splitmix64 (Steele, Lea, Flood, 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

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

    /// The first word of the list in which the chunk begins.
    pub(crate) fn name(&self) -> &'w [u8] {
        &self.chunk.name
    }

    pub(crate) fn start(&self) -> Start {
        self.chunk.start
    }

    /// Counts the lines up to offset `at`, which must not precede the current one.
    #[inline]
    fn go_to(&mut self, at: usize) {
        let passed = self.chunk.bytes.get(self.reached..at).unwrap_or_default();
        if let Some(end) = memchr::memrchr(b'\n', passed) {
            self.line += memchr::memchr_iter(b'\n', passed).count() as u64;
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
        match self.shape {
            Shape::Records(records) => records.shown(&self.chunk.bytes, flaw),
            _ => text::shown(&self.chunk.bytes, flaw.at),
        }
    }
}

/// The number of rejections for one reason, and the first of them.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct ReasonCount {
    count: u64,
    position: (usize, u64),
    found: String,
}

/// The combined statements and counts of the files.
#[derive(Debug, Default)]
pub(crate) struct Summary {
    pub(crate) lines: u64,
    pub(crate) rejected: u64,
    pub(crate) rejections: Vec<Rejection>,
    /// The files and their lines.
    pub(crate) inputs: Vec<InputPart>,
    pub(crate) undirected: bool,
    pub(crate) weighted: bool,
    /// The vertices that the headers declare; edges name no others.
    pub(crate) declared: Option<Span>,
    /// The number of vertices that the only file declares.
    pub(crate) claim: Option<VertexClaim>,
    /// The chosen columns, if the format leaves a choice.
    pub(crate) columns: Option<Columns>,
}

/// A number of vertices that a file declares, compared when all vertices are known.
#[derive(Debug, Clone)]
pub(crate) struct VertexClaim {
    pub(crate) path: PathBuf,
    /// The line of the declaration; `None` if it is in the metadata of a schema.
    pub(crate) line: Option<u64>,
    pub(crate) vertices: u64,
}

impl VertexClaim {
    /// Compares the claim with the actual number.
    pub(crate) fn check(self, vertices: u64) -> Result<()> {
        if vertices == self.vertices {
            return Ok(());
        }
        let expected = format!("{} vertices, as the declaration says", self.vertices);
        let found = vertices.to_string();
        Err(match self.line {
            Some(line) => {
                let advice = CUT.to_owned();
                Error::Parse { path: self.path, line, column: 1, expected, found, advice }
            }
            None => Error::input(self.path, format!("expected {expected}, found {found}; {CUT}")),
        })
    }
}

/// Advice for counts that differ.
pub(crate) const CUT: &str =
    "the file was cut or its header is wrong; correct it or get the file again";

/// The parser shared by all workers.
pub(crate) struct TextParser<'a> {
    files: &'a [TextFile],
    on_error: OnError,
    positions: bool,
    members: Option<&'a IdBitmap>,
    tallies: Mutex<Vec<Tally>>,
    rejections: Mutex<BTreeMap<Reason, ReasonCount>>,
}

impl Summary {
    /// The range of ids that the headers declare.
    pub(crate) fn numbered(&self) -> Range<u64> {
        self.declared.map_or(0..0, |Span { first, count }| first..first + count)
    }

    /// The results of `before`, followed by those of `self`.
    pub(crate) fn after(self, before: Self) -> Self {
        let mut rejections = before.rejections;
        for rejection in self.rejections {
            match rejections.iter_mut().find(|counted| counted.reason == rejection.reason) {
                Some(counted) => counted.count += rejection.count,
                None => rejections.push(rejection),
            }
        }
        Self {
            lines: before.lines + self.lines,
            rejected: before.rejected + self.rejected,
            rejections,
            inputs: [before.inputs, self.inputs].concat(),
            ..self
        }
    }
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
        Found {
            files: ends.into_iter().zip(tallies).collect(),
            rejections: rejections.into_iter().collect(),
            signs,
        }
    }

    /// Compares the counts with the headers.
    pub(crate) fn finish(self, ends: Vec<FileEnd>) -> Result<Summary> {
        let files = self.files;
        self.found(ends, Signs::default()).summary(files)
    }
}

/// The facts found in files that were parsed to their ends.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
pub(crate) struct Found {
    files: Vec<(FileEnd, Tally)>,
    /// By reason, ascending.
    rejections: Vec<(Reason, ReasonCount)>,
    pub(crate) signs: Signs,
}

impl Found {
    /// Adds the facts of the files that follow.
    pub(crate) fn append(&mut self, next: Self) {
        let before = self.files.len();
        self.files.extend(next.files);
        self.signs.merge(next.signs);
        let mut rejections: BTreeMap<_, _> =
            std::mem::take(&mut self.rejections).into_iter().collect();
        for (reason, more) in next.rejections {
            let (file, line) = more.position;
            let more = ReasonCount { position: (before + file, line), ..more };
            rejections
                .entry(reason)
                .and_modify(|counted: &mut ReasonCount| counted.count += more.count)
                .or_insert(more);
        }
        self.rejections = rejections.into_iter().collect();
    }

    /// Compares the counts with the headers of the files.
    pub(crate) fn summary(self, files: &[TextFile]) -> Result<Summary> {
        let mut summary = Summary::default();
        let mut first: Option<(&TextFile, &Stated, &FileEnd)> = None;
        let mut free = false;
        for (file, (end, tally)) in files.iter().zip(&self.files) {
            summary.lines += end.lines;
            summary.rejected += tally.rejected;
            summary.inputs.push((file.path.clone(), end.lines));
            let Some(stated) = &end.stated else {
                // Without a body only the properties state the kind of edges.
                if let TextFormat::Graphalytics(edges) = file.format {
                    (summary.undirected, summary.weighted) = edges.kind();
                }
                continue;
            };
            check_claim(file, end, stated, tally)?;
            if let (Some(Claim::Declared(said)), [_], 0) = (stated.claim, files, tally.rejected) {
                let (path, line) = (file.path.clone(), Some(end.header_line));
                summary.claim = Some(VertexClaim { path, line, vertices: said.vertices });
            }
            free |= stated.declared.is_none();
            summary.declared = merge(summary.declared, stated.declared);
            if stated.vertices {
                continue;
            }
            match first {
                None => first = Some((file, stated, end)),
                Some((known, other, known_end)) => {
                    check_columns(known, known_end, file, end)?;
                    check_same(known, other, file, stated)?;
                }
            }
            (summary.undirected, summary.weighted) = (stated.undirected, stated.weighted);
        }
        if free {
            summary.declared = None;
        }
        summary.columns = first.and_then(|(.., end)| end.columns.clone());
        summary.rejections = self
            .rejections
            .into_iter()
            .map(|(reason, counted)| Rejection {
                reason: reason.name(),
                count: counted.count,
                path: files
                    .get(counted.position.0)
                    .map(|file| file.path.clone())
                    .unwrap_or_default(),
                line: counted.position.1,
                found: counted.found,
            })
            .collect();
        Ok(summary)
    }
}

/// The union of two spans; both begin at 0 or 1.
fn merge(a: Option<Span>, b: Option<Span>) -> Option<Span> {
    let (Some(a), Some(b)) = (a, b) else {
        return a.or(b);
    };
    let first = a.first.min(b.first);
    let end = (a.first + a.count).max(b.first + b.count);
    Some(Span { first, count: end - first })
}

/// Checks that files of one graph have the same columns.
fn check_columns(
    known: &TextFile,
    known_end: &FileEnd,
    file: &TextFile,
    end: &FileEnd,
) -> Result<()> {
    let taken = |end: &FileEnd| {
        end.columns.as_ref().map(|c| (c.source.clone(), c.target.clone(), c.weight.clone()))
    };
    if taken(known_end) == taken(end) {
        return Ok(());
    }
    let what = format!(
        "its columns are not those of {}; name them with --source, --target and --weight where \
         they have names, or import the files separately",
        known.path.display()
    );
    Err(Error::input(&file.path, what))
}

/// Checks that files of one graph agree on direction and weights.
fn check_same(known: &TextFile, other: &Stated, file: &TextFile, stated: &Stated) -> Result<()> {
    let what = |kind: [&'static str; 2], yes: bool| if yes { kind[0] } else { kind[1] };
    for (kind, a, b) in [
        (["undirected", "directed"], other.undirected, stated.undirected),
        (["weighted", "unweighted"], other.weighted, stated.weighted),
    ] {
        if a != b {
            let what = format!(
                "its edges are {} and those of {} are {}; import the files separately",
                what(kind, b),
                known.path.display(),
                what(kind, a)
            );
            return Err(Error::input(&file.path, what));
        }
    }
    Ok(())
}

fn check_claim(file: &TextFile, end: &FileEnd, stated: &Stated, tally: &Tally) -> Result<()> {
    let fail = |expected: String, found: String| {
        let path = file.path.clone();
        Err(Error::Parse {
            path,
            line: end.header_line,
            column: 1,
            expected,
            found,
            advice: CUT.into(),
        })
    };
    match stated.claim {
        None => Ok(()),
        Some(Claim::Entries(claimed)) if tally.entries + tally.rejected == claimed => Ok(()),
        Some(Claim::Entries(claimed)) => fail(
            format!("{claimed} edges, as the header says"),
            (tally.entries + tally.rejected).to_string(),
        ),
        Some(Claim::Declared(said)) => {
            let (edges, listed, rejected) = (tally.entries, tally.listed, tally.rejected);
            let same = match rejected {
                0 => (edges, listed) == (said.edges, said.listed()),
                // Rejected lines may have been edges or vertices.
                _ => edges + listed + rejected == said.edges + said.listed(),
            };
            if same {
                return Ok(());
            }
            fail(
                format!(
                    "{} edges and {} vertices without edges, as the declaration says",
                    said.edges,
                    said.listed()
                ),
                format!("{edges} and {listed}"),
            )
        }
        Some(Claim::Arcs(claimed)) => {
            let found = tally.entries + tally.rejected;
            if found == claimed || found == 2 * claimed {
                return Ok(());
            }
            fail(
                format!("{claimed} or {} arcs, as the header says", 2 * claimed),
                found.to_string(),
            )
        }
        // A rejected entry cannot be told from a missing one.
        Some(Claim::Mirrored(_)) if tally.rejected > 0 => Ok(()),
        Some(Claim::Mirrored(claimed)) => {
            let (up, down) = (tally.up, tally.down);
            if up.0 != down.0 {
                let (first, second) = (up.0 + tally.loops, down.0);
                return fail(
                    format!("every edge at both its ends ({claimed} edges, as the header says)"),
                    format!("{first} entries from the lower end and {second} from the higher"),
                );
            }
            if up.0 + tally.loops != claimed {
                let found = format!("{} (entries, halved)", up.0 + tally.loops);
                return fail(format!("{claimed} edges, as the header says"), found);
            }
            if up.1 != down.1 {
                return fail(
                    "every edge at both its ends, with the same weight".into(),
                    "an entry without its reverse".into(),
                );
            }
            Ok(())
        }
    }
}
