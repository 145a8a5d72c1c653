//! The operating system's figures about memory: limits, free memory, the use of this process.

use std::fs;
use std::path::{Path, PathBuf};

/// The most bytes of an automatic budget: three quarters of the memory that is available now, or of
/// the cgroup limit (version 1 or 2) if that is lower.
///
/// It is at most seven eighths of the memory that is left under the limit, because most of the
/// limit may be in use: by this process, which a budget need not cover, or by others.
pub fn available_budget_bytes() -> u64 {
    let most = |(limit, folder): (u64, PathBuf)| {
        let left = limit.saturating_sub(in_use_bytes(&folder));
        (limit / 4 * 3).min(left / 8 * 7)
    };
    cgroup_limits().into_iter().map(most).fold(available_bytes() / 4 * 3, u64::min)
}

/// The memory limits of this process's cgroup and of its ancestors, each with its folder.
fn cgroup_limits() -> Vec<(u64, PathBuf)> {
    fs::read_to_string("/proc/self/cgroup")
        .map_or_else(|_| Vec::new(), |groups| limits_of(&groups, Path::new("/sys/fs/cgroup")))
}

fn limits_of(membership: &str, root: &Path) -> Vec<(u64, PathBuf)> {
    let mut limits = Vec::new();
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
        while let Some(below) = relative {
            let folder = base.join(below);
            let limit = fs::read_to_string(folder.join(file)).ok();
            if let Some(bytes) = limit.and_then(|text| text.trim().parse::<u64>().ok()) {
                limits.push((bytes, folder));
            }
            relative = below.parent();
        }
    }
    limits
}

/// The memory of a cgroup and its descendants that the kernel cannot take back from them; 0 if it
/// reports none.
fn in_use_bytes(folder: &Path) -> u64 {
    let stat = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
    // Version 1 also has figures without the descendants, under the names of version 2.
    let keys = match stat.contains("\ntotal_rss ") {
        true => ["total_rss", "total_shmem"],
        false => ["anon", "shmem"],
    };
    let figures = stat.lines().filter_map(|line| line.split_once(' '));
    figures
        .filter(|(key, _)| keys.contains(key))
        .filter_map(|(_, bytes)| bytes.parse::<u64>().ok())
        .sum()
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

/// A shared mapping of a file.
#[derive(Debug)]
pub struct Mapping {
    start: usize,
    bytes: usize,
}

impl Mapping {
    /// Finds the mapping of `file` in this process; `None` if the system reports none. It reads all
    /// mappings of the process, which may be thousands.
    pub fn find(file: &Path) -> Option<Self> {
        let maps = fs::read_to_string("/proc/self/maps").ok()?;
        let (start, bytes) = maps.lines().find_map(|line| mapping_of(line, file))?;
        Some(Self { start, bytes })
    }

    /// Removes its pages from the resident memory of this process. They stay in the system's cache,
    /// and return when they are read.
    ///
    /// # Safety
    /// The file must still be mapped there.
    #[cfg(target_os = "linux")]
    #[expect(unsafe_code, reason = "there is no safe madvise")]
    pub unsafe fn release(&self) {
        // SAFETY: the range is a shared mapping of a file, which the caller keeps: its pages,
        // changed ones too, are those of the file, so that nothing is lost. A failure leaves them
        // mapped.
        let _ = unsafe {
            rustix::mm::madvise(
                std::ptr::without_provenance_mut(self.start),
                self.bytes,
                rustix::mm::Advice::LinuxDontNeed,
            )
        };
    }

    /// Other systems do not report mappings.
    ///
    /// # Safety
    /// No requirement: the function has no effect here.
    #[cfg(not(target_os = "linux"))]
    #[expect(unsafe_code, reason = "the same function as on Linux")]
    pub unsafe fn release(&self) {
        let _ = (self.start, self.bytes);
    }
}

/// The address and the bytes of a line of `/proc/self/maps`, if it is a shared mapping of `file`.
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
    fn limits_on_the_way_to_the_root_are_found_with_the_memory_in_use() {
        let root = tempfile::tempdir().unwrap();
        let found = |membership: &str| -> Vec<(u64, u64)> {
            let limits = limits_of(membership, root.path());
            limits.iter().map(|(limit, folder)| (*limit, in_use_bytes(folder))).collect()
        };
        let v1 = root.path().join("memory/a/b");
        fs::create_dir_all(&v1).unwrap();
        let unlimited = 9_223_372_036_854_771_712;
        fs::write(root.path().join("memory/memory.limit_in_bytes"), format!("{unlimited}\n"))
            .unwrap();
        fs::write(root.path().join("memory/a/memory.limit_in_bytes"), "1000\n").unwrap();
        let stat = "cache 7\nrss 10\nshmem 20\ntotal_rss 100\ntotal_rss_huge 9\ntotal_shmem 200\n";
        fs::write(root.path().join("memory/a/memory.stat"), stat).unwrap();
        fs::write(v1.join("memory.limit_in_bytes"), "5000\n").unwrap();
        let of_v1 = found("4:memory:/a/b\n3:cpu,cpuacct:/a\n");
        assert_eq!(of_v1, [(5000, 0), (1000, 300), (unlimited, 0)]);

        let v2 = root.path().join("slice");
        fs::create_dir_all(&v2).unwrap();
        fs::write(v2.join("memory.max"), "max\n").unwrap();
        assert_eq!(found("0::/slice\n"), []);
        fs::write(v2.join("memory.max"), "2000\n").unwrap();
        fs::write(v2.join("memory.stat"), "anon 30\nfile 50\nshmem 7\n").unwrap();
        assert_eq!(found("0::/slice\n"), [(2000, 37)]);
    }

    #[test]
    fn auto_is_a_share_of_what_is_there() {
        let auto = available_budget_bytes();
        let physical = meminfo("MemTotal:").unwrap_or_else(physical_without_proc);
        assert!(auto > 0 && auto < physical);
    }
}
