/* A stress program for a race detector, in two stages on a volume in RAM, each with sixteen threads.
 *
 *   chunks  writers of their own, a writer shared with group commit, readers of what all of them write,
 *           containers that come and go, upkeep, and writers opened and closed
 *   logs    appends and group commits, truncate and reset, purge, readers, a writer of chunks, upkeep, checks
 *
 * Now and then the volume is dropped as by a power cut and mounted again, at the end it is unmounted and
 * mounted: what was acknowledged must be there.
 *
 *     race [SECONDS [SEED]]
 *
 * Every chunk has a generation that rises by one with each write or delete of its only owner, and the bytes
 * of a chunk follow from its generation. Around each operation the owner publishes `begun` and `done`; whoever
 * reads a generation outside the two has seen a stale, a future or a torn chunk. The bytes of a log entry follow
 * from its term, which is never used twice. One log is never truncated: there each index has one term for ever.
 * The other is, now and then to another index: there what was acknowledged stays until it is cut off. */
#include "chunkbench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define THREADS 16u
#define OWN_WRITERS 5u
#define SHARED_WRITERS 4u
#define OWNERS (OWN_WRITERS + SHARED_WRITERS)
#define READERS 3u
#define CHUNKS 96u /* of each owner */
#define CHUNK_BYTES_MAX 70000u
#define SEGMENT_BYTES (1u << 18)
#define SEGMENT_COUNT 192u
#define WRITE_UNIT 64u
#define POWER_CUTS 3u
#define STUCK_SECONDS 120
#define DELETE_EVERY 8u /* generations 7, 15, ... are deletes */

/* ---------------------------------------------------------------------------------------------- >>medium
 * RAM that watches the contract. Its bytes are atomic: a reader may look at a segment that is being reused,
 * as on any disk, and finds out by itself; what must not race is the memory of the core. All accesses are
 * relaxed, so that the medium orders nothing between threads. */

typedef struct segment {
    uint64_t *words;
    uint64_t end;  /* next byte that may be written */
    uint32_t busy; /* writes and erases under way */
} segment;

static segment segments[SEGMENT_COUNT];
static uint32_t contract_broken;

static int broken(const char *what, uint32_t number, uint64_t offset, size_t length)
{
    if (__atomic_fetch_add(&contract_broken, 1, __ATOMIC_RELAXED) < 10)
        fprintf(stderr, "race: the porting contract: %s: segment %lu offset %llu length %zu, written to %llu\n",
                what, (unsigned long)number, (unsigned long long)offset, length,
                number < SEGMENT_COUNT ? (unsigned long long)segments[number].end : 0ULL);
    return CKB_INVALID;
}

static int race_read(void *context, uint32_t number, uint64_t offset, void *buffer, size_t length)
{
    (void)context;
    if (number >= SEGMENT_COUNT || offset % 8 != 0 || length % 8 != 0 || offset + length > SEGMENT_BYTES)
        return broken("a read outside of a segment or its units", number, offset, length);
    const uint64_t *from = segments[number].words + offset / 8;
    for (size_t i = 0; i < length / 8; i++) {
        uint64_t word = __atomic_load_n(from + i, __ATOMIC_RELAXED);
        memcpy((char *)buffer + i * 8, &word, 8);
    }
    return CKB_OK;
}

static int race_write(void *context, uint32_t number, uint64_t offset, const void *buffer, size_t length)
{
    segment *s = &segments[number];
    (void)context;
    if (number >= SEGMENT_COUNT || offset % WRITE_UNIT != 0 || length % WRITE_UNIT != 0 ||
        offset + length > SEGMENT_BYTES)
        return broken("a write outside of a segment or its units", number, offset, length);
    if (__atomic_fetch_add(&s->busy, 1, __ATOMIC_RELAXED) != 0)
        broken("two writes, or a write and an erase, of one segment at once", number, offset, length);
    if (offset < __atomic_load_n(&s->end, __ATOMIC_RELAXED))
        broken("a unit written twice, or offsets that do not rise", number, offset, length);
    for (size_t i = 0; i < length / 8; i++) {
        uint64_t word;
        memcpy(&word, (const char *)buffer + i * 8, 8);
        __atomic_store_n(s->words + offset / 8 + i, word, __ATOMIC_RELAXED);
    }
    __atomic_store_n(&s->end, offset + length, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&s->busy, 1, __ATOMIC_RELAXED);
    return CKB_OK;
}

static int race_erase(void *context, uint32_t number)
{
    segment *s = &segments[number];
    (void)context;
    if (__atomic_fetch_add(&s->busy, 1, __ATOMIC_RELAXED) != 0)
        broken("an erase beside a write of one segment", number, 0, 0);
    __atomic_store_n(&s->end, 0, __ATOMIC_RELAXED);
    __atomic_fetch_sub(&s->busy, 1, __ATOMIC_RELAXED);
    return CKB_OK;
}

static int race_sync(void *context, uint32_t number)
{
    (void)context;
    (void)number;
    return CKB_OK;
}

static const ckb_medium medium = {
    NULL, {SEGMENT_BYTES, SEGMENT_COUNT, 8, WRITE_UNIT, 8, 0}, race_read, race_write, race_erase, race_sync};

/* ----------------------------------------------------------------------------------------------- >>state */

typedef struct chunk_state {
    uint32_t begun, done; /* generations; published around each operation */
    uint32_t durable;     /* the last one that a commit covered */
} chunk_state;

typedef struct worker {
    pthread_t id;
    void (*run)(struct worker *worker);
    const char *role;
    uint32_t number, owner;
    uint64_t random;
    uint64_t operations, no_space;
    uint64_t bytes[(CHUNK_BYTES_MAX + 7) / 8];
    uint32_t turn; /* own writers: where the round over their chunks stands */
} worker;

static chunk_state states[OWNERS][CHUNKS];
static worker workers[THREADS];
static ckb_volume *volume;
static ckb_writer *shared_writer;
static void *shared_memory;
static uint32_t stopping, failures;
static size_t writer_bytes, reader_bytes, volume_bytes;
static void *volume_memory;
/* Whoever maintains compacts and takes checkpoints all the time, beside whoever finds no room. */
static const ckb_config config = {.max_chunks = 70000,
                                  .max_containers = 64,
                                  .max_writers = 16,
                                  .free_segments = 1000000,
                                  .checkpoint_records = 64};

static uint64_t random_next(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

static bool stopped(void)
{
    return __atomic_load_n(&stopping, __ATOMIC_RELAXED) != 0;
}

static void stop(void)
{
    __atomic_store_n(&stopping, 1, __ATOMIC_RELAXED);
}

static void fail(const worker *w, const char *what, int status, const ckb_chunk_id *id)
{
    ckb_fault fault;
    char text[200] = "";
    if (__atomic_fetch_add(&failures, 1, __ATOMIC_RELAXED) < 10) {
        if (volume) {
            ckb_volume_fault(volume, &fault, NULL);
            ckb_fault_text(&fault, text, sizeof text);
        }
        fprintf(stderr, "race: %s: %s: %s (%d), chunk %llu/%llu/%lu; last fault: %s\n", w ? w->role : "main",
                what, ckb_status_text(status), status, id ? (unsigned long long)id->container : 0ULL,
                id ? (unsigned long long)id->block : 0ULL, id ? (unsigned long)id->chunk : 0UL, text);
    }
    stop();
}

/* Memory that lives as long as the process. */
static void *memory_take(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "race: no memory\n");
        exit(1);
    }
    return memory;
}

/* --------------------------------------------------------------------------------------------- >>content */

static bool is_delete(uint32_t generation)
{
    return generation % DELETE_EVERY == DELETE_EVERY - 1;
}

static ckb_chunk_id chunk_id(uint32_t owner, uint32_t chunk)
{
    ckb_chunk_id id = {1 + owner, chunk / 8, chunk % 8};
    return id;
}

static uint32_t chunk_bytes(uint32_t owner, uint32_t chunk, uint32_t generation)
{
    uint32_t mixed = (owner * 131 + chunk * 31 + generation) * 2654435761u >> 8;
    if (mixed % 50 == 0)
        return CHUNK_BYTES_MAX - mixed % 1000;
    return mixed % 9 == 0 ? 16 + mixed % 20000 : 16 + mixed % 1500;
}

/* Generation first, then words that follow from owner, chunk, generation and place. */
static uint64_t content_word(uint32_t owner, uint32_t chunk, uint32_t generation, uint32_t place)
{
    uint64_t seed = ((uint64_t)owner << 40 ^ (uint64_t)chunk << 32 ^ generation) + 1;
    return place == 0 ? generation : (seed * 0x9E3779B97F4A7C15u + place) * 0xBF58476D1CE4E5B9u;
}

static uint32_t content_fill(uint64_t *words, uint32_t owner, uint32_t chunk, uint32_t generation)
{
    uint32_t length = chunk_bytes(owner, chunk, generation);
    for (uint32_t i = 0; i < (length + 7) / 8; i++)
        words[i] = content_word(owner, chunk, generation, i);
    return length;
}

/* Is it what the owner wrote as the generation that it says? */
static bool content_good(const uint64_t *words, size_t length, uint32_t owner, uint32_t chunk)
{
    uint32_t generation = (uint32_t)words[0];
    if (length != chunk_bytes(owner, chunk, generation))
        return false;
    for (uint32_t i = 0; i < length / 8; i++)
        if (words[i] != content_word(owner, chunk, generation, i))
            return false;
    uint64_t last = content_word(owner, chunk, generation, (uint32_t)length / 8);
    return memcmp((const char *)words + length / 8 * 8, &last, length % 8) == 0;
}

/* May a reader, at a time when the chunk's generation was from `low` to `high`, get this? */
static bool answer_good(int status, const uint64_t *words, size_t got, uint32_t owner, uint32_t chunk,
                        uint32_t low, uint32_t high)
{
    if (status == CKB_OK)
        return content_good(words, got, owner, chunk) && words[0] >= low && words[0] <= high &&
               !is_delete((uint32_t)words[0]);
    if (status == CKB_NOTFOUND && low == 0)
        return true;
    if (status != CKB_DELETED && status != CKB_NOTFOUND)
        return false;
    for (uint32_t generation = low; generation <= high; generation++)
        if (is_delete(generation))
            return true;
    return false;
}

/* --------------------------------------------------------------------------------------------- >>owners */

/* One step of one chunk: the next generation is written or deleted. False when there was no room. */
static bool owner_step(worker *w, ckb_writer *writer, uint32_t chunk, unsigned flags)
{
    chunk_state *state = &states[w->owner][chunk];
    ckb_chunk_id id = chunk_id(w->owner, chunk);
    uint32_t generation = state->done + 1;
    __atomic_store_n(&state->begun, generation, __ATOMIC_SEQ_CST);
    int status;
    if (is_delete(generation))
        status = ckb_chunk_delete(writer, &id, flags);
    else
        status = ckb_chunk_write(writer, &id, w->bytes, content_fill(w->bytes, w->owner, chunk, generation),
                                 flags | CKB_OVERWRITE);
    if (status == CKB_NOSPACE) {
        __atomic_store_n(&state->begun, state->done, __ATOMIC_SEQ_CST);
        w->no_space++;
        ckb_maintain(volume, 8, NULL);
        usleep(1000);
        return false;
    }
    if (status != CKB_OK)
        fail(w, is_delete(generation) ? "delete" : "write", status, &id);
    __atomic_store_n(&state->done, generation, __ATOMIC_SEQ_CST);
    __atomic_add_fetch(&w->operations, 1, __ATOMIC_RELAXED);
    if (flags & CKB_DURABLE)
        state->durable = generation;
    return true;
}

/* A writer of its own, and now and then a commit. It stays open, and its memory the volume's, until unmount. */
static void own_writer_run(worker *w)
{
    void *memory = memory_take(writer_bytes);
    ckb_writer *writer;
    int status = ckb_writer_open(volume, NULL, memory, writer_bytes, &writer);
    if (status != CKB_OK)
        fail(w, "writer open", status, NULL);
    while (!stopped()) {
        if (owner_step(w, writer, w->turn % CHUNKS, 0))
            w->turn++;
        if (random_next(&w->random) % 20 != 0)
            continue;
        status = ckb_writer_commit(writer);
        if (status != CKB_OK)
            fail(w, "commit", status, NULL);
        for (uint32_t chunk = 0; chunk < CHUNKS; chunk++)
            states[w->owner][chunk].durable = states[w->owner][chunk].done;
    }
}

/* One of several on the same writer, each waiting for durability. */
static void shared_writer_run(worker *w)
{
    while (!stopped())
        if (owner_step(w, shared_writer, w->turn % CHUNKS, w->turn % 3 == 0 ? 0 : CKB_DURABLE))
            w->turn++;
}

/* --------------------------------------------------------------------------------------------- >>readers */

static void reader_step(worker *w, ckb_reader *reader)
{
    uint32_t owner = (uint32_t)(random_next(&w->random) % OWNERS);
    uint32_t chunk = (uint32_t)(random_next(&w->random) % CHUNKS);
    ckb_chunk_id id = chunk_id(owner, chunk);
    size_t got = 0;
    uint32_t low = __atomic_load_n(&states[owner][chunk].done, __ATOMIC_SEQ_CST);
    int status = ckb_chunk_read(reader, &id, 0, w->bytes, sizeof w->bytes, &got);
    uint32_t high = __atomic_load_n(&states[owner][chunk].begun, __ATOMIC_SEQ_CST);
    if (!answer_good(status, w->bytes, got, owner, chunk, low, high)) {
        fprintf(stderr, "race: generation %llu, %zu bytes, expected %lu to %lu\n",
                (unsigned long long)w->bytes[0], got, (unsigned long)low, (unsigned long)high);
        fail(w, "read", status, &id);
    }
    __atomic_add_fetch(&w->operations, 1, __ATOMIC_RELAXED);
}

static void reader_run(worker *w)
{
    ckb_reader *reader;
    void *memory = memory_take(reader_bytes);
    if (ckb_reader_open(volume, memory, reader_bytes, &reader) != CKB_OK)
        fail(w, "reader open", CKB_INVALID, NULL);
    while (!stopped())
        reader_step(w, reader);
    free(memory);
}

/* ------------------------------------------------------------------------------------------- >>containers */

static void expect(const worker *w, const char *what, int status, int expected, uint64_t container)
{
    ckb_chunk_id id = {container, 0, 0};
    if (status != expected)
        fail(w, what, status, &id);
}

/* One container from create to delete. */
static void container_round(worker *w, uint64_t container, ckb_writer *writer)
{
    ckb_container_info info;
    uint64_t written = 0;
    int created = ckb_container_create(volume, container);
    if (created == CKB_NOSPACE) /* deleted ones are not swept yet */
        return;
    expect(w, "create", created, CKB_OK, container);
    for (uint32_t n = 0; n < 20 && !stopped(); n++) {
        ckb_chunk_id id = {container, 0, n};
        int status = ckb_chunk_write(writer, &id, w->bytes, content_fill(w->bytes, 99, n, 1), 0);
        if (status == CKB_OK)
            written++;
        else if (status != CKB_NOSPACE)
            fail(w, "write to a new container", status, &id);
    }
    if (container % 2 == 0) {
        ckb_chunk_id id = {container, 7, 7};
        expect(w, "close", ckb_container_close(volume, container), CKB_OK, container);
        expect(w, "write to a closed container", ckb_chunk_write(writer, &id, "x", 1, 0), CKB_READONLY,
               container);
    }
    expect(w, "stat", ckb_container_stat(volume, container, &info), CKB_OK, container);
    if (info.chunks != written)
        fail(w, "a container does not hold what was written to it", CKB_GAP, NULL);
    expect(w, "delete", ckb_container_delete(volume, container), CKB_OK, container);
    ckb_chunk_id id = {container, 0, 0};
    int status = ckb_chunk_write(writer, &id, "x", 1, 0);
    if (status != CKB_DELETED && status != CKB_NOTFOUND)
        fail(w, "write to a deleted container", status, &id);
    __atomic_add_fetch(&w->operations, 1, __ATOMIC_RELAXED);
}

/* Containers that come and go, each round with a writer that is opened and closed. */
static void container_run(worker *w)
{
    void *memory = memory_take(writer_bytes);
    while (!stopped()) {
        ckb_writer *writer;
        ckb_stat stat;
        expect(w, "writer open", ckb_writer_open(volume, NULL, memory, writer_bytes, &writer), CKB_OK, 0);
        ckb_volume_stat(volume, &stat);
        if (stat.containers + 16 < stat.container_capacity)
            container_round(w, ((uint64_t)w->number << 32) + w->turn++, writer);
        else
            usleep(1000);
        ckb_maintain(volume, 64, NULL);
        expect(w, "writer close", ckb_writer_close(writer), CKB_OK, 0);
    }
    free(memory);
}

/* -------------------------------------------------------------------------------------------- >>upkeep */

static int finding_fails(void *context, const ckb_finding *finding)
{
    char text[200];
    if (finding->fault.status == CKB_OK)
        return 0; /* a tail that a power cut left */
    ckb_fault_text(&finding->fault, text, sizeof text);
    fprintf(stderr, "race: check found: %s\n", text);
    fail((const worker *)context, "check", finding->fault.status,
         finding->has_chunk ? &finding->chunk.id : NULL);
    return 1;
}

static void walk(const worker *w)
{
    ckb_chunk_info chunk;
    ckb_container_info container;
    uint64_t cursor = 0, seen = 0;
    uint32_t place = 0;
    while (ckb_chunk_next(volume, &cursor, &chunk) == CKB_OK && !stopped())
        seen++;
    while (ckb_container_next(volume, &place, &container) == CKB_OK)
        seen++;
    if (seen > config.max_chunks + config.max_containers)
        fail(w, "more chunks than there can be", CKB_GAP, NULL);
}

/* Some pieces of a scrub, unless another thread is at it; nothing is damaged. */
static void scrub_some(worker *w, ckb_reader *reader)
{
    ckb_check_report report = {0};
    int status = CKB_OK;
    bool more;
    for (uint32_t piece = 0; piece < 8 && status == CKB_OK; piece++)
        status = ckb_scrub(volume, reader, 20000, finding_fails, w, &report, &more);
    if (status != CKB_OK && status != CKB_BUSY)
        fail(w, "scrub", status, NULL);
}

static void upkeep_run(worker *w)
{
    void *memory = memory_take(reader_bytes);
    ckb_reader *reader;
    ckb_check_report report;
    ckb_stat stat;
    if (ckb_reader_open(volume, memory, reader_bytes, &reader) != CKB_OK)
        fail(w, "reader open", CKB_INVALID, NULL);
    for (uint32_t turn = 0; !stopped(); turn++) {
        int status = ckb_maintain(volume, 16, NULL);
        if (status != CKB_OK && status != CKB_NOSPACE)
            fail(w, "maintain", status, NULL);
        ckb_volume_stat(volume, &stat);
        if (stat.damage != 0 || stat.failed)
            fail(w, "stat shows damage", CKB_CORRUPT, NULL);
        if (turn % 16 == 0)
            walk(w);
        if (turn % 64 == 40 && (status = ckb_check(volume, reader, finding_fails, w, &report)) != CKB_OK)
            fail(w, "check", status, NULL);
        if (turn % 4 == 1)
            scrub_some(w, reader);
        if (turn % 8 == 0 && (status = ckb_sync(volume)) != CKB_OK)
            fail(w, "sync", status, NULL);
        __atomic_add_fetch(&w->operations, 1, __ATOMIC_RELAXED);
        usleep(500);
    }
    free(memory);
}

/* ------------------------------------------------------------------------------------------- >>log-state */

#define LOG_ROOM 65536u       /* terms remembered of the whole log, by index */
#define LOG_ENTRIES_MAX 4000u /* above this the purger takes more */

/* The log that is only appended to and purged. */
typedef struct whole_log {
    ckb_log *log;
    uint64_t index[LOG_ROOM]; /* published after term */
    uint64_t term[LOG_ROOM];
    uint64_t last;                    /* the largest index that an append returned */
    uint64_t durable;                 /* and that was acknowledged as durable */
    uint64_t purge_begun, purge_done; /* first index: published around each purge */
} whole_log;

/* The log that is truncated and reset too. */
typedef struct cut_log {
    ckb_log *log;
    pthread_mutex_t lock;
    uint64_t cuts;    /* truncations, purges of all and resets begun */
    uint64_t durable; /* the largest index acknowledged as durable that no cut took since; 0: none */
    bool cutting;
} cut_log;

static whole_log whole;
static cut_log cut = {.lock = PTHREAD_MUTEX_INITIALIZER};
static void *log_memory[2];
static size_t log_bytes, cursor_bytes;
static const ckb_log_config log_config = {.buffer_bytes = 16384};

static void log_fail(const worker *w, const char *what, int status, uint64_t index, uint64_t expected)
{
    if (__atomic_load_n(&failures, __ATOMIC_RELAXED) < 10)
        fprintf(stderr, "race: entry %llu, expected %llu\n", (unsigned long long)index,
                (unsigned long long)expected);
    fail(w, what, status, NULL);
}

static void log_expect(const worker *w, const char *what, int status, uint64_t index)
{
    if (status != CKB_OK)
        log_fail(w, what, status, index, 0);
}

/* Room for appends comes with purges. */
static void log_no_space(worker *w)
{
    w->no_space++;
    ckb_maintain(volume, 8, NULL);
    usleep(1000);
}

static void raise_to(uint64_t *mark, uint64_t value)
{
    uint64_t before = __atomic_load_n(mark, __ATOMIC_SEQ_CST);
    while (before < value &&
           !__atomic_compare_exchange_n(mark, &before, value, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
    }
}

static void counted(worker *w)
{
    __atomic_add_fetch(&w->operations, 1, __ATOMIC_RELAXED);
}

/* -------------------------------------------------------------------------------------------- >>entries */

/* A term names its thread and how many appends that had made. */
static uint64_t next_term(worker *w)
{
    return (uint64_t)w->number << 48 | ++w->turn;
}

static uint32_t entry_bytes(uint64_t term)
{
    uint32_t mixed = (uint32_t)(term * 0x9E3779B97F4A7C15u >> 40);
    if (mixed % 200 == 0)
        return CHUNK_BYTES_MAX - mixed % 1000;
    return mixed % 20 == 0 ? mixed % 20000 : mixed % 600;
}

static uint32_t entry_fill(uint64_t *words, uint64_t term)
{
    uint32_t length = entry_bytes(term);
    for (uint32_t i = 0; i < (length + 7) / 8; i++)
        words[i] = (term + i) * 0xBF58476D1CE4E5B9u;
    return length;
}

/* Is it what an entry of this term holds? */
static bool entry_good(const uint64_t *words, const ckb_entry *entry)
{
    if (entry->length != entry_bytes(entry->term))
        return false;
    for (uint32_t i = 0; i < entry->length / 8; i++)
        if (words[i] != (entry->term + i) * 0xBF58476D1CE4E5B9u)
            return false;
    uint64_t last = (entry->term + entry->length / 8) * 0xBF58476D1CE4E5B9u;
    return memcmp((const char *)words + entry->length / 8 * 8, &last, entry->length % 8) == 0;
}

/* ------------------------------------------------------------------------------------------ >>whole-log */

static void whole_publish(uint64_t index, uint64_t term)
{
    __atomic_store_n(&whole.index[index % LOG_ROOM], 0, __ATOMIC_SEQ_CST);
    __atomic_store_n(&whole.term[index % LOG_ROOM], term, __ATOMIC_SEQ_CST);
    __atomic_store_n(&whole.index[index % LOG_ROOM], index, __ATOMIC_SEQ_CST);
    raise_to(&whole.last, index);
}

/* The term under an index, 0 when its append has not said so yet. */
static uint64_t whole_term(uint64_t index)
{
    if (__atomic_load_n(&whole.index[index % LOG_ROOM], __ATOMIC_SEQ_CST) != index)
        return 0;
    uint64_t term = __atomic_load_n(&whole.term[index % LOG_ROOM], __ATOMIC_SEQ_CST);
    return __atomic_load_n(&whole.index[index % LOG_ROOM], __ATOMIC_SEQ_CST) == index ? term : 0;
}

static void whole_append(worker *w, unsigned flags)
{
    uint64_t index = 0, term = next_term(w);
    int status = ckb_log_append(whole.log, term, w->bytes, entry_fill(w->bytes, term), flags, &index);
    if (status == CKB_NOSPACE) {
        log_no_space(w);
        return;
    }
    log_expect(w, "append", status, index);
    whole_publish(index, term);
    if (flags & CKB_DURABLE)
        raise_to(&whole.durable, index);
    counted(w);
}

static void lax_append_run(worker *w)
{
    while (!stopped())
        whole_append(w, 0);
}

static void durable_append_run(worker *w)
{
    while (!stopped())
        whole_append(w, CKB_DURABLE);
}

/* Commits what others appended, and looks at the marks. */
static void commit_run(worker *w)
{
    while (!stopped()) {
        ckb_log_info info;
        uint64_t last = __atomic_load_n(&whole.last, __ATOMIC_SEQ_CST);
        log_expect(w, "commit", ckb_log_commit(whole.log, last), last);
        raise_to(&whole.durable, last);
        ckb_log_stat(whole.log, &info);
        if (info.durable < last || info.durable > info.last || info.first > info.last + 1)
            log_fail(w, "marks after a commit", CKB_GAP, info.durable, last);
        counted(w);
        usleep(200);
    }
}

static void purge_run(worker *w)
{
    while (!stopped()) {
        uint64_t last = __atomic_load_n(&whole.last, __ATOMIC_SEQ_CST), first = whole.purge_done;
        uint64_t most = last + 1 - first > LOG_ENTRIES_MAX ? last + 1 - first : (last + 1 - first) / 4;
        uint64_t wanted = first + (most ? random_next(&w->random) % (most + 1) : 0);
        __atomic_store_n(&whole.purge_begun, wanted, __ATOMIC_SEQ_CST);
        log_expect(w, "purge", ckb_log_purge(whole.log, wanted), wanted);
        __atomic_store_n(&whole.purge_done, wanted, __ATOMIC_SEQ_CST);
        raise_to(&whole.durable, wanted - 1);
        counted(w);
        usleep(500);
    }
}

/* Is this answer right for `index`, when the first entry was `low` before and the newest one `last`? */
static bool whole_answer_good(worker *w, int status, const ckb_entry *entry, uint64_t index, uint64_t low,
                              uint64_t last)
{
    if (status == CKB_OK) {
        uint64_t term = whole_term(index);
        return entry->index == index && (term == 0 || term == entry->term) && entry_good(w->bytes, entry);
    }
    if (status == CKB_PURGED)
        return entry->index > index && entry->index >= low &&
               entry->index <= __atomic_load_n(&whole.purge_begun, __ATOMIC_SEQ_CST);
    return status == CKB_END && index > last;
}

/* In order, with a jump now and then. */
static void read_run(worker *w)
{
    ckb_log_cursor *cursor;
    void *memory = memory_take(cursor_bytes);
    uint64_t index = 1;
    log_expect(w, "cursor open", ckb_log_cursor_open(whole.log, 0, memory, cursor_bytes, &cursor), 0);
    while (!stopped()) {
        ckb_entry entry = {0, 0, 0, 0, 0};
        uint64_t low = __atomic_load_n(&whole.purge_done, __ATOMIC_SEQ_CST);
        uint64_t last = __atomic_load_n(&whole.last, __ATOMIC_SEQ_CST);
        if (random_next(&w->random) % 100 == 0)
            index = low - (low > 1) + random_next(&w->random) % (last + 3 - low);
        ckb_log_seek(cursor, index);
        int status = ckb_log_next(cursor, &entry, w->bytes, sizeof w->bytes);
        if (!whole_answer_good(w, status, &entry, index, low, last))
            log_fail(w, "read", status, entry.index, index);
        index = status == CKB_PURGED ? entry.index : status == CKB_END ? low : index + 1;
        counted(w);
    }
    free(memory);
}

/* -------------------------------------------------------------------------------------------- >>cut-log */

/* Before a cut: what was acknowledged as durable beyond `kept` no longer counts. */
static void cut_begin(uint64_t kept)
{
    pthread_mutex_lock(&cut.lock);
    cut.cuts++;
    cut.cutting = true;
    cut.durable = cut.durable < kept ? cut.durable : kept;
    pthread_mutex_unlock(&cut.lock);
}

static void cut_end(void)
{
    pthread_mutex_lock(&cut.lock);
    cut.cutting = false;
    pthread_mutex_unlock(&cut.lock);
}

/* Counts the cuts begun; 0 while one is under way. */
static uint64_t cuts_now(void)
{
    pthread_mutex_lock(&cut.lock);
    uint64_t cuts = cut.cutting ? 0 : cut.cuts + 1;
    pthread_mutex_unlock(&cut.lock);
    return cuts;
}

/* An acknowledgement counts when no cut was begun since before it. */
static void cut_acknowledge(uint64_t index, uint64_t cuts_before)
{
    pthread_mutex_lock(&cut.lock);
    if (cuts_before == cut.cuts + 1 && cut.durable < index)
        cut.durable = index;
    pthread_mutex_unlock(&cut.lock);
}

static void cut_append_run(worker *w)
{
    while (!stopped()) {
        uint64_t index = 0, term = next_term(w), cuts = cuts_now();
        unsigned flags = term % 3 == 0 ? CKB_DURABLE : 0;
        int status = ckb_log_append(cut.log, term, w->bytes, entry_fill(w->bytes, term), flags, &index);
        if (status == CKB_NOSPACE) {
            log_no_space(w);
            continue;
        }
        log_expect(w, "append beside truncate", status, index);
        if (flags)
            cut_acknowledge(index, cuts);
        counted(w);
    }
}

/* Cuts off a few entries, now and then half of all, and rarely all of them for another index. */
static void truncate_run(worker *w)
{
    while (!stopped()) {
        ckb_log_info info;
        uint64_t dice = random_next(&w->random) % 200;
        ckb_log_stat(cut.log, &info);
        uint64_t entries = info.last + 1 - info.first;
        uint64_t kept = info.last - random_next(&w->random) % (1 + (dice < 20     ? entries / 2
                                                                    : entries < 9 ? entries
                                                                                  : 9));
        int status;
        cut_begin(dice == 0 ? 0 : kept);
        if (dice == 0)
            status = ckb_log_reset(cut.log, 1 + random_next(&w->random) % 1000000);
        else
            status = ckb_log_truncate(cut.log, kept);
        cut_end();
        if (status != CKB_PURGED) /* the purger was there first */
            log_expect(w, "truncate", status, kept);
        counted(w);
        usleep(500);
    }
}

/* Purges and commits; a truncation or reset may come between the look and the call. */
static void cut_purge_run(worker *w)
{
    while (!stopped()) {
        ckb_log_info info;
        ckb_log_stat(cut.log, &info);
        uint64_t entries = info.last + 1 - info.first;
        uint64_t first =
            info.first + random_next(&w->random) % (entries / (entries > LOG_ENTRIES_MAX ? 1 : 4) + 1);
        int status = ckb_log_purge(cut.log, first);
        if (status != CKB_END)
            log_expect(w, "purge beside truncate", status, first);
        uint64_t cuts = cuts_now();
        ckb_log_stat(cut.log, &info);
        status = ckb_log_commit(cut.log, info.last);
        if (status == CKB_OK && info.last >= info.first)
            cut_acknowledge(info.last, cuts);
        else if (status != CKB_OK && status != CKB_END)
            log_expect(w, "commit beside truncate", status, info.last);
        counted(w);
        usleep(500);
    }
}

/* Reads on whatever happens to the log; there is no damage to pass over. */
static void salvage_run(worker *w)
{
    ckb_log_cursor *cursor;
    void *memory = memory_take(cursor_bytes);
    uint64_t index = 1;
    log_expect(w, "cursor open", ckb_log_cursor_open(cut.log, CKB_SALVAGE, memory, cursor_bytes, &cursor), 0);
    while (!stopped()) {
        ckb_entry entry = {0, 0, 0, 0, 0};
        ckb_log_info info;
        int status = ckb_log_read(cursor, index, &entry, w->bytes, sizeof w->bytes);
        bool right = status == CKB_OK ? entry.index == index && entry_good(w->bytes, &entry)
                                      : status == CKB_END || status == CKB_PURGED;
        if (!right)
            log_fail(w, "read beside truncate", status, entry.index, index);
        index++;
        if (status != CKB_OK) {
            ckb_log_stat(cut.log, &info);
            index = info.first;
        }
        counted(w);
    }
    free(memory);
}

/* -------------------------------------------------------------------------------------------- >>log-rest */

/* Chunks beside the logs: one container, one writer. */
static void chunk_run(worker *w)
{
    w->owner = 0;
    while (!stopped()) {
        if (owner_step(w, shared_writer, w->turn % CHUNKS, w->turn % 5 == 0 ? CKB_DURABLE : 0))
            w->turn++;
        usleep(100);
    }
}

static void maintain_run(worker *w)
{
    while (!stopped()) {
        ckb_log_info info;
        ckb_stat stat;
        uint32_t place = 0, logs = 0;
        int status = ckb_maintain(volume, 16, NULL);
        if (status != CKB_OK && status != CKB_NOSPACE)
            fail(w, "maintain", status, NULL);
        while (ckb_log_list(volume, &place, &info) == CKB_OK)
            logs++;
        ckb_volume_stat(volume, &stat);
        if (stat.damage != 0 || stat.failed || stat.logs != 2 || logs != 2)
            fail(w, "stat shows damage, or not two logs", CKB_CORRUPT, NULL);
        counted(w);
        usleep(500);
    }
}

static void check_run(worker *w)
{
    void *memory = memory_take(reader_bytes);
    ckb_reader *reader;
    ckb_check_report found;
    expect(w, "reader open", ckb_reader_open(volume, memory, reader_bytes, &reader), CKB_OK, 0);
    while (!stopped()) {
        expect(w, "check", ckb_check(volume, reader, finding_fails, w, &found), CKB_OK, 0);
        scrub_some(w, reader);
        counted(w);
        usleep(20000);
    }
    free(memory);
}

/* ---------------------------------------------------------------------------------------------- >>phases */

static void mount(void)
{
    ckb_fault fault;
    char text[200];
    int status = ckb_mount(&medium, &config, volume_memory, volume_bytes, &volume, &fault);
    if (status != CKB_OK) {
        ckb_fault_text(&fault, text, sizeof text);
        fprintf(stderr, "race: mount: %s\n", text);
        exit(1);
    }
}

static void allocate(void)
{
    for (uint32_t i = 0; i < SEGMENT_COUNT; i++)
        segments[i].words = (uint64_t *)memory_take(SEGMENT_BYTES);
    writer_bytes = ckb_writer_memory(&medium.geometry, NULL);
    reader_bytes = ckb_reader_memory(&medium.geometry, 0);
    volume_bytes = ckb_volume_memory(&medium.geometry, &config);
    volume_memory = memory_take(volume_bytes);
    log_bytes = ckb_log_memory(&medium.geometry, &log_config);
    cursor_bytes = ckb_log_cursor_memory(&medium.geometry, 4096);
    log_memory[0] = memory_take(log_bytes);
    log_memory[1] = memory_take(log_bytes);
}

/* A new volume with a container for each owner. */
static void format(uint8_t name)
{
    const ckb_format_config fresh = {{'r', 'a', 'c', 'e', name}, config.max_containers, 0};
    size_t bytes = ckb_format_memory(&medium.geometry);
    void *memory = memory_take(bytes);
    if (ckb_format(&medium, &fresh, memory, bytes, NULL) != CKB_OK)
        fail(NULL, "format", CKB_INVALID, NULL);
    free(memory);
    memset(states, 0, sizeof states);
    mount();
    for (uint32_t owner = 0; owner < OWNERS; owner++)
        expect(NULL, "create", ckb_container_create(volume, 1 + owner), CKB_OK, 1 + owner);
}

/* After a mount: at least what is durable, at most what was begun. The owners go on from what is there. */
static void verify(bool clean)
{
    ckb_reader *reader;
    ckb_check_report report;
    uint64_t *bytes = workers[0].bytes;
    void *memory = memory_take(reader_bytes);
    if (ckb_reader_open(volume, memory, reader_bytes, &reader) != CKB_OK)
        fail(NULL, "reader open", CKB_INVALID, NULL);
    for (uint32_t n = 0; n < OWNERS * CHUNKS; n++) {
        chunk_state *state = &states[n / CHUNKS][n % CHUNKS];
        ckb_chunk_id id = chunk_id(n / CHUNKS, n % CHUNKS);
        size_t got = 0;
        uint32_t low = clean ? state->done : state->durable;
        int status = ckb_chunk_read(reader, &id, 0, bytes, sizeof workers[0].bytes, &got);
        if (!answer_good(status, bytes, got, n / CHUNKS, n % CHUNKS, low, state->begun))
            fail(NULL, clean ? "lost or changed by unmount" : "acknowledged and lost", status, &id);
        uint32_t there = status == CKB_OK ? (uint32_t)bytes[0] : low;
        while ((status == CKB_DELETED || (status == CKB_NOTFOUND && low > 0)) && !is_delete(there))
            there++;
        state->begun = state->done = state->durable = there;
    }
    int status = ckb_check(volume, reader, finding_fails, NULL, &report);
    if (status != CKB_OK)
        fail(NULL, "check after mount", status, NULL);
    free(memory);
}

/* Every entry of a log from its first to its last, which are returned. */
static ckb_log_info read_all(ckb_log *log, bool terms)
{
    ckb_log_cursor *cursor;
    ckb_log_info info;
    uint64_t *bytes = workers[0].bytes;
    void *memory = memory_take(cursor_bytes);
    log_expect(NULL, "cursor open", ckb_log_cursor_open(log, 0, memory, cursor_bytes, &cursor), 0);
    ckb_log_stat(log, &info);
    for (uint64_t index = info.first; index <= info.last && failures == 0; index++) {
        ckb_entry entry;
        int status = ckb_log_next(cursor, &entry, bytes, sizeof workers[0].bytes);
        uint64_t term = terms && status == CKB_OK ? whole_term(index) : 0;
        if (status != CKB_OK || entry.index != index || !entry_good(bytes, &entry) ||
            (term != 0 && term != entry.term))
            log_fail(NULL, "read after mount", status, status == CKB_OK ? entry.index : 0, index);
        else if (terms)
            whole_publish(index, entry.term);
    }
    free(memory);
    return info;
}

/* The next append goes right behind the last entry. */
static void append_next(ckb_log *log, uint64_t last)
{
    uint64_t index = 0, term = next_term(&workers[0]);
    uint32_t length = entry_fill(workers[0].bytes, term);
    int status = ckb_log_append(log, term, workers[0].bytes, length, CKB_DURABLE, &index);
    if (status == CKB_OK && index != last + 1)
        log_fail(NULL, "append after mount", CKB_GAP, index, last + 1);
    if (status == CKB_OK && log == whole.log)
        whole_publish(index, term);
    if (status != CKB_OK && status != CKB_NOSPACE)
        log_fail(NULL, "append after mount", status, index, last + 1);
}

/* After a mount, which may have found less than was appended, but never less than was acknowledged. */
static void open_logs(bool clean)
{
    expect(NULL, "log open",
           ckb_log_open(volume, "whole", &log_config, log_memory[0], log_bytes, &whole.log, NULL), CKB_OK, 0);
    expect(NULL, "log open", ckb_log_open(volume, "cut", &log_config, log_memory[1], log_bytes, &cut.log, NULL),
           CKB_OK, 0);
    uint64_t low = clean ? whole.last : whole.durable;
    ckb_log_info info = read_all(whole.log, true);
    if (info.last < low || (clean && info.last > whole.last))
        log_fail(NULL, "acknowledged and lost, or never appended", CKB_GAP, info.last, low);
    if (info.first != whole.purge_done && info.first != whole.purge_begun)
        log_fail(NULL, "first after purge", CKB_GAP, info.first, whole.purge_done);
    for (uint64_t index = info.last + 1; index <= whole.last; index++)
        whole.index[index % LOG_ROOM] = 0; /* lost, and given to others from here on */
    whole.purge_begun = whole.purge_done = info.first;
    whole.last = whole.durable = info.last;
    append_next(whole.log, info.last);
    info = read_all(cut.log, false);
    if (cut.durable != 0 && info.last < cut.durable)
        log_fail(NULL, "acknowledged and lost beside truncate", CKB_GAP, info.last, cut.durable);
    append_next(cut.log, info.last);
    cut.durable = 0;
    cut.cutting = false;
}

static void create_logs(void)
{
    expect(NULL, "log create", ckb_log_create(volume, "whole", 1), CKB_OK, 0);
    expect(NULL, "log create", ckb_log_create(volume, "cut", UINT64_C(1) << 32), CKB_OK, 0);
    whole.purge_begun = whole.purge_done = 1;
    open_logs(true);
}

static void verify_logs(bool clean)
{
    verify(clean);
    open_logs(clean);
}

static void *worker_start(void *argument)
{
    worker *w = (worker *)argument;
    w->run(w);
    return NULL;
}

/* Without progress of a thread for two minutes something waits for ever: ending shows where. */
static void watch(double seconds)
{
    uint64_t before[THREADS] = {0};
    int still[THREADS] = {0};
    for (double passed = 0; passed < seconds && !stopped(); passed += 0.5) {
        usleep(500000);
        for (uint32_t i = 0; i < THREADS; i++) {
            uint64_t now = __atomic_load_n(&workers[i].operations, __ATOMIC_RELAXED);
            still[i] = now == before[i] ? still[i] + 1 : 0;
            before[i] = now;
            if (still[i] <= 2 * STUCK_SECONDS)
                continue;
            fprintf(stderr, "race: thread %lu (%s) stands still\n", (unsigned long)i, workers[i].role);
            abort();
        }
    }
    stop();
}

static void *alarm_run(void *argument)
{
    (void)argument;
    for (int i = 0; i < STUCK_SECONDS; i++)
        sleep(1);
    fprintf(stderr, "race: threads did not end within %d s\n", STUCK_SECONDS);
    abort();
}

static void phase(double seconds)
{
    pthread_t alarm_id;
    stopping = 0;
    shared_memory = memory_take(writer_bytes);
    expect(NULL, "writer open", ckb_writer_open(volume, NULL, shared_memory, writer_bytes, &shared_writer),
           CKB_OK, 0);
    for (uint32_t i = 0; i < THREADS; i++)
        if (pthread_create(&workers[i].id, NULL, worker_start, &workers[i]) != 0)
            abort();
    watch(seconds);
    if (pthread_create(&alarm_id, NULL, alarm_run, NULL) != 0)
        abort();
    for (uint32_t i = 0; i < THREADS; i++)
        pthread_join(workers[i].id, NULL);
    pthread_cancel(alarm_id);
    pthread_join(alarm_id, NULL);
}

/* ------------------------------------------------------------------------------------------------ >>main */

/* Threads that do the same. */
typedef struct role {
    const char *name;
    void (*run)(worker *w);
    uint32_t threads;
} role;

typedef struct stage {
    const char *name;
    role roles[13];
    void (*begin)(void); /* on a new volume */
    void (*verify)(bool clean);
} stage;

static void nothing(void)
{
}

static const stage stages[] = {{"chunks",
                                {{"writer", own_writer_run, OWN_WRITERS},
                                 {"shared writer", shared_writer_run, SHARED_WRITERS},
                                 {"reader", reader_run, READERS},
                                 {"container", container_run, THREADS - OWNERS - READERS - 2},
                                 {"upkeep", upkeep_run, 2}},
                                nothing,
                                verify},
                               {"logs",
                                {{"append", lax_append_run, 2},
                                 {"durable append", durable_append_run, 2},
                                 {"commit", commit_run, 1},
                                 {"purge", purge_run, 1},
                                 {"read", read_run, 2},
                                 {"append to the cut log", cut_append_run, 2},
                                 {"truncate", truncate_run, 1},
                                 {"purge of the cut log", cut_purge_run, 1},
                                 {"salvage", salvage_run, 1},
                                 {"chunk", chunk_run, 1},
                                 {"maintain", maintain_run, 1},
                                 {"check", check_run, 1}},
                                create_logs,
                                verify_logs}};

static void assign(const role *now, uint64_t seed)
{
    uint32_t left = now->threads;
    for (uint32_t i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        while (left == 0)
            left = (++now)->threads;
        memset(w, 0, sizeof *w);
        w->number = i;
        w->owner = i;
        w->random = (seed + i + 1) * 0x9E3779B97F4A7C15u;
        w->run = now->run;
        w->role = now->name;
        left--;
    }
}

static unsigned from_checkpoint; /* mounts of this stage */

static void mount_and_verify(const stage *now, bool clean)
{
    ckb_stat stat;
    mount();
    ckb_volume_stat(volume, &stat);
    from_checkpoint += stat.mount_covered > 0;
    now->verify(clean);
}

static void report(const stage *now, double seconds)
{
    uint64_t no_space = 0;
    printf("race: %s %s, %u threads, %.0f s, operations:", now->name, failures == 0 ? "ok" : "FAILED", THREADS,
           seconds);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (i == 0 || workers[i].run != workers[i - 1].run)
            printf("%s %s", i == 0 ? "" : ",", workers[i].role);
        printf(" %llu", (unsigned long long)workers[i].operations);
        no_space += workers[i].no_space;
    }
    printf("; %llu times no space, %u mounts with a checkpoint\n", (unsigned long long)no_space,
           from_checkpoint);
}

static void run_stage(const stage *now, double seconds, uint64_t seed)
{
    assign(now->roles, seed);
    format((uint8_t)(now - stages));
    now->begin();
    from_checkpoint = 0;
    for (uint32_t i = 0; i < POWER_CUTS; i++) {
        phase(seconds / (POWER_CUTS + 1));
        mount_and_verify(now, false); /* as after a power cut */
    }
    phase(seconds / (POWER_CUTS + 1));
    int status = ckb_unmount(volume);
    if (status != CKB_OK)
        fail(NULL, "unmount", status, NULL);
    mount_and_verify(now, true);
    failures += contract_broken;
    report(now, seconds);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    uint64_t seed = argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL);
    allocate();
    for (uint32_t i = 0; i < sizeof stages / sizeof stages[0] && failures == 0; i++)
        run_stage(&stages[i], seconds / 2, seed);
    return failures != 0;
}
