//! Java properties: `key=value`, `key: value` or `key value` a line.
//!
//! A backslash at the end of a line continues it; `#` and `!` begin a comment line.
//!
//! Format: `java.util.Properties`, <https://docs.oracle.com/en/java/javase/21/docs/api>.

use std::io::Read;
use std::path::Path;

use crate::error::{Error, Result};
use crate::input::decompress;

/// An entry of a file of properties.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Property {
    /// The line at which it begins, from 1.
    pub(super) line: u64,
    pub(super) key: String,
    /// Without blanks at its ends.
    pub(super) value: String,
}

/// The longest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The text of the file of properties at `path`, which `reader` reads.
///
/// # Errors
/// [`Error::Input`] if it has more than 1 MiB.
pub(super) fn read(path: &Path, reader: impl Read) -> Result<Vec<u8>> {
    let mut text = Vec::new();
    let read = reader.take(MAX_BYTES + 1).read_to_end(&mut text);
    read.map_err(|e| decompress::read_error(path, e))?;
    match text.len() as u64 > MAX_BYTES {
        true => Err(Error::input(path, "properties have at most 1 MiB; check the file")),
        false => Ok(text),
    }
}

/// The entries of `text`.
pub(super) fn parse(text: &[u8]) -> Vec<Property> {
    let text = String::from_utf8_lossy(text);
    let mut lines = (1..).zip(text.split('\n').map(str::trim));
    let mut properties = Vec::new();
    while let Some((line, first)) = lines.next() {
        if first.is_empty() || first.starts_with(['#', '!']) {
            continue;
        }
        let mut entry = first.to_owned();
        while ends_with_escape(&entry) {
            entry.pop();
            let Some((_, next)) = lines.next() else { break };
            entry.push_str(next);
        }
        let (key, value) = split(&entry);
        properties.push(Property { line, key: unescaped(key), value: unescaped(value) });
    }
    properties
}

/// True if an odd number of backslashes ends the line.
fn ends_with_escape(line: &str) -> bool {
    line.bytes().rev().take_while(|&byte| byte == b'\\').count() % 2 == 1
}

/// Key and value, separated by `=`, `:` or blanks.
fn split(entry: &str) -> (&str, &str) {
    let mut escaped = false;
    let end = entry.find(|c: char| {
        let ends = !escaped && (matches!(c, '=' | ':') || c.is_whitespace());
        escaped = !escaped && c == '\\';
        ends
    });
    let (key, rest) = entry.split_at(end.unwrap_or(entry.len()));
    let rest = rest.trim_start();
    (key, rest.strip_prefix(['=', ':']).unwrap_or(rest).trim())
}

/// A text in which a backslash is before each character that would end a key, for writers.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if c.is_whitespace() || matches!(c, '\\' | '=' | ':' | '#' | '!') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// A text without its backslashes, which escape the characters after them.
fn unescaped(text: &str) -> String {
    let mut chars = text.chars();
    let mut plain = String::with_capacity(text.len());
    while let Some(c) = chars.next() {
        plain.extend(if c == '\\' { chars.next() } else { Some(c) });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_those_of_java() {
        let entry = |line, key: &str, value: &str| Property {
            line,
            key: key.to_owned(),
            value: value.to_owned(),
        };
        let text =
            "# a = 1\r\n a.b = 1\r\nc: x y\n\nd 2\n! e\nf\\ g=h\\:i\nj=k,\\\n   l\nm\nn=\\\\\n";
        assert_eq!(
            parse(text.as_bytes()),
            [
                entry(2, "a.b", "1"),
                entry(3, "c", "x y"),
                entry(5, "d", "2"),
                entry(7, "f g", "h:i"),
                entry(8, "j", "k,l"),
                entry(10, "m", ""),
                entry(11, "n", "\\"),
            ]
        );
        assert_eq!(parse(b"a=b\\"), [entry(1, "a", "b")]);
    }

    #[test]
    fn a_longer_file_is_refused_and_not_cut() {
        let read = |bytes| read(Path::new("g.properties"), std::io::repeat(b'#').take(bytes));
        assert_eq!(read(MAX_BYTES).unwrap().len() as u64, MAX_BYTES);
        let refused = read(MAX_BYTES + 1).unwrap_err().to_string();
        assert_eq!(refused, "g.properties: properties have at most 1 MiB; check the file");
    }
}
