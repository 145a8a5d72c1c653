//! The user's files and folders: refused inputs are named, outputs appear only when complete.

use std::fs::{self, File};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use brimful_store::external::{
    FolderLock, OutputFile, PartialFile, PartialFolder, TemporaryFolder, input_len, open_input,
    require_space,
};
use brimful_store::{Error, Folder, Job};

use crate::{assert_io, noise};

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn inputs_are_read_and_counted_or_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let job = Arc::new(Job::new());
    let path = folder.path().join("a");
    let refused = |path: &Path| open_input(path, &job).map(drop);
    assert_io(refused(&path), "a", "open", ErrorKind::NotFound);
    assert_io(
        refused(folder.path()),
        folder.path().to_str().unwrap(),
        "read",
        ErrorKind::IsADirectory,
    );
    fs::write(&path, noise(300_000, 1)).unwrap();
    let mut bytes = Vec::new();
    open_input(&path, &job).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, noise(300_000, 1));
    assert_eq!(job.progress().done, 300_000);
    assert_eq!(
        (input_len(&path), input_len(folder.path()), input_len(Path::new("-"))),
        (Some(300_000), None, None)
    );
}

#[test]
fn an_output_appears_when_finished_and_never_half() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let mut output = OutputFile::create(&path, false).unwrap();
    output.write(&noise(600_000, 1)).unwrap();
    assert!(!path.exists());
    drop(output);
    assert_eq!(names(folder.path()), [""; 0], "a dropped output leaves nothing");

    let mut output = OutputFile::create(&path, false).unwrap();
    output.write(&noise(600_000, 2)).unwrap();
    output.write(b"end").unwrap();
    output.finish().unwrap();
    assert_eq!(names(folder.path()), ["out"]);
    assert_eq!(fs::read(&path).unwrap(), [&noise(600_000, 2)[..], b"end"].concat());

    assert!(
        matches!(OutputFile::create(&path, false), Err(Error::Exists { path: found }) if found == path)
    );
    let mut output = OutputFile::create(&path, true).unwrap();
    output.write(b"new").unwrap();
    assert_eq!(fs::read(&path).unwrap().len(), 600_003, "the old one stays until then");
    output.finish().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"new");
    let nowhere = OutputFile::create(&folder.path().join("no/out"), false);
    assert_io(nowhere, "no/out", "write", ErrorKind::NotFound);
}

#[test]
fn a_folder_appears_when_published_and_never_half() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("graph");
    let partial = PartialFolder::create(&path).unwrap();
    partial.folder().create("part").unwrap();
    assert!(!path.exists());
    drop(partial);
    assert_eq!(names(parent.path()), [""; 0]);

    let partial = PartialFolder::create(&path).unwrap();
    partial.folder().create("part").unwrap();
    partial.publish().unwrap();
    assert_eq!(names(parent.path()), ["graph"]);
    assert_eq!(names(&path), ["part"]);
    assert!(matches!(PartialFolder::create(&path), Err(Error::Exists { .. })));
}

#[test]
fn what_a_killed_process_left_is_swept_and_what_is_in_use_is_not() {
    let parent = tempfile::tempdir().unwrap();
    // Process ids are never 0; one folder with the lock file of a dead process, one without.
    for name in [".graph.partial-0", ".graph.partial-00"] {
        fs::create_dir(parent.path().join(name)).unwrap();
        fs::write(parent.path().join(name).join("part"), b"half").unwrap();
    }
    fs::write(parent.path().join(".graph.partial-0/lock"), b"").unwrap();
    let in_use = parent.path().join(".graph.partial-000");
    fs::create_dir(&in_use).unwrap();
    let held = FolderLock::take(&in_use).unwrap();
    assert_io(FolderLock::take(&in_use), ".graph.partial-000", "change", ErrorKind::WouldBlock);
    fs::create_dir(parent.path().join(".other.partial-0")).unwrap();
    fs::write(parent.path().join(".graph.partial-file"), b"an output").unwrap();

    let partial = PartialFolder::create(&parent.path().join("graph")).unwrap();
    let ours = partial.folder().path().file_name().unwrap().to_str().unwrap();
    let mut expected = [".graph.partial-000", ".graph.partial-file", ".other.partial-0", ours];
    expected.sort_unstable();
    assert_eq!(names(parent.path()), expected);
    drop((partial, held));
    FolderLock::take(&in_use).unwrap();
}

#[test]
fn what_a_killed_process_left_of_another_folder_is_swept_if_its_content_is_ours() {
    let parent = tempfile::tempdir().unwrap();
    let make = |name: &str, files: &[(&str, &[u8])]| {
        let path = parent.path().join(name);
        fs::create_dir(&path).unwrap();
        for (file, content) in files {
            fs::write(path.join(file), content).unwrap();
        }
        path
    };
    let lock: (&str, &[u8]) = ("lock", b"");
    make(".a.partial-1-a", &[lock]);
    // A sealed file, one without its header, and an empty one.
    make(
        ".a.b.partial-1-b",
        &[lock, ("ids", b"BRIMFUL\nand so on"), ("shards", &[0; 100]), ("blocks", b"")],
    );
    let held = FolderLock::take(&make(".in-use.partial-1-c", &[])).unwrap();
    make(".no-lock.partial-1-d", &[("ids", b"BRIMFUL\n")]);
    make(".lock-of-another.partial-1-e", &[("lock", b"1")]);
    make(".a-file-of-another.partial-1-f", &[lock, ("ids", b"BRIMFUL\n"), ("notes", b"mine")]);
    fs::create_dir(make(".replaced.partial-1-0", &[lock]).join("old")).unwrap();
    make("a.partial-1-a", &[lock]);
    make(".a.partial-mine", &[lock]);
    make(".partial-1-a", &[lock]);
    let link = make(".link.partial-1-1", &[lock]).join("ids");
    symlink(parent.path().join("target"), &link).unwrap();
    fs::write(parent.path().join(".output.partial-1-a"), b"a file").unwrap();
    let mut before = names(parent.path());

    drop(PartialFolder::create(&parent.path().join("graph")).unwrap());
    before.retain(|name| !matches!(name.as_str(), ".a.partial-1-a" | ".a.b.partial-1-b"));
    assert_eq!(names(parent.path()), before);
    drop(held);
}

#[test]
fn a_link_named_like_something_left_behind_is_not_followed() {
    let (parent, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    fs::write(target.path().join("kept"), b"whole").unwrap();
    for name in [".graph.partial-0", ".out.partial-0"] {
        symlink(target.path(), parent.path().join(name)).unwrap();
    }
    drop(PartialFolder::create(&parent.path().join("graph")).unwrap());
    drop(OutputFile::create(&parent.path().join("out"), false).unwrap());
    assert_eq!(names(target.path()), ["kept"]);
    assert_eq!(names(parent.path()), [".graph.partial-0", ".out.partial-0"]);
}

#[test]
fn what_is_not_surely_ours_is_left_alone() {
    let parent = tempfile::tempdir().unwrap();
    let path = |name: &str| parent.path().join(name);
    // Names of another form, which a user may have given.
    for name in
        [".graph.partial-", ".graph.partial-mine", ".graph.partial-1-mine", ".graph.partial--1"]
    {
        fs::create_dir(path(name)).unwrap();
    }
    fs::write(path(".graph.partial-1"), b"a file").unwrap();
    // Folders with something else in the place of their locks: nothing is followed or waited for.
    fs::write(path("target"), b"whole").unwrap();
    fs::create_dir(path(".graph.partial-2")).unwrap();
    symlink(path("target"), path(".graph.partial-2/lock")).unwrap();
    fs::create_dir(path(".graph.partial-3")).unwrap();
    let pipe = path(".graph.partial-3/lock");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    fs::create_dir_all(path(".graph.partial-4/lock")).unwrap();
    // Only the superuser can give a folder away.
    fs::create_dir(path(".graph.partial-5")).unwrap();
    let given_away = chown(path(".graph.partial-5"), Some(12345), None).is_ok();
    if !given_away {
        fs::remove_dir(path(".graph.partial-5")).unwrap();
    }
    let before = names(parent.path());
    PartialFolder::create(&path("graph")).unwrap().publish().unwrap();
    let after: Vec<_> = names(parent.path()).into_iter().filter(|name| name != "graph").collect();
    assert_eq!(after, before);
    assert_eq!(fs::read(path("target")).unwrap(), b"whole");
    // The same names of files.
    fs::write(path(".out.partial-mine"), b"").unwrap();
    fs::create_dir(path(".out.partial-1")).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path(".out.partial-2"),
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::RWXU,
        0,
    )
    .unwrap();
    let before = names(parent.path());
    drop(PartialFile::create(&path("out"), false).unwrap());
    assert_eq!(names(parent.path()), before);
}

#[test]
fn a_folder_is_replaced_as_a_whole() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("graph");
    let begin = |part: &str| {
        let partial = PartialFolder::replace(&path).unwrap();
        partial.folder().create(part).unwrap();
        partial
    };
    // Where nothing is to be replaced, it is made.
    begin("one").publish().unwrap();
    assert_eq!(names(&path), ["one"]);
    let two = begin("two");
    assert_eq!(names(&path), ["one"], "the old one stays until then");
    two.publish().unwrap();
    assert_eq!(names(&path), ["two"]);
    drop(begin("three"));
    assert_eq!(names(&path), ["two"], "a dropped one replaces nothing");
    assert_eq!(names(parent.path()), ["graph"]);

    // A crash between the two renames leaves neither; the next process finds both names and sweeps.
    let (old, new) = (".graph.partial-1-a", ".graph.partial-1-b");
    fs::create_dir(parent.path().join(old)).unwrap();
    fs::rename(&path, parent.path().join(old).join("old")).unwrap();
    fs::create_dir(parent.path().join(new)).unwrap();
    fs::write(parent.path().join(new).join("three"), b"").unwrap();
    PartialFolder::create(&path).unwrap().publish().unwrap();
    assert_eq!(names(parent.path()), ["graph"]);
    assert_eq!(names(&path), [""; 0]);

    // A link is replaced, and what it leads to stays.
    let target = tempfile::tempdir().unwrap();
    fs::write(target.path().join("kept"), b"whole").unwrap();
    fs::remove_dir(&path).unwrap();
    symlink(target.path(), &path).unwrap();
    begin("four").publish().unwrap();
    assert!(path.symlink_metadata().unwrap().is_dir());
    assert_eq!((names(&path), names(target.path())), (vec!["four".into()], vec!["kept".into()]));
}

#[test]
fn an_output_of_another_writer_is_published_or_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let partial = PartialFile::create(&path, false).unwrap();
    fs::write(partial.path(), b"by another writer").unwrap();
    drop(partial);
    assert_eq!(names(folder.path()), [""; 0]);
    let partial = PartialFile::create(&path, false).unwrap();
    let late = PartialFile::create(&path, false).unwrap();
    fs::write(partial.path(), b"first").unwrap();
    partial.publish().unwrap();
    assert!(matches!(late.publish(), Err(Error::Exists { .. })), "the name was taken meanwhile");
    assert_eq!(fs::read(&path).unwrap(), b"first");
    assert_eq!(names(folder.path()), ["out"]);
    // A link that leads nowhere is something as well.
    let link = folder.path().join("link");
    symlink(folder.path().join("nowhere"), &link).unwrap();
    assert!(matches!(PartialFile::create(&link, false), Err(Error::Exists { .. })));
    PartialFile::create(&link, true).unwrap().publish().unwrap();
    assert_eq!(link.symlink_metadata().unwrap().len(), 0);
}

#[test]
fn a_temporary_folder_is_private() {
    let parent = tempfile::tempdir().unwrap();
    let own = TemporaryFolder::create(parent.path(), "run-").unwrap();
    let meta = fs::metadata(own.path()).unwrap();
    assert_eq!(meta.permissions().mode() & 0o777, 0o700);
    assert_eq!(meta.uid(), rustix::process::geteuid().as_raw());
    // An owner that was killed before it had made the lock; and one that cannot be made at all.
    fs::create_dir(parent.path().join("run-7-b")).unwrap();
    drop(own);
    drop(TemporaryFolder::create(parent.path(), "run-").unwrap());
    assert_eq!(names(parent.path()), [""; 0]);
    let missing = parent.path().join("no/such");
    assert_io(TemporaryFolder::create(&missing, "run-"), "no/such", "create", ErrorKind::NotFound);
    let file = parent.path().join("file");
    fs::write(&file, b"").unwrap();
    assert_io(TemporaryFolder::create(&file, "run-"), "file", "open", ErrorKind::NotADirectory);
}

#[test]
fn many_threads_begin_and_sweep_the_same_name() {
    let parent = tempfile::tempdir().unwrap();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for _ in 0..100 {
                    let own = TemporaryFolder::create(parent.path(), "run-").unwrap();
                    let file = own.path().join("file");
                    fs::write(&file, b"whole").unwrap();
                    assert_eq!(fs::read(&file).unwrap(), b"whole");
                }
            });
        }
    });
    assert_eq!(names(parent.path()), [""; 0]);
}

#[test]
fn a_disk_without_the_space_is_refused() {
    let parent = tempfile::tempdir().unwrap();
    let path = parent.path().join("graph");
    require_space(&path, 0).unwrap();
    let error = require_space(&path, u64::MAX).unwrap_err();
    assert!(matches!(error, Error::NoSpace { needed: u64::MAX, .. }));
    assert_eq!(error.kind(), brimful_store::ErrorKind::Io);
    assert!(
        error.to_string().contains("takes at least 16E of disk, 16E more than is free"),
        "{error}"
    );
}

#[test]
fn what_a_killed_process_left_of_an_output_is_swept_and_what_is_in_use_is_not() {
    let folder = tempfile::tempdir().unwrap();
    for name in [".out.partial-0", ".out.partial-00", ".other.partial-0"] {
        fs::write(folder.path().join(name), b"half").unwrap();
    }
    let held = File::open(folder.path().join(".out.partial-00")).unwrap();
    held.lock().unwrap();
    let output = OutputFile::create(&folder.path().join("out"), false).unwrap();
    let prefix = format!(".out.partial-{}-", std::process::id());
    let (ours, others): (Vec<_>, Vec<_>) =
        names(folder.path()).into_iter().partition(|name| name.starts_with(&prefix));
    assert_eq!(others, [".other.partial-0", ".out.partial-00"]);
    let [ours] = &ours[..] else { panic!("one of our own: {ours:?}") };
    let own = File::open(folder.path().join(ours)).unwrap();
    assert!(own.try_lock().is_err(), "an output under way is locked");
    drop(output);
}

#[test]
fn waiting_for_a_lock_ends_when_it_is_free_or_the_job_is_cancelled() {
    let (folder, job) = (tempfile::tempdir().unwrap(), Job::new());
    let held = FolderLock::take(folder.path()).unwrap();
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| FolderLock::wait(folder.path(), &job));
        std::thread::sleep(Duration::from_millis(150));
        assert!(!waiting.is_finished());
        drop(held);
        drop(waiting.join().unwrap().unwrap());
    });
    let _held = FolderLock::take(folder.path()).unwrap();
    job.cancel();
    assert!(matches!(FolderLock::wait(folder.path(), &job), Err(Error::Interrupted)));
}

#[test]
fn a_run_has_a_folder_of_its_own_and_leaves_those_of_others() {
    let temporary = tempfile::tempdir().unwrap();
    let (old, new) = (temporary.path().join("old"), temporary.path().join("new"));
    fs::create_dir(&old).unwrap();
    for (folder, is_new) in [(&old, false), (&new, true)] {
        let own = TemporaryFolder::create(folder, "run-").unwrap();
        fs::create_dir(own.path().join("deep")).unwrap();
        let other = TemporaryFolder::create(folder, "run-").unwrap();
        // Left by killed processes, with and without a lock; and a folder that is not of a run.
        for name in ["run-1", "run-2", "walk-1"] {
            fs::create_dir(folder.join(name)).unwrap();
        }
        fs::write(folder.join("run-1").join(FolderLock::NAME), "").unwrap();
        fs::write(folder.join("run-3"), "a file").unwrap();
        let third = TemporaryFolder::create(folder, "run-").unwrap();
        assert!(own.path().join("deep").is_dir() && other.path().is_dir());
        assert!(!folder.join("run-1").exists() && !folder.join("run-2").exists());
        drop((own, third));
        assert!(other.path().is_dir());
        drop(other);
        assert_eq!(names(folder), ["run-3", "walk-1"]);

        fs::remove_file(folder.join("run-3")).unwrap();
        fs::remove_dir_all(folder).unwrap();
        if !is_new {
            fs::create_dir(folder).unwrap();
        }
        drop(TemporaryFolder::create(folder, "run-").unwrap());
        assert_eq!(folder.exists(), !is_new);
    }
}
