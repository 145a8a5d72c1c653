//! Type erasure of numeric programs, so that vertices on stores are compiled for a few sizes of
//! states, not for every program.
//!
//! States and sums are passed as words of 64 bits: the bytes of the program's own types, then
//! zeros.

use std::sync::{Mutex, PoisonError};

use brimful_engine::vertex::batch::process_vertices;
use brimful_engine::vertex::program::{BATCH, Edges};
use brimful_engine::{
    Aggregate, Combiner, Globals, Isolated, Mode, Program, SignalOf, SumOf, Thresholds, Turn,
    Vertex,
};
use brimful_graph::Index;
use brimful_store::Resources;
use brimful_store::checkpoint::{Draft, Saved};
use brimful_store::scratch::ScratchArray;
use bytemuck::{Pod, Zeroable};
use serde::{Deserialize, Serialize};

use crate::error::Failure;

/// Writes values of the program's type.
fn put<T: Pod>(words: &mut [u64], values: &[T]) {
    let (own, rest) = bytemuck::cast_slice_mut(words).split_at_mut(size_of_val(values));
    own.copy_from_slice(bytemuck::cast_slice(values));
    // Skipped for most types, which fill their words; this runs for every edge.
    if !rest.is_empty() {
        rest.fill(0_u8);
    }
}

/// Reads a value of the program's type.
fn get<T: Pod>(words: &[u64]) -> T {
    bytemuck::pod_read_unaligned(&bytemuck::cast_slice(words)[..size_of::<T>()])
}

/// Appends `len` values of the program's type to `values`.
fn append<T: Pod>(values: &mut Vec<T>, words: &[u64], len: usize) {
    let bytes = &bytemuck::cast_slice::<_, u8>(words)[..len * size_of::<T>()];
    values.extend(bytes.chunks_exact(size_of::<T>()).map(bytemuck::pod_read_unaligned::<T>));
}

/// Writes values to an array.
fn write<T: Pod + Send>(
    array: &mut ScratchArray<T>,
    at: usize,
    values: &[T],
) -> brimful_store::Result<()> {
    match array.in_memory_mut().and_then(|array| array.get_mut(at..at + values.len())) {
        Some(place) => place.copy_from_slice(values),
        None => array.windows().write(at, values)?,
    }
    Ok(())
}

/// The properties of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct ProgramTraits {
    /// Number of words of a state, together with the signal that a program in batches returns.
    pub(super) state: usize,
    /// Number of words of a sum.
    pub(super) sum: usize,
    pub(super) is_full: bool,
    pub(super) needs_degrees: bool,
    pub(super) needs_external: bool,
    pub(super) self_loops: bool,
    /// The number of vertices that collect together; 1 if each collects alone.
    pub(super) batch: usize,
    /// The indexes of the program, in its order.
    pub(super) indexes: &'static [Index],
}

/// A vertex that takes a turn together with others.
pub(super) struct VertexTurn<'w> {
    pub(super) vertex: Vertex,
    /// Its cell, of as many words as [`ProgramTraits::state`].
    pub(super) words: &'w mut [u64],
    /// The sum that it collects; `None`: of no signals.
    pub(super) sum: Option<&'w [u64]>,
    /// Set by the turn: the vertex is due to signal.
    pub(super) is_due: bool,
}

/// The progress of a program; floats are stored as raw bits.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ProgramProgress {
    superstep: u64,
    round: u64,
    aggregate: Vec<u64>,
    isolated: Option<Vec<u8>>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    extra_state: String,
}

/// A program whose types are erased. `state` and `sum` have at least as many words as
/// [`ProgramTraits`] says.
pub(super) trait Erased: Send + Sync {
    fn facts(&self) -> ProgramTraits;

    /// Supersteps completed.
    fn superstep(&self) -> u64;
    /// Lets the program act before the first states.
    fn begin(&mut self) -> brimful_engine::Result<()>;
    /// Lets the program act before the next superstep; false ends the run.
    fn next_superstep(&mut self) -> brimful_engine::Result<bool>;
    /// Ends a superstep, and counts it unless the program was idle.
    fn end_superstep(&mut self);
    /// Replaces the aggregate by the sum of the contributions since the last call.
    fn end_turn(&mut self);
    /// Takes the contributions since the last call, for all processes of the run.
    fn contribution(&self) -> Vec<u64>;
    /// Adds the contributions of all processes, in order; false if they are of another program.
    fn merge(&self, of_all: &[Vec<u64>]) -> bool;
    /// True if the coming superstep walks an index.
    fn walks(&self, index: Index) -> bool;
    fn converged(&self) -> bool;
    fn begins_with_superstep(&self) -> bool;
    /// True if another round began; [`Erased::begin_round`] then computes its states.
    fn another_round(&mut self) -> bool;

    /// Computes the states with which vertices start.
    fn start(&self, turns: &mut [VertexTurn<'_>]) -> Result<(), Failure>;
    /// Computes the state with which a vertex begins another round; true if it is due to signal.
    fn begin_round(&self, vertex: Vertex, state: &mut [u64]) -> Result<bool, Failure>;
    /// Computes the signal along an edge; false for silence.
    fn signal(
        &self,
        vertex: Vertex,
        state: &[u64],
        weight: f64,
        sum: &mut [u64],
    ) -> Result<bool, Failure>;
    fn combine(&self, waiting: &mut [u64], sum: &[u64]) -> Result<(), Failure>;
    fn signalled(&self, state: &mut [u64]);
    /// Computes the state after a collect, of no signals if there is no sum; true if its score
    /// exceeds `threshold`.
    fn collect(
        &self,
        vertex: Vertex,
        state: &mut [u64],
        sum: Option<&[u64]>,
        threshold: f64,
    ) -> Result<bool, Failure>;
    /// [`Erased::collect`] for a batch of vertices.
    fn collect_together(&self, turns: &mut [VertexTurn<'_>]) -> Result<(), Failure>;
    fn urgency(&self, state: &[u64]) -> f64;
    fn collect_score(&self, state: &[u64], sum: Option<&[u64]>) -> f64;

    /// Stores a state in the result.
    fn keep(&mut self, id: u64, state: &[u64]) -> brimful_store::Result<()>;
    /// Reads a state of the result.
    fn kept(&self, id: u64, state: &mut [u64]) -> brimful_store::Result<()>;
    /// Adds the result to a checkpoint.
    fn draft(&self, draft: &mut Draft, resources: &Resources) -> brimful_store::Result<()>;
    /// Restores the result from a checkpoint.
    fn restore(&mut self, saved: &mut Saved, resources: &Resources) -> brimful_store::Result<()>;
    fn progress(&self) -> brimful_engine::Result<ProgramProgress>;
    /// Resumes from `progress`; false if it is of another program.
    fn restore_progress(&mut self, progress: &ProgramProgress) -> brimful_engine::Result<bool>;
}

/// A program, its global values, and the result.
pub(super) struct Typed<'p, P: Program> {
    program: &'p P,
    /// See [`Program::state_len`].
    state_len: usize,
    pub(super) globals: Globals<P::Aggregate>,
    /// The contributions of each worker's vertices to the aggregate.
    partials: Vec<Mutex<P::Aggregate>>,
    /// States of the vertices with edges; on disk if the vertices are.
    pub(super) states: ScratchArray<P::State>,
    /// The last signals of the same vertices, if checkpoints need them. A program that takes
    /// batches returns signals together with states, so its cells keep both.
    signals: Option<ScratchArray<SignalOf<P>>>,
    thresholds: Thresholds,
    pub(super) isolated: Isolated<P::State>,
}

impl<'p, P: Program> Typed<'p, P> {
    /// A program on `vertices` vertices, with room for its result.
    pub(super) fn new(
        program: &'p P,
        vertices: u64,
        (states, signals): (ScratchArray<P::State>, Option<ScratchArray<SignalOf<P>>>),
        thresholds: Thresholds,
        workers: usize,
    ) -> Self {
        Self {
            program,
            state_len: program.state_len(),
            globals: Globals { vertices, superstep: 0, round: 0, aggregate: P::Aggregate::NOTHING },
            partials: (0..workers).map(|_| Mutex::new(P::Aggregate::NOTHING)).collect(),
            states,
            signals,
            thresholds,
            isolated: Isolated::Initial,
        }
    }

    /// The words of a cell that hold the state, and those that hold the signal of a program that
    /// takes batches.
    fn cell<'w>(&self, words: &'w mut [u64]) -> (&'w mut [u64], &'w mut [u64]) {
        words.split_at_mut(self.state_words())
    }

    /// Number of words of a state.
    fn state_words(&self) -> usize {
        (self.state_len * size_of::<P::State>()).div_ceil(8)
    }

    /// Calls a program that takes batches for one vertex; true if the vertex is due to signal.
    fn process_alone(
        &self,
        turn: Turn<'_, SumOf<P>>,
        vertex: Vertex,
        words: &mut [u64],
    ) -> Result<bool, Failure> {
        let settings = (&self.globals, self.thresholds);
        let (mut state, mut signals) = (Vec::new(), [P::Combiner::SILENCE]);
        append(&mut state, words, self.state_len);
        self.add(process_vertices(
            self.program.batched(),
            turn,
            &[vertex],
            (&mut state, &mut signals),
            settings,
        )?);
        Ok(self.write_cell(words, &state, signals[0]))
    }

    /// Calls a program that takes batches for vertices that start or collect together.
    fn process_together(
        &self,
        is_start: bool,
        turns: &mut [VertexTurn<'_>],
    ) -> Result<(), Failure> {
        let settings = (&self.globals, self.thresholds);
        let vertices: Vec<Vertex> = turns.iter().map(|turn| turn.vertex).collect();
        let sums: Vec<SumOf<P>> = turns.iter().map(|turn| Self::sum(turn.sum)).collect();
        let mut states: Vec<P::State> = Vec::with_capacity(turns.len() * self.state_len);
        turns.iter().for_each(|turn| append(&mut states, turn.words, self.state_len));
        let mut signals = vec![P::Combiner::SILENCE; turns.len()];
        let turn = if is_start { Turn::First } else { Turn::Collect(&sums[..]) };
        self.add(process_vertices(
            self.program.batched(),
            turn,
            &vertices,
            (&mut states, &mut signals),
            settings,
        )?);
        let states = states.chunks_exact(self.state_len);
        for (turn, (state, signal)) in turns.iter_mut().zip(states.zip(signals)) {
            turn.is_due = self.write_cell(turn.words, state, signal);
        }
        Ok(())
    }

    /// Writes the outcome of a turn; true if the vertex is due to signal.
    fn write_cell(&self, words: &mut [u64], state: &[P::State], signal: SignalOf<P>) -> bool {
        let (state_words, signal_words) = self.cell(words);
        put(state_words, state);
        let is_due = P::MODE == Mode::Full || signal != P::Combiner::SILENCE;
        // Without supersteps, a vertex may collect nothing new before it signals: then the signal
        // of the previous collect stays.
        if is_due {
            put(signal_words, &[signal]);
        }
        is_due
    }

    /// Begins with a state that was computed; true if the vertex is due to signal.
    fn begin(&self, vertex: Vertex, first: P::State, words: &mut [u64]) -> bool {
        let vertex = Vertex { external: 0, ..vertex };
        self.add(self.program.aggregate(vertex, first, first));
        let is_due = P::MODE == Mode::Full || !self.is_silent(vertex, first);
        put(words, &[if is_due { first } else { self.program.signalled(first) }]);
        is_due
    }

    /// Adds to the aggregate of the superstep, or of the round.
    fn add(&self, part: P::Aggregate) {
        if size_of::<P::Aggregate>() == 0 {
            return;
        }
        // Each worker uses its own entry.
        let worker = rayon::current_thread_index().unwrap_or(0) % self.partials.len().max(1);
        if let Some(partial) = self.partials.get(worker) {
            let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
            *partial = partial.merge(part);
        }
    }

    /// The sum of all contributions since the last call.
    fn take_partials(&self) -> P::Aggregate {
        let take = |partial: &Mutex<P::Aggregate>| {
            let mut partial = partial.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *partial, P::Aggregate::NOTHING)
        };
        self.partials.iter().map(take).fold(P::Aggregate::NOTHING, P::Aggregate::merge)
    }

    fn sum(words: Option<&[u64]>) -> SumOf<P> {
        words.map_or(P::Combiner::IDENTITY, get)
    }

    fn is_silent(&self, vertex: Vertex, state: P::State) -> bool {
        self.program.signal(vertex, state) == P::Combiner::SILENCE
    }
}

impl<P: Program> Erased for Typed<'_, P> {
    fn facts(&self) -> ProgramTraits {
        ProgramTraits {
            state: self.state_words()
                + usize::from(P::BATCHED) * size_of::<SignalOf<P>>().div_ceil(8),
            sum: size_of::<SumOf<P>>().div_ceil(8),
            is_full: P::MODE == Mode::Full,
            needs_degrees: self.program.needs_degrees(),
            needs_external: P::NEEDS_EXTERNAL,
            self_loops: P::SELF_LOOPS,
            batch: if P::BATCHED { BATCH } else { 1 },
            indexes: self.program.indexes(),
        }
    }

    fn superstep(&self) -> u64 {
        self.globals.superstep
    }

    fn begin(&mut self) -> brimful_engine::Result<()> {
        self.program.begin(&mut self.globals)
    }

    fn next_superstep(&mut self) -> brimful_engine::Result<bool> {
        self.program.next_superstep(&mut self.globals)
    }

    fn end_superstep(&mut self) {
        let aggregate = self.globals.aggregate;
        self.end_turn();
        match self.program.was_idle(&self.globals) {
            true => self.globals.aggregate = aggregate,
            false => self.globals.superstep += 1,
        }
    }

    fn end_turn(&mut self) {
        self.globals.aggregate = self.take_partials().after(self.globals.aggregate);
    }

    fn contribution(&self) -> Vec<u64> {
        let mut words = Vec::new();
        self.take_partials().save(&mut words);
        words
    }

    fn merge(&self, of_all: &[Vec<u64>]) -> bool {
        for words in of_all {
            let Some(part) = P::Aggregate::restore(&mut words.iter().copied()) else {
                return false;
            };
            self.add(part);
        }
        true
    }

    fn walks(&self, index: Index) -> bool {
        self.program.walks(index, &self.globals)
    }

    fn converged(&self) -> bool {
        self.program.converged(&self.globals)
    }

    fn begins_with_superstep(&self) -> bool {
        self.program.begins_with_superstep()
    }

    fn another_round(&mut self) -> bool {
        let is_another = self.program.another_round(&self.globals);
        self.globals.round += u64::from(is_another);
        is_another
    }

    fn start(&self, turns: &mut [VertexTurn<'_>]) -> Result<(), Failure> {
        if P::BATCHED {
            return self.process_together(true, turns);
        }
        for turn in turns {
            let first = self.program.initial(turn.vertex, &self.globals);
            turn.is_due = self.begin(turn.vertex, first, turn.words);
        }
        Ok(())
    }

    fn begin_round(&self, vertex: Vertex, state: &mut [u64]) -> Result<bool, Failure> {
        let first = self.program.begin_round(vertex, get(state), &self.globals);
        Ok(self.begin(vertex, first, state))
    }

    fn signal(
        &self,
        vertex: Vertex,
        state: &[u64],
        weight: f64,
        sum: &mut [u64],
    ) -> Result<bool, Failure> {
        let (said, is_silent): (SignalOf<P>, _) = if P::BATCHED {
            let said = get(&state[self.state_words()..]);
            // A sum of floats is silent at -0.0, and 0.0 is a signal.
            let silence = P::Combiner::SILENCE;
            (said, bytemuck::bytes_of(&said) == bytemuck::bytes_of(&silence))
        } else {
            let said = self.program.signal(vertex, get(state));
            (said, said == P::Combiner::SILENCE)
        };
        if is_silent {
            return Ok(false);
        }
        let mut sums = [P::Combiner::IDENTITY];
        if P::BATCHED && self.program.batched().takes_edges() {
            self.program.batched().edges(Edges {
                sources: &[0],
                targets: &[0],
                weights: Some(&[weight]),
                first_source: vertex.id,
                first_target: 0,
                signals: &[said],
                sums: &mut sums,
            })?;
        } else {
            sums[0] = P::Combiner::combine(sums[0], self.program.along(said, weight));
        }
        put(sum, &sums);
        Ok(true)
    }

    fn combine(&self, waiting: &mut [u64], sum: &[u64]) -> Result<(), Failure> {
        let mut merged = [get(waiting)];
        self.program.merge(&mut merged, &[get(sum)])?;
        put(waiting, &merged);
        Ok(())
    }

    fn signalled(&self, state: &mut [u64]) {
        // A program that takes batches returns the state after its signal.
        if !P::BATCHED {
            let after = self.program.signalled(get(state));
            put(state, &[after]);
        }
    }

    fn collect(
        &self,
        vertex: Vertex,
        state: &mut [u64],
        sum: Option<&[u64]>,
        threshold: f64,
    ) -> Result<bool, Failure> {
        if P::BATCHED {
            let sums = [Self::sum(sum)];
            return self.process_alone(Turn::Collect(&sums), vertex, state);
        }
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
                // Its signal is silence, so no superstep follows.
                new = self.program.signalled(new);
            }
        }
        put(state, &[new]);
        Ok(is_due)
    }

    fn collect_together(&self, turns: &mut [VertexTurn<'_>]) -> Result<(), Failure> {
        if P::BATCHED {
            self.process_together(false, turns)
        } else {
            Err("vertices of this program collect alone".into())
        }
    }

    fn urgency(&self, state: &[u64]) -> f64 {
        self.program.urgency(get(state))
    }

    fn collect_score(&self, state: &[u64], sum: Option<&[u64]>) -> f64 {
        self.program.collect_score(get(state), Self::sum(sum))
    }

    fn keep(&mut self, id: u64, state: &[u64]) -> brimful_store::Result<()> {
        let at = id as usize * self.state_len;
        let mut values = Vec::with_capacity(self.state_len);
        append(&mut values, state, self.state_len);
        if at >= self.states.len() {
            self.isolated = Isolated::Same(values);
            return Ok(());
        }
        let signal_words = self.state_words();
        if let Some(signals) = &mut self.signals {
            write(signals, id as usize, &[get(&state[signal_words..])])?;
        }
        write(&mut self.states, at, &values)
    }

    fn kept(&self, id: u64, state: &mut [u64]) -> brimful_store::Result<()> {
        let at = id as usize * self.state_len;
        let (state, signal) = self.cell(state);
        if at < self.states.len() {
            let mut kept = vec![P::State::zeroed(); self.state_len];
            self.states.read(at, &mut kept)?;
            put(state, &kept);
            if let Some(signals) = &self.signals {
                let mut kept = [P::Combiner::SILENCE];
                signals.read(id as usize, &mut kept)?;
                put(signal, &kept);
            }
        } else if let Isolated::Same(kept) = &self.isolated {
            put(state, kept);
        }
        Ok(())
    }

    fn draft(&self, draft: &mut Draft, resources: &Resources) -> brimful_store::Result<()> {
        if let Some(signals) = &self.signals {
            draft.array(signals, resources)?;
        }
        draft.array(&self.states, resources)
    }

    fn restore(&mut self, saved: &mut Saved, resources: &Resources) -> brimful_store::Result<()> {
        if let Some(signals) = &mut self.signals {
            saved.array(signals, resources)?;
        }
        saved.array(&mut self.states, resources)
    }

    fn progress(&self) -> brimful_engine::Result<ProgramProgress> {
        let mut aggregate = Vec::new();
        self.globals.aggregate.save(&mut aggregate);
        Ok(ProgramProgress {
            superstep: self.globals.superstep,
            round: self.globals.round,
            aggregate,
            isolated: self.isolated.to_bytes(),
            extra_state: self.program.extra_state()?,
        })
    }

    fn restore_progress(&mut self, progress: &ProgramProgress) -> brimful_engine::Result<bool> {
        let Some(aggregate) = P::Aggregate::restore(&mut progress.aggregate.iter().copied()) else {
            return Ok(false);
        };
        let Some(isolated) = Isolated::of_bytes(progress.isolated.as_deref(), self.state_len)
        else {
            return Ok(false);
        };
        self.isolated = isolated;
        self.globals.aggregate = aggregate;
        (self.globals.superstep, self.globals.round) = (progress.superstep, progress.round);
        self.program.restore_extra_state(&progress.extra_state)?;
        Ok(true)
    }
}
