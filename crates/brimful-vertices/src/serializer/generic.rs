//! Whatever `serde` knows, in the compact format of the `postcard` crate.
//!
//! Record: mark; state; edges; what was signalled; latest signals.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Serializer, after_mark, at_end};
use crate::field::Field;
use crate::id::Id;
use crate::vertex::{Edges, Parts, Vertex};

const MARK: u8 = 0x5E;

/// The serializer of vertices whose parts `serde` knows.
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
        out.push(MARK);
        let edges = vertex.edges();
        let parts = (&vertex.state, edges.targets(), edges.data(), &vertex.signalled, vertex.latest());
        let room = std::mem::take(out);
        *out = postcard::to_extend(&parts, room).map_err(|e| e.to_string())?;
        Ok(())
    }

    fn decode(
        &mut self,
        id: &I,
        record: &[u8],
        _: Option<Vertex<I, S, E, G>>,
    ) -> Result<Vertex<I, S, E, G>, String> {
        type Record<I, S, E, G> = (S, Vec<I>, Vec<E>, Option<S>, Vec<(I, G)>);
        let bytes = after_mark(MARK, record)?;
        let ((state, targets, data, signalled, latest), rest): (Record<I, S, E, G>, _) =
            postcard::take_from_bytes(bytes).map_err(|e| e.to_string())?;
        at_end(rest)?;
        let counts = (targets.len(), data.len());
        let edges = Edges::from_parts(targets, data)
            .ok_or_else(|| format!("it has {} targets and data of {} edges", counts.0, counts.1))?;
        if latest.windows(2).any(|pair| pair[0].0 >= pair[1].0) {
            return Err("its sources are not ascending".to_owned());
        }
        Ok(Vertex::from_parts(Parts { id: id.clone(), state, edges, signalled, latest }))
    }
}
