/* The rows L1 to L10 of the recovery table, and what the journal has to say of logs: each test scripts what is
 * on the medium and asserts what the mount says of it, to the letter. */
#define _GNU_SOURCE
#include "log_store.h"

/* Segments without a SEAL: only the journal and the records tell where one ends. */
enum { SMALL_BYTES = 2048, SMALL_COUNT = 48, SMALL_UNIT = 64 };

/* Log "a" of some segments; those of its entries that begin one. */
typedef struct chain {
    store *s;
    log_handle *a;
    uint64_t last;
    uint64_t begins[8];  /* index of the first entry of each segment */
    uint32_t segment[8]; /* and the segment */
    uint32_t count;
} chain;

/* Notes where the entries lie. */
static void chain_look(chain *c)
{
    c->count = 0;
    c->last = info_of(c->a).last;
    for (uint64_t index = info_of(c->a).first; index <= c->last; index++) {
        uint32_t segment = entry_at(c->a, index).segment;
        if (c->count > 0 && c->segment[c->count - 1] == segment)
            continue;
        cr_assert_lt(c->count, 8);
        c->begins[c->count] = index;
        c->segment[c->count++] = segment;
    }
}

/* A log that has just begun its `segments`th segment; nothing of it is known to be durable. */
static chain chain_new(uint64_t segment_bytes, uint32_t segments)
{
    chain c = {.s = log_store_make(segment_bytes, SMALL_COUNT, SMALL_UNIT)};
    c.a = log_new(c.s, "a", 1);
    append_until(c.a, 1, segments);
    chain_look(&c);
    return c;
}

/* The same, and all of it is durable, which entries behind it show. */
static chain chain_durable(uint64_t segment_bytes, uint32_t segments)
{
    chain c = chain_new(segment_bytes, segments);
    commit(c.a);
    append_durably(c.a, c.last + 1, c.last + 1);
    chain_look(&c);
    return c;
}

static void chain_free(chain *c)
{
    log_handle_free(c->a);
    store_free(c->s);
}

static unsigned long long number(uint64_t value)
{
    return (unsigned long long)value;
}

static void damage_entry(chain *c, const ckb_entry *entry)
{
    *at(c->s, entry->segment, entry->offset + 9) ^= 1; /* its header: length */
}

/* ---------------------------------------------------------------------------------------------- >>chains */

Test(log_recovery, L1_segments_that_name_each_other_are_read_in_order)
{
    chain c = chain_durable(SMALL_BYTES, 4);
    cr_assert_eq(ckb_log_purge(c.a->log, 3), CKB_OK);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(info_of(c.a).first, 3, "the first index is the journal's");
    cr_assert_eq(info_of(c.a).segments, 4);
    cr_assert_eq(stat_of(c.s).damage, 0);
    cr_assert_eq(stat_of(c.s).dropped_tails, 0);
    assert_walk(c.a, "3-%llu, end", number(c.last));
    assert_reads(c.a, 1, c.last, "1-2 purged, 3-%llu", number(c.last));
    assert_check(c.s, "%s", "");
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L1_purged_segments_that_were_not_freed_yet_are_freed)
{
    chain c = chain_durable(SMALL_BYTES, 4);
    cr_assert_eq(ckb_log_purge(c.a->log, c.begins[2]), CKB_OK);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(info_of(c.a).segments, 2);
    uint32_t free = stat_of(c.s).segments_free;
    cr_assert_eq(ckb_maintain(c.s->volume, 1, NULL), CKB_OK);
    cr_assert_eq(stat_of(c.s).segments_free, free + 2);
    assert_walk(c.a, "%llu-%llu, end", number(c.begins[2]), number(c.last));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L2_segments_of_a_deleted_log_are_freed)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    cr_assert_eq(ckb_log_close(c.a->log), CKB_OK);
    cr_assert_eq(ckb_log_delete(c.s->volume, "a"), CKB_OK);
    cr_assert_eq(log_crash(c.a, "a"), CKB_NOTFOUND);
    cr_assert_eq(ckb_maintain(c.s->volume, 1, NULL), CKB_OK);
    ckb_stat stat = stat_of(c.s);
    cr_assert_eq(stat.segments_free, SMALL_COUNT - stat.segments_journal);
    cr_assert_eq(stat.damage, 0);
    assert_check(c.s, "%s", "");
    cr_assert_eq(ckb_log_create(c.s->volume, "a", 0), CKB_OK);
    cr_assert_eq(log_open(c.a, "a"), CKB_OK);
    assert_goes_on(c.a, 1);
    chain_free(&c);
}

Test(log_recovery, L2_segments_that_a_reset_left_are_void)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    cr_assert_eq(ckb_log_reset(c.a->log, 5), CKB_OK);
    for (int mounts = 0; mounts < 3; mounts++) {
        cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
        cr_assert_eq(info_of(c.a).first, 5);
        cr_assert_eq(info_of(c.a).segments, mounts > 1);
        assert_reads(c.a, 4, 6, mounts > 1 ? "4 purged, 5', 6 end" : "4 purged, 5-6 end");
        if (mounts == 1)
            assert_goes_on(c.a, 5);
    }
    cr_assert_eq(ckb_maintain(c.s->volume, 1, NULL), CKB_OK);
    assert_check(c.s, "%s", "");
    chain_free(&c);
}

/* Which entry of segment n is its last one. */
static ckb_entry last_of(const chain *c, uint32_t n)
{
    return entry_at(c->a, n + 1 < c->count ? c->begins[n + 1] - 1 : c->last);
}

Test(log_recovery, L3_what_was_never_durable_is_torn_there_and_free_behind_it)
{
    chain c = chain_new(SMALL_BYTES, 3);
    ckb_entry torn = last_of(&c, 0);
    damage_entry(&c, &torn);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c.s).damage, 0);
    cr_assert_eq(stat_of(c.s).dropped_tails, 2);
    assert_last(c.s, "dropped 1856 bytes at segment %u offset 64: never made durable", c.segment[1]);
    assert_walk(c.a, "1-%llu, end", number(torn.index - 1));
    assert_check(c.s, "dropped %llu bytes at segment %u offset %llu: never made durable",
                 number(stat_of(c.s).dropped_bytes - 1856), c.segment[0], number(torn.offset));
    assert_goes_on(c.a, torn.index);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_walk(c.a, "1-%llu, %llu', end", number(torn.index - 1), number(torn.index));
    chain_free(&c);
}

/* One entry is damaged: it alone is missing, and everybody says so. */
static void assert_one_lost(chain *c, const ckb_entry *lost)
{
    damage_entry(c, lost);
    cr_assert_eq(log_crash(c->a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c->s).dropped_tails, 0);
    assert_damage(c->s, "entry %llu, segment %u offset %llu: does not verify", number(lost->index),
                  lost->segment, number(lost->offset));
    assert_walk(c->a, "1-%llu, corrupt", number(lost->index - 1));
    assert_read_fault(c->a, "entry %llu, segment %u offset %llu: does not verify", number(lost->index),
                      lost->segment, number(lost->offset));
    assert_salvage(c->a, "1-%llu, %llu-%llu, end", number(lost->index - 1), number(lost->index + 1),
                   number(c->last));
    assert_reads(c->a, 1, c->last, "1-%llu, %llu corrupt, %llu-%llu", number(lost->index - 1),
                 number(lost->index), number(lost->index + 1), number(c->last));
    assert_check(c->s, "a: entry %llu, segment %u offset %llu: does not verify", number(lost->index),
                 lost->segment, number(lost->offset));
    assert_goes_on(c->a, c->last + 1);
}

Test(log_recovery, L4_what_entries_behind_it_show_to_be_durable_is_damage)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    ckb_entry lost = last_of(&c, 1);
    assert_one_lost(&c, &lost);
    chain_free(&c);
}

Test(log_recovery, L4_in_the_middle_of_a_segment)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    ckb_entry lost = entry_at(c.a, c.begins[1] + 2);
    assert_one_lost(&c, &lost);
    chain_free(&c);
}

Test(log_recovery, L4_a_damaged_payload_is_named_by_the_mount_only_where_the_records_were_read)
{
    chain c = chain_durable(4096, 3);
    ckb_entry lost = entry_at(c.a, c.begins[1] + 2);
    cr_assert_gt(lost.length, 0);
    *at(c.s, lost.segment, lost.offset + 40) ^= 1;
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c.s).damage, 0, "the SEAL says where the segment ends");
    assert_walk(c.a, "1-%llu, corrupt", number(lost.index - 1));
    assert_salvage(c.a, "1-%llu, %llu-%llu, end", number(lost.index - 1), number(lost.index + 1),
                   number(c.last));
    assert_check(c.s, "a: entry %llu, segment %u offset %llu: does not verify", number(lost.index),
                 lost.segment, number(lost.offset));
    chain_free(&c);
}

/* The header of segment n is gone. */
static uint64_t lose(chain *c, uint32_t n)
{
    uint64_t epoch = epoch_of(c->s, c->segment[n]);
    memset(at(c->s, c->segment[n], 0), 0, SMALL_UNIT);
    return epoch;
}

Test(log_recovery, L5_a_predecessor_that_is_not_there_is_a_hole)
{
    chain c = chain_durable(SMALL_BYTES, 4);
    uint64_t epoch = lose(&c, 1);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_damage(c.s, "segment %u: in use under epoch %llu, its header is missing or damaged (epoch 0 found)",
                  c.segment[1], number(epoch));
    assert_last(c.s, "entries %llu to %llu are lost: segment %u follows one of epoch %llu that is not there",
                number(c.begins[1]), number(c.begins[2] - 1), c.segment[2], number(epoch));
    assert_walk(c.a, "1-%llu, corrupt", number(c.begins[1] - 1));
    assert_read_fault(c.a, "entries %llu to %llu are lost", number(c.begins[1]), number(c.begins[2] - 1));
    assert_salvage(c.a, "1-%llu, %llu-%llu, end", number(c.begins[1] - 1), number(c.begins[2]), number(c.last));
    assert_reads(c.a, 1, c.last, "1-%llu, %llu-%llu corrupt, %llu-%llu", number(c.begins[1] - 1),
                 number(c.begins[1]), number(c.begins[2] - 1), number(c.begins[2]), number(c.last));
    assert_check(c.s,
                 "segment %u: in use under epoch %llu, its header is missing or damaged (epoch 0 found); "
                 "a: entries %llu to %llu are lost: segment %u follows one of epoch %llu that is not there",
                 c.segment[1], number(epoch), number(c.begins[1]), number(c.begins[2] - 1), c.segment[2],
                 number(epoch));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L5_the_first_segment_is_lost)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    uint64_t epoch = lose(&c, 0);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_last(c.s, "entries 1 to %llu are lost: segment %u follows one of epoch %llu that is not there",
                number(c.begins[1] - 1), c.segment[1], number(epoch));
    assert_walk(c.a, "corrupt");
    assert_read_fault(c.a, "entries 1 to %llu are lost", number(c.begins[1] - 1));
    assert_salvage(c.a, "%llu-%llu, end", number(c.begins[1]), number(c.last));
    assert_check(c.s,
                 "segment %u: in use under epoch %llu, its header is missing or damaged (epoch 0 found); "
                 "a: entries 1 to %llu are lost: segment %u follows one of epoch %llu that is not there",
                 c.segment[0], number(epoch), number(c.begins[1] - 1), c.segment[1], number(epoch));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L5_two_segments_in_a_row_are_lost)
{
    chain c = chain_durable(SMALL_BYTES, 5);
    lose(&c, 1);
    uint64_t epoch = lose(&c, 2);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_last(c.s, "entries %llu to %llu are lost: segment %u follows one of epoch %llu that is not there",
                number(c.begins[1]), number(c.begins[3] - 1), c.segment[3], number(epoch));
    assert_salvage(c.a, "1-%llu, %llu-%llu, end", number(c.begins[1] - 1), number(c.begins[3]), number(c.last));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L5_a_lost_segment_of_which_nothing_is_kept_is_no_hole)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    cr_assert_eq(ckb_log_purge(c.a->log, c.begins[1]), CKB_OK);
    lose(&c, 0);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c.s).damage, 1, "the segment, and no entry");
    assert_walk(c.a, "%llu-%llu, end", number(c.begins[1]), number(c.last));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L6_a_lost_segment_newer_than_all_there_are_may_have_held_the_end)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    char expected[200];
    uint64_t epoch = lose(&c, 2);
    cr_assert_eq(log_crash(c.a, "a"), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "entries from %llu on may be lost with segment %u (epoch %llu)",
             number(c.begins[2]), c.segment[2], number(epoch));
    assert_text(&c.a->fault, expected);
    ckb_log_config config = {.salvage = true};
    cr_assert_eq(log_open_with(c.a, "a", &config), CKB_OK);
    cr_assert(info_of(c.a).end_lost);
    assert_walk(c.a, "1-%llu, end", number(c.begins[2] - 1));
    cr_assert_eq(ckb_log_append(c.a->log, 0, "x", 1, 0, NULL), CKB_READONLY);
    cr_assert_eq(ckb_log_commit(c.a->log, 1), CKB_READONLY);
    cr_assert_eq(ckb_log_truncate(c.a->log, 1), CKB_READONLY);
    cr_assert_eq(ckb_log_purge(c.a->log, 2), CKB_READONLY);
    cr_assert_eq(ckb_log_reset(c.a->log, 2), CKB_READONLY);
    assert_check(c.s, "segment %u: in use under epoch %llu, its header is missing or damaged (epoch 0 found)",
                 c.segment[2], number(epoch));
    chain_free(&c);
}

/* Another log beside "a", whose entries fill some segments. */
static log_handle *beside(chain *c, uint32_t segments)
{
    log_handle *b = log_new(c->s, "b", 1);
    append_until(b, 1, segments);
    commit(b);
    append_durably(b, info_of(b).last + 1, info_of(b).last + 1);
    return b;
}

/* Opens "a", which must say that its end may be lost with this segment. */
static void assert_a_blames(chain *c, uint64_t first_lost, uint32_t segment, uint64_t epoch)
{
    char expected[200];
    cr_assert_eq(log_open(c->a, "a"), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "entries from %llu on may be lost with segment %u (epoch %llu)",
             number(first_lost), segment, number(epoch));
    assert_text(&c->a->fault, expected);
}

Test(log_recovery, L6_a_lost_segment_that_another_log_names_is_not_the_end_of_this_one)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    log_handle *b = beside(&c, 3);
    uint32_t lost = entry_at(b, 20).segment, newest = entry_at(b, info_of(b).last).segment;
    cr_assert_neq(lost, newest);
    cr_assert_gt(epoch_of(c.s, lost), epoch_of(c.s, c.segment[1]));
    memset(at(c.s, lost, 0), 0, SMALL_UNIT);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_walk(c.a, "1-%llu, end", number(c.last));
    cr_assert_eq(log_open(b, "b"), CKB_OK, "it has a hole, and its end");
    assert_goes_on(c.a, c.last + 1);
    /* Nobody names the newest one: it may be anybody's. */
    uint64_t epoch = epoch_of(c.s, newest);
    memset(at(c.s, newest, 0), 0, SMALL_UNIT);
    cr_assert_eq(store_mount(c.s), CKB_OK);
    cr_assert_eq(log_open(b, "b"), CKB_CORRUPT);
    cr_assert_eq(log_open(c.a, "a"), CKB_OK, "its newest segment is newer by now");
    cr_assert_gt(epoch_of(c.s, entry_at(c.a, c.last + 1).segment), epoch);
    log_handle_free(b);
    chain_free(&c);
}

Test(log_recovery, L6_a_log_that_was_purged_empty_has_lost_nothing_with_a_segment_older_than_that)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    log_handle *b = beside(&c, 2);
    uint32_t lost = entry_at(b, info_of(b).last).segment;
    append_until(c.a, c.last + 1, 4); /* now a has newer segments than b */
    commit(c.a);
    c.last = info_of(c.a).last;
    cr_assert_eq(ckb_log_purge(c.a->log, c.last + 1), CKB_OK);
    cr_assert_eq(log_remount(c.a, "a"), CKB_OK);
    cr_assert_eq(ckb_maintain(c.s->volume, 100, NULL), CKB_OK);
    cr_assert_eq(info_of(c.a).segments, 0);
    memset(at(c.s, lost, 0), 0, SMALL_UNIT);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c.s).segments_lost, 1);
    cr_assert_eq(log_open(b, "b"), CKB_CORRUPT);
    assert_goes_on(c.a, c.last + 1);
    log_handle_free(b);
    chain_free(&c);
}

/* Where nobody knows whose the lost segment was, a log does not give an index again that it may have given. */
Test(log_recovery, L6_a_log_that_was_purged_empty_may_have_gone_on_in_a_lost_segment_newer_than_that)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    cr_assert_eq(ckb_log_purge(c.a->log, c.last + 1), CKB_OK);
    cr_assert_eq(ckb_log_close(c.a->log), CKB_OK);
    log_handle *b = beside(&c, 1);
    uint32_t lost = entry_at(b, 1).segment;
    uint64_t epoch = epoch_of(c.s, lost);
    memset(at(c.s, lost, 0), 0, SMALL_UNIT);
    cr_assert_eq(store_mount(c.s), CKB_OK);
    assert_a_blames(&c, c.last + 1, lost, epoch);
    log_handle_free(b);
    chain_free(&c);
}

/* Brings back a segment that a truncate freed, in place of a prepared one that nobody used. */
static void bring_back(store *s, uint32_t segment, const uint8_t *bytes)
{
    uint32_t prepared = CKB_NO_SEGMENT;
    memcpy(at(s, segment, 0), bytes, SMALL_BYTES);
    for (uint32_t i = stat_of(s).segments_journal; i < SMALL_COUNT && prepared == CKB_NO_SEGMENT; i++)
        if (memcmp(at(s, i, 0), "CHUNKB\r\n", 8) == 0 && epoch_of(s, i) > epoch_of(s, segment) &&
            !record_is(s, i, SMALL_UNIT, 1))
            prepared = i;
    cr_assert_neq(prepared, CKB_NO_SEGMENT);
    forge_fact(s, 2, prepared, segment, epoch_of(s, segment), 0);
}

Test(log_recovery, L7_of_two_segments_that_claim_one_place_the_newer_counts)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    uint8_t old[SMALL_BYTES];
    memcpy(old, at(c.s, c.segment[1], 0), SMALL_BYTES);
    cr_assert_eq(ckb_log_truncate(c.a->log, c.begins[1] - 1), CKB_OK);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    c.a->salt = 1;
    append_durably(c.a, c.begins[1], c.begins[1] + 2);
    uint32_t newer = entry_at(c.a, c.begins[1]).segment;
    cr_assert_neq(newer, c.segment[1]);
    cr_assert_eq(ckb_maintain(c.s->volume, 10, NULL), CKB_OK);
    bring_back(c.s, c.segment[1], old);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_damage(c.s, "segment %u and segment %u both claim place 2 of a log", newer, c.segment[1]);
    assert_walk(c.a, "1-%llu, %llu-%llu', end", number(c.begins[1] - 1), number(c.begins[1]),
                number(c.begins[1] + 2));
    assert_check(c.s, "segment %u and segment %u both claim place 2 of a log", c.segment[1], newer);
    assert_goes_on(c.a, c.begins[1] + 3);
    chain_free(&c);
}

/* Damages the START of segment n. */
static void behead(chain *c, uint32_t n)
{
    *at(c->s, c->segment[n], SMALL_UNIT + 30) ^= 1;
}

Test(log_recovery, L8_a_segment_without_its_start_is_known_by_its_successor)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    behead(&c, 1);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_damage(c.s, "entry %llu, segment %u offset 64: does not verify", number(c.begins[1]), c.segment[1]);
    cr_assert_eq(stat_of(c.s).dropped_tails, 0);
    assert_walk(c.a, "1-%llu, end", number(c.last));
    assert_check(c.s, "segment %u offset 64: 64 bytes of records do not verify", c.segment[1]);
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L8_a_segment_with_marks_of_its_own_is_known_by_its_successor_too)
{
    chain c = chain_new(SMALL_BYTES, 2);
    append_durably(c.a, c.last + 1, c.last + 1);
    append_durably(c.a, c.last + 2, c.last + 2);
    append_until(c.a, c.last + 3, 3);
    commit(c.a);
    chain_look(&c);
    behead(&c, 1);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_damage(c.s, "segment %u offset 64: 64 bytes of records do not verify", c.segment[1]);
    assert_walk(c.a, "1-%llu, end", number(c.last));
    assert_check(c.s, "segment %u offset 64: 64 bytes of records do not verify", c.segment[1]);
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L8_a_start_that_was_never_durable_is_torn)
{
    chain c = chain_new(SMALL_BYTES, 3);
    behead(&c, 1);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c.s).damage, 0);
    cr_assert_eq(stat_of(c.s).dropped_tails, 1, "the last segment is not on the medium yet");
    assert_last(c.s, "dropped 1856 bytes at segment %u offset 64: never made durable", c.segment[1]);
    assert_walk(c.a, "1-%llu, end", number(c.begins[1] - 1));
    assert_goes_on(c.a, c.begins[1]);
    chain_free(&c);
}

Test(log_recovery, L8_the_newest_segment_without_its_start_may_have_held_the_end)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    char expected[200];
    behead(&c, 2);
    cr_assert_eq(log_crash(c.a, "a"), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "entries from %llu on may be lost with segment %u (epoch %llu)",
             number(c.begins[2]), c.segment[2], number(epoch_of(c.s, c.segment[2])));
    assert_text(&c.a->fault, expected);
    assert_damage(c.s, "segment %u offset 64: 64 bytes of records do not verify", c.segment[2]);
    assert_check(c.s, "segment %u offset 64: 64 bytes of records do not verify", c.segment[2]);
    chain_free(&c);
}

Test(log_recovery, L9_an_index_that_does_not_follow_is_named_with_both_values)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    ckb_entry entry = entry_at(c.a, c.begins[1] + 2), next = entry_at(c.a, c.begins[1] + 3);
    put_little(at(c.s, entry.segment, entry.offset + 24), 8, entry.index + 1);
    reseal(c.s, entry.segment, entry.offset, false);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_damage(c.s, "segment %u offset %llu: entry index %llu, expected %llu", entry.segment,
                  number(entry.offset), number(entry.index + 1), number(entry.index));
    assert_walk(c.a, "1-%llu, corrupt", number(entry.index - 1));
    assert_read_fault(c.a, "entries %llu to %llu are lost", number(entry.index), number(entry.index));
    assert_check(c.s,
                 "a: segment %u offset %llu: entry index %llu, expected %llu; "
                 "a: segment %u offset %llu: entry index %llu, expected %llu",
                 entry.segment, number(entry.offset), number(entry.index + 1), number(entry.index),
                 next.segment, number(next.offset), number(next.index), number(next.index + 1));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, L10_where_no_last_entry_is_the_records_are_read)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    ckb_entry last = entry_at(c.a, c.last);
    cr_assert_eq(ckb_unmount(c.s->volume), CKB_OK);
    fact_place place = find_fact(c.s, 2, last.segment);
    uint64_t extent = get_little(place.fact + 16, 8);
    cr_assert_eq(extent >> 30 & 0x3FFFFFFF, last.offset / 8);
    forge_fact(c.s, 2, last.segment, last.segment, epoch_of(c.s, last.segment), extent - (UINT64_C(1) << 30));
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_damage(c.s, "entry %llu, segment %u offset %llu: does not verify", number(c.begins[1]), last.segment,
                  number(last.offset - 8));
    assert_walk(c.a, "1-%llu, end", number(c.last));
    assert_check(c.s, "%s", "");
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

/* Nobody knows how many entries the damage took: an append must not give their indexes again. */
static void assert_end_lost(chain *c, const ckb_entry *lost)
{
    char expected[200];
    ckb_log_config config = {.salvage = true};
    damage_entry(c, lost);
    cr_assert_eq(log_crash(c->a, "a"), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "entries from %llu on may be lost with segment %u (epoch %llu)",
             number(lost->index), lost->segment, number(epoch_of(c->s, lost->segment)));
    assert_text(&c->a->fault, expected);
    assert_check(c->s, "a: entry %llu, segment %u offset %llu: does not verify", number(lost->index),
                 lost->segment, number(lost->offset));
    cr_assert_eq(log_open_with(c->a, "a", &config), CKB_OK);
    assert_walk(c->a, "1-%llu, end", number(lost->index - 1));
}

Test(log_recovery, L10_a_last_entry_that_is_damaged_in_a_parked_segment_is_not_given_again)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    ckb_entry last = entry_at(c.a, c.last);
    cr_assert_eq(ckb_unmount(c.s->volume), CKB_OK);
    assert_end_lost(&c, &last);
    chain_free(&c);
}

Test(log_recovery, L10_nor_one_in_a_segment_that_a_truncate_ended)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    ckb_entry last = entry_at(c.a, c.begins[1] - 2);
    cr_assert_eq(ckb_log_truncate(c.a->log, last.index), CKB_OK);
    assert_end_lost(&c, &last);
    chain_free(&c);
}

Test(log_recovery, L10_nor_one_in_a_segment_that_was_continued)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    ckb_entry last = entry_at(c.a, c.last);
    cr_assert_eq(log_remount(c.a, "a"), CKB_OK);
    append(c.a, c.last + 1, c.last + 1); /* resumed, and nothing written yet */
    assert_end_lost(&c, &last);
    chain_free(&c);
}

Test(log_recovery, L10_nor_one_in_a_segment_with_a_seal)
{
    chain c = chain_new(4096, 2);
    ckb_entry last = entry_at(c.a, c.begins[1] - 1);
    commit(c.a);
    cr_assert_eq(ckb_log_truncate(c.a->log, last.index), CKB_OK);
    assert_end_lost(&c, &last);
    chain_free(&c);
}

/* ---------------------------------------------------------------------------------------------- >>tails */

Test(log_recovery, a_stale_tail_behind_a_truncate_does_not_come_back)
{
    chain c = chain_durable(SMALL_BYTES, 1);
    append_durably(c.a, c.last + 1, 8);
    cr_assert_eq(ckb_log_truncate(c.a->log, 4), CKB_OK);
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_walk(c.a, "1-4, end");
    assert_reads(c.a, 4, 6, "4, 5-6 end");
    c.a->salt = 1;
    append_durably(c.a, 5, 6); /* shorter than what was there */
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_walk(c.a, "1-4, 5-6', end");
    cr_assert_eq(stat_of(c.s).damage, 0);
    assert_check(c.s, "%s", "");
    chain_free(&c);
}

Test(log_recovery, a_truncate_that_the_journal_lost_leaves_the_log_as_it_was)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    cr_assert_eq(ckb_log_truncate(c.a->log, c.begins[1] + 1), CKB_OK);
    fact_place place = find_fact(c.s, 2, c.segment[1]);
    *at(c.s, place.segment, place.record + 30) ^= 4; /* the last batch of facts */
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(stat_of(c.s).dropped_tails, 1, "and it is said");
    assert_last(c.s, "dropped 128 bytes at segment %u offset %llu: never made durable", place.segment,
                number(place.record));
    assert_walk(c.a, "1-%llu, end", number(c.last));
    assert_goes_on(c.a, c.last + 1);
    chain_free(&c);
}

Test(log_recovery, truncated_and_appended_again_and_again_only_the_newest_is_there)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    for (uint64_t round = 1; round < 4; round++) {
        cr_assert_eq(ckb_log_truncate(c.a->log, 3 + round), CKB_OK);
        c.a->salt = round;
        append_durably(c.a, 4 + round, 20 - round);
    }
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    assert_walk(c.a, "1-4, 5', 6'', 7-17''', end");
    assert_check(c.s, "%s", "");
    chain_free(&c);
}

Test(log_recovery, a_purged_segment_that_is_used_again_shows_nothing_of_its_earlier_life)
{
    store *s = log_store_make(SMALL_BYTES, 12, SMALL_UNIT);
    log_handle *a = log_new(s, "a", 1);
    uint64_t last = 0;
    for (int round = 0; round < 30; round++) {
        a->salt = (uint64_t)round % 4;
        append_durably(a, last + 1, last + 7);
        last += 7;
        cr_assert_eq(ckb_log_purge(a->log, last - 3), CKB_OK);
        cr_assert_eq(log_crash(a, "a"), CKB_OK);
        cr_assert_eq(info_of(a).first, last - 3);
        cr_assert_eq(info_of(a).last, last);
        assert_walk(a, "%llu-%llu%s, end", number(last - 3), number(last),
                    round % 4 == 0   ? ""
                    : round % 4 == 1 ? "'"
                    : round % 4 == 2 ? "''"
                                     : "'''");
    }
    cr_assert_eq(stat_of(s).damage, 0);
    assert_check(s, "%s", "");
    log_handle_free(a);
    store_free(s);
}

/* -------------------------------------------------------------------------------------------- >>journals */

Test(log_recovery, R2_a_log_that_the_journal_lost_is_damage)
{
    store *s = log_store_make(SMALL_BYTES, SMALL_COUNT, SMALL_UNIT);
    log_handle *a = log_new(s, "a", 1);
    append_durably(a, 1, 3);
    ckb_entry entry = entry_at(a, 1);
    fact_place place = find_fact(s, 6, 1);
    /* The counters of the snapshot stay as they were before the log was created: its serial is not given yet. */
    put_little(place.fact, 4, 1000);
    reseal(s, place.segment, place.record, true);
    place = find_fact(s, 7, 1);
    put_little(place.fact, 4, 1000);
    reseal(s, place.segment, place.record, true);
    cr_assert_eq(log_crash(a, "a"), CKB_NOTFOUND);
    cr_assert_eq(stat_of(s).damage, 1);
    assert_damage(s, "journal, segment %u offset 64: corrupt (expected 1, found 1)", entry.segment);
    assert_check(s, "journal, segment %u offset 64: corrupt (expected 0, found 1)", entry.segment);
    cr_assert_eq(ckb_log_create(s->volume, "a", 0), CKB_OK);
    cr_assert_eq(log_open(a, "a"), CKB_OK);
    assert_goes_on(a, 1);
    cr_assert_neq(entry_at(a, 1).segment, entry.segment, "what may be somebody's is not erased");
    log_handle_free(a);
    store_free(s);
}

/* A volume whose journal has gone on in the second segment of its side; returns that segment. */
static uint32_t journal_second(chain *c)
{
    uint32_t second = journal_side(c->s) + 2;
    for (uint64_t first = 2;; first++) {
        cr_assert_eq(ckb_log_purge(c->a->log, first), CKB_OK);
        append_durably(c->a, c->last + 1, c->last + 1);
        c->last++;
        if (epoch_of(c->s, second) == epoch_of(c->s, journal_side(c->s)))
            return second;
    }
}

Test(log_recovery, J2_a_journal_of_several_segments_is_read_to_its_end)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    cr_assert_gt(journal_span(c.s), 1);
    journal_second(&c);
    uint64_t first = info_of(c.a).first;
    for (int mounts = 0; mounts < 3; mounts++) {
        cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
        cr_assert_eq(info_of(c.a).first, first);
        assert_walk(c.a, "%llu-%llu, end", number(first), number(c.last));
    }
    chain_free(&c);
}

Test(log_recovery, J4_a_lost_segment_in_the_middle_of_the_journal_is_corruption)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    uint32_t second = journal_second(&c);
    char expected[120];
    uint64_t epoch = epoch_of(c.s, second);
    memset(at(c.s, second, 0), 0, SMALL_UNIT);
    cr_assert_eq(store_mount(c.s), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "journal, segment %u offset 0: corrupt (expected %llu, found 0)",
             second, number(epoch));
    assert_text(&c.s->fault, expected);
    chain_free(&c);
}

Test(log_recovery, J4_a_lost_first_segment_of_the_journal_is_corruption)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    uint32_t side = journal_second(&c) - 2;
    char expected[120];
    uint64_t epoch = epoch_of(c.s, side);
    memset(at(c.s, side, 0), 0, SMALL_UNIT);
    cr_assert_eq(store_mount(c.s), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "journal, segment %u offset 0: corrupt (expected %llu, found 0)", side,
             number(epoch));
    assert_text(&c.s->fault, expected);
    chain_free(&c);
}

Test(log_recovery, J6_damage_before_the_journal_went_on_is_corruption)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    uint32_t side = journal_second(&c) - 2;
    char expected[120];
    uint64_t last = 0;
    for (uint64_t offset = SMALL_UNIT; offset + SMALL_UNIT < SMALL_BYTES; offset += SMALL_UNIT)
        last = record_is(c.s, side, offset, 7) ? offset : last;
    *at(c.s, side, last + 30) ^= 4; /* the last batch there: the next segment shows that it was durable */
    cr_assert_eq(store_mount(c.s), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "journal, segment %u offset %llu: corrupt (expected 0, found 0)", side,
             number(last));
    assert_text(&c.s->fault, expected);
    chain_free(&c);
}

Test(log_recovery, J5_the_torn_tail_of_a_second_journal_segment_is_dropped)
{
    chain c = chain_durable(SMALL_BYTES, 2);
    uint32_t second = journal_second(&c);
    uint64_t first = info_of(c.a).first, last = 0;
    cr_assert_eq(ckb_log_purge(c.a->log, first + 1), CKB_OK);
    for (uint64_t offset = SMALL_UNIT; offset + SMALL_UNIT < SMALL_BYTES; offset += SMALL_UNIT)
        last = record_is(c.s, second, offset, 7) ? offset : last;
    *at(c.s, second, last + 30) ^= 4;
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    cr_assert_eq(info_of(c.a).first, first);
    assert_last(c.s, "dropped 128 bytes at segment %u offset %llu: never made durable", second, number(last));
    chain_free(&c);
}

Test(log_recovery, E1_an_io_error_is_neither_corruption_nor_the_end)
{
    chain c = chain_durable(SMALL_BYTES, 3);
    char expected[120];
    c.s->fail_segment = c.segment[1];
    cr_assert_eq(store_mount(c.s), CKB_IO);
    snprintf(expected, sizeof(expected), "segment %u offset 0: I/O error from the medium", c.segment[1]);
    assert_text(&c.s->fault, expected);
    c.s->fail_segment = CKB_NO_SEGMENT;
    cr_assert_eq(log_crash(c.a, "a"), CKB_OK);
    c.s->fail_segment = c.segment[1];
    assert_walk(c.a, "1-%llu, I/O error", number(c.begins[1] - 1));
    assert_salvage(c.a, "1-%llu, I/O error", number(c.begins[1] - 1));
    c.s->fail_segment = CKB_NO_SEGMENT;
    assert_walk(c.a, "1-%llu, end", number(c.last));
    chain_free(&c);
}
