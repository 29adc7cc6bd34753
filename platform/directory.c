/* A directory as a medium: one file per segment, of its full size.
 *
 * Files are made by erase, which also reserves their space, and are never renamed, truncated or grown in
 * use. Their number is not bounded by the descriptors a process may have: a cache of few descriptors opens
 * them as needed. Who uses a descriptor pins its slot, and only unpinned slots are closed.
 *
 * Invariants of the cache:
 * - a slot's word is 0 (empty), OPEN plus the number of pins, or has BUSY while one thread opens or closes it;
 * - its segment only changes while BUSY; so whoever has pinned it and sees its segment may use its file;
 * - slot_of[segment] names the slot of a segment and is only changed under the mutex;
 * - a descriptor with unsynced writes is synced before it is closed: an error of a later write-back would
 *   be reported to nobody.
 *
 * Torn sectors: the write unit is 512, so that a small durable record is padded to little. A disk or page
 * cache that works in 4096 bytes writes the neighbours again with the bytes they had; old and new content
 * of such a block agree in everything that was durable, so it may be torn between the two at any sector. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os.h"

#define WRITE_UNIT 512u
#define SLOTS_MIN 8u
#define SLOTS_MAX 255u /* a volume of default geometry has 170 to 340 segments */
#define NO_SLOT 255u   /* at least SLOTS_MAX */
#define LOCK_ATTEMPTS 16u

#define OPEN 0x80000000u
#define BUSY 0x40000000u
#define PINS 0x0000FFFFu

typedef struct slot {
    _Alignas(64) _Atomic uint32_t word; /* one cache line each: pins of different slots do not meet */
    _Atomic uint32_t segment;
    _Atomic uint32_t recent; /* used since the hand of the clock last passed */
    int file;
} slot;

/* Bits of what is known about a segment. */
#define SEGMENT_READY 1u  /* has its full size and its space, so that erase has nothing to do */
#define SEGMENT_DIRTY 2u  /* written since the last sync */
#define SEGMENT_FAILED 4u /* a sync failed: no later one may succeed */

typedef struct directory {
    ckb_os_state base;
    int file;      /* of the directory */
    int lock_file; /* -1: read-only, and there is none */
    bool read_only;
    bool unreserved; /* under mutex: the file system cannot reserve, said once */
    ckb_prepare prepare;
    uint64_t segment_bytes;
    uint32_t segment_count;
    uint32_t slot_count;
    uint32_t hand; /* under mutex */
    slot *slots;
    _Atomic uint8_t *slot_of;
    _Atomic uint8_t *flags;
    _Atomic uint32_t *made_at;     /* the value of made when this file was made, 0: before open */
    _Atomic uint32_t made;         /* files made */
    _Atomic uint32_t made_durable; /* how many of them have durable directory entries */
    _Atomic uint32_t waiting;      /* threads that want to know when a slot changes */
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    pthread_mutex_t entries; /* one sync of the directory at a time */
    ckb_warnings *warnings;  /* the target's */
    char path[CKB_PATH_BYTES];
} directory;

static void note(directory *d, ckb_os_weight weight, const char *operation, uint32_t segment, uint64_t offset,
                 const char *why)
{
    char name[CKB_OS_NAME_BYTES];
    ckb_os_shown shown;
    ckb_os_segment_name(segment, name);
    ckb_os_failure_note(&d->base.failure, weight, "%s %s/%s offset %llu: %s", operation,
                        ckb_os_show(d->path, &shown), name, (unsigned long long)offset, why);
}

/* ---- descriptors ---- */

/* Opens a segment file that is there. */
static int segment_open(const directory *d, uint32_t segment, int *file)
{
    char name[CKB_OS_NAME_BYTES];
    struct stat facts;
    ckb_os_segment_name(segment, name);
    /* O_NONBLOCK: a FIFO of that name must not stop us for ever. */
    int flags = (d->read_only ? O_RDONLY : O_RDWR) | O_NOFOLLOW | O_NONBLOCK;
    int error = ckb_os_open(d->file, name, flags, 0, file);
    if (error != 0) {
        return error;
    }
    if (fstat(*file, &facts) != 0 || !S_ISREG(facts.st_mode)) {
        close(*file);
        return EINVAL;
    }
    return 0;
}

/* Says once that room may be missing later. */
static void unreserved_say(directory *d)
{
    pthread_mutex_lock(&d->mutex);
    if (!d->unreserved) {
        d->unreserved = true;
        ckb_os_warn(d->warnings, "this file system cannot reserve space: a write may find it full");
    }
    pthread_mutex_unlock(&d->mutex);
}

/* Gives an open segment file its size and space. */
static int segment_reserve(directory *d, uint32_t segment, int file)
{
    bool reserved = true;
    int error = d->prepare == CKB_PREPARE_NONE ? ckb_os_set_size(file, d->segment_bytes)
                                               : ckb_os_reserve(file, d->segment_bytes, &reserved);
    if (error == 0 && d->prepare == CKB_PREPARE_ZERO) {
        error = ckb_os_write_zeros(file, d->segment_bytes);
    }
    if (error != 0) {
        return error;
    }
    if (!reserved) {
        unreserved_say(d);
    }
    atomic_fetch_or(&d->flags[segment], (uint8_t)(SEGMENT_READY | SEGMENT_DIRTY));
    return 0;
}

/* Makes a segment file, whole or not at all. */
static int segment_make(directory *d, uint32_t segment, int *file)
{
    char name[CKB_OS_NAME_BYTES];
    ckb_os_segment_name(segment, name);
    int error = ckb_os_make(d->file, name, file);
    if (error != 0) {
        return error;
    }
    error = segment_reserve(d, segment, *file);
    if (error != 0) {
        (void)unlinkat(d->file, name, 0);
        close(*file);
        return error;
    }
    atomic_store(&d->made_at[segment], atomic_fetch_add(&d->made, 1) + 1);
    return 0;
}

/* ---- the cache ---- */

static void slot_unpin(directory *d, slot *s)
{
    atomic_fetch_sub(&s->word, 1);
    if (atomic_load(&d->waiting) != 0) {
        pthread_mutex_lock(&d->mutex);
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->mutex);
    }
}

/* The slot of a segment, pinned, or null when it has none that is ready. Takes no lock. */
static slot *slot_pin_open(directory *d, uint32_t segment)
{
    uint8_t at = atomic_load(&d->slot_of[segment]);
    if (at == NO_SLOT) {
        return NULL;
    }
    slot *s = &d->slots[at];
    uint32_t word = atomic_load(&s->word);
    while ((word & (OPEN | BUSY)) == OPEN) {
        if (!atomic_compare_exchange_weak(&s->word, &word, word + 1)) {
            continue;
        }
        if (atomic_load(&s->segment) == segment) {
            atomic_store_explicit(&s->recent, 1, memory_order_relaxed);
            return s;
        }
        slot_unpin(d, s); /* it went to another segment since slot_of was read */
        return NULL;
    }
    return NULL;
}

/* Whether the hand of the clock passes over an open slot in this round: over recent ones once, and over
 * dirty ones twice, since closing them costs a sync. */
static bool slot_spare(directory *d, slot *s, uint32_t round)
{
    bool recent = atomic_exchange(&s->recent, 0) != 0;
    bool dirty = (atomic_load(&d->flags[atomic_load(&s->segment)]) & SEGMENT_DIRTY) != 0;
    return round == 0 ? recent || dirty : round == 1 && dirty;
}

/* Takes an empty slot, or one that can be closed, for this thread alone: marks it BUSY. Null: all are in
 * use. Called with the mutex. */
static slot *slot_take(directory *d, bool only_open)
{
    for (uint32_t step = 0; step < 3 * d->slot_count; step++) {
        slot *s = &d->slots[d->hand];
        d->hand = (d->hand + 1) % d->slot_count;
        uint32_t word = atomic_load(&s->word);
        bool empty = word == 0 && !only_open;
        bool closable = word == OPEN && !slot_spare(d, s, step / d->slot_count);
        if ((empty || closable) && atomic_compare_exchange_strong(&s->word, &word, word | BUSY)) {
            return s;
        }
    }
    return NULL;
}

/* Syncs a descriptor; a failure is remembered for the segment, since the system reports it only once. */
static int segment_flush(directory *d, uint32_t segment, int file)
{
    atomic_fetch_and(&d->flags[segment], (uint8_t)~SEGMENT_DIRTY);
    int error = ckb_os_fdatasync(file);
    if (error != 0) {
        atomic_fetch_or(&d->flags[segment], (uint8_t)SEGMENT_FAILED);
        note(d, CKB_OS_ERROR, "sync", segment, 0, ckb_os_error_text(error));
    }
    return error;
}

/* Closes the file of a slot that slot_take gave. Called with the mutex, which is let go meanwhile. */
static void slot_close(directory *d, slot *s)
{
    uint32_t segment = atomic_load(&s->segment);
    pthread_mutex_unlock(&d->mutex);
    if ((atomic_load(&d->flags[segment]) & SEGMENT_DIRTY) != 0) {
        (void)segment_flush(d, segment, s->file);
    }
    if (close(s->file) != 0 && errno != EINTR) {
        note(d, CKB_OS_ERROR, "close", segment, 0, ckb_os_error_text(errno));
        atomic_fetch_or(&d->flags[segment], (uint8_t)SEGMENT_FAILED);
    }
    pthread_mutex_lock(&d->mutex);
    atomic_store(&d->slot_of[segment], (uint8_t)NO_SLOT);
    atomic_store(&s->word, 0);
    pthread_cond_broadcast(&d->changed);
}

/* Opens a segment in an empty slot that slot_take gave; pinned on success. Mutex as above. */
static int slot_fill(directory *d, slot *s, uint32_t segment, bool make)
{
    int file = -1;
    atomic_store(&s->segment, segment);
    atomic_store(&d->slot_of[segment], (uint8_t)(s - d->slots));
    pthread_mutex_unlock(&d->mutex);
    int error = segment_open(d, segment, &file);
    if (error == ENOENT && make) {
        error = segment_make(d, segment, &file);
    }
    pthread_mutex_lock(&d->mutex);
    s->file = file;
    if (error != 0) {
        atomic_store(&d->slot_of[segment], (uint8_t)NO_SLOT);
    }
    atomic_store(&s->word, error == 0 ? OPEN | 1 : 0);
    pthread_cond_broadcast(&d->changed);
    return error;
}

static int slot_pin_slow(directory *d, uint32_t segment, bool make, slot **pinned)
{
    bool shrunk = false;
    int error = 0;
    slot *s = NULL;
    *pinned = NULL;
    pthread_mutex_lock(&d->mutex);
    atomic_fetch_add(&d->waiting, 1);
    while (error == 0 && (*pinned = slot_pin_open(d, segment)) == NULL) {
        bool being_opened = atomic_load(&d->slot_of[segment]) != NO_SLOT;
        s = being_opened ? NULL : slot_take(d, false);
        if (s == NULL) {
            pthread_cond_wait(&d->changed, &d->mutex);
        } else if (atomic_load(&s->word) == (OPEN | BUSY)) {
            slot_close(d, s); /* the mutex was open: look again, somebody may have opened our segment */
        } else {
            error = slot_fill(d, s, segment, make);
            if (error == 0) {
                *pinned = s;
                break;
            }
            /* The process has too few descriptors: do with one less, once. */
            if ((error == EMFILE || error == ENFILE) && !shrunk && (s = slot_take(d, true)) != NULL) {
                shrunk = true;
                error = 0;
                slot_close(d, s);
            }
        }
    }
    atomic_fetch_sub(&d->waiting, 1);
    pthread_mutex_unlock(&d->mutex);
    return error;
}

static int slot_pin(directory *d, uint32_t segment, bool make, slot **pinned)
{
    *pinned = slot_pin_open(d, segment);
    return *pinned != NULL ? 0 : slot_pin_slow(d, segment, make, pinned);
}

/* ---- the medium ---- */

static bool holds(const directory *d, uint32_t segment, uint64_t offset, size_t length)
{
    return segment < d->segment_count && length <= d->segment_bytes && offset <= d->segment_bytes - length;
}

static int directory_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    directory *d = context;
    slot *s;
    size_t got = 0;
    if (!holds(d, segment, offset, length)) {
        return CKB_INVALID;
    }
    int error = slot_pin(d, segment, false, &s);
    if (error == ENOENT) {
        note(d, CKB_OS_MISSING, "read", segment, offset, ckb_os_error_text(error));
        return CKB_CORRUPT;
    }
    if (error == 0) {
        error = ckb_os_read(s->file, buffer, length, offset, &got);
        slot_unpin(d, s);
    }
    if (error != 0) {
        note(d, CKB_OS_ERROR, "read", segment, offset, ckb_os_error_text(error));
        return CKB_IO;
    }
    if (got < length) {
        char why[96];
        ckb_os_text(why, sizeof why, "the file ends after %llu bytes, expected %llu",
                    (unsigned long long)(offset + got), (unsigned long long)d->segment_bytes);
        note(d, CKB_OS_SHORT, "read", segment, offset, why);
        return CKB_CORRUPT;
    }
    return CKB_OK;
}

/* The status of a change that failed. Only a full disk has an answer of its own. */
static int change_failed(directory *d, const char *operation, uint32_t segment, uint64_t offset, int error)
{
    bool full = ckb_os_status(error) == CKB_NOSPACE && error != ENOMEM;
    note(d, full ? CKB_OS_NO_SPACE : CKB_OS_ERROR, operation, segment, offset, ckb_os_error_text(error));
    return full ? CKB_NOSPACE : CKB_IO;
}

/* Writes of this size are on their way to the disk at once, so that the sync that follows finds most of the
 * work done and the disk is not idle before; smaller ones are left to the kernel to join. */
#define WRITEBACK_BYTES (64u * 1024)

static int directory_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    directory *d = context;
    slot *s;
    if (!holds(d, segment, offset, length)) {
        return CKB_INVALID;
    }
    if (d->read_only) {
        return CKB_READONLY;
    }
    int error = slot_pin(d, segment, false, &s);
    if (error == 0) {
        error = ckb_os_write(s->file, buffer, length, offset);
        if (error == 0 && length >= WRITEBACK_BYTES) {
            ckb_os_start_writeback(s->file, offset, length);
        }
        /* After the write and before the unpin: a sync that runs beside it cannot wipe the mark out. */
        if ((atomic_load(&d->flags[segment]) & SEGMENT_DIRTY) == 0) {
            atomic_fetch_or(&d->flags[segment], (uint8_t)SEGMENT_DIRTY);
        }
        slot_unpin(d, s);
    }
    return error == 0 ? CKB_OK : change_failed(d, "write", segment, offset, error);
}

static int directory_erase(void *context, uint32_t segment)
{
    directory *d = context;
    slot *s;
    if (segment >= d->segment_count) {
        return CKB_INVALID;
    }
    if (d->read_only) {
        return CKB_READONLY;
    }
    uint8_t flags = atomic_load(&d->flags[segment]);
    if ((flags & SEGMENT_FAILED) != 0) {
        return CKB_IO;
    }
    if ((flags & SEGMENT_READY) != 0) {
        return CKB_OK; /* stale content is allowed */
    }
    int error = slot_pin(d, segment, true, &s);
    if (error == 0) {
        if ((atomic_load(&d->flags[segment]) & SEGMENT_READY) == 0) {
            error = segment_reserve(d, segment, s->file);
        }
        slot_unpin(d, s);
    }
    return error == 0 ? CKB_OK : change_failed(d, "erase", segment, 0, error);
}

/* Makes the directory entry of a new file durable, together with those of all files made before. */
static int entry_flush(directory *d, uint32_t segment)
{
    int error = 0;
    if (atomic_load(&d->made_at[segment]) <= atomic_load(&d->made_durable)) {
        return 0;
    }
    pthread_mutex_lock(&d->entries);
    if (atomic_load(&d->made_at[segment]) > atomic_load(&d->made_durable)) {
        uint32_t made = atomic_load(&d->made);
        error = ckb_os_fsync_directory(d->file);
        if (error == 0) {
            atomic_store(&d->made_durable, made);
        }
    }
    pthread_mutex_unlock(&d->entries);
    if (error != 0) {
        atomic_fetch_or(&d->flags[segment], (uint8_t)SEGMENT_FAILED);
        note(d, CKB_OS_ERROR, "sync of the directory for", segment, 0, ckb_os_error_text(error));
    }
    return error;
}

static int directory_sync(void *context, uint32_t segment)
{
    directory *d = context;
    slot *s;
    if (segment >= d->segment_count) {
        return CKB_INVALID;
    }
    if (d->read_only) {
        return CKB_READONLY;
    }
    int error = slot_pin(d, segment, false, &s);
    if (error != 0) {
        note(d, CKB_OS_ERROR, "sync", segment, 0, ckb_os_error_text(error));
        return CKB_IO;
    }
    error = segment_flush(d, segment, s->file);
    slot_unpin(d, s);
    if (error == 0) {
        error = entry_flush(d, segment);
    }
    /* Looked at last: the flush before a descriptor was closed may have failed long ago. */
    bool failed = (atomic_load(&d->flags[segment]) & SEGMENT_FAILED) != 0;
    return error == 0 && !failed ? CKB_OK : CKB_IO;
}

/* ---- opening ---- */

/* Opens the directory; makes it when asked to and it is not there. */
static int directory_enter(ckb_target *target, bool make, int *file)
{
    ckb_os_shown shown;
    struct stat facts;
    const char *name = ckb_os_show(target->path, &shown);
    int error = stat(target->path, &facts) == 0 ? 0 : errno;
    if (error == ENOENT && make) {
        error = mkdir(target->path, 0700) == 0 ? 0 : errno;
        target->created = error == 0;
    } else if (error == 0 && !S_ISDIR(facts.st_mode)) {
        const char *hint = S_ISREG(facts.st_mode)   ? "is a file; an image is given as file:PATH"
                           : S_ISBLK(facts.st_mode) ? "is a block device; it is given as /dev/NAME"
                                                    : "is not a directory";
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %s", name, hint);
        return CKB_INVALID;
    }
    if (error == 0) {
        error = ckb_os_open(AT_FDCWD, target->path, O_RDONLY | O_DIRECTORY, 0, file);
        if (error == EACCES && target->created) {
            ckb_os_text(target->error, CKB_ERROR_BYTES,
                        "%s: the umask takes the owner's own access to new directories", name);
            return CKB_READONLY;
        }
    }
    if (error != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %s", name, ckb_os_error_text(error));
    }
    return ckb_os_status(error);
}

/* One attempt to lock. EAGAIN: the file was replaced meanwhile, try again. */
static int lock_try(int directory_file, bool read_only, int *file, bool *made)
{
    struct stat ours, there;
    int flags = O_NOFOLLOW | O_NONBLOCK;
    int error = ckb_os_open(directory_file, CKB_OS_LOCK_NAME, flags | (read_only ? O_RDONLY : O_RDWR), 0, file);
    if (error == ENOENT && !read_only) {
        error = ckb_os_make(directory_file, CKB_OS_LOCK_NAME, file);
        *made = error == 0;
        if (error == EEXIST) {
            return EAGAIN;
        }
    }
    if (error != 0) {
        return error;
    }
    if (fstat(*file, &ours) != 0 || !S_ISREG(ours.st_mode)) {
        error = EINVAL;
    } else if ((error = ckb_os_lock(*file, read_only)) != 0) {
        error = error == EWOULDBLOCK ? EBUSY : error; /* EAGAIN is for a file that was replaced */
    } else if (fstatat(directory_file, CKB_OS_LOCK_NAME, &there, AT_SYMLINK_NOFOLLOW) != 0 ||
               there.st_ino != ours.st_ino || there.st_dev != ours.st_dev) {
        error = EAGAIN; /* its owner removed it with the directory's content */
    }
    if (error != 0) {
        close(*file);
    }
    return error;
}

static int directory_lock(ckb_target *target, int directory_file, int *lock_file, bool *made)
{
    ckb_os_shown shown;
    const char *name = ckb_os_show(target->path, &shown);
    int error = EAGAIN;
    *lock_file = -1;
    *made = false;
    for (uint32_t attempt = 0; attempt < LOCK_ATTEMPTS && error == EAGAIN; attempt++) {
        error = lock_try(directory_file, target->read_only, lock_file, made);
    }
    if (error == 0) {
        return CKB_OK;
    }
    *lock_file = -1;
    if (target->read_only && (error == ENOENT || error == EACCES)) {
        ckb_os_warn(&target->warnings, "%s: opened without a lock, there is none that can be read", name);
        return CKB_OK;
    }
    if (error == EBUSY || error == EAGAIN) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: in use: %s is locked by another opener", name,
                    CKB_OS_LOCK_NAME);
        return CKB_BUSY;
    }
    ckb_os_text(target->error, CKB_ERROR_BYTES, "%s/%s: %s", name, CKB_OS_LOCK_NAME, ckb_os_error_text(error));
    return ckb_os_status(error);
}

/* What ckb_probe says about the file of a segment. */
static int directory_probe(ckb_target *target, int directory_file, uint32_t segment, int *status,
                           ckb_probe_info *info)
{
    unsigned char bytes[CKB_PROBE_BYTES];
    char name[CKB_OS_NAME_BYTES];
    ckb_os_shown shown;
    int file = -1;
    size_t got = 0;
    ckb_os_segment_name(segment, name);
    *status = CKB_NOTFOUND;
    int error = ckb_os_open(directory_file, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &file);
    if (error == ENOENT) {
        return CKB_OK;
    }
    if (error == 0) {
        error = ckb_os_read(file, bytes, sizeof bytes, 0, &got);
        close(file);
    }
    if (error != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s/%s: %s", ckb_os_show(target->path, &shown), name,
                    ckb_os_error_text(error));
        return error == EACCES ? CKB_READONLY : CKB_IO;
    }
    if (got == sizeof bytes) {
        *status = ckb_probe(bytes, info);
    }
    return CKB_OK;
}

/* What the directory holds besides the headers. */
typedef struct contents {
    uint32_t segments;
    uint32_t unfit; /* wrong size, wrong kind, or beyond the last segment */
    char unfit_name[CKB_OS_NAME_BYTES];
    uint64_t unfit_bytes;
    char closed_name[CKB_OS_NAME_BYTES]; /* one that this process may not open; "" when there is none */
} contents;

/* What a scan removes. */
typedef enum removal { REMOVE_NONE, REMOVE_UNFIT, REMOVE_ALL } removal;

/* Looks at all segment files, and whether they may be opened with `mode` (R_OK, W_OK). */
static int directory_scan(int directory_file, const ckb_geometry *geometry, int mode, removal remove,
                          contents *found)
{
    struct dirent *entry;
    int file = -1;
    memset(found, 0, sizeof *found);
    int error = ckb_os_open(directory_file, ".", O_RDONLY | O_DIRECTORY, 0, &file);
    if (error != 0) {
        return error;
    }
    DIR *list = fdopendir(file);
    if (list == NULL) {
        close(file);
        return ENOMEM;
    }
    while (errno = 0, error == 0 && (entry = readdir(list)) != NULL) {
        struct stat facts;
        uint32_t segment;
        if (!ckb_os_segment_number(entry->d_name, &segment) ||
            fstatat(directory_file, entry->d_name, &facts, AT_SYMLINK_NOFOLLOW) != 0) {
            continue; /* not ours */
        }
        found->segments++;
        if (faccessat(directory_file, entry->d_name, mode, AT_EACCESS) != 0 && errno == EACCES) {
            ckb_os_text(found->closed_name, sizeof found->closed_name, "%.31s", entry->d_name);
        }
        bool fits = S_ISREG(facts.st_mode) && (uint64_t)facts.st_size == geometry->segment_bytes &&
                    segment < geometry->segment_count;
        if (!fits) {
            found->unfit++;
            ckb_os_text(found->unfit_name, sizeof found->unfit_name, "%.31s", entry->d_name);
            found->unfit_bytes = (uint64_t)facts.st_size;
        }
        bool goes = remove == REMOVE_ALL || (remove == REMOVE_UNFIT && !fits);
        if (goes && unlinkat(directory_file, entry->d_name, 0) != 0) {
            error = errno;
        }
    }
    error = error != 0 ? error : errno;
    closedir(list);
    return error;
}

/* Geometry and warnings of a directory that holds a volume. */
static int free_space(ckb_target *target, uint64_t *free_bytes)
{
    ckb_os_shown shown;
    int status = ckb_host_free_bytes(target->path, free_bytes);
    if (status != CKB_OK) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: the free space cannot be found out%s",
                    ckb_os_show(target->path, &shown), status == CKB_NOTFOUND ? ": it is not there" : "");
    }
    return status;
}

/* A raised limit must be given, and fit what is free: segments take their space when they are used first. */
static int grow_check(ckb_target *target, const ckb_target_options *options)
{
    uint64_t free_bytes = 0, before_bytes = target->probe.segment_bytes * target->probe.segment_count;
    ckb_os_shown shown;
    if (options->size_bytes == 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: a directory grows to a size that must be given",
                    ckb_os_show(target->path, &shown));
        return CKB_INVALID;
    }
    int status = free_space(target, &free_bytes);
    if (status == CKB_OK && target->capacity_bytes - before_bytes > free_bytes) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: growing by %llu bytes, and %llu are free",
                    ckb_os_show(target->path, &shown),
                    (unsigned long long)(target->capacity_bytes - before_bytes),
                    (unsigned long long)free_bytes);
        status = CKB_NOSPACE;
    }
    return status;
}

static int existing_prepare(ckb_target *target, const ckb_target_options *options, int directory_file)
{
    contents found;
    ckb_os_shown shown;
    const char *name = ckb_os_show(target->path, &shown);
    int status = ckb_os_geometry_existing(target, options);
    if (status == CKB_OK && options->grow) {
        status = grow_check(target, options);
    }
    if (status != CKB_OK) {
        return status;
    }
    const ckb_geometry *geometry = &target->medium.geometry;
    int error =
        directory_scan(directory_file, geometry, target->read_only ? R_OK : R_OK | W_OK, REMOVE_NONE, &found);
    if (error != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %s", name, ckb_os_error_text(error));
        return CKB_IO;
    }
    if (found.closed_name[0] != '\0') {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s/%s: %s", name, found.closed_name,
                    ckb_os_error_text(EACCES));
        return CKB_READONLY;
    }
    if (found.unfit != 0) {
        ckb_os_warn(&target->warnings,
                    "%s: %lu segment files do not fit the volume, for example %s: %llu bytes, "
                    "expected a file of %llu bytes below segment %lu",
                    name, (unsigned long)found.unfit, found.unfit_name, (unsigned long long)found.unfit_bytes,
                    (unsigned long long)geometry->segment_bytes, (unsigned long)geometry->segment_count);
    }
    /* Entries that a killed process made may not be durable yet, and nobody else would see to it. */
    error = target->read_only ? 0 : ckb_os_fsync_directory(directory_file);
    if (error != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: sync of the directory: %s", name,
                    ckb_os_error_text(error));
        return CKB_IO;
    }
    return CKB_OK;
}

/* Somebody else may want the last tenth. */
static uint64_t directory_size(uint64_t size_bytes, uint64_t free_bytes)
{
    return size_bytes != 0 ? size_bytes : free_bytes / 10 * 9;
}

int ckb_os_directory_room(ckb_target *target, uint64_t size_bytes, uint64_t *capacity_bytes,
                          uint32_t *write_unit)
{
    uint64_t free_bytes = 0;
    int status = free_space(target, &free_bytes);
    *capacity_bytes = directory_size(size_bytes, free_bytes);
    *write_unit = WRITE_UNIT;
    return status;
}

/* Geometry of a directory that gets a new volume, and the end of what does not fit it. */
static int new_prepare(ckb_target *target, const ckb_target_options *options, int directory_file)
{
    contents found;
    ckb_os_shown shown;
    uint64_t free_bytes = 0;
    const char *name = ckb_os_show(target->path, &shown);
    int status = free_space(target, &free_bytes);
    if (status == CKB_OK) {
        status = ckb_os_geometry(target, options->segment_bytes,
                                 directory_size(options->size_bytes, free_bytes), WRITE_UNIT);
    }
    if (status != CKB_OK) {
        return status;
    }
    if (target->capacity_bytes > free_bytes) {
        ckb_os_warn(&target->warnings, "%s: %llu bytes are free, fewer than the %llu of the volume", name,
                    (unsigned long long)free_bytes, (unsigned long long)target->capacity_bytes);
    }
    const ckb_geometry *geometry = &target->medium.geometry;
    bool may_remove = options->destroy || target->scratch;
    removal remove = !may_remove ? REMOVE_NONE : options->renew ? REMOVE_ALL : REMOVE_UNFIT;
    int error = directory_scan(directory_file, geometry, F_OK, remove, &found);
    if (error != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %s", name, ckb_os_error_text(error));
        return ckb_os_status(error);
    }
    if (found.segments != 0 && !may_remove) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: holds %lu segment files but no volume; they are only "
                    "overwritten when told to destroy them",
                    name, (unsigned long)found.segments);
        return CKB_EXISTS;
    }
    error = ckb_os_fsync_directory(directory_file);
    if (error == 0 && target->created) { /* the entry in the parent must be durable as well */
        int parent = -1;
        error = ckb_os_open(directory_file, "..", O_RDONLY | O_DIRECTORY, 0, &parent);
        if (error == 0) {
            error = ckb_os_fsync_directory(parent);
            close(parent);
        } else if (error == EACCES) {
            error = 0; /* a parent that may be searched but not read: nobody can do more */
        }
    }
    if (error != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: sync of the directory: %s", name,
                    ckb_os_error_text(error));
        return CKB_IO;
    }
    return CKB_OK;
}

static int directory_prepare(ckb_target *target, const ckb_target_options *options, int directory_file)
{
    int found[2];
    ckb_probe_info info[2];
    ckb_os_shown shown;
    memset(info, 0, sizeof info);
    for (uint32_t segment = 0; segment < 2; segment++) {
        int status = directory_probe(target, directory_file, segment, &found[segment], &info[segment]);
        if (status != CKB_OK) {
            return status;
        }
    }
    int status = ckb_os_probe(target, options, found, info);
    if (status == CKB_OK) {
        status = options->create ? new_prepare(target, options, directory_file)
                                 : existing_prepare(target, options, directory_file);
    }
    uint64_t limit = ckb_os_file_limit();
    if (status == CKB_OK && !target->read_only && target->medium.geometry.segment_bytes > limit) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: segments of %llu bytes are above this process's file size "
                    "limit of %llu",
                    ckb_os_show(target->path, &shown),
                    (unsigned long long)target->medium.geometry.segment_bytes, (unsigned long long)limit);
        return CKB_NOSPACE;
    }
    return status;
}

/* ---- state ---- */

/* A quarter of what the process may have; the rest is the host program's. */
static uint32_t slots_wanted(void)
{
    struct rlimit limit;
    uint64_t quarter = SLOTS_MAX;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
        quarter = limit.rlim_cur / 4;
    }
    return quarter < SLOTS_MIN ? SLOTS_MIN : quarter > SLOTS_MAX ? SLOTS_MAX : (uint32_t)quarter;
}

static void directory_free(directory *d)
{
    free(d->slots);
    free((void *)d->slot_of);
    free((void *)d->flags);
    free((void *)d->made_at);
    free(d);
}

static int directory_close(void *state)
{
    directory *d = state;
    int status = CKB_OK;
    for (uint32_t at = 0; at < d->slot_count; at++) {
        if (atomic_load(&d->slots[at].word) != 0 && close(d->slots[at].file) != 0 && errno != EINTR) {
            status = CKB_IO;
        }
    }
    close(d->file);
    if (d->lock_file >= 0) {
        close(d->lock_file); /* and with it the lock */
    }
    pthread_mutex_destroy(&d->mutex);
    pthread_mutex_destroy(&d->entries);
    pthread_cond_destroy(&d->changed);
    directory_free(d);
    return status;
}

static directory *directory_allocate(const ckb_target *target)
{
    uint32_t count = target->medium.geometry.segment_count;
    directory *d = calloc(1, sizeof *d);
    if (d == NULL) {
        return NULL;
    }
    d->slot_count = slots_wanted();
    d->slots = aligned_alloc(64, d->slot_count * sizeof *d->slots);
    d->slot_of = malloc(count);
    d->flags = calloc(count, sizeof *d->flags);
    d->made_at = calloc(count, sizeof *d->made_at);
    if (d->slots == NULL || d->slot_of == NULL || d->flags == NULL || d->made_at == NULL) {
        directory_free(d);
        return NULL;
    }
    memset(d->slots, 0, d->slot_count * sizeof *d->slots);
    memset((void *)d->slot_of, NO_SLOT, count);
    return d;
}

static int directory_start(ckb_target *target, const ckb_target_options *options, int directory_file,
                           int lock_file)
{
    directory *d = directory_allocate(target);
    if (d == NULL) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "out of memory for %lu segments",
                    (unsigned long)target->medium.geometry.segment_count);
        return CKB_NOSPACE;
    }
    d->base.close = directory_close;
    d->file = directory_file;
    d->lock_file = lock_file;
    d->read_only = target->read_only;
    d->prepare = options->prepare;
    d->warnings = &target->warnings;
    d->segment_bytes = target->medium.geometry.segment_bytes;
    d->segment_count = target->medium.geometry.segment_count;
    memcpy(d->path, target->path, sizeof d->path);
    pthread_mutex_init(&d->base.failure.mutex, NULL);
    pthread_mutex_init(&d->mutex, NULL);
    pthread_mutex_init(&d->entries, NULL);
    pthread_cond_init(&d->changed, NULL);
    target->state = d;
    target->sync_kind = ckb_os_sync_kind(directory_file);
    target->medium.context = d;
    target->medium.geometry.read_unit = 1;
    target->medium.geometry.buffer_align = 1;
    target->medium.geometry.capabilities = CKB_CAP_ANY_ORDER;
    target->medium.read = directory_read;
    target->medium.write = directory_write;
    target->medium.erase = directory_erase;
    target->medium.sync = directory_sync;
    return CKB_OK;
}

int ckb_os_directory_open(ckb_target *target, const ckb_target_options *options)
{
    int directory_file = -1, lock_file = -1;
    bool lock_made = false;
    int status = directory_enter(target, options->create, &directory_file);
    if (status == CKB_OK && !options->beside_writer) {
        status = directory_lock(target, directory_file, &lock_file, &lock_made);
    }
    if (status == CKB_OK) {
        status = directory_prepare(target, options, directory_file);
    }
    if (status == CKB_OK) {
        status = directory_start(target, options, directory_file, lock_file);
    }
    if (status == CKB_OK) {
        return CKB_OK;
    }
    if (lock_made) {
        (void)unlinkat(directory_file, CKB_OS_LOCK_NAME, 0);
    }
    if (lock_file >= 0) {
        close(lock_file);
    }
    if (directory_file >= 0) {
        close(directory_file);
    }
    if (target->created) {
        (void)rmdir(target->path);
        target->created = false;
    }
    return status;
}
