/* Containers, chunks, writers and readers: what each call answers. */
#define _GNU_SOURCE
#include "store.h"

static int write_to(store *s, uint64_t container, uint32_t chunk, const void *data, size_t length,
                    unsigned flags)
{
    ckb_chunk_id id = {container, 0, chunk};
    return ckb_chunk_write(s->writer, &id, data, length, flags);
}

static int read_back(store *s, uint32_t chunk, const uint8_t *expected, size_t length)
{
    ckb_chunk_id id = chunk_id(chunk);
    uint8_t *bytes = malloc(length + 1);
    size_t got = 0;
    int status = ckb_chunk_read(s->reader, &id, 0, bytes, length + 1, &got);
    if (status == CKB_OK) {
        cr_assert_eq(got, length);
        if (length > 0)
            cr_assert_arr_eq(bytes, expected, length);
    }
    free(bytes);
    return status;
}

Test(chunks, four_answers_are_four_statuses)
{
    store *s = store_new();
    put(s, 0, 3);
    ckb_chunk_id id = chunk_id(1);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK);
    cr_assert_eq(get(s, 0), CKB_OK);
    cr_assert_eq(get(s, 9), CKB_NOTFOUND);
    cr_assert_eq(get(s, 1), CKB_DELETED);
    ckb_chunk_info info = place_of(s, 2);
    *at(s, info.segment, info.offset + 100) ^= 1;
    cr_assert_eq(get(s, 2), CKB_CORRUPT);
    s->fail_segment = info.segment;
    cr_assert_eq(get(s, 2), CKB_IO);
    store_free(s);
}

Test(chunks, a_retry_with_the_same_bytes_is_welcome_and_with_others_refused)
{
    store *s = store_new();
    cr_assert_eq(write_to(s, 7, 0, "hello", 5, 0), CKB_OK);
    cr_assert_eq(write_to(s, 7, 0, "hello", 5, CKB_DURABLE), CKB_OK);
    cr_assert_eq(place_of(s, 0).version, 1);
    cr_assert_eq(write_to(s, 7, 0, "hellO", 5, 0), CKB_EXISTS);
    cr_assert_eq(write_to(s, 7, 0, "hell", 4, 0), CKB_EXISTS);
    cr_assert_eq(write_to(s, 7, 0, "hell", 4, CKB_OVERWRITE), CKB_OK);
    cr_assert_eq(place_of(s, 0).version, 2);
    cr_assert_eq(read_back(s, 0, (const uint8_t *)"hell", 4), CKB_OK);
    store_free(s);
}

Test(chunks, a_deleted_chunk_only_comes_back_by_overwrite)
{
    store *s = store_new();
    ckb_chunk_id id = chunk_id(0);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_NOTFOUND);
    put(s, 0, 1);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_OK);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_DELETED);
    cr_assert_eq(write_to(s, 7, 0, "x", 1, 0), CKB_DELETED);
    cr_assert_eq(write_to(s, 7, 0, "x", 1, CKB_OVERWRITE | CKB_DURABLE), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(read_back(s, 0, (const uint8_t *)"x", 1), CKB_OK);
    cr_assert_eq(place_of(s, 0).version, 3);
    store_free(s);
}

Test(chunks, sizes_from_nothing_to_the_maximum_read_back_and_one_more_is_refused)
{
    store *s = store_new();
    size_t most = (size_t)ckb_max_chunk_bytes(&s->medium.geometry);
    const size_t sizes[] = {0,    1,    7,    8,     9,     511,   512,   513,   671,
                            4095, 4096, 4097, 16383, 16384, 16385, 32768, 40000, most};
    const uint32_t count = sizeof(sizes) / sizeof(sizes[0]);
    uint8_t *bytes = malloc(most + 1);
    for (uint32_t n = 0; n < count; n++) {
        test_fill(bytes, most + 1, n);
        cr_assert_eq(write_to(s, 7, n, bytes, sizes[n], 0), CKB_OK, "%zu bytes", sizes[n]);
        cr_assert_eq(read_back(s, n, bytes, sizes[n]), CKB_OK, "%zu bytes, not yet durable", sizes[n]);
    }
    cr_assert_eq(write_to(s, 7, 99, bytes, most + 1, 0), CKB_TOOBIG);
    cr_assert_eq(get(s, 99), CKB_NOTFOUND);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    for (uint32_t n = 0; n < count; n++) {
        test_fill(bytes, most + 1, n);
        cr_assert_eq(read_back(s, n, bytes, sizes[n]), CKB_OK, "%zu bytes, after a remount", sizes[n]);
    }
    ckb_check_report report;
    for (int twice = 0; twice < 2; twice++) {
        cr_assert_eq(ckb_check(s->volume, s->reader, NULL, NULL, &report), CKB_OK);
        cr_assert_eq(report.chunks, count);
    }
    free(bytes);
    store_free(s);
}

Test(chunks, any_range_of_a_large_chunk_can_be_read_between_reads_of_others)
{
    store *s = store_new();
    size_t length = 40000;
    uint8_t *bytes = malloc(length), *part = malloc(length);
    test_fill(bytes, length, 1);
    put(s, 0, 130); /* so that the large one lies in another segment than the small ones */
    cr_assert_eq(write_to(s, 7, 500, bytes, length, CKB_DURABLE), CKB_OK);
    cr_assert_neq(place_of(s, 0).segment, place_of(s, 500).segment);
    const uint64_t offsets[] = {0, 1, 16383, 16384, 16385, 20000, 32768, 39999, 40000};
    const size_t lengths[] = {0, 1, 2, 16384, 16385, 40000};
    ckb_chunk_id id = chunk_id(500);
    for (size_t o = 0; o < sizeof(offsets) / sizeof(offsets[0]); o++) {
        for (size_t l = 0; l < sizeof(lengths) / sizeof(lengths[0]); l++) {
            size_t got = 99,
                   expected = lengths[l] < length - offsets[o] ? lengths[l] : length - (size_t)offsets[o];
            cr_assert_eq(get(s, (uint32_t)l), CKB_OK);
            cr_assert_eq(ckb_chunk_read(s->reader, &id, offsets[o], part, lengths[l], &got), CKB_OK);
            cr_assert_eq(got, expected);
            cr_assert_eq(memcmp(part, bytes + offsets[o], got), 0);
        }
    }
    cr_assert_eq(ckb_chunk_read(s->reader, &id, length + 1, part, 1, NULL), CKB_END);
    /* Damage in one window leaves the others readable. */
    ckb_chunk_info info = place_of(s, 500);
    *at(s, info.segment, info.offset + 1024 + 17000) ^= 1;
    cr_assert_eq(ckb_chunk_read(s->reader, &id, 0, part, 16384, NULL), CKB_OK);
    cr_assert_eq(ckb_chunk_read(s->reader, &id, 32768, part, 7232, NULL), CKB_OK);
    cr_assert_eq(ckb_chunk_read(s->reader, &id, 17000, part, 1, NULL), CKB_CORRUPT);
    free(bytes);
    free(part);
    store_free(s);
}

Test(chunks, the_callers_buffer_is_free_again_on_return)
{
    store *s = store_new();
    uint8_t bytes[CHUNK_BYTES], expected[CHUNK_BYTES];
    for (uint32_t n = 0; n < 20; n++) {
        chunk_bytes(n, bytes);
        cr_assert_eq(write_to(s, 7, n, bytes, sizeof(bytes), 0), CKB_OK);
        memset(bytes, 0xDD, sizeof(bytes));
    }
    for (uint32_t n = 0; n < 20; n++) {
        chunk_bytes(n, expected);
        cr_assert_eq(read_back(s, n, expected, sizeof(expected)), CKB_OK);
    }
    store_free(s);
}

/* Searches the last four bytes of a chunk for which the stored checksum of the payload is 0. */
Test(chunks, a_checksum_of_zero_is_a_checksum_like_any_other)
{
    store *s = store_new();
    uint8_t bytes[16] = {0};
    cr_assert_eq(write_to(s, 7, 0, bytes, sizeof(bytes), CKB_DURABLE), CKB_OK);
    ckb_chunk_info info = place_of(s, 0);
    uint8_t *record = at(s, info.segment, info.offset);
    /* CRC is linear: the effect of each of the last 32 bits is found on its own, then the system is solved. */
    uint32_t base = ckb_crc32c(0, bytes, 16), columns[32];
    uint32_t target = (uint32_t)record[12] | (uint32_t)record[13] << 8 | (uint32_t)record[14] << 16 |
                      (uint32_t)record[15] << 24;
    uint32_t choice[32];
    for (int bit = 0; bit < 32; bit++) {
        bytes[12 + bit / 8] = (uint8_t)(1u << (bit % 8));
        columns[bit] = ckb_crc32c(0, bytes, 16) ^ base;
        bytes[12 + bit / 8] = 0;
        choice[bit] = 1u << bit;
    }
    uint32_t solution = 0;
    for (int row = 0; row < 32; row++) {
        int pivot = row;
        while (pivot < 32 && !(columns[pivot] >> row & 1))
            pivot++;
        cr_assert_lt(pivot, 32);
        uint32_t column = columns[pivot], picked = choice[pivot];
        columns[pivot] = columns[row];
        choice[pivot] = choice[row];
        columns[row] = column;
        choice[row] = picked;
        for (int other = row + 1; other < 32; other++) {
            if (columns[other] >> row & 1) {
                columns[other] ^= column;
                choice[other] ^= picked;
            }
        }
        if (target >> row & 1) {
            target ^= column;
            solution ^= picked;
        }
    }
    for (int i = 0; i < 4; i++)
        record[40 + 12 + i] = (uint8_t)(solution >> (8 * i));
    memset(record + 12, 0, 4);
    /* Checksum 0 over these bytes is right, but the header's own checksum covers the field: */
    cr_assert_eq(read_back(s, 0, record + 40, 16), CKB_CORRUPT);
    /* write the same chunk anew, where it gets another place; whatever its checksum is, it reads back */
    cr_assert_eq(write_to(s, 7, 0, record + 40, 16, CKB_OVERWRITE | CKB_DURABLE), CKB_OK);
    uint8_t copy[16];
    memcpy(copy, record + 40, 16);
    cr_assert_eq(read_back(s, 0, copy, 16), CKB_OK);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>containers
 */

Test(containers, live_from_open_over_closed_to_deleted)
{
    store *s = store_new();
    ckb_container_info info;
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_EXISTS);
    cr_assert_eq(ckb_container_stat(s->volume, 8, &info), CKB_NOTFOUND);
    cr_assert_eq(write_to(s, 8, 0, "x", 1, 0), CKB_NOTFOUND);
    put(s, 0, 5);
    cr_assert_eq(ckb_container_stat(s->volume, 7, &info), CKB_OK);
    cr_assert_eq(info.chunks, 5);
    cr_assert_eq(info.bytes, 5 * CHUNK_BYTES);
    cr_assert_eq(ckb_container_close(s->volume, 7), CKB_OK);
    cr_assert_eq(ckb_container_close(s->volume, 7), CKB_OK);
    cr_assert_eq(write_to(s, 7, 9, "x", 1, 0), CKB_READONLY);
    ckb_chunk_id id = chunk_id(0);
    cr_assert_eq(ckb_chunk_delete(s->writer, &id, 0), CKB_READONLY);
    cr_assert_eq(get(s, 0), CKB_OK);
    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_OK);
    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_DELETED);
    cr_assert_eq(get(s, 0), CKB_DELETED);
    cr_assert_eq(write_to(s, 7, 9, "x", 1, 0), CKB_DELETED);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_DELETED);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(ckb_container_stat(s->volume, 7, &info), CKB_DELETED);
    cr_assert_eq(get(s, 0), CKB_DELETED);
    store_free(s);
}

Test(containers, a_forgotten_id_starts_empty)
{
    ckb_config config = {.max_containers = 2};
    store *s = store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    put(s, 0, 5);
    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 1), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 2), CKB_NOSPACE, "its chunks are still in the index");
    cr_assert_eq(ckb_maintain(s->volume, 100, NULL), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 2), CKB_OK);
    cr_assert_eq(ckb_container_delete(s->volume, 2), CKB_OK);
    cr_assert_eq(ckb_maintain(s->volume, 100, NULL), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
    cr_assert_eq(get(s, 0), CKB_NOTFOUND);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(get(s, 0), CKB_NOTFOUND, "the old one's records are still on the medium");
    store_free(s);
}

Test(containers, are_walked_once_each)
{
    store *s = store_new();
    for (uint64_t id = 100; id < 115; id++)
        cr_assert_eq(ckb_container_create(s->volume, id), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 200), CKB_NOSPACE);
    uint32_t cursor = 0, seen = 0;
    ckb_container_info info;
    while (ckb_container_next(s->volume, &cursor, &info) == CKB_OK)
        seen++;
    cr_assert_eq(seen, 16);
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>space */

/* Fills the volume with chunks of a size; returns how many there was room for. */
static uint32_t fill(store *s, uint64_t container, size_t length)
{
    uint8_t *bytes = malloc(length);
    uint32_t count = 0;
    test_fill(bytes, length, container);
    while (write_to(s, container, count, bytes, length, 0) == CKB_OK)
        count++;
    cr_assert_eq(write_to(s, container, count, bytes, length, 0), CKB_NOSPACE);
    free(bytes);
    return count;
}

Test(space, comes_back_when_everything_is_deleted_and_is_as_much_as_before)
{
    ckb_config config = {.max_chunks = 5000};
    store *s = store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    uint32_t first = fill(s, 7, 1000);
    cr_assert_gt(first, 450, "%u", first);
    for (uint64_t round = 0; round < 20; round++) {
        cr_assert_eq(ckb_container_delete(s->volume, round ? 99 + round : 7), CKB_OK);
        cr_assert_eq(ckb_maintain(s->volume, 1000, NULL), CKB_OK);
        cr_assert_eq(ckb_container_create(s->volume, 100 + round), CKB_OK);
        uint32_t again = fill(s, 100 + round, 1000);
        cr_assert_geq(again + 62, first, "round %u: %u chunks, at first %u", (unsigned)round, again, first);
        if (round % 3 == 0) {
            cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
            cr_assert_eq(store_mount(s), CKB_OK);
            store_open_writer(s);
        }
    }
    store_free(s);
}

Test(space, deletes_work_on_a_full_volume)
{
    ckb_config config = {.max_chunks = 5000};
    store *s = store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    uint32_t count = fill(s, 7, 1000);
    for (uint32_t chunk = 0; chunk < count; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        unsigned flags = chunk % 20 == 0 ? CKB_DURABLE : 0;
        cr_assert_eq(ckb_chunk_delete(s->writer, &id, flags), CKB_OK, "chunk %u of %u", chunk, count);
    }
    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
    cr_assert_gt(fill(s, 8, 1000), count * 3 / 4);
    store_free(s);
}

Test(space, a_full_index_says_so_and_nothing_has_changed)
{
    ckb_config config = {.max_chunks = 10};
    store *s = store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    cr_assert_eq(fill(s, 7, 100), 10);
    ckb_container_info info;
    cr_assert_eq(ckb_container_stat(s->volume, 7, &info), CKB_OK);
    cr_assert_eq(info.chunks, 10);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    s->config.max_chunks = 9;
    cr_assert_eq(store_mount(s), CKB_NOSPACE);
    char text[200];
    ckb_fault_text(&s->fault, text, sizeof(text));
    cr_assert_str_eq(text, "index: no space, room for 9 chunks");
    store_free(s);
}

/* ---------------------------------------------------------------------------------------------- >>memory */

Test(memory, may_lie_at_any_address_and_one_byte_less_is_refused)
{
    store *s = store_new();
    put(s, 0, 3);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    for (size_t shift = 0; shift < 70; shift += shift < 8 ? 1 : 31) {
        uint8_t *memory = malloc(s->volume_bytes + shift), *writer = malloc(s->writer_bytes + shift);
        uint8_t *reader = malloc(s->reader_bytes + shift);
        cr_assert_eq(ckb_mount(&s->medium, NULL, memory + shift, s->volume_bytes, &s->volume, NULL), CKB_OK);
        cr_assert_eq(ckb_writer_open(s->volume, NULL, writer + shift, s->writer_bytes, &s->writer), CKB_OK);
        cr_assert_eq(ckb_reader_open(s->volume, reader + shift, s->reader_bytes, &s->reader), CKB_OK);
        cr_assert_eq(get(s, 2), CKB_OK);
        cr_assert_eq(write_to(s, 7, 100 + (uint32_t)shift, "x", 1, 0), CKB_OK);
        cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
        free(memory);
        free(writer);
        free(reader);
    }
    /* The size includes slack for the worst alignment. */
    cr_assert_eq(ckb_mount(&s->medium, NULL, s->volume_memory, s->volume_bytes / 2, &s->volume, &s->fault),
                 CKB_INVALID);
    char text[200], expected[200];
    ckb_fault_text(&s->fault, text, sizeof(text));
    snprintf(expected, sizeof(expected), "memory: %zu bytes needed, %zu given", s->volume_bytes,
             s->volume_bytes / 2);
    cr_assert_str_eq(text, expected);
    store_free(s);
}

Test(geometry, sizes_that_cannot_work_are_refused_and_small_ones_work_twice)
{
    const uint32_t segments[] = {1, 2, 3, 4, 5, 7, 63, 65};
    const uint64_t sizes[] = {0, 64, 500, 512, 1024, 1536, 2048, 4096, 12288};
    const uint32_t units[] = {0, 1, 3, 8, 64, 256, 512, 4096};
    int worked = 0;
    for (size_t a = 0; a < sizeof(segments) / sizeof(segments[0]); a++)
        for (size_t b = 0; b < sizeof(sizes) / sizeof(sizes[0]); b++)
            for (size_t c = 0; c < sizeof(units) / sizeof(units[0]); c++) {
                ckb_config config = {.max_chunks = 5000};
                ckb_geometry g = {sizes[b], segments[a], 1, units[c], 1, 0};
                if (ckb_volume_memory(&g, &config) == 0 || ckb_writer_memory(&g, NULL) == 0)
                    continue;
                store *s = store_make(sizes[b], segments[a], units[c], &config);
                if (store_format(s) == CKB_OK) {
                    cr_assert_eq(store_mount(s), CKB_OK);
                    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
                    store_open_writer(s);
                    size_t length = (size_t)ckb_max_chunk_bytes(&g) < 50 ? (size_t)ckb_max_chunk_bytes(&g) : 50;
                    uint32_t first = fill(s, 7, length);
                    cr_assert_eq(ckb_container_delete(s->volume, 7), CKB_OK);
                    cr_assert_eq(ckb_maintain(s->volume, 1000, NULL), CKB_OK);
                    cr_assert_eq(ckb_container_create(s->volume, 8), CKB_OK);
                    uint32_t second = fill(s, 8, length);
                    cr_assert_eq(first > 0, second > 0, "%u segments of %u, unit %u: %u, then %u", segments[a],
                                 (unsigned)sizes[b], units[c], first, second);
                    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
                    worked++;
                }
                store_free(s);
            }
    cr_assert_gt(worked, 20);
}
