//! Collections of any size on disk, in a memory budget.
//!
//! - [`disk_box`]: fixed-size records, built on [`record_box`]; [`order`]: the order of streaming;
//!   `pipeline`: batches that are read ahead.
//! - [`disk_bag`]: values of any length, built on [`bag`].
//! - [`frequency_counter`], [`membership_set`], [`bloom_filter`], [`disk_map`], [`disk_lists`],
//!   [`spilling_map`], [`external_sort`]: ready-made collections, built on `keyed`, `hash_pages`,
//!   `bucket`, `partition_log` and `by_range`.
//! - [`error`]: errors; [`options`]: memory, threads and page size; `folder`: page file and lock;
//!   `fields`: numbers in pages.

pub mod bag;
pub mod bloom_filter;
mod bucket;
mod by_range;
pub mod disk_bag;
pub mod disk_box;
pub mod disk_lists;
pub mod disk_map;
pub mod error;
pub mod external_sort;
mod fields;
mod folder;
pub mod frequency_counter;
mod hash_pages;
pub mod keyed;
pub mod membership_set;
pub mod options;
pub mod order;
mod partition_log;
mod pipeline;
pub mod record_box;
pub mod spilling_map;

pub use bag::RecordBag;
pub use bloom_filter::BloomFilter;
pub use disk_bag::{Codec, DiskBag, Postcard};
pub use disk_box::DiskBox;
pub use disk_lists::DiskLists;
pub use disk_map::DiskMap;
pub use error::{Error, Result};
pub use external_sort::sort;
pub use frequency_counter::FrequencyCounter;
pub use membership_set::MembershipSet;
pub use options::Options;
pub use order::{Ids, Order};
pub use record_box::RecordBox;
pub use spilling_map::SpillingMap;

/// Pages that a batch loads together.
const WINDOW_PAGES: usize = 64;
