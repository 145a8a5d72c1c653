//! A store of vertices, from any store of records and any serializer.
//!
//! All vertices are decoded into the memory of one vertex (GIRAPH-417's representative vertex). As
//! it is only lent, no caller can keep a reference to it, and it contains nothing of the previous
//! vertex; the conformance suite tests this.

use crate::error::{Error, Result};
use crate::field::Field;
use crate::record_store::RecordStore;
use crate::serializer::Serializer;
use crate::store::partition_chunk::{self, Packer, PartitionChunk, read_id};
use crate::store::{Borrower, Loan, StoreStats, VertexStore, keeps_id};
use crate::vertex::{EdgesMarks, Stored};

/// Bytes of records that are loaded together.
const BATCH_BYTES: usize = 256 << 10;

/// Most bytes of a vertex or record whose memory is reused; the memory of a hub is released.
const SPARE_BYTES: usize = 1 << 20;

/// Vertices as records.
#[derive(Debug)]
pub struct Serialized<R, S, V> {
    records: R,
    lender: RecordLender<S, V>,
    key: Vec<u8>,
    record: Vec<u8>,
}

/// Lends records as vertices.
#[derive(Debug)]
struct RecordLender<S, V> {
    serializer: S,
    /// A vertex whose memory is reused. It is taken while it is lent, so that a panic of the
    /// borrower leaves no half-written vertex.
    spare: Option<V>,
    marks: EdgesMarks,
    /// Records that were read and written.
    reads: u64,
    writes: u64,
}

/// Records to write, keys and records in one buffer.
#[derive(Default)]
struct Pending {
    bytes: Vec<u8>,
    /// The ends of each key and each record.
    ends: Vec<(usize, usize)>,
}

impl Pending {
    fn pairs(&self) -> Vec<(&[u8], &[u8])> {
        let mut start = 0;
        let pair = |(key_end, end): &(usize, usize)| {
            let key_start = std::mem::replace(&mut start, *end);
            (&self.bytes[key_start..*key_end], &self.bytes[*key_end..*end])
        };
        self.ends.iter().map(pair).collect()
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }
}

/// The parts of a vertex that are lent.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Lent {
    Whole,
    /// Without edges, if the serializer can omit them.
    WithoutEdges,
}

impl<V: Stored, S: Serializer<V>> RecordLender<S, V> {
    /// Lends the vertex of a record; true if it was changed and `out` contains its new record.
    fn lend(
        &mut self,
        id: &V::Id,
        record: &[u8],
        lent: Lent,
        borrower: &mut Borrower<'_, V>,
        out: &mut Vec<u8>,
    ) -> Result<bool> {
        let without = match lent {
            Lent::Whole => None,
            Lent::WithoutEdges => self.serializer.decode_without_edges(id, record, &mut self.spare),
        };
        self.reads += 1;
        let is_whole = without.is_none();
        let vertex =
            without.unwrap_or_else(|| self.serializer.decode(id, record, self.spare.take()));
        let mut vertex =
            vertex.map_err(|problem| Error::unreadable(self.serializer.name(), id, problem))?;
        let mark = self.marks.next();
        vertex.mark_edges(mark);
        let mut loan = Loan::new(&mut vertex);
        let done = borrower(&mut loan);
        let is_changed = done.is_ok() && loan.is_changed();
        let old = (vertex.edges_mark() == Some(mark)).then_some(record);
        let written = match is_changed {
            // The vertex was decoded without its edges, so they cannot be written back.
            true if old.is_none() && !is_whole => Err(Error::Usage(format!(
                "the program changed the edges of vertex {id} in a collect, but `collects_edges` \
                 is false; return true from `collects_edges`"
            ))),
            true => self.write_back(id, &vertex, old, out),
            false => Ok(()),
        };
        self.spare = Some(vertex).filter(|vertex| vertex.heap_bytes() <= SPARE_BYTES);
        done.and(written)?;
        Ok(is_changed)
    }

    /// Writes the new record of a vertex, with the edges of the old one if they are unchanged.
    fn write_back(
        &mut self,
        id: &V::Id,
        vertex: &V,
        old: Option<&[u8]>,
        out: &mut Vec<u8>,
    ) -> Result<()> {
        keeps_id(id, vertex)?;
        let written = match old {
            Some(old) => self.serializer.encode_over(vertex, old, out),
            None => self.serializer.encode(vertex, out),
        };
        self.writes += 1;
        written.map_err(|problem| self.unserializable(vertex, problem))
    }

    fn encode(&mut self, vertex: &V, out: &mut Vec<u8>) -> Result<()> {
        self.writes += 1;
        self.serializer.encode(vertex, out).map_err(|problem| self.unserializable(vertex, problem))
    }

    fn unserializable(&self, vertex: &V, problem: String) -> Error {
        Error::unserializable(self.serializer.name(), vertex.id(), problem)
    }
}

impl<R: RecordStore, S: Serializer<V>, V: Stored> Serialized<R, S, V> {
    /// A store of vertices in `records`, written by `serializer`.
    pub fn new(records: R, serializer: S) -> Self {
        Self {
            records,
            lender: RecordLender {
                serializer,
                spare: None,
                marks: EdgesMarks::default(),
                reads: 0,
                writes: 0,
            },
            key: Vec::new(),
            record: Vec::new(),
        }
    }

    fn lend_one(&mut self, id: &V::Id, lent: Lent, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        let Self { records, lender, key, record } = self;
        key.clear();
        id.write(key);
        record.clear();
        let mut is_changed = false;
        let is_there = records.get(key, &mut |found| {
            is_changed = lender.lend(id, found, lent, borrower, record)?;
            Ok(())
        })?;
        if is_changed {
            records.replace(key, record)?;
        }
        if record.capacity() > SPARE_BYTES {
            *record = Vec::new();
        }
        Ok(is_there)
    }

    /// Serializes a vertex into `key` and `record`.
    fn encode(&mut self, vertex: &V) -> Result<()> {
        self.key.clear();
        vertex.id().write(&mut self.key);
        self.record.clear();
        self.lender.encode(vertex, &mut self.record)
    }
}

impl<R: RecordStore, S: Serializer<V>, V: Stored> VertexStore<V> for Serialized<R, S, V> {
    fn insert(&mut self, vertex: V) -> Result<bool> {
        self.encode(&vertex)?;
        let is_new = self.records.insert(&self.key, &self.record)?;
        self.lender.spare = Some(vertex).filter(|vertex| vertex.heap_bytes() <= SPARE_BYTES);
        Ok(is_new)
    }

    fn load(&mut self, vertices: &mut dyn Iterator<Item = V>) -> Result<u64> {
        let mut pending = Pending::default();
        let mut duplicates = 0;
        self.records.reserve(vertices.size_hint().0)?;
        for vertex in vertices {
            vertex.id().write(&mut pending.bytes);
            let key_end = pending.bytes.len();
            self.lender.encode(&vertex, &mut pending.bytes)?;
            pending.ends.push((key_end, pending.bytes.len()));
            if pending.bytes.len() >= BATCH_BYTES {
                duplicates += self.records.insert_many(&pending.pairs())?;
                pending.clear();
            }
        }
        duplicates += self.records.insert_many(&pending.pairs())?;
        Ok(duplicates)
    }

    fn put(&mut self, vertex: &V) -> Result<()> {
        self.encode(vertex)?;
        self.records.put(&self.key, &self.record)?;
        Ok(())
    }

    fn replace(&mut self, vertex: &V) -> Result<()> {
        self.encode(vertex)?;
        self.records.replace(&self.key, &self.record)
    }

    fn add(&mut self, vertex: &V) -> Result<()> {
        self.encode(vertex)?;
        self.records.add(&self.key, &self.record)
    }

    fn lookahead(&self) -> usize {
        self.records.lookahead()
    }

    fn prefetch(&mut self, keys: &[&[u8]]) -> Result<()> {
        self.records.prefetch(keys)
    }

    fn lend(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        self.lend_one(id, Lent::Whole, borrower)
    }

    fn lend_without_edges(&mut self, id: &V::Id, borrower: &mut Borrower<'_, V>) -> Result<bool> {
        self.lend_one(id, Lent::WithoutEdges, borrower)
    }

    fn for_each(&mut self, borrower: &mut Borrower<'_, V>) -> Result<()> {
        self.for_each_except(&|_| false, borrower)
    }

    fn for_each_except(
        &mut self,
        is_left_out: &dyn Fn(&V::Id) -> bool,
        borrower: &mut Borrower<'_, V>,
    ) -> Result<()> {
        let Self { records, lender, .. } = self;
        let name = lender.serializer.name();
        records.for_each(&mut |key, record, out| {
            let id = read_id(&name, key)?;
            match is_left_out(&id) {
                true => Ok(false),
                false => lender.lend(&id, record, Lent::Whole, borrower, out),
            }
        })
    }

    /// Records of the same serializer are packed without decoding.
    fn pack(
        &mut self,
        serializer: &mut dyn Serializer<V>,
        each: &mut dyn FnMut(PartitionChunk) -> Result<()>,
    ) -> Result<()> {
        let name = serializer.name();
        if name != self.lender.serializer.name() {
            return partition_chunk::pack(self, serializer, each);
        }
        let mut packer = Packer::new(name, each);
        self.records.for_each(&mut |key, record, _| packer.push(key, record).map(|()| false))?;
        packer.finish()
    }

    fn remove(&mut self, id: &V::Id) -> Result<bool> {
        self.key.clear();
        id.write(&mut self.key);
        self.records.remove(&self.key)
    }

    fn len(&self) -> u64 {
        self.records.len()
    }

    fn sync(&mut self) -> Result<()> {
        self.records.sync()
    }

    fn stats(&self) -> Result<StoreStats> {
        let (memory_bytes, disk_bytes) = self.records.bytes()?;
        let RecordLender { reads, writes, .. } = self.lender;
        Ok(StoreStats {
            vertices: self.len(),
            memory_bytes,
            disk_bytes,
            has_uncounted_bytes: self.records.has_uncounted_bytes(),
            reads,
            writes,
            caches: Vec::new(),
        })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use brimful_store::{Budget, ErrorKind};

    use super::*;
    use crate::conformance::SampleVertex;
    use crate::serializer::{Compact, Generic};
    use crate::{BytesStore, Edges, Vertex};

    fn records() -> BytesStore {
        BytesStore::new(&Budget::new(16 << 20, 0)).unwrap()
    }

    fn vertex(id: u64) -> SampleVertex {
        Vertex::new(id, 0.5, Edges::default())
    }

    #[test]
    fn another_serializer_is_told_what_is_wrong() {
        let mut store = Serialized::new(records(), Compact);
        store.insert(vertex(7)).unwrap();
        let mut other = Serialized::<_, _, SampleVertex>::new(store.records, Generic);
        let error = other.lend(&7, &mut |_| Ok(())).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corrupt);
        assert_eq!(
            error.to_string(),
            "the record of vertex 7 is not in the form of the serializer generic: expected it to \
             begin with byte 0x5e, found 0xc3; open the store with the serializer that wrote it"
        );
        other.records.put(b"\xff", b"").unwrap();
        other.records.remove(&[7]).unwrap();
        let error = other.for_each(&mut |_| Ok(())).unwrap_err();
        assert!(error.to_string().starts_with(
            "the record of vertex [ff] is not in the form of the serializer generic: its key"
        ));
    }

    #[test]
    fn what_cannot_be_written_is_said_and_what_was_there_stays() {
        // `serde` refuses to write a lock that a panic has poisoned.
        type Lock = Arc<std::sync::Mutex<u64>>;
        #[derive(Clone, serde::Serialize, serde::Deserialize)]
        #[serde(transparent)]
        struct State(#[serde(with = "locked")] Lock);
        mod locked {
            use serde::{Deserialize, Deserializer, Serialize, Serializer};
            pub(super) fn serialize<S: Serializer>(
                state: &super::Arc<std::sync::Mutex<u64>>,
                s: S,
            ) -> Result<S::Ok, S::Error> {
                state.serialize(s)
            }
            pub(super) fn deserialize<'d, D: Deserializer<'d>>(
                d: D,
            ) -> Result<super::Arc<std::sync::Mutex<u64>>, D::Error> {
                u64::deserialize(d).map(|state| super::Arc::new(state.into()))
            }
        }
        let mut store = Serialized::new(records(), Generic);
        let good = || Vertex::<u64, State>::new(7, State(Arc::new(5.into())), Edges::default());
        store.insert(good()).unwrap();
        let error = store.lend(&7, &mut |vertex| {
            let lock = Arc::clone(&vertex.state.0);
            let poison = std::thread::spawn(move || {
                let _held = lock.lock();
                panic!("on purpose")
            });
            assert!(poison.join().is_err());
            vertex.signalled = None;
            Ok(())
        });
        let error = error.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Input);
        assert!(
            error.to_string().starts_with("the serializer generic cannot write vertex 7: "),
            "{error}"
        );
        assert!(error.to_string().ends_with("; use another serializer"), "{error}");
        let mut state = 0;
        store
            .lend(&7, &mut |vertex| {
                state = *vertex.state.0.lock().unwrap();
                Ok(())
            })
            .unwrap();
        assert_eq!(state, 5);
    }

    #[test]
    fn edges_that_are_missing_cannot_be_changed() {
        let mut store = Serialized::new(records(), Compact);
        let mut whole = vertex(7);
        whole.edges_mut().push(1, 0.5);
        store.insert(whole.clone()).unwrap();
        let mut edges = usize::MAX;
        let lent = store.lend_without_edges(&7, &mut |loan| {
            edges = loan.edges().len();
            loan.edges_mut().push(2, 0.5);
            Ok(())
        });
        assert_eq!(edges, 0, "the compact serializer leaves them out");
        assert_eq!(lent.unwrap_err().kind(), ErrorKind::Usage);
        let mut found = None;
        store
            .lend(&7, &mut |loan| {
                found = Some((**loan).clone());
                Ok(())
            })
            .unwrap();
        assert_eq!(found, Some(whole));
    }

    #[test]
    fn a_vertex_keeps_its_id() {
        let mut store = Serialized::new(records(), Compact);
        store.insert(vertex(7)).unwrap();
        let error = store.lend(&7, &mut |loan| {
            **loan = vertex(8);
            Ok(())
        });
        assert!(
            error.unwrap_err().to_string().starts_with("vertex 7 came back from its loan as 8")
        );
        assert!(
            store.lend(&7, &mut |_| Ok(())).unwrap() && !store.lend(&8, &mut |_| Ok(())).unwrap()
        );
    }
}
