//! The parser of `pace`.
#![no_main]

mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| text::check("pace", bytes));
