//! Accidental damage: bits, blocks, lengths and whole files.

use brimful_store::ErrorKind;

use super::{Case, Files, cases, is_nightly, turn};

/// A graph of `files` is refused when opened or by `verify`, and no run on it gives a different
/// answer.
fn assert_found(case: &Case, files: &Files, problem: &str) {
    let name = case.name;
    let refused = |kind: ErrorKind, error: &dyn std::fmt::Display| {
        assert!(
            matches!(kind, ErrorKind::Corrupt | ErrorKind::Input),
            "{name}: {problem}: {error}"
        );
    };
    match case.examine(files, problem, case.enough()) {
        Err(error) => refused(error.kind(), &error),
        Ok((verified, answers)) => {
            match verified {
                Err(error) => refused(error.kind(), &error),
                Ok(()) => panic!("{name}: {problem}: not found"),
            }
            for (answer, right) in answers.iter().zip(&case.answers) {
                match answer {
                    Ok(answer) => assert!(answer == right, "{name}: {problem}: another answer"),
                    Err(error) => refused(error.kind(), error),
                }
            }
        }
    }
}

/// Calls `check` with the files after `change` of `file`, unless nothing changed.
fn with(case: &Case, file: &str, problem: &str, change: impl FnOnce(&mut Vec<u8>)) -> usize {
    let mut files = case.files.clone();
    change(files.get_mut(file).unwrap());
    if files == case.files {
        return 0;
    }
    assert_found(case, &files, &format!("{file}: {problem}"));
    1
}

#[test]
fn every_damaged_file_is_found_and_no_run_gives_another_answer() {
    let _turn = turn();
    let mut mutations = 0;
    for case in &cases() {
        for (file, bytes) in &case.files {
            let len = bytes.len();
            // All bytes of headers and trailers, and a sample of the rest.
            let step = if is_nightly() { 5 } else { 15 };
            let is_place = |at: &usize| *at < 64 || at + 64 > len || at.is_multiple_of(step);
            for at in (0..len).filter(|at| is_place(at) || is_nightly() && len < 400).take(700) {
                mutations +=
                    with(case, file, &format!("bit flipped at {at}"), |b| b[at] ^= 1 << (at % 8));
            }
            for end in
                (0..len).filter(|end| [0, 1, 63, 64, len / 2, len - 8, len - 1].contains(end))
            {
                mutations += with(case, file, &format!("cut at {end}"), |b| b.truncate(end));
            }
            for more in [1, 8, 4096] {
                mutations +=
                    with(case, file, &format!("{more} zeros more"), |b| b.resize(len + more, 0));
            }
            mutations += with(case, file, "twice", |b| b.extend_from_within(..));
            for from in (0..len).step_by(128.max(len / 40)) {
                let to = len.min(from + 128);
                mutations += with(case, file, &format!("zeros at {from}"), |b| b[from..to].fill(0));
                let other = (from + len / 2) % len.saturating_sub(128).max(1);
                mutations += with(case, file, &format!("{from} copied from {other}"), |b| {
                    let bytes = b[other..len.min(other + to - from)].to_vec();
                    b[from..from + bytes.len()].copy_from_slice(&bytes);
                });
            }
        }
    }
    assert!(mutations > 3000, "{mutations} mutations");
}

#[test]
fn files_missing_exchanged_or_of_another_graph_are_found() {
    let _turn = turn();
    let (cases, others) = (cases(), twins());
    for case in &cases {
        let names: Vec<&String> = case.files.keys().collect();
        for (index, one) in names.iter().enumerate() {
            let mut files = case.files.clone();
            files.remove(*one);
            assert_found(case, &files, &format!("{one} is missing"));
            for other in &names[index + 1..] {
                let mut files = case.files.clone();
                files.insert((*one).clone(), case.files[*other].clone());
                files.insert((*other).clone(), case.files[*one].clone());
                assert_found(case, &files, &format!("{one} and {other} are exchanged"));
            }
        }
    }
    let [one, other] = &others;
    let data = |name: &&String| !name.starts_with("manifest") && *name != "current";
    for name in one.files.keys().filter(data).filter(|name| one.files[*name] != other.files[*name])
    {
        let mut files = one.files.clone();
        files.insert(name.clone(), other.files[name].clone());
        assert_found(one, &files, &format!("{name} is another graph's"));
    }
    let mut files = one.files.clone();
    files.extend(
        one.files.keys().filter(data).map(|name| (name.clone(), other.files[name].clone())),
    );
    assert_found(one, &files, "all files but the manifest are another graph's");
}

/// Two graphs with the same numbers in their manifests, and with files of the same lengths.
fn twins() -> [Case; 2] {
    let folder = tempfile::tempdir().unwrap();
    let options = super::ImportOptions { geometry: super::SMALL, ..Default::default() };
    let ring = |step: u64| (0..20_u64).map(move |i| format!("{i} {}", (i + step) % 20));
    let make = |name, step| {
        Case::new(name, super::text(folder.path(), name, "source target", ring(step)), &options)
    };
    let lengths = |case: &Case| case.files.values().map(Vec::len).collect::<Vec<_>>();
    let one = make("one", 3);
    // Seals vary in their number of digits, so the manifest of another ring may be longer.
    let mut others = [7, 9, 11, 13, 17].into_iter().map(|step| make("other", step));
    let other = others.find(|other| lengths(other) == lengths(&one)).unwrap();
    let twins = [one, other];
    assert_ne!(twins[0].answers[1], twins[1].answers[1]);
    assert_eq!(
        lengths(&twins[0]),
        lengths(&twins[1]),
        "another graph of other lengths would be found anyway"
    );
    twins
}
