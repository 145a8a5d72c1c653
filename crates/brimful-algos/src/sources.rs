//! The sources: vertices at which a search, or a personalised rank, starts.
//!
//! Invariant: ids and offsets ascend, each once, so neither the order nor the repetition of sources
//! in a request matters.

use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::ids::external::ExternalId;
use brimful_store::Job;

use crate::{Error, Result};

/// The most sources of a run. Their memory is below the reserve of a budget.
pub const MOST_SOURCES: usize = 1 << 16;
/// The identity of a run lists up to so many sources one by one.
const LISTED: usize = 8;

/// The sources of a run.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Internal ids of the sources with edges.
    ids: Arc<[u64]>,
    /// Offsets of the external ids of the sources without edges (see
    /// [`brimful_engine::Vertex::external`]).
    isolated: Arc<[u64]>,
}

impl Sources {
    /// Finds the vertices with these external ids.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than [`MOST_SOURCES`]; [`brimful_graph::Error::NoSuchVertex`].
    pub(crate) fn find(named: &[ExternalId], graph: &Graph, job: &Job) -> Result<Self> {
        if named.len() > MOST_SOURCES {
            return Err(Error::Usage(format!(
                "a run begins at {MOST_SOURCES} vertices at most; name fewer sources"
            )));
        }
        let smallest = graph.key_bounds()?.map_or(0, |(smallest, _)| smallest);
        let (mut ids, mut isolated) = (Vec::new(), Vec::new());
        for source in named {
            job.check()?;
            let internal = graph.find_id(source)?;
            if internal < graph.connected() {
                ids.push(internal);
                continue;
            }
            let mut bits = [0];
            graph.external_ids(internal, &mut bits)?;
            isolated.push(graph.id_type().order_key(bits[0]).wrapping_sub(smallest));
        }
        Ok(Self { ids: ascending(ids), isolated: ascending(isolated) })
    }

    /// True if the vertex with this internal id, which has edges, is a source.
    #[inline]
    pub fn contains(&self, id: u64) -> bool {
        self.ids.binary_search(&id).is_ok()
    }

    /// True if the vertex with this external offset, which has no edges, is a source.
    pub(crate) fn has_isolated(&self, place: u64) -> bool {
        self.isolated.binary_search(&place).is_ok()
    }

    /// Number of sources with edges.
    pub fn connected(&self) -> u64 {
        self.ids.len() as u64
    }

    /// Number of sources without edges.
    pub fn isolated(&self) -> u64 {
        self.isolated.len() as u64
    }

    /// Number of sources.
    pub fn count(&self) -> u64 {
        self.connected() + self.isolated()
    }
}

/// A single source with edges.
impl From<u64> for Sources {
    fn from(id: u64) -> Self {
        Self { ids: [id].into(), isolated: [].into() }
    }
}

/// Sources with edges.
impl FromIterator<u64> for Sources {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        Self { ids: ascending(ids.into_iter().collect()), isolated: [].into() }
    }
}

fn ascending(mut numbers: Vec<u64>) -> Arc<[u64]> {
    numbers.sort_unstable();
    numbers.dedup();
    numbers.into()
}

/// The identity of these sources, in any order; `None` if there are none.
pub(crate) fn identity(named: &[ExternalId]) -> Option<String> {
    let mut texts: Vec<String> = named
        .iter()
        .map(|source| match source {
            ExternalId::Number(number) => number.to_string(),
            ExternalId::Name(name) => format!("{name:?}"),
        })
        .collect();
    texts.sort_unstable();
    texts.dedup();
    let list = texts.join(", ");
    match texts.len() {
        0 => None,
        1..=LISTED => Some(list),
        count => {
            Some(format!("{count} vertices ({:016x})", brimful_store::checksum(list.as_bytes())))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_source_counts_once_in_any_order() {
        let sources: Sources = [7, 3, 7].into_iter().collect();
        assert_eq!((sources.count(), sources.connected(), sources.isolated()), (2, 2, 0));
        assert!(sources.contains(3) && sources.contains(7) && !sources.contains(5));
    }

    #[test]
    fn the_identity_depends_on_the_set_alone() {
        let named = |ids: &[i128]| ids.iter().copied().map(ExternalId::from).collect::<Vec<_>>();
        assert_eq!(identity(&[]), None);
        assert_eq!(identity(&named(&[3])).as_deref(), Some("3"));
        assert_eq!(identity(&named(&[7, 3, 7])).as_deref(), Some("3, 7"));
        let name = |text: &str| ExternalId::Name(text.into());
        assert_ne!(identity(&[name("a"), name("b")]), identity(&[name("a, b")]));
        let many: Vec<i128> = (0..100).collect();
        let turned: Vec<i128> = (0..100).rev().collect();
        assert_eq!(identity(&named(&many)), identity(&named(&turned)));
        assert_ne!(identity(&named(&many)), identity(&named(&many[1..])));
        assert!(identity(&named(&many)).unwrap().starts_with("100 vertices ("));
    }
}
