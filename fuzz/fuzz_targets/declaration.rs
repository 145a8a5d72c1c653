//! Declarations of exported graphs: two of them, a line each, alone and joined; and an edge list that begins with the first.
#![no_main]

use brimful_graph::declaration::Declaration;

mod text;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let line = [&b"# brimful: "[..], bytes].concat();
    text::check("edgelist", &line);
    let Ok(lines) = std::str::from_utf8(bytes) else { return };
    let mut read = lines.lines().map(Declaration::parse);
    let (Some(Ok(one)), other) = (read.next(), read.next()) else { return };
    assert_eq!(Declaration::parse(&one.to_string()), Ok(one));
    assert!(one.listed() <= one.vertices);
    if let Some(Ok(other)) = other {
        assert_eq!(one.join(&other), other.join(&one));
        if let Some(joined) = one.join(&other) {
            assert!(joined.edges >= one.edges && joined.vertices >= one.vertices.max(other.vertices));
        }
    }
});
