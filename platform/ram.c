/* RAM as a medium. Freestanding: nothing of an operating system, nothing of libc but memcpy. */
#include "ports.h"

/* Declared here because a freestanding compiler brings no string.h. */
void *memcpy(void *restrict to, const void *restrict from, size_t length);

/* A range outside the medium is a defect of the caller's; saying so is cheaper than a crash. */
static bool ram_holds(const ckb_ram *ram, uint32_t segment, uint64_t offset, size_t length)
{
    return segment < ram->segment_count && length <= ram->segment_bytes &&
           offset <= ram->segment_bytes - length;
}

static unsigned char *ram_at(const ckb_ram *ram, uint32_t segment, uint64_t offset)
{
    return ram->memory + (size_t)(segment * ram->segment_bytes + offset);
}

static int ram_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    const ckb_ram *ram = context;
    if (!ram_holds(ram, segment, offset, length)) {
        return CKB_INVALID;
    }
    memcpy(buffer, ram_at(ram, segment, offset), length);
    return CKB_OK;
}

static int ram_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    const ckb_ram *ram = context;
    if (!ram_holds(ram, segment, offset, length)) {
        return CKB_INVALID;
    }
    memcpy(ram_at(ram, segment, offset), buffer, length);
    return CKB_OK;
}

/* Nothing to do: memory can be written again, and stale content is allowed. */
static int ram_erase(void *context, uint32_t segment)
{
    const ckb_ram *ram = context;
    return segment < ram->segment_count ? CKB_OK : CKB_INVALID;
}

/* Memory survives exactly as long as its owner wants; there is nothing below to flush to. */
static int ram_sync(void *context, uint32_t segment)
{
    const ckb_ram *ram = context;
    return segment < ram->segment_count ? CKB_OK : CKB_INVALID;
}

int ckb_ram_medium(ckb_ram *ram, ckb_medium *medium, void *memory, size_t bytes, uint64_t segment_bytes,
                   uint32_t write_unit)
{
    bool unit_good = write_unit >= 8 && write_unit <= 65536 && (write_unit & (write_unit - 1)) == 0;
    if (!unit_good || segment_bytes == 0 || segment_bytes % write_unit != 0 || segment_bytes > bytes) {
        return CKB_INVALID;
    }
    uint64_t count = bytes / segment_bytes;
    ram->memory = memory;
    ram->segment_bytes = segment_bytes;
    ram->segment_count = count < CKB_NO_SEGMENT ? (uint32_t)count : CKB_NO_SEGMENT - 1;
    *medium = (ckb_medium){
        .context = ram,
        .geometry = {.segment_bytes = segment_bytes,
                     .segment_count = ram->segment_count,
                     .read_unit = 1,
                     .write_unit = write_unit,
                     .buffer_align = 1,
                     .capabilities = CKB_CAP_ANY_ORDER | CKB_CAP_SYNC_ALL},
        .read = ram_read,
        .write = ram_write,
        .erase = ram_erase,
        .sync = ram_sync,
    };
    return CKB_OK;
}
