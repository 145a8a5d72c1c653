//! The counts of a file, and a checksum that shows whether a list has every edge at both ends.

use brimful_store::splitmix::splitmix64;
use serde::{Deserialize, Serialize};

/// The counts of one file, to be compared with its header.
#[derive(Debug, Default, Clone, Copy, Serialize, Deserialize)]
pub(crate) struct Tally {
    pub(crate) entries: u64,
    /// Isolated vertices that comment lines name.
    pub(crate) listed: u64,
    pub(super) rejected: u64,
    pub(super) loops: u64,
    /// Number and order-independent checksum of the entries that name a higher vertex.
    pub(super) up: (u64, u64),
    /// The same for entries that name a lower vertex, computed with both ends swapped.
    pub(super) down: (u64, u64),
}

impl Tally {
    /// Counts an entry of a list that contains every edge twice.
    #[inline]
    pub(crate) fn mirror(&mut self, source: u64, target: u64, weight: f64) {
        if source == target {
            self.loops += 1;
            return;
        }
        let (low, high) = (source.min(target), source.max(target));
        let mixed = splitmix64(
            splitmix64(splitmix64(low).wrapping_add(high)).wrapping_add(weight.to_bits()),
        );
        let side = if source < target { &mut self.up } else { &mut self.down };
        *side = (side.0 + 1, side.1.wrapping_add(mixed));
    }

    pub(super) fn merge(&mut self, other: &Self) {
        let add = |a: (u64, u64), b: (u64, u64)| (a.0 + b.0, a.1.wrapping_add(b.1));
        self.entries += other.entries;
        self.listed += other.listed;
        self.rejected += other.rejected;
        self.loops += other.loops;
        (self.up, self.down) = (add(self.up, other.up), add(self.down, other.down));
    }
}
