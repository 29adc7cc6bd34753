/* Block streams: many tiny writes become chunks, and are read back over the ends of chunks. */
#define _GNU_SOURCE
#include "media.h"
#include "store.h"

#include <pthread.h>

enum { BLOCK = 3, SMALL = 1000 };

typedef struct out {
    void *memory;
    ckb_stream *stream;
} out;

static int out_open(out *o, ckb_writer *writer, const ckb_geometry *geometry, size_t chunk_bytes,
                    unsigned flags)
{
    const ckb_stream_config config = {chunk_bytes};
    size_t bytes = ckb_stream_memory(geometry, &config);
    cr_assert_gt(bytes, 0);
    o->memory = malloc(bytes);
    int status = ckb_stream_open(writer, 7, BLOCK, &config, flags, o->memory, bytes, &o->stream);
    if (status != CKB_OK) {
        cr_assert_null(o->stream);
        free(o->memory);
    }
    return status;
}

static void out_new(out *o, store *s, size_t chunk_bytes, unsigned flags)
{
    cr_assert_eq(out_open(o, s->writer, &s->medium.geometry, chunk_bytes, flags), CKB_OK);
}

static void out_close(out *o)
{
    cr_assert_eq(ckb_stream_close(o->stream, CKB_DURABLE), CKB_OK);
    free(o->memory);
}

static ckb_stream_info stream_info(const out *o)
{
    ckb_stream_info info;
    ckb_stream_stat(o->stream, &info);
    return info;
}

/* Byte `position` of the block: nothing that was moved compares equal. */
static uint8_t byte_at(uint64_t position)
{
    return (uint8_t)(position * 2654435761u >> 13);
}

static void fill_at(uint8_t *bytes, size_t length, uint64_t position)
{
    for (size_t i = 0; i < length; i++) {
        bytes[i] = byte_at(position + i);
    }
}

static int write_bytes(out *o, size_t length)
{
    static __thread uint8_t bytes[70000];
    cr_assert_leq(length, sizeof bytes);
    fill_at(bytes, length, stream_info(o).position);
    return ckb_stream_write(o->stream, bytes, length);
}

static ckb_stream_cursor *cursor_new(ckb_volume *volume, const ckb_geometry *geometry, void **memory)
{
    ckb_stream_cursor *cursor;
    size_t bytes = ckb_stream_cursor_memory(geometry, 0);
    *memory = malloc(bytes);
    cr_assert_eq(ckb_stream_cursor_open(volume, 7, BLOCK, *memory, bytes, &cursor), CKB_OK);
    return cursor;
}

/* Reads to the end in pieces of any size; returns why it ended. */
static int read_all(ckb_stream_cursor *cursor, uint8_t *bytes, size_t room, size_t *length)
{
    media_random random = media_random_from(1, 2, 3);
    size_t got = 0;
    int status = CKB_OK;
    *length = 0;
    while (status == CKB_OK) {
        size_t wanted = 1 + (size_t)media_random_below(&random, 3000);
        cr_assert_leq(*length + wanted, room);
        status = ckb_stream_read(cursor, bytes + *length, wanted, &got);
        cr_assert(status == CKB_OK || got == 0);
        *length += got;
    }
    return status;
}

static void assert_block_of(ckb_volume *volume, const ckb_geometry *geometry, uint64_t length, int end)
{
    static uint8_t bytes[600000];
    void *memory;
    size_t got;
    ckb_stream_cursor *cursor = cursor_new(volume, geometry, &memory);
    cr_assert_eq(read_all(cursor, bytes, sizeof bytes, &got), end);
    cr_assert_eq(got, length, "%zu bytes, expected %llu", got, (unsigned long long)length);
    for (size_t i = 0; i < got; i++) {
        cr_assert_eq(bytes[i], byte_at(i), "byte %zu", i);
    }
    free(memory);
}

static void assert_block(store *s, uint64_t length, int end)
{
    assert_block_of(s->volume, &s->medium.geometry, length, end);
}

static uint32_t chunk_length(store *s, uint32_t chunk)
{
    ckb_chunk_info info;
    ckb_chunk_id id = {7, BLOCK, chunk};
    cr_assert_eq(ckb_chunk_stat(s->volume, &id, &info), CKB_OK, "chunk %u", chunk);
    return info.length;
}

Test(stream, gives_back_writes_of_any_size_over_ends_of_chunks)
{
    store *s = store_new();
    media_random random = media_random_from(5, 0, 0);
    out o;
    out_new(&o, s, SMALL, 0);
    uint64_t total = 0, calls = 0;
    while (total < 150000) {
        size_t length = (size_t)media_random_below(&random, calls % 3 == 0 ? 5000 : 60);
        cr_assert_eq(write_bytes(&o, length), CKB_OK);
        total += length;
        calls++;
    }
    cr_assert_eq(stream_info(&o).position, total);
    cr_assert_eq(stream_info(&o).write_calls, calls);
    out_close(&o);
    cr_assert_eq(chunk_length(s, 0), SMALL);
    cr_assert_eq(chunk_length(s, (uint32_t)(total / SMALL)), total % SMALL);
    assert_block(s, total, CKB_END);
    store_free(s);
}

Test(stream, makes_as_many_chunks_of_single_bytes_as_they_fill)
{
    store *s = store_new();
    out o;
    out_new(&o, s, SMALL, 0);
    for (unsigned i = 0; i < 3 * SMALL; i++) {
        cr_assert_eq(write_bytes(&o, 1), CKB_OK);
    }
    cr_assert_eq(stream_info(&o).chunks, 2, "the last chunk waits for more");
    cr_assert_eq(stream_info(&o).buffered, SMALL);
    cr_assert_eq(stream_info(&o).write_calls, 3 * SMALL);
    out_close(&o);
    cr_assert_eq(chunk_length(s, 2), SMALL);
    cr_assert_eq(chunk_length(s, 3), 0, "the end");
    assert_block(s, 3 * SMALL, CKB_END);
    store_free(s);
}

Test(stream, of_nothing_is_a_block_that_only_has_an_end)
{
    store *s = store_new();
    out o;
    out_new(&o, s, 0, 0);
    cr_assert_eq(ckb_stream_write(o.stream, NULL, 0), CKB_OK);
    cr_assert_eq(ckb_stream_flush(o.stream), CKB_OK);
    cr_assert_eq(ckb_stream_hsync(o.stream), CKB_OK);
    assert_block(s, 0, CKB_NOTFOUND);
    cr_assert_eq(ckb_stream_close(o.stream, 0), CKB_OK);
    cr_assert_eq(ckb_stream_write(o.stream, "x", 1), CKB_INVALID);
    cr_assert_eq(ckb_stream_write(o.stream, "", 0), CKB_INVALID);
    cr_assert_eq(ckb_stream_close(o.stream, 0), CKB_INVALID);
    cr_assert_eq(chunk_length(s, 0), 0);
    assert_block(s, 0, CKB_END);
    ckb_stream_info info = stream_info(&o);
    cr_assert_eq(info.flush_calls, 1);
    cr_assert_eq(info.hsync_calls, 1);
    cr_assert_eq(info.close_calls, 2);
    free(o.memory);
    store_free(s);
}

Test(stream, shows_to_readers_what_was_flushed_and_the_end_when_it_is_closed)
{
    store *s = store_new();
    uint8_t bytes[5000];
    size_t got;
    void *memory;
    out o;
    out_new(&o, s, SMALL, 0);
    ckb_stream_cursor *cursor = cursor_new(s->volume, &s->medium.geometry, &memory);
    cr_assert_eq(ckb_stream_read(cursor, bytes, 10, &got), CKB_NOTFOUND);
    cr_assert_eq(write_bytes(&o, 300), CKB_OK);
    cr_assert_eq(ckb_stream_read(cursor, bytes, 10, &got), CKB_NOTFOUND, "it is in the buffer only");
    cr_assert_eq(ckb_stream_flush(o.stream), CKB_OK);
    cr_assert_eq(ckb_stream_read(cursor, bytes, sizeof bytes, &got), CKB_OK);
    cr_assert_eq(got, 300);
    cr_assert_eq(write_bytes(&o, 2100), CKB_OK);
    cr_assert_eq(ckb_stream_read(cursor, bytes + 300, sizeof bytes - 300, &got), CKB_OK);
    cr_assert_eq(got, 2000);
    cr_assert_eq(chunk_length(s, 0), 300);
    cr_assert_eq(chunk_length(s, 1), SMALL);
    cr_assert_eq(ckb_stream_hsync(o.stream), CKB_OK);
    cr_assert_eq(chunk_length(s, 3), 100, "an hsync in the middle ends a chunk");
    cr_assert_eq(write_bytes(&o, 5), CKB_OK);
    cr_assert_eq(ckb_stream_close(o.stream, 0), CKB_OK);
    cr_assert_eq(ckb_stream_read(cursor, bytes + 2300, sizeof bytes - 2300, &got), CKB_OK);
    cr_assert_eq(got, 105);
    cr_assert_eq(ckb_stream_read(cursor, bytes, 1, &got), CKB_END);
    for (size_t i = 0; i < 2405; i++) {
        cr_assert_eq(bytes[i], byte_at(i), "byte %zu", i);
    }
    free(memory);
    free(o.memory);
    store_free(s);
}

Test(stream, is_read_at_any_position)
{
    store *s = store_new();
    media_random random = media_random_from(9, 0, 0);
    void *memory;
    out o;
    uint8_t bytes[300];
    size_t got;
    out_new(&o, s, 40000, 0);
    for (unsigned i = 0; i < 40; i++) {
        cr_assert_eq(write_bytes(&o, (size_t)media_random_below(&random, 9000)), CKB_OK);
        if (i % 3 == 0) {
            cr_assert_eq(ckb_stream_flush(o.stream), CKB_OK);
        }
    }
    uint64_t total = stream_info(&o).position;
    cr_assert_eq(ckb_stream_flush(o.stream), CKB_OK);
    ckb_stream_cursor *cursor = cursor_new(s->volume, &s->medium.geometry, &memory);
    cr_assert_eq(ckb_stream_seek(cursor, total + 1), CKB_NOTFOUND);
    out_close(&o);
    for (unsigned i = 0; i < 2000; i++) {
        uint64_t position = media_random_below(&random, total + 1);
        cr_assert_eq(ckb_stream_seek(cursor, position), CKB_OK);
        cr_assert_eq(ckb_stream_position(cursor), position);
        int status = ckb_stream_read(cursor, bytes, sizeof bytes, &got);
        cr_assert_eq(status, position == total ? CKB_END : CKB_OK);
        cr_assert_eq(got, total - position < sizeof bytes ? total - position : sizeof bytes);
        for (size_t k = 0; k < got; k++) {
            cr_assert_eq(bytes[k], byte_at(position + k));
        }
    }
    cr_assert_eq(ckb_stream_seek(cursor, 77), CKB_OK);
    cr_assert_eq(ckb_stream_seek(cursor, total + 1), CKB_END);
    cr_assert_eq(ckb_stream_position(cursor), 77, "a seek that fails moves nothing");
    free(memory);
    store_free(s);
}

Test(stream, opens_a_block_as_it_is_asked_to)
{
    store *s = store_new();
    ckb_chunk_id first = {7, BLOCK, 0};
    out o;
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, CKB_DURABLE), CKB_INVALID);
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, CKB_APPEND | CKB_OVERWRITE), CKB_INVALID);
    out_new(&o, s, SMALL, CKB_APPEND);
    cr_assert_eq(write_bytes(&o, 2500), CKB_OK);
    out_close(&o);
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, 0), CKB_EXISTS);
    out_new(&o, s, SMALL, CKB_APPEND);
    cr_assert_eq(stream_info(&o).position, 2500);
    cr_assert_eq(ckb_stream_close(o.stream, 0), CKB_OK);
    free(o.memory);
    assert_block(s, 2500, CKB_END);
    cr_assert_eq(chunk_length(s, 3), 0);
    out_new(&o, s, 700, CKB_APPEND);
    cr_assert_eq(write_bytes(&o, 2500), CKB_OK);
    cr_assert_eq(ckb_stream_flush(o.stream), CKB_OK);
    assert_block(s, 5000, CKB_NOTFOUND);
    out_close(&o);
    assert_block(s, 5000, CKB_END);
    out_new(&o, s, SMALL, CKB_OVERWRITE);
    assert_block(s, 0, CKB_DELETED);
    cr_assert_eq(write_bytes(&o, 10), CKB_OK);
    out_close(&o);
    assert_block(s, 10, CKB_END);
    cr_assert_eq(ckb_chunk_delete(s->writer, &first, 0), CKB_OK);
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, 0), CKB_DELETED);
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, CKB_APPEND), CKB_DELETED);
    cr_assert_eq(ckb_container_close(s->volume, 7), CKB_OK);
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, CKB_OVERWRITE), CKB_READONLY);
    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_OK);
    cr_assert_eq(out_open(&o, s->writer, &s->medium.geometry, SMALL, 0), CKB_DELETED);
    store_free(s);
}

Test(stream, never_shows_what_a_crash_left_behind_a_hole)
{
    store *s = store_new();
    uint8_t junk[500];
    out o;
    memset(junk, 0xEE, sizeof junk);
    out_new(&o, s, SMALL, 0);
    cr_assert_eq(write_bytes(&o, SMALL), CKB_OK);
    cr_assert_eq(ckb_stream_hsync(o.stream), CKB_OK);
    free(o.memory);
    for (uint32_t chunk = 2; chunk < 9; chunk += chunk == 4 ? 2 : 1) {
        ckb_chunk_id id = {7, BLOCK, chunk};
        cr_assert_eq(ckb_chunk_write(s->writer, &id, junk, sizeof junk, CKB_DURABLE), CKB_OK);
    }
    assert_block(s, SMALL, CKB_NOTFOUND);
    out_new(&o, s, SMALL, CKB_APPEND);
    for (unsigned i = 0; i < 7; i++) {
        cr_assert_eq(write_bytes(&o, SMALL), CKB_OK);
        cr_assert_eq(ckb_stream_flush(o.stream), CKB_OK);
        assert_block(s, (i + 2) * SMALL, CKB_NOTFOUND);
    }
    out_close(&o);
    assert_block(s, 8 * SMALL, CKB_END);
    store_free(s);
}

/* ------------------------------------------------------------------------------------------ no space */

Test(stream, keeps_its_buffer_when_there_is_no_space_and_goes_on_when_there_is)
{
    store *s = store_new();
    uint8_t filler[4000];
    out o;
    memset(filler, 1, sizeof filler);
    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
    for (uint32_t chunk = 0, status = CKB_OK; status == CKB_OK; chunk++) {
        ckb_chunk_id id = {8, 0, chunk};
        status = (uint32_t)ckb_chunk_write(s->writer, &id, filler, sizeof filler, 0);
    }
    out_new(&o, s, 4000, 0);
    int status = CKB_OK;
    uint64_t position = 0;
    for (unsigned i = 0; i < 1000 && status == CKB_OK; i++) {
        position = stream_info(&o).position;
        status = write_bytes(&o, 900);
    }
    cr_assert_eq(status, CKB_NOSPACE);
    cr_assert_eq(stream_info(&o).position, position, "nothing of it was taken");
    cr_assert_eq(ckb_stream_hsync(o.stream), CKB_NOSPACE);
    cr_assert_eq(ckb_stream_close(o.stream, 0), CKB_NOSPACE);
    cr_assert_eq(write_bytes(&o, 400), CKB_OK, "the buffer has room for this");
    cr_assert_eq(write_bytes(&o, 1), CKB_NOSPACE);
    cr_assert_eq(ckb_container_delete(s->volume, 8), CKB_OK);
    for (bool more = true; more;) {
        cr_assert_eq(ckb_maintain(s->volume, 100, &more), CKB_OK);
    }
    cr_assert_eq(write_bytes(&o, 9001), CKB_OK);
    cr_assert_eq(stream_info(&o).position, position + 9401);
    out_close(&o);
    assert_block(s, position + 9401, CKB_END);
    store_free(s);
}

/* ------------------------------------------------------------------------------- crashes and faults */

/* A volume on a crash medium under a fault medium. */
typedef struct fragile {
    media_ram ram;
    media_crash crash;
    media_fault fault;
    ckb_medium medium;
    ckb_config config;
    void *volume_memory, *writer_memory, *stream_memory;
    size_t volume_bytes, writer_bytes, stream_bytes;
    ckb_volume *volume;
    ckb_writer *writer;
    ckb_stream *stream;
    uint64_t acknowledged;
} fragile;

static const ckb_geometry fragile_geometry = {
    .segment_bytes = 4096, .segment_count = 24, .read_unit = 64, .write_unit = 64, .buffer_align = 8};
static const ckb_writer_config fragile_writer = {.buffer_bytes = 1024, .summary_entries = 8};
static const ckb_stream_config fragile_stream = {600};

static int fragile_mount(fragile *f)
{
    int status = ckb_mount(&f->medium, &f->config, f->volume_memory, f->volume_bytes, &f->volume, NULL);
    return status != CKB_OK
               ? status
               : ckb_writer_open(f->volume, &fragile_writer, f->writer_memory, f->writer_bytes, &f->writer);
}

static void fragile_init(fragile *f)
{
    memset(f, 0, sizeof *f);
    media_ram_init(&f->ram, &fragile_geometry);
    ckb_medium below = media_ram_medium(&f->ram);
    media_crash_init(&f->crash, &below);
    below = media_crash_medium(&f->crash);
    media_fault_init(&f->fault, &below);
    f->medium = media_fault_medium(&f->fault);
    f->config.checkpoint_records = 4;
    f->volume_bytes = ckb_volume_memory(&fragile_geometry, &f->config);
    f->writer_bytes = ckb_writer_memory(&fragile_geometry, &fragile_writer);
    f->stream_bytes = ckb_stream_memory(&fragile_geometry, &fragile_stream);
    f->volume_memory = media_alloc(f->volume_bytes);
    f->writer_memory = media_alloc(f->writer_bytes);
    f->stream_memory = media_alloc(f->stream_bytes);
}

static void fragile_format(fragile *f)
{
    ckb_format_config format = {{9, 8, 7}, 0, 0};
    size_t bytes = ckb_format_memory(&fragile_geometry);
    void *memory = media_alloc(bytes);
    cr_assert_eq(ckb_format(&f->medium, &format, memory, bytes, NULL), CKB_OK);
    free(memory);
    cr_assert_eq(fragile_mount(f), CKB_OK);
    cr_assert_eq(ckb_container_create(f->volume, 7), CKB_OK);
    cr_assert_eq(ckb_unmount(f->volume), CKB_OK);
}

/* Writes with an hsync here and there, until something fails or all is written; returns the last status. */
static int fragile_work(fragile *f, uint64_t seed, unsigned flags, unsigned steps)
{
    media_random random = media_random_from(seed, 0, 0);
    uint8_t bytes[2000];
    ckb_stream_info info;
    int status = ckb_stream_open(f->writer, 7, BLOCK, &fragile_stream, flags, f->stream_memory, f->stream_bytes,
                                 &f->stream);
    for (unsigned step = 0; step < steps && status == CKB_OK; step++) {
        size_t length = (size_t)media_random_below(&random, step % 5 == 0 ? sizeof bytes : 300);
        ckb_stream_stat(f->stream, &info);
        fill_at(bytes, length, info.position);
        status = ckb_stream_write(f->stream, bytes, length);
        if (status == CKB_OK && step % 3 == 2)
            (void)ckb_maintain(f->volume, 4, NULL); /* which checkpoints; a failure shows in what follows */
        if (status == CKB_OK && step % 7 == 3) {
            status = ckb_stream_hsync(f->stream);
        } else if (status == CKB_OK && step % 7 == 5) {
            status = ckb_stream_flush(f->stream);
            continue;
        } else {
            continue;
        }
        if (status == CKB_OK) {
            f->acknowledged = info.position + length;
            media_crash_note(&f->crash, 1, f->acknowledged, 0);
        }
    }
    if (status == CKB_OK)
        status = ckb_stream_close(f->stream, CKB_DURABLE);
    if (status == CKB_OK) {
        ckb_stream_stat(f->stream, &info);
        f->acknowledged = info.position;
        media_crash_note(&f->crash, 1, f->acknowledged, 1);
    }
    return status;
}

/* Reads the block; its bytes must be right. Returns how it ended. */
static int fragile_read(fragile *f, uint64_t *length)
{
    static uint8_t bytes[200000];
    void *memory;
    size_t got;
    ckb_stream_cursor *cursor = cursor_new(f->volume, &fragile_geometry, &memory);
    int status = read_all(cursor, bytes, sizeof bytes, &got);
    for (size_t i = 0; i < got; i++) {
        cr_assert_eq(bytes[i], byte_at(i), "byte %zu of %zu", i, got);
    }
    free(memory);
    *length = got;
    return status;
}

/* What is mounted now holds all that was acknowledged and goes on from there. */
static void fragile_expect(fragile *f, uint64_t acknowledged, bool ended, const char *id)
{
    uint64_t length, plain_length, again;
    f->config.ignore_checkpoint = true;
    cr_assert_eq(fragile_mount(f), CKB_OK, "%s", id);
    int plain = fragile_read(f, &plain_length);
    f->config.ignore_checkpoint = false;
    cr_assert_eq(fragile_mount(f), CKB_OK, "%s", id);
    int status = fragile_read(f, &length);
    cr_assert(status == CKB_END || status == CKB_NOTFOUND, "%s: %s", id, ckb_status_text(status));
    cr_assert_eq(status, plain, "%s: %s, and %s without the checkpoint", id, ckb_status_text(status),
                 ckb_status_text(plain));
    cr_assert_eq(length, plain_length, "%s: %llu bytes, and %llu without the checkpoint", id,
                 (unsigned long long)length, (unsigned long long)plain_length);
    cr_assert_geq(length, acknowledged, "%s: %llu bytes, %llu were acknowledged", id,
                  (unsigned long long)length, (unsigned long long)acknowledged);
    cr_assert(!ended || status == CKB_END, "%s: the end was acknowledged", id);
    cr_assert_eq(fragile_work(f, 77, CKB_APPEND, 6), CKB_OK, "%s", id);
    cr_assert_eq(fragile_read(f, &again), CKB_END, "%s", id);
    cr_assert_eq(again, f->acknowledged, "%s", id);
    cr_assert_geq(again, length, "%s", id);
}

Test(stream, keeps_what_hsync_acknowledged_and_a_prefix_when_power_fails_at_any_operation)
{
    static fragile work, after;
    size_t bytes = media_volume_bytes(&fragile_geometry), states = 0;
    uint8_t *base = media_alloc(bytes);
    media_cursor cursor;
    char id[80];
    fragile_init(&work);
    fragile_init(&after);
    fragile_format(&work);
    memcpy(base, work.ram.image, bytes);
    media_crash_restart(&work.crash);
    cr_assert_eq(fragile_mount(&work), CKB_OK);
    cr_assert_eq(fragile_work(&work, 3, 0, 60), CKB_OK);
    cr_assert_eq(fragile_work(&work, 4, CKB_APPEND, 12), CKB_OK);
    uint64_t acknowledged = 0, choices = 30;
    bool ended = false;
    const char *wanted = getenv("CKB_SWEEP_STATES");
    if (wanted && strtoul(wanted, NULL, 10) / media_crash_steps(&work.crash) > choices)
        choices = strtoul(wanted, NULL, 10) / media_crash_steps(&work.crash);
    media_cursor_init(&cursor, &work.crash, &fragile_geometry, base);
    const media_event *event = NULL;
    do {
        if (event && event->kind == MEDIA_EVENT_NOTE) {
            acknowledged = event->first;
            ended = event->second != 0;
            continue;
        }
        /* An append opens an ended block again. */
        for (uint64_t choice = 0; choice < choices; choice++, states++) {
            snprintf(id, sizeof id, "step %zu choice %d", cursor.step, (int)choice);
            media_cursor_materialise(&cursor, 11, choice, after.ram.image);
            media_crash_restart(&after.crash);
            fragile_expect(&after, acknowledged, ended && cursor.next == work.crash.event_count, id);
        }
    } while ((event = media_cursor_advance(&cursor)) != NULL);
    printf("stream: %zu states, %zu steps\n", states, media_crash_steps(&work.crash));
    cr_assert_gt(states, 3000);
    media_cursor_free(&cursor);
    free(base);
}

Test(stream, says_so_for_ever_when_a_write_or_sync_fails)
{
    static fragile f;
    fragile_init(&f);
    fragile_format(&f);
    size_t bytes = media_volume_bytes(&fragile_geometry);
    uint8_t *base = media_alloc(bytes);
    memcpy(base, f.ram.image, bytes);
    uint64_t failures = 0;
    for (uint64_t at = 0;; at++) {
        media_fault_rule rule = {.kinds = MEDIA_FAULT_WRITE | MEDIA_FAULT_SYNC,
                                 .at = at,
                                 .effect = at % 2 ? MEDIA_FAULT_ERROR : MEDIA_FAULT_SHORT,
                                 .status = CKB_IO};
        ckb_stream_info info;
        uint64_t length;
        memcpy(f.ram.image, base, bytes);
        media_crash_restart(&f.crash);
        cr_assert_eq(fragile_mount(&f), CKB_OK);
        f.acknowledged = 0;
        f.stream = NULL;
        media_fault_arm(&f.fault, &rule);
        int status = fragile_work(&f, 3, 0, 60);
        uint64_t fired = f.fault.fired;
        media_fault_disarm(&f.fault);
        if (fired == 0) {
            cr_assert_eq(status, CKB_OK);
            break;
        }
        failures++;
        cr_assert(status == CKB_IO || status == CKB_FAILED, "operation %d: %s", (int)at,
                  ckb_status_text(status));
        ckb_stream_stat(f.stream, &info);
        cr_assert_eq(ckb_stream_write(f.stream, "x", 1), status);
        cr_assert_eq(ckb_stream_write(f.stream, "x", 0), status);
        cr_assert_eq(ckb_stream_flush(f.stream), status);
        cr_assert_eq(ckb_stream_hsync(f.stream), status);
        cr_assert_eq(ckb_stream_close(f.stream, CKB_DURABLE), status);
        (void)ckb_unmount(f.volume);
        cr_assert_eq(fragile_mount(&f), CKB_OK);
        cr_assert_neq(fragile_read(&f, &length), CKB_CORRUPT);
        cr_assert_geq(length, f.acknowledged);
        cr_assert_leq(length, info.position + 2000);
    }
    cr_assert_gt(failures, 50);
    free(base);
}

/* ------------------------------------------------------------------------------------------ threads */

typedef struct mapper {
    store *s;
    ckb_writer *writer;
    void *memory;
    uint64_t block, total;
    pthread_t thread;
    bool reads; /* what the other one writes */
    int status;
} mapper;

static void *mapper_write(void *context)
{
    mapper *m = context;
    const ckb_stream_config config = {3000};
    size_t bytes = ckb_stream_memory(&m->s->medium.geometry, &config);
    void *memory = malloc(bytes);
    ckb_stream *stream;
    media_random random = media_random_from(m->block, 0, 0);
    uint8_t data[200];
    m->status = ckb_stream_open(m->writer, 7, m->block, &config, 0, memory, bytes, &stream);
    for (unsigned i = 0; i < 3000 && m->status == CKB_OK; i++) {
        size_t length = (size_t)media_random_below(&random, sizeof data);
        fill_at(data, length, m->total + m->block);
        m->status = ckb_stream_write(stream, data, length);
        m->total += length;
        if (i % 100 == 0 && m->status == CKB_OK) {
            m->status = ckb_stream_hsync(stream);
        }
    }
    if (m->status == CKB_OK)
        m->status = ckb_stream_close(stream, CKB_DURABLE);
    free(memory);
    return NULL;
}

/* Follows a block until it ends. */
static void *mapper_read(void *context)
{
    mapper *m = context;
    size_t bytes = ckb_stream_cursor_memory(&m->s->medium.geometry, 0), got;
    void *memory = malloc(bytes);
    uint8_t data[777];
    ckb_stream_cursor *cursor;
    m->status = ckb_stream_cursor_open(m->s->volume, 7, m->block, memory, bytes, &cursor);
    while (m->status == CKB_OK || m->status == CKB_NOTFOUND) {
        m->status = ckb_stream_read(cursor, data, sizeof data, &got);
        for (size_t i = 0; i < got; i++) {
            if (data[i] != byte_at(m->total + i + m->block)) {
                m->status = CKB_CORRUPT;
            }
        }
        m->total += got;
    }
    free(memory);
    return NULL;
}

Test(stream, goes_on_in_several_threads_and_is_read_meanwhile)
{
    store *s = store_new_with(SEGMENT_BYTES, 40, UNIT, NULL);
    mapper mappers[4];
    memset(mappers, 0, sizeof mappers);
    for (unsigned i = 0; i < 4; i++) {
        mapper *m = &mappers[i];
        m->s = s;
        m->block = 1 + i % 2;
        m->reads = i >= 2;
        if (!m->reads) {
            m->memory = malloc(s->writer_bytes);
            cr_assert_eq(ckb_writer_open(s->volume, NULL, m->memory, s->writer_bytes, &m->writer), CKB_OK);
        }
        cr_assert_eq(pthread_create(&m->thread, NULL, m->reads ? mapper_read : mapper_write, m), 0);
    }
    for (unsigned i = 0; i < 4; i++) {
        pthread_join(mappers[i].thread, NULL);
        cr_assert_eq(mappers[i].status, mappers[i].reads ? CKB_END : CKB_OK, "%u: %s", i,
                     ckb_status_text(mappers[i].status));
    }
    for (unsigned i = 0; i < 2; i++) {
        cr_assert_eq(ckb_writer_close(mappers[i].writer), CKB_OK);
        free(mappers[i].memory);
    }
    cr_assert_eq(mappers[0].total, mappers[2].total);
    cr_assert_eq(mappers[1].total, mappers[3].total);
    store_free(s);
}
