#include "sweep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 6, SECOND_CUTS = 2, THIRD_MOUNT_EVERY = 64, VIOLATIONS_SHOWN = 5, ACTIONS_SHOWN = 24 };

/* Small segments, so that rolls and journal switches are frequent. */
const world_shape sweep_small = {.geometry = {.segment_bytes = 4096,
                                              .segment_count = 24,
                                              .read_unit = 64,
                                              .write_unit = 64,
                                              .buffer_align = 8},
                                 .config = {.max_chunks = 1024, .max_containers = 12, .max_writers = 4},
                                 .writer = {.buffer_bytes = 1024, .summary_entries = 8},
                                 .container_base = 1000};

/* Large chunks: more than a window of 16 KiB and more than a writer's buffer; a sector of 512 bytes. */
const world_shape sweep_large = {.geometry = {.segment_bytes = 40960,
                                              .segment_count = 12,
                                              .read_unit = 512,
                                              .write_unit = 512,
                                              .buffer_align = 512},
                                 .config = {.max_chunks = 1024, .max_containers = 12, .max_writers = 4},
                                 .writer = {.buffer_bytes = 8192},
                                 .container_base = 1000};

const world_shape sweep_many = {.geometry = {.segment_bytes = 2048,
                                             .segment_count = 48,
                                             .read_unit = 64,
                                             .write_unit = 64,
                                             .buffer_align = 8},
                                .config = {.max_chunks = 1024, .max_containers = 12, .max_writers = 4},
                                .writer = {.buffer_bytes = 512},
                                .container_base = 1000};

/* Compaction whenever it gains anything, and an index that deletes soon fill. */
const world_shape sweep_compact = {.geometry = {.segment_bytes = 4096,
                                                .segment_count = 20,
                                                .read_unit = 64,
                                                .write_unit = 64,
                                                .buffer_align = 8},
                                   .config = {.max_chunks = 160,
                                              .max_containers = 12,
                                              .max_writers = 4,
                                              .free_segments = 1000,
                                              .io_buffer_bytes = 512},
                                   .writer = {.buffer_bytes = 1024, .summary_entries = 8},
                                   .container_base = 1000};

const world_shape sweep_compact_large = {.geometry = {.segment_bytes = 40960,
                                                      .segment_count = 12,
                                                      .read_unit = 512,
                                                      .write_unit = 512,
                                                      .buffer_align = 512},
                                         .config = {.max_chunks = 160,
                                                    .max_containers = 12,
                                                    .max_writers = 4,
                                                    .free_segments = 1000,
                                                    .io_buffer_bytes = 4096},
                                         .writer = {.buffer_bytes = 8192},
                                         .container_base = 1000};

/* A little room to spare for checkpoints, which begin as often as they can. */
const world_shape sweep_checkpoint = {.geometry = {.segment_bytes = 4096,
                                                   .segment_count = 56,
                                                   .read_unit = 64,
                                                   .write_unit = 64,
                                                   .buffer_align = 8},
                                      .config = {.max_chunks = 1024,
                                                 .max_containers = 8,
                                                 .max_writers = 4,
                                                 .checkpoint_records = 1,
                                                 .io_buffer_bytes = 512},
                                      .writer = {.buffer_bytes = 1024, .summary_entries = 8},
                                      .container_base = 1000};

/* Both: compaction under checkpoints, and an index that deletes fill. */
const world_shape sweep_tidy = {.geometry = {.segment_bytes = 4096,
                                             .segment_count = 40,
                                             .read_unit = 64,
                                             .write_unit = 64,
                                             .buffer_align = 8},
                                .config = {.max_chunks = 160,
                                           .max_containers = 8,
                                           .max_writers = 4,
                                           .free_segments = 1000,
                                           .checkpoint_records = 1,
                                           .io_buffer_bytes = 512},
                                .writer = {.buffer_bytes = 1024, .summary_entries = 8},
                                .container_base = 1000};

/* Checkpoints of several segments, beside logs. */
const world_shape sweep_checkpoint_log = {.geometry = {.segment_bytes = 2048,
                                                       .segment_count = 80,
                                                       .read_unit = 64,
                                                       .write_unit = 64,
                                                       .buffer_align = 8},
                                          .config = {.max_chunks = 1024,
                                                     .max_containers = 8,
                                                     .max_writers = 4,
                                                     .checkpoint_records = 1,
                                                     .io_buffer_bytes = 512},
                                          .writer = {.buffer_bytes = 512},
                                          .container_base = 1000,
                                          .logs = 1,
                                          .log = {.buffer_bytes = 512}};

const world_shape sweep_log_8 = {.geometry = {.segment_bytes = 2048,
                                              .segment_count = 32,
                                              .read_unit = 8,
                                              .write_unit = 8,
                                              .buffer_align = 8},
                                 .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                 .writer = {.buffer_bytes = 512},
                                 .container_base = 1000,
                                 .logs = LOG_SLOTS,
                                 .log = {.buffer_bytes = 512}};

const world_shape sweep_log_64 = {.geometry = {.segment_bytes = 2048,
                                               .segment_count = 32,
                                               .read_unit = 64,
                                               .write_unit = 64,
                                               .buffer_align = 8},
                                  .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                  .writer = {.buffer_bytes = 512},
                                  .container_base = 1000,
                                  .logs = LOG_SLOTS,
                                  .log = {.buffer_bytes = 512}};

const world_shape sweep_log_256 = {.geometry = {.segment_bytes = 4096,
                                                .segment_count = 24,
                                                .read_unit = 256,
                                                .write_unit = 256,
                                                .buffer_align = 16},
                                   .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                   .writer = {.buffer_bytes = 1024},
                                   .container_base = 1000,
                                   .logs = LOG_SLOTS,
                                   .log = {.buffer_bytes = 1024}};

const world_shape sweep_log_512 = {.geometry = {.segment_bytes = 8192,
                                                .segment_count = 20,
                                                .read_unit = 512,
                                                .write_unit = 512,
                                                .buffer_align = 512},
                                   .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                   .writer = {.buffer_bytes = 2048},
                                   .container_base = 1000,
                                   .logs = LOG_SLOTS,
                                   .log = {.buffer_bytes = 2048}};

const world_shape sweep_log_4096 = {.geometry = {.segment_bytes = 65536,
                                                 .segment_count = 10,
                                                 .read_unit = 4096,
                                                 .write_unit = 4096,
                                                 .buffer_align = 4096},
                                    .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                    .writer = {.buffer_bytes = 16384},
                                    .container_base = 1000,
                                    .logs = LOG_SLOTS,
                                    .log = {.buffer_bytes = 16384}};

/* -------------------------------------------------------------------------------------------- threads */

/* Writers 0 and 1 are shared by threads 0-1 and 2-3; threads 4 and 5 have their own. So it is with logs, of
 * which thread 4 has its own and thread 5 none: it writes chunks. */
typedef struct worker {
    test_world *world;
    media_random random;
    uint32_t number;
    world_verdict verdict;
    pthread_t thread;
} worker;

static void *work_on_log(void *context)
{
    worker *me = context;
    for (int turn = 0; turn < 8; turn++) {
        if (me->number == 4) {
            log_random_step(me->world, &me->random, 2, &me->verdict);
        } else if (media_random_below(&me->random, 10) < 7) {
            log_random_append(me->world, &me->random, me->number / 2, WORLD_PAYLOAD_RECORD, &me->verdict);
        } else {
            log_random_commit(me->world, &me->random, me->number / 2, &me->verdict);
        }
    }
    return NULL;
}

static void *work(void *context)
{
    worker *me = context;
    uint32_t writer = me->number < 4 ? me->number / 2 : me->number - 2;
    for (int turn = 0; turn < 8; turn++) {
        uint32_t slot = world_open_slot(me->world, &me->random);
        slot = slot - slot % WORLD_CONTAINER_CHUNKS + me->number + (uint32_t)(turn & 1) * THREADS;
        uint64_t dice = media_random_below(&me->random, 10);
        if (dice < 7) {
            world_random_put(me->world, &me->random, writer, slot, WORLD_PAYLOAD_RECORD, &me->verdict);
        } else if (dice < 8) {
            world_random_delete(me->world, &me->random, writer, slot, &me->verdict);
        } else {
            verdict_status(&me->verdict, "commit", writer, world_commit(me->world, writer), WORLD_BIT(CKB_OK));
        }
    }
    return NULL;
}

static void threads_step(test_world *world, uint64_t seed, uint64_t round, world_verdict *verdict)
{
    worker workers[THREADS];
    media_random random = media_random_from(seed, 99 + round, THREADS);
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        log_bring_up(world, &random, slot, verdict);
    }
    world->logs.crowded = true;
    for (uint32_t i = 0; i < THREADS; i++) {
        memset(&workers[i], 0, sizeof workers[i]);
        workers[i].world = world;
        workers[i].number = i;
        workers[i].random = media_random_from(seed, 100 + round, i);
        bool on_log = world->logs.count > 0 && i < THREADS - 1;
        cr_assert_eq(pthread_create(&workers[i].thread, NULL, on_log ? work_on_log : work, &workers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(workers[i].thread, NULL);
        if (!verdict_good(&workers[i].verdict)) {
            verdict_set(verdict, "thread %u: %s", i, workers[i].verdict.text);
        }
    }
    world->logs.crowded = false;
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        log_expect_whole(world, slot, verdict);
    }
}

/* ------------------------------------------------------------------------------------------ recording */

/* What was done last before action `end`, for whoever looks for the cause. */
static void print_actions(const world_table *table, int32_t end)
{
    static const char *const names[] = {"put",        "delete",       "create",     "close",
                                        "drop",       "log create",   "log delete", "log append",
                                        "log commit", "log truncate", "log purge",  "log reset"};
    for (int32_t i = end > ACTIONS_SHOWN ? end - ACTIONS_SHOWN : 0; i < end; i++) {
        const world_action *action = &table->items[i];
        fprintf(stderr, "    #%d %s slot %u index %llu, %zu bytes%s%s\n", i, names[action->kind], action->slot,
                (unsigned long long)action->index, action->length, action->durable ? ", durable" : "",
                action->idle ? ", changed nothing" : "");
    }
}

static size_t segments_bytes(const sweep *now)
{
    return now->shape.geometry.segment_count * sizeof(media_trace_segment);
}

static void record(sweep *now, size_t steps)
{
    world_verdict verdict = {""};
    test_world *world = &now->recorded;
    media_random random = media_random_from(now->seed, 1, 0);
    cr_assert_eq(world_format(world, now->seed), CKB_OK);
    memcpy(now->base, world->ram.image, media_volume_bytes(&now->shape.geometry));
    memcpy(now->base_segments, world->trace.segments, segments_bytes(now));
    media_crash_restart(&world->crash);
    world->crash.slow_sync_ns = now->threaded ? 20000 : 0;
    cr_assert_eq(world_mount(world), CKB_OK);
    world_open_writers(world, 4, &verdict);
    for (size_t step = 0; step < steps && verdict_good(&verdict); step++) {
        if (now->threaded && step % 8 == 7) {
            threads_step(world, now->seed, step, &verdict);
        } else {
            world_random_step(world, &random, 4, &verdict);
        }
    }
    if (!verdict_good(&verdict)) {
        print_actions(now->table, now->table->count);
    }
    cr_assert(verdict_good(&verdict), "workload seed %llu: %s", (unsigned long long)now->seed, verdict.text);
    cr_assert_eq(world_unmount(world), CKB_OK);
    cr_assert_eq(world->trace.violations, 0, "%s", world->trace.message);
}

/* Actions of a kind that did something, with so many bytes. */
static size_t count_actions(const sweep *now, world_kind kind, size_t least, size_t most)
{
    size_t count = 0;
    for (int32_t i = 0; i < now->recorded_actions; i++) {
        const world_action *action = &now->table->items[i];
        count += action->kind == kind && !action->idle && action->length >= least && action->length <= most;
    }
    return count;
}

/* The logs must have met what the workload is made for. */
static void expect_log_coverage(const sweep *now)
{
    size_t large = count_actions(now, WORLD_LOG_APPEND, now->shape.log.buffer_bytes + 1, SIZE_MAX);
    size_t empty = count_actions(now, WORLD_LOG_APPEND, 0, 0);
    size_t whole = count_actions(now, WORLD_LOG_APPEND, now->recorded.logs.max_entry, SIZE_MAX);
    size_t truncated = count_actions(now, WORLD_LOG_TRUNCATE, 0, 0);
    size_t purged = count_actions(now, WORLD_LOG_PURGE, 0, 0),
           reset = count_actions(now, WORLD_LOG_RESET, 0, 0);
    size_t deleted = count_actions(now, WORLD_LOG_DELETE, 0, 0);
    printf("%s seed %llu: %zu entries (%zu larger than a buffer, %zu the largest, %zu empty), %zu truncates, "
           "%zu purges, %zu resets, %zu deletes, %llu appends without room\n",
           now->name, (unsigned long long)now->seed, count_actions(now, WORLD_LOG_APPEND, 0, SIZE_MAX), large,
           whole, empty, truncated, purged, reset, deleted, (unsigned long long)now->recorded.logs.refused);
    cr_expect(large > 0 && empty > 0 && whole > 0);
    cr_expect(truncated > 10 && purged > 10 && reset > 1 && deleted > 1);
}

/* The workload must have met what it is made for. */
static void expect_coverage(const sweep *now)
{
    const media_crash *log = &now->recorded.crash;
    size_t erases[2] = {0, 0}, writes = 0;
    for (size_t i = 0; i < log->event_count; i++) {
        const media_event *event = &log->events[i];
        erases[event->segment < 2] += event->kind == MEDIA_EVENT_ERASE;
        writes += event->kind == MEDIA_EVENT_WRITE;
    }
    size_t large = count_actions(now, WORLD_PUT, now->shape.writer.buffer_bytes + 1, SIZE_MAX);
    size_t empty = count_actions(now, WORLD_PUT, 0, 0);
    printf("%s seed %llu: %zu operations of the medium, %d actions; %zu writes, %zu segments erased, "
           "%zu journal switches, %zu large, %zu empty, %llu deletes without room\n",
           now->name, (unsigned long long)now->seed, media_crash_steps(log), now->recorded_actions, writes,
           erases[0], erases[1], large, empty, (unsigned long long)now->recorded.refused_deletes);
    cr_expect(erases[0] > now->shape.geometry.segment_count, "no segment was used twice");
    cr_expect(erases[1] >= 2, "the journal never switched");
    cr_expect(large > 0 && empty > 0);
    if (now->shape.logs > 0) {
        expect_log_coverage(now);
    }
}

static bool save_recording(sweep *now)
{
    const char *directory = getenv("TMPDIR");
    snprintf(now->log_path, sizeof now->log_path, "%s/chunkbench-%s-%d.log", directory ? directory : "/tmp",
             now->name, (int)getpid());
    FILE *file = fopen(now->log_path, "wb");
    bool good = file && fwrite(now->base, media_volume_bytes(&now->shape.geometry), 1, file) == 1 &&
                fwrite(now->base_segments, segments_bytes(now), 1, file) == 1 &&
                fwrite(&now->recorded_actions, sizeof now->recorded_actions, 1, file) == 1;
    for (int32_t i = 0; good && i < now->recorded_actions; i++) {
        const world_action *action = &now->table->items[i];
        good = fwrite(action, sizeof *action, 1, file) == 1 &&
               (!action->data || fwrite(action->data, 1, action->length, file) == action->length);
    }
    good = good && media_crash_save(&now->recorded.crash, file);
    return (!file || fclose(file) == 0) && good;
}

static bool load_recording(sweep *now, const char *path)
{
    FILE *file = fopen(path, "rb");
    bool good = file && fread(now->base, media_volume_bytes(&now->shape.geometry), 1, file) == 1 &&
                fread(now->base_segments, segments_bytes(now), 1, file) == 1 &&
                fread(&now->recorded_actions, sizeof now->recorded_actions, 1, file) == 1;
    for (int32_t i = 0; good && i < now->recorded_actions; i++) {
        world_action *action = &now->table->items[i];
        good = fread(action, sizeof *action, 1, file) == 1;
        if (good && action->data) {
            action->data = media_alloc(action->length);
            good = fread(action->data, 1, action->length, file) == action->length;
        }
        now->table->count = i + 1;
    }
    good = good && media_crash_load(&now->recorded.crash, file);
    return (!file || fclose(file) == 0) && good;
}

/* --------------------------------------------------------------------------------------------- checks */

static void report(sweep *now, size_t step, uint64_t choice, const char *stage, const world_verdict *verdict)
{
    char log[160] = "";
    if (now->threaded && now->violations == 0 && !now->log_path[0] && !save_recording(now)) {
        now->log_path[0] = 0;
    }
    if (now->log_path[0]) {
        snprintf(log, sizeof log, "/log=%s", now->log_path);
    }
    if (getenv("CKB_REPLAY")) {
        print_actions(now->table, now->oracle.begun);
        fprintf(stderr, "    and after the first mount\n");
        print_actions(now->table, now->table->count);
    }
    if (now->violations++ < VIOLATIONS_SHOWN && !now->forget_syncs) {
        fprintf(stderr, "%s\n    CKB_REPLAY='test=%s/seed=%llu/step=%zu/choice=%llu%s'  (%s)\n", verdict->text,
                now->name, (unsigned long long)now->seed, step, (unsigned long long)choice, log, stage);
    }
}

/* Mounts an image in `world` and holds it against the oracle. */
static bool mount_and_check(test_world *world, const uint8_t *image, const media_trace_segment *segments,
                            const test_oracle *oracle, observation *seen, world_verdict *verdict)
{
    world_load(world, image, segments);
    int status = world_mount(world);
    if (status != CKB_OK) {
        char text[160];
        ckb_fault_text(&world->fault_seen, text, sizeof text);
        verdict_set(verdict, "mount says %s: %s", ckb_status_text(status), text);
        return false;
    }
    world_compare_mounts(world, verdict);
    if (!verdict_good(verdict) || !world_check(world, oracle, seen, verdict)) {
        return false;
    }
    world_take(world, seen);
    return true;
}

/* What a user does after a power cut: a little of everything. */
static void work_on(test_world *world, media_random *random, world_verdict *verdict)
{
    uint64_t steps = 2 + media_random_below(random, 8);
    if (media_random_below(random, 3) == 0) {
        world_maintain(world, 1 + (uint32_t)media_random_below(random, 8), verdict);
    }
    world_open_writers(world, 2, verdict);
    if (world_count_containers(world, CKB_CONTAINER_OPEN) == 0) {
        world_random_container(world, random, verdict);
    }
    for (uint64_t step = 0; step < steps && verdict_good(verdict); step++) {
        world_random_step(world, random, 2, verdict);
    }
    if (media_random_below(random, 3) == 0 && verdict_good(verdict)) {
        verdict_status(verdict, "unmount", 0, world_unmount(world), WORLD_BIT(CKB_OK));
    }
    if (world->trace.violations) {
        verdict_set(verdict, "medium contract broken: %s", world->trace.message);
    }
}

/* After a kill nothing that the mount found need be durable. What was committed then is, and with the first
 * durable append all that was found. False when there was no room for that. */
static bool settle(test_world *world, media_random *random, world_verdict *verdict)
{
    uint8_t byte = 's';
    ckb_entry_data entry = {0, &byte, 1};
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        if (world->logs.open[slot]) {
            uint64_t last = world->logs.newest[slot].last;
            verdict_status(verdict, "commit of log", slot, world_log_commit(world, slot, last),
                           WORLD_BIT(CKB_OK));
        }
    }
    log_bring_up(world, random, 0, verdict);
    int status =
        verdict_good(verdict) ? world_log_append(world, 0, &entry, 1, CKB_DURABLE, verdict) : CKB_INVALID;
    return status == CKB_OK;
}

/* Cuts the power in what `from` did since `base`, and mounts the rest in `now->second`. */
static bool cut_again(sweep *now, test_world *from, const uint8_t *base, const media_trace_segment *segments,
                      const observation *known, size_t step, uint64_t choice, world_verdict *verdict)
{
    media_cursor *cursor = &now->second_cursor;
    cursor->log = &from->crash;
    media_cursor_rewind(cursor, base, segments);
    oracle_rebase(&now->second_oracle, known);
    const media_event *event;
    while (cursor->next < from->crash.event_count &&
           (cursor->step < step || from->crash.events[cursor->next].kind == MEDIA_EVENT_NOTE)) {
        event = media_cursor_advance(cursor);
        oracle_note(&now->second_oracle, event);
    }
    media_cursor_materialise(cursor, now->seed, choice, now->second_image);
    return mount_and_check(&now->second, now->second_image, cursor->segments, &now->second_oracle,
                           &now->second_seen, verdict);
}

/* One small append: of a chunk, or of an entry when there are logs. */
static void append_one(test_world *world, media_random *random, unsigned flags, world_verdict *verdict)
{
    uint8_t data[64];
    ckb_entry_data entry = {0, data, sizeof data};
    uint32_t slot = world->logs.count > 0 ? 0 : world_open_slot(world, random);
    unsigned allowed = WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE) | WORLD_BIT(CKB_TOOBIG);
    int status;
    media_random_fill(random, data, sizeof data);
    if (world->logs.count > 0) {
        status = world_log_append(world, slot, &entry, 1, flags, verdict);
    } else {
        allowed = world_put_statuses(world, slot, data, sizeof data, CKB_OVERWRITE);
        status = world_put(world, 0, slot, data, sizeof data, CKB_OVERWRITE | flags);
    }
    verdict_status(verdict, "append", slot, status, allowed);
    if (status != CKB_OK) {
        world_make_room(world, random, verdict);
        world_random_container(world, random, verdict);
    }
    if (status != CKB_OK && world->logs.count > 0) {
        world_log_change(world, WORLD_LOG_RESET, 0, 1);
    }
}

/* A hundred more appends survive one more cut. */
static void append_hundred(sweep *now, media_random *random, world_verdict *verdict)
{
    test_world *world = &now->second;
    observation known = now->second_seen;
    uint8_t *base = media_alloc(media_volume_bytes(&now->shape.geometry));
    media_trace_segment *segments = media_alloc(segments_bytes(now));
    memcpy(base, now->second_image, media_volume_bytes(&now->shape.geometry));
    memcpy(segments, now->second_cursor.segments, segments_bytes(now));
    world_open_writers(world, 1, verdict);
    if (world->logs.count > 0) {
        log_bring_up(world, random, 0, verdict);
    }
    for (int i = 0; i < 100 && verdict_good(verdict); i++) {
        append_one(world, random, i % 10 ? 0 : CKB_DURABLE, verdict);
    }
    verdict_status(verdict, "commit", 0, world_commit(world, 0), WORLD_BIT(CKB_OK));
    if (verdict_good(verdict)) {
        /* The log of `second` is its own source here: the cursor has what it needs before the load. */
        cut_again(now, world, base, segments, &known, SIZE_MAX, MEDIA_WAY_NOTHING, verdict);
    }
    now->third_mounts++;
    free(base);
    free(segments);
}

/* Cuts what the first mount did in a few places, from operation `least` on. */
static void cut_first(sweep *now, const uint8_t *base, size_t least, media_random *random, size_t step,
                      uint64_t choice, world_verdict *verdict)
{
    size_t steps = media_crash_steps(&now->first.crash);
    for (int i = 0; i < SECOND_CUTS && verdict_good(verdict); i++) {
        size_t where = i == 0 ? steps : least + (size_t)media_random_below(random, steps - least + 1);
        uint64_t how = media_random_below(random, 1000);
        now->second_cuts++;
        if (!cut_again(now, &now->first, base, now->cursor.segments, &now->seen, where, how, verdict)) {
            char stage[80];
            snprintf(stage, sizeof stage, "second cut at %zu of %zu, choice %llu", where, steps,
                     (unsigned long long)how);
            report(now, step, choice, stage, verdict);
        }
    }
}

static void check_state(sweep *now, size_t step, uint64_t choice)
{
    world_verdict verdict = {""};
    media_random random = media_random_from(now->seed, step, choice + 1000);
    bool killed =
        now->shape.logs > 0 && choice % MEDIA_WAY_COUNT == MEDIA_WAY_ALL && media_random_below(&random, 2) == 0;
    if (killed) {
        media_cursor_show(&now->cursor, now->image);
    }
    if (!mount_and_check(&now->first, now->image, now->cursor.segments, &now->oracle, &now->seen, &verdict)) {
        report(now, step, choice, "first mount", &verdict);
        return;
    }
    size_t least = 0;
    if (killed) {
        media_crash_resume(&now->first.crash, &now->cursor);
        killed = settle(&now->first, &random, &verdict);
        least = media_crash_steps(&now->first.crash);
        now->kills += killed;
    }
    if (verdict_good(&verdict)) {
        work_on(&now->first, &random, &verdict);
    }
    if (!verdict_good(&verdict)) {
        report(now, step, choice, "work after the first mount", &verdict);
    }
    if (least > 0 && !killed) {
        world_table_cut(now->table, now->recorded_actions);
        return; /* no room to settle: nothing can be said of a second cut */
    }
    cut_first(now, killed ? now->cursor.durable : now->image, least, &random, step, choice, &verdict);
    if (verdict_good(&verdict) && media_random_below(&random, THIRD_MOUNT_EVERY) == 0) {
        append_hundred(now, &random, &verdict);
        if (!verdict_good(&verdict)) {
            report(now, step, choice, "100 appends and a third mount", &verdict);
        }
    }
    world_table_cut(now->table, now->recorded_actions);
}

/* Makes the state for one choice at the cursor's place and checks it unless it was seen before. */
static void visit(sweep *now, uint64_t choice, bool again)
{
    media_cursor_materialise(&now->cursor, now->seed, choice, now->image);
    uint64_t hash = media_hash(now->image, media_volume_bytes(&now->shape.geometry));
    media_set_add(&now->states, hash);
    /* The same bytes after more promises are another thing to check, though not another state. */
    if (media_set_add(&now->checked, hash ^ (now->oracle.promises + 1) * UINT64_C(0x9E3779B97F4A7C15)) ||
        again) {
        check_state(now, now->cursor.step, choice);
    }
}

/* Moves to the moment before the next operation of the medium. False at the end. */
static bool next_step(sweep *now)
{
    const media_crash *log = &now->recorded.crash;
    if (now->cursor.next == log->event_count) {
        return false;
    }
    do {
        oracle_note(&now->oracle, media_cursor_advance(&now->cursor));
    } while (now->cursor.next < log->event_count && log->events[now->cursor.next].kind == MEDIA_EVENT_NOTE);
    return true;
}

static void sweep_round(sweep *now, uint64_t choice)
{
    media_cursor_rewind(&now->cursor, now->base, now->base_segments);
    oracle_init(&now->oracle, now->table);
    while (next_step(now) && now->states.count < now->target && now->violations < 100) {
        visit(now, choice, false);
    }
}

static void replay(sweep *now, const char *id)
{
    uint64_t step = 0, choice = 0;
    cr_assert(media_id_number(id, "step", &step) && media_id_number(id, "choice", &choice), "bad id %s", id);
    media_cursor_rewind(&now->cursor, now->base, now->base_segments);
    oracle_init(&now->oracle, now->table);
    while (now->cursor.step < step && next_step(now)) {
    }
    fprintf(stderr, "replaying %s at step %zu\n", id, now->cursor.step);
    visit(now, choice, true);
}

/* ---------------------------------------------------------------------------------------------- tests */

static void sweep_open(sweep *now)
{
    size_t bytes = media_volume_bytes(&now->shape.geometry);
    const char *states = getenv("CKB_SWEEP_STATES");
    const char *seed = getenv("CKB_SWEEP_SEED");
    const char *id = getenv("CKB_REPLAY");
    now->seed += seed ? strtoull(seed, NULL, 10) : 0;
    if (id) {
        media_id_number(id, "seed", &now->seed);
    }
    now->target = states ? strtoul(states, NULL, 10) : now->target;
    now->table = world_table_new();
    now->base = media_alloc(bytes);
    now->base_segments = media_alloc(segments_bytes(now));
    now->image = media_alloc(bytes);
    now->second_image = media_alloc(bytes);
    world_init(&now->recorded, &now->shape, now->table, NULL);
    world_init(&now->first, &now->shape, now->table, NULL);
    world_init(&now->second, &now->shape, now->table, NULL);
    now->second_oracle.table = now->table;
    media_set_init(&now->states, now->target + 1024);
    media_set_init(&now->checked, now->target * 4 + 1024);
}

static void sweep_close(sweep *now)
{
    media_cursor_free(&now->cursor);
    media_cursor_free(&now->second_cursor);
    world_free(&now->recorded);
    world_free(&now->first);
    world_free(&now->second);
    world_table_free(now->table);
    media_set_free(&now->states);
    media_set_free(&now->checked);
    free(now->base);
    free(now->base_segments);
    free(now->image);
    free(now->second_image);
}

void sweep_run(sweep *now, size_t steps)
{
    const char *id = getenv("CKB_REPLAY");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "test=%s/", now->name);
    if (id && strncmp(id, wanted, strlen(wanted)) != 0) {
        return;
    }
    time_t start = time(NULL);
    sweep_open(now);
    const char *log = id ? strstr(id, "/log=") : NULL;
    if (log) {
        cr_assert(load_recording(now, log + 5), "cannot load %s", log + 5);
        now->recorded_actions = now->table->count;
    } else {
        record(now, steps);
        now->recorded_actions = now->table->count;
        expect_coverage(now);
    }
    media_cursor_init(&now->cursor, &now->recorded.crash, &now->shape.geometry, now->base);
    media_cursor_init(&now->second_cursor, &now->first.crash, &now->shape.geometry, now->base);
    if (id) {
        replay(now, id);
    } else {
        for (uint64_t choice = 0; choice < 400 && now->states.count < now->target; choice++) {
            sweep_round(now, choice);
        }
        printf("%s seed %llu: %zu distinct crash states, %zu checked, %llu second cuts, %llu kills, "
               "%llu third mounts, %llu violations, %d s\n",
               now->name, (unsigned long long)now->seed, now->states.count, now->checked.count,
               (unsigned long long)now->second_cuts, (unsigned long long)now->kills,
               (unsigned long long)now->third_mounts, (unsigned long long)now->violations,
               (int)(time(NULL) - start));
        if (now->shape.config.checkpoint_records != 0) {
            printf("%s seed %llu: %llu mounts with a checkpoint compared with one without\n", now->name,
                   (unsigned long long)now->seed, (unsigned long long)world_compared_mounts());
            cr_expect(world_compared_mounts() > now->target / 2);
        }
        cr_expect(now->states.count >= now->target, "only %zu distinct states", now->states.count);
    }
    cr_expect_eq(now->violations, 0);
    sweep_close(now);
}

void sweep_control(sweep *now, size_t steps)
{
    sweep_open(now);
    record(now, steps);
    now->recorded_actions = now->table->count;
    now->first.trace.quiet = now->second.trace.quiet = true;
    for (size_t i = 0; i < now->recorded.crash.event_count; i++) {
        now->recorded.crash.events[i].covers = 0;
    }
    media_cursor_init(&now->cursor, &now->recorded.crash, &now->shape.geometry, now->base);
    media_cursor_init(&now->second_cursor, &now->first.crash, &now->shape.geometry, now->base);
    sweep_round(now, MEDIA_WAY_NOTHING);
    sweep_round(now, MEDIA_WAY_SUBSET);
    cr_expect(now->violations > 20, "only %llu violations seen", (unsigned long long)now->violations);
    sweep_close(now);
}
