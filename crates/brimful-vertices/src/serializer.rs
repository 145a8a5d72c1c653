//! The conversion of vertices to records, and of records to vertices.
//!
//! A record contains everything except the id, which is its key. It begins with the mark of its
//! serializer, so that other serializers refuse it. Invariants: a record is read to its last byte
//! or refused, and reading takes no more memory than its bytes justify.
//!
//! - [`compact`]: portable and small; [`native`]: the layout in memory, the fastest; [`generic`]:
//!   all types that `serde` supports.
//! - [`compressing`]: any of them, compressed; [`fn@named`]: each by its name.

pub mod compact;
pub mod compressing;
pub mod generic;
mod named;
pub mod native;

pub use compact::Compact;
pub use compressing::{Compressing, Method};
pub use generic::Generic;
pub use named::named;
pub use native::Native;

use brimful_store::wording::counted;

use crate::field::Field;
use crate::id::Id;
use crate::vertex::{Stored, Vertex};

/// Vertices as bytes.
pub trait Serializer<V: Stored>: Send {
    /// The name in messages.
    fn name(&self) -> String;

    /// Appends the record of `vertex` to `out`.
    ///
    /// # Errors
    /// A description of the part that cannot be written.
    fn encode(&mut self, vertex: &V, out: &mut Vec<u8>) -> Result<(), String>;

    /// Appends the record of `vertex`. Its edges are those of `record`, and may be copied from
    /// there.
    fn encode_over(&mut self, vertex: &V, record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        let _ = record;
        self.encode(vertex, out)
    }

    /// Decodes the vertex `id` from its record. `reuse` is a vertex that is no longer needed: its
    /// arrays may be reused, but their contents must not be visible.
    ///
    /// # Errors
    /// A description of expected and found bytes.
    fn decode(&mut self, id: &V::Id, record: &[u8], reuse: Option<V>) -> Result<V, String>;

    /// Decodes a vertex without reading its edges; only [`Serializer::encode_over`] may write such
    /// a vertex. `None`, with `reuse` unchanged, if this serializer cannot omit edges.
    ///
    /// # Errors
    /// As [`Serializer::decode`], for the bytes that it reads.
    fn decode_without_edges(
        &mut self,
        id: &V::Id,
        record: &[u8],
        reuse: &mut Option<V>,
    ) -> Option<Result<V, String>> {
        let _ = (id, record, reuse);
        None
    }
}

impl<V: Stored, S: Serializer<V> + ?Sized> Serializer<V> for Box<S> {
    fn name(&self) -> String {
        (**self).name()
    }
    fn encode(&mut self, vertex: &V, out: &mut Vec<u8>) -> Result<(), String> {
        (**self).encode(vertex, out)
    }
    fn encode_over(&mut self, vertex: &V, record: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        (**self).encode_over(vertex, record, out)
    }
    fn decode(&mut self, id: &V::Id, record: &[u8], reuse: Option<V>) -> Result<V, String> {
        (**self).decode(id, record, reuse)
    }
    fn decode_without_edges(
        &mut self,
        id: &V::Id,
        record: &[u8],
        reuse: &mut Option<V>,
    ) -> Option<Result<V, String>> {
        (**self).decode_without_edges(id, record, reuse)
    }
}

/// The arrays of a vertex that is no longer needed, empty.
pub(crate) struct Arrays<I, E, G> {
    pub(crate) targets: Vec<I>,
    pub(crate) data: Vec<E>,
    pub(crate) latest: Vec<(I, G)>,
    pub(crate) parallels: Vec<u32>,
}

impl<I: Id, E, G> Arrays<I, E, G> {
    pub(crate) fn of<S>(vertex: Option<Vertex<I, S, E, G>>) -> Self {
        let Some(vertex) = vertex else {
            return Self {
                targets: Vec::new(),
                data: Vec::new(),
                latest: Vec::new(),
                parallels: Vec::new(),
            };
        };
        let parts = vertex.into_parts();
        let (mut targets, mut data) = parts.edges.into_parts();
        let (mut latest, mut parallels) = (parts.latest, parts.parallels);
        targets.clear();
        data.clear();
        latest.clear();
        parallels.clear();
        Self { targets, data, latest, parallels }
    }
}

/// Checks the mark at the beginning of a record; returns the rest.
pub(crate) fn after_mark(mark: u8, record: &[u8]) -> Result<&[u8], String> {
    match record.split_first() {
        Some((found, rest)) if *found == mark => Ok(rest),
        Some((found, _)) => {
            Err(format!("expected it to begin with byte {mark:#04x}, found {found:#04x}"))
        }
        None => Err("it is empty".to_owned()),
    }
}

/// Finds which of the two marks a record begins with; the second means that the record numbers
/// parallel edges. Returns the rest.
pub(crate) fn after_either_mark(
    (mark, parallel): (u8, u8),
    record: &[u8],
) -> Result<(bool, &[u8]), String> {
    match record.split_first() {
        Some((found, rest)) if *found == parallel => Ok((true, rest)),
        _ => after_mark(mark, record).map(|rest| (false, rest)),
    }
}

/// Checks that signals ascend by source and parallel edge.
pub(crate) fn check_order<I: Id, G>(latest: &[(I, G)], parallels: &[u32]) -> Result<(), String> {
    let key = |at: usize| Some((&latest.get(at)?.0, parallels.get(at).copied().unwrap_or(0)));
    match (1..latest.len()).all(|at| key(at - 1) < key(at)) {
        true => Ok(()),
        false => Err("its sources are not ascending".to_owned()),
    }
}

/// Checks that the whole record was read.
pub(crate) fn at_end(rest: &[u8]) -> Result<(), String> {
    match rest.len() {
        0 => Ok(()),
        more => Err(format!("{} left over", counted(more, "byte"))),
    }
}

/// The error of a record that ends too early or has an invalid value.
pub(crate) fn broken(part: &'static str) -> impl Fn() -> String {
    move || format!("its {part} is cut off or invalid")
}

/// Reads one field; an error names the part that is broken.
pub(crate) fn field<T: Field>(input: &mut &[u8], part: &'static str) -> Result<T, String> {
    T::read(input).ok_or_else(broken(part))
}
