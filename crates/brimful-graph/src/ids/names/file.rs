//! The file `names`: the string ids of the vertices, by rank.
//!
//! A sealed file with two kinds of blocks. Blocks of names are front-coded, of about 16 KiB each.
//! Index blocks stay in memory; for each block of names they hold a *separator*: a string that is
//! greater than every earlier name and not greater than the block's first name. A look-up of a rank
//! takes one read; a look-up of a string takes one, or a few if names share their first 256 bytes.
//! Invariant: names ascend by bytes and are distinct.

use std::sync::Arc;

use brimful_store::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use brimful_store::varint::{read_varint, write_varint};
use brimful_store::wording::counted;
use brimful_store::{Folder, Job, Traffic};

use super::batch::{LONGEST_NAME, place};
use crate::error::Result;

/// The name of the file.
const NAMES: &str = "names";
/// Bytes of a block's metadata: rank of its first name (in an index block: its first block), number
/// of names, and number of separators.
const META_BYTES: usize = 16;
/// A block ends with the name that brings it to this size.
const BLOCK_BYTES: usize = 16 << 10;
/// A block also ends with the name that brings its unpacked names to this size.
const UNPACKED_BYTES: usize = 256 << 10;
/// The maximum bytes of a separator.
const SEPARATOR_BYTES: usize = 256;
/// Number of separators in an index block.
const INDEX_BLOCKS: usize = 1 << 12;

/// Writes names in ascending order.
pub(crate) struct NameWriter {
    file: SealedWriter,
    block: Vec<u8>,
    last: Vec<u8>,
    names: u64,
    in_block: u32,
    /// Bytes of the block's names before front coding.
    unpacked: usize,
    longest: u32,
    /// The separators of all blocks so far, concatenated.
    separators: Vec<u8>,
    ends: Vec<usize>,
}

impl NameWriter {
    pub(crate) fn create(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<Self> {
        Ok(Self {
            file: SealedWriter::create(folder, NAMES, Kind::Names, META_BYTES, traffic)?,
            block: Vec::with_capacity(2 * BLOCK_BYTES),
            last: Vec::new(),
            names: 0,
            in_block: 0,
            unpacked: 0,
            longest: 0,
            separators: Vec::new(),
            ends: Vec::new(),
        })
    }

    /// Appends a name, which must be greater than the previous one.
    pub(crate) fn push(&mut self, name: &[u8]) -> Result<()> {
        let mut shared = self.last.iter().zip(name).take_while(|(a, b)| a == b).count();
        if self.in_block == 0 {
            let needed = if self.names == 0 { 0 } else { shared + 1 };
            self.separators.extend_from_slice(&name[..needed.min(SEPARATOR_BYTES).min(name.len())]);
            self.ends.push(self.separators.len());
            shared = 0;
        }
        write_varint(shared as u64, &mut self.block);
        write_varint((name.len() - shared) as u64, &mut self.block);
        self.block.extend_from_slice(&name[shared..]);
        self.last.clear();
        self.last.extend_from_slice(name);
        self.longest = self.longest.max(name.len() as u32);
        self.in_block += 1;
        self.unpacked += name.len();
        self.names += 1;
        if self.block.len() >= BLOCK_BYTES || self.unpacked >= UNPACKED_BYTES {
            self.flush()
        } else {
            Ok(())
        }
    }

    fn flush(&mut self) -> Result<()> {
        if self.in_block == 0 {
            return Ok(());
        }
        let meta = meta(self.names - u64::from(self.in_block), self.in_block, 0);
        self.file.append(&self.block, &meta)?;
        self.block.clear();
        (self.in_block, self.unpacked) = (0, 0);
        Ok(())
    }

    /// Makes the file durable.
    pub(crate) fn finish(mut self) -> Result<()> {
        self.flush()?;
        let mut start = 0;
        for (number, ends) in self.ends.chunks(INDEX_BLOCKS).enumerate() {
            self.block.clear();
            self.block.extend_from_slice(&self.longest.to_le_bytes());
            for &end in ends {
                write_varint((end - start) as u64, &mut self.block);
                self.block.extend_from_slice(&self.separators[start..end]);
                start = end;
            }
            self.file
                .append(&self.block, &meta((number * INDEX_BLOCKS) as u64, 0, ends.len() as u32))?;
        }
        self.file.finish()?;
        Ok(())
    }
}

fn meta(first: u64, names: u32, separators: u32) -> [u8; META_BYTES] {
    let mut out = [0; META_BYTES];
    out[0..8].copy_from_slice(&first.to_le_bytes());
    out[8..12].copy_from_slice(&names.to_le_bytes());
    out[12..16].copy_from_slice(&separators.to_le_bytes());
    out
}

/// The names of a block.
#[derive(Debug, Default)]
pub(crate) struct NameBlock {
    first: u64,
    text: String,
    ends: Vec<u32>,
}

impl NameBlock {
    /// The name of rank `rank`, if it is in this block.
    #[inline]
    pub(crate) fn name(&self, rank: u64) -> Option<&str> {
        let at = usize::try_from(rank.checked_sub(self.first)?).ok()?;
        if at < self.ends.len() { self.text.get(place(&self.ends, at)) } else { None }
    }

    fn names(&self) -> impl Iterator<Item = Option<&str>> {
        (0..self.ends.len()).map(|at| self.text.get(place(&self.ends, at)))
    }

    /// Memory of the block, in bytes.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.text.capacity() + 4 * self.ends.capacity() + size_of::<Self>()
    }
}

/// The sizes of a file of names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameSizes {
    /// Bytes of the file.
    pub bytes: u64,
    /// Number of blocks of names.
    pub blocks: usize,
    /// Bytes of the longest name.
    pub longest_bytes: usize,
}

/// The file, open for reading. Threads can share it.
#[derive(Debug)]
pub(crate) struct NameFile {
    file: SealedFile,
    /// The rank of the first name of each block of names, and the number of names.
    starts: Vec<u64>,
    /// The separators, concatenated, and the end of each.
    separators: Vec<u8>,
    ends: Vec<usize>,
    longest: u32,
}

impl NameFile {
    /// Opens the file, which must hold `len` names, and reads its index.
    pub(crate) fn open(folder: &dyn Folder, len: u64, traffic: &Arc<Traffic>) -> Result<Self> {
        let file = SealedFile::open(folder, NAMES, Kind::Names, META_BYTES, traffic)?;
        let (mut names, mut starts) = (0, Vec::new());
        let blocks = file.entries().len();
        let count = |block: usize| u32_at(file.meta(block), 8);
        while starts.len() < blocks && count(starts.len()) > 0 {
            if u64_at(file.meta(starts.len()), 0) != names {
                return Err(file
                    .corrupt(starts.len(), "its first name is not the next in rank")
                    .into());
            }
            let more = u64::from(count(starts.len()));
            starts.push(names);
            names += more;
        }
        if names != len {
            let problem = format!("expected {}, found {names}", counted(len, "name"));
            return Err(brimful_store::Error::corrupt(file.path(), 0, problem).into());
        }
        let data = starts.len();
        starts.push(names);
        let mut open = Self { file, starts, separators: Vec::new(), ends: Vec::new(), longest: 0 };
        for block in data..blocks {
            open.read_index(block, data)?;
        }
        if open.ends.len() != data {
            let problem = format!(
                "expected an index of {}, found one of {}",
                counted(data, "block"),
                open.ends.len()
            );
            return Err(brimful_store::Error::corrupt(open.file.path(), 0, problem).into());
        }
        Ok(open)
    }

    fn read_index(&mut self, block: usize, data: usize) -> Result<()> {
        let mut buffer = Buffer::new();
        self.file.read_block(block, &mut buffer)?;
        let (bytes, meta) = (buffer.bytes(), self.file.meta(block));
        let count = u32_at(meta, 12) as usize;
        let broken = |problem: &str| self.file.corrupt(block, problem);
        if u32_at(meta, 8) != 0
            || u64_at(meta, 0) != self.ends.len() as u64
            || count > data
            || bytes.len() < 4
        {
            return Err(broken("its part of the index is not the next one").into());
        }
        self.longest = u32_at(bytes, 0);
        let mut rest = &bytes[4..];
        for _ in 0..count {
            let len = read_varint(&mut rest).filter(|len| *len <= SEPARATOR_BYTES as u64);
            let split = len.and_then(|len| rest.split_at_checked(len as usize));
            let (separator, after) =
                split.ok_or_else(|| self.file.corrupt(block, "the index is cut off"))?;
            rest = after;
            self.separators.extend_from_slice(separator);
            self.ends.push(self.separators.len());
        }
        if !rest.is_empty() || self.longest as usize > LONGEST_NAME {
            return Err(self.file.corrupt(block, "the index does not fill its block").into());
        }
        Ok(())
    }

    /// The sealed file, for verification and sizes.
    pub(crate) fn sealed(&self) -> &SealedFile {
        &self.file
    }

    /// Bytes of the longest name.
    pub(crate) fn longest(&self) -> usize {
        self.longest as usize
    }

    /// The sizes of the file.
    pub(crate) fn sizes(&self) -> Result<NameSizes> {
        Ok(NameSizes {
            bytes: self.file.len()?,
            blocks: self.blocks(),
            longest_bytes: self.longest(),
        })
    }

    /// Number of blocks of names.
    pub(crate) fn blocks(&self) -> usize {
        self.ends.len()
    }

    /// The block that contains rank `rank`, which must exist.
    pub(crate) fn block_of(&self, rank: u64) -> usize {
        self.starts.partition_point(|start| *start <= rank).saturating_sub(1)
    }

    fn separator(&self, block: usize) -> &[u8] {
        let start = block.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.separators[start..self.ends[block]]
    }

    /// Reads and decodes a block.
    pub(crate) fn read_block(&self, block: usize) -> Result<NameBlock> {
        let mut buffer = Buffer::new();
        self.file.read_block(block, &mut buffer)?;
        let count = (self.starts[block + 1] - self.starts[block]) as usize;
        decode(buffer.bytes(), self.starts[block], count).ok_or_else(|| {
            self.file.corrupt(block, "its names do not fill it or are not UTF-8").into()
        })
    }

    /// The rank of `name`, or `None`.
    pub(crate) fn find(&self, name: &str) -> Result<Option<u64>> {
        self.find_with(name, |block| Ok(Arc::new(self.read_block(block)?)))
    }

    /// [`NameFile::find`], with blocks from `read`.
    pub(crate) fn find_with(
        &self,
        name: &str,
        mut read: impl FnMut(usize) -> Result<Arc<NameBlock>>,
    ) -> Result<Option<u64>> {
        let candidates =
            partition_point(self.blocks(), |block| Ok(self.separator(block) <= name.as_bytes()))?;
        let Some(last) = candidates.checked_sub(1) else {
            return Ok(None);
        };
        let block = read(last)?;
        let starts_after =
            |block: &NameBlock| block.name(block.first).is_none_or(|first| first > name);
        if !starts_after(&block) {
            return Ok(find_in(&block, name));
        }
        if self.separator(last).len() < SEPARATOR_BYTES {
            return Ok(None);
        }
        // Truncated separators cannot decide, so the first names of blocks are compared.
        let before = partition_point(last, |at| read(at).map(|block| !starts_after(&block)))?;
        match before.checked_sub(1) {
            Some(at) => read(at).map(|block| find_in(&block, name)),
            None => Ok(None),
        }
    }

    /// Checks that names ascend and that the index is correct. The sealed file verifies the bytes.
    pub(crate) fn verify(&self, job: &Job) -> Result<()> {
        let (mut last, mut longest) = (None::<String>, 0);
        for number in 0..self.blocks() {
            job.check()?;
            let block = self.read_block(number)?;
            for (at, name) in block.names().enumerate() {
                let broken = |problem: &str| self.file.corrupt(number, problem);
                let name = name.ok_or_else(|| broken("a name is not UTF-8"))?;
                if last.as_deref().is_some_and(|last| last >= name) {
                    return Err(broken("the names are not in ascending order").into());
                }
                let separator = self.separator(number);
                let separates = last.as_deref().is_none_or(|last| {
                    separator > last.as_bytes() || separator.len() == SEPARATOR_BYTES
                });
                if at == 0 && (separator > name.as_bytes() || !separates) {
                    return Err(broken("the index contradicts the names").into());
                }
                longest = longest.max(name.len());
                let mut buffer = last.take().unwrap_or_default();
                buffer.clear();
                buffer.push_str(name);
                last = Some(buffer);
            }
        }
        if longest != self.longest() {
            let problem = format!(
                "expected a longest name of {}, found {longest}",
                counted(self.longest, "byte")
            );
            return Err(brimful_store::Error::corrupt(self.file.path(), 0, problem).into());
        }
        Ok(())
    }
}

/// The first number in 0..count for which `before` is false; `before` must be true for all smaller
/// ones and false for all larger ones.
fn partition_point(count: usize, mut before: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, count);
    while low < high {
        let middle = low + (high - low) / 2;
        if before(middle)? { low = middle + 1 } else { high = middle }
    }
    Ok(low)
}

fn find_in(block: &NameBlock, name: &str) -> Option<u64> {
    let before =
        |at: usize| Ok(block.text.get(place(&block.ends, at)).is_some_and(|here| here < name));
    let at = partition_point(block.ends.len(), before).ok()?;
    let rank = block.first + at as u64;
    (block.name(rank) == Some(name)).then_some(rank)
}

fn decode(bytes: &[u8], first: u64, count: usize) -> Option<NameBlock> {
    // A name takes at least two bytes, which bounds the request of a damaged count.
    let mut ends: Vec<u32> = Vec::with_capacity(count.min(bytes.len() / 2));
    let mut text: Vec<u8> = Vec::with_capacity(2 * bytes.len());
    let (mut left, mut start, mut length) = (bytes, 0, 0);
    for _ in 0..count {
        let shared = usize::try_from(read_varint(&mut left)?).ok()?;
        let rest = usize::try_from(read_varint(&mut left)?).ok()?;
        let (rest, after) = left.split_at_checked(rest)?;
        if shared > length || shared + rest.len() > LONGEST_NAME || text.len() >= UNPACKED_BYTES {
            return None;
        }
        left = after;
        let next = text.len();
        text.extend_from_within(start..start + shared);
        text.extend_from_slice(rest);
        (start, length) = (next, text.len() - next);
        ends.push(u32::try_from(text.len()).ok()?);
    }
    let text = String::from_utf8(text).ok().filter(|_| left.is_empty())?;
    Some(NameBlock { first, text, ends })
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_le_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_le_bytes)
}
