//! Numbered, immutable manifests and the one pointer that says which is current.
//!
//! Publishing: write `manifest-N`, sync it, write `current.tmp` naming N and its checksum, sync,
//! rename over `current`, sync the folder. A crash anywhere leaves the old pointer or the new one.
//! Invariant: a reader follows `current` only after verifying the checksum of both.

use std::sync::Arc;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::job::Job;
use crate::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use crate::traffic::Traffic;

/// Name of the pointer.
pub const CURRENT: &str = "current";
/// Name of the next pointer until it is complete.
pub const CURRENT_NEW: &str = "current.tmp";
const PREFIX: &str = "manifest-";

/// Name of manifest `number`.
pub fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The number of the manifest of this name; `None`: it is no manifest's.
pub fn number(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

/// Reads the current manifest: its number and its payload.
pub fn read(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<(u64, Vec<u8>)> {
    let (number, sum) = read_pointer(folder, traffic)?;
    let payload = read_one(folder, &name(number), Kind::Manifest, traffic)?;
    if crate::checksum(payload.bytes()) != sum {
        let what = "the manifest is not the one that `current` names";
        return Err(Error::corrupt(folder.path().join(name(number)), 64, what));
    }
    Ok((number, payload.bytes().to_vec()))
}

/// The number of the current manifest.
pub fn current(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<u64> {
    read_pointer(folder, traffic).map(|(number, _)| number)
}

/// The payload of manifest `number`, whether it is current or not.
pub fn read_number(folder: &dyn Folder, number: u64, traffic: &Arc<Traffic>) -> Result<Vec<u8>> {
    if matches!(current(folder, traffic), Ok(current) if current == number) {
        return read(folder, traffic).map(|(_, payload)| payload);
    }
    read_one(folder, &name(number), Kind::Manifest, traffic).map(|payload| payload.bytes().to_vec())
}

/// The number of the current manifest and its checksum.
fn read_pointer(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<(u64, u64)> {
    let pointer = read_one(folder, CURRENT, Kind::Current, traffic)?;
    let Ok(fields) = <[u8; 16]>::try_from(pointer.bytes()) else {
        return Err(Error::corrupt(
            folder.path().join(CURRENT),
            64,
            "the pointer is not 16 bytes long",
        ));
    };
    let (number, sum) = fields.split_at(8);
    let field = |bytes: &[u8]| bytes.iter().rev().fold(0, |value, &b| value << 8 | u64::from(b));
    Ok((field(number), field(sum)))
}

fn read_one(folder: &dyn Folder, name: &str, kind: Kind, traffic: &Arc<Traffic>) -> Result<Buffer> {
    let file = SealedFile::open(folder, name, kind, 0, traffic)?;
    if file.entries().len() != 1 {
        return Err(Error::corrupt(file.path(), 0, "expected exactly one block"));
    }
    // The padding too: these files are small, and nobody else verifies them.
    file.verify(&Job::new())?;
    let mut buffer = Buffer::new();
    file.read_block(0, &mut buffer)?;
    Ok(buffer)
}

/// Publishes `payload` as manifest `number`, atomically.
///
/// A file of that number left by a crash before its pointer moved is replaced.
///
/// # Errors
/// [`Error::Exists`] if `number` is current: replacing it would leave nothing valid for a while.
pub fn publish(
    folder: &dyn Folder,
    number: u64,
    payload: &[u8],
    traffic: &Arc<Traffic>,
) -> Result<()> {
    let name = self::name(number);
    if matches!(read_pointer(folder, traffic), Ok((current, _)) if current == number) {
        return Err(Error::Exists { path: folder.path().join(name) });
    }
    write_one(folder, &name, Kind::Manifest, payload, traffic)?;
    point_at(folder, number, payload, traffic)
}

/// Makes manifest `number`, which has this payload, the current one, atomically.
pub fn point_at(
    folder: &dyn Folder,
    number: u64,
    payload: &[u8],
    traffic: &Arc<Traffic>,
) -> Result<()> {
    let mut pointer = [0; 16];
    pointer[..8].copy_from_slice(&number.to_le_bytes());
    pointer[8..].copy_from_slice(&crate::checksum(payload).to_le_bytes());
    write_one(folder, CURRENT_NEW, Kind::Current, &pointer, traffic)?;
    // The manifest's own name must be durable before anything can point at it.
    sync(folder)?;
    folder
        .rename(CURRENT_NEW, CURRENT)
        .map_err(|e| Error::io(folder.path().join(CURRENT), "replace", e))?;
    sync(folder)
}

fn write_one(
    folder: &dyn Folder,
    name: &str,
    kind: Kind,
    block: &[u8],
    traffic: &Arc<Traffic>,
) -> Result<()> {
    match folder.remove(name) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => {
            return Err(Error::io(folder.path().join(name), "remove the unfinished", e));
        }
        _ => {}
    }
    let mut file = SealedWriter::create(folder, name, kind, 0, traffic)?;
    file.append(block, &[])?;
    file.finish().map(drop)
}

fn sync(folder: &dyn Folder) -> Result<()> {
    folder.sync().map_err(|e| Error::io(folder.path(), "sync", e))
}

/// Removes the manifests older than `number`; called once `number` is durable.
pub fn sweep(folder: &dyn Folder, number: u64) -> Result<()> {
    let names = folder.list().map_err(|e| Error::io(folder.path(), "list", e))?;
    for name in names {
        if self::number(&name).is_some_and(|n| n < number) {
            folder.remove(&name).map_err(|e| Error::io(folder.path().join(&name), "remove", e))?;
        }
    }
    Ok(())
}
