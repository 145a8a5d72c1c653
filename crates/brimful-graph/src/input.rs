//! From files and streams to batches of edges.
//!
//! `formats` parse text and binary inputs, `columns` choose the columns of a table, `scan` is the
//! first pass over an input, and `policy` treats self-loops and duplicates. Nothing here knows a
//! graph directory.

pub mod columns;
pub mod declaration;
pub mod decompress;
pub mod distributed;
pub mod formats;
pub mod id_choice;
pub mod pairs;
pub mod parsed;
pub mod policy;
pub mod pump;
pub(crate) mod scan;
pub mod sending;
pub(crate) mod source;
pub(crate) mod stream;
pub mod text;
