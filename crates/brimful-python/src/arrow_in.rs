//! Edges from any object with the Arrow C stream interface.

use std::ffi::CStr;
use std::ops::Range;
use std::path::{Path, PathBuf};

use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{Array, RecordBatch, RecordBatchReader};
use arrow_schema::{DataType, Schema};
use brimful::graph::build::import::{EdgeStream, Listed, OnError, Rejection};
use brimful::graph::edges::{BATCH_EDGES, EdgeBatch, VertexList};
use brimful::graph::ids::external::IdType;
use brimful::graph::ids::names::NameBatch;
use brimful::graph::input::columns::Columns;
use brimful::graph::input::declaration::{Declaration, KEY};
use brimful::graph::input::distributed::TableStream;
use brimful::graph::input::text::{Signs, check_signs};
use brimful::graph::input_position::{InputPart, locate};
use brimful::graph::{Error, Result};
use brimful::store::wording::counted;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde::{Deserialize, Serialize};

use crate::arrow_columns::{ColumnToRead, Judge, REASONS, ids, is_text, parts, weights};
use crate::arrow_names::{self, ColumnIds};
use crate::errors::Failure;

const STREAM: &CStr = c"arrow_array_stream";

/// The columns of a stream that contain the edges.
pub(crate) struct ArrowEdges {
    reader: RecordBatchStreamReader,
    origin: PathBuf,
    source: ColumnToRead,
    target: ColumnToRead,
    weight: Option<ColumnToRead>,
    has_names: bool,
    batch: Option<RecordBatch>,
    row: usize,
    rows_before: u64,
    signs: Signs,
    on_error: Option<OnError>,
    /// True if every edge needs its row, for messages.
    positions: bool,
    rejections: Vec<Rejection>,
    isolated: Vec<u64>,
    isolated_names: Vec<String>,
    /// The declaration in the schema, if an export has written one.
    declaration: Option<Declaration>,
    /// True if rows without a target are vertices.
    has_vertex_rows: bool,
    /// Vertices without edges among the last edges.
    vertices: EdgeBatch,
    vertex_names: NameBatch,
    /// Numbers of rows that are edges, and of rows that are vertices.
    edge_rows: u64,
    vertex_rows: u64,
    /// The names of the other columns, if the user could have chosen among them.
    ignored: Option<Vec<String>>,
    table: Py<PyAny>,
    /// The tables that other processes have read.
    absorbed: Vec<InputPart>,
}

/// The facts about a table that another process has read.
#[derive(Serialize, Deserialize)]
struct Facts {
    signs: Signs,
    edge_rows: u64,
    vertex_rows: u64,
    /// Reason, count, row and text.
    rejections: Vec<(String, u64, u64, String)>,
}

impl ArrowEdges {
    /// Takes the stream of `object` and finds the columns.
    pub(crate) fn open(
        object: &Bound<'_, PyAny>,
        origin: &Path,
        source: &str,
        target: &str,
        weight: Option<&str>,
        ids: ColumnIds,
        on_error: Option<OnError>,
    ) -> PyResult<Self> {
        let capsule = object.call_method0("__arrow_c_stream__")?.cast_into::<PyCapsule>()?;
        let reader = take_stream(&capsule)?;
        let schema = reader.schema();
        let find = |name: &str| -> Result<ColumnToRead> {
            let Ok(index) = schema.index_of(name) else {
                let names = schema.fields().iter().map(|field| field.name().clone()).collect();
                let problem = format!("it has no column {name:?} (found: {})", columns(&schema));
                return Err(Error::NoColumn {
                    path: origin.into(),
                    problem,
                    column: name.into(),
                    names,
                });
            };
            Ok(ColumnToRead {
                name: name.into(),
                index,
                data_type: schema.field(index).data_type().clone(),
            })
        };
        let source = find(source).map_err(Failure::from)?;
        let target = find(target).map_err(Failure::from)?;
        let weight = weight.map(find).transpose().map_err(Failure::from)?;
        for wanted in [&source, &target] {
            if !is_text(&wanted.data_type) && !wanted.data_type.is_integer() {
                let problem = format!(
                    "column {:?} has type {}, which has no integer ids",
                    wanted.name, wanted.data_type
                );
                return Err(Failure::from(Error::input(origin, problem)).into());
            }
        }
        if let Some(wanted) =
            weight.as_ref().filter(|w| !is_text(&w.data_type) && !w.data_type.is_numeric())
        {
            let problem = format!(
                "column {:?} has type {}, which holds no weights",
                wanted.name, wanted.data_type
            );
            return Err(Failure::from(Error::input(origin, problem)).into());
        }
        let declaration = declaration(&schema, origin).map_err(Failure::from)?;
        let has_vertex_rows = declaration.is_some_and(|said| said.listed() > 0);
        let origin = origin.into();
        let opened = Self {
            reader,
            origin,
            source,
            target,
            weight,
            has_names: ids == ColumnIds::String,
            batch: None,
            row: 0,
            rows_before: 0,
            signs: Signs::default(),
            on_error,
            positions: false,
            rejections: Vec::new(),
            isolated: Vec::new(),
            isolated_names: Vec::new(),
            declaration,
            has_vertex_rows,
            vertices: EdgeBatch::default(),
            vertex_names: NameBatch::default(),
            edge_rows: 0,
            vertex_rows: 0,
            ignored: None,
            table: object.clone().unbind(),
            absorbed: Vec::new(),
        };
        Ok(opened)
    }

    /// The facts about a table that was read to its end, for [`TableStream::absorb`].
    pub(crate) fn facts(&self) -> Result<Vec<u8>> {
        let rejections = self.rejections.iter();
        let facts = Facts {
            signs: self.signs,
            edge_rows: self.edge_rows,
            vertex_rows: self.vertex_rows,
            rejections: rejections
                .map(|one| (one.reason.into(), one.count, one.line, one.found.clone()))
                .collect(),
        };
        serde_json::to_vec(&facts).map_err(|error| Error::input(&self.origin, error.to_string()))
    }

    /// Records the names of the other columns, for display.
    pub(crate) fn leave_out(&mut self, ignored: Option<Vec<String>>) {
        self.ignored = ignored;
    }

    /// Takes rows without a target as vertices, even without a declaration.
    pub(crate) fn take_vertex_rows(&mut self, taken: bool) {
        self.has_vertex_rows |= taken;
    }

    /// Adds vertices that exist even without edges, by the bits of their ids.
    pub(crate) fn declare(&mut self, ids: Vec<u64>) {
        self.isolated.extend(ids);
    }

    /// Adds vertices that exist even without edges, if ids are strings.
    pub(crate) fn declare_names(&mut self, names: Vec<String>) {
        self.isolated_names.extend(names);
    }

    fn more_rows(&mut self) -> Result<bool> {
        while self.batch.as_ref().is_none_or(|batch| self.row == batch.num_rows()) {
            self.rows_before += self.row as u64;
            (self.row, self.batch) = (0, None);
            match self.reader.next() {
                None => return Ok(false),
                Some(Ok(batch)) => self.batch = Some(batch),
                Some(Err(error)) => return Err(Error::input(&self.origin, error.to_string())),
            }
        }
        Ok(true)
    }

    /// The number of next rows, at most `most`, of one kind, and whether they are vertices.
    fn alike(&self, batch: &RecordBatch, most: usize) -> (usize, bool) {
        let length = (batch.num_rows() - self.row).min(most);
        let target = batch.column(self.target.index);
        if !self.has_vertex_rows || target.null_count() == 0 {
            return (length, false);
        }
        let is_vertex = target.is_null(self.row);
        let same = (self.row..self.row + length).take_while(|at| target.is_null(*at) == is_vertex);
        (same.count(), is_vertex)
    }

    fn count(&mut self, rows: usize, are_vertices: bool) {
        self.row += rows;
        *(if are_vertices { &mut self.vertex_rows } else { &mut self.edge_rows }) += rows as u64;
    }
}

impl TableStream for ArrowEdges {
    fn absorb(&mut self, path: &Path, before: u64, positions: u64, facts: &[u8]) -> Result<()> {
        let damaged = || Error::input(path, "the facts about it are damaged; please report it");
        let facts: Facts = serde_json::from_slice(facts).map_err(|_| damaged())?;
        self.signs.merge(facts.signs);
        self.edge_rows += facts.edge_rows;
        self.vertex_rows += facts.vertex_rows;
        for (reason, count, row, found) in facts.rejections {
            match self.rejections.iter_mut().find(|kept| kept.reason == reason) {
                Some(kept) => kept.count += count,
                None => {
                    let known = REASONS.iter().find(|known| **known == reason);
                    let (reason, path) = (known.ok_or_else(damaged)?, self.origin.clone());
                    let line = before + row;
                    self.rejections.push(Rejection { reason, count, path, line, found });
                }
            }
        }
        self.absorbed.push((path.into(), positions));
        Ok(())
    }
}

/// The declaration in a schema.
fn declaration(schema: &Schema, origin: &Path) -> Result<Option<Declaration>> {
    let Some(text) = schema.metadata().get(KEY) else {
        return Ok(None);
    };
    let said = Declaration::parse(text).map_err(|damage| {
        let expected = damage.expected;
        let problem = format!(
            "the key `{KEY}` of its schema declares a graph and is damaged: expected {expected} at \
             byte {}, found {text:?}; export the graph again, or remove the key",
            damage.at
        );
        Error::input(origin, problem)
    })?;
    Ok(Some(said))
}

impl EdgeStream for ArrowEdges {
    fn next(&mut self, edges: &mut EdgeBatch) -> Result<bool> {
        edges.clear();
        self.vertices.clear();
        if !self.more_rows()? {
            return Ok(false);
        }
        let Some(batch) = &self.batch else {
            return Ok(false);
        };
        let (length, are_vertices) = self.alike(batch, BATCH_EDGES);
        let slice = batch.slice(self.row, length);
        let mut judge = Judge {
            origin: &self.origin,
            table: &self.table,
            first_row: self.rows_before + self.row as u64 + 1,
            on_error: self.on_error,
            rejected: Vec::new(),
            rejections: &mut self.rejections,
        };
        if are_vertices {
            ids(&slice, &self.source, &mut judge, &mut self.signs, &mut self.vertices.sources)?;
            self.vertices.targets.clone_from(&self.vertices.sources);
            judge.drop_rejected(&mut self.vertices);
            self.count(length, true);
            return Ok(true);
        }
        ids(&slice, &self.source, &mut judge, &mut self.signs, &mut edges.sources)?;
        ids(&slice, &self.target, &mut judge, &mut self.signs, &mut edges.targets)?;
        if let Some(wanted) = &self.weight {
            weights(&slice, wanted, &mut judge, &mut edges.weights)?;
        }
        if self.positions {
            edges.positions.extend((judge.first_row..).take(length));
        }
        judge.drop_rejected(edges);
        self.count(length, false);
        Ok(true)
    }

    fn has_names(&self) -> bool {
        self.has_names
    }

    fn next_names(&mut self, names: &mut NameBatch) -> Result<bool> {
        names.clear();
        self.vertex_names.clear();
        if !self.more_rows()? {
            return Ok(false);
        }
        let Some(batch) = &self.batch else {
            return Ok(false);
        };
        let (length, are_vertices) = self.alike(batch, BATCH_EDGES / 2);
        let slice = batch.slice(self.row, length);
        let mut judge = Judge {
            origin: &self.origin,
            table: &self.table,
            first_row: self.rows_before + self.row as u64 + 1,
            on_error: self.on_error,
            rejected: Vec::new(),
            rejections: &mut self.rejections,
        };
        let (ends, weight, names) = match are_vertices {
            // A repeated vertex is one vertex.
            true => ([&self.source; 2], None, &mut self.vertex_names),
            false => ([&self.source, &self.target], self.weight.as_ref(), names),
        };
        let positions = self.positions && !are_vertices;
        let taken = arrow_names::take(&slice, ends, weight, &mut judge, positions, names)?;
        self.count(taken, are_vertices);
        Ok(true)
    }

    fn listed_names(&mut self) -> Vec<String> {
        std::mem::take(&mut self.isolated_names)
    }

    fn declared(&self) -> Range<u64> {
        let first = self.declaration.and_then(|said| Some((said.first?, said.vertices)));
        first.map_or(0..0, |(first, vertices)| first..first + vertices)
    }

    fn undirected(&self) -> bool {
        self.declaration.is_some_and(|said| !said.directed)
    }

    fn next_vertices(&mut self, batch: &mut EdgeBatch) {
        batch.clear();
        std::mem::swap(batch, &mut self.vertices);
    }

    fn next_vertex_names(&mut self, batch: &mut NameBatch) {
        batch.clear();
        std::mem::swap(batch, &mut self.vertex_names);
    }

    fn check(&self) -> Result<Option<u64>> {
        let Some(said) = self.declaration else {
            return Ok(None);
        };
        if (self.edge_rows, self.vertex_rows) == (said.edges, said.listed()) {
            // Several parts of a graph together have fewer vertices than the sum of their
            // declarations.
            return Ok(Some(said.vertices).filter(|_| self.inputs().len() == 1));
        }
        let problem = format!(
            "the key `{KEY}` of its schema declares {} and {} without edges, and there are {} and \
             {}; the file was cut or changed: export the graph again, or remove the key",
            counted(said.edges, "edge"),
            counted(said.listed(), "vertex"),
            self.edge_rows,
            self.vertex_rows
        );
        Err(Error::input(&self.origin, problem))
    }

    fn name(&self) -> &Path {
        &self.origin
    }

    fn weighted(&self) -> bool {
        self.weight.is_some()
    }

    fn listed(&mut self) -> Option<Listed> {
        let ids = std::mem::take(&mut self.isolated);
        (!ids.is_empty()).then(|| Box::new(VertexList::new(ids)) as Listed)
    }

    fn rejections(&self) -> Vec<Rejection> {
        let inputs = self.inputs();
        let positioned = |kept: &Rejection| match locate(&inputs, kept.line) {
            Some((path, line)) => Rejection { path, line, ..kept.clone() },
            None => kept.clone(),
        };
        self.rejections.iter().map(positioned).collect()
    }

    fn columns(&self) -> Option<Columns> {
        let ignored = self.ignored.clone()?;
        Some(Columns {
            source: self.source.name.clone(),
            target: self.target.name.clone(),
            weight: self.weight.as_ref().map(|wanted| wanted.name.clone()),
            ignored,
            header: None,
            delimiter: None,
        })
    }

    fn note_positions(&mut self) {
        self.positions = true;
    }

    fn inputs(&self) -> Vec<InputPart> {
        match self.absorbed.is_empty() {
            true => parts(&self.table, &self.origin),
            false => self.absorbed.clone(),
        }
    }

    fn id_type(&self) -> Result<IdType> {
        check_signs(self.signs, &self.origin)?;
        let wide = if self.signs.huge { IdType::UInt64 } else { IdType::Int64 };
        let own = |data_type: &DataType| match data_type {
            DataType::Int8 | DataType::Int16 | DataType::Int32 => IdType::Int32,
            DataType::UInt8 | DataType::UInt16 | DataType::UInt32 => IdType::UInt32,
            DataType::UInt64 => IdType::UInt64,
            DataType::Int64 => IdType::Int64,
            _ => wide,
        };
        let (source, target) = (own(&self.source.data_type), own(&self.target.data_type));
        Ok(if source == target { source } else { wide })
    }
}

#[expect(unsafe_code, reason = "the Arrow C stream interface hands over a raw pointer")]
fn take_stream(capsule: &Bound<'_, PyCapsule>) -> PyResult<RecordBatchStreamReader> {
    let pointer = capsule.pointer_checked(Some(STREAM))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: the capsule's name was checked, so by the Arrow PyCapsule interface it points to a
    // live ArrowArrayStream; `from_raw` moves the stream out and leaves a released one behind, so
    // that the capsule's destructor does nothing.
    let stream = unsafe { FFI_ArrowArrayStream::from_raw(pointer.as_ptr()) };
    RecordBatchStreamReader::try_new(stream).map_err(|e| {
        Failure::from(Error::Usage(format!("the Arrow stream cannot be read: {e}"))).into()
    })
}

fn columns(schema: &Schema) -> String {
    let names: Vec<String> =
        schema.fields().iter().take(20).map(|field| format!("{:?}", field.name())).collect();
    if names.is_empty() { "no columns".into() } else { names.join(", ") }
}
