//! Records of vertices whose states may be alive.

use std::sync::Arc;

use brimful::vertices::serializer::Compact;
use brimful::vertices::vertex::VertexParts;
use brimful::vertices::{Serializer, Vertex};

use super::value::{Value, Values};

type ProgramVertex = Vertex<u64, Value, f64, Value>;

/// The compact serializer, for vertices whose states are alive: the user's serializer writes them
/// into records, and reads them.
pub(super) struct Records(pub(super) Arc<Values>);

impl Records {
    /// The vertex with its states as bytes; `None` if they are not alive.
    fn saved(&self, vertex: &ProgramVertex) -> Result<Option<ProgramVertex>, String> {
        let is_live = |value: &Value| matches!(value, Value::Live(_));
        if !is_live(&vertex.state) && !vertex.signalled.as_ref().is_some_and(is_live) {
            return Ok(None);
        }
        let saved = |value: &Value| self.0.saved(value).map_err(|error| error.to_string());
        let parts = vertex.clone().into_parts();
        let state = saved(&parts.state)?;
        let signalled = parts.signalled.as_ref().map(saved).transpose()?;
        Ok(Some(Vertex::from_parts(VertexParts { state, signalled, ..parts })))
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
        let restored = |value| self.0.restored(value).map_err(|error| error.to_string());
        let parts = vertex.into_parts();
        let state = restored(parts.state)?;
        let signalled = parts.signalled.map(restored).transpose()?;
        Ok(Vertex::from_parts(VertexParts { state, signalled, ..parts }))
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
