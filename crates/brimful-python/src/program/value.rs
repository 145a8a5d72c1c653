//! States and signals of programs in Python, as values of Rust.
//!
//! Numbers are stored as they are, other objects alive or as bytes from a serializer. A signal that
//! is alive waits in a table; the lists of the execution hold its number. Invariant: every number
//! is taken once, by the collect or the combine of its signal.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use brimful::execution::Error;
use brimful::store::Budget;
use brimful::store::error::human;
use brimful::store::memory::{release_free_memory, resident_bytes};
use brimful::store::varint::{read_varint, write_varint};
use brimful::vertices::Field;
use brimful::vertices::field::take;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyNone, PyTuple};

use super::packed::{packed, unpacked};
use crate::errors::Failure;

/// A state or a signal.
#[derive(Debug)]
pub(super) enum Value {
    None,
    Bool(bool),
    Int(i64),
    Float(f64),
    /// An object, as the serializer wrote it.
    Bytes(Box<[u8]>),
    /// The state of a vertex of Pregel during a run on kept vertices, as the serializer wrote it;
    /// empty if the vertex does not exist. Between two runs the state is the value.
    Working(Box<[u8]>),
    /// An object of a state, or of a signal that a vertex stores, that is alive.
    Live(Py<PyAny>),
    /// The number of a signal that is alive.
    Waiting(u64),
}

/// The score that a method returned.
pub(super) fn score_of(method: &str, returned: &Bound<'_, PyAny>) -> PyResult<f64> {
    match returned.extract::<f64>() {
        Ok(score) if !score.is_nan() => Ok(score),
        Ok(_) => Err(PyValueError::new_err(format!("{method} returned NaN, not a number"))),
        Err(_) => {
            let shown = returned.repr()?;
            Err(PyTypeError::new_err(format!("{method} returned {shown}, not a number")))
        }
    }
}

impl Clone for Value {
    fn clone(&self) -> Self {
        match self {
            Self::None => Self::None,
            Self::Bool(value) => Self::Bool(*value),
            Self::Int(value) => Self::Int(*value),
            Self::Float(value) => Self::Float(*value),
            Self::Bytes(bytes) => Self::Bytes(bytes.clone()),
            Self::Working(bytes) => Self::Working(bytes.clone()),
            Self::Live(object) => Python::attach(|py| Self::Live(object.clone_ref(py))),
            Self::Waiting(number) => Self::Waiting(*number),
        }
    }
}

impl PartialEq for Value {
    /// True if the values are equal: numbers as in Python, whatever their types, and two NaN;
    /// other objects if they have one type.
    fn eq(&self, other: &Self) -> bool {
        if let (Some(left), Some(right)) = (self.integer(), other.integer()) {
            return left == right;
        }
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Float(left), Self::Float(right)) => {
                left == right || (left.is_nan() && right.is_nan())
            }
            (Self::Float(float), number) | (number, Self::Float(float)) => {
                number.integer().is_some_and(|integer| is_float_of(*float, integer))
            }
            (Self::Bytes(left), Self::Bytes(right))
            | (Self::Working(left), Self::Working(right)) => left == right,
            (Self::Live(left), Self::Live(right)) => {
                left.is(right) || Python::attach(|py| is_equal(left.bind(py), right.bind(py)))
            }
            (Self::Waiting(left), Self::Waiting(right)) => left == right,
            _ => false,
        }
    }
}

impl Value {
    /// The integer that a value is; a truth value is one.
    fn integer(&self) -> Option<i64> {
        match self {
            Self::Bool(value) => Some(i64::from(*value)),
            Self::Int(value) => Some(*value),
            _ => None,
        }
    }
}

/// True if a float equals an integer exactly: the conversion of a large integer may round.
fn is_float_of(float: f64, integer: i64) -> bool {
    float == integer as f64 && float as i128 == i128::from(integer)
}

/// True if two objects have one type and are equal; arrays, if all their elements are, and records,
/// if all their fields are equal or NaN. Objects that cannot be compared are different.
pub(super) fn is_equal(left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> bool {
    if !left.get_type().is(right.get_type()) {
        return false;
    }
    let compared = || {
        let equal = left.rich_compare(right, pyo3::basic::CompareOp::Eq)?;
        // Without this test, the search for `all` would make an exception for each comparison.
        if equal.is_exact_instance_of::<PyBool>() {
            return equal.is_truthy();
        }
        match equal.getattr_opt("all")? {
            Some(all) => all.call0()?.is_truthy(),
            None => equal.is_truthy(),
        }
    };
    compared().unwrap_or(false) || are_equal_records(left, right).unwrap_or(false)
}

/// True if two objects of one type are tuples with names of fields, in which a NaN equals a NaN.
fn are_equal_records(left: &Bound<'_, PyAny>, right: &Bound<'_, PyAny>) -> PyResult<bool> {
    let (Ok(left), Ok(right)) = (left.cast::<PyTuple>(), right.cast::<PyTuple>()) else {
        return Ok(false);
    };
    if left.is_exact_instance_of::<PyTuple>() || !left.hasattr("_fields")? {
        return Ok(false);
    }
    let is_nan = |field: &Bound<'_, PyAny>| field.extract::<f64>().is_ok_and(f64::is_nan);
    let is_same = |(one, other): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        one.is(&other) || is_equal(&one, &other) || is_nan(&one) && is_nan(&other)
    };
    Ok(left.len() == right.len() && left.iter().zip(right.iter()).all(is_same))
}

/// The first byte of a value.
const NONE: u8 = 0;
const BOOL: u8 = 1;
const INT: u8 = 2;
const FLOAT: u8 = 3;
const WAITING: u8 = 4;
const BYTES: u8 = 5;
const WORKING: u8 = 6;

/// Numbers and the numbers of waiting signals take equally many bytes, so that a combined signal
/// fits in the place of one of its parts.
impl Field for Value {
    fn write(&self, out: &mut Vec<u8>) {
        let (kind, bits) = match self {
            Self::None => (NONE, 0),
            Self::Bool(value) => (BOOL, u64::from(*value)),
            Self::Int(value) => (INT, *value as u64),
            Self::Float(value) => (FLOAT, value.to_bits()),
            Self::Waiting(number) => (WAITING, *number),
            Self::Bytes(bytes) => return write_bytes(BYTES, bytes, out),
            Self::Working(bytes) => return write_bytes(WORKING, bytes, out),
            // The serializer of records has replaced it.
            Self::Live(_) => unreachable!("a live state has no bytes of its own"),
        };
        out.push(kind);
        out.extend_from_slice(&bits.to_le_bytes());
    }

    fn read(input: &mut &[u8]) -> Option<Self> {
        let kind = u8::read(input)?;
        if matches!(kind, BYTES | WORKING) {
            let len = usize::try_from(read_varint(input)?).ok()?;
            let bytes = take(input, len)?.into();
            return Some(if kind == BYTES { Self::Bytes(bytes) } else { Self::Working(bytes) });
        }
        let bits = u64::from_le_bytes(take(input, 8)?.try_into().ok()?);
        Some(match (kind, bits) {
            (NONE, 0) => Self::None,
            (BOOL, 0 | 1) => Self::Bool(bits == 1),
            (INT, _) => Self::Int(bits as i64),
            (FLOAT, _) => Self::Float(f64::from_bits(bits)),
            (WAITING, _) => Self::Waiting(bits),
            _ => return None,
        })
    }

    fn heap_bytes(&self) -> usize {
        if let Self::Bytes(bytes) | Self::Working(bytes) = self { bytes.len() } else { 0 }
    }
}

fn write_bytes(kind: u8, bytes: &[u8], out: &mut Vec<u8>) {
    out.push(kind);
    write_varint(bytes.len() as u64, out);
    out.extend_from_slice(bytes);
}

/// The signals that are alive, by number.
#[derive(Default)]
struct Waiting {
    signals: Vec<Option<Py<PyAny>>>,
    free: Vec<u64>,
}

/// Converts objects of Python to values, and back.
pub(super) struct Values {
    dumps: Py<PyAny>,
    loads: Py<PyAny>,
    /// True if states are objects in memory, false if they are bytes in a store.
    pub(super) is_live: bool,
    /// True if the serializer keeps numbers as they are, so that numbers need no serializer.
    keeps_numbers: bool,
    /// True if it is JSON, which leaves plain objects to [`packed`].
    packs: bool,
    waiting: Mutex<Waiting>,
    memory: MemoryWatch,
}

impl Values {
    pub(super) fn new(
        (dumps, loads): (Py<PyAny>, Py<PyAny>),
        (is_live, serializer): (bool, &str),
        memory: MemoryWatch,
    ) -> Self {
        let packs = serializer == "json";
        let keeps_numbers = is_live || packs || serializer == "pickle";
        Self { dumps, loads, is_live, keeps_numbers, packs, waiting: Mutex::default(), memory }
    }

    /// The value of a number; `None` for any other object.
    fn number(&self, object: &Bound<'_, PyAny>) -> Option<Value> {
        if !self.keeps_numbers {
            return None;
        }
        if object.is_exact_instance_of::<PyFloat>() {
            return object.extract().ok().map(Value::Float);
        }
        if object.is_exact_instance_of::<PyInt>() {
            // A larger integer is an object like others.
            return object.extract().ok().map(Value::Int);
        }
        if object.is_exact_instance_of::<PyNone>() {
            return Some(Value::None);
        }
        object.is_exact_instance_of::<PyBool>().then(|| object.extract().ok().map(Value::Bool))?
    }

    /// The value of a state.
    pub(super) fn state(&self, object: Bound<'_, PyAny>) -> PyResult<Value> {
        if let Some(number) = self.number(&object) {
            return Ok(number);
        }
        if !self.is_live {
            return self.dumped(&object);
        }
        self.memory.check(object.py())?;
        Ok(Value::Live(object.unbind()))
    }

    /// The state of a vertex of Pregel during a run on kept vertices.
    pub(super) fn working(&self, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        if object.is_none() {
            return Ok(Value::Working(Box::default()));
        }
        Ok(Value::Working(self.bytes_of(object)?))
    }

    /// The value of a signal.
    pub(super) fn signal(&self, object: Bound<'_, PyAny>) -> PyResult<Value> {
        if let Some(number) = self.number(&object) {
            return Ok(number);
        }
        if self.memory.is_short() { self.dumped(&object) } else { self.waits(object) }
    }

    /// A signal as a vertex stores it: alive if states are, else as bytes.
    pub(super) fn received(&self, py: Python<'_>, signal: Value) -> PyResult<Value> {
        match signal {
            Value::Waiting(_) => self.state(self.take(py, &signal)?),
            signal => self.restored(signal),
        }
    }

    /// Combines the objects of two signals into a value that replaces `old` in the message table.
    /// Unless `old` is bytes, the value has the same length as `old`, so the table has room for the
    /// value. If `old` is bytes, the table may lack room and combine again later, so a waiting
    /// signal stays there.
    pub(super) fn combined<'py>(
        &self,
        py: Python<'py>,
        (old, signal): (&Value, &Value),
        combine: impl FnOnce(Bound<'py, PyAny>, Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>>,
    ) -> PyResult<Value> {
        if matches!(old, Value::Bytes(_)) {
            let both = combine(self.object(py, old)?, self.object(py, signal)?)?;
            return self.number(&both).map_or_else(|| self.dumped(&both), Ok);
        }
        let both = combine(self.take(py, old)?, self.take(py, signal)?)?;
        self.number(&both).map_or_else(|| self.waits(both), Ok)
    }

    fn waits(&self, object: Bound<'_, PyAny>) -> PyResult<Value> {
        self.memory.check(object.py())?;
        let mut waiting = self.waiting();
        let Waiting { signals, free } = &mut *waiting;
        let number = free.pop().unwrap_or(signals.len() as u64);
        match signals.get_mut(number as usize) {
            Some(signal) => *signal = Some(object.unbind()),
            None => signals.push(Some(object.unbind())),
        }
        Ok(Value::Waiting(number))
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the object of a state or a signal. A waiting signal stays in the table.
    pub(super) fn object<'py>(
        &self,
        py: Python<'py>,
        value: &Value,
    ) -> PyResult<Bound<'py, PyAny>> {
        match value {
            Value::None => Ok(py.None().into_bound(py)),
            Value::Bool(value) => value.into_bound_py_any(py),
            Value::Int(value) => value.into_bound_py_any(py),
            Value::Float(value) => value.into_bound_py_any(py),
            Value::Working(bytes) if bytes.is_empty() => Ok(py.None().into_bound(py)),
            Value::Bytes(bytes) | Value::Working(bytes) => self.loaded(py, bytes),
            Value::Live(object) => Ok(object.bind(py).clone()),
            Value::Waiting(number) => {
                let waiting = self.waiting();
                let signal = waiting.signals.get(*number as usize).and_then(Option::as_ref);
                Ok(signal.ok_or_else(|| taken_twice(*number))?.bind(py).clone())
            }
        }
    }

    /// The object that the serializer wrote.
    pub(super) fn loaded<'py>(&self, py: Python<'py>, bytes: &[u8]) -> PyResult<Bound<'py, PyAny>> {
        let unpacked = if self.packs { unpacked(py, bytes) } else { None };
        unpacked.unwrap_or_else(|| self.loads.bind(py).call1((PyBytes::new(py, bytes),)))
    }

    /// The object of a signal, which no longer waits.
    pub(super) fn take<'py>(&self, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
        let Value::Waiting(number) = value else { return self.object(py, value) };
        let mut waiting = self.waiting();
        let signal = waiting.signals.get_mut(*number as usize).and_then(Option::take);
        let signal = signal.ok_or_else(|| taken_twice(*number))?;
        waiting.free.push(*number);
        Ok(signal.into_bound(py))
    }

    /// The same value as bytes, if it is alive.
    pub(super) fn saved(&self, value: &Value) -> PyResult<Value> {
        match value {
            Value::Live(object) => Python::attach(|py| self.dumped(object.bind(py))),
            value => Ok(value.clone()),
        }
    }

    /// The same value alive, if states are.
    pub(super) fn restored(&self, value: Value) -> PyResult<Value> {
        match value {
            Value::Bytes(_) if self.is_live => {
                Python::attach(|py| Ok(Value::Live(self.object(py, &value)?.unbind())))
            }
            value => Ok(value),
        }
    }

    fn dumped(&self, object: &Bound<'_, PyAny>) -> PyResult<Value> {
        self.bytes_of(object).map(Value::Bytes)
    }

    fn bytes_of(&self, object: &Bound<'_, PyAny>) -> PyResult<Box<[u8]>> {
        if self.packs
            && let Some(bytes) = packed(object)
        {
            return Ok(bytes);
        }
        let bytes = self.dumps.bind(object.py()).call1((object,))?;
        Ok(bytes.extract::<&[u8]>()?.into())
    }
}

fn taken_twice(number: u64) -> PyErr {
    let fault = format!("signal {number} was taken twice");
    Failure::from(Error::Internal(fault)).into()
}

/// The most objects between two measurements of memory, which take some microseconds.
const CHECK_EVERY: u64 = 1 << 8;

/// Measures the memory of the process while objects of Python are created, because the budget
/// cannot count them in any other way.
pub(super) struct MemoryWatch {
    budget: u64,
    limit: u64,
    objects: AtomicU64,
    is_short: AtomicBool,
    last: Mutex<Measured>,
    /// The number of objects at which memory is measured again.
    next: AtomicU64,
}

/// A measurement: objects so far, and the memory of the process.
#[derive(Default)]
struct Measured {
    objects: u64,
    resident: u64,
}

impl MemoryWatch {
    /// Watches a process that may take the bytes of `budget`: in total if `of_process` is true,
    /// else in addition to its present memory.
    pub(super) fn new(budget: &Budget, of_process: bool) -> Self {
        // Objects in memory that is free but not returned would not be measured.
        release_free_memory();
        let before = if of_process { 0 } else { resident_bytes().unwrap_or(0) };
        Self {
            budget: budget.total(),
            limit: budget.total().saturating_add(before),
            objects: AtomicU64::new(0),
            is_short: AtomicBool::new(false),
            last: Mutex::default(),
            next: AtomicU64::new(1),
        }
    }

    /// True if little memory is left.
    fn is_short(&self) -> bool {
        self.is_short.load(Ordering::Relaxed)
    }

    /// Counts an object, and measures the memory of the process: at every `CHECK_EVERY`th object,
    /// or before objects as large as the last ones fill half of the rest.
    ///
    /// # Errors
    /// `BudgetError` if the process takes more memory than it may.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        let objects = self.objects.fetch_add(1, Ordering::Relaxed) + 1;
        if objects < self.next.load(Ordering::Relaxed) {
            return Ok(());
        }
        let resident = resident_bytes().unwrap_or(0);
        let now = Measured { objects, resident };
        let last =
            std::mem::replace(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner), now);
        let grown = resident.saturating_sub(last.resident);
        let each = grown.div_ceil(objects.saturating_sub(last.objects).max(1)).max(1);
        let half = self.limit.saturating_sub(resident) / 2;
        let pause = (half / each).clamp(1, CHECK_EVERY.min(objects));
        self.next.store(objects + pause, Ordering::Relaxed);
        self.is_short.store(resident > self.limit / 8 * 7, Ordering::Relaxed);
        if resident <= self.limit {
            return Ok(());
        }
        let problem = format!(
            "the objects of the program do not fit in a memory budget of {}; use a larger one, or \
             store=\"bytes\" or \"file:PATH\", which serialize states",
            human(self.budget)
        );
        Err(PyErr::from_value(
            py.import("brimful.errors")?.getattr("BudgetError")?.call1((problem,))?,
        ))
    }
}
