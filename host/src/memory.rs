//! How the system gives memory to the program, and gets it back.

use std::ops::Range;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

/// How often free memory is given back. What has been free for less than a second stays for the work that comes next.
const GIVING_BACK: Duration = Duration::from_secs(10);

/// Has the system give this process memory in its ordinary pages, and not in those of 2 MiB that the allocator asks for:
/// each would be kept as long as a few kilobytes of it are used. Elsewhere than on Linux, and where it is refused, it is
/// as it was.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "memory may come in pages of 2 MiB");
    }
}

/// Gives memory back to the system from time to time, until `halt`: free memory, which the allocator gives back only as it is asked
/// for more, so that all that the last work before a pause took would stay with it; and code that only starting needs.
pub async fn give_back(halt: CancellationToken) {
    let mut again = tokio::time::interval(GIVING_BACK);
    // A debugger's breakpoints are changes to the code, and would go with it.
    let code = if cfg!(debug_assertions) { None } else { code() };
    loop {
        tokio::select! {
            () = halt.cancelled() => return,
            _ = again.tick() => {
                collect();
                if let Some(code) = &code {
                    let_go_of(code);
                }
            }
        }
    }
}

/// Where the program's code is, on Linux.
fn code() -> Option<Range<usize>> {
    let here = collect as *const () as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| code_around(here, line))
}

/// Has the program's code be none of this process's memory but for what is run from now on. It stays in the system's cache of
/// files while there is room, and comes from there, 64 KiB at a time.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the system is told of a range of addresses")]
fn let_go_of(code: &Range<usize>) {
    let (start, advice) = (code.start as *mut _, rustix::mm::Advice::LinuxDontNeed);
    // SAFETY: the range is a file's that nobody writes to, so that each of its pages can be read again.
    if let Err(error) = unsafe { rustix::mm::madvise(start, code.len(), advice) } {
        tracing::debug!(%error, "the program's code stays in memory");
    }
}

/// Nowhere else is it known where the code is.
#[cfg(not(target_os = "linux"))]
fn let_go_of(_: &Range<usize>) {}

/// The addresses of a line of `/proc/self/maps` (`proc_pid_maps(5)`), if they are code of a file and have this one among them.
fn code_around(address: usize, line: &str) -> Option<Range<usize>> {
    let mut columns = line.split_ascii_whitespace();
    let (start, end) = columns.next()?.split_once('-')?;
    let hex = |digits| usize::from_str_radix(digits, 16).ok();
    let addresses = hex(start)?..hex(end)?;
    let is_code = columns.next()? == "r-xp";
    let of_file = columns.nth(2)? != "0";
    (is_code && of_file && addresses.contains(&address)).then_some(addresses)
}

#[expect(unsafe_code, reason = "the allocator is a library in C")]
fn collect() {
    // SAFETY: the allocator's functions may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(false) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_found_by_an_address_in_it() {
        let code = "55d0c1a00000-55d0c4000000 r-xp 01234000 fe:00 1311 /usr/bin/nudge";
        assert_eq!(
            code_around(0x55d0_c1a0_0000, code),
            Some(0x55d0_c1a0_0000..0x55d0_c400_0000)
        );
        assert_eq!(code_around(0x55d0_c400_0000, code), None);
    }

    #[test]
    fn memory_that_has_no_file_or_is_written_to_is_none() {
        for line in [
            "1000-2000 r-xp 00000000 00:00 0",
            "1000-2000 rw-p 00000000 fe:00 1311 /usr/bin/nudge",
            "1000-2000 r--p 00000000 fe:00 1311 /usr/bin/nudge",
            "",
        ] {
            assert_eq!(code_around(0x1800, line), None, "{line}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_programs_code_is_found_and_runs_on() {
        let before = code();
        let_go_of(before.as_ref().expect("it is code of a file"));
        assert_eq!(code(), before);
    }
}
