//! After a run: figures, and states in the user's ids.

pub(crate) mod csv;
pub(crate) mod log;
pub mod row_table;
pub mod stats;
pub mod table;
pub(crate) mod values;
