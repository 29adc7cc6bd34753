/* Media that need no operating system: RAM, and the template for a port. Freestanding C99. */
#ifndef CKB_PORTS_H
#define CKB_PORTS_H

#include "chunkbench.h"

#ifdef __cplusplus
extern "C" {
#endif

/* RAM of the caller's as a medium. */
typedef struct ckb_ram {
    unsigned char *memory;
    uint64_t segment_bytes;
    uint32_t segment_count;
} ckb_ram;

/* Makes `medium` work on `bytes` of `memory`, of which whole segments are used. `ram` and `memory` stay
 * the caller's and must outlive the medium. Any alignment of the memory is fine.
 * CKB_INVALID: write_unit is not a power of two from 8 to 65536, segment_bytes is no multiple of it, or
 * not a single segment fits. */
int ckb_ram_medium(ckb_ram *ram, ckb_medium *medium, void *memory, size_t bytes, uint64_t segment_bytes,
                   uint32_t write_unit);

/* The template: fills `medium` with a port over a static array that stands in for a flash chip. */
void ckb_port_medium(ckb_medium *medium);

#ifdef __cplusplus
}
#endif
#endif
