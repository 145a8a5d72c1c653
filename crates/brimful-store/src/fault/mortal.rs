//! A folder of the file system in which the process is killed: for tests whose child dies at a
//! chosen operation and whose parent checks the files that are left.
//!
//! Invariant: until then it behaves as [`DiskFolder`] does. Nothing runs after the kill: no
//! destructor, no other thread.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::process::{Signal, getpid, kill_process};

use crate::device::{Device, DiskFolder, Folder};

/// A counter of operations that change files, and the number of the last one.
#[derive(Debug)]
struct Life {
    spent: AtomicU64,
    last: u64,
}

impl Life {
    /// Counts an operation; true if it is the last.
    fn spend(&self) -> bool {
        self.spent.fetch_add(1, Ordering::SeqCst) + 1 == self.last
    }
}

/// A [`DiskFolder`] whose process is killed at an operation that changes it: before the operation,
/// or after half of its bytes if it writes. Clones share the counter.
#[derive(Debug, Clone)]
pub struct MortalFolder {
    folder: DiskFolder,
    life: Arc<Life>,
}

impl MortalFolder {
    /// The folder at `folder`. Operation number `last`, counted from 1, kills the process; 0 never
    /// does.
    pub fn new(folder: &DiskFolder, last: u64) -> Self {
        Self { folder: folder.clone(), life: Arc::new(Life { spent: AtomicU64::new(0), last }) }
    }

    /// Number of operations so far.
    pub fn spent(&self) -> u64 {
        self.life.spent.load(Ordering::SeqCst)
    }

    /// Counts an operation outside the folder, and dies if it is the last.
    pub fn spend(&self) {
        if self.life.spend() {
            die();
        }
    }

    fn device(&self, device: Box<dyn Device>) -> Box<dyn Device> {
        Box::new(MortalDevice { device, life: Arc::clone(&self.life) })
    }
}

/// Ends the process by SIGKILL, because every other way of ending it may run code.
fn die() -> ! {
    // SIGKILL cannot be refused, even by the process itself.
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        std::thread::park();
    }
}

/// Environment variables of a child: its work, its folder, and the operation at which it dies.
const CHILD: [&str; 3] = ["KILLED_WORK", "KILLED_FOLDER", "KILLED_AT"];

/// Runs the ignored test `test` of this executable in a process of its own, in which [`child`]
/// gives the other arguments; true if the process was killed.
///
/// # Errors
/// The process cannot be started, or it fails otherwise.
pub fn killed_in_child(test: &str, work: &str, folder: &Path, last: u64) -> io::Result<bool> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([test, "--exact", "--ignored"]).stdout(Stdio::null());
    command.env(CHILD[0], work).env(CHILD[1], folder).env(CHILD[2], last.to_string());
    let status = command.status()?;
    match status.signal() == Some(Signal::KILL.as_raw()) {
        killed if killed || status.success() => Ok(killed),
        _ => Err(io::Error::other(format!("{work}, to be killed at {last}: {status}"))),
    }
}

/// The work, the folder and the last operation of a child.
pub fn child() -> Option<(String, PathBuf, u64)> {
    let [work, folder, last] = CHILD.map(std::env::var_os);
    Some((work?.into_string().ok()?, folder?.into(), last?.to_str()?.parse().ok()?))
}

/// The operations at which a test kills: all if `BRIMFUL_KILLS` is `all`, else about `sampled` of
/// them and the last four, which matter most.
pub fn kills(operations: u64, sampled: u64) -> impl Iterator<Item = u64> {
    let all = std::env::var("BRIMFUL_KILLS").is_ok_and(|kills| kills == "all");
    let step = if all { 1 } else { (operations / sampled).max(1) };
    (1..=operations).filter(move |at| at % step == 0 || at + 4 > operations)
}

impl Folder for MortalFolder {
    fn shared(&self) -> Arc<dyn Folder> {
        Arc::new(self.clone())
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Device>> {
        self.spend();
        Ok(self.device(self.folder.create(name)?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Device>> {
        self.folder.open(name)
    }

    fn open_to_change(&self, name: &str) -> io::Result<Box<dyn Device>> {
        Ok(self.device(self.folder.open_to_change(name)?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.spend();
        self.folder.rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.spend();
        self.folder.remove(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        self.folder.list()
    }

    fn sync(&self) -> io::Result<()> {
        self.spend();
        self.folder.sync()
    }

    fn scratch(&self) -> io::Result<Box<dyn Device>> {
        self.spend();
        Ok(self.device(self.folder.scratch()?))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        self.folder.free_bytes()
    }
}

struct MortalDevice {
    device: Box<dyn Device>,
    life: Arc<Life>,
}

impl MortalDevice {
    fn spend(&self) {
        if self.life.spend() {
            die();
        }
    }
}

impl Device for MortalDevice {
    fn len(&self) -> io::Result<u64> {
        self.device.len()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.device.read_at(buffer, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        if self.life.spend() {
            let (half, _) = bytes.split_at(bytes.len() / 2);
            let _ = self.device.write_at(half, offset);
            die();
        }
        self.device.write_at(bytes, offset)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.spend();
        self.device.set_len(len)
    }

    fn sync(&self) -> io::Result<()> {
        self.spend();
        self.device.sync()
    }
}
