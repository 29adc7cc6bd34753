/* Scrub: in pieces, over restarts, beside other work; what is damaged is named and marked, and nothing else. */
#define _GNU_SOURCE
#include "store.h"

enum { FINDINGS_MAX = 64 };

typedef struct scrubbing {
    ckb_check_report report;
    ckb_finding findings[FINDINGS_MAX];
    uint32_t count;
    bool more;
} scrubbing;

static int note(void *context, const ckb_finding *finding)
{
    scrubbing *all = context;
    cr_assert_lt(all->count, FINDINGS_MAX);
    all->findings[all->count++] = *finding;
    return 0;
}

static int scrub(store *s, scrubbing *all, uint64_t budget)
{
    return ckb_scrub(s->volume, s->reader, budget, note, all, &all->report, &all->more);
}

/* A whole pass in pieces of `budget` bytes; the status of the worst piece. */
static int scrub_pass(store *s, scrubbing *all, uint64_t budget)
{
    int result = CKB_OK;
    memset(all, 0, sizeof *all);
    for (all->more = true; all->more;) {
        int status = scrub(s, all, budget);
        if (status != CKB_OK && result != CKB_CORRUPT)
            result = status;
    }
    return result;
}

static uint32_t state_of(store *s, uint64_t container)
{
    ckb_container_info info;
    cr_assert_eq(ckb_container_stat(s->volume, container, &info), CKB_OK);
    return (uint32_t)info.state;
}

static void remount(store *s, bool clean)
{
    if (clean)
        cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    store_open_writer(s);
}

static void delete_chunk(store *s, uint32_t chunk)
{
    ckb_chunk_id id = chunk_id(chunk);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, CKB_DURABLE), CKB_OK);
}

static void damage_payload(store *s, uint32_t chunk)
{
    ckb_chunk_info place = place_of(s, chunk);
    *at(s, place.segment, place.offset + 40 + 500) ^= 1;
}

static void damage_header(store *s, uint32_t chunk)
{
    ckb_chunk_info place = place_of(s, chunk);
    *at(s, place.segment, place.offset + 9) ^= 4;
}

Test(scrub, verifies_all_that_a_check_does_whatever_the_pieces)
{
    store *s = store_new();
    ckb_check_report check;
    put(s, 0, 200);
    cr_assert_eq(ckb_check(s->volume, s->reader, NULL, NULL, &check), CKB_OK);
    const uint64_t budgets[] = {1, 1000, 4096, 65536, UINT64_MAX};
    for (size_t i = 0; i < sizeof budgets / sizeof budgets[0]; i++) {
        scrubbing all;
        cr_assert_eq(scrub_pass(s, &all, budgets[i]), CKB_OK);
        cr_assert_eq(all.count, 0);
        cr_assert_eq(all.report.chunks, check.chunks, "pieces of %llu", (unsigned long long)budgets[i]);
        cr_assert_eq(all.report.bytes, check.bytes);
        cr_assert_eq(all.report.segments, check.segments);
        cr_assert_eq(stat_of(s).scrub_passes, i + 1);
        cr_assert_eq(stat_of(s).scrub_segment, 0);
    }
    store_free(s);
}

/* Where a crash left nothing but the records to tell where a segment ends, a piece may end just there. */
Test(scrub, finds_nothing_wrong_after_a_crash_whatever_the_pieces)
{
    for (uint32_t chunks = 1; chunks < 120; chunks++) {
        ckb_config config = {.max_chunks = 1000};
        store *s = store_new_with(8192, 40, 128, &config);
        scrubbing all;
        put(s, 0, chunks);
        delete_chunk(s, 0);
        remount(s, false);
        put(s, 200, 201);
        remount(s, false);
        for (uint64_t budget = 1; budget < 3000; budget += 700) {
            cr_assert_eq(scrub_pass(s, &all, budget), CKB_OK, "%u chunks in pieces of %d", chunks, (int)budget);
            for (uint32_t i = 0; i < all.count; i++)
                cr_assert_eq(all.findings[i].fault.topic, CKB_TOPIC_TAIL);
        }
        store_free(s);
    }
}

Test(scrub, reads_no_more_than_its_budget_and_one_record)
{
    store *s = store_new();
    scrubbing all = {.more = true};
    uint64_t before = 0;
    put(s, 0, 300);
    while (all.more) {
        cr_assert_eq(scrub(s, &all, 8000), CKB_OK);
        uint64_t now = stat_of(s).scrub_bytes;
        cr_assert_leq(now - before, 8000 + 2048, "%llu bytes", (unsigned long long)(now - before));
        before = now;
    }
    cr_assert_gt(before, 300000);
    store_free(s);
}

Test(scrub, goes_on_where_it_stopped_after_a_clean_restart_and_not_far_before_after_a_crash)
{
    ckb_config config = {.max_chunks = 20000};
    store *s = store_new_with(16384, 256, UNIT, &config);
    scrubbing all = {.more = true};
    put(s, 0, 3000);
    while (stat_of(s).scrub_segment < 30)
        cr_assert_eq(scrub(s, &all, 5000), CKB_OK);
    uint32_t stopped = stat_of(s).scrub_segment;
    uint64_t verified = all.report.chunks;
    remount(s, true);
    cr_assert_eq(stat_of(s).scrub_segment, stopped);
    while (stat_of(s).scrub_segment < 150)
        cr_assert_eq(scrub(s, &all, 5000), CKB_OK);
    remount(s, false);
    uint32_t found = stat_of(s).scrub_segment;
    cr_assert(found > 150 - 65 && found <= 150, "goes on with segment %u", found);
    while (all.more)
        cr_assert_eq(scrub(s, &all, 50000), CKB_OK);
    cr_assert_geq(all.report.chunks, 3000);
    cr_assert_lt(all.report.chunks, 3000 + 65 * 16 + 16, "%llu chunks, %llu of them at first",
                 (unsigned long long)all.report.chunks, (unsigned long long)verified);
    cr_assert_eq(stat_of(s).scrub_passes, 1);
    remount(s, false);
    cr_assert_eq(stat_of(s).scrub_passes, 1, "a complete pass is forgotten");
    store_free(s);
}

Test(scrub, names_a_damaged_chunk_and_marks_its_container_for_good)
{
    store *s = store_new();
    scrubbing all;
    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
    put(s, 0, 100);
    ckb_chunk_info place = place_of(s, 41);
    damage_payload(s, 41);
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_CORRUPT);
    cr_assert_eq(all.count, 1);
    const ckb_finding *f = &all.findings[0];
    cr_assert(f->has_chunk);
    cr_assert_eq(f->fault.status, CKB_CORRUPT);
    cr_assert_eq(f->fault.topic, CKB_TOPIC_PAYLOAD);
    cr_assert_eq(f->fault.segment, place.segment);
    cr_assert_eq(f->fault.offset, place.offset);
    cr_assert_eq(f->chunk.id.container, 7);
    cr_assert_eq(f->chunk.id.chunk, 41);
    cr_assert_eq(all.report.chunks, 99);
    cr_assert_eq(all.report.chunks_bad, 1);
    cr_assert_eq(stat_of(s).scrub_damage, 1);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_UNHEALTHY);
    cr_assert_eq(state_of(s, 8), CKB_CONTAINER_OPEN);
    remount(s, false);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_UNHEALTHY);
    /* What is not damaged can be read, nothing can be added, and it can be deleted. */
    cr_assert_eq(get(s, 41), CKB_CORRUPT);
    assert_all_there(s, 0, 41);
    assert_all_there(s, 42, 100);
    ckb_chunk_id id = chunk_id(500);
    cr_assert_eq(ckb_chunk_write(s->writer, &id, "x", 1, 0), CKB_READONLY);
    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_OK);
    (void)scrub_pass(s, &all, 4096);
    cr_assert_eq(all.report.chunks_bad, 0);
    store_free(s);
}

Test(scrub, marks_a_closed_container_too_and_keeps_it_so)
{
    store *s = store_new();
    scrubbing all;
    put(s, 0, 50);
    cr_assert_eq(ckb_container_close(s->volume, 7), CKB_OK);
    damage_payload(s, 3);
    cr_assert_eq(scrub_pass(s, &all, UINT64_MAX), CKB_CORRUPT);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_UNHEALTHY);
    cr_assert_eq(ckb_container_close(s->volume, 7), CKB_OK);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_UNHEALTHY);
    store_free(s);
}

/* C15: a damaged header is followed by good records. */
Test(scrub, finds_the_chunk_of_a_damaged_header_and_goes_on_behind_it)
{
    for (uint64_t budget = 700; budget < 100000; budget *= 12) {
        store *s = store_new();
        scrubbing all;
        put(s, 0, 400);
        ckb_chunk_info first = place_of(s, 100), second = place_of(s, 103);
        damage_header(s, 100);
        damage_header(s, 103);
        cr_assert_eq(scrub_pass(s, &all, budget), CKB_CORRUPT);
        cr_assert_eq(all.report.chunks, 398);
        cr_assert_eq(all.report.chunks_bad, 2);
        uint32_t seen = 0;
        for (uint32_t i = 0; i < all.count; i++) {
            const ckb_finding *f = &all.findings[i];
            if (!f->has_chunk)
                continue;
            cr_assert(f->chunk.id.chunk == 100 || f->chunk.id.chunk == 103, "chunk %u is blamed",
                      f->chunk.id.chunk);
            cr_assert_eq(f->fault.offset, f->chunk.id.chunk == 100 ? first.offset : second.offset);
            seen++;
        }
        cr_assert_eq(seen, 2);
        cr_assert_eq(state_of(s, 7), CKB_CONTAINER_UNHEALTHY);
        store_free(s);
    }
}

Test(scrub, blames_no_chunk_for_damage_in_what_was_deleted_or_overwritten)
{
    store *s = store_new();
    scrubbing all;
    uint8_t bytes[CHUNK_BYTES];
    put(s, 0, 100);
    ckb_chunk_info deleted = place_of(s, 10), replaced = place_of(s, 20);
    delete_chunk(s, 10);
    ckb_chunk_id id = chunk_id(20);
    chunk_bytes(20, bytes);
    cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, sizeof bytes, CKB_OVERWRITE | CKB_DURABLE), CKB_OK);
    *at(s, deleted.segment, deleted.offset + 540) ^= 1;
    *at(s, replaced.segment, replaced.offset + 9) ^= 1;
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_CORRUPT);
    for (uint32_t i = 0; i < all.count; i++)
        cr_assert_not(all.findings[i].has_chunk, "chunk %u is blamed", all.findings[i].chunk.id.chunk);
    cr_assert_eq(all.report.chunks_bad, 0);
    cr_assert_eq(all.report.chunks, 99);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_OPEN);
    store_free(s);
}

Test(scrub, blames_nobody_for_a_segment_that_cannot_be_read)
{
    store *s = store_new();
    scrubbing all;
    put(s, 0, 200);
    s->fail_segment = place_of(s, 100).segment;
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_IO);
    cr_assert_gt(all.report.io_errors, 0);
    cr_assert_eq(all.report.damage, 0);
    cr_assert_eq(all.report.chunks_bad, 0);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_OPEN);
    cr_assert_eq(stat_of(s).scrub_damage, 0);
    s->fail_segment = CKB_NO_SEGMENT;
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_OK);
    cr_assert_eq(all.report.chunks, 200);
    store_free(s);
}

/* Reads of some bytes of one segment fail, or lie the first time. */
typedef struct bad_place {
    store *s;
    uint32_t segment;
    uint64_t from, to;
    uint32_t lies; /* so many reads of it are wrong; otherwise they fail */
} bad_place;

static bad_place bad;

static int bad_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    bool hit = segment == bad.segment && offset < bad.to && offset + length > bad.from;
    int status = store_read(context, segment, offset, buffer, length);
    if (!hit)
        return status;
    if (bad.lies == 0)
        return CKB_IO;
    if (--bad.lies == 0)
        bad.segment = CKB_NO_SEGMENT;
    ((uint8_t *)buffer)[bad.from > offset ? bad.from - offset : 0] ^= 1;
    return status;
}

static store *store_with_a_bad_place(void)
{
    ckb_config config = {0};
    store *s = store_make(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    s->medium.read = bad_read;
    bad = (bad_place){s, CKB_NO_SEGMENT, 0, 0, 0};
    cr_assert_eq(store_format(s), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
    store_open_writer(s);
    return s;
}

Test(scrub, verifies_what_lies_behind_a_place_that_cannot_be_read)
{
    store *s = store_with_a_bad_place();
    scrubbing all;
    put(s, 0, 200);
    ckb_chunk_info place = place_of(s, 70), behind = place_of(s, 75);
    cr_assert_eq(place.segment, behind.segment);
    damage_payload(s, 75);
    bad = (bad_place){s, place.segment, place.offset + 200, place.offset + 300, 0};
    /* The buffer must not reach from the place to the chunk behind. */
    free(s->reader_memory);
    s->reader_bytes = ckb_reader_memory(&s->medium.geometry, 1);
    s->reader_memory = malloc(s->reader_bytes);
    cr_assert_eq(ckb_reader_open(s->volume, s->reader_memory, s->reader_bytes, &s->reader), CKB_OK);
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_CORRUPT);
    bool named = false;
    for (uint32_t i = 0; i < all.count; i++) {
        const ckb_finding *f = &all.findings[i];
        named = named || (f->has_chunk && f->fault.status == CKB_CORRUPT && f->chunk.id.chunk == 75);
        cr_assert(!f->has_chunk || f->fault.status == CKB_IO || f->chunk.id.chunk == 75);
    }
    cr_assert(named, "the damaged chunk behind is not found");
    cr_assert_eq(all.report.chunks_bad, 1);
    store_free(s);
}

Test(scrub, reads_twice_before_it_blames_a_container)
{
    store *s = store_with_a_bad_place();
    scrubbing all;
    put(s, 0, 100);
    ckb_chunk_info place = place_of(s, 50);
    bad = (bad_place){s, place.segment, place.offset + 540, place.offset + 541, 1};
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_OK);
    cr_assert_eq(all.report.reread, 1);
    cr_assert_eq(all.count, 0);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_OPEN);
    store_free(s);
}

/* C22: the last piece of a chunk is shorter than the window. */
Test(scrub, verifies_chunks_of_every_odd_size_and_finds_one_flipped_bit)
{
    static const uint32_t sizes[] = {1,    511,  512,  513,   671,   4095,  4096,  4097,
                                     8191, 8192, 8193, 16383, 16384, 16385, 32768, 40001};
    enum { COUNT = sizeof sizes / sizeof sizes[0] };
    store *s = store_new_with((uint64_t)256 << 10, 12, UNIT, NULL);
    scrubbing all;
    uint8_t *bytes = malloc(65536);
    for (uint32_t i = 0; i < COUNT; i++) {
        ckb_chunk_id id = chunk_id(i);
        test_fill(bytes, sizes[i], i);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, sizes[i], CKB_DURABLE), CKB_OK);
    }
    for (int twice = 0; twice < 2; twice++) {
        cr_assert_eq(scrub_pass(s, &all, 512), CKB_OK);
        cr_assert_eq(all.report.chunks, COUNT);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        ckb_chunk_info place = place_of(s, i);
        uint32_t tables = sizes[i] > CKB_WINDOW_BYTES ? (sizes[i] / CKB_WINDOW_BYTES + 2) / 2 * 8 : 0;
        uint64_t last = place.offset + 40 + tables + sizes[i] - 1;
        uint8_t *byte = at(s, place.segment, last);
        *byte ^= 0x80;
        memset(&all, 0, sizeof all);
        cr_assert_eq(scrub_pass(s, &all, 512), CKB_CORRUPT, "%u bytes", sizes[i]);
        cr_assert_eq(all.count, 1, "%u bytes: %u findings", sizes[i], all.count);
        cr_assert_eq(all.findings[0].chunk.id.chunk, i);
        *byte ^= 0x80;
    }
    free(bytes);
    store_free(s);
}

Test(scrub, of_a_volume_mounted_for_reading_reports_and_writes_nothing)
{
    store *s = store_new();
    scrubbing all;
    put(s, 0, 100);
    damage_payload(s, 9);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    size_t bytes = SEGMENT_BYTES * SEGMENTS;
    uint8_t *before = malloc(bytes);
    memcpy(before, s->image, bytes);
    s->config.read_only = true;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_CORRUPT);
    cr_assert_eq(all.report.chunks_bad, 1);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_OPEN);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_arr_eq(s->image, before, bytes);
    free(before);
    store_free(s);
}

Test(scrub, of_a_full_volume_finds_and_marks_damage)
{
    store *s = store_new();
    scrubbing all;
    uint8_t bytes[CHUNK_BYTES] = {0};
    int status = CKB_OK;
    uint32_t chunks = 0;
    while (status == CKB_OK) {
        ckb_chunk_id id = chunk_id(chunks);
        status = ckb_chunk_write(s->writer, &id, bytes, sizeof bytes, 0);
        chunks += status == CKB_OK;
    }
    cr_assert_eq(status, CKB_NOSPACE);
    cr_assert_eq(ckb_writer_commit(s->writer), CKB_OK);
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_OK);
    cr_assert_eq(all.report.chunks, chunks);
    damage_payload(s, 5);
    cr_assert_eq(scrub_pass(s, &all, 4096), CKB_CORRUPT);
    cr_assert_eq(all.report.chunks_bad, 1);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_UNHEALTHY);
    store_free(s);
}

Test(scrub, beside_deletes_and_compaction_blames_nobody)
{
    ckb_config config = {.max_chunks = 20000};
    store *s = store_new_with(16384, 128, UNIT, &config);
    scrubbing all = {.more = true};
    uint32_t passes = 0, next = 900;
    put(s, 0, next);
    for (uint32_t n = 0; passes < 6; n++) {
        cr_assert_eq(scrub(s, &all, 1500), CKB_OK, "step %u: %u findings", n, all.count);
        passes += !all.more;
        delete_chunk(s, next - 900);
        put(s, next, next + 1);
        next++;
        bool more;
        cr_assert_eq(ckb_compact(s->volume, 5, 3, &more), CKB_OK);
    }
    cr_assert_eq(all.count, 0);
    cr_assert_eq(state_of(s, 7), CKB_CONTAINER_OPEN);
    store_free(s);
}

Test(scrub, names_the_entry_of_a_damaged_log)
{
    store *s = store_new();
    scrubbing all;
    ckb_log *log;
    size_t bytes = ckb_log_memory(&s->medium.geometry, NULL);
    void *memory = malloc(bytes);
    uint64_t index;
    cr_assert_eq(ckb_log_create(s->volume, "events", 1), CKB_OK);
    cr_assert_eq(ckb_log_open(s->volume, "events", NULL, memory, bytes, &log, NULL), CKB_OK);
    for (int n = 0; n < 100; n++)
        cr_assert_eq(ckb_log_append(log, 1, "0123456789abcdef", 16, 0, &index), CKB_OK);
    cr_assert_eq(ckb_log_commit(log, index), CKB_OK);
    cr_assert_eq(scrub_pass(s, &all, 100), CKB_OK);
    cr_assert_eq(all.report.entries, 100);
    ckb_log_cursor *cursor;
    size_t cursor_bytes = ckb_log_cursor_memory(&s->medium.geometry, 0);
    void *cursor_memory = malloc(cursor_bytes);
    ckb_entry entry;
    char data[16];
    cr_assert_eq(ckb_log_cursor_open(log, 0, cursor_memory, cursor_bytes, &cursor), CKB_OK);
    cr_assert_eq(ckb_log_read(cursor, 42, &entry, data, sizeof data), CKB_OK);
    *at(s, entry.segment, entry.offset + 41) ^= 1;
    cr_assert_eq(scrub_pass(s, &all, 100), CKB_CORRUPT);
    cr_assert_eq(all.count, 1);
    cr_assert_str_eq(all.findings[0].log, "events");
    cr_assert_eq(all.findings[0].fault.index, 42);
    free(cursor_memory);
    free(memory);
    store_free(s);
}

static int scrub_again(void *context, const ckb_finding *finding)
{
    store *s = context;
    ckb_check_report report = {0};
    bool more;
    (void)finding;
    cr_assert_eq(ckb_scrub(s->volume, s->reader, 1, NULL, NULL, &report, &more), CKB_BUSY);
    return 1;
}

Test(scrub, runs_once_at_a_time_and_stops_when_told)
{
    store *s = store_new();
    ckb_check_report report = {0};
    bool more = false;
    put(s, 0, 100);
    damage_payload(s, 10);
    damage_payload(s, 11);
    cr_assert_eq(ckb_scrub(s->volume, s->reader, UINT64_MAX, scrub_again, s, &report, &more), CKB_CORRUPT);
    cr_assert(more);
    cr_assert_eq(report.chunks_bad, 1);
    cr_assert_eq(ckb_scrub(s->volume, s->reader, UINT64_MAX, NULL, NULL, &report, &more), CKB_CORRUPT);
    cr_assert_not(more);
    cr_assert_eq(report.chunks_bad, 2);
    cr_assert_eq(report.chunks, 98);
    store_free(s);
}
