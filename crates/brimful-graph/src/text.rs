//! Edge lists as text: two integers a line, perhaps a weight.
//!
//! `#` and `%` begin a comment line; blanks, tabs and commas separate; gzip, xz and zstd are opened by
//! content. The first data line decides whether there are weights; every later line must agree.
//! Invariant: nothing is dropped; the first line that is not an edge ends the import with its place.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use brimful_store::Job;
use brimful_store::external::open_input;

use crate::decompress;
use crate::edges::EdgeBatch;
use crate::error::{Error, Result};

/// Bytes read at once; also the longest line.
pub const CHUNK_BYTES: usize = 1 << 20;

/// Lines of one file, whole.
#[derive(Debug, Default)]
pub struct Chunk {
    file: usize,
    bytes: Vec<u8>,
}

/// Reads files one after the other and cuts them into chunks at line ends.
pub struct ChunkReader<'a> {
    files: &'a [PathBuf],
    next: usize,
    reader: Option<Box<dyn Read + Send>>,
    rest: Vec<u8>,
    memory_bytes: u64,
    job: Arc<Job>,
}

impl<'a> ChunkReader<'a> {
    /// A reader of `files`; decompression may use `memory_bytes`.
    pub fn new(files: &'a [PathBuf], memory_bytes: u64, job: &Arc<Job>) -> Self {
        Self { files, next: 0, reader: None, rest: Vec::new(), memory_bytes, job: Arc::clone(job) }
    }

    /// Fills `chunk` with the next whole lines; false at the end.
    pub fn next(&mut self, chunk: &mut Chunk) -> Result<bool> {
        loop {
            if self.reader.is_none() {
                let Some(path) = self.files.get(self.next) else {
                    return Ok(false);
                };
                self.reader = Some(decompress::open(open_input(path, &self.job)?, path, self.memory_bytes)?);
                self.next += 1;
            }
            chunk.file = self.next - 1;
            chunk.bytes.clear();
            chunk.bytes.append(&mut self.rest);
            if self.fill(&mut chunk.bytes)? {
                self.keep_rest(chunk)?;
                return Ok(true);
            }
            self.reader = None;
            if !chunk.bytes.is_empty() {
                return Ok(true);
            }
        }
    }

    /// Reads up to a full chunk; false at the end of the file.
    fn fill(&mut self, bytes: &mut Vec<u8>) -> Result<bool> {
        let path = &self.files[self.next - 1];
        let Some(reader) = &mut self.reader else {
            return Ok(false);
        };
        let mut done = bytes.len();
        bytes.resize(CHUNK_BYTES, 0);
        while done < CHUNK_BYTES {
            match reader.read(&mut bytes[done..]) {
                Ok(0) => {
                    bytes.truncate(done);
                    return Ok(false);
                }
                Ok(n) => done += n,
                Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
                Err(e) => return Err(decompress::read_error(path, e)),
            }
        }
        Ok(true)
    }

    fn keep_rest(&mut self, chunk: &mut Chunk) -> Result<()> {
        let Some(end) = memchr::memrchr(b'\n', &chunk.bytes) else {
            let what = "a line is longer than 1 MiB, which no edge is; is this a text file?";
            return Err(Error::input(&self.files[chunk.file], what));
        };
        self.rest.extend_from_slice(&chunk.bytes[end + 1..]);
        chunk.bytes.truncate(end + 1);
        Ok(())
    }
}

/// Whether lines carry a weight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// `source target`
    Two,
    /// `source target weight`
    Three,
}

/// What was seen of a text beside its edges.
#[derive(Debug, Default, Clone, Copy)]
pub struct Signs {
    /// An id below zero.
    pub negative: bool,
    /// An id of 2^63 or more.
    pub huge: bool,
}

/// The parser shared by all workers.
pub struct EdgeListParser<'a> {
    files: &'a [PathBuf],
    columns: Mutex<Option<Columns>>,
    /// Lines of each chunk so far, to place an error.
    lines: Mutex<Vec<(usize, u64)>>,
}

impl<'a> EdgeListParser<'a> {
    /// A parser for chunks of `files`.
    pub fn new(files: &'a [PathBuf]) -> Self {
        Self { files, columns: Mutex::new(None), lines: Mutex::new(Vec::new()) }
    }

    /// Looks at the first data line, if that has not been found yet. Called in file order, before
    /// [`EdgeListParser::parse`].
    pub fn look(&self, chunk: &Chunk) {
        let mut columns = self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        if columns.is_none() {
            let mut lines = chunk.bytes.split(|&b| b == b'\n');
            let data = lines.find(|line| matches!(parse_line(line, None), Ok(Some(_)) | Err(_)));
            *columns = data.map(|line| if fields(line) > 2 { Columns::Three } else { Columns::Two });
        }
    }

    /// True if edges have weights.
    pub fn weighted(&self) -> bool {
        *self.columns.lock().unwrap_or_else(PoisonError::into_inner) == Some(Columns::Three)
    }

    /// Lines in all files together.
    pub fn lines(&self) -> u64 {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().map(|(_, lines)| lines).sum()
    }

    /// Appends the edges of chunk `number` to `batch`, calling `full` whenever it has `limit` edges.
    pub fn parse(
        &self,
        number: u64,
        chunk: &Chunk,
        batch: &mut EdgeBatch,
        signs: &mut Signs,
        limit: usize,
        mut full: impl FnMut(&mut EdgeBatch) -> Result<()>,
    ) -> Result<()> {
        let columns = *self.columns.lock().unwrap_or_else(PoisonError::into_inner);
        let mut lines = 0;
        let mut rest = &chunk.bytes[..];
        while !rest.is_empty() {
            let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
            match parse_line(&rest[..end], columns) {
                Ok(Some(edge)) => {
                    signs.note(edge.source);
                    signs.note(edge.target);
                    batch.sources.push(edge.source.bits);
                    batch.targets.push(edge.target.bits);
                    if columns == Some(Columns::Three) {
                        batch.weights.push(edge.weight);
                    }
                    if batch.len() == limit {
                        full(batch)?;
                    }
                }
                Ok(None) => {}
                Err(error) => return Err(self.place(number, chunk, lines, error)),
            }
            lines += 1;
            rest = &rest[rest.len().min(end + 1)..];
        }
        self.record(number, chunk.file, lines);
        Ok(())
    }

    fn record(&self, number: u64, file: usize, lines: u64) {
        let mut all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let length = all.len().max(number as usize + 1);
        all.resize(length, (usize::MAX, 0));
        all[number as usize] = (file, lines);
    }

    /// Chunks are handed out in order, so every earlier one is parsed or being parsed; the pump keeps
    /// only the earliest failure, and its line number is settled by [`EdgeListParser::settle`].
    fn place(&self, number: u64, chunk: &Chunk, line: u64, error: LineError) -> Error {
        self.record(number, chunk.file, 0);
        Error::Parse {
            path: self.files[chunk.file].clone(),
            line: line + 1,
            column: error.column as u64 + 1,
            expected: error.expected,
            found: error.found,
        }
    }

    /// Turns the line number of an error, counted within its chunk, into that of its file.
    pub fn settle(&self, error: Error) -> Error {
        let Error::Parse { path, line, column, expected, found } = error else {
            return error;
        };
        let all = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let file = self.files.iter().position(|known| *known == path);
        // The failed chunk was recorded with no lines, and the chunks after it do not count.
        let failed = all.iter().position(|&(f, lines)| Some(f) == file && lines == 0).unwrap_or(all.len());
        let before: u64 =
            all[..failed].iter().filter(|(f, _)| Some(*f) == file).map(|(_, lines)| lines).sum();
        Error::Parse { path, line: before + line, column, expected, found }
    }
}

impl Signs {
    fn note(&mut self, id: Id) {
        self.negative |= id.negative;
        self.huge |= !id.negative && id.bits >> 63 == 1;
    }

    /// Adds what another worker saw.
    pub fn merge(&mut self, other: Self) {
        self.negative |= other.negative;
        self.huge |= other.huge;
    }
}

/// An integer as read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Id {
    bits: u64,
    negative: bool,
}

#[derive(Debug, PartialEq)]
struct Edge {
    source: Id,
    target: Id,
    weight: f64,
}

#[derive(Debug, PartialEq)]
struct LineError {
    column: usize,
    expected: String,
    found: String,
}

fn is_separator(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b',' | b'\r')
}

fn fields(line: &[u8]) -> usize {
    line.split(|&b| is_separator(b)).filter(|field| !field.is_empty()).count()
}

/// The text at `at`, up to the next separator, shortened for a message.
fn shown(line: &[u8], at: usize) -> String {
    let field = line[at..].split(|&b| is_separator(b)).next().unwrap_or_default();
    let text = String::from_utf8_lossy(&field[..field.len().min(40)]);
    if field.is_empty() {
        "the end of the line".into()
    } else if field.len() > 40 {
        format!("{text:?}...")
    } else {
        format!("{text:?}")
    }
}

/// Parses a line without its end; `Ok(None)` for a comment or an empty line. `columns` is `None`
/// while that is still to be found out.
fn parse_line(line: &[u8], columns: Option<Columns>) -> Result<Option<Edge>, LineError> {
    let mut at = skip(line, 0);
    if at == line.len() || line[at] == b'#' || line[at] == b'%' {
        return Ok(None);
    }
    let source = parse_field(line, &mut at)?;
    at = skip(line, at);
    let target = parse_field(line, &mut at)?;
    at = skip(line, at);
    let mut weight = 1.0;
    if columns == Some(Columns::Three) {
        weight = parse_weight(line, &mut at)?;
        at = skip(line, at);
    }
    if at < line.len() && columns.is_some() {
        let expected = match columns {
            Some(Columns::Three) => "the end of the line after source, target and weight",
            _ => "the end of the line after source and target, as in the lines before",
        };
        return Err(LineError { column: at, expected: expected.into(), found: shown(line, at) });
    }
    Ok(Some(Edge { source, target, weight }))
}

fn skip(line: &[u8], mut at: usize) -> usize {
    while at < line.len() && is_separator(line[at]) {
        at += 1;
    }
    at
}

#[inline]
fn parse_field(line: &[u8], at: &mut usize) -> Result<Id, LineError> {
    let start = *at;
    match parse_id(&line[start..]) {
        Some((id, length)) if line.get(start + length).is_none_or(|&b| is_separator(b)) => {
            *at = start + length;
            Ok(id)
        }
        _ => Err(id_error(line, start)),
    }
}

#[cold]
fn id_error(line: &[u8], at: usize) -> LineError {
    let field = line[at..].split(|&b| is_separator(b)).next().unwrap_or_default();
    let digits = field.strip_prefix(b"-").unwrap_or(field);
    let expected = if field.is_empty() {
        "two vertex ids on a line"
    } else if !digits.is_empty() && digits.iter().all(u8::is_ascii_digit) {
        "a vertex id between -2^63 and 2^64-1"
    } else {
        "an integer vertex id (a table with a heading is read with --format csv)"
    };
    LineError { column: at, expected: expected.into(), found: shown(line, at) }
}

/// Parses an integer between -2^63 and 2^64 - 1 at the start of `text`. Returns it and its length.
#[inline]
fn parse_id(text: &[u8]) -> Option<(Id, usize)> {
    let negative = text.first() == Some(&b'-');
    let start = usize::from(negative);
    let mut value = 0_u64;
    let mut at = start;
    while let Some(digit) = text.get(at).map(|b| b.wrapping_sub(b'0')).filter(|d| *d < 10) {
        // Nineteen digits always fit; from the twentieth on it must be checked.
        value = if at - start < 19 {
            value * 10 + u64::from(digit)
        } else {
            value.checked_mul(10)?.checked_add(u64::from(digit))?
        };
        at += 1;
    }
    if at == start || (negative && value > 1 << 63) {
        return None;
    }
    let negative = negative && value != 0;
    let bits = if negative { value.wrapping_neg() } else { value };
    Some((Id { bits, negative }, at))
}

/// Parses a whole text as an id, noting its sign; `None` if it is no integer of 64 bits.
pub fn parse_number(text: &str, signs: &mut Signs) -> Option<u64> {
    let (id, length) = parse_id(text.as_bytes())?;
    (length == text.len()).then(|| {
        signs.note(id);
        id.bits
    })
}

fn parse_weight(line: &[u8], at: &mut usize) -> Result<f64, LineError> {
    let field = line[*at..].split(|&b| is_separator(b)).next().unwrap_or_default();
    let number = std::str::from_utf8(field).ok().and_then(|text| text.parse::<f64>().ok());
    match number.filter(|weight| weight.is_finite()) {
        Some(weight) => {
            *at += field.len();
            Ok(weight)
        }
        None => {
            let expected = "a finite number as weight, as in the first line".into();
            Err(LineError { column: *at, expected, found: shown(line, *at) })
        }
    }
}

/// Fails if one type cannot hold all ids.
pub fn check_signs(signs: Signs, path: &Path) -> Result<()> {
    if signs.negative && signs.huge {
        let what = "it has ids below 0 and ids of 2^63 or more, which no 64-bit integer type holds together";
        return Err(Error::input(path, what));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edge(line: &str, columns: Columns) -> (i128, i128, f64) {
        let edge = parse_line(line.as_bytes(), Some(columns)).unwrap().unwrap();
        let number = |id: Id| {
            if id.negative { i128::from(id.bits.cast_signed()) } else { i128::from(id.bits) }
        };
        (number(edge.source), number(edge.target), edge.weight)
    }

    #[test]
    fn lines_in_every_legal_shape() {
        assert_eq!(edge("1\t2", Columns::Two), (1, 2, 1.0));
        assert_eq!(edge("  1 , 2 \r", Columns::Two), (1, 2, 1.0));
        assert_eq!(edge("-9223372036854775808 -1", Columns::Two), (i128::from(i64::MIN), -1, 1.0));
        assert_eq!(edge("18446744073709551615 007", Columns::Two), (i128::from(u64::MAX), 7, 1.0));
        assert_eq!(edge("-0 1 -2.5e3", Columns::Three), (0, 1, -2500.0));
        for nothing in ["", "   ", "# 1 2", "% x", "\t\r"] {
            assert_eq!(parse_line(nothing.as_bytes(), Some(Columns::Two)), Ok(None));
        }
    }

    #[test]
    fn bad_lines_name_column_and_text() {
        let cases = [
            ("1", Columns::Two, 1, "the end of the line"),
            ("a 2", Columns::Two, 0, "\"a\""),
            ("1 2x", Columns::Two, 2, "\"2x\""),
            ("1 2 3", Columns::Two, 4, "\"3\""),
            ("1 18446744073709551616", Columns::Two, 2, "\"18446744073709551616\""),
            ("-9223372036854775809 1", Columns::Two, 0, "\"-9223372036854775809\""),
            ("1 2", Columns::Three, 3, "the end of the line"),
            ("1 2 nan", Columns::Three, 4, "\"nan\""),
            ("1 2 3 4", Columns::Three, 6, "\"4\""),
            ("- 2", Columns::Two, 0, "\"-\""),
        ];
        for (line, columns, column, found) in cases {
            let error = parse_line(line.as_bytes(), Some(columns)).unwrap_err();
            assert_eq!((error.column, error.found.as_str()), (column, found), "{line}");
        }
    }
}
