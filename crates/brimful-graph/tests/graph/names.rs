//! Graphs with string ids, end to end.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use brimful_graph::build::import::{
    IdChoice, ImportOptions, Input, OnError, import, minimum_bytes,
};
use brimful_graph::build::weights::Weights;
use brimful_graph::edges::EdgeBatch;
use brimful_graph::export::{self, EdgeReader, ExportOptions, Format};
use brimful_graph::ids::external::ExternalId;
use brimful_graph::input::columns::ColumnChoice;
use brimful_graph::input::formats::TextFormat;
use brimful_graph::input::formats::parse::parse_names;
use brimful_graph::read::lookup::{Direction, Lookup};
use brimful_graph::read::name_cursor::NameCursor;
use brimful_graph::read::verify;
use brimful_graph::{Error, Graph};
use brimful_store::{ErrorKind, Job};

use super::{SMALL, resources, write};

fn no_header() -> ColumnChoice {
    ColumnChoice { header: Some(false), ..ColumnChoice::default() }
}

fn strings() -> ImportOptions {
    ImportOptions {
        ids: IdChoice::String,
        columns: no_header(),
        geometry: SMALL,
        ..ImportOptions::default()
    }
}

fn import_as(
    folder: &Path,
    format: TextFormat,
    text: impl AsRef<[u8]>,
    options: &ImportOptions,
) -> Result<Graph, Error> {
    let input = write(folder, "edges.txt", text);
    let out = folder.join("g.brimful");
    let _ = std::fs::remove_dir_all(&out);
    let resources = resources(2, 1 << 30);
    let mut options = options.clone();
    if format != TextFormat::EdgeList && format != TextFormat::Auto {
        options.columns = ColumnChoice::default();
    }
    import(Input::Text(format, vec![input]), &out, &options, &resources)?;
    let graph = Graph::open(&out, resources.job.traffic())?;
    verify::verify(&graph, &Job::new())?;
    Ok(graph)
}

/// All edges by name, with their multiplicity.
fn edges(graph: impl Into<Arc<Graph>>) -> BTreeMap<(String, String), usize> {
    let graph = graph.into();
    let mut reader = EdgeReader::new(Arc::clone(&graph));
    let (mut batch, mut out, mut names) =
        (EdgeBatch::default(), BTreeMap::new(), NameCursor::default());
    while reader.next(&mut batch).unwrap() {
        let sources = names.labels(&graph, &batch.sources).unwrap();
        let targets = names.labels(&graph, &batch.targets).unwrap();
        for (source, target) in sources.iter().zip(targets.iter()) {
            *out.entry((source.to_owned(), target.to_owned())).or_default() += 1;
        }
    }
    out
}

fn model(pairs: &[(&str, &str)]) -> BTreeMap<(String, String), usize> {
    let mut out = BTreeMap::new();
    for (source, target) in pairs {
        *out.entry(((*source).to_owned(), (*target).to_owned())).or_default() += 1;
    }
    out
}

#[test]
fn words_are_ids() {
    let folder = tempfile::tempdir().unwrap();
    let text = "# people\nbob\tann 2\n  1,bob,.5\r\nann ann 1\nbob ann 2\nzoë #x 3";
    let columns = ColumnChoice { weight: Some("3".into()), ..no_header() };
    let weighted = ImportOptions { columns, ..strings() };
    let graph = import_as(folder.path(), TextFormat::Auto, text, &weighted).unwrap();
    assert_eq!((graph.vertices(), graph.longest_name()), (5, Some(4)));
    let graph = Arc::new(graph);
    let lookup = Lookup::new(Arc::clone(&graph));
    let neighbors = |name: &str| {
        let vertex = lookup.find(&ExternalId::Name(name.into())).unwrap();
        let found = lookup.neighbors(vertex, Direction::Out, false).unwrap();
        lookup.labels(&found.ids).unwrap().iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(neighbors("bob"), ["ann", "ann"]);
    assert_eq!(neighbors("zoë"), ["#x"]);
    assert_eq!(
        graph.find_name("carl").unwrap_err().to_string(),
        "the graph has no vertex \"carl\""
    );
    for id in [ExternalId::Number(0), ExternalId::Number(-1)] {
        let refused = lookup.find(&id).unwrap_err().to_string();
        assert_eq!(refused, format!("the graph has no vertex {id}; its ids are strings"));
    }
    let pairs = [("bob", "ann"), ("bob", "ann"), ("1", "bob"), ("ann", "ann"), ("zoë", "#x")];
    assert_eq!(edges(graph), model(&pairs));
}

#[test]
fn integers_are_found_by_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let graph = import_as(dir.path(), TextFormat::EdgeList, "json:7 7\nb json:7\n", &strings());
    let lookup = Lookup::new(Arc::new(graph.unwrap()));
    let find = |id: ExternalId| lookup.find(&id).ok();
    let seven = find(ExternalId::Number(7));
    assert_eq!(seven, find(ExternalId::Name("json:7".into())));
    assert_eq!(seven, lookup.graph().find_id(&ExternalId::Number(7)).ok());
    assert!(seven.is_some() && seven != find(ExternalId::Name("7".into())));
    assert_eq!(find(ExternalId::Number(8)), None);
    let many = [ExternalId::Name("b".into()), ExternalId::Number(7)];
    assert_eq!(lookup.find_all(&many, &Job::new()).unwrap()[1], seven.unwrap());
}

#[test]
fn lists_of_names_and_long_lines() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::from("# lists\nhub");
    let mut expected = Vec::new();
    let targets: Vec<String> = (0..300_000).map(|n| format!("leaf{n}")).collect();
    for target in &targets {
        text.push(' ');
        text.push_str(target);
        expected.push(("hub", target.as_str()));
    }
    text.push_str("\nalone\nleaf7 hub\n");
    expected.push(("leaf7", "hub"));
    let options = ImportOptions { ids: IdChoice::Auto, ..ImportOptions::default() };
    let graph = import_as(folder.path(), TextFormat::AdjacencyIds, &text, &options).unwrap();
    assert_eq!(graph.vertices(), 300_002);
    let graph = Arc::new(graph);
    let lookup = Lookup::new(Arc::clone(&graph));
    let alone = lookup.find(&ExternalId::Name("alone".into())).unwrap();
    assert_eq!(lookup.neighbors(alone, Direction::Out, false).unwrap().ids, [0; 0]);
    assert_eq!(edges(graph), model(&expected));
}

#[test]
fn auto_goes_by_most_of_the_first_lines() {
    let folder = tempfile::tempdir().unwrap();
    let auto = ImportOptions { geometry: SMALL, columns: no_header(), ..ImportOptions::default() };
    let names = |text: &str| {
        import_as(folder.path(), TextFormat::Auto, text, &auto)
            .map(|graph| graph.longest_name().is_some())
    };
    assert!(names("a b\nb c\n").unwrap());
    assert!(names("a b\nQ1 2\nQ3 4\n").unwrap());
    assert!(!names("1 2\n3 4\n").unwrap());
    assert!(names("1 b\n").is_err());
    let error = names("source target\n1 2\n").unwrap_err().to_string();
    assert!(
        error.contains("edges.txt:1:1: expected an integer vertex id")
            && error.contains("--ids string"),
        "{error}"
    );
    let late = "1 2\n".repeat(70_000) + "3 x\n";
    let error = names(&late).unwrap_err().to_string();
    assert!(error.contains("edges.txt:70001:3: ") && error.contains("--ids string"), "{error}");
}

#[test]
fn what_is_no_name_is_an_error_with_its_place() {
    let folder = tempfile::tempdir().unwrap();
    let fails = |text: &[u8], options: &ImportOptions| {
        import_as(folder.path(), TextFormat::EdgeList, text, options).unwrap_err().to_string()
    };
    let error = fails(b"a b\nc \xff\xfe\n", &strings());
    assert!(error.contains("edges.txt:2:3: expected a vertex id in UTF-8"), "{error}");
    let error = fails(format!("a b\nc {}\n", "x".repeat((64 << 10) + 1)).as_bytes(), &strings());
    assert!(
        error.contains("edges.txt:2:3: expected a vertex id of at most 65536 bytes"),
        "{error}"
    );
    let error = fails(b"a b\nc\n", &strings());
    assert!(error.contains("edges.txt:2:2: expected two vertex ids on a line"), "{error}");
    let longest = "x".repeat(64 << 10);
    let text = format!("a b\nc {longest}\nlone\n");
    let skipping = ImportOptions { on_error: OnError::Skip, ..strings() };
    let graph = import_as(folder.path(), TextFormat::EdgeList, text, &skipping).unwrap();
    assert_eq!(graph.longest_name(), Some(64 << 10));
    assert_eq!(graph.description().counts.rejected, 1);
    for options in [
        ImportOptions { vertices: Some(3), ..strings() },
        ImportOptions { weights: Weights::Hash, ..strings() },
    ] {
        let error = import_as(folder.path(), TextFormat::EdgeList, "a b\n", &options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
    }
    for format in
        [TextFormat::Mtx, TextFormat::Metis, TextFormat::Gr, TextFormat::Jlg, TextFormat::Adjacency]
    {
        let error = import_as(folder.path(), format, "a b\n", &strings()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
        assert!(error.to_string().contains("integers by definition"), "{error}");
    }
    let error =
        import_as(folder.path(), TextFormat::Auto, "p tw 2 1\n1 2\n", &strings()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Usage, "{error}");
}

#[test]
fn the_same_bytes_at_any_threads_and_budget() {
    let folder = tempfile::tempdir().unwrap();
    let mut text = String::new();
    for n in 0..400_000_u64 {
        let (a, b) = (n.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 46, n % 150_000);
        text.push_str(&format!("https://example.org/wiki/{a} https://example.org/wiki/{b}x\n"));
    }
    let input = write(folder.path(), "edges.txt", &text);
    let mut seen: Option<Vec<(String, Vec<u8>)>> = None;
    for (threads, budget, sort_ids) in [
        (1, 1 << 30, false),
        (3, 1 << 30, false),
        (1, minimum_bytes(1, true, false), false),
        (4, minimum_bytes(4, true, false), true),
    ] {
        let out = folder.path().join("g.brimful");
        let _ = std::fs::remove_dir_all(&out);
        let resources = resources(threads, budget);
        let options = ImportOptions { sort_ids, columns: no_header(), ..ImportOptions::default() };
        import(Input::EdgeList(vec![input.clone()]), &out, &options, &resources).unwrap();
        let mut files: Vec<(String, Vec<u8>)> = std::fs::read_dir(&out)
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                (entry.file_name().into_string().unwrap(), std::fs::read(entry.path()).unwrap())
            })
            .collect();
        files.sort();
        let same = seen.as_ref().is_none_or(|seen| *seen == files);
        assert!(same, "{threads} threads, {budget} bytes");
        assert!(files.iter().any(|(name, _)| name == "names"));
        seen = Some(files);
    }
}

#[test]
fn exports_come_back_or_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let text = "a b\nb c\nc,ü 4\n".replace(" 4", "");
    let graph =
        Arc::new(import_as(folder.path(), TextFormat::EdgeList, &text, &strings()).unwrap());
    let resources = resources(2, 1 << 30);
    let export = |graph: &Arc<Graph>, format: Format, renumber: bool| {
        let path = folder.path().join("out");
        let options = ExportOptions { overwrite: true, renumber, ..ExportOptions::new(format) };
        export::write(graph, &path, &options, &resources)?;
        Ok::<_, Error>(std::fs::read_to_string(path).unwrap())
    };
    let written = export(&graph, Format::EdgeList, false).unwrap();
    assert_eq!(
        written.lines().skip(1).collect::<std::collections::BTreeSet<_>>(),
        ["a\tb", "b\tc", "c\tü"].into()
    );
    assert!(export(&graph, Format::Csv, false).unwrap().contains("c,ü\n"));
    assert!(export(&graph, Format::Mtx, true).unwrap().contains("4 4 3"));
    for (format, renumber) in
        [(Format::U32Pairs, false), (Format::Graphalytics, false), (Format::Mtx, false)]
    {
        let error = export(&graph, format, renumber).unwrap_err();
        assert!(
            error.kind() == ErrorKind::Usage && error.to_string().contains("strings"),
            "{error}"
        );
    }
    let again = import_as(folder.path(), TextFormat::EdgeList, &written, &strings()).unwrap();
    assert_eq!(again.description().order, graph.description().order);
    assert_eq!(edges(again), model(&[("a", "b"), ("b", "c"), ("c", "ü")]));
}

#[test]
fn where_chunks_are_cut_makes_no_difference() {
    let lines = "# c\nanna bob 1\n\n zoë\tbob,2.5\r\n%x y z\nbob # 3";
    let lists = "hub a b c d\n# no list\nalone\n  a,hub b\n\nlast";
    for (format, text) in [(TextFormat::EdgeList, lines), (TextFormat::AdjacencyIds, lists)] {
        let whole = parse_names(format, text.as_bytes(), 1 << 20, OnError::Fail).unwrap();
        for chunk in 20..50 {
            assert_eq!(
                parse_names(format, text.as_bytes(), chunk, OnError::Fail).unwrap(),
                whole,
                "{chunk}"
            );
        }
    }
    let (ends, alone) =
        parse_names(TextFormat::AdjacencyIds, lists.as_bytes(), 8, OnError::Fail).unwrap();
    assert_eq!(ends, "hub a hub b hub c hub d a hub a b".split(' ').collect::<Vec<_>>());
    assert_eq!(alone, ["alone", "last"]);
    // Any bytes give names, rejections, or an error with a position.
    let mut state = 1_u64;
    for _ in 0..3_000 {
        let text: Vec<u8> = (0..40)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1_442_695_040_888_963_407);
                b"ab \t\n\n#%,\r1\xc3\xa9\xff."[(state >> 40) as usize % 15]
            })
            .collect();
        for format in [TextFormat::EdgeList, TextFormat::AdjacencyIds] {
            let whole = parse_names(format, &text, 1 << 20, OnError::Skip);
            let cut = parse_names(format, &text, 41, OnError::Skip);
            assert_eq!(whole.ok(), cut.ok());
        }
    }
}

#[test]
fn a_list_whose_vertex_is_rejected_is_skipped_in_later_chunks_too() {
    let lists = b"\xff a b c d e f g h i j\nk l\n\xff\nm\n".to_vec();
    let long = format!("{} a b c d e f g h i j\nk l\nm\n", "x".repeat((64 << 10) + 1)).into_bytes();
    for (text, chunks) in [(lists, 16..40), (long, (64 << 10) + 4..(64 << 10) + 24)] {
        for chunk in chunks {
            let (ends, alone) =
                parse_names(TextFormat::AdjacencyIds, &text, chunk, OnError::Skip).unwrap();
            assert_eq!((ends, alone), (vec!["k".into(), "l".into()], vec!["m".into()]), "{chunk}");
        }
    }
}
