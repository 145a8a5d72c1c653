//! One edge a line: `[letter] source target [more]`.
//!
//! Invariant: every line of the body is an edge, a comment, blank, or rejected.

use brimful_store::wording::counted;

use super::parser::{Output, Work};
use super::{IdWords, named};
use crate::error::Result;
use crate::ids::names::LONGEST_NAME;
use crate::input::declaration::Declaration;
use crate::input::text::{
    EXACT_WEIGHT, Flaw, Id, Reason, Span, first_word, is_separator, next_word, read_id,
    read_weight, skip, word,
};
use crate::order::bitmap::IdBitmap;

/// The layout of such lines.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lines {
    /// Bytes that begin a comment line.
    pub(crate) comments: &'static [u8],
    /// The letter that begins every edge.
    pub(crate) letter: Option<u8>,
    /// Number of words after source and target.
    pub(crate) columns: u8,
    /// The position of the weight among these words.
    pub(crate) weight: Option<u8>,
    /// The valid ids.
    pub(crate) ids: Option<Span>,
    /// The kind of ids.
    pub(crate) words: IdWords,
    /// True if comment lines may name vertices without edges.
    pub(crate) lists_vertices: bool,
    /// The positions of the edge's words, unless these are exactly the words of the line, in order.
    pub(crate) picked: Option<Picked>,
}

/// Positions of an edge's words in a line, from 0; other words are skipped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Picked {
    pub(crate) source: usize,
    pub(crate) target: usize,
    pub(crate) weight: Option<usize>,
}

impl Picked {
    /// The offsets of source, target and weight in the line whose first word is at `at`, which
    /// moves to the end of the line.
    #[inline]
    pub(super) fn find(self, bytes: &[u8], at: &mut usize) -> Result<[usize; 3], Flaw> {
        let last = self.source.max(self.target).max(self.weight.unwrap_or(0));
        let mut starts = [0; 3];
        for place in 0..=last {
            let length = word(bytes, *at).len();
            if length == 0 {
                return Err(Flaw { at: *at, reason: Reason::Missing });
            }
            for (start, wanted) in
                starts.iter_mut().zip([Some(self.source), Some(self.target), self.weight])
            {
                if wanted == Some(place) {
                    *start = *at;
                }
            }
            *at = next_word(bytes, *at + length, true)?;
        }
        let rest = bytes.get(*at..).unwrap_or_default();
        *at += memchr::memchr(b'\n', rest).unwrap_or(rest.len());
        Ok(starts)
    }
}

struct Edge {
    source: Id,
    target: Id,
    weight: f64,
}

impl Edge {
    /// The edge itself, if both ends are members.
    fn among(self, members: &IdBitmap, bytes: &[u8], begin: usize) -> Result<Self, Flaw> {
        if !members.is_declared(self.source.bits) {
            return Err(Flaw { at: begin, reason: Reason::Undeclared });
        }
        if !members.is_declared(self.target.bits) {
            let at = skip(bytes, begin + word(bytes, begin).len());
            return Err(Flaw { at, reason: Reason::Undeclared });
        }
        Ok(self)
    }
}

impl Lines {
    pub(crate) fn parse(
        &self,
        work: &mut Work<'_>,
        out: &mut Output,
        full: &mut impl FnMut(&mut Output) -> Result<()>,
    ) -> Result<()> {
        if self.words == IdWords::Names {
            return named::parse_lines(self, work, out, full);
        }
        let bytes = work.bytes();
        let mut at = work.from();
        while next_line(bytes, &mut at, b"") {
            if bytes.get(at).is_some_and(|byte| self.comments.contains(byte)) {
                self.comment(bytes, at, work, out, full)?;
                at = line_end(bytes, at);
                continue;
            }
            let begin = at;
            let edge = self.edge(bytes, &mut at, work.from());
            let edge = edge.and_then(|edge| match work.members() {
                Some(members) => edge.among(members, bytes, begin),
                None => Ok(edge),
            });
            match edge {
                Ok(edge) => {
                    out.push(edge.source, edge.target, self.weight.map(|_| edge.weight));
                    work.note_position(at, &mut out.edges.positions);
                    if out.is_full() {
                        full(out)?;
                    }
                }
                Err(flaw) => {
                    work.judge(flaw, out)?;
                    at = line_end(bytes, at);
                }
            }
        }
        Ok(())
    }

    /// Reads a comment, which may name a vertex.
    #[cold]
    fn comment(
        &self,
        bytes: &[u8],
        at: usize,
        work: &mut Work<'_>,
        out: &mut Output,
        full: &mut impl FnMut(&mut Output) -> Result<()>,
    ) -> Result<()> {
        let Some(id) = self.vertex_in(bytes, at, work, out)? else { return Ok(()) };
        let mut at = skip(bytes, at + id);
        let read = self.id(bytes, &mut at).and_then(|id| match bytes.get(at) {
            None | Some(b'\n') => Ok(id),
            Some(_) => Err(Flaw { at, reason: Reason::Extra }),
        });
        match read {
            Ok(id) => out.declare(id),
            Err(flaw) => return work.judge(flaw, out),
        }
        out.tally.listed += 1;
        if out.is_full() { full(out) } else { Ok(()) }
    }

    /// The offset of the id in a comment that names a vertex; `None` for other comments. Rejects a
    /// declaration, which is valid only before the first edge.
    pub(super) fn vertex_in(
        &self,
        bytes: &[u8],
        at: usize,
        work: &mut Work<'_>,
        out: &mut Output,
    ) -> Result<Option<usize>> {
        let comment = bytes.get(at..).unwrap_or_default();
        if Declaration::begins(comment) {
            work.judge(Flaw { at, reason: Reason::Late }, out)?;
        }
        Ok(Declaration::vertex_in(comment).filter(|_| self.lists_vertices))
    }

    /// Checks that no empty column precedes the first word of a line, which is at `at`.
    #[inline]
    pub(super) fn begin(&self, bytes: &[u8], from: usize, at: usize) -> Result<(), Flaw> {
        let before = bytes.get(from..at).unwrap_or_default();
        if before.last().is_none_or(|&byte| byte == b'\n') {
            return Ok(());
        }
        let line = memchr::memrchr(b'\n', before).map_or(from, |end| from + end + 1);
        first_word(bytes, line, self.picked.is_some()).map(|_| ())
    }

    /// Reads an edge and moves to the end of its line.
    #[inline]
    fn edge(&self, bytes: &[u8], at: &mut usize, from: usize) -> Result<Edge, Flaw> {
        self.begin(bytes, from, *at)?;
        if let Some(picked) = self.picked {
            let [mut source, mut target, mut weight] = picked.find(bytes, at)?;
            return Ok(Edge {
                source: self.id(bytes, &mut source)?,
                target: self.id(bytes, &mut target)?,
                weight: picked.weight.map_or(Ok(1.0), |_| read_weight(bytes, &mut weight))?,
            });
        }
        if let Some(letter) = self.letter {
            if bytes.get(*at) != Some(&letter)
                || !bytes.get(*at + 1).is_some_and(|&b| is_separator(b))
            {
                return Err(Flaw { at: *at, reason: Reason::Letter });
            }
            *at = skip(bytes, *at + 1);
        }
        let source = self.id(bytes, at)?;
        let target = self.id(bytes, at)?;
        let mut weight = 1.0;
        for column in 0..self.columns {
            if self.weight == Some(column) {
                weight = read_weight(bytes, at)?;
            } else {
                *at += word(bytes, *at).len();
            }
            *at = next_word(bytes, *at, false)?;
        }
        match bytes.get(*at) {
            None | Some(b'\n') => Ok(Edge { source, target, weight }),
            Some(_) => Err(Flaw { at: *at, reason: Reason::Extra }),
        }
    }

    /// Reads an id and moves to the next word.
    #[inline]
    fn id(&self, bytes: &[u8], at: &mut usize) -> Result<Id, Flaw> {
        let start = *at;
        let id = read_id(bytes, at)?;
        *at = next_word(bytes, *at, false)?;
        match self.ids {
            Some(span) if !span.contains(id) => Err(Flaw { at: start, reason: Reason::Outside }),
            _ => Ok(id),
        }
    }

    /// The text that was expected instead of a flaw.
    pub(crate) fn expected(&self, reason: Reason) -> String {
        match reason {
            Reason::Missing if self.picked.is_some() => "as many words as columns are read".into(),
            Reason::Missing => "two vertex ids on a line".into(),
            Reason::NotAnId if self.words == IdWords::NotNames => {
                "an integer vertex id (a table is read with --format csv, ids that are words with \
                 --ids string)"
                    .into()
            }
            Reason::Extra if self.weight.is_some() => {
                "the end of the line after source, target and weight".into()
            }
            Reason::Extra if self.ids.is_none() => {
                "the end of the line after source and target, as in the lines before".into()
            }
            Reason::Extra => "the end of the line after source and target".into(),
            Reason::Weight if self.ids.is_none() => "a finite number as weight, as in the first \
                                                     line"
                .into(),
            _ => expected(reason, self.ids),
        }
    }
}

/// The text that was expected instead of a flaw, in any shape.
pub(super) fn expected(reason: Reason, ids: Option<Span>) -> String {
    match (reason, ids) {
        (Reason::Missing | Reason::Columns | Reason::Quotes | Reason::Direction, _) => {
            "a vertex id".into()
        }
        (Reason::Empty, _) => {
            "one comma or tab between two words (--format csv or --format tsv reads empty columns)"
                .into()
        }
        (Reason::Undeclared, _) => "a vertex that the .v file has".into(),
        (Reason::Late, _) => {
            "an edge: the declaration of a graph comes before its first edge".into()
        }
        (Reason::NotAnId, _) => "an integer vertex id".into(),
        (Reason::NotText, _) => "a vertex id in UTF-8 (convert the file)".into(),
        (Reason::TooLong, _) => format!("a vertex id of at most {LONGEST_NAME} bytes"),
        (Reason::TooLarge, None) => "a vertex id between -2^63 and 2^64-1".into(),
        (Reason::TooLarge | Reason::Outside, Some(Span { count: 0, .. })) => {
            "no edge, as the header says that there are no vertices".into()
        }
        (Reason::TooLarge | Reason::Outside, ids) => {
            let Span { first, count } = ids.unwrap_or(Span { first: 0, count: 0 });
            let last = first.saturating_add(count).saturating_sub(1);
            format!("a vertex id from {first} to {last}, as the header says")
        }
        (Reason::Extra, _) => "the end of the line".into(),
        (Reason::Weight, _) => "a finite number as weight".into(),
        (Reason::Rounded, _) => EXACT_WEIGHT.into(),
        (Reason::Letter, _) => "a line that begins with `a` (an arc) or `c` (a comment)".into(),
        (Reason::Row, ids) => {
            let count = counted(ids.map_or(0, |ids| ids.count), "vertex");
            format!("the end of the file after the lists of {count}, as the header says")
        }
    }
}

/// Moves to the next word outside a comment, over blank lines and lines that begin with one of the
/// bytes `comments`. False at the end.
#[inline]
fn next_line(bytes: &[u8], at: &mut usize, comments: &[u8]) -> bool {
    loop {
        *at = skip(bytes, *at);
        match bytes.get(*at) {
            None => return false,
            Some(b'\n') => *at += 1,
            Some(byte) if comments.contains(byte) => *at = line_end(bytes, *at),
            Some(_) => return true,
        }
    }
}

/// The start of the next line.
#[inline]
pub(super) fn line_end(bytes: &[u8], at: usize) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    memchr::memchr(b'\n', rest).map_or(bytes.len(), |end| at + end + 1)
}

/// Reads lines of one id each, as vertices that may have no edges.
pub(super) fn parse_vertices(
    work: &mut Work<'_>,
    out: &mut Output,
    full: &mut impl FnMut(&mut Output) -> Result<()>,
) -> Result<()> {
    let bytes = work.bytes();
    let mut at = work.from();
    while next_line(bytes, &mut at, b"#") {
        // The words after the id are properties of the vertex, which are not stored.
        match read_id(bytes, &mut at) {
            Ok(id) => {
                out.declare(id);
                out.tally.listed += 1;
                if out.is_full() {
                    full(out)?;
                }
            }
            Err(flaw) => work.judge(flaw, out)?,
        }
        at = line_end(bytes, at);
    }
    Ok(())
}
