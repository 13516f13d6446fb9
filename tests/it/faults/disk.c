/* Faults of a disk, for a process that loads this before the C library: as the file that NUDGE_TEST_FAULT names says,
 * "fail" has every flush refused, "log" only the next one by fdatasync, which is how PostgreSQL flushes its log (that
 * flush takes the file away), "slow N" has it take N milliseconds longer, "full" lets no file of a database grow, and no
 * file leaves all as it is. PostgreSQL's log is not among those: it has its place beforehand. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

/* What the file says that the faults are in; 0 if there is none. */
static int told(char *text, size_t size) {
    const char *path = getenv("NUDGE_TEST_FAULT");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    if (read(file, text, size) < 0)
        text[0] = 0;
    close(file);
    return 1;
}

static int fails(int data_only) {
    const char *path = getenv("NUDGE_TEST_FAULT");
    char text[32] = {0};
    int milliseconds = 0;
    if (!told(text, sizeof text - 1))
        return 0;
    /* Of processes that flush at once, one takes the file away. */
    if (strncmp(text, "fail", 4) == 0 || (data_only && strncmp(text, "log", 3) == 0 && unlink(path) == 0)) {
        errno = EIO;
        return 1;
    }
    if (sscanf(text, "slow %d", &milliseconds) == 1)
        usleep((useconds_t)milliseconds * 1000);
    return 0;
}

int fsync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fsync");
    return fails(0) ? -1 : real(file);
}

int fdatasync(int file) {
    int (*real)(int) = (int (*)(int))dlsym(RTLD_NEXT, "fdatasync");
    return fails(1) ? -1 : real(file);
}

/* Whether a write up to here makes a file of a database larger, and there is no room: tables and indexes of PostgreSQL, and
 * what SQLite writes but for what it shares between processes. */
static int has_no_room(int file, off_t end) {
    char text[32] = {0}, link[64], path[4096] = {0};
    struct stat stat;
    if (!told(text, sizeof text - 1) || strncmp(text, "full", 4) != 0)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    if (readlink(link, path, sizeof path - 1) < 0 || fstat(file, &stat) != 0)
        return 0;
    if (!strstr(path, "/base/") && (!strstr(path, "nudge.db") || strstr(path, "-shm")))
        return 0;
    if (end <= stat.st_size)
        return 0;
    errno = ENOSPC;
    return 1;
}

ssize_t pwrite(int file, const void *bytes, size_t count, off_t at) {
    ssize_t (*real)(int, const void *, size_t, off_t) = (ssize_t(*)(int, const void *, size_t, off_t))dlsym(RTLD_NEXT, "pwrite");
    return has_no_room(file, at + (off_t)count) ? -1 : real(file, bytes, count, at);
}

ssize_t pwrite64(int file, const void *bytes, size_t count, off64_t at) {
    return pwrite(file, bytes, count, (off_t)at);
}

ssize_t pwritev(int file, const struct iovec *parts, int count, off_t at) {
    ssize_t (*real)(int, const struct iovec *, int, off_t) = (ssize_t(*)(int, const struct iovec *, int, off_t))dlsym(RTLD_NEXT, "pwritev");
    return has_no_room(file, at + 1) ? -1 : real(file, parts, count, at);
}

ssize_t pwritev64(int file, const struct iovec *parts, int count, off64_t at) {
    return pwritev(file, parts, count, (off_t)at);
}

int posix_fallocate(int file, off_t at, off_t count) {
    int (*real)(int, off_t, off_t) = (int (*)(int, off_t, off_t))dlsym(RTLD_NEXT, "posix_fallocate");
    return has_no_room(file, at + count) ? ENOSPC : real(file, at, count);
}

int posix_fallocate64(int file, off64_t at, off64_t count) {
    return posix_fallocate(file, (off_t)at, (off_t)count);
}

ssize_t write(int file, const void *bytes, size_t count) {
    ssize_t (*real)(int, const void *, size_t) = (ssize_t(*)(int, const void *, size_t))dlsym(RTLD_NEXT, "write");
    off_t at = lseek(file, 0, SEEK_CUR);
    return at >= 0 && has_no_room(file, at + (off_t)count) ? -1 : real(file, bytes, count);
}
