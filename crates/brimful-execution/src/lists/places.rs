//! Places of entries by id: in an array for ids whose numbers begin at the first one of a
//! partition, by hash for all others.
//!
//! A signal to a vertex costs one access to memory in the array, and two or three by hash.
//! Invariant: the number of an id alone decides between the array and the hash table.

use std::hash::BuildHasher;

use brimful_vertices::Id;
use hashbrown::{DefaultHashBuilder, HashTable};

/// An array may take one part in `ARRAY_PART` of the limit; a place takes `PLACE_BYTES` bytes.
const ARRAY_PART: usize = 4;
const PLACE_BYTES: usize = size_of::<u32>();

/// The form of an id in a look-up.
#[derive(Debug, Clone, Copy)]
pub(super) enum Key {
    Number(usize),
    Hash(u64),
}

/// Places of entries, which have 32 bits.
#[derive(Debug)]
pub(super) struct Places {
    /// By number from `first` on, the place and one more; 0 for none. Other ids are in `table`.
    array: Vec<u32>,
    first: u64,
    max_numbers: u64,
    /// One more than the last element of `array` that was used: memory before it is in use.
    numbers: usize,
    table: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Places {
    /// No places, for entries that take up to `limit` bytes with them. Most ids have numbers from
    /// `first` on.
    pub(super) fn new(limit: usize, first: u64) -> Self {
        Self {
            array: Vec::new(),
            first,
            max_numbers: (limit / ARRAY_PART / PLACE_BYTES) as u64,
            numbers: 0,
            table: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    #[inline]
    fn number<I: Id>(&self, id: &I) -> Option<usize> {
        let number = id.number()?.checked_sub(self.first)?;
        (number < self.max_numbers).then_some(number as usize)
    }

    #[inline]
    pub(super) fn key<I: Id>(&self, id: &I) -> Key {
        match self.number(id) {
            Some(number) => Key::Number(number),
            None => Key::Hash(self.hasher.hash_one(id)),
        }
    }

    /// Bytes in use once `ids` have places, too.
    pub(super) fn bytes_with<'i, I: Id>(&self, ids: impl Iterator<Item = &'i I>) -> usize {
        let (mut numbers, mut hashed) = (self.numbers, 0);
        for id in ids {
            match self.number(id) {
                Some(number) => numbers = numbers.max(number + 1),
                None => hashed += 1,
            }
        }
        // A growing table exists twice for a moment, once with double the capacity.
        let grows = if self.table.len() + hashed > self.table.capacity() { 2 } else { 0 };
        let table = self.table.allocation_size().max(10 * hashed) * (1 + grows);
        numbers * PLACE_BYTES + table
    }

    /// The place of the id with this key; `has_id` returns true for the place of the id.
    #[inline]
    pub(super) fn find(&self, key: Key, has_id: impl Fn(u32) -> bool) -> Option<u32> {
        match key {
            Key::Number(number) => self.array.get(number)?.checked_sub(1),
            Key::Hash(hash) => self.table.find(hash, |&place| has_id(place)).copied(),
        }
    }

    /// Adds the place of a new id. `id_at` gives the id at a place.
    #[inline]
    pub(super) fn insert<'i, I: Id>(&mut self, key: Key, place: u32, id_at: impl Fn(u32) -> &'i I) {
        match key {
            Key::Number(number) => {
                if self.array.is_empty() {
                    // The system provides pages at first use.
                    self.array = vec![0; self.max_numbers as usize];
                }
                self.numbers = self.numbers.max(number + 1);
                if let Some(entry) = self.array.get_mut(number) {
                    *entry = place + 1;
                }
            }
            Key::Hash(hash) => {
                let hasher = &self.hasher;
                self.table.insert_unique(hash, place, |&other| hasher.hash_one(id_at(other)));
            }
        }
    }

    /// Removes all places; `ids` are all ids that have one.
    pub(super) fn clear<'i, I: Id>(&mut self, ids: impl Iterator<Item = &'i I>) {
        self.table.clear();
        for id in ids {
            if let Some(entry) = self.number(id).and_then(|number| self.array.get_mut(number)) {
                *entry = 0;
            }
        }
    }
}
