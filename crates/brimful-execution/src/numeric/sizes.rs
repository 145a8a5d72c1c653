//! The sizes of vertices for which code is compiled.

use crate::error::{Error, Result};
use crate::from_graph::{EdgeData, Tagged};

/// Code that is compiled for each size of vertices: `S` words of state and strength, `M` of a sum,
/// and a type of edge data.
pub(super) trait BySize {
    type Out;
    fn call<const S: usize, const M: usize, E: EdgeData>(self) -> Result<Self::Out>;
}

/// Runs the code for the smallest size that fits the words of state and of sum, and with the
/// smallest edge data.
pub(super) fn by_size<C: BySize>(
    (state, sum): (usize, usize),
    edge: (bool, bool),
    call: C,
) -> Result<C::Out> {
    match (state, sum) {
        (0..=1, 0..=1) => by_edge::<C, 2, 1>(edge, call),
        (0..=3, 0..=2) => by_edge::<C, 4, 2>(edge, call),
        (0..=16, 0..=8) => by_edge::<C, 17, 8>(edge, call),
        _ => Err(Error::Usage(format!(
            "a program on stores has states of at most 128 bytes and sums of at most 64 bytes; \
             this program needs {} and {}",
            state * 8,
            sum * 8
        ))),
    }
}

fn by_edge<C: BySize, const S: usize, const M: usize>(
    (is_weighted, is_tagged): (bool, bool),
    call: C,
) -> Result<C::Out> {
    // Edges with weights store their direction too.
    match (is_weighted, is_tagged) {
        (false, false) => call.call::<S, M, ()>(),
        (false, true) => call.call::<S, M, u8>(),
        (true, _) => call.call::<S, M, Tagged>(),
    }
}
