//! The target that the variable `BRIMFUL_FUZZ` names.
#![no_main]

use std::sync::LazyLock;

use brimful_fuzz::{TARGETS, Target};

static CHOSEN: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("BRIMFUL_FUZZ").expect("BRIMFUL_FUZZ names a target");
    TARGETS.iter().find(|target| target.name == name).expect("a target has the name in BRIMFUL_FUZZ")
});

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    (CHOSEN.check)(bytes);
});
