//! Little-endian fields in the bytes of a page.

/// A little-endian number at `at`; 0 where the bytes do not reach.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    field.map_or(0, |field| u64::from_le_bytes(*field))
}

/// The same of 4 bytes.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    field.map_or(0, |field| u32::from_le_bytes(*field))
}

/// The same of 2 bytes.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    let field = bytes.get(at..).and_then(|bytes| bytes.first_chunk());
    field.map_or(0, |field| u16::from_le_bytes(*field))
}

/// Writes `field` at `at`, as far as the bytes reach.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    if let Some(place) = bytes.get_mut(at..at + field.len()) {
        place.copy_from_slice(field);
    }
}
