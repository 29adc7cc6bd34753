/* Speed against what this machine can do at best, measured in the same run: rows 1 to 5 of the table in the
 * design, and how cost grows with what is stored. Medians of interleaved rounds, so that a machine that gets
 * slower or faster meanwhile does so for both sides of a ratio.
 *
 *     ceilings [DIRECTORY]      on disk; the current one by default
 *
 * A bar that is missed is printed, and is no failure. */
#define _GNU_SOURCE
#include "chunkbench.h"
#include "platform.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROUNDS 7u
#define CHUNK_BYTES 1024u
#define CHUNKS_PER_BLOCK 16u
#define RAM_CHUNKS 300000u
#define DISK_CHUNKS 400000u
#define GROWTH_CHUNKS 4000000u
#define SEGMENT_BYTES (UINT64_C(4) << 20)
#define SOURCE_BYTES (UINT64_C(1) << 24) /* what is written rotates through this, larger than the L2 cache */
#define PLAIN_WRITE_BYTES ((size_t)4 << 20)

static unsigned char *source;

static void die(const char *what, const char *why)
{
    fprintf(stderr, "ceilings: %s: %s\n", what, why);
    exit(1);
}

static void must(int status, const char *what)
{
    if (status != CKB_OK)
        die(what, ckb_status_text(status));
}

static double seconds_now(void)
{
    return (double)ckb_host_clock_ns() * 1e-9;
}

/* Memory whose pages are all there. */
static unsigned char *memory_map(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (memory == MAP_FAILED)
        die("memory", "not enough");
    memset(memory, 0x5A, bytes);
    return (unsigned char *)memory;
}

static void memory_unmap(void *memory, size_t bytes)
{
    munmap(memory, bytes);
}

/* Tells the compiler that a result is used. */
static void keep(uint32_t value)
{
    __asm__ volatile("" : : "r"(value) : "memory");
}

static int compare_doubles(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(const double *values, unsigned count)
{
    double sorted[64];
    memcpy(sorted, values, count * sizeof sorted[0]);
    qsort(sorted, count, sizeof sorted[0], compare_doubles);
    return count % 2 != 0 ? sorted[count / 2] : (sorted[count / 2 - 1] + sorted[count / 2]) / 2;
}

/* One line; bar 0: none. The ratio is the median over the rounds, each of which measured both sides. */
static void row(const char *name, const double *measured, const double *ceiling, unsigned rounds, double bar,
                const char *unit)
{
    double ratios[64];
    for (unsigned i = 0; i < rounds; i++)
        ratios[i] = measured[i] / ceiling[i];
    double ratio = median(ratios, rounds);
    printf("%-44s | %9.1f %-6s | %9.1f %-6s | %5.3f | %4.2f | %s\n", name, median(measured, rounds), unit,
           median(ceiling, rounds), unit, ratio, bar,
           bar <= 0       ? "-"
           : ratio >= bar ? "ok"
                          : "MISSED");
    fflush(stdout);
}

/* ------------------------------------------------------------------------------------------------ >>crc */

#define CRC_BYTES_MAX 65536u

static double crc_rate(size_t bytes, unsigned char *data, bool copy)
{
    unsigned char *to = data + CRC_BYTES_MAX;
    unsigned long turns = 500ul * 1024 * 1024 / bytes;
    uint32_t sum = 0;
    double start = seconds_now();
    for (unsigned long i = 0; i < turns; i++) {
        if (copy) {
            memcpy(to, data, bytes);
            __asm__ volatile("" : : "r"(to) : "memory");
        } else {
            sum ^= ckb_crc32c(0, data, bytes);
        }
    }
    keep(sum);
    return (double)turns * (double)bytes / (seconds_now() - start) / 1e6;
}

static void crc_rows(void)
{
    static const size_t sizes[] = {1024, 4096, 16384, 65536};
    unsigned char *data = memory_map((size_t)2 * CRC_BYTES_MAX);
    for (unsigned s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        double measured[ROUNDS], ceiling[ROUNDS];
        char name[64];
        for (unsigned i = 0; i < ROUNDS; i++) {
            ceiling[i] = crc_rate(sizes[s], data, true);
            measured[i] = crc_rate(sizes[s], data, false);
        }
        snprintf(name, sizeof name, "CRC-32C %zu KiB / memcpy in cache", sizes[s] / 1024);
        row(name, measured, ceiling, ROUNDS, sizes[s] >= 4096 ? 0.50 : 0, "MB/s");
    }
    memory_unmap(data, (size_t)2 * CRC_BYTES_MAX);
}

/* --------------------------------------------------------------------------------------------- >>volumes */

typedef struct store {
    ckb_volume *volume;
    unsigned char *memory;
    size_t bytes;
} store;

static void store_open(store *s, const ckb_medium *medium, uint64_t chunks, uint32_t containers)
{
    ckb_format_config fresh = {{0}, containers, 0};
    const ckb_config config = {.max_chunks = chunks + chunks / 8 + 1024, .max_containers = containers};
    ckb_fault fault;
    char text[200];
    must(ckb_volume_id_make(fresh.volume_id, true), "volume id");
    size_t format_bytes = ckb_format_memory(&medium->geometry);
    void *format_memory = memory_map(format_bytes);
    must(ckb_format(medium, &fresh, format_memory, format_bytes, &fault), "format");
    memory_unmap(format_memory, format_bytes);
    s->bytes = ckb_volume_memory(&medium->geometry, &config);
    s->memory = memory_map(s->bytes);
    if (ckb_mount(medium, &config, s->memory, s->bytes, &s->volume, &fault) != CKB_OK) {
        ckb_fault_text(&fault, text, sizeof text);
        die("mount", text);
    }
    for (uint32_t i = 0; i < containers; i++)
        must(ckb_container_create(s->volume, 1 + i), "container");
}

/* `fast`: the volume is not needed any more, and nothing is written to say so. */
static void store_close(store *s, bool fast)
{
    if (!fast)
        must(ckb_unmount(s->volume), "unmount");
    memory_unmap(s->memory, s->bytes);
}

typedef struct job {
    ckb_volume *volume;
    uint64_t container;
    uint64_t first, count;
    unsigned char *memory;
    size_t bytes;
    pthread_barrier_t *start;
    double seconds;
    bool keep_open;
    ckb_writer *writer;
} job;

static void job_open(job *j, const ckb_geometry *geometry)
{
    j->bytes = ckb_writer_memory(geometry, NULL);
    j->memory = memory_map(j->bytes);
    must(ckb_writer_open(j->volume, NULL, j->memory, j->bytes, &j->writer), "writer");
}

static void job_write(job *j)
{
    const unsigned char *end = source + SOURCE_BYTES - CHUNK_BYTES;
    const unsigned char *from = source;
    for (uint64_t n = j->first; n < j->first + j->count; n++) {
        ckb_chunk_id id = {j->container, n / CHUNKS_PER_BLOCK, (uint32_t)(n % CHUNKS_PER_BLOCK)};
        must(ckb_chunk_write(j->writer, &id, from, CHUNK_BYTES, 0), "write");
        from = from + CHUNK_BYTES <= end ? from + CHUNK_BYTES : source;
    }
}

static void *job_run(void *argument)
{
    job *j = (job *)argument;
    pthread_barrier_wait(j->start);
    double start = seconds_now();
    job_write(j);
    must(ckb_writer_commit(j->writer), "commit");
    j->seconds = seconds_now() - start;
    return NULL;
}

/* Chunks per second of some threads, each with its own container and writer, the final commit included. */
static double write_rate(const ckb_medium *medium, unsigned threads, uint64_t chunks)
{
    store s;
    job jobs[8];
    pthread_t ids[8];
    pthread_barrier_t start;
    store_open(&s, medium, chunks * threads, threads);
    pthread_barrier_init(&start, NULL, threads);
    for (unsigned i = 0; i < threads; i++) {
        jobs[i] = (job){.volume = s.volume, .container = 1 + i, .count = chunks, .start = &start};
        job_open(&jobs[i], &medium->geometry);
        if (pthread_create(&ids[i], NULL, job_run, &jobs[i]) != 0)
            die("thread", "cannot be made");
    }
    double slowest = 0;
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        slowest = jobs[i].seconds > slowest ? jobs[i].seconds : slowest;
    }
    store_close(&s, false);
    for (unsigned i = 0; i < threads; i++)
        memory_unmap(jobs[i].memory, jobs[i].bytes);
    pthread_barrier_destroy(&start);
    return (double)(chunks * threads) / slowest;
}

/* ------------------------------------------------------------------------------------------------ >>ram */

static uint64_t room_for(uint64_t chunks)
{
    uint64_t bytes = chunks * (CHUNK_BYTES + 80) + 24 * SEGMENT_BYTES;
    return bytes / SEGMENT_BYTES * SEGMENT_BYTES;
}

/* Copies and checksums the same bytes to memory of the same size: the least that the work takes. */
static double plain_rate(unsigned char *to, uint64_t chunks)
{
    const unsigned char *end = source + SOURCE_BYTES - CHUNK_BYTES;
    const unsigned char *from = source;
    uint32_t sum = 0;
    double start = seconds_now();
    for (uint64_t n = 0; n < chunks; n++) {
        memcpy(to + n * CHUNK_BYTES, from, CHUNK_BYTES);
        sum ^= ckb_crc32c(0, from, CHUNK_BYTES);
        from = from + CHUNK_BYTES <= end ? from + CHUNK_BYTES : source;
    }
    keep(sum);
    return (double)chunks / (seconds_now() - start);
}

static void ram_rows(void)
{
    double plain[ROUNDS], one[ROUNDS], two[ROUNDS], twice[ROUNDS];
    size_t bytes = (size_t)room_for((uint64_t)2 * RAM_CHUNKS);
    unsigned char *memory = memory_map(bytes), *other = memory_map(bytes);
    ckb_ram ram;
    ckb_medium medium;
    must(ckb_ram_medium(&ram, &medium, memory, bytes, SEGMENT_BYTES, 512), "RAM medium");
    for (unsigned i = 0; i < ROUNDS; i++) {
        plain[i] = plain_rate(other, RAM_CHUNKS) / 1e3;
        one[i] = write_rate(&medium, 1, RAM_CHUNKS) / 1e3;
        two[i] = write_rate(&medium, 2, RAM_CHUNKS) / 1e3;
        twice[i] = 2 * one[i];
    }
    row("1 KiB chunks, RAM, 1 thread / memcpy + CRC", one, plain, ROUNDS, 0.60, "k/s");
    row("1 KiB chunks, RAM, 2 threads / 2 x 1 thread", two, twice, ROUNDS, 0.85, "k/s");
    memory_unmap(memory, bytes);
    memory_unmap(other, bytes);
}

/* ----------------------------------------------------------------------------------------------- >>disk */

/* Writes the bytes once through a file that is kept between rounds, as the segments are. */
static double plain_file_rate(const char *path, uint64_t bytes)
{
    int file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (file < 0)
        die(path, "cannot be opened");
    double start = seconds_now();
    for (uint64_t at = 0; at < bytes; at += PLAIN_WRITE_BYTES)
        if (pwrite(file, source + at % SOURCE_BYTES, PLAIN_WRITE_BYTES, (off_t)at) !=
            (ssize_t)PLAIN_WRITE_BYTES)
            die(path, "cannot be written");
    if (fdatasync(file) != 0)
        die(path, "cannot be synced");
    double seconds = seconds_now() - start;
    close(file);
    return (double)bytes / CHUNK_BYTES / seconds;
}

/* A directory for this run; `target` is a volume in it. */
typedef struct place {
    ckb_scratch scratch;
    ckb_target target;
    char plain[CKB_PATH_BYTES + 16];
} place;

static void place_open(place *p, const char *directory, uint64_t chunks)
{
    char error[CKB_ERROR_BYTES];
    ckb_target_options options = {.create = true, .segment_bytes = 4 * SEGMENT_BYTES};
    options.size_bytes = (room_for(chunks) / options.segment_bytes + 8) * options.segment_bytes;
    if (ckb_scratch_create(directory, &p->scratch, error) != CKB_OK)
        die(directory, error);
    if (ckb_target_open(p->scratch.path, &options, &p->target) != CKB_OK) {
        snprintf(error, sizeof error, "%s", p->target.error);
        ckb_scratch_remove(&p->scratch, p->target.error);
        die(directory, error);
    }
    snprintf(p->plain, sizeof p->plain, "%s.plain", p->scratch.path);
}

static void place_close(place *p)
{
    char error[CKB_ERROR_BYTES];
    unlink(p->plain);
    must(ckb_target_close(&p->target), "close");
    if (ckb_scratch_remove(&p->scratch, error) != CKB_OK)
        die("clean up", error);
}

/* The first round of both makes the files and does not count. */
static void disk_row(const char *directory)
{
    static place p;
    double measured[ROUNDS + 1], plain[ROUNDS + 1];
    uint64_t bytes = DISK_CHUNKS * (uint64_t)CHUNK_BYTES / PLAIN_WRITE_BYTES * PLAIN_WRITE_BYTES;
    place_open(&p, directory, DISK_CHUNKS);
    for (unsigned i = 0; i <= ROUNDS; i++) {
        plain[i] = plain_file_rate(p.plain, bytes) / 1e3;
        measured[i] = write_rate(&p.target.medium, 1, DISK_CHUNKS) / 1e3;
    }
    place_close(&p);
    row("1 KiB chunks, disk, + sync / plain 4 MiB", measured + 1, plain + 1, ROUNDS, 0.85, "k/s");
}

/* What fio says about the same bytes in one file, in thousands of writes per second; 0: there is no fio. */
static double fio_rate(const char *path)
{
    char command[CKB_PATH_BYTES + 400], line[256];
    double rate = 0;
    snprintf(command, sizeof command,
             "fio --name=ceiling --filename='%s' --ioengine=psync --bs=1k --rw=write --size=%lu --invalidate=0 "
             "--output-format=terse --terse-version=3 2>/dev/null",
             path, (unsigned long)DISK_CHUNKS * CHUNK_BYTES);
    FILE *output = popen(command, "r");
    while (output && fgets(line, sizeof line, output)) {
        /* Field 49 is the rate of writes; the line is longer than the buffer, fields are counted over parts. */
        static char whole[16384];
        size_t length = strlen(whole);
        snprintf(whole + length, sizeof whole - length, "%s", line);
        const char *at = whole;
        for (unsigned field = 1; field < 49 && at; field++) {
            at = strchr(at, ';');
            at = at ? at + 1 : NULL;
        }
        if (strchr(line, '\n')) {
            rate = at ? strtod(at, NULL) / 1e3 : rate;
            whole[0] = 0;
        }
    }
    if (output)
        pclose(output);
    return rate;
}

static void tmpfs_row(void)
{
    static place p;
    double measured[ROUNDS + 1], fio[ROUNDS + 1];
    place_open(&p, "/dev/shm", DISK_CHUNKS);
    for (unsigned i = 0; i <= ROUNDS; i++) {
        fio[i] = fio_rate(p.plain);
        measured[i] = write_rate(&p.target.medium, 1, DISK_CHUNKS) / 1e3;
        if (fio[i] > 0)
            continue;
        place_close(&p);
        printf("%-44s | SKIPPED: fio is missing or does not run; install fio\n",
               "1 KiB chunks, tmpfs / fio psync");
        return;
    }
    place_close(&p);
    row("1 KiB chunks, tmpfs, 1 thread / fio psync", measured + 1, fio + 1, ROUNDS, 2.0, "k/s");
}

/* --------------------------------------------------------------------------------------------- >>growth */

/* The rate of each tenth of many chunks in one volume. */
static void growth_row(void)
{
    double tenths[10], first[1], last[1];
    size_t bytes = (size_t)room_for(GROWTH_CHUNKS);
    unsigned char *memory = memory_map(bytes);
    ckb_ram ram;
    ckb_medium medium;
    store s;
    must(ckb_ram_medium(&ram, &medium, memory, bytes, SEGMENT_BYTES, 512), "RAM medium");
    store_open(&s, &medium, GROWTH_CHUNKS, 1);
    job j = {.volume = s.volume, .container = 1, .count = GROWTH_CHUNKS / 10};
    job_open(&j, &medium.geometry);
    for (unsigned i = 0; i < 10; i++) {
        double start = seconds_now();
        j.first = i * j.count;
        job_write(&j);
        tenths[i] = (double)j.count / (seconds_now() - start) / 1e3;
    }
    first[0] = tenths[0];
    last[0] = tenths[9];
    row("4 M chunks of 1 KiB, RAM: last / first tenth", last, first, 1, 0.90, "k/s");
    printf("%-44s |", "rate of each tenth, k/s");
    for (unsigned i = 0; i < 10; i++)
        printf(" %.0f", tenths[i]);
    printf("\n%-44s | %.1f bytes (32 to 48 wanted), %.1f with the room that is left\n",
           "index memory of each chunk", (double)s.bytes / (GROWTH_CHUNKS + GROWTH_CHUNKS / 8.0 + 1024),
           (double)s.bytes / GROWTH_CHUNKS);
    store_close(&s, true);
    memory_unmap(j.memory, j.bytes);
    memory_unmap(memory, bytes);
}

int main(int argc, char **argv)
{
    const char *directory = argc > 1 ? argv[1] : ".";
    source = memory_map(SOURCE_BYTES + PLAIN_WRITE_BYTES);
    uint64_t state = 88172645463325252u;
    for (size_t i = 0; i + 8 <= SOURCE_BYTES + PLAIN_WRITE_BYTES; i += 8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        memcpy(source + i, &state, 8);
    }
    double load = 0;
    if (getloadavg(&load, 1) == 1 && load > 0.5)
        printf("warning: other programs are running (load %.1f): the ratios are worth little\n", load);
    printf("%-44s | %-16s | %-16s | %-5s | %-4s |\n", "row", "measured", "ceiling", "ratio", "bar");
    crc_rows();
    ram_rows();
    disk_row(directory);
    tmpfs_row();
    growth_row();
    return 0;
}
