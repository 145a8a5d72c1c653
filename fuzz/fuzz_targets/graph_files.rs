//! The files of a graph, one of them replaced. The first byte chooses it; then come its blocks, as
//! `base::replace` reads them.
#![no_main]

use brimful_store::Folder;

mod base;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((&chosen, blocks)) = bytes.split_first() else { return };
    let (name, kind, meta_bytes) = base::FILES[usize::from(chosen) % base::FILES.len()];
    let folder = base::folder();
    // Ids that follow each other are in no file.
    if folder.open(name).is_ok() {
        base::replace(&folder, name, kind, meta_bytes, blocks);
        base::check(&folder);
    }
});
