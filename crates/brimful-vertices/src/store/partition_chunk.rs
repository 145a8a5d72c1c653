//! Partition chunks: whole partitions as bytes, the form of vertices in checkpoints.
//!
//! (GIRAPH-417 moves partitions as bytes.) A partition is a sequence of chunks of about a mebibyte,
//! or of one longer record. Little-endian: magic; 4 bytes, length of the serializer's name; the
//! name; 4 bytes, number of records; the records in the format of an arena, without gaps; 8 bytes,
//! checksum of all before. Invariant: a [`PartitionChunk`] is valid to its last byte, so that no
//! reader has to check again.

use brimful_store::checksum;
use brimful_store::wording::counted;

use crate::arena;
use crate::error::{Error, Result};
use crate::field::{Field, take};
use crate::serializer::Serializer;
use crate::store::VertexStore;
use crate::vertex::Stored;

const MAGIC: &[u8; 8] = b"BRIMVTX1";
const CHECKSUM_BYTES: usize = 8;
/// Bytes of records that fill a chunk.
const FULL_BYTES: usize = 1 << 20;

/// Records and the name of the serializer that wrote them.
#[derive(Debug)]
pub struct PartitionChunk {
    bytes: Vec<u8>,
    serializer: String,
    records_start: usize,
}

impl PartitionChunk {
    /// Checks the bytes of a chunk and takes ownership of them.
    ///
    /// # Errors
    /// [`Error::PartitionChunk`] if the bytes are damaged or not a chunk.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self> {
        let damaged = |problem: &str| Error::PartitionChunk(problem.to_owned());
        let (content, sum) =
            bytes.split_last_chunk().ok_or_else(|| damaged("it has no checksum"))?;
        if checksum(content) != u64::from_le_bytes(*sum) {
            return Err(damaged("its checksum does not match"));
        }
        let mut rest =
            content.strip_prefix(MAGIC).ok_or_else(|| damaged("its magic number is missing"))?;
        let name = read_u32(&mut rest).and_then(|length| take(&mut rest, length as usize));
        let name = name.and_then(|name| std::str::from_utf8(name).ok());
        let serializer =
            name.ok_or_else(|| damaged("the name of its serializer is unreadable"))?.to_owned();
        let count = read_u32(&mut rest).ok_or_else(|| damaged("it ends before its records"))?;
        let mut records = rest;
        let found = std::iter::from_fn(|| arena::take_record(&mut records)).count();
        if found as u64 != u64::from(count) || !records.is_empty() {
            return Err(damaged(&format!("expected {}, found {found}", counted(count, "record"))));
        }
        let records_start = content.len() - rest.len();
        Ok(Self { serializer, records_start, bytes })
    }

    /// The bytes of the chunk.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Keys and records.
    fn records(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let end = self.bytes.len() - CHECKSUM_BYTES;
        let mut rest = self.bytes.get(self.records_start..end).unwrap_or_default();
        std::iter::from_fn(move || arena::take_record(&mut rest))
    }
}

fn read_u32(input: &mut &[u8]) -> Option<u32> {
    let (bytes, rest) = input.split_first_chunk()?;
    *input = rest;
    Some(u32::from_le_bytes(*bytes))
}

/// Collects records into chunks and passes on each full one.
pub(crate) struct Packer<'f> {
    serializer: String,
    records: Vec<u8>,
    count: u32,
    each: &'f mut dyn FnMut(PartitionChunk) -> Result<()>,
}

impl<'f> Packer<'f> {
    pub(crate) fn new(
        serializer: String,
        each: &'f mut dyn FnMut(PartitionChunk) -> Result<()>,
    ) -> Self {
        Self { serializer, records: Vec::new(), count: 0, each }
    }

    pub(crate) fn push(&mut self, key: &[u8], record: &[u8]) -> Result<()> {
        arena::write_record(key, record, &mut self.records)?;
        self.count += 1;
        if self.records.len() >= FULL_BYTES { self.close() } else { Ok(()) }
    }

    /// Passes on the last chunk.
    pub(crate) fn finish(mut self) -> Result<()> {
        if self.count > 0 { self.close() } else { Ok(()) }
    }

    fn close(&mut self) -> Result<()> {
        let name = self.serializer.as_bytes();
        let (length, count) = ((name.len() as u32).to_le_bytes(), self.count.to_le_bytes());
        let mut bytes = [MAGIC, length.as_slice(), name, &count].concat();
        let records_start = bytes.len();
        bytes.append(&mut self.records);
        bytes.extend_from_slice(&checksum(&bytes).to_le_bytes());
        self.count = 0;
        (self.each)(PartitionChunk { bytes, serializer: self.serializer.clone(), records_start })
    }
}

/// [`VertexStore::pack`] of any store.
pub(crate) fn pack<V: Stored>(
    store: &mut (impl VertexStore<V> + ?Sized),
    serializer: &mut dyn Serializer<V>,
    each: &mut dyn FnMut(PartitionChunk) -> Result<()>,
) -> Result<()> {
    let mut packer = Packer::new(serializer.name(), each);
    let (mut key, mut record) = (Vec::new(), Vec::new());
    store.for_each(&mut |vertex| {
        key.clear();
        vertex.id().write(&mut key);
        record.clear();
        serializer
            .encode(vertex, &mut record)
            .map_err(|problem| Error::unserializable(serializer.name(), vertex.id(), problem))?;
        packer.push(&key, &record)
    })?;
    packer.finish()
}

/// The vertices of a chunk that `serializer` wrote.
pub fn unpack<V: Stored>(
    serializer: &mut dyn Serializer<V>,
    chunk: &PartitionChunk,
    each: &mut dyn FnMut(V) -> Result<()>,
) -> Result<()> {
    let name = serializer.name();
    if chunk.serializer != name {
        return Err(Error::Usage(format!(
            "a partition chunk was packed with the serializer {}, but is read with {name}; \
             use the same serializer",
            chunk.serializer
        )));
    }
    for (key, record) in chunk.records() {
        let id = read_id::<V::Id>(&name, key)?;
        let vertex = serializer.decode(&id, record, None);
        each(vertex.map_err(|problem| Error::unreadable(name.clone(), &id, problem))?)?;
    }
    Ok(())
}

/// The id of a record that `serializer` wrote, from its key.
pub(crate) fn read_id<I: Field>(serializer: &str, key: &[u8]) -> Result<I> {
    let mut rest = key;
    I::read(&mut rest).filter(|_| rest.is_empty()).ok_or_else(|| {
        let problem = "its key is not an id of this type".to_owned();
        Error::unreadable(serializer.to_owned(), format_args!("{key:02x?}"), problem)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryStore;
    use crate::conformance::{SampleVertex, samples};
    use crate::serializer::{Compact, Native};
    use brimful_store::{Budget, ErrorKind};

    fn packed(vertices: Vec<SampleVertex>) -> Vec<PartitionChunk> {
        let mut store = MemoryStore::new(&Budget::new(64 << 20, 0)).unwrap();
        store.load(&mut vertices.into_iter()).unwrap();
        let mut chunks = Vec::new();
        store
            .pack(&mut Compact, &mut |chunk| {
                chunks.push(PartitionChunk::from_bytes(chunk.as_bytes().to_vec())?);
                Ok(())
            })
            .unwrap();
        chunks
    }

    #[test]
    fn damaged_chunks_are_refused() {
        let chunks = packed(samples());
        let [chunk] = chunks.as_slice() else { panic!("one is enough for few vertices") };
        assert_eq!((chunk.records().count(), chunk.serializer.as_str()), (40, "compact"));
        let good = chunk.as_bytes();
        for end in 0..good.len() {
            let cut = PartitionChunk::from_bytes(good[..end].to_vec()).unwrap_err();
            assert_eq!(cut.kind(), ErrorKind::Corrupt);
        }
        for at in 0..good.len() {
            let mut changed = good.to_vec();
            changed[at] ^= 1 << (at % 8);
            assert!(PartitionChunk::from_bytes(changed).is_err(), "a change at {at}");
        }
        // Invalid lengths are refused even if the checksum is correct.
        for at in 0..good.len() - CHECKSUM_BYTES {
            let mut changed = good[..good.len() - CHECKSUM_BYTES].to_vec();
            changed[at] = !changed[at];
            let sum = checksum(&changed);
            changed.extend_from_slice(&sum.to_le_bytes());
            let read = PartitionChunk::from_bytes(changed).map(|chunk| chunk.records().count());
            assert!(read.is_err() || read.is_ok_and(|count| count == 40), "a change at {at}");
        }
    }

    #[test]
    fn chunks_are_unpacked_by_their_serializer_only() {
        let large = |id| {
            SampleVertex::new(
                id,
                0.5,
                (0..20_000).map(|n| (n * id * 99_991 % (1 << 40), n as f32 / 3.0)).collect(),
            )
        };
        let vertices: Vec<SampleVertex> = (1..40).map(large).collect();
        let chunks = packed(vertices.clone());
        assert!(chunks.len() > 2);
        let mut found = Vec::new();
        for chunk in &chunks {
            unpack(&mut Compact, chunk, &mut |vertex| {
                found.push(vertex);
                Ok::<(), Error>(())
            })
            .unwrap();
        }
        assert!(found == vertices);
        let nobody = &mut |_: SampleVertex| -> Result<()> { unreachable!("nothing is unpacked") };
        let error = unpack(&mut Native, &chunks[0], nobody).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage);
        assert!(
            error
                .to_string()
                .contains("packed with the serializer compact, but is read with native")
        );
    }
}
