//! Evicts the least recently used vertex.
//!
//! Slots form a doubly linked list in two arrays, the latest first; position 0 is the list's
//! anchor, so slot `n` is at `n + 1`.

use super::EvictionPolicy;
use crate::error::Result;

/// The policy of the least recently used vertex.
#[derive(Debug)]
pub struct Lru {
    later: Vec<usize>,
    earlier: Vec<usize>,
}

impl Default for Lru {
    fn default() -> Self {
        Self { later: vec![0], earlier: vec![0] }
    }
}

impl Lru {
    fn unlink(&mut self, at: usize) {
        let (later, earlier) = (self.later[at], self.earlier[at]);
        self.earlier[later] = earlier;
        self.later[earlier] = later;
    }

    fn link_first(&mut self, at: usize) {
        let first = self.earlier[0];
        self.later[at] = 0;
        self.earlier[at] = first;
        self.later[first] = at;
        self.earlier[0] = at;
    }
}

impl<V> EvictionPolicy<V> for Lru {
    fn admitted(&mut self, slot: usize, _: &V) -> Result<()> {
        let places = self.later.len().max(slot + 2);
        self.later.resize(places, 0);
        self.earlier.resize(places, 0);
        self.link_first(slot + 1);
        Ok(())
    }

    #[inline]
    fn used(&mut self, slot: usize) {
        if self.earlier[0] != slot + 1 {
            self.unlink(slot + 1);
            self.link_first(slot + 1);
        }
    }

    fn left(&mut self, slot: usize) {
        self.unlink(slot + 1);
    }

    fn choose(&mut self, out: &mut Vec<usize>) {
        // The anchor's other neighbor is the last slot, or the anchor itself.
        out.extend(self.later[0].checked_sub(1));
    }
}
