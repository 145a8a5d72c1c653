//! The vertex phase: setting and collecting the states of one interval.
//!
//! Called from many threads, each interval by one at a time. Invariant: within an interval vertices
//! are taken in id order, so that their parts of the aggregate are merged in that order.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use brimful_graph::Graph;
use brimful_graph::ids::offsets::IdOffsets;
use brimful_store::scratch::Windows;

use crate::error::Result;
use crate::traverse::frontier::ACTIVITY_BITS;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::attributes::VertexAttributes;
use crate::vertex::batch::process_in_batches;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Globals, Mode, Program, SignalOf, SumOf, Vertex};
use crate::vertex::turn::{Partial, Thresholds, Turn};

/// Out-degrees, or sums of outgoing weights, by vertex.
pub(crate) enum Degrees {
    Unused,
    Resident(Vec<u32>),
    ResidentStrengths(Vec<f64>),
    OnDisk,
}

impl Degrees {
    /// Degree and strength of a vertex; zero if the program does not need them.
    pub(crate) fn of(&self, vertex: u64) -> (u64, f64) {
        match self {
            Self::Resident(degrees) => {
                (degrees[vertex as usize].into(), degrees[vertex as usize].into())
            }
            Self::ResidentStrengths(strengths) => (0, strengths[vertex as usize]),
            Self::Unused => (0, 0.0),
            Self::OnDisk => unreachable!("only dense supersteps read degrees from disk"),
        }
    }
}

/// Out-degrees, or sums of outgoing weights, of the vertices in one interval.
#[derive(Clone, Copy)]
enum IntervalDegrees<'a> {
    Unused,
    Degrees(&'a [u32]),
    Wide(&'a [u64]),
    Strengths(&'a [f64]),
}

impl IntervalDegrees<'_> {
    /// Vertex `at` of the interval whose first is `start`.
    #[inline]
    fn vertex(self, start: usize, at: usize, external: u64) -> Vertex {
        let (degree, strength) = match self {
            Self::Unused => (0, 0.0),
            Self::Degrees(degrees) => (degrees[at].into(), degrees[at].into()),
            Self::Wide(degrees) => (degrees[at], degrees[at] as f64),
            Self::Strengths(strengths) => (0, strengths[at]),
        };
        Vertex { id: (start + at) as u64, degree, strength, external }
    }

    /// Appends the vertices of a range, in a loop for each kind of degrees. A single loop would
    /// write each vertex to memory twice and wait for it, a tenth of the time of a kernel.
    fn list(self, start: usize, external: &[u64], range: Range<usize>, out: &mut Vec<Vertex>) {
        let id = |at: usize| (start + at) as u64;
        let external = |at: usize| external.get(at).copied().unwrap_or(0);
        match self {
            Self::Unused => out.extend(range.map(|at| Vertex {
                id: id(at),
                degree: 0,
                strength: 0.0,
                external: external(at),
            })),
            Self::Degrees(degrees) => {
                out.extend(degrees[range.clone()].iter().zip(range).map(|(degree, at)| Vertex {
                    id: id(at),
                    degree: (*degree).into(),
                    strength: (*degree).into(),
                    external: external(at),
                }));
            }
            Self::Wide(_) | Self::Strengths(_) => {
                out.extend(range.map(|at| self.vertex(start, at, external(at))));
            }
        }
    }
}

/// One worker's scratch buffers, for windows of arrays on disk.
pub(crate) struct CollectBuffers<P: Program> {
    states: Vec<P::State>,
    signals: Vec<SignalOf<P>>,
    attributes: VertexAttributes,
}

impl<P: Program> Default for CollectBuffers<P> {
    fn default() -> Self {
        Self { states: vec![], signals: vec![], attributes: VertexAttributes::default() }
    }
}

/// Collects vertices, interval by interval, from many threads.
pub(crate) struct Collector<'c, P: Program> {
    pub(crate) program: &'c P,
    pub(crate) graph: &'c Graph,
    pub(crate) weighted: bool,
    pub(crate) degrees: &'c Degrees,
    pub(crate) states: Windows<'c, P::State>,
    pub(crate) next: Windows<'c, SignalOf<P>>,
    pub(crate) activity: Option<&'c [AtomicBool]>,
    /// True if signal scores are summed.
    pub(crate) scored: bool,
    /// For each interval, whether all of its vertices are finished.
    pub(crate) finished: &'c [bool],
    pub(crate) globals: Globals<P::Aggregate>,
    pub(crate) thresholds: Thresholds,
    pub(crate) offsets: Option<IdOffsets>,
    pub(crate) window: usize,
}

impl<P: Program> Collector<'_, P> {
    /// Lets the vertices of one interval take `turn`.
    pub(crate) fn interval(
        &self,
        interval: usize,
        turn: Turn<'_, SumOf<P>>,
        buffers: &mut CollectBuffers<P>,
    ) -> Result<Partial<P::Aggregate>> {
        if self.finished[interval] {
            return self.silence(interval, buffers);
        }
        let start = interval * self.window;
        let length = self.window.min(self.graph.connected() as usize - start);
        let range = start..start + length;
        let CollectBuffers { states, signals, attributes } = buffers;
        match (self.degrees, self.weighted) {
            (Degrees::OnDisk, true) => attributes.read_strengths(self.graph, &range)?,
            (Degrees::OnDisk, false) => attributes.read_degrees(self.graph, &range)?,
            _ => {}
        }
        let external = match turn {
            Turn::First => {
                attributes.read_external(self.graph, self.offsets, &range)?;
                &attributes.external[..]
            }
            Turn::Round | Turn::Collect(_) => &[],
        };
        let interval_degrees = match self.degrees {
            Degrees::Unused => IntervalDegrees::Unused,
            Degrees::Resident(all) => IntervalDegrees::Degrees(&all[range]),
            Degrees::ResidentStrengths(all) => IntervalDegrees::Strengths(&all[range]),
            Degrees::OnDisk if self.weighted => IntervalDegrees::Strengths(&attributes.strengths),
            Degrees::OnDisk => IntervalDegrees::Wide(&attributes.degrees),
        };
        self.step(interval, turn, interval_degrees, external, states, signals)
    }

    /// Sets the signals of one interval to silence.
    pub(crate) fn silence(
        &self,
        interval: usize,
        buffers: &mut CollectBuffers<P>,
    ) -> Result<Partial<P::Aggregate>> {
        self.next.overwrite(interval, &mut buffers.signals, |signals| {
            signals.fill(P::Combiner::SILENCE)
        })?;
        Ok(Partial::default())
    }

    /// Sets or collects the states of one interval.
    fn step(
        &self,
        interval: usize,
        turn: Turn<'_, SumOf<P>>,
        interval_degrees: IntervalDegrees<'_>,
        external: &[u64],
        state_buffer: &mut Vec<P::State>,
        signal_buffer: &mut Vec<SignalOf<P>>,
    ) -> Result<Partial<P::Aggregate>> {
        let start = interval * self.window;
        let mut partial = Partial::default();
        let vertex =
            |at: usize| interval_degrees.vertex(start, at, external.get(at).copied().unwrap_or(0));
        let mut step = |states: &mut [P::State], signals: &mut [SignalOf<P>]| -> Result<()> {
            let partial = &mut partial;
            if P::BATCHED {
                let list = |range: Range<usize>, out: &mut Vec<Vertex>| {
                    interval_degrees.list(start, external, range, out);
                };
                process_in_batches(
                    self.program.batched(),
                    turn,
                    states,
                    &mut *signals,
                    &list,
                    &self.globals,
                    self.thresholds,
                    partial,
                )?;
                signals
                    .iter()
                    .enumerate()
                    .for_each(|(at, signal)| self.count(start + at, *signal, partial));
                // A batched program does not report which vertices are finished.
                partial.open += signals.len() as u64;
                return Ok(());
            }
            match turn {
                Turn::Collect(sums) => {
                    self.collect(start, interval_degrees, states, signals, sums, partial)
                }
                Turn::First => self.begin(start, true, states, signals, partial, &vertex),
                Turn::Round => self.begin(start, false, states, signals, partial, &vertex),
            }
            Ok(())
        };
        let fill = |states: &mut [P::State]| {
            self.next.overwrite(interval, signal_buffer, |signals| step(states, signals))
        };
        match turn {
            Turn::First => self.states.overwrite(interval, state_buffer, fill),
            Turn::Round | Turn::Collect(_) => self.states.update(interval, state_buffer, fill),
        }???;
        Ok(partial)
    }

    /// Sets states without collecting: the first ones or those of another round.
    fn begin(
        &self,
        start: usize,
        is_first: bool,
        states: &mut [P::State],
        signals: &mut [SignalOf<P>],
        partial: &mut Partial<P::Aggregate>,
        vertex: &dyn Fn(usize) -> Vertex,
    ) {
        for (at, (state, signal)) in states.iter_mut().zip(signals).enumerate() {
            let vertex = vertex(at);
            let first = match is_first {
                true => self.program.initial(vertex, &self.globals),
                // Full programs have no rounds: a resumed run signals its states again.
                false if P::MODE == Mode::Full => *state,
                false => self.program.begin_round(vertex, *state, &self.globals),
            };
            *signal = self.program.signal(vertex, first);
            partial.aggregate =
                partial.aggregate.merge(self.program.aggregate(vertex, first, first));
            *state = self.program.signalled(first);
            self.count(start + at, *signal, partial);
            partial.open +=
                u64::from(*signal != P::Combiner::SILENCE || !self.program.finished(*state));
        }
    }

    /// Lets vertices from `start` on collect, in a loop for each kind of degrees: a test of the
    /// kind at every vertex took a third of the time.
    fn collect(
        &self,
        start: usize,
        interval_degrees: IntervalDegrees<'_>,
        states: &mut [P::State],
        signals: &mut [SignalOf<P>],
        sums: &[SumOf<P>],
        partial: &mut Partial<P::Aggregate>,
    ) {
        let id = start as u64;
        let record = |at: usize, signal: SignalOf<P>, partial: &mut Partial<P::Aggregate>| {
            self.count(start + at, signal, partial);
        };
        let how = (self.thresholds, self.scored);
        let arrays = (states, signals);
        let (program, globals) = (self.program, &self.globals);
        match interval_degrees {
            IntervalDegrees::Unused => {
                let vertex =
                    |at| Vertex { id: id + at as u64, degree: 0, strength: 0.0, external: 0 };
                collect_all(program, globals, how, arrays, sums, vertex, record, partial);
            }
            IntervalDegrees::Degrees(degrees) => {
                let vertex = |at: usize| {
                    let (degree, strength) = (degrees[at].into(), degrees[at].into());
                    Vertex { id: id + at as u64, degree, strength, external: 0 }
                };
                collect_all(program, globals, how, arrays, sums, vertex, record, partial);
            }
            IntervalDegrees::Strengths(_) | IntervalDegrees::Wide(_) => {
                let vertex = |at: usize| interval_degrees.vertex(start, at, 0);
                collect_all(program, globals, how, arrays, sums, vertex, record, partial);
            }
        }
    }

    /// Counts and marks a vertex that signals.
    #[inline]
    fn count(&self, vertex: usize, signal: SignalOf<P>, partial: &mut Partial<P::Aggregate>) {
        // In full mode all vertices signal.
        if P::MODE != Mode::Full
            && let Some(map) = self.activity
            && signal != P::Combiner::SILENCE
        {
            partial.signalling += 1;
            map[vertex >> ACTIVITY_BITS].store(true, Ordering::Relaxed);
        }
    }
}

/// Lets all vertices of an interval collect. In a separate function, so that the compiler knows
/// that the loop's reads and writes do not overlap, and hoists the constants. (References within a
/// tuple prevent it.)
#[inline(never)]
fn collect_all<P: Program>(
    program: &P,
    globals: &Globals<P::Aggregate>,
    (thresholds, scored): (Thresholds, bool),
    (states, signals): (&mut [P::State], &mut [SignalOf<P>]),
    sums: &[SumOf<P>],
    vertex: impl Fn(usize) -> Vertex,
    record: impl Fn(usize, SignalOf<P>, &mut Partial<P::Aggregate>),
    partial: &mut Partial<P::Aggregate>,
) {
    for (at, ((state, signal), sum)) in states.iter_mut().zip(signals).zip(sums).enumerate() {
        let old = *state;
        *signal = turn(program, vertex(at), state, *sum, globals, thresholds, partial);
        if scored {
            partial.score += program.signal_score(old, *state);
        }
        record(at, *signal, partial);
    }
}

/// Lets one vertex collect and signal; returns its signal.
#[inline(always)]
pub(crate) fn turn<P: Program>(
    program: &P,
    vertex: Vertex,
    state: &mut P::State,
    sum: SumOf<P>,
    globals: &Globals<P::Aggregate>,
    thresholds: Thresholds,
    partial: &mut Partial<P::Aggregate>,
) -> SignalOf<P> {
    let old = *state;
    if P::MODE == Mode::Full {
        let new = program.collect(vertex, old, sum, globals);
        partial.aggregate = partial.aggregate.merge(program.aggregate(vertex, old, new));
        *state = program.signalled(new);
        return program.signal(vertex, new);
    }
    let collects = program.collect_score(old, sum) > thresholds.collect;
    let new = if collects { program.collect(vertex, old, sum, globals) } else { old };
    if bytemuck::bytes_of(&old) != bytemuck::bytes_of(&new) {
        partial.aggregate = partial.aggregate.merge(program.aggregate(vertex, old, new));
    }
    let signals = program.signal_score(old, new) > thresholds.signal;
    *state = if signals { program.signalled(new) } else { new };
    if signals { program.signal(vertex, new) } else { P::Combiner::SILENCE }
}
