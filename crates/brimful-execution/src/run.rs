//! An execution: a program on the stores of its partitions, run step by step or until it ends.
//!
//! Invariant: between two calls no vertex is on loan and no worker is busy. The remaining work lies
//! in lists, packets and queues, and the next call continues it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use brimful_engine::result::stats::Swept;
use brimful_engine::{Reason, Thresholds};
use brimful_store::memory::resident_bytes;
use brimful_store::{DiskFolder, Error as StoreError, Reservation, Resources};
use brimful_vertices::{Borrower, Loan, VertexStore};

use crate::context::{Phase, WorkerContext};
use crate::error::{Error, Result, element, no_element};
use crate::exchange::PacketQueues;
use crate::hubs::Hubs;
use crate::lists::{IdSet, IncomingSignals, MINIMUM_BYTES, Mailbox, SpillFile};
use crate::loading::PriorRun;
use crate::loading::{Loaded, Loading};
use crate::options::{ExecutionOptions, ListLocation, RunLimits, RunMode, Scheduler};
use crate::outbox::Outbox;
use crate::partitioner::{Owners, Partitioner, assign};
use crate::process_partitions::{Connected, ProcessPartitions};
use crate::program::{VertexOf, VertexProgram};
use crate::stats::{ExecutionStats, SuperstepFigures, add};
use crate::worker::{Announced, Worker};
use crate::{asynchronous, synchronous};

/// Bytes of a full packet, and of a queue of packets.
pub(crate) const PACKET_BYTES: usize = 16 << 10;
const QUEUE_BYTES: usize = 16 * PACKET_BYTES;
/// Minimum bytes of the lists of a partition.
const MIN_LISTS: u64 = 3 * MINIMUM_BYTES;

/// Bytes of packets in flight between `workers`.
fn packet_bytes(workers: usize, partitions: usize) -> u64 {
    (workers * (partitions * 2 * PACKET_BYTES + QUEUE_BYTES)) as u64
}

/// The part of `free` bytes that lists may take.
pub(crate) fn list_bytes(free: u64, has_fixed_stores: bool) -> u64 {
    if has_fixed_stores { free / 8 * 7 } else { free / 2 }
}

/// The minimum memory of an execution in bytes, in addition to its stores.
pub(crate) fn minimum_bytes(workers: usize, partitions: usize) -> u64 {
    partitions as u64 * MIN_LISTS + packet_bytes(workers, partitions)
}

/// The stores of each worker, by slot; `slots` are worker and slot of each store.
fn deal_stores<S>(
    stores: impl Iterator<Item = S>,
    slots: &[(usize, usize)],
    workers: usize,
) -> Result<Vec<Vec<S>>> {
    let mut dealt: Vec<BTreeMap<usize, S>> = (0..workers).map(|_| BTreeMap::new()).collect();
    for (store, (worker, slot)) in stores.zip(slots) {
        element(&mut dealt, *worker, "worker")?.insert(*slot, store);
    }
    Ok(dealt.into_iter().map(|stores| stores.into_values().collect()).collect())
}

/// A program, its vertices, and their remaining work.
pub struct Execution<'r, P: VertexProgram, S> {
    pub(crate) program: P,
    partitioner: Partitioner<P::Id>,
    pub(crate) owners: Owners,
    pub(crate) workers: Vec<Mutex<Worker<P, S>>>,
    exchange: PacketQueues<Outbox<P>>,
    thresholds: Thresholds,
    pub(crate) resources: &'r Resources,
    /// The connection to the other processes, if several make the run.
    pub(crate) connected: Option<Connected>,
    spill: Arc<SpillFile>,
    #[expect(dead_code, reason = "holds the memory of the lists")]
    memory: Reservation,
    #[expect(dead_code, reason = "holds the memory of the largest vertices")]
    hubs: Option<Hubs>,
    /// Stores have one of this many bytes of the budget; lists have the others.
    bytes_for_one: u64,
    /// The edges of each partition, a vertex counting as one.
    edges: Vec<u64>,
    has_failed: bool,
    is_due: bool,
    duplicates: u64,
    prior: PriorRun,
    pub(crate) supersteps: u64,
    reason: Option<Reason>,
    seconds: f64,
    by_superstep: Vec<SuperstepFigures>,
    /// The figures of the last superstep.
    latest: SuperstepFigures,
    /// Signals sent and edges visited by all processes, if several make the run.
    of_all: Swept,
}

impl<'r, P: VertexProgram, S: VertexStore<VertexOf<P>>> Execution<'r, P, S> {
    /// Starts the execution of a loaded program; every vertex decides whether it signals, except in
    /// a resumed run. Partitions are assigned to workers so that all have about equally many edges.
    ///
    /// # Errors
    /// A budget error if the lists do not fit; [`Error::Usage`] for thresholds that are not
    /// numbers.
    pub fn start(loading: Loading<'r, P, S>, options: &ExecutionOptions) -> Result<Self> {
        let thresholds = Thresholds::new(options.signal_threshold, options.collect_threshold);
        if thresholds.signal.is_nan() || thresholds.collect.is_nan() {
            return Err(Error::Usage("a threshold must be a number".into()));
        }
        let resources = loading.resources;
        let Loaded { program, partitioner, mut parts, duplicates, prior, due, hubs, processes } =
            loading.finish()?;
        let relays = processes.as_ref().map_or(0, ProcessPartitions::relays);
        let (count, workers) = ((parts.len() + relays) as u64, resources.workers());
        let packets = packet_bytes(workers, parts.len().max(relays));
        let batches = processes.as_ref().map_or(0, ProcessPartitions::minimum_bytes);
        for (store, _) in &mut parts {
            store.leave_free(MIN_LISTS * count + packets + batches)?;
        }
        let first = processes.as_ref().map_or(0, |processes| processes.own().start);
        let connected =
            processes.map(|processes| Connected::new(processes, resources)).transpose()?;
        let each = match options.lists {
            ListLocation::Memory => {
                let most = list_bytes(resources.budget.free(), options.has_fixed_stores);
                (most.saturating_sub(packets) / count.max(1)).max(MIN_LISTS)
            }
            ListLocation::Disk => MIN_LISTS,
        };
        let memory = resources
            .budget
            .reserve(each * count + packets, "for the lists of vertices that wait")?;
        let folder = options.scratch_folder.clone().unwrap_or_else(std::env::temp_dir);
        let spill = Arc::new(SpillFile::new(&DiskFolder::new(folder), &resources.job)?);

        let edges: Vec<u64> = parts.iter().map(|(_, edges)| *edges).collect();
        let own_slots = assign(&edges, workers);
        let stores = deal_stores(parts.into_iter().map(|(store, _)| store), &own_slots, workers)?;
        let owners = match relays {
            0 => Owners::new(own_slots),
            _ => Owners::with_relays(own_slots, first, (relays, workers)),
        };
        let worker = |(me, stores): (usize, Vec<S>)| {
            let to_signal = stores.iter().map(|_| IdSet::new(each / 3, &spill)).collect();
            let mailboxes = owners
                .partitions_of(me)
                .map(|partition| partitioner.first(partition))
                .map(|first| Mailbox::new(each / 3 * 2, program.delivery(), first, &spill))
                .collect();
            let context = WorkerContext::new(me, owners.count(), to_signal, mailboxes);
            Ok(Mutex::new(Worker {
                stores,
                context,
                incoming: IncomingSignals::new(&resources.budget)?,
                announced: Announced::default(),
                is_fresh: due.is_none(),
            }))
        };
        let workers = stores.into_iter().enumerate().map(worker).collect::<Result<Vec<_>>>()?;
        let mut execution = Self {
            program,
            partitioner,
            owners,
            exchange: PacketQueues::new(workers.len(), QUEUE_BYTES),
            workers,
            thresholds,
            resources,
            connected,
            spill,
            memory,
            hubs,
            bytes_for_one: match options.lists {
                ListLocation::Memory => 8 / (8 - list_bytes(8, options.has_fixed_stores)),
                ListLocation::Disk => 1,
            },
            edges,
            has_failed: false,
            is_due: false,
            duplicates,
            supersteps: prior.supersteps,
            prior,
            reason: None,
            seconds: 0.0,
            by_superstep: Vec::new(),
            latest: SuperstepFigures::default(),
            of_all: Swept::default(),
        };
        if let Some(mut due) = due {
            due.for_each(|id| {
                let (_, worker, slot) = execution.locate(&id)?;
                worker.context.mark(slot, &id, None)
            })?;
        }
        Ok(execution)
    }

    /// Runs until nothing is left to do, a limit is reached, or `until` returns true. `until` is
    /// called after each superstep, or at intervals (see [`RunLimits`]), and may read all vertices.
    /// Another run continues where this one ended.
    ///
    /// # Errors
    /// [`Error::Program`], which names the vertex, if the program fails or panics. After any error
    /// the vertices can be read, but not run.
    pub fn run(
        &mut self,
        mode: RunMode,
        limits: &RunLimits,
        mut until: impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<Reason> {
        if self.connected.is_some() && mode != RunMode::Synchronous {
            return Err(Error::Usage("a run on a cluster needs synchronous supersteps".into()));
        }
        if self.connected.is_some() && limits.max_seconds.is_some() {
            return Err(Error::Usage(
                "a time limit does not apply to a run on a cluster; leave it out".into(),
            ));
        }
        let begin = Instant::now();
        let reason = match mode {
            RunMode::Synchronous => self.run_synchronously(limits, begin, &mut until),
            RunMode::Asynchronous(schedule) => {
                self.run_asynchronously(schedule, limits, begin, &mut until)
            }
        };
        self.seconds += begin.elapsed().as_secs_f64();
        self.reason = reason.as_ref().ok().copied();
        reason
    }

    fn run_synchronously(
        &mut self,
        limits: &RunLimits,
        begin: Instant,
        until: &mut impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<Reason> {
        let mut done = 0;
        while done < limits.max_supersteps {
            let is_late =
                limits.max_seconds.is_some_and(|most| begin.elapsed().as_secs_f64() >= most);
            if done > 0 && is_late {
                return Ok(Reason::MaxSeconds);
            }
            self.is_due = self.superstep()?;
            done += 1;
            if until(self)? {
                return Ok(Reason::Converged);
            }
            if !self.is_due {
                return Ok(Reason::NoChange);
            }
        }
        Ok(Reason::MaxSupersteps)
    }

    fn run_asynchronously(
        &mut self,
        schedule: Scheduler,
        limits: &RunLimits,
        begin: Instant,
        until: &mut impl FnMut(&mut Self) -> Result<bool>,
    ) -> Result<Reason> {
        if self.program.is_full() {
            return Err(Error::Usage(
                "every vertex of this program takes part in every superstep, so it would never end \
                 without supersteps; run it synchronously"
                    .into(),
            ));
        }
        let end =
            limits.max_seconds.map(|most| begin + Duration::from_secs_f64(most.clamp(0.0, 1e9)));
        loop {
            // A time that the clock cannot hold never comes.
            let check = Instant::now().checked_add(limits.check_every);
            let deadline = [check, end].into_iter().flatten().min();
            let before = self.totals()?;
            self.phase(deadline, |phase, worker| asynchronous::work(phase, worker, schedule))
                .map_err(|error| self.outgrown(error, &before))?;
            let is_settled = !self.exchange.is_stopped();
            if until(self)? {
                return Ok(Reason::Converged);
            }
            if is_settled {
                return Ok(Reason::NoChange);
            }
            if end.is_some_and(|end| Instant::now() >= end) {
                return Ok(Reason::MaxSeconds);
            }
        }
    }

    /// Runs one synchronous superstep; true if a vertex is due to signal after it.
    ///
    /// # Errors
    /// As [`Execution::run`].
    pub fn superstep(&mut self) -> Result<bool> {
        self.resources.job.begin(format!("superstep {}", self.supersteps + 1), 0);
        let traffic = self.resources.job.traffic();
        let (before, moved, begin) = (self.totals()?, traffic.moved(), Instant::now());
        self.phase(None, synchronous::signal).map_err(|error| self.outgrown(error, &before))?;
        self.together(Self::pass_on)?;
        let signalled = Instant::now();
        self.phase(None, synchronous::collect).map_err(|error| self.outgrown(error, &before))?;
        let collect_seconds = signalled.elapsed().as_secs_f64();
        self.supersteps += 1;
        let moved = traffic.moved() - moved;
        let figures = SuperstepFigures {
            superstep: self.supersteps,
            signal_seconds: (signalled - begin).as_secs_f64(),
            collect_seconds,
            memory_bytes: resident_bytes(),
            bytes_read: Some(moved.bytes_read()),
            bytes_written: Some(moved.bytes_written()),
            ..SuperstepFigures::default()
        };
        let figures = figures.between(&before, &self.totals()?);
        let mut is_due = self.program.is_full();
        for worker in self.workers() {
            is_due |= worker.context.is_any_due()?;
        }
        let (is_due, figures) = self.together(|run| run.agree(is_due, figures))?;
        figures.log();
        self.latest = figures;
        // Every signal passes a relay.
        self.of_all += Swept { signals: figures.signals, edges: figures.edges };
        if self.by_superstep.len() < SuperstepFigures::MOST {
            self.by_superstep.push(figures);
        }
        Ok(is_due)
    }

    /// Does work that all processes of the run do together. After an error they are not in step.
    fn together<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let result = work(self);
        self.has_failed |= result.is_err();
        result
    }

    /// Delivers and collects all signals in flight; no vertex signals. Afterwards the remaining
    /// work is in the to-signal lists.
    ///
    /// # Errors
    /// As [`Execution::run`].
    pub fn drain_signals(&mut self) -> Result<()> {
        self.phase(None, asynchronous::drain_signals)
    }

    /// Runs all workers, each on its own thread, until all have returned.
    fn phase(
        &mut self,
        deadline: Option<Instant>,
        work: impl Fn(&Phase<'_, P>, &mut Worker<P, S>) -> Result<()> + Sync,
    ) -> Result<()> {
        if self.has_failed {
            return Err(Error::Usage(
                "this execution failed before; load the vertices again".into(),
            ));
        }
        let phase = Phase {
            program: &self.program,
            partitioner: &self.partitioner,
            owners: &self.owners,
            exchange: &self.exchange,
            packet_bytes: PACKET_BYTES,
            thresholds: self.thresholds,
            job: &self.resources.job,
            deadline,
        };
        self.exchange.begin();
        let workers = &self.workers;
        let results = self.resources.broadcast(|index| {
            let _nobody_waits_for_the_dead = phase.exchange.stop_on_panic();
            let worker =
                workers.get(index).ok_or_else(|| no_element(index, workers.len(), "worker"))?;
            let mut worker = worker.lock().unwrap_or_else(PoisonError::into_inner);
            let mut result = Ok(());
            phase.program.within_phase(&mut || result = work(&phase, &mut worker));
            result.inspect_err(|_| phase.exchange.stop())
        });
        let result: Result<()> = results.into_iter().collect();
        self.has_failed = result.is_err();
        result
    }

    /// The error of stores that outgrew the budget since `before`. It names the needs of all
    /// vertices, extrapolated from those that acted.
    fn outgrown(&mut self, error: Error, before: &ExecutionStats) -> Error {
        let Error::Store(StoreError::Budget { needed, purpose, .. }) = &error else { return error };
        let Ok(now) = self.totals() else { return error };
        let collected = now.vertices_collected - before.vertices_collected;
        let signalled = now.vertices_signalled - before.vertices_signalled;
        let acted = if collected > 0 { collected } else { signalled.max(1) };
        let vertices =
            self.workers().flat_map(|one| &one.stores).map(VertexStore::len).sum::<u64>();
        let grown = now.store_memory_bytes.saturating_sub(before.store_memory_bytes);
        let others = vertices.saturating_sub(acted) as f64 / acted as f64;
        let budget = &self.resources.budget;
        let missing = needed.saturating_sub(budget.smallest(budget.limit()));
        let stores = missing.saturating_add((grown as f64 * others) as u64);
        // Memory of records has unused parts. States that grew may grow again in later supersteps.
        let more = stores.saturating_add(stores / 4).saturating_mul(self.bytes_for_one);
        let more = more.max(budget.limit() / 2);
        match budget.require(budget.limit().saturating_add(more), purpose) {
            Err(refused) => refused.estimated().into(),
            Ok(()) => error,
        }
    }

    pub(crate) fn workers(&mut self) -> impl Iterator<Item = &mut Worker<P, S>> {
        self.workers
            .iter_mut()
            .map(|worker| worker.get_mut().unwrap_or_else(PoisonError::into_inner))
    }

    /// True if a vertex was due to signal after the last superstep.
    pub fn is_due(&self) -> bool {
        self.is_due
    }

    /// The program.
    pub fn program(&self) -> &P {
        &self.program
    }

    /// The program, for changes between two runs.
    pub fn program_mut(&mut self) -> &mut P {
        &mut self.program
    }

    /// Lends all vertices, one after another.
    ///
    /// # Errors
    /// Errors of the stores and of `borrower`.
    pub fn for_each(&mut self, borrower: &mut Borrower<'_, VertexOf<P>>) -> Result<()> {
        self.for_each_by(|_, vertex| Ok(borrower(vertex)?))
    }

    /// The assignment of vertices to partitions.
    pub fn partitioner(&self) -> &Partitioner<P::Id> {
        &self.partitioner
    }

    /// The edges of each partition at the start, a vertex counting as one.
    pub fn partition_edges(&self) -> &[u64] {
        &self.edges
    }

    /// Makes all vertices as durable as their stores can.
    ///
    /// # Errors
    /// Errors of the stores.
    pub fn sync(&mut self) -> Result<()> {
        self.for_each_store(|store| Ok(store.sync()?))
    }

    /// Removes a vertex; false if it does not exist.
    ///
    /// # Errors
    /// Errors of its store.
    pub fn remove(&mut self, id: &P::Id) -> Result<bool> {
        let (_, worker, slot) = self.locate(id)?;
        let store = element(&mut worker.stores, slot, "store")?;
        Ok(store.remove(id)?)
    }

    /// Lets a vertex collect in the next superstep, even without signals.
    ///
    /// # Errors
    /// Errors of spilling.
    pub fn request_collect(&mut self, id: &P::Id) -> Result<()> {
        let (program, worker, slot) = self.locate(id)?;
        element(&mut worker.context.mailboxes, slot, "mailbox")?.request(program, id)
    }

    /// The program, the worker of a vertex, and the slot of its partition there.
    fn locate(&mut self, id: &P::Id) -> Result<(&P, &mut Worker<P, S>, usize)> {
        let partition = self.partitioner.partition(id, &mut Vec::new(), self.owners.count());
        let (worker, slot) = self.owners.own_slot(partition)?;
        let worker = element(&mut self.workers, worker, "worker")?;
        let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
        Ok((&self.program, worker, slot))
    }

    /// Calls `each` for every vertex that is due to signal.
    pub(crate) fn for_each_due(&mut self, mut each: impl FnMut(P::Id) -> Result<()>) -> Result<()> {
        let lists = self.workers().flat_map(|worker| &mut worker.context.to_signal);
        lists.into_iter().try_for_each(|list| list.for_each(&mut each))
    }

    /// Calls `work` for the store of each partition.
    pub(crate) fn for_each_store(
        &mut self,
        mut work: impl FnMut(&mut S) -> Result<()>,
    ) -> Result<()> {
        self.workers().flat_map(|worker| &mut worker.stores).try_for_each(&mut work)
    }

    /// [`Execution::for_each`], with access to the program.
    pub(crate) fn for_each_by(
        &mut self,
        mut borrower: impl FnMut(&mut P, &mut Loan<'_, VertexOf<P>>) -> Result<()>,
    ) -> Result<()> {
        for worker in &mut self.workers {
            let worker = worker.get_mut().unwrap_or_else(PoisonError::into_inner);
            for store in &mut worker.stores {
                store.for_each(&mut |vertex| Ok(borrower(&mut self.program, vertex)?))?;
            }
        }
        Ok(())
    }

    /// Lets all vertices decide again whether they signal.
    pub fn restart(&mut self) {
        self.workers().for_each(|worker| worker.is_fresh = true);
    }

    /// Signals sent and edges visited so far by this execution.
    pub(crate) fn swept(&mut self) -> Swept {
        if self.connected.is_some() {
            return self.of_all;
        }
        self.workers().fold(Swept::default(), |mut swept, worker| {
            swept += worker.context.swept();
            swept
        })
    }

    /// The figures of the last superstep, of all processes.
    pub(crate) fn latest(&self) -> SuperstepFigures {
        self.latest
    }

    /// Vertices that were skipped in loading, because their id existed already.
    pub fn duplicates(&self) -> u64 {
        self.duplicates
    }

    /// Figures so far.
    ///
    /// # Errors
    /// Errors of the stores.
    pub fn stats(&mut self) -> Result<ExecutionStats> {
        let totals = self.totals()?;
        Ok(ExecutionStats { by_superstep: self.by_superstep.clone(), ..totals })
    }

    /// [`Execution::stats`] without those of single supersteps.
    fn totals(&mut self) -> Result<ExecutionStats> {
        let mut stats = ExecutionStats {
            supersteps: self.supersteps,
            reason: self.reason,
            seconds: self.seconds,
            signals_sent: self.prior.signals_sent,
            edges_visited: self.prior.edges_visited,
            spilled_bytes: self.spill.written_bytes(),
            ..ExecutionStats::default()
        };
        self.workers().try_for_each(|worker| add(&mut stats, worker))?;
        if let Some(others) = self.connected.as_ref().and_then(Connected::others) {
            stats.add_counts(others);
        }
        Ok(stats)
    }
}
