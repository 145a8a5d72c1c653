//! The layout in memory: every part is copied unchanged. The fastest serializer; records are as
//! large as the objects.
//!
//! Record: mark; state; whether the vertex signalled, and the signalled state; number of edges,
//! targets, data; number of latest signals, sources, signals; with the second mark also their
//! numbers among parallel edges. Numbers are little-endian, counts have 4 bytes.

use bytemuck::Pod;

use super::{Arrays, Serializer, after_either_mark, at_end, broken, check_order};
use crate::field::{Field, take};
use crate::id::Id;
use crate::vertex::{Edges, Vertex, VertexParts};

const MARK: u8 = 0xA7;
const PARALLEL: u8 = 0xA8;

/// The serializer of vertices whose parts are plain bytes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Native;

fn write_count(count: usize, out: &mut Vec<u8>) -> Result<(), String> {
    let count = u32::try_from(count).map_err(|_| {
        format!("it has {count} edges or signals, and at most 2^32 - 1 are possible")
    })?;
    out.extend_from_slice(&count.to_le_bytes());
    Ok(())
}

fn read_count(input: &mut &[u8], part: &'static str) -> Result<usize, String> {
    let bytes = take(input, 4).and_then(|bytes| bytes.first_chunk()).ok_or_else(broken(part))?;
    Ok(u32::from_le_bytes(*bytes) as usize)
}

fn read_one<T: Pod>(input: &mut &[u8], part: &'static str) -> Result<T, String> {
    take(input, size_of::<T>()).map(bytemuck::pod_read_unaligned).ok_or_else(broken(part))
}

/// Appends `count` values to `values`. The bytes are taken before memory is allocated.
fn read_array<T: Pod>(
    input: &mut &[u8],
    count: usize,
    values: &mut Vec<T>,
    part: &'static str,
) -> Result<(), String> {
    let bytes = count
        .checked_mul(size_of::<T>())
        .and_then(|bytes| take(input, bytes))
        .ok_or_else(broken(part))?;
    values.resize(count, T::zeroed());
    bytemuck::cast_slice_mut(values).copy_from_slice(bytes);
    Ok(())
}

impl<I, S, E, G> Serializer<Vertex<I, S, E, G>> for Native
where
    I: Id + Pod,
    S: Pod + Send,
    E: Pod + Send,
    G: Field + Pod,
{
    fn name(&self) -> String {
        "native".to_owned()
    }

    fn encode(&mut self, vertex: &Vertex<I, S, E, G>, out: &mut Vec<u8>) -> Result<(), String> {
        out.push(if vertex.parallels().is_empty() { MARK } else { PARALLEL });
        out.extend_from_slice(bytemuck::bytes_of(&vertex.state));
        out.push(u8::from(vertex.signalled.is_some()));
        if let Some(signalled) = &vertex.signalled {
            out.extend_from_slice(bytemuck::bytes_of(signalled));
        }
        let edges = vertex.edges();
        write_count(edges.len(), out)?;
        out.extend_from_slice(bytemuck::cast_slice(edges.targets()));
        out.extend_from_slice(bytemuck::cast_slice(edges.data()));
        write_count(vertex.latest().len(), out)?;
        vertex
            .latest()
            .iter()
            .for_each(|(source, _)| out.extend_from_slice(bytemuck::bytes_of(source)));
        vertex
            .latest()
            .iter()
            .for_each(|(_, signal)| out.extend_from_slice(bytemuck::bytes_of(signal)));
        vertex
            .parallels()
            .iter()
            .for_each(|parallel| out.extend_from_slice(&parallel.to_le_bytes()));
        Ok(())
    }

    fn decode(
        &mut self,
        id: &I,
        record: &[u8],
        reuse: Option<Vertex<I, S, E, G>>,
    ) -> Result<Vertex<I, S, E, G>, String> {
        let Arrays { mut targets, mut data, mut latest, mut parallels } = Arrays::of(reuse);
        let (has_parallels, mut rest) = after_either_mark((MARK, PARALLEL), record)?;
        let input = &mut rest;
        let state = read_one(input, "state")?;
        let signalled = match read_one(input, "signalled state")? {
            0_u8 => None,
            1 => Some(read_one(input, "signalled state")?),
            other => {
                return Err(format!("expected 0 or 1 before its signalled state, found {other}"));
            }
        };
        let count = read_count(input, "edges")?;
        read_array(input, count, &mut targets, "targets")?;
        read_array(input, count, &mut data, "data of edges")?;
        let count = read_count(input, "signals")?;
        let mut sources = count
            .checked_mul(size_of::<I>())
            .and_then(|bytes| take(input, bytes))
            .ok_or_else(broken("sources"))?;
        for _ in 0..count {
            let source: I = read_one(&mut sources, "sources")?;
            latest.push((source, read_one(input, "signals")?));
        }
        if has_parallels {
            read_array(input, count, &mut parallels, "parallel edges")?;
        }
        check_order(&latest, &parallels)?;
        at_end(input)?;
        let edges = Edges::from_parts(targets, data).ok_or_else(broken("data of edges"))?;
        Ok(Vertex::from_parts(VertexParts { id: *id, state, edges, signalled, latest, parallels }))
    }
}
