/* Helpers of the platform files: the only place that handles EINTR, short transfers and errno. */
#ifndef CKB_OS_H
#define CKB_OS_H

#include <stdarg.h>
#include <sys/types.h>

#include "platform.h"

#if defined(__GNUC__)
#define CKB_OS_PRINTF(format_at, values_at) __attribute__((format(printf, format_at, values_at)))
#else
#define CKB_OS_PRINTF(format_at, values_at)
#endif

/* Messages. */
void ckb_os_text(char *text, size_t bytes, const char *format, ...) CKB_OS_PRINTF(3, 4);
void ckb_os_warn(ckb_warnings *warnings, const char *format, ...) CKB_OS_PRINTF(2, 3);
const char *ckb_os_error_text(int error); /* "no such file or directory (ENOENT)" */

/* A path for a message: whole, or its end behind dots. */
typedef struct ckb_os_shown {
    char text[320];
} ckb_os_shown;
const char *ckb_os_show(const char *path, ckb_os_shown *shown);

/* The ckb_status for an errno. */
int ckb_os_status(int error);

/* What ckb_target_failure tells: the first failure among the gravest. A mount looks for segments that were
 * never used, so that a missing file must not hide an I/O error that comes later. */
typedef enum ckb_os_weight {
    CKB_OS_NOTHING = 0,
    CKB_OS_MISSING,
    CKB_OS_SHORT,
    CKB_OS_NO_SPACE,
    CKB_OS_ERROR
} ckb_os_weight;
typedef struct ckb_os_failure {
    pthread_mutex_t mutex;
    ckb_os_weight weight;
    char text[CKB_ERROR_BYTES];
} ckb_os_failure;
void ckb_os_failure_note(ckb_os_failure *failure, ckb_os_weight weight, const char *format, ...)
    CKB_OS_PRINTF(3, 4);

/* Transfers. All return 0 or an errno; reading stops at the end of file with fewer bytes in *got. */
int ckb_os_read(int file, void *buffer, size_t length, uint64_t offset, size_t *got);
int ckb_os_write(int file, const void *buffer, size_t length, uint64_t offset);

/* Lets the kernel begin to write this range to the disk, without waiting for it. */
void ckb_os_start_writeback(int file, uint64_t offset, size_t length);
int ckb_os_fdatasync(int file);
int ckb_os_fsync_directory(int directory); /* 0 also where the file system has no such thing */
int ckb_os_open(int directory, const char *name, int flags, mode_t mode, int *file); /* adds O_CLOEXEC */

/* Makes a file that was not there, of mode 0600 whatever the umask takes: a file that its owner cannot open
 * again would be useless. */
int ckb_os_make(int directory, const char *name, int *file);

/* Reserves the first `bytes` of a file and makes it at least that large. 0: reserved. On an error the
 * file has its old size again. *reserved is false when the file system cannot reserve: the size is set,
 * and room may be missing at a write. */
int ckb_os_reserve(int file, uint64_t bytes, bool *reserved);

/* Makes a file at least `bytes` large without reserving anything. 0 or an errno. */
int ckb_os_set_size(int file, uint64_t bytes);

/* Writes zeros over the first `bytes` of a file and syncs them. 0 or an errno. */
int ckb_os_write_zeros(int file, uint64_t bytes);

/* Locks a file for its open file description: 0, or EWOULDBLOCK when another one, even of this process,
 * holds it. */
int ckb_os_lock(int file, bool shared);

/* "fdatasync", or "none (tmpfs)", "none (ramdisk)" where file system or device are gone after a power cut. */
const char *ckb_os_sync_kind(int file);

/* This process's limit for the size of a file (RLIMIT_FSIZE), UINT64_MAX when there is none. */
uint64_t ckb_os_file_limit(void);

/* Small files of /proc and /sys: the first line, without its newline. False when it cannot be read. */
bool ckb_os_line(const char *path, char *text, size_t bytes);

/* Directories: names of a volume's files. */
#define CKB_OS_LOCK_NAME "chunkbench.lock"
#define CKB_OS_MARK_NAME "chunkbench.scratch"
#define CKB_OS_NAME_BYTES 32u
void ckb_os_segment_name(uint32_t segment, char name[CKB_OS_NAME_BYTES]);
bool ckb_os_segment_number(const char *name, uint32_t *segment);

/* What every target->state begins with. */
typedef struct ckb_os_state {
    int (*close)(void *state); /* a ckb_status; frees the state */
    ckb_os_failure failure;
} ckb_os_state;

/* The implementations behind a target; kind and path are set. All fill target->error. */
int ckb_os_directory_open(ckb_target *target, const ckb_target_options *options);
int ckb_os_device_open(ckb_target *target, const ckb_target_options *options);
int ckb_os_ram_open(ckb_target *target, const ckb_target_options *options);

/* The bytes that a new volume finds there, and its write unit. The size is `size_bytes` where that is not 0;
 * only an image that is not there yet needs it. Kind and path are set; the errors fill target->error. */
int ckb_os_directory_room(ckb_target *target, uint64_t size_bytes, uint64_t *capacity_bytes,
                          uint32_t *write_unit);
int ckb_os_device_room(ckb_target *target, uint64_t size_bytes, uint64_t *capacity_bytes, uint32_t *write_unit);

/* Sets geometry and capacity from a segment size and the bytes there are. CKB_INVALID with a text. */
int ckb_os_geometry(ckb_target *target, uint64_t segment_bytes, uint64_t capacity_bytes, uint32_t write_unit);

/* Sets geometry from target->probe and compares it with what the options expect. */
int ckb_os_geometry_existing(ckb_target *target, const ckb_target_options *options);

/* Turns what ckb_probe said about segment 0 and 1 (CKB_NOTFOUND when there is no such segment) into
 * existing, probe and scratch, or an error. */
int ckb_os_probe(ckb_target *target, const ckb_target_options *options, const int status[2],
                 const ckb_probe_info info[2]);

/* CKB_BUSY with a text when a device, one of its partitions or something stacked on it is in use. */
int ckb_os_device_in_use(ckb_target *target, dev_t device);

/* CKB_EXISTS with a text when an open file or device carries content of somebody else's: a known
 * signature, partitions, or anything but zeros (or the 0xFF of erased flash) at its start. `device` is 0
 * for a file. */
int ckb_os_foreign(ckb_target *target, int file, uint64_t size_bytes, dev_t device);

#endif
