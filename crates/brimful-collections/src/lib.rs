//! Collections of any size on disk, in a memory budget.
//!
//! - [`disk_box`]: fixed-size records, [`record_box`] below it; [`order`]: how they are streamed,
//!   `pipeline`: reading ahead.
//! - [`disk_bag`]: values of any length, [`bag`] below it.
//! - [`error`]: what can go wrong; [`home`]: where a collection lives and what it is given.

pub mod bag;
pub mod disk_bag;
pub mod disk_box;
pub mod error;
pub mod home;
pub mod order;
mod pipeline;
pub mod record_box;

pub use bag::RecordBag;
pub use disk_bag::{Codec, DiskBag, Postcard};
pub use disk_box::DiskBox;
pub use error::{Error, Result};
pub use home::Options;
pub use order::{Ids, Order};
pub use record_box::RecordBox;
