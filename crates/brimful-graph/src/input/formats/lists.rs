//! The targets of one vertex a line: `[id] [skipped words] target [weight] target [weight] ...`.
//!
//! A chunk may begin and end within a line, between two entries; the reader has recorded the
//! position. Invariant: every word of the body belongs to an entry, is skipped as the header
//! demands, or is rejected.

use super::lines::{expected, line_end};
use super::parser::{Output, Work};
use super::reader::Start;
use super::{IdWords, named};
use crate::error::Result;
use crate::input::text::{Flaw, Id, Reason, Span, read_id, read_weight, skip, word};

/// The layout of such lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lists {
    /// The vertex to which a line belongs.
    pub(crate) rows: Rows,
    /// Number of words before the first target to skip.
    pub(crate) skip: u64,
    /// True if a weight follows every target.
    pub(crate) weighted: bool,
    /// The byte that begins a comment line.
    pub(crate) comment: Option<u8>,
    /// True if every edge is listed at both ends.
    pub(crate) mirrored: bool,
    /// True to store an edge of a mirrored list once, from the list of its smaller end.
    pub(crate) once: bool,
    /// The kind of ids.
    pub(crate) words: IdWords,
}

/// The rule for the vertex of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rows {
    /// One line for each vertex in order, including empty lines.
    Numbered(Span),
    /// The line begins with its vertex.
    Named,
}

impl Rows {
    fn span(self) -> Option<Span> {
        match self {
            Self::Numbered(span) => Some(span),
            Self::Named => None,
        }
    }
}

/// The parser's position in a line.
struct Row {
    number: u64,
    /// Number of words of this line read so far.
    words: u64,
    /// The vertex; `None` if it is still unknown or was rejected.
    source: Option<Id>,
}

impl Lists {
    pub(crate) fn parse(
        &self,
        work: &mut Work<'_>,
        out: &mut Output,
        full: &mut impl FnMut(&mut Output) -> Result<()>,
    ) -> Result<()> {
        if self.words == IdWords::Names {
            return named::parse_lists(self, work, out, full);
        }
        let bytes = work.bytes();
        let start = work.start();
        let mut at = if start.comment { line_end(bytes, work.from()) } else { work.from() };
        let mut row = Row { number: start.row, words: start.words, source: start.source };
        self.enter(&mut row);
        loop {
            at = skip(bytes, at);
            match bytes.get(at) {
                None => return Ok(()),
                Some(b'\n') => {
                    if self.rows == Rows::Named && row.words == 1 {
                        row.source.into_iter().for_each(|id| out.declare(id));
                    }
                    row = Row { number: row.number + 1, words: 0, source: None };
                    self.enter(&mut row);
                    at += 1;
                }
                Some(&byte) if row.words == 0 && self.comment == Some(byte) => {
                    at = line_end(bytes, at);
                }
                Some(_) => {
                    match self.word(work, &mut at, &mut row, out) {
                        Ok(()) => {}
                        Err(flaw) => {
                            work.judge(flaw, out)?;
                            at = self.leave(bytes, flaw, at);
                        }
                    }
                    if out.is_full() {
                        full(out)?;
                    }
                }
            }
        }
    }

    /// Sets the vertex of a numbered line, which is known before its first word.
    fn enter(&self, row: &mut Row) {
        if let Rows::Numbered(span) = self.rows {
            let bits = span.first + row.number;
            row.source = (row.number < span.count).then_some(Id { bits, negative: false });
        }
    }

    /// Reads the next word or entry of a line.
    #[inline]
    fn word(
        &self,
        work: &mut Work<'_>,
        at: &mut usize,
        row: &mut Row,
        out: &mut Output,
    ) -> Result<(), Flaw> {
        let bytes = work.bytes();
        row.words += 1;
        if self.rows == Rows::Named && row.words == 1 {
            row.source = Some(read_id(bytes, at)?);
            return Ok(());
        }
        let Some(source) = row.source else {
            // If a vertex is rejected, the rest of its line is skipped. A line after the last
            // vertex has no vertex.
            let flaw = Flaw { at: *at, reason: Reason::Row };
            let rest = bytes.get(*at..).unwrap_or_default();
            *at = memchr::memchr(b'\n', rest).map_or(bytes.len(), |end| *at + end);
            return if row.words > 1 { Ok(()) } else { Err(flaw) };
        };
        if row.words <= self.skip {
            *at += word(bytes, *at).len();
            return Ok(());
        }
        let start = *at;
        row.words += u64::from(self.weighted);
        let target = read_id(bytes, at)?;
        if self.rows.span().is_some_and(|span| !span.contains(target)) {
            return Err(Flaw { at: start, reason: Reason::Outside });
        }
        let mut weight = None;
        if self.weighted {
            *at = skip(bytes, *at);
            weight = Some(read_weight(bytes, at)?);
        }
        if self.mirrored {
            out.tally.mirror(source.bits, target.bits, weight.unwrap_or(1.0));
        }
        if self.once && source.bits > target.bits {
            out.tally.entries += 1;
        } else {
            out.push(source, target, weight);
            work.note_position(*at, &mut out.edges.positions);
        }
        Ok(())
    }

    /// The offset after the text that a flaw invalidates: an entry, or the rest of the line if its
    /// vertex is unknown.
    fn leave(&self, bytes: &[u8], flaw: Flaw, at: usize) -> usize {
        match flaw.reason {
            Reason::Row => at,
            // The offending word is at the position of a weight.
            Reason::Weight | Reason::Rounded => flaw.at + word(bytes, flaw.at).len(),
            _ => {
                let behind = flaw.at + word(bytes, flaw.at).len();
                if !self.weighted {
                    return behind;
                }
                let weight = skip(bytes, behind);
                weight + word(bytes, weight).len()
            }
        }
    }

    /// The text that was expected instead of a flaw.
    pub(crate) fn expected(&self, reason: Reason) -> String {
        match reason {
            Reason::Weight => "a finite number as the weight of the edge".into(),
            Reason::NotAnId if self.words == IdWords::NotNames => {
                "an integer vertex id (ids that are words are read with --ids string)".into()
            }
            _ => expected(reason, self.rows.span()),
        }
    }

    /// True if an unfinished line of `words` words ends between a target and its weight, which must
    /// stay together.
    pub(super) fn dangling(&self, words: u64) -> bool {
        self.weighted && words > self.skip && (words - self.skip) % 2 == 1
    }
}

/// Number of words in a part of a line. One thread counts all chunks of a long line, so the loop
/// has no branches.
fn count_words(bytes: &[u8]) -> u64 {
    let separates = |&byte: &u8| {
        u64::from(byte == b' ')
            | u64::from(byte == b'\t')
            | u64::from(byte == b',')
            | u64::from(byte == b'\r')
    };
    let begins =
        bytes.iter().zip(bytes.iter().skip(1)).map(|(a, b)| separates(a) & (1 ^ separates(b)));
    begins.sum::<u64>() + bytes.first().map_or(0, |first| 1 ^ separates(first))
}

/// The position of the chunk after `bytes`, which are whole lines or a part of one line.
pub(super) fn advance(lists: &Lists, start: Start, bytes: &[u8]) -> Start {
    let newlines = memchr::memchr_iter(b'\n', bytes).count() as u64;
    let starts_comment = |line: &[u8]| {
        lists.comment.is_some_and(|comment| line.get(skip(line, 0)) == Some(&comment))
    };
    let mut next = Start { line: start.line + newlines, ..start };
    if newlines == 0 {
        next.column += bytes.len() as u64;
        next.comment = start.comment || (start.words == 0 && starts_comment(bytes));
        if !next.comment {
            next.words += count_words(bytes);
            if start.words == 0 {
                next.source = read_id(bytes, &mut skip(bytes, 0)).ok();
            }
        }
        return next;
    }
    let mut comments = 0;
    if start.comment
        || lists.comment.is_some_and(|comment| memchr::memchr(comment, bytes).is_some())
    {
        for (number, line) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
            let first = number == 0 && (start.comment || start.words > 0);
            comments += u64::from(if first { start.comment } else { starts_comment(line) });
        }
    }
    Start { line: next.line, row: start.row + newlines - comments, ..Start::default() }
}
