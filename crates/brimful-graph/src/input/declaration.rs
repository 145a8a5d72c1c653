//! The declaration of an exported graph: the facts that a list of edges alone does not state.
//!
//! An edge list has it as the comment line `# brimful: directed=no weighted=yes ids=int vertices=5
//! edges=4 isolated=1`. Parquet and Arrow files have it, without `# brimful: `, as the value of the
//! key `brimful` in their schema. Only this module writes and reads it. Vertices without edges
//! follow one by one: in text as comment lines `# vertex ID`, in tables as rows without a target.
//! If ids are consecutive, `first=ID` replaces them all.
//!
//! Invariant: a declaration that is read is complete; the reader of the file compares its counts.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::input::text::Span;

/// The beginning of the comment line of a declaration.
const COMMENT: &str = "# brimful: ";
/// The beginning of a comment line that names a vertex without edges.
const VERTEX: &str = "# vertex ";

/// The key of the declaration in the metadata of a schema.
pub const KEY: &str = "brimful";

/// Facts about a graph that its edges do not state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Declaration {
    /// True if edges have a direction.
    pub directed: bool,
    /// True if edges have weights, in the column after the target or in the column `weight`.
    pub weighted: bool,
    /// True if ids are strings.
    pub names: bool,
    /// Number of vertices.
    pub vertices: u64,
    /// Number of edges; an undirected one counts once.
    pub edges: u64,
    /// Number of vertices without edges.
    pub isolated: u64,
    /// The least id if ids are consecutive integers from 0 or above. Then no vertex is listed.
    pub first: Option<u64>,
}

impl Declaration {
    /// Number of vertices that are listed one by one.
    pub fn listed(&self) -> u64 {
        if self.first.is_some() { 0 } else { self.isolated }
    }

    /// The range of all ids; `None` unless they are consecutive.
    pub(crate) fn span(&self) -> Option<Span> {
        self.first.map(|first| Span { first, count: self.vertices })
    }

    /// The comment line of an edge list.
    pub(crate) fn comment(&self) -> String {
        format!("{COMMENT}{self}\n")
    }

    /// Appends the comment line of a vertex without edges, up to its id.
    pub(crate) fn begin_vertex(text: &mut String) {
        text.push_str(VERTEX);
    }

    /// True if the text begins with a declaration.
    pub(crate) fn begins(text: &[u8]) -> bool {
        text.starts_with(COMMENT.as_bytes())
    }

    /// The declaration in a comment line; `None` if it is another kind of comment.
    pub(crate) fn of_comment(line: &[u8]) -> Option<std::result::Result<Self, Damage>> {
        let rest = line.strip_prefix(COMMENT.trim_end().as_bytes())?;
        let begin = line.len() - rest.len();
        let read =
            std::str::from_utf8(rest).map_err(|_| Damage::new(0, "text")).and_then(Self::parse);
        Some(read.map_err(|damage| Damage { at: begin + damage.at, ..damage }))
    }

    /// The offset of the id in a comment line that names a vertex; `None` for another comment.
    #[inline]
    pub(crate) fn vertex_in(comment: &[u8]) -> Option<usize> {
        comment.starts_with(VERTEX.as_bytes()).then_some(VERTEX.len())
    }

    /// Parses the output of [`fmt::Display`].
    ///
    /// # Errors
    /// [`Damage`] with the offset of the first wrong word.
    pub fn parse(text: &str) -> std::result::Result<Self, Damage> {
        let mut words = Words { text, at: 0 };
        let declaration = Self {
            directed: words.choice("directed", "no", "yes")?,
            weighted: words.choice("weighted", "no", "yes")?,
            names: words.choice("ids", "int", "string")?,
            vertices: words.count("vertices")?,
            edges: words.count("edges")?,
            isolated: words.count("isolated")?,
            first: words.last_count("first")?,
        };
        if declaration.isolated > declaration.vertices {
            return Err(Damage::new(0, "no more isolated vertices than vertices"));
        }
        match declaration.first {
            Some(first) if declaration.names || !is_span(first, declaration.vertices) => {
                Err(Damage::new(0, "integer ids below 2^63 after `first`"))
            }
            _ => Ok(declaration),
        }
    }

    /// The declaration of two files that form one graph; `None` if their kinds differ or their
    /// declared ids leave a gap. Unless all ids are declared, only the edges show the joint number
    /// of vertices.
    pub fn join(&self, other: &Self) -> Option<Self> {
        let kind = |it: &Self| (it.directed, it.weighted, it.names, it.first.is_some());
        let (a, b) = if self.first <= other.first { (self, other) } else { (other, self) };
        let ends = a.first.unwrap_or(0) + a.vertices;
        if kind(a) != kind(b) || b.first.is_some_and(|first| first > ends) {
            return None;
        }
        let last = ends.max(b.first.unwrap_or(0) + b.vertices);
        Some(Self {
            vertices: last - a.first.unwrap_or(0),
            edges: a.edges.checked_add(b.edges)?,
            isolated: a.isolated.checked_add(b.isolated)?,
            ..*a
        })
    }
}

/// True if `count` is at least 1 and `count` ids from `first` on are all below 2^63.
pub(crate) fn is_span(first: u64, count: u64) -> bool {
    count > 0 && first.checked_add(count).is_some_and(|end| end <= 1 << 63)
}

impl fmt::Display for Declaration {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let yes = |is: bool| if is { "yes" } else { "no" };
        let ids = if self.names { "string" } else { "int" };
        write!(
            out,
            "directed={} weighted={} ids={ids} vertices={} edges={} isolated={}",
            yes(self.directed),
            yes(self.weighted),
            self.vertices,
            self.edges,
            self.isolated
        )?;
        self.first.map_or(Ok(()), |first| write!(out, " first={first}"))
    }
}

/// A malformed declaration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    /// Offset of the offending word.
    pub at: usize,
    /// The text expected there.
    pub expected: String,
}

impl Damage {
    fn new(at: usize, expected: impl Into<String>) -> Self {
        Self { at, expected: expected.into() }
    }
}

/// The words `key=value` of a declaration.
struct Words<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Words<'t> {
    /// The next word, with its offset; empty at the end.
    fn next(&mut self) -> (usize, &'t str) {
        let rest = self.text.get(self.at..).unwrap_or_default();
        let word = rest.split_ascii_whitespace().next().unwrap_or_default();
        let begin = self.at + rest.find(word).unwrap_or(0);
        self.at = begin + word.len();
        (begin, word)
    }

    fn choice(&mut self, key: &str, no: &str, yes: &str) -> std::result::Result<bool, Damage> {
        let (at, word) = self.next();
        match word.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
            Some(value) if value == no => Ok(false),
            Some(value) if value == yes => Ok(true),
            _ => Err(Damage::new(at, format!("`{key}={no}` or `{key}={yes}`"))),
        }
    }

    fn count(&mut self, key: &str) -> std::result::Result<u64, Damage> {
        let (at, word) = self.next();
        number(key, word).ok_or_else(|| Damage::new(at, format!("`{key}=` and a count")))
    }

    fn last_count(&mut self, key: &str) -> std::result::Result<Option<u64>, Damage> {
        let (at, word) = self.next();
        let count = match word {
            "" => None,
            _ => Some(
                number(key, word)
                    .ok_or_else(|| Damage::new(at, format!("`{key}=` and an id, or the end")))?,
            ),
        };
        match self.next() {
            (_, "") => Ok(count),
            (at, _) => Err(Damage::new(at, "the end of the declaration")),
        }
    }
}

fn number(key: &str, word: &str) -> Option<u64> {
    let digits = word.strip_prefix(key)?.strip_prefix('=')?;
    // `parse` alone would accept a sign.
    if digits.starts_with('+') { None } else { digits.parse().ok() }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOME: Declaration = Declaration {
        directed: false,
        weighted: true,
        names: false,
        vertices: 5,
        edges: 4,
        isolated: 1,
        first: None,
    };

    #[test]
    fn what_is_written_is_read() {
        for first in [None, Some(0), Some(1 << 62)] {
            for names in [false, first.is_none()] {
                let one = Declaration { first, names, ..SOME };
                assert_eq!(Declaration::parse(&one.to_string()), Ok(one));
                let line = one.comment();
                assert_eq!(Declaration::of_comment(line.trim_end().as_bytes()), Some(Ok(one)));
            }
        }
        assert_eq!(Declaration::of_comment(b"# a comment"), None);
        assert_eq!(Declaration::of_comment(b"# brimfully: a"), None);
    }

    #[test]
    fn damage_has_its_place() {
        let text = SOME.to_string();
        // Try every truncation and every changed letter.
        for (at, _) in text.match_indices(' ') {
            assert!(Declaration::parse(&text[..at]).is_err(), "{}", &text[..at]);
            assert!(Declaration::parse(&text[at + 1..]).is_err());
        }
        for at in 0..text.len() {
            let mut other = text.clone().into_bytes();
            other[at] = b'x';
            assert!(Declaration::parse(&String::from_utf8(other).unwrap()).is_err(), "{at}");
        }
        let line = b"# brimful: directed=maybe";
        let damage = Declaration::of_comment(line).unwrap().unwrap_err();
        assert_eq!((damage.at, damage.expected.as_str()), (11, "`directed=no` or `directed=yes`"));
        assert!(Declaration::parse(&Declaration { isolated: 6, ..SOME }.to_string()).is_err());
        assert!(Declaration::parse(&format!("{SOME} first=+1")).is_err());
        assert!(Declaration::parse(&format!("{SOME} first={}", u64::MAX)).is_err());
        assert!(Declaration::parse(&format!("{SOME} first=1 more")).is_err());
    }

    #[test]
    fn parts_of_a_graph_are_declared_together() {
        let apart = Declaration { vertices: 9, isolated: 3, ..SOME };
        assert_eq!(SOME.join(&apart).map(|both| (both.edges, both.listed())), Some((8, 4)));
        assert_eq!(SOME.join(&Declaration { directed: true, ..SOME }), None);
        let [low, high] = [0, 4].map(|first| Declaration { first: Some(first), ..SOME });
        assert_eq!(high.join(&low).map(|both| (both.first, both.vertices)), Some((Some(0), 9)));
        assert_eq!(low.join(&Declaration { first: Some(6), ..SOME }), None);
    }
}
