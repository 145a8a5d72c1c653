//! Vertices in ascending order of their external ids, for any internal order.
//!
//! External ids ascend within each run of the internal order, so a merge of the runs gives the
//! external order. Invariant: memory is one window of ids per run, at most [`MEMORY_BYTES`].

use std::ops::Deref;

use crate::error::Result;
use crate::ids::ascending::BLOCK_NUMBERS;
use crate::read::description::MAX_RUNS;
use crate::read::graph::Graph;

/// Ids of a run in memory at once: one block of the file of ids.
const WINDOW: u64 = BLOCK_NUMBERS as u64;
/// The maximum memory of a cursor, in bytes.
pub const MEMORY_BYTES: u64 = MAX_RUNS as u64 * WINDOW * 8 + (64 << 10);

/// The rest of a run.
#[derive(Debug)]
struct OrderRun {
    /// Order keys from `start` on; those before `at` are consumed.
    window: Vec<u64>,
    start: u64,
    at: usize,
    end: u64,
}

impl OrderRun {
    /// The order key of the next vertex.
    fn head(&mut self, graph: &Graph) -> Result<Option<u64>> {
        if self.at == self.window.len() {
            self.start += self.window.len() as u64;
            // A run begins a block, so each window is a block.
            let end = self.end.min(self.start + WINDOW);
            self.window.resize((end - self.start) as usize, 0);
            graph.external_ids(self.start, &mut self.window)?;
            let id_type = graph.id_type();
            self.window.iter_mut().for_each(|id| *id = id_type.order_key(*id));
            self.at = 0;
        }
        Ok(self.window.get(self.at).copied())
    }
}

/// Yields every vertex of a graph once, in ascending order of external ids.
#[derive(Debug)]
pub struct ExternalOrder<G> {
    graph: G,
    runs: Vec<OrderRun>,
}

impl<G: Deref<Target = Graph>> ExternalOrder<G> {
    /// A cursor at the vertex with the smallest id.
    pub fn new(graph: G) -> Self {
        let runs = graph.runs().map(|run| OrderRun {
            window: Vec::new(),
            start: run.start,
            at: 0,
            end: run.end,
        });
        Self { runs: runs.collect(), graph }
    }

    /// Appends at most `max` further vertices: internal ids to `vertices`, the bits of external ids
    /// to `ids`. Appends nothing at the end.
    pub fn next_batch(
        &mut self,
        max: usize,
        vertices: &mut Vec<u64>,
        ids: &mut Vec<u64>,
    ) -> Result<()> {
        let id_type = self.graph.id_type();
        let mut left = max;
        while left > 0 {
            let (mut best, mut rival) = (None, u64::MAX);
            for (index, run) in self.runs.iter_mut().enumerate() {
                let Some(key) = run.head(&self.graph)? else { continue };
                match best {
                    Some((least, _)) if least <= key => rival = rival.min(key),
                    _ => {
                        rival = best.map_or(rival, |(least, _)| rival.min(least));
                        best = Some((key, index));
                    }
                }
            }
            let Some(run) = best.and_then(|(_, index)| self.runs.get_mut(index)) else {
                return Ok(());
            };
            // All keys before the next id of every other run, but at least one.
            let window = run.window.get(run.at..).unwrap_or_default();
            let count = window.iter().take(left).take_while(|key| **key < rival).count().max(1);
            ids.extend(window.iter().take(count).map(|key| id_type.from_order_key(*key)));
            vertices.extend((run.start + run.at as u64..).take(count));
            run.at += count;
            left -= count;
        }
        Ok(())
    }
}

/// The ranks of vertices by external id, indexed by internal id.
pub(crate) fn ranks(graph: &Graph) -> Result<Vec<u64>> {
    let mut ranks = vec![0; graph.vertices() as usize];
    let mut order = ExternalOrder::new(graph);
    let (mut vertices, mut ids, mut next) = (Vec::new(), Vec::new(), 0);
    loop {
        order.next_batch(BLOCK_NUMBERS, &mut vertices, &mut ids)?;
        if vertices.is_empty() {
            return Ok(ranks);
        }
        for vertex in vertices.drain(..) {
            ranks[vertex as usize] = next;
            next += 1;
        }
        ids.clear();
    }
}
