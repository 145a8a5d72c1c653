//! Vertices and edges: from the user's file to shards on disk, and back.
//!
//! - Input: [`edges`] holds edges on their way in; [`formats`], [`pairs`] and [`decompress`] read
//!   them; [`text`] parses words; [`columns`] chooses the columns of the edges; [`pump`] parses
//!   streams on all cores.
//! - [`generate`]: graphs made from a seed; `random`: its random numbers.
//! - [`import`]: from input to graph; `scan`: its first pass; [`ids`]: the external ids.
//! - [`names`]: string ids, their ranks, and the file that stores them.
//! - The internal order: `classes` defines it; `bitmap` and `id_ranks` make it in memory; `joins`
//!   and `distinct` make it by sorting; `choice` decides whether it pays; [`order`] restores the
//!   order of external ids.
//! - [`build`]: sorts [`records`] externally into shards; `degrees`: counted on the way. [`codec`]
//!   and [`shards`]: how edges are packed and cut; [`directory`]: where their blocks begin.
//! - [`policy`]: the treatment of self-loops and duplicates; [`input_position`]: their positions in
//!   the input; [`weights`]: generated weights, and the range of weights.
//! - [`sizes`]: the expected size of a graph before it is built; [`look`]: the part of it that an
//!   input tells before it is read.
//! - [`graph`]: the graph directory; [`description`]: its manifest; [`verify`]: the check of all
//!   its bytes and structures; [`lookup`]: single vertices; [`matrix`]: the graph in memory;
//!   [`export`]: the graph as a file; [`declaration`]: the facts that an exported file states about
//!   its graph.

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
pub mod look;
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
