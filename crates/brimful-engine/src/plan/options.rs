//! The user's options of a run.

use brimful_graph::{Graph, Index};

use crate::checkpoint::{CheckpointOptions, Every};
use crate::error::{Error, Result};
use crate::exchange::Communicator;
use crate::vertex::combiner::Combiner;
use crate::vertex::program::{Mode, Program};

/// The traversal of supersteps in which not all vertices signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TraversalMode {
    /// Sparse or dense, as the cost model estimates; dense if the frontier does not fit the budget.
    #[default]
    Auto,
    /// Always dense: reads all segments with signalling sources.
    Dense,
    /// Sparse: reads only blocks with edges of the frontier. Dense only if the frontier reaches too
    /// many vertices.
    Sparse,
}

/// The user's options of a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The maximum number of supersteps.
    pub max_supersteps: u64,
    /// No superstep begins after this many seconds; at least one superstep is done. `None`: no
    /// limit.
    pub max_seconds: Option<f64>,
    /// A vertex signals if its score exceeds this; `None`:
    /// [`crate::SIGNAL_THRESHOLD`].
    pub signal_threshold: Option<f64>,
    /// A vertex collects if its score exceeds this; `None`:
    /// [`crate::COLLECT_THRESHOLD`].
    pub collect_threshold: Option<f64>,
    /// Dense or sparse traversal, if both are possible; the result is the same.
    pub traversal: TraversalMode,
    /// True for asynchronous sweeps, which receive signals of the same sweep; only for
    /// [`Program::ASYNCHRONOUS`] programs.
    pub asynchronous: bool,
    /// True if the run uses edge weights.
    pub weighted: bool,
    /// Checkpoint and resume options; `None`: no checkpoints.
    pub checkpoints: Option<CheckpointOptions>,
    /// The connection to the other processes of the run; `None`: there are none.
    pub communicator: Option<Communicator>,
}

impl Default for RunOptions {
    /// No limits except convergence, no weights, the default thresholds, no checkpoints.
    fn default() -> Self {
        Self {
            max_supersteps: u64::MAX,
            max_seconds: None,
            signal_threshold: None,
            collect_threshold: None,
            traversal: TraversalMode::Auto,
            asynchronous: false,
            weighted: false,
            checkpoints: None,
            communicator: None,
        }
    }
}

impl RunOptions {
    /// Refuses weights if `graph` has none.
    ///
    /// # Errors
    /// [`Error::Usage`] with the remedy.
    pub fn check_weights(&self, graph: &Graph) -> Result<()> {
        if self.weighted {
            graph.require_weights("import it with a weight column or run without --weighted")?;
        }
        Ok(())
    }

    /// Refuses to build a missing index in one of several processes: the driver builds it before
    /// the others begin.
    pub(crate) fn check_index(&self, graph: &Graph, indexes: &[Index]) -> Result<()> {
        let owns =
            self.communicator.as_ref().is_some_and(|communicator| communicator.index.is_some());
        if owns && indexes.iter().any(|index| graph.shards(*index).is_none()) {
            let problem = "a worker finds no reverse index here; build the index with 'brimful \
                           index GRAPH reverse' in a folder that all nodes share";
            return Err(brimful_graph::Error::input(graph.path(), problem).into());
        }
        Ok(())
    }

    /// Refuses options that a program over neighbor lists does not support; `settles` is its
    /// [`crate::Gather::SETTLES`].
    pub(crate) fn check_gather(&self, settles: bool) -> Result<()> {
        let options = [
            (self.signal_threshold.is_some(), "a signal threshold"),
            (self.collect_threshold.is_some(), "a collect threshold"),
            (self.traversal != TraversalMode::Auto, "the choice of a traversal"),
            (self.asynchronous, "the asynchronous mode"),
        ];
        if let Some((_, option)) = options.iter().find(|(is_set, _)| *is_set) {
            return Err(Error::Usage(format!(
                "{option} does not apply to a program over neighbor lists; leave it out"
            )));
        }
        if self.communicator.is_some() {
            self.check_divided()?;
        }
        if settles && self.max_supersteps != u64::MAX {
            let problem = "--max-supersteps does not apply to this program: the number of \
                           supersteps depends on the budget; leave it out";
            return Err(Error::Usage(problem.into()));
        }
        Ok(())
    }

    /// Refuses options that a run does not support if it is divided among processes.
    ///
    /// # Errors
    /// [`Error::Usage`] with the reason.
    pub fn check_divided(&self) -> Result<()> {
        // The clocks of the processes differ, and so would their decisions.
        if self.max_seconds.is_some() {
            return Err(Error::Usage(
                "a time limit does not apply to a run on a cluster; leave it out".into(),
            ));
        }
        if self.asynchronous {
            let problem = "a run on a cluster needs synchronous supersteps; use --mode sync";
            return Err(Error::Usage(problem.into()));
        }
        let every = self.checkpoints.as_ref().and_then(|options| options.every.as_ref());
        if matches!(every, Some(Every::Time(_))) {
            let problem = "a run on a cluster counts the interval of checkpoints in supersteps, \
                           not in seconds; use --checkpoint-every K";
            return Err(Error::Usage(problem.into()));
        }
        Ok(())
    }

    /// Refuses options that `P` does not support.
    ///
    /// # Errors
    /// [`Error::Usage`] with the reason.
    pub fn check<P: Program>(&self) -> Result<()> {
        const {
            assert!(
                P::Combiner::IDEMPOTENT || !matches!(P::MODE, Mode::Idempotent),
                "the mode is idempotent, but its combiner is not"
            );
            assert!(
                !P::ORDERED
                    || P::ASYNCHRONOUS
                        && matches!(P::MODE, Mode::Idempotent)
                        && size_of::<P::Aggregate>() == 0,
                "only an asynchronous idempotent program without an aggregate can be ordered"
            );
        }
        self.check_mode(P::MODE, P::ASYNCHRONOUS)
    }

    /// The part of `check` without type parameters, compiled once.
    fn check_mode(&self, mode: Mode, asynchronous: bool) -> Result<()> {
        let thresholds = [self.signal_threshold, self.collect_threshold];
        if thresholds.iter().flatten().any(|threshold| threshold.is_nan()) {
            return Err(Error::Usage("a threshold must be a number".into()));
        }
        if self.asynchronous && (!asynchronous || mode == Mode::Delta) {
            let problem = "this program needs synchronous supersteps; use --mode sync";
            return Err(Error::Usage(problem.into()));
        }
        if self.communicator.is_some() {
            self.check_divided()?;
        }
        if mode == Mode::Full && thresholds.iter().any(Option::is_some) {
            let problem = "this program signals everything in every superstep, so a threshold does \
                           not apply; leave it out";
            return Err(Error::Usage(problem.into()));
        }
        if mode == Mode::Delta && self.collect_threshold.is_some() {
            let problem = "this program signals increments, which must all be collected, so a \
                           collect threshold does not apply; leave it out";
            return Err(Error::Usage(problem.into()));
        }
        Ok(())
    }
}
