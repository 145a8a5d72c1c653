//! A file system in memory that fails on purpose: the second implementation of [`Device`] and
//! [`Folder`], for crash and failure tests.
//!
//! Every file and the list of names have a *live* image, which callers see, and a *durable* one,
//! which a crash leaves. [`Device::sync`] makes a file's bytes durable, [`Folder::sync`] makes
//! creations, renames and removals durable; neither does the other's work, as POSIX allows. A
//! [`FaultPlan`] describes the faults. A test runs once to count the syncs, then once for each of
//! them with durability frozen there, and reopens the result of [`FaultFolder::crash`].
//!
//! [`MortalFolder`] is a folder of the file system in which the process is killed: a child that a
//! test starts by [`killed_in_child`].
//!
//! Invariant: without a plan it behaves as [`crate::DiskFolder`] does. It must be as strict as a
//! disk: unsynced data is lost, or torn, after a crash.

mod image;
mod mortal;
mod plan;

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustix::io::Errno;

use crate::device::{Device, Folder};
use crate::splitmix::{GOLDEN, mix};

use image::{Inode, NameChange, Names};
pub use mortal::{MortalFolder, child, killed_in_child, kills};
pub use plan::{Fault, FaultPlan, Operation};

#[derive(Debug, Default)]
struct State {
    plan: FaultPlan,
    counts: [u64; Operation::ALL.len()],
    random: u64,
    inodes: BTreeMap<u64, Inode>,
    next_inode: u64,
    live: Names,
    durable: Names,
    /// Changes of `live` that are not yet in `durable`, in order.
    changes: Vec<NameChange>,
    /// The files after a crash, once durability is frozen.
    frozen: Option<BTreeMap<String, Vec<u8>>>,
}

impl State {
    /// Counts an operation, and fails it if the plan says so.
    fn begin(&mut self, operation: Operation) -> io::Result<()> {
        self.counts[operation as usize] += 1;
        let now = (operation, self.counts[operation as usize]);
        let failure = self.plan.failures.iter().find(|(class, number, _)| (*class, *number) == now);
        failure.map_or(Ok(()), |(_, _, fault)| Err(fault.error()))
    }

    /// True from the sync at which durability freezes; the first such call stores the files that
    /// survive.
    fn frozen(&mut self) -> bool {
        let reached =
            self.plan.freeze_from_sync.is_some_and(|n| self.counts[Operation::Sync as usize] >= n);
        if reached && self.frozen.is_none() {
            self.frozen = Some(self.survivors());
        }
        self.frozen.is_some()
    }

    fn survivors(&mut self) -> BTreeMap<String, Vec<u8>> {
        let mut random = self.random;
        let mut names = self.durable.clone();
        if self.plan.torn {
            let kept = next(&mut random) as usize % (self.changes.len() + 1);
            self.changes.iter().take(kept).for_each(|change| change.apply(&mut names));
        }
        let mut survivors = BTreeMap::new();
        for (name, inode) in names {
            let torn = self.plan.torn;
            let bytes = self.inode(inode).survivor(|| torn && next(&mut random).is_multiple_of(2));
            survivors.insert(name, bytes);
        }
        self.random = random;
        survivors
    }

    fn inode(&mut self, inode: u64) -> &mut Inode {
        self.inodes.entry(inode).or_default()
    }

    fn new_inode(&mut self) -> u64 {
        self.next_inode += 1;
        self.next_inode
    }

    fn named(&self, name: &str) -> io::Result<u64> {
        self.live.get(name).copied().ok_or_else(|| Errno::NOENT.into())
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.changes.push(change);
    }

    fn transfer(&mut self, wanted: usize) -> usize {
        match self.plan.max_bytes {
            Some(most) if self.plan.varying => {
                wanted.min(1 + next(&mut self.random) as usize % most)
            }
            Some(most) => wanted.min(most),
            None => wanted,
        }
    }

    /// Bytes of all files; a removed file keeps its space until it is closed.
    fn used_bytes(&self) -> u64 {
        let held =
            |number: u64, inode: &Inode| inode.open > 0 || self.live.values().any(|n| *n == number);
        self.inodes
            .iter()
            .filter(|(number, inode)| held(**number, inode))
            .map(|(_, inode)| inode.live.len() as u64)
            .sum()
    }

    /// The number of `wanted` bytes at `offset` of `inode` that fit in the capacity.
    fn fitting(&mut self, inode: u64, offset: usize, wanted: usize) -> io::Result<usize> {
        let Some(capacity) = self.plan.capacity_bytes else {
            return Ok(wanted);
        };
        let largest =
            self.inode(inode).live.len() as u64 + capacity.saturating_sub(self.used_bytes());
        let fits =
            usize::try_from(largest).unwrap_or(usize::MAX).saturating_sub(offset).min(wanted);
        if fits == 0 && wanted > 0 { Err(Fault::Full.error()) } else { Ok(fits) }
    }
}

/// The next number of SplitMix64 after `state`.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(GOLDEN);
    mix(*state)
}

/// A folder in memory, whose failures a [`FaultPlan`] sets. Clones share the folder.
///
/// ```
/// use brimful_store::fault::{FaultFolder, FaultPlan, Operation};
/// use brimful_store::Folder;
///
/// let folder = FaultFolder::new();
/// let file = folder.create("a")?;
/// file.write_at(b"hello", 0)?;
/// file.sync()?;
/// // The bytes are durable, the name is not.
/// assert!(folder.crash().list()?.is_empty());
/// folder.sync()?;
/// assert_eq!(folder.crash().open("a")?.len()?, 5);
/// assert_eq!(folder.count(Operation::Sync), 2);
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct FaultFolder {
    state: Arc<Mutex<State>>,
}

impl FaultFolder {
    /// An empty folder without faults.
    pub fn new() -> Self {
        Self::default()
    }

    /// Replaces the plan and resets all counts to zero.
    pub fn set_plan(&self, plan: FaultPlan) {
        let mut state = self.state();
        state.random = plan.seed;
        state.plan = plan;
        state.counts = Default::default();
        state.frozen = None;
    }

    /// Operations of a class under the current plan, including failed ones.
    pub fn count(&self, operation: Operation) -> u64 {
        self.state().counts[operation as usize]
    }

    /// Bytes of the files that have a name or are open.
    pub fn used_bytes(&self) -> u64 {
        self.state().used_bytes()
    }

    /// Number of open files.
    pub fn open_files(&self) -> usize {
        self.state().inodes.values().map(|inode| inode.open).sum()
    }

    /// The files after a power failure now, or at the sync that froze durability, as a new folder
    /// without faults. This folder stays as it is.
    pub fn crash(&self) -> Self {
        let mut state = self.state();
        let survivors = state.frozen.clone().unwrap_or_else(|| state.survivors());
        Self::of(&survivors)
    }

    /// A folder of these files, all durable, without faults.
    pub fn of(files: &BTreeMap<String, Vec<u8>>) -> Self {
        let mut after = State::default();
        for (name, bytes) in files {
            let number = after.new_inode();
            let (durable, live) = (bytes.clone(), bytes.clone());
            after.inodes.insert(number, Inode { durable, live, ..Inode::default() });
            after.live.insert(name.clone(), number);
        }
        after.durable.clone_from(&after.live);
        Self { state: Arc::new(Mutex::new(after)) }
    }

    /// All files as callers see them. Counts no operation.
    pub fn files(&self) -> BTreeMap<String, Vec<u8>> {
        let state = self.state();
        let bytes =
            |number| state.inodes.get(number).map_or(Vec::new(), |inode| inode.live.clone());
        state.live.iter().map(|(name, number)| (name.clone(), bytes(number))).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn device(&self, state: &mut State, inode: u64, access: Access) -> Box<dyn Device> {
        state.inode(inode).open += 1;
        Box::new(FaultDevice { folder: self.clone(), inode, access })
    }
}

impl Folder for FaultFolder {
    fn shared(&self) -> Arc<dyn Folder> {
        Arc::new(self.clone())
    }

    fn path(&self) -> &Path {
        Path::new("(memory)")
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn Device>> {
        let mut state = self.state();
        state.begin(Operation::Create)?;
        if state.live.contains_key(name) {
            return Err(Errno::EXIST.into());
        }
        let inode = state.new_inode();
        let device = self.device(&mut state, inode, Access::Write);
        state.change(NameChange::Create(name.to_owned(), inode));
        Ok(device)
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Device>> {
        let mut state = self.state();
        state.begin(Operation::Open)?;
        let inode = state.named(name)?;
        Ok(self.device(&mut state, inode, Access::Read))
    }

    fn open_to_change(&self, name: &str) -> io::Result<Box<dyn Device>> {
        let mut state = self.state();
        state.begin(Operation::Open)?;
        let inode = state.named(name)?;
        Ok(self.device(&mut state, inode, Access::Write))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut state = self.state();
        state.begin(Operation::Rename)?;
        state.named(from)?;
        state.change(NameChange::Rename(from.to_owned(), to.to_owned()));
        Ok(())
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut state = self.state();
        state.begin(Operation::Remove)?;
        state.named(name)?;
        state.change(NameChange::Remove(name.to_owned()));
        Ok(())
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.begin(Operation::List)?;
        Ok(state.live.keys().cloned().collect())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.state();
        state.begin(Operation::Sync)?;
        if !state.frozen() {
            state.durable = state.live.clone();
            state.changes.clear();
        }
        Ok(())
    }

    fn scratch(&self) -> io::Result<Box<dyn Device>> {
        let mut state = self.state();
        state.begin(Operation::Create)?;
        let inode = state.new_inode();
        Ok(self.device(&mut state, inode, Access::Scratch))
    }

    fn free_bytes(&self) -> io::Result<u64> {
        let state = self.state();
        Ok(state
            .plan
            .capacity_bytes
            .map_or(u64::MAX, |capacity| capacity.saturating_sub(state.used_bytes())))
    }
}

#[derive(PartialEq, Eq)]
enum Access {
    Read,
    Write,
    /// Reads and writes; the file is removed when closed.
    Scratch,
}

/// An open file of a [`FaultFolder`].
struct FaultDevice {
    folder: FaultFolder,
    inode: u64,
    access: Access,
}

impl Drop for FaultDevice {
    fn drop(&mut self) {
        let mut state = self.folder.state();
        state.inode(self.inode).open -= 1;
        // Only scratch files go: a file that has or had a name may reappear after a crash.
        if self.access == Access::Scratch {
            state.inodes.remove(&self.inode);
        }
    }
}

impl Device for FaultDevice {
    fn len(&self) -> io::Result<u64> {
        Ok(self.folder.state().inode(self.inode).live.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut state = self.folder.state();
        state.begin(Operation::Read)?;
        let most = state.transfer(buffer.len());
        let live = &state.inode(self.inode).live;
        let from = usize::try_from(offset).unwrap_or(usize::MAX).min(live.len());
        let count = most.min(live.len() - from);
        buffer[..count].copy_from_slice(&live[from..from + count]);
        Ok(count)
    }

    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        let mut state = self.folder.state();
        state.begin(Operation::Write)?;
        if self.access == Access::Read {
            return Err(Errno::BADF.into());
        }
        let offset = usize::try_from(offset).map_err(|_| io::Error::from(Errno::FBIG))?;
        let most = state.transfer(bytes.len());
        let count = state.fitting(self.inode, offset, most)?;
        state.inode(self.inode).write(&bytes[..count], offset);
        Ok(count)
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let mut state = self.folder.state();
        state.begin(Operation::Write)?;
        let len = usize::try_from(len).map_err(|_| io::Error::from(Errno::FBIG))?;
        state.inode(self.inode).set_len(len);
        Ok(())
    }

    fn sync(&self) -> io::Result<()> {
        let mut state = self.folder.state();
        if let Err(error) = state.begin(Operation::Sync) {
            state.inode(self.inode).dirty.clear();
            return Err(error);
        }
        if !state.frozen() {
            state.inode(self.inode).sync();
        }
        Ok(())
    }
}
