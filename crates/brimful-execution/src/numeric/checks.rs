//! Options and budgets that a numeric run on a store refuses, before any work.
//!
//! Invariant: the budget that an error names suffices for the whole run, in all processes.

use brimful_engine::plan::extent::Extent;
use brimful_engine::plan::needs::Needs;
use brimful_engine::supersteps::missing_index_bytes;
use brimful_engine::{Mode, Program, SignalOf};
use brimful_graph::Graph;
use brimful_store::{Error as StoreError, Resources};
use brimful_vertices::StoreKind;

use super::NumericOptions;
use crate::RunMode;
use crate::error::{Error, Result};
use crate::from_graph::{memory_of_processes, partitions_of, vertices_of_processes};
use crate::numeric::divided::check_divided;
use crate::numeric::forecast::{self, Planned};
use crate::process_partitions::ProcessPartitions;

/// Refuses options that the program, the graph or the store does not support, and a budget below
/// the needs of every run.
pub(super) fn check_options<P: Program>(
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Result<()> {
    options.run.check_weights(graph)?;
    if options.serializer.is_some()
        && options.stores.schemes.kind(options.stores.store)? == StoreKind::Live
    {
        return Err(Error::Usage(format!(
            "the store {:?} keeps live vertices, which no serializer writes; leave the serializer \
             out",
            options.stores.store
        )));
    }
    options.run.check::<P>()?;
    let is_full = P::MODE == Mode::Full;
    if matches!(options.mode, RunMode::Asynchronous(_)) && (!P::ASYNCHRONOUS || is_full) {
        return Err(Error::Usage(
            "this program needs supersteps: without them its result would differ; run it \
             synchronously"
                .into(),
        ));
    }
    if options.run.communicator.is_some() {
        check_divided(options)?;
    }
    let index = missing_index_bytes(graph, program.indexes(), resources.workers());
    if options.stores.schemes.kind(options.stores.store)?.has_share() {
        // A store on disk reserves its share of the budget from the start, so later stages cannot
        // use it.
        let bytes = minimum_bytes(program, graph, options, resources)?.max(index);
        resources.budget.require(bytes, "to keep vertices in a store")?;
    }
    Ok(resources.budget.require(index, "to build an index")?)
}

/// The approximate smallest budget of a run, in bytes beyond those of the process.
fn minimum_bytes<P: Program>(
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Result<u64> {
    let mut needs = Needs::of(program);
    if P::BATCHED {
        // A vertex keeps its signal.
        needs.state += size_of::<SignalOf<P>>() as u64;
    }
    let (stores, weighted) = (options.stores, options.run.weighted);
    let workers = resources.workers();
    let planned = Planned {
        stores,
        serializer: options.serializer,
        lists: options.lists,
        vertices: (graph.vertices(), graph.connected()),
        edges: Extent::of(graph, needs.indexes, weighted).edges(),
        directed: graph.description().directed,
        weighted,
        workers,
        limit: resources.budget.limit(),
        hubs: forecast::hub_bytes(&needs, graph, &stores, (weighted, workers))?,
    };
    let Some(communicator) = &options.run.communicator else {
        return Ok(forecast::forecast(&needs, &planned)?.minimum);
    };
    // All processes name the needs of the one that needs most.
    let processes = ProcessPartitions::new(communicator, partitions_of(&stores, workers)?);
    let connected = graph.connected();
    let loaded = if needs.full { graph.vertices() } else { connected };
    let arcs = u128::from(graph.description().arcs.max(1));
    // The driver has no vertices, but all states.
    let mut most = connected * needs.state;
    for (vertices, edges) in vertices_of_processes(&stores, graph, loaded, &processes)? {
        let edges = u128::from(planned.edges) * u128::from(edges) / arcs;
        let part = Planned { vertices: (vertices, vertices), edges: edges as u64, ..planned };
        most = most.max(forecast::forecast(&needs, &part)?.minimum);
    }
    Ok(most + memory_of_processes(&processes, workers, weighted))
}

/// A budget error names the likely needs of the whole run: not only those of the failed part, and
/// not those of a store within its share.
pub(super) fn in_terms_of_the_run<P: Program>(
    error: Error,
    program: &P,
    graph: &Graph,
    options: &NumericOptions<'_>,
    resources: &Resources,
) -> Error {
    let Error::Store(StoreError::Budget { budget, needed, purpose, .. }) = &error else {
        return error;
    };
    let own = &resources.budget;
    let index = missing_index_bytes(graph, program.indexes(), resources.workers());
    let mut bytes = minimum_bytes(program, graph, options, resources).unwrap_or(0).max(index);
    if *budget != own.total() {
        // A store has its partition's share of half of the remaining memory.
        let partitions = partitions_of(&options.stores, resources.workers());
        let missing =
            2 * partitions.map_or(1, |count| count as u64) * needed.saturating_sub(*budget);
        bytes = bytes.max(own.limit().saturating_add(missing));
    }
    let refused = match own.require(bytes, purpose) {
        Err(StoreError::Budget { needed: of_run, .. })
            if *budget == own.total() && of_run <= *needed =>
        {
            error
        }
        Err(of_run) => of_run.into(),
        Ok(()) => error,
    };
    match refused {
        Error::Store(refused) => refused.estimated().into(),
        other => other,
    }
}
