//! Greedy coloring, and the maximal independent set that is its first color.
//!
//! Returns for each vertex a color, from 0 on, that no neighbor has (`color`, uint64); vertices
//! without neighbors have color 0. Direction and self-loops are ignored; parallel arcs only affect
//! the order.
//!
//! The result is that of first-fit: vertices are visited in a fixed order, and each gets the
//! smallest color that no earlier neighbor has. The order is largest-log-degree-first (Hasenplaugh,
//! Kaler, Schardl, Leiserson 2014, "Ordering heuristics for parallel graph coloring"): descending
//! by the bit length of the degree, then by splitmix64 of the offset of the external id from the
//! smallest id of the graph (strings: of the position of the id in sorted order). The degree is the
//! number of arcs in either direction, without self-loops. As the order depends on the graph alone,
//! so does the result.
//!
//! `maximal_independent_set` returns 1 for the vertices of color 0, and 0 for others (`member`,
//! int64). No edge joins two members. Every other vertex has a member as its neighbor; otherwise it
//! would have color 0. It is the greedy set of the same order (Blelloch, Fineman, Shun 2012,
//! "Greedy sequential maximal independent set and matching are parallel on average").
//!
//! One process sorts the edges (`sorted`), in any budget. On a cluster, with checkpoints, and in
//! graphs of 2^31 vertices or more, vertices take their colors in parallel (Jones and Plassmann
//! 1993): a vertex takes its color when its earlier neighbors have theirs. State: a mark and the
//! offset of the external id. The mark is the color, or the bit length of the degree while there is
//! no color. The first superstep counts degrees. Each later superstep makes the lists of vertices
//! without a color, as many as memory holds, and colors those in order. A path along which the
//! order descends therefore costs a superstep only where it leaves these lists, not at every
//! vertex. The number of supersteps depends on the memory, so it cannot be limited.

mod sorted;

use std::marker::PhantomData;
use std::sync::Arc;

use brimful_engine::plan::forecast::{Forecast, Steps};
use brimful_engine::{Gather, Globals, Neighbors, RunOptions, Stats, Values, Vertex, gather};
use brimful_graph::random::splitmix64;
use brimful_graph::{Graph, Index};
use brimful_store::Resources;
use brimful_store::scratch::ScratchArray;
use bytemuck::Pod;

use crate::Result;
use crate::connected_components::propagation::Label;
use crate::info::{Info, Run, Takes};
use crate::planning::{Planner, fits_narrow};
use crate::request::{Finished, Request};

/// The registry entry.
pub(crate) const INFO: Info = Info {
    name: "color",
    computes: "greedy coloring, vertices with many neighbors first: no edge joins equal colors; \
               direction ignored",
    column: "color",
    takes: Takes { cluster: true, checkpoints: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Vertices(|request, graph, resources| run(Wanted::Colors, request, graph, resources)),
    plan,
};

/// The registry entry of independent sets.
pub(crate) const INDEPENDENT: Info = Info {
    name: "maximal_independent_set",
    computes: "maximal independent set: 1 for the vertices to which color gives color 0, else 0; \
               direction ignored",
    column: "member",
    takes: Takes { cluster: true, checkpoints: true, ..Takes::NOTHING },
    parameters: &[],
    run: Run::Vertices(|request, graph, resources| {
        run(Wanted::FirstColor, request, graph, resources)
    }),
    plan,
};

/// The values of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wanted {
    Colors,
    FirstColor,
}

impl Wanted {
    /// The result from states that have a color.
    fn values<S: Pod + Send + Sync>(
        self,
        states: ScratchArray<S>,
        color: impl Fn(S) -> Option<u64> + Send + Sync + 'static,
    ) -> (&'static str, Values) {
        let (name, values) = match self {
            Self::Colors => ("color", Values::unsigned(states, color, |_| Some(0))),
            Self::FirstColor => {
                let member = move |state| color(state).map(|color| i64::from(color == 0));
                ("member", Values::integers(states, member, |_| Some(1)))
            }
        };
        (name, values.without_nulls())
    }
}

/// True if the run sorts the edges.
fn sorts(request: &Request, vertices: u64) -> bool {
    request.checkpoints.is_none() && !request.is_divided() && vertices < sorted::TOO_MANY
}

fn plan(planner: &Planner<'_>) -> Result<Forecast> {
    planner.request.refuse_max_supersteps()?;
    if sorts(planner.request, planner.connected()) {
        return Ok(sorted::forecast(planner));
    }
    // The supersteps with all lists in memory together; smaller budgets need more.
    match planner.has_narrow_id_offsets()? {
        true => planner.gather(&Coloring::<u32>(PhantomData), Steps::about(2, 2.0)),
        false => planner.gather(&Coloring::<u64>(PhantomData), Steps::about(2, 2.0)),
    }
}

/// Colors a graph by sorting its edges or in supersteps, and returns the wanted values.
fn run(
    wanted: Wanted,
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<Finished> {
    request.refuse_max_supersteps()?;
    let ((name, values), stats) = if sorts(request, graph.connected()) {
        let (colors, stats) = sorted::colors(graph, resources)?;
        (wanted.values(colors, |color: u32| Some(color.into())), stats)
    } else if fits_narrow(graph.largest_id_offset()?) {
        in_supersteps::<u32>(wanted, request, graph, resources)?
    } else {
        in_supersteps::<u64>(wanted, request, graph, resources)?
    };
    Finished::new(graph, name, values, stats, "largest-log-degree-first")
}

/// The bit of a vertex without a color. A mark of only this bit: the degree is not counted yet.
const UNCOLORED: u64 = 1 << 31;

/// Greedy coloring. State: a mark and the offset of an external id.
#[derive(Debug, Clone, Copy, Default)]
pub struct Coloring<L>(PhantomData<L>);

/// The color of a vertex that has one.
fn color<L: Label>([mark, _]: [L; 2]) -> Option<u64> {
    Some(mark.into()).filter(|mark| mark & UNCOLORED == 0)
}

impl<L: Label + 'static> Gather for Coloring<L> {
    type State = [L; 2];
    /// A bit for each color of a neighbor.
    type Buffers = Vec<u64>;
    type Aggregate = ();
    const NEEDS_EXTERNAL: bool = true;
    const BUFFER_BYTES: u64 = 1;
    const SETTLES: bool = true;

    fn indexes(&self) -> &'static [Index] {
        &[Index::In, Index::Reverse]
    }

    fn initial(&self, vertex: Vertex) -> [L; 2] {
        [L::new(UNCOLORED), L::new(vertex.external)]
    }

    fn settled(&self, state: [L; 2]) -> bool {
        color(state).is_some()
    }

    fn urgency(&self, [mark, id_offset]: [L; 2]) -> u128 {
        u128::from(mark.into()) << 64 | u128::from(splitmix64(id_offset.into()))
    }

    fn gather(
        &self,
        vertex: Vertex,
        state: [L; 2],
        neighbors: Neighbors<'_, [L; 2]>,
        _: &Globals<()>,
        used_colors: &mut Vec<u64>,
    ) -> [L; 2] {
        let mark: u64 = state[0].into();
        let others = neighbors.iter().filter(|(id, _)| *id != vertex.id);
        if mark == UNCOLORED {
            let mark =
                others.count().checked_ilog2().map_or(0, |bits| UNCOLORED | u64::from(bits + 1));
            return [L::new(mark), state[1]];
        }
        let urgency = self.urgency(state);
        // A vertex with n neighbors finds a free color among the first n + 1, so larger ones need
        // no bit.
        used_colors.clear();
        used_colors.resize(neighbors.len() / 64 + 1, 0);
        for (_, other) in others {
            match color(other) {
                Some(color) => {
                    if let Some(word) = used_colors.get_mut((color / 64) as usize) {
                        *word |= 1 << (color % 64);
                    }
                }
                None if self.urgency(other) > urgency => return state,
                None => {}
            }
        }
        let least = (0..).zip(used_colors.iter()).find(|(_, word)| **word != u64::MAX);
        let color = least.map_or(0, |(at, word)| 64 * at + u64::from(word.trailing_ones()));
        [L::new(color), state[1]]
    }
}

fn in_supersteps<L: Label + 'static>(
    wanted: Wanted,
    request: &Request,
    graph: &Arc<Graph>,
    resources: &Resources,
) -> Result<((&'static str, Values), Stats)> {
    let options = RunOptions {
        checkpoints: request.checkpoints.clone(),
        communicator: request.communicator.clone(),
        ..RunOptions::default()
    };
    let output = gather(&Coloring::<L>(PhantomData), graph, &options, resources)?;
    Ok((wanted.values(output.states, color::<L>), output.stats))
}
