//! What the user chose for a run.

use std::path::PathBuf;

use crate::combiner::Combiner;
use crate::error::{Error, Result};
use crate::program::{Mode, Program};

/// How a superstep in which not everybody signals reads edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Door {
    /// Sparse while the frontier is small and the budget has room for it.
    #[default]
    Auto,
    /// All segments that have signalling sources.
    Dense,
    /// Only blocks that hold edges of the frontier; dense where those reach too many vertices.
    Sparse,
}

/// What the user chose for a run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// At most so many supersteps.
    pub max_supersteps: u64,
    /// No superstep begins so many seconds after the run; at least one is done.
    pub max_seconds: Option<f64>,
    /// A vertex signals if its score exceeds this; `None`: [`crate::program::SIGNAL_THRESHOLD`].
    pub signal_threshold: Option<f64>,
    /// A vertex collects if its score exceeds this; `None`: [`crate::program::COLLECT_THRESHOLD`].
    pub collect_threshold: Option<f64>,
    /// Which way supersteps go where there is a choice; the result is the same.
    pub door: Door,
    /// Edge weights count.
    pub weighted: bool,
    /// Where arrays that exceed the budget go; `None`: beside the graph if that can be written to,
    /// else the system's folder for temporary files.
    pub scratch: Option<PathBuf>,
}

impl Default for RunOptions {
    /// No limits but convergence, no weights, the default thresholds.
    fn default() -> Self {
        Self {
            max_supersteps: u64::MAX,
            max_seconds: None,
            signal_threshold: None,
            collect_threshold: None,
            door: Door::Auto,
            weighted: false,
            scratch: None,
        }
    }
}

impl RunOptions {
    /// Refuses thresholds that `P` cannot have.
    ///
    /// # Errors
    /// [`Error::Usage`] with the reason.
    pub fn check<P: Program>(&self) -> Result<()> {
        const {
            assert!(
                P::Combiner::IDEMPOTENT || !matches!(P::MODE, Mode::Idempotent),
                "the mode is idempotent, but its combiner is not"
            );
        }
        let given = [self.signal_threshold, self.collect_threshold];
        if given.iter().flatten().any(|threshold| threshold.is_nan()) {
            return Err(Error::Usage("a threshold must be a number".into()));
        }
        if P::MODE == Mode::Full && given.iter().any(Option::is_some) {
            let what = "this program signals everything in every superstep: it cannot leave out vertices below a threshold";
            return Err(Error::Usage(what.into()));
        }
        if P::MODE == Mode::Delta && self.collect_threshold.is_some() {
            let what = "this program signals increments: none may be left uncollected, so it takes no collect threshold";
            return Err(Error::Usage(what.into()));
        }
        Ok(())
    }
}
