//! A run over neighbor lists.
//!
//! Aggregates are summed within an interval in id order, then over intervals in order. Invariant:
//! states and aggregates are the same bits at any budget and number of threads and processes.

use std::ops::Range;
use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::read::shards::ShardFile;
use brimful_store::scratch::ScratchArray;
use brimful_store::wording::counted;
use brimful_store::{Content, Error as StoreError, Resources};

use super::step::{GatherBuffers, GatherContext, GatherFigures, GatherState};
use super::unpacked::UnpackedLists;
use super::{Gathered, checkpoint};
use crate::error::{Error, Result};
use crate::exchange::division::Division;
use crate::plan::extent::{Extent, present};
use crate::plan::forecast::Setting;
use crate::plan::gather::{GatherPlan, PURPOSE, needs_of_exchange};
use crate::plan::needs::GatherNeeds;
use crate::plan::options::RunOptions;
use crate::result::log::log_unshared;
use crate::result::stats::{Durations, Swept, Traversal};
use crate::scratch::vertex_array;
use crate::supersteps::{Supersteps, prepare, run_to_end};
use crate::traverse::interval_edges::spill::Spill;
use crate::traverse::interval_edges::{Reader, Shards};
use crate::vertex::aggregate::Aggregate;
use crate::vertex::gather::Gather;
use crate::vertex::program::Globals;

/// Runs `program` until it converges, no state changes, or a limit of `options` is reached.
///
/// A missing index is built first, and kept.
///
/// # Errors
/// [`brimful_store::Error::Budget`] naming the smallest budget that works, before any work;
/// [`Error::Usage`] for unsupported options; corruption and I/O errors when they occur;
/// [`brimful_store::Error::Interrupted`] after a cancellation. In one of several processes
/// [`Error::ProcessDone`] at the end, unless it is the driver; the memory of their exchange is
/// checked after a missing index is built.
pub fn gather<G: Gather>(
    program: &G,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
) -> Result<Gathered<G::State, G::Aggregate>> {
    const {
        assert!(
            !G::SETTLES || size_of::<G::Aggregate>() == 0,
            "a program that settles has no aggregate: its progress in a superstep depends on the \
             budget"
        );
        assert!(
            !G::SETTLES || G::READS_IDS,
            "a program that settles sees new states by the ids of neighbors"
        );
    }
    options.check_weights(graph)?;
    options.check_gather(G::SETTLES)?;
    if graph.connected() > u64::from(u32::MAX) {
        return Err(Error::Usage(
            "neighbor lists are for fewer than 2^32 vertices with edges".into(),
        ));
    }
    // The smallest budget of all stages, including a missing index, is checked before the first.
    let extent = Extent::of(graph, program.indexes(), options.weighted);
    let minimum = Setting::new(&extent, resources).min_of_lists(&GatherNeeds::of(program));
    resources.budget.require(minimum, PURPOSE)?;
    let identity = checkpoint::identity::<G>(options);
    let prepared = prepare(graph, program.indexes(), options, &identity, resources)?;
    let _memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let (run, stats) = run_to_end(graph, options, resources, prepared, || {
        GatherRun::new(program, graph, options, resources)
    })?;
    let GatherState { states, globals } = run.current;
    Ok(Gathered { states, aggregate: globals.aggregate, stats })
}

pub(super) struct GatherRun<'a, G: Gather> {
    pub(super) context: GatherContext<'a, G>,
    pub(super) current: GatherState<G>,
    /// The new states of a superstep. Programs that settle have none: their new states are visible
    /// at once.
    pub(super) next: Option<ScratchArray<G::State>>,
    /// The items of a superstep; programs that settle cut them again in each superstep.
    items: Vec<Range<usize>>,
    /// The figures of the last superstep.
    last: GatherFigures,
    /// True if `next` has the states before the last superstep, of all vertices.
    knows_previous: bool,
    pub(super) swept: Swept,
    pub(super) durations: Durations,
}

impl<'a, G: Gather> GatherRun<'a, G> {
    fn new(
        program: &'a G,
        graph: &'a Graph,
        options: &'a RunOptions,
        resources: &'a Resources,
    ) -> Result<Self> {
        let weighted = options.weighted;
        let borrowed = present(graph, program.indexes());
        let division = options
            .communicator
            .as_ref()
            .map(|communicator| Division::new(communicator, graph, &borrowed));
        let owned = division.as_ref().map_or(0..graph.intervals() as usize, Division::owned);
        let extent = Extent::of_shards(graph, &borrowed, weighted);
        let plan = plan_with_exchange::<G>(&extent, program, division.as_ref(), resources)?;
        let files: Vec<Arc<ShardFile>> = borrowed.into_iter().map(Arc::clone).collect();
        let shards = Shards::new(graph, files, weighted, plan.pinned_bytes, &owned);
        let (lengths, longest) = measure(&shards, &owned, plan, graph, resources)?;
        if longest > extent.longest_list {
            let problem = format!(
                "the manifest says that no vertex has more than {}, but one has {longest}",
                counted(extent.longest_list, "neighbor")
            );
            return Err(StoreError::corrupt(graph.path(), 0, problem).into());
        }
        let spill = match cut(&shards, &owned, &lengths, plan, resources)? {
            cuts if cuts.len() > owned.len() => {
                Spill::new(&shards, cuts, plan.neighbors, weighted, graph, resources)?
            }
            _ => None,
        };
        let unpacked = match lengths.in_memory().filter(|_| plan.unpacked) {
            Some(lengths) => Some(UnpackedLists::new(&shards, &owned, lengths, resources)?),
            None => None,
        };
        let states = || -> Result<_> {
            let states = vertex_array(1, plan.resident, graph, resources)?;
            Ok(states.counted_as(Content::States))
        };
        let globals = Globals {
            vertices: graph.vertices(),
            superstep: 0,
            round: 0,
            aggregate: G::Aggregate::NOTHING,
        };
        Ok(Self {
            context: GatherContext {
                program,
                graph,
                resources,
                weighted,
                plan,
                shards,
                spill,
                unpacked,
                lengths,
                division,
                owned,
            },
            current: GatherState { states: states()?, globals },
            next: if G::SETTLES { None } else { Some(states()?) },
            items: Vec::new(),
            last: GatherFigures::default(),
            knows_previous: false,
            swept: Swept::default(),
            durations: Durations::default(),
        })
    }

    /// Gathers the items of superstep `number`; returns their figures.
    fn gather_items(&mut self, number: u64) -> Result<Vec<GatherFigures>> {
        let (context, current) = (&self.context, &mut self.current);
        // Processes choose among their own vertices.
        let is_divided = context.division.is_some();
        match (&mut self.next, &context.unpacked) {
            (None, _)
                if number > 1 && self.items.len() > 1 && !is_divided && context.can_choose() =>
            {
                Ok(vec![context.most_urgent(current)?])
            }
            (Some(next), Some(lists)) => {
                let changes = match self.knows_previous && !G::READS_GLOBALS {
                    true => context.changes(next, &current.states),
                    false => None,
                };
                let windows = next.windows();
                let gather = |index: usize, buffers: &mut GatherBuffers<G>| {
                    let (targets, changes) = (self.items[index].clone(), changes.as_ref());
                    context
                        .gather_unpacked_item(lists, changes, targets, current, &windows, buffers)
                };
                context.resources.parallel_map(self.items.len(), gather)
            }
            (next, _) => gather_in_groups(context, current, next.as_mut(), &self.items),
        }
    }
}

/// Gathers `items` and makes lists for them. Items of a program that settles form groups, one item
/// for each thread; a group sees the new states of earlier ones.
fn gather_in_groups<G: Gather>(
    context: &GatherContext<'_, G>,
    current: &mut GatherState<G>,
    mut next: Option<&mut ScratchArray<G::State>>,
    items: &[Range<usize>],
) -> Result<Vec<GatherFigures>> {
    let group_len = if G::SETTLES { context.resources.workers() } else { items.len() };
    let mut steps = Vec::with_capacity(items.len());
    for items in items.chunks(group_len.max(1)) {
        let windows = next.as_mut().map(|next| next.windows());
        let gather = |index: usize, buffers: &mut GatherBuffers<G>| {
            context.gather_item(items[index].clone(), current, windows.as_ref(), buffers)
        };
        let gathered = context.resources.parallel_map(items.len(), gather)?;
        drop(windows);
        let visible = current.states.windows();
        for ((step, states), targets) in gathered.into_iter().zip(items) {
            steps.push(step);
            visible.write(targets.start, &states)?;
        }
    }
    Ok(steps)
}

/// The plan of a run. The processes of a divided run share memory for their exchange if the budget
/// has room for that.
fn plan_with_exchange<G: Gather>(
    extent: &Extent,
    program: &G,
    division: Option<&Division>,
    resources: &Resources,
) -> Result<GatherPlan> {
    let state_bytes = size_of::<G::State>() as u64;
    let message = division.map_or(0, |division| division.message_bytes(state_bytes));
    let memory = division.map_or(0, |division| division.exchange_bytes(state_bytes));
    let (workers, budget) = (resources.workers() as u64, &resources.budget);
    let needs = GatherNeeds::of(program);
    let (needs, shared) =
        needs_of_exchange(needs, message, memory, extent, workers, budget.limit());
    let plan = GatherPlan::new(&needs, extent, workers, budget)?;
    if shared < memory {
        log_unshared("states", memory);
    }
    if let Some(division) = division.filter(|_| shared > 0) {
        division.share_memory(state_bytes)?;
    }
    Ok(plan)
}

impl<G: Gather> Supersteps for GatherRun<'_, G> {
    type Error = Error;

    fn done(&mut self) -> u64 {
        self.current.globals.superstep
    }

    fn swept(&mut self) -> Swept {
        self.swept
    }

    fn durations(&mut self) -> &mut Durations {
        &mut self.durations
    }

    /// Gathers every vertex that may change, once.
    fn superstep(&mut self) -> Result<(Traversal, u64)> {
        let context = &self.context;
        if self.items.is_empty() || G::SETTLES {
            self.items = context.cut(&self.current.states)?;
        }
        let number = self.current.globals.superstep + 1;
        context.resources.job.begin(format!("superstep {number}"), context.graph.connected());
        let steps = self.gather_items(number)?;
        let context = &self.context;
        let aggregates = match &self.next {
            Some(next) => context.aggregates(&self.current.states, next, context.owned.clone())?,
            None => Vec::new(),
        };
        let mut figures = GatherFigures::default();
        steps.into_iter().for_each(|step| figures += step);
        let aggregate;
        (self.last, aggregate) = self.exchange(figures, aggregates)?;
        if let Some(next) = &mut self.next {
            std::mem::swap(&mut self.current.states, next);
            self.knows_previous = true;
            self.current.globals.aggregate = aggregate;
        }
        self.current.globals.superstep = number;
        self.swept += self.last.swept;
        let is_divided = self.context.division.is_some();
        let traversal = if is_divided { Traversal::Cluster } else { Traversal::Gather };
        Ok((traversal, self.last.gathered))
    }

    fn converged(&mut self) -> bool {
        self.context.program.converged(&self.current.globals)
    }

    fn advance_rounds(&mut self) -> Result<bool> {
        Ok(self.last.changed > 0 && self.last.open > 0)
    }
}

/// Cuts the `owned` intervals into parts whose lists fit in memory, and counts the edges to each.
fn cut(
    shards: &Shards,
    owned: &Range<usize>,
    lengths: &ScratchArray<u32>,
    plan: GatherPlan,
    resources: &Resources,
) -> Result<Vec<(Range<usize>, u64)>> {
    let (mut cuts, mut buffer) = (Vec::new(), Vec::new());
    for interval in owned.clone() {
        resources.job.check()?;
        let window = shards.window(interval);
        let (mut start, mut edges) = (window.start, 0);
        let lengths = lengths.slice(window.clone(), &mut buffer)?;
        for (vertex, length) in window.clone().zip(lengths) {
            if edges + u64::from(*length) > plan.neighbors {
                cuts.push((start..vertex, edges));
                (start, edges) = (vertex, 0);
            }
            edges += u64::from(*length);
        }
        cuts.push((start..window.end, edges));
    }
    Ok(cuts)
}

/// The lengths of the lists of the vertices of the `owned` intervals, and the longest length.
fn measure(
    shards: &Shards,
    owned: &Range<usize>,
    plan: GatherPlan,
    graph: &Graph,
    resources: &Resources,
) -> Result<(ScratchArray<u32>, u64)> {
    let mut lengths = vertex_array(1, plan.resident, graph, resources)?;
    resources.job.begin("measure lists", owned.len() as u64);
    let windows = lengths.windows();
    let longest =
        resources.parallel_map(owned.len(), |at, (reader, buffer): &mut (Reader, Vec<u32>)| {
            let interval = owned.start + at;
            windows.overwrite(interval, buffer, |lengths| {
                lengths.fill(0);
                let mut overflows = false;
                shards.each(interval, false, &resources.job, reader, &mut |edges| {
                    edges.all(|_, target| {
                        let (length, wrapped) = lengths[target].overflowing_add(1);
                        lengths[target] = length;
                        overflows |= wrapped;
                        true
                    })
                })?;
                if overflows {
                    let problem = "a vertex has 2^32 neighbors or more, but this algorithm \
                                   supports fewer";
                    return Err(Error::Usage(problem.into()));
                }
                resources.job.advance(1);
                Ok(lengths.iter().copied().max().unwrap_or(0))
            })?
        })?;
    drop(windows);
    Ok((lengths, longest.into_iter().max().unwrap_or(0).into()))
}
