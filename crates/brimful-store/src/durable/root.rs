//! The root of a page file, which names its pages and is written twice.
//!
//! The first 8 KiB hold two copies. A sync writes the first, makes it durable, then writes the
//! second. Invariant: at any moment one copy is whole, and the newest whole copy names pages that
//! are durable and not reused. A root is used only after its checksum is verified.

use std::path::Path;

use crate::error::{Error, Result};

/// The newest format version that this program writes and reads.
pub const VERSION: u32 = 1;
/// Number of address spaces of pages in one file.
pub const STREAMS: usize = 4;
/// The maximum bytes of the owner's description in a root.
pub const MAX_META_BYTES: usize = ROOT_BYTES - META_OFFSET - 8;

pub(super) const ROOT_BYTES: usize = 4096;
/// Offsets of the two copies.
pub(super) const ROOT_OFFSETS: [u64; 2] = [0, ROOT_BYTES as u64];
/// Bytes before the first page.
pub(super) const ROOTS_BYTES: u64 = 2 * ROOT_BYTES as u64;

const MAGIC: [u8; 8] = *b"BRIMPAGE";
const META_OFFSET: usize = 88;

/// The content of a page file as of one sync.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Root {
    pub(super) kind: u32,
    pub(super) generation: u64,
    pub(super) page_bytes: u64,
    /// Pages of each stream.
    pub(super) pages: [u64; STREAMS],
    /// First slot of the directory, and its checksum.
    pub(super) directory_slot: u64,
    pub(super) directory_checksum: u64,
    /// The owner's description.
    pub(super) meta: Vec<u8>,
}

impl Root {
    /// Encodes one copy. The description must not exceed [`MAX_META_BYTES`].
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(ROOT_BYTES);
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&self.kind.to_le_bytes());
        let fields = [self.generation, self.page_bytes];
        let directory = [self.directory_slot, self.directory_checksum, self.meta.len() as u64];
        for field in fields.iter().chain(&self.pages).chain(&directory) {
            out.extend_from_slice(&field.to_le_bytes());
        }
        out.resize(META_OFFSET, 0);
        out.extend_from_slice(&self.meta);
        out.resize(ROOT_BYTES - 8, 0);
        let sum = crate::checksum(&out);
        out.extend_from_slice(&sum.to_le_bytes());
        out
    }

    /// Validates one copy.
    pub(super) fn decode(bytes: &[u8], path: &Path, offset: u64) -> Result<Self> {
        let corrupt = |problem: String| Error::corrupt_pages(path, offset, problem);
        let u64_at = |at: usize| le(bytes, at, 8);
        if bytes.get(..8) != Some(MAGIC.as_slice()) {
            return Err(corrupt(
                "this is not a brimful collection: its first 8 bytes are wrong".into(),
            ));
        }
        let (body, sum) = bytes.split_at(ROOT_BYTES - 8);
        if le(sum, 0, 8) != crate::checksum(body) {
            return Err(corrupt("the root fails its checksum".into()));
        }
        // A root of every version has this length and ends with its checksum.
        let version = le(bytes, 8, 4) as u32;
        if version > VERSION {
            return Err(Error::Version { path: path.into(), found: version, supported: VERSION });
        }
        let (page_bytes, meta_len) = (u64_at(24), u64_at(80));
        let sane =
            version == VERSION && valid_page_bytes(page_bytes) && meta_len <= MAX_META_BYTES as u64;
        if !sane {
            return Err(corrupt(format!(
                "the root has impossible values: version {version}, pages of {page_bytes} bytes, a \
                 description of {meta_len} bytes"
            )));
        }
        let mut pages = [0; STREAMS];
        pages.iter_mut().enumerate().for_each(|(stream, count)| *count = u64_at(32 + 8 * stream));
        Ok(Self {
            kind: le(bytes, 12, 4) as u32,
            generation: u64_at(16),
            page_bytes,
            pages,
            directory_slot: u64_at(64),
            directory_checksum: u64_at(72),
            meta: bytes
                .get(META_OFFSET..META_OFFSET + meta_len as usize)
                .unwrap_or_default()
                .to_vec(),
        })
    }

    /// The newest whole copy, and whether both copies are equal. An older copy of this version is
    /// not used instead of one of a newer version.
    pub(super) fn choose(copies: &[u8], path: &Path) -> Result<(Self, bool)> {
        let (first, second) = copies.split_at(copies.len().min(ROOT_BYTES));
        match (Self::decode(first, path, 0), Self::decode(second, path, ROOT_OFFSETS[1])) {
            (Err(error @ Error::Version { .. }), _) | (_, Err(error @ Error::Version { .. })) => {
                Err(error)
            }
            (Ok(a), Ok(b)) if b.generation > a.generation => Ok((b, false)),
            (Ok(a), Ok(b)) => {
                let same = a == b;
                Ok((a, same))
            }
            (Ok(root), Err(_)) | (Err(_), Ok(root)) => Ok((root, false)),
            (Err(error), Err(_)) => Err(error),
        }
    }
}

/// True for valid page sizes: powers of two from 4 KiB to 1 GiB.
pub fn valid_page_bytes(bytes: u64) -> bool {
    bytes.is_power_of_two() && (4 << 10..=1 << 30).contains(&bytes)
}

/// A little-endian number of `len` bytes; missing bytes count as zero.
pub(super) fn le(bytes: &[u8], at: usize, len: usize) -> u64 {
    let field = bytes.get(at..at + len).unwrap_or_default();
    field.iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b))
}
