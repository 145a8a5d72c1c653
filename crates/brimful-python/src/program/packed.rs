//! Plain objects in a packed form that needs no calls of Python.
//!
//! These are None, truth values, integers of 64 bits, floats, strings, and lists, tuples,
//! frozensets and dictionaries of them; every state of Pregel is a list. Invariant: reading returns
//! an equal object of the same types. JSON writes all other objects.

use brimful::store::varint::{read_varint, write_varint};
use brimful::vertices::field::take;
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyFrozenSet, PyInt, PyList, PyNone, PyString, PyTuple};

/// The first byte of the packed form, which no text in UTF-8 has.
const MARK: u8 = 0xF5;
/// The first byte of each object.
const NONE: u8 = 0;
const FALSE: u8 = 1;
const TRUE: u8 = 2;
const INTEGER: u8 = 3;
const FLOAT: u8 = 4;
const TEXT: u8 = 5;
const LIST: u8 = 6;
const DICTIONARY: u8 = 7;
const TUPLE: u8 = 8;
const FROZEN_SET: u8 = 9;
/// An integer of more than 64 bits, in decimal digits.
const LONG_INTEGER: u8 = 10;
/// Deeper objects, and those that contain themselves, are left to JSON.
const MOST_DEPTH: usize = 16;

/// The packed form of an object; `None` if it has none.
pub(super) fn packed(object: &Bound<'_, PyAny>) -> Option<Box<[u8]>> {
    let mut out = vec![MARK];
    pack(object, MOST_DEPTH, &mut out)?;
    Some(out.into())
}

fn pack(object: &Bound<'_, PyAny>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let depth = depth.checked_sub(1)?;
    if object.is_exact_instance_of::<PyFloat>() {
        out.push(FLOAT);
        out.extend_from_slice(&object.extract::<f64>().ok()?.to_le_bytes());
    } else if object.is_exact_instance_of::<PyInt>() {
        match object.extract::<i64>() {
            Ok(number) => {
                out.push(INTEGER);
                out.extend_from_slice(&number.to_le_bytes());
            }
            Err(_) => {
                out.push(LONG_INTEGER);
                pack_text(object.str().ok()?.as_any(), out)?;
            }
        }
    } else if object.is_exact_instance_of::<PyNone>() {
        out.push(NONE);
    } else if object.is_exact_instance_of::<PyBool>() {
        out.push(if object.is_truthy().ok()? { TRUE } else { FALSE });
    } else if object.is_exact_instance_of::<PyString>() {
        out.push(TEXT);
        pack_text(object, out)?;
    } else if object.is_exact_instance_of::<PyList>() {
        let list = object.cast::<PyList>().ok()?;
        out.push(LIST);
        write_varint(list.len() as u64, out);
        for one in list {
            pack(&one, depth, out)?;
        }
    } else if object.is_exact_instance_of::<PyTuple>() {
        let tuple = object.cast::<PyTuple>().ok()?;
        out.push(TUPLE);
        write_varint(tuple.len() as u64, out);
        for one in tuple {
            pack(&one, depth, out)?;
        }
    } else if object.is_exact_instance_of::<PyFrozenSet>() {
        pack_set(object.cast::<PyFrozenSet>().ok()?, depth, out)?;
    } else if object.is_exact_instance_of::<PyDict>() {
        let entries = object.cast::<PyDict>().ok()?;
        out.push(DICTIONARY);
        write_varint(entries.len() as u64, out);
        for (key, value) in entries {
            // JSON turns other keys into strings.
            if !key.is_exact_instance_of::<PyString>() {
                return None;
            }
            pack_text(&key, out)?;
            pack(&value, depth, out)?;
        }
    } else {
        return None;
    }
    Some(())
}

/// The members are in the order of their bytes: equal sets may iterate in different orders.
fn pack_set(set: &Bound<'_, PyFrozenSet>, depth: usize, out: &mut Vec<u8>) -> Option<()> {
    let member = |one: Bound<'_, PyAny>| {
        let mut bytes = Vec::new();
        pack(&one, depth, &mut bytes).map(|()| bytes)
    };
    let mut members = set.iter().map(member).collect::<Option<Vec<_>>>()?;
    members.sort_unstable();
    out.push(FROZEN_SET);
    write_varint(members.len() as u64, out);
    out.extend(members.into_iter().flatten());
    Some(())
}

/// `None` for a string with half a surrogate pair, which UTF-8 cannot hold.
fn pack_text(text: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Option<()> {
    let text = text.cast::<PyString>().ok()?.to_str().ok()?;
    write_varint(text.len() as u64, out);
    out.extend_from_slice(text.as_bytes());
    Some(())
}

/// The object with this packed form; `None` if the bytes are those of JSON.
pub(super) fn unpacked<'py>(py: Python<'py>, bytes: &[u8]) -> Option<PyResult<Bound<'py, PyAny>>> {
    let mut input = bytes.strip_prefix(&[MARK])?;
    let object = unpack(py, MOST_DEPTH, &mut input)
        .and_then(|object| if input.is_empty() { Ok(object) } else { Err(damaged()) });
    Some(object)
}

fn unpack<'py>(py: Python<'py>, depth: usize, input: &mut &[u8]) -> PyResult<Bound<'py, PyAny>> {
    let depth = depth.checked_sub(1).ok_or_else(damaged)?;
    let [kind] = array(input)?;
    match kind {
        NONE => Ok(py.None().into_bound(py)),
        FALSE | TRUE => (kind == TRUE).into_bound_py_any(py),
        INTEGER => i64::from_le_bytes(array(input)?).into_bound_py_any(py),
        LONG_INTEGER => py.get_type::<PyInt>().call1((unpack_text(py, input)?,)),
        FLOAT => f64::from_le_bytes(array(input)?).into_bound_py_any(py),
        TEXT => Ok(unpack_text(py, input)?.into_any()),
        LIST => Ok(PyList::new(py, unpack_all(py, depth, input)?)?.into_any()),
        TUPLE => Ok(PyTuple::new(py, unpack_all(py, depth, input)?)?.into_any()),
        FROZEN_SET => Ok(PyFrozenSet::new(py, unpack_all(py, depth, input)?)?.into_any()),
        DICTIONARY => {
            let entries = PyDict::new(py);
            for _ in 0..count(input)? {
                let key = unpack_text(py, input)?;
                entries.set_item(key, unpack(py, depth, input)?)?;
            }
            Ok(entries.into_any())
        }
        _ => Err(damaged()),
    }
}

/// A count, and that many objects.
fn unpack_all<'py>(
    py: Python<'py>,
    depth: usize,
    input: &mut &[u8],
) -> PyResult<Vec<Bound<'py, PyAny>>> {
    let count = count(input)?;
    (0..count).map(|_| unpack(py, depth, input)).collect()
}

fn unpack_text<'py>(py: Python<'py>, input: &mut &[u8]) -> PyResult<Bound<'py, PyString>> {
    let len = count(input)?;
    let bytes = take(input, len).ok_or_else(damaged)?;
    Ok(PyString::new(py, std::str::from_utf8(bytes).map_err(|_| damaged())?))
}

fn array<const LEN: usize>(input: &mut &[u8]) -> PyResult<[u8; LEN]> {
    take(input, LEN).and_then(|bytes| bytes.try_into().ok()).ok_or_else(damaged)
}

fn count(input: &mut &[u8]) -> PyResult<usize> {
    read_varint(input).and_then(|count| count.try_into().ok()).ok_or_else(damaged)
}

fn damaged() -> PyErr {
    PyValueError::new_err("the bytes are not a packed object")
}
