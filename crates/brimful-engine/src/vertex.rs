//! Vertex programs: the interface of algorithms, and the vertex phase of a superstep.

pub mod aggregate;
pub mod attributes;
pub mod batch;
pub(crate) mod collect;
pub mod combiner;
pub mod gather;
pub(crate) mod isolated;
pub mod kernel;
pub mod program;
pub mod slot;
pub(crate) mod turn;
