/* A self-test of the core for any machine: no test framework, no allocation, no operating system, one volume
 * in a static array. It prints one line that holds a checksum of the medium, which is the same on every
 * machine, whatever its byte order and word size. */
#define CHUNKBENCH_IMPLEMENTATION
#include "chunkbench.h"

#include <stdio.h>
#include <string.h>

#define SEGMENT_BYTES 65536u
#define SEGMENT_COUNT 24u
#define WRITE_UNIT 64u
#define CHUNKS 120u
#define CHUNK_BYTES_MAX 40000u

static unsigned char image[SEGMENT_COUNT][SEGMENT_BYTES];
static unsigned char volume_memory[256 * 1024], writer_memory[256 * 1024], reader_memory[256 * 1024];
static unsigned char expected[CHUNK_BYTES_MAX], found[CHUNK_BYTES_MAX];

static int failed(const char *what, int status, const ckb_fault *fault)
{
    char text[200] = "";
    if (fault)
        ckb_fault_text(fault, text, sizeof text);
    printf("selftest: %s: %s (%d) %s\n", what, ckb_status_text(status), status, text);
    return 1;
}

static int image_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    (void)context;
    memcpy(buffer, image[segment] + offset, length);
    return CKB_OK;
}

static int image_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    (void)context;
    if (segment >= SEGMENT_COUNT || offset % WRITE_UNIT != 0 || length % WRITE_UNIT != 0 ||
        offset + length > SEGMENT_BYTES)
        return CKB_INVALID;
    memcpy(image[segment] + offset, buffer, length);
    return CKB_OK;
}

static int image_erase(void *context, uint32_t segment)
{
    (void)context;
    memset(image[segment], 0xFF, SEGMENT_BYTES);
    return CKB_OK;
}

static int image_sync(void *context, uint32_t segment)
{
    (void)context;
    (void)segment;
    return CKB_OK;
}

static const ckb_medium medium = {NULL,        {SEGMENT_BYTES, SEGMENT_COUNT, 1, WRITE_UNIT, 1, 0},
                                  image_read,  image_write,
                                  image_erase, image_sync};
static const ckb_config config = {.max_chunks = 1000};

/* Sizes around what matters: none, units, windows, and more than a buffer. */
static uint32_t chunk_bytes(uint32_t number)
{
    static const uint32_t sizes[] = {0, 1, 7, 8, 63, 64, 1000, 1024, 4096, 16383, 16384, 16385, 40000};
    return sizes[number * 7 % (sizeof sizes / sizeof sizes[0])];
}

static uint32_t chunk_fill(unsigned char *bytes, uint32_t number, uint32_t version)
{
    uint32_t length = chunk_bytes(number), state = number * 2654435761u + version;
    for (uint32_t i = 0; i < length; i++) {
        state = state * 1664525u + 1013904223u;
        bytes[i] = (unsigned char)(state >> 24);
    }
    return length;
}

static ckb_chunk_id chunk_id(uint32_t number)
{
    ckb_chunk_id id = {UINT64_C(0xFEDCBA9876543210), number / 8, number % 8};
    return id;
}

/* Chunks whose number ends in 7 are deleted, in 3 are written twice. */
static int write_all(ckb_volume *volume)
{
    ckb_writer *writer;
    int status = ckb_container_create(volume, chunk_id(0).container);
    if (status == CKB_OK)
        status = ckb_writer_open(volume, NULL, writer_memory, sizeof writer_memory, &writer);
    for (uint32_t n = 0; status == CKB_OK && n < CHUNKS; n++) {
        ckb_chunk_id id = chunk_id(n);
        status = ckb_chunk_write(writer, &id, expected, chunk_fill(expected, n, 0), 0);
        if (status == CKB_OK && n % 10 == 3)
            status =
                ckb_chunk_write(writer, &id, expected, chunk_fill(expected, n, 1), CKB_OVERWRITE | CKB_DURABLE);
        if (status == CKB_OK && n % 10 == 7)
            status = ckb_chunk_delete(writer, &id, 0);
    }
    return status == CKB_OK ? ckb_writer_commit(writer) : status;
}

static int verify_one(ckb_reader *reader, uint32_t number)
{
    size_t got = 0;
    ckb_chunk_id id = chunk_id(number);
    int status = ckb_chunk_read(reader, &id, 0, found, sizeof found, &got);
    if (number % 10 == 7)
        return status == CKB_DELETED ? CKB_OK : CKB_GAP;
    uint32_t length = chunk_fill(expected, number, number % 10 == 3 ? 1 : 0);
    if (status == CKB_END && length == 0)
        return CKB_OK;
    if (status != CKB_OK)
        return status;
    if (got != length || memcmp(expected, found, length) != 0)
        return CKB_GAP;
    if (length < 2)
        return CKB_OK;
    status = ckb_chunk_read(reader, &id, length / 2, found, length, &got);
    if (status != CKB_OK)
        return status;
    return got == length - length / 2 && memcmp(expected + length / 2, found, got) == 0 ? CKB_OK : CKB_GAP;
}

static int verify_all(ckb_volume *volume)
{
    ckb_reader *reader;
    ckb_check_report report;
    ckb_chunk_id unknown = chunk_id(CHUNKS);
    int status = ckb_reader_open(volume, reader_memory, sizeof reader_memory, &reader);
    if (status != CKB_OK)
        return failed("reader", status, NULL);
    for (uint32_t n = 0; n < CHUNKS; n++) {
        status = verify_one(reader, n);
        if (status != CKB_OK)
            return failed("a chunk is not what was written", status, NULL);
    }
    status = ckb_chunk_read(reader, &unknown, 0, found, 1, NULL);
    if (status != CKB_NOTFOUND)
        return failed("a chunk that was never written", status, NULL);
    status = ckb_check(volume, reader, NULL, NULL, &report);
    if (status != CKB_OK || report.chunks != CHUNKS - CHUNKS / 10 || report.damage != 0)
        return failed("check", status, NULL);
    return 0;
}

static int mount(ckb_volume **volume)
{
    ckb_fault fault;
    int status = ckb_mount(&medium, &config, volume_memory, sizeof volume_memory, volume, &fault);
    return status == CKB_OK ? 0 : failed("mount", status, &fault);
}

/* Writes, then mounts as after a power cut, then after a clean unmount. */
static int run(void)
{
    ckb_volume *volume;
    ckb_fault fault;
    const ckb_format_config format = {{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16}, 0, 0};
    memset(image, 0xA5, sizeof image);
    int status = ckb_format(&medium, &format, volume_memory, sizeof volume_memory, &fault);
    if (status != CKB_OK)
        return failed("format", status, &fault);
    if (mount(&volume) != 0)
        return 1;
    status = write_all(volume);
    if (status != CKB_OK)
        return failed("write", status, NULL);
    if (verify_all(volume) != 0 || mount(&volume) != 0 || verify_all(volume) != 0)
        return 1;
    status = ckb_container_close(volume, chunk_id(0).container);
    if (status == CKB_OK)
        status = ckb_unmount(volume);
    if (status != CKB_OK)
        return failed("unmount", status, NULL);
    return mount(&volume) != 0 || verify_all(volume) != 0;
}

int main(void)
{
    if (ckb_crc32c(0, "123456789", 9) != 0xE3069283u)
        return failed("CRC-32C", CKB_CORRUPT, NULL);
    if (ckb_volume_memory(&medium.geometry, &config) > sizeof volume_memory ||
        ckb_writer_memory(&medium.geometry, NULL) > sizeof writer_memory ||
        ckb_reader_memory(&medium.geometry, 0) > sizeof reader_memory)
        return failed("memory", CKB_NOSPACE, NULL);
    if (run() != 0)
        return 1;
    printf("selftest: ok, medium %08lx\n", (unsigned long)ckb_crc32c(0, image, sizeof image));
    return 0;
}
