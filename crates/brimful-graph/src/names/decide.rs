//! Whether the ids of a text are integers or strings.
//!
//! Invariant: what was decided on the first lines holds for the whole input; a line that does not fit is
//! judged as any other flaw.

use std::io::{Cursor, Read};
use std::path::Path;

use crate::declaration::Declaration;
use crate::decompress::read_error;
use crate::error::{Error, Result};
use crate::formats::TextFormat;
use crate::text;

/// What the user says about ids.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub enum IdChoice {
    /// Strings if more than half of the ids on the first lines are no integers.
    #[default]
    Auto,
    /// Integers.
    Int,
    /// Strings, also those made of digits.
    String,
}

impl IdChoice {
    /// The choice of this name.
    ///
    /// # Errors
    /// [`Error::Usage`] naming the ones there are.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "auto" => Ok(Self::Auto),
            "int" => Ok(Self::Int),
            "string" => Ok(Self::String),
            _ => Err(Error::Usage(format!("ids cannot be {name:?}; choose from: auto, int, string"))),
        }
    }
}

/// Lines that are looked at.
pub const LOOKED_AT_LINES: usize = 1 << 16;
/// Most bytes of them.
const LOOKED_AT_BYTES: usize = 4 << 20;

/// True if ids are strings: of `ids` ids so many as `others` are no integers.
pub fn are_names(ids: usize, others: usize) -> bool {
    2 * others > ids
}

/// Looks at the first lines of `file`; returns whether ids are strings, and the file from its beginning.
pub(crate) fn look_at(
    mut file: Box<dyn Read + Send>,
    path: &Path,
    format: TextFormat,
) -> Result<(bool, Box<dyn Read + Send>)> {
    let mut start = Vec::new();
    let mut lines = 0;
    while lines < LOOKED_AT_LINES && start.len() < LOOKED_AT_BYTES {
        let before = start.len();
        let read = file.by_ref().take(64 << 10).read_to_end(&mut start);
        read.map_err(|e| read_error(path, e))?;
        if start.len() == before {
            break;
        }
        lines += memchr::memchr_iter(b'\n', start.get(before..).unwrap_or_default()).count();
    }
    let names = in_text(&start, format);
    Ok((names, Box::new(Restarted { start: Cursor::new(start), file })))
}

fn in_text(text: &[u8], format: TextFormat) -> bool {
    let mut lines = text.split(|&b| b == b'\n').filter(|line| text::skip(line, 0) < line.len()).peekable();
    let format = match (format, lines.peek()) {
        (TextFormat::Auto, Some(first)) => TextFormat::of_first_line(first),
        _ => format,
    };
    let (comments, most): (&[u8], _) = match format {
        TextFormat::EdgeList => (b"#%", 2),
        TextFormat::AdjacencyIds => (b"#", usize::MAX),
        _ => return false,
    };
    let (mut seen, mut others) = (0, 0);
    for line in lines.take(LOOKED_AT_LINES) {
        if line.get(text::skip(line, 0)).is_some_and(|first| comments.contains(first)) {
            if let (TextFormat::EdgeList, 0, Some(Ok(said))) = (format, seen, Declaration::of_comment(line)) {
                return said.names;
            }
            continue;
        }
        for word in text::words(line).take(most) {
            seen += 1;
            others += usize::from(!text::is_integer(word));
        }
    }
    are_names(seen, others)
}

/// A file of which the beginning was read already.
struct Restarted {
    start: Cursor<Vec<u8>>,
    file: Box<dyn Read + Send>,
}

impl Read for Restarted {
    fn read(&mut self, room: &mut [u8]) -> std::io::Result<usize> {
        let read = self.start.read(room)?;
        if read > 0 || room.is_empty() {
            return Ok(read);
        }
        // The memory is needed no more.
        self.start = Cursor::default();
        self.file.read(room)
    }
}
