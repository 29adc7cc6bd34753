#include "trial.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

enum { CUTS = 12, SHOWN = 5 };

const fault_case fault_cases[FAULT_CASES] = {
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

void trial_open(trial *all, const trial_plan *plan, uint64_t seed)
{
    memset(all, 0, sizeof *all);
    size_t bytes = media_volume_bytes(&plan->shape->geometry);
    all->plan = plan;
    all->only = getenv("CKB_REPLAY");
    all->table = world_table_new();
    all->formatted = media_alloc(bytes);
    all->image = media_alloc(bytes);
    size_t segments = plan->shape->geometry.segment_count * sizeof *all->segments;
    all->segments = media_alloc(segments);
    world_init(&all->world, plan->shape, all->table, NULL);
    cr_assert_eq(world_format(&all->world, seed), CKB_OK);
    memcpy(all->formatted, all->world.ram.image, bytes);
    memcpy(all->segments, all->world.trace.segments, segments);
    media_cursor_init(&all->cursor, &all->world.crash, &plan->shape->geometry, all->formatted);
}

void trial_close(trial *all)
{
    media_cursor_free(&all->cursor);
    world_free(&all->world);
    world_table_free(all->table);
    free(all->formatted);
    free(all->image);
    free(all->segments);
}

void trial_reset(trial *all)
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

void trial_arm(trial *all)
{
    media_fault_rule rule = {.kinds = all->now->kinds,
                             .at = all->at,
                             .forever = all->forever,
                             .effect = all->now->effect,
                             .status = all->now->status};
    media_fault_arm(&all->world.fault, &rule);
}

void trial_report(trial *all, const char *test, const world_verdict *verdict)
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

void trial_cut_and_check(trial *all, uint64_t choice, world_verdict *verdict)
{
    observation seen;
    media_cursor_rewind(&all->cursor, all->formatted, all->segments);
    oracle_init(&all->oracle, all->table);
    const media_event *event;
    while ((event = media_cursor_advance(&all->cursor))) {
        oracle_note(&all->oracle, event);
    }
    media_cursor_materialise(&all->cursor, all->at, choice, all->image);
    memcpy(all->world.ram.image, all->image, media_volume_bytes(&all->plan->shape->geometry));
    int status = world_mount(&all->world);
    if (all->now->lying) {
        if (status == CKB_OK) {
            all->plan->expect_no_wrong_data(all, true, verdict);
        } else if (status != CKB_CORRUPT && status != CKB_NOTFOUND) { /* not even a header was written */
            verdict_set(verdict, "mount says %s", ckb_status_text(status));
        }
        return;
    }
    if (status != CKB_OK) {
        char text[160];
        ckb_fault_text(&all->world.fault_seen, text, sizeof text);
        verdict_set(verdict, "cut %llu: mount says %s: %s", (unsigned long long)choice, ckb_status_text(status),
                    text);
        return;
    }
    world_compare_mounts(&all->world, verdict);
    if (!world_check(&all->world, &all->oracle, &seen, verdict)) {
        char text[sizeof verdict->text];
        memcpy(text, verdict->text, sizeof text);
        snprintf(verdict->text, sizeof verdict->text, "cut %llu: %.400s", (unsigned long long)choice, text);
    }
}

void trial_cut(trial *all, world_verdict *verdict)
{
    size_t events = all->world.crash.event_count;
    for (uint64_t choice = 0; choice < CUTS && verdict_good(verdict); choice++) {
        trial_cut_and_check(all, choice, verdict);
        all->world.crash.event_count = events;
    }
}

static void try_one(trial *all, const char *test, uint64_t seed, bool *fired)
{
    world_verdict verdict = {""};
    trial_reset(all);
    cr_assert_eq(world_mount(&all->world), CKB_OK);
    trial_arm(all);
    bool failed = all->plan->run(all, seed, &verdict);
    *fired = all->world.fault.fired > 0;
    bool lasting = all->now->sticky && *fired;
    if (lasting && !failed) {
        verdict_set(&verdict, "a failed operation of the medium was told to nobody");
    }
    media_fault_disarm(&all->world.fault);
    if (lasting) {
        all->plan->expect_sticky(all, &verdict);
    }
    all->plan->expect_no_wrong_data(all, lasting || all->now->lying || all->now->kinds == MEDIA_FAULT_READ,
                                    &verdict);
    int status = world_unmount(&all->world);
    if (lasting ? status == CKB_OK : status != CKB_OK && !failed) {
        verdict_set(&verdict, "unmount says %s", ckb_status_text(status));
    }
    trial_cut(all, &verdict);
    if (all->world.trace.violations) {
        verdict_set(&verdict, "medium contract broken: %s", all->world.trace.message);
    }
    trial_report(all, test, &verdict);
}

void trial_sweep(const trial_plan *plan, const char *test, const fault_case *first, const fault_case *last)
{
    static trial all;
    const uint64_t seed = 21;
    trial_open(&all, plan, seed);
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
