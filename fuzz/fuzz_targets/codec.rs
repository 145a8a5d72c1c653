//! Decoding segments: whatever the bytes, it ends, stays within them, and every form of unpacking says the
//! same. The first two bytes are the number of edges; then the codec's bytes.
#![no_main]

use brimful_graph::codec::{Code, Unpack, gaps::Gaps, words::Words24, words::Words32};

/// As in a graph on disk.
const TARGET_BITS: u32 = 16;

fn compare_forms<C: Code>(bytes: &[u8], edges: u32) {
    let mut expected = None;
    for unpack in Unpack::available() {
        let mut keys = Vec::new();
        let whole = C::decode(bytes, edges, TARGET_BITS, unpack, &mut |base, batch| {
            keys.extend(batch.iter().map(|key| (base << TARGET_BITS) + u64::from(key)));
            true
        });
        assert!(!whole || keys.len() == edges as usize);
        let found = (keys, whole);
        assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{}", unpack.name());
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let Some((edges, bytes)) = bytes.split_first_chunk() else { return };
    let edges = u32::from(u16::from_le_bytes(*edges));
    compare_forms::<Gaps>(bytes, edges);
    compare_forms::<Words32>(bytes, edges);
    compare_forms::<Words24>(bytes, edges);
});
