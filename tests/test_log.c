/* What each call on a log answers, and the edges of its indexes. */
#define _GNU_SOURCE
#include "log_store.h"

enum { BYTES = 4096, COUNT = 48, SMALL_UNIT = 64 };
#define TOP (UINT64_MAX - 1) /* the largest index */

static store *new_store(void)
{
    return log_store_make(BYTES, COUNT, SMALL_UNIT);
}

static void done(store *s, log_handle *l)
{
    log_handle_free(l);
    store_free(s);
}

/* The log's first, last and durable index. */
static void assert_info(log_handle *l, uint64_t first, uint64_t last, uint64_t durable)
{
    ckb_log_info info = info_of(l);
    cr_assert_eq(info.first, first, "first is %llu", (unsigned long long)info.first);
    cr_assert_eq(info.last, last, "last is %llu", (unsigned long long)info.last);
    cr_assert_eq(info.durable, durable, "durable is %llu", (unsigned long long)info.durable);
}

/* ---------------------------------------------------------------------------------------------- >>names */

Test(log, create_refuses_names_and_indexes_that_cannot_be)
{
    store *s = new_store();
    cr_assert_eq(ckb_log_create(s->volume, NULL, 1), CKB_INVALID);
    cr_assert_eq(ckb_log_create(s->volume, "", 1), CKB_INVALID);
    cr_assert_eq(ckb_log_create(s->volume, "seventeen-letters", 1), CKB_INVALID);
    cr_assert_eq(ckb_log_create(s->volume, "a", UINT64_MAX), CKB_INVALID);
    cr_assert_eq(ckb_log_create(s->volume, "sixteen-letters-", TOP), CKB_OK);
    cr_assert_eq(ckb_log_create(s->volume, "sixteen-letters-", 1), CKB_EXISTS);
    store_free(s);
}

Test(log, create_says_no_space_when_max_logs_are_there)
{
    store *s = new_store();
    for (int i = 0; i < 4; i++) {
        char name[] = {(char)('a' + i), 0};
        cr_assert_eq(ckb_log_create(s->volume, name, 1), CKB_OK);
    }
    cr_assert_eq(ckb_log_create(s->volume, "e", 1), CKB_NOSPACE);
    cr_assert_eq(ckb_log_delete(s->volume, "b"), CKB_OK);
    cr_assert_eq(ckb_log_create(s->volume, "e", 1), CKB_OK);
    cr_assert_eq(stat_of(s).logs, 4);
    store_free(s);
}

Test(log, open_says_why_it_does_not)
{
    store *s = new_store();
    log_handle *l = log_handle_make(s);
    cr_assert_eq(log_open(l, "none"), CKB_NOTFOUND);
    assert_text(&l->fault, "log: not found, room for 4");
    log_handle_free(l);
    l = log_new(s, "a", 1);
    ckb_log *again;
    uint8_t little[100], *memory = malloc(l->bytes);
    cr_assert_eq(ckb_log_open(s->volume, "a", NULL, memory, l->bytes, &again, &l->fault), CKB_BUSY);
    cr_assert_null(again);
    cr_assert_eq(ckb_log_close(l->log), CKB_OK);
    cr_assert_eq(ckb_log_open(s->volume, "a", NULL, little, sizeof(little), &again, &l->fault), CKB_INVALID);
    char expected[100];
    snprintf(expected, sizeof(expected), "memory: %zu bytes needed, 100 given", l->bytes);
    assert_text(&l->fault, expected);
    ckb_log_config config = {.max_entry_bytes = ckb_max_entry_bytes(&s->medium.geometry) + 1};
    cr_assert_eq(ckb_log_memory(&s->medium.geometry, &config), 0);
    cr_assert_eq(ckb_log_open(s->volume, "a", &config, memory, l->bytes, &again, NULL), CKB_INVALID);
    free(memory);
    done(s, l);
}

Test(log, delete_is_refused_while_the_log_is_open)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    cr_assert_eq(ckb_log_delete(s->volume, "a"), CKB_BUSY);
    cr_assert_eq(ckb_log_delete(s->volume, "b"), CKB_NOTFOUND);
    cr_assert_eq(ckb_log_close(l->log), CKB_OK);
    cr_assert_eq(ckb_log_delete(s->volume, "a"), CKB_OK);
    cr_assert_eq(ckb_log_delete(s->volume, "a"), CKB_NOTFOUND);
    cr_assert_eq(log_open(l, "a"), CKB_NOTFOUND);
    done(s, l);
}

Test(log, a_deleted_name_that_is_used_again_shows_nothing_old)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    for (uint64_t round = 0; round < 4; round++) {
        l->salt = round;
        append_durably(l, 1, 60 - 10 * round);
        cr_assert_eq(ckb_log_close(l->log), CKB_OK);
        cr_assert_eq(ckb_log_delete(s->volume, "a"), CKB_OK);
        cr_assert_eq(ckb_log_create(s->volume, "a", 1), CKB_OK);
        cr_assert_eq(round % 2 ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
        assert_info(l, 1, 0, 0);
        assert_reads(l, 1, 60, "1-60 end");
    }
    assert_check(s, "%s", "");
    done(s, l);
}

Test(log, list_shows_open_and_closed_logs)
{
    store *s = new_store();
    log_handle *a = log_new(s, "a", 5), *b = log_new(s, "b", 1);
    append_durably(a, 5, 9);
    append_durably(b, 1, 2);
    cr_assert_eq(ckb_log_close(b->log), CKB_OK);
    ckb_log_info info;
    uint32_t cursor = 0;
    cr_assert_eq(ckb_log_list(s->volume, &cursor, &info), CKB_OK);
    cr_assert_str_eq(info.name, "a");
    cr_assert(info.is_open && info.first == 5 && info.last == 9 && info.durable == 9 && info.segments == 1);
    cr_assert_eq(ckb_log_list(s->volume, &cursor, &info), CKB_OK);
    cr_assert_str_eq(info.name, "b");
    cr_assert(!info.is_open && info.first == 1 && info.last == 2 && info.durable == 2 && info.segments == 1);
    cr_assert_eq(ckb_log_list(s->volume, &cursor, &info), CKB_END);
    log_handle_free(b);
    done(s, a);
}

Test(log, several_logs_do_not_meet)
{
    store *s = new_store();
    log_handle *a = log_new(s, "a", 1), *b = log_new(s, "b", 1000), *c = log_new(s, "c", 1);
    b->salt = 1;
    c->salt = 2;
    for (uint64_t i = 0; i < 100; i++) {
        append(a, 1 + i, 1 + i);
        append(b, 1000 + i, 1000 + i);
        append(c, 1 + i, 1 + i);
    }
    cr_assert_eq(ckb_log_truncate(b->log, 1050), CKB_OK);
    cr_assert_eq(ckb_log_purge(c->log, 90), CKB_OK);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert(log_open(a, "a") == CKB_OK && log_open(b, "b") == CKB_OK && log_open(c, "c") == CKB_OK);
    assert_walk(a, "1-100, end");
    assert_walk(b, "1000-1050', end");
    assert_walk(c, "90-100'', end");
    log_handle_free(b);
    log_handle_free(c);
    done(s, a);
}

/* -------------------------------------------------------------------------------------------- >>appends */

Test(log, append_takes_entries_up_to_the_maximum_and_not_one_byte_more)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    uint32_t most = ckb_max_entry_bytes(&s->medium.geometry);
    uint8_t *bytes = malloc(most + 1), *got = malloc(most + 1);
    ckb_entry entry;
    uint64_t index = 77;
    test_fill(bytes, most + 1, 5);
    cr_assert_eq(ckb_log_append(l->log, 1, bytes, most + 1, 0, &index), CKB_TOOBIG);
    cr_assert_eq(index, 77, "nothing changed");
    assert_info(l, 1, 0, 0);
    cr_assert_eq(ckb_log_append(l->log, 2, bytes, most, CKB_DURABLE, &index), CKB_OK);
    cr_assert_eq(ckb_log_append(l->log, 3, NULL, 0, CKB_DURABLE, &index), CKB_OK);
    cr_assert_eq(index, 2);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    cr_assert_eq(ckb_log_next(l->plain, &entry, got, most), CKB_OK);
    cr_assert(entry.index == 1 && entry.term == 2 && entry.length == most);
    cr_assert_arr_eq(got, bytes, most);
    cr_assert_eq(ckb_log_next(l->plain, &entry, NULL, 0), CKB_OK);
    cr_assert(entry.index == 2 && entry.term == 3 && entry.length == 0);
    free(bytes);
    free(got);
    done(s, l);
}

Test(log, a_configured_maximum_is_kept)
{
    store *s = new_store();
    log_handle *l = log_handle_make(s);
    ckb_log_config config = {.max_entry_bytes = 100, .buffer_bytes = 512};
    uint8_t bytes[101] = {0};
    cr_assert_eq(ckb_log_create(s->volume, "a", 1), CKB_OK);
    cr_assert_eq(log_open_with(l, "a", &config), CKB_OK);
    cr_assert_eq(ckb_log_append(l->log, 0, bytes, 101, 0, NULL), CKB_TOOBIG);
    cr_assert_eq(ckb_log_append(l->log, 0, bytes, 100, 0, NULL), CKB_OK);
    done(s, l);
}

Test(log, append_refuses_what_is_never_right)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    ckb_entry_data entry = {1, NULL, 1};
    cr_assert_eq(ckb_log_append(l->log, 0, NULL, 1, 0, NULL), CKB_INVALID);
    cr_assert_eq(ckb_log_append(l->log, 0, "x", 1, 64, NULL), CKB_INVALID);
    cr_assert_eq(ckb_log_append_many(l->log, &entry, 0, 0, NULL), CKB_INVALID);
    cr_assert_eq(ckb_log_append_many(l->log, NULL, 1, 0, NULL), CKB_INVALID);
    assert_info(l, 1, 0, 0);
    done(s, l);
}

Test(log, append_many_is_all_or_none)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    uint32_t most = ckb_max_entry_bytes(&s->medium.geometry);
    uint8_t *bytes = malloc(most + 1);
    uint64_t first = 0;
    memset(bytes, 7, most + 1);
    ckb_entry_data three[3] = {{1, bytes, 10}, {2, bytes, most + 1}, {3, bytes, 10}};
    cr_assert_eq(ckb_log_append_many(l->log, three, 3, 0, &first), CKB_TOOBIG);
    three[1].length = most;
    cr_assert_eq(ckb_log_append_many(l->log, three, 3, 0, &first), CKB_TOOBIG, "not together in one segment");
    assert_info(l, 1, 0, 0);
    three[1].length = 0;
    cr_assert_eq(ckb_log_append_many(l->log, three, 3, CKB_DURABLE, &first), CKB_OK);
    cr_assert_eq(first, 1);
    assert_info(l, 1, 3, 3);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_info(l, 1, 3, 0);
    free(bytes);
    done(s, l);
}

Test(log, a_read_with_too_little_room_says_how_much_it_needs)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    ckb_entry entry;
    uint8_t bytes[ENTRY_BYTES_MAX];
    append(l, 1, 3);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ckb_log_read(l->plain, 2, &entry, bytes, entry_length(2) - 1), CKB_TOOBIG);
        cr_assert(entry.index == 2 && entry.length == entry_length(2));
    }
    cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, entry.length), CKB_OK, "the cursor stayed");
    cr_assert_eq(entry.index, 2);
    cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_OK);
    cr_assert_eq(entry.index, 3);
    done(s, l);
}

Test(log, what_is_appended_can_be_read_at_once_and_is_durable_after_a_commit)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append(l, 1, 10);
    assert_info(l, 1, 10, 0);
    assert_walk(l, "1-10, end");
    cr_assert_eq(ckb_log_commit(l->log, 11), CKB_END);
    cr_assert_eq(ckb_log_commit(l->log, 4), CKB_OK);
    cr_assert_geq(info_of(l).durable, 4);
    cr_assert_eq(ckb_log_commit(l->log, 10), CKB_OK);
    assert_info(l, 1, 10, 10);
    cr_assert_eq(info_of(l).groups, 1);
    append(l, 11, 12);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_info(l, 1, 10, 0);
    cr_assert_eq(ckb_log_commit(l->log, 10), CKB_OK, "what an unclean end left is synced now");
    assert_info(l, 1, 10, 10);
    done(s, l);
}

/* ----------------------------------------------------------------------------------------- >>dropping */

Test(log, purge_below_the_first_and_beyond_the_end_changes_nothing)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 10);
    cr_assert_eq(ckb_log_purge(l->log, 5), CKB_OK);
    cr_assert_eq(ckb_log_purge(l->log, 5), CKB_OK);
    cr_assert_eq(ckb_log_purge(l->log, 2), CKB_OK);
    cr_assert_eq(ckb_log_purge(l->log, 0), CKB_OK);
    cr_assert_eq(ckb_log_purge(l->log, 12), CKB_END);
    cr_assert_eq(ckb_log_purge(l->log, UINT64_MAX), CKB_END);
    assert_info(l, 5, 10, 10);
    assert_reads(l, 1, 12, "1-4 purged, 5-10, 11-12 end");
    ckb_entry entry;
    cr_assert_eq(ckb_log_read(l->plain, 1, &entry, NULL, 0), CKB_PURGED);
    cr_assert_eq(entry.index, 5, "the first that is kept");
    done(s, l);
}

Test(log, indexes_survive_a_purge_of_everything_and_remounts)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 300);
    cr_assert_eq(ckb_log_purge(l->log, 301), CKB_OK);
    for (int round = 0; round < 6; round++) {
        assert_info(l, 301, 300, 300);
        cr_assert_eq(ckb_maintain(s->volume, 20, NULL), CKB_OK);
        cr_assert_eq(round % 2 ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
        assert_reads(l, 299, 302, "299-300 purged, 301-302 end");
    }
    assert_goes_on(l, 301);
    cr_assert_leq(info_of(l).segments, 2);
    done(s, l);
}

/* A purge that ends in the segment that is being written frees nothing yet, and is for ever all the same: after
 * a power cut, a close, a clean end, and another purge on top. */
Test(log, a_purge_inside_the_open_segment_is_durable_at_once)
{
    for (uint64_t kept = 2; kept <= 11; kept += 3) {
        store *s = new_store();
        log_handle *l = log_new(s, "a", 1);
        append_durably(l, 1, 10);
        cr_assert_eq(info_of(l).segments, 1);
        cr_assert_eq(ckb_log_purge(l->log, kept), CKB_OK);
        for (int end = 0; end < 4; end++) {
            if (end == 1)
                cr_assert_eq(ckb_log_close(l->log), CKB_OK);
            cr_assert_eq(end < 2 ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
            cr_assert_eq(info_of(l).first, kept);
            cr_assert_eq(info_of(l).last, 10);
            assert_reads(l, kept - 1, kept - 1, "%llu purged", (unsigned long long)kept - 1);
            cr_assert_eq(ckb_maintain(s->volume, 20, NULL), CKB_OK);
            cr_assert_eq(info_of(l).segments, kept <= 10, "an empty log holds no segment");
        }
        assert_goes_on(l, 11);
        done(s, l);
    }
}

Test(log, truncate_above_the_last_and_below_the_first_changes_nothing)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 10);
    cr_assert_eq(ckb_log_purge(l->log, 4), CKB_OK);
    cr_assert_eq(ckb_log_truncate(l->log, 10), CKB_OK);
    cr_assert_eq(ckb_log_truncate(l->log, UINT64_MAX), CKB_OK);
    cr_assert_eq(ckb_log_truncate(l->log, 2), CKB_PURGED);
    cr_assert_eq(ckb_log_truncate(l->log, 0), CKB_PURGED);
    assert_info(l, 4, 10, 10);
    cr_assert_eq(ckb_log_truncate(l->log, 3), CKB_OK, "first - 1: nothing is kept");
    assert_info(l, 4, 3, 3);
    assert_goes_on(l, 4);
    done(s, l);
}

Test(log, truncate_is_durable_and_so_is_what_is_kept)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append(l, 1, 200);
    cr_assert_gt(info_of(l).segments, 2);
    cr_assert_eq(ckb_log_truncate(l->log, 57), CKB_OK);
    assert_info(l, 1, 57, 57);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_walk(l, "1-57, end");
    assert_check(s, "%s", "");
    assert_goes_on(l, 58);
    done(s, l);
}

Test(log, commit_is_never_a_lie_after_truncates_that_drop_more_than_is_left)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 100);
    cr_assert_eq(ckb_log_truncate(l->log, 3), CKB_OK);
    append(l, 4, 6);
    cr_assert_eq(ckb_log_commit(l->log, 6), CKB_OK);
    assert_info(l, 1, 6, 6);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_walk(l, "1-6, end");
    done(s, l);
}

Test(log, reset_goes_up_and_down)
{
    static const uint64_t nexts[] = {1000, 5, 1, UINT64_C(0x100000000), TOP, 2};
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 200);
    cr_assert_eq(ckb_log_reset(l->log, 0), CKB_INVALID);
    cr_assert_eq(ckb_log_reset(l->log, UINT64_MAX), CKB_INVALID);
    assert_info(l, 1, 200, 200);
    for (unsigned i = 0; i < sizeof(nexts) / sizeof(nexts[0]); i++) {
        cr_assert_eq(ckb_log_reset(l->log, nexts[i]), CKB_OK);
        assert_info(l, nexts[i], nexts[i] - 1, nexts[i] - 1);
        cr_assert_eq(i % 2 ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
        assert_info(l, nexts[i], nexts[i] - 1, nexts[i] - 1);
        l->salt = i % 4;
        append_durably(l, nexts[i], nexts[i]);
        cr_assert_eq(entry_at(l, nexts[i]).term, entry_term(nexts[i], i % 4));
        cr_assert_eq(info_of(l).segments, 1);
    }
    assert_check(s, "%s", "");
    done(s, l);
}

/* Segments that hold nothing any more, many and not freed yet, must not come back under lower indexes. */
static void reset_with_dead_segments(uint64_t next, bool purge, bool kill)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 600);
    cr_assert_gt(info_of(l).segments, 8);
    if (purge)
        cr_assert_eq(ckb_log_purge(l->log, 601), CKB_OK);
    cr_assert_eq(ckb_log_reset(l->log, next), CKB_OK);
    cr_assert_eq(kill ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
    assert_info(l, next, next - 1, next - 1);
    assert_reads(l, next, next + 2, "%llu-%llu end", (unsigned long long)next, (unsigned long long)next + 2);
    l->salt = 1;
    append_durably(l, next, next + 5);
    cr_assert_eq(kill ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
    assert_walk(l, "%llu-%llu', end", (unsigned long long)next, (unsigned long long)next + 5);
    cr_assert_eq(ckb_maintain(s->volume, 20, NULL), CKB_OK);
    cr_assert_eq(info_of(l).segments + stat_of(s).segments_free + stat_of(s).segments_prepared +
                     stat_of(s).segments_journal,
                 COUNT);
    assert_check(s, "%s", "");
    done(s, l);
}

Test(log, reset_leaves_nothing_of_segments_that_were_not_freed_yet)
{
    for (int ways = 0; ways < 8; ways++)
        reset_with_dead_segments(ways & 1 ? 700 : 100, ways & 2, ways & 4);
}

/* -------------------------------------------------------------------------------------------- >>indexes */

/* Appends over an index, drops at both ends, and finds all of it after clean ends and crashes. */
static void works_across(uint64_t from, uint64_t middle)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", from);
    unsigned long long a = from, m = middle;
    append_durably(l, from, middle + 100);
    assert_walk(l, "%llu-%llu, end", a, m + 100);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_reads(l, from, middle + 101, "%llu-%llu, %llu end", a, m + 100, m + 101);
    cr_assert_eq(ckb_log_truncate(l->log, middle + 1), CKB_OK);
    l->salt = 1;
    append_durably(l, middle + 2, middle + 40);
    cr_assert_eq(log_remount(l, "a"), CKB_OK);
    assert_walk(l, "%llu-%llu, %llu-%llu', end", a, m + 1, m + 2, m + 40);
    cr_assert_eq(ckb_log_purge(l->log, middle), CKB_OK);
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_walk(l, "%llu-%llu, %llu-%llu', end", m, m + 1, m + 2, m + 40);
    cr_assert_eq(ckb_log_purge(l->log, middle + 41), CKB_OK);
    cr_assert_eq(log_remount(l, "a"), CKB_OK);
    assert_goes_on(l, middle + 41);
    done(s, l);
}

Test(log, works_across_two_to_the_32)
{
    works_across((UINT64_C(1) << 32) - 10, UINT64_C(1) << 32);
}

Test(log, works_across_two_to_the_63)
{
    works_across((UINT64_C(1) << 63) - 10, UINT64_C(1) << 63);
}

Test(log, refuses_at_the_top_of_the_indexes)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", TOP - 4);
    ckb_entry_data six[6] = {{1, "x", 1}, {2, "x", 1}, {3, "x", 1}, {4, "x", 1}, {5, "x", 1}, {6, "x", 1}};
    cr_assert_eq(ckb_log_append_many(l->log, six, 6, 0, NULL), CKB_TOOBIG);
    assert_info(l, TOP - 4, TOP - 5, TOP - 5);
    append_durably(l, TOP - 4, TOP);
    for (int round = 0; round < 3; round++) {
        cr_assert_eq(ckb_log_append(l->log, 0, "x", 1, 0, NULL), CKB_TOOBIG);
        assert_walk(l, "%llu-%llu, end", (unsigned long long)TOP - 4, (unsigned long long)TOP);
        cr_assert_eq(round % 2 ? log_crash(l, "a") : log_remount(l, "a"), CKB_OK);
    }
    cr_assert_eq(ckb_log_purge(l->log, UINT64_MAX), CKB_OK, "last + 1 drops all");
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    cr_assert_eq(info_of(l).first, UINT64_MAX);
    cr_assert_eq(ckb_log_append(l->log, 0, "x", 1, 0, NULL), CKB_TOOBIG);
    cr_assert_eq(ckb_log_truncate(l->log, TOP - 1), CKB_PURGED);
    cr_assert_eq(ckb_log_reset(l->log, 1), CKB_OK);
    assert_goes_on(l, 1);
    done(s, l);
}

/* -------------------------------------------------------------------------------------------- >>cursors */

Test(log, a_cursor_finds_what_is_appended_behind_it)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    ckb_entry entry;
    uint8_t bytes[ENTRY_BYTES_MAX];
    for (uint64_t index = 1; index < 300; index++) {
        cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_END);
        cr_assert_eq(entry.index, index);
        append(l, index, index);
        cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_OK);
        cr_assert_str_eq(entry_kind(&entry, bytes), "");
        cr_assert_eq(entry.index, index);
    }
    done(s, l);
}

Test(log, a_cursor_that_a_truncate_overtakes_reads_what_comes_after)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    ckb_entry entry;
    uint8_t bytes[ENTRY_BYTES_MAX];
    append(l, 1, 100);
    assert_walk(l, "1-100, end");
    ckb_log_seek(l->plain, 50);
    cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_OK);
    cr_assert_eq(ckb_log_truncate(l->log, 30), CKB_OK);
    cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_END);
    cr_assert_eq(entry.index, 51);
    l->salt = 1;
    append(l, 31, 60);
    cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_OK);
    cr_assert_eq(entry.index, 51);
    cr_assert_str_eq(entry_kind(&entry, bytes), "'", "the new one");
    done(s, l);
}

Test(log, a_cursor_that_a_purge_overtakes_is_told_where_to_go_on)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    ckb_entry entry;
    uint8_t bytes[ENTRY_BYTES_MAX];
    append(l, 1, 200);
    assert_reads(l, 10, 10, "10");
    cr_assert_eq(ckb_log_purge(l->log, 150), CKB_OK);
    cr_assert_eq(ckb_maintain(s->volume, 50, NULL), CKB_OK);
    for (int i = 0; i < 2; i++) {
        cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_PURGED);
        cr_assert_eq(entry.index, 150);
    }
    ckb_log_seek(l->plain, entry.index);
    cr_assert_eq(ckb_log_next(l->plain, &entry, bytes, sizeof(bytes)), CKB_OK);
    cr_assert_eq(entry.index, 150);
    done(s, l);
}

Test(log, a_cursor_across_a_reset_reads_the_new_entries)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 100);
    assert_reads(l, 50, 50, "50");
    cr_assert_eq(ckb_log_reset(l->log, 40), CKB_OK);
    assert_reads(l, 51, 51, "51 end");
    l->salt = 1;
    append_durably(l, 40, 60);
    assert_reads(l, 39, 61, "39 purged, 40-60', 61 end");
    done(s, l);
}

Test(log, cursor_open_refuses_what_is_never_right)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    ckb_log_cursor *cursor;
    cr_assert_eq(ckb_log_cursor_open(l->log, 1, l->plain_memory, l->cursor_bytes, &cursor), CKB_INVALID);
    cr_assert_null(cursor);
    cr_assert_eq(ckb_log_cursor_open(l->log, 0, l->plain_memory, 16, &cursor), CKB_INVALID);
    done(s, l);
}

/* ---------------------------------------------------------------------------------------------- >>space */

/* Appends until the log has no room; returns the last index. */
static uint64_t append_until_full(log_handle *l, uint64_t from)
{
    uint8_t bytes[ENTRY_BYTES_MAX];
    for (uint64_t index = from;; index++) {
        entry_fill(bytes, index, l->salt);
        ckb_log_info before = info_of(l);
        int status = ckb_log_append(l->log, entry_term(index, l->salt), bytes, entry_length(index), 0, NULL);
        if (status == CKB_OK)
            continue;
        cr_assert_eq(status, CKB_NOSPACE);
        ckb_log_info after = info_of(l);
        cr_assert(after.first == before.first && after.last == before.last && after.segments == before.segments,
                  "nothing changed");
        return index - 1;
    }
}

Test(log, a_full_volume_takes_reads_and_truncates_and_comes_back_by_a_truncate)
{
    store *s = log_store_make(BYTES, 10, SMALL_UNIT);
    log_handle *l = log_new(s, "a", 1);
    uint64_t last = append_until_full(l, 1);
    commit(l);
    assert_walk(l, "1-%llu, end", (unsigned long long)last);
    cr_assert_eq(ckb_log_truncate(l->log, 10), CKB_OK);
    l->salt = 1;
    uint64_t again = append_until_full(l, 11);
    cr_assert_gt(again, last / 2);
    cr_assert_eq(log_remount(l, "a"), CKB_OK);
    assert_walk(l, "1-10, 11-%llu', end", (unsigned long long)again);
    done(s, l);
}

Test(log, a_full_volume_comes_back_by_a_purge)
{
    store *s = log_store_make(BYTES, 10, SMALL_UNIT);
    log_handle *l = log_new(s, "a", 1);
    uint64_t first = 1, last = 0;
    for (int round = 0; round < 5; round++) {
        l->salt = (uint64_t)round % 4;
        uint64_t now = append_until_full(l, last + 1);
        cr_assert_gt(now, last);
        last = now;
        first += (last - first) / 2;
        cr_assert_eq(ckb_log_purge(l->log, first), CKB_OK);
        cr_assert_eq(log_crash(l, "a"), CKB_OK);
        cr_assert_leq(info_of(l).last, last);
        last = info_of(l).last;
        cr_assert_eq(info_of(l).first, first);
    }
    assert_check(s, "%s", "");
    done(s, l);
}

Test(log, a_full_volume_comes_back_by_a_reset_and_by_deleting_a_log)
{
    store *s = log_store_make(BYTES, 10, SMALL_UNIT);
    log_handle *a = log_new(s, "a", 1), *b = log_new(s, "b", 1);
    uint64_t first_fill = append_until_full(a, 1);
    cr_assert_eq(ckb_log_append(b->log, 0, "x", 1, 0, NULL), CKB_NOSPACE);
    cr_assert_eq(ckb_log_reset(a->log, 1), CKB_OK);
    uint64_t other = append_until_full(b, 1);
    cr_assert_geq(other, first_fill / 2);
    cr_assert_eq(ckb_log_close(b->log), CKB_OK);
    cr_assert_eq(ckb_log_delete(s->volume, "b"), CKB_OK);
    cr_assert_geq(append_until_full(a, 1), first_fill / 2);
    log_handle_free(b);
    done(s, a);
}

Test(log, max_segments_bounds_a_log)
{
    store *s = new_store();
    log_handle *l = log_handle_make(s);
    ckb_log_config config = {.max_segments = 3};
    cr_assert_eq(ckb_log_create(s->volume, "a", 1), CKB_OK);
    cr_assert_eq(log_open_with(l, "a", &config), CKB_OK);
    uint64_t last = append_until_full(l, 1);
    cr_assert_eq(info_of(l).segments, 3);
    cr_assert_gt(stat_of(s).segments_free, 20);
    cr_assert_eq(ckb_log_purge(l->log, last / 2), CKB_OK);
    append_durably(l, last + 1, last + 5);
    cr_assert_eq(ckb_log_close(l->log), CKB_OK);
    config.max_segments = 1;
    cr_assert_eq(log_open_with(l, "a", &config), CKB_NOSPACE);
    assert_text(&l->fault, "invalid argument 0: 1, expected 3");
    config.max_segments = 0;
    cr_assert_eq(log_open_with(l, "a", &config), CKB_OK);
    assert_walk(l, "%llu-%llu, end", (unsigned long long)last / 2, (unsigned long long)last + 5);
    done(s, l);
}

/* The log cannot go on in a segment that is full, or that a truncate or a crash ended. */
Test(log, a_log_of_one_segment_goes_on_when_it_is_purged_empty)
{
    store *s = new_store();
    log_handle *l = log_handle_make(s);
    ckb_log_config config = {.max_segments = 1};
    uint64_t last = 0;
    cr_assert_eq(ckb_log_create(s->volume, "a", 1), CKB_OK);
    for (int end = 0; end < 3; end++) {
        cr_assert_eq(log_open_with(l, "a", &config), CKB_OK);
        last = append_until_full(l, last + 1);
        if (end == 1)
            cr_assert_eq(ckb_log_truncate(l->log, last -= 4), CKB_OK);
        commit(l);
        if (end == 2) {
            cr_assert_eq(store_mount(s), CKB_OK);
            cr_assert_eq(log_open_with(l, "a", &config), CKB_OK);
        }
        cr_assert_eq(ckb_log_purge(l->log, last), CKB_OK);
        cr_assert_eq(append_until_full(l, last + 1), last, "one entry is left");
        cr_assert_eq(ckb_log_purge(l->log, last + 1), CKB_OK);
        append_durably(l, last + 1, last + 20);
        last += 20;
        cr_assert_eq(info_of(l).segments, 1);
        cr_assert_eq(ckb_log_close(l->log), CKB_OK);
    }
    done(s, l);
}

static int erase_finds_no_space(void *context, uint32_t segment)
{
    (void)context;
    (void)segment;
    return CKB_NOSPACE;
}

Test(log, a_commit_after_an_unclean_end_needs_no_space)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 10);
    s->medium.erase = erase_finds_no_space;
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_info(l, 1, 10, 0);
    cr_assert_eq(ckb_log_purge(l->log, 5), CKB_NOSPACE, "the journal cannot move");
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    cr_assert_eq(ckb_log_commit(l->log, 10), CKB_OK);
    assert_info(l, 1, 10, 10);
    cr_assert_eq(ckb_log_append(l->log, 1, "x", 1, CKB_DURABLE, NULL), CKB_NOSPACE);
    assert_info(l, 1, 10, 10);
    assert_walk(l, "1-10, end");
    s->medium.erase = store_nothing;
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_goes_on(l, 11);
    done(s, l);
}

/* ------------------------------------------------------------------------------------------- >>read-only */

Test(log, a_volume_mounted_for_reading_takes_no_change)
{
    store *s = new_store();
    log_handle *l = log_new(s, "a", 1);
    append_durably(l, 1, 10);
    s->config.read_only = true;
    cr_assert_eq(log_crash(l, "a"), CKB_OK);
    assert_walk(l, "1-10, end");
    cr_assert_eq(ckb_log_append(l->log, 0, "x", 1, 0, NULL), CKB_READONLY);
    cr_assert_eq(ckb_log_commit(l->log, 10), CKB_READONLY);
    cr_assert_eq(ckb_log_truncate(l->log, 5), CKB_READONLY);
    cr_assert_eq(ckb_log_purge(l->log, 5), CKB_READONLY);
    cr_assert_eq(ckb_log_reset(l->log, 5), CKB_READONLY);
    cr_assert_eq(ckb_log_create(s->volume, "b", 1), CKB_READONLY);
    cr_assert_eq(ckb_log_close(l->log), CKB_OK);
    cr_assert_eq(ckb_log_delete(s->volume, "a"), CKB_READONLY);
    done(s, l);
}
