//! The parser of `edgelist`.
#![no_main]

mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| text::check("edgelist", bytes));
