/* Facts about the machine, clock and threads. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "os.h"

/* ---- clock and threads ---- */

uint64_t ckb_host_clock_ns(void)
{
    static _Thread_local uint64_t last_ns; /* per thread: a shared one would be a bottleneck of its own */
    struct timespec now;
    uint64_t now_ns = last_ns;
    if (clock_gettime(CLOCK_MONOTONIC, &now) == 0) {
        now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    }
    if (now_ns > last_ns) {
        last_ns = now_ns;
    }
    return last_ns;
}

void ckb_host_sleep_ns(uint64_t duration_ns)
{
    struct timespec rest = {.tv_sec = (time_t)(duration_ns / 1000000000u),
                            .tv_nsec = (long)(duration_ns % 1000000000u)};
    while (nanosleep(&rest, &rest) != 0 && errno == EINTR) {
    }
}

static _Thread_local ckb_host_thread *thread_current;

static void *thread_main(void *context)
{
    ckb_host_thread *thread = context;
    thread_current = thread;
    thread->run(thread->context);
    return NULL;
}

int ckb_host_thread_start(ckb_host_thread *thread, void (*run)(void *context), void *context)
{
    thread->run = run;
    thread->context = context;
    return pthread_create(&thread->id, NULL, thread_main, thread) == 0 ? CKB_OK : CKB_NOSPACE;
}

ckb_host_thread *ckb_host_thread_current(void)
{
    return thread_current;
}

int ckb_host_thread_join(ckb_host_thread *thread)
{
    return pthread_join(thread->id, NULL) == 0 ? CKB_OK : CKB_INVALID;
}

/* ---- machine ---- */

int ckb_host_free_bytes(const char *path, uint64_t *bytes)
{
    struct statvfs facts;
    int result;
    do {
        result = statvfs(path, &facts);
    } while (result != 0 && errno == EINTR);
    if (result != 0) {
        return errno == ENOENT ? CKB_NOTFOUND : CKB_IO;
    }
    uint64_t block = facts.f_frsize != 0 ? facts.f_frsize : facts.f_bsize;
    *bytes = block != 0 && facts.f_bavail > UINT64_MAX / block ? UINT64_MAX : facts.f_bavail * block;
    return CKB_OK;
}

/* The value behind "name" and a colon in a file of such lines, without blanks before it. */
static bool value_find(const char *path, const char *name, char *value, size_t bytes)
{
    FILE *list = fopen(path, "re");
    char line[512];
    bool found = false;
    value[0] = '\0';
    if (list == NULL) {
        return false;
    }
    while (!found && fgets(line, (int)sizeof line, list) != NULL) {
        size_t length = strlen(name);
        if (strncmp(line, name, length) != 0 || strchr(" \t:", line[length]) == NULL) {
            continue;
        }
        const char *at = line + length + strspn(line + length, " \t:");
        line[strcspn(line, "\n")] = '\0';
        ckb_os_text(value, bytes, "%s", at);
        found = true;
    }
    fclose(list);
    return found;
}

static uint64_t memory_value(const char *name)
{
    char text[64];
    uint64_t kibibytes = 0;
    if (!value_find("/proc/meminfo", name, text, sizeof text)) {
        return 0;
    }
    text[strspn(text, "0123456789")] = '\0'; /* "123 kB" */
    return ckb_parse_size(text, &kibibytes) == CKB_OK ? kibibytes * 1024 : 0;
}

static uint32_t cores_count(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        return (uint32_t)CPU_COUNT(&set);
    }
    long online = sysconf(_SC_NPROCESSORS_ONLN);
    return online > 0 ? (uint32_t)online : 0;
}

static void machine_read(ckb_host_facts *facts)
{
    struct utsname name;
    if (uname(&name) == 0) {
        ckb_os_text(facts->kernel, sizeof facts->kernel, "%.60s %.60s %.30s", name.sysname, name.release,
                    name.machine);
    }
    if (!value_find("/proc/cpuinfo", "model name", facts->cpu, sizeof facts->cpu) &&
        !value_find("/proc/cpuinfo", "Model", facts->cpu, sizeof facts->cpu)) {
        (void)value_find("/proc/cpuinfo", "cpu", facts->cpu, sizeof facts->cpu);
    }
    facts->cores = cores_count();
    facts->memory_bytes = memory_value("MemTotal");
    facts->memory_available_bytes = memory_value("MemAvailable");
}

/* ---- storage ---- */

/* mountinfo writes blanks as \040 and so on. */
static void unescape(char *text)
{
    char *to = text;
    for (const char *from = text; *from != '\0'; to++) {
        if (from[0] == '\\' && from[1] >= '0' && from[1] <= '3' && from[2] != '\0' && from[3] != '\0') {
            *to = (char)((from[1] - '0') * 64 + (from[2] - '0') * 8 + (from[3] - '0'));
            from += 4;
        } else {
            *to = *from++;
        }
    }
    *to = '\0';
}

/* The mount whose device number is that of the file. The last one wins: it lies on top. */
static void mount_read(ckb_host_facts *facts)
{
    FILE *list = fopen("/proc/self/mountinfo", "re");
    char line[4096];
    if (list == NULL) {
        return;
    }
    while (fgets(line, (int)sizeof line, list) != NULL) {
        char number[24], place[256], options[256], type[32], super[256];
        char *rest = strstr(line, " - ");
        if (rest == NULL || sscanf(line, "%*s %*s %23s %*s %255s %255s", number, place, options) != 3 ||
            strcmp(number, facts->device_number) != 0 || sscanf(rest, " - %31s %*s %255s", type, super) != 2) {
            continue;
        }
        unescape(place);
        ckb_os_text(facts->mount_point, sizeof facts->mount_point, "%s", place);
        ckb_os_text(facts->file_system, sizeof facts->file_system, "%s", type);
        ckb_os_text(facts->mount_options, sizeof facts->mount_options, "%.120s;%.120s", options, super);
    }
    fclose(list);
}

static uint32_t number_read(const char *path)
{
    char text[32];
    uint64_t value = 0;
    bool good =
        ckb_os_line(path, text, sizeof text) && ckb_parse_size(text, &value) == CKB_OK && value <= UINT32_MAX;
    return good ? (uint32_t)value : 0;
}

/* "[mq-deadline] kyber none" becomes "mq-deadline". */
static void chosen_keep(char *text)
{
    char *open = strchr(text, '[');
    char *close = open == NULL ? NULL : strchr(open, ']');
    if (close != NULL) {
        *close = '\0';
        memmove(text, open + 1, strlen(open + 1) + 1);
    }
}

/* The queue belongs to the disk; for a partition it is one level up. */
static void queue_read(ckb_host_facts *facts)
{
    char base[64], path[192], link[512];
    ckb_os_text(base, sizeof base, "/sys/dev/block/%s", facts->device_number);
    ssize_t length = readlink(base, link, sizeof link - 1);
    if (length <= 0) {
        return; /* no block device below: tmpfs, NFS, overlay */
    }
    link[length] = '\0';
    const char *name = strrchr(link, '/');
    ckb_os_text(facts->device, sizeof facts->device, "%.60s", name != NULL ? name + 1 : link);
    ckb_os_text(path, sizeof path, "%s/partition", base);
    const char *up = access(path, F_OK) == 0 ? "/.." : "";
    ckb_os_text(path, sizeof path, "%s%s/queue/logical_block_size", base, up);
    facts->logical_sector_bytes = number_read(path);
    ckb_os_text(path, sizeof path, "%s%s/queue/physical_block_size", base, up);
    facts->physical_sector_bytes = number_read(path);
    ckb_os_text(path, sizeof path, "%s%s/queue/write_cache", base, up);
    (void)ckb_os_line(path, facts->write_cache, sizeof facts->write_cache);
    ckb_os_text(path, sizeof path, "%s%s/queue/scheduler", base, up);
    (void)ckb_os_line(path, facts->scheduler, sizeof facts->scheduler);
    chosen_keep(facts->scheduler);
    ckb_os_text(path, sizeof path, "%s%s/queue/rotational", base, up);
    facts->rotational = number_read(path) == 1;
}

void ckb_host_facts_read(const char *path, ckb_host_facts *facts)
{
    struct stat place;
    memset(facts, 0, sizeof *facts);
    machine_read(facts);
    if (path == NULL || stat(path, &place) != 0) {
        return;
    }
    bool block = S_ISBLK(place.st_mode);
    dev_t device = block ? place.st_rdev : place.st_dev;
    ckb_os_text(facts->device_number, sizeof facts->device_number, "%u:%u", major(device), minor(device));
    if (!block) {
        mount_read(facts);
        (void)ckb_host_free_bytes(path, &facts->free_bytes);
    }
    queue_read(facts);
}

/* "254 1 vda1 8696628 14134 ...": as the kernel's iostats.rst has it. */
bool ckb_host_disk_line(const char *line, uint32_t major_number, uint32_t minor_number,
                        char name[CKB_DISK_NAME_BYTES], uint64_t counters[CKB_DISK_COUNTERS])
{
    unsigned found_major, found_minor;
    int taken = 0;
    if (sscanf(line, "%u %u %31s%n", &found_major, &found_minor, name, &taken) != 3 ||
        found_major != major_number || found_minor != minor_number) {
        return false;
    }
    for (uint32_t i = 0; i < CKB_DISK_COUNTERS; i++) {
        char *end;
        line += taken;
        counters[i] = strtoull(line, &end, 10);
        if (end == line) {
            return false;
        }
        taken = (int)(end - line);
    }
    return true;
}

bool ckb_host_disk_read(const char *path, char name[CKB_DISK_NAME_BYTES], uint64_t counters[CKB_DISK_COUNTERS])
{
    struct stat place;
    char line[512];
    bool found = false;
    if (stat(path, &place) != 0) {
        return false;
    }
    FILE *list = fopen("/proc/diskstats", "re");
    if (list == NULL) {
        return false;
    }
    dev_t device = S_ISBLK(place.st_mode) ? place.st_rdev : place.st_dev;
    while (!found && fgets(line, (int)sizeof line, list) != NULL) {
        found = ckb_host_disk_line(line, major(device), minor(device), name, counters);
    }
    fclose(list);
    return found;
}

void ckb_host_warn(const ckb_host_facts *facts, uint64_t data_bytes, uint32_t threads, ckb_warnings *warnings)
{
    char data[32], memory[32];
    bool in_memory = strcmp(facts->file_system, "tmpfs") == 0 || strcmp(facts->file_system, "ramfs") == 0;
    if (in_memory) {
        ckb_os_warn(warnings, "%s is a file system in memory: nothing here survives a power cut",
                    facts->file_system);
    }
    if (strcmp(facts->write_cache, "write back") == 0) {
        ckb_os_warn(warnings, "%s has a volatile write cache: durability rests on its flush command",
                    facts->device);
    }
    if (data_bytes != 0 && facts->memory_bytes != 0 && data_bytes < facts->memory_bytes && !in_memory) {
        ckb_os_warn(warnings, "the data (%s) fits in memory (%s): reads may come from the page cache",
                    ckb_size_text(data_bytes, data, sizeof data),
                    ckb_size_text(facts->memory_bytes & ~(uint64_t)0xFFFFF, memory, sizeof memory));
    }
    if (facts->cores != 0 && threads > facts->cores) {
        ckb_os_warn(warnings, "%lu threads share %lu cores", (unsigned long)threads,
                    (unsigned long)facts->cores);
    }
}
