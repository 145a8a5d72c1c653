//! The map of the slots of a page file.
//!
//! A slot holds one page. Invariant: a slot that the durable root names is never allocated: it is
//! *retired* when its page moves, and free only after the next root is durable.

/// A set of slots.
#[derive(Debug, Default)]
pub(super) struct SlotSet {
    bits: Vec<u64>,
}

impl SlotSet {
    /// Adds a slot; false if the set has it.
    pub(super) fn insert(&mut self, slot: u64) -> bool {
        let (word, bit) = word_and_bit(slot);
        if self.bits.len() <= word {
            self.bits.resize(word + 1, 0);
        }
        let Some(bits) = self.bits.get_mut(word) else {
            return false;
        };
        let is_new = *bits & bit == 0;
        *bits |= bit;
        is_new
    }

    /// The slots in ascending order.
    pub(super) fn iter(&self) -> impl Iterator<Item = u64> {
        let words = self.bits.iter().zip((0..).step_by(64)).filter(|(bits, _)| **bits != 0);
        words.flat_map(|(bits, first)| {
            (0..64).filter(move |at| bits & (1 << at) != 0).map(move |at| first + at)
        })
    }

    fn memory_bytes(&self) -> u64 {
        self.bits.capacity() as u64 * 8
    }
}

/// The map of slots; unused slots below the end of the file are free.
#[derive(Debug, Default)]
pub(super) struct Slots {
    /// Slots in use, or retired.
    taken: SlotSet,
    taken_count: u64,
    /// All slots below this one are taken.
    cursor: u64,
    /// Slots whose pages moved since the last sync began.
    retired: SlotSet,
}

impl Slots {
    /// Marks a slot as in use while a file is opened; false if it was already in use.
    pub(super) fn claim(&mut self, slot: u64) -> bool {
        let is_new = self.taken.insert(slot);
        self.taken_count += u64::from(is_new);
        is_new
    }

    /// Allocates the first free slot, extending the file if there is none.
    pub(super) fn allocate(&mut self) -> u64 {
        let mut word = (self.cursor / 64) as usize;
        while self.taken.bits.get(word) == Some(&u64::MAX) {
            word += 1;
        }
        let bit = self.taken.bits.get(word).map_or(0, |bits| bits.trailing_ones());
        let slot = word as u64 * 64 + u64::from(bit);
        self.cursor = slot;
        self.claim(slot);
        slot
    }

    /// Allocates `count` consecutive slots.
    pub(super) fn allocate_run(&mut self, count: u64) -> u64 {
        let end = self.end();
        // The slots from `start` to `slot` are free.
        let (mut start, mut slot) = (self.cursor, self.cursor);
        while slot - start < count && slot < end {
            slot += 1;
            if self.is_taken(slot - 1) {
                start = slot;
            }
        }
        (start..start + count).for_each(|slot| {
            self.claim(slot);
        });
        start
    }

    /// Frees a slot that the durable root does not name.
    pub(super) fn free(&mut self, slot: u64) {
        let (word, bit) = word_and_bit(slot);
        if let Some(bits) = self.taken.bits.get_mut(word).filter(|bits| **bits & bit != 0) {
            *bits &= !bit;
            self.taken_count -= 1;
            self.cursor = self.cursor.min(slot);
        }
    }

    /// Retires a slot that the durable root may name, until the next root is durable.
    pub(super) fn retire(&mut self, slot: u64) {
        self.retired.insert(slot);
    }

    /// The slots retired so far; the caller frees them once a root without them is durable.
    pub(super) fn take_retired(&mut self) -> SlotSet {
        std::mem::take(&mut self.retired)
    }

    /// The end of the last slot taken.
    pub(super) fn end(&self) -> u64 {
        let last = self.taken.bits.iter().rposition(|&bits| bits != 0);
        last.map_or(0, |word| {
            word as u64 * 64 + 64
                - u64::from(self.taken.bits.get(word).map_or(0, |b| b.leading_zeros()))
        })
    }

    /// Number of slots in use or retired.
    pub(super) fn taken_count(&self) -> u64 {
        self.taken_count
    }

    /// Bytes of memory used.
    pub(super) fn memory_bytes(&self) -> u64 {
        self.taken.memory_bytes() + self.retired.memory_bytes()
    }

    fn is_taken(&self, slot: u64) -> bool {
        let (word, bit) = word_and_bit(slot);
        self.taken.bits.get(word).is_some_and(|bits| bits & bit != 0)
    }
}

/// The index of a slot's word in the map, and the mask of its bit.
fn word_and_bit(slot: u64) -> (usize, u64) {
    ((slot / 64) as usize, 1 << (slot % 64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_given_out_lowest_first_and_never_twice() {
        let mut slots = Slots::default();
        assert_eq!(
            (0..130).map(|_| slots.allocate()).collect::<Vec<_>>(),
            (0..130).collect::<Vec<_>>()
        );
        slots.free(70);
        slots.free(3);
        assert_eq!((slots.allocate(), slots.allocate(), slots.allocate()), (3, 70, 130));
        assert_eq!((slots.end(), slots.taken_count()), (131, 131));
    }

    #[test]
    fn runs_are_contiguous_and_fill_gaps() {
        let mut slots = Slots::default();
        (0..100).for_each(|slot| assert_eq!(slots.allocate(), slot));
        (40..44).for_each(|slot| slots.free(slot));
        slots.free(98);
        slots.free(99);
        assert_eq!(slots.allocate_run(3), 40);
        assert_eq!(slots.allocate_run(4), 98);
        assert_eq!(slots.allocate(), 43);
        assert_eq!(slots.end(), 102);
    }

    #[test]
    fn retired_slots_stay_taken_until_freed() {
        let mut slots = Slots::default();
        let slot = slots.allocate();
        slots.retire(slot);
        assert_eq!(slots.allocate(), 1);
        for slot in slots.take_retired().iter() {
            slots.free(slot);
        }
        assert_eq!(slots.allocate(), 0);
    }
}
