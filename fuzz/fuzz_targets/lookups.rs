//! Look-ups in a graph of which a file is replaced. The first byte chooses the file, the next eight what is looked up; then come the
//! blocks of the file, as `base::replace` reads them. Without any the graph is whole, and the answers agree with its edges.
#![no_main]

use std::sync::Arc;

use brimful_graph::ids::ExternalId;
use brimful_graph::lookup::{Direction, Lookup};
use brimful_graph::{Graph, Result};
use brimful_store::Folder;

mod base;

/// Everything that may be asked about two vertices.
fn ask(lookup: &Lookup, one: i128, other: i128) -> Result<()> {
    let (one, other) = (lookup.find(&ExternalId::Number(one))?, lookup.find(&ExternalId::Number(other))?);
    let out = lookup.neighbors(one, Direction::Out, true)?;
    let back = lookup.neighbors(other, Direction::In, false)?;
    assert_eq!(out.ids.len(), out.weights.len());
    let (leave, reach) = (lookup.degree(one, Direction::Out)?, lookup.degree(other, Direction::In)?);
    let (mut ids, has) = ([0; 2], lookup.has_edge(one, other)?);
    lookup.graph().external_ids(one, &mut ids[..1])?;
    lookup.graph().external_ids(other, &mut ids[1..])?;
    let count = |all: &[u64], id: u64| all.iter().filter(|one| **one == id).count();
    let both = (count(&out.ids, ids[1]), count(&back.ids, ids[0]));
    lookup.degrees(&[one, other, one], Direction::In)?;
    if WHOLE.get() {
        assert_eq!((leave, reach), (out.ids.len() as u64, back.ids.len() as u64));
        assert_eq!((both.0, has), (both.1, both.0 > 0));
    }
    Ok(())
}

thread_local! {
    static WHOLE: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&chosen, rest)) = bytes.split_first() else { return };
    let Some((asked, blocks)) = rest.split_first_chunk::<8>() else { return };
    let (name, kind, meta_bytes) = base::FILES[usize::from(chosen) % base::FILES.len()];
    let folder = base::folder();
    WHOLE.set(blocks.is_empty());
    if !blocks.is_empty() && folder.open(name).is_ok() {
        base::replace(&folder, name, kind, meta_bytes, blocks);
    }
    let Ok(graph) = Graph::open_folder(&folder, &Arc::default()) else { return };
    let lookup = Lookup::new(Arc::new(graph));
    for pair in asked.as_chunks::<2>().0 {
        let known = ask(&lookup, i128::from(pair[0] % 40), i128::from(pair[1] % 40));
        assert!(known.is_ok() || !WHOLE.get() || pair.iter().any(|id| id % 40 >= 32), "{known:?}");
    }
});
