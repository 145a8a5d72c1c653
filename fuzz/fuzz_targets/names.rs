//! The file of names of a graph whose ids are strings: its blocks, as `base::replace` reads them.
#![no_main]

use std::sync::{Arc, OnceLock};

use brimful_graph::import::{ImportOptions, Input, import_in};
use brimful_store::fault::FaultFolder;
use brimful_store::sealed::Kind;
use brimful_store::{Budget, Job, Resources};

mod base;

fn folder() -> FaultFolder {
    static BASE: OnceLock<FaultFolder> = OnceLock::new();
    let make = || {
        let (folder, path) =
            (FaultFolder::new(), std::env::temp_dir().join(format!("names-{}", std::process::id())));
        let text: String = (0..40).map(|i| format!("vertex-{} vertex-{}\n", i % 17, i * 7 % 23)).collect();
        std::fs::write(&path, text).expect("a temporary file");
        let resources =
            Resources::new(Budget::new(1 << 26, 0), Arc::new(Job::new()), Some(1)).expect("one thread");
        let input = Input::EdgeList(vec![path.clone()]);
        import_in(&folder, input, &ImportOptions::default(), &resources).expect("an import in memory");
        std::fs::remove_file(path).expect("the temporary file");
        base::forget_seals(&folder);
        folder
    };
    BASE.get_or_init(make).crash()
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let folder = folder();
    base::replace(&folder, "names", Kind::Names, 16, bytes);
    base::check(&folder);
});
