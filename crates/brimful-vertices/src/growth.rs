//! Memory that grows in small steps, reserved from the budget in larger ones.

use std::sync::Arc;

use brimful_store::{Budget, Reservation};

use crate::error::Result;

/// Bytes of a step, so that not every record touches the shared counter.
const STEP_BYTES: u64 = 64 << 10;

/// The bytes that a [`Growth`] of `bytes` reserves, unless the budget ends before.
pub fn in_steps(bytes: u64) -> u64 {
    bytes.next_multiple_of(STEP_BYTES)
}

/// Bytes in use, all covered by a reservation.
#[derive(Debug)]
pub struct Growth {
    reservation: Reservation,
    used: u64,
    purpose: &'static str,
}

impl Growth {
    /// No bytes yet. `purpose` completes "a memory budget of .. is too small".
    pub fn new(budget: &Arc<Budget>, purpose: &'static str) -> Result<Self> {
        Ok(Self { reservation: budget.reserve(0, purpose)?, used: 0, purpose })
    }

    /// Bytes in use.
    pub fn used(&self) -> u64 {
        self.used
    }

    /// Takes `bytes` more.
    ///
    /// # Errors
    /// A budget error that names the smallest budget that works; then nothing has changed.
    #[inline]
    pub fn take(&mut self, bytes: u64) -> Result<()> {
        let used = self.used.saturating_add(bytes);
        if used > self.reservation.bytes() {
            let step = in_steps(used);
            // Near the limit, the exact number may still fit.
            if self.reservation.resize(step, self.purpose).is_err() {
                self.reservation.resize(used, self.purpose)?;
            }
        }
        self.used = used;
        Ok(())
    }

    /// Releases `bytes`.
    #[inline]
    pub fn give(&mut self, bytes: u64) {
        self.used = self.used.saturating_sub(bytes);
        if self.reservation.bytes() > self.used + 4 * STEP_BYTES {
            self.reservation.shrink(self.used.next_multiple_of(STEP_BYTES));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use brimful_store::Error as StoreError;

    #[test]
    fn steps_are_taken_and_given_back_and_the_last_bytes_can_be_had() {
        let budget = Budget::new(STEP_BYTES + 10, 0);
        let mut growth = Growth::new(&budget, "for a test").unwrap();
        growth.take(1).unwrap();
        assert_eq!(budget.free(), 10);
        growth.take(STEP_BYTES + 8).unwrap();
        assert_eq!((growth.used(), budget.free()), (STEP_BYTES + 9, 1));
        let refused = growth.take(2).unwrap_err();
        let crate::Error::Store(StoreError::Budget { needed, .. }) = refused else {
            panic!("{refused:?}")
        };
        assert_eq!(needed, STEP_BYTES + 11);
        assert_eq!(growth.used(), STEP_BYTES + 9);
        drop(growth);
        assert_eq!(budget.free(), STEP_BYTES + 10);
    }
}
