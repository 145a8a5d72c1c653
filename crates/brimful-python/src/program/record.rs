//! Records of vertices whose states and latest signals may be alive.

use std::sync::Arc;

use brimful::vertices::serializer::Compact;
use brimful::vertices::vertex::VertexParts;
use brimful::vertices::{Serializer, Vertex};

use pyo3::PyResult;

use super::value::{Value, Values};

type ProgramVertex = Vertex<u64, Value, f64, Value>;

/// The compact serializer, for vertices whose states are alive: the user's serializer writes them
/// into records, and reads them.
pub(super) struct Records(pub(super) Arc<Values>);

impl Records {
    /// The vertex with its states as bytes; `None` if they are not alive.
    fn saved(&self, vertex: &ProgramVertex) -> Result<Option<ProgramVertex>, String> {
        let is_live = |value: &Value| matches!(value, Value::Live(_));
        let mut values = [Some(&vertex.state), vertex.signalled.as_ref()].into_iter().flatten();
        if !values.any(is_live) && !vertex.latest().iter().any(|(_, signal)| is_live(signal)) {
            return Ok(None);
        }
        self.each(vertex.clone(), |value| self.0.saved(&value)).map(Some)
    }

    /// The vertex with `change` made to each of its values.
    fn each(
        &self,
        vertex: ProgramVertex,
        change: impl Fn(Value) -> PyResult<Value>,
    ) -> Result<ProgramVertex, String> {
        let change = |value| change(value).map_err(|error| error.to_string());
        let parts = vertex.into_parts();
        let state = change(parts.state)?;
        let signalled = parts.signalled.map(change).transpose()?;
        let changed = |(source, signal)| Ok((source, change(signal)?));
        let latest = parts.latest.into_iter().map(changed).collect::<Result<_, String>>()?;
        Ok(Vertex::from_parts(VertexParts { state, signalled, latest, ..parts }))
    }
}

impl Serializer<ProgramVertex> for Records {
    fn name(&self) -> String {
        Serializer::<ProgramVertex>::name(&Compact)
    }

    fn encode(&mut self, vertex: &ProgramVertex, out: &mut Vec<u8>) -> Result<(), String> {
        Compact.encode(self.saved(vertex)?.as_ref().unwrap_or(vertex), out)
    }

    fn encode_over(
        &mut self,
        vertex: &ProgramVertex,
        record: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        Compact.encode_over(self.saved(vertex)?.as_ref().unwrap_or(vertex), record, out)
    }

    fn decode(
        &mut self,
        id: &u64,
        record: &[u8],
        reuse: Option<ProgramVertex>,
    ) -> Result<ProgramVertex, String> {
        let vertex = Compact.decode(id, record, reuse)?;
        if !self.0.is_live {
            return Ok(vertex);
        }
        self.each(vertex, |value| self.0.restored(value))
    }

    fn decode_without_edges(
        &mut self,
        id: &u64,
        record: &[u8],
        reuse: &mut Option<ProgramVertex>,
    ) -> Option<Result<ProgramVertex, String>> {
        if self.0.is_live {
            return None;
        }
        Compact.decode_without_edges(id, record, reuse)
    }
}
