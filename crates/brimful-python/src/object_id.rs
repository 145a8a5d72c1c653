//! Ids that are Python objects other than integers and strings, such as tuples.
//!
//! A graph with strings as ids keeps such an object by its name: `json:` and a JSON text.
//! Invariant: objects that are equal in Python have one name, and the object of a name has that
//! name; a string that begins with `json:` and is not such a name is an ordinary string.

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyFrozenSet, PyList, PyString, PyTuple};
use serde_json::Value;

/// The beginning of the name of an object.
const PREFIX: &str = "json:";
/// The only key of a JSON object, which stands for a `frozenset`.
const SET: &str = "set";
/// Deeper objects, and those that contain themselves, have no name.
const MOST_DEPTH: usize = 32;
/// Integers outside this range are not ids.
const INTEGERS: std::ops::Range<i128> = -(1 << 63)..1 << 64;

/// The name of an id that is neither an integer nor a string; `None` if an id cannot be such an
/// object.
pub(crate) fn name(object: &Bound<'_, PyAny>) -> Option<String> {
    // These are more likely mistakes than ids.
    if object.is_none() || object.is_instance_of::<PyBool>() {
        return None;
    }
    let mut out = PREFIX.to_owned();
    write(object, MOST_DEPTH, &mut out)?;
    Some(out)
}

fn write(object: &Bound<'_, PyAny>, depth: usize, out: &mut String) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if object.is_none() {
        out.push_str("null");
    } else if object.is_instance_of::<PyString>() {
        out.push_str(&serde_json::to_string(object.extract::<&str>().ok()?).ok()?);
    } else if object.is_instance_of::<PyFloat>() {
        write_float(object.extract().ok()?, out)?;
    } else if object.is_instance_of::<PyBool>() {
        // True and 1 are equal.
        out.push(if object.is_truthy().ok()? { '1' } else { '0' });
    } else if let Ok(tuple) = object.cast::<PyTuple>() {
        let texts = texts(tuple.iter(), depth)?;
        out.push_str(&format!("[{}]", texts.join(",")));
    } else if let Ok(set) = object.cast::<PyFrozenSet>() {
        let mut texts = texts(set.iter(), depth)?;
        texts.sort_unstable();
        out.push_str(&format!("{{\"{SET}\":[{}]}}", texts.join(",")));
    } else {
        let number = object.extract::<i128>().ok().filter(|number| INTEGERS.contains(number))?;
        out.push_str(&number.to_string());
    }
    Some(())
}

/// A float with an integral value is equal to the integer.
fn write_float(number: f64, out: &mut String) -> Option<()> {
    if !number.is_finite() {
        return None;
    }
    let integer = number as i128;
    if integer as f64 == number && INTEGERS.contains(&integer) {
        out.push_str(&integer.to_string());
    } else {
        out.push_str(&serde_json::to_string(&number).ok()?);
    }
    Some(())
}

fn texts<'py>(
    objects: impl Iterator<Item = Bound<'py, PyAny>>,
    depth: usize,
) -> Option<Vec<String>> {
    let text = |object: Bound<'py, PyAny>| {
        let mut text = String::new();
        write(&object, depth, &mut text).map(|()| text)
    };
    objects.map(text).collect()
}

/// The id with a name: the object, or the string itself.
pub(crate) fn id<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match object_of(py, name) {
        Some(object) => Ok(object),
        None => name.into_bound_py_any(py),
    }
}

/// The object of a name; `None` if the string is not the name of an object.
fn object_of<'py>(py: Python<'py>, text: &str) -> Option<Bound<'py, PyAny>> {
    let json = serde_json::from_str(text.strip_prefix(PREFIX)?).ok()?;
    let object = read(py, &json).ok()?;
    (!object.is_instance_of::<PyString>() && name(&object)? == text).then_some(object)
}

fn read<'py>(py: Python<'py>, json: &Value) -> PyResult<Bound<'py, PyAny>> {
    let each = |values: &[Value]| -> PyResult<Vec<_>> {
        values.iter().map(|value| read(py, value)).collect()
    };
    match json {
        Value::Null => Ok(py.None().into_bound(py)),
        Value::String(text) => text.into_bound_py_any(py),
        Value::Number(number) => match (number.as_i128(), number.as_f64()) {
            (Some(integer), _) => integer.into_bound_py_any(py),
            (None, Some(float)) => float.into_bound_py_any(py),
            (None, None) => Err(no_object()),
        },
        Value::Array(values) => Ok(PyTuple::new(py, each(values)?)?.into_any()),
        Value::Object(entries) => match entries.get(SET) {
            Some(Value::Array(values)) if entries.len() == 1 => {
                Ok(PyFrozenSet::new(py, each(values)?)?.into_any())
            }
            _ => Err(no_object()),
        },
        Value::Bool(_) => Err(no_object()),
    }
}

fn no_object() -> PyErr {
    PyValueError::new_err("the text is not the name of an object")
}

/// The name of an id that is neither an integer nor a string.
#[pyfunction]
pub(crate) fn object_name(object: &Bound<'_, PyAny>) -> PyResult<String> {
    name(object).ok_or_else(|| PyTypeError::new_err("an id cannot be such an object"))
}

/// The ids of strings and nulls, in a list: objects in the place of their names.
#[pyfunction]
pub(crate) fn ids_of_names<'py>(names: &Bound<'py, PyList>) -> PyResult<Bound<'py, PyList>> {
    let py = names.py();
    for (at, one) in names.iter().enumerate() {
        let Ok(text) = one.cast::<PyString>() else { continue };
        if let Some(object) = object_of(py, text.to_str()?) {
            names.set_item(at, object)?;
        }
    }
    Ok(names.clone())
}
