//! Puts the checksums of a sealed file right: nothing behind a wrong one would be reached.

use brimful_store::checksum;

/// Writes the checksums of the table and of the header; returns that of the header.
pub(crate) fn forge(bytes: &mut [u8]) -> u64 {
    let table =
        bytes.get(16..24).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes);
    if let Some(sum) = bytes.get(table as usize..).map(checksum) {
        put(bytes, 24, sum);
    }
    let seal = bytes.get(..56).map_or(0, checksum);
    put(bytes, 56, seal);
    seal
}

/// Writes a checksum, if the bytes reach so far.
pub(crate) fn put(bytes: &mut [u8], at: usize, sum: u64) {
    if let Some(field) = bytes.get_mut(at..at + 8) {
        field.copy_from_slice(&sum.to_le_bytes());
    }
}
