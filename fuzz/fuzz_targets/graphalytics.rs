//! The bodies of `graphalytics`: a vertex file and an edge file of the same bytes.
#![no_main]

use brimful_graph::formats::TextFormat;
use brimful_graph::formats::graphalytics::EdgeFile;

mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    text::check_as(TextFormat::Vertices, bytes);
    text::check_as(TextFormat::Graphalytics(EdgeFile::default()), bytes);
});
