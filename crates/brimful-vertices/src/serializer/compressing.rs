//! Any serializer, with compression.
//!
//! Small records often become larger when compressed (the thesis: 117 bytes became 122); such
//! records are stored uncompressed. Record: mark; method, or 0 for none; uncompressed length;
//! bytes.

use brimful_store::wording::counted;
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress};
use zstd::bulk::{Compressor, Decompressor};

use super::{Serializer, after_mark, broken};
use crate::field::take;
use crate::vertex::Stored;
use brimful_store::varint::{read_varint, write_varint};

const MARK: u8 = 0xCE;
const PLAIN: u8 = 0;

/// A compression method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// Fast, with little compression.
    Lz4 = 1,
    /// Slower, with more compression.
    Zstd = 2,
    /// The slowest.
    Zlib = 3,
}

impl Method {
    /// All methods with their names.
    pub const ALL: [(&'static str, Self); 3] =
        [("lz4", Self::Lz4), ("zstd", Self::Zstd), ("zlib", Self::Zlib)];

    fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, method)| *method == self).map_or("", |(name, _)| name)
    }

    /// The maximum number of uncompressed bytes for a compressed byte: a record that claims more is
    /// damaged.
    fn most(self) -> usize {
        match self {
            Self::Lz4 => 255,
            // A block of 4 bytes can expand to 128 KiB.
            Self::Zstd => 1 << 15,
            Self::Zlib => 1032,
        }
    }
}

enum CompressorState {
    Lz4,
    Zstd(Compressor<'static>, Decompressor<'static>),
    Zlib(Box<(Compress, Decompress)>),
}

/// A serializer whose records are compressed.
pub struct Compressing<S> {
    inner: S,
    method: Method,
    codec: CompressorState,
    /// The uncompressed record.
    plain: Vec<u8>,
}

impl<S> Compressing<S> {
    /// Compresses the records of `inner`.
    ///
    /// # Errors
    /// [`crate::Error::Usage`] if there is no memory for the compressor.
    pub fn new(inner: S, method: Method) -> crate::Result<Self> {
        let fail = |e| crate::Error::Usage(format!("cannot begin to compress: {e}"));
        let codec = match method {
            Method::Lz4 => CompressorState::Lz4,
            Method::Zstd => CompressorState::Zstd(
                Compressor::new(1).map_err(fail)?,
                Decompressor::new().map_err(fail)?,
            ),
            Method::Zlib => CompressorState::Zlib(Box::new((
                Compress::new(Compression::fast(), true),
                Decompress::new(true),
            ))),
        };
        Ok(Self { inner, method, codec, plain: Vec::new() })
    }
}

impl CompressorState {
    /// Compresses `plain` into `out`; false if the result would be as long as `plain`.
    fn compress(&mut self, plain: &[u8], out: &mut Vec<u8>) -> Result<bool, String> {
        let start = out.len();
        match self {
            Self::Lz4 => {
                out.resize(start + lz4_flex::block::get_maximum_output_size(plain.len()), 0);
                let len = lz4_flex::block::compress_into(plain, &mut out[start..])
                    .map_err(|e| e.to_string())?;
                out.truncate(start + len);
            }
            Self::Zstd(compressor, _) => {
                out.resize(start + zstd::zstd_safe::compress_bound(plain.len()), 0);
                let len = compressor
                    .compress_to_buffer(plain, &mut out[start..])
                    .map_err(|e| e.to_string())?;
                out.truncate(start + len);
            }
            Self::Zlib(state) => {
                let compress = &mut state.0;
                compress.reset();
                out.resize(start + plain.len(), 0);
                let status = compress
                    .compress(plain, &mut out[start..], FlushCompress::Finish)
                    .map_err(|e| e.to_string())?;
                if status != flate2::Status::StreamEnd {
                    return Ok(false);
                }
                out.truncate(start + compress.total_out() as usize);
            }
        }
        Ok(out.len() - start < plain.len())
    }

    /// Decompresses all of `bytes` into all of `plain`.
    fn decompress(&mut self, bytes: &[u8], plain: &mut [u8]) -> Result<(), String> {
        let expected = plain.len();
        let found = match self {
            Self::Lz4 => {
                lz4_flex::block::decompress_into(bytes, plain).map_err(|e| e.to_string())?
            }
            Self::Zstd(_, decompressor) => {
                decompressor.decompress_to_buffer(bytes, plain).map_err(|e| e.to_string())?
            }
            Self::Zlib(state) => {
                let decompress = &mut state.1;
                decompress.reset(true);
                let status = decompress
                    .decompress(bytes, plain, FlushDecompress::Finish)
                    .map_err(|e| e.to_string())?;
                if status != flate2::Status::StreamEnd
                    || decompress.total_in() != bytes.len() as u64
                {
                    return Err("its compressed bytes do not end where they should".to_owned());
                }
                decompress.total_out() as usize
            }
        };
        if found == expected {
            Ok(())
        } else {
            Err(format!("expected {} in plain, found {found}", counted(expected, "byte")))
        }
    }
}

impl<V: Stored, S: Serializer<V>> Serializer<V> for Compressing<S> {
    fn name(&self) -> String {
        format!("{}+{}", self.inner.name(), self.method.name())
    }

    fn encode(&mut self, vertex: &V, out: &mut Vec<u8>) -> Result<(), String> {
        self.plain.clear();
        self.inner.encode(vertex, &mut self.plain)?;
        let start = out.len();
        out.extend_from_slice(&[MARK, self.method as u8]);
        write_varint(self.plain.len() as u64, out);
        if !self.codec.compress(&self.plain, out)? {
            out.truncate(start);
            out.extend_from_slice(&[MARK, PLAIN]);
            write_varint(self.plain.len() as u64, out);
            out.extend_from_slice(&self.plain);
        }
        Ok(())
    }

    fn decode(&mut self, id: &V::Id, record: &[u8], reuse: Option<V>) -> Result<V, String> {
        let input = &mut after_mark(MARK, record)?;
        let method =
            take(input, 1).and_then(|byte| byte.first().copied()).ok_or_else(broken("method"))?;
        let claimed = read_varint(input).ok_or_else(broken("length"))?;
        if method == PLAIN {
            if claimed != input.len() as u64 {
                return Err(format!(
                    "expected {}, found {}",
                    counted(claimed, "byte"),
                    input.len()
                ));
            }
            return self.inner.decode(id, input, reuse);
        }
        if method != self.method as u8 {
            let found = Method::ALL
                .iter()
                .find(|(_, other)| *other as u8 == method)
                .map_or("an unknown method", |(name, _)| name);
            return Err(format!(
                "expected it to be compressed by {}, found {found}",
                self.method.name()
            ));
        }
        let len = usize::try_from(claimed)
            .ok()
            .filter(|len| *len <= input.len().saturating_mul(self.method.most()))
            .ok_or_else(|| {
                format!(
                    "it claims {} in plain, more than {} can hold",
                    counted(claimed, "byte"),
                    counted(input.len(), "compressed byte")
                )
            })?;
        self.plain.clear();
        self.plain.resize(len, 0);
        self.codec.decompress(input, &mut self.plain)?;
        self.inner.decode(id, &self.plain, reuse)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Vertex;
    use crate::serializer::{Compact, Native};
    use crate::vertex::Edges;

    type Page = Vertex<u64, f64>;

    fn page(edges: u64) -> Page {
        Vertex::new(1, 0.5, (0..edges).map(|target| (target, ())).collect::<Edges<_, _>>())
    }

    fn record(serializer: &mut impl Serializer<Page>, page: &Page) -> Vec<u8> {
        let mut out = Vec::new();
        serializer.encode(page, &mut out).unwrap();
        out
    }

    #[test]
    fn records_become_smaller_or_stay_as_they_are() {
        for (name, method) in Method::ALL {
            let small = Vertex::new(1, std::f64::consts::PI, Edges::default());
            let plain = record(&mut Compact, &small).len();
            let kept = record(&mut Compressing::new(Compact, method).unwrap(), &small);
            assert_eq!(kept.len(), plain + 3, "{name}");
            let mut serializer = Compressing::new(Native, method).unwrap();
            let large = page(1000);
            // The thesis's compressing serializer truncated records above 2,048 bytes.
            assert!(record(&mut Native, &large).len() > 8000);
            let compressed = record(&mut serializer, &large);
            assert!(compressed.len() < 5000, "{name}: {}", compressed.len());
            assert_eq!(serializer.decode(&1, &compressed, None).unwrap(), large);
        }
    }

    #[test]
    fn a_claim_that_the_bytes_cannot_hold_is_refused_before_memory_is_taken() {
        for (name, method) in Method::ALL {
            let mut serializer = Compressing::new(Native, method).unwrap();
            let mut bomb = vec![MARK, method as u8];
            write_varint(1 << 50, &mut bomb);
            bomb.extend_from_slice(&[0; 20]);
            let refused: Result<Page, _> = serializer.decode(&1, &bomb, None);
            assert!(refused.unwrap_err().contains("it claims 1125899906842624 bytes"), "{name}");
        }
    }

    #[test]
    fn another_method_is_named() {
        let written = record(&mut Compressing::new(Native, Method::Zstd).unwrap(), &page(1000));
        let refused: Result<Page, _> =
            Compressing::new(Native, Method::Lz4).unwrap().decode(&1, &written, None);
        assert_eq!(refused.unwrap_err(), "expected it to be compressed by lz4, found zstd");
    }
}
