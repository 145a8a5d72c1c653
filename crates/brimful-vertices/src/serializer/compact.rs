//! The portable and small format: numbers take 7 bits a byte, targets and edge data are packed
//! lists ([`Field::write_list`]).
//!
//! Record: mark; state; signalled state (none, the state itself, or another state); number of
//! latest signals, for each the source (the first, then differences), with the second mark its
//! number among the parallel edges, and the signal; number of edges, their targets, their data.
//! Edges come last, so that they can be copied if only the state changed.

use brimful_store::wording::counted;

use super::{Arrays, Serializer, after_either_mark, at_end, broken, check_order, field};
use crate::field::Field;
use crate::id::Id;
use crate::vertex::{Edges, Vertex, VertexParts};
use brimful_store::varint::{read_varint, write_varint};

const MARK: u8 = 0xC3;
const PARALLEL: u8 = 0xC4;
/// The kind of the signalled state.
const NEVER: u8 = 0;
const ITS_STATE: u8 = 1;
const OTHER: u8 = 2;

/// The portable serializer of vertices whose parts are [`Field`]s.
#[derive(Debug, Clone, Copy, Default)]
pub struct Compact;

/// Writes an id in a list, as the difference from the previous one.
#[inline]
fn write_id<I: Id>(previous: Option<&I>, id: &I, out: &mut Vec<u8>) {
    match previous {
        None => id.write(out),
        Some(previous) => id.write_after(previous, out),
    }
}

#[inline]
fn read_id<I: Id>(previous: Option<&I>, input: &mut &[u8]) -> Option<I> {
    match previous {
        None => I::read(input),
        Some(previous) => I::read_after(previous, input),
    }
}

/// The number of following elements; each id takes at least a byte.
fn read_count(input: &mut &[u8], part: &'static str) -> Result<usize, String> {
    let count = read_varint(input).ok_or_else(broken(part))?;
    match usize::try_from(count) {
        Ok(count) if count <= input.len() => Ok(count),
        _ => Err(format!("it claims {count} {part} in {}", counted(input.len(), "byte"))),
    }
}

impl<I, S, E, G> Serializer<Vertex<I, S, E, G>> for Compact
where
    I: Id,
    S: Field,
    E: Field,
    G: Field,
{
    fn name(&self) -> String {
        "compact".to_owned()
    }

    fn encode(&mut self, vertex: &Vertex<I, S, E, G>, out: &mut Vec<u8>) -> Result<(), String> {
        write_head(vertex, out);
        let edges = vertex.edges();
        write_varint(edges.len() as u64, out);
        I::write_list(edges.targets(), out);
        E::write_list(edges.data(), out);
        Ok(())
    }

    fn encode_over(
        &mut self,
        vertex: &Vertex<I, S, E, G>,
        record: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<(), String> {
        write_head(vertex, out);
        let edges = &mut &*record;
        read_head::<I, S, G>(edges, &mut Vec::new(), &mut Vec::new())?;
        out.extend_from_slice(edges);
        Ok(())
    }

    fn decode(
        &mut self,
        id: &I,
        record: &[u8],
        reuse: Option<Vertex<I, S, E, G>>,
    ) -> Result<Vertex<I, S, E, G>, String> {
        let Arrays { mut targets, mut data, mut latest, mut parallels } = Arrays::of(reuse);
        let input = &mut &*record;
        let (state, signalled) = read_head(input, &mut latest, &mut parallels)?;
        let count = read_varint(input).and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(broken("number of edges"))?;
        I::read_list(count, input, &mut targets).ok_or_else(broken("targets"))?;
        E::read_list(count, input, &mut data).ok_or_else(broken("data of edges"))?;
        at_end(input)?;
        let edges = Edges::from_parts(targets, data).ok_or_else(broken("data of edges"))?;
        let id = id.clone();
        Ok(Vertex::from_parts(VertexParts { id, state, edges, signalled, latest, parallels }))
    }

    fn decode_without_edges(
        &mut self,
        id: &I,
        record: &[u8],
        reuse: &mut Option<Vertex<I, S, E, G>>,
    ) -> Option<Result<Vertex<I, S, E, G>, String>> {
        let Arrays { targets, data, mut latest, mut parallels } = Arrays::of(reuse.take());
        let edges = Edges::from_parts(targets, data)?;
        let head = read_head(&mut &*record, &mut latest, &mut parallels);
        let id = id.clone();
        Some(head.map(|(state, signalled)| {
            Vertex::from_parts(VertexParts { id, state, edges, signalled, latest, parallels })
        }))
    }
}

/// Writes everything except the edges.
fn write_head<I: Id, S: Field, E, G: Field>(vertex: &Vertex<I, S, E, G>, out: &mut Vec<u8>) {
    let parallels = vertex.parallels();
    out.push(if parallels.is_empty() { MARK } else { PARALLEL });
    let start = out.len();
    vertex.state.write(out);
    let end = out.len();
    match &vertex.signalled {
        None => out.push(NEVER),
        Some(signalled) => {
            out.push(OTHER);
            signalled.write(out);
            // Bytes are compared, not values: 0.0 equals -0.0.
            if out[start..end] == out[end + 1..] {
                out.truncate(end);
                out.push(ITS_STATE);
            }
        }
    }
    write_varint(vertex.latest().len() as u64, out);
    let mut previous = None;
    for (at, (source, signal)) in vertex.latest().iter().enumerate() {
        write_id(previous.replace(source), source, out);
        if let Some(parallel) = parallels.get(at) {
            write_varint(u64::from(*parallel), out);
        }
        signal.write(out);
    }
}

/// Reads the state, the signalled state, and the latest signals, which are appended to `latest` and
/// `parallels`.
fn read_head<I: Id, S: Field, G: Field>(
    input: &mut &[u8],
    latest: &mut Vec<(I, G)>,
    parallels: &mut Vec<u32>,
) -> Result<(S, Option<S>), String> {
    let (has_parallels, rest) = after_either_mark((MARK, PARALLEL), input)?;
    *input = rest;
    let state: S = field(input, "state")?;
    let signalled = match field(input, "signalled state")? {
        NEVER => None,
        ITS_STATE => Some(state.clone()),
        OTHER => Some(field(input, "signalled state")?),
        other => {
            return Err(format!("expected 0, 1 or 2 before its signalled state, found {other}"));
        }
    };
    for _ in 0..read_count(input, "signals")? {
        let last = latest.last();
        let source =
            read_id(last.map(|(source, _)| source), input).ok_or_else(broken("sources"))?;
        if has_parallels {
            let parallel = read_varint(input).and_then(|parallel| u32::try_from(parallel).ok());
            parallels.push(parallel.ok_or_else(broken("parallel edges"))?);
        }
        latest.push((source, field(input, "signals")?));
    }
    check_order(latest, parallels)?;
    Ok((state, signalled))
}
