//! Decoding segments: it ends, stays within the bytes, and all forms of unpacking agree.

use brimful_graph::codec::{Code, Unpack, gaps::Gaps, words::Words24, words::Words32};

/// As in a graph on disk.
const TARGET_BITS: u32 = 16;

fn compare_forms<C: Code>(bytes: &[u8], edges: u32) -> bool {
    let mut expected = None;
    for unpack in Unpack::available() {
        let mut keys: Vec<u64> = Vec::new();
        let whole = C::decode(bytes, edges, TARGET_BITS, unpack, &mut |base, batch| {
            assert!(base <= u64::from(u32::MAX), "no segment has a source of {base}");
            keys.extend(batch.iter().map(|key| (base << TARGET_BITS) + u64::from(key)));
            true
        });
        assert!(!whole || keys.len() == edges as usize);
        let found = (keys, whole);
        assert_eq!(expected.get_or_insert_with(|| found.clone()), &found, "{}", unpack.name());
    }
    expected.is_some_and(|(_, whole)| whole)
}

/// The first two bytes are the number of edges; then come the bytes of the segment.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let Some((edges, bytes)) = bytes.split_first_chunk() else { return false };
    let edges = u32::from(u16::from_le_bytes(*edges));
    let packed = compare_forms::<Gaps>(bytes, edges);
    compare_forms::<Words32>(bytes, edges) | compare_forms::<Words24>(bytes, edges) | packed
}
