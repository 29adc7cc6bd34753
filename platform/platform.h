/* What touches an operating system: targets (a directory, an image file, a block device, RAM), scratch
 * directories, facts about the host, clock and threads, and the parsers for what users type.
 *
 * The happy path:
 *
 *     ckb_target_options options = {.create = true};
 *     ckb_target target;
 *     if (ckb_target_open("file:/srv/image:1G", &options, &target)) { puts(target.error); ... }
 *     ckb_format(&target.medium, ...); ckb_mount(&target.medium, ...); ... ckb_unmount(...);
 *     ckb_target_close(&target);
 *
 * Nothing here looks at the locale, changes the umask or a signal's disposition. Processes that use it
 * should ignore SIGXFSZ, or a file size limit ends them instead of giving CKB_NOSPACE. */
#ifndef CKB_PLATFORM_H
#define CKB_PLATFORM_H

#include <pthread.h>

#include "chunkbench.h"
#include "ports.h"

#ifdef __cplusplus
extern "C" {
#endif

#define CKB_ERROR_BYTES 1024u /* room for one message; longer paths are shown shortened */
#define CKB_PATH_BYTES 4096u  /* longest path with its terminator, as the kernel has it */
#define CKB_WARNING_BYTES 320u
#define CKB_WARNING_COUNT 8u

/* Warnings for people. What does not fit is dropped, count stays within the array. */
typedef struct ckb_warnings {
    uint32_t count;
    char text[CKB_WARNING_COUNT][CKB_WARNING_BYTES];
} ckb_warnings;

/* ---------------------------------------------------------------------------------------------- >>target */

typedef enum ckb_target_kind {
    CKB_TARGET_NONE = 0,
    CKB_TARGET_RAM,       /* ram:SIZE */
    CKB_TARGET_DIRECTORY, /* any other path */
    CKB_TARGET_IMAGE,     /* file:PATH or file:PATH:SIZE */
    CKB_TARGET_DEVICE     /* /dev/NAME */
} ckb_target_kind;

/* What a directory does about a segment's space when it is erased for the first time. */
typedef enum ckb_prepare {
    CKB_PREPARE_STANDARD = 0, /* as CKB_PREPARE_RESERVE */
    CKB_PREPARE_NONE,         /* nothing: the file has its size and no blocks, a write may find no room */
    CKB_PREPARE_RESERVE,      /* reserves blocks that read as zeros until they are written */
    CKB_PREPARE_ZERO          /* writes zeros and syncs them, so that later syncs find no new blocks */
} ckb_prepare;

/* Everything zero: opens the volume that is there, for reading and writing. */
typedef struct ckb_target_options {
    uint64_t segment_bytes; /* with create; 0: ckb_default_segment_bytes. Without: 0, or what is expected */
    uint64_t size_bytes;    /* use no more than this; 0: the whole image or device, nine tenths of the
                               free space for a directory. Without create: 0, or what is expected.
                               A SIZE in the target string means the same */
    bool grow;              /* ckb_grow comes next: the medium has all of size_bytes, or of the image or device,
                               which is made larger when it is an image; not with create */
    bool create;            /* ckb_format comes next: make the directory or image if it is not there, and
                               refuse what must not be overwritten */
    bool destroy;           /* with create: overwrite whatever is there, except what is in use */
    bool read_only;         /* take no write access; works on read-only file systems. Not with create */
    bool buffered;          /* image and device: go through the page cache instead of O_DIRECT */
    bool beside_writer;     /* read-only, and takes no lock: neither waits for a writer nor keeps one away. What
                               is read may change meanwhile, and be newer than what would survive power loss */
    bool renew;             /* directory, with create: segment files that may be overwritten are made anew,
                               so that none has blocks that an earlier volume wrote */
    ckb_prepare prepare;    /* directory; others have no choice and refuse one */
} ckb_target_options;

typedef struct ckb_target {
    ckb_medium medium; /* valid while open */
    ckb_target_kind kind;
    bool existing; /* there is a volume; probe is what its header says */
    bool scratch;  /* with existing: a benchmark made it, see ckb_volume_id_make */
    bool created;  /* the directory or image was made by this open */
    bool read_only;
    bool direct;             /* O_DIRECT */
    const char *sync_kind;   /* "fdatasync", or "none (ram)": nothing survives power loss */
    uint32_t sector_bytes;   /* logical sector; 0 where there is none */
    uint64_t capacity_bytes; /* whole segments */
    uint64_t unused_bytes;   /* what is left over behind the last whole segment */
    ckb_probe_info probe;
    ckb_warnings warnings;
    char path[CKB_PATH_BYTES];   /* without prefix and size */
    char error[CKB_ERROR_BYTES]; /* one line: thing, place and both values; "" when there is none */
    void *state;
} ckb_target;

/* Opens a target. `options` may be null. On failure everything that this call made is removed again,
 * target->error says why, and there is nothing to close. The struct must stay in place until it is closed;
 * warnings may be added while it is open.
 * CKB_INVALID: the string, an option, a kind of file that cannot be a target, a size that is too small,
 * a geometry that differs from the one on the medium. CKB_NOTFOUND: the path, or no volume there.
 * CKB_EXISTS: with create, something is there that must not be overwritten. CKB_BUSY: open elsewhere,
 * in this process or another, or mounted. CKB_READONLY: no write access. CKB_NOSPACE: not enough room or
 * memory. CKB_CORRUPT: a volume was here, its headers do not verify, or it is cut short.
 * CKB_VERSION: made by another format version. CKB_IO: the system reported an error. */
int ckb_target_open(const char *text, const ckb_target_options *options, ckb_target *target);

/* What ckb_target_open with `create` would make, found out without touching anything: kind, path, capacity and
 * geometry are set. Whether something is there that must not be overwritten is not looked at. There is
 * nothing to close. Status and error as above; CKB_NOTFOUND also for a directory that is not there. */
int ckb_target_plan(const char *text, const ckb_target_options *options, ckb_target *target);

/* Closes. The volume must be unmounted. CKB_IO: the system reported an error for something written; what
 * was synced before is not affected. Closing twice, or after a failed open, is CKB_OK. */
int ckb_target_close(ckb_target *target);

/* One line about the first operation of the medium that failed since open: operation, file, offset and
 * the system's error. "" when none did. Any thread. Returns its length. */
size_t ckb_target_failure(const ckb_target *target, char *text, size_t bytes);

/* What kind of target a string names, without touching it; path and SIZE (0: none) are split off.
 * CKB_INVALID: not a target, error says why. */
int ckb_target_parse(const char *text, ckb_target_kind *kind, char path[CKB_PATH_BYTES], uint64_t *size_bytes,
                     char error[CKB_ERROR_BYTES]);

/* The power of two nearest to 1/256 of the capacity, from 64 KiB to 64 MiB; less where fewer than eight
 * segments would fit, but never less than 16 write units. */
uint64_t ckb_default_segment_bytes(uint64_t capacity_bytes, uint32_t write_unit);

/* Random bytes from the system. CKB_IO: there is no source of randomness. */
int ckb_random(void *bytes, size_t length);

/* A volume id never used before. With `scratch` it carries a mark that says that a benchmark may
 * overwrite this volume without being told. CKB_IO as ckb_random. */
int ckb_volume_id_make(uint8_t volume_id[16], bool scratch);
bool ckb_volume_id_is_scratch(const uint8_t volume_id[16]);

/* ---------------------------------------------------------------------------------------------- >>scratch
 * A directory for one benchmark: random name, mode 0700, with a mark file that is locked while in use. */

typedef struct ckb_scratch {
    char path[CKB_PATH_BYTES];
    int directory; /* descriptor of the scratch directory */
    int parent;    /* descriptor of the directory that holds it */
    int mark;      /* descriptor of the mark file, locked */
    bool keep;     /* the directory itself was not made here: removal leaves it */
    char name[64]; /* within the parent */
} ckb_scratch;

/* Makes a sub-directory of `directory`. Sub-directories that a killed run left are removed first.
 * CKB_NOTFOUND, CKB_READONLY, CKB_NOSPACE, CKB_INVALID (path too long, not a directory), CKB_IO. */
int ckb_scratch_create(const char *directory, ckb_scratch *scratch, char error[CKB_ERROR_BYTES]);

/* Uses `directory` itself, which must be empty or hold a scratch volume (its files are removed); makes it
 * when it is not there. CKB_EXISTS: something else is in it. CKB_BUSY: a benchmark uses it. */
int ckb_scratch_adopt(const char *directory, ckb_scratch *scratch, char error[CKB_ERROR_BYTES]);

/* Removes the files a volume consists of, then the mark and the directory. Never follows a link, never
 * removes a file of another name. The target must be closed. CKB_EXISTS: other files are in it, they and
 * the directory stay. CKB_IO. */
int ckb_scratch_remove(ckb_scratch *scratch, char error[CKB_ERROR_BYTES]);

/* Lets go without removing anything. */
void ckb_scratch_keep(ckb_scratch *scratch);

/* ---------------------------------------------------------------------------------------------- >>host */

/* What is unknown is "" or 0. */
typedef struct ckb_host_facts {
    char kernel[160];
    char cpu[128];
    uint32_t cores; /* usable by this process */
    uint64_t memory_bytes;
    uint64_t memory_available_bytes;
    char file_system[32]; /* "ext4", "tmpfs"; "" for a block device */
    char mount_point[256];
    char mount_options[256];
    char device[64];        /* "vda1" */
    char device_number[24]; /* "254:1" */
    uint32_t logical_sector_bytes;
    uint32_t physical_sector_bytes;
    char write_cache[32]; /* "write back", "write through" */
    char scheduler[32];
    bool rotational;
    uint64_t free_bytes; /* of the file system */
} ckb_host_facts;

/* Gathers the facts; `path` (file, directory or device; null: none) is what the storage part is about.
 * Never fails: what cannot be found out stays empty. */
void ckb_host_facts_read(const char *path, ckb_host_facts *facts);

/* Appends what makes a measurement less honest: a file system in memory, a volatile write cache, data
 * that fits in memory, more threads than cores. data_bytes and threads: 0 when they do not matter. */
void ckb_host_warn(const ckb_host_facts *facts, uint64_t data_bytes, uint32_t threads, ckb_warnings *warnings);

#define CKB_DISK_NAME_BYTES 32u
#define CKB_DISK_COUNTERS 11u

/* The first eleven counters of /proc/diskstats, in the kernel's order, for the disk or partition that holds
 * the file, directory or device `path`. False where nothing is counted: no Linux, or a path that lies on no
 * disk, such as tmpfs, NFS or an overlay. */
bool ckb_host_disk_read(const char *path, char name[CKB_DISK_NAME_BYTES], uint64_t counters[CKB_DISK_COUNTERS]);

/* Reads them from one line of /proc/diskstats. False: it is another device's, or has fewer counters. */
bool ckb_host_disk_line(const char *line, uint32_t major_number, uint32_t minor_number,
                        char name[CKB_DISK_NAME_BYTES], uint64_t counters[CKB_DISK_COUNTERS]);

/* Nanoseconds of a monotonic clock; never less than at an earlier call in the same thread. */
uint64_t ckb_host_clock_ns(void);

/* Sleeps at least that long, also through signals. */
void ckb_host_sleep_ns(uint64_t duration_ns);

/* Bytes free for this user on the file system of `path`. CKB_NOTFOUND, CKB_IO. */
int ckb_host_free_bytes(const char *path, uint64_t *bytes);

typedef struct ckb_host_thread {
    pthread_t id;
    void (*run)(void *context);
    void *context;
} ckb_host_thread;

/* Starts a thread; `thread` must stay in place until it is joined. CKB_NOSPACE: no more threads. */
int ckb_host_thread_start(ckb_host_thread *thread, void (*run)(void *context), void *context);
int ckb_host_thread_join(ckb_host_thread *thread);

/* The calling thread, when ckb_host_thread_start started it; null otherwise. */
ckb_host_thread *ckb_host_thread_current(void);

/* ---------------------------------------------------------------------------------------------- >>parse */

/* "4096", "64K", "1MiB", "2GB", "3T": K, M, G and T are powers of 1024. CKB_INVALID: not a size.
 * CKB_TOOBIG: 2^64 or more. `*bytes` is only set with CKB_OK. */
int ckb_parse_size(const char *text, uint64_t *bytes);

/* "250ns", "10us", "1.5ms", "30s", "10m", "2h", "0": the unit is required. Fractions of a nanosecond are
 * dropped. CKB_INVALID, CKB_TOOBIG as above. */
int ckb_parse_duration(const char *text, uint64_t *duration_ns);

/* "64 MiB" when it is exact, "1049088 bytes" otherwise. Returns text. */
const char *ckb_size_text(uint64_t bytes, char *text, size_t room);

#ifdef __cplusplus
}
#endif
#endif
