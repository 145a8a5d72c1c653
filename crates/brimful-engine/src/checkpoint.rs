//! Checkpoints of a run: when to write them, their identity, and the choice of one to resume from.
//!
//! A checkpoint consists of arrays and a few fields (see [`brimful_store::checkpoint`]), which the
//! run defines. Its *identity* lists the names and values of all inputs that later states depend
//! on. Invariant: a run never resumes from a checkpoint of another identity.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use brimful_graph::Graph;
pub use brimful_store::checkpoint::discard;
use brimful_store::checkpoint::{Checkpoints, Draft, Saved, newest};
use brimful_store::{DiskFolder, Error as StoreError, ErrorKind, Job, Resources};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// Version of the payload and of its fields.
const FORMAT: u32 = 3;
/// Number of complete checkpoints to keep.
const KEEP: usize = 2;

/// The interval between checkpoints.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Every {
    /// Every n supersteps, at least 1.
    Supersteps(u64),
    /// After the first superstep that ends at least this long after the last checkpoint.
    Time(Duration),
}

impl Every {
    /// Parses `5` (supersteps) or `30s` (seconds).
    ///
    /// # Errors
    /// [`Error::Usage`] for anything else, and for less than one superstep.
    pub fn parse(text: &str) -> Result<Self> {
        let every = match text.strip_suffix('s') {
            Some(seconds) => seconds
                .parse()
                .ok()
                .and_then(|s| Duration::try_from_secs_f64(s).ok())
                .map(Self::Time),
            None => text.parse().ok().filter(|count| *count > 0).map(Self::Supersteps),
        };
        every.ok_or_else(|| {
            let problem = format!(
                "the interval of checkpoints must be a number of supersteps, such as 5, or of \
                 seconds, such as 30s, not {text:?}"
            );
            Error::Usage(problem)
        })
    }
}

/// Checkpoint and resume options.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckpointOptions {
    /// A folder for the checkpoints of this run alone; created if its parent exists.
    pub folder: PathBuf,
    /// The interval between checkpoints; `None`: never.
    pub every: Option<Every>,
    /// Number of checkpoints to keep, at least 1. On disk, each takes the bytes of all states, and
    /// those of all signals unless signals follow from the states.
    pub keep: usize,
    /// Resume from the last complete checkpoint with the same identity, if there is one.
    pub resume: bool,
    /// Names and values that states depend on, in addition to those that the engine adds: the
    /// graph, the type of the program, and the relevant [`crate::RunOptions`].
    pub identity: Vec<(String, String)>,
}

impl CheckpointOptions {
    /// Options that neither write checkpoints nor resume, and that keep two checkpoints.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into(), every: None, keep: KEEP, resume: false, identity: Vec::new() }
    }
}

/// The default folder for checkpoints of an algorithm: `web.pagerank.checkpoints` next to
/// `web.brimful`.
pub fn default_folder(graph: &Graph, algorithm: &str) -> PathBuf {
    // A relative path such as `.` has no file name.
    let path = graph.path().canonicalize().unwrap_or_else(|_| graph.path().into());
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let name = name.strip_suffix(".brimful").unwrap_or(&name);
    path.with_file_name(format!("{name}.{algorithm}.checkpoints"))
}

/// The superstep of the newest complete checkpoint in `folder`, if there is one.
///
/// # Errors
/// [`ErrorKind::Corrupt`] if the checkpoint fails its checksum.
pub fn newest_superstep(folder: &Path) -> Result<Option<u64>> {
    let payload = newest(&DiskFolder::new(folder), Job::new().traffic())?;
    payload
        .map(|payload| parse::<IgnoredAny>(folder, &payload).map(|payload| payload.superstep))
        .transpose()
}

/// The fields that are published with the arrays.
#[derive(Debug, Serialize, Deserialize)]
struct Payload<T> {
    format: u32,
    superstep: u64,
    identity: Vec<(String, String)>,
    fields: T,
}

fn parse<T: DeserializeOwned>(path: &Path, payload: &[u8]) -> Result<Payload<T>> {
    #[derive(Deserialize)]
    struct Version {
        format: u32,
    }
    let wrong = |e: serde_json::Error| StoreError::corrupt_checkpoint(path, 0, e.to_string());
    // Other versions may have other fields, so the version is checked first.
    let Version { format } = serde_json::from_slice(payload).map_err(wrong)?;
    if format > FORMAT {
        return Err(
            StoreError::Version { path: path.into(), found: format, supported: FORMAT }.into()
        );
    }
    Ok(serde_json::from_slice(payload).map_err(wrong)?)
}

/// Writes the checkpoints of one run.
#[derive(Debug)]
pub struct Checkpointer<'a> {
    options: &'a CheckpointOptions,
    resources: &'a Resources,
    checkpoints: Checkpoints,
    identity: Vec<(String, String)>,
    last: Instant,
    /// Seconds spent on checkpoints so far, during which the run did nothing else.
    seconds: f64,
}

impl<'a> Checkpointer<'a> {
    /// Opens the folder. `added` is the caller's part of the identity. If `writes` is false,
    /// another process of the same run holds the folder and writes the checkpoints.
    ///
    /// # Errors
    /// [`ErrorKind::Input`] if the run is to resume and the newest checkpoint is of another graph,
    /// [`Error::Usage`] if another item of its identity differs; I/O.
    pub fn open(
        options: &'a CheckpointOptions,
        graph: &Graph,
        added: &[(&str, String)],
        resources: &'a Resources,
        writes: bool,
    ) -> Result<Self> {
        let traffic = resources.job.traffic();
        let checkpoints = match writes {
            true => Checkpoints::open(&options.folder, options.keep, traffic)?,
            false => Checkpoints::open_to_read(&options.folder, traffic)?,
        };
        let mut identity = vec![
            (GRAPH.to_owned(), format!("{:016x}", graph.fingerprint())),
            ("version of brimful".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ];
        identity.extend(options.identity.iter().cloned());
        identity.extend(added.iter().map(|(name, value)| ((*name).to_owned(), value.clone())));
        let opened =
            Self { options, resources, checkpoints, identity, last: Instant::now(), seconds: 0.0 };
        if writes {
            opened.check_folder()?;
        }
        Ok(opened)
    }

    /// Checks the identity of the newest checkpoint before the run does any work.
    fn check_folder(&self) -> Result<()> {
        let (job, path) = (&self.resources.job, self.checkpoints.path());
        let Some(number) = self.checkpoints.existing().next() else {
            if self.options.resume {
                let folder = path.display();
                job.say(format!(
                    "there is no checkpoint in {folder}; the run starts from the beginning"
                ));
            }
            return Ok(());
        };
        if !self.options.resume {
            let folder = path.display();
            job.say(format!(
                "this run starts from the beginning and replaces the checkpoints in {folder} once \
                 it has one of its own; stop it and give --resume (Python: resume=True) to \
                 continue from them"
            ));
            return Ok(());
        }
        match self
            .checkpoints
            .read(number)
            .map_err(Error::from)
            .and_then(|saved| self.superstep(&saved))
        {
            // A corrupt checkpoint is handled when the run resumes.
            Err(error) if error.kind() == ErrorKind::Corrupt => Ok(()),
            newest => newest.map(drop),
        }
    }

    /// The superstep of a checkpoint, which must have the identity of this run.
    fn superstep(&self, saved: &Saved) -> Result<u64> {
        let payload = parse::<IgnoredAny>(&saved.path(), saved.payload())?;
        let folder = self.checkpoints.path();
        let Some((name, was, is)) = differing(&payload.identity, &self.identity) else {
            return Ok(payload.superstep);
        };
        if name == GRAPH {
            let problem = "its checkpoints belong to a run on another graph; resume on that graph, \
                           or name another folder with --checkpoint-dir";
            return Err(brimful_graph::Error::input(folder, problem).into());
        }
        Err(Error::Usage(format!(
            "{} holds checkpoints of another run: {name} was {was} there and is {is} here; resume \
             with the same value, or name another folder with --checkpoint-dir",
            folder.display()
        )))
    }

    /// Lets `restore` resume from the newest intact checkpoint; returns its superstep. Returns
    /// `None`, without effect, if the run is not to resume or there is no checkpoint. `restore` may
    /// be called again for an older checkpoint after it found corruption.
    ///
    /// # Errors
    /// [`Error::Usage`] if the checkpoint is beyond `max_supersteps`; [`ErrorKind::Corrupt`] if
    /// none is intact.
    pub fn resume<T: DeserializeOwned>(
        &mut self,
        max_supersteps: u64,
        restore: &mut dyn FnMut(Saved, T) -> Result<()>,
    ) -> Result<Option<u64>> {
        let mut corruption = None;
        for number in self.checkpoints.existing().filter(|_| self.options.resume) {
            match self.resume_from(number, max_supersteps, restore) {
                Ok(superstep) => {
                    self.resources.job.say(match corruption {
                        None => format!("the run resumes from superstep {superstep}"),
                        Some(error) => {
                            format!(
                                "the run resumes from superstep {superstep}, an older \
                                 checkpoint, because {error}"
                            )
                        }
                    });
                    self.last = Instant::now();
                    return Ok(Some(superstep));
                }
                Err(error) if error.kind() == ErrorKind::Corrupt => {
                    corruption.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        corruption.map_or(Ok(None), Err)
    }

    fn resume_from<T: DeserializeOwned>(
        &mut self,
        number: u64,
        max_supersteps: u64,
        restore: &mut dyn FnMut(Saved, T) -> Result<()>,
    ) -> Result<u64> {
        let saved = self.checkpoints.read(number)?;
        let superstep = self.superstep(&saved)?;
        if superstep > max_supersteps {
            let problem = format!(
                "the checkpoint in {} is of superstep {superstep}, and the run is to end after \
                 {max_supersteps}; allow more supersteps, or start from the beginning",
                self.checkpoints.path().display()
            );
            return Err(Error::Usage(problem));
        }
        let payload = parse::<T>(&saved.path(), saved.payload())?;
        restore(saved, payload.fields)?;
        self.checkpoints.resume_after(number);
        Ok(superstep)
    }

    /// True if a checkpoint is due after `superstep`.
    pub fn is_due(&self, superstep: u64) -> bool {
        match self.options.every {
            None => false,
            Some(Every::Supersteps(count)) => superstep.is_multiple_of(count),
            Some(Every::Time(time)) => self.last.elapsed() >= time,
        }
    }

    /// Writes a checkpoint of `fields` and of the arrays that `arrays` adds. The checkpoint becomes
    /// complete some time after this function returns.
    ///
    /// # Errors
    /// Errors of `arrays`, and of completing the previous checkpoint.
    pub fn make<T: Serialize, E: From<Error>>(
        &mut self,
        superstep: u64,
        fields: T,
        arrays: impl FnOnce(&mut Draft, &Resources) -> Result<(), E>,
    ) -> Result<(), E> {
        let begin = Instant::now();
        let mut draft = self.checkpoints.begin().map_err(Error::from)?;
        arrays(&mut draft, self.resources)?;
        Ok(self.publish(superstep, fields, draft, begin)?)
    }

    fn publish<T: Serialize>(
        &mut self,
        superstep: u64,
        fields: T,
        draft: Draft,
        begin: Instant,
    ) -> Result<()> {
        let payload =
            Payload { format: FORMAT, superstep, identity: self.identity.clone(), fields };
        let payload = serde_json::to_vec(&payload).map_err(|e| Error::Internal(e.to_string()))?;
        self.checkpoints.publish(draft, payload)?;
        self.last = Instant::now();
        self.seconds += (self.last - begin).as_secs_f64();
        Ok(())
    }

    /// Waits until all checkpoints are complete; returns the seconds that they cost the run.
    pub fn finish(mut self) -> Result<f64> {
        let begin = Instant::now();
        self.checkpoints.wait()?;
        Ok(self.seconds + begin.elapsed().as_secs_f64())
    }
}

/// The identity item that names the graph.
const GRAPH: &str = "graph";

/// The first item that differs: its name, and its two values.
fn differing<'i>(
    was: &'i [(String, String)],
    is: &'i [(String, String)],
) -> Option<(&'i str, &'i str, &'i str)> {
    let value = |items: &'i [(String, String)], name: &str| {
        items.iter().find(|item| item.0 == name).map_or("nothing", |item| item.1.as_str())
    };
    let names = is.iter().chain(was).map(|(name, _)| name.as_str());
    let mut items = names.map(|name| (name, value(was, name), value(is, name)));
    items.find(|(_, was, is)| was != is)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn how_often_is_read_from_a_number_with_or_without_a_unit() {
        assert_eq!(Every::parse("5").unwrap(), Every::Supersteps(5));
        assert_eq!(Every::parse("30s").unwrap(), Every::Time(Duration::from_secs(30)));
        assert_eq!(Every::parse("0.5s").unwrap(), Every::Time(Duration::from_millis(500)));
        for wrong in ["", "0", "-1", "s", "-1s", "5 s", "1e3", "NaNs", "1m"] {
            assert_eq!(Every::parse(wrong).unwrap_err().kind(), ErrorKind::Usage, "{wrong:?}");
        }
    }

    #[test]
    fn the_first_item_that_differs_is_named() {
        let items = |pairs: &[(&str, &str)]| -> Vec<_> {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
        };
        let (one, same) = (items(&[("a", "1"), ("b", "2")]), items(&[("b", "2"), ("a", "1")]));
        assert_eq!(differing(&one, &same), None);
        assert_eq!(differing(&one, &items(&[("a", "1"), ("b", "3")])), Some(("b", "2", "3")));
        assert_eq!(differing(&one, &items(&[("a", "1")])), Some(("b", "2", "nothing")));
        assert_eq!(differing(&items(&[("a", "1")]), &one), Some(("b", "nothing", "2")));
    }
}
