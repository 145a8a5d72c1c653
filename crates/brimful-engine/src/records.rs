//! The layouts `decoupled` and `coupled`: a record for each vertex, in place of shards.
//!
//! A record lists the sources of the edges into its vertex, with their weights if those count; in a `coupled` one the state of the vertex
//! comes first (Koduru, Gupta, Neamtiu 2015, "Size oblivious programming with InfiniMem", sections 3 and 4). Records lie in scratch, in the
//! order of vertices; a *block* of them is what is read, and where it holds states written, at once. Invariant: within a record sources
//! lie in the order of the shards, and sums are grouped by window as a sweep groups them, so that they are the same bits.
//!
//! Bytes of a record: the state, if it is coupled; for each part of the shard (see [`Part`]) the number of edges, in 4 bytes; for each part its
//! sources, in 4 bytes or 8 as the graph needs, then its weights, in 8. The order of bytes is the machine's: no other reads them.

mod build;
#[cfg(test)]
mod tests;

pub(crate) use build::Blocks;

use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use brimful_store::{Error as StoreError, StoreFile};
use bytemuck::Pod;

use crate::combiner::Combiner;
use crate::error::Result;
use crate::program::{Program, SignalOf, SumOf, is_left_out};

/// Bytes of a number of edges.
const COUNT: usize = size_of::<u32>();

/// The segments of one window of a shard, or, where the interval is light, of all of it.
#[derive(Debug)]
struct Part {
    file: usize,
    segments: Range<usize>,
}

/// Records that are read at once.
#[derive(Debug)]
struct Block {
    /// Vertices, counted within the interval.
    targets: Range<usize>,
    offset: u64,
    bytes: usize,
}

/// The records of an interval.
#[derive(Debug)]
struct Interval {
    parts: Vec<Part>,
    /// Sums of parts are made apart and merged: the interval is heavy.
    apart: bool,
    blocks: Vec<Block>,
}

/// The records of a graph.
#[derive(Debug)]
pub(crate) struct Records {
    file: StoreFile,
    intervals: Vec<Interval>,
    shape: Shape,
    /// Bytes of the largest block.
    pub(crate) largest_block: u64,
}

/// How records look.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    /// Bytes of a state; 0 where records have none.
    state: usize,
    /// Records have weights.
    weighted: bool,
    /// Bytes of a source: 4 or 8.
    source: usize,
}

impl Shape {
    fn edge(self) -> usize {
        self.source + if self.weighted { size_of::<f64>() } else { 0 }
    }
}

impl Records {
    /// True if records have states.
    pub(crate) fn is_coupled(&self) -> bool {
        self.shape.state > 0
    }

    /// Copies the states of interval `index` out of its records.
    pub(crate) fn states<S: Pod>(&self, index: usize, out: &mut [S], room: &mut Vec<u8>) -> Result<()> {
        let interval = &self.intervals[index];
        for block in &interval.blocks {
            self.read(block, room)?;
            self.each_state(interval, block, room, |target, state| {
                out[target] = bytemuck::pod_read_unaligned(state);
            })?;
        }
        Ok(())
    }

    /// Copies states into the records of interval `index`.
    pub(crate) fn set_states<S: Pod>(&self, index: usize, states: &[S], room: &mut Vec<u8>) -> Result<()> {
        let interval = &self.intervals[index];
        for block in &interval.blocks {
            self.read(block, room)?;
            self.each_state(interval, block, room, |target, state| {
                state.copy_from_slice(bytemuck::bytes_of(&states[target]));
            })?;
            self.file.write_all_at(room, block.offset)?;
        }
        Ok(())
    }

    /// Calls `f` with each target of a block and the bytes of its state.
    fn each_state(
        &self,
        interval: &Interval,
        block: &Block,
        mut bytes: &mut [u8],
        mut f: impl FnMut(usize, &mut [u8]),
    ) -> Result<()> {
        let mut visit = |target: usize| {
            let (state, rest) = std::mem::take(&mut bytes).split_at_mut_checked(self.shape.state)?;
            f(target, state);
            let (counts, rest) = rest.split_at_mut_checked(interval.parts.len() * COUNT)?;
            let edges: usize = numbers(counts).map(|count| count as usize).sum();
            bytes = rest.get_mut(edges * self.shape.edge()..)?;
            Some(())
        };
        let whole = block.targets.clone().try_for_each(&mut visit);
        Ok(whole.ok_or_else(|| self.contradiction(block))?)
    }

    fn contradiction(&self, block: &Block) -> StoreError {
        let what = "a record exceeds its block or names a vertex that the graph does not have";
        StoreError::corrupt(self.file.path(), block.offset, what)
    }

    fn read(&self, block: &Block, room: &mut Vec<u8>) -> Result<()> {
        room.resize(block.bytes, 0);
        Ok(self.file.read_exact_at(room, block.offset)?)
    }
}

/// The first `count` of `bytes`, which are left out of it.
fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Option<&'b [u8]> {
    let (first, rest) = bytes.split_at_checked(count)?;
    *bytes = rest;
    Some(first)
}

fn numbers(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.chunks_exact(COUNT).map(bytemuck::pod_read_unaligned)
}

/// What a superstep reads.
pub(crate) struct Walk<'w, P: Program> {
    pub(crate) program: &'w P,
    pub(crate) records: &'w Records,
    /// For each file, whether its edges count.
    pub(crate) walked: Vec<bool>,
    pub(crate) signals: &'w [SignalOf<P>],
    pub(crate) window: usize,
    /// Signals combined so far.
    pub(crate) combined: AtomicU64,
}

/// What is called with targets, their states and their sums.
type Visitor<'v, P> = dyn FnMut(Range<usize>, &mut [<P as Program>::State], &[SumOf<P>]) + 'v;

/// What one worker reads with.
pub(crate) struct Room<P: Program> {
    bytes: Vec<u8>,
    /// Those of a block, and of an interval.
    sums: Vec<SumOf<P>>,
    all: Vec<SumOf<P>>,
    states: Vec<P::State>,
    /// Where the states are in `bytes`.
    places: Vec<usize>,
}

impl<P: Program> Default for Room<P> {
    fn default() -> Self {
        Self { bytes: vec![], sums: vec![], all: vec![], states: vec![], places: vec![] }
    }
}

impl<P: Program> Walk<'_, P> {
    /// Reads the records of an interval, block by block, makes the sums of their vertices if `summed`, and calls
    /// `visit(targets, states, sums)`; states, where records have them, are then written back.
    pub(crate) fn visit(
        &self,
        interval: usize,
        summed: bool,
        room: &mut Room<P>,
        visit: &mut Visitor<'_, P>,
    ) -> Result<()> {
        let (records, shape) = (self.records, self.records.shape);
        let mut combined = 0;
        for block in &records.intervals[interval].blocks {
            records.read(block, &mut room.bytes)?;
            combined += match shape.source {
                4 => self.block::<u32>(interval, block, summed, room),
                _ => self.block::<u64>(interval, block, summed, room),
            }
            .ok_or_else(|| records.contradiction(block))?;
            visit(block.targets.clone(), &mut room.states, &room.sums);
            for (state, place) in room.states.iter().zip(&room.places) {
                room.bytes[*place..][..shape.state].copy_from_slice(bytemuck::bytes_of(state));
            }
            if self.records.is_coupled() {
                records.file.write_all_at(&room.bytes, block.offset)?;
            }
        }
        self.combined.fetch_add(combined, Ordering::Relaxed);
        Ok(())
    }

    /// The sums of all vertices of an interval, whose states are apart.
    pub(crate) fn sums<'r>(&self, interval: usize, room: &'r mut Room<P>) -> Result<&'r [SumOf<P>]> {
        let mut all = std::mem::take(&mut room.all);
        all.clear();
        self.visit(interval, true, room, &mut |_, _, sums| all.extend_from_slice(sums))?;
        room.all = all;
        Ok(&room.all)
    }

    /// Takes states out of a block and makes its sums; the number of signals.
    #[inline(never)]
    fn block<I: Pod + Into<u64>>(
        &self,
        interval: usize,
        block: &Block,
        summed: bool,
        room: &mut Room<P>,
    ) -> Option<u64> {
        let Interval { parts, apart, .. } = &self.records.intervals[interval];
        let shape = self.records.shape;
        let Room { bytes, sums, states, places, .. } = room;
        let mut rest = &bytes[..];
        let mut combined = 0;
        sums.clear();
        states.clear();
        places.clear();
        for target in block.targets.clone() {
            if self.records.is_coupled() {
                places.push(bytes.len() - rest.len());
                states.push(bytemuck::pod_read_unaligned(take(&mut rest, shape.state)?));
            }
            let vertex = (interval * self.window + target) as u64;
            let counts = take(&mut rest, parts.len() * COUNT)?;
            let mut total = P::Combiner::IDENTITY;
            for (at, (part, count)) in parts.iter().zip(numbers(counts)).enumerate() {
                let count = count as usize;
                let sources = take(&mut rest, count * shape.source)?;
                let weights = take(&mut rest, count * (shape.edge() - shape.source))?;
                if !summed {
                    continue;
                }
                let mut sum = if *apart { P::Combiner::IDENTITY } else { total };
                if self.walked[part.file] {
                    let sources = sources.chunks_exact(size_of::<I>());
                    let mut weights = weights.chunks_exact(size_of::<f64>());
                    for source in sources {
                        let source: u64 = bytemuck::pod_read_unaligned::<I>(source).into();
                        let weight = weights.next().map_or(1.0, bytemuck::pod_read_unaligned);
                        let signal = *self.signals.get(source as usize)?;
                        if !is_left_out::<P>(signal, source == vertex) {
                            sum = P::Combiner::combine(sum, self.program.along(signal, weight));
                            combined += 1;
                        }
                    }
                }
                total = if *apart && at > 0 { P::Combiner::merge(total, sum) } else { sum };
            }
            sums.push(total);
        }
        Some(combined)
    }
}
