//! A small graph in memory, of which the targets of graph files replace a part. The corpus has the files of `brimful generate
//! rmat --scale 5 --edge-factor 3 --seed 1 --weights hash --index in,reverse`, which it is.

#![allow(dead_code, reason = "a target uses what it needs")]

use std::sync::{Arc, OnceLock};

use brimful_graph::generate::{Generator, Kind};
use brimful_graph::import::{ImportOptions, Input, import_in};
use brimful_graph::weights::Weights;
use brimful_graph::{Graph, verify};
use brimful_store::fault::FaultFolder;
use brimful_store::sealed::{Kind as FileKind, SealedWriter};
use brimful_store::{Budget, Folder, Job, Resources, manifest};

/// Its files but for the manifest: names, kinds, and bytes of metadata of a block.
pub const FILES: [(&str, FileKind, usize); 9] = [
    ("ids", FileKind::Ids, 32),
    ("degrees", FileKind::Degrees, 32),
    ("strengths", FileKind::Strengths, 0),
    ("in.shards", FileKind::Shards, 0),
    ("in.weights", FileKind::Weights, 0),
    ("in.blocks", FileKind::Directory, 0),
    ("reverse.shards", FileKind::Shards, 0),
    ("reverse.weights", FileKind::Weights, 0),
    ("reverse.blocks", FileKind::Directory, 0),
];

/// A copy of the graph, with a manifest of the first format, which has no seals: any whole file is taken.
pub fn folder() -> FaultFolder {
    static BASE: OnceLock<FaultFolder> = OnceLock::new();
    BASE.get_or_init(make).crash()
}

fn make() -> FaultFolder {
    let folder = FaultFolder::new();
    let generator = Generator::new(Kind::Rmat { scale: 5, edge_factor: 3 }, 1).expect("a small graph");
    let resources =
        Resources::new(Budget::new(1 << 26, 0), Arc::new(Job::new()), Some(1)).expect("one thread");
    let options = ImportOptions { reverse: true, weights: Weights::Hash, ..ImportOptions::default() };
    let input = Input::Numbered(&generator, generator.vertices());
    import_in(&folder, input, &options, &resources).expect("an import in memory");
    forget_seals(&folder);
    folder
}

/// Has the manifest say the first format.
pub fn forget_seals(folder: &dyn Folder) {
    let (_, payload) = manifest::read(folder, &Arc::default()).expect("the manifest just written");
    let text = String::from_utf8(payload).expect("JSON");
    publish(folder, text.replace("\"format\": 2", "\"format\": 1").as_bytes());
}

/// Replaces a file by one of these blocks, each a length (u16), metadata and bytes. Their checksums are right.
pub fn replace(folder: &dyn Folder, name: &str, kind: FileKind, meta_bytes: usize, mut blocks: &[u8]) {
    folder.remove(name).expect("the graph has such a file");
    let file = SealedWriter::create(folder, name, kind, meta_bytes, &Arc::default());
    let mut file = file.expect("memory takes all");
    while let Some((len, rest)) = blocks.split_first_chunk() {
        let Some((meta, rest)) = rest.split_at_checked(meta_bytes) else { break };
        let (block, rest) = rest.split_at(rest.len().min(usize::from(u16::from_le_bytes(*len))));
        file.append(block, meta).expect("memory takes all");
        blocks = rest;
    }
    file.finish().expect("memory takes all");
}

/// Makes `payload` the manifest.
pub fn publish(folder: &dyn Folder, payload: &[u8]) {
    manifest::publish(folder, 2, payload, &Arc::default()).expect("memory takes all");
}

/// Opens and verifies: an answer or a typed error.
pub fn check(folder: &FaultFolder) {
    if let Ok(graph) = Graph::open_folder(folder, &Arc::default()) {
        let _ = verify::verify(&graph, &Job::new());
    }
}
