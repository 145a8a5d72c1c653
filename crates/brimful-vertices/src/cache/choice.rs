//! Caches by name: `lru:N` and `score:N` for N vertices.

use std::str::FromStr;
use std::sync::Arc;

use brimful_store::Budget;

use super::{Cache, Lru, Score};
use crate::error::{Error, Result};
use crate::store::VertexStore;
use crate::vertex::Stored;

/// The policy of evictions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PolicyKind {
    Lru,
    Score,
}

/// A cache that the user chose.
///
/// ```
/// use brimful_vertices::cache::Choice;
///
/// assert!("lru:100000".parse::<Choice>().is_ok());
/// let unknown = "mru:5".parse::<Choice>().unwrap_err();
/// assert_eq!(unknown.to_string(), "\"mru:5\" is no cache; write lru:N or score:N, N being how many vertices it holds, 1 or more");
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    kind: PolicyKind,
    capacity: usize,
}

impl FromStr for Choice {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let parsed = text.split_once(':').and_then(|(kind, capacity)| {
            let kind = match kind {
                "lru" => PolicyKind::Lru,
                "score" => PolicyKind::Score,
                _ => return None,
            };
            let capacity = capacity.parse().ok().filter(|capacity| *capacity > 0)?;
            Some(Self { kind, capacity })
        });
        parsed.ok_or_else(|| {
            Error::Usage(format!(
                "{text:?} is no cache; write lru:N or score:N, N being how many vertices it holds, 1 or more"
            ))
        })
    }
}

impl Choice {
    /// The most vertices in the cache.
    pub fn capacity(self) -> usize {
        self.capacity
    }

    /// The cache of one of `partitions` partitions, which share the capacity.
    #[must_use]
    pub fn shared_by(self, partitions: usize) -> Self {
        Self { capacity: self.capacity.div_ceil(partitions.max(1)), ..self }
    }

    /// Puts the cache over `store`.
    pub fn over<V: Stored>(
        self,
        store: Box<dyn VertexStore<V>>,
        budget: &Arc<Budget>,
    ) -> Result<Box<dyn VertexStore<V>>> {
        Ok(match self.kind {
            PolicyKind::Lru => Box::new(Cache::new(store, self.capacity, Lru::default(), budget)?),
            PolicyKind::Score => {
                Box::new(Cache::new(store, self.capacity, Score::default(), budget)?)
            }
        })
    }
}
