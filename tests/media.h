/* Test media, stacked through struct ckb_medium: fault(crash(trace(ram))).
 *
 * ram    bytes in memory; what erase leaves behind is chosen.
 * trace  holds the core to the porting contract and counts what it does.
 * crash  keeps a log of all that changes the medium, with notes of the workload in between, so that the
 *        state after a power cut at any step can be made afterwards without running the workload again.
 * fault  lets operation k fail, fall short, vanish, lie or wait. */
#ifndef CKB_TESTS_MEDIA_H
#define CKB_TESTS_MEDIA_H

#include "chunkbench.h"

#include <pthread.h>
#include <stdio.h>

/* ------------------------------------------------------------------------------------------ >>helpers */

/* Seeded random numbers; the same seed gives the same sequence on every machine. */
typedef struct media_random {
    uint64_t state;
} media_random;

media_random media_random_from(uint64_t seed, uint64_t stream, uint64_t position);
uint64_t media_random_next(media_random *random);
/* 0 .. limit - 1; 0 when limit is 0. */
uint64_t media_random_below(media_random *random, uint64_t limit);
void media_random_fill(media_random *random, void *buffer, size_t bytes);

/* Content hash of an image. Not for adversaries. */
uint64_t media_hash(const void *data, size_t bytes);

/* The number behind `name=` in an id such as seed=7/step=12/choice=3; false when it is not there. */
bool media_id_number(const char *id, const char *name, uint64_t *number);

/* A set of hashes that counts how many different ones it saw. */
typedef struct media_set {
    uint64_t *slots;
    size_t capacity; /* a power of two */
    size_t count;
} media_set;

void media_set_init(media_set *set, size_t most);
void media_set_free(media_set *set);
/* True when the hash was not there before. */
bool media_set_add(media_set *set, uint64_t hash);

static inline size_t media_volume_bytes(const ckb_geometry *geometry)
{
    return (size_t)(geometry->segment_bytes * geometry->segment_count);
}

/* malloc that ends the test instead of returning null. */
void *media_alloc(size_t bytes);
/* The same, aligned for any medium under test. */
void *media_alloc_aligned(size_t bytes);

/* ---------------------------------------------------------------------------------------------- >>ram */

/* What erase leaves in a segment. */
typedef enum media_fill {
    MEDIA_FILL_STALE, /* the old bytes */
    MEDIA_FILL_ZERO,
    MEDIA_FILL_ONES,
    MEDIA_FILL_NOISE, /* bytes that depend on the place only */
    MEDIA_FILL_MIXED, /* each unit one of the four */
    MEDIA_FILL_COUNT
} media_fill;

typedef struct media_ram {
    ckb_geometry geometry;
    uint8_t *image; /* media_volume_bytes long; owned */
    media_fill erase_leaves;
} media_ram;

void media_ram_init(media_ram *ram, const ckb_geometry *geometry);
void media_ram_free(media_ram *ram);
ckb_medium media_ram_medium(media_ram *ram);

/* -------------------------------------------------------------------------------------------- >>trace */

typedef struct media_trace_segment {
    uint64_t end;  /* first byte not written since the last erase */
    bool erased;   /* erased at least once */
    uint32_t busy; /* writes and erases that are running */
} media_trace_segment;

typedef struct media_trace {
    ckb_medium below;
    media_trace_segment *segments;
    pthread_mutex_t lock;
    uint64_t reads, writes, erases, syncs;
    uint64_t bytes_read, bytes_written;
    uint64_t violations;
    char message[160]; /* the first violation */
    bool quiet;        /* do not print violations */
} media_trace;

void media_trace_init(media_trace *trace, const ckb_medium *below);
void media_trace_free(media_trace *trace);
ckb_medium media_trace_medium(media_trace *trace);

/* -------------------------------------------------------------------------------------------- >>crash */

typedef enum media_event_kind {
    MEDIA_EVENT_WRITE,
    MEDIA_EVENT_ERASE,
    MEDIA_EVENT_SYNC,
    MEDIA_EVENT_NOTE
} media_event_kind;

typedef struct media_event {
    media_event_kind kind;
    uint32_t segment;
    uint64_t offset;
    size_t length;
    size_t data;   /* write: where the bytes lie in the arena */
    size_t covers; /* sync: events before this one had returned when it was called */
    int note;      /* note: what the workload says, with two values of its own */
    uint64_t first;
    int64_t second;
} media_event;

typedef struct media_crash {
    ckb_medium below;
    pthread_mutex_t lock;
    media_event *events;
    size_t event_count, event_capacity;
    uint8_t *arena;
    size_t arena_used, arena_capacity;
    uint64_t operations; /* operations of the medium so far, reads included */
    uint64_t cut_after;  /* all operations after this many fail with CKB_IO */
    long slow_sync_ns;   /* lets other threads run between call and return of a sync */
} media_crash;

#define MEDIA_NEVER UINT64_MAX

void media_crash_init(media_crash *crash, const ckb_medium *below);
void media_crash_free(media_crash *crash);
/* Forgets the log and heals a cut. */
void media_crash_restart(media_crash *crash);
ckb_medium media_crash_medium(media_crash *crash);
/* Adds a note to the log; returns its number. */
size_t media_crash_note(media_crash *crash, int note, uint64_t first, int64_t second);
/* The log to a file and back, so that a run with threads can be replayed. False on failure. */
bool media_crash_save(const media_crash *crash, FILE *file);
bool media_crash_load(media_crash *crash, FILE *file);

/* Walks a log and knows, at every step, what is durable and what is pending. */
typedef struct media_cursor {
    const media_crash *log;
    ckb_geometry geometry;
    size_t next;      /* events consumed */
    size_t step;      /* operations (not notes) consumed */
    uint8_t *durable; /* bytes; stale ones where a unit is not written */
    uint8_t *written; /* one per unit: written durably since the last durable erase */
    size_t *pending;  /* numbers of the events that no sync covers, oldest first */
    size_t pending_count, pending_capacity;
    media_trace_segment *segments; /* what was attempted: for a trace that goes on after the cut */
} media_cursor;

/* `base` is the image before the first event. */
void media_cursor_init(media_cursor *cursor, const media_crash *log, const ckb_geometry *geometry,
                       const uint8_t *base);
void media_cursor_free(media_cursor *cursor);
/* `attempted` (may be null: nothing was ever erased) is what the trace knew at the base. */
void media_cursor_rewind(media_cursor *cursor, const uint8_t *base, const media_trace_segment *attempted);
/* Consumes one event and returns it, null at the end. */
const media_event *media_cursor_advance(media_cursor *cursor);
/* Operations (not notes) in the whole log. */
size_t media_crash_steps(const media_crash *crash);

/* Begins a log with what is pending at the place of a cursor in another log, as a process finds it that
 * mounts after the one before was killed: all of it can be read, none of it is durable. */
void media_crash_resume(media_crash *crash, const media_cursor *cursor);
/* The image that such a process sees: nothing is lost, and what was never written is as it was. */
void media_cursor_show(const media_cursor *cursor, uint8_t *image);

/* How a choice treats what is pending. The last digit of a choice is its way, the rest its seed. */
typedef enum media_way {
    MEDIA_WAY_NOTHING, /* none of it is there */
    MEDIA_WAY_ALL,
    MEDIA_WAY_PREFIX,      /* the first operations */
    MEDIA_WAY_TORN_PREFIX, /* the first operations, the last of them torn */
    MEDIA_WAY_SUBSET,      /* whole operations, any of them */
    MEDIA_WAY_UNITS,       /* any units of any operation */
    MEDIA_WAY_GARBAGE,     /* the same, lost units may hold garbage */
    MEDIA_WAY_ALL_BUT_ONE, /* one unit is missing */
    MEDIA_WAY_ONLY_ONE,    /* one unit is there */
    MEDIA_WAY_SUFFIX,      /* the last operations */
    MEDIA_WAY_COUNT
} media_way;

/* Makes the image that a power cut at the cursor's place leaves, by seed and choice. */
void media_cursor_materialise(const media_cursor *cursor, uint64_t seed, uint64_t choice, uint8_t *image);

/* -------------------------------------------------------------------------------------------- >>fault */

#define MEDIA_FAULT_READ 1u
#define MEDIA_FAULT_WRITE 2u
#define MEDIA_FAULT_ERASE 4u
#define MEDIA_FAULT_SYNC 8u
#define MEDIA_FAULT_ANY 15u

typedef enum media_fault_effect {
    MEDIA_FAULT_NONE,
    MEDIA_FAULT_ERROR,   /* nothing happens, status is returned */
    MEDIA_FAULT_SHORT,   /* write: some of the units, then status */
    MEDIA_FAULT_LATE,    /* all of it happens, status is returned */
    MEDIA_FAULT_DROP,    /* 0 is returned, nothing happens */
    MEDIA_FAULT_CORRUPT, /* read: one bit differs */
    MEDIA_FAULT_DELAY    /* the hook is called first, then all goes well */
} media_fault_effect;

typedef struct media_fault_rule {
    unsigned kinds; /* MEDIA_FAULT_ bits: which operations are counted and hit */
    uint32_t from;  /* only on segments from this one on */
    uint64_t at;    /* the first one hit, from 0 */
    bool forever;   /* and all after it */
    media_fault_effect effect;
    int status;
    void (*hook)(void *context);
    void *hook_context;
} media_fault_rule;

typedef struct media_fault {
    ckb_medium below;
    pthread_mutex_t lock;
    media_fault_rule rule;
    uint64_t seen;  /* operations counted */
    uint64_t fired; /* operations hit */
    unsigned hit;   /* kind of the first one hit */
} media_fault;

void media_fault_init(media_fault *fault, const ckb_medium *below);
/* Sets the rule and counts from 0 again. */
void media_fault_arm(media_fault *fault, const media_fault_rule *rule);
void media_fault_disarm(media_fault *fault);
ckb_medium media_fault_medium(media_fault *fault);

#endif
