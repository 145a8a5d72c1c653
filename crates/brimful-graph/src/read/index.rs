//! The two indexes of a graph.

use crate::error::{Error, Result};

/// An index: the direction by which shards are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Index {
    /// Edges by target interval.
    In,
    /// Edges by source interval: the shards of the reversed graph.
    Reverse,
}

impl Index {
    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Reverse => "reverse",
        }
    }

    /// The index called `name`.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid names.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "in" => Ok(Self::In),
            "reverse" => Ok(Self::Reverse),
            _ => Err(Error::Usage(format!("there is no index {name:?}; choose from: in, reverse"))),
        }
    }
}
