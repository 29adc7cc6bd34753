/* Compaction: room on volumes that stay nearly full, deletes that are let go, damage that is left where it is. */
#define _GNU_SOURCE
#include "store.h"

enum { BYTES = 1000 };

static ckb_stat space_of(store *s)
{
    ckb_stat stat;
    ckb_volume_stat(s->volume, &stat);
    cr_assert_eq(stat.free_bytes + stat.live_bytes + stat.dead_bytes + stat.reserved_bytes,
                 stat.geometry.segment_bytes * stat.geometry.segment_count, "space leaks");
    return stat;
}

/* The bytes of a chunk that was written so many times. */
static void round_bytes(uint32_t chunk, uint32_t round, uint8_t bytes[BYTES])
{
    test_fill(bytes, BYTES, chunk * 4099u + round);
}

static int put_round(store *s, uint32_t chunk, uint32_t round)
{
    uint8_t bytes[BYTES];
    ckb_chunk_id id = chunk_id(chunk);
    round_bytes(chunk, round, bytes);
    return ckb_chunk_write(s->writer, &id, bytes, BYTES, CKB_OVERWRITE);
}

static void expect_round(store *s, uint32_t chunk, uint32_t round)
{
    uint8_t bytes[BYTES], got[BYTES];
    size_t length = 0;
    ckb_chunk_id id = chunk_id(chunk);
    round_bytes(chunk, round, bytes);
    cr_assert_eq(ckb_chunk_read(s->reader, &id, 0, got, sizeof got, &length), CKB_OK, "chunk %u", chunk);
    cr_assert_eq(length, BYTES);
    cr_assert_arr_eq(got, bytes, BYTES, "chunk %u of round %u", chunk, round);
}

static void remount(store *s, bool clean)
{
    if (clean)
        cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    else
        cr_assert_eq(ckb_sync(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    store_open_writer(s);
}

static void maintain(store *s)
{
    bool more = true;
    while (more)
        cr_assert_eq(ckb_maintain(s->volume, 16, &more), CKB_OK);
}

/* Overwrites at random, so many times all chunks, with `percent` of its data segments full of live chunks. */
static void overwrite_at(uint32_t percent, uint32_t times, bool maintained, double most)
{
    enum { ALL = 256 };
    static uint32_t rounds[ALL * 64];
    ckb_config config = {.max_chunks = ALL * 64};
    store *s = store_new_with(SEGMENT_BYTES, ALL, UNIT, &config);
    uint32_t chunks = (uint32_t)((ALL - 2) * (uint64_t)SEGMENT_BYTES * percent / 100 / (BYTES + 40 + 32));
    uint64_t written = 0, random = 1;
    for (uint32_t chunk = 0; chunk < chunks; chunk++)
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK, "chunk %u of %u", chunk, chunks);
    for (uint32_t n = 0; n < times * chunks; n++) {
        random = random * 6364136223846793005u + 1442695040888963407u;
        uint32_t chunk = (uint32_t)(random >> 33) % chunks;
        cr_assert_eq(put_round(s, chunk, ++rounds[chunk]), CKB_OK, "overwrite %u of %u", n, times * chunks);
        written += BYTES + 72;
        if (maintained && n % 16 == 0)
            cr_assert_eq(ckb_maintain(s->volume, 4, NULL), CKB_OK);
    }
    ckb_stat stat = space_of(s);
    double amplification = 1 + (double)stat.compacted_bytes / (double)written;
    cr_assert_gt(stat.compacted_bytes, 0);
    cr_assert_leq(amplification, most, "%u %%: writes are amplified %.2f times", percent, amplification);
    for (int look = 0; look < 3; look++) {
        for (uint32_t chunk = 0; chunk < chunks; chunk++)
            expect_round(s, chunk, rounds[chunk]);
        remount(s, look % 2 == 0);
    }
    cr_assert_eq(space_of(s).damage, 0);
    store_free(s);
}

Test(compact, a_volume_four_fifths_full_is_overwritten_at_random_twelve_times_over)
{
    overwrite_at(80, 12, true, 4);
    overwrite_at(80, 12, false, 4);
}

Test(compact, makes_room_at_nine_tenths_of_live_data)
{
    overwrite_at(90, 4, false, 12);
}

Test(compact, says_no_space_when_all_counts_and_deletes_still_work)
{
    store *s = store_new_with(SEGMENT_BYTES, 24, UNIT, &(ckb_config){.max_chunks = 4000});
    uint32_t count = 0;
    while (put_round(s, count, 0) == CKB_OK)
        count++;
    cr_assert_eq(put_round(s, count, 0), CKB_NOSPACE);
    cr_assert_eq(put_round(s, 0, 1), CKB_NOSPACE, "an overwrite needs room, too");
    for (uint32_t chunk = 0; chunk < count; chunk += 2) {
        ckb_chunk_id id = chunk_id(chunk);
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, chunk % 100 == 0 ? CKB_DURABLE : 0), CKB_OK, "chunk %u",
                     chunk);
    }
    for (uint32_t chunk = 0; chunk < count / 3; chunk += 2)
        cr_assert_eq(put_round(s, chunk, 2), CKB_OK, "chunk %u", chunk);
    for (uint32_t chunk = 1; chunk < count; chunk += 2)
        expect_round(s, chunk, 0);
    space_of(s);
    store_free(s);
}

/* Many times as many chunks as the index has room for are written and deleted one by one. */
Test(compact, lets_go_of_deletes_so_that_they_do_not_fill_the_index)
{
    ckb_config config = {.max_chunks = 300};
    for (int maintained = 0; maintained < 2; maintained++) {
        store *s = store_new_with(SEGMENT_BYTES, 16, UNIT, &config);
        for (uint32_t n = 0; n < 20000; n++) {
            ckb_chunk_id id = chunk_id(n);
            cr_assert_eq(put_round(s, n, n), CKB_OK, "chunk %u", n);
            if (n >= 100) {
                id.chunk = n - 100;
                cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK, "chunk %u", id.chunk);
            }
            if (maintained && n % 8 == 0)
                cr_assert_eq(ckb_maintain(s->volume, 8, NULL), CKB_OK);
            if (n % 5000 == 4999)
                remount(s, n % 10000 == 4999);
        }
        for (uint32_t n = 0; n < 20000; n++) {
            ckb_chunk_id id = chunk_id(n);
            ckb_chunk_info info;
            int status = ckb_chunk_stat(s->volume, &id, &info);
            if (n >= 20000 - 100)
                expect_round(s, n, n);
            else
                cr_assert(status == CKB_NOTFOUND || status == CKB_DELETED, "chunk %u: %d", n, status);
        }
        cr_assert_leq(space_of(s).index_used, 300);
        store_free(s);
    }
}

Test(compact, explicitly_leaves_neither_dead_bytes_nor_deletes_behind)
{
    bool more = true;
    store *s = store_new_with(SEGMENT_BYTES, 40, UNIT, &(ckb_config){.max_chunks = 4000});
    for (uint32_t chunk = 0; chunk < 1000; chunk++)
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK);
    for (uint32_t chunk = 0; chunk < 1000; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        if (chunk % 4 != 0)
            cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK);
    }
    cr_assert_eq(ckb_compact(s->volume, 0, 1, &more), CKB_INVALID);
    cr_assert_eq(ckb_compact(s->volume, 101, 1, &more), CKB_INVALID);
    cr_assert_eq(ckb_writer_close(s->writer), CKB_OK);
    for (int n = 0; n < 2; n++) /* what the first pass moves the second lets go */
        for (more = true; more;)
            cr_assert_eq(ckb_compact(s->volume, 5, 3, &more), CKB_OK);
    ckb_stat stat = space_of(s);
    cr_assert_eq(stat.index_deleted, 0, "%u deletes", (unsigned)stat.index_deleted);
    cr_assert_lt(stat.dead_bytes, 2 * SEGMENT_BYTES, "%u dead bytes", (unsigned)stat.dead_bytes);
    cr_assert_geq(stat.free_bytes, 32 * (uint64_t)SEGMENT_BYTES, "%u free bytes", (unsigned)stat.free_bytes);
    store_open_writer(s);
    for (int look = 0; look < 2; look++) {
        for (uint32_t chunk = 0; chunk < 1000; chunk += 4)
            expect_round(s, chunk, 0);
        for (uint32_t chunk = 1; chunk < 1000; chunk += 4)
            cr_assert_eq(get(s, chunk), CKB_NOTFOUND, "chunk %u", chunk);
        remount(s, true);
    }
    cr_assert_eq(put_round(s, 1, 7), CKB_OK, "a chunk that was let go is new again");
    cr_assert_eq(place_of(s, 1).version, 1);
    store_free(s);
}

Test(compact, moves_chunks_larger_than_its_buffers)
{
    enum { LARGE = 150000, SMALL_BUFFER = 4096 };
    uint8_t *bytes = malloc(LARGE), *got = malloc(LARGE);
    ckb_config config = {.free_segments = 1000, .io_buffer_bytes = SMALL_BUFFER};
    store *s = store_new_with(1024 * 1024, 12, UNIT, &config);
    for (uint32_t chunk = 0; chunk < 24; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        test_fill(bytes, LARGE, chunk);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, LARGE - chunk * 1111u, 0), CKB_OK);
    }
    for (uint32_t chunk = 0; chunk < 24; chunk += 2) {
        ckb_chunk_id id = chunk_id(chunk);
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK);
    }
    cr_assert_eq(ckb_writer_close(s->writer), CKB_OK);
    ckb_chunk_info before = place_of(s, 1);
    maintain(s);
    ckb_chunk_info after = place_of(s, 1);
    cr_assert_neq(before.segment, after.segment);
    cr_assert_eq(before.version, after.version);
    cr_assert_gt(space_of(s).compacted_bytes, 6 * LARGE);
    for (int look = 0; look < 2; look++) {
        for (uint32_t chunk = 1; chunk < 24; chunk += 2) {
            ckb_chunk_id id = chunk_id(chunk);
            size_t length = 0;
            test_fill(bytes, LARGE, chunk);
            cr_assert_eq(ckb_chunk_read(s->reader, &id, 0, got, LARGE, &length), CKB_OK, "chunk %u", chunk);
            cr_assert_eq(length, LARGE - chunk * 1111u);
            cr_assert_arr_eq(got, bytes, length);
        }
        cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
        cr_assert_eq(store_mount(s), CKB_OK);
    }
    free(bytes);
    free(got);
    store_free(s);
}

/* A volume of which the first segment has every second chunk deleted; returns a chunk in it that counts. */
static store *half_dead(uint32_t *chunk)
{
    store *s = store_new_with(SEGMENT_BYTES, 16, UNIT, &(ckb_config){.free_segments = 1000});
    for (uint32_t n = 0; n < 200; n++)
        cr_assert_eq(put_round(s, n, 0), CKB_OK);
    for (uint32_t n = 0; n < 100; n += 2) {
        ckb_chunk_id id = chunk_id(n);
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK);
    }
    cr_assert_eq(ckb_sync(s->volume), CKB_OK);
    *chunk = 11;
    return s;
}

Test(compact, leaves_a_damaged_chunk_where_it_is_and_says_so)
{
    uint32_t chunk;
    store *s = half_dead(&chunk);
    ckb_chunk_info info = place_of(s, chunk);
    *at(s, info.segment, info.offset + 300) ^= 4;
    maintain(s);
    cr_assert_eq(get(s, chunk), CKB_CORRUPT);
    cr_assert_eq(place_of(s, chunk).segment, info.segment);
    cr_assert_neq(place_of(s, chunk + 2).segment, info.segment, "its neighbours are moved");
    char expected[200];
    snprintf(expected, sizeof expected, "segment %u offset %llu: payload does not verify", info.segment,
             (unsigned long long)info.offset);
    assert_first_damage(s, expected);
    cr_assert_eq(space_of(s).damage, 1, "it is tried once");
    for (uint32_t n = 1; n < 200; n += n < 100 ? 2 : 1)
        if (n != chunk)
            expect_round(s, n, 0);
    store_free(s);
}

Test(compact, leaves_a_segment_alone_that_cannot_be_read)
{
    uint32_t chunk;
    store *s = half_dead(&chunk);
    s->fail_segment = place_of(s, chunk).segment;
    bool more = true;
    int status = CKB_OK;
    while (more && status == CKB_OK)
        status = ckb_maintain(s->volume, 16, &more);
    cr_assert_eq(status, CKB_IO);
    maintain(s);
    cr_assert_eq(space_of(s).damage, 0, "an I/O error says nothing about the data");
    cr_assert_eq(put_round(s, 500, 0), CKB_OK, "and does not end the mount");
    s->fail_segment = CKB_NO_SEGMENT;
    for (uint32_t n = 1; n < 200; n += n < 100 ? 2 : 1)
        expect_round(s, n, 0);
    store_free(s);
}

Test(compact, does_nothing_where_it_is_not_wanted)
{
    ckb_config config = {.free_segments = 1000, .no_compaction = true};
    store *s = store_new_with(SEGMENT_BYTES, 16, UNIT, &config);
    bool more = true;
    for (uint32_t n = 0; n < 200; n++)
        cr_assert_eq(put_round(s, n % 40 < 20 ? n : 3, n), CKB_OK);
    maintain(s);
    cr_assert_eq(space_of(s).compacted_bytes, 0);
    cr_assert_eq(ckb_compact(s->volume, 10, 1, &more), CKB_INVALID);
    ckb_config with = {.free_segments = 1000};
    cr_assert_gt(ckb_volume_memory(&s->medium.geometry, &with),
                 ckb_volume_memory(&s->medium.geometry, &config));
    store_free(s);
}

/* Commits of little data pad each to a unit; compaction wins that back, once. */
Test(compact, wins_back_the_padding_of_commits_and_then_rests)
{
    store *s = store_new_with(SEGMENT_BYTES, 24, 4096, &(ckb_config){.free_segments = 1000});
    for (uint32_t n = 0; n < 200; n++) {
        ckb_chunk_id id = chunk_id(n);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, &n, sizeof n, CKB_DURABLE), CKB_OK);
    }
    uint32_t before = space_of(s).segments_full;
    cr_assert_eq(ckb_writer_close(s->writer), CKB_OK);
    maintain(s);
    ckb_stat stat = space_of(s);
    cr_assert_gt(before, 10);
    cr_assert_leq(stat.segments_full, 1, "%u segments are full", stat.segments_full);
    maintain(s);
    cr_assert_eq(space_of(s).compacted_bytes, stat.compacted_bytes);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    maintain(s);
    cr_assert_eq(space_of(s).compacted_bytes, 0, "%u bytes were moved again",
                 (unsigned)space_of(s).compacted_bytes);
    for (uint32_t n = 0; n < 200; n++) {
        ckb_chunk_id id = chunk_id(n);
        uint32_t got = 0;
        cr_assert_eq(ckb_chunk_read(s->reader, &id, 0, &got, sizeof got, NULL), CKB_OK);
        cr_assert_eq(got, n);
    }
    store_free(s);
}

/* The journal says of a parked segment that it may be continued, even while it is a victim. Two are parked, so that
 * the writer continues the other one first. */
Test(compact, a_parked_victim_is_not_covered_by_a_checkpoint)
{
    ckb_config config = {.max_chunks = 20000, .io_buffer_bytes = 4096};
    store *s = store_new_with(SEGMENT_BYTES, 60, UNIT, &config);
    void *memory = malloc(s->writer_bytes);
    ckb_writer *first = s->writer;
    bool more, resumed = false;
    for (uint32_t chunk = 0; chunk < 20; chunk++)
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK);
    cr_assert_eq(ckb_writer_open(s->volume, NULL, memory, s->writer_bytes, &s->writer), CKB_OK);
    for (uint32_t chunk = 100; chunk < 130; chunk++)
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK);
    cr_assert_eq(ckb_writer_close(first), CKB_OK);
    uint32_t parked = place_of(s, 100).segment;
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    store_open_writer(s);
    for (uint32_t chunk = 100; chunk < 110; chunk++)
        cr_assert_eq(put_round(s, chunk, 1), CKB_OK);
    cr_assert_eq(ckb_sync(s->volume), CKB_OK);
    cr_assert_eq(ckb_compact(s->volume, 1, 1, &more), CKB_OK); /* a part of it */
    for (uint32_t chunk = 1000; chunk < 3000; chunk++)
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK);
    remount(s, true);
    cr_assert_gt(space_of(s).checkpoint_entries, 0);
    for (uint32_t chunk = 5000; chunk < 5200; chunk++) {
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK);
        resumed |= place_of(s, chunk).segment == parked;
    }
    cr_assert(resumed);
    remount(s, false);
    for (uint32_t chunk = 5000; chunk < 5200; chunk++)
        expect_round(s, chunk, 0);
    free(memory);
    store_free(s);
}

Test(compact, chunks_of_deleted_containers_hide_no_deletes)
{
    store *s = store_new_with(SEGMENT_BYTES, 40, UNIT, &(ckb_config){.max_chunks = 300});
    for (uint64_t container = 20; container < 23; container++) {
        cr_assert_eq(ckb_container_create(s->volume, container), CKB_OK);
        for (uint32_t chunk = 0; chunk < 250; chunk++) {
            ckb_chunk_id id = {container, 0, chunk};
            cr_assert_eq(ckb_chunk_write(s->writer, &id, "x", 1, 0), CKB_OK);
        }
        cr_assert_eq(ckb_container_delete(s->volume, container), CKB_OK);
        maintain(s);
    }
    for (uint32_t chunk = 0; chunk < 5000; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK, "chunk %u", chunk);
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK, "chunk %u", chunk);
    }
    store_free(s);
}

Test(compact, a_writer_that_idles_keeps_no_delete_of_others)
{
    ckb_writer *idle;
    store *s = store_new_with(SEGMENT_BYTES, 40, UNIT, &(ckb_config){.max_chunks = 300});
    void *memory = malloc(s->writer_bytes);
    ckb_chunk_id id = chunk_id(1000000);
    cr_assert_eq(ckb_writer_open(s->volume, NULL, memory, s->writer_bytes, &idle), CKB_OK);
    cr_assert_eq(ckb_chunk_write(idle, &id, "x", 1, CKB_DURABLE), CKB_OK);
    for (uint32_t chunk = 0; chunk < 5000; chunk++) {
        id = chunk_id(chunk);
        cr_assert_eq(put_round(s, chunk, 0), CKB_OK, "chunk %u", chunk);
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK, "chunk %u", chunk);
    }
    cr_assert_eq(ckb_writer_close(idle), CKB_OK);
    free(memory);
    store_free(s);
}
