//! Caches by name: `lru:N` and `score:N` for N vertices.

use std::str::FromStr;

use super::{Cache, CacheMemory, Lru, Score, ScoreFunction};
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
/// assert_eq!(
///     unknown.to_string(),
///     "\"mru:5\" is not a cache; write lru:N or score:N, for N vertices, at least 1"
/// );
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
                "{text:?} is not a cache; write lru:N or score:N, for N vertices, at least 1"
            ))
        })
    }
}

impl Choice {
    /// The most vertices in the cache.
    pub fn capacity(self) -> usize {
        self.capacity
    }

    /// Puts the cache of a partition over its `store`. The caches of all partitions share the
    /// capacity. `score:N` evicts by `function`, if there is one.
    pub fn over<V: Stored>(
        self,
        store: Box<dyn VertexStore<V>>,
        function: Option<ScoreFunction<V>>,
        memory: CacheMemory<'_>,
    ) -> Result<Box<dyn VertexStore<V>>> {
        let capacity = self.capacity.div_ceil(memory.partitions.max(1));
        Ok(match self.kind {
            PolicyKind::Lru => Box::new(Cache::new(store, capacity, Lru::default(), memory)?),
            PolicyKind::Score => {
                Box::new(Cache::new(store, capacity, Score::new(function), memory)?)
            }
        })
    }
}
