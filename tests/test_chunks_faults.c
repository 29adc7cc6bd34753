/* I/O errors at every operation of a workload, once and for good, of every kind.
 *
 * A failure prints an id; CKB_REPLAY=id runs exactly that one. */
#include "workload.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

/* One kind of fault. */
typedef struct fault_case {
    const char *name;
    unsigned kinds;
    media_fault_effect effect;
    int status;
    bool sticky; /* the mount must take no more writes */
    bool lying;  /* the medium claims what is not so: only wrong data is a violation */
} fault_case;

static const fault_case fault_cases[] = {
    {"read-error", MEDIA_FAULT_READ, MEDIA_FAULT_ERROR, CKB_IO, false, false},
    {"read-corrupt", MEDIA_FAULT_READ, MEDIA_FAULT_CORRUPT, 0, false, false},
    {"write-error", MEDIA_FAULT_WRITE, MEDIA_FAULT_ERROR, CKB_IO, true, false},
    {"write-short", MEDIA_FAULT_WRITE, MEDIA_FAULT_SHORT, CKB_IO, true, false},
    {"write-late", MEDIA_FAULT_WRITE, MEDIA_FAULT_LATE, CKB_IO, true, false},
    {"write-nospace", MEDIA_FAULT_WRITE, MEDIA_FAULT_SHORT, CKB_NOSPACE, true, false},
    {"write-dropped", MEDIA_FAULT_WRITE, MEDIA_FAULT_DROP, 0, false, true},
    {"sync-error", MEDIA_FAULT_SYNC, MEDIA_FAULT_ERROR, CKB_IO, true, false},
    {"sync-late", MEDIA_FAULT_SYNC, MEDIA_FAULT_LATE, CKB_IO, true, false},
    {"erase-error", MEDIA_FAULT_ERASE, MEDIA_FAULT_ERROR, CKB_IO, false, false},
    {"erase-late", MEDIA_FAULT_ERASE, MEDIA_FAULT_LATE, CKB_IO, false, false},
    {"erase-nospace", MEDIA_FAULT_ERASE, MEDIA_FAULT_ERROR, CKB_NOSPACE, false, false},
    {"erase-retired", MEDIA_FAULT_ERASE, MEDIA_FAULT_ERROR, CKB_CORRUPT, false, false},
};

enum { CASES = sizeof fault_cases / sizeof fault_cases[0], STEPS = 220, CUTS = 12, SHOWN = 5 };

static const world_shape fault_shape = {.geometry = {.segment_bytes = 2048,
                                                     .segment_count = 16,
                                                     .read_unit = 64,
                                                     .write_unit = 64,
                                                     .buffer_align = 8},
                                        .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                        .writer = {.buffer_bytes = 512, .summary_entries = 8},
                                        .container_base = 500};

typedef struct trial {
    test_world world;
    world_table *table;
    uint8_t *formatted; /* an empty volume */
    media_trace_segment segments[16];
    uint8_t *image;
    media_cursor cursor;
    test_oracle oracle;
    const fault_case *now;
    uint64_t at;
    bool forever;
    const char *only; /* id to replay */
    uint64_t runs, violations;
} trial;

static void trial_open(trial *all, uint64_t seed)
{
    memset(all, 0, sizeof *all);
    size_t bytes = media_volume_bytes(&fault_shape.geometry);
    all->only = getenv("CKB_REPLAY");
    all->table = world_table_new();
    all->formatted = media_alloc(bytes);
    all->image = media_alloc(bytes);
    world_init(&all->world, &fault_shape, all->table, NULL);
    cr_assert_eq(world_format(&all->world, seed), CKB_OK);
    memcpy(all->formatted, all->world.ram.image, bytes);
    memcpy(all->segments, all->world.trace.segments, sizeof all->segments);
    media_cursor_init(&all->cursor, &all->world.crash, &fault_shape.geometry, all->formatted);
}

static void trial_close(trial *all)
{
    media_cursor_free(&all->cursor);
    world_free(&all->world);
    world_table_free(all->table);
    free(all->formatted);
    free(all->image);
}

/* Back to the empty volume, nothing mounted, no fault. */
static void trial_reset(trial *all)
{
    observation fresh;
    memset(&fresh, 0, sizeof fresh);
    for (int i = 0; i < WORLD_CHUNKS; i++) {
        fresh.chunks[i] = WORLD_ABSENT;
    }
    media_fault_disarm(&all->world.fault);
    world_load(&all->world, all->formatted, all->segments);
    world_take(&all->world, &fresh);
    world_table_cut(all->table, 0);
    all->runs++;
}

static void arm(trial *all)
{
    media_fault_rule rule = {.kinds = all->now->kinds,
                             .at = all->at,
                             .forever = all->forever,
                             .effect = all->now->effect,
                             .status = all->now->status};
    media_fault_arm(&all->world.fault, &rule);
}

static void report(trial *all, const char *test, const world_verdict *verdict)
{
    if (!verdict_good(verdict) && all->violations++ < SHOWN) {
        fprintf(stderr, "%s\n    CKB_REPLAY='test=%s/case=%s/at=%llu/forever=%d'\n", verdict->text, test,
                all->now->name, (unsigned long long)all->at, all->forever);
    }
}

/* Is this the one that is asked for, or is none? */
static bool wanted(const trial *all, const char *test)
{
    char id[160];
    snprintf(id, sizeof id, "test=%s/case=%s/at=%llu/forever=%d", test, all->now->name,
             (unsigned long long)all->at, all->forever);
    return !all->only || strcmp(all->only, id) == 0;
}

/* ------------------------------------------------------------------------------------------- workload */

/* Like world_random_step, but goes on whatever the answers are: a log of who was told what. Returns the
 * worst status of a change. */
static int blind_step(test_world *world, media_random *random)
{
    uint32_t writer = (uint32_t)media_random_below(random, 2);
    uint32_t slot = (uint32_t)media_random_below(random, 3 * WORLD_CONTAINER_CHUNKS);
    uint64_t dice = media_random_below(random, 100);
    uint8_t data[1024];
    size_t length = (size_t)media_random_below(random, dice < 10 ? sizeof data : 150);
    unsigned flags = (unsigned)media_random_below(random, 4);
    bool more;
    media_random_fill(random, data, length);
    if (dice < 60) {
        return world_put(world, writer, slot, data, length, flags);
    }
    if (dice < 72) {
        return world_delete(world, writer, slot, flags & CKB_DURABLE);
    }
    if (dice < 84) {
        return world_commit(world, writer);
    }
    if (dice < 90) {
        return world_sync(world);
    }
    if (dice < 94) {
        return ckb_maintain(world->volume, 8, &more);
    }
    uint32_t container = (uint32_t)media_random_below(random, 4);
    return dice < 97   ? world_create(world, container)
           : dice < 98 ? world_close(world, container)
                       : world_drop(world, container);
}

static bool is_failure(int status)
{
    return status == CKB_IO || status == CKB_FAILED;
}

/* Runs the workload over the armed fault. True when somebody was told of a failure. */
static bool run(trial *all, uint64_t seed, world_verdict *verdict)
{
    test_world *world = &all->world;
    media_random random = media_random_from(seed, 9, 0);
    bool failed = false;
    for (uint32_t i = 0; i < 2; i++) {
        int status = world_writer_open(world, i);
        if (status != CKB_OK) {
            verdict_set(verdict, "opening a writer says %s", ckb_status_text(status));
            return false;
        }
    }
    for (uint32_t i = 0; i < 3; i++) {
        failed |= is_failure(world_create(world, i));
    }
    for (int step = 0; step < STEPS; step++) {
        int status = blind_step(world, &random);
        failed |= is_failure(status);
    }
    return failed;
}

/* After a failed write or sync nothing is taken any more, by nobody, and it is said at the end. */
static void expect_sticky(trial *all, world_verdict *verdict)
{
    test_world *world = &all->world;
    ckb_stat stat;
    uint8_t byte = 1;
    ckb_volume_stat(world->volume, &stat);
    if (!stat.failed) {
        verdict_set(verdict, "stat does not say failed");
    }
    for (uint32_t writer = 0; writer < 2; writer++) {
        int put = world_put(world, writer, 0, &byte, 1, CKB_OVERWRITE | CKB_DURABLE);
        int commit = world_commit(world, writer);
        if (put == CKB_OK || commit != CKB_FAILED) {
            verdict_set(verdict, "after a failure writer %u: write says %s, commit %s", writer,
                        ckb_status_text(put), ckb_status_text(commit));
        }
    }
    int sync = world_sync(world), create = world_create(world, 5);
    if (sync != CKB_FAILED || create != CKB_FAILED) {
        verdict_set(verdict, "after a failure: sync says %s, create %s", ckb_status_text(sync),
                    ckb_status_text(create));
    }
}

/* What is there now may be old or new or an error, but never bytes of something else. */
static void expect_no_wrong_data(trial *all, bool errors_allowed, world_verdict *verdict)
{
    test_world *world = &all->world;
    for (uint32_t slot = 0; slot < 3 * WORLD_CONTAINER_CHUNKS; slot++) {
        ckb_chunk_id id = world_chunk_id(world, slot);
        size_t got = 0;
        int status = ckb_chunk_read(world->reader, &id, 0, world->buffer, world->buffer_bytes, &got);
        bool known = status != CKB_OK;
        for (int32_t i = 0; i < all->table->count && !known; i++) {
            const world_action *action = &all->table->items[i];
            known = action->kind == WORLD_PUT && action->slot == slot && action->length == got &&
                    (got == 0 || memcmp(action->data, world->buffer, got) == 0);
        }
        if (!known || (!errors_allowed && (status == CKB_CORRUPT || status == CKB_IO))) {
            verdict_set(verdict, "slot %u: read says %s, %zu bytes%s", slot, ckb_status_text(status), got,
                        known ? "" : ", which were never written");
        }
    }
}

/* Mounts what a power cut now would leave, and holds it against what was promised. */
static void cut_and_check(trial *all, uint64_t choice, world_verdict *verdict)
{
    observation seen;
    media_cursor_rewind(&all->cursor, all->formatted, all->segments);
    oracle_init(&all->oracle, all->table);
    const media_event *event;
    while ((event = media_cursor_advance(&all->cursor))) {
        oracle_note(&all->oracle, event);
    }
    media_cursor_materialise(&all->cursor, all->at, choice, all->image);
    memcpy(all->world.ram.image, all->image, media_volume_bytes(&fault_shape.geometry));
    int status = world_mount(&all->world);
    if (all->now->lying) {
        if (status == CKB_OK) {
            expect_no_wrong_data(all, true, verdict);
        } else if (status != CKB_CORRUPT) {
            verdict_set(verdict, "mount says %s", ckb_status_text(status));
        }
        return;
    }
    if (status != CKB_OK) {
        char text[160];
        ckb_fault_text(&all->world.fault_seen, text, sizeof text);
        verdict_set(verdict, "cut %llu: mount says %s: %s", (unsigned long long)choice, ckb_status_text(status),
                    text);
    } else if (!world_check(&all->world, &all->oracle, &seen, verdict)) {
        char text[sizeof verdict->text];
        memcpy(text, verdict->text, sizeof text);
        snprintf(verdict->text, sizeof verdict->text, "cut %llu: %.400s", (unsigned long long)choice, text);
    }
}

/* ---------------------------------------------------------------------------------------------- sweeps */

static void try_one(trial *all, const char *test, uint64_t seed, bool *fired)
{
    world_verdict verdict = {""};
    trial_reset(all);
    cr_assert_eq(world_mount(&all->world), CKB_OK);
    arm(all);
    bool failed = run(all, seed, &verdict);
    *fired = all->world.fault.fired > 0;
    bool lasting = all->now->sticky && *fired;
    if (lasting && !failed) {
        verdict_set(&verdict, "a failed operation of the medium was told to nobody");
    }
    media_fault_disarm(&all->world.fault);
    if (lasting) {
        expect_sticky(all, &verdict);
    }
    expect_no_wrong_data(all, lasting || all->now->lying || all->now->kinds == MEDIA_FAULT_READ, &verdict);
    int status = world_unmount(&all->world);
    if (lasting ? status == CKB_OK : status != CKB_OK && !failed) {
        verdict_set(&verdict, "unmount says %s", ckb_status_text(status));
    }
    size_t events = all->world.crash.event_count;
    for (uint64_t choice = 0; choice < CUTS && verdict_good(&verdict); choice++) {
        cut_and_check(all, choice, &verdict);
        all->world.crash.event_count = events;
    }
    if (all->world.trace.violations) {
        verdict_set(&verdict, "medium contract broken: %s", all->world.trace.message);
    }
    report(all, test, &verdict);
}

static void sweep_cases(const char *test, const fault_case *first, const fault_case *last)
{
    static trial all;
    const uint64_t seed = 21;
    trial_open(&all, seed);
    for (all.now = first; all.now < last; all.now++) {
        uint64_t operations = 0;
        bool fired = true;
        for (all.at = 0; fired; all.at++) {
            for (int forever = 0; forever < 2; forever++) {
                all.forever = forever;
                if (wanted(&all, test)) {
                    try_one(&all, test, seed, &fired);
                    operations += fired;
                } else {
                    fired = all.at < 2000;
                }
            }
        }
        printf("%s %s: %llu places hit\n", test, all.now->name, (unsigned long long)operations);
        cr_expect(operations > 0 || all.only, "%s never happened", all.now->name);
    }
    printf("%s: %llu runs, %llu violations\n", test, (unsigned long long)all.runs,
           (unsigned long long)all.violations);
    cr_expect_eq(all.violations, 0);
    trial_close(&all);
}

Test(chunks_faults, keep_promises_when_any_read_or_erase_fails_once_or_for_good)
{
    sweep_cases("faults-a", &fault_cases[0], &fault_cases[2]);
    sweep_cases("faults-b", &fault_cases[9], &fault_cases[CASES]);
}

Test(chunks_faults, fail_for_good_and_keep_promises_when_any_write_or_sync_fails)
{
    sweep_cases("faults-c", &fault_cases[2], &fault_cases[9]);
}

/* A read error while mounting is neither damage nor an empty volume, and changes nothing. */
Test(chunks_faults, mount_says_io_and_changes_nothing_when_any_read_fails)
{
    static trial all;
    world_verdict verdict = {""};
    trial_open(&all, 22);
    all.now = &fault_cases[0];
    trial_reset(&all);
    cr_assert_eq(world_mount(&all.world), CKB_OK);
    run(&all, 22, &verdict);
    cr_assert_eq(world_sync(&all.world), CKB_OK);
    size_t bytes = media_volume_bytes(&fault_shape.geometry);
    memcpy(all.image, all.world.ram.image, bytes);
    uint64_t mounts = 0, refused = 0;
    bool fired = true;
    for (all.at = 0; fired; all.at++) {
        for (int forever = 0; forever < 2; forever++) {
            all.forever = forever;
            arm(&all);
            int status = world_mount(&all.world);
            fired = all.world.fault.fired > 0;
            media_fault_disarm(&all.world.fault);
            mounts++;
            refused += status == CKB_IO;
            cr_expect_eq(status, fired ? CKB_IO : CKB_OK, "read %d: mount says %s", (int)all.at,
                         ckb_status_text(status));
            cr_expect_arr_eq(all.world.ram.image, all.image, bytes);
        }
    }
    printf("mount: %llu mounts, %llu refused\n", (unsigned long long)mounts, (unsigned long long)refused);
    cr_expect(refused > 4);
    all.only = NULL;
    cut_and_check(&all, MEDIA_WAY_NOTHING, &verdict);
    cr_expect(verdict_good(&verdict), "%s", verdict.text);
    trial_close(&all);
}

/* -------------------------------------------------------------------------------------------- waiters */

enum { WAITERS = 6 }; /* two for each container, so that no two write the same chunk */

typedef struct waiter {
    test_world *world;
    uint32_t number;
    int after_failure; /* writes that went through after this thread had seen the failure */
    bool failed;
    pthread_t thread;
} waiter;

static void *wait_for_durability(void *context)
{
    waiter *me = context;
    media_random random = media_random_from(31, me->number, 0);
    for (uint32_t i = 0; i < 8; i++) {
        uint8_t data[120];
        uint32_t slot = me->number / 2 * WORLD_CONTAINER_CHUNKS + me->number % 2 + i % 8 * 2;
        media_random_fill(&random, data, sizeof data);
        int status = world_put(me->world, 0, slot, data, sizeof data, CKB_OVERWRITE | CKB_DURABLE);
        me->after_failure += me->failed && status == CKB_OK;
        me->failed |= is_failure(status);
    }
    return NULL;
}

static void wait_with_all(trial *all, world_verdict *verdict)
{
    waiter waiters[WAITERS];
    memset(waiters, 0, sizeof waiters);
    for (uint32_t i = 0; i < WAITERS; i++) {
        waiters[i].world = &all->world;
        waiters[i].number = i;
        cr_assert_eq(pthread_create(&waiters[i].thread, NULL, wait_for_durability, &waiters[i]), 0);
    }
    bool any = false;
    for (uint32_t i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        any |= waiters[i].failed;
        if (waiters[i].after_failure) {
            verdict_set(verdict, "thread %u: %d writes went through after the failure", i,
                        waiters[i].after_failure);
        }
    }
    if (all->world.fault.fired && !any) {
        verdict_set(verdict, "a failed operation of the medium was told to nobody");
    }
}

/* Each member of a failed group gets the error: whoever was told that it is durable finds it again. */
Test(chunks_faults, every_waiter_of_a_failed_group_gets_the_error)
{
    static trial all;
    static const fault_case *const cases[] = {&fault_cases[2], &fault_cases[3], &fault_cases[7],
                                              &fault_cases[8]};
    trial_open(&all, 23);
    all.world.crash.slow_sync_ns = 20000;
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        all.now = cases[which];
        bool fired = true;
        for (all.at = 0; all.at < 40 && fired; all.at++) {
            world_verdict verdict = {""};
            trial_reset(&all);
            cr_assert_eq(world_mount(&all.world), CKB_OK);
            cr_assert_eq(world_writer_open(&all.world, 0), CKB_OK);
            for (uint32_t i = 0; i < 3; i++) {
                cr_assert_eq(world_create(&all.world, i), CKB_OK);
            }
            all.forever = all.at & 1;
            arm(&all);
            wait_with_all(&all, &verdict);
            fired = all.world.fault.fired > 0;
            media_fault_disarm(&all.world.fault);
            size_t events = all.world.crash.event_count;
            for (uint64_t choice = 0; choice < CUTS && verdict_good(&verdict); choice++) {
                cut_and_check(&all, choice, &verdict);
                all.world.crash.event_count = events;
            }
            report(&all, "waiters", &verdict);
        }
    }
    printf("waiters: %llu runs, %llu violations\n", (unsigned long long)all.runs,
           (unsigned long long)all.violations);
    cr_expect_eq(all.violations, 0);
    trial_close(&all);
}
