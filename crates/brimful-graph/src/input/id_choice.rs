//! Decides whether the ids of a text are integers or strings.
//!
//! Invariant: the decision on the first lines holds for the whole input; a later line that does not
//! fit is an ordinary flaw.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::input::columns::ColumnChoice;
use crate::input::declaration::Declaration;
use crate::input::decompress::read_error;
use crate::input::formats::reader::{CHUNK_BYTES, Restarted, without_mark};
use crate::input::formats::{TextFormat, edge_list, records};
use crate::input::text;

/// The user's choice of id type.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum IdChoice {
    /// Strings if more than half of the ids on the first lines are not integers.
    #[default]
    Auto,
    /// Integers.
    Int,
    /// Strings, even if they are digits.
    String,
}

impl IdChoice {
    /// The choice called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "int" => Ok(Self::Int),
            "string" => Ok(Self::String),
            _ => {
                Err(Error::Usage(format!("ids cannot be {name:?}; choose from: auto, int, string")))
            }
        }
    }
}

/// Number of lines that are examined.
pub(crate) const LOOKED_AT_LINES: usize = 1 << 16;
/// The maximum bytes of these lines.
const LOOKED_AT_BYTES: usize = 4 << 20;

/// True if ids are strings, given that `others` of `ids` ids are not integers.
pub(crate) fn are_names(ids: usize, others: usize) -> bool {
    2 * others > ids
}

/// Examines the first lines of `file`; returns whether ids are strings, and the file from its
/// start.
pub(crate) fn detect(
    mut file: Box<dyn Read + Send>,
    path: &Path,
    format: TextFormat,
    choice: &ColumnChoice,
) -> Result<(bool, Box<dyn Read + Send>)> {
    let mut start = Vec::new();
    let (mut lines, mut ended) = (0, false);
    while !ended && lines < LOOKED_AT_LINES && start.len() < LOOKED_AT_BYTES {
        let before = start.len();
        let read = file.by_ref().take(CHUNK_BYTES as u64).read_to_end(&mut start);
        read.map_err(|e| read_error(path, e))?;
        let new = start.get(before..).unwrap_or_default();
        ended = new.len() < CHUNK_BYTES;
        lines += memchr::memchr_iter(b'\n', new).count();
    }
    let names = in_text(&start, ended, format, choice);
    Ok((names, Box::new(Restarted::new(start, file))))
}

/// True if ids are strings; false if the reader will refuse the text anyway.
fn in_text(start: &[u8], ended: bool, format: TextFormat, choice: &ColumnChoice) -> bool {
    let text = without_mark(start);
    let mut lines =
        text.split(|&b| b == b'\n').filter(|line| text::skip(line, 0) < line.len()).peekable();
    let format = match (format.of_start(text), lines.peek()) {
        (TextFormat::Auto, Some(first)) => TextFormat::of_first_line(first),
        (format, _) => format,
    };
    let (mut seen, mut others) = (0, 0);
    let mut count = |is_integer: bool| {
        seen += 1;
        others += usize::from(!is_integer);
    };
    match format {
        TextFormat::EdgeList => {
            // An export declares the kind of its ids before the first edge.
            let comments = lines.take_while(|line| edge_list::is_comment(line));
            if let Some(Ok(said)) = comments.into_iter().find_map(Declaration::of_comment) {
                return said.names;
            }
            let mut lines = edge_list::data_lines(text, ended).take(LOOKED_AT_LINES).peekable();
            let Some(first) = lines.next() else { return false };
            let chosen = edge_list::choose_columns(first, lines.peek().copied(), choice, false);
            let Ok((roles, columns)) = chosen else {
                return false;
            };
            let first = (columns.header != Some(true)).then_some(first);
            for line in first.into_iter().chain(lines) {
                for (at, word) in text::words(line).enumerate() {
                    if at == roles.source || at == roles.target {
                        count(text::is_integer(word));
                    }
                }
            }
        }
        TextFormat::Delimited(delimiter) => {
            // The reader examines the same number of bytes.
            let beginning = without_mark(start.get(..CHUNK_BYTES).unwrap_or(start));
            let is_whole = start.len() < CHUNK_BYTES;
            let begun = records::begin(beginning, is_whole, delimiter, choice, false, Some(true));
            let Ok(Some(begun)) = begun else { return false };
            let body = text.get(begun.skip..).unwrap_or_default();
            let body = records::with_last_line_end(body, ended);
            begun.records.ids(&body).take(LOOKED_AT_LINES).flatten().for_each(count);
        }
        TextFormat::AdjacencyIds => {
            for line in lines.take(LOOKED_AT_LINES) {
                if line.get(text::skip(line, 0)) != Some(&b'#') {
                    text::words(line).for_each(|word| count(text::is_integer(word)));
                }
            }
        }
        _ => return false,
    }
    are_names(seen, others)
}
