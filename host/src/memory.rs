//! How the system gives memory to the program.

/// Has the system give this process memory in its ordinary pages, and not in those of 2 MiB that the allocator asks for:
/// each would be kept as long as a few kilobytes of it are used. Elsewhere than on Linux, and where it is refused, it is
/// as it was.
pub fn use_small_pages() {
    #[cfg(target_os = "linux")]
    if let Err(error) = rustix::thread::disable_transparent_huge_pages(true) {
        tracing::debug!(%error, "memory may come in pages of 2 MiB");
    }
}
