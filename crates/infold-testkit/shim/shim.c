/* A preloaded library that fails, kills or records the calls of a process on files below one directory.
 *
 * SHIM_DIR    the directory; calls on other files pass untouched
 * SHIM_LOG    the file, elsewhere, that is written to
 * SHIM_MODE   list    appends `op <tab> path` for each call
 *             fault   counts calls as `list` does and harms call number SHIM_AT (from 1)
 *             trace   appends each change with its bytes
 * SHIM_FAULT  eio, enospc, erofs, emfile, enomem, eintr: the call fails once with that error
 *             short, torn: half of the bytes are read or written; torn fails with ENOSPC, short is no error
 *             full, readonly, broken: this call and all later ones fail as on a disk that is full (ENOSPC),
 *             was remounted read-only (EROFS) or is gone (EIO)
 *             kill, kill-half, kill-after: the process ends before, in the middle of or after the call
 *
 * SHIM_BOOT   a file that stands for the boot id of the machine: to a process after a power cut it is another one
 *
 * In a trace a record is `op <tab> offset <tab> bytes <tab> path <tab> path <newline>`, the bytes, and a newline.
 * Calls are made directly, not through the C library, so that the shim never calls itself. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define LONG_PATH (2 * PATH_MAX)

enum mode { OFF, LIST, FAULT, TRACE };

static enum mode mode;
static char dir[PATH_MAX];
static size_t dir_len;
static char fault[16];
static long fault_at;
static long calls;
static int log_fd = -1;
static const char *boot;
static int is_over; /* A fault that lasts has begun. */
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

__attribute__((constructor)) static void begin(void) {
    boot = getenv("SHIM_BOOT");
    const char *name = getenv("SHIM_MODE"), *where = getenv("SHIM_DIR"), *log = getenv("SHIM_LOG");
    if (!name || !where || !log || !realpath(where, dir))
        return;
    dir_len = strlen(dir);
    const char *kind = getenv("SHIM_FAULT"), *at = getenv("SHIM_AT");
    snprintf(fault, sizeof fault, "%s", kind ? kind : "");
    fault_at = at ? atol(at) : 0;
    log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    /* Out of the way of descriptors that the process may count on. */
    int high = fcntl(log_fd, F_DUPFD_CLOEXEC, 200);
    if (high >= 0) {
        syscall(SYS_close, log_fd);
        log_fd = high;
    }
    mode = !strcmp(name, "list") ? LIST : !strcmp(name, "fault") ? FAULT : !strcmp(name, "trace") ? TRACE : OFF;
}

static int is_below(const char *path) {
    return !strncmp(path, dir, dir_len) && (path[dir_len] == '/' || path[dir_len] == 0);
}

/* The path of a descriptor, if it is below the directory. */
static int fd_path(int fd, char *path) {
    char link[40];
    if (mode == OFF || fd < 0 || fd == log_fd)
        return 0;
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, path, LONG_PATH - 1);
    if (n <= 0)
        return 0;
    path[n] = 0;
    return is_below(path);
}

/* The whole path of a name, if it is below the directory. */
static int whole_path(int at, const char *name, char *path) {
    if (mode == OFF || !name)
        return 0;
    if (name[0] == '/') {
        snprintf(path, LONG_PATH, "%s", name);
        return is_below(path);
    }
    char base[LONG_PATH];
    if (at == AT_FDCWD) {
        if (syscall(SYS_getcwd, base, sizeof base) <= 0)
            return 0;
    } else {
        char link[40];
        snprintf(link, sizeof link, "/proc/self/fd/%d", at);
        ssize_t n = syscall(SYS_readlinkat, AT_FDCWD, link, base, sizeof base - 1);
        if (n <= 0)
            return 0;
        base[n] = 0;
    }
    snprintf(path, LONG_PATH, "%.4000s/%.4000s", base, name);
    return is_below(path);
}

static void record(const char *op, long long offset, size_t len, const char *path, const char *other, const void *bytes) {
    char head[2 * LONG_PATH];
    struct iovec parts[3];
    int n = mode == TRACE ? snprintf(head, sizeof head, "%s\t%lld\t%zu\t%s\t%s\n", op, offset, bytes ? len : 0, path, other)
                          : snprintf(head, sizeof head, "%s\t%s\n", op, path);
    int count = 0;
    parts[count++] = (struct iovec){head, n};
    if (mode == TRACE) {
        if (bytes)
            parts[count++] = (struct iovec){(void *)bytes, len};
        parts[count++] = (struct iovec){"\n", 1};
    }
    syscall(SYS_writev, log_fd, parts, count);
}

/* What is to happen to a call: nothing, an error, half of it, or the end of the process. */
enum fate { PASS, ERROR, HALF, HALF_ERROR, KILL_HALF, KILL_AFTER };

static int fails(const char *list, const char *op) {
    return strstr(list, op) != 0;
}

/* Calls that change something, and those of them that need room. */
#define CHANGES " create write sync truncate rename unlink mkdir rmdir link allocate "
#define GROWS " create write mkdir rename link allocate "

static int lasting(const char *op, const char **what) {
    char word[16];
    snprintf(word, sizeof word, " %s ", op);
    if (!strcmp(fault, "full")) {
        *what = "enospc";
        return fails(GROWS, word);
    }
    if (!strcmp(fault, "readonly")) {
        *what = "erofs";
        return fails(CHANGES, word) && strcmp(op, "sync");
    }
    *what = "eio";
    return !strcmp(fault, "broken");
}

static int error_named(const char *name) {
    static const struct {
        const char *name;
        int error;
    } errors[] = {{"eio", EIO},       {"enospc", ENOSPC}, {"erofs", EROFS}, {"emfile", EMFILE},
                  {"enomem", ENOMEM}, {"eintr", EINTR},   {"torn", ENOSPC}};
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (!strcmp(errors[i].name, name))
            return errors[i].error;
    return 0;
}

/* Counts a call and says what becomes of it; `has_bytes` if half of it can be done. */
static enum fate meet(const char *op, const char *path, int has_bytes) {
    if (mode == LIST)
        record(op, 0, 0, path, "", 0);
    if (mode != FAULT)
        return PASS;
    long now = __atomic_add_fetch(&calls, 1, __ATOMIC_SEQ_CST);
    int is_lasting = !strcmp(fault, "full") || !strcmp(fault, "readonly") || !strcmp(fault, "broken");
    const char *what = fault;
    if (now != fault_at && !(is_lasting && now > fault_at))
        return PASS;
    if (is_lasting && !lasting(op, &what))
        return PASS;
    int is_first = !__atomic_exchange_n(&is_over, 1, __ATOMIC_SEQ_CST);
    if (is_first)
        record(op, 0, 0, path, "", 0);
    if (!strcmp(fault, "kill"))
        kill(getpid(), SIGKILL);
    if (!strcmp(fault, "kill-half"))
        return KILL_HALF;
    if (!strcmp(fault, "kill-after"))
        return KILL_AFTER;
    if (!strcmp(fault, "short"))
        return has_bytes ? HALF : PASS;
    errno = error_named(what);
    /* A disk fills up in the middle of a write. */
    int is_torn = !strcmp(fault, "torn") || (!strcmp(fault, "full") && is_first);
    return is_torn && has_bytes ? HALF_ERROR : ERROR;
}

static void end_after(enum fate fate) {
    if (fate == KILL_HALF || fate == KILL_AFTER)
        kill(getpid(), SIGKILL);
}

/* A call on names that has no halves. */
#define NAMED(op, path, other, call)                          \
    do {                                                      \
        pthread_mutex_lock(&turn);                            \
        enum fate fate = meet(op, path, 0);                   \
        long done = -1;                                       \
        if (fate != ERROR) {                                  \
            if (fate != KILL_HALF)                            \
                done = (call);                                \
            int kept = errno;                                 \
            end_after(fate);                                  \
            if (mode == TRACE && done >= 0)                   \
                record(op, 0, 0, path, other, 0);             \
            errno = kept;                                     \
        }                                                     \
        pthread_mutex_unlock(&turn);                          \
        return done;                                          \
    } while (0)

static int open_it(int at, const char *name, int flags, mode_t bits) {
    char path[LONG_PATH];
    if (boot && !strcmp(name, "/proc/sys/kernel/random/boot_id"))
        return syscall(SYS_openat, AT_FDCWD, boot, flags, bits);
    int is_unnamed = (flags & O_TMPFILE) == O_TMPFILE;
    if (!whole_path(at, name, path))
        return syscall(SYS_openat, at, name, flags, bits);
    pthread_mutex_lock(&turn);
    int is_there = !syscall(SYS_faccessat, at, name, F_OK, 0);
    int creates = is_unnamed || ((flags & O_CREAT) && !is_there);
    int empties = (flags & O_TRUNC) && is_there;
    enum fate fate = meet(creates ? "create" : empties ? "truncate" : "open", path, 0);
    int fd = -1;
    if (fate != ERROR) {
        if (fate != KILL_HALF)
            fd = syscall(SYS_openat, at, name, flags, bits);
        int kept = errno;
        end_after(fate);
        if (mode == TRACE && fd >= 0 && !is_unnamed && (creates || empties))
            record(creates ? "create" : "truncate", 0, 0, path, "", 0);
        errno = kept;
    }
    pthread_mutex_unlock(&turn);
    return fd;
}

#define MODE_OF(flags)                                   \
    mode_t bits = 0;                                     \
    if ((flags) & (O_CREAT | (O_TMPFILE & ~O_DIRECTORY))) { \
        va_list rest;                                    \
        va_start(rest, flags);                           \
        bits = va_arg(rest, mode_t);                     \
        va_end(rest);                                    \
    }

int open(const char *name, int flags, ...) {
    MODE_OF(flags)
    return open_it(AT_FDCWD, name, flags, bits);
}
int open64(const char *name, int flags, ...) {
    MODE_OF(flags)
    return open_it(AT_FDCWD, name, flags, bits);
}
int openat(int at, const char *name, int flags, ...) {
    MODE_OF(flags)
    return open_it(at, name, flags, bits);
}
int openat64(int at, const char *name, int flags, ...) {
    MODE_OF(flags)
    return open_it(at, name, flags, bits);
}

DIR *opendir(const char *name) {
    static DIR *(*real)(const char *);
    if (!real)
        real = (DIR * (*)(const char *)) dlsym(RTLD_NEXT, "opendir");
    char path[LONG_PATH];
    if (whole_path(AT_FDCWD, name, path)) {
        enum fate fate = meet("list", path, 0);
        if (fate == ERROR)
            return 0;
        end_after(fate);
    }
    return real(name);
}

/* A read. `offset` is where, or -1 for where the descriptor stands. */
static ssize_t read_it(int fd, void *to, size_t len, off_t offset) {
    char path[LONG_PATH];
    if (len && fd_path(fd, path)) {
        enum fate fate = meet("read", path, len > 1);
        if (fate == ERROR)
            return -1;
        end_after(fate);
        if (fate == HALF || fate == HALF_ERROR)
            len = (len + 1) / 2;
    }
    return offset < 0 ? syscall(SYS_read, fd, to, len) : syscall(SYS_pread64, fd, to, len, offset);
}
ssize_t read(int fd, void *to, size_t len) { return read_it(fd, to, len, -1); }
ssize_t pread(int fd, void *to, size_t len, off_t offset) { return read_it(fd, to, len, offset); }
ssize_t pread64(int fd, void *to, size_t len, off_t offset) { return read_it(fd, to, len, offset); }
ssize_t readv(int fd, const struct iovec *parts, int count) {
    /* Fewer bytes than asked for are a legal answer, so the first part will do. */
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len)
            return read_it(fd, parts[i].iov_base, parts[i].iov_len, -1);
    return 0;
}

static ssize_t write_raw(int fd, const void *from, size_t len, off_t offset) {
    return offset < 0 ? syscall(SYS_write, fd, from, len) : syscall(SYS_pwrite64, fd, from, len, offset);
}

/* Where a write goes that names no offset. */
static off_t place_of(int fd) {
    int flags = fcntl(fd, F_GETFL);
    return lseek(fd, 0, flags & O_APPEND ? SEEK_END : SEEK_CUR);
}

static ssize_t write_it(int fd, const void *from, size_t len, off_t offset) {
    char path[LONG_PATH];
    if (!len || !fd_path(fd, path))
        return write_raw(fd, from, len, offset);
    pthread_mutex_lock(&turn);
    enum fate fate = meet("write", path, len > 1);
    ssize_t done = -1;
    if (fate != ERROR) {
        int wanted = errno;
        if (fate == HALF || fate == HALF_ERROR || fate == KILL_HALF)
            len /= 2;
        off_t place = mode == TRACE && offset < 0 ? place_of(fd) : offset;
        done = write_raw(fd, from, len, offset);
        int kept = errno;
        end_after(fate);
        if (mode == TRACE && done > 0)
            record("write", place, done, path, "", from);
        errno = fate == HALF_ERROR ? wanted : kept;
        if (fate == HALF_ERROR)
            done = -1;
    }
    pthread_mutex_unlock(&turn);
    return done;
}
ssize_t write(int fd, const void *from, size_t len) { return write_it(fd, from, len, -1); }
ssize_t pwrite(int fd, const void *from, size_t len, off_t offset) { return write_it(fd, from, len, offset); }
ssize_t pwrite64(int fd, const void *from, size_t len, off_t offset) { return write_it(fd, from, len, offset); }
ssize_t writev(int fd, const struct iovec *parts, int count) {
    char path[LONG_PATH];
    if (!fd_path(fd, path))
        return syscall(SYS_writev, fd, parts, count);
    for (int i = 0; i < count; i++)
        if (parts[i].iov_len)
            return write_it(fd, parts[i].iov_base, parts[i].iov_len, -1);
    return 0;
}

/* Copies inside the kernel are refused: whoever wants one then reads and writes. */
ssize_t copy_file_range(int from, off_t *at, int to, off_t *there, size_t len, unsigned flags) {
    char path[LONG_PATH];
    if (fd_path(from, path) || fd_path(to, path)) {
        errno = EXDEV;
        return -1;
    }
    return syscall(SYS_copy_file_range, from, at, to, there, len, flags);
}
static ssize_t send_it(int to, int from, off_t *at, size_t len) {
    char path[LONG_PATH];
    if (fd_path(from, path) || fd_path(to, path)) {
        errno = EINVAL;
        return -1;
    }
    return syscall(SYS_sendfile, to, from, at, len);
}
ssize_t sendfile(int to, int from, off_t *at, size_t len) { return send_it(to, from, at, len); }
ssize_t sendfile64(int to, int from, off_t *at, size_t len) { return send_it(to, from, at, len); }

static int sync_it(long call, int fd) {
    char path[LONG_PATH];
    if (!fd_path(fd, path))
        return syscall(call, fd);
    NAMED("sync", path, "", syscall(call, fd));
}
int fsync(int fd) { return sync_it(SYS_fsync, fd); }
int fdatasync(int fd) { return sync_it(SYS_fdatasync, fd); }

static int resize_it(int fd, off_t len) {
    char path[LONG_PATH];
    if (!fd_path(fd, path))
        return syscall(SYS_ftruncate, fd, len);
    pthread_mutex_lock(&turn);
    enum fate fate = meet("truncate", path, 0);
    int done = -1;
    if (fate != ERROR) {
        if (fate != KILL_HALF)
            done = syscall(SYS_ftruncate, fd, len);
        int kept = errno;
        end_after(fate);
        if (mode == TRACE && !done)
            record("truncate", len, 0, path, "", 0);
        errno = kept;
    }
    pthread_mutex_unlock(&turn);
    return done;
}
int ftruncate(int fd, off_t len) { return resize_it(fd, len); }
int ftruncate64(int fd, off_t len) { return resize_it(fd, len); }

static int allocate_it(int fd, int how, off_t offset, off_t len) {
    char path[LONG_PATH];
    if (!fd_path(fd, path))
        return syscall(SYS_fallocate, fd, how, offset, len);
    pthread_mutex_lock(&turn);
    enum fate fate = meet("allocate", path, 0);
    int done = -1;
    if (fate != ERROR) {
        if (fate != KILL_HALF)
            done = syscall(SYS_fallocate, fd, how, offset, len);
        int kept = errno;
        end_after(fate);
        struct stat now;
        if (mode == TRACE && !done && !fstat(fd, &now))
            record("truncate", now.st_size, 0, path, "", 0);
        errno = kept;
    }
    pthread_mutex_unlock(&turn);
    return done;
}
int fallocate(int fd, int how, off_t offset, off_t len) { return allocate_it(fd, how, offset, len); }
int fallocate64(int fd, int how, off_t offset, off_t len) { return allocate_it(fd, how, offset, len); }
int posix_fallocate(int fd, off_t offset, off_t len) { return allocate_it(fd, 0, offset, len) ? errno : 0; }
int posix_fallocate64(int fd, off_t offset, off_t len) { return allocate_it(fd, 0, offset, len) ? errno : 0; }

static int rename_it(int at, const char *from, int there, const char *to, unsigned flags) {
    char path[LONG_PATH], other[LONG_PATH];
    int is_from = whole_path(at, from, path), is_to = whole_path(there, to, other);
    if (!is_from && !is_to)
        return syscall(SYS_renameat2, at, from, there, to, flags);
    NAMED("rename", path, other, syscall(SYS_renameat2, at, from, there, to, flags));
}
int rename(const char *from, const char *to) { return rename_it(AT_FDCWD, from, AT_FDCWD, to, 0); }
int renameat(int at, const char *from, int there, const char *to) { return rename_it(at, from, there, to, 0); }
int renameat2(int at, const char *from, int there, const char *to, unsigned flags) {
    return rename_it(at, from, there, to, flags);
}

static int unlink_it(int at, const char *name, int flags) {
    char path[LONG_PATH];
    if (!whole_path(at, name, path))
        return syscall(SYS_unlinkat, at, name, flags);
    NAMED(flags & AT_REMOVEDIR ? "rmdir" : "unlink", path, "", syscall(SYS_unlinkat, at, name, flags));
}
int unlink(const char *name) { return unlink_it(AT_FDCWD, name, 0); }
int unlinkat(int at, const char *name, int flags) { return unlink_it(at, name, flags); }
int rmdir(const char *name) { return unlink_it(AT_FDCWD, name, AT_REMOVEDIR); }

static int mkdir_it(int at, const char *name, mode_t bits) {
    char path[LONG_PATH];
    if (!whole_path(at, name, path))
        return syscall(SYS_mkdirat, at, name, bits);
    NAMED("mkdir", path, "", syscall(SYS_mkdirat, at, name, bits));
}
int mkdir(const char *name, mode_t bits) { return mkdir_it(AT_FDCWD, name, bits); }
int mkdirat(int at, const char *name, mode_t bits) { return mkdir_it(at, name, bits); }

static int link_it(int at, const char *from, int there, const char *to, int flags) {
    char path[LONG_PATH], other[LONG_PATH];
    int is_from = whole_path(at, from, path), is_to = whole_path(there, to, other);
    if (!is_from && !is_to)
        return syscall(SYS_linkat, at, from, there, to, flags);
    NAMED("link", path, other, syscall(SYS_linkat, at, from, there, to, flags));
}
int link(const char *from, const char *to) { return link_it(AT_FDCWD, from, AT_FDCWD, to, 0); }
int linkat(int at, const char *from, int there, const char *to, int flags) { return link_it(at, from, there, to, flags); }

static void *map_it(void *at, size_t len, int how, int flags, int fd, off_t offset) {
    char path[LONG_PATH];
    if (fd_path(fd, path)) {
        enum fate fate = meet("map", path, 0);
        if (fate == ERROR)
            return MAP_FAILED;
        end_after(fate);
    }
    return (void *)syscall(SYS_mmap, at, len, how, flags, fd, offset);
}
void *mmap(void *at, size_t len, int how, int flags, int fd, off_t offset) {
    return map_it(at, len, how, flags, fd, offset);
}
void *mmap64(void *at, size_t len, int how, int flags, int fd, off_t offset) {
    return map_it(at, len, how, flags, fd, offset);
}
