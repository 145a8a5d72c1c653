//! Cases of stores of vertices.

use std::collections::BTreeMap;

use brimful_store::wording::counted;

use super::{Case, Numbers, SampleVertex, Verdict, call, check_cases, ensure, samples};
use crate::error::{Error, Result};
use crate::id::AnyId;
use crate::serializer::{Compact, Native, Serializer};
use crate::store::VertexStore;
use crate::store::partition_chunk::{PartitionChunk, unpack};
use crate::vertex::{Edges, Vertex};

type Model = BTreeMap<u64, SampleVertex>;

/// Checks a store of vertices; `make` creates an empty one each time.
pub fn check_vertices<T: VertexStore<SampleVertex>>(
    make: &mut dyn FnMut() -> Result<T>,
) -> Verdict {
    let cases: [Case<T>; 11] = [
        ("an empty store", empty),
        ("the first of each id", firsts),
        ("changes on loan", changes),
        ("a vertex after another", one_after_another),
        ("loans without edges", without_edges),
        ("edges that go and come back", edges),
        ("a borrower that fails", failures),
        ("a scan that makes vertices grow", scan),
        ("a vertex that comes back as another", another),
        ("whole partitions as bytes", chunks),
        ("many changes in any order", model),
    ];
    check_cases(&cases, make)
}

/// Checks that the ids 1 and "1" are two vertices.
pub fn check_id_types<T: VertexStore<Vertex<AnyId, f64>>>(mut store: T) -> Verdict {
    let ids = [
        AnyId::Integer(1),
        AnyId::Text("1".to_owned()),
        AnyId::Integer(-1),
        AnyId::Text(String::new()),
    ];
    for (id, state) in ids.iter().zip([1.0, 2.0, 3.0, 4.0]) {
        let is_new =
            call("insert", store.insert(Vertex::new(id.clone(), state, Edges::default())))?;
        ensure(is_new, || format!("{id} is taken for another id"))?;
    }
    for (id, state) in ids.iter().zip([1.0, 2.0, 3.0, 4.0]) {
        let mut seen = None;
        call(
            "lend",
            store.lend(id, &mut |vertex| {
                seen = Some((vertex.id().clone(), vertex.state));
                Ok(())
            }),
        )?;
        ensure(seen == Some((id.clone(), state)), || format!("asked for {id}, found {seen:?}"))?;
    }
    Ok(())
}

fn get<T: VertexStore<SampleVertex>>(
    store: &mut T,
    id: u64,
) -> Result<Option<SampleVertex>, String> {
    let mut seen = None;
    let is_there = call(
        "lend",
        store.lend(&id, &mut |vertex| {
            seen = Some((**vertex).clone());
            Ok(())
        }),
    )?;
    ensure(is_there == seen.is_some(), || format!("lend says {is_there} and lent {seen:?}"))?;
    Ok(seen)
}

fn same<T: VertexStore<SampleVertex>>(store: &mut T, model: &Model) -> Verdict {
    for (id, expected) in model {
        let found = get(store, *id)?;
        ensure(found.as_ref() == Some(expected), || {
            format!("expected {expected:?}, found {found:?}")
        })?;
    }
    let mut seen = Vec::new();
    call(
        "for_each",
        store.for_each(&mut |vertex| {
            seen.push((**vertex).clone());
            Ok(())
        }),
    )?;
    seen.sort_by_key(|vertex| *vertex.id());
    ensure(seen.iter().eq(model.values()), || {
        "a scan does not show every vertex once as it is".to_owned()
    })?;
    let count = call("stats", store.stats())?.vertices;
    ensure(store.len() == model.len() as u64 && count == store.len(), || {
        let expected = counted(model.len(), "vertex");
        format!("expected {expected}, len says {} and stats {count}", store.len())
    })
}

fn fill<T: VertexStore<SampleVertex>>(store: &mut T) -> Result<Model, String> {
    let left_out = call("load", store.load(&mut samples().into_iter()))?;
    ensure(left_out == 0, || format!("{left_out} of different vertices were left out"))?;
    Ok(samples().into_iter().map(|vertex| (*vertex.id(), vertex)).collect())
}

fn empty<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    ensure(get(store, 1)?.is_none() && store.is_empty(), || "it has a vertex".to_owned())?;
    ensure(!call("remove", store.remove(&1))?, || "it removed a vertex".to_owned())?;
    call("sync", store.sync())?;
    same(store, &Model::new())
}

fn firsts<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let vertex = |id, state| SampleVertex::new(id, state, Edges::default());
    ensure(call("insert", store.insert(vertex(1, 0.5)))?, || "the first was refused".to_owned())?;
    ensure(!call("insert", store.insert(vertex(1, 1.5)))?, || "the second was taken".to_owned())?;
    let more = [vertex(2, 0.5), vertex(1, 2.5), vertex(3, 0.5), vertex(2, 1.5)];
    let left_out = call("load", store.load(&mut more.into_iter()))?;
    ensure(left_out == 2, || format!("expected 2 of 4 to be left out, found {left_out}"))?;
    let mut model: Model = (1..4).map(|id| (id, vertex(id, 0.5))).collect();
    same(store, &model)?;
    call("put", store.put(&vertex(2, 9.0)))?;
    call("put", store.put(&vertex(4, 9.0)))?;
    model.extend([(2, vertex(2, 9.0)), (4, vertex(4, 9.0))]);
    same(store, &model)
}

/// A change that makes vertices larger or smaller, or leaves them unchanged.
fn change(vertex: &mut SampleVertex, kind: u64) {
    match kind % 4 {
        0 => vertex.state += 1.0,
        1 => (0..20).for_each(|edge| vertex.edges_mut().push(edge * 1000, 0.5)),
        2 => {
            vertex.edges_mut().retain(|edge| *edge.data > 1.0);
            vertex.signalled = Some(vertex.state);
        }
        _ => vertex.receive(kind, kind as f64),
    }
}

fn changes<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let mut model = fill(store)?;
    for kind in 0..8 {
        for (id, expected) in &mut model {
            call(
                "lend",
                store.lend(id, &mut |vertex| {
                    change(vertex, kind);
                    Ok(())
                }),
            )?;
            change(expected, kind);
        }
        same(store, &model)?;
    }
    call("sync", store.sync())?;
    same(store, &model)?;
    for id in [1, 2, 5] {
        ensure(call("remove", store.remove(&id))?, || format!("vertex {id} could not be removed"))?;
        ensure(!call("remove", store.remove(&id))?, || format!("vertex {id} was removed twice"))?;
        model.remove(&id);
        same(store, &model)?;
    }
    Ok(())
}

/// A store that reads vertices into the memory of earlier ones must not show their edges, edge
/// data, signals or signalled states.
pub(super) fn one_after_another<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let bare = SampleVertex::new(100, 1.0, Edges::default());
    let mut full = SampleVertex::new(200, 2.0, (0..100).map(|n| (n, 0.5)).collect());
    full.signalled = Some(2.0);
    (0..50).for_each(|source| full.receive(source, 1.0));
    let mut half = SampleVertex::new(300, 3.0, (0..3).map(|n| (n + 7, 1.5)).collect());
    half.receive(9, 9.0);
    let vertices = [full, bare, half];
    for vertex in &vertices {
        call("insert", store.insert(vertex.clone()))?;
    }
    let is_one = |found: &SampleVertex| {
        if vertices.contains(found) {
            Ok(())
        } else {
            Err(Error::Usage(format!("vertex {} shows what is not its own: {found:?}", found.id())))
        }
    };
    for first in &vertices {
        for second in &vertices {
            call("lend", store.lend(first.id(), &mut |vertex| is_one(vertex)))?;
            call("lend", store.lend(second.id(), &mut |vertex| is_one(vertex)))?;
            // Nor the changes of a borrower that failed.
            let failed = store.lend(first.id(), &mut |vertex| {
                is_one(vertex)?;
                Err(Error::Usage("on purpose".to_owned()))
            });
            ensure(failed.is_err(), || "a loan that failed came back well".to_owned())?;
        }
    }
    call("for_each", store.for_each(&mut |vertex| is_one(vertex)))
}

/// A store that omits unchanged edges when writing must detect all changes.
fn edges<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let mut model = fill(store)?;
    let mut copies: Vec<Edges<u64, f32>> = Vec::new();
    for kind in 0..6 {
        for (id, expected) in &mut model {
            let change = |vertex: &mut SampleVertex| {
                let before = vertex.edges().clone();
                vertex.state += 1.0;
                match kind {
                    // Changed, and changed back.
                    0 => {
                        vertex.edges_mut().push(1, 1.0);
                        *vertex.edges_mut() = before.clone();
                    }
                    // The edges of another vertex.
                    1 => *vertex.edges_mut() = copies.last().cloned().unwrap_or_default(),
                    2 => vertex.edges_mut().retain(|_| false),
                    // The edges from before they were removed.
                    3 => *vertex.edges_mut() = copies.first().cloned().unwrap_or_default(),
                    4 => vertex.edges_mut().push(2, 2.0),
                    _ => vertex.signalled = None,
                }
                before
            };
            let mut before = Edges::default();
            call(
                "lend",
                store.lend(id, &mut |vertex| {
                    before = change(vertex);
                    Ok(())
                }),
            )?;
            change(expected);
            copies.push(before);
        }
        same(store, &model)?;
    }
    Ok(())
}

/// A borrower that ignores edges may change the rest.
fn without_edges<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let mut model = fill(store)?;
    for (id, expected) in &mut model {
        let state = expected.state;
        let mut seen = None;
        let lent = store.lend_without_edges(id, &mut |vertex| {
            seen = Some((vertex.state, vertex.signalled, vertex.latest().to_vec()));
            vertex.state += 1.0;
            Ok(())
        });
        ensure(call("lend_without_edges", lent)?, || format!("vertex {id} is not there"))?;
        ensure(seen == Some((state, expected.signalled, expected.latest().to_vec())), || {
            format!("expected all of {expected:?} but its edges, found {seen:?}")
        })?;
        expected.state += 1.0;
    }
    let absent = store.lend_without_edges(&u64::MAX, &mut |_| Ok(()));
    ensure(!call("lend_without_edges", absent)?, || {
        "it lent a vertex that is not there".to_owned()
    })?;
    same(store, &model)
}

fn failures<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let model = fill(store)?;
    let fail = || Err(Error::Usage("on purpose".to_owned()));
    let on_purpose = |result: Result<()>| {
        ensure(matches!(&result, Err(Error::Usage(problem)) if problem == "on purpose"), || {
            format!("expected the error of the borrower, found {result:?}")
        })
    };
    on_purpose(store.lend(&1, &mut |_| fail()).map(drop))?;
    same(store, &model)?;
    let mut scanned = 0;
    on_purpose(store.for_each(&mut |_| {
        scanned += 1;
        if scanned == 3 { fail() } else { Ok(()) }
    }))?;
    ensure(scanned == 3, || {
        format!("expected the scan to end at the third vertex, found {scanned}")
    })?;
    same(store, &model)
}

fn another<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    fill(store)?;
    let replace = |id: u64, vertex: &mut crate::Loan<'_, SampleVertex>| {
        if *vertex.id() == id {
            **vertex = SampleVertex::new(id + 2, 0.0, Edges::default());
        }
        Ok(())
    };
    let lent = store.lend(&1, &mut |vertex| replace(1, vertex)).map(drop);
    let scanned = store.for_each(&mut |vertex| replace(2, vertex));
    for (id, result) in [(1, lent), (2, scanned)] {
        ensure(matches!(result, Err(Error::Usage(_))), || {
            format!("vertex {id} came back as vertex {}, found {result:?}", id + 2)
        })?;
    }
    Ok(())
}

fn scan<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let mut model = fill(store)?;
    for kind in [1, 3, 2, 1, 1] {
        // These changes make cached vertices differ from the store below.
        for id in [1, 5, 10] {
            call(
                "lend",
                store.lend(&id, &mut |vertex| {
                    vertex.state -= 1.0;
                    Ok(())
                }),
            )?;
            model.entry(id).and_modify(|vertex| vertex.state -= 1.0);
        }
        call(
            "for_each",
            store.for_each(&mut |vertex| {
                if *vertex.id() != 5 {
                    change(vertex, kind);
                }
                Ok(())
            }),
        )?;
        model.iter_mut().filter(|(id, _)| **id != 5).for_each(|(_, vertex)| change(vertex, kind));
        same(store, &model)?;
    }
    Ok(())
}

fn chunks<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let mut model = fill(store)?;
    // At least one of them differs from the store's own serializer.
    let serializers: [&mut dyn Serializer<SampleVertex>; 2] = [&mut Compact, &mut Native];
    for serializer in serializers {
        // These changes make cached vertices differ from the store below.
        for (id, expected) in &mut model {
            let lent = store.lend(id, &mut |vertex| {
                change(vertex, 1);
                Ok(())
            });
            call("lend", lent)?;
            change(expected, 1);
        }
        let mut packed = Vec::new();
        let pack = store.pack(serializer, &mut |chunk| {
            packed.push(PartitionChunk::from_bytes(chunk.as_bytes().to_vec())?);
            Ok(())
        });
        call("pack", pack)?;
        same(store, &model)?;
        let mut unpacked = Vec::new();
        for chunk in &packed {
            let each = &mut |vertex| {
                unpacked.push(vertex);
                Ok(())
            };
            call("unpack", unpack(serializer, chunk, each))?;
        }
        unpacked.sort_by_key(|vertex: &SampleVertex| *vertex.id());
        ensure(unpacked.iter().eq(model.values()), || {
            "the chunks do not hold every vertex once as it is".to_owned()
        })?;
    }
    Ok(())
}

fn model<T: VertexStore<SampleVertex>>(store: &mut T) -> Verdict {
    let mut numbers = Numbers(7);
    let mut model = Model::new();
    for step in 0..2000_u64 {
        let id = numbers.below(60);
        let fresh = SampleVertex::new(
            id,
            step as f64,
            (0..numbers.below(30)).map(|edge| (edge << 13, 2.0)).collect(),
        );
        match numbers.below(8) {
            0 => {
                let removed = call("remove", store.remove(&id))?;
                ensure(removed == model.remove(&id).is_some(), || {
                    format!("removing {id} in step {step} says {removed}")
                })?;
            }
            1 | 2 => {
                let is_new = call("insert", store.insert(fresh.clone()))?;
                ensure(is_new != model.contains_key(&id), || {
                    format!("inserting {id} in step {step} says {is_new}")
                })?;
                model.entry(id).or_insert(fresh);
            }
            3 => {
                call("put", store.put(&fresh))?;
                model.insert(id, fresh);
            }
            kind => {
                let is_there = call(
                    "lend",
                    store.lend(&id, &mut |vertex| {
                        if kind < 7 {
                            change(vertex, step);
                        }
                        Ok(())
                    }),
                )?;
                ensure(is_there == model.contains_key(&id), || {
                    format!("lending {id} in step {step} says {is_there}")
                })?;
                if kind < 7 {
                    model.entry(id).and_modify(|vertex| change(vertex, step));
                }
            }
        }
        if step % 250 == 249 {
            same(store, &model)?;
        }
    }
    Ok(())
}
