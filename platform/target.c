/* From a target string to a medium: parsing, geometry, what a volume's headers say, and RAM from the
 * operating system. directory.c and device.c do the rest. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "os.h"

#define SEGMENTS_MIN 4u /* two for the journal pair, one open, one to move into */
#define UNITS_PER_SEGMENT_MIN 16u
#define RAM_WRITE_UNIT 64u /* a cache line: nothing smaller is written whole */

/* ---- strings ---- */

static int parse_ram(const char *text, uint64_t *size_bytes, char error[CKB_ERROR_BYTES])
{
    ckb_os_shown shown;
    int status = ckb_parse_size(text, size_bytes);
    if (status == CKB_TOOBIG) {
        ckb_os_text(error, CKB_ERROR_BYTES, "ram:%s: the size is 2^64 bytes or more",
                    ckb_os_show(text, &shown));
    } else if (status != CKB_OK || *size_bytes == 0) {
        ckb_os_text(error, CKB_ERROR_BYTES, "ram:%s: expected a size such as ram:64M",
                    ckb_os_show(text, &shown));
    }
    return status != CKB_OK || *size_bytes == 0 ? CKB_INVALID : CKB_OK;
}

/* The colon before a SIZE, or null. What follows the last colon is a size when it starts like a number;
 * "file:a:b" is a path with a colon. */
static const char *size_colon(const char *path)
{
    const char *colon = strrchr(path, ':');
    if (colon == NULL || strchr(colon, '/') != NULL || strchr("0123456789+-.", colon[1]) == NULL) {
        return NULL;
    }
    return colon;
}

static int parse_image(const char *path, size_t *length, uint64_t *size_bytes, char error[CKB_ERROR_BYTES])
{
    const char *colon = size_colon(path);
    ckb_os_shown shown;
    *length = strlen(path);
    if (colon == NULL) {
        return CKB_OK;
    }
    *length = (size_t)(colon - path);
    int status = ckb_parse_size(colon + 1, size_bytes);
    if (status == CKB_TOOBIG || (status == CKB_OK && *size_bytes > INT64_MAX)) {
        ckb_os_text(error, CKB_ERROR_BYTES, "file:%s: a file holds at most 2^63-1 bytes",
                    ckb_os_show(path, &shown));
        return CKB_INVALID;
    }
    if (status != CKB_OK || *size_bytes == 0) {
        ckb_os_text(error, CKB_ERROR_BYTES,
                    "file:%s: \"%.40s\" is no size; expected file:PATH:SIZE such as "
                    "file:image:1G",
                    ckb_os_show(path, &shown), colon + 1);
        return CKB_INVALID;
    }
    return CKB_OK;
}

int ckb_target_parse(const char *text, ckb_target_kind *kind, char path[CKB_PATH_BYTES], uint64_t *size_bytes,
                     char error[CKB_ERROR_BYTES])
{
    size_t length = strlen(text);
    ckb_os_shown shown;
    int status = CKB_OK;
    error[0] = path[0] = '\0';
    *size_bytes = 0;
    *kind = CKB_TARGET_DIRECTORY;
    if (strncmp(text, "ram:", 4) == 0) {
        *kind = CKB_TARGET_RAM;
        return parse_ram(text + 4, size_bytes, error);
    }
    if (strncmp(text, "file:", 5) == 0) {
        *kind = CKB_TARGET_IMAGE;
        text += 5;
        status = parse_image(text, &length, size_bytes, error);
    } else if (strncmp(text, "/dev/", 5) == 0 && strncmp(text, "/dev/shm", 8) != 0) {
        *kind = CKB_TARGET_DEVICE;
    }
    if (status != CKB_OK) {
        return status;
    }
    if (length == 0) {
        ckb_os_text(error, CKB_ERROR_BYTES,
                    "the target is empty; expected a directory, file:PATH[:SIZE], "
                    "/dev/NAME or ram:SIZE");
        return CKB_INVALID;
    }
    if (length >= CKB_PATH_BYTES) {
        ckb_os_text(error, CKB_ERROR_BYTES, "%s: path too long: %lu bytes, at most %u are possible",
                    ckb_os_show(text, &shown), (unsigned long)length, CKB_PATH_BYTES - 1);
        return CKB_INVALID;
    }
    memcpy(path, text, length);
    path[length] = '\0';
    return CKB_OK;
}

/* ---- geometry ---- */

uint64_t ckb_default_segment_bytes(uint64_t capacity_bytes, uint32_t write_unit)
{
    const uint64_t least = (uint64_t)write_unit * UNITS_PER_SEGMENT_MIN;
    uint64_t segment = 65536;
    /* Nearest on the linear scale: between p and 2p the border is 1.5 p. */
    while (segment < 67108864 && capacity_bytes / 256 >= segment + segment / 2) {
        segment *= 2;
    }
    while (segment > least && capacity_bytes / segment < 8) {
        segment /= 2;
    }
    return segment < least ? least : segment;
}

/* What a message calls the target. */
static const char *target_name(const ckb_target *target, ckb_os_shown *shown)
{
    return target->kind == CKB_TARGET_RAM ? "ram" : ckb_os_show(target->path, shown);
}

int ckb_os_geometry(ckb_target *target, uint64_t segment_bytes, uint64_t capacity_bytes, uint32_t write_unit)
{
    ckb_os_shown shown;
    const char *name = target_name(target, &shown);
    uint64_t least = (uint64_t)write_unit * UNITS_PER_SEGMENT_MIN;
    if (segment_bytes == 0) {
        segment_bytes = ckb_default_segment_bytes(capacity_bytes, write_unit);
    }
    if (segment_bytes < least || segment_bytes % write_unit != 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: segment size %llu bytes; expected a multiple of its write "
                    "unit of %lu bytes, and at least %llu",
                    name, (unsigned long long)segment_bytes, (unsigned long)write_unit,
                    (unsigned long long)least);
        return CKB_INVALID;
    }
    uint64_t count = capacity_bytes / segment_bytes;
    if (count < SEGMENTS_MIN || count >= CKB_NO_SEGMENT || capacity_bytes > INT64_MAX) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: %s: %llu bytes hold %llu segments of %llu bytes; expected %u to "
                    "%lu",
                    name, count < SEGMENTS_MIN ? "too small" : "too large", (unsigned long long)capacity_bytes,
                    (unsigned long long)count, (unsigned long long)segment_bytes, SEGMENTS_MIN,
                    (unsigned long)CKB_NO_SEGMENT - 1);
        return CKB_INVALID;
    }
    ckb_geometry geometry = {segment_bytes, (uint32_t)count, 1, write_unit, 1, 0};
    if (ckb_format_memory(&geometry) == 0) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: %llu segments of %llu bytes leave no room beside the journal that names them; use "
                    "larger segments",
                    name, (unsigned long long)count, (unsigned long long)segment_bytes);
        return CKB_INVALID;
    }
    target->medium.geometry.segment_bytes = segment_bytes;
    target->medium.geometry.segment_count = (uint32_t)count;
    target->medium.geometry.write_unit = write_unit;
    target->capacity_bytes = count * segment_bytes;
    target->unused_bytes = capacity_bytes - target->capacity_bytes;
    return CKB_OK;
}

/* That of a volume that is to take all of `size_bytes`. */
static int geometry_grown(ckb_target *target, const ckb_target_options *options)
{
    const ckb_probe_info *probe = &target->probe;
    uint64_t count = options->size_bytes / probe->segment_bytes;
    ckb_os_shown shown;
    if (options->size_bytes != 0 && count < probe->segment_count) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: the volume has %llu bytes and cannot shrink to %llu",
                    target_name(target, &shown), (unsigned long long)target->capacity_bytes,
                    (unsigned long long)options->size_bytes);
        return CKB_INVALID;
    }
    if (count >= CKB_NO_SEGMENT) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %llu segments are too many",
                    target_name(target, &shown), (unsigned long long)count);
        return CKB_INVALID;
    }
    target->capacity_bytes = count * probe->segment_bytes;
    target->medium.geometry.segment_bytes = probe->segment_bytes;
    target->medium.geometry.segment_count = (uint32_t)count;
    target->medium.geometry.write_unit = probe->write_unit;
    return CKB_OK;
}

int ckb_os_geometry_existing(ckb_target *target, const ckb_target_options *options)
{
    const ckb_probe_info *probe = &target->probe;
    ckb_os_shown shown;
    const char *name = target_name(target, &shown);
    uint32_t unit = probe->write_unit;
    bool good = unit >= 8 && unit <= 65536 && (unit & (unit - 1)) == 0 && probe->segment_bytes != 0 &&
                probe->segment_bytes % unit == 0 && probe->segment_count != 0 &&
                probe->segment_bytes <= INT64_MAX / probe->segment_count;
    if (!good) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: the header describes an impossible geometry: %lu segments of "
                    "%llu bytes, write unit %lu",
                    name, (unsigned long)probe->segment_count, (unsigned long long)probe->segment_bytes,
                    (unsigned long)unit);
        return CKB_CORRUPT;
    }
    if (options->segment_bytes != 0 && options->segment_bytes != probe->segment_bytes) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: its segments have %llu bytes, expected %llu", name,
                    (unsigned long long)probe->segment_bytes, (unsigned long long)options->segment_bytes);
        return CKB_INVALID;
    }
    target->capacity_bytes = probe->segment_bytes * probe->segment_count;
    if (options->grow) {
        return geometry_grown(target, options);
    }
    if (options->size_bytes != 0 && options->size_bytes / probe->segment_bytes != probe->segment_count) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: the volume has %llu bytes, expected %llu", name,
                    (unsigned long long)target->capacity_bytes, (unsigned long long)options->size_bytes);
        return CKB_INVALID;
    }
    target->medium.geometry.segment_bytes = probe->segment_bytes;
    target->medium.geometry.segment_count = probe->segment_count;
    target->medium.geometry.write_unit = unit;
    return CKB_OK;
}

/* ---- headers ---- */

static int probe_refusal(ckb_target *target, bool create, int status, const ckb_probe_info *info)
{
    ckb_os_shown shown;
    const char *name = ckb_os_show(target->path, &shown);
    const char *hint = create ? "; it is only overwritten when told to destroy it" : "";
    if (status == CKB_VERSION) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: a volume of format version %u.%u, expected %d.%d%s",
                    name, info->format_major, info->format_minor, CKB_FORMAT_MAJOR, CKB_FORMAT_MINOR, hint);
    } else if (status == CKB_CORRUPT) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: a volume was here, but the headers of segments 0 and 1 do not "
                    "verify%s",
                    name, hint);
    } else if (status == CKB_OK) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: holds a volume of %lu segments of %llu bytes%s", name,
                    (unsigned long)info->segment_count, (unsigned long long)info->segment_bytes, hint);
    } else {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: no volume here", name);
    }
    return create ? CKB_EXISTS : status;
}

/* The better of two headers: one that verifies, then one that says why it cannot be used. */
static int probe_choice(const int status[2])
{
    if (status[0] == CKB_OK || status[1] == CKB_OK) {
        return status[0] == CKB_OK ? 0 : 1;
    }
    if (status[0] == CKB_VERSION || status[1] == CKB_VERSION) {
        return status[0] == CKB_VERSION ? 0 : 1;
    }
    return status[0] == CKB_CORRUPT ? 0 : 1;
}

int ckb_os_probe(ckb_target *target, const ckb_target_options *options, const int status[2],
                 const ckb_probe_info info[2])
{
    int best = probe_choice(status);
    int found = status[best];
    ckb_os_shown shown;
    /* A newer minor version may be read; its header says where everything is. */
    bool readable = found == CKB_VERSION && options->read_only && info[best].format_major == CKB_FORMAT_MAJOR &&
                    info[best].segment_bytes != 0;
    target->existing = found == CKB_OK || readable;
    if (target->existing) {
        target->probe = info[best];
        /* A volume that has grown has an earlier size in one of them; the mount says which one counts. */
        const ckb_probe_info *other = &info[1 - best];
        if (status[0] == CKB_OK && status[1] == CKB_OK && other->segment_count > target->probe.segment_count &&
            memcmp(other->volume_id, target->probe.volume_id, sizeof other->volume_id) == 0) {
            target->probe = *other;
        }
        target->scratch = ckb_volume_id_is_scratch(info[best].volume_id);
        if (best == 1) {
            ckb_os_warn(&target->warnings, "%s: the header of segment 0 does not verify; segment 1 was used",
                        ckb_os_show(target->path, &shown));
        }
    }
    if (options->create) {
        bool free = found == CKB_NOTFOUND || options->destroy || (found == CKB_OK && target->scratch);
        return free ? CKB_OK : probe_refusal(target, true, found, &info[best]);
    }
    return target->existing ? CKB_OK : probe_refusal(target, false, found, &info[best]);
}

/* ---- RAM from the system ---- */

typedef struct ram_state {
    ckb_os_state base;
    ckb_ram ram;
    void *memory;
    size_t bytes;
} ram_state;

static int ram_close(void *state)
{
    ram_state *ram = state;
    munmap(ram->memory, ram->bytes);
    free(ram);
    return CKB_OK;
}

/* Touches every page now, so that the first writes measured do not pay for page faults. */
static void ram_touch(void *memory, size_t bytes)
{
    volatile unsigned char *at = memory;
    (void)madvise(memory, bytes, MADV_HUGEPAGE); /* a hint: without it only more page table walks */
    for (size_t offset = 0; offset < bytes; offset += 4096) {
        at[offset] = 0;
    }
}

/* Linux hands out memory it does not have and kills whoever touches it; so ask first. */
static bool ram_fits(uint64_t bytes, uint64_t *available)
{
    ckb_host_facts facts;
    ckb_host_facts_read(NULL, &facts);
    *available = facts.memory_available_bytes;
    return bytes <= SIZE_MAX / 2 && (*available == 0 || bytes <= *available);
}

int ckb_os_ram_open(ckb_target *target, const ckb_target_options *options)
{
    uint64_t size = options->size_bytes;
    uint64_t available = 0;
    char wanted_text[32], available_text[32];
    if (!options->create) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "ram: memory holds no volume before one is made");
        return CKB_NOTFOUND;
    }
    int status = ckb_os_geometry(target, options->segment_bytes, size, RAM_WRITE_UNIT);
    if (status != CKB_OK) {
        return status;
    }
    ram_state *ram = calloc(1, sizeof *ram);
    bool fits = ram_fits(target->capacity_bytes, &available);
    void *memory = MAP_FAILED;
    if (ram != NULL && fits) {
        memory = mmap(NULL, (size_t)target->capacity_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                      -1, 0);
    }
    if (memory == MAP_FAILED) {
        free(ram);
        ckb_os_text(target->error, CKB_ERROR_BYTES, "ram: %s do not fit into memory; %s are available",
                    ckb_size_text(size, wanted_text, sizeof wanted_text),
                    ckb_size_text(available & ~(uint64_t)0xFFFFF, available_text, sizeof available_text));
        return CKB_NOSPACE;
    }
    ram->memory = memory;
    ram->bytes = (size_t)target->capacity_bytes;
    ram_touch(memory, ram->bytes);
    ram->base.close = ram_close;
    pthread_mutex_init(&ram->base.failure.mutex, NULL);
    target->state = ram;
    target->sync_kind = "none (ram)";
    return ckb_ram_medium(&ram->ram, &target->medium, memory, ram->bytes, target->medium.geometry.segment_bytes,
                          RAM_WRITE_UNIT);
}

/* ---- open and close ---- */

static int options_check(ckb_target *target, const ckb_target_options *options)
{
    if (options->read_only && options->create) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "a target cannot be made read-only");
        return CKB_INVALID;
    }
    if (options->grow && (options->read_only || options->create)) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "only a volume that is there and can be written can grow");
        return CKB_INVALID;
    }
    if (options->beside_writer && !options->read_only) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "only a reader can go without a lock");
        return CKB_INVALID;
    }
    if (options->prepare != CKB_PREPARE_STANDARD && target->kind != CKB_TARGET_DIRECTORY) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "only a directory has a choice how a segment gets its space");
        return CKB_INVALID;
    }
    if (options->destroy && !options->create) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "destroy is only for a target that is made");
        return CKB_INVALID;
    }
    return CKB_OK;
}

/* Parses the target and joins a SIZE in it with the one that the options may have. */
static int target_start(const char *text, const ckb_target_options *options, ckb_target *target,
                        ckb_target_options *wanted)
{
    uint64_t size = 0;
    memset(target, 0, sizeof *target);
    memset(wanted, 0, sizeof *wanted);
    if (options != NULL) {
        *wanted = *options;
    }
    int status = ckb_target_parse(text, &target->kind, target->path, &size, target->error);
    if (status == CKB_OK) {
        status = options_check(target, wanted);
    }
    if (size != 0 && (wanted->size_bytes == 0 || size < wanted->size_bytes)) {
        wanted->size_bytes = size;
    }
    return status;
}

int ckb_target_plan(const char *text, const ckb_target_options *options, ckb_target *target)
{
    ckb_target_options wanted;
    uint64_t capacity_bytes = 0;
    uint32_t write_unit = RAM_WRITE_UNIT;
    int status = target_start(text, options, target, &wanted);
    if (status != CKB_OK) {
        return status;
    }
    if (target->kind == CKB_TARGET_RAM) {
        capacity_bytes = wanted.size_bytes;
    } else if (target->kind == CKB_TARGET_DIRECTORY) {
        status = ckb_os_directory_room(target, wanted.size_bytes, &capacity_bytes, &write_unit);
    } else {
        status = ckb_os_device_room(target, wanted.size_bytes, &capacity_bytes, &write_unit);
    }
    target->medium.geometry.read_unit = 1;
    target->medium.geometry.buffer_align = 1;
    return status == CKB_OK ? ckb_os_geometry(target, wanted.segment_bytes, capacity_bytes, write_unit)
                            : status;
}

int ckb_target_open(const char *text, const ckb_target_options *options, ckb_target *target)
{
    ckb_target_options wanted;
    int status = target_start(text, options, target, &wanted);
    if (status != CKB_OK) {
        return status;
    }
    target->read_only = wanted.read_only;
    switch (target->kind) {
    case CKB_TARGET_RAM:
        return ckb_os_ram_open(target, &wanted);
    case CKB_TARGET_IMAGE:
    case CKB_TARGET_DEVICE:
        return ckb_os_device_open(target, &wanted);
    case CKB_TARGET_DIRECTORY:
        return ckb_os_directory_open(target, &wanted);
    case CKB_TARGET_NONE:
    default:
        return CKB_INVALID;
    }
}

int ckb_target_close(ckb_target *target)
{
    ckb_os_state *state = target->state;
    if (state == NULL) {
        return CKB_OK;
    }
    target->state = NULL;
    pthread_mutex_destroy(&state->failure.mutex);
    return state->close(state);
}

size_t ckb_target_failure(const ckb_target *target, char *text, size_t bytes)
{
    ckb_os_state *state = target->state;
    text[0] = '\0';
    if (state != NULL) {
        pthread_mutex_lock(&state->failure.mutex);
        ckb_os_text(text, bytes, "%s", state->failure.text);
        pthread_mutex_unlock(&state->failure.mutex);
    }
    return strlen(text);
}
