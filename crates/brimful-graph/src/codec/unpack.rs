//! Unpacking of one block of gaps into keys: the scalar reference and its vector forms.
//!
//! The form is chosen once, by the instruction sets of the processor. All forms give the same keys;
//! tests compare them on random blocks. This is the only module of the crate with `unsafe`: for
//! vector instructions, and in [`scatter`].

use super::BATCH;
use super::gaps::{GROUP, HEADER_BYTES, allowed_width};

/// The maximum number of exceptions in a block.
pub(super) const MAX_EXCEPTIONS: usize = 255;

/// A block's header, with numbers in range.
pub(super) struct Header {
    /// Source of the first edge, relative to the segment's first source.
    pub(super) source: u32,
    /// Target of the first edge.
    pub(super) target: u32,
    /// Number of edges, 1 to 256.
    pub(super) count: usize,
    width: u32,
    exceptions: usize,
    high_bytes: usize,
}

impl Header {
    /// Reads the header at the start of `bytes`; also returns the bytes after it.
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
        };
        let sane = header.width <= 32
            && allowed_width(header.width) == header.width
            && matches!(header.high_bytes, 1 | 2 | 4)
            && header.target >> target_bits == 0;
        sane.then_some((header, rest))
    }

    /// Bytes of the block after the header.
    pub(super) fn payload_bytes(&self) -> usize {
        self.packed_bytes() + self.exceptions * (1 + self.high_bytes)
    }

    fn packed_bytes(&self) -> usize {
        self.groups() * 2 * self.width as usize
    }

    fn groups(&self) -> usize {
        self.count.div_ceil(GROUP)
    }
}

/// The form of unpacking in use on this machine.
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

    /// The fastest form for this processor.
    pub fn fastest() -> Self {
        Self::available().last().copied().unwrap_or(Self::SCALAR)
    }

    /// The forms that this processor supports, slowest first.
    pub fn available() -> Vec<Self> {
        #[cfg_attr(
            any(not(target_arch = "x86_64"), miri),
            expect(unused_mut, reason = "other forms are for x86-64")
        )]
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

    /// The name.
    pub fn name(self) -> &'static str {
        match self.0 {
            Form::Scalar => "scalar",
            #[cfg(target_arch = "x86_64")]
            Form::Avx2 => "avx2",
            #[cfg(target_arch = "x86_64")]
            Form::Avx512 => "avx512",
        }
    }

    /// Unpacks the gaps of the block whose payload is at the start of `bytes` into the groups of
    /// `gaps`. Returns the greatest key and the bytes after the block.
    #[inline]
    pub(super) fn gaps<'b>(
        self,
        header: &Header,
        bytes: &'b [u8],
        gaps: &mut [u32; BATCH],
    ) -> Option<(u32, &'b [u8])> {
        let (packed, rest) = bytes.split_at_checked(header.packed_bytes())?;
        let (places, rest) = rest.split_at_checked(header.exceptions)?;
        let (highs, rest) = rest.split_at_checked(header.exceptions * header.high_bytes)?;
        let gaps_sum = match self.0 {
            Form::Scalar => scalar(header, packed, gaps),
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "instructions that were detected")]
            // SAFETY: `available` offers this form only if the processor has its instructions.
            Form::Avx2 => unsafe { x86::avx2(header, packed, gaps) },
            #[cfg(target_arch = "x86_64")]
            #[expect(unsafe_code, reason = "instructions that were detected")]
            // SAFETY: as above.
            Form::Avx512 => unsafe { x86::avx512(header, packed, gaps) },
        };
        // This sum does not wrap, and it bounds every key and every gap.
        let most =
            patch(header, places, highs, gaps).saturating_add(gaps_sum + u64::from(header.target));
        Some((u32::try_from(most).ok()?, rest))
    }
}

/// Keys that [`Keys::skip_below`] leaves out at a time.
const SKIPPED_AT_ONCE: usize = 16;

/// The keys of a batch: a start, and the gaps from it to the first key and between keys. Invariant:
/// no key is above `most`.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'k> {
    first: u32,
    gaps: &'k [u32],
    most: u32,
}

impl<'k> Keys<'k> {
    /// The keys of an unpacked block.
    pub(super) fn of_block(header: &Header, gaps: &'k [u32; BATCH], most: u32) -> Self {
        Self { first: header.target, gaps: &gaps[..header.count], most }
    }

    /// Turns ascending keys into gaps in place; `None` if they do not ascend.
    pub(super) fn ascending(keys: &'k mut [u32]) -> Option<Self> {
        let (first, most) = (keys.first().copied().unwrap_or(0), keys.last().copied().unwrap_or(0));
        let mut last = first;
        for key in keys.iter_mut() {
            let gap = key.checked_sub(last)?;
            last = std::mem::replace(key, gap);
        }
        Some(Self { first, gaps: keys, most })
    }

    /// Number of keys.
    pub fn len(&self) -> usize {
        self.gaps.len()
    }

    /// True if there are no keys.
    pub fn is_empty(&self) -> bool {
        self.gaps.is_empty()
    }

    /// The range of sources, relative to the base, that contains the source of every key.
    #[inline]
    pub fn sources(&self, target_bits: u32) -> std::ops::Range<usize> {
        (self.first >> target_bits) as usize..(self.most >> target_bits) as usize + 1
    }

    /// The keys, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<'k> {
        let mut key = self.first;
        self.gaps.iter().map(move |gap| {
            // `most` bounds the sum of `first` and all gaps.
            key = key.wrapping_add(*gap);
            key
        })
    }

    /// The number of leading keys that are left out because all of them are below `bound`, and the
    /// other keys. Some of these may be below it too: keys are left out in groups.
    #[inline]
    pub fn skip_below(&self, bound: u64) -> (usize, Self) {
        let (mut skipped, mut first) = (0, self.first);
        for group in self.gaps.chunks_exact(SKIPPED_AT_ONCE) {
            let last = group.iter().fold(first, |key, gap| key.wrapping_add(*gap));
            if u64::from(last) >= bound {
                break;
            }
            (skipped, first) = (skipped + SKIPPED_AT_ONCE, last);
        }
        (skipped, Self { first, gaps: &self.gaps[skipped..], most: self.most })
    }
}

/// Adds the high parts of the exceptions, above the width; returns the sum of the added values.
#[inline]
fn patch(header: &Header, places: &[u8], highs: &[u8], gaps: &mut [u32; BATCH]) -> u64 {
    let mut sum = 0_u64;
    let mut add = |place: u8, high: u32| {
        let high = u64::from(high) << header.width;
        sum = sum.saturating_add(high);
        let gap = &mut gaps[usize::from(place)];
        // If this wraps, the sum exceeds 32 bits and the block is refused.
        *gap = gap.wrapping_add(high as u32);
    };
    let places = places.iter().copied();
    match header.high_bytes {
        1 => places.zip(highs).for_each(|(place, &high)| add(place, u32::from(high))),
        2 => places
            .zip(highs.as_chunks().0)
            .for_each(|(place, high)| add(place, u32::from(u16::from_le_bytes(*high)))),
        _ => places
            .zip(highs.as_chunks().0)
            .for_each(|(place, high)| add(place, u32::from_le_bytes(*high))),
    }
    sum
}

/// The scalar reference. Returns the sum of the gaps.
fn scalar(header: &Header, packed: &[u8], gaps: &mut [u32; BATCH]) -> u64 {
    let gaps = &mut gaps[..header.groups() * GROUP];
    extract(header.width, packed, gaps);
    sum_of(gaps)
}

fn sum_of(gaps: &[u32]) -> u64 {
    gaps.iter().map(|&gap| u64::from(gap)).sum()
}

/// Reads numbers of `width` bits each from the start of a bit stream.
fn extract(width: u32, packed: &[u8], out: &mut [u32]) {
    let low = (1_u64 << width) - 1;
    let (mut bits, mut filled, mut bytes) = (0_u64, 0, packed.iter());
    for number in out {
        while filled < width {
            // The caller has cut the bytes to the exact length of the groups.
            bits |= u64::from(bytes.next().copied().unwrap_or_default()) << filled;
            filled += 8;
        }
        *number = (bits & low) as u32;
        bits >>= width;
        filled -= width;
    }
}

/// Bits of a target in graphs on disk. A loop of its own serves this number, because shifts by a
/// constant are cheaper.
const USUAL_BITS: u32 = 16;

/// Calls `f` with the elements of source and target of each key, `sources[key >> target_bits]` and
/// `targets[key & mask]`, in order. Returns false without any call if a key is outside one of the
/// slices.
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
        scatter_within(keys, USUAL_BITS, sources, targets, f);
    } else {
        scatter_within(keys, target_bits, sources, targets, f);
    }
    true
}

/// [`scatter`] after the check of keys.
#[inline(always)]
#[expect(unsafe_code, reason = "two checks an edge cost a tenth of a superstep")]
fn scatter_within<A: Copy, B>(
    keys: Keys<'_>,
    target_bits: u32,
    sources: &[A],
    targets: &mut [B],
    mut f: impl FnMut(A, &mut B),
) {
    let mask = (1_u32 << target_bits) - 1;
    for key in keys.iter() {
        // SAFETY: `scatter` checked that the source of the greatest key and all targets below
        // 2^target_bits are in range. By the invariant of `Keys`, no key is above the greatest. The
        // safe line: `f(sources[(key >> target_bits) as usize], &mut targets[(key & mask) as
        // usize])`.
        unsafe {
            let source = *sources.get_unchecked((key >> target_bits) as usize);
            f(source, targets.get_unchecked_mut((key & mask) as usize));
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    //! A byte shuffle moves the 4 bytes that hold a gap into each lane of 32 bits; the lane then
    //! shifts and masks them.

    use std::arch::x86_64::*;

    use super::{BATCH, GROUP, Header, extract, sum_of};

    /// For each width: the offsets of each lane's 4 bytes in a group, and their shifts.
    struct Tables {
        bytes: [[u8; 64]; 33],
        shifts: [[u32; 16]; 33],
        /// The same for halves of a group: the second 4 gaps begin at byte `width / 2` of the half.
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

    /// Bytes by which prefetching runs ahead. The scattering in between keeps the processor from
    /// prefetching in time by itself, which costs a fifth of a superstep; distances of 512 to 4096
    /// measured alike.
    const AHEAD: usize = 1024;

    /// The maximum width at which the sum of 16 gaps in each lane fits in 32 bits.
    const SUMMABLE: usize = 23;

    #[expect(unsafe_code, reason = "vector loads and stores")]
    #[target_feature(enable = "avx512f,avx512bw,avx512vbmi")]
    pub(super) fn avx512(header: &Header, packed: &[u8], gaps: &mut [u32; BATCH]) -> u64 {
        let width = header.width as usize;
        // SAFETY: unaligned loads from arrays of 64 bytes.
        let (places, shifts) = unsafe {
            (
                _mm512_loadu_si512(TABLES.bytes[width].as_ptr().cast()),
                _mm512_loadu_si512(TABLES.shifts[width].as_ptr().cast()),
            )
        };
        let low = _mm512_set1_epi32(((1_u64 << width) - 1) as i32);
        let bytes = if width == 32 { u64::MAX } else { (1 << (2 * width)) - 1 };
        let mut sums = _mm512_setzero_si512();
        for group in 0..header.groups() {
            let from = &packed[group * 2 * width..(group + 1) * 2 * width];
            let to = &mut gaps[group * GROUP..(group + 1) * GROUP];
            // SAFETY: the loads are limited to the 2 * width bytes of `from`; a prefetch never
            // faults; `to` has 16 numbers.
            unsafe {
                _mm_prefetch::<_MM_HINT_T0>(from.as_ptr().wrapping_add(AHEAD).cast());
                let group = _mm512_maskz_loadu_epi8(bytes, from.as_ptr().cast());
                let lanes = _mm512_permutexvar_epi8(places, group);
                let gaps = _mm512_and_si512(_mm512_srlv_epi32(lanes, shifts), low);
                sums = _mm512_add_epi32(sums, gaps);
                _mm512_storeu_si512(to.as_mut_ptr().cast(), gaps);
            }
        }
        if width > SUMMABLE {
            return sum_of(&gaps[..header.groups() * GROUP]);
        }
        u64::from(_mm512_reduce_add_epi32(sums).cast_unsigned())
    }

    #[expect(unsafe_code, reason = "vector loads and stores")]
    #[target_feature(enable = "avx2")]
    pub(super) fn avx2(header: &Header, packed: &[u8], gaps: &mut [u32; BATCH]) -> u64 {
        let width = header.width as usize;
        // SAFETY: unaligned loads from arrays of 32 bytes.
        let (places, shifts) = unsafe {
            (
                _mm256_loadu_si256(TABLES.half_bytes[width].as_ptr().cast()),
                _mm256_loadu_si256(TABLES.half_shifts[width].as_ptr().cast()),
            )
        };
        let low = _mm256_set1_epi32(((1_u64 << width) - 1) as i32);
        for half in 0..2 * header.groups() {
            let to = &mut gaps[half * 8..half * 8 + 8];
            let second = half * width + width / 2;
            let (Some(a), Some(b)) =
                (packed.get(half * width..half * width + 16), packed.get(second..second + 16))
            else {
                // Fewer than 16 bytes remain for the last halves of a block.
                extract(header.width, &packed[half * width..], to);
                continue;
            };
            // SAFETY: both slices have 16 bytes and `to` has 8 numbers; a prefetch never faults.
            unsafe {
                let lanes = _mm256_set_m128i(
                    _mm_loadu_si128(b.as_ptr().cast()),
                    _mm_loadu_si128(a.as_ptr().cast()),
                );
                _mm_prefetch::<_MM_HINT_T0>(a.as_ptr().wrapping_add(AHEAD).cast());
                let lanes = _mm256_shuffle_epi8(lanes, places);
                let gaps = _mm256_and_si256(_mm256_srlv_epi32(lanes, shifts), low);
                _mm256_storeu_si256(to.as_mut_ptr().cast(), gaps);
            }
        }
        sum_of(&gaps[..header.groups() * GROUP])
    }
}
