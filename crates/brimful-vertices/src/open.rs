//! Stores by name: `memory`, `bytes`, `file:PATH`, `kv:PATH`, and user-defined ones.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use brimful_collections::Options;
use brimful_store::Resources;
use brimful_store::external::make_folder;

#[cfg(feature = "kv")]
use crate::bulk::Buffered;
use crate::bytes::BytesStore;
use crate::error::one_of;
use crate::error::{Error, Result};
use crate::file::FileStore;
#[cfg(feature = "kv")]
use crate::kv::KvStore;
use crate::memory::MemoryStore;
use crate::record_store::RecordStore;
use crate::serialized::Serialized;
use crate::serializer::Serializer;
use crate::store::VertexStore;
use crate::vertex::Stored;

/// The options of the store of one partition.
#[derive(Debug, Clone)]
pub struct PartitionOptions {
    /// Number of the partition.
    pub partition: usize,
    /// The budget and the threads.
    pub resources: Arc<Resources>,
    /// Bytes of memory for a store on disk, which has a fixed share of the budget.
    pub memory_bytes: u64,
    /// True if the store is kept: it may have vertices already, and they stay after the run.
    pub is_kept: bool,
}

/// Opens the records of a partition. The text is the part of the URL after `scheme:`, or empty.
type OpenRecords =
    Box<dyn Fn(&str, &PartitionOptions) -> Result<Box<dyn RecordStore>> + Send + Sync>;

/// The kind of a store: where it keeps its vertices. It determines the use of memory, and the files
/// that a run leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// Live vertices in memory, which have no serializer.
    Live,
    /// Records in memory.
    Memory,
    /// Records in a folder, with a fixed share of the budget.
    Folder,
    /// Records in a database, with a fixed share of the budget.
    Database,
}

impl StoreKind {
    /// True if the store has a fixed share of the budget.
    pub fn has_share(self) -> bool {
        matches!(self, Self::Folder | Self::Database)
    }
}

struct Scheme {
    name: String,
    /// The form of the URL: `file:PATH`.
    form: String,
    kind: StoreKind,
    open: OpenRecords,
}

/// The maximum number of partitions of a store on disk or in a database: each has a file, of the
/// [`brimful_store::device::MAX_OPEN_FILES`] of the process, or a connection.
const MAX_ON_DISK: usize = 8;

/// The known stores, by name.
///
/// ```
/// # use std::sync::Arc;
/// # use brimful_store::{Budget, Job, Resources};
/// use brimful_vertices::serializer::Compact;
/// use brimful_vertices::{Edges, PartitionOptions, Schemes, Vertex, VertexStore};
///
/// # let budget = Budget::new(16 << 20, 0);
/// # let resources = Arc::new(Resources::new(budget, Arc::new(Job::new()), Some(1))?);
/// let memory_bytes = 1 << 20;
/// let options = PartitionOptions { partition: 0, resources, memory_bytes, is_kept: false };
/// let mut store = Schemes::default().open("bytes", &options, Compact)?;
/// assert!(store.insert(Vertex::<u64, f64>::new(1, 0.5, Edges::default()))?);
///
/// let unknown = Schemes::default().open::<Vertex<u64, f64>>("byte", &options, Compact);
/// assert_eq!(
///     unknown.err().unwrap().to_string(),
///     "there is no store \"byte\"; use memory, bytes, file:PATH or kv:PATH"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Schemes {
    schemes: Vec<Scheme>,
}

const MEMORY: &str = "memory";

/// The names of the folders of partitions begin with this.
pub const PARTITION: &str = "partition-";

impl std::fmt::Debug for Schemes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.forms()).finish()
    }
}

impl Default for Schemes {
    /// `memory`, `bytes`, `file:PATH` and, with the feature `kv`, `kv:PATH`.
    fn default() -> Self {
        let none = Self { schemes: Vec::new() };
        let own = none
            .with("bytes", "bytes", StoreKind::Memory, |rest, options| {
                refuse_text("bytes", rest)?;
                Ok(Box::new(BytesStore::new(&options.resources.budget)?))
            })
            .with("file", "file:PATH", StoreKind::Folder, |path, options| {
                let partition = partition_folder("file", path, options)?;
                let mut options = Options::new(&options.resources).memory(options.memory_bytes);
                options.is_share = true;
                Ok(Box::new(FileStore::open(&partition, options)?))
            });
        #[cfg(feature = "kv")]
        let own = own.with("kv", "kv:PATH", StoreKind::Folder, |path, options| {
            // Half of the share is for the buffer, half for the pages of the file.
            let (half, budget) = (options.memory_bytes / 2, &options.resources.budget);
            let folder = partition_folder("kv", path, options)?;
            let below = match options.is_kept {
                true => KvStore::open(&folder, half, budget)?,
                false => KvStore::create(&folder, half, budget)?,
            };
            Ok(Box::new(Buffered::new(below, half, budget)?))
        });
        own
    }
}

impl Schemes {
    /// Adds a store, or replaces the store with that name.
    #[must_use]
    pub fn with<F>(mut self, name: &str, form: &str, kind: StoreKind, open: F) -> Self
    where
        F: Fn(&str, &PartitionOptions) -> Result<Box<dyn RecordStore>> + Send + Sync + 'static,
    {
        self.schemes.retain(|scheme| scheme.name != name);
        let (name, form) = (name.to_owned(), form.to_owned());
        self.schemes.push(Scheme { name, form, kind, open: Box::new(open) });
        self
    }

    /// Opens the store of `url` for one partition.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name; else those of opening the store.
    pub fn open<V: Stored>(
        &self,
        url: &str,
        options: &PartitionOptions,
        serializer: impl Serializer<V> + 'static,
    ) -> Result<Box<dyn VertexStore<V>>> {
        if self.kind(url)? == StoreKind::Live {
            refuse_text(MEMORY, self.find(url)?.1)?;
            return Ok(Box::new(MemoryStore::new(&options.resources.budget)?));
        }
        Ok(Box::new(Serialized::new(self.open_records(url, options)?, serializer)))
    }

    /// Opens the records of `url` for one partition.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name and for live vertices; else those of opening the store.
    pub fn open_records(
        &self,
        url: &str,
        options: &PartitionOptions,
    ) -> Result<Box<dyn RecordStore>> {
        match self.find(url)? {
            (Some(scheme), rest) => (scheme.open)(rest, options),
            (None, _) => Err(Error::Usage(format!("the store {url:?} has no records"))),
        }
    }

    /// The kind of the store of `url`.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name.
    pub fn kind(&self, url: &str) -> Result<StoreKind> {
        Ok(self.find(url)?.0.map_or(StoreKind::Live, |scheme| scheme.kind))
    }

    /// The maximum number of partitions that the store supports; `None` if it supports any number.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name.
    pub fn max_partitions(&self, url: &str) -> Result<Option<usize>> {
        Ok(self.kind(url)?.has_share().then_some(MAX_ON_DISK))
    }

    /// The name of the store and its folders, one for each disk, if the store of `url` is on disk.
    ///
    /// # Errors
    /// [`Error::Usage`] for an unknown name, or without a folder.
    pub fn folders<'u>(&'u self, url: &'u str) -> Result<Option<(&'u str, Vec<&'u Path>)>> {
        let (scheme, rest) = self.find(url)?;
        let on_disk = scheme.filter(|scheme| scheme.kind == StoreKind::Folder);
        on_disk
            .map(|scheme| Ok((scheme.name.as_str(), folders_of(&scheme.name, rest)?)))
            .transpose()
    }

    /// The scheme of `url`, `None` for live vertices, and the rest of the URL.
    fn find<'u>(&self, url: &'u str) -> Result<(Option<&Scheme>, &'u str)> {
        let (name, rest) = url.split_once(':').unwrap_or((url, ""));
        let scheme = self.schemes.iter().find(|scheme| scheme.name == name);
        match scheme {
            None if name != MEMORY => Err(Error::Usage(format!(
                "there is no store {url:?}; use {}",
                one_of(self.forms())
            ))),
            scheme => Ok((scheme, rest)),
        }
    }

    /// The forms of the URLs of all stores.
    pub fn forms(&self) -> impl Iterator<Item = &str> {
        std::iter::once(MEMORY).chain(self.schemes.iter().map(|scheme| scheme.form.as_str()))
    }
}

/// The folder of a partition in one of the folders of the URL, which is created if it is missing;
/// the folder of the partition is not.
///
/// # Errors
/// [`Error::Usage`] without a folder; I/O.
pub fn partition_folder(name: &str, paths: &str, options: &PartitionOptions) -> Result<PathBuf> {
    let folder = folder_of_partition(&folders_of(name, paths)?, options.partition);
    folder.parent().map_or(Ok(()), make_folder)?;
    Ok(folder)
}

/// The folder of a partition in one of these folders, one for each disk. Partitions take turns, so
/// that all disks work at once.
pub fn folder_of_partition(folders: &[&Path], partition: usize) -> PathBuf {
    folders[partition % folders.len()].join(format!("{PARTITION}{partition:04}"))
}

/// The folders in `file:P1,P2`, and in the URL of any other store on disk.
fn folders_of<'p>(name: &str, paths: &'p str) -> Result<Vec<&'p Path>> {
    let folders: Vec<&Path> = paths.split(',').map(Path::new).collect();
    if folders.iter().any(|folder| folder.as_os_str().is_empty()) {
        return Err(Error::Usage(format!(
            "the store {name:?} needs a folder; write {name}:PATH, or {name}:P1,P2 for several \
             disks"
        )));
    }
    let repeated = folders.iter().enumerate().find(|(at, folder)| folders[..*at].contains(folder));
    if let Some((_, folder)) = repeated {
        let problem =
            format!("the store {name:?} names {} twice; name a folder once", folder.display());
        return Err(Error::Usage(problem));
    }
    // The URLs of plug-ins come here without their options.
    if paths.contains('?') {
        return Err(Error::Usage(format!(
            "the store {name:?} has no options; leave out the text from the question mark on"
        )));
    }
    Ok(folders)
}

fn refuse_text(name: &str, rest: &str) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(Error::Usage(format!(
        "the store {name:?} takes nothing after its name, found {rest:?}; write {name}"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{SampleVertex, check_vertices};
    use crate::serializer::Compact;
    use brimful_store::{Budget, ErrorKind, Job};

    #[test]
    fn stores_by_name_conform_and_keep_their_partitions_apart() {
        let resources =
            Resources::new(Budget::new(256 << 20, 0), Arc::new(Job::new()), Some(1)).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let mut options = PartitionOptions {
            partition: 0,
            resources: Arc::new(resources),
            memory_bytes: 4 << 20,
            is_kept: false,
        };
        let file = format!("file:{}", folder.path().join("vertices").display());
        let kv = format!("kv:{}", folder.path().join("more").display());
        for url in ["memory", "bytes", &file, &kv] {
            check_vertices(&mut || {
                options.partition += 1;
                Schemes::default().open::<SampleVertex>(url, &options, Compact)
            })
            .unwrap();
        }
    }

    #[test]
    fn names_that_say_nothing_are_refused() {
        let resources =
            Resources::new(Budget::new(16 << 20, 0), Arc::new(Job::new()), Some(1)).unwrap();
        let options = PartitionOptions {
            partition: 0,
            resources: Arc::new(resources),
            memory_bytes: 4 << 20,
            is_kept: false,
        };
        let refused = |url: &str| {
            let more =
                Schemes::default().with("other", "other:HOST", StoreKind::Database, |_, _| {
                    unreachable!("nobody opens it")
                });
            let error = more.open::<SampleVertex>(url, &options, Compact).err().unwrap();
            assert_eq!(error.kind(), ErrorKind::Usage);
            error.to_string()
        };
        assert_eq!(
            refused("mongo:x"),
            "there is no store \"mongo:x\"; use memory, bytes, file:PATH, kv:PATH or other:HOST"
        );
        assert_eq!(
            refused("memory:5"),
            "the store \"memory\" takes nothing after its name, found \"5\"; write memory"
        );
        assert_eq!(
            refused("bytes:5"),
            "the store \"bytes\" takes nothing after its name, found \"5\"; write bytes"
        );
        assert_eq!(
            refused("file:"),
            "the store \"file\" needs a folder; write file:PATH, or file:P1,P2 for several disks"
        );
        assert_eq!(refused("file:a,b,a"), "the store \"file\" names a twice; name a folder once");
        assert_eq!(
            refused("file:a?cache=1M"),
            "the store \"file\" has no options; leave out the text from the question mark on"
        );
    }
}
