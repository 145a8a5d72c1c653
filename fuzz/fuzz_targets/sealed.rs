//! Sealed files: header and table. Their checksums are put right, or nothing would be found behind them; what is read must
//! end with a typed error or a file whose blocks lie within it.
#![no_main]

use std::sync::Arc;

use brimful_store::fault::FaultFolder;
use brimful_store::sealed::{Buffer, Kind, SealedFile};
use brimful_store::{Folder, Job, checksum};

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

fn forge(bytes: &mut [u8]) {
    let table = bytes.get(16..24).and_then(|field| field.try_into().ok()).map_or(0, u64::from_le_bytes);
    if let Some(sum) = bytes.get(table as usize..).map(checksum)
        && let Some(field) = bytes.get_mut(24..32)
    {
        field.copy_from_slice(&sum.to_le_bytes());
    }
    if let Some(sum) = bytes.get(..56).map(checksum)
        && let Some(field) = bytes.get_mut(56..64)
    {
        field.copy_from_slice(&sum.to_le_bytes());
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    forge(&mut bytes);
    let folder = FaultFolder::new();
    folder.create("file").and_then(|device| device.write_at(&bytes, 0)).expect("memory takes all");
    for (kind, meta_bytes) in KINDS {
        let Ok(file) = SealedFile::open(&folder, "file", kind, meta_bytes, &Arc::default()) else { continue };
        let mut buffer = Buffer::new();
        for index in 0..file.entries().len() {
            if file.read_block(index, &mut buffer).is_ok() {
                assert!(buffer.bytes().len() <= bytes.len());
            }
        }
        let _ = file.verify(&Job::new());
    }
});
