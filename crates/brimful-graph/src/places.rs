//! Where edges stand in an input, so that what is left out can be found there.
//!
//! A *place* is the number of a line, a record or a row, counted from 1 through all files of the input:
//! one number orders the edges of several files, and is all that is carried with an edge. Invariant: the
//! place of an edge depends on the input alone, never on chunks or threads.

use std::path::PathBuf;

/// The place of an edge of an input that does not say.
pub const UNKNOWN: u64 = u64::MAX;

/// An edge and its place; the least of several is the one that comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Placed {
    /// The place, not [`UNKNOWN`].
    pub place: u64,
    /// The ends, as whoever found it calls them.
    pub ends: (u64, u64),
}

impl Placed {
    /// The edge between `ends`; `None` if nobody knows where it is.
    #[inline]
    pub fn new(place: u64, ends: (u64, u64)) -> Option<Self> {
        (place != UNKNOWN).then_some(Self { place, ends })
    }

    /// The earlier of two.
    #[inline]
    pub fn earlier(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        one.into_iter().chain(other).min()
    }
}

/// A file, or whatever has places of its own, and how many.
pub type InputPart = (PathBuf, u64);

/// The file of a place, and the number within it; `None` if there are fewer.
pub fn locate(parts: &[InputPart], mut place: u64) -> Option<InputPart> {
    for (path, count) in parts {
        if place <= *count {
            return Some((path.clone(), place));
        }
        place -= count;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_found_in_their_files() {
        let parts = [("a".into(), 3), ("empty".into(), 0), ("b".into(), 2)];
        let found = |place| locate(&parts, place).map(|(path, line)| (path.display().to_string(), line));
        assert_eq!(found(1), Some(("a".into(), 1)));
        assert_eq!(found(3), Some(("a".into(), 3)));
        assert_eq!(found(4), Some(("b".into(), 1)));
        assert_eq!(found(5), Some(("b".into(), 2)));
        assert_eq!(found(6), None);
    }

    #[test]
    fn the_earlier_is_the_one_that_is_known() {
        let at = |place| Placed::new(place, (1, 2));
        assert_eq!(Placed::earlier(at(7), at(5)), at(5));
        assert_eq!(Placed::earlier(at(UNKNOWN), at(9)), at(9));
        assert_eq!(Placed::earlier(None, None), None);
    }
}
