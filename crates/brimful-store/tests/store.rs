//! The store through its public interface: on real files and on a folder that fails on purpose.

#![allow(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "store/checkpoints.rs"]
mod checkpoints;
#[path = "store/durable.rs"]
mod durable;
#[path = "store/external.rs"]
mod external;
#[path = "store/files.rs"]
mod files;
#[path = "store/folders.rs"]
mod folders;
#[path = "store/manifests.rs"]
mod manifests;
#[path = "store/read_ahead.rs"]
mod read_ahead;
#[path = "store/scratch.rs"]
mod scratch;
#[path = "store/sealed.rs"]
mod sealed;
#[path = "store/sorting.rs"]
mod sorting;

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use brimful_store::{Error, Folder, Traffic};

fn traffic() -> Arc<Traffic> {
    Arc::default()
}

/// A number that looks random, the same on every machine.
fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

fn noise(len: usize, seed: u64) -> Vec<u8> {
    (0..len as u64).map(|i| mix(seed << 32 | i) as u8).collect()
}

/// All bytes of a file, read without checks.
fn contents(folder: &dyn Folder, name: &str) -> Vec<u8> {
    let device = folder.open(name).unwrap();
    let mut bytes = vec![0; device.len().unwrap() as usize];
    let mut done = 0;
    while done < bytes.len() {
        done += device.read_at(&mut bytes[done..], done as u64).unwrap();
    }
    bytes
}

/// Replaces the content of `name` by `bytes`.
fn replace(folder: &dyn Folder, name: &str, bytes: &[u8]) {
    if folder.list().unwrap().iter().any(|n| n == name) {
        folder.remove(name).unwrap();
    }
    let device = folder.create(name).unwrap();
    let mut done = 0;
    while done < bytes.len() {
        done += device.write_at(&bytes[done..], done as u64).unwrap();
    }
}

/// Asserts an [`Error::Io`] of this operation and cause whose path ends with `name`.
#[track_caller]
fn assert_io<T>(result: Result<T, Error>, name: &str, operation: &str, kind: ErrorKind) {
    match result {
        Err(Error::Io { path, operation: found, source }) => {
            assert!(path.ends_with(Path::new(name)), "{} is not {name}", path.display());
            assert_eq!((found, source.kind()), (operation, kind));
        }
        Err(error) => panic!("expected an Io error, found {error:?}"),
        Ok(_) => panic!("expected an Io error, it succeeded"),
    }
}

/// The kind of EIO, which has no stable name.
fn eio() -> ErrorKind {
    std::io::Error::from_raw_os_error(5).kind()
}
