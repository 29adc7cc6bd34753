/* The system calls that need care: EINTR, short transfers, errno, reservation, locks, random bytes. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

_Static_assert(sizeof(off_t) == 8, "files above 2 GiB need a 64-bit off_t");

/* ---- messages ---- */

static void text_fill(char *text, size_t bytes, const char *format, va_list values)
{
    if (vsnprintf(text, bytes, format, values) < 0) {
        text[0] = '\0';
    }
}

void ckb_os_text(char *text, size_t bytes, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    text_fill(text, bytes, format, values);
    va_end(values);
}

void ckb_os_warn(ckb_warnings *warnings, const char *format, ...)
{
    if (warnings->count >= CKB_WARNING_COUNT) {
        return;
    }
    va_list values;
    va_start(values, format);
    text_fill(warnings->text[warnings->count], CKB_WARNING_BYTES, format, values);
    va_end(values);
    warnings->count++;
}

void ckb_os_failure_note(ckb_os_failure *failure, ckb_os_weight weight, const char *format, ...)
{
    pthread_mutex_lock(&failure->mutex);
    if (weight > failure->weight) {
        va_list values;
        va_start(values, format);
        text_fill(failure->text, sizeof failure->text, format, values);
        va_end(values);
        failure->weight = weight;
    }
    pthread_mutex_unlock(&failure->mutex);
}

/* Not strerror: its text depends on the locale, and it is not safe in threads everywhere. */
const char *ckb_os_error_text(int error)
{
    static const struct {
        int error;
        const char *text;
    } known[] = {
        {EPERM, "operation not permitted (EPERM)"},
        {ENOENT, "no such file or directory (ENOENT)"},
        {EINTR, "interrupted (EINTR)"},
        {EIO, "input/output error (EIO)"},
        {ENXIO, "no such device (ENXIO)"},
        {EBADF, "bad file descriptor (EBADF)"},
        {EAGAIN, "temporarily unavailable (EAGAIN)"},
        {ENOMEM, "out of memory (ENOMEM)"},
        {EACCES, "permission denied (EACCES)"},
        {EBUSY, "in use (EBUSY)"},
        {EEXIST, "exists already (EEXIST)"},
        {ENODEV, "no such device (ENODEV)"},
        {ENOTDIR, "not a directory (ENOTDIR)"},
        {EISDIR, "is a directory (EISDIR)"},
        {EINVAL, "invalid argument (EINVAL)"},
        {ENFILE, "too many open files in the system (ENFILE)"},
        {EMFILE, "too many open files in this process (EMFILE)"},
        {ETXTBSY, "text file in use (ETXTBSY)"},
        {EFBIG, "file too large (EFBIG)"},
        {ENOSPC, "no space left (ENOSPC)"},
        {EROFS, "read-only file system (EROFS)"},
        {ENAMETOOLONG, "name too long (ENAMETOOLONG)"},
        {ENOSYS, "not supported (ENOSYS)"},
        {ENOTEMPTY, "directory not empty (ENOTEMPTY)"},
        {ELOOP, "is a symbolic link (ELOOP)"},
        {EOVERFLOW, "value too large (EOVERFLOW)"},
        {EOPNOTSUPP, "not supported (EOPNOTSUPP)"},
        {ENOLCK, "no locks available (ENOLCK)"},
        {ESTALE, "stale file handle (ESTALE)"},
        {EDQUOT, "quota exceeded (EDQUOT)"},
    };
    for (size_t at = 0; at < sizeof known / sizeof known[0]; at++) {
        if (known[at].error == error) {
            return known[at].text;
        }
    }
    return "unexpected system error";
}

const char *ckb_os_show(const char *path, ckb_os_shown *shown)
{
    size_t length = strlen(path);
    size_t room = sizeof shown->text - 1;
    if (length <= room) {
        memcpy(shown->text, path, length + 1);
    } else {
        memcpy(shown->text, "...", 3);
        memcpy(shown->text + 3, path + length - (room - 3), room - 3 + 1);
    }
    return shown->text;
}

int ckb_os_status(int error)
{
    switch (error) {
    case 0:
        return CKB_OK;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case ENOMEM:
        return CKB_NOSPACE;
    case EACCES:
    case EPERM:
    case EROFS:
        return CKB_READONLY;
    case ENOENT:
        return CKB_NOTFOUND;
    case EBUSY:
    case EWOULDBLOCK:
    case ETXTBSY:
        return CKB_BUSY;
    case EEXIST:
        return CKB_EXISTS;
    case ENAMETOOLONG:
    case ENOTDIR:
    case EISDIR:
    case ELOOP:
        return CKB_INVALID;
    default:
        return CKB_IO;
    }
}

/* ---- transfers ---- */

int ckb_os_read(int file, void *buffer, size_t length, uint64_t offset, size_t *got)
{
    unsigned char *to = buffer;
    size_t done = 0;
    while (done < length) {
        ssize_t count = pread(file, to + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return errno;
        }
        if (count == 0) {
            break;
        }
        done += (size_t)count;
    }
    *got = done;
    return 0;
}

int ckb_os_write(int file, const void *buffer, size_t length, uint64_t offset)
{
    const unsigned char *from = buffer;
    size_t done = 0;
    while (done < length) {
        ssize_t count = pwrite(file, from + done, length - done, (off_t)(offset + done));
        if (count < 0 && errno == EINTR) {
            continue;
        }
        if (count < 0) {
            return errno;
        }
        if (count == 0) { /* would loop for ever, and means that nothing more fits: never a success */
            return EIO;
        }
        done += (size_t)count;
    }
    return 0;
}

void ckb_os_start_writeback(int file, uint64_t offset, size_t length)
{
    /* Only a hint: whatever it answers, the sync decides. */
    (void)sync_file_range(file, (off_t)offset, (off_t)length, SYNC_FILE_RANGE_WRITE);
}

int ckb_os_fdatasync(int file)
{
    int result;
    do {
        result = fdatasync(file);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

int ckb_os_fsync_directory(int directory)
{
    int result;
    do {
        result = fsync(directory);
    } while (result != 0 && errno == EINTR);
    /* EINVAL: this file system has no sync of directories, its entries are as durable as they get. */
    return result == 0 || errno == EINVAL ? 0 : errno;
}

int ckb_os_open(int directory, const char *name, int flags, mode_t mode, int *file)
{
    int result;
    do {
        result = openat(directory, name, flags | O_CLOEXEC, mode);
    } while (result < 0 && errno == EINTR);
    if (result < 0) {
        return errno;
    }
    *file = result;
    return 0;
}

int ckb_os_make(int directory, const char *name, int *file)
{
    struct stat facts;
    int error = ckb_os_open(directory, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_NONBLOCK, 0600, file);
    if (error != 0) {
        return error;
    }
    if (fstat(*file, &facts) == 0 && (facts.st_mode & 0600) != 0600 && fchmod(*file, 0600) != 0) {
        error = errno;
        (void)unlinkat(directory, name, 0);
        close(*file);
        *file = -1;
    }
    return error;
}

/* ---- reservation ---- */

/* The slow way to reserve, and the proof that there is room: write all of it. */
static int reserve_by_writing(int file, uint64_t from, uint64_t bytes)
{
    static const unsigned char zeros[65536];
    for (uint64_t at = from; at < bytes; at += sizeof zeros) {
        uint64_t rest = bytes - at;
        size_t length = rest < sizeof zeros ? (size_t)rest : sizeof zeros;
        int error = ckb_os_write(file, zeros, length, at);
        if (error != 0) {
            return error;
        }
    }
    return 0;
}

static int set_size(int file, uint64_t bytes)
{
    int result;
    do {
        result = ftruncate(file, (off_t)bytes);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

/* Some file systems answer ENOSPC to a reservation although there is room (a copy-on-write one counts
 * differently). Only when they report much more than is asked for, a plain write may have the last word. */
static bool claims_room(int file, uint64_t bytes)
{
    struct statvfs facts;
    if (fstatvfs(file, &facts) != 0) {
        return false;
    }
    uint64_t block = facts.f_frsize != 0 ? facts.f_frsize : 1;
    return facts.f_bavail / 2 >= bytes / block + 1;
}

int ckb_os_reserve(int file, uint64_t bytes, bool *reserved)
{
    struct stat facts;
    int error = 0;
    *reserved = true;
    if (fstat(file, &facts) != 0) {
        return errno;
    }
    uint64_t size_before = (uint64_t)facts.st_size;
    /* Not posix_fallocate: libc emulates it with a write per block where the file system cannot. */
    while (fallocate(file, 0, 0, (off_t)bytes) != 0) {
        error = errno;
        if (error != EINTR) {
            break;
        }
        error = 0;
    }
    if (error == EOPNOTSUPP || error == ENOSYS || error == EINVAL) {
        *reserved = false;
        error = size_before < bytes ? set_size(file, bytes) : 0;
    } else if (error == ENOSPC && size_before < bytes && claims_room(file, bytes)) {
        error = reserve_by_writing(file, size_before, bytes);
    }
    if (error != 0 && size_before < bytes) {
        (void)set_size(file, size_before);
    }
    return error;
}

int ckb_os_set_size(int file, uint64_t bytes)
{
    struct stat facts;
    if (fstat(file, &facts) != 0) {
        return errno;
    }
    return (uint64_t)facts.st_size < bytes ? set_size(file, bytes) : 0;
}

int ckb_os_write_zeros(int file, uint64_t bytes)
{
    int error = reserve_by_writing(file, 0, bytes);
    return error == 0 ? ckb_os_fdatasync(file) : error;
}

int ckb_os_lock(int file, bool shared)
{
    int result;
    do {
        result = flock(file, (shared ? LOCK_SH : LOCK_EX) | LOCK_NB);
    } while (result != 0 && errno == EINTR);
    return result == 0 ? 0 : errno;
}

#define TMPFS 0x01021994u
#define RAMFS 0x858458F6u
#define RAMDISK_MAJOR 1u /* /dev/ram0 and its like, by devices.txt of the kernel */

const char *ckb_os_sync_kind(int file)
{
    struct statfs facts;
    struct stat node;
    /* The file system of a device is that of its name, which mostly lies in memory. */
    if (fstat(file, &node) == 0 && S_ISBLK(node.st_mode)) {
        return major(node.st_rdev) == RAMDISK_MAJOR ? "none (ramdisk)" : "fdatasync";
    }
    if (fstatfs(file, &facts) == 0 && ((uint32_t)facts.f_type == TMPFS || (uint32_t)facts.f_type == RAMFS)) {
        return "none (tmpfs)";
    }
    return "fdatasync";
}

uint64_t ckb_os_file_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) {
        return UINT64_MAX;
    }
    return limit.rlim_cur;
}

bool ckb_os_line(const char *path, char *text, size_t bytes)
{
    int file = -1;
    size_t got = 0;
    text[0] = '\0';
    if (ckb_os_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK, 0, &file) != 0) {
        return false;
    }
    int error = ckb_os_read(file, text, bytes - 1, 0, &got);
    close(file);
    if (error != 0) {
        return false;
    }
    text[got] = '\0';
    text[strcspn(text, "\n")] = '\0';
    return true;
}

/* ---- random bytes and volume ids ---- */

static int random_from_device(unsigned char *to, size_t length)
{
    int file = -1;
    if (ckb_os_open(AT_FDCWD, "/dev/urandom", O_RDONLY, 0, &file) != 0) {
        return CKB_IO;
    }
    size_t got = 0;
    int status = CKB_OK;
    while (got < length && status == CKB_OK) {
        ssize_t count = read(file, to + got, length - got);
        if (count > 0) {
            got += (size_t)count;
        } else if (count == 0 || errno != EINTR) {
            status = CKB_IO;
        }
    }
    close(file);
    return status;
}

int ckb_random(void *bytes, size_t length)
{
    unsigned char *to = bytes;
    size_t done = 0;
    while (done < length) {
        ssize_t count = getrandom(to + done, length - done, 0);
        if (count > 0) {
            done += (size_t)count;
        } else if (count < 0 && errno != EINTR) { /* an old kernel, or a sandbox */
            return random_from_device(to + done, length - done);
        }
    }
    return CKB_OK;
}

static const uint8_t scratch_mark[8] = {'c', 'k', 'b', 's', 'c', 'r', 't', 'h'};

int ckb_volume_id_make(uint8_t volume_id[16], bool scratch)
{
    int status = ckb_random(volume_id, 16);
    if (status != CKB_OK) {
        return status;
    }
    if (scratch) {
        memcpy(volume_id, scratch_mark, sizeof scratch_mark); /* 64 random bits remain */
    } else if (volume_id[0] == scratch_mark[0]) {
        volume_id[0] ^= 0x80;
    }
    volume_id[15] |= 1; /* all zero is no id */
    return CKB_OK;
}

bool ckb_volume_id_is_scratch(const uint8_t volume_id[16])
{
    return memcmp(volume_id, scratch_mark, sizeof scratch_mark) == 0;
}

/* ---- names of a volume's files ---- */

void ckb_os_segment_name(uint32_t segment, char name[CKB_OS_NAME_BYTES])
{
    snprintf(name, CKB_OS_NAME_BYTES, "segment-%08lu", (unsigned long)segment);
}

bool ckb_os_segment_number(const char *name, uint32_t *segment)
{
    uint64_t number = 0;
    if (strncmp(name, "segment-", 8) != 0 || name[8] == '\0') {
        return false;
    }
    for (const char *digit = name + 8; *digit != '\0'; digit++) {
        if (*digit < '0' || *digit > '9' || digit - name >= 8 + 10) {
            return false;
        }
        number = number * 10 + (uint64_t)(*digit - '0');
    }
    char canonical[CKB_OS_NAME_BYTES];
    if (number >= CKB_NO_SEGMENT) {
        return false;
    }
    ckb_os_segment_name((uint32_t)number, canonical); /* "segment-7" names no segment */
    if (strcmp(canonical, name) != 0) {
        return false;
    }
    *segment = (uint32_t)number;
    return true;
}
