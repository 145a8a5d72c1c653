//! The files of a graph, one of them replaced. The first byte chooses it; then come its blocks, as
//! `base::replace` reads them.
#![no_main]

use brimful_store::Folder;
use brimful_store::sealed::Kind;

mod base;

const FILES: [(&str, Kind, usize); 9] = [
    ("ids", Kind::Ids, 32),
    ("degrees", Kind::Degrees, 32),
    ("strengths", Kind::Strengths, 0),
    ("in.shards", Kind::Shards, 0),
    ("in.weights", Kind::Weights, 0),
    ("in.blocks", Kind::Directory, 0),
    ("reverse.shards", Kind::Shards, 0),
    ("reverse.weights", Kind::Weights, 0),
    ("reverse.blocks", Kind::Directory, 0),
];

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&chosen, blocks)) = bytes.split_first() else { return };
    let (name, kind, meta_bytes) = FILES[usize::from(chosen) % FILES.len()];
    let folder = base::folder();
    // Ids that follow each other are in no file.
    if folder.open(name).is_ok() {
        base::replace(&folder, name, kind, meta_bytes, blocks);
        base::check(&folder);
    }
});
