//! Lines and lists with names, instead of integers, as words.
//!
//! Invariant: a name is an unchanged word in UTF-8; every other line or word is rejected.

use std::ops::Range;

use super::lines::{Lines, line_end};
use super::lists::Lists;
use super::parser::{Output, Work};
use crate::error::Result;
use crate::ids::names::LONGEST_NAME;
use crate::input::text::{Flaw, Reason, next_word, read_weight, skip, word};

/// Text that contains names.
struct Words<'w> {
    bytes: &'w [u8],
    /// True if all of the text is UTF-8, so that single words need no check.
    valid: bool,
}

impl<'w> Words<'w> {
    fn new(bytes: &'w [u8]) -> Self {
        Self { bytes, valid: std::str::from_utf8(bytes).is_ok() }
    }

    /// Reads a name and moves to the next word.
    #[inline]
    fn name(&self, at: &mut usize) -> Result<Range<usize>, Flaw> {
        let start = *at;
        let name = word(self.bytes, start);
        let reason = match name.len() {
            0 => Reason::Missing,
            1..=LONGEST_NAME if self.valid || std::str::from_utf8(name).is_ok() => {
                let end = start + name.len();
                *at = next_word(self.bytes, end, false)?;
                return Ok(start..end);
            }
            1..=LONGEST_NAME => Reason::NotText,
            _ => Reason::TooLong,
        };
        Err(Flaw { at: start, reason })
    }
}

/// Reads one edge a line.
pub(super) fn parse_lines(
    lines: &Lines,
    work: &mut Work<'_>,
    out: &mut Output,
    full: &mut impl FnMut(&mut Output) -> Result<()>,
) -> Result<()> {
    let words = Words::new(work.bytes());
    let mut at = work.from();
    loop {
        at = skip(words.bytes, at);
        match words.bytes.get(at) {
            None => return Ok(()),
            Some(b'\n') => {
                at += 1;
                continue;
            }
            Some(byte) if lines.comments.contains(byte) => {
                comment(lines, &words, at, work, out)?;
                at = line_end(words.bytes, at);
                if out.is_full() {
                    full(out)?;
                }
                continue;
            }
            Some(_) => {}
        }
        match edge(lines, &words, &mut at, work.from()) {
            Ok((source, target, weight)) => {
                out.names.push(&words.bytes[source]);
                out.names.push(&words.bytes[target]);
                out.names.weights.extend(lines.weight.map(|_| weight));
                work.note_position(at, &mut out.names.positions);
                out.tally.entries += 1;
                if out.is_full() {
                    full(out)?;
                }
            }
            Err(flaw) => {
                work.judge(flaw, out)?;
                at = line_end(words.bytes, at);
            }
        }
    }
}

/// Reads a comment, which may name a vertex.
#[cold]
fn comment(
    lines: &Lines,
    words: &Words<'_>,
    at: usize,
    work: &mut Work<'_>,
    out: &mut Output,
) -> Result<()> {
    let Some(name) = lines.vertex_in(words.bytes, at, work, out)? else { return Ok(()) };
    let mut at = skip(words.bytes, at + name);
    let read = words.name(&mut at).and_then(|name| match words.bytes.get(at) {
        None | Some(b'\n') => Ok(name),
        Some(_) => Err(Flaw { at, reason: Reason::Extra }),
    });
    match read {
        Ok(name) => out.declared_names.push(&words.bytes[name]),
        Err(flaw) => return work.judge(flaw, out),
    }
    out.tally.listed += 1;
    Ok(())
}

/// Reads an edge and moves to the end of its line.
#[inline]
fn edge(
    lines: &Lines,
    words: &Words<'_>,
    at: &mut usize,
    from: usize,
) -> Result<(Range<usize>, Range<usize>, f64), Flaw> {
    lines.begin(words.bytes, from, *at)?;
    if let Some(picked) = lines.picked {
        let [mut source, mut target, mut weight] = picked.find(words.bytes, at)?;
        let weight = picked.weight.map_or(Ok(1.0), |_| read_weight(words.bytes, &mut weight))?;
        return Ok((words.name(&mut source)?, words.name(&mut target)?, weight));
    }
    let (source, target) = (words.name(at)?, words.name(at)?);
    let mut weight = 1.0;
    for column in 0..lines.columns {
        if lines.weight == Some(column) {
            weight = read_weight(words.bytes, at)?;
        } else {
            *at += word(words.bytes, *at).len();
        }
        *at = next_word(words.bytes, *at, false)?;
    }
    match words.bytes.get(*at) {
        None | Some(b'\n') => Ok((source, target, weight)),
        Some(_) => Err(Flaw { at: *at, reason: Reason::Extra }),
    }
}

/// The name with which a list begins; `None` if it is rejected.
pub(super) fn first_name(bytes: &[u8], from: usize) -> Option<Vec<u8>> {
    let words = Words { bytes, valid: false };
    let name = words.name(&mut skip(bytes, from)).ok()?;
    Some(bytes[name].to_vec())
}

/// Reads the targets of one vertex a line; the line begins with the vertex.
pub(super) fn parse_lists(
    lists: &Lists,
    work: &mut Work<'_>,
    out: &mut Output,
    full: &mut impl FnMut(&mut Output) -> Result<()>,
) -> Result<()> {
    let words = Words::new(work.bytes());
    let start = work.start();
    // The vertex of a line that began in an earlier chunk is in that chunk. If it was rejected,
    // the rest of the line is skipped, too.
    let (mut count, mut source) = match work.name() {
        Some(name) => (start.words, name.to_vec()),
        None => (0, Vec::new()),
    };
    let is_rejected = start.words > 0 && work.name().is_none();
    let mut at = match start.comment || is_rejected {
        true => line_end(words.bytes, work.from()),
        false => work.from(),
    };
    loop {
        at = skip(words.bytes, at);
        match words.bytes.get(at) {
            None => return Ok(()),
            Some(b'\n') => {
                if count == 1 {
                    out.declared_names.push(&source);
                }
                (count, at) = (0, at + 1);
            }
            Some(&byte) if count == 0 && lists.comment == Some(byte) => {
                at = line_end(words.bytes, at)
            }
            Some(_) => {
                let first = count == 0;
                count += 1;
                match words.name(&mut at) {
                    Ok(name) if first => words.bytes[name].clone_into(&mut source),
                    Ok(name) => {
                        out.names.push(&source);
                        out.names.push(&words.bytes[name]);
                        work.note_position(at, &mut out.names.positions);
                        out.tally.entries += 1;
                    }
                    Err(flaw) => {
                        work.judge(flaw, out)?;
                        // If a vertex is rejected, its line is skipped.
                        if first {
                            (count, at) = (0, line_end(words.bytes, at));
                        } else {
                            at += word(words.bytes, at).len();
                        }
                    }
                }
            }
        }
        if out.is_full() {
            full(out)?;
        }
    }
}
