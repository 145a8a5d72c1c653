//! The state that a long call shares with its caller: cancellation, progress and notes.
//!
//! Invariant: every loop that can last longer than a second calls [`Job::check`] at least ten times
//! a second; this module never blocks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::traffic::Traffic;

/// The progress of a phase.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// The name of the phase: "parse", "sort", "superstep 3".
    pub phase: String,
    /// Units done in this phase.
    pub done: u64,
    /// Total units of the phase; 0 if unknown.
    pub total: u64,
    /// Seconds since the phase began.
    pub seconds: f64,
}

/// A running piece of work: cancellation, progress and byte traffic.
#[derive(Debug)]
pub struct Job {
    cancelled: AtomicBool,
    done: AtomicU64,
    total: AtomicU64,
    phase: Mutex<(String, Instant)>,
    /// Notes that the caller has not taken yet.
    said: Mutex<Vec<String>>,
    traffic: Arc<Traffic>,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            cancelled: AtomicBool::new(false),
            done: AtomicU64::new(0),
            total: AtomicU64::new(0),
            phase: Mutex::new((String::new(), Instant::now())),
            said: Mutex::default(),
            traffic: Arc::default(),
        }
    }
}

impl Job {
    /// A job that has not begun.
    pub fn new() -> Self {
        Self::default()
    }

    /// Asks the work to stop; it stops within a second, with [`Error::Interrupted`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails with `Error::Interrupted` once [`Job::cancel`] was called.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Undoes [`Job::cancel`] after the canceled work has ended: for an owner whose job outlives
    /// its calls.
    pub fn resume(&self) {
        self.cancelled.store(false, Ordering::Relaxed);
    }

    /// Begins a phase of `total` units (0: unknown).
    pub fn begin(&self, phase: impl Into<String>, total: u64) {
        let mut now = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        *now = (phase.into(), Instant::now());
        self.done.store(0, Ordering::Relaxed);
        self.total.store(total, Ordering::Relaxed);
    }

    /// Adds `units` to the units done.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// The progress of the current phase.
    pub fn progress(&self) -> Progress {
        let now = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        Progress {
            phase: now.0.clone(),
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            seconds: now.1.elapsed().as_secs_f64(),
        }
    }

    /// Leaves a note for the caller: a sentence without its full stop, about a fact that is not an
    /// error but must not go unnoticed.
    pub fn say(&self, sentence: impl Into<String>) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.into());
    }

    /// Takes the notes left since the last call.
    pub fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Byte counters of this job's files.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}
