//! Vertices between runs: those of kept stores (`brimful.VertexStore`), and those that a run on
//! disk leaves for its result.
//!
//! Invariants: a store in a folder is open once in a process, and all its users share it; its
//! `generation` grows with each change, so that the result of an earlier run is never mixed with
//! later states.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use brimful::algos::registry::StoreChoice;
use brimful::execution::from_graph::{Partitions, StoreOptions, of_one_run};
use brimful::execution::kept::{Condition, KeptStore};
use brimful::execution::{Error, KeptVertices, Partitioning, Start};
use brimful::graph::Graph as Inner;
use brimful::graph::ids::external::ExternalId;
use brimful::store::external::TemporaryFolder;
use brimful::store::{Budget, Resources};
use brimful::vertices::{Edges, Field as _, Loan, Vertex as Stored, VertexStore as _};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use serde::{Deserialize, Serialize};

use super::ids::{Ids, Key};
use super::record::Records;
use super::value::{MemoryWatch, Value, Values};
use crate::call::{Limits, with_resources};
use crate::errors::Failure;
use crate::graph::{Graph, Stream};
use crate::request::Store;
use crate::vertex::Vertex;

type ProgramVertex = Stored<u64, Value, f64, Value>;

/// Notes in the manifest of a kept store.
#[derive(Debug, Default, Clone, Serialize, Deserialize)]
struct Notes {
    /// The ids of created vertices, by rank from that of the first.
    created: Vec<Key>,
    /// Vertices whose incoming edges were removed since the last run.
    touched: BTreeSet<u64>,
}

/// The properties of the records of a program.
pub(super) fn properties(serializer: &str, weighted: bool) -> Vec<(&'static str, String)> {
    vec![
        ("records", "of programs in Python".into()),
        ("serializer", serializer.into()),
        ("weights", weighted.to_string()),
    ]
}

/// How a run treats a kept store.
pub(super) struct Keeping {
    pub(super) serializer: String,
    pub(super) start: Start,
}

/// Stores of this process that are open.
static OPEN: Mutex<Vec<(PathBuf, Weak<Mutex<Opened>>)>> = Mutex::new(Vec::new());

/// Vertices between runs, shared by their users.
pub(super) type Shared = Arc<Mutex<Opened>>;

/// The shared vertices of a folder, if they are open.
fn shared(path: &Path) -> Option<Shared> {
    let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
    let is_open = |shared: &Weak<Mutex<Opened>>| {
        shared.upgrade().is_some_and(|shared| locked(&shared).usage != Usage::Closed)
    };
    open.retain(|(_, shared)| is_open(shared));
    open.iter().find(|(known, _)| known == path).and_then(|(_, shared)| shared.upgrade())
}

fn share(path: Option<PathBuf>, opened: Opened) -> Shared {
    let new = Arc::new(Mutex::new(opened));
    if let Some(path) = path {
        let mut open = OPEN.lock().unwrap_or_else(PoisonError::into_inner);
        open.push((path, Arc::downgrade(&new)));
    }
    new
}

/// Locks shared vertices. The owner of the lock never waits for the interpreter.
pub(super) fn locked(shared: &Shared) -> MutexGuard<'_, Opened> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first folder of a store, in one form.
fn path_of(url: &str, choice: &StoreChoice) -> Result<Option<PathBuf>, Error> {
    let folders = choice.schemes.folders(url)?;
    Ok(folders.map(|(_, folders)| folders[0].canonicalize().unwrap_or_else(|_| folders[0].into())))
}

/// Where the vertices of a run lie.
pub(super) struct Location {
    pub(super) url: String,
    /// The folders of one run.
    folders: Vec<TemporaryFolder>,
    kept: Option<KeptStore>,
    start: Start,
    /// The vertices of the kept store, if they are open.
    shared: Option<Shared>,
    notes: Notes,
}

impl Location {
    /// A place for the vertices of a run, kept or not.
    pub(super) fn new(
        choice: &StoreChoice,
        graph: &Arc<Inner>,
        (keeping, weighted): (Option<&Keeping>, bool),
    ) -> Result<Self, Error> {
        let Some(keeping) = keeping else {
            let (url, folders) = of_one_run(&choice.url, &choice.schemes)?;
            let (start, notes) = (Start::Again, Notes::default());
            return Ok(Self { url, folders, kept: None, start, shared: None, notes });
        };
        let shared = path_of(&choice.url, choice)?.and_then(|path| shared(&path));
        let kept = match &shared {
            Some(shared) => locked(shared).lend()?,
            None => None,
        };
        let properties = properties(&keeping.serializer, weighted);
        let kept = match kept {
            Some(kept) => kept,
            None => KeptStore::open(&choice.url, &choice.schemes, graph, &properties)?,
        };
        let notes = notes_of(&kept)?;
        let (folders, start) = (Vec::new(), keeping.start);
        let own = Self { url: choice.url.clone(), folders, kept: Some(kept), start, shared, notes };
        own.check(graph, &properties)
    }

    fn check(self, graph: &Inner, properties: &[(&str, String)]) -> Result<Self, Error> {
        let Some(kept) = &self.kept else { return Ok(self) };
        kept.check(graph, properties)?;
        let condition = kept.description().condition;
        if self.start == Start::Continue && condition != Condition::Whole {
            return Err(Error::Usage(match condition {
                Condition::Loading => {
                    "the store has no states to continue from; run a program with start=\"initial\" first".into()
                }
                _ => not_whole(),
            }));
        }
        Ok(self)
    }

    /// The vertices that are there.
    pub(super) fn vertices(&self) -> Option<KeptVertices<'_>> {
        let kept = self.kept.as_ref()?;
        Some(KeptVertices { edges: &kept.description().edges, start: self.start })
    }

    /// The ids of created vertices.
    pub(super) fn created(&self) -> Vec<Key> {
        self.notes.created.clone()
    }

    /// Vertices that are to collect first.
    pub(super) fn touched(&self) -> impl Iterator<Item = u64> {
        let is_continued = self.start == Start::Continue;
        self.notes.touched.iter().copied().filter(move |_| is_continued)
    }

    /// Notes that the states of the vertices which are there begin to change.
    pub(super) fn begin(&mut self) -> Result<(), Error> {
        match &mut self.kept {
            Some(kept) if !kept.description().edges.is_empty() => {
                kept.update(|now| now.condition = Condition::Running)
            }
            _ => Ok(()),
        }
    }

    /// Notes that all vertices are loaded.
    pub(super) fn loaded(&mut self, edges: &[u64]) -> Result<(), Error> {
        match &mut self.kept {
            Some(kept) if kept.description().condition == Condition::Loading => {
                kept.update(|now| {
                    now.condition = Condition::Running;
                    now.edges = edges.to_vec();
                })
            }
            _ => Ok(()),
        }
    }

    /// Notes that the run ended in the middle, with its changes on disk.
    pub(super) fn stopped(&mut self) -> Result<(), Error> {
        match &mut self.kept {
            Some(kept) if kept.description().condition == Condition::Running => {
                kept.update(|now| now.condition = Condition::Stopped)
            }
            _ => Ok(()),
        }
    }

    /// The vertices after the run, which are durable, for its result and for later runs.
    pub(super) fn leave(
        mut self,
        (graph, choice, partitions): (&Arc<Inner>, &StoreChoice, usize),
        (ids, values): (Arc<Ids>, Arc<Values>),
        resources: &Resources,
    ) -> Result<Shared, Error> {
        self.notes.touched.clear();
        self.notes.created = ids.known();
        if let Some(kept) = &mut self.kept {
            let notes = written(&self.notes)?;
            kept.update(|now| {
                now.condition = Condition::Whole;
                now.notes = notes;
            })?;
        }
        let mut opened = Opened {
            partitions: None,
            kept: self.kept.take(),
            notes: self.notes.clone(),
            url: self.url.clone(),
            choice: choice.clone(),
            count: partitions,
            graph: Arc::clone(graph),
            ids,
            values,
            order: None,
            generation: 0,
            budget: Arc::clone(&resources.budget),
            usage: Usage::Shared,
        };
        if let Some(shared) = self.shared.take() {
            let mut before = locked(&shared);
            let generation = before.generation + 1;
            *before = Opened { generation, ..opened };
            drop(before);
            return Ok(shared);
        }
        if opened.kept.is_some() {
            return Ok(share(path_of(&self.url, choice)?, opened));
        }
        // Open files stay readable without names, and nothing is left behind after a kill.
        opened.partitions()?;
        self.folders.clear();
        Ok(share(None, opened))
    }
}

/// Gives a kept store back to those who share it, after a run that failed.
impl Drop for Location {
    fn drop(&mut self) {
        if let (Some(kept), Some(shared)) = (self.kept.take(), &self.shared) {
            let mut opened = locked(shared);
            (opened.kept, opened.usage) = (Some(kept), Usage::Shared);
        }
    }
}

fn notes_of(kept: &KeptStore) -> Result<Notes, Error> {
    match kept.description().notes.as_str() {
        "" => Ok(Notes::default()),
        notes => serde_json::from_str(notes).map_err(|error| Error::Internal(error.to_string())),
    }
}

fn written(notes: &Notes) -> Result<String, Error> {
    serde_json::to_string(notes).map_err(|error| Error::Internal(error.to_string()))
}

fn not_whole() -> String {
    "the last run on the store, or the last change of its vertices, did not end; run a program on it \
     with start=\"initial\", which gives every vertex its first state"
        .into()
}

/// Vertices between runs.
pub(super) struct Opened {
    /// Closed during a run.
    partitions: Option<Partitions<ProgramVertex>>,
    /// `None` for the vertices of one run, and during a run.
    kept: Option<KeptStore>,
    notes: Notes,
    url: String,
    choice: StoreChoice,
    count: usize,
    graph: Arc<Inner>,
    ids: Arc<Ids>,
    values: Arc<Values>,
    /// The ranks of all vertices in the order of external ids, if they were asked for.
    order: Option<Vec<u64>>,
    pub(super) generation: u64,
    budget: Arc<Budget>,
    usage: Usage,
}

/// Who uses the vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Usage {
    /// Their readers.
    Shared,
    /// A run.
    Lent,
    /// Nobody any more.
    Closed,
}

/// Memory of a store between runs.
const MEMORY_BYTES: u64 = 32 << 20;

impl Opened {
    fn partitions(&mut self) -> Result<&mut Partitions<ProgramVertex>, Error> {
        self.check_usage()?;
        if self.partitions.is_none() {
            if let Some(kept) = &self.kept
                && kept.description().condition != Condition::Whole
            {
                return Err(Error::Usage(not_whole()));
            }
            let bytes = MEMORY_BYTES.min(self.budget.limit());
            let job = Arc::new(brimful::store::Job::new());
            let resources = Resources::new(Budget::new(bytes, 0), job, Some(1))?;
            let edges = vec![1; self.count];
            let stores = StoreOptions {
                store: &self.url,
                schemes: &self.choice.schemes,
                cache: None,
                partitioning: Partitioning::default(),
                kept: Some(KeptVertices { edges: &edges, start: Start::Continue }),
            };
            let records = || Ok(Box::new(Records(Arc::clone(&self.values))) as _);
            let opened =
                Partitions::open((&stores, self.count), &self.graph, &records, &resources)?;
            self.partitions = Some(opened);
        }
        self.partitions.as_mut().ok_or_else(|| Error::Internal("no partitions are open".into()))
    }

    fn check_usage(&self) -> Result<(), Error> {
        Err(Error::Usage(match self.usage {
            Usage::Shared => return Ok(()),
            Usage::Lent => {
                "a run has the vertices of this store; they can be used again when it ends".into()
            }
            Usage::Closed => "the store is closed; open it again".into(),
        }))
    }

    /// Ends the use of the vertices, by all who share them.
    fn close(&mut self) -> Result<(), Error> {
        if self.usage == Usage::Closed {
            return Ok(());
        }
        self.check_usage()?;
        self.sync()?;
        (self.partitions, self.kept, self.usage) = (None, None, Usage::Closed);
        Ok(())
    }

    /// Gives the store to a run.
    fn lend(&mut self) -> Result<Option<KeptStore>, Error> {
        self.check_usage()?;
        self.sync()?;
        self.partitions = None;
        self.usage = Usage::Lent;
        Ok(self.kept.take())
    }

    /// Notes that the vertices change.
    fn change(&mut self) -> Result<(), Error> {
        self.partitions()?;
        self.generation += 1;
        match &mut self.kept {
            Some(kept) if kept.description().condition == Condition::Whole => {
                kept.update(|now| now.condition = Condition::Running)
            }
            Some(_) => Ok(()),
            None => Err(Error::Usage(
                "the vertices are those of one run; they cannot be changed".into(),
            )),
        }
    }

    /// Makes all changes durable.
    fn sync(&mut self) -> Result<(), Error> {
        let Some(partitions) = &mut self.partitions else { return Ok(()) };
        for store in partitions.stores() {
            store.sync()?;
        }
        self.notes.created = self.ids.known();
        let notes = written(&self.notes)?;
        match &mut self.kept {
            Some(kept) if kept.description().condition == Condition::Running => {
                kept.update(|now| {
                    now.condition = Condition::Whole;
                    now.notes = notes;
                })
            }
            _ => Ok(()),
        }
    }

    pub(super) fn len(&mut self) -> Result<u64, Error> {
        Ok(self.partitions()?.stores().map(|store| store.len()).sum())
    }

    /// Lends the vertex of a rank; `None` if it does not exist.
    fn with<T>(
        &mut self,
        rank: u64,
        work: impl FnOnce(&mut Loan<'_, ProgramVertex>) -> T,
    ) -> Result<Option<T>, Error> {
        let (mut work, mut out) = (Some(work), None);
        self.partitions()?.store(rank)?.lend(&rank, &mut |vertex| {
            out = work.take().map(|work| work(vertex));
            Ok(())
        })?;
        Ok(out)
    }

    /// The number of vertices that a reader announces at a time.
    fn lookahead(&mut self) -> Result<usize, Error> {
        let ahead = self.partitions()?.stores().map(|store| store.lookahead()).max();
        Ok(ahead.filter(|ahead| *ahead > 0).unwrap_or(usize::MAX))
    }

    /// Announces the vertices that are lent next.
    fn announce(&mut self, ranks: &[u64]) -> Result<(), Error> {
        let partitions = self.partitions()?;
        let mut keys = vec![Vec::new(); partitions.stores().count()];
        for rank in ranks {
            let mut key = Vec::new();
            rank.write(&mut key);
            keys[partitions.partition(*rank)].push(key);
        }
        for (store, keys) in partitions.stores().zip(&keys) {
            let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
            store.prefetch(&keys)?;
        }
        Ok(())
    }

    /// The state of the vertex of a rank.
    pub(super) fn state(&mut self, rank: u64) -> Result<Option<Value>, Error> {
        self.with(rank, |vertex| vertex.state.clone())
    }

    /// The ranks of all vertices, in the order of external ids.
    pub(super) fn order(&mut self) -> Result<&[u64], Error> {
        if self.order.is_none() {
            let mut exists = vec![false; self.ids.count() as usize];
            for store in self.partitions()?.stores() {
                store.for_each(&mut |vertex| {
                    if let Some(exists) = exists.get_mut(*vertex.id() as usize) {
                        *exists = true;
                    }
                    Ok(())
                })?;
            }
            let mut order = self.ids.order().map_err(|error| Error::Internal(error.to_string()))?;
            order.retain(|rank| exists[*rank as usize]);
            self.order = Some(order);
        }
        Ok(self.order.as_deref().unwrap_or_default())
    }

    fn insert(&mut self, rank: u64, state: Value, edges: Edges<u64, f64>) -> Result<bool, Error> {
        self.change()?;
        self.order = None;
        Ok(self.partitions()?.store(rank)?.insert(Stored::new(rank, state, edges))?)
    }

    fn remove(&mut self, rank: u64) -> Result<bool, Error> {
        self.change()?;
        self.order = None;
        let targets = self.with(rank, |vertex| vertex.edges().targets().to_vec())?;
        for target in targets.unwrap_or_default() {
            self.forget(rank, target)?;
        }
        Ok(self.partitions()?.store(rank)?.remove(&rank)?)
    }

    /// Adds edges to the vertex of a rank; false if it does not exist.
    fn extend(&mut self, rank: u64, edges: &[(u64, f64)]) -> Result<bool, Error> {
        self.change()?;
        let done = self.with(rank, |vertex| {
            edges.iter().for_each(|(target, weight)| vertex.edges_mut().push(*target, *weight));
        })?;
        Ok(done.is_some())
    }

    /// Removes all edges between two vertices; returns their number.
    fn disconnect(&mut self, rank: u64, target: u64) -> Result<usize, Error> {
        self.change()?;
        let gone = self.with(rank, |vertex| {
            let before = vertex.edges().len();
            if vertex.edges().targets().contains(&target) {
                vertex.edges_mut().retain(|edge| *edge.target != target);
            }
            before - vertex.edges().len()
        })?;
        let gone = gone.unwrap_or(0);
        if gone > 0 {
            self.forget(rank, target)?;
        }
        Ok(gone)
    }

    /// Lets `target` forget the signals of `source`, and collect again in the next run.
    fn forget(&mut self, source: u64, target: u64) -> Result<(), Error> {
        if self.with(target, |vertex| vertex.forget_source(&source))?.is_some() {
            self.notes.touched.insert(target);
        }
        Ok(())
    }
}

/// Vertices that stay in a folder.
#[pyclass(frozen, module = "brimful._native")]
pub(crate) struct KeptVertexStore {
    shared: Shared,
    graph: Arc<Inner>,
}

impl KeptVertexStore {
    /// Calls `work` with the vertices, without the interpreter's lock.
    fn on<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Opened) -> Result<T, Error> + Send,
    ) -> PyResult<T> {
        Ok(py.detach(|| work(&mut locked(&self.shared))).map_err(Failure::from)?)
    }

    fn ids(&self) -> (Arc<Ids>, Arc<Values>) {
        let opened = locked(&self.shared);
        (Arc::clone(&opened.ids), Arc::clone(&opened.values))
    }

    fn rank(&self, vertex: Vertex, creates: bool) -> PyResult<u64> {
        self.ids().0.rank(&vertex.into(), creates)
    }
}

pub(super) fn missing(vertex: &ExternalId) -> PyErr {
    let vertex = vertex.to_string();
    Failure::from(brimful::graph::Error::NoSuchVertex { vertex }).into()
}

#[pymethods]
impl KeptVertexStore {
    /// The graph, serializer and weights of a kept store; `None` if there is none.
    #[staticmethod]
    fn describe<'py>(py: Python<'py>, url: &str) -> PyResult<Option<Bound<'py, PyDict>>> {
        let found = KeptStore::read(url, &brimful::vertices::Schemes::default());
        let Some(found) = found.map_err(Failure::from)? else { return Ok(None) };
        let out = PyDict::new(py);
        out.set_item("graph", found.graph.display().to_string())?;
        out.set_item("is_whole", found.condition == Condition::Whole)?;
        for (name, value) in found.properties() {
            out.set_item(name, value)?;
        }
        Ok(Some(out))
    }

    #[staticmethod]
    #[expect(clippy::too_many_arguments, reason = "keywords of one Python call")]
    fn open(
        py: Python<'_>,
        graph: &Bound<'_, Graph>,
        store: Store,
        dumps: Py<PyAny>,
        loads: Py<PyAny>,
        keeps_numbers: bool,
        serializer: &str,
        weighted: bool,
        budget: Option<u64>,
        process_budget: bool,
    ) -> PyResult<Self> {
        let inner = Arc::clone(&graph.get().inner);
        let choice = store
            .choice()?
            .ok_or_else(|| Failure::from(Error::Usage("a store needs a URL".into())))?;
        let limits = Limits { threads: Some(1), budget, process_budget, reserve_bytes: 0 };
        let keeping = Keeping { serializer: serializer.to_owned(), start: Start::Continue };
        let path = path_of(&choice.url, &choice).map_err(Failure::from)?;
        let shared = match path.and_then(|path| shared(&path)) {
            Some(shared) => shared,
            None => with_resources(py, None, limits, |resources| {
                let location = Location::new(&choice, &inner, (Some(&keeping), weighted))?;
                let memory = MemoryWatch::new(&resources.budget, process_budget);
                let values = Values::new((dumps, loads), (false, keeps_numbers), memory);
                let ids = Arc::new(Ids::new(&inner, location.created(), resources)?);
                let count = location.vertices().map_or(1, |kept| kept.edges.len());
                Ok(location.leave((&inner, &choice, count), (ids, Arc::new(values)), resources)?)
            })?,
        };
        Ok(Self { shared, graph: inner })
    }

    fn __len__(&self, py: Python<'_>) -> PyResult<usize> {
        self.on(py, |opened| Ok(opened.len()? as usize))
    }

    fn state<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyAny>> {
        let rank = self.rank(vertex.clone(), false)?;
        let state = self.on(py, |opened| opened.state(rank))?;
        let state = state.ok_or_else(|| missing(&vertex.into()))?;
        self.ids().1.object(py, &state)
    }

    fn set_state(&self, py: Python<'_>, vertex: Vertex, state: Bound<'_, PyAny>) -> PyResult<()> {
        let rank = self.rank(vertex.clone(), false)?;
        let state = self.ids().1.state(state)?;
        let done = self.on(py, |opened| {
            opened.change()?;
            opened.with(rank, |vertex| vertex.state = state)
        })?;
        done.ok_or_else(|| missing(&vertex.into()))
    }

    /// Pairs of the target and the weight of each edge of a vertex.
    fn edges<'py>(&self, py: Python<'py>, vertex: Vertex) -> PyResult<Bound<'py, PyList>> {
        let rank = self.rank(vertex.clone(), false)?;
        let edges = self.on(py, |opened| opened.with(rank, |vertex| vertex.edges().clone()))?;
        let edges = edges.ok_or_else(|| missing(&vertex.into()))?;
        let (ids, out) = (self.ids().0, PyList::empty(py));
        for edge in edges.iter() {
            out.append((ids.get(py, *edge.target)?, *edge.data))?;
        }
        Ok(out)
    }

    /// Adds a vertex; false if it exists.
    fn add_vertex(
        &self,
        py: Python<'_>,
        vertex: Vertex,
        state: Bound<'_, PyAny>,
        edges: Vec<(Vertex, f64)>,
    ) -> PyResult<bool> {
        let state = self.ids().1.state(state)?;
        let rank = self.rank(vertex, true)?;
        let edges = self.ranked(edges)?;
        self.on(py, |opened| opened.insert(rank, state, edges.into_iter().collect()))
    }

    /// Removes a vertex and its edges; false if there is none.
    fn remove_vertex(&self, py: Python<'_>, vertex: Vertex) -> PyResult<bool> {
        let rank = self.rank(vertex, false)?;
        self.on(py, |opened| opened.remove(rank))
    }

    fn add_edges(&self, py: Python<'_>, source: Vertex, edges: Vec<(Vertex, f64)>) -> PyResult<()> {
        let rank = self.rank(source.clone(), false)?;
        let edges = self.ranked(edges)?;
        match self.on(py, |opened| opened.extend(rank, &edges))? {
            true => Ok(()),
            false => Err(missing(&source.into())),
        }
    }

    /// Removes the edges between two vertices; returns their number.
    fn remove_edges(&self, py: Python<'_>, source: Vertex, target: Vertex) -> PyResult<usize> {
        let (source, target) = (self.rank(source, false)?, self.rank(target, false)?);
        self.on(py, |opened| opened.disconnect(source, target))
    }

    fn rows<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        count: usize,
    ) -> PyResult<Bound<'py, PyList>> {
        let found = self.on(py, |opened| rows_of(opened, start, count))?;
        let (ids, values) = self.ids();
        listed(py, &ids, &values, found)
    }

    fn vertex_stream(&self) -> Stream {
        Stream::of_vertices(&self.graph)
    }

    /// Makes all changes durable.
    fn sync(&self, py: Python<'_>) -> PyResult<()> {
        self.on(py, Opened::sync)
    }

    /// Makes all changes durable, and ends the use of the store.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.on(py, Opened::close)
    }

    /// A number that grows with each change.
    #[getter]
    fn generation(&self) -> u64 {
        locked(&self.shared).generation
    }
}

impl KeptVertexStore {
    /// Edges by rank. A target may be missing, and may be added later.
    fn ranked(&self, edges: Vec<(Vertex, f64)>) -> PyResult<Vec<(u64, f64)>> {
        edges.into_iter().map(|(target, weight)| Ok((self.rank(target, true)?, weight))).collect()
    }
}

/// Ranks and states from position `start` on, in the order of ids.
pub(super) fn rows_of(
    opened: &mut Opened,
    start: usize,
    count: usize,
) -> Result<Vec<(u64, Value)>, Error> {
    let ranks: Vec<u64> = opened.order()?.iter().skip(start).take(count).copied().collect();
    let mut rows = Vec::with_capacity(ranks.len());
    for part in ranks.chunks(opened.lookahead()?) {
        opened.announce(part)?;
        for rank in part {
            rows.extend(opened.state(*rank)?.map(|state| (*rank, state)));
        }
    }
    Ok(rows)
}

/// Rows as pairs of Python objects.
pub(super) fn listed<'py>(
    py: Python<'py>,
    ids: &Ids,
    values: &Values,
    rows: Vec<(u64, Value)>,
) -> PyResult<Bound<'py, PyList>> {
    let out = PyList::empty(py);
    for (rank, state) in rows {
        out.append((ids.get(py, rank)?, values.object(py, &state)?))?;
    }
    Ok(out)
}
