use std::sync::Arc;

use brimful_collections::Options;
use brimful_store::{Budget, Job, Resources};
use tempfile::TempDir;

use super::*;
use crate::serializer::{Compact, Compressing, Generic, Method, Native};
use crate::{AnyId, BytesStore, FileStore, MemoryStore, Serialized};

fn budget() -> Arc<Budget> {
    Budget::new(256 << 20, 0)
}

/// Creates file stores, each in its own folder.
fn files(folder: &TempDir) -> impl FnMut() -> crate::Result<FileStore> {
    let resources = Arc::new(Resources::new(budget(), Arc::new(Job::new()), Some(1)).unwrap());
    let mut made = 0;
    let path = folder.path().to_owned();
    move || {
        made += 1;
        FileStore::open(&path.join(made.to_string()), Options::new(&resources).memory(8 << 20))
    }
}

#[test]
fn stores_of_records_conform() {
    let budget = budget();
    check_records(&mut || BytesStore::new(&budget)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    check_records(&mut files(&folder)).unwrap();
    assert_eq!(budget.free(), 256 << 20, "everything was given back");
}

#[test]
fn stores_of_vertices_conform() {
    let budget = budget();
    check_vertices(&mut || MemoryStore::new(&budget)).unwrap();
    check_vertices(&mut || Ok(Serialized::new(BytesStore::new(&budget)?, Compact))).unwrap();
    check_vertices(&mut || Ok(Serialized::new(BytesStore::new(&budget)?, Native))).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut files = files(&folder);
    check_vertices(&mut || Ok(Serialized::new(files()?, Compact))).unwrap();
    assert_eq!(budget.free(), 256 << 20, "everything was given back");
}

#[test]
fn serializers_conform() {
    let samples = samples();
    check_serializer(&mut Compact, &samples).unwrap();
    check_serializer(&mut Native, &samples).unwrap();
    check_serializer(&mut Generic, &samples).unwrap();
    for (_, method) in Method::ALL {
        check_serializer(&mut Compressing::new(Compact, method).unwrap(), &samples).unwrap();
        check_serializer(&mut Compressing::new(Native, method).unwrap(), &samples).unwrap();
    }
}

type Varied = Vertex<AnyId, String, Option<f64>, (u64, String)>;

/// Vertices with any content, with ids of either kind and parts of any length.
fn random_vertices(seed: u64) -> Vec<Varied> {
    let mut numbers = Numbers(seed);
    let text = |numbers: &mut Numbers| {
        (0..numbers.below(6))
            .map(|_| char::from_u32(numbers.below(0xD800) as u32).unwrap())
            .collect::<String>()
    };
    let mut vertex = |_| {
        let id = |numbers: &mut Numbers| match numbers.below(4) {
            0 => AnyId::from(text(numbers)),
            1 => AnyId::from(u64::MAX - numbers.below(1 << 40)),
            2 => AnyId::from(numbers.below(1 << 50) as i64 - (1 << 49)),
            _ => AnyId::from(numbers.below(100)),
        };
        let data = |numbers: &mut Numbers| {
            (numbers.below(3) > 0).then(|| numbers.below(1 << 53) as f64 / 1e9 - 1e5)
        };
        let edges =
            (0..numbers.below(40)).map(|_| (id(&mut numbers), data(&mut numbers))).collect();
        let mut vertex = Vertex::new(id(&mut numbers), text(&mut numbers), edges);
        vertex.signalled = [None, Some(vertex.state.clone()), Some(text(&mut numbers))]
            [numbers.below(3) as usize]
            .clone();
        for _ in 0..numbers.below(20) {
            vertex.receive(id(&mut numbers), (numbers.below(u64::MAX), text(&mut numbers)));
        }
        vertex
    };
    (0..12).map(&mut vertex).collect()
}

#[test]
fn vertices_of_any_content_are_what_they_were() {
    for seed in 1..15 {
        let vertices = random_vertices(seed);
        check_serializer(&mut Compact, &vertices).unwrap();
        check_serializer(&mut Generic, &vertices).unwrap();
        check_serializer(&mut Compressing::new(Generic, Method::Zstd).unwrap(), &vertices).unwrap();
    }
}

#[test]
fn ids_keep_their_type() {
    let budget = budget();
    check_id_types(MemoryStore::new(&budget).unwrap()).unwrap();
    check_id_types(Serialized::new(BytesStore::new(&budget).unwrap(), Compact)).unwrap();
    let folder = tempfile::tempdir().unwrap();
    check_id_types(Serialized::new(files(&folder)().unwrap(), Compact)).unwrap();
    let texts = ["", "1", "-1", "\u{1}"].map(|text| AnyId::Text(text.to_owned()));
    let integers = [1, 0, -1, i64::MIN, i64::MAX].map(AnyId::from);
    let large = [1, 1 << 63, u64::MAX].map(AnyId::from);
    check_ids(&[texts.as_slice(), &integers, &large].concat()).unwrap();
    check_ids(&[0_u64, 1, 127, 128, u64::MAX]).unwrap();
    check_ids(&[0_i64, -1, 1, i64::MIN]).unwrap();
}

/// A store that loses every second change, to test the suite itself.
struct Forgetful(MemoryStore<SampleVertex>, bool);

impl crate::VertexStore<SampleVertex> for Forgetful {
    fn insert(&mut self, vertex: SampleVertex) -> crate::Result<bool> {
        self.0.insert(vertex)
    }
    fn put(&mut self, vertex: &SampleVertex) -> crate::Result<()> {
        self.0.put(vertex)
    }
    fn lend(
        &mut self,
        id: &u64,
        borrower: &mut crate::Borrower<'_, SampleVertex>,
    ) -> crate::Result<bool> {
        self.1 = !self.1;
        let forgets = self.1;
        self.0.lend(id, &mut |vertex| {
            let mut copy = (**vertex).clone();
            if forgets { borrower(&mut crate::Loan::new(&mut copy)) } else { borrower(vertex) }
        })
    }
    fn for_each(&mut self, borrower: &mut crate::Borrower<'_, SampleVertex>) -> crate::Result<()> {
        self.0.for_each(borrower)
    }
    fn remove(&mut self, id: &u64) -> crate::Result<bool> {
        self.0.remove(id)
    }
    fn len(&self) -> u64 {
        self.0.len()
    }
    fn sync(&mut self) -> crate::Result<()> {
        self.0.sync()
    }
    fn stats(&self) -> crate::Result<crate::StoreStats> {
        self.0.stats()
    }
}

/// A serializer that leaves old contents in reused memory.
struct Leaky;

impl crate::Serializer<SampleVertex> for Leaky {
    fn name(&self) -> String {
        "leaky".to_owned()
    }
    fn encode(&mut self, vertex: &SampleVertex, out: &mut Vec<u8>) -> Result<(), String> {
        Compact.encode(vertex, out)
    }
    fn decode(
        &mut self,
        id: &u64,
        record: &[u8],
        reuse: Option<SampleVertex>,
    ) -> Result<SampleVertex, String> {
        let mut vertex: SampleVertex = Compact.decode(id, record, None)?;
        for edge in reuse.iter().flat_map(|vertex| vertex.edges().iter()).skip(5) {
            vertex.edges_mut().push(*edge.target, *edge.data);
        }
        Ok(vertex)
    }
}

#[test]
fn the_suite_finds_stores_that_forget_and_vertices_that_show_others() {
    let budget = budget();
    let verdict = check_vertices(&mut || Ok(Forgetful(MemoryStore::new(&budget)?, false)));
    assert!(verdict.unwrap_err().starts_with("changes on loan: expected"));
    let mut store = Serialized::new(BytesStore::new(&budget).unwrap(), Leaky);
    let verdict = super::vertices::one_after_another(&mut store);
    assert!(verdict.unwrap_err().contains("shows what is not its own"));
    assert!(check_serializer(&mut Leaky, &samples()).is_err());
}
