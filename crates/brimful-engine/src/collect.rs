//! The vertex phase: setting and collecting the states of one interval.
//!
//! Called from many threads, each interval by one at a time. Invariant: within an interval vertices are
//! taken in id order, so that what they add to the aggregate is added in that order.

use std::sync::atomic::{AtomicBool, Ordering};

use brimful_graph::Graph;
use brimful_store::scratch::Windows;

use crate::error::Result;
use crate::program::{Aggregate, Globals, Mode, Program, Vertex};
use crate::sweep::ACTIVITY_BITS;

/// Out-degrees, or sums of outgoing weights, by vertex.
pub(crate) enum Degrees {
    Unused,
    Resident(Vec<u32>),
    ResidentStrengths(Vec<f64>),
    OnDisk,
}

/// One worker's windows, for arrays that are on disk.
pub(crate) struct Room<P: Program> {
    states: Vec<P::State>,
    signals: Vec<P::Signal>,
    degrees: Vec<u64>,
    strengths: Vec<f64>,
    external: Vec<u64>,
}

impl<P: Program> Default for Room<P> {
    fn default() -> Self {
        Self { states: vec![], signals: vec![], degrees: vec![], strengths: vec![], external: vec![] }
    }
}

/// What collecting an interval adds up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Partial {
    pub(crate) aggregate: Aggregate,
    pub(crate) changed: u64,
}

/// Collects vertices, interval by interval, from many threads.
pub(crate) struct Collector<'c, P: Program> {
    pub(crate) program: &'c P,
    pub(crate) graph: &'c Graph,
    pub(crate) weighted: bool,
    pub(crate) degrees: &'c Degrees,
    pub(crate) states: Windows<'c, P::State>,
    pub(crate) next: Windows<'c, P::Signal>,
    pub(crate) activity: Option<&'c [AtomicBool]>,
    pub(crate) globals: Globals,
    pub(crate) smallest_key: u64,
    pub(crate) window: usize,
}

impl<P: Program> Collector<'_, P> {
    /// Collects one interval; without sums, sets its initial states.
    pub(crate) fn interval(
        &self,
        interval: usize,
        sums: Option<&mut [P::Sum]>,
        room: &mut Room<P>,
    ) -> Result<Partial> {
        let start = interval * self.window;
        let length = self.window.min(self.graph.connected() as usize - start);
        let Room { states: state_room, signals: signal_room, degrees, strengths, external } = room;
        self.read_degrees(start, length, degrees, strengths)?;
        let (wide, sums) = (&*degrees, sums.map(|sums| &sums[..length]));
        if sums.is_none() {
            self.read_external(start, length, external)?;
        }
        let external = &*external;
        let rooms = (state_room, signal_room);
        let vertex = |at: usize, degree: u64, strength: f64| Vertex {
            id: (start + at) as u64,
            degree,
            strength,
            external: 0,
        };
        // A loop for each kind of degrees: to tell them apart at every vertex took a third of its time.
        match self.degrees {
            Degrees::Unused => self.step(interval, sums, external, rooms, |at| vertex(at, 0, 0.0)),
            Degrees::Resident(all) => {
                let of = &all[start..start + length];
                self.step(interval, sums, external, rooms, |at| vertex(at, of[at].into(), of[at].into()))
            }
            Degrees::ResidentStrengths(all) => {
                let of = &all[start..start + length];
                self.step(interval, sums, external, rooms, |at| vertex(at, 0, of[at]))
            }
            Degrees::OnDisk if self.weighted => {
                self.step(interval, sums, external, rooms, |at| vertex(at, 0, strengths[at]))
            }
            Degrees::OnDisk => {
                self.step(interval, sums, external, rooms, |at| vertex(at, wide[at], wide[at] as f64))
            }
        }
    }

    /// Sets or collects the states of one interval.
    #[inline(always)]
    fn step(
        &self,
        interval: usize,
        sums: Option<&[P::Sum]>,
        external: &[u64],
        (state_room, signal_room): (&mut Vec<P::State>, &mut Vec<P::Signal>),
        vertex: impl Fn(usize) -> Vertex,
    ) -> Result<Partial> {
        let start = interval * self.window;
        let step = |states: &mut [P::State], signals: &mut [P::Signal]| match sums {
            None => self.initial(start, states, signals, external, vertex),
            Some(sums) => self.collect(start, states, signals, sums, vertex),
        };
        let fill = |states: &mut [P::State]| {
            self.next.overwrite(interval, signal_room, |signals| step(states, signals))
        };
        let result = match sums {
            None => self.states.overwrite(interval, state_room, fill),
            Some(_) => self.states.update(interval, state_room, fill),
        };
        Ok(result??)
    }

    fn initial(
        &self,
        start: usize,
        states: &mut [P::State],
        signals: &mut [P::Signal],
        external: &[u64],
        vertex: impl Fn(usize) -> Vertex,
    ) -> Partial {
        let mut partial = Partial::default();
        for (at, (state, signal)) in states.iter_mut().zip(signals).enumerate() {
            let vertex = Vertex { external: external.get(at).copied().unwrap_or(0), ..vertex(at) };
            *state = self.program.initial(vertex, &self.globals);
            *signal = self.program.signal(vertex, *state);
            partial.add(self.program.aggregate(vertex, *state, *state), true);
        }
        self.activate(start..start + states.len());
        partial
    }

    fn collect(
        &self,
        start: usize,
        states: &mut [P::State],
        signals: &mut [P::Signal],
        sums: &[P::Sum],
        vertex: impl Fn(usize) -> Vertex,
    ) -> Partial {
        let mut partial = Partial::default();
        for (at, ((state, signal), sum)) in states.iter_mut().zip(signals).zip(sums).enumerate() {
            let vertex = vertex(at);
            let new = self.program.collect(vertex, *state, *sum, &self.globals);
            let changed = P::MODE == Mode::Full || self.program.changed(*state, new);
            *signal = if changed { self.program.signal(vertex, new) } else { self.program.silence() };
            if changed && P::MODE == Mode::Idempotent {
                self.activate(start + at..start + at + 1);
            }
            partial.add(self.program.aggregate(vertex, *state, new), changed);
            *state = new;
        }
        partial
    }

    fn activate(&self, vertices: std::ops::Range<usize>) {
        let Some(map) = self.activity else { return };
        let last = vertices.end.saturating_sub(1) >> ACTIVITY_BITS;
        map[vertices.start >> ACTIVITY_BITS..=last]
            .iter()
            .for_each(|block| block.store(true, Ordering::Relaxed));
    }

    /// The places of the external ids of an interval, if the program wants them.
    fn read_external(&self, start: usize, length: usize, external: &mut Vec<u64>) -> Result<()> {
        if P::NEEDS_EXTERNAL {
            external.resize(length, 0);
            self.graph.external_ids(start as u64, external)?;
            let id_type = self.graph.id_type();
            external.iter_mut().for_each(|id| *id = id_type.order_key(*id).wrapping_sub(self.smallest_key));
        }
        Ok(())
    }

    fn read_degrees(
        &self,
        start: usize,
        length: usize,
        degrees: &mut Vec<u64>,
        strengths: &mut Vec<f64>,
    ) -> Result<()> {
        if !matches!(self.degrees, Degrees::OnDisk) {
            return Ok(());
        }
        if self.weighted {
            strengths.resize(length, 0.0);
            self.graph.strengths(start as u64, strengths)?;
        } else {
            degrees.resize(length, 0);
            self.graph.degrees(start as u64, degrees)?;
        }
        Ok(())
    }
}

impl Partial {
    #[inline]
    fn add(&mut self, aggregate: Aggregate, changed: bool) {
        self.aggregate.iter_mut().zip(aggregate).for_each(|(sum, part)| *sum += part);
        self.changed += u64::from(changed);
    }
}
