//! How the system gives memory to the program, and gets it back.

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

/// Gives free memory back to the system from time to time, until `halt`. The allocator does it only as it is asked for more: what
/// the last work before a pause took would stay with it.
pub async fn give_back(halt: CancellationToken) {
    let mut again = tokio::time::interval(GIVING_BACK);
    loop {
        tokio::select! {
            () = halt.cancelled() => return,
            _ = again.tick() => collect(),
        }
    }
}

#[expect(unsafe_code, reason = "the allocator is a library in C")]
fn collect() {
    // SAFETY: the allocator's functions may be called by any thread at any time.
    unsafe { libmimalloc_sys::mi_collect(false) }
}
