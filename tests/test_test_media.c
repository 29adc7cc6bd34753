/* The test media themselves: every assertion of trace, every way of crash and every effect of fault is
 * seen to trigger. */
#include "media.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

static const ckb_geometry small = {.segment_bytes = 1024,
                                   .segment_count = 4,
                                   .read_unit = 8,
                                   .write_unit = 64,
                                   .buffer_align = 16,
                                   .capabilities = 0};

enum { UNIT = 64, UNITS = 16 };

/* The whole stack over one RAM image, and a buffer that is aligned as the geometry wants. */
typedef struct stack {
    media_ram ram;
    media_trace trace;
    media_crash crash;
    media_fault fault;
    ckb_medium medium;
    uint8_t *base;
    _Alignas(16) uint8_t bytes[1024 + 64];
} stack;

static void stack_open(stack *all)
{
    media_ram_init(&all->ram, &small);
    ckb_medium below = media_ram_medium(&all->ram);
    media_trace_init(&all->trace, &below);
    all->trace.quiet = true;
    below = media_trace_medium(&all->trace);
    media_crash_init(&all->crash, &below);
    below = media_crash_medium(&all->crash);
    media_fault_init(&all->fault, &below);
    all->medium = media_fault_medium(&all->fault);
    all->base = media_alloc(media_volume_bytes(&small));
    memcpy(all->base, all->ram.image, media_volume_bytes(&small));
    memset(all->bytes, 'a', sizeof all->bytes);
}

static void stack_close(stack *all)
{
    media_crash_free(&all->crash);
    media_trace_free(&all->trace);
    media_ram_free(&all->ram);
    free(all->base);
}

static int put(stack *all, uint32_t segment, uint64_t offset, size_t length, int letter)
{
    memset(all->bytes, letter, sizeof all->bytes);
    return all->medium.write(all->medium.context, segment, offset, all->bytes, length);
}

static int get(stack *all, uint32_t segment, uint64_t offset, size_t length)
{
    return all->medium.read(all->medium.context, segment, offset, all->bytes, length);
}

static int erase(stack *all, uint32_t segment)
{
    return all->medium.erase(all->medium.context, segment);
}

static int sync_segment(stack *all, uint32_t segment)
{
    return all->medium.sync(all->medium.context, segment);
}

/* ---------------------------------------------------------------------------------------------- trace */

static void expect_violation(stack *all, int status, const char *what)
{
    cr_expect_eq(status, CKB_IO, "%s passed", what);
    cr_expect_eq(all->trace.violations, 1, "%s: %d violations", what, (int)all->trace.violations);
    cr_expect(strstr(all->trace.message, what) == all->trace.message, "%s: got %s", what, all->trace.message);
    all->trace.violations = 0;
}

Test(test_media, trace_refuses_ranges_outside_the_geometry)
{
    stack all;
    stack_open(&all);
    expect_violation(&all, get(&all, 4, 0, 64), "segment out of bounds");
    expect_violation(&all, put(&all, 4, 0, 64, 'x'), "segment out of bounds");
    expect_violation(&all, erase(&all, 4), "segment out of bounds");
    expect_violation(&all, sync_segment(&all, 4), "segment out of bounds");
    expect_violation(&all, get(&all, 0, 1024, 8), "range out of bounds");
    expect_violation(&all, get(&all, 0, 960, 128), "range out of bounds");
    expect_violation(&all, put(&all, 0, UINT64_MAX - 63, 128, 'x'), "range out of bounds");
    expect_violation(&all, put(&all, 0, 0, 0, 'x'), "empty range");
    stack_close(&all);
}

Test(test_media, trace_refuses_unaligned_offsets_lengths_and_buffers)
{
    stack all;
    stack_open(&all);
    expect_violation(&all, get(&all, 0, 4, 8), "offset not aligned");
    expect_violation(&all, get(&all, 0, 8, 12), "length not aligned");
    expect_violation(&all, put(&all, 0, 8, 64, 'x'), "offset not aligned");
    expect_violation(&all, put(&all, 0, 64, 72, 'x'), "length not aligned");
    int status = all.medium.write(all.medium.context, 0, 0, all.bytes + 8, 64);
    expect_violation(&all, status, "buffer not aligned");
    stack_close(&all);
}

Test(test_media, trace_refuses_writes_that_are_not_once_rising_and_after_an_erase)
{
    stack all;
    stack_open(&all);
    expect_violation(&all, put(&all, 1, 0, 64, 'x'), "write before erase");
    cr_expect_eq(erase(&all, 1), CKB_OK);
    cr_expect_eq(put(&all, 1, 0, 128, 'x'), CKB_OK);
    expect_violation(&all, put(&all, 1, 64, 64, 'x'), "unit written twice");
    cr_expect_eq(put(&all, 1, 512, 64, 'x'), CKB_OK, "gaps are allowed");
    expect_violation(&all, put(&all, 1, 256, 64, 'x'), "unit written twice, or offsets not rising");
    cr_expect_eq(erase(&all, 1), CKB_OK);
    cr_expect_eq(put(&all, 1, 0, 64, 'x'), CKB_OK, "an erase allows it again");
    cr_expect_eq(all.trace.violations, 0);
    stack_close(&all);
}

/* A hook that works on the same segment while a write is held up below the trace. */
typedef struct intruder {
    media_trace *trace;
    uint32_t segment;
    int write_status, erase_status, other_status;
} intruder;

static void intrude(void *context)
{
    static _Alignas(16) uint8_t bytes[UNIT];
    intruder *me = context;
    ckb_medium medium = media_trace_medium(me->trace);
    me->write_status = medium.write(medium.context, me->segment, 512, bytes, UNIT);
    me->erase_status = medium.erase(medium.context, me->segment);
    me->other_status = medium.sync(medium.context, me->segment);
}

Test(test_media, trace_refuses_two_changes_of_one_segment_at_once)
{
    media_ram ram;
    media_fault fault;
    media_trace trace;
    static _Alignas(16) uint8_t bytes[UNIT];
    media_ram_init(&ram, &small);
    ckb_medium below = media_ram_medium(&ram);
    media_fault_init(&fault, &below);
    below = media_fault_medium(&fault);
    media_trace_init(&trace, &below);
    trace.quiet = true;
    ckb_medium medium = media_trace_medium(&trace);
    intruder me = {&trace, 2, 0, 0, 1};
    cr_expect_eq(medium.erase(medium.context, 2), CKB_OK);
    media_fault_rule rule = {
        .kinds = MEDIA_FAULT_WRITE, .effect = MEDIA_FAULT_DELAY, .hook = intrude, .hook_context = &me};
    media_fault_arm(&fault, &rule);
    cr_expect_eq(medium.write(medium.context, 2, 0, bytes, UNIT), CKB_OK);
    cr_expect_eq(me.write_status, CKB_IO);
    cr_expect_eq(me.erase_status, CKB_IO);
    cr_expect_eq(me.other_status, CKB_OK);
    cr_expect_eq(trace.violations, 2);
    cr_expect_str_eq(trace.message, "write beside another write or erase: segment 2 offset 512 length 64");
    media_trace_free(&trace);
    media_ram_free(&ram);
}

Test(test_media, trace_counts_operations_and_bytes)
{
    stack all;
    stack_open(&all);
    erase(&all, 0);
    put(&all, 0, 0, 128, 'x');
    get(&all, 0, 0, 8);
    get(&all, 0, 8, 16);
    sync_segment(&all, 0);
    cr_expect_eq(all.trace.erases, 1);
    cr_expect_eq(all.trace.writes, 1);
    cr_expect_eq(all.trace.reads, 2);
    cr_expect_eq(all.trace.syncs, 1);
    cr_expect_eq(all.trace.bytes_written, 128);
    cr_expect_eq(all.trace.bytes_read, 24);
    stack_close(&all);
}

/* ---------------------------------------------------------------------------------------------- crash */

/* A letter for each unit of a segment: its byte when all bytes are the same, '0', '1' for all zero and
 * all ones, '?' otherwise. */
static void picture(const uint8_t *image, uint32_t segment, char text[UNITS + 1])
{
    for (int unit = 0; unit < UNITS; unit++) {
        const uint8_t *bytes = image + segment * 1024u + (unsigned)unit * UNIT;
        bool same = memcmp(bytes, bytes + 1, UNIT - 1) == 0;
        text[unit] = !same ? '?' : bytes[0] == 0 ? '0' : bytes[0] == 0xFF ? '1' : (char)bytes[0];
    }
    text[UNITS] = 0;
}

/* Runs through the log to its end and counts how often each picture of a segment comes out. */
typedef struct gallery {
    char seen[4096][UNITS + 1];
    int count;
} gallery;

static bool gallery_has(const gallery *all, const char *text)
{
    for (int i = 0; i < all->count; i++) {
        if (strcmp(all->seen[i], text) == 0) {
            return true;
        }
    }
    return false;
}

static void gallery_fill(gallery *all, stack *from, uint32_t segment, uint64_t first, uint64_t step,
                         uint64_t choices)
{
    media_cursor cursor;
    uint8_t *image = media_alloc(media_volume_bytes(&small));
    media_cursor_init(&cursor, &from->crash, &small, from->base);
    while (media_cursor_advance(&cursor)) {
    }
    all->count = 0;
    for (uint64_t choice = first; choice < choices && all->count < 4096; choice += step) {
        char text[UNITS + 1];
        media_cursor_materialise(&cursor, 7, choice, image);
        picture(image, segment, text);
        if (!gallery_has(all, text)) {
            memcpy(all->seen[all->count++], text, sizeof text);
        }
    }
    media_cursor_free(&cursor);
    free(image);
}

/* Segment 1 was erased and holds "aabb" durably; "c", "dd" and "e" are pending. */
static void pending_writes(stack *all)
{
    erase(all, 1);
    put(all, 1, 0, 128, 'a');
    put(all, 1, 128, 128, 'b');
    sync_segment(all, 1);
    put(all, 1, 256, 64, 'c');
    put(all, 1, 320, 128, 'd');
    put(all, 1, 448, 64, 'e');
}

static gallery seen;

static bool all_start_with(const gallery *all, const char *text)
{
    for (int i = 0; i < all->count; i++) {
        if (strncmp(all->seen[i], text, strlen(text)) != 0) {
            return false;
        }
    }
    return all->count > 0;
}

/* True when some picture begins with the text. */
static bool some_start_with(const gallery *all, const char *text)
{
    for (int i = 0; i < all->count; i++) {
        if (strncmp(all->seen[i], text, strlen(text)) == 0) {
            return true;
        }
    }
    return false;
}

Test(test_media, crash_keeps_what_is_synced_in_every_way)
{
    stack all;
    stack_open(&all);
    pending_writes(&all);
    gallery_fill(&seen, &all, 1, 0, 1, 2000);
    cr_expect(all_start_with(&seen, "aabb"));
    stack_close(&all);
}

Test(test_media, crash_keeps_nothing_everything_prefix_suffix_or_any_subset)
{
    stack all;
    stack_open(&all);
    pending_writes(&all);
    gallery_fill(&seen, &all, 1, MEDIA_WAY_NOTHING, MEDIA_WAY_COUNT, 300);
    cr_expect(all_start_with(&seen, "aabb") && !some_start_with(&seen, "aabbc"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_ALL, MEDIA_WAY_COUNT, 300);
    cr_expect(all_start_with(&seen, "aabbcdde"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_PREFIX, MEDIA_WAY_COUNT, 600);
    cr_expect(some_start_with(&seen, "aabb0000") && some_start_with(&seen, "aabbc000") &&
              some_start_with(&seen, "aabbcdd0") && some_start_with(&seen, "aabbcdde"));
    cr_expect(!some_start_with(&seen, "aabbcd0") && !some_start_with(&seen, "aabb0d"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_TORN_PREFIX, MEDIA_WAY_COUNT, 600);
    cr_expect(some_start_with(&seen, "aabbc0d0") && some_start_with(&seen, "aabbcd00"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_SUFFIX, MEDIA_WAY_COUNT, 600);
    cr_expect(some_start_with(&seen, "aabb000e") && some_start_with(&seen, "aabb0dde"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_SUBSET, MEDIA_WAY_COUNT, 2000);
    cr_expect(some_start_with(&seen, "aabb0dd0") && some_start_with(&seen, "aabbc00e"));
    cr_expect(!some_start_with(&seen, "aabbcd0"));
    stack_close(&all);
}

Test(test_media, crash_tears_operations_at_unit_boundaries)
{
    stack all;
    stack_open(&all);
    pending_writes(&all);
    gallery_fill(&seen, &all, 1, MEDIA_WAY_UNITS, MEDIA_WAY_COUNT, 4000);
    for (unsigned subset = 0; subset < 16; subset++) {
        char text[9] = "aabb0000";
        for (unsigned unit = 0; unit < 4; unit++) {
            text[4 + unit] = subset & (1u << unit) ? "cdde"[unit] : '0';
        }
        cr_expect(some_start_with(&seen, text), "%s never happened", text);
    }
    gallery_fill(&seen, &all, 1, MEDIA_WAY_GARBAGE, MEDIA_WAY_COUNT, 40000);
    cr_expect(some_start_with(&seen, "aabbc1d?") && some_start_with(&seen, "aabb?10e"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_ALL_BUT_ONE, MEDIA_WAY_COUNT, 600);
    cr_expect(some_start_with(&seen, "aabb0dde") && some_start_with(&seen, "aabbc0de") &&
              some_start_with(&seen, "aabbcd0e") && some_start_with(&seen, "aabbcdd0"));
    gallery_fill(&seen, &all, 1, MEDIA_WAY_ONLY_ONE, MEDIA_WAY_COUNT, 600);
    cr_expect(some_start_with(&seen, "aabbc000") && some_start_with(&seen, "aabb0d00") &&
              some_start_with(&seen, "aabb00d0") && some_start_with(&seen, "aabb000e"));
    stack_close(&all);
}

Test(test_media, crash_leaves_stale_zero_ones_or_noise_after_a_durable_erase)
{
    stack all;
    stack_open(&all);
    pending_writes(&all);
    erase(&all, 1);
    put(&all, 1, 0, 64, 'f');
    sync_segment(&all, 1);
    gallery_fill(&seen, &all, 1, 0, 1, 400);
    cr_expect(all_start_with(&seen, "f"));
    cr_expect(some_start_with(&seen, "fabbcdde"), "stale");
    cr_expect(some_start_with(&seen, "f0000000"), "zero");
    cr_expect(some_start_with(&seen, "f1111111"), "ones");
    cr_expect(some_start_with(&seen, "f???????"), "noise");
    stack_close(&all);
}

Test(test_media, crash_may_lose_keep_or_halve_an_erase_that_no_sync_covers)
{
    stack all;
    stack_open(&all);
    pending_writes(&all);
    sync_segment(&all, 1);
    erase(&all, 1);
    put(&all, 1, 0, 64, 'f');
    gallery_fill(&seen, &all, 1, 0, 1, 4000);
    cr_expect(some_start_with(&seen, "aabbcdde"), "lost with the write");
    cr_expect(some_start_with(&seen, "fabbcdde"), "lost without the write");
    cr_expect(some_start_with(&seen, "00000000"), "kept without the write");
    cr_expect(some_start_with(&seen, "f1111111"), "kept with the write");
    cr_expect(seen.count > 100, "mixed: only %d pictures", seen.count);
    stack_close(&all);
}

Test(test_media, crash_lets_a_sync_cover_its_own_segment_and_earlier_operations_only)
{
    stack all;
    stack_open(&all);
    erase(&all, 1);
    erase(&all, 2);
    put(&all, 1, 0, 64, 'a');
    put(&all, 2, 0, 64, 'b');
    sync_segment(&all, 2);
    gallery_fill(&seen, &all, 1, MEDIA_WAY_NOTHING, MEDIA_WAY_COUNT, 100);
    cr_expect(!some_start_with(&seen, "a"), "a sync of another segment kept it");
    gallery_fill(&seen, &all, 2, MEDIA_WAY_NOTHING, MEDIA_WAY_COUNT, 100);
    cr_expect(all_start_with(&seen, "b"));
    media_event *last = &all.crash.events[all.crash.event_count - 1];
    cr_assert_eq(last->kind, MEDIA_EVENT_SYNC);
    last->covers--;
    gallery_fill(&seen, &all, 2, MEDIA_WAY_NOTHING, MEDIA_WAY_COUNT, 100);
    cr_expect(!some_start_with(&seen, "b"), "a write that returned after the call was covered");
    stack_close(&all);
}

Test(test_media, crash_reads_the_newest_bytes_and_fails_everything_after_the_cut)
{
    stack all;
    stack_open(&all);
    erase(&all, 1);
    put(&all, 1, 0, 64, 'z');
    cr_expect_eq(get(&all, 1, 0, 64), CKB_OK);
    cr_expect_eq(all.bytes[0], 'z');
    all.crash.cut_after = all.crash.operations + 1;
    cr_expect_eq(put(&all, 1, 64, 64, 'y'), CKB_OK, "the last operation before the cut");
    cr_expect_eq(put(&all, 1, 128, 64, 'y'), CKB_IO);
    cr_expect_eq(get(&all, 1, 0, 64), CKB_IO);
    cr_expect_eq(erase(&all, 1), CKB_IO);
    cr_expect_eq(sync_segment(&all, 1), CKB_IO);
    cr_expect_eq(media_crash_steps(&all.crash), 3);
    media_crash_restart(&all.crash);
    cr_expect_eq(get(&all, 1, 0, 64), CKB_OK);
    stack_close(&all);
}

Test(test_media, crash_gives_the_same_image_for_the_same_id_and_notes_stay_in_place)
{
    stack all;
    media_cursor cursor;
    uint64_t hashes[2][40];
    uint8_t *image = media_alloc(media_volume_bytes(&small));
    stack_open(&all);
    pending_writes(&all);
    size_t note = media_crash_note(&all.crash, 5, 77, -3);
    put(&all, 1, 512, 64, 'g');
    media_cursor_init(&cursor, &all.crash, &small, all.base);
    for (int run = 0; run < 2; run++) {
        const media_event *event;
        while ((event = media_cursor_advance(&cursor)) && event->kind != MEDIA_EVENT_NOTE) {
        }
        cr_assert(event && event == &all.crash.events[note]);
        cr_expect(event->note == 5 && event->first == 77 && event->second == -3);
        cr_expect_eq(cursor.step, note);
        for (uint64_t choice = 0; choice < 40; choice++) {
            media_cursor_materialise(&cursor, 3, choice, image);
            hashes[run][choice] = media_hash(image, media_volume_bytes(&small));
        }
        media_cursor_rewind(&cursor, all.base, NULL);
    }
    cr_expect_arr_eq(hashes[0], hashes[1], sizeof hashes[0]);
    media_cursor_free(&cursor);
    stack_close(&all);
    free(image);
}

Test(test_media, crash_log_survives_a_file)
{
    stack all;
    media_crash copy;
    stack_open(&all);
    pending_writes(&all);
    FILE *file = tmpfile();
    cr_assert(file && media_crash_save(&all.crash, file));
    rewind(file);
    media_crash_init(&copy, &all.medium);
    cr_assert(media_crash_load(&copy, file));
    cr_assert_eq(copy.event_count, all.crash.event_count);
    cr_expect_arr_eq(copy.events, all.crash.events, copy.event_count * sizeof *copy.events);
    cr_expect_arr_eq(copy.arena, all.crash.arena, copy.arena_used);
    fclose(file);
    media_crash_free(&copy);
    stack_close(&all);
}

/* ---------------------------------------------------------------------------------------------- fault */

static void arm(stack *all, unsigned kinds, uint64_t at, bool forever, media_fault_effect effect, int status)
{
    media_fault_rule rule = {kinds, 0, at, forever, effect, status, NULL, NULL};
    media_fault_arm(&all->fault, &rule);
}

Test(test_media, fault_fails_operation_k_once_or_for_good)
{
    stack all;
    stack_open(&all);
    erase(&all, 1);
    arm(&all, MEDIA_FAULT_ANY, 2, false, MEDIA_FAULT_ERROR, CKB_IO);
    cr_expect_eq(put(&all, 1, 0, 64, 'a'), CKB_OK);
    cr_expect_eq(get(&all, 1, 0, 64), CKB_OK);
    cr_expect_eq(sync_segment(&all, 1), CKB_IO);
    cr_expect_eq(sync_segment(&all, 1), CKB_OK);
    cr_expect(all.fault.fired == 1 && all.fault.hit == MEDIA_FAULT_SYNC);
    arm(&all, MEDIA_FAULT_WRITE, 1, true, MEDIA_FAULT_ERROR, CKB_IO);
    cr_expect_eq(put(&all, 1, 64, 64, 'a'), CKB_OK);
    cr_expect_eq(put(&all, 1, 128, 64, 'a'), CKB_IO);
    cr_expect_eq(put(&all, 1, 128, 64, 'a'), CKB_IO);
    cr_expect_eq(get(&all, 1, 0, 64), CKB_OK);
    arm(&all, MEDIA_FAULT_ERASE, 0, false, MEDIA_FAULT_ERROR, CKB_NOSPACE);
    cr_expect_eq(erase(&all, 2), CKB_NOSPACE);
    cr_expect_eq(all.trace.erases, 1, "nothing happened");
    cr_expect_eq(erase(&all, 2), CKB_OK);
    media_fault_disarm(&all.fault);
    cr_expect_eq(put(&all, 1, 128, 64, 'a'), CKB_OK);
    stack_close(&all);
}

Test(test_media, fault_shortens_drops_or_answers_late)
{
    stack all;
    stack_open(&all);
    char text[UNITS + 1];
    for (uint32_t segment = 0; segment < 4; segment++) {
        erase(&all, segment);
    }
    arm(&all, MEDIA_FAULT_WRITE, 0, true, MEDIA_FAULT_SHORT, CKB_IO);
    bool some_short = false;
    for (uint32_t segment = 0; segment < 3; segment++) {
        cr_expect_eq(put(&all, segment, 0, 512, 's'), CKB_IO);
        picture(all.ram.image, segment, text);
        size_t units = strspn(text, "s");
        cr_expect(units <= 8 && strspn(text + units, "0") == UNITS - units, "%s", text);
        some_short |= units > 0 && units < 8;
    }
    cr_expect(some_short);
    arm(&all, MEDIA_FAULT_ANY, 0, true, MEDIA_FAULT_DROP, 0);
    cr_expect_eq(put(&all, 3, 0, 64, 'd'), CKB_OK);
    cr_expect_eq(sync_segment(&all, 3), CKB_OK);
    cr_expect_eq(erase(&all, 3), CKB_OK);
    cr_expect_eq(all.trace.syncs, 0);
    picture(all.ram.image, 3, text);
    cr_expect_str_eq(text, "0000000000000000");
    arm(&all, MEDIA_FAULT_ANY, 0, true, MEDIA_FAULT_LATE, CKB_IO);
    cr_expect_eq(put(&all, 3, 0, 64, 'l'), CKB_IO);
    cr_expect_eq(sync_segment(&all, 3), CKB_IO);
    picture(all.ram.image, 3, text);
    cr_expect_str_eq(text, "l000000000000000");
    cr_expect_eq(all.trace.syncs, 1);
    stack_close(&all);
}

static void count_call(void *context)
{
    ++*(int *)context;
}

Test(test_media, fault_flips_one_bit_of_a_read_and_delays_by_a_hook)
{
    stack all;
    stack_open(&all);
    arm(&all, MEDIA_FAULT_READ, 1, false, MEDIA_FAULT_CORRUPT, 0);
    int bits[3] = {0, 0, 0};
    for (int turn = 0; turn < 3; turn++) {
        cr_expect_eq(get(&all, 0, 0, 64), CKB_OK);
        for (int i = 0; i < 64; i++) {
            bits[turn] += __builtin_popcount(all.bytes[i]);
        }
    }
    cr_expect(bits[0] == 0 && bits[1] == 1 && bits[2] == 0);
    int calls = 0;
    media_fault_rule rule = {.kinds = MEDIA_FAULT_ANY,
                             .at = 1,
                             .forever = true,
                             .effect = MEDIA_FAULT_DELAY,
                             .hook = count_call,
                             .hook_context = &calls};
    media_fault_arm(&all.fault, &rule);
    cr_expect_eq(erase(&all, 0), CKB_OK);
    cr_expect_eq(put(&all, 0, 0, 64, 'w'), CKB_OK);
    cr_expect_eq(sync_segment(&all, 0), CKB_OK);
    cr_expect_eq(calls, 2);
    stack_close(&all);
}

Test(test_media, ids_sets_and_hashes_do_what_they_say)
{
    uint64_t number = 0;
    cr_expect(media_id_number("seed=7/step=12/choice=3", "step", &number) && number == 12);
    cr_expect(media_id_number("seed=7/step=12/choice=3", "seed", &number) && number == 7);
    cr_expect(!media_id_number("seed=7/step=12/choice=3", "cut", &number));
    media_set set;
    media_set_init(&set, 10);
    cr_expect(media_set_add(&set, 4) && media_set_add(&set, 0) && !media_set_add(&set, 4));
    cr_expect_eq(set.count, 2);
    media_set_free(&set);
    uint8_t bytes[100] = {0};
    uint64_t before = media_hash(bytes, sizeof bytes);
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] ^= 1;
        cr_expect_neq(media_hash(bytes, sizeof bytes), before);
        bytes[i] ^= 1;
    }
}
