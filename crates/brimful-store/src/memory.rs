//! The operating system's figures about memory: limits, free memory, the use of this process.

use std::fs;
use std::path::Path;

/// Bytes of `--budget auto`: three quarters of the memory that is available now, or of the cgroup
/// limit (version 1 or 2) if that is lower.
pub fn auto_budget_bytes() -> u64 {
    cgroup_limit_bytes().map_or_else(available_bytes, |limit| limit.min(available_bytes())) / 4 * 3
}

/// The hard memory limit of this process's cgroup, if it is below the machine's memory.
///
/// The smallest limit among all ancestors applies, because it is the one that kills.
pub fn cgroup_limit_bytes() -> Option<u64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    smallest_limit(&membership, Path::new("/sys/fs/cgroup"))
        .filter(|&limit| limit < physical_bytes())
}

fn smallest_limit(membership: &str, root: &Path) -> Option<u64> {
    let mut smallest: Option<u64> = None;
    for line in membership.lines() {
        let mut parts = line.splitn(3, ':');
        let (Some(_), Some(controllers), Some(path)) = (parts.next(), parts.next(), parts.next())
        else {
            continue;
        };
        let (base, file) = if controllers.is_empty() {
            (root.to_path_buf(), "memory.max")
        } else if controllers.split(',').any(|name| name == "memory") {
            (root.join("memory"), "memory.limit_in_bytes")
        } else {
            continue;
        };
        // Inside a container the path may name a folder that is not mounted; the root still
        // applies.
        let mut relative = Some(Path::new(path.trim_start_matches('/')));
        while let Some(folder) = relative {
            let limit = fs::read_to_string(base.join(folder).join(file)).ok();
            if let Some(bytes) = limit.and_then(|text| text.trim().parse::<u64>().ok()) {
                smallest = Some(smallest.map_or(bytes, |known| known.min(bytes)));
            }
            relative = folder.parent();
        }
    }
    smallest
}

/// Memory of the machine, in bytes.
pub fn physical_bytes() -> u64 {
    meminfo("MemTotal:").unwrap_or_else(physical_without_proc)
}

/// Memory that can be used without swapping, in bytes.
pub fn available_bytes() -> u64 {
    meminfo("MemAvailable:").unwrap_or_else(|| physical_without_proc() / 2)
}

fn meminfo(key: &str) -> Option<u64> {
    kib_line(&fs::read_to_string("/proc/meminfo").ok()?, key)
}

fn kib_line(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find(|line| line.starts_with(key))?;
    let kib: u64 = line[key.len()..].trim().trim_end_matches("kB").trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(target_os = "linux")]
fn physical_without_proc() -> u64 {
    let info = rustix::system::sysinfo();
    info.totalram as u64 * u64::from(info.mem_unit)
}

#[cfg(not(target_os = "linux"))]
fn physical_without_proc() -> u64 {
    // `sysctl` is the documented way on macOS and the BSDs; without it, a small constant applies.
    std::process::Command::new("sysctl")
        .args(["-n", "hw.memsize"])
        .output()
        .ok()
        .and_then(|out| String::from_utf8(out.stdout).ok()?.trim().parse().ok())
        .unwrap_or(1 << 30)
}

/// Makes the C library return large freed blocks to the system at once, in the whole process.
///
/// By default it keeps freed blocks of up to 32 MiB: a hard limit counts them, but no budget does.
/// For processes of brimful only, not for a library within another program.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe mallopt")]
pub fn return_freed_memory() {
    const LARGE_BYTES: i32 = 1 << 20;
    // SAFETY: mallopt is thread-safe and takes plain numbers. A failure leaves the default.
    unsafe { libc::mallopt(libc::M_MMAP_THRESHOLD, LARGE_BYTES) };
}

/// Other C libraries return large blocks by themselves, or have no such option.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn return_freed_memory() {}

/// Limits the C library to one heap, before other threads allocate.
///
/// By default it sets 64 MiB of address space aside for the heap of each thread, which a limit of
/// the address space (`RLIMIT_AS`) counts. For processes of brimful only.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe mallopt")]
pub fn share_one_heap() {
    // SAFETY: mallopt is thread-safe and takes plain numbers. A failure leaves the default.
    unsafe { libc::mallopt(libc::M_ARENA_MAX, 1) };
}

/// Other C libraries set no address space aside for each thread, or have no such option.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn share_one_heap() {}

/// Returns free memory within the C library's heaps to the system, once: after work that grew many
/// small blocks. A hard limit counts this memory, but no budget does.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
#[expect(unsafe_code, reason = "there is no safe malloc_trim")]
pub fn release_free_memory() {
    // SAFETY: malloc_trim is thread-safe, takes a plain number and touches free memory only.
    unsafe { libc::malloc_trim(0) };
}

/// Other C libraries return free memory by themselves, or have no such option.
#[cfg(not(all(target_os = "linux", target_env = "gnu")))]
pub fn release_free_memory() {}

/// The greatest resident memory of this process so far, in bytes, as the kernel counts it; `None`
/// if the kernel does not report it.
pub fn peak_resident_bytes() -> Option<u64> {
    kib_line(&fs::read_to_string("/proc/self/status").ok()?, "VmHWM:")
}

/// The resident memory of this process now, in bytes; `None` if the kernel does not report it.
pub fn resident_bytes() -> Option<u64> {
    kib_line(&fs::read_to_string("/proc/self/status").ok()?, "VmRSS:")
}

/// Removes the pages of a mapped file from the resident memory of this process. They stay in the
/// system's cache, and return when they are read.
///
/// # Safety
/// The mapping of `file` must stay during the call.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "there is no safe madvise")]
pub unsafe fn release_mapped(file: &Path) {
    let Ok(maps) = fs::read_to_string("/proc/self/maps") else { return };
    for (start, bytes) in maps.lines().filter_map(|line| mapping_of(line, file)) {
        // SAFETY: the range is a shared mapping of a file, which the caller keeps: its pages,
        // changed ones too, are those of the file, so that nothing is lost. A failure leaves them
        // mapped.
        let _ = unsafe {
            rustix::mm::madvise(
                std::ptr::without_provenance_mut(start),
                bytes,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
    }
}

/// Other systems do not report where a file is mapped.
///
/// # Safety
/// None is needed here.
#[cfg(not(target_os = "linux"))]
#[expect(unsafe_code, reason = "the same function as on Linux")]
pub unsafe fn release_mapped(_: &Path) {}

/// The address and the bytes of a line of `/proc/self/maps`, if it is a shared mapping of `file`.
#[cfg(target_os = "linux")]
fn mapping_of(line: &str, file: &Path) -> Option<(usize, usize)> {
    let mut words = line.splitn(6, ' ');
    let (start, end) = words.next()?.split_once('-')?;
    let is_shared = words.next()?.ends_with('s');
    let name = words.nth(3)?.trim_start();
    if !is_shared || Path::new(name) != file {
        return None;
    }
    let start = usize::from_str_radix(start, 16).ok()?;
    Some((start, usize::from_str_radix(end, 16).ok()?.checked_sub(start)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_on_the_way_to_the_root_counts() {
        let root = tempfile::tempdir().unwrap();
        let v1 = root.path().join("memory/a/b");
        fs::create_dir_all(&v1).unwrap();
        fs::write(root.path().join("memory/memory.limit_in_bytes"), "9223372036854771712\n")
            .unwrap();
        fs::write(root.path().join("memory/a/memory.limit_in_bytes"), "1000\n").unwrap();
        fs::write(v1.join("memory.limit_in_bytes"), "5000\n").unwrap();
        assert_eq!(smallest_limit("4:memory:/a/b\n3:cpu,cpuacct:/a\n", root.path()), Some(1000));

        let v2 = root.path().join("slice");
        fs::create_dir_all(&v2).unwrap();
        fs::write(v2.join("memory.max"), "max\n").unwrap();
        assert_eq!(smallest_limit("0::/slice\n", root.path()), None);
        fs::write(v2.join("memory.max"), "2000\n").unwrap();
        assert_eq!(smallest_limit("0::/slice\n", root.path()), Some(2000));
    }

    #[test]
    fn auto_is_a_share_of_what_is_there() {
        let auto = auto_budget_bytes();
        assert!(auto > 0 && auto < physical_bytes());
    }
}
