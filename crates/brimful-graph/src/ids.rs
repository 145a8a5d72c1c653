//! External ids: integers and names, and the files that store them.

pub(crate) mod ascending;
pub mod external;
pub mod names;
pub mod offsets;
