//! Look-ups of single vertices and of many, compared with a scan of all edges.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::build::import::{ImportOptions, build_reverse};
use brimful_graph::build::weights::Weights;
use brimful_graph::edges::EdgeBatch;
use brimful_graph::ids::external::ExternalId;
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::read::lookup::{Direction, Lookup, NeighborReader};
use brimful_graph::read::segment_reader::SegmentReader;
use brimful_graph::{Error, Graph, Index};
use brimful_store::ErrorKind;

use super::{SMALL, import_text, resources};

/// For each vertex: the ids at the other ends of its edges, ascending, with the bits of weights.
type Lists = BTreeMap<i128, Vec<(i128, u64)>>;

/// Out- and in-neighbors of all vertices, from a scan of the shards.
fn scanned(graph: &Graph) -> (Lists, Lists) {
    let mut ids = vec![0; graph.vertices() as usize];
    graph.external_ids(0, &mut ids).unwrap();
    let ids: Vec<i128> = ids.into_iter().map(|bits| graph.id_type().number(bits)).collect();
    let mut out: Lists = ids.iter().map(|id| (*id, Vec::new())).collect();
    let mut into = out.clone();
    let shards = graph.shards(Index::In).unwrap();
    let mut reader = SegmentReader::default();
    for segment in 0..shards.segments().len() {
        reader
            .for_each_edge(shards, segment, |source, target, weight| {
                let (source, target) = (ids[source as usize], ids[target as usize]);
                out.get_mut(&source).unwrap().push((target, weight.to_bits()));
                into.get_mut(&target).unwrap().push((source, weight.to_bits()));
            })
            .unwrap();
    }
    out.values_mut().chain(into.values_mut()).for_each(|list| list.sort_unstable());
    (out, into)
}

fn check(graph: Graph) {
    let graph = Arc::new(graph);
    let weighted = graph.description().weighted;
    let lookup = Arc::new(Lookup::new(Arc::clone(&graph)));
    let number = |bits: u64| graph.id_type().number(bits);
    let (out, into) = scanned(&graph);
    for (direction, lists) in [(Direction::Out, &out), (Direction::In, &into)] {
        let mut internal = Vec::new();
        for (id, list) in lists {
            let vertex = lookup.find(&(*id).into()).unwrap();
            internal.push(vertex);
            let found = lookup.neighbors(vertex, direction, weighted).unwrap();
            let ids: Vec<i128> = found.ids.iter().map(|bits| number(*bits)).collect();
            assert_eq!(ids, list.iter().map(|(id, _)| *id).collect::<Vec<_>>());
            if weighted {
                let weights: Vec<u64> =
                    found.weights.iter().map(|weight| weight.to_bits()).collect();
                assert_eq!(weights, list.iter().map(|(_, weight)| *weight).collect::<Vec<_>>());
            }
            assert_eq!(lookup.degree(vertex, direction).unwrap(), list.len() as u64);
        }
        // The vertices are unordered, and some are repeated.
        internal.reverse();
        internal.extend_from_within(..internal.len().min(5));
        let reader =
            NeighborReader::new(Arc::clone(&lookup), internal.clone(), direction, weighted);
        let (rows, mut wanted) = (rows(reader), Vec::new());
        let mut degrees = Vec::new();
        let ids = lists.keys().rev().chain(lists.keys().rev().take(5));
        for (id, list) in ids.map(|id| (*id, &lists[id])) {
            wanted.extend(list.iter().map(|(other, weight)| match direction {
                Direction::Out => (number_bits(&graph, id), number_bits(&graph, *other), *weight),
                Direction::In => (number_bits(&graph, *other), number_bits(&graph, id), *weight),
            }));
            degrees.push(list.len() as u64);
        }
        assert_eq!(rows, wanted);
        assert_eq!(lookup.degrees(&internal, direction).unwrap(), degrees);
    }
    let ids: Vec<i128> = out.keys().copied().collect();
    let step = (ids.len() / 40).max(1);
    for (source, target) in
        ids.iter().step_by(step).flat_map(|s| ids.iter().step_by(step).map(move |t| (s, t)))
    {
        let ends = [source, target].map(|id| lookup.find(&(*id).into()).unwrap());
        let joined = out[source].iter().any(|(other, _)| other == target);
        assert_eq!(lookup.has_edge(ends[0], ends[1]).unwrap(), joined);
    }
    let absent = (0..).find(|id| !out.contains_key(id)).unwrap();
    assert!(matches!(lookup.find(&absent.into()), Err(Error::NoSuchVertex { .. })));
}

fn number_bits(graph: &Graph, id: i128) -> u64 {
    graph.id_type().bits(id).unwrap()
}

fn rows(mut reader: NeighborReader) -> Vec<(u64, u64, u64)> {
    let (mut batch, mut rows) = (EdgeBatch::default(), Vec::new());
    while reader.next(&mut batch).unwrap() {
        for (at, (source, target)) in batch.sources.iter().zip(&batch.targets).enumerate() {
            let weight = batch.weights.get(at).copied().unwrap_or(1.0);
            rows.push((*source, *target, weight.to_bits()));
        }
    }
    rows
}

/// Lines `source target[ weight]` of a graph with hubs, self-loops, parallel edges and sparse ids.
fn lines(edges: u64, weighted: bool) -> String {
    let even = |i: u64| (i ^ 0x5DEE_CE66).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 40;
    let end = |i: u64| {
        let place = (((even(i) * even(i)) >> 24) * even(i + 7)) >> 24;
        (place % 300).cast_signed() * if place % 3 == 0 { -70_000 } else { 3 }
    };
    let mut text = String::new();
    for i in 0..edges {
        let weight = if weighted { format!(" {}.5", even(i) % 7) } else { String::new() };
        text.push_str(&format!("{} {}{weight}\n", end(2 * i), end(2 * i + 1)));
    }
    text
}

#[test]
fn they_agree_with_a_scan() {
    for (undirected, weighted, geometry) in [
        (false, false, SMALL),
        (false, true, SMALL),
        (true, false, SMALL),
        (true, true, SMALL),
        (false, true, ImportOptions::default().geometry),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let weight = weighted.then(|| "3".to_owned());
        let columns = ColumnChoice { weight, header: Some(false), ..ColumnChoice::default() };
        let options = ImportOptions { undirected, columns, geometry, ..Default::default() };
        let (graph, _) = import_text(folder.path(), &lines(4000, weighted), &options);
        build_reverse(&graph, &resources(2, 1 << 28)).unwrap();
        check(graph);
    }
}

#[test]
fn compressed_segments_and_isolated_vertices_are_looked_up_too() {
    let folder = tempfile::tempdir().unwrap();
    let text: String = (0..200_000).map(|i| format!("{i} {}\n", (i + 1) % 200_000)).collect();
    let options =
        ImportOptions { vertices: Some(200_100), weights: Weights::Hash, ..Default::default() };
    let (graph, _) = import_text(folder.path(), &text, &options);
    let segments = graph.shards(Index::In).unwrap().segments();
    assert!(segments.iter().any(|segment| segment.packing.compressed));
    build_reverse(&graph, &resources(2, 1 << 28)).unwrap();
    check(graph);
}

#[test]
fn in_neighbors_need_the_reverse_index_and_weights_must_be_there() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, _) = import_text(folder.path(), "1 2\n", &ImportOptions::default());
    let lookup = Lookup::new(Arc::new(graph));
    let vertex = lookup.find(&2.into()).unwrap();
    let missing = lookup.neighbors(vertex, Direction::In, false);
    assert!(matches!(missing, Err(Error::MissingIndex { .. })));
    assert!(lookup.degree(vertex, Direction::In).is_err());
    let refused = lookup.neighbors(vertex, Direction::Out, true).unwrap_err();
    assert!(refused.to_string().contains("no edge weights"));
}

#[test]
fn a_damaged_block_is_not_handed_out() {
    let folder = tempfile::tempdir().unwrap();
    let (graph, _) = import_text(folder.path(), &lines(4000, false), &ImportOptions::default());
    let whole = Lookup::new(Arc::new(graph));
    let ids: Vec<u64> = (0..whole.graph().connected()).collect();
    let wanted: Vec<_> =
        ids.iter().map(|v| whole.neighbors(*v, Direction::Out, false).unwrap()).collect();
    let file = shards_file(whole.graph().path());
    let sound = std::fs::read(&file).unwrap();
    let mut refused = 0;
    // After the header and before the table of segments.
    for at in (64..sound.len() - 200).step_by(97) {
        let mut bytes = sound.clone();
        bytes[at] ^= 0x10;
        std::fs::write(&file, &bytes).unwrap();
        for vertex in &ids {
            match whole.neighbors(*vertex, Direction::Out, false) {
                Ok(found) => assert_eq!(found, wanted[*vertex as usize]),
                Err(error) => {
                    assert_eq!(error.kind(), ErrorKind::Corrupt);
                    refused += 1;
                }
            }
        }
    }
    assert!(refused > 0);
}

fn shards_file(graph: &Path) -> std::path::PathBuf {
    let files = std::fs::read_dir(graph).unwrap().map(|entry| entry.unwrap().path());
    files.into_iter().find(|path| path.extension().is_some_and(|end| end == "shards")).unwrap()
}

#[test]
fn batches_are_large_again_after_a_hub_and_few_ids_are_found_as_many_are() {
    let folder = tempfile::tempdir().unwrap();
    // More edges of the hub than a batch has, and gaps between ids, which are in several blocks.
    let spokes = 300_000;
    let text: String = (1..=spokes).map(|i| format!("0 {}\n{} 0\n", 7 * i, 7 * i)).collect();
    let (graph, _) = import_text(folder.path(), &text, &ImportOptions::default());
    let job = brimful_store::Job::new();
    let lookup = Arc::new(Lookup::new(Arc::new(graph)));
    let ids: Vec<_> = (0..40_000).map(|i| ExternalId::Number(7 * i)).collect();
    let vertices = lookup.find_all(&ids, &job).unwrap();
    for (few, found) in ids.chunks(1).zip(&vertices).step_by(97) {
        assert_eq!(lookup.find_all(few, &job).unwrap(), [*found]);
    }
    let mut reader = NeighborReader::new(lookup, vertices, Direction::Out, false);
    let (mut batch, mut batches, mut edges) = (EdgeBatch::default(), 0, 0);
    while reader.next(&mut batch).unwrap() {
        batches += 1;
        edges += batch.len() as i128;
    }
    assert_eq!(edges, spokes + 39_999);
    assert!(batches < 25, "{batches} batches");
}
