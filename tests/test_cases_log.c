/* Cases of damage to logs that other stores met, which no other test holds. */
#define _GNU_SOURCE
#include "log_store.h"

enum { BYTES = 4096, COUNT = 48, SMALL_UNIT = 64 };

static store *new_store(void)
{
    return log_store_make(BYTES, COUNT, SMALL_UNIT);
}

static void done(store *s, log_handle *l)
{
    log_handle_free(l);
    store_free(s);
}

static unsigned long long number(uint64_t value)
{
    return (unsigned long long)value;
}

/* The newest segment is empty, random, or has only its header: what it held may be lost, the rest is there. */
Test(cases_log, C04_a_newest_segment_that_became_useless_is_named_and_the_rest_is_there)
{
    for (int kind = 0; kind < 3; kind++) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        ckb_log_config salvage = {.salvage = true};
        uint64_t last = append_until(l, 1, 3);
        commit(l);
        append_durably(l, last + 1, last + 1);
        uint32_t newest = entry_at(l, last + 1).segment;
        uint64_t before = last;
        while (entry_at(l, before).segment == newest)
            before--;
        if (kind == 0)
            memset(at(s, newest, 0), 0, BYTES);
        else if (kind == 1)
            test_fill(at(s, newest, 0), BYTES, 5);
        else
            memset(at(s, newest, SMALL_UNIT), 0, BYTES - SMALL_UNIT);
        for (int mounts = 0; mounts < 3; mounts++) {
            int status = log_crash(l, "a");
            /* A header alone is what a segment looks like that was prepared: nothing shows that it was used. */
            cr_assert_eq(status, kind == 2 ? CKB_OK : CKB_CORRUPT, "kind %d: %s", kind,
                         ckb_status_text(status));
            if (status == CKB_CORRUPT) {
                cr_assert_eq(l->fault.segment, newest);
                cr_assert_eq(l->fault.index, before + 1);
                cr_assert_eq(log_open_with(l, "a", &salvage), CKB_OK);
            }
            assert_walk(l, "1-%llu, end", number(before));
        }
        done(s, l);
    }
}

/* What looks like unwritten space may be data: entries of zeros, and zeros around a single one. */
Test(cases_log, C05_a_last_entry_of_zeros_is_not_unwritten_space)
{
    static const size_t sizes[] = {1, 511, 1024, 3500};
    for (size_t which = 0; which < 12; which++) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        size_t length = sizes[which / 3];
        uint8_t *bytes = calloc(2, length), *back = bytes + length;
        bytes[which % 3 == 1 ? 0 : length - 1] = which % 3 != 0;
        append(l, 1, 3);
        cr_assert_eq(ckb_log_append(l->log, 7, bytes, length, CKB_DURABLE, NULL), CKB_OK);
        for (int mounts = 0; mounts < 4; mounts++) {
            ckb_entry entry;
            cr_assert_eq(mounts % 2 ? log_remount(l, "a") : log_crash(l, "a"), CKB_OK);
            cr_assert_eq(stat_of(s).dropped_tails, 0);
            cr_assert_eq(info_of(l).last, 4);
            cr_assert_eq(ckb_log_read(l->plain, 4, &entry, back, length), CKB_OK);
            cr_assert(entry.length == length && entry.term == 7);
            cr_assert_eq(memcmp(bytes, back, length), 0);
        }
        assert_goes_on(l, 5);
        free(bytes);
        done(s, l);
    }
}

/* A record of zeros with good ones behind it. */
Test(cases_log, C08_a_hole_of_zeros_is_the_end_of_what_was_not_durable_and_damage_in_what_was)
{
    for (int durable = 0; durable < 2; durable++) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        append_durably(l, 1, 3);
        append(l, 4, 8);
        ckb_entry hole = entry_at(l, 4), behind = entry_at(l, 5);
        commit(l);
        if (durable)
            append_durably(l, 9, 9); /* it shows that those before it were durable */
        memset(at(s, hole.segment, hole.offset), 0, (size_t)(behind.offset - hole.offset));
        cr_assert_eq(log_crash(l, "a"), CKB_OK);
        cr_assert_eq(stat_of(s).damage, (uint64_t)durable);
        if (durable) {
            assert_walk(l, "1-3, corrupt");
            assert_read_fault(l, "entry 4, segment %u offset %llu: does not verify", hole.segment,
                              number(hole.offset));
            assert_reads(l, 1, 10, "1-3, 4 corrupt, 5-9, 10 end");
            assert_goes_on(l, 10);
        } else {
            assert_reads(l, 1, 8, "1-3, 4-8 end");
            l->salt = 1;
            append_durably(l, 4, 5);
            cr_assert_eq(log_crash(l, "a"), CKB_OK);
            assert_reads(l, 1, 8, "1-3, 4-5', 6-8 end");
        }
        done(s, l);
    }
}

/* A damaged segment in the middle does not stand in the way of a purge, nor of the space behind it. */
Test(cases_log, C12_damage_that_is_purged_is_gone_and_its_space_is_used_again)
{
    store *s = log_store_make(BYTES, 16, SMALL_UNIT);
    log_handle *l = log_new(s, "a", 1);
    uint64_t last = append_until(l, 1, 6);
    commit(l);
    ckb_entry damaged = entry_at(l, last / 3);
    *at(s, damaged.segment, damaged.offset + 9) ^= 1;
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_reads(l, last / 3, last / 3, "%llu corrupt", number(last / 3));
    for (int round = 0; round < 200; round++) {
        append_durably(l, last + 1, last + 20);
        last += 20;
        cr_assert_eq(ckb_log_purge(l->log, last - 60), CKB_OK);
        cr_assert_leq(info_of(l).segments, 8);
    }
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    cr_assert_eq(stat_of(s).damage, 0);
    assert_walk(l, "%llu-%llu, end", number(last - 60), number(last));
    assert_check(s, "%s", "");
    done(s, l);
}

/* A length that is nonsense under a good checksum of its header. */
Test(cases_log, C20_a_length_that_cannot_be_is_damage_whatever_the_checksum_says)
{
    static const uint32_t lengths[] = {0, 1, 1u << 20, 1u << 30, UINT32_MAX, UINT32_MAX - 7};
    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        append_durably(l, 1, 8);
        append_durably(l, 9, 9);
        ckb_entry entry = entry_at(l, 4);
        put_little(at(s, entry.segment, entry.offset + 8), 4, lengths[i]);
        reseal(s, entry.segment, entry.offset, false);
        cr_assert_eq(log_crash(l, "a"), CKB_OK);
        cr_assert_geq(stat_of(s).damage, 1, "length %u", lengths[i]);
        assert_reads(l, 1, 3, "1-3");
        if (lengths[i] != 0) /* no bytes need no checksum: an entry of nothing verifies */
            assert_reads(l, 4, 4, "4 corrupt");
        assert_reads(l, 9, 10, "9, 10 end");
        done(s, l);
    }
}

/* A checksum of zero is a checksum like any other. */
Test(cases_log, C23_a_checksum_field_of_zero_switches_nothing_off)
{
    for (int field = 0; field < 2; field++) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        append_durably(l, 1, 8);
        append_durably(l, 9, 9);
        ckb_entry entry = entry_at(l, 4);
        *at(s, entry.segment, entry.offset + 45) ^= 1; /* its data */
        put_little(at(s, entry.segment, entry.offset + (field ? 12 : 0)), 4, 0);
        if (field)
            reseal(s, entry.segment, entry.offset, false);
        cr_assert_eq(log_crash(l, "a"), CKB_OK);
        assert_reads(l, 1, 10, "1-3, 4 corrupt, 5-9, 10 end");
        done(s, l);
    }
}

/* Appends entries whose bytes begin with the image of a whole record of the same segment. */
static void append_images(store *s, log_handle *l, uint64_t from, uint64_t to)
{
    ckb_entry first = entry_at(l, from);
    for (uint64_t index = from; index <= to; index++) {
        const uint8_t *image = at(s, first.segment, first.offset);
        cr_assert_eq(ckb_log_append(l->log, index, image, 400, CKB_DURABLE, NULL), CKB_OK);
    }
}

Test(cases_log, C24_nothing_behind_a_truncate_comes_back_however_short_the_next_entry_is)
{
    static const size_t lengths[] = {16, 100, 399, 400, 401};
    static const uint8_t zeros[401];
    for (size_t i = 0; i < 2 * sizeof(lengths) / sizeof(lengths[0]); i++) {
        store *s = log_store_make(1 << 16, 12, SMALL_UNIT);
        log_handle *l = log_new(s, "a", 1);
        uint8_t bytes[400] = {1};
        for (uint64_t index = 1; index <= 20 || (index <= 50 && i < 5); index++)
            cr_assert_eq(ckb_log_append(l->log, index, bytes, sizeof(bytes), CKB_DURABLE, NULL), CKB_OK);
        if (i >= 5) {
            append_durably(l, 21, 22);
            append_images(s, l, 21, 50);
        }
        uint64_t last = info_of(l).last;
        cr_assert_eq(ckb_log_truncate(l->log, 20), CKB_OK);
        cr_assert_eq(ckb_log_append(l->log, 77, zeros, lengths[i % 5], CKB_DURABLE, NULL), CKB_OK);
        for (int mounts = 0; mounts < 4; mounts++) {
            cr_assert_eq(mounts % 2 ? log_remount(l, "a") : log_crash(l, "a"), CKB_OK);
            cr_assert_eq(info_of(l).last, 21);
            assert_reads(l, 22, last, "22-%llu end", number(last));
            ckb_entry entry;
            uint8_t back[401];
            cr_assert_eq(ckb_log_read(l->plain, 21, &entry, back, sizeof(back)), CKB_OK);
            cr_assert(entry.term == 77 && entry.length == lengths[i % 5]);
        }
        assert_check(s, "%s", "");
        done(s, l);
    }
}

/* Old segments under their old number, and under another one, beside a log that was reset since. */
Test(cases_log, C37_a_segment_of_before_a_reset_is_not_taken_for_the_newest)
{
    for (int elsewhere = 0; elsewhere < 2; elsewhere++) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        uint8_t old[BYTES];
        append_durably(l, 1, 10);
        uint32_t segment = entry_at(l, 10).segment;
        memcpy(old, at(s, segment, 0), BYTES);
        cr_assert_eq(ckb_log_reset(l->log, 5000), CKB_OK);
        append_durably(l, 5000, 5009);
        cr_assert_eq(ckb_maintain(s->volume, 20, NULL), CKB_OK);
        uint32_t place = segment;
        while (elsewhere && (place == segment || memcmp(at(s, place, 0), "CHUNKB\r\n", 8) == 0))
            place = place + 1 < COUNT ? place + 1 : stat_of(s).segments_journal;
        cr_assert_neq(place, entry_at(l, 5009).segment);
        memcpy(at(s, place, 0), old, BYTES);
        for (int mounts = 0; mounts < 3; mounts++) {
            cr_assert_eq(mounts ? log_remount(l, "a") : log_crash(l, "a"), CKB_OK);
            assert_walk(l, "5000-5009, end");
            cr_assert_eq(stat_of(s).damage, 0);
        }
        assert_goes_on(l, 5010);
        done(s, l);
    }
}

/* A full volume whose newest segment lost its header: all else is read, and nothing needs to be written. */
Test(cases_log, C52_a_lost_header_on_a_full_volume_leaves_the_rest_readable)
{
    store *s = log_store_make(BYTES, 10, SMALL_UNIT);
    log_handle *a = log_new(s, "a", 1), *b = log_new(s, "b", 1);
    ckb_log_config salvage = {.salvage = true};
    uint64_t last = 10;
    append_durably(b, 1, 3);
    append_durably(a, 1, last);
    while (ckb_log_append(a->log, 0, "x", 1, 0, NULL) == CKB_OK)
        last++;
    commit(a);
    uint32_t first = entry_at(a, 1).segment;
    ckb_entry entry;
    uint8_t byte;
    cr_assert_eq(ckb_log_read(a->plain, last, &entry, &byte, 1), CKB_OK);
    cr_assert_neq(entry.segment, first);
    memset(at(s, entry.segment, 0), 0, SMALL_UNIT);
    for (int mounts = 0; mounts < 2; mounts++) {
        cr_assert_eq(log_crash(a, "a"), CKB_CORRUPT);
        cr_assert_eq(log_open_with(a, "a", &salvage), CKB_OK);
        cr_assert_geq(info_of(a).last, 10);
        assert_reads(a, 1, 10, "1-10");
        cr_assert_eq(ckb_log_append(a->log, 0, "x", 1, 0, NULL), CKB_READONLY);
    }
    log_handle_free(b);
    done(s, a);
}

/* ------------------------------------------------------------------------------------------- >>very-large */

#define GIB (UINT64_C(1) << 30)
enum { PAGE = 1 << 16, PAGES = 5 * 16384, LARGE_SEGMENTS = 5 };

/* Segments of 5 GiB that keep only what is not zero. */
static uint8_t *pages[LARGE_SEGMENTS][PAGES];

static int sparse_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    (void)context;
    for (size_t done = 0; done < length;) {
        uint64_t at = offset + done;
        size_t step = PAGE - (size_t)(at % PAGE);
        step = step < length - done ? step : length - done;
        const uint8_t *page = pages[segment][at / PAGE];
        if (page)
            memcpy((uint8_t *)buffer + done, page + at % PAGE, step);
        else
            memset((uint8_t *)buffer + done, 0, step);
        done += step;
    }
    return CKB_OK;
}

static int sparse_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    static const uint8_t zeros[PAGE];
    (void)context;
    for (size_t done = 0; done < length;) {
        uint64_t at = offset + done;
        size_t step = PAGE - (size_t)(at % PAGE);
        step = step < length - done ? step : length - done;
        const uint8_t *from = (const uint8_t *)buffer + done;
        uint8_t **page = &pages[segment][at / PAGE];
        if (!*page && memcmp(from, zeros, step) != 0)
            *page = calloc(1, PAGE);
        if (*page)
            memcpy(*page + at % PAGE, from, step);
        done += step;
    }
    return CKB_OK;
}

static void append_zeros(log_handle *l, const uint8_t *zeros, uint64_t length)
{
    int status = ckb_log_append(l->log, length, zeros, (size_t)length, 0, NULL);
    cr_assert_eq(status, CKB_OK, "%s", ckb_status_text(status));
}

/* Small entries around 2 GiB and around 4 GiB of one segment, with large ones of zeros before them. */
Test(cases_log, C41_entries_around_two_and_four_gigabytes_of_a_segment_are_addressed_right)
{
    if (sizeof(size_t) < 8 || getenv("CKB_TEST_SCALE"))
        test_skip("gigabytes of zeros take too long here");
    store *s = log_store_make(BYTES, LARGE_SEGMENTS, SMALL_UNIT); /* for its memory; the medium is another */
    ckb_medium medium = {
        s, {5 * GIB, LARGE_SEGMENTS, 1, 4096, 1, 0}, sparse_read, sparse_write, store_nothing, store_nothing};
    s->medium = medium;
    s->volume_memory = realloc(s->volume_memory, ckb_volume_memory(&medium.geometry, NULL));
    s->volume_bytes = ckb_volume_memory(&medium.geometry, NULL);
    s->reader_bytes = ckb_reader_memory(&medium.geometry, 0);
    s->reader_memory = realloc(s->reader_memory, s->reader_bytes);
    cr_assert_eq(store_format(s), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    log_handle *l = log_new(s, "a", 1);
    uint8_t *zeros = calloc(1, (size_t)(2 * GIB));
    cr_assert_not_null(zeros);
    append_zeros(l, zeros, 2 * GIB - 10000);
    append(l, 2, 30);
    append_zeros(l, zeros, 2 * GIB - 6000);
    append_durably(l, 32, 80);
    cr_assert_lt(entry_at(l, 2).offset, 2 * GIB);
    cr_assert_gt(entry_at(l, 30).offset, 2 * GIB);
    cr_assert_lt(entry_at(l, 32).offset, 4 * GIB);
    cr_assert_gt(entry_at(l, 80).offset, 4 * GIB);
    for (int mounts = 0; mounts < 2; mounts++) {
        assert_reads(l, 2, 30, "2-30");
        assert_reads(l, 32, 81, "32-80, 81 end");
        assert_reads(l, 31, 31, "31 too big");
        cr_assert_eq(info_of(l).segments, 1);
        cr_assert_eq(log_remount(l, "a"), CKB_OK);
    }
    cr_assert_eq(ckb_log_purge(l->log, 60), CKB_OK);
    cr_assert_eq(ckb_log_truncate(l->log, 70), CKB_OK);
    cr_assert_eq(log_remount(l, "a"), CKB_OK);
    assert_walk(l, "60-70, end");
    assert_goes_on(l, 71);
    free(zeros);
    done(s, l);
}
