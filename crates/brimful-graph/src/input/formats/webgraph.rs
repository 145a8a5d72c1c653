//! `webgraph`: the BV format, `NAME.graph` with `NAME.properties`; offsets are not needed.
//!
//! A list consists of an out-degree; a reference to one of the `windowsize` previous lists, with
//! the blocks that are copied from it; intervals; and residual gaps. Decoding is sequential. Graphs
//! are directed, without weights; their vertices are 0 to n - 1. Invariant: memory holds the lists
//! of the window, never longer than the given bound. A list is strictly ascending, below n, and of
//! its declared length; the number of arcs is that of the properties.
//!
//! Format: Boldi and Vigna, "The WebGraph Framework I: Compression Techniques", WWW 2004, section
//! 4, and the documentation of `BVGraph` for the names of properties and the order of codes.

use std::collections::VecDeque;
use std::io::Read;
use std::path::{Path, PathBuf};

use brimful_store::wording::counted;

use super::bits::{BitError, BitReader, Code, signed};
use super::properties::{self, Property};
use crate::edges::{BATCH_EDGES, EdgeBatch};
use crate::error::{Error, Result};
use crate::ids::external::IdType;
use crate::input::stream::EdgeStream;
use crate::input::text;

/// The codes and parameters of a graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parameters {
    nodes: u64,
    arcs: u64,
    window: u64,
    /// The shortest interval; 0 if the graph has no intervals.
    min_interval: u64,
    outdegrees: Code,
    references: Code,
    block_counts: Code,
    blocks: Code,
    residuals: Code,
}

/// The edges of a BV graph, decoded list by list.
pub struct WebGraph {
    path: PathBuf,
    bits: BitReader,
    parameters: Parameters,
    /// Memory for the lists in the window, in bytes.
    memory_bytes: u64,
    /// The previous lists, the latest last.
    window: VecDeque<Vec<u64>>,
    window_targets: u64,
    /// Number of decoded lists.
    decoded: u64,
    /// Number of targets of the last list that were returned.
    returned: usize,
    arcs: u64,
    spare: Vec<u64>,
    positions: bool,
    /// Number of arcs that were returned.
    handed_out: u64,
}

impl WebGraph {
    /// Opens `NAME.graph`; `path` may be either file of the graph. Lists may use `memory_bytes`.
    ///
    /// # Errors
    /// [`Error::Parse`] for properties that are missing, invalid, or of an unknown code or version.
    pub fn open(
        path: &Path,
        memory_bytes: u64,
        mut open: impl FnMut(&Path) -> Result<Box<dyn Read + Send>>,
    ) -> Result<Self> {
        let (properties, path) = (path.with_extension("properties"), path.with_extension("graph"));
        let text = properties::read(&properties, open(&properties)?)?;
        let parameters = Parameters::read(&properties, &text)?;
        let bits = BitReader::new(open(&path)?);
        Ok(Self {
            path,
            bits,
            parameters,
            memory_bytes,
            window: VecDeque::new(),
            window_targets: 0,
            decoded: 0,
            returned: 0,
            arcs: 0,
            spare: Vec::new(),
            positions: false,
            handed_out: 0,
        })
    }

    /// Number of arcs, by the properties.
    pub(crate) fn arcs(&self) -> u64 {
        self.parameters.arcs
    }

    fn fail(&self, problem: &str) -> Error {
        let (vertex, bit) = (self.decoded, self.bits.position());
        let problem = format!(
            "at bit {bit}, in the list of vertex {vertex}: {problem}; the file is damaged or its \
             properties belong to another file"
        );
        Error::input(&self.path, problem)
    }

    fn read(&mut self, code: Code) -> Result<u64> {
        self.bits.read(code).map_err(|error| match error {
            BitError::End => self.fail("the bits end"),
            BitError::TooLarge => self.fail("a code of more than 64 bits"),
            BitError::Io(error) => crate::input::decompress::read_error(&self.path, error),
        })
    }

    /// Decodes the next list into the window.
    fn decode(&mut self) -> Result<()> {
        let Parameters { nodes, window, min_interval, .. } = self.parameters;
        let degree = self.read(self.parameters.outdegrees)?;
        let most = nodes.min(self.parameters.arcs - self.arcs);
        if degree > most {
            let problem =
                format!("an out-degree of {degree}, expected at most {most} by the properties");
            return Err(self.fail(&problem));
        }
        while self.window.len() as u64 > window {
            self.drop_oldest();
        }
        if (self.window_targets + degree).saturating_mul(8) > self.memory_bytes {
            let vertex = self.decoded;
            let problem = format!(
                "the list of vertex {vertex} has {degree} targets, which do not fit the budget \
                 with the {window} lists before it; give a larger --budget"
            );
            return Err(Error::input(&self.path, problem));
        }
        let mut list = std::mem::take(&mut self.spare);
        list.clear();
        if degree > 0 {
            if window > 0 {
                self.copy(degree, &mut list)?;
            }
            let mut extra = degree - list.len() as u64;
            if extra > 0 && min_interval > 0 {
                extra = self.intervals(extra, &mut list)?;
            }
            self.residuals(extra, &mut list)?;
            // The list is three ascending runs, which a stable sort merges.
            list.sort();
            if !list.is_sorted_by(|a, b| a < b) || list.last().is_some_and(|&last| last >= nodes) {
                return Err(
                    self.fail(&format!("targets that are not distinct vertices below {nodes}"))
                );
            }
        }
        self.arcs += degree;
        self.window_targets += degree;
        self.window.push_back(list);
        (self.decoded, self.returned) = (self.decoded + 1, 0);
        Ok(())
    }

    fn drop_oldest(&mut self) {
        if let Some(list) = self.window.pop_front() {
            self.window_targets -= list.len() as u64;
            self.spare = list;
        }
    }

    /// Copies targets from an earlier list.
    fn copy(&mut self, degree: u64, list: &mut Vec<u64>) -> Result<()> {
        let back = self.read(self.parameters.references)?;
        if back == 0 {
            return Ok(());
        }
        let reference = (self.window.len() as u64).checked_sub(back).map(|index| index as usize);
        let Some(reference) = reference.filter(|_| back <= self.parameters.window) else {
            return Err(
                self.fail(&format!("a reference to a list {back} before it, which does not exist"))
            );
        };
        let length = self.window.get(reference).map_or(0, |list| list.len() as u64);
        let blocks = self.read(self.parameters.block_counts)?;
        let mut at = 0;
        for block in 0..blocks {
            let least = u64::from(block > 0);
            let end = self
                .read(self.parameters.blocks)?
                .checked_add(least + at)
                .filter(|end| *end <= length);
            let Some(end) = end else {
                return Err(self.fail(&format!(
                    "blocks beyond the {} of the list they copy",
                    counted(length, "target")
                )));
            };
            if block % 2 == 0 {
                self.copy_range(reference, at, end, list);
            }
            at = end;
        }
        // After an even number of blocks, the rest is copied too.
        if blocks % 2 == 0 {
            self.copy_range(reference, at, length, list);
        }
        if list.len() as u64 > degree {
            return Err(self.fail(&format!(
                "{} copied for an out-degree of {degree}",
                counted(list.len(), "target")
            )));
        }
        Ok(())
    }

    fn copy_range(&self, reference: usize, from: u64, to: u64, list: &mut Vec<u64>) {
        let range = from as usize..to as usize;
        list.extend_from_slice(
            self.window.get(reference).and_then(|l| l.get(range)).unwrap_or_default(),
        );
    }

    /// Reads the targets in runs of consecutive vertices; returns the rest of `extra`.
    fn intervals(&mut self, mut extra: u64, list: &mut Vec<u64>) -> Result<u64> {
        let count = self.read(Code::Gamma)?;
        let mut end = None;
        for _ in 0..count {
            let gap = self.read(Code::Gamma)?;
            let left = match end {
                None => self.decoded.checked_add_signed(signed(gap)),
                Some(end) => gap.checked_add(1).and_then(|gap| gap.checked_add(end)),
            };
            let length = self.read(Code::Gamma)?.checked_add(self.parameters.min_interval);
            let span =
                left.zip(length).and_then(|(left, length)| Some((left, left.checked_add(length)?)));
            let Some((left, next)) = span.filter(|&(left, next)| next - left <= extra) else {
                return Err(self.fail("an interval longer than the list"));
            };
            list.extend(left..next);
            extra -= next - left;
            end = Some(next);
        }
        Ok(extra)
    }

    fn residuals(&mut self, count: u64, list: &mut Vec<u64>) -> Result<()> {
        let mut last = None;
        for _ in 0..count {
            let gap = self.read(self.parameters.residuals)?;
            let target = match last {
                None => self.decoded.checked_add_signed(signed(gap)),
                Some(last) => gap.checked_add(1).and_then(|gap| gap.checked_add(last)),
            };
            let Some(target) = target else {
                return Err(self.fail("a residual beyond 64 bits"));
            };
            list.push(target);
            last = Some(target);
        }
        Ok(())
    }
}

impl EdgeStream for WebGraph {
    fn next(&mut self, batch: &mut EdgeBatch) -> Result<bool> {
        batch.clear();
        while batch.len() < BATCH_EDGES {
            let rest =
                self.window.back().and_then(|list| list.get(self.returned..)).unwrap_or_default();
            if rest.is_empty() {
                if self.decoded == self.parameters.nodes {
                    break;
                }
                self.decode()?;
                continue;
            }
            let left = rest.len().min(BATCH_EDGES - batch.len());
            batch.targets.extend_from_slice(rest.get(..left).unwrap_or_default());
            batch.sources.resize(batch.targets.len(), self.decoded - 1);
            self.returned += left;
        }
        if !batch.is_empty() {
            if self.positions {
                batch.number(self.handed_out);
            }
            self.handed_out += batch.len() as u64;
            return Ok(true);
        }
        if self.arcs != self.parameters.arcs {
            let (arcs, expected) = (self.arcs, self.parameters.arcs);
            let problem = format!(
                "it has {}, expected {expected} as its properties say; the file is damaged or its \
                 properties belong to another file",
                counted(arcs, "arc")
            );
            return Err(Error::input(&self.path, problem));
        }
        Ok(false)
    }

    fn name(&self) -> &Path {
        &self.path
    }

    fn weighted(&self) -> bool {
        false
    }

    fn id_type(&self) -> Result<IdType> {
        Ok(IdType::Int64)
    }

    fn note_positions(&mut self) {
        self.positions = true;
    }

    fn declared(&self) -> std::ops::Range<u64> {
        0..self.parameters.nodes
    }
}

impl Parameters {
    fn read(path: &Path, bytes: &[u8]) -> Result<Self> {
        let mut parameters = Self {
            nodes: 0,
            arcs: 0,
            window: 7,
            min_interval: 4,
            outdegrees: Code::Gamma,
            references: Code::Unary,
            block_counts: Code::Gamma,
            blocks: Code::Gamma,
            residuals: Code::Zeta(3),
        };
        let (mut nodes, mut arcs, mut zeta_k, mut flags) = (None, None, 3, None);
        let lines = memchr::memchr_iter(b'\n', bytes).count() as u64 + 1;
        for Property { line, key, value } in properties::parse(bytes) {
            let fail = |expected: &str| wrong(path, line, expected, &value);
            let count = |limit: u64| {
                text::parse_count(value.as_bytes())
                    .filter(|count| *count <= limit)
                    .ok_or_else(|| fail(&format!("a number up to {limit} as `{key}`")))
            };
            match key.as_str() {
                "nodes" => nodes = Some(count(1 << 62)?),
                "arcs" => arcs = Some(count(1 << 62)?),
                "windowsize" => parameters.window = count(1 << 20)?,
                "minintervallength" => parameters.min_interval = count(1 << 62)?,
                "zetak" => zeta_k = count(31)?,
                "compressionflags" => flags = Some((line, value)),
                "version" if count(u64::MAX)? != 0 => return Err(fail("version 0 of the format")),
                "endianness" if value != "big" => {
                    return Err(fail("`big`, the byte order of the format"));
                }
                "graphclass" if !value.ends_with("BVGraph") => {
                    return Err(fail(
                        "the class BVGraph; other classes of WebGraph cannot be read",
                    ));
                }
                _ => {}
            }
        }
        let end = |expected: &str| wrong(path, lines, expected, "");
        parameters.nodes = nodes.ok_or_else(|| end("a line `nodes=...`"))?;
        parameters.arcs = arcs.ok_or_else(|| end("a line `arcs=...`"))?;
        parameters.residuals = Code::Zeta(zeta_k as u32);
        if let Some((line, flags)) = flags {
            for flag in flags.split('|').map(str::trim).filter(|flag| !flag.is_empty()) {
                let set = parameters.set(flag, zeta_k);
                set.ok_or_else(|| wrong(path, line, "compression flags of version 0", flag))?;
            }
        }
        if matches!(parameters.residuals, Code::Zeta(0)) {
            return Err(end("a line `zetak=...` with a number from 1 to 31"));
        }
        Ok(parameters)
    }

    /// Applies a flag `FIELD_CODE`.
    fn set(&mut self, flag: &str, zeta_k: u64) -> Option<()> {
        let (field, code) = flag.rsplit_once('_')?;
        let code = match code {
            "UNARY" => Code::Unary,
            "GAMMA" => Code::Gamma,
            "DELTA" => Code::Delta,
            "ZETA" => Code::Zeta(zeta_k as u32),
            "NIBBLE" => Code::Nibble,
            "GOLOMB" => Code::Golomb(zeta_k),
            _ => return None,
        };
        let place = match field {
            "OUTDEGREES" => &mut self.outdegrees,
            "REFERENCES" => &mut self.references,
            "BLOCK_COUNT" => &mut self.block_counts,
            "BLOCKS" => &mut self.blocks,
            "RESIDUALS" => &mut self.residuals,
            // Codes of the offsets file, which is not read.
            "OFFSETS" => return Some(()),
            _ => return None,
        };
        *place = code;
        Some(())
    }
}

fn wrong(path: &Path, line: u64, expected: &str, found: &str) -> Error {
    let found = if found.is_empty() {
        "the end of the file".into()
    } else {
        text::shown(found.as_bytes(), 0)
    };
    let (path, advice) = (path.into(), "correct the properties".into());
    Error::Parse { path, line, column: 1, expected: expected.into(), found, advice }
}

#[cfg(test)]
mod tests;
