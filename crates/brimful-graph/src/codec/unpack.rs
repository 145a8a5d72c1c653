//! Unpacking one block of gaps into keys: the scalar reference and its vector forms.
//!
//! A form is chosen once, by what the processor has; all give the same keys (tests compare them on random
//! blocks). This is the one module of the crate with `unsafe`: vector instructions, and [`scatter`].

use super::BATCH;
use super::gaps::{GROUP, HEADER_BYTES, allowed_width};

/// Most exceptions of a block.
pub(super) const MAX_EXCEPTIONS: usize = 255;

/// A block's header, its numbers in range.
pub(super) struct Header {
    /// Source of the first edge, less the segment's first.
    pub(super) source: u32,
    /// Target of the first edge.
    pub(super) target: u32,
    /// Edges, 1 to 256.
    pub(super) count: usize,
    width: u32,
    exceptions: usize,
    high_bytes: usize,
    /// The greatest key of a block without exceptions, once it is unpacked.
    most: u32,
}

impl Header {
    /// The header at the start of `bytes` and what follows it.
    #[inline]
    pub(super) fn read(bytes: &[u8], target_bits: u32) -> Option<(Self, &[u8])> {
        let (raw, rest) = bytes.split_first_chunk::<HEADER_BYTES>()?;
        let word = |at: usize| u32::from_le_bytes([raw[at], raw[at + 1], raw[at + 2], raw[at + 3]]);
        let header = Self {
            source: word(0),
            target: word(4) & 0xFF_FFFF,
            count: (word(4) >> 24) as usize + 1,
            width: u32::from(raw[8]),
            exceptions: usize::from(raw[9]),
            high_bytes: usize::from(raw[10]),
            most: 0,
        };
        let sane = header.width <= 32
            && allowed_width(header.width) == header.width
            && matches!(header.high_bytes, 1 | 2 | 4)
            && header.target >> target_bits == 0;
        sane.then_some((header, rest))
    }

    fn groups(&self) -> usize {
        self.count.div_ceil(GROUP)
    }
}

/// How blocks are unpacked on this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unpack(Form);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Scalar,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    #[cfg(target_arch = "x86_64")]
    Avx512,
}

impl Unpack {
    /// The portable form.
    pub const SCALAR: Self = Self(Form::Scalar);

    /// The fastest form that this processor has.
    pub fn fastest() -> Self {
        Self::available().last().copied().unwrap_or(Self::SCALAR)
    }

    /// The forms that this processor has, slowest first.
    pub fn available() -> Vec<Self> {
        let mut forms = vec![Self::SCALAR];
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        {
            if std::is_x86_feature_detected!("avx2") {
                forms.push(Self(Form::Avx2));
            }
            if std::is_x86_feature_detected!("avx512f")
                && std::is_x86_feature_detected!("avx512bw")
                && std::is_x86_feature_detected!("avx512vbmi")
            {
                forms.push(Self(Form::Avx512));
            }
        }
        forms
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Form::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Form::Avx512 => "avx512",
        }
    }

    /// Unpacks the block whose payload begins `bytes` into the groups of `keys`: gaps if it has exceptions, and
    /// then [`Unpack::add_up`] is to follow, else keys. Returns the bytes after the block.
    ///
    /// The two are apart so that time passes between them: adding up loads in one go what patching stored
    /// piece by piece, which must have left the processor's store buffer by then.
    #[inline]
    pub(super) fn gaps<'b>(
        self,
        header: &mut Header,
        bytes: &'b [u8],
        keys: &mut [u32; BATCH],
    ) -> Option<&'b [u8]> {
        let (packed, rest) = bytes.split_at_checked(header.groups() * 2 * header.width as usize)?;
        let (places, rest) = rest.split_at_checked(header.exceptions)?;
        let (highs, rest) = rest.split_at_checked(header.exceptions * header.high_bytes)?;
        if header.exceptions == 0 {
            header.most = match self.0 {
                Form::Scalar => scalar::<true>(header, packed, keys),
                #[cfg(target_arch = "x86_64")]
                #[expect(unsafe_code, reason = "instructions that were detected")]
                // SAFETY: `available` makes these forms only where the processor has the instructions.
                Form::Avx2 => unsafe { x86::avx2::<true>(header, packed, keys) },
                #[cfg(target_arch = "x86_64")]
                #[expect(unsafe_code, reason = "instructions that were detected")]
                // SAFETY: as above.
                Form::Avx512 => unsafe { x86::avx512::<true>(header, packed, keys) },
            };
            return Some(rest);
        }
        match self.0 {
            Form::Scalar => scalar::<false>(header, packed, keys),
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "instructions that were detected")]
            // SAFETY: as above.
            Form::Avx2 => unsafe { x86::avx2::<false>(header, packed, keys) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "instructions that were detected")]
            // SAFETY: as above.
            Form::Avx512 => unsafe { x86::avx512::<false>(header, packed, keys) },
        };
        patch(header, places, highs, keys);
        Some(rest)
    }

    /// Makes keys of what [`Unpack::gaps`] left of a block.
    #[inline]
    pub(super) fn add_up<'k>(self, header: &Header, keys: &'k mut [u32; BATCH]) -> Keys<'k> {
        let most = match self.0 {
            _ if header.exceptions == 0 => header.most,
            Form::Scalar => add_up(header, keys),
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "instructions that were detected")]
            // SAFETY: as above.
            Form::Avx2 => unsafe { x86::add_up_avx2(header, keys) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "instructions that were detected")]
            // SAFETY: as above.
            Form::Avx512 => unsafe { x86::add_up_avx512(header, keys) },
        };
        Keys { keys: &keys[..header.count], most }
    }
}

/// Keys of a batch. Invariant: none is above `most`.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'k> {
    keys: &'k [u32],
    most: u32,
}

impl<'k> Keys<'k> {
    /// Keys that ascend; `None` if they do not.
    pub(super) fn ascending(keys: &'k [u32]) -> Option<Self> {
        keys.is_sorted().then_some(Self { keys, most: keys.last().copied().unwrap_or(0) })
    }
}

impl std::ops::Deref for Keys<'_> {
    type Target = [u32];
    fn deref(&self) -> &[u32] {
        self.keys
    }
}

/// Adds the high parts of the exceptions above the width.
#[inline]
fn patch(header: &Header, places: &[u8], highs: &[u8], keys: &mut [u32; BATCH]) {
    let mut add = |place: u8, high: u32| {
        let key = &mut keys[usize::from(place)];
        *key = key.wrapping_add(high.wrapping_shl(header.width));
    };
    let places = places.iter().copied();
    match header.high_bytes {
        1 => places.zip(highs).for_each(|(place, &high)| add(place, u32::from(high))),
        2 => places
            .zip(highs.as_chunks().0)
            .for_each(|(place, high)| add(place, u32::from(u16::from_le_bytes(*high)))),
        _ => places.zip(highs.as_chunks().0).for_each(|(place, high)| add(place, u32::from_le_bytes(*high))),
    }
}

/// Gaps become keys. Returns the greatest.
fn add_up(header: &Header, keys: &mut [u32; BATCH]) -> u32 {
    let (mut sum, mut most) = (header.target, 0);
    for key in &mut keys[..header.groups() * GROUP] {
        sum = sum.wrapping_add(*key);
        most = most.max(sum);
        *key = sum;
    }
    most
}

/// The reference. Gaps, or keys if they `ADD` up; then the greatest.
fn scalar<const ADD: bool>(header: &Header, packed: &[u8], keys: &mut [u32; BATCH]) -> u32 {
    extract(header.width, packed, &mut keys[..header.groups() * GROUP]);
    if ADD { add_up(header, keys) } else { 0 }
}

/// Reads numbers of `width` bits each from the start of a bit stream.
fn extract(width: u32, packed: &[u8], out: &mut [u32]) {
    let low = (1_u64 << width) - 1;
    let (mut bits, mut held, mut bytes) = (0_u64, 0, packed.iter());
    for number in out {
        while held < width {
            // The caller has cut off exactly the bytes that the groups need.
            bits |= u64::from(bytes.next().copied().unwrap_or_default()) << held;
            held += 8;
        }
        *number = (bits & low) as u32;
        bits >>= width;
        held -= width;
    }
}

/// Bits of a target in graphs on disk, for which there is a loop of its own: shifts by a number known when
/// it is compiled are cheaper.
const USUAL_BITS: u32 = 16;

/// Calls `f` with the source's and the target's element of each key: `sources[key >> target_bits]` and
/// `targets[key & mask]`, in order. False, and nothing was done, if a key leads outside of either.
#[inline(always)]
pub fn scatter<A: Copy, B>(
    keys: Keys<'_>,
    target_bits: u32,
    sources: &[A],
    targets: &mut [B],
    f: impl FnMut(A, &mut B),
) -> bool {
    if (keys.most >> target_bits) as usize >= sources.len() || targets.len() >> target_bits == 0 {
        return keys.is_empty();
    }
    if target_bits == USUAL_BITS {
        scatter_within(&keys, USUAL_BITS, sources, targets, f);
    } else {
        scatter_within(&keys, target_bits, sources, targets, f);
    }
    true
}

/// [`scatter`], the keys having been checked.
#[inline(always)]
#[expect(unsafe_code, reason = "two checks an edge cost a tenth of a superstep")]
fn scatter_within<A: Copy, B>(
    keys: &[u32],
    target_bits: u32,
    sources: &[A],
    targets: &mut [B],
    mut f: impl FnMut(A, &mut B),
) {
    let mask = (1_u32 << target_bits) - 1;
    for &key in keys {
        // SAFETY: `scatter` found the source of the greatest key in range, and every target below
        // 2^target_bits. The safe line:
        // `f(sources[(key >> target_bits) as usize], &mut targets[(key & mask) as usize])`.
        unsafe {
            let source = *sources.get_unchecked((key >> target_bits) as usize);
            f(source, targets.get_unchecked_mut((key & mask) as usize));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! Each lane of 32 bits gets the 4 bytes that hold its gap by a byte shuffle, then shifts and masks.

    use std::arch::x86_64::*;

    use super::{BATCH, GROUP, Header, extract};

    /// For each width, where in a group each lane's 4 bytes are, and by how much to shift them.
    struct Tables {
        bytes: [[u8; 64]; 33],
        shifts: [[u32; 16]; 33],
        /// The same for halves of a group, whose second 4 gaps begin at byte `width / 2` of the half.
        half_bytes: [[u8; 32]; 33],
        half_shifts: [[u32; 8]; 33],
    }

    static TABLES: Tables = tables();

    const fn tables() -> Tables {
        let mut t = Tables {
            bytes: [[0; 64]; 33],
            shifts: [[0; 16]; 33],
            half_bytes: [[0; 32]; 33],
            half_shifts: [[0; 8]; 33],
        };
        let mut width = 0;
        while width <= 32 {
            let mut lane = 0;
            while lane < 16 {
                let bit = lane * width;
                t.shifts[width][lane] = (bit % 8) as u32;
                let mut byte = 0;
                while byte < 4 {
                    let at = bit / 8 + byte;
                    t.bytes[width][lane * 4 + byte] = if at < 64 { at as u8 } else { 63 };
                    byte += 1;
                }
                lane += 1;
            }
            let mut lane = 0;
            while lane < 8 {
                let (quarter, of_quarter) = (lane / 4, lane % 4);
                let bit = (quarter * 4 * width) % 8 + of_quarter * width;
                t.half_shifts[width][lane] = (bit % 8) as u32;
                let mut byte = 0;
                while byte < 4 {
                    let at = bit / 8 + byte;
                    t.half_bytes[width][lane * 4 + byte] = if at < 16 { at as u8 } else { 15 };
                    byte += 1;
                }
                lane += 1;
            }
            width += 1;
        }
        t
    }

    #[expect(unsafe_code, reason = "vector loads and stores")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn avx512<const ADD: bool>(header: &Header, packed: &[u8], keys: &mut [u32; BATCH]) -> u32 {
        let width = header.width as usize;
        // SAFETY: the arrays have 64 bytes; unaligned loads.
        let (places, shifts) = unsafe {
            (
                _mm512_loadu_si512(TABLES.bytes[width].as_ptr().cast()),
                _mm512_loadu_si512(TABLES.shifts[width].as_ptr().cast()),
            )
        };
        let low = _mm512_set1_epi32(((1_u64 << width) - 1) as i32);
        let bytes = if width == 32 { u64::MAX } else { (1 << (2 * width)) - 1 };
        let mut sum = _mm512_set1_epi32(header.target.cast_signed());
        let mut most = _mm512_setzero_si512();
        for group in 0..header.groups() {
            let from = &packed[group * 2 * width..(group + 1) * 2 * width];
            let to = &mut keys[group * GROUP..(group + 1) * GROUP];
            // SAFETY: only the bytes of `from`, 2 * width of them, are loaded; `to` has 16 numbers.
            unsafe {
                let group = _mm512_maskz_loadu_epi8(bytes, from.as_ptr().cast());
                let lanes = _mm512_permutexvar_epi8(places, group);
                let gaps = _mm512_and_si512(_mm512_srlv_epi32(lanes, shifts), low);
                if ADD {
                    let keys = _mm512_add_epi32(prefix_avx512(gaps), sum);
                    most = _mm512_max_epu32(most, keys);
                    sum = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), keys);
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), keys);
                } else {
                    _mm512_storeu_si512(to.as_mut_ptr().cast(), gaps);
                }
            }
        }
        _mm512_reduce_max_epu32(most)
    }

    /// Each lane becomes the sum of itself and those below.
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn prefix_avx512(mut x: __m512i) -> __m512i {
        let zero = _mm512_setzero_si512();
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<15>(x, zero));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<14>(x, zero));
        x = _mm512_add_epi32(x, _mm512_alignr_epi32::<12>(x, zero));
        _mm512_add_epi32(x, _mm512_alignr_epi32::<8>(x, zero))
    }

    #[expect(unsafe_code, reason = "vector loads and stores")]
    #[target_feature(enable = "avx512f")]
    pub(super) fn add_up_avx512(header: &Header, keys: &mut [u32; BATCH]) -> u32 {
        let mut sum = _mm512_set1_epi32(header.target.cast_signed());
        let mut most = _mm512_setzero_si512();
        for group in keys.chunks_exact_mut(GROUP).take(header.groups()) {
            // SAFETY: the chunk has 16 numbers.
            unsafe {
                let gaps = _mm512_loadu_si512(group.as_ptr().cast());
                let keys = _mm512_add_epi32(prefix_avx512(gaps), sum);
                most = _mm512_max_epu32(most, keys);
                sum = _mm512_permutexvar_epi32(_mm512_set1_epi32(15), keys);
                _mm512_storeu_si512(group.as_mut_ptr().cast(), keys);
            }
        }
        _mm512_reduce_max_epu32(most)
    }

    #[expect(unsafe_code, reason = "vector loads and stores")]
    #[target_feature(enable = "avx2")]
    pub(super) fn avx2<const ADD: bool>(header: &Header, packed: &[u8], keys: &mut [u32; BATCH]) -> u32 {
        let width = header.width as usize;
        // SAFETY: the arrays have 32 bytes; unaligned loads.
        let (places, shifts) = unsafe {
            (
                _mm256_loadu_si256(TABLES.half_bytes[width].as_ptr().cast()),
                _mm256_loadu_si256(TABLES.half_shifts[width].as_ptr().cast()),
            )
        };
        let low = _mm256_set1_epi32(((1_u64 << width) - 1) as i32);
        let mut sum = _mm256_set1_epi32(header.target.cast_signed());
        let mut most = _mm256_setzero_si256();
        for half in 0..2 * header.groups() {
            let to = &mut keys[half * 8..half * 8 + 8];
            let second = half * width + width / 2;
            let gaps = if let (Some(a), Some(b)) =
                (packed.get(half * width..half * width + 16), packed.get(second..second + 16))
            {
                // SAFETY: both slices have 16 bytes.
                let lanes = unsafe {
                    _mm256_set_m128i(_mm_loadu_si128(b.as_ptr().cast()), _mm_loadu_si128(a.as_ptr().cast()))
                };
                let lanes = _mm256_shuffle_epi8(lanes, places);
                _mm256_and_si256(_mm256_srlv_epi32(lanes, shifts), low)
            } else {
                // The last halves of a block end before 16 bytes.
                let mut gaps = [0; 8];
                extract(header.width, &packed[half * width..], &mut gaps);
                // SAFETY: the array has 32 bytes.
                unsafe { _mm256_loadu_si256(gaps.as_ptr().cast()) }
            };
            let out = if ADD {
                let keys = _mm256_add_epi32(prefix_avx2(gaps), sum);
                most = _mm256_max_epu32(most, keys);
                sum = _mm256_permutevar8x32_epi32(keys, _mm256_set1_epi32(7));
                keys
            } else {
                gaps
            };
            // SAFETY: `to` has 8 numbers.
            unsafe { _mm256_storeu_si256(to.as_mut_ptr().cast(), out) };
        }
        greatest(most)
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn greatest(x: __m256i) -> u32 {
        let x = _mm_max_epu32(_mm256_castsi256_si128(x), _mm256_extracti128_si256::<1>(x));
        let x = _mm_max_epu32(x, _mm_shuffle_epi32::<0b0100_1110>(x));
        let x = _mm_max_epu32(x, _mm_shuffle_epi32::<0b1011_0001>(x));
        _mm_cvtsi128_si32(x).cast_unsigned()
    }

    #[inline]
    #[target_feature(enable = "avx2")]
    fn prefix_avx2(mut x: __m256i) -> __m256i {
        x = _mm256_add_epi32(x, _mm256_slli_si256::<4>(x));
        x = _mm256_add_epi32(x, _mm256_slli_si256::<8>(x));
        // The sum of the lower half goes to all of the upper.
        let lower = _mm256_permutevar8x32_epi32(x, _mm256_set1_epi32(3));
        _mm256_add_epi32(x, _mm256_blend_epi32::<0xF0>(_mm256_setzero_si256(), lower))
    }

    #[expect(unsafe_code, reason = "vector loads and stores")]
    #[target_feature(enable = "avx2")]
    pub(super) fn add_up_avx2(header: &Header, keys: &mut [u32; BATCH]) -> u32 {
        let mut sum = _mm256_set1_epi32(header.target.cast_signed());
        let mut most = _mm256_setzero_si256();
        for half in keys.chunks_exact_mut(8).take(2 * header.groups()) {
            // SAFETY: the chunk has 8 numbers.
            unsafe {
                let gaps = _mm256_loadu_si256(half.as_ptr().cast());
                let keys = _mm256_add_epi32(prefix_avx2(gaps), sum);
                most = _mm256_max_epu32(most, keys);
                sum = _mm256_permutevar8x32_epi32(keys, _mm256_set1_epi32(7));
                _mm256_storeu_si256(half.as_mut_ptr().cast(), keys);
            }
        }
        greatest(most)
    }
}
