//! Cases of stores of records.

use std::collections::BTreeMap;

use brimful_store::wording::counted;

use super::{Case, Numbers, Verdict, call, check_cases, ensure};
use crate::error::{Error, Result};
use crate::record_store::RecordStore;

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Checks a store of records; `make` creates an empty one each time.
pub fn check_records<R: RecordStore>(make: &mut dyn FnMut() -> Result<R>) -> Verdict {
    let cases: [Case<R>; 6] = [
        ("an empty store", empty),
        ("puts and removals", puts),
        ("insertions", insertions),
        ("a visit that makes records grow and shrink", visit),
        ("errors on the way", errors),
        ("many changes in any order", model),
    ];
    check_cases(&cases, make)
}

fn get<R: RecordStore>(store: &mut R, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
    let mut seen = None;
    let is_there = call(
        "get",
        store.get(key, &mut |record| {
            seen = Some(record.to_vec());
            Ok(())
        }),
    )?;
    ensure(is_there == seen.is_some(), || format!("get says {is_there} and showed {seen:?}"))?;
    Ok(seen)
}

fn same<R: RecordStore>(store: &mut R, model: &Model) -> Verdict {
    ensure(store.len() == model.len() as u64, || {
        format!("expected {}, found {}", counted(model.len(), "record"), store.len())
    })?;
    let mut seen = Model::new();
    let mut twice = None;
    call(
        "for_each",
        store.for_each(&mut |key, record, _| {
            if seen.insert(key.to_vec(), record.to_vec()).is_some() {
                twice = Some(key.to_vec());
            }
            Ok(false)
        }),
    )?;
    ensure(twice.is_none(), || format!("key {twice:?} was visited twice"))?;
    ensure(seen == *model, || "a visit does not show what was stored".to_owned())?;
    for (key, record) in model {
        let found = get(store, key)?;
        ensure(found.as_ref() == Some(record), || {
            format!("key {key:02x?} has {found:02x?}, expected {record:02x?}")
        })?;
    }
    Ok(())
}

fn empty<R: RecordStore>(store: &mut R) -> Verdict {
    ensure(get(store, b"a")?.is_none(), || "it has a record".to_owned())?;
    ensure(!call("remove", store.remove(b"a"))?, || "it removed a record".to_owned())?;
    call("sync", store.sync())?;
    same(store, &Model::new())
}

fn puts<R: RecordStore>(store: &mut R) -> Verdict {
    let mut model = Model::new();
    let long = vec![7; 100_000];
    let records: [(&[u8], &[u8]); 7] = [
        (b"a", b"one"),
        (b"ab", b""),
        (b"", b"no key"),
        (b"a", b"longer than one"),
        (b"\0", &long),
        (b"a", b"1"),
        (&long, b"long key"),
    ];
    for (key, record) in records {
        call("put", store.put(key, record))?;
        model.insert(key.to_vec(), record.to_vec());
        same(store, &model)?;
    }
    for key in [b"ab".as_slice(), b"", &long] {
        ensure(call("remove", store.remove(key))?, || "a record could not be removed".to_owned())?;
        ensure(!call("remove", store.remove(key))?, || "a record was removed twice".to_owned())?;
        model.remove(key);
        same(store, &model)?;
    }
    call("sync", store.sync())?;
    same(store, &model)
}

fn insertions<R: RecordStore>(store: &mut R) -> Verdict {
    ensure(call("insert", store.insert(b"a", b"first"))?, || "the first was refused".to_owned())?;
    ensure(!call("insert", store.insert(b"a", b"second"))?, || "the second was taken".to_owned())?;
    let pairs: [(&[u8], &[u8]); 4] =
        [(b"b", b"first"), (b"a", b"third"), (b"b", b"second"), (b"c", b"first")];
    let left_out = call("insert_many", store.insert_many(&pairs))?;
    ensure(left_out == 2, || format!("expected 2 of 4 to be left out, found {left_out}"))?;
    same(store, &[b"a", b"b", b"c"].map(|key| (key.to_vec(), b"first".to_vec())).into())
}

fn visit<R: RecordStore>(store: &mut R) -> Verdict {
    let mut model = Model::new();
    for n in 0..500_u32 {
        let (key, record) = (n.to_be_bytes(), vec![n as u8; n as usize % 50]);
        call("put", store.put(&key, &record))?;
        model.insert(key.to_vec(), record);
    }
    let change = |key: &[u8], record: &[u8]| match key.last() {
        Some(last) if last % 3 == 0 => Some([record, record, b"more"].concat()),
        Some(last) if last % 3 == 1 => {
            Some(record.get(..record.len() / 2).unwrap_or_default().to_vec())
        }
        _ => None,
    };
    for _ in 0..4 {
        let mut seen = BTreeMap::new();
        call(
            "for_each",
            store.for_each(&mut |key, record, out| {
                *seen.entry(key.to_vec()).or_insert(0) += 1;
                let changed = change(key, record);
                let is_changed = changed.is_some();
                out.extend(changed.unwrap_or_default());
                Ok(is_changed)
            }),
        )?;
        ensure(seen.len() == 500 && seen.values().all(|times| *times == 1), || {
            "not every record was visited once".to_owned()
        })?;
        for (key, record) in &mut model {
            *record = change(key, record).unwrap_or(std::mem::take(record));
        }
        same(store, &model)?;
    }
    Ok(())
}

fn errors<R: RecordStore>(store: &mut R) -> Verdict {
    let fail = || Err(Error::Usage("on purpose".to_owned()));
    let on_purpose = |result: Result<bool>| {
        ensure(matches!(&result, Err(Error::Usage(problem)) if problem == "on purpose"), || {
            format!("expected the error of the caller, found {result:?}")
        })
    };
    for key in [b"a", b"b", b"c"] {
        call("put", store.put(key, b"old"))?;
    }
    on_purpose(store.get(b"a", &mut |_| fail()))?;
    let mut visits = 0;
    on_purpose(
        store
            .for_each(&mut |_, _, out| {
                visits += 1;
                out.extend_from_slice(b"new");
                if visits == 2 { Err(Error::Usage("on purpose".to_owned())) } else { Ok(true) }
            })
            .map(|()| true),
    )?;
    ensure(visits == 2, || {
        format!("expected the visit to end at the second record, found {visits} visits")
    })?;
    let records = [b"a", b"b", b"c"].map(|key| get(store, key));
    let new = records
        .iter()
        .filter(|record| matches!(record, Ok(Some(record)) if record == b"new"))
        .count();
    ensure(new == 1, || format!("expected one new record after a visit that failed, found {new}"))
}

fn model<R: RecordStore>(store: &mut R) -> Verdict {
    let mut numbers = Numbers(42);
    let mut model = Model::new();
    for step in 0..2000_u64 {
        let key = numbers.below(100).to_be_bytes()[6..].to_vec();
        let record = vec![step as u8; numbers.below(1 + step % 700) as usize];
        match numbers.below(4) {
            0 => {
                let removed = call("remove", store.remove(&key))?;
                ensure(removed == model.remove(&key).is_some(), || {
                    format!("removing key {key:?} in step {step} says {removed}")
                })?;
            }
            1 => {
                let is_new = call("insert", store.insert(&key, &record))?;
                ensure(is_new != model.contains_key(&key), || {
                    format!("inserting key {key:?} in step {step} says {is_new}")
                })?;
                model.entry(key).or_insert(record);
            }
            _ => {
                call("put", store.put(&key, &record))?;
                model.insert(key, record);
            }
        }
        if step % 400 == 399 {
            call("sync", store.sync())?;
            same(store, &model)?;
        }
    }
    Ok(())
}
