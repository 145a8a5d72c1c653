//! The lists of an execution: vertices that are due to signal, and signals that wait to be
//! collected.
//!
//! - [`id_set`]: the to-signal list; [`mailbox`]: the to-collect list, which consists of the
//!   signals.
//! - `message_table`: the base of both lists. Its parts: `memory_table` in memory, `spill` on disk,
//!   and `merge`, which reads spilled runs.
//! - `combine_buffer`: merges signals to one target before they are serialized, found by `places`.

mod combine_buffer;
#[cfg(test)]
mod faults;
pub mod id_set;
pub mod mailbox;
mod memory_table;
mod merge;
mod message_table;
mod places;
mod spill;
#[cfg(test)]
mod texts;

pub use combine_buffer::SignalTo;
pub use id_set::IdSet;
pub use mailbox::{IncomingSignals, Mailbox, MailboxStats, copy_message, write_message};
pub use message_table::MINIMUM_BYTES;
pub use spill::SpillFile;
