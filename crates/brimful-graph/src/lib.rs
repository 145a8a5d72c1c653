//! Vertices and edges: from the user's file to shards on disk, and back.
//!
//! - [`edges`]: edges on their way in; [`formats`], [`pairs`], [`decompress`]: where they come
//!   from; [`text`]: words of text; [`columns`]: which of them are the edges; [`pump`]: how streams
//!   are parsed on all cores.
//! - [`generate`]: graphs made from a seed; `random`: its numbers.
//! - [`import`]: from `input` to graph: `scan`, the first pass; [`ids`], the external ids.
//! - [`names`]: string ids, their ranks, and the file that keeps them.
//! - The internal order: `classes`, what it is; `bitmap` and `id_ranks`, made in memory; `joins`
//!   and `distinct`, made by sorting; `choice`, whether it pays; [`order`]: back to the order of
//!   external ids.
//! - [`build`]: external sort of [`records`] into shards; `degrees`: counted on the way. [`codec`],
//!   [`shards`]: how edges are packed and cut; [`directory`]: where their blocks begin.
//! - [`policy`]: what becomes of self-loops and duplicates; [`input_position`]: where they stand in
//!   the input; [`weights`]: made ones, and their range.
//! - [`sizes`]: how large a graph will be that is not built.
//! - [`graph`]: the graph directory; [`description`]: its manifest; [`verify`]: every byte and
//!   structure of it; [`lookup`]: single vertices; [`matrix`]: all of them in memory; [`export`]:
//!   the way out; [`declaration`]: the facts that an exported file says of its graph.

mod ascending;
mod bitmap;
pub mod build;
mod choice;
mod classes;
pub mod codec;
pub mod columns;
pub mod declaration;
pub mod decompress;
mod degrees;
pub mod description;
pub mod directory;
mod distinct;
pub mod edges;
pub mod error;
pub mod export;
pub mod formats;
pub mod generate;
pub mod graph;
mod id_ranks;
pub mod ids;
pub mod import;
mod input;
pub mod input_position;
mod joins;
pub mod lookup;
pub mod matrix;
pub mod names;
pub mod order;
pub mod pairs;
pub mod policy;
pub mod pump;
pub mod random;
pub mod records;
mod scan;
pub mod segment_reader;
pub mod shards;
pub mod sizes;
pub mod text;
pub mod verify;
pub mod weights;

pub use error::{Error, Result};
pub use graph::{Graph, Index};
