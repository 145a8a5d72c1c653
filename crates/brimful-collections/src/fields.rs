//! Little-endian fields in the bytes of a page.
//!
//! Invariant: every offset is in range, because callers check offsets that come from a file. An
//! offset out of range is a bug and panics: reading 0, or skipping a write, would hide it.

/// The little-endian u64 at offset `at`.
#[inline]
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

/// The little-endian u32 at offset `at`.
#[inline]
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

/// The little-endian u16 at offset `at`.
#[inline]
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_le_bytes(array_at(bytes, at))
}

/// Writes `field` at offset `at`.
#[inline]
pub(crate) fn put(bytes: &mut [u8], at: usize, field: &[u8]) {
    let page_bytes = bytes.len();
    match bytes.get_mut(at..at + field.len()) {
        Some(target) => target.copy_from_slice(field),
        None => out_of_range(at, field.len(), page_bytes),
    }
}

#[inline]
fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    match bytes.get(at..).and_then(|bytes| bytes.first_chunk()) {
        Some(field) => *field,
        None => out_of_range(at, N, bytes.len()),
    }
}

#[cold]
fn out_of_range(at: usize, field_bytes: usize, page_bytes: usize) -> ! {
    panic!(
        "a field of {field_bytes} bytes at {at} is outside a page of {page_bytes}; please report \
         this fault"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_come_back() {
        let mut page = [0; 16];
        put(&mut page, 8, &7_u64.to_le_bytes());
        put(&mut page, 2, &[1, 2]);
        assert_eq!((u64_at(&page, 8), u32_at(&page, 12), u16_at(&page, 2)), (7, 0, 0x0201));
    }

    #[test]
    #[should_panic = "a field of 8 bytes at 9 is outside a page of 16"]
    fn a_write_out_of_range_is_loud() {
        put(&mut [0; 16], 9, &[0; 8]);
    }

    #[test]
    #[should_panic = "a field of 4 bytes at 13 is outside a page of 16"]
    fn a_read_out_of_range_is_loud() {
        u32_at(&[0; 16], 13);
    }
}
