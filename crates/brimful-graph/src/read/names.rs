//! The look-up of strings in a graph.

use crate::error::{Error, Result};
use crate::ids::external::{ExternalId, name_of_number};
use crate::ids::names::{NameFile, NameSizes};
use crate::read::graph::Graph;

impl Graph {
    /// The internal id of the vertex called `name`; takes two reads, or a few more.
    ///
    /// # Errors
    /// [`Error::NoSuchVertex`], also if the graph's ids are integers.
    pub fn find_name(&self, name: &str) -> Result<u64> {
        let rank = self.names().map_or(Ok(None), |names| names.find(name))?;
        let found = rank.map_or(Ok(None), |rank| self.find_bits(rank))?;
        found.ok_or_else(|| Error::no_such_vertex(&ExternalId::Name(name.into()), self.id_type()))
    }

    /// The internal id of a vertex, with the errors of [`Graph::find`] and [`Graph::find_name`].
    pub fn find_id(&self, id: &ExternalId) -> Result<u64> {
        match id {
            ExternalId::Number(number) if self.names().is_some() => {
                self.find_name(&name_of_number(*number))
            }
            ExternalId::Number(number) => self.find(*number),
            ExternalId::Name(name) => self.find_name(name),
        }
    }

    /// The sizes of the file of names; `None` if ids are integers.
    pub fn name_sizes(&self) -> Result<Option<NameSizes>> {
        self.names().map(NameFile::sizes).transpose()
    }

    /// Bytes of the longest name; `None` if ids are integers.
    pub fn longest_name(&self) -> Option<usize> {
        self.names().map(NameFile::longest)
    }
}
