/* A stress program for a race detector. Sixteen threads share one volume in RAM: writers of their own, a
 * writer shared with group commit, readers of what all of them write, containers that come and go, upkeep,
 * and writers opened and closed. Now and then the volume is dropped as by a power cut and mounted again, at the
 * end it is unmounted and mounted: what was acknowledged must be there.
 *
 *     race [SECONDS [SEED]]
 *
 * Every chunk has a generation that rises by one with each write or delete of its only owner, and the bytes
 * of a chunk follow from its generation. Around each operation the owner publishes `begun` and `done`; whoever
 * reads a generation outside the two has seen a stale, a future or a torn chunk. */
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
static const ckb_config config = {.max_chunks = 70000, .max_containers = 64, .max_writers = 16};

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
    if (status == CKB_NOTFOUND)
        return low == 0;
    if (status != CKB_DELETED)
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
        if (turn % 8 == 0 && (status = ckb_sync(volume)) != CKB_OK)
            fail(w, "sync", status, NULL);
        __atomic_add_fetch(&w->operations, 1, __ATOMIC_RELAXED);
        usleep(500);
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

static void format(void)
{
    const ckb_format_config fresh = {{'r', 'a', 'c', 'e'}, config.max_containers, 0};
    size_t bytes = ckb_format_memory(&medium.geometry);
    void *memory = memory_take(bytes);
    for (uint32_t i = 0; i < SEGMENT_COUNT; i++)
        segments[i].words = (uint64_t *)memory_take(SEGMENT_BYTES);
    if (ckb_format(&medium, &fresh, memory, bytes, NULL) != CKB_OK)
        fail(NULL, "format", CKB_INVALID, NULL);
    free(memory);
    writer_bytes = ckb_writer_memory(&medium.geometry, NULL);
    reader_bytes = ckb_reader_memory(&medium.geometry, 0);
    volume_bytes = ckb_volume_memory(&medium.geometry, &config);
    volume_memory = memory_take(volume_bytes);
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
        while (status == CKB_DELETED && !is_delete(there))
            there++;
        state->begun = state->done = state->durable = there;
    }
    int status = ckb_check(volume, reader, finding_fails, NULL, &report);
    if (status != CKB_OK)
        fail(NULL, "check after mount", status, NULL);
    free(memory);
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

static void roles(uint64_t seed)
{
    for (uint32_t i = 0; i < THREADS; i++) {
        worker *w = &workers[i];
        w->number = i;
        w->owner = i;
        w->random = (seed + i + 1) * 0x9E3779B97F4A7C15u;
        w->run = i < OWN_WRITERS        ? own_writer_run
                 : i < OWNERS           ? shared_writer_run
                 : i < OWNERS + READERS ? reader_run
                 : i < THREADS - 2      ? container_run
                                        : upkeep_run;
        w->role = i < OWN_WRITERS        ? "writer"
                  : i < OWNERS           ? "shared writer"
                  : i < OWNERS + READERS ? "reader"
                  : i < THREADS - 2      ? "container"
                                         : "upkeep";
    }
}

static void report(double seconds)
{
    uint64_t no_space = 0;
    printf("race: %s, %u threads, %.0f s, operations:", failures == 0 ? "ok" : "FAILED", THREADS, seconds);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (i == 0 || workers[i].run != workers[i - 1].run)
            printf("%s %s", i == 0 ? "" : ",", workers[i].role);
        printf(" %llu", (unsigned long long)workers[i].operations);
        no_space += workers[i].no_space;
    }
    printf("; %llu times no space\n", (unsigned long long)no_space);
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? strtod(argv[1], NULL) : 10;
    roles(argc > 2 ? strtoull(argv[2], NULL, 10) : (uint64_t)time(NULL));
    format();
    for (uint32_t i = 0; i < POWER_CUTS; i++) {
        phase(seconds / (POWER_CUTS + 1));
        mount(); /* as after a power cut */
        verify(false);
    }
    phase(seconds / (POWER_CUTS + 1));
    int status = ckb_unmount(volume);
    if (status != CKB_OK)
        fail(NULL, "unmount", status, NULL);
    mount();
    verify(true);
    failures += contract_broken;
    report(seconds);
    return failures != 0;
}
