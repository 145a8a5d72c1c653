//! The C interface of kernels: calls, their context, and the version of both.
//!
//! Invariant: the layout is that of `docs/kernel-abi.md`; a test compares them.

use bytemuck::Zeroable;

use crate::vertex::program::Vertex;
use crate::vertex::slot::Slot;

/// The version of [`Context`], [`Vertex`] and [`Call`]. Any change to them or their meaning raises
/// it.
pub const ABI_VERSION: u32 = 5;

/// The status of a kernel that cannot compute the signal of a vertex. If the vertex has no edges
/// along which to signal, the engine calls the kernel again, and the vertex stays silent.
pub const NO_SIGNAL: i32 = 2;

/// Number of values over all vertices in the aggregate of a kernel.
pub const AGGREGATES: usize = 8;

/// The purpose of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Call {
    /// Set the first states.
    Initial = 0,
    /// Combine signals along edges.
    Edges = 1,
    /// Collect sums into states.
    Collect = 2,
    /// Merge sums of later sources into those of earlier ones.
    Merge = 3,
}

impl Call {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Initial => "first states",
            Self::Edges => "signals along edges",
            Self::Collect => "collecting",
            Self::Merge => "merging sums",
        }
    }
}

/// The input and output of a kernel. Fields that a call does not use are null or 0;
/// `docs/kernel-abi.md` describes each field.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
#[expect(missing_docs, reason = "described in docs/kernel-abi.md, which a test compares with this")]
pub struct Context {
    pub abi_version: u32,
    pub size: u32,
    pub call: u32,
    pub state_words: u32,
    pub count: u64,
    pub failed: u64,
    pub parameters: *const f64,
    pub parameter_count: u64,
    pub silence: u64,
    pub sources: *const u32,
    pub targets: *const u32,
    pub weights: *const f64,
    pub first_source: u64,
    pub first_target: u64,
    pub source_signals: *const u64,
    pub sums: *mut u64,
    pub vertices: *const Vertex,
    pub states: *mut u64,
    pub signals: *mut u64,
    pub vertex_count: u64,
    pub superstep: u64,
    pub aggregate: *const Slot,
    pub partial: *mut Slot,
    pub signal_threshold: f64,
    pub collect_threshold: f64,
    pub score: f64,
}

/// A compiled function that performs [`Context::call`] for a whole batch. It returns 0, or any
/// other status to end the run.
pub type Kernel = unsafe extern "C" fn(*mut Context) -> i32;

#[cfg(test)]
mod tests {
    use super::*;

    /// Offset, name and type in the tables of `docs/kernel-abi.md`; those of [`Context`] come
    /// first.
    fn described() -> Vec<(usize, &'static str, &'static str)> {
        let lines = include_str!("../../../../../docs/kernel-abi.md").lines();
        let rows = lines.map(|line| line.split('|').map(str::trim).collect::<Vec<_>>());
        rows.filter_map(|row| {
            Some((row.get(1)?.parse().ok()?, row.get(2)?.trim_matches('`'), *row.get(3)?))
        })
        .filter(|(_, _, kind)| {
            ["u32", "u64", "f64", "vertex", "slot"].iter().any(|number| kind.contains(number))
        })
        .collect()
    }

    #[test]
    fn the_layout_is_that_of_the_description() {
        macro_rules! fields {
            ($of:ty: $($field:ident $kind:literal),* $(,)?) => {
                [$((std::mem::offset_of!($of, $field), stringify!($field), $kind)),*]
            };
        }
        let context = fields!(Context:
            abi_version "u32", size "u32", call "u32", state_words "u32", count "u64", failed "u64",
            parameters "f64", parameter_count "u64", silence "u64",
            sources "u32", targets "u32", weights "f64", first_source "u64", first_target "u64",
            source_signals "u64", sums "u64", vertices "vertex", states "u64", signals "u64",
            vertex_count "u64", superstep "u64", aggregate "slot", partial "slot",
            signal_threshold "f64", collect_threshold "f64", score "f64",
        );
        let vertex = fields!(Vertex: id "u64", degree "u64", strength "f64", external "u64");
        let slot = fields!(Slot: rule "u64", value "u64");
        let described = described();
        assert_eq!(
            described.len(),
            context.len() + vertex.len() + slot.len(),
            "raise ABI_VERSION and describe each field"
        );
        for ((offset, name, kind), (at, field, number)) in
            described.into_iter().zip(context.iter().chain(&vertex).chain(&slot))
        {
            assert_eq!((offset, name), (*at, *field), "a field has moved: raise ABI_VERSION");
            assert!(
                kind.contains(number),
                "{name} is described as {kind}, not {number}: raise ABI_VERSION"
            );
        }
        assert_eq!(
            (size_of::<Context>(), size_of::<Vertex>(), size_of::<Slot>()),
            (192, 32, 16),
            "a size has changed: raise ABI_VERSION"
        );
        assert_eq!(ABI_VERSION, 5, "write version {ABI_VERSION} into docs/kernel-abi.md");
        assert_eq!(
            [Call::Initial, Call::Edges, Call::Collect, Call::Merge].map(|call| call as u32),
            [0, 1, 2, 3]
        );
    }
}
