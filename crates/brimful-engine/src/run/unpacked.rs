//! Supersteps of a long run over unpacked edges in memory.
//!
//! A sparse superstep decodes a whole block of edges for each of its few sources. A long run
//! unpacks all edges once, and then visits those of the frontier alone. Invariant: states, signals
//! and aggregates are the same bits as in other traversals, because the combiner gives the same sum
//! in any order.

use std::sync::Arc;

use brimful_graph::read::shards::ShardFile;
use brimful_store::Resources;

use super::ShardRun;
use super::context::RunContext;
use crate::error::Result;
use crate::plan::options::TraversalMode;
use crate::result::stats::Swept;
use crate::traverse::adjacency::Adjacency;
use crate::traverse::priority_queue::VERTICES_PER_CHECK;
use crate::traverse::residency::PinnedIndex;
use crate::traverse::sparse::{TargetSums, Touched};
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Program, SumOf};

/// The edges, and the sums of the targets of a superstep.
pub(super) struct Unpacked<S> {
    /// One for each file.
    adjacencies: Vec<Adjacency>,
    sums: Touched<S>,
}

impl<P: Program> RunContext<'_, P> {
    /// Frees the packed edges in memory, and unpacks the files in the groups that `groups` makes of
    /// them.
    pub(super) fn unpack(
        &mut self,
        groups: impl Fn(Vec<Arc<ShardFile>>) -> Vec<Vec<Arc<ShardFile>>>,
    ) -> Result<Vec<Adjacency>> {
        let shards: Vec<_> = self.files.iter().map(|file| Arc::clone(file.shards())).collect();
        self.files = PinnedIndex::pin(shards.clone(), self.options.weighted, 0, &self.owned);
        let kinds = (self.options.weighted, P::SELF_LOOPS);
        let unpack = |files| Adjacency::of(self.graph, files, kinds, self.resources);
        groups(shards).into_iter().map(unpack).collect()
    }
}

impl<P: Program> ShardRun<'_, P> {
    /// Runs a superstep over unpacked edges; false if they are packed and should stay so.
    pub(super) fn unpacked_superstep(&mut self, edges: u64) -> Result<bool> {
        let Some(mut unpacked) =
            self.unpacked.take().map_or_else(|| self.unpack_if_long(edges), |own| Ok(Some(own)))?
        else {
            return Ok(false);
        };
        let target_sums = self.combine_unpacked(&mut unpacked, edges)?;
        self.unpacked = Some(unpacked);
        let bits = self.context.graph.description().interval_bits;
        let by_interval = target_sums.chunk_by(|one, other| one.0 >> bits == other.0 >> bits).map(
            |target_sums| {
                let within = |&(target, sum): &(u32, SumOf<P>)| (target & ((1 << bits) - 1), sum);
                (
                    (target_sums[0].0 >> bits) as usize,
                    target_sums.iter().map(within).collect::<TargetSums<_>>(),
                )
            },
        );
        let combined = by_interval.filter(|(interval, _)| !self.finished[*interval]).collect();
        self.collect_intervals(combined)?;
        Ok(true)
    }

    fn unpack_if_long(&mut self, edges: u64) -> Result<Option<Unpacked<SumOf<P>>>> {
        let context = &self.context;
        let is_chosen = context.options.traversal == TraversalMode::Auto
            && self.frontier.is_some()
            && self.is_long(edges);
        if !(context.plan.unpacked && is_chosen) {
            return Ok(None);
        }
        // Nothing but these supersteps follows.
        self.sparse = None;
        self.context.resources.job.begin("unpack", edges);
        let adjacencies =
            self.context.unpack(|files| files.into_iter().map(|file| vec![file]).collect())?;
        Ok(Some(Unpacked { adjacencies, sums: Touched::default() }))
    }

    /// Combines the signals of the frontier into targets, ascending, and sums.
    fn combine_unpacked(
        &mut self,
        unpacked: &mut Unpacked<SumOf<P>>,
        edges: u64,
    ) -> Result<TargetSums<SumOf<P>>> {
        let Unpacked { adjacencies, sums } = unpacked;
        let Resources { job, .. } = self.context.resources;
        self.context.show_sometimes(self.globals.superstep, edges);
        let walked = self.context.walked(&self.globals);
        let Some(frontier) = &mut self.frontier else { return Ok(TargetSums::new()) };
        let sources = frontier.list(|vertex| self.signals[vertex] != P::Combiner::SILENCE);
        let (program, vertices, mut visited) = (self.context.program, self.signals.len(), 0);
        for some in sources.chunks(VERTICES_PER_CHECK) {
            job.check()?;
            for (adjacency, _) in adjacencies.iter().zip(&walked).filter(|(_, walked)| **walked) {
                for &source in some {
                    let signal = self.signals[source as usize];
                    visited += adjacency.each(source as usize, |target, weight| {
                        let sum = sums.at::<P::Combiner>(target as u32, vertices);
                        *sum = P::Combiner::combine(*sum, program.along(signal, weight));
                    });
                }
            }
        }
        self.swept += Swept { signals: visited, edges: visited };
        let mut target_sums = Vec::with_capacity(1);
        sums.drain_into::<P::Combiner>(&mut target_sums);
        Ok(target_sums.pop().unwrap_or_default())
    }
}
