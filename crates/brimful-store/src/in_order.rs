//! Workers finish in any order but act in a fixed one, so that parallel work gives the same bytes.

use std::sync::{Condvar, Mutex, PoisonError};

/// Makes workers act strictly in the order of their numbers; after one failure no worker acts.
pub struct InOrder<F> {
    turn: Mutex<(usize, F)>,
    passed: Condvar,
}

const FAILED: usize = usize::MAX;

impl<F> InOrder<F> {
    /// Begins with turn 0; the worker whose turn it is may use `shared`.
    pub fn new(shared: F) -> Self {
        Self { turn: Mutex::new((0, shared)), passed: Condvar::new() }
    }

    /// Returns the shared value.
    pub fn into_inner(self) -> F {
        self.turn.into_inner().unwrap_or_else(PoisonError::into_inner).1
    }

    /// A guard for each worker. If a worker panics before its turn, its guard wakes the other
    /// workers, which would otherwise wait forever.
    #[must_use]
    pub fn wake_on_panic(&self) -> WakeOnPanic<'_, F> {
        WakeOnPanic(self)
    }

    /// Waits for turn `index`, then acts. Returns false without acting if an earlier turn failed;
    /// the worker of that turn returns the error.
    pub fn pass<E>(
        &self,
        index: usize,
        act: impl FnOnce(&mut F) -> Result<(), E>,
    ) -> Result<bool, E> {
        let mut turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        while turn.0 != index && turn.0 != FAILED {
            turn = self.passed.wait(turn).unwrap_or_else(PoisonError::into_inner);
        }
        if turn.0 == FAILED {
            return Ok(false);
        }
        let result = act(&mut turn.1);
        turn.0 = if result.is_ok() { index + 1 } else { FAILED };
        self.passed.notify_all();
        result.map(|()| true)
    }
}

/// Ends the waiting of other workers when a worker panics, so that the panic is passed on.
pub struct WakeOnPanic<'o, F>(&'o InOrder<F>);

impl<F> Drop for WakeOnPanic<'_, F> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.turn.lock().unwrap_or_else(PoisonError::into_inner).0 = FAILED;
            self.0.passed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Four workers take the numbers below 100; `act` runs in turn. Returns each worker's results.
    fn run(
        act: impl Fn(usize, &mut Vec<usize>) -> Result<(), usize> + Sync,
    ) -> (Vec<Result<(), usize>>, Vec<usize>) {
        let (order, next) = (InOrder::new(Vec::new()), AtomicUsize::new(0));
        let results = std::thread::scope(|scope| {
            let worker = || {
                let _wake = order.wake_on_panic();
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    if index >= 100 || !order.pass(index, |seen| act(index, seen))? {
                        return Ok(());
                    }
                }
            };
            let workers: Vec<_> = (0..4).map(|_| scope.spawn(worker)).collect();
            workers.into_iter().map(|worker| worker.join().unwrap_or(Err(usize::MAX))).collect()
        });
        (results, order.into_inner())
    }

    fn note(index: usize, seen: &mut Vec<usize>) -> Result<(), usize> {
        // Late workers must not be overtaken.
        std::thread::sleep(std::time::Duration::from_micros((index * 37 % 5 * 50) as u64));
        seen.push(index);
        Ok(())
    }

    #[test]
    fn turns_are_taken_in_order_until_one_fails() {
        let (_, seen) = run(|index, seen| if index < 99 { note(index, seen) } else { Err(index) });
        assert!(seen.into_iter().eq(0..99));
        let (results, seen) =
            run(|index, seen| if index == 30 { Err(index) } else { note(index, seen) });
        assert!(seen.into_iter().eq(0..30), "after a failure nobody acts");
        assert_eq!(results.iter().filter(|result| **result == Err(30)).count(), 1);
        assert_eq!(results.iter().filter(|result| result.is_ok()).count(), 3);
    }

    #[test]
    fn a_panic_ends_the_waiting() {
        let (results, seen) = run(|index, seen| {
            assert!(index < 30, "on purpose");
            note(index, seen)
        });
        assert!(seen.into_iter().eq(0..30));
        assert_eq!(results.iter().filter(|result| **result == Err(usize::MAX)).count(), 1);
    }
}
