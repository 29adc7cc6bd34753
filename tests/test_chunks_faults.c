/* I/O errors at every operation of a workload, once and for good, of every kind.
 *
 * A failure prints an id; CKB_REPLAY=id runs exactly that one. */
#include "trial.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { STEPS = 220 };

static const world_shape fault_shape = {.geometry = {.segment_bytes = 2048,
                                                     .segment_count = 16,
                                                     .read_unit = 64,
                                                     .write_unit = 64,
                                                     .buffer_align = 8},
                                        .config = {.max_chunks = 512, .max_containers = 8, .max_writers = 4},
                                        .writer = {.buffer_bytes = 512, .summary_entries = 8},
                                        .container_base = 500};

/* With room for checkpoints, which begin as often as they can. */
static const world_shape checkpoint_shape = {.geometry = {.segment_bytes = 2048,
                                                          .segment_count = 40,
                                                          .read_unit = 64,
                                                          .write_unit = 64,
                                                          .buffer_align = 8},
                                             .config = {.max_chunks = 512,
                                                        .max_containers = 8,
                                                        .max_writers = 4,
                                                        .checkpoint_records = 1,
                                                        .io_buffer_bytes = 512},
                                             .writer = {.buffer_bytes = 512, .summary_entries = 8},
                                             .container_base = 500};

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
    if (world->shape.config.checkpoint_records != 0 && media_random_below(random, 4) == 0) {
        return ckb_maintain(world->volume, 3, &more);
    }
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
        failed |= trial_is_failure(world_create(world, i));
    }
    for (int step = 0; step < STEPS; step++) {
        int status = blind_step(world, &random);
        failed |= trial_is_failure(status);
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

static const trial_plan plan = {&fault_shape, run, expect_sticky, expect_no_wrong_data};
static const trial_plan checkpoint_plan = {&checkpoint_shape, run, expect_sticky, expect_no_wrong_data};

Test(chunks_faults, keep_promises_when_any_read_or_erase_fails_once_or_for_good)
{
    trial_sweep(&plan, "faults-a", &fault_cases[0], &fault_cases[FAULT_WRITES]);
    trial_sweep(&plan, "faults-b", &fault_cases[FAULT_ERASES], &fault_cases[FAULT_CASES]);
}

Test(chunks_faults, fail_for_good_and_keep_promises_when_any_write_or_sync_fails)
{
    trial_sweep(&plan, "faults-c", &fault_cases[FAULT_WRITES], &fault_cases[FAULT_ERASES]);
}

Test(chunks_faults, keep_promises_when_any_operation_of_a_workload_with_checkpoints_fails)
{
    trial_sweep(&checkpoint_plan, "faults-checkpoint", &fault_cases[0], &fault_cases[FAULT_CASES]);
}

/* A read error while mounting is neither damage nor an empty volume, and changes nothing. */
static void fail_each_read_of_a_mount(const trial_plan *of)
{
    static trial all;
    world_verdict verdict = {""};
    trial_open(&all, of, 22);
    all.now = &fault_cases[0];
    trial_reset(&all);
    cr_assert_eq(world_mount(&all.world), CKB_OK);
    run(&all, 22, &verdict);
    cr_assert_eq(world_sync(&all.world), CKB_OK);
    size_t bytes = media_volume_bytes(&of->shape->geometry);
    memcpy(all.image, all.world.ram.image, bytes);
    uint64_t mounts = 0, refused = 0;
    bool fired = true;
    for (all.at = 0; fired; all.at++) {
        for (int forever = 0; forever < 2; forever++) {
            all.forever = forever;
            trial_arm(&all);
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
    trial_cut_and_check(&all, MEDIA_WAY_NOTHING, &verdict);
    cr_expect(verdict_good(&verdict), "%s", verdict.text);
    trial_close(&all);
}

Test(chunks_faults, mount_says_io_and_changes_nothing_when_any_read_fails)
{
    fail_each_read_of_a_mount(&plan);
}

Test(chunks_faults, mount_says_io_and_changes_nothing_when_any_read_of_a_checkpoint_fails)
{
    uint64_t before = world_compared_mounts();
    fail_each_read_of_a_mount(&checkpoint_plan);
    cr_expect(world_compared_mounts() > before, "there was no checkpoint");
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
        me->failed |= trial_is_failure(status);
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
    static const fault_case *const cases[] = {&fault_cases[FAULT_WRITE_ERROR], &fault_cases[FAULT_WRITE_SHORT],
                                              &fault_cases[FAULT_SYNC_ERROR], &fault_cases[FAULT_SYNC_LATE]};
    trial_open(&all, &plan, 23);
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
            trial_arm(&all);
            wait_with_all(&all, &verdict);
            fired = all.world.fault.fired > 0;
            media_fault_disarm(&all.world.fault);
            trial_cut(&all, &verdict);
            trial_report(&all, "waiters", &verdict);
        }
    }
    printf("waiters: %llu runs, %llu violations\n", (unsigned long long)all.runs,
           (unsigned long long)all.violations);
    cr_expect_eq(all.violations, 0);
    trial_close(&all);
}
