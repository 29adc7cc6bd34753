/* The command line: parse, open the target, install the hooks, run, print. What a workload does and which
 * options it takes stands in chunkbench.h; what touches the system stands in platform/. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include "chunkbench.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "platform/platform.h"

enum { EXIT_GOOD = 0, EXIT_FAILED = 1, EXIT_USAGE = 2, EXIT_IO = 3, EXIT_CORRUPT = 4, EXIT_SPACE = 5 };

#define MESSAGE_BYTES 1600u
#define OWN_OPTIONS_MAX 12u
#define OPERANDS_MAX 3u
#define PUT_CHUNK_BYTES (UINT64_C(4) << 20)
#define CONTAINERS_STANDARD 256u
#define LOGS_STANDARD 16u
#define BENCH_LOG_NAME "bench" /* of the log that `log --keep` leaves */
#define SCRATCH_SEGMENT_MAX (UINT64_C(16) << 20)
#define SCRATCH_SEGMENTS_MAX (UINT64_C(1) << 17)

/* One command as it was typed. */
typedef struct invocation {
    const struct command *command;
    const ckb_workload *workload;                      /* null for the commands of the store */
    ckb_option_value values[CKB_WORKLOAD_OPTIONS_MAX]; /* of the workload's options */
    ckb_option_value own[OWN_OPTIONS_MAX];             /* of the command's */
    const char *operands[OPERANDS_MAX];
    uint32_t operand_count;
    char *command_line;
} invocation;

typedef struct command {
    const char *name;
    const char *summary;
    const char *operands; /* as shown in the help */
    uint32_t operands_min, operands_max;
    const ckb_option *options;
    uint32_t option_count;
    const char *examples;
    int (*run)(invocation *call);
    bool is_workload;
} command;

/* ---- messages, streams, signals ---- */

static volatile sig_atomic_t signal_number;

static void handle_signal(int number)
{
    if (signal_number != 0)
        _exit(128 + number);
    signal_number = number;
}

/* A signal that was ignored when we started (nohup) stays ignored. */
static void install_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP};
    struct sigaction action, old;
    memset(&action, 0, sizeof action);
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        action.sa_handler = handle_signal;
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            (void)sigaction(numbers[i], &action, NULL);
    }
    action.sa_handler = SIG_IGN;
    (void)sigaction(SIGPIPE, &action, NULL);
    (void)sigaction(SIGXFSZ, &action, NULL);
}

/* Descriptors 0 to 2 that are closed would be given to the next file opened, and messages would go into a
 * segment. They are opened the wrong way round, so that using one is still an error. */
static void occupy_standard_descriptors(void)
{
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
}

/* Complaints are held back: whoever set this tries again before it gives up. */
static bool held_back;
static char last_complaint[MESSAGE_BYTES]; /* for a JSON document about it */

static int complain(const invocation *call, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Says what is wrong, in one line. Returns nothing of use but 0, so that callers say their exit code. */
static int complain(const invocation *call, const char *format, ...)
{
    char *text = last_complaint;
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof last_complaint, format, values);
    va_end(values);
    if (held_back)
        return 0;
    if (call != NULL)
        (void)fprintf(stderr, "chunkbench %s: %s\n", call->command->name, text);
    else
        (void)fprintf(stderr, "chunkbench: %s\n", text);
    return 0;
}

/* What a status is for the caller's shell, once the command line was understood. */
static int exit_code(int status)
{
    switch (status) {
    case CKB_OK:
        return EXIT_GOOD;
    case CKB_IO:
    case CKB_FAILED:
        return EXIT_IO;
    case CKB_CORRUPT:
        return EXIT_CORRUPT;
    case CKB_NOSPACE:
        return EXIT_SPACE;
    case CKB_INVALID:
    case CKB_TOOBIG:
        return EXIT_USAGE;
    default:
        return EXIT_FAILED;
    }
}

/* A target that cannot be what was asked for is a usage error; nothing was touched. */
static int open_exit_code(int status)
{
    int code = exit_code(status);
    return code == EXIT_FAILED ? EXIT_USAGE : code;
}

static int write_all(int file, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t written = write(file, at, bytes);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return CKB_IO;
        at += written;
        bytes -= (size_t)written;
    }
    return CKB_OK;
}

static int sink_stream(void *context, const char *text, size_t bytes)
{
    return fwrite(text, 1, bytes, context) == bytes ? CKB_OK : CKB_IO;
}

static ckb_sink stream_sink(FILE *stream)
{
    ckb_sink sink = {stream, sink_stream};
    return sink;
}

/* Results that did not reach stdout are lost results. */
static int finish_stdout(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        (void)fprintf(stderr, "chunkbench: stdout: %s\n", strerror(errno));
        return code == EXIT_GOOD ? EXIT_IO : code;
    }
    return code;
}

static void json_string(FILE *stream, const char *text)
{
    (void)fputc('"', stream);
    for (const unsigned char *at = (const unsigned char *)text; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            (void)fprintf(stream, "\\%c", *at);
        else if (*at < 0x20 || *at >= 0x7f) /* names of files need not be UTF-8: their bytes, as Latin-1 */
            (void)fprintf(stream, "\\u%04x", *at);
        else
            (void)fputc(*at, stream);
    }
    (void)fputc('"', stream);
}

static bool flag(const ckb_option_value *value)
{
    return value->count != 0;
}

/* ---- the target of a benchmark ---- */

typedef struct place {
    const char *text; /* as typed */
    ckb_target_kind kind;
    char path[CKB_PATH_BYTES];
    uint64_t size_bytes; /* from the target string */
    bool dry_run, destroy, keep;
    bool has_scratch, is_open, was_created;
    ckb_scratch scratch;
    ckb_bench_need wanted; /* what the open target was asked for */
    bool was_used;         /* since it was opened */
    ckb_bench_target *bench;
    ckb_target target;
    ckb_medium medium; /* the target's, perhaps behind another that measures */
    ckb_volume *volume;
    ckb_config config;
    void *memory;
    size_t memory_bytes;
    char error[CKB_ERROR_BYTES];
} place;

static place bench_place;
static ckb_host_thread bench_threads[1024 + 1]; /* and one for maintenance */

/* How a target is cut into segments. The default size follows from the free space of a directory; runs are
 * short and may have many writers, each with a segment of its own, so that larger ones would mostly be
 * reserved and never written. Small segments do not fill the whole target: each costs memory, used or not. */
static void place_shape(place *p, const ckb_bench_need *need, ckb_target_options *options)
{
    uint64_t capacity_bytes, most = need->segment_count;
    ckb_target_options whole = {.create = true};
    ckb_target planned;
    options->segment_bytes = need->segment_bytes;
    if (p->kind == CKB_TARGET_RAM || ckb_target_plan(p->text, &whole, &planned) != CKB_OK)
        return; /* opening it has the last word */
    capacity_bytes = planned.capacity_bytes + planned.unused_bytes;
    if (options->segment_bytes == 0 && p->kind == CKB_TARGET_DIRECTORY) {
        uint64_t standard = planned.medium.geometry.segment_bytes;
        options->segment_bytes = standard < SCRATCH_SEGMENT_MAX ? standard : SCRATCH_SEGMENT_MAX;
    }
    if (options->segment_bytes == 0)
        return;
    if (most == 0 || most > SCRATCH_SEGMENTS_MAX)
        most = SCRATCH_SEGMENTS_MAX;
    if (most < capacity_bytes / options->segment_bytes)
        options->size_bytes = most * options->segment_bytes;
}

/* Is the open target what is needed? Only one that nobody has used yet has nothing to be renewed. */
static bool place_fits(const place *p, const ckb_bench_need *need)
{
    return p->is_open && p->wanted.segment_bytes == need->segment_bytes &&
           (p->kind == CKB_TARGET_RAM || p->wanted.segment_count == need->segment_count) &&
           p->wanted.prepare == need->prepare && p->wanted.max_containers >= need->max_containers &&
           (!need->renew || !p->was_used || p->kind != CKB_TARGET_DIRECTORY);
}

static int place_open(place *p, const ckb_bench_need *need)
{
    ckb_target_options options = {
        .create = true, .destroy = p->destroy, .renew = need->renew, .prepare = (ckb_prepare)need->prepare};
    char image[CKB_PATH_BYTES + 8];
    const char *text = p->text;
    int status;
    if (place_fits(p, need))
        return CKB_OK;
    if (p->is_open)
        (void)ckb_target_close(&p->target);
    p->is_open = false;
    place_shape(p, need, &options);
    if (p->has_scratch) {
        /* Behind "./", or a directory named "ram:1G" or "file:x" would be taken for another kind. */
        (void)snprintf(image, sizeof image, "%s%s", p->scratch.path[0] == '/' ? "" : "./", p->scratch.path);
        text = image;
    }
    status = ckb_target_open(text, &options, &p->target);
    if (status != CKB_OK) {
        (void)snprintf(p->error, sizeof p->error, "%s", p->target.error);
        return status;
    }
    p->is_open = true;
    p->was_created = p->was_created || p->target.created;
    p->was_used = false;
    p->wanted = *need;
    p->bench->volatile_medium = p->target.sync_kind != NULL && strncmp(p->target.sync_kind, "none", 4) == 0;
    return CKB_OK;
}

static int place_describe(void *context, const ckb_bench_need *need, ckb_geometry *geometry,
                          uint64_t *room_bytes)
{
    place *p = context;
    ckb_target_options options = {.create = true, .prepare = (ckb_prepare)need->prepare};
    ckb_target planned;
    int status;
    p->error[0] = '\0';
    if (need->prepare != 0 && p->kind != CKB_TARGET_DIRECTORY) {
        (void)snprintf(p->error, sizeof p->error,
                       "--prepare: only a directory has a choice how a segment gets its space");
        return CKB_INVALID;
    }
    if (!p->dry_run) {
        status = place_open(p, need);
        *geometry = p->target.medium.geometry;
        *room_bytes = p->target.capacity_bytes;
        return status;
    }
    place_shape(p, need, &options);
    status = ckb_target_plan(p->text, &options, &planned);
    (void)snprintf(p->error, sizeof p->error, "%s", planned.error);
    *geometry = planned.medium.geometry;
    *room_bytes = planned.capacity_bytes;
    return status;
}

static int place_mount(place *p, ckb_volume **volume, ckb_fault *fault)
{
    size_t bytes = ckb_volume_memory(&p->target.medium.geometry, &p->config);
    int status;
    p->volume = NULL;
    if (bytes == 0)
        return CKB_INVALID;
    if (bytes > p->memory_bytes) {
        free(p->memory);
        p->memory = malloc(bytes);
        p->memory_bytes = p->memory != NULL ? bytes : 0;
    }
    if (p->memory == NULL) {
        (void)snprintf(p->error, sizeof p->error, "no memory: %zu bytes for the index of %" PRIu64 " chunks",
                       bytes, p->config.max_chunks);
        return CKB_NOSPACE;
    }
    status = ckb_mount(&p->medium, &p->config, p->memory, p->memory_bytes, &p->volume, fault);
    if (status != CKB_OK)
        p->volume = NULL;
    *volume = p->volume;
    return status;
}

/* Formats; the id says that a benchmark may do it again. */
static int format_target(const ckb_target *target, bool scratch, uint32_t max_containers, uint32_t max_logs,
                         ckb_fault *fault)
{
    ckb_format_config config = {.max_containers = max_containers, .max_logs = max_logs};
    size_t bytes = ckb_format_memory(&target->medium.geometry);
    void *memory = malloc(bytes);
    int status = memory == NULL ? CKB_NOSPACE : ckb_volume_id_make(config.volume_id, scratch);
    if (status == CKB_OK)
        status = ckb_format(&target->medium, &config, memory, bytes, fault);
    free(memory);
    return status;
}

static int place_fresh(void *context, const ckb_bench_need *need, ckb_volume **volume, ckb_fault *fault)
{
    place *p = context;
    int status = place_open(p, need);
    if (status == CKB_OK)
        status = format_target(&p->target, true, need->max_containers, need->max_logs, fault);
    if (status != CKB_OK)
        return status;
    p->was_used = true;
    p->medium = p->target.medium;
    if (need->wrap != NULL)
        need->wrap(need->wrap_context, &p->medium);
    memset(&p->config, 0, sizeof p->config);
    p->config.max_logs = need->max_logs;
    p->config.max_chunks = need->max_chunks;
    p->config.max_containers = need->max_containers;
    p->config.max_writers = need->max_writers;
    p->config.prepare_ahead = need->prepare_ahead;
    return place_mount(p, volume, fault);
}

static int place_done(void *context)
{
    place *p = context;
    int status = p->volume != NULL ? ckb_unmount(p->volume) : CKB_OK;
    p->volume = NULL;
    return status;
}

static int place_remount(void *context, ckb_volume **volume, ckb_fault *fault)
{
    place *p = context;
    int status = place_done(p);
    return status == CKB_OK ? place_mount(p, volume, fault) : status;
}

static int place_raw(void *context, const ckb_bench_need *need, ckb_medium *medium, ckb_fault *fault)
{
    place *p = context;
    int status = place_open(p, need);
    (void)fault;
    *medium = p->target.medium;
    return status;
}

/* Parses the target string and makes the scratch directory. */
static int place_prepare(place *p, const char *text)
{
    int status;
    p->text = text;
    status = ckb_target_parse(text, &p->kind, p->path, &p->size_bytes, p->error);
    if (status != CKB_OK || p->dry_run || p->kind != CKB_TARGET_DIRECTORY)
        return status;
    status = p->keep ? ckb_scratch_adopt(p->path, &p->scratch, p->error)
                     : ckb_scratch_create(p->path, &p->scratch, p->error);
    p->has_scratch = status == CKB_OK;
    return status;
}

/* Puts everything back as it was, unless it is to be kept. */
static int place_finish(place *p, const invocation *call)
{
    int status = place_done(p), closed = p->is_open ? ckb_target_close(&p->target) : CKB_OK;
    status = status == CKB_OK ? closed : status;
    free(p->memory);
    if (p->has_scratch && p->keep) {
        ckb_scratch_keep(&p->scratch);
    } else if (p->has_scratch) {
        closed = ckb_scratch_remove(&p->scratch, p->error);
        status = status == CKB_OK ? closed : status;
    } else if (p->kind == CKB_TARGET_IMAGE && p->was_created && !p->keep) {
        (void)unlink(p->path);
    }
    if (status != CKB_OK)
        complain(call, "closing %.512s: %s %s", p->text, ckb_status_text(status), p->error);
    return status;
}

/* ---- the host of a benchmark ---- */

enum {
    BENCH_KEEP,
    BENCH_DESTROY,
    BENCH_JSON,
    BENCH_CSV,
    BENCH_FORMAT,
    BENCH_DRY_RUN,
    BENCH_HELP,
    QUALIFY_OPTION_COUNT,
    BENCH_ACKS = QUALIFY_OPTION_COUNT,
    WRITE_OPTION_COUNT,
    LOG_OPTION_COUNT = WRITE_OPTION_COUNT
};

#define HELP_OPTION \
    { \
        "help", 'h', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL, "this text" \
    }
#define TEXT_OPTION(name, letter, unit, help) \
    { \
        name, letter, CKB_OPTION_TEXT, false, unit, NULL, 1, 4095, NULL, help \
    }
#define FLAG_OPTION(name, help) \
    { \
        name, '\0', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL, help \
    }

#define BENCH_OPTIONS(formats) \
    FLAG_OPTION("keep", "keep the volume; a directory must be empty or hold a scratch volume"), \
        FLAG_OPTION("destroy", "overwrite an image or device that holds something else"), \
        TEXT_OPTION("json", '\0', "FILE", "write the result as JSON to FILE, or to stdout for \"-\""), \
        TEXT_OPTION("csv", '\0', "FILE", "write the result as CSV to FILE, or to stdout for \"-\""), \
        {"format", '\0', CKB_OPTION_CHOICE, false, "FORMAT", "text", 0, 0, formats, "what stdout gets"}, \
        FLAG_OPTION("dry-run", "print the plan and the bytes it would write, touch nothing"), HELP_OPTION

static const ckb_option qualify_options[QUALIFY_OPTION_COUNT] = {BENCH_OPTIONS("text|json|csv")};
static const ckb_option write_options[WRITE_OPTION_COUNT] = {
    BENCH_OPTIONS("text|json|csv|dropwizard"),
    TEXT_OPTION(
        "acks", '\0', "FILE",
        "one line per durable chunk, after it is durable, to FILE or to stdout for \"-\": container block "
        "chunk length crc32c"),
};

static const ckb_option log_options[LOG_OPTION_COUNT] = {
    BENCH_OPTIONS("text|json|csv"),
    TEXT_OPTION(
        "acks", '\0', "FILE",
        "one line per durable entry, after it is durable, to FILE or to stdout for \"-\": the word log, "
        "index, length, crc32c"),
};

static const ckb_option teragen_options[QUALIFY_OPTION_COUNT] = {BENCH_OPTIONS("text|json|csv")};

typedef struct screen {
    bool quiet, terminal;
    uint64_t shown_ns;
    bool line_open;
} screen;

static screen bench_screen;
static int acks_file = -1;

static uint64_t hook_now(void *context)
{
    (void)context;
    return ckb_host_clock_ns();
}

static void hook_wait(void *context, uint64_t duration_ns)
{
    (void)context;
    if (duration_ns == 0)
        (void)sched_yield();
    else
        ckb_host_sleep_ns(duration_ns);
}

static int hook_thread_start(void *context, uint32_t slot, void (*run)(void *argument), void *argument)
{
    (void)context;
    if (slot >= sizeof bench_threads / sizeof bench_threads[0])
        return CKB_NOSPACE;
    return ckb_host_thread_start(&bench_threads[slot], run, argument);
}

static void hook_thread_join(void *context, uint32_t slot)
{
    (void)context;
    (void)ckb_host_thread_join(&bench_threads[slot]);
}

static uint32_t hook_thread_number(void *context)
{
    const ckb_host_thread *thread = ckb_host_thread_current();
    (void)context;
    return thread == NULL ? 0 : (uint32_t)(thread - bench_threads) + 1;
}

static bool hook_interrupted(void *context)
{
    (void)context;
    return signal_number != 0;
}

/* One write per line: lines of several threads do not mix, and none waits in a buffer. */
static int hook_acknowledge(void *context, const ckb_chunk_id *id, uint32_t length, uint32_t crc32c)
{
    char line[96];
    int bytes = snprintf(line, sizeof line, "%" PRIu64 " %" PRIu64 " %" PRIu32 " %" PRIu32 " %08" PRIx32 "\n",
                         id->container, id->block, id->chunk, length, crc32c);
    (void)context;
    return write_all(acks_file, line, (size_t)bytes);
}

static int hook_acknowledge_entry(void *context, uint64_t index, uint32_t length, uint32_t crc32c)
{
    char line[64];
    int bytes =
        snprintf(line, sizeof line, "log %" PRIu64 " %" PRIu32 " %08" PRIx32 "\n", index, length, crc32c);
    (void)context;
    return write_all(acks_file, line, (size_t)bytes);
}

static bool hook_disk(void *context, char name[CKB_DISK_TEXT_BYTES], uint64_t counters[CKB_DISK_COUNTER_COUNT])
{
    (void)context;
    return bench_place.kind != CKB_TARGET_RAM && ckb_host_disk_read(bench_place.path, name, counters);
}

/* On a terminal one line that is overwritten; elsewhere a line every ten seconds. */
static void hook_progress(void *context, const ckb_progress *progress)
{
    screen *s = &bench_screen;
    uint64_t now_ns = ckb_host_clock_ns();
    (void)context;
    if (s->quiet || (!s->terminal && now_ns - s->shown_ns < UINT64_C(10000000000)))
        return;
    s->shown_ns = now_ns;
    (void)fprintf(stderr, "%s", s->terminal ? "\r" : "");
    if (progress->run_count > 1)
        (void)fprintf(stderr, "run %" PRIu32 " of %" PRIu32 ": ", progress->run, progress->run_count);
    else if (progress->run_count == 0)
        (void)fprintf(stderr, "run %" PRIu32 ": ", progress->run);
    if (progress->total != 0)
        (void)fprintf(stderr, "Progress: %.2f %% (%" PRIu64 " out of %" PRIu64 ")",
                      (double)(progress->done + progress->failures) * 100.0 / (double)progress->total,
                      progress->done, progress->total);
    else
        (void)fprintf(stderr, "Progress: %" PRIu64 " in %.0f s", progress->done,
                      (double)progress->elapsed_ns / 1e9);
    if (progress->rate_per_s > 0.0)
        (void)fprintf(stderr, ", %.0f/s", progress->rate_per_s);
    (void)fprintf(stderr, "%s", s->terminal ? "   " : "\n");
    (void)fflush(stderr);
    s->line_open = s->terminal;
}

static void screen_end(void)
{
    if (bench_screen.line_open)
        (void)fprintf(stderr, "\r%79s\r", "");
    bench_screen.line_open = false;
}

static void screen_start(bool quiet)
{
    const char *terminal = getenv("TERM");
    bench_screen.quiet = quiet;
    bench_screen.terminal = isatty(2) == 1 && terminal != NULL && strcmp(terminal, "dumb") != 0;
    bench_screen.shown_ns = ckb_host_clock_ns();
}

#define ENVIRONMENT_MAX 24u

/* What the result says about where it was measured. */
typedef struct environment {
    ckb_host_facts facts;
    ckb_warnings warnings;
    const char *warning[CKB_WARNING_COUNT + 1];
    char numbers[6][32];
    ckb_pair pairs[ENVIRONMENT_MAX];
    uint32_t count;
} environment;

static environment bench_environment;

static void environment_add(environment *e, const char *key, const char *value)
{
    e->pairs[e->count].key = key;
    e->pairs[e->count++].value = value;
}

static void environment_add_number(environment *e, uint32_t slot, const char *key, uint64_t number)
{
    (void)snprintf(e->numbers[slot], sizeof e->numbers[slot], "%" PRIu64, number);
    environment_add(e, key, number != 0 ? e->numbers[slot] : "");
}

/* A sync that returns faster than any disk can is worth a word. */
static bool has_fast_sync(const ckb_bench_report *report)
{
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (result->sync_every == 1 && result->durable_latency.count != 0 &&
            result->durable_latency.p50 < 20000)
            return true;
    }
    return false;
}

static void environment_add_storage(environment *e, const place *p)
{
    const ckb_host_facts *facts = &e->facts;
    environment_add(e, "file_system", facts->file_system);
    environment_add(e, "mount_point", facts->mount_point);
    environment_add(e, "mount_options", facts->mount_options);
    environment_add(e, "device", facts->device);
    environment_add_number(e, 2, "logical_sector_bytes", facts->logical_sector_bytes);
    environment_add_number(e, 3, "physical_sector_bytes", facts->physical_sector_bytes);
    environment_add(e, "write_cache", facts->write_cache);
    environment_add(e, "scheduler", facts->scheduler);
    environment_add(e, "rotational", facts->device[0] == '\0' ? "" : facts->rotational ? "yes" : "no");
    environment_add(e, "direct_io", p->target.direct ? "yes" : "no");
    environment_add_number(e, 4, "free_bytes", facts->free_bytes);
}

/* Gathers facts and warnings about what was measured, and hands them to the host of the report. */
static void environment_read(environment *e, const place *p, const ckb_bench_report *report,
                             ckb_bench_host *host)
{
    bool stored = p->kind != CKB_TARGET_RAM;
    uint64_t data_bytes = 0;
    uint32_t threads = 0;
    for (uint32_t i = 0; i < report->result_count; i++) {
        data_bytes = report->results[i].bytes > data_bytes ? report->results[i].bytes : data_bytes;
        threads = report->results[i].threads > threads ? report->results[i].threads : threads;
    }
    ckb_host_facts_read(stored ? p->path : NULL, &e->facts);
    e->warnings = p->target.warnings;
    ckb_host_warn(&e->facts, stored ? data_bytes : 0, threads, &e->warnings);
    environment_add(e, "kernel", e->facts.kernel);
    environment_add(e, "cpu", e->facts.cpu);
    environment_add_number(e, 0, "cores", e->facts.cores);
    environment_add_number(e, 1, "memory_bytes", e->facts.memory_bytes);
    environment_add(e, "sync_call", p->target.sync_kind != NULL ? p->target.sync_kind : "");
    if (stored)
        environment_add_storage(e, p);
    for (uint32_t i = 0; i < e->warnings.count; i++)
        e->warning[i] = e->warnings.text[i];
    host->environment = e->pairs;
    host->environment_count = e->count;
    host->warnings = e->warning;
    host->warning_count = e->warnings.count;
    if (!host->target->volatile_medium && has_fast_sync(report))
        e->warning[host->warning_count++] = "syncs took less than 20 us: they can hardly have reached a medium";
}

/* ---- benchmark commands ---- */

/* Opens a file for results before the run, so that a bad name does not cost one. 0: not asked for. */
static bool open_result(const invocation *call, const ckb_option_value *option, FILE **stream)
{
    int file;
    *stream = NULL;
    if (!flag(option))
        return true;
    if (strcmp(option->text, "-") == 0) {
        *stream = stdout;
        return true;
    }
    file = open(option->text, O_WRONLY | O_CREAT | O_CLOEXEC, 0640);
    *stream = file >= 0 ? fdopen(file, "w") : NULL;
    if (*stream == NULL)
        complain(call, "%s: %s", option->text, strerror(errno));
    return *stream != NULL;
}

static bool print_result(const invocation *call, const ckb_bench_report *report, int format, FILE *stream)
{
    ckb_sink sink = stream_sink(stream);
    bool good;
    if (stream != stdout && stream != stderr && ftruncate(fileno(stream), 0) != 0 && errno != EINVAL)
        return false;
    good = ckb_bench_print(report, format, &sink) == CKB_OK;
    if (stream != stdout && stream != stderr)
        good = (fclose(stream) == 0) && good;
    else
        good = (fflush(stream) == 0) && good;
    if (!good)
        complain(call, "the result could not be written: %s", strerror(errno));
    return good;
}

typedef struct outputs {
    FILE *json, *csv, *acks;
    bool acks_to_stdout;
} outputs;

static bool outputs_open(const invocation *call, outputs *o)
{
    const ckb_option_value *acks = call->command->option_count > BENCH_ACKS ? &call->own[BENCH_ACKS] : NULL;
    memset(o, 0, sizeof *o);
    if (!open_result(call, &call->own[BENCH_JSON], &o->json) ||
        !open_result(call, &call->own[BENCH_CSV], &o->csv))
        return false;
    if (acks != NULL && !open_result(call, acks, &o->acks))
        return false;
    o->acks_to_stdout = o->acks == stdout;
    if ((o->json == stdout) + (o->csv == stdout) + o->acks_to_stdout > 1) {
        complain(call, "only one of --json, --csv and --acks can go to stdout");
        return false;
    }
    if (o->acks != NULL)
        acks_file = fileno(o->acks);
    if (o->acks != NULL && !o->acks_to_stdout && ftruncate(acks_file, 0) != 0 && errno != EINVAL) {
        complain(call, "%s: %s", acks->text, strerror(errno));
        return false;
    }
    return true;
}

/* Prints everything that was asked for. False: something could not be written. */
static bool outputs_print(const invocation *call, outputs *o, const ckb_bench_report *report)
{
    bool taken = o->json == stdout || o->csv == stdout;
    bool good = true;
    if (o->json != NULL)
        good = print_result(call, report, CKB_PRINT_JSON, o->json) && good;
    if (o->csv != NULL)
        good = print_result(call, report, CKB_PRINT_CSV, o->csv) && good;
    if (!taken)
        good = print_result(call, report, (int)call->own[BENCH_FORMAT].number[0],
                            o->acks_to_stdout ? stderr : stdout) &&
               good;
    return good;
}

static void bench_host_set(ckb_bench_host *host, ckb_bench_target *target, const invocation *call, place *p)
{
    memset(host, 0, sizeof *host);
    memset(target, 0, sizeof *target);
    p->bench = target;
    target->context = p;
    target->name = p->text;
    target->error = p->error;
    target->describe = place_describe;
    target->fresh = place_fresh;
    target->remount = place_remount;
    target->done = place_done;
    target->raw = place_raw;
    host->now_ns = hook_now;
    host->wait_ns = hook_wait;
    host->thread_start = hook_thread_start;
    host->thread_join = hook_thread_join;
    host->thread_number = hook_thread_number;
    host->interrupted = hook_interrupted;
    host->progress = hook_progress;
    host->acknowledge = acks_file >= 0 ? hook_acknowledge : NULL;
    host->acknowledge_entry = acks_file >= 0 ? hook_acknowledge_entry : NULL;
    host->disk = hook_disk;
    host->target = target;
    host->command_line = call->command_line;
}

static int bench_exit_code(const ckb_bench_report *report, bool printed)
{
    if (report->interrupted && signal_number != 0)
        return 128 + signal_number;
    if (report->status != CKB_OK)
        return exit_code(report->status);
    if (report->failed)
        return EXIT_FAILED;
    return printed ? EXIT_GOOD : EXIT_IO;
}

/* Runs with the target prepared and all outputs open. */
static int bench_run_prepared(invocation *call, place *p, ckb_bench_host *host, outputs *o)
{
    char message[MESSAGE_BYTES] = "";
    ckb_bench_report *report = NULL;
    size_t bytes = 0;
    int code, status = ckb_bench_memory(host, call->workload, call->values, &bytes, message, sizeof message);
    void *memory = status == CKB_OK ? malloc(bytes) : NULL;
    if (status != CKB_OK) {
        complain(call, "%s", message);
        return open_exit_code(status);
    }
    if (memory == NULL) {
        complain(call, "no memory: %zu bytes for threads, writers and histograms", bytes);
        return EXIT_SPACE;
    }
    screen_start(o->json != NULL || call->own[BENCH_FORMAT].number[0] == CKB_PRINT_JSON);
    (void)ckb_bench_run(host, call->workload, call->values, memory, bytes, &report);
    screen_end();
    environment_read(&bench_environment, p, report, host);
    if (report->message[0] != '\0') {
        char failure[CKB_ERROR_BYTES] = "";
        if (ckb_target_failure(&p->target, failure, sizeof failure) == 0 &&
            strcmp(report->message, p->error) != 0)
            (void)snprintf(failure, sizeof failure, "%s", p->error);
        complain(call, "%s%s%s", report->message, failure[0] != '\0' ? ": " : "", failure);
    }
    code = bench_exit_code(report, outputs_print(call, o, report));
    free(memory);
    return code;
}

static int bench_dry_run(const invocation *call, const ckb_bench_host *host)
{
    char message[MESSAGE_BYTES] = "";
    ckb_sink sink = stream_sink(stdout);
    int status = ckb_bench_plan(host, call->workload, call->values, &sink, message, sizeof message);
    if (status == CKB_OK)
        return EXIT_GOOD;
    complain(call, "%s", message);
    return open_exit_code(status);
}

static int run_bench(invocation *call)
{
    place *p = &bench_place;
    ckb_bench_target target;
    ckb_bench_host host;
    outputs o;
    int status, code;
    p->dry_run = flag(&call->own[BENCH_DRY_RUN]);
    p->destroy = flag(&call->own[BENCH_DESTROY]);
    p->keep = flag(&call->own[BENCH_KEEP]);
    status = ckb_target_parse(call->operand_count != 0 ? call->operands[0] : ".", &p->kind, p->path,
                              &p->size_bytes, p->error);
    if (status == CKB_OK && p->kind == CKB_TARGET_RAM && p->keep) {
        complain(call, "--keep: nothing of %s can be kept", call->operands[0]);
        return EXIT_USAGE;
    }
    if (status == CKB_OK && !p->dry_run && !outputs_open(call, &o))
        return EXIT_USAGE;
    if (status == CKB_OK)
        status = place_prepare(p, call->operand_count != 0 ? call->operands[0] : ".");
    if (status != CKB_OK) {
        complain(call, "%s", p->error);
        return open_exit_code(status);
    }
    bench_host_set(&host, &target, call, p);
    if (p->dry_run)
        return bench_dry_run(call, &host);
    code = bench_run_prepared(call, p, &host, &o);
    if (place_finish(p, call) != CKB_OK && code == EXIT_GOOD)
        code = EXIT_IO;
    return code;
}

/* ---- the store as a tool ---- */

typedef enum store_mode {
    STORE_WRITE,
    STORE_READ,
    STORE_SALVAGE, /* reads what cannot be proven current, too */
    STORE_BESIDE   /* reads without a lock, while another process may be writing */
} store_mode;

/* A volume that is there, opened and mounted. */
typedef struct store {
    const invocation *call;
    ckb_target target;
    ckb_volume *volume;
    ckb_config config;
    void *memory, *reader_memory, *writer_memory;
    ckb_reader *reader;
    ckb_writer *writer;
    uint32_t warned;   /* warnings of the target that were printed */
    uint64_t mount_ns; /* what the last mount took */
} store;

static int store_fail(const store *s, const char *what, int status, const ckb_fault *fault)
{
    char place_text[256] = "", failure[CKB_ERROR_BYTES] = "";
    if (fault != NULL && fault->status != CKB_OK)
        (void)ckb_fault_text(fault, place_text, sizeof place_text);
    (void)ckb_target_failure(&s->target, failure, sizeof failure);
    complain(s->call, "%s: %s%s%s%s%s", what, ckb_status_text(status), place_text[0] != '\0' ? ": " : "",
             place_text, failure[0] != '\0' ? ": " : "", failure);
    return exit_code(status);
}

/* Mounts with an index for at least `chunks`; what is stored may want a larger one, or more containers. */
static int store_mount(store *s, uint64_t chunks, ckb_fault *fault)
{
    int status = CKB_NOSPACE;
    s->config.max_chunks = chunks;
    while (status == CKB_NOSPACE) {
        size_t bytes = ckb_volume_memory(&s->target.medium.geometry, &s->config);
        free(s->memory);
        s->memory = bytes != 0 ? malloc(bytes) : NULL;
        if (s->memory == NULL)
            return CKB_NOSPACE;
        uint64_t start_ns = ckb_host_clock_ns();
        status = ckb_mount(&s->target.medium, &s->config, s->memory, bytes, &s->volume, fault);
        s->mount_ns = ckb_host_clock_ns() - start_ns;
        if (status != CKB_NOSPACE)
            break;
        if (fault->topic == CKB_TOPIC_CONTAINER)
            s->config.max_containers *= 4;
        else if (fault->topic == CKB_TOPIC_LOG)
            s->config.max_logs *= 4;
        else
            s->config.max_chunks *= 4;
    }
    return status;
}

/* Says what the target found odd, each thing once. */
static void store_warn(store *s)
{
    for (; s->warned < s->target.warnings.count; s->warned++)
        complain(s->call, "warning: %s", s->target.warnings.text[s->warned]);
}

/* 0, or an exit code; then everything is closed. `spare_chunks`: room in the index for new ones. */
static int store_open(store *s, const invocation *call, store_mode mode, uint64_t spare_chunks)
{
    ckb_target_options options = {.read_only = mode != STORE_WRITE, .beside_writer = mode == STORE_BESIDE};
    ckb_fault fault = {0};
    ckb_stat stat;
    int status;
    memset(s, 0, sizeof *s);
    s->call = call;
    if (strncmp(call->operands[0], "ram:", 4) == 0) {
        complain(call, "%s: RAM holds nothing from one command to the next", call->operands[0]);
        return EXIT_USAGE;
    }
    status = ckb_target_open(call->operands[0], &options, &s->target);
    if (status != CKB_OK) {
        complain(call, "%s", s->target.error);
        return open_exit_code(status);
    }
    store_warn(s);
    s->config.max_containers = CONTAINERS_STANDARD;
    s->config.max_logs = LOGS_STANDARD;
    s->config.read_only = mode != STORE_WRITE;
    s->config.salvage = mode == STORE_SALVAGE;
    status = store_mount(s, 65536, &fault);
    if (status == CKB_OK)
        ckb_volume_stat(s->volume, &stat);
    if (status == CKB_OK && stat.index_capacity - stat.index_used < spare_chunks) {
        status = ckb_unmount(s->volume);
        if (status == CKB_OK)
            status = store_mount(s, stat.index_used + spare_chunks, &fault);
    }
    if (status == CKB_OK)
        return EXIT_GOOD;
    status = store_fail(s, call->operands[0], status, &fault);
    (void)ckb_target_close(&s->target);
    free(s->memory);
    return status;
}

/* Closes; an error here is the command's, unless it had one. */
static int store_close(store *s, int code)
{
    int status = s->writer != NULL ? ckb_writer_close(s->writer) : CKB_OK;
    int next = ckb_unmount(s->volume);
    status = status == CKB_OK ? next : status;
    store_warn(s);
    if (status != CKB_OK && code == EXIT_GOOD)
        code = store_fail(s, "closing the volume", status, NULL);
    if (ckb_target_close(&s->target) != CKB_OK && code == EXIT_GOOD)
        code = EXIT_IO;
    free(s->memory);
    free(s->reader_memory);
    free(s->writer_memory);
    return code;
}

static int store_open_reader(store *s)
{
    size_t bytes = ckb_reader_memory(&s->target.medium.geometry, 1 << 20);
    s->reader_memory = malloc(bytes);
    return s->reader_memory == NULL ? CKB_NOSPACE
                                    : ckb_reader_open(s->volume, s->reader_memory, bytes, &s->reader);
}

static int store_open_writer(store *s)
{
    ckb_writer_config config = {0, 0};
    size_t bytes = ckb_writer_memory(&s->target.medium.geometry, &config);
    s->writer_memory = malloc(bytes);
    return s->writer_memory == NULL ? CKB_NOSPACE
                                    : ckb_writer_open(s->volume, &config, s->writer_memory, bytes, &s->writer);
}

/* "CONTAINER", "CONTAINER/BLOCK" or "CONTAINER/BLOCK/CHUNK". */
typedef struct selector {
    ckb_chunk_id id;
    unsigned depth; /* how many were given */
} selector;

static bool selector_parse(const invocation *call, const char *text, unsigned least, unsigned most, selector *s)
{
    uint64_t numbers[3] = {0, 0, 0};
    const char *at = text;
    bool good = true;
    s->depth = 0;
    while (good && s->depth < 3) {
        char *end = NULL;
        errno = 0;
        good = *at >= '0' && *at <= '9';
        if (good)
            numbers[s->depth++] = strtoull(at, &end, 10);
        good = good && errno == 0 && (*end == '\0' || *end == '/');
        if (!good || *end == '\0')
            break;
        good = s->depth < 3;
        at = end + 1;
    }
    s->id.container = numbers[0];
    s->id.block = numbers[1];
    s->id.chunk = (uint32_t)numbers[2];
    if (good && numbers[2] <= UINT32_MAX && s->depth >= least && s->depth <= most)
        return true;
    complain(call, "\"%.80s\" is not %s (numbers)", text,
             most == 1                 ? "CONTAINER"
             : most == 2 && least == 2 ? "CONTAINER/BLOCK"
             : most == 2               ? "CONTAINER[/BLOCK]"
                                       : "CONTAINER[/BLOCK[/CHUNK]]");
    return false;
}

static bool selector_holds(const selector *s, const ckb_chunk_id *id)
{
    return (s->depth < 1 || id->container == s->id.container) && (s->depth < 2 || id->block == s->id.block) &&
           (s->depth < 3 || id->chunk == s->id.chunk);
}

typedef struct chunk_list {
    ckb_chunk_info *chunks;
    size_t count, room;
} chunk_list;

static int compare_ids(const ckb_chunk_id *a, const ckb_chunk_id *b)
{
    if (a->container != b->container)
        return a->container < b->container ? -1 : 1;
    if (a->block != b->block)
        return a->block < b->block ? -1 : 1;
    return a->chunk < b->chunk ? -1 : a->chunk > b->chunk;
}

static int compare_chunks(const void *a, const void *b)
{
    return compare_ids(&((const ckb_chunk_info *)a)->id, &((const ckb_chunk_info *)b)->id);
}

/* All chunks a selector holds, sorted. */
static int store_list(store *s, const selector *wanted, chunk_list *list)
{
    uint64_t cursor = 0;
    ckb_chunk_info info;
    int status;
    memset(list, 0, sizeof *list);
    while ((status = ckb_chunk_next(s->volume, &cursor, &info)) == CKB_OK) {
        if (!selector_holds(wanted, &info.id))
            continue;
        if (list->count == list->room) {
            size_t room = list->room != 0 ? list->room * 2 : 1024;
            ckb_chunk_info *more = realloc(list->chunks, room * sizeof *more);
            if (more == NULL)
                return CKB_NOSPACE;
            list->chunks = more;
            list->room = room;
        }
        list->chunks[list->count++] = info;
    }
    if (list->count != 0)
        qsort(list->chunks, list->count, sizeof list->chunks[0], compare_chunks);
    return status == CKB_END ? CKB_OK : status;
}

/* ---- logs of a volume ---- */

typedef struct log_list {
    ckb_log_info *logs;
    uint32_t count;
} log_list;

static int compare_logs(const void *a, const void *b)
{
    return strcmp(((const ckb_log_info *)a)->name, ((const ckb_log_info *)b)->name);
}

/* All logs, sorted by name. */
static int store_logs(store *s, log_list *list)
{
    ckb_stat stat;
    uint32_t cursor = 0;
    ckb_volume_stat(s->volume, &stat);
    list->count = 0;
    list->logs = malloc(((size_t)stat.log_capacity + 1) * sizeof *list->logs);
    if (list->logs == NULL)
        return CKB_NOSPACE;
    while (list->count < stat.log_capacity &&
           ckb_log_list(s->volume, &cursor, &list->logs[list->count]) == CKB_OK)
        list->count++;
    qsort(list->logs, list->count, sizeof list->logs[0], compare_logs);
    return CKB_OK;
}

/* A log that is open for reading. */
typedef struct log_reader {
    ckb_log *log;
    ckb_log_cursor *cursor;
    void *log_memory, *cursor_memory;
    uint8_t *data; /* of the entry that was read last */
    size_t room;
} log_reader;

static void log_reader_close(log_reader *r)
{
    if (r->log != NULL)
        (void)ckb_log_close(r->log);
    free(r->log_memory);
    free(r->cursor_memory);
    free(r->data);
    memset(r, 0, sizeof *r);
}

/* `end_lost`: opens also when the newest entries may be lost. `flags`: of the cursor. */
static int log_reader_open(log_reader *r, const store *s, const char *name, bool end_lost, unsigned flags,
                           ckb_fault *fault)
{
    const ckb_geometry *geometry = &s->target.medium.geometry;
    const ckb_log_config config = {.salvage = end_lost};
    size_t log_bytes = ckb_log_memory(geometry, &config);
    size_t cursor_bytes = ckb_log_cursor_memory(geometry, 0);
    int status = CKB_NOSPACE;
    memset(r, 0, sizeof *r);
    r->room = 65536;
    r->data = malloc(r->room);
    r->log_memory = malloc(log_bytes);
    r->cursor_memory = malloc(cursor_bytes);
    if (r->data != NULL && r->log_memory != NULL && r->cursor_memory != NULL)
        status = ckb_log_open(s->volume, name, &config, r->log_memory, log_bytes, &r->log, fault);
    if (status == CKB_OK)
        status = ckb_log_cursor_open(r->log, flags, r->cursor_memory, cursor_bytes, &r->cursor);
    if (status != CKB_OK)
        log_reader_close(r);
    return status;
}

/* As ckb_log_next, with a buffer that grows. */
static int log_reader_next(log_reader *r, ckb_entry *entry)
{
    int status = ckb_log_next(r->cursor, entry, r->data, r->room);
    if (status != CKB_TOOBIG)
        return status;
    free(r->data);
    r->room = entry->length;
    r->data = malloc(r->room);
    return r->data != NULL ? ckb_log_next(r->cursor, entry, r->data, r->room) : CKB_NOSPACE;
}

/* ---- format, info, ls ---- */

enum {
    FORMAT_SEGMENT,
    FORMAT_SIZE,
    FORMAT_CONTAINERS,
    FORMAT_LOGS,
    FORMAT_DESTROY,
    FORMAT_GROW,
    FORMAT_DRY_RUN,
    FORMAT_HELP,
    FORMAT_OPTION_COUNT
};

static const ckb_option format_options[FORMAT_OPTION_COUNT] = {
    {"segment", '\0', CKB_OPTION_SIZE, false, "SIZE", NULL, 4096, UINT64_C(1) << 33, NULL, "bytes per segment"},
    {"size", 's', CKB_OPTION_SIZE, false, "SIZE", NULL, 65536, UINT64_MAX, NULL, "use no more than this"},
    {"containers", '\0', CKB_OPTION_COUNT, false, "COUNT", "256", 1, 1000000, NULL, "that there is room for"},
    {"logs", '\0', CKB_OPTION_COUNT, false, "COUNT", "16", 1, 1000000, NULL, "that there is room for"},
    FLAG_OPTION("destroy", "overwrite whatever is there"),
    FLAG_OPTION("grow", "keep the volume and take into use a device or image that became larger, or --size"),
    FLAG_OPTION("dry-run", "say what it would do, touch nothing"),
    HELP_OPTION,
};

/* Mounts what is open and grows it. */
static int grow_mounted(store *s)
{
    ckb_fault fault = {0};
    ckb_stat before, after;
    char from[32], to[32];
    int status = store_mount(s, 65536, &fault);
    if (status != CKB_OK) {
        status = store_fail(s, s->call->operands[0], status, &fault);
        (void)ckb_target_close(&s->target);
        free(s->memory);
        return status;
    }
    ckb_volume_stat(s->volume, &before);
    status = ckb_grow(s->volume, &fault);
    ckb_volume_stat(s->volume, &after);
    if (status != CKB_OK)
        return store_close(s, store_fail(s, s->call->operands[0], status, &fault));
    uint64_t bytes = after.geometry.segment_bytes;
    if (after.geometry.segment_count == before.geometry.segment_count)
        (void)printf("%s: has all of it already: %s\n", s->call->operands[0],
                     ckb_size_text(bytes * before.geometry.segment_count, from, sizeof from));
    else
        (void)printf("%s: grew from %" PRIu32 " segments, %s, to %" PRIu32 ", %s\n", s->call->operands[0],
                     before.geometry.segment_count,
                     ckb_size_text(bytes * before.geometry.segment_count, from, sizeof from),
                     after.geometry.segment_count,
                     ckb_size_text(bytes * after.geometry.segment_count, to, sizeof to));
    return store_close(s, EXIT_GOOD);
}

static int run_grow(invocation *call)
{
    static const int alien[] = {FORMAT_SEGMENT, FORMAT_CONTAINERS, FORMAT_LOGS, FORMAT_DESTROY};
    ckb_target_options options = {.grow = true};
    store s;
    memset(&s, 0, sizeof s);
    s.call = call;
    for (size_t i = 0; i < sizeof alien / sizeof alien[0]; i++)
        if (call->own[alien[i]].given) {
            complain(call, "--%s is of a new volume, and --grow keeps the one that is there",
                     format_options[alien[i]].name);
            return EXIT_USAGE;
        }
    options.size_bytes = flag(&call->own[FORMAT_SIZE]) ? call->own[FORMAT_SIZE].number[0] : 0;
    if (flag(&call->own[FORMAT_DRY_RUN])) {
        (void)printf("would grow %s; writes the journal\n", call->operands[0]);
        return EXIT_GOOD;
    }
    int status = ckb_target_open(call->operands[0], &options, &s.target);
    if (status != CKB_OK) {
        complain(call, "%s", s.target.error);
        return open_exit_code(status);
    }
    store_warn(&s);
    s.config.max_containers = CONTAINERS_STANDARD;
    s.config.max_logs = LOGS_STANDARD;
    return grow_mounted(&s);
}

static int run_format(invocation *call)
{
    ckb_target_options options = {.create = true, .destroy = flag(&call->own[FORMAT_DESTROY])};
    store s;
    ckb_fault fault = {0};
    char size[32], segment[32];
    int status;
    memset(&s, 0, sizeof s);
    s.call = call;
    options.segment_bytes = flag(&call->own[FORMAT_SEGMENT]) ? call->own[FORMAT_SEGMENT].number[0] : 0;
    options.size_bytes = flag(&call->own[FORMAT_SIZE]) ? call->own[FORMAT_SIZE].number[0] : 0;
    if (strncmp(call->operands[0], "ram:", 4) == 0) {
        complain(call, "%s: RAM holds nothing from one command to the next", call->operands[0]);
        return EXIT_USAGE;
    }
    if (flag(&call->own[FORMAT_GROW]))
        return run_grow(call);
    if (flag(&call->own[FORMAT_DRY_RUN])) {
        (void)printf("would format %s; writes the first two segments\n", call->operands[0]);
        return EXIT_GOOD;
    }
    status = ckb_target_open(call->operands[0], &options, &s.target);
    if (status != CKB_OK) {
        complain(call, "%s", s.target.error);
        return open_exit_code(status);
    }
    status = format_target(&s.target, false, (uint32_t)call->own[FORMAT_CONTAINERS].number[0],
                           (uint32_t)call->own[FORMAT_LOGS].number[0], &fault);
    if (status != CKB_OK) {
        int code = store_fail(&s, call->operands[0], status, &fault);
        (void)ckb_target_close(&s.target);
        return code;
    }
    (void)printf("%s: %" PRIu32 " segments of %s, %s\n", call->operands[0],
                 s.target.medium.geometry.segment_count,
                 ckb_size_text(s.target.medium.geometry.segment_bytes, segment, sizeof segment),
                 ckb_size_text(s.target.capacity_bytes, size, sizeof size));
    return ckb_target_close(&s.target) == CKB_OK ? EXIT_GOOD : EXIT_IO;
}

/* Begins the one JSON document of a command. */
static void json_begin(const invocation *call)
{
    (void)printf("{\"tool\":\"chunkbench\",\"command\":\"%s\",\"target\":", call->command->name);
    json_string(stdout, call->operands[0]);
}

/* And all of it when the command could not begin. */
static void json_failure(const invocation *call, int code)
{
    json_begin(call);
    (void)printf(",\"error\":");
    json_string(stdout, last_complaint);
    (void)printf(",\"exit\":%d}\n", code);
}

enum { INFO_JSON, INFO_HELP, INFO_OPTION_COUNT };

static const ckb_option info_options[INFO_OPTION_COUNT] = {FLAG_OPTION("json", "print JSON"), HELP_OPTION};

typedef struct info_field {
    const char *name;
    uint64_t value;
} info_field;

static void print_id(FILE *stream, const uint8_t id[16])
{
    for (unsigned i = 0; i < 16; i++)
        (void)fprintf(stream, "%02x", id[i]);
}

static int compare_containers(const void *a, const void *b)
{
    uint64_t first = ((const ckb_container_info *)a)->id, second = ((const ckb_container_info *)b)->id;
    return first < second ? -1 : first > second;
}

typedef struct container_list {
    ckb_container_info *containers;
    uint32_t count;
} container_list;

static const char *const container_states[] = {"NONE", "OPEN", "CLOSED", "UNHEALTHY", "DELETED"};

/* All containers, by id. */
static int store_containers(store *s, container_list *list)
{
    ckb_stat stat;
    uint32_t cursor = 0;
    ckb_volume_stat(s->volume, &stat);
    list->count = 0;
    list->containers = malloc((stat.container_capacity + 1) * sizeof *list->containers);
    if (list->containers == NULL)
        return CKB_NOSPACE;
    while (list->count < stat.container_capacity &&
           ckb_container_next(s->volume, &cursor, &list->containers[list->count]) == CKB_OK)
        list->count++;
    qsort(list->containers, list->count, sizeof list->containers[0], compare_containers);
    return CKB_OK;
}

static void info_print_containers(const container_list *list, bool json)
{
    (void)printf("%s", json ? ",\"container_list\":[" : "");
    for (uint32_t i = 0; i < list->count; i++) {
        const ckb_container_info *c = &list->containers[i];
        (void)printf(json ? "%s{\"id\":%" PRIu64 ",\"state\":\"%s\",\"chunks\":%" PRIu64 ",\"bytes\":%" PRIu64
                            "}"
                          : "%scontainer %" PRIu64 ": %s, chunks %" PRIu64 ", bytes %" PRIu64 "\n",
                     json && i != 0 ? "," : "", c->id, container_states[c->state], c->chunks, c->bytes);
    }
    (void)printf("%s", json ? "]" : "");
}

/* Why the mount took as long as it did. */
static const char *info_mount_reason(const ckb_stat *stat, const ckb_fault *damage)
{
    if (stat->mount_entries != 0)
        return "the checkpoint, and segments written since";
    if (damage->topic == CKB_TOPIC_CHECKPOINT)
        return "the checkpoint does not verify: all segments";
    if (stat->dropped_tails != 0 && stat->checkpoint_epoch == 0)
        return "no checkpoint, after a crash: all segments";
    return stat->checkpoint_epoch == 0 ? "no checkpoint: all segments"
                                       : "the checkpoint was not used: all segments";
}

static void info_print_logs(const log_list *list, bool json)
{
    (void)printf("%s", json ? ",\"log_list\":[" : "");
    for (uint32_t i = 0; i < list->count; i++) {
        const ckb_log_info *log = &list->logs[i];
        if (!json) {
            (void)printf("log %s: first %" PRIu64 ", last %" PRIu64 ", durable %" PRIu64 ", bytes %" PRIu64
                         ", segments %" PRIu32 "%s\n",
                         log->name, log->first, log->last, log->durable, log->bytes, log->segments,
                         log->end_lost ? ", newer entries may be lost" : "");
            continue;
        }
        (void)printf("%s{\"name\":", i != 0 ? "," : "");
        json_string(stdout, log->name);
        (void)printf(",\"first\":%" PRIu64 ",\"last\":%" PRIu64 ",\"durable\":%" PRIu64 ",\"bytes\":%" PRIu64
                     ",\"segments\":%" PRIu32 ",\"end_lost\":%s}",
                     log->first, log->last, log->durable, log->bytes, log->segments,
                     log->end_lost ? "true" : "false");
    }
    (void)printf("%s", json ? "]" : "");
}

static void info_print(const store *s, const ckb_stat *stat, const ckb_fault *damage, bool json)
{
    const invocation *call = s->call;
    const info_field fields[] = {
        {"format_major", stat->format_major},
        {"format_minor", stat->format_minor},
        {"segment_bytes", stat->geometry.segment_bytes},
        {"segment_count", stat->geometry.segment_count},
        {"write_unit_bytes", stat->geometry.write_unit},
        {"clean", stat->clean},
        {"segments_beyond", stat->segments_beyond},
        {"segments_free", stat->segments_free},
        {"segments_prepared", stat->segments_prepared},
        {"segments_open", stat->segments_open},
        {"segments_full", stat->segments_full},
        {"segments_retired", stat->segments_retired},
        {"segments_lost", stat->segments_lost},
        {"live_bytes", stat->live_bytes},
        {"dead_bytes", stat->dead_bytes},
        {"free_bytes", stat->free_bytes},
        {"reserved_bytes", stat->reserved_bytes},
        {"chunks", stat->index_used - stat->index_deleted},
        {"deletes_remembered", stat->index_deleted},
        {"containers", stat->containers},
        {"logs", stat->logs},
        {"damage", stat->damage},
        {"dropped_bytes", stat->dropped_bytes},
        {"dropped_tails", stat->dropped_tails},
        {"mount_ns", s->mount_ns},
        {"mount_scanned_segments", stat->mount_scanned},
        {"mount_summary_segments", stat->mount_summaries},
        {"mount_covered_segments", stat->mount_covered},
        {"mount_checkpoint_entries", stat->mount_entries},
        {"checkpoint_epoch", stat->checkpoint_epoch},
        {"checkpoint_segments", stat->segments_checkpoint},
        {"checkpoint_bytes", stat->checkpoint_bytes},
        {"checkpoint_entries", stat->checkpoint_entries},
        {"records_since_checkpoint", stat->fresh_records},
        {"scrub_passes", stat->scrub_passes},
        {"scrub_segment", stat->scrub_segment},
        {"scrub_bytes", stat->scrub_bytes},
        {"scrub_damage", stat->scrub_damage},
    };
    if (json)
        json_begin(call);
    else
        (void)printf("target: %s", call->operands[0]);
    (void)printf(json ? ",\"volume_id\":\"" : "\nvolume_id: ");
    print_id(stdout, stat->volume_id);
    (void)printf(json ? "\"" : "\n");
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++)
        (void)printf(json ? ",\"%s\":%" PRIu64 : "%s: %" PRIu64 "\n", fields[i].name, fields[i].value);
    (void)printf(json ? ",\"mount_read\":\"%s\"" : "mount_read: %s\n", info_mount_reason(stat, damage));
}

static int run_info(invocation *call)
{
    store s;
    ckb_stat stat;
    ckb_fault last, damage;
    log_list logs = {0};
    container_list containers;
    char text[256];
    bool json = flag(&call->own[INFO_JSON]);
    int status, code = store_open(&s, call, STORE_READ, 0);
    if (code != EXIT_GOOD) {
        if (json)
            json_failure(call, code);
        return code;
    }
    status = store_containers(&s, &containers);
    if (status == CKB_OK)
        status = store_logs(&s, &logs);
    if (status != CKB_OK)
        return store_close(&s, store_fail(&s, call->operands[0], status, NULL));
    ckb_volume_stat(s.volume, &stat);
    ckb_volume_fault(s.volume, &last, &damage);
    info_print(&s, &stat, &damage, json);
    info_print_containers(&containers, json);
    info_print_logs(&logs, json);
    (void)printf("%s", json ? "}\n" : "");
    free(logs.logs);
    free(containers.containers);
    if (damage.status != CKB_OK) {
        (void)ckb_fault_text(&damage, text, sizeof text);
        complain(call, "%s: first damage: %s", call->operands[0], text);
    }
    return store_close(&s, stat.damage != 0 ? EXIT_CORRUPT : EXIT_GOOD);
}

enum { LS_HELP, LS_OPTION_COUNT };

static const ckb_option ls_options[LS_OPTION_COUNT] = {HELP_OPTION};

static int ls_containers(store *s)
{
    container_list list;
    int status = store_containers(s, &list);
    if (status != CKB_OK)
        return status;
    (void)printf("container\tstate\tchunks\tbytes\n");
    for (uint32_t i = 0; i < list.count; i++)
        (void)printf("%" PRIu64 "\t%s\t%" PRIu64 "\t%" PRIu64 "\n", list.containers[i].id,
                     container_states[list.containers[i].state], list.containers[i].chunks,
                     list.containers[i].bytes);
    free(list.containers);
    return CKB_OK;
}

/* Nothing for a volume without logs: its listing is one table. */
static int ls_logs(store *s)
{
    log_list list;
    int status = store_logs(s, &list);
    if (status != CKB_OK)
        return status;
    if (list.count != 0)
        (void)printf("\nlog\tfirst\tlast\tdurable\tbytes\tsegments\n");
    for (uint32_t i = 0; i < list.count; i++)
        (void)printf("%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\n", list.logs[i].name,
                     list.logs[i].first, list.logs[i].last, list.logs[i].durable, list.logs[i].bytes,
                     list.logs[i].segments);
    free(list.logs);
    return CKB_OK;
}

/* One line per chunk, or per block when only a container was selected. */
static void ls_chunks(const chunk_list *list, bool blocks)
{
    (void)printf(blocks ? "container/block\tchunks\tbytes\n" : "container/block/chunk\tversion\tbytes\n");
    for (size_t i = 0; i < list->count;) {
        const ckb_chunk_info *first = &list->chunks[i];
        uint64_t bytes = 0, chunks = 0;
        if (!blocks) {
            (void)printf("%" PRIu64 "/%" PRIu64 "/%" PRIu32 "\t%" PRIu32 "\t%" PRIu32 "\n", first->id.container,
                         first->id.block, first->id.chunk, first->version, first->length);
            i++;
            continue;
        }
        for (; i < list->count && list->chunks[i].id.container == first->id.container &&
               list->chunks[i].id.block == first->id.block;
             i++) {
            bytes += list->chunks[i].length;
            chunks++;
        }
        (void)printf("%" PRIu64 "/%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\n", first->id.container,
                     first->id.block, chunks, bytes);
    }
}

static int run_ls(invocation *call)
{
    store s;
    selector wanted = {{0, 0, 0}, 0};
    chunk_list list = {NULL, 0, 0};
    int code, status;
    if (call->operand_count > 1 && !selector_parse(call, call->operands[1], 1, 2, &wanted))
        return EXIT_USAGE;
    code = store_open(&s, call, STORE_READ, 0);
    if (code != EXIT_GOOD)
        return code;
    status = wanted.depth == 0 ? ls_containers(&s) : store_list(&s, &wanted, &list);
    if (status == CKB_OK && wanted.depth == 0)
        status = ls_logs(&s);
    if (status == CKB_OK && wanted.depth != 0)
        ls_chunks(&list, wanted.depth == 1);
    free(list.chunks);
    return store_close(&s, status == CKB_OK ? EXIT_GOOD : store_fail(&s, "listing", status, NULL));
}

/* ---- put, get, rm ---- */

enum { PUT_SIZE, PUT_OVERWRITE, PUT_HELP, PUT_OPTION_COUNT };

static const ckb_option put_options[PUT_OPTION_COUNT] = {
    {"size", 's', CKB_OPTION_SIZE, false, "SIZE", "4M", 1, UINT64_C(1) << 31, NULL, "bytes per chunk"},
    FLAG_OPTION("overwrite", "replace a block that is there"),
    HELP_OPTION,
};

typedef struct put_state {
    store s;
    ckb_chunk_id id;
    int file;
    const char *file_name;
    uint8_t *buffer;
    ckb_stream_config config;
    void *memory;
    ckb_stream *stream;
    ckb_stream_info info;
} put_state;

/* What is read at once; a pipe gives less. */
#define PUT_READ_BYTES ((size_t)1 << 18)

static int put_fail(const put_state *p, int status)
{
    ckb_fault last, damage;
    if (status == CKB_TOOBIG) {
        complain(p->s.call, "a block holds at most %" PRIu32 " chunks; use a larger --size", UINT32_MAX);
        return EXIT_USAGE;
    }
    ckb_volume_fault(p->s.volume, &last, &damage);
    return store_fail(&p->s, "put", status, &last);
}

/* 0 or an exit code. */
static int put_stream(put_state *p)
{
    int status = CKB_OK;
    while (status == CKB_OK && signal_number == 0) {
        ssize_t count = read(p->file, p->buffer, PUT_READ_BYTES);
        if (count == 0)
            break;
        if (count < 0 && errno != EINTR) {
            complain(p->s.call, "%s: %s", p->file_name, strerror(errno));
            return EXIT_IO;
        }
        if (count > 0)
            status = ckb_stream_write(p->stream, p->buffer, (size_t)count);
    }
    if (status == CKB_OK && signal_number == 0)
        status = ckb_stream_close(p->stream, CKB_DURABLE);
    if (status != CKB_OK)
        return put_fail(p, status);
    return signal_number == 0 ? EXIT_GOOD : 128 + signal_number;
}

/* Takes away what a put that failed has left. */
static void put_undo(put_state *p)
{
    ckb_chunk_id id = p->id;
    int status = CKB_OK;
    for (id.chunk = 0; id.chunk < p->info.chunks && status == CKB_OK; id.chunk++)
        status = ckb_chunk_delete(p->s.writer, &id, 0);
    if (status == CKB_OK)
        (void)ckb_writer_commit(p->s.writer);
}

static int put_block(put_state *p)
{
    size_t bytes = ckb_stream_memory(&p->s.target.medium.geometry, &p->config);
    bool overwrite = flag(&p->s.call->own[PUT_OVERWRITE]);
    int code, status = ckb_container_create(p->s.volume, p->id.container);
    if (status == CKB_OK || status == CKB_EXISTS)
        status = store_open_writer(&p->s);
    p->memory = malloc(bytes);
    p->buffer = malloc(PUT_READ_BYTES);
    if (status == CKB_OK && (p->memory == NULL || p->buffer == NULL))
        status = CKB_NOSPACE;
    if (status == CKB_OK)
        status = ckb_stream_open(p->s.writer, p->id.container, p->id.block, &p->config,
                                 overwrite ? CKB_OVERWRITE : 0, p->memory, bytes, &p->stream);
    if (status == CKB_EXISTS) {
        complain(p->s.call, "block %s is there; --overwrite replaces it", p->s.call->operands[1]);
        return EXIT_FAILED;
    }
    if (status != CKB_OK)
        return store_fail(&p->s, "put", status, NULL);
    code = put_stream(p);
    ckb_stream_stat(p->stream, &p->info);
    if (code != EXIT_GOOD)
        put_undo(p);
    return code;
}

/* How many chunks the input can become at most, for the size of the index. */
static uint64_t put_chunk_count(const put_state *p, uint64_t free_bytes)
{
    struct stat facts;
    uint64_t bytes = free_bytes;
    if (fstat(p->file, &facts) == 0 && S_ISREG(facts.st_mode) && (uint64_t)facts.st_size < bytes)
        bytes = (uint64_t)facts.st_size;
    return bytes / p->config.chunk_bytes + 64;
}

static int put_open(put_state *p, invocation *call)
{
    ckb_stat stat;
    uint64_t most, spare;
    int code = store_open(&p->s, call, STORE_WRITE, 0);
    if (code != EXIT_GOOD)
        return code;
    ckb_volume_stat(p->s.volume, &stat);
    most = ckb_max_chunk_bytes(&stat.geometry);
    if (p->config.chunk_bytes > most && call->own[PUT_SIZE].given) {
        complain(call, "--size: %zu bytes; segments of %" PRIu64 " bytes hold chunks of up to %" PRIu64,
                 p->config.chunk_bytes, stat.geometry.segment_bytes, most);
        return store_close(&p->s, EXIT_USAGE);
    }
    p->config.chunk_bytes = p->config.chunk_bytes < most ? p->config.chunk_bytes : (size_t)most;
    spare = put_chunk_count(p, stat.free_bytes);
    if (stat.index_capacity - stat.index_used >= spare)
        return EXIT_GOOD;
    code = store_close(&p->s, EXIT_GOOD);
    return code == EXIT_GOOD ? store_open(&p->s, call, STORE_WRITE, spare) : code;
}

static int run_put(invocation *call)
{
    put_state p;
    selector wanted;
    int code;
    memset(&p, 0, sizeof p);
    if (!selector_parse(call, call->operands[1], 2, 2, &wanted))
        return EXIT_USAGE;
    p.id = wanted.id;
    p.file_name = call->operand_count > 2 && strcmp(call->operands[2], "-") != 0 ? call->operands[2] : NULL;
    p.file = p.file_name != NULL ? open(p.file_name, O_RDONLY | O_CLOEXEC) : 0;
    p.file_name = p.file_name != NULL ? p.file_name : "stdin";
    if (p.file < 0) {
        complain(call, "%s: %s", p.file_name, strerror(errno));
        return EXIT_IO;
    }
    p.config.chunk_bytes = (size_t)call->own[PUT_SIZE].number[0];
    code = put_open(&p, call);
    if (code != EXIT_GOOD)
        return code;
    code = store_close(&p.s, put_block(&p));
    free(p.buffer);
    free(p.memory);
    if (code == EXIT_GOOD)
        (void)printf("%s: %" PRIu64 " bytes in %" PRIu32 " chunks, durable\n", call->operands[1],
                     p.info.position, p.info.chunks);
    return code;
}

enum { GET_HELP, GET_OPTION_COUNT };

static const ckb_option get_options[GET_OPTION_COUNT] = {HELP_OPTION};

static int get_chunk(store *s, const ckb_chunk_id *id, int file, const char *file_name, uint8_t *buffer,
                     size_t room)
{
    ckb_chunk_info info;
    int status = ckb_chunk_stat(s->volume, id, &info);
    if (status == CKB_OK)
        status = store_open_reader(s);
    if (status != CKB_OK)
        return store_fail(s, s->call->operands[1], status, NULL);
    for (uint64_t offset = 0; offset < info.length && signal_number == 0;) {
        size_t got = 0;
        status = ckb_chunk_read(s->reader, id, offset, buffer, room, &got);
        if (status != CKB_OK || got == 0) {
            ckb_fault fault;
            ckb_reader_fault(s->reader, &fault);
            return store_fail(s, s->call->operands[1], status != CKB_OK ? status : CKB_CORRUPT, &fault);
        }
        if (write_all(file, buffer, got) != CKB_OK) {
            complain(s->call, "%s: %s", file_name, strerror(errno));
            return EXIT_IO;
        }
        offset += got;
    }
    return signal_number == 0 ? EXIT_GOOD : 128 + signal_number;
}

/* Why a block cannot be read on. Without its end a put was cut off. */
static int get_fail(const store *s, const ckb_stream_cursor *cursor, int status)
{
    char what[96];
    ckb_chunk_id id;
    ckb_fault fault;
    ckb_stream_cursor_fault(cursor, &id, &fault);
    if (status == CKB_NOTFOUND && id.chunk > 0) {
        complain(s->call, "%s: incomplete: no end behind chunk %" PRIu32 ", its put did not finish",
                 s->call->operands[1], id.chunk - 1);
        return EXIT_FAILED;
    }
    (void)snprintf(what, sizeof what, "%" PRIu64 "/%" PRIu64 "/%" PRIu32, id.container, id.block, id.chunk);
    return store_fail(s, status == CKB_CORRUPT || status == CKB_IO ? what : s->call->operands[1], status,
                      status == CKB_CORRUPT || status == CKB_IO ? &fault : NULL);
}

static int get_block(store *s, const ckb_chunk_id *id, int file, const char *file_name, uint8_t *buffer,
                     size_t room)
{
    size_t bytes = ckb_stream_cursor_memory(&s->target.medium.geometry, 1 << 20), got = 0;
    ckb_stream_cursor *cursor;
    int status;
    s->reader_memory = malloc(bytes);
    status = s->reader_memory == NULL ? CKB_NOSPACE
                                      : ckb_stream_cursor_open(s->volume, id->container, id->block,
                                                               s->reader_memory, bytes, &cursor);
    if (status != CKB_OK)
        return store_fail(s, s->call->operands[1], status, NULL);
    while (signal_number == 0) {
        status = ckb_stream_read(cursor, buffer, room, &got);
        if (status != CKB_OK)
            return status == CKB_END ? EXIT_GOOD : get_fail(s, cursor, status);
        if (write_all(file, buffer, got) != CKB_OK) {
            complain(s->call, "%s: %s", file_name, strerror(errno));
            return EXIT_IO;
        }
    }
    return 128 + signal_number;
}

static int get_any(store *s, const selector *wanted, int file, const char *file_name)
{
    const size_t room = 1 << 20;
    uint8_t *buffer = aligned_alloc(4096, room);
    int code;
    if (buffer == NULL)
        return store_fail(s, s->call->operands[1], CKB_NOSPACE, NULL);
    code = wanted->depth == 2 ? get_block(s, &wanted->id, file, file_name, buffer, room)
                              : get_chunk(s, &wanted->id, file, file_name, buffer, room);
    free(buffer);
    return code;
}

static int run_get(invocation *call)
{
    store s;
    selector wanted;
    const char *name =
        call->operand_count > 2 && strcmp(call->operands[2], "-") != 0 ? call->operands[2] : NULL;
    int code, file = 1;
    if (!selector_parse(call, call->operands[1], 2, 3, &wanted))
        return EXIT_USAGE;
    code = store_open(&s, call, STORE_READ, 0);
    if (code != EXIT_GOOD)
        return code;
    if (name != NULL)
        file = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
    if (file < 0) {
        complain(call, "%s: %s", name, strerror(errno));
        return store_close(&s, EXIT_IO);
    }
    code = get_any(&s, &wanted, file, name != NULL ? name : "stdout");
    if (name != NULL && close(file) != 0 && code == EXIT_GOOD) {
        complain(call, "%s: %s", name, strerror(errno));
        code = EXIT_IO;
    }
    return store_close(&s, code);
}

enum { COMPACT_PERCENT, COMPACT_HELP, COMPACT_OPTION_COUNT };

static const ckb_option compact_options[COMPACT_OPTION_COUNT] = {
    {"percent", '\0', CKB_OPTION_COUNT, false, "N", "5", 1, 100, NULL,
     "segments of which at least so much would be won"},
    HELP_OPTION,
};

/* A second pass lets go of the deletes that the first one had to move. */
static int run_compact(invocation *call)
{
    store s;
    ckb_stat before, after;
    char moved[32], gained[32];
    int status = CKB_OK, code = store_open(&s, call, STORE_WRITE, 0);
    if (code != EXIT_GOOD)
        return code;
    ckb_volume_stat(s.volume, &before);
    for (int pass = 0; pass < 2; pass++) {
        bool more = true;
        while (more && status == CKB_OK && signal_number == 0)
            status = ckb_compact(s.volume, (uint32_t)call->own[COMPACT_PERCENT].number[0], 64, &more);
    }
    ckb_volume_stat(s.volume, &after);
    uint64_t won = after.free_bytes > before.free_bytes ? after.free_bytes - before.free_bytes : 0;
    (void)printf("%s were moved, %s became free; %" PRIu64 " of %" PRIu64 " deletes are still remembered.\n",
                 ckb_size_text(after.compacted_bytes, moved, sizeof moved),
                 ckb_size_text(won, gained, sizeof gained), after.index_deleted, before.index_deleted);
    if (status == CKB_OK && signal_number != 0)
        return store_close(&s, 128 + signal_number);
    return store_close(&s, status == CKB_OK ? EXIT_GOOD : store_fail(&s, call->operands[0], status, NULL));
}

enum { RM_LOG, RM_BEFORE, RM_AFTER, RM_HELP, RM_OPTION_COUNT };

static const ckb_option rm_options[RM_OPTION_COUNT] = {
    TEXT_OPTION("log", '\0', "LOG", "delete a log, or some of its entries"),
    {"before", '\0', CKB_OPTION_COUNT, false, "INDEX", NULL, 1, UINT64_MAX, NULL,
     "only entries below this one"},
    {"after", '\0', CKB_OPTION_COUNT, false, "INDEX", NULL, 0, UINT64_MAX, NULL, "only entries above this one"},
    HELP_OPTION,
};

static int rm_chunks(store *s, const selector *wanted)
{
    chunk_list list;
    int status = store_list(s, wanted, &list);
    if (status == CKB_OK && list.count == 0) {
        ckb_chunk_info info;
        status = ckb_chunk_stat(s->volume, &wanted->id, &info);
        status = status == CKB_OK ? CKB_NOTFOUND : status;
    }
    if (status == CKB_OK)
        status = store_open_writer(s);
    for (size_t i = 0; i < list.count && status == CKB_OK; i++)
        status = ckb_chunk_delete(s->writer, &list.chunks[i].id, 0);
    if (status == CKB_OK)
        status = ckb_writer_commit(s->writer);
    free(list.chunks);
    return status;
}

/* The whole log, or one end of it. */
static int rm_log(store *s, const char *name, ckb_fault *fault)
{
    const ckb_option_value *before = &s->call->own[RM_BEFORE], *after = &s->call->own[RM_AFTER];
    log_reader r;
    int status;
    if (!flag(before) && !flag(after))
        return ckb_log_delete(s->volume, name);
    status = log_reader_open(&r, s, name, false, 0, fault);
    if (status != CKB_OK)
        return status;
    if (flag(after))
        status = ckb_log_truncate(r.log, after->number[0]);
    if (status == CKB_OK && flag(before))
        status = ckb_log_purge(r.log, before->number[0]);
    log_reader_close(&r);
    return status;
}

/* Either chunks or a log; false: neither, or both, and a message. */
static bool rm_parse(const invocation *call, selector *wanted)
{
    bool of_log = flag(&call->own[RM_LOG]);
    if (of_log != (call->operand_count == 1)) {
        complain(call, "either CONTAINER[/BLOCK[/CHUNK]] or --log LOG is to be deleted");
        return false;
    }
    if (!of_log && (flag(&call->own[RM_BEFORE]) || flag(&call->own[RM_AFTER]))) {
        complain(call, "--before and --after are for entries of a --log");
        return false;
    }
    return of_log || selector_parse(call, call->operands[1], 1, 3, wanted);
}

static int run_rm(invocation *call)
{
    store s;
    selector wanted;
    ckb_fault fault = {0};
    bool of_log = flag(&call->own[RM_LOG]), more = true;
    const char *what = of_log ? call->own[RM_LOG].text : call->operands[1];
    int code, status;
    if (!rm_parse(call, &wanted))
        return EXIT_USAGE;
    code = store_open(&s, call, STORE_WRITE, 64);
    if (code != EXIT_GOOD)
        return code;
    if (of_log)
        status = rm_log(&s, what, &fault);
    else
        status =
            wanted.depth == 1 ? ckb_container_delete(s.volume, wanted.id.container) : rm_chunks(&s, &wanted);
    /* Give the room back now: nobody else will before the next command. */
    for (int helped = status; helped == CKB_OK && more && signal_number == 0;)
        helped = ckb_maintain(s.volume, 1024, &more);
    return store_close(&s, status == CKB_OK ? EXIT_GOOD : store_fail(&s, what, status, &fault));
}

/* ---- append ---- */

enum { APPEND_TERM, APPEND_WHOLE, APPEND_HELP, APPEND_OPTION_COUNT };

static const ckb_option append_options[APPEND_OPTION_COUNT] = {
    {"term", '\0', CKB_OPTION_COUNT, false, "NUMBER", "0", 0, UINT64_MAX, NULL, "term, or tag, of the entries"},
    FLAG_OPTION("whole", "the whole input is one entry, not each line"),
    HELP_OPTION,
};

typedef struct append_state {
    store s;
    ckb_log *log;
    void *memory;
    int file;
    const char *file_name;
    uint8_t *input; /* what is not appended yet */
    size_t room, used, searched;
    size_t entry_max;
    uint64_t count, last;
} append_state;

static int append_entry(append_state *a, const uint8_t *data, size_t length)
{
    uint64_t term = a->s.call->own[APPEND_TERM].number[0];
    int status = ckb_log_append(a->log, term, data, length, 0, &a->last);
    a->count += status == CKB_OK;
    return status;
}

/* Appends the lines that are complete; at the end of the input also what has no newline behind it. */
static int append_lines(append_state *a, bool at_end)
{
    size_t start = 0;
    int status = CKB_OK;
    const uint8_t *newline;
    while (status == CKB_OK &&
           (newline = memchr(a->input + a->searched, '\n', a->used - a->searched)) != NULL) {
        status = append_entry(a, a->input + start, (size_t)(newline - a->input) - start);
        start = a->searched = (size_t)(newline - a->input) + 1;
    }
    if (status == CKB_OK && at_end && start < a->used) {
        status = append_entry(a, a->input + start, a->used - start);
        start = a->used;
    }
    a->used -= start;
    memmove(a->input, a->input + start, a->used);
    a->searched = a->used;
    return status;
}

/* Room for more input, but for no more than one entry can hold. */
static int append_grow(append_state *a)
{
    uint8_t *more;
    size_t room = a->room * 2;
    if (a->used > a->entry_max)
        return CKB_TOOBIG;
    if (a->used < a->room)
        return CKB_OK;
    room = room != 0 ? room : 1 << 20;
    more = realloc(a->input, room);
    if (more == NULL)
        return CKB_NOSPACE;
    a->input = more;
    a->room = room;
    return CKB_OK;
}

/* What one read brings becomes durable together: a file goes in large groups, a slow pipe line by line. */
static int append_stream(append_state *a)
{
    bool whole = flag(&a->s.call->own[APPEND_WHOLE]), at_end = false;
    int status = CKB_OK;
    while (status == CKB_OK && !at_end && signal_number == 0) {
        ssize_t got;
        status = append_grow(a);
        if (status != CKB_OK)
            break;
        got = read(a->file, a->input + a->used, a->room - a->used);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0) {
            complain(a->s.call, "%s: %s", a->file_name, strerror(errno));
            return EXIT_IO;
        }
        at_end = got == 0;
        a->used += (size_t)got;
        if (!whole)
            status = append_lines(a, at_end);
        else if (at_end)
            status = append_entry(a, a->input, a->used);
        if (status == CKB_OK && a->count != 0)
            status = ckb_log_commit(a->log, a->last);
    }
    if (status == CKB_TOOBIG)
        complain(a->s.call,
                 "entry %" PRIu64 " of the input is larger than the %zu bytes a segment has room for",
                 a->count + 1, a->entry_max);
    if (status != CKB_OK && status != CKB_TOOBIG) {
        ckb_fault last, damage;
        ckb_volume_fault(a->s.volume, &last, &damage);
        return store_fail(&a->s, a->s.call->operands[1], status, &last);
    }
    if (signal_number != 0)
        return 128 + signal_number;
    return status == CKB_OK ? EXIT_GOOD : EXIT_USAGE;
}

/* Opens the log, makes it when it is not there. */
static int append_open(append_state *a, ckb_fault *fault)
{
    const char *name = a->s.call->operands[1];
    size_t bytes = ckb_log_memory(&a->s.target.medium.geometry, NULL);
    int status;
    a->entry_max = ckb_max_entry_bytes(&a->s.target.medium.geometry);
    a->memory = malloc(bytes);
    if (a->memory == NULL)
        return CKB_NOSPACE;
    status = ckb_log_create(a->s.volume, name, 0);
    if (status != CKB_OK && status != CKB_EXISTS)
        return status;
    return ckb_log_open(a->s.volume, name, NULL, a->memory, bytes, &a->log, fault);
}

static int run_append(invocation *call)
{
    append_state a;
    ckb_fault fault = {0};
    bool from_file = call->operand_count > 2 && strcmp(call->operands[2], "-") != 0;
    int code, status, file = from_file ? open(call->operands[2], O_RDONLY | O_CLOEXEC) : 0;
    if (file < 0) {
        complain(call, "%s: %s", call->operands[2], strerror(errno));
        return EXIT_IO;
    }
    memset(&a, 0, sizeof a);
    code = store_open(&a.s, call, STORE_WRITE, 0);
    if (code != EXIT_GOOD)
        return code;
    a.file = file;
    a.file_name = from_file ? call->operands[2] : "stdin";
    status = append_open(&a, &fault);
    code = status == CKB_OK ? append_stream(&a) : store_fail(&a.s, call->operands[1], status, &fault);
    status = a.log != NULL ? ckb_log_close(a.log) : CKB_OK;
    if (status != CKB_OK && code == EXIT_GOOD)
        code = store_fail(&a.s, call->operands[1], status, NULL);
    code = store_close(&a.s, code);
    free(a.memory);
    free(a.input);
    if (code == EXIT_GOOD && a.count != 0)
        (void)printf("%s: %" PRIu64 " entries, %" PRIu64 " to %" PRIu64 ", durable\n", call->operands[1],
                     a.count, a.last - a.count + 1, a.last);
    return code;
}

/* ---- dump ---- */

enum {
    DUMP_FROM,
    DUMP_COUNT,
    DUMP_HEX,
    DUMP_DATA,
    DUMP_JSON,
    DUMP_FOLLOW,
    DUMP_SALVAGE,
    DUMP_SEGMENTS,
    DUMP_HELP,
    DUMP_OPTION_COUNT
};

static const ckb_option dump_options[DUMP_OPTION_COUNT] = {
    {"from", '\0', CKB_OPTION_COUNT, false, "INDEX", NULL, 1, UINT64_MAX, NULL, "first entry; else the oldest"},
    {"count", 'n', CKB_OPTION_COUNT, false, "COUNT", NULL, 1, UINT64_MAX, NULL, "no more entries than this"},
    FLAG_OPTION("hex", "their data, too, as a hex dump"),
    FLAG_OPTION("data", "only their data, and a newline behind each"),
    FLAG_OPTION("json", "one JSON object per entry and line; with --hex their data, too"),
    FLAG_OPTION("follow", "go on as entries appear; another process may be writing them"),
    FLAG_OPTION("salvage", "read round damage; exit 4 and a message for each place that was passed over"),
    FLAG_OPTION("segments", "a line for each segment instead, also when the volume does not mount"),
    HELP_OPTION,
};

#define FOLLOW_PAUSE_NS UINT64_C(500000000)
#define FOLLOW_RETRY_NS UINT64_C(100000000)
#define FOLLOW_LOAD 9u /* a pause is at least so many times what a look took */
#define FOLLOW_ATTEMPTS 5u
#define FOLLOW_SEEN 4096u /* entries printed last that a truncation is looked for in */
#define HEX_LINE_BYTES 16u

/* An entry as it was when it was printed. Another one under its index lies elsewhere, or has other content. */
typedef struct seen_entry {
    uint64_t term, offset;
    size_t length;
    uint32_t segment, crc;
} seen_entry;

typedef struct dump {
    const invocation *call;
    store s;
    const char *name; /* of the log */
    char only[CKB_LOG_NAME_BYTES + 1];
    log_reader reader;
    bool hex, data, json, follow, salvage;
    bool started; /* at least one look was good: next and volume_id are set */
    uint64_t next, left;
    uint64_t passed_over; /* places */
    uint8_t volume_id[16];
    seen_entry seen[FOLLOW_SEEN]; /* of a log that is followed: seen_first to next - 1, by index */
    uint64_t seen_first;          /* 0: none */
} dump;

static void dump_hex_line(const uint8_t *data, size_t offset, size_t count)
{
    (void)printf("  %08zx ", offset);
    for (size_t i = 0; i < HEX_LINE_BYTES; i++) {
        (void)printf(i == HEX_LINE_BYTES / 2 ? " " : "");
        if (i < count)
            (void)printf(" %02x", data[offset + i]);
        else
            (void)printf("   ");
    }
    (void)printf("  |");
    for (size_t i = 0; i < count; i++)
        (void)putchar(data[offset + i] >= 0x20 && data[offset + i] < 0x7f ? data[offset + i] : '.');
    (void)printf("|\n");
}

static void dump_print_json(const ckb_entry *entry, const uint8_t *data, bool hex)
{
    (void)printf("{\"index\":%" PRIu64 ",\"term\":%" PRIu64 ",\"bytes\":%zu,\"segment\":%" PRIu32
                 ",\"offset\":%" PRIu64 ",\"crc32c\":\"%08" PRIx32 "\"",
                 entry->index, entry->term, entry->length, entry->segment, entry->offset,
                 ckb_crc32c(0, data, entry->length));
    if (hex)
        (void)printf(",\"hex\":\"");
    for (size_t i = 0; hex && i < entry->length; i++)
        (void)printf("%02x", data[i]);
    (void)printf(hex ? "\"}\n" : "}\n");
}

static void dump_print(const dump *d, const ckb_entry *entry)
{
    const uint8_t *data = d->reader.data;
    if (d->json) {
        dump_print_json(entry, data, d->hex);
        return;
    }
    if (d->data) {
        (void)fwrite(data, 1, entry->length, stdout);
        (void)putchar('\n');
        return;
    }
    (void)printf("%" PRIu64 "\t%" PRIu64 "\t%zu\t%" PRIu32 ":%" PRIu64 "\n", entry->index, entry->term,
                 entry->length, entry->segment, entry->offset);
    for (size_t at = 0; d->hex && at < entry->length; at += HEX_LINE_BYTES)
        dump_hex_line(data, at, entry->length - at < HEX_LINE_BYTES ? entry->length - at : HEX_LINE_BYTES);
}

/* Which log: the one that was named, or the only one. */
static int dump_choose(dump *d)
{
    log_list list;
    char names[MESSAGE_BYTES / 2] = "";
    int code = EXIT_GOOD, status;
    if (d->name != NULL)
        return EXIT_GOOD;
    status = store_logs(&d->s, &list);
    if (status != CKB_OK)
        return store_fail(&d->s, d->call->operands[0], status, NULL);
    for (uint32_t i = 0; i < list.count; i++) {
        size_t used = strlen(names);
        (void)snprintf(names + used, sizeof names - used, "%s%s", i != 0 ? ", " : "", list.logs[i].name);
    }
    if (list.count == 1) {
        memcpy(d->only, list.logs[0].name, sizeof d->only);
        d->name = d->only;
    } else if (list.count == 0) {
        complain(d->call, "%s: there is no log", d->call->operands[0]);
        code = EXIT_FAILED;
    } else {
        complain(d->call, "%s: which of its %" PRIu32 " logs? %s", d->call->operands[0], list.count, names);
        code = EXIT_USAGE;
    }
    free(list.logs);
    return code;
}

/* ---- a log that was truncated while it was followed ---- */

static seen_entry seen_as(const ckb_entry *entry, const uint8_t *data)
{
    seen_entry seen = {entry->term, entry->offset, entry->length, entry->segment,
                       ckb_crc32c(0, data, entry->length)};
    return seen;
}

static void dump_remember(dump *d, const ckb_entry *entry)
{
    if (d->seen_first == 0 || entry->index != d->next)
        d->seen_first = entry->index;
    if (entry->index - d->seen_first >= FOLLOW_SEEN)
        d->seen_first = entry->index - FOLLOW_SEEN + 1;
    d->seen[entry->index % FOLLOW_SEEN] = seen_as(entry, d->reader.data);
}

/* 0 or an exit code. */
static int dump_compare(dump *d, uint64_t index, bool *same)
{
    const seen_entry *before = &d->seen[index % FOLLOW_SEEN];
    ckb_entry entry;
    ckb_fault fault;
    seen_entry now;
    int status;
    ckb_log_seek(d->reader.cursor, index);
    status = log_reader_next(&d->reader, &entry);
    ckb_log_cursor_fault(d->reader.cursor, &fault);
    if (status != CKB_OK)
        return store_fail(&d->s, d->name, status, &fault);
    now = seen_as(&entry, d->reader.data);
    *same = now.term == before->term && now.offset == before->offset && now.segment == before->segment &&
            now.length == before->length && now.crc == before->crc;
    return EXIT_GOOD;
}

/* The newest entry that was printed and is still the same; entries before it are, too. */
static int dump_find_kept(dump *d, const ckb_log_info *info, uint64_t *kept)
{
    uint64_t low = d->seen_first > info->first ? d->seen_first : info->first;
    uint64_t high = d->next - 1 < info->last ? d->next - 1 : info->last;
    uint64_t middle = high; /* the last one printed first: mostly it is the only one looked at */
    *kept = high < low ? high : low - 1;
    while (low <= high) {
        bool same = false;
        int code = dump_compare(d, middle, &same);
        if (code != EXIT_GOOD)
            return code;
        if (same) {
            *kept = middle;
            low = middle + 1;
        } else {
            high = middle - 1;
        }
        middle = low + (high - low) / 2;
    }
    return EXIT_GOOD;
}

/* Between two looks a log may have lost its end, and got another one past the place where the last look ended.
 * Then what was printed last is not there any more, and the new entries are printed under their old indexes. */
static int dump_notice_truncation(dump *d, const ckb_log_info *info)
{
    uint64_t printed = d->next - 1, kept;
    int code;
    if (d->seen_first == 0 || d->seen_first > printed || info->first > printed)
        return EXIT_GOOD;
    code = dump_find_kept(d, info, &kept);
    if (code != EXIT_GOOD || kept == printed)
        return code;
    complain(d->call, "%s: truncated to %" PRIu64 "%s: entries up to %" PRIu64 " were printed", d->name, kept,
             kept < d->seen_first && d->seen_first > 1 ? " or less" : "", printed);
    if (held_back)
        return EXIT_FAILED;
    d->next = kept + 1;
    return EXIT_GOOD;
}

/* Moves the reader to where the dump begins, or goes on. A log that is followed may have lost either end since;
 * 0 or an exit code. */
static int dump_position(dump *d)
{
    ckb_log_info info;
    int code;
    ckb_log_stat(d->reader.log, &info);
    code = d->started ? dump_notice_truncation(d, &info) : EXIT_GOOD;
    if (code != EXIT_GOOD)
        return code;
    if (d->next == 0)
        d->next = info.first;
    if (d->next < info.first) {
        complain(d->call, "%s: entry %" PRIu64 " is purged, the first one is %" PRIu64, d->name, d->next,
                 info.first);
        if (!d->started || held_back)
            return EXIT_FAILED;
        d->next = info.first;
    }
    if (d->next > info.last + 1) {
        complain(d->call, "%s: entry %" PRIu64 " is not there, the last one is %" PRIu64, d->name, d->next,
                 info.last);
        if (!d->started || held_back)
            return EXIT_FAILED;
        d->next = info.last + 1;
    }
    if (d->salvage && info.end_lost) {
        complain(d->call, "%s: newer entries than %" PRIu64 " may be lost", d->name, info.last);
        d->passed_over++;
    }
    ckb_log_seek(d->reader.cursor, d->next);
    return EXIT_GOOD;
}

static void dump_pass_over(dump *d, const ckb_fault *fault)
{
    char text[256];
    (void)ckb_fault_text(fault, text, sizeof text);
    complain(d->call, "%s: passed over: %s", d->name, text);
    d->passed_over++;
}

/* Prints what there is. */
static int dump_entries(dump *d)
{
    while (d->left != 0 && signal_number == 0 && !ferror(stdout)) {
        ckb_entry entry;
        ckb_fault fault;
        int status = log_reader_next(&d->reader, &entry);
        ckb_log_cursor_fault(d->reader.cursor, &fault);
        if (status == CKB_END)
            break;
        if (status != CKB_OK)
            return store_fail(&d->s, d->name, status, &fault);
        if (fault.status == CKB_CORRUPT)
            dump_pass_over(d, &fault);
        dump_print(d, &entry);
        if (d->follow)
            dump_remember(d, &entry);
        d->next = entry.index + 1;
        d->left--;
    }
    return EXIT_GOOD;
}

/* With the volume open. */
static int dump_log(dump *d)
{
    ckb_fault fault = {0};
    ckb_stat stat;
    int status, code = dump_choose(d);
    if (code != EXIT_GOOD)
        return code;
    ckb_volume_stat(d->s.volume, &stat);
    if (d->started && memcmp(stat.volume_id, d->volume_id, sizeof d->volume_id) != 0) {
        complain(d->call, "%s: another volume is here now", d->call->operands[0]);
        return EXIT_FAILED;
    }
    memcpy(d->volume_id, stat.volume_id, sizeof d->volume_id);
    status = log_reader_open(&d->reader, &d->s, d->name, d->salvage, d->salvage ? CKB_SALVAGE : 0, &fault);
    if (status != CKB_OK) {
        code = store_fail(&d->s, d->name, status, &fault);
        if (status == CKB_CORRUPT)
            complain(d->call, "%s: what is left can be read with --salvage", d->name);
        return code;
    }
    code = dump_position(d);
    if (code == EXIT_GOOD && !d->started && !d->json && !d->data)
        (void)printf("index\tterm\tbytes\tplace\n");
    d->started = d->started || code == EXIT_GOOD;
    if (code == EXIT_GOOD)
        code = dump_entries(d);
    log_reader_close(&d->reader);
    return code;
}

static int dump_look(dump *d)
{
    int code = store_open(&d->s, d->call,
                          d->follow    ? STORE_BESIDE
                          : d->salvage ? STORE_SALVAGE
                                       : STORE_READ,
                          0);
    return code == EXIT_GOOD ? store_close(&d->s, dump_log(d)) : code;
}

/* Sleeps, but not through a signal. */
static void dump_pause(uint64_t duration_ns)
{
    const uint64_t step_ns = 20000000, end_ns = ckb_host_clock_ns() + duration_ns;
    while (signal_number == 0 && ckb_host_clock_ns() < end_ns)
        ckb_host_sleep_ns(step_ns);
}

/* The volume is mounted anew for each look, without a lock. What a writer changes meanwhile can look like damage,
 * so a look that fails is repeated before it is believed. */
static int dump_follow(dump *d)
{
    unsigned failures = 0;
    while (signal_number == 0 && d->left != 0 && !ferror(stdout)) {
        uint64_t start_ns = ckb_host_clock_ns(), took_ns;
        int code;
        held_back = failures + 1 < FOLLOW_ATTEMPTS;
        code = dump_look(d);
        held_back = false;
        failures = code == EXIT_GOOD ? 0 : failures + 1;
        if (failures == FOLLOW_ATTEMPTS)
            return code;
        (void)fflush(stdout);
        took_ns = (ckb_host_clock_ns() - start_ns) * FOLLOW_LOAD;
        if (d->left != 0)
            dump_pause(failures != 0 ? FOLLOW_RETRY_NS : took_ns > FOLLOW_PAUSE_NS ? took_ns : FOLLOW_PAUSE_NS);
    }
    return EXIT_GOOD;
}

/* ---- dump of segments ---- */

/* What its header says, beside what the volume knows of it. */
static const char *header_verdict(int status, const ckb_probe_info *found, const uint8_t id[16],
                                  const ckb_segment_info *known)
{
    bool is_free = known != NULL && known->state == CKB_SEGMENT_FREE;
    if (status == CKB_NOTFOUND || (status == CKB_IO && is_free)) /* a directory makes the file later */
        return "none";
    if (status != CKB_OK)
        return status == CKB_CORRUPT ? "damaged" : status == CKB_VERSION ? "version" : "unreadable";
    if (memcmp(found->volume_id, id, 16) != 0)
        return "foreign";
    if (known == NULL || known->state == CKB_SEGMENT_JOURNAL || is_free)
        return "good";
    return found->epoch == known->epoch ? "good" : "stale";
}

static void segment_print(uint32_t segment, const ckb_segment_info *known, const char *verdict, uint64_t epoch,
                          bool json)
{
    static const char *const states[] = {"free", "journal", "prepared", "open",      "parked",
                                         "full", "lost",    "retired",  "checkpoint"};
    const char *state = known != NULL ? states[known->state] : "unknown";
    const char *owner = known == NULL || known->used_bytes == 0  ? "-"
                        : known->log[0] != '\0'                  ? known->log
                        : known->state == CKB_SEGMENT_CHECKPOINT ? "-"
                        : known->compacted                       ? "compacted chunks"
                                                                 : "chunks";
    uint64_t used = known != NULL ? known->used_bytes : 0, live = known != NULL ? known->live_bytes : 0;
    live = live < used ? live : used;
    if (!json) {
        (void)printf("%" PRIu32 "\t%s\t%s\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%s\t%" PRIu64 "\n", segment,
                     state, owner, used, live, used - live, verdict, epoch);
        return;
    }
    (void)printf("%s{\"segment\":%" PRIu32 ",\"state\":\"%s\",\"owner\":", segment != 0 ? "," : "", segment,
                 state);
    json_string(stdout, owner);
    (void)printf(",\"used_bytes\":%" PRIu64 ",\"live_bytes\":%" PRIu64 ",\"dead_bytes\":%" PRIu64
                 ",\"header\":\"%s\",\"epoch\":%" PRIu64 "}",
                 used, live, used - live, verdict, epoch);
}

/* One line for each segment; the volume is null where it does not mount. */
static int segments_print(const ckb_target *target, ckb_volume *volume, bool json)
{
    const ckb_medium *m = &target->medium;
    size_t align = m->geometry.buffer_align > 64 ? m->geometry.buffer_align : 64;
    size_t bytes = m->geometry.write_unit > align ? m->geometry.write_unit : align;
    uint8_t *buffer = aligned_alloc(align, bytes);
    ckb_segment_info known;
    ckb_probe_info found;
    if (buffer == NULL)
        return CKB_NOSPACE;
    if (!json)
        (void)printf("segment\tstate\towner\tused\tlive\tdead\theader\tepoch\n");
    for (uint32_t i = 0; i < m->geometry.segment_count && signal_number == 0; i++) {
        memset(&found, 0, sizeof found);
        int status = m->read(m->context, i, 0, buffer, bytes);
        status = status == CKB_OK ? ckb_probe(buffer, &found) : CKB_IO;
        bool there = volume != NULL && ckb_segment_stat(volume, i, &known) == CKB_OK;
        segment_print(i, there ? &known : NULL,
                      header_verdict(status, &found, target->probe.volume_id, there ? &known : NULL),
                      found.epoch, json);
    }
    free(buffer);
    return CKB_OK;
}

/* Works where the volume does not mount, too, as long as one header of the journal is there. */
static int dump_segments(const invocation *call)
{
    bool json = flag(&call->own[DUMP_JSON]);
    ckb_target_options options = {.read_only = true};
    store s;
    held_back = true; /* a volume that does not mount is no failure yet */
    int code = store_open(&s, call, STORE_READ, 0);
    held_back = false;
    if (code == EXIT_GOOD) {
        if (json)
            json_begin(call);
        (void)printf("%s", json ? ",\"error\":null,\"segments\":[" : "");
        code = exit_code(segments_print(&s.target, s.volume, json));
        (void)printf("%s", json ? "]}\n" : "");
        return store_close(&s, signal_number != 0 ? 128 + signal_number : code);
    }
    char reason[MESSAGE_BYTES];
    memcpy(reason, last_complaint, sizeof reason);
    complain(call, "%s", reason);
    memset(&s, 0, sizeof s);
    bool open = code != EXIT_USAGE && ckb_target_open(call->operands[0], &options, &s.target) == CKB_OK;
    if (json) {
        json_begin(call);
        (void)printf(",\"error\":");
        json_string(stdout, reason);
        (void)printf(",\"segments\":[");
    }
    if (open) {
        (void)segments_print(&s.target, NULL, json);
        (void)ckb_target_close(&s.target);
    }
    (void)printf("%s", json ? "]}\n" : "");
    return code;
}

static int run_dump(invocation *call)
{
    static dump d;
    int code;
    if (flag(&call->own[DUMP_SEGMENTS])) {
        for (int i = 0; i < DUMP_HELP; i++)
            if (call->own[i].given && i != DUMP_SEGMENTS && i != DUMP_JSON) {
                complain(call, "--%s is about entries of a log, not --segments", dump_options[i].name);
                return EXIT_USAGE;
            }
        if (call->operand_count > 1) {
            complain(call, "--segments is about the volume, not log %.40s", call->operands[1]);
            return EXIT_USAGE;
        }
        return dump_segments(call);
    }
    d.call = call;
    d.name = call->operand_count > 1 ? call->operands[1] : NULL;
    d.hex = flag(&call->own[DUMP_HEX]);
    d.data = flag(&call->own[DUMP_DATA]);
    d.json = flag(&call->own[DUMP_JSON]);
    d.follow = flag(&call->own[DUMP_FOLLOW]);
    d.salvage = flag(&call->own[DUMP_SALVAGE]);
    d.next = flag(&call->own[DUMP_FROM]) ? call->own[DUMP_FROM].number[0] : 0;
    d.left = flag(&call->own[DUMP_COUNT]) ? call->own[DUMP_COUNT].number[0] : UINT64_MAX;
    if (d.data && (d.hex || d.json)) {
        complain(call, "--data goes neither with --hex nor with --json");
        return EXIT_USAGE;
    }
    if (d.follow && d.salvage) {
        complain(call,
                 "--follow cannot tell damage from what is being written; --salvage is for a log at rest");
        return EXIT_USAGE;
    }
    code = d.follow ? dump_follow(&d) : dump_look(&d);
    if (signal_number != 0)
        return 128 + signal_number;
    return code == EXIT_GOOD && d.passed_over != 0 ? EXIT_CORRUPT : code;
}

/* ---- export and import ---- */

enum { EXPORT_HELP, EXPORT_OPTION_COUNT };
enum { IMPORT_AS, IMPORT_RESUME, IMPORT_HELP, IMPORT_OPTION_COUNT };

static const ckb_option export_options[EXPORT_OPTION_COUNT] = {HELP_OPTION};

static const ckb_option import_options[IMPORT_OPTION_COUNT] = {
    {"as", '\0', CKB_OPTION_COUNT, false, "CONTAINER", NULL, 0, UINT64_MAX, NULL,
     "the id it gets; that in the stream without"},
    FLAG_OPTION("resume", "go on with an import that was cut off: the container is there"),
    HELP_OPTION,
};

#define FRAME_HEADER_BYTES 40 /* beside a chunk, in the buffer */
#define IMPORT_SPARE_CHUNKS (UINT64_C(1) << 23)

/* A stream on its way between a file and a volume. */
typedef struct transfer {
    store s;
    const char *name;
    int file;
    int error; /* errno of the file */
    uint8_t *buffer;
    size_t buffer_bytes;
} transfer;

static int transfer_write(void *context, const void *data, size_t bytes)
{
    transfer *t = context;
    if (signal_number != 0)
        return CKB_BUSY;
    t->error = write_all(t->file, data, bytes) == 0 ? 0 : errno;
    return t->error == 0 ? CKB_OK : CKB_IO;
}

static int transfer_read(void *context, void *data, size_t bytes)
{
    transfer *t = context;
    uint8_t *at = data;
    while (bytes > 0 && signal_number == 0) {
        ssize_t count = read(t->file, at, bytes);
        if (count == 0)
            return CKB_END;
        if (count < 0 && errno != EINTR) {
            t->error = errno;
            return CKB_IO;
        }
        at += count > 0 ? count : 0;
        bytes -= count > 0 ? (size_t)count : 0;
    }
    return bytes == 0 ? CKB_OK : CKB_BUSY;
}

static void transfer_lost(void *context, const ckb_chunk_id *id, int status)
{
    const transfer *t = context;
    complain(t->s.call, "left out: container %" PRIu64 " block %" PRIu64 " chunk %" PRIu32 ": %s",
             id->container, id->block, id->chunk, ckb_status_text(status));
}

static int transfer_buffer(transfer *t)
{
    t->buffer_bytes = (size_t)ckb_max_chunk_bytes(&t->s.target.medium.geometry) + FRAME_HEADER_BYTES;
    t->buffer = malloc(t->buffer_bytes);
    return t->buffer != NULL ? CKB_OK : CKB_NOSPACE;
}

static bool transfer_open(transfer *t, invocation *call, unsigned operand, int flags)
{
    const char *name = call->operand_count > operand ? call->operands[operand] : "-";
    bool standard = strcmp(name, "-") == 0;
    int own = (flags & O_ACCMODE) == O_RDONLY ? 0 : 1;
    memset(t, 0, sizeof *t);
    t->name = standard ? (own == 0 ? "stdin" : "stdout") : name;
    t->file = standard ? own : open(name, flags | O_CLOEXEC, 0640);
    if (t->file < 0)
        complain(call, "%s: %s", name, strerror(errno));
    return t->file >= 0;
}

/* Closes file and volume, and says what `status` was about. */
static int transfer_close(transfer *t, int status, const ckb_export_report *report)
{
    int code = EXIT_GOOD;
    free(t->buffer);
    if (t->file > 2 && close(t->file) != 0 && t->error == 0)
        t->error = errno;
    if (t->error != 0) {
        complain(t->s.call, "%s: %s", t->name, strerror(t->error));
        code = EXIT_IO;
    } else if (status != CKB_OK && signal_number == 0) {
        char what[CKB_PATH_BYTES + 64];
        (void)snprintf(what, sizeof what, "%s, byte %" PRIu64 " of the stream", t->name, report->offset);
        code = store_fail(&t->s, what, status, NULL);
    } else if (status == CKB_OK && report->left_out != 0) {
        complain(t->s.call, "%" PRIu32 " chunks could not be read and are not in the stream", report->left_out);
        code = EXIT_CORRUPT;
    }
    return store_close(&t->s, signal_number != 0 ? 128 + signal_number : code);
}

static int run_export(invocation *call)
{
    transfer t;
    selector wanted;
    ckb_export_report report = {0};
    if (!selector_parse(call, call->operands[1], 1, 1, &wanted))
        return EXIT_USAGE;
    if (!transfer_open(&t, call, 2, O_WRONLY | O_CREAT | O_TRUNC))
        return EXIT_IO;
    int code = store_open(&t.s, call, STORE_READ, 0);
    if (code != EXIT_GOOD) {
        if (t.file > 2)
            (void)close(t.file);
        return code;
    }
    int status = store_open_reader(&t.s);
    status = status == CKB_OK ? transfer_buffer(&t) : status;
    if (status == CKB_OK)
        status = ckb_export(t.s.volume, t.s.reader, wanted.id.container, t.buffer, t.buffer_bytes,
                            transfer_write, transfer_lost, &t, &report);
    if (status == CKB_OK && t.file > 2 && fsync(t.file) != 0 && errno != EINVAL && errno != EROFS)
        t.error = errno;
    return transfer_close(&t, status, &report);
}

/* Chunks that the input may become; where there are more, the index is full and --resume makes a larger one. */
static uint64_t import_spare(const transfer *t)
{
    struct stat facts;
    if (fstat(t->file, &facts) != 0 || !S_ISREG(facts.st_mode))
        return IMPORT_SPARE_CHUNKS / 8;
    uint64_t most = (uint64_t)facts.st_size / FRAME_HEADER_BYTES + 1;
    return most < IMPORT_SPARE_CHUNKS ? most : IMPORT_SPARE_CHUNKS;
}

static int run_import(invocation *call)
{
    transfer t;
    ckb_export_report report = {0};
    const ckb_option_value *as = &call->own[IMPORT_AS];
    bool resume = flag(&call->own[IMPORT_RESUME]);
    if (!transfer_open(&t, call, 1, O_RDONLY))
        return EXIT_IO;
    int code = store_open(&t.s, call, STORE_WRITE, import_spare(&t));
    if (code != EXIT_GOOD) {
        if (t.file > 2)
            (void)close(t.file);
        return code;
    }
    int status = store_open_writer(&t.s);
    status = status == CKB_OK ? transfer_buffer(&t) : status;
    if (status == CKB_OK)
        status = ckb_import(t.s.volume, t.s.writer, as->given ? as->number[0] : 0, !as->given,
                            resume ? CKB_RESUME : 0, t.buffer, t.buffer_bytes, transfer_read, &t, &report);
    uint64_t container = as->given ? as->number[0] : report.container;
    if (status == CKB_OK)
        (void)printf("%" PRIu64 ": %" PRIu64 " bytes in %" PRIu64 " chunks, durable%s\n", container,
                     report.bytes, report.chunks, report.state == CKB_CONTAINER_OPEN ? "" : ", closed");
    else if (report.chunks != 0)
        complain(call, "container %" PRIu64 " holds a part; --resume goes on with it, rm deletes it",
                 container);
    return transfer_close(&t, status, &report);
}

/* ---- check ---- */

enum { CHECK_ACKS, CHECK_DEEP, CHECK_JSON, CHECK_HELP, CHECK_OPTION_COUNT };

static const ckb_option check_options[CHECK_OPTION_COUNT] = {
    TEXT_OPTION("acks", '\0', "FILE",
                "also audit acknowledgements that `write --acks` or `log --acks` printed; \"-\" is stdin"),
    FLAG_OPTION("deep",
                "also mount without the checkpoint, hold every chunk against it, and recount containers"),
    FLAG_OPTION("json", "print JSON"),
    HELP_OPTION,
};

typedef struct acknowledgement {
    ckb_chunk_id id;
    uint64_t entry; /* of the benchmark's log; 0: a chunk */
    uint32_t length, crc;
    uint64_t line;
} acknowledgement;

typedef struct audit {
    acknowledgement *acks;
    size_t count, room;
    uint64_t ids, replaced, present, purged, missing;
    char first_missing[320];
    uint8_t *buffer; /* for chunks */
    size_t buffer_bytes;
    log_reader log;
    int log_status; /* of opening the log */
} audit;

typedef struct checking {
    store *s;
    bool json;
    uint64_t findings;
} checking;

/* A lost segment may have held entries of its log that nobody can name. */
static bool names_entry(const ckb_finding *finding)
{
    return finding->log[0] != '\0' && finding->fault.topic == CKB_TOPIC_ENTRY;
}

static int check_found(void *context, const ckb_finding *finding)
{
    checking *c = context;
    char text[256];
    (void)ckb_fault_text(&finding->fault, text, sizeof text);
    if (c->json) {
        (void)printf("%s{\"status\":\"%s\",\"text\":", c->findings != 0 ? "," : "",
                     ckb_status_text(finding->fault.status));
        json_string(stdout, text);
        (void)printf(",\"segment\":%" PRIu32 ",\"offset\":%" PRIu64, finding->fault.segment,
                     finding->fault.offset);
        if (finding->has_chunk)
            (void)printf(",\"container\":%" PRIu64 ",\"block\":%" PRIu64 ",\"chunk\":%" PRIu32,
                         finding->chunk.id.container, finding->chunk.id.block, finding->chunk.id.chunk);
        if (finding->log[0] != '\0') {
            (void)printf(",\"log\":");
            json_string(stdout, finding->log);
        }
        if (names_entry(finding))
            (void)printf(",\"index\":%" PRIu64, finding->fault.index);
        (void)printf("}");
    } else {
        (void)printf("%s", text);
        if (finding->has_chunk)
            (void)printf(": container %" PRIu64 " block %" PRIu64 " chunk %" PRIu32,
                         finding->chunk.id.container, finding->chunk.id.block, finding->chunk.id.chunk);
        if (finding->log[0] != '\0')
            (void)printf(": log %s", finding->log);
        if (names_entry(finding))
            (void)printf(" entry %" PRIu64, finding->fault.index);
        (void)printf("\n");
    }
    c->findings++;
    return signal_number != 0;
}

/* A line is "CONTAINER BLOCK CHUNK LENGTH CRC" or "log INDEX LENGTH CRC". */
static bool ack_parse(const char *line, acknowledgement *ack)
{
    int end = 0;
    memset(ack, 0, sizeof *ack);
    if (strncmp(line, "log ", 4) == 0)
        return sscanf(line, "log %" SCNu64 " %" SCNu32 " %" SCNx32 "%n", &ack->entry, &ack->length, &ack->crc,
                      &end) == 3 &&
               ack->entry != 0 && line[end] == '\n';
    return sscanf(line, "%" SCNu64 " %" SCNu64 " %" SCNu32 " %" SCNu32 " %" SCNx32 "%n", &ack->id.container,
                  &ack->id.block, &ack->id.chunk, &ack->length, &ack->crc, &end) == 5 &&
           line[end] == '\n';
}

/* Reads the lines. A last one without a newline was cut off by the crash and acknowledges nothing. */
static int audit_read(const invocation *call, const char *name, audit *a)
{
    FILE *stream = strcmp(name, "-") == 0 ? stdin : fopen(name, "re");
    char line[128];
    uint64_t number = 0;
    if (stream == NULL) {
        complain(call, "%s: %s", name, strerror(errno));
        return EXIT_USAGE;
    }
    while (fgets(line, sizeof line, stream) != NULL) {
        acknowledgement *ack;
        number++;
        if (strchr(line, '\n') == NULL && feof(stream))
            break;
        if (a->count == a->room) {
            size_t room = a->room != 0 ? a->room * 2 : 4096;
            acknowledgement *more = realloc(a->acks, room * sizeof *more);
            if (more == NULL)
                return EXIT_SPACE;
            a->acks = more;
            a->room = room;
        }
        ack = &a->acks[a->count];
        if (!ack_parse(line, ack)) {
            complain(call,
                     "%s: line %" PRIu64 " is no acknowledgement (container block chunk length crc32c, or "
                     "\"log\" index length crc32c)",
                     name, number);
            return EXIT_USAGE;
        }
        ack->line = number;
        a->count++;
    }
    return ferror(stream) ? EXIT_IO : EXIT_GOOD;
}

/* Chunks come before entries: their entry is 0. */
static int compare_acked(const acknowledgement *a, const acknowledgement *b)
{
    if (a->entry != b->entry)
        return a->entry < b->entry ? -1 : 1;
    return compare_ids(&a->id, &b->id);
}

static int compare_acks(const void *a, const void *b)
{
    const acknowledgement *first = a, *second = b;
    int order = compare_acked(first, second);
    return order != 0 ? order : first->line < second->line ? -1 : first->line > second->line;
}

/* Reads one chunk and compares it with what was acknowledged. `times`: how often its id was. */
static int audit_chunk(store *s, const audit *a, const acknowledgement *ack, uint64_t times)
{
    ckb_chunk_info info;
    uint32_t crc = 0;
    int status = ckb_chunk_stat(s->volume, &ack->id, &info);
    if (status != CKB_OK)
        return status;
    for (uint64_t offset = 0; offset < info.length;) {
        size_t got = 0, length = a->buffer_bytes;
        length = info.length - offset < length ? (size_t)(info.length - offset) : length;
        status = ckb_chunk_read(s->reader, &ack->id, offset, a->buffer, length, &got);
        if (status != CKB_OK || got == 0)
            return status != CKB_OK ? status : CKB_CORRUPT;
        crc = ckb_crc32c(crc, a->buffer, got);
        offset += got;
    }
    /* A later write of the same id may have become durable without its line getting out. */
    if (info.version > times || (info.length == ack->length && crc == ack->crc))
        return CKB_OK;
    return CKB_CORRUPT;
}

static int audit_entry(audit *a, const acknowledgement *ack)
{
    ckb_entry entry;
    int status = a->log_status;
    if (status == CKB_OK) {
        ckb_log_seek(a->log.cursor, ack->entry);
        status = log_reader_next(&a->log, &entry);
    }
    if (status != CKB_OK)
        return status;
    return entry.length == ack->length && ckb_crc32c(0, a->log.data, entry.length) == ack->crc ? CKB_OK
                                                                                               : CKB_CORRUPT;
}

static void audit_missing(audit *a, const acknowledgement *ack, int status)
{
    char what[96];
    if (ack->entry != 0)
        (void)snprintf(what, sizeof what, "log %s entry %" PRIu64, BENCH_LOG_NAME, ack->entry);
    else
        (void)snprintf(what, sizeof what, "container %" PRIu64 " block %" PRIu64 " chunk %" PRIu32,
                       ack->id.container, ack->id.block, ack->id.chunk);
    (void)snprintf(a->first_missing, sizeof a->first_missing,
                   "line %" PRIu64 ": %s (%" PRIu32 " bytes, %08" PRIx32 "): %s", ack->line, what, ack->length,
                   ack->crc, status == CKB_CORRUPT ? "other content, or damaged" : ckb_status_text(status));
}

static void audit_each(store *s, audit *a)
{
    uint64_t first_line = UINT64_MAX;
    for (size_t i = 0, times = 1; i < a->count; i++, times++) {
        const acknowledgement *ack = &a->acks[i];
        int status;
        if (i + 1 < a->count && compare_acked(ack, &a->acks[i + 1]) == 0) {
            a->replaced++;
            continue;
        }
        status = ack->entry != 0 ? audit_entry(a, ack) : audit_chunk(s, a, ack, times);
        times = 0;
        a->ids++;
        a->present += status == CKB_OK;
        a->purged += status == CKB_PURGED;
        if (status == CKB_OK || status == CKB_PURGED)
            continue;
        a->missing++;
        if (ack->line >= first_line)
            continue;
        first_line = ack->line;
        audit_missing(a, ack, status);
    }
}

static int audit_run(store *s, audit *a)
{
    a->buffer_bytes = 1 << 20;
    a->buffer = aligned_alloc(4096, a->buffer_bytes);
    if (a->buffer == NULL)
        return EXIT_SPACE;
    if (a->count != 0)
        qsort(a->acks, a->count, sizeof a->acks[0], compare_acks);
    if (a->count != 0 && a->acks[a->count - 1].entry != 0)
        a->log_status = log_reader_open(&a->log, s, BENCH_LOG_NAME, true, 0, NULL);
    audit_each(s, a);
    log_reader_close(&a->log);
    free(a->buffer);
    return a->missing == 0 ? EXIT_GOOD : EXIT_CORRUPT;
}

static void check_print_acks(const audit *a, bool json)
{
    if (json) {
        (void)printf(",\"acks\":{\"acknowledged\":%zu,\"replaced_later\":%" PRIu64 ",\"present\":%" PRIu64
                     ",\"purged\":%" PRIu64 ",\"missing\":%" PRIu64 ",\"first_missing\":",
                     a->count, a->replaced, a->present, a->purged, a->missing);
        if (a->missing != 0)
            json_string(stdout, a->first_missing);
        else
            (void)printf("null");
        (void)printf("}");
        return;
    }
    (void)printf("%zu acknowledged, %" PRIu64 " of them replaced later; %" PRIu64 " present, ", a->count,
                 a->replaced, a->present);
    if (a->purged != 0)
        (void)printf("%" PRIu64 " purged, ", a->purged);
    (void)printf("%" PRIu64 " missing\n", a->missing);
    if (a->missing != 0)
        (void)printf("first missing: %s\n", a->first_missing);
}

static void check_begin(const invocation *call, bool json)
{
    if (!json)
        return;
    json_begin(call);
    (void)printf(",\"error\":null,\"findings\":[");
}

static void check_print(const ckb_check_report *report, bool json)
{
    if (json)
        (void)printf("],\"chunks\":%" PRIu64 ",\"bytes\":%" PRIu64 ",\"chunks_bad\":%" PRIu64
                     ",\"entries\":%" PRIu64 ",\"entry_bytes\":%" PRIu64 ",\"entries_bad\":%" PRIu64
                     ",\"io_errors\":%" PRIu64 ",\"segments\":%" PRIu64 ",\"damage\":%" PRIu64,
                     report->chunks, report->bytes, report->chunks_bad, report->entries, report->entry_bytes,
                     report->entries_bad, report->io_errors, report->segments, report->damage);
    else
        (void)printf("%" PRIu64 " chunks, %" PRIu64 " log entries, %" PRIu64 " bytes verified in %" PRIu64
                     " segments; %" PRIu64 " damaged places, %" PRIu64 " chunks bad, %" PRIu64
                     " entries bad, %" PRIu64 " I/O errors\n",
                     report->chunks, report->entries, report->bytes + report->entry_bytes, report->segments,
                     report->damage, report->chunks_bad, report->entries_bad, report->io_errors);
}

static int check_volume(store *s, bool json)
{
    checking c = {s, json, 0};
    ckb_check_report report;
    int status;
    check_begin(s->call, json);
    memset(&report, 0, sizeof report);
    status = ckb_check(s->volume, s->reader, check_found, &c, &report);
    check_print(&report, json);
    return exit_code(status);
}

/* The volume as a mount reads it that looks into every segment, beside the one that may have used a checkpoint. */
typedef struct deep_check {
    store *s;
    ckb_volume *plain;
    bool json;
    uint64_t chunks, differences;
} deep_check;

__attribute__((format(printf, 2, 3))) static void deep_differs(deep_check *d, const char *format, ...)
{
    char text[256];
    va_list values;
    va_start(values, format);
    (void)vsnprintf(text, sizeof text, format, values);
    va_end(values);
    if (d->json) {
        (void)printf("%s", d->differences != 0 ? "," : "");
        json_string(stdout, text);
    } else {
        (void)printf("%s\n", text);
    }
    d->differences++;
}

/* Every chunk of one mount, as the other one has it. */
static void deep_chunks(deep_check *d, ckb_volume *all, ckb_volume *other)
{
    ckb_chunk_info info, there;
    uint64_t cursor = 0;
    for (d->chunks = 0; signal_number == 0 && ckb_chunk_next(all, &cursor, &info) == CKB_OK; d->chunks++) {
        int status = ckb_chunk_stat(other, &info.id, &there);
        if (status == CKB_OK && there.length == info.length && there.version == info.version &&
            there.segment == info.segment && there.offset == info.offset)
            continue;
        deep_differs(d,
                     "container %" PRIu64 " block %" PRIu64 " chunk %" PRIu32 ": version %" PRIu32
                     " in segment %" PRIu32 " offset %" PRIu64
                     " %s the checkpoint, without: %s, version %" PRIu32 " in segment %" PRIu32
                     " offset %" PRIu64,
                     info.id.container, info.id.block, info.id.chunk, info.version, info.segment, info.offset,
                     all == d->plain ? "without" : "with", ckb_status_text(status), there.version,
                     there.segment, there.offset);
    }
}

/* A container, and what is found in it. */
typedef struct deep_container {
    ckb_container_info says;
    uint64_t chunks, bytes;
} deep_container;

static int deep_compare(const void *a, const void *b)
{
    uint64_t first = ((const deep_container *)a)->says.id, second = ((const deep_container *)b)->says.id;
    return first < second ? -1 : first > second;
}

static void deep_container_check(deep_check *d, const deep_container *c)
{
    ckb_container_info plain;
    if (c->chunks != c->says.chunks || c->bytes != c->says.bytes)
        deep_differs(d,
                     "container %" PRIu64 ": %" PRIu64 " chunks of %" PRIu64
                     " bytes are there, it counts %" PRIu64 " of %" PRIu64,
                     c->says.id, c->chunks, c->bytes, c->says.chunks, c->says.bytes);
    int status = ckb_container_stat(d->plain, c->says.id, &plain);
    if (status != CKB_OK || plain.state != c->says.state || plain.chunks != c->says.chunks ||
        plain.bytes != c->says.bytes)
        deep_differs(
            d, "container %" PRIu64 ": without the checkpoint %s, %" PRIu64 " chunks of %" PRIu64 " bytes",
            c->says.id, ckb_status_text(status), plain.chunks, plain.bytes);
}

/* Counts what is in each container, in one walk. */
static int deep_containers(deep_check *d)
{
    ckb_stat stat;
    ckb_chunk_info info;
    uint32_t walk = 0, count = 0;
    uint64_t cursor = 0;
    ckb_volume_stat(d->s->volume, &stat);
    deep_container *all = calloc((size_t)stat.containers + 1, sizeof *all), *c, key;
    if (all == NULL)
        return CKB_NOSPACE;
    while (count < stat.containers && ckb_container_next(d->s->volume, &walk, &all[count].says) == CKB_OK)
        count++;
    qsort(all, count, sizeof *all, deep_compare);
    while (signal_number == 0 && ckb_chunk_next(d->s->volume, &cursor, &info) == CKB_OK) {
        key.says.id = info.id.container;
        c = bsearch(&key, all, count, sizeof *all, deep_compare);
        if (c != NULL) {
            c->chunks++;
            c->bytes += info.length;
        } else {
            deep_differs(d, "a chunk of container %" PRIu64 ", which is not there", info.id.container);
        }
    }
    for (uint32_t i = 0; i < count && signal_number == 0; i++)
        deep_container_check(d, &all[i]);
    free(all);
    return CKB_OK;
}

static void deep_sums(deep_check *d)
{
    ckb_stat stat;
    ckb_volume_stat(d->s->volume, &stat);
    uint64_t all = stat.geometry.segment_bytes * stat.geometry.segment_count;
    uint64_t sum = stat.live_bytes + stat.dead_bytes + stat.free_bytes + stat.reserved_bytes;
    if (sum != all)
        deep_differs(d, "live, dead, free and reserved bytes make %" PRIu64 ", the volume has %" PRIu64, sum,
                     all);
}

/* 0, or an exit code. */
static int check_deep(store *s, bool json)
{
    deep_check d = {s, NULL, json, 0, 0};
    ckb_config config = s->config;
    ckb_fault fault = {0};
    config.ignore_checkpoint = true;
    size_t bytes = ckb_volume_memory(&s->target.medium.geometry, &config);
    void *memory = malloc(bytes);
    int status =
        memory != NULL ? ckb_mount(&s->target.medium, &config, memory, bytes, &d.plain, &fault) : CKB_NOSPACE;
    (void)printf("%s", json ? ",\"differences\":[" : "");
    if (status == CKB_OK) {
        deep_chunks(&d, d.plain, s->volume);
        deep_chunks(&d, s->volume, d.plain);
        status = deep_containers(&d);
        deep_sums(&d);
        (void)ckb_unmount(d.plain);
    }
    (void)printf("%s", json ? "]" : "");
    free(memory);
    if (status != CKB_OK)
        return store_fail(s, "mounting without the checkpoint", status, &fault);
    if (json)
        (void)printf(",\"compared\":%" PRIu64, d.chunks);
    else
        (void)printf("%" PRIu64 " chunks are where a mount without the checkpoint finds them, %" PRIu64
                     " differences\n",
                     d.chunks, d.differences);
    return d.differences == 0 ? EXIT_GOOD : EXIT_CORRUPT;
}

static int run_check(invocation *call)
{
    store s;
    audit a;
    bool json = flag(&call->own[CHECK_JSON]), with_acks = flag(&call->own[CHECK_ACKS]);
    int code = EXIT_GOOD, checked;
    memset(&a, 0, sizeof a);
    if (with_acks)
        code = audit_read(call, call->own[CHECK_ACKS].text, &a);
    if (code == EXIT_GOOD)
        code = store_open(&s, call, STORE_READ, 0);
    if (code != EXIT_GOOD) {
        if (json)
            json_failure(call, code);
        free(a.acks);
        return code;
    }
    code = exit_code(store_open_reader(&s));
    if (code == EXIT_GOOD) {
        code = check_volume(&s, json);
        checked = flag(&call->own[CHECK_DEEP]) && signal_number == 0 ? check_deep(&s, json) : EXIT_GOOD;
        code = checked > code ? checked : code;
        checked = with_acks ? audit_run(&s, &a) : EXIT_GOOD;
        code = checked > code ? checked : code;
        if (with_acks)
            check_print_acks(&a, json);
        if (json)
            (void)printf("}\n");
    }
    free(a.acks);
    return store_close(&s, signal_number != 0 ? 128 + signal_number : code);
}

/* ---- scrub ---- */

enum { SCRUB_RATE, SCRUB_JSON, SCRUB_HELP, SCRUB_OPTION_COUNT };

static const ckb_option scrub_options[SCRUB_OPTION_COUNT] = {
    {"rate", '\0', CKB_OPTION_SIZE, false, "SIZE", NULL, 1, UINT64_MAX, NULL,
     "read at most so many bytes a second; all it can without"},
    FLAG_OPTION("json", "print JSON"),
    HELP_OPTION,
};

#define SCRUB_PIECE_BYTES (UINT64_C(4) << 20)
#define SCRUB_PIECES_PER_S 10 /* so that a low rate is kept in small steps, and a signal is heard */

/* Says how far it is, on a terminal, about once a second. */
static void scrub_progress(const store *s, const ckb_check_report *report, uint64_t *next_ns)
{
    ckb_stat stat;
    char bytes[32];
    uint64_t now = ckb_host_clock_ns();
    if (isatty(2) != 1 || now < *next_ns)
        return;
    *next_ns = now + UINT64_C(1000000000);
    ckb_volume_stat(s->volume, &stat);
    (void)fprintf(stderr, "\rsegment %" PRIu32 " of %" PRIu32 ", %s verified, %" PRIu64 " damaged places ",
                  stat.scrub_segment, stat.geometry.segment_count,
                  ckb_size_text(stat.scrub_bytes, bytes, sizeof bytes), report->damage);
}

/* To the end of the pass, or a signal. */
static int scrub_run(store *s, uint64_t rate, checking *c, ckb_check_report *report, bool *more)
{
    uint64_t start_ns = ckb_host_clock_ns(), taken = 0, next_ns = start_ns;
    uint64_t piece = SCRUB_PIECE_BYTES;
    int result = CKB_OK;
    if (rate != 0 && rate / SCRUB_PIECES_PER_S < piece)
        piece = rate / SCRUB_PIECES_PER_S + 1;
    for (*more = true; *more && signal_number == 0; taken += piece) {
        int status = ckb_scrub(s->volume, s->reader, piece, check_found, c, report, more);
        if (status != CKB_OK && result != CKB_CORRUPT)
            result = status;
        scrub_progress(s, report, &next_ns);
        uint64_t due_ns = rate != 0 ? (uint64_t)((double)(taken + piece) * 1e9 / (double)rate) : 0;
        uint64_t passed_ns = ckb_host_clock_ns() - start_ns;
        if (*more && due_ns > passed_ns)
            ckb_host_sleep_ns(due_ns - passed_ns);
    }
    if (next_ns != start_ns)
        (void)fprintf(stderr, "\n");
    return result;
}

static void scrub_print(store *s, const ckb_check_report *report, bool more, bool json)
{
    ckb_stat stat;
    ckb_volume_stat(s->volume, &stat);
    check_print(report, json);
    if (json)
        (void)printf(",\"reread\":%" PRIu64 ",\"interrupted\":%s,\"next_segment\":%" PRIu32
                     ",\"passes\":%" PRIu32 ",\"pass_bytes\":%" PRIu64 ",\"pass_damage\":%" PRIu32 "}\n",
                     report->reread, more ? "true" : "false", stat.scrub_segment, stat.scrub_passes,
                     stat.scrub_bytes, stat.scrub_damage);
    else if (more)
        (void)printf("interrupted; the next scrub goes on with segment %" PRIu32 " of %" PRIu32 "\n",
                     stat.scrub_segment, stat.geometry.segment_count);
    else
        (void)printf("pass %" PRIu32 " complete: %" PRIu32 " damaged places in it\n", stat.scrub_passes,
                     stat.scrub_damage);
}

static int run_scrub(invocation *call)
{
    store s;
    ckb_check_report report;
    bool more = false, json = flag(&call->own[SCRUB_JSON]);
    int code = store_open(&s, call, STORE_WRITE, 0);
    if (code != EXIT_GOOD) {
        if (json)
            json_failure(call, code);
        return code;
    }
    checking c = {&s, json, 0};
    memset(&report, 0, sizeof report);
    code = exit_code(store_open_reader(&s));
    if (code == EXIT_GOOD) {
        check_begin(call, json);
        uint64_t rate = flag(&call->own[SCRUB_RATE]) ? call->own[SCRUB_RATE].number[0] : 0;
        code = exit_code(scrub_run(&s, rate, &c, &report, &more));
        scrub_print(&s, &report, more, json);
    }
    return store_close(&s, signal_number != 0 ? 128 + signal_number : code);
}

/* ---- commands ---- */

static const command commands[] = {
    {"qualify", "How many writer threads, which log segments, and is it fit for a WAL?", "[TARGET]", 0, 1,
     qualify_options, QUALIFY_OPTION_COUNT, NULL, run_bench, true},
    {"write", "How fast do threads write chunks? (also: cmdw)", "[TARGET]", 0, 1, write_options,
     WRITE_OPTION_COUNT, NULL, run_bench, true},
    {"log", "How fast do threads append to a log, and which segments does it want?", "[TARGET]", 0, 1,
     log_options, LOG_OPTION_COUNT, NULL, run_bench, true},
    {"teragen", "What do tiny writes cost, and do all rows come back?", "[TARGET]", 0, 1, teragen_options,
     QUALIFY_OPTION_COUNT, NULL, run_bench, true},
    {"format", "Make an empty volume", "TARGET", 1, 1, format_options, FORMAT_OPTION_COUNT,
     "  chunkbench format /srv/store\n  chunkbench format --segment 4M file:disk.img:1G\n"
     "  chunkbench format --grow file:disk.img:2G\n",
     run_format, false},
    {"info", "What a volume holds", "TARGET", 1, 1, info_options, INFO_OPTION_COUNT,
     "  chunkbench info /srv/store\n", run_info, false},
    {"ls", "List containers, the blocks of one, or the chunks of a block", "TARGET [CONTAINER[/BLOCK]]", 1, 2,
     ls_options, LS_OPTION_COUNT, "  chunkbench ls /srv/store\n  chunkbench ls /srv/store 3/7\n", run_ls,
     false},
    {"put", "Store a file or a pipe as one block", "TARGET CONTAINER/BLOCK [FILE|-]", 2, 3, put_options,
     PUT_OPTION_COUNT,
     "  chunkbench put /srv/store 3/7 backup.tar\n  tar c . | chunkbench put /srv/store 3/8\n", run_put, false},
    {"get", "Read a block, or one chunk", "TARGET CONTAINER/BLOCK[/CHUNK] [FILE|-]", 2, 3, get_options,
     GET_OPTION_COUNT, "  chunkbench get /srv/store 3/7 backup.tar\n  chunkbench get /srv/store 3/8 | tar t\n",
     run_get, false},
    {"rm", "Delete a container, a block, a chunk, a log or entries", "TARGET [CONTAINER[/BLOCK[/CHUNK]]]", 1, 2,
     rm_options, RM_OPTION_COUNT,
     "  chunkbench rm /srv/store 3/7\n  chunkbench rm --log events --before 1000 /srv/store\n", run_rm, false},
    {"compact", "Move together what counts, and free the rest", "TARGET", 1, 1, compact_options,
     COMPACT_OPTION_COUNT, "  chunkbench compact /srv/store\n", run_compact, false},
    {"append", "Append lines to a log, durably", "TARGET LOG [FILE|-]", 2, 3, append_options,
     APPEND_OPTION_COUNT,
     "  chunkbench append /srv/store events lines.txt\n  journalctl -f | chunkbench append /srv/store "
     "journal\n",
     run_append, false},
    {"dump", "Print the entries of a log, or how segments stand", "TARGET [LOG]", 1, 2, dump_options,
     DUMP_OPTION_COUNT,
     "  chunkbench dump /srv/store events\n  chunkbench dump --hex --from 41 -n 1 /srv/store events\n"
     "  chunkbench dump --follow /srv/store journal\n  chunkbench dump --segments /srv/store\n",
     run_dump, false},
    {"check", "Verify everything, and acknowledgements", "TARGET", 1, 1, check_options, CHECK_OPTION_COUNT,
     "  chunkbench check /srv/store\n  chunkbench check --deep --json /srv/store\n"
     "  chunkbench check --acks acks.txt /srv/store\n",
     run_check, false},
    {"export", "Write a container as one stream with checksums", "TARGET CONTAINER [FILE|-]", 2, 3,
     export_options, EXPORT_OPTION_COUNT,
     "  chunkbench export /srv/store 7 seven.ckb\n"
     "  chunkbench export /srv/store 7 | ssh other chunkbench import /srv/store\n",
     run_export, false},
    {"import", "Make a container from such a stream", "TARGET [FILE|-]", 1, 2, import_options,
     IMPORT_OPTION_COUNT,
     "  chunkbench import /srv/store seven.ckb\n  chunkbench import --as 8 /srv/store seven.ckb\n", run_import,
     false},
    {"scrub", "Verify all of it at a rate, go on where it stopped, mark what is damaged", "TARGET", 1, 1,
     scrub_options, SCRUB_OPTION_COUNT,
     "  chunkbench scrub /srv/store\n  chunkbench scrub --rate 20M --json /dev/sdb\n", run_scrub, false},
};

#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const char target_help[] = "TARGET: a directory, file:PATH[:SIZE] (an image), /dev/NAME or ram:SIZE.\n";

static void print_usage(FILE *stream)
{
    (void)fprintf(stream, "usage: chunkbench COMMAND [TARGET] [options]\n\n");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        (void)fprintf(stream, "  %-8s  %s\n", commands[i].name, commands[i].summary);
    (void)fprintf(
        stream,
        "\n%sWorkloads default to the current directory. `chunkbench COMMAND --help` says more.\n"
        "exit: 0 good, 1 measured but failed, 2 usage, 3 I/O, 4 corrupt, 5 no space, 128+n signal n\n",
        target_help);
}

static void print_help(const invocation *call)
{
    const command *c = call->command;
    ckb_sink sink = stream_sink(stdout);
    (void)printf("usage: chunkbench %s %s [options]\n\n%s\n\n", c->name, c->operands, c->summary);
    if (call->workload != NULL)
        (void)ckb_options_help(call->workload->options, call->workload->option_count, &sink);
    (void)ckb_options_help(c->options, c->option_count, &sink);
    (void)printf("\n%s\nexamples:\n%s", target_help,
                 call->workload != NULL ? call->workload->examples : c->examples);
}

/* --help stands last in every table but that of `write`, whose last options are its own. */
static bool wants_help(const invocation *call)
{
    for (uint32_t i = 0; i < call->command->option_count; i++)
        if (strcmp(call->command->options[i].name, "help") == 0)
            return flag(&call->own[i]);
    return false;
}

static char *join_arguments(int count, char **arguments)
{
    size_t bytes = 1;
    char *text, *at;
    for (int i = 0; i < count; i++)
        bytes += strlen(arguments[i]) + 1;
    text = malloc(bytes);
    if (text == NULL)
        return NULL;
    at = text;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(arguments[i]);
        memcpy(at, arguments[i], length);
        at += length;
        *at++ = ' ';
    }
    *(at > text ? at - 1 : at) = '\0';
    return text;
}

static int run_command(invocation *call, int count, char **arguments)
{
    ckb_option_set sets[2] = {{call->command->options, call->command->option_count, call->own},
                              {NULL, 0, call->values}};
    char message[MESSAGE_BYTES];
    int status;
    if (call->workload != NULL) {
        sets[1].options = call->workload->options;
        sets[1].count = call->workload->option_count;
    }
    ckb_options_defaults(&sets[0]);
    ckb_options_defaults(&sets[1]);
    status = ckb_options_parse(sets, 2, count, (const char *const *)arguments, call->operands,
                               call->command->operands_max, &call->operand_count, message, sizeof message);
    if (wants_help(call)) {
        print_help(call);
        return EXIT_GOOD;
    }
    if (status != CKB_OK) {
        complain(call, "%s", message);
        return EXIT_USAGE;
    }
    if (call->operand_count < call->command->operands_min) {
        complain(call, "missing argument; usage: chunkbench %s %s", call->command->name,
                 call->command->operands);
        return EXIT_USAGE;
    }
    return call->command->run(call);
}

static const command *find_command(const char *name)
{
    const ckb_workload *workload = ckb_workload_find(name);
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        if (strcmp(commands[i].name, workload != NULL ? workload->name : name) == 0)
            return &commands[i];
    return NULL;
}

int main(int argument_count, char **arguments)
{
    static invocation call;
    int code;
    occupy_standard_descriptors();
    install_signals();
    if (argument_count < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (strcmp(arguments[1], "--version") == 0) {
        (void)printf("chunkbench %s (format %d.%d)\n", ckb_version(), CKB_FORMAT_MAJOR, CKB_FORMAT_MINOR);
        return finish_stdout(EXIT_GOOD);
    }
    if (strcmp(arguments[1], "--help") == 0 || strcmp(arguments[1], "-h") == 0) {
        print_usage(stdout);
        return finish_stdout(EXIT_GOOD);
    }
    call.command = find_command(arguments[1]);
    if (call.command == NULL) {
        complain(NULL, "\"%.80s\" is no command; chunkbench --help lists them", arguments[1]);
        return EXIT_USAGE;
    }
    call.workload = call.command->is_workload ? ckb_workload_find(call.command->name) : NULL;
    call.command_line = join_arguments(argument_count, arguments);
    if (call.command_line == NULL)
        return EXIT_SPACE;
    code = run_command(&call, argument_count - 2, arguments + 2);
    free(call.command_line);
    return finish_stdout(code);
}
