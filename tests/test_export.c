/* Export and import: a container as a stream, whole or refused, on volumes of any shape. */
#define _GNU_SOURCE
#include "store.h"

enum { BUFFER_BYTES = 70000, STREAM_MAX = 1 << 20 };

typedef struct tape {
    uint8_t bytes[STREAM_MAX];
    size_t length, at;
    uint32_t lost;
    size_t room; /* of the other side: a write beyond fails */
} tape;

static uint8_t buffer[BUFFER_BYTES];

static int tape_write(void *context, const void *data, size_t bytes)
{
    tape *t = context;
    if (bytes > t->room - t->length)
        return CKB_IO;
    memcpy(t->bytes + t->length, data, bytes);
    t->length += bytes;
    return CKB_OK;
}

static int tape_read(void *context, void *data, size_t bytes)
{
    tape *t = context;
    if (bytes > t->length - t->at)
        return CKB_END;
    memcpy(data, t->bytes + t->at, bytes);
    t->at += bytes;
    return CKB_OK;
}

static void tape_lost(void *context, const ckb_chunk_id *id, int status)
{
    tape *t = context;
    cr_assert_eq(status, CKB_CORRUPT);
    cr_assert_eq(id->container, 7);
    t->lost++;
}

static tape *tape_new(void)
{
    tape *t = calloc(1, sizeof *t);
    t->room = STREAM_MAX;
    return t;
}

static int export_to(store *s, tape *t, ckb_export_report *report)
{
    t->length = t->at = 0;
    t->lost = 0;
    return ckb_export(s->volume, s->reader, 7, buffer, sizeof buffer, tape_write, tape_lost, t, report);
}

static int import_from(store *s, tape *t, uint64_t container, unsigned flags, ckb_export_report *report)
{
    t->at = 0;
    return ckb_import(s->volume, s->writer, container, container == 0, flags, buffer, sizeof buffer, tape_read,
                      t, report);
}

static const uint32_t sizes[] = {0, 1, 511, 1000, 16384, 16385, 40001};
enum { SIZES = sizeof sizes / sizeof sizes[0] };

static void write_sizes(store *s, uint32_t count)
{
    uint8_t bytes[50000];
    for (uint32_t i = 0; i < count; i++) {
        ckb_chunk_id id = {7, UINT64_MAX - i, i * 1000};
        test_fill(bytes, sizes[i % SIZES], i);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, sizes[i % SIZES], 0), CKB_OK);
    }
    cr_assert_eq(ckb_writer_commit(s->writer), CKB_OK);
}

/* All of these chunks are in the container, and no others. */
static void expect_sizes(store *s, uint64_t container, uint32_t count)
{
    uint8_t bytes[50000], expected[50000];
    ckb_container_info info;
    size_t got;
    for (uint32_t i = 0; i < count; i++) {
        ckb_chunk_id id = {container, UINT64_MAX - i, i * 1000};
        test_fill(expected, sizes[i % SIZES], i);
        cr_assert_eq(ckb_chunk_read(s->reader, &id, 0, bytes, sizeof bytes, &got), CKB_OK);
        cr_assert_eq(got, sizes[i % SIZES]);
        cr_assert_arr_eq(bytes, expected, got);
    }
    cr_assert_eq(ckb_container_stat(s->volume, container, &info), CKB_OK);
    cr_assert_eq(info.chunks, count);
}

Test(export, goes_from_one_shape_of_volume_to_another)
{
    store *from = store_new_with((uint64_t)128 << 10, 16, 512, NULL);
    tape *t = tape_new();
    ckb_export_report out, in;
    write_sizes(from, 20);
    ckb_chunk_id gone = {7, UINT64_MAX - 3, 3000};
    cr_assert_eq(ckb_chunk_delete(from->writer, &gone, CKB_DURABLE), CKB_OK);
    cr_assert_eq(export_to(from, t, &out), CKB_OK);
    cr_assert_eq(out.chunks, 19);
    cr_assert_eq(out.offset, t->length);
    static const uint32_t units[] = {8, 512, 4096};
    for (int i = 0; i < 3; i++) {
        store *to = store_make((uint64_t)256 << 10, 12, units[i], NULL);
        cr_assert_eq(store_format(to), CKB_OK);
        cr_assert_eq(store_mount(to), CKB_OK);
        store_open_writer(to);
        cr_assert_eq(import_from(to, t, 0, 0, &in), CKB_OK);
        cr_assert_eq(in.container, 7);
        cr_assert_eq(in.chunks, 19);
        cr_assert_eq(in.bytes, out.bytes);
        cr_assert_eq(in.offset, t->length);
        cr_assert_eq(import_from(to, t, 0, 0, &in), CKB_EXISTS);
        cr_assert_eq(import_from(to, t, 9, 0, &in), CKB_OK);
        cr_assert_eq(store_mount(to), CKB_OK, "durable without an unmount");
        store_open_writer(to);
        ckb_container_info info;
        cr_assert_eq(ckb_container_stat(to->volume, 9, &info), CKB_OK);
        cr_assert_eq(info.chunks, 19);
        cr_assert_eq(info.bytes, out.bytes);
        store_free(to);
    }
    free(t);
    store_free(from);
}

Test(export, keeps_a_closed_container_closed)
{
    store *s = store_new();
    tape *t = tape_new();
    ckb_export_report report;
    ckb_container_info info;
    put(s, 0, 10);
    cr_assert_eq(ckb_container_close(s->volume, 7), CKB_OK);
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    cr_assert_eq(import_from(s, t, 8, 0, &report), CKB_OK);
    cr_assert_eq(ckb_container_stat(s->volume, 8, &info), CKB_OK);
    cr_assert_eq(info.state, CKB_CONTAINER_CLOSED);
    cr_assert_eq(info.chunks, 10);
    free(t);
    store_free(s);
}

Test(export, leaves_out_what_cannot_be_read_and_says_so)
{
    store *s = store_new();
    tape *t = tape_new();
    ckb_export_report report;
    put(s, 0, 10);
    ckb_chunk_info place = place_of(s, 4);
    *at(s, place.segment, place.offset + 400) ^= 1;
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    cr_assert_eq(report.left_out, 1);
    cr_assert_eq(t->lost, 1);
    cr_assert_eq(report.chunks, 9);
    cr_assert_eq(import_from(s, t, 8, 0, &report), CKB_OK);
    cr_assert_eq(report.left_out, 1);
    cr_assert_eq(report.chunks, 9);
    free(t);
    store_free(s);
}

/* A stream that is not what was written: never a wrong byte, and CKB_OK only where nothing that counts changed. */
static void expect_refused(store *to, tape *t, uint64_t container, const char *what, size_t where)
{
    ckb_export_report report;
    int status = import_from(to, t, container, 0, &report);
    cr_assert(status == CKB_CORRUPT || status == CKB_VERSION || status == CKB_TOOBIG, "%s %zu: %s", what, where,
              ckb_status_text(status));
    (void)ckb_container_delete(to->volume, container);
}

Test(export, refuses_a_stream_with_any_bit_flipped_or_byte_missing)
{
    ckb_config config = {.max_chunks = 4000, .max_containers = 64};
    store *s = store_new_with(SEGMENT_BYTES, 40, UNIT, &config);
    tape *t = tape_new(), *broken = tape_new();
    ckb_export_report report;
    write_sizes(s, 3);
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    cr_assert_eq(t->length, 5 * 40 + 512);
    for (size_t bit = 0; bit < t->length * 8; bit++) {
        memcpy(broken, t, sizeof *t);
        broken->bytes[bit / 8] ^= (uint8_t)(1u << bit % 8);
        expect_refused(s, broken, 1000 + bit, "bit", bit);
        if (bit % 16 == 0)
            cr_assert_eq(ckb_maintain(s->volume, 100, NULL), CKB_OK);
    }
    for (size_t length = 0; length < t->length; length++) {
        memcpy(broken, t, sizeof *t);
        broken->length = length;
        expect_refused(s, broken, 100000 + length, "length", length);
        if (length % 16 == 0)
            cr_assert_eq(ckb_maintain(s->volume, 100, NULL), CKB_OK);
    }
    free(t);
    free(broken);
    store_free(s);
}

Test(export, refuses_frames_that_changed_places)
{
    store *s = store_new();
    tape *t = tape_new();
    ckb_export_report report;
    uint8_t frame[1040];
    put(s, 0, 2);
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    memcpy(frame, t->bytes + 40, sizeof frame);
    memmove(t->bytes + 40, t->bytes + 40 + sizeof frame, sizeof frame);
    memcpy(t->bytes + 40 + sizeof frame, frame, sizeof frame);
    expect_refused(s, t, 8, "swapped", 0);
    free(t);
    store_free(s);
}

Test(export, goes_on_with_an_import_that_was_cut_off)
{
    ckb_config config = {.max_chunks = 4000};
    store *from = store_new_with(SEGMENT_BYTES, 30, UNIT, &config), *to;
    tape *t = tape_new();
    ckb_export_report report;
    put(from, 0, 100);
    cr_assert_eq(export_to(from, t, &report), CKB_OK);
    to = store_make(SEGMENT_BYTES, 30, UNIT, &config);
    cr_assert_eq(store_format(to), CKB_OK);
    cr_assert_eq(store_mount(to), CKB_OK);
    store_open_writer(to);
    size_t whole = t->length;
    t->length = whole / 2;
    cr_assert_eq(import_from(to, t, 0, 0, &report), CKB_CORRUPT);
    t->length = whole;
    cr_assert_eq(store_mount(to), CKB_OK, "a crash");
    store_open_writer(to);
    cr_assert_eq(import_from(to, t, 0, 0, &report), CKB_EXISTS);
    cr_assert_eq(import_from(to, t, 0, CKB_RESUME, &report), CKB_OK);
    cr_assert_eq(report.chunks, 100);
    assert_all_there(to, 0, 100);
    /* Another container of the same id is not mixed with it. */
    uint8_t other[CHUNK_BYTES] = {1};
    ckb_chunk_id id = chunk_id(50);
    cr_assert_eq(ckb_chunk_write(to->writer, &id, other, sizeof other, CKB_OVERWRITE), CKB_OK);
    cr_assert_eq(import_from(to, t, 0, CKB_RESUME, &report), CKB_EXISTS);
    free(t);
    store_free(from);
    store_free(to);
}

Test(export, says_no_space_and_goes_on_when_there_is_some)
{
    store *s = store_new();
    tape *t = tape_new();
    ckb_export_report report;
    uint32_t chunks = 0;
    uint8_t bytes[CHUNK_BYTES];
    put(s, 0, 200);
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 9), CKB_OK);
    for (int status = CKB_OK; status == CKB_OK; chunks++) {
        ckb_chunk_id id = {9, 0, chunks};
        chunk_bytes(chunks, bytes);
        status = ckb_chunk_write(s->writer, &id, bytes, sizeof bytes, 0);
    }
    cr_assert_eq(import_from(s, t, 8, 0, &report), CKB_NOSPACE);
    cr_assert_eq(ckb_container_delete(s->volume, 9), CKB_OK);
    cr_assert_eq(import_from(s, t, 8, CKB_RESUME, &report), CKB_OK);
    cr_assert_eq(report.chunks, 200);
    free(t);
    store_free(s);
}

Test(export, ends_with_the_status_of_its_stream_and_wants_room_for_a_chunk)
{
    store *s = store_new_with((uint64_t)128 << 10, 16, UNIT, NULL);
    tape *t = tape_new();
    ckb_export_report report;
    write_sizes(s, SIZES);
    t->room = 10000;
    cr_assert_eq(export_to(s, t, &report), CKB_IO);
    t->room = STREAM_MAX;
    t->length = 0;
    cr_assert_eq(ckb_export(s->volume, s->reader, 7, buffer, 40000, tape_write, NULL, t, &report), CKB_TOOBIG);
    cr_assert_eq(ckb_export(s->volume, s->reader, 8, buffer, 40000, tape_write, NULL, t, &report),
                 CKB_NOTFOUND);
    cr_assert_eq(ckb_export(s->volume, s->reader, 7, buffer, 39, tape_write, NULL, t, &report), CKB_INVALID);
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 9), CKB_OK);
    t->at = 0;
    cr_assert_eq(ckb_import(s->volume, s->writer, 10, false, 0, buffer, 40000, tape_read, t, &report),
                 CKB_TOOBIG);
    expect_sizes(s, 7, SIZES);
    free(t);
    store_free(s);
}

/* The bytes of the format, with checksums from outside: they never change. */
Test(export, writes_these_bytes)
{
    store *s = store_new();
    tape *t = tape_new();
    ckb_export_report report;
    ckb_chunk_id id = {7, 0x0102030405060708, 9};
    cr_assert_eq(ckb_chunk_write(s->writer, &id, "hello", 5, CKB_DURABLE), CKB_OK);
    cr_assert_eq(export_to(s, t, &report), CKB_OK);
    cr_assert_eq(t->length, 125);
    cr_assert_arr_eq(t->bytes + 4, "\x01\x01\x00\x01\x07\0\0\0\0\0\0\0CKBXPORT\0\0\0\0\0\0\0\0", 28);
    cr_assert_arr_eq(t->bytes + 44,
                     "\x02\x01\x00\x00\x08\x07\x06\x05\x04\x03\x02\x01\0\0\0\0\0\0\0\0\x09\0\0\0\x05\0\0\0",
                     28);
    cr_assert_arr_eq(t->bytes + 80, "hello", 5);
    cr_assert_arr_eq(t->bytes + 89, "\x03\x01\x00\x00\x01\0\0\0\0\0\0\0\x05\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 28);
    const size_t places[] = {0, 40, 85};
    for (int i = 0; i < 3; i++) {
        uint8_t seeded[44] = {(uint8_t)places[i]};
        memcpy(seeded + 8, t->bytes + places[i] + 4, 36);
        uint32_t crc = ~ckb_crc32c(0, seeded, sizeof seeded);
        uint8_t stored[4] = {(uint8_t)crc, (uint8_t)(crc >> 8), (uint8_t)(crc >> 16), (uint8_t)(crc >> 24)};
        cr_assert_arr_eq(t->bytes + places[i], stored, 4, "frame %d", i);
    }
    free(t);
    store_free(s);
}
