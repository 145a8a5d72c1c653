//! The internal order of vertices, chosen at import.
//!
//! `classes` defines the order, `bitmap` makes it in memory, `distinct` by sorting, and `choice`
//! decides whether it pays.

pub(crate) mod bitmap;
pub mod choice;
pub(crate) mod classes;
pub(crate) mod distinct;
