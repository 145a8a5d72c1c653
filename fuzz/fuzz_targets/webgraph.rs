//! The reader of WebGraph: properties, an empty line, the graph.
#![no_main]

use brimful_graph::formats::parse::parse_webgraph;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let split = bytes.windows(2).position(|two| two == b"\n\n").unwrap_or(bytes.len());
    let (properties, graph) = bytes.split_at(split);
    let _ = parse_webgraph(properties, graph.get(2..).unwrap_or_default(), 1 << 16);
});
