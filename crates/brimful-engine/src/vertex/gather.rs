//! Gather programs: a vertex reads the states of all its neighbors at once.
//!
//! A whole program, heaviest bonds: every vertex joins the group to which its edges have the
//! greatest sum of weights.
//!
//! ```
//! use std::collections::BTreeMap;
//! use brimful_engine::{Count, Gather, Globals, Neighbors, Vertex};
//! use brimful_graph::Index;
//!
//! struct HeaviestBonds;
//!
//! impl Gather for HeaviestBonds {
//!     type State = u64;
//!     type Buffers = BTreeMap<u64, f64>;
//!     type Aggregate = Count;
//!     /// As many groups as neighbors, each in a map.
//!     const BUFFER_BYTES: u64 = 48;
//!
//!     fn indexes(&self) -> &'static [Index] {
//!         &[Index::In, Index::Reverse]
//!     }
//!     fn initial(&self, vertex: Vertex) -> u64 {
//!         vertex.id
//!     }
//!     fn gather(
//!         &self,
//!         _: Vertex,
//!         group: u64,
//!         neighbors: Neighbors<'_, u64>,
//!         _: &Globals<Count>,
//!         bonds: &mut BTreeMap<u64, f64>,
//!     ) -> u64 {
//!         bonds.clear();
//!         for (_, weight, group) in neighbors.weighted() {
//!             *bonds.entry(group).or_default() += weight;
//!         }
//!         // The smallest of the groups with the heaviest bonds.
//!         bonds.iter().rev().max_by(|a, b| a.1.total_cmp(b.1)).map_or(group, |(group, _)| *group)
//!     }
//!     fn aggregate(&self, _: Vertex, old: u64, new: u64) -> Count {
//!         Count(u64::from(old != new))
//!     }
//!     /// Fewer than one vertex in a hundred moved.
//!     fn converged(&self, globals: &Globals<Count>) -> bool {
//!         globals.aggregate.0 * 100 < globals.vertices
//!     }
//! }
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # use std::sync::Arc;
//! # use brimful_engine::{RunOptions, gather};
//! # use brimful_graph::Graph;
//! # use brimful_graph::build::import::{ImportOptions, Input, import};
//! # use brimful_store::{Budget, Job, Resources};
//! # let folder = tempfile::tempdir()?;
//! # let (text, path) = (folder.path().join("edges.txt"), folder.path().join("g.brimful"));
//! # let resources = Resources::new(Budget::new(200 << 20, 0), Arc::new(Job::new()), Some(2))?;
//! # std::fs::write(&text, "u v w\n0 1 5\n1 2 5\n2 0 5\n2 3 1\n3 4 7\n4 5 7\n5 3 7\n")?;
//! # let undirected = ImportOptions { undirected: true, ..Default::default() };
//! # import(Input::EdgeList(vec![text]), &path, &undirected, &resources)?;
//! # let graph = Graph::open(&path, resources.job.traffic())?;
//! let options = RunOptions { weighted: true, max_supersteps: 20, ..Default::default() };
//! let output = gather(&HeaviestBonds, &graph, &options, &resources)?;
//! let mut groups = [0; 6];
//! output.states.read(0, &mut groups)?;
//! let group = |vertex| groups[graph.find(vertex).unwrap() as usize];
//! // Two triangles that a light edge joins.
//! assert!(group(0) == group(1) && group(1) == group(2));
//! assert!(group(2) != group(3) && group(3) == group(4));
//! # Ok(())
//! # }
//! ```

use brimful_graph::Index;
use bytemuck::Pod;

use crate::vertex::aggregate::Aggregate;
use crate::vertex::program::{Globals, Vertex};

/// The neighbors of a vertex, with multiplicity: ascending within each index, index after index;
/// parallel edges by weight.
#[derive(Debug, Clone, Copy)]
pub struct Neighbors<'n, S> {
    /// Empty if the program reads no ids.
    pub(crate) ids: &'n [u32],
    /// Empty if the run is not weighted.
    pub(crate) weights: &'n [f64],
    pub(crate) states: States<'n, S>,
    /// New states of this superstep, if they are visible, and the vertex of the first.
    pub(crate) new: (usize, &'n [S]),
}

/// The location of the neighbors' states.
#[derive(Debug, Clone, Copy)]
pub(crate) enum States<'n, S> {
    /// All states, by vertex.
    All(&'n [S]),
    /// The states of the list, in its order.
    Listed(&'n [S]),
}

impl<'n, S: Copy> Neighbors<'n, S> {
    /// Number of neighbors.
    pub fn len(&self) -> usize {
        match self.states {
            States::All(_) => self.ids.len(),
            States::Listed(list) => list.len(),
        }
    }

    /// True if there are no neighbors.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The states; available even to a program that reads no ids.
    #[inline]
    pub fn states(&self) -> impl Iterator<Item = S> + use<'n, S> {
        let (listed, with_ids) = match self.states {
            States::Listed(list) if self.ids.is_empty() => (list, None),
            _ => (&[][..], Some(self.iter())),
        };
        listed.iter().copied().chain(with_ids.into_iter().flatten().map(|(_, state)| state))
    }

    /// Appends the states to `copies`; faster than [`Neighbors::states`].
    pub fn copy_states(&self, copies: &mut Vec<S>) {
        match self.states {
            States::Listed(list) if self.new.1.is_empty() => copies.extend_from_slice(list),
            States::All(all) if self.new.1.is_empty() => {
                copies.extend(self.ids.iter().map(|id| all[*id as usize]));
            }
            _ => copies.extend(self.iter().map(|(_, state)| state)),
        }
    }

    /// Internal ids and states.
    ///
    /// # Panics
    /// If the program reads no ids.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (u64, S)> + use<'n, S> {
        assert_eq!(self.ids.len(), self.len(), "Gather::READS_IDS is false");
        let (states, (first, new)) = (self.states, self.new);
        self.ids.iter().enumerate().map(move |(at, id)| {
            let seen = new.get((*id as usize).wrapping_sub(first));
            let state = seen.unwrap_or_else(|| match states {
                States::All(all) => &all[*id as usize],
                States::Listed(list) => &list[at],
            });
            (u64::from(*id), *state)
        })
    }

    /// Internal ids, weights of edges and states. A weight is 1 if the run is not weighted.
    ///
    /// # Panics
    /// If the program reads no ids.
    #[inline]
    pub fn weighted(&self) -> impl Iterator<Item = (u64, f64, S)> + use<'n, S> {
        let weights = self.weights;
        let weight = move |at: usize| weights.get(at).copied().unwrap_or(1.0);
        self.iter().enumerate().map(move |(at, (id, state))| (id, weight(at), state))
    }
}

/// A program over whole neighbor lists.
///
/// Results are the same bits at any budget and number of threads, as long as these methods are
/// pure. Vertices without edges keep their initial state, which the caller supplies, and add
/// nothing to the aggregate.
pub trait Gather: Sync {
    /// The value that a vertex owns.
    type State: Pod + Send + Sync + PartialEq;
    /// The scratch buffers of a thread.
    type Buffers: Default + Send;
    /// The global value of a superstep; `()` for none. Programs that settle must have none, because
    /// their progress in a superstep depends on the memory.
    type Aggregate: Aggregate;

    /// True if [`Vertex::external`] is used.
    const NEEDS_EXTERNAL: bool = false;
    /// True if [`Vertex::degree`] or [`Vertex::strength`] is used. Weighted runs of gather programs
    /// have both.
    const NEEDS_DEGREES: bool = false;
    /// False if [`Neighbors::states`] alone is used. Lists then hold states instead of ids, so that
    /// they are read without random accesses.
    const READS_IDS: bool = true;
    /// False if [`Gather::gather`] does not use the globals. A vertex then keeps its state while
    /// neither it nor a neighbor changes, and is not gathered where that is known.
    const READS_GLOBALS: bool = true;
    /// Bytes of [`Gather::Buffers`] per neighbor; the budget includes them for the longest list.
    const BUFFER_BYTES: u64 = 0;
    /// True if the final state of every vertex follows from the final states of its neighbors,
    /// whenever it reads them. Vertices whose lists are made together then see the new states of
    /// more urgent ones at once. The number of supersteps may depend on the memory; the final
    /// states do not. The first superstep gathers all vertices; later ones may gather only the most
    /// urgent.
    const SETTLES: bool = false;

    /// The indexes that lists are made from: [`Index::In`] for in-neighbors, [`Index::Reverse`]
    /// for out-neighbors.
    fn indexes(&self) -> &'static [Index];
    /// The state at the start.
    fn initial(&self, vertex: Vertex) -> Self::State;
    /// True if a vertex in this state keeps it whatever its neighbors become. Settled vertices are
    /// not gathered again, and intervals in which all vertices are settled are not read. Only with
    /// [`Gather::SETTLES`].
    fn settled(&self, state: Self::State) -> bool {
        let _ = state;
        false
    }
    /// Among vertices whose lists are made together, the most urgent are gathered first. Only with
    /// [`Gather::SETTLES`].
    fn urgency(&self, state: Self::State) -> u128 {
        let _ = state;
        0
    }
    /// The new state of a vertex.
    fn gather(
        &self,
        vertex: Vertex,
        state: Self::State,
        neighbors: Neighbors<'_, Self::State>,
        globals: &Globals<Self::Aggregate>,
        buffers: &mut Self::Buffers,
    ) -> Self::State;
    /// The contribution of the vertex to the aggregate. At the start `old` equals `new`.
    #[inline]
    fn aggregate(&self, vertex: Vertex, old: Self::State, new: Self::State) -> Self::Aggregate {
        let _ = (vertex, old, new);
        Self::Aggregate::NOTHING
    }
    /// True if the run has converged; called after every superstep. By default a run ends when no
    /// state changes.
    fn converged(&self, globals: &Globals<Self::Aggregate>) -> bool {
        let _ = globals;
        false
    }
}
