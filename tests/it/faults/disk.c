/* Faults of a disk, for a process that loads this before the C library: as the file that NUDGE_TEST_FAULT names says,
 * "fail" has every flush refused, "log" only the next one by fdatasync, which is how PostgreSQL flushes its log (that
 * flush takes the file away), "slow N" has it take N milliseconds longer, and no file leaves all as it is. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fails(int data_only) {
    const char *path = getenv("NUDGE_TEST_FAULT");
    char text[32] = {0};
    int milliseconds = 0;
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file < 0)
        return 0;
    if (read(file, text, sizeof text - 1) < 0)
        text[0] = 0;
    close(file);
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
