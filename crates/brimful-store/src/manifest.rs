//! Numbered, immutable manifests and the pointer to the current one.
//!
//! To publish: write `manifest-N`, sync it, write `current.tmp` naming N and its checksum, sync it,
//! rename it to `current`, sync the folder. A crash at any point leaves the old pointer or the new
//! one. Invariant: a reader follows `current` only after verifying the checksums of both.

use std::sync::Arc;

use crate::device::Folder;
use crate::error::{Error, Result};
use crate::file::{list_names, remove_if_present};
use crate::job::Job;
use crate::sealed::{Buffer, Kind, SealedFile, SealedWriter};
use crate::traffic::Traffic;

/// Name of the pointer.
pub const CURRENT: &str = "current";
/// Name of the next pointer until it is complete.
pub const CURRENT_NEW: &str = "current.tmp";
const PREFIX: &str = "manifest-";

/// The name of manifest `number`.
pub fn name(number: u64) -> String {
    format!("{PREFIX}{number}")
}

/// The number of the manifest called `name`; `None` for other files.
pub fn number(name: &str) -> Option<u64> {
    name.strip_prefix(PREFIX)?.parse().ok()
}

/// Reads the number and the payload of the current manifest.
///
/// # Errors
/// `Error::Corrupt` if a checksum fails or the pointer names another manifest; `Error::Io`, also if
/// there is no pointer.
pub fn read(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<(u64, Vec<u8>)> {
    let (number, sum) = read_pointer(folder, traffic)?;
    let payload = read_one(folder, &name(number), Kind::Manifest, traffic)?;
    if crate::checksum(payload.bytes()) != sum {
        let problem = "the manifest is not the one that `current` names";
        return Err(Error::corrupt(folder.path().join(name(number)), 64, problem));
    }
    Ok((number, payload.bytes().to_vec()))
}

/// The number of the current manifest.
pub fn current(folder: &dyn Folder, traffic: &Arc<Traffic>) -> Result<u64> {
    read_pointer(folder, traffic).map(|(number, _)| number)
}

/// The payload of manifest `number`, current or not.
pub fn read_number(folder: &dyn Folder, number: u64, traffic: &Arc<Traffic>) -> Result<Vec<u8>> {
    if matches!(current(folder, traffic), Ok(current) if current == number) {
        return read(folder, traffic).map(|(_, payload)| payload);
    }
    read_one(folder, &name(number), Kind::Manifest, traffic).map(|payload| payload.bytes().to_vec())
}

/// The number and the checksum of the current manifest.
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
    // Verifies the padding, too: these files are small, and no other call verifies them.
    file.verify(&Job::new())?;
    let mut buffer = Buffer::new();
    file.read_block(0, &mut buffer)?;
    Ok(buffer)
}

/// Publishes `payload` as manifest `number`, atomically.
///
/// Replaces a file of that number that a crash left before the pointer moved.
///
/// # Errors
/// [`Error::Internal`] if `number` is current: replacing it would leave no valid manifest for a
/// while.
pub fn publish(
    folder: &dyn Folder,
    number: u64,
    payload: &[u8],
    traffic: &Arc<Traffic>,
) -> Result<()> {
    let name = self::name(number);
    if matches!(read_pointer(folder, traffic), Ok((current, _)) if current == number) {
        let path = folder.path().join(name);
        return Err(Error::Internal(format!("{} is current and is not replaced", path.display())));
    }
    write_one(folder, &name, Kind::Manifest, payload, traffic)?;
    point_at(folder, number, payload, traffic)
}

/// Makes manifest `number`, whose payload is given, the current one, atomically.
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
    // The name of the manifest must be durable before the pointer names it.
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
    // A crash may have left it unfinished.
    remove_if_present(folder, name)?;
    let mut file = SealedWriter::create(folder, name, kind, 0, traffic)?;
    file.append(block, &[])?;
    file.finish().map(drop)
}

fn sync(folder: &dyn Folder) -> Result<()> {
    folder.sync().map_err(|e| Error::io(folder.path(), "sync", e))
}

/// Removes the manifests older than `number`; for callers whose manifest `number` is durable.
pub fn sweep(folder: &dyn Folder, number: u64) -> Result<()> {
    for name in list_names(folder)? {
        if self::number(&name).is_some_and(|n| n < number) {
            folder.remove(&name).map_err(|e| Error::io(folder.path().join(&name), "remove", e))?;
        }
    }
    Ok(())
}
