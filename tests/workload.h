/* A volume under test together with what is known about it.
 *
 * A world is a stack of test media, a mounted volume with chunks and perhaps logs, and a table of actions. Everything that a test does to
 * the volume goes through world_ functions, which write notes into the log of the crash medium: an action
 * begins, an action returned, a commit begins, a commit returned. An oracle reads these notes up to any
 * step and then knows, for every chunk, container and log, which states a power cut at that step may leave. */
#ifndef CKB_TESTS_WORKLOAD_H
#define CKB_TESTS_WORKLOAD_H

#include "log_world.h"

enum {
    WORLD_CONTAINERS = 48,       /* slots for containers */
    WORLD_CONTAINER_CHUNKS = 16, /* slots for chunks in each */
    WORLD_CHUNKS = WORLD_CONTAINERS * WORLD_CONTAINER_CHUNKS,
    WORLD_WRITERS = 6,
    WORLD_ACTIONS = 16384, /* remembered at a time */
    ORACLE_DEPTH = 32      /* states of one chunk or container that may be in flight */
};

/* What a chunk or container is, when it is not the number of the action that made it so. */
#define WORLD_ABSENT (-1)
#define WORLD_GONE (-2) /* deleted */

typedef enum world_kind {
    WORLD_PUT,
    WORLD_DELETE,
    WORLD_CREATE,
    WORLD_CLOSE,
    WORLD_DROP,
    WORLD_LOG_CREATE,
    WORLD_LOG_DELETE,
    WORLD_LOG_APPEND,
    WORLD_LOG_COMMIT,
    WORLD_LOG_TRUNCATE,
    WORLD_LOG_PURGE,
    WORLD_LOG_RESET
} world_kind;

typedef struct world_action {
    world_kind kind;
    uint32_t slot; /* of the chunk, container or log */
    uint32_t writer;
    bool durable;   /* durable on return */
    bool idle;      /* log: it changed nothing, and never would have */
    uint64_t index; /* log: of the entry, 0 when that is not known; else the argument of the call */
    uint8_t *data;  /* payload of a put or an append; owned */
    size_t length;
    size_t returned; /* number of the note that says so */
} world_action;

/* Shared by the worlds that look at one history. */
typedef struct world_table {
    world_action items[WORLD_ACTIONS];
    int32_t count;
    pthread_mutex_t lock;
} world_table;

typedef struct world_shape {
    ckb_geometry geometry;
    ckb_config config;
    ckb_writer_config writer;
    size_t reader_bytes;
    uint64_t container_base; /* id of container slot 0 */
    uint32_t logs;           /* so many log slots are used */
    ckb_log_config log;
} world_shape;

typedef struct test_world {
    world_shape shape;
    media_ram ram;
    media_trace trace;
    media_crash crash;
    media_fault fault;
    ckb_medium medium; /* fault(crash(trace(ram))), or another one below */
    bool on_ram;
    world_table *table;
    uint64_t container_ids[WORLD_CONTAINERS];
    int32_t chunks[WORLD_CHUNKS];         /* newest state: action, WORLD_ABSENT or WORLD_GONE */
    int32_t containers[WORLD_CONTAINERS]; /* newest ckb_container_state */
    ckb_volume *volume;
    ckb_reader *reader;
    ckb_writer *writers[WORLD_WRITERS];
    void *volume_memory, *reader_memory, *writer_memory[WORLD_WRITERS];
    void *plain_memory; /* of the mount without the checkpoint */
    size_t volume_bytes, reader_bytes, writer_bytes;
    uint8_t *buffer; /* for payloads that are read back */
    size_t buffer_bytes;
    uint64_t max_chunk;
    log_world logs;
    ckb_fault fault_seen;
    uint64_t refused_writes;  /* CKB_NOSPACE */
    uint64_t refused_deletes; /* when even the reserve was full */
} test_world;

world_table *world_table_new(void);
void world_table_free(world_table *table);
/* Adds actions under successive numbers and returns the first; payloads are copied. */
int32_t world_table_add(world_table *table, const world_action *actions, size_t count);
/* Forgets the actions from `count` on. */
void world_table_cut(world_table *table, int32_t count);

/* `below` null: RAM. */
void world_init(test_world *world, const world_shape *shape, world_table *table, const ckb_medium *below);
void world_free(test_world *world);

int world_format(test_world *world, uint64_t seed);
/* Mounts and opens the reader; writers stay closed. */
int world_mount(test_world *world);
/* Holds the volume, which was just mounted, against a mount that reads all segments: where there is a checkpoint in
 * force both must show the same. */
void world_compare_mounts(test_world *world, world_verdict *verdict);
/* The same whether there is a checkpoint or not, but only for chunks and containers. */
void world_compare_chunks(test_world *world, world_verdict *verdict);
/* Mounts that took their chunks from a checkpoint and were compared, in all worlds. */
uint64_t world_compared_mounts(void);
int world_unmount(test_world *world);
/* Forgets the mounted volume as a power cut would and puts the image in place. `segments` (may be null)
 * tells the trace what was attempted before. */
void world_load(test_world *world, const uint8_t *image, const media_trace_segment *segments);

ckb_chunk_id world_chunk_id(const test_world *world, uint32_t slot);
static inline uint32_t world_container_of(uint32_t slot)
{
    return slot / WORLD_CONTAINER_CHUNKS;
}

int world_writer_open(test_world *world, uint32_t writer);
int world_writer_close(test_world *world, uint32_t writer);
int world_commit(test_world *world, uint32_t writer);
int world_sync(test_world *world);
int world_put(test_world *world, uint32_t writer, uint32_t slot, const void *data, size_t length,
              unsigned flags);
int world_delete(test_world *world, uint32_t writer, uint32_t slot, unsigned flags);
/* A deleted id may get a new life once it is forgotten: CKB_OK, or CKB_DELETED. */
int world_create(test_world *world, uint32_t container);
int world_close(test_world *world, uint32_t container);
int world_drop(test_world *world, uint32_t container);

/* A bit for each status that the call may return now, 1 << -status. */
#define WORLD_BIT(status) (1u << -(status))
unsigned world_put_statuses(const test_world *world, uint32_t slot, const void *data, size_t length,
                            unsigned flags);
unsigned world_delete_statuses(const test_world *world, uint32_t slot);

/* -------------------------------------------------------------------------------------------- >>test_oracle */

/* States that one chunk or container may be in after a power cut: from the durable one to the newest. */
typedef struct oracle_target {
    int32_t count;
    int32_t value[ORACLE_DEPTH];
} oracle_target;

typedef struct test_oracle {
    const world_table *table;
    oracle_target chunks[WORLD_CHUNKS];
    oracle_target containers[WORLD_CONTAINERS]; /* values are ckb_container_state */
    int32_t returned[WORLD_ACTIONS];            /* actions that returned and are not durable */
    int32_t returned_count;
    log_target logs[LOG_SLOTS];
    int32_t begun;     /* number behind the last action that began */
    uint64_t promises; /* rises whenever something became durable */
} test_oracle;

/* What a mount showed: as world.chunks and world.containers. */
typedef struct observation {
    int32_t chunks[WORLD_CHUNKS];
    int32_t containers[WORLD_CONTAINERS];
    log_content logs[LOG_SLOTS];
} observation;

void oracle_init(test_oracle *oracle, const world_table *table);
/* Takes in one event of the log. */
void oracle_note(test_oracle *oracle, const media_event *event);
/* Takes what was seen for the durable truth. */
void oracle_rebase(test_oracle *oracle, const observation *seen);
/* The newest state of a world for the durable truth, after everything became durable. */
void world_observe_newest(const test_world *world, observation *seen);
void world_take(test_world *world, const observation *seen);
/* Starts a new history: keeps only the actions that made what was seen, renumbers `seen`, empties the log of
 * the crash medium. For worlds without logs. */
void world_compact(test_world *world, observation *seen);

/* Holds the mounted volume against the oracle: containers, every chunk and every log entry byte for byte, the
 * walks, the sums and ckb_check. Fills `seen`. Logs stay open. */
bool world_check(test_world *world, const test_oracle *oracle, observation *seen, world_verdict *verdict);

/* ------------------------------------------------------------------------------------------ >>payloads */

typedef enum world_payload {
    WORLD_PAYLOAD_RANDOM,
    WORLD_PAYLOAD_ZERO,
    WORLD_PAYLOAD_ONES,
    WORLD_PAYLOAD_RECORD, /* bytes of the medium itself, from the start of a unit */
    WORLD_PAYLOAD_COUNT
} world_payload;

void world_payload_fill(test_world *world, media_random *random, world_payload kind, uint8_t *data,
                        size_t length);
/* Mostly small; now and then empty, at a unit, or the largest, which is `most`. */
size_t world_payload_length(const test_world *world, media_random *random, uint64_t most);

/* -------------------------------------------------------------------------------------------- >>random */

/* Any container in this state; WORLD_CONTAINERS when there is none. */
uint32_t world_pick_container(const test_world *world, media_random *random, int state);
uint32_t world_count_containers(const test_world *world, int state);
/* Any slot of any open container; slot 0 when none is open. */
uint32_t world_open_slot(const test_world *world, media_random *random);

/* `allowed` holds WORLD_BITs. */
void verdict_status(world_verdict *verdict, const char *what, uint32_t slot, int status, unsigned allowed);

/* Each of these draws its details and holds the answer against what is allowed now. */
int world_random_put(test_world *world, media_random *random, uint32_t writer, uint32_t slot, uint64_t kinds,
                     world_verdict *verdict);
void world_random_delete(test_world *world, media_random *random, uint32_t writer, uint32_t slot,
                         world_verdict *verdict);
void world_random_container(test_world *world, media_random *random, world_verdict *verdict);
void world_maintain(test_world *world, uint32_t budget, world_verdict *verdict);
/* Deletes a container and maintains. */
/* About `budget` bytes of a scrub, which must find nothing. */
void world_scrub(test_world *world, uint64_t budget, world_verdict *verdict);
void world_make_room(test_world *world, media_random *random, world_verdict *verdict);
void world_reopen_writer(test_world *world, uint32_t writer, world_verdict *verdict);
void world_open_writers(test_world *world, uint32_t count, world_verdict *verdict);
void world_remount(test_world *world, uint32_t writers, world_verdict *verdict);
/* Any of the above, a commit or a sync; or a step of a log. */
void world_random_step(test_world *world, media_random *random, uint32_t writers, world_verdict *verdict);

#endif
