//! Columns of Arrow batches as ids and weights, and the treatment of rows that are not edges.

use std::path::Path;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    ArrowPrimitiveType, Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type,
    UInt8Type, UInt16Type, UInt32Type, UInt64Type,
};
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use brimful::graph::build::import::{OnError, Rejection};
use brimful::graph::edges::EdgeBatch;
use brimful::graph::input::text::{
    EXACT_WEIGHT, ROUNDED_WEIGHT, Signs, is_rounded, parse_number, shown_rounded, shown_word,
};
use brimful::graph::input_position::{InputPart, locate};
use brimful::graph::{Error, Result};
use pyo3::prelude::*;

/// A column to read and its position in the batches.
pub(crate) struct ColumnToRead {
    pub(crate) name: String,
    pub(crate) index: usize,
    pub(crate) data_type: DataType,
}

/// The reasons for which rows are rejected.
pub(crate) const REASONS: [&str; 6] =
    [NOT_AN_ID, NOT_A_WEIGHT, ROUNDED_WEIGHT, NO_VALUE, TOO_LONG, NOT_UTF8];
const NOT_AN_ID: &str = "not an integer id";
const NOT_A_WEIGHT: &str = "not a finite weight";
const NO_VALUE: &str = "no value";
pub(crate) const TOO_LONG: &str = "id that is too long";
pub(crate) const NOT_UTF8: &str = "id that is not UTF-8";

pub(crate) fn is_text(data_type: &DataType) -> bool {
    matches!(data_type, DataType::Utf8 | DataType::LargeUtf8 | DataType::Utf8View)
}

/// Handles rows that are not edges.
pub(crate) struct Judge<'a> {
    pub(crate) origin: &'a Path,
    pub(crate) table: &'a Py<PyAny>,
    pub(crate) first_row: u64,
    /// `None` outside of an import, whose options then do not apply.
    pub(crate) on_error: Option<OnError>,
    /// Whether each row of this batch is rejected; may be shorter than the batch if the last rows
    /// are not.
    pub(crate) rejected: Vec<bool>,
    pub(crate) rejections: &'a mut Vec<Rejection>,
}

impl Judge<'_> {
    /// The row of the table for row `at` of this batch.
    pub(crate) fn row(&self, at: usize) -> u64 {
        self.first_row + at as u64
    }

    /// True if row `at` is rejected.
    pub(crate) fn is_rejected(&self, at: usize) -> bool {
        self.rejected.get(at) == Some(&true)
    }

    /// Records row `at` as rejected, or returns an error if rejected rows must fail.
    #[cold]
    pub(crate) fn reject(
        &mut self,
        wanted: &ColumnToRead,
        at: usize,
        reason: &'static str,
        expected: &str,
        found: &str,
    ) -> Result<()> {
        let row = self.row(at);
        if self.on_error != Some(OnError::Skip) {
            let name = &wanted.name;
            let (path, row) =
                locate(&parts(self.table, self.origin), row).unwrap_or((self.origin.into(), row));
            let or_skip = match self.on_error {
                Some(_) => ", or leave such rows out with --on-error skip",
                None => "",
            };
            let problem = format!(
                "row {row}, column {name:?}: expected {expected}, found {found}; correct the \
                 row{or_skip}"
            );
            return Err(Error::input(path, problem));
        }
        if self.rejected.len() <= at {
            self.rejected.resize(at + 1, false);
        }
        if std::mem::replace(&mut self.rejected[at], true) {
            return Ok(());
        }
        match self.rejections.iter_mut().find(|kept| kept.reason == reason) {
            Some(kept) => kept.count += 1,
            None => {
                let path = self.origin.into();
                self.rejections.push(Rejection {
                    reason,
                    count: 1,
                    path,
                    line: row,
                    found: found.into(),
                });
            }
        }
        Ok(())
    }

    /// Removes the rejected rows from a batch with one entry per row.
    pub(crate) fn drop_rejected(self, edges: &mut EdgeBatch) {
        if self.rejected.is_empty() {
            return;
        }
        fn keep<T>(column: &mut Vec<T>, rejected: &[bool]) {
            let mut rows = rejected.iter();
            column.retain(|_| rows.next() != Some(&true));
        }
        keep(&mut edges.sources, &self.rejected);
        keep(&mut edges.targets, &self.rejected);
        keep(&mut edges.weights, &self.rejected);
        keep(&mut edges.positions, &self.rejected);
    }
}

pub(crate) fn ids(
    batch: &RecordBatch,
    wanted: &ColumnToRead,
    judge: &mut Judge<'_>,
    signs: &mut Signs,
    out: &mut Vec<u64>,
) -> Result<()> {
    let array = batch.column(wanted.index);
    no_nulls(array, wanted, judge)?;
    fn signed<T: ArrowPrimitiveType<Native: Into<i64>>>(
        array: &dyn Array,
        signs: &mut Signs,
        out: &mut Vec<u64>,
    ) {
        let values = array.as_primitive::<T>().values().iter().map(|&v| v.into());
        out.extend(values.map(|v: i64| {
            signs.negative |= v < 0;
            v.cast_unsigned()
        }));
    }
    fn unsigned<T: ArrowPrimitiveType<Native: Into<u64>>>(
        array: &dyn Array,
        signs: &mut Signs,
        out: &mut Vec<u64>,
    ) {
        let values = array.as_primitive::<T>().values().iter().map(|&v| v.into());
        out.extend(values.inspect(|v: &u64| signs.huge |= v >> 63 == 1));
    }
    match &wanted.data_type {
        DataType::Int8 => signed::<Int8Type>(array, signs, out),
        DataType::Int16 => signed::<Int16Type>(array, signs, out),
        DataType::Int32 => signed::<Int32Type>(array, signs, out),
        DataType::Int64 => signed::<Int64Type>(array, signs, out),
        DataType::UInt8 => unsigned::<UInt8Type>(array, signs, out),
        DataType::UInt16 => unsigned::<UInt16Type>(array, signs, out),
        DataType::UInt32 => unsigned::<UInt32Type>(array, signs, out),
        DataType::UInt64 => unsigned::<UInt64Type>(array, signs, out),
        _ => {
            return texts(array, |at, text| {
                let bits = parse_number(text.trim(), signs);
                // Nulls were handled above, and read as empty text here.
                if bits.is_none() && !array.is_null(at) {
                    let expected = match judge.on_error {
                        Some(_) => {
                            "an integer vertex id between -2^63 and 2^64-1 (text is taken as it \
                             is with --ids string)"
                        }
                        None => "an integer, as the ids of the graph are",
                    };
                    judge.reject(wanted, at, NOT_AN_ID, expected, &shown_word(text.as_bytes()))?;
                }
                out.push(bits.unwrap_or(0));
                Ok(())
            });
        }
    }
    Ok(())
}

pub(crate) fn weights(
    batch: &RecordBatch,
    wanted: &ColumnToRead,
    judge: &mut Judge<'_>,
    out: &mut Vec<f64>,
) -> Result<()> {
    let array = batch.column(wanted.index);
    no_nulls(array, wanted, judge)?;
    fn numbers<T: ArrowPrimitiveType>(
        array: &dyn Array,
        out: &mut Vec<f64>,
        widen: impl Fn(T::Native) -> f64,
    ) {
        out.extend(array.as_primitive::<T>().values().iter().map(|&v| widen(v)));
    }
    /// Also rejects integers between two floats.
    fn integers<T: ArrowPrimitiveType<Native: Into<i128>>>(
        (array, wanted): (&dyn Array, &ColumnToRead),
        judge: &mut Judge<'_>,
        out: &mut Vec<f64>,
        widen: impl Fn(T::Native) -> f64,
    ) -> Result<()> {
        // Every integer below is a float.
        const EXACT: f64 = (1_u64 << 53) as f64;
        numbers::<T>(array, out, widen);
        for (at, &number) in out.iter().enumerate().filter(|(_, number)| number.abs() >= EXACT) {
            let value: i128 = array.as_primitive::<T>().value(at).into();
            if number as i128 != value && !array.is_null(at) {
                let found = shown_rounded(&value.to_string(), number);
                judge.reject(wanted, at, ROUNDED_WEIGHT, EXACT_INTEGER, &found)?;
            }
        }
        Ok(())
    }
    const EXACT_INTEGER: &str =
        "a weight that a float of 64 bits holds (numbers of a column of floats are rounded)";
    const EXPECTED: &str = "a finite number as weight";
    match &wanted.data_type {
        DataType::Int8 => numbers::<Int8Type>(array, out, f64::from),
        DataType::Int16 => numbers::<Int16Type>(array, out, f64::from),
        DataType::Int32 => numbers::<Int32Type>(array, out, f64::from),
        DataType::Int64 => {
            integers::<Int64Type>((array, wanted), judge, out, |v| v as f64)?;
        }
        DataType::UInt8 => numbers::<UInt8Type>(array, out, f64::from),
        DataType::UInt16 => numbers::<UInt16Type>(array, out, f64::from),
        DataType::UInt32 => numbers::<UInt32Type>(array, out, f64::from),
        DataType::UInt64 => {
            integers::<UInt64Type>((array, wanted), judge, out, |v| v as f64)?;
        }
        DataType::Float32 => numbers::<Float32Type>(array, out, f64::from),
        DataType::Float64 => numbers::<Float64Type>(array, out, |v| v),
        data_type if is_text(data_type) => texts(array, |at, text| {
            let weight = text.trim().parse().ok();
            let shown = || shown_word(text.as_bytes());
            match weight {
                None if array.is_null(at) => {}
                None => judge.reject(wanted, at, NOT_A_WEIGHT, EXPECTED, &shown())?,
                Some(number) if is_rounded(text.trim().as_bytes(), number) => {
                    let found = shown_rounded(&shown(), number);
                    judge.reject(wanted, at, ROUNDED_WEIGHT, EXACT_WEIGHT, &found)?;
                }
                Some(_) => {}
            }
            out.push(weight.unwrap_or(0.0));
            Ok(())
        })?,
        other => {
            let problem =
                format!("column {:?} has type {other}, which holds no weights", wanted.name);
            return Err(Error::input(judge.origin, problem));
        }
    }
    for (at, weight) in out.iter_mut().enumerate() {
        if !weight.is_finite() {
            judge.reject(wanted, at, NOT_A_WEIGHT, EXPECTED, &weight.to_string())?;
            *weight = 0.0;
        }
    }
    Ok(())
}

pub(crate) fn no_nulls(
    array: &dyn Array,
    wanted: &ColumnToRead,
    judge: &mut Judge<'_>,
) -> Result<()> {
    if array.null_count() == 0 {
        return Ok(());
    }
    for at in (0..array.len()).filter(|&at| array.is_null(at)) {
        let expected = "a value (drop or fill empty rows first)";
        judge.reject(wanted, at, NO_VALUE, expected, "null")?;
    }
    Ok(())
}

pub(crate) fn texts(
    array: &dyn Array,
    mut each: impl FnMut(usize, &str) -> Result<()>,
) -> Result<()> {
    match array.data_type() {
        DataType::Utf8 => {
            (0..array.len()).try_for_each(|at| each(at, array.as_string::<i32>().value(at)))
        }
        DataType::LargeUtf8 => {
            (0..array.len()).try_for_each(|at| each(at, array.as_string::<i64>().value(at)))
        }
        _ => (0..array.len()).try_for_each(|at| each(at, array.as_string_view().value(at))),
    }
}

/// The tables that this one consists of, and their cumulative rows: its attribute `parts`, if it
/// has one.
pub(crate) fn parts(table: &Py<PyAny>, origin: &Path) -> Vec<InputPart> {
    let parts =
        Python::attach(|py| table.bind(py).getattr("parts")?.extract::<Vec<(String, u64)>>());
    match parts {
        Ok(parts) if !parts.is_empty() => {
            parts.into_iter().map(|(name, rows)| (name.into(), rows)).collect()
        }
        _ => vec![(origin.into(), u64::MAX)],
    }
}
