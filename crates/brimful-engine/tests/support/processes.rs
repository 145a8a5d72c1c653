//! Threads instead of processes: the exchange of a divided run, in memory.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use brimful_engine::exchange::{Communicator, Contribution, Exchange, Received};
use brimful_engine::{Error, Result};
use brimful_store::Job;

const PATIENCE: Duration = Duration::from_secs(60);

/// The buffers that one process sends in a call.
type Sent = Arc<[Vec<u8>]>;

/// One of the buffers.
struct Buffer(Sent, usize);

impl AsRef<[u8]> for Buffer {
    fn as_ref(&self) -> &[u8] {
        &self.0[self.1]
    }
}

/// A received contribution: buffer 0 has the facts, buffer `signals` the signals.
fn contribution(sent: Sent, signals: usize) -> Contribution {
    Contribution {
        facts: Box::new(Buffer(Arc::clone(&sent), 0)),
        signals: Box::new(Buffer(sent, signals)),
    }
}

/// The buffers of all processes, by call and process.
#[derive(Debug, Default)]
pub(crate) struct Hub {
    sent: Mutex<HashMap<(u64, usize), Sent>>,
    changed: Condvar,
    failed: AtomicBool,
    /// Calls of `scatter` by all processes and the driver.
    pub(crate) scattered: AtomicU64,
}

impl Hub {
    /// The communicator of one of `count` processes, or of the driver. Process 0 is lost at call
    /// `last`.
    pub(crate) fn communicator(
        self: &Arc<Self>,
        count: usize,
        index: Option<usize>,
        shares_memory: bool,
        last: u64,
    ) -> Communicator {
        let last = if index == Some(0) { last } else { u64::MAX };
        let (hub, calls) = (Arc::clone(self), AtomicU64::new(0));
        let exchange = Arc::new(Connection { hub, count, index, calls, last });
        Communicator { count, index, shares_memory, exchange }
    }

    /// Ends all processes, because one of them failed.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Relaxed);
        self.changed.notify_all();
    }
}

/// The connection of one process.
#[derive(Debug)]
struct Connection {
    hub: Arc<Hub>,
    count: usize,
    index: Option<usize>,
    calls: AtomicU64,
    /// The call in which this process is lost.
    last: u64,
}

impl Connection {
    /// Sends buffers, and `waits` for those of all processes.
    fn exchange(&self, own: &[&[u8]], waits: bool) -> Result<Vec<Sent>> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed);
        let lost = || Err(Error::Exchange("a process is lost".into()));
        if call == self.last {
            return lost();
        }
        let mut sent = self.hub.sent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = self.index {
            sent.insert((call, index), own.iter().map(|buffer| buffer.to_vec()).collect());
        }
        self.hub.changed.notify_all();
        if !waits {
            return Ok(Vec::new());
        }
        loop {
            let all: Option<Vec<_>> =
                (0..self.count).map(|index| sent.get(&(call, index)).cloned()).collect();
            if let Some(all) = all {
                return Ok(all);
            }
            if self.hub.failed.load(Ordering::Relaxed) {
                return lost();
            }
            let (guard, wait) = self.hub.changed.wait_timeout(sent, PATIENCE).unwrap();
            assert!(!wait.timed_out(), "a process hangs");
            sent = guard;
        }
    }
}

impl Exchange for Connection {
    fn all_gather(&self, facts: &[u8], signals: &[u8], _: &Job) -> Result<Vec<Contribution>> {
        let all = self.exchange(&[facts, signals], true)?;
        Ok(all.into_iter().map(|sent| contribution(sent, 1)).collect())
    }

    fn scatter(&self, facts: &[u8], parts: &[&[u8]], _: &Job) -> Result<Vec<Contribution>> {
        assert_eq!(parts.len(), self.count + 1);
        assert!(self.index.is_none_or(|own| parts[own].is_empty()));
        self.hub.scattered.fetch_add(1, Ordering::Relaxed);
        let own: Vec<_> = std::iter::once(&facts).chain(parts).copied().collect();
        let all = self.exchange(&own, true)?;
        let part = 1 + self.index.unwrap_or(self.count);
        Ok(all.into_iter().map(|sent| contribution(sent, part)).collect())
    }

    fn gather(&self, records: &[u8], _: &Job) -> Result<Vec<Received>> {
        let all = self.exchange(&[records], self.index.is_none())?;
        Ok(all.into_iter().map(|sent| Box::new(Buffer(sent, 0)) as Received).collect())
    }

    fn share_memory(&self, _: u64) -> Result<()> {
        Ok(())
    }
}
