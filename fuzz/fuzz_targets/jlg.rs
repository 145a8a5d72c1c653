//! The parser of `jlg`.
#![no_main]

mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| text::check("jlg", bytes));
