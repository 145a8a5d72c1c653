//! Results and edges as Arrow streams.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, RecordBatchReader, UInt32Array, UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use brimful::engine::table::{BATCH_ROWS, Column, Kind};
use brimful::engine::{ResultTable, Rows};
use brimful::graph::Graph;
use brimful::graph::edges::EdgeBatch;
use brimful::graph::export::EdgeReader;
use brimful::graph::ids::IdType;
use brimful::graph::order::ExternalOrder;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

use crate::errors::labelled;

/// A stream as the capsule that the Arrow PyCapsule interface asks for.
pub(crate) fn capsule<'py>(
    py: Python<'py>,
    reader: impl RecordBatchReader + Send + 'static,
) -> PyResult<Bound<'py, PyCapsule>> {
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(reader)), c"arrow_array_stream")
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
    }
}

/// Ids in the type they came in; narrow types hold every id, which is how the type was chosen.
fn id_array(ids: impl Iterator<Item = Option<u64>>, id_type: IdType) -> ArrayRef {
    match id_type {
        IdType::Int64 => Arc::new(ids.map(|id| id.map(u64::cast_signed)).collect::<Int64Array>()),
        IdType::UInt64 => Arc::new(ids.collect::<UInt64Array>()),
        IdType::Int32 => Arc::new(ids.map(|id| id.map(|id| id as i32)).collect::<Int32Array>()),
        IdType::UInt32 => Arc::new(ids.map(|id| id.map(|id| id as u32)).collect::<UInt32Array>()),
    }
}

fn ids_of(ids: &[u64]) -> impl Iterator<Item = Option<u64>> {
    ids.iter().copied().map(Some)
}

fn external(error: impl Into<brimful::engine::Error>) -> ArrowError {
    ArrowError::ExternalError(labelled(error).into())
}

/// The rows of a result.
pub(crate) struct ResultReader {
    rows: Rows<Arc<ResultTable>>,
    id_type: IdType,
    schema: SchemaRef,
}

impl ResultReader {
    pub(crate) fn new(table: Arc<ResultTable>) -> Self {
        let id_type = table.graph().id_type();
        let data_type = match table.values().kind() {
            Kind::Float => DataType::Float64,
            Kind::Integer => DataType::Int64,
            Kind::Unsigned => DataType::UInt64,
            Kind::Vertex => id_data_type(id_type),
        };
        let value = Field::new(table.name(), data_type, table.values().is_nullable());
        let schema = Arc::new(Schema::new(vec![id_field("vertex", id_type), value]));
        Self { rows: Rows::new(table), id_type, schema }
    }

    fn batch(&self, vertices: &[u64], column: Column) -> Result<RecordBatch, ArrowError> {
        let values: ArrayRef = match column {
            Column::Float(values) => Arc::new(Float64Array::from(values)),
            Column::Integer(values) => Arc::new(Int64Array::from(values)),
            Column::Unsigned(values) => Arc::new(UInt64Array::from(values)),
            Column::Ids(ids) => id_array(ids.into_iter(), self.id_type),
        };
        RecordBatch::try_new(Arc::clone(&self.schema), vec![id_array(ids_of(vertices), self.id_type), values])
    }
}

impl Iterator for ResultReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next_batch(BATCH_ROWS) {
            Ok(batch) => batch.map(|(vertices, column)| self.batch(&vertices, column)),
            Err(error) => Some(Err(external(error))),
        }
    }
}

impl RecordBatchReader for ResultReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The vertices of a graph, by ascending id.
pub(crate) struct VertexReader {
    order: ExternalOrder<Arc<Graph>>,
    id_type: IdType,
    schema: SchemaRef,
}

impl VertexReader {
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let id_type = graph.id_type();
        let schema = Arc::new(Schema::new(vec![id_field("vertex", id_type)]));
        Self { order: ExternalOrder::new(graph), id_type, schema }
    }

    /// The next vertices; `None` at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let (mut vertices, mut ids) = (Vec::new(), Vec::new());
        self.order.next_batch(BATCH_ROWS, &mut vertices, &mut ids).map_err(external)?;
        if ids.is_empty() {
            return Ok(None);
        }
        RecordBatch::try_new(Arc::clone(&self.schema), vec![id_array(ids_of(&ids), self.id_type)]).map(Some)
    }
}

impl Iterator for VertexReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl RecordBatchReader for VertexReader {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The edges of a graph, each once.
pub(crate) struct Edges {
    reader: EdgeReader,
    id_type: IdType,
    schema: SchemaRef,
    batch: EdgeBatch,
    row: usize,
}

impl Edges {
    pub(crate) fn new(graph: &Arc<Graph>) -> Self {
        let id_type = graph.id_type();
        let mut fields = vec![id_field("source", id_type), id_field("target", id_type)];
        if graph.description().weighted {
            fields.push(Field::new("weight", DataType::Float64, false));
        }
        let schema = Arc::new(Schema::new(fields));
        Self {
            reader: EdgeReader::new(Arc::clone(graph)),
            id_type,
            schema,
            batch: EdgeBatch::default(),
            row: 0,
        }
    }

    fn slice(&mut self) -> Result<RecordBatch, ArrowError> {
        let range = self.row..self.batch.len().min(self.row + BATCH_ROWS);
        self.row = range.end;
        let mut columns = vec![
            id_array(ids_of(&self.batch.sources[range.clone()]), self.id_type),
            id_array(ids_of(&self.batch.targets[range.clone()]), self.id_type),
        ];
        if self.schema.fields().len() == 3 {
            columns.push(Arc::new(Float64Array::from(self.batch.weights[range].to_vec())));
        }
        RecordBatch::try_new(Arc::clone(&self.schema), columns)
    }
}

impl Iterator for Edges {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        while self.row == self.batch.len() {
            self.row = 0;
            match self.reader.next(&mut self.batch) {
                Ok(true) => {}
                Ok(false) => return None,
                Err(error) => return Some(Err(external(error))),
            }
        }
        Some(self.slice())
    }
}

impl RecordBatchReader for Edges {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}
