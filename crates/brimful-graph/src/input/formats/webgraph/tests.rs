//! Tests the reader against the example of the paper, and against an encoder written from the
//! paper's definitions.

use super::super::bits::writer::BitWriter;
use super::super::parse::parse_webgraph;
use super::*;

/// An encoder that chooses references and blocks itself.
struct Encoder {
    parameters: Parameters,
    out: BitWriter,
    lists: Vec<Vec<u64>>,
}

fn natural(number: i64) -> u64 {
    if number < 0 { 2 * number.unsigned_abs() - 1 } else { 2 * number.unsigned_abs() }
}

impl Encoder {
    fn put(&mut self, code: Code, value: u64) {
        self.out.write(code, value);
    }

    fn push(&mut self, list: Vec<u64>, back: usize) {
        let p = self.parameters;
        let vertex = self.lists.len() as u64;
        self.put(p.outdegrees, list.len() as u64);
        let mut rest = list.clone();
        if !list.is_empty() {
            let back = back.min(self.lists.len()).min(p.window as usize);
            if p.window > 0 {
                self.put(p.references, back as u64);
            }
            if back > 0 {
                let reference = self.lists[self.lists.len() - back].clone();
                let copied: Vec<bool> =
                    reference.iter().map(|target| list.contains(target)).collect();
                rest.retain(|target| !reference.contains(target));
                self.blocks(&copied);
            }
            if !rest.is_empty() && p.min_interval > 0 {
                rest = self.intervals(vertex, &rest);
            }
            let mut last = None;
            for &target in &rest {
                let gap =
                    last.map_or(natural(target as i64 - vertex as i64), |last| target - last - 1);
                self.put(p.residuals, gap);
                last = Some(target);
            }
        }
        self.lists.push(list);
    }

    fn blocks(&mut self, copied: &[bool]) {
        let mut runs = Vec::new();
        let (mut value, mut length) = (true, 0_u64);
        for &copy in copied {
            if copy == value {
                length += 1;
            } else {
                runs.push(length);
                (value, length) = (copy, 1);
            }
        }
        // The format omits the last run.
        self.put(self.parameters.block_counts, runs.len() as u64);
        for (number, run) in runs.into_iter().enumerate() {
            self.put(self.parameters.blocks, if number == 0 { run } else { run - 1 });
        }
    }

    fn intervals(&mut self, vertex: u64, rest: &[u64]) -> Vec<u64> {
        let (mut runs, mut residuals) = (Vec::new(), Vec::new());
        for run in rest.chunk_by(|a, b| a + 1 == *b) {
            if run.len() as u64 >= self.parameters.min_interval {
                runs.push((run[0], run.len() as u64));
            } else {
                residuals.extend_from_slice(run);
            }
        }
        self.put(Code::Gamma, runs.len() as u64);
        let mut end = None;
        for (left, length) in runs {
            let gap = end.map_or(natural(left as i64 - vertex as i64), |end| left - end - 1);
            self.put(Code::Gamma, gap);
            self.put(Code::Gamma, length - self.parameters.min_interval);
            end = Some(left + length);
        }
        residuals
    }
}

fn name(code: Code) -> &'static str {
    match code {
        Code::Unary => "UNARY",
        Code::Gamma => "GAMMA",
        Code::Delta => "DELTA",
        Code::Zeta(_) => "ZETA",
        Code::Nibble => "NIBBLE",
        Code::Golomb(_) => "GOLOMB",
    }
}

fn properties(p: &Parameters) -> String {
    let zeta_k = match p.residuals {
        Code::Zeta(k) => u64::from(k),
        Code::Golomb(modulus) => modulus,
        _ => 3,
    };
    format!(
        "#BVGraph properties\ngraphclass=it.unimi.dsi.webgraph.BVGraph\nversion=0\nnodes={}\n\
         arcs={}\nwindowsize={}\nmaxrefcount=3\nminintervallength={}\nzetak={zeta_k}\n\
         compressionflags=OUTDEGREES_{} | REFERENCES_{} | BLOCK_COUNT_{} | BLOCKS_{} | \
         RESIDUALS_{} | OFFSETS_DELTA\n",
        p.nodes,
        p.arcs,
        p.window,
        p.min_interval,
        name(p.outdegrees),
        name(p.references),
        name(p.block_counts),
        name(p.blocks),
        name(p.residuals)
    )
}

fn parameters() -> Parameters {
    Parameters {
        nodes: 0,
        arcs: 0,
        window: 7,
        min_interval: 4,
        outdegrees: Code::Gamma,
        references: Code::Unary,
        block_counts: Code::Gamma,
        blocks: Code::Gamma,
        residuals: Code::Zeta(3),
    }
}

/// Lists of a web-like graph: many are similar to the previous list and contain runs.
fn lists(seed: u64, nodes: u64) -> Vec<Vec<u64>> {
    let mut state = seed;
    let mut random = |bound: u64| {
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % bound
    };
    let mut lists: Vec<Vec<u64>> = Vec::new();
    for vertex in 0..nodes {
        let mut list: Vec<u64> = match lists.last() {
            Some(last) if random(3) > 0 => {
                last.iter().copied().filter(|t| t % 5 != vertex % 5).collect()
            }
            _ => Vec::new(),
        };
        for _ in 0..random(4) {
            list.push(random(nodes));
        }
        let start = random(nodes);
        list.extend((start..nodes).take(random(12) as usize));
        list.sort_unstable();
        list.dedup();
        lists.push(if random(6) == 0 { Vec::new() } else { list });
    }
    lists
}

fn encode(p: Parameters, lists: Vec<Vec<u64>>) -> (String, Vec<u8>, Vec<(u64, u64)>) {
    let arcs: u64 = lists.iter().map(|list| list.len() as u64).sum();
    let p = Parameters { nodes: lists.len() as u64, arcs, ..p };
    let edges = (0..).zip(&lists).flat_map(|(v, list)| list.iter().map(move |&t| (v, t))).collect();
    let mut encoder = Encoder { parameters: p, out: BitWriter::default(), lists: Vec::new() };
    for (number, list) in lists.into_iter().enumerate() {
        encoder.push(list, number * 7 % 5);
    }
    (properties(&p), encoder.out.bytes(), edges)
}

fn read(properties: &str, graph: &[u8]) -> Result<Vec<(u64, u64)>> {
    let parsed = parse_webgraph(properties.as_bytes(), graph, 1 << 30)?;
    Ok(parsed.edges.into_iter().map(|(source, target, _)| (source, target)).collect())
}

#[test]
fn the_example_of_the_paper() {
    // Tables 1 to 3 of "The WebGraph Framework I", with windows of 3 and intervals of at least 2.
    let p = Parameters { window: 3, min_interval: 2, nodes: 3042, arcs: 26, ..parameters() };
    let mut out = BitWriter::default();
    (0..15).for_each(|_| out.write(p.outdegrees, 0));
    let mut put = |code, values: &[u64]| values.iter().for_each(|&value| out.write(code, value));
    // Vertex 15: 11 targets, no reference, two intervals, four residuals.
    put(Code::Gamma, &[11]);
    put(Code::Unary, &[0]);
    put(Code::Gamma, &[2, 0, 3, 2, 0]);
    put(Code::Zeta(3), &[3, 189, 111, 718]);
    // Vertex 16: 10 targets, copied from the previous list in seven blocks, an interval, two
    // residuals.
    put(Code::Gamma, &[10]);
    put(Code::Unary, &[1]);
    put(Code::Gamma, &[7, 0, 0, 2, 1, 1, 0, 0]);
    put(Code::Gamma, &[1, 600, 0]);
    put(Code::Zeta(3), &[12, 3018]);
    put(Code::Gamma, &[0]);
    // Vertex 18: 5 targets, the first four from the third list before it, one residual.
    put(Code::Gamma, &[5]);
    put(Code::Unary, &[3]);
    put(Code::Gamma, &[1, 4, 0]);
    put(Code::Zeta(3), &[64]);
    (19..p.nodes).for_each(|_| out.write(p.outdegrees, 0));
    let lists: [(u64, &[u64]); 3] = [
        (15, &[13, 15, 16, 17, 18, 19, 23, 24, 203, 315, 1034]),
        (16, &[15, 16, 17, 22, 23, 24, 315, 316, 317, 3041]),
        (18, &[13, 15, 16, 17, 50]),
    ];
    let expected: Vec<(u64, u64)> = lists
        .iter()
        .flat_map(|(vertex, list)| list.iter().map(|&target| (*vertex, target)))
        .collect();
    assert_eq!(read(&properties(&p), &out.bytes()).unwrap(), expected);
}

#[test]
fn every_combination_of_codes_reads_back() {
    let residuals = [
        Code::Gamma,
        Code::Delta,
        Code::Zeta(1),
        Code::Zeta(3),
        Code::Zeta(5),
        Code::Nibble,
        Code::Golomb(4),
    ];
    let references = [Code::Unary, Code::Gamma, Code::Delta];
    let mut seed = 0;
    for residuals in residuals {
        for references in references {
            for (window, min_interval) in [(0, 4), (1, 0), (3, 2), (7, 4)] {
                seed += 1;
                let outdegrees = if seed % 2 == 0 { Code::Gamma } else { Code::Delta };
                let p = Parameters {
                    window,
                    min_interval,
                    outdegrees,
                    references,
                    block_counts: references,
                    blocks: outdegrees,
                    residuals,
                    ..parameters()
                };
                let (properties, graph, edges) = encode(p, lists(seed, 120));
                assert_eq!(read(&properties, &graph).unwrap(), edges, "{p:?}");
            }
        }
    }
}

#[test]
fn damage_is_refused_with_its_place() {
    let (properties, graph, _) = encode(parameters(), lists(9, 200));
    for cut in [0, 1, graph.len() / 2, graph.len() - 2] {
        let error = read(&properties, &graph[..cut]).unwrap_err().to_string();
        assert!(
            error.starts_with("NAME.graph: at bit ") && error.contains("the bits end"),
            "{error}"
        );
    }
    for bit in 0..graph.len() * 8 {
        let mut flipped = graph.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        // A flipped bit may give another graph, but never more arcs than the properties allow.
        if let Ok(edges) = read(&properties, &flipped) {
            assert_eq!(
                edges.len() as u64,
                Parameters::read(Path::new("p"), properties.as_bytes()).unwrap().arcs
            );
        }
    }
}

#[test]
fn a_list_that_does_not_fit_is_refused() {
    let (properties, graph, _) = encode(parameters(), vec![(0..1000).collect(); 1000]);
    let error = parse_webgraph(properties.as_bytes(), &graph, 800).unwrap_err().to_string();
    assert_eq!(
        error.split(" with the ").next(),
        Some("NAME.graph: the list of vertex 0 has 1000 targets, which do not fit the budget")
    );
}

#[test]
fn properties_that_make_no_sense() {
    let whole = "nodes=2\narcs=1\n";
    let cases = [
        ("arcs=1\n", "NAME.properties:2:1: expected a line `nodes=...`, found the end of the file"),
        ("nodes=2\n", "NAME.properties:2:1: expected a line `arcs=...`, found the end of the file"),
        (
            "nodes=-2\n",
            "NAME.properties:1:1: expected a number up to 4611686018427387904 as `nodes`, \
             found \"-2\"",
        ),
        (
            "arcs=many\n",
            "NAME.properties:1:1: expected a number up to 4611686018427387904 as `arcs`, \
             found \"many\"",
        ),
        ("version=1\n", "NAME.properties:1:1: expected version 0 of the format, found \"1\""),
        (
            "graphclass=it.unimi.dsi.webgraph.EFGraph\n",
            "NAME.properties:1:1: expected the class BVGraph; other classes of WebGraph cannot be \
             read, found \"it.unimi.dsi.webgraph.EFGraph\"",
        ),
        (
            "compressionflags=RESIDUALS_PI2\n",
            "NAME.properties:1:1: expected compression flags of version 0, found \"RESIDUALS_PI2\"",
        ),
        (
            "endianness=little\n",
            "NAME.properties:1:1: expected `big`, the byte order of the format, found \"little\"",
        ),
        (
            "zetak=0\n",
            "NAME.properties:4:1: expected a line `zetak=...` with a number from 1 to 31, \
             found the end of the file",
        ),
    ];
    for (line, message) in cases {
        let text = if message.contains("found the end") && !line.starts_with("zetak") {
            line.to_owned()
        } else {
            format!("{line}{whole}")
        };
        let error = read(&text, &[]).unwrap_err().to_string();
        assert_eq!(error, format!("{message}; correct the properties"));
    }
}
