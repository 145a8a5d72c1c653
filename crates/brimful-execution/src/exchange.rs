//! Packets between workers: bounded queues, and the detection of termination.
//!
//! - Back-pressure: a worker that sends to a full queue waits, and receives its own packets
//!   meanwhile.
//! - No deadlock: receiving never waits, because a mailbox spills to disk. A worker waits only
//!   while its own queue is empty, and an empty queue blocks no sender.
//! - Idle back-off: an under-loaded worker may wait for more signals. All workers in back-off
//!   continue as soon as no worker is busy and no packet is in flight.
//!
//! Invariant: the work ends if and only if all workers are idle and each has received as many
//! packets as were sent to it. One lock guards these counts, so that no worker sees half of a
//! change. A packet holds thousands of signals, and the lock is taken per packet.

use std::collections::VecDeque;
use std::sync::PoisonError;
use std::time::Instant;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(loom)]
use loom::sync::{Condvar, Mutex, MutexGuard};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::{Condvar, Mutex, MutexGuard};

/// Signals for one partition.
#[derive(Debug)]
pub(crate) struct Packet<M> {
    pub(crate) partition: usize,
    pub(crate) messages: M,
    /// Bytes of the messages.
    pub(crate) bytes: usize,
}

/// The event that ends a wait.
#[derive(Debug)]
pub(crate) enum Event<M> {
    /// A packet arrived.
    Packet(Packet<M>),
    /// No worker is busy: those in idle back-off continue.
    AllIdle,
    /// The idle back-off is over.
    BackOffEnded,
    /// No worker has anything left to do.
    Finished,
    /// [`PacketQueues::stop`] was called.
    Stopped,
}

/// Queues of packets, one for each worker.
#[derive(Debug)]
pub(crate) struct PacketQueues<M> {
    state: Mutex<ExchangeState<M>>,
    wake: Vec<Condvar>,
    /// Packets in each queue, readable without the lock.
    queued: Vec<AtomicUsize>,
    stopped: AtomicBool,
    max_bytes: usize,
}

#[derive(Debug, Default, Clone)]
struct Inbox {
    bytes: usize,
    sent: u64,
    received: u64,
    status: WorkerStatus,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum WorkerStatus {
    #[default]
    Busy,
    /// Under-loaded, in idle back-off.
    BackingOff,
    /// Idle, with nothing to send.
    Idle,
}

#[derive(Debug)]
struct ExchangeState<M> {
    queues: Vec<VecDeque<Packet<M>>>,
    inboxes: Vec<Inbox>,
}

impl<M> ExchangeState<M> {
    /// True if no worker is busy and no packet is in flight.
    fn is_quiet(&self) -> bool {
        self.inboxes
            .iter()
            .all(|inbox| inbox.status != WorkerStatus::Busy && inbox.sent == inbox.received)
    }

    /// Ends the idle back-off of all workers; false if no worker was in it.
    fn end_back_off(&mut self) -> bool {
        let mut is_any = false;
        for inbox in
            self.inboxes.iter_mut().filter(|inbox| inbox.status == WorkerStatus::BackingOff)
        {
            inbox.status = WorkerStatus::Busy;
            is_any = true;
        }
        is_any
    }
}

impl<M> PacketQueues<M> {
    /// Queues of at most `max_bytes` bytes each; an empty queue accepts one packet of any size.
    pub(crate) fn new(workers: usize, max_bytes: usize) -> Self {
        let queues = (0..workers).map(|_| VecDeque::new()).collect();
        Self {
            state: Mutex::new(ExchangeState { queues, inboxes: vec![Inbox::default(); workers] }),
            wake: (0..workers).map(|_| Condvar::new()).collect(),
            queued: (0..workers).map(|_| AtomicUsize::new(0)).collect(),
            stopped: AtomicBool::new(false),
            max_bytes,
        }
    }

    fn lock(&self) -> MutexGuard<'_, ExchangeState<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets all workers to busy. Packets that a stop left in the queues are still there.
    pub(crate) fn begin(&self) {
        self.lock().inboxes.iter_mut().for_each(|inbox| inbox.status = WorkerStatus::Busy);
        self.stopped.store(false, Ordering::SeqCst);
    }

    /// Puts a packet into the queue of worker `to`; returns the packet if the queue is full.
    pub(crate) fn post(&self, to: usize, packet: Packet<M>) -> Result<(), Packet<M>> {
        let mut state = self.lock();
        let inbox = &mut state.inboxes[to];
        if inbox.bytes > 0 && inbox.bytes + packet.bytes > self.max_bytes {
            return Err(packet);
        }
        inbox.bytes += packet.bytes;
        inbox.sent += 1;
        state.queues[to].push_back(packet);
        self.queued[to].fetch_add(1, Ordering::Relaxed);
        self.wake[to].notify_one();
        Ok(())
    }

    /// Takes the next packet for worker `me`. Cheap if there is none.
    pub(crate) fn take(&self, me: usize) -> Option<Packet<M>> {
        if self.queued[me].load(Ordering::Relaxed) == 0 {
            return None;
        }
        self.pop(&mut self.lock(), me)
    }

    fn pop(&self, state: &mut ExchangeState<M>, me: usize) -> Option<Packet<M>> {
        let packet = state.queues[me].pop_front()?;
        let inbox = &mut state.inboxes[me];
        inbox.bytes -= packet.bytes;
        inbox.received += 1;
        inbox.status = WorkerStatus::Busy;
        self.queued[me].fetch_sub(1, Ordering::Relaxed);
        // A sender may have waited for the space.
        self.wake_all();
        Some(packet)
    }

    fn wake_all(&self) {
        self.wake.iter().for_each(Condvar::notify_all);
    }

    /// Waits until the queue of `to` is empty, so that it accepts any packet, a packet for `me`
    /// arrives, or the work is stopped.
    pub(crate) fn wait_for_space(&self, me: usize, to: usize) {
        let mut state = self.lock();
        while state.queues[me].is_empty() && !state.queues[to].is_empty() && !self.is_stopped() {
            state = self.wake[me].wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits for a packet for `me`, whose own packets are sent. An idle worker waits without limit,
    /// an under-loaded one `until` its back-off ends.
    pub(crate) fn wait(&self, me: usize, until: Option<Instant>) -> Event<M> {
        let status = if until.is_some() { WorkerStatus::BackingOff } else { WorkerStatus::Idle };
        let mut state = self.lock();
        state.inboxes[me].status = status;
        loop {
            if self.is_stopped() {
                return Event::Stopped;
            }
            if let Some(packet) = self.pop(&mut state, me) {
                return Event::Packet(packet);
            }
            if state.is_quiet() {
                self.wake_all();
                if !state.end_back_off() {
                    // This is final: only busy workers send.
                    return Event::Finished;
                }
            }
            // Another worker may have ended the back-off.
            if state.inboxes[me].status == WorkerStatus::Busy {
                return Event::AllIdle;
            }
            let left = until.map(|until| until.saturating_duration_since(Instant::now()));
            state = match left {
                Some(left) if left.is_zero() => {
                    state.inboxes[me].status = WorkerStatus::Busy;
                    return Event::BackOffEnded;
                }
                Some(left) => {
                    let woken = self.wake[me].wait_timeout(state, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self.wake[me].wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends all waiting, from any thread.
    pub(crate) fn stop(&self) {
        let _nobody_begins_to_wait = self.lock();
        self.stopped.store(true, Ordering::SeqCst);
        self.wake_all();
    }

    /// True once [`PacketQueues::stop`] was called.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// A guard that stops all workers if its thread panics, so that no worker waits for a dead one.
    pub(crate) fn stop_on_panic(&self) -> StopOnPanic<'_, M> {
        StopOnPanic(self)
    }
}

/// See [`PacketQueues::stop_on_panic`].
pub(crate) struct StopOnPanic<'e, M>(&'e PacketQueues<M>);

impl<M> Drop for StopOnPanic<'_, M> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.stop();
        }
    }
}

/// All orders of thread execution, explored by a model checker: `make loom`.
#[cfg(all(test, loom))]
mod models {
    use loom::sync::Arc;

    use super::*;

    fn packet() -> Packet<()> {
        Packet { partition: 0, messages: (), bytes: 10 }
    }

    /// Sends, receiving packets while the queue is full; returns how many it received.
    fn send(exchange: &PacketQueues<()>, me: usize, to: usize) -> u64 {
        let (mut next, mut taken) = (packet(), 0);
        while let Err(back) = exchange.post(to, next) {
            next = back;
            match exchange.take(me) {
                Some(_) => taken += 1,
                None => exchange.wait_for_space(me, to),
            }
        }
        taken
    }

    /// Receives packets until no worker has anything left to do; returns how many. Answers the
    /// first `answers` of them.
    fn settle(exchange: &PacketQueues<()>, me: usize, mut answers: u64) -> u64 {
        let mut taken = 0;
        loop {
            match exchange.wait(me, None) {
                Event::Packet(_) => taken += 1,
                Event::Finished => return taken,
                Event::Stopped | Event::AllIdle | Event::BackOffEnded => unreachable!(),
            }
            if answers > 0 {
                answers -= 1;
                taken += send(exchange, me, 1 - me);
            }
        }
    }

    /// Later than the end of any model.
    fn late() -> Option<Instant> {
        Instant::now().checked_add(std::time::Duration::from_secs(1 << 20))
    }

    /// Runs `one` and `other` as the two workers.
    fn workers(
        max_bytes: usize,
        one: impl Fn(&PacketQueues<()>) -> u64 + Sync + Send + Copy + 'static,
        other: impl Fn(&PacketQueues<()>) -> u64 + Sync + Send + Copy + 'static,
        check: impl Fn(u64, u64) + Sync + Send + 'static,
    ) {
        loom::model(move || {
            let exchange = Arc::new(PacketQueues::new(2, max_bytes));
            exchange.begin();
            let theirs = Arc::clone(&exchange);
            let thread = loom::thread::spawn(move || other(&theirs));
            let (taken, others) = (one(&exchange), thread.join().unwrap());
            check(taken, others);
        });
    }

    #[test]
    fn nobody_settles_before_the_answer_to_a_packet_was_taken_in() {
        let one = |exchange: &PacketQueues<()>| send(exchange, 0, 1) + settle(exchange, 0, 0);
        workers(
            1 << 20,
            one,
            |exchange| settle(exchange, 1, 1),
            |one, other| assert_eq!((one, other), (1, 1)),
        );
    }

    #[test]
    fn full_queues_on_both_sides_neither_lose_packets_nor_block() {
        let work = |me: usize| {
            move |exchange: &PacketQueues<()>| {
                let taken = send(exchange, me, 1 - me) + send(exchange, me, 1 - me);
                taken + settle(exchange, me, 0)
            }
        };
        workers(1, work(0), work(1), |one, other| assert_eq!((one, other), (2, 2)));
    }

    #[test]
    fn back_off_ends_when_nobody_works_and_not_before_the_answer() {
        // A worker that has the work of one packet left, and waits for more packets before it does
        // the work.
        let backed_off = |exchange: &PacketQueues<()>| {
            let mut taken = 0;
            loop {
                match exchange.wait(0, late()) {
                    Event::Packet(_) => taken += 1,
                    Event::AllIdle => break,
                    Event::BackOffEnded | Event::Finished | Event::Stopped => unreachable!(),
                }
            }
            assert_eq!(taken, 1);
            taken + send(exchange, 0, 1) + settle(exchange, 0, 0)
        };
        let other = |exchange: &PacketQueues<()>| send(exchange, 1, 0) + settle(exchange, 1, 0);
        workers(1 << 20, backed_off, other, |one, other| assert_eq!((one, other), (1, 1)));
    }

    #[test]
    fn two_workers_in_back_off_both_go_on() {
        let backed_off = |me: usize| {
            move |exchange: &PacketQueues<()>| {
                assert!(matches!(exchange.wait(me, late()), Event::AllIdle));
                settle(exchange, me, 0)
            }
        };
        workers(1 << 20, backed_off(0), backed_off(1), |one, other| {
            assert_eq!((one, other), (0, 0))
        });
    }

    #[test]
    fn a_worker_after_its_back_off_works_and_nobody_settles_before_it_has() {
        // A worker that continues at once with its remaining work, whether or not a packet arrives
        // first.
        let hasty = |exchange: &PacketQueues<()>| {
            let mut taken = 0;
            loop {
                match exchange.wait(0, Some(Instant::now())) {
                    Event::Packet(_) => taken += 1,
                    Event::BackOffEnded | Event::AllIdle => break,
                    Event::Finished | Event::Stopped => unreachable!(),
                }
            }
            taken + send(exchange, 0, 1) + settle(exchange, 0, 0)
        };
        let other = |exchange: &PacketQueues<()>| send(exchange, 1, 0) + settle(exchange, 1, 0);
        workers(1 << 20, hasty, other, |one, other| assert_eq!((one, other), (1, 1)));
    }

    #[test]
    fn one_ends_its_back_off_while_the_other_is_still_in_it() {
        let work = |me: usize, until: fn() -> Option<Instant>| {
            move |exchange: &PacketQueues<()>| {
                let mut taken = 0;
                while let Event::Packet(_) = exchange.wait(me, until()) {
                    taken += 1;
                }
                taken + send(exchange, me, 1 - me) + settle(exchange, me, 0)
            }
        };
        workers(1 << 20, work(0, || Some(Instant::now())), work(1, late), |one, other| {
            assert_eq!((one, other), (1, 1))
        });
    }

    #[test]
    fn a_stop_ends_both_waits() {
        let one = |exchange: &PacketQueues<()>| {
            exchange.stop();
            0
        };
        let other = |exchange: &PacketQueues<()>| {
            let first = exchange.post(0, packet());
            assert!(first.is_ok());
            exchange.wait_for_space(1, 0);
            assert!(matches!(exchange.wait(1, None), Event::Stopped));
            0
        };
        workers(1, one, other, |_, _| ());
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use super::*;

    /// Workers that receive `n` send two packets of `n - 1` to others, as soon as there is space.
    fn flood(workers: usize, max_bytes: usize, depth: u8) -> u64 {
        let (exchange, taken) = (PacketQueues::new(workers, max_bytes), AtomicU64::new(0));
        exchange.begin();
        let work = |me: usize| {
            let mut todo = if me == 0 { vec![depth] } else { Vec::new() };
            // The remaining work of odd workers, which use back-off.
            let mut later = Vec::new();
            let mut random = me;
            loop {
                while let Some(number) = todo.pop() {
                    taken.fetch_add(1, Ordering::Relaxed);
                    for _ in 0..if number == 0 { 0 } else { 2 } {
                        random = (random * 5 + 3) % 1009;
                        let to = random % workers;
                        let mut packet = Packet { partition: 0, messages: number - 1, bytes: 10 };
                        while let Err(back) = exchange.post(to, packet) {
                            packet = back;
                            match exchange.take(me) {
                                Some(packet) => todo.push(packet.messages),
                                None => exchange.wait_for_space(me, to),
                            }
                        }
                    }
                }
                // Some back-offs end before others.
                let back_off = Duration::from_micros(random as u64 % 100);
                match exchange.wait(me, (!later.is_empty()).then(|| Instant::now() + back_off)) {
                    Event::Packet(packet) if me % 2 == 1 => later.push(packet.messages),
                    Event::Packet(packet) => todo.push(packet.messages),
                    Event::Finished => return,
                    Event::AllIdle | Event::BackOffEnded => todo.append(&mut later),
                    Event::Stopped => unreachable!(),
                }
            }
        };
        std::thread::scope(|scope| {
            (0..workers).for_each(|me| _ = scope.spawn(move || work(me)));
        });
        taken.into_inner()
    }

    #[test]
    fn work_ends_when_all_is_done_and_not_before_however_small_the_queues() {
        for (workers, max_bytes) in [(1, 1), (2, 1), (3, 25), (4, 1 << 20)] {
            for depth in [0, 1, 9] {
                assert_eq!(
                    flood(workers, max_bytes, depth),
                    (1 << (depth + 1)) - 1,
                    "{workers} {max_bytes}"
                );
            }
        }
    }

    #[test]
    fn a_stop_ends_all_waiting_and_loses_nothing() {
        let exchange = PacketQueues::new(2, 1);
        exchange.begin();
        let packet = || Packet { partition: 3, messages: (), bytes: 2 };
        exchange.post(1, packet()).unwrap();
        assert!(exchange.post(1, packet()).is_err());
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| exchange.wait_for_space(0, 1));
            std::thread::sleep(std::time::Duration::from_millis(20));
            exchange.stop();
            waiting.join().unwrap();
        });
        assert!(matches!(exchange.wait(1, None), Event::Stopped));
        exchange.begin();
        assert!(matches!(exchange.wait(1, None), Event::Packet(packet) if packet.partition == 3));
    }
}
