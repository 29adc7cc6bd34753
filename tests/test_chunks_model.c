/* Seeded random operations against a plain model in memory, on RAM with power cuts, on a directory and on
 * an image file. The volume is small, so that it is often full.
 *
 * CKB_MODEL_SEED sets another seed, CKB_MODEL_OPERATIONS another number of operations. A failure prints an
 * id; CKB_REPLAY=id runs that seed up to that operation. */
#define _GNU_SOURCE
#include "workload.h"

#include "platform.h"
#include "test.h"

enum { WRITERS = 3, HISTORY = 2500, LOOK_EVERY = 6000 };

typedef struct model {
    const char *name;
    uint64_t seed;
    uint64_t operations; /* to do */
    bool power_cuts;
    test_world world;
    world_table *table;
    media_random random;
    test_oracle oracle;
    media_cursor cursor;
    uint64_t compacted_bytes;
    uint8_t *base; /* RAM: the image where this history began */
    uint8_t *image;
    media_trace_segment *segments; /* and what had been attempted */
    uint64_t done, cuts, remounts, looks, reads;
    world_verdict verdict;
} model;

static const world_shape model_shape = {.geometry = {.segment_bytes = 8192,
                                                     .segment_count = 20,
                                                     .read_unit = 64,
                                                     .write_unit = 64,
                                                     .buffer_align = 8},
                                        .config = {.max_chunks = 1024, .max_containers = 12, .max_writers = 4},
                                        .writer = {.buffer_bytes = 2048, .summary_entries = 16},
                                        .container_base = 9000};

/* Full most of the time: so few segments, and deletes that fill the index. */
static const world_shape full_shape = {
    .geometry =
        {.segment_bytes = 8192, .segment_count = 12, .read_unit = 64, .write_unit = 64, .buffer_align = 8},
    .config = {.max_chunks = 200, .max_containers = 12, .max_writers = 4, .io_buffer_bytes = 512},
    .writer = {.buffer_bytes = 2048, .summary_entries = 16},
    .container_base = 9000};

/* ---------------------------------------------------------------------------------------------- reading */

/* Any range of any chunk, held against the newest state. */
static void read_some(model *now)
{
    test_world *world = &now->world;
    uint32_t slot = world_open_slot(world, &now->random);
    ckb_chunk_id id = world_chunk_id(world, slot);
    int32_t state = world->chunks[slot];
    int32_t container = world->containers[world_container_of(slot)];
    bool there = state >= 0 && (container == CKB_CONTAINER_OPEN || container == CKB_CONTAINER_CLOSED);
    const world_action *action = there ? &now->table->items[state] : NULL;
    uint64_t offset = media_random_below(&now->random, action ? action->length + 2 : 100);
    size_t length = (size_t)media_random_below(&now->random, world->max_chunk);
    size_t got = 0;
    int status = ckb_chunk_read(world->reader, &id, offset, world->buffer, length, &got);
    now->reads++;
    if (!there) {
        unsigned gone = WORLD_BIT(CKB_NOTFOUND) | (state == WORLD_ABSENT ? 0 : WORLD_BIT(CKB_DELETED));
        verdict_status(&now->verdict, "read", slot, status,
                       gone | (container == CKB_CONTAINER_DELETED ? WORLD_BIT(CKB_DELETED) : 0));
        return;
    }
    if (offset > action->length) {
        verdict_status(&now->verdict, "read behind the end", slot, status, WORLD_BIT(CKB_END));
        return;
    }
    size_t left = action->length - (size_t)offset;
    size_t expected = left < length ? left : length;
    verdict_status(&now->verdict, "read", slot, status, WORLD_BIT(CKB_OK));
    if (status == CKB_OK &&
        (got != expected || (got && memcmp(world->buffer, action->data + offset, got) != 0))) {
        verdict_set(&now->verdict, "read of slot %u, %zu bytes from %llu of %zu: got %zu, or other bytes", slot,
                    length, (unsigned long long)offset, action->length, got);
    }
}

static void stat_some(model *now)
{
    test_world *world = &now->world;
    uint32_t slot = world_open_slot(world, &now->random);
    ckb_chunk_id id = world_chunk_id(world, slot);
    ckb_chunk_info info;
    int status = ckb_chunk_stat(world->volume, &id, &info);
    int32_t state = world->chunks[slot];
    int32_t container = world->containers[world_container_of(slot)];
    if (state >= 0 && (container == CKB_CONTAINER_OPEN || container == CKB_CONTAINER_CLOSED)) {
        if (status != CKB_OK || info.length != now->table->items[state].length) {
            verdict_set(&now->verdict, "stat of slot %u says %s, %u bytes", slot, ckb_status_text(status),
                        info.length);
        }
    } else if (status != CKB_NOTFOUND && status != CKB_DELETED) {
        verdict_set(&now->verdict, "stat of slot %u, which is not there, says %s", slot,
                    ckb_status_text(status));
    }
}

/* Everything against the model. */
static void look_at_all(model *now)
{
    observation known, seen;
    world_observe_newest(&now->world, &known);
    oracle_rebase(&now->oracle, &known);
    world_check(&now->world, &now->oracle, &seen, &now->verdict);
    now->looks++;
}

/* All bytes of the volume are something, and one thing only. */
static void look_at_space(model *now)
{
    ckb_stat stat;
    ckb_volume_stat(now->world.volume, &stat);
    uint64_t all = stat.geometry.segment_bytes * stat.geometry.segment_count;
    uint64_t sum = stat.free_bytes + stat.live_bytes + stat.dead_bytes + stat.reserved_bytes;
    if (sum != all) {
        verdict_set(&now->verdict, "free, live, dead and reserved make %llu of %llu bytes",
                    (unsigned long long)sum, (unsigned long long)all);
    }
    if (stat.damage > 0) {
        verdict_set(&now->verdict, "%llu places are said to be damaged", (unsigned long long)stat.damage);
    }
    now->compacted_bytes += stat.compacted_bytes;
}

/* -------------------------------------------------------------------------------------------- histories */

static void begin_history(model *now, observation *seen)
{
    world_compact(&now->world, seen);
    if (now->power_cuts) {
        memcpy(now->base, now->world.ram.image, media_volume_bytes(&now->world.shape.geometry));
        memcpy(now->segments, now->world.trace.segments,
               now->world.shape.geometry.segment_count * sizeof *now->segments);
    }
}

static void mount_again(model *now)
{
    verdict_status(&now->verdict, "mount", 0, world_mount(&now->world), WORLD_BIT(CKB_OK));
    if (verdict_good(&now->verdict)) {
        world_compare_mounts(&now->world, &now->verdict);
        world_open_writers(&now->world, WRITERS, &now->verdict);
    }
}

static void remount(model *now)
{
    observation seen;
    verdict_status(&now->verdict, "unmount", 0, world_unmount(&now->world), WORLD_BIT(CKB_OK));
    mount_again(now);
    world_observe_newest(&now->world, &seen);
    begin_history(now, &seen);
    now->remounts++;
}

/* Power fails now or within the next operations of the medium. */
static void power_cut(model *now)
{
    test_world *world = &now->world;
    observation seen;
    world_verdict unwinding = {""};
    world->crash.cut_after = world->crash.operations + media_random_below(&now->random, 12);
    for (uint64_t step = media_random_below(&now->random, 8); step > 0; step--) {
        world_random_put(world, &now->random, 0, world_open_slot(world, &now->random), WORLD_PAYLOAD_COUNT,
                         &unwinding);
        unwinding.text[0] = 0;
        world_commit(world, 1);
    }
    media_cursor_rewind(&now->cursor, now->base, now->segments);
    world_observe_newest(world, &seen);
    const media_event *event;
    while ((event = media_cursor_advance(&now->cursor))) {
        oracle_note(&now->oracle, event);
    }
    media_cursor_materialise(&now->cursor, now->seed, now->done, now->image);
    world_load(world, now->image, now->cursor.segments);
    mount_again(now);
    if (verdict_good(&now->verdict) && world_check(world, &now->oracle, &seen, &now->verdict)) {
        begin_history(now, &seen);
        now->cuts++;
    }
}

/* The history's own truth, from which a power cut later counts. */
static void remember(model *now)
{
    observation known;
    world_observe_newest(&now->world, &known);
    oracle_rebase(&now->oracle, &known);
}

/* ---------------------------------------------------------------------------------------------- running */

static void model_step(model *now)
{
    uint64_t dice = media_random_below(&now->random, 100);
    if (dice < 60) {
        world_random_step(&now->world, &now->random, WRITERS, &now->verdict);
    } else if (dice < 95) {
        read_some(now);
    } else {
        stat_some(now);
    }
    now->done++;
}

static void model_open(model *now, const world_shape *shape, const ckb_medium *below)
{
    now->table = world_table_new();
    now->random = media_random_from(now->seed, 77, 0);
    now->oracle.table = now->table;
    world_init(&now->world, shape, now->table, below);
    size_t bytes = media_volume_bytes(&now->world.shape.geometry);
    cr_assert_eq(world_format(&now->world, now->seed), CKB_OK);
    if (now->power_cuts) {
        now->base = media_alloc(bytes);
        now->image = media_alloc(bytes);
        now->segments = media_alloc(now->world.shape.geometry.segment_count * sizeof *now->segments);
        media_cursor_init(&now->cursor, &now->world.crash, &now->world.shape.geometry, now->world.ram.image);
    }
    mount_again(now);
    observation seen;
    world_observe_newest(&now->world, &seen);
    begin_history(now, &seen);
}

static void model_close(model *now)
{
    if (now->power_cuts) {
        media_cursor_free(&now->cursor);
        free(now->base);
        free(now->image);
        free(now->segments);
    }
    world_free(&now->world);
    world_table_free(now->table);
}

static bool model_settings(model *now)
{
    const char *id = getenv("CKB_REPLAY");
    const char *seed = getenv("CKB_MODEL_SEED");
    const char *operations = getenv("CKB_MODEL_OPERATIONS");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "test=%s/", now->name);
    if (id) {
        return strncmp(id, wanted, strlen(wanted)) == 0 && media_id_number(id, "seed", &now->seed) &&
               media_id_number(id, "operation", &now->operations);
    }
    now->seed = seed ? strtoull(seed, NULL, 10) : now->seed;
    now->operations = operations ? strtoull(operations, NULL, 10) : now->operations;
    return true;
}

static void run_model(model *now, const world_shape *shape, const ckb_medium *below)
{
    model_open(now, shape, below);
    remember(now);
    uint64_t history_end = HISTORY;
    while (now->done < now->operations && verdict_good(&now->verdict)) {
        model_step(now);
        if (now->done >= history_end && verdict_good(&now->verdict)) {
            look_at_space(now);
            if (now->power_cuts && media_random_below(&now->random, 4) != 0) {
                power_cut(now);
            } else {
                remount(now);
            }
            if (verdict_good(&now->verdict) && now->done % LOOK_EVERY < HISTORY) {
                look_at_all(now);
            }
            remember(now);
            history_end = now->done + 1 + media_random_below(&now->random, HISTORY);
        }
    }
    if (verdict_good(&now->verdict)) {
        look_at_all(now);
        verdict_status(&now->verdict, "unmount", 0, world_unmount(&now->world), WORLD_BIT(CKB_OK));
    }
    printf("%s seed %llu: %llu operations, %llu reads, %llu writes without room, %llu KiB compacted, %llu "
           "power cuts, "
           "%llu remounts, %llu full comparisons\n",
           now->name, (unsigned long long)now->seed, (unsigned long long)now->done,
           (unsigned long long)now->reads, (unsigned long long)now->world.refused_writes,
           (unsigned long long)now->compacted_bytes / 1024, (unsigned long long)now->cuts,
           (unsigned long long)now->remounts, (unsigned long long)now->looks);
    cr_expect(verdict_good(&now->verdict), "%s\n    CKB_REPLAY='test=%s/seed=%llu/operation=%llu'",
              now->verdict.text, now->name, (unsigned long long)now->seed, (unsigned long long)now->done);
    cr_expect_eq(now->world.trace.violations, 0, "%s", now->world.trace.message);
    model_close(now);
}

/* ---------------------------------------------------------------------------------------------- targets */

static void run_on_target(model *now, const char *text)
{
    static ckb_target target;
    ckb_target_options options = {.create = true, .segment_bytes = 65536, .size_bytes = 20 * 65536};
    world_shape shape = model_shape;
    shape.writer.buffer_bytes = 0;
    cr_assert_eq(ckb_target_open(text, &options, &target), CKB_OK, "%s", target.error);
    run_model(now, &shape, &target.medium);
    cr_expect_eq(ckb_target_close(&target), CKB_OK, "%s", target.error);
}

Test(chunks_model, agree_with_a_plain_model_in_a_million_operations_and_power_cuts_on_ram)
{
    static model now = {.name = "ram", .seed = 11, .operations = 1000000, .power_cuts = true};
    if (model_settings(&now)) {
        run_model(&now, &model_shape, NULL);
    }
}

Test(chunks_model, agree_with_a_plain_model_on_a_volume_that_is_full_most_of_the_time)
{
    static model now = {.name = "full", .seed = 14, .operations = 1000000, .power_cuts = true};
    if (model_settings(&now)) {
        run_model(&now, &full_shape, NULL);
    }
}

Test(chunks_model, agree_with_a_plain_model_while_checkpoints_are_taken)
{
    static model now = {.name = "checkpoint", .seed = 14, .operations = 600000, .power_cuts = true};
    world_shape shape = model_shape;
    shape.geometry.segment_count = 48;
    shape.config.checkpoint_records = 1;
    shape.config.free_segments = 1000;
    shape.config.max_chunks = 200;
    shape.config.io_buffer_bytes = 512;
    if (model_settings(&now)) {
        run_model(&now, &shape, NULL);
        cr_expect(world_compared_mounts() > 50, "only %d mounts with a checkpoint",
                  (int)world_compared_mounts());
    }
}

Test(chunks_model, agree_with_a_plain_model_on_a_directory)
{
    static model now = {.name = "directory", .seed = 12, .operations = 50000};
    char path[TEST_PATH_BYTES];
    if (model_settings(&now)) {
        test_directory_make(path);
        run_on_target(&now, path);
        test_tree_remove(path);
    }
}

Test(chunks_model, agree_with_a_plain_model_on_an_image_file)
{
    static model now = {.name = "image", .seed = 13, .operations = 50000};
    char path[TEST_PATH_BYTES], text[TEST_PATH_BYTES + 64];
    if (model_settings(&now)) {
        test_directory_make(path);
        snprintf(text, sizeof text, "file:%s/image:%d", path, 20 * 65536);
        run_on_target(&now, text);
        test_tree_remove(path);
    }
}
