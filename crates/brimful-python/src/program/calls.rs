//! A program in Python as a vertex program: calls of its methods.
//!
//! One worker makes all calls, and holds the interpreter's lock during a phase. A program sees
//! external ids of vertices; inside they are ranks.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use brimful::execution::{
    Delivery, Error, Failure as ProgramFailure, RunMode, Start, VertexOf, VertexProgram,
};
use brimful::vertices::cache::ScoreFunction;
use brimful::vertices::{Edge, Edges, Loan};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyList;

use super::Settings;
use super::distribution::Steps;
use super::ids::Ids;
use super::purity::Purity;
use super::value::{Value, Values, is_equal, score_of};
use crate::raised::Raised;
use crate::vertex::Vertex;

/// A vertex, as a program sees it.
#[pyclass(frozen, module = "brimful._native", name = "ProgramVertex")]
pub(crate) struct Seen {
    #[pyo3(get)]
    id: Py<PyAny>,
    #[pyo3(get)]
    state: Py<PyAny>,
    /// The state when the vertex last signalled.
    #[pyo3(get)]
    signalled: Py<PyAny>,
    #[pyo3(get)]
    has_signalled: bool,
    #[pyo3(get)]
    degree: usize,
    /// The number of the superstep, from 0; `None` before the first, and where there are none.
    #[pyo3(get)]
    superstep: Option<u64>,
    /// The out-edges, by rank, of a vertex that chooses the targets of its signals.
    edges: Vec<(u64, f64)>,
    ids: Option<Arc<Ids>>,
}

#[pymethods]
impl Seen {
    /// Pairs of the target and the weight of each out-edge.
    #[getter]
    fn edges<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let edges = PyList::empty(py);
        let Some(ids) = &self.ids else { return Ok(edges) };
        for (target, weight) in &self.edges {
            edges.append((ids.get(py, *target)?, *weight))?;
        }
        Ok(edges)
    }
}

/// The items of a state of Pregel: the value, whether the vertex halted, its messages (each a
/// target followed by a message: lists of pairs would be many objects for the garbage collector),
/// and its own edges. A kept vertex has its own edges in place of those of the graph, not in the
/// state.
const VALUE: usize = 0;
const IS_HALTED: usize = 1;
const OUTBOX: usize = 2;
const EDGES: usize = 3;

/// The bound methods of a program.
struct Methods {
    initial_state: Py<PyAny>,
    /// Makes the first state of a kept vertex of Pregel that keeps its value; `None` if it gets a
    /// new one.
    kept_state: Option<Py<PyAny>>,
    signal: Py<PyAny>,
    collect: Py<PyAny>,
    combine: Py<PyAny>,
    /// `None` if the program has the default scores.
    signal_score: Option<Py<PyAny>>,
    collect_score: Option<Py<PyAny>>,
    cache_score: Option<Py<PyAny>>,
    /// `None` if signals to vertices that do not exist are dropped.
    create: Option<Py<PyAny>>,
}

/// A program in Python.
pub(super) struct Program {
    pub(super) ids: Arc<Ids>,
    pub(super) values: Arc<Values>,
    /// The supersteps done so far; [`LOADING`] while vertices are loaded.
    pub(super) superstep: Arc<AtomicU64>,
    has_supersteps: bool,
    delivery: Delivery,
    collect_threshold: f64,
    /// True for Pregel, whose vertices choose the targets of their messages.
    addresses: bool,
    /// True if messages create the vertices that they do not find.
    creates: bool,
    /// True for Pregel on kept vertices, whose states of a run are marked as such.
    is_working: bool,
    methods: Methods,
    /// The vertex that signals along its edges, one after another.
    signalling: Mutex<Option<(u64, Py<Seen>)>>,
    purity: Purity,
    /// Steps in one of several processes that make the run together.
    steps: Option<Arc<Steps>>,
}

/// The value of [`Program::superstep`] while vertices are loaded.
pub(super) const LOADING: u64 = u64::MAX;

type Outcome<T> = Result<T, ProgramFailure>;

impl Program {
    /// The program `object`, an instance of `brimful.Program`.
    pub(super) fn new(
        object: &Bound<'_, PyAny>,
        settings: &Settings,
        ids: Arc<Ids>,
        values: Arc<Values>,
    ) -> PyResult<Self> {
        let py = object.py();
        let base = py.import("brimful.program")?.getattr("Program")?;
        let method = |name: &str| object.getattr(name).map(Bound::unbind);
        let overridden = |name: &str| -> PyResult<Option<Py<PyAny>>> {
            let is_default = object.get_type().getattr(name)?.is(&base.getattr(name)?);
            if is_default { Ok(None) } else { method(name).map(Some) }
        };
        let continues = settings.keeping.as_ref().is_some_and(|one| one.start == Start::Continue);
        let kept_state = (settings.addresses && continues).then(|| method("kept_state"));
        let methods = Methods {
            initial_state: method("initial_state")?,
            kept_state: kept_state.transpose()?,
            signal: method("signal")?,
            collect: method("collect")?,
            combine: method("combine")?,
            signal_score: overridden("signal_score")?,
            collect_score: overridden("collect_score")?,
            cache_score: overridden("cache_score")?,
            create: overridden("create")?,
        };
        Ok(Self {
            ids,
            values,
            superstep: Arc::new(AtomicU64::new(LOADING)),
            has_supersteps: settings.mode == RunMode::Synchronous,
            delivery: settings.delivery,
            collect_threshold: settings.collect_threshold,
            addresses: settings.addresses,
            creates: settings.creates,
            is_working: settings.addresses && settings.keeping.is_some(),
            methods,
            signalling: Mutex::new(None),
            purity: Purity::new(py)?,
            steps: settings
                .distribution
                .as_ref()
                .map(|distribution| Arc::clone(&distribution.steps)),
        })
    }

    /// Calls `work` with the interpreter; exceptions are attributed to the vertex of this rank.
    fn at<T>(
        &self,
        (rank, state): (u64, Option<&Value>),
        work: impl FnOnce(Python<'_>) -> PyResult<T>,
    ) -> Outcome<T> {
        Python::attach(|py| {
            work(py).map_err(|error| match self.ids.get(py, rank) {
                Ok(vertex) => {
                    let state = state.and_then(|state| self.shown(py, state));
                    Raised {
                        vertex: vertex.unbind(),
                        state: state.map(Bound::unbind),
                        superstep: self.number(),
                        error,
                    }
                    .into()
                }
                Err(_) => error.into(),
            })
        })
    }

    /// A state as the user knows it: of a state of Pregel, the value.
    fn shown<'py>(&self, py: Python<'py>, state: &Value) -> Option<Bound<'py, PyAny>> {
        let object = self.values.object(py, state).ok()?;
        match self.addresses && self.is_working == matches!(state, Value::Working(_)) {
            true => object.get_item(VALUE).ok(),
            false => Some(object),
        }
    }

    /// The value of a state that a method returned.
    fn state(&self, object: Bound<'_, PyAny>) -> PyResult<Value> {
        if self.is_working { self.values.working(&object) } else { self.values.state(object) }
    }

    /// The state that a collect changed to `object`; `None` if the object equals the one `before`.
    /// Equal objects may have different bytes, such as dicts in another order.
    fn changed(
        &self,
        vertex: &VertexOf<Self>,
        before: &Bound<'_, PyAny>,
        object: Bound<'_, PyAny>,
    ) -> PyResult<Option<Value>> {
        let new = self.state(object.clone())?;
        if new == vertex.state {
            return Ok(None);
        }
        // Pregel has no such score, and may change a value in place.
        if self.addresses || !matches!(new, Value::Bytes(_)) {
            return Ok(Some(new));
        }
        let is_same = matches!(vertex.state, Value::Bytes(_)) && is_equal(before, &object);
        Ok((!is_same).then_some(new))
    }

    /// The state of a vertex of Pregel that does not exist.
    fn no_state(&self) -> Value {
        if self.is_working { Value::Working(Box::default()) } else { Value::None }
    }

    /// Takes its own edges out of the state of a kept vertex of Pregel; `None` if they have not
    /// changed. A target may be missing.
    fn take_edges(&self, state: &Bound<'_, PyAny>) -> PyResult<Option<Edges<u64, f64>>> {
        if !self.is_working || state.is_none() {
            return Ok(None);
        }
        let Some(edges) = state.get_item(EDGES)?.extract::<Option<Vec<(Vertex, f64)>>>()? else {
            return Ok(None);
        };
        state.set_item(EDGES, state.py().None())?;
        let ranked =
            |(target, value): (Vertex, f64)| Ok((self.ids.rank(&target.into(), true)?, value));
        edges.into_iter().map(ranked).collect::<PyResult<_>>().map(Some)
    }

    /// The number of the superstep, from 0; `None` before the first, and where there are none.
    fn number(&self) -> Option<u64> {
        let done = self.superstep.load(Ordering::Relaxed);
        (self.has_supersteps && done != LOADING).then_some(done)
    }

    fn object_or_none(&self, py: Python<'_>, value: Option<&Value>) -> PyResult<Py<PyAny>> {
        match value {
            Some(value) => Ok(self.values.object(py, value)?.unbind()),
            None => Ok(py.None()),
        }
    }

    fn seen(&self, py: Python<'_>, vertex: &VertexOf<Self>) -> PyResult<Seen> {
        // Only a signal score reads this state.
        let signalled = vertex.signalled.as_ref().filter(|_| self.methods.signal_score.is_some());
        Ok(Seen {
            id: self.ids.get(py, *vertex.id())?.unbind(),
            state: self.object_or_none(py, Some(&vertex.state))?,
            signalled: self.object_or_none(py, signalled)?,
            has_signalled: signalled.is_some(),
            degree: vertex.edges().len(),
            superstep: self.number(),
            edges: match self.addresses {
                true => vertex.edges().iter().map(|edge| (*edge.target, *edge.data)).collect(),
                false => Vec::new(),
            },
            ids: self.addresses.then(|| Arc::clone(&self.ids)),
        })
    }

    /// The state of Pregel; `None` for a vertex that was removed.
    fn items<'py>(&self, py: Python<'py>, state: &Value) -> PyResult<Option<Bound<'py, PyList>>> {
        let items = self.values.object(py, state)?;
        if items.is_none() { Ok(None) } else { Ok(Some(items.cast_into()?)) }
    }

    fn signalling<'py>(
        &self,
        py: Python<'py>,
        source: &VertexOf<Self>,
    ) -> PyResult<Bound<'py, Seen>> {
        let mut signalling = self.signalling.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((rank, seen)) = &*signalling
            && rank == source.id()
        {
            return Ok(seen.bind(py).clone());
        }
        let seen = Bound::new(py, self.seen(py, source)?)?;
        *signalling = Some((*source.id(), seen.clone().unbind()));
        Ok(seen)
    }
}

impl VertexProgram for Program {
    type Id = u64;
    type State = Value;
    type Edge = f64;
    type Signal = Value;

    fn delivery(&self) -> Delivery {
        self.delivery
    }

    fn within_phase(&self, work: &mut dyn FnMut()) {
        Python::attach(|_| work());
    }

    fn combine(&self, waiting: &mut Value, signal: Value) -> Outcome<()> {
        *waiting = Python::attach(|py| {
            let combine = self.methods.combine.bind(py);
            self.values.combined(py, (waiting, &signal), |old, new| {
                let watched = self.purity.watch_signals([&old, &new]);
                let both = combine.call1((&old, &new))?;
                watched.map_or(Ok(()), |watched| watched.check())?;
                // A message of Pregel may be None.
                if both.is_none() && !old.is_none() && !new.is_none() {
                    let problem = "combine returned None for two signals; return the signal that \
                                   stands for both";
                    return Err(PyTypeError::new_err(problem));
                }
                Ok(both)
            })
        })?;
        Ok(())
    }

    fn initial(&self, id: &u64, edges: &Edges<u64, f64>) -> Outcome<Value> {
        self.at((*id, None), |py| {
            let id = self.ids.get(py, *id)?.unbind();
            let vertex = Seen {
                id,
                state: py.None(),
                signalled: py.None(),
                has_signalled: false,
                degree: edges.len(),
                superstep: None,
                edges: Vec::new(),
                ids: None,
            };
            self.state(self.methods.initial_state.bind(py).call1((vertex,))?)
        })
    }

    fn restart(&self, vertex: &VertexOf<Self>) -> Outcome<Value> {
        self.at((*vertex.id(), Some(&vertex.state)), |py| {
            let state = match &self.methods.kept_state {
                Some(method) => {
                    let value = self.values.object(py, &vertex.state)?;
                    let is_halted = vertex.signalled.as_ref() == Some(&vertex.state);
                    method.bind(py).call1((value, is_halted))?
                }
                None => self.methods.initial_state.bind(py).call1((self.seen(py, vertex)?,))?,
            };
            self.state(state)
        })
    }

    fn signal(&self, source: &VertexOf<Self>, edge: Edge<'_, u64, f64>) -> Outcome<Option<Value>> {
        self.at((*source.id(), Some(&source.state)), |py| {
            let vertex = self.signalling(py, source)?;
            let target = self.ids.get(py, *edge.target)?;
            let signal = self.methods.signal.bind(py).call1((vertex, target, *edge.data))?;
            if signal.is_none() {
                return Ok(None);
            }
            self.values.signal(signal).map(Some)
        })
    }

    fn addresses(&self) -> bool {
        self.addresses
    }

    fn send(
        &self,
        source: &VertexOf<Self>,
        send: &mut dyn FnMut(&u64, Value) -> bool,
    ) -> Outcome<bool> {
        self.at((*source.id(), Some(&source.state)), |py| {
            let Some(state) = self.items(py, &source.state)? else { return Ok(false) };
            let outbox: Bound<'_, PyList> = state.get_item(OUTBOX)?.cast_into()?;
            let neighbors = source.edges().targets();
            let mut next = 0;
            for at in (0..outbox.len()).step_by(2) {
                let (target, message) = (outbox.get_item(at)?, outbox.get_item(at + 1)?);
                let one;
                let targets = if target.is_none() {
                    neighbors
                } else {
                    let id = target.extract::<Vertex>()?.into();
                    // Most programs send along their edges, in the order of these.
                    one = match neighbors.get(next) {
                        Some(neighbor) if self.ids.has(*neighbor, &id) => [*neighbor],
                        _ => [self.ids.rank(&id, self.creates)?],
                    };
                    next += 1;
                    &one
                };
                for target in targets {
                    if !send(target, self.values.signal(message.clone())?) {
                        return Ok(false);
                    }
                }
            }
            Ok(!state.get_item(IS_HALTED)?.is_truthy()?)
        })
    }

    fn create(&self, id: &u64) -> Outcome<Option<Value>> {
        let Some(method) = &self.methods.create else {
            return Ok(self.creates.then(|| self.no_state()));
        };
        self.at((*id, None), |py| {
            let state = method.bind(py).call1((self.ids.get(py, *id)?,))?;
            if state.is_none() { Ok(None) } else { self.state(state).map(Some) }
        })
    }

    fn signalled(&self, state: &mut Value) -> Outcome<()> {
        // The state changes now, so the next signal needs a new object.
        *self.signalling.lock().unwrap_or_else(PoisonError::into_inner) = None;
        if self.addresses {
            *state = Python::attach(|py| {
                let Some(items) = self.items(py, state)? else { return Ok(state.clone()) };
                if !items.get_item(OUTBOX)?.is_truthy()? {
                    return Ok(state.clone());
                }
                let sent = PyList::new(py, items.iter())?;
                sent.set_item(OUTBOX, PyList::empty(py))?;
                self.state(sent.into_any())
            })?;
        }
        Ok(())
    }

    fn export(&self, signal: Value) -> Outcome<Value> {
        let Some(steps) = &self.steps else { return Ok(signal) };
        Ok(Python::attach(|py| steps.exported(py, &self.values, signal))?)
    }

    fn import(&self, signal: Value) -> Outcome<Value> {
        let Some(steps) = &self.steps else { return Ok(signal) };
        Ok(Python::attach(|py| steps.imported(py, &self.values, signal))?)
    }

    fn new_ids(&self) -> Outcome<Option<Vec<u8>>> {
        Ok(if self.creates { Some(self.ids.named()?) } else { None })
    }

    fn accept_ids(&self, of_all: &[&[u8]]) -> Outcome<()> {
        Ok(self.ids.accept(of_all)?)
    }

    fn final_id(&self, id: &u64) -> u64 {
        self.ids.final_rank(*id)
    }

    fn contribution(&self) -> Outcome<Vec<u8>> {
        Ok(self.steps.as_ref().map_or(Ok(Vec::new()), |steps| steps.contribution())?)
    }

    fn merge(&self, of_all: &[&[u8]]) -> Outcome<()> {
        Ok(self.steps.as_ref().map_or(Ok(()), |steps| steps.merge(of_all))?)
    }

    fn received(&self, signal: Value) -> Outcome<Value> {
        Python::attach(|py| Ok(self.values.received(py, signal)?))
    }

    fn collect(&self, vertex: &mut Loan<'_, VertexOf<Self>>, signals: &[Value]) -> Outcome<()> {
        let (changed, edges) = self.at((*vertex.id(), Some(&vertex.state)), |py| {
            let seen = self.seen(py, vertex)?;
            let before = seen.state.clone_ref(py);
            let received = PyList::empty(py);
            for signal in signals {
                received.append(self.values.take(py, signal)?)?;
            }
            let watched = self.purity.watch(seen.state.bind(py), &received);
            let state = self.methods.collect.bind(py).call1((seen, &received))?;
            watched.map_or(Ok(()), |watched| watched.check())?;
            let edges = self.take_edges(&state)?;
            Ok((self.changed(vertex, before.bind(py), state)?, edges))
        })?;
        if let Some(state) = changed {
            vertex.state = state;
        }
        if let Some(edges) = edges {
            *vertex.edges_mut() = edges;
        }
        Ok(())
    }

    fn signal_score(&self, vertex: &VertexOf<Self>) -> Outcome<f64> {
        if self.addresses {
            return self.at((*vertex.id(), Some(&vertex.state)), |py| {
                let Some(state) = self.items(py, &vertex.state)? else { return Ok(0.0) };
                let is_due = !state.get_item(IS_HALTED)?.is_truthy()?
                    || state.get_item(OUTBOX)?.is_truthy()?;
                Ok(f64::from(u8::from(is_due)))
            });
        }
        let Some(method) = &self.methods.signal_score else {
            return Ok(f64::from(u8::from(vertex.signalled.as_ref() != Some(&vertex.state))));
        };
        self.at((*vertex.id(), Some(&vertex.state)), |py| {
            score_of("signal_score", &method.bind(py).call1((self.seen(py, vertex)?,))?)
        })
    }

    fn cache_score(&self) -> Option<ScoreFunction<VertexOf<Self>>> {
        let method = self.methods.cache_score.as_ref()?;
        let method = Python::attach(|py| method.clone_ref(py));
        let (ids, values) = (Arc::clone(&self.ids), Arc::clone(&self.values));
        Some(Arc::new(move |vertex: &VertexOf<Self>| {
            Python::attach(|py| {
                let id = ids.get(py, *vertex.id())?;
                let state = values.object(py, &vertex.state)?;
                let seen = Seen {
                    id: id.clone().unbind(),
                    state: state.unbind(),
                    signalled: py.None(),
                    has_signalled: false,
                    degree: vertex.edges().len(),
                    superstep: None,
                    edges: Vec::new(),
                    ids: None,
                };
                let score = method.bind(py).call1((seen,));
                let score = score.and_then(|score| score_of("cache_score", &score));
                score.map_err(|error| {
                    Raised { vertex: id.unbind(), state: None, superstep: None, error }.into()
                })
            })
        }))
    }

    fn collect_score(&self, vertex: &VertexOf<Self>, signals: &[Value]) -> Outcome<f64> {
        let Some(method) = &self.methods.collect_score else { return Ok(1.0) };
        self.at((*vertex.id(), Some(&vertex.state)), |py| {
            let received = PyList::empty(py);
            for signal in signals {
                received.append(self.values.object(py, signal)?)?;
            }
            let returned = method.bind(py).call1((self.seen(py, vertex)?, received))?;
            let score = score_of("collect_score", &returned)?;
            if score <= self.collect_threshold {
                // The signals are dropped.
                signals.iter().try_for_each(|signal| self.values.take(py, signal).map(drop))?;
            }
            Ok(score)
        })
    }
}

/// The value of a kept vertex of Pregel after a run, and whether it has halted with no message to
/// send; `None` for a vertex that does not exist.
pub(super) fn settled(values: &Values, state: &[u8]) -> PyResult<Option<(Value, bool)>> {
    if state.is_empty() {
        return Ok(None);
    }
    Python::attach(|py| {
        let items = values.loaded(py, state)?;
        let is_halted = items.get_item(IS_HALTED)?.is_truthy()?;
        let is_idle = is_halted && !items.get_item(OUTBOX)?.is_truthy()?;
        Ok(Some((values.state(items.get_item(VALUE)?)?, is_idle)))
    })
}

/// An error of a program in the words of its author: `combine` does not know the target of its
/// signals, and a vertex of Pregel computes, and sends the messages of the superstep before.
pub(super) fn in_own_words(mut error: Error, ids: &Ids, is_pregel: bool) -> Error {
    let Error::Program { vertex, doing, source } = &mut error else { return error };
    if let (Some(raised), Ok(rank)) = (source.downcast_ref::<PyErr>(), vertex.parse()) {
        let raised = Python::attach(|py| {
            let vertex = ids.get(py, rank).ok()?.unbind();
            Some(Raised { vertex, state: None, superstep: None, error: raised.clone_ref(py) })
        });
        if let Some(raised) = raised {
            *source = Box::new(raised);
        }
    }
    match *doing {
        "collect" if is_pregel => *doing = "compute",
        "signal" if is_pregel => {
            *doing = "send messages";
            if let Some(Raised { superstep: Some(number), .. }) = source.downcast_mut() {
                *number = number.saturating_sub(1);
            }
        }
        _ => {}
    }
    error
}
