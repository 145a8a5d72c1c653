//! The description of an algorithm: its name, its options and parameters, and how to run it.

use std::sync::Arc;

use brimful_engine::RowColumn;
use brimful_engine::plan::forecast::Forecast;
use brimful_graph::Graph;
use brimful_store::Resources;

use crate::Result;
use crate::parameter::ParameterInfo;
use crate::planning::Planner;
use crate::request::{Finished, FinishedRows, Request};

/// The shared options that an algorithm supports.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Takes {
    /// Sources: vertices where the algorithm begins.
    pub source: bool,
    /// Weights of the sources.
    pub source_weights: bool,
    /// A table of pairs of vertices.
    pub pairs: bool,
    /// A tolerance, with this default.
    pub tolerance: Option<f64>,
    /// The precision of signals: 64 or 32 bits.
    pub precision: bool,
    /// Edge weights.
    pub weights: bool,
    /// Asynchronous runs: signals are received within the same sweep.
    pub asynchronous: bool,
    /// Vertices in a store. The algorithm must be a single program over shards.
    pub stores: bool,
    /// Vertices divided among the workers of a cluster. The algorithm must be a single program over
    /// shards or neighbor lists.
    pub cluster: bool,
    /// Checkpoints. The algorithm must have supersteps.
    pub checkpoints: bool,
}

impl Takes {
    /// No shared options.
    pub const NOTHING: Self = Self {
        source: false,
        source_weights: false,
        pairs: false,
        tolerance: None,
        precision: false,
        weights: false,
        asynchronous: false,
        stores: false,
        cluster: false,
        checkpoints: false,
    };
    /// The options of a single program over shards: stores, clusters and checkpoints.
    pub const PROGRAM: Self =
        Self { stores: true, cluster: true, checkpoints: true, ..Self::NOTHING };
    /// The options of an iteration over scores: those of a program, and weights. The algorithm adds
    /// its default tolerance.
    pub const ITERATION: Self = Self { weights: true, ..Self::PROGRAM };

    /// The names of all shared options, and whether the algorithm supports each.
    pub fn options(self) -> [(&'static str, bool); 10] {
        [
            ("source", self.source),
            ("source-weight", self.source_weights),
            ("pairs", self.pairs),
            ("tolerance", self.tolerance.is_some()),
            ("precision", self.precision),
            ("weighted", self.weights),
            ("mode", self.asynchronous),
            ("store", self.stores),
            ("cluster", self.cluster),
            ("checkpoint-every", self.checkpoints),
        ]
    }
}

/// The function that runs an algorithm, by the kind of the result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Run {
    /// A value for each vertex.
    Vertices(fn(&Request, &Arc<Graph>, &Resources) -> Result<Finished>),
    /// Rows with these columns.
    Rows(&'static [RowColumn], fn(&Request, &Arc<Graph>, &Resources) -> Result<FinishedRows>),
}

/// The description of an algorithm.
#[derive(Debug, Clone, Copy)]
pub struct Info {
    /// Its name.
    pub name: &'static str,
    /// A description of the result.
    pub computes: &'static str,
    /// The name of the column with the main values.
    pub column: &'static str,
    /// The shared options that it supports.
    pub takes: Takes,
    /// Its own parameters.
    pub parameters: &'static [ParameterInfo],
    /// Runs the algorithm.
    pub(crate) run: Run,
    /// Forecasts the memory and time of a run.
    pub(crate) plan: fn(&Planner<'_>) -> Result<Forecast>,
}

impl Info {
    /// The names of the columns of the result.
    pub fn columns(&self) -> Vec<&'static str> {
        match self.run {
            Run::Vertices(_) => vec!["vertex", self.column],
            Run::Rows(columns, _) => {
                let names = columns.iter().map(|(name, _)| *name);
                // `Run::Rows` names only columns of one word a row; a column of lists is added
                // here.
                let lists = Some(self.column).filter(|own| names.clone().all(|name| name != *own));
                names.chain(lists).collect()
            }
        }
    }

    /// True if the result is a table of rows; false if it is a value for each vertex.
    pub fn has_rows(&self) -> bool {
        matches!(self.run, Run::Rows(..))
    }
}
