//! The parts of numeric vertices, all of plain bytes, so that every serializer can write them.

use bytemuck::{Pod, Zeroable};

use crate::from_graph::plain_field;

/// The words of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct SignalWords<const N: usize>(pub(super) [u64; N]);

/// The state of a numeric vertex: `N - 1` words of the program's state, and its strength, which is
/// the sum of outgoing weights, or the degree if the run is not weighted. Compared bit by bit, like
/// states in the engine.
#[derive(Debug, Clone, Copy, PartialEq, Pod, Zeroable)]
#[repr(transparent)]
pub(super) struct StateWords<const N: usize>([u64; N]);

impl<const N: usize> StateWords<N> {
    /// A zeroed state for a vertex of this strength.
    pub(super) fn new(strength: f64) -> Self {
        let mut words = [0; N];
        words[N - 1] = strength.to_bits();
        Self(words)
    }

    pub(super) fn state(&self) -> &[u64] {
        &self.0[..N - 1]
    }

    pub(super) fn state_mut(&mut self) -> &mut [u64] {
        &mut self.0[..N - 1]
    }

    pub(super) fn strength(&self) -> f64 {
        f64::from_bits(self.0[N - 1])
    }
}

plain_field! { SignalWords<N> [const N: usize] StateWords<N> [const N: usize] }
