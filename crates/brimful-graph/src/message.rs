//! Messages between the processes of an import: columns of records, each after its length.
//!
//! Invariant: a message that was cut or damaged is noticed before its records are used.

use std::borrow::Cow;

use bytemuck::{AnyBitPattern, NoUninit};

use brimful_store::{Error as StoreError, Job};

use crate::error::{Error, Result};

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

/// The bytes of a message as records: a copy if they are not aligned for records, as in small
/// messages.
pub(crate) fn records_of<T: AnyBitPattern + NoUninit>(bytes: &[u8]) -> Cow<'_, [T]> {
    match bytemuck::try_cast_slice(bytes) {
        Ok(records) => Cow::Borrowed(records),
        Err(_) => Cow::Owned(bytemuck::pod_collect_to_vec(bytes)),
    }
}

/// The next records of a message; `None` if the message ends before them.
pub(crate) fn take_records<'m, T: AnyBitPattern + NoUninit>(
    rest: &mut &'m [u8],
) -> Option<Cow<'m, [T]>> {
    let (count, after) = rest.split_first_chunk()?;
    let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
    let (own, after) = after.split_at_checked(count.checked_mul(size_of::<T>())?)?;
    *rest = after;
    Some(records_of(own))
}

/// Replaces `records` by the next ones of a message; `None` if the message ends before them.
pub(crate) fn take<T: AnyBitPattern + NoUninit>(
    rest: &mut &[u8],
    records: &mut Vec<T>,
) -> Option<()> {
    let own = take_records(rest)?;
    records.clear();
    records.extend_from_slice(&own);
    Some(())
}

/// The error of a message that is not as it was sent.
pub(crate) fn damaged() -> Error {
    StoreError::Internal("another process of the run sent a damaged message".into()).into()
}
