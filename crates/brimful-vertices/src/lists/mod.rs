//! What waits: vertices that are to signal, and signals that are to be collected.
//!
//! - [`id_set`]: the to-signal list; [`mailbox`]: the to-collect list, which is the signals themselves.
//! - `pile`: what both are made of: `table` in memory; `spill` on disk, read by `merge`. `front`: where signals are combined before.

#[cfg(test)]
mod faults;
mod front;
pub mod id_set;
pub mod mailbox;
mod merge;
mod pile;
mod spill;
mod table;
#[cfg(test)]
mod texts;

pub use front::SignalTo;
pub use id_set::IdSet;
pub use mailbox::{Mail, Mailbox, MailboxStats, write_letter};
pub use pile::MINIMUM_BYTES;
pub use spill::SpillFile;
