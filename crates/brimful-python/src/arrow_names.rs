//! String ids from Arrow columns.

use arrow_array::cast::AsArray;
use arrow_array::{Array, LargeStringArray, RecordBatch, StringArray, StringViewArray};
use arrow_schema::DataType;
use brimful::graph::ids::names::{LONGEST_NAME, NameBatch};
use brimful::graph::input::text::{Signs, shown_word};
use brimful::graph::{Error, Result};

use crate::arrow_columns::{
    ColumnToRead, Judge, NOT_UTF8, TOO_LONG, ids, is_text, no_nulls, weights,
};

/// The type of the ids of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ColumnIds {
    /// Integers, including those written as text.
    Int,
    /// Strings, including integers.
    String,
}

impl ColumnIds {
    /// The type with this name.
    pub(crate) fn from_name(name: &str) -> Result<Self> {
        match name {
            "int" => Ok(Self::Int),
            "string" => Ok(Self::String),
            _ => Err(Error::Usage(format!(
                "ids of a table cannot be {name:?}; choose int or string"
            ))),
        }
    }
}

/// A column of ids as text.
enum Names<'a> {
    Short(&'a StringArray),
    Long(&'a LargeStringArray),
    Views(&'a StringViewArray),
    /// Integers, converted to text.
    Made(Vec<String>),
}

impl<'a> Names<'a> {
    fn new(batch: &'a RecordBatch, wanted: &ColumnToRead, judge: &mut Judge<'_>) -> Result<Self> {
        let array = batch.column(wanted.index);
        Ok(match array.data_type() {
            DataType::Utf8 => Self::Short(array.as_string()),
            DataType::LargeUtf8 => Self::Long(array.as_string()),
            DataType::Utf8View => Self::Views(array.as_string_view()),
            kind => {
                let mut bits = Vec::new();
                ids(batch, wanted, judge, &mut Signs::default(), &mut bits)?;
                let signed = kind.is_signed_integer();
                let text = |bits: u64| {
                    if signed { bits.cast_signed().to_string() } else { bits.to_string() }
                };
                Self::Made(bits.into_iter().map(text).collect())
            }
        })
    }

    /// The bytes of a name, which are not checked to be UTF-8.
    fn bytes(&self, at: usize) -> &[u8] {
        match self {
            Self::Short(array) => array.value(at).as_bytes(),
            Self::Long(array) => array.value(at).as_bytes(),
            Self::Views(array) => array.value(at).as_bytes(),
            Self::Made(texts) => texts[at].as_bytes(),
        }
    }
}

/// Appends rows to `out` until it is full, with their `positions` if requested; returns their
/// number.
pub(crate) fn take(
    batch: &RecordBatch,
    [source, target]: [&ColumnToRead; 2],
    weight: Option<&ColumnToRead>,
    judge: &mut Judge<'_>,
    positions: bool,
    out: &mut NameBatch,
) -> Result<usize> {
    let whole = [Names::new(batch, source, judge)?, Names::new(batch, target, judge)?];
    let mut bytes = 0;
    let fits = |at: &usize| {
        let before = bytes;
        bytes += whole[0].bytes(*at).len() + whole[1].bytes(*at).len();
        before < TAKEN_BYTES
    };
    let rows = (0..batch.num_rows()).take_while(fits).count();
    let batch = batch.slice(0, rows);
    for (wanted, names) in [source, target].into_iter().zip(&whole) {
        if is_text(&wanted.data_type) {
            no_nulls(batch.column(wanted.index), wanted, judge)?;
        }
        for at in 0..rows {
            let name = names.bytes(at);
            if name.len() > LONGEST_NAME {
                let expected = format!("a vertex id of at most {LONGEST_NAME} bytes");
                judge.reject(wanted, at, TOO_LONG, &expected, &shown_word(name))?;
            } else if std::str::from_utf8(name).is_err() {
                judge.reject(wanted, at, NOT_UTF8, "a vertex id in UTF-8", &shown_word(name))?;
            }
        }
    }
    let mut numbers = Vec::new();
    if let Some(wanted) = weight {
        weights(&batch, wanted, judge, &mut numbers)?;
    }
    for at in (0..rows).filter(|at| !judge.is_rejected(*at)) {
        whole.iter().for_each(|names| out.push(names.bytes(at)));
        out.weights.extend(numbers.get(at));
        out.positions.extend(positions.then(|| judge.row(at)));
    }
    Ok(rows)
}

/// Rows are taken until their names reach this size.
const TAKEN_BYTES: usize = 1 << 20;
