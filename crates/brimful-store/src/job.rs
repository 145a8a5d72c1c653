//! What a long call shares with whoever waits for it: a stop button and a progress line.
//!
//! Invariant: every loop that can last longer than a second calls [`Job::check`] at least ten times
//! a second; nothing here blocks.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::error::{Error, Result};
use crate::traffic::Traffic;

/// How far a phase has come.
#[derive(Debug, Clone, PartialEq)]
pub struct Progress {
    /// What is being done: "parse", "sort", "superstep 3".
    pub phase: String,
    /// Units done in this phase.
    pub done: u64,
    /// Units of the phase in all; 0 when unknown.
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
    /// What nobody has taken yet.
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

    /// Asks the work to stop; it does within a second, with [`Error::Interrupted`].
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Fails once [`Job::cancel`] was called.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Takes a [`Job::cancel`] back, once the work that it stopped has ended: for an owner whose
    /// job outlives its calls.
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

    /// Adds `units` to what the phase has done.
    pub fn advance(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Where the work is now.
    pub fn progress(&self) -> Progress {
        let now = self.phase.lock().unwrap_or_else(PoisonError::into_inner);
        Progress {
            phase: now.0.clone(),
            done: self.done.load(Ordering::Relaxed),
            total: self.total.load(Ordering::Relaxed),
            seconds: now.1.elapsed().as_secs_f64(),
        }
    }

    /// Says a sentence to whoever waits, without its full stop: something that is no error and must
    /// not go unnoticed.
    pub fn say(&self, sentence: impl Into<String>) {
        self.said.lock().unwrap_or_else(PoisonError::into_inner).push(sentence.into());
    }

    /// Takes what was said since it was last taken.
    pub fn take_said(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Byte counters of this job's files.
    pub fn traffic(&self) -> &Arc<Traffic> {
        &self.traffic
    }
}
