//! Communities by label propagation.
//!
//! Returns for each vertex the label of its community (`label`, of the type of ids) after a number
//! of synchronous supersteps. Every vertex starts with its own id and takes the most frequent label
//! of its neighbors, on a tie the smallest; without neighbors it keeps its own (LDBC Graphalytics'
//! CDLP; Raghavan, Albert, Kumara 2007). In a directed graph a neighbor counts once for each
//! direction; each parallel edge counts. Deterministic. Each superstep reads all neighbor lists, or
//! those near a change where the lists are in memory, and sorts the labels of a list without a
//! majority: O(|E| log(greatest degree)).

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_engine::plan::forecast::Steps;
use brimful_engine::{Gather, Globals, Neighbors, Values, Vertex, gather};
use brimful_graph::{Graph, Index};
use brimful_store::Resources;

use crate::Result;
use crate::connected_components::propagation::Label;
use crate::info::{Info, Run, Takes};
use crate::planning::fits_narrow;
use crate::request::{Finished, Request};

/// The default number of supersteps.
const SUPERSTEPS: u64 = 10;

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "label_propagation",
    computes: "communities: in each superstep (default: 10) a vertex takes the most frequent label \
               of its neighbors",
    column: "label",
    takes: Takes { cluster: true, checkpoints: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Vertices(|request, graph, resources| match fits_narrow(graph.largest_id_offset()?) {
        true => run::<u32>(request, graph, resources),
        false => run::<u64>(request, graph, resources),
    }),
    plan: |planner| {
        let steps = Steps::exactly(planner.request.max_supersteps.unwrap_or(SUPERSTEPS));
        match planner.has_narrow_id_offsets()? {
            true => planner.gather(&LabelPropagation::<u32>(PhantomData), steps),
            false => planner.gather(&LabelPropagation::<u64>(PhantomData), steps),
        }
    },
};

/// Label propagation. State: a label, the offset of an external id.
#[derive(Debug, Clone, Copy, Default)]
pub struct LabelPropagation<L>(PhantomData<L>);

impl<L: Label + 'static> Gather for LabelPropagation<L> {
    type State = L;
    /// The labels of a list.
    type Buffers = Vec<L>;
    type Aggregate = ();
    const NEEDS_EXTERNAL: bool = true;
    const READS_IDS: bool = false;
    const READS_GLOBALS: bool = false;
    const BUFFER_BYTES: u64 = size_of::<L>() as u64;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn initial(&self, vertex: Vertex) -> L {
        L::new(vertex.external)
    }

    fn gather(
        &self,
        _: Vertex,
        label: L,
        neighbors: Neighbors<'_, L>,
        _: &Globals<()>,
        labels: &mut Vec<L>,
    ) -> L {
        labels.clear();
        neighbors.copy_states(labels);
        most_frequent(labels).unwrap_or(label)
    }
}

/// The most frequent of `labels`, on a tie the smallest. Reorders them.
fn most_frequent<L: Label>(labels: &mut [L]) -> Option<L> {
    // Soon most neighbors of a vertex are in its community: then nothing is sorted.
    let candidate = majority_candidate(labels)?;
    if labels.iter().filter(|label| **label == candidate).count() > labels.len() / 2 {
        return Some(candidate);
    }
    labels.sort_unstable();
    let runs = labels.chunk_by(|a, b| a == b);
    // The first of the longest runs has the smallest label.
    let longest = runs.fold(&[][..], |best, run| if run.len() > best.len() { run } else { best });
    longest.first().copied()
}

/// The label of more than half of `labels`, if there is one; otherwise any (Boyer, Moore 1991).
fn majority_candidate<L: Label>(labels: &[L]) -> Option<L> {
    let (mut candidate, mut surplus) = (*labels.first()?, 0_usize);
    for label in labels {
        if surplus == 0 {
            candidate = *label;
        }
        if *label == candidate { surplus += 1 } else { surplus -= 1 }
    }
    Some(candidate)
}

fn run<L: Label + 'static>(
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    let program = LabelPropagation::<L>(PhantomData);
    let output = gather(&program, graph, &request.options(SUPERSTEPS), resources)?;
    let values =
        Values::vertices(output.states, |label: L| Some(label.into()), Some).without_nulls();
    Finished::new(graph, "label", values, output.stats, "synchronous")
}
