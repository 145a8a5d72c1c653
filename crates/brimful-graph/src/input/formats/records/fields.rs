//! The fields and records of delimited text, by `csv-core`.

use csv_core::{ReadFieldResult, ReadRecordResult, ReaderBuilder};

use crate::input::text;

/// The maximum number of columns.
const MAX_COLUMNS: usize = 1 << 16;

/// Reads fields in sequence; the text begins with a record.
pub(super) struct Fields<'b> {
    bytes: &'b [u8],
    at: usize,
    core: csv_core::Reader,
}

/// A field after reading.
pub(super) struct Field {
    /// The length in the buffer; it exceeds the limit of an id if the field is longer.
    pub(super) length: usize,
    pub(super) ends_record: bool,
    /// Whether text other than blanks follows the quote that closes the field.
    pub(super) is_misquoted: bool,
}

impl<'b> Fields<'b> {
    pub(super) fn new(bytes: &'b [u8], from: usize, delimiter: u8) -> Self {
        Self { bytes, at: from, core: core(delimiter) }
    }

    /// The offset of the next field.
    #[inline]
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Moves to the next record and returns its offset.
    #[inline]
    pub(super) fn begin(&mut self) -> Option<usize> {
        while matches!(self.bytes.get(self.at), Some(b'\r' | b'\n')) {
            self.at += 1;
        }
        (self.at < self.bytes.len()).then_some(self.at)
    }

    /// Reads a field into `buffer`, which is larger than any field to be kept whole; `None` if the
    /// text ends within the field.
    #[inline]
    pub(super) fn next(&mut self, buffer: &mut [u8]) -> Option<Field> {
        let (begin, mut length) = (self.at, 0);
        loop {
            let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
            let (result, read, written) = self.core.read_field(rest, &mut buffer[length..]);
            self.at += read;
            length += written;
            match result {
                ReadFieldResult::Field { record_end } => {
                    // Without the delimiter or the line end.
                    let written = self.bytes.get(begin..self.at - 1).unwrap_or_default();
                    let is_misquoted = is_misquoted(written);
                    return Some(Field { length, ends_record: record_end, is_misquoted });
                }
                // The field is longer than the buffer; its length stays above the limit.
                ReadFieldResult::OutputFull => length = buffer.len() - 1,
                ReadFieldResult::InputEmpty | ReadFieldResult::End => {}
            }
        }
    }
}

/// Whether `field` begins with a quote and has other text than blanks after the next quote that is
/// not doubled. `csv-core` takes such text as part of the field: a quote that is not closed would
/// reach to the next quote, and the records between would be lost.
#[inline]
fn is_misquoted(field: &[u8]) -> bool {
    let Some(mut rest) = field.strip_prefix(b"\"") else { return false };
    while let Some(quote) = memchr::memchr(b'"', rest) {
        rest = rest.get(quote + 1..).unwrap_or_default();
        match rest.strip_prefix(b"\"") {
            Some(after) => rest = after,
            None => return !rest.trim_ascii().is_empty(),
        }
    }
    false
}

fn core(delimiter: u8) -> csv_core::Reader {
    let mut core = ReaderBuilder::new().delimiter(delimiter).build();
    // A byte order mark is valid only at the beginning of a file. An empty line moves the parser
    // past that state.
    let _ = core.read_field(b"\n", &mut [0]);
    core
}

/// The end of the last whole record in `bytes`, which begin with a record; 0 if there is none.
pub(crate) fn whole(bytes: &[u8], delimiter: u8) -> usize {
    // LF may follow a CR at the end of the bytes.
    let is_known = |end: usize| end < bytes.len() || bytes.last() != Some(&b'\r');
    if memchr::memchr(b'"', bytes).is_none() {
        let ends = text::record_line_ends(bytes).map(|end| end + 1);
        return ends.rev().find(|end| is_known(*end)).unwrap_or(0);
    }
    let (mut core, mut at, mut end) = (core(delimiter), 0, 0);
    let (mut buffer, mut ends) = ([0; 4096], [0; 64]);
    while let Some(rest) = bytes.get(at..).filter(|rest| !rest.is_empty()) {
        let (result, read, ..) = core.read_record(rest, &mut buffer, &mut ends);
        at += read;
        if result == ReadRecordResult::Record && is_known(at) {
            end = at + usize::from(bytes.get(at) == Some(&b'\n'));
        }
    }
    end
}

/// Reads whole records as text, for the beginning of a file.
pub(crate) struct Rows<'b> {
    fields: Fields<'b>,
    buffer: Vec<u8>,
}

impl<'b> Rows<'b> {
    pub(crate) fn new(text: &'b [u8], delimiter: u8) -> Self {
        Self { fields: Fields::new(text, 0, delimiter), buffer: vec![0; text.len() + 1] }
    }

    /// The end of the records read so far.
    pub(super) fn end(&self) -> usize {
        self.fields.at()
    }
}

impl Iterator for Rows<'_> {
    type Item = Vec<String>;

    fn next(&mut self) -> Option<Self::Item> {
        self.fields.begin()?;
        let mut row = Vec::new();
        loop {
            let field = self.fields.next(&mut self.buffer)?;
            let text = String::from_utf8_lossy(self.buffer.get(..field.length)?);
            if row.len() == MAX_COLUMNS {
                return None;
            }
            row.push(text.trim().to_owned());
            if field.ends_record {
                return Some(row);
            }
        }
    }
}
