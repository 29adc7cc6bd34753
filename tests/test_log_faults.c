/* Faults at every operation of a workload on logs; groups that fail; volumes that are full. */
#include "trial.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 160, LOGS = 2 };

static const world_shape fault_shape = {.geometry = {.segment_bytes = 2048,
                                                     .segment_count = 20,
                                                     .read_unit = 64,
                                                     .write_unit = 64,
                                                     .buffer_align = 8},
                                        .config = {.max_chunks = 128, .max_containers = 4, .max_writers = 2},
                                        .writer = {.buffer_bytes = 512},
                                        .container_base = 500,
                                        .logs = LOGS,
                                        .log = {.buffer_bytes = 512}};

/* ------------------------------------------------------------------------------------------- workload */

static int blind_append(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    uint8_t data[3][1200];
    ckb_entry_data entries[3];
    size_t count = media_random_below(random, 6) ? 1 : 3;
    unsigned flags = media_random_below(random, 3) ? 0 : CKB_DURABLE;
    for (size_t i = 0; i < count; i++) {
        size_t most = count == 1 && media_random_below(random, 8) == 0 ? sizeof data[i] : 150;
        entries[i].data = data[i];
        entries[i].length = (size_t)media_random_below(random, most);
        media_random_fill(random, data[i], entries[i].length);
    }
    return world_log_append(world, slot, entries, count, flags, verdict);
}

static int blind_change(test_world *world, media_random *random, uint32_t slot)
{
    const log_content *log = &world->logs.newest[slot];
    uint64_t entries = log->last + 1 - log->first;
    switch (media_random_below(random, 9)) {
    case 0:
        return world_log_change(world, WORLD_LOG_RESET, slot, 1 + media_random_below(random, 90));
    case 1: {
        int status = world_log_close(world, slot);
        return status ? status : world_log_change(world, WORLD_LOG_DELETE, slot, 0);
    }
    case 2:
    case 3:
    case 4:
        return world_log_change(world, WORLD_LOG_PURGE, slot,
                                log->first + media_random_below(random, entries + 1));
    case 5:
        return world_log_close(world, slot);
    default:
        return world_log_change(world, WORLD_LOG_TRUNCATE, slot,
                                log->last - media_random_below(random, entries + 1));
    }
}

/* Was this appended to the log, under this index or under one that its failure did not tell? */
static bool appended(const test_world *world, uint32_t slot, const ckb_entry *entry)
{
    for (int32_t i = 0; i < world->table->count; i++) {
        const world_action *action = &world->table->items[i];
        if (action->kind == WORLD_LOG_APPEND && action->slot == slot && action->length == entry->length &&
            (action->index == entry->index || action->index == 0) &&
            (entry->length == 0 || memcmp(action->data, world->buffer, entry->length) == 0)) {
            return true;
        }
    }
    return false;
}

/* Any entry and those behind it: an error, or what was appended. */
static int blind_read(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    uint64_t index = log->first + media_random_below(random, log->last + 2 - log->first);
    int status = CKB_OK;
    for (; status == CKB_OK && verdict_good(verdict); index++) {
        ckb_entry entry;
        status = ckb_log_read(world->logs.cursors[slot], index, &entry, world->buffer, world->buffer_bytes);
        if (status == CKB_OK && (entry.index != index || !appended(world, slot, &entry))) {
            verdict_set(verdict, "log %s entry %llu: read as %llu, %zu bytes that were never appended there",
                        log_name(slot), (unsigned long long)index, (unsigned long long)entry.index,
                        entry.length);
        }
    }
    return status;
}

/* Opens the log, and creates it when it is not there. */
static int blind_open(test_world *world, uint32_t slot)
{
    int status = CKB_OK;
    if (!world->logs.newest[slot].exists) {
        status = world_log_change(world, WORLD_LOG_CREATE, slot, 1);
    }
    if (status == CKB_OK && !world->logs.open[slot]) {
        status = world_log_open(world, slot);
    }
    return status;
}

/* Goes on whatever the answer is, and returns it. */
static int blind_step(test_world *world, media_random *random, world_verdict *verdict)
{
    uint32_t slot = (uint32_t)media_random_below(random, LOGS);
    uint64_t dice = media_random_below(random, 100);
    uint8_t data[100];
    bool more;
    int status = blind_open(world, slot);
    if (status != CKB_OK) {
        return status;
    }
    if (dice < 60) {
        return blind_append(world, random, slot, verdict);
    }
    if (dice < 72) {
        return world_log_commit(world, slot, world->logs.newest[slot].last);
    }
    if (dice < 88) {
        return blind_change(world, random, slot);
    }
    if (dice < 92) {
        return ckb_maintain(world->volume, 8, &more);
    }
    if (dice < 97) {
        return blind_read(world, random, slot, verdict);
    }
    media_random_fill(random, data, sizeof data);
    return world_put(world, 0, (uint32_t)media_random_below(random, WORLD_CONTAINER_CHUNKS), data, sizeof data,
                     CKB_OVERWRITE | (dice & 1 ? CKB_DURABLE : 0));
}

static bool volume_failed(test_world *world)
{
    ckb_stat stat;
    ckb_volume_stat(world->volume, &stat);
    return stat.failed;
}

/* As long as the mount goes on, an operation that failed has changed nothing. */
static void expect_newest(test_world *world, world_verdict *verdict)
{
    for (uint32_t slot = 0; slot < LOGS && !volume_failed(world); slot++) {
        if (world->logs.open[slot]) {
            log_expect_whole(world, slot, verdict);
        }
    }
}

static bool run(trial *all, uint64_t seed, world_verdict *verdict)
{
    test_world *world = &all->world;
    media_random random = media_random_from(seed, 9, 0);
    bool failed = false;
    verdict_status(verdict, "opening writer", 0, world_writer_open(world, 0), WORLD_BIT(CKB_OK));
    failed |= trial_is_failure(world_create(world, 0));
    for (int step = 0; step < STEPS && verdict_good(verdict); step++) {
        failed |= trial_is_failure(blind_step(world, &random, verdict));
        expect_newest(world, verdict);
    }
    return failed;
}

/* ---------------------------------------------------------------------------------------- expectations */

static void expect_refusal(world_verdict *verdict, const char *what, uint32_t slot, int status)
{
    verdict_status(verdict, what, slot, status, WORLD_BIT(CKB_FAILED) | WORLD_BIT(CKB_IO));
}

static void expect_sticky(trial *all, world_verdict *verdict)
{
    test_world *world = &all->world;
    uint8_t byte = 1;
    if (!volume_failed(world)) {
        verdict_set(verdict, "stat does not say failed");
    }
    for (uint32_t slot = 0; slot < LOGS; slot++) {
        ckb_entry_data entry = {0, &byte, 1};
        ckb_log_info info;
        if (!world->logs.open[slot]) {
            continue;
        }
        ckb_log_stat(world->logs.open[slot], &info);
        world_log_believe(world, slot);
        expect_refusal(verdict, "append after a failure to log", slot,
                       world_log_append(world, slot, &entry, 1, CKB_DURABLE, verdict));
        expect_refusal(verdict, "reset after a failure of log", slot,
                       world_log_change(world, WORLD_LOG_RESET, slot, 5));
        if (info.last + 1 > info.first) {
            expect_refusal(verdict, "purge after a failure of log", slot,
                           ckb_log_purge(world->logs.open[slot], info.last + 1));
            expect_refusal(verdict, "truncate after a failure of log", slot,
                           ckb_log_truncate(world->logs.open[slot], info.first - 1));
        }
        if (info.durable < info.last) {
            expect_refusal(verdict, "commit after a failure of log", slot,
                           ckb_log_commit(world->logs.open[slot], info.last));
        }
    }
    expect_refusal(verdict, "create after a failure of log", LOGS, ckb_log_create(world->volume, "another", 1));
}

static void expect_good_entries(trial *all, uint32_t slot, bool errors_allowed, world_verdict *verdict)
{
    test_world *world = &all->world;
    ckb_log_info info;
    ckb_log_stat(world->logs.open[slot], &info);
    for (uint64_t index = info.first; index <= info.last && verdict_good(verdict); index++) {
        ckb_entry entry;
        int status = ckb_log_read(world->logs.cursors[slot], index, &entry, world->buffer, world->buffer_bytes);
        bool error = status == CKB_CORRUPT || status == CKB_IO;
        bool good = status == CKB_OK && entry.index == index && appended(world, slot, &entry);
        if (!good && !(error && errors_allowed)) {
            verdict_set(verdict, "log %s entry %llu of %llu..%llu: read says %s, %zu bytes as %llu",
                        log_name(slot), (unsigned long long)index, (unsigned long long)info.first,
                        (unsigned long long)info.last, ckb_status_text(status), entry.length,
                        (unsigned long long)entry.index);
        }
    }
}

static void expect_no_wrong_data(trial *all, bool errors_allowed, world_verdict *verdict)
{
    test_world *world = &all->world;
    for (uint32_t slot = 0; slot < LOGS; slot++) {
        int status = world->logs.open[slot] ? CKB_OK : world_log_open(world, slot);
        if (status == CKB_OK) {
            expect_good_entries(all, slot, errors_allowed, verdict);
        } else if (status != CKB_NOTFOUND && !errors_allowed) {
            verdict_set(verdict, "log %s: open says %s", log_name(slot), ckb_status_text(status));
        }
    }
}

static const trial_plan plan = {&fault_shape, run, expect_sticky, expect_no_wrong_data};

Test(log_faults, keeps_promises_when_any_read_or_erase_fails_once_or_for_good)
{
    trial_sweep(&plan, "log-faults-a", &fault_cases[0], &fault_cases[FAULT_WRITES]);
    trial_sweep(&plan, "log-faults-b", &fault_cases[FAULT_ERASES], &fault_cases[FAULT_CASES]);
}

Test(log_faults, fails_for_good_and_keeps_promises_when_any_write_or_sync_fails)
{
    trial_sweep(&plan, "log-faults-c", &fault_cases[FAULT_WRITES], &fault_cases[FAULT_ERASES]);
}

/* ---------------------------------------------------------------------------------------------- groups */

enum { WAITERS = 6 };

typedef struct waiter {
    test_world *world;
    uint32_t number;
    int after_failure; /* appends that went through after this thread had seen the failure */
    bool failed;
    world_verdict verdict;
    pthread_t thread;
} waiter;

static void *wait_for_durability(void *context)
{
    waiter *me = context;
    media_random random = media_random_from(31, me->number, 0);
    for (uint32_t i = 0; i < 8; i++) {
        uint8_t data[120];
        ckb_entry_data entry = {0, data, sizeof data};
        media_random_fill(&random, data, sizeof data);
        int status = world_log_append(me->world, 0, &entry, 1, i % 3 ? CKB_DURABLE : 0, &me->verdict);
        if (status == CKB_OK && i % 3 == 0) {
            status = world_log_commit(me->world, 0, me->world->table->items[(uint32_t)entry.term].index);
        }
        me->after_failure += me->failed && status == CKB_OK;
        me->failed |= trial_is_failure(status);
    }
    return NULL;
}

static void wait_with_all(trial *all, world_verdict *verdict)
{
    waiter waiters[WAITERS];
    memset(waiters, 0, sizeof waiters);
    all->world.logs.crowded = true;
    for (uint32_t i = 0; i < WAITERS; i++) {
        waiters[i].world = &all->world;
        waiters[i].number = i;
        cr_assert_eq(pthread_create(&waiters[i].thread, NULL, wait_for_durability, &waiters[i]), 0);
    }
    bool any = false;
    for (uint32_t i = 0; i < WAITERS; i++) {
        pthread_join(waiters[i].thread, NULL);
        any |= waiters[i].failed;
        if (waiters[i].after_failure || !verdict_good(&waiters[i].verdict)) {
            verdict_set(verdict, "thread %u: %d appends went through after the failure; %s", i,
                        waiters[i].after_failure, waiters[i].verdict.text);
        }
    }
    all->world.logs.crowded = false;
    if (all->world.fault.fired && !any) {
        verdict_set(verdict, "a failed operation of the medium was told to nobody");
    }
}

/* Whoever was told that an entry is durable finds it again. */
Test(log_faults, every_member_of_a_failed_group_gets_the_error)
{
    static trial all;
    static const fault_case *const cases[] = {&fault_cases[FAULT_WRITE_ERROR], &fault_cases[FAULT_WRITE_SHORT],
                                              &fault_cases[FAULT_SYNC_ERROR], &fault_cases[FAULT_SYNC_LATE]};
    trial_open(&all, &plan, 23);
    all.world.crash.slow_sync_ns = 20000;
    for (size_t which = 0; which < sizeof cases / sizeof cases[0]; which++) {
        all.now = cases[which];
        bool fired = true;
        for (all.at = 0; all.at < 60 && fired; all.at++) {
            world_verdict verdict = {""};
            trial_reset(&all);
            cr_assert_eq(world_mount(&all.world), CKB_OK);
            cr_assert_eq(blind_open(&all.world, 0), CKB_OK);
            all.forever = all.at & 1;
            trial_arm(&all);
            wait_with_all(&all, &verdict);
            fired = all.world.fault.fired > 0;
            media_fault_disarm(&all.world.fault);
            trial_cut(&all, &verdict);
            trial_report(&all, "log-groups", &verdict);
        }
    }
    printf("log-groups: %llu runs, %llu violations\n", (unsigned long long)all.runs,
           (unsigned long long)all.violations);
    cr_expect_eq(all.violations, 0);
    trial_close(&all);
}

/* --------------------------------------------------------------------------------------------- delays */

/* One thread commits; while its sync is under way another appends, and none of that is durable by it. */
typedef struct delay {
    test_world *world;
    world_verdict *verdict;
    pthread_t thread;
    uint32_t appended;
    bool waited;
} delay;

static void *append_meanwhile(void *context)
{
    delay *now = context;
    uint8_t byte = 'm';
    ckb_entry_data entry = {0, &byte, 1};
    verdict_status(now->verdict, "append beside a sync", 0,
                   world_log_append(now->world, 0, &entry, 1, 0, now->verdict), WORLD_BIT(CKB_OK));
    __atomic_store_n(&now->appended, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

/* The sync waits for the append of the other thread, for a while: one that waits for the sync is found out. */
static void let_other_append(void *context)
{
    delay *now = context;
    struct timespec pause = {0, 100000};
    cr_assert_eq(pthread_create(&now->thread, NULL, append_meanwhile, now), 0);
    for (int i = 0; i < 2000 && !__atomic_load_n(&now->appended, __ATOMIC_SEQ_CST); i++) {
        nanosleep(&pause, NULL);
    }
    now->waited = !__atomic_load_n(&now->appended, __ATOMIC_SEQ_CST);
}

static uint64_t count_rolls(test_world *world)
{
    ckb_log_info info;
    ckb_log_stat(world->logs.open[0], &info);
    return info.rolls;
}

Test(log_faults, what_is_appended_during_a_sync_neither_waits_nor_is_durable_by_it)
{
    static trial all;
    static const fault_case delayed = {"delay", MEDIA_FAULT_SYNC, MEDIA_FAULT_DELAY, 0, false, false};
    trial_open(&all, &plan, 24);
    for (all.at = 0, all.now = &delayed; all.at < 30; all.at++) {
        world_verdict verdict = {""};
        delay hook = {.world = &all.world, .verdict = &verdict};
        uint8_t data[200] = {1};
        trial_reset(&all);
        cr_assert_eq(world_mount(&all.world), CKB_OK);
        cr_assert_eq(blind_open(&all.world, 0), CKB_OK);
        all.world.logs.crowded = true;
        uint64_t rolls = 0;
        int step = 0;
        for (; step < 40 && all.world.fault.fired == 0 && verdict_good(&verdict); step++) {
            ckb_entry_data entry = {0, data, (size_t)step};
            media_fault_rule rule = {.kinds = MEDIA_FAULT_SYNC,
                                     .effect = MEDIA_FAULT_DELAY,
                                     .hook = let_other_append,
                                     .hook_context = &hook};
            verdict_status(&verdict, "append", 0, world_log_append(&all.world, 0, &entry, 1, 0, &verdict),
                           WORLD_BIT(CKB_OK));
            if ((uint64_t)step >= all.at) {
                media_fault_arm(&all.world.fault, &rule);
            }
            rolls = count_rolls(&all.world);
            verdict_status(&verdict, "commit", 0,
                           world_log_commit(&all.world, 0, all.world.logs.newest[0].last), WORLD_BIT(CKB_OK));
        }
        cr_expect(all.world.fault.fired > 0, "no sync in %d commits", step);
        pthread_join(hook.thread, NULL);
        if (hook.waited && rolls == count_rolls(&all.world)) { /* a roll may wait: nothing was prepared */
            verdict_set(&verdict, "an append waits for the sync of another thread");
        }
        media_fault_disarm(&all.world.fault);
        all.world.logs.crowded = false;
        log_expect_whole(&all.world, 0, &verdict);
        trial_cut(&all, &verdict);
        trial_report(&all, "log-delay", &verdict);
    }
    cr_expect_eq(all.violations, 0);
    trial_close(&all);
}

/* ---------------------------------------------------------------------------------------- full volumes */

/* Appends until nothing fits any more; returns the bytes that did. */
static uint64_t fill(test_world *world, world_verdict *verdict)
{
    uint8_t data[300] = {7};
    uint64_t bytes = 0;
    int status = CKB_OK;
    for (size_t length = sizeof data; length > 0 && verdict_good(verdict); length -= status != CKB_OK) {
        ckb_entry_data entry = {0, data, length};
        status = world_log_append(world, 0, &entry, 1, 0, verdict);
        verdict_status(verdict, "append", 0, status, WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE));
        bytes += status == CKB_OK ? length : 0;
        log_expect_whole(world, 0, verdict);
    }
    return bytes;
}

static void expect_all_readable(trial *all, world_verdict *verdict)
{
    expect_good_entries(all, 0, false, verdict);
    expect_newest(&all->world, verdict);
}

/* What must work when not even an empty entry fits: commit, reads, truncate, purge. */
static void use_full_volume(trial *all, world_verdict *verdict)
{
    test_world *world = &all->world;
    const log_content *log = &world->logs.newest[0];
    expect_all_readable(all, verdict);
    verdict_status(verdict, "commit", 0, world_log_commit(world, 0, log->last), WORLD_BIT(CKB_OK));
    for (int i = 0; i < 3; i++) {
        verdict_status(verdict, "truncate", 0, world_log_change(world, WORLD_LOG_TRUNCATE, 0, log->last - 1),
                       WORLD_BIT(CKB_OK));
        verdict_status(verdict, "purge", 0, world_log_change(world, WORLD_LOG_PURGE, 0, log->first + 1),
                       WORLD_BIT(CKB_OK));
        expect_all_readable(all, verdict);
    }
}

Test(log_faults, a_full_volume_refuses_appends_and_gives_its_space_back)
{
    static trial all;
    static const fault_case none = {"none", 0, MEDIA_FAULT_NONE, 0, false, false};
    uint64_t first_bytes = 0;
    world_verdict verdict = {""};
    trial_open(&all, &plan, 25);
    all.now = &none;
    trial_reset(&all);
    cr_assert_eq(world_mount(&all.world), CKB_OK);
    cr_assert_eq(blind_open(&all.world, 0), CKB_OK);
    for (uint32_t round = 0; round < 12 && verdict_good(&verdict); round++) {
        uint64_t bytes = fill(&all.world, &verdict);
        first_bytes = round == 0 ? bytes : first_bytes;
        cr_expect(bytes * 10 >= first_bytes * 9, "round %u: %llu bytes fit, %llu in the first", round,
                  (unsigned long long)bytes, (unsigned long long)first_bytes);
        use_full_volume(&all, &verdict);
        int kind = round % 3 == 0 ? WORLD_LOG_PURGE : round % 3 == 1 ? WORLD_LOG_TRUNCATE : WORLD_LOG_RESET;
        const log_content *log = &all.world.logs.newest[0];
        uint64_t argument = kind == WORLD_LOG_PURGE      ? log->last + 1
                            : kind == WORLD_LOG_TRUNCATE ? log->first - 1
                                                         : 9;
        verdict_status(&verdict, "emptying", 0, world_log_change(&all.world, kind, 0, argument),
                       WORLD_BIT(CKB_OK));
        if (round % 4 == 3) {
            cr_expect_eq(world_unmount(&all.world), CKB_OK);
            cr_expect_eq(world_mount(&all.world), CKB_OK);
            cr_expect_eq(blind_open(&all.world, 0), CKB_OK);
        }
    }
    trial_cut(&all, &verdict);
    cr_expect(verdict_good(&verdict), "%s", verdict.text);
    trial_close(&all);
}

/* ------------------------------------------------------------------------------------------- retired */

/* Each third erase says that the segment is worn out, until four are; the journal has no other place to go. */
Test(log_faults, a_log_goes_on_when_segments_are_retired)
{
    static trial all;
    static const fault_case none = {"none", 0, MEDIA_FAULT_NONE, 0, false, false};
    world_verdict verdict = {""};
    ckb_stat stat;
    trial_open(&all, &plan, 26);
    all.now = &none;
    trial_reset(&all);
    cr_assert_eq(world_mount(&all.world), CKB_OK);
    cr_assert_eq(blind_open(&all.world, 0), CKB_OK);
    ckb_volume_stat(all.world.volume, &stat);
    media_fault_rule rule = {.kinds = MEDIA_FAULT_ERASE,
                             .from = stat.segments_journal,
                             .at = 2,
                             .effect = MEDIA_FAULT_ERROR,
                             .status = CKB_CORRUPT};
    media_fault_arm(&all.world.fault, &rule);
    for (int i = 0; i < 120 && verdict_good(&verdict); i++) {
        uint8_t data[400] = {9};
        ckb_entry_data entry = {0, data, sizeof data};
        verdict_status(&verdict, "append", 0, world_log_append(&all.world, 0, &entry, 1, CKB_DURABLE, &verdict),
                       WORLD_BIT(CKB_OK));
        const log_content *log = &all.world.logs.newest[0];
        if (log->last - log->first > 6) {
            verdict_status(&verdict, "purge", 0,
                           world_log_change(&all.world, WORLD_LOG_PURGE, 0, log->last - 3), WORLD_BIT(CKB_OK));
        }
        if (all.world.fault.fired > 0 && stat.segments_retired < 4) {
            media_fault_arm(&all.world.fault, &rule);
        }
        ckb_volume_stat(all.world.volume, &stat);
    }
    cr_expect(stat.segments_retired >= 4, "%u segments retired", stat.segments_retired);
    expect_all_readable(&all, &verdict);
    media_fault_disarm(&all.world.fault);
    trial_cut(&all, &verdict);
    cr_expect(verdict_good(&verdict), "%s", verdict.text);
    trial_close(&all);
}
