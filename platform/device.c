/* A block device or an image file as a medium: one descriptor, segments one behind the other.
 *
 * Both bypass the page cache where they can: what is measured is the device, and written data does not
 * push the host program's pages out of memory. O_DIRECT wants memory, offset and length aligned to the
 * sector; the medium announces that, and where a caller's buffer or a read does not fit, a bounce buffer
 * from a small pool stands in.
 *
 * The volume is probed through the page cache, before O_DIRECT is switched on, since headers and foreign
 * signatures lie anywhere. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os.h"

#ifndef BLKPBSZGET /* not in every libc's headers */
#define BLKPBSZGET _IO(0x12, 123)
#endif

#define IMAGE_UNIT 4096u /* whatever the file lies on, this is a multiple of its sector */
#define BOUNCE_COUNT 4u
#define BOUNCE_BYTES 262144u
#define BOUNCE_ALIGN 4096u
#define LOCK_ATTEMPTS 20u /* udev looks at a device for a moment when it appears or changes */
#define LOCK_PAUSE_NS 50000000u

typedef struct device {
    ckb_os_state base;
    int file;
    bool direct, read_only;
    atomic_bool failed; /* a sync failed: no later one may succeed */
    uint32_t sector_bytes;
    uint64_t segment_bytes;
    uint32_t segment_count;
    unsigned char *bounce; /* BOUNCE_COUNT buffers, with direct */
    bool bounce_used[BOUNCE_COUNT];
    pthread_mutex_t mutex;
    pthread_cond_t returned;
    char path[CKB_PATH_BYTES];
} device;

/* ---- bounce buffers ---- */

static unsigned char *bounce_take(device *d)
{
    unsigned char *buffer = NULL;
    pthread_mutex_lock(&d->mutex);
    while (buffer == NULL) {
        for (uint32_t at = 0; at < BOUNCE_COUNT && buffer == NULL; at++) {
            if (!d->bounce_used[at]) {
                d->bounce_used[at] = true;
                buffer = d->bounce + (size_t)at * BOUNCE_BYTES;
            }
        }
        if (buffer == NULL) {
            pthread_cond_wait(&d->returned, &d->mutex);
        }
    }
    pthread_mutex_unlock(&d->mutex);
    return buffer;
}

static void bounce_give(device *d, const unsigned char *buffer)
{
    pthread_mutex_lock(&d->mutex);
    d->bounce_used[(size_t)(buffer - d->bounce) / BOUNCE_BYTES] = false;
    pthread_cond_signal(&d->returned);
    pthread_mutex_unlock(&d->mutex);
}

static bool aligned(const device *d, const void *buffer, uint64_t offset, size_t length)
{
    return (((uintptr_t)buffer | offset | length) & (d->sector_bytes - 1)) == 0;
}

static int bounce_read(device *d, void *buffer, size_t length, uint64_t offset, size_t *got)
{
    unsigned char *bounce = bounce_take(d);
    int error = 0;
    *got = 0;
    while (*got < length && error == 0) {
        uint64_t from = offset + *got;
        size_t skip = (size_t)(from & (d->sector_bytes - 1));
        size_t want = length - *got < BOUNCE_BYTES - skip ? length - *got : BOUNCE_BYTES - skip;
        size_t whole = (skip + want + d->sector_bytes - 1) & ~(size_t)(d->sector_bytes - 1);
        size_t count = 0;
        error = ckb_os_read(d->file, bounce, whole, from - skip, &count);
        count = count > skip ? count - skip : 0;
        count = count < want ? count : want;
        memcpy((unsigned char *)buffer + *got, bounce + skip, count);
        *got += count;
        if (count < want) {
            break; /* the end of a file that was cut short */
        }
    }
    bounce_give(d, bounce);
    return error;
}

static int bounce_write(device *d, const void *buffer, size_t length, uint64_t offset)
{
    unsigned char *bounce = bounce_take(d);
    int error = 0;
    for (size_t done = 0; done < length && error == 0;) {
        size_t count = length - done < BOUNCE_BYTES ? length - done : BOUNCE_BYTES;
        memcpy(bounce, (const unsigned char *)buffer + done, count);
        error = ckb_os_write(d->file, bounce, count, offset + done);
        done += count;
    }
    bounce_give(d, bounce);
    return error;
}

/* ---- the medium ---- */

static void note(device *d, ckb_os_weight weight, const char *operation, uint32_t segment, uint64_t offset,
                 const char *why)
{
    ckb_os_shown shown;
    ckb_os_failure_note(&d->base.failure, weight, "%s %s segment %lu offset %llu: %s", operation,
                        ckb_os_show(d->path, &shown), (unsigned long)segment, (unsigned long long)offset, why);
}

static bool holds(const device *d, uint32_t segment, uint64_t offset, size_t length)
{
    return segment < d->segment_count && length <= d->segment_bytes && offset <= d->segment_bytes - length;
}

static int device_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    device *d = context;
    size_t got = 0;
    if (!holds(d, segment, offset, length)) {
        return CKB_INVALID;
    }
    uint64_t at = segment * d->segment_bytes + offset;
    int error = d->direct && !aligned(d, buffer, at, length) ? bounce_read(d, buffer, length, at, &got)
                                                             : ckb_os_read(d->file, buffer, length, at, &got);
    if (error != 0) {
        note(d, CKB_OS_ERROR, "read", segment, offset, ckb_os_error_text(error));
        return CKB_IO;
    }
    if (got < length) {
        char why[96];
        ckb_os_text(why, sizeof why, "it ends after %llu bytes", (unsigned long long)(at + got));
        note(d, CKB_OS_SHORT, "read", segment, offset, why);
        return CKB_CORRUPT;
    }
    return CKB_OK;
}

static int device_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    device *d = context;
    if (!holds(d, segment, offset, length)) {
        return CKB_INVALID;
    }
    if (d->read_only) {
        return CKB_READONLY;
    }
    uint64_t at = segment * d->segment_bytes + offset;
    if (d->direct && ((at | length) & (d->sector_bytes - 1)) != 0) {
        return CKB_INVALID; /* the write unit is a multiple of the sector */
    }
    int error = d->direct && !aligned(d, buffer, at, length) ? bounce_write(d, buffer, length, at)
                                                             : ckb_os_write(d->file, buffer, length, at);
    if (error == 0) {
        return CKB_OK;
    }
    bool full = ckb_os_status(error) == CKB_NOSPACE && error != ENOMEM;
    note(d, full ? CKB_OS_NO_SPACE : CKB_OS_ERROR, "write", segment, offset, ckb_os_error_text(error));
    return full ? CKB_NOSPACE : CKB_IO;
}

/* Nothing to do: the space is there, and stale content is allowed. */
static int device_erase(void *context, uint32_t segment)
{
    const device *d = context;
    if (segment >= d->segment_count) {
        return CKB_INVALID;
    }
    return d->read_only ? CKB_READONLY : CKB_OK;
}

/* One descriptor, so one sync for all. For a block device fdatasync also flushes the drive's cache. */
static int device_sync(void *context, uint32_t segment)
{
    device *d = context;
    if (segment >= d->segment_count) {
        return CKB_INVALID;
    }
    if (d->read_only) {
        return CKB_READONLY;
    }
    int error = ckb_os_fdatasync(d->file);
    if (error != 0) {
        /* The system reports a lost write once; the next sync would succeed and mean nothing. */
        atomic_store(&d->failed, true);
        note(d, CKB_OS_ERROR, "sync", segment, 0, ckb_os_error_text(error));
    }
    return atomic_load(&d->failed) ? CKB_IO : CKB_OK;
}

/* ---- opening ---- */

/* What is learned while opening. */
typedef struct opening {
    int file;
    bool block; /* a block device */
    dev_t device;
    ino_t inode;
    uint64_t size_bytes;
    uint32_t physical_bytes;
} opening;

#define NO_SIZE "there is no such image; a new one needs a size: file:PATH:SIZE"

static int refuse(ckb_target *target, int status, const char *what)
{
    ckb_os_shown shown;
    ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %s", ckb_os_show(target->path, &shown), what);
    return status;
}

static int refuse_error(ckb_target *target, int error)
{
    return refuse(target, ckb_os_status(error), ckb_os_error_text(error));
}

/* Refuses what is no block device or no file; opening some devices is an act of its own, so look first. */
static int kind_check(ckb_target *target, mode_t mode)
{
    bool device_wanted = target->kind == CKB_TARGET_DEVICE;
    if (device_wanted ? S_ISBLK(mode) : S_ISREG(mode)) {
        return CKB_OK;
    }
    const char *what = S_ISDIR(mode)    ? "is a directory"
                       : S_ISFIFO(mode) ? "is a FIFO"
                       : S_ISSOCK(mode) ? "is a socket"
                       : S_ISCHR(mode)  ? "is a character device"
                       : S_ISBLK(mode)  ? "is a block device; it is given as /dev/NAME"
                                        : "is a file";
    char text[128];
    ckb_os_text(text, sizeof text, "%s, expected %s", what, device_wanted ? "a block device" : "an image file");
    return refuse(target, CKB_INVALID, text);
}

/* Opens the path, making an image when asked to. */
static int device_enter(ckb_target *target, const ckb_target_options *options, opening *o)
{
    struct stat facts;
    int flags = (target->read_only ? O_RDONLY : O_RDWR) | O_NONBLOCK | O_NOCTTY;
    int error = stat(target->path, &facts) == 0 ? 0 : errno;
    if (error == ENOENT && options->create && target->kind == CKB_TARGET_IMAGE) {
        if (options->size_bytes == 0) {
            return refuse(target, CKB_INVALID, NO_SIZE);
        }
        error = ckb_os_make(AT_FDCWD, target->path, &o->file);
        target->created = error == 0;
    } else if (error == 0) {
        int status = kind_check(target, facts.st_mode);
        if (status == CKB_OK && S_ISBLK(facts.st_mode)) {
            status = ckb_os_device_in_use(target, facts.st_rdev);
        }
        if (status != CKB_OK) {
            return status;
        }
        if (S_ISBLK(facts.st_mode) && !options->beside_writer) {
            flags |= O_EXCL;
        }
        error = ckb_os_open(AT_FDCWD, target->path, flags, 0, &o->file);
    }
    if (error == EBUSY) {
        return refuse(target, CKB_BUSY, "in use: mounted, part of another device, or open elsewhere");
    }
    if (error != 0) {
        return refuse_error(target, error);
    }
    if (fstat(o->file, &facts) != 0) {
        return refuse_error(target, errno);
    }
    o->block = S_ISBLK(facts.st_mode);
    o->device = o->block ? facts.st_rdev : facts.st_dev;
    o->inode = facts.st_ino;
    o->size_bytes = (uint64_t)facts.st_size;
    return kind_check(target, facts.st_mode); /* it may have been replaced between the two looks */
}

static int device_lock(ckb_target *target, const opening *o)
{
    int error = ckb_os_lock(o->file, target->read_only);
    for (uint32_t attempt = 0; o->block && error == EWOULDBLOCK && attempt < LOCK_ATTEMPTS; attempt++) {
        ckb_host_sleep_ns(LOCK_PAUSE_NS);
        error = ckb_os_lock(o->file, target->read_only);
    }
    if (error == EWOULDBLOCK) {
        return refuse(target, CKB_BUSY, "in use: locked by another opener");
    }
    return error == 0 ? CKB_OK : refuse_error(target, error);
}

static int device_measure(ckb_target *target, opening *o)
{
    target->sector_bytes = IMAGE_UNIT;
    o->physical_bytes = IMAGE_UNIT;
    if (o->block) {
        int logical = 0;
        unsigned int physical = 0;
        off_t end = lseek(o->file, 0, SEEK_END);
        if (end < 0 || ioctl(o->file, BLKSSZGET, &logical) != 0) {
            return refuse_error(target, errno);
        }
        o->size_bytes = (uint64_t)end;
        if (logical < 512 || logical > 65536 || (logical & (logical - 1)) != 0) {
            return refuse(target, CKB_INVALID, "its logical sector is not from 512 to 65536 bytes");
        }
        target->sector_bytes = (uint32_t)logical;
        o->physical_bytes = ioctl(o->file, BLKPBSZGET, &physical) == 0 ? physical : 0;
    }
    return CKB_OK;
}

static int device_holds(ckb_target *target, const opening *o, uint64_t wanted_bytes)
{
    char text[128];
    if (wanted_bytes <= o->size_bytes) {
        return CKB_OK;
    }
    ckb_os_text(text, sizeof text, "has %llu bytes, expected at least %llu", (unsigned long long)o->size_bytes,
                (unsigned long long)wanted_bytes);
    return refuse(target, CKB_INVALID, text);
}

/* The unit a new volume is written in. A drive that says 512 and has 4096 inside reads, changes and writes
 * back the larger sector for each smaller write: slow, and on a cheap one a power cut takes the neighbours
 * along. Larger physical sectors are flash pages, which drives hide well; padding to them costs more. */
static uint32_t device_unit(const ckb_target *target, const opening *o)
{
    uint32_t unit = target->sector_bytes;
    return o->physical_bytes >= 4096 && unit < 4096 ? 4096 : unit;
}

int ckb_os_device_room(ckb_target *target, uint64_t size_bytes, uint64_t *capacity_bytes, uint32_t *write_unit)
{
    opening o = {.file = -1};
    struct stat facts;
    int error = stat(target->path, &facts) == 0 ? 0 : errno;
    *capacity_bytes = size_bytes;
    *write_unit = IMAGE_UNIT;
    if (error == ENOENT && target->kind == CKB_TARGET_IMAGE) {
        return size_bytes != 0 ? CKB_OK : refuse(target, CKB_INVALID, NO_SIZE);
    }
    if (error != 0) {
        return refuse_error(target, error);
    }
    int status = kind_check(target, facts.st_mode);
    if (status == CKB_OK) {
        error = ckb_os_open(AT_FDCWD, target->path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &o.file);
        status = error == 0 ? CKB_OK : refuse_error(target, error);
    }
    if (status == CKB_OK) {
        o.block = S_ISBLK(facts.st_mode);
        o.size_bytes = (uint64_t)facts.st_size;
        status = device_measure(target, &o);
        close(o.file);
    }
    if (status == CKB_OK) {
        *capacity_bytes = size_bytes != 0 ? size_bytes : o.size_bytes;
        *write_unit = o.block ? device_unit(target, &o) : IMAGE_UNIT;
        status = o.block ? device_holds(target, &o, size_bytes) : CKB_OK;
    }
    return status;
}

/* ---- probing ---- */

static int probe_at(const opening *o, uint64_t offset, int *found, ckb_probe_info *info)
{
    unsigned char bytes[CKB_PROBE_BYTES];
    size_t got = 0;
    int error = ckb_os_read(o->file, bytes, sizeof bytes, offset, &got);
    *found = error == 0 && got == sizeof bytes ? ckb_probe(bytes, info) : CKB_NOTFOUND;
    return error;
}

/* Without the header of segment 0 the place of segment 1 is one of the powers of two. */
static int probe_search(const opening *o, int *found, ckb_probe_info *info)
{
    *found = CKB_NOTFOUND;
    for (uint64_t offset = 4096; offset <= (uint64_t)1 << 32 && offset < o->size_bytes; offset *= 2) {
        int error = probe_at(o, offset, found, info);
        if (error != 0 || (*found == CKB_OK && info->segment == 1 && info->segment_bytes == offset)) {
            return error;
        }
    }
    *found = CKB_NOTFOUND;
    return 0;
}

static int device_probe(ckb_target *target, const ckb_target_options *options, const opening *o)
{
    int found[2] = {CKB_NOTFOUND, CKB_NOTFOUND};
    ckb_probe_info info[2];
    memset(info, 0, sizeof info);
    int error = probe_at(o, 0, &found[0], &info[0]);
    if (error == 0) {
        error = found[0] == CKB_OK ? probe_at(o, info[0].segment_bytes, &found[1], &info[1])
                                   : probe_search(o, &found[1], &info[1]);
    }
    return error == 0 ? ckb_os_probe(target, options, found, info) : refuse_error(target, error);
}

/* ---- preparing ---- */

/* Makes an image as large as asked for, and durable. */
static int image_extend(ckb_target *target, opening *o, uint64_t bytes)
{
    bool reserved = true;
    if (bytes > ckb_os_file_limit()) {
        return refuse(target, CKB_NOSPACE, "the size is above this process's file size limit");
    }
    int error = ckb_os_reserve(o->file, bytes, &reserved);
    if (error == 0) {
        error = ckb_os_fdatasync(o->file);
    }
    if (error != 0) {
        return refuse_error(target, error);
    }
    if (!reserved) {
        ckb_os_warn(&target->warnings, "this file system cannot reserve space: a write may find it full");
    }
    o->size_bytes = bytes;
    return CKB_OK;
}

/* Makes the directory entry of a new image durable. */
static int image_entry_sync(ckb_target *target)
{
    char parent[CKB_PATH_BYTES];
    int directory = -1;
    memcpy(parent, target->path, sizeof parent);
    char *slash = strrchr(parent, '/');
    if (slash == NULL) {
        memcpy(parent, ".", 2);
    } else {
        slash[slash == parent] = '\0';
    }
    int error = ckb_os_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0, &directory);
    if (error == 0) {
        error = ckb_os_fsync_directory(directory);
        close(directory);
    } else if (error == EACCES) {
        error = 0; /* a directory that may be searched but not read: nobody can do more */
    }
    return error == 0 ? CKB_OK : refuse_error(target, error);
}

static int new_prepare(ckb_target *target, const ckb_target_options *options, opening *o)
{
    uint64_t wanted = options->size_bytes;
    int status = CKB_OK;
    if (!options->destroy && !target->existing) {
        status = ckb_os_foreign(target, o->file, o->size_bytes, o->block ? o->device : 0);
    }
    if (status == CKB_OK && o->block) {
        status = device_holds(target, o, wanted);
    }
    if (status == CKB_OK) { /* before anything is made: the geometry may be impossible */
        status = ckb_os_geometry(target, options->segment_bytes, wanted != 0 ? wanted : o->size_bytes,
                                 o->block ? device_unit(target, o) : IMAGE_UNIT);
    }
    if (status == CKB_OK && !o->block && wanted > o->size_bytes) {
        status = image_extend(target, o, wanted);
    }
    if (status == CKB_OK && target->created) {
        status = image_entry_sync(target);
    }
    return status;
}

/* Makes an image as large as it is to become; a device already is. */
static int grow_prepare(ckb_target *target, ckb_target_options *wanted, opening *o)
{
    if (wanted->size_bytes == 0) {
        wanted->size_bytes = o->size_bytes;
    }
    if (o->block) {
        return device_holds(target, o, wanted->size_bytes);
    }
    uint64_t whole = wanted->size_bytes - wanted->size_bytes % target->probe.segment_bytes;
    bool larger = whole > o->size_bytes && whole / target->probe.segment_bytes > target->probe.segment_count;
    return larger ? image_extend(target, o, whole) : CKB_OK;
}

static int existing_prepare(ckb_target *target, const ckb_target_options *options, opening *o)
{
    char text[192];
    ckb_target_options wanted = *options;
    int status = options->grow && target->probe.segment_bytes != 0 ? grow_prepare(target, &wanted, o) : CKB_OK;
    if (status != CKB_OK) {
        return status;
    }
    status = ckb_os_geometry_existing(target, &wanted);
    if (status != CKB_OK) {
        return status;
    }
    if (o->size_bytes < target->capacity_bytes) {
        ckb_os_text(text, sizeof text, "cut short: it has %llu bytes, the volume in it %llu%s",
                    (unsigned long long)o->size_bytes, (unsigned long long)target->capacity_bytes,
                    target->read_only ? "" : "; opened read-only, what is left can be read");
        if (!target->read_only) {
            return refuse(target, CKB_CORRUPT, text);
        }
        ckb_os_warn(&target->warnings, "%s", text);
        return CKB_OK;
    }
    target->unused_bytes = o->size_bytes - target->capacity_bytes;
    if (!o->block && !target->read_only && target->capacity_bytes > ckb_os_file_limit()) {
        return refuse(target, CKB_NOSPACE, "the image is above this process's file size limit");
    }
    return CKB_OK;
}

/* Switches O_DIRECT on, where file system and volume allow it. */
static void direct_try(ckb_target *target, const ckb_target_options *options, const opening *o)
{
    int flags = fcntl(o->file, F_GETFL);
    if (options->buffered || flags < 0) {
        return;
    }
    if (target->medium.geometry.write_unit % target->sector_bytes != 0) {
        ckb_os_warn(&target->warnings,
                    "made for sectors of %lu bytes, this device has %lu: goes through the page cache",
                    (unsigned long)target->medium.geometry.write_unit, (unsigned long)target->sector_bytes);
    } else if (fcntl(o->file, F_SETFL, flags | O_DIRECT) != 0) {
        ckb_os_warn(&target->warnings, "no O_DIRECT here: goes through the page cache");
    } else {
        target->direct = true;
    }
}

/* ---- state ---- */

static int device_close(void *state)
{
    device *d = state;
    int status = close(d->file) == 0 || errno == EINTR ? CKB_OK : CKB_IO;
    pthread_mutex_destroy(&d->mutex);
    pthread_cond_destroy(&d->returned);
    free(d->bounce);
    free(d);
    return status;
}

static int device_start(ckb_target *target, const opening *o)
{
    device *d = calloc(1, sizeof *d);
    ckb_geometry *geometry = &target->medium.geometry;
    if (d != NULL && target->direct) {
        d->bounce = aligned_alloc(BOUNCE_ALIGN, (size_t)BOUNCE_COUNT * BOUNCE_BYTES);
    }
    if (d == NULL || (target->direct && d->bounce == NULL)) {
        free(d);
        return refuse_error(target, ENOMEM);
    }
    d->base.close = device_close;
    d->file = o->file;
    d->direct = target->direct;
    d->read_only = target->read_only;
    d->sector_bytes = target->sector_bytes;
    d->segment_bytes = geometry->segment_bytes;
    d->segment_count = geometry->segment_count;
    memcpy(d->path, target->path, sizeof d->path);
    pthread_mutex_init(&d->base.failure.mutex, NULL);
    pthread_mutex_init(&d->mutex, NULL);
    pthread_cond_init(&d->returned, NULL);
    target->state = d;
    target->sync_kind = ckb_os_sync_kind(o->file);
    target->medium.context = d;
    geometry->read_unit = d->direct ? d->sector_bytes : 1;
    geometry->buffer_align = d->direct ? d->sector_bytes : 1;
    geometry->capabilities = CKB_CAP_ANY_ORDER | CKB_CAP_SYNC_ALL;
    target->medium.read = device_read;
    target->medium.write = device_write;
    target->medium.erase = device_erase;
    target->medium.sync = device_sync;
    return CKB_OK;
}

/* Removes an image that this open made, if the name still stands for it. */
static void image_unmake(ckb_target *target, const opening *o)
{
    struct stat there;
    if (target->created && lstat(target->path, &there) == 0 && there.st_ino == o->inode &&
        there.st_dev == o->device) {
        (void)unlink(target->path);
    }
    target->created = false;
}

int ckb_os_device_open(ckb_target *target, const ckb_target_options *options)
{
    opening o = {.file = -1};
    int status = device_enter(target, options, &o);
    if (status == CKB_OK && !options->beside_writer) {
        status = device_lock(target, &o);
    }
    if (status == CKB_OK) {
        status = device_measure(target, &o);
    }
    if (status == CKB_OK) {
        status = device_probe(target, options, &o);
    }
    if (status == CKB_OK) {
        status = options->create ? new_prepare(target, options, &o) : existing_prepare(target, options, &o);
    }
    if (status == CKB_OK) {
        direct_try(target, options, &o);
        status = device_start(target, &o);
    }
    if (status != CKB_OK && o.file >= 0) {
        image_unmake(target, &o);
        close(o.file);
    }
    return status;
}
