//! A small graph in memory, of which a part is replaced.
//!
//! The corpus has the files of `brimful generate rmat --scale 5 --edge-factor 3 --seed 1 --weights
//! hash --index in,reverse`, which is that graph.

use std::sync::{Arc, OnceLock};

use brimful_graph::build::import::{ImportOptions, Input, import_in};
use brimful_graph::build::weights::Weights;
use brimful_graph::generate::{Generator, Kind};
use brimful_graph::ids::external::ExternalId;
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::read::lookup::{Direction, Lookup};
use brimful_graph::read::verify;
use brimful_graph::{Graph, Result};
use brimful_store::fault::FaultFolder;
use brimful_store::sealed::{Kind as FileKind, SealedWriter};
use brimful_store::{Budget, Folder, Job, Resources, manifest};

/// Its files but for the manifest: names, kinds, and bytes of metadata of a block.
const FILES: [(&str, FileKind, usize); 9] = [
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

/// A copy of the graph, with a manifest of the first format, which has no seals: any whole file is
/// taken.
fn whole() -> FaultFolder {
    static BASE: OnceLock<FaultFolder> = OnceLock::new();
    BASE.get_or_init(make).crash()
}

fn make() -> FaultFolder {
    let folder = FaultFolder::new();
    let generator =
        Generator::new(Kind::Rmat { scale: 5, edge_factor: 3 }, 1).expect("a small graph");
    let resources =
        Resources::new(Budget::new(1 << 26, 0), Arc::new(Job::new()), Some(1)).expect("one thread");
    let options =
        ImportOptions { reverse: true, weights: Weights::Hash, ..ImportOptions::default() };
    let input = Input::Numbered(&generator, generator.vertices());
    import_in(&folder, input, &options, &resources).expect("an import in memory");
    forget_seals(&folder);
    folder
}

/// Has the manifest say the first format.
fn forget_seals(folder: &dyn Folder) {
    let (_, payload) = manifest::read(folder, &Arc::default()).expect("the manifest just written");
    let text = String::from_utf8(payload).expect("JSON");
    publish(folder, text.replace("\"format\": 2", "\"format\": 1").as_bytes());
}

/// Replaces a file by one of these blocks, each a length (u16), metadata and bytes. Their checksums
/// are right.
fn replace(folder: &dyn Folder, name: &str, kind: FileKind, meta_bytes: usize, mut blocks: &[u8]) {
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
fn publish(folder: &dyn Folder, payload: &[u8]) {
    manifest::publish(folder, 2, payload, &Arc::default()).expect("memory takes all");
}

/// Opens and verifies: an answer or a typed error.
fn verified(folder: &FaultFolder) -> bool {
    let graph = Graph::open_folder(folder, &Arc::default());
    graph.is_ok_and(|graph| verify::verify(&graph, &Job::new()).is_ok())
}

/// A graph whose file of this number is replaced: the first byte is the number, the blocks follow.
pub(crate) fn files(bytes: &[u8]) -> bool {
    let Some((&chosen, blocks)) = bytes.split_first() else { return false };
    let (name, kind, meta_bytes) = FILES[usize::from(chosen) % FILES.len()];
    let folder = whole();
    // No file holds ids that follow each other.
    if folder.open(name).is_err() {
        return false;
    }
    replace(&folder, name, kind, meta_bytes, blocks);
    verified(&folder)
}

/// The JSON of a manifest, of a graph whose files are sound.
pub(crate) fn manifest(bytes: &[u8]) -> bool {
    let folder = whole();
    // The number of the pointer is not to be that of the graph's own.
    folder.remove("current").expect("a graph has a pointer");
    publish(&folder, bytes);
    verified(&folder)
}

/// A copy of a graph whose ids are strings.
fn named() -> FaultFolder {
    static BASE: OnceLock<FaultFolder> = OnceLock::new();
    let make = || {
        let (folder, path) = (
            FaultFolder::new(),
            std::env::temp_dir().join(format!("names-{}", std::process::id())),
        );
        let text: String =
            (0..40).map(|i| format!("vertex-{} vertex-{}\n", i % 17, i * 7 % 23)).collect();
        std::fs::write(&path, text).expect("a temporary file");
        let resources = Resources::new(Budget::new(1 << 26, 0), Arc::new(Job::new()), Some(1))
            .expect("one thread");
        let input = Input::EdgeList(vec![path.clone()]);
        let columns = ColumnChoice { header: Some(false), ..ColumnChoice::default() };
        let options = ImportOptions { columns, ..ImportOptions::default() };
        import_in(&folder, input, &options, &resources).expect("an import in memory");
        std::fs::remove_file(path).expect("the temporary file");
        forget_seals(&folder);
        folder
    };
    BASE.get_or_init(make).crash()
}

/// The file of names of a graph whose ids are strings, block by block.
pub(crate) fn names(bytes: &[u8]) -> bool {
    let folder = named();
    replace(&folder, "names", FileKind::Names, 16, bytes);
    verified(&folder)
}

/// Everything that may be asked about two vertices.
fn ask(lookup: &Lookup, one: i128, other: i128, is_whole: bool) -> Result<()> {
    let (one, other) =
        (lookup.find(&ExternalId::Number(one))?, lookup.find(&ExternalId::Number(other))?);
    let out = lookup.neighbors(one, Direction::Out, true)?;
    let back = lookup.neighbors(other, Direction::In, false)?;
    assert_eq!(out.ids.len(), out.weights.len());
    let (leave, reach) =
        (lookup.degree(one, Direction::Out)?, lookup.degree(other, Direction::In)?);
    let (mut ids, has) = ([0; 2], lookup.has_edge(one, other)?);
    lookup.graph().external_ids(one, &mut ids[..1])?;
    lookup.graph().external_ids(other, &mut ids[1..])?;
    let count = |all: &[u64], id: u64| all.iter().filter(|one| **one == id).count();
    let both = (count(&out.ids, ids[1]), count(&back.ids, ids[0]));
    lookup.degrees(&[one, other, one], Direction::In)?;
    if is_whole {
        assert_eq!((leave, reach), (out.ids.len() as u64, back.ids.len() as u64));
        assert_eq!((both.0, has), (both.1, both.0 > 0));
    }
    Ok(())
}

/// Look-ups in a graph of which a file is replaced.
///
/// The first byte chooses the file, the next eight are vertices; then come the blocks of the file.
/// Without any the graph is whole, and the answers agree with its edges.
pub(crate) fn lookups(bytes: &[u8]) -> bool {
    let Some((&chosen, rest)) = bytes.split_first() else { return false };
    let Some((asked, blocks)) = rest.split_first_chunk::<8>() else { return false };
    let (name, kind, meta_bytes) = FILES[usize::from(chosen) % FILES.len()];
    let folder = whole();
    let is_whole = blocks.is_empty();
    if !is_whole && folder.open(name).is_ok() {
        replace(&folder, name, kind, meta_bytes, blocks);
    }
    let Ok(graph) = Graph::open_folder(&folder, &Arc::default()) else { return false };
    let lookup = Lookup::new(Arc::new(graph));
    let mut accepted = true;
    for pair in asked.as_chunks::<2>().0 {
        let known = ask(&lookup, i128::from(pair[0] % 40), i128::from(pair[1] % 40), is_whole);
        assert!(known.is_ok() || !is_whole || pair.iter().any(|id| id % 40 >= 32), "{known:?}");
        accepted &= known.is_ok();
    }
    accepted
}
