//! Automatic budgets: runs and collections without a budget of their own share the memory that is
//! available.
//!
//! A run takes the automatic budget, and has returned its memory when it ends. A collection lives
//! on, and fills its memory later, so that no figure of the operating system counts this memory in
//! advance: it takes an eighth, which later automatic budgets leave out.

use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::memory::available_budget_bytes;

static COLLECTIONS: Mutex<Shares> = Mutex::new(Shares { whole: 0, taken: 0 });

/// Bytes of `--budget auto` and of `budget=None`: [`available_budget_bytes`], without the memory
/// that collections of this process may still fill.
pub fn auto_budget_bytes() -> u64 {
    collections().left(available_budget_bytes())
}

/// The automatic budget of a collection, which is in use until it is dropped.
#[derive(Debug)]
pub struct AutomaticShare(u64);

impl AutomaticShare {
    /// Takes an eighth of the automatic budget.
    pub fn take() -> Self {
        Self(collections().take(available_budget_bytes()))
    }

    /// The bytes of the share.
    pub fn bytes(&self) -> u64 {
        self.0
    }
}

impl Drop for AutomaticShare {
    fn drop(&mut self) {
        collections().taken -= self.0;
    }
}

fn collections() -> MutexGuard<'static, Shares> {
    COLLECTIONS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The shares that are in use.
struct Shares {
    /// The greatest automatic budget since the first of them was taken, in bytes.
    whole: u64,
    /// Their sum in bytes.
    taken: u64,
}

impl Shares {
    /// The part of the `available` bytes that no share claims. Memory that a collection has filled
    /// is no longer available; memory that it has claimed but not yet filled still is.
    fn left(&mut self, available: u64) -> u64 {
        self.whole = if self.taken == 0 { available } else { self.whole.max(available) };
        available.min(self.whole.saturating_sub(self.taken))
    }

    fn take(&mut self, available: u64) -> u64 {
        let share = self.left(available) / 8;
        self.taken += share;
        share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_leave_room_for_each_other_empty_or_full() {
        let mut shares = Shares { whole: 0, taken: 0 };
        assert_eq!(shares.left(1600), 1600);
        assert_eq!(shares.take(1600), 200);
        assert_eq!(shares.left(1600), 1400);
        assert_eq!(shares.left(1400), 1400, "the first share is full");
        assert_eq!(shares.take(1600), 175);
        assert_eq!(shares.left(500), 500, "others took memory");
        assert_eq!(shares.left(2000), 1625, "others returned memory");
        shares.taken -= 375;
        assert_eq!(shares.left(500), 500);
        assert_eq!(shares.left(800), 800);
    }

    #[test]
    fn a_share_is_in_use_until_it_is_dropped() {
        let share = AutomaticShare::take();
        assert!(share.bytes() > 0);
        assert_eq!(collections().taken, share.bytes());
        drop(share);
        assert_eq!(collections().taken, 0);
    }
}
