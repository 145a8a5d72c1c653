//! Sealed files: written once in bulk, immutable, every byte under a checksum.
//!
//! A sealed file is a 64-byte header, blocks of any size (each padded to 8 bytes), and a table of
//! every block's offset, length, checksum and a few bytes of the owner's metadata. `docs/format.md`
//! draws it. Invariant: header, blocks and table cover the file exactly, and a block's bytes are
//! returned only after its checksum is verified.

use std::path::Path;
use std::sync::Arc;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::file::StoreFile;
use crate::huge::HugeArray;
use crate::resources::Resources;
use crate::traffic::Content;
use crate::traffic::Traffic;
use crate::wording::counted;

/// The newest format version that this program writes and reads.
pub const VERSION: u32 = 1;

/// The first bytes of a sealed file.
pub(crate) const MAGIC: [u8; 8] = *b"BRIMFUL\n";
const HEADER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 24;
/// The maximum bytes of a block: bounds the memory that a hostile table can request.
const MAX_BLOCK_BYTES: u64 = 1 << 30;

#[cfg(target_endian = "big")]
compile_error!(
    "brimful's files are little-endian and read in place; big-endian machines are not supported"
);

/// The content of a sealed file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Kind {
    /// A manifest: one block of JSON.
    Manifest = 1,
    /// The pointer to the current manifest.
    Current = 2,
    /// External ids in the order of ranks.
    Ids = 3,
    /// Out-degrees in the order of ranks.
    Degrees = 4,
    /// Sums of outgoing weights in the order of ranks.
    Strengths = 5,
    /// Edge segments by target interval.
    Shards = 6,
    /// Weights of the edges in edge segments.
    Weights = 7,
    /// The offsets of the blocks of edge segments.
    Directory = 8,
    /// External ids that are strings, in the order of ranks.
    Names = 9,
    /// The arrays of a checkpoint.
    Arrays = 10,
}

impl From<Kind> for Content {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Manifest | Kind::Current => Self::Manifest,
            Kind::Ids | Kind::Names => Self::Ids,
            Kind::Degrees | Kind::Strengths => Self::Degrees,
            Kind::Shards | Kind::Directory => Self::Edges,
            Kind::Weights => Self::Weights,
            Kind::Arrays => Self::Checkpoints,
        }
    }
}

/// Bytes aligned for reading records of up to 8 bytes in place.
#[derive(Debug, Default)]
pub struct Buffer {
    words: HugeArray<u64>,
    len: usize,
}

impl Buffer {
    /// An empty buffer.
    pub fn new() -> Self {
        Self::default()
    }

    /// A buffer of `len` zero bytes.
    pub fn zeroed(len: usize) -> Self {
        let mut buffer = Self::new();
        buffer.resize(len);
        buffer
    }

    /// Changes the length. Growth beyond the capacity loses the content.
    pub fn resize(&mut self, len: usize) {
        let words = len.div_ceil(8);
        if words > self.words.len() {
            // Free the old memory first: both at once could be twice the largest block.
            self.words = HugeArray::default();
            self.words = HugeArray::zeroed(words);
        }
        self.len = len;
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &bytemuck::cast_slice(&self.words)[..self.len]
    }

    /// The bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut bytemuck::cast_slice_mut(&mut self.words)[..self.len]
    }

    /// Capacity in bytes.
    pub fn capacity(&self) -> usize {
        self.words.len() * 8
    }
}

/// A header as read, before validation.
struct RawHeader([u8; HEADER_BYTES]);

/// A header with verified checksum, magic, version and kind.
struct Header {
    table_offset: u64,
    table_checksum: u64,
    blocks: u64,
    meta_bytes: u32,
}

impl Header {
    fn encode(&self, kind: Kind) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[0..8].copy_from_slice(&MAGIC);
        out[8..12].copy_from_slice(&VERSION.to_le_bytes());
        out[12..16].copy_from_slice(&(kind as u32).to_le_bytes());
        out[16..24].copy_from_slice(&self.table_offset.to_le_bytes());
        out[24..32].copy_from_slice(&self.table_checksum.to_le_bytes());
        out[32..40].copy_from_slice(&self.blocks.to_le_bytes());
        out[40..44].copy_from_slice(&self.meta_bytes.to_le_bytes());
        let sum = crate::checksum(&out[..56]);
        out[56..].copy_from_slice(&sum.to_le_bytes());
        out
    }
}

impl RawHeader {
    fn u32(&self, at: usize) -> u32 {
        self.0.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
    }

    fn u64(&self, at: usize) -> u64 {
        self.0.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
    }

    fn validate(&self, path: &Path, kind: Kind) -> Result<Header> {
        if self.0[0..8] != MAGIC {
            return Err(Error::corrupt(
                path,
                0,
                "this is not a brimful file: its first 8 bytes are wrong",
            ));
        }
        // The checksum is checked before the version, so that a damaged version is distinguished
        // from a newer one: the header of every version ends with the checksum.
        if self.u64(56) != crate::checksum(&self.0[..56]) {
            return Err(Error::corrupt(path, 0, "the header fails its checksum"));
        }
        if self.u32(8) > VERSION {
            return Err(Error::Version {
                path: path.into(),
                found: self.u32(8),
                supported: VERSION,
            });
        }
        if self.u32(8) != VERSION {
            return Err(Error::corrupt(
                path,
                8,
                format!("there is no format version {}", self.u32(8)),
            ));
        }
        if self.u32(12) != kind as u32 {
            let problem = format!(
                "expected a file of kind {} ({kind:?}), found kind {}",
                kind as u32,
                self.u32(12)
            );
            return Err(Error::corrupt(path, 12, problem));
        }
        Ok(Header {
            table_offset: self.u64(16),
            table_checksum: self.u64(24),
            blocks: self.u64(32),
            meta_bytes: self.u32(40),
        })
    }
}

/// Position, length and checksum of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEntry {
    /// Offset in bytes.
    pub offset: u64,
    /// Length in bytes, without padding.
    pub len: u64,
    /// XXH3 of the block's bytes.
    pub checksum: u64,
}

/// The position reserved for a block in a file.
#[derive(Debug)]
pub struct BlockSlot<'a> {
    file: &'a StoreFile,
    offset: u64,
}

impl BlockSlot<'_> {
    /// Writes the block and its padding.
    ///
    /// # Panics
    /// If the block exceeds 1 GiB, the limit of readers.
    pub fn put(self, block: &[u8]) -> Result<BlockEntry> {
        let len = block.len() as u64;
        assert!(len <= MAX_BLOCK_BYTES, "a block is within the format's limit");
        self.file.write_all_at(block, self.offset)?;
        let padding = len.next_multiple_of(8) - len;
        self.file.write_all_at(&[0; 8][..padding as usize], self.offset + len)?;
        Ok(BlockEntry { offset: self.offset, len, checksum: crate::checksum(block) })
    }
}

/// Writes a sealed file block by block, in order.
#[derive(Debug)]
pub struct SealedWriter {
    file: StoreFile,
    kind: Kind,
    meta_bytes: usize,
    table: Vec<u8>,
    blocks: u64,
    end: u64,
}

impl SealedWriter {
    /// Begins the file `name` with `meta_bytes` bytes of metadata per block.
    pub fn create(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        meta_bytes: usize,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        Ok(Self::over(StoreFile::create(folder, name, traffic)?, kind, meta_bytes))
    }

    /// Like [`SealedWriter::create`], but overwrites the file `name` if it exists. That file must
    /// have no readers. Overwriting bytes that are on disk and in the system's cache costs a third
    /// of writing new ones.
    pub fn replace(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        meta_bytes: usize,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = match StoreFile::open_to_change(folder, name, traffic) {
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                StoreFile::create(folder, name, traffic)
            }
            opened => opened,
        };
        Ok(Self::over(file?, kind, meta_bytes))
    }

    fn over(file: StoreFile, kind: Kind, meta_bytes: usize) -> Self {
        let file = file.counted_as(kind.into());
        Self { file, kind, meta_bytes, table: Vec::new(), blocks: 0, end: HEADER_BYTES as u64 }
    }

    /// Appends a block.
    ///
    /// # Panics
    /// If the length of `meta` differs from the one given to [`SealedWriter::create`], or the block
    /// exceeds 1 GiB, the limit of readers.
    pub fn append(&mut self, block: &[u8], meta: &[u8]) -> Result<()> {
        assert_eq!(meta.len(), self.meta_bytes, "block metadata has one fixed size");
        let entry = BlockSlot { file: &self.file, offset: self.end }.put(block)?;
        self.push_entry(&entry);
        self.table.extend_from_slice(meta);
        self.end += entry.len.next_multiple_of(8);
        Ok(())
    }

    /// Appends `count` blocks without metadata, using all threads: `put(index, buffers, slot)` puts
    /// block `index`, of `len(index)` bytes, into its slot.
    ///
    /// # Panics
    /// If a block exceeds 1 GiB.
    pub fn append_shared<Buffers: Default>(
        &mut self,
        count: usize,
        len: impl Fn(usize) -> u64,
        resources: &Resources,
        put: impl Fn(usize, &mut Buffers, BlockSlot<'_>) -> Result<BlockEntry> + Sync,
    ) -> Result<()> {
        assert_eq!(self.meta_bytes, 0, "the blocks have no metadata");
        let mut offsets = Vec::with_capacity(count);
        for index in 0..count {
            offsets.push(self.end);
            self.end += len(index).next_multiple_of(8);
        }
        let file = &self.file;
        let entries = resources.parallel_map(count, |index, buffers: &mut Buffers| {
            let entry = put(index, buffers, BlockSlot { file, offset: offsets[index] })?;
            // One call for all blocks, because single blocks may be small.
            file.start_writing(entry.offset, entry.len);
            Ok::<_, Error>(entry)
        })?;
        entries.iter().for_each(|entry| self.push_entry(entry));
        Ok(())
    }

    fn push_entry(&mut self, entry: &BlockEntry) {
        self.table.extend_from_slice(&entry.offset.to_le_bytes());
        self.table.extend_from_slice(&entry.len.to_le_bytes());
        self.table.extend_from_slice(&entry.checksum.to_le_bytes());
        self.blocks += 1;
    }

    /// Writes table and header and makes the bytes durable; [`Folder::sync`] makes the name
    /// durable. Returns the file's length in bytes.
    pub fn finish(self) -> Result<u64> {
        self.file.write_all_at(&self.table, self.end)?;
        let header = Header {
            table_offset: self.end,
            table_checksum: crate::checksum(&self.table),
            blocks: self.blocks,
            meta_bytes: self.meta_bytes as u32,
        };
        self.file.write_all_at(&header.encode(self.kind), 0)?;
        let len = self.end + self.table.len() as u64;
        if self.file.len()? > len {
            self.file.set_len(len)?;
        }
        self.file.sync()?;
        Ok(len)
    }
}

/// A sealed file open for reading; threads may share it.
#[derive(Debug)]
pub struct SealedFile {
    file: StoreFile,
    seal: u64,
    entries: Vec<BlockEntry>,
    meta: Vec<u8>,
    meta_bytes: usize,
}

impl SealedFile {
    /// Opens `name` and verifies header, table and exact cover; blocks are verified on reading.
    ///
    /// # Errors
    /// [`Error::Corrupt`] naming file and offset, [`Error::Version`] for a newer format.
    pub fn open(
        folder: &dyn Folder,
        name: &str,
        kind: Kind,
        meta_bytes: usize,
        traffic: &Arc<Traffic>,
    ) -> Result<Self> {
        let file = StoreFile::open(folder, name, traffic)?.counted_as(kind.into());
        let mut raw = RawHeader([0; HEADER_BYTES]);
        let length = file.len()?;
        if length < HEADER_BYTES as u64 {
            return Err(Error::corrupt(file.path(), length, "the file is shorter than its header"));
        }
        file.read_exact_at(&mut raw.0, 0)?;
        let header = raw.validate(file.path(), kind)?;
        let table = Self::read_table(&file, &header, length, meta_bytes)?;
        let (entries, meta) = Self::parse_table(&file, &header, &table, meta_bytes)?;
        Ok(Self { file, seal: raw.u64(56), entries, meta, meta_bytes })
    }

    fn read_table(
        file: &StoreFile,
        header: &Header,
        length: u64,
        meta_bytes: usize,
    ) -> Result<Vec<u8>> {
        if header.meta_bytes as usize != meta_bytes {
            let problem = format!(
                "expected {} of metadata per block, found {}",
                counted(meta_bytes, "byte"),
                header.meta_bytes
            );
            return Err(Error::corrupt(file.path(), 40, problem));
        }
        let table_bytes = header.blocks.checked_mul((ENTRY_BYTES + meta_bytes) as u64);
        let end = table_bytes.and_then(|bytes| header.table_offset.checked_add(bytes));
        if end != Some(length) {
            let problem = format!(
                "the file has {}, and its table ends elsewhere; it was cut or extended",
                counted(length, "byte")
            );
            return Err(Error::corrupt(file.path(), header.table_offset, problem));
        }
        let mut table = vec![0; (length - header.table_offset) as usize];
        file.read_exact_at(&mut table, header.table_offset)?;
        if crate::checksum(&table) != header.table_checksum {
            return Err(Error::corrupt(
                file.path(),
                header.table_offset,
                "the block table fails its checksum",
            ));
        }
        Ok(table)
    }

    fn parse_table(
        file: &StoreFile,
        header: &Header,
        table: &[u8],
        meta_bytes: usize,
    ) -> Result<(Vec<BlockEntry>, Vec<u8>)> {
        let mut entries = Vec::with_capacity(header.blocks as usize);
        let mut meta = Vec::with_capacity(header.blocks as usize * meta_bytes);
        let mut expected = HEADER_BYTES as u64;
        for row in table.chunks_exact(ENTRY_BYTES + meta_bytes) {
            let field =
                |at: usize| row[at..at + 8].iter().rev().fold(0, |sum, &b| sum << 8 | u64::from(b));
            let entry = BlockEntry { offset: field(0), len: field(8), checksum: field(16) };
            // The second bound also keeps the sum below from overflowing.
            if entry.offset != expected
                || expected > header.table_offset
                || entry.len > MAX_BLOCK_BYTES
            {
                return Err(Error::corrupt(
                    file.path(),
                    entry.offset,
                    "the blocks do not cover the file",
                ));
            }
            expected += entry.len.next_multiple_of(8);
            entries.push(entry);
            meta.extend_from_slice(&row[ENTRY_BYTES..]);
        }
        if expected != header.table_offset {
            return Err(Error::corrupt(file.path(), expected, "the blocks do not cover the file"));
        }
        Ok((entries, meta))
    }

    /// The blocks, in order.
    pub fn entries(&self) -> &[BlockEntry] {
        &self.entries
    }

    /// Metadata of block `index`.
    pub fn meta(&self, index: usize) -> &[u8] {
        &self.meta[index * self.meta_bytes..][..self.meta_bytes]
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// The header's checksum. It covers the checksum of the table, which covers those of all
    /// blocks, so it identifies the content.
    pub fn seal(&self) -> u64 {
        self.seal
    }

    /// Length of the file in bytes.
    pub fn len(&self) -> Result<u64> {
        self.file.len()
    }

    /// True if the file has no block.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Reads block `index` into `buffer` and verifies its checksum.
    ///
    /// # Errors
    /// `Error::Corrupt` if the checksum fails.
    ///
    /// # Panics
    /// If the file has no such block.
    pub fn read_block(&self, index: usize, buffer: &mut Buffer) -> Result<()> {
        let entry = self.entries[index];
        buffer.resize(entry.len as usize);
        self.file.read_exact_at(buffer.bytes_mut(), entry.offset)?;
        if crate::checksum(buffer.bytes()) != entry.checksum {
            return Err(self.corrupt(index, "the block fails its checksum"));
        }
        Ok(())
    }

    /// Counts the bytes of block `index` as found in memory instead of read.
    pub fn count_found(&self, index: usize) {
        self.file.count_found(self.entries[index].len);
    }

    /// Reads `range` of block `index` without verifying its checksum.
    ///
    /// # Errors
    /// `Error::Corrupt` if the block is shorter than the range.
    ///
    /// # Panics
    /// If the file has no such block.
    pub fn read_part(
        &self,
        index: usize,
        range: std::ops::Range<u64>,
        bytes: &mut Vec<u8>,
    ) -> Result<()> {
        let entry = self.entries[index];
        if range.start > range.end || range.end > entry.len {
            return Err(self.corrupt(index, "the block is shorter than its declared content"));
        }
        bytes.resize((range.end - range.start) as usize, 0);
        self.file.read_exact_at(bytes, entry.offset + range.start)
    }

    /// An error that names block `index` of this file.
    pub fn corrupt(&self, index: usize, problem: impl Into<String>) -> Error {
        Error::corrupt(self.file.path(), self.entries[index].offset, problem)
    }

    /// Verifies every byte: blocks by checksum, padding by value.
    ///
    /// # Errors
    /// `Error::Corrupt` at the first damaged byte range; `Error::Interrupted` after a cancellation.
    pub fn verify(&self, job: &crate::Job) -> Result<()> {
        let mut buffer = Buffer::new();
        for (index, entry) in self.entries.iter().enumerate() {
            job.check()?;
            self.read_block(index, &mut buffer)?;
            let end = entry.offset + entry.len;
            let mut padding = [0; 8];
            let used = (end.next_multiple_of(8) - end) as usize;
            self.file.read_exact_at(&mut padding[..used], end)?;
            if padding != [0; 8] {
                return Err(Error::corrupt(self.file.path(), end, "padding is not zero"));
            }
            job.advance(entry.len);
        }
        Ok(())
    }
}
