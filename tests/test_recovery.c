/* The recovery table of the FORMAT section, row by row: each test scripts what is on the medium and asserts
 * what the mount says of it, to the letter. */
#define _GNU_SOURCE
#include "store.h"

/* The segments of the journal in force and of the one before it, by the epochs in their headers. */
static uint32_t journal_newer(store *s)
{
    ckb_probe_info info[2];
    cr_assert_eq(ckb_probe(at(s, 0, 0), &info[0]), CKB_OK);
    cr_assert_eq(ckb_probe(at(s, 1, 0), &info[1]), CKB_OK);
    return info[1].epoch > info[0].epoch;
}

/* Offset of the nth batch of a journal segment, from the last when negative. Here each takes one unit. */
static uint64_t journal_batch(store *s, uint32_t segment, int n)
{
    int count = 0;
    while (at(s, segment, UNIT + (uint64_t)count * UNIT)[4] == 7)
        count++;
    return UNIT + (uint64_t)(n < 0 ? count + n : n) * UNIT;
}

/* ---------------------------------------------------------------------------------------------- >>journal */

Test(recovery, J1_without_a_header_there_is_no_volume)
{
    store *s = store_new();
    memset(s->image, 0xFF, (size_t)SEGMENTS * SEGMENT_BYTES);
    cr_assert_eq(store_mount(s), CKB_NOTFOUND);
    store_free(s);
}

Test(recovery, J1_with_two_damaged_headers_the_volume_is_corrupt)
{
    store *s = store_new();
    *at(s, 0, 33) ^= 1;
    *at(s, 1, 33) ^= 1;
    cr_assert_eq(store_mount(s), CKB_CORRUPT);
    assert_text(&s->fault, "segment 0: in use under epoch 0, its header is missing or damaged (epoch 0 found)");
    store_free(s);
}

Test(recovery, J2_the_newer_complete_journal_is_in_force)
{
    store *s = store_new();
    put(s, 0, 3);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    for (int round = 0; round < 5; round++) {
        cr_assert_eq(store_mount(s), CKB_OK);
        uint64_t epoch = stat_of(s).journal_epoch;
        cr_assert_eq(ckb_container_create(s->volume, 100 + (uint64_t)round), CKB_OK);
        cr_assert_gt(stat_of(s).journal_epoch, epoch, "the first fact of a mount moves the journal");
        cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    }
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).containers, 6);
    assert_all_there(s, 0, 3);
    store_free(s);
}

Test(recovery, J3_an_interrupted_switch_leaves_the_older_journal_in_force)
{
    store *s = store_new();
    uint32_t newer = journal_newer(s);
    memset(at(s, newer ^ 1u, SEGMENT_BYTES - UNIT), 0, UNIT); /* the old one was not told yet */
    memset(at(s, newer, UNIT), 0x5A, SEGMENT_BYTES - UNIT);   /* and the snapshot is not there */
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).containers, 0);
    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).containers, 1);
    store_free(s);
}

Test(recovery, J4_a_lost_journal_that_was_switched_to_is_corruption)
{
    store *s = store_new();
    uint32_t newer = journal_newer(s);
    uint64_t epoch = stat_of(s).journal_epoch;
    char expected[120];
    memset(at(s, newer, 0), 0, UNIT);
    cr_assert_eq(store_mount(s), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "journal, segment %u offset 0: corrupt (expected %llu, found 0)",
             newer, (unsigned long long)epoch);
    assert_text(&s->fault, expected);
    store_free(s);
}

Test(recovery, J4_a_lost_snapshot_that_was_switched_to_is_corruption)
{
    store *s = store_new();
    uint32_t newer = journal_newer(s);
    memset(at(s, newer, UNIT), 0, SEGMENT_BYTES - UNIT);
    cr_assert_eq(store_mount(s), CKB_CORRUPT);
    store_free(s);
}

Test(recovery, J5_a_torn_journal_tail_is_dropped_and_counted)
{
    store *s = store_new();
    uint32_t newer = journal_newer(s);
    char expected[120];
    uint64_t offset = journal_batch(s, newer, -1); /* the container, and nothing that builds on it */
    *at(s, newer, offset + 30) ^= 4;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).dropped_tails, 1);
    cr_assert_eq(stat_of(s).containers, 0);
    snprintf(expected, sizeof(expected), "dropped 512 bytes at segment %u offset %llu: never made durable",
             newer, (unsigned long long)offset);
    assert_last_fault(s, expected);
    store_free(s);
}

Test(recovery, J6_damage_below_the_mark_of_the_journal_is_refused)
{
    store *s = store_new();
    uint32_t newer = journal_newer(s);
    char expected[120];
    put(s, 0, 1); /* another fact behind the container's */
    uint64_t offset = journal_batch(s, newer, 1);
    *at(s, newer, offset + 30) ^= 4;
    cr_assert_eq(store_mount(s), CKB_CORRUPT);
    snprintf(expected, sizeof(expected), "journal, segment %u offset %llu: corrupt (expected 0, found 0)",
             newer, (unsigned long long)offset);
    assert_text(&s->fault, expected);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>segments */

Test(recovery, S1_what_a_free_segment_holds_is_ignored)
{
    store *s = store_new();
    put(s, 0, 10);
    uint32_t from = place_of(s, 0).segment;
    for (uint32_t segment = from + 1; segment < SEGMENTS; segment++)
        memcpy(at(s, segment, 0), at(s, from, 0), SEGMENT_BYTES);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).index_used, 10);
    cr_assert_eq(stat_of(s).damage, 0);
    assert_all_there(s, 0, 10);
    store_free(s);
}

Test(recovery, S2_a_known_extent_is_read_by_its_summaries)
{
    store *s = store_new();
    put(s, 0, 200);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    ckb_stat stat = stat_of(s);
    cr_assert_eq(stat.mount_scanned, 0);
    cr_assert_geq(stat.mount_summaries, 3);
    cr_assert(stat.clean);
    assert_all_there(s, 0, 200);
    store_free(s);
}

Test(recovery, S3_a_damaged_summary_is_said_and_the_records_are_read)
{
    store *s = store_new();
    char expected[120];
    put(s, 0, 200);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    uint32_t segment = place_of(s, 0).segment;
    const uint8_t *seal = at(s, segment, SEGMENT_BYTES - UNIT);
    uint64_t summary = (uint64_t)(seal[24] | seal[25] << 8) * 8;
    cr_assert_eq(seal[4], 6);
    *at(s, segment, summary + 24 + 5) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_scanned, 1);
    snprintf(expected, sizeof(expected),
             "segment %u offset %llu: summary does not verify, records were read instead", segment,
             (unsigned long long)summary);
    assert_first_damage(s, expected);
    assert_all_there(s, 0, 200);
    store_free(s);
}

Test(recovery, S4_a_segment_without_its_header_is_lost_and_misses_are_doubtful)
{
    store *s = store_new();
    char expected[120];
    put(s, 0, 200);
    ckb_chunk_info first = place_of(s, 0), last = place_of(s, 199);
    cr_assert_neq(first.segment, last.segment);
    memset(at(s, first.segment, 0), 0, UNIT);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).segments_lost, 1);
    snprintf(expected, sizeof(expected),
             "segment %u: in use under epoch 4, its header is missing or damaged (epoch 0 found)",
             first.segment);
    assert_first_damage(s, expected);
    cr_assert_eq(get(s, 0), CKB_CORRUPT, "lost is not the same as never written");
    cr_assert_eq(get(s, 5000), CKB_CORRUPT, "nobody knows what was lost");
    cr_assert_eq(get(s, 199), CKB_OK, "what is there and was never superseded is certain");
    ckb_fault fault;
    cr_assert_eq(get(s, 0), CKB_CORRUPT);
    ckb_reader_fault(s->reader, &fault);
    assert_text(&fault, expected);
    store_free(s);
}

Test(recovery, S4_where_chunks_were_superseded_a_hit_is_doubtful_too)
{
    store *s = store_new();
    put(s, 0, 100);
    put(s, 1000, 1100);
    ckb_chunk_id id = chunk_id(0);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, CKB_DURABLE), CKB_OK);
    ckb_chunk_info info;
    cr_assert_eq(ckb_chunk_stat(s->volume, &id, &info), CKB_DELETED);
    memset(at(s, info.segment, 0), 0, UNIT); /* the delete is lost */
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(get(s, 0), CKB_CORRUPT, "a deleted chunk does not come back");
    s->config.salvage = true;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(get(s, 0), CKB_OK, "salvage shows the last that is known");
    store_free(s);
}

Test(recovery, S4_a_header_of_another_epoch_is_a_lost_segment)
{
    store *s = store_new();
    put(s, 0, 200);
    uint32_t first = place_of(s, 0).segment, last = place_of(s, 199).segment;
    memcpy(at(s, first, 0), at(s, last, 0), UNIT);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).segments_lost, 1);
    store_free(s);
}

Test(recovery, S5_after_a_kill_all_records_up_to_the_last_end_are_there)
{
    store *s = store_new();
    put(s, 0, 130);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).damage, 0);
    cr_assert_eq(stat_of(s).dropped_tails, 0);
    cr_assert_not(stat_of(s).clean);
    assert_all_there(s, 0, 130);
    store_free(s);
}

Test(recovery, S6_damage_above_the_mark_drops_the_tail_and_says_how_much)
{
    store *s = store_new();
    char expected[120];
    put(s, 0, 5);
    put(s, 5, 6);
    ckb_chunk_info info = place_of(s, 5);
    *at(s, info.segment, info.offset + 500) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).dropped_tails, 1);
    cr_assert_eq(stat_of(s).damage, 0);
    snprintf(expected, sizeof(expected), "dropped 1536 bytes at segment %u offset %llu: never made durable",
             info.segment, (unsigned long long)info.offset);
    assert_last_fault(s, expected);
    assert_all_there(s, 0, 5);
    cr_assert_eq(get(s, 5), CKB_NOTFOUND);
    /* A cut segment is never appended to again, and stays cut. */
    store_open_writer(s);
    put(s, 5, 6);
    cr_assert_neq(place_of(s, 5).segment, info.segment);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).damage, 0);
    assert_all_there(s, 0, 6);
    store_free(s);
}

Test(recovery, S6_a_tail_that_was_cut_inside_a_write_unit_stays_an_end)
{
    store *s = store_new();
    size_t length = 40000; /* large enough to go to the medium in parts, none of them durable */
    uint8_t *bytes = malloc(length);
    test_fill(bytes, length, 1);
    put(s, 0, 1);
    ckb_chunk_id id = chunk_id(1);
    cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, length, 0), CKB_OK);
    for (uint32_t mounts = 0; mounts < 4; mounts++) {
        cr_assert_eq(store_mount(s), CKB_OK, "mount %u: %s", mounts, ckb_status_text(s->fault.status));
        cr_assert_eq(stat_of(s).damage, 0);
        assert_all_there(s, 0, 1);
        store_open_writer(s);
        put(s, 10 + mounts, 11 + mounts); /* the first fact of a mount records where the cut one ends */
    }
    free(bytes);
    store_free(s);
}

Test(recovery, S7_damage_below_the_mark_is_named_and_what_is_behind_stays)
{
    store *s = store_new();
    char expected[120];
    for (uint32_t chunk = 0; chunk < 10; chunk++)
        put(s, chunk, chunk + 1);
    ckb_chunk_info info = place_of(s, 4);
    *at(s, info.segment, info.offset + 9) ^= 1; /* its header: length */
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).dropped_tails, 0);
    snprintf(expected, sizeof(expected), "segment %u offset %llu: 1040 bytes of records do not verify",
             info.segment, (unsigned long long)info.offset);
    assert_first_damage(s, expected);
    cr_assert_eq(get(s, 4), CKB_CORRUPT);
    assert_all_there(s, 0, 4);
    assert_all_there(s, 5, 10);
    store_free(s);
}

Test(recovery, S7_a_check_names_the_chunk_when_a_summary_knows_it)
{
    store *s = store_new();
    put(s, 0, 200);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    ckb_chunk_info info = place_of(s, 4);
    *at(s, info.segment, info.offset + 9) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(get(s, 4), CKB_CORRUPT);
    ckb_check_report report;
    cr_assert_eq(ckb_check(s->volume, s->reader, NULL, NULL, &report), CKB_CORRUPT);
    cr_assert_eq(report.chunks_bad, 1);
    cr_assert_eq(report.chunks, 199);
    store_free(s);
}

Test(recovery, S8_a_prepared_segment_that_was_never_used_is_free_again)
{
    store *s = store_new();
    cr_assert_eq(ckb_maintain(s->volume, 10, NULL), CKB_OK);
    cr_assert_eq(stat_of(s).segments_prepared, 2);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).segments_prepared, 0);
    cr_assert_eq(stat_of(s).segments_free, SEGMENTS - 2);
    cr_assert_eq(stat_of(s).damage, 0);
    store_free(s);
}

Test(recovery, S9_a_segment_whose_allocation_was_lost_is_found_again)
{
    store *s = store_new();
    put(s, 0, 3);
    uint32_t newer = journal_newer(s);
    *at(s, newer, journal_batch(s, newer, -1) + 30) ^= 4; /* that the segment is in use */
    for (int mounts = 0; mounts < 3; mounts++) {
        cr_assert_eq(store_mount(s), CKB_OK);
        cr_assert_eq(stat_of(s).dropped_tails, mounts < 2);
        cr_assert_eq(stat_of(s).damage, 0);
        assert_all_there(s, 0, 3);
        if (mounts == 1)
            cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK); /* now the journal says so again */
    }
    store_free(s);
}

Test(recovery, S9_a_segment_whose_allocation_was_lost_without_a_trace_is_not_erased)
{
    store *s = store_new();
    put(s, 0, 3);
    uint32_t newer = journal_newer(s), segment = place_of(s, 0).segment;
    memset(at(s, newer, journal_batch(s, newer, -1)), 0, UNIT);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(get(s, 0), CKB_NOTFOUND, "nothing tells yet");
    uint8_t bytes[CHUNK_BYTES];
    chunk_bytes(0, bytes);
    store_open_writer(s);
    for (uint32_t chunk = 100;; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        if (ckb_chunk_write(s->writer, &id, bytes, sizeof(bytes), 0) != CKB_OK)
            break;
    }
    /* The last free segment is kept for deletes. */
    for (uint32_t chunk = 100; stat_of(s).segments_lost == 0 && chunk < 300; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        (void)ckb_chunk_delete(s->writer, &id, CKB_DURABLE);
    }
    cr_assert_eq(stat_of(s).segments_lost, 1);
    cr_assert_eq(get(s, 0), CKB_CORRUPT, "now it is known that something is missing");
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(place_of(s, 0).segment, segment);
    assert_all_there(s, 0, 3);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>chunks */

Test(recovery, R1_a_damaged_payload_is_there_and_corrupt)
{
    store *s = store_new();
    char expected[120];
    for (uint32_t chunk = 0; chunk < 5; chunk++)
        put(s, chunk, chunk + 1);
    ckb_chunk_info info = place_of(s, 2);
    *at(s, info.segment, info.offset + 600) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    snprintf(expected, sizeof(expected), "segment %u offset %llu: payload does not verify", info.segment,
             (unsigned long long)info.offset);
    assert_first_damage(s, expected);
    cr_assert_eq(get(s, 2), CKB_CORRUPT);
    cr_assert_eq(get(s, 99), CKB_NOTFOUND, "nothing unknown was lost");
    assert_all_there(s, 3, 5);
    store_free(s);
}

Test(recovery, R2_a_chunk_of_a_container_that_the_journal_lost_is_damage)
{
    store *s = store_new();
    put(s, 0, 3);
    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
    ckb_chunk_id id = {8, 0, 0};
    uint32_t newer = journal_newer(s);
    uint64_t offset = journal_batch(s, newer, -1);
    cr_assert_eq(ckb_chunk_write(s->writer, &id, "x", 1, CKB_DURABLE), CKB_OK);
    *at(s, newer, offset + 30) ^= 4;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).dropped_tails, 1);
    cr_assert_eq(stat_of(s).damage, 1);
    assert_all_there(s, 0, 3);
    store_free(s);
}

Test(recovery, E1_an_io_error_is_neither_corruption_nor_the_end)
{
    store *s = store_new();
    put(s, 0, 100);
    s->fail_segment = place_of(s, 0).segment;
    cr_assert_eq(store_mount(s), CKB_IO);
    cr_assert_eq(s->fault.status, CKB_IO);
    s->fail_segment = CKB_NO_SEGMENT;
    cr_assert_eq(store_mount(s), CKB_OK);
    assert_all_there(s, 0, 100);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>versions */

static void patch_version(store *s, uint32_t segment, uint16_t major, uint16_t minor)
{
    uint8_t *h = at(s, segment, 0);
    h[8] = (uint8_t)major;
    h[9] = (uint8_t)(major >> 8);
    h[10] = (uint8_t)minor;
    h[11] = (uint8_t)(minor >> 8);
    uint32_t crc = ckb_crc32c(0, h, 60);
    for (int i = 0; i < 4; i++)
        h[60 + i] = (uint8_t)(crc >> (8 * i));
}

Test(recovery, another_major_version_is_refused_with_both_numbers)
{
    store *s = store_new();
    patch_version(s, 0, 2, 0);
    patch_version(s, 1, 2, 0);
    cr_assert_eq(store_mount(s), CKB_VERSION);
    assert_text(&s->fault, "segment 0: format version 2.0, this library knows 1.0");
    store_free(s);
}

Test(recovery, a_later_minor_version_is_mounted_for_reading_only)
{
    store *s = store_new();
    put(s, 0, 3);
    patch_version(s, 0, 1, 1);
    patch_version(s, 1, 1, 1);
    cr_assert_eq(store_mount(s), CKB_VERSION);
    assert_text(&s->fault, "segment 0: format version 1.1, this library knows 1.0");
    ckb_config config = {0};
    config.read_only = true;
    cr_assert_eq(ckb_mount(&s->medium, &config, s->volume_memory, s->volume_bytes, &s->volume, &s->fault),
                 CKB_OK);
    store_free(s);
}

Test(recovery, another_geometry_is_refused_with_both_values)
{
    store *s = store_new();
    s->medium.geometry.segment_bytes /= 2;
    s->medium.geometry.segment_count *= 2;
    cr_assert_eq(store_mount(s), CKB_INVALID);
    assert_text(&s->fault, "geometry: the volume was made with 65536, the medium has 32768");
    store_free(s);
}
