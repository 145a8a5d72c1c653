//! The sources: vertices at which a search, or personalized PageRank, starts.
//!
//! Sources may have weights: the shares of personalized PageRank that start at them. Invariant: ids
//! and offsets ascend and are unique. The order of sources in a request therefore does not matter,
//! and without weights neither does their repetition.

use std::sync::Arc;

use brimful_graph::Graph;
use brimful_graph::ids::external::ExternalId;
use brimful_store::Job;
use brimful_store::wording::counted;

use crate::{Error, Result};

/// The maximum number of sources of a run. Their memory is below the reserve of a budget.
pub const MAX_SOURCES: usize = 1 << 16;
/// The identity of a run lists up to this many sources one by one.
const LISTED: usize = 8;

/// The sources of a run.
#[derive(Debug, Clone)]
pub struct Sources {
    /// Sources with edges, by internal id.
    connected: Part,
    /// Sources without edges, by the offset of the external id (see
    /// [`brimful_engine::Vertex::external`]).
    isolated: Part,
}

/// The sources with edges, or those without.
#[derive(Debug, Clone)]
struct Part {
    ids: Arc<[u64]>,
    /// The weight of each source, relative to the mean of all sources; empty if all are equal.
    weights: Arc<[f64]>,
}

impl Part {
    fn new(mut named: Vec<(u64, f64)>, weighted: bool) -> Result<Self> {
        named.sort_unstable_by_key(|(id, _)| *id);
        let all = named.len();
        named.dedup_by_key(|(id, _)| *id);
        if weighted && named.len() < all {
            let problem =
                "a source with a weight is named twice; name it once with the sum of its weights";
            return Err(Error::Usage(problem.into()));
        }
        let weights =
            if weighted { named.iter().map(|(_, weight)| *weight).collect() } else { [].into() };
        Ok(Self { ids: named.into_iter().map(|(id, _)| id).collect(), weights })
    }

    /// The weight of a source; 0 for another vertex.
    #[inline]
    fn weight(&self, id: u64) -> f64 {
        self.ids.binary_search(&id).map_or(0.0, |at| self.weights.get(at).copied().unwrap_or(1.0))
    }

    /// The sum of the weights.
    fn weights(&self) -> f64 {
        if self.weights.is_empty() { self.ids.len() as f64 } else { self.weights.iter().sum() }
    }
}

impl Sources {
    /// Finds the vertices with these external ids. `weights` has a weight for each, or is empty.
    ///
    /// # Errors
    /// [`Error::Usage`] for more than [`MAX_SOURCES`], for a repeated source with a weight, and for
    /// weights that are negative, not finite or all 0; [`brimful_graph::Error::NoSuchVertex`].
    pub(crate) fn find(
        named: &[ExternalId],
        weights: &[f64],
        graph: &Graph,
        job: &Job,
    ) -> Result<Self> {
        if named.len() > MAX_SOURCES {
            return Err(Error::Usage(format!(
                "a run takes at most {MAX_SOURCES} sources; name fewer"
            )));
        }
        let factor = factor(named.len(), weights)?;
        let offsets = graph.id_offsets()?;
        let (mut connected, mut isolated) = (Vec::new(), Vec::new());
        for (at, source) in named.iter().enumerate() {
            job.check()?;
            let weight = weights.get(at).map_or(1.0, |weight| weight * factor);
            let internal = graph.find_id(source)?;
            if internal < graph.connected() {
                connected.push((internal, weight));
                continue;
            }
            isolated.push((graph.external_offset(offsets, internal)?, weight));
        }
        let part = |named| Part::new(named, !weights.is_empty());
        Ok(Self { connected: part(connected)?, isolated: part(isolated)? })
    }

    /// True if the vertex with this internal id, which has edges, is a source.
    #[inline]
    pub fn contains(&self, id: u64) -> bool {
        self.connected.ids.binary_search(&id).is_ok()
    }

    /// True if the vertex with this external offset, which has no edges, is a source.
    pub(crate) fn has_isolated(&self, id_offset: u64) -> bool {
        self.isolated.ids.binary_search(&id_offset).is_ok()
    }

    /// The weight of the vertex with this internal id, which has edges: 0 if it is not a source.
    /// The mean weight of all sources is 1.
    #[inline]
    pub(crate) fn weight(&self, id: u64) -> f64 {
        self.connected.weight(id)
    }

    /// The weight of the vertex with this external offset, which has no edges; 0 if it is not a
    /// source.
    pub(crate) fn isolated_weight(&self, id_offset: u64) -> f64 {
        self.isolated.weight(id_offset)
    }

    /// The sum of the weights of sources with edges, and of those without.
    pub(crate) fn weights(&self) -> [f64; 2] {
        [self.connected.weights(), self.isolated.weights()]
    }

    /// Number of sources with edges.
    pub fn connected(&self) -> u64 {
        self.connected.ids.len() as u64
    }

    /// Number of sources without edges.
    pub fn isolated(&self) -> u64 {
        self.isolated.ids.len() as u64
    }

    /// Number of sources.
    pub fn count(&self) -> u64 {
        self.connected() + self.isolated()
    }
}

/// The factor that makes the mean of `weights` 1.
fn factor(sources: usize, weights: &[f64]) -> Result<f64> {
    if weights.is_empty() {
        return Ok(1.0);
    }
    if weights.len() != sources {
        let problem = format!(
            "{} given for {}; give one weight for each source, or none",
            counted(weights.len(), "weight"),
            counted(sources, "source")
        );
        return Err(Error::Usage(problem));
    }
    if let Some(wrong) = weights.iter().find(|weight| !weight.is_finite() || **weight < 0.0) {
        let problem = format!("the weight of a source must be a number of at least 0, not {wrong}");
        return Err(Error::Usage(problem));
    }
    let sum = weights.iter().sum::<f64>();
    let factor = sources as f64 / sum;
    if !factor.is_normal() {
        let problem =
            format!("the weights of the sources must have a finite sum above 0, not {sum}");
        return Err(Error::Usage(problem));
    }
    Ok(factor)
}

/// A single source with edges.
impl From<u64> for Sources {
    fn from(id: u64) -> Self {
        [id].into_iter().collect()
    }
}

/// Sources with edges.
impl FromIterator<u64> for Sources {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut ids: Vec<u64> = ids.into_iter().collect();
        ids.sort_unstable();
        ids.dedup();
        let part = |ids: Vec<u64>| Part { ids: ids.into(), weights: [].into() };
        Self { connected: part(ids), isolated: part(Vec::new()) }
    }
}

/// The identity of these sources with their weights, in any order; `None` if there are none.
pub(crate) fn identity(named: &[ExternalId], weights: &[f64]) -> Option<String> {
    let mut texts: Vec<String> = named
        .iter()
        .enumerate()
        .map(|(at, source)| {
            let weight = weights.get(at).map_or_else(String::new, |weight| format!(" = {weight}"));
            match source {
                ExternalId::Number(number) => format!("{number}{weight}"),
                ExternalId::Name(name) => format!("{name:?}{weight}"),
            }
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
    fn weights_are_shares() {
        assert_eq!(factor(3, &[]).unwrap(), 1.0);
        assert_eq!(factor(2, &[1.0, 3.0]).unwrap(), 0.5);
        for (weights, says) in [
            (&[1.0][..], "1 weight given for 2 sources"),
            (&[1.0, -1.0], "not -1"),
            (&[1.0, f64::NAN], "not NaN"),
            (&[0.0, 0.0], "above 0"),
            (&[f64::MAX, f64::MAX], "not inf"),
        ] {
            let error = factor(2, weights).unwrap_err().to_string();
            assert!(error.contains(says), "{error}");
        }
        let error = Part::new(vec![(1, 1.0), (1, 2.0)], true).unwrap_err().to_string();
        assert!(error.contains("named twice"), "{error}");
        let part = Part::new(vec![(4, 0.5), (1, 1.5)], true).unwrap();
        assert_eq!((part.weight(1), part.weight(4), part.weight(2)), (1.5, 0.5, 0.0));
    }

    #[test]
    fn the_identity_depends_on_the_set_alone() {
        let named = |ids: &[i128]| ids.iter().copied().map(ExternalId::from).collect::<Vec<_>>();
        assert_eq!(identity(&[], &[]), None);
        assert_eq!(identity(&named(&[3]), &[]).as_deref(), Some("3"));
        assert_eq!(identity(&named(&[7, 3, 7]), &[]).as_deref(), Some("3, 7"));
        let name = |text: &str| ExternalId::Name(text.into());
        assert_ne!(identity(&[name("a"), name("b")], &[]), identity(&[name("a, b")], &[]));
        let many: Vec<i128> = (0..100).collect();
        let turned: Vec<i128> = (0..100).rev().collect();
        assert_eq!(identity(&named(&many), &[]), identity(&named(&turned), &[]));
        assert_ne!(identity(&named(&many), &[]), identity(&named(&many[1..]), &[]));
        let weighted = identity(&named(&[3, 7]), &[0.5, 2.0]);
        assert_eq!(weighted.as_deref(), Some("3 = 0.5, 7 = 2"));
        assert_eq!(weighted, identity(&named(&[7, 3]), &[2.0, 0.5]));
        assert!(identity(&named(&many), &[]).unwrap().starts_with("100 vertices ("));
    }
}
