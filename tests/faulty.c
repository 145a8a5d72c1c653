/* A disk that fails, for whole commands: put before the C library by LD_PRELOAD, it counts the operations on files
 * below a folder and lets those fail that the test chose.
 *
 *   FAULTY_BELOW   the folder, as an absolute path without links
 *   FAULTY_FAIL    "CLASS FIRST LAST ERRNO": operations FIRST to LAST of the class fail, counted from 1; errno 0:
 *                  they move half of the bytes
 *   FAULTY_COUNTS  a file, not below the folder, to which a line "CLASS COUNT" of each class is written at exit
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum { OPEN, READ, WRITE, SYNC, RENAME, CLASSES };
static const char *const NAMES[CLASSES] = {"open", "read", "write", "sync", "rename"};

static atomic_long counts[CLASSES];
static int chosen = -1, chosen_errno;
static long first, last;
static const char *below;

__attribute__((constructor)) static void begin(void) {
    char name[16] = "";
    const char *plan = getenv("FAULTY_FAIL");
    below = getenv("FAULTY_BELOW");
    if (plan && sscanf(plan, "%15s %ld %ld %d", name, &first, &last, &chosen_errno) == 4)
        for (int class = 0; class < CLASSES; class++)
            if (strcmp(name, NAMES[class]) == 0) chosen = class;
    if (!below || (plan && chosen < 0)) {
        fprintf(stderr, "faulty.c: FAULTY_BELOW or FAULTY_FAIL is wrong\n");
        abort();
    }
}

__attribute__((destructor)) static void end(void) {
    const char *path = getenv("FAULTY_COUNTS");
    FILE *file = path ? fopen(path, "w") : NULL;
    if (!file) return;
    for (int class = 0; class < CLASSES; class++) fprintf(file, "%s %ld\n", NAMES[class], counts[class]);
    fclose(file);
}

static int is_below(const char *path) {
    size_t length = strlen(below);
    return strncmp(path, below, length) == 0 && (path[length] == '/' || path[length] == '\0');
}

static int is_file_below(int fd) {
    char link[64], path[PATH_MAX];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    if (length < 0) return 0;
    path[length] = '\0';
    return is_below(path);
}

/* Counts an operation; its errno, 0 if it goes on, -1 if it moves half. */
static int fate(int class) {
    long number = ++counts[class];
    if (class != chosen || number < first || number > last) return 0;
    return chosen_errno ? chosen_errno : -1;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define TRANSFER(class, name, fd, buffer, size, ...)                   \
    if (is_file_below(fd)) {                                           \
        int error = fate(class);                                       \
        if (error > 0) return errno = error, -1;                       \
        if (error < 0 && size > 1) size /= 2;                          \
    }                                                                  \
    return REAL(name)(fd, buffer, size __VA_OPT__(, ) __VA_ARGS__);

#define CALL(class, name, condition, ...)                              \
    if (condition) {                                                   \
        int error = fate(class);                                       \
        if (error > 0) return errno = error, -1;                       \
    }                                                                  \
    return REAL(name)(__VA_ARGS__);

ssize_t read(int fd, void *buffer, size_t size) { TRANSFER(READ, read, fd, buffer, size) }
ssize_t pread(int fd, void *buffer, size_t size, off_t at) { TRANSFER(READ, pread, fd, buffer, size, at) }
ssize_t pread64(int fd, void *buffer, size_t size, off64_t at) { TRANSFER(READ, pread64, fd, buffer, size, at) }
ssize_t write(int fd, const void *buffer, size_t size) { TRANSFER(WRITE, write, fd, buffer, size) }
ssize_t pwrite(int fd, const void *buffer, size_t size, off_t at) { TRANSFER(WRITE, pwrite, fd, buffer, size, at) }
ssize_t pwrite64(int fd, const void *buffer, size_t size, off64_t at) {
    TRANSFER(WRITE, pwrite64, fd, buffer, size, at)
}
int fsync(int fd) { CALL(SYNC, fsync, is_file_below(fd), fd) }
int fdatasync(int fd) { CALL(SYNC, fdatasync, is_file_below(fd), fd) }
int rename(const char *from, const char *to) { CALL(RENAME, rename, is_below(to), from, to) }

#define OPENED(name, path, ...)                                        \
    mode_t mode = 0;                                                   \
    if (flags & (O_CREAT | O_TMPFILE)) {                               \
        va_list more;                                                  \
        va_start(more, flags);                                         \
        mode = va_arg(more, mode_t);                                   \
        va_end(more);                                                  \
    }                                                                  \
    CALL(OPEN, name, is_below(path), __VA_ARGS__, flags, mode)

int open(const char *path, int flags, ...) { OPENED(open, path, path) }
int open64(const char *path, int flags, ...) { OPENED(open64, path, path) }
int openat(int folder, const char *path, int flags, ...) { OPENED(openat, path, folder, path) }
int openat64(int folder, const char *path, int flags, ...) { OPENED(openat64, path, folder, path) }
