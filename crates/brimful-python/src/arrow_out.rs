//! Results and edges as Arrow streams.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, Float64Array, Int32Array, Int64Array, RecordBatch, RecordBatchReader, StringArray, UInt32Array,
    UInt64Array,
};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use brimful::engine::table::{BATCH_ROWS, Column, Kind};
use brimful::engine::{ResultTable, Rows};
use brimful::graph::Graph;
use brimful::graph::edges::EdgeBatch;
use brimful::graph::ids::IdType;
use brimful::graph::names::NameCursor;
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
        IdType::String => DataType::Utf8,
    }
}

/// Ids in the type they came in; narrow types hold every id, which is how the type was chosen.
fn id_array(
    graph: &Graph,
    id_type: IdType,
    names: &mut NameCursor,
    ids: &[Option<u64>],
) -> Result<ArrayRef, ArrowError> {
    let values = ids.iter().copied();
    Ok(match id_type {
        IdType::Int64 => Arc::new(values.map(|id| id.map(u64::cast_signed)).collect::<Int64Array>()),
        IdType::UInt64 => Arc::new(values.collect::<UInt64Array>()),
        IdType::Int32 => Arc::new(values.map(|id| id.map(|id| id as i32)).collect::<Int32Array>()),
        IdType::UInt32 => Arc::new(values.map(|id| id.map(|id| id as u32)).collect::<UInt32Array>()),
        IdType::String => {
            let present: Vec<u64> = values.clone().flatten().collect();
            let labels = names.labels(graph, &present).map_err(external)?;
            let mut labels = labels.iter();
            Arc::new(values.map(|id| id.and_then(|_| labels.next())).collect::<StringArray>())
        }
    })
}

/// Ids of which none is missing.
fn present(ids: &[u64]) -> Vec<Option<u64>> {
    ids.iter().copied().map(Some).collect()
}

fn external(error: impl Into<brimful::vertices::Error>) -> ArrowError {
    ArrowError::ExternalError(labelled(error).into())
}

/// The rows of a result.
pub(crate) struct ResultReader {
    rows: Rows<Arc<ResultTable>>,
    graph: Arc<Graph>,
    names: NameCursor,
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
        let graph = Arc::clone(table.graph());
        Self { rows: Rows::new(table), graph, names: NameCursor::default(), schema }
    }

    fn batch(&mut self, vertices: &[u64], column: Column) -> Result<RecordBatch, ArrowError> {
        let vertices = id_array(&self.graph, self.graph.id_type(), &mut self.names, &present(vertices))?;
        let values: ArrayRef = match column {
            Column::Float(values) => Arc::new(Float64Array::from(values)),
            Column::Integer(values) => Arc::new(Int64Array::from(values)),
            Column::Unsigned(values) => Arc::new(UInt64Array::from(values)),
            Column::Ids(ids) => id_array(&self.graph, self.graph.id_type(), &mut self.names, &ids)?,
        };
        RecordBatch::try_new(Arc::clone(&self.schema), vec![vertices, values])
    }
}

impl Iterator for ResultReader {
    type Item = Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        match self.rows.next_batch(self.graph.batch_rows(BATCH_ROWS)) {
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
    graph: Arc<Graph>,
    names: NameCursor,
    schema: SchemaRef,
}

impl VertexReader {
    pub(crate) fn new(graph: Arc<Graph>) -> Self {
        let id_type = graph.id_type();
        let schema = Arc::new(Schema::new(vec![id_field("vertex", id_type)]));
        let order = ExternalOrder::new(Arc::clone(&graph));
        Self { order, graph, names: NameCursor::default(), schema }
    }

    /// The next vertices; `None` at the end.
    fn read(&mut self) -> Result<Option<RecordBatch>, ArrowError> {
        let (mut vertices, mut ids) = (Vec::new(), Vec::new());
        self.order
            .next_batch(self.graph.batch_rows(BATCH_ROWS), &mut vertices, &mut ids)
            .map_err(external)?;
        if ids.is_empty() {
            return Ok(None);
        }
        let ids = id_array(&self.graph, self.graph.id_type(), &mut self.names, &present(&ids))?;
        RecordBatch::try_new(Arc::clone(&self.schema), vec![ids]).map(Some)
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

/// What replaces a batch by the next edges, in external ids; false at the end.
type NextEdges = Box<dyn FnMut(&mut EdgeBatch) -> brimful::graph::Result<bool> + Send>;

/// Edges of a graph.
pub(crate) struct Edges {
    next: NextEdges,
    graph: Arc<Graph>,
    id_type: IdType,
    names: NameCursor,
    schema: SchemaRef,
    batch: EdgeBatch,
    row: usize,
}

impl Edges {
    /// The edges that `next` gives, whose ends are of type `id_type`.
    pub(crate) fn new(
        graph: &Arc<Graph>,
        id_type: IdType,
        weighted: bool,
        next: impl FnMut(&mut EdgeBatch) -> brimful::graph::Result<bool> + Send + 'static,
    ) -> Self {
        let mut fields = vec![id_field("source", id_type), id_field("target", id_type)];
        if weighted {
            fields.push(Field::new("weight", DataType::Float64, false));
        }
        let schema = Arc::new(Schema::new(fields));
        Self {
            next: Box::new(next),
            graph: Arc::clone(graph),
            id_type,
            names: NameCursor::default(),
            schema,
            batch: EdgeBatch::default(),
            row: 0,
        }
    }

    fn slice(&mut self) -> Result<RecordBatch, ArrowError> {
        let range = self.row..self.batch.len().min(self.row + self.graph.batch_rows(BATCH_ROWS));
        self.row = range.end;
        let mut columns = vec![
            id_array(
                &self.graph,
                self.id_type,
                &mut self.names,
                &present(&self.batch.sources[range.clone()]),
            )?,
            id_array(
                &self.graph,
                self.id_type,
                &mut self.names,
                &present(&self.batch.targets[range.clone()]),
            )?,
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
            match (self.next)(&mut self.batch) {
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
