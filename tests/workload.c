#include "workload.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* What the notes in the log say. */
enum {
    NOTE_BEGIN,        /* first: action */
    NOTE_RETURN,       /* first: action, second: status */
    NOTE_COMMIT_BEGIN, /* marks the place only */
    NOTE_COMMIT_WRITER /* first: number of its begin, second: writer, or one of the two below */
};
#define COMMIT_ALL (-1)
#define COMMIT_CONTAINER(slot) (-2 - (int64_t)(slot))

void verdict_set(world_verdict *verdict, const char *format, ...)
{
    if (verdict->text[0] == 0) {
        va_list list;
        va_start(list, format);
        vsnprintf(verdict->text, sizeof verdict->text, format, list);
        va_end(list);
    }
}

/* --------------------------------------------------------------------------------------------- >>table */

world_table *world_table_new(void)
{
    world_table *table = media_alloc(sizeof *table);
    memset(table, 0, sizeof *table);
    pthread_mutex_init(&table->lock, NULL);
    return table;
}

void world_table_cut(world_table *table, int32_t count)
{
    while (table->count > count) {
        world_action *action = &table->items[--table->count];
        free(action->data);
        action->data = NULL;
    }
}

void world_table_free(world_table *table)
{
    world_table_cut(table, 0);
    pthread_mutex_destroy(&table->lock);
    free(table);
}

/* Called with the lock held. */
static void table_append(world_table *table, const world_action *from)
{
    if (table->count == WORLD_ACTIONS) {
        fprintf(stderr, "test: more than %d actions\n", WORLD_ACTIONS);
        abort();
    }
    world_action *action = &table->items[table->count++];
    *action = *from;
    action->returned = SIZE_MAX;
    if (from->kind == WORLD_PUT || from->kind == WORLD_LOG_APPEND) {
        action->data = media_alloc(from->length);
        if (from->length) {
            memcpy(action->data, from->data, from->length);
        }
    }
}

int32_t world_table_add(world_table *table, const world_action *actions, size_t count)
{
    pthread_mutex_lock(&table->lock);
    int32_t first = table->count;
    for (size_t i = 0; i < count; i++) {
        table_append(table, &actions[i]);
    }
    pthread_mutex_unlock(&table->lock);
    return first;
}

/* --------------------------------------------------------------------------------------------- >>test_world */

void world_init(test_world *world, const world_shape *shape, world_table *table, const ckb_medium *below)
{
    memset(world, 0, sizeof *world);
    world->shape = *shape;
    world->table = table;
    world->on_ram = !below;
    ckb_medium medium;
    if (below) {
        medium = *below;
        world->shape.geometry = below->geometry;
    } else {
        media_ram_init(&world->ram, &shape->geometry);
        medium = media_ram_medium(&world->ram);
    }
    media_trace_init(&world->trace, &medium);
    medium = media_trace_medium(&world->trace);
    media_crash_init(&world->crash, &medium);
    medium = media_crash_medium(&world->crash);
    media_fault_init(&world->fault, &medium);
    world->medium = media_fault_medium(&world->fault);
    const ckb_geometry *geometry = &world->shape.geometry;
    world->volume_bytes = ckb_volume_memory(geometry, &shape->config);
    world->writer_bytes = ckb_writer_memory(geometry, &shape->writer);
    world->reader_bytes = ckb_reader_memory(geometry, shape->reader_bytes);
    world->volume_memory = media_alloc(world->volume_bytes);
    world->plain_memory = media_alloc(world->volume_bytes);
    world->reader_memory = media_alloc(world->reader_bytes);
    for (int i = 0; i < WORLD_WRITERS; i++) {
        world->writer_memory[i] = media_alloc(world->writer_bytes);
    }
    world->max_chunk = ckb_max_chunk_bytes(geometry);
    world->buffer_bytes = (size_t)geometry->segment_bytes + 64;
    world->buffer = media_alloc_aligned(world->buffer_bytes);
    for (uint32_t i = 0; i < WORLD_CONTAINERS; i++) {
        world->container_ids[i] = shape->container_base + i * 7;
    }
    for (int i = 0; i < WORLD_CHUNKS; i++) {
        world->chunks[i] = WORLD_ABSENT;
    }
    log_world_init(world);
}

void world_free(test_world *world)
{
    log_world_free(world);
    media_crash_free(&world->crash);
    media_trace_free(&world->trace);
    if (world->on_ram) {
        media_ram_free(&world->ram);
    }
    for (int i = 0; i < WORLD_WRITERS; i++) {
        free(world->writer_memory[i]);
    }
    free(world->volume_memory);
    free(world->plain_memory);
    free(world->reader_memory);
    free(world->buffer);
}

int world_format(test_world *world, uint64_t seed)
{
    ckb_format_config config = {.max_containers = world->shape.config.max_containers};
    media_random random = media_random_from(seed, 0x666D74, 0);
    media_random_fill(&random, config.volume_id, sizeof config.volume_id);
    size_t bytes = ckb_format_memory(&world->shape.geometry);
    void *memory = media_alloc(bytes);
    int status = ckb_format(&world->medium, &config, memory, bytes, &world->fault_seen);
    free(memory);
    return status;
}

int world_mount(test_world *world)
{
    memset(world->writers, 0, sizeof world->writers);
    log_world_forget(world);
    world->volume = NULL;
    int status = ckb_mount(&world->medium, &world->shape.config, world->volume_memory, world->volume_bytes,
                           &world->volume, &world->fault_seen);
    if (status == CKB_OK) {
        status = ckb_reader_open(world->volume, world->reader_memory, world->reader_bytes, &world->reader);
    }
    return status;
}

/* --------------------------------------------------------------------------------------- >>two-mounts */

static uint64_t compared_mounts;

uint64_t world_compared_mounts(void)
{
    return __atomic_load_n(&compared_mounts, __ATOMIC_RELAXED);
}

static void compare_numbers(const char *what, uint64_t with, uint64_t without, world_verdict *verdict)
{
    if (with != without) {
        verdict_set(verdict, "%s: %llu with the checkpoint, %llu without", what, (unsigned long long)with,
                    (unsigned long long)without);
    }
}

static void compare_stats(ckb_volume *with, ckb_volume *without, world_verdict *verdict)
{
    ckb_stat a, b;
    ckb_volume_stat(with, &a);
    ckb_volume_stat(without, &b);
    /* Without the checkpoint its segments are free. */
    uint64_t given_up = a.checkpoint_bytes ? a.segments_checkpoint * a.geometry.segment_bytes : 0;
    compare_numbers("free segments", a.segments_free + a.segments_checkpoint, b.segments_free, verdict);
    compare_numbers("full segments", a.segments_full, b.segments_full, verdict);
    compare_numbers("lost segments", a.segments_lost, b.segments_lost, verdict);
    compare_numbers("live bytes", a.live_bytes, b.live_bytes, verdict);
    compare_numbers("dead bytes", a.dead_bytes, b.dead_bytes, verdict);
    compare_numbers("free bytes", a.free_bytes + given_up, b.free_bytes, verdict);
    compare_numbers("chunks in the index", a.index_used, b.index_used, verdict);
    compare_numbers("containers", a.containers, b.containers, verdict);
    compare_numbers("damage", a.damage, b.damage, verdict);
    compare_numbers("dropped tails", a.dropped_tails, b.dropped_tails, verdict);
    compare_numbers("dropped bytes", a.dropped_bytes, b.dropped_bytes, verdict);
}

static void compare_chunks(test_world *world, ckb_volume *without, world_verdict *verdict)
{
    for (uint32_t slot = 0; slot < WORLD_CHUNKS; slot++) {
        ckb_chunk_id id = world_chunk_id(world, slot);
        ckb_chunk_info a, b;
        int with_status = ckb_chunk_stat(world->volume, &id, &a),
            without_status = ckb_chunk_stat(without, &id, &b);
        if (with_status == CKB_CORRUPT && without_status == CKB_CORRUPT) {
            continue; /* something is lost, and what is left of it is for salvage to show */
        }
        if (with_status != without_status || a.deleted != b.deleted || a.length != b.length ||
            a.version != b.version || a.segment != b.segment || a.offset != b.offset) {
            verdict_set(
                verdict,
                "slot %u: version %u at segment %u offset %llu (%s) with the checkpoint, version %u at segment "
                "%u offset %llu (%s) without",
                slot, a.version, a.segment, (unsigned long long)a.offset, ckb_status_text(with_status),
                b.version, b.segment, (unsigned long long)b.offset, ckb_status_text(without_status));
        }
    }
}

/* `counts`: nothing is lost, so how many chunks there are is known. */
static void compare_containers(ckb_volume *with, ckb_volume *without, bool counts, world_verdict *verdict)
{
    ckb_container_info a, b;
    uint32_t at = 0, other = 0;
    int status;
    do {
        status = ckb_container_next(with, &at, &a);
        int other_status = ckb_container_next(without, &other, &b);
        bool same = a.chunks == b.chunks && a.bytes == b.bytes;
        if (status != other_status ||
            (status == CKB_OK && (a.id != b.id || a.state != b.state || (counts && !same)))) {
            verdict_set(verdict,
                        "container %llu: %llu chunks, %llu bytes with the checkpoint; %llu: %llu, %llu without",
                        (unsigned long long)a.id, (unsigned long long)a.chunks, (unsigned long long)a.bytes,
                        (unsigned long long)b.id, (unsigned long long)b.chunks, (unsigned long long)b.bytes);
        }
    } while (status == CKB_OK && verdict_good(verdict));
}

/* Mounts again without the checkpoint; null when that is refused. */
static ckb_volume *mount_plain(test_world *world, world_verdict *verdict)
{
    ckb_config config = world->shape.config;
    /* Below the fault medium: what is compared here is no operation of a trial. */
    ckb_medium medium = media_crash_medium(&world->crash);
    ckb_volume *without;
    ckb_fault fault;
    config.read_only = config.ignore_checkpoint = true;
    int status = ckb_mount(&medium, &config, world->plain_memory, world->volume_bytes, &without, &fault);
    if (status != CKB_OK) {
        verdict_set(verdict, "a mount without the checkpoint says %s", ckb_status_text(status));
    }
    return without;
}

void world_compare_chunks(test_world *world, world_verdict *verdict)
{
    ckb_volume *without = mount_plain(world, verdict);
    if (without) {
        ckb_stat stat;
        ckb_volume_stat(without, &stat);
        compare_chunks(world, without, verdict);
        compare_containers(world->volume, without, stat.damage == 0, verdict);
    }
}

void world_compare_mounts(test_world *world, world_verdict *verdict)
{
    ckb_stat stat;
    ckb_volume_stat(world->volume, &stat);
    ckb_volume *without = stat.checkpoint_epoch != 0 ? mount_plain(world, verdict) : NULL;
    if (!without) {
        return; /* the other mount would do the same */
    }
    compare_stats(world->volume, without, verdict);
    compare_chunks(world, without, verdict);
    compare_containers(world->volume, without, true, verdict);
    __atomic_fetch_add(&compared_mounts, 1, __ATOMIC_RELAXED);
}

void world_load(test_world *world, const uint8_t *image, const media_trace_segment *segments)
{
    world->volume = NULL;
    world->trace.violations = 0;
    memcpy(world->ram.image, image, media_volume_bytes(&world->shape.geometry));
    media_crash_restart(&world->crash);
    if (segments) {
        memcpy(world->trace.segments, segments,
               world->shape.geometry.segment_count * sizeof *world->trace.segments);
    }
}

ckb_chunk_id world_chunk_id(const test_world *world, uint32_t slot)
{
    ckb_chunk_id id = {world->container_ids[world_container_of(slot)], slot % WORLD_CONTAINER_CHUNKS / 4,
                       slot % 4};
    return id;
}

/* ------------------------------------------------------------------------------------------- >>actions */

static int32_t action_begin(test_world *world, const world_action *action)
{
    int32_t number = world_table_add(world->table, action, 1);
    media_crash_note(&world->crash, NOTE_BEGIN, (uint64_t)number, 0);
    return number;
}

static void action_return(test_world *world, int32_t number, int status)
{
    size_t note = media_crash_note(&world->crash, NOTE_RETURN, (uint64_t)number, status);
    world->table->items[number].returned = note;
}

static size_t commit_begin(test_world *world)
{
    return media_crash_note(&world->crash, NOTE_COMMIT_BEGIN, 0, 0);
}

static int commit_return(test_world *world, size_t begin, int64_t scope, int status)
{
    if (status == CKB_OK) {
        media_crash_note(&world->crash, NOTE_COMMIT_WRITER, begin, scope);
    }
    return status;
}

int world_unmount(test_world *world)
{
    int32_t log_commits[LOG_SLOTS];
    size_t begin = commit_begin(world);
    log_unmount_begin(world, log_commits);
    int status = commit_return(world, begin, COMMIT_ALL, ckb_unmount(world->volume));
    log_unmount_end(world, log_commits, status);
    world->volume = NULL;
    memset(world->writers, 0, sizeof world->writers);
    log_world_forget(world);
    return status;
}

int world_writer_open(test_world *world, uint32_t writer)
{
    return ckb_writer_open(world->volume, &world->shape.writer, world->writer_memory[writer],
                           world->writer_bytes, &world->writers[writer]);
}

int world_writer_close(test_world *world, uint32_t writer)
{
    size_t begin = commit_begin(world);
    int status = commit_return(world, begin, writer, ckb_writer_close(world->writers[writer]));
    world->writers[writer] = NULL;
    return status;
}

int world_commit(test_world *world, uint32_t writer)
{
    size_t begin = commit_begin(world);
    return commit_return(world, begin, writer, ckb_writer_commit(world->writers[writer]));
}

int world_sync(test_world *world)
{
    size_t begin = commit_begin(world);
    return commit_return(world, begin, COMMIT_ALL, ckb_sync(world->volume));
}

int world_put(test_world *world, uint32_t writer, uint32_t slot, const void *data, size_t length,
              unsigned flags)
{
    ckb_chunk_id id = world_chunk_id(world, slot);
    world_action action = {
        .kind = WORLD_PUT, .slot = slot, .writer = writer, .durable = flags & CKB_DURABLE, .length = length};
    memcpy(&action.data, &data, sizeof data);
    int32_t number = action_begin(world, &action);
    int status = ckb_chunk_write(world->writers[writer], &id, data, length, flags);
    action_return(world, number, status);
    __atomic_fetch_add(&world->refused_writes, status == CKB_NOSPACE, __ATOMIC_RELAXED);
    if (status == CKB_OK) {
        world->chunks[slot] = number;
    }
    return status;
}

int world_delete(test_world *world, uint32_t writer, uint32_t slot, unsigned flags)
{
    ckb_chunk_id id = world_chunk_id(world, slot);
    world_action action = {
        .kind = WORLD_DELETE, .slot = slot, .writer = writer, .durable = flags & CKB_DURABLE};
    int32_t number = action_begin(world, &action);
    int status = ckb_chunk_delete(world->writers[writer], &id, flags);
    action_return(world, number, status);
    if (status == CKB_OK) {
        world->chunks[slot] = WORLD_GONE;
    }
    return status;
}

static int container_action(test_world *world, world_kind kind, uint32_t container,
                            int (*call)(ckb_volume *volume, uint64_t id), int state)
{
    world_action action = {.kind = kind, .slot = container, .durable = true};
    size_t begin = commit_begin(world);
    int32_t number = action_begin(world, &action);
    int status = call(world->volume, world->container_ids[container]);
    action_return(world, number, status);
    if (status == CKB_OK) {
        world->containers[container] = state;
        if (kind == WORLD_CLOSE) {
            commit_return(world, begin, COMMIT_CONTAINER(container), status);
        }
    }
    return status;
}

int world_create(test_world *world, uint32_t container)
{
    int status = container_action(world, WORLD_CREATE, container, ckb_container_create, CKB_CONTAINER_OPEN);
    for (uint32_t i = 0; status == CKB_OK && i < WORLD_CONTAINER_CHUNKS; i++) {
        world->chunks[container * WORLD_CONTAINER_CHUNKS + i] = WORLD_ABSENT;
    }
    return status;
}

int world_close(test_world *world, uint32_t container)
{
    return container_action(world, WORLD_CLOSE, container, ckb_container_close, CKB_CONTAINER_CLOSED);
}

int world_drop(test_world *world, uint32_t container)
{
    return container_action(world, WORLD_DROP, container, ckb_container_delete, CKB_CONTAINER_DELETED);
}

/* What the container says to any change of its chunks; 0 when nothing stands against it. */
static unsigned container_statuses(const test_world *world, uint32_t slot)
{
    switch (world->containers[world_container_of(slot)]) {
    case CKB_CONTAINER_OPEN:
        return 0;
    case CKB_CONTAINER_CLOSED:
        return WORLD_BIT(CKB_READONLY);
    case CKB_CONTAINER_DELETED: /* may be forgotten already */
        return WORLD_BIT(CKB_DELETED) | WORLD_BIT(CKB_NOTFOUND);
    default:
        return WORLD_BIT(CKB_NOTFOUND);
    }
}

unsigned world_put_statuses(const test_world *world, uint32_t slot, const void *data, size_t length,
                            unsigned flags)
{
    unsigned container = container_statuses(world, slot);
    unsigned written = WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE);
    if (container) {
        return container;
    }
    if (length > world->max_chunk) {
        return WORLD_BIT(CKB_TOOBIG);
    }
    int32_t state = world->chunks[slot];
    if (state == WORLD_ABSENT) {
        return written;
    }
    if (state == WORLD_GONE) { /* without the flag it may go through once the deletion is forgotten */
        return flags & CKB_OVERWRITE ? written : written | WORLD_BIT(CKB_DELETED);
    }
    const world_action *action = &world->table->items[state];
    bool same = action->length == length && (length == 0 || memcmp(action->data, data, length) == 0);
    if (flags & CKB_OVERWRITE) {
        return written;
    }
    return same ? WORLD_BIT(CKB_OK) : WORLD_BIT(CKB_EXISTS);
}

unsigned world_delete_statuses(const test_world *world, uint32_t slot)
{
    unsigned container = container_statuses(world, slot);
    if (container) {
        return container;
    }
    int32_t state = world->chunks[slot];
    return state == WORLD_ABSENT ? WORLD_BIT(CKB_NOTFOUND)
           : state == WORLD_GONE ? WORLD_BIT(CKB_DELETED) | WORLD_BIT(CKB_NOTFOUND)
                                 : WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE);
}

/* -------------------------------------------------------------------------------------------- >>test_oracle */

void oracle_init(test_oracle *oracle, const world_table *table)
{
    oracle->table = table;
    oracle->returned_count = 0;
    oracle->promises = 0;
    oracle->begun = 0;
    for (int i = 0; i < WORLD_CHUNKS; i++) {
        oracle->chunks[i].count = 1;
        oracle->chunks[i].value[0] = WORLD_ABSENT;
    }
    for (int i = 0; i < WORLD_CONTAINERS; i++) {
        oracle->containers[i].count = 1;
        oracle->containers[i].value[0] = CKB_CONTAINER_NONE;
    }
    log_oracle_init(oracle);
}

static bool is_chunk_action(const world_action *action)
{
    return action->kind == WORLD_PUT || action->kind == WORLD_DELETE;
}

static oracle_target *oracle_find(test_oracle *oracle, const world_action *action)
{
    return is_chunk_action(action) ? &oracle->chunks[action->slot] : &oracle->containers[action->slot];
}

static int32_t oracle_value(const world_action *action, int32_t number)
{
    return is_chunk_action(action)        ? number
           : action->kind == WORLD_CREATE ? CKB_CONTAINER_OPEN
           : action->kind == WORLD_CLOSE  ? CKB_CONTAINER_CLOSED
                                          : CKB_CONTAINER_DELETED;
}

/* Place of a value among those in flight, 0 when it is not one of them. */
static int32_t target_place(const oracle_target *target, int32_t value)
{
    int32_t place = target->count - 1;
    while (place > 0 && target->value[place] != value) {
        place--;
    }
    return place;
}

static void target_remove(oracle_target *target, int32_t place, int32_t how_many)
{
    int32_t left = target->count - place - how_many;
    memmove(&target->value[place], &target->value[place + how_many], (size_t)left * sizeof target->value[0]);
    target->count -= how_many;
}

static void oracle_begin(test_oracle *oracle, int32_t number)
{
    const world_action *action = &oracle->table->items[number];
    oracle_target *target = oracle_find(oracle, action);
    if (target->count == ORACLE_DEPTH) {
        fprintf(stderr, "test: more than %d states in flight\n", ORACLE_DEPTH);
        abort();
    }
    bool gone = target->value[0] == CKB_CONTAINER_DELETED || target->value[0] == CKB_CONTAINER_NONE;
    target->value[target->count++] = oracle_value(action, number);
    if (action->kind == WORLD_CREATE && gone) { /* a new life of a deleted id has none of the old chunks */
        for (uint32_t i = 0; i < WORLD_CONTAINER_CHUNKS; i++) {
            oracle_target *chunk = &oracle->chunks[action->slot * WORLD_CONTAINER_CHUNKS + i];
            chunk->count = 1;
            chunk->value[0] = WORLD_ABSENT;
        }
    }
}

static void oracle_durable(test_oracle *oracle, int32_t number)
{
    const world_action *action = &oracle->table->items[number];
    oracle_target *target = oracle_find(oracle, action);
    target_remove(target, 0, target_place(target, oracle_value(action, number)));
    oracle->promises++;
}

static void oracle_return(test_oracle *oracle, int32_t number, int64_t status)
{
    const world_action *action = &oracle->table->items[number];
    bool unknown = status == CKB_IO || status == CKB_FAILED;
    if (status == CKB_OK && action->durable) {
        oracle_durable(oracle, number);
    } else if (status == CKB_OK) {
        oracle->returned[oracle->returned_count++] = number;
    } else if (!unknown) {
        oracle_target *target = oracle_find(oracle, action);
        int32_t place = target_place(target, oracle_value(action, number));
        if (place > 0) {
            target_remove(target, place, 1);
        }
    }
}

static bool commit_covers(const world_action *action, uint64_t begin, int64_t scope)
{
    if (action->returned > begin) {
        return false;
    }
    return scope == COMMIT_ALL || scope == (int64_t)action->writer ||
           scope == COMMIT_CONTAINER(world_container_of(action->slot));
}

static void oracle_commit(test_oracle *oracle, uint64_t begin, int64_t scope)
{
    int32_t kept = 0;
    for (int32_t i = 0; i < oracle->returned_count; i++) {
        int32_t number = oracle->returned[i];
        if (commit_covers(&oracle->table->items[number], begin, scope)) {
            oracle_durable(oracle, number);
        } else {
            oracle->returned[kept++] = number;
        }
    }
    oracle->returned_count = kept;
}

void oracle_note(test_oracle *oracle, const media_event *event)
{
    if (event->kind != MEDIA_EVENT_NOTE) {
        return;
    }
    if (event->note == NOTE_BEGIN) {
        oracle->begun = (int32_t)event->first + 1;
        oracle_begin(oracle, (int32_t)event->first);
    } else if (event->note == NOTE_RETURN) {
        oracle_return(oracle, (int32_t)event->first, event->second);
    } else if (event->note == NOTE_COMMIT_WRITER) {
        oracle_commit(oracle, event->first, event->second);
    } else {
        log_oracle_note(oracle, event);
    }
}

void oracle_rebase(test_oracle *oracle, const observation *seen)
{
    oracle->returned_count = 0;
    for (int i = 0; i < WORLD_CHUNKS; i++) {
        oracle->chunks[i].count = 1;
        oracle->chunks[i].value[0] = seen->chunks[i];
    }
    for (int i = 0; i < WORLD_CONTAINERS; i++) {
        oracle->containers[i].count = 1;
        oracle->containers[i].value[0] = seen->containers[i];
    }
    log_oracle_rebase(oracle, seen);
}

void world_observe_newest(const test_world *world, observation *seen)
{
    memcpy(seen->chunks, world->chunks, sizeof seen->chunks);
    memcpy(seen->containers, world->containers, sizeof seen->containers);
    for (uint32_t slot = 0; slot < LOG_SLOTS; slot++) {
        log_content_copy(&seen->logs[slot], &world->logs.newest[slot]);
    }
}

void world_take(test_world *world, const observation *seen)
{
    memcpy(world->chunks, seen->chunks, sizeof seen->chunks);
    memcpy(world->containers, seen->containers, sizeof seen->containers);
    for (uint32_t slot = 0; slot < LOG_SLOTS; slot++) {
        log_content_copy(&world->logs.newest[slot], &seen->logs[slot]);
    }
}

void world_compact(test_world *world, observation *seen)
{
    world_table *table = world->table;
    int32_t kept = 0;
    world_action *live = media_alloc(WORLD_CHUNKS * sizeof *live);
    for (int i = 0; i < WORLD_CHUNKS; i++) {
        if (seen->chunks[i] >= 0) {
            live[kept] = table->items[seen->chunks[i]];
            table->items[seen->chunks[i]].data = NULL;
            seen->chunks[i] = kept++;
        }
    }
    world_table_cut(table, 0);
    memcpy(table->items, live, (size_t)kept * sizeof *live);
    table->count = kept;
    free(live);
    world_take(world, seen);
    media_crash_restart(&world->crash);
}

/* --------------------------------------------------------------------------------------------- >>check */

/* One comparison of a mounted volume with an oracle. */
typedef struct comparison {
    test_world *world;
    const test_oracle *oracle;
    observation *seen;
    world_verdict *verdict;
    uint64_t live_chunks[WORLD_CONTAINERS], live_bytes[WORLD_CONTAINERS];
    uint32_t walked[WORLD_CHUNKS];
} comparison;

static void check_container(comparison *now, uint32_t slot)
{
    ckb_container_info info = {0, 0, 0, 0};
    uint64_t id = now->world->container_ids[slot];
    int status = ckb_container_stat(now->world->volume, id, &info);
    int32_t state = status == CKB_OK ? info.state : CKB_CONTAINER_DELETED;
    const oracle_target *target = &now->oracle->containers[slot];
    if (status == CKB_NOTFOUND) { /* never created, or deleted and forgotten */
        state = target->value[0] == CKB_CONTAINER_DELETED ? CKB_CONTAINER_DELETED : CKB_CONTAINER_NONE;
    } else if (status != CKB_OK && status != CKB_DELETED) {
        verdict_set(now->verdict, "container %llu: stat says %s", (unsigned long long)id,
                    ckb_status_text(status));
    }
    now->seen->containers[slot] = state;
    for (int32_t i = 0; i < target->count; i++) {
        if (target->value[i] == state) {
            return;
        }
    }
    verdict_set(now->verdict, "container %llu: state %d, durable is %d and %d are in flight",
                (unsigned long long)id, state, target->value[0], target->count - 1);
}

/* Finds what was read among the states that are allowed. */
static int32_t match_state(const comparison *now, const oracle_target *target, int status, size_t length)
{
    for (int32_t i = target->count - 1; i >= 0; i--) {
        int32_t value = target->value[i];
        const world_action *action = value >= 0 ? &now->oracle->table->items[value] : NULL;
        bool put = action && action->kind == WORLD_PUT;
        if (put && status == CKB_OK && action->length == length &&
            (length == 0 || memcmp(action->data, now->world->buffer, length) == 0)) {
            return value;
        }
        if (value == WORLD_ABSENT && status == CKB_NOTFOUND) {
            return WORLD_ABSENT;
        }
        if (!put && value != WORLD_ABSENT && (status == CKB_DELETED || status == CKB_NOTFOUND)) {
            return WORLD_GONE;
        }
    }
    return INT32_MIN;
}

static void describe_target(const comparison *now, const oracle_target *target, char *text, size_t bytes)
{
    size_t used = 0;
    text[0] = 0;
    for (int32_t i = 0; i < target->count && used + 40 < bytes; i++) {
        int32_t value = target->value[i];
        const world_action *action = value >= 0 ? &now->oracle->table->items[value] : NULL;
        int wrote =
            action && action->kind == WORLD_PUT
                ? snprintf(text + used, bytes - used, " #%d:%zu bytes by writer %u", value, action->length,
                           action->writer)
                : snprintf(text + used, bytes - used, " %s", value == WORLD_ABSENT ? "absent" : "deleted");
        used += (size_t)wrote;
    }
}

static void check_chunk(comparison *now, uint32_t slot)
{
    test_world *world = now->world;
    ckb_chunk_id id = world_chunk_id(world, slot);
    const oracle_target *target = &now->oracle->chunks[slot];
    uint32_t container = world_container_of(slot);
    size_t got = 0;
    int status = ckb_chunk_read(world->reader, &id, 0, world->buffer, world->buffer_bytes, &got);
    if (now->seen->containers[container] != CKB_CONTAINER_OPEN &&
        now->seen->containers[container] != CKB_CONTAINER_CLOSED) {
        now->seen->chunks[slot] =
            target->count == 1 && target->value[0] == WORLD_ABSENT ? WORLD_ABSENT : WORLD_GONE;
        if (status != CKB_DELETED && status != CKB_NOTFOUND) {
            verdict_set(now->verdict, "chunk %llu/%llu/%u: container is gone, read says %s",
                        (unsigned long long)id.container, (unsigned long long)id.block, id.chunk,
                        ckb_status_text(status));
        }
        return;
    }
    int32_t state = match_state(now, target, status, got);
    now->seen->chunks[slot] = state;
    if (state == INT32_MIN) {
        char allowed[200], place[160];
        ckb_fault fault;
        ckb_reader_fault(world->reader, &fault);
        ckb_fault_text(&fault, place, sizeof place);
        describe_target(now, target, allowed, sizeof allowed);
        verdict_set(now->verdict, "chunk %llu/%llu/%u (slot %u): read says %s, %zu bytes (%s); allowed:%s",
                    (unsigned long long)id.container, (unsigned long long)id.block, id.chunk, slot,
                    ckb_status_text(status), got, place, allowed);
    } else if (state >= 0) {
        now->live_chunks[container]++;
        now->live_bytes[container] += got;
    }
}

static bool find_slot(const test_world *world, const ckb_chunk_id *id, uint32_t *slot)
{
    for (uint32_t i = 0; i < WORLD_CONTAINERS; i++) {
        if (world->container_ids[i] == id->container) {
            *slot = i * WORLD_CONTAINER_CHUNKS + (uint32_t)id->block * 4 + id->chunk;
            return id->block < WORLD_CONTAINER_CHUNKS / 4 && id->chunk < 4;
        }
    }
    return false;
}

static void check_chunk_walk(comparison *now)
{
    test_world *world = now->world;
    ckb_chunk_info info;
    uint64_t cursor = 0;
    int status;
    while ((status = ckb_chunk_next(world->volume, &cursor, &info)) == CKB_OK) {
        uint32_t slot = 0;
        if (!find_slot(world, &info.id, &slot) || (now->seen->chunks[slot] < 0 && !info.deleted)) {
            verdict_set(now->verdict, "walk shows chunk %llu/%llu/%u, which is not there",
                        (unsigned long long)info.id.container, (unsigned long long)info.id.block,
                        info.id.chunk);
            return;
        }
        now->walked[slot]++;
    }
    if (status != CKB_END) {
        verdict_set(now->verdict, "walk of chunks ends with %s", ckb_status_text(status));
    }
    for (uint32_t slot = 0; slot < WORLD_CHUNKS; slot++) {
        if (now->seen->chunks[slot] >= 0 && now->walked[slot] != 1) {
            verdict_set(now->verdict, "walk shows slot %u %u times", slot, now->walked[slot]);
        }
    }
}

static void check_container_walk(comparison *now)
{
    ckb_container_info info;
    uint32_t cursor = 0;
    uint32_t walked[WORLD_CONTAINERS] = {0};
    while (ckb_container_next(now->world->volume, &cursor, &info) == CKB_OK) {
        uint32_t slot = 0;
        while (slot < WORLD_CONTAINERS && now->world->container_ids[slot] != info.id) {
            slot++;
        }
        if (slot == WORLD_CONTAINERS) {
            if (info.state != CKB_CONTAINER_DELETED) {
                verdict_set(now->verdict, "walk shows container %llu, which is not there",
                            (unsigned long long)info.id);
            }
            continue;
        }
        bool live = info.state != CKB_CONTAINER_DELETED;
        walked[slot]++;
        if (info.state != now->seen->containers[slot] ||
            (live && (info.chunks != now->live_chunks[slot] || info.bytes != now->live_bytes[slot]))) {
            verdict_set(now->verdict,
                        "container %llu: walk says state %d, %llu chunks, %llu bytes; counted %d, %llu, %llu",
                        (unsigned long long)info.id, info.state, (unsigned long long)info.chunks,
                        (unsigned long long)info.bytes, now->seen->containers[slot],
                        (unsigned long long)now->live_chunks[slot], (unsigned long long)now->live_bytes[slot]);
        }
    }
    for (uint32_t slot = 0; slot < WORLD_CONTAINERS; slot++) {
        int32_t state = now->seen->containers[slot];
        bool live = state != CKB_CONTAINER_DELETED && state != CKB_CONTAINER_NONE;
        if (walked[slot] > 1 || (live && walked[slot] == 0)) {
            verdict_set(now->verdict, "walk shows container slot %u %u times", slot, walked[slot]);
        }
    }
}

static void check_sums(comparison *now)
{
    ckb_stat stat;
    ckb_volume_stat(now->world->volume, &stat);
    uint64_t segments = (uint64_t)stat.segments_free + stat.segments_prepared + stat.segments_open +
                        stat.segments_full + stat.segments_retired + stat.segments_lost +
                        stat.segments_journal + stat.segments_checkpoint;
    uint64_t whole = stat.geometry.segment_bytes * stat.geometry.segment_count;
    uint64_t live = 0;
    for (int i = 0; i < WORLD_CONTAINERS; i++) {
        live += now->live_bytes[i];
    }
    if (segments != stat.geometry.segment_count) {
        verdict_set(now->verdict, "stat: %llu of %u segments", (unsigned long long)segments,
                    stat.geometry.segment_count);
    }
    if (stat.live_bytes + stat.dead_bytes + stat.free_bytes > whole || stat.live_bytes < live) {
        verdict_set(now->verdict, "stat: %llu live (payload %llu) + %llu dead + %llu free of %llu bytes",
                    (unsigned long long)stat.live_bytes, (unsigned long long)live,
                    (unsigned long long)stat.dead_bytes, (unsigned long long)stat.free_bytes,
                    (unsigned long long)whole);
    }
    if (stat.damage != 0 || stat.segments_lost != 0) {
        char text[160];
        ckb_fault last, first;
        ckb_volume_fault(now->world->volume, &last, &first);
        ckb_fault_text(&first, text, sizeof text);
        verdict_set(now->verdict, "stat: damage %llu, lost segments %u (%s)", (unsigned long long)stat.damage,
                    stat.segments_lost, text);
    }
}

static int take_finding(void *context, const ckb_finding *finding)
{
    world_verdict *verdict = context;
    if (finding->fault.status != CKB_OK) {
        char text[160];
        ckb_fault_text(&finding->fault, text, sizeof text);
        verdict_set(verdict, "check finds %s", text);
    }
    return 0;
}

static void check_check(comparison *now)
{
    ckb_check_report report;
    uint64_t chunks = 0, bytes = 0, entries, entry_bytes;
    int status = ckb_check(now->world->volume, now->world->reader, take_finding, now->verdict, &report);
    for (int i = 0; i < WORLD_CONTAINERS; i++) {
        chunks += now->live_chunks[i];
        bytes += now->live_bytes[i];
    }
    log_sums(now->world, now->seen, &entries, &entry_bytes);
    if (status != CKB_OK || report.damage != 0 || report.chunks_bad != 0 || report.entries_bad != 0) {
        verdict_set(now->verdict, "check says %s, damage %llu, %llu bad chunks, %llu bad entries",
                    ckb_status_text(status), (unsigned long long)report.damage,
                    (unsigned long long)report.chunks_bad, (unsigned long long)report.entries_bad);
    } else if (report.chunks != chunks || report.bytes != bytes) {
        verdict_set(now->verdict, "check verified %llu chunks and %llu bytes of %llu and %llu",
                    (unsigned long long)report.chunks, (unsigned long long)report.bytes,
                    (unsigned long long)chunks, (unsigned long long)bytes);
    } else if (report.entries != entries || report.entry_bytes != entry_bytes) {
        verdict_set(now->verdict, "check verified %llu entries and %llu bytes of %llu and %llu",
                    (unsigned long long)report.entries, (unsigned long long)report.entry_bytes,
                    (unsigned long long)entries, (unsigned long long)entry_bytes);
    }
}

bool world_check(test_world *world, const test_oracle *oracle, observation *seen, world_verdict *verdict)
{
    comparison now = {.world = world, .oracle = oracle, .seen = seen, .verdict = verdict};
    for (uint32_t slot = 0; slot < WORLD_CONTAINERS; slot++) {
        check_container(&now, slot);
    }
    for (uint32_t slot = 0; slot < WORLD_CHUNKS; slot++) {
        const oracle_target *target = &oracle->chunks[slot];
        if (target->count == 1 && target->value[0] == WORLD_ABSENT) {
            seen->chunks[slot] = WORLD_ABSENT; /* the walk would show it */
        } else {
            check_chunk(&now, slot);
        }
    }
    log_check(world, oracle, seen, verdict);
    if (verdict_good(verdict)) {
        check_chunk_walk(&now);
        check_container_walk(&now);
        check_sums(&now);
        check_check(&now);
    }
    return verdict_good(verdict);
}

/* ------------------------------------------------------------------------------------------ >>payloads */

void world_payload_fill(test_world *world, media_random *random, world_payload kind, uint8_t *data,
                        size_t length)
{
    if (kind == WORLD_PAYLOAD_RANDOM || (kind == WORLD_PAYLOAD_RECORD && !world->on_ram)) {
        media_random_fill(random, data, length);
    } else if (kind == WORLD_PAYLOAD_RECORD) {
        uint64_t whole = media_volume_bytes(&world->shape.geometry);
        uint64_t unit = world->shape.geometry.write_unit;
        uint64_t place = media_random_below(random, (whole - length) / unit + 1) * unit;
        memcpy(data, world->ram.image + place, length);
    } else {
        memset(data, kind == WORLD_PAYLOAD_ZERO ? 0 : 0xFF, length);
    }
}

size_t world_payload_length(const test_world *world, media_random *random, uint64_t most)
{
    uint64_t unit = world->shape.geometry.write_unit;
    uint64_t length;
    switch (media_random_below(random, 16)) {
    case 0:
        length = 0;
        break;
    case 1:
        length = 1;
        break;
    case 2:
        length = unit - 1 + media_random_below(random, 3);
        break;
    case 3:
        length = most - media_random_below(random, 2);
        break;
    case 4:
    case 5:
        length = media_random_below(random, most);
        break;
    case 6:
    case 7:
    case 8:
        length = media_random_below(random, most / 6 + 2);
        break;
    default:
        length = media_random_below(random, 200);
    }
    return (size_t)(length > most ? most : length);
}

/* -------------------------------------------------------------------------------------------- >>random */

/* Any container in this state; WORLD_CONTAINERS when there is none. */
uint32_t world_pick_container(const test_world *world, media_random *random, int state)
{
    uint32_t start = (uint32_t)media_random_below(random, WORLD_CONTAINERS);
    for (uint32_t i = 0; i < WORLD_CONTAINERS; i++) {
        uint32_t container = (start + i) % WORLD_CONTAINERS;
        if (world->containers[container] == state) {
            return container;
        }
    }
    return WORLD_CONTAINERS;
}

uint32_t world_count_containers(const test_world *world, int state)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < WORLD_CONTAINERS; i++) {
        count += world->containers[i] == state;
    }
    return count;
}

void verdict_status(world_verdict *verdict, const char *what, uint32_t slot, int status, unsigned allowed)
{
    if (!(allowed & WORLD_BIT(status))) {
        verdict_set(verdict, "%s of slot %u says %s, allowed set 0x%x", what, slot, ckb_status_text(status),
                    allowed);
    }
}

/* One chunk write with everything about it drawn; `kinds` limits the payloads. Returns the status. */
int world_random_put(test_world *world, media_random *random, uint32_t writer, uint32_t slot, uint64_t kinds,
                     world_verdict *verdict)
{
    /* Aligned for the medium in every second call, so that large payloads go both ways: past the buffers
     * and through them. The same in every run of a seed. */
    uint8_t *memory = media_alloc_aligned((size_t)world->max_chunk + 16);
    uint8_t *data = memory + (media_random_below(random, 2) ? 0 : 8);
    size_t length = world_payload_length(world, random, world->max_chunk);
    unsigned flags = media_random_below(random, 4) == 0 ? CKB_DURABLE : 0;
    flags |= media_random_below(random, 4) != 0 ? CKB_OVERWRITE : 0;
    int32_t old = world->chunks[slot];
    if (old >= 0 && media_random_below(random, 6) == 0) { /* an idempotent retry */
        length = world->table->items[old].length;
        memcpy(data, world->table->items[old].data, length);
    } else {
        world_payload kind = (world_payload)media_random_below(random, kinds);
        world_payload_fill(world, random, kind, data, length);
    }
    unsigned allowed = world_put_statuses(world, slot, data, length, flags);
    int status = world_put(world, writer, slot, data, length, flags);
    verdict_status(verdict, "write", slot, status, allowed);
    free(memory);
    return status;
}

void world_random_delete(test_world *world, media_random *random, uint32_t writer, uint32_t slot,
                         world_verdict *verdict)
{
    unsigned allowed = world_delete_statuses(world, slot);
    int status = world_delete(world, writer, slot, media_random_below(random, 3) == 0 ? CKB_DURABLE : 0);
    __atomic_fetch_add(&world->refused_deletes, status == CKB_NOSPACE, __ATOMIC_RELAXED);
    verdict_status(verdict, "delete", slot, status, allowed);
}

void world_maintain(test_world *world, uint32_t budget, world_verdict *verdict)
{
    bool more;
    int status = ckb_maintain(world->volume, budget, &more);
    verdict_status(verdict, "maintain", 0, status, WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE));
}

void world_scrub(test_world *world, uint64_t budget, world_verdict *verdict)
{
    ckb_check_report report = {0};
    bool more;
    int status = ckb_scrub(world->volume, world->reader, budget, take_finding, verdict, &report, &more);
    verdict_status(verdict, "scrub", 0, status, WORLD_BIT(CKB_OK));
}

void world_make_room(test_world *world, media_random *random, world_verdict *verdict)
{
    uint32_t victim = world_pick_container(world, random, CKB_CONTAINER_CLOSED);
    if (victim == WORLD_CONTAINERS) {
        victim = world_pick_container(world, random, CKB_CONTAINER_OPEN);
    }
    if (victim < WORLD_CONTAINERS) {
        verdict_status(verdict, "container delete", victim, world_drop(world, victim), WORLD_BIT(CKB_OK));
    }
    world_maintain(world, 64, verdict);
}

void world_random_container(test_world *world, media_random *random, world_verdict *verdict)
{
    uint32_t open = world_count_containers(world, CKB_CONTAINER_OPEN);
    uint32_t closed = world_count_containers(world, CKB_CONTAINER_CLOSED);
    if (open < 3) {
        uint32_t fresh = world_pick_container(world, random, CKB_CONTAINER_DELETED);
        if (fresh == WORLD_CONTAINERS || media_random_below(random, 3) == 0) {
            uint32_t unused = world_pick_container(world, random, CKB_CONTAINER_NONE);
            fresh = unused < WORLD_CONTAINERS ? unused : fresh;
        }
        bool again = world->containers[fresh] == CKB_CONTAINER_DELETED;
        verdict_status(verdict, "create", fresh, world_create(world, fresh),
                       WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE) | (again ? WORLD_BIT(CKB_DELETED) : 0));
    } else if (open > 1 && closed < 2) {
        uint32_t container = world_pick_container(world, random, CKB_CONTAINER_OPEN);
        verdict_status(verdict, "close", container, world_close(world, container), WORLD_BIT(CKB_OK));
    } else if (closed > 0) {
        uint32_t container = world_pick_container(world, random, CKB_CONTAINER_CLOSED);
        verdict_status(verdict, "container delete", container, world_drop(world, container), WORLD_BIT(CKB_OK));
    }
}

uint32_t world_open_slot(const test_world *world, media_random *random)
{
    uint32_t container = world_pick_container(world, random, CKB_CONTAINER_OPEN);
    return container == WORLD_CONTAINERS ? 0
                                         : container * WORLD_CONTAINER_CHUNKS +
                                               (uint32_t)media_random_below(random, WORLD_CONTAINER_CHUNKS);
}

void world_reopen_writer(test_world *world, uint32_t writer, world_verdict *verdict)
{
    int status = world_writer_close(world, writer);
    status = status ? status : world_writer_open(world, writer);
    verdict_status(verdict, "reopening writer", writer, status, WORLD_BIT(CKB_OK));
}

void world_open_writers(test_world *world, uint32_t count, world_verdict *verdict)
{
    for (uint32_t i = 0; i < count; i++) {
        verdict_status(verdict, "opening writer", i, world_writer_open(world, i), WORLD_BIT(CKB_OK));
    }
}

void world_remount(test_world *world, uint32_t writers, world_verdict *verdict)
{
    int status = world_unmount(world);
    status = status ? status : world_mount(world);
    verdict_status(verdict, "remount", 0, status, WORLD_BIT(CKB_OK));
    if (status == CKB_OK) {
        world_compare_mounts(world, verdict);
        world_open_writers(world, writers, verdict);
    }
}

/* One step of the workload by a single thread. */
void world_random_step(test_world *world, media_random *random, uint32_t writers, world_verdict *verdict)
{
    if (world->shape.config.checkpoint_records != 0 && media_random_below(random, 3) == 0) {
        world_maintain(world, 1 + (uint32_t)media_random_below(random, 6), verdict);
    }
    if (world->shape.config.checkpoint_records != 0 && media_random_below(random, 6) == 0) {
        world_scrub(world, 1 + media_random_below(random, 40000), verdict);
    }
    uint64_t part = world->logs.count > 0 ? media_random_below(random, 100) : 100;
    if (part < 86) {
        log_random_step(world, random, (uint32_t)media_random_below(random, world->logs.count), verdict);
        return;
    }
    if (part < 88) {
        world_remount(world, writers, verdict);
        return;
    }
    uint32_t writer = (uint32_t)media_random_below(random, writers);
    uint64_t dice = media_random_below(random, 1000);
    if (dice < 640) {
        int status = world_random_put(world, random, writer, world_open_slot(world, random),
                                      WORLD_PAYLOAD_COUNT, verdict);
        if (status == CKB_NOSPACE) {
            world_make_room(world, random, verdict);
        }
    } else if (dice < 740) {
        world_random_delete(world, random, writer, world_open_slot(world, random), verdict);
    } else if (dice < 850) {
        verdict_status(verdict, "commit", writer, world_commit(world, writer), WORLD_BIT(CKB_OK));
    } else if (dice < 875) {
        verdict_status(verdict, "sync", 0, world_sync(world), WORLD_BIT(CKB_OK));
    } else if (dice < 925) {
        world_random_container(world, random, verdict);
    } else if (dice < 965) {
        world_maintain(world, 1 + (uint32_t)media_random_below(random, 12), verdict);
    } else if (dice < 985) {
        world_reopen_writer(world, writer, verdict);
    } else {
        world_remount(world, writers, verdict);
    }
}
