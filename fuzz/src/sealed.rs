//! Sealed files: header and table, with checksums put right.

use std::sync::Arc;

use brimful_store::fault::FaultFolder;
use brimful_store::sealed::{Buffer, Kind, SealedFile};
use brimful_store::{Folder, Job};

use crate::seal::forge;

const KINDS: [(Kind, usize); 10] = [
    (Kind::Manifest, 0),
    (Kind::Current, 0),
    (Kind::Ids, 32),
    (Kind::Degrees, 32),
    (Kind::Strengths, 0),
    (Kind::Shards, 0),
    (Kind::Weights, 0),
    (Kind::Directory, 0),
    (Kind::Names, 16),
    (Kind::Arrays, 0),
];

/// Reads must end with a typed error, or with blocks that lie within the file.
pub(crate) fn check(bytes: &[u8]) -> bool {
    let mut bytes = bytes.to_vec();
    forge(&mut bytes);
    let folder = FaultFolder::new();
    folder.create("file").and_then(|device| device.write_at(&bytes, 0)).expect("memory takes all");
    let mut accepted = false;
    for (kind, meta_bytes) in KINDS {
        let Ok(file) = SealedFile::open(&folder, "file", kind, meta_bytes, &Arc::default()) else {
            continue;
        };
        let mut buffer = Buffer::new();
        for index in 0..file.entries().len() {
            if file.read_block(index, &mut buffer).is_ok() {
                assert!(buffer.bytes().len() <= bytes.len());
            }
        }
        accepted |= file.verify(&Job::new()).is_ok();
    }
    accepted
}
