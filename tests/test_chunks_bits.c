/* Every single bit of a small volume flipped: the right data or an error, never wrong data, nothing missing
 * without a word, never a crash.
 *
 * A failure prints an id; CKB_REPLAY=id runs exactly that one. */
#include "workload.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* What one flipped bit led to. */
typedef enum outcome {
    OUTCOME_RIGHT,          /* all data, nothing reported: the bit means nothing */
    OUTCOME_REPORTED,       /* all data, and damage or a dropped tail reported */
    OUTCOME_MOUNT_REFUSED,  /* CKB_CORRUPT or CKB_VERSION from the mount */
    OUTCOME_READ_REFUSED,   /* some chunks are CKB_CORRUPT, the others right */
    OUTCOME_MISSING_LOUDLY, /* something is not there, and damage is reported */
    OUTCOME_TAIL_CUT,       /* something is not there, and a dropped tail is reported */
    OUTCOME_WRONG,
    OUTCOME_COUNT
} outcome;

static const char *const outcome_names[OUTCOME_COUNT] = {
    "right", "right and reported", "mount refused", "read refused", "missing and reported", "tail cut",
    "WRONG"};

/* A volume whose content is known exactly. */
typedef struct specimen {
    const char *name;
    bool clean;
    const world_shape *shape;
    size_t large;  /* length of the largest chunk */
    size_t stride; /* every bit, or one in so many; CKB_EVERY_BIT makes it every bit */
    test_world world;
    world_table *table;
    observation truth;
    int status[WORLD_CHUNKS]; /* what a read of each slot says while all is well */
    ckb_stat stat;            /* while all is well */
    bool covered[64];         /* segments that a mount with the checkpoint does not read */
    uint8_t *image;
    uint64_t counts[OUTCOME_COUNT];
} specimen;

static const world_shape tiny_shape = {.geometry = {.segment_bytes = 2048,
                                                    .segment_count = 8,
                                                    .read_unit = 8,
                                                    .write_unit = 64,
                                                    .buffer_align = 8},
                                       .config = {.max_chunks = 128, .max_containers = 4, .max_writers = 2},
                                       .writer = {.buffer_bytes = 512, .summary_entries = 4},
                                       .container_base = 77};

/* Chunks of several windows: each window has a checksum of its own. */
static const world_shape window_shape = {.geometry = {.segment_bytes = 40960,
                                                      .segment_count = 8,
                                                      .read_unit = 512,
                                                      .write_unit = 512,
                                                      .buffer_align = 8},
                                         .config = {.max_chunks = 128, .max_containers = 4, .max_writers = 2},
                                         .writer = {.buffer_bytes = 4096, .summary_entries = 4},
                                         .container_base = 77};

/* With room for a checkpoint, and small writes of it. */
static const world_shape checkpoint_shape = {.geometry = {.segment_bytes = 2048,
                                                          .segment_count = 18,
                                                          .read_unit = 8,
                                                          .write_unit = 64,
                                                          .buffer_align = 8},
                                             .config = {.max_chunks = 128,
                                                        .max_containers = 4,
                                                        .max_writers = 2,
                                                        .checkpoint_records = 1,
                                                        .io_buffer_bytes = 512},
                                             .writer = {.buffer_bytes = 512, .summary_entries = 4},
                                             .container_base = 77};

enum { SLOTS = 4 * WORLD_CONTAINER_CHUNKS };

/* ------------------------------------------------------------------------------------------- specimens */

static void put_some(specimen *now, media_random *random, uint32_t writer, uint32_t first, uint32_t count)
{
    static uint8_t data[40000];
    test_world *world = &now->world;
    for (uint32_t i = 0; i < count; i++) {
        size_t length = i == 1 ? 0 : i == 2 ? now->large : (size_t)media_random_below(random, 120);
        media_random_fill(random, data, length);
        if (i == 3) {
            memset(data, 0, length);
        }
        cr_assert_eq(world_put(world, writer, first + i, data, length, CKB_OVERWRITE), CKB_OK);
    }
}

/* Fills a few segments, and checkpoints. */
static void put_more_and_checkpoint(specimen *now, media_random *random)
{
    bool more = true;
    for (int round = 0; round < 3; round++) {
        put_some(now, random, 0, 0, 8);
        put_some(now, random, 1, 16, 6);
    }
    while (more) {
        cr_assert_eq(ckb_maintain(now->world.volume, 1, &more), CKB_OK);
    }
    ckb_volume_stat(now->world.volume, &now->stat);
    cr_assert_gt(now->stat.checkpoint_entries, 0);
}

static void specimen_fill(specimen *now)
{
    test_world *world = &now->world;
    media_random random = media_random_from(5, now->clean, 0);
    cr_assert_eq(world_format(world, 5), CKB_OK);
    cr_assert_eq(world_mount(world), CKB_OK);
    for (uint32_t i = 0; i < 3; i++) {
        cr_assert_eq(world_create(world, i), CKB_OK);
    }
    for (uint32_t i = 0; i < 2; i++) {
        cr_assert_eq(world_writer_open(world, i), CKB_OK);
    }
    put_some(now, &random, 0, 0, 8);
    put_some(now, &random, 1, 16, 6);
    put_some(now, &random, 1, 32, 2);
    if (now->shape->config.checkpoint_records != 0) {
        put_more_and_checkpoint(now, &random);
    }
    cr_assert_eq(world_delete(world, 0, 4, 0), CKB_OK);
    put_some(now, &random, 0, 5, 1);
    cr_assert_eq(world_close(world, 1), CKB_OK);
    cr_assert_eq(world_drop(world, 2), CKB_OK);
    cr_assert_eq(world_sync(world), CKB_OK);
    cr_assert_eq(world_unmount(world), CKB_OK);
    if (!now->clean) {
        cr_assert_eq(world_mount(world), CKB_OK);
        cr_assert_eq(world_writer_open(world, 0), CKB_OK);
        put_some(now, &random, 0, 8, 4);
        cr_assert_eq(world_commit(world, 0), CKB_OK);
        cr_assert_eq(world_delete(world, 0, 8, CKB_DURABLE), CKB_OK);
        put_some(now, &random, 0, 0, 1);
        cr_assert_eq(world_commit(world, 0), CKB_OK);
    }
    world_observe_newest(world, &now->truth);
    cr_assert_eq(world->trace.violations, 0, "%s", world->trace.message);
}

static int read_slot(specimen *now, uint32_t slot, size_t *got)
{
    ckb_chunk_id id = world_chunk_id(&now->world, slot);
    return ckb_chunk_read(now->world.reader, &id, 0, now->world.buffer, now->world.buffer_bytes, got);
}

/* What the rows of the checkpoint in force say: its first record holds them all. */
static void mark_covered(specimen *now)
{
    uint64_t segment_bytes = now->shape->geometry.segment_bytes;
    for (uint32_t segment = 2;
         now->stat.checkpoint_entries != 0 && segment < now->shape->geometry.segment_count; segment++) {
        const uint8_t *start = now->image + segment * segment_bytes + 64, *rows = start + 64;
        if (start[4] != 1 || start[20] != 3) {
            continue;
        }
        for (uint32_t i = 0; i < (uint32_t)(rows[8] | rows[9] << 8) / 24; i++) {
            now->covered[rows[24 + i * 24]] = true;
        }
    }
}

static void specimen_open(specimen *now)
{
    now->table = world_table_new();
    world_init(&now->world, now->shape, now->table, NULL);
    specimen_fill(now);
    size_t bytes = media_volume_bytes(&now->shape->geometry);
    now->image = media_alloc(bytes);
    memcpy(now->image, now->world.ram.image, bytes);
    cr_assert_eq(world_mount(&now->world), CKB_OK);
    ckb_volume_stat(now->world.volume, &now->stat);
    cr_assert_eq(now->stat.clean, now->clean);
    cr_assert_eq(now->stat.damage, 0);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        size_t got;
        now->status[slot] = read_slot(now, slot, &got);
    }
    world_verdict verdict = {""};
    world_compare_mounts(&now->world, &verdict);
    cr_assert(verdict_good(&verdict), "%s", verdict.text);
    mark_covered(now);
}

static void specimen_close(specimen *now)
{
    world_free(&now->world);
    world_table_free(now->table);
    free(now->image);
}

/* ---------------------------------------------------------------------------------------------- compare */

/* What is wrong with the mounted volume, piece by piece. */
typedef struct difference {
    uint32_t refused; /* reads that say CKB_CORRUPT */
    uint32_t missing; /* not there, or an older state */
    uint32_t wrong;   /* bytes that were never this chunk's */
    uint32_t place;   /* slot of the first one that is missing or wrong */
} difference;

static bool is_payload(const specimen *now, int32_t state, size_t length)
{
    const world_action *action = &now->table->items[state];
    return action->kind == WORLD_PUT && action->length == length &&
           (length == 0 || memcmp(action->data, now->world.buffer, length) == 0);
}

static bool was_payload(const specimen *now, uint32_t slot, size_t length)
{
    for (int32_t i = 0; i < now->table->count; i++) {
        if (now->table->items[i].slot == slot && is_payload(now, i, length)) {
            return true;
        }
    }
    return false;
}

static void compare_slot(specimen *now, uint32_t slot, difference *found)
{
    size_t got = 0;
    int32_t state = now->truth.chunks[slot];
    int status = read_slot(now, slot, &got);
    bool right = status == CKB_OK ? state >= 0 && now->status[slot] == CKB_OK && is_payload(now, state, got)
                                  : status == now->status[slot];
    if (right) {
        return;
    }
    if (status == CKB_CORRUPT) {
        found->refused++;
        return;
    }
    if (found->missing + found->wrong == 0) {
        found->place = slot;
    }
    bool older =
        status == CKB_OK ? was_payload(now, slot, got) : status == CKB_NOTFOUND || status == CKB_DELETED;
    found->missing += older;
    found->wrong += !older;
}

static void compare_containers(specimen *now, difference *found)
{
    for (uint32_t i = 0; i < 4; i++) {
        ckb_container_info info = {0, 0, 0, 0};
        int status = ckb_container_stat(now->world.volume, now->world.container_ids[i], &info);
        bool right = now->truth.containers[i] == CKB_CONTAINER_NONE ? status == CKB_NOTFOUND
                     : now->truth.containers[i] == CKB_CONTAINER_DELETED
                         ? status == CKB_DELETED
                         : status == CKB_OK && info.state == now->truth.containers[i];
        bool refused = status == CKB_CORRUPT || (status == CKB_OK && info.state == CKB_CONTAINER_UNHEALTHY);
        found->refused += !right && refused;
        found->missing += !right && !refused;
    }
}

static void compare_walk(specimen *now, difference *found)
{
    ckb_chunk_info info;
    uint64_t cursor = 0;
    uint32_t steps = 0;
    int status = CKB_OK;
    while (steps++ < 1000 && (status = ckb_chunk_next(now->world.volume, &cursor, &info)) == CKB_OK) {
        bool known = false;
        for (uint32_t slot = 0; slot < SLOTS && !known; slot++) {
            ckb_chunk_id id = world_chunk_id(&now->world, slot);
            known = id.container == info.id.container && id.block == info.id.block && id.chunk == info.id.chunk;
        }
        found->wrong += !known;
    }
    found->wrong += status != CKB_END;
}

/* ------------------------------------------------------------------------------------------------ flips */

static outcome judge(const specimen *now, const difference *found, const ckb_stat *stat, int check)
{
    bool dropped =
        stat->dropped_tails > now->stat.dropped_tails || stat->dropped_bytes > now->stat.dropped_bytes;
    if (found->wrong) {
        return OUTCOME_WRONG;
    }
    if (found->refused && check == CKB_OK) {
        return OUTCOME_WRONG; /* reads and check must agree */
    }
    if (found->missing) {
        return dropped && !now->clean ? OUTCOME_TAIL_CUT
               : stat->damage         ? OUTCOME_MISSING_LOUDLY
                                      : OUTCOME_WRONG;
    }
    if (found->refused) {
        return OUTCOME_READ_REFUSED;
    }
    return stat->damage || dropped || check != CKB_OK ? OUTCOME_REPORTED : OUTCOME_RIGHT;
}

static int pass_over(void *context, const ckb_finding *finding)
{
    (void)context;
    (void)finding;
    return 0;
}

static outcome look(specimen *now, world_verdict *verdict)
{
    difference found = {0, 0, 0, 0};
    ckb_check_report report;
    ckb_stat stat;
    int status = world_mount(&now->world);
    if (status != CKB_OK) {
        verdict_set(verdict, "mount says %s", ckb_status_text(status));
        return status == CKB_CORRUPT || status == CKB_VERSION ? OUTCOME_MOUNT_REFUSED : OUTCOME_WRONG;
    }
    compare_containers(now, &found);
    for (uint32_t slot = 0; slot < SLOTS; slot++) {
        compare_slot(now, slot, &found);
    }
    compare_walk(now, &found);
    int check = ckb_check(now->world.volume, now->world.reader, pass_over, NULL, &report);
    ckb_volume_stat(now->world.volume, &stat);
    verdict_set(verdict, "slot %u: %u refused, %u missing, %u wrong, check %s, damage %llu, dropped tails %llu",
                found.place, found.refused, found.missing, found.wrong, ckb_status_text(check),
                (unsigned long long)stat.damage, (unsigned long long)stat.dropped_tails);
    return judge(now, &found, &stat, check);
}

static void flip(specimen *now, size_t bit)
{
    world_verdict verdict = {""};
    uint8_t *byte = &now->world.ram.image[bit / 8];
    *byte ^= (uint8_t)(1u << (bit % 8));
    outcome result = look(now, &verdict);
    world_verdict other = {""};
    if (now->stat.checkpoint_entries != 0 && result != OUTCOME_MOUNT_REFUSED &&
        !now->covered[bit / 8 / now->shape->geometry.segment_bytes]) {
        world_compare_chunks(&now->world, &other);
        result = verdict_good(&other) ? result : OUTCOME_WRONG;
        verdict = verdict_good(&other) ? verdict : other;
    }
    *byte ^= (uint8_t)(1u << (bit % 8));
    if (result == OUTCOME_WRONG && now->counts[OUTCOME_WRONG] < 10) {
        size_t place = bit / 8;
        fprintf(stderr, "segment %zu offset %zu bit %zu: %s\n    CKB_REPLAY='test=%s/bit=%zu'\n",
                place / now->shape->geometry.segment_bytes, place % now->shape->geometry.segment_bytes, bit % 8,
                verdict.text, now->name, bit);
    }
    now->counts[result]++;
}

/* A segment without a header was never used; there are many where there is room for a checkpoint. */
static bool is_used(const specimen *now, size_t bit)
{
    size_t segment_bytes = (size_t)now->shape->geometry.segment_bytes;
    return now->shape != &checkpoint_shape ||
           memcmp(now->image + bit / 8 / segment_bytes * segment_bytes, "CHUNKB", 6) == 0;
}

static void flip_every_bit(specimen *now)
{
    const char *id = getenv("CKB_REPLAY");
    uint64_t only = 0;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "test=%s/", now->name);
    bool one = id && media_id_number(id, "bit", &only);
    if (id && strncmp(id, wanted, strlen(wanted)) != 0) {
        return;
    }
    now->stride = getenv("CKB_EVERY_BIT") ? 1 : now->stride;
    specimen_open(now);
    size_t bytes = media_volume_bytes(&now->shape->geometry);
    size_t flips = 0;
    for (size_t bit = one ? (size_t)only : 0; bit < (one ? (size_t)only + 1 : bytes * 8);
         bit += is_used(now, bit) ? now->stride : now->stride * 61) {
        flip(now, bit);
        flips++;
    }
    cr_expect_arr_eq(now->image, now->world.ram.image, bytes, "mount or read wrote to the medium");
    printf("%s: %zu bits flipped:", now->name, flips);
    for (int i = 0; i < OUTCOME_COUNT; i++) {
        printf(" %llu %s%s", (unsigned long long)now->counts[i], outcome_names[i],
               i + 1 < OUTCOME_COUNT ? "," : "\n");
    }
    cr_expect_eq(now->counts[OUTCOME_WRONG], 0);
    if (!one) {
        cr_expect(now->counts[OUTCOME_READ_REFUSED] > 0 && now->counts[OUTCOME_RIGHT] > 0);
    }
    specimen_close(now);
}

Test(chunks_bits, give_the_right_data_or_an_error_when_any_bit_of_a_clean_volume_flips)
{
    static specimen now = {.name = "clean", .clean = true, .shape = &tiny_shape, .large = 640, .stride = 1};
    flip_every_bit(&now);
}

Test(chunks_bits, give_the_right_data_or_an_error_when_any_bit_of_an_unclean_volume_flips)
{
    static specimen now = {.name = "unclean", .clean = false, .shape = &tiny_shape, .large = 640, .stride = 1};
    flip_every_bit(&now);
}

Test(chunks_bits, give_the_right_data_or_an_error_when_bits_of_a_clean_volume_with_a_checkpoint_flip)
{
    static specimen now = {
        .name = "checkpoint", .clean = true, .shape = &checkpoint_shape, .large = 640, .stride = 7};
    flip_every_bit(&now);
}

Test(chunks_bits, give_the_right_data_or_an_error_when_bits_of_an_unclean_volume_with_a_checkpoint_flip)
{
    static specimen now = {
        .name = "checkpoint-unclean", .clean = false, .shape = &checkpoint_shape, .large = 640, .stride = 7};
    flip_every_bit(&now);
}

Test(chunks_bits, give_the_right_data_or_an_error_when_bits_of_large_chunks_flip)
{
    static specimen now = {
        .name = "windows", .clean = false, .shape = &window_shape, .large = 37001, .stride = 61};
    flip_every_bit(&now);
}
