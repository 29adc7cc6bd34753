/* A volume on a medium in memory, with one writer and one reader: what most tests of the core need. */
#ifndef STORE_H
#define STORE_H

#include "chunkbench.h"
#include "test.h"

#define UNIT 512u
#define SEGMENT_BYTES (64u * 1024)
#define SEGMENTS 12u
#define CHUNK_BYTES 1000u

typedef struct store {
    uint8_t *image;
    ckb_medium medium;
    ckb_config config;
    void *volume_memory, *writer_memory, *reader_memory;
    size_t volume_bytes, writer_bytes, reader_bytes;
    ckb_volume *volume;
    ckb_writer *writer;
    ckb_reader *reader;
    ckb_fault fault;
    uint32_t fail_segment; /* reads of it fail */
} store;

static inline uint8_t *at(store *s, uint32_t segment, uint64_t offset)
{
    return s->image + (size_t)(segment * s->medium.geometry.segment_bytes + offset);
}

static inline int store_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    store *s = context;
    if (segment == s->fail_segment)
        return CKB_IO;
    memcpy(buffer, at(s, segment, offset), length);
    return CKB_OK;
}

static inline int store_write(void *context, uint32_t segment, uint64_t offset, const void *buffer,
                              size_t length)
{
    memcpy(at(context, segment, offset), buffer, length);
    return CKB_OK;
}

static inline int store_nothing(void *context, uint32_t segment)
{
    (void)context;
    (void)segment;
    return CKB_OK;
}

/* Mounts what is on the medium; a mount before this one is left as a crash leaves it. */
static inline int store_mount(store *s)
{
    int status = ckb_mount(&s->medium, &s->config, s->volume_memory, s->volume_bytes, &s->volume, &s->fault);
    if (status == CKB_OK)
        cr_assert_eq(ckb_reader_open(s->volume, s->reader_memory, s->reader_bytes, &s->reader), CKB_OK);
    return status;
}

static inline void store_open_writer(store *s)
{
    cr_assert_eq(ckb_writer_open(s->volume, NULL, s->writer_memory, s->writer_bytes, &s->writer), CKB_OK);
}

static inline int store_format(store *s)
{
    ckb_format_config format = {{1, 2, 3, 4}, 0, 0};
    size_t bytes = ckb_format_memory(&s->medium.geometry);
    void *memory = malloc(bytes);
    int status = ckb_format(&s->medium, &format, memory, bytes, &s->fault);
    free(memory);
    return status;
}

/* Memory and an empty medium of this geometry; nothing is formatted yet. */
static inline store *store_make(uint64_t segment_bytes, uint32_t segments, uint32_t unit,
                                const ckb_config *config)
{
    store *s = calloc(1, sizeof(*s));
    ckb_medium medium = {
        s, {segment_bytes, segments, 1, unit, 1, 0}, store_read, store_write, store_nothing, store_nothing};
    s->medium = medium;
    if (config)
        s->config = *config;
    s->fail_segment = CKB_NO_SEGMENT;
    s->image = calloc(segments, (size_t)segment_bytes);
    s->volume_bytes = ckb_volume_memory(&s->medium.geometry, &s->config);
    s->writer_bytes = ckb_writer_memory(&s->medium.geometry, NULL);
    s->reader_bytes = ckb_reader_memory(&s->medium.geometry, 0);
    s->volume_memory = malloc(s->volume_bytes);
    s->writer_memory = malloc(s->writer_bytes);
    s->reader_memory = malloc(s->reader_bytes);
    return s;
}

/* A formatted and mounted volume with container 7 and an open writer. */
static inline store *store_new_with(uint64_t segment_bytes, uint32_t segments, uint32_t unit,
                                    const ckb_config *config)
{
    store *s = store_make(segment_bytes, segments, unit, config);
    cr_assert_eq(store_format(s), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    cr_assert_eq(ckb_container_create(s->volume, 7), CKB_OK);
    store_open_writer(s);
    return s;
}

static inline store *store_new(void)
{
    return store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, NULL);
}

static inline void store_free(store *s)
{
    free(s->image);
    free(s->volume_memory);
    free(s->writer_memory);
    free(s->reader_memory);
    free(s);
}

static inline void chunk_bytes(uint32_t chunk, uint8_t bytes[CHUNK_BYTES])
{
    test_fill(bytes, CHUNK_BYTES, chunk * 1000u);
}

static inline ckb_chunk_id chunk_id(uint32_t chunk)
{
    ckb_chunk_id id = {7, 0, chunk};
    return id;
}

static inline void put(store *s, uint32_t from, uint32_t to)
{
    uint8_t bytes[CHUNK_BYTES];
    for (uint32_t chunk = from; chunk < to; chunk++) {
        ckb_chunk_id id = chunk_id(chunk);
        chunk_bytes(chunk, bytes);
        cr_assert_eq(ckb_chunk_write(s->writer, &id, bytes, sizeof(bytes), 0), CKB_OK);
    }
    cr_assert_eq(ckb_writer_commit(s->writer), CKB_OK);
}

static inline int get(store *s, uint32_t chunk)
{
    uint8_t bytes[CHUNK_BYTES], expected[CHUNK_BYTES];
    size_t got = 0;
    ckb_chunk_id id = chunk_id(chunk);
    int status = ckb_chunk_read(s->reader, &id, 0, bytes, sizeof(bytes), &got);
    chunk_bytes(chunk, expected);
    if (status == CKB_OK) {
        cr_assert_eq(got, sizeof(bytes));
        cr_assert_arr_eq(bytes, expected, sizeof(bytes));
    }
    return status;
}

static inline void assert_all_there(store *s, uint32_t from, uint32_t to)
{
    for (uint32_t chunk = from; chunk < to; chunk++)
        cr_assert_eq(get(s, chunk), CKB_OK, "chunk %u: %s", chunk, ckb_status_text(get(s, chunk)));
}

static inline ckb_chunk_info place_of(store *s, uint32_t chunk)
{
    ckb_chunk_info info;
    ckb_chunk_id id = chunk_id(chunk);
    cr_assert_eq(ckb_chunk_stat(s->volume, &id, &info), CKB_OK);
    return info;
}

static inline ckb_stat stat_of(store *s)
{
    ckb_stat stat;
    ckb_volume_stat(s->volume, &stat);
    return stat;
}

static inline void assert_text(const ckb_fault *fault, const char *expected)
{
    char text[200];
    ckb_fault_text(fault, text, sizeof(text));
    cr_assert_str_eq(text, expected);
}

static inline void assert_first_damage(store *s, const char *expected)
{
    ckb_fault damage;
    ckb_volume_fault(s->volume, NULL, &damage);
    assert_text(&damage, expected);
}

static inline void assert_last_fault(store *s, const char *expected)
{
    ckb_fault last;
    ckb_volume_fault(s->volume, &last, NULL);
    assert_text(&last, expected);
}

#endif
