/* Cases of damage that other stores met, which no other test holds. */
#define _GNU_SOURCE
#include "store.h"

/* The segment with the newest records is empty, random, or has only its header. */
Test(cases, C04_a_newest_segment_that_became_useless_is_named_and_the_rest_is_there)
{
    for (int kind = 0; kind < 3; kind++) {
        store *s = store_new();
        put(s, 0, 200);
        uint32_t newest = place_of(s, 199).segment, before = 0;
        while (place_of(s, before).segment != newest)
            before++;
        if (kind == 0)
            memset(at(s, newest, 0), 0, SEGMENT_BYTES);
        else if (kind == 1)
            test_fill(at(s, newest, 0), SEGMENT_BYTES, 5);
        else
            memset(at(s, newest, UNIT), 0, SEGMENT_BYTES - UNIT);
        for (uint32_t mounts = 0; mounts < 3; mounts++) {
            cr_assert_eq(store_mount(s), CKB_OK, "kind %d", kind);
            cr_assert_geq(stat_of(s).damage + stat_of(s).dropped_tails + (kind == 2), 1, "kind %d", kind);
            assert_all_there(s, 0, before);
            cr_assert_neq(get(s, 199), CKB_OK);
            store_open_writer(s);
            put(s, 1000 + mounts, 1001 + mounts);
            assert_all_there(s, 1000, 1001 + mounts);
        }
        store_free(s);
    }
}

/* Segments from the middle are gone: that is said, and the space of the others still comes back. */
Test(cases, C07_lost_segments_keep_to_the_limits_of_the_volume)
{
    ckb_config config = {.max_chunks = 5000};
    store *s = store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    put(s, 0, 200);
    memset(at(s, place_of(s, 70).segment, 0), 0, SEGMENT_BYTES);
    memset(at(s, place_of(s, 130).segment, 0), 0, SEGMENT_BYTES);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).segments_lost, 2);
    for (uint64_t id = 100; id < 110; id++) {
        uint8_t bytes[CHUNK_BYTES] = {0};
        uint32_t count = 0;
        store_open_writer(s);
        cr_assert_eq(ckb_container_create(s->volume, id), CKB_OK);
        for (int status = CKB_OK; status == CKB_OK; count++) {
            ckb_chunk_id chunk = {id, 0, count};
            status = ckb_chunk_write(s->writer, &chunk, bytes, sizeof bytes, 0);
            cr_assert(status == CKB_OK || status == CKB_NOSPACE, "%s", ckb_status_text(status));
        }
        cr_assert_gt(count, 200);
        cr_assert_eq(ckb_container_delete(s->volume, id), CKB_OK);
        cr_assert_eq(ckb_maintain(s->volume, 1000, NULL), CKB_OK);
        cr_assert_eq(store_mount(s), CKB_OK);
        cr_assert_eq(stat_of(s).segments_lost, 2);
    }
    store_free(s);
}

/* What looks like unwritten space may be data: chunks of zeros, and zeros around a single one. */
Test(cases, C05_a_last_chunk_of_zeros_is_not_unwritten_space)
{
    static const size_t sizes[] = {1, 511, 512, 4096, 50000};
    for (size_t which = 0; which < 15; which++) {
        store *s = store_new();
        size_t length = sizes[which / 3];
        uint8_t *bytes = calloc(2, length), *back = bytes + length;
        bytes[which % 3 == 1 ? 0 : length - 1] = which % 3 != 0;
        put(s, 0, 3);
        ckb_chunk_id id = chunk_id(3);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, length, CKB_DURABLE), CKB_OK);
        for (int mounts = 0; mounts < 2; mounts++) {
            size_t got = 0;
            cr_assert_eq(store_mount(s), CKB_OK);
            cr_assert_eq(stat_of(s).dropped_tails, 0);
            cr_assert_eq(ckb_chunk_read(s->reader, &id, 0, back, length, &got), CKB_OK);
            cr_assert_eq(got, length);
            cr_assert_eq(memcmp(bytes, back, length), 0);
        }
        assert_all_there(s, 0, 3);
        free(bytes);
        store_free(s);
    }
}

/* The same writes into the same places after a new format: nothing of the old volume verifies. */
Test(cases, C81_nothing_of_an_earlier_life_comes_back)
{
    store *s = store_new();
    put(s, 0, 100);
    ckb_format_config format = {{5, 6, 7, 8}, 0, 0};
    size_t bytes = ckb_format_memory(&s->medium.geometry);
    void *memory = malloc(bytes);
    cr_assert_eq(ckb_format(&s->medium, &format, memory, bytes, &s->fault), CKB_OK);
    free(memory);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
    store_open_writer(s);
    put(s, 0, 40);
    for (int mounts = 0; mounts < 2; mounts++) {
        cr_assert_eq(store_mount(s), CKB_OK);
        assert_all_there(s, 0, 40);
        for (uint32_t chunk = 40; chunk < 100; chunk++)
            cr_assert_eq(get(s, chunk), CKB_NOTFOUND);
        cr_assert_eq(stat_of(s).damage, 0);
    }
    store_free(s);
}

/* Containers that were deleted and made again under their ids, over restarts and crashes: nothing of the first comes
 * back, and a log goes on behind the last index, also when it was purged empty. */
Test(cases, C50_what_was_given_once_is_not_given_again_after_a_restart)
{
    ckb_config config = {.max_chunks = 5000, .max_containers = 300};
    store *s = store_new_with(SEGMENT_BYTES, 40, UNIT, &config);
    uint64_t index = 0, again = 0;
    for (uint64_t life = 1; life <= 6; life++) {
        size_t bytes = ckb_log_memory(&s->medium.geometry, NULL), got;
        void *memory = malloc(bytes);
        ckb_log *log;
        int created = ckb_log_create(s->volume, "ids", 1);
        cr_assert_eq(created, life == 1 ? CKB_OK : CKB_EXISTS);
        cr_assert_eq(ckb_log_open(s->volume, "ids", NULL, memory, bytes, &log, &s->fault), CKB_OK);
        for (uint64_t id = 100; id < 200; id++) {
            uint8_t back[8];
            ckb_chunk_id chunk = {id, life, 0}, old = {id, life - 1, 0};
            int status = ckb_container_create(s->volume, id);
            if (status != CKB_DELETED) { /* and still remembered: refused, which is as good */
                cr_assert(status == CKB_OK || (status == CKB_EXISTS && id < 150), "%s",
                          ckb_status_text(status));
                again += status == CKB_OK && life > 1;
                status = ckb_chunk_write(s->writer, &chunk, &life, sizeof life, CKB_DURABLE);
                cr_assert_eq(status, CKB_OK, "container %d: %s", (int)id, ckb_status_text(status));
                status = ckb_chunk_read(s->reader, &old, 0, back, sizeof back, &got);
                cr_assert_eq(status, id < 150 && life > 1 ? CKB_OK : CKB_NOTFOUND, "container %d", (int)id);
            }
            uint64_t next = 0;
            cr_assert_eq(ckb_log_append(log, life, "x", 1, CKB_DURABLE, &next), CKB_OK);
            cr_assert_eq(next, ++index);
        }
        for (uint64_t id = 150; id < 200; id++)
            (void)ckb_container_delete(s->volume, id);
        cr_assert_eq(ckb_log_purge(log, index + 1), CKB_OK);
        cr_assert_eq(ckb_maintain(s->volume, 10000, NULL), CKB_OK);
        if (life % 2 == 0)
            cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
        cr_assert_eq(store_mount(s), CKB_OK);
        store_open_writer(s);
        /* Others take the places in the table, so that deleted ones are forgotten. */
        for (uint64_t id = 1000 * life; id < 1000 * life + 150; id++)
            cr_assert_eq(ckb_container_create(s->volume, id), CKB_OK);
        for (uint64_t id = 1000 * life; id < 1000 * life + 150; id++)
            cr_assert_eq(ckb_container_delete(s->volume, id), CKB_OK);
        cr_assert_eq(ckb_maintain(s->volume, 10000, NULL), CKB_OK);
        cr_assert_eq(ckb_sync(s->volume), CKB_OK);
        cr_assert_eq(store_mount(s), CKB_OK);
        store_open_writer(s);
        free(memory);
    }
    cr_assert_geq(again, 100, "ids were used again %d times", (int)again);
    store_free(s);
}

/* An old segment of a log is damaged where no mount looks: a purge behind it frees it like any other. */
Test(cases, C12_a_damaged_old_segment_does_not_keep_a_purge_from_freeing_space)
{
    store *s = store_new();
    size_t bytes = ckb_log_memory(&s->medium.geometry, NULL);
    size_t cursor_bytes = ckb_log_cursor_memory(&s->medium.geometry, 0);
    void *memory = malloc(bytes), *cursor_memory = malloc(cursor_bytes);
    uint8_t data[1000] = {0};
    ckb_log *log;
    ckb_log_cursor *cursor;
    ckb_entry entry;
    uint64_t index = 0;
    cr_assert_eq(ckb_log_create(s->volume, "old", 1), CKB_OK);
    cr_assert_eq(ckb_log_open(s->volume, "old", NULL, memory, bytes, &log, &s->fault), CKB_OK);
    while (index < 200)
        cr_assert_eq(ckb_log_append(log, 1, data, sizeof data, CKB_DURABLE, &index), CKB_OK);
    cr_assert_eq(ckb_log_cursor_open(log, 0, cursor_memory, cursor_bytes, &cursor), CKB_OK);
    cr_assert_eq(ckb_log_read(cursor, 30, &entry, data, sizeof data), CKB_OK);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    *at(s, entry.segment, entry.offset + 600) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(ckb_log_open(s->volume, "old", NULL, memory, bytes, &log, &s->fault), CKB_OK);
    cr_assert_eq(ckb_log_cursor_open(log, 0, cursor_memory, cursor_bytes, &cursor), CKB_OK);
    cr_assert_eq(ckb_log_read(cursor, 30, &entry, data, sizeof data), CKB_CORRUPT);
    for (int round = 0; round < 4000; round++) {
        cr_assert_eq(ckb_log_append(log, 1, data, sizeof data, CKB_DURABLE, &index), CKB_OK, "entry %d", round);
        cr_assert_eq(ckb_log_purge(log, index - 50), CKB_OK);
    }
    cr_assert_eq(ckb_maintain(s->volume, 1000, NULL), CKB_OK);
    ckb_check_report report;
    cr_assert_eq(ckb_check(s->volume, s->reader, NULL, NULL, &report), CKB_OK);
    cr_assert_eq(report.entries, 51);
    free(memory);
    free(cursor_memory);
    store_free(s);
}
