//! Cases of serializers, and of ids.

use std::fmt::Debug;

use brimful_store::wording::counted;

use super::{Numbers, Verdict, ensure};
use crate::id::Id;
use crate::serializer::Serializer;
use crate::vertex::Stored;

/// Checks that each id has a unique encoding, which reads back.
pub fn check_ids<I: Id>(ids: &[I]) -> Verdict {
    check_bytes(ids, I::write, I::read)?;
    check_bytes(ids, I::write_key, I::read_key)
}

fn check_bytes<I: Id>(
    ids: &[I],
    write: impl Fn(&I, &mut Vec<u8>),
    read: impl Fn(&mut &[u8]) -> Option<I>,
) -> Verdict {
    let bytes = |id: &I| {
        let mut out = Vec::new();
        write(id, &mut out);
        out
    };
    for id in ids {
        let written = bytes(id);
        let mut rest = written.as_slice();
        let read = read(&mut rest);
        ensure(read.as_ref() == Some(id) && rest.is_empty(), || {
            format!("{id:?} was written and {read:?} read")
        })?;
        for other in ids {
            ensure((id == other) == (written == bytes(other)), || {
                format!("{id:?} and {other:?} differ or their bytes do, not both")
            })?;
        }
    }
    Ok(())
}

/// Checks a serializer with these vertices, at least two of which should differ.
pub fn check_serializer<V: Stored + PartialEq + Debug>(
    serializer: &mut impl Serializer<V>,
    samples: &[V],
) -> Verdict {
    let mut records = Vec::new();
    for vertex in samples {
        let mut record = b"before".to_vec();
        serializer
            .encode(vertex, &mut record)
            .map_err(|problem| format!("{vertex:?} cannot be written: {problem}"))?;
        ensure(record.starts_with(b"before"), || "it does not append".to_owned())?;
        records.push(record.split_off(6));
    }
    for (vertex, record) in samples.iter().zip(&records) {
        for reuse in std::iter::once(None).chain(samples.iter().map(Some)) {
            let read = serializer.decode(vertex.id(), record, reuse.cloned());
            ensure(read.as_ref() == Ok(vertex), || {
                format!("{vertex:?} was written and {read:?} read into {reuse:?}")
            })?;
        }
        let mut over = b"before".to_vec();
        let written = serializer.encode_over(vertex, record, &mut over);
        ensure(written.is_ok() && over.get(6..) == Some(record), || {
            format!("{vertex:?} over its own record is another: {written:?}")
        })?;
        damage(serializer, vertex, record)?;
    }
    Ok(())
}

/// Damaged records are refused if damage is detectable, and are never harmful.
fn damage<V: Stored + Debug>(
    serializer: &mut impl Serializer<V>,
    vertex: &V,
    record: &[u8],
) -> Verdict {
    for end in 0..record.len() {
        let read = serializer.decode(vertex.id(), record.get(..end).unwrap_or_default(), None);
        ensure(read.is_err(), || {
            let bytes = counted(record.len(), "byte");
            format!("{read:?} was read from {end} of {bytes} of {vertex:?}")
        })?;
    }
    let longer = [record, &[0]].concat();
    let read = serializer.decode(vertex.id(), &longer, None);
    ensure(read.is_err(), || format!("{read:?} was read from a record with a byte too many"))?;
    let mut foreign = record.to_vec();
    foreign.iter_mut().take(1).for_each(|mark| *mark ^= 0x55);
    let read = serializer.decode(vertex.id(), &foreign, None);
    ensure(read.is_err(), || format!("{read:?} was read from a record of another serializer"))?;
    let mut numbers = Numbers(record.len() as u64 + 1);
    for _ in 0..200 {
        let mut changed = record.to_vec();
        for _ in 0..=numbers.below(3) {
            let (at, byte) =
                (numbers.below(changed.len() as u64) as usize, numbers.below(256) as u8);
            changed.iter_mut().skip(at).take(1).for_each(|place| *place = byte);
        }
        // Any result is allowed, but the call must return.
        let _ = serializer.decode(vertex.id(), &changed, Some(vertex.clone()));
    }
    Ok(())
}
