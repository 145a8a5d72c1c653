//! The JSON of a manifest, of a graph whose files are sound.
#![no_main]

use brimful_store::Folder;

mod base;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = base::folder();
    // The number of the pointer is not to be that of the base's own.
    folder.remove("current").expect("a graph has a pointer");
    base::publish(&folder, bytes);
    base::check(&folder);
});
