//! The external ids of the vertices of a program: those of the graph, and of vertices that the
//! program creates.
//!
//! Inside a run, vertices are ranks: those of the graph come first, created ones follow in the
//! order in which a message first named them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brimful::execution::Error;
use brimful::graph::ids::external::{ExternalId, IdType};
use brimful::graph::read::lookup::Lookup;
use brimful::graph::read::name_cursor::NameCursor;
use brimful::graph::{Error as GraphError, Graph};
use brimful::store::Resources;
use brimful::vertices::Growth;
use pyo3::prelude::*;
use serde::{Deserialize, Serialize};

use super::graph_ids::GraphIds;
use crate::errors::{Failure, internal};
use crate::object_id;
use crate::vertex::integer;

/// Bytes of an entry of the table of created vertices, besides its string.
const ENTRY_BYTES: u64 = 128;

/// The ids of vertices, by rank.
pub(super) struct Ids {
    pub(super) graph: Arc<Graph>,
    lookup: Lookup,
    of_graph: GraphIds,
    names: Mutex<NameCursor>,
    created: Mutex<Created>,
}

/// The vertices that messages created.
struct Created {
    /// Bits of integers, or strings; by rank from that of the first created vertex.
    ids: Vec<Key>,
    ranks: HashMap<Key, u64>,
    memory: Growth,
    /// In one of several processes: the number of ids that all processes know, with the same ranks.
    known_to_all: usize,
    /// The rank of the first id that was known to this process alone before the last exchange of
    /// ids, and the ranks that these have now.
    moved: (u64, Vec<u64>),
}

/// An id of a created vertex; all of a graph are of one kind, ordered as in results.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Key {
    /// The order key of an integer.
    Number(u64),
    Name(String),
}

impl Key {
    /// Bytes of the id in the tables of created vertices.
    fn bytes(&self) -> u64 {
        ENTRY_BYTES + if let Self::Name(name) = self { 2 * name.len() as u64 } else { 0 }
    }
}

impl Created {
    /// Adds an id that is new; returns its rank, after those of `first` others.
    fn add(&mut self, key: Key, first: u64) -> Result<u64, Error> {
        self.memory.take(key.bytes())?;
        let rank = first + self.ids.len() as u64;
        self.ids.push(key.clone());
        self.ranks.insert(key, rank);
        Ok(rank)
    }
}

impl Ids {
    /// The ids of `graph`, and of vertices that an earlier run or caller created; `on_disk`: the
    /// vertices are.
    pub(super) fn new(
        graph: &Arc<Graph>,
        created_before: Vec<Key>,
        on_disk: bool,
        resources: &Resources,
    ) -> Result<Self, Error> {
        let of_graph = GraphIds::new(graph, on_disk, resources)?;
        let mut created = Created {
            ids: Vec::new(),
            ranks: HashMap::new(),
            memory: Growth::new(&resources.budget, "for the ids of created vertices")?,
            known_to_all: 0,
            moved: (u64::MAX, Vec::new()),
        };
        for key in created_before {
            created.add(key, graph.vertices())?;
        }
        Ok(Self {
            graph: Arc::clone(graph),
            lookup: Lookup::new(Arc::clone(graph)),
            of_graph,
            names: Mutex::default(),
            created: Mutex::new(created),
        })
    }

    fn created(&self) -> MutexGuard<'_, Created> {
        self.created.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of ranks.
    pub(super) fn count(&self) -> u64 {
        self.of_graph.len() + self.created().ids.len() as u64
    }

    /// True if the vertex with this rank is known to have this integer id; false may also mean
    /// unknown.
    pub(super) fn has(&self, rank: u64, id: &ExternalId) -> bool {
        let (ExternalId::Number(number), None) = (id, self.graph.longest_name()) else {
            return false;
        };
        let bits = self.of_graph.get(rank);
        bits.is_ok_and(|bits| bits.is_some_and(|bits| self.graph.id_type().number(bits) == *number))
    }

    /// The rank of a vertex; with `creates`, an id that is in use nowhere gets the next one.
    pub(super) fn rank(&self, id: &ExternalId, creates: bool) -> PyResult<u64> {
        match self.find(id, creates)? {
            Some(rank) => Ok(rank),
            // The error of the graph, which knows the type of its ids.
            None => Ok(self.lookup.find(id).map_err(Failure::from)?),
        }
    }

    /// The rank of a vertex, or `None`; with `creates`, an id that is in use nowhere gets the next
    /// one.
    pub(super) fn find(&self, id: &ExternalId, creates: bool) -> PyResult<Option<u64>> {
        match self.lookup.find(id) {
            Err(GraphError::NoSuchVertex { .. }) => {}
            found => return Ok(Some(found.map_err(Failure::from)?)),
        }
        let Some(key) = self.key(id) else {
            if !creates {
                return Ok(None);
            }
            let problem = format!(
                "ids of this graph have the type {}, and {id} has another",
                self.graph.id_type().name()
            );
            return Err(Failure::from(Error::Usage(problem)).into());
        };
        let mut created = self.created();
        match created.ranks.get(&key) {
            Some(rank) => Ok(Some(*rank)),
            None if creates => {
                Ok(Some(created.add(key, self.of_graph.len()).map_err(Failure::from)?))
            }
            None => Ok(None),
        }
    }

    /// Adds the ids of vertices that an earlier run created, by rank.
    pub(super) fn restore(&self, keys: Vec<Key>) -> Result<(), Error> {
        let mut created = self.created();
        keys.into_iter().try_for_each(|key| created.add(key, self.of_graph.len()).map(drop))
    }

    /// The ids of created vertices, by rank.
    pub(super) fn created_keys(&self) -> Vec<Key> {
        self.created().ids.clone()
    }

    /// The ids that only this process knows, in the order in which its vertices first named them.
    pub(super) fn named(&self) -> Result<Vec<u8>, serde_json::Error> {
        let created = self.created();
        serde_json::to_vec(created.ids.get(created.known_to_all..).unwrap_or_default())
    }

    /// Takes the ids that [`Ids::named`] returned in all processes, in the order of these. New ids
    /// get the same ranks in all processes, as in a run of one process.
    pub(super) fn accept(&self, of_all: &[&[u8]]) -> Result<(), Error> {
        let mut created = self.created();
        let known_to_all = created.known_to_all;
        let own = created.ids.split_off(known_to_all);
        for key in &own {
            created.ranks.remove(key);
            created.memory.give(key.bytes());
        }
        let graph = self.of_graph.len();
        for named in of_all {
            let keys: Vec<Key> = serde_json::from_slice(named)
                .map_err(|error| Error::Internal(error.to_string()))?;
            for key in keys {
                if !created.ranks.contains_key(&key) {
                    created.add(key, graph)?;
                }
            }
        }
        let ranks = own.iter().filter_map(|key| created.ranks.get(key).copied()).collect();
        created.moved = (graph + known_to_all as u64, ranks);
        created.known_to_all = created.ids.len();
        Ok(())
    }

    /// The rank in all processes of a vertex that this process named before the last exchange of
    /// ids.
    pub(super) fn final_rank(&self, rank: u64) -> u64 {
        if rank < self.of_graph.len() {
            return rank;
        }
        let created = self.created();
        let (first, ranks) = &created.moved;
        let moved = rank.checked_sub(*first).and_then(|at| ranks.get(at as usize));
        moved.copied().unwrap_or(rank)
    }

    /// The key of an id; `None` if the graph has ids of another type.
    fn key(&self, id: &ExternalId) -> Option<Key> {
        let (kind, has_names) = (self.graph.id_type(), self.graph.longest_name().is_some());
        match id {
            ExternalId::Name(name) => has_names.then(|| Key::Name(name.clone())),
            ExternalId::Number(_) if has_names => None,
            ExternalId::Number(number) => {
                let fits = match kind {
                    IdType::Int32 => i32::try_from(*number).is_ok(),
                    IdType::UInt32 => u32::try_from(*number).is_ok(),
                    IdType::Int64 | IdType::UInt64 | IdType::String => true,
                };
                kind.bits(*number).filter(|_| fits).map(|bits| Key::Number(kind.order_key(bits)))
            }
        }
    }

    pub(super) fn get<'py>(&self, py: Python<'py>, rank: u64) -> PyResult<Bound<'py, PyAny>> {
        match self.key_of(rank)? {
            Key::Number(key) => {
                let kind = self.graph.id_type();
                integer(py, kind.number(kind.from_order_key(key)))
            }
            Key::Name(name) => object_id::id(py, &name),
        }
    }

    /// The id of a rank in an error; `None` if it cannot be read.
    pub(super) fn shown(&self, rank: u64) -> Option<String> {
        if rank >= self.count() {
            return None;
        }
        let kind = self.graph.id_type();
        Some(match self.key_of(rank).ok()? {
            Key::Number(key) => kind.number(kind.from_order_key(key)).to_string(),
            Key::Name(name) => name,
        })
    }

    fn key_of(&self, rank: u64) -> PyResult<Key> {
        let Some(bits) = self.of_graph.get(rank).map_err(Failure::from)? else {
            let (created, at) = (self.created(), rank - self.of_graph.len());
            let id = created.ids.get(at as usize).cloned();
            return id.ok_or_else(|| {
                let count = self.count();
                internal(format!("there is no vertex {rank}; their number is {count}")).into()
            });
        };
        match self.graph.longest_name() {
            None => Ok(Key::Number(self.graph.id_type().order_key(bits))),
            Some(_) => {
                let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
                let name = names.label(&self.graph, bits).map_err(Failure::from)?;
                Ok(Key::Name(name.to_owned()))
            }
        }
    }

    /// The order key of the id of a rank of the graph; `None` for a created vertex.
    pub(super) fn order_key(&self, rank: u64) -> Result<Option<u64>, Error> {
        let bits = self.of_graph.get(rank)?;
        Ok(bits.map(|bits| self.graph.id_type().order_key(bits)))
    }

    /// Sorts created vertices, whose ranks are the second of each pair, by their ids.
    pub(super) fn sort_created(&self, vertices: &mut [(usize, u64)]) {
        let created = self.created();
        let key = |rank: u64| created.ids.get((rank - self.of_graph.len()) as usize);
        vertices.sort_unstable_by(|(_, a), (_, b)| key(*a).cmp(&key(*b)));
    }

    /// True if the id of a rank is before that of another.
    pub(super) fn is_before(&self, rank: u64, other: u64) -> Result<bool, Error> {
        let key = |rank| self.key_of(rank).map_err(|error| Error::Internal(error.to_string()));
        Ok(key(rank)? < key(other)?)
    }

    /// All ranks in the order of external ids.
    pub(super) fn order(&self) -> PyResult<Vec<u64>> {
        let mut order: Vec<u64> = (0..self.graph.vertices()).collect();
        let bits = self.of_graph.all().map_err(Failure::from)?;
        order.sort_unstable_by_key(|rank| self.graph.id_type().order_key(bits[*rank as usize]));
        drop(bits);
        let mut created: Vec<(Key, u64)> = {
            let created = self.created();
            created.ids.iter().cloned().zip(self.of_graph.len()..).collect()
        };
        if created.is_empty() {
            return Ok(order);
        }
        created.sort_unstable();
        let mut merged = Vec::with_capacity(order.len() + created.len());
        let mut rest = order.as_slice();
        for (key, rank) in created {
            let smaller = try_partition_point(0..rest.len(), |at| {
                PyResult::Ok(self.key_of(rest[at])? < key)
            })?;
            let (before, after) = rest.split_at(smaller);
            merged.extend_from_slice(before);
            merged.push(rank);
            rest = after;
        }
        merged.extend_from_slice(rest);
        Ok(merged)
    }
}

/// The first index of `range` for which `is_before` is false; it is true for a prefix.
pub(super) fn try_partition_point<E>(
    mut range: Range<usize>,
    is_before: impl Fn(usize) -> Result<bool, E>,
) -> Result<usize, E> {
    while !range.is_empty() {
        let middle = range.start + range.len() / 2;
        match is_before(middle)? {
            true => range.start = middle + 1,
            false => range.end = middle,
        }
    }
    Ok(range.start)
}
