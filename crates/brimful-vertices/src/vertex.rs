//! A vertex: id, state, outgoing edges, and the latest signals that it received.

use std::num::NonZeroU64;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::field::Field;
use crate::id::Id;

/// An object that a store can hold: it has an id and can be copied.
pub trait Stored: Clone + Send + 'static {
    /// The type of its id.
    type Id: Id;
    /// Its id, which never changes.
    fn id(&self) -> &Self::Id;
    /// Bytes on the heap, as far as known.
    fn heap_bytes(&self) -> usize;

    /// The mark of its edges; `None` if they changed since [`Stored::mark_edges`].
    fn edges_mark(&self) -> Option<EdgesMark> {
        None
    }

    /// Marks its edges, until they change. An object that keeps no marks is written whole each
    /// time.
    fn mark_edges(&mut self, mark: EdgesMark) {
        let _ = mark;
    }
}

/// Identifies a set of edges: two vertices with the same mark have the same edges.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EdgesMark(NonZeroU64);

/// A source of unique marks.
#[derive(Debug, Default)]
pub(crate) struct EdgesMarks {
    rest: std::ops::Range<u64>,
}

impl EdgesMarks {
    pub(crate) fn next(&mut self) -> EdgesMark {
        static TAKEN: AtomicU64 = AtomicU64::new(0);
        // Reserves many at once, so that threads seldom contend.
        const TOGETHER: u64 = 1 << 16;
        let number = self.rest.next().unwrap_or_else(|| {
            let start = TAKEN.fetch_add(TOGETHER, Ordering::Relaxed);
            self.rest = start + 1..start + TOGETHER;
            start
        });
        EdgesMark(NonZeroU64::MIN.saturating_add(number))
    }
}

/// An edge, as a program sees it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Edge<'a, I, E> {
    /// Its target.
    pub target: &'a I,
    /// Its data, such as a weight.
    pub data: &'a E,
}

/// The outgoing edges of a vertex, in the order in which they were added; several may lead to one
/// target.
///
/// Targets and data are two arrays of one length, so that edges without data cost nothing for it.
#[derive(Debug, Clone)]
pub struct Edges<I, E> {
    targets: Vec<I>,
    data: Vec<E>,
    /// Removed by any change.
    mark: Option<EdgesMark>,
}

impl<I: PartialEq, E: PartialEq> PartialEq for Edges<I, E> {
    fn eq(&self, other: &Self) -> bool {
        self.targets == other.targets && self.data == other.data
    }
}

impl<I, E> Default for Edges<I, E> {
    fn default() -> Self {
        Self { targets: Vec::new(), data: Vec::new(), mark: None }
    }
}

impl<I, E> Edges<I, E> {
    /// Edges from targets and their data; `None` if their numbers differ.
    pub fn from_parts(targets: Vec<I>, data: Vec<E>) -> Option<Self> {
        (targets.len() == data.len()).then_some(Self { targets, data, mark: None })
    }

    /// The arrays of targets and data, to be reused.
    pub fn into_parts(self) -> (Vec<I>, Vec<E>) {
        (self.targets, self.data)
    }

    /// The same edges without spare capacity.
    #[must_use]
    pub fn shrunk(mut self) -> Self {
        self.targets.shrink_to_fit();
        self.data.shrink_to_fit();
        self
    }

    /// Number of edges.
    pub fn len(&self) -> usize {
        self.targets.len()
    }

    /// True if there are no edges.
    pub fn is_empty(&self) -> bool {
        self.targets.is_empty()
    }

    /// The targets of the edges.
    pub fn targets(&self) -> &[I] {
        &self.targets
    }

    /// The data of the edges.
    pub fn data(&self) -> &[E] {
        &self.data
    }

    /// The edges.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = Edge<'_, I, E>> + Clone {
        self.targets.iter().zip(&self.data).map(|(target, data)| Edge { target, data })
    }

    /// Adds an edge.
    #[inline]
    pub fn push(&mut self, target: I, data: E) {
        self.mark = None;
        self.targets.push(target);
        self.data.push(data);
    }

    /// Removes all edges; their memory stays.
    pub fn clear(&mut self) {
        self.mark = None;
        self.targets.clear();
        self.data.clear();
    }

    /// Keeps the edges for which `keep` returns true.
    pub fn retain(&mut self, mut keep: impl FnMut(Edge<'_, I, E>) -> bool) {
        self.mark = None;
        let kept: Vec<bool> = self.iter().map(&mut keep).collect();
        let (mut of_target, mut of_data) = (kept.iter(), kept.iter());
        self.targets.retain(|_| of_target.next() == Some(&true));
        self.data.retain(|_| of_data.next() == Some(&true));
    }
}

impl<I, E> FromIterator<(I, E)> for Edges<I, E> {
    fn from_iter<T: IntoIterator<Item = (I, E)>>(edges: T) -> Self {
        let (targets, data) = edges.into_iter().unzip();
        Self { targets, data, mark: None }
    }
}

/// A vertex with ids `I`, state `S`, edge data `E` and signals `G`.
#[derive(Debug, Clone, PartialEq)]
pub struct Vertex<I, S, E = (), G = ()> {
    id: I,
    /// The value that it owns.
    pub state: S,
    edges: Edges<I, E>,
    /// Its state when it last signalled; `None` if it has not signalled since its edges changed.
    pub signalled: Option<S>,
    /// The latest signal of each edge that leads here, ascending by source and parallel edge.
    latest: Vec<(I, G)>,
    /// For each of `latest`, its number among the parallel edges of its source; empty if all are
    /// the first.
    parallels: Vec<u32>,
}

impl<I: Id, S, E, G> Vertex<I, S, E, G> {
    /// A vertex that has not signalled yet.
    pub fn new(id: I, state: S, edges: Edges<I, E>) -> Self {
        Self { id, state, edges, signalled: None, latest: Vec::new(), parallels: Vec::new() }
    }

    /// Its id.
    pub fn id(&self) -> &I {
        &self.id
    }

    /// Its outgoing edges.
    pub fn edges(&self) -> &Edges<I, E> {
        &self.edges
    }

    /// Its outgoing edges, for changes; the vertex will then signal along all of them again.
    pub fn edges_mut(&mut self) -> &mut Edges<I, E> {
        self.signalled = None;
        &mut self.edges
    }

    /// The latest signal of each incoming edge with its source, ascending by source; those of
    /// parallel edges in the order of the source.
    pub fn latest(&self) -> &[(I, G)] {
        &self.latest
    }

    /// The number among parallel edges of each of [`Vertex::latest`]; empty if all are the first.
    pub fn parallels(&self) -> &[u32] {
        &self.parallels
    }

    /// Replaces the latest signal of the only edge from `source`. Many at once are cheaper:
    /// [`Vertex::receive_all`].
    pub fn receive(&mut self, source: I, signal: G) {
        self.receive_all(vec![((source, 0), signal)]);
    }

    /// Replaces the latest signals of these edges, each given by its source and its number among
    /// parallel edges. Of several signals along one edge the last counts. Takes O(k log k + k log
    /// n) for k signals along n known edges, and O(n) more if an edge is new.
    pub fn receive_all(&mut self, mut signals: Vec<((I, u32), G)>) {
        // Stable, so that the last of one edge stays the last.
        signals.sort_by(|(left, _), (right, _)| left.cmp(right));
        let old_len = self.latest.len();
        for ((source, parallel), signal) in signals {
            let place = match self.find(old_len, &source, parallel) {
                Some(at) => Some(at),
                // The last new one, if it is of the same edge.
                None => (old_len..self.latest.len())
                    .next_back()
                    .filter(|at| self.is_edge(*at, &source, parallel)),
            };
            if let Some((_, latest)) = place.and_then(|at| self.latest.get_mut(at)) {
                *latest = signal;
                continue;
            }
            if parallel > 0 || !self.parallels.is_empty() {
                self.parallels.resize(self.latest.len(), 0);
                self.parallels.push(parallel);
            }
            self.latest.push((source, signal));
        }
        if self.latest.len() == old_len {
            return;
        }
        // Two ascending runs, which sorting merges.
        if self.parallels.is_empty() {
            self.latest.sort_by(|(left, _), (right, _)| left.cmp(right));
            return;
        }
        let mut all: Vec<(u32, (I, G))> =
            self.parallels.drain(..).zip(self.latest.drain(..)).collect();
        all.sort_by(|(left, (left_source, _)), (right, (right_source, _))| {
            (left_source, left).cmp(&(right_source, right))
        });
        (self.parallels, self.latest) = all.into_iter().unzip();
    }

    fn parallel(&self, at: usize) -> u32 {
        self.parallels.get(at).copied().unwrap_or(0)
    }

    fn is_edge(&self, at: usize, source: &I, parallel: u32) -> bool {
        self.latest.get(at).is_some_and(|(other, _)| other == source)
            && self.parallel(at) == parallel
    }

    /// The position of the latest signal of an edge among the first `len`.
    fn find(&self, len: usize, source: &I, parallel: u32) -> Option<usize> {
        let latest = self.latest.get(..len)?;
        let first = latest.partition_point(|(other, _)| other < source);
        // Parallel edges are few.
        let same = latest[first..].iter().take_while(|(other, _)| other == source).count();
        (first..first + same).find(|at| self.parallel(*at) == parallel)
    }

    /// Forgets that it has signalled, and all signals that it received.
    pub fn forget_signals(&mut self) {
        self.signalled = None;
        self.latest.clear();
        self.parallels.clear();
    }

    /// Forgets the latest signals of all edges from `source`; true if there were any.
    pub fn forget_source(&mut self, source: &I) -> bool {
        let is_other: Vec<bool> = self.latest.iter().map(|(other, _)| other != source).collect();
        let mut others = is_other.iter();
        self.latest.retain(|_| others.next() == Some(&true));
        let mut others = is_other.iter();
        self.parallels.retain(|_| others.next() == Some(&true));
        is_other.contains(&false)
    }

    /// A vertex from all its parts, for serializers.
    pub fn from_parts(parts: VertexParts<I, S, E, G>) -> Self {
        let VertexParts { id, state, edges, signalled, latest, parallels } = parts;
        Self { id, state, edges, signalled, latest, parallels }
    }

    /// All its parts, for serializers that reuse them.
    pub fn into_parts(self) -> VertexParts<I, S, E, G> {
        let Self { id, state, edges, signalled, latest, parallels } = self;
        VertexParts { id, state, edges, signalled, latest, parallels }
    }
}

/// All parts of a vertex.
#[derive(Debug)]
pub struct VertexParts<I, S, E, G> {
    /// Its id.
    pub id: I,
    /// The value that it owns.
    pub state: S,
    /// Its outgoing edges.
    pub edges: Edges<I, E>,
    /// Its state when it last signalled.
    pub signalled: Option<S>,
    /// The latest signal of each incoming edge, ascending by source and parallel edge.
    pub latest: Vec<(I, G)>,
    /// For each of `latest`, its number among the parallel edges of its source; empty if all are
    /// the first.
    pub parallels: Vec<u32>,
}

/// Bytes that the system's allocator takes for an array: multiples of 16, with 8 bytes of overhead.
#[inline]
fn allocated<T>(capacity: usize) -> usize {
    match capacity * size_of::<T>() {
        0 => 0,
        bytes => (bytes + 8).next_multiple_of(16),
    }
}

impl<I, S, E, G> Stored for Vertex<I, S, E, G>
where
    I: Id,
    S: Clone + Send + 'static,
    E: Clone + Send + 'static,
    G: Field,
{
    type Id = I;

    #[inline]
    fn id(&self) -> &I {
        &self.id
    }

    fn edges_mark(&self) -> Option<EdgesMark> {
        self.edges.mark
    }

    fn mark_edges(&mut self, mark: EdgesMark) {
        self.edges.mark = Some(mark);
    }

    fn heap_bytes(&self) -> usize {
        let mut bytes = allocated::<I>(self.edges.targets.capacity())
            + allocated::<E>(self.edges.data.capacity())
            + allocated::<(I, G)>(self.latest.capacity())
            + allocated::<u32>(self.parallels.capacity());
        if std::mem::needs_drop::<I>() {
            bytes +=
                self.id.heap_bytes() + self.edges.targets.iter().map(I::heap_bytes).sum::<usize>();
        }
        if std::mem::needs_drop::<(I, G)>() {
            bytes += self
                .latest
                .iter()
                .map(|(source, signal)| source.heap_bytes() + signal.heap_bytes())
                .sum::<usize>();
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    /// Moving all greater entries for each new source would move some 10^11 bytes.
    #[test]
    fn a_hub_receives_from_very_many_sources_at_once() {
        const SOURCES: u64 = 1 << 17;
        let mut hub = Vertex::<u64, f64, (), f64>::new(0, 0.0, Edges::default());
        let mut expected = BTreeMap::new();
        for round in 0..3 {
            // Sources between the earlier ones, unordered, some twice.
            let signals: Vec<(u64, f64)> = (0..SOURCES + 5)
                .map(|n| (n * 77_777_777 % SOURCES * 3 + round % 2, (n + round) as f64))
                .collect();
            expected.extend(signals.iter().copied());
            hub.receive_all(
                signals.into_iter().map(|(source, signal)| ((source, 0), signal)).collect(),
            );
            assert!(
                hub.latest()
                    .iter()
                    .copied()
                    .eq(expected.iter().map(|(source, signal)| (*source, *signal)))
            );
        }
        hub.receive(1, -1.0);
        expected.insert(1, -1.0);
        assert!(hub.latest().iter().copied().eq(expected));
    }

    #[test]
    fn each_parallel_edge_has_a_latest_signal_of_its_own() {
        let mut vertex = Vertex::<u64, f64, (), u32>::new(0, 0.0, Edges::default());
        let mut expected = BTreeMap::new();
        let mut state = 7_u64;
        for round in 0..200 {
            let signals: Vec<((u64, u32), u32)> = (0..round % 9)
                .map(|n| {
                    state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    // Some sources have one edge, some several, not all of which signal.
                    let source = state >> 60;
                    let parallel =
                        if source.is_multiple_of(3) { (state >> 40) as u32 % 4 } else { 0 };
                    ((source, parallel), round * 10 + n)
                })
                .collect();
            expected.extend(signals.iter().copied());
            vertex.receive_all(signals);
            let found = vertex.latest().iter().enumerate();
            let found =
                found.map(|(at, (source, signal))| ((*source, vertex.parallel(at)), *signal));
            assert!(found.eq(expected.iter().map(|(edge, signal)| (*edge, *signal))));
        }
        assert!(expected.keys().any(|(_, parallel)| *parallel > 1));
    }
}
