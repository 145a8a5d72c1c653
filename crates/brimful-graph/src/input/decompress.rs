//! Decompresses gzip, xz, zstd and bzip2, recognized by their first bytes, within a memory limit.

use std::io::{self, Chain, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use brimful_store::external::open_input;
use brimful_store::{Error as StoreError, Job};
use bzip2::bufread::MultiBzDecoder;
use flate2::read::MultiGzDecoder;
use liblzma::read::XzDecoder;
use liblzma::stream::{Action, CONCATENATED, Stream};

use crate::error::{Error, Result};

const LONGEST_MAGIC: usize = 6;
/// The most bytes of the headers of a .xz file and of its first block; those of zstd are shorter.
const LONGEST_HEADER: u64 = 12 + 1024;
/// The largest window of zstd without its flag for long distances, as a power of two.
const MAX_WINDOW_LOG: u32 = 27;

/// The first bytes of a regular file, which show its compression.
///
/// # Errors
/// I/O errors.
pub fn first_bytes(path: &Path, job: &Arc<Job>) -> Result<Vec<u8>> {
    let mut start = Vec::new();
    let read = open_input(path, job)?.take(LONGEST_MAGIC as u64).read_to_end(&mut start);
    read.map_err(|e| read_error(path, e))?;
    Ok(start)
}

/// True if [`open`] decompresses a file with these first bytes.
pub fn is_compressed(start: &[u8]) -> bool {
    compression(start).is_some()
}

/// The compression of a file with these first bytes, as its name ends: `gz`, `xz`, `zst` or `bz2`;
/// `None` if it has none.
pub fn compression(start: &[u8]) -> Option<&'static str> {
    let known = [
        (is_gzip(start), "gz"),
        (start.starts_with(&XZ), "xz"),
        (start.starts_with(&ZSTD), "zst"),
        (is_bzip2(start), "bz2"),
    ];
    known.into_iter().find_map(|(is_its, name)| is_its.then_some(name))
}

/// True for a gzip file, whose third byte is the only method of compression, deflate.
pub(crate) fn is_gzip(start: &[u8]) -> bool {
    start.starts_with(&[0x1F, 0x8B, 8])
}

/// True for `BZh`, the block size, and the number that begins a block (pi) or ends an empty file
/// (the square root of pi).
fn is_bzip2(start: &[u8]) -> bool {
    matches!(
        start,
        [b'B', b'Z', b'h', b'1'..=b'9', 0x31, 0x41, ..]
            | [b'B', b'Z', b'h', b'1'..=b'9', 0x17, 0x72, ..]
    )
}

const XZ: [u8; 6] = [0xFD, b'7', b'z', b'X', b'Z', 0];
const ZSTD: [u8; 4] = [0x28, 0xB5, 0x2F, 0xFD];

/// Bytes of memory that the decoder of a file takes for its first block, as far as the format says;
/// 0 for standard input, which cannot be read twice.
///
/// # Errors
/// I/O errors.
pub fn decoder_bytes(path: &Path, job: &Arc<Job>) -> Result<u64> {
    if path == Path::new("-") || !path.is_file() {
        return Ok(0);
    }
    let mut start = Vec::new();
    let read = open_input(path, job)?.take(LONGEST_HEADER).read_to_end(&mut start);
    read.map_err(|e| read_error(path, e))?;
    Ok(match start.as_slice() {
        start if start.starts_with(&XZ) => bytes_of_xz(start),
        start if start.starts_with(&ZSTD) => window_of_zstd(start),
        _ => 0,
    })
}

/// Bytes that the decoder takes for the first block of a .xz file; 0 if its header is broken.
fn bytes_of_xz(start: &[u8]) -> u64 {
    use liblzma::stream::Error::MemLimit;
    let Ok(mut stream) = Stream::new_stream_decoder(1, 0) else { return 0 };
    if stream.process(start, &mut [], Action::Run) != Err(MemLimit) {
        return 0;
    }
    // The decoder refuses each limit below its use.
    let (mut too_small, mut enough) = (1, u64::MAX);
    while enough - too_small > 1 {
        let middle = too_small + (enough - too_small) / 2;
        match stream.set_memlimit(middle) {
            Ok(()) => enough = middle,
            Err(_) => too_small = middle,
        }
    }
    enough
}

/// Bytes of the window of a zstd frame, rounded up to a power of two; 0 if the decoder refuses the
/// window on any budget, or if there is none.
fn window_of_zstd(start: &[u8]) -> u64 {
    // RFC 8878, 3.1.1.1.2. A frame of a single segment has its content instead of a window.
    let (Some(descriptor), Some(byte)) = (start.get(4), start.get(5)) else { return 0 };
    if descriptor & 0x20 != 0 {
        return 0;
    }
    let base = 1_u64 << (10 + (byte >> 3));
    let window = (base + base / 8 * u64::from(byte & 7)).next_power_of_two();
    if window > 1 << MAX_WINDOW_LOG { 0 } else { window }
}

/// Wraps `reader` in the decoder for its first bytes.
pub fn open(
    mut reader: Box<dyn Read + Send>,
    path: &Path,
    memory_bytes: u64,
) -> Result<Box<dyn Read + Send>> {
    let mut start = Vec::new();
    reader
        .by_ref()
        .take(LONGEST_MAGIC as u64)
        .read_to_end(&mut start)
        .map_err(|e| read_error(path, e))?;
    let magic = start.clone();
    let whole: Chain<_, _> = Cursor::new(start).chain(reader);
    let fail = |e| StoreError::io(path, "decompress", e);
    Ok(match magic.as_slice() {
        magic if is_gzip(magic) => {
            Box::new(MultiGzDecoder::new(io::BufReader::with_capacity(256 << 10, whole)))
        }
        magic if magic.starts_with(&XZ) => {
            let stream = Stream::new_stream_decoder(memory_bytes, CONCATENATED)
                .map_err(|e| fail(e.into()))?;
            Box::new(XzDecoder::new_stream(whole, stream))
        }
        magic if magic.starts_with(&ZSTD) => {
            let mut decoder = zstd::Decoder::new(whole).map_err(fail)?;
            let window_log = memory_bytes.max(1 << 20).ilog2().min(MAX_WINDOW_LOG);
            decoder.window_log_max(window_log).map_err(fail)?;
            Box::new(decoder)
        }
        magic if is_bzip2(magic) => {
            Box::new(MultiBzDecoder::new(io::BufReader::with_capacity(256 << 10, whole)))
        }
        _ => Box::new(whole),
    })
}

/// The error of a failed read: a truncated or broken archive is an input error, any other an I/O
/// error.
pub fn read_error(path: &Path, error: io::Error) -> Error {
    if matches!(error.get_ref().and_then(|e| e.downcast_ref()), Some(StoreError::Interrupted)) {
        return StoreError::Interrupted.into();
    }
    let problem = match error.kind() {
        io::ErrorKind::UnexpectedEof => {
            "the compressed file ends too early: it was cut, or other bytes follow its end"
                .to_owned()
        }
        io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData => {
            format!("the compressed file is broken: {error}")
        }
        _ if error.raw_os_error().is_none() => format!("it cannot be decompressed: {error}"),
        _ => return StoreError::io(path, "read", error).into(),
    };
    Error::input(path, problem)
}
