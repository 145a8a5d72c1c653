//! The parser of `adjacency`.
#![no_main]

mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| text::check("adjacency", bytes));
