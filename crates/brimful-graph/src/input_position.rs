//! Input positions of edges, by which users find the edges that an import left out.
//!
//! An *input position* is the number of a line, record or row, counted from 1 through all files of
//! the input. This single number orders the edges of several files, and an edge carries nothing
//! else. Invariant: the position of an edge depends on the input alone, never on chunks or threads.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The position of an edge if the input has no positions.
pub const UNKNOWN: u64 = u64::MAX;

/// An edge and its position. The least of several comes first in the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct PositionedEdge {
    /// The position; never [`UNKNOWN`].
    pub position: u64,
    /// The ends, as ids of the caller's choice.
    pub ends: (u64, u64),
}

impl PositionedEdge {
    /// The edge between `ends`; `None` if its position is unknown.
    #[inline]
    pub fn new(position: u64, ends: (u64, u64)) -> Option<Self> {
        (position != UNKNOWN).then_some(Self { position, ends })
    }

    /// The earlier of two edges.
    #[inline]
    pub fn earlier(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).min()
    }
}

/// A part of an input, usually a file, and the number of its positions.
pub type InputPart = (PathBuf, u64);

/// The file of a position, and the position within it; `None` beyond the last position.
pub fn locate(parts: &[InputPart], mut position: u64) -> Option<InputPart> {
    for (path, count) in parts {
        if position <= *count {
            return Some((path.clone(), position));
        }
        position -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_their_files() {
        let parts = [("a".into(), 3), ("empty".into(), 0), ("b".into(), 2)];
        let found = |position| {
            locate(&parts, position).map(|(path, line)| (path.display().to_string(), line))
        };
        assert_eq!(found(1), Some(("a".into(), 1)));
        assert_eq!(found(3), Some(("a".into(), 3)));
        assert_eq!(found(4), Some(("b".into(), 1)));
        assert_eq!(found(5), Some(("b".into(), 2)));
        assert_eq!(found(6), None);
    }

    #[test]
    fn the_earlier_is_the_one_that_is_known() {
        let at = |position| PositionedEdge::new(position, (1, 2));
        assert_eq!(PositionedEdge::earlier(at(7), at(5)), at(5));
        assert_eq!(PositionedEdge::earlier(at(UNKNOWN), at(9)), at(9));
        assert_eq!(PositionedEdge::earlier(None, None), None);
    }
}
