/* Speed against what this machine can do at best, measured in the same run: the rows for checksums, chunks and
 * logs of the table in the design, and how cost grows with what is stored. Medians of interleaved rounds, so
 * that a machine that gets slower or faster meanwhile does so for both sides of a ratio.
 *
 *     ceilings [DIRECTORY [SECTION]]      on disk; the current one by default. SECTION: crc, ram, teragen,
 *                                         disk, tmpfs, mount, log, growth or steady; all by default. Only when it
 *                                         is asked for: mounts, which wants 6 GB of memory
 *
 * A bar that is missed is printed, and is no failure. */
#define _GNU_SOURCE
#include "chunkbench.h"
#include "platform.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
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
#define MOUNT_CHUNKS 1000000u
#define KILLED_CHUNKS 500000u
#define MOUNT_ENTRIES_PER_S 10e6 /* what a mount should take from a checkpoint */
#define KILLED_MOUNT_SECONDS 0.1 /* and how long it may take after a kill -9 */
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

/* Formats and mounts. */
static void store_make(store *s, const ckb_medium *medium, const ckb_config *config)
{
    ckb_format_config fresh = {.max_containers = config->max_containers, .max_logs = config->max_logs};
    ckb_fault fault;
    char text[200];
    must(ckb_volume_id_make(fresh.volume_id, true), "volume id");
    size_t format_bytes = ckb_format_memory(&medium->geometry);
    void *format_memory = memory_map(format_bytes);
    must(ckb_format(medium, &fresh, format_memory, format_bytes, &fault), "format");
    memory_unmap(format_memory, format_bytes);
    s->bytes = ckb_volume_memory(&medium->geometry, config);
    s->memory = memory_map(s->bytes);
    if (ckb_mount(medium, config, s->memory, s->bytes, &s->volume, &fault) != CKB_OK) {
        ckb_fault_text(&fault, text, sizeof text);
        die("mount", text);
    }
}

static void store_open(store *s, const ckb_medium *medium, uint64_t chunks, uint32_t containers)
{
    const ckb_config config = {.max_chunks = chunks + chunks / 8 + 1024, .max_containers = containers};
    store_make(s, medium, &config);
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

/* Prepares segments and checkpoints while a round runs, as a host's thread would. */
typedef struct keeper {
    ckb_volume *volume;
    pthread_t id;
    atomic_bool stop;
} keeper;

static void *keeper_run(void *argument)
{
    keeper *k = (keeper *)argument;
    while (!atomic_load(&k->stop)) {
        bool more = false;
        (void)ckb_maintain(k->volume, 16, &more);
        if (!more)
            usleep(500);
    }
    return NULL;
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

/* -------------------------------------------------------------------------------------------- >>teragen */

#define TERAGEN_ROWS 4000000u
#define TERAGEN_BATCH 64u
#define TERAGEN_SEGMENT_BYTES (((uint64_t)16 << 20) + ((uint64_t)192 << 10)) /* four chunks of 4 MiB */

/* Two writes a row, as the workload does them. */
static void teragen_write(ckb_stream *stream, const unsigned char *rows)
{
    for (unsigned i = 0; i < TERAGEN_BATCH; i++, rows += CKB_TERAGEN_ROW_BYTES) {
        must(ckb_stream_write(stream, rows, CKB_TERAGEN_KEY_BYTES), "write");
        must(ckb_stream_write(stream, rows + CKB_TERAGEN_KEY_BYTES,
                              CKB_TERAGEN_ROW_BYTES - CKB_TERAGEN_KEY_BYTES),
             "write");
    }
}

/* Rows per second made and summed, and written where there is a stream. */
static double teragen_rate(ckb_stream *stream, ckb_writer *writer)
{
    static ckb_crc32_table table;
    static unsigned char rows[TERAGEN_BATCH * CKB_TERAGEN_ROW_BYTES];
    ckb_teragen teragen;
    ckb_teragen_sum sum = {0, 0};
    ckb_crc32_table_init(&table);
    ckb_teragen_seek(&teragen, 0);
    double start = seconds_now();
    for (unsigned n = 0; n < TERAGEN_ROWS; n += TERAGEN_BATCH) {
        ckb_teragen_make(&teragen, rows, TERAGEN_BATCH);
        ckb_teragen_add(&sum, &table, rows, TERAGEN_BATCH);
        if (stream)
            teragen_write(stream, rows);
    }
    if (stream) {
        must(ckb_stream_close(stream, 0), "close");
        must(ckb_writer_commit(writer), "commit");
    }
    keep((uint32_t)sum.low);
    return TERAGEN_ROWS / (seconds_now() - start);
}

static void teragen_row(void)
{
    double measured[ROUNDS], plain[ROUNDS];
    size_t bytes = (size_t)((uint64_t)TERAGEN_ROWS * CKB_TERAGEN_ROW_BYTES / TERAGEN_SEGMENT_BYTES + 16) *
                   (size_t)TERAGEN_SEGMENT_BYTES;
    unsigned char *memory = memory_map(bytes);
    ckb_ram ram;
    ckb_medium medium;
    must(ckb_ram_medium(&ram, &medium, memory, bytes, TERAGEN_SEGMENT_BYTES, 512), "RAM medium");
    size_t stream_bytes = ckb_stream_memory(&medium.geometry, NULL);
    unsigned char *stream_memory = memory_map(stream_bytes);
    for (unsigned i = 0; i < ROUNDS; i++) {
        store s;
        ckb_stream *stream;
        store_open(&s, &medium, 4096, 1);
        job j = {.volume = s.volume};
        job_open(&j, &medium.geometry);
        must(ckb_stream_open(j.writer, 1, 0, NULL, 0, stream_memory, stream_bytes, &stream), "stream");
        plain[i] = teragen_rate(NULL, NULL) / 1e3;
        measured[i] = teragen_rate(stream, j.writer) / 1e3;
        store_close(&s, false);
        memory_unmap(j.memory, j.bytes);
    }
    row("TeraGen rows, RAM, 1 thread / make + CRC-32", measured, plain, ROUNDS, 0.70, "k/s");
    memory_unmap(stream_memory, stream_bytes);
    memory_unmap(memory, bytes);
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

static void place_open(place *p, const char *directory, uint64_t segment_bytes, uint64_t bytes)
{
    char error[CKB_ERROR_BYTES];
    ckb_target_options options = {.create = true, .segment_bytes = segment_bytes};
    options.size_bytes = (bytes / segment_bytes + 8) * segment_bytes;
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
    place_open(&p, directory, 4 * SEGMENT_BYTES, room_for(DISK_CHUNKS));
    for (unsigned i = 0; i <= ROUNDS; i++) {
        plain[i] = plain_file_rate(p.plain, bytes) / 1e3;
        measured[i] = write_rate(&p.target.medium, 1, DISK_CHUNKS) / 1e3;
    }
    place_close(&p);
    row("1 KiB chunks, disk, + sync / plain 4 MiB", measured + 1, plain + 1, ROUNDS, 0.85, "k/s");
}

/* Writes per second of a fio job on one file; 0: there is no fio. */
static double fio_rate(const char *path, const char *work)
{
    char command[CKB_PATH_BYTES + 400], line[256];
    double rate = 0;
    snprintf(
        command, sizeof command,
        "fio --name=ceiling --filename='%s' --ioengine=psync --rw=write --invalidate=0 --output-format=terse "
        "--terse-version=3 %s 2>/dev/null",
        path, work);
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
            rate = at ? strtod(at, NULL) : rate;
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
    char work[64];
    snprintf(work, sizeof work, "--bs=1k --size=%lu", (unsigned long)DISK_CHUNKS * CHUNK_BYTES);
    place_open(&p, "/dev/shm", 4 * SEGMENT_BYTES, room_for(DISK_CHUNKS));
    for (unsigned i = 0; i <= ROUNDS; i++) {
        fio[i] = fio_rate(p.plain, work) / 1e3;
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

/* ---------------------------------------------------------------------------------------------- >>mount */

/* Seconds that a mount takes, into memory whose pages are all there. */
static double mount_seconds(const ckb_medium *medium, const ckb_config *config, ckb_stat *stat)
{
    size_t bytes = ckb_volume_memory(&medium->geometry, config);
    unsigned char *memory = memory_map(bytes);
    ckb_volume *volume;
    double start = seconds_now();
    must(ckb_mount(medium, config, memory, bytes, &volume, NULL), "mount");
    double seconds = seconds_now() - start;
    ckb_volume_stat(volume, stat);
    must(ckb_unmount(volume), "unmount");
    memory_unmap(memory, bytes);
    return seconds;
}

/* Chunks per second of mounts of one volume, the index of which has room for an eighth more. */
static void mount_rates(const ckb_medium *medium, bool ignore, double *rates, ckb_stat *stat)
{
    const ckb_config config = {
        .max_chunks = MOUNT_CHUNKS / 8 * 9, .read_only = true, .ignore_checkpoint = ignore};
    for (unsigned i = 0; i < ROUNDS; i++) {
        double seconds = mount_seconds(medium, &config, stat);
        rates[i] = (double)stat->index_used / seconds / 1e3;
    }
}

/* A volume in RAM with a checkpoint of all chunks but those of the segment that is open. */
static void mount_rows(void)
{
    double with[ROUNDS], without[ROUNDS], bound[ROUNDS];
    const ckb_config config = {.max_chunks = MOUNT_CHUNKS / 8 * 9, .checkpoint_records = 1};
    size_t bytes = (size_t)room_for(MOUNT_CHUNKS + MOUNT_CHUNKS / 3);
    unsigned char *memory = memory_map(bytes);
    ckb_ram ram;
    ckb_medium medium;
    ckb_stat stat;
    store s;
    must(ckb_ram_medium(&ram, &medium, memory, bytes, SEGMENT_BYTES, 512), "RAM medium");
    store_make(&s, &medium, &config);
    must(ckb_container_create(s.volume, 1), "container");
    job j = {.volume = s.volume, .container = 1, .count = MOUNT_CHUNKS};
    job_open(&j, &medium.geometry);
    job_write(&j);
    must(ckb_writer_close(j.writer), "close");
    for (bool more = true; more;)
        must(ckb_maintain(s.volume, 1000, &more), "maintain");
    store_close(&s, false);
    mount_rates(&medium, false, with, &stat);
    if (stat.mount_entries != MOUNT_CHUNKS)
        die("mount", "there is no checkpoint");
    mount_rates(&medium, true, without, &stat);
    for (unsigned i = 0; i < ROUNDS; i++)
        bound[i] = MOUNT_ENTRIES_PER_S / 1e3;
    row("mount of 1 M chunks, RAM, with a checkpoint", with, bound, ROUNDS, 1.0, "k/s");
    row("mount of 1 M chunks, RAM: without / with", without, with, ROUNDS, 0, "k/s");
    memory_unmap(j.memory, j.bytes);
    memory_unmap(memory, bytes);
}

/* Writes chunks with a thread for upkeep, makes them durable, and is killed. */
static void write_until_killed(const ckb_medium *medium)
{
    store s;
    keeper k = {.volume = NULL};
    store_open(&s, medium, KILLED_CHUNKS, 1);
    job j = {.volume = s.volume, .container = 1, .count = KILLED_CHUNKS};
    job_open(&j, &medium->geometry);
    k.volume = s.volume;
    if (pthread_create(&k.id, NULL, keeper_run, &k) != 0)
        die("thread", "cannot be made");
    job_write(&j);
    must(ckb_writer_commit(j.writer), "commit");
    raise(SIGKILL);
}

static void killed_row(const char *directory)
{
    static place p;
    double measured[3], bound[3];
    const ckb_config config = {.max_chunks = KILLED_CHUNKS / 8 * 9 + 1024, .read_only = true};
    ckb_stat stat;
    place_open(&p, directory, SEGMENT_BYTES, room_for(KILLED_CHUNKS + KILLED_CHUNKS / 4));
    for (unsigned i = 0; i < 3; i++) {
        int how;
        pid_t child = fork();
        if (child == 0)
            write_until_killed(&p.target.medium);
        if (child < 0 || waitpid(child, &how, 0) != child || !WIFSIGNALED(how))
            die("child", "was not killed");
        double seconds = mount_seconds(&p.target.medium, &config, &stat);
        if (stat.index_used != KILLED_CHUNKS || stat.clean)
            die("mount", "not what was written");
        measured[i] = KILLED_CHUNKS / seconds / 1e3;
        bound[i] = KILLED_CHUNKS / KILLED_MOUNT_SECONDS / 1e3;
    }
    place_close(&p);
    row("mount after kill -9 of 500 k chunks / 100 ms", measured, bound, 3, 1.0, "k/s");
    printf("%-44s | %.1f ms; %llu of the chunks from a checkpoint\n", "that mount",
           KILLED_CHUNKS / median(measured, 3), (unsigned long long)stat.mount_entries);
}

/* ------------------------------------------------------------------------------------------------ >>log */

#define ENTRY_BYTES 256u
#define LOG_THREADS 16u
#define LOG_ROUNDS 21u /* short ones: what a sync takes changes from second to second */
#define LOG_SECONDS 0.4
#define LOG_VOLUME_BYTES (UINT64_C(512) << 20)
#define LOG_SMALL_BYTES (UINT64_C(128) << 20) /* in segments of 16 KiB */
#define LOG_SMALL_SEGMENT UINT64_C(16384)
#define LOG_FILE_BYTES (UINT64_C(64) << 20) /* of the plain file, which is used in turn */

/* Calls `append` from some threads for as long as a round takes. */
typedef struct contest {
    int (*append)(void *context, const void *data);
    void *context;
    pthread_barrier_t start;
    double end; /* when to stop */
} contest;

typedef struct contestant {
    contest *of;
    uint64_t first; /* place of its first entry in the source */
    uint64_t done;
    double ended;
} contestant;

static void *contest_run(void *argument)
{
    contestant *c = (contestant *)argument;
    uint64_t at = c->first;
    pthread_barrier_wait(&c->of->start);
    while ((c->ended = seconds_now()) < c->of->end) {
        must(c->of->append(c->of->context, source + at % SOURCE_BYTES), "append");
        at += ENTRY_BYTES;
        c->done++;
    }
    return NULL;
}

/* Appends per second. */
static double contest_rate(int (*append)(void *context, const void *data), void *context, unsigned threads)
{
    contest all = {.append = append, .context = context};
    contestant each[LOG_THREADS];
    pthread_t ids[LOG_THREADS];
    uint64_t done = 0;
    double begin, last = 0;
    pthread_barrier_init(&all.start, NULL, threads + 1);
    for (unsigned i = 0; i < threads; i++) {
        each[i] = (contestant){.of = &all, .first = i * (SOURCE_BYTES / LOG_THREADS)};
        if (pthread_create(&ids[i], NULL, contest_run, &each[i]) != 0)
            die("thread", "cannot be made");
    }
    begin = seconds_now();
    all.end = begin + LOG_SECONDS;
    pthread_barrier_wait(&all.start);
    for (unsigned i = 0; i < threads; i++) {
        pthread_join(ids[i], NULL);
        done += each[i].done;
        last = each[i].ended > last ? each[i].ended : last;
    }
    pthread_barrier_destroy(&all.start);
    return (double)done / (last - begin);
}

/* The rival that has nothing but a file: preallocated, its blocks written before. */
typedef struct plain_log {
    int file;
    uint64_t at;
} plain_log;

static int plain_append(void *context, const void *data)
{
    plain_log *p = (plain_log *)context;
    if (pwrite(p->file, data, ENTRY_BYTES, (off_t)(p->at % LOG_FILE_BYTES)) != ENTRY_BYTES)
        return CKB_IO;
    p->at += ENTRY_BYTES;
    return fdatasync(p->file) == 0 ? CKB_OK : CKB_IO;
}

static void plain_open(plain_log *p, const char *path)
{
    p->at = 0;
    p->file = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (p->file < 0)
        die(path, "cannot be opened");
    for (uint64_t at = 0; at < LOG_FILE_BYTES; at += PLAIN_WRITE_BYTES)
        if (pwrite(p->file, source, PLAIN_WRITE_BYTES, (off_t)at) != (ssize_t)PLAIN_WRITE_BYTES)
            die(path, "cannot be written");
    if (fsync(p->file) != 0)
        die(path, "cannot be synced");
}

static int log_append(void *context, const void *data)
{
    return ckb_log_append((ckb_log *)context, 0, data, ENTRY_BYTES, CKB_DURABLE, NULL);
}

/* Durable appends per second to a log in a new volume. */
static double log_rate(const ckb_medium *medium, unsigned threads)
{
    const ckb_config config = {.max_logs = 1,
                               .prepare_ahead = medium->geometry.segment_bytes < 1048576 ? 64 : 4};
    store s;
    keeper k = {.volume = NULL};
    ckb_log *log;
    size_t bytes = ckb_log_memory(&medium->geometry, NULL);
    unsigned char *memory = memory_map(bytes);
    double rate;
    store_make(&s, medium, &config);
    must(ckb_log_create(s.volume, "ceiling", 0), "log");
    must(ckb_log_open(s.volume, "ceiling", NULL, memory, bytes, &log, NULL), "log");
    k.volume = s.volume;
    (void)ckb_maintain(s.volume, 1000, NULL);
    if (pthread_create(&k.id, NULL, keeper_run, &k) != 0)
        die("thread", "cannot be made");
    rate = contest_rate(log_append, log, threads);
    atomic_store(&k.stop, true);
    pthread_join(k.id, NULL);
    must(ckb_log_close(log), "close");
    store_close(&s, false);
    memory_unmap(memory, bytes);
    return rate;
}

/* SQLite, found when the program runs: it is built without. These are the few functions that are needed, as
 * sqlite3.h declares them; its objects are opaque anyway. */
typedef struct sqlite {
    int (*open_v2)(const char *path, void **connection, int flags, const char *vfs);
    int (*exec)(void *connection, const char *text, void *callback, void *context, char **message);
    int (*prepare_v2)(void *connection, const char *text, int bytes, void **statement, const char **tail);
    int (*bind_blob)(void *statement, int place, const void *data, int bytes, void (*release)(void *));
    int (*step)(void *statement);
    int (*reset)(void *statement);
    int (*finalize)(void *statement);
    int (*close)(void *connection);
    const char *(*libversion)(void);
    void *library, *connection, *insert;
    pthread_mutex_t mutex;
    char path[CKB_PATH_BYTES + 32];
} sqlite;

#define SQLITE_FLAGS 0x6 /* SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE */
#define SQLITE_STEP_DONE 101

static bool sqlite_find(sqlite *q)
{
    const struct {
        const char *name;
        void *function; /* where its address goes */
    } wanted[] = {{"sqlite3_open_v2", &q->open_v2},
                  {"sqlite3_exec", &q->exec},
                  {"sqlite3_prepare_v2", &q->prepare_v2},
                  {"sqlite3_bind_blob", &q->bind_blob},
                  {"sqlite3_step", &q->step},
                  {"sqlite3_reset", &q->reset},
                  {"sqlite3_finalize", &q->finalize},
                  {"sqlite3_close", &q->close},
                  {"sqlite3_libversion", &q->libversion}};
    q->library = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
    for (unsigned i = 0; q->library != NULL && i < sizeof wanted / sizeof wanted[0]; i++) {
        void *symbol = dlsym(q->library, wanted[i].name);
        if (symbol == NULL)
            return false;
        memcpy(wanted[i].function, &symbol, sizeof symbol);
    }
    return q->library != NULL;
}

/* False: there is no SQLite. */
static bool sqlite_start(sqlite *q, const char *beside)
{
    if (!sqlite_find(q))
        return false;
    snprintf(q->path, sizeof q->path, "%s.sqlite", beside);
    pthread_mutex_init(&q->mutex, NULL);
    if (q->open_v2(q->path, &q->connection, SQLITE_FLAGS, NULL) != 0 ||
        q->exec(q->connection,
                "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
                "CREATE TABLE entries(i INTEGER PRIMARY KEY, data BLOB)",
                NULL, NULL, NULL) != 0 ||
        q->prepare_v2(q->connection, "INSERT INTO entries(data) VALUES(?)", -1, &q->insert, NULL) != 0)
        die(q->path, "SQLite does not make its table");
    return true;
}

/* One row per commit. The threads share one connection under a mutex: with one each they would wait for the
 * writer's lock asleep, and SQLite would look slower than it has to. */
static int sqlite_append(void *context, const void *data)
{
    sqlite *q = (sqlite *)context;
    bool done;
    pthread_mutex_lock(&q->mutex);
    done = q->bind_blob(q->insert, 1, data, ENTRY_BYTES, NULL) == 0 && q->step(q->insert) == SQLITE_STEP_DONE &&
           q->reset(q->insert) == 0;
    pthread_mutex_unlock(&q->mutex);
    return done ? CKB_OK : CKB_IO;
}

static void sqlite_end(sqlite *q)
{
    static const char *const endings[] = {"", "-wal", "-shm"};
    char name[sizeof q->path + 8];
    q->finalize(q->insert);
    q->close(q->connection);
    for (unsigned i = 0; i < sizeof endings / sizeof endings[0]; i++) {
        snprintf(name, sizeof name, "%s%s", q->path, endings[i]);
        unlink(name);
    }
    pthread_mutex_destroy(&q->mutex);
    dlclose(q->library);
}

typedef struct log_rates {
    double one[LOG_ROUNDS + 1], many[LOG_ROUNDS + 1], many_bound[LOG_ROUNDS + 1], small[LOG_ROUNDS + 1];
    double plain[LOG_ROUNDS + 1], fio[LOG_ROUNDS + 1], sqlite_one[LOG_ROUNDS + 1], sqlite_many[LOG_ROUNDS + 1];
    bool has_fio, has_sqlite;
} log_rates;

static void log_rows_print(const log_rates *r, const char *sqlite_version)
{
    char name[80];
    row("256 B durable, 1 thread / pwrite + fdatasync", r->one + 1, r->plain + 1, LOG_ROUNDS, 0.95, "/s");
    row("256 B durable, 16 threads / 16 x 1 thread", r->many + 1, r->many_bound + 1, LOG_ROUNDS, 0.50, "/s");
    row("256 B durable, 16 KiB / 4 MiB segments", r->small + 1, r->one + 1, LOG_ROUNDS, 0.50, "/s");
    if (r->has_fio)
        row("256 B durable, 1 thread / fio fdatasync=1", r->one + 1, r->fio + 1, LOG_ROUNDS, 0, "/s");
    else
        printf("%-44s | SKIPPED: fio is missing or does not run; install fio\n", "256 B durable / fio");
    if (!r->has_sqlite) {
        printf("%-44s | SKIPPED: libsqlite3.so.0 is missing; install libsqlite3-0\n", "256 B durable / SQLite");
        return;
    }
    snprintf(name, sizeof name, "256 B durable, 1 thread / SQLite %s", sqlite_version);
    row(name, r->one + 1, r->sqlite_one + 1, LOG_ROUNDS, 0, "/s");
    snprintf(name, sizeof name, "256 B durable, 16 threads / SQLite %s", sqlite_version);
    row(name, r->many + 1, r->sqlite_many + 1, LOG_ROUNDS, 0, "/s");
}

/* The first round makes the files of all and does not count. */
static void log_rows(const char *directory)
{
    static place large, little;
    static sqlite q;
    static log_rates r;
    plain_log plain;
    char work[160];
    place_open(&large, directory, SEGMENT_BYTES, LOG_VOLUME_BYTES);
    place_open(&little, directory, LOG_SMALL_SEGMENT, LOG_SMALL_BYTES);
    plain_open(&plain, large.plain);
    r.has_sqlite = sqlite_start(&q, large.scratch.path);
    r.has_fio = true;
    snprintf(work, sizeof work,
             "--bs=%u --size=%lu --overwrite=1 --fallocate=none --fdatasync=1 --time_based --runtime=%.0fms",
             ENTRY_BYTES, (unsigned long)LOG_FILE_BYTES, LOG_SECONDS * 1e3);
    for (unsigned i = 0; i <= LOG_ROUNDS; i++) {
        r.plain[i] = contest_rate(plain_append, &plain, 1);
        r.one[i] = log_rate(&large.target.medium, 1);
        r.small[i] = log_rate(&little.target.medium, 1);
        r.many[i] = log_rate(&large.target.medium, LOG_THREADS);
        r.many_bound[i] = LOG_THREADS * r.one[i];
        r.fio[i] = fio_rate(large.plain, work);
        r.has_fio = r.has_fio && r.fio[i] > 0;
        r.sqlite_one[i] = r.has_sqlite ? contest_rate(sqlite_append, &q, 1) : 0;
        r.sqlite_many[i] = r.has_sqlite ? contest_rate(sqlite_append, &q, LOG_THREADS) : 0;
    }
    log_rows_print(&r, r.has_sqlite ? q.libversion() : "");
    if (r.has_sqlite)
        sqlite_end(&q);
    close(plain.file);
    place_close(&little);
    place_close(&large);
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

/* --------------------------------------------------------------------------------------------- >>mounts */

#define SMALL_CHUNK_BYTES 64u /* so that ten million and what is to be read of them fit into memory */

/* Chunks `from` to `to` in blocks of 16, made durable. */
static void small_write(const store *s, const ckb_medium *medium, uint64_t from, uint64_t to)
{
    job j = {.volume = s->volume};
    job_open(&j, &medium->geometry);
    for (uint64_t n = from; n < to; n++) {
        ckb_chunk_id id = {1, n / CHUNKS_PER_BLOCK, (uint32_t)(n % CHUNKS_PER_BLOCK)};
        must(ckb_chunk_write(j.writer, &id, source + n % 4096, SMALL_CHUNK_BYTES, 0), "write");
    }
    must(ckb_writer_commit(j.writer), "commit");
    must(ckb_writer_close(j.writer), "close");
    memory_unmap(j.memory, j.bytes);
}

/* The median of three mounts, and where its chunks came from. */
static void mounts_print(const char *what, const ckb_medium *medium, uint64_t chunks, bool ignore)
{
    const ckb_config config = {
        .max_chunks = chunks / 8 * 9 + 1024, .read_only = true, .ignore_checkpoint = ignore};
    double seconds[3];
    ckb_stat stat;
    for (unsigned i = 0; i < 3; i++)
        seconds[i] = mount_seconds(medium, &config, &stat);
    if (stat.index_used != chunks || (stat.mount_entries == 0) != ignore)
        die("mount", "not what was written, or not from the checkpoint");
    double took = median(seconds, 3);
    printf("mount of %4.1f M chunks, RAM, %-22s | %8.1f ms | %6.2f M entries/s | %8llu from the checkpoint, %u "
           "segments read, %u by summaries\n",
           (double)chunks / 1e6, what, took * 1e3, (double)chunks / took / 1e6,
           (unsigned long long)stat.mount_entries, stat.mount_scanned, stat.mount_summaries);
    fflush(stdout);
}

/* With a checkpoint of all, without, and after a crash with a hundredth more written. */
static void mounts_of(uint64_t chunks)
{
    uint64_t more = chunks / 100;
    const ckb_config config = {.max_chunks = chunks / 8 * 9 + 1024, .checkpoint_records = 1};
    /* A checkpoint takes up to an eighth of what is free. */
    size_t bytes =
        (size_t)((chunks + more) * (SMALL_CHUNK_BYTES + 80 + 10 * 32) / SEGMENT_BYTES + 32) * SEGMENT_BYTES;
    unsigned char *memory = memory_map(bytes);
    ckb_ram ram;
    ckb_medium medium;
    store s;
    must(ckb_ram_medium(&ram, &medium, memory, bytes, SEGMENT_BYTES, 512), "RAM medium");
    store_make(&s, &medium, &config);
    must(ckb_container_create(s.volume, 1), "container");
    small_write(&s, &medium, 0, chunks);
    for (bool busy = true; busy;)
        must(ckb_maintain(s.volume, 1000, &busy), "maintain");
    store_close(&s, false);
    mounts_print("with a checkpoint", &medium, chunks, false);
    mounts_print("without", &medium, chunks, true);
    const ckb_config later = {.max_chunks = chunks / 8 * 9 + 1024, .checkpoint_records = UINT32_MAX};
    s.bytes = ckb_volume_memory(&medium.geometry, &later);
    s.memory = memory_map(s.bytes);
    must(ckb_mount(&medium, &later, s.memory, s.bytes, &s.volume, NULL), "mount");
    small_write(&s, &medium, chunks, chunks + more);
    store_close(&s, true);
    mounts_print("crash, 1 % more", &medium, chunks + more, false);
    printf("%-46s | %.1f bytes a chunk\n", "memory of that mount",
           (double)ckb_volume_memory(&medium.geometry, &later) / ((double)chunks / 8 * 9 + 1024));
    memory_unmap(memory, bytes);
}

/* --------------------------------------------------------------------------------------------- >>steady */

#define STEADY_BYTES (UINT64_C(512) << 20)
#define STEADY_SEGMENT (UINT64_C(1) << 20)
#define STEADY_LIVE_PERCENT 80
#define STEADY_TIMES 10u

/* live, dead, free and reserved bytes make the volume, at any time. */
static void steady_sums(ckb_volume *volume, ckb_stat *stat)
{
    ckb_volume_stat(volume, stat);
    if (stat->live_bytes + stat->dead_bytes + stat->free_bytes + stat->reserved_bytes !=
        stat->geometry.segment_bytes * stat->geometry.segment_count)
        die("steady state", "space leaks");
}

static void steady_overwrite(job *j, uint64_t chunk, unsigned flags, ckb_histogram *latency)
{
    ckb_chunk_id id = {1, chunk / CHUNKS_PER_BLOCK, (uint32_t)(chunk % CHUNKS_PER_BLOCK)};
    uint64_t start = ckb_host_clock_ns();
    must(ckb_chunk_write(j->writer, &id, source + chunk * 64 % (SOURCE_BYTES / 2), CHUNK_BYTES, flags),
         "write");
    ckb_histogram_add(latency, ckb_host_clock_ns() - start);
}

/* A volume of which 80 % are live chunks is overwritten at random, ten times all of it, and a thread maintains. */
static void steady_row(void)
{
    double tenths[STEADY_TIMES], amplified[STEADY_TIMES], second[1], last[1];
    uint64_t moved = 0;
    size_t bytes = (size_t)STEADY_BYTES, latency_bytes = ckb_histogram_memory(2);
    unsigned char *memory = memory_map(bytes), *latency_memory = memory_map(latency_bytes);
    uint64_t chunks = STEADY_BYTES * STEADY_LIVE_PERCENT / 100 / (CHUNK_BYTES + 40 + 32), random = 1;
    uint64_t each = STEADY_BYTES / CHUNK_BYTES;
    ckb_histogram latency;
    ckb_latency all;
    ckb_ram ram;
    ckb_medium medium;
    ckb_stat stat;
    store s;
    keeper k = {.volume = NULL};
    must(ckb_ram_medium(&ram, &medium, memory, bytes, STEADY_SEGMENT, 512), "RAM medium");
    must(ckb_histogram_init(&latency, 2, latency_memory, latency_bytes), "histogram");
    store_open(&s, &medium, chunks, 1);
    job j = {.volume = s.volume};
    job_open(&j, &medium.geometry);
    for (uint64_t n = 0; n < chunks; n++)
        steady_overwrite(&j, n, 0, &latency);
    must(ckb_histogram_init(&latency, 2, latency_memory, latency_bytes), "histogram");
    k.volume = s.volume;
    if (pthread_create(&k.id, NULL, keeper_run, &k) != 0)
        die("thread", "cannot be made");
    for (unsigned i = 0; i < STEADY_TIMES; i++) {
        double start = seconds_now();
        for (uint64_t n = 0; n < each; n++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            steady_overwrite(&j, (random >> 33) % chunks, CKB_OVERWRITE, &latency);
            if (n % 4096 == 0)
                steady_sums(s.volume, &stat);
        }
        tenths[i] = (double)each / (seconds_now() - start) / 1e3;
        steady_sums(s.volume, &stat);
        amplified[i] = 1 + (double)(stat.compacted_bytes - moved) / (double)(each * (CHUNK_BYTES + 72));
        moved = stat.compacted_bytes;
    }
    atomic_store(&k.stop, true);
    pthread_join(k.id, NULL);
    must(ckb_writer_commit(j.writer), "commit");
    steady_sums(s.volume, &stat);
    ckb_histogram_latency(&latency, &all);
    second[0] = tenths[1];
    last[0] = tenths[STEADY_TIMES - 1];
    row("overwrites at 80 % live: last / second tenth", last, second, 1, 1.0, "k/s");
    printf("%-44s |", "rate of each tenth, k/s");
    for (unsigned i = 0; i < STEADY_TIMES; i++)
        printf(" %.0f", tenths[i]);
    printf("\n%-44s |", "writes amplified in each tenth, times");
    for (unsigned i = 0; i < STEADY_TIMES; i++)
        printf(" %.2f", amplified[i]);
    double user = (double)(each * STEADY_TIMES * (CHUNK_BYTES + 72));
    printf(
        "\n%-44s | writes amplified %.2f times, p99 %.1f us, longest stall %.1f ms, %.0f %% live at the end\n",
        "what that takes", 1 + (double)stat.compacted_bytes / user, (double)all.p99 / 1e3,
        (double)all.max / 1e6, 100.0 * (double)stat.live_bytes / (double)STEADY_BYTES);
    store_close(&s, true);
    memory_unmap(j.memory, j.bytes);
    memory_unmap(latency_memory, latency_bytes);
    memory_unmap(memory, bytes);
}

/* Whether a section of the report is wanted. */
static bool wanted(int argc, char **argv, const char *section)
{
    return argc < 3 || strcmp(argv[2], section) == 0;
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
    if (wanted(argc, argv, "crc"))
        crc_rows();
    if (wanted(argc, argv, "ram"))
        ram_rows();
    if (wanted(argc, argv, "teragen"))
        teragen_row();
    if (wanted(argc, argv, "disk"))
        disk_row(directory);
    if (wanted(argc, argv, "mount")) {
        mount_rows();
        killed_row(directory);
    }
    if (wanted(argc, argv, "tmpfs"))
        tmpfs_row();
    if (wanted(argc, argv, "log"))
        log_rows(directory);
    if (wanted(argc, argv, "growth"))
        growth_row();
    if (wanted(argc, argv, "steady"))
        steady_row();
    if (argc > 2 && wanted(argc, argv, "mounts")) {
        mounts_of(1000000);
        mounts_of(10000000);
    }
    return 0;
}
