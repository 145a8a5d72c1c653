//! After a run: figures, and states in the user's ids.

pub(crate) mod log;
pub mod stats;
pub mod table;
pub(crate) mod values;
