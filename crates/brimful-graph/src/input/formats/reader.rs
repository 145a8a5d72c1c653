//! Cuts text files into chunks, reads their headers and records the position of each chunk.
//!
//! One thread runs the reader; all threads parse the chunks. A chunk consists of whole lines; in a
//! format of lists, it may also be a part of a line longer than a chunk. Invariant: a chunk knows
//! the number of its first line, so that it can be parsed, and errors in it located, without
//! earlier chunks. The reader ends the last line of a file with a line end if the file does not.

use std::io::{Cursor, Read};
use std::path::Path;

use brimful_store::wording::counted;
use serde::{Deserialize, Serialize};

use super::{
    Body, Draft, HeaderFlaw, Lists, Shape, Stated, Step, TextFile, TextFormat, edge_list, foreign,
    lists, named, records,
};
use crate::error::{Error, Result};
use crate::input::columns::{ColumnChoice, Columns};
use crate::input::decompress;
use crate::input::text::{self, Id};

/// Bytes read at once. Also the longest line of a format with one edge a line, and the length of
/// the beginning of a file that decides about its columns.
pub(crate) const CHUNK_BYTES: usize = 1 << 20;

/// Advice about a wrong header.
const ADVICE: &str = "correct the header, or name the format with --format";

/// The position of a chunk's beginning.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Start {
    /// Line in the file, counted from 1.
    pub(crate) line: u64,
    /// Bytes of that line before the chunk.
    pub(crate) column: u64,
    /// Number of lists before the chunk.
    pub(crate) row: u64,
    /// Number of words before the chunk in its unfinished list.
    pub(crate) words: u64,
    /// The first of these words, if it is an id.
    pub(crate) source: Option<Id>,
    /// True if the chunk begins within a comment.
    pub(crate) comment: bool,
}

/// A piece of one file.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    pub(crate) file: usize,
    /// Total lines of the earlier files.
    pub(crate) lines_before: u64,
    pub(crate) bytes: Vec<u8>,
    /// Offset of these bytes in the text of the file.
    pub(crate) offset: u64,
    /// Offset of the body in the chunk; the header precedes it.
    pub(crate) from: usize,
    /// The position of the byte at `from`.
    pub(crate) start: Start,
    /// The shape of the body; `None` if the chunk has only a part of the header.
    pub(crate) shape: Option<Shape>,
    /// The first word of the unfinished list before the chunk, if it is a name.
    pub(crate) name: Option<Vec<u8>>,
}

/// The facts about a file that has been read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct FileEnd {
    /// The header's facts; `None` if the file had only comments.
    pub(crate) stated: Option<Stated>,
    pub(crate) header_line: u64,
    pub(crate) lines: u64,
    /// The chosen columns, if the format leaves a choice.
    pub(crate) columns: Option<Columns>,
}

type Open<'a> = Box<dyn FnMut(&Path) -> Result<Box<dyn Read + Send>> + Send + 'a>;

/// Reads files one after the other.
pub(crate) struct TextReader<'a> {
    files: &'a [TextFile],
    open: Open<'a>,
    chunk_bytes: usize,
    directed: Option<bool>,
    names: bool,
    choice: ColumnChoice,
    current: Option<Current<'a>>,
    ends: Vec<FileEnd>,
    /// Total lines of the files read.
    lines: u64,
}

impl<'a> TextReader<'a> {
    /// A reader of `files` in chunks of `chunk_bytes`. `directed` is the user's choice of
    /// direction; with `Some(true)`, edges that are listed at both ends become two arcs.
    pub(crate) fn new(
        files: &'a [TextFile],
        directed: Option<bool>,
        chunk_bytes: usize,
        open: Open<'a>,
    ) -> Self {
        let choice = ColumnChoice::default();
        Self {
            files,
            open,
            chunk_bytes,
            directed,
            names: false,
            choice,
            current: None,
            ends: Vec::new(),
            lines: 0,
        }
    }

    /// Sets the user's choice of columns.
    pub(crate) fn with_columns(self, choice: &ColumnChoice) -> Self {
        Self { choice: choice.clone(), ..self }
    }

    /// Starts the count of lines at `lines`.
    pub(crate) fn after_lines(self, lines: u64) -> Self {
        Self { lines, ..self }
    }

    /// Treats ids as names.
    pub(crate) fn with_names(self) -> Self {
        Self { names: true, ..self }
    }

    /// Fills `chunk`; false at the end.
    pub(crate) fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            let current = match &mut self.current {
                Some(current) => current,
                None => {
                    let Some(file) = self.files.get(self.ends.len()) else {
                        return Ok(false);
                    };
                    let reader = (self.open)(&file.path)?;
                    let (directed, names, choice) =
                        (self.directed, self.names, self.choice.clone());
                    let draft = Draft { directed, names, choice, ..Draft::default() };
                    self.current.insert(Current::open(file, reader, draft, self.chunk_bytes)?)
                }
            };
            (chunk.file, chunk.lines_before) = (self.ends.len(), self.lines);
            if current.next(chunk)? {
                return Ok(true);
            }
            let end = current.end()?;
            self.lines += end.lines;
            self.ends.push(end);
            self.current = None;
        }
    }

    /// The facts that the header of the current file states, once it is read.
    pub(crate) fn body(&self) -> Option<Body> {
        self.current.as_ref().and_then(|current| current.body)
    }

    /// True if the current file declares its edges as undirected, as far as it was read.
    pub(crate) fn undirected(&self) -> bool {
        self.body().is_some_and(|body| body.undirected)
    }

    /// The facts about every file, after all are read.
    pub(crate) fn into_ends(self) -> Vec<FileEnd> {
        self.ends
    }
}

/// The file being read.
struct Current<'a> {
    file: &'a TextFile,
    format: TextFormat,
    reader: Box<dyn Read + Send>,
    ended: bool,
    /// Bytes read that belong to the next chunk.
    rest: Vec<u8>,
    chunk_bytes: usize,
    draft: Draft,
    body: Option<Body>,
    header_line: u64,
    at: Start,
    /// Offset of `at` in the text of the file.
    offset: u64,
    /// The first word of the unfinished list at `at`, if it is a name.
    name: Option<Vec<u8>>,
}

impl<'a> Current<'a> {
    /// Opens `file` and examines its beginning, which decides about columns.
    fn open(
        file: &'a TextFile,
        mut reader: Box<dyn Read + Send>,
        draft: Draft,
        chunk_bytes: usize,
    ) -> Result<Self> {
        let mut start = Vec::new();
        let read = reader.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut start);
        read.map_err(|e| decompress::read_error(&file.path, e))?;
        let ended = start.len() < CHUNK_BYTES;
        foreign::refuse(&file.path, &start)?;
        let text = without_mark(&start);
        let mark = start.len() - text.len();
        let (format, body) = (file.format.of_start(text), file.format.without_header(draft.names));
        let at = Start { line: 1, ..Start::default() };
        let mut current = Self {
            file,
            format,
            reader,
            ended: false,
            rest: Vec::new(),
            chunk_bytes,
            draft,
            body,
            header_line: 1,
            at,
            offset: 0,
            name: None,
        };
        if !format.has_columns() {
            current.refuse_columns()?;
        }
        let skip = match format {
            TextFormat::Delimited(delimiter) => current.begin_records(text, ended, delimiter)?,
            _ => {
                current.draft.second_line =
                    edge_list::data_lines(text, ended).nth(1).map(<[u8]>::to_vec);
                0
            }
        };
        start.drain(..mark + skip);
        current.offset = (mark + skip) as u64;
        let rest = std::mem::replace(&mut current.reader, Box::new(std::io::empty()));
        current.reader = Box::new(Restarted::new(start, rest));
        Ok(current)
    }

    /// The body with the direction that the user chose.
    fn directed(&self, body: Body) -> Body {
        let undirected = self.draft.directed.map_or(body.undirected, |directed| !directed);
        Body { undirected, ..body }
    }

    /// Chooses the columns of records; returns the number of bytes before the first edge.
    fn begin_records(&mut self, text: &[u8], ended: bool, delimiter: Option<u8>) -> Result<usize> {
        let Draft { choice, names, directed, .. } = &self.draft;
        let begun = records::begin(text, ended, delimiter, choice, *names, *directed);
        let begun = begun.map_err(|flaw| {
            let before = match &flaw {
                HeaderFlaw::Wrong { at, .. } => text.get(..*at).unwrap_or_default(),
                HeaderFlaw::Doubt(_) => &[],
            };
            let line = text::record_lines(before) + 1;
            header_error(
                &self.file.path,
                line,
                text.get(before.len()..).unwrap_or_default(),
                flaw,
                0,
            )
        })?;
        let Some(begun) = begun else { return Ok(0) };
        (self.body, self.draft.columns) = (Some(self.directed(begun.body)), Some(begun.columns));
        let skipped = text.get(..begun.skip).unwrap_or_default();
        self.at.line += text::record_lines(skipped);
        Ok(begun.skip)
    }

    /// Refuses a user's choice of columns if the format leaves no choice.
    fn refuse_columns(&self) -> Result<()> {
        if self.draft.choice == ColumnChoice::default() {
            return Ok(());
        }
        Err(Error::Usage(format!(
            "{}: the format {} says which columns are the edges; leave --source, --target, \
             --weight, --header, --delimiter and --ignore-extra out, or name another format with \
             --format",
            self.file.path.display(),
            self.format.name()
        )))
    }

    fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        chunk.bytes.clear();
        chunk.bytes.append(&mut self.rest);
        self.ended = self.ended || !self.fill(&mut chunk.bytes)?;
        if self.ended {
            let unfinished = chunk.bytes.last().map_or(self.at.column > 0, |&last| last != b'\n');
            chunk.bytes.extend(unfinished.then_some(b'\n'));
            if chunk.bytes.is_empty() {
                return Ok(false);
            }
        } else {
            self.cut(&mut chunk.bytes)?;
        }
        self.stop_at_lone_return(&mut chunk.bytes)?;
        (chunk.from, chunk.start, chunk.offset) = (0, self.at, self.offset);
        self.offset += chunk.bytes.len() as u64;
        if self.body.is_none() {
            self.read_header(chunk)?;
        }
        chunk.shape = self.body.map(|body| body.shape);
        chunk.name.clone_from(&self.name);
        self.at = self.advance(chunk);
        if self.draft.names {
            self.remember_name(chunk);
        }
        Ok(true)
    }

    /// Refuses a line that ends in a carriage return alone, which other formats than records would
    /// take for one line with the next. Text before it goes first, because it may be invalid, too.
    fn stop_at_lone_return(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        if matches!(self.format, TextFormat::Delimited(_)) {
            return Ok(());
        }
        let Some(at) = text::behind_lone_return(bytes) else { return Ok(()) };
        let before = &bytes[..at - 1];
        let end = match memchr::memrchr(b'\n', before) {
            Some(end) => end + 1,
            None => self.cut_line(before),
        };
        if end > 0 {
            let mut rest = bytes.split_off(end);
            rest.append(&mut self.rest);
            self.rest = rest;
            return Ok(());
        }
        Err(Error::Parse {
            path: self.file.path.clone(),
            line: self.at.line,
            column: self.at.column + at as u64,
            expected: "a line end of LF or CRLF".into(),
            found: "a carriage return alone".into(),
            advice: "convert the line ends of the file".into(),
        })
    }

    /// Keeps the first word of a list that continues in the next chunk; such a chunk has no line
    /// end.
    fn remember_name(&mut self, chunk: &Chunk) {
        if self.at.words == 0 {
            self.name = None;
        } else if chunk.start.words == 0 {
            self.name = named::first_name(&chunk.bytes, chunk.from);
        }
    }

    /// Reads up to a full chunk; false at the end of the file.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> Result<bool> {
        let mut done = bytes.len();
        bytes.resize(self.chunk_bytes.max(done), 0);
        while let Some(buffer @ [_, ..]) = bytes.get_mut(done..) {
            match self.reader.read(buffer) {
                Ok(0) => {
                    bytes.truncate(done);
                    return Ok(false);
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(decompress::read_error(&self.file.path, e)),
            }
        }
        Ok(true)
    }

    /// Moves the bytes after the last whole line to the next chunk. If one line fills the chunk, it
    /// is cut after its last whole entry.
    fn cut(&mut self, bytes: &mut Vec<u8>) -> Result<()> {
        let end = match self.body.map(|body| body.shape) {
            Some(Shape::Records(records)) => records::whole(bytes, records.delimiter()),
            _ => match memchr::memrchr(b'\n', bytes) {
                Some(end) => end + 1,
                None => self.cut_line(bytes),
            },
        };
        if end == 0 {
            let expected = match self.body.map(|body| body.shape) {
                Some(Shape::Lists(_)) => "a vertex id",
                Some(Shape::Records(_)) => "a record of at most 1 MiB with closed quotes",
                Some(_) => "one edge on a line",
                None => "a header or an edge",
            };
            return Err(Error::Parse {
                path: self.file.path.clone(),
                line: self.at.line,
                column: self.at.column + 1,
                expected: expected.into(),
                found: format!("{} bytes without a line end, as in a binary file", bytes.len()),
                advice: "check the file".into(),
            });
        }
        self.rest.extend_from_slice(bytes.get(end..).unwrap_or_default());
        bytes.truncate(end);
        Ok(())
    }

    /// The offset at which a line without an end may be cut; 0 if there is none.
    fn cut_line(&self, bytes: &[u8]) -> usize {
        let Some(Body { shape: Shape::Lists(lists), .. }) = &self.body else {
            return 0;
        };
        let gap = |bytes: &[u8]| bytes.iter().rposition(|&b| text::is_separator(b));
        let end = gap(bytes).map_or(0, |gap| gap + 1);
        let whole = bytes.get(..end).unwrap_or_default();
        let next = lists::advance(lists, self.at, whole);
        if next.comment || !lists.dangling(next.words) {
            return end;
        }
        let word_end =
            whole.iter().rposition(|&b| !text::is_separator(b)).map_or(0, |last| last + 1);
        gap(whole.get(..word_end).unwrap_or_default()).map_or(0, |gap| gap + 1)
    }

    /// Reads the header, or the rest of it, from the lines of `chunk`.
    fn read_header(&mut self, chunk: &mut Chunk) -> Result<()> {
        while self.body.is_none() {
            let rest = chunk.bytes.get(chunk.from..).unwrap_or_default();
            let Some(end) = memchr::memchr(b'\n', rest) else {
                return Ok(());
            };
            let line = rest.get(..end).unwrap_or_default();
            let blank = text::skip(line, 0) == line.len();
            if self.format == TextFormat::Auto && !blank {
                self.format = TextFormat::of_first_line(line);
                if self.draft.names && !self.format.may_have_names() {
                    return Err(no_names(&self.file.path, self.format));
                }
                if !self.format.has_columns() {
                    self.refuse_columns()?;
                }
            }
            let step =
                if blank { self.blank_line() } else { self.format.header(line, &mut self.draft) };
            let step = step.map_err(|flaw| {
                let at = if let HeaderFlaw::Wrong { at, .. } = &flaw { *at } else { 0 };
                header_error(&self.file.path, chunk.start.line, line, flaw, at)
            })?;
            match step {
                Step::Data(body) => self.body = Some(self.directed(body)),
                Step::Skip | Step::Header(_) => {
                    if let Step::Header(body) = step {
                        (self.body, self.header_line) =
                            (Some(self.directed(body)), chunk.start.line);
                    }
                    chunk.from += end + 1;
                    chunk.start.line += 1;
                }
            }
        }
        Ok(())
    }

    /// Handles an empty line before the body. It has a meaning only in the header of vertex lists
    /// in order.
    fn blank_line(&mut self) -> Result<Step, super::HeaderFlaw> {
        match self.format {
            TextFormat::Adjacency => self.format.header(b"", &mut self.draft),
            _ => Ok(Step::Skip),
        }
    }

    /// The position of the chunk after `chunk`.
    fn advance(&self, chunk: &Chunk) -> Start {
        let body = chunk.bytes.get(chunk.from..).unwrap_or_default();
        match chunk.shape {
            Some(Shape::Lists(lists)) => lists::advance(&lists, chunk.start, body),
            shape => {
                let lines = match shape {
                    Some(Shape::Records(_)) => text::record_lines(body),
                    _ => memchr::memchr_iter(b'\n', body).count() as u64,
                };
                Start { line: chunk.start.line + lines, ..Start::default() }
            }
        }
    }

    fn end(&self) -> Result<FileEnd> {
        let fail = |expected: String, found: String| Error::Parse {
            path: self.file.path.clone(),
            line: self.at.line,
            column: 1,
            expected,
            found,
            advice: ADVICE.into(),
        };
        let missing = self.format.missing_header().filter(|_| self.body.is_none());
        if let Some(header) = missing {
            return Err(fail(header.into(), "the end of the file".into()));
        }
        if let Some(Body {
            shape: Shape::Lists(Lists { rows: lists::Rows::Numbered(ids), .. }),
            ..
        }) = self.body
            && self.at.row.saturating_add(1) < ids.count
        {
            let expected =
                format!("{}, one for each vertex of the header", counted(ids.count, "list"));
            return Err(fail(expected, format!("the end of the file after {}", self.at.row)));
        }
        let (stated, header_line, columns) =
            (self.body.map(Stated::from), self.header_line, self.draft.columns.clone());
        Ok(FileEnd { stated, header_line, lines: self.at.line - 1, columns })
    }
}

/// The error of a flaw `at` bytes into a line.
fn header_error(path: &Path, line: u64, text: &[u8], flaw: HeaderFlaw, at: usize) -> Error {
    match flaw {
        HeaderFlaw::Wrong { expected, .. } => Error::Parse {
            path: path.into(),
            line,
            column: at as u64 + 1,
            expected,
            found: text::shown(text, at),
            advice: ADVICE.into(),
        },
        HeaderFlaw::Doubt(doubt) => doubt.error(path),
    }
}

/// The text without an initial byte order mark.
pub(crate) fn without_mark(start: &[u8]) -> &[u8] {
    start.strip_prefix("\u{feff}".as_bytes()).unwrap_or(start)
}

/// A file whose beginning was already read, from the start again.
pub(crate) struct Restarted {
    start: Cursor<Vec<u8>>,
    file: Box<dyn Read + Send>,
}

impl Restarted {
    pub(crate) fn new(start: Vec<u8>, file: Box<dyn Read + Send>) -> Self {
        Self { start: Cursor::new(start), file }
    }
}

impl Read for Restarted {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let read = self.start.read(buffer)?;
        if read > 0 || buffer.is_empty() {
            return Ok(read);
        }
        // The beginning is read; its memory is no longer needed.
        self.start = Cursor::default();
        self.file.read(buffer)
    }
}

/// The error about string ids in a format that numbers its vertices.
pub(crate) fn no_names(path: &Path, format: TextFormat) -> Error {
    Error::Usage(format!(
        "{}: ids of {} are integers by definition; leave --ids string out, or name another format \
         with --format",
        path.display(),
        format.name()
    ))
}
