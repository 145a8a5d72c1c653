//! Columns as CSV: a header, and a line for each row.
//!
//! Floats are written so that reading them gives the same bits; a missing value is an empty field.
//! The numbers of a list are separated by spaces. An id that is a string of digits is in quotes, by
//! which a reader tells it from a number.

use std::fmt::Write as _;
use std::path::Path;

use brimful_graph::Graph;
use brimful_graph::input::text::{is_integer, push_csv, push_quoted};
use brimful_graph::read::name_cursor::{Labels, NameCursor};
use brimful_store::Job;
use brimful_store::external::OutputFile;

use crate::error::Result;
use crate::result::values::Column;

/// A file that is written whole, or not at all.
pub(crate) struct CsvFile<'g> {
    out: OutputFile,
    graph: &'g Graph,
    names: NameCursor,
    text: String,
}

impl<'g> CsvFile<'g> {
    /// A file with the columns `names`.
    pub(crate) fn create(
        path: &Path,
        overwrite: bool,
        names: &[&str],
        graph: &'g Graph,
    ) -> Result<Self> {
        let mut out = OutputFile::create(path, overwrite)?;
        out.write(format!("{}\n", names.join(",")).as_bytes())?;
        Ok(Self { out, graph, names: NameCursor::default(), text: String::new() })
    }

    /// Writes the rows of columns of one length.
    pub(crate) fn write(&mut self, columns: &[Column], job: &Job) -> Result<()> {
        let rows = columns.first().map_or(0, Column::len);
        let mut start = 0;
        while start < rows {
            job.check()?;
            let ids: Vec<&[Option<u64>]> = columns
                .iter()
                .filter_map(|column| match column {
                    Column::Ids(ids) => Some(&ids[start..]),
                    _ => None,
                })
                .collect();
            let (count, texts) = match ids.is_empty() {
                true => (rows - start, Vec::new()),
                false => IdTexts::rows(self.graph, &mut self.names, &ids)?,
            };
            self.text.clear();
            for row in 0..count {
                // Writing to a string cannot fail.
                let _ = write_row(&mut self.text, columns, (start, row), &texts);
            }
            self.out.write(self.text.as_bytes())?;
            job.advance(count as u64);
            start += count;
        }
        Ok(())
    }

    /// Makes the file visible.
    pub(crate) fn finish(self) -> Result<()> {
        Ok(self.out.finish()?)
    }
}

/// Writes row `start + row`; `texts` are those of the columns of ids, from row `start` on.
fn write_row(
    text: &mut String,
    columns: &[Column],
    (start, row): (usize, usize),
    texts: &[IdTexts],
) -> std::fmt::Result {
    let mut texts = texts.iter();
    for (at, column) in columns.iter().enumerate() {
        if at > 0 {
            text.write_char(',')?;
        }
        match column {
            Column::Float(values) => {
                values[start + row].map_or(Ok(()), |value| write!(text, "{value:?}"))?;
            }
            Column::Integer(values) => {
                values[start + row].map_or(Ok(()), |value| write!(text, "{value}"))?;
            }
            Column::Unsigned(values) => {
                values[start + row].map_or(Ok(()), |value| write!(text, "{value}"))?;
            }
            Column::Lists(width, numbers) => {
                let list = &numbers[(start + row) * width..][..*width];
                for (at, number) in list.iter().enumerate() {
                    write!(text, "{}{number:?}", if at > 0 { " " } else { "" })?;
                }
            }
            Column::Ids(ids) => {
                let names = texts.next();
                if let (Some(names), Some(_)) = (names, ids[start + row]) {
                    names.write(text, row)?;
                }
            }
        }
    }
    text.write_char('\n')
}

/// Ids to write.
enum IdTexts {
    Numbers(Vec<i128>),
    Names(Labels),
}

impl IdTexts {
    /// The ids of the first rows of `columns`, and the number of rows.
    fn rows(
        graph: &Graph,
        names: &mut NameCursor,
        columns: &[&[Option<u64>]],
    ) -> Result<(usize, Vec<Self>)> {
        if graph.longest_name().is_some() {
            let (rows, labels) = names.rows(graph, columns)?;
            return Ok((rows, labels.into_iter().map(Self::Names).collect()));
        }
        // A missing id is not written.
        let number = |id: &Option<u64>| id.map_or(0, |id| graph.id_type().number(id));
        let numbers = columns.iter().map(|ids| Self::Numbers(ids.iter().map(number).collect()));
        Ok((columns.first().map_or(0, |ids| ids.len()), numbers.collect()))
    }

    fn write(&self, text: &mut String, at: usize) -> std::fmt::Result {
        match self {
            Self::Numbers(numbers) => {
                numbers.get(at).map_or(Ok(()), |number| write!(text, "{number}"))
            }
            Self::Names(labels) => {
                let label = labels.get(at);
                match is_integer(label.as_bytes()) {
                    true => push_quoted(label, text),
                    false => push_csv(label, text),
                }
                Ok(())
            }
        }
    }
}
