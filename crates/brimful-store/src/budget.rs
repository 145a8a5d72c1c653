//! The memory budget: every growing structure reserves its bytes from it.
//!
//! Invariant: the sum of live reservations never exceeds the limit. Plans are checked before work
//! begins ([`Budget::require`]); the message of a reservation that fails later reports our own
//! planning error.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// A memory limit in bytes, shared by all parts of a job.
#[derive(Debug)]
pub struct Budget {
    total: u64,
    is_automatic: bool,
    /// The overhead that messages count when they name the smallest budget: it includes the margin.
    named_overhead: u64,
    limit: u64,
    used: AtomicU64,
    peak: AtomicU64,
}

impl Budget {
    /// A budget of `total` bytes. Of these, `overhead` bytes are in use already, by the process, a
    /// reader or a writer.
    pub fn new(total: u64, overhead: u64) -> Arc<Self> {
        Self::given(total, overhead, 0)
    }

    /// Like [`Budget::new`], for a measured overhead that may be up to `margin` bytes larger in the
    /// next measurement. The smallest budget that a message names includes the margin, so that it
    /// still suffices then.
    pub fn given(total: u64, overhead: u64, margin: u64) -> Arc<Self> {
        Self::with_margin(total, false, overhead, margin)
    }

    /// Like [`Budget::given`], if the user gave no budget and `total` bytes were available.
    pub fn automatic(total: u64, overhead: u64, margin: u64) -> Arc<Self> {
        Self::with_margin(total, true, overhead, margin)
    }

    fn with_margin(total: u64, is_automatic: bool, overhead: u64, margin: u64) -> Arc<Self> {
        Arc::new(Self {
            total,
            is_automatic,
            named_overhead: overhead.saturating_add(margin),
            limit: total.saturating_sub(overhead),
            used: AtomicU64::new(0),
            peak: AtomicU64::new(0),
        })
    }

    /// The budget of the whole process in bytes, including the overhead.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// The maximum sum of live reservations in bytes: the total without the overhead.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// The smallest total budget for work that needs `bytes` besides the overhead.
    pub fn smallest(&self, bytes: u64) -> u64 {
        bytes.saturating_add(self.named_overhead)
    }

    /// Bytes still free.
    pub fn free(&self) -> u64 {
        self.limit - self.used.load(Ordering::Relaxed)
    }

    /// The greatest sum of reservations so far, in bytes.
    pub fn peak(&self) -> u64 {
        self.peak.load(Ordering::Relaxed)
    }

    /// Refuses work before it begins if it needs more bytes than the limit: `bytes`, besides the
    /// overhead.
    ///
    /// # Errors
    /// [`Error::Budget`] naming the smallest total budget that works.
    pub fn require(&self, bytes: u64, purpose: &str) -> Result<()> {
        if bytes <= self.limit {
            return Ok(());
        }
        Err(self.too_small(bytes, purpose))
    }

    /// Reserves `bytes` until the reservation is dropped.
    ///
    /// # Errors
    /// `Error::Budget` if fewer bytes are free.
    pub fn reserve(self: &Arc<Self>, bytes: u64, purpose: &str) -> Result<Reservation> {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|&sum| sum <= self.limit)
        });
        match taken {
            Ok(before) => {
                self.peak.fetch_max(before + bytes, Ordering::Relaxed);
                Ok(Reservation { budget: Arc::clone(self), bytes, whole: None })
            }
            Err(used) => Err(self.too_small(used.saturating_add(bytes), purpose)),
        }
    }

    /// Reserves the whole budget for work that needs `bytes` of it.
    ///
    /// # Errors
    /// `Error::Budget` if the budget has fewer bytes, or if some of them are reserved.
    pub fn reserve_all(self: &Arc<Self>, bytes: u64, purpose: &str) -> Result<Reservation> {
        self.require(bytes, purpose)?;
        self.reserve(self.limit, purpose)
    }

    fn too_small(&self, bytes: u64, purpose: &str) -> Error {
        Error::Budget {
            budget: self.total,
            is_automatic: self.is_automatic,
            needed: self.smallest(bytes),
            is_estimate: false,
            purpose: purpose.to_owned(),
        }
    }
}

/// Bytes reserved from a [`Budget`]; freed on drop.
#[derive(Debug)]
pub struct Reservation {
    budget: Arc<Budget>,
    bytes: u64,
    /// The memory of the owner, of which these bytes are a part; `None`: the bytes stand alone.
    whole: Option<OwnerMemory>,
}

/// The memory of an owner who reserves a part of it, and uses the rest without a reservation.
#[derive(Debug, Clone, Copy)]
pub struct OwnerMemory {
    /// Bytes of the memory.
    pub bytes: u64,
    /// Returns the size of the whole memory whose reserved part has the given number of bytes.
    pub size_for_part: fn(u64) -> u64,
    /// True if errors name the memory of the owner, not the budget.
    pub is_named: bool,
}

impl Reservation {
    /// The same reservation, as a part of `whole`: an error names a budget in which the whole is
    /// large enough.
    #[must_use]
    pub fn part_of(mut self, whole: OwnerMemory) -> Self {
        self.whole = Some(whole);
        self
    }

    /// The error of work that needs a reservation of `bytes` in place of this one.
    pub fn too_small(&self, bytes: u64, purpose: &str) -> Error {
        let (held, needed) = match self.whole {
            Some(whole) => (whole.bytes, (whole.size_for_part)(bytes)),
            None => (self.bytes, bytes),
        };
        if self.whole.is_some_and(|whole| whole.is_named) {
            return Error::too_small(held, needed, purpose);
        }
        let others = self.budget.limit.saturating_sub(held);
        self.budget.too_small(others.saturating_add(needed), purpose)
    }

    /// Bytes reserved.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Changes the reservation to `bytes`. After an error the reservation is as before.
    pub fn resize(&mut self, bytes: u64, purpose: &str) -> Result<()> {
        if bytes <= self.bytes {
            self.shrink(bytes);
            return Ok(());
        }
        let mut more = self.budget.reserve(bytes - self.bytes, purpose)?;
        self.bytes += std::mem::take(&mut more.bytes);
        Ok(())
    }

    /// Reduces the reservation to `bytes`; a larger number has no effect.
    pub fn shrink(&mut self, bytes: u64) {
        let less = self.bytes.saturating_sub(bytes);
        self.budget.used.fetch_sub(less, Ordering::Relaxed);
        self.bytes -= less;
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_given_back_and_never_exceed_the_limit() {
        let budget = Budget::new(100, 40);
        assert_eq!(budget.limit(), 60);
        let a = budget.reserve(50, "here").unwrap();
        assert!(matches!(
            budget.reserve(11, "here"),
            Err(Error::Budget { needed: 101, budget: 100, .. })
        ));
        drop(a);
        assert_eq!(budget.free(), 60);
        assert_eq!(budget.peak(), 50);
    }

    #[test]
    fn a_reservation_changes_its_size_or_stays_as_it_is() {
        let budget = Budget::new(100, 0);
        let mut held = budget.reserve(10, "here").unwrap();
        held.resize(90, "here").unwrap();
        assert_eq!((held.bytes(), budget.free(), budget.peak()), (90, 10, 90));
        assert!(matches!(held.resize(101, "here"), Err(Error::Budget { needed: 101, .. })));
        held.resize(20, "here").unwrap();
        assert_eq!((held.bytes(), budget.free()), (20, 80));
        held.shrink(30);
        assert_eq!(held.bytes(), 20);
        drop(held);
        assert_eq!(budget.free(), 100);
    }

    #[test]
    fn a_budget_below_its_overhead_names_what_works() {
        let budget = Budget::new(1, 40);
        assert!(matches!(
            budget.require(10, "to rank"),
            Err(Error::Budget { budget: 1, needed: 50, .. })
        ));
        assert_eq!(budget.smallest(10), 50);
        let budget = Budget::given(10, u64::MAX, u64::MAX);
        assert_eq!((budget.limit(), budget.smallest(10)), (0, u64::MAX));
    }

    #[test]
    fn a_message_says_that_the_budget_was_automatic() {
        let message = |budget: Arc<Budget>| budget.require(10, "to rank").unwrap_err().to_string();
        let tail =
            "memory budget of 1 byte is too small to rank; the smallest that works is 50 bytes";
        assert_eq!(message(Budget::automatic(1, 40, 0)), format!("the automatic {tail}"));
        assert_eq!(message(Budget::given(1, 40, 0)), format!("a {tail}"));
    }

    #[test]
    fn a_named_budget_works_where_the_overhead_has_grown_by_the_margin() {
        let Err(Error::Budget { needed, .. }) = Budget::given(1, 40, 8).require(10, "to rank")
        else {
            panic!("a budget of one byte is too small");
        };
        assert!(Budget::given(needed, 48, 8).require(10, "to rank").is_ok());
    }
}
