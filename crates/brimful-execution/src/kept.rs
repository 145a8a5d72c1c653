//! Stores that stay after a run: a folder of vertices, and a manifest of their condition.
//!
//! Invariant: the manifest says [`Condition::Whole`] only while no run is under way, and after all
//! changes are durable. A store that was not loaded to the end is loaded again. A store whose last
//! run did not end has vertices of different times, and perhaps damaged files; only a `file` store,
//! whose files survive a crash, is opened again.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use brimful_graph::Graph;
use brimful_graph::read::versioned;
use brimful_store::external::{FolderLock, make_folder};
use brimful_store::{DiskFolder, Error as StoreError, Folder, Traffic, manifest};
use brimful_vertices::open::folder_of_partition;
use brimful_vertices::{PARTITION, Schemes};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The version of the manifest.
const FORMAT: u32 = 2;

/// The condition of the vertices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Condition {
    /// Not all vertices are loaded.
    Loading,
    /// A run or a caller is changing the vertices.
    Running,
    /// A run stopped before its end: the states of the vertices are of different times.
    Stopped,
    /// The vertices are as the last run left them.
    Whole,
}

/// The contents of a kept store.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Description {
    format: u32,
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
    _lock: FolderLock,
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
        let path = folders[0];
        make_folder(path)?;
        let lock = FolderLock::take(path)?;
        let (folder, traffic) = (DiskFolder::new(path), Arc::default());
        let new = Description {
            format: FORMAT,
            graph: graph.path().canonicalize().unwrap_or_else(|_| graph.path().into()),
            fingerprint: graph.fingerprint(),
            properties: properties
                .iter()
                .map(|(name, value)| ((*name).into(), value.clone()))
                .collect(),
            condition: Condition::Loading,
            edges: Vec::new(),
            notes: String::new(),
        };
        let (number, description) = if path.join(manifest::CURRENT).exists() {
            read(&folder, &traffic)?
        } else {
            for folder in &folders {
                make_folder(folder)?;
                refuse_others(folder)?;
            }
            (0, new)
        };
        let mut store = Self { folder, number, description, traffic, _lock: lock };
        store.check(graph, properties)?;
        if store.description.condition != Condition::Loading {
            store.require_partitions(&folders)?;
        }
        if store.description.condition == Condition::Running && name != "file" {
            return Err(Error::Usage(format!(
                "the last use of {} did not end: its process was killed, or its disk was full; its \
                 files may be damaged; remove the folder",
                path.display()
            )));
        }
        if store.description.condition == Condition::Loading {
            for folder in &folders {
                make_folder(folder)?;
                remove_partitions(folder)?;
            }
            store.description.edges.clear();
            store.publish()?;
        }
        Ok(store)
    }

    /// Refuses folders that lack a partition.
    fn require_partitions(&self, folders: &[&Path]) -> Result<()> {
        for partition in 0..self.description.edges.len() {
            let path = folder_of_partition(folders, partition);
            if !path.is_dir() {
                return Err(Error::Usage(format!(
                    "{} is missing; name all folders of the store, in the order in which it was \
                     made, or remove them and make it again",
                    path.display()
                )));
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

/// Refuses a new store in a folder that has other files.
fn refuse_others(folder: &Path) -> Result<()> {
    for name in names_in(folder)? {
        if name != FolderLock::NAME && name != manifest::CURRENT_NEW && !is_kept_file(&name) {
            return Err(Error::Usage(format!(
                "{} has other files, such as {name}; name another folder for the store",
                folder.display()
            )));
        }
    }
    Ok(())
}

fn is_kept_file(name: &str) -> bool {
    name.starts_with(PARTITION) || manifest::number(name).is_some()
}

fn remove_partitions(folder: &Path) -> Result<()> {
    for name in names_in(folder)?.iter().filter(|name| name.starts_with(PARTITION)) {
        let path = folder.join(name);
        fs::remove_dir_all(&path).map_err(|e| StoreError::io(path, "remove", e))?;
    }
    Ok(())
}

fn names_in(folder: &Path) -> Result<Vec<String>> {
    let names = fs::read_dir(folder)
        .and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect::<io::Result<_>>())
        .map_err(|e| StoreError::io(folder, "list", e))?;
    let names: Vec<std::ffi::OsString> = names;
    Ok(names.into_iter().map(|name| name.to_string_lossy().into_owned()).collect())
}
