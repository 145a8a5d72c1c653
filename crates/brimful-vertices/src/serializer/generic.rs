//! All types that `serde` supports, in the compact format of the `postcard` crate.
//!
//! Record: mark; state; edges; signalled state; latest signals; with the second mark also their
//! numbers among parallel edges.

use brimful_store::wording::counted;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Serializer, after_either_mark, at_end, check_order};
use crate::field::Field;
use crate::id::Id;
use crate::vertex::{Edges, Vertex, VertexParts};

const MARK: u8 = 0x5E;
const PARALLEL: u8 = 0x5F;

/// The serializer of vertices whose parts support `serde`.
#[derive(Debug, Clone, Copy, Default)]
pub struct Generic;

impl<I, S, E, G> Serializer<Vertex<I, S, E, G>> for Generic
where
    I: Id + Serialize + DeserializeOwned,
    S: Serialize + DeserializeOwned + Clone + Send + 'static,
    E: Serialize + DeserializeOwned + Clone + Send + 'static,
    G: Field + Serialize + DeserializeOwned,
{
    fn name(&self) -> String {
        "generic".to_owned()
    }

    fn encode(&mut self, vertex: &Vertex<I, S, E, G>, out: &mut Vec<u8>) -> Result<(), String> {
        out.push(if vertex.parallels().is_empty() { MARK } else { PARALLEL });
        let edges = vertex.edges();
        let parts =
            (&vertex.state, edges.targets(), edges.data(), &vertex.signalled, vertex.latest());
        let buffer = std::mem::take(out);
        *out = postcard::to_extend(&parts, buffer).map_err(|e| e.to_string())?;
        if !vertex.parallels().is_empty() {
            let buffer = std::mem::take(out);
            *out = postcard::to_extend(vertex.parallels(), buffer).map_err(|e| e.to_string())?;
        }
        Ok(())
    }

    fn decode(
        &mut self,
        id: &I,
        record: &[u8],
        _: Option<Vertex<I, S, E, G>>,
    ) -> Result<Vertex<I, S, E, G>, String> {
        type Record<I, S, E, G> = (S, Vec<I>, Vec<E>, Option<S>, Vec<(I, G)>);
        let (has_parallels, bytes) = after_either_mark((MARK, PARALLEL), record)?;
        let ((state, targets, data, signalled, latest), rest): (Record<I, S, E, G>, _) =
            postcard::take_from_bytes(bytes).map_err(|e| e.to_string())?;
        let (parallels, rest): (Vec<u32>, _) = match has_parallels {
            true => postcard::take_from_bytes(rest).map_err(|e| e.to_string())?,
            false => (Vec::new(), rest),
        };
        at_end(rest)?;
        if has_parallels && parallels.len() != latest.len() {
            return Err(format!(
                "it has {} along {}",
                counted(latest.len(), "signal"),
                counted(parallels.len(), "edge")
            ));
        }
        let counts = (targets.len(), data.len());
        let edges = Edges::from_parts(targets, data).ok_or_else(|| {
            let (targets, data) = (counted(counts.0, "target"), counted(counts.1, "edge"));
            format!("it has {targets} and data of {data}")
        })?;
        check_order(&latest, &parallels)?;
        let id = id.clone();
        Ok(Vertex::from_parts(VertexParts { id, state, edges, signalled, latest, parallels }))
    }
}
