//! Stores that stay after a run: folders of vertices, and a manifest of their condition.
//!
//! The manifest is in the first folder; a file in each further folder names the store that it
//! belongs to. Invariant: files are removed only from folders of this store, which are locked.
//! Invariant: the manifest says [`Condition::Whole`] only while no run is under way, and after all
//! changes are durable. A store that was not loaded to the end is loaded again. A store whose last
//! run did not finish has vertices from different supersteps, and perhaps damaged files; only a
//! `file` store, whose files survive a crash, is opened again.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use brimful_graph::Graph;
use brimful_graph::read::versioned;
use brimful_store::external::{FolderLock, OutputFile, make_folder};
use brimful_store::{DiskFolder, Error as StoreError, Folder, Traffic, manifest};
use brimful_vertices::open::folder_of_partition;
use brimful_vertices::{PARTITION, Schemes};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The version of the manifest.
const FORMAT: u32 = 3;
/// The file in each further folder with the id of its store.
const OWNER: &str = "STORE";

/// The condition of the vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// Not all vertices are loaded.
    Loading,
    /// A run or a caller is changing the vertices.
    Running,
    /// A run stopped before its end: the states of the vertices come from different supersteps.
    Stopped,
    /// The vertices are as the last run left them.
    Whole,
}

/// The contents of a kept store.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    format: u32,
    /// Differs from the ids of other stores; empty in stores of format 2.
    #[serde(default)]
    id: String,
    /// The graph that the vertices come from.
    pub graph: PathBuf,
    /// The fingerprint of that graph.
    fingerprint: u64,
    /// Names and values of the properties of the records, which every run must share.
    properties: Vec<(String, String)>,
    /// The condition of the vertices.
    pub condition: Condition,
    /// The edges of each partition, a vertex counting as one; empty if nothing is loaded.
    pub edges: Vec<u64>,
    /// Data of the caller, which this crate does not interpret.
    pub notes: String,
}

impl Description {
    /// A store of the vertices of `graph`, none of them loaded.
    fn new(graph: &Graph, properties: &[(&str, String)]) -> Self {
        let properties = properties.iter().map(|(name, value)| ((*name).into(), value.clone()));
        Self {
            format: FORMAT,
            id: format!("{:016x}", RandomState::new().build_hasher().finish()),
            graph: graph.path().canonicalize().unwrap_or_else(|_| graph.path().into()),
            fingerprint: graph.fingerprint(),
            properties: properties.collect(),
            condition: Condition::Loading,
            edges: Vec::new(),
            notes: String::new(),
        }
    }

    /// Names and values of the properties of the records.
    pub fn properties(&self) -> impl Iterator<Item = (&str, &str)> {
        self.properties.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

/// A kept store, locked for this owner.
#[derive(Debug)]
pub struct KeptStore {
    folder: DiskFolder,
    number: u64,
    description: Description,
    traffic: Arc<Traffic>,
    _locks: Vec<FolderLock>,
}

impl KeptStore {
    /// The contents of the store of `url`; `None` if there is none.
    ///
    /// # Errors
    /// [`Error::Usage`] for a store that is not in a folder of brimful's own; corruption; I/O.
    pub fn read(url: &str, schemes: &Schemes) -> Result<Option<Description>> {
        let first = DiskFolder::new(folders_of(url, schemes)?.1[0]);
        if !first.path().join(manifest::CURRENT).exists() {
            return Ok(None);
        }
        Ok(Some(read(&first, &Arc::default())?.1))
    }

    /// Opens the store of `url`, or makes it, for records with these properties of the vertices of
    /// `graph`.
    ///
    /// # Errors
    /// [`Error::Usage`] for the vertices of another graph or with other properties, for a folder
    /// with other files, and for a store that is not in a folder of brimful's own; corruption; I/O.
    pub fn open(
        url: &str,
        schemes: &Schemes,
        graph: &Graph,
        properties: &[(&str, String)],
    ) -> Result<Self> {
        let (name, folders) = folders_of(url, schemes)?;
        let (path, further) = (folders[0], &folders[1..]);
        make_folder(path)?;
        let mut locks = vec![FolderLock::take(path)?];
        let (folder, traffic) = (DiskFolder::new(path), Arc::default());
        let (number, description) = if path.join(manifest::CURRENT).exists() {
            read(&folder, &traffic)?
        } else {
            refuse_others(path, &[FolderLock::NAME, manifest::CURRENT_NEW])?;
            (0, Description::new(graph, properties))
        };
        let is_loaded = description.condition != Condition::Loading;
        for folder in further {
            if is_loaded && !folder.is_dir() {
                return Err(missing(folder));
            }
            make_folder(folder)?;
            locks.push(FolderLock::take(folder)?);
            let owner = owner(folder)?.unwrap_or_default();
            if is_loaded && owner != description.id {
                return Err(of_another_store(folder, path));
            }
            if !is_loaded && (owner != description.id || owner.is_empty()) {
                refuse_others(folder, &[FolderLock::NAME, OWNER])?;
            }
        }
        let mut store = Self { folder, number, description, traffic, _locks: locks };
        store.check(graph, properties)?;
        if is_loaded {
            store.require_partitions(&folders)?;
        }
        if store.description.condition == Condition::Running && name != "file" {
            return Err(Error::Usage(format!(
                "the last process that used {} did not finish: it was killed, or the disk was \
                 full; the files may be damaged; remove the folder",
                path.display()
            )));
        }
        if !is_loaded {
            store.begin_loading(&folders)?;
        }
        Ok(store)
    }

    /// Makes every folder one of this store, without partitions.
    fn begin_loading(&mut self, folders: &[&Path]) -> Result<()> {
        for folder in folders {
            remove_partitions(folder)?;
        }
        for folder in &folders[1..] {
            let mut file = OutputFile::create(&folder.join(OWNER), true)?;
            file.write(self.description.id.as_bytes())?;
            file.finish()?;
        }
        self.description.edges.clear();
        self.publish()
    }

    /// Refuses folders that lack a partition.
    fn require_partitions(&self, folders: &[&Path]) -> Result<()> {
        for partition in 0..self.description.edges.len() {
            let path = folder_of_partition(folders, partition);
            if !path.is_dir() {
                return Err(missing(&path));
            }
        }
        Ok(())
    }

    /// Refuses another graph, and records with other properties.
    ///
    /// # Errors
    /// [`Error::Usage`] if the graph or a property differs.
    pub fn check(&self, graph: &Graph, properties: &[(&str, String)]) -> Result<()> {
        let (stored, path) = (&self.description, self.folder.path().display());
        if stored.fingerprint != graph.fingerprint() {
            return Err(Error::Usage(format!(
                "the vertices in {path} belong to an earlier state of the graph {}; name another \
                 folder",
                stored.graph.display()
            )));
        }
        for (name, value) in properties {
            let stored = stored.properties().find(|(stored, _)| stored == name);
            let stored = stored.map_or("none", |(_, value)| value);
            if stored != value {
                return Err(Error::Usage(format!(
                    "the vertices in {path} have {name} {stored}, and the run has {value}; name \
                     another folder"
                )));
            }
        }
        Ok(())
    }

    /// The contents.
    pub fn description(&self) -> &Description {
        &self.description
    }

    /// Changes the description, durably.
    ///
    /// # Errors
    /// I/O.
    pub fn update(&mut self, change: impl FnOnce(&mut Description)) -> Result<()> {
        change(&mut self.description);
        self.publish()
    }

    fn publish(&mut self) -> Result<()> {
        self.number += 1;
        let payload = serde_json::to_vec_pretty(&self.description)
            .map_err(|error| Error::Internal(error.to_string()))?;
        manifest::publish(&self.folder, self.number, &payload, &self.traffic)?;
        Ok(manifest::sweep(&self.folder, self.number)?)
    }
}

/// The name and the folders of a store that can be kept.
fn folders_of<'u>(url: &'u str, schemes: &'u Schemes) -> Result<(&'u str, Vec<&'u Path>)> {
    schemes.folders(url)?.ok_or_else(|| {
        Error::Usage(format!(
            "the store {url:?} cannot be kept; use one whose vertices stay in a folder, such as \
             file:PATH or kv:PATH"
        ))
    })
}

fn read(folder: &DiskFolder, traffic: &Arc<Traffic>) -> Result<(u64, Description)> {
    let (number, payload) = manifest::read(folder, traffic)?;
    let file = folder.path().join(manifest::name(number));
    Ok((number, versioned::parse(&file, 64, &payload, FORMAT)?))
}

/// The id of the store that a further folder belongs to.
fn owner(folder: &Path) -> Result<Option<String>> {
    let path = folder.join(OWNER);
    match fs::read_to_string(&path) {
        Ok(id) => Ok(Some(id)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path, "read", error).into()),
    }
}

/// Refuses a new store in a folder with files other than `ours` and manifests. Partitions are of
/// another store, because the manifest of a store is there before them.
fn refuse_others(folder: &Path, ours: &[&str]) -> Result<()> {
    for name in names_in(folder)? {
        // A kill may leave the unfinished file of the owner, which is hidden.
        let is_ours = ours.contains(&name.as_str()) || name.starts_with(&format!(".{OWNER}."));
        if !is_ours && manifest::number(&name).is_none() {
            return Err(Error::Usage(format!(
                "{} has other files, such as {name}; name another folder for the store",
                folder.display()
            )));
        }
    }
    Ok(())
}

fn missing(path: &Path) -> Error {
    Error::Usage(format!(
        "{} is missing; name all folders of the store, in the order in which it was made, or \
         remove them and make it again",
        path.display()
    ))
}

fn of_another_store(folder: &Path, first: &Path) -> Error {
    Error::Usage(format!(
        "{} is not a folder of the store in {}; name all folders of the store, in the order in \
         which it was made",
        folder.display(),
        first.display()
    ))
}

fn remove_partitions(folder: &Path) -> Result<()> {
    for name in names_in(folder)?.iter().filter(|name| is_partition(name)) {
        let path = folder.join(name);
        fs::remove_dir_all(&path).map_err(|e| StoreError::io(path, "remove", e))?;
    }
    Ok(())
}

fn is_partition(name: &str) -> bool {
    name.strip_prefix(PARTITION)
        .is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

fn names_in(folder: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>())
        .map_err(|e| StoreError::io(folder, "list", e))?;
    let names: Vec<std::ffi::OsString> = names;
    Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_of_format_2_is_read() {
        let saved = r#"{"format": 2, "graph": "g", "fingerprint": 7, "properties": [],
                        "condition": "Whole", "edges": [3], "notes": ""}"#;
        let read = |format| {
            versioned::parse::<Description>(Path::new("manifest-1"), 0, saved.as_bytes(), format)
        };
        let found = read(FORMAT).unwrap();
        assert_eq!((found.id.as_str(), found.edges), ("", vec![3]));
        assert!(matches!(read(1), Err(StoreError::Version { found: 2, supported: 1, .. })));
    }

    #[test]
    fn only_folders_without_files_of_others_are_taken() {
        let folder = tempfile::tempdir().unwrap();
        let refused = |name: &str| {
            fs::write(folder.path().join(name), "").unwrap();
            let refused = refuse_others(folder.path(), &[FolderLock::NAME, OWNER]).is_err();
            fs::remove_file(folder.path().join(name)).unwrap();
            refused
        };
        for name in ["lock", "STORE", ".STORE.partial-7-8", "manifest-3"] {
            assert!(!refused(name), "{name}");
        }
        for name in ["CURRENT", "current", "partition-0001", "partition-old", "notes.txt"] {
            assert!(refused(name), "{name}");
        }
        assert!(is_partition("partition-0001") && !is_partition("partition-old"));
        assert!(!is_partition("partition-"));
    }
}
