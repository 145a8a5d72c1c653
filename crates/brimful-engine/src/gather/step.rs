//! One item of a superstep: makes the lists of its targets, and gathers them.
//!
//! An item is an interval or a part of one. For programs that settle, an item may span intervals,
//! because fewer supersteps follow if more vertices see each other's new states. Such items run one
//! after another, as many at a time as there are threads, and see the states that earlier ones
//! made. Once urgencies are known, `urgent` makes supersteps without items. Invariant: a superstep
//! of other programs reads the states of the last superstep only.

use std::cmp::Reverse;
use std::ops::Range;

use brimful_graph::Graph;
use brimful_store::Resources;
use brimful_store::scratch::{ScratchArray, Windows};
use bytemuck::Pod;

use super::lists::{ListContents, ListSource, Lists};
use super::unpacked::UnpackedLists;
use crate::error::Result;
use crate::exchange::division::Division;
use crate::plan::gather::GatherPlan;
use crate::result::stats::Swept;
use crate::traverse::interval_edges::Shards;
use crate::traverse::interval_edges::spill::Spill;
use crate::vertex::aggregate::Aggregate;
use crate::vertex::attributes::VertexAttributes;
use crate::vertex::gather::{Gather, Neighbors};
use crate::vertex::program::{Globals, Vertex};

/// The state of a run between two supersteps.
pub(super) struct GatherState<G: Gather> {
    pub(super) states: ScratchArray<G::State>,
    pub(super) globals: Globals<G::Aggregate>,
}

/// Figures of one or several supersteps.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct GatherFigures {
    /// Neighbors gathered, and edges read.
    pub(super) swept: Swept,
    /// Vertices that gathered.
    pub(super) gathered: u64,
    /// States that changed.
    pub(super) changed: u64,
    /// Vertices that are not settled.
    pub(super) open: u64,
}

impl std::ops::AddAssign for GatherFigures {
    fn add_assign(&mut self, other: Self) {
        self.swept += other.swept;
        self.gathered += other.gathered;
        self.changed += other.changed;
        self.open += other.open;
    }
}

/// True if a state changed. States of processes must have the same bits, so -0.0 is not 0.0.
pub(super) fn differ<S: Pod>(old: &S, new: &S) -> bool {
    bytemuck::bytes_of(old) != bytemuck::bytes_of(new)
}

/// The constants of a run.
pub(super) struct GatherContext<'a, G: Gather> {
    pub(super) program: &'a G,
    pub(super) graph: &'a Graph,
    pub(super) resources: &'a Resources,
    pub(super) weighted: bool,
    pub(super) plan: GatherPlan,
    pub(super) shards: Shards,
    /// The part of this process, if several make the run.
    pub(super) division: Option<Division<'a>>,
    /// The intervals of this process.
    pub(super) owned: Range<usize>,
    /// Edges of intervals whose lists do not fit together.
    pub(super) spill: Option<Spill>,
    /// All lists, if memory holds them.
    pub(super) unpacked: Option<UnpackedLists>,
    /// Lengths of lists.
    pub(super) lengths: ScratchArray<u32>,
}

/// The scratch buffers of one worker.
pub(super) struct GatherBuffers<G: Gather> {
    lists: Lists<G::State>,
    pub(super) old: Vec<G::State>,
    pub(super) new: Vec<G::State>,
    pub(super) lengths: Vec<u32>,
    /// The order in which targets are gathered.
    order: Vec<u32>,
    pub(super) attributes: VertexAttributes,
    /// Buffers of the program.
    pub(super) program: G::Buffers,
}

impl<G: Gather> Default for GatherBuffers<G> {
    fn default() -> Self {
        Self {
            lists: Lists::default(),
            old: Vec::new(),
            new: Vec::new(),
            lengths: Vec::new(),
            order: Vec::new(),
            attributes: VertexAttributes::default(),
            program: G::Buffers::default(),
        }
    }
}

impl<G: Gather> GatherContext<'_, G> {
    pub(super) fn is_settled(&self, state: G::State) -> bool {
        G::SETTLES && self.program.settled(state)
    }

    /// Reads the degrees of `vertices`, and their strengths if the run is weighted, if the program
    /// needs them.
    pub(super) fn read_degrees(
        &self,
        attributes: &mut VertexAttributes,
        vertices: &Range<usize>,
    ) -> Result<()> {
        if G::NEEDS_DEGREES {
            attributes.read_degrees(self.graph, vertices)?;
            if self.weighted {
                attributes.read_strengths(self.graph, vertices)?;
            }
        }
        Ok(())
    }

    /// Cuts the vertices of this process into items. Settled vertices count no neighbors, because
    /// their lists are not made.
    pub(super) fn cut(&self, states: &ScratchArray<G::State>) -> Result<Vec<Range<usize>>> {
        let (mut items, mut start, mut neighbors) = (Vec::new(), self.own_vertices().start, 0);
        let (mut lengths_buffer, mut states_buffer) = (Vec::new(), Vec::new());
        for interval in self.owned.clone() {
            self.resources.job.check()?;
            let range = self.shards.window(interval);
            let lengths = self.lengths.slice(range.clone(), &mut lengths_buffer)?;
            let states = states.slice(range.clone(), &mut states_buffer)?;
            for (vertex, (length, state)) in range.clone().zip(lengths.iter().zip(states)) {
                let length = if self.is_settled(*state) { 0 } else { u64::from(*length) };
                if neighbors + length > self.plan.neighbors
                    || (vertex - start) as u64 >= self.plan.targets
                {
                    items.push(start..vertex);
                    (start, neighbors) = (vertex, 0);
                }
                neighbors += length;
            }
            if !G::SETTLES || range.end == self.own_vertices().end {
                items.push(start..range.end);
                (start, neighbors) = (range.end, 0);
            }
        }
        Ok(items)
    }

    /// Gathers the targets of one item that are not settled. Their new states go to `next` if there
    /// is one; otherwise they are returned.
    pub(super) fn gather_item(
        &self,
        targets: Range<usize>,
        current: &GatherState<G>,
        next: Option<&Windows<'_, G::State>>,
        buffers: &mut GatherBuffers<G>,
    ) -> Result<(GatherFigures, Vec<G::State>)> {
        let GatherBuffers { lists, old, new, lengths, order, attributes, program } = buffers;
        let (first, states) = (targets.start, &current.states);
        let old = states.slice(targets.clone(), old)?;
        let lengths = self.lengths.slice(targets.clone(), lengths)?;
        let wanted = old
            .iter()
            .zip(lengths)
            .map(|(state, length)| Some(*length).filter(|_| !self.is_settled(*state)));
        let (spill, job) = (self.spill.as_ref(), &*self.resources.job);
        let source = ListSource { shards: &self.shards, spill, job };
        let contents = ListContents {
            weighted: self.weighted,
            reads_ids: G::READS_IDS,
            states,
            max_neighbors: self.plan.neighbors as usize,
        };
        let edges = lists.make(source, targets.clone(), wanted, contents)?;
        let mut step =
            GatherFigures { swept: Swept { signals: 0, edges }, ..GatherFigures::default() };
        self.read_degrees(attributes, &targets)?;
        new.clear();
        new.extend_from_slice(old);
        order.clear();
        order.extend((0..old.len() as u32).filter(|at| !self.is_settled(old[*at as usize])));
        if G::SETTLES {
            order.sort_unstable_by_key(|at| Reverse(self.program.urgency(old[*at as usize])));
        }
        step.gathered = order.len() as u64;
        for at in order.iter().map(|at| *at as usize) {
            let seen = if G::SETTLES { (first, &new[..]) } else { (0, &[][..]) };
            let all_states = states.in_memory().filter(|_| G::READS_IDS);
            let neighbors = lists.of(at, lengths[at], all_states, seen);
            let vertex = attributes.vertex(first, at);
            new[at] = self.gather(vertex, old[at], neighbors, current, &mut step, program);
        }
        self.resources.job.advance(targets.len() as u64);
        let Some(next) = next else { return Ok((step, std::mem::take(new))) };
        next.write(first, new)?;
        Ok((step, Vec::new()))
    }

    /// The new state of a vertex, which is added to the figures of `step`. The program uses
    /// `buffers`.
    #[inline]
    pub(super) fn gather(
        &self,
        vertex: Vertex,
        old: G::State,
        neighbors: Neighbors<'_, G::State>,
        current: &GatherState<G>,
        step: &mut GatherFigures,
        buffers: &mut G::Buffers,
    ) -> G::State {
        step.swept.signals += neighbors.len() as u64;
        let state = self.program.gather(vertex, old, neighbors, &current.globals, buffers);
        step.changed += u64::from(differ(&old, &state));
        step.open += u64::from(!self.is_settled(state));
        state
    }

    /// The vertices that this process gathers.
    pub(super) fn own_vertices(&self) -> Range<usize> {
        match &self.division {
            Some(division) => division.own_vertices(),
            None => 0..self.graph.connected() as usize,
        }
    }

    /// The aggregates of `intervals` over a superstep that changed states from `old` to `new`. A
    /// separate pass, because items may cut intervals anywhere.
    pub(super) fn aggregates(
        &self,
        old: &ScratchArray<G::State>,
        new: &ScratchArray<G::State>,
        intervals: Range<usize>,
    ) -> Result<Vec<G::Aggregate>> {
        if size_of::<G::Aggregate>() == 0 {
            return Ok(Vec::new());
        }
        type AggregateBuffers<S> = (VertexAttributes, Vec<S>, Vec<S>);
        let fold = |at: usize,
                    (attributes, old_buffer, new_buffer): &mut AggregateBuffers<G::State>|
         -> Result<_> {
            let range = self.shards.window(intervals.start + at);
            self.read_degrees(attributes, &range)?;
            let old = old.slice(range.clone(), old_buffer)?;
            let new = new.slice(range.clone(), new_buffer)?;
            let part = |at: usize| {
                self.program.aggregate(attributes.vertex(range.start, at), old[at], new[at])
            };
            Ok((0..old.len()).fold(G::Aggregate::NOTHING, |sum, at| sum.merge(part(at))))
        };
        self.resources.parallel_map(intervals.len(), fold)
    }
}
