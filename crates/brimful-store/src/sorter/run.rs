//! A run of the sorter: records split into parts, and which of them a piece needs.
//!
//! Invariant: what a run says of its parts holds for every record in them.

use crate::sorter::Record;

/// Where records are.
pub(super) enum Home<R> {
    Memory(Vec<R>),
    File { offset: u64 },
}

/// Records in parts: none of a part is greater than any of the next.
pub(super) struct Run<R> {
    pub(super) home: Home<R>,
    /// Where each part begins, and where the last one ends.
    pub(super) starts: Vec<u64>,
    /// The least record of each part, and the greatest.
    pub(super) least: Vec<R>,
    pub(super) greatest: Vec<R>,
    /// Parts that differ in a radix bit from here on were told apart by the first digit.
    pub(super) shift: u32,
}

impl<R: Record> Run<R> {
    pub(super) fn len(&self) -> u64 {
        self.starts.last().copied().unwrap_or(0)
    }

    /// The range of positions of all parts with records in [low, high), and whether others are in it.
    pub(super) fn bracket(&self, low: Option<R>, high: Option<R>) -> (u64, u64, bool) {
        let from = low.map_or(0, |low| self.greatest.partition_point(|g| *g < low));
        let to = high.map_or(self.least.len(), |high| self.least.partition_point(|l| *l < high)).max(from);
        let ends = self.least.get(from).zip(to.checked_sub(1).and_then(|last| self.greatest.get(last)));
        let others = |(least, greatest): (&R, &R)| {
            low.is_some_and(|low| *least < low) || high.is_some_and(|high| *greatest >= high)
        };
        (self.starts[from], self.starts[to], from < to && ends.is_some_and(others))
    }

    /// A range of positions known to hold nothing but `value`: the parts of which it is the least,
    /// but for the last of them.
    pub(super) fn repeats(&self, value: R) -> (u64, u64) {
        let first = self.least.partition_point(|l| *l < value);
        let last = self.least.partition_point(|l| *l <= value).saturating_sub(1);
        (self.starts[first], self.starts[first.max(last)])
    }
}

/// The least and the greatest record of each part.
pub(super) fn ends_of<R: Record>(records: &[R], starts: &[u64]) -> (Vec<R>, Vec<R>) {
    let parts = || starts.windows(2).map(|part| &records[part[0] as usize..part[1] as usize]);
    let least = parts().filter_map(|part| part.iter().min()).copied();
    let greatest = parts().filter_map(|part| part.iter().max()).copied();
    (least.collect(), greatest.collect())
}
