/* Growth: a medium that became larger is taken into use at once or not at all, whatever happens meanwhile. */
#define _GNU_SOURCE
#include "media.h"
#include "store.h"

enum { SMALL = 12, LARGE = 30 };

static void mount_with(store *s, uint32_t segments)
{
    s->medium.geometry.segment_count = segments;
    cr_assert_eq(store_mount(s), CKB_OK, "%s", ckb_status_text(s->fault.status));
    store_open_writer(s);
}

static store *small_store(uint64_t segment_bytes, const ckb_config *config)
{
    store *s = store_make(segment_bytes, LARGE, UNIT, config);
    s->medium.geometry.segment_count = SMALL;
    cr_assert_eq(store_format(s), CKB_OK);
    mount_with(s, SMALL);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
    return s;
}

static uint32_t fill(store *s, uint32_t from)
{
    uint8_t bytes[CHUNK_BYTES];
    for (uint32_t chunk = from;; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        chunk_bytes(chunk, bytes);
        int status = ckb_chunk_write(s->writer, &id, bytes, sizeof bytes, 0);
        if (status == CKB_OK)
            continue;
        cr_assert_eq(status, CKB_NOSPACE);
        cr_assert_eq(ckb_writer_commit(s->writer), CKB_OK);
        return chunk;
    }
}

static void assert_sums(store *s)
{
    ckb_stat stat = stat_of(s);
    cr_assert_eq(stat.free_bytes + stat.live_bytes + stat.dead_bytes + stat.reserved_bytes,
                 stat.geometry.segment_bytes * stat.geometry.segment_count);
}

Test(grow, takes_a_larger_medium_into_use_when_told_and_not_before)
{
    ckb_config config = {.max_chunks = 4000};
    store *s = small_store(SEGMENT_BYTES, &config);
    uint32_t full = fill(s, 0);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    mount_with(s, LARGE);
    cr_assert_eq(stat_of(s).geometry.segment_count, SMALL);
    cr_assert_eq(stat_of(s).segments_beyond, LARGE - SMALL);
    cr_assert_eq(fill(s, full), full, "it grew by itself");
    cr_assert_eq(ckb_grow(s->volume, &s->fault), CKB_OK);
    cr_assert_eq(stat_of(s).geometry.segment_count, LARGE);
    cr_assert_eq(stat_of(s).segments_beyond, 0);
    assert_sums(s);
    uint32_t more = fill(s, full);
    cr_assert_gt(more, 2 * full);
    assert_all_there(s, 0, more);
    for (int clean = 0; clean < 2; clean++) {
        if (clean)
            cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
        mount_with(s, LARGE);
        cr_assert_eq(stat_of(s).geometry.segment_count, LARGE);
        assert_all_there(s, 0, more);
        assert_sums(s);
        cr_assert_eq(ckb_grow(s->volume, &s->fault), CKB_OK, "growing again changes nothing");
    }
    store_free(s);
}

Test(grow, refuses_to_mount_on_less_than_it_has_with_both_sizes)
{
    store *s = small_store(SEGMENT_BYTES, NULL);
    put(s, 0, 50);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    s->medium.geometry.segment_count = SMALL - 1;
    for (int read_only = 0; read_only < 2; read_only++) {
        s->config.read_only = read_only;
        cr_assert_eq(store_mount(s), CKB_INVALID);
        assert_text(&s->fault, "geometry: the volume was made with 12, the medium has 11");
    }
    s->config.read_only = false;
    mount_with(s, LARGE);
    cr_assert_eq(ckb_grow(s->volume, NULL), CKB_OK);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    s->medium.geometry.segment_count = SMALL;
    cr_assert_eq(store_mount(s), CKB_INVALID);
    assert_text(&s->fault, "geometry: the volume was made with 30, the medium has 12");
    store_free(s);
}

Test(grow, says_what_the_journal_has_room_for)
{
    ckb_config config = {0};
    store *s = store_make(4096, 4000, 64, &config);
    s->medium.geometry.segment_count = 40;
    cr_assert_eq(store_format(s), CKB_OK);
    mount_with(s, 4000);
    cr_assert_eq(ckb_grow(s->volume, &s->fault), CKB_NOSPACE);
    cr_assert_eq(s->fault.topic, CKB_TOPIC_JOURNAL_ROOM);
    cr_assert_eq(s->fault.index, 4000);
    cr_assert_gt(s->fault.expected, s->fault.found);
    cr_assert_eq(stat_of(s).geometry.segment_count, 40);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
    put(s, 0, 20);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    mount_with(s, 40);
    assert_all_there(s, 0, 20);
    store_free(s);
}

Test(grow, of_a_volume_mounted_for_reading_is_refused)
{
    store *s = small_store(SEGMENT_BYTES, NULL);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    s->config.read_only = true;
    s->medium.geometry.segment_count = LARGE;
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(ckb_grow(s->volume, &s->fault), CKB_READONLY);
    cr_assert_eq(stat_of(s).geometry.segment_count, SMALL);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- power cuts */

static const ckb_geometry cut_geometry = {
    .segment_bytes = 4096, .segment_count = LARGE, .read_unit = 64, .write_unit = 64, .buffer_align = 8};
static const ckb_writer_config cut_writer = {.buffer_bytes = 1024, .summary_entries = 8};
static const ckb_config cut_config = {.io_buffer_bytes = 512, .max_containers = 4};

typedef struct cut_world {
    media_ram ram;
    media_crash crash;
    ckb_medium medium;
    ckb_volume *volume;
    ckb_writer *writer;
    ckb_reader *reader;
    void *volume_memory, *writer_memory, *reader_memory;
} cut_world;

static void cut_init(cut_world *w)
{
    media_ram_init(&w->ram, &cut_geometry);
    ckb_medium below = media_ram_medium(&w->ram);
    media_crash_init(&w->crash, &below);
    w->medium = media_crash_medium(&w->crash);
    w->volume_memory = media_alloc(ckb_volume_memory(&cut_geometry, &cut_config));
    w->writer_memory = media_alloc(ckb_writer_memory(&cut_geometry, &cut_writer));
    w->reader_memory = media_alloc(ckb_reader_memory(&cut_geometry, 0));
}

static void cut_mount(cut_world *w, uint32_t segments, const char *id)
{
    ckb_fault fault;
    w->medium.geometry.segment_count = segments;
    int status = ckb_mount(&w->medium, &cut_config, w->volume_memory,
                           ckb_volume_memory(&cut_geometry, &cut_config), &w->volume, &fault);
    cr_assert_eq(status, CKB_OK, "%s: mount says %s", id, ckb_status_text(status));
    status = ckb_writer_open(w->volume, &cut_writer, w->writer_memory,
                             ckb_writer_memory(&cut_geometry, &cut_writer), &w->writer);
    cr_assert_eq(status, CKB_OK, "%s", id);
    status = ckb_reader_open(w->volume, w->reader_memory, ckb_reader_memory(&cut_geometry, 0), &w->reader);
    cr_assert_eq(status, CKB_OK, "%s", id);
}

static void cut_put(cut_world *w, uint32_t from, uint32_t to, const char *id)
{
    uint8_t bytes[300];
    for (uint32_t chunk = from; chunk < to; chunk++) {
        ckb_chunk_id name = chunk_id(chunk);
        test_fill(bytes, sizeof bytes, chunk);
        int status = ckb_chunk_write(w->writer, &name, bytes, sizeof bytes, CKB_DURABLE);
        cr_assert_eq(status, CKB_OK, "%s: chunk %u: %s", id, chunk, ckb_status_text(status));
        media_crash_note(&w->crash, 1, chunk + 1, 0);
    }
}

static void cut_expect(cut_world *w, uint32_t chunks, const char *id)
{
    uint8_t bytes[300], expected[300];
    size_t got;
    for (uint32_t chunk = 0; chunk < chunks; chunk++) {
        ckb_chunk_id name = chunk_id(chunk);
        test_fill(expected, sizeof expected, chunk);
        int status = ckb_chunk_read(w->reader, &name, 0, bytes, sizeof bytes, &got);
        cr_assert_eq(status, CKB_OK, "%s: chunk %u of %u: %s", id, chunk, chunks, ckb_status_text(status));
        cr_assert_arr_eq(bytes, expected, sizeof bytes);
    }
}

static uint32_t cut_segments(cut_world *w)
{
    ckb_stat stat;
    ckb_volume_stat(w->volume, &stat);
    return stat.geometry.segment_count;
}

static void cut_format(cut_world *w)
{
    ckb_format_config format = {{3, 1, 4}, 4, 0};
    uint8_t memory[1024];
    w->medium.geometry.segment_count = SMALL;
    cr_assert_eq(ckb_format(&w->medium, &format, memory, sizeof memory, NULL), CKB_OK);
    cut_mount(w, SMALL, "format");
    cr_assert_eq(ckb_container_create(w->volume, 7), CKB_OK);
    cut_put(w, 0, 30, "format");
    cr_assert_eq(ckb_unmount(w->volume), CKB_OK);
}

/* A state that a power cut leaves: the old size or the new one; it works on, and grows then. */
static void cut_state(cut_world *w, uint32_t acknowledged, bool grown, const char *id)
{
    media_crash_restart(&w->crash);
    cut_mount(w, LARGE, id);
    uint32_t segments = cut_segments(w);
    cr_assert(segments == LARGE || (segments == SMALL && !grown), "%s: %u segments", id, segments);
    cut_expect(w, acknowledged, id);
    cr_assert_eq(ckb_grow(w->volume, NULL), CKB_OK, "%s", id);
    cut_put(w, 200, 220, id);
    cut_mount(w, LARGE, id);
    cr_assert_eq(cut_segments(w), LARGE, "%s", id);
    cut_expect(w, acknowledged, id);
}

Test(grow, leaves_the_old_size_or_the_new_one_when_power_fails_at_any_operation)
{
    static cut_world work, after;
    media_cursor cursor;
    size_t bytes = media_volume_bytes(&cut_geometry), states = 0;
    uint8_t *base = media_alloc(bytes);
    char id[80];
    uint32_t acknowledged = 30;
    bool grown = false;
    cut_init(&work);
    cut_init(&after);
    cut_format(&work);
    memcpy(base, work.ram.image, bytes);
    media_crash_restart(&work.crash);
    cut_mount(&work, LARGE, "work");
    cut_put(&work, 30, 40, "work");
    cr_assert_eq(ckb_grow(work.volume, NULL), CKB_OK);
    media_crash_note(&work.crash, 2, 0, 0);
    cut_put(&work, 40, 140, "work");
    cr_assert_eq(ckb_unmount(work.volume), CKB_OK);
    media_cursor_init(&cursor, &work.crash, &cut_geometry, base);
    const media_event *event = NULL;
    do {
        if (event && event->kind == MEDIA_EVENT_NOTE) {
            acknowledged = event->note == 1 ? (uint32_t)event->first : acknowledged;
            grown = grown || event->note == 2;
            continue;
        }
        for (uint64_t choice = 0; choice < 24; choice++, states++) {
            snprintf(id, sizeof id, "step %zu choice %d", cursor.step, (int)choice);
            media_cursor_materialise(&cursor, 5, choice, after.ram.image);
            cut_state(&after, acknowledged, grown, id);
        }
    } while ((event = media_cursor_advance(&cursor)) != NULL);
    printf("grow: %zu states, %zu steps\n", states, media_crash_steps(&work.crash));
    cr_assert_gt(states, 3000);
}
