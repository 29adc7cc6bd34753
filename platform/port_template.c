/* A port in four functions: copy this file, and replace each body by your driver's call.
 *
 * It stands on a static array that behaves like NOR flash: erase sets every bit of a segment, and a write
 * can only clear bits. Nothing else is needed: no memory management, no threads, no operating system. */
#include "ports.h"

/* Step 1: describe the chip. A segment is one erase block, or several that are erased together. At least
 * four segments are needed. The write unit is the smallest piece that may be programmed once between two
 * erases: a page of NAND with its ECC, a word or a row of NOR, a block of an SD card. */
#define FLASH_SEGMENT_BYTES 8192u
#define FLASH_SEGMENT_COUNT 16u
#define FLASH_WRITE_UNIT 16u

static unsigned char flash[FLASH_SEGMENT_COUNT][FLASH_SEGMENT_BYTES];

static bool flash_holds(uint32_t segment, uint64_t offset, size_t length)
{
    return segment < FLASH_SEGMENT_COUNT && length <= FLASH_SEGMENT_BYTES &&
           offset <= FLASH_SEGMENT_BYTES - length;
}

/* Step 2: read. All of `length` or an error. An uncorrectable ECC error is CKB_CORRUPT, a bus that does not
 * answer is CKB_IO: the first says something about the data, the second does not. */
static int port_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    unsigned char *to = buffer;
    (void)context; /* your driver's handle, if it has one */
    if (!flash_holds(segment, offset, length)) {
        return CKB_INVALID;
    }
    for (size_t at = 0; at < length; at++) {
        to[at] = flash[segment][(size_t)offset + at];
    }
    return CKB_OK;
}

/* Step 3: write. `offset` and `length` are multiples of the write unit. Return when the chip has finished,
 * or, if it may go on by itself, at the latest in port_sync. */
static int port_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    const unsigned char *from = buffer;
    (void)context;
    if (!flash_holds(segment, offset, length) || offset % FLASH_WRITE_UNIT != 0 ||
        length % FLASH_WRITE_UNIT != 0) {
        return CKB_INVALID;
    }
    for (size_t at = 0; at < length; at++) {
        unsigned char *cell = &flash[segment][(size_t)offset + at];
        *cell = (unsigned char)(*cell & from[at]);
        if (*cell != from[at]) {
            return CKB_IO; /* the chip's verify: this place was not erased */
        }
    }
    return CKB_OK;
}

/* Step 4: erase. Afterwards the segment can be written from its start. A block that has worn out is
 * CKB_CORRUPT, and will not be used again. On media that need no erase this returns CKB_OK at once. */
static int port_erase(void *context, uint32_t segment)
{
    (void)context;
    if (segment >= FLASH_SEGMENT_COUNT) {
        return CKB_INVALID;
    }
    for (size_t at = 0; at < FLASH_SEGMENT_BYTES; at++) {
        flash[segment][at] = 0xFF;
    }
    return CKB_OK;
}

/* Step 5: sync. When it returns CKB_OK, everything written to and erased in this segment must survive power
 * loss: wait for the chip, flush caches. Here a write is final when it returns, so nothing is left. */
static int port_sync(void *context, uint32_t segment)
{
    (void)context;
    return segment < FLASH_SEGMENT_COUNT ? CKB_OK : CKB_INVALID;
}

/* Step 6: hand it over. Set capabilities only when you are sure; 0 is always correct. */
void ckb_port_medium(ckb_medium *medium)
{
    *medium = (ckb_medium){
        .context = 0,
        .geometry = {.segment_bytes = FLASH_SEGMENT_BYTES,
                     .segment_count = FLASH_SEGMENT_COUNT,
                     .read_unit = 1,
                     .write_unit = FLASH_WRITE_UNIT,
                     .buffer_align = 1,
                     .capabilities = CKB_CAP_SYNC_ALL},
        .read = port_read,
        .write = port_write,
        .erase = port_erase,
        .sync = port_sync,
    };
}
