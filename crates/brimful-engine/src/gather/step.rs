//! What a superstep does with an item: lists are made, and its targets gathered.
//!
//! Targets are taken an item at a time, an interval or a part of one; of programs that settle an item may span
//! intervals, for the more vertices see each other's new states the fewer supersteps there are; and those items go one after
//! another, as many at a time as there are threads, and see what the ones before them have made. When it is known who is urgent, `urgent`
//! takes the place of items. Invariant: but for
//! those, a superstep reads the states of the one before alone.

use std::cmp::Reverse;
use std::ops::Range;

use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::{ScratchArray, Windows};

use super::Gather;
use super::edges::Shards;
use super::known::Known;
use super::lists::Lists;
use super::plan::Plan;
use super::spill::Spill;
use crate::aggregate::Aggregate;
use crate::error::Result;
use crate::program::Globals;
use crate::stats::Swept;

/// Everything a superstep hands to the next.
pub(super) struct Handed<G: Gather> {
    pub(super) states: ScratchArray<G::State>,
    pub(super) globals: Globals<G::Aggregate>,
}

/// What supersteps did.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Step {
    /// Neighbours gathered, and edges read.
    pub(super) swept: Swept,
    /// States that changed.
    pub(super) changed: u64,
    /// Vertices that are not settled.
    pub(super) open: u64,
}

impl std::ops::AddAssign for Step {
    fn add_assign(&mut self, other: Self) {
        self.swept += other.swept;
        self.changed += other.changed;
        self.open += other.open;
    }
}

/// What stays the same during a run.
pub(super) struct Fixed<'a, G: Gather> {
    pub(super) program: &'a G,
    pub(super) graph: &'a Graph,
    pub(super) resources: &'a Resources,
    pub(super) weighted: bool,
    pub(super) plan: Plan,
    pub(super) shards: Shards,
    /// Edges of intervals whose lists do not fit together.
    pub(super) spill: Option<Spill>,
    /// Lengths of lists.
    pub(super) lengths: ScratchArray<u32>,
}

/// What one worker works with.
pub(super) struct Room<G: Gather> {
    lists: Lists<G::State>,
    old: Vec<G::State>,
    new: Vec<G::State>,
    lengths: Vec<u32>,
    /// Targets that are gathered, one after the other.
    order: Vec<u32>,
    known: Known,
    own: G::Room,
}

impl<G: Gather> Default for Room<G> {
    fn default() -> Self {
        Self {
            lists: Lists::default(),
            old: Vec::new(),
            new: Vec::new(),
            lengths: Vec::new(),
            order: Vec::new(),
            known: Known::default(),
            own: G::Room::default(),
        }
    }
}

impl<G: Gather> Fixed<'_, G> {
    pub(super) fn is_settled(&self, state: G::State) -> bool {
        G::SETTLES && self.program.settled(state)
    }

    /// Cuts all vertices into items; lists of settled ones are not made.
    pub(super) fn cut(&self, states: &ScratchArray<G::State>) -> Result<Vec<Range<usize>>> {
        let (mut items, mut start, mut held) = (Vec::new(), 0, 0);
        let (mut lengths_room, mut states_room) = (Vec::new(), Vec::new());
        for interval in 0..self.shards.intervals() {
            self.resources.job.check()?;
            let range = self.shards.window(interval);
            let lengths = self.lengths.slice(range.clone(), &mut lengths_room)?;
            let states = states.slice(range.clone(), &mut states_room)?;
            for (vertex, (length, state)) in range.clone().zip(lengths.iter().zip(states)) {
                let length = if self.is_settled(*state) { 0 } else { u64::from(*length) };
                if held + length > self.plan.neighbours || (vertex - start) as u64 >= self.plan.targets {
                    items.push(start..vertex);
                    (start, held) = (vertex, 0);
                }
                held += length;
            }
            if !G::SETTLES || range.end as u64 == self.graph.connected() {
                items.push(start..range.end);
                (start, held) = (range.end, 0);
            }
        }
        Ok(items)
    }

    /// Gathers the targets of one item that are not settled. Their states go to `next`, or, if there is none, to the caller.
    pub(super) fn item(
        &self,
        targets: Range<usize>,
        handed: &Handed<G>,
        next: Option<&Windows<'_, G::State>>,
        room: &mut Room<G>,
    ) -> Result<(Step, Vec<G::State>)> {
        let Room { lists, old, new, lengths, order, known, own } = room;
        let (first, states) = (targets.start, &handed.states);
        let old = states.slice(targets.clone(), old)?;
        let lengths = self.lengths.slice(targets.clone(), lengths)?;
        let wanted =
            old.iter().zip(lengths).map(|(state, length)| Some(*length).filter(|_| !self.is_settled(*state)));
        let edges = lists.make(
            (&self.shards, self.spill.as_ref()),
            &self.resources.job,
            targets.clone(),
            wanted,
            (self.weighted, states),
        )?;
        let mut step = Step { swept: Swept { signals: 0, edges }, ..Step::default() };
        known.read_degrees::<G>(self.graph, self.weighted, &targets)?;
        new.clear();
        new.extend_from_slice(old);
        order.clear();
        order.extend((0..old.len() as u32).filter(|at| !self.is_settled(old[*at as usize])));
        if G::SETTLES {
            order.sort_unstable_by_key(|at| Reverse(self.program.urgency(old[*at as usize])));
        }
        for at in order.iter().map(|at| *at as usize) {
            let seen = if G::SETTLES { (first, &new[..]) } else { (0, &[][..]) };
            let neighbours = lists.of(at, lengths[at], states.in_memory(), seen);
            step.swept.signals += neighbours.len() as u64;
            let state =
                self.program.gather(known.vertex(first, at), old[at], neighbours, &handed.globals, own);
            step.changed += u64::from(state != old[at]);
            step.open += u64::from(!self.is_settled(state));
            new[at] = state;
        }
        self.resources.job.advance(targets.len() as u64);
        let Some(next) = next else { return Ok((step, std::mem::take(new))) };
        next.write(first, new)?;
        Ok((step, Vec::new()))
    }

    /// The aggregate over a superstep that took states from `old` to `new`. A pass of its own, for items may cut
    /// intervals anywhere.
    pub(super) fn aggregate(
        &self,
        old: &ScratchArray<G::State>,
        new: &ScratchArray<G::State>,
    ) -> Result<G::Aggregate> {
        if size_of::<G::Aggregate>() == 0 {
            return Ok(G::Aggregate::NOTHING);
        }
        type Room<S> = (Known, Vec<S>, Vec<S>);
        let fold = |interval: usize, (known, old_room, new_room): &mut Room<G::State>| -> Result<_> {
            let range = self.shards.window(interval);
            known.read_degrees::<G>(self.graph, self.weighted, &range)?;
            let old = old.slice(range.clone(), old_room)?;
            let new = new.slice(range.clone(), new_room)?;
            let part = |at: usize| self.program.aggregate(known.vertex(range.start, at), old[at], new[at]);
            Ok((0..old.len()).fold(G::Aggregate::NOTHING, |sum, at| sum.merge(part(at))))
        };
        let parts = self.resources.share(self.shards.intervals(), fold)?;
        Ok(parts.into_iter().fold(G::Aggregate::NOTHING, Aggregate::merge))
    }
}
