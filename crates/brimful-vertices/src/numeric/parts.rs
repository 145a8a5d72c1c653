//! What numeric vertices are made of: plain bytes all of it, so that every serializer can write them.

#![expect(clippy::multiple_bound_locations, reason = "a derived implementation has a bound of its own")]

use bytemuck::{Pod, Zeroable};

use crate::from_graph::plain_field;

/// Any plain bytes as a signal.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct Plain<T>(pub(super) T);

/// The state of a numeric vertex.
#[derive(Debug, Clone, Copy, Pod, Zeroable)]
#[repr(C, packed)]
pub(super) struct Cell<S: Pod> {
    /// What the program keeps.
    pub(super) state: S,
    /// Sum of outgoing weights; the degree where the run is not weighted.
    pub(super) strength: f64,
}

impl<S: Pod> PartialEq for Cell<S> {
    /// As the engine compares states: byte by byte.
    fn eq(&self, other: &Self) -> bool {
        bytemuck::bytes_of(self) == bytemuck::bytes_of(other)
    }
}

plain_field! { Plain<T> [T: Pod + Send] Cell<S> [S: Pod + Send] }
