//! Executions: the same results on every store, with any number of workers, with and without
//! supersteps.

#![expect(clippy::unwrap_used, reason = "test helpers: a failure is a failed test")]

#[path = "execution/distributed.rs"]
mod distributed;
#[path = "execution/facts.rs"]
mod facts;
#[path = "execution/failures.rs"]
mod failures;
#[path = "../../brimful-engine/tests/support/processes.rs"]
mod processes;
#[path = "execution/programs.rs"]
mod programs;
#[path = "execution/stopping.rs"]
mod stopping;
