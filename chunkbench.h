/* chunkbench.h - a storage core that measures itself: durable chunks and logs in one C header.
 *
 * CONTENTS (search for the tag)
 *   MANUAL      >>start    how to use it in five minutes
 *               >>promise  what is guaranteed, and where the promise ends
 *               >>threads  who may call what from where
 *               >>memory   how much, and whose
 *               >>macros   what can be configured at compile time
 *   FORMAT      >>format   every byte on the medium, and why
 *               >>recovery what a mount does with what it finds
 *   API         >>config >>status >>medium >>volume >>container >>chunk >>stream >>export >>log >>check >>bench
 *   IMPLEMENTATION  only where CHUNKBENCH_IMPLEMENTATION is defined: >>base >>crc >>types >>geometry >>record
 *               >>source >>walk >>index >>journal >>segment >>tables >>mount >>writer >>load >>lookup
 *               >>chunk-write >>compact >>chunk-read >>export-impl >>stream-impl >>log-impl >>volume-api >>checkpoint
 *               >>check-impl >>scrub-impl >>text
 *
 * ---------------------------------------------------------------------------------------------- >>start
 *
 * In exactly one C file:
 *
 *     #define CHUNKBENCH_IMPLEMENTATION
 *     #include "chunkbench.h"
 *
 * everywhere else only the #include. A program gives the library a medium (four functions and a geometry;
 * platform/ has a directory, a block device or image file, and RAM), and memory:
 *
 *     size_t bytes = ckb_volume_memory(&medium.geometry, NULL);
 *     ckb_volume *volume;
 *     ckb_mount(&medium, NULL, malloc(bytes), bytes, &volume, NULL);
 *     ckb_container_create(volume, 7);
 *     bytes = ckb_writer_memory(&medium.geometry, NULL);
 *     ckb_writer *writer;
 *     ckb_writer_open(volume, NULL, malloc(bytes), bytes, &writer);
 *     ckb_chunk_id id = {7, 0, 0};
 *     ckb_chunk_write(writer, &id, "hello", 5, CKB_DURABLE);
 *
 * or, where many tiny writes are to become chunks, a stream over one block:
 *
 *     bytes = ckb_stream_memory(&medium.geometry, NULL);
 *     ckb_stream *stream;
 *     ckb_stream_open(writer, 7, 1, NULL, 0, malloc(bytes), bytes, &stream);
 *     ckb_stream_write(stream, "hello", 5);
 *     ckb_stream_close(stream, CKB_DURABLE);
 *
 * or, for a log beside or instead of the chunks:
 *
 *     ckb_log_create(volume, "events", 1);
 *     bytes = ckb_log_memory(&medium.geometry, NULL);
 *     ckb_log *log;
 *     ckb_log_open(volume, "events", NULL, malloc(bytes), bytes, &log, NULL);
 *     uint64_t index;
 *     ckb_log_append(log, 1, "hello", 5, CKB_DURABLE, &index);
 *     bytes = ckb_log_cursor_memory(&medium.geometry, 0);
 *     ckb_log_cursor *cursor;
 *     ckb_log_cursor_open(log, 0, malloc(bytes), bytes, &cursor);
 *     ckb_entry entry;
 *     char data[100];
 *     ckb_log_read(cursor, index, &entry, data, sizeof(data));
 *
 * ckb_format makes the volume once. A host that has time to spare, or a thread for it, calls ckb_maintain: it keeps
 * segments ready and makes room by compaction, which appends would otherwise have to wait for; and ckb_scrub, which
 * finds damage before it is read. Structs of configuration mean their defaults where they are zero, and a null
 * pointer means all defaults. Functions return 0 or a negative ckb_status; what went wrong and where stands in a
 * ckb_fault, which ckb_fault_text turns into one line.
 *
 * ---------------------------------------------------------------------------------------------- >>promise
 *
 * Promised, on a medium that keeps the contract of section >>medium:
 *   - What was acknowledged as durable (CKB_DURABLE, ckb_writer_commit, ckb_log_commit, ckb_sync, container
 *     calls, a clean ckb_unmount) is there after any crash or power cut, byte for byte.
 *   - A log is a row of entries without holes: after a crash it has all that were acknowledged, in their order,
 *     and of the others a prefix. What was truncated, purged or reset away never comes back, and the next index
 *     is the one after the last entry, or after the last purge or reset.
 *   - What was deleted or overwritten durably never comes back. Bytes of an earlier life of a segment, of
 *     an earlier volume or of another place never verify.
 *   - A chunk is there whole or not at all. A read returns verified bytes or an error.
 *   - Of a block that a stream writes a reader finds a prefix at any time, and after a crash one that holds all
 *     that was acknowledged by ckb_stream_hsync or a durable ckb_stream_close. It can tell whether it is all.
 *   - "Never written", "deleted", "corrupt" and "I/O error" are four different answers. A lost segment
 *     never turns into "not found".
 *   - Nothing durable is rewritten in place: each write unit is written at most once between two erases,
 *     in rising order inside a segment.
 *   - A mount writes nothing, allocates nothing and needs no free space.
 *   - A checkpoint only saves time: a mount with it and one without find the same chunks at the same places.
 *   - A failed write or sync is final for the mount: it and all later writes say so; reads go on.
 *
 * Not promised:
 *   - Order between appends of two writers, or between appends that no commit separates: after a crash any
 *     part of what was not acknowledged may be there, per writer a prefix of each segment.
 *   - That entries found after an unclean end are durable before the next commit: see ckb_log_open.
 *   - Anything about a medium whose sync lies. `chunkbench check --acks` finds such media.
 *   - Repair: damaged bytes are found and named, there is no second copy.
 *   - That a mount finds damage in segments that a checkpoint lets it skip: reads do, and ckb_check.
 *   - Secrecy or authenticity: CRC-32C finds accidents, not attackers.
 *   - That DELETED is answered for ever: a container that was deleted is forgotten when its place in the
 *     table is needed and nothing of it is left, a chunk when compaction has removed its last old record. The
 *     id may then be used again and finds nothing old.
 *
 * ---------------------------------------------------------------------------------------------- >>threads
 *
 * Without CKB_THREADS a volume belongs to one thread. With it every function may be called from any thread at
 * any time, except that ckb_mount and ckb_unmount run alone, that ckb_writer_close and ckb_log_close must be the
 * last call on a writer or log, and that a reader, cursor or stream serves one thread at a time. Callbacks run in
 * the calling thread and must not call into the volume. The library starts no threads and reads no clock.
 *
 * ---------------------------------------------------------------------------------------------- >>memory
 *
 * All memory comes from the caller and is asked for once: ckb_volume_memory, ckb_writer_memory, ckb_log_memory,
 * ckb_reader_memory, ckb_log_cursor_memory, ckb_stream_memory (one chunk), ckb_stream_cursor_memory. The index takes
 * 32 bytes a slot at a load of 3/4, and two bytes for eight slots: about 43 bytes a chunk. A segment takes 68 bytes, a
 * container 64, a log 80. A writer takes two buffers and 28 bytes for each entry of a summary, an open log two buffers and
 * 4 bytes for each segment it may have. Compaction takes a writer of default size and one more buffer. Nothing else grows.
 * On a Cortex-M3 the stack takes up to 640 bytes, and 880 where a stream is opened, without the medium's functions; there
 * is no recursion.
 *
 * ---------------------------------------------------------------------------------------------- >>macros
 *
 *   CHUNKBENCH_IMPLEMENTATION  compile the implementation here (C only)
 *   CHUNKBENCH_BENCH           with the bench part: histograms, workloads, reports
 *   CKB_CONFIG                 a header in quotes to include first, for the macros below
 *   CKB_STATIC                 everything static, for one translation unit or several private copies
 *   CKB_API                    decoration of the public declarations
 *   CKB_THREADS                locks and atomics; needs the compiler's __atomic built-ins
 *   CKB_MUTEX ...              with CKB_THREADS: another mutex than pthread's: CKB_MUTEX (the type), _INIT,
 *                              _DESTROY, _LOCK, _UNLOCK, CKB_CONDITION (the type), _INIT, _DESTROY, _WAIT,
 *                              _BROADCAST, _SIGNAL
 *   CKB_NO_CHUNKS              no containers and chunks: a log store
 *   CKB_NO_LOG                 no logs: a chunk store. A build without one of them refuses to mount a volume
 *                              that has some, unless for reading; without chunks a check then looks into small
 *                              payloads only
 *   CKB_READ_ONLY              only what a boot loader needs: mount, read, check
 *   CKB_NO_STATUS_TEXT         no strings
 *   CKB_ASSERT(condition)      what to do when an invariant of the library breaks; default: trap
 *   CKB_CRC32C                 a function (uint32_t state, const void *, size_t) for the checksum's raw state
 *
 * ============================================================================================== >>format
 *
 * All integers are little-endian. Offsets inside a segment are stored in units of 8 bytes. Format version 1.0:
 * a reader refuses another major, and mounts a later minor for reading only.
 *
 * SEGMENT. The medium is an array of equal segments; the first ones belong to the journal, the others are given
 * to writers one by one. Each begins with a header, which has its write unit to itself:
 *
 *      0  8  "CHUNKB\r\n"           40  8  segment size in bytes
 *      8  2  format major           48  4  number of this segment
 *     10  2  format minor           52  4  segments of the volume
 *     12  4  write unit             56  4  segments on each side of the journal
 *     16 16  volume id, random      60  4  CRC-32C of bytes 0-59
 *     32  8  epoch: rises with every allocation of any segment
 *
 * How many segments the volume has is what the header of the journal in force says: it grows with a switch of the
 * journal, and other headers may have an earlier count.
 *
 * The header is written and synced when the segment is prepared, before the journal counts it as in use; so a
 * segment in use whose header is missing is a loss and never a coincidence.
 *
 * RECORD. Records tile a segment from behind the header to its tail. Header fields common to all:
 *
 *      0  4  checksum of bytes 4 to the end of the record's header
 *      4  1  type                    5  1  flags: 1 the payload begins on the next write unit; 2 see END
 *      6  2  bytes of this header    8  4  bytes of payload
 *     12  4  checksum of the payload, or of the window table if there is one
 *     16  4  durable mark: all of this segment below was durable when this was written
 *     20  4  depends on the type
 *
 *   Every checksum is a CRC-32C whose initial state comes from volume id, epoch, segment, offset of the record
 *   and purpose: state = crc(volume id, from 0xFFFFFFFF), then epoch, segment, and offset/8 + purpose * 2^32,
 *   8 bytes each; no final inversion. Purpose 0 is the header, 1 the payload or table, 2 + n window n. So bytes
 *   that are stale, moved or misdirected do not verify. Zeros and 0xFF are no valid type. A record ends at the
 *   next multiple of 8. Gaps for alignment hold zeros and mean nothing.
 *
 *    1 START    first in a segment. 20: stream (1 chunks, 2 a log, 3 a checkpoint, 4 chunks that compaction moved).
 *               24: stream id 8, place in the stream 8, predecessor's segment 4 (0xFFFFFFFF none), its end 4, its
 *               epoch 8; of a log also its first index 8, of a checkpoint zero. Chunk segments stand alone; the
 *               stream id of a log is its serial, of a checkpoint zero like its place.
 *    2 END      closes a batch; its payload is the padding to the next write unit. Flag 2: the segment's last.
 *    3 CHUNK    20: version. 24: container serial 4, chunk 4, block 8. A payload of more than 16 KiB is preceded
 *               by a table of one checksum (4 bytes) for each window of 16 KiB, so part of it can be verified.
 *    4 DELETE   as CHUNK, without payload: the chunk's version from here on is "deleted".
 *    5 SUMMARY  what the records since the summary before it were. 20: place of that summary, 0 none. Entries of
 *               28 bytes: serial 4, chunk 4, block 8, version 4 (top bit: deleted), place 4, payload bytes 4.
 *    6 SEAL     in the last write unit, or the last 32 bytes where units are smaller; only in segments of 64 or
 *               more units. 20: end of the records; 24: place of the last summary, or of a log's last entry, 4.
 *               Written after the segment was synced: whoever finds it knows that all is there.
 *    7 FACTS    journal: facts of 24 bytes, see below.
 *    8 NEXT     journal: where it goes on. 24: epoch 8: in the place of a SEAL that of the other side, which took
 *               over; as much before it, on sides of several segments, that of this one, which continues it.
 *    9 ENTRY    20: how many entries before this one were not durable when it was written (0xFFFFFFFF: so many
 *               or more). 24: index 8, term 8. That is a durable mark that reaches over segments.
 *   10 CHECKPOINT 20: 0 rows of 24 bytes: segment 4, units that its chunk records take 4 (top bit: of stream 4),
 *               epoch 8, end 4, last summary 4; 1 entries of 32 bytes: as in SUMMARY, then segment 4.
 *
 *   Types up to 31 are reserved. A batch is what one write takes to the medium:
 *   it begins on a write unit and ends with END, so a unit is never written twice. (In front of a payload with
 *   flag 1 a batch is cut at the unit instead.) The costs: 40 bytes a chunk, 28 in its summary, 24 and the
 *   padding a batch.
 *
 * JOURNAL. Rare facts, on two sides alternately: the even and the odd ones of the first segments, as many on
 * each side as hold twice what a snapshot of all segments takes, so usually one. All segments of a side have
 * the same epoch; one is begun when the one before is full, and NEXT there says so. A fact is kind 4, a 4, b 8,
 * c 8:
 *
 *    1 COUNTERS   b next epoch, c next container serial
 *    2 SEGMENT    a number, b epoch (0 free, all ones retired), c extent: end in bits 0-29, last summary or log
 *                 entry in bits 30-59, kind in bits 60-63: 0 unknown, 1 parked (may be continued at its end), 2 resumed
 *                 (durable up to the end given, continued since), 3 full
 *    3 CONTAINER  a serial, b id, c state in bits 0-7 (0 forgotten, 1 open, 2 closed, 3 unhealthy, 4 deleted)
 *                 and flags from bit 8 (1: holds records that supersede others)
 *    4 SNAPSHOT_END  all before it in this segment is the whole state
 *    5 CLEAN      b next epoch at a clean unmount: every segment of a lower epoch is durable to its last END
 *    6 LOG        a serial, b and c name of up to 16 bytes, zero-padded; all zero: the log was deleted
 *    7 LOG_FIRST  a serial, b index of the first entry that is kept, c epoch: its segments of a lower one are void
 *    8 CHECKPOINT a its last segment, b epoch of that, c its end in bits 0-29 and the count of entries from bit 30:
 *                 the checkpoint in force from here on
 *    9 SCRUB      a the segment where scrubbing goes on, b bytes of this pass so far, c complete passes in bits 0-31
 *                 and damaged places of this pass from bit 32. A hint: nothing depends on it
 *
 *   When a side is full, and at the first fact of every mount (so that nothing is appended behind a tail that a
 *   crash may have left), the other one is begun with a snapshot, under an epoch with which nothing in it
 *   verifies. It is in force once it is synced, and NEXT in the old one says so before the next fact. Preparing
 *   segments costs a fact; rolling into a prepared one costs none.
 *
 * LOGS. A log's segments, in the order of their epochs, each name the one before them and where it ended. A purge
 * is a LOG_FIRST; so is a reset, which makes all segments there are void. A truncate frees segments, newest
 * first, and gives the one that stays the extent "full" with its new end, in one batch of facts where they fit;
 * then the log goes on in another segment. Container and log serials are given from one counter.
 *
 * CHECKPOINT. The index as it was, so that a mount need not read the segments that the rows name: full ones of
 * chunks, which change no more as long as they have their epoch. Rows come first, then the slots of the index in its
 * order, so that whatever is in a covered segment is in an entry, or what superseded it is, or that is in a segment
 * that is read. Where a row's epoch is not the journal's the segment was freed since: what it held is superseded.
 * Entries of segments that are not covered are passed over. The segments of a checkpoint name each other backwards.
 * It is in force by one fact, written when its segments are durable, and all that its entries tell of too; after that
 * the one before it is freed. Its segments are free again when no such fact names them. It costs 32 bytes for each
 * chunk, and one is begun when half as many records as the last one holds are new in full segments.
 *
 * VERSIONS. Each write of the same chunk id has a version one higher than the one it supersedes; the highest
 * counts. Where a segment was lost a chunk that is not there starts at 2^24, above what the lost one may have
 * held of it. A segment is freed when nothing in it counts and everything that superseded its records is durable.
 * Compaction copies records with their version into segments of its own; of two with the same version the one in
 * such a segment counts, of two there that of the newer epoch. A delete is left out of the copy when no segment
 * older than it holds records that do not count: only there could be one that it hides.
 * Containers are known to records by serial, which is never given twice; records of an unknown lower serial
 * belong to a deleted container.
 *
 * EXPORT. A container as a stream, for another volume or host. It is a row of frames, each a header of 40 bytes and
 * perhaps a payload: BEGIN, a CHUNK for each chunk, END. Every checksum is a CRC-32C without final inversion, and begins
 * with crc(place of the frame in the stream, 8 bytes, from 0xFFFFFFFF): a frame that was moved does not verify.
 *
 *      0  4  checksum of bytes 4-39          16  8  BEGIN: "CKBXPORT"; END: bytes of all payloads
 *      4  1  1 BEGIN, 2 CHUNK, 3 END         24  4  CHUNK: chunk; END: chunks left out, since they cannot be read
 *      5  1  major version 1, 6 1 minor 0    28  4  CHUNK: bytes of the payload, which follows
 *      7  1  BEGIN: container state          32  4  CHUNK: checksum of the payload
 *      8  8  BEGIN: container id;            36  4  zero
 *            CHUNK: block; END: how many chunks
 *
 * Chunks come in no special order. A reader refuses another major, and does not mind a later minor.
 *
 * ---------------------------------------------------------------------------------------------- >>recovery
 *
 * A mount decides by this table. "Mark" is the highest durable mark in any valid record of the segment, those
 * behind the damage included, or what the journal says of it.
 *
 *   J1  no journal header                               NOTFOUND; CORRUPT if a magic is there
 *   J2  newer journal complete                          in force
 *   J3  newer one incomplete, older still in force      the older: a switch was interrupted
 *   J4  NEXT points to a segment that is unreadable     CORRUPT, the mount is refused
 *   J5  journal damaged above its mark                  tail dropped and counted, the rest in force
 *   J6  journal damaged below its mark                  CORRUPT, the mount is refused
 *   S1  free by the journal                             ignored, whatever it holds
 *   S2  in use, header good, extent known               its summaries, or its records up to the end
 *   S3  a summary does not verify                       counted as damage; the records instead
 *   S4  in use, header missing, foreign or stale        lost: damage; misses answer CORRUPT from now on
 *   S5  in use, extent unknown, records to last END     full
 *   S6  damage above the mark                           tail dropped and counted; no longer appended to
 *   S7  damage below the mark                           damage, place given; the walk goes on behind it
 *   S8  in use, nothing behind the header               was prepared and never used: free again
 *   S9  free, but records of a newer epoch are there    in use after all: read as S5 when the journal's tail was
 *                                                       dropped, else never erased, and read at the next mount
 *   S10 retired                                         left alone
 *   L1  log segments that name each other               read in order; the first index is the journal's
 *   L2  log segment of a deleted log, or void           freed
 *   L3  a log segment ends before the next one says,    torn: cut there and counted; the segments behind it are
 *       or is not there, and nothing shows that it      free again
 *       was durable
 *   L4  it ends before the next one says, and entries   damage: the first missing index, and the place
 *       behind show that it was durable
 *   L5  the named predecessor is not there, and was     damage: the missing indexes, and its epoch
 *       durable
 *   L6  a lost segment is newer than the log's newest,  damage: opening says CORRUPT, unless for salvage
 *       or than its last purge when it is empty, and
 *       no other log's segment names it
 *   L7  two segments claim one place in a log           damage: the newer counts, the other is set aside
 *   L8  START does not verify, entries do               damage; the successor tells whose it is, or else as L6
 *   L9  an index that does not follow                   damage: both values
 *   L10 the place of the last entry holds none          damage; the records instead
 *   C1  checkpoint complete                             its entries; the segments it covers are not read
 *   C2  segments of one that is not in force            free again: it was interrupted, or is the one before
 *   C3  a record of it does not verify, or its count    damage, place given; all segments are read instead, and
 *       is another                                      its own are free
 *   C4  a segment of it, its START or epoch is not      as C3; a header that is missing matters to nobody
 *       there
 *   C5  a segment that it covers was freed since        passed over, and read if it is in use again
 *   C6  the journal dropped a tail                      all segments are read: facts newer than the checkpoint
 *                                                       may be lost; its own are free
 *   C7  a segment where a mount finds damage, S7 or R2  is never covered: each mount finds it again
 *   R1  payload of a durable chunk does not verify      the chunk is there, reading it says CORRUPT
 *   R2  chunk or log of a serial not yet given          damage: the journal lost a fact
 *   E1  the medium reports an error                     the mount fails with it: it says nothing about the data
 *
 * Everything stands until the first write: then what was found is synced, and the journal moves on.
 */
#ifndef CHUNKBENCH_H
#define CHUNKBENCH_H

/* ---------------------------------------------------------------------------------------------- >>config
 * Compile-time configuration. Every macro only removes code or replaces something of libc. */

#ifdef CKB_CONFIG
#include CKB_CONFIG
#endif

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CKB_VERSION_MAJOR 0
#define CKB_VERSION_MINOR 1
#define CKB_VERSION_PATCH 0
#define CKB_VERSION_TEXT "0.1.0"

/* Version of the bytes on the medium; separate from the library's. See FORMAT. */
#define CKB_FORMAT_MAJOR 1
#define CKB_FORMAT_MINOR 0

#ifndef CKB_API
#ifdef CKB_STATIC
#if defined(__GNUC__)
#define CKB_API static __attribute__((unused))
#else
#define CKB_API static
#endif
#else
#define CKB_API extern
#endif
#endif

/* For the one function that is called too often to be a call. */
#if defined(__GNUC__)
#define CKB_INLINE static inline __attribute__((unused))
#define CKB_COPY __builtin_memcpy
#define CKB_AHEAD(address) __builtin_prefetch((const void *)((uintptr_t)(address) + 256), 1)
#else
#include <string.h>
#define CKB_INLINE static inline
#define CKB_COPY memcpy
#define CKB_AHEAD(address) ((void)(address))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------- >>status
 * Every function that can fail returns 0 or one of these. The values never change. */

typedef enum ckb_status {
    CKB_OK = 0,
    CKB_IO = -1,       /* the medium reported an error; nothing is known about the range */
    CKB_CORRUPT = -2,  /* bytes that were durable no longer verify, or are missing */
    CKB_NOSPACE = -3,  /* no room on the medium or in the index; nothing was written */
    CKB_INVALID = -4,  /* an argument, a configuration or a call order that is never right */
    CKB_READONLY = -5, /* the volume, or the container, does not take writes */
    CKB_FAILED = -6,   /* an earlier write or sync failed; this mount takes no more writes */
    CKB_TOOBIG = -7,   /* larger than the format or the configuration allows; nothing changed */
    CKB_NOTFOUND = -8, /* never written */
    CKB_DELETED = -9,  /* was there and was deleted */
    CKB_PURGED = -10,  /* a log index below the first one kept */
    CKB_END = -11,     /* beyond the last one */
    CKB_BUSY = -12,    /* in use by somebody else */
    CKB_EXISTS = -13,  /* the same id is there with other content */
    CKB_VERSION = -14, /* a format version this library does not know; not corruption */
    CKB_GAP = -15      /* a sequence has a hole */
} ckb_status;

/* What a fault is about; with the fields of ckb_fault it makes the message. */
typedef enum ckb_topic {
    CKB_TOPIC_NONE = 0,
    CKB_TOPIC_ARGUMENT,       /* index: number of the field, expected and found: its bounds */
    CKB_TOPIC_GEOMETRY,       /* a value on the medium differs from the one given */
    CKB_TOPIC_MEMORY,         /* expected: bytes needed, found: bytes given */
    CKB_TOPIC_SEGMENT_HEADER, /* a segment that is in use has no valid header */
    CKB_TOPIC_RECORD,         /* a record does not verify */
    CKB_TOPIC_SUMMARY,        /* a segment's summary does not verify; the records were read instead */
    CKB_TOPIC_PAYLOAD,        /* a chunk's bytes do not verify; offset is the place of its record */
    CKB_TOPIC_JOURNAL,        /* the journal does not verify */
    CKB_TOPIC_VERSION,        /* found: major << 16 | minor of the medium; expected: ours */
    CKB_TOPIC_MEDIUM,         /* an operation of the medium failed */
    CKB_TOPIC_CONTAINER,      /* index: container id */
    CKB_TOPIC_CHUNK,          /* index: chunk id */
    CKB_TOPIC_INDEX_FULL,     /* expected: chunks the index can hold */
    CKB_TOPIC_TAIL,           /* bytes that were never made durable were dropped; found: how many */
    CKB_TOPIC_JOURNAL_ROOM,   /* index: segments; expected: facts a snapshot of them has, found: room */
    CKB_TOPIC_LOG,            /* index: number of the log's serial */
    CKB_TOPIC_ENTRY,          /* a log entry does not verify: index, segment, offset of its record */
    CKB_TOPIC_ENTRY_ORDER,    /* found: index of the entry at segment, offset; expected: what it should be */
    CKB_TOPIC_LOG_HOLE,       /* entries expected..found are lost: what comes before segment, epoch index */
    CKB_TOPIC_ENTRY_LOST,     /* entries expected..found are in no segment; they should follow in segment */
    CKB_TOPIC_LOG_END,        /* entries from index on may be lost with segment, whose epoch was expected */
    CKB_TOPIC_LOG_DOUBLE,     /* segment and segment found claim the same place of a log, expected */
    CKB_TOPIC_CHECKPOINT,     /* a checkpoint does not verify; all segments are read instead */
    CKB_TOPIC_COUNT
} ckb_topic;

/* Where and what: filled beside a status. Fields that do not apply are 0, segment is CKB_NO_SEGMENT. */
typedef struct ckb_fault {
    int status; /* a ckb_status */
    int topic;  /* a ckb_topic */
    uint32_t segment;
    uint64_t offset; /* bytes from the start of the segment */
    uint64_t index;
    uint64_t expected;
    uint64_t found;
} ckb_fault;

#define CKB_NO_SEGMENT UINT32_MAX

/* The library's version, for example "0.1.0". Any thread; never fails. */
CKB_API const char *ckb_version(void);

/* A short English text for a status ("no space"), never null. Any thread. With CKB_NO_STATUS_TEXT
 * it is always "". */
CKB_API const char *ckb_status_text(int status);

/* Writes one line for people, without a newline, into `text` (`bytes` long, always terminated):
 * thing, place, both values. Returns the length written. Any thread. */
CKB_API size_t ckb_fault_text(const ckb_fault *fault, char *text, size_t bytes);

/* CRC-32C (Castagnoli, reflected polynomial 0x82F63B78, initial value and final xor 0xFFFFFFFF;
 * RFC 3720 appendix B.4). `crc` is 0 at first or the result for the bytes before. Any thread. */
CKB_API uint32_t ckb_crc32c(uint32_t crc, const void *data, size_t bytes);

/* ---------------------------------------------------------------------------------------------- >>medium
 * The porting contract: a fixed array of equal segments. This is all that a port writes.
 *
 * read   all of `length` bytes, or an error. `offset` and `length` are multiples of read_unit,
 *        `buffer` is aligned to buffer_align. Areas never written since the last erase may hold
 *        anything.
 * write  `offset` and `length` are multiples of write_unit, `buffer` is aligned to buffer_align. The
 *        core writes each unit at most once between two erases, in rising order inside a segment.
 *        After an error the content of the range is unknown.
 * erase  the segment can be written again and its space is reserved. Content afterwards is undefined:
 *        stale bytes are allowed. CKB_NOSPACE means nothing happened and a later attempt may succeed;
 *        CKB_CORRUPT retires the segment for good.
 * sync   0 means: every write to and erase of this segment that returned before this call survives
 *        power loss. No order is promised between operations that no sync separates.
 *
 * Each returns 0 or a ckb_status. With CKB_THREADS they are called from several threads at once, never
 * for two writes, or a write and an erase, of one segment. */

typedef struct ckb_geometry {
    uint64_t segment_bytes; /* size of one segment; a multiple of both units */
    uint32_t segment_count;
    uint32_t read_unit;    /* bytes; a power of two, 1 when any range can be read */
    uint32_t write_unit;   /* bytes; a power of two from 8 to 65536 */
    uint32_t buffer_align; /* alignment of buffers in memory; a power of two, 1 for none */
    uint32_t capabilities; /* CKB_CAP_ bits; each only permits a shortcut */
} ckb_geometry;

#define CKB_CAP_ANY_ORDER 1u /* writes inside a segment may go in parallel and in any order */
#define CKB_CAP_SYNC_ALL 2u  /* a sync of one segment is a sync of all */

typedef struct ckb_medium {
    void *context;
    ckb_geometry geometry;
    int (*read)(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length);
    int (*write)(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length);
    int (*erase)(void *context, uint32_t segment);
    int (*sync)(void *context, uint32_t segment);
} ckb_medium;

/* ---------------------------------------------------------------------------------------------- >>volume
 * A volume owns all segments of a medium. Memory is the caller's: ask for the size, hand it over,
 * take it back after ckb_unmount. */

typedef struct ckb_volume ckb_volume;

typedef struct ckb_config {
    uint64_t max_chunks;         /* chunks the index can hold, deleted ones that must be remembered
                                  included; 0: 1024 */
    uint32_t max_containers;     /* 0: 16 */
    uint64_t container_bytes;    /* payload of live chunks that a container may hold; 0: no limit */
    uint32_t max_logs;           /* 0: 4 */
    uint32_t max_writers;        /* open at the same time; 0: 4 */
    uint32_t reserve_segments;   /* kept back from writes so that deletes and compaction work when full; 0: 2,
                                  or 1 of less than 12 segments; with 1 compaction has none to itself, and a
                                  volume that deletes filled needs whole segments to die */
    uint32_t prepare_ahead;      /* segments that ckb_maintain keeps ready for writing; 0: 2 */
    uint32_t free_segments;      /* ckb_maintain compacts while fewer are free; 0: a 64th of all, at least
                                  reserve_segments + prepare_ahead + 1 */
    uint32_t checkpoint_records; /* ckb_maintain begins a checkpoint when so many were appended to segments that
                                    are full by now, and half as many as the last one holds; 0: 65536;
                                    UINT32_MAX: never */
    size_t io_buffer_bytes;      /* for mount and the journal; 0: 64 KiB, or less for small segments */
    bool no_compaction;          /* and no memory for it: only segments in which nothing counts are freed */
    bool read_only;              /* nothing is written to the medium */
    bool ignore_checkpoint;      /* mount by reading all segments; the first write gives the checkpoint up */
    bool salvage;                /* read_only, and what cannot be proven current is readable too */
} ckb_config;

typedef struct ckb_format_config {
    uint8_t volume_id[16];   /* random, never used before on this medium; all zero is refused */
    uint32_t max_containers; /* what the journal must have room for; 0: 16 */
    uint32_t max_logs;       /* likewise; 0: 4 */
} ckb_format_config;

/* What the header of segment 0 or 1 tells, for a platform that opens a medium of unknown geometry. */
typedef struct ckb_probe_info {
    uint8_t volume_id[16];
    uint64_t segment_bytes;
    uint64_t epoch; /* rises with every allocation of a segment */
    uint32_t segment_count;
    uint32_t segment; /* which segment this header belongs to */
    uint32_t write_unit;
    uint32_t journal_span; /* segments on each side of the journal */
    uint16_t format_major;
    uint16_t format_minor;
} ckb_probe_info;

#define CKB_PROBE_BYTES 64 /* what ckb_probe wants to see */

/* Reads a segment header. `bytes` holds the first CKB_PROBE_BYTES of a segment.
 * CKB_OK: filled. CKB_NOTFOUND: no header of this format. CKB_CORRUPT: the magic is there, the rest
 * does not verify. CKB_VERSION: another format version; format_major and format_minor are filled. */
CKB_API int ckb_probe(const void *bytes, ckb_probe_info *info);

/* Bytes of memory that a mount with this configuration needs, 0 when the configuration is impossible.
 * Any alignment of the memory is fine; slack for it is included. */
CKB_API size_t ckb_volume_memory(const ckb_geometry *geometry, const ckb_config *config);

#ifndef CKB_READ_ONLY
/* Bytes of memory for ckb_format; 0 when the geometry is impossible, or has more segments than a journal in
 * segments of this size can name. Any thread. */
CKB_API size_t ckb_format_memory(const ckb_geometry *geometry);

/* Makes an empty volume: erases and writes segments 0 and 1. Durable on return. What the medium held
 * before is no longer reachable. `memory` (ckb_format_memory bytes) is only used during the call.
 * CKB_INVALID: geometry impossible, volume id zero, or the journal would not fit (fault: expected and
 * found bytes); nothing was touched. CKB_IO, CKB_NOSPACE: from the medium. */
CKB_API int ckb_format(const ckb_medium *medium, const ckb_format_config *config, void *memory, size_t bytes,
                       ckb_fault *fault);
#endif

/* Mounts. Writes nothing, erases nothing, needs no free space. `*volume` lies in `memory`; the medium
 * struct is copied, its context must stay valid until ckb_unmount. `fault` (may be null) says what
 * stopped the mount.
 * CKB_OK also when parts of the data are damaged: see ckb_stat.damage, ckb_volume_fault and ckb_check.
 * CKB_NOTFOUND: no volume here. CKB_VERSION: other format major, or other minor without read_only.
 * CKB_CORRUPT: the journal is damaged below what was durable. CKB_INVALID: geometry differs from the
 * one at format, or memory is too small (fault says both values). CKB_NOSPACE: the index is too small
 * for what is stored. CKB_IO: reading failed; says nothing about the data. */
CKB_API int ckb_mount(const ckb_medium *medium, const ckb_config *config, void *memory, size_t bytes,
                      ckb_volume **volume, ckb_fault *fault);

#ifndef CKB_READ_ONLY
/* Takes into use what the medium has beyond the volume: it was mounted with more segments in its geometry than the
 * volume was made with. One switch of the journal does it, so that a crash leaves the volume at the old size or the new
 * one, with all that is in it. Durable on return; CKB_OK also when there is nothing to take. No other call may be
 * running; `fault` may be null. A volume never shrinks: on a smaller medium it does not mount (CKB_INVALID, with both
 * counts).
 * CKB_NOSPACE: the journal could not name so many segments (fault: what a snapshot needs and what there is room for),
 * or the switch found no space; nothing changed. CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_grow(ckb_volume *volume, ckb_fault *fault);
#endif

/* Closes all writers (everything appended is durable on return), marks the volume clean. Before that the index is
 * checkpointed where that spares the next mount 1024 records or more, and one sixteenth of them. No other call may
 * be running. The memory is the caller's again whatever is returned.
 * CKB_FAILED, CKB_IO: not everything could be made durable. CKB_NOSPACE: all is durable, but the volume
 * could not be marked clean; the next mount takes longer. */
CKB_API int ckb_unmount(ckb_volume *volume);

#ifndef CKB_READ_ONLY
/* Makes durable what all writers have appended before the call. CKB_FAILED, CKB_IO, CKB_READONLY. */
CKB_API int ckb_sync(ckb_volume *volume);

/* Work that keeps later calls short: frees dead segments, forgets the chunks of deleted containers, prepares
 * segments ahead, and compacts while fewer than free_segments are free: what counts in the segments where least
 * does is moved together, beside reads and writes. Of segments of which less than a sixteenth would be won none
 * is touched; an append that finds no room goes down to half of that. When more than an eighth of the index
 * are deletes, compaction makes a pass to get rid of them. It checkpoints the index, too, which keeps a mount short
 * (ckb_config.checkpoint_records). `budget` bounds the steps (a step is about one segment
 * operation, 1024 index slots, or io_buffer_bytes moved); `*more` (may be null) says whether work is left. Nothing
 * of it need be durable on return. From any thread, at any time.
 * CKB_IO: also when a segment cannot be read, which is then left alone; CKB_FAILED, CKB_READONLY; CKB_NOSPACE: no
 * segment could be prepared, nothing is wrong. */
CKB_API int ckb_maintain(ckb_volume *volume, uint32_t budget, bool *more);

#ifndef CKB_NO_CHUNKS
/* Compacts whether space is short or not: segments of which `percent` (1 to 100) or more would be won, those that
 * win most first, then what it takes to get rid of deletes. Makes durable on the way what all writers appended.
 * `budget` and `*more` as for ckb_maintain. Any thread.
 * CKB_INVALID: percent, or mounted with no_compaction. CKB_NOSPACE: no segment is left to move anything to; else
 * as ckb_maintain. */
CKB_API int ckb_compact(ckb_volume *volume, uint32_t percent, uint32_t budget, bool *more);
#endif
#endif

typedef struct ckb_stat {
    uint8_t volume_id[16];
    ckb_geometry geometry;
    uint16_t format_major, format_minor;
    bool read_only, salvage, failed;
    bool clean; /* the last unmount was clean */
    uint32_t segments_free, segments_prepared, segments_open, segments_full, segments_retired, segments_lost;
    uint32_t segments_journal, segments_checkpoint;
    uint32_t segments_beyond; /* that the medium has more than the volume: see ckb_grow */
    /* These four make up all segments. */
    uint64_t live_bytes;                 /* records that count, headers and entries in summaries included */
    uint64_t dead_bytes;                 /* overwritten, deleted, padding */
    uint64_t free_bytes;                 /* free segments, and the rest of those that are not full */
    uint64_t reserved_bytes;             /* segments of journal and checkpoint, retired and lost ones */
    uint64_t compacted_bytes;            /* records that compaction moved since mount */
    uint64_t index_used, index_capacity; /* chunks, deleted ones that are remembered included */
    uint64_t index_deleted;              /* those */
    uint32_t containers, container_capacity;
    uint32_t logs, log_capacity;
    uint32_t writers;
    uint64_t damage;          /* places found damaged since mount; 0 is healthy */
    uint64_t dropped_bytes;   /* never durable, cut off by this mount */
    uint64_t dropped_tails;   /* in how many segments */
    uint32_t mount_scanned;   /* segments whose records were read at mount */
    uint32_t mount_summaries; /* segments read by their summary instead */
    uint32_t mount_covered;   /* segments not read at all, because the checkpoint holds what they hold */
    uint64_t mount_entries;   /* chunks taken from the checkpoint */
    uint64_t journal_epoch;
    uint64_t checkpoint_epoch;   /* of the checkpoint in force, 0: there is none */
    uint64_t checkpoint_entries; /* it holds */
    uint64_t checkpoint_bytes;   /* it takes */
    uint64_t fresh_records;      /* in full segments, since a checkpoint was last begun */
    uint32_t scrub_segment;      /* where ckb_scrub goes on; 0: at the beginning */
    uint32_t scrub_passes;       /* over all of the volume that are complete */
    uint32_t
        scrub_damage; /* damaged places that the pass under way has found, or the last one before it began */
    uint64_t scrub_bytes; /* that the pass under way has verified, or the last one */
} ckb_stat;

/* Fills `stat`. Any thread. Never fails. */
CKB_API void ckb_volume_stat(ckb_volume *volume, ckb_stat *stat);

typedef enum ckb_segment_state {
    CKB_SEGMENT_FREE = 0,
    CKB_SEGMENT_JOURNAL,
    CKB_SEGMENT_PREPARED, /* erased, header written, in the pool */
    CKB_SEGMENT_OPEN,     /* a writer appends to it */
    CKB_SEGMENT_PARKED,   /* can be continued at its end */
    CKB_SEGMENT_FULL,     /* takes no more */
    CKB_SEGMENT_LOST,     /* in use, but its header is gone */
    CKB_SEGMENT_RETIRED,
    CKB_SEGMENT_CHECKPOINT /* of the checkpoint in force */
} ckb_segment_state;

typedef struct ckb_segment_info {
    int state; /* a ckb_segment_state */
    uint64_t epoch;
    uint64_t used_bytes; /* up to where its records end; of an open one as of the last roll or mount */
    uint64_t live_bytes; /* of these: records that count */
    bool compacted;      /* compaction wrote it */
    char log[17];        /* the log it belongs to, "" for none */
} ckb_segment_info;

/* How one segment stands, by its number. Any thread. CKB_END: there are not so many. */
CKB_API int ckb_segment_stat(ckb_volume *volume, uint32_t segment, ckb_segment_info *info);

/* The newest fault met by this volume (status 0: none), and the first damage that mount found. */
CKB_API void ckb_volume_fault(ckb_volume *volume, ckb_fault *last, ckb_fault *first_damage);

/* ---------------------------------------------------------------------------------------------- >>container
 * The unit of closing, checking and deleting. Ids are the caller's. */

typedef enum ckb_container_state {
    CKB_CONTAINER_NONE = 0,
    CKB_CONTAINER_OPEN = 1,
    CKB_CONTAINER_CLOSED = 2,    /* immutable */
    CKB_CONTAINER_UNHEALTHY = 3, /* damaged; readable where it can be, takes no writes */
    CKB_CONTAINER_DELETED = 4
} ckb_container_state;

typedef struct ckb_container_info {
    uint64_t id;
    int state;       /* ckb_container_state */
    uint64_t chunks; /* live */
    uint64_t bytes;  /* payload of live chunks */
} ckb_container_info;

#ifndef CKB_NO_CHUNKS
#ifndef CKB_READ_ONLY
/* Creates an OPEN container; durable on return. Any thread.
 * CKB_EXISTS: the id is in use. CKB_DELETED: it was deleted, ids are not given twice while remembered.
 * CKB_NOSPACE: max_containers, or the journal. CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_container_create(ckb_volume *volume, uint64_t id);

/* Makes all its chunks durable, then takes no more writes; durable on return. Closing a closed one is
 * CKB_OK. CKB_NOTFOUND, CKB_DELETED, CKB_READONLY, CKB_FAILED, CKB_IO, CKB_NOSPACE (the journal). */
CKB_API int ckb_container_close(ckb_volume *volume, uint64_t id);

/* Deletes it with all its chunks; durable on return, space comes back through ckb_maintain.
 * CKB_NOTFOUND, CKB_DELETED, CKB_READONLY, CKB_FAILED, CKB_IO, CKB_NOSPACE (the journal). */
CKB_API int ckb_container_delete(ckb_volume *volume, uint64_t id);
#endif

/* CKB_OK; CKB_NOTFOUND: never created; CKB_DELETED: deleted (info is filled). Any thread. */
CKB_API int ckb_container_stat(ckb_volume *volume, uint64_t id, ckb_container_info *info);

/* Walks the containers in no special order: start with *cursor = 0, CKB_END after the last. Deleted
 * ones that are still remembered are shown with their state. */
CKB_API int ckb_container_next(ckb_volume *volume, uint32_t *cursor, ckb_container_info *info);
#endif /* CKB_NO_CHUNKS */

/* ---------------------------------------------------------------------------------------------- >>chunk
 * container -> block -> chunk. A chunk is written once and read back whole or in part. */

typedef struct ckb_chunk_id {
    uint64_t container;
    uint64_t block;
    uint32_t chunk;
} ckb_chunk_id;

typedef struct ckb_chunk_info {
    ckb_chunk_id id;
    bool deleted;
    uint32_t length;  /* payload bytes */
    uint32_t version; /* 1 at the first write, one more at each overwrite or delete */
    uint32_t segment; /* where its record lies */
    uint64_t offset;
} ckb_chunk_info;

/* Payloads are checksummed in windows of this size, so a read of part of a chunk reads little more. */
#define CKB_WINDOW_BYTES 16384u

#define CKB_OVERWRITE 1u /* replace a chunk that is there */
#define CKB_DURABLE 2u   /* durable on return, as after a commit */

/* An append cursor with its own segment and buffers. One per thread scales; one may also be shared by
 * any number of threads: the first that waits for durability leads, writes and syncs for all that
 * queued, the rest wait for the durable mark. */
typedef struct ckb_writer ckb_writer;

typedef struct ckb_writer_config {
    size_t buffer_bytes;      /* each of two buffers; 0: 256 KiB, or less for small segments */
    uint32_t summary_entries; /* chunks per summary record; 0: 512, or less for small segments */
} ckb_writer_config;

#if !defined(CKB_READ_ONLY) && !defined(CKB_NO_CHUNKS)
/* Bytes a writer needs on this geometry; 0 when the configuration is impossible. */
CKB_API size_t ckb_writer_memory(const ckb_geometry *geometry, const ckb_writer_config *config);

/* Opens a writer in `memory`, which belongs to the volume until the writer is closed. The medium is
 * touched at the first append. CKB_BUSY: max_writers are open. CKB_INVALID, CKB_READONLY, CKB_FAILED. */
CKB_API int ckb_writer_open(ckb_volume *volume, const ckb_writer_config *config, void *memory, size_t bytes,
                            ckb_writer **writer);

/* Makes durable what was appended, and gives the segment back so that a later writer continues in it.
 * The memory is the caller's again whatever is returned. CKB_FAILED, CKB_IO: not all is durable. */
CKB_API int ckb_writer_close(ckb_writer *writer);

/* Makes durable on return what this writer appended before the call. Any thread.
 * CKB_FAILED, CKB_IO: nothing of it may be trusted. */
CKB_API int ckb_writer_commit(ckb_writer *writer);

/* Largest payload of a chunk on this geometry, in bytes; 0 when the geometry is impossible. */
CKB_API uint64_t ckb_max_chunk_bytes(const ckb_geometry *geometry);

/* Writes a chunk; readable at once, durable after a commit. `data` may be reused on return. Any thread.
 * The same id with the same bytes is an idempotent retry (CKB_OK, durable, nothing written); with other bytes
 * it is CKB_EXISTS, unless CKB_OVERWRITE.
 * CKB_NOTFOUND, CKB_DELETED: the container; CKB_DELETED also for a deleted chunk without CKB_OVERWRITE.
 * CKB_READONLY: the volume, or the container is not open. CKB_NOSPACE; CKB_TOOBIG: more than ckb_max_chunk_bytes,
 * or the container would hold more than container_bytes; nothing changed.
 * CKB_FAILED, CKB_IO: the mount takes no more writes. CKB_CORRUPT: the chunk that is there cannot be
 * compared. */
CKB_API int ckb_chunk_write(ckb_writer *writer, const ckb_chunk_id *id, const void *data, size_t length,
                            unsigned flags);

/* Deletes a chunk; flags: CKB_DURABLE. Works when the volume is full.
 * CKB_NOTFOUND: never written, or its container; CKB_DELETED: already; otherwise as ckb_chunk_write. */
CKB_API int ckb_chunk_delete(ckb_writer *writer, const ckb_chunk_id *id, unsigned flags);
#endif

/* A reader holds the buffer for reads; one per thread. */
typedef struct ckb_reader ckb_reader;

/* Bytes for a reader with a buffer of `buffer_bytes` (0: 64 KiB, or less for small segments). */
CKB_API size_t ckb_reader_memory(const ckb_geometry *geometry, size_t buffer_bytes);

/* `memory` must stay until the last use of the reader; there is nothing to close. CKB_INVALID. */
CKB_API int ckb_reader_open(ckb_volume *volume, void *memory, size_t bytes, ckb_reader **reader);

/* The fault of the reader's last call. */
CKB_API void ckb_reader_fault(const ckb_reader *reader, ckb_fault *fault);

#ifndef CKB_NO_CHUNKS
/* Reads `length` bytes from `offset` of a chunk, only verified ones. `*got` (may be null) is the number
 * of bytes read: less than `length` only where the chunk ends. One thread per reader at a time.
 * CKB_NOTFOUND: never written. CKB_DELETED: chunk or container. CKB_CORRUPT: does not verify, or may
 * have been in a lost segment (ckb_reader_fault). CKB_IO: could not be read. CKB_END: offset is beyond the end.
 * After an error the content of `buffer` is undefined. */
CKB_API int ckb_chunk_read(ckb_reader *reader, const ckb_chunk_id *id, uint64_t offset, void *buffer,
                           size_t length, size_t *got);

/* Length, version and place, from memory. CKB_OK, CKB_NOTFOUND, CKB_DELETED, CKB_CORRUPT as for reads. */
CKB_API int ckb_chunk_stat(ckb_volume *volume, const ckb_chunk_id *id, ckb_chunk_info *info);

/* Walks all chunks that are there, in no special order: start with *cursor = 0, CKB_END after the last.
 * Beside writers it shows every chunk that was there the whole time, once. Any thread. */
CKB_API int ckb_chunk_next(ckb_volume *volume, uint64_t *cursor, ckb_chunk_info *info);
#endif /* CKB_NO_CHUNKS */

/* ---------------------------------------------------------------------------------------------- >>stream
 * A block as a sequence of bytes: many tiny writes become chunks of a block, numbered from 0. A chunk is written
 * once, when the buffer is full, at ckb_stream_flush and at ckb_stream_hsync; so chunks of one block differ in
 * length. An empty chunk ends the block: a reader knows by it that nothing is missing. It is what
 * ckb_stream_close writes.
 *
 * A crash leaves a prefix. What had reached the medium behind a chunk that was lost is not part of the block; it
 * is deleted, durably, before the chunk in front of it is written again, so that it is never taken for new. */

/* A stream that writes. One thread at a time; any number of streams may share a writer. The fields are for
 * ckb_stream_write alone; there is more behind them. */
typedef struct ckb_stream {
    uint8_t *at;
    size_t room; /* bytes that the buffer still takes; 0 also after a failure */
    uint64_t write_calls;
} ckb_stream;

typedef struct ckb_stream_config {
    size_t chunk_bytes; /* where a chunk ends if nobody ends it earlier; 0: 4 MiB, or what a segment holds */
} ckb_stream_config;

#define CKB_APPEND 4u /* go on behind what the block holds */

typedef struct ckb_stream_info {
    uint64_t position; /* bytes that the block will have: those found at opening and all that were taken */
    uint64_t buffered; /* of those, what is in the buffer only: not readable yet */
    uint64_t write_calls, flush_calls, hsync_calls, close_calls;
    uint32_t chunks; /* of the block, the end not included */
} ckb_stream_info;

#if !defined(CKB_READ_ONLY) && !defined(CKB_NO_CHUNKS)
/* Bytes that a stream needs: one chunk, and a little. 0: such chunks do not fit a segment. */
CKB_API size_t ckb_stream_memory(const ckb_geometry *geometry, const ckb_stream_config *config);

/* Opens a stream in `memory`, which is the stream's until it is closed or given up; nobody else knows of it, so
 * one that is not wanted any more needs no call. Nothing is written, but for CKB_OVERWRITE. Flags:
 *   0              the block must be new. CKB_EXISTS: it is there; CKB_DELETED: it was.
 *   CKB_OVERWRITE  a block that is or was there is deleted first, durably.
 *   CKB_APPEND     goes on behind what is there: an ended block is open again, one that a crash cut off goes on
 *                  at the cut. Looks at each chunk of the block once, in memory. CKB_CORRUPT: chunks of the block
 *                  may be lost, so nobody knows where it ends. CKB_DELETED: the block was deleted.
 * A block has one stream at a time; that is the caller's to see to (a second one may get CKB_EXISTS).
 * CKB_NOTFOUND, CKB_DELETED: the container; CKB_READONLY: it is not open, or the volume. CKB_INVALID: flags, or
 * too little memory. With CKB_OVERWRITE also CKB_FAILED, CKB_IO, CKB_NOSPACE. */
CKB_API int ckb_stream_open(ckb_writer *writer, uint64_t container, uint64_t block,
                            const ckb_stream_config *config, unsigned flags, void *memory, size_t bytes,
                            ckb_stream **stream);

/* The part of ckb_stream_write for what does not fit the buffer. */
CKB_API int ckb_stream_write_more(ckb_stream *stream, const void *data, size_t length);

/* Appends to the block. Not readable before the chunk is full or flushed. Mostly a compare and a copy.
 * CKB_NOSPACE: no room for the chunk that the buffer holds; nothing of `data` was taken, or of more than a chunk
 * as much as ckb_stream_stat's position says. The buffer is kept: the call may be made again when there is room.
 * CKB_TOOBIG: the block has 2^32 - 1 chunks; as CKB_NOSPACE. All others are final for the stream, and each later
 * call says the same: CKB_FAILED, CKB_IO (the mount takes no more writes), CKB_EXISTS (somebody else writes this
 * block), CKB_NOTFOUND, CKB_DELETED, CKB_READONLY (the container), CKB_INVALID (the stream was closed). */
CKB_INLINE int ckb_stream_write(ckb_stream *stream, const void *data, size_t length)
{
    if (length - 1 >= stream->room) /* too much, or nothing */
        return ckb_stream_write_more(stream, data, length);
    CKB_AHEAD(stream->at); /* a chunk is larger than the caches near a core */
    CKB_COPY(stream->at, data, length);
    stream->at += length;
    stream->room -= length;
    stream->write_calls++;
    return CKB_OK;
}

/* hflush: all that was written can be read on return; it is not durable. Ends the chunk, unless nothing is
 * buffered: the next one goes on behind it. So each flush costs what a chunk costs, about 100 bytes on the
 * medium and 43 in memory, besides the data. Status as ckb_stream_write. */
CKB_API int ckb_stream_flush(ckb_stream *stream);

/* hsync: a flush, and all that was written is durable on return. Costs a sync of the medium and its padding to
 * a write unit on top of what a flush costs; streams that share a writer share syncs. Status as
 * ckb_stream_write. */
CKB_API int ckb_stream_hsync(ckb_stream *stream);

/* Flushes and ends the block; flags: CKB_DURABLE. The memory is the caller's again when it returns CKB_OK or a
 * final status. CKB_NOSPACE: the block is not ended, and the call may be made again. */
CKB_API int ckb_stream_close(ckb_stream *stream, unsigned flags);

/* Where the stream stands. Fills `info` also after a failure or a close. */
CKB_API void ckb_stream_stat(const ckb_stream *stream, ckb_stream_info *info);
#endif

/* A stream that reads: a position in a block. One thread at a time; any number beside the one that writes. */
typedef struct ckb_stream_cursor ckb_stream_cursor;

#ifndef CKB_NO_CHUNKS
/* Bytes for a cursor that reads ahead `buffer_bytes` (0: 64 KiB; in windows of CKB_WINDOW_BYTES). */
CKB_API size_t ckb_stream_cursor_memory(const ckb_geometry *geometry, size_t buffer_bytes);

/* Opens at position 0 of a block, which need not be there yet. There is nothing to close. CKB_INVALID. */
CKB_API int ckb_stream_cursor_open(ckb_volume *volume, uint64_t container, uint64_t block, void *memory,
                                   size_t bytes, ckb_stream_cursor **cursor);

/* Reads up to `length` bytes, over ends of chunks; the position moves on by `*got`. Fewer than asked for, and
 * CKB_OK, only where the next call tells why: nothing is read then. CKB_END: the block ends here, all of it was
 * read. CKB_NOTFOUND: there is no more, and no end: it is being written, or a crash cut it off; a later call may
 * find more. CKB_DELETED: block or container, or the block was replaced meanwhile. CKB_CORRUPT: does not verify,
 * or what follows may have been in a lost segment. CKB_IO: could not be read. */
CKB_API int ckb_stream_read(ckb_stream_cursor *cursor, void *buffer, size_t length, size_t *got);

/* Moves to a position, which may be the end of what is there. Walks over the lengths of the chunks in between,
 * in memory, since they differ. CKB_END, CKB_NOTFOUND: it lies behind the end (see ckb_stream_read); CKB_DELETED,
 * CKB_CORRUPT: a chunk on the way. The cursor then stays where it was. */
CKB_API int ckb_stream_seek(ckb_stream_cursor *cursor, uint64_t position);

CKB_API uint64_t ckb_stream_position(const ckb_stream_cursor *cursor);

/* The fault of the cursor's last read, and the chunk that it was about. */
CKB_API void ckb_stream_cursor_fault(const ckb_stream_cursor *cursor, ckb_chunk_id *id, ckb_fault *fault);
#endif /* CKB_NO_CHUNKS */

/* ---------------------------------------------------------------------------------------------- >>export
 * A container as one stream of bytes with checksums, see FORMAT: to another volume, another host, a file. */

typedef struct ckb_export_report {
    uint64_t container; /* its id in the stream */
    uint64_t chunks, bytes;
    uint32_t left_out; /* chunks that the source could not read */
    uint32_t state;    /* a ckb_container_state: what it was when it was exported */
    uint64_t offset;   /* how far the stream was read or written; of a frame that is wrong, its place */
} ckb_export_report;

#ifndef CKB_NO_CHUNKS
/* Writes a container to a stream. `write` takes all of the bytes or returns a negative status, which ends the export.
 * `buffer` must hold the largest chunk of the container and 40 bytes. What cannot be read is left out: `lost` (may be
 * null) is told of each, and the stream says how many. Others may write, delete and compact meanwhile; an exact copy is
 * one of a closed container. Any thread, with a reader of its own.
 * CKB_OK, also when chunks were left out: report->left_out. CKB_NOTFOUND, CKB_DELETED: the container. CKB_TOOBIG: a
 * chunk does not fit the buffer. CKB_INVALID: less than 40 bytes. Status of `write`. */
CKB_API int ckb_export(ckb_volume *volume, ckb_reader *reader, uint64_t container, void *buffer,
                       size_t buffer_bytes, int (*write)(void *context, const void *data, size_t bytes),
                       void (*lost)(void *context, const ckb_chunk_id *id, int status), void *context,
                       ckb_export_report *report);

#ifndef CKB_READ_ONLY
#define CKB_RESUME 8u /* an import into a container that is there already */

/* Makes a container from a stream. `read` fills all of the bytes, or returns CKB_END at the end of the stream or
 * another negative status. The container gets the id `container`, or that in the stream for `own_id`; it must not be
 * there, unless `flags` has CKB_RESUME: chunks that are there with the same bytes stay as they are, so an import that
 * was cut off is repeated. Durable on return of CKB_OK, and closed if it was closed when it was exported, or unhealthy.
 * After anything else it is open and holds a part: resume, or delete it.
 * CKB_CORRUPT: the stream does not verify, or ends too soon; nothing behind that place was taken. CKB_VERSION: of another
 * major version. CKB_EXISTS: the container, or with CKB_RESUME a chunk with other bytes. CKB_TOOBIG: a chunk does not
 * fit the buffer, a segment, or container_bytes. Others: as ckb_chunk_write and ckb_container_create, or of `read`. */
CKB_API int ckb_import(ckb_volume *volume, ckb_writer *writer, uint64_t container, bool own_id, unsigned flags,
                       void *buffer, size_t buffer_bytes, int (*read)(void *context, void *data, size_t bytes),
                       void *context, ckb_export_report *report);
#endif
#endif

/* ---------------------------------------------------------------------------------------------- >>log
 * Entries under rising indexes: appended at one end and truncated there, purged at the other. A volume holds
 * several logs by name. An entry has an index, a 64-bit term or tag of the caller's, and bytes. Indexes go from
 * 1 to 2^64 - 2 and survive emptying: after a purge of everything the next index is still the last one + 1. */

typedef struct ckb_log ckb_log;

#define CKB_LOG_NAME_BYTES 16u /* longest name, without the zero that ends it */

typedef struct ckb_log_config {
    size_t buffer_bytes;      /* each of two buffers; 0: 256 KiB, or less for small segments */
    uint32_t max_entry_bytes; /* larger ones are refused; 0: what a segment has room for */
    uint32_t max_segments;    /* the log may have at once, 4 bytes of memory each; 0: all of the volume */
    bool salvage;             /* open for reading although the newest entries may be lost */
} ckb_log_config;

typedef struct ckb_log_info {
    char name[CKB_LOG_NAME_BYTES + 1];
    uint64_t first;   /* index of the oldest entry that is kept */
    uint64_t last;    /* of the newest one; first - 1 when there is none */
    uint64_t durable; /* entries up to this index survive power loss */
    uint64_t bytes;   /* on the medium: records, padding and headers of its segments up to the newest entry */
    uint32_t segments;
    bool is_open;
    bool end_lost;   /* a lost segment may have held newer entries: opens for salvage only */
    uint64_t rolls;  /* segments begun since it was opened */
    uint64_t groups; /* commits that went to the medium since it was opened */
} ckb_log_info;

/* One entry as it was read. */
typedef struct ckb_entry {
    uint64_t index;
    uint64_t term;
    size_t length;    /* bytes of its data */
    uint32_t segment; /* where its record lies */
    uint64_t offset;
} ckb_entry;

/* One entry to append. */
typedef struct ckb_entry_data {
    uint64_t term;
    const void *data;
    size_t length;
} ckb_entry_data;

/* Reads entries, in order or from any index; one per thread. Others may append, truncate and purge
 * meanwhile. */
typedef struct ckb_log_cursor ckb_log_cursor;

#define CKB_SALVAGE 4u /* a cursor that goes on behind damage */

#ifndef CKB_NO_LOG
#ifndef CKB_READ_ONLY
/* Creates a log whose first entry will have `first_index` (0: 1). Durable on return. Any thread.
 * CKB_EXISTS. CKB_INVALID: no name, a longer one, or an index beyond 2^64 - 2. CKB_NOSPACE: max_logs, or the
 * journal. CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_log_create(ckb_volume *volume, const char *name, uint64_t first_index);

/* Deletes a log with all its entries. Durable on return; space comes back through ckb_maintain, or when it is
 * needed. The name may be used again at once. Any thread.
 * CKB_NOTFOUND. CKB_BUSY: it is open. CKB_NOSPACE (the journal), CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_log_delete(ckb_volume *volume, const char *name);
#endif

/* Walks the logs in no special order: start with *cursor = 0, CKB_END after the last. Any thread. */
CKB_API int ckb_log_list(ckb_volume *volume, uint32_t *cursor, ckb_log_info *info);

/* Bytes that an open log needs on this geometry; 0 when the configuration is impossible. */
CKB_API size_t ckb_log_memory(const ckb_geometry *geometry, const ckb_log_config *config);

/* Largest entry on this geometry, in bytes; 0 when the geometry is impossible. */
CKB_API uint32_t ckb_max_entry_bytes(const ckb_geometry *geometry);

/* Opens a log in `memory`, which belongs to the volume until the log is closed. Writes nothing. After an
 * unclean end the entries found may never have been synced: `durable` of ckb_log_stat does not count them
 * before a ckb_log_commit of the last one. `fault` may be null.
 * With max_segments 1 a log whose segment is full, or was ended by a truncate or a crash, goes on when it is
 * purged empty, and not before.
 * CKB_NOTFOUND. CKB_BUSY: it is open already. CKB_INVALID: memory too small (fault: both values), or the
 * configuration. CKB_NOSPACE: it has more segments than max_segments (fault). CKB_CORRUPT: a lost segment may
 * have held its newest entries (fault: which one); opens with `salvage`, for reading only. */
CKB_API int ckb_log_open(ckb_volume *volume, const char *name, const ckb_log_config *config, void *memory,
                         size_t bytes, ckb_log **log, ckb_fault *fault);

/* Makes durable what was appended and closes the log. The last call on it and on its cursors; the memory is
 * the caller's again whatever is returned. CKB_FAILED, CKB_IO: not all is durable. */
CKB_API int ckb_log_close(ckb_log *log);

/* First, last, durable and so on. Any thread. Never fails. */
CKB_API void ckb_log_stat(ckb_log *log, ckb_log_info *info);

#ifndef CKB_READ_ONLY
/* Appends an entry under the next index, which is returned in `*index` (may be null). It can be read at once;
 * with CKB_DURABLE it is durable on return, otherwise after a ckb_log_commit. `data` may be reused on return.
 * Any thread: entries get their indexes in the order in which they enter.
 * CKB_TOOBIG: larger than max_entry_bytes or a segment's room, or the indexes are used up; CKB_NOSPACE:
 * nothing changed. CKB_READONLY; CKB_FAILED, CKB_IO: the mount takes no more writes. CKB_INVALID. */
CKB_API int ckb_log_append(ckb_log *log, uint64_t term, const void *data, size_t length, unsigned flags,
                           uint64_t *index);

/* Appends `count` entries under successive indexes, all or none; `*first` (may be null) is that of the first.
 * They must fit one segment together, with the padding of the buffers that they fill: CKB_TOOBIG otherwise.
 * Everything else as ckb_log_append. After a crash any prefix of them may be there, unless they were durable. */
CKB_API int ckb_log_append_many(ckb_log *log, const ckb_entry_data *entries, size_t count, unsigned flags,
                                uint64_t *first);

/* Makes durable on return all entries up to `index`. The first that comes leads: it writes and syncs for all
 * that queued, the others wait. Any thread.
 * CKB_END: beyond the last entry. CKB_READONLY. CKB_FAILED, CKB_IO: nothing of it may be trusted. */
CKB_API int ckb_log_commit(ckb_log *log, uint64_t index);

/* Drops the entries behind `last_kept`; the next one appended gets last_kept + 1. Durable on return, and so is
 * what is kept. It ends a segment: what is left of that comes back when its entries are purged. Works when
 * the volume is full. At or above the last one nothing happens. Any thread.
 * CKB_PURGED: last_kept is below first - 1, nothing changed. CKB_CORRUPT: the entry cannot be found.
 * CKB_NOSPACE (the journal), CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_log_truncate(ckb_log *log, uint64_t last_kept);

/* Drops the entries before `first_kept`; last + 1 drops all. Durable on return. Whole segments come back
 * through ckb_maintain, or when they are needed. Works when the volume is full. At or below the first one
 * nothing happens. Any thread.
 * CKB_END: beyond last + 1, nothing changed. CKB_NOSPACE (the journal), CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_log_purge(ckb_log *log, uint64_t first_kept);

/* Drops all entries; the next one appended gets `next_index`, which may be lower or higher than any before.
 * For a node that installs a snapshot. All or nothing, durable on return. Any thread.
 * CKB_INVALID: 0 or beyond 2^64 - 2. CKB_NOSPACE (the journal), CKB_READONLY, CKB_FAILED, CKB_IO. */
CKB_API int ckb_log_reset(ckb_log *log, uint64_t next_index);
#endif

/* Bytes for a cursor with a buffer of `buffer_bytes` (0: 64 KiB, or less for small segments). */
CKB_API size_t ckb_log_cursor_memory(const ckb_geometry *geometry, size_t buffer_bytes);

/* `memory` must stay until the last use of the cursor; there is nothing to close. It stands at the first
 * entry. `flags`: CKB_SALVAGE. CKB_INVALID. */
CKB_API int ckb_log_cursor_open(ckb_log *log, unsigned flags, void *memory, size_t bytes,
                                ckb_log_cursor **cursor);

/* Moves the cursor: ckb_log_next reads the entry `index` next. */
CKB_API void ckb_log_seek(ckb_log_cursor *cursor, uint64_t index);

/* Reads the next entry: fills `*entry`, copies its data to `buffer`, and moves on. Only verified bytes.
 * CKB_TOOBIG: the data is longer than `bytes`; `entry->length` says how long, the cursor stays. CKB_END: no
 * more entries yet, a later call may find some. CKB_PURGED: `entry->index` is the first that is kept, the
 * cursor stays. CKB_CORRUPT: does not verify or is lost (ckb_log_cursor_fault); the cursor stays, unless it is
 * for salvage: that goes on with the next entry that can be read, and its fault says what it passed over.
 * CKB_IO. */
CKB_API int ckb_log_next(ckb_log_cursor *cursor, ckb_entry *entry, void *buffer, size_t bytes);

/* ckb_log_seek and ckb_log_next in one. Looking for an entry costs a search among the log's segments and then
 * its predecessors in the segment; from the last one read onwards it costs what lies between. */
CKB_API int ckb_log_read(ckb_log_cursor *cursor, uint64_t index, ckb_entry *entry, void *buffer, size_t bytes);

/* The fault of the cursor's last call. */
CKB_API void ckb_log_cursor_fault(const ckb_log_cursor *cursor, ckb_fault *fault);
#endif /* CKB_NO_LOG */

/* ---------------------------------------------------------------------------------------------- >>check
 * Read-only verification of everything. */

typedef struct ckb_finding {
    ckb_fault fault; /* status CKB_CORRUPT or CKB_IO; CKB_OK for a dropped tail */
    bool has_chunk;  /* chunk names what is damaged */
    ckb_chunk_info chunk;
    char log[17]; /* the log whose entry fault.index is damaged; "" for none */
} ckb_finding;

typedef struct ckb_check_report {
    uint64_t chunks, bytes; /* verified, payload bytes */
    uint64_t chunks_bad;
    uint64_t entries, entry_bytes; /* of logs: verified, data bytes */
    uint64_t entries_bad;
    uint64_t io_errors;
    uint64_t segments; /* looked at */
    uint64_t damage;   /* findings with CKB_CORRUPT */
    uint64_t reread;   /* verified at the second attempt only, of a scrub */
} ckb_check_report;

/* Verifies headers, record tiling and every live chunk; calls `found` for each finding, goes on unless
 * it returns non-zero. What is only buffered is written first unless the volume is read-only.
 * CKB_OK: all good. CKB_CORRUPT: at least one finding. CKB_IO: could not read everything, no damage
 * seen. */
CKB_API int ckb_check(ckb_volume *volume, ckb_reader *reader,
                      int (*found)(void *context, const ckb_finding *finding), void *context,
                      ckb_check_report *report);

#ifndef CKB_READ_ONLY
/* The same in pieces, beside everything else: goes on where the last call stopped, after a restart with the segment
 * that the journal was told of, and reads about `budget` bytes, or one record where that is longer. A host keeps a rate
 * by the time between calls. `report` is added to, so that it can be one for a pass; not *more: this call has completed
 * one, and the next begins another. A chunk that counts and does not verify, at a second attempt either, makes its
 * container UNHEALTHY, durably; an error of the medium, what was deleted or moved meanwhile, and a volume that takes no
 * writes mark nothing. Any thread, with a reader of its own.
 * CKB_OK: this call found nothing. CKB_CORRUPT: something. CKB_IO: something could not be read. CKB_BUSY: another
 * scrub is running. */
CKB_API int ckb_scrub(ckb_volume *volume, ckb_reader *reader, uint64_t budget,
                      int (*found)(void *context, const ckb_finding *finding), void *context,
                      ckb_check_report *report, bool *more);
#endif

#ifdef CHUNKBENCH_BENCH
/* --------------------------------------------------------------------------------------------- >>bench
 * Optional part: workloads that run on the library above. It touches no operating system: clock, threads
 * and targets come from the host by function pointers, numbers are read and printed by functions of its
 * own, results go through a sink. A CLI and a serial console use it in the same way:
 *
 *     const ckb_workload *workload = ckb_workload_find("write");
 *     ckb_option_set set = {workload->options, workload->option_count, values};
 *     ckb_options_defaults(&set);
 *     ckb_options_parse(&set, 1, argc, argv, operands, 1, &operand_count, message, sizeof message);
 *     ckb_bench_memory(&host, workload, values, &bytes, message, sizeof message);
 *     ckb_bench_run(&host, workload, values, memory, bytes, &report);
 *     ckb_bench_print(report, CKB_PRINT_TEXT, &sink);
 *
 * Without thread hooks everything runs in the calling thread. */

/* Where text goes. Returns 0 or a ckb_status; after the first failure nothing more is sent. */
typedef struct ckb_sink {
    void *context;
    int (*write)(void *context, const char *text, size_t bytes);
} ckb_sink;

/* Writes the shortest decimal that reads back as the same double, as Java prints it ("0.1", "1.0E10"),
 * always with a dot. Returns the length; `text` is terminated. Not finite: "0". Any thread. */
#define CKB_DOUBLE_TEXT_BYTES 32
CKB_API size_t ckb_double_text(double value, char text[CKB_DOUBLE_TEXT_BYTES]);

/* --------------------------------------------------------------------------------------------- >>histogram
 * Log-linear and mergeable: exact count, minimum, maximum, sum and sum of squares; percentiles to three
 * significant digits (or 1, 2) from 1 ns to 4.8 hours; fixed memory. One per thread, merged at the end. */

typedef struct ckb_histogram {
    uint64_t *buckets;
    uint32_t bucket_count;
    uint32_t sub_bits; /* each power of two is cut into 2^sub_bits buckets */
    uint64_t count, sum;
    uint64_t min, max;                  /* true ones; of no meaning while count is 0 */
    uint64_t squares_low, squares_high; /* 128 bits: the sum of squares */
} ckb_histogram;

#define CKB_HISTOGRAM_BITS 44 /* values from 2^44 ns on share the last bucket; max stays true */

/* What a set of latencies says, in nanoseconds. With count 0 nothing else is defined. */
typedef struct ckb_latency {
    uint64_t count, min, max;
    uint64_t p50, p75, p95, p98, p99, p999;
    double mean, stddev; /* of all values, not of buckets */
} ckb_latency;

/* Bytes of memory for the buckets; `digits` from 1 to 3, 0 means 3. 0: impossible. */
CKB_API size_t ckb_histogram_memory(unsigned digits);

/* Lays the buckets into `memory` (aligned for uint64_t), empty. CKB_INVALID: digits, or too few bytes. */
CKB_API int ckb_histogram_init(ckb_histogram *histogram, unsigned digits, void *memory, size_t bytes);

/* Adds one value. One thread at a time; about ten instructions. */
CKB_API void ckb_histogram_add(ckb_histogram *histogram, uint64_t value_ns);

/* Adds all values of `other`; the order of merges does not matter. CKB_INVALID: different digits. */
CKB_API int ckb_histogram_merge(ckb_histogram *histogram, const ckb_histogram *other);

/* The value at rank ceil(count * per_100000 / 100000), from 1 and in integers (99900: the 99.9th
 * percentile): the middle of its bucket, within minimum and maximum. 0 while empty. */
CKB_API uint64_t ckb_histogram_percentile(const ckb_histogram *histogram, uint32_t per_100000);

CKB_API void ckb_histogram_latency(const ckb_histogram *histogram, ckb_latency *latency);

/* --------------------------------------------------------------------------------------------- >>meter
 * Exponentially weighted rates as the field's metrics library has them: a tick per 5 s, when more than
 * 5 s have passed since the last; the first tick sets the rate; 0 before it. */

typedef struct ckb_meter {
    uint64_t start_ns, tick_ns;
    uint64_t count, uncounted;
    double rate[3]; /* events per nanosecond over 1, 5 and 15 minutes */
    bool ticked;
} ckb_meter;

CKB_API void ckb_meter_start(ckb_meter *meter, uint64_t now_ns);
CKB_API void ckb_meter_mark(ckb_meter *meter, uint64_t now_ns, uint64_t events);

/* Events per second: `rates` over 1, 5 and 15 minutes; the result is the mean since the start. */
CKB_API double ckb_meter_rates(ckb_meter *meter, uint64_t now_ns, double rates[3]);

/* --------------------------------------------------------------------------------------------- >>teragen
 * The rows that Hadoop's TeraGen writes, byte for byte, and their checksum. A generator of 128 bits (x becomes
 * a * x + c) makes 10 bytes of key and 90 of value from the number of the row alone. The checksum is the sum of
 * the rows' CRC-32 over 128 bits: it does not depend on their order, nor on who made them. */

#define CKB_TERAGEN_ROW_BYTES 100u
#define CKB_TERAGEN_KEY_BYTES 10u /* the rest is the value */

typedef struct ckb_teragen {
    uint64_t row;       /* the next one to make */
    uint64_t low, high; /* state of the generator after as many steps */
} ckb_teragen;

typedef struct ckb_teragen_sum {
    uint64_t low, high; /* what the field prints is `low` */
} ckb_teragen_sum;

/* CRC-32 as zlib computes it (reflected polynomial 0xEDB88320), by a table that is the caller's. */
typedef struct ckb_crc32_table {
    uint32_t state[8][256];
} ckb_crc32_table;

CKB_API void ckb_crc32_table_init(ckb_crc32_table *table);

/* `crc` is 0 at first or the result for the bytes before. Any thread. */
CKB_API uint32_t ckb_crc32(const ckb_crc32_table *table, uint32_t crc, const void *data, size_t bytes);

/* Goes to a row; takes some 128-bit products for each bit of its number. */
CKB_API void ckb_teragen_seek(ckb_teragen *teragen, uint64_t row);

/* Makes the next `count` rows, of CKB_TERAGEN_ROW_BYTES each. */
CKB_API void ckb_teragen_make(ckb_teragen *teragen, void *rows, size_t count);

/* Adds the checksums of whole rows. */
CKB_API void ckb_teragen_add(ckb_teragen_sum *sum, const ckb_crc32_table *table, const void *rows,
                             size_t count);

/* --------------------------------------------------------------------------------------------- >>options
 * One table per workload: parsing, help, the settings of a result and the refusal of what is not in it
 * all come from the table. */

typedef enum ckb_option_kind {
    CKB_OPTION_FLAG,     /* no value */
    CKB_OPTION_COUNT,    /* digits */
    CKB_OPTION_SIZE,     /* digits and K, M, G or T (powers of 1024) */
    CKB_OPTION_DURATION, /* digits, perhaps a fraction, and ns, us, ms, s, m or h */
    CKB_OPTION_RATE,     /* digits, perhaps a fraction: per second, kept in thousandths */
    CKB_OPTION_SPAN,     /* a size, or two with a dash between them: any size from one to the other */
    CKB_OPTION_CHOICE,   /* one of `choices`; where max is not 0 a count is also allowed */
    CKB_OPTION_POLICY,   /* one of `choices`, a count, or a duration */
    CKB_OPTION_TEXT
} ckb_option_kind;

#define CKB_OPTION_LIST_MAX 32

typedef struct ckb_option {
    const char *name;     /* without the dashes */
    char letter;          /* 0: none */
    uint8_t kind;         /* ckb_option_kind */
    bool list;            /* takes values with commas between them, up to CKB_OPTION_LIST_MAX */
    const char *unit;     /* what stands for the value in the help; also used in messages */
    const char *standard; /* default, as one would type it; null: none (0, or not given) */
    uint64_t min, max;    /* bytes, nanoseconds, thousandths per second, or a plain count; for text: length */
    const char *choices;  /* "none|end|each" */
    const char *help;
} ckb_option;

typedef struct ckb_option_value {
    bool given;                           /* on the command line */
    uint32_t count;                       /* how many values; 0: none, not even a default */
    uint64_t number[CKB_OPTION_LIST_MAX]; /* flag: 1; choice: its place among the choices; span: its begin */
    uint64_t last[CKB_OPTION_LIST_MAX];   /* span: its end, which belongs to it */
    bool chosen[CKB_OPTION_LIST_MAX];     /* with choices: number is a place, not a count */
    bool timed[CKB_OPTION_LIST_MAX];      /* policy: number is a duration in nanoseconds */
    const char *text;                     /* as typed, or the default */
} ckb_option_value;

/* A table with the place for its values. */
typedef struct ckb_option_set {
    const ckb_option *options;
    uint32_t count;
    ckb_option_value *values;
} ckb_option_set;

/* Sets every value to its default. */
CKB_API void ckb_options_defaults(const ckb_option_set *set);

/* Parses arguments (without the program's and the command's name) against one or more sets. Texts are
 * kept by pointer. Operands, in order, go to `operands`; more than `operand_room` of them are refused.
 * CKB_INVALID: `message` names option, value and bounds; nothing else happened. */
CKB_API int ckb_options_parse(const ckb_option_set *sets, uint32_t set_count, int argument_count,
                              const char *const *arguments, const char **operands, uint32_t operand_room,
                              uint32_t *operand_count, char *message, size_t message_bytes);

/* Prints one line or more per option: letter, name, unit, help, default and bounds. */
CKB_API int ckb_options_help(const ckb_option *options, uint32_t count, const ckb_sink *sink);

/* --------------------------------------------------------------------------------------------- >>host
 * What a workload needs from outside. */

/* How many operations are done. `total` is 0 when only time ends the run. */
typedef struct ckb_progress {
    uint32_t run, run_count;
    uint64_t done, total, failures;
    uint64_t elapsed_ns;
    double rate_per_s; /* 0: too early to tell */
} ckb_progress;

/* What the next run wants from a target. 0 means: no wish. */
typedef struct ckb_bench_need {
    uint64_t segment_bytes;
    uint64_t data_bytes; /* payload with what records cost beside it */
    uint64_t max_chunks;
    uint32_t max_containers;
    uint32_t max_writers;
    uint32_t max_logs;
    uint32_t prepare_ahead;
    uint32_t segment_count; /* no more than these */
    uint32_t prepare;       /* how a segment gets its space: 1 no space, 2 reserved, 3 zeros are written; a
                               target without that choice refuses one */
    bool renew;             /* nothing that an earlier run made is used again, where that can be had */
    /* Puts another medium, which measures, over the target's before it is mounted. */
    void (*wrap)(void *context, ckb_medium *medium);
    void *wrap_context;
} ckb_bench_need;

/* Makes volumes for runs. One is open at a time. `fault` is filled on failure where it applies. */
typedef struct ckb_bench_target {
    void *context;
    const char *name;
    bool volatile_medium; /* nothing survives power loss, whatever sync says */
    const char *error;    /* why the last `describe` failed, in a line; "" or null: its status says all */
    /* The geometry that `fresh` would give, and the payload bytes that a run may put there. Touches nothing. */
    int (*describe)(void *context, const ckb_bench_need *need, ckb_geometry *geometry, uint64_t *room_bytes);
    /* Formats and mounts an empty volume. */
    int (*fresh)(void *context, const ckb_bench_need *need, ckb_volume **volume, ckb_fault *fault);
    /* Unmounts and mounts again: what is there now is what survived. */
    int (*remount)(void *context, ckb_volume **volume, ckb_fault *fault);
    /* Unmounts. Called after each `fresh` or `raw` that succeeded. */
    int (*done)(void *context);
    /* The medium itself, nothing mounted, to be overwritten but for segments 0 and 1; for the ceiling. */
    int (*raw)(void *context, const ckb_bench_need *need, ckb_medium *medium, ckb_fault *fault);
} ckb_bench_target;

typedef struct ckb_pair {
    const char *key, *value;
} ckb_pair;

/* What an operating system counts of a disk, in the order of Linux's iostats.rst. */
typedef enum ckb_disk_counter {
    CKB_DISK_READS,
    CKB_DISK_READ_MERGES,
    CKB_DISK_READ_SECTORS, /* of 512 bytes */
    CKB_DISK_READ_MS,      /* summed over the requests */
    CKB_DISK_WRITES,
    CKB_DISK_WRITE_MERGES,
    CKB_DISK_WRITE_SECTORS,
    CKB_DISK_WRITE_MS,
    CKB_DISK_IN_FLIGHT,
    CKB_DISK_BUSY_MS,     /* with at least one request in flight */
    CKB_DISK_WEIGHTED_MS, /* in flight, summed over the requests */
    CKB_DISK_COUNTER_COUNT
} ckb_disk_counter;

#define CKB_DISK_TEXT_BYTES 32

/* What happened between two readings: the columns of iostat -x, as sysstat computes them. */
typedef struct ckb_disk_use {
    char name[CKB_DISK_TEXT_BYTES]; /* "": nothing was counted */
    double read_merges_per_s, write_merges_per_s, reads_per_s, writes_per_s, read_mib_per_s, write_mib_per_s;
    double request_sectors, queue_length, wait_ms, read_wait_ms, write_wait_ms, service_ms, busy_percent;
} ckb_disk_use;

/* Counters may have gone round at 2^32. `use->name` is left to the caller. */
CKB_API void ckb_disk_use_of(const uint64_t before[CKB_DISK_COUNTER_COUNT],
                             const uint64_t after[CKB_DISK_COUNTER_COUNT], uint64_t elapsed_ns,
                             ckb_disk_use *use);

/* The host of a run. Only now_ns and target are required. */
typedef struct ckb_bench_host {
    void *context;
    uint64_t (*now_ns)(void *context);                    /* monotonic */
    void (*wait_ns)(void *context, uint64_t duration_ns); /* 0: let others run; null: never waits */
    /* Thread number `slot`; 0 or a ckb_status. Null: one after the other in the calling thread. */
    int (*thread_start)(void *context, uint32_t slot, void (*run)(void *argument), void *argument);
    void (*thread_join)(void *context, uint32_t slot);
    /* Slot of the calling thread + 1, 0 for the one that called ckb_bench_run. Goes with the two above. */
    uint32_t (*thread_number)(void *context);
    bool (*interrupted)(void *context);                            /* asked some hundred times a second */
    void (*progress)(void *context, const ckb_progress *progress); /* at most once a second */
    /* One operation is durable. From any worker thread; non-zero ends the run. */
    int (*acknowledge)(void *context, const ckb_chunk_id *id, uint32_t length, uint32_t crc32c);
    int (*acknowledge_entry)(void *context, uint64_t index, uint32_t length, uint32_t crc32c);
    /* Reads the counters of the disk below the target. False, or null: nobody counts. */
    bool (*disk)(void *context, char name[CKB_DISK_TEXT_BYTES], uint64_t counters[CKB_DISK_COUNTER_COUNT]);
    const ckb_bench_target *target;
    const char *command_line;
    const ckb_pair *environment;
    uint32_t environment_count;
    const char *const *warnings;
    uint32_t warning_count;
    unsigned histogram_digits; /* 0: 3 */
} ckb_bench_host;

/* --------------------------------------------------------------------------------------------- >>workload */

typedef struct ckb_workload {
    const char *name;
    const char *alias;    /* null: none */
    const char *summary;  /* the question it answers */
    const char *examples; /* lines */
    const ckb_option *options;
    uint32_t option_count;
} ckb_workload;

#define CKB_WORKLOAD_OPTIONS_MAX 24

/* By name or alias; null when there is none. */
CKB_API const ckb_workload *ckb_workload_find(const char *name);

/* In order of the manual; null after the last. */
CKB_API const ckb_workload *ckb_workload_at(uint32_t place);

#define CKB_STALLS_MAX 8

/* One operation that took longer than --stall. */
typedef struct ckb_stall {
    uint64_t at_ns; /* since the start of the run */
    uint64_t latency_ns;
    uint32_t thread;
} ckb_stall;

/* Calls of a medium: how many, and how long they took together. */
typedef struct ckb_medium_use {
    uint64_t writes, write_bytes, write_ns;
    uint64_t syncs, sync_ns;
    uint64_t erases, erase_ns;
} ckb_medium_use;

/* What only a log has. Latencies are until durable; with sync none until the append returned. */
typedef struct ckb_log_result {
    uint32_t ahead;
    uint32_t prepare;           /* as in ckb_bench_need */
    uint64_t first, last;       /* indexes that are kept in the end */
    uint64_t rolls;             /* segments begun */
    uint64_t commits;           /* syncs that made entries durable */
    ckb_latency rolled, others; /* of appends that began a segment, and of the rest */
    uint64_t p99_low, p99_high; /* hold the p99 of all appends with 95 %, if they do not depend on each other */
    ckb_latency queue_wait, device_wait;  /* of durable appends: their sum is the latency */
    ckb_medium_use appends, commit_calls; /* of the medium, made by appending threads */
    ckb_medium_use maintenance;           /* made beside them: preparing segments, purging */
    uint64_t interval_ns;                 /* that the medium and the disk were watched, final sync included */
    ckb_disk_use disk;
} ckb_log_result;

/* What one stream did: calls, and how long they took together. */
typedef struct ckb_stream_use {
    uint64_t first_row, rows;
    uint64_t chunks;
    uint64_t write_calls, write_ns;
    uint64_t flush_calls, flush_ns;
    uint64_t hsync_calls, hsync_ns;
    uint64_t close_calls, close_ns;
} ckb_stream_use;

/* What only TeraGen has. */
typedef struct ckb_teragen_result {
    uint64_t rows; /* to write */
    uint64_t chunk_bytes, chunks;
    uint64_t write_calls, write_ns; /* over all streams */
    ckb_teragen_sum sum;            /* of the rows made */
    const ckb_stream_use *streams;  /* one for each mapper */
    uint32_t stream_count;
} ckb_teragen_result;

/* One row: where on the axes, and what was measured there. */
typedef struct ckb_bench_result {
    uint32_t threads;
    uint32_t chunks_per_block;
    uint64_t size_bytes;     /* the largest, where sizes vary */
    uint64_t size_min_bytes; /* the smallest */
    uint64_t segment_bytes;
    uint32_t sync; /* place among none, end, each; 3: every sync_every operations, 4: every sync_interval_ns */
    uint64_t sync_every;
    uint64_t sync_interval_ns;
    uint64_t rate_limit_milli; /* thousandths per second; 0: closed loop */
    bool shared;
    bool raw;        /* the ceiling: plain sequential writing, one operation is size_bytes */
    bool is_log;     /* entries of a log, not chunks: `log` has more */
    bool is_teragen; /* rows of TeraGen: `teragen` has more; sizes are of rows, sync_every is of hsyncs */
    bool finished;   /* neither interrupted nor stopped by a failure */
    uint32_t round;  /* of a sweep with rounds, from 1 */
    uint64_t operations, failures, bytes;
    uint64_t elapsed_ns; /* first start to last end */
    uint64_t sync_ns;    /* the final sync, after elapsed; of no meaning with sync none */
    uint64_t slowest_thread_operations, fastest_thread_operations;
    uint64_t clock_steps; /* times the clock went back, taken as no time */
    uint64_t verified, verify_failures;
    bool verify_done;
    ckb_latency latency;         /* applied; with a rate limit from the intended start */
    ckb_latency service_latency; /* with a rate limit: from the real start */
    ckb_latency durable_latency; /* until a commit returned */
    double mean_rate, rates[3];  /* per second, as ckb_meter */
    uint64_t stalls;
    uint32_t stall_count; /* listed ones: the longest, longest first */
    ckb_stall stall[CKB_STALLS_MAX];
    ckb_log_result log;
    ckb_teragen_result teragen;
} ckb_bench_result;

#define CKB_SWEEP_MAX CKB_OPTION_LIST_MAX

/* The share of one thread count, over the rounds. Shares are 0 to 1. */
typedef struct ckb_qualify_row {
    uint32_t threads;
    double rate_per_s; /* adjusted; median */
    double of_best, of_best_low, of_best_high;
    double of_ceiling, of_ceiling_low, of_ceiling_high;
} ckb_qualify_row;

typedef struct ckb_qualify_answer {
    uint32_t rounds;
    uint32_t row_count;
    uint32_t answer; /* row: the fewest threads that come within 5 % of the best */
    bool sure;
    double confidence;        /* that low to high hold the median */
    double ceiling_mib_per_s; /* median */
    ckb_qualify_row rows[CKB_SWEEP_MAX];
} ckb_qualify_answer;

#define CKB_BENCH_MESSAGE_BYTES 480

/* Durable appends to a log with segments of one size, over the rounds; [0] is with the fewer threads. */
typedef struct ckb_segment_row {
    uint64_t segment_bytes;
    double rate_per_s[2]; /* medians, as all of these */
    double of_best[2], of_best_low[2], of_best_high[2];
    double entries_per_sync[2];
    double roll_ns[2],
        other_ns[2];        /* median latency of appends that began a segment (0: none did) and of others */
    double disk_wait_ms[2]; /* 0: nobody counts */
} ckb_segment_row;

typedef struct ckb_segment_answer {
    uint32_t rounds;
    uint32_t row_count;
    uint32_t reference; /* among the results: the first that is compared */
    uint32_t answer; /* row: the smallest segments that come within 5 % of the best with either thread count */
    uint32_t threads[2];
    uint32_t thread_counts; /* 1 or 2 of these */
    bool sure;
    double confidence;
    char sentence[CKB_BENCH_MESSAGE_BYTES];
    char caution[CKB_BENCH_MESSAGE_BYTES]; /* "" when the answer is sure */
    ckb_segment_row rows[CKB_SWEEP_MAX];
} ckb_segment_answer;

/* etcd's rule: 99 of 100 durable appends of one thread take less than this. */
#define CKB_WAL_P99_NS UINT64_C(10000000)
#define CKB_WAL_DURATION_NS UINT64_C(30000000000) /* least time of a measurement that is worth a verdict */

typedef struct ckb_wal_answer {
    bool pass;
    bool sizes_vary; /* size_bytes is the largest */
    uint64_t size_bytes, segment_bytes;
    uint64_t measured_ns;
    ckb_latency latency;
    uint64_t p99_low, p99_high; /* as in ckb_log_result */
    uint64_t slower_than_p999;  /* samples: how much the p99.9 rests on */
    bool sure;
    char sentence[CKB_BENCH_MESSAGE_BYTES];
    char caution[CKB_BENCH_MESSAGE_BYTES];
} ckb_wal_answer;

typedef struct ckb_bench_report {
    const ckb_bench_host *host;
    const ckb_workload *workload;
    const ckb_option_value *values;
    int status;  /* 0, or what ended the run early */
    bool failed; /* operations failed or read back wrong, or a verdict is no */
    bool interrupted;
    char message[CKB_BENCH_MESSAGE_BYTES];  /* about status or the first failure; "" when none */
    char sentence[CKB_BENCH_MESSAGE_BYTES]; /* the answer; "" when there is none */
    char caution[CKB_BENCH_MESSAGE_BYTES];  /* why the answer is not sure; "" when it is */
    char left_out[CKB_BENCH_MESSAGE_BYTES]; /* runs that the target has no place for; "" when there are none */
    ckb_bench_result *results;
    uint32_t result_count;
    bool has_answer, has_segment_answer, has_wal_answer;
    ckb_qualify_answer answer;
    ckb_segment_answer segment_answer;
    ckb_wal_answer wal_answer;
} ckb_bench_report;

/* Bytes of memory that a run needs, any alignment. CKB_INVALID: the options do not go together or do not
 * fit the target's geometry; CKB_NOSPACE: not the room it has; or the status of its `describe`. `message`
 * says why. Writes nothing. */
CKB_API int ckb_bench_memory(const ckb_bench_host *host, const ckb_workload *workload,
                             const ckb_option_value *values, size_t *bytes, char *message,
                             size_t message_bytes);

/* Prints what a run would do, and the bytes it would write. Writes nothing. Status as ckb_bench_memory,
 * `message` says why, or the sink's. */
CKB_API int ckb_bench_plan(const ckb_bench_host *host, const ckb_workload *workload,
                           const ckb_option_value *values, const ckb_sink *sink, char *message,
                           size_t message_bytes);

/* Runs. `*report` lies in `memory` and holds what was measured whatever is returned, unless that is
 * CKB_INVALID (memory too small, or as ckb_bench_memory). An interrupted run is CKB_OK with
 * report->interrupted, failed operations are CKB_OK with report->failed where --go-on asks for it;
 * otherwise the status of what ended the run, which is report->status. */
CKB_API int ckb_bench_run(const ckb_bench_host *host, const ckb_workload *workload,
                          const ckb_option_value *values, void *memory, size_t bytes,
                          ckb_bench_report **report);

typedef enum ckb_print_format {
    CKB_PRINT_TEXT,
    CKB_PRINT_JSON,      /* one document */
    CKB_PRINT_CSV,       /* a header, then one line per result */
    CKB_PRINT_DROPWIZARD /* the field's timer line per result; percentiles are of all operations */
} ckb_print_format;

/* Prints a report. Returns 0 or the sink's first failure. */
CKB_API int ckb_bench_print(const ckb_bench_report *report, int format, const ckb_sink *sink);

#endif /* CHUNKBENCH_BENCH */

#ifdef __cplusplus
}
#endif
#endif /* CHUNKBENCH_H */

/* =============================================================================================== */
#ifdef CHUNKBENCH_IMPLEMENTATION
#ifndef CKBI_IMPLEMENTED
#define CKBI_IMPLEMENTED

#ifdef __cplusplus
#error "chunkbench: compile the implementation as C; the declarations include from C++"
#endif
#if defined(CKB_READ_ONLY) && defined(CHUNKBENCH_BENCH)
#error "chunkbench: CKB_READ_ONLY removes what CHUNKBENCH_BENCH measures"
#endif
#if (defined(CKB_NO_LOG) || defined(CKB_NO_CHUNKS)) && defined(CHUNKBENCH_BENCH)
#error "chunkbench: CKB_NO_LOG and CKB_NO_CHUNKS remove what CHUNKBENCH_BENCH measures"
#endif

/* ---------------------------------------------------------------------------------------------- >>base
 * Compiler and libc edges, little-endian fields, locks. */

#if defined(__GNUC__)
#define CKBI_UNUSED __attribute__((unused))
#define CKBI_NOINLINE __attribute__((noinline)) /* one copy, whose locals are not in the caller's stack frame */
#ifdef __OPTIMIZE_SIZE__
#define CKBI_ONE_COPY __attribute__((noinline)) /* smaller than what it would become in its callers */
#else
#define CKBI_ONE_COPY
#endif
#define CKBI_PREFETCH(address) __builtin_prefetch(address, 1)
#define ckbi_copy __builtin_memcpy
#define ckbi_move __builtin_memmove
#define ckbi_fill __builtin_memset
#define ckbi_compare __builtin_memcmp
#else
#include <string.h>
#define CKBI_UNUSED
#define CKBI_NOINLINE
#define CKBI_ONE_COPY
#define CKBI_PREFETCH(address) ((void)(address))
#define ckbi_copy memcpy
#define ckbi_move memmove
#define ckbi_fill memset
#define ckbi_compare memcmp
#endif

#ifdef CKB_STATIC
#define CKB_DEF static CKBI_UNUSED
#else
#define CKB_DEF
#endif

/* What a trimmed build leaves out is still compiled, but nobody calls it: its functions are static then, and
 * constants keep the rest of the code from using them. */
#if defined(CKB_NO_CHUNKS) && defined(CKB_NO_LOG)
#error "chunkbench: CKB_NO_CHUNKS and CKB_NO_LOG leave nothing"
#endif
#ifdef CKB_NO_CHUNKS
#define CKBI_HAS_CHUNKS false
#define CKBI_CHUNK_DEF static CKBI_UNUSED
#else
#define CKBI_HAS_CHUNKS true
#define CKBI_CHUNK_DEF CKB_DEF
#endif
#ifdef CKB_NO_LOG
#define CKBI_HAS_LOG false
#define CKBI_LOG_DEF static CKBI_UNUSED
#else
#define CKBI_HAS_LOG true
#define CKBI_LOG_DEF CKB_DEF
#endif

/* An assertion states what the code around it relies on; no content of a medium can make one fail. */
#ifndef CKB_ASSERT
#if defined(__GNUC__)
#define CKB_ASSERT(condition) ((condition) ? (void)0 : __builtin_trap())
#else
#define CKB_ASSERT(condition) ((void)0)
#endif
#endif

#ifdef CKB_THREADS
#ifndef CKB_MUTEX
#include <pthread.h>
#define CKB_MUTEX pthread_mutex_t
#define CKB_MUTEX_INIT(mutex) pthread_mutex_init(mutex, NULL)
#define CKB_MUTEX_DESTROY(mutex) pthread_mutex_destroy(mutex)
#define CKB_MUTEX_LOCK(mutex) pthread_mutex_lock(mutex)
#define CKB_MUTEX_UNLOCK(mutex) pthread_mutex_unlock(mutex)
#define CKB_CONDITION pthread_cond_t
#define CKB_CONDITION_INIT(condition) pthread_cond_init(condition, NULL)
#define CKB_CONDITION_DESTROY(condition) pthread_cond_destroy(condition)
#define CKB_CONDITION_WAIT(condition, mutex) pthread_cond_wait(condition, mutex)
#define CKB_CONDITION_BROADCAST(condition) pthread_cond_broadcast(condition)
#define CKB_CONDITION_SIGNAL(condition) pthread_cond_signal(condition)
#endif
#if !defined(__GNUC__)
#error "chunkbench: CKB_THREADS needs the compiler's __atomic built-ins"
#endif
#define CKBI_LOAD(pointer) __atomic_load_n(pointer, __ATOMIC_ACQUIRE)
#define CKBI_STORE(pointer, value) __atomic_store_n(pointer, value, __ATOMIC_RELEASE)
#define CKBI_ADD(pointer, value) __atomic_add_fetch(pointer, value, __ATOMIC_ACQ_REL)
#define CKBI_SUB(pointer, value) __atomic_sub_fetch(pointer, value, __ATOMIC_ACQ_REL)
/* Changes `*pointer` from `*expected` to `value`; false: it was not that, and `*expected` is what it is. */
#define CKBI_CHANGE(pointer, expected, value) \
    __atomic_compare_exchange_n(pointer, expected, value, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)
#define CKBI_PARTITION_MIN 32768u /* chunks; smaller indexes are not worth several locks */
#define CKBI_PARTITION_MAX 64u
#else
#ifdef CKB_MUTEX
#error "chunkbench: CKB_MUTEX names a mutex for CKB_THREADS, which is not defined"
#endif
#define CKB_MUTEX char
#define CKB_MUTEX_INIT(mutex) ((void)(mutex))
#define CKB_MUTEX_DESTROY(mutex) ((void)(mutex))
#define CKB_MUTEX_LOCK(mutex) ((void)(mutex))
#define CKB_MUTEX_UNLOCK(mutex) ((void)(mutex))
#define CKB_CONDITION char
#define CKB_CONDITION_INIT(condition) ((void)(condition))
#define CKB_CONDITION_DESTROY(condition) ((void)(condition))
/* Without threads nobody else could make the condition true. */
#define CKB_CONDITION_WAIT(condition, mutex) ((void)(condition), (void)(mutex), CKB_ASSERT(false))
#define CKB_CONDITION_BROADCAST(condition) ((void)(condition))
#define CKB_CONDITION_SIGNAL(condition) ((void)(condition))
#define CKBI_LOAD(pointer) (*(pointer))
#define CKBI_STORE(pointer, value) (*(pointer) = (value))
#define CKBI_ADD(pointer, value) (*(pointer) += (value))
#define CKBI_SUB(pointer, value) (*(pointer) -= (value))
#define CKBI_CHANGE(pointer, expected, value) ((void)(expected), *(pointer) = (value), true)
#define CKBI_PARTITION_MIN UINT32_MAX
#define CKBI_PARTITION_MAX 1u
#endif

/* Reading a field is a single load where words may lie anywhere, but gcc finds that out after it decided what to
 * inline. */
#if defined(__GNUC__) && defined(__ARM_FEATURE_UNALIGNED)
#define CKBI_FIELD CKBI_UNUSED __attribute__((always_inline)) inline
#else
#define CKBI_FIELD CKBI_UNUSED
#endif

static CKBI_FIELD uint16_t ckbi_get16(const uint8_t *bytes)
{
    return (uint16_t)(bytes[0] | bytes[1] << 8);
}

static CKBI_FIELD uint32_t ckbi_get32(const uint8_t *bytes)
{
    return (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
}

static CKBI_FIELD uint64_t ckbi_get64(const uint8_t *bytes)
{
    return (uint64_t)ckbi_get32(bytes) | (uint64_t)ckbi_get32(bytes + 4) << 32;
}

static CKBI_UNUSED void ckbi_put16(uint8_t *bytes, uint16_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
}

static CKBI_UNUSED void ckbi_put32(uint8_t *bytes, uint32_t value)
{
    bytes[0] = (uint8_t)value;
    bytes[1] = (uint8_t)(value >> 8);
    bytes[2] = (uint8_t)(value >> 16);
    bytes[3] = (uint8_t)(value >> 24);
}

static CKBI_UNUSED void ckbi_put64(uint8_t *bytes, uint64_t value)
{
    ckbi_put32(bytes, (uint32_t)value);
    ckbi_put32(bytes + 4, (uint32_t)(value >> 32));
}

/* `unit` is a power of two, in all of these. */
static CKBI_UNUSED uint64_t ckbi_align_up(uint64_t value, uint64_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}

static CKBI_UNUSED uint64_t ckbi_align_down(uint64_t value, uint64_t unit)
{
    return value & ~(unit - 1);
}

static CKBI_UNUSED uint32_t ckbi_align_up32(uint32_t value, uint32_t unit)
{
    return (value + unit - 1) & ~(unit - 1);
}

static CKBI_UNUSED uint32_t ckbi_align_down32(uint32_t value, uint32_t unit)
{
    return value & ~(unit - 1);
}

static CKBI_UNUSED bool ckbi_is_power_of_two(uint32_t value)
{
    return value != 0 && (value & (value - 1)) == 0;
}

static CKBI_UNUSED uint32_t ckbi_min32(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

static CKBI_UNUSED uint32_t ckbi_max32(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

static CKBI_UNUSED uint64_t ckbi_min(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static CKBI_UNUSED uint64_t ckbi_max(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

/* ---------------------------------------------------------------------------------------------- >>crc
 * CRC-32C (Castagnoli, reflected polynomial 0x82F63B78). ckbi_crc_update works on the raw state:
 * ckb_crc32c inverts it first and last, a record seeds it with its epoch and position instead.
 *
 * Three ways, chosen at the edges: the host's own function (CKB_CRC32C), instructions (x86-64 with
 * SSE4.2, PCLMULQDQ and AVX; ARMv8 with CRC32), or a table. All take any length at any alignment and
 * agree on every byte order. Nothing here is written at run time. */

#if defined(CKB_CRC32C)

static CKBI_UNUSED uint32_t ckbi_crc_update(uint32_t state, const void *data, size_t bytes)
{
    return CKB_CRC32C(state, data, bytes);
}

static CKBI_UNUSED uint32_t ckbi_crc_update8(uint32_t state, uint64_t value)
{
    uint8_t bytes[8];
    ckbi_put64(bytes, value);
    return CKB_CRC32C(state, bytes, sizeof bytes);
}

#else

/* What this machine has. __builtin_cpu_supports reads a word that the compiler's run-time library fills before
 * main: no trap, no race between first callers, no state of ours. A freestanding build may lack that library;
 * it has what its command line promises (-msse4.2 -mpclmul -mavx), or the table. */
#if defined(__GNUC__) && defined(__x86_64__) && __STDC_HOSTED__
#define CKBI_CRC_X86
#define CKBI_CRC_HAS_WORD __builtin_cpu_supports("sse4.2")
#define CKBI_CRC_HAS_FOLD \
    (CKBI_CRC_HAS_WORD && __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("avx"))
#define CKBI_CRC_HAS_FOLD512 (CKBI_CRC_HAS_FOLD && __builtin_cpu_supports("avx512vl"))
#elif defined(__GNUC__) && defined(__x86_64__) && defined(__SSE4_2__) && defined(__PCLMUL__) && defined(__AVX__)
#define CKBI_CRC_X86
#define CKBI_CRC_HAS_WORD true
#define CKBI_CRC_HAS_FOLD true
#define CKBI_CRC_HAS_FOLD512 false
#elif defined(__GNUC__) && defined(__aarch64__) && defined(__ARM_FEATURE_CRC32)
#define CKBI_CRC_ARM
#endif

/* ckbi_crc_nibble[k][v] is the state after nibble v and then k nibbles of zero. Row 0 alone, 64 bytes, is
 * for small machines. Sixteen rows, 1 KiB like the usual bytewise table, take eight bytes per step with
 * lookups that do not wait for each other. */
#if defined(__OPTIMIZE_SIZE__) || defined(CKBI_CRC_ARM)
#define CKBI_CRC_ROWS 1
#else
#define CKBI_CRC_ROWS 16
#endif
/* clang-format off */
static const uint32_t ckbi_crc_nibble[CKBI_CRC_ROWS][16] = {
    {0x00000000, 0x105ec76f, 0x20bd8ede, 0x30e349b1, 0x417b1dbc, 0x5125dad3, 0x61c69362, 0x7198540d,
     0x82f63b78, 0x92a8fc17, 0xa24bb5a6, 0xb21572c9, 0xc38d26c4, 0xd3d3e1ab, 0xe330a81a, 0xf36e6f75},
#if CKBI_CRC_ROWS > 1
    {0x00000000, 0xf26b8303, 0xe13b70f7, 0x1350f3f4, 0xc79a971f, 0x35f1141c, 0x26a1e7e8, 0xd4ca64eb,
     0x8ad958cf, 0x78b2dbcc, 0x6be22838, 0x9989ab3b, 0x4d43cfd0, 0xbf284cd3, 0xac78bf27, 0x5e133c24},
    {0x00000000, 0x3fc5f181, 0x7f8be302, 0x404e1283, 0xff17c604, 0xc0d23785, 0x809c2506, 0xbf59d487,
     0xfbc3faf9, 0xc4060b78, 0x844819fb, 0xbb8de87a, 0x04d43cfd, 0x3b11cd7c, 0x7b5fdfff, 0x449a2e7e},
    {0x00000000, 0x13a29877, 0x274530ee, 0x34e7a899, 0x4e8a61dc, 0x5d28f9ab, 0x69cf5132, 0x7a6dc945,
     0x9d14c3b8, 0x8eb65bcf, 0xba51f356, 0xa9f36b21, 0xd39ea264, 0xc03c3a13, 0xf4db928a, 0xe7790afd},
    {0x00000000, 0x70a27d8a, 0xe144fb14, 0x91e6869e, 0xc76580d9, 0xb7c7fd53, 0x26217bcd, 0x56830647,
     0x8b277743, 0xfb850ac9, 0x6a638c57, 0x1ac1f1dd, 0x4c42f79a, 0x3ce08a10, 0xad060c8e, 0xdda47104},
    {0x00000000, 0xa541927e, 0x4f6f520d, 0xea2ec073, 0x9edea41a, 0x3b9f3664, 0xd1b1f617, 0x74f06469,
     0x38513ec5, 0x9d10acbb, 0x773e6cc8, 0xd27ffeb6, 0xa68f9adf, 0x03ce08a1, 0xe9e0c8d2, 0x4ca15aac},
    {0x00000000, 0xe964b13d, 0xd725148b, 0x3e41a5b6, 0xaba65fe7, 0x42c2eeda, 0x7c834b6c, 0x95e7fa51,
     0x52a0c93f, 0xbbc47802, 0x8585ddb4, 0x6ce16c89, 0xf90696d8, 0x106227e5, 0x2e238253, 0xc747336e},
    {0x00000000, 0xdd45aab8, 0xbf672381, 0x62228939, 0x7b2231f3, 0xa6679b4b, 0xc4451272, 0x1900b8ca,
     0xf64463e6, 0x2b01c95e, 0x49234067, 0x9466eadf, 0x8d665215, 0x5023f8ad, 0x32017194, 0xef44db2c},
    {0x00000000, 0x8f2261d3, 0x1ba8b557, 0x948ad484, 0x37516aae, 0xb8730b7d, 0x2cf9dff9, 0xa3dbbe2a,
     0x6ea2d55c, 0xe180b48f, 0x750a600b, 0xfa2801d8, 0x59f3bff2, 0xd6d1de21, 0x425b0aa5, 0xcd796b76},
    {0x00000000, 0x38116fac, 0x7022df58, 0x4833b0f4, 0xe045beb0, 0xd854d11c, 0x906761e8, 0xa8760e44,
     0xc5670b91, 0xfd76643d, 0xb545d4c9, 0x8d54bb65, 0x2522b521, 0x1d33da8d, 0x55006a79, 0x6d1105d5},
    {0x00000000, 0xc00c303e, 0x85f4168d, 0x45f826b3, 0x0e045beb, 0xce086bd5, 0x8bf04d66, 0x4bfc7d58,
     0x1c08b7d6, 0xdc0487e8, 0x99fca15b, 0x59f09165, 0x120cec3d, 0xd200dc03, 0x97f8fab0, 0x57f4ca8e},
    {0x00000000, 0xef306b19, 0xdb8ca0c3, 0x34bccbda, 0xb2f53777, 0x5dc55c6e, 0x697997b4, 0x8649fcad,
     0x6006181f, 0x8f367306, 0xbb8ab8dc, 0x54bad3c5, 0xd2f32f68, 0x3dc34471, 0x097f8fab, 0xe64fe4b2},
    {0x00000000, 0x9c5bfaa6, 0x3d5b83bd, 0xa100791b, 0x7ab7077a, 0xe6ecfddc, 0x47ec84c7, 0xdbb77e61,
     0xf56e0ef4, 0x6935f452, 0xc8358d49, 0x546e77ef, 0x8fd9098e, 0x1382f328, 0xb2828a33, 0x2ed97095},
    {0x00000000, 0x68032cc8, 0xd0065990, 0xb8057558, 0xa5e0c5d1, 0xcde3e919, 0x75e69c41, 0x1de5b089,
     0x4e2dfd53, 0x262ed19b, 0x9e2ba4c3, 0xf628880b, 0xebcd3882, 0x83ce144a, 0x3bcb6112, 0x53c84dda},
    {0x00000000, 0x847609b4, 0x0d006599, 0x89766c2d, 0x1a00cb32, 0x9e76c286, 0x1700aeab, 0x9376a71f,
     0x34019664, 0xb0779fd0, 0x3901f3fd, 0xbd77fa49, 0x2e015d56, 0xaa7754e2, 0x230138cf, 0xa777317b},
    {0x00000000, 0x493c7d27, 0x9278fa4e, 0xdb448769, 0x211d826d, 0x6821ff4a, 0xb3657823, 0xfa590504,
     0x423b04da, 0x0b0779fd, 0xd043fe94, 0x997f83b3, 0x632686b7, 0x2a1afb90, 0xf15e7cf9, 0xb86201de}
#endif
};
/* clang-format on */

static CKBI_UNUSED uint32_t ckbi_crc_table1(uint32_t state, uint8_t byte)
{
    state ^= byte;
    state = state >> 4 ^ ckbi_crc_nibble[0][state & 15];
    return state >> 4 ^ ckbi_crc_nibble[0][state & 15];
}

#if CKBI_CRC_ROWS > 1

/* Four nibbles, the last of which has `row` nibbles behind it. */
static CKBI_UNUSED uint32_t ckbi_crc_table2(uint32_t bits, unsigned row)
{
    return (ckbi_crc_nibble[row + 3][bits & 15] ^ ckbi_crc_nibble[row + 2][bits >> 4 & 15]) ^
           (ckbi_crc_nibble[row + 1][bits >> 8 & 15] ^ ckbi_crc_nibble[row][bits >> 12 & 15]);
}

static CKBI_UNUSED uint32_t ckbi_crc_table8(uint32_t state, uint64_t value)
{
    const uint32_t low = state ^ (uint32_t)value;
    const uint32_t high = (uint32_t)(value >> 32);
    return (ckbi_crc_table2(low, 12) ^ ckbi_crc_table2(low >> 16, 8)) ^
           (ckbi_crc_table2(high, 4) ^ ckbi_crc_table2(high >> 16, 0));
}

static CKBI_UNUSED uint32_t ckbi_crc_table(uint32_t state, const uint8_t *p, size_t bytes)
{
    for (; bytes >= 8; bytes -= 8, p += 8)
        state = ckbi_crc_table8(state, ckbi_get64(p));
    for (; bytes > 0; bytes--)
        state = ckbi_crc_table1(state, *p++);
    return state;
}

#else

static CKBI_UNUSED uint32_t ckbi_crc_table(uint32_t state, const uint8_t *p, size_t bytes)
{
    for (; bytes > 0; bytes--)
        state = ckbi_crc_table1(state, *p++);
    return state;
}

static CKBI_UNUSED uint32_t ckbi_crc_table8(uint32_t state, uint64_t value)
{
    uint8_t bytes[8];
    ckbi_put64(bytes, value);
    return ckbi_crc_table(state, bytes, sizeof bytes);
}

#endif

#if defined(CKBI_CRC_X86)

/* One crc32 instruction takes a word of 8 bytes in a cycle but its result is 3 cycles away, so three streams
 * run side by side (Gopal et al., Intel, "Fast CRC Computation for iSCSI Polynomial Using CRC32
 * Instruction", 2011). Carry-less multiplication folds another 8 bytes per cycle on a different port
 * (Gopal et al., Intel, "Fast CRC Computation for Generic Polynomials Using PCLMULQDQ Instruction", 2009).
 * Both at once halve the time. A block is laid out
 *
 *     folded part: 12 words * steps | stream 0: each | stream 1: each | stream 2: each + rest
 *
 * and its state is the sum of four: each part's own, moved on to the end of the block. */
#include <immintrin.h>

#define CKBI_CRC_INLINE __attribute__((always_inline, target("sse4.2,pclmul,avx"))) static inline

/* From these many words on, three streams, and folding besides, are worth what putting them together
 * costs; measured on Skylake-X, where the two curves are flat around the crossing. */
#define CKBI_CRC_STREAMS_WORDS 10
#define CKBI_CRC_FOLD_WORDS 56

/* near[w] is x^(64w - 33) mod P, far[w] is near[256w]. The carry-less product of a state and near[w], taken
 * as one word through crc32, is the state after w words of zero: reflection shifts the product by one bit
 * and crc32 multiplies by x^32. Together they reach 4096 words. */
/* clang-format off */
static const uint32_t ckbi_crc_near[256] = {
    0xa9cdda0d, 0x00000001, 0x493c7d27, 0xf20c0dfe, 0xba4fc28e, 0x3da6d0cb, 0xddc0152b, 0x1c291d04, 0x9e4addf8,
    0x740eef02, 0x39d3b296, 0x083a6eec, 0x0715ce53, 0xc49f4f67, 0x47db8317, 0x2ad91c30, 0x0d3b6092, 0x6992cea2,
    0xc96cfdc0, 0x7e908048, 0x878a92a7, 0x1b3d8f29, 0xdaece73e, 0xf1d0f55e, 0xab7aff2a, 0xa87ab8a8, 0x2162d385,
    0x8462d800, 0x83348832, 0x71d111a8, 0x299847d5, 0xffd852c6, 0xb9e02b86, 0xdcb17aa4, 0x18b33a4e, 0xf37c5aee,
    0xb6dd949b, 0x6051d5a2, 0x78d9ccb7, 0x18b0d4ff, 0xbac2fd7b, 0x21f3d99c, 0xa60ce07b, 0x8f158014, 0xce7f39f4,
    0xa00457f7, 0x61d82e56, 0x8d6d2c43, 0xd270f1a2, 0x00ac29cf, 0xc619809d, 0xe9adf796, 0x2b3cac5d, 0x96638b34,
    0x65863b64, 0xe0e9f351, 0x1b03397f, 0x9af01f2d, 0xebb883bd, 0x2cff42cf, 0xb3e32c28, 0x88f25a3a, 0x064f7f26,
    0x4e36f0b0, 0xdd7e3b0c, 0xbd6f81f8, 0xf285651c, 0x91c9bd4b, 0x10746f3c, 0x885f087b, 0xc7a68855, 0x4c144932,
    0x271d9844, 0x52148f02, 0x8e766a0c, 0xa3c6f37a, 0x93a5f730, 0xd7c0557f, 0x6cb08e5c, 0x63ded06a, 0x6b749fb2,
    0x4d56973c, 0x1393e203, 0x9669c9df, 0xcec3662e, 0xe417f38a, 0x96c515bb, 0x4b9e0f71, 0xe6fc4e6a, 0xd104b8fc,
    0x8227bb8a, 0x5b397730, 0xb0cd4768, 0xe78eb416, 0x39c7ff35, 0x61ff0e01, 0xd7a4825c, 0x8d96551c, 0x0ab3844b,
    0x0bf80dd2, 0x0167d312, 0x8821abed, 0xf6076544, 0x6a45d2b2, 0x26f6a60a, 0xd8d26619, 0xa741c1bf, 0xde87806c,
    0x98d8d9cb, 0x14338754, 0x49c3cc9c, 0x5bd2011f, 0x68bce87a, 0xdd07448e, 0x57a3d037, 0xdde8f5b9, 0x6956fc3b,
    0xa3e3e02c, 0x42d98888, 0xd73c7bea, 0x3771e98f, 0x80ff0093, 0xb42ae3d9, 0x8fe4c34d, 0x2178513a, 0xdf99fc11,
    0xe0ac139e, 0x6c23e841, 0x170076fa, 0xfe314258, 0x444dd413, 0x0d8373a0, 0x6f345e45, 0x19e3635e, 0x41d17b64,
    0x29f268b4, 0xff0dba97, 0x1dc0632a, 0xa2b73df1, 0x1614f396, 0xf872e54c, 0x9e2993d3, 0x1e41e9fc, 0x6bebd73c,
    0x86d8e4d2, 0x63ae91e6, 0x651bd98b, 0xf8c9da7a, 0x5bb8f1bc, 0x945a19c1, 0xa90fd27a, 0xee8213b7, 0xb3af077a,
    0x93781dc7, 0x4984d782, 0xccc4a1b9, 0xca6ef3ac, 0xa2c2d971, 0x234e0b26, 0x1cad4452, 0xdd66cbbb, 0x74922601,
    0x4597456a, 0xc55f7eab, 0xe9e28eb4, 0xa1962329, 0x7b3ff57a, 0x2d370749, 0xc9c8b782, 0x397d84a1, 0x3f70cc6f,
    0x79113270, 0x93e106a4, 0xbc817803, 0x62ec6c6d, 0x88eb3c07, 0xd813b325, 0x6e4cb630, 0x0df04680, 0x71971d5c,
    0x2342001e, 0xf33b8bc6, 0x0a2a8d7e, 0x9fb3bbc0, 0x6d9a4957, 0x6ef22b23, 0xe8b6368b, 0xce2df768, 0xd2c3ed1a,
    0xe53a4fc7, 0x995a5724, 0xbe60a91a, 0x9ef68d35, 0x1dfa0a15, 0x0c139b31, 0x8ec52396, 0xf2271e60, 0x0e766b11,
    0x0b0bf8ca, 0x475846a4, 0x2664fd8b, 0xb2a3dfa6, 0xed64812d, 0xdc1a160c, 0x02ee03b2, 0x79afdf1c, 0x8604ae0f,
    0x07ac6e46, 0x363bd6b3, 0x15f85253, 0x135c83fd, 0x1bec24dd, 0x5fabe670, 0x4c36cd5b, 0x35ec3279, 0xe0a22e29,
    0x00bcf5f6, 0x7c2b6ed9, 0x8ae00689, 0x06ff88fd, 0x17f27698, 0xf7317cf0, 0x58ca5f00, 0x61b6e40b, 0xaa7c7ad5,
    0xde8a97f8, 0xb5cfca28, 0x88f61445, 0xded288f8, 0xd4520e9e, 0x59f229bc, 0x0c592bd5, 0x6d390dec, 0x38edfaf3,
    0x37170390, 0x72cbfcdb, 0x6353c1cc, 0x348331a5, 0xc4584f5c, 0xc3977c19, 0xf48642e9, 0xdafaea7c, 0x531377e2,
    0x73db4c04, 0xdd35bc8d, 0x72675ce8, 0xb25b29f2, 0x3ec2ff83, 0x9a5ede41, 0xe8c7a017, 0xa563905d, 0xcf4bfaef,
    0x45cddf4e, 0x6bde1ac7, 0xacfa3103, 0xae1175c2
};
static const uint32_t ckbi_crc_far[16] = {
    0xa9cdda0d, 0xa51b6135, 0x82f89c77, 0xb9d68d49, 0x54a86326, 0xe2f1a204, 0xc1f19ee1, 0x1994f83a,
    0x1dc403cc, 0xdfea38fc, 0x68bfa742, 0x1a77140a, 0x6a173fa1, 0xa095b905, 0x0d435f26, 0xd2d0a674
};
/* clang-format on */

/* The largest block whose streams and rest the two tables reach: 3 * each + rest is half of the words and
 * less than 36 more. A multiple of 8 words, so that the next block is aligned like this one. */
#define CKBI_CRC_BLOCK_BYTES ((size_t)8 * 8112)

CKBI_CRC_INLINE uint64_t ckbi_crc_word(const uint8_t *p)
{
    uint64_t word;
    ckbi_copy(&word, p, sizeof word);
    return word;
}

CKBI_CRC_INLINE __m128i ckbi_crc_vector(const uint8_t *p)
{
    return _mm_loadu_si128((const __m128i *)(const void *)p);
}

CKBI_CRC_INLINE __m128i ckbi_crc_product(uint64_t state, uint32_t shift)
{
    return _mm_clmulepi64_si128(_mm_cvtsi64_si128((long long)state), _mm_cvtsi32_si128((int)shift), 0x00);
}

CKBI_CRC_INLINE uint64_t ckbi_crc_reduce(__m128i product)
{
    return _mm_crc32_u64(0, (uint64_t)_mm_cvtsi128_si64(product));
}

/* What to multiply a state by to move it `words` words on. */
CKBI_CRC_INLINE uint32_t ckbi_crc_shift(size_t words)
{
    if (words < 256)
        return ckbi_crc_near[words];
    return (uint32_t)ckbi_crc_reduce(ckbi_crc_product(ckbi_crc_near[words % 256], ckbi_crc_far[words / 256]));
}

/* A vector moved on by `words` words to where `there` stands, and added to it. Its halves are 64-bit, so
 * the first, which is one word farther away, takes the next constant. With AVX-512VL the compiler makes the
 * two additions one instruction; that is what the second build of ckbi_crc_run below is for. */
CKBI_CRC_INLINE __m128i ckbi_crc_fold(__m128i vector, unsigned words, __m128i there)
{
    const __m128i by = _mm_set_epi64x(ckbi_crc_near[words], ckbi_crc_near[words + 1]);
    const __m128i first = _mm_clmulepi64_si128(vector, by, 0x00);
    const __m128i second = _mm_clmulepi64_si128(vector, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(first, there), second);
}

typedef struct {
    uint64_t folded;
    uint64_t stream[3];
} ckbi_crc_parts;

/* The folded part at p, `steps` > 0, and beside it the first 4 * (steps - 1) words of the three streams,
 * which are `stride` bytes apart. Six vectors in flight cover the latency of a multiplication. */
CKBI_CRC_INLINE ckbi_crc_parts ckbi_crc_fuse(uint32_t state, const uint8_t *p, size_t steps, size_t stride)
{
    const uint8_t *q = p + 96 * steps;
    uint64_t s0 = 0, s1 = 0, s2 = 0;
    __m128i v0 = _mm_xor_si128(ckbi_crc_vector(p), _mm_cvtsi32_si128((int)state));
    __m128i v1 = ckbi_crc_vector(p + 16);
    __m128i v2 = ckbi_crc_vector(p + 32);
    __m128i v3 = ckbi_crc_vector(p + 48);
    __m128i v4 = ckbi_crc_vector(p + 64);
    __m128i v5 = ckbi_crc_vector(p + 80);
    while (--steps > 0) {
        p += 96;
        v0 = ckbi_crc_fold(v0, 12, ckbi_crc_vector(p));
        s0 = _mm_crc32_u64(s0, ckbi_crc_word(q));
        s1 = _mm_crc32_u64(s1, ckbi_crc_word(q + stride));
        v1 = ckbi_crc_fold(v1, 12, ckbi_crc_vector(p + 16));
        s2 = _mm_crc32_u64(s2, ckbi_crc_word(q + 2 * stride));
        s0 = _mm_crc32_u64(s0, ckbi_crc_word(q + 8));
        v2 = ckbi_crc_fold(v2, 12, ckbi_crc_vector(p + 32));
        s1 = _mm_crc32_u64(s1, ckbi_crc_word(q + stride + 8));
        s2 = _mm_crc32_u64(s2, ckbi_crc_word(q + 2 * stride + 8));
        v3 = ckbi_crc_fold(v3, 12, ckbi_crc_vector(p + 48));
        s0 = _mm_crc32_u64(s0, ckbi_crc_word(q + 16));
        s1 = _mm_crc32_u64(s1, ckbi_crc_word(q + stride + 16));
        v4 = ckbi_crc_fold(v4, 12, ckbi_crc_vector(p + 64));
        s2 = _mm_crc32_u64(s2, ckbi_crc_word(q + 2 * stride + 16));
        s0 = _mm_crc32_u64(s0, ckbi_crc_word(q + 24));
        v5 = ckbi_crc_fold(v5, 12, ckbi_crc_vector(p + 80));
        s1 = _mm_crc32_u64(s1, ckbi_crc_word(q + stride + 24));
        s2 = _mm_crc32_u64(s2, ckbi_crc_word(q + 2 * stride + 24));
        q += 32;
    }
    v3 = ckbi_crc_fold(v0, 6, v3);
    v4 = ckbi_crc_fold(v1, 6, v4);
    v5 = ckbi_crc_fold(v2, 6, v5);
    v5 = ckbi_crc_fold(v3, 4, v5);
    v5 = ckbi_crc_fold(v4, 2, v5);
    const uint64_t folded = _mm_crc32_u64(ckbi_crc_reduce(v5), (uint64_t)_mm_extract_epi64(v5, 1));
    return (ckbi_crc_parts){folded, {s0, s1, s2}};
}

/* A block of at least CKBI_CRC_STREAMS_WORDS words, at most CKBI_CRC_BLOCK_BYTES. */
CKBI_CRC_INLINE uint32_t ckbi_crc_block(uint32_t state, const uint8_t *p, size_t words)
{
    const size_t steps = words < CKBI_CRC_FOLD_WORDS ? 0 : words / 24;
    const size_t each = (words - 12 * steps) / 3;
    const size_t rest = (words - 12 * steps) % 3;
    const size_t stride = 8 * each;
    const uint8_t *q = p + 96 * steps;
    const uint8_t *const end = q + stride;
    ckbi_crc_parts s = {0, {state, 0, 0}};
    __m128i sum = _mm_setzero_si128();
    if (steps > 0) {
        const uint32_t shift = ckbi_crc_shift(3 * each + rest);
        s = ckbi_crc_fuse(state, p, steps, stride);
        sum = ckbi_crc_product(s.folded, shift);
        q += 32 * (steps - 1);
    }
    for (; q != end; q += 8) {
        s.stream[0] = _mm_crc32_u64(s.stream[0], ckbi_crc_word(q));
        s.stream[1] = _mm_crc32_u64(s.stream[1], ckbi_crc_word(q + stride));
        s.stream[2] = _mm_crc32_u64(s.stream[2], ckbi_crc_word(q + 2 * stride));
    }
    q += 2 * stride;
    for (size_t i = 0; i < rest; i++)
        s.stream[2] = _mm_crc32_u64(s.stream[2], ckbi_crc_word(q + 8 * i));
    sum = _mm_xor_si128(sum, ckbi_crc_product(s.stream[0], ckbi_crc_shift(2 * each + rest)));
    sum = _mm_xor_si128(sum, ckbi_crc_product(s.stream[1], ckbi_crc_shift(each + rest)));
    return (uint32_t)(ckbi_crc_reduce(sum) ^ s.stream[2]);
}

CKBI_CRC_INLINE uint32_t ckbi_crc_run(uint32_t state, const uint8_t *p, size_t bytes)
{
    const size_t words = bytes / 8;
    if (words >= CKBI_CRC_STREAMS_WORDS) {
        state = ckbi_crc_block(state, p, words);
    } else {
        uint64_t wide = state;
        for (size_t i = 0; i < words; i++)
            wide = _mm_crc32_u64(wide, ckbi_crc_word(p + 8 * i));
        state = (uint32_t)wide;
    }
    if (bytes % 8 >= 4) /* a record's checksum leaves out its own four bytes, so this is the usual rest */
        state = _mm_crc32_u32(state, ckbi_get32(p + 8 * words));
    for (size_t i = bytes - bytes % 4; i < bytes; i++)
        state = _mm_crc32_u8(state, p[i]);
    return state;
}

__attribute__((target("sse4.2,pclmul,avx"))) static CKBI_UNUSED uint32_t ckbi_crc_fold_avx(uint32_t state,
                                                                                           const uint8_t *p,
                                                                                           size_t bytes)
{
    return ckbi_crc_run(state, p, bytes);
}

__attribute__((target("sse4.2,pclmul,avx,avx512vl"))) static CKBI_UNUSED uint32_t
ckbi_crc_fold_avx512(uint32_t state, const uint8_t *p, size_t bytes)
{
    return ckbi_crc_run(state, p, bytes);
}

static CKBI_UNUSED uint32_t ckbi_crc_part(uint32_t state, const uint8_t *p, size_t bytes)
{
    if (CKBI_CRC_HAS_FOLD512)
        return ckbi_crc_fold_avx512(state, p, bytes);
    if (CKBI_CRC_HAS_FOLD)
        return ckbi_crc_fold_avx(state, p, bytes);
    return ckbi_crc_table(state, p, bytes);
}

static CKBI_UNUSED uint32_t ckbi_crc_update(uint32_t state, const void *data, size_t bytes)
{
    const uint8_t *p = (const uint8_t *)data;
    for (; bytes > CKBI_CRC_BLOCK_BYTES; bytes -= CKBI_CRC_BLOCK_BYTES) {
        state = ckbi_crc_part(state, p, CKBI_CRC_BLOCK_BYTES);
        p += CKBI_CRC_BLOCK_BYTES;
    }
    return ckbi_crc_part(state, p, bytes);
}

/* By the instruction's name, as an intrinsic would not inline into callers built for any x86-64. */
static CKBI_UNUSED uint32_t ckbi_crc_update8(uint32_t state, uint64_t value)
{
    uint64_t wide = state;
    if (!CKBI_CRC_HAS_WORD)
        return ckbi_crc_table8(state, value);
    __asm__("crc32q %1, %0" : "+r"(wide) : "rm"(value));
    return (uint32_t)wide;
}

#elif defined(CKBI_CRC_ARM)

#include <arm_acle.h>

static CKBI_UNUSED uint32_t ckbi_crc_update8(uint32_t state, uint64_t value)
{
    return __crc32cd(state, value);
}

static CKBI_UNUSED uint32_t ckbi_crc_update(uint32_t state, const void *data, size_t bytes)
{
    const uint8_t *p = (const uint8_t *)data;
    for (; bytes >= 8; bytes -= 8, p += 8)
        state = __crc32cd(state, ckbi_get64(p));
    for (; bytes > 0; bytes--)
        state = __crc32cb(state, *p++);
    return state;
}

#else

static CKBI_UNUSED uint32_t ckbi_crc_update8(uint32_t state, uint64_t value)
{
    return ckbi_crc_table8(state, value);
}

static CKBI_UNUSED uint32_t ckbi_crc_update(uint32_t state, const void *data, size_t bytes)
{
    return ckbi_crc_table(state, (const uint8_t *)data, bytes);
}

#endif
#endif

CKB_DEF uint32_t ckb_crc32c(uint32_t crc, const void *data, size_t bytes)
{
    return ~ckbi_crc_update(~crc, data, bytes);
}

/* ---------------------------------------------------------------------------------------------- >>types
 * State in memory. Everything lies in the caller's memory; `ckbi_arena` carves it.
 *
 * A position in a segment, and room there, is counted in units of 8 bytes, where all that is looked for begins:
 * that takes 32 bits. Bytes are what the medium, a fault and the API take, and lengths of what lies in memory. */

#define CKBI_UNIT 8u
#define CKBI_HEADER_BYTES 64u
#define CKBI_SEGMENT_BYTES_MAX (UINT64_C(1) << 33) /* positions in facts have 30 bits */
#define CKBI_FACT_BYTES 24u
#define CKBI_SUMMARY_ENTRY_BYTES 28u
#define CKBI_CHECKPOINT_ENTRY_BYTES 32u
#define CKBI_CHECKPOINT_ROW_BYTES 24u
#define CKBI_SLOTS 8u              /* chunks of one block that lie side by side in the index */
#define CKBI_DIRTY_MAX 16u         /* full segments of a writer that wait for their sync */
#define CKBI_ROOMS_MAX 16u         /* times that one append makes room, which others may take */
#define CKBI_REFUSED_MAX 4096u     /* erases that may answer NOSPACE before a medium counts as full */
#define CKBI_FACTS_MAX 8u          /* facts in one journal append */
#define CKBI_SNAPSHOT_FACTS 5u     /* of a snapshot, beside those about segments, containers and logs */
#define CKBI_TOMBSTONE 0x80000000u /* top bit of a version */

/* Record types; the FORMAT section describes them. */
enum {
    CKBI_RECORD_START = 1,
    CKBI_RECORD_END = 2,
    CKBI_RECORD_CHUNK = 3,
    CKBI_RECORD_DELETE = 4,
    CKBI_RECORD_SUMMARY = 5,
    CKBI_RECORD_SEAL = 6,
    CKBI_RECORD_FACTS = 7,
    CKBI_RECORD_NEXT = 8,
    CKBI_RECORD_ENTRY = 9,
    CKBI_RECORD_CHECKPOINT = 10,
    CKBI_RECORD_TYPE_LIMIT = 32
};

#define CKBI_RECORD_COMMON 24u
#define CKBI_RECORD_CHUNK_BYTES 40u
#define CKBI_RECORD_ENTRY_BYTES 40u
#define CKBI_RECORD_START_BYTES 56u
#define CKBI_RECORD_LOG_START_BYTES 64u
#define CKBI_RECORD_SEAL_BYTES 32u
#define CKBI_RECORD_NEXT_BYTES 32u
#define CKBI_RECORD_HEADER_MAX 128u

#define CKBI_FLAG_ALIGNED 1u /* the payload begins at the next write unit */
#define CKBI_FLAG_LAST 2u    /* on END: the segment ends here */

/* What a checksum covers, part of its seed. */
#define CKBI_SEED_HEADER 0u
#define CKBI_SEED_PAYLOAD 1u
#define CKBI_SEED_WINDOW 2u /* and up, by window */

#define CKBI_STREAM_CHUNKS 1u
#define CKBI_STREAM_LOG 2u
#define CKBI_STREAM_CHECKPOINT 3u
#define CKBI_STREAM_COMPACTED 4u    /* chunks, moved there by compaction */
#define CKBI_LOG_UNKNOWN UINT32_MAX /* serial: a log's segment, and nobody knows whose */

/* Journal facts. */
enum {
    CKBI_FACT_COUNTERS = 1,     /* b: next epoch, c: next serial */
    CKBI_FACT_SEGMENT = 2,      /* a: segment, b: epoch or 0 for free, c: extent */
    CKBI_FACT_CONTAINER = 3,    /* a: serial, b: id, c: state and flags */
    CKBI_FACT_SNAPSHOT_END = 4, /* everything before it in this segment is the whole state */
    CKBI_FACT_CLEAN = 5,        /* b: next epoch; all that was written so far is durable */
    CKBI_FACT_LOG = 6,          /* a: serial, b and c: name */
    CKBI_FACT_LOG_FIRST = 7,    /* a: serial, b: first index, c: first epoch */
    CKBI_FACT_CHECKPOINT = 8,   /* a: its newest segment, b: epoch of that, c: end and count of entries */
    CKBI_FACT_SCRUB = 9         /* a: segment, b: bytes, c: passes and damage */
};

#define CKBI_EPOCH_RETIRED UINT64_MAX
/* How far a segment is known, beside its epoch: end and last summary in units, and what they mean. */
#define CKBI_EXTENT_PARKED 1u     /* ends here and may be continued here */
#define CKBI_EXTENT_RESUMED 2u    /* durable up to here, continued since */
#define CKBI_EXTENT_FULL 3u       /* ends here for good */
#define CKBI_CONTAINER_MUTATED 1u /* holds records that supersede others */
#define CKBI_CONTAINER_CLOSING 5u /* takes no more appends, is not closed yet; only in memory */

/* What a CHECKPOINT record holds. */
#define CKBI_ROW_COMPACTED 0x80000000u /* beside the units of its records: compaction wrote it */
#define CKBI_CHECKPOINT_ROWS 0u        /* which segments the checkpoint covers */
#define CKBI_CHECKPOINT_ENTRIES 1u     /* slots of the index */

/* What checkpoints say of a segment; only in memory. */
#define CKBI_COVERED 1u       /* the newest one lists it, complete or not */
#define CKBI_NEVER_COVERED 2u /* its damage must be found by every mount */

/* First version of a chunk where records were lost: above whatever the lost ones had, should they return. */
#define CKBI_VERSION_AFTER_LOSS 0x01000000u

typedef struct ckbi_segment {
    uint64_t epoch;
    uint64_t first;    /* of a log: index of its first entry */
    uint32_t log;      /* serial of the log it belongs to, 0: none */
    uint32_t previous; /* of a log or checkpoint: the segment before it, or CKB_NO_SEGMENT */
    uint32_t died_at;  /* supersede clock when the last live record went; 0: not yet */
    uint32_t end;      /* units: where its records end */
    uint32_t summary;  /* units: its last summary, or a log's last entry; 0 for none */
    uint32_t live;     /* units: records that count; all of a log's segment, or nothing */
    uint32_t records;  /* units: chunk records, whether they count or not; not kept up while it is open */
    uint32_t deletes;  /* units: those that count and are deletes */
    uint32_t owner;    /* 1 + number of the writer that has it open, 0 for none */
    uint8_t state;
    uint8_t extent; /* CKBI_EXTENT_: what is durably known of `end` and `summary`, 0 for nothing */
    bool compacted; /* written by compaction: what is not records in it is no gain */
    bool unmovable; /* compaction met damage in it, and leaves it alone */
    uint8_t cover;  /* CKBI_COVERED, CKBI_NEVER_COVERED */
} ckbi_segment;

typedef struct ckbi_container {
    uint64_t id;
    uint64_t chunks;
    uint64_t bytes;
    uint32_t serial; /* never given twice; 0: this place is empty */
    uint32_t state;  /* ckb_container_state */
    uint32_t flags;
    bool swept;        /* deleted, and no chunk of it is left in the index */
    uint8_t spare[23]; /* one cache line each, so that writers of two containers do not share one */
} ckbi_container;

/* A log of the volume. While it is open its first index and newest segment change under its own lock too. */
typedef struct ckbi_log_slot {
    char name[CKB_LOG_NAME_BYTES]; /* zero-padded */
    uint64_t first;                /* index of the first entry that is kept */
    uint64_t first_epoch;          /* its segments of a lower epoch are void */
    uint64_t next;                 /* index of the next entry; not kept up while it is open */
    uint64_t place;                /* of its newest segment */
    uint32_t newest;               /* segment, or CKB_NO_SEGMENT */
    uint32_t serial;               /* 0: there is no log here */
    uint32_t lost_segment;         /* may have held newer entries, or CKB_NO_SEGMENT */
    struct ckb_log *open;
} ckbi_log_slot;

typedef struct ckbi_slot {
    uint64_t block;
    uint32_t serial;
    uint32_t chunk;
    uint32_t segment;
    uint32_t offset; /* units; 0: of a delete that compaction let go, and length is the epoch of its segment */
    uint32_t length; /* payload bytes; of a delete the epoch clock: segments older than it may hold the chunk */
    uint32_t version; /* 0: empty; CKBI_TOMBSTONE set: deleted */
} ckbi_slot;

typedef struct ckbi_partition {
    CKB_MUTEX lock;
    ckbi_slot *slots;
    uint16_t *reach; /* by home bucket: its chunks lie at most so many buckets further */
    uint32_t used;
    uint32_t spare[8]; /* keep two locks out of one cache line */
} ckbi_partition;

typedef struct ckbi_index {
    ckbi_partition *partitions;
    uint32_t partition_count;
    uint32_t buckets;  /* per partition */
    uint32_t limit;    /* chunks per partition */
    uint64_t capacity; /* chunks */
    uint64_t seed;
} ckbi_index;

/* Reads bytes of one segment through a buffer. */
typedef struct ckbi_source {
    struct ckb_volume *volume;
    uint32_t segment;
    uint32_t seed; /* of the segment under the epoch it is read for */
    bool ahead;    /* fill the whole buffer, for sequential reading */
    uint8_t *buffer;
    size_t size;
    uint32_t at; /* what the buffer holds */
    size_t have;
    uint32_t limit; /* how much of the segment may be read */
} ckbi_source;

typedef struct ckbi_record {
    uint32_t offset;
    uint32_t payload; /* offset of the payload */
    uint32_t end;     /* offset of the next record */
    uint32_t payload_bytes;
    uint32_t payload_crc;
    uint32_t durable; /* all of this segment below is durable */
    uint32_t aux;     /* version, kind, or what the type says */
    uint32_t tables;  /* bytes of the window table */
    uint16_t header_bytes;
    uint8_t type;
    uint8_t flags;
    /* chunks and deletes */
    uint32_t serial;
    uint32_t chunk;
    uint64_t block; /* of an entry its index */
    uint64_t term;  /* of an entry */
} ckbi_record;

/* What a START record says of a log's segment. */
typedef struct ckbi_start {
    uint64_t place;
    uint64_t epoch; /* of the predecessor */
    uint64_t first;
    uint32_t serial;
    uint32_t segment, end; /* of the predecessor; CKB_NO_SEGMENT: none */
} ckbi_start;

typedef struct ckbi_fact {
    uint32_t kind;
    uint32_t a;
    uint64_t b;
    uint64_t c;
} ckbi_fact;

/* Where facts go next. */
typedef struct ckbi_journal {
    uint64_t epoch;
    uint32_t end;
    uint32_t segment;
    uint32_t seed;
} ckbi_journal;

/* A checkpoint, by the end of its newest segment; that names the one before it, and so on. */
typedef struct ckbi_checkpoint {
    ckbi_journal at; /* epoch 0: there is none */
    uint64_t entries;
} ckbi_checkpoint;

/* How far scrubbing is, of whoever has `busy`; others may look at what the journal is told. */
typedef struct ckbi_scrub {
    uint64_t bytes;    /* of this pass */
    uint64_t epoch;    /* of the segment that is walked */
    uint64_t expected; /* index of the next entry there, as for a check */
    uint64_t cursor;   /* in the index, while a damaged place is looked for there */
    uint32_t segment;  /* what is walked, or walked next */
    uint32_t at, known;
    uint32_t hole_from, hole_to; /* units: damaged places of the segment lie there; nowhere when equal */
    uint32_t passes, damage;
    uint32_t unsaved; /* segments since the journal was told */
    uint8_t phase;
    bool ended; /* the walk has seen the segment's last record */
    bool busy;
} ckbi_scrub;

/* A walk over the records of one segment; >>walk. */
typedef struct ckbi_walk {
    ckbi_source source;
    uint32_t at;
    uint32_t known; /* all below is durable */
    uint32_t stop;  /* records end here; the segment's end when nobody knows */
    bool whole;     /* durable up to its LAST mark */
    bool verify;    /* check payloads of durable records too */
    bool looked_ahead;
    bool ended;
    bool payload_bad;   /* the record returned is durable and its payload does not verify */
    uint32_t ahead_end; /* end of the last valid record seen by looking ahead */
    uint32_t dropped;   /* how much of a torn tail, as far as it is recognisable */
    ckbi_record record;
    ckbi_record ahead; /* what looking ahead finds */
} ckbi_walk;

/* What a walk over a log's segment brings together. */
typedef struct ckbi_scan {
    uint64_t expected; /* index of the next entry; 0: damage is between */
    uint64_t first;    /* of the log: a purge of entries that did not last may leave a gap below it */
    uint64_t durable;  /* entries up to this index are durable, as entries behind them show */
    uint64_t needed;   /* and of those this segment has all up to this one */
    bool whole;
    bool lost; /* the last entry that the journal told of is not there */
} ckbi_scan;

/* A log's segments in the order of their epochs, in v->pool. */
typedef struct ckbi_chain {
    ckbi_log_slot *slot;
    uint32_t *segments;
    uint32_t count;
    uint64_t place;   /* of the last one that was linked */
    uint64_t durable; /* entries up to this index are durable, as what is behind them shows */
} ckbi_chain;

/* What one mount keeps in mind besides the volume. */
typedef struct ckbi_mounting {
    struct ckb_volume *volume;
    ckbi_container *container; /* of the last record */
    bool snapshot_complete;
    uint64_t switched_to;
    uint32_t next_serial; /* behind the highest that records name */
    uint32_t records;     /* of chunks, in the segment that is read */
    uint32_t count;       /* segments of the checkpoint, in v->pool */
    uint32_t segment;     /* of the checkpoint, looked at */
    uint32_t offset;      /* in it */
} ckbi_mounting;

/* What is used most stands first: small machines reach it with short instructions. */
struct ckb_volume {
    ckbi_segment *segments;
    uint8_t *io_buffer;
    size_t io_bytes;
    ckbi_log_slot *logs;
    ckbi_container *containers;
    uint32_t *by_id, *by_serial;
    uint32_t container_slots;    /* of the two hash tables; a power of two */
    struct ckb_writer **writers; /* of chunks, then of logs, then that of compaction */
    uint32_t writer_places;
    struct ckbi_compactor *compactor; /* null: there is none */
    uint32_t *pool;                   /* prepared segments, oldest first */
    uint32_t failed;
    ckb_probe_info header; /* what the headers of all segments say */
    ckb_medium medium;
    uint32_t id_state; /* checksum state after the volume id */
    ckb_config config;
    ckbi_index index;

    CKB_MUTEX lock;      /* segments, containers, pool, writers; held briefly */
    CKB_MUTEX long_lock; /* journal and everything that prepares or frees segments; held during I/O */
    CKB_MUTEX tidy_lock; /* compaction; taken before all others */

    uint32_t pool_count, free_count, free_cursor, dead_cursor, parked_count;
    uint32_t next_serial;
    uint32_t mount_serial;    /* next_serial at mount: what was created since lost nothing */
    uint32_t supersede_clock; /* counts segments that died */
    uint64_t next_epoch;
    uint64_t mount_epoch; /* next_epoch as the journal had it at mount */
    uint32_t epoch_clock; /* what next_epoch was when a segment was prepared last, for those without its lock */
    uint64_t durable_epoch; /* segments of a lower epoch were durable at a clean unmount */
    ckbi_journal journal;
    ckbi_journal snapshot;  /* while the journal switches: the side that will take over */
    ckbi_journal extension; /* while a side goes on: its next segment */
    bool journal_switch;    /* written by an earlier mount: the next fact goes to the other side */
    bool unsettled;         /* what the mount found was perhaps never synced */
    bool clean;             /* as it was found */
    bool sweep_needed;
    uint32_t sweep_partition, sweep_slot;
    bool keep_deletes;    /* a segment turned up that may hold anything: no delete is let go */
    uint32_t victim;      /* compaction moves its records: nobody frees it, or CKB_NO_SEGMENT */
    uint64_t let_go;      /* deletes whose records compaction let go; their slots are swept */
    bool sweep_pays;      /* and some of their segments were freed since */
    uint64_t moved_bytes; /* by compaction since mount */

    ckbi_scrub scrub;

    ckbi_checkpoint checkpoint;           /* in force */
    ckbi_checkpoint draft;                /* the next one, as far as it is written; of whoever has draft_busy */
    uint32_t draft_partition, draft_slot; /* of the index, the next one to write */
    uint32_t draft_row;                   /* of the segments, likewise */
    bool drafting, draft_busy;
    uint32_t fresh_records; /* appended to segments that are full, since a checkpoint was last begun */

    /* Scratch of whoever has the long lock, or of the mount; here because stacks are small. */
    ckbi_walk walk;
    ckbi_mounting mounting;
    ckbi_start start;
    ckbi_scan scan;
    ckbi_chain chain;
    ckb_probe_info probed[3];            /* of the two sides of the journal, and of the segment looked at */
    uint32_t refused;                    /* erases that answered NOSPACE in this preparation */
    uint32_t freed;                      /* segments that the last reclaim freed */
    ckbi_fact facts[CKBI_FACTS_MAX + 1]; /* the last one is the snapshot's */

    uint64_t unidentified; /* damaged places of which nobody knows what was there */
    uint64_t damage;
    uint64_t dropped_bytes, dropped_tails;
    uint32_t mount_scanned, mount_summaries, mount_covered;
    uint64_t mount_entries;
    ckb_fault last_fault, first_damage;
};

typedef struct ckbi_arena {
    uint8_t *next;
    uint8_t *end; /* null: only count */
    size_t used;
} ckbi_arena;

/* What buffers that go to the medium are aligned to. */
static CKBI_UNUSED size_t ckbi_buffer_align(const ckb_geometry *g)
{
    return ckbi_max32(g->buffer_align, 64);
}

/* Without memory behind it the arena only counts; worst-case alignment is counted. */
static CKBI_UNUSED void *ckbi_arena_take(ckbi_arena *arena, uint64_t wanted, size_t align)
{
    size_t bytes = (size_t)ckbi_min(wanted, SIZE_MAX / 2);
    size_t slack = arena->end ? (size_t)(-(uintptr_t)arena->next & (align - 1)) : align - 1;
    if (bytes > SIZE_MAX / 2 - arena->used - slack ||
        (arena->end && bytes + slack > (size_t)(arena->end - arena->next))) {
        arena->used = SIZE_MAX / 2;
        arena->next = arena->end;
        return NULL;
    }
    arena->used += bytes + slack;
    if (!arena->end)
        return NULL;
    void *taken = arena->next + slack;
    arena->next += slack + bytes;
    return taken;
}

static CKBI_UNUSED uint64_t ckbi_bytes(uint32_t units)
{
    return (uint64_t)units * CKBI_UNIT;
}

static CKBI_UNUSED CKBI_NOINLINE void ckbi_fault_set(ckb_fault *fault, int status, int topic, uint32_t segment,
                                                     uint32_t at, uint64_t expected, uint64_t found)
{
    if (!fault)
        return;
    fault->status = status;
    fault->topic = topic;
    fault->segment = segment;
    fault->offset = ckbi_bytes(at);
    fault->index = 0;
    fault->expected = expected;
    fault->found = found;
}

/* ---------------------------------------------------------------------------------------------- >>geometry */

static CKBI_UNUSED bool ckbi_geometry_valid(const ckb_geometry *g)
{
    return ckbi_is_power_of_two(g->write_unit) && g->write_unit >= 8 && g->write_unit <= 65536 &&
           ckbi_is_power_of_two(g->read_unit) && g->read_unit <= g->write_unit &&
           ckbi_is_power_of_two(g->buffer_align) && g->buffer_align <= 65536 && g->segment_count >= 4 &&
           g->segment_count < CKB_NO_SEGMENT && g->segment_bytes <= CKBI_SEGMENT_BYTES_MAX &&
           (g->segment_bytes & (g->write_unit - 1)) == 0 && g->segment_bytes >= 4 * (uint64_t)g->write_unit &&
           g->segment_bytes >= 512;
}

static CKBI_UNUSED CKBI_ONE_COPY uint32_t ckbi_segment_units(const ckb_geometry *g)
{
    return (uint32_t)(g->segment_bytes / CKBI_UNIT);
}

static CKBI_UNUSED uint32_t ckbi_write_units(const ckb_geometry *g)
{
    return g->write_unit / CKBI_UNIT;
}

/* Where records begin: behind the header, which has its write unit to itself. */
static CKBI_UNUSED uint32_t ckbi_data_start(const ckb_geometry *g)
{
    return ckbi_align_up32(CKBI_HEADER_BYTES, g->write_unit) / CKBI_UNIT;
}

/* Larger segments keep their last unit for the SEAL; in small ones it would cost more than it saves. */
static CKBI_UNUSED bool ckbi_has_seal(const ckb_geometry *g)
{
    return ckbi_segment_units(g) / 64 >= ckbi_write_units(g);
}

/* What SEAL, and NEXT likewise, takes at the end of a segment: a write unit, or several small ones. */
static CKBI_UNUSED uint32_t ckbi_last_bytes(const ckb_geometry *g)
{
    return ckbi_align_up32(CKBI_RECORD_SEAL_BYTES, g->write_unit);
}

static CKBI_UNUSED uint32_t ckbi_seal_at(const ckb_geometry *g)
{
    return ckbi_segment_units(g) - ckbi_last_bytes(g) / CKBI_UNIT;
}

static CKBI_UNUSED uint32_t ckbi_data_limit(const ckb_geometry *g)
{
    return ckbi_has_seal(g) ? ckbi_seal_at(g) : ckbi_segment_units(g);
}

/* What so many bytes take in a segment. */
static CKBI_UNUSED uint32_t ckbi_units(uint32_t bytes)
{
    return bytes / CKBI_UNIT + (bytes % CKBI_UNIT != 0);
}

static CKBI_UNUSED uint32_t ckbi_window_count(uint32_t payload_bytes)
{
    return payload_bytes / CKB_WINDOW_BYTES + (payload_bytes % CKB_WINDOW_BYTES != 0);
}

static CKBI_UNUSED uint32_t ckbi_table_bytes(uint32_t payload_bytes)
{
    if (payload_bytes <= CKB_WINDOW_BYTES)
        return 0;
    return ckbi_align_up32(ckbi_window_count(payload_bytes) * 4, CKBI_UNIT);
}

static CKBI_UNUSED uint32_t ckbi_max_table_bytes(const ckb_geometry *g)
{
    return ckbi_table_bytes((uint32_t)ckbi_min(g->segment_bytes, UINT32_MAX));
}

/* Room that must stay behind the records of a segment: two batch ends, and a summary of so many. */
static CKBI_UNUSED uint32_t ckbi_tail_room(const ckb_geometry *g, uint32_t summary_entries)
{
    uint32_t bytes = 2 * (CKBI_RECORD_COMMON + g->write_unit);
    if (summary_entries > 0)
        bytes += CKBI_RECORD_COMMON + summary_entries * CKBI_SUMMARY_ENTRY_BYTES;
    return ckbi_units(bytes);
}

/* Room a record of a chunk or an entry needs at most, alignment of its payload included. */
static CKBI_UNUSED uint32_t ckbi_record_room(const ckb_geometry *g, uint32_t payload_bytes, uint32_t tables,
                                             bool aligned)
{
    return (CKBI_RECORD_CHUNK_BYTES + tables + (aligned ? g->write_unit : 0)) / CKBI_UNIT +
           ckbi_units(payload_bytes);
}

/* Most bytes in one record of a chunk or an entry, beside so many at the start of a segment. */
static CKBI_UNUSED uint32_t ckbi_room_max(const ckb_geometry *g, uint32_t start_bytes, uint32_t summary_entries)
{
    uint32_t overhead = ckbi_data_start(g) + start_bytes / CKBI_UNIT + ckbi_tail_room(g, summary_entries) +
                        ckbi_record_room(g, CKBI_UNIT, 0, true);
    uint32_t limit = ckbi_data_limit(g);
    return limit > overhead ? (uint32_t)ckbi_min(ckbi_bytes(limit - overhead), UINT32_MAX - CKBI_UNIT) : 0;
}

/* ---------------------------------------------------------------------------------------------- >>record
 * One framing for every byte on the medium. A segment is tiled by records; a batch ends with an END
 * record whose payload is the padding to the next write unit. */

static CKBI_UNUSED uint32_t ckbi_segment_seed(const ckb_volume *v, uint32_t segment, uint64_t epoch)
{
    return ckbi_crc_update8(ckbi_crc_update8(v->id_state, epoch), segment);
}

static CKBI_UNUSED uint32_t ckbi_seed(uint32_t segment_seed, uint32_t offset, uint32_t purpose)
{
    return ckbi_crc_update8(segment_seed, offset | (uint64_t)purpose << 32);
}

/* Writes the common fields; the caller fills what follows them and then seals. */
static CKBI_UNUSED void ckbi_record_begin(uint8_t *header, uint8_t type, uint8_t flags, uint16_t header_bytes,
                                          uint32_t payload_bytes, uint32_t durable, uint32_t aux)
{
    header[4] = type;
    header[5] = flags;
    ckbi_put16(header + 6, header_bytes);
    ckbi_put32(header + 8, payload_bytes);
    ckbi_put32(header + 12, 0);
    ckbi_put32(header + 16, durable);
    ckbi_put32(header + 20, aux);
}

static CKBI_UNUSED void ckbi_record_seal(uint8_t *header, uint32_t segment_seed, uint32_t offset)
{
    uint32_t state = ckbi_seed(segment_seed, offset, CKBI_SEED_HEADER);
    ckbi_put32(header, ckbi_crc_update(state, header + 4, (size_t)ckbi_get16(header + 6) - 4));
}

/* Closes a batch with so many bytes: an END record and the padding. */
static CKBI_UNUSED void ckbi_end_frame(uint8_t *at, uint32_t bytes, uint8_t flags, uint32_t durable,
                                       uint32_t segment_seed, uint32_t offset)
{
    ckbi_fill(at, 0, bytes);
    ckbi_record_begin(at, CKBI_RECORD_END, flags, CKBI_RECORD_COMMON, bytes - CKBI_RECORD_COMMON, durable, 0);
    ckbi_record_seal(at, segment_seed, offset);
}

static CKBI_UNUSED uint16_t ckbi_record_min_header(uint8_t type)
{
    switch (type) {
    case CKBI_RECORD_START:
        return CKBI_RECORD_START_BYTES;
    case CKBI_RECORD_CHUNK:
    case CKBI_RECORD_DELETE:
    case CKBI_RECORD_ENTRY:
        return CKBI_RECORD_CHUNK_BYTES;
    case CKBI_RECORD_SEAL:
    case CKBI_RECORD_NEXT:
        return CKBI_RECORD_SEAL_BYTES;
    default:
        return CKBI_RECORD_COMMON;
    }
}

/* Writes a START and returns its length. `start` is null in a segment of chunks: those stand alone, with no
 * place and no predecessor. */
static CKBI_UNUSED uint16_t ckbi_start_encode(uint8_t *at, uint32_t seed, uint32_t offset, uint32_t stream,
                                              const ckbi_start *start)
{
    uint16_t bytes = start ? CKBI_RECORD_LOG_START_BYTES : CKBI_RECORD_START_BYTES;
    ckbi_fill(at, 0, bytes);
    ckbi_record_begin(at, CKBI_RECORD_START, 0, bytes, 0, 0, stream);
    ckbi_put32(at + 40, start ? start->segment : CKB_NO_SEGMENT);
    if (start) {
        ckbi_put64(at + 24, start->serial);
        ckbi_put64(at + 32, start->place);
        ckbi_put32(at + 44, start->end);
        ckbi_put64(at + 48, start->epoch);
        ckbi_put64(at + 56, start->first);
    }
    ckbi_record_seal(at, seed, offset);
    return bytes;
}

/* Cheap look at the fields that a checksum will confirm: rejects zeros, 0xFF and almost all noise. */
static CKBI_UNUSED bool ckbi_record_plausible(const uint8_t *header)
{
    uint16_t header_bytes = ckbi_get16(header + 6);
    return header[4] != 0 && header[4] < CKBI_RECORD_TYPE_LIMIT && header_bytes % CKBI_UNIT == 0 &&
           header_bytes >= ckbi_record_min_header(header[4]) && header_bytes <= CKBI_RECORD_HEADER_MAX;
}

/* Decodes a header whose `header_bytes` are all in memory. False: not a valid record of this place. */
static CKBI_UNUSED CKBI_NOINLINE bool ckbi_record_decode(const ckbi_source *s, uint32_t offset,
                                                         const uint8_t *header, ckbi_record *record)
{
    const ckb_geometry *g = &s->volume->medium.geometry;
    uint16_t header_bytes = ckbi_get16(header + 6);
    uint32_t state = ckbi_seed(s->seed, offset, CKBI_SEED_HEADER);
    if (ckbi_crc_update(state, header + 4, (size_t)header_bytes - 4) != ckbi_get32(header))
        return false;
    record->offset = offset;
    record->type = header[4];
    record->flags = header[5];
    record->header_bytes = header_bytes;
    record->payload_bytes = ckbi_get32(header + 8);
    record->payload_crc = ckbi_get32(header + 12);
    record->durable = ckbi_get32(header + 16);
    record->aux = ckbi_get32(header + 20);
    record->tables = 0;
    record->serial = 0;
    record->chunk = 0;
    record->block = 0;
    record->term = 0;
    if (record->type == CKBI_RECORD_ENTRY) {
        record->block = ckbi_get64(header + 24);
        record->term = ckbi_get64(header + 32);
    }
    if (record->type == CKBI_RECORD_CHUNK || record->type == CKBI_RECORD_DELETE) {
        record->serial = ckbi_get32(header + 24);
        record->chunk = ckbi_get32(header + 28);
        record->block = ckbi_get64(header + 32);
    }
    if (record->type == CKBI_RECORD_CHUNK)
        record->tables = ckbi_table_bytes(record->payload_bytes);
    record->payload = offset + (header_bytes + record->tables) / CKBI_UNIT;
    if (record->flags & CKBI_FLAG_ALIGNED)
        record->payload = ckbi_align_up32(record->payload, ckbi_write_units(g));
    record->end = record->payload + ckbi_units(record->payload_bytes);
    if (record->serial != 0 && (record->aux == 0 || record->aux >= CKBI_TOMBSTONE))
        return false;
    return record->end <= ckbi_segment_units(g) && record->durable <= offset;
}

/* ---------------------------------------------------------------------------------------------- >>source
 * Bytes of a segment, from the medium or from the buffers of the writer that has it open. */

static int ckbi_load(ckb_volume *v, uint32_t segment, uint32_t at, uint8_t *bytes, size_t length);

static CKBI_UNUSED void ckbi_source_init(ckbi_source *s, ckb_volume *v, uint8_t *buffer, size_t size)
{
    s->volume = v;
    s->buffer = buffer;
    s->size = (size_t)ckbi_min(size, v->medium.geometry.segment_bytes);
}

static CKBI_UNUSED CKBI_NOINLINE void ckbi_source_open(ckbi_source *s, uint32_t segment, uint64_t epoch)
{
    s->segment = segment;
    s->seed = ckbi_segment_seed(s->volume, segment, epoch);
    s->ahead = false;
    s->at = 0;
    s->have = 0;
    s->limit = ckbi_segment_units(&s->volume->medium.geometry);
}

/* What reads of the medium begin and end on, where positions allow. */
static CKBI_UNUSED uint32_t ckbi_source_unit(const ckbi_source *s)
{
    return ckbi_units(s->volume->medium.geometry.read_unit);
}

/* Most bytes that one ckbi_source_get takes, wherever it begins. */
static CKBI_UNUSED uint32_t ckbi_source_step(const ckbi_source *s)
{
    return (uint32_t)ckbi_min(s->size, UINT32_MAX / 2) / CKBI_UNIT * CKBI_UNIT -
           ckbi_source_unit(s) * CKBI_UNIT;
}

/* Fills the buffer from `at` on, with `units` or more. */
static CKBI_UNUSED int ckbi_source_fill(ckbi_source *s, uint32_t at, uint32_t units)
{
    uint32_t unit = ckbi_source_unit(s);
    uint32_t from = ckbi_align_down32(at, unit);
    uint32_t to = ckbi_align_up32(at + units, unit);
    if (s->ahead)
        to = ckbi_min32(from + ckbi_align_down32((uint32_t)(s->size / CKBI_UNIT), unit),
                        ckbi_max32(to, ckbi_align_down32(s->limit, unit)));
    size_t bytes = (size_t)(to - from) * CKBI_UNIT;
    CKB_ASSERT(bytes <= s->size);
    s->have = 0;
    int status = ckbi_load(s->volume, s->segment, from, s->buffer, bytes);
    if (status != CKB_OK)
        return status;
    s->at = from;
    s->have = (size_t)(ckbi_min32(to, ckbi_max32(s->limit, at + units)) - from) * CKBI_UNIT;
    return CKB_OK;
}

/* Bytes that the buffer holds from `at` on. */
static CKBI_UNUSED size_t ckbi_source_left(const ckbi_source *s, uint32_t at)
{
    uint32_t behind = at - s->at; /* wraps round where `at` is before it */
    return behind < s->have / CKBI_UNIT ? s->have - (size_t)behind * CKBI_UNIT : 0;
}

/* Points `*bytes` at `length` bytes from `at`, at most ckbi_source_step of them. */
static CKBI_UNUSED int ckbi_source_get(ckbi_source *s, uint32_t at, uint32_t length, const uint8_t **bytes)
{
    int status = CKB_OK;
    if (length > ckbi_source_left(s, at))
        status = ckbi_source_fill(s, at, ckbi_units(length));
    if (status == CKB_OK)
        *bytes = s->buffer + (size_t)(at - s->at) * CKBI_UNIT;
    return status;
}

/* Continues a checksum over `length` bytes from `at`, and copies them to `out` unless that is null. */
static CKBI_UNUSED int ckbi_source_take(ckbi_source *s, uint32_t at, uint32_t length, uint8_t *out,
                                        uint32_t *state)
{
    uint32_t step_max = ckbi_source_step(s);
    while (length > 0) {
        const uint8_t *bytes;
        uint32_t step = ckbi_min32(length, step_max);
        size_t left = ckbi_source_left(s, at);
        if (left > 0 && left < step)
            step = (uint32_t)left;
        int status = ckbi_source_get(s, at, step, &bytes);
        if (status != CKB_OK)
            return status;
        *state = ckbi_crc_update(*state, bytes, step);
        if (out) {
            ckbi_copy(out, bytes, step);
            out += step;
        }
        at += step / CKBI_UNIT;
        length -= step;
    }
    return CKB_OK;
}

/* Reads and checks a record's header. CKB_CORRUPT: nothing valid here. */
static CKBI_UNUSED int ckbi_source_record(ckbi_source *s, uint32_t offset, ckbi_record *record)
{
    const uint8_t *header;
    const ckb_geometry *g = &s->volume->medium.geometry;
    uint32_t bytes = CKBI_RECORD_COMMON;
    /* First what tells how long it is, then all of it. */
    for (int look = 0; look < 2; look++) {
        if (offset + bytes / CKBI_UNIT > ckbi_segment_units(g))
            return CKB_CORRUPT;
        int status = ckbi_source_get(s, offset, bytes, &header);
        if (status != CKB_OK)
            return status;
        if (!ckbi_record_plausible(header))
            return CKB_CORRUPT;
        bytes = ckbi_get16(header + 6);
    }
    return ckbi_record_decode(s, offset, header, record) ? CKB_OK : CKB_CORRUPT;
}

#define CKBI_TABLE_STEP 4u /* checksums taken from a window table at once */

/* Checks the windows of a large payload against its table, which verifies. */
static CKBI_UNUSED int ckbi_source_verify_windows(ckbi_source *s, const ckbi_record *r)
{
    uint8_t table[CKBI_TABLE_STEP * 4];
    uint32_t windows = ckbi_window_count(r->payload_bytes);
    for (uint32_t w = 0; w < windows; w++) {
        if (w % CKBI_TABLE_STEP == 0) {
            const uint8_t *bytes;
            uint32_t length = ckbi_min32(sizeof(table), r->tables - w * 4);
            bool ahead = s->ahead;
            s->ahead = false;
            int status = ckbi_source_get(s, r->offset + (r->header_bytes + w * 4) / CKBI_UNIT, length, &bytes);
            s->ahead = ahead;
            if (status != CKB_OK)
                return status;
            ckbi_copy(table, bytes, length);
        }
        uint32_t begin = w * CKB_WINDOW_BYTES;
        uint32_t length = ckbi_min32(CKB_WINDOW_BYTES, r->payload_bytes - begin);
        uint32_t state = ckbi_seed(s->seed, r->offset, CKBI_SEED_WINDOW + w);
        int status = ckbi_source_take(s, r->payload + begin / CKBI_UNIT, length, NULL, &state);
        if (status != CKB_OK)
            return status;
        if (state != ckbi_get32(table + (size_t)(w % CKBI_TABLE_STEP) * 4))
            return CKB_CORRUPT;
    }
    return CKB_OK;
}

/* Checks a record's payload. CKB_CORRUPT: it does not verify. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_source_verify(ckbi_source *s, const ckbi_record *r)
{
    if (r->type == CKBI_RECORD_END || r->payload_bytes == 0)
        return CKB_OK;
    uint32_t state = ckbi_seed(s->seed, r->offset, CKBI_SEED_PAYLOAD);
    uint32_t from = r->tables > 0 ? r->offset + r->header_bytes / CKBI_UNIT : r->payload;
    int status = ckbi_source_take(s, from, r->tables > 0 ? r->tables : r->payload_bytes, NULL, &state);
    if (status != CKB_OK)
        return status;
    if (state != r->payload_crc)
        return CKB_CORRUPT;
    return CKBI_HAS_CHUNKS && r->tables > 0 ? ckbi_source_verify_windows(s, r) : CKB_OK;
}

/* ---------------------------------------------------------------------------------------------- >>walk
 * Walks the records of one segment and tells a torn tail from corruption: damage below a durable mark
 * is corruption, damage above it ends the segment. Marks stand in the records themselves, in the
 * journal (`known`), and are looked for behind the damage before a tail is called torn. */

static CKBI_UNUSED void ckbi_walk_open(ckbi_walk *w, uint32_t segment, uint64_t epoch)
{
    const ckb_volume *v = w->source.volume;
    ckbi_source_open(&w->source, segment, epoch);
    w->source.ahead = true;
    w->at = ckbi_data_start(&v->medium.geometry);
    w->known = 0;
    w->stop = ckbi_segment_units(&v->medium.geometry);
    w->whole = false;
    w->verify = false;
    w->looked_ahead = false;
    w->ended = false;
    w->payload_bad = false;
    w->ahead_end = 0;
    w->dropped = 0;
}

/* Looks for valid records behind `from`: at every unit of 8 near it, at every write unit further on
 * (each batch begins on one). `*first` is the first one found, or the segment's end. */
static CKBI_UNUSED int ckbi_walk_search(ckbi_walk *w, uint32_t from, bool all, uint32_t *first)
{
    const ckb_geometry *g = &w->source.volume->medium.geometry;
    uint32_t fine_until = from + 4 * CKB_WINDOW_BYTES / CKBI_UNIT;
    uint32_t end = ckbi_segment_units(g);
    ckbi_record *record = &w->ahead;
    *first = end;
    for (uint32_t at = from; at < end;) {
        int status = ckbi_source_record(&w->source, at, record);
        if (status == CKB_OK) {
            *first = ckbi_min32(*first, at);
            if (!all)
                return CKB_OK;
            w->known = ckbi_max32(w->known, record->durable);
            if (record->type != CKBI_RECORD_SEAL && record->type != CKBI_RECORD_NEXT)
                w->ahead_end = ckbi_max32(w->ahead_end, record->end);
        } else if (status != CKB_CORRUPT) {
            return status;
        }
        at = at < fine_until ? at + 1 : ckbi_align_up32(at + 1, ckbi_write_units(g));
    }
    return CKB_OK;
}

/* Is the damage at `at` below a durable mark? Looks ahead once. */
static CKBI_UNUSED int ckbi_walk_is_durable(ckbi_walk *w, uint32_t at, bool *durable)
{
    uint32_t first;
    *durable = w->whole || w->known > at;
    if (*durable || w->looked_ahead)
        return CKB_OK;
    w->looked_ahead = true;
    int status = ckbi_walk_search(w, at + 1, true, &first);
    *durable = w->known > at;
    return status;
}

static CKBI_UNUSED int ckbi_walk_torn(ckbi_walk *w, uint32_t at)
{
    w->ended = true;
    w->stop = at;
    w->dropped = w->ahead_end > at ? w->ahead_end - at : 0;
    return CKB_END;
}

/* Nothing valid at `at`: a proper end, a torn tail, or corruption. After CKB_CORRUPT the walk stands at
 * the next valid record, `record.offset` and `record.end` bound the damage. */
static CKBI_UNUSED int ckbi_walk_damage(ckbi_walk *w)
{
    bool durable;
    int status = ckbi_walk_is_durable(w, w->at, &durable);
    if (status != CKB_OK)
        return status;
    if (!durable)
        return ckbi_walk_torn(w, w->at);
    uint32_t next;
    status = ckbi_walk_search(w, w->at + 1, false, &next);
    if (status != CKB_OK)
        return status;
    w->record.offset = w->at;
    w->record.end = ckbi_min32(next, w->stop);
    w->at = w->record.end;
    return CKB_CORRUPT;
}

/* CKB_OK: `record` is the next one. CKB_END: no more; `stop` is where records end. CKB_CORRUPT: see
 * above; call again to go on. CKB_IO. */
static CKBI_UNUSED int ckbi_walk_next(ckbi_walk *w)
{
    w->payload_bad = false;
    if (w->ended || w->at >= w->stop) {
        w->stop = ckbi_min32(w->at, w->stop);
        return CKB_END;
    }
    int status = ckbi_source_record(&w->source, w->at, &w->record);
    if (status == CKB_CORRUPT || (status == CKB_OK && w->record.type == CKBI_RECORD_SEAL))
        return ckbi_walk_damage(w);
    if (status != CKB_OK)
        return status;
    const ckbi_record *r = &w->record;
    w->known = ckbi_max32(w->known, r->durable);
    if (w->verify || (!w->whole && r->end > w->known)) {
        status = ckbi_source_verify(&w->source, r);
        if (status == CKB_CORRUPT) {
            status = ckbi_walk_is_durable(w, r->offset, &w->payload_bad);
            if (status == CKB_OK && !w->payload_bad)
                return ckbi_walk_torn(w, r->offset);
        }
        if (status != CKB_OK)
            return status;
    }
    w->at = r->end;
    w->ended = r->type == CKBI_RECORD_END && (r->flags & CKBI_FLAG_LAST);
    return CKB_OK;
}

/* ---------------------------------------------------------------------------------------------- >>index
 * Chunk id -> place, in memory only. The table is split into partitions with a lock each; a partition
 * is an array of buckets of 8 slots. The chunks 8n..8n+7 of a block share a home bucket and have a lane in
 * it each, so a sequential writer misses the cache once for eight chunks. A chunk whose slot is taken goes to
 * the same lane of the next bucket that has it free; `reach` bounds the search, so nothing must move when
 * a slot is cleared, and a walk sees each chunk once. Lanes are turned by the hash, so that blocks of one
 * chunk fill all of them. */

/* `index` may be null to count only. */
static CKBI_UNUSED void ckbi_index_layout(ckbi_index *index, uint64_t capacity, ckbi_arena *arena)
{
    capacity = ckbi_min(capacity, UINT64_C(1) << 40); /* more than memory holds anyway */
    uint64_t count = ckbi_min(ckbi_max(capacity / CKBI_PARTITION_MIN, 1), CKBI_PARTITION_MAX);
    /* A load of at most 3/4, and room for partitions that get more than their share. */
    uint64_t share = capacity / count + 1;
    uint64_t buckets = (share + share / 3 + CKBI_SLOTS) / CKBI_SLOTS + 1;
    ckbi_partition *partitions = (ckbi_partition *)ckbi_arena_take(arena, count * sizeof(ckbi_partition), 64);
    for (uint32_t p = 0; p < count; p++) {
        /* Places in a partition have 32 bits. */
        bool possible = buckets <= UINT32_MAX / CKBI_SLOTS;
        void *slots =
            ckbi_arena_take(arena, possible ? buckets * CKBI_SLOTS * sizeof(ckbi_slot) : UINT64_MAX, 64);
        void *reach = ckbi_arena_take(arena, buckets * sizeof(uint16_t), 8);
        if (partitions) {
            partitions[p].slots = (ckbi_slot *)slots;
            partitions[p].reach = (uint16_t *)reach;
        }
    }
    if (!index)
        return;
    index->partitions = partitions;
    index->partition_count = (uint32_t)count;
    index->buckets = (uint32_t)buckets;
    index->capacity = capacity;
    index->limit = (uint32_t)ckbi_min(count == 1 ? capacity : share + share / 8, buckets * CKBI_SLOTS);
}

static CKBI_UNUSED void ckbi_index_clear(ckbi_index *index)
{
    for (uint32_t p = 0; p < index->partition_count; p++) {
        ckbi_partition *partition = &index->partitions[p];
        partition->used = 0;
        ckbi_fill(partition->slots, 0, (size_t)index->buckets * CKBI_SLOTS * sizeof(ckbi_slot));
        ckbi_fill(partition->reach, 0, (size_t)index->buckets * sizeof(uint16_t));
    }
}

/* Chunks that are in the index, deleted ones included. */
static CKBI_UNUSED uint64_t ckbi_index_used(const ckbi_index *index)
{
    uint64_t used = 0;
    for (uint32_t p = 0; p < index->partition_count; p++) {
        CKB_MUTEX_LOCK(&index->partitions[p].lock);
        used += index->partitions[p].used;
        CKB_MUTEX_UNLOCK(&index->partitions[p].lock);
    }
    return used;
}

/* Chunks of one group of eight get the same value. Multiply-and-fold rounds in the manner of
 * splitmix64 (Steele, Lea, Flood 2014); seeded, so that ids cannot be chosen to collide. */
static CKBI_UNUSED uint64_t ckbi_index_hash(const ckbi_index *index, uint32_t serial, uint64_t block,
                                            uint32_t chunk)
{
    uint64_t h = (block ^ index->seed) * UINT64_C(0x9E3779B97F4A7C15);
    h ^= h >> 32;
    h = (h ^ ((uint64_t)serial << 32 | chunk / CKBI_SLOTS)) * UINT64_C(0xBF58476D1CE4E5B9);
    h ^= h >> 29;
    h *= UINT64_C(0x94D049BB133111EB);
    return h ^ h >> 32;
}

static CKBI_UNUSED ckbi_partition *ckbi_index_partition(const ckbi_index *index, uint64_t hash)
{
    return &index->partitions[((hash >> 32) * index->partition_count) >> 32];
}

static CKBI_UNUSED bool ckbi_slot_is(const ckbi_slot *slot, uint32_t serial, uint64_t block, uint32_t chunk)
{
    return slot->version != 0 && slot->chunk == chunk && slot->block == block && slot->serial == serial;
}

static CKBI_UNUSED uint32_t ckbi_index_home(const ckbi_index *index, uint64_t hash)
{
    return (uint32_t)(((hash & UINT32_MAX) * index->buckets) >> 32);
}

/* The slot of a chunk's lane in the nth bucket from its home. */
static CKBI_UNUSED ckbi_slot *ckbi_index_slot(const ckbi_index *index, const ckbi_partition *partition,
                                              uint64_t hash, uint32_t chunk, uint32_t n)
{
    uint32_t bucket = ckbi_index_home(index, hash) + n;
    uint32_t lane = (uint32_t)(chunk + (hash >> 40)) % CKBI_SLOTS;
    if (bucket >= index->buckets)
        bucket -= index->buckets;
    return &partition->slots[(size_t)bucket * CKBI_SLOTS + lane];
}

/* The slot of a chunk, or null. The partition is locked. */
static CKBI_UNUSED ckbi_slot *ckbi_index_find(const ckbi_index *index, const ckbi_partition *partition,
                                              uint64_t hash, uint32_t serial, uint64_t block, uint32_t chunk)
{
    uint32_t reach = partition->reach[ckbi_index_home(index, hash)];
    for (uint32_t n = 0; n <= reach; n++) {
        ckbi_slot *slot = ckbi_index_slot(index, partition, hash, chunk, n);
        if (ckbi_slot_is(slot, serial, block, chunk))
            return slot;
    }
    return NULL;
}

/* Begins to fetch the bucket of a chunk. A writer does so before it copies the payload, and finds the
 * slot in its cache afterwards; the first chunk of a group brings the slots of its neighbours along. */
static CKBI_UNUSED void ckbi_index_prefetch(const ckbi_index *index, uint64_t hash, uint32_t chunk)
{
    const ckbi_partition *partition = ckbi_index_partition(index, hash);
    const ckbi_slot *bucket = &partition->slots[(size_t)ckbi_index_home(index, hash) * CKBI_SLOTS];
    CKBI_PREFETCH(ckbi_index_slot(index, partition, hash, chunk, 0));
    if (chunk % CKBI_SLOTS == 0)
        for (uint32_t i = 0; i < CKBI_SLOTS; i += 2)
            CKBI_PREFETCH(&bucket[i]);
}

/* A free slot for a chunk that is not there, filled with its id; null when there is none. Locked. */
static CKBI_UNUSED ckbi_slot *ckbi_index_add(const ckbi_index *index, ckbi_partition *partition, uint64_t hash,
                                             uint32_t serial, uint64_t block, uint32_t chunk)
{
    uint16_t *reach = &partition->reach[ckbi_index_home(index, hash)];
    uint32_t reach_max = ckbi_min32(index->buckets - 1, UINT16_MAX);
    if (partition->used >= index->limit)
        return NULL;
    for (uint32_t n = 0; n <= reach_max; n++) {
        ckbi_slot *slot = ckbi_index_slot(index, partition, hash, chunk, n);
        if (slot->version != 0)
            continue;
        if (*reach < n)
            *reach = (uint16_t)n;
        slot->serial = serial;
        slot->block = block;
        slot->chunk = chunk;
        partition->used++;
        return slot;
    }
    return NULL;
}

static CKBI_UNUSED void ckbi_index_remove(ckbi_partition *partition, ckbi_slot *slot)
{
    slot->version = 0;
    partition->used--;
}

/* ---------------------------------------------------------------------------------------------- >>journal
 * Rare facts: which segment belongs to the volume under which epoch, which containers there are. Kept on two
 * sides alternately: when one is full the whole state goes to the other as a snapshot of the same facts, and a
 * NEXT record in the last unit of the old one says so. Side 0 is segments 0, 2, 4 and so on, side 1 is 1, 3, 5. */

static const uint8_t ckbi_magic[8] = {'C', 'H', 'U', 'N', 'K', 'B', '\r', '\n'};

static CKBI_UNUSED void ckbi_header_encode(uint8_t *h, const ckb_probe_info *info)
{
    ckbi_copy(h, ckbi_magic, sizeof(ckbi_magic));
    ckbi_put16(h + 8, info->format_major);
    ckbi_put16(h + 10, info->format_minor);
    ckbi_put32(h + 12, info->write_unit);
    ckbi_copy(h + 16, info->volume_id, 16);
    ckbi_put64(h + 32, info->epoch);
    ckbi_put64(h + 40, info->segment_bytes);
    ckbi_put32(h + 48, info->segment);
    ckbi_put32(h + 52, info->segment_count);
    ckbi_put32(h + 56, info->journal_span);
    ckbi_put32(h + 60, ckb_crc32c(0, h, 60));
}

CKB_DEF int ckb_probe(const void *bytes, ckb_probe_info *info)
{
    const uint8_t *h = (const uint8_t *)bytes;
    ckbi_fill(info, 0, sizeof(*info));
    if (ckbi_compare(h, ckbi_magic, sizeof(ckbi_magic)) != 0)
        return CKB_NOTFOUND;
    if (ckbi_get32(h + 60) != ckb_crc32c(0, h, 60))
        return CKB_CORRUPT;
    info->format_major = ckbi_get16(h + 8);
    info->format_minor = ckbi_get16(h + 10);
    if (info->format_major != CKB_FORMAT_MAJOR)
        return CKB_VERSION;
    info->write_unit = ckbi_get32(h + 12);
    ckbi_copy(info->volume_id, h + 16, 16);
    info->epoch = ckbi_get64(h + 32);
    info->segment_bytes = ckbi_get64(h + 40);
    info->segment = ckbi_get32(h + 48);
    info->segment_count = ckbi_get32(h + 52);
    info->journal_span = ckbi_get32(h + 56);
    return CKB_OK;
}

/* Reads the header of a segment. CKB_NOTFOUND: there is none; CKB_CORRUPT: a damaged one; CKB_VERSION. */
static CKBI_UNUSED int ckbi_header_read(ckbi_source *source, uint32_t segment, ckb_probe_info *info)
{
    const uint8_t *h;
    ckbi_fill(info, 0, sizeof(*info));
    ckbi_source_open(source, segment, 0);
    int status = ckbi_source_get(source, 0, CKBI_HEADER_BYTES, &h);
    if (status != CKB_OK)
        return status == CKB_CORRUPT ? CKB_NOTFOUND : status;
    status = ckb_probe(h, info);
    return status == CKB_OK && info->segment != segment ? CKB_CORRUPT : status;
}

static CKBI_UNUSED bool ckbi_header_is_ours(const ckb_volume *v, const ckb_probe_info *info)
{
    return ckbi_compare(info->volume_id, v->header.volume_id, sizeof(info->volume_id)) == 0;
}

/* Reads a record of a segment into v->walk.record; v->walk.source stands at it. For whoever has the long lock, or
 * the mount. */
static CKBI_UNUSED int ckbi_read_record(ckb_volume *v, uint32_t segment, uint64_t epoch, uint32_t at)
{
    ckbi_source_open(&v->walk.source, segment, epoch);
    return ckbi_source_record(&v->walk.source, at, &v->walk.record);
}

/* A failed write or sync is final for this mount: nothing is retried and trusted. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_fail(ckb_volume *v, int status, uint32_t segment, uint32_t at)
{
    ckb_fault *fault = &v->last_fault;
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_fill(fault, 0, sizeof(*fault));
    fault->status = status;
    fault->topic = CKB_TOPIC_MEDIUM;
    fault->segment = segment;
    fault->offset = ckbi_bytes(at);
    CKB_MUTEX_UNLOCK(&v->lock);
    CKBI_STORE(&v->failed, 1);
    return CKB_IO; /* whatever the medium said: no other status may promise that nothing changed */
}

static CKBI_UNUSED void ckbi_damage(ckb_volume *v, int topic, uint32_t segment, uint32_t at, uint64_t expected,
                                    uint64_t found)
{
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_fault_set(&v->last_fault, CKB_CORRUPT, topic, segment, at, expected, found);
    if (v->damage++ == 0)
        v->first_damage = v->last_fault;
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* The mount cut off what was never made durable. */
static CKBI_UNUSED CKBI_NOINLINE void ckbi_tail_dropped(ckb_volume *v, uint32_t segment, uint32_t at,
                                                        uint32_t units)
{
    v->dropped_bytes += ckbi_bytes(units);
    v->dropped_tails++;
    ckbi_fault_set(&v->last_fault, CKB_OK, CKB_TOPIC_TAIL, segment, at, 0, ckbi_bytes(units));
}

/* The first segment that is not the journal's. */
static CKBI_UNUSED uint32_t ckbi_first_segment(const ckb_volume *v)
{
    return 2 * v->header.journal_span;
}

static CKBI_UNUSED int ckbi_writable(const ckb_volume *v)
{
    if (v->config.read_only)
        return CKB_READONLY;
    return CKBI_LOAD(&v->failed) ? CKB_FAILED : CKB_OK;
}

static CKBI_UNUSED uint64_t ckbi_extent(uint32_t kind, uint32_t end, uint32_t summary)
{
    return end | (uint64_t)summary << 30 | (uint64_t)kind << 60;
}

/* Facts that one batch of so many bytes can hold. */
static CKBI_UNUSED uint32_t ckbi_facts_room(size_t bytes)
{
    return bytes < 2 * CKBI_RECORD_COMMON ? 0 : (uint32_t)((bytes - 2 * CKBI_RECORD_COMMON) / CKBI_FACT_BYTES);
}

static CKBI_UNUSED void ckbi_fact_put(uint8_t *bytes, const ckbi_fact *fact)
{
    ckbi_put32(bytes, fact->kind);
    ckbi_put32(bytes + 4, fact->a);
    ckbi_put64(bytes + 8, fact->b);
    ckbi_put64(bytes + 16, fact->c);
}

/* Makes the end of one batch, a record and its END, of a payload that stands in `b` behind the room for
 * the record's header; returns its length. */
static CKBI_UNUSED uint32_t ckbi_batch_frame(uint8_t *b, uint8_t type, uint32_t aux, uint32_t payload,
                                             uint32_t seed, uint32_t offset, uint32_t durable, uint32_t unit)
{
    uint32_t used = CKBI_RECORD_COMMON + payload;
    uint32_t begins = (uint32_t)(ckbi_bytes(offset) % unit); /* behind another record of the same batch */
    uint32_t batch = ckbi_align_up32(begins + used + CKBI_RECORD_COMMON, unit) - begins;
    ckbi_record_begin(b, type, 0, CKBI_RECORD_COMMON, payload, durable, aux);
    uint32_t state = ckbi_seed(seed, offset, CKBI_SEED_PAYLOAD);
    ckbi_put32(b + 12, ckbi_crc_update(state, b + CKBI_RECORD_COMMON, payload));
    ckbi_record_seal(b, seed, offset);
    ckbi_end_frame(b + used, batch - used, 0, durable, seed, offset + used / CKBI_UNIT);
    return batch;
}

/* The same for `count` facts. */
static CKBI_UNUSED uint32_t ckbi_facts_frame(uint8_t *b, uint32_t count, uint32_t seed, uint32_t offset,
                                             uint32_t durable, uint32_t unit)
{
    return ckbi_batch_frame(b, CKBI_RECORD_FACTS, 0, count * CKBI_FACT_BYTES, seed, offset, durable, unit);
}

/* Where the facts of a journal segment end: NEXT has a unit, or two. They are two so that neither is written
 * again when a power cut took the other. */
static CKBI_UNUSED uint32_t ckbi_journal_limit(const ckb_geometry *g, uint32_t span)
{
    return ckbi_seal_at(g) - (span > 1 ? ckbi_last_bytes(g) / CKBI_UNIT : 0);
}

/* Facts of a snapshot that one journal segment holds, written in batches of a buffer. */
static CKBI_UNUSED uint32_t ckbi_journal_facts(const ckb_geometry *g, uint32_t span, size_t buffer_bytes)
{
    uint32_t room = ckbi_journal_limit(g, span) - ckbi_data_start(g);
    uint32_t whole = (uint32_t)ckbi_min(buffer_bytes / CKBI_UNIT, ckbi_segment_units(g));
    return room / whole * ckbi_facts_room((size_t)whole * CKBI_UNIT) +
           ckbi_facts_room((size_t)(room % whole) * CKBI_UNIT);
}

/* Facts of the largest snapshot there can be: less than the bytes of memory that hold what they are about. */
static CKBI_UNUSED size_t ckbi_snapshot_facts(const ckb_volume *v)
{
    return CKBI_SNAPSHOT_FACTS + (size_t)v->header.segment_count + v->config.max_containers +
           2 * (size_t)v->config.max_logs;
}

/* The snapshot's fact about a segment. False: none is needed. */
static CKBI_UNUSED bool ckbi_snapshot_segment(ckb_volume *v, uint32_t segment, ckbi_fact *fact)
{
    const ckbi_segment *s = &v->segments[segment];
    /* A writer may be finishing it: state and extent belong together. */
    CKB_MUTEX_LOCK(&v->lock);
    bool used = s->state != CKB_SEGMENT_FREE && s->state != CKB_SEGMENT_JOURNAL;
    fact->kind = CKBI_FACT_SEGMENT;
    fact->a = segment;
    fact->b = s->state == CKB_SEGMENT_RETIRED ? CKBI_EPOCH_RETIRED : s->epoch;
    fact->c = s->extent ? ckbi_extent(s->extent, s->end, s->summary) : 0;
    CKB_MUTEX_UNLOCK(&v->lock);
    return used;
}

/* State and flags of a container as a fact has them. One that is being closed is still open. */
static CKBI_UNUSED uint64_t ckbi_container_word(uint32_t state, uint32_t flags)
{
    return (state == CKBI_CONTAINER_CLOSING ? (uint32_t)CKB_CONTAINER_OPEN : state) | (uint64_t)flags << 8;
}

/* The snapshot's facts about a log, two of them. False: there is no log. */
static CKBI_UNUSED bool ckbi_snapshot_log(const ckb_volume *v, size_t number, ckbi_fact *fact)
{
    const ckbi_log_slot *slot = &v->logs[number / 2];
    fact->kind = number % 2 == 0 ? CKBI_FACT_LOG : CKBI_FACT_LOG_FIRST;
    fact->a = slot->serial;
    fact->b = number % 2 == 0 ? ckbi_get64((const uint8_t *)slot->name) : slot->first;
    fact->c = number % 2 == 0 ? ckbi_get64((const uint8_t *)slot->name + 8) : slot->first_epoch;
    return slot->serial != 0;
}

static CKBI_UNUSED bool ckbi_snapshot_container(const ckb_volume *v, size_t number, ckbi_fact *fact)
{
    const ckbi_container *c = &v->containers[number];
    fact->kind = CKBI_FACT_CONTAINER;
    fact->a = c->serial;
    fact->b = c->id;
    fact->c = ckbi_container_word(CKBI_LOAD(&c->state), c->flags);
    return c->serial != 0;
}

/* That a checkpoint is in force from now on. */
static CKBI_UNUSED bool ckbi_checkpoint_fact(const ckbi_checkpoint *c, ckbi_fact *fact)
{
    fact->kind = CKBI_FACT_CHECKPOINT;
    fact->a = c->at.segment;
    fact->b = c->at.epoch;
    fact->c = c->at.end | c->entries << 30;
    return c->at.epoch != 0;
}

static CKBI_UNUSED bool ckbi_scrub_fact(const ckbi_scrub *s, ckbi_fact *fact)
{
    fact->kind = CKBI_FACT_SCRUB;
    fact->a = CKBI_LOAD(&s->segment);
    fact->b = CKBI_LOAD(&s->bytes);
    fact->c = CKBI_LOAD(&s->passes) | (uint64_t)CKBI_LOAD(&s->damage) << 32;
    return fact->a != 0 || fact->c != 0;
}

/* The snapshot's fact with this number: the counters, then segments, containers, logs, checkpoint, scrub, what
 * is clean, the end mark. False: there is none with this number. */
static CKBI_UNUSED bool ckbi_snapshot_fact(ckb_volume *v, size_t number, ckbi_fact *fact)
{
    size_t containers = (size_t)v->header.segment_count + 1;
    size_t logs = containers + v->config.max_containers;
    size_t rest = logs + 2 * (size_t)v->config.max_logs;
    ckbi_fill(fact, 0, sizeof(*fact));
    if (number == 0) {
        fact->kind = CKBI_FACT_COUNTERS;
        fact->b = v->next_epoch;
        fact->c = v->next_serial;
        return true;
    }
    if (number < containers)
        return ckbi_snapshot_segment(v, (uint32_t)(number - 1), fact);
    if (CKBI_HAS_CHUNKS && number < logs)
        return ckbi_snapshot_container(v, number - containers, fact);
    if (CKBI_HAS_LOG && number < rest)
        return ckbi_snapshot_log(v, number - logs, fact);
    if (number == rest)
        return CKBI_HAS_CHUNKS && ckbi_checkpoint_fact(&v->checkpoint, fact);
    if (number == rest + 1)
        return ckbi_scrub_fact(&v->scrub, fact);
    fact->kind = number == rest + 2 ? CKBI_FACT_CLEAN : CKBI_FACT_SNAPSHOT_END;
    fact->b = number == rest + 2 ? v->durable_epoch : 0;
    return true;
}

/* The next fact of the snapshot from `*cursor` on. False: that was all. */
static CKBI_UNUSED bool ckbi_snapshot_next(ckb_volume *v, size_t *cursor, ckbi_fact *fact)
{
    size_t end = ckbi_snapshot_facts(v) - 1;
    while (*cursor <= end)
        if (ckbi_snapshot_fact(v, (*cursor)++, fact))
            return true;
    return false;
}

/* A free segment whose header is newer than anything the journal handed out, with records behind it:
 * the journal has lost a fact. Such a segment is never erased; its epoch is then in v->probed[2]. The long
 * lock is held. */
static CKBI_UNUSED bool ckbi_segment_is_orphan(ckb_volume *v, uint32_t segment)
{
    ckb_probe_info *info = &v->probed[2];
    /* Where it does not exist, or cannot be read, free is all that is known. */
    if (ckbi_header_read(&v->walk.source, segment, info) != CKB_OK || !ckbi_header_is_ours(v, info) ||
        info->epoch < v->mount_epoch || info->epoch <= v->segments[segment].epoch)
        return false;
    int status = ckbi_read_record(v, segment, info->epoch, ckbi_data_start(&v->medium.geometry));
    if (status == CKB_OK && info->epoch >= v->next_epoch)
        v->next_epoch = info->epoch + 1;
    return status == CKB_OK && v->walk.record.aux != CKBI_STREAM_CHECKPOINT;
}

static CKBI_UNUSED void ckbi_segment_set_lost(ckb_volume *v, uint32_t segment, uint64_t expected,
                                              uint64_t found)
{
    ckbi_damage(v, CKB_TOPIC_SEGMENT_HEADER, segment, 0, expected, found);
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_STORE(&v->segments[segment].state, CKB_SEGMENT_LOST);
    v->unidentified++;
    CKB_MUTEX_UNLOCK(&v->lock);
}

#ifndef CKB_READ_ONLY
static CKBI_UNUSED int ckbi_medium_write(ckb_volume *v, uint32_t segment, uint32_t at, const uint8_t *bytes,
                                         size_t length)
{
    int status = v->medium.write(v->medium.context, segment, ckbi_bytes(at), bytes, length);
    return status == CKB_OK ? CKB_OK : ckbi_fail(v, status, segment, at);
}

static CKBI_UNUSED int ckbi_medium_sync(ckb_volume *v, uint32_t segment)
{
    int status = v->medium.sync(v->medium.context, segment);
    return status == CKB_OK ? CKB_OK : ckbi_fail(v, status, segment, 0);
}

/* Erases a segment and writes its header; durable only after a sync. CKB_NOSPACE: nothing happened.
 * CKB_CORRUPT: the segment must be retired. The I/O buffer is used. */
static CKBI_UNUSED int ckbi_segment_begin(ckb_volume *v, uint32_t segment, uint64_t epoch)
{
    v->header.epoch = epoch;
    v->header.segment = segment;
    int status = v->medium.erase(v->medium.context, segment);
    if (status == CKB_NOSPACE || status == CKB_CORRUPT)
        return status;
    if (status != CKB_OK)
        return ckbi_fail(v, status, segment, 0);
    size_t bytes = (size_t)ckbi_data_start(&v->medium.geometry) * CKBI_UNIT;
    ckbi_fill(v->io_buffer, 0, bytes);
    ckbi_header_encode(v->io_buffer, &v->header);
    return ckbi_medium_write(v, segment, 0, v->io_buffer, bytes);
}

/* What an unclean end left was perhaps never synced, and nothing may be built on it before it is. */
static CKBI_UNUSED int ckbi_settle(ckb_volume *v)
{
    /* So was the journal itself, and the next switch erases the one before it. */
    int status = ckbi_medium_sync(v, v->journal.segment);
    if (!CKBI_LOAD(&v->unsettled) || status != CKB_OK)
        return status;
    bool sync_all = v->medium.geometry.capabilities & CKB_CAP_SYNC_ALL;
    bool synced = false;
    for (uint32_t i = 0; i < v->header.segment_count; i++) {
        const ckbi_segment *s = &v->segments[i];
        if (s->state != CKB_SEGMENT_FULL || s->extent == CKBI_EXTENT_FULL || (synced && sync_all))
            continue;
        status = ckbi_medium_sync(v, i);
        if (status != CKB_OK)
            return status;
        synced = true;
    }
    CKB_MUTEX_LOCK(&v->lock);
    for (uint32_t i = 0; i < v->header.segment_count; i++)
        if (v->segments[i].state == CKB_SEGMENT_FULL)
            v->segments[i].extent = CKBI_EXTENT_FULL;
    CKB_MUTEX_UNLOCK(&v->lock);
    CKBI_STORE(&v->unsettled, false);
    return CKB_OK;
}

/* Begins a segment of the journal; durable only after a sync. */
static CKBI_UNUSED int ckbi_journal_begin(ckb_volume *v, ckbi_journal *j, uint32_t segment)
{
    int status = ckbi_segment_begin(v, segment, j->epoch);
    if (status == CKB_CORRUPT) /* the journal has no other place */
        status = ckbi_fail(v, status, segment, 0);
    if (status != CKB_OK)
        return status;
    j->segment = segment;
    j->seed = ckbi_segment_seed(v, segment, j->epoch);
    j->end = ckbi_data_start(&v->medium.geometry);
    return CKB_OK;
}

/* Says behind the facts of a journal segment, all of which are durable, where the journal goes on. */
static CKBI_UNUSED int ckbi_next_write(ckb_volume *v, const ckbi_journal *j, uint64_t epoch)
{
    uint8_t *b = v->io_buffer;
    uint32_t bytes = ckbi_last_bytes(&v->medium.geometry);
    /* That of the same side stands where the facts of a side of several segments end. */
    uint32_t at = ckbi_journal_limit(&v->medium.geometry, epoch == j->epoch ? 2 : 1);
    ckbi_fill(b, 0, bytes);
    ckbi_record_begin(b, CKBI_RECORD_NEXT, 0, CKBI_RECORD_NEXT_BYTES, 0, j->end, 0);
    ckbi_put64(b + CKBI_RECORD_COMMON, epoch);
    ckbi_record_seal(b, j->seed, at);
    int status = ckbi_medium_write(v, j->segment, at, b, bytes);
    return status == CKB_OK ? ckbi_medium_sync(v, j->segment) : status;
}

/* Goes on in the next segment of the same side. CKB_NOSPACE: there is none, nothing happened. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_journal_extend(ckb_volume *v, ckbi_journal *j)
{
    ckbi_journal *next = &v->extension;
    *next = *j;
    if (j->segment + 2 >= 2 * v->header.journal_span)
        return CKB_NOSPACE;
    int status = ckbi_journal_begin(v, next, j->segment + 2);
    if (status == CKB_OK)
        status = ckbi_medium_sync(v, next->segment);
    if (status == CKB_OK)
        status = ckbi_next_write(v, j, j->epoch);
    if (status == CKB_OK)
        *j = *next;
    return status;
}

/* Facts for which the rest of a journal segment has room in one batch. */
static CKBI_UNUSED uint32_t ckbi_journal_left(const ckb_volume *v, const ckbi_journal *j)
{
    const ckb_geometry *g = &v->medium.geometry;
    return ckbi_facts_room(
        (size_t)ckbi_min(v->io_bytes, ckbi_bytes(ckbi_journal_limit(g, v->header.journal_span) - j->end)));
}

/* Writes a batch of `count` facts that stand in the buffer behind the room for the record's header. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_journal_write(ckb_volume *v, ckbi_journal *j, uint32_t count,
                                                        uint32_t durable)
{
    uint32_t batch =
        ckbi_facts_frame(v->io_buffer, count, j->seed, j->end, durable, v->medium.geometry.write_unit);
    int status = ckbi_medium_write(v, j->segment, j->end, v->io_buffer, batch);
    if (status == CKB_OK)
        j->end += batch / CKBI_UNIT;
    return status;
}

static CKBI_UNUSED int ckbi_snapshot_write(ckb_volume *v, ckbi_journal *j)
{
    size_t cursor = 0;
    ckbi_fact *fact = &v->facts[CKBI_FACTS_MAX];
    bool more = ckbi_snapshot_next(v, &cursor, fact);
    while (more) {
        uint32_t count = 0, room = ckbi_journal_left(v, j);
        if (room == 0) {
            int status = ckbi_medium_sync(v, j->segment);
            if (status == CKB_OK)
                status = ckbi_journal_extend(v, j);
            if (status != CKB_OK)
                return status;
            continue;
        }
        /* Facts are encoded one by one behind each other, then framed: the buffer is the only copy. */
        uint8_t *at = v->io_buffer + CKBI_RECORD_COMMON;
        for (; more && count < room; count++, at += CKBI_FACT_BYTES) {
            ckbi_fact_put(at, fact);
            more = ckbi_snapshot_next(v, &cursor, fact);
        }
        int status = ckbi_journal_write(v, j, count, 0);
        if (status != CKB_OK)
            return status;
    }
    return CKB_OK;
}

/* Does anything of a snapshot verify there under the epoch of the walk? CKB_CORRUPT: no. */
static CKBI_UNUSED int ckbi_journal_probe(ckb_volume *v, ckbi_walk *w)
{
    const ckb_geometry *g = &v->medium.geometry;
    size_t facts = ckbi_snapshot_facts(v);
    uint64_t bytes = (uint64_t)facts * CKBI_FACT_BYTES +
                     (facts / ckbi_facts_room(v->io_bytes) + 1) * (2 * CKBI_RECORD_COMMON + g->write_unit);
    uint32_t stop = (uint32_t)ckbi_min(w->at + 2 * bytes / CKBI_UNIT, ckbi_segment_units(g));
    int status = CKB_CORRUPT;
    for (; status == CKB_CORRUPT && w->at < stop; w->at += ckbi_write_units(g))
        status = ckbi_source_record(&w->source, w->at, &w->record);
    return status;
}

/* Sees to it that nothing on the journal's other side verifies under the next epoch. A power cut in an
 * earlier switch may have lost the header of the snapshot and kept the rest of it, under just that epoch:
 * such facts must not come back behind a shorter snapshot. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_journal_skip_epochs(ckb_volume *v)
{
    ckbi_walk *w = &v->walk;
    uint32_t segment = (v->journal.segment ^ 1u) & 1u;
    while (segment < 2 * v->header.journal_span) {
        ckbi_walk_open(w, segment, v->next_epoch);
        int status = ckbi_journal_probe(v, w);
        if (status == CKB_OK) {
            v->next_epoch++;
            segment &= 1u;
        } else if (status == CKB_CORRUPT) {
            segment += 2;
        } else {
            return status;
        }
    }
    return CKB_OK;
}

/* Moves the journal to its other side. A crash anywhere in here leaves the old one in force. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_journal_write_snapshot(ckb_volume *v)
{
    ckbi_journal *j = &v->snapshot;
    j->epoch = v->next_epoch++;
    int status = ckbi_journal_begin(v, j, (v->journal.segment ^ 1u) & 1u);
    if (status == CKB_OK)
        status = ckbi_snapshot_write(v, j);
    if (status == CKB_OK)
        status = ckbi_medium_sync(v, j->segment);
    if (status == CKB_OK)
        status = ckbi_next_write(v, &v->journal, j->epoch);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    v->journal = *j;
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

/* The switch; at the first one of a mount what was found is made durable before. */
static CKBI_UNUSED int ckbi_journal_switch(ckb_volume *v)
{
    int status = v->journal_switch ? ckbi_settle(v) : CKB_OK;
    if (status == CKB_OK && v->journal_switch)
        status = ckbi_journal_skip_epochs(v);
    if (status == CKB_OK)
        status = ckbi_journal_write_snapshot(v);
    if (status == CKB_OK)
        v->journal_switch = false;
    return status;
}

/* Sees to it that a batch of `count` facts fits where the journal stands. */
static CKBI_UNUSED int ckbi_journal_make_room(ckb_volume *v, uint32_t count)
{
    int status = v->journal_switch ? ckbi_journal_switch(v) : CKB_OK;
    if (status == CKB_OK && ckbi_journal_left(v, &v->journal) < count) {
        status = ckbi_journal_extend(v, &v->journal);
        if (status == CKB_NOSPACE)
            status = ckbi_journal_switch(v);
    }
    if (status == CKB_OK && ckbi_journal_left(v, &v->journal) < count)
        status = ckbi_journal_extend(v, &v->journal);
    return status;
}

/* Appends facts, which stand in v->facts; durable on return. The long lock is held. The state in memory
 * follows afterwards. */
static CKBI_UNUSED int ckbi_journal_append(ckb_volume *v, uint32_t count)
{
    ckbi_journal *j = &v->journal;
    int status = ckbi_writable(v);
    if (status == CKB_OK)
        status = ckbi_journal_make_room(v, count);
    if (status != CKB_OK)
        return status;
    for (uint32_t i = 0; i < count; i++)
        ckbi_fact_put(v->io_buffer + CKBI_RECORD_COMMON + (size_t)i * CKBI_FACT_BYTES, &v->facts[i]);
    uint32_t end = j->end;
    status = ckbi_journal_write(v, j, count, end);
    if (status == CKB_OK)
        status = ckbi_medium_sync(v, j->segment);
    if (status != CKB_OK)
        j->end = end;
    return status;
}

static CKBI_UNUSED void ckbi_fact_set(ckb_volume *v, uint32_t n, uint32_t kind, uint32_t a, uint64_t b,
                                      uint64_t c)
{
    v->facts[n].kind = kind;
    v->facts[n].a = a;
    v->facts[n].b = b;
    v->facts[n].c = c;
}

/* Appends a single fact. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_journal_say(ckb_volume *v, uint32_t kind, uint32_t a, uint64_t b,
                                                      uint64_t c)
{
    ckbi_fact_set(v, 0, kind, a, b, c);
    return ckbi_journal_append(v, 1);
}

/* ---------------------------------------------------------------------------------------------- >>segment
 * Segments come from the free list through the pool to a writer, and return when nothing in them counts. */

/* One of several facts: a segment is free. */
static CKBI_UNUSED void ckbi_fact_set_free(ckb_volume *v, uint32_t n, uint32_t segment)
{
    ckbi_fact_set(v, n, CKBI_FACT_SEGMENT, segment, 0, 0);
}

/* Says of a segment how far it is known: nothing is, or what `kind` of extent it has. */
static CKBI_UNUSED int ckbi_segment_say(ckb_volume *v, uint32_t segment, uint32_t kind, uint32_t end,
                                        uint32_t summary)
{
    return ckbi_journal_say(v, CKBI_FACT_SEGMENT, segment, v->segments[segment].epoch,
                            ckbi_extent(kind, end, summary));
}

/* The next free segment in turn, so that wear spreads; CKB_NO_SEGMENT when there is none. */
static CKBI_UNUSED uint32_t ckbi_segment_next_free(ckb_volume *v)
{
    uint32_t found = CKB_NO_SEGMENT;
    CKB_MUTEX_LOCK(&v->lock);
    for (uint32_t n = 0; v->free_count > 0 && n < v->header.segment_count && found == CKB_NO_SEGMENT; n++) {
        uint32_t segment = v->free_cursor;
        v->free_cursor = segment + 1 < v->header.segment_count ? segment + 1 : 0;
        if (v->segments[segment].state == CKB_SEGMENT_FREE)
            found = segment;
    }
    CKB_MUTEX_UNLOCK(&v->lock);
    return found;
}

static CKBI_UNUSED int ckbi_segment_retire(ckb_volume *v, uint32_t segment)
{
    ckbi_fact_set(v, 0, CKBI_FACT_SEGMENT, segment, CKBI_EPOCH_RETIRED, 0);
    int status = ckbi_journal_append(v, 1);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    v->segments[segment].state = CKB_SEGMENT_RETIRED;
    v->free_count--;
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

/* An orphan is in use after all: the journal says so from now on, and the next mount reads it. */
static CKBI_UNUSED int ckbi_segment_take_back(ckb_volume *v, uint32_t segment, uint64_t epoch)
{
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_STORE(&v->segments[segment].epoch, epoch);
    v->segments[segment].extent = 0;
    v->free_count--;
    CKB_MUTEX_UNLOCK(&v->lock);
    ckbi_segment_set_lost(v, segment, 0, epoch);
    ckbi_fact_set(v, 0, CKBI_FACT_SEGMENT, segment, epoch, 0);
    return ckbi_journal_append(v, 1);
}

/* Makes one segment ready for a writer: erased, header durable, known to the journal, in this order, so
 * that a segment the journal knows and whose header is missing is a loss and nothing else. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_prepare(ckb_volume *v)
{
    v->refused = 0;
    for (;;) {
        int status = ckbi_writable(v);
        /* The journal moves first: it must say that this segment is free before it is erased. */
        if (status == CKB_OK && v->journal_switch)
            status = ckbi_journal_switch(v);
        if (status != CKB_OK)
            return status;
        uint32_t segment = ckbi_segment_next_free(v);
        if (segment == CKB_NO_SEGMENT)
            return CKB_NOSPACE;
        if (ckbi_segment_is_orphan(v, segment)) {
            status = ckbi_segment_take_back(v, segment, v->probed[2].epoch);
            if (status != CKB_OK)
                return status;
            continue;
        }
        uint64_t epoch = v->next_epoch++;
        status = ckbi_segment_begin(v, segment, epoch);
        if (status == CKB_NOSPACE && ++v->refused < ckbi_min32(CKBI_REFUSED_MAX, v->free_count))
            continue; /* another one may have its space already */
        if (status == CKB_CORRUPT) {
            status = ckbi_segment_retire(v, segment);
            if (status == CKB_OK)
                continue;
        }
        if (status == CKB_OK)
            status = ckbi_medium_sync(v, segment);
        ckbi_fact_set(v, 0, CKBI_FACT_SEGMENT, segment, epoch, 0);
        if (status == CKB_OK)
            status = ckbi_journal_append(v, 1);
        if (status != CKB_OK)
            return status;
        CKB_MUTEX_LOCK(&v->lock);
        ckbi_segment *s = &v->segments[segment];
        CKBI_STORE(&s->epoch, epoch);
        CKBI_STORE(&v->epoch_clock, (uint32_t)v->next_epoch);
        s->end = s->summary = s->live = s->records = s->deletes = s->died_at = s->owner = s->log = 0;
        s->extent = 0;
        s->compacted = s->unmovable = false;
        CKBI_STORE(&s->state, CKB_SEGMENT_PREPARED);
        v->free_count--;
        v->pool[v->pool_count++] = segment;
        CKB_MUTEX_UNLOCK(&v->lock);
        return CKB_OK;
    }
}

static bool ckbi_writers_are_past(ckb_volume *v, uint32_t died_at);
static void ckbi_logs_trim(ckb_volume *v);

/* The journal says that it is free. The volume's lock is held. */
static CKBI_UNUSED void ckbi_segment_set_free(ckb_volume *v, uint32_t segment)
{
    ckbi_segment *s = &v->segments[segment];
    v->parked_count -= s->state == CKB_SEGMENT_PARKED && s->log == 0;
    s->log = 0;
    s->cover = 0;
    CKBI_STORE(&s->state, CKB_SEGMENT_FREE);
    v->free_count++;
}

/* Takes it no more, and is it known to the end? A full one that is not still waits for its writer's sync. */
static CKBI_UNUSED bool ckbi_segment_is_settled(const ckbi_segment *s)
{
    return s->state == CKB_SEGMENT_PARKED || (s->state == CKB_SEGMENT_FULL && s->extent == CKBI_EXTENT_FULL);
}

/* Frees up to CKBI_FACTS_MAX dead segments; v->freed counts them. The long lock is held. */
static CKBI_UNUSED int ckbi_reclaim(ckb_volume *v)
{
    uint32_t count = 0;
    v->freed = 0;
    int status = ckbi_writable(v);
    if (status == CKB_OK && v->unsettled)
        status = ckbi_journal_switch(v);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    if (CKBI_HAS_LOG)
        ckbi_logs_trim(v);
    for (uint32_t n = 0; n < v->header.segment_count && count < CKBI_FACTS_MAX; n++) {
        uint32_t i = v->dead_cursor;
        v->dead_cursor = i + 1 < v->header.segment_count ? i + 1 : 0;
        const ckbi_segment *s = &v->segments[i];
        if (!ckbi_segment_is_settled(s) || CKBI_LOAD(&s->live) != 0 || i == v->victim)
            continue;
        uint32_t died_at = CKBI_LOAD(&s->died_at);
        if (died_at != 0 && ckbi_writers_are_past(v, died_at))
            ckbi_fact_set_free(v, count++, i);
    }
    CKB_MUTEX_UNLOCK(&v->lock);
    if (count == 0)
        return CKB_OK;
    status = ckbi_journal_append(v, count);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    for (uint32_t i = 0; i < count; i++)
        ckbi_segment_set_free(v, v->facts[i].a);
    v->sweep_pays = v->let_go > 0;
    CKB_MUTEX_UNLOCK(&v->lock);
    v->freed = count;
    return CKB_OK;
}

/* The parked segment of chunks with the most room, at least `room`, or CKB_NO_SEGMENT. */
static CKBI_UNUSED uint32_t ckbi_find_parked(ckb_volume *v, uint32_t room)
{
    uint32_t limit = ckbi_data_limit(&v->medium.geometry);
    uint32_t best = CKB_NO_SEGMENT;
    CKB_MUTEX_LOCK(&v->lock);
    for (uint32_t i = ckbi_first_segment(v); v->parked_count > 0 && i < v->header.segment_count; i++)
        if (v->segments[i].state == CKB_SEGMENT_PARKED && v->segments[i].log == 0 &&
            v->segments[i].end + room <= limit &&
            (best == CKB_NO_SEGMENT || v->segments[i].end < v->segments[best].end))
            best = i;
    CKB_MUTEX_UNLOCK(&v->lock);
    return best;
}

/* Takes a parked segment out, and says so in the journal first. The long lock is held. */
static CKBI_UNUSED int ckbi_resume(ckb_volume *v, uint32_t segment)
{
    ckbi_segment *s = &v->segments[segment];
    /* Resumed before the journal says so: a switch in between writes the same. */
    CKB_MUTEX_LOCK(&v->lock);
    s->extent = CKBI_EXTENT_RESUMED;
    CKB_MUTEX_UNLOCK(&v->lock);
    int status = ckbi_segment_say(v, segment, CKBI_EXTENT_RESUMED, s->end, s->summary);
    CKB_MUTEX_LOCK(&v->lock);
    if (status == CKB_OK) {
        CKBI_STORE(&s->state, CKB_SEGMENT_OPEN);
        CKBI_STORE(&s->died_at, 0);
        v->parked_count -= s->log == 0;
    } else {
        s->extent = CKBI_EXTENT_PARKED;
    }
    CKB_MUTEX_UNLOCK(&v->lock);
    return status;
}

/* Takes a prepared segment, unless it is one of the last ones that are to be kept. */
static CKBI_UNUSED bool ckbi_pool_pop(ckb_volume *v, uint32_t keep, uint32_t *segment)
{
    CKB_MUTEX_LOCK(&v->lock);
    bool taken = v->pool_count > 0 && v->pool_count + v->free_count > keep;
    if (taken) {
        *segment = v->pool[0];
        ckbi_move(v->pool, v->pool + 1, (size_t)--v->pool_count * sizeof(v->pool[0]));
        CKBI_STORE(&v->segments[*segment].state, CKB_SEGMENT_OPEN);
    }
    CKB_MUTEX_UNLOCK(&v->lock);
    return taken;
}

/* Segments that can still be handed out. */
static CKBI_UNUSED uint32_t ckbi_spare_segments(ckb_volume *v)
{
    CKB_MUTEX_LOCK(&v->lock);
    uint32_t spare = v->pool_count + v->free_count;
    CKB_MUTEX_UNLOCK(&v->lock);
    return spare;
}

/* A segment that nobody used: a prepared one, or one prepared here. The long lock is held. */
static CKBI_UNUSED int ckbi_segment_fresh(ckb_volume *v, uint32_t keep, uint32_t *segment)
{
    int status = ckbi_spare_segments(v) <= keep ? ckbi_reclaim(v) : CKB_OK;
    while (status == CKB_OK && !ckbi_pool_pop(v, keep, segment))
        status = ckbi_spare_segments(v) <= keep ? CKB_NOSPACE : ckbi_prepare(v);
    return status;
}

/* A segment for a writer of chunks: a parked one with that much room, or a fresh one. No lock is held. */
static CKBI_UNUSED int ckbi_segment_take(ckb_volume *v, uint32_t room, uint32_t keep, bool may_resume,
                                         uint32_t *segment)
{
    CKB_MUTEX_LOCK(&v->lock);
    /* When the reserve is in use, what is parked may be a part of it. */
    bool parked = may_resume && v->parked_count > 0 && v->pool_count + v->free_count >= keep;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (!parked && ckbi_pool_pop(v, keep, segment))
        return CKB_OK;
    CKB_MUTEX_LOCK(&v->long_lock);
    *segment = parked ? ckbi_find_parked(v, room) : CKB_NO_SEGMENT;
    int status = *segment != CKB_NO_SEGMENT ? ckbi_resume(v, *segment) : ckbi_segment_fresh(v, keep, segment);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}
#endif /* CKB_READ_ONLY */

/* ---------------------------------------------------------------------------------------------- >>tables
 * Containers by id and by serial: two small hash tables of places in one array. */

static CKBI_UNUSED uint32_t ckbi_container_hash(uint64_t key)
{
    key *= UINT64_C(0x9E3779B97F4A7C15);
    return (uint32_t)(key >> 32);
}

static CKBI_UNUSED void ckbi_container_link(ckb_volume *v, uint32_t place)
{
    const ckbi_container *c = &v->containers[place];
    uint32_t mask = v->container_slots - 1;
    uint32_t i = ckbi_container_hash(c->id) & mask;
    uint32_t s = ckbi_container_hash(c->serial) & mask;
    while (v->by_id[i] != 0)
        i = (i + 1) & mask;
    while (v->by_serial[s] != 0)
        s = (s + 1) & mask;
    v->by_id[i] = place + 1;
    v->by_serial[s] = place + 1;
}

static CKBI_UNUSED void ckbi_container_relink(ckb_volume *v)
{
    ckbi_fill(v->by_id, 0, v->container_slots * sizeof(v->by_id[0]));
    ckbi_fill(v->by_serial, 0, v->container_slots * sizeof(v->by_serial[0]));
    for (uint32_t i = 0; i < v->config.max_containers; i++)
        if (v->containers[i].serial != 0)
            ckbi_container_link(v, i);
}

/* The volume's lock is held, or nobody else is there yet. */
static CKBI_UNUSED ckbi_container *ckbi_container_by_id(const ckb_volume *v, uint64_t id)
{
    uint32_t mask = v->container_slots - 1;
    for (uint32_t i = ckbi_container_hash(id) & mask; v->by_id[i] != 0; i = (i + 1) & mask)
        if (v->containers[v->by_id[i] - 1].id == id)
            return &v->containers[v->by_id[i] - 1];
    return NULL;
}

static CKBI_UNUSED ckbi_container *ckbi_container_by_serial(const ckb_volume *v, uint32_t serial)
{
    uint32_t mask = v->container_slots - 1;
    for (uint32_t i = ckbi_container_hash(serial) & mask; v->by_serial[i] != 0; i = (i + 1) & mask)
        if (v->containers[v->by_serial[i] - 1].serial == serial)
            return &v->containers[v->by_serial[i] - 1];
    return NULL;
}

/* A place for a new container: an empty one, or that of a deleted one of which nothing is left. */
static CKBI_UNUSED ckbi_container *ckbi_container_place(ckb_volume *v)
{
    ckbi_container *forgettable = NULL;
    for (uint32_t i = 0; i < v->config.max_containers; i++) {
        ckbi_container *c = &v->containers[i];
        if (c->serial == 0)
            return c;
        if (CKBI_LOAD(&c->state) == CKB_CONTAINER_DELETED && c->swept &&
            (!forgettable || c->serial < forgettable->serial))
            forgettable = c;
    }
    return forgettable;
}

static CKBI_UNUSED void ckbi_container_fill(ckb_volume *v, ckbi_container *c, uint64_t id, uint32_t serial)
{
    c->id = id;
    c->chunks = 0;
    c->bytes = 0;
    c->flags = 0;
    c->swept = false;
    /* An append looks at the state first: whoever sees this one open sees the new serial too. */
    CKBI_STORE(&c->serial, serial);
    CKBI_STORE(&c->state, CKB_CONTAINER_OPEN);
    if (v->next_serial <= serial)
        v->next_serial = serial + 1;
    ckbi_container_relink(v);
}

/* The log with this serial, or null. The volume's lock is held, or nobody else is there yet. */
static CKBI_UNUSED ckbi_log_slot *ckbi_log_by_serial(const ckb_volume *v, uint32_t serial)
{
    for (uint32_t i = 0; i < v->config.max_logs; i++)
        if (v->logs[i].serial == serial)
            return &v->logs[i];
    return NULL;
}

/* Units that the record of a chunk or delete takes, its entry in a summary included. */
static CKBI_UNUSED uint32_t ckbi_record_units(const ckb_volume *v, uint32_t length, uint32_t version)
{
    uint32_t units = (CKBI_RECORD_CHUNK_BYTES) / CKBI_UNIT;
    if (ckbi_has_seal(&v->medium.geometry))
        units += ckbi_units(CKBI_SUMMARY_ENTRY_BYTES);
    return version & CKBI_TOMBSTONE ? units : units + ckbi_units(length) + ckbi_table_bytes(length) / CKBI_UNIT;
}

/* What a slot's record counts for; the same when it is added and when it is taken away. */
static CKBI_UNUSED uint32_t ckbi_slot_units(const ckb_volume *v, const ckbi_slot *slot)
{
    return ckbi_record_units(v, slot->length, slot->version);
}

/* A record stops to count. When it was the last of a segment that takes no more, the segment is dead:
 * it may be freed as soon as all that superseded its records is durable. */
static CKBI_UNUSED void ckbi_segment_release(ckb_volume *v, const ckbi_slot *slot)
{
    ckbi_segment *s = &v->segments[slot->segment];
    if (slot->offset == 0)
        return; /* compaction let go of the record already */
    uint32_t units = ckbi_slot_units(v, slot);
    if (slot->version & CKBI_TOMBSTONE)
        CKBI_SUB(&s->deletes, units);
    if (CKBI_SUB(&s->live, units) == 0 && CKBI_LOAD(&s->state) >= CKB_SEGMENT_PARKED)
        CKBI_STORE(&s->died_at, CKBI_ADD(&v->supersede_clock, 1));
}

/* Lets a container grow by so many bytes, unless it would then hold more than `limit`. */
static CKBI_UNUSED bool ckbi_container_grow(ckbi_container *c, uint64_t bytes, uint64_t limit)
{
    uint64_t had = CKBI_LOAD(&c->bytes);
    do {
        if (had + bytes > limit)
            return false;
    } while (!CKBI_CHANGE(&c->bytes, &had, had + bytes));
    return true;
}

static CKBI_UNUSED void ckbi_container_count(ckbi_container *c, const ckbi_slot *slot, bool add)
{
    if (slot->version & CKBI_TOMBSTONE)
        return;
    if (add) {
        CKBI_ADD(&c->chunks, 1);
        CKBI_ADD(&c->bytes, slot->length);
    } else {
        CKBI_SUB(&c->chunks, 1);
        CKBI_SUB(&c->bytes, slot->length);
    }
}

/* Deletes that the index remembers. The volume's lock is held. */
static CKBI_UNUSED uint64_t ckbi_deletes(const ckb_volume *v)
{
    uint64_t used = ckbi_index_used(&v->index), live = 0;
    for (uint32_t i = 0; i < v->config.max_containers; i++)
        if (v->containers[i].serial != 0)
            live += CKBI_LOAD(&v->containers[i].chunks);
    return used > live ? used - live : 0;
}

/* ---------------------------------------------------------------------------------------------- >>mount
 * Journal -> segments and containers; summaries or records -> index. Reads only. */

static CKBI_UNUSED int ckbi_mount_error(ckbi_mounting *m, int status, int topic, uint32_t segment, uint32_t at,
                                        uint64_t expected, uint64_t found)
{
    ckbi_fault_set(&m->volume->last_fault, status, topic, segment, at, expected, found);
    return status;
}

/* The medium could not read there. */
static CKBI_UNUSED int ckbi_mount_unread(ckbi_mounting *m, int status, uint32_t segment, uint32_t at)
{
    return ckbi_mount_error(m, status, CKB_TOPIC_MEDIUM, segment, at, 0, 0);
}

/* The journal has a fact that cannot be. */
static CKBI_UNUSED int ckbi_mount_bad_fact(ckbi_mounting *m, uint64_t expected, uint64_t found)
{
    return ckbi_mount_error(m, CKB_CORRUPT, CKB_TOPIC_JOURNAL, m->volume->journal.segment, 0, expected, found);
}

/* There are more of these than the configuration has room for. */
static CKBI_UNUSED int ckbi_mount_too_many(ckbi_mounting *m, int topic, uint64_t room)
{
    return ckbi_mount_error(m, CKB_NOSPACE, topic, CKB_NO_SEGMENT, 0, room, room + 1);
}

static CKBI_UNUSED int ckbi_mount_container(ckbi_mounting *m, const ckbi_fact *fact)
{
    ckb_volume *v = m->volume;
    uint32_t state = (uint32_t)(fact->c & 0xFF);
    if (fact->a == 0 || fact->a == UINT32_MAX || state > CKB_CONTAINER_DELETED)
        return ckbi_mount_bad_fact(m, 0, fact->a);
    ckbi_container *c = ckbi_container_by_serial(v, fact->a);
    if (state == CKB_CONTAINER_NONE) {
        if (c)
            c->serial = 0;
        ckbi_container_relink(v);
        return CKB_OK;
    }
    if (!c) {
        c = ckbi_container_place(v);
        if (!c)
            return ckbi_mount_too_many(m, CKB_TOPIC_CONTAINER, v->config.max_containers);
        ckbi_container_fill(v, c, fact->b, fact->a);
    }
    c->state = state;
    c->flags = (uint32_t)(fact->c >> 8);
    c->swept = state == CKB_CONTAINER_DELETED;
    return CKB_OK;
}

/* The name of a log: a new one, a known one, or all zero when it was deleted. */
static CKBI_UNUSED int ckbi_mount_log_name(ckbi_mounting *m, const ckbi_fact *fact)
{
    ckb_volume *v = m->volume;
    if (fact->a == 0 || fact->a >= CKBI_LOG_UNKNOWN)
        return ckbi_mount_bad_fact(m, 0, fact->a);
    ckbi_log_slot *slot = ckbi_log_by_serial(v, fact->a);
    if (!slot)
        slot = ckbi_log_by_serial(v, 0);
    if (!slot)
        return ckbi_mount_too_many(m, CKB_TOPIC_LOG, v->config.max_logs);
    ckbi_put64((uint8_t *)slot->name, fact->b);
    ckbi_put64((uint8_t *)slot->name + 8, fact->c);
    slot->serial = slot->name[0] ? fact->a : 0;
    slot->newest = slot->lost_segment = CKB_NO_SEGMENT;
    if (v->next_serial <= fact->a)
        v->next_serial = fact->a + 1;
    return CKB_OK;
}

static CKBI_UNUSED int ckbi_mount_log_first(ckbi_mounting *m, const ckbi_fact *fact)
{
    ckbi_log_slot *slot = fact->a ? ckbi_log_by_serial(m->volume, fact->a) : NULL;
    if (!slot || fact->b == 0)
        return ckbi_mount_bad_fact(m, 0, fact->a);
    slot->first = fact->b;
    slot->first_epoch = fact->c;
    return CKB_OK;
}

/* Can a segment end there? Nothing on the medium is believed without looking. One that was cut ends
 * anywhere, one that may be continued on a write unit. */
static CKBI_UNUSED bool ckbi_extent_valid(const ckb_geometry *g, uint32_t kind, uint32_t end, uint32_t summary)
{
    return end >= ckbi_data_start(g) && end <= ckbi_data_limit(g) && summary < end &&
           (kind == CKBI_EXTENT_FULL || ckbi_align_down32(end, ckbi_write_units(g)) == end);
}

static CKBI_UNUSED bool ckbi_extent_is_known(const ckbi_segment *s)
{
    return s->extent == CKBI_EXTENT_FULL || s->extent == CKBI_EXTENT_PARKED;
}

static CKBI_UNUSED int ckbi_mount_segment_fact(ckbi_mounting *m, const ckbi_fact *fact)
{
    ckb_volume *v = m->volume;
    if (fact->a < ckbi_first_segment(v) || fact->a >= v->header.segment_count)
        return ckbi_mount_bad_fact(m, v->header.segment_count, fact->a);
    ckbi_segment *s = &v->segments[fact->a];
    ckbi_fill(s, 0, sizeof(*s));
    if (fact->b == CKBI_EPOCH_RETIRED) {
        s->state = CKB_SEGMENT_RETIRED;
    } else if (fact->b != 0) {
        s->epoch = fact->b;
        s->extent = (uint8_t)(fact->c >> 60);
        s->end = (uint32_t)(fact->c & 0x3FFFFFFF);
        s->summary = (uint32_t)(fact->c >> 30 & 0x3FFFFFFF);
        s->state = s->extent == CKBI_EXTENT_PARKED ? CKB_SEGMENT_PARKED : CKB_SEGMENT_FULL;
        if (s->extent > CKBI_EXTENT_FULL ||
            (s->extent != 0 && !ckbi_extent_valid(&v->medium.geometry, s->extent, s->end, s->summary)))
            return ckbi_mount_bad_fact(m, v->medium.geometry.segment_bytes, ckbi_bytes(s->end));
        if (v->next_epoch <= fact->b)
            v->next_epoch = fact->b + 1;
    }
    return CKB_OK;
}

/* A trimmed build finds what it does not know: it may look, but its journal would forget it. */
static CKBI_UNUSED int ckbi_mount_unknown(ckbi_mounting *m, int topic)
{
    return m->volume->config.read_only ? CKB_OK : ckbi_mount_too_many(m, topic, 0);
}

static CKBI_UNUSED int ckbi_mount_fact(ckbi_mounting *m, const uint8_t *bytes)
{
    ckb_volume *v = m->volume;
    ckbi_fact *fact = &v->facts[0];
    fact->kind = ckbi_get32(bytes);
    fact->a = ckbi_get32(bytes + 4);
    fact->b = ckbi_get64(bytes + 8);
    fact->c = ckbi_get64(bytes + 16);
    v->clean = fact->kind == CKBI_FACT_CLEAN;
    switch (fact->kind) {
    case CKBI_FACT_COUNTERS:
        v->next_epoch = ckbi_max(v->next_epoch, fact->b);
        v->next_serial = (uint32_t)ckbi_max(v->next_serial, fact->c);
        return CKB_OK;
    case CKBI_FACT_SEGMENT:
        return ckbi_mount_segment_fact(m, fact);
    case CKBI_FACT_CONTAINER:
        return CKBI_HAS_CHUNKS ? ckbi_mount_container(m, fact) : ckbi_mount_unknown(m, CKB_TOPIC_CONTAINER);
    case CKBI_FACT_SNAPSHOT_END:
        m->snapshot_complete = true;
        return CKB_OK;
    case CKBI_FACT_CLEAN:
        v->durable_epoch = fact->b;
        return CKB_OK;
    case CKBI_FACT_LOG:
        return CKBI_HAS_LOG ? ckbi_mount_log_name(m, fact) : ckbi_mount_unknown(m, CKB_TOPIC_LOG);
    case CKBI_FACT_LOG_FIRST:
        return CKBI_HAS_LOG ? ckbi_mount_log_first(m, fact) : CKB_OK;
    case CKBI_FACT_CHECKPOINT:
        v->checkpoint.at.segment = fact->a;
        v->checkpoint.at.epoch = fact->b;
        v->checkpoint.at.end = (uint32_t)(fact->c & 0x3FFFFFFF);
        v->checkpoint.entries = fact->c >> 30;
        return CKB_OK;
    case CKBI_FACT_SCRUB:
        v->scrub.segment = fact->a < v->header.segment_count ? fact->a : 0;
        v->scrub.bytes = fact->b;
        v->scrub.passes = (uint32_t)fact->c;
        v->scrub.damage = (uint32_t)(fact->c >> 32);
        return CKB_OK;
    default:
        return CKB_OK; /* of a later minor version, which is only mounted for reading */
    }
}

static CKBI_UNUSED void ckbi_mount_reset(ckb_volume *v)
{
    ckbi_fill(v->segments, 0, v->header.segment_count * sizeof(v->segments[0]));
    ckbi_fill(v->containers, 0, v->config.max_containers * sizeof(v->containers[0]));
    ckbi_fill(v->logs, 0, v->config.max_logs * sizeof(v->logs[0]));
    if (CKBI_HAS_CHUNKS)
        ckbi_container_relink(v);
    for (uint32_t i = 0; i < ckbi_first_segment(v); i++)
        v->segments[i].state = CKB_SEGMENT_JOURNAL;
    v->next_epoch = 1;
    v->next_serial = 1;
    v->durable_epoch = 0;
    v->checkpoint.at.epoch = 0;
    ckbi_fill(&v->scrub, 0, sizeof(v->scrub));
    v->clean = false;
}

/* The epoch in the NEXT record at `offset`, which stays in `r`; 0 when there is none. */
static CKBI_UNUSED int ckbi_journal_next(ckbi_source *source, uint32_t offset, ckbi_record *r, uint64_t *epoch)
{
    const uint8_t *at;
    *epoch = 0;
    int status = ckbi_source_record(source, offset, r);
    if (status == CKB_CORRUPT || (status == CKB_OK && r->type != CKBI_RECORD_NEXT))
        return CKB_OK;
    if (status == CKB_OK)
        status = ckbi_source_get(source, offset + CKBI_RECORD_COMMON / CKBI_UNIT, 8, &at);
    if (status == CKB_OK)
        *epoch = ckbi_get64(at);
    return status;
}

/* Begins a walk over one segment of the journal. One that goes on on the same side, which `*next` tells by
 * its own epoch, is durable to its end; any other epoch is that of the other side, which took over. */
static CKBI_UNUSED int ckbi_walk_open_journal(ckbi_walk *w, const ckbi_journal *j, uint64_t *next)
{
    const ckb_volume *v = w->source.volume;
    const ckb_geometry *g = &v->medium.geometry;
    int status = CKB_OK;
    ckbi_walk_open(w, j->segment, j->epoch);
    w->stop = ckbi_journal_limit(g, v->header.journal_span);
    w->source.ahead = false;
    *next = 0;
    if (v->header.journal_span > 1)
        status = ckbi_journal_next(&w->source, w->stop, &w->record, next);
    if (*next == j->epoch) {
        w->stop = w->known = w->record.durable;
        w->whole = true;
    } else if (status == CKB_OK) {
        status = ckbi_journal_next(&w->source, ckbi_seal_at(g), &w->record, next);
    }
    w->source.ahead = true;
    return status;
}

/* Takes in the facts of one record. */
static CKBI_UNUSED int ckbi_mount_facts(ckbi_mounting *m, ckbi_walk *walk)
{
    int status = CKB_OK;
    if (walk->record.type != CKBI_RECORD_FACTS)
        return CKB_OK;
    for (uint32_t i = 0; i < walk->record.payload_bytes / CKBI_FACT_BYTES && status == CKB_OK; i++) {
        const uint8_t *fact;
        status = ckbi_source_get(&walk->source, walk->record.payload + i * (CKBI_FACT_BYTES / CKBI_UNIT),
                                 CKBI_FACT_BYTES, &fact);
        if (status == CKB_OK)
            status = ckbi_mount_fact(m, fact);
    }
    return status;
}

/* Replays one journal segment, the place in v->journal. CKB_CORRUPT: damage below what was durable. */
static CKBI_UNUSED int ckbi_mount_journal_segment(ckbi_mounting *m, uint64_t *next)
{
    ckb_volume *v = m->volume;
    ckbi_walk *walk = &v->walk;
    uint32_t segment = v->journal.segment;
    int status = ckbi_walk_open_journal(walk, &v->journal, next);
    if (status != CKB_OK)
        return ckbi_mount_unread(m, status, segment, 0);
    walk->verify = true; /* facts are taken at their word */
    while ((status = ckbi_walk_next(walk)) == CKB_OK && !walk->payload_bad) {
        status = ckbi_mount_facts(m, walk);
        if (status != CKB_OK)
            return status;
    }
    if (status == CKB_OK || status == CKB_CORRUPT)
        return ckbi_mount_error(m, CKB_CORRUPT, CKB_TOPIC_JOURNAL, segment, walk->record.offset, 0, 0);
    if (status != CKB_END)
        return ckbi_mount_unread(m, status, segment, walk->at);
    v->journal.seed = walk->source.seed;
    v->journal.end = walk->stop;
    if (walk->dropped > 0) {
        v->clean = false;
        ckbi_tail_dropped(v, segment, walk->stop, walk->dropped);
    }
    return CKB_OK;
}

static CKBI_UNUSED int ckbi_mount_version(ckbi_mounting *m, uint32_t segment, const ckb_probe_info *info)
{
    return ckbi_mount_error(m, CKB_VERSION, CKB_TOPIC_VERSION, segment, 0,
                            (uint32_t)CKB_FORMAT_MAJOR << 16 | CKB_FORMAT_MINOR,
                            (uint32_t)info->format_major << 16 | info->format_minor);
}

/* Does a header fit this medium? */
static CKBI_UNUSED int ckbi_mount_geometry(ckbi_mounting *m, const ckb_probe_info *info, uint32_t segment)
{
    ckb_volume *v = m->volume;
    const ckb_geometry *g = &v->medium.geometry;
    int status = CKB_INVALID;
    uint32_t offset; /* of the header's field */
    uint64_t expected, found;
    if (info->format_minor > CKB_FORMAT_MINOR && !v->config.read_only)
        return ckbi_mount_version(m, segment, info);
    if (info->segment_bytes != g->segment_bytes) {
        offset = 40;
        expected = info->segment_bytes;
        found = g->segment_bytes;
    } else if (info->segment_count < 4) {
        status = CKB_CORRUPT;
        offset = 52;
        expected = 4;
        found = info->segment_count;
    } else if (info->segment_count > g->segment_count) {
        offset = 52;
        expected = info->segment_count;
        found = g->segment_count;
    } else if (info->write_unit != g->write_unit) {
        offset = 12;
        expected = info->write_unit;
        found = g->write_unit;
    } else if (info->journal_span == 0 || info->journal_span >= info->segment_count / 2) {
        status = CKB_CORRUPT;
        offset = 56;
        expected = 1;
        found = info->journal_span;
    } else {
        return CKB_OK;
    }
    ckbi_mount_error(m, status, CKB_TOPIC_GEOMETRY, segment, 0, expected, found);
    v->last_fault.offset = offset;
    return status;
}

/* CKB_NOTFOUND, CKB_CORRUPT: what that means is for the caller to say. */
static CKBI_UNUSED int ckbi_mount_header(ckbi_mounting *m, uint32_t segment, ckb_probe_info *info)
{
    int status = ckbi_header_read(&m->volume->walk.source, segment, info);
    if (status == CKB_OK || status == CKB_NOTFOUND || status == CKB_CORRUPT)
        return status;
    return status == CKB_VERSION ? ckbi_mount_version(m, segment, info)
                                 : ckbi_mount_unread(m, status, segment, 0);
}

/* Goes on to the next segment of the side that is replayed, which must be there. */
static CKBI_UNUSED int ckbi_mount_journal_step(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    ckb_probe_info *info = &v->probed[2];
    uint32_t segment = v->journal.segment + 2;
    int status = segment < ckbi_first_segment(v) ? ckbi_mount_header(m, segment, info) : CKB_CORRUPT;
    bool ours = status == CKB_OK && info->epoch == v->journal.epoch && ckbi_header_is_ours(v, info);
    if (status == CKB_NOTFOUND || (status == CKB_OK && !ours))
        status = CKB_CORRUPT;
    if (status == CKB_CORRUPT)
        return ckbi_mount_error(m, status, CKB_TOPIC_JOURNAL, segment, 0, v->journal.epoch, info->epoch);
    v->journal.segment = segment;
    return status;
}

/* Replays one side of the journal, which begins in segment 0 or 1. CKB_CORRUPT: as above. */
static CKBI_UNUSED int ckbi_mount_journal(ckbi_mounting *m, uint32_t segment, uint64_t epoch)
{
    ckb_volume *v = m->volume;
    uint64_t next;
    ckbi_mount_reset(v);
    v->next_epoch = epoch + 1;
    m->snapshot_complete = false;
    v->journal.segment = segment;
    v->journal.epoch = epoch;
    int status = ckbi_mount_journal_segment(m, &next);
    while (status == CKB_OK && next == epoch) {
        status = ckbi_mount_journal_step(m);
        if (status == CKB_OK)
            status = ckbi_mount_journal_segment(m, &next);
    }
    m->switched_to = status == CKB_OK ? next : 0;
    v->mount_epoch = v->next_epoch;
    v->epoch_clock = (uint32_t)v->next_epoch;
    return status;
}

/* Sets the volume's identity from the header of the journal segment that is tried next. */
static CKBI_UNUSED void ckbi_mount_identity(ckb_volume *v, const ckb_probe_info *info)
{
    v->header = *info;
    v->id_state = ckbi_crc_update(UINT32_MAX, v->header.volume_id, 16);
    v->index.seed = ckbi_get64(v->header.volume_id);
}

/* Finds the journal in force: the newer of the two whose snapshot is complete. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_mount_find_journal(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    ckb_probe_info *info = v->probed;
    int status[2];
    for (uint32_t i = 0; i < 2; i++) {
        status[i] = ckbi_mount_header(m, i, &info[i]);
        if (status[i] == CKB_OK)
            status[i] = ckbi_mount_geometry(m, &info[i], i);
        if (status[i] != CKB_OK && status[i] != CKB_NOTFOUND && status[i] != CKB_CORRUPT)
            return status[i];
    }
    if (status[0] != CKB_OK && status[1] != CKB_OK) {
        int worst = status[0] == CKB_CORRUPT || status[1] == CKB_CORRUPT ? CKB_CORRUPT : CKB_NOTFOUND;
        return ckbi_mount_error(m, worst, CKB_TOPIC_SEGMENT_HEADER, 0, 0, 0, 0);
    }
    uint32_t newer = status[0] != CKB_OK || (status[1] == CKB_OK && info[1].epoch > info[0].epoch);
    ckbi_mount_identity(v, &info[newer]);
    int result = ckbi_mount_journal(m, newer, info[newer].epoch);
    if (result == CKB_OK && m->snapshot_complete)
        /* The other one has taken over, and cannot be read. */
        return m->switched_to == 0 ? CKB_OK
                                   : ckbi_mount_error(m, CKB_CORRUPT, CKB_TOPIC_JOURNAL, newer ^ 1u, 0,
                                                      m->switched_to, info[newer ^ 1u].epoch);
    uint32_t older = newer ^ 1u;
    if (result != CKB_OK && result != CKB_CORRUPT)
        return result;
    if (result == CKB_OK && info[newer].epoch == 1)
        return ckbi_mount_error(m, CKB_NOTFOUND, CKB_TOPIC_JOURNAL, newer, 0, 0, 0); /* a format was cut off */
    if (result == CKB_OK)
        ckbi_mount_error(m, CKB_CORRUPT, CKB_TOPIC_JOURNAL, newer, 0, info[newer].epoch, 0);
    if (status[older] != CKB_OK || !ckbi_header_is_ours(v, &info[older]))
        return CKB_CORRUPT;
    /* A switch was interrupted, unless the older one says that it was completed. */
    v->first_damage = v->last_fault;
    ckbi_fill(&v->last_fault, 0, sizeof(v->last_fault));
    ckbi_mount_identity(v, &info[older]);
    result = ckbi_mount_journal(m, older, info[older].epoch);
    if (result != CKB_OK)
        return result;
    if (!m->snapshot_complete || m->switched_to != 0) {
        v->last_fault = v->first_damage;
        return CKB_CORRUPT;
    }
    ckbi_fill(&v->first_damage, 0, sizeof(v->first_damage));
    v->next_epoch = ckbi_max(v->next_epoch, info[newer].epoch + 1);
    return CKB_OK;
}

/* Counts a record, or takes it back: `sign` is 1 or all ones. Nobody else is there yet. */
static CKBI_UNUSED void ckbi_mount_count(ckb_volume *v, ckbi_container *c, const ckbi_slot *slot, uint64_t sign)
{
    bool tombstone = slot->version & CKBI_TOMBSTONE;
    ckbi_segment *s = &v->segments[slot->segment];
    uint32_t units = (uint32_t)sign * ckbi_slot_units(v, slot);
    s->live += units;
    s->deletes += tombstone ? units : 0;
    c->chunks += tombstone ? 0 : sign;
    c->bytes += tombstone ? 0 : sign * slot->length;
}

/* Is a record that one segment holds the copy of the same that another one holds? Compaction may have begun its
 * segment before. */
static CKBI_UNUSED bool ckbi_is_newer_copy(const ckbi_segment *mine, const ckbi_segment *theirs)
{
    return mine->compacted != theirs->compacted ? mine->compacted : mine->epoch > theirs->epoch;
}

/* Puts one version of a chunk into the index; the newest stays. */
static CKBI_UNUSED int ckbi_mount_chunk(ckbi_mounting *m, const ckbi_slot *entry)
{
    ckb_volume *v = m->volume;
    ckbi_container *c = m->container;
    m->records++;
    if (!c || c->serial != entry->serial)
        c = m->container = ckbi_container_by_serial(v, entry->serial);
    if (!c && entry->serial >= v->next_serial) {
        ckbi_damage(v, CKB_TOPIC_JOURNAL, entry->segment, entry->offset, v->next_serial, entry->serial);
        v->unidentified++;
        v->segments[entry->segment].cover = CKBI_NEVER_COVERED;
        if (entry->serial != UINT32_MAX)
            m->next_serial = ckbi_max32(m->next_serial, entry->serial + 1);
        return CKB_OK;
    }
    if (!c || c->state == CKB_CONTAINER_DELETED)
        return CKB_OK;
    uint64_t hash = ckbi_index_hash(&v->index, entry->serial, entry->block, entry->chunk);
    ckbi_partition *partition = ckbi_index_partition(&v->index, hash);
    ckbi_slot *slot = ckbi_index_find(&v->index, partition, hash, entry->serial, entry->block, entry->chunk);
    if (slot) {
        uint32_t mine = entry->version & ~CKBI_TOMBSTONE, theirs = slot->version & ~CKBI_TOMBSTONE;
        if (mine < theirs ||
            (mine == theirs && !ckbi_is_newer_copy(&v->segments[entry->segment], &v->segments[slot->segment])))
            return CKB_OK;
        ckbi_mount_count(v, c, slot, UINT64_MAX);
    } else {
        slot = ckbi_index_add(&v->index, partition, hash, entry->serial, entry->block, entry->chunk);
        if (!slot)
            return ckbi_mount_error(m, CKB_NOSPACE, CKB_TOPIC_INDEX_FULL, entry->segment, entry->offset,
                                    v->index.capacity, v->index.capacity + 1);
    }
    *slot = *entry;
    if (slot->version & CKBI_TOMBSTONE)
        slot->length = v->epoch_clock;
    ckbi_mount_count(v, c, slot, 1);
    return CKB_OK;
}

/* An entry of a summary or, with the segment behind it, of a checkpoint. */
static CKBI_UNUSED ckbi_slot ckbi_entry_get(const uint8_t *e, uint32_t segment)
{
    ckbi_slot slot = {ckbi_get64(e + 8),  ckbi_get32(e),      ckbi_get32(e + 4), segment,
                      ckbi_get32(e + 20), ckbi_get32(e + 24), ckbi_get32(e + 16)};
    return slot;
}

/* Can there be such a record in its segment? */
static CKBI_UNUSED bool ckbi_slot_valid(const ckb_volume *v, const ckbi_slot *slot)
{
    uint64_t end = (uint64_t)slot->offset + CKBI_RECORD_CHUNK_BYTES / CKBI_UNIT + ckbi_units(slot->length);
    return (slot->version & ~CKBI_TOMBSTONE) != 0 && slot->offset != 0 && end <= v->segments[slot->segment].end;
}

static CKBI_UNUSED void ckbi_slot_of_record(const ckbi_record *r, uint32_t segment, ckbi_slot *slot)
{
    slot->block = r->block;
    slot->serial = r->serial;
    slot->chunk = r->chunk;
    slot->segment = segment;
    slot->offset = r->offset;
    slot->length = r->payload_bytes;
    slot->version = r->aux | (r->type == CKBI_RECORD_DELETE ? CKBI_TOMBSTONE : 0);
}

/* Reads a segment's summaries from the last to the first. CKB_CORRUPT: one does not verify. */
static CKBI_UNUSED int ckbi_mount_summaries(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    const ckbi_segment *s = &v->segments[segment];
    uint32_t at = s->summary;
    ckbi_source *source = &v->walk.source;
    ckbi_record *r = &v->walk.record;
    ckbi_source_open(source, segment, s->epoch);
    source->ahead = true;
    while (at != 0) {
        /* A usual one in one read. */
        source->limit = ckbi_min32(at + CKB_WINDOW_BYTES / CKBI_UNIT, ckbi_segment_units(&v->medium.geometry));
        int status = ckbi_source_record(source, at, r);
        if (status == CKB_OK && (r->type != CKBI_RECORD_SUMMARY || r->aux >= at))
            status = CKB_CORRUPT;
        if (status == CKB_OK)
            status = ckbi_source_verify(source, r);
        for (uint32_t i = 0; status == CKB_OK && i < r->payload_bytes / CKBI_SUMMARY_ENTRY_BYTES; i++) {
            const uint8_t *e;
            uint32_t begin = i * CKBI_SUMMARY_ENTRY_BYTES; /* not always on a unit */
            status = ckbi_source_get(source, r->payload + begin / CKBI_UNIT,
                                     begin % CKBI_UNIT + CKBI_SUMMARY_ENTRY_BYTES, &e);
            if (status != CKB_OK)
                break;
            e += begin % CKBI_UNIT;
            ckbi_slot slot = ckbi_entry_get(e, segment);
            v->segments[segment].records += ckbi_slot_units(v, &slot);
            status = ckbi_slot_valid(v, &slot) ? ckbi_mount_chunk(m, &slot) : CKB_CORRUPT;
        }
        if (status != CKB_OK)
            return status;
        at = r->aux;
    }
    return CKB_OK;
}

/* What is known of where a segment ends: the journal's word, or a SEAL in its last unit. */
static CKBI_UNUSED int ckbi_mount_extent(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    const ckb_geometry *g = &v->medium.geometry;
    ckbi_segment *s = &v->segments[segment];
    const ckbi_record *r = &v->walk.record;
    const uint8_t *at;
    if (ckbi_extent_is_known(s) || !ckbi_has_seal(g))
        return CKB_OK;
    int status = ckbi_read_record(v, segment, s->epoch, ckbi_seal_at(g));
    if (status == CKB_CORRUPT || (status == CKB_OK && r->type != CKBI_RECORD_SEAL))
        return CKB_OK;
    if (status == CKB_OK)
        status = ckbi_source_get(&v->walk.source, r->offset + CKBI_RECORD_COMMON / CKBI_UNIT, 8, &at);
    if (status != CKB_OK)
        return ckbi_mount_unread(m, status, segment, ckbi_seal_at(g));
    if (ckbi_extent_valid(g, CKBI_EXTENT_FULL, r->aux, ckbi_get32(at))) {
        s->end = r->aux;
        s->summary = ckbi_get32(at);
        s->extent = CKBI_EXTENT_FULL;
    }
    return CKB_OK;
}

static CKBI_UNUSED void ckbi_walk_open_segment(ckbi_walk *w, uint32_t segment)
{
    const ckb_volume *v = w->source.volume;
    const ckbi_segment *s = &v->segments[segment];
    ckbi_walk_open(w, segment, s->epoch);
    switch (s->extent) {
    case CKBI_EXTENT_FULL:
    case CKBI_EXTENT_PARKED:
        w->known = w->stop = s->end;
        w->whole = true;
        break;
    case CKBI_EXTENT_RESUMED:
        w->known = s->end;
        w->whole = v->clean;
        break;
    default:
        w->whole = v->clean || s->epoch < v->durable_epoch;
        break;
    }
}

/* Reads the records of a segment into the index. */
static CKBI_UNUSED int ckbi_mount_records(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    ckbi_segment *s = &v->segments[segment];
    ckbi_walk *walk = &v->walk;
    ckbi_slot slot;
    bool empty = true;
    ckbi_walk_open_segment(walk, segment);
    v->mount_scanned++;
    for (;;) {
        int status = ckbi_walk_next(walk);
        if (status == CKB_END)
            break;
        empty = false;
        if (status == CKB_CORRUPT) {
            ckbi_damage(v, CKB_TOPIC_RECORD, segment, walk->record.offset, 0,
                        ckbi_bytes(walk->record.end - walk->record.offset));
            v->unidentified++;
            s->cover = CKBI_NEVER_COVERED;
            continue;
        }
        if (status != CKB_OK)
            return ckbi_mount_unread(m, status, segment, walk->at);
        if (walk->payload_bad)
            ckbi_damage(v, walk->record.type == CKBI_RECORD_SUMMARY ? CKB_TOPIC_SUMMARY : CKB_TOPIC_PAYLOAD,
                        segment, walk->record.offset, 0, 0);
        if (walk->record.type == CKBI_RECORD_START && walk->record.aux == CKBI_STREAM_CHECKPOINT) {
            s->state = CKB_SEGMENT_FREE; /* of one that is not in force */
            return CKB_OK;
        }
        if (walk->record.type == CKBI_RECORD_ENTRY && s->log == 0) {
            /* A log's segment whose START is damaged: its successor may know whose. */
            s->log = CKBI_LOG_UNKNOWN;
            s->first = walk->record.block;
            s->live = 1;
        }
        if (!CKBI_HAS_CHUNKS ||
            (walk->record.type != CKBI_RECORD_CHUNK && walk->record.type != CKBI_RECORD_DELETE))
            continue;
        ckbi_slot_of_record(&walk->record, segment, &slot);
        s->records += ckbi_slot_units(v, &slot);
        status = ckbi_mount_chunk(m, &slot);
        if (status != CKB_OK)
            return status;
    }
    if (CKBI_HAS_LOG && empty && s->extent == 0 && walk->dropped > 0) {
        /* Records without a START: torn, unless a log's next segment names it and shows that it was durable. */
        s->log = CKBI_LOG_UNKNOWN;
        s->end = walk->stop + walk->dropped;
        return CKB_OK;
    }
    if (walk->dropped > 0)
        ckbi_tail_dropped(v, segment, walk->stop, walk->dropped);
    if (!ckbi_extent_is_known(s)) {
        s->end = ckbi_min32(walk->stop, ckbi_data_limit(&v->medium.geometry));
        s->summary = 0; /* its summaries, if any, do not cover all of it */
    }
    if (empty && s->extent == 0)
        s->state = CKB_SEGMENT_FREE; /* prepared and never used; the next snapshot leaves it out */
    return CKB_OK;
}

/* ---- logs: first whose each segment is, then each log from its newest segment to its oldest */

/* Has it the START of this stream with all that follows in it? */
static CKBI_UNUSED bool ckbi_is_start(const ckbi_record *r, uint32_t stream)
{
    return r->type == CKBI_RECORD_START && r->aux == stream && r->header_bytes >= CKBI_RECORD_LOG_START_BYTES;
}

static CKBI_UNUSED void ckbi_start_decode(const uint8_t *h, ckbi_start *start)
{
    start->serial = (uint32_t)ckbi_min(ckbi_get64(h + 24), CKBI_LOG_UNKNOWN);
    start->place = ckbi_get64(h + 32);
    start->segment = ckbi_get32(h + 40);
    start->end = ckbi_get32(h + 44);
    start->epoch = ckbi_get64(h + 48);
    start->first = ckbi_get64(h + 56);
}

/* Reads the START of a segment into v->start. False: it is of another stream, or `*status` is an error. */
static CKBI_UNUSED bool ckbi_mount_start(ckbi_mounting *m, uint32_t segment, uint32_t stream, int *status)
{
    ckb_volume *v = m->volume;
    const ckbi_record *r = &v->walk.record;
    uint32_t at = ckbi_data_start(&v->medium.geometry);
    const uint8_t *h = NULL;
    *status = ckbi_read_record(v, segment, v->segments[segment].epoch, at);
    bool there = *status == CKB_OK && ckbi_is_start(r, stream);
    v->segments[segment].compacted =
        *status == CKB_OK && r->type == CKBI_RECORD_START && r->aux == CKBI_STREAM_COMPACTED;
    if (there)
        *status = ckbi_source_get(&v->walk.source, at, CKBI_RECORD_LOG_START_BYTES, &h);
    if (*status == CKB_CORRUPT)
        *status = CKB_OK; /* the walk over its records tells what that means */
    if (*status != CKB_OK)
        ckbi_mount_unread(m, *status, segment, at);
    if (!there || *status != CKB_OK)
        return false;
    ckbi_start_decode(h, &v->start);
    return true;
}

/* Notes whose a log's segment is, by v->start. */
static CKBI_UNUSED int ckbi_mount_log_segment(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    ckbi_segment *s = &v->segments[segment];
    const ckbi_start *start = &v->start;
    const ckbi_log_slot *slot = ckbi_log_by_serial(v, start->serial);
    s->first = start->first;
    s->live = 0;
    if (s->end == 0) /* nobody reads a void one, but it ends somewhere all the same */
        s->end = ckbi_data_start(&v->medium.geometry);
    if (slot && s->epoch >= slot->first_epoch) {
        s->log = start->serial;
        s->live = 1; /* as much as it holds, once that is known */
    } else if (!slot && start->serial >= v->next_serial) {
        ckbi_damage(v, CKB_TOPIC_JOURNAL, segment, ckbi_data_start(&v->medium.geometry), v->next_serial,
                    start->serial);
        v->unidentified++;
        s->log = CKBI_LOG_UNKNOWN;
        s->live = 1;
        if (start->serial != CKBI_LOG_UNKNOWN)
            m->next_serial = ckbi_max32(m->next_serial, start->serial + 1);
    } else if (s->state == CKB_SEGMENT_PARKED) {
        s->state = CKB_SEGMENT_FULL; /* void, and nothing that a writer of chunks may continue */
        s->extent = CKBI_EXTENT_FULL;
    }
    return CKB_OK;
}

static CKBI_UNUSED CKBI_NOINLINE void ckbi_entry_damage(ckb_volume *v, int topic, uint32_t segment, uint32_t at,
                                                        uint64_t index, uint64_t expected, uint64_t found)
{
    ckbi_damage(v, topic, segment, at, expected, found);
    CKB_MUTEX_LOCK(&v->lock);
    v->last_fault.index = index;
    if (v->damage == 1)
        v->first_damage.index = index;
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* May an entry have this index? */
static CKBI_UNUSED bool ckbi_entry_follows(uint64_t expected, uint64_t index, uint64_t first)
{
    return expected == 0 || index == expected || (index > expected && index <= first);
}

static CKBI_UNUSED void ckbi_mount_entry(ckb_volume *v, ckbi_scan *scan, uint32_t segment)
{
    const ckbi_record *r = &v->walk.record;
    if (v->walk.payload_bad)
        ckbi_entry_damage(v, CKB_TOPIC_ENTRY, segment, r->offset, r->block, 0, r->payload_bytes);
    if (!ckbi_entry_follows(scan->expected, r->block, scan->first))
        ckbi_entry_damage(v, CKB_TOPIC_ENTRY_ORDER, segment, r->offset, r->block, scan->expected, r->block);
    scan->expected = r->block + 1;
    v->segments[segment].summary = r->offset;
    if (r->aux != UINT32_MAX && r->aux < r->block)
        scan->durable = ckbi_max(scan->durable, r->block - 1 - r->aux);
}

/* Walks over the records of a log's segment: where it ends, its last entry, what its entries show. */
static CKBI_UNUSED int ckbi_mount_entries(ckbi_mounting *m, uint32_t segment, ckbi_scan *scan)
{
    ckb_volume *v = m->volume;
    ckbi_segment *s = &v->segments[segment];
    ckbi_walk *walk = &v->walk;
    const ckbi_record *r = &walk->record;
    int status;
    scan->expected = s->first;
    ckbi_walk_open_segment(walk, segment);
    walk->whole = walk->whole || scan->whole;
    s->summary = 0;
    while ((status = ckbi_walk_next(walk)) != CKB_END) {
        if (status == CKB_OK && r->type == CKBI_RECORD_ENTRY) {
            ckbi_mount_entry(v, scan, segment);
        } else if (status == CKB_CORRUPT) {
            if (scan->whole && scan->expected > scan->needed) {
                walk->stop = r->offset; /* only the end of a batch is missing */
                break;
            }
            ckbi_entry_damage(v, CKB_TOPIC_ENTRY, segment, r->offset, scan->expected, 0,
                              ckbi_bytes(r->end - r->offset));
            scan->expected = 0;
        } else if (status != CKB_OK) {
            return ckbi_mount_unread(m, status, segment, walk->at);
        }
    }
    s->end = ckbi_min32(walk->stop, ckbi_data_limit(&v->medium.geometry));
    return CKB_OK;
}

/* Finds the end of a log's segment of which nobody knows it. Where entries are missing that entries behind
 * them show to be durable, what looks torn is damage, and the walk goes on behind it. */
static CKBI_UNUSED int ckbi_mount_log_end(ckbi_mounting *m, uint32_t segment, ckbi_scan *scan)
{
    ckb_volume *v = m->volume;
    uint32_t told = v->segments[segment].summary;
    scan->whole = false;
    v->mount_scanned++;
    int status = ckbi_mount_entries(m, segment, scan);
    if (status == CKB_OK && scan->expected != 0 && ckbi_max(scan->expected, scan->first) <= scan->needed) {
        scan->whole = true;
        return ckbi_mount_entries(m, segment, scan);
    }
    scan->lost = v->segments[segment].summary < told || (v->walk.whole && scan->expected == 0);
    if (status == CKB_OK && v->walk.dropped > 0)
        ckbi_tail_dropped(v, segment, v->walk.stop, v->walk.dropped);
    return status;
}

/* Index of the last entry of a segment, by the place that is known of it; the one before its first entry when
 * it has none. CKB_CORRUPT: there is no entry at that place. */
static CKBI_UNUSED int ckbi_mount_last_index(ckbi_mounting *m, uint32_t segment, uint64_t *index)
{
    ckb_volume *v = m->volume;
    const ckbi_segment *s = &v->segments[segment];
    const ckbi_record *r = &v->walk.record;
    uint32_t at = s->summary;
    *index = s->first - 1;
    if (at == 0)
        return CKB_OK;
    int status = ckbi_read_record(v, segment, s->epoch, at);
    if (status == CKB_OK && (r->type != CKBI_RECORD_ENTRY || r->block < s->first))
        status = CKB_CORRUPT;
    if (status == CKB_CORRUPT)
        ckbi_entry_damage(v, CKB_TOPIC_ENTRY, segment, at, s->first, 0, 0);
    else if (status != CKB_OK)
        ckbi_mount_unread(m, status, segment, at);
    else
        *index = r->block;
    return status;
}

/* Reads the segments of which nobody knows where they end, newest first: an entry that shows all of the
 * segment before its own to be durable makes damage there what it is. */
static CKBI_UNUSED int ckbi_mount_log_ends(ckbi_mounting *m, ckbi_chain *c)
{
    ckb_volume *v = m->volume;
    ckbi_scan *scan = &v->scan;
    uint64_t behind = UINT64_MAX;
    int status = CKB_OK;
    ckbi_fill(scan, 0, sizeof(*scan));
    scan->first = c->slot->first;
    for (uint32_t i = c->count; i-- > 0 && status == CKB_OK;) {
        ckbi_segment *s = &v->segments[c->segments[i]];
        scan->needed = ckbi_min(scan->durable, behind - 1);
        if (!ckbi_extent_is_known(s))
            status = ckbi_mount_log_end(m, c->segments[i], scan);
        if (s->extent != 0) /* segments are made durable in their order */
            scan->durable = ckbi_max(scan->durable, s->first - 1);
        if (scan->lost && i + 1 == c->count)
            c->slot->lost_segment = c->segments[i];
        s->live = s->end;
        behind = s->first;
    }
    c->durable = scan->durable;
    return status;
}

/* All of a log's segment is a tail that did not last: it is free again. */
static CKBI_UNUSED void ckbi_mount_log_free(ckb_volume *v, uint32_t segment)
{
    ckbi_segment *s = &v->segments[segment];
    uint32_t start = ckbi_data_start(&v->medium.geometry);
    ckbi_tail_dropped(v, segment, start, s->end - start);
    s->state = CKB_SEGMENT_FREE;
    s->log = s->live = 0;
}

/* The segments from the nth on were written behind a tail that did not last. */
static CKBI_UNUSED void ckbi_mount_log_drop(ckbi_mounting *m, ckbi_chain *c, uint32_t n)
{
    for (uint32_t i = n; i < c->count; i++)
        ckbi_mount_log_free(m->volume, c->segments[i]);
    c->count = n;
}

/* Holds a segment against the one before it, by v->start. False: that one is torn, or was never written, and
 * nothing shows that it was durable: this one goes. */
static CKBI_UNUSED bool ckbi_mount_log_link(ckbi_mounting *m, ckbi_chain *c, uint32_t n)
{
    ckb_volume *v = m->volume;
    const ckbi_start *start = &v->start;
    uint32_t segment = c->segments[n], before = n > 0 ? c->segments[n - 1] : CKB_NO_SEGMENT;
    ckbi_segment *s = &v->segments[segment];
    const ckbi_segment *b = n > 0 ? &v->segments[before] : NULL;
    /* A lost header was durable before the segment was used: that is no torn tail. */
    ckbi_segment *named = start->segment < v->header.segment_count ? &v->segments[start->segment] : NULL;
    bool lost = named && named->state == CKB_SEGMENT_LOST && named->epoch == start->epoch;
    if (lost)
        named->log = c->slot->serial; /* and no other log's end is lost with it */
    s->previous = before;
    if (b && start->segment == before && start->epoch == b->epoch) {
        /* Where only the end of its last batch is missing, all its entries are there. */
        uint64_t last = 0;
        return b->end >= start->end || ckbi_extent_is_known(b) ||
               (ckbi_mount_last_index(m, before, &last) == CKB_OK && last + 1 == s->first);
    }
    if (s->first <= c->slot->first)
        return true; /* what was before it is purged */
    if (b && start->place == c->place) {
        ckbi_damage(v, CKB_TOPIC_LOG_DOUBLE, segment, 0, start->place, before);
        s->previous = b->previous;
        v->segments[before].log = CKBI_LOG_UNKNOWN;
        v->segments[before].previous = segment; /* for a check: which one counts instead */
        return true;
    }
    uint64_t from = c->slot->first;
    if (b && ckbi_mount_last_index(m, before, &from) == CKB_OK)
        from = ckbi_max(from + 1, c->slot->first);
    if (c->durable < from && !lost)
        return false;
    ckbi_entry_damage(v, CKB_TOPIC_LOG_HOLE, segment, 0, start->epoch, from, s->first - 1);
    return true;
}

/* May a segment that is lost have held entries newer than all there are? */
static CKBI_UNUSED void ckbi_mount_log_lost(ckb_volume *v, ckbi_log_slot *slot)
{
    uint64_t epoch = slot->first_epoch;
    if (slot->newest != CKB_NO_SEGMENT)
        epoch = v->segments[slot->newest].epoch;
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++) {
        const ckbi_segment *s = &v->segments[i];
        bool anybodys = s->state == CKB_SEGMENT_LOST && s->log == 0;
        if ((anybodys || s->log == CKBI_LOG_UNKNOWN) && s->epoch > epoch)
            slot->lost_segment = i;
    }
}

/* A segment without a START, whose successor told whose it is. False: nothing shows that it was durable. */
static CKBI_UNUSED bool ckbi_mount_log_headless(ckb_volume *v, const ckbi_chain *c, uint32_t n)
{
    ckbi_segment *s = &v->segments[c->segments[n]];
    s->previous = n > 0 ? c->segments[n - 1] : CKB_NO_SEGMENT;
    return s->end > ckbi_data_start(&v->medium.geometry);
}

/* Segments of which no entry is kept were only not freed yet. */
static CKBI_UNUSED void ckbi_mount_log_trim(ckb_volume *v, const ckbi_chain *c)
{
    for (uint32_t n = 0; n + 1 < c->count; n++) {
        if (v->segments[c->segments[n + 1]].first > c->slot->first)
            break;
        v->segments[c->segments[n]].live = 0;
        v->segments[c->segments[n + 1]].previous = CKB_NO_SEGMENT;
    }
}

/* One log: its ends, its links, its last index. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_mount_log(ckbi_mounting *m, ckbi_chain *c)
{
    ckb_volume *v = m->volume;
    ckbi_log_slot *slot = c->slot;
    uint64_t last = 0;
    int status = ckbi_mount_log_ends(m, c);
    for (uint32_t n = 0; n < c->count && status == CKB_OK; n++) {
        bool there = ckbi_mount_start(m, c->segments[n], CKBI_STREAM_LOG, &status);
        if (!(there ? ckbi_mount_log_link(m, c, n) : ckbi_mount_log_headless(v, c, n)))
            ckbi_mount_log_drop(m, c, n);
        if (n < c->count)
            c->place = there ? v->start.place : c->place + 1;
    }
    slot->next = slot->first;
    if (status != CKB_OK || c->count == 0)
        return status;
    ckbi_mount_log_trim(v, c);
    slot->newest = c->segments[c->count - 1];
    slot->place = c->place;
    status = ckbi_mount_last_index(m, slot->newest, &last);
    if (status == CKB_CORRUPT) {
        uint32_t told = v->segments[slot->newest].summary;
        v->scan.whole = false;
        status = ckbi_mount_entries(m, slot->newest, &v->scan);
        if (status == CKB_OK)
            status = ckbi_mount_last_index(m, slot->newest, &last);
        if (v->segments[slot->newest].summary < told)
            slot->lost_segment = slot->newest;
    }
    slot->next = ckbi_max(slot->first, last + 1);
    return status;
}

/* By log, then by epoch. */
static CKBI_UNUSED bool ckbi_chain_before(const ckb_volume *v, uint32_t a, uint32_t b)
{
    const ckbi_segment *x = &v->segments[a], *y = &v->segments[b];
    return x->log != y->log ? x->log < y->log : x->epoch < y->epoch;
}

/* Heapsort (Williams 1964): in place, and no order of the medium makes it slow. */
static CKBI_UNUSED void ckbi_chain_sort(const ckb_volume *v, uint32_t *list, uint32_t count)
{
    for (uint32_t built = count / 2, end = count; end > 1;) {
        uint32_t root = 0, moved;
        if (built > 0) {
            root = --built;
        } else {
            moved = list[--end];
            list[end] = list[0];
            list[0] = moved;
        }
        moved = list[root];
        for (uint32_t child = 2 * root + 1; child < end; child = 2 * root + 1) {
            if (child + 1 < end && ckbi_chain_before(v, list[child], list[child + 1]))
                child++;
            if (!ckbi_chain_before(v, moved, list[child]))
                break;
            list[root] = list[child];
            root = child;
        }
        list[root] = moved;
    }
}

/* Finds the index of the first entry of a segment without a START; 0: there is none. */
static CKBI_UNUSED int ckbi_mount_headless(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    ckbi_segment *s = &v->segments[segment];
    ckbi_walk *walk = &v->walk;
    int status = CKB_OK;
    ckbi_walk_open_segment(walk, segment);
    walk->whole = true;
    while (s->first == 0 && (status == CKB_OK || status == CKB_CORRUPT)) {
        status = ckbi_walk_next(walk);
        if (status == CKB_OK && walk->record.type == CKBI_RECORD_ENTRY)
            s->first = walk->record.block;
    }
    if (status == CKB_OK || status == CKB_CORRUPT || status == CKB_END)
        return CKB_OK;
    return ckbi_mount_unread(m, status, segment, walk->at);
}

/* Gives segments whose START is lost to the log whose next segment names them. */
static CKBI_UNUSED int ckbi_mount_adopt(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    int status = CKB_OK;
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count && status == CKB_OK; i++) {
        uint32_t serial = v->segments[i].log;
        if (serial == 0 || serial == CKBI_LOG_UNKNOWN || !ckbi_mount_start(m, i, CKBI_STREAM_LOG, &status))
            continue;
        ckbi_segment *s = v->start.segment < v->header.segment_count ? &v->segments[v->start.segment] : NULL;
        if (!s || s->log != CKBI_LOG_UNKNOWN || s->epoch != v->start.epoch)
            continue;
        uint32_t named = v->start.segment;
        if (s->first == 0)
            status = ckbi_mount_headless(m, named);
        if (s->first != 0)
            s->log = serial;
    }
    /* One that nobody named was torn at its START. */
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++)
        if (v->segments[i].log == CKBI_LOG_UNKNOWN && v->segments[i].first == 0)
            ckbi_mount_log_free(v, i);
    return status;
}

static CKBI_UNUSED int ckbi_mount_logs(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    uint32_t count = 0, unknown = 0;
    ckbi_chain *chain = &v->chain;
    int status = CKB_OK;
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++)
        unknown += v->segments[i].log == CKBI_LOG_UNKNOWN;
    if (unknown > 0)
        status = ckbi_mount_adopt(m);
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++)
        if (v->segments[i].log != 0 && v->segments[i].log != CKBI_LOG_UNKNOWN)
            v->pool[count++] = i;
    ckbi_chain_sort(v, v->pool, count);
    for (uint32_t i = 0; i < v->config.max_logs && status == CKB_OK; i++) {
        ckbi_fill(chain, 0, sizeof(*chain));
        chain->slot = &v->logs[i];
        if (v->logs[i].serial == 0)
            continue;
        chain->segments = v->pool;
        for (uint32_t n = 0; n < count; n++) {
            chain->segments += chain->count == 0 && v->segments[v->pool[n]].log != chain->slot->serial;
            chain->count += v->segments[v->pool[n]].log == chain->slot->serial;
        }
        status = ckbi_mount_log(m, chain);
    }
    for (uint32_t i = 0; i < v->config.max_logs; i++)
        if (v->logs[i].serial != 0)
            ckbi_mount_log_lost(v, &v->logs[i]);
    return status;
}

static CKBI_UNUSED CKBI_NOINLINE int ckbi_mount_segment(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    ckbi_segment *s = &v->segments[segment];
    ckb_probe_info *info = &v->probed[2];
    int status = ckbi_mount_header(m, segment, info);
    if (status == CKB_NOTFOUND || status == CKB_CORRUPT ||
        (status == CKB_OK && (info->epoch != s->epoch || !ckbi_header_is_ours(v, info)))) {
        ckbi_segment_set_lost(v, segment, s->epoch, info->epoch);
        return CKB_OK;
    }
    if (status == CKB_OK)
        status = ckbi_mount_extent(m, segment);
    bool log = status == CKB_OK && ckbi_mount_start(m, segment, CKBI_STREAM_LOG, &status);
    if (CKBI_HAS_LOG && log)
        return ckbi_mount_log_segment(m, segment);
    if (CKBI_HAS_CHUNKS && status == CKB_OK && s->summary != 0 && ckbi_extent_is_known(s)) {
        status = ckbi_mount_summaries(m, segment);
        if (status == CKB_OK)
            v->mount_summaries++;
        else if (status == CKB_IO)
            ckbi_mount_unread(m, status, segment, s->summary);
        if (status != CKB_CORRUPT)
            return status;
        ckbi_damage(v, CKB_TOPIC_SUMMARY, segment, s->summary, 0, 0);
        s->records = m->records = 0; /* they are counted again */
        status = CKB_OK;
    }
    return status == CKB_OK ? ckbi_mount_records(m, segment) : status;
}

/* When facts may have been cut off the journal, a free segment may be one whose allocation was among
 * them; its header and first record tell, and it is taken back. */
static CKBI_UNUSED int ckbi_mount_orphans(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    if (v->dropped_tails == 0)
        return CKB_OK;
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++) {
        if (v->segments[i].state != CKB_SEGMENT_FREE || !ckbi_segment_is_orphan(v, i))
            continue;
        v->segments[i].epoch = v->probed[2].epoch;
        v->segments[i].state = CKB_SEGMENT_FULL;
        v->keep_deletes = true;
        int status = ckbi_mount_segment(m, i);
        if (status != CKB_OK)
            return status;
    }
    return CKB_OK;
}

/* ---- the checkpoint: what the segments that it covers hold, in the order of the index */

/* Takes in one row or entry. CKB_CORRUPT: there can be none such. */
static CKBI_UNUSED int ckbi_mount_checkpoint_item(ckbi_mounting *m, const uint8_t *e, bool row)
{
    ckb_volume *v = m->volume;
    uint32_t segment = ckbi_get32(row ? e : e + CKBI_SUMMARY_ENTRY_BYTES);
    if (segment >= v->header.segment_count)
        return CKB_CORRUPT;
    ckbi_segment *s = &v->segments[segment];
    if (!row) {
        v->mount_entries++;
        if (s->cover != CKBI_COVERED)
            return CKB_OK; /* it is read anyway, or gone with what was in it */
        ckbi_slot slot = ckbi_entry_get(e, segment);
        return ckbi_slot_valid(v, &slot) ? ckbi_mount_chunk(m, &slot) : CKB_CORRUPT;
    }
    /* Under another epoch it has other records by now. */
    if (s->epoch != ckbi_get64(e + 8) || s->state != CKB_SEGMENT_FULL)
        return CKB_OK;
    s->records = ckbi_get32(e + 4) & ~CKBI_ROW_COMPACTED;
    s->compacted = (ckbi_get32(e + 4) & CKBI_ROW_COMPACTED) != 0;
    s->end = ckbi_get32(e + 16);
    s->summary = ckbi_get32(e + 20);
    s->extent = CKBI_EXTENT_FULL;
    s->cover = CKBI_COVERED;
    v->mount_covered++;
    return ckbi_extent_valid(&v->medium.geometry, CKBI_EXTENT_FULL, s->end, s->summary) ? CKB_OK : CKB_CORRUPT;
}

/* Takes in one record, which verifies. */
static CKBI_UNUSED int ckbi_mount_checkpoint_record(ckbi_mounting *m, ckbi_walk *walk)
{
    const ckbi_record *r = &walk->record;
    bool row = r->aux == CKBI_CHECKPOINT_ROWS;
    uint32_t item = row ? CKBI_CHECKPOINT_ROW_BYTES : CKBI_CHECKPOINT_ENTRY_BYTES;
    uint32_t most = ckbi_source_step(&walk->source);
    int status = CKB_OK;
    for (uint32_t done = 0; done < r->payload_bytes && status == CKB_OK;) {
        const uint8_t *e;
        uint32_t step = ckbi_min32(r->payload_bytes - done, most) / item * item;
        if (step == 0)
            return CKB_CORRUPT;
        status = ckbi_source_get(&walk->source, r->payload + done / CKBI_UNIT, step, &e);
        for (uint32_t at = 0; at < step && status == CKB_OK; at += item)
            status = ckbi_mount_checkpoint_item(m, e + at, row);
        done += step;
    }
    return status;
}

/* Takes in one segment. CKB_CORRUPT: walk.record.offset is the place. */
static CKBI_UNUSED int ckbi_mount_checkpoint_segment(ckbi_mounting *m, uint32_t segment)
{
    ckb_volume *v = m->volume;
    const ckbi_segment *s = &v->segments[segment];
    ckbi_walk *walk = &v->walk;
    ckbi_walk_open(walk, segment, s->epoch);
    walk->known = walk->stop = walk->source.limit = s->end;
    walk->whole = walk->verify = true;
    int status = CKB_OK;
    while (status == CKB_OK && (status = ckbi_walk_next(walk)) == CKB_OK) {
        if (walk->payload_bad)
            status = CKB_CORRUPT;
        else if (walk->record.type == CKBI_RECORD_CHECKPOINT)
            status = ckbi_mount_checkpoint_record(m, walk);
    }
    return status == CKB_END ? CKB_OK : status;
}

/* Finds the segments of the checkpoint in v->pool, newest first. CKB_CORRUPT: one of them is not there;
 * m->segment is its number. What is named is the checkpoint's whatever it holds. */
static CKBI_UNUSED int ckbi_mount_checkpoint_chain(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    ckbi_start *start = &v->start;
    int status = CKB_OK;
    start->segment = v->checkpoint.at.segment;
    start->epoch = v->checkpoint.at.epoch;
    start->end = v->checkpoint.at.end;
    m->offset = ckbi_data_start(&v->medium.geometry);
    while (status == CKB_OK && start->segment != CKB_NO_SEGMENT) {
        m->segment = start->segment;
        ckbi_segment *s = &v->segments[ckbi_min(m->segment, v->header.segment_count - 1)];
        if (m->segment >= v->header.segment_count || s->epoch != start->epoch || s->state != CKB_SEGMENT_FULL)
            return CKB_CORRUPT;
        v->pool[m->count++] = m->segment;
        s->state = CKB_SEGMENT_CHECKPOINT;
        s->end = start->end;
        bool there = ckbi_extent_valid(&v->medium.geometry, 0, s->end, 0) &&
                     ckbi_mount_start(m, m->segment, CKBI_STREAM_CHECKPOINT, &status);
        if (status == CKB_OK && !there)
            status = CKB_CORRUPT;
        s->previous = start->segment;
    }
    return status;
}

/* There is no checkpoint in force; what it was kept in is free. */
static CKBI_UNUSED int ckbi_mount_checkpoint_forget(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    v->checkpoint.at.epoch = 0;
    while (m->count > 0)
        v->segments[v->pool[--m->count]].state = CKB_SEGMENT_FREE;
    return CKB_OK;
}

/* A checkpoint that does not verify: all that was taken from it is forgotten. */
static CKBI_UNUSED int ckbi_mount_checkpoint_undo(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    ckbi_index_clear(&v->index);
    v->mount_covered = 0;
    v->mount_entries = 0;
    int status = ckbi_mount_find_journal(m);
    if (status != CKB_OK)
        return status;
    ckbi_damage(v, CKB_TOPIC_CHECKPOINT, m->segment, m->offset, 0, 0);
    return ckbi_mount_checkpoint_forget(m);
}

/* Takes in the checkpoint. Where the journal lost its tail nobody knows whether what the checkpoint covers is
 * still there: then all segments are read. CKB_CORRUPT: it does not verify, at m->segment and m->offset. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_mount_checkpoint_load(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    m->count = 0;
    if (v->checkpoint.at.epoch == 0)
        return CKB_OK;
    int status = ckbi_mount_checkpoint_chain(m);
    if ((status == CKB_OK || status == CKB_CORRUPT) && (v->config.ignore_checkpoint || v->dropped_tails > 0))
        return ckbi_mount_checkpoint_forget(m);
    for (uint32_t i = m->count; i-- > 0 && status == CKB_OK;) {
        m->segment = v->pool[i];
        status = ckbi_mount_checkpoint_segment(m, m->segment);
        m->offset = status == CKB_CORRUPT ? v->walk.record.offset : v->walk.at;
    }
    if (status == CKB_OK && v->mount_entries != v->checkpoint.entries)
        status = CKB_CORRUPT;
    if (status == CKB_OK || status == CKB_CORRUPT || status == CKB_NOSPACE)
        return status;
    return ckbi_mount_error(m, status, CKB_TOPIC_MEDIUM, m->segment, m->offset, 0, 0);
}

static CKBI_UNUSED int ckbi_mount_checkpoint(ckbi_mounting *m)
{
    int status = ckbi_mount_checkpoint_load(m);
    return status == CKB_CORRUPT ? ckbi_mount_checkpoint_undo(m) : status;
}

static CKBI_UNUSED void ckbi_mount_finish(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    v->next_serial = ckbi_max32(v->next_serial, m->next_serial);
    v->mount_serial = v->next_serial;
    v->journal_switch = true;
    v->unsettled = !v->clean;
    v->supersede_clock = 1;
    v->victim = CKB_NO_SEGMENT;
    uint32_t first = ckbi_first_segment(v);
    /* Wear spreads over mounts too. */
    v->free_cursor = v->dead_cursor = first + (uint32_t)(v->next_epoch % (v->header.segment_count - first));
    v->free_count = 0;
    for (uint32_t i = 0; i < v->header.segment_count; i++) {
        ckbi_segment *s = &v->segments[i];
        v->free_count += s->state == CKB_SEGMENT_FREE;
        v->parked_count += s->state == CKB_SEGMENT_PARKED && s->log == 0;
        if (s->live == 0)
            s->died_at = 1;
        if (v->clean && s->state == CKB_SEGMENT_FULL)
            s->extent = CKBI_EXTENT_FULL;
    }
}

#ifndef CKB_READ_ONLY
/* ---------------------------------------------------------------------------------------------- >>writer
 * The appender. Records collect in the active buffer, which always begins on a write unit of the
 * segment; one thread at a time (`busy`) takes it to the medium while others fill the second buffer.
 * Counters: appended <= durable tickets, written and durable offsets of the current segment. */

typedef struct ckbi_dirty {
    uint32_t segment;
    uint32_t seed;
    uint32_t end, summary; /* units */
} ckbi_dirty;

struct ckb_writer {
    ckb_volume *volume;
    struct ckb_log *log; /* whose appender this is; null: one of chunks */
    CKB_MUTEX lock;
    CKB_CONDITION changed;   /* a turn ended, or bytes reached the medium */
    CKB_CONDITION committed; /* a group is durable, or failed; the last of its members has left */
    uint32_t number;         /* place in the volume's list, from 0 */
    uint32_t pins;           /* readers that look into the buffers */
    bool busy;               /* a thread does I/O for this writer */
    bool exclusive;          /* and nobody may append meanwhile */
    int error;               /* sticky */

    uint32_t segment; /* CKB_NO_SEGMENT: none yet */
    uint32_t seed;
    uint32_t base; /* where in the segment the active buffer begins */
    size_t fill;
    uint32_t written; /* the medium has all of the segment below */
    uint32_t durable; /* and this much survives power loss */
    uint8_t *buffer[2];
    uint32_t active;
    uint32_t flight_base; /* what the other buffer holds while it is written */
    size_t flight_bytes;
    size_t buffer_bytes;
    uint32_t room_end; /* of records and the summary of them: behind it there is room for batch ends */
    uint32_t payload_max;
    uint32_t live;    /* units appended to this segment that count */
    uint32_t records; /* and all, whether they count or not */
    uint32_t deletes; /* and those that are deletes */
    bool reserve;     /* the segment comes from the reserve: deletes only */
    bool compacts;    /* moves what is there: to fresh segments only, to the last one if need be */

    uint32_t promised;                 /* room that must be left in the segment behind the next record */
    uint64_t appended, durable_ticket; /* counts of appends */
    uint64_t finished;                 /* of those, in segments that are full */
    uint64_t groups;                   /* commits that went to the medium */
    uint32_t waiters;                  /* threads that wait for a commit */
    uint32_t members;                  /* of those, in the group that is under way */
    uint32_t leaving;                  /* of those, members of the last group that have not left yet */
    uint32_t clean_clock;              /* supersede clock at the last commit's cut */

    uint32_t dirty_count; /* of `dirty` */

    uint8_t *summary; /* encoded entries since the last summary record */
    uint32_t summary_count, summary_max, summary_last;

    ckbi_source compare; /* of whoever has the turn: looks at a chunk that is there already */
    ckbi_record compared;

    uint64_t cached_id; /* the container of the last append */
    ckbi_container *cached;
    uint32_t cached_serial;

    ckbi_dirty dirty[CKBI_DIRTY_MAX];
};

#endif /* CKB_READ_ONLY */
/* An open log. The lock of its writer guards all of it; the ring holds its segments in order. */
struct ckb_log {
    ckb_volume *volume;
    ckbi_log_slot *slot;
    uint32_t *segments; /* ring */
    uint32_t capacity, head, count;
    uint32_t entry_max;  /* bytes */
    uint32_t generation; /* rises when entries vanish at the end: cursors look anew */
    uint64_t base;       /* index before the first one that this writer appended */
    uint64_t closed;     /* units, of the segments that are not open */
    uint64_t rolls;
#ifndef CKB_READ_ONLY
    bool read_only; /* opened for salvage */
    bool batch;     /* somebody appends many entries, or one for which room must be made */
    ckbi_start start;
    ckb_writer writer;
#endif
};

#ifndef CKB_READ_ONLY
/* Is this a log's appender? In a build without chunks there are no others. */
static CKBI_UNUSED bool ckbi_writer_is_log(const ckb_writer *w)
{
    return CKBI_HAS_LOG && (!CKBI_HAS_CHUNKS || w->log);
}

/* Does it keep summaries? */
static CKBI_UNUSED bool ckbi_writer_sums_up(const ckb_writer *w)
{
    return CKBI_HAS_CHUNKS && w->summary_max > 0;
}

/* Bytes of a buffer that a summary of so many entries needs, the end of its batch included. */
static CKBI_UNUSED size_t ckbi_summary_room(uint32_t entries)
{
    return 2 * CKBI_RECORD_COMMON + CKBI_UNIT + (size_t)entries * CKBI_SUMMARY_ENTRY_BYTES;
}

static CKBI_UNUSED void ckbi_writer_defaults(const ckb_geometry *g, const ckb_writer_config *config,
                                             ckb_writer_config *out)
{
    ckbi_fill(out, 0, sizeof(*out));
    if (config)
        *out = *config;
    uint64_t least = ckbi_align_up(ckbi_max_table_bytes(g) + 256, g->write_unit) + g->write_unit;
    if (out->buffer_bytes == 0)
        out->buffer_bytes =
            (size_t)ckbi_max(least, ckbi_min(256 * 1024, ckbi_align_down(g->segment_bytes / 4, g->write_unit)));
    out->buffer_bytes = (size_t)ckbi_align_up(out->buffer_bytes, g->write_unit);
    uint32_t most = (uint32_t)ckbi_min((out->buffer_bytes - ckbi_summary_room(0)) / CKBI_SUMMARY_ENTRY_BYTES,
                                       g->segment_bytes / 8 / CKBI_SUMMARY_ENTRY_BYTES);
    if (out->summary_entries == 0)
        out->summary_entries = 512;
    out->summary_entries = ckbi_has_seal(g) ? ckbi_min32(out->summary_entries, most) : 0;
}

static CKBI_UNUSED uint32_t ckbi_payload_max(const ckb_geometry *g)
{
    return ckbi_room_max(g, CKBI_RECORD_START_BYTES + ckbi_max_table_bytes(g), ckbi_has_seal(g));
}

/* A buffer holds the head of the largest record, and a whole summary. */
static CKBI_UNUSED bool ckbi_writer_config_valid(const ckb_geometry *g, const ckb_writer_config *c)
{
    return c->buffer_bytes >= ckbi_align_up(ckbi_max_table_bytes(g) + 256, g->write_unit) + g->write_unit &&
           c->buffer_bytes <= UINT32_MAX / 2 && ckbi_payload_max(g) > 0;
}

static CKBI_UNUSED void ckbi_writer_init(ckb_writer *w, const ckb_geometry *g)
{
    w->segment = CKB_NO_SEGMENT;
    w->room_end = ckbi_data_limit(g) - ckbi_tail_room(g, 0);
    w->payload_max = (uint32_t)ckbi_payload_max(g);
}

static CKBI_UNUSED ckb_writer *ckbi_writer_layout(const ckb_geometry *g, const ckb_writer_config *c,
                                                  ckbi_arena *arena)
{
    ckb_writer *w = (ckb_writer *)ckbi_arena_take(arena, sizeof(ckb_writer), 64);
    uint8_t *first = (uint8_t *)ckbi_arena_take(arena, c->buffer_bytes, ckbi_buffer_align(g));
    uint8_t *second = (uint8_t *)ckbi_arena_take(arena, c->buffer_bytes, ckbi_buffer_align(g));
    uint8_t *summary =
        (uint8_t *)ckbi_arena_take(arena, (size_t)c->summary_entries * CKBI_SUMMARY_ENTRY_BYTES, 8);
    if (!w || !first || !second || !summary)
        return NULL;
    ckbi_fill(w, 0, sizeof(*w));
    w->buffer[0] = first;
    w->buffer[1] = second;
    w->buffer_bytes = c->buffer_bytes;
    w->summary = summary;
    w->summary_max = c->summary_entries;
    ckbi_writer_init(w, g);
    return w;
}

CKBI_CHUNK_DEF uint64_t ckb_max_chunk_bytes(const ckb_geometry *geometry)
{
    return ckbi_geometry_valid(geometry) ? ckbi_payload_max(geometry) : 0;
}

static CKBI_UNUSED int ckbi_writer_fail(ckb_writer *w, int status)
{
    if (w->error == CKB_OK)
        w->error = status;
    CKB_CONDITION_BROADCAST(&w->changed);
    CKB_CONDITION_BROADCAST(&w->committed);
    return status;
}

/* ---- appending to the active buffer; the lock is held and there is room */

/* Where the next record begins. */
static CKBI_UNUSED uint32_t ckbi_writer_at(const ckb_writer *w)
{
    return w->base + (uint32_t)(w->fill / CKBI_UNIT);
}

static CKBI_UNUSED void ckbi_put_end(ckb_writer *w, uint8_t flags)
{
    uint32_t unit = w->volume->medium.geometry.write_unit;
    size_t whole = (size_t)ckbi_align_up(w->fill + CKBI_RECORD_COMMON, unit);
    CKB_ASSERT(whole <= w->buffer_bytes);
    ckbi_end_frame(w->buffer[w->active] + w->fill, (uint32_t)(whole - w->fill), flags, w->durable, w->seed,
                   ckbi_writer_at(w));
    w->fill = whole;
}

static CKBI_UNUSED void ckbi_put_start(ckb_writer *w, uint32_t stream, const ckbi_start *start)
{
    uint8_t *at = w->buffer[w->active] + w->fill;
    w->fill += ckbi_start_encode(at, w->seed, ckbi_writer_at(w), stream, start);
}

static CKBI_UNUSED void ckbi_put_summary(ckb_writer *w)
{
    uint32_t bytes = w->summary_count * CKBI_SUMMARY_ENTRY_BYTES;
    uint32_t offset = ckbi_writer_at(w);
    uint8_t *at = w->buffer[w->active] + w->fill;
    uint32_t whole = ckbi_align_up32(CKBI_RECORD_COMMON + bytes, CKBI_UNIT);
    ckbi_record_begin(at, CKBI_RECORD_SUMMARY, 0, CKBI_RECORD_COMMON, bytes, w->durable, w->summary_last);
    ckbi_copy(at + CKBI_RECORD_COMMON, w->summary, bytes);
    ckbi_fill(at + CKBI_RECORD_COMMON + bytes, 0, whole - CKBI_RECORD_COMMON - bytes);
    uint32_t state = ckbi_seed(w->seed, offset, CKBI_SEED_PAYLOAD);
    ckbi_put32(at + 12, ckbi_crc_update(state, w->summary, bytes));
    ckbi_record_seal(at, w->seed, offset);
    w->fill += whole;
    w->summary_last = offset;
    w->summary_count = 0;
}

/* ---- taking buffers to the medium; the lock is held on entry and return, and dropped in between */

static CKBI_UNUSED void ckbi_writer_wait(ckb_writer *w)
{
    CKB_CONDITION_WAIT(&w->changed, &w->lock);
}

/* Waits until no thread does I/O for this writer and takes that place. */
static CKBI_UNUSED void ckbi_writer_take_turn(ckb_writer *w, bool exclusive)
{
    while (w->busy)
        ckbi_writer_wait(w);
    w->busy = true;
    w->exclusive = exclusive;
}

/* Gives the turn back; whoever waits for a commit is still to be woken. */
static CKBI_UNUSED void ckbi_writer_release_turn(ckb_writer *w)
{
    w->busy = false;
    w->exclusive = false;
    CKB_CONDITION_BROADCAST(&w->changed);
}

static CKBI_UNUSED void ckbi_writer_end_turn(ckb_writer *w)
{
    ckbi_writer_release_turn(w);
    if (w->leaving > 0)
        CKB_CONDITION_BROADCAST(&w->committed);
    else if (w->waiters > 0)
        CKB_CONDITION_SIGNAL(&w->committed); /* one of them leads */
}

/* Writes the first `bytes` of the active buffer and goes on in the other one with the rest. */
static CKBI_UNUSED int ckbi_writer_flush(ckb_writer *w, size_t bytes)
{
    const uint8_t *from = w->buffer[w->active];
    size_t rest = w->fill - bytes;
    ckbi_copy(w->buffer[w->active ^ 1u], from + bytes, rest);
    w->flight_base = w->base;
    w->flight_bytes = bytes;
    w->active ^= 1u;
    w->base += (uint32_t)(bytes / CKBI_UNIT);
    w->fill = rest;
    CKB_MUTEX_UNLOCK(&w->lock);
    int status = ckbi_medium_write(w->volume, w->segment, w->flight_base, from, bytes);
    CKB_MUTEX_LOCK(&w->lock);
    if (status != CKB_OK)
        return ckbi_writer_fail(w, status); /* the bytes stay readable where they are */
    w->written = w->flight_base + (uint32_t)(bytes / CKBI_UNIT);
    w->flight_bytes = 0;
    CKB_CONDITION_BROADCAST(&w->changed);
    return CKB_OK;
}

/* Ends the batch and writes it. */
static CKBI_UNUSED int ckbi_writer_write(ckb_writer *w, uint8_t end_flags)
{
    if (w->error != CKB_OK || (w->fill == 0 && end_flags == 0))
        return w->error;
    ckbi_put_end(w, end_flags);
    return ckbi_writer_flush(w, w->fill);
}

/* Fills up to the next multiple of 8, where the next record begins. */
static CKBI_UNUSED void ckbi_pad_record(ckb_writer *w)
{
    while (w->fill % CKBI_UNIT != 0)
        w->buffer[w->active][w->fill++] = 0;
}

/* Writes what is complete in the middle of a large record. */
static CKBI_UNUSED int ckbi_writer_write_units(ckb_writer *w)
{
    size_t bytes = (size_t)ckbi_align_down(w->fill, w->volume->medium.geometry.write_unit);
    return bytes == 0 ? CKB_OK : ckbi_writer_flush(w, bytes);
}

/* The rest of a payload that ends inside a write unit, or all of one whose memory the medium cannot
 * take, goes through the buffers. */
static CKBI_UNUSED int ckbi_payload_copy(ckb_writer *w, const uint8_t *data, size_t length)
{
    while (length > 0) {
        size_t room = w->buffer_bytes - w->fill;
        size_t step = length < room ? length : room;
        ckbi_copy(w->buffer[w->active] + w->fill, data, step);
        w->fill += step;
        data += step;
        length -= step;
        if (w->fill + CKBI_RECORD_COMMON + CKBI_UNIT > w->buffer_bytes) {
            int status = ckbi_writer_write_units(w);
            if (status != CKB_OK)
                return status;
        }
    }
    ckbi_pad_record(w);
    return CKB_OK;
}

/* Can this memory go to the medium as it is? Then the payload begins on a write unit. */
static CKBI_UNUSED uint8_t ckbi_payload_flags(const ckb_writer *w, const uint8_t *data)
{
    return (uintptr_t)data % w->volume->medium.geometry.buffer_align == 0 ? CKBI_FLAG_ALIGNED : 0;
}

/* Appends a payload larger than a buffer, whose record's head is there already: from the caller's memory to
 * the medium where alignment allows. The caller has an exclusive turn. */
static CKBI_UNUSED int ckbi_payload_pass(ckb_writer *w, const uint8_t *data, size_t length, uint8_t flags)
{
    ckb_volume *v = w->volume;
    const ckb_geometry *g = &v->medium.geometry;
    if (!(flags & CKBI_FLAG_ALIGNED))
        return ckbi_payload_copy(w, data, length);
    size_t whole = (size_t)ckbi_align_up(w->fill, g->write_unit);
    ckbi_fill(w->buffer[w->active] + w->fill, 0, whole - w->fill);
    w->fill = whole;
    int status = ckbi_writer_write_units(w);
    if (status != CKB_OK)
        return status;
    size_t direct = (size_t)ckbi_align_down(length, g->write_unit);
    uint32_t at = w->base;
    CKB_MUTEX_UNLOCK(&w->lock);
    status = ckbi_medium_write(v, w->segment, at, data, direct);
    CKB_MUTEX_LOCK(&w->lock);
    if (status != CKB_OK)
        return ckbi_writer_fail(w, status);
    w->base = w->written = at + (uint32_t)(direct / CKBI_UNIT);
    return ckbi_payload_copy(w, data + direct, length - direct);
}

static CKBI_UNUSED int ckbi_seal_write(ckb_volume *v, const ckbi_dirty *d, uint8_t *unit_buffer)
{
    uint32_t at = ckbi_seal_at(&v->medium.geometry), bytes = ckbi_last_bytes(&v->medium.geometry);
    ckbi_fill(unit_buffer, 0, bytes);
    ckbi_record_begin(unit_buffer, CKBI_RECORD_SEAL, 0, CKBI_RECORD_SEAL_BYTES, 0, d->end, d->end);
    ckbi_put64(unit_buffer + CKBI_RECORD_COMMON, d->summary);
    ckbi_record_seal(unit_buffer, d->seed, at);
    return ckbi_medium_write(v, d->segment, at, unit_buffer, bytes);
}

/* Syncs the oldest full segment, unless another sync covered it, and marks it with its SEAL: whoever
 * finds that knows that all before it is there. */
static CKBI_UNUSED int ckbi_writer_settle_oldest(ckb_writer *w, bool synced)
{
    ckb_volume *v = w->volume;
    ckbi_dirty d = w->dirty[0];
    uint8_t *spare = w->buffer[w->active ^ 1u];
    CKB_MUTEX_UNLOCK(&w->lock);
    int status = synced ? CKB_OK : ckbi_medium_sync(v, d.segment);
    if (status == CKB_OK && ckbi_has_seal(&v->medium.geometry))
        status = ckbi_seal_write(v, &d, spare);
    if (status == CKB_OK) {
        CKB_MUTEX_LOCK(&v->lock);
        v->segments[d.segment].extent = CKBI_EXTENT_FULL;
        CKB_MUTEX_UNLOCK(&v->lock);
    }
    CKB_MUTEX_LOCK(&w->lock);
    if (status != CKB_OK)
        return ckbi_writer_fail(w, status);
    w->dirty_count--;
    ckbi_move(w->dirty, w->dirty + 1, w->dirty_count * sizeof(w->dirty[0]));
    return CKB_OK;
}

/* Writes and syncs all that was appended when it began. Others may append meanwhile. */
static CKBI_UNUSED int ckbi_writer_make_durable(ckb_writer *w)
{
    ckb_volume *v = w->volume;
    uint64_t cut = w->appended;
    w->members = w->waiters; /* whoever waits by now waits for no more than this */
    uint32_t clock = CKBI_LOAD(&v->supersede_clock);
    int status = ckbi_writer_write(w, 0);
    bool synced = false;
    if (status == CKB_OK && w->segment != CKB_NO_SEGMENT && w->durable < w->written) {
        CKB_MUTEX_UNLOCK(&w->lock);
        status = ckbi_medium_sync(v, w->segment);
        CKB_MUTEX_LOCK(&w->lock);
        if (status != CKB_OK)
            return ckbi_writer_fail(w, status);
        synced = v->medium.geometry.capabilities & CKB_CAP_SYNC_ALL;
    }
    while (status == CKB_OK && w->dirty_count > 0)
        status = ckbi_writer_settle_oldest(w, synced);
    if (status != CKB_OK)
        return status;
    if (w->segment != CKB_NO_SEGMENT)
        w->durable = w->written;
    w->groups += w->durable_ticket < cut;
    w->durable_ticket = cut;
    w->clean_clock = clock;
    w->leaving = w->members;
    w->members = 0;
    return CKB_OK;
}

/* A thread that waited for its commit leaves. It may do so while a next group is under way that counted it: such a
 * group need not wait for it. The last one of a group lets one of those that came since lead. */
static CKBI_UNUSED void ckbi_writer_leave(ckb_writer *w)
{
    w->waiters--;
    w->members -= w->members > 0;
    if (w->leaving > 0 && --w->leaving == 0 && !w->busy)
        CKB_CONDITION_SIGNAL(&w->committed);
}

/* Makes durable the first `target` appends. Group commit: the first that comes leads for all that queued, the
 * rest wait for the durable mark. The next leader lets all members of the last group leave first: they are
 * the ones that append next, and so join its group instead of waiting for one more. Members are woken when the
 * lock is free, or each would only wait again, for the lock. It is held on entry, and not on return. */
static CKBI_UNUSED int ckbi_writer_commit_to(ckb_writer *w, uint64_t target)
{
    bool settled = w->dirty_count == 0; /* a full segment may wait for its SEAL although all is durable */
    bool waits = false, led = false;
    while (w->error == CKB_OK && (w->durable_ticket < target || !settled)) {
        if (w->exclusive) {
            ckbi_writer_wait(w);
        } else if (w->busy || (w->leaving > 0 && w->durable_ticket < target)) {
            w->waiters += !waits;
            waits = true;
            CKB_CONDITION_WAIT(&w->committed, &w->lock);
        } else {
            if (waits)
                ckbi_writer_leave(w);
            waits = false;
            ckbi_writer_take_turn(w, false);
            ckbi_writer_make_durable(w);
            ckbi_writer_release_turn(w);
            settled = led = true;
        }
    }
    if (waits)
        ckbi_writer_leave(w);
    int status = w->durable_ticket < target || w->error != CKB_OK ? w->error : CKB_OK;
    CKB_MUTEX_UNLOCK(&w->lock);
    if (led)
        CKB_CONDITION_BROADCAST(&w->committed);
    return status;
}

/* Makes durable what was appended before the call. */
static CKBI_UNUSED int ckbi_writer_commit(ckb_writer *w)
{
    CKB_MUTEX_LOCK(&w->lock);
    return ckbi_writer_commit_to(w, w->appended);
}

/* ---- segments of a log; its appender has an exclusive turn */

static CKBI_UNUSED uint32_t ckbi_log_segment(const ckb_log *log, uint32_t n)
{
    uint32_t at = log->head + n;
    return log->segments[at < log->capacity ? at : at - log->capacity];
}

/* Index of the next entry. The log's lock is held. */
static CKBI_UNUSED CKBI_ONE_COPY uint64_t ckbi_log_next_index(const ckb_log *log)
{
    return log->base + log->writer.appended + 1;
}

static CKBI_UNUSED bool ckbi_log_is_empty(const ckb_log *log)
{
    return log->slot->first == ckbi_log_next_index(log);
}

/* Lets go of the oldest segment, which may be freed from now on. The volume's and the log's lock are held. */
static CKBI_UNUSED void ckbi_log_drop_oldest(ckb_log *log)
{
    ckb_volume *v = log->volume;
    ckbi_segment *s = &v->segments[ckbi_log_segment(log, 0)];
    CKBI_STORE(&s->live, 0);
    CKBI_STORE(&s->died_at, CKBI_ADD(&v->supersede_clock, 1));
    log->closed -= s->end;
    log->head = log->head + 1 < log->capacity ? log->head + 1 : 0;
    if (--log->count == 0)
        log->slot->newest = CKB_NO_SEGMENT;
    else
        v->segments[ckbi_log_segment(log, 0)].previous = CKB_NO_SEGMENT;
}

/* Lets go of the segments of which no entry is kept. Both locks are held. */
static CKBI_UNUSED void ckbi_log_trim(ckb_log *log)
{
    const ckb_volume *v = log->volume;
    while (log->count > 0 && CKBI_LOAD(&v->segments[ckbi_log_segment(log, 0)].state) != CKB_SEGMENT_OPEN) {
        uint64_t behind =
            log->count > 1 ? v->segments[ckbi_log_segment(log, 1)].first : ckbi_log_next_index(log);
        if (behind > log->slot->first)
            break;
        ckbi_log_drop_oldest(log);
    }
}

/* Segments that were open when their entries were purged are not any more. The volume's lock is held. */
static void ckbi_logs_trim(ckb_volume *v)
{
    for (uint32_t i = 0; i < v->config.max_logs; i++) {
        ckb_log *log = v->logs[i].open;
        if (!log)
            continue;
        CKB_MUTEX_LOCK(&log->writer.lock);
        ckbi_log_trim(log);
        CKB_MUTEX_UNLOCK(&log->writer.lock);
    }
}

/* The log's parked segment, if it has room, or a fresh one. No lock is held. */
static CKBI_UNUSED int ckbi_log_take_segment(ckb_log *log, uint32_t room, uint32_t *segment)
{
    ckb_volume *v = log->volume;
    uint32_t limit = ckbi_data_limit(&v->medium.geometry);
    CKB_MUTEX_LOCK(&v->long_lock); /* a purge may free the parked one */
    CKB_MUTEX_LOCK(&v->lock);
    bool full = log->count == log->capacity;
    uint32_t newest = log->slot->newest;
    const ckbi_segment *s = newest != CKB_NO_SEGMENT ? &v->segments[newest] : NULL;
    bool parked = s && s->state == CKB_SEGMENT_PARKED && s->end + room <= limit;
    CKB_MUTEX_UNLOCK(&v->lock);
    int status;
    if (parked) {
        *segment = newest;
        status = ckbi_resume(v, newest);
    } else if (full) {
        status = CKB_NOSPACE;
    } else {
        status = ckbi_segment_fresh(v, v->config.reserve_segments, segment);
    }
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* Leaves to the slot what it should know of a log that is closed. The volume's lock is held. */
static CKBI_UNUSED void ckbi_log_detach(ckb_log *log, int status)
{
    log->slot->next = ckbi_log_next_index(log);
    if (status != CKB_OK) /* what did not become durable went with the buffers */
        log->slot->next = log->base + log->writer.durable_ticket + 1;
    log->slot->open = NULL;
}

/* Makes a segment that was taken the log's newest one. No lock is held. */
static CKBI_UNUSED void ckbi_log_link(ckb_log *log, uint32_t segment)
{
    ckb_volume *v = log->volume;
    ckbi_log_slot *slot = log->slot;
    ckbi_segment *s = &v->segments[segment];
    CKB_MUTEX_LOCK(&v->lock);
    CKB_MUTEX_LOCK(&log->writer.lock);
    if (s->extent == CKBI_EXTENT_RESUMED) {
        log->closed -= s->end;
    } else {
        const ckbi_segment *before = slot->newest != CKB_NO_SEGMENT ? &v->segments[slot->newest] : NULL;
        ckbi_start *start = &log->start;
        start->place = ++slot->place;
        start->epoch = before ? before->epoch : 0;
        start->end = before ? before->end : 0;
        start->segment = s->previous = slot->newest;
        start->first = s->first = ckbi_log_next_index(log);
        start->serial = s->log = slot->serial;
        slot->newest = segment;
        uint32_t at = log->head + log->count++;
        log->segments[at < log->capacity ? at : at - log->capacity] = segment;
        log->rolls++;
    }
    CKB_MUTEX_UNLOCK(&log->writer.lock);
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* ---- moving from segment to segment; the caller has an exclusive turn */

/* Gives the segment back to the volume in its new state. */
static CKBI_UNUSED void ckbi_writer_release_segment(ckb_writer *w, uint8_t state, uint8_t extent)
{
    ckb_volume *v = w->volume;
    ckbi_segment *s = &v->segments[w->segment];
    CKB_MUTEX_UNLOCK(&w->lock);
    CKB_MUTEX_LOCK(&v->lock);
    s->end = w->base;
    s->summary = w->summary_last;
    if (s->extent != CKBI_EXTENT_RESUMED) /* as its START says */
        s->compacted = w->compacts;
    s->extent = extent;
    CKBI_STORE(&s->owner, 0);
    /* While it was open others could only take away from `live`: now it is the true count. */
    CKBI_ADD(&s->live, w->live);
    s->records += w->records;
    CKBI_ADD(&s->deletes, w->deletes);
    if (ckbi_writer_is_log(w))
        CKBI_STORE(&s->live, s->end);
    CKBI_STORE(&s->state, state);
    v->parked_count += state == CKB_SEGMENT_PARKED && s->log == 0;
    if (CKBI_HAS_CHUNKS && !w->log && state == CKB_SEGMENT_FULL) {
        v->fresh_records += (uint32_t)(w->appended - w->finished);
        w->finished = w->appended;
    }
    if (CKBI_LOAD(&s->live) == 0)
        CKBI_STORE(&s->died_at, CKBI_ADD(&v->supersede_clock, 1));
    CKB_MUTEX_UNLOCK(&v->lock);
    CKB_MUTEX_LOCK(&w->lock);
    if (ckbi_writer_is_log(w))
        w->log->closed += w->base;
    w->segment = CKB_NO_SEGMENT;
    w->live = w->records = w->deletes = 0;
}

static CKBI_UNUSED int ckbi_writer_put_last_summary(ckb_writer *w)
{
    int status = CKB_OK;
    if (!CKBI_HAS_CHUNKS || w->summary_count == 0)
        return CKB_OK;
    if (w->fill + ckbi_summary_room(w->summary_count) > w->buffer_bytes)
        status = ckbi_writer_write(w, 0);
    if (status == CKB_OK)
        ckbi_put_summary(w);
    return status;
}

/* Finishes the current segment: last summary, last batch. It waits in `dirty` for its sync. */
static CKBI_UNUSED int ckbi_writer_finish_segment(ckb_writer *w)
{
    int status = ckbi_writer_put_last_summary(w);
    if (status == CKB_OK)
        status = ckbi_writer_write(w, CKBI_FLAG_LAST);
    while (status == CKB_OK && w->dirty_count == CKBI_DIRTY_MAX)
        status = ckbi_writer_settle_oldest(w, false);
    if (status != CKB_OK)
        return status;
    ckbi_dirty d = {w->segment, w->seed, w->base, w->summary_last};
    bool resumed = w->volume->segments[w->segment].extent == CKBI_EXTENT_RESUMED;
    w->dirty[w->dirty_count++] = d;
    ckbi_writer_release_segment(w, CKB_SEGMENT_FULL, 0);
    /* What the journal knows of a resumed one is true only up to where it was resumed: it is not left so. */
    while (status == CKB_OK && resumed && w->dirty_count > 0)
        status = ckbi_writer_settle_oldest(w, false);
    return status;
}

/* Begins to append to a segment that was taken: at its start, or where it was parked. */
static CKBI_UNUSED CKBI_NOINLINE void ckbi_writer_begin_segment(ckb_writer *w, uint32_t segment)
{
    ckb_volume *v = w->volume;
    ckbi_segment *s = &v->segments[segment];
    bool resumed = s->extent == CKBI_EXTENT_RESUMED;
    CKB_ASSERT(w->fill == 0);
    w->segment = segment;
    w->seed = ckbi_segment_seed(v, segment, s->epoch);
    w->base = resumed ? s->end : ckbi_data_start(&v->medium.geometry);
    w->written = w->durable = w->base;
    w->summary_last = resumed ? s->summary : 0;
    w->live = w->records = w->deletes = 0;
    CKBI_STORE(&s->owner, w->number + 1);
    if (!resumed && ckbi_writer_is_log(w))
        ckbi_put_start(w, CKBI_STREAM_LOG, &w->log->start);
    else if (!resumed)
        ckbi_put_start(w, w->compacts ? CKBI_STREAM_COMPACTED : CKBI_STREAM_CHUNKS, NULL);
}

/* Free segments that an append leaves alone: the reserve; a delete all but one of it, for compaction. */
static CKBI_UNUSED uint32_t ckbi_writer_keeps(const ckb_writer *w, bool may_use_reserve)
{
    uint32_t reserve = w->volume->config.reserve_segments;
    if (w->compacts)
        return 0;
    return may_use_reserve ? (uint32_t)(reserve > 1 && w->volume->compactor) : reserve;
}

/* A segment to move to, for chunks or a log. No lock is held, the turn is exclusive. */
static CKBI_UNUSED int ckbi_writer_take_segment(ckb_writer *w, uint32_t total, bool may_use_reserve,
                                                uint32_t *segment)
{
    ckb_volume *v = w->volume;
    uint32_t room = total + ckbi_tail_room(&v->medium.geometry, ckbi_writer_sums_up(w));
    return ckbi_writer_is_log(w)
               ? ckbi_log_take_segment(w->log, room, segment)
               : ckbi_segment_take(v, room, ckbi_writer_keeps(w, may_use_reserve), !w->compacts, segment);
}

/* Moves to another segment. On CKB_NOSPACE nothing has changed. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_writer_roll(ckb_writer *w, uint32_t total, bool may_use_reserve)
{
    ckb_volume *v = w->volume;
    uint32_t segment = CKB_NO_SEGMENT;
    ckbi_writer_take_turn(w, true);
    CKB_MUTEX_UNLOCK(&w->lock);
    int status = ckbi_writer_take_segment(w, total, may_use_reserve, &segment);
    bool reserve = may_use_reserve && ckbi_spare_segments(v) < v->config.reserve_segments;
    CKB_MUTEX_LOCK(&w->lock);
    if (status == CKB_OK && w->segment != CKB_NO_SEGMENT)
        status = ckbi_writer_finish_segment(w);
    if (status == CKB_OK && ckbi_writer_is_log(w)) {
        CKB_MUTEX_UNLOCK(&w->lock);
        ckbi_log_link(w->log, segment);
        CKB_MUTEX_LOCK(&w->lock);
    }
    if (status == CKB_OK) {
        w->reserve = reserve;
        ckbi_writer_begin_segment(w, segment);
    }
    ckbi_writer_end_turn(w);
    return status;
}

/* Bytes of the active buffer that the next thing to append needs, the end of its batch included. */
static CKBI_UNUSED size_t ckbi_writer_need(const ckb_writer *w, uint32_t total, bool large)
{
    const ckb_geometry *g = &w->volume->medium.geometry;
    if (ckbi_writer_sums_up(w) && w->summary_count == w->summary_max)
        return ckbi_summary_room(w->summary_count);
    if (large)
        return CKBI_RECORD_COMMON + CKBI_RECORD_CHUNK_BYTES +
               (ckbi_writer_is_log(w) ? 0 : ckbi_max_table_bytes(g)) + g->write_unit;
    return CKBI_RECORD_COMMON + (size_t)total * CKBI_UNIT;
}

/* Leaves a segment in which nothing counts, so that it can be freed. */
static CKBI_UNUSED int ckbi_writer_let_go(ckb_writer *w)
{
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_take_turn(w, true);
    int status = w->error;
    bool empty = ckbi_writer_is_log(w) ? !w->log->batch && ckbi_log_is_empty(w->log)
                                       : w->segment != CKB_NO_SEGMENT &&
                                             w->live + CKBI_LOAD(&w->volume->segments[w->segment].live) == 0;
    if (status == CKB_OK && w->segment != CKB_NO_SEGMENT && empty)
        status = ckbi_writer_finish_segment(w);
    ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}

/* Is there no room for a record of `total` units, and the summary of all, in the current segment? */
static CKBI_UNUSED bool ckbi_writer_must_roll(const ckb_writer *w, uint32_t total, bool may_use_reserve)
{
    uint32_t end = ckbi_writer_at(w) + total + w->promised;
    if (ckbi_writer_sums_up(w))
        end += ckbi_units(CKBI_RECORD_COMMON + CKBI_UNIT + (w->summary_count + 1) * CKBI_SUMMARY_ENTRY_BYTES);
    return w->segment == CKB_NO_SEGMENT || end > w->room_end || (w->reserve && !may_use_reserve);
}

/* The usual case: a record fits where the last one ended, and nobody is in the way. */
static CKBI_UNUSED bool ckbi_writer_has_room(const ckb_writer *w, uint32_t total, bool may_use_reserve)
{
    return !ckbi_writer_must_roll(w, total, may_use_reserve) && !w->exclusive && w->error == CKB_OK &&
           w->fill + CKBI_RECORD_COMMON + (size_t)total * CKBI_UNIT <= w->buffer_bytes &&
           (!ckbi_writer_sums_up(w) || w->summary_count < w->summary_max) && ckbi_writable(w->volume) == CKB_OK;
}

/* Makes sure that a record of `total` units fits into the segment and, unless it is large, into the
 * active buffer. May drop the lock on the way, not after its last look. A large one leaves with an
 * exclusive turn. On CKB_NOSPACE nothing has changed. */
static CKBI_UNUSED int ckbi_writer_room(ckb_writer *w, uint32_t total, bool large, bool may_use_reserve)
{
    for (;;) {
        int status = w->error != CKB_OK ? CKB_FAILED : ckbi_writable(w->volume);
        if (status != CKB_OK)
            return status;
        bool roll = ckbi_writer_must_roll(w, total, may_use_reserve);
        bool flush = w->fill + ckbi_writer_need(w, total, large) > w->buffer_bytes;
        if (w->exclusive || ((roll || flush || large) && w->busy)) {
            ckbi_writer_wait(w);
        } else if (roll) {
            status = ckbi_writer_roll(w, total + w->promised, may_use_reserve);
        } else if (flush) {
            ckbi_writer_take_turn(w, false);
            status = ckbi_writer_write(w, 0);
            ckbi_writer_end_turn(w);
        } else if (ckbi_writer_sums_up(w) && w->summary_count == w->summary_max) {
            ckbi_put_summary(w);
        } else {
            if (large)
                ckbi_writer_take_turn(w, true);
            return CKB_OK;
        }
        if (status != CKB_OK)
            return status;
    }
}

/* ---- open and close */

CKBI_CHUNK_DEF size_t ckb_writer_memory(const ckb_geometry *geometry, const ckb_writer_config *config)
{
    ckb_writer_config c;
    ckbi_arena arena = {NULL, NULL, 0};
    if (!ckbi_geometry_valid(geometry))
        return 0;
    ckbi_writer_defaults(geometry, config, &c);
    if (!ckbi_writer_config_valid(geometry, &c))
        return 0;
    ckbi_writer_layout(geometry, &c, &arena);
    return arena.used;
}

/* Takes its place among the volume's writers. The volume's lock is held. */
static CKBI_UNUSED void ckbi_writer_enlist(ckb_writer *w)
{
    CKB_MUTEX_INIT(&w->lock);
    CKB_CONDITION_INIT(&w->changed);
    CKB_CONDITION_INIT(&w->committed);
    w->volume->writers[w->number] = w;
}

CKBI_CHUNK_DEF int ckb_writer_open(ckb_volume *volume, const ckb_writer_config *config, void *memory,
                                   size_t bytes, ckb_writer **writer)
{
    const ckb_geometry *g = &volume->medium.geometry;
    ckbi_arena arena = {(uint8_t *)memory, (uint8_t *)memory + bytes, 0};
    ckb_writer_config c;
    *writer = NULL;
    int status = ckbi_writable(volume);
    if (status != CKB_OK)
        return status;
    ckbi_writer_defaults(g, config, &c);
    if (!ckbi_writer_config_valid(g, &c))
        return CKB_INVALID;
    ckb_writer *w = ckbi_writer_layout(g, &c, &arena);
    if (!w)
        return CKB_INVALID;
    w->volume = volume;
    CKB_MUTEX_LOCK(&volume->lock);
    while (w->number < volume->config.max_writers && volume->writers[w->number])
        w->number++;
    if (w->number < volume->config.max_writers) {
        ckbi_writer_enlist(w);
        *writer = w;
    }
    CKB_MUTEX_UNLOCK(&volume->lock);
    return *writer ? CKB_OK : CKB_BUSY;
}

/* Parks the segment so that a later writer continues in it. All in it is durable. */
static CKBI_UNUSED int ckbi_writer_park(ckb_writer *w)
{
    ckb_volume *v = w->volume;
    uint32_t segment = w->segment;
    uint32_t end = w->base;
    CKB_MUTEX_UNLOCK(&w->lock);
    CKB_MUTEX_LOCK(&v->long_lock);
    int status = ckbi_segment_say(v, segment, CKBI_EXTENT_PARKED, end, w->summary_last);
    CKB_MUTEX_LOCK(&w->lock);
    if (status == CKB_OK)
        ckbi_writer_release_segment(w, CKB_SEGMENT_PARKED, CKBI_EXTENT_PARKED);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

CKBI_CHUNK_DEF int ckb_writer_close(ckb_writer *writer)
{
    ckb_writer *w = writer;
    ckb_volume *v = w->volume;
    const ckb_geometry *g = &v->medium.geometry;
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_take_turn(w, true);
    int status = w->error;
    if (status == CKB_OK && w->segment != CKB_NO_SEGMENT) {
        /* Not worth coming back for less than a few units. */
        bool park = ckbi_writer_at(w) + ckbi_tail_room(g, w->summary_count + 1) + 2 * ckbi_tail_room(g, 1) <
                    ckbi_data_limit(g);
        status = park ? ckbi_writer_put_last_summary(w) : ckbi_writer_finish_segment(w);
        if (status == CKB_OK)
            status = ckbi_writer_make_durable(w);
        if (status == CKB_OK && park)
            status = ckbi_writer_park(w);
        if (status == CKB_NOSPACE) { /* the journal cannot say so: the segment itself must */
            status = ckbi_writer_finish_segment(w);
            if (status == CKB_OK)
                status = ckbi_writer_make_durable(w);
        }
    } else if (status == CKB_OK) {
        status = ckbi_writer_make_durable(w);
    }
    if (w->segment != CKB_NO_SEGMENT)
        ckbi_writer_release_segment(w, CKB_SEGMENT_FULL, 0); /* failed: what it holds stays as it is */
    CKB_MUTEX_UNLOCK(&w->lock);
    CKB_MUTEX_LOCK(&v->lock);
    v->writers[w->number] = NULL;
    if (ckbi_writer_is_log(w))
        ckbi_log_detach(w->log, status); /* nobody finds its locks any more, before they go */
    CKB_MUTEX_UNLOCK(&v->lock);
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_end_turn(w);
    while (w->pins > 0)
        ckbi_writer_wait(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    CKB_CONDITION_DESTROY(&w->committed);
    CKB_CONDITION_DESTROY(&w->changed);
    CKB_MUTEX_DESTROY(&w->lock);
    return status;
}

CKBI_CHUNK_DEF int ckb_writer_commit(ckb_writer *writer)
{
    int status = ckbi_writable(writer->volume);
    return status == CKB_OK ? ckbi_writer_commit(writer) : status;
}

/* Waits until no append is under way. */
static CKBI_UNUSED int ckbi_writer_quiet(ckb_writer *w)
{
    CKB_MUTEX_LOCK(&w->lock);
    while (w->exclusive)
        ckbi_writer_wait(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return CKB_OK;
}

/* Does something with each open writer; the first error ends it. No lock is held. */
static CKBI_UNUSED int ckbi_each_writer(ckb_volume *v, int (*action)(ckb_writer *writer))
{
    int status = CKB_OK;
    for (uint32_t i = 0; i < v->writer_places && status == CKB_OK; i++) {
        CKB_MUTEX_LOCK(&v->lock);
        ckb_writer *w = v->writers[i];
        if (w) {
            CKB_MUTEX_LOCK(&w->lock);
            w->pins++;
            CKB_MUTEX_UNLOCK(&w->lock);
        }
        CKB_MUTEX_UNLOCK(&v->lock);
        if (!w)
            continue;
        status = action(w);
        CKB_MUTEX_LOCK(&w->lock);
        w->pins--;
        CKB_CONDITION_BROADCAST(&w->changed);
        CKB_MUTEX_UNLOCK(&w->lock);
    }
    return status;
}

/* Is all that could have superseded a record of a segment that died at this clock durable? Entries of logs
 * supersede nothing. The volume's lock is held. */
static bool ckbi_writers_are_past(ckb_volume *v, uint32_t died_at)
{
    bool past = true;
    for (uint32_t i = 0; i < v->writer_places && past; i++) {
        ckb_writer *w = v->writers[i];
        if (!w || ckbi_writer_is_log(w))
            continue;
        CKB_MUTEX_LOCK(&w->lock);
        past = w->appended == w->durable_ticket || (int32_t)(w->clean_clock - died_at) >= 0;
        CKB_MUTEX_UNLOCK(&w->lock);
    }
    return past;
}
#endif /* CKB_READ_ONLY */

/* ---------------------------------------------------------------------------------------------- >>load
 * Where bytes of a segment come from: a segment that no writer has open lies on the medium; what an
 * open one holds may still be in its writer's buffers. */

#ifndef CKB_READ_ONLY
/* Copies whole units that the buffers hold from `at` on; 0 when it is in none. The writer's lock is held. */
static CKBI_UNUSED size_t ckbi_writer_copy(const ckb_writer *w, uint32_t at, uint8_t *bytes, size_t length)
{
    uint32_t active = at - w->base, flight = at - w->flight_base; /* wrap round where `at` is before */
    const uint8_t *from = NULL;
    size_t have = 0;
    if (active < w->fill / CKBI_UNIT) {
        from = w->buffer[w->active] + (size_t)active * CKBI_UNIT;
        have = (w->fill / CKBI_UNIT - active) * CKBI_UNIT;
    } else if (flight < w->flight_bytes / CKBI_UNIT) {
        from = w->buffer[w->active ^ 1u] + (size_t)flight * CKBI_UNIT;
        have = w->flight_bytes - (size_t)flight * CKBI_UNIT;
    }
    have = have < length ? have : length;
    if (have > 0)
        ckbi_copy(bytes, from, have);
    return have;
}

/* Copies all from `at` on out of the buffers; what is behind their end, which only rounding asks for, is
 * zero. False: part of it is on its way to the medium. The writer's lock is held. */
static CKBI_UNUSED bool ckbi_writer_copy_all(const ckb_writer *w, uint32_t at, uint8_t *bytes, size_t length)
{
    while (length > 0) {
        size_t step = ckbi_writer_copy(w, at, bytes, length);
        if (step == 0 && w->exclusive)
            return false;
        if (step == 0) {
            ckbi_fill(bytes, 0, length);
            return true;
        }
        at += (uint32_t)(step / CKBI_UNIT);
        bytes += step;
        length -= step;
    }
    return true;
}

/* The front of the range is on the medium, the rest in the buffers of the writer, which is pinned. */
static CKBI_UNUSED int ckbi_writer_load(ckb_writer *w, uint32_t segment, uint32_t at, uint8_t *bytes,
                                        size_t length)
{
    ckb_volume *v = w->volume;
    size_t front = length;
    CKB_MUTEX_LOCK(&w->lock);
    while (w->segment == segment) {
        front = at < w->written ? (size_t)ckbi_min(length, ckbi_bytes(w->written - at)) : 0;
        if (ckbi_writer_copy_all(w, at + (uint32_t)(front / CKBI_UNIT), bytes + front, length - front))
            break;
        CKB_CONDITION_WAIT(&w->changed, &w->lock); /* for the end of a large record */
        front = length;
    }
    CKB_MUTEX_UNLOCK(&w->lock);
    int status = front > 0 ? v->medium.read(v->medium.context, segment, ckbi_bytes(at), bytes, front) : CKB_OK;
    CKB_MUTEX_LOCK(&w->lock);
    w->pins--;
    CKB_CONDITION_BROADCAST(&w->changed);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}
#endif

static int ckbi_load(ckb_volume *v, uint32_t segment, uint32_t at, uint8_t *bytes, size_t length)
{
#ifndef CKB_READ_ONLY
    if (CKBI_LOAD(&v->segments[segment].owner) != 0) {
        CKB_MUTEX_LOCK(&v->lock);
        uint32_t owner = CKBI_LOAD(&v->segments[segment].owner);
        ckb_writer *w = owner ? v->writers[owner - 1] : NULL;
        if (w) {
            /* Pinned, so that it is not closed meanwhile. */
            CKB_MUTEX_LOCK(&w->lock);
            w->pins++;
            CKB_MUTEX_UNLOCK(&w->lock);
        }
        CKB_MUTEX_UNLOCK(&v->lock);
        if (w)
            return ckbi_writer_load(w, segment, at, bytes, length);
    }
#endif
    return v->medium.read(v->medium.context, segment, ckbi_bytes(at), bytes, length);
}

#ifndef CKB_READ_ONLY
/* ---------------------------------------------------------------------------------------------- >>container */

/* Appends one fact about a container and then makes it so. The long lock is held. */
static CKBI_UNUSED int ckbi_container_set(ckb_volume *v, ckbi_container *c, uint32_t state, uint32_t flags)
{
    int status = ckbi_journal_say(v, CKBI_FACT_CONTAINER, c->serial, c->id, ckbi_container_word(state, flags));
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_STORE(&c->state, state);
    CKBI_STORE(&c->flags, flags);
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

/* What one side of the journal must hold: a snapshot with so many facts more, of all segments in use, and others. */
static CKBI_UNUSED uint64_t ckbi_journal_needs(const ckb_volume *v, uint32_t more)
{
    const ckb_geometry *g = &v->medium.geometry;
    uint64_t facts = (uint64_t)v->header.segment_count + CKBI_SNAPSHOT_FACTS + more;
    for (uint32_t i = 0; i < v->config.max_containers; i++)
        facts += v->containers[i].serial != 0;
    for (uint32_t i = 0; i < v->config.max_logs; i++)
        facts += 2 * (uint64_t)(v->logs[i].serial != 0);
    /* The last batch of the snapshot may waste a unit, and then there must be room for one more. */
    return facts + (2 * CKBI_RECORD_COMMON + (uint64_t)g->write_unit) / CKBI_FACT_BYTES * 2 + CKBI_FACTS_MAX;
}

static CKBI_UNUSED uint64_t ckbi_journal_has(const ckb_volume *v)
{
    uint32_t span = v->header.journal_span;
    return (uint64_t)span * ckbi_journal_facts(&v->medium.geometry, span, v->io_bytes);
}

static CKBI_UNUSED bool ckbi_journal_holds(const ckb_volume *v, uint32_t more)
{
    return ckbi_journal_needs(v, more) <= ckbi_journal_has(v);
}

CKBI_CHUNK_DEF int ckb_container_create(ckb_volume *volume, uint64_t id)
{
    ckb_volume *v = volume;
    CKB_MUTEX_LOCK(&v->long_lock);
    CKB_MUTEX_LOCK(&v->lock);
    const ckbi_container *there = ckbi_container_by_id(v, id);
    ckbi_container *place = there ? NULL : ckbi_container_place(v);
    uint32_t serial = v->next_serial;
    CKB_MUTEX_UNLOCK(&v->lock);
    int status = ckbi_writable(v);
    if (status == CKB_OK && there)
        status = CKBI_LOAD(&there->state) == CKB_CONTAINER_DELETED ? CKB_DELETED : CKB_EXISTS;
    if (status == CKB_OK && (!place || serial == UINT32_MAX || !ckbi_journal_holds(v, 1)))
        status = CKB_NOSPACE;
    if (status == CKB_OK) {
        /* The place may still name a deleted container: it is forgotten in the same batch. */
        uint32_t count = 0;
        if (place->serial)
            ckbi_fact_set(v, count++, CKBI_FACT_CONTAINER, place->serial, place->id, CKB_CONTAINER_NONE);
        ckbi_fact_set(v, count++, CKBI_FACT_CONTAINER, serial, id, CKB_CONTAINER_OPEN);
        status = ckbi_journal_append(v, count);
    }
    if (status == CKB_OK) {
        CKB_MUTEX_LOCK(&v->lock);
        ckbi_container_fill(v, place, id, serial);
        CKB_MUTEX_UNLOCK(&v->lock);
    }
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* Finds a container that can still change. */
static CKBI_UNUSED int ckbi_container_find(ckb_volume *v, uint64_t id, ckbi_container **c)
{
    CKB_MUTEX_LOCK(&v->lock);
    *c = ckbi_container_by_id(v, id);
    CKB_MUTEX_UNLOCK(&v->lock);
    if (!*c)
        return CKB_NOTFOUND;
    return CKBI_LOAD(&(*c)->state) == CKB_CONTAINER_DELETED ? CKB_DELETED : ckbi_writable(v);
}

/* Waits for the appends under way, then makes durable what they brought. */
static CKBI_UNUSED int ckbi_writer_quiet_commit(ckb_writer *w)
{
    ckbi_writer_quiet(w);
    return ckbi_writer_commit(w);
}

/* Begins to close a container: no append sees it open any more. `*serial` is 0 when there is nothing to do. */
static CKBI_UNUSED int ckbi_container_begin_close(ckb_volume *v, uint64_t id, ckbi_container **place,
                                                  uint32_t *serial)
{
    int status = ckbi_writable(v);
    *serial = 0;
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_container *c = *place = ckbi_container_by_id(v, id);
    uint32_t state = c ? CKBI_LOAD(&c->state) : CKB_CONTAINER_NONE;
    if (!c) {
        status = CKB_NOTFOUND;
    } else if (state == CKB_CONTAINER_DELETED) {
        status = CKB_DELETED;
    } else if (status == CKB_OK && (state == CKB_CONTAINER_OPEN || state == CKBI_CONTAINER_CLOSING)) {
        CKBI_STORE(&c->state, CKBI_CONTAINER_CLOSING);
        *serial = c->serial;
    }
    CKB_MUTEX_UNLOCK(&v->lock);
    return status;
}

CKBI_CHUNK_DEF int ckb_container_close(ckb_volume *volume, uint64_t id)
{
    ckb_volume *v = volume;
    ckbi_container *c;
    uint32_t serial;
    int status = ckbi_container_begin_close(v, id, &c, &serial);
    if (status != CKB_OK || serial == 0)
        return status;
    /* Nobody appends to it any more; then what is there becomes durable; then the journal says so. */
    status = ckbi_each_writer(v, ckbi_writer_quiet_commit);
    CKB_MUTEX_LOCK(&v->long_lock);
    bool same = CKBI_LOAD(&c->serial) == serial;
    if (!same || CKBI_LOAD(&c->state) == CKB_CONTAINER_DELETED) {
        status = CKB_DELETED;
    } else if (CKBI_LOAD(&c->state) == CKBI_CONTAINER_CLOSING) {
        if (status == CKB_OK)
            status = ckbi_container_set(v, c, CKB_CONTAINER_CLOSED, c->flags);
        if (status != CKB_OK)
            CKBI_STORE(&c->state, CKB_CONTAINER_OPEN);
    }
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* Begins to sweep the index. One under way may have passed what is to be found: it starts over. The volume's lock
 * is held. */
static CKBI_UNUSED void ckbi_sweep_begin(ckb_volume *v)
{
    v->sweep_needed = true;
    v->sweep_pays = false;
    v->sweep_partition = v->sweep_slot = 0;
}

CKBI_CHUNK_DEF int ckb_container_delete(ckb_volume *volume, uint64_t id)
{
    ckb_volume *v = volume;
    ckbi_container *c;
    CKB_MUTEX_LOCK(&v->long_lock);
    int status = ckbi_container_find(v, id, &c);
    if (status == CKB_OK)
        status = ckbi_container_set(v, c, CKB_CONTAINER_DELETED, c->flags);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    if (status != CKB_OK)
        return status;
    ckbi_each_writer(v, ckbi_writer_quiet);
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_sweep_begin(v);
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

/* Did compaction let go of this delete, and was the segment freed since? Until then a mount finds the record. */
static CKBI_UNUSED bool ckbi_sweep_is_let_go(ckb_volume *v, const ckbi_slot *slot)
{
    const ckbi_segment *s = &v->segments[slot->segment];
    if (slot->offset != 0 || !(slot->version & CKBI_TOMBSTONE))
        return false;
    bool freed = s->state == CKB_SEGMENT_FREE || (uint32_t)s->epoch != slot->length;
    v->let_go += !freed;
    return freed;
}

/* Takes the chunks of deleted containers, and deletes that compaction let go, out of the index, 1024 slots a
 * step. */
static CKBI_UNUSED void ckbi_sweep_step(ckb_volume *v)
{
    CKB_MUTEX_LOCK(&v->lock);
    if (v->sweep_partition == 0 && v->sweep_slot == 0)
        v->let_go = 0; /* what is left is counted again on the way */
    ckbi_partition *p = &v->index.partitions[v->sweep_partition];
    uint32_t slots = v->index.buckets * CKBI_SLOTS;
    uint32_t end = (uint32_t)ckbi_min(v->sweep_slot + 1024u, slots);
    CKB_MUTEX_LOCK(&p->lock);
    for (uint32_t i = v->sweep_slot; i < end; i++) {
        ckbi_slot *slot = &p->slots[i];
        if (slot->version == 0)
            continue;
        ckbi_container *c = ckbi_container_by_serial(v, slot->serial);
        if (c && CKBI_LOAD(&c->state) != CKB_CONTAINER_DELETED && !ckbi_sweep_is_let_go(v, slot))
            continue;
        ckbi_segment_release(v, slot);
        if (c)
            ckbi_container_count(c, slot, false);
        ckbi_index_remove(p, slot);
    }
    CKB_MUTEX_UNLOCK(&p->lock);
    v->sweep_slot = end;
    if (end == slots) {
        v->sweep_slot = 0;
        if (++v->sweep_partition == v->index.partition_count) {
            v->sweep_partition = 0;
            v->sweep_needed = false;
            for (uint32_t i = 0; i < v->config.max_containers; i++)
                if (CKBI_LOAD(&v->containers[i].state) == CKB_CONTAINER_DELETED)
                    v->containers[i].swept = true;
        }
    }
    CKB_MUTEX_UNLOCK(&v->lock);
}
#endif /* CKB_READ_ONLY */

static CKBI_UNUSED void ckbi_container_describe(const ckbi_container *c, ckb_container_info *info)
{
    info->id = c->id;
    info->state = (int)CKBI_LOAD(&c->state);
    if (info->state == CKBI_CONTAINER_CLOSING)
        info->state = CKB_CONTAINER_OPEN;
    info->chunks = info->state == CKB_CONTAINER_DELETED ? 0 : CKBI_LOAD(&c->chunks);
    info->bytes = info->state == CKB_CONTAINER_DELETED ? 0 : CKBI_LOAD(&c->bytes);
}

CKBI_CHUNK_DEF int ckb_container_stat(ckb_volume *volume, uint64_t id, ckb_container_info *info)
{
    ckbi_fill(info, 0, sizeof(*info));
    info->id = id;
    CKB_MUTEX_LOCK(&volume->lock);
    const ckbi_container *c = ckbi_container_by_id(volume, id);
    if (c)
        ckbi_container_describe(c, info);
    CKB_MUTEX_UNLOCK(&volume->lock);
    if (!c)
        return CKB_NOTFOUND;
    return info->state == CKB_CONTAINER_DELETED ? CKB_DELETED : CKB_OK;
}

CKBI_CHUNK_DEF int ckb_container_next(ckb_volume *volume, uint32_t *cursor, ckb_container_info *info)
{
    int status = CKB_END;
    CKB_MUTEX_LOCK(&volume->lock);
    for (; *cursor < volume->config.max_containers && status == CKB_END; ++*cursor) {
        if (volume->containers[*cursor].serial == 0)
            continue;
        ckbi_container_describe(&volume->containers[*cursor], info);
        status = CKB_OK;
    }
    CKB_MUTEX_UNLOCK(&volume->lock);
    return status;
}

/* ---------------------------------------------------------------------------------------------- >>lookup */

/* What a lookup found: a copy of the slot, and the segment's epoch at that moment. A segment is only
 * freed when no slot points to it, so the two belong together. */
typedef struct ckbi_place {
    ckbi_slot slot;
    uint64_t epoch;
} ckbi_place;

/* CKB_OK also for a deleted chunk, whose slot tells. CKB_NOTFOUND. */
static CKBI_UNUSED int ckbi_lookup(ckb_volume *v, uint32_t serial, uint64_t block, uint32_t chunk,
                                   ckbi_place *place)
{
    uint64_t hash = ckbi_index_hash(&v->index, serial, block, chunk);
    ckbi_partition *partition = ckbi_index_partition(&v->index, hash);
    CKB_MUTEX_LOCK(&partition->lock);
    const ckbi_slot *slot = ckbi_index_find(&v->index, partition, hash, serial, block, chunk);
    if (slot) {
        place->slot = *slot;
        place->epoch = CKBI_LOAD(&v->segments[slot->segment].epoch);
    }
    CKB_MUTEX_UNLOCK(&partition->lock);
    return slot ? CKB_OK : CKB_NOTFOUND;
}

/* The answer to a reader, damage taken into account: where something was lost and nobody knows what,
 * a miss may be a loss, and in a container with superseding records a hit may be out of date. */
static CKBI_UNUSED int ckbi_find_chunk(ckb_volume *v, const ckb_chunk_id *id, ckbi_place *place)
{
    CKB_MUTEX_LOCK(&v->lock);
    const ckbi_container *c = ckbi_container_by_id(v, id->container);
    uint32_t serial = c ? c->serial : 0;
    uint32_t state = c ? CKBI_LOAD(&c->state) : 0;
    bool mutated = c && (c->flags & CKBI_CONTAINER_MUTATED);
    bool doubtful = v->unidentified > 0 && !v->config.salvage && serial < v->mount_serial;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (!c)
        return CKB_NOTFOUND;
    if (state == CKB_CONTAINER_DELETED)
        return CKB_DELETED;
    int status = ckbi_lookup(v, serial, id->block, id->chunk, place);
    if (doubtful && (status == CKB_NOTFOUND || mutated))
        return CKB_CORRUPT;
    if (status == CKB_OK && (place->slot.version & CKBI_TOMBSTONE))
        return CKB_DELETED;
    return status;
}

static CKBI_UNUSED void ckbi_chunk_describe(const ckb_chunk_id *id, const ckbi_slot *slot, ckb_chunk_info *info)
{
    info->id = *id;
    info->deleted = (slot->version & CKBI_TOMBSTONE) != 0;
    info->length = info->deleted ? 0 : slot->length;
    info->version = slot->version & ~CKBI_TOMBSTONE;
    info->segment = slot->segment;
    info->offset = ckbi_bytes(slot->offset);
}

CKBI_CHUNK_DEF int ckb_chunk_stat(ckb_volume *volume, const ckb_chunk_id *id, ckb_chunk_info *info)
{
    ckbi_place place;
    ckbi_fill(info, 0, sizeof(*info));
    ckbi_fill(&place, 0, sizeof(place));
    int status = ckbi_find_chunk(volume, id, &place);
    ckbi_chunk_describe(id, &place.slot, info);
    return status;
}

CKBI_CHUNK_DEF int ckb_chunk_next(ckb_volume *volume, uint64_t *cursor, ckb_chunk_info *info)
{
    ckb_volume *v = volume;
    uint64_t slots = (uint64_t)v->index.buckets * CKBI_SLOTS;
    while (*cursor < slots * v->index.partition_count) {
        ckbi_partition *p = &v->index.partitions[*cursor / slots];
        ckbi_slot found;
        found.version = 0;
        CKB_MUTEX_LOCK(&p->lock);
        do {
            const ckbi_slot *slot = &p->slots[*cursor % slots];
            ++*cursor;
            if (slot->version != 0 && !(slot->version & CKBI_TOMBSTONE))
                found = *slot;
        } while (found.version == 0 && *cursor % slots != 0);
        CKB_MUTEX_UNLOCK(&p->lock);
        if (found.version == 0)
            continue;
        CKB_MUTEX_LOCK(&v->lock);
        const ckbi_container *c = ckbi_container_by_serial(v, found.serial);
        ckb_chunk_id id = {c ? c->id : 0, found.block, found.chunk};
        bool there = c && CKBI_LOAD(&c->state) != CKB_CONTAINER_DELETED;
        CKB_MUTEX_UNLOCK(&v->lock);
        if (!there)
            continue;
        ckbi_chunk_describe(&id, &found, info);
        return CKB_OK;
    }
    return CKB_END;
}

#ifndef CKB_READ_ONLY
/* ---------------------------------------------------------------------------------------------- >>chunk-write */

#define CKBI_INDEX_FULL (-100) /* a status between these functions: no space, and that in the index */

/* One append of a chunk or of a delete, on its way. */
typedef struct ckbi_append {
    const ckb_chunk_id *id;
    const uint8_t *data;
    ckbi_source *source; /* of compaction: where a large payload comes from, not from data */
    uint32_t payload;    /* its offset there */
    uint32_t length;
    unsigned flags;
    ckbi_container *container;
    uint32_t serial;
    uint64_t hash;
    ckbi_slot before; /* version 0: it was not there */
    uint64_t before_epoch;
    uint32_t version; /* of the new record, CKBI_TOMBSTONE included */
    bool tombstone;
} ckbi_append;

/* The container of an append, from the writer's memory of its last one. Locks and leaves the writer
 * locked. */
static CKBI_UNUSED int ckbi_append_container(ckb_writer *w, ckbi_append *a)
{
    ckb_volume *v = w->volume;
    CKB_MUTEX_LOCK(&w->lock);
    if (!w->cached || w->cached_id != a->id->container || CKBI_LOAD(&w->cached->serial) != w->cached_serial) {
        CKB_MUTEX_UNLOCK(&w->lock);
        CKB_MUTEX_LOCK(&v->lock);
        ckbi_container *c = ckbi_container_by_id(v, a->id->container);
        uint32_t serial = c ? c->serial : 0;
        CKB_MUTEX_UNLOCK(&v->lock);
        CKB_MUTEX_LOCK(&w->lock);
        if (!c)
            return CKB_NOTFOUND;
        w->cached = c;
        w->cached_id = a->id->container;
        w->cached_serial = serial;
    }
    a->container = w->cached;
    a->serial = w->cached_serial;
    a->hash = ckbi_index_hash(&v->index, a->serial, a->id->block, a->id->chunk);
    ckbi_index_prefetch(&v->index, a->hash, a->id->chunk);
    return CKB_OK;
}

static CKBI_UNUSED int ckbi_append_state(const ckbi_append *a)
{
    uint32_t state = CKBI_LOAD(&a->container->state);
    if (CKBI_LOAD(&a->container->serial) != a->serial)
        return CKB_DELETED;
    switch (state) {
    case CKB_CONTAINER_OPEN:
        return CKB_OK;
    case CKB_CONTAINER_DELETED:
        return CKB_DELETED;
    default:
        return CKB_READONLY;
    }
}

/* May this append happen, given what is there? CKB_EXISTS: only if the bytes are the same. */
static CKBI_UNUSED int ckbi_append_decide(const ckbi_append *a, const ckbi_slot *slot)
{
    if (!slot)
        return a->tombstone ? CKB_NOTFOUND : CKB_OK;
    if ((slot->version & ~CKBI_TOMBSTONE) == CKBI_TOMBSTONE - 1)
        return CKB_TOOBIG; /* 2^31 versions of one chunk */
    if (slot->version & CKBI_TOMBSTONE)
        return a->tombstone || !(a->flags & CKB_OVERWRITE) ? CKB_DELETED : CKB_OK;
    return a->tombstone || (a->flags & CKB_OVERWRITE) ? CKB_OK : CKB_EXISTS;
}

/* May records of this container be among what was lost? */
static CKBI_UNUSED bool ckbi_is_doubtful(const ckb_volume *v, uint32_t serial)
{
    return CKBI_LOAD(&v->unidentified) > 0 && serial < v->mount_serial;
}

/* Enters the new version into the index; what was there is kept in `before`. CKB_BUSY: the container
 * must be marked first. The writer's lock is held and there is room for the record. */
static CKBI_UNUSED CKBI_ONE_COPY int ckbi_append_enter(ckb_writer *w, ckbi_append *a)
{
    ckb_volume *v = w->volume;
    ckbi_partition *partition = ckbi_index_partition(&v->index, a->hash);
    CKB_MUTEX_LOCK(&partition->lock);
    ckbi_slot *slot = ckbi_index_find(&v->index, partition, a->hash, a->serial, a->id->block, a->id->chunk);
    int status = ckbi_append_decide(a, slot);
    bool limited = v->config.container_bytes != 0 && !a->tombstone;
    if (status == CKB_OK && slot && !(CKBI_LOAD(&a->container->flags) & CKBI_CONTAINER_MUTATED))
        status = CKB_BUSY;
    a->before.version = 0;
    if (slot) {
        a->before = *slot;
        a->before_epoch = CKBI_LOAD(&v->segments[slot->segment].epoch);
    }
    if (status == CKB_OK && limited) {
        uint64_t replaced = slot && !(slot->version & CKBI_TOMBSTONE) ? slot->length : 0;
        if (!ckbi_container_grow(a->container, a->length, v->config.container_bytes + replaced))
            status = CKB_TOOBIG;
    }
    if (status == CKB_OK && !slot) {
        slot = ckbi_index_add(&v->index, partition, a->hash, a->serial, a->id->block, a->id->chunk);
        status = slot ? CKB_OK : CKBI_INDEX_FULL;
        if (!slot && limited)
            CKBI_SUB(&a->container->bytes, a->length);
    }
    if (status == CKB_OK) {
        slot->segment = w->segment;
        slot->offset = ckbi_writer_at(w);
        slot->length = a->tombstone ? CKBI_LOAD(&v->epoch_clock) : a->length;
        slot->version = (a->before.version & ~CKBI_TOMBSTONE) + 1;
        if (a->before.version == 0 && ckbi_is_doubtful(v, a->serial))
            slot->version = CKBI_VERSION_AFTER_LOSS;
        if (a->tombstone)
            slot->version |= CKBI_TOMBSTONE;
        a->version = slot->version;
        /* The counts change with the entry, so that a delete of the container finds both. */
        if (a->before.version != 0)
            ckbi_container_count(a->container, &a->before, false);
        ckbi_container_count(a->container, slot, true);
        if (limited) /* counted already */
            CKBI_SUB(&a->container->bytes, a->length);
    }
    CKB_MUTEX_UNLOCK(&partition->lock);
    return status;
}

/* Takes back what enter did: the record did not make it. */
static CKBI_UNUSED void ckbi_append_undo(ckb_writer *w, const ckbi_append *a)
{
    ckb_volume *v = w->volume;
    ckbi_partition *partition = ckbi_index_partition(&v->index, a->hash);
    CKB_MUTEX_LOCK(&partition->lock);
    ckbi_slot *slot = ckbi_index_find(&v->index, partition, a->hash, a->serial, a->id->block, a->id->chunk);
    if (slot && slot->version == a->version) {
        ckbi_container_count(a->container, slot, false);
        if (a->before.version != 0) {
            *slot = a->before;
            ckbi_container_count(a->container, slot, true);
        } else {
            ckbi_index_remove(partition, slot);
        }
    }
    CKB_MUTEX_UNLOCK(&partition->lock);
}

static CKBI_UNUSED void ckbi_summary_add(ckb_writer *w, const ckbi_append *a, uint32_t offset)
{
    CKB_ASSERT(w->summary_count < w->summary_max);
    uint8_t *e = w->summary + (size_t)w->summary_count++ * CKBI_SUMMARY_ENTRY_BYTES;
    ckbi_put32(e, a->serial);
    ckbi_put32(e + 4, a->id->chunk);
    ckbi_put64(e + 8, a->id->block);
    ckbi_put32(e + 16, a->version);
    ckbi_put32(e + 20, offset);
    ckbi_put32(e + 24, a->length);
}

/* The record is in the segment: what it superseded stops to count. */
static CKBI_UNUSED void ckbi_append_done(ckb_writer *w, const ckbi_append *a, uint32_t offset)
{
    uint32_t units = ckbi_record_units(w->volume, a->length, a->version);
    w->live += units;
    w->records += units;
    w->deletes += a->tombstone ? units : 0;
    w->appended++;
    if (ckbi_writer_sums_up(w))
        ckbi_summary_add(w, a, offset);
    if (a->before.version != 0)
        ckbi_segment_release(w->volume, &a->before);
}

/* Continues a checksum over part of a payload. */
static CKBI_UNUSED int ckbi_append_crc(const ckbi_append *a, const uint8_t *payload, size_t begin,
                                       uint32_t length, uint32_t *state)
{
    if (a->source)
        return ckbi_source_take(a->source, a->payload + (uint32_t)(begin / CKBI_UNIT), length, NULL, state);
    *state = ckbi_crc_update(*state, payload + begin, length);
    return CKB_OK;
}

/* Writes header and window table of a chunk; `payload` is what the checksums are taken of. Only a payload that
 * is read from elsewhere can fail, and then nothing was appended. */
static CKBI_UNUSED int ckbi_put_chunk_head(ckb_writer *w, const ckbi_append *a, const uint8_t *payload,
                                           uint8_t flags)
{
    int status = CKB_OK;
    uint8_t *at = w->buffer[w->active] + w->fill;
    uint32_t offset = ckbi_writer_at(w);
    uint32_t tables = ckbi_table_bytes(a->length);
    uint32_t crc = 0;
    ckbi_record_begin(at, a->tombstone ? CKBI_RECORD_DELETE : CKBI_RECORD_CHUNK, flags, CKBI_RECORD_CHUNK_BYTES,
                      a->length, w->durable, a->version & ~CKBI_TOMBSTONE);
    ckbi_put32(at + 24, a->serial);
    ckbi_put32(at + 28, a->id->chunk);
    ckbi_put64(at + 32, a->id->block);
    if (tables > 0) {
        uint8_t *entry = at + CKBI_RECORD_CHUNK_BYTES;
        uint32_t windows = ckbi_window_count(a->length);
        ckbi_fill(entry + tables - CKBI_UNIT, 0, CKBI_UNIT);
        for (uint32_t i = 0; i < windows && status == CKB_OK; i++) {
            size_t begin = (size_t)i * CKB_WINDOW_BYTES;
            uint32_t state = ckbi_seed(w->seed, offset, CKBI_SEED_WINDOW + i);
            status = ckbi_append_crc(a, payload, begin,
                                     ckbi_min32(CKB_WINDOW_BYTES, a->length - (uint32_t)begin), &state);
            ckbi_put32(entry + (size_t)i * 4, state);
        }
        crc = ckbi_crc_update(ckbi_seed(w->seed, offset, CKBI_SEED_PAYLOAD), entry, tables);
    } else if (a->length > 0) {
        crc = ckbi_seed(w->seed, offset, CKBI_SEED_PAYLOAD);
        status = ckbi_append_crc(a, payload, 0, a->length, &crc);
    }
    if (status != CKB_OK)
        return status;
    ckbi_put32(at + 12, crc);
    ckbi_record_seal(at, w->seed, offset);
    w->fill += CKBI_RECORD_CHUNK_BYTES + tables;
    return CKB_OK;
}

/* Where the payload of a record that fits into the active buffer goes. */
static CKBI_UNUSED uint8_t *ckbi_append_payload(ckb_writer *w, const ckbi_append *a)
{
    return w->buffer[w->active] + w->fill + CKBI_RECORD_CHUNK_BYTES + ckbi_table_bytes(a->length);
}

/* Frames a record whose payload is in the active buffer already. */
static CKBI_UNUSED void ckbi_append_small(ckb_writer *w, const ckbi_append *a)
{
    (void)ckbi_put_chunk_head(w, a, ckbi_append_payload(w, a), 0);
    w->fill += a->length;
    ckbi_pad_record(w);
}

/* A record larger than a buffer. The caller has an exclusive turn. */
static CKBI_UNUSED int ckbi_append_large(ckb_writer *w, const ckbi_append *a)
{
    uint8_t flags = ckbi_payload_flags(w, a->data);
    (void)ckbi_put_chunk_head(w, a, a->data, flags);
    return ckbi_payload_pass(w, a->data, a->length, flags);
}

/* Marks a container as one that holds superseding records, before the first of them is written. */
static CKBI_UNUSED int ckbi_container_mark(ckb_volume *v, ckbi_container *c, uint32_t serial)
{
    int status = CKB_OK;
    CKB_MUTEX_LOCK(&v->long_lock);
    if (c->serial == serial && !(c->flags & CKBI_CONTAINER_MUTATED))
        status = ckbi_container_set(v, c, CKBI_LOAD(&c->state), c->flags | CKBI_CONTAINER_MUTATED);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* Compares a chunk that is there with the bytes of a retry. The caller has the turn. */
static CKBI_UNUSED int ckbi_compare_bytes(ckb_writer *w, const ckbi_append *a)
{
    ckbi_source *source = &w->compare;
    ckbi_record *record = &w->compared;
    int status = ckbi_source_record(source, a->before.offset, record);
    if (status == CKB_OK)
        status = ckbi_source_verify(source, record);
    if (status == CKB_OK && record->payload_bytes != a->length)
        return CKB_EXISTS;
    for (uint32_t done = 0; status == CKB_OK && done < a->length;) {
        const uint8_t *bytes;
        uint32_t step = ckbi_min32(a->length - done, ckbi_source_step(source));
        status = ckbi_source_get(source, record->payload + done / CKBI_UNIT, step, &bytes);
        if (status == CKB_OK && ckbi_compare(bytes, a->data + done, step) != 0)
            status = CKB_EXISTS;
        done += step;
    }
    return status;
}

/* CKB_OK: the chunk that is there has the same bytes. Reads through the buffer that is not active. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_append_compare(ckb_writer *w, const ckbi_append *a)
{
    ckb_volume *v = w->volume;
    uint32_t segment = a->before.segment;
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_take_turn(w, false);
    CKB_MUTEX_UNLOCK(&w->lock);
    ckbi_source_init(&w->compare, v, w->buffer[w->active ^ 1u], w->buffer_bytes);
    ckbi_source_open(&w->compare, segment, a->before_epoch);
    int status = w->error;
    if (status == CKB_OK)
        status = ckbi_compare_bytes(w, a);
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}

/* Does the index still point to where the comparison looked? */
static CKBI_UNUSED CKBI_NOINLINE bool ckbi_append_stands_still(ckb_volume *v, const ckbi_append *a)
{
    ckbi_place place;
    return ckbi_lookup(v, a->serial, a->id->block, a->id->chunk, &place) == CKB_OK &&
           place.epoch == a->before_epoch && place.slot.segment == a->before.segment &&
           place.slot.offset == a->before.offset;
}

/* The answer when no room is at hand: it is not looked for, and no segment is left, for an append that
 * would not happen anyway. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_append_peek(ckb_volume *v, ckbi_append *a)
{
    ckbi_place place;
    if (ckbi_lookup(v, a->serial, a->id->block, a->id->chunk, &place) != CKB_OK)
        return ckbi_append_decide(a, NULL);
    a->before = place.slot;
    a->before_epoch = place.epoch;
    return ckbi_append_decide(a, &place.slot);
}

/* The way round when there is no room at hand: see ckbi_writer_room. */
static CKBI_UNUSED int ckbi_append_make_room(ckb_writer *w, ckbi_append *a, uint32_t total, bool large)
{
    int answer = ckbi_writer_must_roll(w, total, a->tombstone) ? ckbi_append_peek(w->volume, a) : CKB_OK;
    if (answer != CKB_OK)
        return answer;
    int status = ckbi_writer_room(w, total, large, a->tombstone);
    if (status == CKB_NOSPACE) /* unless somebody wrote the same meanwhile */
        answer = ckbi_append_peek(w->volume, a);
    return answer == CKB_OK ? status : answer;
}

/* One attempt. CKB_BUSY and CKB_EXISTS are for the caller to resolve. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_append_try(ckb_writer *w, ckbi_append *a)
{
    const ckb_geometry *g = &w->volume->medium.geometry;
    uint32_t tables = ckbi_table_bytes(a->length);
    uint32_t total = ckbi_record_room(g, a->length, tables, false);
    bool large =
        total + (CKBI_RECORD_COMMON + CKBI_RECORD_START_BYTES) / CKBI_UNIT > w->buffer_bytes / CKBI_UNIT;
    if (large)
        total = ckbi_record_room(g, a->length, tables, true);
    int status = ckbi_append_container(w, a);
    if (status == CKB_OK)
        status = ckbi_append_state(a);
    if (status == CKB_OK && (large || !ckbi_writer_has_room(w, total, a->tombstone)))
        status = ckbi_append_make_room(w, a, total, large);
    bool turn = status == CKB_OK && large;
    /* The copy hides the fetch of the index; nothing refers to it before the chunk is entered. */
    if (status == CKB_OK && !large && a->length > 0)
        ckbi_copy(ckbi_append_payload(w, a), a->data, a->length);
    if (status == CKB_OK)
        status = ckbi_append_state(a);
    if (status == CKB_OK)
        status = ckbi_append_enter(w, a);
    uint32_t offset = ckbi_writer_at(w);
    if (status == CKB_OK) {
        if (large)
            status = ckbi_append_large(w, a);
        else
            ckbi_append_small(w, a);
        if (status == CKB_OK)
            ckbi_append_done(w, a, offset);
        else
            ckbi_append_undo(w, a);
    }
    if (turn)
        ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}

/* ---------------------------------------------------------------------------------------------- >>compact
 * Compaction moves what counts out of segments in which little does. It appends like a writer, to segments of
 * its own, and the records keep their versions: of two copies that in such a segment counts. One segment at
 * a time is walked, the victim, which nobody frees meanwhile; when its last record is moved and durable, it is
 * dead as if all had been overwritten. So an interrupted run costs nothing but time.
 *
 * A delete must be kept as long as an older record of its chunk may be in a segment, or that would count again.
 * Such a segment holds records that do not count, and is older than the delete: when there is none, the delete
 * is let go. Its slot stays until the victim is free. To get there compaction makes a pass now and then, from
 * the oldest segment on, over all with deletes or with records that do not count. */

#define CKBI_COMPACT_STEP_RECORDS 1024u /* looked at in one step */
#define CKBI_COMPACT_LOOK 4096u         /* segments looked at for a victim, once there is one */

typedef struct ckbi_compactor {
    ckb_writer *writer;
    ckbi_walk walk; /* over the victim */
    ckbi_append append;
    ckb_chunk_id id; /* what the append is about; containers are known by serial here */
    ckbi_place place;
    uint32_t cursor;         /* where the search for the next victim begins */
    uint64_t pass_epoch;     /* a pass takes segments of a lower one; 0: there is none */
    uint64_t pass_left;      /* deletes that it found and did not let go */
    bool looked, oldest_any; /* for this victim: was the oldest segment below looked for, and is there one? */
    uint32_t oldest;         /* epoch clock of the oldest segment with records that do not count */
} ckbi_compactor;

/* Carves the compactor; `v` is null to count only. */
static CKBI_UNUSED void ckbi_compactor_layout(ckb_volume *v, const ckb_geometry *g, ckbi_arena *arena)
{
    ckb_writer_config config;
    ckbi_writer_defaults(g, NULL, &config);
    size_t bytes =
        (size_t)ckbi_align_up(ckbi_max(config.buffer_bytes, (uint64_t)2 * g->write_unit + 256), g->write_unit);
    ckbi_compactor *c = (ckbi_compactor *)ckbi_arena_take(arena, sizeof(ckbi_compactor), 64);
    ckb_writer *w = ckbi_writer_layout(g, &config, arena);
    uint8_t *buffer = (uint8_t *)ckbi_arena_take(arena, bytes, (size_t)ckbi_max(g->buffer_align, 64));
    if (!v || !c || !w || !buffer)
        return;
    ckbi_fill(c, 0, sizeof(*c));
    c->writer = w;
    ckbi_source_init(&c->walk.source, v, buffer, bytes);
    w->volume = v;
    w->number = v->writer_places - 1;
    w->compacts = true;
    v->compactor = c;
}

/* Units that are won when the segment is compacted, 0 when it cannot be. What a writer's commits padded counts,
 * what those of compaction did would only come again. The volume's lock is held. */
static CKBI_UNUSED uint32_t ckbi_compact_gain(const ckb_volume *v, const ckbi_segment *s)
{
    uint32_t live = CKBI_LOAD(&s->live);
    uint32_t used = s->compacted ? s->records : s->end - ckbi_data_start(&v->medium.geometry);
    bool possible = ckbi_segment_is_settled(s) && s->log == 0 && !s->unmovable && live > 0;
    return possible && used > live ? used - live : 0;
}

/* Does a pass have to do with this segment? */
static CKBI_UNUSED bool ckbi_compact_in_pass(const ckbi_compactor *c, const ckbi_segment *s)
{
    return ckbi_segment_is_settled(s) && s->log == 0 && !s->unmovable && s->epoch < c->pass_epoch &&
           CKBI_LOAD(&s->live) > 0 && (s->records > CKBI_LOAD(&s->live) || CKBI_LOAD(&s->deletes) > 0);
}

/* The next victim: in a pass the oldest segment, else the one that gains most, at least `least` units. The
 * volume's lock is held. */
static CKBI_UNUSED uint32_t ckbi_compact_choose(ckb_volume *v, uint32_t least)
{
    ckbi_compactor *c = v->compactor;
    uint32_t best = CKB_NO_SEGMENT, most = least > 0 ? least - 1 : 0;
    for (uint32_t n = 0; n < v->header.segment_count; n++) {
        uint32_t segment = c->cursor;
        const ckbi_segment *s = &v->segments[segment];
        c->cursor = segment + 1 < v->header.segment_count ? segment + 1 : 0;
        if (c->pass_epoch != 0) {
            if (ckbi_compact_in_pass(c, s) && (best == CKB_NO_SEGMENT || s->epoch < v->segments[best].epoch))
                best = segment;
        } else if (ckbi_compact_gain(v, s) > most) {
            most = ckbi_compact_gain(v, s);
            best = segment;
        }
        if (c->pass_epoch == 0 && best != CKB_NO_SEGMENT && n >= CKBI_COMPACT_LOOK)
            break;
    }
    return best;
}

/* Deletes that were not let go yet. The volume's lock is held. */
static CKBI_UNUSED uint64_t ckbi_compact_deletes(const ckb_volume *v)
{
    uint64_t deletes = ckbi_deletes(v);
    return deletes - ckbi_min(deletes, v->let_go);
}

/* Begins with the next victim. False: there is none. */
static CKBI_UNUSED bool ckbi_compact_begin(ckb_volume *v, uint32_t least)
{
    ckbi_compactor *c = v->compactor;
    CKB_MUTEX_LOCK(&v->long_lock); /* a parked one is not resumed meanwhile */
    CKB_MUTEX_LOCK(&v->lock);
    uint32_t segment = ckbi_compact_choose(v, least);
    if (segment != CKB_NO_SEGMENT) {
        ckbi_segment *s = &v->segments[segment];
        if (s->state == CKB_SEGMENT_PARKED) {
            v->parked_count--;
            s->cover |= CKBI_NEVER_COVERED; /* the journal still says that it may be continued */
        }
        CKBI_STORE(&s->state, CKB_SEGMENT_FULL);
        s->extent = CKBI_EXTENT_FULL;
        ckbi_walk_open_segment(&c->walk, segment);
    } else if (c->pass_epoch != 0) {
        c->pass_epoch = 0;
    }
    v->victim = segment;
    c->looked = false;
    CKB_MUTEX_UNLOCK(&v->lock);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return segment != CKB_NO_SEGMENT;
}

/* Looks for the oldest segment, beside the victim, that holds records which do not count. */
static CKBI_UNUSED void ckbi_compact_look(ckb_volume *v)
{
    ckbi_compactor *c = v->compactor;
    uint64_t oldest = UINT64_MAX;
    CKB_MUTEX_LOCK(&v->lock);
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++) {
        const ckbi_segment *s = &v->segments[i];
        uint32_t dead = s->records - CKBI_LOAD(&s->live), owner = CKBI_LOAD(&s->owner);
        ckb_writer *w = s->state == CKB_SEGMENT_OPEN && owner ? v->writers[owner - 1] : NULL;
        if (w) {
            CKB_MUTEX_LOCK(&w->lock);
            dead = s->records - CKBI_LOAD(&s->live) + (w->segment == i ? w->records - w->live : 1);
            CKB_MUTEX_UNLOCK(&w->lock);
        }
        bool holds =
            (s->state == CKB_SEGMENT_OPEN && !w) ||
            ((w || s->state == CKB_SEGMENT_PARKED || s->state == CKB_SEGMENT_FULL) && (int32_t)dead > 0);
        if (holds && s->log == 0 && i != v->victim)
            oldest = ckbi_min(oldest, s->epoch);
    }
    c->looked = true;
    c->oldest_any = oldest != UINT64_MAX;
    c->oldest = (uint32_t)oldest;
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* May an older record of the chunk that was deleted at this clock be anywhere but in the victim? */
static CKBI_UNUSED bool ckbi_compact_must_keep(ckb_volume *v, uint32_t clock)
{
    const ckbi_compactor *c = v->compactor;
    if (CKBI_LOAD(&v->unidentified) > 0 || v->keep_deletes)
        return true;
    if (!c->looked)
        ckbi_compact_look(v);
    return c->oldest_any && (int32_t)(clock - c->oldest) > 0;
}

/* The slot of the record that is moved, if it still points there. The partition is locked. */
static CKBI_UNUSED ckbi_slot *ckbi_compact_slot(ckb_volume *v, const ckbi_append *a)
{
    ckbi_slot *slot = ckbi_index_find(&v->index, ckbi_index_partition(&v->index, a->hash), a->hash, a->serial,
                                      a->id->block, a->id->chunk);
    return slot && slot->segment == a->before.segment && slot->offset == a->before.offset ? slot : NULL;
}

/* Lets go of a delete. Its segment must be read by every mount from now on: a checkpoint that covers it without it
 * would bring no old record back, but give its chunk versions that the delete beats when it is found again. False:
 * a checkpoint is being written that may cover the segment. */
static CKBI_UNUSED bool ckbi_compact_let_go(ckb_volume *v, const ckbi_append *a)
{
    ckbi_partition *partition = ckbi_index_partition(&v->index, a->hash);
    CKB_MUTEX_LOCK(&v->lock);
    CKB_MUTEX_LOCK(&partition->lock);
    bool drafting = v->drafting;
    ckbi_slot *slot = drafting ? NULL : ckbi_compact_slot(v, a);
    if (slot) {
        ckbi_segment_release(v, slot);
        slot->offset = 0;
        slot->length = (uint32_t)v->segments[slot->segment].epoch;
        v->segments[slot->segment].cover |= CKBI_NEVER_COVERED;
        v->let_go++;
        v->compactor->pass_left -= v->compactor->pass_left > 0;
    }
    CKB_MUTEX_UNLOCK(&partition->lock);
    CKB_MUTEX_UNLOCK(&v->lock);
    return !drafting;
}

/* Lets the index point to where the record goes. CKB_NOTFOUND: it does not count any more. The writer's lock is
 * held and there is room. */
static CKBI_UNUSED int ckbi_compact_enter(ckb_writer *w, const ckbi_append *a)
{
    ckbi_partition *partition = ckbi_index_partition(&w->volume->index, a->hash);
    CKB_MUTEX_LOCK(&partition->lock);
    ckbi_slot *slot = ckbi_compact_slot(w->volume, a);
    if (slot) {
        slot->segment = w->segment;
        slot->offset = ckbi_writer_at(w);
    }
    CKB_MUTEX_UNLOCK(&partition->lock);
    return slot ? CKB_OK : CKB_NOTFOUND;
}

/* Moves a record whose payload is read piece by piece; the turn is exclusive. Once its head is appended all of it
 * must be, and be what its checksums say: records behind one that does not verify would be cut off with it. So
 * what is copied is summed up again, and a difference, or a read that fails only now, is final for the mount. */
static CKBI_UNUSED int ckbi_compact_large(ckb_writer *w, const ckbi_append *a)
{
    const uint8_t *head = w->buffer[w->active] + w->fill;
    uint32_t offset = ckbi_writer_at(w), tables = ckbi_table_bytes(a->length);
    uint32_t sum = ckbi_seed(w->seed, offset, CKBI_SEED_PAYLOAD), window = sum;
    uint8_t entry[8] = {0};
    int status = ckbi_put_chunk_head(w, a, NULL, 0);
    if (status != CKB_OK)
        return status;
    uint32_t expected = ckbi_get32(head + 12);
    for (uint32_t done = 0, step; done < a->length && status == CKB_OK; done += step) {
        const uint8_t *bytes;
        uint32_t in_window = done % CKB_WINDOW_BYTES;
        if (tables > 0 && in_window == 0)
            window = ckbi_seed(w->seed, offset, CKBI_SEED_WINDOW + done / CKB_WINDOW_BYTES);
        step =
            ckbi_min32(ckbi_min32(a->length - done, CKB_WINDOW_BYTES - in_window), ckbi_source_step(a->source));
        status = ckbi_source_get(a->source, a->payload + done / CKBI_UNIT, step, &bytes);
        if (status != CKB_OK)
            break;
        window = ckbi_crc_update(window, bytes, step);
        if (tables > 0 && (in_window + step == CKB_WINDOW_BYTES || done + step == a->length)) {
            ckbi_put32(entry, window);
            sum = ckbi_crc_update(sum, entry, 4);
        }
        status = ckbi_payload_copy(w, bytes, step);
    }
    ckbi_put32(entry, 0);
    if (ckbi_window_count(a->length) % 2 != 0)
        sum = ckbi_crc_update(sum, entry, 4); /* the table ends on a unit */
    if (status == CKB_OK && (tables > 0 ? sum : window) != expected)
        status = CKB_CORRUPT;
    return status == CKB_OK ? CKB_OK
                            : ckbi_writer_fail(w, ckbi_fail(w->volume, status, a->before.segment, a->payload));
}

/* Appends the record to the compactor's segment. It was verified. */
static CKBI_UNUSED int ckbi_compact_append(ckb_writer *w, ckbi_append *a)
{
    const ckb_geometry *g = &w->volume->medium.geometry;
    uint32_t total = ckbi_record_room(g, a->length, ckbi_table_bytes(a->length), false);
    bool large =
        total + (CKBI_RECORD_COMMON + CKBI_RECORD_START_BYTES) / CKBI_UNIT > w->buffer_bytes / CKBI_UNIT ||
        w->volume->compactor->walk.record.end - w->volume->compactor->walk.record.offset >
            ckbi_source_step(a->source) / CKBI_UNIT;
    int status = CKB_OK;
    if (!large && a->length > 0)
        status = ckbi_source_get(a->source, a->payload, a->length, &a->data);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&w->lock);
    status = ckbi_writer_room(w, total, large, true);
    bool turn = status == CKB_OK && large;
    uint32_t offset = ckbi_writer_at(w);
    if (status == CKB_OK)
        status = ckbi_compact_enter(w, a);
    if (status == CKB_OK) {
        if (large) {
            status = ckbi_compact_large(w, a);
        } else {
            a->source = NULL;
            if (a->length > 0)
                ckbi_copy(ckbi_append_payload(w, a), a->data, a->length);
            ckbi_append_small(w, a);
        }
        if (status == CKB_OK)
            ckbi_append_done(w, a, offset);
        else
            ckbi_append_undo(w, a);
    }
    if (turn)
        ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status == CKB_NOTFOUND ? CKB_OK : status;
}

/* Moves the record where the walk stands, if it counts. */
static CKBI_UNUSED int ckbi_compact_record(ckb_volume *v, uint64_t *moved)
{
    ckbi_compactor *c = v->compactor;
    const ckbi_record *r = &c->walk.record;
    ckbi_append *a = &c->append;
    const ckbi_slot *slot = &c->place.slot;
    if ((r->type != CKBI_RECORD_CHUNK && r->type != CKBI_RECORD_DELETE) ||
        ckbi_lookup(v, r->serial, r->block, r->chunk, &c->place) != CKB_OK || slot->segment != v->victim ||
        slot->offset != r->offset)
        return CKB_OK;
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_fill(a, 0, sizeof(*a));
    a->container = ckbi_container_by_serial(v, r->serial);
    CKB_MUTEX_UNLOCK(&v->lock);
    c->id.block = r->block;
    c->id.chunk = r->chunk;
    a->id = &c->id;
    a->serial = r->serial;
    a->hash = ckbi_index_hash(&v->index, r->serial, r->block, r->chunk);
    a->before = *slot;
    a->version = slot->version;
    a->tombstone = slot->version & CKBI_TOMBSTONE;
    a->length = a->tombstone ? 0 : r->payload_bytes;
    a->source = &c->walk.source;
    a->payload = r->payload;
    if (!a->container)
        return CKB_OK; /* deleted and forgotten: its slots are swept */
    if (a->tombstone && !ckbi_compact_must_keep(v, slot->length) && ckbi_compact_let_go(v, a))
        return CKB_OK;
    /* What fits into the buffer is verified there, and moved from there. */
    const uint8_t *whole;
    int status = CKB_OK;
    if (ckbi_bytes(r->end - r->offset) <= ckbi_source_step(&c->walk.source))
        status = ckbi_source_get(&c->walk.source, r->offset, (r->end - r->offset) * CKBI_UNIT, &whole);
    if (status == CKB_OK)
        status = ckbi_source_verify(&c->walk.source, r);
    if (status == CKB_CORRUPT) {
        ckbi_damage(v, CKB_TOPIC_PAYLOAD, v->victim, r->offset, 0, 0);
        return CKB_OK;
    }
    *moved += ckbi_bytes(r->end - r->offset);
    return status == CKB_OK ? ckbi_compact_append(c->writer, a) : status;
}

/* The victim is walked to its end, or cannot be: what was moved out of it is made durable, then it is freed. */
static CKBI_UNUSED int ckbi_compact_end(ckb_volume *v, int status)
{
    ckbi_compactor *c = v->compactor;
    if (status == CKB_END)
        status = ckbi_writer_commit(c->writer);
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_segment *s = &v->segments[v->victim];
    /* What was walked over and not moved is damaged, and stays where it is. */
    bool ours = status == CKB_NOSPACE || status == CKB_FAILED || status == CKB_READONLY;
    s->unmovable = !ours && CKBI_LOAD(&s->live) > 0;
    v->victim = CKB_NO_SEGMENT;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->long_lock);
    status = ckbi_reclaim(v);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* One step of compaction: a victim is found, about as much as an I/O buffer holds is moved, or it is freed.
 * `*work` is false when nothing gains `least` units, and there is no pass. The tidy lock is held. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_compact_step(ckb_volume *v, uint32_t least, bool *work)
{
    ckbi_compactor *c = v->compactor;
    uint64_t moved = 0;
    int status = CKB_OK;
    *work = v->victim != CKB_NO_SEGMENT || ckbi_compact_begin(v, least);
    if (!*work)
        return CKB_OK;
    for (uint32_t n = 0; n < CKBI_COMPACT_STEP_RECORDS && moved < v->io_bytes && status == CKB_OK; n++) {
        status = ckbi_walk_next(&c->walk);
        if (status == CKB_OK) {
            status = ckbi_compact_record(v, &moved);
        } else if (status == CKB_CORRUPT) {
            ckbi_damage(v, CKB_TOPIC_RECORD, v->victim, c->walk.record.offset, 0,
                        ckbi_bytes(c->walk.record.end - c->walk.record.offset));
            status = CKB_OK;
        }
    }
    CKB_MUTEX_LOCK(&v->lock);
    v->moved_bytes += moved;
    CKB_MUTEX_UNLOCK(&v->lock);
    return status == CKB_OK ? CKB_OK : ckbi_compact_end(v, status);
}

/* Leaves a segment that holds deletes: only one that nobody has open can be compacted. */
static CKBI_UNUSED int ckbi_writer_leave_deletes(ckb_writer *w)
{
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_take_turn(w, true);
    int status = w->error;
    if (status == CKB_OK && w->segment != CKB_NO_SEGMENT && w->deletes > 0)
        status = ckbi_writer_finish_segment(w);
    ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}

/* Begins a pass, if there are more deletes than the last one had to leave, by `more`. `*work` is set if one is
 * under way. */
static CKBI_UNUSED int ckbi_compact_pass(ckb_volume *v, uint64_t more, bool *work)
{
    ckbi_compactor *c = v->compactor;
    CKB_MUTEX_LOCK(&v->lock);
    uint64_t deletes = ckbi_compact_deletes(v);
    c->pass_left = ckbi_min(c->pass_left, deletes);
    bool begin = c->pass_epoch == 0 && deletes > c->pass_left + more;
    CKB_MUTEX_UNLOCK(&v->lock);
    int status = begin ? ckbi_each_writer(v, ckbi_writer_leave_deletes) : CKB_OK;
    if (begin && status == CKB_OK)
        status = ckb_sync(v);
    CKB_MUTEX_LOCK(&v->lock);
    if (begin && status == CKB_OK) {
        c->pass_epoch = v->next_epoch;
        c->pass_left = deletes;
    }
    *work = *work || c->pass_epoch != 0;
    CKB_MUTEX_UNLOCK(&v->lock);
    return status;
}

#define CKBI_COMPACT_PERCENT 6u       /* of a segment must be won, or it is not worth its writes */
#define CKBI_COMPACT_PERCENT_SHORT 3u /* when there is no other way */

static CKBI_UNUSED uint32_t ckbi_compact_least(const ckb_volume *v, uint32_t percent)
{
    return (uint32_t)(v->medium.geometry.segment_bytes / CKBI_UNIT * percent / 100) + 1;
}

/* Makes durable what all writers appended, so that what it superseded can be freed. */
static CKBI_UNUSED int ckbi_sync_and_reclaim(ckb_volume *v, uint32_t *freed)
{
    int status = ckb_sync(v);
    CKB_MUTEX_LOCK(&v->long_lock);
    if (status == CKB_OK)
        status = ckbi_reclaim(v);
    if (freed)
        *freed = v->freed;
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* A step of compaction if space is short, or deletes take much of the index. `*work`: there is more to do. */
static CKBI_UNUSED int ckbi_compact_when_short(ckb_volume *v, bool *work)
{
    int status = CKB_OK;
    if (!v->compactor)
        return CKB_OK;
    CKB_MUTEX_LOCK(&v->tidy_lock);
    bool short_of = ckbi_spare_segments(v) < v->config.free_segments;
    bool pass = v->victim != CKB_NO_SEGMENT;
    status = ckbi_compact_pass(v, v->index.capacity / 8, &pass);
    /* The last segments are not used up while others only wait for somebody's commit. */
    if (status == CKB_OK && short_of && v->victim == CKB_NO_SEGMENT &&
        ckbi_spare_segments(v) <= v->config.reserve_segments)
        status = ckbi_sync_and_reclaim(v, NULL);
    if (status == CKB_OK && (short_of || pass))
        status = ckbi_compact_step(v, ckbi_compact_least(v, CKBI_COMPACT_PERCENT), work);
    CKB_MUTEX_UNLOCK(&v->tidy_lock);
    return status;
}

/* Sweeps the index from its first slot to its last, if there is something to find. */
static CKBI_UNUSED bool ckbi_sweep_all(ckb_volume *v)
{
    CKB_MUTEX_LOCK(&v->lock);
    if (v->sweep_pays)
        ckbi_sweep_begin(v);
    bool sweep = v->sweep_needed, swept = sweep;
    CKB_MUTEX_UNLOCK(&v->lock);
    while (sweep) {
        ckbi_sweep_step(v);
        CKB_MUTEX_LOCK(&v->lock);
        sweep = v->sweep_needed;
        CKB_MUTEX_UNLOCK(&v->lock);
    }
    return swept;
}

/* Compacts until more than `keep` segments can be handed out, or nothing gains; then by a pass for the sake of
 * deletes, and by that alone if it is the index that is full. */
static CKBI_UNUSED bool ckbi_compact_for_room(ckb_volume *v, uint32_t keep, bool index)
{
    bool made = false, work = !index;
    int status = CKB_OK;
    if (!v->compactor)
        return false;
    CKB_MUTEX_LOCK(&v->tidy_lock);
    if (index)
        status = ckbi_compact_pass(v, 0, &work);
    while (status == CKB_OK && work && !made) {
        status = ckbi_compact_step(v, ckbi_compact_least(v, CKBI_COMPACT_PERCENT_SHORT), &work);
        if (status == CKB_OK && v->victim == CKB_NO_SEGMENT)
            status = ckbi_sync_and_reclaim(v, NULL);
        if (status == CKB_OK && !work)
            status = ckbi_compact_pass(v, 0, &work);
        made = index ? ckbi_sweep_all(v) : ckbi_spare_segments(v) > keep;
    }
    CKB_MUTEX_UNLOCK(&v->tidy_lock);
    return made;
}

CKBI_CHUNK_DEF int ckb_compact(ckb_volume *volume, uint32_t percent, uint32_t budget, bool *more)
{
    ckb_volume *v = volume;
    bool work = true;
    int status = ckbi_writable(v);
    if (percent == 0 || percent > 100 || (status == CKB_OK && !v->compactor))
        return CKB_INVALID;
    for (; work && status == CKB_OK && budget > 0; budget--) {
        CKB_MUTEX_LOCK(&v->tidy_lock);
        status = ckbi_compact_step(v, ckbi_compact_least(v, percent), &work);
        if (status == CKB_OK && v->victim == CKB_NO_SEGMENT)
            status = ckbi_sync_and_reclaim(v, NULL);
        if (status == CKB_OK && !work)
            status = ckbi_compact_pass(v, 0, &work);
        CKB_MUTEX_UNLOCK(&v->tidy_lock);
    }
    if (!work && status == CKB_OK)
        ckbi_sweep_all(v);
    if (more)
        *more = work && status == CKB_OK;
    return status;
}

/* Room for an append that leaves `keep` segments alone, or in the index: dead segments may be waiting for somebody's
 * sync, deleted containers for the sweep, and records that count may be moved together. No lock is held. False:
 * there is none. */
static CKBI_UNUSED CKBI_NOINLINE bool ckbi_make_room(ckb_volume *v, uint32_t keep, bool index)
{
    uint32_t freed = 0;
    bool made = CKBI_HAS_CHUNKS && ckbi_sweep_all(v);
    if (!index && ckbi_each_writer(v, ckbi_writer_let_go) != CKB_OK)
        return false;
    if (ckbi_sync_and_reclaim(v, &freed) != CKB_OK)
        return false;
    made = made || (freed > 0 && !index);
    if (CKBI_HAS_CHUNKS && (!made || (!index && ckbi_spare_segments(v) <= keep)))
        made |= ckbi_compact_for_room(v, keep, index);
    return made;
}

#define CKBI_DELETE 0x80000000u /* flag of an append beside the public ones: it deletes */

/* The append, as far as there is room at hand; or CKBI_INDEX_FULL. */
static CKBI_UNUSED CKBI_NOINLINE int ckbi_append_once(ckb_writer *w, const ckb_chunk_id *id, const void *data,
                                                      size_t length, unsigned flags)
{
    ckb_volume *v = w->volume;
    ckbi_append a;
    ckbi_fill(&a, 0, sizeof(a));
    a.id = id;
    a.data = (const uint8_t *)data;
    a.length = (uint32_t)length;
    a.flags = flags;
    a.tombstone = (flags & CKBI_DELETE) != 0;
    for (;;) {
        int status = ckbi_append_try(w, &a);
        if (status == CKB_BUSY) {
            status = ckbi_container_mark(v, a.container, a.serial);
            if (status == CKB_OK)
                continue;
        } else if (status == CKB_EXISTS) {
            status = ckbi_append_compare(w, &a);
            if (status == CKB_OK)
                return ckb_sync(v); /* it may wait in another writer, where this one's commit would miss it */
            if (status == CKB_CORRUPT && !ckbi_append_stands_still(v, &a))
                continue;
        }
        return status == CKB_OK && (a.flags & CKB_DURABLE) ? ckbi_writer_commit(w) : status;
    }
}

/* Appends, and makes room when there is none. */
static CKBI_UNUSED int ckbi_append_run(ckb_writer *w, const ckb_chunk_id *id, const void *data, size_t length,
                                       unsigned flags)
{
    for (uint32_t rooms = 0;; rooms++) {
        int status = ckbi_append_once(w, id, data, length, flags);
        bool index = status == CKBI_INDEX_FULL;
        if (index)
            status = CKB_NOSPACE;
        if (status != CKB_NOSPACE || rooms == CKBI_ROOMS_MAX ||
            !ckbi_make_room(w->volume, ckbi_writer_keeps(w, (flags & CKBI_DELETE) != 0), index))
            return status;
    }
}

CKBI_CHUNK_DEF int ckb_chunk_write(ckb_writer *writer, const ckb_chunk_id *id, const void *data, size_t length,
                                   unsigned flags)
{
    if ((flags & ~(CKB_OVERWRITE | CKB_DURABLE)) != 0 || (!data && length > 0))
        return CKB_INVALID;
    if (length > writer->payload_max)
        return CKB_TOOBIG;
    return ckbi_append_run(writer, id, data, length, flags);
}

CKBI_CHUNK_DEF int ckb_chunk_delete(ckb_writer *writer, const ckb_chunk_id *id, unsigned flags)
{
    if ((flags & ~CKB_DURABLE) != 0)
        return CKB_INVALID;
    return ckbi_append_run(writer, id, NULL, 0, flags | CKBI_DELETE);
}
#endif /* CKB_READ_ONLY */

/* ---------------------------------------------------------------------------------------------- >>chunk-read */

/* A check or a scrub under way; in the reader, as stacks are small. */
typedef struct ckbi_checking {
    ckb_volume *volume;
    struct ckb_reader *reader;
    int (*found)(void *context, const ckb_finding *finding);
    void *context;
    ckb_check_report *report;
    ckb_finding *finding;
    uint64_t epoch;          /* of the segment that is looked at */
    uint64_t entry_expected; /* index of the next entry in it; 0: any */
    uint64_t index;          /* for the next report */
    uint32_t serial;         /* of the container whose chunk the finding names */
    bool stopped;
    bool scrubs; /* holes wait for a look into the index, containers are marked */
} ckbi_checking;

struct ckb_reader {
    ckbi_source source;
    uint8_t *table;       /* window table of the last large chunk */
    uint64_t table_epoch; /* which chunk that is; 0: none */
    uint32_t table_segment, table_offset;
    ckbi_record table_record;
    ckbi_walk walk; /* of a check */
    ckbi_checking check;
    ckb_finding finding;
    ckb_fault fault;
};

/* ---- readers and cursors: a struct that begins with the source it reads through, and the source's buffer */

static CKBI_UNUSED size_t ckbi_reading_buffer(const ckb_geometry *g, size_t wanted)
{
    uint64_t least = (uint64_t)2 * g->write_unit + 256;
    uint64_t bytes = wanted ? wanted : ckbi_min(64 * 1024, g->segment_bytes);
    return (size_t)ckbi_align_up(ckbi_max(bytes, least), g->write_unit);
}

static CKBI_UNUSED size_t ckbi_reading_memory(const ckb_geometry *g, size_t struct_bytes, size_t buffer_bytes)
{
    ckbi_arena arena = {NULL, NULL, 0};
    if (!ckbi_geometry_valid(g))
        return 0;
    ckbi_arena_take(&arena, struct_bytes, 64);
    ckbi_arena_take(&arena, ckbi_reading_buffer(g, buffer_bytes), ckbi_buffer_align(g));
    return arena.used;
}

/* Null: there is too little memory. The buffer gets what is left of it behind the struct, which is zeroed. */
static CKBI_UNUSED void *ckbi_reading_open(ckb_volume *v, size_t struct_bytes, void *memory, size_t bytes)
{
    const ckb_geometry *g = &v->medium.geometry;
    size_t rest = ckbi_reading_memory(g, struct_bytes, 1);
    if (bytes < rest)
        return NULL;
    size_t size = (size_t)ckbi_align_down(ckbi_reading_buffer(g, 1) + (bytes - rest), g->write_unit);
    ckbi_arena arena = {(uint8_t *)memory, (uint8_t *)memory + bytes, 0};
    ckbi_source *source = (ckbi_source *)ckbi_arena_take(&arena, struct_bytes, 64);
    uint8_t *buffer = (uint8_t *)ckbi_arena_take(&arena, size, ckbi_buffer_align(g));
    if (!source || !buffer)
        return NULL;
    ckbi_fill(source, 0, struct_bytes);
    ckbi_source_init(source, v, buffer, size);
    return source;
}

/* A reader has the window table behind it. */
static CKBI_UNUSED size_t ckbi_reader_bytes(const ckb_geometry *g)
{
    return sizeof(ckb_reader) + ckbi_max_table_bytes(g);
}

CKB_DEF size_t ckb_reader_memory(const ckb_geometry *geometry, size_t buffer_bytes)
{
    return ckbi_reading_memory(geometry, ckbi_reader_bytes(geometry), buffer_bytes);
}

CKB_DEF int ckb_reader_open(ckb_volume *volume, void *memory, size_t bytes, ckb_reader **reader)
{
    size_t struct_bytes = ckbi_reader_bytes(&volume->medium.geometry);
    ckb_reader *r = (ckb_reader *)ckbi_reading_open(volume, struct_bytes, memory, bytes);
    *reader = r;
    if (!r)
        return CKB_INVALID;
    r->table = (uint8_t *)(r + 1);
    r->walk.source = r->source;
    return CKB_OK;
}

CKB_DEF void ckb_reader_fault(const ckb_reader *reader, ckb_fault *fault)
{
    *fault = reader->fault;
}

/* Bytes of one window that a read wants. */
typedef struct ckbi_piece {
    uint32_t begin, end; /* of the payload: what is to be verified */
    uint32_t from, to;   /* and what is wanted of it */
} ckbi_piece;

/* Verifies `piece` and copies the wanted part of it. */
static CKBI_UNUSED int ckbi_read_piece(ckb_reader *r, const ckbi_record *record, const ckbi_piece *piece,
                                       uint32_t state, uint32_t expected, uint8_t *out)
{
    uint32_t step_max = ckbi_source_step(&r->source);
    for (uint32_t at = piece->begin; at < piece->end;) {
        const uint8_t *bytes;
        uint32_t step = ckbi_min32(piece->end - at, step_max);
        int status = ckbi_source_get(&r->source, record->payload + at / CKBI_UNIT, step, &bytes);
        if (status != CKB_OK)
            return status;
        state = ckbi_crc_update(state, bytes, step);
        uint32_t from = ckbi_max32(piece->from, at), to = ckbi_min32(piece->to, at + step);
        if (from < to)
            ckbi_copy(out + (from - piece->from), bytes + (from - at), to - from);
        at += step;
    }
    return state == expected ? CKB_OK : CKB_CORRUPT;
}

/* Loads the window table of a large chunk, unless it is the one of the last read. */
static CKBI_UNUSED int ckbi_read_table(ckb_reader *r, const ckbi_place *place, const ckbi_record *record)
{
    uint32_t state = ckbi_seed(r->source.seed, record->offset, CKBI_SEED_PAYLOAD);
    uint32_t at = record->offset + record->header_bytes / CKBI_UNIT;
    r->table_epoch = 0;
    int status = ckbi_source_take(&r->source, at, record->tables, r->table, &state);
    if (status == CKB_OK && state != record->payload_crc)
        status = CKB_CORRUPT;
    if (status != CKB_OK)
        return status;
    r->table_epoch = place->epoch;
    r->table_segment = place->slot.segment;
    r->table_offset = place->slot.offset;
    r->table_record = *record;
    return CKB_OK;
}

/* Whole windows that the medium can put where the caller wants them are read there, many at once. */
static CKBI_UNUSED int ckbi_read_direct(ckb_reader *r, const ckbi_record *record, uint32_t from, uint32_t to,
                                        uint8_t *out)
{
    uint32_t left = to - from;
    int status = ckbi_load(r->source.volume, r->source.segment, record->payload + from / CKBI_UNIT, out, left);
    for (uint32_t window = from / CKB_WINDOW_BYTES; status == CKB_OK && left > 0; window++) {
        uint32_t step = ckbi_min32(CKB_WINDOW_BYTES, left);
        uint32_t state = ckbi_seed(r->source.seed, record->offset, CKBI_SEED_WINDOW + window);
        if (ckbi_crc_update(state, out, step) != ckbi_get32(r->table + (size_t)window * 4))
            status = CKB_CORRUPT;
        out += step;
        left -= step;
    }
    return status;
}

static CKBI_UNUSED bool ckbi_read_is_direct(const ckb_reader *r, const ckbi_record *record, uint32_t at,
                                            uint32_t to, const uint8_t *out)
{
    const ckb_geometry *g = &r->source.volume->medium.geometry;
    return at % CKB_WINDOW_BYTES == 0 && to > at &&
           (record->payload + at / CKBI_UNIT) % ckbi_source_unit(&r->source) == 0 &&
           (to - at) % g->read_unit == 0 && (uintptr_t)out % g->buffer_align == 0;
}

/* Reads `from`..`to` of a payload in windows. */
static CKBI_UNUSED int ckbi_read_windows(ckb_reader *r, const ckbi_record *record, uint32_t from, uint32_t to,
                                         uint8_t *out)
{
    uint32_t last_whole = to == record->payload_bytes ? to : ckbi_align_down32(to, CKB_WINDOW_BYTES);
    int status = CKB_OK;
    for (uint32_t at = from; status == CKB_OK && at < to;) {
        uint8_t *target = out + (at - from);
        if (ckbi_read_is_direct(r, record, at, last_whole, target)) {
            status = ckbi_read_direct(r, record, at, last_whole, target);
            at = last_whole;
            continue;
        }
        uint32_t window = at / CKB_WINDOW_BYTES;
        ckbi_piece piece;
        piece.begin = window * CKB_WINDOW_BYTES;
        piece.end = piece.begin + ckbi_min32(CKB_WINDOW_BYTES, record->payload_bytes - piece.begin);
        piece.from = at;
        piece.to = ckbi_min32(piece.end, to);
        status = ckbi_read_piece(r, record, &piece,
                                 ckbi_seed(r->source.seed, record->offset, CKBI_SEED_WINDOW + window),
                                 ckbi_get32(r->table + (size_t)window * 4), target);
        at = piece.to;
    }
    return status;
}

static CKBI_UNUSED bool ckbi_record_is_chunk(const ckbi_record *record, const ckbi_slot *slot)
{
    return record->type == CKBI_RECORD_CHUNK && record->serial == slot->serial &&
           record->block == slot->block && record->chunk == slot->chunk &&
           record->payload_bytes == slot->length && record->aux == slot->version;
}

/* Reads part of the chunk at a place that a lookup gave. */
static CKBI_UNUSED int ckbi_read_place(ckb_reader *r, const ckbi_place *place, uint32_t offset, uint8_t *out,
                                       uint32_t length)
{
    ckb_volume *v = r->source.volume;
    ckbi_record record;
    ckbi_source_open(&r->source, place->slot.segment, place->epoch);
    uint32_t at = place->slot.offset;
    if (at + CKBI_RECORD_CHUNK_BYTES / CKBI_UNIT + ckbi_units(place->slot.length) >
        ckbi_segment_units(&v->medium.geometry))
        return CKB_CORRUPT;
    if (place->slot.length > CKB_WINDOW_BYTES && r->table_epoch == place->epoch &&
        r->table_segment == place->slot.segment && r->table_offset == at)
        return ckbi_read_windows(r, &r->table_record, offset, offset + length, out);
    const uint8_t *head;
    /* A small chunk comes in one read with its header. */
    uint32_t with =
        place->slot.length <= ckbi_source_step(&r->source) - CKBI_RECORD_CHUNK_BYTES ? place->slot.length : 0;
    int status = ckbi_source_get(&r->source, at, CKBI_RECORD_CHUNK_BYTES + with, &head);
    if (status != CKB_OK)
        return status;
    status = ckbi_source_record(&r->source, at, &record);
    if (status == CKB_OK && !ckbi_record_is_chunk(&record, &place->slot))
        status = CKB_CORRUPT;
    if (status != CKB_OK)
        return status;
    if (record.tables > 0) {
        status = ckbi_read_table(r, place, &record);
        return status == CKB_OK ? ckbi_read_windows(r, &record, offset, offset + length, out) : status;
    }
    ckbi_piece piece = {0, record.payload_bytes, offset, offset + length};
    if (record.payload_bytes == 0)
        return CKB_OK;
    return ckbi_read_piece(r, &record, &piece, ckbi_seed(r->source.seed, at, CKBI_SEED_PAYLOAD),
                           record.payload_crc, out);
}

CKBI_CHUNK_DEF int ckb_chunk_read(ckb_reader *reader, const ckb_chunk_id *id, uint64_t offset, void *buffer,
                                  size_t length, size_t *got)
{
    ckb_reader *r = reader;
    ckb_volume *v = r->source.volume;
    ckbi_place place, again;
    ckbi_fill(&place, 0, sizeof(place));
    ckbi_fill(&r->fault, 0, sizeof(r->fault));
    if (got)
        *got = 0;
    int status = ckbi_find_chunk(v, id, &place);
    while (status == CKB_OK) {
        if (offset > place.slot.length) {
            status = CKB_END;
            break;
        }
        uint32_t wanted = (uint32_t)ckbi_min(length, place.slot.length - offset);
        status = ckbi_read_place(r, &place, (uint32_t)offset, (uint8_t *)buffer, wanted);
        if (status == CKB_OK && got)
            *got = wanted;
        if (status != CKB_CORRUPT)
            break;
        /* It may have been overwritten, deleted or moved while it was read: only what stands still is
         * corrupt. */
        status = ckbi_find_chunk(v, id, &again);
        if (status != CKB_OK)
            break;
        if (again.epoch == place.epoch && again.slot.segment == place.slot.segment &&
            again.slot.offset == place.slot.offset) {
            status = CKB_CORRUPT;
            break;
        }
        place = again;
    }
    if (status != CKB_OK) {
        ckbi_fault_set(&r->fault, status, status == CKB_IO ? CKB_TOPIC_MEDIUM : CKB_TOPIC_CHUNK,
                       place.slot.version ? place.slot.segment : CKB_NO_SEGMENT, place.slot.offset,
                       place.slot.length, offset);
        r->fault.index = id->chunk;
        if (status == CKB_CORRUPT && place.slot.version == 0) {
            CKB_MUTEX_LOCK(&v->lock);
            r->fault = v->first_damage;
            CKB_MUTEX_UNLOCK(&v->lock);
        }
    }
    return status;
}

/* ---------------------------------------------------------------------------------------------- >>export-impl */

#ifndef CKB_NO_CHUNKS
#define CKBI_FRAME_BYTES 40u
#define CKBI_FRAME_BEGIN 1u
#define CKBI_FRAME_CHUNK 2u
#define CKBI_FRAME_END 3u
#define CKBI_FRAME_MAJOR 1u

/* The checksum's state at the begin of a frame. */
static CKBI_UNUSED uint32_t ckbi_frame_seed(uint64_t offset)
{
    return ckbi_crc_update8(UINT32_MAX, offset);
}

static CKBI_UNUSED void ckbi_frame_begin(uint8_t *f, uint8_t kind, uint64_t id)
{
    ckbi_fill(f, 0, CKBI_FRAME_BYTES);
    f[4] = kind;
    f[5] = CKBI_FRAME_MAJOR;
    ckbi_put64(f + 8, id);
}

typedef struct ckbi_exporting {
    ckb_reader *reader;
    uint8_t *buffer;
    size_t buffer_bytes;
    int (*write)(void *context, const void *data, size_t bytes);
    void (*lost)(void *context, const ckb_chunk_id *id, int status);
    void *context;
    ckb_export_report *report;
} ckbi_exporting;

/* Seals the frame at the front of the buffer and writes it with its payload, which lies behind. */
static CKBI_UNUSED int ckbi_export_frame(ckbi_exporting *x, size_t payload)
{
    uint8_t *f = x->buffer;
    uint32_t seed = ckbi_frame_seed(x->report->offset);
    ckbi_put32(f + 28, (uint32_t)payload);
    ckbi_put32(f + 32, ckbi_crc_update(seed, f + CKBI_FRAME_BYTES, payload));
    ckbi_put32(f, ckbi_crc_update(seed, f + 4, CKBI_FRAME_BYTES - 4));
    int status = x->write(x->context, f, CKBI_FRAME_BYTES + payload);
    if (status == CKB_OK)
        x->report->offset += CKBI_FRAME_BYTES + payload;
    return status;
}

static CKBI_UNUSED int ckbi_export_chunk(ckbi_exporting *x, const ckb_chunk_info *info)
{
    size_t got = 0, room = x->buffer_bytes - CKBI_FRAME_BYTES;
    if (info->length > room)
        return CKB_TOOBIG;
    int status = ckb_chunk_read(x->reader, &info->id, 0, x->buffer + CKBI_FRAME_BYTES, room, &got);
    if (status == CKB_DELETED || status == CKB_NOTFOUND) /* meanwhile */
        return CKB_OK;
    if (status != CKB_OK) {
        x->report->left_out++;
        if (x->lost)
            x->lost(x->context, &info->id, status);
        return CKB_OK;
    }
    ckbi_frame_begin(x->buffer, CKBI_FRAME_CHUNK, info->id.block);
    ckbi_put32(x->buffer + 24, info->id.chunk);
    x->report->chunks++;
    x->report->bytes += got;
    return ckbi_export_frame(x, got);
}

CKB_DEF int ckb_export(ckb_volume *volume, ckb_reader *reader, uint64_t container, void *buffer,
                       size_t buffer_bytes, int (*write)(void *context, const void *data, size_t bytes),
                       void (*lost)(void *context, const ckb_chunk_id *id, int status), void *context,
                       ckb_export_report *report)
{
    ckbi_exporting x = {reader, (uint8_t *)buffer, buffer_bytes, write, lost, context, report};
    ckb_container_info there;
    ckb_chunk_info info;
    uint64_t cursor = 0;
    ckbi_fill(report, 0, sizeof(*report));
    int status = ckb_container_stat(volume, container, &there);
    if (status == CKB_OK && there.state == CKB_CONTAINER_DELETED)
        status = CKB_DELETED;
    if (status == CKB_OK && buffer_bytes < CKBI_FRAME_BYTES)
        status = CKB_INVALID;
    if (status != CKB_OK)
        return status;
    report->container = container;
    report->state = (uint32_t)there.state;
    ckbi_frame_begin(x.buffer, CKBI_FRAME_BEGIN, container);
    x.buffer[7] = (uint8_t)there.state;
    ckbi_copy(x.buffer + 16, "CKBXPORT", 8);
    status = ckbi_export_frame(&x, 0);
    while (status == CKB_OK && ckb_chunk_next(volume, &cursor, &info) == CKB_OK)
        if (info.id.container == container)
            status = ckbi_export_chunk(&x, &info);
    if (status != CKB_OK)
        return status;
    ckbi_frame_begin(x.buffer, CKBI_FRAME_END, report->chunks);
    ckbi_put64(x.buffer + 16, report->bytes);
    ckbi_put32(x.buffer + 24, report->left_out);
    return ckbi_export_frame(&x, 0);
}

#ifndef CKB_READ_ONLY
typedef struct ckbi_importing {
    ckb_writer *writer;
    uint8_t *buffer;
    size_t buffer_bytes;
    int (*read)(void *context, void *data, size_t bytes);
    void *context;
    ckb_export_report *report;
    uint64_t container;
} ckbi_importing;

/* Reads a frame with its payload, which is verified before anything is done with it. */
static CKBI_UNUSED int ckbi_import_frame(ckbi_importing *m)
{
    uint8_t *f = m->buffer;
    uint32_t seed = ckbi_frame_seed(m->report->offset);
    int status = m->read(m->context, f, CKBI_FRAME_BYTES);
    if (status != CKB_OK)
        return status == CKB_END ? CKB_CORRUPT : status;
    if (ckbi_get32(f) != ckbi_crc_update(seed, f + 4, CKBI_FRAME_BYTES - 4))
        return CKB_CORRUPT;
    if (f[5] != CKBI_FRAME_MAJOR)
        return CKB_VERSION;
    uint32_t payload = ckbi_get32(f + 28);
    if (payload > m->buffer_bytes - CKBI_FRAME_BYTES)
        return CKB_TOOBIG;
    if (payload > 0)
        status = m->read(m->context, f + CKBI_FRAME_BYTES, payload);
    if (status != CKB_OK)
        return status == CKB_END ? CKB_CORRUPT : status;
    return ckbi_get32(f + 32) == ckbi_crc_update(seed, f + CKBI_FRAME_BYTES, payload) ? CKB_OK : CKB_CORRUPT;
}

static CKBI_UNUSED int ckbi_import_begin(ckbi_importing *m, ckb_volume *v, bool own_id, unsigned flags)
{
    const uint8_t *f = m->buffer;
    int status = ckbi_import_frame(m);
    if (status == CKB_OK && (f[4] != CKBI_FRAME_BEGIN || ckbi_compare(f + 16, "CKBXPORT", 8) != 0))
        status = CKB_CORRUPT;
    if (status != CKB_OK)
        return status;
    m->report->container = ckbi_get64(f + 8);
    m->report->state = f[7];
    m->report->offset = CKBI_FRAME_BYTES;
    if (own_id)
        m->container = m->report->container;
    status = ckb_container_create(v, m->container);
    return status == CKB_EXISTS && (flags & CKB_RESUME) ? CKB_OK : status;
}

/* A frame behind BEGIN; `*end`: it is the last, and the sums are right. */
static CKBI_UNUSED int ckbi_import_next(ckbi_importing *m, bool *end)
{
    const uint8_t *f = m->buffer;
    ckb_export_report *r = m->report;
    int status = ckbi_import_frame(m);
    if (status != CKB_OK)
        return status;
    uint32_t payload = ckbi_get32(f + 28);
    if (f[4] == CKBI_FRAME_CHUNK) {
        ckb_chunk_id id = {m->container, ckbi_get64(f + 8), ckbi_get32(f + 24)};
        status = ckb_chunk_write(m->writer, &id, f + CKBI_FRAME_BYTES, payload, 0);
        r->chunks++;
        r->bytes += payload;
    } else {
        *end = f[4] == CKBI_FRAME_END && ckbi_get64(f + 8) == r->chunks && ckbi_get64(f + 16) == r->bytes;
        r->left_out = ckbi_get32(f + 24);
        status = *end ? CKB_OK : CKB_CORRUPT;
    }
    if (status == CKB_OK)
        r->offset += CKBI_FRAME_BYTES + (uint64_t)payload;
    return status;
}

CKB_DEF int ckb_import(ckb_volume *volume, ckb_writer *writer, uint64_t container, bool own_id, unsigned flags,
                       void *buffer, size_t buffer_bytes, int (*read)(void *context, void *data, size_t bytes),
                       void *context, ckb_export_report *report)
{
    ckbi_importing m = {writer, (uint8_t *)buffer, buffer_bytes, read, context, report, container};
    bool end = false;
    ckbi_fill(report, 0, sizeof(*report));
    if (buffer_bytes < CKBI_FRAME_BYTES)
        return CKB_INVALID;
    int status = ckbi_import_begin(&m, volume, own_id, flags);
    while (status == CKB_OK && !end)
        status = ckbi_import_next(&m, &end);
    if (status == CKB_OK)
        status = ckb_writer_commit(writer);
    if (status == CKB_OK && report->state != CKB_CONTAINER_OPEN)
        status = ckb_container_close(volume, m.container);
    return status;
}
#endif
#endif

/* ---------------------------------------------------------------------------------------------- >>stream-impl
 * A stream that writes keeps one chunk in a buffer. Invariant: when a chunk is written, the one behind it is not
 * there, durably; so whoever reads on behind a chunk finds what this stream wrote there, or nothing. */

#ifndef CKB_READ_ONLY
#define CKBI_STREAM_CHUNK_BYTES ((uint64_t)4 << 20)
#define CKBI_STREAM_CHUNK_LAST UINT32_MAX /* only the end of a block may have this number */

typedef struct ckbi_stream {
    ckb_stream head; /* first: the stream that callers see */
    ckb_writer *writer;
    ckb_chunk_id id; /* of the chunk that the buffer becomes */
    unsigned flags;  /* to write it with */
    bool ended;      /* the empty chunk that ends the block is there, under that number */
    int error;       /* final */
    uint8_t *buffer;
    size_t chunk_bytes;
    uint64_t base; /* position of the buffer in the block */
    uint64_t flush_calls, hsync_calls, close_calls;
} ckbi_stream;

/* 0: impossible on this geometry. */
static CKBI_UNUSED size_t ckbi_stream_chunk_bytes(const ckb_geometry *g, const ckb_stream_config *config)
{
    uint64_t most = ckbi_geometry_valid(g) ? ckbi_payload_max(g) : 0;
    if (!config || config->chunk_bytes == 0)
        return (size_t)ckbi_min(most, CKBI_STREAM_CHUNK_BYTES);
    return config->chunk_bytes <= most ? config->chunk_bytes : 0;
}

static CKBI_UNUSED ckbi_stream *ckbi_stream_layout(const ckb_geometry *g, size_t chunk_bytes, ckbi_arena *arena)
{
    ckbi_stream *s = (ckbi_stream *)ckbi_arena_take(arena, sizeof(ckbi_stream), 64);
    uint8_t *buffer = (uint8_t *)ckbi_arena_take(arena, chunk_bytes, (size_t)ckbi_max(g->buffer_align, 64));
    if (!s || !buffer)
        return NULL;
    ckbi_fill(s, 0, sizeof(*s));
    s->buffer = buffer;
    s->chunk_bytes = chunk_bytes;
    s->head.at = buffer;
    s->head.room = chunk_bytes;
    return s;
}

CKBI_CHUNK_DEF size_t ckb_stream_memory(const ckb_geometry *geometry, const ckb_stream_config *config)
{
    ckbi_arena arena = {NULL, NULL, 0};
    size_t chunk_bytes = ckbi_stream_chunk_bytes(geometry, config);
    if (chunk_bytes == 0)
        return 0;
    ckbi_stream_layout(geometry, chunk_bytes, &arena);
    return arena.used;
}

/* Deletes the chunk `id` and those that follow it, durably. `*flags`: what the next write of `id` needs. */
static CKBI_UNUSED int ckbi_stream_clear(ckb_writer *w, const ckb_chunk_id *id, unsigned *flags)
{
    ckb_chunk_id at = *id;
    ckb_chunk_info info;
    int status, found = CKB_OK;
    bool any = false;
    while ((found = ckb_chunk_stat(w->volume, &at, &info)) == CKB_OK) {
        status = ckb_chunk_delete(w, &at, 0);
        if (status != CKB_OK)
            return status;
        any = true;
        if (at.chunk++ == CKBI_STREAM_CHUNK_LAST)
            break;
    }
    *flags = any || found == CKB_DELETED ? CKB_OVERWRITE : 0;
    return any ? ckb_writer_commit(w) : CKB_OK;
}

/* Where the bytes of a block end, for an append. */
static CKBI_UNUSED int ckbi_stream_find_end(ckbi_stream *s)
{
    ckb_chunk_info info;
    int status;
    while ((status = ckb_chunk_stat(s->writer->volume, &s->id, &info)) == CKB_OK && info.length > 0) {
        if (s->id.chunk == CKBI_STREAM_CHUNK_LAST)
            return CKB_TOOBIG;
        s->base += info.length;
        s->id.chunk++;
    }
    s->ended = status == CKB_OK;
    s->flags = s->ended || status == CKB_DELETED ? CKB_OVERWRITE : 0;
    return status == CKB_CORRUPT || (status == CKB_DELETED && s->id.chunk == 0) ? status : CKB_OK;
}

/* What is there under the number of a block that must be new. */
static CKBI_UNUSED int ckbi_stream_expect_none(const ckbi_stream *s)
{
    ckb_chunk_info info;
    int status = ckb_chunk_stat(s->writer->volume, &s->id, &info);
    return status == CKB_OK ? CKB_EXISTS : status == CKB_DELETED ? CKB_DELETED : CKB_OK;
}

CKBI_CHUNK_DEF int ckb_stream_open(ckb_writer *writer, uint64_t container, uint64_t block,
                                   const ckb_stream_config *config, unsigned flags, void *memory, size_t bytes,
                                   ckb_stream **stream)
{
    const ckb_geometry *g = &writer->volume->medium.geometry;
    ckbi_arena arena = {(uint8_t *)memory, (uint8_t *)memory + bytes, 0};
    ckb_container_info info;
    size_t chunk_bytes = ckbi_stream_chunk_bytes(g, config);
    *stream = NULL;
    if (chunk_bytes == 0 || (flags != 0 && flags != CKB_OVERWRITE && flags != CKB_APPEND))
        return CKB_INVALID;
    ckbi_stream *s = ckbi_stream_layout(g, chunk_bytes, &arena);
    if (!s)
        return CKB_INVALID;
    s->writer = writer;
    s->id.container = container;
    s->id.block = block;
    int status = ckb_container_stat(writer->volume, container, &info);
    if (status == CKB_OK && info.state != CKB_CONTAINER_OPEN)
        status = CKB_READONLY;
    if (status != CKB_OK)
        return status;
    status = flags == CKB_OVERWRITE ? ckbi_stream_clear(writer, &s->id, &s->flags)
             : flags == CKB_APPEND  ? ckbi_stream_find_end(s)
                                    : ckbi_stream_expect_none(s);
    if (status == CKB_OK)
        *stream = &s->head;
    return status;
}

static CKBI_UNUSED size_t ckbi_stream_buffered(const ckbi_stream *s)
{
    return (size_t)(s->head.at - s->buffer);
}

/* Keeps a failure, unless the same call may succeed later. */
static CKBI_UNUSED int ckbi_stream_settle(ckbi_stream *s, int status)
{
    if (status != CKB_OK && status != CKB_NOSPACE && status != CKB_TOOBIG) {
        s->error = status;
        s->head.room = 0;
    }
    return status;
}

/* Writes a chunk, or the end. After a failure nothing has changed. */
static CKBI_UNUSED int ckbi_stream_put(ckbi_stream *s, const uint8_t *data, size_t length)
{
    ckb_chunk_id next = s->id;
    unsigned next_flags = 0;
    int status = CKB_OK;
    if (s->id.chunk != CKBI_STREAM_CHUNK_LAST) {
        next.chunk++;
        status = ckbi_stream_clear(s->writer, &next, &next_flags);
    } else if (length > 0) {
        status = CKB_TOOBIG;
    }
    if (status == CKB_OK)
        status = ckb_chunk_write(s->writer, &s->id, data, length, s->flags);
    if (status != CKB_OK)
        return ckbi_stream_settle(s, status);
    s->ended = length == 0;
    if (length > 0) {
        s->id = next;
        s->flags = next_flags;
        s->base += length;
    }
    return CKB_OK;
}

/* Ends the chunk that the buffer holds. */
static CKBI_UNUSED int ckbi_stream_end_chunk(ckbi_stream *s)
{
    size_t length = ckbi_stream_buffered(s);
    int status = s->error;
    if (status == CKB_OK && length > 0)
        status = ckbi_stream_put(s, s->buffer, length);
    if (status == CKB_OK) {
        s->head.at = s->buffer;
        s->head.room = s->chunk_bytes;
    }
    return status;
}

/* Fills the buffer from *data and writes it, or writes from the caller's memory what would be all of it. */
static CKBI_UNUSED int ckbi_stream_fill_chunk(ckbi_stream *s, const uint8_t *data)
{
    size_t room = s->head.room;
    if (room == s->chunk_bytes)
        return ckbi_stream_put(s, data, room);
    ckbi_copy(s->head.at, data, room);
    s->head.at += room;
    int status = ckbi_stream_end_chunk(s);
    if (status != CKB_OK)
        s->head.at -= room; /* taken back */
    return status;
}

CKBI_CHUNK_DEF int ckb_stream_write_more(ckb_stream *stream, const void *data, size_t length)
{
    ckbi_stream *s = (ckbi_stream *)stream;
    const uint8_t *from = (const uint8_t *)data;
    s->head.write_calls++;
    if (s->error != CKB_OK || length == 0)
        return s->error;
    while (length > s->head.room) {
        size_t part = s->head.room;
        int status = ckbi_stream_fill_chunk(s, from);
        if (status != CKB_OK)
            return status;
        from += part;
        length -= part;
    }
    ckbi_copy(s->head.at, from, length);
    s->head.at += length;
    s->head.room -= length;
    return CKB_OK;
}

CKBI_CHUNK_DEF int ckb_stream_flush(ckb_stream *stream)
{
    ckbi_stream *s = (ckbi_stream *)stream;
    s->flush_calls++;
    return ckbi_stream_end_chunk(s);
}

CKBI_CHUNK_DEF int ckb_stream_hsync(ckb_stream *stream)
{
    ckbi_stream *s = (ckbi_stream *)stream;
    s->hsync_calls++;
    int status = ckbi_stream_end_chunk(s);
    return status == CKB_OK ? ckbi_stream_settle(s, ckb_writer_commit(s->writer)) : status;
}

CKBI_CHUNK_DEF int ckb_stream_close(ckb_stream *stream, unsigned flags)
{
    ckbi_stream *s = (ckbi_stream *)stream;
    s->close_calls++;
    if ((flags & ~CKB_DURABLE) != 0)
        return CKB_INVALID;
    int status = ckbi_stream_end_chunk(s);
    if (status == CKB_OK && !s->ended)
        status = ckbi_stream_put(s, NULL, 0);
    if (status == CKB_OK && (flags & CKB_DURABLE) != 0)
        status = ckbi_stream_settle(s, ckb_writer_commit(s->writer));
    if (status == CKB_OK)
        (void)ckbi_stream_settle(s, CKB_INVALID);
    return status;
}

CKBI_CHUNK_DEF void ckb_stream_stat(const ckb_stream *stream, ckb_stream_info *info)
{
    const ckbi_stream *s = (const ckbi_stream *)stream;
    info->buffered = ckbi_stream_buffered(s);
    info->position = s->base + info->buffered;
    info->write_calls = s->head.write_calls;
    info->flush_calls = s->flush_calls;
    info->hsync_calls = s->hsync_calls;
    info->close_calls = s->close_calls;
    info->chunks = s->id.chunk;
}
#endif /* CKB_READ_ONLY */

/* Reads ahead in whole windows, so that each is verified once however small the reads are. */
struct ckb_stream_cursor {
    ckb_reader *reader;
    ckb_chunk_id next; /* the chunk behind the one the cursor is in, from 0 */
    uint64_t base;     /* position of that chunk in the block */
    uint32_t length;   /* of it; 0: there was none yet */
    uint32_t offset;   /* of the cursor in it */
    uint32_t ahead;    /* offset of what the buffer holds */
    void *reader_memory;
    uint32_t ahead_bytes;
    uint32_t buffer_bytes;
    uint8_t *buffer;
    ckb_chunk_id fault_id;
};

static CKBI_UNUSED size_t ckbi_stream_cursor_buffer(const ckb_geometry *g, size_t wanted)
{
    uint64_t bytes = ckbi_min(wanted ? wanted : 64 * 1024, UINT32_MAX / 2);
    return (size_t)ckbi_align_up(bytes, ckbi_max(CKB_WINDOW_BYTES, g->read_unit));
}

static CKBI_UNUSED ckb_stream_cursor *ckbi_stream_cursor_layout(const ckb_geometry *g, size_t buffer_bytes,
                                                                ckbi_arena *arena)
{
    ckb_stream_cursor *c = (ckb_stream_cursor *)ckbi_arena_take(arena, sizeof(ckb_stream_cursor), 64);
    uint8_t *buffer = (uint8_t *)ckbi_arena_take(arena, buffer_bytes, (size_t)ckbi_max(g->buffer_align, 64));
    void *reader = ckbi_arena_take(arena, ckb_reader_memory(g, 0), 1);
    if (!c || !buffer || !reader)
        return NULL;
    ckbi_fill(c, 0, sizeof(*c));
    c->buffer = buffer;
    c->buffer_bytes = (uint32_t)buffer_bytes;
    c->reader_memory = reader;
    return c;
}

CKBI_CHUNK_DEF size_t ckb_stream_cursor_memory(const ckb_geometry *geometry, size_t buffer_bytes)
{
    ckbi_arena arena = {NULL, NULL, 0};
    if (!ckbi_geometry_valid(geometry))
        return 0;
    ckbi_stream_cursor_layout(geometry, ckbi_stream_cursor_buffer(geometry, buffer_bytes), &arena);
    return arena.used;
}

CKBI_CHUNK_DEF int ckb_stream_cursor_open(ckb_volume *volume, uint64_t container, uint64_t block, void *memory,
                                          size_t bytes, ckb_stream_cursor **cursor)
{
    const ckb_geometry *g = &volume->medium.geometry;
    /* The buffer gets what is left of the memory behind everything else. */
    size_t rest = ckb_stream_cursor_memory(g, 1), least = ckbi_stream_cursor_buffer(g, 1);
    *cursor = NULL;
    if (bytes < rest)
        return CKB_INVALID;
    ckbi_arena arena = {(uint8_t *)memory, (uint8_t *)memory + bytes, 0};
    uint64_t buffer_bytes = ckbi_align_down(ckbi_min(least + (bytes - rest), UINT32_MAX / 2), least);
    ckb_stream_cursor *c = ckbi_stream_cursor_layout(g, (size_t)buffer_bytes, &arena);
    if (!c)
        return CKB_INVALID;
    int status = ckb_reader_open(volume, c->reader_memory, ckb_reader_memory(g, 0), &c->reader);
    if (status != CKB_OK)
        return status;
    c->next.container = container;
    c->next.block = block;
    *cursor = c;
    return CKB_OK;
}

/* The length of a chunk; CKB_END: it is the one that ends the block. */
static CKBI_UNUSED int ckbi_stream_look(ckb_stream_cursor *c, uint32_t chunk, uint32_t *length)
{
    ckb_volume *v = c->reader->source.volume;
    ckb_chunk_info info;
    ckb_chunk_id id = c->next, first = c->next;
    id.chunk = chunk;
    first.chunk = 0;
    c->fault_id = id;
    ckbi_fill(&info, 0, sizeof(info));
    int status = ckb_chunk_stat(v, &id, &info);
    *length = info.length;
    if (status == CKB_OK && info.length == 0)
        return CKB_END;
    /* One that was deleted behind a crash's cut says nothing about the block; its first one does. */
    if (status == CKB_DELETED && chunk > 0 && ckb_chunk_stat(v, &first, &info) != CKB_DELETED)
        status = CKB_NOTFOUND;
    if (status != CKB_OK) /* for the fault */
        (void)ckb_chunk_read(c->reader, &id, 0, c->buffer, 0, NULL);
    return status;
}

/* Goes into the next chunk. */
static CKBI_UNUSED int ckbi_stream_advance(ckb_stream_cursor *c)
{
    uint32_t length;
    int status = ckbi_stream_look(c, c->next.chunk, &length);
    if (status != CKB_OK)
        return status;
    c->base += c->length;
    c->length = length;
    c->offset = 0;
    c->ahead_bytes = 0;
    c->next.chunk++; /* the last number is never one of data */
    return CKB_OK;
}

/* Makes the buffer hold what is at the cursor. */
static CKBI_UNUSED int ckbi_stream_read_ahead(ckb_stream_cursor *c)
{
    if (c->offset == c->length) {
        int status = ckbi_stream_advance(c);
        if (status != CKB_OK)
            return status;
    }
    ckb_chunk_id id = c->next;
    id.chunk--;
    c->fault_id = id;
    c->ahead = c->offset - c->offset % CKB_WINDOW_BYTES;
    c->ahead_bytes = 0;
    size_t got = 0, wanted = (size_t)ckbi_min(c->buffer_bytes, c->length - c->ahead);
    int status = ckb_chunk_read(c->reader, &id, c->ahead, c->buffer, wanted, &got);
    if (status == CKB_END || (status == CKB_OK && got < wanted))
        return CKB_DELETED; /* a shorter one is there now */
    if (status == CKB_OK)
        c->ahead_bytes = (uint32_t)got;
    return status;
}

CKBI_CHUNK_DEF int ckb_stream_read(ckb_stream_cursor *cursor, void *buffer, size_t length, size_t *got)
{
    ckb_stream_cursor *c = cursor;
    uint8_t *out = (uint8_t *)buffer;
    size_t done = 0;
    int status = CKB_OK;
    while (done < length) {
        /* Wraps when the cursor stands before what the buffer holds. */
        uint32_t behind = c->offset - c->ahead;
        if (behind >= c->ahead_bytes) {
            status = ckbi_stream_read_ahead(c);
            if (status != CKB_OK)
                break;
            continue;
        }
        size_t step = (size_t)ckbi_min(length - done, c->ahead_bytes - behind);
        ckbi_copy(out + done, c->buffer + behind, step);
        c->offset += (uint32_t)step;
        done += step;
    }
    *got = done;
    return done > 0 ? CKB_OK : status;
}

CKBI_CHUNK_DEF int ckb_stream_seek(ckb_stream_cursor *cursor, uint64_t position)
{
    ckb_stream_cursor *c = cursor;
    ckb_chunk_id next = c->next;
    uint64_t base = c->base;
    uint32_t length = c->length;
    int status = CKB_OK;
    while (position < base && status == CKB_OK) {
        next.chunk--;
        status = ckbi_stream_look(c, next.chunk - 1, &length);
        base -= length;
    }
    while (position > base + length && status == CKB_OK) {
        base += length;
        status = ckbi_stream_look(c, next.chunk, &length);
        next.chunk++;
    }
    if (status == CKB_END && position < c->base)
        status = CKB_DELETED; /* replaced meanwhile */
    if (status != CKB_OK)
        return status;
    if (next.chunk != c->next.chunk)
        c->ahead_bytes = 0;
    c->next = next;
    c->base = base;
    c->length = length;
    c->offset = (uint32_t)(position - base);
    return CKB_OK;
}

CKBI_CHUNK_DEF uint64_t ckb_stream_position(const ckb_stream_cursor *cursor)
{
    return cursor->base + cursor->offset;
}

CKBI_CHUNK_DEF void ckb_stream_cursor_fault(const ckb_stream_cursor *cursor, ckb_chunk_id *id, ckb_fault *fault)
{
    *id = cursor->fault_id;
    *fault = cursor->reader->fault;
}

/* ---------------------------------------------------------------------------------------------- >>log-impl
 * A log is an appender of its own and the ring of its segments. Appending: room, index, record. Durability: a
 * commit of the appender. Purge and reset: a fact about the first index. Truncate: facts about segments. */

#ifdef CKB_READ_ONLY
#define CKBI_LOG_LOCK(log) ((void)(log))
#define CKBI_LOG_UNLOCK(log) ((void)(log))

static CKBI_UNUSED uint32_t ckbi_log_segment(const ckb_log *log, uint32_t n)
{
    return log->segments[n];
}

static CKBI_UNUSED CKBI_ONE_COPY uint64_t ckbi_log_next_index(const ckb_log *log)
{
    return log->base + 1;
}
#else
#define CKBI_LOG_LOCK(log) CKB_MUTEX_LOCK(&(log)->writer.lock)
#define CKBI_LOG_UNLOCK(log) CKB_MUTEX_UNLOCK(&(log)->writer.lock)
#endif

/* ---- opening */

static CKBI_UNUSED uint32_t ckbi_entry_max(const ckb_geometry *g)
{
    return ckbi_room_max(g, CKBI_RECORD_LOG_START_BYTES, 0);
}

CKBI_LOG_DEF uint32_t ckb_max_entry_bytes(const ckb_geometry *geometry)
{
    return ckbi_geometry_valid(geometry) ? ckbi_entry_max(geometry) : 0;
}

/* A buffer holds at least the start of a segment, an entry's header, and the ends of batches. */
static CKBI_UNUSED void ckbi_log_defaults(const ckb_geometry *g, const ckb_log_config *config,
                                          ckb_log_config *out)
{
    ckbi_fill(out, 0, sizeof(*out));
    if (config)
        *out = *config;
    uint64_t least = ckbi_align_up(256, g->write_unit) + g->write_unit;
    uint64_t usual = ckbi_min(256 * 1024, ckbi_align_down(g->segment_bytes / 4, g->write_unit));
    uint64_t bytes = out->buffer_bytes ? ckbi_min(out->buffer_bytes, UINT32_MAX / 4) : usual;
    out->buffer_bytes = (size_t)ckbi_align_up(ckbi_max(bytes, least), g->write_unit);
    if (out->max_entry_bytes == 0)
        out->max_entry_bytes = ckbi_entry_max(g);
    if (out->max_segments == 0 || out->max_segments > g->segment_count)
        out->max_segments = g->segment_count;
}

static CKBI_UNUSED ckb_log *ckbi_log_layout(const ckb_geometry *g, const ckb_log_config *c, ckbi_arena *arena)
{
    ckb_log *log = (ckb_log *)ckbi_arena_take(arena, sizeof(ckb_log), 64);
    void *ring = ckbi_arena_take(arena, (uint64_t)c->max_segments * sizeof(uint32_t), 8);
#ifndef CKB_READ_ONLY
    size_t align = ckbi_buffer_align(g);
    uint8_t *first = (uint8_t *)ckbi_arena_take(arena, c->buffer_bytes, align);
    uint8_t *second = (uint8_t *)ckbi_arena_take(arena, c->buffer_bytes, align);
#else
    (void)g;
#endif
    if (!log || arena->used >= SIZE_MAX / 2)
        return NULL; /* only counted, or the ring or a buffer did not fit */
    ckbi_fill(log, 0, sizeof(*log));
    log->segments = (uint32_t *)ring;
    log->capacity = c->max_segments;
    log->entry_max = c->max_entry_bytes;
#ifndef CKB_READ_ONLY
    log->writer.buffer[0] = first;
    log->writer.buffer[1] = second;
    log->writer.buffer_bytes = c->buffer_bytes;
    ckbi_writer_init(&log->writer, g);
#endif
    return log;
}

CKBI_LOG_DEF size_t ckb_log_memory(const ckb_geometry *geometry, const ckb_log_config *config)
{
    ckb_log_config c;
    ckbi_arena arena = {NULL, NULL, 0};
    if (!ckbi_geometry_valid(geometry) || ckbi_entry_max(geometry) == 0)
        return 0;
    ckbi_log_defaults(geometry, config, &c);
    if (c.max_entry_bytes > ckbi_entry_max(geometry))
        return 0;
    ckbi_log_layout(geometry, &c, &arena);
    return arena.used;
}

/* A name as it is stored. False: none, or too long. */
static CKBI_UNUSED bool ckbi_log_name(const char *name, char *stored)
{
    size_t length = 0;
    ckbi_fill(stored, 0, CKB_LOG_NAME_BYTES);
    for (; name && name[length]; length++) {
        if (length == CKB_LOG_NAME_BYTES)
            return false;
        stored[length] = name[length];
    }
    return length > 0;
}

/* The volume's lock is held. */
static CKBI_UNUSED ckbi_log_slot *ckbi_log_by_name(const ckb_volume *v, const char *name)
{
    char stored[CKB_LOG_NAME_BYTES];
    for (uint32_t i = 0; ckbi_log_name(name, stored) && i < v->config.max_logs; i++)
        if (v->logs[i].serial != 0 && ckbi_compare(v->logs[i].name, stored, CKB_LOG_NAME_BYTES) == 0)
            return &v->logs[i];
    return NULL;
}

/* Fills the ring from the newest segment to the oldest. False: there are more than it holds. The volume's
 * lock is held. */
static CKBI_UNUSED bool ckbi_log_fill_ring(ckb_log *log)
{
    const ckb_volume *v = log->volume;
    log->head = log->count = 0;
    log->closed = 0;
    for (uint32_t i = log->slot->newest; i != CKB_NO_SEGMENT; i = v->segments[i].previous)
        if (v->segments[i].log == log->slot->serial && v->segments[i].live != 0)
            log->count++;
        else
            break;
    if (log->count > log->capacity)
        return false;
    for (uint32_t i = log->slot->newest, n = log->count; n > 0; i = v->segments[i].previous) {
        log->segments[--n] = i;
        log->closed += v->segments[i].end;
    }
    return true;
}

/* Joins a log and its slot. The volume's lock is held. */
static CKBI_UNUSED int ckbi_log_attach(ckb_log *log, ckbi_log_slot *slot, bool salvage, ckb_fault *fault)
{
    ckb_volume *v = log->volume;
    log->slot = slot;
    if (!slot)
        return CKB_NOTFOUND;
    if (slot->open)
        return CKB_BUSY;
    if (slot->lost_segment != CKB_NO_SEGMENT && !salvage) {
        ckbi_fault_set(fault, CKB_CORRUPT, CKB_TOPIC_LOG_END, slot->lost_segment, 0,
                       v->segments[slot->lost_segment].epoch, 0);
        if (fault)
            fault->index = slot->next;
        return CKB_CORRUPT;
    }
    if (!ckbi_log_fill_ring(log)) {
        ckbi_fault_set(fault, CKB_NOSPACE, CKB_TOPIC_ARGUMENT, CKB_NO_SEGMENT, 0, log->count, log->capacity);
        return CKB_NOSPACE;
    }
    log->base = slot->next - 1;
    slot->open = log;
#ifndef CKB_READ_ONLY
    ckb_writer *w = &log->writer;
    w->volume = v;
    w->log = log;
    w->number = v->config.max_writers + (uint32_t)(slot - v->logs);
    log->read_only = slot->lost_segment != CKB_NO_SEGMENT;
    ckbi_writer_enlist(w);
#endif
    return CKB_OK;
}

CKBI_LOG_DEF int ckb_log_open(ckb_volume *volume, const char *name, const ckb_log_config *config, void *memory,
                              size_t bytes, ckb_log **log, ckb_fault *fault)
{
    const ckb_geometry *g = &volume->medium.geometry;
    ckbi_arena arena = {(uint8_t *)memory, (uint8_t *)memory + bytes, 0};
    ckb_log_config c;
    *log = NULL;
    size_t needed = ckb_log_memory(g, config);
    ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_MEMORY, CKB_NO_SEGMENT, 0, needed, bytes);
    ckbi_log_defaults(g, config, &c);
    ckb_log *opened = needed > 0 ? ckbi_log_layout(g, &c, &arena) : NULL;
    if (!opened)
        return CKB_INVALID;
    opened->volume = volume;
    CKB_MUTEX_LOCK(&volume->long_lock); /* nobody creates or deletes it meanwhile */
    CKB_MUTEX_LOCK(&volume->lock);
    ckbi_log_slot *slot = ckbi_log_by_name(volume, name);
    ckbi_fault_set(fault, slot ? CKB_BUSY : CKB_NOTFOUND, CKB_TOPIC_LOG, CKB_NO_SEGMENT, 0,
                   volume->config.max_logs, 0);
    int status = ckbi_log_attach(opened, slot, c.salvage || volume->config.salvage, fault);
    CKB_MUTEX_UNLOCK(&volume->lock);
    CKB_MUTEX_UNLOCK(&volume->long_lock);
    if (status == CKB_OK) {
        ckbi_fault_set(fault, CKB_OK, CKB_TOPIC_NONE, CKB_NO_SEGMENT, 0, 0, 0);
        *log = opened;
    }
    return status;
}

CKBI_LOG_DEF int ckb_log_close(ckb_log *log)
{
#ifdef CKB_READ_ONLY
    log->slot->open = NULL;
    return CKB_OK;
#else
    return ckb_writer_close(&log->writer);
#endif
}

/* ---- state */

#ifndef CKB_READ_ONLY
/* Index up to which all is durable. The log's lock is held. */
static CKBI_UNUSED uint64_t ckbi_log_durable(const ckb_log *log)
{
    if (CKBI_LOAD(&log->volume->unsettled))
        return log->slot->first - 1; /* what an unclean end left was perhaps never synced */
    return ckbi_max(log->base + log->writer.durable_ticket, log->slot->first - 1);
}
#endif

/* What is in memory of an open log. Its lock is held. */
static CKBI_UNUSED void ckbi_log_describe(const ckb_log *log, ckb_log_info *info)
{
    info->first = log->slot->first;
    info->last = ckbi_log_next_index(log) - 1;
    info->segments = log->count;
    info->bytes = log->closed * CKBI_UNIT;
    info->rolls = log->rolls;
    info->is_open = true;
#ifdef CKB_READ_ONLY
    info->durable = info->last;
#else
    info->durable = ckbi_log_durable(log);
    info->groups = log->writer.groups;
    if (log->writer.segment != CKB_NO_SEGMENT)
        info->bytes += ckbi_bytes(ckbi_writer_at(&log->writer));
#endif
}

/* And of one that is not open. The volume's lock is held. */
static CKBI_UNUSED void ckbi_log_describe_closed(const ckb_volume *v, const ckbi_log_slot *slot,
                                                 ckb_log_info *info)
{
    info->first = slot->first;
    info->last = slot->next - 1;
    info->durable = CKBI_LOAD(&v->unsettled) ? info->first - 1 : info->last;
    for (uint32_t i = slot->newest; i != CKB_NO_SEGMENT; i = v->segments[i].previous) {
        const ckbi_segment *s = &v->segments[i];
        if (s->log != slot->serial || CKBI_LOAD(&s->live) == 0)
            break;
        info->segments++;
        info->bytes += ckbi_bytes(s->end);
    }
}

/* The volume's lock is held. */
static CKBI_UNUSED void ckbi_log_info_fill(const ckb_volume *v, const ckbi_log_slot *slot, ckb_log_info *info)
{
    ckbi_fill(info, 0, sizeof(*info));
    ckbi_copy(info->name, slot->name, CKB_LOG_NAME_BYTES);
    info->end_lost = slot->lost_segment != CKB_NO_SEGMENT;
    if (slot->open) {
        CKBI_LOG_LOCK(slot->open);
        ckbi_log_describe(slot->open, info);
        CKBI_LOG_UNLOCK(slot->open);
    } else {
        ckbi_log_describe_closed(v, slot, info);
    }
}

CKBI_LOG_DEF void ckb_log_stat(ckb_log *log, ckb_log_info *info)
{
    ckbi_fill(info, 0, sizeof(*info));
    ckbi_copy(info->name, log->slot->name, CKB_LOG_NAME_BYTES);
    info->end_lost = log->slot->lost_segment != CKB_NO_SEGMENT;
    CKBI_LOG_LOCK(log);
    ckbi_log_describe(log, info);
    CKBI_LOG_UNLOCK(log);
}

CKBI_LOG_DEF int ckb_log_list(ckb_volume *volume, uint32_t *cursor, ckb_log_info *info)
{
    int status = CKB_END;
    CKB_MUTEX_LOCK(&volume->lock);
    for (; *cursor < volume->config.max_logs && status == CKB_END; ++*cursor) {
        if (volume->logs[*cursor].serial == 0)
            continue;
        ckbi_log_info_fill(volume, &volume->logs[*cursor], info);
        status = CKB_OK;
    }
    CKB_MUTEX_UNLOCK(&volume->lock);
    return status;
}

#ifndef CKB_READ_ONLY
/* ---- creating and deleting; the long lock is held in the helpers */

/* All segments that are handed out from now on have this epoch or a higher one: they are prepared and taken in
 * the order of their epochs. The long lock is held. */
static CKBI_UNUSED uint64_t ckbi_log_epoch(ckb_volume *v)
{
    CKB_MUTEX_LOCK(&v->lock);
    uint64_t epoch = v->pool_count > 0 ? v->segments[v->pool[0]].epoch : v->next_epoch;
    CKB_MUTEX_UNLOCK(&v->lock);
    return epoch;
}

/* Enters a new log into the journal and then into the table. */
static CKBI_UNUSED int ckbi_log_enter(ckb_volume *v, ckbi_log_slot *slot, const char *name, uint64_t first)
{
    uint32_t serial = v->next_serial;
    ckbi_log_slot fresh;
    ckbi_fill(&fresh, 0, sizeof(fresh));
    ckbi_log_name(name, fresh.name);
    fresh.serial = serial;
    fresh.first = fresh.next = first;
    fresh.newest = fresh.lost_segment = CKB_NO_SEGMENT;
    fresh.first_epoch = ckbi_log_epoch(v); /* what was lost before is not its */
    ckbi_fact_set(v, 0, CKBI_FACT_LOG, serial, ckbi_get64((const uint8_t *)fresh.name),
                  ckbi_get64((const uint8_t *)fresh.name + 8));
    ckbi_fact_set(v, 1, CKBI_FACT_LOG_FIRST, serial, first, fresh.first_epoch);
    int status = ckbi_journal_append(v, 2);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    *slot = fresh;
    v->next_serial = serial + 1;
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

CKBI_LOG_DEF int ckb_log_create(ckb_volume *volume, const char *name, uint64_t first_index)
{
    ckb_volume *v = volume;
    char stored[CKB_LOG_NAME_BYTES];
    if (!ckbi_log_name(name, stored) || first_index == UINT64_MAX)
        return CKB_INVALID;
    CKB_MUTEX_LOCK(&v->long_lock);
    CKB_MUTEX_LOCK(&v->lock);
    const ckbi_log_slot *there = ckbi_log_by_name(v, name);
    ckbi_log_slot *slot = ckbi_log_by_serial(v, 0);
    uint32_t serial = v->next_serial;
    CKB_MUTEX_UNLOCK(&v->lock);
    int status = ckbi_writable(v);
    if (status == CKB_OK && there)
        status = CKB_EXISTS;
    if (status == CKB_OK && (!slot || serial >= CKBI_LOG_UNKNOWN || !ckbi_journal_holds(v, 2)))
        status = CKB_NOSPACE;
    if (status == CKB_OK)
        status = ckbi_log_enter(v, slot, name, first_index ? first_index : 1);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* The journal says that the segments of a log do not count any more. The volume's lock is held. */
static CKBI_UNUSED void ckbi_log_void_segments(ckb_volume *v, uint32_t serial)
{
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count; i++) {
        ckbi_segment *s = &v->segments[i];
        if (s->log != serial)
            continue;
        CKBI_STORE(&s->live, 0);
        CKBI_STORE(&s->died_at, CKBI_ADD(&v->supersede_clock, 1));
    }
}

CKBI_LOG_DEF int ckb_log_delete(ckb_volume *volume, const char *name)
{
    ckb_volume *v = volume;
    CKB_MUTEX_LOCK(&v->long_lock);
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_log_slot *slot = ckbi_log_by_name(v, name);
    int status = !slot ? CKB_NOTFOUND : slot->open ? CKB_BUSY : ckbi_writable(v);
    CKB_MUTEX_UNLOCK(&v->lock);
    if (status == CKB_OK)
        status = ckbi_journal_say(v, CKBI_FACT_LOG, slot->serial, 0, 0);
    if (status == CKB_OK) {
        CKB_MUTEX_LOCK(&v->lock);
        ckbi_log_void_segments(v, slot->serial);
        slot->serial = 0;
        CKB_MUTEX_UNLOCK(&v->lock);
    }
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* ---- appending */

static CKBI_UNUSED int ckbi_log_writable(const ckb_log *log)
{
    return log->read_only ? CKB_READONLY : ckbi_writable(log->volume);
}

/* Room that an entry needs. A large one does not fit a buffer beside the start of a segment and the end of a
 * batch. */
static CKBI_UNUSED uint32_t ckbi_entry_room(const ckb_writer *w, size_t length, bool *large)
{
    const ckb_geometry *g = &w->volume->medium.geometry;
    uint32_t room = ckbi_record_room(g, (uint32_t)length, 0, false);
    *large =
        room + (CKBI_RECORD_COMMON + CKBI_RECORD_LOG_START_BYTES) / CKBI_UNIT > w->buffer_bytes / CKBI_UNIT;
    return *large ? room + ckbi_write_units(g) : room;
}

/* Writes the header of an entry. */
static CKBI_UNUSED void ckbi_put_entry_head(ckb_writer *w, const ckb_entry_data *e, uint8_t flags)
{
    uint8_t *at = w->buffer[w->active] + w->fill;
    uint32_t offset = ckbi_writer_at(w);
    uint64_t pending = w->appended - w->durable_ticket;
    ckbi_record_begin(at, CKBI_RECORD_ENTRY, flags, CKBI_RECORD_ENTRY_BYTES, (uint32_t)e->length, w->durable,
                      (uint32_t)ckbi_min(pending, UINT32_MAX));
    ckbi_put64(at + 24, ckbi_log_next_index(w->log));
    ckbi_put64(at + 32, e->term);
    uint32_t state = ckbi_seed(w->seed, offset, CKBI_SEED_PAYLOAD);
    ckbi_put32(at + 12, e->length > 0 ? ckbi_crc_update(state, e->data, e->length) : 0);
    ckbi_record_seal(at, w->seed, offset);
    w->fill += CKBI_RECORD_ENTRY_BYTES;
}

/* Appends an entry for which there is room; a large one has an exclusive turn. */
static CKBI_UNUSED int ckbi_put_entry(ckb_writer *w, const ckb_entry_data *e, bool large)
{
    uint32_t offset = ckbi_writer_at(w);
    const uint8_t *data = (const uint8_t *)e->data;
    uint8_t flags = large ? ckbi_payload_flags(w, data) : 0;
    int status = CKB_OK;
    ckbi_put_entry_head(w, e, flags);
    if (large) {
        status = ckbi_payload_pass(w, data, e->length, flags);
    } else if (e->length > 0) {
        ckbi_copy(w->buffer[w->active] + w->fill, data, e->length);
        w->fill += e->length;
        ckbi_pad_record(w);
    }
    if (status != CKB_OK)
        return status;
    w->live += ckbi_writer_at(w) - offset;
    w->summary_last = offset;
    w->appended++;
    return CKB_OK;
}

/* May these entries be appended? `*room` is what they need in a segment at most: several may end a buffer
 * on the way, which is padded then, and somebody's commit may do so as often. */
static CKBI_UNUSED CKBI_ONE_COPY int ckbi_log_check(ckb_log *log, const ckb_entry_data *entries, size_t count,
                                                    uint32_t *room)
{
    const ckb_geometry *g = &log->volume->medium.geometry;
    const ckb_writer *w = &log->writer;
    uint32_t buffer = (uint32_t)(w->buffer_bytes / CKBI_UNIT), fill = buffer;
    uint32_t padding = count > 1 ? 2 * (CKBI_RECORD_COMMON + g->write_unit) / CKBI_UNIT : 0;
    uint32_t most = ckbi_entry_max(g) / CKBI_UNIT + ckbi_record_room(g, CKBI_UNIT, 0, true);
    *room = padding;
    for (size_t i = 0; i < count; i++) {
        const ckb_entry_data *e = &entries[i];
        if (!e->data && e->length > 0)
            return CKB_INVALID;
        if (e->length > log->entry_max)
            return CKB_TOOBIG;
        bool large;
        uint32_t total = ckbi_entry_room(w, e->length, &large);
        bool end = large || fill + total + CKBI_RECORD_COMMON / CKBI_UNIT > buffer;
        fill = large ? ckbi_write_units(g) : end ? total : fill + total;
        *room = ckbi_min32(*room + total + (end ? padding : 0), most + 1);
    }
    return *room > most ? CKB_TOOBIG : CKB_OK;
}

/* Appends entries one by one, with the log to itself. On CKB_NOSPACE nothing has changed: room for all of them
 * is found with the first. The lock is held. */
static CKBI_UNUSED int ckbi_log_put_all(ckb_log *log, const ckb_entry_data *entries, size_t count,
                                        uint32_t room)
{
    ckb_writer *w = &log->writer;
    int status = CKB_OK;
    log->batch = true;
    for (size_t i = 0; i < count && status == CKB_OK; i++) {
        bool large;
        uint32_t total = ckbi_entry_room(w, entries[i].length, &large);
        w->promised = i == 0 ? room - total : 0;
        status = ckbi_writer_room(w, total, large, false);
        w->promised = 0;
        if (status == CKB_OK) {
            /* A reset that had the turn may have gone near the last index. */
            status = i > 0 || count <= UINT64_MAX - ckbi_log_next_index(log)
                         ? ckbi_put_entry(w, &entries[i], large)
                         : CKB_TOOBIG;
            if (large)
                ckbi_writer_end_turn(w);
        }
    }
    log->batch = false;
    CKB_CONDITION_BROADCAST(&w->changed);
    return status;
}

/* One attempt. `*ticket` counts the appends up to the last of these. The lock is held. */
static CKBI_UNUSED int ckbi_log_try(ckb_log *log, const ckb_entry_data *entries, size_t count, uint32_t room,
                                    uint64_t *first, uint64_t *ticket)
{
    ckb_writer *w = &log->writer;
    while (log->batch)
        ckbi_writer_wait(w);
    int status = ckbi_log_writable(log);
    *first = ckbi_log_next_index(log);
    if (status == CKB_OK && count > UINT64_MAX - *first)
        status = CKB_TOOBIG; /* indexes are used up */
    if (status != CKB_OK)
        return status;
    bool large;
    ckbi_entry_room(w, entries[0].length, &large);
    if (count == 1 && !large && ckbi_writer_has_room(w, room, false))
        status = ckbi_put_entry(w, &entries[0], false);
    else
        status = ckbi_log_put_all(log, entries, count, room);
    if (status == CKB_OK) {
        *first = ckbi_log_next_index(log) - count;
        *ticket = w->appended;
    }
    return status;
}

CKBI_LOG_DEF int ckb_log_append_many(ckb_log *log, const ckb_entry_data *entries, size_t count, unsigned flags,
                                     uint64_t *first)
{
    ckb_writer *w = &log->writer;
    uint32_t room;
    uint64_t index, ticket = 0;
    if ((flags & ~CKB_DURABLE) != 0 || !entries || count == 0)
        return CKB_INVALID;
    int status = ckbi_log_check(log, entries, count, &room);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&w->lock);
    for (bool room_made = false;;) {
        status = ckbi_log_try(log, entries, count, room, &index, &ticket);
        if (status != CKB_NOSPACE || room_made)
            break;
        CKB_MUTEX_UNLOCK(&w->lock);
        room_made = ckbi_make_room(log->volume, log->volume->config.reserve_segments, false);
        CKB_MUTEX_LOCK(&w->lock);
        if (!room_made)
            break;
    }
    if (status == CKB_OK && (flags & CKB_DURABLE))
        status = ckbi_writer_commit_to(w, ticket);
    else
        CKB_MUTEX_UNLOCK(&w->lock);
    if (first && ticket > 0)
        *first = index;
    return status;
}

CKBI_LOG_DEF int ckb_log_append(ckb_log *log, uint64_t term, const void *data, size_t length, unsigned flags,
                                uint64_t *index)
{
    ckb_entry_data entry = {term, data, length};
    return ckb_log_append_many(log, &entry, 1, flags, index);
}

/* Syncs what an unclean end left, unless that was done. The journal need not move for that, and perhaps has no
 * room to. */
static CKBI_UNUSED int ckbi_log_settle(ckb_volume *v)
{
    int status = CKB_OK;
    if (!CKBI_LOAD(&v->unsettled))
        return CKB_OK;
    CKB_MUTEX_LOCK(&v->long_lock);
    if (v->unsettled)
        status = ckbi_settle(v);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

CKBI_LOG_DEF int ckb_log_commit(ckb_log *log, uint64_t index)
{
    ckb_writer *w = &log->writer;
    int status = ckbi_log_writable(log);
    if (status == CKB_OK)
        status = ckbi_log_settle(log->volume);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&w->lock);
    if (index >= ckbi_log_next_index(log))
        status = CKB_END;
    /* The base wraps round when the log was reset to a lower index. Older entries were there at the mount. */
    uint64_t ticket = index - log->base;
    if (status == CKB_OK && ticket <= w->appended)
        return ckbi_writer_commit_to(w, ticket);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}

/* ---- dropping entries */

/* Waits until nobody appends, and makes durable all there is. The turn is the caller's to end. The lock is
 * held. */
static CKBI_UNUSED int ckbi_log_quiesce(ckb_log *log)
{
    ckb_writer *w = &log->writer;
    while (w->busy || log->batch)
        ckbi_writer_wait(w);
    ckbi_writer_take_turn(w, true);
    int status = w->error == CKB_OK ? ckbi_log_writable(log) : w->error;
    if (status == CKB_OK && w->segment != CKB_NO_SEGMENT)
        status = ckbi_writer_finish_segment(w);
    return status == CKB_OK ? ckbi_writer_make_durable(w) : status;
}

/* Entries vanished at the end. The log's lock is held. */
static CKBI_UNUSED void ckbi_log_set_next(ckb_log *log, uint64_t next)
{
    log->base = next - 1 - log->writer.appended;
    log->generation++;
}

/* Finds the entry `index` in a segment; the walk stands behind it, v->walk.record is its record. The long
 * lock is held. CKB_CORRUPT: it is not there. */
static CKBI_UNUSED int ckbi_log_find(ckb_volume *v, uint32_t segment, uint64_t index)
{
    const ckbi_segment *s = &v->segments[segment];
    ckbi_walk_open(&v->walk, segment, s->epoch);
    v->walk.stop = v->walk.known = s->end;
    v->walk.whole = true;
    for (;;) {
        int status = ckbi_walk_next(&v->walk);
        if (status == CKB_OK && v->walk.record.type == CKBI_RECORD_ENTRY && v->walk.record.block == index)
            return CKB_OK;
        if (status != CKB_OK && status != CKB_CORRUPT)
            return status == CKB_END ? CKB_CORRUPT : status;
    }
}

/* What a truncate does: which segments stay, and where the last of them ends now. */
typedef struct ckbi_cut {
    uint32_t keep; /* segments, from the oldest */
    uint32_t segment;
    uint32_t end, last; /* units; end 0: it stays as it is */
} ckbi_cut;

static CKBI_UNUSED int ckbi_log_plan_cut(ckb_log *log, uint64_t last_kept, ckbi_cut *cut)
{
    ckb_volume *v = log->volume;
    ckbi_fill(cut, 0, sizeof(*cut));
    if (last_kept < log->slot->first)
        return CKB_OK; /* all goes; what is below the first may not be there any more */
    cut->keep = log->count;
    while (cut->keep > 0 && v->segments[ckbi_log_segment(log, cut->keep - 1)].first > last_kept)
        cut->keep--;
    if (cut->keep == 0 ||
        (cut->keep < log->count && v->segments[ckbi_log_segment(log, cut->keep)].first == last_kept + 1))
        return CKB_OK;
    cut->segment = ckbi_log_segment(log, cut->keep - 1);
    int status = ckbi_log_find(v, cut->segment, last_kept);
    cut->end = v->walk.at;
    cut->last = v->walk.record.offset;
    return status;
}

/* The journal says it: segments from the nth on are free, and with `whole` the last one that stays is cut. */
static CKBI_UNUSED void ckbi_log_apply_cut(ckb_log *log, const ckbi_cut *cut, uint32_t n, uint64_t next)
{
    ckb_volume *v = log->volume;
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_LOG_LOCK(log);
    while (log->count > n) {
        uint32_t segment = ckbi_log_segment(log, --log->count);
        log->closed -= v->segments[segment].end;
        ckbi_segment_set_free(v, segment);
    }
    log->slot->newest = n > 0 ? ckbi_log_segment(log, n - 1) : CKB_NO_SEGMENT;
    if (n == cut->keep && cut->end > 0) {
        ckbi_segment *s = &v->segments[cut->segment];
        log->closed -= s->end - cut->end;
        s->end = cut->end;
        s->summary = cut->last;
        s->extent = CKBI_EXTENT_FULL;
        CKBI_STORE(&s->state, CKB_SEGMENT_FULL);
    }
    ckbi_log_set_next(log, next);
    CKBI_LOG_UNLOCK(log);
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* Frees segments, newest first, and cuts the one that stays, all in one batch of facts where they fit: a
 * power cut in between leaves a log that ends with a segment. The long lock is held. */
static CKBI_UNUSED int ckbi_log_cut(ckb_log *log, const ckbi_cut *cut, uint64_t last_kept)
{
    ckb_volume *v = log->volume;
    uint32_t n = log->count;
    for (;;) {
        uint32_t count = 0;
        for (; n > cut->keep && count + 1 < CKBI_FACTS_MAX; count++)
            ckbi_fact_set_free(v, count, ckbi_log_segment(log, --n));
        uint64_t next = n > cut->keep ? v->segments[ckbi_log_segment(log, n)].first : last_kept + 1;
        if (n == cut->keep && cut->end > 0)
            ckbi_fact_set(v, count++, CKBI_FACT_SEGMENT, cut->segment, v->segments[cut->segment].epoch,
                          ckbi_extent(CKBI_EXTENT_FULL, cut->end, cut->last));
        int status = ckbi_journal_append(v, count);
        if (status != CKB_OK)
            return status;
        ckbi_log_apply_cut(log, cut, n, next);
        if (n == cut->keep)
            return CKB_OK;
    }
}

CKBI_LOG_DEF int ckb_log_truncate(ckb_log *log, uint64_t last_kept)
{
    ckb_volume *v = log->volume;
    ckb_writer *w = &log->writer;
    ckbi_cut cut;
    CKB_MUTEX_LOCK(&w->lock);
    bool none = last_kept >= ckbi_log_next_index(log) - 1;
    if (none) {
        CKB_MUTEX_UNLOCK(&w->lock);
        return ckbi_log_writable(log);
    }
    int status = ckbi_log_quiesce(log);
    none = last_kept >= ckbi_log_next_index(log) - 1;
    CKB_MUTEX_UNLOCK(&w->lock);
    CKB_MUTEX_LOCK(&v->long_lock); /* so that the first index stands still */
    if (status == CKB_OK && !none)
        status = last_kept < log->slot->first - 1 ? CKB_PURGED : ckbi_log_plan_cut(log, last_kept, &cut);
    if (status == CKB_OK && !none)
        status = ckbi_log_cut(log, &cut, last_kept);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}

/* The epoch of the segment that holds the entry `first`, or of the newest one: those of lower epochs hold nothing
 * that a purge keeps. The long lock is held. */
static CKBI_UNUSED uint64_t ckbi_log_purge_epoch(ckb_log *log, uint64_t first)
{
    ckb_volume *v = log->volume;
    uint64_t epoch = log->slot->first_epoch;
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_LOG_LOCK(log);
    for (uint32_t n = 0; n < log->count; n++) {
        const ckbi_segment *s = &v->segments[ckbi_log_segment(log, n)];
        if (s->first > first)
            break;
        epoch = ckbi_max(epoch, s->epoch);
    }
    CKBI_LOG_UNLOCK(log);
    CKB_MUTEX_UNLOCK(&v->lock);
    return epoch;
}

/* Makes the first index so, in the journal and then here; a reset drops all there is. The long lock is held. */
static CKBI_UNUSED int ckbi_log_set_first(ckb_log *log, uint64_t first, bool reset)
{
    ckb_volume *v = log->volume;
    uint64_t first_epoch = reset ? ckbi_log_epoch(v) : ckbi_log_purge_epoch(log, first);
    int status = ckbi_journal_say(v, CKBI_FACT_LOG_FIRST, log->slot->serial, first, first_epoch);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_LOG_LOCK(log);
    if (reset)
        ckbi_log_set_next(log, first);
    while (reset && log->count > 0)
        ckbi_log_drop_oldest(log);
    log->slot->first = first;
    log->slot->first_epoch = first_epoch;
    ckbi_log_trim(log);
    CKBI_LOG_UNLOCK(log);
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

CKBI_LOG_DEF int ckb_log_purge(ckb_log *log, uint64_t first_kept)
{
    ckb_volume *v = log->volume;
    CKB_MUTEX_LOCK(&v->long_lock);
    CKBI_LOG_LOCK(log);
    int status = ckbi_log_writable(log);
    bool none = first_kept <= log->slot->first;
    if (first_kept > ckbi_log_next_index(log))
        status = CKB_END;
    CKBI_LOG_UNLOCK(log);
    if (status == CKB_OK && !none)
        status = ckbi_log_set_first(log, first_kept, false);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

CKBI_LOG_DEF int ckb_log_reset(ckb_log *log, uint64_t next_index)
{
    ckb_volume *v = log->volume;
    ckb_writer *w = &log->writer;
    if (next_index == 0 || next_index == UINT64_MAX)
        return CKB_INVALID;
    CKB_MUTEX_LOCK(&w->lock);
    int status = ckbi_log_quiesce(log);
    CKB_MUTEX_UNLOCK(&w->lock);
    CKB_MUTEX_LOCK(&v->long_lock);
    if (status == CKB_OK)
        status = ckbi_log_set_first(log, next_index, true);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    CKB_MUTEX_LOCK(&w->lock);
    ckbi_writer_end_turn(w);
    CKB_MUTEX_UNLOCK(&w->lock);
    return status;
}
#endif /* CKB_READ_ONLY */

/* ---- reading */

struct ckb_log_cursor {
    ckbi_walk walk; /* over the segment the cursor is in */
    ckb_log *log;
    uint64_t next;       /* index of the entry to read */
    uint64_t behind;     /* first index that the segment does not hold */
    uint64_t lost_until; /* after damage: the next index that may be readable */
    uint64_t epoch;
    uint32_t segment;    /* CKB_NO_SEGMENT: to be looked for */
    uint32_t generation; /* of the log */
    bool salvage;
    bool jump; /* the next entry is perhaps in another segment */
    ckb_fault fault;
};

CKBI_LOG_DEF size_t ckb_log_cursor_memory(const ckb_geometry *geometry, size_t buffer_bytes)
{
    return ckbi_reading_memory(geometry, sizeof(ckb_log_cursor), buffer_bytes);
}

CKBI_LOG_DEF int ckb_log_cursor_open(ckb_log *log, unsigned flags, void *memory, size_t bytes,
                                     ckb_log_cursor **cursor)
{
    *cursor = NULL;
    if ((flags & ~CKB_SALVAGE) != 0)
        return CKB_INVALID;
    ckb_log_cursor *c = (ckb_log_cursor *)ckbi_reading_open(log->volume, sizeof(*c), memory, bytes);
    if (!c)
        return CKB_INVALID;
    c->log = log;
    c->salvage = (flags & CKB_SALVAGE) != 0;
    c->segment = CKB_NO_SEGMENT;
    CKBI_LOG_LOCK(log);
    c->next = log->slot->first;
    CKBI_LOG_UNLOCK(log);
    *cursor = c;
    return CKB_OK;
}

CKBI_LOG_DEF void ckb_log_seek(ckb_log_cursor *cursor, uint64_t index)
{
    if (index < cursor->next)
        cursor->segment = CKB_NO_SEGMENT;
    cursor->jump = index > cursor->next && index >= cursor->behind;
    cursor->next = index;
}

CKBI_LOG_DEF void ckb_log_cursor_fault(const ckb_log_cursor *cursor, ckb_fault *fault)
{
    *fault = cursor->fault;
}

static CKBI_UNUSED void ckbi_cursor_fault(ckb_log_cursor *c, int status, int topic, uint32_t at,
                                          uint64_t expected, uint64_t found)
{
    ckbi_fault_set(&c->fault, status, topic, c->segment, at, expected, found);
    c->fault.index = c->next;
}

/* Is there an entry to read? What vanished since the last call makes the cursor look anew. */
static CKBI_UNUSED int ckbi_cursor_bounds(ckb_log_cursor *c, ckb_entry *entry)
{
    ckb_log *log = c->log;
    CKBI_LOG_LOCK(log);
    uint64_t first = log->slot->first, next = ckbi_log_next_index(log);
    if (c->generation != log->generation)
        c->segment = CKB_NO_SEGMENT;
    c->generation = log->generation;
    CKBI_LOG_UNLOCK(log);
    entry->index = c->next < first ? first : c->next;
    return c->next < first ? CKB_PURGED : c->next >= next ? CKB_END : CKB_OK;
}

/* The segment that should hold the next entry, by its place in the ring: the last one that does not begin
 * behind it. log->count: none. The log's lock is held. */
static CKBI_UNUSED uint32_t ckbi_cursor_search(const ckb_log_cursor *c)
{
    const ckb_log *log = c->log;
    uint32_t low = 0, high = log->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (log->volume->segments[ckbi_log_segment(log, middle)].first <= c->next)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 ? low - 1 : log->count;
}

/* Where the records of a segment end that are there now. The volume's and the log's lock are held. */
static CKBI_UNUSED uint32_t ckbi_log_segment_end(const ckb_log *log, uint32_t segment)
{
#ifndef CKB_READ_ONLY
    if (segment == log->writer.segment)
        return ckbi_writer_at(&log->writer);
#endif
    return log->volume->segments[segment].end;
}

/* Goes to where the next entry should be. False: there is no such segment, or nothing more in it. */
static CKBI_UNUSED bool ckbi_cursor_locate(ckb_log_cursor *c)
{
    ckb_log *log = c->log;
    ckb_volume *v = log->volume;
    uint32_t stop = 0;
    CKB_MUTEX_LOCK(&v->lock);
    CKBI_LOG_LOCK(log);
    uint32_t n = ckbi_cursor_search(c), behind = n < log->count ? n + 1 : 0;
    uint32_t segment = n < log->count ? ckbi_log_segment(log, n) : CKB_NO_SEGMENT;
    c->behind =
        behind < log->count ? v->segments[ckbi_log_segment(log, behind)].first : ckbi_log_next_index(log);
    if (segment != CKB_NO_SEGMENT)
        stop = ckbi_log_segment_end(log, segment);
    uint64_t epoch = segment != CKB_NO_SEGMENT ? v->segments[segment].epoch : 0;
    CKBI_LOG_UNLOCK(log);
    CKB_MUTEX_UNLOCK(&v->lock);
    if (segment == CKB_NO_SEGMENT)
        return false;
    if (segment == c->segment && epoch == c->epoch) {
        c->walk.stop = c->walk.known = c->walk.source.limit = ckbi_max32(stop, c->walk.stop);
        return stop > c->walk.at && !c->walk.ended;
    }
    c->segment = segment;
    c->epoch = epoch;
    ckbi_walk_open(&c->walk, segment, epoch);
    c->walk.stop = c->walk.known = c->walk.source.limit = stop;
    c->walk.whole = true;
    return true;
}

/* Finds the record of the next entry. CKB_CORRUPT: it is lost, and so are all below lost_until. */
static CKBI_UNUSED int ckbi_cursor_find(ckb_log_cursor *c)
{
    const ckbi_record *r = &c->walk.record;
    /* What follows the last entry of a segment may have been purged with it, and be somebody else's by now. */
    bool look = c->segment == CKB_NO_SEGMENT || c->jump || c->next >= c->behind;
    c->jump = false;
    if (look && !ckbi_cursor_locate(c)) {
        c->lost_until = c->behind;
        ckbi_cursor_fault(c, CKB_CORRUPT, CKB_TOPIC_ENTRY_LOST, 0, c->next, c->behind - 1);
        return CKB_CORRUPT;
    }
    for (;;) {
        int status = ckbi_walk_next(&c->walk);
        if (status == CKB_CORRUPT) {
            ckbi_cursor_fault(c, CKB_CORRUPT, CKB_TOPIC_ENTRY, r->offset, 0, ckbi_bytes(r->end - r->offset));
        } else if (status == CKB_OK && r->type == CKBI_RECORD_ENTRY && r->block >= c->next) {
            c->lost_until = r->block;
            if (r->block == c->next)
                return CKB_OK;
            c->walk.at = r->offset;
            break;
        } else if (status == CKB_END && !ckbi_cursor_locate(c)) {
            c->lost_until = c->behind;
            break;
        } else if (status != CKB_OK && status != CKB_END) {
            ckbi_cursor_fault(c, status, CKB_TOPIC_MEDIUM, c->walk.at, 0, 0);
            return status;
        }
    }
    if (c->fault.status == CKB_OK)
        ckbi_cursor_fault(c, CKB_CORRUPT, CKB_TOPIC_ENTRY_LOST, 0, c->next, c->lost_until - 1);
    c->fault.index = c->next;
    return CKB_CORRUPT;
}

/* Copies and verifies the entry that was found. */
static CKBI_UNUSED int ckbi_cursor_copy(ckb_log_cursor *c, ckb_entry *entry, uint8_t *out, size_t bytes)
{
    const ckbi_record *r = &c->walk.record;
    ckbi_source *s = &c->walk.source;
    uint32_t state = ckbi_seed(s->seed, r->offset, CKBI_SEED_PAYLOAD);
    entry->index = r->block;
    entry->term = r->term;
    entry->length = r->payload_bytes;
    entry->segment = c->segment;
    entry->offset = ckbi_bytes(r->offset);
    if (r->payload_bytes > bytes)
        return CKB_TOOBIG;
    int status = ckbi_source_take(s, r->payload, r->payload_bytes, out, &state);
    if (status != CKB_OK) {
        ckbi_cursor_fault(c, status, CKB_TOPIC_MEDIUM, r->payload, 0, 0);
        return status;
    }
    if (r->payload_bytes == 0 || state == r->payload_crc)
        return CKB_OK;
    c->lost_until = r->block + 1;
    ckbi_cursor_fault(c, CKB_CORRUPT, CKB_TOPIC_ENTRY, r->offset, 0, r->payload_bytes);
    return CKB_CORRUPT;
}

/* Did entries vanish while one was read? Then what was read means nothing. */
static CKBI_UNUSED bool ckbi_cursor_moved(ckb_log_cursor *c)
{
    ckb_log *log = c->log;
    CKBI_LOG_LOCK(log);
    bool moved = c->generation != log->generation || c->next < log->slot->first;
    CKBI_LOG_UNLOCK(log);
    if (moved)
        c->segment = CKB_NO_SEGMENT;
    return moved;
}

CKBI_LOG_DEF int ckb_log_next(ckb_log_cursor *cursor, ckb_entry *entry, void *buffer, size_t bytes)
{
    ckb_log_cursor *c = cursor;
    ckbi_fill(entry, 0, sizeof(*entry));
    ckbi_fill(&c->fault, 0, sizeof(c->fault));
    for (;;) {
        int status = ckbi_cursor_bounds(c, entry);
        if (status != CKB_OK)
            return status;
        status = ckbi_cursor_find(c);
        if (status == CKB_OK)
            status = ckbi_cursor_copy(c, entry, (uint8_t *)buffer, bytes);
        if (ckbi_cursor_moved(c)) {
            ckbi_fill(&c->fault, 0, sizeof(c->fault));
            continue;
        }
        switch (status) {
        case CKB_OK:
            c->next++;
            return CKB_OK;
        case CKB_TOOBIG:
            c->walk.at = c->walk.record.offset;
            return status;
        case CKB_CORRUPT:
            if (c->salvage) {
                c->segment = c->lost_until < c->behind ? c->segment : CKB_NO_SEGMENT;
                c->next = c->lost_until;
                continue;
            }
            break;
        default:
            break;
        }
        c->segment = CKB_NO_SEGMENT;
        return status;
    }
}

CKBI_LOG_DEF int ckb_log_read(ckb_log_cursor *cursor, uint64_t index, ckb_entry *entry, void *buffer,
                              size_t bytes)
{
    ckb_log_seek(cursor, index);
    return ckb_log_next(cursor, entry, buffer, bytes);
}

/* ---------------------------------------------------------------------------------------------- >>volume-api */

static CKBI_UNUSED void ckbi_config_defaults(const ckb_geometry *g, const ckb_config *config, ckb_config *out)
{
    ckbi_fill(out, 0, sizeof(*out));
    if (config)
        *out = *config;
    if (out->max_chunks == 0)
        out->max_chunks = 1024;
    if (out->max_containers == 0)
        out->max_containers = 16;
    if (!CKBI_HAS_CHUNKS)
        out->max_containers = 0;
    if (out->max_logs == 0)
        out->max_logs = 4;
    if (!CKBI_HAS_LOG)
        out->max_logs = 0;
    if (out->max_writers == 0)
        out->max_writers = 4;
    if (!CKBI_HAS_CHUNKS)
        out->max_writers = 0;
    if (out->reserve_segments == 0)
        out->reserve_segments = g->segment_count < 12 ? 1 : 2;
    if (out->prepare_ahead == 0)
        out->prepare_ahead = 2;
    if (out->free_segments == 0)
        out->free_segments =
            (uint32_t)ckbi_max(g->segment_count / 64, (uint64_t)out->reserve_segments + out->prepare_ahead + 1);
    if (out->checkpoint_records == 0)
        out->checkpoint_records = 65536;
    uint64_t least =
        ckbi_max(ckbi_bytes(ckbi_data_start(g)) + g->write_unit,
                 ckbi_align_up(2 * CKBI_RECORD_COMMON + CKBI_FACTS_MAX * CKBI_FACT_BYTES, g->write_unit));
    uint64_t bytes = out->io_buffer_bytes ? out->io_buffer_bytes : ckbi_min(64 * 1024, g->segment_bytes);
    out->io_buffer_bytes = (size_t)ckbi_align_up(ckbi_max(bytes, least), g->write_unit);
#ifdef CKB_READ_ONLY
    out->read_only = true;
#endif
    out->read_only = out->read_only || out->salvage;
    /* Where something is lost the newest that is left may be in a segment that a checkpoint covers. */
    out->ignore_checkpoint = out->ignore_checkpoint || out->salvage;
}

/* Smallest power of two that keeps the hash tables of containers half empty. */
static CKBI_UNUSED uint32_t ckbi_container_slots(uint32_t max_containers)
{
    uint32_t slots = 2;
    while (slots < max_containers && slots < UINT32_MAX / 4)
        slots *= 2;
    return slots * 2;
}

/* Carves what lies behind the volume itself; `v` may be null to count only. False: not enough memory. */
static CKBI_UNUSED bool ckbi_volume_layout(ckb_volume *v, const ckb_geometry *g, const ckb_config *c,
                                           ckbi_arena *arena)
{
    uint64_t table = (uint64_t)ckbi_container_slots(c->max_containers) * sizeof(uint32_t);
    void *segments = ckbi_arena_take(arena, (uint64_t)g->segment_count * sizeof(ckbi_segment), 8);
    void *pool = ckbi_arena_take(arena, (uint64_t)g->segment_count * sizeof(uint32_t), 8);
    void *containers = ckbi_arena_take(arena, (uint64_t)c->max_containers * sizeof(ckbi_container), 64);
    void *by_id = ckbi_arena_take(arena, table, 8);
    void *by_serial = ckbi_arena_take(arena, table, 8);
    void *logs = ckbi_arena_take(arena, (uint64_t)c->max_logs * sizeof(ckbi_log_slot), 8);
    void *writers =
        ckbi_arena_take(arena, ((uint64_t)c->max_writers + c->max_logs + 1) * sizeof(struct ckb_writer *), 8);
    void *io_buffer = ckbi_arena_take(arena, c->io_buffer_bytes, ckbi_buffer_align(g));
    if (v) {
        v->container_slots = ckbi_container_slots(c->max_containers);
        v->segments = (ckbi_segment *)segments;
        v->pool = (uint32_t *)pool;
        v->containers = (ckbi_container *)containers;
        v->by_id = (uint32_t *)by_id;
        v->by_serial = (uint32_t *)by_serial;
        v->logs = (ckbi_log_slot *)logs;
        v->writers = (struct ckb_writer **)writers;
        v->writer_places = c->max_writers + c->max_logs + 1;
        v->io_buffer = (uint8_t *)io_buffer;
        v->io_bytes = c->io_buffer_bytes;
    }
    if (CKBI_HAS_CHUNKS)
        ckbi_index_layout(v ? &v->index : NULL, c->max_chunks, arena);
#ifndef CKB_READ_ONLY
    if (CKBI_HAS_CHUNKS && !c->read_only && !c->no_compaction)
        ckbi_compactor_layout(v, g, arena);
#endif
    return arena->used < SIZE_MAX / 2;
}

CKB_DEF size_t ckb_volume_memory(const ckb_geometry *geometry, const ckb_config *config)
{
    ckb_config c;
    ckbi_arena arena = {NULL, NULL, 0};
    if (!ckbi_geometry_valid(geometry))
        return 0;
    ckbi_config_defaults(geometry, config, &c);
    ckbi_arena_take(&arena, sizeof(ckb_volume), 64);
    return ckbi_volume_layout(NULL, geometry, &c, &arena) ? arena.used : 0;
}

/* ---- format */

#ifndef CKB_READ_ONLY
/* Facts of a snapshot of all segments and of so many containers and logs; 0: the defaults. */
static CKBI_UNUSED uint64_t ckbi_format_facts(const ckb_geometry *g, uint32_t containers, uint32_t logs)
{
    ckb_config defaults;
    ckbi_config_defaults(g, NULL, &defaults);
    return CKBI_SNAPSHOT_FACTS + (uint64_t)g->segment_count +
           (containers ? containers : defaults.max_containers) +
           2 * (uint64_t)(logs ? logs : defaults.max_logs);
}

/* Segments of one side of the journal: a snapshot takes half of them, so that the sides do not switch all
 * the time. 0: so many do not leave two segments for anything else; `*most` is what they could hold. */
static CKBI_UNUSED uint32_t ckbi_format_span(const ckb_geometry *g, uint64_t facts, uint64_t *most)
{
    ckb_config defaults;
    ckbi_config_defaults(g, NULL, &defaults);
    if (2 * facts <= ckbi_journal_facts(g, 1, defaults.io_buffer_bytes))
        return 1;
    uint64_t per_segment = ckbi_journal_facts(g, 2, defaults.io_buffer_bytes);
    uint64_t span = per_segment ? (2 * facts + per_segment - 1) / per_segment : g->segment_count;
    *most = g->segment_count / 2 * per_segment / 2;
    return 2 * span + 2 <= g->segment_count ? (uint32_t)span : 0;
}

CKB_DEF size_t ckb_format_memory(const ckb_geometry *geometry)
{
    uint64_t most = 0;
    if (!ckbi_geometry_valid(geometry) || ckbi_payload_max(geometry) == 0 ||
        ckbi_format_span(geometry, ckbi_format_facts(geometry, 1, 1), &most) == 0)
        return 0;
    return ckbi_align_up32(512, geometry->write_unit) + geometry->buffer_align;
}

static CKBI_UNUSED int ckbi_format_check(const ckb_medium *medium, const ckb_format_config *config,
                                         size_t bytes, ckb_fault *fault, uint32_t *span)
{
    const ckb_geometry *g = &medium->geometry;
    static const uint8_t zero[16] = {0};
    uint64_t most = 0;
    ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_GEOMETRY, CKB_NO_SEGMENT, 0, 4, g->segment_count);
    if (!ckbi_geometry_valid(g) || ckbi_payload_max(g) == 0)
        return CKB_INVALID;
    ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_ARGUMENT, CKB_NO_SEGMENT, 0, 1, 0);
    if (!config || ckbi_compare(config->volume_id, zero, 16) == 0)
        return CKB_INVALID;
    uint64_t facts = ckbi_format_facts(g, config->max_containers, config->max_logs);
    *span = ckbi_format_span(g, facts, &most);
    ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_JOURNAL_ROOM, CKB_NO_SEGMENT, 0, facts, most);
    if (fault)
        fault->index = g->segment_count;
    if (*span == 0)
        return CKB_INVALID;
    ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_MEMORY, CKB_NO_SEGMENT, 0, ckb_format_memory(g), bytes);
    return bytes >= ckb_format_memory(g) ? CKB_OK : CKB_INVALID;
}

/* Erases one journal segment and writes its header and, unless `seed` is null, an empty snapshot. */
static CKBI_UNUSED int ckbi_format_segment(const ckb_medium *medium, const ckb_probe_info *header,
                                           const uint32_t *seed, uint8_t *buffer)
{
    const ckb_geometry *g = &medium->geometry;
    uint32_t start = ckbi_data_start(g), start_bytes = start * CKBI_UNIT;
    int status = medium->erase(medium->context, header->segment);
    ckbi_fill(buffer, 0, start_bytes);
    ckbi_header_encode(buffer, header);
    if (status == CKB_OK)
        status = medium->write(medium->context, header->segment, 0, buffer, start_bytes);
    if (status == CKB_OK && seed) {
        const ckbi_fact facts[3] = {{CKBI_FACT_COUNTERS, 0, header->epoch + 1, 1},
                                    {CKBI_FACT_CLEAN, 0, 0, 0},
                                    {CKBI_FACT_SNAPSHOT_END, 0, 0, 0}};
        for (uint32_t i = 0; i < 3; i++)
            ckbi_fact_put(buffer + CKBI_RECORD_COMMON + (size_t)i * CKBI_FACT_BYTES, &facts[i]);
        uint32_t batch = ckbi_facts_frame(buffer, 3, *seed, start, 0, g->write_unit);
        status = medium->write(medium->context, header->segment, start_bytes, buffer, batch);
    }
    return status == CKB_OK ? medium->sync(medium->context, header->segment) : status;
}

/* Writes both sides of the journal; `header->segment` is the one where it stopped. The standby comes first:
 * until segment 0 is complete there is an older volume, or none. Further segments only get their space. */
static CKBI_UNUSED int ckbi_format_journal(const ckb_medium *medium, ckb_probe_info *header, uint8_t *buffer)
{
    uint32_t seed = ckbi_crc_update(UINT32_MAX, header->volume_id, 16);
    seed = ckbi_crc_update8(ckbi_crc_update8(seed, 2), 0);
    int status = CKB_OK;
    for (uint32_t i = 2 * header->journal_span - 1; i > 1 && status == CKB_OK; i--) {
        header->segment = i;
        status = medium->erase(medium->context, i);
    }
    if (status != CKB_OK)
        return status;
    header->segment = 1;
    header->epoch = 1;
    status = ckbi_format_segment(medium, header, NULL, buffer);
    if (status != CKB_OK)
        return status;
    header->segment = 0;
    header->epoch = 2;
    return ckbi_format_segment(medium, header, &seed, buffer);
}

CKB_DEF int ckb_format(const ckb_medium *medium, const ckb_format_config *config, void *memory, size_t bytes,
                       ckb_fault *fault)
{
    const ckb_geometry *g = &medium->geometry;
    ckb_probe_info header;
    ckbi_fill(&header, 0, sizeof(header));
    int status = ckbi_format_check(medium, config, bytes, fault, &header.journal_span);
    if (status != CKB_OK)
        return status;
    ckbi_copy(header.volume_id, config->volume_id, 16);
    header.format_major = CKB_FORMAT_MAJOR;
    header.format_minor = CKB_FORMAT_MINOR;
    header.write_unit = g->write_unit;
    header.segment_bytes = g->segment_bytes;
    header.segment_count = g->segment_count;
    status =
        ckbi_format_journal(medium, &header, (uint8_t *)memory + (-(uintptr_t)memory & (g->buffer_align - 1)));
    ckbi_fault_set(fault, status, status == CKB_OK ? CKB_TOPIC_NONE : CKB_TOPIC_MEDIUM, header.segment, 0, 0,
                   0);
    return status;
}
#endif

/* ---- mount */

static CKBI_UNUSED void ckbi_volume_destroy(ckb_volume *v)
{
    for (uint32_t p = 0; p < v->index.partition_count; p++)
        CKB_MUTEX_DESTROY(&v->index.partitions[p].lock);
    CKB_MUTEX_DESTROY(&v->tidy_lock);
    CKB_MUTEX_DESTROY(&v->long_lock);
    CKB_MUTEX_DESTROY(&v->lock);
}

static CKBI_UNUSED int ckbi_mount_all(ckbi_mounting *m)
{
    ckb_volume *v = m->volume;
    int status = ckbi_mount_find_journal(m);
    if (CKBI_HAS_CHUNKS && status == CKB_OK)
        status = ckbi_mount_checkpoint(m);
    for (uint32_t i = ckbi_first_segment(v); status == CKB_OK && i < v->header.segment_count; i++) {
        const ckbi_segment *s = &v->segments[i];
        m->records = 0;
        if ((s->state == CKB_SEGMENT_FULL && s->cover != CKBI_COVERED) || s->state == CKB_SEGMENT_PARKED)
            status = ckbi_mount_segment(m, i);
        if (s->state == CKB_SEGMENT_FULL)
            v->fresh_records += m->records;
    }
    if (status == CKB_OK)
        status = ckbi_mount_orphans(m);
    if (CKBI_HAS_LOG && status == CKB_OK)
        status = ckbi_mount_logs(m);
    if (status == CKB_OK)
        ckbi_mount_finish(m);
    return status;
}

CKB_DEF int ckb_mount(const ckb_medium *medium, const ckb_config *config, void *memory, size_t bytes,
                      ckb_volume **volume, ckb_fault *fault)
{
    const ckb_geometry *g = &medium->geometry;
    *volume = NULL;
    if (!ckbi_geometry_valid(g)) {
        ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_GEOMETRY, CKB_NO_SEGMENT, 0, 4, g->segment_count);
        return CKB_INVALID;
    }
    ckbi_arena arena = {(uint8_t *)memory, (uint8_t *)memory + bytes, 0};
    ckb_volume *v = (ckb_volume *)ckbi_arena_take(&arena, sizeof(ckb_volume), 64);
    if (v) {
        ckbi_fill(v, 0, sizeof(*v));
        v->medium = *medium;
        ckbi_config_defaults(g, config, &v->config);
    }
    if (!v || !ckbi_volume_layout(v, g, &v->config, &arena)) {
        ckbi_fault_set(fault, CKB_INVALID, CKB_TOPIC_MEMORY, CKB_NO_SEGMENT, 0, ckb_volume_memory(g, config),
                       bytes);
        return CKB_INVALID;
    }
    v->header.segment_count = g->segment_count;
    CKB_MUTEX_INIT(&v->lock);
    CKB_MUTEX_INIT(&v->long_lock);
    CKB_MUTEX_INIT(&v->tidy_lock);
    for (uint32_t p = 0; p < v->index.partition_count; p++)
        CKB_MUTEX_INIT(&v->index.partitions[p].lock);
    if (CKBI_HAS_CHUNKS)
        ckbi_index_clear(&v->index);
    ckbi_fill(v->segments, 0, g->segment_count * sizeof(v->segments[0]));
    ckbi_fill(v->containers, 0, v->config.max_containers * sizeof(v->containers[0]));
    ckbi_fill(v->writers, 0, v->writer_places * sizeof(v->writers[0]));
    ckbi_source_init(&v->walk.source, v, v->io_buffer, v->io_bytes);
    v->mounting.volume = v;
    int status = ckbi_mount_all(&v->mounting);
    if (status != CKB_OK) {
        if (fault)
            *fault = v->last_fault;
        ckbi_volume_destroy(v);
        return status;
    }
#ifndef CKB_READ_ONLY
    if (v->compactor)
        ckbi_writer_enlist(v->compactor->writer);
#endif
    ckbi_fault_set(fault, CKB_OK, CKB_TOPIC_NONE, CKB_NO_SEGMENT, 0, 0, 0);
    *volume = v;
    return CKB_OK;
}

#ifndef CKB_READ_ONLY
CKB_DEF int ckb_sync(ckb_volume *volume)
{
    int status = ckbi_writable(volume);
    return status == CKB_OK ? ckbi_each_writer(volume, ckbi_writer_commit) : status;
}

CKB_DEF int ckb_grow(ckb_volume *volume, ckb_fault *fault)
{
    ckb_volume *v = volume;
    uint32_t more = v->medium.geometry.segment_count - v->header.segment_count;
    int status = ckbi_writable(v);
    ckbi_fault_set(fault, status, CKB_TOPIC_NONE, CKB_NO_SEGMENT, 0, 0, 0);
    if (status != CKB_OK || more == 0)
        return status;
    if (!ckbi_journal_holds(v, more)) {
        ckbi_fault_set(fault, CKB_NOSPACE, CKB_TOPIC_JOURNAL_ROOM, CKB_NO_SEGMENT, 0,
                       ckbi_journal_needs(v, more), ckbi_journal_has(v));
        if (fault)
            fault->index = v->medium.geometry.segment_count;
        return CKB_NOSPACE;
    }
    CKB_MUTEX_LOCK(&v->long_lock);
    v->header.segment_count += more;
    v->free_count += more;
    status =
        ckbi_journal_switch(v); /* the headers of its other side, and the snapshot there, are of the new size */
    if (status != CKB_OK) {
        v->header.segment_count -= more;
        v->free_count -= more;
    }
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* Gives the prepared segments back and says that all is durable. */
static CKBI_UNUSED int ckbi_mark_clean(ckb_volume *v)
{
    int status = CKB_OK;
    while (status == CKB_OK && v->pool_count > 0) {
        uint32_t count = ckbi_min32(v->pool_count, CKBI_FACTS_MAX);
        for (uint32_t i = 0; i < count; i++)
            ckbi_fact_set_free(v, i, v->pool[v->pool_count - 1 - i]);
        status = ckbi_journal_append(v, count);
        for (uint32_t i = 0; status == CKB_OK && i < count; i++)
            v->segments[v->pool[--v->pool_count]].state = CKB_SEGMENT_FREE;
    }
    return status == CKB_OK ? ckbi_journal_say(v, CKBI_FACT_CLEAN, 0, v->next_epoch, 0) : status;
}

/* ---------------------------------------------------------------------------------------------- >>checkpoint
 * Written in steps; in force once all of it, and all that it tells of, is durable. */

/* The volume's lock is held. */
static CKBI_UNUSED bool ckbi_checkpoint_is_due(const ckb_volume *v)
{
    uint64_t records = v->checkpoint.at.epoch != 0 ? v->checkpoint.entries / 2 : 0;
    return v->drafting || v->fresh_records >= ckbi_max(records, v->config.checkpoint_records);
}

/* A segment that takes no more never changes; its records are durable at the latest when the checkpoint is put
 * in force. One in which nothing counts is freed soon. */
static CKBI_UNUSED bool ckbi_segment_can_be_covered(const ckbi_segment *s)
{
    return s->state == CKB_SEGMENT_FULL && s->log == 0 && !(s->cover & CKBI_NEVER_COVERED) &&
           CKBI_LOAD(&s->live) != 0;
}

/* Begins a checkpoint where it would spare something, and takes no more than about an eighth of what is free. */
static CKBI_UNUSED void ckbi_draft_begin(ckb_volume *v)
{
    const ckb_geometry *g = &v->medium.geometry;
    uint64_t bytes = ckbi_index_used(&v->index) * CKBI_CHECKPOINT_ENTRY_BYTES +
                     (uint64_t)v->header.segment_count * CKBI_CHECKPOINT_ROW_BYTES;
    bool useful = false;
    ckbi_fill(&v->draft, 0, sizeof(v->draft));
    v->draft_row = ckbi_first_segment(v);
    v->draft_partition = v->draft_slot = 0;
    CKB_MUTEX_LOCK(&v->lock);
    for (uint32_t i = ckbi_first_segment(v); i < v->header.segment_count && !useful; i++) {
        const ckbi_segment *s = &v->segments[i];
        useful = s->cover == 0 && ckbi_segment_can_be_covered(s);
    }
    uint64_t spare = v->pool_count + v->free_count;
    v->fresh_records = 0;
    v->drafting =
        useful && spare >= 8 && bytes * 10 <= spare * ckbi_bytes(ckbi_data_limit(g) - ckbi_data_start(g));
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* Gives all segments of a checkpoint, complete or not, a state: in force, or full of nothing that counts, to
 * be freed like any other such. The volume's lock is held. */
static CKBI_UNUSED void ckbi_checkpoint_set(ckb_volume *v, const ckbi_checkpoint *c, uint8_t state)
{
    uint32_t segment = c->at.epoch != 0 ? c->at.segment : CKB_NO_SEGMENT;
    while (segment != CKB_NO_SEGMENT) {
        ckbi_segment *s = &v->segments[segment];
        s->extent = state == CKB_SEGMENT_FULL ? CKBI_EXTENT_FULL : 0;
        CKBI_STORE(&s->died_at, CKBI_LOAD(&v->supersede_clock));
        CKBI_STORE(&s->state, state);
        segment = s->previous;
    }
}

/* There is no room: what was written is given up. */
static CKBI_UNUSED void ckbi_draft_drop(ckb_volume *v)
{
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_checkpoint_set(v, &v->draft, CKB_SEGMENT_FULL);
    for (uint32_t i = 0; i < v->header.segment_count; i++)
        v->segments[i].cover &= (uint8_t)~CKBI_COVERED;
    v->drafting = false;
    CKB_MUTEX_UNLOCK(&v->lock);
}

/* All of it is written and all that it tells of is durable: one fact puts it in force. */
static CKBI_UNUSED int ckbi_draft_install(ckb_volume *v)
{
    int status = ckbi_medium_sync(v, v->draft.at.segment);
    ckbi_checkpoint_fact(&v->draft, &v->facts[0]);
    if (status == CKB_OK)
        status = ckbi_journal_append(v, 1);
    if (status != CKB_OK)
        return status;
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_checkpoint_set(v, &v->checkpoint, CKB_SEGMENT_FULL);
    ckbi_checkpoint_set(v, &v->draft, CKB_SEGMENT_CHECKPOINT);
    v->checkpoint = v->draft;
    v->drafting = false;
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

/* Goes on in a fresh segment; its START stands in the I/O buffer then. */
static CKBI_UNUSED int ckbi_draft_roll(ckb_volume *v)
{
    ckbi_journal *at = &v->draft.at;
    ckbi_start *start = &v->start;
    uint32_t segment;
    int status = at->epoch != 0 ? ckbi_medium_sync(v, at->segment) : CKB_OK;
    if (status == CKB_OK)
        status = ckbi_segment_fresh(v, v->config.reserve_segments, &segment);
    if (status != CKB_OK)
        return status;
    ckbi_fill(start, 0, sizeof(*start));
    start->segment = at->epoch != 0 ? at->segment : CKB_NO_SEGMENT;
    start->epoch = at->epoch;
    start->end = at->end;
    v->segments[segment].previous = start->segment;
    at->epoch = v->segments[segment].epoch;
    at->segment = segment;
    at->seed = ckbi_segment_seed(v, segment, at->epoch);
    at->end = ckbi_data_start(&v->medium.geometry);
    ckbi_start_encode(v->io_buffer, at->seed, at->end, CKBI_STREAM_CHECKPOINT, start);
    return CKB_OK;
}

/* Rows for the segments that are covered. Entries are written after all of them: whatever is in such a segment,
 * the index has it by then, or what superseded it. */
static CKBI_UNUSED uint32_t ckbi_draft_rows(ckb_volume *v, uint8_t *to, uint32_t room)
{
    uint32_t bytes = 0;
    CKB_MUTEX_LOCK(&v->lock);
    for (; v->draft_row < v->header.segment_count && bytes + CKBI_CHECKPOINT_ROW_BYTES <= room;
         v->draft_row++) {
        ckbi_segment *s = &v->segments[v->draft_row];
        if (!ckbi_segment_can_be_covered(s))
            continue;
        s->cover = CKBI_COVERED;
        ckbi_put32(to + bytes, v->draft_row);
        ckbi_put32(to + bytes + 4, s->records | (s->compacted ? CKBI_ROW_COMPACTED : 0));
        ckbi_put64(to + bytes + 8, s->epoch);
        ckbi_put32(to + bytes + 16, s->end);
        ckbi_put32(to + bytes + 20, s->summary);
        bytes += CKBI_CHECKPOINT_ROW_BYTES;
    }
    CKB_MUTEX_UNLOCK(&v->lock);
    return bytes;
}

/* A slot as an entry has it: as in a summary, then the segment. */
static CKBI_UNUSED void ckbi_entry_put(uint8_t *e, const ckbi_slot *slot)
{
    ckbi_put32(e, slot->serial);
    ckbi_put32(e + 4, slot->chunk);
    ckbi_put64(e + 8, slot->block);
    ckbi_put32(e + 16, slot->version);
    ckbi_put32(e + 20, slot->offset);
    ckbi_put32(e + 24, slot->version & CKBI_TOMBSTONE ? 0 : slot->length);
    ckbi_put32(e + CKBI_SUMMARY_ENTRY_BYTES, slot->segment);
}

/* Entries for the next slots of the index that are in use; a lock is held for a few hundred at a time. */
static CKBI_UNUSED uint32_t ckbi_draft_entries(ckb_volume *v, uint8_t *to, uint32_t room)
{
    uint32_t slots = v->index.buckets * CKBI_SLOTS, bytes = 0;
    while (v->draft_partition < v->index.partition_count && bytes + CKBI_CHECKPOINT_ENTRY_BYTES <= room) {
        ckbi_partition *p = &v->index.partitions[v->draft_partition];
        uint32_t slot = v->draft_slot, stop = (uint32_t)ckbi_min(slot + UINT64_C(512), slots);
        CKB_MUTEX_LOCK(&p->lock);
        for (; slot < stop && bytes + CKBI_CHECKPOINT_ENTRY_BYTES <= room; slot++) {
            if (p->slots[slot].version == 0 || p->slots[slot].offset == 0)
                continue;
            ckbi_entry_put(to + bytes, &p->slots[slot]);
            bytes += CKBI_CHECKPOINT_ENTRY_BYTES;
            v->draft.entries++;
        }
        CKB_MUTEX_UNLOCK(&p->lock);
        v->draft_slot = slot < slots ? slot : 0;
        v->draft_partition += slot == slots;
    }
    return bytes;
}

/* Writes one batch. `*done`: there was nothing left to write. The long lock is held. */
static CKBI_UNUSED int ckbi_draft_write(ckb_volume *v, bool *done)
{
    const ckb_geometry *g = &v->medium.geometry;
    ckbi_journal *at = &v->draft.at;
    uint32_t left = at->epoch != 0 ? ckbi_data_limit(g) - at->end : 0;
    int status = ckbi_writable(v);
    if (status == CKB_OK && left < (2 * CKBI_RECORD_COMMON + CKBI_CHECKPOINT_ENTRY_BYTES) / CKBI_UNIT)
        status = ckbi_draft_roll(v);
    if (status != CKB_OK)
        return status;
    uint32_t lead = at->end == ckbi_data_start(g) ? CKBI_RECORD_LOG_START_BYTES : 0;
    uint8_t *to = v->io_buffer + lead + CKBI_RECORD_COMMON;
    uint32_t room = (uint32_t)ckbi_min(v->io_bytes, ckbi_bytes(ckbi_data_limit(g) - at->end)) - lead -
                    2 * CKBI_RECORD_COMMON;
    uint32_t kind = CKBI_CHECKPOINT_ROWS, bytes = ckbi_draft_rows(v, to, room);
    if (bytes == 0) {
        kind = CKBI_CHECKPOINT_ENTRIES;
        bytes = ckbi_draft_entries(v, to, room);
    }
    *done = bytes == 0 && lead == 0; /* a segment has a batch, be it an empty one */
    if (*done)
        return CKB_OK;
    uint32_t batch = lead + ckbi_batch_frame(v->io_buffer + lead, CKBI_RECORD_CHECKPOINT, kind, bytes, at->seed,
                                             at->end + lead / CKBI_UNIT, 0, g->write_unit);
    status = ckbi_medium_write(v, at->segment, at->end, v->io_buffer, batch);
    at->end += batch / CKBI_UNIT;
    v->segments[at->segment].end = at->end;
    return status;
}

/* A batch of the checkpoint; or, when there is no more, its end: entries may tell of records that were only
 * appended, and which must be durable before what they superseded is forgotten. */
static CKBI_UNUSED int ckbi_draft_step(ckb_volume *v)
{
    bool done = false;
    CKB_MUTEX_LOCK(&v->long_lock);
    int status = ckbi_draft_write(v, &done);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    if (!done || status != CKB_OK)
        return status;
    status = ckbi_each_writer(v, ckbi_writer_quiet_commit);
    CKB_MUTEX_LOCK(&v->long_lock);
    if (status == CKB_OK)
        status = ckbi_draft_install(v);
    CKB_MUTEX_UNLOCK(&v->long_lock);
    return status;
}

/* A step of a checkpoint that is due, unless another thread is at it. No lock is held. */
static CKBI_UNUSED int ckbi_checkpoint_step(ckb_volume *v, bool *more)
{
    CKB_MUTEX_LOCK(&v->lock);
    *more = ckbi_checkpoint_is_due(v) && !v->draft_busy;
    if (*more)
        v->draft_busy = true;
    bool drafting = v->drafting;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (!*more)
        return CKB_OK;
    int status = CKB_OK;
    if (drafting)
        status = ckbi_draft_step(v);
    else
        ckbi_draft_begin(v);
    if (status == CKB_NOSPACE) {
        ckbi_draft_drop(v);
        status = CKB_OK;
    }
    CKB_MUTEX_LOCK(&v->lock);
    *more = ckbi_checkpoint_is_due(v);
    v->draft_busy = false;
    CKB_MUTEX_UNLOCK(&v->lock);
    return status;
}

/* Tells the journal how far scrubbing is. The long lock is held, or nobody else is there. */
static CKBI_UNUSED int ckbi_scrub_save(ckb_volume *v)
{
    v->scrub.unsaved = 0;
    (void)ckbi_scrub_fact(&v->scrub, &v->facts[0]);
    return ckbi_journal_append(v, 1);
}

/* The last checkpoint of a mount: where it spares the next one something worth it, or was begun already. */
static CKBI_UNUSED int ckbi_checkpoint_last(ckb_volume *v)
{
    bool worth = v->fresh_records >= ckbi_max(1024, ckbi_index_used(&v->index) / 16);
    int status = CKB_OK;
    if (!v->drafting && worth && v->config.checkpoint_records != UINT32_MAX)
        ckbi_draft_begin(v);
    for (bool more = v->drafting; more && status == CKB_OK;)
        status = ckbi_checkpoint_step(v, &more);
    return status;
}

CKB_DEF int ckb_unmount(ckb_volume *volume)
{
    ckb_volume *v = volume;
    int result = CKB_OK;
    for (uint32_t i = 0; i < v->writer_places; i++) {
        int status = v->writers[i] ? ckb_writer_close(v->writers[i]) : CKB_OK;
        if (result == CKB_OK)
            result = status;
    }
    if (result == CKB_OK && !v->config.read_only && v->failed)
        result = CKB_FAILED;
    if (result == CKB_OK && !v->config.read_only && v->scrub.unsaved > 0)
        (void)ckbi_scrub_save(v); /* where it is not noted, time is lost */
    /* A mount that wrote nothing leaves nothing to say. */
    bool wrote = !v->config.read_only && !v->journal_switch;
    if (CKBI_HAS_CHUNKS && result == CKB_OK && wrote)
        result = ckbi_checkpoint_last(v);
    if (result == CKB_OK && wrote)
        result = ckbi_mark_clean(v);
    ckbi_volume_destroy(v);
    return result;
}

/* What ckb_maintain has to do next. */
static CKBI_UNUSED void ckbi_maintain_look(ckb_volume *v, bool *sweep, bool *prepare, bool *checkpoint)
{
    CKB_MUTEX_LOCK(&v->lock);
    /* Looking at every slot should find a good part of them. */
    if (CKBI_HAS_CHUNKS && v->sweep_pays && v->let_go > v->index.capacity / 32)
        ckbi_sweep_begin(v);
    *checkpoint = CKBI_HAS_CHUNKS && !v->draft_busy && ckbi_checkpoint_is_due(v);
    *sweep = CKBI_HAS_CHUNKS && v->sweep_needed;
    *prepare = v->pool_count < v->config.prepare_ahead && v->free_count > v->config.reserve_segments;
    CKB_MUTEX_UNLOCK(&v->lock);
}

CKB_DEF int ckb_maintain(ckb_volume *volume, uint32_t budget, bool *more)
{
    ckb_volume *v = volume;
    int status = ckbi_writable(v);
    bool sweep, prepare, checkpoint, compact = false;
    uint32_t freed = 0;
    for (bool work = true; work && status == CKB_OK && budget > 0; budget--) {
        ckbi_maintain_look(v, &sweep, &prepare, &checkpoint);
        if (sweep) {
            ckbi_sweep_step(v);
            continue;
        }
        CKB_MUTEX_LOCK(&v->long_lock);
        status = ckbi_reclaim(v);
        freed = v->freed;
        if (status == CKB_OK && freed == 0 && prepare)
            status = ckbi_prepare(v);
        CKB_MUTEX_UNLOCK(&v->long_lock);
        compact = false;
        if (CKBI_HAS_CHUNKS && status == CKB_OK && freed == 0 && !prepare)
            status = ckbi_compact_when_short(v, &compact);
        work = freed > 0 || prepare || compact;
        if (CKBI_HAS_CHUNKS && status == CKB_OK && !work)
            status = ckbi_checkpoint_step(v, &work);
    }
    ckbi_maintain_look(v, &sweep, &prepare, &checkpoint);
    if (more)
        *more = status == CKB_OK && (sweep || prepare || compact || checkpoint || freed > 0);
    return status;
}
#else
CKB_DEF int ckb_unmount(ckb_volume *volume)
{
    ckbi_volume_destroy(volume);
    return CKB_OK;
}
#endif /* CKB_READ_ONLY */

/* ---- state */

static CKBI_UNUSED void ckbi_stat_count(ckb_stat *stat, uint8_t state)
{
    switch (state) {
    case CKB_SEGMENT_FREE:
        stat->segments_free++;
        break;
    case CKB_SEGMENT_PREPARED:
        stat->segments_prepared++;
        break;
    case CKB_SEGMENT_LOST:
        stat->segments_lost++;
        break;
    case CKB_SEGMENT_RETIRED:
        stat->segments_retired++;
        break;
    case CKB_SEGMENT_JOURNAL:
        stat->segments_journal++;
        break;
    case CKB_SEGMENT_CHECKPOINT:
        stat->segments_checkpoint++;
        break;
    case CKB_SEGMENT_OPEN:
        stat->segments_open++;
        break;
    default:
        stat->segments_full++;
        break;
    }
}

/* The volume's lock is held. */
static CKBI_UNUSED void ckbi_stat_segment(ckb_volume *v, uint32_t segment, ckb_stat *stat)
{
    const ckbi_segment *s = &v->segments[segment];
    uint8_t state = CKBI_LOAD(&s->state);
    uint32_t used = 0;
    uint64_t size = v->medium.geometry.segment_bytes;
    uint32_t live = CKBI_LOAD(&s->live);
    ckbi_stat_count(stat, state);
    if (state == CKB_SEGMENT_CHECKPOINT)
        stat->checkpoint_bytes += ckbi_bytes(s->end);
    if (state == CKB_SEGMENT_JOURNAL || state == CKB_SEGMENT_LOST || state == CKB_SEGMENT_RETIRED ||
        state == CKB_SEGMENT_CHECKPOINT) {
        stat->reserved_bytes += size;
        return;
    }
    if (state == CKB_SEGMENT_PARKED || state == CKB_SEGMENT_FULL)
        used = s->end;
#ifndef CKB_READ_ONLY
    uint32_t owner = CKBI_LOAD(&s->owner);
    ckb_writer *w = owner ? v->writers[owner - 1] : NULL;
    if (w) {
        CKB_MUTEX_LOCK(&w->lock);
        if (w->segment == segment) {
            live += w->live;
            used = ckbi_writer_at(w);
        }
        CKB_MUTEX_UNLOCK(&w->lock);
    }
#endif
    uint32_t counts = ckbi_min32(used, live);
    stat->live_bytes += ckbi_bytes(counts);
    stat->dead_bytes += ckbi_bytes(used - counts);
    stat->free_bytes += size - ckbi_bytes(used);
}

CKB_DEF void ckb_volume_stat(ckb_volume *volume, ckb_stat *stat)
{
    ckb_volume *v = volume;
    ckbi_fill(stat, 0, sizeof(*stat));
    CKB_MUTEX_LOCK(&v->lock);
    stat->index_used = ckbi_index_used(&v->index);
    stat->index_deleted = ckbi_deletes(v);
    ckbi_copy(stat->volume_id, v->header.volume_id, 16);
    stat->geometry = v->medium.geometry;
    stat->geometry.segment_count = v->header.segment_count;
    stat->segments_beyond = v->medium.geometry.segment_count - v->header.segment_count;
    stat->format_major = v->header.format_major;
    stat->format_minor = v->header.format_minor;
    stat->read_only = v->config.read_only;
    stat->salvage = v->config.salvage;
    stat->failed = CKBI_LOAD(&v->failed) != 0;
    stat->clean = v->clean;
    for (uint32_t i = 0; i < v->header.segment_count; i++)
        ckbi_stat_segment(v, i, stat);
    stat->compacted_bytes = v->moved_bytes;
    stat->index_capacity = v->index.capacity;
    stat->container_capacity = v->config.max_containers;
    for (uint32_t i = 0; i < v->config.max_containers; i++) {
        uint32_t state = CKBI_LOAD(&v->containers[i].state);
        stat->containers += v->containers[i].serial != 0 && state != CKB_CONTAINER_DELETED;
    }
    stat->log_capacity = v->config.max_logs;
    for (uint32_t i = 0; i < v->config.max_logs; i++)
        stat->logs += v->logs[i].serial != 0;
    for (uint32_t i = 0; i < v->config.max_writers; i++)
        stat->writers += v->writers[i] != NULL;
    stat->damage = v->damage;
    stat->dropped_bytes = v->dropped_bytes;
    stat->dropped_tails = v->dropped_tails;
    stat->mount_scanned = v->mount_scanned;
    stat->mount_summaries = v->mount_summaries;
    stat->mount_covered = v->mount_covered;
    stat->mount_entries = v->mount_entries;
    stat->checkpoint_epoch = v->checkpoint.at.epoch;
    stat->checkpoint_entries = v->checkpoint.at.epoch ? v->checkpoint.entries : 0;
    stat->fresh_records = v->fresh_records;
    stat->journal_epoch = v->journal.epoch;
    stat->scrub_segment = CKBI_LOAD(&v->scrub.segment);
    stat->scrub_passes = CKBI_LOAD(&v->scrub.passes);
    stat->scrub_damage = CKBI_LOAD(&v->scrub.damage);
    stat->scrub_bytes = CKBI_LOAD(&v->scrub.bytes);
    CKB_MUTEX_UNLOCK(&v->lock);
}

CKB_DEF int ckb_segment_stat(ckb_volume *volume, uint32_t segment, ckb_segment_info *info)
{
    ckb_volume *v = volume;
    ckbi_fill(info, 0, sizeof(*info));
    if (segment >= v->header.segment_count)
        return CKB_END;
    CKB_MUTEX_LOCK(&v->lock);
    const ckbi_segment *s = &v->segments[segment];
    const ckbi_log_slot *slot = CKBI_HAS_LOG && s->log ? ckbi_log_by_serial(v, s->log) : NULL;
    info->state = CKBI_LOAD(&s->state);
    info->epoch = CKBI_LOAD(&s->epoch);
    if (info->state == CKB_SEGMENT_PARKED || info->state == CKB_SEGMENT_FULL ||
        info->state == CKB_SEGMENT_CHECKPOINT)
        info->used_bytes = ckbi_bytes(s->end);
    info->live_bytes = ckbi_bytes(CKBI_LOAD(&s->live));
    info->compacted = s->compacted;
    if (slot)
        ckbi_copy(info->log, slot->name, CKB_LOG_NAME_BYTES);
    CKB_MUTEX_UNLOCK(&v->lock);
    return CKB_OK;
}

CKB_DEF void ckb_volume_fault(ckb_volume *volume, ckb_fault *last, ckb_fault *first_damage)
{
    CKB_MUTEX_LOCK(&volume->lock);
    if (last)
        *last = volume->last_fault;
    if (first_damage)
        *first_damage = volume->first_damage;
    CKB_MUTEX_UNLOCK(&volume->lock);
}

/* ---------------------------------------------------------------------------------------------- >>check-impl */

/* Was the segment freed while it was looked at? Then what was found there means nothing. */
static CKBI_UNUSED bool ckbi_check_is_stale(const ckbi_checking *k, uint32_t segment)
{
    const ckbi_segment *s = &k->volume->segments[segment];
    uint8_t state = CKBI_LOAD(&s->state);
    return state == CKB_SEGMENT_FREE || (state != CKB_SEGMENT_JOURNAL && CKBI_LOAD(&s->epoch) != k->epoch);
}

#ifndef CKB_READ_ONLY
/* Marks the container of the damaged chunk in the finding, durably. Where that cannot be written down the report has
 * to do. */
static CKBI_UNUSED void ckbi_scrub_mark(ckbi_checking *k)
{
    ckb_volume *v = k->volume;
    CKB_MUTEX_LOCK(&v->long_lock);
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_container *c = ckbi_container_by_serial(v, k->serial);
    uint32_t state = c ? CKBI_LOAD(&c->state) : CKB_CONTAINER_NONE;
    CKB_MUTEX_UNLOCK(&v->lock);
    /* One that is being closed is met again by the next pass. */
    if (state == CKB_CONTAINER_OPEN || state == CKB_CONTAINER_CLOSED)
        (void)ckbi_container_set(v, c, CKB_CONTAINER_UNHEALTHY, c->flags);
    CKB_MUTEX_UNLOCK(&v->long_lock);
}
#endif

/* What lies here is looked for in the index, when the walk over the segment is through. */
static CKBI_UNUSED void ckbi_scrub_hole(ckbi_checking *k, uint32_t from, uint32_t to)
{
    ckbi_scrub *s = &k->volume->scrub;
    s->hole_from = s->hole_from == s->hole_to ? from : s->hole_from;
    s->hole_to = to;
}

/* A scrub has found something. */
static CKBI_UNUSED void ckbi_scrub_note(ckbi_checking *k, int status)
{
    if (status != CKB_CORRUPT)
        return;
    CKBI_ADD(&k->volume->scrub.damage, 1);
#ifndef CKB_READ_ONLY
    if (k->finding->has_chunk)
        ckbi_scrub_mark(k);
#endif
}

static CKBI_UNUSED void ckbi_check_report(ckbi_checking *k, int status, int topic, uint32_t segment,
                                          uint32_t at, uint64_t expected, uint64_t found)
{
    if (ckbi_check_is_stale(k, segment))
        return;
    ckbi_fault_set(&k->finding->fault, status, topic, segment, at, expected, found);
    k->finding->fault.index = k->index;
    if (status == CKB_CORRUPT)
        k->report->damage++;
    else if (status != CKB_OK)
        k->report->io_errors++;
    if (k->found && !k->stopped)
        k->stopped = k->found(k->context, k->finding) != 0;
    if (k->scrubs)
        ckbi_scrub_note(k, status);
    k->finding->has_chunk = false;
    k->finding->log[0] = 0;
    k->index = 0;
}

/* Is this record the one that counts for its chunk? Fills the finding's chunk if so. */
static CKBI_UNUSED bool ckbi_check_is_live(ckbi_checking *k, const ckbi_record *r, uint32_t segment)
{
    ckb_volume *v = k->volume;
    ckbi_place place;
    if (ckbi_lookup(v, r->serial, r->block, r->chunk, &place) != CKB_OK || place.slot.segment != segment ||
        place.slot.offset != r->offset)
        return false;
    CKB_MUTEX_LOCK(&v->lock);
    const ckbi_container *c = ckbi_container_by_serial(v, r->serial);
    ckb_chunk_id id = {c ? c->id : 0, r->block, r->chunk};
    bool live = c && CKBI_LOAD(&c->state) != CKB_CONTAINER_DELETED;
    CKB_MUTEX_UNLOCK(&v->lock);
    ckbi_chunk_describe(&id, &place.slot, &k->finding->chunk);
    k->serial = r->serial;
    return live && !(place.slot.version & CKBI_TOMBSTONE);
}

/* Names the log of a segment in the finding, and gives its first index. False: the entry does not count. */
static CKBI_UNUSED bool ckbi_check_log(ckbi_checking *k, uint32_t segment, uint64_t index, uint64_t *first)
{
    ckb_volume *v = k->volume;
    CKB_MUTEX_LOCK(&v->lock);
    const ckbi_segment *s = &v->segments[segment];
    const ckbi_log_slot *slot = s->log ? ckbi_log_by_serial(v, s->log) : NULL;
    bool counts = slot && CKBI_LOAD(&s->live) + (s->state == CKB_SEGMENT_OPEN) != 0 && index >= slot->first;
    *first = slot ? slot->first : 1;
    ckbi_fill(k->finding->log, 0, sizeof(k->finding->log));
    if (counts)
        ckbi_copy(k->finding->log, slot->name, CKB_LOG_NAME_BYTES);
    CKB_MUTEX_UNLOCK(&v->lock);
    return counts;
}

static CKBI_UNUSED void ckbi_check_entry(ckbi_checking *k, const ckbi_walk *walk, uint32_t segment)
{
    const ckbi_record *r = &walk->record;
    uint64_t expected = k->entry_expected, first;
    k->entry_expected = r->block + 1;
    if (!ckbi_check_log(k, segment, r->block, &first))
        return;
    if (ckbi_entry_follows(expected, r->block, first) && !walk->payload_bad) {
        k->report->entries++;
        k->report->entry_bytes += r->payload_bytes;
        k->finding->log[0] = 0;
        return;
    }
    k->report->entries_bad++;
    k->index = r->block;
    if (walk->payload_bad)
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_ENTRY, segment, r->offset, 0, r->payload_bytes);
    else
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_ENTRY_ORDER, segment, r->offset, expected, r->block);
}

/* Index of the last entry of another segment; `otherwise` when it cannot be told. */
static CKBI_UNUSED uint64_t ckbi_check_last_index(ckb_volume *v, ckbi_walk *walk, uint32_t segment,
                                                  uint64_t otherwise)
{
    ckbi_source *source = &walk->source;
    uint32_t walked = source->segment, seed = source->seed;
    uint32_t limit = source->limit;
    CKB_MUTEX_LOCK(&v->lock);
    uint32_t at = v->segments[segment].summary;
    uint64_t epoch = v->segments[segment].epoch;
    CKB_MUTEX_UNLOCK(&v->lock);
    ckbi_source_open(source, segment, epoch);
    int status = at != 0 ? ckbi_source_record(source, at, &walk->ahead) : CKB_NOTFOUND;
    ckbi_source_open(source, walked, 0);
    source->seed = seed;
    source->ahead = true;
    source->limit = limit;
    return status == CKB_OK && walk->ahead.type == CKBI_RECORD_ENTRY ? walk->ahead.block : otherwise;
}

/* Why a log's segment was set aside at mount, by its START: another one counts in its place, or the journal
 * does not know the log. */
static CKBI_UNUSED void ckbi_check_aside(ckbi_checking *k, uint32_t segment, uint32_t other,
                                         const uint8_t *start)
{
    if (other != 0)
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_LOG_DOUBLE, segment, 0, ckbi_get64(start + 32), other);
    else
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_JOURNAL, segment,
                          ckbi_data_start(&k->volume->medium.geometry), 0, ckbi_get64(start + 24));
}

/* Are entries lost before this segment? Its START names the one that should be there. */
static CKBI_UNUSED void ckbi_check_start(ckbi_checking *k, ckbi_walk *walk, uint32_t segment)
{
    ckb_volume *v = k->volume;
    const uint8_t *h;
    if (!ckbi_is_start(&walk->record, CKBI_STREAM_LOG) ||
        ckbi_source_get(&walk->source, walk->record.offset, CKBI_RECORD_LOG_START_BYTES, &h) != CKB_OK)
        return;
    uint32_t named = ckbi_get32(h + 40);
    uint64_t named_epoch = ckbi_get64(h + 48), first = ckbi_get64(h + 56), from;
    k->entry_expected = first;
    CKB_MUTEX_LOCK(&v->lock);
    bool aside = v->segments[segment].log == CKBI_LOG_UNKNOWN;
    uint32_t other = v->segments[segment].previous;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (aside) {
        ckbi_check_aside(k, segment, other, h);
        return;
    }
    if (!ckbi_check_log(k, segment, first - 1, &from))
        return;
    CKB_MUTEX_LOCK(&v->lock);
    uint32_t before = v->segments[segment].previous;
    bool linked = before == named && before != CKB_NO_SEGMENT && v->segments[before].epoch == named_epoch;
    /* A purge may have come since. */
    const ckbi_log_slot *slot = ckbi_log_by_serial(v, v->segments[segment].log);
    linked = linked || !slot || first <= slot->first;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (linked) {
        k->finding->log[0] = 0;
        return;
    }
    if (before != CKB_NO_SEGMENT)
        from = ckbi_check_last_index(v, walk, before, from - 1) + 1;
    k->report->entries_bad++;
    k->index = named_epoch;
    ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_LOG_HOLE, segment, 0, from, first - 1);
}

static CKBI_UNUSED void ckbi_check_record(ckbi_checking *k, ckbi_walk *walk, uint32_t segment)
{
    const ckbi_record *r = &walk->record;
    if (CKBI_HAS_LOG && r->type == CKBI_RECORD_ENTRY) {
        ckbi_check_entry(k, walk, segment);
        return;
    }
    if (CKBI_HAS_LOG && r->type == CKBI_RECORD_START) {
        ckbi_check_start(k, walk, segment);
        return;
    }
    /* What does not verify is read once more: a container is not blamed for what happened on the way. */
    if (walk->payload_bad && k->scrubs) {
        walk->source.have = 0;
        int status = ckbi_source_verify(&walk->source, r);
        walk->payload_bad = status == CKB_CORRUPT;
        k->report->reread += status == CKB_OK;
        if (status != CKB_OK && status != CKB_CORRUPT) {
            ckbi_check_report(k, status, CKB_TOPIC_MEDIUM, segment, r->offset, 0, 0);
            return;
        }
    }
    bool live = CKBI_HAS_CHUNKS && r->type == CKBI_RECORD_CHUNK && ckbi_check_is_live(k, r, segment);
    if (walk->payload_bad) {
        k->finding->has_chunk = live;
        k->report->chunks_bad += live;
        int topic = r->type == CKBI_RECORD_SUMMARY      ? CKB_TOPIC_SUMMARY
                    : r->type == CKBI_RECORD_CHECKPOINT ? CKB_TOPIC_CHECKPOINT
                                                        : CKB_TOPIC_PAYLOAD;
        ckbi_check_report(k, CKB_CORRUPT, topic, segment, r->offset, 0, 0);
    } else if (live) {
        k->report->chunks++;
        k->report->bytes += r->payload_bytes;
    }
}

/* Does a segment hold records to verify? In one that a writer has open they end at the durable mark: what is
 * behind it is not on the medium yet. The volume's lock is held. */
static CKBI_UNUSED bool ckbi_check_has_records(ckb_volume *v, uint32_t segment, ckbi_walk *walk)
{
    uint8_t state = v->segments[segment].state;
    bool open = false;
#ifndef CKB_READ_ONLY
    uint32_t owner = CKBI_LOAD(&v->segments[segment].owner);
    ckb_writer *w = state == CKB_SEGMENT_OPEN && owner ? v->writers[owner - 1] : NULL;
    if (w) {
        CKB_MUTEX_LOCK(&w->lock);
        open = w->segment == segment;
        walk->stop = walk->known = w->durable;
        CKB_MUTEX_UNLOCK(&w->lock);
    }
#else
    (void)walk;
#endif
    /* Where a log's segment ends the mount may know from entries in others. */
    if (CKBI_HAS_LOG && v->segments[segment].log != 0 && state == CKB_SEGMENT_FULL)
        walk->known = ckbi_max32(walk->known, v->segments[segment].end);
    if (state == CKB_SEGMENT_CHECKPOINT) {
        open = true;
        walk->stop = walk->known = v->segments[segment].end;
    }
    return open || state == CKB_SEGMENT_PARKED || state == CKB_SEGMENT_FULL;
}

static CKBI_UNUSED bool ckbi_check_header(ckbi_checking *k, uint32_t segment, uint64_t epoch)
{
    ckb_probe_info info;
    int status = ckbi_header_read(&k->reader->source, segment, &info);
    if (status == CKB_NOTFOUND || status == CKB_VERSION || (status == CKB_OK && info.epoch != epoch))
        status = CKB_CORRUPT;
    if (status != CKB_OK)
        ckbi_check_report(k, status, status == CKB_CORRUPT ? CKB_TOPIC_SEGMENT_HEADER : CKB_TOPIC_MEDIUM,
                          segment, 0, epoch, info.epoch);
    return status == CKB_OK;
}

/* Names the live chunks whose records lie in a damaged range: the index still knows them from a summary. */
static CKBI_UNUSED void ckbi_check_hole(ckbi_checking *k, uint32_t segment, const ckbi_record *hole)
{
    uint64_t cursor = 0, first, bytes = ckbi_bytes(hole->end - hole->offset);
    ckb_chunk_info info;
    if (CKBI_HAS_LOG && k->entry_expected != 0 && ckbi_check_log(k, segment, k->entry_expected, &first)) {
        k->report->entries_bad++;
        k->index = k->entry_expected;
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_ENTRY, segment, hole->offset, 0, bytes);
        k->entry_expected = 0;
        return;
    }
    ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_RECORD, segment, hole->offset, 0, bytes);
    if (k->scrubs) {
        ckbi_scrub_hole(k, hole->offset, hole->end);
        return;
    }
    while (CKBI_HAS_CHUNKS && ckb_chunk_next(k->volume, &cursor, &info) == CKB_OK) {
        uint32_t at = (uint32_t)(info.offset / CKBI_UNIT);
        if (info.segment != segment || at < hole->offset || at >= hole->end)
            continue;
        k->finding->has_chunk = true;
        k->finding->chunk = info;
        k->report->chunks_bad++;
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_RECORD, segment, at, 0, info.length);
    }
}

/* The walk ends here; a scrub looks at the chunks behind by what the index knows of them. */
static CKBI_UNUSED void ckbi_check_unreadable(ckbi_checking *k, const ckbi_walk *walk, uint32_t segment,
                                              int status)
{
    ckbi_check_report(k, status, CKB_TOPIC_MEDIUM, segment, walk->at, 0, 0);
    if (k->scrubs)
        ckbi_scrub_hole(k, walk->at, ckbi_segment_units(&k->volume->medium.geometry));
}

/* Verifies one record, or what lies where there is none. False: there are no more. */
static CKBI_UNUSED bool ckbi_check_next(ckbi_checking *k, ckbi_walk *walk, uint32_t segment)
{
    int status = ckbi_walk_next(walk);
    if (status == CKB_OK)
        ckbi_check_record(k, walk, segment);
    else if (status == CKB_CORRUPT)
        ckbi_check_hole(k, segment, &walk->record);
    else if (status != CKB_END)
        ckbi_check_unreadable(k, walk, segment, status);
    else if (walk->dropped > 0)
        ckbi_check_report(k, CKB_OK, CKB_TOPIC_TAIL, segment, walk->stop, 0, ckbi_bytes(walk->dropped));
    return status == CKB_OK || status == CKB_CORRUPT;
}

static CKBI_UNUSED void ckbi_check_walk(ckbi_checking *k, ckbi_walk *walk, uint32_t segment)
{
    walk->verify = true;
    while (!k->stopped && ckbi_check_next(k, walk, segment))
        continue;
}

/* The side of the journal that is in force; the long lock keeps it still. */
static CKBI_UNUSED void ckbi_check_journal(ckbi_checking *k)
{
    ckb_volume *v = k->volume;
    ckbi_walk *walk = &k->reader->walk;
    ckbi_journal at;
    uint64_t next;
    CKB_MUTEX_LOCK(&v->long_lock);
    at = v->journal;
    for (at.segment &= 1u; at.segment <= v->journal.segment && !k->stopped; at.segment += 2) {
        k->report->segments++;
        if (!ckbi_check_header(k, at.segment, at.epoch))
            continue;
        int status = ckbi_walk_open_journal(walk, &at, &next);
        if (status != CKB_OK) {
            ckbi_check_report(k, status, CKB_TOPIC_MEDIUM, at.segment, 0, 0, 0);
            continue;
        }
        if (at.segment == v->journal.segment)
            walk->stop = walk->known = v->journal.end;
        ckbi_check_walk(k, walk, at.segment);
    }
    CKB_MUTEX_UNLOCK(&v->long_lock);
}

/* Verifies the header of a segment, and opens a walk over its records; false: there is nothing to walk over. */
static CKBI_UNUSED bool ckbi_check_open(ckbi_checking *k, uint32_t segment)
{
    ckb_volume *v = k->volume;
    ckbi_walk *walk = &k->reader->walk;
    CKB_MUTEX_LOCK(&v->lock);
    uint8_t state = v->segments[segment].state;
    uint64_t epoch = k->epoch = v->segments[segment].epoch;
    ckbi_walk_open_segment(walk, segment);
    bool records = ckbi_check_has_records(v, segment, walk);
    k->entry_expected = 0;
    CKB_MUTEX_UNLOCK(&v->lock);
    if (state == CKB_SEGMENT_LOST)
        ckbi_check_report(k, CKB_CORRUPT, CKB_TOPIC_SEGMENT_HEADER, segment, 0, epoch, 0);
    if (!records && state != CKB_SEGMENT_PREPARED)
        return false;
    k->report->segments++;
    return ckbi_check_header(k, segment, epoch) && records;
}

/* Verifies one segment from its header to its last record. */
static CKBI_UNUSED void ckbi_check_segment(ckbi_checking *k, uint32_t segment)
{
    if (ckbi_check_open(k, segment))
        ckbi_check_walk(k, &k->reader->walk, segment);
}

static CKBI_UNUSED ckbi_checking *ckbi_check_init(ckb_reader *reader,
                                                  int (*found)(void *context, const ckb_finding *finding),
                                                  void *context, ckb_check_report *report)
{
    ckbi_checking *k = &reader->check;
    ckbi_fill(k, 0, sizeof(*k));
    k->volume = reader->source.volume;
    k->reader = reader;
    k->found = found;
    k->context = context;
    k->report = report;
    k->finding = &reader->finding;
    reader->table_epoch = 0;
    return k;
}

/* The status of a check that began with these counts. */
static CKBI_UNUSED int ckbi_check_end(const ckbi_checking *k, uint64_t damage, uint64_t io_errors)
{
    k->reader->source.have = 0;
    if (k->report->damage > damage)
        return CKB_CORRUPT;
    return k->report->io_errors > io_errors ? CKB_IO : CKB_OK;
}

CKB_DEF int ckb_check(ckb_volume *volume, ckb_reader *reader,
                      int (*found)(void *context, const ckb_finding *finding), void *context,
                      ckb_check_report *report)
{
    ckbi_fill(report, 0, sizeof(*report));
    ckbi_checking *k = ckbi_check_init(reader, found, context, report);
#ifndef CKB_READ_ONLY
    if (ckbi_writable(volume) == CKB_OK)
        ckb_sync(volume);
#endif
    ckbi_check_journal(k);
    for (uint32_t i = ckbi_first_segment(volume); i < volume->header.segment_count && !k->stopped; i++)
        ckbi_check_segment(k, i);
    return ckbi_check_end(k, 0, 0);
}

#ifndef CKB_READ_ONLY
/* ---------------------------------------------------------------------------------------------- >>scrub-impl
 * A check in steps. A step is a record, or a look at some slots of the index for what damage hit: so a pass goes on
 * inside a segment, and between calls only numbers are kept. */

enum { CKBI_SCRUB_OPEN = 0, CKBI_SCRUB_WALK, CKBI_SCRUB_INDEX };

#define CKBI_SCRUB_SEGMENTS 64u /* between two notes in the journal */
#define CKBI_SCRUB_SLOTS 1024u  /* of the index in a step */

/* The segment is done. */
static CKBI_UNUSED void ckbi_scrub_leave(ckb_volume *v)
{
    ckbi_scrub *s = &v->scrub;
    CKBI_STORE(&s->segment, s->segment + 1);
    s->unsaved++;
    s->phase = CKBI_SCRUB_OPEN;
    if (s->unsaved >= CKBI_SCRUB_SEGMENTS && ckbi_writable(v) == CKB_OK) {
        CKB_MUTEX_LOCK(&v->long_lock);
        (void)ckbi_scrub_save(v);
        CKB_MUTEX_UNLOCK(&v->long_lock);
    }
}

/* Reads and verifies this chunk's record. */
static CKBI_UNUSED int ckbi_scrub_verify(ckbi_checking *k, const ckbi_slot *slot)
{
    ckbi_source *source = &k->reader->walk.source;
    ckbi_record *r = &k->reader->walk.ahead;
    ckbi_source_open(source, slot->segment, k->epoch);
    int status = ckbi_source_record(source, slot->offset, r);
    if (status == CKB_OK)
        status = ckbi_record_is_chunk(r, slot) ? ckbi_source_verify(source, r) : CKB_CORRUPT;
    return status;
}

/* A slot of the index whose record lies where damage was found. */
static CKBI_UNUSED void ckbi_scrub_slot(ckbi_checking *k, const ckbi_slot *slot)
{
    ckbi_record *r = &k->reader->walk.record;
    int status = ckbi_scrub_verify(k, slot);
    r->serial = slot->serial;
    r->block = slot->block;
    r->chunk = slot->chunk;
    r->offset = slot->offset;
    if (status == CKB_OK || !ckbi_check_is_live(k, r, slot->segment)) /* any more */
        return;
    k->finding->has_chunk = true;
    k->report->chunks_bad += status == CKB_CORRUPT;
    ckbi_check_report(k, status, status == CKB_CORRUPT ? CKB_TOPIC_RECORD : CKB_TOPIC_MEDIUM, slot->segment,
                      slot->offset, 0, slot->length);
}

/* Looks at some slots of the index for chunks whose records were hit. */
static CKBI_UNUSED void ckbi_scrub_index(ckbi_checking *k)
{
    ckb_volume *v = k->volume;
    ckbi_scrub *s = &v->scrub;
    uint64_t slots = (uint64_t)v->index.buckets * CKBI_SLOTS;
    uint64_t end = slots * v->index.partition_count;
    for (uint32_t n = 0; n < CKBI_SCRUB_SLOTS && s->cursor < end; n++, s->cursor++) {
        ckbi_partition *p = &v->index.partitions[s->cursor / slots];
        CKB_MUTEX_LOCK(&p->lock);
        ckbi_slot slot = p->slots[s->cursor % slots];
        CKB_MUTEX_UNLOCK(&p->lock);
        if (slot.version != 0 && !(slot.version & CKBI_TOMBSTONE) && slot.segment == s->segment &&
            slot.offset >= s->hole_from && slot.offset < s->hole_to)
            ckbi_scrub_slot(k, &slot);
    }
    if (s->cursor >= end)
        ckbi_scrub_leave(v);
}

/* Begins with the next segment. False: there is none, the pass is complete. */
static CKBI_UNUSED bool ckbi_scrub_begin(ckbi_checking *k)
{
    ckb_volume *v = k->volume;
    ckbi_scrub *s = &v->scrub;
    if (s->segment == 0) { /* of a new pass */
        CKBI_STORE(&s->bytes, 0);
        CKBI_STORE(&s->damage, 0);
        ckbi_check_journal(k);
        CKBI_STORE(&s->segment, ckbi_first_segment(v));
        return true;
    }
    if (s->segment >= v->header.segment_count)
        return false;
    s->hole_from = s->hole_to = 0;
    s->cursor = 0;
    if (!ckbi_check_open(k, s->segment)) {
        ckbi_scrub_leave(v);
        return true;
    }
    s->epoch = k->epoch;
    s->phase = CKBI_SCRUB_WALK;
    k->reader->walk.verify = true;
    return true;
}

/* Goes on where the call before stopped, unless the segment has another life. */
static CKBI_UNUSED void ckbi_scrub_resume(ckbi_checking *k)
{
    ckb_volume *v = k->volume;
    ckbi_scrub *s = &v->scrub;
    ckbi_walk *walk = &k->reader->walk;
    if (s->phase == CKBI_SCRUB_OPEN)
        return;
    k->epoch = s->epoch;
    if (ckbi_check_is_stale(k, s->segment)) {
        s->phase = CKBI_SCRUB_OPEN;
        return;
    }
    uint32_t stop = walk->stop, held = walk->source.at, segment = walk->source.segment;
    size_t have = walk->source.have;
    CKB_MUTEX_LOCK(&v->lock);
    ckbi_walk_open_segment(walk, s->segment);
    if (!ckbi_check_has_records(v, s->segment, walk))
        s->phase = CKBI_SCRUB_OPEN;
    CKB_MUTEX_UNLOCK(&v->lock);
    /* What the buffer holds is good unless the reader was used for something else, or the segment has grown. */
    if (k->reader->source.have == 0 && segment == s->segment && stop == walk->stop) {
        walk->source.at = held;
        walk->source.have = have;
    }
    k->entry_expected = s->expected;
    walk->at = s->at;
    walk->known = ckbi_max32(walk->known, s->known);
    walk->ended = s->ended;
    walk->verify = true;
}

/* One step, and what it read; false: the pass is complete. */
static CKBI_UNUSED bool ckbi_scrub_step(ckbi_checking *k, uint64_t *bytes)
{
    ckbi_scrub *s = &k->volume->scrub;
    ckbi_walk *walk = &k->reader->walk;
    uint32_t from = walk->at;
    bool more;
    *bytes = ckbi_bytes(CKBI_SCRUB_SLOTS);
    switch (s->phase) {
    case CKBI_SCRUB_OPEN:
        return ckbi_scrub_begin(k);
    case CKBI_SCRUB_WALK:
        more = ckbi_check_next(k, walk, s->segment);
        *bytes = ckbi_bytes(walk->at - from);
        CKBI_ADD(&s->bytes, *bytes);
        if (more)
            return true;
        s->phase = CKBI_SCRUB_INDEX;
        if (!CKBI_HAS_CHUNKS || s->hole_from == s->hole_to)
            ckbi_scrub_leave(k->volume);
        return true;
    default:
        ckbi_scrub_index(k);
        return true;
    }
}

static CKBI_UNUSED void ckbi_scrub_complete(ckb_volume *v)
{
    CKB_MUTEX_LOCK(&v->long_lock);
    CKBI_ADD(&v->scrub.passes, 1);
    CKBI_STORE(&v->scrub.segment, 0);
    if (ckbi_writable(v) == CKB_OK)
        (void)ckbi_scrub_save(v);
    CKB_MUTEX_UNLOCK(&v->long_lock);
}

/* Takes or gives back the right to scrub; false: somebody else has it. */
static CKBI_UNUSED bool ckbi_scrub_busy(ckb_volume *v, bool busy)
{
    CKB_MUTEX_LOCK(&v->lock);
    bool change = v->scrub.busy != busy;
    v->scrub.busy = busy;
    CKB_MUTEX_UNLOCK(&v->lock);
    return change;
}

CKB_DEF int ckb_scrub(ckb_volume *volume, ckb_reader *reader, uint64_t budget,
                      int (*found)(void *context, const ckb_finding *finding), void *context,
                      ckb_check_report *report, bool *more)
{
    ckbi_scrub *s = &volume->scrub;
    uint64_t damage = report->damage, io_errors = report->io_errors;
    bool going = true;
    if (!ckbi_scrub_busy(volume, true))
        return CKB_BUSY;
    ckbi_checking *k = ckbi_check_init(reader, found, context, report);
    k->scrubs = true;
    ckbi_scrub_resume(k);
    for (uint64_t used = 0, step = 0; going && !k->stopped && used < budget; used += step)
        going = ckbi_scrub_step(k, &step);
    s->at = reader->walk.at;
    s->known = reader->walk.known;
    s->ended = reader->walk.ended;
    s->expected = k->entry_expected;
    if (!going)
        ckbi_scrub_complete(volume);
    ckbi_scrub_busy(volume, false);
    *more = going;
    return ckbi_check_end(k, damage, io_errors);
}
#endif

/* ---------------------------------------------------------------------------------------------- >>text */

CKB_DEF const char *ckb_version(void)
{
    return CKB_VERSION_TEXT;
}

#ifdef CKB_NO_STATUS_TEXT
CKB_DEF const char *ckb_status_text(int status)
{
    (void)status;
    return "";
}

CKB_DEF size_t ckb_fault_text(const ckb_fault *fault, char *text, size_t bytes)
{
    (void)fault;
    if (bytes > 0)
        text[0] = 0;
    return 0;
}
#else
CKB_DEF const char *ckb_status_text(int status)
{
    static const char *const texts[] = {"ok",
                                        "I/O error",
                                        "corrupt",
                                        "no space",
                                        "invalid",
                                        "read-only",
                                        "failed by an earlier error",
                                        "too big",
                                        "not found",
                                        "deleted",
                                        "purged",
                                        "end",
                                        "in use",
                                        "exists with other content",
                                        "unknown format version",
                                        "gap"};
    int index = -status;
    return index >= 0 && index < (int)(sizeof(texts) / sizeof(texts[0])) ? texts[index] : "unknown status";
}

typedef struct ckbi_text {
    char *text;
    size_t bytes, used;
} ckbi_text;

static CKBI_UNUSED void ckbi_text_add(ckbi_text *t, const char *words)
{
    for (; *words && t->used + 1 < t->bytes; words++)
        t->text[t->used++] = *words;
}

static CKBI_UNUSED void ckbi_text_number(ckbi_text *t, uint64_t number)
{
    char digits[21];
    size_t at = sizeof(digits) - 1;
    digits[at] = 0;
    do {
        digits[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    ckbi_text_add(t, digits + at);
}

/* One message per topic: %s segment, %o offset, %i index, %e expected, %f found, %t status, and the
 * two halves of a version as %E and %F. */
static CKBI_UNUSED const char *ckbi_topic_text(int topic)
{
    switch (topic) {
    case CKB_TOPIC_ARGUMENT:
        return "invalid argument %i: %f, expected %e";
    case CKB_TOPIC_GEOMETRY:
        return "geometry: the volume was made with %e, the medium has %f";
    case CKB_TOPIC_MEMORY:
        return "memory: %e bytes needed, %f given";
    case CKB_TOPIC_SEGMENT_HEADER:
        return "segment %s: in use under epoch %e, its header is missing or damaged (epoch %f found)";
    case CKB_TOPIC_RECORD:
        return "segment %s offset %o: %f bytes of records do not verify";
    case CKB_TOPIC_SUMMARY:
        return "segment %s offset %o: summary does not verify, records were read instead";
    case CKB_TOPIC_PAYLOAD:
        return "segment %s offset %o: payload does not verify";
    case CKB_TOPIC_JOURNAL:
        return "journal, segment %s offset %o: %t (expected %e, found %f)";
    case CKB_TOPIC_VERSION:
        return "segment %s: format version %F, this library knows %E";
    case CKB_TOPIC_MEDIUM:
        return "segment %s offset %o: %t from the medium";
    case CKB_TOPIC_CONTAINER:
        return "containers: %t, room for %e";
    case CKB_TOPIC_CHUNK:
        return "chunk %i, segment %s offset %o: %t";
    case CKB_TOPIC_INDEX_FULL:
        return "index: %t, room for %e chunks";
    case CKB_TOPIC_TAIL:
        return "dropped %f bytes at segment %s offset %o: never made durable";
    case CKB_TOPIC_JOURNAL_ROOM:
        return "%i segments of this size: the journal needs room for %e facts, half of them hold %f";
    case CKB_TOPIC_LOG:
        return "log: %t, room for %e";
    case CKB_TOPIC_ENTRY:
        return "entry %i, segment %s offset %o: does not verify";
    case CKB_TOPIC_ENTRY_ORDER:
        return "segment %s offset %o: entry index %f, expected %e";
    case CKB_TOPIC_LOG_HOLE:
        return "entries %e to %f are lost: segment %s follows one of epoch %i that is not there";
    case CKB_TOPIC_ENTRY_LOST:
        return "entries %e to %f are lost";
    case CKB_TOPIC_LOG_END:
        return "entries from %i on may be lost with segment %s (epoch %e)";
    case CKB_TOPIC_LOG_DOUBLE:
        return "segment %s and segment %f both claim place %e of a log";
    case CKB_TOPIC_CHECKPOINT:
        return "segment %s offset %o: the checkpoint does not verify, all segments are read instead";
    default:
        return "%t";
    }
}

static CKBI_UNUSED void ckbi_text_version(ckbi_text *t, uint64_t version)
{
    ckbi_text_number(t, version >> 16);
    ckbi_text_add(t, ".");
    ckbi_text_number(t, version & 0xFFFF);
}

static CKBI_UNUSED void ckbi_text_field(ckbi_text *t, const ckb_fault *fault, char field)
{
    switch (field) {
    case 's':
        if (fault->segment == CKB_NO_SEGMENT)
            ckbi_text_add(t, "-");
        else
            ckbi_text_number(t, fault->segment);
        break;
    case 'o':
        ckbi_text_number(t, fault->offset);
        break;
    case 'i':
        ckbi_text_number(t, fault->index);
        break;
    case 'e':
        ckbi_text_number(t, fault->expected);
        break;
    case 'f':
        ckbi_text_number(t, fault->found);
        break;
    case 'E':
        ckbi_text_version(t, fault->expected);
        break;
    case 'F':
        ckbi_text_version(t, fault->found);
        break;
    default:
        ckbi_text_add(t, ckb_status_text(fault->status));
        break;
    }
}

CKB_DEF size_t ckb_fault_text(const ckb_fault *fault, char *text, size_t bytes)
{
    ckbi_text t = {text, bytes, 0};
    if (bytes == 0)
        return 0;
    for (const char *p = ckbi_topic_text(fault->topic); *p; p++) {
        char letter[2] = {*p, 0};
        if (*p == '%')
            ckbi_text_field(&t, fault, *++p);
        else
            ckbi_text_add(&t, letter);
    }
    text[t.used] = 0;
    return t.used;
}
#endif /* CKB_NO_STATUS_TEXT */

#ifdef CHUNKBENCH_BENCH
/* --------------------------------------------------------------------------------------------- >>print
 * Text on its way to a sink: a small buffer, numbers and padding. Nothing here knows libc or a locale. */

typedef struct ckbi_out {
    const ckb_sink *sink;
    int status; /* of the sink; sticky */
    size_t used;
    size_t cell_used;
    bool in_cell; /* text is held back in `cell` until its width is known */
    char cell[96];
    char text[256];
} ckbi_out;

static void ckbi_out_start(ckbi_out *out, const ckb_sink *sink)
{
    out->sink = sink;
    out->status = CKB_OK;
    out->used = 0;
    out->cell_used = 0;
    out->in_cell = false;
}

static int ckbi_out_end(ckbi_out *out)
{
    if (out->used != 0 && out->status == CKB_OK)
        out->status = out->sink->write(out->sink->context, out->text, out->used);
    out->used = 0;
    return out->status;
}

static void ckbi_out_char(ckbi_out *out, char character)
{
    if (out->in_cell) {
        if (out->cell_used < sizeof out->cell)
            out->cell[out->cell_used++] = character;
        return;
    }
    if (out->used == sizeof out->text)
        ckbi_out_end(out);
    out->text[out->used++] = character;
}

static void ckbi_out_bytes(ckbi_out *out, const char *text, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++)
        ckbi_out_char(out, text[i]);
}

static void ckbi_out_text(ckbi_out *out, const char *text)
{
    while (*text != '\0')
        ckbi_out_char(out, *text++);
}

static void ckbi_out_number(ckbi_out *out, uint64_t number)
{
    char digits[20];
    size_t count = 0;
    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number != 0);
    while (count > 0)
        ckbi_out_char(out, digits[--count]);
}

static void ckbi_out_spaces(ckbi_out *out, size_t count)
{
    while (count-- > 0)
        ckbi_out_char(out, ' ');
}

static void ckbi_cell_start(ckbi_out *out)
{
    out->cell_used = 0;
    out->in_cell = true;
}

/* Sends the cell, right aligned in `width` columns (at the left for a negative one), with at least one space.
 */
static void ckbi_cell_end(ckbi_out *out, int width)
{
    size_t columns = (size_t)(width < 0 ? -width : width);
    size_t gap = columns > out->cell_used ? columns - out->cell_used : 1;
    out->in_cell = false;
    if (width > 0)
        ckbi_out_spaces(out, gap);
    ckbi_out_bytes(out, out->cell, out->cell_used);
    if (width < 0)
        ckbi_out_spaces(out, gap);
}

static void ckbi_out_cell(ckbi_out *out, const char *text, int width)
{
    ckbi_cell_start(out);
    ckbi_out_text(out, text);
    ckbi_cell_end(out, width);
}

/* A sink over memory: keeps what fits, always terminated. */
typedef struct ckbi_room {
    char *text;
    size_t bytes, used;
} ckbi_room;

static int ckbi_room_write(void *context, const char *text, size_t bytes)
{
    ckbi_room *room = context;
    size_t fits = room->bytes == 0 ? 0 : (size_t)ckbi_min(bytes, room->bytes - 1 - room->used);
    ckbi_copy(room->text + room->used, text, fits);
    room->used += fits;
    if (room->bytes != 0)
        room->text[room->used] = '\0';
    return CKB_OK;
}

/* A message under construction: out, its sink and the place it goes to. */
typedef struct ckbi_message {
    ckbi_out out;
    ckb_sink sink;
    ckbi_room room;
} ckbi_message;

static ckbi_out *ckbi_message_start(ckbi_message *message, char *text, size_t bytes)
{
    message->room.text = text;
    message->room.bytes = bytes;
    message->room.used = 0;
    message->sink.context = &message->room;
    message->sink.write = ckbi_room_write;
    if (bytes != 0)
        text[0] = '\0';
    ckbi_out_start(&message->out, &message->sink);
    return &message->out;
}

static void ckbi_message_set(char *text, size_t bytes, const char *value)
{
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, text, bytes);
    ckbi_out_text(out, value);
    ckbi_out_end(out);
}

/* --------------------------------------------------------------------------------------------- >>double
 * Shortest decimal of a double: digits are made one by one with exact integers (Steele and White; Burger
 * and Dybvig) until what is left could not name another double. Bounded: 2^1130 fits a ckbi_big. */

typedef struct ckbi_big {
    uint32_t count; /* limbs in use; the highest is not 0 */
    uint32_t limb[40];
} ckbi_big;

static void ckbi_big_set(ckbi_big *big, uint64_t value)
{
    big->limb[0] = (uint32_t)value;
    big->limb[1] = (uint32_t)(value >> 32);
    big->count = big->limb[1] != 0 ? 2 : big->limb[0] != 0;
}

static void ckbi_big_multiply(ckbi_big *big, uint32_t factor)
{
    uint64_t carry = 0;
    for (uint32_t i = 0; i < big->count; i++) {
        carry += (uint64_t)big->limb[i] * factor;
        big->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    if (carry != 0)
        big->limb[big->count++] = (uint32_t)carry;
}

static void ckbi_big_shift(ckbi_big *big, uint32_t bits)
{
    for (; bits >= 31; bits -= 31)
        ckbi_big_multiply(big, UINT32_C(1) << 31);
    ckbi_big_multiply(big, UINT32_C(1) << bits);
}

static uint32_t ckbi_big_limb(const ckbi_big *big, uint32_t place)
{
    return place < big->count ? big->limb[place] : 0;
}

/* Compares a + b with c: less than 0, 0 or more than 0. */
static int ckbi_big_compare_sum(const ckbi_big *a, const ckbi_big *b, const ckbi_big *c)
{
    ckbi_big sum;
    uint32_t limbs = (uint32_t)ckbi_max(ckbi_max(a->count, b->count) + 1, c->count);
    uint64_t carry = 0;
    for (uint32_t i = 0; i < limbs; i++) {
        carry += (uint64_t)ckbi_big_limb(a, i) + ckbi_big_limb(b, i);
        sum.limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
    while (limbs-- > 0)
        if (sum.limb[limbs] != ckbi_big_limb(c, limbs))
            return sum.limb[limbs] < ckbi_big_limb(c, limbs) ? -1 : 1;
    return 0;
}

static int ckbi_big_compare(const ckbi_big *a, const ckbi_big *b)
{
    ckbi_big zero;
    zero.count = 0;
    return ckbi_big_compare_sum(a, &zero, b);
}

/* a -= b, where a is not less than b. */
static void ckbi_big_subtract(ckbi_big *a, const ckbi_big *b)
{
    uint64_t borrow = 0;
    for (uint32_t i = 0; i < a->count; i++) {
        uint64_t part = (uint64_t)a->limb[i] - ckbi_big_limb(b, i) - borrow;
        a->limb[i] = (uint32_t)part;
        borrow = part >> 63;
    }
    while (a->count > 0 && a->limb[a->count - 1] == 0)
        a->count--;
}

/* A double as rest / scale, with the distances to half way to its neighbours. */
typedef struct ckbi_fraction {
    ckbi_big rest, scale, above, below;
    bool even; /* half way belongs to this double */
} ckbi_fraction;

static void ckbi_fraction_set(ckbi_fraction *fraction, uint64_t bits)
{
    uint32_t power = (uint32_t)(bits >> 52) & 0x7ff;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    bool narrow = mantissa == 0 && power > 1; /* the neighbour below is only half as far */
    mantissa |= power != 0 ? UINT64_C(1) << 52 : 0;
    power = power != 0 ? power : 1;
    ckbi_big_set(&fraction->rest, mantissa);
    ckbi_big_set(&fraction->scale, 1);
    ckbi_big_set(&fraction->above, 1);
    ckbi_big_set(&fraction->below, 1);
    ckbi_big_shift(&fraction->rest, narrow ? 2 : 1);
    ckbi_big_shift(&fraction->scale, narrow ? 2 : 1);
    ckbi_big_shift(&fraction->above, narrow ? 1 : 0);
    if (power >= 1075) {
        ckbi_big_shift(&fraction->rest, power - 1075);
        ckbi_big_shift(&fraction->above, power - 1075);
        ckbi_big_shift(&fraction->below, power - 1075);
    } else {
        ckbi_big_shift(&fraction->scale, 1075 - power);
    }
    fraction->even = (mantissa & 1) == 0;
}

static void ckbi_fraction_times_ten(ckbi_fraction *fraction)
{
    ckbi_big_multiply(&fraction->rest, 10);
    ckbi_big_multiply(&fraction->above, 10);
    ckbi_big_multiply(&fraction->below, 10);
}

static bool ckbi_fraction_reaches_scale(const ckbi_fraction *fraction)
{
    int order = ckbi_big_compare_sum(&fraction->rest, &fraction->above, &fraction->scale);
    return order > 0 || (order == 0 && fraction->even);
}

/* Scales to 0.1 <= value < 1; returns the power of ten taken out. */
static int ckbi_fraction_normalize(ckbi_fraction *fraction)
{
    int power = 0;
    while (ckbi_fraction_reaches_scale(fraction)) {
        ckbi_big_multiply(&fraction->scale, 10);
        power++;
    }
    for (;;) {
        ckbi_fraction trial = *fraction;
        ckbi_fraction_times_ten(&trial);
        if (ckbi_fraction_reaches_scale(&trial))
            return power;
        *fraction = trial;
        power--;
    }
}

/* The digits of a positive double; the value is 0.DIGITS times ten to the power of *power. */
static uint32_t ckbi_double_digits(uint64_t bits, char digits[20], int *power)
{
    ckbi_fraction fraction;
    uint32_t count = 0;
    ckbi_fraction_set(&fraction, bits);
    *power = ckbi_fraction_normalize(&fraction);
    for (;;) {
        char digit = '0';
        int low;
        bool stop_low, stop_high;
        ckbi_fraction_times_ten(&fraction);
        while (ckbi_big_compare(&fraction.rest, &fraction.scale) >= 0) {
            ckbi_big_subtract(&fraction.rest, &fraction.scale);
            digit++;
        }
        low = ckbi_big_compare(&fraction.rest, &fraction.below);
        stop_low = low < 0 || (low == 0 && fraction.even);
        stop_high = ckbi_fraction_reaches_scale(&fraction);
        if (stop_high && stop_low)
            stop_high = ckbi_big_compare_sum(&fraction.rest, &fraction.rest, &fraction.scale) >= 0;
        digits[count++] = (char)(digit + (stop_high ? 1 : 0));
        if (stop_low || stop_high || count == 17)
            return count;
    }
}

static bool ckbi_is_finite(double value)
{
    double difference = value - value;
    return difference == 0.0;
}

CKB_DEF size_t ckb_double_text(double value, char text[CKB_DOUBLE_TEXT_BYTES])
{
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, text, CKB_DOUBLE_TEXT_BYTES);
    char digits[20];
    uint64_t bits;
    int power = 0;
    uint32_t count = 0;
    bool scientific;
    ckbi_copy(&bits, &value, sizeof bits);
    if (ckbi_is_finite(value) && value != 0.0) {
        if (value < 0.0)
            ckbi_out_char(out, '-');
        count = ckbi_double_digits(bits & (UINT64_MAX >> 1), digits, &power);
    }
    /* Java's bounds for plain notation: 0.001 up to 10^7. */
    scientific = count != 0 && (power < -2 || power > 7);
    if (scientific) {
        ckbi_out_char(out, digits[0]);
    } else if (power <= 0) {
        ckbi_out_char(out, '0');
    } else {
        for (int i = 0; i < power; i++)
            ckbi_out_char(out, i < (int)count ? digits[i] : '0');
    }
    ckbi_out_char(out, '.');
    for (int i = scientific ? 0 : power; !scientific && i < 0; i++)
        ckbi_out_char(out, '0');
    for (int i = scientific ? 1 : power > 0 ? power : 0; i < (int)count; i++)
        ckbi_out_char(out, digits[i]);
    if ((int)count <= (scientific ? 1 : power > 0 ? power : 0))
        ckbi_out_char(out, '0');
    if (scientific) {
        ckbi_out_text(out, power - 1 < 0 ? "E-" : "E");
        ckbi_out_number(out, (uint64_t)(power - 1 < 0 ? 1 - power : power - 1));
    }
    ckbi_out_end(out);
    return message.room.used;
}

/* --------------------------------------------------------------------------------------------- >>units
 * Numbers for people and for machines. What is undefined is "-" or null; that is decided by the caller. */

static void ckbi_out_double(ckbi_out *out, double value)
{
    char text[CKB_DOUBLE_TEXT_BYTES];
    ckb_double_text(value, text);
    ckbi_out_text(out, text);
}

/* With a fixed number of decimals, rounded half up. */
static void ckbi_out_fixed(ckbi_out *out, double value, unsigned decimals)
{
    uint64_t scale = 1, scaled;
    for (unsigned i = 0; i < decimals; i++)
        scale *= 10;
    if (!ckbi_is_finite(value)) {
        ckbi_out_char(out, '-');
        return;
    }
    if (value < 0.0)
        ckbi_out_char(out, '-');
    value = value < 0.0 ? -value : value;
    if (value >= 1e18 / (double)scale) {
        ckbi_out_double(out, value);
        return;
    }
    scaled = (uint64_t)(value * (double)scale + 0.5);
    ckbi_out_number(out, scaled / scale);
    if (decimals == 0)
        return;
    ckbi_out_char(out, '.');
    for (scale /= 10; scale != 0; scale /= 10)
        ckbi_out_char(out, (char)('0' + scaled / scale % 10));
}

/* Three significant digits, never fewer before the dot. */
static void ckbi_out_three(ckbi_out *out, double value)
{
    double size = value < 0.0 ? -value : value;
    ckbi_out_fixed(out, value, size >= 99.95 ? 0 : size >= 9.995 ? 1 : size >= 0.9995 ? 2 : 3);
}

typedef struct ckbi_unit {
    const char *name;
    uint64_t size;
} ckbi_unit;

static const ckbi_unit ckbi_duration_units[] = {{"h", UINT64_C(3600000000000)},
                                                {"m", UINT64_C(60000000000)},
                                                {"s", 1000000000},
                                                {"ms", 1000000},
                                                {"us", 1000},
                                                {"ns", 1}};
static const ckbi_unit ckbi_size_units[] = {
    {"T", UINT64_C(1) << 40}, {"G", 1 << 30}, {"M", 1 << 20}, {"K", 1 << 10}};

/* "1.23 ms", in the unit that shows three digits; seconds are the largest. */
static void ckbi_out_duration(ckbi_out *out, uint64_t duration_ns)
{
    const ckbi_unit *unit = &ckbi_duration_units[2];
    while (unit->size > 1 && duration_ns < unit->size)
        unit++;
    if (unit->size == 1)
        ckbi_out_number(out, duration_ns);
    else
        ckbi_out_three(out, (double)duration_ns / (double)unit->size);
    ckbi_out_char(out, ' ');
    ckbi_out_text(out, unit->name);
}

/* "4 MiB" where that is exact, two decimals from 1 MiB on, bytes otherwise. */
static void ckbi_out_size(ckbi_out *out, uint64_t size_bytes)
{
    for (size_t i = 0; i < sizeof ckbi_size_units / sizeof ckbi_size_units[0]; i++) {
        const ckbi_unit *unit = &ckbi_size_units[i];
        bool exact = size_bytes % unit->size == 0;
        if (size_bytes < unit->size || (!exact && unit->size < (1 << 20)))
            continue;
        ckbi_out_fixed(out, (double)size_bytes / (double)unit->size, exact ? 0 : 2);
        ckbi_out_char(out, ' ');
        ckbi_out_text(out, unit->name);
        ckbi_out_text(out, "iB");
        return;
    }
    ckbi_out_number(out, size_bytes);
    ckbi_out_text(out, " B");
}

/* The shortest exact form of those that the parser below takes: "64K", "1500ms". */
static void ckbi_out_exact(ckbi_out *out, uint64_t number, const ckbi_unit *units, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (number == 0 || number % units[i].size != 0)
            continue;
        ckbi_out_number(out, number / units[i].size);
        ckbi_out_text(out, units[i].name);
        return;
    }
    ckbi_out_number(out, number);
}

static void ckbi_out_exact_size(ckbi_out *out, uint64_t size_bytes)
{
    ckbi_out_exact(out, size_bytes, ckbi_size_units, sizeof ckbi_size_units / sizeof ckbi_size_units[0]);
}

static void ckbi_out_exact_duration(ckbi_out *out, uint64_t duration_ns)
{
    ckbi_out_exact(out, duration_ns, ckbi_duration_units,
                   sizeof ckbi_duration_units / sizeof ckbi_duration_units[0]);
}

static double ckbi_sqrt(double value)
{
    double root = value > 1.0 ? value : 1.0;
    if (!(value > 0.0))
        return 0.0;
    /* From above Newton's steps fall until rounding ends it; 2^1024 takes some 520 halvings at most. */
    for (unsigned i = 0; i < 600; i++) {
        double next = 0.5 * (root + value / root);
        if (!(next < root))
            break;
        root = next;
    }
    return root;
}

/* --------------------------------------------------------------------------------------------- >>histogram */

/* 128-bit arithmetic in two halves, modulo 2^128. */
typedef struct ckbi_wide {
    uint64_t low, high;
} ckbi_wide;

#if defined(__SIZEOF_INT128__)
__extension__ typedef unsigned __int128 ckbi_uint128;
static ckbi_wide ckbi_wide_product(uint64_t a, uint64_t b)
{
    ckbi_uint128 whole = (ckbi_uint128)a * b;
    ckbi_wide product = {(uint64_t)whole, (uint64_t)(whole >> 64)};
    return product;
}
#else
static ckbi_wide ckbi_wide_product(uint64_t a, uint64_t b)
{
    uint64_t a_low = (uint32_t)a, a_high = a >> 32, b_low = (uint32_t)b, b_high = b >> 32;
    uint64_t low = a_low * b_low;
    uint64_t middle = a_high * b_low + (low >> 32);
    uint64_t other = a_low * b_high + (uint32_t)middle;
    ckbi_wide product = {other << 32 | (uint32_t)low, a_high * b_high + (middle >> 32) + (other >> 32)};
    return product;
}
#endif

static ckbi_wide ckbi_wide_sum(ckbi_wide a, ckbi_wide b)
{
    ckbi_wide sum = {a.low + b.low, a.high + b.high};
    sum.high += sum.low < a.low;
    return sum;
}

static ckbi_wide ckbi_wide_difference(ckbi_wide a, ckbi_wide b)
{
    ckbi_wide difference = {a.low - b.low, a.high - b.high};
    difference.high -= a.low < b.low;
    return difference;
}

static double ckbi_wide_double(ckbi_wide value)
{
    return (double)value.high * 18446744073709551616.0 + (double)value.low;
}

/* Half a bucket is at most 1/1024, 1/128 or 1/16 of its value. */
static uint32_t ckbi_histogram_sub_bits(unsigned digits)
{
    return digits == 1 ? 3 : digits == 2 ? 6 : digits == 3 || digits == 0 ? 9 : 0;
}

static uint32_t ckbi_histogram_bucket_count(uint32_t sub_bits)
{
    return (CKB_HISTOGRAM_BITS + 1 - sub_bits) << sub_bits;
}

static uint32_t ckbi_highest_bit(uint64_t value)
{
#if defined(__GNUC__)
    return 63u - (uint32_t)__builtin_clzll(value);
#else
    uint32_t bit = 0;
    while (value >>= 1)
        bit++;
    return bit;
#endif
}

/* Below 2^(sub_bits + 1) each value has its own bucket; above, each power of two has 2^sub_bits. */
static uint32_t ckbi_histogram_place(uint32_t sub_bits, uint64_t value)
{
    uint32_t shift;
    if (value >> (sub_bits + 1) == 0)
        return (uint32_t)value;
    shift = ckbi_highest_bit(value) - sub_bits;
    return (shift << sub_bits) + (uint32_t)(value >> shift);
}

static uint64_t ckbi_histogram_middle(uint32_t sub_bits, uint32_t place)
{
    uint32_t shift;
    if (place >> (sub_bits + 1) == 0)
        return place;
    shift = (place >> sub_bits) - 1;
    return ((uint64_t)(place - (shift << sub_bits)) << shift) + ((UINT64_C(1) << shift) - 1) / 2;
}

CKB_DEF size_t ckb_histogram_memory(unsigned digits)
{
    uint32_t sub_bits = ckbi_histogram_sub_bits(digits);
    return sub_bits == 0 ? 0 : ckbi_histogram_bucket_count(sub_bits) * sizeof(uint64_t);
}

CKB_DEF int ckb_histogram_init(ckb_histogram *histogram, unsigned digits, void *memory, size_t bytes)
{
    size_t needed = ckb_histogram_memory(digits);
    if (needed == 0 || bytes < needed)
        return CKB_INVALID;
    ckbi_fill(histogram, 0, sizeof *histogram);
    ckbi_fill(memory, 0, needed);
    histogram->buckets = memory;
    histogram->sub_bits = ckbi_histogram_sub_bits(digits);
    histogram->bucket_count = ckbi_histogram_bucket_count(histogram->sub_bits);
    histogram->min = UINT64_MAX;
    return CKB_OK;
}

CKB_DEF void ckb_histogram_add(ckb_histogram *histogram, uint64_t value_ns)
{
    const uint64_t top = (UINT64_C(1) << CKB_HISTOGRAM_BITS) - 1;
    ckbi_wide squares = {histogram->squares_low, histogram->squares_high};
    ckbi_wide square = {value_ns * value_ns, 0};
    if (value_ns >> 32 != 0)
        square = ckbi_wide_product(value_ns, value_ns);
    squares = ckbi_wide_sum(squares, square);
    histogram->squares_low = squares.low;
    histogram->squares_high = squares.high;
    histogram->buckets[ckbi_histogram_place(histogram->sub_bits, value_ns < top ? value_ns : top)]++;
    histogram->count++;
    histogram->sum += value_ns;
    if (value_ns < histogram->min)
        histogram->min = value_ns;
    if (value_ns > histogram->max)
        histogram->max = value_ns;
}

CKB_DEF int ckb_histogram_merge(ckb_histogram *histogram, const ckb_histogram *other)
{
    ckbi_wide squares = {histogram->squares_low, histogram->squares_high};
    ckbi_wide others = {other->squares_low, other->squares_high};
    if (histogram->sub_bits != other->sub_bits)
        return CKB_INVALID;
    if (other->count == 0)
        return CKB_OK;
    for (uint32_t i = 0; i < histogram->bucket_count; i++)
        histogram->buckets[i] += other->buckets[i];
    squares = ckbi_wide_sum(squares, others);
    histogram->squares_low = squares.low;
    histogram->squares_high = squares.high;
    histogram->count += other->count;
    histogram->sum += other->sum;
    histogram->min = ckbi_min(histogram->min, other->min);
    histogram->max = ckbi_max(histogram->max, other->max);
    return CKB_OK;
}

CKB_DEF uint64_t ckb_histogram_percentile(const ckb_histogram *histogram, uint32_t per_100000)
{
    /* count = 100000 * whole + part: the rank without a product that could overflow. */
    uint64_t whole = histogram->count / 100000, part = histogram->count % 100000;
    uint64_t rank = whole * per_100000 + (part * per_100000 + 99999) / 100000;
    uint64_t seen = 0, value;
    if (histogram->count == 0)
        return 0;
    rank = rank == 0 ? 1 : ckbi_min(rank, histogram->count);
    for (uint32_t place = 0; place < histogram->bucket_count; place++) {
        seen += histogram->buckets[place];
        if (seen < rank)
            continue;
        value = ckbi_histogram_middle(histogram->sub_bits, place);
        return ckbi_max(histogram->min, ckbi_min(value, histogram->max));
    }
    return histogram->max;
}

CKB_DEF void ckb_histogram_latency(const ckb_histogram *histogram, ckb_latency *latency)
{
    uint64_t mean, rest;
    double part;
    ckbi_wide squares = {histogram->squares_low, histogram->squares_high};
    ckbi_fill(latency, 0, sizeof *latency);
    latency->count = histogram->count;
    if (histogram->count == 0)
        return;
    latency->min = histogram->min;
    latency->max = histogram->max;
    latency->p50 = ckb_histogram_percentile(histogram, 50000);
    latency->p75 = ckb_histogram_percentile(histogram, 75000);
    latency->p95 = ckb_histogram_percentile(histogram, 95000);
    latency->p98 = ckb_histogram_percentile(histogram, 98000);
    latency->p99 = ckb_histogram_percentile(histogram, 99000);
    latency->p999 = ckb_histogram_percentile(histogram, 99900);
    mean = histogram->sum / histogram->count;
    rest = histogram->sum % histogram->count;
    part = (double)rest / (double)histogram->count;
    latency->mean = (double)mean + part;
    /* The sum of (value - whole mean)^2 in integers: squares - 2 mean sum + count mean^2. Nothing cancels. */
    squares = ckbi_wide_difference(squares, ckbi_wide_product(mean, histogram->sum));
    squares = ckbi_wide_difference(squares, ckbi_wide_product(mean, rest));
    latency->stddev = ckbi_sqrt(ckbi_wide_double(squares) / (double)histogram->count - part * part);
}

/* --------------------------------------------------------------------------------------------- >>meter */

#define CKBI_METER_TICK_NS UINT64_C(5000000000)

/* 1 - exp(-5/60/k) for k = 1, 5, 15 */
static const double ckbi_meter_alpha[3] = {0.07995558537067671, 0.01652854617838251, 0.005540151995103271};

CKB_DEF void ckb_meter_start(ckb_meter *meter, uint64_t now_ns)
{
    ckbi_fill(meter, 0, sizeof *meter);
    meter->start_ns = now_ns;
    meter->tick_ns = now_ns;
}

static void ckbi_meter_tick(ckb_meter *meter)
{
    double instant = (double)meter->uncounted / (double)CKBI_METER_TICK_NS;
    meter->uncounted = 0;
    for (unsigned i = 0; i < 3; i++) {
        /* Through volatile: a fused multiply-add would change the last digit. */
        volatile double step = ckbi_meter_alpha[i] * (instant - meter->rate[i]);
        meter->rate[i] = meter->ticked ? meter->rate[i] + step : instant;
    }
    meter->ticked = true;
}

static void ckbi_meter_advance(ckb_meter *meter, uint64_t now_ns)
{
    uint64_t age = now_ns > meter->tick_ns ? now_ns - meter->tick_ns : 0;
    if (age <= CKBI_METER_TICK_NS)
        return;
    meter->tick_ns = now_ns - age % CKBI_METER_TICK_NS;
    /* After 10,000 ticks without events (14 hours) every rate is far below one event per year. */
    for (uint64_t ticks = ckbi_min(age / CKBI_METER_TICK_NS, 10000); ticks > 0; ticks--)
        ckbi_meter_tick(meter);
}

CKB_DEF void ckb_meter_mark(ckb_meter *meter, uint64_t now_ns, uint64_t events)
{
    ckbi_meter_advance(meter, now_ns);
    meter->count += events;
    meter->uncounted += events;
}

CKB_DEF double ckb_meter_rates(ckb_meter *meter, uint64_t now_ns, double rates[3])
{
    uint64_t elapsed_ns = now_ns > meter->start_ns ? now_ns - meter->start_ns : 0;
    ckbi_meter_advance(meter, now_ns);
    for (unsigned i = 0; i < 3; i++)
        rates[i] = meter->rate[i] * 1e9;
    if (meter->count == 0 || elapsed_ns == 0)
        return 0.0;
    return (double)meter->count / (double)elapsed_ns * 1e9;
}

/* --------------------------------------------------------------------------------------------- >>disk
 * The extended columns of iostat, by sysstat's formulas. Requests are reads and writes; discards and
 * flushes are not among them. */

/* What a counter grew by. Kernels of 32 bits let them go round. */
static double ckbi_disk_grown(const uint64_t *before, const uint64_t *after, ckb_disk_counter counter)
{
    uint64_t grown = after[counter] - before[counter];
    return (double)(after[counter] < before[counter] ? (uint32_t)grown : grown);
}

static double ckbi_quotient(double dividend, double divisor)
{
    return divisor > 0.0 ? dividend / divisor : 0.0;
}

CKB_DEF void ckb_disk_use_of(const uint64_t before[CKB_DISK_COUNTER_COUNT],
                             const uint64_t after[CKB_DISK_COUNTER_COUNT], uint64_t elapsed_ns,
                             ckb_disk_use *use)
{
    double grown[CKB_DISK_COUNTER_COUNT], requests, seconds = (double)elapsed_ns / 1e9;
    for (int i = 0; i < CKB_DISK_COUNTER_COUNT; i++)
        grown[i] = ckbi_disk_grown(before, after, (ckb_disk_counter)i);
    requests = grown[CKB_DISK_READS] + grown[CKB_DISK_WRITES];
    use->read_merges_per_s = ckbi_quotient(grown[CKB_DISK_READ_MERGES], seconds);
    use->write_merges_per_s = ckbi_quotient(grown[CKB_DISK_WRITE_MERGES], seconds);
    use->reads_per_s = ckbi_quotient(grown[CKB_DISK_READS], seconds);
    use->writes_per_s = ckbi_quotient(grown[CKB_DISK_WRITES], seconds);
    use->read_mib_per_s = ckbi_quotient(grown[CKB_DISK_READ_SECTORS] / 2048.0, seconds);
    use->write_mib_per_s = ckbi_quotient(grown[CKB_DISK_WRITE_SECTORS] / 2048.0, seconds);
    use->request_sectors =
        ckbi_quotient(grown[CKB_DISK_READ_SECTORS] + grown[CKB_DISK_WRITE_SECTORS], requests);
    use->queue_length = ckbi_quotient(grown[CKB_DISK_WEIGHTED_MS] / 1000.0, seconds);
    use->wait_ms = ckbi_quotient(grown[CKB_DISK_READ_MS] + grown[CKB_DISK_WRITE_MS], requests);
    use->read_wait_ms = ckbi_quotient(grown[CKB_DISK_READ_MS], grown[CKB_DISK_READS]);
    use->write_wait_ms = ckbi_quotient(grown[CKB_DISK_WRITE_MS], grown[CKB_DISK_WRITES]);
    use->service_ms = ckbi_quotient(grown[CKB_DISK_BUSY_MS], requests);
    use->busy_percent = ckbi_quotient(grown[CKB_DISK_BUSY_MS] / 10.0, seconds);
}

/* --------------------------------------------------------------------------------------------- >>pattern
 * Incompressible content that can be made again from seed, thread and index. A pool of random words is
 * xored with a random word per 16 KiB of each chunk: inside a chunk nothing repeats, and no two chunks
 * share eight bytes other than by chance, so neither compression nor deduplication helps. It runs at
 * the speed of a copy. */

#define CKBI_POOL_BYTES 16384u
#define CKBI_POOL_WORDS (CKBI_POOL_BYTES / 8u)
#define CKBI_POOL_STEP 64u

typedef struct ckbi_pattern {
    uint64_t seed;
    uint64_t pool[CKBI_POOL_WORDS];
} ckbi_pattern;

/* splitmix64's output function: a bijection that changes half of the bits for any change. */
static uint64_t ckbi_mix(uint64_t value)
{
    value += UINT64_C(0x9E3779B97F4A7C15);
    value = (value ^ value >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    value = (value ^ value >> 27) * UINT64_C(0x94D049BB133111EB);
    return value ^ value >> 31;
}

static void ckbi_pattern_set(ckbi_pattern *pattern, uint64_t seed)
{
    pattern->seed = ckbi_mix(seed);
    for (uint32_t i = 0; i < CKBI_POOL_WORDS; i++)
        pattern->pool[i] = ckbi_mix(pattern->seed + i * UINT64_C(0x9E3779B97F4A7C15));
}

/* One cache line. All loads stand before all stores: with one after the other the compiler, which cannot
 * know that they do not overlap, makes it three times as slow. */
static void ckbi_pattern_step(const uint64_t *words, uint64_t key, uint8_t *data)
{
    uint64_t a = words[0] ^ key, b = words[1] ^ key, c = words[2] ^ key, d = words[3] ^ key;
    uint64_t e = words[4] ^ key, f = words[5] ^ key, g = words[6] ^ key, h = words[7] ^ key;
    ckbi_copy(data, &a, 8);
    ckbi_copy(data + 8, &b, 8);
    ckbi_copy(data + 16, &c, 8);
    ckbi_copy(data + 24, &d, 8);
    ckbi_copy(data + 32, &e, 8);
    ckbi_copy(data + 40, &f, 8);
    ckbi_copy(data + 48, &g, 8);
    ckbi_copy(data + 56, &h, 8);
}

static void ckbi_pattern_fill(const ckbi_pattern *pattern, uint32_t thread, uint64_t index, uint8_t *data,
                              uint64_t bytes)
{
    uint64_t key = ckbi_mix(pattern->seed ^ ckbi_mix(index ^ (uint64_t)thread << 48));
    while (bytes > 0) {
        uint64_t piece = ckbi_min(bytes, CKBI_POOL_BYTES);
        uint32_t done = 0;
        for (; done + CKBI_POOL_STEP <= piece; done += CKBI_POOL_STEP)
            ckbi_pattern_step(pattern->pool + done / 8, key, data + done);
        for (; done < piece; done++)
            data[done] = (uint8_t)((pattern->pool[done / 8] ^ key) >> done % 8 * 8);
        data += piece;
        bytes -= piece;
        key = ckbi_mix(key);
    }
}

/* --------------------------------------------------------------------------------------------- >>teragen-rows
 * The rows of TeraGen, made fast enough that it is the storage below that is measured. */

CKB_DEF void ckb_crc32_table_init(ckb_crc32_table *table)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t state = byte;
        for (unsigned bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (0xEDB88320u & (0u - (state & 1u)));
        table->state[0][byte] = state;
    }
    for (uint32_t byte = 0; byte < 256; byte++)
        for (unsigned behind = 1; behind < 8; behind++) {
            uint32_t state = table->state[behind - 1][byte];
            table->state[behind][byte] = state >> 8 ^ table->state[0][state & 255];
        }
}

/* The state behind four bytes that have `behind` more bytes behind them. */
static uint32_t ckbi_crc32_word(const ckb_crc32_table *table, uint32_t word, unsigned behind)
{
    return (table->state[behind + 3][word & 255] ^ table->state[behind + 2][word >> 8 & 255]) ^
           (table->state[behind + 1][word >> 16 & 255] ^ table->state[behind][word >> 24]);
}

CKB_DEF uint32_t ckb_crc32(const ckb_crc32_table *table, uint32_t crc, const void *data, size_t bytes)
{
    const uint8_t *at = (const uint8_t *)data;
    uint32_t state = ~crc;
    for (; bytes >= 8; bytes -= 8, at += 8)
        state =
            ckbi_crc32_word(table, state ^ ckbi_get32(at), 4) ^ ckbi_crc32_word(table, ckbi_get32(at + 4), 0);
    if (bytes >= 4) {
        state = ckbi_crc32_word(table, state ^ ckbi_get32(at), 0);
        bytes -= 4;
        at += 4;
    }
    for (; bytes > 0; bytes--)
        state = state >> 8 ^ table->state[0][(state ^ *at++) & 255];
    return ~state;
}

static const ckbi_wide ckbi_teragen_factor = {UINT64_C(0x4385df649fccf645), UINT64_C(0x2360ed051fc65da4)};
static const ckbi_wide ckbi_teragen_step = {UINT64_C(0x4950202020202001), UINT64_C(0x4a696d4772617952)};

/* value * factor + step */
static ckbi_wide ckbi_wide_next(ckbi_wide value, ckbi_wide factor, ckbi_wide step)
{
    ckbi_wide product = ckbi_wide_product(value.low, factor.low);
    product.high += value.low * factor.high + value.high * factor.low;
    return ckbi_wide_sum(product, step);
}

/* Skips ahead: the factor and the step of 2^n steps are squared from those of 2^(n-1). */
CKB_DEF void ckb_teragen_seek(ckb_teragen *teragen, uint64_t row)
{
    ckbi_wide state = {0, 0}, zero = {0, 0};
    ckbi_wide factor = ckbi_teragen_factor, step = ckbi_teragen_step;
    for (uint64_t left = row; left != 0; left >>= 1) {
        if (left & 1)
            state = ckbi_wide_next(state, factor, step);
        step = ckbi_wide_next(step, factor, step);
        factor = ckbi_wide_next(factor, factor, zero);
    }
    teragen->row = row;
    teragen->low = state.low;
    teragen->high = state.high;
}

static void ckbi_put64_big(uint8_t *bytes, uint64_t value)
{
    bytes[0] = (uint8_t)(value >> 56);
    bytes[1] = (uint8_t)(value >> 48);
    bytes[2] = (uint8_t)(value >> 40);
    bytes[3] = (uint8_t)(value >> 32);
    bytes[4] = (uint8_t)(value >> 24);
    bytes[5] = (uint8_t)(value >> 16);
    bytes[6] = (uint8_t)(value >> 8);
    bytes[7] = (uint8_t)value;
}

/* Eight upper-case hexadecimal digits, all at once: a digit to a byte, then 7 more where it is above 9. */
static void ckbi_put_hex(uint8_t *bytes, uint32_t value)
{
    uint64_t digits = ((uint64_t)value << 16 & UINT64_C(0x0000FFFF00000000)) | (value & 0xFFFF);
    digits = (digits | digits << 8) & UINT64_C(0x00FF00FF00FF00FF);
    digits = (digits | digits << 4) & UINT64_C(0x0F0F0F0F0F0F0F0F);
    uint64_t letters = (digits + UINT64_C(0x0606060606060606)) >> 4 & UINT64_C(0x0101010101010101);
    ckbi_put64_big(bytes, digits + UINT64_C(0x3030303030303030) + letters * 7);
}

static void ckbi_teragen_row(uint8_t *bytes, uint64_t row, ckbi_wide state)
{
    static const uint8_t head[] = {0x00, 0x11, '0', '0', '0', '0', '0', '0', '0',
                                   '0',  '0',  '0', '0', '0', '0', '0', '0', '0'};
    static const uint8_t middle[] = {0x88, 0x99, 0xAA, 0xBB}, tail[] = {0xCC, 0xDD, 0xEE, 0xFF};
    static const uint32_t four[16] = {0x30303030, 0x31313131, 0x32323232, 0x33333333, 0x34343434, 0x35353535,
                                      0x36363636, 0x37373737, 0x38383838, 0x39393939, 0x41414141, 0x42424242,
                                      0x43434343, 0x44444444, 0x45454545, 0x46464646};
    ckbi_put64_big(bytes, state.high);
    bytes[8] = (uint8_t)(state.low >> 56);
    bytes[9] = (uint8_t)(state.low >> 48);
    ckbi_copy(bytes + 10, head, sizeof head);
    ckbi_put_hex(bytes + 28, (uint32_t)(row >> 32));
    ckbi_put_hex(bytes + 36, (uint32_t)row);
    ckbi_copy(bytes + 44, middle, sizeof middle);
    for (unsigned i = 0; i < 12; i++)
        ckbi_copy(bytes + 48 + 4 * i, &four[state.low >> (44 - 4 * i) & 15], 4);
    ckbi_copy(bytes + 96, tail, sizeof tail);
}

CKB_DEF void ckb_teragen_make(ckb_teragen *teragen, void *rows, size_t count)
{
    uint8_t *at = (uint8_t *)rows;
    ckbi_wide state = {teragen->low, teragen->high};
    for (size_t i = 0; i < count; i++, at += CKB_TERAGEN_ROW_BYTES) {
        state = ckbi_wide_next(state, ckbi_teragen_factor, ckbi_teragen_step);
        ckbi_teragen_row(at, teragen->row + i, state);
    }
    teragen->row += count;
    teragen->low = state.low;
    teragen->high = state.high;
}

CKB_DEF void ckb_teragen_add(ckb_teragen_sum *sum, const ckb_crc32_table *table, const void *rows, size_t count)
{
    const uint8_t *at = (const uint8_t *)rows;
    uint64_t low = sum->low;
    for (size_t i = 0; i < count; i++, at += CKB_TERAGEN_ROW_BYTES) {
        uint32_t crc = ckb_crc32(table, 0, at, CKB_TERAGEN_ROW_BYTES);
        low += crc;
        sum->high += low < crc;
    }
    sum->low = low;
}

/* --------------------------------------------------------------------------------------------- >>options */

typedef enum ckbi_parse {
    CKBI_PARSE_OK,
    CKBI_PARSE_BAD,  /* not of this kind at all */
    CKBI_PARSE_RANGE /* of this kind, but too small or too large */
} ckbi_parse;

/* Part of an argument, not terminated. */
typedef struct ckbi_span {
    const char *text;
    size_t bytes;
} ckbi_span;

static ckbi_span ckbi_span_of(const char *text)
{
    ckbi_span span = {text, 0};
    while (text[span.bytes] != '\0')
        span.bytes++;
    return span;
}

static bool ckbi_span_is(ckbi_span span, const char *text)
{
    ckbi_span other = ckbi_span_of(text);
    return span.bytes == other.bytes && ckbi_compare(span.text, other.text, span.bytes) == 0;
}

static bool ckbi_text_is(const char *a, const char *b)
{
    return ckbi_span_is(ckbi_span_of(a), b);
}

/* Cuts the part before `separator` off the front of *rest. */
static ckbi_span ckbi_span_cut(ckbi_span *rest, char separator)
{
    ckbi_span head = {rest->text, 0};
    while (head.bytes < rest->bytes && rest->text[head.bytes] != separator)
        head.bytes++;
    if (head.bytes < rest->bytes) {
        rest->text += head.bytes + 1;
        rest->bytes -= head.bytes + 1;
    } else {
        rest->text += head.bytes;
        rest->bytes = 0;
    }
    return head;
}

static bool ckbi_is_digit(char character)
{
    return character >= '0' && character <= '9';
}

/* Takes leading digits off *span. Values beyond 2^64 - 1 are CKBI_PARSE_RANGE. */
static ckbi_parse ckbi_take_digits(ckbi_span *span, uint64_t *number)
{
    ckbi_parse result = CKBI_PARSE_OK;
    size_t taken = 0;
    *number = 0;
    while (taken < span->bytes && ckbi_is_digit(span->text[taken])) {
        uint64_t digit = (uint64_t)(span->text[taken++] - '0');
        if (*number > (UINT64_MAX - digit) / 10)
            result = CKBI_PARSE_RANGE;
        else
            *number = *number * 10 + digit;
    }
    span->text += taken;
    span->bytes -= taken;
    return taken == 0 ? CKBI_PARSE_BAD : result;
}

/* K, M, G, T in either case, with or without "B" or "iB" behind it. */
static ckbi_parse ckbi_parse_size(ckbi_span span, uint64_t *number)
{
    ckbi_parse result = ckbi_take_digits(&span, number);
    uint64_t factor = 1;
    if (result == CKBI_PARSE_BAD || span.bytes == 0)
        return result;
    for (size_t i = 0; i < sizeof ckbi_size_units / sizeof ckbi_size_units[0]; i++)
        if ((span.text[0] & ~0x20) == ckbi_size_units[i].name[0])
            factor = ckbi_size_units[i].size;
    if (factor != 1) {
        span.text++;
        span.bytes--;
    }
    if (span.bytes != 0 && !ckbi_span_is(span, "B") && !(factor != 1 && ckbi_span_is(span, "iB")))
        return CKBI_PARSE_BAD;
    if (*number > UINT64_MAX / factor)
        return CKBI_PARSE_RANGE;
    *number *= factor;
    return result;
}

/* "4K", or "64-4K": from the one to the other. */
static ckbi_parse ckbi_parse_span(ckbi_span span, uint64_t *first, uint64_t *last)
{
    ckbi_span rest = span, head = ckbi_span_cut(&rest, '-');
    ckbi_parse result = ckbi_parse_size(head, first);
    *last = *first;
    if (result == CKBI_PARSE_OK && head.bytes < span.bytes)
        result = ckbi_parse_size(rest, last);
    return result == CKBI_PARSE_OK && *last < *first ? CKBI_PARSE_BAD : result;
}

/* number * unit plus the fraction that follows a dot in *span. Digits below one are dropped. */
static ckbi_parse ckbi_take_fraction(ckbi_span *span, uint64_t unit, uint64_t *fraction)
{
    uint64_t divisor = 1;
    *fraction = 0;
    if (span->bytes == 0 || span->text[0] != '.')
        return CKBI_PARSE_OK;
    span->text++;
    span->bytes--;
    if (span->bytes == 0 || !ckbi_is_digit(span->text[0]))
        return CKBI_PARSE_BAD;
    while (span->bytes != 0 && ckbi_is_digit(span->text[0])) {
        divisor = divisor <= UINT64_MAX / 10 ? divisor * 10 : UINT64_MAX;
        *fraction += (uint64_t)(span->text[0] - '0') * unit / divisor;
        span->text++;
        span->bytes--;
    }
    return CKBI_PARSE_OK;
}

static ckbi_parse ckbi_scale(ckbi_parse result, uint64_t unit, uint64_t fraction, uint64_t *number)
{
    if (result != CKBI_PARSE_OK || *number > (UINT64_MAX - fraction) / unit)
        return CKBI_PARSE_RANGE;
    *number = *number * unit + fraction;
    return CKBI_PARSE_OK;
}

static ckbi_parse ckbi_parse_duration(ckbi_span span, uint64_t *number)
{
    ckbi_parse result = ckbi_take_digits(&span, number);
    ckbi_span start = span;
    uint64_t fraction;
    if (result == CKBI_PARSE_BAD || ckbi_take_fraction(&span, 1, &fraction) == CKBI_PARSE_BAD)
        return CKBI_PARSE_BAD;
    for (size_t i = 0; i < sizeof ckbi_duration_units / sizeof ckbi_duration_units[0]; i++) {
        if (!ckbi_span_is(span, ckbi_duration_units[i].name))
            continue;
        (void)ckbi_take_fraction(&start, ckbi_duration_units[i].size, &fraction);
        return ckbi_scale(result, ckbi_duration_units[i].size, fraction, number);
    }
    return CKBI_PARSE_BAD;
}

static ckbi_parse ckbi_parse_rate(ckbi_span span, uint64_t *number)
{
    uint64_t fraction;
    ckbi_parse result = ckbi_take_digits(&span, number);
    if (result == CKBI_PARSE_BAD || ckbi_take_fraction(&span, 1000, &fraction) == CKBI_PARSE_BAD ||
        span.bytes != 0)
        return CKBI_PARSE_BAD;
    return ckbi_scale(result, 1000, fraction, number);
}

/* Finds `span` among "a|b|c". */
static bool ckbi_find_choice(const char *choices, ckbi_span span, uint64_t *place)
{
    ckbi_span rest = ckbi_span_of(choices);
    for (*place = 0; rest.bytes != 0; (*place)++) {
        ckbi_span choice = ckbi_span_cut(&rest, '|');
        if (choice.bytes == span.bytes && ckbi_compare(choice.text, span.text, span.bytes) == 0)
            return true;
    }
    return false;
}

/* The bounds of a policy's durations: below the first no timer can be trusted, above the last it is none. */
#define CKBI_POLICY_MIN_NS 10000
#define CKBI_POLICY_MAX_NS UINT64_C(60000000000)

/* One value of any kind that has a number. Spans are CKBI_PARSE_OK with both ends in bounds. */
static ckbi_parse ckbi_parse_number(const ckb_option *option, ckbi_span span, ckb_option_value *value)
{
    uint64_t *number = &value->number[value->count], *last = &value->last[value->count];
    bool *chosen = &value->chosen[value->count], *timed = &value->timed[value->count];
    ckbi_parse result;
    *chosen = *timed = false;
    *last = 0;
    switch (option->kind) {
    case CKB_OPTION_SPAN:
        result = ckbi_parse_span(span, number, last);
        if (result == CKBI_PARSE_OK && *last > option->max)
            return CKBI_PARSE_RANGE;
        break;
    case CKB_OPTION_POLICY:
        *chosen = ckbi_find_choice(option->choices, span, number);
        if (*chosen)
            return CKBI_PARSE_OK;
        result = ckbi_parse_duration(span, number);
        *timed = result != CKBI_PARSE_BAD;
        if (result == CKBI_PARSE_OK && (*number < CKBI_POLICY_MIN_NS || *number > CKBI_POLICY_MAX_NS))
            return CKBI_PARSE_RANGE;
        if (*timed)
            return result;
        result = ckbi_take_digits(&span, number);
        result = span.bytes != 0 ? CKBI_PARSE_BAD : result;
        break;
    case CKB_OPTION_SIZE:
        result = ckbi_parse_size(span, number);
        break;
    case CKB_OPTION_DURATION:
        result = ckbi_parse_duration(span, number);
        break;
    case CKB_OPTION_RATE:
        result = ckbi_parse_rate(span, number);
        break;
    case CKB_OPTION_CHOICE:
        *chosen = ckbi_find_choice(option->choices, span, number);
        if (*chosen)
            return CKBI_PARSE_OK;
        if (option->max == 0)
            return CKBI_PARSE_BAD;
        result = ckbi_take_digits(&span, number);
        result = span.bytes != 0 ? CKBI_PARSE_BAD : result;
        break;
    default:
        result = ckbi_take_digits(&span, number);
        result = span.bytes != 0 ? CKBI_PARSE_BAD : result;
        break;
    }
    if (result == CKBI_PARSE_OK && (*number < option->min || *number > option->max))
        return CKBI_PARSE_RANGE;
    return result;
}

/* A number as the option would take it. */
static void ckbi_out_option_number(ckbi_out *out, const ckb_option *option, uint64_t number)
{
    if (option->kind == CKB_OPTION_SIZE || option->kind == CKB_OPTION_SPAN)
        ckbi_out_exact_size(out, number);
    else if (option->kind == CKB_OPTION_DURATION)
        ckbi_out_exact_duration(out, number);
    else if (option->kind == CKB_OPTION_RATE && number % 1000 != 0)
        ckbi_out_fixed(out, (double)number / 1000.0, 3);
    else
        ckbi_out_number(out, option->kind == CKB_OPTION_RATE ? number / 1000 : number);
}

static void ckbi_out_bounds(ckbi_out *out, const ckb_option *option)
{
    bool policy = option->kind == CKB_OPTION_POLICY;
    if (option->kind == CKB_OPTION_CHOICE || policy) {
        ckbi_span rest = ckbi_span_of(option->choices);
        while (rest.bytes != 0) {
            ckbi_span choice = ckbi_span_cut(&rest, '|');
            ckbi_out_bytes(out, choice.text, choice.bytes);
            ckbi_out_text(out, rest.bytes != 0 || policy ? ", " : option->max != 0 ? " or " : "");
        }
        if (option->max == 0)
            return;
    }
    if (option->kind == CKB_OPTION_TEXT) {
        ckbi_out_text(out, "at most ");
        ckbi_out_number(out, option->max);
        ckbi_out_text(out, " bytes");
        return;
    }
    ckbi_out_option_number(out, option, option->min);
    ckbi_out_text(out, " to ");
    ckbi_out_option_number(out, option, option->max);
    if (!policy)
        return;
    ckbi_out_text(out, " or ");
    ckbi_out_exact_duration(out, CKBI_POLICY_MIN_NS);
    ckbi_out_text(out, " to ");
    ckbi_out_exact_duration(out, CKBI_POLICY_MAX_NS);
}

/* Quotes what the user typed: at most 40 bytes, control characters as '?'. */
static void ckbi_out_quoted(ckbi_out *out, ckbi_span span)
{
    ckbi_out_char(out, '"');
    for (size_t i = 0; i < span.bytes && i < 40; i++)
        ckbi_out_char(out, (unsigned char)span.text[i] < 0x20 || span.text[i] == 0x7f ? '?' : span.text[i]);
    ckbi_out_text(out, span.bytes > 40 ? "...\"" : "\"");
}

static const char *ckbi_kind_text(uint8_t kind)
{
    switch (kind) {
    case CKB_OPTION_SIZE:
        return " is not a size (digits, then K, M, G or T; ";
    case CKB_OPTION_SPAN:
        return " is neither a size (digits, then K, M, G or T) nor SMALLEST-LARGEST (";
    case CKB_OPTION_DURATION:
        return " is not a duration (digits, then ns, us, ms, s, m or h; ";
    case CKB_OPTION_RATE:
        return " is not a rate (per second; ";
    case CKB_OPTION_CHOICE:
    case CKB_OPTION_POLICY:
        return " is not known (";
    default:
        return " is not a count (digits; ";
    }
}

/* `--size: "0" is out of range (1 to 1G)` */
static int ckbi_refuse_value(ckbi_out *out, const ckb_option *option, ckbi_span span, ckbi_parse why)
{
    ckbi_out_text(out, "--");
    ckbi_out_text(out, option->name);
    ckbi_out_text(out, ": ");
    ckbi_out_quoted(out, span);
    ckbi_out_text(out, why == CKBI_PARSE_RANGE ? " is out of range (" : ckbi_kind_text(option->kind));
    ckbi_out_bounds(out, option);
    ckbi_out_char(out, ')');
    ckbi_out_end(out);
    return CKB_INVALID;
}

static int ckbi_refuse(ckbi_out *out, ckbi_span name, const char *before, const char *after)
{
    ckbi_out_text(out, before);
    ckbi_out_bytes(out, name.text, (size_t)ckbi_min(name.bytes, 40));
    ckbi_out_text(out, after);
    ckbi_out_end(out);
    return CKB_INVALID;
}

static int ckbi_option_set_text(const ckb_option *option, ckb_option_value *value, const char *text,
                                ckbi_out *out)
{
    ckbi_span rest = ckbi_span_of(text);
    value->text = text;
    value->count = 0;
    if (option->kind == CKB_OPTION_TEXT) {
        if (rest.bytes < option->min || rest.bytes > option->max)
            return ckbi_refuse_value(out, option, rest, CKBI_PARSE_RANGE);
        value->count = 1;
        return CKB_OK;
    }
    for (bool more = true; more; value->count++) {
        size_t before = rest.bytes;
        ckbi_span item = option->list ? ckbi_span_cut(&rest, ',') : rest;
        ckbi_parse result;
        more = option->list && item.bytes < before;
        if (value->count == CKB_OPTION_LIST_MAX)
            return ckbi_refuse(out, ckbi_span_of(option->name), "--", ": more than 32 values in the list");
        result = ckbi_parse_number(option, item, value);
        if (result != CKBI_PARSE_OK)
            return ckbi_refuse_value(out, option, item, result);
    }
    return CKB_OK;
}

CKB_DEF void ckb_options_defaults(const ckb_option_set *set)
{
    ckbi_message message;
    char text[8];
    for (uint32_t i = 0; i < set->count; i++) {
        ckbi_fill(&set->values[i], 0, sizeof set->values[i]);
        if (set->options[i].standard != NULL)
            (void)ckbi_option_set_text(&set->options[i], &set->values[i], set->options[i].standard,
                                       ckbi_message_start(&message, text, sizeof text));
    }
}

/* The state of one pass over the arguments. */
typedef struct ckbi_arguments {
    const ckb_option_set *sets;
    uint32_t set_count;
    int count, at;
    const char *const *texts;
    ckbi_out *out;
} ckbi_arguments;

/* By name, or by letter when `letter` is not 0. */
static const ckb_option *ckbi_option_find(const ckbi_arguments *arguments, ckbi_span name, char letter,
                                          ckb_option_value **value)
{
    for (uint32_t s = 0; s < arguments->set_count; s++) {
        const ckb_option_set *set = &arguments->sets[s];
        for (uint32_t i = 0; i < set->count; i++) {
            const ckb_option *option = &set->options[i];
            if (letter != '\0' ? option->letter != letter : !ckbi_span_is(name, option->name))
                continue;
            *value = &set->values[i];
            return option;
        }
    }
    return NULL;
}

/* Handles the option at arguments->at: "--name", "--name=value", "-x" or "-xvalue". */
static int ckbi_take_option(ckbi_arguments *arguments)
{
    const char *argument = arguments->texts[arguments->at];
    bool is_long = argument[1] == '-';
    ckbi_span rest = ckbi_span_of(argument + (is_long ? 2 : 1));
    ckbi_span name = is_long ? ckbi_span_cut(&rest, '=') : rest;
    const char *attached = NULL;
    ckb_option_value *value = NULL;
    const ckb_option *option = ckbi_option_find(arguments, name, is_long ? '\0' : argument[1], &value);
    if (option == NULL)
        return ckbi_refuse(arguments->out, ckbi_span_of(argument), "unknown option ", "");
    if (is_long && argument[2 + name.bytes] == '=')
        attached = argument + 3 + name.bytes;
    else if (!is_long && argument[2] != '\0')
        attached = argument + 2;
    name = ckbi_span_of(option->name);
    if (value->given)
        return ckbi_refuse(arguments->out, name, "--", " is given twice");
    value->given = true;
    if (option->kind == CKB_OPTION_FLAG) {
        value->count = 1;
        value->number[0] = 1;
        return attached == NULL ? CKB_OK : ckbi_refuse(arguments->out, name, "--", " takes no value");
    }
    if (attached == NULL && arguments->at + 1 < arguments->count)
        attached = arguments->texts[++arguments->at];
    if (attached == NULL)
        return ckbi_refuse(arguments->out, name, "--", " wants a value");
    return ckbi_option_set_text(option, value, attached, arguments->out);
}

CKB_DEF int ckb_options_parse(const ckb_option_set *sets, uint32_t set_count, int argument_count,
                              const char *const *argument_texts, const char **operands, uint32_t operand_room,
                              uint32_t *operand_count, char *text, size_t text_bytes)
{
    ckbi_message message;
    ckbi_arguments arguments = {sets, set_count, argument_count, 0, argument_texts, NULL};
    bool options_end = false;
    arguments.out = ckbi_message_start(&message, text, text_bytes);
    *operand_count = 0;
    for (; arguments.at < argument_count; arguments.at++) {
        const char *argument = argument_texts[arguments.at];
        if (!options_end && argument[0] == '-' && argument[1] != '\0') {
            int status = CKB_OK;
            options_end = ckbi_text_is(argument, "--");
            if (!options_end)
                status = ckbi_take_option(&arguments);
            if (status != CKB_OK)
                return status;
        } else if (*operand_count < operand_room) {
            operands[(*operand_count)++] = argument;
        } else {
            return ckbi_refuse(arguments.out, ckbi_span_of(argument), "one argument too many: ", "");
        }
    }
    return CKB_OK;
}

CKB_DEF int ckb_options_help(const ckb_option *options, uint32_t count, const ckb_sink *sink)
{
    ckbi_out out;
    ckbi_out_start(&out, sink);
    for (uint32_t i = 0; i < count; i++) {
        const ckb_option *option = &options[i];
        ckbi_cell_start(&out);
        ckbi_out_text(&out, "  ");
        ckbi_out_char(&out, option->letter != '\0' ? '-' : ' ');
        ckbi_out_char(&out, option->letter != '\0' ? option->letter : ' ');
        ckbi_out_text(&out, option->letter != '\0' ? ", --" : "  --");
        ckbi_out_text(&out, option->name);
        if (option->kind != CKB_OPTION_FLAG) {
            ckbi_out_char(&out, ' ');
            ckbi_out_text(&out, option->unit);
        }
        ckbi_cell_end(&out, -32);
        ckbi_out_text(&out, option->help);
        if (option->kind != CKB_OPTION_FLAG && option->kind != CKB_OPTION_TEXT) {
            ckbi_out_text(&out, " [");
            ckbi_out_text(&out, option->standard != NULL ? option->standard : "none");
            ckbi_out_text(&out, "; ");
            ckbi_out_bounds(&out, option);
            ckbi_out_char(&out, ']');
        }
        ckbi_out_char(&out, '\n');
    }
    return ckbi_out_end(&out);
}

/* --------------------------------------------------------------------------------------------- >>write
 * The workload `write`: threads write chunks of one size into containers of their own. A plan is one point
 * on the axes; a run carries it out: fresh volume, lanes (one per thread) behind a gate, final sync,
 * perhaps verification after a remount. The calling thread supervises: it asks for interrupts, reports
 * progress, and gives the volume its time for maintenance, as any host would. What is the work of this
 * workload alone stands in a ckbi_work; the rest is also that of >>log-workload. */

enum {
    CKBI_WRITE_COUNT,
    CKBI_WRITE_THREADS,
    CKBI_WRITE_SIZE,
    CKBI_WRITE_BLOCK,
    CKBI_WRITE_SYNC,
    CKBI_WRITE_SEGMENT,
    CKBI_WRITE_RATE,
    CKBI_WRITE_DURATION,
    CKBI_WRITE_VERIFY,
    CKBI_WRITE_SHARED,
    CKBI_WRITE_GO_ON,
    CKBI_WRITE_PREFIX,
    CKBI_WRITE_SEED,
    CKBI_WRITE_STALL,
    CKBI_WRITE_BUFFER,
    CKBI_WRITE_OPTIONS
};

#define CKBI_THREADS_MAX 1024
#define CKBI_COUNT_MAX UINT64_C(1000000000000)
#define CKBI_POLICY_ENTRIES_MAX 65536
#define CKBI_DURATION_MAX UINT64_C(3600000000000000) /* 1000 h */

static const ckb_option ckbi_write_options[CKBI_WRITE_OPTIONS] = {
    {"count", 'n', CKB_OPTION_COUNT, false, "COUNT", "100000", 1, CKBI_COUNT_MAX, NULL,
     "chunks per run, over all threads"},
    {"threads", 't', CKB_OPTION_COUNT, true, "LIST", "10", 1, CKBI_THREADS_MAX, NULL,
     "writer threads; one run for each in the list"},
    {"size", 's', CKB_OPTION_SIZE, true, "LIST", "1K", 1, UINT64_C(1) << 30, NULL, "bytes per chunk"},
    {"chunks-per-block", 'c', CKB_OPTION_COUNT, false, "COUNT", "16", 1, UINT64_C(1) << 31, NULL,
     "chunks of one block"},
    {"sync", '\0', CKB_OPTION_CHOICE, true, "LIST", "end", 1, 65536, "none|end|each",
     "when a thread makes its chunks durable: never, at the end, after each, after every N"},
    {"segment", '\0', CKB_OPTION_SIZE, true, "LIST", NULL, 4096, UINT64_C(1) << 33, NULL,
     "bytes per segment; by default the target's choice. Of several, those that do not fit are left out"},
    {"rate", 'r', CKB_OPTION_RATE, false, "RATE", NULL, 1, UINT64_C(1000000000000), NULL,
     "open loop: operations per second, over all threads; latency counts from the intended start"},
    {"duration", '\0', CKB_OPTION_DURATION, false, "TIME", NULL, 1000000, CKBI_DURATION_MAX, NULL,
     "end after this time; without --count the oldest chunks are then overwritten when room ends"},
    {"verify", '\0', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL,
     "mount again after each run and read every chunk back"},
    {"shared", '\0', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL,
     "one writer for all threads, with group commit, instead of one for each"},
    {"go-on", 'f', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL,
     "go on after failures; otherwise the first one ends the run"},
    {"prefix", 'p', CKB_OPTION_TEXT, false, "TEXT", NULL, 0, 64, NULL,
     "a name for the run; its CRC-32C becomes the upper half of the container ids"},
    {"seed", '\0', CKB_OPTION_COUNT, false, "NUMBER", "1", 0, UINT64_MAX, NULL, "of the content"},
    {"stall", '\0', CKB_OPTION_DURATION, false, "TIME", "100ms", 1000, CKBI_DURATION_MAX, NULL,
     "operations that take this long are listed"},
    {"buffer", '\0', CKB_OPTION_SIZE, false, "SIZE", NULL, 4096, UINT64_C(1) << 30, NULL,
     "bytes of each of a writer's two buffers; by default the library's choice"},
};

struct ckbi_run;
struct ckbi_lane;

/* The place of "none", "end" and "each" among the choices of --sync, and two more. */
enum { CKBI_SYNC_NONE, CKBI_SYNC_END, CKBI_SYNC_EACH, CKBI_SYNC_EVERY, CKBI_SYNC_TIMED };

/* One point on the axes. */
typedef struct ckbi_plan {
    const struct ckbi_work *work;
    uint32_t threads;
    uint32_t chunks_per_block;
    uint32_t sync;
    uint32_t sync_every; /* most operations of a thread between two commits; 0: no commits */
    uint64_t sync_interval_ns;
    uint64_t size_bytes;     /* the largest, where sizes vary */
    uint64_t size_min_bytes; /* the smallest */
    uint64_t segment_bytes;  /* 0: the target's choice */
    uint64_t count;          /* operations; UINT64_MAX: only time ends the run */
    uint64_t distinct;       /* ids; less than count: the oldest are overwritten */
    uint64_t rate_milli;     /* 0: closed loop */
    uint64_t duration_ns;    /* 0: no limit */
    uint64_t stall_ns;
    uint64_t container_base;
    size_t buffer_bytes;
    bool verify, shared, go_on;
    bool maintenance_thread; /* otherwise the supervisor does it */
    bool chunk_given;        /* teragen: on the command line */
    uint64_t chunk_bytes;    /* teragen */
    uint64_t hsync_rows;     /* teragen: rows of a mapper between two hsyncs; 0: none */
    uint64_t first_row;      /* of teragen */
    uint32_t ahead;          /* log: segments prepared ahead; 0: nobody prepares any */
    uint32_t prepare;        /* log: as in ckb_bench_need */
    uint64_t purge_behind;   /* log: entries to keep; 0: all */
    uint64_t purge_step;     /* log: entries that one purge drops */
    ckb_bench_need need;
    ckb_geometry geometry;
} ckbi_plan;

/* What differs between kinds of runs. `begin` and `end` may be null. */
typedef struct ckbi_work {
    bool is_log;
    const char *unit; /* of what is written: "chunks" */
    /* Asks the target for its geometry and works out what the run needs there. */
    int (*fit)(const ckb_bench_host *host, ckbi_plan *plan, ckbi_out *out);
    bool (*carve)(struct ckbi_run *run, ckbi_arena *arena);
    void (*begin)(struct ckbi_run *run, ckb_bench_need *need); /* before the volume is mounted */
    int (*open)(struct ckbi_run *run);
    void (*loop)(struct ckbi_lane *lane);
    /* Gives the volume its time. True: there is more to do at once. */
    bool (*maintain)(struct ckbi_run *run);
    void (*final_sync)(struct ckbi_run *run, ckb_bench_result *result);
    void (*merge)(struct ckbi_run *run, ckb_bench_result *result);
    int (*close)(struct ckbi_run *run);
    int (*verify)(struct ckbi_run *run, ckb_bench_result *result); /* mounted again */
    void (*end)(struct ckbi_run *run);
} ckbi_work;

/* The host's clock, guarded: small steps back count as no time, large ones are bridged. */
typedef struct ckbi_clock {
    uint64_t last_ns, skew_ns, steps;
} ckbi_clock;

#define CKBI_CLOCK_STEP_NS 1000000

static uint64_t ckbi_clock_read(ckbi_clock *clock, const ckb_bench_host *host)
{
    uint64_t now_ns = host->now_ns(host->context) + clock->skew_ns;
    if (now_ns < clock->last_ns) {
        clock->steps++;
        if (clock->last_ns - now_ns > CKBI_CLOCK_STEP_NS)
            clock->skew_ns += clock->last_ns - now_ns;
        return clock->last_ns;
    }
    clock->last_ns = now_ns;
    return now_ns;
}

/* An operation that is applied and not yet durable. */
typedef struct ckbi_pending {
    uint64_t begin_ns;
    uint64_t entered_ns; /* log: when the append was called, which an open loop intended earlier */
    uint64_t index;
    uint32_t crc;
    uint32_t length; /* of a log entry */
    bool rolled;     /* it began a segment */
} ckbi_pending;

#define CKBI_BATCH_BYTES 32768u /* chunks made ahead of the clock; they stay in the first cache */
#define CKBI_BATCH_MAX 16u

/* One thread's part of a run. */
typedef struct ckbi_lane {
    struct ckbi_run *run;
    uint32_t number;
    bool self_service; /* no supervisor beside it */
    ckb_writer *writer;
    uint8_t *data; /* room for a batch */
    size_t stride;
    uint64_t share;    /* operations to do */
    uint64_t distinct; /* ids to do them on */
    ckbi_clock clock;
    uint64_t mark_ns; /* end of the last operation: the begin of the next in a closed loop */
    uint64_t start_ns, end_ns;
    uint64_t tried;    /* operations begun; the next index */
    uint64_t done;     /* read by the supervisor */
    uint64_t failures; /* read by the supervisor */
    ckbi_pending *pending;
    uint32_t pending_count;
    ckb_histogram latency, service, durable;
    ckb_histogram rolled, queue, device; /* log; rolled ones are not in durable */
    struct ckbi_mapper *mapper;          /* teragen */
    uint64_t bytes;                      /* log: of the entries appended */
    uint64_t commit_due_ns;              /* log, with a sync interval */
    uint64_t stalls;
    uint32_t stall_count;
    ckb_stall stall[CKB_STALLS_MAX];
    uint8_t spare[64]; /* keeps the hot fields of two lanes out of one cache line */
} ckbi_lane;

/* A bench session: what stays while runs come and go. */
typedef struct ckbi_session {
    const ckb_bench_host *host;
    ckb_bench_report *report;
    ckbi_pattern *pattern;
    ckb_crc32_table *crc32;  /* teragen */
    ckb_stream_use *streams; /* teragen: of all runs, in their order */
    uint64_t stream_count;   /* of those, done */
    ckbi_arena rest;         /* what each run carves anew */
    ckbi_clock clock;
    uint64_t progress_ns; /* of the last progress */
    uint32_t run, run_count;
    bool threaded;
} ckbi_session;

typedef struct ckbi_run {
    ckbi_session *session;
    const ckbi_plan *plan;
    ckb_volume *volume;
    ckbi_lane *lanes;
    uint8_t **writer_memory;
    size_t writer_bytes;
    ckb_reader *reader;
    uint8_t *reader_memory, *read_buffer;
    size_t reader_bytes;
    uint32_t lane_count;
    struct ckbi_bench_log *log;
    uint32_t gate, stop, finished; /* shared between threads */
    uint32_t lanes_joined;         /* shared with the maintenance thread */
    uint64_t gate_ns;
    uint64_t tick_ns;
    ckb_meter meter;
    uint32_t failure_claims;
    int failure_status;
    uint32_t failure_lane;
    ckb_chunk_id failure_id;
    uint64_t failure_entry; /* of a log; 0: none */
    ckb_fault failure_fault;
    const char *failure_action;
} ckbi_run;

static void ckbi_wait(const ckb_bench_host *host, uint64_t duration_ns)
{
    if (host->wait_ns != NULL)
        host->wait_ns(host->context, duration_ns);
}

static ckb_chunk_id ckbi_lane_id(const ckbi_lane *lane, uint64_t index)
{
    const ckbi_plan *plan = lane->run->plan;
    uint64_t place = lane->distinct == 0 ? index : index % lane->distinct;
    ckb_chunk_id id = {plan->container_base + lane->number + 1, place / plan->chunks_per_block,
                       (uint32_t)(place % plan->chunks_per_block)};
    return id;
}

/* The first failure of a run is kept; it ends the run unless --go-on, or when nothing can succeed any more.
 * True: this is the first one, and the caller says what it was about. */
static bool ckbi_run_failed(ckbi_run *run, uint32_t lane, const char *action, int status)
{
    bool first = CKBI_ADD(&run->failure_claims, 1) == 1;
    if (first) {
        ckb_fault first_damage;
        run->failure_status = status;
        run->failure_lane = lane;
        run->failure_action = action;
        ckb_volume_fault(run->volume, &run->failure_fault, &first_damage);
    }
    if (!run->plan->go_on || status == CKB_FAILED || status == CKB_IO || status == CKB_READONLY)
        CKBI_STORE(&run->stop, 1);
    return first;
}

static void ckbi_run_fail(ckbi_run *run, uint32_t lane, const ckb_chunk_id *id, const char *action, int status)
{
    if (ckbi_run_failed(run, lane, action, status))
        run->failure_id = *id;
}

/* Keeps the longest, longest first. */
static void ckbi_stall_insert(ckb_stall *list, uint32_t *count, const ckb_stall *stall)
{
    uint32_t place = *count;
    if (place == CKB_STALLS_MAX) {
        if (list[place - 1].latency_ns >= stall->latency_ns)
            return;
        place--;
    } else {
        (*count)++;
    }
    for (; place > 0 && list[place - 1].latency_ns < stall->latency_ns; place--)
        list[place] = list[place - 1];
    list[place] = *stall;
}

static void ckbi_lane_note_stall(ckbi_lane *lane, uint64_t begin_ns, uint64_t latency_ns)
{
    ckb_stall stall = {begin_ns > lane->run->gate_ns ? begin_ns - lane->run->gate_ns : 0, latency_ns,
                       lane->number};
    if (latency_ns < lane->run->plan->stall_ns)
        return;
    lane->stalls++;
    ckbi_stall_insert(lane->stall, &lane->stall_count, &stall);
}

static void ckbi_lane_note_latency(ckbi_lane *lane, uint64_t begin_ns, uint64_t now_ns)
{
    uint64_t latency_ns = now_ns > begin_ns ? now_ns - begin_ns : 0;
    ckb_histogram_add(&lane->latency, latency_ns);
    ckbi_lane_note_stall(lane, begin_ns, latency_ns);
}

/* Makes durable what is pending and tells who asked to be told. */
static bool ckbi_lane_commit(ckbi_lane *lane)
{
    const ckb_bench_host *host = lane->run->session->host;
    ckb_chunk_id id = ckbi_lane_id(lane, lane->pending[0].index);
    int status = ckb_writer_commit(lane->writer);
    lane->mark_ns = ckbi_clock_read(&lane->clock, host);
    for (uint32_t i = 0; i < lane->pending_count && status == CKB_OK; i++) {
        const ckbi_pending *pending = &lane->pending[i];
        ckb_histogram_add(&lane->durable,
                          lane->mark_ns > pending->begin_ns ? lane->mark_ns - pending->begin_ns : 0);
        if (host->acknowledge == NULL)
            continue;
        id = ckbi_lane_id(lane, pending->index);
        if (host->acknowledge(host->context, &id, (uint32_t)lane->run->plan->size_bytes, pending->crc) !=
            CKB_OK) {
            ckbi_run_fail(lane->run, lane->number, &id, "acknowledgement", CKB_IO);
            return false;
        }
    }
    if (status != CKB_OK) {
        CKBI_STORE(&lane->failures, lane->failures + 1);
        ckbi_run_fail(lane->run, lane->number, &id, "commit", status);
    }
    if (host->acknowledge != NULL)
        lane->mark_ns = ckbi_clock_read(&lane->clock, host);
    lane->pending_count = 0;
    return status == CKB_OK;
}

/* Overwritten chunks give their room back when what replaced them is durable and maintenance was due. */
static int ckbi_lane_write_again(ckbi_lane *lane, const ckb_chunk_id *id, const uint8_t *data)
{
    int status = CKB_NOSPACE;
    for (unsigned attempt = 0; attempt < 4 && status == CKB_NOSPACE; attempt++) {
        int helped = ckb_sync(lane->run->volume);
        if (helped == CKB_OK)
            helped = ckb_maintain(lane->run->volume, 256, NULL);
        if (helped != CKB_OK && helped != CKB_NOSPACE)
            return helped;
        status = ckb_chunk_write(lane->writer, id, data, (size_t)lane->run->plan->size_bytes, CKB_OVERWRITE);
    }
    return status;
}

/* One operation. `intended_ns` is 0 in a closed loop. */
static void ckbi_lane_operate(ckbi_lane *lane, const uint8_t *data, uint64_t intended_ns)
{
    const ckbi_plan *plan = lane->run->plan;
    const ckb_bench_host *host = lane->run->session->host;
    bool overwrites = lane->distinct != 0;
    ckb_chunk_id id = ckbi_lane_id(lane, lane->tried);
    uint64_t begin_ns = intended_ns != 0 ? intended_ns : lane->mark_ns, now_ns;
    int status =
        ckb_chunk_write(lane->writer, &id, data, (size_t)plan->size_bytes, overwrites ? CKB_OVERWRITE : 0);
    if (status == CKB_NOSPACE && overwrites)
        status = ckbi_lane_write_again(lane, &id, data);
    now_ns = ckbi_clock_read(&lane->clock, host);
    lane->tried++;
    if (status != CKB_OK) {
        lane->mark_ns = now_ns;
        CKBI_STORE(&lane->failures, lane->failures + 1);
        ckbi_run_fail(lane->run, lane->number, &id, "write", status);
        return;
    }
    ckbi_lane_note_latency(lane, begin_ns, now_ns);
    if (intended_ns != 0)
        ckb_histogram_add(&lane->service, now_ns > lane->mark_ns ? now_ns - lane->mark_ns : 0);
    lane->mark_ns = now_ns;
    CKBI_STORE(&lane->done, lane->done + 1);
    if (plan->sync_every == 0)
        return;
    lane->pending[lane->pending_count].begin_ns = begin_ns;
    lane->pending[lane->pending_count].index = lane->tried - 1;
    if (host->acknowledge != NULL)
        lane->pending[lane->pending_count].crc = ckb_crc32c(0, data, (size_t)plan->size_bytes);
    if (++lane->pending_count == plan->sync_every)
        ckbi_lane_commit(lane);
}

static uint64_t ckbi_run_done(const ckbi_run *run, uint64_t *failures)
{
    uint64_t done = 0;
    *failures = 0;
    for (uint32_t i = 0; i < run->lane_count; i++) {
        done += CKBI_LOAD(&run->lanes[i].done);
        *failures += CKBI_LOAD(&run->lanes[i].failures);
    }
    return done;
}

static bool ckbi_is_interrupted(ckbi_session *session)
{
    const ckb_bench_host *host = session->host;
    if (host->interrupted != NULL && host->interrupted(host->context))
        session->report->interrupted = true;
    return session->report->interrupted;
}

#define CKBI_TICK_NS 1000000

/* What the supervisor does some hundred times a second. */
static void ckbi_run_tick(ckbi_run *run)
{
    ckbi_session *session = run->session;
    const ckb_bench_host *host = session->host;
    ckb_progress progress;
    run->tick_ns = ckbi_clock_read(&session->clock, host);
    if (ckbi_is_interrupted(session))
        CKBI_STORE(&run->stop, 1);
    if (!run->plan->maintenance_thread || !session->threaded)
        (void)run->plan->work->maintain(run);
    progress.done = ckbi_run_done(run, &progress.failures);
    ckb_meter_mark(&run->meter, run->tick_ns, progress.done - run->meter.count);
    if (host->progress == NULL || run->tick_ns < session->progress_ns + UINT64_C(1000000000))
        return;
    session->progress_ns = run->tick_ns;
    progress.run = session->run;
    progress.run_count = session->run_count;
    progress.total = run->plan->count == UINT64_MAX ? 0 : run->plan->count;
    progress.elapsed_ns = run->tick_ns > run->gate_ns ? run->tick_ns - run->gate_ns : 0;
    progress.rate_per_s = 0.0; /* too early to tell */
    if (progress.elapsed_ns >= 100 * CKBI_TICK_NS)
        progress.rate_per_s = (double)progress.done * 1e9 / (double)progress.elapsed_ns;
    host->progress(host->context, &progress);
}

static void ckbi_lane_serve(ckbi_lane *lane)
{
    if (lane->self_service && lane->mark_ns >= lane->run->tick_ns + CKBI_TICK_NS)
        ckbi_run_tick(lane->run);
}

/* Waits in small pieces, so that a stop wakes it. False: stopped, or the time is over. */
static bool ckbi_lane_wait_until(ckbi_lane *lane, uint64_t due_ns, uint64_t deadline_ns)
{
    const ckb_bench_host *host = lane->run->session->host;
    while (CKBI_LOAD(&lane->run->stop) == 0) {
        uint64_t left_ns;
        lane->mark_ns = ckbi_clock_read(&lane->clock, host);
        if (lane->mark_ns >= deadline_ns)
            return false;
        if (lane->mark_ns >= due_ns)
            return true;
        /* A sleep overshoots by some 60 us; the last piece is spent giving way to others. */
        left_ns = ckbi_min(due_ns, deadline_ns) - lane->mark_ns;
        ckbi_wait(host, left_ns > 200000 ? ckbi_min(left_ns - 100000, 10000000) : 0);
        ckbi_lane_serve(lane);
    }
    return false;
}

static uint64_t ckbi_lane_intended(const ckbi_lane *lane, uint64_t index)
{
    const ckbi_run *run = lane->run;
    double number = (double)index * (double)run->lane_count + (double)lane->number;
    return run->gate_ns + (uint64_t)(number * 1e12 / (double)run->plan->rate_milli);
}

static uint32_t ckbi_lane_make_batch(ckbi_lane *lane)
{
    const ckbi_plan *plan = lane->run->plan;
    uint64_t count = ckbi_max(1, ckbi_min(CKBI_BATCH_MAX, CKBI_BATCH_BYTES / plan->size_bytes));
    count = ckbi_min(count, lane->share - lane->tried);
    for (uint32_t i = 0; i < count; i++)
        ckbi_pattern_fill(lane->run->session->pattern, lane->number, lane->tried + i,
                          lane->data + i * lane->stride, plan->size_bytes);
    return (uint32_t)count;
}

static void ckbi_chunk_loop(ckbi_lane *lane)
{
    ckbi_run *run = lane->run;
    const ckbi_plan *plan = run->plan;
    uint64_t deadline_ns = plan->duration_ns != 0 ? run->gate_ns + plan->duration_ns : UINT64_MAX;
    while (lane->tried < lane->share) {
        uint32_t count = ckbi_lane_make_batch(lane);
        lane->mark_ns = ckbi_clock_read(&lane->clock, run->session->host);
        for (uint32_t i = 0; i < count; i++) {
            uint64_t intended_ns = plan->rate_milli != 0 ? ckbi_lane_intended(lane, lane->tried) : 0;
            if (intended_ns != 0 && !ckbi_lane_wait_until(lane, intended_ns, deadline_ns))
                return;
            if (CKBI_LOAD(&run->stop) != 0 || lane->mark_ns >= deadline_ns)
                return;
            ckbi_lane_operate(lane, lane->data + i * lane->stride, intended_ns);
            ckbi_lane_serve(lane);
        }
    }
}

/* A thread's life. */
static void ckbi_lane_main(void *argument)
{
    ckbi_lane *lane = argument;
    ckbi_run *run = lane->run;
    while (CKBI_LOAD(&run->gate) == 0)
        ckbi_wait(run->session->host, 0);
    lane->start_ns = ckbi_clock_read(&lane->clock, run->session->host);
    lane->mark_ns = lane->start_ns;
    run->plan->work->loop(lane);
    lane->end_ns = lane->mark_ns;
    CKBI_ADD(&run->finished, 1);
}

#define CKBI_MAINTENANCE_PAUSE_NS 200000

/* The life of a thread that does nothing but maintenance: it looks often, since a roll that finds nothing
 * prepared has to wait for it. */
static void ckbi_maintenance_main(void *argument)
{
    ckbi_run *run = argument;
    while (CKBI_LOAD(&run->lanes_joined) == 0)
        if (!run->plan->work->maintain(run))
            ckbi_wait(run->session->host, CKBI_MAINTENANCE_PAUSE_NS);
}

static void ckbi_run_open_gate(ckbi_run *run)
{
    run->gate_ns = ckbi_clock_read(&run->session->clock, run->session->host);
    run->tick_ns = run->gate_ns;
    ckb_meter_start(&run->meter, run->gate_ns);
    CKBI_STORE(&run->gate, 1);
}

/* Starts all, waits for all. CKB_NOSPACE and others: a thread could not be started; none is left running. */
static int ckbi_run_threads(ckbi_run *run)
{
    const ckb_bench_host *host = run->session->host;
    bool maintained = run->plan->maintenance_thread;
    uint32_t started = 0;
    int status = CKB_OK;
    uint64_t pause_ns = CKBI_TICK_NS / 4;
    while (started < run->lane_count && status == CKB_OK) {
        status = host->thread_start(host->context, started, ckbi_lane_main, &run->lanes[started]);
        started += status == CKB_OK;
    }
    if (maintained && status == CKB_OK) {
        status = host->thread_start(host->context, run->lane_count, ckbi_maintenance_main, run);
        maintained = status == CKB_OK;
    }
    if (status != CKB_OK)
        CKBI_STORE(&run->stop, 1);
    ckbi_run_open_gate(run);
    while (CKBI_LOAD(&run->finished) < started) {
        ckbi_wait(host, pause_ns);
        /* Short runs are not kept waiting, long ones are not disturbed. */
        pause_ns = ckbi_min(pause_ns + pause_ns / 8, 10 * CKBI_TICK_NS);
        ckbi_run_tick(run);
    }
    for (uint32_t i = 0; i < started; i++)
        host->thread_join(host->context, i);
    CKBI_STORE(&run->lanes_joined, 1);
    if (maintained && started == run->lane_count)
        host->thread_join(host->context, run->lane_count);
    if (status != CKB_OK) {
        ckbi_message message;
        ckbi_out *out = ckbi_message_start(&message, run->session->report->message, CKB_BENCH_MESSAGE_BYTES);
        ckbi_out_text(out, "only ");
        ckbi_out_number(out, started);
        ckbi_out_text(out, " of ");
        ckbi_out_number(out, run->lane_count + run->plan->maintenance_thread);
        ckbi_out_text(out, " threads could be started");
        ckbi_out_end(out);
    }
    return status;
}

/* Without threads the lanes run one after the other, each in the calling thread. */
static void ckbi_run_inline(ckbi_run *run)
{
    ckbi_run_open_gate(run);
    for (uint32_t i = 0; i < run->lane_count; i++) {
        run->lanes[i].self_service = true;
        ckbi_lane_main(&run->lanes[i]);
    }
}

/* ---- before and after the threads ---- */

static uint64_t ckbi_lane_share(const ckbi_plan *plan, uint64_t whole, uint32_t number)
{
    return whole / plan->threads + (number < whole % plan->threads ? 1 : 0);
}

static uint32_t ckbi_plan_writers(const ckbi_plan *plan)
{
    return plan->shared ? 1 : plan->threads;
}

static bool ckbi_plan_overwrites(const ckbi_plan *plan)
{
    return plan->distinct < plan->count;
}

static ckb_writer_config ckbi_plan_writer(const ckbi_plan *plan)
{
    ckb_writer_config config = {plan->buffer_bytes, 0};
    return config;
}

static void ckbi_carve_histogram(ckbi_arena *arena, const ckb_bench_host *host, ckb_histogram *histogram)
{
    size_t bytes = ckb_histogram_memory(host->histogram_digits);
    void *memory = ckbi_arena_take(arena, bytes, sizeof(uint64_t));
    if (memory != NULL)
        (void)ckb_histogram_init(histogram, host->histogram_digits, memory, bytes);
}

static void ckbi_carve_lane(ckbi_arena *arena, ckbi_run *run, uint32_t number)
{
    const ckbi_plan *plan = run->plan;
    const ckb_bench_host *host = run->session->host;
    ckbi_lane counted, *lane = arena->end != NULL ? &run->lanes[number] : &counted;
    size_t align = (size_t)ckbi_max(plan->geometry.buffer_align, 64);
    size_t batch = (size_t)ckbi_max(1, ckbi_min(CKBI_BATCH_MAX, CKBI_BATCH_BYTES / plan->size_bytes));
    ckbi_fill(lane, 0, sizeof *lane);
    lane->run = run;
    lane->number = number;
    lane->share = plan->count == UINT64_MAX ? UINT64_MAX : ckbi_lane_share(plan, plan->count, number);
    lane->distinct =
        ckbi_plan_overwrites(plan) ? ckbi_max(1, ckbi_lane_share(plan, plan->distinct, number)) : 0;
    lane->stride = (size_t)ckbi_align_up(plan->size_bytes, plan->size_bytes < 4096 ? 64 : align);
    lane->data = ckbi_arena_take(arena, lane->stride * batch, align);
    lane->pending = ckbi_arena_take(arena, plan->sync_every * sizeof(ckbi_pending), sizeof(uint64_t));
    ckbi_carve_histogram(arena, host, &lane->latency);
    if (plan->rate_milli != 0)
        ckbi_carve_histogram(arena, host, &lane->service);
    if (plan->sync_every != 0)
        ckbi_carve_histogram(arena, host, &lane->durable);
}

/* Lays out a run. An arena without memory behind it only counts. */
static bool ckbi_run_carve(ckbi_run *run, ckbi_arena *arena, ckbi_session *session, const ckbi_plan *plan)
{
    ckbi_fill(run, 0, sizeof *run);
    run->session = session;
    run->plan = plan;
    run->lane_count = plan->threads;
    run->lanes = ckbi_arena_take(arena, sizeof(ckbi_lane) * plan->threads, 64);
    if (arena->end != NULL && run->lanes == NULL)
        return false;
    for (uint32_t i = 0; i < plan->threads; i++)
        ckbi_carve_lane(arena, run, i);
    return plan->work->carve(run, arena) && arena->used < SIZE_MAX / 2;
}

static bool ckbi_chunk_carve(ckbi_run *run, ckbi_arena *arena)
{
    const ckbi_plan *plan = run->plan;
    ckb_writer_config config = ckbi_plan_writer(plan);
    uint32_t writers = ckbi_plan_writers(plan);
    run->writer_memory = ckbi_arena_take(arena, sizeof(uint8_t *) * writers, sizeof(void *));
    run->writer_bytes = ckb_writer_memory(&plan->geometry, &config);
    if (run->writer_bytes == 0 || (arena->end != NULL && run->writer_memory == NULL))
        return false;
    for (uint32_t i = 0; i < writers; i++) {
        uint8_t *memory = ckbi_arena_take(arena, run->writer_bytes, 64);
        if (arena->end != NULL)
            run->writer_memory[i] = memory;
    }
    if (plan->verify) {
        run->reader_bytes = ckb_reader_memory(&plan->geometry, 0);
        run->reader_memory = ckbi_arena_take(arena, run->reader_bytes, 64);
        run->read_buffer = ckbi_arena_take(arena, (size_t)plan->size_bytes, 64);
    }
    return true;
}

static int ckbi_chunk_open(ckbi_run *run)
{
    const ckbi_plan *plan = run->plan;
    ckb_writer_config config = ckbi_plan_writer(plan);
    ckb_writer *writer = NULL;
    int status = CKB_OK;
    for (uint32_t i = 0; i < plan->threads && status == CKB_OK; i++)
        status = ckb_container_create(run->volume, plan->container_base + i + 1);
    for (uint32_t i = 0; i < plan->threads && status == CKB_OK; i++) {
        if (i < ckbi_plan_writers(plan))
            status = ckb_writer_open(run->volume, &config, run->writer_memory[i], run->writer_bytes, &writer);
        run->lanes[i].writer = status == CKB_OK ? writer : NULL;
    }
    /* A host that prepares segments ahead does so before the load comes. */
    if (status == CKB_OK)
        (void)ckb_maintain(run->volume, plan->need.prepare_ahead, NULL);
    return status;
}

static int ckbi_chunk_close(ckbi_run *run)
{
    int first = CKB_OK;
    for (uint32_t i = 0; i < ckbi_plan_writers(run->plan); i++) {
        int status = run->lanes[i].writer != NULL ? ckb_writer_close(run->lanes[i].writer) : CKB_OK;
        first = first == CKB_OK ? status : first;
    }
    return first;
}

/* The index that was the last one written to place `place` of a lane. */
static uint64_t ckbi_lane_last_index(const ckbi_lane *lane, uint64_t place)
{
    if (lane->distinct == 0)
        return place;
    return place + (lane->tried - 1 - place) / lane->distinct * lane->distinct;
}

/* How many ids a lane has written. */
static uint64_t ckbi_lane_places(const ckbi_lane *lane)
{
    return lane->distinct == 0 ? lane->tried : ckbi_min(lane->tried, lane->distinct);
}

/* Acknowledges what the final sync made durable. What failed is not in the volume, so the volume is asked. */
static int ckbi_lane_acknowledge_rest(ckbi_lane *lane)
{
    const ckb_bench_host *host = lane->run->session->host;
    const ckbi_plan *plan = lane->run->plan;
    uint64_t from = plan->sync_every != 0 ? lane->tried - lane->pending_count : 0;
    int status = CKB_OK;
    if (plan->sync_every != 0) {
        for (uint32_t i = 0; i < lane->pending_count && status == CKB_OK; i++) {
            ckb_chunk_id id = ckbi_lane_id(lane, lane->pending[i].index);
            status = host->acknowledge(host->context, &id, (uint32_t)plan->size_bytes, lane->pending[i].crc);
        }
        return status;
    }
    for (uint64_t place = from; place < ckbi_lane_places(lane) && status == CKB_OK; place++) {
        uint64_t index = ckbi_lane_last_index(lane, place);
        ckb_chunk_id id = ckbi_lane_id(lane, index);
        ckb_chunk_info info;
        if (ckb_chunk_stat(lane->run->volume, &id, &info) != CKB_OK)
            continue;
        ckbi_pattern_fill(lane->run->session->pattern, lane->number, index, lane->data, plan->size_bytes);
        status = host->acknowledge(host->context, &id, (uint32_t)plan->size_bytes,
                                   ckb_crc32c(0, lane->data, (size_t)plan->size_bytes));
    }
    return status;
}

static void ckbi_chunk_final_sync(ckbi_run *run, ckb_bench_result *result)
{
    ckbi_session *session = run->session;
    uint64_t begin_ns = ckbi_clock_read(&session->clock, session->host), end_ns;
    ckb_chunk_id id = {0, 0, 0};
    int status = CKB_OK;
    if (run->plan->sync == CKBI_SYNC_NONE)
        return;
    status = ckb_sync(run->volume);
    end_ns = ckbi_clock_read(&session->clock, session->host);
    result->sync_ns = end_ns - begin_ns;
    if (status != CKB_OK)
        ckbi_run_fail(run, 0, &id, "final sync", status);
    for (uint32_t i = 0; i < run->lane_count && status == CKB_OK; i++) {
        ckbi_lane *lane = &run->lanes[i];
        for (uint32_t k = 0; k < lane->pending_count; k++)
            ckb_histogram_add(&lane->durable,
                              end_ns > lane->pending[k].begin_ns ? end_ns - lane->pending[k].begin_ns : 0);
        if (session->host->acknowledge != NULL)
            status = ckbi_lane_acknowledge_rest(lane);
        if (status != CKB_OK)
            ckbi_run_fail(run, i, &id, "acknowledgement", status);
    }
}

/* Reads a lane's chunks back. What is missing may be what failed, but not more. */
static void ckbi_lane_verify(ckbi_lane *lane, ckb_bench_result *result)
{
    ckbi_run *run = lane->run;
    size_t size = (size_t)run->plan->size_bytes;
    uint64_t excused = lane->failures;
    for (uint64_t place = 0; place < ckbi_lane_places(lane) && !run->session->report->interrupted; place++) {
        uint64_t index = ckbi_lane_last_index(lane, place);
        ckb_chunk_id id = ckbi_lane_id(lane, index);
        size_t got = 0;
        int status = ckb_chunk_read(run->reader, &id, 0, run->read_buffer, size, &got);
        ckbi_pattern_fill(run->session->pattern, lane->number, index, lane->data, size);
        if (status == CKB_OK && got == size && ckbi_compare(run->read_buffer, lane->data, size) == 0) {
            result->verified++;
        } else if (excused != 0 && (status == CKB_NOTFOUND || (status == CKB_OK && lane->distinct != 0))) {
            excused--;
        } else {
            result->verify_failures++;
            ckbi_run_fail(run, lane->number, &id, "verify", status == CKB_OK ? CKB_CORRUPT : status);
        }
        if ((place & 1023) == 0)
            (void)ckbi_is_interrupted(run->session);
    }
}

static int ckbi_chunk_verify(ckbi_run *run, ckb_bench_result *result)
{
    int status = ckb_reader_open(run->volume, run->reader_memory, run->reader_bytes, &run->reader);
    for (uint32_t i = 0; i < run->lane_count && status == CKB_OK; i++)
        ckbi_lane_verify(&run->lanes[i], result);
    return status;
}

static bool ckbi_chunk_maintain(ckbi_run *run)
{
    (void)ckb_maintain(run->volume, 16, NULL); /* what fails here is met again by a writer */
    return false;
}

static void ckbi_chunk_merge(ckbi_run *run, ckb_bench_result *result)
{
    result->bytes = result->operations * run->plan->size_bytes;
}

/* ---- what all runs have in common */

/* Mounts again and compares what is there with what was written. */
static int ckbi_run_verify(ckbi_run *run, ckb_bench_result *result)
{
    const ckb_bench_target *target = run->session->host->target;
    int status = target->remount(target->context, &run->volume, &run->failure_fault);
    if (status != CKB_OK) {
        run->volume = NULL;
        run->failure_claims = 1;
        run->failure_status = status;
        run->failure_action = "remount";
        return status;
    }
    status = run->plan->work->verify(run, result);
    result->verify_done = status == CKB_OK && !run->session->report->interrupted;
    return status;
}

static void ckbi_result_axes(ckb_bench_result *result, const ckbi_plan *plan)
{
    ckbi_fill(result, 0, sizeof *result);
    result->threads = plan->threads;
    result->chunks_per_block = plan->chunks_per_block;
    result->size_bytes = plan->size_bytes;
    result->size_min_bytes = plan->size_min_bytes;
    result->segment_bytes = plan->geometry.segment_bytes;
    result->sync = plan->sync;
    result->sync_every = plan->sync_every;
    result->sync_interval_ns = plan->sync_interval_ns;
    result->rate_limit_milli = plan->rate_milli;
    result->shared = plan->shared;
    result->is_log = plan->work->is_log;
    result->is_teragen = plan->chunk_bytes != 0;
    result->teragen.rows = result->is_teragen ? plan->count : 0;
    result->teragen.chunk_bytes = plan->chunk_bytes;
    result->log.ahead = plan->ahead;
    result->log.prepare = plan->prepare;
}

/* Merges the lanes, into the first one's histograms. */
static void ckbi_run_merge(ckbi_run *run, ckb_bench_result *result)
{
    uint64_t start_ns = UINT64_MAX, end_ns = 0;
    ckbi_lane *first = &run->lanes[0];
    result->slowest_thread_operations = UINT64_MAX;
    for (uint32_t i = 0; i < run->lane_count; i++) {
        const ckbi_lane *lane = &run->lanes[i];
        start_ns = ckbi_min(start_ns, lane->start_ns);
        end_ns = ckbi_max(end_ns, lane->end_ns);
        result->operations += lane->done;
        result->failures += lane->failures;
        result->clock_steps += lane->clock.steps;
        result->stalls += lane->stalls;
        result->slowest_thread_operations = ckbi_min(result->slowest_thread_operations, lane->done);
        result->fastest_thread_operations = ckbi_max(result->fastest_thread_operations, lane->done);
        for (uint32_t k = 0; k < lane->stall_count; k++)
            ckbi_stall_insert(result->stall, &result->stall_count, &lane->stall[k]);
        if (i == 0)
            continue;
        (void)ckb_histogram_merge(&first->latency, &lane->latency);
        (void)ckb_histogram_merge(&first->service, &lane->service);
        (void)ckb_histogram_merge(&first->durable, &lane->durable);
    }
    result->elapsed_ns = end_ns > start_ns ? end_ns - start_ns : 0;
    ckb_meter_mark(&run->meter, end_ns, result->operations - run->meter.count);
    result->mean_rate = ckb_meter_rates(&run->meter, end_ns, result->rates);
    ckb_histogram_latency(&first->latency, &result->latency);
    ckb_histogram_latency(&first->service, &result->service_latency);
    ckb_histogram_latency(&first->durable, &result->durable_latency);
    run->plan->work->merge(run, result);
}

/* "thread 3: write of container 4 block 0 chunk 2: no space: segment ..." */
static void ckbi_run_explain(const ckbi_run *run)
{
    ckb_bench_report *report = run->session->report;
    ckbi_message message;
    ckbi_out *out;
    char fault[160];
    if (report->message[0] != '\0')
        return;
    out = ckbi_message_start(&message, report->message, CKB_BENCH_MESSAGE_BYTES);
    if (run->failure_id.container != 0) {
        ckbi_out_text(out, "thread ");
        ckbi_out_number(out, run->failure_lane);
        ckbi_out_text(out, ", container ");
        ckbi_out_number(out, run->failure_id.container);
        ckbi_out_text(out, " block ");
        ckbi_out_number(out, run->failure_id.block);
        ckbi_out_text(out, " chunk ");
        ckbi_out_number(out, run->failure_id.chunk);
        ckbi_out_text(out, ": ");
    } else if (run->failure_entry != 0) {
        ckbi_out_text(out, "thread ");
        ckbi_out_number(out, run->failure_lane);
        ckbi_out_text(out, ", entry ");
        ckbi_out_number(out, run->failure_entry);
        ckbi_out_text(out, ": ");
    }
    ckbi_out_text(out, run->failure_action);
    ckbi_out_text(out, ": ");
    ckbi_out_text(out, ckb_status_text(run->failure_status));
    if (run->failure_fault.status != CKB_OK) {
        ckb_fault_text(&run->failure_fault, fault, sizeof fault);
        ckbi_out_text(out, ": ");
        ckbi_out_text(out, fault);
    }
    ckbi_out_end(out);
}

/* Settles what a finished run means for the report. */
static int ckbi_run_settle(ckbi_run *run, ckb_bench_result *result, int status)
{
    ckb_bench_report *report = run->session->report;
    if (run->failure_claims != 0) {
        report->failed = true;
        ckbi_run_explain(run);
        if (status == CKB_OK && (!run->plan->go_on || run->stop != 0))
            status = run->failure_status;
    }
    result->finished = status == CKB_OK && !report->interrupted;
    return status;
}

static int ckbi_run_report(ckbi_session *session, const char *action, int status, const ckb_fault *fault)
{
    ckbi_run stub;
    if (session->report->message[0] != '\0')
        return status;
    ckbi_fill(&stub, 0, sizeof stub);
    stub.session = session;
    stub.failure_action = action;
    stub.failure_status = status;
    if (fault != NULL)
        stub.failure_fault = *fault;
    ckbi_run_explain(&stub);
    return status;
}

/* One run from fresh volume to result. */
static int ckbi_run_execute(ckbi_session *session, const ckbi_plan *plan, ckb_bench_result *result)
{
    const ckb_bench_target *target = session->host->target;
    ckbi_arena arena = session->rest;
    ckbi_run run;
    ckb_bench_need need = plan->need;
    ckb_fault fault = {0};
    int status, closed;
    ckbi_result_axes(result, plan);
    if (!ckbi_run_carve(&run, &arena, session, plan))
        return ckbi_run_report(session, "memory", CKB_INVALID, NULL);
    if (plan->work->begin != NULL)
        plan->work->begin(&run, &need);
    status = target->fresh(target->context, &need, &run.volume, &fault);
    if (status != CKB_OK)
        return ckbi_run_report(session, "fresh volume", status, &fault);
    status = plan->work->open(&run);
    if (status != CKB_OK)
        ckbi_run_report(session, "preparing the run", status, &run.failure_fault);
    else if (session->threaded)
        status = ckbi_run_threads(&run);
    else
        ckbi_run_inline(&run);
    if (status == CKB_OK) {
        if (run.failure_status != CKB_FAILED && run.failure_status != CKB_IO)
            plan->work->final_sync(&run, result);
        ckbi_run_merge(&run, result);
    }
    closed = plan->work->close(&run);
    if (closed != CKB_OK && status == CKB_OK && run.failure_claims == 0)
        (void)ckbi_run_failed(&run, 0, "closing", closed);
    if (plan->verify && status == CKB_OK && run.stop == 0)
        status = ckbi_run_verify(&run, result);
    status = ckbi_run_settle(&run, result, status);
    closed = target->done(target->context);
    if (closed != CKB_OK && status == CKB_OK)
        status = ckbi_run_report(session, "unmount", closed, NULL);
    if (plan->work->end != NULL)
        plan->work->end(&run);
    return status;
}

/* ---- from options to plans ---- */

#define CKBI_ROWS_MAX 1024
#define CKBI_RECYCLED_CHUNKS_MAX 4000000 /* ids of a run that only time ends: 150 MB of index */

static uint64_t ckbi_value_or(const ckb_option_value *value, uint32_t place, uint64_t otherwise)
{
    return place < value->count ? value->number[place] : otherwise;
}

static uint32_t ckbi_value_axis(const ckb_option_value *value)
{
    return value->count == 0 ? 1 : value->count;
}

static uint64_t ckbi_write_rows(const ckb_option_value *values)
{
    return (uint64_t)ckbi_value_axis(&values[CKBI_WRITE_THREADS]) * ckbi_value_axis(&values[CKBI_WRITE_SIZE]) *
           ckbi_value_axis(&values[CKBI_WRITE_SYNC]) * ckbi_value_axis(&values[CKBI_WRITE_SEGMENT]);
}

static void ckbi_plan_sync(ckbi_plan *plan, const ckb_option_value *value, uint32_t place)
{
    plan->sync = value->chosen[place] ? (uint32_t)value->number[place] : CKBI_SYNC_EVERY;
    plan->sync_every =
        plan->sync == CKBI_SYNC_EVERY ? (uint32_t)value->number[place] : plan->sync == CKBI_SYNC_EACH;
}

/* What a chunk takes on the medium, its share of summaries and of the padding of commits included. */
static uint64_t ckbi_plan_chunk_cost(const ckbi_plan *plan)
{
    uint64_t unit = plan->geometry.write_unit,
             windows = (plan->size_bytes + CKB_WINDOW_BYTES - 1) / CKB_WINDOW_BYTES;
    uint64_t cost = ckbi_align_up(plan->size_bytes + 4 * windows + 72, 8);
    cost += plan->size_bytes >= CKB_WINDOW_BYTES ? unit : 0;
    if (plan->sync_every != 0)
        cost = (ckbi_align_up(cost * plan->sync_every + 24, unit) + plan->sync_every - 1) / plan->sync_every;
    return cost;
}

static uint64_t ckbi_plan_chunks_per_segment(const ckbi_plan *plan)
{
    uint64_t overhead = 4 * (uint64_t)plan->geometry.write_unit + 512;
    uint64_t usable = plan->geometry.segment_bytes > overhead ? plan->geometry.segment_bytes - overhead : 0;
    return ckbi_max(1, usable / ckbi_plan_chunk_cost(plan));
}

static int ckbi_refuse_chunk(const ckbi_plan *plan, ckbi_out *out)
{
    ckbi_out_text(out, "--size: ");
    ckbi_out_number(out, plan->size_bytes);
    ckbi_out_text(out, " bytes; segments of ");
    ckbi_out_number(out, plan->geometry.segment_bytes);
    ckbi_out_text(out, " bytes hold chunks of up to ");
    ckbi_out_number(out, ckb_max_chunk_bytes(&plan->geometry));
    ckbi_out_end(out);
    return CKB_INVALID;
}

static int ckbi_refuse_room(const ckb_bench_host *host, const ckbi_plan *plan, uint64_t room_bytes,
                            ckbi_out *out)
{
    if (plan->count != UINT64_MAX) {
        ckbi_out_number(out, plan->count);
        ckbi_out_text(out, " chunks of ");
        ckbi_out_size(out, plan->size_bytes);
        ckbi_out_text(out, " and ");
    }
    ckbi_out_number(out, ckbi_plan_writers(plan));
    ckbi_out_text(out, " writers need ");
    ckbi_out_size(out, plan->need.data_bytes);
    ckbi_out_text(out, " in segments of ");
    ckbi_out_size(out, plan->geometry.segment_bytes);
    ckbi_out_text(out, "; ");
    ckbi_out_text(out, host->target->name);
    ckbi_out_text(out, " has room for ");
    ckbi_out_size(out, room_bytes);
    ckbi_out_end(out);
    return CKB_NOSPACE;
}

/* Asks the target for the geometry of the plan's need. */
static int ckbi_plan_describe(const ckb_bench_host *host, ckbi_plan *plan, uint64_t *room_bytes, ckbi_out *out)
{
    const ckb_bench_target *target = host->target;
    int status = target->describe(target->context, &plan->need, &plan->geometry, room_bytes);
    if (status != CKB_OK) {
        bool explained = target->error != NULL && target->error[0] != '\0';
        ckbi_out_text(out, explained ? target->error : ckb_status_text(status));
        ckbi_out_end(out);
    }
    return status;
}

static int ckbi_chunk_fit(const ckb_bench_host *host, ckbi_plan *plan, ckbi_out *out)
{
    ckb_bench_need *need = &plan->need;
    uint64_t room_bytes = 0, writers = ckbi_plan_writers(plan), per_segment, spare, segments;
    int status;
    ckbi_fill(need, 0, sizeof *need);
    need->segment_bytes = plan->segment_bytes;
    need->max_containers = plan->threads;
    need->max_writers = (uint32_t)writers;
    need->prepare_ahead = (uint32_t)ckbi_min(writers + 1, 16);
    status = ckbi_plan_describe(host, plan, &room_bytes, out);
    if (status != CKB_OK)
        return status;
    if (plan->size_bytes > ckb_max_chunk_bytes(&plan->geometry))
        return ckbi_refuse_chunk(plan, out);
    per_segment = ckbi_plan_chunks_per_segment(plan);
    /* Two for the journal, two kept back, some prepared; one begun by each writer comes on top. */
    spare = 4 + need->prepare_ahead;
    segments = room_bytes / plan->geometry.segment_bytes;
    if (plan->count == UINT64_MAX && segments > spare + 4 * writers)
        plan->distinct =
            ckbi_max(plan->threads, ckbi_min(CKBI_RECYCLED_CHUNKS_MAX, (segments - spare) / 2 * per_segment));
    else if (plan->count == UINT64_MAX)
        plan->distinct = plan->threads * per_segment * 2;
    need->max_chunks = plan->distinct;
    segments = plan->distinct / per_segment + writers + spare;
    need->data_bytes = segments * plan->geometry.segment_bytes;
    if (need->data_bytes > room_bytes)
        return ckbi_refuse_room(host, plan, room_bytes, out);
    return CKB_OK;
}

static const ckbi_work ckbi_chunk_work = {
    false,
    "chunks",
    ckbi_chunk_fit,
    ckbi_chunk_carve,
    NULL,
    ckbi_chunk_open,
    ckbi_chunk_loop,
    ckbi_chunk_maintain,
    ckbi_chunk_final_sync,
    ckbi_chunk_merge,
    ckbi_chunk_close,
    ckbi_chunk_verify,
    NULL,
};

/* Row `place` of a sweep; threads vary fastest, so that they stand below each other. */
static void ckbi_write_plan(const ckb_option_value *values, uint32_t place, ckbi_plan *plan)
{
    uint32_t threads = ckbi_value_axis(&values[CKBI_WRITE_THREADS]);
    uint32_t sizes = ckbi_value_axis(&values[CKBI_WRITE_SIZE]);
    uint32_t syncs = ckbi_value_axis(&values[CKBI_WRITE_SYNC]);
    bool timed = values[CKBI_WRITE_DURATION].given && !values[CKBI_WRITE_COUNT].given;
    const char *prefix = values[CKBI_WRITE_PREFIX].text;
    ckbi_fill(plan, 0, sizeof *plan);
    plan->work = &ckbi_chunk_work;
    plan->threads = (uint32_t)values[CKBI_WRITE_THREADS].number[place % threads];
    plan->size_bytes = values[CKBI_WRITE_SIZE].number[place / threads % sizes];
    plan->size_min_bytes = plan->size_bytes;
    ckbi_plan_sync(plan, &values[CKBI_WRITE_SYNC], place / threads / sizes % syncs);
    plan->segment_bytes = ckbi_value_or(&values[CKBI_WRITE_SEGMENT], place / threads / sizes / syncs, 0);
    plan->chunks_per_block = (uint32_t)values[CKBI_WRITE_BLOCK].number[0];
    plan->count = timed ? UINT64_MAX : values[CKBI_WRITE_COUNT].number[0];
    plan->distinct = plan->count;
    plan->rate_milli = ckbi_value_or(&values[CKBI_WRITE_RATE], 0, 0);
    plan->duration_ns = ckbi_value_or(&values[CKBI_WRITE_DURATION], 0, 0);
    plan->stall_ns = values[CKBI_WRITE_STALL].number[0];
    plan->buffer_bytes = (size_t)ckbi_value_or(&values[CKBI_WRITE_BUFFER], 0, 0);
    plan->verify = values[CKBI_WRITE_VERIFY].count != 0;
    plan->shared = values[CKBI_WRITE_SHARED].count != 0;
    plan->go_on = values[CKBI_WRITE_GO_ON].count != 0;
    if (prefix != NULL && prefix[0] != '\0')
        plan->container_base = (uint64_t)ckb_crc32c(0, prefix, ckbi_span_of(prefix).bytes) << 32;
}

static bool ckbi_host_is_threaded(const ckb_bench_host *host)
{
#ifdef CKB_THREADS
    return host->thread_start != NULL && host->thread_join != NULL && host->thread_number != NULL;
#else
    (void)host;
    return false;
#endif
}

static int ckbi_threads_check(const ckb_bench_host *host, const ckb_option_value *threads, ckbi_out *out)
{
    for (uint32_t i = 0; i < threads->count; i++)
        if (threads->number[i] > 1 && !ckbi_host_is_threaded(host))
            return ckbi_refuse(out, ckbi_span_of("1"), "--threads: this host has no threads; only ",
                               " is possible");
    return CKB_OK;
}

static int ckbi_rows_check(const ckb_bench_host *host, uint64_t rows, const ckb_option_value *threads,
                           ckbi_out *out)
{
    if (rows <= CKBI_ROWS_MAX)
        return ckbi_threads_check(host, threads, out);
    ckbi_out_text(out, "the lists make ");
    ckbi_out_number(out, rows);
    ckbi_out_text(out, " runs; at most 1024 are possible");
    ckbi_out_end(out);
    return CKB_INVALID;
}

static int ckbi_write_check(const ckb_bench_host *host, const ckb_option_value *values, ckbi_out *out)
{
    for (uint32_t i = 0; i < values[CKBI_WRITE_SYNC].count; i++)
        if (host->acknowledge != NULL && values[CKBI_WRITE_SYNC].chosen[i] &&
            values[CKBI_WRITE_SYNC].number[i] == CKBI_SYNC_NONE)
            return ckbi_refuse(out, ckbi_span_of("none"),
                               "--sync: ", " makes nothing durable that could be acknowledged");
    return ckbi_rows_check(host, ckbi_write_rows(values), &values[CKBI_WRITE_THREADS], out);
}

/* --------------------------------------------------------------------------------------------- >>log-workload
 * The workload `log`: threads append to one log and make their entries durable together. Which segment size,
 * which sync policy? A medium that measures lies over the target's, so that an append's wait can be split:
 * device wait is its share of the write and sync that made it durable, queue wait is the rest. The calling
 * thread's role tells the medium what its calls are for.
 *
 * What an entry holds, and how long it is, follows from seed and index alone. With several threads the index
 * is only known when it is an entry's turn: they take turns at a lock around the append, as they would at
 * the log's own. */

enum {
    CKBI_BENCH_LOG_COUNT,
    CKBI_BENCH_LOG_THREADS,
    CKBI_BENCH_LOG_SIZE,
    CKBI_BENCH_LOG_SYNC,
    CKBI_BENCH_LOG_SEGMENT,
    CKBI_BENCH_LOG_AHEAD,
    CKBI_BENCH_LOG_PREPARE,
    CKBI_BENCH_LOG_RATE,
    CKBI_BENCH_LOG_DURATION,
    CKBI_BENCH_LOG_PURGE_BEHIND,
    CKBI_BENCH_LOG_VERIFY,
    CKBI_BENCH_LOG_GO_ON,
    CKBI_BENCH_LOG_SEED,
    CKBI_BENCH_LOG_STALL,
    CKBI_BENCH_LOG_BUFFER,
    CKBI_BENCH_LOG_OPTIONS
};

static const ckb_option ckbi_bench_log_options[CKBI_BENCH_LOG_OPTIONS] = {
    {"count", 'n', CKB_OPTION_COUNT, false, "COUNT", "50000", 1, CKBI_COUNT_MAX, NULL,
     "entries per run, over all threads"},
    {"threads", 't', CKB_OPTION_COUNT, true, "LIST", "1", 1, CKBI_THREADS_MAX, NULL,
     "appending threads; one run for each in the list"},
    {"size", 's', CKB_OPTION_SPAN, true, "LIST", "256", 1, UINT64_C(1) << 30, NULL,
     "bytes per entry; 64-4K: any size from the one to the other"},
    {"sync", '\0', CKB_OPTION_POLICY, true, "LIST", "each", 1, CKBI_POLICY_ENTRIES_MAX, "none|each",
     "when a thread makes its entries durable: never, each at once, every N, or every 10ms"},
    {"segment", '\0', CKB_OPTION_SIZE, true, "LIST", NULL, 4096, UINT64_C(1) << 33, NULL,
     "bytes per segment; by default the target's choice. Of several, those that do not fit are left out"},
    {"ahead", '\0', CKB_OPTION_COUNT, true, "LIST", "4", 0, 1024, NULL,
     "segments that a maintenance thread prepares ahead; 0: none does, each roll pays"},
    {"prepare", '\0', CKB_OPTION_CHOICE, true, "LIST", NULL, 0, 0, "none|reserve|zero",
     "how a directory gives a segment its space: not before it is written, reserved, zeros written"},
    {"rate", 'r', CKB_OPTION_RATE, false, "RATE", NULL, 1, UINT64_C(1000000000000), NULL,
     "open loop: appends per second, over all threads; latency counts from the intended start"},
    {"duration", '\0', CKB_OPTION_DURATION, false, "TIME", NULL, 1000000, CKBI_DURATION_MAX, NULL,
     "end after this time; without --count the oldest entries are purged so that room does not end"},
    {"purge-behind", '\0', CKB_OPTION_COUNT, false, "COUNT", NULL, 1, CKBI_COUNT_MAX, NULL,
     "keep this many entries and purge the older ones beside the appends"},
    {"verify", '\0', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL,
     "mount again after each run and read every entry back"},
    {"go-on", 'f', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL,
     "go on after failures; otherwise the first one ends the run"},
    {"seed", '\0', CKB_OPTION_COUNT, false, "NUMBER", "1", 0, UINT64_MAX, NULL, "of the content"},
    {"stall", '\0', CKB_OPTION_DURATION, false, "TIME", "100ms", 1000, CKBI_DURATION_MAX, NULL,
     "appends that take this long are listed"},
    {"buffer", '\0', CKB_OPTION_SIZE, false, "SIZE", NULL, 4096, UINT64_C(1) << 30, NULL,
     "bytes of each of the log's two buffers; by default the library's choice"},
};

#define CKBI_BENCH_LOG_NAME "bench"
#define CKBI_BENCH_LOG_TERM 1

/* ---- the medium that measures */

/* What a thread is doing when it calls the medium. */
enum { CKBI_ROLE_OTHER, CKBI_ROLE_APPEND, CKBI_ROLE_COMMIT, CKBI_ROLE_MAINTENANCE, CKBI_ROLE_COUNT };

typedef struct ckbi_watch_caller {
    uint32_t role;
    uint64_t begin_ns; /* of the first call of the medium since the role was taken; 0: none yet */
} ckbi_watch_caller;

/* The write and sync of one commit. */
typedef struct ckbi_watch_group {
    uint64_t begin_ns, end_ns;
} ckbi_watch_group;

#define CKBI_WATCH_GROUPS 64u /* commits that may end before a thread that waited for an older one wakes up */

typedef struct ckbi_watch {
    ckb_medium below;
    const ckb_bench_host *host;
    ckbi_watch_caller *callers; /* by the number of the thread */
    CKB_MUTEX lock;
    ckb_medium_use use[CKBI_ROLE_COUNT];
    uint64_t group_count; /* ever; the newest CKBI_WATCH_GROUPS are in `groups` */
    ckbi_watch_group groups[CKBI_WATCH_GROUPS];
} ckbi_watch;

static uint64_t ckbi_watch_now(const ckbi_watch *watch)
{
    return watch->host->now_ns(watch->host->context);
}

static ckbi_watch_caller *ckbi_watch_this(const ckbi_watch *watch)
{
    const ckb_bench_host *host = watch->host;
    return &watch->callers[host->thread_number != NULL ? host->thread_number(host->context) : 0];
}

static void ckbi_watch_as(const ckbi_watch *watch, uint32_t role)
{
    ckbi_watch_caller *caller = ckbi_watch_this(watch);
    caller->role = role;
    caller->begin_ns = 0;
}

static uint64_t ckbi_watch_begin(const ckbi_watch *watch, ckbi_watch_caller *caller)
{
    uint64_t now_ns = ckbi_watch_now(watch);
    if (caller->begin_ns == 0)
        caller->begin_ns = now_ns;
    return now_ns;
}

static uint64_t ckbi_since(uint64_t begin_ns, uint64_t end_ns)
{
    return end_ns > begin_ns ? end_ns - begin_ns : 0;
}

static int ckbi_watch_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    const ckbi_watch *watch = context;
    return watch->below.read(watch->below.context, segment, offset, buffer, length);
}

static int ckbi_watch_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    ckbi_watch *watch = context;
    ckbi_watch_caller *caller = ckbi_watch_this(watch);
    ckb_medium_use *use = &watch->use[caller->role];
    uint64_t begin_ns = ckbi_watch_begin(watch, caller), end_ns;
    int status = watch->below.write(watch->below.context, segment, offset, buffer, length);
    end_ns = ckbi_watch_now(watch);
    CKB_MUTEX_LOCK(&watch->lock);
    use->writes++;
    use->write_bytes += length;
    use->write_ns += ckbi_since(begin_ns, end_ns);
    CKB_MUTEX_UNLOCK(&watch->lock);
    return status;
}

static int ckbi_watch_erase(void *context, uint32_t segment)
{
    ckbi_watch *watch = context;
    ckbi_watch_caller *caller = ckbi_watch_this(watch);
    ckb_medium_use *use = &watch->use[caller->role];
    uint64_t begin_ns = ckbi_watch_begin(watch, caller), end_ns;
    int status = watch->below.erase(watch->below.context, segment);
    end_ns = ckbi_watch_now(watch);
    CKB_MUTEX_LOCK(&watch->lock);
    use->erases++;
    use->erase_ns += ckbi_since(begin_ns, end_ns);
    CKB_MUTEX_UNLOCK(&watch->lock);
    return status;
}

/* The sync of a commit ends a group, and those who wait for it find that before they are told. */
static int ckbi_watch_sync(void *context, uint32_t segment)
{
    ckbi_watch *watch = context;
    ckbi_watch_caller *caller = ckbi_watch_this(watch);
    ckb_medium_use *use = &watch->use[caller->role];
    uint64_t begin_ns = ckbi_watch_begin(watch, caller), end_ns;
    int status = watch->below.sync(watch->below.context, segment);
    end_ns = ckbi_watch_now(watch);
    CKB_MUTEX_LOCK(&watch->lock);
    use->syncs++;
    use->sync_ns += ckbi_since(begin_ns, end_ns);
    if (caller->role == CKBI_ROLE_COMMIT) {
        ckbi_watch_group group = {caller->begin_ns, end_ns};
        watch->groups[watch->group_count++ % CKBI_WATCH_GROUPS] = group;
    }
    CKB_MUTEX_UNLOCK(&watch->lock);
    return status;
}

/* The hook of ckb_bench_need. */
static void ckbi_watch_wrap(void *context, ckb_medium *medium)
{
    ckbi_watch *watch = context;
    watch->below = *medium;
    medium->context = watch;
    medium->read = ckbi_watch_read;
    medium->write = ckbi_watch_write;
    medium->erase = ckbi_watch_erase;
    medium->sync = ckbi_watch_sync;
}

static void ckbi_watch_reset(ckbi_watch *watch)
{
    CKB_MUTEX_LOCK(&watch->lock);
    ckbi_fill(watch->use, 0, sizeof watch->use);
    watch->group_count = 0;
    CKB_MUTEX_UNLOCK(&watch->lock);
}

/* The group that made durable what was appended from `begin_ns` on, for a commit that returned at `end_ns`: the
 * first that began after that. False: none is known, as when the entry was durable before anyone asked. */
static bool ckbi_watch_find(ckbi_watch *watch, uint64_t begin_ns, uint64_t end_ns, ckbi_watch_group *found)
{
    bool any = false;
    CKB_MUTEX_LOCK(&watch->lock);
    for (uint64_t i = watch->group_count; i > 0 && i + CKBI_WATCH_GROUPS > watch->group_count; i--) {
        const ckbi_watch_group *group = &watch->groups[(i - 1) % CKBI_WATCH_GROUPS];
        if (group->begin_ns < begin_ns)
            break;
        if (group->end_ns > end_ns)
            continue;
        *found = *group;
        any = true;
    }
    CKB_MUTEX_UNLOCK(&watch->lock);
    return any;
}

/* ---- a run's log */

typedef struct ckbi_bench_log {
    ckb_log *log;
    uint8_t *memory, *cursor_memory, *read_buffer, *expected;
    size_t memory_bytes, cursor_bytes;
    ckbi_watch *watch;
    ckbi_watch_caller *callers; /* the one that runs all, the lanes, and maintenance */
    CKB_MUTEX append_lock;      /* guards what follows */
    uint64_t next_index;        /* that the next append gets; read by the maintenance thread */
    uint64_t rolls;             /* seen by the last append */
    uint64_t purged_at;         /* next_index at the last purge; of the maintenance thread */
    uint64_t begin_ns;          /* begin of what watch and disk count */
    bool disk_known;
    char disk_name[CKB_DISK_TEXT_BYTES];
    uint64_t disk[CKB_DISK_COUNTER_COUNT];
} ckbi_bench_log;

static uint32_t ckbi_bench_entry_length(const ckbi_run *run, uint64_t index)
{
    const ckbi_plan *plan = run->plan;
    uint64_t sizes = plan->size_bytes - plan->size_min_bytes + 1;
    uint64_t random = sizes == 1 ? 0 : ckbi_mix(run->session->pattern->seed + ckbi_mix(index));
    return (uint32_t)(plan->size_min_bytes + random % sizes);
}

static uint32_t ckbi_bench_entry_make(const ckbi_run *run, uint64_t index, uint8_t *data)
{
    uint32_t length = ckbi_bench_entry_length(run, index);
    ckbi_pattern_fill(run->session->pattern, 0, index, data, length);
    return length;
}

static void ckbi_bench_entry_fail(ckbi_run *run, uint32_t lane, uint64_t index, const char *action, int status)
{
    if (ckbi_run_failed(run, lane, action, status))
        run->failure_entry = index;
}

/* Splits the wait of an entry that became durable. */
static void ckbi_lane_note_waits(ckbi_lane *lane, uint64_t begin_ns, uint64_t end_ns,
                                 const ckbi_watch_group *group)
{
    uint64_t device_ns = ckbi_since(ckbi_max(begin_ns, group->begin_ns), ckbi_min(end_ns, group->end_ns));
    ckb_histogram_add(&lane->device, device_ns);
    ckb_histogram_add(&lane->queue, ckbi_since(begin_ns, end_ns) - device_ns);
}

/* What became durable at `end_ns`; `group` is null when nobody knows how. */
static int ckbi_lane_note_durable(ckbi_lane *lane, uint64_t end_ns, const ckbi_watch_group *group)
{
    const ckb_bench_host *host = lane->run->session->host;
    int status = CKB_OK;
    for (uint32_t i = 0; i < lane->pending_count && status == CKB_OK; i++) {
        const ckbi_pending *pending = &lane->pending[i];
        uint64_t latency_ns = ckbi_since(pending->begin_ns, end_ns);
        ckb_histogram_add(pending->rolled ? &lane->rolled : &lane->durable, latency_ns);
        ckbi_lane_note_stall(lane, pending->begin_ns, latency_ns);
        if (group != NULL)
            ckbi_lane_note_waits(lane, pending->begin_ns, end_ns, group);
        if (host->acknowledge_entry == NULL)
            continue;
        status = host->acknowledge_entry(host->context, pending->index, pending->length, pending->crc);
        if (status != CKB_OK)
            ckbi_bench_entry_fail(lane->run, lane->number, pending->index, "acknowledgement", CKB_IO);
    }
    lane->pending_count = 0;
    return status;
}

/* The next moment at which threads make their entries durable: the same one for all, so that they share a
 * sync. */
static uint64_t ckbi_lane_next_commit(const ckbi_lane *lane)
{
    const ckbi_run *run = lane->run;
    uint64_t interval_ns = run->plan->sync_interval_ns;
    if (interval_ns == 0)
        return UINT64_MAX;
    return run->gate_ns + (ckbi_since(run->gate_ns, lane->mark_ns) / interval_ns + 1) * interval_ns;
}

static void ckbi_bench_log_commit(ckbi_lane *lane)
{
    ckbi_run *run = lane->run;
    const ckb_bench_host *host = run->session->host;
    const ckbi_pending *last = &lane->pending[lane->pending_count - 1];
    uint64_t entered_ns = last->entered_ns;
    ckbi_watch_group group;
    int status;
    ckbi_watch_as(run->log->watch, CKBI_ROLE_COMMIT);
    status = ckb_log_commit(run->log->log, last->index);
    ckbi_watch_as(run->log->watch, CKBI_ROLE_OTHER);
    lane->mark_ns = ckbi_clock_read(&lane->clock, host);
    if (status != CKB_OK) {
        CKBI_STORE(&lane->failures, lane->failures + 1);
        ckbi_bench_entry_fail(run, lane->number, last->index, "commit", status);
        lane->pending_count = 0;
        return;
    }
    (void)ckbi_lane_note_durable(lane, lane->mark_ns,
                                 ckbi_watch_find(run->log->watch, entered_ns, lane->mark_ns, &group) ? &group
                                                                                                     : NULL);
    lane->commit_due_ns = ckbi_lane_next_commit(lane);
    if (host->acknowledge_entry != NULL)
        lane->mark_ns = ckbi_clock_read(&lane->clock, host);
}

/* Drops what is older than the entries to keep. */
static int ckbi_bench_log_purge(ckbi_run *run, uint64_t next_index)
{
    uint64_t keep = run->plan->purge_behind;
    return next_index > keep ? ckb_log_purge(run->log->log, next_index - keep) : CKB_OK;
}

/* Maintenance, in its thread or between the operations of the only one. */
static bool ckbi_bench_log_maintain(ckbi_run *run)
{
    const ckbi_plan *plan = run->plan;
    ckbi_bench_log *part = run->log;
    uint64_t next_index = CKBI_LOAD(&part->next_index);
    bool more = false;
    ckbi_watch_as(part->watch, CKBI_ROLE_MAINTENANCE);
    /* What fails here is met again by an append. */
    if (plan->purge_behind != 0 && next_index >= part->purged_at + plan->purge_step) {
        (void)ckbi_bench_log_purge(run, next_index);
        part->purged_at = next_index;
    }
    if (plan->ahead != 0 && ckb_maintain(run->volume, plan->ahead, &more) != CKB_OK)
        more = false;
    ckbi_watch_as(part->watch, CKBI_ROLE_OTHER);
    return more;
}

/* The append itself, with its index already known. When purges come too late for it, it helps. */
static int ckbi_bench_log_append(ckbi_run *run, const uint8_t *data, uint32_t length)
{
    ckbi_bench_log *part = run->log;
    uint64_t index = 0;
    int status = ckb_log_append(part->log, CKBI_BENCH_LOG_TERM, data, length, 0, &index);
    for (unsigned attempt = 0; attempt < 4 && status == CKB_NOSPACE && run->plan->purge_behind != 0;
         attempt++) {
        int helped = ckbi_bench_log_purge(run, part->next_index);
        if (helped == CKB_OK)
            helped = ckb_maintain(run->volume, 256, NULL);
        if (helped != CKB_OK && helped != CKB_NOSPACE)
            return helped;
        status = ckb_log_append(part->log, CKBI_BENCH_LOG_TERM, data, length, 0, &index);
    }
    return status == CKB_OK && index != part->next_index ? CKB_GAP : status;
}

/* Appends the entry whose turn it is. Alone, its content was made before the clock was read. */
static int ckbi_bench_log_take_turn(ckbi_lane *lane, ckbi_pending *entry)
{
    ckbi_run *run = lane->run;
    ckbi_bench_log *part = run->log;
    ckb_log_info info;
    int status;
    CKB_MUTEX_LOCK(&part->append_lock);
    entry->index = part->next_index;
    if (run->lane_count > 1)
        entry->length = ckbi_bench_entry_make(run, entry->index, lane->data);
    ckbi_watch_as(part->watch, CKBI_ROLE_APPEND);
    status = ckbi_bench_log_append(run, lane->data, entry->length);
    ckbi_watch_as(part->watch, CKBI_ROLE_OTHER);
    if (status == CKB_OK) {
        ckb_log_stat(part->log, &info);
        entry->rolled = info.rolls != part->rolls;
        part->rolls = info.rolls;
        CKBI_STORE(&part->next_index, entry->index + 1);
    }
    CKB_MUTEX_UNLOCK(&part->append_lock);
    return status;
}

/* One append. `intended_ns` is 0 in a closed loop. */
static void ckbi_bench_log_operate(ckbi_lane *lane, uint64_t intended_ns)
{
    ckbi_run *run = lane->run;
    const ckbi_plan *plan = run->plan;
    const ckb_bench_host *host = run->session->host;
    ckbi_pending entry = {0, 0, 0, 0, 0, false};
    int status;
    if (run->lane_count == 1) {
        entry.length = ckbi_bench_entry_make(run, run->log->next_index, lane->data);
        lane->mark_ns = ckbi_clock_read(&lane->clock, host);
    }
    entry.entered_ns = lane->mark_ns;
    entry.begin_ns = intended_ns != 0 ? intended_ns : lane->mark_ns;
    status = ckbi_bench_log_take_turn(lane, &entry);
    lane->mark_ns = ckbi_clock_read(&lane->clock, host);
    lane->tried++;
    if (status != CKB_OK) {
        CKBI_STORE(&lane->failures, lane->failures + 1);
        ckbi_bench_entry_fail(run, lane->number, entry.index, "append", status);
        return;
    }
    if (intended_ns != 0)
        ckb_histogram_add(&lane->service, ckbi_since(entry.entered_ns, lane->mark_ns));
    ckb_histogram_add(&lane->latency, ckbi_since(entry.begin_ns, lane->mark_ns));
    lane->bytes += entry.length;
    CKBI_STORE(&lane->done, lane->done + 1);
    if (host->acknowledge_entry != NULL)
        entry.crc = ckb_crc32c(0, lane->data, entry.length);
    if (plan->sync_every == 0) {
        ckb_histogram_add(entry.rolled ? &lane->rolled : &lane->durable,
                          ckbi_since(entry.begin_ns, lane->mark_ns));
        ckbi_lane_note_stall(lane, entry.begin_ns, ckbi_since(entry.begin_ns, lane->mark_ns));
        return;
    }
    lane->pending[lane->pending_count++] = entry;
    if (lane->pending_count == plan->sync_every || lane->mark_ns >= lane->commit_due_ns)
        ckbi_bench_log_commit(lane);
}

/* Waits for an intended start; commits that fall due meanwhile are not kept waiting. */
static bool ckbi_bench_log_wait(ckbi_lane *lane, uint64_t intended_ns, uint64_t deadline_ns)
{
    for (;;) {
        bool commits = lane->pending_count != 0 && lane->commit_due_ns < intended_ns;
        if (!ckbi_lane_wait_until(lane, commits ? lane->commit_due_ns : intended_ns, deadline_ns))
            return false;
        if (!commits)
            return true;
        ckbi_bench_log_commit(lane);
    }
}

static void ckbi_bench_log_loop(ckbi_lane *lane)
{
    ckbi_run *run = lane->run;
    const ckbi_plan *plan = run->plan;
    uint64_t deadline_ns = plan->duration_ns != 0 ? run->gate_ns + plan->duration_ns : UINT64_MAX;
    lane->commit_due_ns = ckbi_lane_next_commit(lane);
    while (lane->tried < lane->share) {
        uint64_t intended_ns = plan->rate_milli != 0 ? ckbi_lane_intended(lane, lane->tried) : 0;
        if (intended_ns != 0 && !ckbi_bench_log_wait(lane, intended_ns, deadline_ns))
            return;
        if (CKBI_LOAD(&run->stop) != 0 || lane->mark_ns >= deadline_ns)
            return;
        ckbi_bench_log_operate(lane, intended_ns);
        ckbi_lane_serve(lane);
    }
}

/* ---- before and after the threads */

static ckb_log_config ckbi_bench_log_config(const ckbi_plan *plan)
{
    ckb_log_config config = {plan->buffer_bytes, 0, 0, false};
    return config;
}

static bool ckbi_bench_log_carve_lane(ckbi_arena *arena, ckbi_run *run, uint32_t number)
{
    const ckb_bench_host *host = run->session->host;
    ckbi_lane counted, *lane = arena->end != NULL ? &run->lanes[number] : &counted;
    if (run->plan->sync_every == 0)
        ckbi_carve_histogram(arena, host, &lane->durable);
    ckbi_carve_histogram(arena, host, &lane->rolled);
    ckbi_carve_histogram(arena, host, &lane->queue);
    lane->device.buckets = NULL;
    ckbi_carve_histogram(arena, host, &lane->device);
    return arena->end == NULL || lane->device.buckets != NULL;
}

static bool ckbi_bench_log_carve(ckbi_run *run, ckbi_arena *arena)
{
    const ckbi_plan *plan = run->plan;
    ckb_log_config config = ckbi_bench_log_config(plan);
    ckbi_bench_log counted, *part = ckbi_arena_take(arena, sizeof *part, 64);
    run->log = part;
    if (arena->end != NULL && part == NULL)
        return false;
    part = part != NULL ? part : &counted;
    ckbi_fill(part, 0, sizeof *part);
    part->watch = ckbi_arena_take(arena, sizeof *part->watch, 64);
    part->callers = ckbi_arena_take(arena, (plan->threads + 2) * sizeof *part->callers, 64);
    part->memory_bytes = ckb_log_memory(&plan->geometry, &config);
    part->memory = ckbi_arena_take(arena, part->memory_bytes, 64);
    if (part->memory_bytes == 0)
        return false;
    for (uint32_t i = 0; i < plan->threads; i++)
        if (!ckbi_bench_log_carve_lane(arena, run, i))
            return false;
    if (plan->verify) {
        part->cursor_bytes = ckb_log_cursor_memory(&plan->geometry, 0);
        part->cursor_memory = ckbi_arena_take(arena, part->cursor_bytes, 64);
        part->read_buffer = ckbi_arena_take(arena, plan->size_bytes, 64);
        part->expected = ckbi_arena_take(arena, plan->size_bytes, 64);
        return arena->end == NULL || part->expected != NULL;
    }
    return true;
}

/* The volume's medium is wrapped when it is mounted, so that the watch must be ready before. */
static void ckbi_bench_log_begin(ckbi_run *run, ckb_bench_need *need)
{
    ckbi_watch *watch = run->log->watch;
    ckbi_fill(watch, 0, sizeof *watch);
    watch->host = run->session->host;
    watch->callers = run->log->callers;
    ckbi_fill(watch->callers, 0, (run->plan->threads + 2) * sizeof *watch->callers);
    CKB_MUTEX_INIT(&watch->lock);
    CKB_MUTEX_INIT(&run->log->append_lock);
    need->wrap = ckbi_watch_wrap;
    need->wrap_context = watch;
}

static void ckbi_bench_log_end(ckbi_run *run)
{
    CKB_MUTEX_DESTROY(&run->log->append_lock);
    CKB_MUTEX_DESTROY(&run->log->watch->lock);
}

static void ckbi_bench_log_start_counts(ckbi_run *run)
{
    ckbi_bench_log *part = run->log;
    const ckb_bench_host *host = run->session->host;
    ckbi_watch_reset(part->watch);
    part->disk_known = host->disk != NULL && host->disk(host->context, part->disk_name, part->disk);
    part->begin_ns = ckbi_clock_read(&run->session->clock, host);
}

static int ckbi_bench_log_open(ckbi_run *run)
{
    ckbi_bench_log *part = run->log;
    ckb_log_config config = ckbi_bench_log_config(run->plan);
    int status = ckb_log_create(run->volume, CKBI_BENCH_LOG_NAME, 1);
    part->next_index = part->purged_at = 1;
    if (status == CKB_OK)
        status = ckb_log_open(run->volume, CKBI_BENCH_LOG_NAME, &config, part->memory, part->memory_bytes,
                              &part->log, &run->failure_fault);
    /* A host that prepares segments ahead does so before the load comes. */
    if (status == CKB_OK && run->plan->ahead != 0)
        (void)ckb_maintain(run->volume, 4 * run->plan->ahead, NULL);
    if (status == CKB_OK)
        ckbi_bench_log_start_counts(run);
    return status;
}

static int ckbi_bench_log_close(ckbi_run *run)
{
    int status = run->log->log != NULL ? ckb_log_close(run->log->log) : CKB_OK;
    run->log->log = NULL;
    return status;
}

/* Reads what watch, disk and log have counted since ckbi_bench_log_start_counts. */
static void ckbi_bench_log_take_counts(ckbi_run *run, ckb_log_result *result)
{
    ckbi_bench_log *part = run->log;
    const ckb_bench_host *host = run->session->host;
    uint64_t disk[CKB_DISK_COUNTER_COUNT];
    ckb_log_info info;
    result->interval_ns = ckbi_since(part->begin_ns, ckbi_clock_read(&run->session->clock, host));
    if (part->disk_known && host->disk(host->context, part->disk_name, disk)) {
        ckb_disk_use_of(part->disk, disk, result->interval_ns, &result->disk);
        ckbi_copy(result->disk.name, part->disk_name, sizeof result->disk.name);
    }
    result->appends = part->watch->use[CKBI_ROLE_APPEND];
    result->commit_calls = part->watch->use[CKBI_ROLE_COMMIT];
    result->maintenance = part->watch->use[CKBI_ROLE_MAINTENANCE];
    result->commits = part->watch->group_count;
    ckb_log_stat(part->log, &info);
    result->rolls = info.rolls;
    result->first = info.first;
    result->last = info.last;
}

static void ckbi_bench_log_final_sync(ckbi_run *run, ckb_bench_result *result)
{
    ckbi_session *session = run->session;
    ckbi_bench_log *part = run->log;
    uint64_t begin_ns = ckbi_clock_read(&session->clock, session->host), end_ns;
    int status = CKB_OK;
    if (run->plan->sync != CKBI_SYNC_NONE && part->next_index > 1) {
        ckbi_watch_as(part->watch, CKBI_ROLE_COMMIT);
        status = ckb_log_commit(part->log, part->next_index - 1);
        ckbi_watch_as(part->watch, CKBI_ROLE_OTHER);
        end_ns = ckbi_clock_read(&session->clock, session->host);
        result->sync_ns = ckbi_since(begin_ns, end_ns);
        if (status != CKB_OK)
            ckbi_bench_entry_fail(run, 0, part->next_index - 1, "final sync", status);
        for (uint32_t i = 0; i < run->lane_count && status == CKB_OK; i++) {
            ckbi_lane *lane = &run->lanes[i];
            ckbi_watch_group group;
            bool known =
                lane->pending_count != 0 &&
                ckbi_watch_find(part->watch, lane->pending[lane->pending_count - 1].entered_ns, end_ns, &group);
            status = ckbi_lane_note_durable(lane, end_ns, known ? &group : NULL);
        }
    }
    ckbi_bench_log_take_counts(run, &result->log);
}

/* Ranks 1.96 standard deviations of a binomial away on either side. */
static void ckbi_histogram_p99_range(const ckb_histogram *histogram, uint64_t *low, uint64_t *high)
{
    double away = ckbi_quotient(1.96 * 9949.874, ckbi_sqrt((double)histogram->count)); /* of 100000 */
    uint32_t rank = (uint32_t)ckbi_min((uint64_t)away, 99000);
    *low = ckb_histogram_percentile(histogram, 99000 - rank);
    *high = ckb_histogram_percentile(histogram, (uint32_t)ckbi_min(99000 + rank + 1, 100000));
}

/* Merges what only logs have. Durable latency is that of all appends, so the rolled ones join the others. */
static void ckbi_bench_log_merge(ckbi_run *run, ckb_bench_result *result)
{
    ckbi_lane *first = &run->lanes[0];
    for (uint32_t i = 0; i < run->lane_count; i++) {
        const ckbi_lane *lane = &run->lanes[i];
        result->bytes += lane->bytes;
        if (i == 0)
            continue;
        (void)ckb_histogram_merge(&first->rolled, &lane->rolled);
        (void)ckb_histogram_merge(&first->queue, &lane->queue);
        (void)ckb_histogram_merge(&first->device, &lane->device);
    }
    ckb_histogram_latency(&first->durable, &result->log.others);
    ckb_histogram_latency(&first->rolled, &result->log.rolled);
    ckb_histogram_latency(&first->queue, &result->log.queue_wait);
    ckb_histogram_latency(&first->device, &result->log.device_wait);
    (void)ckb_histogram_merge(&first->durable, &first->rolled);
    ckbi_histogram_p99_range(&first->durable, &result->log.p99_low, &result->log.p99_high);
    ckbi_fill(&result->durable_latency, 0, sizeof result->durable_latency);
    if (run->plan->sync_every != 0)
        ckb_histogram_latency(&first->durable, &result->durable_latency);
}

/* Compares one entry with what its index asks for. */
static bool ckbi_bench_entry_is_right(ckbi_run *run, const ckb_entry *entry, uint64_t index)
{
    ckbi_bench_log *part = run->log;
    uint32_t length = ckbi_bench_entry_make(run, index, part->expected);
    return entry->index == index && entry->term == CKBI_BENCH_LOG_TERM && entry->length == length &&
           ckbi_compare(part->read_buffer, part->expected, length) == 0;
}

static int ckbi_bench_log_verify(ckbi_run *run, ckb_bench_result *result)
{
    ckbi_bench_log *part = run->log;
    ckb_log_config config = ckbi_bench_log_config(run->plan);
    ckb_log_cursor *cursor;
    ckb_entry entry;
    uint64_t index = result->log.first;
    int found = CKB_OK, status = ckb_log_open(run->volume, CKBI_BENCH_LOG_NAME, &config, part->memory,
                                              part->memory_bytes, &part->log, &run->failure_fault);
    if (status == CKB_OK)
        status = ckb_log_cursor_open(part->log, 0, part->cursor_memory, part->cursor_bytes, &cursor);
    for (; status == CKB_OK && !run->session->report->interrupted; index++) {
        found = ckb_log_next(cursor, &entry, part->read_buffer, (size_t)run->plan->size_bytes);
        if (found != CKB_OK || index == part->next_index || !ckbi_bench_entry_is_right(run, &entry, index))
            break;
        result->verified++;
        if ((index & 1023) == 0)
            (void)ckbi_is_interrupted(run->session);
    }
    /* All that was appended, and nothing behind it. */
    if (status == CKB_OK && !run->session->report->interrupted &&
        (found != CKB_END || index != part->next_index)) {
        result->verify_failures++;
        ckbi_bench_entry_fail(run, 0, index, "verify", found == CKB_OK ? CKB_CORRUPT : found);
        ckb_log_cursor_fault(cursor, &run->failure_fault);
    }
    if (part->log != NULL) {
        int closed = ckbi_bench_log_close(run);
        status = status == CKB_OK ? closed : status;
    }
    return status;
}

/* ---- from options to plans */

#define CKBI_BENCH_LOG_SEGMENTS_LEAST 16u
#define CKBI_BENCH_LOG_TIMED_BYTES (UINT64_C(1) << 30) /* what a run that only time ends keeps at most */
#define CKBI_BENCH_LOG_PENDING_MAX 65536u /* entries that wait for the sync that an interval brings */

static uint64_t ckbi_bench_log_rows(const ckb_option_value *values)
{
    static const uint8_t axes[] = {CKBI_BENCH_LOG_THREADS, CKBI_BENCH_LOG_SIZE,  CKBI_BENCH_LOG_SYNC,
                                   CKBI_BENCH_LOG_SEGMENT, CKBI_BENCH_LOG_AHEAD, CKBI_BENCH_LOG_PREPARE};
    uint64_t rows = 1;
    for (size_t i = 0; i < sizeof axes; i++)
        rows *= ckbi_value_axis(&values[axes[i]]);
    return rows;
}

/* What an entry takes on the medium at most, on average over the sizes: the padding of commits included, as if
 * no two threads ever shared one. */
static uint64_t ckbi_bench_log_entry_cost(const ckbi_plan *plan)
{
    uint64_t unit = plan->geometry.write_unit, cost = (plan->size_min_bytes + plan->size_bytes) / 2 + 64;
    uint64_t every = plan->sync == CKBI_SYNC_TIMED ? CKBI_BENCH_LOG_PENDING_MAX : plan->sync_every;
    if (every != 0)
        cost = (ckbi_align_up(cost * every + 24, unit) + unit / 2 + every - 1) / every;
    return cost;
}

static uint64_t ckbi_bench_log_entries_per_segment(const ckbi_plan *plan)
{
    /* A roll leaves up to one entry's room unused. */
    uint64_t overhead = 4 * (uint64_t)plan->geometry.write_unit + plan->size_bytes;
    uint64_t usable = plan->geometry.segment_bytes > overhead ? plan->geometry.segment_bytes - overhead : 0;
    return ckbi_max(1, usable / ckbi_bench_log_entry_cost(plan));
}

/* Segments for the journal, what is kept back, what is prepared. */
static uint64_t ckbi_bench_log_spare(const ckbi_plan *plan)
{
    return 8 + plan->ahead;
}

static int ckbi_refuse_entry(const ckbi_plan *plan, ckbi_out *out)
{
    ckbi_out_text(out, "--size: ");
    ckbi_out_number(out, plan->size_bytes);
    ckbi_out_text(out, " bytes; segments of ");
    ckbi_out_number(out, plan->geometry.segment_bytes);
    ckbi_out_text(out, " bytes hold entries of up to ");
    ckbi_out_number(out, ckb_max_entry_bytes(&plan->geometry));
    ckbi_out_end(out);
    return CKB_INVALID;
}

static int ckbi_refuse_log_room(const ckb_bench_host *host, const ckbi_plan *plan, uint64_t room_bytes,
                                ckbi_out *out)
{
    const uint64_t few = ckbi_bench_log_spare(plan) + 4; /* with so many segments purging helps little */
    ckbi_out_number(out, plan->purge_behind != 0 ? plan->purge_behind : plan->count);
    ckbi_out_text(out, " entries of up to ");
    ckbi_out_size(out, plan->size_bytes);
    ckbi_out_text(out, " need ");
    ckbi_out_size(out, plan->need.data_bytes);
    ckbi_out_text(out, " in segments of ");
    ckbi_out_size(out, plan->geometry.segment_bytes);
    ckbi_out_text(out, "; ");
    ckbi_out_text(out, host->target->name);
    ckbi_out_text(out, " has room for ");
    ckbi_out_size(out, room_bytes);
    ckbi_out_text(out, plan->purge_behind == 0 && room_bytes / plan->geometry.segment_bytes > few
                           ? "; --purge-behind needs less"
                           : "; smaller segments need less");
    ckbi_out_end(out);
    return CKB_NOSPACE;
}

#define CKBI_JOURNAL_SHARE 256u /* bytes of journal for each segment, with room to switch */

/* How many segments the run wants when `segments` are there. Keeps in bounds what a timed run stores. */
static uint64_t ckbi_bench_log_segments(ckbi_plan *plan, uint64_t segments)
{
    uint64_t per_segment = ckbi_bench_log_entries_per_segment(plan), entries = plan->count, filled;
    uint64_t spare = ckbi_bench_log_spare(plan);
    if (plan->count == UINT64_MAX && plan->purge_behind == 0) {
        uint64_t most = ckbi_min(segments, CKBI_BENCH_LOG_TIMED_BYTES / plan->geometry.segment_bytes + spare);
        plan->purge_behind = (most > spare + 4 ? (most - spare) / 2 : 1) * per_segment;
    }
    if (plan->purge_behind != 0) {
        plan->purge_step =
            ckbi_max(1, ckbi_min(plan->purge_behind / 4, per_segment * ckbi_max(1, plan->ahead)));
        entries = ckbi_min(entries, plan->purge_behind + 2 * plan->purge_step);
    }
    filled = entries / per_segment + 2;
    return filled + spare + filled * CKBI_JOURNAL_SHARE / plan->geometry.segment_bytes;
}

/* The target is asked twice: what it has, and then for no more than the run needs, since with small segments
 * a volume that fills the target has very many of them. */
static int ckbi_bench_log_fit(const ckb_bench_host *host, ckbi_plan *plan, ckbi_out *out)
{
    ckb_bench_need *need = &plan->need;
    uint64_t room_bytes = 0, segments;
    int status;
    ckbi_fill(need, 0, sizeof *need);
    need->segment_bytes = plan->segment_bytes;
    need->max_logs = 1;
    need->prepare_ahead = (uint32_t)ckbi_max(plan->ahead, 1);
    need->prepare = plan->prepare;
    need->renew = true;
    status = ckbi_plan_describe(host, plan, &room_bytes, out);
    if (status != CKB_OK)
        return status;
    if (plan->size_bytes > ckb_max_entry_bytes(&plan->geometry))
        return ckbi_refuse_entry(plan, out);
    segments = ckbi_bench_log_segments(plan, room_bytes / plan->geometry.segment_bytes);
    need->data_bytes = segments * plan->geometry.segment_bytes;
    if (need->data_bytes > room_bytes)
        return ckbi_refuse_log_room(host, plan, room_bytes, out);
    plan->maintenance_thread = plan->ahead != 0 || plan->purge_behind != 0;
    need->segment_count = (uint32_t)ckbi_max(segments, CKBI_BENCH_LOG_SEGMENTS_LEAST);
    need->segment_bytes = plan->geometry.segment_bytes;
    return ckbi_plan_describe(host, plan, &room_bytes, out);
}

static const ckbi_work ckbi_bench_log_work = {
    true,
    "entries",
    ckbi_bench_log_fit,
    ckbi_bench_log_carve,
    ckbi_bench_log_begin,
    ckbi_bench_log_open,
    ckbi_bench_log_loop,
    ckbi_bench_log_maintain,
    ckbi_bench_log_final_sync,
    ckbi_bench_log_merge,
    ckbi_bench_log_close,
    ckbi_bench_log_verify,
    ckbi_bench_log_end,
};

static void ckbi_bench_log_plan_sync(ckbi_plan *plan, const ckb_option_value *value, uint32_t place)
{
    uint64_t number = value->number[place];
    plan->sync = value->timed[place]     ? CKBI_SYNC_TIMED
                 : !value->chosen[place] ? CKBI_SYNC_EVERY
                 : number == 0           ? CKBI_SYNC_NONE
                                         : CKBI_SYNC_EACH;
    plan->sync_every = value->timed[place] ? CKBI_BENCH_LOG_PENDING_MAX : (uint32_t)number;
    plan->sync_interval_ns = value->timed[place] ? number : 0;
}

/* The value at this row of the axis that varies next; *row loses it. */
static uint32_t ckbi_axis_place(const ckb_option_value *value, uint32_t *row)
{
    uint32_t count = ckbi_value_axis(value), place = *row % count;
    *row /= count;
    return place;
}

/* Row `row` of a sweep; threads vary fastest, so that they stand below each other. */
static void ckbi_bench_log_plan(const ckb_option_value *values, uint32_t row, ckbi_plan *plan)
{
    bool timed = values[CKBI_BENCH_LOG_DURATION].given && !values[CKBI_BENCH_LOG_COUNT].given;
    const ckb_option_value *prepare = &values[CKBI_BENCH_LOG_PREPARE];
    uint32_t place;
    ckbi_fill(plan, 0, sizeof *plan);
    plan->work = &ckbi_bench_log_work;
    plan->threads =
        (uint32_t)values[CKBI_BENCH_LOG_THREADS].number[ckbi_axis_place(&values[CKBI_BENCH_LOG_THREADS], &row)];
    place = ckbi_axis_place(&values[CKBI_BENCH_LOG_SIZE], &row);
    plan->size_min_bytes = values[CKBI_BENCH_LOG_SIZE].number[place];
    plan->size_bytes = values[CKBI_BENCH_LOG_SIZE].last[place];
    ckbi_bench_log_plan_sync(plan, &values[CKBI_BENCH_LOG_SYNC],
                             ckbi_axis_place(&values[CKBI_BENCH_LOG_SYNC], &row));
    plan->ahead =
        (uint32_t)values[CKBI_BENCH_LOG_AHEAD].number[ckbi_axis_place(&values[CKBI_BENCH_LOG_AHEAD], &row)];
    place = ckbi_axis_place(prepare, &row);
    plan->prepare = place < prepare->count ? (uint32_t)prepare->number[place] + 1 : 0;
    plan->segment_bytes = ckbi_value_or(&values[CKBI_BENCH_LOG_SEGMENT], row, 0);
    plan->count = timed ? UINT64_MAX : values[CKBI_BENCH_LOG_COUNT].number[0];
    plan->distinct = plan->count;
    plan->purge_behind = ckbi_value_or(&values[CKBI_BENCH_LOG_PURGE_BEHIND], 0, 0);
    plan->rate_milli = ckbi_value_or(&values[CKBI_BENCH_LOG_RATE], 0, 0);
    plan->duration_ns = ckbi_value_or(&values[CKBI_BENCH_LOG_DURATION], 0, 0);
    plan->stall_ns = values[CKBI_BENCH_LOG_STALL].number[0];
    plan->buffer_bytes = (size_t)ckbi_value_or(&values[CKBI_BENCH_LOG_BUFFER], 0, 0);
    plan->verify = values[CKBI_BENCH_LOG_VERIFY].count != 0;
    plan->go_on = values[CKBI_BENCH_LOG_GO_ON].count != 0;
}

static int ckbi_bench_log_check(const ckb_bench_host *host, const ckb_option_value *values, ckbi_out *out)
{
    for (uint32_t i = 0; i < values[CKBI_BENCH_LOG_SYNC].count; i++)
        if (host->acknowledge_entry != NULL && values[CKBI_BENCH_LOG_SYNC].chosen[i] &&
            values[CKBI_BENCH_LOG_SYNC].number[i] == CKBI_SYNC_NONE)
            return ckbi_refuse(out, ckbi_span_of("none"),
                               "--sync: ", " makes nothing durable that could be acknowledged");
    return ckbi_rows_check(host, ckbi_bench_log_rows(values), &values[CKBI_BENCH_LOG_THREADS], out);
}

/* --------------------------------------------------------------------------------------------- >>qualify
 * Three questions. How many writer threads? Rounds of runs, one per thread count and one of plain sequential
 * writing, in an order that is shuffled anew in each round, so that whatever drifts hits all alike. Shares are
 * taken within a round; the answer is their median, its range an interval of order statistics. Which log
 * segments? Likewise, with durable appends of 1 and of 16 threads. Fit for a WAL? One long run of durable
 * appends. They take a quarter, a quarter and half of the budget. */

enum {
    CKBI_QUALIFY_THREADS,
    CKBI_QUALIFY_SIZE,
    CKBI_QUALIFY_SEGMENT,
    CKBI_QUALIFY_LOG_SEGMENT,
    CKBI_QUALIFY_BUDGET,
    CKBI_QUALIFY_SEED,
    CKBI_QUALIFY_OPTIONS
};

static const ckb_option ckbi_qualify_options[CKBI_QUALIFY_OPTIONS] = {
    {"threads", 't', CKB_OPTION_COUNT, true, "LIST", "1,2,4,8,16", 1, CKBI_THREADS_MAX, NULL,
     "writer threads to compare"},
    {"size", 's', CKB_OPTION_SIZE, false, "SIZE", "1K", 1, UINT64_C(1) << 30, NULL, "bytes per chunk"},
    {"segment", '\0', CKB_OPTION_SIZE, false, "SIZE", NULL, 4096, UINT64_C(1) << 33, NULL,
     "bytes per segment for the chunks; by default the target's choice"},
    {"log-segment", '\0', CKB_OPTION_SIZE, true, "LIST", "16K,64K,256K,1M,4M,16M", 4096, UINT64_C(1) << 33,
     NULL, "bytes per segment to compare for a log; those that the target cannot have are left out"},
    {"budget", 'b', CKB_OPTION_DURATION, false, "TIME", "1m", 1000000000, UINT64_C(86400000000000), NULL,
     "time it may take; the amount of data follows from it"},
    {"seed", '\0', CKB_OPTION_COUNT, false, "NUMBER", "1", 0, UINT64_MAX, NULL,
     "of the content and of the order"},
};

#define CKBI_ROUNDS_WANTED 5u
#define CKBI_ROUNDS_MAX 15u
#define CKBI_CEILING_PIECE (UINT64_C(4) << 20)
#define CKBI_CEILING_FIRST 2u /* segments 0 and 1 are left alone: they say whose medium this is */
#define CKBI_QUALIFY_CHUNKS_MAX 8000000
#define CKBI_QUALIFY_CHUNKS_FIRST 4096
#define CKBI_MEASURED_LEAST_NS 100000000
#define CKBI_GOOD_SHARE 0.95

typedef struct ckbi_qualify {
    ckbi_session *session;
    const ckb_option_value *values;
    ckbi_plan plan; /* of the next run; threads change */
    uint64_t begin_ns, budget_ns;
    uint64_t count, count_max;
    uint64_t random;
    uint8_t *piece;     /* for the ceiling */
    uint32_t per_round; /* runs */
    uint32_t rounds;    /* complete ones */
} ckbi_qualify;

static void ckbi_qualify_plan(const ckb_option_value *values, uint32_t place, ckbi_plan *plan)
{
    ckbi_fill(plan, 0, sizeof *plan);
    plan->work = &ckbi_chunk_work;
    plan->threads = (uint32_t)values[CKBI_QUALIFY_THREADS].number[place];
    plan->size_bytes = values[CKBI_QUALIFY_SIZE].number[0];
    plan->size_min_bytes = plan->size_bytes;
    plan->segment_bytes = ckbi_value_or(&values[CKBI_QUALIFY_SEGMENT], 0, 0);
    plan->chunks_per_block = 16;
    plan->sync = CKBI_SYNC_END;
    plan->count = CKBI_QUALIFY_CHUNKS_FIRST;
    plan->distinct = plan->count;
    plan->stall_ns = 100000000;
}

static uint64_t ckbi_qualify_used_ns(ckbi_qualify *qualify)
{
    return ckbi_clock_read(&qualify->session->clock, qualify->session->host) - qualify->begin_ns;
}

static uint64_t ckbi_result_total_ns(const ckb_bench_result *result)
{
    return result->elapsed_ns + (result->sync == CKBI_SYNC_NONE && !result->raw ? 0 : result->sync_ns);
}

static double ckbi_per_second(uint64_t count, uint64_t duration_ns)
{
    return duration_ns == 0 ? 0.0 : (double)count * 1e9 / (double)duration_ns;
}

/* Writes whole segments in pieces; each 4 KiB of a piece get a stamp, so that no two pieces are equal. */
static int ckbi_ceiling_segment(ckbi_session *session, const ckb_medium *medium, uint32_t segment,
                                uint64_t bytes, uint8_t *piece, ckb_histogram *latency)
{
    ckbi_clock *clock = &session->clock;
    uint64_t size = ckbi_min(CKBI_CEILING_PIECE,
                             ckbi_align_down(medium->geometry.segment_bytes, medium->geometry.write_unit));
    uint64_t end = ckbi_min(ckbi_align_up(bytes, medium->geometry.write_unit), medium->geometry.segment_bytes);
    int status = CKB_OK;
    for (uint64_t offset = 0; offset < end && status == CKB_OK; offset += size) {
        uint64_t begin_ns = ckbi_clock_read(clock, session->host);
        uint64_t length = ckbi_min(size, end - offset);
        for (uint64_t at = 0; at + 16 <= length; at += 4096) {
            uint64_t stamp = ckbi_mix(offset + at + ((uint64_t)segment << 40));
            ckbi_copy(piece + at, &stamp, sizeof stamp);
        }
        status = medium->write(medium->context, segment, offset, piece, (size_t)length);
        ckb_histogram_add(latency, ckbi_clock_read(clock, session->host) - begin_ns);
    }
    return status;
}

static int ckbi_ceiling_measure(ckbi_session *session, const ckb_medium *medium, uint64_t bytes, uint8_t *piece,
                                ckb_histogram *latency, ckb_bench_result *result)
{
    uint64_t segment_bytes = medium->geometry.segment_bytes, begin_ns, written_ns;
    uint32_t segments = (uint32_t)ckbi_min((bytes + segment_bytes - 1) / segment_bytes,
                                           medium->geometry.segment_count - CKBI_CEILING_FIRST);
    int status = CKB_OK;
    for (uint32_t i = 0; i < segments && status == CKB_OK; i++)
        status = medium->erase(medium->context, CKBI_CEILING_FIRST + i);
    begin_ns = ckbi_clock_read(&session->clock, session->host);
    for (uint32_t i = 0; i < segments && status == CKB_OK; i++) {
        uint64_t part = ckbi_min(bytes - i * segment_bytes, segment_bytes);
        status = ckbi_ceiling_segment(session, medium, CKBI_CEILING_FIRST + i, part, piece, latency);
        result->bytes += part;
        if (ckbi_is_interrupted(session))
            break;
    }
    written_ns = ckbi_clock_read(&session->clock, session->host);
    for (uint32_t i = 0; i < segments && status == CKB_OK; i++)
        status = medium->sync(medium->context, CKBI_CEILING_FIRST + i);
    result->elapsed_ns = written_ns - begin_ns;
    result->sync_ns = ckbi_clock_read(&session->clock, session->host) - written_ns;
    return status;
}

/* Plain sequential writing and one sync, through the same medium: the most that the place gives. */
static int ckbi_qualify_ceiling(ckbi_qualify *qualify, ckb_bench_result *result)
{
    ckbi_session *session = qualify->session;
    const ckb_bench_target *target = session->host->target;
    ckbi_plan *plan = &qualify->plan;
    ckbi_arena arena = session->rest;
    ckb_histogram latency;
    ckb_medium medium;
    ckb_fault fault = {0};
    int status, closed;
    ckbi_result_axes(result, plan);
    result->raw = true;
    result->threads = 1;
    result->size_bytes = ckbi_min(CKBI_CEILING_PIECE, plan->geometry.segment_bytes);
    ckbi_carve_histogram(&arena, session->host, &latency);
    status = target->raw(target->context, &plan->need, &medium, &fault);
    if (status != CKB_OK)
        return ckbi_run_report(session, "opening the medium", status, &fault);
    status = ckbi_ceiling_measure(session, &medium, plan->count * plan->size_bytes, qualify->piece, &latency,
                                  result);
    closed = target->done(target->context);
    status = status == CKB_OK ? closed : status;
    ckb_histogram_latency(&latency, &result->latency);
    result->operations = latency.count;
    result->mean_rate = ckbi_per_second(result->operations, result->elapsed_ns);
    result->finished = status == CKB_OK && !session->report->interrupted;
    return status == CKB_OK ? CKB_OK : ckbi_run_report(session, "sequential writing", status, NULL);
}

/* Run `place` of a round: one for each thread count, and the ceiling last. */
static int ckbi_qualify_run(ckbi_qualify *qualify, uint32_t place, ckb_bench_result *result)
{
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, qualify->session->report->message, CKB_BENCH_MESSAGE_BYTES);
    bool ceiling = place == qualify->values[CKBI_QUALIFY_THREADS].count;
    int status;
    ckbi_qualify_plan(qualify->values, ceiling ? 0 : place, &qualify->plan);
    qualify->plan.count = ckbi_max(qualify->count, 1);
    qualify->plan.distinct = qualify->plan.count;
    status = qualify->plan.work->fit(qualify->session->host, &qualify->plan, out);
    if (status != CKB_OK)
        return status;
    return ceiling ? ckbi_qualify_ceiling(qualify, result)
                   : ckbi_run_execute(qualify->session, &qualify->plan, result);
}

/* The most chunks that every run of a round has room for; 0: not even the first try fits. */
static int ckbi_qualify_room(ckbi_qualify *qualify)
{
    ckbi_message message;
    char text[8];
    qualify->count_max = 0;
    for (uint64_t count = CKBI_QUALIFY_CHUNKS_MAX; count >= 64 && qualify->count_max == 0;
         count = count / 4 * 3) {
        bool fits = true;
        for (uint32_t i = 0; i + 1 < qualify->per_round && fits; i++) {
            ckbi_qualify_plan(qualify->values, i, &qualify->plan);
            qualify->plan.count = qualify->plan.distinct = count;
            fits = qualify->plan.work->fit(qualify->session->host, &qualify->plan,
                                           ckbi_message_start(&message, text, sizeof text)) == CKB_OK;
        }
        qualify->count_max = fits ? count : 0;
    }
    qualify->count = ckbi_min(CKBI_QUALIFY_CHUNKS_FIRST, qualify->count_max);
    return qualify->count_max != 0 ? CKB_OK
                                   : ckbi_run_report(qualify->session, "room for 64 chunks", CKB_NOSPACE, NULL);
}

/* Ramps up until a run is long enough to tell the rate, then sizes the runs so that the rounds fill the
 * budget. The first runs also make what later ones find: files, warm caches. */
static int ckbi_qualify_calibrate(ckbi_qualify *qualify)
{
    ckb_bench_result result;
    uint64_t enough_ns = qualify->budget_ns / 100, measured_ns, wall_ns, slot_ns, begin_ns;
    int status;
    for (;;) {
        begin_ns = ckbi_qualify_used_ns(qualify);
        status = ckbi_qualify_run(qualify, 0, &result);
        if (status != CKB_OK || qualify->session->report->interrupted)
            return status;
        measured_ns = ckbi_max(ckbi_result_total_ns(&result), 1000);
        wall_ns = ckbi_qualify_used_ns(qualify) - begin_ns;
        if (measured_ns >= enough_ns || wall_ns >= qualify->budget_ns / 12 ||
            qualify->count == qualify->count_max)
            break;
        qualify->count *= ckbi_max(2, ckbi_min(8, enough_ns / measured_ns + 1));
        qualify->count = ckbi_min(qualify->count, qualify->count_max);
    }
    status = ckbi_qualify_run(qualify, qualify->per_round - 1, &result);
    if (status != CKB_OK)
        return status;
    begin_ns = ckbi_qualify_used_ns(qualify);
    slot_ns = qualify->budget_ns > begin_ns ? (qualify->budget_ns - begin_ns) / 10 * 9 : 0;
    slot_ns = slot_ns / CKBI_ROUNDS_WANTED / qualify->per_round;
    /* What a run costs beside what is measured stays; the rest grows with the count. */
    wall_ns = wall_ns > measured_ns ? wall_ns - measured_ns : 0;
    slot_ns = slot_ns > wall_ns + CKBI_MEASURED_LEAST_NS / 2 ? slot_ns - wall_ns : CKBI_MEASURED_LEAST_NS / 2;
    qualify->count = (uint64_t)((double)qualify->count * (double)slot_ns / (double)measured_ns);
    qualify->count = ckbi_max(64, ckbi_min(qualify->count, qualify->count_max));
    return CKB_OK;
}

/* 0 to count - 1 in an order of chance. */
static void ckbi_shuffle(uint64_t *random, uint32_t *order, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t other;
        *random = ckbi_mix(*random);
        other = (uint32_t)(*random % (i + 1));
        order[i] = order[other];
        order[other] = i;
    }
}

static int ckbi_qualify_round(ckbi_qualify *qualify)
{
    ckb_bench_report *report = qualify->session->report;
    uint32_t order[CKB_SWEEP_MAX + 1];
    ckbi_shuffle(&qualify->random, order, qualify->per_round);
    for (uint32_t i = 0; i < qualify->per_round; i++) {
        ckb_bench_result *result = &report->results[report->result_count];
        int status = ckbi_qualify_run(qualify, order[i], result);
        result->round = qualify->rounds + 1;
        report->result_count++;
        qualify->session->run++;
        if (status != CKB_OK || report->interrupted)
            return status;
    }
    qualify->rounds++;
    return CKB_OK;
}

static int ckbi_qualify_rounds(ckbi_qualify *qualify)
{
    uint64_t wanted_ns = qualify->budget_ns > ckbi_qualify_used_ns(qualify)
                             ? (qualify->budget_ns - ckbi_qualify_used_ns(qualify)) / CKBI_ROUNDS_WANTED
                             : 0;
    for (uint64_t round_ns = 0; qualify->rounds < CKBI_ROUNDS_MAX;) {
        uint64_t begin_ns = ckbi_qualify_used_ns(qualify);
        int status;
        if (qualify->rounds >= 1 && begin_ns + round_ns > qualify->budget_ns + qualify->budget_ns / 20)
            return CKB_OK;
        status = ckbi_qualify_round(qualify);
        if (status != CKB_OK || qualify->session->report->interrupted)
            return status;
        round_ns = ckbi_qualify_used_ns(qualify) - begin_ns;
        /* Other thread counts were slower than the one that told the rate: make the next rounds shorter. */
        if (qualify->rounds == 1 && round_ns > wanted_ns + wanted_ns / 8 && wanted_ns != 0) {
            double factor = (double)wanted_ns / (double)round_ns;
            qualify->count = ckbi_max(64, (uint64_t)((double)qualify->count * (factor > 0.25 ? factor : 0.25)));
            round_ns = wanted_ns;
        }
    }
    return CKB_OK;
}

/* ---- the answer ---- */

/* Sorts and takes median, low and high; `skip` order statistics are left out at each end. */
static void ckbi_shares(double *shares, uint32_t count, uint32_t skip, double *median, double *low,
                        double *high)
{
    for (uint32_t i = 1; i < count; i++) {
        double share = shares[i];
        uint32_t place = i;
        for (; place > 0 && shares[place - 1] > share; place--)
            shares[place] = shares[place - 1];
        shares[place] = share;
    }
    *median = 0.5 * (shares[(count - 1) / 2] + shares[count / 2]);
    *low = shares[skip];
    *high = shares[count - 1 - skip];
}

/* How many order statistics may be left out at each end so that the rest still holds the median with at
 * least 90 %; *confidence is what it then is (binomial, one half). */
static uint32_t ckbi_rank_interval(uint32_t rounds, double *confidence)
{
    double all = 1.0, term = 1.0, outside = 0.0;
    uint32_t skip = 0;
    for (uint32_t i = 0; i < rounds; i++)
        all *= 2.0;
    *confidence = rounds == 0 ? 0.0 : 1.0 - 2.0 / all;
    for (uint32_t i = 0; 2 * i < rounds; i++) {
        outside += term;
        if (1.0 - 2.0 * outside / all < 0.9)
            break;
        skip = i;
        *confidence = 1.0 - 2.0 * outside / all;
        term = term * (double)(rounds - i) / (double)(i + 1);
    }
    return skip;
}

/* The result of thread count `threads` (0: the ceiling) in a round; null when it is missing. */
static const ckb_bench_result *ckbi_report_find(const ckb_bench_report *report, uint32_t round,
                                                uint32_t threads)
{
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (result->round == round && !result->is_log &&
            (threads == 0 ? result->raw : !result->raw && result->threads == threads))
            return result;
    }
    return NULL;
}

static double ckbi_report_bytes_rate(const ckb_bench_report *report, uint32_t round, uint32_t threads)
{
    const ckb_bench_result *result = ckbi_report_find(report, round, threads);
    return result == NULL ? 0.0 : ckbi_per_second(result->bytes, ckbi_result_total_ns(result));
}

static void ckbi_answer_row(const ckb_bench_report *report, ckb_qualify_answer *answer, uint32_t skip,
                            ckb_qualify_row *row, uint64_t size_bytes)
{
    double best[CKBI_ROUNDS_MAX], ceiling[CKBI_ROUNDS_MAX], rate[CKBI_ROUNDS_MAX], unused;
    for (uint32_t r = 0; r < answer->rounds; r++) {
        double most = 0.0, own = ckbi_report_bytes_rate(report, r + 1, row->threads);
        double plain = ckbi_report_bytes_rate(report, r + 1, 0);
        for (uint32_t i = 0; i < answer->row_count; i++) {
            double other = ckbi_report_bytes_rate(report, r + 1, answer->rows[i].threads);
            most = other > most ? other : most;
        }
        best[r] = most > 0.0 ? own / most : 0.0;
        ceiling[r] = plain > 0.0 ? own / plain : 0.0;
        rate[r] = own / (double)size_bytes;
    }
    ckbi_shares(best, answer->rounds, skip, &row->of_best, &row->of_best_low, &row->of_best_high);
    ckbi_shares(ceiling, answer->rounds, skip, &row->of_ceiling, &row->of_ceiling_low, &row->of_ceiling_high);
    ckbi_shares(rate, answer->rounds, skip, &row->rate_per_s, &unused, &unused);
}

/* The fewest threads that come within 5 % of the row with the largest share. */
static uint32_t ckbi_answer_choose(const ckb_qualify_answer *answer)
{
    uint32_t chosen = 0;
    double enough;
    for (uint32_t i = 1; i < answer->row_count; i++)
        if (answer->rows[i].of_best > answer->rows[chosen].of_best)
            chosen = i;
    enough = answer->rows[chosen].of_best * CKBI_GOOD_SHARE;
    for (uint32_t i = 0; i < answer->row_count; i++)
        if (answer->rows[i].of_best >= enough && answer->rows[i].threads < answer->rows[chosen].threads)
            chosen = i;
    return chosen;
}

static void ckbi_out_percent(ckbi_out *out, double share)
{
    ckbi_out_fixed(out, share * 100.0, 0);
    ckbi_out_text(out, " %");
}

static void ckbi_out_threads(ckbi_out *out, uint32_t threads, const char *one, const char *many)
{
    ckbi_out_number(out, threads);
    ckbi_out_text(out, threads == 1 ? one : many);
}

static void ckbi_answer_sentence(const ckb_qualify_answer *answer, char *text)
{
    const ckb_qualify_row *row = &answer->rows[answer->answer], *fewer = NULL;
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, text, CKB_BENCH_MESSAGE_BYTES);
    bool more = false;
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const ckb_qualify_row *other = &answer->rows[i];
        more = more || other->threads > row->threads;
        if (other->threads < row->threads && (fewer == NULL || other->threads > fewer->threads))
            fewer = other;
    }
    ckbi_out_threads(out, row->threads, " writer thread reaches ", " writer threads reach ");
    ckbi_out_percent(out, row->of_best);
    ckbi_out_text(out, " (");
    ckbi_out_fixed(out, row->of_best_low * 100.0, 0);
    ckbi_out_char(out, '-');
    ckbi_out_percent(out, row->of_best_high);
    ckbi_out_text(out, ") of the best this target gives, and ");
    ckbi_out_percent(out, row->of_ceiling);
    ckbi_out_text(out, " of plain sequential writing");
    if (fewer != NULL) {
        ckbi_out_text(out, "; ");
        ckbi_out_threads(out, fewer->threads, " thread reaches ", " threads reach ");
        ckbi_out_percent(out, fewer->of_best);
    }
    ckbi_out_text(out, more ? "; more threads gain nothing." : ".");
    ckbi_out_end(out);
}

/* Says why the answer is not sure, or nothing. */
static void ckbi_answer_caution(const ckb_bench_report *report, const ckb_qualify_answer *answer, char *text)
{
    const ckb_qualify_row *row = &answer->rows[answer->answer];
    uint64_t shortest_ns = UINT64_MAX;
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, text, CKB_BENCH_MESSAGE_BYTES);
    for (uint32_t i = 0; i < report->result_count; i++)
        if (report->results[i].finished && !report->results[i].raw && !report->results[i].is_log)
            shortest_ns = ckbi_min(shortest_ns, ckbi_result_total_ns(&report->results[i]));
    if (answer->rounds < CKBI_ROUNDS_WANTED) {
        ckbi_out_text(out, "Too little to be sure: only ");
        ckbi_out_threads(out, answer->rounds, " round", " rounds");
        ckbi_out_text(out, " of at least 5; a longer --budget helps.");
    } else if (shortest_ns < CKBI_MEASURED_LEAST_NS / 2) {
        ckbi_out_text(out, "Too little to be sure: the shortest run took ");
        ckbi_out_duration(out, shortest_ns);
        ckbi_out_text(out, "; a larger target or a longer --budget helps.");
    } else if (row->of_best_high - row->of_best_low > 0.15) {
        ckbi_out_text(out, "Not sure: shares differ by ");
        ckbi_out_fixed(out, (row->of_best_high - row->of_best_low) * 100.0, 0);
        ckbi_out_text(out, " points between rounds; the target is uneven or busy, a longer --budget helps.");
    }
    ckbi_out_end(out);
}

static void ckbi_qualify_answer(ckbi_qualify *qualify)
{
    ckb_bench_report *report = qualify->session->report;
    ckb_qualify_answer *answer = &report->answer;
    double ceiling[CKBI_ROUNDS_MAX], unused;
    uint32_t skip;
    if (qualify->rounds == 0)
        return;
    report->has_answer = true;
    answer->rounds = qualify->rounds;
    answer->row_count = qualify->per_round - 1;
    skip = ckbi_rank_interval(answer->rounds, &answer->confidence);
    for (uint32_t i = 0; i < answer->row_count; i++)
        answer->rows[i].threads = (uint32_t)qualify->values[CKBI_QUALIFY_THREADS].number[i];
    for (uint32_t i = 0; i < answer->row_count; i++)
        ckbi_answer_row(report, answer, skip, &answer->rows[i], qualify->values[CKBI_QUALIFY_SIZE].number[0]);
    for (uint32_t r = 0; r < answer->rounds; r++)
        ceiling[r] = ckbi_report_bytes_rate(report, r + 1, 0) / 1048576.0;
    ckbi_shares(ceiling, answer->rounds, skip, &answer->ceiling_mib_per_s, &unused, &unused);
    answer->answer = ckbi_answer_choose(answer);
    ckbi_answer_sentence(answer, report->sentence);
    ckbi_answer_caution(report, answer, report->caution);
    answer->sure = report->caution[0] == '\0';
}

static int ckbi_qualify_writers(ckbi_session *session, const ckb_option_value *values)
{
    ckbi_qualify qualify;
    int status;
    ckbi_fill(&qualify, 0, sizeof qualify);
    qualify.session = session;
    qualify.values = values;
    qualify.budget_ns = values[CKBI_QUALIFY_BUDGET].number[0] / 4;
    qualify.random = values[CKBI_QUALIFY_SEED].number[0];
    qualify.per_round = values[CKBI_QUALIFY_THREADS].count + 1;
    qualify.begin_ns = ckbi_clock_read(&session->clock, session->host);
    qualify.piece = ckbi_arena_take(&session->rest, (size_t)CKBI_CEILING_PIECE, 65536);
    if (qualify.piece == NULL)
        return ckbi_run_report(session, "memory", CKB_INVALID, NULL);
    ckbi_pattern_fill(session->pattern, CKBI_THREADS_MAX, 0, qualify.piece, CKBI_CEILING_PIECE);
    status = ckbi_qualify_room(&qualify);
    if (status == CKB_OK)
        status = ckbi_qualify_calibrate(&qualify);
    if (status == CKB_OK && !session->report->interrupted)
        status = ckbi_qualify_rounds(&qualify);
    ckbi_qualify_answer(&qualify);
    return status;
}

/* ---- which log segments

 * Rounds as above: one run of durable appends for each segment size and thread count. */

#define CKBI_STUDY_ENTRY_BYTES 256u
#define CKBI_STUDY_THREADS 16u /* and 1 */
#define CKBI_STUDY_AHEAD 4u
#define CKBI_STUDY_LEAST_NS 50000000 /* a shorter run says little */
#define CKBI_WAL_ENTRY_BYTES 2300u   /* what etcd writes at a time, by its own recipe for fio */

typedef struct ckbi_study {
    ckbi_session *session;
    const ckb_option_value *values;
    ckb_segment_answer *answer;
    uint64_t begin_ns, budget_ns;
    uint64_t slot_ns; /* of a run */
    uint64_t random;
} ckbi_study;

static void ckbi_study_plan(uint64_t segment_bytes, uint32_t threads, uint64_t size_bytes, uint64_t duration_ns,
                            ckbi_plan *plan)
{
    ckbi_fill(plan, 0, sizeof *plan);
    plan->work = &ckbi_bench_log_work;
    plan->threads = threads;
    plan->size_bytes = plan->size_min_bytes = size_bytes;
    plan->segment_bytes = segment_bytes;
    plan->sync = CKBI_SYNC_EACH;
    plan->sync_every = 1;
    plan->count = plan->distinct = UINT64_MAX;
    plan->duration_ns = duration_ns;
    plan->stall_ns = 100000000;
    plan->ahead = CKBI_STUDY_AHEAD;
}

/* Fits the target and runs. */
static int ckbi_study_execute(ckbi_session *session, ckbi_plan *plan, ckb_bench_result *result)
{
    ckbi_message message;
    int status = plan->work->fit(
        session->host, plan, ckbi_message_start(&message, session->report->message, CKB_BENCH_MESSAGE_BYTES));
    return status == CKB_OK ? ckbi_run_execute(session, plan, result) : status;
}

static uint64_t ckbi_study_used_ns(ckbi_study *study)
{
    return ckbi_clock_read(&study->session->clock, study->session->host) - study->begin_ns;
}

static uint32_t ckbi_study_runs(const ckb_segment_answer *answer)
{
    return answer->row_count * answer->thread_counts;
}

/* Run `place` of a round. */
static int ckbi_study_run(ckbi_study *study, uint32_t place, ckb_bench_result *result)
{
    const ckb_segment_answer *answer = study->answer;
    ckbi_plan plan;
    ckbi_study_plan(answer->rows[place / answer->thread_counts].segment_bytes,
                    answer->threads[place % answer->thread_counts], CKBI_STUDY_ENTRY_BYTES, study->slot_ns,
                    &plan);
    return ckbi_study_execute(study->session, &plan, result);
}

/* A row for each segment size that the target can have. */
static void ckbi_study_rows(ckbi_study *study)
{
    const ckb_option_value *sizes = &study->values[CKBI_QUALIFY_LOG_SEGMENT];
    ckb_segment_answer *answer = study->answer;
    ckbi_message message;
    char text[8];
    answer->threads[0] = 1;
    answer->threads[1] = CKBI_STUDY_THREADS;
    answer->thread_counts = study->session->threaded ? 2 : 1;
    for (uint32_t i = 0; i < sizes->count; i++) {
        ckbi_plan plan;
        ckbi_study_plan(sizes->number[i], 1, CKBI_WAL_ENTRY_BYTES, 1, &plan);
        if (plan.work->fit(study->session->host, &plan, ckbi_message_start(&message, text, sizeof text)) ==
            CKB_OK)
            answer->rows[answer->row_count++].segment_bytes = sizes->number[i];
    }
}

/* One short run tells what a run costs beside what is measured. */
static int ckbi_study_calibrate(ckbi_study *study)
{
    ckb_bench_result result;
    uint64_t wall_ns, slot_ns;
    int status;
    study->slot_ns = CKBI_STUDY_LEAST_NS;
    status = ckbi_study_run(study, 0, &result);
    wall_ns = ckbi_since(ckbi_result_total_ns(&result), ckbi_study_used_ns(study));
    slot_ns = study->budget_ns / 10 * 9 / CKBI_ROUNDS_WANTED / ckbi_study_runs(study->answer);
    study->slot_ns = ckbi_max(ckbi_since(wall_ns, slot_ns), CKBI_STUDY_LEAST_NS);
    return status;
}

static int ckbi_study_round(ckbi_study *study)
{
    ckb_bench_report *report = study->session->report;
    uint32_t order[2 * CKB_SWEEP_MAX], runs = ckbi_study_runs(study->answer);
    ckbi_shuffle(&study->random, order, runs);
    for (uint32_t i = 0; i < runs; i++) {
        ckb_bench_result *result = &report->results[report->result_count++];
        int status = ckbi_study_run(study, order[i], result);
        result->round = study->answer->rounds + 1;
        study->session->run++;
        if (status != CKB_OK || report->interrupted)
            return status;
    }
    study->answer->rounds++;
    return CKB_OK;
}

static int ckbi_study_rounds(ckbi_study *study)
{
    int status = CKB_OK;
    for (uint64_t round_ns = 0; study->answer->rounds < CKBI_ROUNDS_MAX;) {
        uint64_t begin_ns = ckbi_study_used_ns(study);
        if (study->answer->rounds >= 1 && begin_ns + round_ns > study->budget_ns + study->budget_ns / 20)
            break;
        status = ckbi_study_round(study);
        if (status != CKB_OK || study->session->report->interrupted)
            break;
        round_ns = ckbi_study_used_ns(study) - begin_ns;
    }
    return status;
}

/* ---- its answer */

/* What runs of a log can differ in. */
enum {
    CKBI_AXIS_THREADS,
    CKBI_AXIS_SEGMENT,
    CKBI_AXIS_SIZE,
    CKBI_AXIS_SYNC,
    CKBI_AXIS_AHEAD,
    CKBI_AXIS_PREPARE,
    CKBI_AXIS_COUNT
};

#define CKBI_FREE(axis) (1u << (axis))

static bool ckbi_axis_is_equal(uint32_t axis, const ckb_bench_result *a, const ckb_bench_result *b)
{
    switch (axis) {
    case CKBI_AXIS_THREADS:
        return a->threads == b->threads;
    case CKBI_AXIS_SEGMENT:
        return a->segment_bytes == b->segment_bytes;
    case CKBI_AXIS_SIZE:
        return a->size_bytes == b->size_bytes && a->size_min_bytes == b->size_min_bytes;
    case CKBI_AXIS_SYNC:
        return a->sync == b->sync && a->sync_every == b->sync_every &&
               a->sync_interval_ns == b->sync_interval_ns;
    case CKBI_AXIS_AHEAD:
        return a->log.ahead == b->log.ahead;
    default:
        return a->log.prepare == b->log.prepare;
    }
}

/* Complete runs of a log that may differ in the axes that are `free` and in nothing else. */
static bool ckbi_is_alike(const ckb_bench_result *a, const ckb_bench_result *b, uint32_t free)
{
    if (!a->is_log || !b->is_log || !a->finished || !b->finished)
        return false;
    for (uint32_t axis = 0; axis < CKBI_AXIS_COUNT; axis++)
        if ((free & CKBI_FREE(axis)) == 0 && !ckbi_axis_is_equal(axis, a, b))
            return false;
    return true;
}

static const ckb_bench_result *ckbi_study_find(const ckb_bench_report *report, const ckb_segment_answer *answer,
                                               uint32_t round, uint64_t segment_bytes, uint32_t threads)
{
    const ckb_bench_result *reference = &report->results[answer->reference];
    for (uint32_t i = answer->reference; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (result->round == reference->round + round && result->segment_bytes == segment_bytes &&
            result->threads == threads &&
            ckbi_is_alike(result, reference, CKBI_FREE(CKBI_AXIS_THREADS) | CKBI_FREE(CKBI_AXIS_SEGMENT)))
            return result;
    }
    return NULL;
}

static double ckbi_result_rate(const ckb_bench_result *result)
{
    return result == NULL ? 0.0 : ckbi_per_second(result->operations, ckbi_result_total_ns(result));
}

static double ckbi_study_rate(const ckb_bench_report *report, const ckb_segment_answer *answer, uint32_t round,
                              uint64_t segment_bytes, uint32_t threads)
{
    return ckbi_result_rate(ckbi_study_find(report, answer, round, segment_bytes, threads));
}

/* What else is known of a row, as medians; what was not seen in a round does not count. */
static void ckbi_study_why(const ckb_bench_report *report, const ckb_segment_answer *answer,
                           ckb_segment_row *row, uint32_t which)
{
    double values[4][CKBI_ROUNDS_MAX], low, high;
    double *const medians[4] = {&row->entries_per_sync[which], &row->roll_ns[which], &row->other_ns[which],
                                &row->disk_wait_ms[which]};
    uint32_t counts[4] = {0, 0, 0, 0};
    for (uint32_t r = 0; r < answer->rounds; r++) {
        const ckb_bench_result *result =
            ckbi_study_find(report, answer, r, row->segment_bytes, answer->threads[which]);
        if (result == NULL)
            continue;
        values[0][counts[0]++] = ckbi_quotient((double)result->operations, (double)result->log.commits);
        if (result->log.rolled.count != 0)
            values[1][counts[1]++] = (double)result->log.rolled.p50;
        values[2][counts[2]++] = (double)result->log.others.p50;
        if (result->log.disk.name[0] != '\0')
            values[3][counts[3]++] = result->log.disk.wait_ms;
    }
    for (uint32_t i = 0; i < 4; i++)
        if (counts[i] != 0)
            ckbi_shares(values[i], counts[i], 0, medians[i], &low, &high);
}

/* The row whose rate was the best, by the median. */
static uint32_t ckbi_study_best(const ckb_segment_answer *answer, uint32_t which)
{
    uint32_t best = 0;
    for (uint32_t i = 1; i < answer->row_count; i++)
        if (answer->rows[i].rate_per_s[which] > answer->rows[best].rate_per_s[which])
            best = i;
    return best;
}

static void ckbi_study_rates(const ckb_bench_report *report, ckb_segment_answer *answer, uint32_t which)
{
    double rate[CKBI_ROUNDS_MAX], low, high;
    for (uint32_t i = 0; i < answer->row_count; i++) {
        for (uint32_t r = 0; r < answer->rounds; r++)
            rate[r] = ckbi_study_rate(report, answer, r, answer->rows[i].segment_bytes, answer->threads[which]);
        ckbi_shares(rate, answer->rounds, 0, &answer->rows[i].rate_per_s[which], &low, &high);
    }
}

/* Shares of the best row, which itself has 100 % in each round; others may have more in some. */
static void ckbi_study_shares(const ckb_bench_report *report, ckb_segment_answer *answer, uint32_t skip,
                              uint32_t which)
{
    uint64_t best_bytes = answer->rows[ckbi_study_best(answer, which)].segment_bytes;
    double share[CKBI_ROUNDS_MAX];
    for (uint32_t i = 0; i < answer->row_count; i++) {
        ckb_segment_row *row = &answer->rows[i];
        for (uint32_t r = 0; r < answer->rounds; r++)
            share[r] =
                ckbi_quotient(ckbi_study_rate(report, answer, r, row->segment_bytes, answer->threads[which]),
                              ckbi_study_rate(report, answer, r, best_bytes, answer->threads[which]));
        ckbi_shares(share, answer->rounds, skip, &row->of_best[which], &row->of_best_low[which],
                    &row->of_best_high[which]);
    }
}

/* The worse of a row's shares. */
static double ckbi_study_worst(const ckb_segment_answer *answer, uint32_t place)
{
    const ckb_segment_row *row = &answer->rows[place];
    double worst = row->of_best[0];
    if (answer->thread_counts == 2 && row->of_best[1] < worst)
        worst = row->of_best[1];
    return worst;
}

/* The smallest segments that are good enough with either thread count; when none are, those whose worse
 * share is the best. */
static uint32_t ckbi_study_choose(const ckb_segment_answer *answer)
{
    uint32_t chosen = 0;
    for (uint32_t i = 1; i < answer->row_count; i++) {
        double own = ckbi_study_worst(answer, i), best = ckbi_study_worst(answer, chosen);
        bool smaller = answer->rows[i].segment_bytes < answer->rows[chosen].segment_bytes;
        if (own >= CKBI_GOOD_SHARE ? best < CKBI_GOOD_SHARE || smaller : own > best)
            chosen = i;
    }
    return chosen;
}

/* The next smaller row; null when there is none. */
static const ckb_segment_row *ckbi_study_smaller(const ckb_segment_answer *answer)
{
    const ckb_segment_row *smaller = NULL;
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const ckb_segment_row *row = &answer->rows[i];
        if (row->segment_bytes < answer->rows[answer->answer].segment_bytes &&
            (smaller == NULL || row->segment_bytes > smaller->segment_bytes))
            smaller = row;
    }
    return smaller;
}

static void ckbi_out_instead(ckbi_out *out, const char *instead, double value, bool duration)
{
    ckbi_out_text(out, instead);
    if (duration)
        ckbi_out_duration(out, (uint64_t)value);
    else
        ckbi_out_three(out, value);
}

/* Why a row is as it is, with the chosen one's figures beside it unless they are the same. */
static void ckbi_study_reason(ckbi_out *out, const ckb_segment_answer *answer, const ckb_segment_row *row,
                              const ckb_segment_row *chosen)
{
    uint32_t which = answer->thread_counts - 1;
    const char *instead = row == chosen ? NULL : " instead of ";
    ckbi_out_three(out, row->entries_per_sync[which]);
    if (instead != NULL)
        ckbi_out_instead(out, instead, chosen->entries_per_sync[which], false);
    ckbi_out_text(out, " entries per sync with ");
    ckbi_out_threads(out, answer->threads[which], " thread", " threads");
    if (row->roll_ns[0] > 0.0) {
        ckbi_out_text(out, ", an append that rolls takes ");
        ckbi_out_duration(out, (uint64_t)row->roll_ns[0]);
        ckbi_out_instead(out, " and another one ", row->other_ns[0], true);
    }
    if (row->disk_wait_ms[0] > 0.0) {
        ckbi_out_text(out, ", await ");
        ckbi_out_three(out, row->disk_wait_ms[0]);
        if (instead != NULL)
            ckbi_out_instead(out, instead, chosen->disk_wait_ms[0], false);
        ckbi_out_text(out, " ms");
    }
}

static void ckbi_study_sentence(ckb_segment_answer *answer)
{
    const ckb_segment_row *row = &answer->rows[answer->answer], *smaller = ckbi_study_smaller(answer);
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, answer->sentence, CKB_BENCH_MESSAGE_BYTES);
    ckbi_out_text(out, "Log segments of ");
    ckbi_out_size(out, row->segment_bytes);
    ckbi_out_text(out, ckbi_study_worst(answer, answer->answer) >= CKBI_GOOD_SHARE
                           ? " are the smallest within 5 % of the best for durable appends: "
                           : " are the best compromise, none come within 5 % of the best with both: ");
    for (uint32_t which = 0; which < answer->thread_counts; which++) {
        ckbi_out_text(out, which == 0 ? "" : ", ");
        ckbi_out_percent(out, row->of_best[which]);
        ckbi_out_text(out, " (");
        if (answer->rounds == 1) {
            ckbi_out_three(out, row->rate_per_s[which]);
            ckbi_out_text(out, "/s");
        } else {
            ckbi_out_fixed(out, row->of_best_low[which] * 100.0, 0);
            ckbi_out_char(out, '-');
            ckbi_out_percent(out, row->of_best_high[which]);
        }
        ckbi_out_text(out, ") with ");
        ckbi_out_threads(out, answer->threads[which], " thread", " threads");
    }
    if (smaller != NULL) {
        ckbi_out_text(out, "; ");
        ckbi_out_size(out, smaller->segment_bytes);
        ckbi_out_text(out, " reach ");
        for (uint32_t which = 0; which < answer->thread_counts; which++) {
            ckbi_out_text(out, which == 0 ? "" : " and ");
            ckbi_out_percent(out, smaller->of_best[which]);
        }
    }
    ckbi_out_text(out, ": ");
    ckbi_study_reason(out, answer, smaller != NULL ? smaller : row, row);
    ckbi_out_char(out, '.');
    ckbi_out_end(out);
}

static void ckbi_study_caution(const ckbi_study *study)
{
    ckb_segment_answer *answer = study->answer;
    const ckb_segment_row *row = &answer->rows[answer->answer];
    double widest = 0.0;
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, answer->caution, CKB_BENCH_MESSAGE_BYTES);
    for (uint32_t which = 0; which < answer->thread_counts; which++) {
        double width = row->of_best_high[which] - row->of_best_low[which];
        widest = width > widest ? width : widest;
    }
    if (answer->rounds < CKBI_ROUNDS_WANTED) {
        ckbi_out_text(out, "Too little to be sure: only ");
        ckbi_out_threads(out, answer->rounds, " round", " rounds");
        ckbi_out_text(out, " of at least 5; a longer --budget helps.");
    } else if (widest > 0.15) {
        ckbi_out_text(out, "Not sure: shares differ by ");
        ckbi_out_fixed(out, widest * 100.0, 0);
        ckbi_out_text(out, " points between rounds; the target is uneven or busy, a longer --budget helps.");
    }
    ckbi_out_end(out);
    answer->sure = answer->caution[0] == '\0';
}

/* From the rounds to the row that is the answer, and its sentence. */
static void ckbi_study_conclude(ckb_bench_report *report, ckb_segment_answer *answer)
{
    uint32_t skip = ckbi_rank_interval(answer->rounds, &answer->confidence);
    report->has_segment_answer = true;
    for (uint32_t which = 0; which < answer->thread_counts; which++) {
        ckbi_study_rates(report, answer, which);
        ckbi_study_shares(report, answer, skip, which);
        for (uint32_t i = 0; i < answer->row_count; i++)
            ckbi_study_why(report, answer, &answer->rows[i], which);
    }
    answer->answer = ckbi_study_choose(answer);
    ckbi_study_sentence(answer);
}

static int ckbi_qualify_segments(ckbi_session *session, const ckb_option_value *values)
{
    ckbi_study study;
    int status;
    ckbi_fill(&study, 0, sizeof study);
    study.session = session;
    study.values = values;
    study.answer = &session->report->segment_answer;
    study.answer->reference = session->report->result_count;
    study.budget_ns = values[CKBI_QUALIFY_BUDGET].number[0] / 4;
    study.random = values[CKBI_QUALIFY_SEED].number[0];
    study.begin_ns = ckbi_clock_read(&session->clock, session->host);
    ckbi_study_rows(&study);
    if (study.answer->row_count == 0)
        return ckbi_run_report(session, "room for a log", CKB_NOSPACE, NULL);
    status = ckbi_study_calibrate(&study);
    if (status == CKB_OK && !session->report->interrupted)
        status = ckbi_study_rounds(&study);
    if (study.answer->rounds != 0) {
        ckbi_study_conclude(session->report, study.answer);
        ckbi_study_caution(&study);
    }
    return status;
}

/* ---- fit for a WAL? */

static void ckbi_wal_sentence(const ckb_bench_report *report, ckb_wal_answer *answer)
{
    bool lasts = !report->host->target->volatile_medium;
    double margin = answer->latency.p99 < CKB_WAL_P99_NS
                        ? ckbi_quotient((double)CKB_WAL_P99_NS, (double)answer->latency.p99)
                        : (double)answer->latency.p99 / (double)CKB_WAL_P99_NS;
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, answer->sentence, CKB_BENCH_MESSAGE_BYTES);
    ckbi_out_text(out, answer->pass ? "Fit for a WAL: yes. " : "Fit for a WAL: no. ");
    if (!lasts)
        ckbi_out_text(out, "Nothing on this target survives power loss, however fast it is: ");
    ckbi_out_text(out,
                  answer->sizes_vary ? "99 of 100 durable appends of up to " : "99 of 100 durable appends of ");
    ckbi_out_size(out, answer->size_bytes);
    ckbi_out_text(out, " took up to ");
    ckbi_out_duration(out, answer->latency.p99);
    ckbi_out_text(out, " (");
    ckbi_out_duration(out, answer->p99_low);
    ckbi_out_char(out, '-');
    ckbi_out_duration(out, answer->p99_high);
    ckbi_out_text(out, "), ");
    ckbi_out_three(out, margin);
    ckbi_out_text(out, answer->latency.p99 < CKB_WAL_P99_NS ? " times less than the " : " times the ");
    ckbi_out_duration(out, CKB_WAL_P99_NS);
    ckbi_out_text(out, " that etcd allows; p50 ");
    ckbi_out_duration(out, answer->latency.p50);
    ckbi_out_text(out, ", p99.9 ");
    ckbi_out_duration(out, answer->latency.p999);
    ckbi_out_text(out, ", which ");
    ckbi_out_number(out, answer->slower_than_p999);
    ckbi_out_text(out, " of ");
    ckbi_out_number(out, answer->latency.count);
    ckbi_out_text(out, " samples exceed.");
    ckbi_out_end(out);
}

/* `enough` and `longer` are the options that help. */
static void ckbi_wal_caution(ckb_wal_answer *answer, const char *enough, const char *longer)
{
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, answer->caution, CKB_BENCH_MESSAGE_BYTES);
    const char *help = longer;
    if (answer->measured_ns < CKB_WAL_DURATION_NS / 100 * 99) {
        ckbi_out_text(out, "Too little to be sure: only ");
        ckbi_out_duration(out, answer->measured_ns);
        ckbi_out_text(out, " were measured, at least ");
        ckbi_out_duration(out, CKB_WAL_DURATION_NS);
        ckbi_out_text(out, " are wanted; ");
        help = enough;
    } else if (answer->p99_low < CKB_WAL_P99_NS && answer->p99_high >= CKB_WAL_P99_NS) {
        ckbi_out_text(out, "Not sure: the limit lies within what the p99 may be; ");
    } else if (answer->slower_than_p999 < 10) {
        ckbi_out_text(out, "The p99.9 rests on fewer than 10 samples; ");
    } else {
        help = "";
    }
    ckbi_out_text(out, help);
    ckbi_out_end(out);
    answer->sure = answer->caution[0] == '\0';
}

static void ckbi_wal_answer(ckb_bench_report *report, const ckb_bench_result *result, const char *enough,
                            const char *longer)
{
    ckb_wal_answer *answer = &report->wal_answer;
    report->has_wal_answer = result->durable_latency.count != 0;
    if (!report->has_wal_answer)
        return;
    answer->sizes_vary = result->size_min_bytes != result->size_bytes;
    answer->size_bytes = result->size_bytes;
    answer->segment_bytes = result->segment_bytes;
    answer->measured_ns = result->elapsed_ns;
    answer->latency = result->durable_latency;
    answer->p99_low = result->log.p99_low;
    answer->p99_high = result->log.p99_high;
    answer->slower_than_p999 = answer->latency.count / 1000;
    answer->pass = answer->latency.p99 < CKB_WAL_P99_NS && !report->host->target->volatile_medium;
    ckbi_wal_sentence(report, answer);
    ckbi_wal_caution(answer, enough, longer);
}

/* Half of the budget, in segments of the size that the question before found. */
static int ckbi_qualify_wal(ckbi_session *session, const ckb_option_value *values)
{
    ckb_bench_report *report = session->report;
    const ckb_segment_answer *segments = &report->segment_answer;
    ckb_bench_result *result = &report->results[report->result_count];
    ckbi_plan plan;
    int status;
    ckbi_study_plan(segments->rows[segments->answer].segment_bytes, 1, CKBI_WAL_ENTRY_BYTES,
                    values[CKBI_QUALIFY_BUDGET].number[0] / 2, &plan);
    status = ckbi_study_execute(session, &plan, result);
    report->result_count++;
    session->run++;
    if (status == CKB_OK && !report->interrupted)
        ckbi_wal_answer(report, result, "a --budget of 1m gives them.", "a longer --budget helps.");
    report->failed = report->failed || (report->has_wal_answer && !report->wal_answer.pass);
    return status;
}

/* ---- the same questions, asked of a sweep of `log`

 * A sweep is one round, and shows of it what was run: the segment sizes that are comparable with the first
 * durable run, and the fewest and the most threads. */

/* The first run that made entries durable; null: none did. */
static const ckb_bench_result *ckbi_log_reference(const ckb_bench_report *report)
{
    for (uint32_t i = 0; i < report->result_count; i++)
        if (report->results[i].finished && report->results[i].durable_latency.count != 0)
            return &report->results[i];
    return NULL;
}

/* The fewest and the most threads of runs like the reference. */
static void ckbi_log_thread_counts(const ckb_bench_report *report, ckb_segment_answer *answer)
{
    const ckb_bench_result *reference = &report->results[answer->reference];
    answer->threads[0] = answer->threads[1] = reference->threads;
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (!ckbi_is_alike(result, reference, CKBI_FREE(CKBI_AXIS_THREADS)))
            continue;
        if (result->threads < answer->threads[0])
            answer->threads[0] = result->threads;
        if (result->threads > answer->threads[1])
            answer->threads[1] = result->threads;
    }
    answer->thread_counts = answer->threads[0] == answer->threads[1] ? 1 : 2;
}

/* A row for each segment size that was run with these thread counts. */
static void ckbi_log_rows(const ckb_bench_report *report, ckb_segment_answer *answer)
{
    for (uint32_t i = 0; i < report->result_count && answer->row_count < CKB_SWEEP_MAX; i++) {
        uint64_t segment_bytes = report->results[i].segment_bytes;
        bool wanted = true;
        for (uint32_t row = 0; row < answer->row_count; row++)
            wanted = wanted && answer->rows[row].segment_bytes != segment_bytes;
        for (uint32_t which = 0; which < answer->thread_counts; which++)
            wanted =
                wanted && ckbi_study_find(report, answer, 0, segment_bytes, answer->threads[which]) != NULL;
        if (wanted)
            answer->rows[answer->row_count++].segment_bytes = segment_bytes;
    }
}

/* The run that etcd's rule is about: one thread, each append durable before the next one. Null: there is none. */
static const ckb_bench_result *ckbi_log_find_wal(const ckb_bench_report *report,
                                                 const ckb_bench_result *reference, uint64_t segment_bytes)
{
    const uint32_t free =
        CKBI_FREE(CKBI_AXIS_THREADS) | CKBI_FREE(CKBI_AXIS_SEGMENT) | CKBI_FREE(CKBI_AXIS_SYNC);
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (result->segment_bytes == segment_bytes && result->sync_every == 1 && result->threads == 1 &&
            result->rate_limit_milli == 0 && ckbi_is_alike(result, reference, free))
            return result;
    }
    return NULL;
}

static void ckbi_log_answer(ckb_bench_report *report)
{
    const ckb_bench_result *reference = ckbi_log_reference(report), *wal;
    ckb_segment_answer *answer = &report->segment_answer;
    if (reference == NULL)
        return;
    answer->reference = (uint32_t)(reference - report->results);
    answer->rounds = 1;
    ckbi_log_thread_counts(report, answer);
    ckbi_log_rows(report, answer);
    if (answer->row_count > 1) {
        ckbi_study_conclude(report, answer);
        ckbi_message_set(answer->caution, sizeof answer->caution,
                         "One run each: small differences may be chance; qualify repeats them in rounds.");
    }
    wal = ckbi_log_find_wal(report, reference, answer->rows[answer->answer].segment_bytes);
    if (wal != NULL)
        ckbi_wal_answer(report, wal, "--duration 30s gives them.", "a longer --duration helps.");
}

static int ckbi_qualify_execute(ckbi_session *session, const ckb_option_value *values)
{
    int status = ckbi_qualify_writers(session, values);
    if (status == CKB_OK && !session->report->interrupted)
        status = ckbi_qualify_segments(session, values);
    if (status == CKB_OK && !session->report->interrupted)
        status = ckbi_qualify_wal(session, values);
    return status;
}

/* --------------------------------------------------------------------------------------------- >>teragen-workload
 * The workload `teragen`: mappers, one thread each, write their range of rows through a block stream of their
 * own, each row in two writes. Rows are made and summed outside of what is timed as writing; a clock around
 * each call would cost more than the call, so the time of a batch is taken. */

enum {
    CKBI_TERAGEN_ROWS,
    CKBI_TERAGEN_START,
    CKBI_TERAGEN_MAPPERS,
    CKBI_TERAGEN_CHUNK,
    CKBI_TERAGEN_SYNC,
    CKBI_TERAGEN_SEGMENT,
    CKBI_TERAGEN_VERIFY,
    CKBI_TERAGEN_BUFFER,
    CKBI_TERAGEN_OPTIONS
};

static const ckb_option ckbi_teragen_options[CKBI_TERAGEN_OPTIONS] = {
    {"rows", 'n', CKB_OPTION_COUNT, false, "COUNT", "1000000", 1, CKBI_COUNT_MAX, NULL,
     "rows of 100 bytes per run, over all mappers"},
    {"start-row", '\0', CKB_OPTION_COUNT, false, "ROW", "0", 0, CKBI_COUNT_MAX, NULL,
     "number of the first row; the generator skips what is before it"},
    {"mappers", 'm', CKB_OPTION_COUNT, true, "LIST", "2", 1, CKBI_THREADS_MAX, NULL,
     "mappers, one thread and one block each; one run for each in the list"},
    {"chunk", 's', CKB_OPTION_SIZE, true, "LIST", "4M", 512, UINT64_C(1) << 30, NULL,
     "bytes that a stream buffers and writes as one chunk"},
    {"sync", '\0', CKB_OPTION_CHOICE, true, "LIST", "end", 1, CKBI_COUNT_MAX, "none|end",
     "when rows become durable: never, at the end, or by an hsync of each mapper after every N"},
    {"segment", '\0', CKB_OPTION_SIZE, true, "LIST", NULL, 4096, UINT64_C(1) << 33, NULL,
     "bytes per segment; by default such that whole chunks fill one"},
    {"verify", '\0', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL,
     "mount again after each run, read all rows back and sum them again"},
    {"buffer", '\0', CKB_OPTION_SIZE, false, "SIZE", NULL, 4096, UINT64_C(1) << 30, NULL,
     "bytes of each of a writer's two buffers; by default the library's choice"},
};

#define CKBI_TERAGEN_BATCH 64u /* rows made ahead of the clock; they stay in the first cache */
#define CKBI_TERAGEN_BATCH_BYTES (CKBI_TERAGEN_BATCH * CKB_TERAGEN_ROW_BYTES)

/* What a lane of this workload has besides. */
typedef struct ckbi_mapper {
    ckb_stream *stream; /* null: not open */
    uint8_t *memory, *rows;
    uint64_t hsync_due; /* rows until the next hsync */
    ckb_teragen teragen;
    ckb_teragen_sum sum;
    ckb_stream_use use;
} ckbi_mapper;

static uint64_t ckbi_mapper_first_row(const ckbi_plan *plan, uint32_t number)
{
    uint64_t share = plan->count / plan->threads * number + ckbi_min(number, plan->count % plan->threads);
    return plan->first_row + share;
}

static ckb_chunk_id ckbi_mapper_id(const ckbi_lane *lane)
{
    ckb_chunk_id id = {(uint64_t)lane->number + 1, 0, 0};
    ckb_stream_info info;
    if (lane->mapper->stream != NULL) {
        ckb_stream_stat(lane->mapper->stream, &info);
        id.chunk = info.chunks;
    }
    return id;
}

static bool ckbi_mapper_failed(ckbi_lane *lane, const char *action, int status)
{
    ckb_chunk_id id = ckbi_mapper_id(lane);
    CKBI_STORE(&lane->failures, lane->failures + 1);
    ckbi_run_fail(lane->run, lane->number, &id, action, status);
    return false;
}

/* The time since the lane's mark, which moves on. */
static uint64_t ckbi_lane_lap(ckbi_lane *lane)
{
    uint64_t before_ns = lane->mark_ns;
    lane->mark_ns = ckbi_clock_read(&lane->clock, lane->run->session->host);
    return lane->mark_ns - before_ns;
}

/* Each row is a key and a value. */
static int ckbi_mapper_write_rows(ckb_stream *stream, const uint8_t *rows, size_t count, uint64_t *calls)
{
    for (size_t i = 0; i < count; i++, rows += CKB_TERAGEN_ROW_BYTES) {
        int status = ckb_stream_write(stream, rows, CKB_TERAGEN_KEY_BYTES);
        *calls += 1;
        if (status != CKB_OK)
            return status;
        status = ckb_stream_write(stream, rows + CKB_TERAGEN_KEY_BYTES,
                                  CKB_TERAGEN_ROW_BYTES - CKB_TERAGEN_KEY_BYTES);
        *calls += 1;
        if (status != CKB_OK)
            return status;
    }
    return CKB_OK;
}

static bool ckbi_mapper_batch(ckbi_lane *lane)
{
    ckbi_mapper *m = lane->mapper;
    const ckbi_plan *plan = lane->run->plan;
    size_t count = (size_t)ckbi_min(ckbi_min(CKBI_TERAGEN_BATCH, lane->share - lane->tried), m->hsync_due);
    ckb_teragen_make(&m->teragen, m->rows, count);
    ckb_teragen_add(&m->sum, lane->run->session->crc32, m->rows, count);
    (void)ckbi_lane_lap(lane);
    int status = ckbi_mapper_write_rows(m->stream, m->rows, count, &m->use.write_calls);
    m->use.write_ns += ckbi_lane_lap(lane);
    lane->tried += count;
    if (status != CKB_OK)
        return ckbi_mapper_failed(lane, "write", status);
    m->hsync_due -= count;
    if (m->hsync_due == 0) {
        status = ckb_stream_hsync(m->stream);
        m->use.hsync_ns += ckbi_lane_lap(lane);
        m->use.hsync_calls++;
        m->hsync_due = plan->hsync_rows;
        if (status != CKB_OK)
            return ckbi_mapper_failed(lane, "hsync", status);
    }
    CKBI_STORE(&lane->done, lane->done + count);
    return true;
}

static void ckbi_teragen_loop(ckbi_lane *lane)
{
    ckbi_run *run = lane->run;
    ckbi_mapper *m = lane->mapper;
    bool good = true;
    m->use.first_row = ckbi_mapper_first_row(run->plan, lane->number);
    m->hsync_due = run->plan->hsync_rows != 0 ? run->plan->hsync_rows : UINT64_MAX;
    ckb_teragen_seek(&m->teragen, m->use.first_row);
    while (good && lane->tried < lane->share && CKBI_LOAD(&run->stop) == 0) {
        good = ckbi_mapper_batch(lane);
        ckbi_lane_serve(lane);
    }
    if (!good)
        return;
    /* Also when the run was interrupted: what was written until then is a whole block. */
    (void)ckbi_lane_lap(lane);
    int status = ckb_stream_close(m->stream, 0);
    m->use.close_ns = ckbi_lane_lap(lane);
    m->use.close_calls = 1;
    if (status != CKB_OK)
        (void)ckbi_mapper_failed(lane, "close", status);
}

/* ---- before and after the threads */

static ckb_stream_config ckbi_plan_stream(const ckbi_plan *plan)
{
    ckb_stream_config config = {(size_t)plan->chunk_bytes};
    return config;
}

static bool ckbi_teragen_carve(ckbi_run *run, ckbi_arena *arena)
{
    const ckbi_plan *plan = run->plan;
    ckb_stream_config config = ckbi_plan_stream(plan);
    size_t bytes = ckb_stream_memory(&plan->geometry, &config);
    if (bytes == 0 || !ckbi_chunk_carve(run, arena))
        return false;
    for (uint32_t i = 0; i < plan->threads; i++) {
        ckbi_mapper *m = ckbi_arena_take(arena, sizeof *m, 64);
        uint8_t *memory = ckbi_arena_take(arena, bytes, 64);
        uint8_t *rows = ckbi_arena_take(arena, CKBI_TERAGEN_BATCH_BYTES, 64);
        if (arena->end == NULL)
            continue;
        if (m == NULL || memory == NULL || rows == NULL)
            return false;
        ckbi_fill(m, 0, sizeof *m);
        m->memory = memory;
        m->rows = rows;
        run->lanes[i].mapper = m;
    }
    if (plan->verify) {
        run->reader_bytes = ckb_stream_cursor_memory(&plan->geometry, 0);
        run->reader_memory = ckbi_arena_take(arena, run->reader_bytes, 64);
    }
    return true;
}

static int ckbi_teragen_open(ckbi_run *run)
{
    const ckbi_plan *plan = run->plan;
    ckb_stream_config config = ckbi_plan_stream(plan);
    size_t bytes = ckb_stream_memory(&plan->geometry, &config);
    int status = ckbi_chunk_open(run);
    for (uint32_t i = 0; i < plan->threads && status == CKB_OK; i++) {
        ckbi_lane *lane = &run->lanes[i];
        status = ckb_stream_open(lane->writer, (uint64_t)i + 1, 0, &config, 0, lane->mapper->memory, bytes,
                                 &lane->mapper->stream);
    }
    return status;
}

static void ckbi_teragen_merge(ckbi_run *run, ckb_bench_result *result)
{
    ckb_teragen_result *t = &result->teragen;
    ckb_stream_use *streams = run->session->streams + run->session->stream_count;
    result->bytes = result->operations * CKB_TERAGEN_ROW_BYTES;
    result->sync_every = run->plan->hsync_rows;
    t->streams = streams;
    t->stream_count = run->lane_count;
    for (uint32_t i = 0; i < run->lane_count; i++) {
        ckbi_mapper *m = run->lanes[i].mapper;
        ckbi_wide sum = {t->sum.low, t->sum.high}, more = {m->sum.low, m->sum.high};
        m->use.rows = run->lanes[i].done;
        m->use.chunks = ckbi_mapper_id(&run->lanes[i]).chunk;
        streams[i] = m->use;
        sum = ckbi_wide_sum(sum, more);
        t->sum.low = sum.low;
        t->sum.high = sum.high;
        t->chunks += m->use.chunks;
        t->write_calls += m->use.write_calls;
        t->write_ns += m->use.write_ns;
    }
    run->session->stream_count += run->lane_count;
}

/* Reads a mapper's rows and adds them up. Returns why the reading ended. */
static int ckbi_mapper_read_back(ckbi_lane *lane, ckb_teragen_sum *sum, uint64_t *bytes)
{
    ckbi_run *run = lane->run;
    ckb_stream_cursor *cursor;
    size_t got = CKBI_TERAGEN_BATCH_BYTES;
    int status = ckb_stream_cursor_open(run->volume, (uint64_t)lane->number + 1, 0, run->reader_memory,
                                        run->reader_bytes, &cursor);
    while (status == CKB_OK && !ckbi_is_interrupted(run->session)) {
        status = ckb_stream_read(cursor, lane->mapper->rows, CKBI_TERAGEN_BATCH_BYTES, &got);
        ckb_teragen_add(sum, run->session->crc32, lane->mapper->rows, got / CKB_TERAGEN_ROW_BYTES);
        *bytes += got;
        if (status == CKB_OK && got % CKB_TERAGEN_ROW_BYTES != 0)
            status = CKB_CORRUPT;
    }
    if (status != CKB_OK && status != CKB_END) {
        ckb_chunk_id id;
        ckb_stream_cursor_fault(cursor, &id, &run->failure_fault);
    }
    return status;
}

static int ckbi_teragen_verify(ckbi_run *run, ckb_bench_result *result)
{
    for (uint32_t i = 0; i < run->lane_count && !run->session->report->interrupted; i++) {
        ckbi_lane *lane = &run->lanes[i];
        ckb_teragen_sum sum = {0, 0};
        uint64_t bytes = 0, rows;
        int status = ckbi_mapper_read_back(lane, &sum, &bytes);
        rows = bytes / CKB_TERAGEN_ROW_BYTES;
        if (run->session->report->interrupted)
            break;
        if (status == CKB_END && rows == lane->done && sum.low == lane->mapper->sum.low &&
            sum.high == lane->mapper->sum.high) {
            result->verified += rows;
            continue;
        }
        ckb_chunk_id id = ckbi_mapper_id(lane);
        result->verify_failures += rows < lane->done ? lane->done - rows : 1;
        ckbi_run_fail(run, i, &id, "verify", status == CKB_END ? CKB_CORRUPT : status);
    }
    return CKB_OK;
}

/* ---- from options to plans */

/* What a run of this plan takes of segments; also how many chunks it has. */
static uint64_t ckbi_teragen_segments(ckbi_plan *plan)
{
    uint64_t share = (plan->count + plan->threads - 1) / plan->threads * CKB_TERAGEN_ROW_BYTES;
    uint64_t group = plan->hsync_rows != 0 ? ckbi_min(plan->hsync_rows * CKB_TERAGEN_ROW_BYTES, share) : share;
    uint64_t chunks =
        (group + plan->chunk_bytes - 1) / plan->chunk_bytes * ((share + group - 1) / group) + 1 /* the end */;
    ckbi_plan as_chunks = *plan;
    as_chunks.size_bytes = ckbi_min(plan->chunk_bytes, group);
    as_chunks.sync_every = plan->hsync_rows != 0;
    plan->need.max_chunks = chunks * plan->threads;
    /* Two for the journal, two kept back, some prepared; one begun by each writer comes on top. */
    return (chunks / ckbi_plan_chunks_per_segment(&as_chunks) + 1) * plan->threads + 4 +
           plan->need.prepare_ahead;
}

static int ckbi_teragen_describe(const ckb_bench_host *host, ckbi_plan *plan, uint64_t *room_bytes,
                                 ckbi_out *out)
{
    const ckb_bench_target *target = host->target;
    int status = target->describe(target->context, &plan->need, &plan->geometry, room_bytes);
    if (status != CKB_OK) {
        ckbi_out_text(out, ckb_status_text(status));
        ckbi_out_end(out);
    }
    return status;
}

#define CKBI_TERAGEN_SEGMENT_UNIT 65536u

/* Segments of four whole chunks, since a power of two would hold three; or of fewer, or the target's choice,
 * where there would be too few of them. */
static uint64_t ckbi_teragen_segment_bytes(const ckbi_plan *plan, uint64_t room_bytes)
{
    uint64_t chunk = plan->chunk_bytes + plan->chunk_bytes / CKB_WINDOW_BYTES * 4 + 16384;
    for (uint64_t chunks = 4; chunks > 0; chunks /= 2) {
        uint64_t bytes = ckbi_align_up(chunks * chunk + CKBI_TERAGEN_SEGMENT_UNIT, CKBI_TERAGEN_SEGMENT_UNIT);
        if (room_bytes / bytes >= 16 + 2 * (uint64_t)plan->threads)
            return bytes;
    }
    return 0;
}

static int ckbi_refuse_rows(const ckb_bench_host *host, const ckbi_plan *plan, uint64_t room_bytes,
                            ckbi_out *out)
{
    ckbi_out_number(out, plan->count);
    ckbi_out_text(out, " rows of 100 B and ");
    ckbi_out_threads(out, plan->threads, " mapper", " mappers");
    ckbi_out_text(out, " need ");
    ckbi_out_size(out, plan->need.data_bytes);
    ckbi_out_text(out, " in segments of ");
    ckbi_out_size(out, plan->geometry.segment_bytes);
    ckbi_out_text(out, "; ");
    ckbi_out_text(out, host->target->name);
    ckbi_out_text(out, " has room for ");
    ckbi_out_size(out, room_bytes);
    ckbi_out_end(out);
    return CKB_NOSPACE;
}

static int ckbi_refuse_stream_chunk(const ckbi_plan *plan, uint64_t most, ckbi_out *out)
{
    ckbi_out_text(out, "--chunk: ");
    ckbi_out_number(out, plan->chunk_bytes);
    ckbi_out_text(out, " bytes; segments of ");
    ckbi_out_number(out, plan->geometry.segment_bytes);
    ckbi_out_text(out, " bytes hold chunks of up to ");
    ckbi_out_number(out, most);
    ckbi_out_end(out);
    return CKB_INVALID;
}

static int ckbi_teragen_fit(const ckb_bench_host *host, ckbi_plan *plan, ckbi_out *out)
{
    ckb_bench_need *need = &plan->need;
    uint64_t room_bytes = 0, most;
    ckbi_fill(need, 0, sizeof *need);
    need->segment_bytes = plan->segment_bytes;
    need->max_containers = plan->threads;
    need->max_writers = plan->threads;
    need->prepare_ahead = (uint32_t)ckbi_min(plan->threads + 1, 16);
    int status = ckbi_teragen_describe(host, plan, &room_bytes, out);
    if (status == CKB_OK && need->segment_bytes == 0) {
        need->segment_bytes = ckbi_teragen_segment_bytes(plan, room_bytes);
        if (need->segment_bytes != 0)
            status = ckbi_teragen_describe(host, plan, &room_bytes, out);
    }
    if (status != CKB_OK)
        return status;
    most = ckb_max_chunk_bytes(&plan->geometry);
    if (plan->chunk_bytes > most && plan->chunk_given)
        return ckbi_refuse_stream_chunk(plan, most, out);
    plan->chunk_bytes = ckbi_min(plan->chunk_bytes, most);
    need->data_bytes = ckbi_teragen_segments(plan) * plan->geometry.segment_bytes;
    return need->data_bytes > room_bytes ? ckbi_refuse_rows(host, plan, room_bytes, out) : CKB_OK;
}

static const ckbi_work ckbi_teragen_work = {
    false,
    "rows",
    ckbi_teragen_fit,
    ckbi_teragen_carve,
    NULL,
    ckbi_teragen_open,
    ckbi_teragen_loop,
    ckbi_chunk_maintain,
    ckbi_chunk_final_sync,
    ckbi_teragen_merge,
    ckbi_chunk_close,
    ckbi_teragen_verify,
    NULL,
};

/* Row `row` of a sweep; mappers vary fastest, so that they stand below each other. */
static void ckbi_teragen_plan(const ckb_option_value *values, uint32_t row, ckbi_plan *plan)
{
    const ckb_option_value *mappers = &values[CKBI_TERAGEN_MAPPERS], *chunk = &values[CKBI_TERAGEN_CHUNK];
    const ckb_option_value *sync = &values[CKBI_TERAGEN_SYNC];
    uint32_t place;
    ckbi_fill(plan, 0, sizeof *plan);
    plan->work = &ckbi_teragen_work;
    plan->threads = (uint32_t)mappers->number[ckbi_axis_place(mappers, &row)];
    plan->chunk_bytes = chunk->number[ckbi_axis_place(chunk, &row)];
    plan->chunk_given = chunk->given;
    place = ckbi_axis_place(sync, &row);
    plan->sync = sync->chosen[place] ? (uint32_t)sync->number[place] : CKBI_SYNC_EVERY;
    plan->hsync_rows = sync->chosen[place] ? 0 : sync->number[place];
    plan->segment_bytes = ckbi_value_or(&values[CKBI_TERAGEN_SEGMENT], row, 0);
    plan->size_bytes = plan->size_min_bytes = CKB_TERAGEN_ROW_BYTES;
    plan->chunks_per_block = 1;
    plan->count = plan->distinct = values[CKBI_TERAGEN_ROWS].number[0];
    plan->first_row = values[CKBI_TERAGEN_START].number[0];
    plan->stall_ns = UINT64_MAX;
    plan->buffer_bytes = (size_t)ckbi_value_or(&values[CKBI_TERAGEN_BUFFER], 0, 0);
    plan->verify = values[CKBI_TERAGEN_VERIFY].count != 0;
}

static uint64_t ckbi_teragen_rows(const ckb_option_value *values)
{
    uint64_t rows = 1;
    for (uint32_t i = CKBI_TERAGEN_MAPPERS; i <= CKBI_TERAGEN_SEGMENT; i++)
        rows *= ckbi_value_axis(&values[i]);
    return rows;
}

/* Streams of all runs of a sweep. */
static uint64_t ckbi_teragen_streams(const ckb_option_value *values)
{
    uint64_t streams = 0;
    ckbi_plan plan;
    for (uint32_t i = 0; i < (uint32_t)ckbi_teragen_rows(values); i++) {
        ckbi_teragen_plan(values, i, &plan);
        streams += plan.threads;
    }
    return streams;
}

/* --------------------------------------------------------------------------------------------- >>session */

static const ckb_workload ckbi_workloads[] = {
    {"qualify", NULL, "How many writer threads, which log segments, and is it fit for a WAL?",
     "  chunkbench qualify                    # the current directory, about a minute\n"
     "  chunkbench qualify --budget 10m .     # longer, to be surer\n"
     "  chunkbench qualify -t 1,2,3 file:disk.img:4G\n",
     ckbi_qualify_options, CKBI_QUALIFY_OPTIONS},
    {"write", "cmdw", "How fast do threads write chunks?",
     "  chunkbench write -n 1000000 -s 1K -t 1,5,10,60 ram:4G\n"
     "  chunkbench write --sync each,64,end -t 16 --shared .\n"
     "  chunkbench write --rate 5000 --duration 30s --sync each --json result.json\n"
     "  chunkbench write --verify --format dropwizard file:disk.img:2G\n",
     ckbi_write_options, CKBI_WRITE_OPTIONS},
    {"log", NULL, "How fast do threads append to a log, and which segments does it want?",
     "  chunkbench log --segment 16K,64K,1M,4M,16M -t 1,16 --sync each --duration 5s    # which segments?\n"
     "  chunkbench log --sync each,64,10ms,none --duration 5s    # what does each sync policy cost?\n"
     "  chunkbench log --segment 16K,4M --ahead 0,4 --duration 5s    # what does a roll cost?\n"
     "  chunkbench log --prepare none,reserve,zero --segment 4M --duration 5s    # is reserved space slower?\n"
     "  chunkbench log -s 64-4K -t 16 -n 20000 --verify file:disk.img:256M\n"
     "  chunkbench log -s 2300 --duration 30s .    # fit for a WAL? 99 of 100 in less than 10 ms\n"
     "  chunkbench log --rate 500 --duration 30s --purge-behind 10000 --json log.json .\n",
     ckbi_bench_log_options, CKBI_BENCH_LOG_OPTIONS},
    {"teragen", NULL, "What do tiny writes cost, and do all rows come back?",
     "  chunkbench teragen -n 10000000 -m 1,2,92 ram:2G\n"
     "  chunkbench teragen --verify /srv/data               read all rows back, compare the checksum\n"
     "  chunkbench teragen -m 4 --sync 100000 --json - .    hsync after every 100000 rows of a mapper\n"
     "  chunkbench teragen -n 100000000 ram:12G             the run of 2020: checksum 214760662691937609\n",
     ckbi_teragen_options, CKBI_TERAGEN_OPTIONS},
};

CKB_DEF const ckb_workload *ckb_workload_at(uint32_t place)
{
    return place < sizeof ckbi_workloads / sizeof ckbi_workloads[0] ? &ckbi_workloads[place] : NULL;
}

CKB_DEF const ckb_workload *ckb_workload_find(const char *name)
{
    const ckb_workload *workload;
    for (uint32_t i = 0; (workload = ckb_workload_at(i)) != NULL; i++)
        if (ckbi_text_is(name, workload->name) ||
            (workload->alias != NULL && ckbi_text_is(name, workload->alias)))
            return workload;
    return NULL;
}

static bool ckbi_is_qualify(const ckb_workload *workload)
{
    return workload->options == ckbi_qualify_options;
}

static bool ckbi_is_log(const ckb_workload *workload)
{
    return workload->options == ckbi_bench_log_options;
}

static bool ckbi_is_teragen(const ckb_workload *workload)
{
    return workload->options == ckbi_teragen_options;
}

/* How many plans the options make, and each of them. */
static uint32_t ckbi_plan_count(const ckb_workload *workload, const ckb_option_value *values)
{
    return ckbi_is_qualify(workload)
               ? values[CKBI_QUALIFY_THREADS].count + values[CKBI_QUALIFY_LOG_SEGMENT].count
           : ckbi_is_log(workload)     ? (uint32_t)ckbi_bench_log_rows(values)
           : ckbi_is_teragen(workload) ? (uint32_t)ckbi_teragen_rows(values)
                                       : (uint32_t)ckbi_write_rows(values);
}

static void ckbi_plan_at(const ckb_bench_host *host, const ckb_workload *workload,
                         const ckb_option_value *values, uint32_t place, ckbi_plan *plan)
{
    uint32_t writers = values[CKBI_QUALIFY_THREADS].count;
    if (ckbi_is_qualify(workload) && place < writers)
        ckbi_qualify_plan(values, place, plan);
    else if (ckbi_is_qualify(workload)) /* the most that any run for these segments needs */
        ckbi_study_plan(values[CKBI_QUALIFY_LOG_SEGMENT].number[place - writers],
                        ckbi_host_is_threaded(host) ? CKBI_STUDY_THREADS : 1, CKBI_WAL_ENTRY_BYTES, 1, plan);
    else if (ckbi_is_log(workload))
        ckbi_bench_log_plan(values, place, plan);
    else if (ckbi_is_teragen(workload))
        ckbi_teragen_plan(values, place, plan);
    else
        ckbi_write_plan(values, place, plan);
}

static int ckbi_session_check(const ckb_bench_host *host, const ckb_workload *workload,
                              const ckb_option_value *values, ckbi_out *out)
{
    return ckbi_is_qualify(workload) ? ckbi_threads_check(host, &values[CKBI_QUALIFY_THREADS], out)
           : ckbi_is_log(workload)   ? ckbi_bench_log_check(host, values, out)
           : ckbi_is_teragen(workload)
               ? ckbi_rows_check(host, ckbi_teragen_rows(values), &values[CKBI_TERAGEN_MAPPERS], out)
               : ckbi_write_check(host, values, out);
}

/* Segment sizes that the target cannot have, or has no room for, are left out of a comparison. */
static bool ckbi_is_optional(const ckb_workload *workload, const ckb_option_value *values,
                             const ckbi_plan *plan, int status)
{
    const ckb_option_value *sizes =
        &values[ckbi_is_log(workload) ? (uint32_t)CKBI_BENCH_LOG_SEGMENT : (uint32_t)CKBI_WRITE_SEGMENT];
    return (status == CKB_INVALID || status == CKB_NOSPACE) &&
           (ckbi_is_qualify(workload) ? plan->work->is_log : sizes->count > 1);
}

/* Goes through the plans that the options make and the target has a place for. */
typedef struct ckbi_sweep {
    const ckb_bench_host *host;
    const ckb_workload *workload;
    const ckb_option_value *values;
    uint32_t row, rows, fitted, left_out;
    int status;      /* of the first that was left out */
    ckbi_plan first; /* that one */
    char why[CKB_BENCH_MESSAGE_BYTES];
} ckbi_sweep;

static void ckbi_sweep_start(ckbi_sweep *sweep, const ckb_bench_host *host, const ckb_workload *workload,
                             const ckb_option_value *values)
{
    ckbi_fill(sweep, 0, sizeof *sweep);
    sweep->host = host;
    sweep->workload = workload;
    sweep->values = values;
    sweep->rows = ckbi_plan_count(workload, values);
}

/* The next plan, fitted to the target. CKB_END: that was the last one. Otherwise `text` says what is wrong; when
 * everything was left out, with the first. */
static int ckbi_sweep_next(ckbi_sweep *sweep, ckbi_plan *plan, char *text, size_t text_bytes)
{
    while (sweep->row < sweep->rows) {
        ckbi_message message;
        int status;
        ckbi_plan_at(sweep->host, sweep->workload, sweep->values, sweep->row++, plan);
        status = plan->work->fit(sweep->host, plan, ckbi_message_start(&message, text, text_bytes));
        if (status == CKB_OK)
            sweep->fitted++;
        if (!ckbi_is_optional(sweep->workload, sweep->values, plan, status))
            return status;
        if (sweep->left_out++ == 0) {
            sweep->status = status;
            sweep->first = *plan;
            ckbi_message_set(sweep->why, sizeof sweep->why, text);
        }
    }
    ckbi_message_set(text, text_bytes, sweep->fitted != 0 ? "" : sweep->why);
    return sweep->fitted != 0 ? CKB_END : sweep->status;
}

static void ckbi_sweep_explain(const ckbi_sweep *sweep, char text[CKB_BENCH_MESSAGE_BYTES])
{
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, text, CKB_BENCH_MESSAGE_BYTES);
    if (sweep->left_out != 0) {
        ckbi_out_number(out, sweep->left_out);
        ckbi_out_text(out, " of ");
        ckbi_out_number(out, sweep->rows);
        ckbi_out_text(out, " runs left out; the first, ");
        ckbi_out_text(out, sweep->first.work->unit);
        ckbi_out_text(out, " of ");
        ckbi_out_size(out, sweep->first.size_bytes);
        ckbi_out_text(out, " in segments of ");
        ckbi_out_size(out, sweep->first.segment_bytes);
        ckbi_out_text(out, ": ");
        ckbi_out_text(out, sweep->why);
    }
    ckbi_out_end(out);
}

static uint64_t ckbi_session_seed(const ckb_workload *workload, const ckb_option_value *values)
{
    if (ckbi_is_teragen(workload)) /* the rows are what they are */
        return 0;
    return values[ckbi_is_qualify(workload) ? (uint32_t)CKBI_QUALIFY_SEED
                  : ckbi_is_log(workload)   ? (uint32_t)CKBI_BENCH_LOG_SEED
                                            : (uint32_t)CKBI_WRITE_SEED]
        .number[0];
}

/* Lays out what stays; an arena without memory behind it only counts. */
static bool ckbi_session_carve(ckbi_session *session, ckbi_arena *arena, const ckb_workload *workload,
                               const ckb_option_value *values)
{
    uint32_t rows = ckbi_plan_count(workload, values);
    if (ckbi_is_qualify(workload))
        rows = (values[CKBI_QUALIFY_THREADS].count + 1 + 2 * values[CKBI_QUALIFY_LOG_SEGMENT].count) *
                   CKBI_ROUNDS_MAX +
               1;
    session->report = ckbi_arena_take(arena, sizeof *session->report, 64);
    session->pattern = ckbi_arena_take(arena, sizeof *session->pattern, 64);
    ckb_bench_result *results = ckbi_arena_take(arena, rows * sizeof *results, 64);
    if (ckbi_is_teragen(workload)) {
        session->crc32 = ckbi_arena_take(arena, sizeof *session->crc32, 64);
        session->streams = ckbi_arena_take(
            arena, (size_t)ckbi_teragen_streams(values) * sizeof *session->streams, sizeof(uint64_t));
    }
    if (session->report == NULL || session->pattern == NULL || results == NULL ||
        (ckbi_is_teragen(workload) && session->streams == NULL))
        return false;
    ckbi_fill(session->report, 0, sizeof *session->report);
    ckbi_fill(results, 0, rows * sizeof *results);
    session->report->results = results;
    return true;
}

CKB_DEF int ckb_bench_memory(const ckb_bench_host *host, const ckb_workload *workload,
                             const ckb_option_value *values, size_t *bytes, char *text, size_t text_bytes)
{
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, text, text_bytes);
    ckbi_session session;
    ckbi_arena arena = {NULL, NULL, 0};
    ckbi_sweep sweep;
    ckbi_plan plan;
    size_t most = 0;
    int status = ckbi_session_check(host, workload, values, out);
    *bytes = 0;
    if (status != CKB_OK)
        return status;
    ckbi_fill(&session, 0, sizeof session);
    session.host = host;
    (void)ckbi_session_carve(&session, &arena, workload, values);
    if (ckbi_is_qualify(workload))
        (void)ckbi_arena_take(&arena, (size_t)CKBI_CEILING_PIECE, 65536);
    ckbi_sweep_start(&sweep, host, workload, values);
    while ((status = ckbi_sweep_next(&sweep, &plan, text, text_bytes)) == CKB_OK) {
        ckbi_arena rest = arena;
        ckbi_run run;
        if (!ckbi_run_carve(&run, &rest, &session, &plan))
            return ckbi_refuse(ckbi_message_start(&message, text, text_bytes), ckbi_span_of(""),
                               "--buffer: ", "no writer is possible with these buffers and segments");
        most = (size_t)ckbi_max(most, rest.used);
    }
    if (status != CKB_END)
        return status;
    *bytes = most;
    return CKB_OK;
}

/* ---- what the rows say */

/* Checksums that are known: the last is the one printed in 2020. */
static bool ckbi_teragen_known(const ckb_bench_report *report, uint64_t rows, uint64_t *sum)
{
    static const uint64_t known[][2] = {{1000, UINT64_C(2173251765740)},
                                        {10000, UINT64_C(21555350172850)},
                                        {1000000, UINT64_C(2148987642402270)},
                                        {100000000, UINT64_C(214760662691937609)}};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i][0] != rows || report->values[CKBI_TERAGEN_START].number[0] != 0)
            continue;
        *sum = known[i][1];
        return true;
    }
    return false;
}

static double ckbi_ns_per_write(const ckb_bench_result *result)
{
    return ckbi_quotient((double)result->teragen.write_ns, (double)result->teragen.write_calls);
}

/* The sentence at the end, about the fastest run. */
static void ckbi_teragen_conclude(ckb_bench_report *report)
{
    const ckb_bench_result *best = NULL;
    double best_rate = 0.0;
    uint64_t known = 0;
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        double rate = ckbi_per_second(result->operations, ckbi_result_total_ns(result));
        if (!result->finished)
            continue;
        if (ckbi_teragen_known(report, result->teragen.rows, &known) && known != result->teragen.sum.low)
            report->failed = true;
        if (best == NULL || rate > best_rate) {
            best = result;
            best_rate = rate;
        }
    }
    if (best == NULL)
        return;
    ckbi_message message;
    ckbi_out *out = ckbi_message_start(&message, report->sentence, sizeof report->sentence);
    ckbi_out_threads(out, best->threads, " mapper writes ", " mappers write ");
    ckbi_out_three(out, best_rate);
    ckbi_out_text(out, " rows/s");
    ckbi_out_text(out, best->sync == CKBI_SYNC_NONE ? ", none of them durable" : " with the final sync");
    ckbi_out_text(out, "; a write call takes ");
    ckbi_out_three(out, ckbi_ns_per_write(best));
    ckbi_out_text(out, " ns on average. Checksum ");
    ckbi_out_number(out, best->teragen.sum.low);
    if (ckbi_teragen_known(report, best->teragen.rows, &known))
        ckbi_out_text(out, known == best->teragen.sum.low ? ", as it must be" : ", which is WRONG");
    ckbi_out_char(out, '.');
    ckbi_out_end(out);
}

static int ckbi_session_sweep(ckbi_session *session, const ckb_workload *workload,
                              const ckb_option_value *values)
{
    ckb_bench_report *report = session->report;
    ckbi_sweep sweep;
    ckbi_plan plan;
    int status = CKB_OK;
    ckbi_sweep_start(&sweep, session->host, workload, values);
    while (status == CKB_OK && !report->interrupted) {
        status = ckbi_sweep_next(&sweep, &plan, report->message, CKB_BENCH_MESSAGE_BYTES);
        session->run = sweep.row;
        if (status == CKB_OK)
            status = ckbi_run_execute(session, &plan, &report->results[report->result_count++]);
    }
    ckbi_sweep_explain(&sweep, report->left_out);
    if (ckbi_is_log(workload))
        ckbi_log_answer(report);
    return status == CKB_END ? CKB_OK : status;
}

CKB_DEF int ckb_bench_run(const ckb_bench_host *host, const ckb_workload *workload,
                          const ckb_option_value *values, void *memory, size_t bytes, ckb_bench_report **report)
{
    ckbi_arena arena = {memory, (uint8_t *)memory + bytes, 0};
    ckbi_session session;
    uint32_t rows = ckbi_plan_count(workload, values);
    int status = CKB_OK;
    ckbi_fill(&session, 0, sizeof session);
    session.host = host;
    session.run = 1;
    session.run_count = ckbi_is_qualify(workload) ? 0 : rows;
    session.threaded = ckbi_host_is_threaded(host);
    *report = NULL;
    if (!ckbi_session_carve(&session, &arena, workload, values))
        return CKB_INVALID;
    *report = session.report;
    session.report->host = host;
    session.report->workload = workload;
    session.report->values = values;
    ckbi_pattern_set(session.pattern, ckbi_session_seed(workload, values));
    if (session.crc32 != NULL)
        ckb_crc32_table_init(session.crc32);
    session.rest = arena;
    session.progress_ns = ckbi_clock_read(&session.clock, host);
    status = ckbi_is_qualify(workload) ? ckbi_qualify_execute(&session, values)
                                       : ckbi_session_sweep(&session, workload, values);
    session.report->status = status;
    if (ckbi_is_teragen(workload))
        ckbi_teragen_conclude(session.report);
    return status;
}

/* A line about one run; returns the payload it would write, 0 when that is not known. */
static uint64_t ckbi_plan_print(const ckb_workload *workload, const ckbi_plan *plan, ckbi_out *out)
{
    bool counted = !ckbi_is_qualify(workload) && plan->count != UINT64_MAX;
    ckbi_out_threads(out, plan->threads, " thread", " threads");
    ckbi_out_text(out, ", ");
    ckbi_out_text(out, plan->work->unit);
    ckbi_out_text(out, plan->size_min_bytes != plan->size_bytes ? " of up to " : " of ");
    ckbi_out_size(out, plan->size_bytes);
    ckbi_out_text(out, ", segments of ");
    ckbi_out_size(out, plan->geometry.segment_bytes);
    if (!ckbi_is_qualify(workload)) {
        ckbi_out_text(out, counted ? ": " : ", until the time is over, in ");
        if (counted) {
            ckbi_out_number(out, plan->count);
            ckbi_out_char(out, ' ');
            ckbi_out_text(out, plan->work->unit);
            ckbi_out_text(out, ", ");
        }
        ckbi_out_size(out, plan->need.data_bytes);
        ckbi_out_text(out, " of segments");
    }
    ckbi_out_char(out, '\n');
    return counted ? plan->count * (plan->size_min_bytes + plan->size_bytes) / 2 : 0;
}

static void ckbi_plan_print_end(const ckb_workload *workload, const ckb_option_value *values, uint64_t total,
                                ckbi_out *out)
{
    if (ckbi_is_qualify(workload)) {
        ckbi_out_text(out,
                      "up to 15 rounds of these and of plain sequential writing, then durable appends for ");
        ckbi_out_duration(out, values[CKBI_QUALIFY_BUDGET].number[0] / 2);
        ckbi_out_text(out, ", together about ");
        ckbi_out_duration(out, values[CKBI_QUALIFY_BUDGET].number[0]);
        ckbi_out_text(out, "; the bytes written follow from the target's speed\n");
    } else if (total != 0) {
        ckbi_out_text(out, "payload bytes to write: ");
        ckbi_out_number(out, total);
        ckbi_out_char(out, '\n');
    }
}

CKB_DEF int ckb_bench_plan(const ckb_bench_host *host, const ckb_workload *workload,
                           const ckb_option_value *values, const ckb_sink *sink, char *text, size_t text_bytes)
{
    ckbi_message message;
    ckbi_out out;
    ckbi_sweep sweep;
    ckbi_plan plan;
    char left_out[CKB_BENCH_MESSAGE_BYTES];
    uint64_t total = 0;
    int status = ckbi_session_check(host, workload, values, ckbi_message_start(&message, text, text_bytes));
    if (status != CKB_OK)
        return status;
    ckbi_out_start(&out, sink);
    ckbi_sweep_start(&sweep, host, workload, values);
    while ((status = ckbi_sweep_next(&sweep, &plan, text, text_bytes)) == CKB_OK)
        total += ckbi_plan_print(workload, &plan, &out);
    if (status != CKB_END)
        return status;
    ckbi_sweep_explain(&sweep, left_out);
    ckbi_out_text(&out, left_out);
    ckbi_out_text(&out, left_out[0] != '\0' ? "\n" : "");
    ckbi_plan_print_end(workload, values, total, &out);
    return ckbi_out_end(&out);
}

/* --------------------------------------------------------------------------------------------- >>report
 * A report as text, JSON, CSV or the field's lines. Units stand in every key and heading. */

static double ckbi_result_mib_per_s(const ckb_bench_result *result)
{
    return ckbi_per_second(result->bytes, ckbi_result_total_ns(result)) / 1048576.0;
}

/* The sync made everything durable that is counted. */
static bool ckbi_result_is_synced(const ckb_bench_result *result)
{
    return (result->raw || result->sync != CKBI_SYNC_NONE) && result->elapsed_ns != 0;
}

static void ckbi_out_sync(ckbi_out *out, const ckb_bench_result *result)
{
    static const char *const names[] = {"none", "end", "each"};
    if (result->sync < CKBI_SYNC_EVERY)
        ckbi_out_text(out, names[result->sync]);
    else if (result->sync == CKBI_SYNC_EVERY)
        ckbi_out_number(out, result->sync_every);
    else
        ckbi_out_exact_duration(out, result->sync_interval_ns);
}

/* What a request for a segment's space was. */
static const char *ckbi_prepare_text(uint32_t prepare)
{
    static const char *const names[] = {"", "none", "reserve", "zero"};
    return names[prepare];
}

/* Entries that one commit made durable, on average. */
static double ckbi_entries_per_sync(const ckb_bench_result *result)
{
    return result->log.commits == 0 ? 0.0 : (double)result->operations / (double)result->log.commits;
}

static double ckbi_bytes_per_sync(const ckb_bench_result *result)
{
    return result->log.commits == 0 ? 0.0 : (double)result->bytes / (double)result->log.commits;
}

/* The columns of iostat, in its order. */
#define CKBI_DISK_COLUMNS 13u
static double ckbi_disk_column(const ckb_disk_use *use, uint32_t column)
{
    const double columns[CKBI_DISK_COLUMNS] = {
        use->read_merges_per_s, use->write_merges_per_s, use->reads_per_s,     use->writes_per_s,
        use->read_mib_per_s,    use->write_mib_per_s,    use->request_sectors, use->queue_length,
        use->wait_ms,           use->read_wait_ms,       use->write_wait_ms,   use->service_ms,
        use->busy_percent};
    return columns[column];
}

/* ---- JSON ---- */

typedef struct ckbi_json {
    ckbi_out *out;
    bool comma; /* something stands before, at this level */
} ckbi_json;

/* The length of the valid UTF-8 sequence at `text`, 0 when there is none. */
static size_t ckbi_utf8_length(const unsigned char *text)
{
    size_t length = text[0] < 0x80   ? 1
                    : text[0] < 0xC2 ? 0
                    : text[0] < 0xE0 ? 2
                    : text[0] < 0xF0 ? 3
                    : text[0] < 0xF5 ? 4
                                     : 0;
    for (size_t i = 1; i < length; i++)
        if ((text[i] & 0xC0) != 0x80)
            return 0;
    /* Overlong forms, surrogates and what lies beyond U+10FFFF. */
    if ((text[0] == 0xE0 && text[1] < 0xA0) || (text[0] == 0xED && text[1] > 0x9F) ||
        (text[0] == 0xF0 && text[1] < 0x90) || (text[0] == 0xF4 && text[1] > 0x8F))
        return 0;
    return length;
}

static void ckbi_json_string(ckbi_out *out, const char *text)
{
    static const char hex[] = "0123456789abcdef";
    const unsigned char *at = (const unsigned char *)text;
    ckbi_out_char(out, '"');
    while (*at != '\0') {
        size_t length = ckbi_utf8_length(at);
        if (length == 0) {
            ckbi_out_text(out, "\\ufffd");
            length = 1;
        } else if (*at < 0x20 || *at == 0x7f) {
            ckbi_out_text(out, "\\u00");
            ckbi_out_char(out, hex[*at >> 4]);
            ckbi_out_char(out, hex[*at & 15]);
        } else {
            if (*at == '"' || *at == '\\')
                ckbi_out_char(out, '\\');
            ckbi_out_bytes(out, (const char *)at, length);
        }
        at += length;
    }
    ckbi_out_char(out, '"');
}

static void ckbi_json_next(ckbi_json *json)
{
    if (json->comma)
        ckbi_out_char(json->out, ',');
    json->comma = true;
}

static void ckbi_json_key(ckbi_json *json, const char *key)
{
    ckbi_json_next(json);
    ckbi_json_string(json->out, key);
    ckbi_out_char(json->out, ':');
}

static void ckbi_json_open(ckbi_json *json, char bracket)
{
    ckbi_out_char(json->out, bracket);
    json->comma = false;
}

static void ckbi_json_close(ckbi_json *json, char bracket)
{
    ckbi_out_char(json->out, bracket);
    json->comma = true;
}

static void ckbi_json_number(ckbi_json *json, const char *key, uint64_t number)
{
    ckbi_json_key(json, key);
    ckbi_out_number(json->out, number);
}

static void ckbi_json_double(ckbi_json *json, const char *key, bool defined, double value)
{
    ckbi_json_key(json, key);
    if (defined && ckbi_is_finite(value))
        ckbi_out_fixed(json->out, value, 3);
    else
        ckbi_out_text(json->out, "null");
}

static void ckbi_json_count(ckbi_json *json, const char *key, bool defined, uint64_t number)
{
    ckbi_json_key(json, key);
    if (defined)
        ckbi_out_number(json->out, number);
    else
        ckbi_out_text(json->out, "null");
}

static void ckbi_json_bool(ckbi_json *json, const char *key, bool value)
{
    ckbi_json_key(json, key);
    ckbi_out_text(json->out, value ? "true" : "false");
}

static void ckbi_json_text(ckbi_json *json, const char *key, const char *text)
{
    ckbi_json_key(json, key);
    if (text == NULL || text[0] == '\0')
        ckbi_out_text(json->out, "null");
    else
        ckbi_json_string(json->out, text);
}

static void ckbi_json_latency(ckbi_json *json, const char *key, const ckb_latency *latency)
{
    bool any = latency->count != 0;
    ckbi_json_key(json, key);
    ckbi_json_open(json, '{');
    ckbi_json_number(json, "count", latency->count);
    ckbi_json_count(json, "min", any, latency->min);
    ckbi_json_double(json, "mean", any, latency->mean);
    ckbi_json_double(json, "stddev", any, latency->stddev);
    ckbi_json_count(json, "p50", any, latency->p50);
    ckbi_json_count(json, "p75", any, latency->p75);
    ckbi_json_count(json, "p95", any, latency->p95);
    ckbi_json_count(json, "p98", any, latency->p98);
    ckbi_json_count(json, "p99", any, latency->p99);
    ckbi_json_count(json, "p999", any, latency->p999);
    ckbi_json_count(json, "max", any, latency->max);
    ckbi_json_close(json, '}');
}

/* "size_bytes", "stall_ns": the name of an option with its unit. */
static void ckbi_json_option_key(ckbi_json *json, const ckb_option *option)
{
    ckbi_json_next(json);
    ckbi_out_char(json->out, '"');
    for (const char *at = option->name; *at != '\0'; at++)
        ckbi_out_char(json->out, *at == '-' ? '_' : *at);
    ckbi_out_text(json->out, option->kind == CKB_OPTION_SIZE || option->kind == CKB_OPTION_SPAN ? "_bytes\":"
                             : option->kind == CKB_OPTION_DURATION                              ? "_ns\":"
                             : option->kind == CKB_OPTION_RATE                                  ? "_per_s\":"
                                                                                                : "\":");
}

static void ckbi_json_option_item(ckbi_json *json, const ckb_option *option, const ckb_option_value *value,
                                  uint32_t place)
{
    bool chosen = option->kind == CKB_OPTION_CHOICE || option->kind == CKB_OPTION_POLICY;
    if (chosen && value->chosen[place]) {
        ckbi_span rest = ckbi_span_of(option->choices), choice = rest;
        for (uint64_t i = 0; i <= value->number[place]; i++)
            choice = ckbi_span_cut(&rest, '|');
        ckbi_out_char(json->out, '"');
        ckbi_out_bytes(json->out, choice.text, choice.bytes);
        ckbi_out_char(json->out, '"');
    } else if (option->kind == CKB_OPTION_POLICY && value->timed[place]) {
        ckbi_out_char(json->out, '"');
        ckbi_out_exact_duration(json->out, value->number[place]);
        ckbi_out_char(json->out, '"');
    } else if (option->kind == CKB_OPTION_SPAN && value->last[place] != value->number[place]) {
        ckbi_json_open(json, '[');
        ckbi_out_number(json->out, value->number[place]);
        ckbi_out_char(json->out, ',');
        ckbi_out_number(json->out, value->last[place]);
        ckbi_json_close(json, ']');
    } else if (option->kind == CKB_OPTION_RATE) {
        ckbi_out_fixed(json->out, (double)value->number[place] / 1000.0, 3);
    } else {
        ckbi_out_number(json->out, value->number[place]);
    }
}

static void ckbi_json_setting(ckbi_json *json, const ckb_option *option, const ckb_option_value *value)
{
    ckbi_json_option_key(json, option);
    if (option->kind == CKB_OPTION_FLAG) {
        ckbi_out_text(json->out, value->count != 0 ? "true" : "false");
    } else if (value->count == 0) {
        ckbi_out_text(json->out, "null");
    } else if (option->kind == CKB_OPTION_TEXT) {
        ckbi_json_string(json->out, value->text);
    } else if (!option->list) {
        ckbi_json_option_item(json, option, value, 0);
    } else {
        ckbi_json_open(json, '[');
        for (uint32_t i = 0; i < value->count; i++) {
            ckbi_json_next(json);
            ckbi_json_option_item(json, option, value, i);
        }
        ckbi_json_close(json, ']');
    }
}

static const char *ckbi_result_kind(const ckb_bench_result *result)
{
    return result->raw ? "sequential" : result->is_log ? "log" : result->is_teragen ? "teragen" : "write";
}

static void ckbi_json_axes(ckbi_json *json, const ckb_bench_result *result)
{
    ckbi_json_text(json, "kind", ckbi_result_kind(result));
    ckbi_json_count(json, "round", result->round != 0, result->round);
    ckbi_json_number(json, "threads", result->threads);
    ckbi_json_count(json, "size_bytes", !result->is_log || result->size_min_bytes == result->size_bytes,
                    result->size_bytes);
    ckbi_json_number(json, "segment_bytes", result->segment_bytes);
    if (result->is_log) {
        ckbi_json_number(json, "size_min_bytes", result->size_min_bytes);
        ckbi_json_number(json, "size_max_bytes", result->size_bytes);
        ckbi_json_number(json, "ahead", result->log.ahead);
        ckbi_json_text(json, "prepare", ckbi_prepare_text(result->log.prepare));
    } else if (result->is_teragen) {
        ckbi_json_number(json, "mappers", result->threads);
        ckbi_json_number(json, "chunk_bytes", result->teragen.chunk_bytes);
    } else {
        ckbi_json_number(json, "chunks_per_block", result->chunks_per_block);
        ckbi_json_bool(json, "shared", result->shared);
    }
    ckbi_json_key(json, "sync");
    if (result->sync != CKBI_SYNC_EVERY) {
        ckbi_out_char(json->out, '"');
        ckbi_out_sync(json->out, result);
        ckbi_out_char(json->out, '"');
    } else {
        ckbi_out_sync(json->out, result);
    }
    ckbi_json_text(json, "loop", result->rate_limit_milli != 0 ? "open" : "closed");
    ckbi_json_double(json, "rate_limit_per_s", result->rate_limit_milli != 0,
                     (double)result->rate_limit_milli / 1000.0);
}

static void ckbi_json_stalls(ckbi_json *json, const ckb_bench_result *result)
{
    ckbi_json_number(json, "stalls", result->stalls);
    ckbi_json_key(json, "longest_stalls");
    ckbi_json_open(json, '[');
    for (uint32_t i = 0; i < result->stall_count; i++) {
        ckbi_json_next(json);
        ckbi_json_open(json, '{');
        ckbi_json_number(json, "at_ns", result->stall[i].at_ns);
        ckbi_json_number(json, "latency_ns", result->stall[i].latency_ns);
        ckbi_json_number(json, "thread", result->stall[i].thread);
        ckbi_json_close(json, '}');
    }
    ckbi_json_close(json, ']');
}

static void ckbi_json_medium(ckbi_json *json, const char *key, const ckb_medium_use *use)
{
    ckbi_json_key(json, key);
    ckbi_json_open(json, '{');
    ckbi_json_number(json, "writes", use->writes);
    ckbi_json_number(json, "write_bytes", use->write_bytes);
    ckbi_json_number(json, "write_ns", use->write_ns);
    ckbi_json_number(json, "syncs", use->syncs);
    ckbi_json_number(json, "sync_ns", use->sync_ns);
    ckbi_json_number(json, "erases", use->erases);
    ckbi_json_number(json, "erase_ns", use->erase_ns);
    ckbi_json_close(json, '}');
}

static void ckbi_json_iostat(ckbi_json *json, const ckb_disk_use *use)
{
    static const char *const keys[CKBI_DISK_COLUMNS] = {
        "rrqm_per_s", "wrqm_per_s", "r_per_s",    "w_per_s",    "rmib_per_s", "wmib_per_s",  "avgrq_sectors",
        "avgqu",      "await_ms",   "r_await_ms", "w_await_ms", "svctm_ms",   "util_percent"};
    ckbi_json_key(json, "iostat");
    if (use->name[0] == '\0') {
        ckbi_out_text(json->out, "null");
        return;
    }
    ckbi_json_open(json, '{');
    ckbi_json_text(json, "device", use->name);
    for (uint32_t i = 0; i < CKBI_DISK_COLUMNS; i++)
        ckbi_json_double(json, keys[i], true, ckbi_disk_column(use, i));
    ckbi_json_close(json, '}');
}

static void ckbi_json_log(ckbi_json *json, const ckb_bench_result *result)
{
    const ckb_log_result *log = &result->log;
    bool committed = log->commits != 0, watched = log->interval_ns != 0;
    ckbi_json_number(json, "first", log->first);
    ckbi_json_number(json, "last", log->last);
    ckbi_json_number(json, "rolls", log->rolls);
    ckbi_json_double(json, "rolls_per_s", watched, ckbi_per_second(log->rolls, log->interval_ns));
    ckbi_json_number(json, "commits", log->commits);
    ckbi_json_double(json, "syncs_per_s", watched, ckbi_per_second(log->commits, log->interval_ns));
    ckbi_json_double(json, "entries_per_sync", committed, ckbi_entries_per_sync(result));
    ckbi_json_double(json, "bytes_per_sync", committed, ckbi_bytes_per_sync(result));
    ckbi_json_latency(json, "rolled_latency_ns", &log->rolled);
    ckbi_json_latency(json, "other_latency_ns", &log->others);
    ckbi_json_latency(json, "queue_wait_ns", &log->queue_wait);
    ckbi_json_latency(json, "device_wait_ns", &log->device_wait);
    ckbi_json_number(json, "interval_ns", log->interval_ns);
    ckbi_json_medium(json, "medium_appends", &log->appends);
    ckbi_json_medium(json, "medium_commits", &log->commit_calls);
    ckbi_json_medium(json, "medium_maintenance", &log->maintenance);
    ckbi_json_iostat(json, &log->disk);
}

static void ckbi_json_streams(ckbi_json *json, const ckb_teragen_result *teragen)
{
    ckbi_json_key(json, "streams");
    ckbi_json_open(json, '[');
    for (uint32_t i = 0; i < teragen->stream_count; i++) {
        const ckb_stream_use *use = &teragen->streams[i];
        ckbi_json_next(json);
        ckbi_json_open(json, '{');
        ckbi_json_number(json, "first_row", use->first_row);
        ckbi_json_number(json, "rows", use->rows);
        ckbi_json_number(json, "chunks", use->chunks);
        ckbi_json_number(json, "write_calls", use->write_calls);
        ckbi_json_number(json, "write_ns", use->write_ns);
        ckbi_json_number(json, "hsync_calls", use->hsync_calls);
        ckbi_json_number(json, "hsync_ns", use->hsync_ns);
        ckbi_json_number(json, "hflush_calls", use->flush_calls);
        ckbi_json_number(json, "hflush_ns", use->flush_ns);
        ckbi_json_number(json, "close_calls", use->close_calls);
        ckbi_json_number(json, "close_ns", use->close_ns);
        ckbi_json_close(json, '}');
    }
    ckbi_json_close(json, ']');
}

static void ckbi_json_teragen(ckbi_json *json, const ckb_bench_result *result)
{
    const ckb_teragen_result *t = &result->teragen;
    ckbi_json_number(json, "rows", t->rows);
    ckbi_json_number(json, "chunks", t->chunks);
    ckbi_json_number(json, "write_calls", t->write_calls);
    ckbi_json_number(json, "write_ns", t->write_ns);
    ckbi_json_double(json, "ns_per_write", t->write_calls != 0, ckbi_ns_per_write(result));
    ckbi_json_number(json, "checksum", t->sum.low);
    ckbi_json_number(json, "checksum_high", t->sum.high);
    ckbi_json_streams(json, t);
}

static void ckbi_json_result(ckbi_json *json, const ckb_bench_result *result)
{
    bool ran = result->elapsed_ns != 0, synced = ckbi_result_is_synced(result);
    ckbi_json_next(json);
    ckbi_out_char(json->out, '\n');
    ckbi_json_open(json, '{');
    ckbi_json_axes(json, result);
    ckbi_json_bool(json, "finished", result->finished);
    ckbi_json_number(json, "operations", result->operations);
    ckbi_json_number(json, "failures", result->failures);
    ckbi_json_number(json, "bytes", result->bytes);
    ckbi_json_number(json, "elapsed_ns", result->elapsed_ns);
    ckbi_json_count(json, "sync_ns", synced, result->sync_ns);
    ckbi_json_double(json, "rate_per_s", ran, ckbi_per_second(result->operations, result->elapsed_ns));
    ckbi_json_double(json, "adjusted_rate_per_s", synced,
                     ckbi_per_second(result->operations, ckbi_result_total_ns(result)));
    ckbi_json_double(json, "mib_per_s", ran, ckbi_result_mib_per_s(result));
    ckbi_json_latency(json, "latency_ns", &result->latency);
    if (result->durable_latency.count != 0)
        ckbi_json_latency(json, "durable_latency_ns", &result->durable_latency);
    if (result->rate_limit_milli != 0)
        ckbi_json_latency(json, "service_latency_ns", &result->service_latency);
    if (result->is_log)
        ckbi_json_log(json, result);
    if (result->is_teragen)
        ckbi_json_teragen(json, result);
    if (!result->raw) {
        ckbi_json_number(json, "slowest_thread_operations", result->slowest_thread_operations);
        ckbi_json_number(json, "fastest_thread_operations", result->fastest_thread_operations);
        ckbi_json_number(json, "clock_steps", result->clock_steps);
        ckbi_json_stalls(json, result);
        ckbi_json_count(json, "verified", result->verify_done, result->verified);
        ckbi_json_count(json, "verify_failures", result->verify_done, result->verify_failures);
    }
    ckbi_json_close(json, '}');
}

static void ckbi_json_range(ckbi_json *json, const char *key, double middle, double low, double high)
{
    ckbi_json_key(json, key);
    ckbi_json_open(json, '{');
    ckbi_json_double(json, "median", true, middle);
    ckbi_json_double(json, "low", true, low);
    ckbi_json_double(json, "high", true, high);
    ckbi_json_close(json, '}');
}

static void ckbi_json_answer(ckbi_json *json, const ckb_bench_report *report)
{
    const ckb_qualify_answer *answer = &report->answer;
    ckbi_json_key(json, "answer");
    if (!report->has_answer) {
        ckbi_out_text(json->out, "null");
        return;
    }
    ckbi_json_open(json, '{');
    ckbi_json_number(json, "threads", answer->rows[answer->answer].threads);
    ckbi_json_text(json, "sentence", report->sentence);
    ckbi_json_bool(json, "sure", answer->sure);
    ckbi_json_text(json, "caution", report->caution);
    ckbi_json_number(json, "rounds", answer->rounds);
    ckbi_json_double(json, "confidence", true, answer->confidence);
    ckbi_json_double(json, "sequential_mib_per_s", true, answer->ceiling_mib_per_s);
    ckbi_json_key(json, "rows");
    ckbi_json_open(json, '[');
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const ckb_qualify_row *row = &answer->rows[i];
        ckbi_json_next(json);
        ckbi_json_open(json, '{');
        ckbi_json_number(json, "threads", row->threads);
        ckbi_json_double(json, "adjusted_rate_per_s", true, row->rate_per_s);
        ckbi_json_range(json, "of_best", row->of_best, row->of_best_low, row->of_best_high);
        ckbi_json_range(json, "of_sequential", row->of_ceiling, row->of_ceiling_low, row->of_ceiling_high);
        ckbi_json_close(json, '}');
    }
    ckbi_json_close(json, ']');
    ckbi_json_close(json, '}');
}

static void ckbi_json_segment_row(ckbi_json *json, const ckb_segment_answer *answer, const ckb_segment_row *row)
{
    for (uint32_t which = 0; which < answer->thread_counts; which++) {
        ckbi_json_next(json);
        ckbi_json_open(json, '{');
        ckbi_json_number(json, "segment_bytes", row->segment_bytes);
        ckbi_json_number(json, "threads", answer->threads[which]);
        ckbi_json_double(json, "adjusted_rate_per_s", true, row->rate_per_s[which]);
        ckbi_json_range(json, "of_best", row->of_best[which], row->of_best_low[which],
                        row->of_best_high[which]);
        ckbi_json_double(json, "entries_per_sync", true, row->entries_per_sync[which]);
        ckbi_json_double(json, "rolled_p50_ns", row->roll_ns[which] > 0.0, row->roll_ns[which]);
        ckbi_json_double(json, "other_p50_ns", true, row->other_ns[which]);
        ckbi_json_double(json, "await_ms", row->disk_wait_ms[which] > 0.0, row->disk_wait_ms[which]);
        ckbi_json_close(json, '}');
    }
}

static void ckbi_json_segment_answer(ckbi_json *json, const ckb_bench_report *report)
{
    const ckb_segment_answer *answer = &report->segment_answer;
    ckbi_json_key(json, "segment_answer");
    if (!report->has_segment_answer) {
        ckbi_out_text(json->out, "null");
        return;
    }
    ckbi_json_open(json, '{');
    ckbi_json_number(json, "segment_bytes", answer->rows[answer->answer].segment_bytes);
    ckbi_json_text(json, "sentence", answer->sentence);
    ckbi_json_bool(json, "sure", answer->sure);
    ckbi_json_text(json, "caution", answer->caution);
    ckbi_json_number(json, "rounds", answer->rounds);
    ckbi_json_double(json, "confidence", true, answer->confidence);
    ckbi_json_key(json, "rows");
    ckbi_json_open(json, '[');
    for (uint32_t i = 0; i < answer->row_count; i++)
        ckbi_json_segment_row(json, answer, &answer->rows[i]);
    ckbi_json_close(json, ']');
    ckbi_json_close(json, '}');
}

static void ckbi_json_wal_answer(ckbi_json *json, const ckb_bench_report *report)
{
    const ckb_wal_answer *answer = &report->wal_answer;
    ckbi_json_key(json, "wal_answer");
    if (!report->has_wal_answer) {
        ckbi_out_text(json->out, "null");
        return;
    }
    ckbi_json_open(json, '{');
    ckbi_json_bool(json, "pass", answer->pass);
    ckbi_json_text(json, "sentence", answer->sentence);
    ckbi_json_bool(json, "sure", answer->sure);
    ckbi_json_text(json, "caution", answer->caution);
    ckbi_json_number(json, "limit_p99_ns", CKB_WAL_P99_NS);
    ckbi_json_number(json, "p99_low_ns", answer->p99_low);
    ckbi_json_number(json, "p99_high_ns", answer->p99_high);
    ckbi_json_number(json, "size_bytes", answer->size_bytes);
    ckbi_json_number(json, "segment_bytes", answer->segment_bytes);
    ckbi_json_number(json, "measured_ns", answer->measured_ns);
    ckbi_json_number(json, "samples_above_p999", answer->slower_than_p999);
    ckbi_json_latency(json, "durable_latency_ns", &answer->latency);
    ckbi_json_close(json, '}');
}

/* ---- warnings: the host's, and those that follow from the results ---- */

static const char *ckbi_report_warning(const ckb_bench_report *report, uint32_t place)
{
    bool unsynced = false;
    if (place < report->host->warning_count)
        return report->host->warnings[place];
    place -= report->host->warning_count;
    for (uint32_t i = 0; i < report->result_count; i++)
        unsynced = unsynced || (!report->results[i].raw && report->results[i].sync == CKBI_SYNC_NONE);
    if (unsynced && place-- == 0)
        return "sync none: nothing was made durable; these rates are not those of durable writing";
    if (report->host->target->volatile_medium && place-- == 0)
        return "the target is volatile: nothing on it survives power loss, whatever sync says";
    if (report->left_out[0] != '\0' && place-- == 0)
        return report->left_out;
    return NULL;
}

static void ckbi_print_json(const ckb_bench_report *report, ckbi_out *out)
{
    const ckb_bench_host *host = report->host;
    const char *warning;
    ckbi_json json = {out, false};
    ckbi_json_open(&json, '{');
    ckbi_json_text(&json, "tool", "chunkbench");
    ckbi_json_text(&json, "version", ckb_version());
    ckbi_json_text(&json, "command", report->workload->name);
    ckbi_json_text(&json, "target", host->target->name);
    ckbi_json_key(&json, "settings");
    ckbi_json_open(&json, '{');
    for (uint32_t i = 0; i < report->workload->option_count; i++)
        ckbi_json_setting(&json, &report->workload->options[i], &report->values[i]);
    ckbi_json_close(&json, '}');
    ckbi_json_key(&json, "environment");
    ckbi_json_open(&json, '{');
    ckbi_json_text(&json, "command_line", host->command_line);
    for (uint32_t i = 0; i < host->environment_count; i++)
        ckbi_json_text(&json, host->environment[i].key, host->environment[i].value);
    ckbi_json_close(&json, '}');
    ckbi_json_key(&json, "warnings");
    ckbi_json_open(&json, '[');
    for (uint32_t i = 0; (warning = ckbi_report_warning(report, i)) != NULL; i++) {
        ckbi_json_next(&json);
        ckbi_json_string(out, warning);
    }
    ckbi_json_close(&json, ']');
    ckbi_json_bool(&json, "interrupted", report->interrupted);
    ckbi_json_text(&json, "error", report->message);
    if (ckbi_is_qualify(report->workload)) {
        ckbi_json_answer(&json, report);
        ckbi_json_segment_answer(&json, report);
        ckbi_json_wal_answer(&json, report);
    }
    if (ckbi_is_teragen(report->workload))
        ckbi_json_text(&json, "sentence", report->sentence);
    ckbi_json_key(&json, "results");
    ckbi_json_open(&json, '[');
    for (uint32_t i = 0; i < report->result_count; i++)
        ckbi_json_result(&json, &report->results[i]);
    ckbi_json_close(&json, ']');
    ckbi_json_close(&json, '}');
    ckbi_out_char(out, '\n');
}

/* ---- CSV ---- */

static void ckbi_csv_count(ckbi_out *out, bool defined, uint64_t number)
{
    ckbi_out_char(out, ',');
    if (defined)
        ckbi_out_number(out, number);
}

static void ckbi_csv_double(ckbi_out *out, bool defined, double value)
{
    ckbi_out_char(out, ',');
    if (defined && ckbi_is_finite(value))
        ckbi_out_fixed(out, value, 3);
}

static void ckbi_csv_latency(ckbi_out *out, const ckb_latency *latency)
{
    bool any = latency->count != 0;
    ckbi_csv_count(out, any, latency->min);
    ckbi_csv_double(out, any, latency->mean);
    ckbi_csv_double(out, any, latency->stddev);
    ckbi_csv_count(out, any, latency->p50);
    ckbi_csv_count(out, any, latency->p75);
    ckbi_csv_count(out, any, latency->p95);
    ckbi_csv_count(out, any, latency->p98);
    ckbi_csv_count(out, any, latency->p99);
    ckbi_csv_count(out, any, latency->p999);
    ckbi_csv_count(out, any, latency->max);
}

static void ckbi_csv_latency_heading(ckbi_out *out, const char *prefix)
{
    static const char *const names[] = {"min", "mean", "stddev", "p50",  "p75",
                                        "p95", "p98",  "p99",    "p999", "max"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        ckbi_out_char(out, ',');
        ckbi_out_text(out, prefix);
        ckbi_out_text(out, names[i]);
        ckbi_out_text(out, "_ns");
    }
}

static void ckbi_csv_log(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_log_result *log = &result->log;
    bool committed = result->is_log && log->commits != 0, watched = result->is_log && log->interval_ns != 0;
    ckbi_csv_count(out, result->is_log, result->size_min_bytes);
    ckbi_csv_count(out, result->is_log, log->ahead);
    ckbi_out_char(out, ',');
    ckbi_out_text(out, ckbi_prepare_text(log->prepare));
    ckbi_csv_double(out, committed, ckbi_entries_per_sync(result));
    ckbi_csv_double(out, committed, ckbi_bytes_per_sync(result));
    ckbi_csv_double(out, watched, ckbi_per_second(log->commits, log->interval_ns));
    ckbi_csv_double(out, watched, ckbi_per_second(log->rolls, log->interval_ns));
    ckbi_csv_latency(out, &log->rolled);
    ckbi_csv_latency(out, &log->others);
    ckbi_csv_latency(out, &log->queue_wait);
    ckbi_csv_latency(out, &log->device_wait);
    ckbi_out_char(out, ',');
    ckbi_out_text(out, log->disk.name);
    for (uint32_t i = 0; i < CKBI_DISK_COLUMNS; i++)
        ckbi_csv_double(out, log->disk.name[0] != '\0', ckbi_disk_column(&log->disk, i));
}

static void ckbi_csv_log_heading(ckbi_out *out)
{
    ckbi_out_text(out, ",size_min_bytes,ahead,prepare,entries_per_sync,bytes_per_sync,syncs_per_s,rolls_per_s");
    ckbi_csv_latency_heading(out, "rolled_");
    ckbi_csv_latency_heading(out, "other_");
    ckbi_csv_latency_heading(out, "queue_wait_");
    ckbi_csv_latency_heading(out, "device_wait_");
    ckbi_out_text(out,
                  ",device,rrqm_per_s,wrqm_per_s,r_per_s,w_per_s,rmib_per_s,wmib_per_s,avgrq_sectors,avgqu,"
                  "await_ms,r_await_ms,w_await_ms,svctm_ms,util_percent");
}

static void ckbi_csv_result(ckbi_out *out, const ckb_bench_result *result)
{
    bool ran = result->elapsed_ns != 0, synced = ckbi_result_is_synced(result);
    ckbi_out_text(out, ckbi_result_kind(result));
    ckbi_csv_count(out, result->round != 0, result->round);
    ckbi_csv_count(out, true, result->threads);
    ckbi_csv_count(out, true, result->size_bytes);
    ckbi_csv_count(out, true, result->segment_bytes);
    ckbi_csv_count(out, !result->is_log && !result->is_teragen, result->chunks_per_block);
    ckbi_out_char(out, ',');
    ckbi_out_sync(out, result);
    ckbi_csv_count(out, !result->is_log && !result->is_teragen, result->shared);
    ckbi_csv_double(out, result->rate_limit_milli != 0, (double)result->rate_limit_milli / 1000.0);
    ckbi_csv_count(out, true, result->finished);
    ckbi_csv_count(out, true, result->operations);
    ckbi_csv_count(out, true, result->failures);
    ckbi_csv_count(out, true, result->bytes);
    ckbi_csv_count(out, true, result->elapsed_ns);
    ckbi_csv_count(out, synced, result->sync_ns);
    ckbi_csv_double(out, ran, ckbi_per_second(result->operations, result->elapsed_ns));
    ckbi_csv_double(out, synced, ckbi_per_second(result->operations, ckbi_result_total_ns(result)));
    ckbi_csv_double(out, ran, ckbi_result_mib_per_s(result));
    ckbi_csv_latency(out, &result->latency);
    ckbi_csv_latency(out, &result->durable_latency);
}

static void ckbi_csv_teragen(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_teragen_result *t = &result->teragen;
    ckbi_csv_count(out, true, t->chunk_bytes);
    ckbi_csv_count(out, true, t->chunks);
    ckbi_csv_count(out, true, t->write_calls);
    ckbi_csv_count(out, true, t->write_ns);
    ckbi_csv_double(out, t->write_calls != 0, ckbi_ns_per_write(result));
    ckbi_csv_count(out, true, t->sum.low);
}

static void ckbi_print_csv(const ckb_bench_report *report, ckbi_out *out)
{
    bool logs = false, teragen = ckbi_is_teragen(report->workload);
    for (uint32_t i = 0; i < report->result_count; i++)
        logs = logs || report->results[i].is_log;
    ckbi_out_text(
        out, "kind,round,threads,size_bytes,segment_bytes,chunks_per_block,sync,shared,rate_limit_per_s,"
             "finished,operations,failures,bytes,elapsed_ns,sync_ns,rate_per_s,adjusted_rate_per_s,mib_per_s");
    ckbi_csv_latency_heading(out, "");
    ckbi_csv_latency_heading(out, "durable_");
    if (logs)
        ckbi_csv_log_heading(out);
    if (teragen)
        ckbi_out_text(out, ",chunk_bytes,chunks,write_calls,write_ns,ns_per_write,checksum");
    ckbi_out_char(out, '\n');
    for (uint32_t i = 0; i < report->result_count; i++) {
        ckbi_csv_result(out, &report->results[i]);
        if (logs)
            ckbi_csv_log(out, &report->results[i]);
        if (teragen)
            ckbi_csv_teragen(out, &report->results[i]);
        ckbi_out_char(out, '\n');
    }
}

/* ---- the field's line ---- */

static void ckbi_dropwizard_double(ckbi_out *out, const char *key, double value)
{
    ckbi_out_text(out, ", ");
    ckbi_out_text(out, key);
    ckbi_out_char(out, '=');
    ckbi_out_double(out, value);
}

static void ckbi_dropwizard_line(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_latency *latency = &result->latency;
    ckbi_out_text(out, result->is_log ? "type=TIMER, name=log-append, count="
                                      : "type=TIMER, name=chunk-write, count=");
    ckbi_out_number(out, latency->count);
    ckbi_dropwizard_double(out, "min", (double)latency->min / 1e6);
    ckbi_dropwizard_double(out, "max", (double)latency->max / 1e6);
    ckbi_dropwizard_double(out, "mean", latency->mean / 1e6);
    ckbi_dropwizard_double(out, "stddev", latency->stddev / 1e6);
    ckbi_dropwizard_double(out, "median", (double)latency->p50 / 1e6);
    ckbi_dropwizard_double(out, "p75", (double)latency->p75 / 1e6);
    ckbi_dropwizard_double(out, "p95", (double)latency->p95 / 1e6);
    ckbi_dropwizard_double(out, "p98", (double)latency->p98 / 1e6);
    ckbi_dropwizard_double(out, "p99", (double)latency->p99 / 1e6);
    ckbi_dropwizard_double(out, "p999", (double)latency->p999 / 1e6);
    ckbi_dropwizard_double(out, "mean_rate", result->mean_rate);
    ckbi_dropwizard_double(out, "m1", result->rates[0]);
    ckbi_dropwizard_double(out, "m5", result->rates[1]);
    ckbi_dropwizard_double(out, "m15", result->rates[2]);
    ckbi_out_text(out, ", rate_unit=events/second, duration_unit=milliseconds\n");
    ckbi_out_text(out, "Total execution time (sec): ");
    ckbi_out_number(out, (result->elapsed_ns + 500000000) / 1000000000);
    ckbi_out_text(out, "\nFailures: ");
    ckbi_out_number(out, result->failures);
    ckbi_out_text(out, "\nSuccessful executions: ");
    ckbi_out_number(out, result->operations);
    ckbi_out_char(out, '\n');
}

/* ---- text ---- */

static void ckbi_text_rate(ckbi_out *out, bool defined, double value, int width)
{
    ckbi_cell_start(out);
    if (defined)
        ckbi_out_three(out, value);
    else
        ckbi_out_char(out, '-');
    ckbi_cell_end(out, width);
}

static void ckbi_text_duration(ckbi_out *out, bool defined, uint64_t duration_ns, int width)
{
    ckbi_cell_start(out);
    if (defined)
        ckbi_out_duration(out, duration_ns);
    else
        ckbi_out_char(out, '-');
    ckbi_cell_end(out, width);
}

static void ckbi_text_result(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_latency *latency =
        result->durable_latency.count != 0 ? &result->durable_latency : &result->latency;
    bool any = latency->count != 0, ran = result->elapsed_ns != 0, synced = ckbi_result_is_synced(result);
    ckbi_cell_start(out);
    ckbi_out_number(out, result->threads);
    ckbi_cell_end(out, 7);
    ckbi_cell_start(out);
    ckbi_out_size(out, result->size_bytes);
    ckbi_cell_end(out, 9);
    ckbi_cell_start(out);
    ckbi_out_size(out, result->segment_bytes);
    ckbi_cell_end(out, 9);
    ckbi_cell_start(out);
    ckbi_out_sync(out, result);
    ckbi_cell_end(out, 7);
    ckbi_text_duration(out, ran, result->elapsed_ns, 9);
    ckbi_text_duration(out, synced, result->sync_ns, 9);
    ckbi_text_rate(out, ran, ckbi_per_second(result->operations, result->elapsed_ns), 10);
    ckbi_text_rate(out, synced, ckbi_per_second(result->operations, ckbi_result_total_ns(result)), 12);
    ckbi_text_rate(out, ran, ckbi_result_mib_per_s(result), 8);
    ckbi_text_duration(out, any, latency->p50, 9);
    ckbi_text_duration(out, any, latency->p99, 9);
    ckbi_text_duration(out, any, latency->p999, 9);
    ckbi_text_duration(out, any, latency->max, 9);
    ckbi_cell_start(out);
    ckbi_out_number(out, result->failures);
    ckbi_cell_end(out, 8);
    ckbi_out_char(out, '\n');
}

static void ckbi_text_notes(ckbi_out *out, const ckb_bench_result *result)
{
    if (result->verify_done) {
        ckbi_out_threads(out, result->threads, " thread: ", " threads: ");
        ckbi_out_number(out, result->verified);
        ckbi_out_text(out, result->is_log ? " entries" : result->is_teragen ? " rows" : " chunks");
        ckbi_out_text(out, " read back equal after a remount, ");
        ckbi_out_number(out, result->verify_failures);
        ckbi_out_text(out, " not\n");
    }
    if (result->clock_steps != 0) {
        ckbi_out_threads(out, result->threads, " thread: ", " threads: ");
        ckbi_out_text(out, "the clock went back ");
        ckbi_out_number(out, result->clock_steps);
        ckbi_out_text(out, " times, counted as no time\n");
    }
    if (result->stalls == 0)
        return;
    ckbi_out_threads(out, result->threads, " thread: ", " threads: ");
    ckbi_out_number(out, result->stalls);
    ckbi_out_text(out, " stalls, the longest");
    for (uint32_t i = 0; i < result->stall_count && i < 3; i++) {
        ckbi_out_text(out, i == 0 ? " " : ", ");
        ckbi_out_duration(out, result->stall[i].latency_ns);
        ckbi_out_text(out, " at ");
        ckbi_out_duration(out, result->stall[i].at_ns);
    }
    ckbi_out_char(out, '\n');
}

static void ckbi_text_write(const ckb_bench_report *report, ckbi_out *out)
{
    static const struct {
        const char *name;
        int width;
    } headings[] = {{"threads", 7}, {"chunk", 9},   {"segment", 9},     {"sync", 7},    {"run", 9},
                    {"+ sync", 9},  {"rate/s", 10}, {"adjusted/s", 12}, {"MiB/s", 8},   {"p50", 9},
                    {"p99", 9},     {"p99.9", 9},   {"max", 9},         {"failures", 8}};
    bool open = report->result_count != 0 && report->results[0].rate_limit_milli != 0;
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        ckbi_out_cell(out, headings[i].name, headings[i].width);
    ckbi_out_char(out, '\n');
    for (uint32_t i = 0; i < report->result_count; i++)
        ckbi_text_result(out, &report->results[i]);
    ckbi_out_text(out, "adjusted/s and MiB/s include the final sync. Latency is of all operations, ");
    ckbi_out_text(out, open ? "open loop: from the intended start" : "closed loop");
    ckbi_out_text(out, ", until durable where threads sync.\n");
    for (uint32_t i = 0; i < report->result_count; i++)
        ckbi_text_notes(out, &report->results[i]);
}

/* ---- text of a log */

typedef struct ckbi_heading {
    const char *name;
    int width;
} ckbi_heading;

static void ckbi_text_headings(ckbi_out *out, const ckbi_heading *headings, size_t count)
{
    static const ckbi_heading axes[] = {{"threads", 7}, {"entry", 10}, {"segment", 9},
                                        {"sync", 7},    {"ahead", 6},  {"prepare", 9}};
    for (size_t i = 0; i < sizeof axes / sizeof axes[0]; i++)
        ckbi_out_cell(out, axes[i].name, axes[i].width);
    for (size_t i = 0; i < count; i++)
        ckbi_out_cell(out, headings[i].name, headings[i].width);
    ckbi_out_char(out, '\n');
}

static void ckbi_text_log_size(ckbi_out *out, const ckb_bench_result *result)
{
    if (result->size_min_bytes != result->size_bytes) {
        ckbi_out_exact_size(out, result->size_min_bytes);
        ckbi_out_char(out, '-');
        ckbi_out_exact_size(out, result->size_bytes);
    } else {
        ckbi_out_size(out, result->size_bytes);
    }
}

static void ckbi_text_log_axes(ckbi_out *out, const ckb_bench_result *result)
{
    ckbi_cell_start(out);
    ckbi_out_number(out, result->threads);
    ckbi_cell_end(out, 7);
    ckbi_cell_start(out);
    ckbi_text_log_size(out, result);
    ckbi_cell_end(out, 10);
    ckbi_cell_start(out);
    ckbi_out_size(out, result->segment_bytes);
    ckbi_cell_end(out, 9);
    ckbi_cell_start(out);
    ckbi_out_sync(out, result);
    ckbi_cell_end(out, 7);
    ckbi_cell_start(out);
    ckbi_out_number(out, result->log.ahead);
    ckbi_cell_end(out, 6);
    ckbi_out_cell(out, result->log.prepare != 0 ? ckbi_prepare_text(result->log.prepare) : "-", 9);
}

static void ckbi_text_log_speed(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_latency *latency =
        result->durable_latency.count != 0 ? &result->durable_latency : &result->latency;
    bool any = latency->count != 0, ran = result->elapsed_ns != 0;
    ckbi_text_log_axes(out, result);
    ckbi_text_rate(out, ran, ckbi_per_second(result->operations, ckbi_result_total_ns(result)), 11);
    ckbi_text_rate(out, ran, ckbi_result_mib_per_s(result), 8);
    ckbi_text_duration(out, any, latency->p50, 9);
    ckbi_text_duration(out, any, latency->p99, 9);
    ckbi_text_duration(out, any, latency->p999, 9);
    ckbi_text_duration(out, any, latency->max, 9);
    ckbi_cell_start(out);
    ckbi_out_number(out, result->failures);
    ckbi_cell_end(out, 9);
    ckbi_out_char(out, '\n');
}

static void ckbi_text_log_syncs(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_log_result *log = &result->log;
    bool committed = log->commits != 0, watched = log->interval_ns != 0;
    ckbi_text_log_axes(out, result);
    ckbi_text_rate(out, committed, ckbi_entries_per_sync(result), 13);
    ckbi_text_rate(out, committed, ckbi_bytes_per_sync(result), 11);
    ckbi_text_rate(out, watched, ckbi_per_second(log->commits, log->interval_ns), 9);
    ckbi_text_rate(out, watched, ckbi_per_second(log->rolls, log->interval_ns), 9);
    ckbi_text_duration(out, log->queue_wait.count != 0, (uint64_t)log->queue_wait.mean, 11);
    ckbi_text_duration(out, log->device_wait.count != 0, (uint64_t)log->device_wait.mean, 12);
    ckbi_text_duration(out, log->rolled.count != 0, log->rolled.p50, 11);
    ckbi_text_duration(out, log->rolled.count != 0, log->rolled.p99, 11);
    ckbi_text_duration(out, log->others.count != 0, log->others.p50, 11);
    ckbi_text_duration(out, log->others.count != 0, log->others.p99, 11);
    ckbi_out_char(out, '\n');
}

static void ckbi_text_log_disk(ckbi_out *out, const ckb_bench_result *result)
{
    ckbi_text_log_axes(out, result);
    for (uint32_t i = 0; i < CKBI_DISK_COLUMNS; i++) {
        ckbi_cell_start(out);
        if (result->log.disk.name[0] != '\0')
            ckbi_out_fixed(out, ckbi_disk_column(&result->log.disk, i), 2);
        else
            ckbi_out_char(out, '-');
        ckbi_cell_end(out, 10);
    }
    ckbi_out_char(out, '\n');
}

static void ckbi_text_rows(const ckb_bench_report *report, ckbi_out *out,
                           void (*row)(ckbi_out *out, const ckb_bench_result *result))
{
    for (uint32_t i = 0; i < report->result_count; i++)
        row(out, &report->results[i]);
}

static void ckbi_text_iostat(const ckb_bench_report *report, ckbi_out *out)
{
    static const ckbi_heading disk[] = {{"rrqm/s", 10}, {"wrqm/s", 10},  {"r/s", 10},      {"w/s", 10},
                                        {"rMB/s", 10},  {"wMB/s", 10},   {"avgrq-sz", 10}, {"avgqu-sz", 10},
                                        {"await", 10},  {"r_await", 10}, {"w_await", 10},  {"svctm", 10},
                                        {"%util", 10}};
    const char *name = "";
    for (uint32_t i = 0; i < report->result_count; i++)
        name = report->results[i].log.disk.name[0] != '\0' ? report->results[i].log.disk.name : name;
    if (name[0] == '\0') {
        ckbi_out_text(out, "No iostat line: nobody counts what a disk below ");
        ckbi_out_text(out, report->host->target->name);
        ckbi_out_text(out, " does; it lies in memory, on a network, or on another system.\n");
        return;
    }
    ckbi_out_text(out, "What ");
    ckbi_out_text(out, name);
    ckbi_out_text(out, " did meanwhile, whoever asked for it, as iostat -x shows it (sizes in sectors of 512 "
                       "bytes, times in ms, MB are MiB):\n");
    ckbi_text_headings(out, disk, sizeof disk / sizeof disk[0]);
    ckbi_text_rows(report, out, ckbi_text_log_disk);
}

static void ckbi_text_verdict(ckbi_out *out, const char *sentence, const char *caution)
{
    ckbi_out_text(out, sentence);
    ckbi_out_char(out, '\n');
    if (caution[0] == '\0')
        return;
    ckbi_out_text(out, caution);
    ckbi_out_char(out, '\n');
}

/* ---- what a sweep of a log answers */

static const ckb_option *ckbi_axis_option(uint32_t axis)
{
    static const uint8_t options[CKBI_AXIS_COUNT] = {CKBI_BENCH_LOG_THREADS, CKBI_BENCH_LOG_SEGMENT,
                                                     CKBI_BENCH_LOG_SIZE,    CKBI_BENCH_LOG_SYNC,
                                                     CKBI_BENCH_LOG_AHEAD,   CKBI_BENCH_LOG_PREPARE};
    return &ckbi_bench_log_options[options[axis]];
}

static void ckbi_out_axis(ckbi_out *out, uint32_t axis, const ckb_bench_result *result)
{
    if (axis == CKBI_AXIS_THREADS) {
        ckbi_out_threads(out, result->threads, " thread", " threads");
        return;
    }
    ckbi_out_text(out, ckbi_axis_option(axis)->name);
    ckbi_out_char(out, ' ');
    if (axis == CKBI_AXIS_SEGMENT)
        ckbi_out_size(out, result->segment_bytes);
    else if (axis == CKBI_AXIS_SIZE)
        ckbi_text_log_size(out, result);
    else if (axis == CKBI_AXIS_SYNC)
        ckbi_out_sync(out, result);
    else if (axis == CKBI_AXIS_AHEAD)
        ckbi_out_number(out, result->log.ahead);
    else
        ckbi_out_text(out, ckbi_prepare_text(result->log.prepare));
}

/* Where on the axes that vary a sentence holds, but for those that it is about: " (sync each, ahead 4)". */
static void ckbi_out_where(ckbi_out *out, const ckb_bench_report *report, const ckb_bench_result *at,
                           uint32_t about)
{
    bool any = false;
    for (uint32_t axis = 0; axis < CKBI_AXIS_COUNT; axis++) {
        bool varies = false;
        for (uint32_t i = 0; i < report->result_count; i++)
            varies = varies || !ckbi_axis_is_equal(axis, at, &report->results[i]);
        if (!varies || (about & CKBI_FREE(axis)) != 0)
            continue;
        ckbi_out_text(out, any ? ", " : " (");
        ckbi_out_axis(out, axis, at);
        any = true;
    }
    ckbi_out_text(out, any ? ")" : "");
}

static void ckbi_out_run(ckbi_out *out, uint32_t axis, const ckb_bench_result *result,
                         const ckb_bench_result *best)
{
    bool durable = result->durable_latency.count != 0;
    ckbi_out_axis(out, axis, result);
    ckbi_out_text(out, result == best ? " gives the most, " : " gives ");
    ckbi_out_three(out, ckbi_result_rate(result));
    ckbi_out_text(out, "/s");
    if (result != best) {
        ckbi_out_text(out, ", ");
        ckbi_out_three(out, 100.0 * ckbi_quotient(ckbi_result_rate(result), ckbi_result_rate(best)));
        ckbi_out_text(out, " % of that");
    }
    ckbi_out_text(out, durable ? ", durable within " : ", nothing durable");
    if (durable) {
        ckbi_out_duration(out, result->durable_latency.p99);
        ckbi_out_text(out, " (p99)");
    }
    if (axis != CKBI_AXIS_SYNC && result->log.rolled.count != 0) {
        ckbi_out_text(out, ", an append that rolls takes ");
        ckbi_out_duration(out, result->log.rolled.p50);
    }
}

/* What the values of one axis give at `at`, the best of them first; nothing when there is only one. */
static void ckbi_text_axis(ckbi_out *out, const ckb_bench_report *report, const ckb_bench_result *at,
                           uint32_t axis, const char *question)
{
    const ckb_bench_result *best = at;
    uint32_t count = 0;
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (!ckbi_is_alike(result, at, CKBI_FREE(axis)))
            continue;
        count++;
        if (result->durable_latency.count != 0 && ckbi_result_rate(result) > ckbi_result_rate(best))
            best = result;
    }
    if (count < 2)
        return;
    ckbi_out_text(out, question);
    ckbi_out_where(out, report, at, CKBI_FREE(axis));
    ckbi_out_text(out, ": ");
    ckbi_out_run(out, axis, best, best);
    for (uint32_t i = 0; i < report->result_count; i++) {
        const ckb_bench_result *result = &report->results[i];
        if (result == best || !ckbi_is_alike(result, at, CKBI_FREE(axis)))
            continue;
        ckbi_out_text(out, "; ");
        ckbi_out_run(out, axis, result, best);
    }
    ckbi_out_text(out, ".\n");
}

/* What threads that share syncs gain, in segments of the chosen size. */
static void ckbi_text_log_threads(ckbi_out *out, const ckb_bench_report *report, const ckb_bench_result *few,
                                  const ckb_bench_result *many)
{
    ckbi_out_threads(out, many->threads, " thread reaches ", " threads reach ");
    ckbi_out_three(out, ckbi_result_rate(many));
    ckbi_out_text(out, report->host->target->volatile_medium ? " appends/s" : " durable appends/s");
    if (many->rate_limit_milli != 0) {
        ckbi_out_text(out, " of the ");
        ckbi_out_three(out, (double)many->rate_limit_milli / 1000.0);
        ckbi_out_text(out, "/s that were asked for");
    }
    if (many != few) {
        ckbi_out_text(out, ", ");
        ckbi_out_three(out, ckbi_quotient(ckbi_result_rate(many), ckbi_result_rate(few)));
        ckbi_out_text(out, " times the ");
        ckbi_out_three(out, ckbi_result_rate(few));
        ckbi_out_text(out, "/s of ");
        ckbi_out_threads(out, few->threads, " thread", " threads");
    }
    ckbi_out_text(out, ", with ");
    ckbi_out_three(out, ckbi_entries_per_sync(many));
    ckbi_out_text(out, " entries per sync");
    ckbi_out_where(out, report, many, CKBI_FREE(CKBI_AXIS_THREADS));
    ckbi_out_text(out, ".\n");
}

/* Of runs that etcd's rule does not fit. */
static void ckbi_text_log_latency(ckbi_out *out, const ckb_bench_report *report, const ckb_bench_result *result)
{
    ckbi_out_text(out, "99 of 100 appends by ");
    ckbi_out_threads(out, result->threads, " thread", " threads");
    ckbi_out_where(out, report, result, CKBI_FREE(CKBI_AXIS_THREADS));
    ckbi_out_text(out, " were durable within ");
    ckbi_out_duration(out, result->durable_latency.p99);
    ckbi_out_text(out, " (");
    ckbi_out_duration(out, result->log.p99_low);
    ckbi_out_char(out, '-');
    ckbi_out_duration(out, result->log.p99_high);
    ckbi_out_text(out, "), half within ");
    ckbi_out_duration(out, result->durable_latency.p50);
    ckbi_out_text(out, "; etcd's rule for a WAL, less than ");
    ckbi_out_duration(out, CKB_WAL_P99_NS);
    ckbi_out_text(out, ", is about -t 1 --sync each without --rate.\n");
}

static void ckbi_text_log_answer(const ckb_bench_report *report, ckbi_out *out)
{
    const ckb_segment_answer *answer = &report->segment_answer;
    const ckb_bench_result *few, *many;
    uint64_t segment_bytes = answer->rows[answer->answer].segment_bytes;
    if (answer->rounds == 0) {
        if (report->status == CKB_OK && !report->interrupted)
            ckbi_out_text(out, "\nNothing was made durable, so that nothing is said about a WAL.\n");
        return;
    }
    few = ckbi_study_find(report, answer, 0, segment_bytes, answer->threads[0]);
    many = ckbi_study_find(report, answer, 0, segment_bytes, answer->threads[answer->thread_counts - 1]);
    if (few == NULL || many == NULL)
        return;
    ckbi_out_char(out, '\n');
    if (report->has_segment_answer)
        ckbi_text_verdict(out, answer->sentence, answer->caution);
    ckbi_text_log_threads(out, report, few, many);
    ckbi_text_axis(out, report, few, CKBI_AXIS_SYNC, "Sync policy");
    ckbi_text_axis(out, report, few, CKBI_AXIS_AHEAD, "Segments prepared ahead");
    ckbi_text_axis(out, report, few, CKBI_AXIS_PREPARE, "Space of a segment");
    if (report->has_wal_answer)
        ckbi_text_verdict(out, report->wal_answer.sentence, report->wal_answer.caution);
    else
        ckbi_text_log_latency(out, report, few);
}

static void ckbi_text_log(const ckb_bench_report *report, ckbi_out *out)
{
    static const ckbi_heading speed[] = {{"appends/s", 11}, {"MiB/s", 8}, {"p50", 9},     {"p99", 9},
                                         {"p99.9", 9},      {"max", 9},   {"failures", 9}};
    static const ckbi_heading syncs[] = {
        {"entries/sync", 13}, {"bytes/sync", 11}, {"syncs/s", 9},     {"rolls/s", 9},     {"queue wait", 11},
        {"device wait", 12},  {"rolled p50", 11}, {"rolled p99", 11}, {"others p50", 11}, {"others p99", 11}};
    bool open = report->result_count != 0 && report->results[0].rate_limit_milli != 0;
    ckbi_text_headings(out, speed, sizeof speed / sizeof speed[0]);
    ckbi_text_rows(report, out, ckbi_text_log_speed);
    ckbi_out_text(out, "appends/s and MiB/s include the final sync. Latency is of all appends, ");
    ckbi_out_text(out, open ? "open loop: from the intended start" : "closed loop");
    ckbi_out_text(out, ", until durable unless sync is none.\n\n");
    ckbi_text_headings(out, syncs, sizeof syncs / sizeof syncs[0]);
    ckbi_text_rows(report, out, ckbi_text_log_syncs);
    ckbi_out_text(out,
                  "Waits are means. Device wait: an append's share of the write and sync that made it durable; "
                  "queue wait: the rest. Rolled: the appends that began a segment.\n\n");
    ckbi_text_iostat(report, out);
    ckbi_text_rows(report, out, ckbi_text_notes);
    ckbi_text_log_answer(report, out);
}

static void ckbi_text_share(ckbi_out *out, double middle, double low, double high, int width)
{
    ckbi_cell_start(out);
    ckbi_out_percent(out, middle);
    ckbi_out_text(out, " (");
    ckbi_out_fixed(out, low * 100.0, 0);
    ckbi_out_char(out, '-');
    ckbi_out_percent(out, high);
    ckbi_out_char(out, ')');
    ckbi_cell_end(out, width);
}

static void ckbi_text_writers(const ckb_bench_report *report, ckbi_out *out)
{
    const ckb_qualify_answer *answer = &report->answer;
    uint64_t size_bytes = report->values[CKBI_QUALIFY_SIZE].number[0];
    if (!report->has_answer) {
        ckbi_out_text(out, "No round was completed; there is no answer.\n");
        return;
    }
    ckbi_out_text(out, "How many writer threads? Chunks of ");
    ckbi_out_size(out, size_bytes);
    ckbi_out_text(out, ", final sync included; medians of ");
    ckbi_out_threads(out, answer->rounds, " round", " rounds");
    ckbi_out_text(out, " (ranges hold them with ");
    ckbi_out_percent(out, answer->confidence);
    ckbi_out_text(out, ").\n\nthreads     chunks/s     MiB/s       of the best     of sequential\n");
    for (uint32_t i = 0; i < answer->row_count; i++) {
        const ckb_qualify_row *row = &answer->rows[i];
        ckbi_cell_start(out);
        ckbi_out_number(out, row->threads);
        ckbi_cell_end(out, 7);
        ckbi_text_rate(out, true, row->rate_per_s, 13);
        ckbi_text_rate(out, true, row->rate_per_s * (double)size_bytes / 1048576.0, 10);
        ckbi_text_share(out, row->of_best, row->of_best_low, row->of_best_high, 18);
        ckbi_text_share(out, row->of_ceiling, row->of_ceiling_low, row->of_ceiling_high, 18);
        ckbi_out_char(out, '\n');
    }
    ckbi_out_text(out, "sequential (4 MiB writes, then sync)");
    ckbi_out_text(out, ": ");
    ckbi_out_three(out, answer->ceiling_mib_per_s);
    ckbi_out_text(out, " MiB/s\n\n");
    ckbi_text_verdict(out, report->sentence, report->caution);
}

static void ckbi_text_segment_row(ckbi_out *out, const ckb_segment_answer *answer, const ckb_segment_row *row)
{
    for (uint32_t which = 0; which < answer->thread_counts; which++) {
        ckbi_cell_start(out);
        ckbi_out_size(out, row->segment_bytes);
        ckbi_cell_end(out, 9);
        ckbi_cell_start(out);
        ckbi_out_number(out, answer->threads[which]);
        ckbi_cell_end(out, 9);
        ckbi_text_rate(out, true, row->rate_per_s[which], 11);
        ckbi_text_share(out, row->of_best[which], row->of_best_low[which], row->of_best_high[which], 18);
        ckbi_text_rate(out, true, row->entries_per_sync[which], 14);
        ckbi_text_duration(out, row->roll_ns[which] > 0.0, (uint64_t)row->roll_ns[which], 12);
        ckbi_text_duration(out, true, (uint64_t)row->other_ns[which], 12);
        ckbi_cell_start(out);
        if (row->disk_wait_ms[which] > 0.0) {
            ckbi_out_three(out, row->disk_wait_ms[which]);
            ckbi_out_text(out, " ms");
        } else {
            ckbi_out_char(out, '-');
        }
        ckbi_cell_end(out, 9);
        ckbi_out_char(out, '\n');
    }
}

static void ckbi_text_segments(const ckb_bench_report *report, ckbi_out *out)
{
    const ckb_segment_answer *answer = &report->segment_answer;
    if (!report->has_segment_answer)
        return;
    ckbi_out_text(out, "\nWhich log segments? Durable appends of ");
    ckbi_out_size(out, CKBI_STUDY_ENTRY_BYTES);
    ckbi_out_text(out, "; medians of ");
    ckbi_out_threads(out, answer->rounds, " round", " rounds");
    ckbi_out_text(out, " (ranges hold them with ");
    ckbi_out_percent(out, answer->confidence);
    ckbi_out_text(out, ").\n\n  segment  threads  appends/s       of the best  entries/sync  rolled p50"
                       "  others p50    await\n");
    for (uint32_t i = 0; i < answer->row_count; i++)
        ckbi_text_segment_row(out, answer, &answer->rows[i]);
    ckbi_out_char(out, '\n');
    ckbi_text_verdict(out, answer->sentence, answer->caution);
}

static void ckbi_text_wal(const ckb_bench_report *report, ckbi_out *out)
{
    const ckb_wal_answer *answer = &report->wal_answer;
    if (!report->has_wal_answer)
        return;
    ckbi_out_text(out, "\nFit for a WAL? One thread, each append durable, segments of ");
    ckbi_out_size(out, answer->segment_bytes);
    ckbi_out_text(out, ", for ");
    ckbi_out_duration(out, answer->measured_ns);
    ckbi_out_text(out, ".\n\n");
    ckbi_text_verdict(out, answer->sentence, answer->caution);
}

/* ---- text of TeraGen */

static void ckbi_text_teragen_result(ckbi_out *out, const ckb_bench_result *result)
{
    bool ran = result->elapsed_ns != 0, synced = ckbi_result_is_synced(result);
    const ckb_teragen_result *t = &result->teragen;
    ckbi_cell_start(out);
    ckbi_out_number(out, result->threads);
    ckbi_cell_end(out, 7);
    ckbi_cell_start(out);
    ckbi_out_number(out, result->operations);
    ckbi_cell_end(out, 12);
    ckbi_cell_start(out);
    ckbi_out_size(out, t->chunk_bytes);
    ckbi_cell_end(out, 9);
    ckbi_cell_start(out);
    ckbi_out_size(out, result->segment_bytes);
    ckbi_cell_end(out, 10);
    ckbi_cell_start(out);
    ckbi_out_sync(out, result);
    ckbi_cell_end(out, 8);
    ckbi_text_duration(out, ran, result->elapsed_ns, 9);
    ckbi_text_duration(out, synced, result->sync_ns, 9);
    ckbi_text_rate(out, ran, ckbi_per_second(result->operations, result->elapsed_ns), 10);
    ckbi_text_rate(out, synced, ckbi_per_second(result->operations, ckbi_result_total_ns(result)), 12);
    ckbi_text_rate(out, ran, ckbi_result_mib_per_s(result), 8);
    ckbi_text_rate(out, t->write_calls != 0, ckbi_ns_per_write(result), 10);
    ckbi_cell_start(out);
    ckbi_out_number(out, t->chunks);
    ckbi_cell_end(out, 8);
    ckbi_cell_start(out);
    ckbi_out_number(out, t->sum.low);
    ckbi_cell_end(out, 21);
    ckbi_out_char(out, '\n');
}

static void ckbi_out_calls(ckbi_out *out, const char *name, uint64_t calls, uint64_t total_ns)
{
    ckbi_out_text(out, ", ");
    ckbi_out_text(out, name);
    ckbi_out_text(out, ".call=");
    ckbi_out_number(out, calls);
    ckbi_out_text(out, ", ");
    ckbi_out_text(out, name);
    ckbi_out_text(out, ".allTime=");
    ckbi_out_fixed(out, (double)total_ns / 1e6, 3);
}

/* The counters of a stream, named as the field names them; times in ms. */
static void ckbi_text_stream(ckbi_out *out, const char *name, uint64_t number, const ckb_stream_use *use)
{
    ckbi_out_text(out, "  ");
    ckbi_out_text(out, name);
    if (number != 0)
        ckbi_out_number(out, number);
    ckbi_out_text(out, ": rows=");
    ckbi_out_number(out, use->rows);
    ckbi_out_text(out, ", chunks=");
    ckbi_out_number(out, use->chunks);
    ckbi_out_calls(out, "write", use->write_calls, use->write_ns);
    ckbi_out_calls(out, "hsync", use->hsync_calls, use->hsync_ns);
    ckbi_out_calls(out, "hflush", use->flush_calls, use->flush_ns);
    ckbi_out_calls(out, "close", use->close_calls, use->close_ns);
    ckbi_out_char(out, '\n');
}

#define CKBI_STREAMS_SHOWN 8u /* with more mappers, the extremes; JSON has all */

static void ckbi_text_streams(ckbi_out *out, const ckb_bench_result *result)
{
    const ckb_teragen_result *t = &result->teragen;
    uint32_t least = 0, most = 0;
    for (uint32_t i = 0; i < t->stream_count; i++) {
        least = t->streams[i].write_ns < t->streams[least].write_ns ? i : least;
        most = t->streams[i].write_ns > t->streams[most].write_ns ? i : most;
        if (t->stream_count <= CKBI_STREAMS_SHOWN)
            ckbi_text_stream(out, "mapper ", (uint64_t)i + 1, &t->streams[i]);
    }
    if (t->stream_count <= CKBI_STREAMS_SHOWN)
        return;
    ckbi_text_stream(out, "quickest, mapper ", (uint64_t)least + 1, &t->streams[least]);
    ckbi_text_stream(out, "slowest, mapper ", (uint64_t)most + 1, &t->streams[most]);
}

/* What was measured in 2020 with as many mappers, 100,000,000 rows on three data nodes. */
static void ckbi_text_then(ckbi_out *out, const ckb_bench_result *result, bool in_memory)
{
    static const struct {
        uint32_t mappers;
        bool in_memory;
        double seconds, ns_per_write; /* 0: not told */
        const char *where;
    } then[] = {{2, false, 356.2, 2032.6, "on disks"},
                {2, true, 256.5, 1231.2, "on memory disks"},
                {2, true, 99.1, 0.0, "on memory disks, after two fixes"},
                {92, true, 81.6, 1840.0, "on memory disks"}};
    double now = ckbi_per_second(result->operations, ckbi_result_total_ns(result));
    for (size_t i = 0; i < sizeof then / sizeof then[0] && result->finished; i++) {
        if (then[i].mappers != result->threads || then[i].in_memory != in_memory)
            continue;
        ckbi_out_text(out, "Then, 2020, Ozone with ");
        ckbi_out_number(out, then[i].mappers);
        ckbi_out_text(out, " mappers ");
        ckbi_out_text(out, then[i].where);
        ckbi_out_text(out, ": ");
        ckbi_out_three(out, 1e8 / then[i].seconds);
        ckbi_out_text(out, " rows/s");
        if (then[i].ns_per_write > 0.0) {
            ckbi_out_text(out, ", ");
            ckbi_out_three(out, then[i].ns_per_write);
            ckbi_out_text(out, " ns a write call");
        }
        ckbi_out_text(out, ". Now: ");
        ckbi_out_three(out, now);
        ckbi_out_text(out, " rows/s, ");
        ckbi_out_three(out, ckbi_ns_per_write(result));
        ckbi_out_text(out, " ns.\n");
    }
}

static void ckbi_text_teragen(const ckb_bench_report *report, ckbi_out *out)
{
    static const ckbi_heading headings[] = {{"mappers", 7},     {"rows", 12}, {"chunk", 9},     {"segment", 10},
                                            {"sync", 8},        {"run", 9},   {"+ sync", 9},    {"rows/s", 10},
                                            {"adjusted/s", 12}, {"MiB/s", 8}, {"ns/write", 10}, {"chunks", 8},
                                            {"checksum", 21}};
    for (size_t i = 0; i < sizeof headings / sizeof headings[0]; i++)
        ckbi_out_cell(out, headings[i].name, headings[i].width);
    ckbi_out_char(out, '\n');
    ckbi_text_rows(report, out, ckbi_text_teragen_result);
    ckbi_out_text(out,
                  "adjusted/s and MiB/s include the final sync. A row is two writes, of 10 and of 90 bytes; "
                  "ns/write is their mean, chunks included, making the rows not. Times below are in ms.\n");
    for (uint32_t i = 0; i < report->result_count; i++) {
        ckbi_out_threads(out, report->results[i].threads, " mapper:\n", " mappers:\n");
        ckbi_text_streams(out, &report->results[i]);
    }
    ckbi_text_rows(report, out, ckbi_text_notes);
    for (uint32_t i = 0; i < report->result_count; i++)
        ckbi_text_then(out, &report->results[i], report->host->target->volatile_medium);
    if (report->sentence[0] != '\0')
        ckbi_text_verdict(out, report->sentence, "");
}

static void ckbi_text_qualify(const ckb_bench_report *report, ckbi_out *out)
{
    ckbi_text_writers(report, out);
    ckbi_text_segments(report, out);
    ckbi_text_wal(report, out);
}

static void ckbi_print_text(const ckb_bench_report *report, ckbi_out *out)
{
    const ckb_bench_host *host = report->host;
    const char *warning;
    ckbi_out_text(out, "chunkbench ");
    ckbi_out_text(out, ckb_version());
    ckbi_out_char(out, ' ');
    ckbi_out_text(out, report->workload->name);
    ckbi_out_text(out, " on ");
    ckbi_out_text(out, host->target->name);
    ckbi_out_char(out, '\n');
    for (uint32_t i = 0; i < host->environment_count; i++) {
        if (host->environment[i].value[0] == '\0')
            continue;
        ckbi_out_text(out, "  ");
        ckbi_out_text(out, host->environment[i].key);
        ckbi_out_text(out, ": ");
        ckbi_out_text(out, host->environment[i].value);
        ckbi_out_char(out, '\n');
    }
    for (uint32_t i = 0; (warning = ckbi_report_warning(report, i)) != NULL; i++) {
        ckbi_out_text(out, "  warning: ");
        ckbi_out_text(out, warning);
        ckbi_out_char(out, '\n');
    }
    ckbi_out_char(out, '\n');
    if (ckbi_is_qualify(report->workload))
        ckbi_text_qualify(report, out);
    else if (ckbi_is_log(report->workload))
        ckbi_text_log(report, out);
    else if (ckbi_is_teragen(report->workload))
        ckbi_text_teragen(report, out);
    else
        ckbi_text_write(report, out);
    if (report->interrupted)
        ckbi_out_text(out, "interrupted: this is what was measured until then\n");
    if (report->message[0] != '\0') {
        ckbi_out_text(out, "failed: ");
        ckbi_out_text(out, report->message);
        ckbi_out_char(out, '\n');
    }
}

CKB_DEF int ckb_bench_print(const ckb_bench_report *report, int format, const ckb_sink *sink)
{
    ckbi_out out;
    ckbi_out_start(&out, sink);
    switch (format) {
    case CKB_PRINT_JSON:
        ckbi_print_json(report, &out);
        break;
    case CKB_PRINT_CSV:
        ckbi_print_csv(report, &out);
        break;
    case CKB_PRINT_DROPWIZARD:
        for (uint32_t i = 0; i < report->result_count; i++)
            if (!report->results[i].raw)
                ckbi_dropwizard_line(&out, &report->results[i]);
        break;
    default:
        ckbi_print_text(report, &out);
        break;
    }
    return ckbi_out_end(&out);
}

#endif /* CHUNKBENCH_BENCH */

#endif /* CKBI_IMPLEMENTED */
#endif /* CHUNKBENCH_IMPLEMENTATION */
