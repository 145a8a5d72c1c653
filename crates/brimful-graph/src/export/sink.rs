//! The file of an export, optionally compressed, which appears when it is complete.
//!
//! Invariant: without [`Sink::finish`] nothing appears under the output's name.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use brimful_store::Error as StoreError;
use brimful_store::external::OutputFile;
use flate2::write::GzEncoder;
use liblzma::write::XzEncoder;

use crate::error::{Error, Result};

/// A compression of outputs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// gzip at its default level 6.
    Gzip,
    /// Zstandard at its default level 3.
    Zstd,
    /// xz at level 1. Higher levels take more memory (6: 94 MiB) and gain little on edges: 20 MB of
    /// an edge list became 4.85 MB at level 1 in 1.3 s, 4.88 at 2 in 3.9 s, 4.3 at 6 in 31 s (2
    /// cores, Python's lzma).
    Xz,
}

impl Compression {
    /// The compression with this file suffix.
    ///
    /// # Errors
    /// [`Error::Usage`] that lists the valid suffixes.
    pub fn from_suffix(suffix: &str) -> Result<Self> {
        match suffix {
            "gz" => Ok(Self::Gzip),
            "zst" => Ok(Self::Zstd),
            "xz" => Ok(Self::Xz),
            _ => Err(Error::Usage(format!(
                "cannot compress as {suffix:?}; choose from: gz, zst, xz"
            ))),
        }
    }

    /// The maximum memory for compression, in bytes. xz documents 9 MiB for level 1; window and
    /// tables of Zstandard at level 3 are about 4 MiB; gzip needs less than 1 MiB.
    pub(crate) fn memory_bytes(self) -> u64 {
        match self {
            Self::Gzip => 1 << 20,
            Self::Zstd => 8 << 20,
            Self::Xz => 12 << 20,
        }
    }
}

/// An output that is open for writing.
pub(super) struct Sink {
    encoder: Encoder,
    path: PathBuf,
}

enum Encoder {
    Plain(OutputFile),
    Gzip(GzEncoder<OutputFile>),
    Zstd(zstd::Encoder<'static, OutputFile>),
    Xz(XzEncoder<OutputFile>),
}

impl Sink {
    pub(super) fn create(
        path: &Path,
        overwrite: bool,
        compression: Option<Compression>,
    ) -> Result<Self> {
        let file = OutputFile::create(path, overwrite)?;
        let encoder = match compression {
            None => Encoder::Plain(file),
            Some(Compression::Gzip) => {
                Encoder::Gzip(GzEncoder::new(file, flate2::Compression::default()))
            }
            Some(Compression::Zstd) => {
                let encoder = zstd::Encoder::new(file, 3).and_then(|mut encoder| {
                    encoder.include_checksum(true)?;
                    Ok(encoder)
                });
                Encoder::Zstd(encoder.map_err(|e| StoreError::io(path, "compress", e))?)
            }
            Some(Compression::Xz) => Encoder::Xz(XzEncoder::new(file, 1)),
        };
        Ok(Self { encoder, path: path.into() })
    }

    /// Appends bytes.
    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let done = match &mut self.encoder {
            Encoder::Plain(file) => return Ok(file.write(bytes)?),
            Encoder::Gzip(encoder) => encoder.write_all(bytes),
            Encoder::Zstd(encoder) => encoder.write_all(bytes),
            Encoder::Xz(encoder) => encoder.write_all(bytes),
        };
        done.map_err(|e| self.error(e))
    }

    /// Makes the output durable and renames it to its final name.
    pub(super) fn finish(self) -> Result<()> {
        let Self { encoder, path } = self;
        let file = match encoder {
            Encoder::Plain(file) => Ok(file),
            Encoder::Gzip(encoder) => encoder.finish(),
            Encoder::Zstd(encoder) => encoder.finish(),
            Encoder::Xz(encoder) => encoder.finish(),
        };
        Ok(file.map_err(|e| StoreError::io(path, "write", e))?.finish()?)
    }

    fn error(&self, error: io::Error) -> Error {
        StoreError::io(&self.path, "write", error).into()
    }
}
