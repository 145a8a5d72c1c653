//! A numeric program behind one seam, so that vertices on stores are compiled for a few sizes of
//! states and not for every program.
//!
//! States and sums go through as words of 64 bits: the bytes of the program's own types, and zeros
//! after them.

use std::sync::{Mutex, PoisonError};

use brimful_engine::{Aggregate, Combiner, Globals, Isolated, Mode, Program, SumOf, Vertex};
use brimful_graph::Index;
use brimful_store::Resources;
use brimful_store::checkpoint::{Draft, Saved};
use brimful_store::huge::HugeArray;
use bytemuck::Pod;
use serde::{Deserialize, Serialize};

/// Writes a value of a program's type.
fn put<T: Pod>(words: &mut [u64], value: &T) {
    let (own, rest) = bytemuck::cast_slice_mut(words).split_at_mut(size_of::<T>());
    own.copy_from_slice(bytemuck::bytes_of(value));
    // Most types fill their words, and this is for every edge.
    if !rest.is_empty() {
        rest.fill(0_u8);
    }
}

/// Reads it again.
fn get<T: Pod>(words: &[u64]) -> T {
    bytemuck::pod_read_unaligned(&bytemuck::cast_slice(words)[..size_of::<T>()])
}

/// What holds for all vertices of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct Facts {
    /// Words of a state and of a sum.
    pub(super) state: usize,
    pub(super) sum: usize,
    pub(super) is_full: bool,
    pub(super) needs_degrees: bool,
    pub(super) needs_external: bool,
    pub(super) self_loops: bool,
    /// The shards that it walks, in the order of the program.
    pub(super) indexes: &'static [Index],
}

/// How far a program is; numbers that are not whole as their bits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Progress {
    superstep: u64,
    round: u64,
    aggregate: Vec<u64>,
    isolated: Option<Vec<u8>>,
}

/// A program of any types. `state` and `sum` are as many words as [`Facts`] says, or more.
pub(super) trait Erased: Send + Sync {
    fn facts(&self) -> Facts;

    /// Supersteps completed.
    fn superstep(&self) -> u64;
    /// Ends a superstep, of which there is one more.
    fn end_superstep(&mut self);
    /// Makes what was added since the last time the aggregate.
    fn end_turn(&mut self);
    /// Whether the coming superstep walks a shard.
    fn walks(&self, index: Index) -> bool;
    fn converged(&self) -> bool;
    /// True if another round began, whose states are to be made by [`Erased::begin`].
    fn another_round(&mut self) -> bool;

    /// Makes the state with which a vertex starts, or begins another round; true if it has
    /// something to signal.
    fn begin(&self, vertex: Vertex, state: &mut [u64], is_start: bool) -> bool;
    /// Makes the signal along an edge; false for silence.
    fn signal(&self, vertex: Vertex, state: &[u64], weight: f64, sum: &mut [u64]) -> bool;
    fn combine(&self, held: &mut [u64], sum: &[u64]);
    fn signalled(&self, state: &mut [u64]);
    /// Makes the state after a collect, of no signals if there is no sum; true if there is now more
    /// to signal than `threshold`.
    fn collect(
        &self,
        vertex: Vertex,
        state: &mut [u64],
        sum: Option<&[u64]>,
        threshold: f64,
    ) -> bool;
    fn urgency(&self, state: &[u64]) -> f64;
    fn collect_score(&self, state: &[u64], sum: Option<&[u64]>) -> f64;

    /// Keeps a state of the result.
    fn keep(&mut self, id: u64, state: &[u64]);
    /// A state that was kept.
    fn kept(&self, id: u64, state: &mut [u64]);
    /// Appends all that were kept to a checkpoint.
    fn draft(
        &self,
        draft: &mut Draft,
        window: usize,
        resources: &Resources,
    ) -> brimful_store::Result<()>;
    /// Keeps those of a checkpoint.
    fn restore(
        &mut self,
        saved: &mut Saved,
        window: usize,
        resources: &Resources,
    ) -> brimful_store::Result<()>;
    fn progress(&self) -> Progress;
    /// Goes on from there; false if that is none of this program.
    fn go_on(&mut self, progress: &Progress) -> bool;
}

/// A program, what is known to all its vertices, and the result.
pub(super) struct Typed<'p, P: Program> {
    program: &'p P,
    pub(super) globals: Globals<P::Aggregate>,
    /// What the vertices of each worker add to the aggregate.
    partials: Vec<Mutex<P::Aggregate>>,
    /// Of the vertices with edges.
    pub(super) states: HugeArray<P::State>,
    pub(super) isolated: Isolated<P::State>,
}

impl<'p, P: Program> Typed<'p, P> {
    /// For `vertices`, of which `connected` have edges.
    pub(super) fn new(program: &'p P, (vertices, connected): (u64, u64), workers: usize) -> Self {
        Self {
            program,
            globals: Globals { vertices, superstep: 0, round: 0, aggregate: P::Aggregate::NOTHING },
            partials: (0..workers).map(|_| Mutex::new(P::Aggregate::NOTHING)).collect(),
            states: HugeArray::zeroed(connected as usize),
            isolated: Isolated::Initial,
        }
    }

    /// Adds to the aggregate of the superstep, or of the round.
    fn add(&self, part: P::Aggregate) {
        if size_of::<P::Aggregate>() == 0 {
            return;
        }
        // Nobody else uses the worker's own.
        let worker = rayon::current_thread_index().unwrap_or(0) % self.partials.len().max(1);
        if let Some(partial) = self.partials.get(worker) {
            let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
            *partial = partial.merge(part);
        }
    }

    fn sum(words: Option<&[u64]>) -> SumOf<P> {
        words.map_or(P::Combiner::IDENTITY, get)
    }

    fn is_silent(&self, vertex: Vertex, state: P::State) -> bool {
        self.program.signal(vertex, state) == P::Combiner::SILENCE
    }
}

impl<P: Program> Erased for Typed<'_, P> {
    fn facts(&self) -> Facts {
        Facts {
            state: size_of::<P::State>().div_ceil(8),
            sum: size_of::<SumOf<P>>().div_ceil(8),
            is_full: P::MODE == Mode::Full,
            needs_degrees: P::NEEDS_DEGREES,
            needs_external: P::NEEDS_EXTERNAL,
            self_loops: P::SELF_LOOPS,
            indexes: self.program.indexes(),
        }
    }

    fn superstep(&self) -> u64 {
        self.globals.superstep
    }

    fn end_superstep(&mut self) {
        self.end_turn();
        self.globals.superstep += 1;
    }

    fn end_turn(&mut self) {
        let take = |partial: &mut Mutex<P::Aggregate>| {
            std::mem::replace(
                partial.get_mut().unwrap_or_else(PoisonError::into_inner),
                P::Aggregate::NOTHING,
            )
        };
        self.globals.aggregate =
            self.partials.iter_mut().map(take).fold(P::Aggregate::NOTHING, P::Aggregate::merge);
    }

    fn walks(&self, index: Index) -> bool {
        self.program.walks(index, &self.globals)
    }

    fn converged(&self) -> bool {
        self.program.converged(&self.globals)
    }

    fn another_round(&mut self) -> bool {
        let is_another = self.program.another_round(&self.globals);
        self.globals.round += u64::from(is_another);
        is_another
    }

    fn begin(&self, vertex: Vertex, state: &mut [u64], is_start: bool) -> bool {
        let first = match is_start {
            true => self.program.initial(vertex, &self.globals),
            false => self.program.begin_round(vertex, get(state), &self.globals),
        };
        let vertex = Vertex { external: 0, ..vertex };
        self.add(self.program.aggregate(vertex, first, first));
        let is_due = P::MODE == Mode::Full || !self.is_silent(vertex, first);
        put(state, &if is_due { first } else { self.program.signalled(first) });
        is_due
    }

    fn signal(&self, vertex: Vertex, state: &[u64], weight: f64, sum: &mut [u64]) -> bool {
        let said = self.program.signal(vertex, get(state));
        if said == P::Combiner::SILENCE {
            return false;
        }
        let signal = self.program.along(said, weight);
        put(sum, &P::Combiner::combine(P::Combiner::IDENTITY, signal));
        true
    }

    fn combine(&self, held: &mut [u64], sum: &[u64]) {
        let merged = P::Combiner::merge(get(held), get(sum));
        put(held, &merged);
    }

    fn signalled(&self, state: &mut [u64]) {
        let after = self.program.signalled(get(state));
        put(state, &after);
    }

    fn collect(
        &self,
        vertex: Vertex,
        state: &mut [u64],
        sum: Option<&[u64]>,
        threshold: f64,
    ) -> bool {
        let old: P::State = get(state);
        let mut new = self.program.collect(vertex, old, Self::sum(sum), &self.globals);
        let is_full = P::MODE == Mode::Full;
        if is_full || bytemuck::bytes_of(&old) != bytemuck::bytes_of(&new) {
            self.add(self.program.aggregate(vertex, old, new));
        }
        let mut is_due = false;
        if !is_full && self.program.signal_score(old, new) > threshold {
            is_due = !self.is_silent(vertex, new);
            if !is_due {
                // It has said nothing, which takes no superstep.
                new = self.program.signalled(new);
            }
        }
        put(state, &new);
        is_due
    }

    fn urgency(&self, state: &[u64]) -> f64 {
        self.program.urgency(get(state))
    }

    fn collect_score(&self, state: &[u64], sum: Option<&[u64]>) -> f64 {
        self.program.collect_score(get(state), Self::sum(sum))
    }

    fn keep(&mut self, id: u64, state: &[u64]) {
        match self.states.get_mut(id as usize) {
            Some(place) => *place = get(state),
            None => self.isolated = Isolated::Same(get(state)),
        }
    }

    fn kept(&self, id: u64, state: &mut [u64]) {
        match (self.states.get(id as usize), self.isolated) {
            (Some(kept), _) => put(state, kept),
            (None, Isolated::Same(kept)) => put(state, &kept),
            (None, Isolated::Initial) => {}
        }
    }

    fn draft(
        &self,
        draft: &mut Draft,
        window: usize,
        resources: &Resources,
    ) -> brimful_store::Result<()> {
        draft.records(&self.states, window, resources)
    }

    fn restore(
        &mut self,
        saved: &mut Saved,
        window: usize,
        resources: &Resources,
    ) -> brimful_store::Result<()> {
        saved.records(&mut self.states, window, resources)
    }

    fn progress(&self) -> Progress {
        let mut aggregate = Vec::new();
        self.globals.aggregate.save(&mut aggregate);
        Progress {
            superstep: self.globals.superstep,
            round: self.globals.round,
            aggregate,
            isolated: match &self.isolated {
                Isolated::Same(state) => Some(bytemuck::bytes_of(state).to_vec()),
                Isolated::Initial => None,
            },
        }
    }

    fn go_on(&mut self, progress: &Progress) -> bool {
        let Some(aggregate) = P::Aggregate::restore(&mut progress.aggregate.iter().copied()) else {
            return false;
        };
        let isolated = progress.isolated.as_deref().map(bytemuck::try_pod_read_unaligned);
        self.isolated = match isolated.transpose() {
            Ok(state) => state.map_or(Isolated::Initial, Isolated::Same),
            Err(_) => return false,
        };
        self.globals.aggregate = aggregate;
        (self.globals.superstep, self.globals.round) = (progress.superstep, progress.round);
        true
    }
}
