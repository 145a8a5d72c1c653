//! Algorithms, kernels and checkpoints on small graphs: compared with different algorithms, and the
//! same bits at any number of threads and budget. One binary, so that each program is compiled
//! once.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

mod algorithms;
mod budgets;
mod checkpoints;
mod cluster;
mod kernels;
#[path = "../../../brimful-engine/tests/support/processes.rs"]
mod processes;
mod stores;
mod traversals;
mod windows;

use std::ops::RangeInclusive;
use std::sync::Arc;

use brimful_algos::Error;
use brimful_store::{Budget, Error as StoreError, Job, Resources};

fn resources(threads: usize, budget: u64) -> Resources {
    Resources::new(Budget::new(budget, 0), Arc::new(Job::new()), Some(threads)).unwrap()
}

/// Numbers of threads: all with `BRIMFUL_MATRIX=all` (`make nightly`), else the first and the last.
fn threads(all: RangeInclusive<usize>) -> Vec<usize> {
    match std::env::var("BRIMFUL_MATRIX").is_ok_and(|matrix| matrix == "all") {
        true => all.collect(),
        false => vec![*all.start(), *all.end()],
    }
}

/// The smallest budget with which `attempt` works, as named by its errors.
fn smallest<T, E: Into<Error>>(attempt: impl Fn(u64) -> Result<T, E>) -> u64 {
    let mut needed = 1;
    while let Err(error) = attempt(needed) {
        let error = error.into();
        let Error::Store(StoreError::Budget { needed: more, .. }) = error else {
            panic!("{error}")
        };
        assert!(more > needed);
        needed = more;
    }
    needed
}
