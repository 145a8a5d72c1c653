//! Prefetched reads of sealed blocks: several in flight, delivered in the order of requests.
//!
//! A [`ReadPool`] owns a few threads; each consumer has a [`ReadAhead`] over it. Invariant: a block
//! is delivered verified and in order. The consumers own the buffers, so the memory is bounded by
//! the buffers passed in and the blocks pinned.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;

use crate::error::{Error, Result};
use crate::pinned::PinnedBlock;
use crate::sealed::{Buffer, SealedFile};

/// A block to read, and its destination.
enum Read {
    Into { file: Arc<SealedFile>, block: usize, buffer: Buffer },
    Pinned(Arc<PinnedBlock>),
}

impl Read {
    /// Reads the block; returns the buffer, if the consumer passed one.
    fn run(self) -> Result<Option<Buffer>> {
        match self {
            Self::Into { file, block, mut buffer } => {
                file.read_block(block, &mut buffer)?;
                Ok(Some(buffer))
            }
            Self::Pinned(block) => block.load().map(|_| None),
        }
    }
}

struct Task {
    read: Read,
    reply: SyncSender<Result<Option<Buffer>>>,
}

#[derive(Default)]
struct Queue {
    tasks: VecDeque<Task>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    wake: Condvar,
}

/// Threads that read.
pub struct ReadPool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl ReadPool {
    /// A pool that keeps up to `threads` reads (at least 1) in flight.
    pub fn new(threads: usize) -> Result<Self> {
        let threads = threads.max(1);
        let shared = Arc::new(Shared::default());
        let mut pool = Self { shared, threads: Vec::with_capacity(threads) };
        for _ in 0..threads {
            let shared = Arc::clone(&pool.shared);
            let thread = std::thread::Builder::new()
                .name("brimful-read".into())
                .stack_size(256 << 10)
                .spawn(move || serve(&shared))
                .map_err(|e| Error::io("a thread that reads ahead", "start", e))?;
            pool.threads.push(thread);
        }
        Ok(pool)
    }
}

fn serve(shared: &Shared) {
    loop {
        let mut queue = shared.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Task { read, reply } = loop {
            if let Some(task) = queue.tasks.pop_front() {
                break task;
            }
            if queue.closed {
                return;
            }
            queue = shared.wake.wait(queue).unwrap_or_else(PoisonError::into_inner);
        };
        drop(queue);
        // The receiver is gone if the consumer stopped early.
        let _ = reply.send(read.run());
    }
}

impl Drop for ReadPool {
    fn drop(&mut self) {
        self.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).closed = true;
        self.shared.wake.notify_all();
        for thread in self.threads.drain(..) {
            // A reader panics only because of a bug, and then its consumer has failed already.
            let _ = thread.join();
        }
    }
}

/// One consumer's reads, first in, first out.
pub struct ReadAhead<'p> {
    pool: &'p ReadPool,
    pending: VecDeque<Receiver<Result<Option<Buffer>>>>,
}

impl<'p> ReadAhead<'p> {
    /// A consumer without reads in flight.
    pub fn new(pool: &'p ReadPool) -> Self {
        Self { pool, pending: VecDeque::new() }
    }

    /// Number of reads requested and not yet taken.
    pub fn in_flight(&self) -> usize {
        self.pending.len()
    }

    /// Requests a block, to be read into `buffer`.
    ///
    /// # Panics
    /// If the file has no such block.
    pub fn push(&mut self, file: &Arc<SealedFile>, block: usize, buffer: Buffer) {
        // The check is here, because a panic of the reading thread would make later reads wait
        // forever.
        assert!(block < file.entries().len(), "the file has the block");
        self.ask(Read::Into { file: Arc::clone(file), block, buffer });
    }

    /// Requests a block that stays in memory.
    pub fn push_pinned(&mut self, block: &Arc<PinnedBlock>) {
        self.ask(Read::Pinned(Arc::clone(block)));
    }

    fn ask(&mut self, read: Read) {
        let (reply, receiver) = sync_channel(1);
        let task = Task { read, reply };
        self.pool.shared.queue.lock().unwrap_or_else(PoisonError::into_inner).tasks.push_back(task);
        self.pool.shared.wake.notify_one();
        self.pending.push_back(receiver);
    }

    /// Waits for the oldest block requested; `None` for a pinned block, which is now in memory.
    ///
    /// # Errors
    /// Errors of the read.
    ///
    /// # Panics
    /// If no read is in flight.
    pub fn take(&mut self) -> Result<Option<Buffer>> {
        assert!(!self.pending.is_empty(), "a read was asked for");
        let answer = self.pending.pop_front().and_then(|receiver| receiver.recv().ok());
        answer.unwrap_or_else(|| Err(Error::Internal("a thread that reads ahead ended".into())))
    }
}
