/* Checkpoints of the index: what they spare a mount, when they are taken, and row by row of the recovery table
 * what a mount does with them. Each test asserts what the mount says, to the letter. */
#define _GNU_SOURCE
#include "store.h"

enum { SMALL_SEGMENT = 16384, COUNT = 160, CHUNKS = 200 };

/* A volume with room to spare, where ckb_maintain begins a checkpoint whenever it can. */
static store *checkpoint_store(void)
{
    ckb_config config = {.checkpoint_records = 1, .io_buffer_bytes = 2048};
    return store_new_with(SMALL_SEGMENT, COUNT, UNIT, &config);
}

/* Maintains until nothing is left to do: a checkpoint that was due is in force. */
static void checkpoint(store *s)
{
    bool more = true;
    for (int i = 0; more && i < 10000; i++)
        cr_assert_eq(ckb_maintain(s->volume, 1, &more), CKB_OK);
    cr_assert_not(more, "upkeep has no end");
}

/* With so many chunks, and a checkpoint of them. */
static store *checkpointed(uint32_t chunks)
{
    store *s = checkpoint_store();
    put(s, 0, chunks);
    checkpoint(s);
    cr_assert_neq(stat_of(s).checkpoint_epoch, 0);
    return s;
}

static void overwrite(store *s, uint32_t from, uint32_t to)
{
    uint8_t bytes[CHUNK_BYTES];
    for (uint32_t chunk = from; chunk < to; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        chunk_bytes(chunk, bytes);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, sizeof(bytes), CKB_OVERWRITE), CKB_OK);
    }
    cr_assert_eq(ckb_writer_commit(s->writer), CKB_OK);
}

/* The nth segment whose START is of a checkpoint, or CKB_NO_SEGMENT. */
static uint32_t checkpoint_segment(store *s, int n)
{
    for (uint32_t segment = 2; segment < COUNT; segment++) {
        const uint8_t *start = at(s, segment, UNIT);
        if (start[4] == 1 && start[20] == 3 && n-- == 0)
            return segment;
    }
    return CKB_NO_SEGMENT;
}

static uint64_t reads; /* of the medium */

static int counted_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    reads++;
    return store_read(context, segment, offset, buffer, length);
}

static uint64_t reads_of_mount(store *s, bool ignore)
{
    s->config.ignore_checkpoint = ignore;
    s->medium.read = counted_read;
    reads = 0;
    cr_assert_eq(store_mount(s), CKB_OK);
    s->config.ignore_checkpoint = false;
    s->medium.read = store_read;
    return reads;
}

/* ---------------------------------------------------------------------------------------------- >>recovery */

Test(checkpoint, C1_one_in_force_spares_the_mount_the_segments_that_it_covers)
{
    store *s = checkpointed(CHUNKS);
    ckb_stat before = stat_of(s);
    cr_assert_eq(before.checkpoint_entries, CHUNKS);
    cr_assert_gt(before.segments_checkpoint, 0);
    put(s, CHUNKS, CHUNKS + 50);
    cr_assert_eq(store_mount(s), CKB_OK);
    ckb_stat stat = stat_of(s);
    cr_assert_eq(stat.mount_entries, CHUNKS);
    cr_assert_geq(stat.mount_covered, 10);
    cr_assert_leq(stat.mount_scanned + stat.mount_summaries, 5);
    cr_assert_eq(stat.checkpoint_epoch, before.checkpoint_epoch);
    cr_assert_eq(stat.checkpoint_bytes, before.checkpoint_bytes);
    cr_assert_eq(stat.index_used, CHUNKS + 50);
    cr_assert_eq(stat.damage, 0);
    assert_all_there(s, 0, CHUNKS + 50);
    store_free(s);
}

Test(checkpoint, C1_deleted_chunks_stay_deleted)
{
    store *s = checkpoint_store();
    put(s, 0, CHUNKS);
    for (uint32_t chunk = 0; chunk < 10; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK);
    }
    put(s, CHUNKS, CHUNKS + 20);
    checkpoint(s);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS + 20);
    for (uint32_t chunk = 0; chunk < 10; chunk++)
        cr_assert_eq(get(s, chunk), CKB_DELETED);
    assert_all_there(s, 10, CHUNKS + 20);
    store_free(s);
}

Test(checkpoint, C2_an_interrupted_one_leaves_the_older_in_force_and_its_segments_free)
{
    store *s = checkpointed(CHUNKS);
    uint64_t epoch = stat_of(s).checkpoint_epoch;
    put(s, CHUNKS, 2 * CHUNKS);
    for (int steps = 0; stat_of(s).checkpoint_epoch == epoch; steps++) {
        cr_assert_eq(ckb_maintain(s->volume, 1, NULL), CKB_OK);
        store *other = checkpoint_store(); /* looks at the same bytes */
        memcpy(other->image, s->image, (size_t)COUNT * SMALL_SEGMENT);
        cr_assert_eq(store_mount(other), CKB_OK);
        ckb_stat stat = stat_of(other);
        cr_assert_eq(stat.damage, 0);
        cr_assert_eq(stat.dropped_tails, 0);
        cr_assert_eq(stat.mount_entries, stat.checkpoint_epoch == epoch ? CHUNKS : 2 * CHUNKS);
        cr_assert_eq(stat.segments_free + stat.segments_full + stat.segments_checkpoint + stat.segments_journal,
                     COUNT);
        assert_all_there(other, 0, 2 * CHUNKS);
        checkpoint(other); /* what is left of it is in nobody's way */
        cr_assert_eq(store_mount(other), CKB_OK);
        assert_all_there(other, 0, 2 * CHUNKS);
        store_free(other);
        cr_assert_lt(steps, 200);
    }
    store_free(s);
}

Test(checkpoint, C3_a_damaged_one_is_said_and_all_segments_are_read)
{
    store *s = checkpointed(CHUNKS);
    char expected[160];
    uint32_t segment = checkpoint_segment(s, 0);
    ckb_stat before = stat_of(s);
    *at(s, segment, 3 * UNIT) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    ckb_stat stat = stat_of(s);
    snprintf(expected, sizeof(expected),
             "segment %u offset %u: the checkpoint does not verify, all segments are read instead", segment,
             2 * UNIT);
    assert_first_damage(s, expected);
    cr_assert_eq(stat.damage, 1);
    cr_assert_eq(stat.mount_entries, 0);
    cr_assert_eq(stat.mount_covered, 0);
    cr_assert_eq(stat.checkpoint_epoch, 0);
    cr_assert_eq(stat.segments_checkpoint, 0);
    cr_assert_eq(stat.segments_free,
                 before.segments_free + before.segments_prepared + before.segments_checkpoint);
    cr_assert_eq(stat.index_used, CHUNKS);
    assert_all_there(s, 0, CHUNKS);
    cr_assert_eq(get(s, 5000), CKB_NOTFOUND, "no chunk was lost");
    /* The next one takes its place. */
    checkpoint(s);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS);
    cr_assert_eq(stat_of(s).damage, 0);
    store_free(s);
}

Test(checkpoint, C3_a_check_names_the_damage)
{
    store *s = checkpointed(CHUNKS);
    ckb_check_report report;
    cr_assert_eq(ckb_check(s->volume, s->reader, NULL, NULL, &report), CKB_OK);
    cr_assert_eq(report.chunks, CHUNKS);
    *at(s, checkpoint_segment(s, 0), 3 * UNIT) ^= 1;
    cr_assert_eq(ckb_check(s->volume, s->reader, NULL, NULL, &report), CKB_CORRUPT);
    cr_assert_eq(report.damage, 1);
    cr_assert_eq(report.chunks_bad, 0);
    store_free(s);
}

Test(checkpoint, C4_a_missing_segment_of_it_is_said_and_no_chunk_is_doubtful)
{
    for (int which = 0; which < 2; which++) {
        store *s = checkpointed(700);
        char expected[160];
        cr_assert_eq(stat_of(s).segments_checkpoint, 2);
        uint32_t segment = checkpoint_segment(s, which);
        memset(at(s, segment, 0), 0, SMALL_SEGMENT);
        cr_assert_eq(store_mount(s), CKB_OK);
        snprintf(expected, sizeof(expected),
                 "segment %u offset %u: the checkpoint does not verify, all segments are read instead", segment,
                 UNIT);
        assert_first_damage(s, expected);
        cr_assert_eq(stat_of(s).segments_lost, 0);
        cr_assert_eq(stat_of(s).segments_checkpoint, 0);
        cr_assert_eq(get(s, 5000), CKB_NOTFOUND);
        assert_all_there(s, 0, 700);
        store_free(s);
    }
}

Test(checkpoint, C4_a_missing_header_of_it_matters_to_nobody)
{
    store *s = checkpointed(CHUNKS);
    memset(at(s, checkpoint_segment(s, 0), 0), 0, UNIT);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).damage, 0);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS);
    store_free(s);
}

Test(checkpoint, C5_segments_freed_and_used_again_since_are_read)
{
    store *s = checkpointed(CHUNKS);
    uint64_t epoch = stat_of(s).checkpoint_epoch;
    uint32_t first = place_of(s, 0).segment;
    bool reused = false;
    s->config.checkpoint_records = UINT32_MAX;
    cr_assert_eq(store_mount(s), CKB_OK);
    store_open_writer(s);
    for (uint32_t round = 0; round < 12; round++) {
        overwrite(s, 0, CHUNKS);
        cr_assert_eq(ckb_maintain(s->volume, 100, NULL), CKB_OK);
        for (uint32_t chunk = 0; chunk < CHUNKS; chunk++)
            reused |= place_of(s, chunk).segment == first;
    }
    cr_assert(reused);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).checkpoint_epoch, epoch);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS);
    cr_assert_eq(stat_of(s).mount_covered, 0);
    cr_assert_eq(stat_of(s).index_used, CHUNKS);
    cr_assert_eq(stat_of(s).damage, 0);
    cr_assert_eq(place_of(s, 0).version, 13);
    assert_all_there(s, 0, CHUNKS);
    store_free(s);
}

Test(checkpoint, C6_where_the_journal_lost_its_tail_all_segments_are_read)
{
    store *s = checkpointed(CHUNKS);
    ckb_probe_info info[2];
    for (uint32_t side = 0; side < 2; side++)
        cr_assert_eq(ckb_probe(at(s, side, 0), &info[side]), CKB_OK);
    uint32_t newer = info[1].epoch > info[0].epoch;
    uint64_t last = UNIT;
    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
    while (at(s, newer, last + UNIT)[4] == 7)
        last += UNIT;
    *at(s, newer, last + 30) ^= 1; /* the container's fact */
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).dropped_tails, 1);
    cr_assert_eq(stat_of(s).mount_entries, 0);
    cr_assert_eq(stat_of(s).damage, 0);
    cr_assert_eq(stat_of(s).segments_checkpoint, 0);
    assert_all_there(s, 0, CHUNKS);
    store_free(s);
}

Test(checkpoint, C7_a_segment_in_which_a_mount_found_damage_is_never_covered)
{
    store *s = checkpoint_store();
    for (uint32_t chunk = 0; chunk < 8; chunk++)
        put(s, chunk, chunk + 1);
    put(s, 8, CHUNKS);
    ckb_chunk_info info = place_of(s, 4);
    *at(s, info.segment, info.offset + 9) ^= 1;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(get(s, 4), CKB_CORRUPT);
    store_open_writer(s);
    checkpoint(s);
    for (int mounts = 0; mounts < 3; mounts++) {
        cr_assert_eq(store_mount(s), CKB_OK);
        cr_assert_gt(stat_of(s).mount_entries, 0);
        cr_assert_eq(stat_of(s).damage, 1);
        cr_assert_eq(get(s, 4), CKB_CORRUPT, "lost is not the same as never written");
        store_open_writer(s);
        put(s, CHUNKS + 100 * (uint32_t)mounts, CHUNKS + 100 * (uint32_t)mounts + 100);
        checkpoint(s);
    }
    store_free(s);
}

Test(checkpoint, E1_an_io_error_is_neither_damage_nor_a_reason_to_do_without)
{
    store *s = checkpointed(CHUNKS);
    s->fail_segment = checkpoint_segment(s, 0);
    cr_assert_eq(store_mount(s), CKB_IO);
    cr_assert_eq(s->fault.status, CKB_IO);
    cr_assert_eq(s->fault.segment, s->fail_segment);
    s->fail_segment = CKB_NO_SEGMENT;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>use */

Test(checkpoint, spares_a_mount_most_reads_of_the_medium)
{
    store *s = checkpointed(700);
    uint64_t with = reads_of_mount(s, false), without = reads_of_mount(s, true);
    printf("reads of a mount of 700 chunks in %u segments: %llu with a checkpoint, %llu without\n",
           stat_of(s).segments_full, (unsigned long long)with, (unsigned long long)without);
    /* The journal, a batch for each of 62 segments in a buffer that holds three of them; two STARTs and the batches
     * of the checkpoint; the open segment. */
    cr_assert_leq(with, 64);
    cr_assert_geq(without, 600);
    store_free(s);
}

Test(checkpoint, is_given_up_by_the_first_write_of_a_mount_that_ignores_it)
{
    store *s = checkpointed(CHUNKS);
    s->config.ignore_checkpoint = true;
    cr_assert_eq(store_mount(s), CKB_OK);
    s->config.ignore_checkpoint = false;
    cr_assert_eq(stat_of(s).mount_entries, 0);
    cr_assert_eq(stat_of(s).checkpoint_epoch, 0);
    assert_all_there(s, 0, CHUNKS);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS, "a mount alone changes nothing");
    s->config.ignore_checkpoint = true;
    cr_assert_eq(store_mount(s), CKB_OK);
    s->config.ignore_checkpoint = false;
    cr_assert_eq(ckb_container_create(s->volume, 9), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).checkpoint_epoch, 0);
    assert_all_there(s, 0, CHUNKS);
    store_free(s);
}

Test(checkpoint, is_not_begun_twice_for_the_same_records)
{
    store *s = checkpointed(CHUNKS);
    uint64_t epoch = stat_of(s).checkpoint_epoch;
    put(s, CHUNKS, CHUNKS + 1); /* no segment became full */
    checkpoint(s);
    cr_assert_eq(stat_of(s).checkpoint_epoch, epoch);
    put(s, CHUNKS + 1, CHUNKS + 1 + CHUNKS / 2);
    checkpoint(s);
    cr_assert_neq(stat_of(s).checkpoint_epoch, epoch);
    cr_assert_eq(stat_of(s).checkpoint_entries, CHUNKS + 1 + CHUNKS / 2);
    store_free(s);
}

Test(checkpoint, takes_no_room_where_there_is_little)
{
    ckb_config config = {.checkpoint_records = 1};
    store *s = store_new_with(SMALL_SEGMENT, 16, UNIT, &config);
    put(s, 0, 100); /* six of the fourteen left over are not eight */
    checkpoint(s);
    cr_assert_eq(stat_of(s).checkpoint_epoch, 0);
    cr_assert_eq(stat_of(s).fresh_records, 0, "the next try waits for more records");
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    assert_all_there(s, 0, 100);
    store_free(s);
}

Test(checkpoint, is_taken_at_an_unmount_that_it_is_worth_it)
{
    ckb_config config = {.max_chunks = 8192};
    store *s = store_new_with(SMALL_SEGMENT, 256, UNIT, &config);
    put(s, 0, 900);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).checkpoint_epoch, 0, "too little for one");
    store_open_writer(s);
    put(s, 900, 1200);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    ckb_stat stat = stat_of(s);
    cr_assert_eq(stat.mount_entries, 1200);
    cr_assert(stat.clean);
    cr_assert_eq(stat.mount_scanned + stat.mount_summaries, 0);
    assert_all_there(s, 0, 1200);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).checkpoint_epoch, stat.checkpoint_epoch, "and not again without a reason");
    store_free(s);
}

Test(checkpoint, an_index_that_is_too_small_for_it_says_no_space)
{
    store *s = checkpointed(CHUNKS);
    ckb_config small = {.max_chunks = CHUNKS - 10};
    cr_assert_eq(ckb_mount(&s->medium, &small, s->volume_memory, s->volume_bytes, &s->volume, &s->fault),
                 CKB_NOSPACE);
    assert_text(&s->fault, "index: no space, room for 190 chunks");
    store_free(s);
}

Test(checkpoint, is_read_with_another_index_and_a_smaller_buffer)
{
    store *s = checkpointed(CHUNKS);
    ckb_config other = {.max_chunks = 300, .io_buffer_bytes = UNIT * 2};
    ckb_stat stat;
    cr_assert_eq(ckb_mount(&s->medium, &other, s->volume_memory, s->volume_bytes, &s->volume, &s->fault),
                 CKB_OK);
    ckb_volume_stat(s->volume, &stat);
    cr_assert_eq(stat.mount_entries, CHUNKS);
    cr_assert_eq(ckb_reader_open(s->volume, s->reader_memory, s->reader_bytes, &s->reader), CKB_OK);
    assert_all_there(s, 0, CHUNKS);
    store_free(s);
}

Test(checkpoint, is_finished_by_an_unmount_in_the_middle_of_it)
{
    store *s = checkpoint_store();
    put(s, 0, CHUNKS);
    cr_assert_eq(ckb_maintain(s->volume, 5, NULL), CKB_OK); /* two segments prepared, begun, two batches */
    cr_assert_eq(stat_of(s).checkpoint_epoch, 0);
    cr_assert_eq(stat_of(s).segments_open, 2, "the writer's, and the checkpoint's");
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS);
    cr_assert(stat_of(s).clean);
    store_free(s);
}

Test(checkpoint, of_a_deleted_container_brings_nothing_back)
{
    store *s = checkpointed(CHUNKS);
    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(stat_of(s).mount_entries, CHUNKS);
    cr_assert_eq(stat_of(s).index_used, 0);
    cr_assert_eq(get(s, 0), CKB_DELETED);
    checkpoint(s);
    cr_assert_eq(stat_of(s).segments_full, 0);
    store_free(s);
}
