//! Messages between the processes of an import: columns of records, each after its length.
//!
//! Invariant: a message that was cut or damaged is noticed before its records are used.

use bytemuck::{AnyBitPattern, NoUninit};

use brimful_store::Job;

use crate::error::Result;

/// Bytes of a message.
pub type Message = Box<dyn AsRef<[u8]> + Send>;

/// The messages of several senders (files that are parsed, or parts that are sorted).
pub trait Messages: Send {
    /// The next message and the number of its sender; `None` after the last one.
    ///
    /// # Errors
    /// The error of the first sender that has one; [`brimful_store::Error::Interrupted`] after a
    /// cancellation of `job`.
    fn next(&mut self, job: &Job) -> Result<Option<(usize, Message)>>;
}

/// Appends records with their number.
pub(crate) fn put<T: NoUninit>(message: &mut Vec<u8>, records: &[T]) {
    message.extend_from_slice(&(records.len() as u64).to_le_bytes());
    message.extend_from_slice(bytemuck::cast_slice(records));
}

/// Replaces `records` by the next ones of a message; `None` if the message ends before them.
pub(crate) fn take<T: AnyBitPattern + NoUninit>(
    rest: &mut &[u8],
    records: &mut Vec<T>,
) -> Option<()> {
    let (count, after) = rest.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (own, after) = after.split_at_checked(count.checked_mul(size_of::<T>())?)?;
    records.clear();
    records.resize(count, T::zeroed());
    bytemuck::cast_slice_mut(records).copy_from_slice(own);
    *rest = after;
    Some(())
}
