//! Tests every codec and every form of unpacking against the input keys, on shapes of real graphs
//! and on extreme shapes.

use super::*;

/// A small reproducible generator, good enough for tests.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ z >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ z >> 31
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Ascending keys whose gaps have up to `bits` bits, most of them `usual`.
fn keys(random: &mut Random, count: usize, usual: u32, bits: u32, target_bits: u32) -> Vec<u64> {
    let mut key = random.below(1 << target_bits);
    // A segment's sources span less than 2^32.
    let end = 1 << (32 + target_bits);
    (0..count)
        .map(|_| {
            let this = key;
            let width = if random.below(20) == 0 { bits } else { usual };
            key += if width == 0 { 0 } else { random.next() >> (64 - width) };
            this
        })
        .take_while(|&key| key < end)
        .collect()
}

/// Leaves out the keys of `keys` below several bounds.
fn check_skips(keys: Keys<'_>) {
    let all: Vec<u32> = keys.iter().collect();
    let (middle, last) = (u64::from(all[all.len() / 2]), u64::from(all[all.len() - 1]));
    for bound in [0, middle, middle + 1, last, last + 1] {
        let (skipped, rest) = keys.skip_below(bound);
        assert!(all[..skipped].iter().all(|key| u64::from(*key) < bound));
        assert_eq!(rest.iter().collect::<Vec<_>>(), all[skipped..]);
        let next = all.get(skipped + 15);
        assert!(next.is_none_or(|key| u64::from(*key) >= bound), "a group is left below {bound}");
    }
}

fn decoded<C: Code>(
    bytes: &[u8],
    edges: usize,
    target_bits: u32,
    unpack: Unpack,
) -> Option<Vec<u64>> {
    let mut out = Vec::new();
    C::decode(bytes, edges as u32, target_bits, unpack, &mut |base, keys| {
        assert!(!keys.is_empty() && keys.len() <= BATCH);
        check_skips(keys);
        out.extend(keys.iter().map(|key| (base << target_bits) + u64::from(key)));
        true
    })
    .then_some(out)
}

fn check<C: Code>(keys: &[u64], target_bits: u32) {
    let (mut bytes, mut blocks) = (Vec::new(), Vec::new());
    C::encode(keys, target_bits, &mut bytes, &mut blocks);
    for unpack in Unpack::available() {
        let out = decoded::<C>(&bytes, keys.len(), target_bits, unpack);
        assert!(out.as_deref() == Some(keys), "{target_bits} bits, {}", unpack.name());
        assert!(decoded::<C>(&bytes, keys.len() + 1, target_bits, unpack).is_none());
        if let Some(cut) = bytes.len().checked_sub(1) {
            assert!(decoded::<C>(&bytes[..cut], keys.len(), target_bits, unpack).is_none());
        }
        let mut by_block = Vec::new();
        for (index, block) in blocks.iter().enumerate() {
            let before = by_block.len();
            assert_eq!(
                u64::from(block.source),
                keys[by_block.len()] >> target_bits,
                "block {index}"
            );
            assert!(C::decode_block(
                &bytes[block.offset as usize..],
                *block,
                target_bits,
                unpack,
                &mut |base, keys| {
                    by_block.extend(keys.iter().map(|key| (base << target_bits) + u64::from(key)));
                    true
                }
            ));
            assert_eq!(by_block.len() - before, block.edges as usize);
        }
        assert!(by_block == keys, "block by block");
    }
}

fn check_all(keys: &[u64], target_bits: u32) {
    check::<gaps::Gaps>(keys, target_bits);
    check::<words::Words32>(keys, target_bits);
    let sizes = words::sizes(keys, target_bits);
    let length = |encode: fn(&[u64], u32, &mut Vec<u8>, &mut Vec<BlockStart>)| {
        let mut bytes = Vec::new();
        encode(keys, target_bits, &mut bytes, &mut Vec::new());
        bytes.len()
    };
    assert_eq!(length(words::Words32::encode), sizes.wide);
    if let Some(narrow) = sizes.narrow {
        check::<words::Words24>(keys, target_bits);
        assert_eq!(length(words::Words24::encode), narrow);
    }
    let (mut bytes, mut directory, mut buffer) = (Vec::new(), Vec::new(), Vec::new());
    let (packing, plain, blocks) = pack(keys, target_bits, &mut bytes, &mut directory);
    assert_eq!(directory.len(), blocks * DIRECTORY_ROW);
    assert_eq!(Packing::from_byte(packing.to_byte()), Some(packing));
    let plain = plain_bytes(packing, &bytes, plain, &mut buffer).unwrap();
    let mut out = Vec::new();
    let unpack = Unpack::fastest();
    assert!(packing.codec.decode(
        plain,
        keys.len() as u32,
        target_bits,
        unpack,
        &mut |base, keys| {
            out.extend(keys.iter().map(|key| (base << target_bits) + u64::from(key)));
            true
        }
    ));
    assert_eq!(out, keys);
}

#[test]
fn keys_come_back_from_every_codec_and_form() {
    let mut random = Random(1);
    // Miri needs seconds for a hundred keys in all codecs and forms.
    let counts: &[usize] =
        if cfg!(miri) { &[17, 40] } else { &[1, 2, 15, 16, 17, 255, 256, 257, 5000] };
    for &count in counts {
        for usual in [0, 1, 3, 7, 8, 9, 13, 17, 21, 24, 25, 26, 27, 28, 29, 30, 31, 32, 33] {
            if cfg!(miri) && usual % 16 != 1 {
                continue;
            }
            for bits in [usual, usual + 3, 34] {
                let keys = keys(&mut random, count, usual, bits, 16);
                check_all(&keys, 16);
            }
        }
    }
}

#[test]
fn any_number_of_target_bits_works() {
    let mut random = Random(2);
    for target_bits in [1, 4, 12, 16, 18, 20, 24] {
        for usual in [2, 12, 30] {
            let keys =
                keys(&mut random, if cfg!(miri) { 40 } else { 1000 }, usual, 35, target_bits);
            check_all(&keys, target_bits);
        }
    }
}

#[test]
fn extreme_keys_come_back() {
    let top = ((1_u64 << 32) - 1) << 16 | 0xFFFF;
    let many = if cfg!(miri) { 40 } else { 2000 };
    for keys in [
        vec![],
        vec![0],
        vec![top],
        vec![0, top],
        vec![5; many as usize],
        vec![0xFFFF, 0x1_0000, 0x1_0000, top - 1, top],
        // One more than fits in 32 bits above the first source, and one less.
        vec![7, (1 << 32) - 1, 1 << 32],
        (0..many).map(|i| i << 32).collect(),
        (0..many).map(|i| i << 31).collect(),
    ] {
        check_all(&keys, 16);
    }
}

#[test]
#[cfg_attr(miri, ignore = "it has no unsafe code and is long")]
fn the_smallest_codec_is_chosen() {
    let packing = |keys: &[u64]| pack(keys, 16, &mut Vec::new(), &mut Vec::new()).0;
    let mut random = Random(3);
    let dense: Vec<u64> = keys(&mut random, 5000, 10, 14, 16);
    assert_eq!(packing(&dense).name(), "gaps");
    // A few far jumps in each block would each end a block of gaps early.
    let sparse: Vec<u64> = (0..5000).map(|i| i << 30 | random.below(1 << 16)).collect();
    assert_eq!(packing(&sparse).name(), "words32");
    let middling: Vec<u64> = (0..5000).map(|i| (i * 200) << 16 | random.below(1 << 16)).collect();
    assert_eq!(packing(&middling).name(), "words24");
    let regular: Vec<u64> = (0..5000).map(|i| i << 16 | i & 0xFFFF).collect();
    assert_eq!(packing(&regular).name(), "gaps+lz4");
}

/// For any bytes, decoding ends and stays within them, and all forms give the same result.
#[test]
fn broken_bytes_are_refused_or_decoded_alike() {
    let mut random = Random(4);
    for round in 0..if cfg!(miri) { 20 } else { 3000 } {
        let count = 1 + random.below(600) as usize;
        let keys = keys(&mut random, count, 1 + round % 30, 33, 16);
        let (mut bytes, mut blocks) = (Vec::new(), Vec::new());
        let encode = [gaps::Gaps::encode, words::Words32::encode, words::Words24::encode];
        encode[random.below(3) as usize](&keys, 16, &mut bytes, &mut blocks);
        for _ in 0..1 + random.below(3) {
            let at = random.below(bytes.len() as u64) as usize;
            match random.below(3) {
                0 => bytes[at] ^= 1 << random.below(8),
                1 => bytes[at] = random.next() as u8,
                _ => bytes.truncate(at.max(1)),
            }
        }
        compare_forms::<gaps::Gaps>(&bytes, keys.len());
        compare_forms::<words::Words32>(&bytes, keys.len());
        compare_forms::<words::Words24>(&bytes, keys.len());
    }
}

fn compare_forms<C: Code>(bytes: &[u8], edges: usize) {
    let mut expected: Option<(Vec<u64>, bool)> = None;
    for unpack in Unpack::available() {
        let mut out = Vec::new();
        let whole = C::decode(bytes, edges as u32, 16, unpack, &mut |base, keys| {
            assert!(base <= u64::from(u32::MAX), "no segment has a source of {base}");
            out.extend(keys.iter().map(|key| (base << 16) + u64::from(key)));
            true
        });
        let found = (out, whole);
        match &expected {
            None => expected = Some(found),
            Some(expected) => assert_eq!(expected, &found, "{}", unpack.name()),
        }
    }
}

#[test]
fn scatter_refuses_keys_outside() {
    let sources = [1, 2, 3];
    let mut targets = [0; 4];
    let mut sum = |keys: &[u32], bits: u32| {
        let add = |source: i32, target: &mut i32| *target += source;
        let mut keys = keys.to_vec();
        let done = scatter(Keys::ascending(&mut keys).unwrap(), bits, &sources, &mut targets, add);
        (done, targets)
    };
    assert_eq!(sum(&[0, 3, 9, 11], 2), (true, [1, 3, 0, 4]));
    assert!(!sum(&[0, 12], 2).0);
    assert!(!sum(&[0], 3).0);
    assert!(sum(&[], 2).0);
    assert!(Keys::ascending(&mut [1, 0]).is_none());
    assert_eq!(targets, [1, 3, 0, 4], "a refused batch changes nothing");
}
