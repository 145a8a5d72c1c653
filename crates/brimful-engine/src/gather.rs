//! Runs of [gather programs](crate::Gather), whose vertices read the states of all neighbors at
//! once.

mod changes;
mod checkpoint;
mod distributed;
mod lists;
mod run;
mod step;
mod unpacked;
mod urgent;

use brimful_store::scratch::ScratchArray;

use crate::result::stats::Stats;

pub use run::gather;

/// The states at the end of a run, and its figures.
#[derive(Debug)]
pub struct Gathered<S, A> {
    /// One state per vertex with edges, in internal order.
    pub states: ScratchArray<S>,
    /// The aggregate over the last superstep.
    pub aggregate: A,
    /// Figures of the run.
    pub stats: Stats,
}
