//! Results and edges as Arrow streams.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, FixedSizeListArray, Float32Array, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchReader, StringArray, UInt32Array, UInt64Array, new_null_array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use brimful::engine::result::table::{BATCH_ROWS, Column, Kind};
use brimful::engine::{ListColumn, ResultTable, RowTable, Rows};
use brimful::graph::Graph;
use brimful::graph::edges::EdgeBatch;
use brimful::graph::export::EdgeReader;
use brimful::graph::ids::external::{IdType, present};
use brimful::graph::input::declaration::{Declaration, KEY};
use brimful::graph::read::external_order::ExternalOrder;
use brimful::graph::read::name_cursor::{Labels, NameCursor};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::labelled;

/// A stream as a capsule of the Arrow PyCapsule interface.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    batches: impl Batches + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    let reader = Guarded { batches, failed: false };
    PyCapsule::new_with_value(
        py,
        FFI_ArrowArrayStream::new(Box::new(reader)),
        c"arrow_array_stream",
    )
}

fn id_field(name: &str, id_type: IdType) -> Field {
    Field::new(name, id_data_type(id_type), false)
}

fn id_data_type(id_type: IdType) -> DataType {
    match id_type {
        IdType::Int64 => DataType::Int64,
        IdType::UInt64 => DataType::UInt64,
        IdType::Int32 => DataType::Int32,
        IdType::UInt32 => DataType::UInt32,
        IdType::String => DataType::Utf8,
    }
}

/// Ids in the type of the input, column by column, of as many rows as fit the limit on bytes of
/// names; and the number of rows. The input type holds every id.
fn id_arrays(
    graph: &Graph,
    id_type: IdType,
    names: &mut NameCursor,
    columns: &[&[Option<u64>]],
) -> Result<(usize, Vec<ArrayRef>), ArrowError> {
    if id_type == IdType::String {
        let (rows, labels) = names.rows(graph, columns).map_err(external)?;
        let array = |(ids, labels): (&&[Option<u64>], Labels)| -> ArrayRef {
            let texts =
                ids.iter().take(rows).enumerate().map(|(at, id)| id.map(|_| labels.get(at)));
            Arc::new(texts.collect::<StringArray>())
        };
        return Ok((rows, columns.iter().zip(labels).map(array).collect()));
    }
    let rows = columns.first().map_or(0, |ids| ids.len());
    let array = |ids: &&[Option<u64>]| -> ArrayRef {
        let values = ids.iter().copied();
        match id_type {
            IdType::Int64 => {
                Arc::new(values.map(|id| id.map(u64::cast_signed)).collect::<Int64Array>())
            }
            IdType::Int32 => {
                Arc::new(values.map(|id| id.map(|id| id as i32)).collect::<Int32Array>())
            }
            IdType::UInt32 => {
                Arc::new(values.map(|id| id.map(|id| id as u32)).collect::<UInt32Array>())
            }
            IdType::UInt64 | IdType::String => Arc::new(values.collect::<UInt64Array>()),
        }
    };
    Ok((rows, columns.iter().map(array).collect()))
}

/// The next batch of a stream, `None` at the end.
pub(crate) trait Batches {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError>;
    fn schema(&self) -> &SchemaRef;
}

/// [`Batches`] for Arrow. A panic must not unwind through its callbacks, so it becomes an error
/// here.
struct Guarded<B> {
    batches: B,
    /// True after a panic or an error; the stream has then ended.
    failed: bool,
}

impl<B: Batches> Iterator for Guarded<B> {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.failed {
            return None;
        }
        let read = catch_unwind(AssertUnwindSafe(|| self.batches.read())).unwrap_or_else(|_| {
            let problem =
                "BrimfulError: an internal error while a stream was read; please report it, with \
                 the command";
            Err(ArrowError::ExternalError(problem.into()))
        });
        self.failed = read.is_err();
        read.transpose()
    }
}

impl<B: Batches> RecordBatchReader for Guarded<B> {
    fn schema(&self) -> SchemaRef {
        Arc::clone(self.batches.schema())
    }
}

fn external(error: impl Into<brimful::execution::Error>) -> ArrowError {
    ArrowError::ExternalError(labelled(error).into())
}

/// Columns of a result as record batches, which hold as many rows as the limit on names allows.
struct Columns {
    graph: Arc<Graph>,
    names: NameCursor,
    schema: SchemaRef,
    /// Columns that were read, and the number of their rows that were returned.
    columns: Vec<Column>,
    row: usize,
}

/// The field of the numbers in a list.
fn number_field() -> Arc<Field> {
    Arc::new(Field::new("item", DataType::Float32, true))
}

impl Columns {
    /// Columns of these names, kinds and nullability, without rows; with a last column of `lists`
    /// if there is one.
    fn new(graph: &Arc<Graph>, columns: &[(&str, Kind, bool)], lists: Option<ListColumn>) -> Self {
        let field = |&(name, kind, nullable): &(&str, Kind, bool)| {
            let data_type = match kind {
                Kind::Float => DataType::Float64,
                Kind::Integer => DataType::Int64,
                Kind::Unsigned => DataType::UInt64,
                Kind::Vertex => id_data_type(graph.id_type()),
            };
            Field::new(name, data_type, nullable)
        };
        let lists = lists.map(|(name, length)| {
            let data_type = DataType::FixedSizeList(number_field(), length as i32);
            Field::new(name, data_type, false)
        });
        let fields = columns.iter().map(field).chain(lists);
        let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        let (graph, names) = (Arc::clone(graph), NameCursor::default());
        Self { graph, names, schema, columns: Vec::new(), row: 0 }
    }

    /// The next rows of those that were read, which `next` reads when there are none.
    fn next(
        &mut self,
        next: impl FnOnce() -> Result<Vec<Column>, ArrowError>,
    ) -> Result<Option<RecordBatch>, ArrowError> {
        if self.row == self.columns.first().map_or(0, Column::len) {
            (self.columns, self.row) = (next()?, 0);
        }
        let left = self.columns.first().map_or(0, Column::len) - self.row;
        if left == 0 {
            return Ok(None);
        }
        let ids: Vec<&[Option<u64>]> = self
            .columns
            .iter()
            .filter_map(|column| match column {
                Column::Ids(ids) => Some(&ids[self.row..]),
                _ => None,
            })
            .collect();
        let (rows, ids) = match ids.is_empty() {
            true => (left, Vec::new()),
            false => id_arrays(&self.graph, self.graph.id_type(), &mut self.names, &ids)?,
        };
        let (part, mut ids) = (self.row..self.row + rows, ids.into_iter());
        let array = |column: &Column| -> Option<ArrayRef> {
            Some(match column {
                Column::Float(values) => {
                    Arc::new(Float64Array::from(values[part.clone()].to_vec()))
                }
                Column::Integer(values) => {
                    Arc::new(Int64Array::from(values[part.clone()].to_vec()))
                }
                Column::Unsigned(values) => {
                    Arc::new(UInt64Array::from(values[part.clone()].to_vec()))
                }
                Column::Ids(_) => ids.next()?,
                Column::Lists(length, numbers) => {
                    let numbers = numbers[part.start * length..part.end * length].to_vec();
                    Arc::new(FixedSizeListArray::new(
                        number_field(),
                        *length as i32,
                        Arc::new(Float32Array::from(numbers)),
                        None,
                    ))
                }
            })
        };
        let arrays = self.columns.iter().filter_map(array).collect();
        self.row += rows;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map(Some)
    }
}

/// The values of vertices.
pub(crate) struct ResultReader {
    rows: Rows<Arc<ResultTable>>,
    columns: Columns,
}

impl ResultReader {
    /// The columns of tables of `graph`.
    pub(crate) fn new(graph: &Arc<Graph>, tables: Vec<Arc<ResultTable>>) -> Self {
        let value = |table: &Arc<ResultTable>| {
            (table.name().to_owned(), table.values().kind(), table.values().is_nullable())
        };
        let values: Vec<_> = tables.iter().map(value).collect();
        let mut described = vec![("vertex", Kind::Vertex, false)];
        described
            .extend(values.iter().map(|(name, kind, nullable)| (name.as_str(), *kind, *nullable)));
        let columns = Columns::new(graph, &described, None);
        Self { rows: Rows::of(Arc::clone(graph), tables), columns }
    }
}

impl Batches for ResultReader {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let rows = &mut self.rows;
        self.columns.next(|| {
            let Some((ids, mut columns)) = rows.next_columns(BATCH_ROWS).map_err(external)? else {
                return Ok(Vec::new());
            };
            columns.insert(0, Column::Ids(present(&ids)));
            Ok(columns)
        })
    }

    fn schema(&self) -> &SchemaRef {
        &self.columns.schema
    }
}

/// The rows of a table.
pub(crate) struct RowReader {
    table: Arc<RowTable>,
    row: u64,
    columns: Columns,
}

impl RowReader {
    pub(crate) fn new(table: Arc<RowTable>) -> Self {
        let described: Vec<_> =
            table.columns().iter().map(|(name, kind)| (*name, *kind, false)).collect();
        let columns = Columns::new(table.graph(), &described, table.lists());
        Self { table, row: 0, columns }
    }
}

impl Batches for RowReader {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let (table, row) = (&self.table, &mut self.row);
        self.columns.next(|| {
            let columns = table.read(*row, table.batch_rows()).map_err(external)?;
            *row += columns.first().map_or(0, Column::len) as u64;
            Ok(columns)
        })
    }

    fn schema(&self) -> &SchemaRef {
        &self.columns.schema
    }
}

/// The vertices of a graph, by ascending id.
pub(crate) struct VertexReader {
    order: ExternalOrder<Arc<Graph>>,
    graph: Arc<Graph>,
    names: NameCursor,
    schema: SchemaRef,
    ids: Vec<Option<u64>>,
    row: usize,
}

impl VertexReader {
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let id_type = graph.id_type();
        let schema = Arc::new(Schema::new(vec![id_field("vertex", id_type)]));
        let order = ExternalOrder::new(Arc::clone(&graph));
        Self { order, graph, names: NameCursor::default(), schema, ids: Vec::new(), row: 0 }
    }
}

impl Batches for VertexReader {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        if self.row == self.ids.len() {
            let (mut vertices, mut ids) = (Vec::new(), Vec::new());
            self.order.next_batch(BATCH_ROWS, &mut vertices, &mut ids).map_err(external)?;
            if ids.is_empty() {
                return Ok(None);
            }
            (self.ids, self.row) = (present(&ids), 0);
        }
        let (rows, arrays) = id_arrays(
            &self.graph,
            self.graph.id_type(),
            &mut self.names,
            &[&self.ids[self.row..]],
        )?;
        self.row += rows;
        RecordBatch::try_new(Arc::clone(&self.schema), arrays).map(Some)
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}

/// Replaces a batch by the next edges, in external ids; false at the end.
type NextEdges = Box<dyn FnMut(&mut EdgeBatch) -> brimful::graph::Result<bool> + Send>;

/// Edges of a graph. For an export, they include a declaration, and vertices without edges as rows
/// without a target.
pub(crate) struct Edges {
    next: NextEdges,
    graph: Arc<Graph>,
    id_type: IdType,
    names: NameCursor,
    schema: SchemaRef,
    batch: EdgeBatch,
    row: usize,
    /// The next vertex to list, after the edges have ended.
    listed: u64,
    weighted: bool,
}

impl Edges {
    /// The edges from `next`, with ends of type `id_type`.
    pub(crate) fn new(
        graph: &Arc<Graph>,
        id_type: IdType,
        weighted: bool,
        next: impl FnMut(&mut EdgeBatch) -> brimful::graph::Result<bool> + Send + 'static,
    ) -> Self {
        Self::of(graph, id_type, weighted, Box::new(next), None)
    }

    /// The edges of an export.
    pub(crate) fn declared(graph: &Arc<Graph>) -> brimful::graph::Result<Self> {
        let (declaration, mut reader) =
            (Declaration::of(graph)?, EdgeReader::new(Arc::clone(graph)));
        let next = Box::new(move |batch: &mut EdgeBatch| reader.next(batch));
        Ok(Self::of(graph, graph.id_type(), declaration.weighted, next, Some(declaration)))
    }

    fn of(
        graph: &Arc<Graph>,
        id_type: IdType,
        weighted: bool,
        next: NextEdges,
        declaration: Option<Declaration>,
    ) -> Self {
        let listed = declaration.map_or(0, |declaration| declaration.listed());
        let target = Field::new("target", id_data_type(id_type), listed > 0);
        let mut fields = vec![id_field("source", id_type), target];
        if weighted {
            fields.push(Field::new("weight", DataType::Float64, listed > 0));
        }
        let metadata = declaration.map(|declaration| (KEY.to_owned(), declaration.to_string()));
        let schema =
            Schema::new(fields).with_metadata(metadata.into_iter().collect::<HashMap<_, _>>());
        Self {
            next,
            graph: Arc::clone(graph),
            id_type,
            names: NameCursor::default(),
            schema: Arc::new(schema),
            batch: EdgeBatch::default(),
            row: 0,
            listed: graph.vertices() - listed,
            weighted,
        }
    }

    /// The next edges of those that were read.
    fn edges(&mut self) -> Result<RecordBatch, ArrowError> {
        let part = self.row..self.batch.len().min(self.row + BATCH_ROWS);
        let ends =
            [&self.batch.sources, &self.batch.targets].map(|ids| present(&ids[part.clone()]));
        let (rows, mut columns) =
            id_arrays(&self.graph, self.id_type, &mut self.names, &[&ends[0], &ends[1]])?;
        if self.weighted {
            let weights = self.batch.weights[self.row..self.row + rows].to_vec();
            columns.push(Arc::new(Float64Array::from(weights)));
        }
        self.row += rows;
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }

    /// The next vertices without edges.
    fn vertices(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let left = (self.graph.vertices() - self.listed).min(BATCH_ROWS as u64);
        if left == 0 {
            return Ok(None);
        }
        let mut ids = vec![0; left as usize];
        self.graph.external_ids(self.listed, &mut ids).map_err(external)?;
        let (rows, mut columns) =
            id_arrays(&self.graph, self.id_type, &mut self.names, &[&present(&ids)])?;
        self.listed += rows as u64;
        columns.extend(
            self.schema
                .fields()
                .iter()
                .skip(1)
                .map(|field| new_null_array(field.data_type(), rows)),
        );
        RecordBatch::try_new(Arc::clone(&self.schema), columns).map(Some)
    }
}

impl Batches for Edges {
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        while self.row == self.batch.len() {
            self.row = 0;
            if !(self.next)(&mut self.batch).map_err(external)? {
                self.batch.clear();
                return self.vertices();
            }
        }
        self.edges().map(Some)
    }

    fn schema(&self) -> &SchemaRef {
        &self.schema
    }
}
