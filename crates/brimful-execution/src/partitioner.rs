//! The assignment of vertices to partitions, and of partitions to workers.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use brimful_store::checksum;
use brimful_vertices::Id;

use crate::error::{Result, no_element};

/// The assignment of vertices to partitions.
#[derive(Debug, Clone)]
pub enum Partitioner<I> {
    /// By a hash of the id's bytes, the same on every machine.
    Hash,
    /// By ranges of ids: partition i has the ids from bound i-1 up to, but without, bound i. There
    /// is one bound fewer than there are partitions.
    Range(Vec<I>),
}

impl<I: Id> Partitioner<I> {
    /// Ranges of about equally many edges: `degrees` are ids in ascending order, each with its
    /// number of edges, and `edges` is the sum. A vertex counts as one more edge.
    ///
    /// # Errors
    /// Errors of `degrees`.
    pub fn balanced(
        degrees: impl Iterator<Item = Result<(I, u64)>>,
        (vertices, edges): (u64, u64),
        partitions: usize,
    ) -> Result<Self> {
        let (mut bounds, mut before) = (Vec::new(), 0_u128);
        let all = u128::from(vertices) + u128::from(edges);
        for vertex in degrees {
            let (id, degree) = vertex?;
            let next = (bounds.len() + 1) as u128;
            if next < partitions as u128 && before * partitions as u128 >= all * next {
                bounds.push(id);
            }
            before += u128::from(degree) + 1;
        }
        Ok(Self::Range(bounds))
    }

    /// The partition of the vertex `id`; `scratch` is a buffer for its bytes.
    #[inline]
    pub fn partition(&self, id: &I, scratch: &mut Vec<u8>, partitions: usize) -> usize {
        match self {
            // The high half of the product of hash and number needs no division.
            Self::Hash => {
                scratch.clear();
                id.write(scratch);
                ((u128::from(checksum(scratch)) * partitions as u128) >> 64) as usize
            }
            Self::Range(bounds) => bounds.partition_point(|bound| bound <= id),
        }
    }

    /// The number of the first id of a partition; 0 if ids have none, or a hash assigns them.
    pub(crate) fn first(&self, partition: usize) -> u64 {
        let Self::Range(bounds) = self else { return 0 };
        let bound = partition.checked_sub(1).and_then(|before| bounds.get(before));
        bound.and_then(I::number).unwrap_or(0)
    }
}

impl Partitioner<u64> {
    /// The vertices among the first `count` that belong to some consecutive partitions; `None` if a
    /// hash assigns vertices.
    pub(crate) fn vertices(&self, partitions: Range<usize>, count: u64) -> Option<Range<u64>> {
        let Self::Range(bounds) = self else { return None };
        let begin = |partition: usize| match partition.checked_sub(1) {
            None => 0,
            Some(bound) => bounds.get(bound).copied().unwrap_or(count),
        };
        Some(begin(partitions.start)..begin(partitions.end))
    }
}

/// The workers of the partitions of an execution, and the slots of their mailboxes there:
/// their indexes among the mailboxes of the worker.
#[derive(Debug)]
pub(crate) struct Owners {
    /// The mailboxes that take in the signals to each partition of the execution.
    mailboxes: Vec<(usize, usize)>,
    /// The partitions of this process, which begin at partition `first`.
    own_slots: Vec<(usize, usize)>,
    first: usize,
}

impl Owners {
    /// The owners of the partitions of an execution in one process.
    pub(crate) fn new(own_slots: Vec<(usize, usize)>) -> Self {
        Self { mailboxes: own_slots.clone(), own_slots, first: 0 }
    }

    /// The owners of the partitions of this process, the first of which is `first`, and of relays
    /// for `partitions`. Workers have their relays after their partitions.
    pub(crate) fn with_relays(
        own_slots: Vec<(usize, usize)>,
        first: usize,
        (partitions, workers): (usize, usize),
    ) -> Self {
        let mut slots = vec![0; workers];
        for (worker, _) in &own_slots {
            slots[*worker] += 1;
        }
        let relay = |partition: usize| {
            let worker = partition % workers;
            slots[worker] += 1;
            (worker, slots[worker] - 1)
        };
        Self { mailboxes: (0..partitions).map(relay).collect(), own_slots, first }
    }

    /// Partitions to which signals may go.
    pub(crate) fn count(&self) -> usize {
        self.mailboxes.len()
    }

    /// The partition of each mailbox of a worker.
    pub(crate) fn partitions_of(&self, worker: usize) -> impl Iterator<Item = usize> {
        let own = self.own_slots.iter().zip(self.first..);
        let mut slots: BTreeMap<usize, usize> = BTreeMap::new();
        for ((owner, slot), partition) in own.chain(self.mailboxes.iter().zip(0..)) {
            if *owner == worker {
                slots.insert(*slot, partition);
            }
        }
        slots.into_values()
    }

    /// Worker and slot of the mailboxes for signals to each partition.
    pub(crate) fn mailboxes(&self) -> &[(usize, usize)] {
        &self.mailboxes
    }

    /// Worker and slot of the mailbox for signals to a partition.
    #[inline]
    pub(crate) fn mailbox(&self, partition: usize) -> Result<(usize, usize)> {
        let owner = self.mailboxes.get(partition).copied();
        owner.ok_or_else(|| no_element(partition, self.mailboxes.len(), "owner of partition"))
    }

    /// Worker and slot of a partition of this process.
    #[inline]
    pub(crate) fn own_slot(&self, partition: usize) -> Result<(usize, usize)> {
        let own =
            partition.checked_sub(self.first).and_then(|own| self.own_slots.get(own)).copied();
        own.ok_or_else(|| no_element(partition, self.own_slots.len(), "partition of this process"))
    }
}

/// The worker of each partition, and its slot there. Workers get about equally many edges: the
/// heaviest partition first, each to the worker with the fewest.
pub(crate) fn assign(edges: &[u64], workers: usize) -> Vec<(usize, usize)> {
    let mut heaviest: Vec<usize> = (0..edges.len()).collect();
    heaviest.sort_by_key(|&partition| Reverse(edges[partition]));
    let (mut load, mut slots) = (vec![(0_u64, 0_usize); workers.max(1)], vec![(0, 0); edges.len()]);
    for partition in heaviest {
        let worker = (0..load.len()).min_by_key(|&worker| load[worker]).unwrap_or(0);
        slots[partition] = (worker, load[worker].1);
        load[worker].0 += edges[partition];
        load[worker].1 += 1;
    }
    slots
}

#[cfg(test)]
mod tests {
    use super::*;

    fn partition(partitioner: &Partitioner<u64>, id: u64, partitions: usize) -> usize {
        partitioner.partition(&id, &mut Vec::new(), partitions)
    }

    #[test]
    fn hashes_spread_and_ranges_follow_their_bounds() {
        let mut counts = [0; 7];
        (0..7000).for_each(|id| counts[partition(&Partitioner::Hash, id, 7)] += 1);
        assert!(counts.iter().all(|count| (850..1150).contains(count)), "{counts:?}");
        let ranges = Partitioner::Range(vec![10, 20]);
        let of = [0, 9, 10, 19, 20, 99].map(|id| partition(&ranges, id, 3));
        assert_eq!(of, [0, 0, 1, 1, 2, 2]);
    }

    #[test]
    fn balanced_ranges_have_as_many_edges() {
        // One vertex has half of all edges.
        let degree = |id: u64| if id == 0 { 1000 } else { 1 };
        let edges: u64 = (0..1001).map(degree).sum();
        let degrees = (0..1001).map(|id| Ok((id, degree(id))));
        let ranges = Partitioner::balanced(degrees, (1001, edges), 3).unwrap();
        let mut loads = [0; 3];
        (0..1001).for_each(|id| loads[partition(&ranges, id, 3)] += degree(id) + 1);
        assert!(loads.iter().all(|load| (900..1110).contains(load)), "{loads:?}");
        let none = Partitioner::<u64>::balanced([].into_iter(), (0, 0), 3).unwrap();
        assert_eq!(partition(&none, 5, 3), 0);
    }

    #[test]
    fn mailboxes_know_their_partitions() {
        // Two workers: partitions 3 to 5 are here, and relays for all eight.
        let own_slots = vec![(0, 0), (1, 0), (0, 1)];
        let owners = Owners::with_relays(own_slots.clone(), 3, (8, 2));
        let of = |owners: &Owners, worker| owners.partitions_of(worker).collect::<Vec<_>>();
        assert_eq!(of(&owners, 0), [3, 5, 0, 2, 4, 6]);
        assert_eq!(of(&owners, 1), [4, 1, 3, 5, 7]);
        let alone = Owners::new(own_slots);
        assert_eq!((of(&alone, 0), of(&alone, 1)), (vec![0, 2], vec![1]));
        let ranges = Partitioner::Range(vec![10_u64, 20]);
        assert_eq!([0, 1, 2, 3].map(|partition| ranges.first(partition)), [0, 10, 20, 0]);
        assert_eq!(Partitioner::<u64>::Hash.first(1), 0);
    }

    #[test]
    fn the_heaviest_partitions_go_to_different_workers() {
        let slots = assign(&[5, 90, 4, 100, 3], 2);
        let load = |worker| {
            (0..5).filter(|&p| slots[p].0 == worker).map(|p| [5, 90, 4, 100, 3][p]).sum::<u64>()
        };
        assert_eq!((load(slots[3].0), load(1 - slots[3].0)), (100, 102));
        let mut seen = slots.clone();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
        assert!(assign(&[0, 0, 0], 4).iter().all(|(_, slot)| *slot < 3));
    }
}
