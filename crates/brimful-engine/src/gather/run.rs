//! A run over neighbour lists.
//!
//! Aggregates are summed within an interval in id order, then over intervals in order. Invariant: states and
//! aggregates are the same bits at any budget and number of threads.

use std::ops::Range;
use std::sync::Arc;
use std::time::Instant;

use brimful_graph::Graph;
use brimful_graph::shards::ShardFile;
use brimful_store::scratch::ScratchArray;
use brimful_store::{Content, Error as StoreError, Resources};

use super::edges::{Reader, Shards};
use super::known::Known;
use super::plan::{PURPOSE, Plan};
use super::spill::Spill;
use super::step::{Fixed, Handed, Room, Step};
use super::{Gather, Gathered, checkpoint};
use crate::aggregate::Aggregate;
use crate::checkpoint::Checkpointer;
use crate::error::{Error, Result};
use crate::extent::{Extent, present};
use crate::forecast::Setting;
use crate::needs::GatherNeeds;
use crate::options::RunOptions;
use crate::program::Globals;
use crate::run::moved;
use crate::stats::{Durations, Stats, Swept, Traversal};
use crate::supersteps::{Supersteps, build_missing, run_supersteps};

/// Runs `program` until it converges, no state changes, or a limit of `options` is reached.
///
/// A missing index is built first, and kept.
///
/// # Errors
/// [`brimful_store::Error::Budget`] naming the smallest budget that works, before any work; [`Error::Usage`] for options that make no sense here; corruption and I/O as they are met;
/// [`brimful_store::Error::Interrupted`] after a cancellation.
pub fn gather<G: Gather>(
    program: &G,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
) -> Result<Gathered<G::State, G::Aggregate>> {
    const {
        assert!(
            !G::SETTLES || size_of::<G::Aggregate>() == 0,
            "how far a program that settles has come in a superstep depends on the memory: it has no aggregate"
        );
    }
    options.check_weights(graph)?;
    options.check_gather(G::SETTLES)?;
    // Of all that follows, an index that is missing included, before any of it begins.
    let extent = Extent::of(graph, program.indexes(), options.weighted);
    let least = Setting::new(&extent, resources).least_of_lists(&GatherNeeds::of(program));
    resources.budget.require(least, PURPOSE)?;
    let open = |chosen| Checkpointer::open(chosen, graph, &checkpoint::identity::<G>(options), resources);
    let mut checkpointer = options.checkpoints.as_ref().map(open).transpose()?;
    let index_seconds = build_missing(graph, program.indexes(), resources)?;
    let (begin, before) = (Instant::now(), moved(graph, resources));
    if graph.connected() > u64::from(u32::MAX) {
        return Err(Error::Usage("neighbour lists are for up to 2^32 vertices with edges".into()));
    }
    let _memory = resources.budget.reserve(resources.budget.limit(), PURPOSE)?;
    let mut run = Run::new(program, graph, options, resources)?;
    let resumed_from = match &mut checkpointer {
        Some(own) => {
            own.resume(options.max_supersteps, |mut saved, fields| run.restore(&mut saved, fields))?
        }
        None => None,
    };
    if resumed_from.is_none() {
        run.initialize()?;
    }
    let prepared = begin.elapsed().as_secs_f64();
    let reason = run_supersteps(
        &mut run,
        options,
        begin,
        || moved(graph, resources),
        |run| checkpointer.as_mut().map_or(Ok(false), |own| run.checkpoint(own)),
    )?;
    let checkpoints = checkpointer.map(Checkpointer::finish).transpose()?;
    let seconds = begin.elapsed().as_secs_f64();
    let mut phases =
        vec![("prepare", prepared), ("supersteps", seconds - prepared - checkpoints.unwrap_or(0.0))];
    phases.extend(checkpoints.map(|seconds| ("checkpoints", seconds)));
    let Handed { states, globals } = run.handed;
    let stats = Stats {
        supersteps: globals.superstep,
        reason,
        durations: run.durations,
        seconds,
        index_seconds,
        signals: run.swept.signals,
        edges_visited: run.swept.edges,
        moved: moved(graph, resources) - before,
        phases,
        threads: resources.workers(),
        resumed_from,
    };
    Ok(Gathered { states, aggregate: globals.aggregate, stats })
}

pub(super) struct Run<'a, G: Gather> {
    pub(super) fixed: Fixed<'a, G>,
    pub(super) handed: Handed<G>,
    /// States being made; of programs that settle they are shown as soon as they are made.
    next: Option<ScratchArray<G::State>>,
    /// What is gathered at a time; of programs that settle anew in every superstep.
    items: Vec<Range<usize>>,
    /// The last superstep.
    last: Step,
    pub(super) swept: Swept,
    pub(super) durations: Durations,
}

impl<'a, G: Gather> Run<'a, G> {
    fn new(
        program: &'a G,
        graph: &'a Graph,
        options: &'a RunOptions,
        resources: &'a Resources,
    ) -> Result<Self> {
        let weighted = options.weighted;
        let borrowed = present(graph, program.indexes());
        let files: Vec<Arc<ShardFile>> = borrowed.iter().copied().map(Arc::clone).collect();
        let (needs, extent) = (GatherNeeds::of(program), Extent::of_shards(graph, &borrowed, weighted));
        let plan = Plan::new(&needs, &extent, resources.workers() as u64, &resources.budget)?;
        let shards = Shards::new(graph, files, weighted, plan.pinned_bytes);
        let (lengths, longest) = measure(&shards, plan, graph, options, resources)?;
        if longest > extent.longest_list {
            let what = format!(
                "the manifest says that no vertex has more than {} neighbours, but one has {longest}",
                extent.longest_list
            );
            return Err(StoreError::corrupt(graph.path(), 0, what).into());
        }
        let spill = match cut(&shards, &lengths, plan, resources)? {
            cuts if cuts.len() > shards.intervals() => {
                Spill::new(&shards, cuts, plan.neighbours, weighted, options, (graph, resources))?
            }
            _ => None,
        };
        let states =
            || Ok::<_, Error>(options.array(plan.resident, graph, resources)?.counted_as(Content::States));
        let globals =
            Globals { vertices: graph.vertices(), superstep: 0, round: 0, aggregate: G::Aggregate::NOTHING };
        Ok(Self {
            fixed: Fixed { program, graph, resources, weighted, plan, shards, spill, lengths },
            handed: Handed { states: states()?, globals },
            next: if G::SETTLES { None } else { Some(states()?) },
            items: Vec::new(),
            last: Step::default(),
            swept: Swept::default(),
            durations: Durations::default(),
        })
    }

    /// Sets every state.
    fn initialize(&mut self) -> Result<()> {
        let Fixed { program, graph, resources, weighted, shards, .. } = &self.fixed;
        let smallest = match G::NEEDS_EXTERNAL {
            true => graph.key_bounds()?.map_or(0, |(smallest, _)| smallest),
            false => 0,
        };
        resources.job.begin("initialize", shards.intervals() as u64);
        let windows = self.handed.states.windows();
        resources.share(shards.intervals(), |interval, (known, room): &mut (Known, Vec<G::State>)| {
            let range = shards.window(interval);
            known.read_degrees::<G>(graph, *weighted, &range)?;
            known.read_external::<G>(graph, smallest, &range)?;
            let initial = |at| program.initial(known.vertex(range.start, at));
            windows.overwrite(interval, room, |states| {
                states.iter_mut().enumerate().for_each(|(at, state)| *state = initial(at));
            })?;
            resources.job.advance(1);
            Ok::<_, Error>(())
        })?;
        drop(windows);
        self.handed.globals.aggregate = self.fixed.aggregate(&self.handed.states, &self.handed.states)?;
        Ok(())
    }
}

impl<G: Gather> Supersteps for Run<'_, G> {
    type Error = Error;

    fn done(&mut self) -> u64 {
        self.handed.globals.superstep
    }

    fn swept(&mut self) -> Swept {
        self.swept
    }

    fn durations(&mut self) -> &mut Durations {
        &mut self.durations
    }

    /// Gathers everybody who is not settled once.
    fn superstep(&mut self) -> Result<Traversal> {
        let (fixed, handed) = (&self.fixed, &mut self.handed);
        if self.items.is_empty() || G::SETTLES {
            self.items = fixed.cut(&handed.states)?;
        }
        let number = handed.globals.superstep + 1;
        fixed.resources.job.begin(format!("superstep {number}"), fixed.graph.connected());
        let steps = match &mut self.next {
            None if number > 1 && self.items.len() > 1 && fixed.can_choose() => {
                vec![fixed.most_urgent(handed)?]
            }
            next => {
                // Items of programs that settle see what those before them have become.
                let at_once = if G::SETTLES { fixed.resources.workers() } else { self.items.len() };
                let mut steps = Vec::new();
                for items in self.items.chunks(at_once.max(1)) {
                    let windows = next.as_mut().map(ScratchArray::windows);
                    let gather = |index: usize, room: &mut Room<G>| {
                        fixed.item(items[index].clone(), handed, windows.as_ref(), room)
                    };
                    let made = fixed.resources.share(items.len(), gather)?;
                    drop(windows);
                    let shown = handed.states.windows();
                    for ((step, states), targets) in made.into_iter().zip(items) {
                        steps.push(step);
                        shown.write(targets.start, &states)?;
                    }
                }
                steps
            }
        };
        if let Some(next) = &mut self.next {
            handed.globals.aggregate = fixed.aggregate(&handed.states, next)?;
            std::mem::swap(&mut handed.states, next);
        }
        handed.globals.superstep = number;
        self.last = Step::default();
        steps.into_iter().for_each(|step| self.last += step);
        self.swept += self.last.swept;
        Ok(Traversal::Gather)
    }

    fn converged(&mut self) -> bool {
        self.fixed.program.converged(&self.handed.globals)
    }

    fn goes_on(&mut self) -> Result<bool> {
        Ok(self.last.changed > 0 && self.last.open > 0)
    }
}

/// The parts of all intervals whose lists fit together, and how many edges lead to each.
fn cut(
    shards: &Shards,
    lengths: &ScratchArray<u32>,
    plan: Plan,
    resources: &Resources,
) -> Result<Vec<(Range<usize>, u64)>> {
    let (mut cuts, mut room) = (Vec::new(), Vec::new());
    for interval in 0..shards.intervals() {
        resources.job.check()?;
        let window = shards.window(interval);
        let (mut start, mut held) = (window.start, 0);
        let lengths = lengths.slice(window.clone(), &mut room)?;
        for (vertex, length) in window.clone().zip(lengths) {
            if held + u64::from(*length) > plan.neighbours {
                cuts.push((start..vertex, held));
                (start, held) = (vertex, 0);
            }
            held += u64::from(*length);
        }
        cuts.push((start..window.end, held));
    }
    Ok(cuts)
}

/// Lengths of all lists, and that of the longest.
fn measure(
    shards: &Shards,
    plan: Plan,
    graph: &Graph,
    options: &RunOptions,
    resources: &Resources,
) -> Result<(ScratchArray<u32>, u64)> {
    let mut lengths = options.array(plan.resident, graph, resources)?;
    resources.job.begin("measure lists", shards.intervals() as u64);
    let windows = lengths.windows();
    let longest = resources.share(shards.intervals(), |interval, room: &mut (Reader, Vec<u32>)| {
        let (reader, buffer) = room;
        windows.overwrite(interval, buffer, |lengths| {
            lengths.fill(0);
            let mut over = false;
            shards.each(interval, false, &resources.job, reader, &mut |edges| {
                edges.all(|_, target| {
                    let (length, wrapped) = lengths[target].overflowing_add(1);
                    lengths[target] = length;
                    over |= wrapped;
                    true
                })
            })?;
            if over {
                return Err(Error::Usage("a vertex has 2^32 neighbours or more".into()));
            }
            resources.job.advance(1);
            Ok(lengths.iter().copied().max().unwrap_or(0))
        })?
    })?;
    drop(windows);
    Ok((lengths, longest.into_iter().max().unwrap_or(0).into()))
}
