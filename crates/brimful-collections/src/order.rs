//! The order and the batches in which a collection is streamed.

use std::ops::Range;

use crate::error::{Error, Result};

/// The maximum number of ids sorted at once: the sort takes less than a second, during which Ctrl-C
/// has no effect.
pub(crate) const MAX_IDS: usize = 1 << 22;

/// The order of [`crate::DiskBox::process`]. Batches begin in this order, but several are processed
/// at the same time.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Order {
    /// Ids from the first to the last.
    #[default]
    Ascending,
    /// Batches from the last ids to the first; within a batch ids ascend.
    Descending,
    /// These ranges of ids, which share no id, one after the other.
    Ranges(Vec<Range<u64>>),
    /// These ids, in this order, each once.
    Ids(Vec<u64>),
}

/// The ids of one batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ids {
    /// Consecutive ids.
    Range(Range<u64>),
    /// Any ids.
    List(Vec<u64>),
}

impl Ids {
    /// Number of ids.
    pub fn len(&self) -> usize {
        match self {
            Self::Range(range) => range.end.saturating_sub(range.start) as usize,
            Self::List(ids) => ids.len(),
        }
    }

    /// True if there is no id.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All ids in order.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let (range, list) = match self {
            Self::Range(range) => (range.clone(), [].as_slice()),
            Self::List(ids) => (0..0, ids.as_slice()),
        };
        range.chain(list.iter().copied())
    }
}

impl Order {
    /// The largest id in ranges or lists of ids; `None` if the order names no ids.
    pub(crate) fn largest(&self) -> Option<u64> {
        match self {
            Self::Ascending | Self::Descending => None,
            Self::Ranges(ranges) => {
                ranges.iter().filter(|r| !r.is_empty()).map(|r| r.end - 1).max()
            }
            Self::Ids(ids) => ids.iter().copied().max(),
        }
    }

    /// Refuses an id that the order names twice. The second copy of its record could be read before
    /// the first is written back, and would undo the change.
    pub(crate) fn require_once(&self) -> Result<()> {
        let twice = match self {
            Self::Ascending | Self::Descending => None,
            Self::Ids(ids) if ids.is_sorted_by(|a, b| a < b) => None,
            Self::Ids(ids) => {
                let mut sorted = ids.clone();
                sorted.sort_unstable();
                sorted.iter().zip(sorted.iter().skip(1)).find(|(a, b)| a == b).map(|(id, _)| *id)
            }
            Self::Ranges(ranges) => {
                let mut sorted: Vec<_> = ranges.iter().filter(|range| !range.is_empty()).collect();
                sorted.sort_unstable_by_key(|range| range.start);
                let mut pairs = sorted.iter().zip(sorted.iter().skip(1));
                pairs.find(|(a, b)| b.start < a.end).map(|(_, b)| b.start)
            }
        };
        twice.map_or(Ok(()), |id| {
            Err(Error::Usage(format!("the order names record {id} twice; name it once")))
        })
    }

    /// The batches of a collection of `len` records: at most `most` ids each. Ranges are cut at
    /// multiples of `most`.
    pub(crate) fn batches(&self, len: u64, most: usize) -> Vec<Ids> {
        let whole = 0..len;
        let ranges = match self {
            Self::Ids(ids) => return ids.chunks(most).map(|ids| Ids::List(ids.to_vec())).collect(),
            Self::Ranges(ranges) => ranges.as_slice(),
            Self::Ascending | Self::Descending => std::slice::from_ref(&whole),
        };
        let mut batches = Vec::new();
        for range in ranges {
            let mut at = range.start;
            while at < range.end {
                let end = (at / most as u64 + 1).saturating_mul(most as u64).min(range.end);
                batches.push(Ids::Range(at..end));
                at = end;
            }
        }
        if *self == Self::Descending {
            batches.reverse();
        }
        batches
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_cover_the_order_once() {
        let ids = |order: Order| -> Vec<u64> {
            order.batches(10, 4).iter().flat_map(|batch| batch.iter().collect::<Vec<_>>()).collect()
        };
        assert_eq!(ids(Order::Ascending), (0..10).collect::<Vec<_>>());
        assert_eq!(ids(Order::Descending), [8, 9, 4, 5, 6, 7, 0, 1, 2, 3]);
        assert_eq!(ids(Order::Ranges(vec![7..10, 1..3])), [7, 8, 9, 1, 2]);
        assert_eq!(ids(Order::Ids(vec![5, 3, 0])), [5, 3, 0]);
        assert_eq!(Order::Ascending.batches(10, 4).len(), 3);
    }

    #[test]
    fn an_id_is_named_once() {
        for order in [
            Order::Descending,
            Order::Ids(vec![5, 3, 0]),
            Order::Ids(vec![1, 2]),
            Order::Ranges(vec![7..10, 1..7, 5..5]),
        ] {
            order.require_once().unwrap();
        }
        for order in [Order::Ids(vec![5, 3, 5]), Order::Ranges(vec![5..10, 1..6])] {
            let error = order.require_once().unwrap_err();
            assert_eq!(error.to_string(), "the order names record 5 twice; name it once");
        }
    }
}
