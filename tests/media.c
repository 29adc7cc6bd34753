#include "media.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ------------------------------------------------------------------------------------------ >>helpers */

static uint64_t mix(uint64_t value)
{
    value ^= value >> 30;
    value *= UINT64_C(0xBF58476D1CE4E5B9);
    value ^= value >> 27;
    value *= UINT64_C(0x94D049BB133111EB);
    return value ^ (value >> 31);
}

media_random media_random_from(uint64_t seed, uint64_t stream, uint64_t position)
{
    media_random random = {mix(mix(mix(seed + 1) + stream + 1) + position + 1)};
    return random;
}

uint64_t media_random_next(media_random *random)
{
    random->state += UINT64_C(0x9E3779B97F4A7C15);
    return mix(random->state);
}

uint64_t media_random_below(media_random *random, uint64_t limit)
{
    return limit == 0 ? 0 : media_random_next(random) % limit;
}

void media_random_fill(media_random *random, void *buffer, size_t bytes)
{
    uint8_t *to = buffer;
    while (bytes > 0) {
        uint64_t word = media_random_next(random);
        size_t part = bytes < sizeof word ? bytes : sizeof word;
        memcpy(to, &word, part);
        to += part;
        bytes -= part;
    }
}

uint64_t media_hash(const void *data, size_t bytes)
{
    const uint8_t *from = data;
    uint64_t lanes[4] = {1, 2, 3, 4};
    uint64_t words[4];
    uint64_t length = bytes;
    for (; bytes >= sizeof words; bytes -= sizeof words, from += sizeof words) {
        memcpy(words, from, sizeof words);
        for (int lane = 0; lane < 4; lane++) {
            lanes[lane] = (lanes[lane] ^ words[lane]) * UINT64_C(0x9E3779B97F4A7C15);
            lanes[lane] ^= lanes[lane] >> 29;
        }
    }
    memset(words, 0, sizeof words);
    memcpy(words, from, bytes);
    for (int lane = 0; lane < 4; lane++) {
        length = mix(length + lanes[lane]) ^ words[lane];
    }
    return mix(length);
}

bool media_id_number(const char *id, const char *name, uint64_t *number)
{
    size_t length = strlen(name);
    for (const char *place = id; place && *place; place = strchr(place, '/')) {
        place += *place == '/';
        if (strncmp(place, name, length) == 0 && place[length] == '=') {
            *number = strtoull(place + length + 1, NULL, 10);
            return true;
        }
    }
    return false;
}

void *media_alloc(size_t bytes)
{
    void *memory = malloc(bytes ? bytes : 1);
    if (!memory) {
        fprintf(stderr, "test: no memory for %zu bytes\n", bytes);
        abort();
    }
    return memory;
}

void *media_alloc_aligned(size_t bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, 4096, bytes) != 0) {
        fprintf(stderr, "test: no memory for %zu bytes\n", bytes);
        abort();
    }
    return memory;
}

static void *grow(void *memory, size_t bytes)
{
    void *larger = realloc(memory, bytes);
    if (!larger) {
        fprintf(stderr, "test: no memory for %zu bytes\n", bytes);
        abort();
    }
    return larger;
}

void media_set_init(media_set *set, size_t most)
{
    set->capacity = 1024;
    while (set->capacity < most * 2) {
        set->capacity *= 2;
    }
    set->count = 0;
    set->slots = media_alloc(set->capacity * sizeof *set->slots);
    memset(set->slots, 0, set->capacity * sizeof *set->slots);
}

void media_set_free(media_set *set)
{
    free(set->slots);
}

bool media_set_add(media_set *set, uint64_t hash)
{
    hash += hash == 0;
    size_t place = (size_t)hash & (set->capacity - 1);
    while (set->slots[place] != 0) {
        if (set->slots[place] == hash) {
            return false;
        }
        place = (place + 1) & (set->capacity - 1);
    }
    if (set->count + 1 >= set->capacity) {
        fprintf(stderr, "test: set of %zu is full\n", set->capacity);
        abort();
    }
    set->slots[place] = hash;
    set->count++;
    return true;
}

/* ---------------------------------------------------------------------------------------------- >>ram */

static void fill_noise(uint8_t *to, size_t bytes, uint64_t segment, uint64_t offset)
{
    media_random random = media_random_from(0x6E6F697365, segment, offset);
    media_random_fill(&random, to, bytes);
}

static void fill_unit(uint8_t *to, size_t bytes, media_fill fill, uint64_t segment, uint64_t offset)
{
    if (fill == MEDIA_FILL_ZERO) {
        memset(to, 0, bytes);
    } else if (fill == MEDIA_FILL_ONES) {
        memset(to, 0xFF, bytes);
    } else if (fill == MEDIA_FILL_NOISE) {
        fill_noise(to, bytes, segment, offset);
    }
}

static uint8_t *ram_place(const media_ram *ram, uint32_t segment, uint64_t offset)
{
    return ram->image + (size_t)(ram->geometry.segment_bytes * segment + offset);
}

static bool ram_holds(const media_ram *ram, uint32_t segment, uint64_t offset, size_t length)
{
    return segment < ram->geometry.segment_count && offset <= ram->geometry.segment_bytes &&
           length <= ram->geometry.segment_bytes - offset;
}

static int ram_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    const media_ram *ram = context;
    if (!ram_holds(ram, segment, offset, length)) {
        return CKB_IO;
    }
    memcpy(buffer, ram_place(ram, segment, offset), length);
    return CKB_OK;
}

static int ram_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    const media_ram *ram = context;
    if (!ram_holds(ram, segment, offset, length)) {
        return CKB_IO;
    }
    memcpy(ram_place(ram, segment, offset), buffer, length);
    return CKB_OK;
}

static int ram_erase(void *context, uint32_t segment)
{
    const media_ram *ram = context;
    if (segment >= ram->geometry.segment_count) {
        return CKB_IO;
    }
    size_t unit = ram->geometry.write_unit;
    for (uint64_t offset = 0; offset < ram->geometry.segment_bytes; offset += unit) {
        media_fill fill = ram->erase_leaves;
        if (fill == MEDIA_FILL_MIXED) {
            fill = (media_fill)(mix(segment ^ (offset << 20)) % MEDIA_FILL_MIXED);
        }
        fill_unit(ram_place(ram, segment, offset), unit, fill, segment, offset);
    }
    return CKB_OK;
}

static int ram_sync(void *context, uint32_t segment)
{
    const media_ram *ram = context;
    return segment < ram->geometry.segment_count ? CKB_OK : CKB_IO;
}

void media_ram_init(media_ram *ram, const ckb_geometry *geometry)
{
    memset(ram, 0, sizeof *ram);
    ram->geometry = *geometry;
    ram->image = media_alloc(media_volume_bytes(geometry));
    memset(ram->image, 0, media_volume_bytes(geometry));
}

void media_ram_free(media_ram *ram)
{
    free(ram->image);
    ram->image = NULL;
}

ckb_medium media_ram_medium(media_ram *ram)
{
    ckb_medium medium = {ram, ram->geometry, ram_read, ram_write, ram_erase, ram_sync};
    return medium;
}

/* -------------------------------------------------------------------------------------------- >>trace */

/* Called with the lock held. */
static void trace_violation(media_trace *trace, const char *what, uint32_t segment, uint64_t offset,
                            size_t length)
{
    char message[sizeof trace->message];
    snprintf(message, sizeof message, "%s: segment %u offset %llu length %zu", what, segment,
             (unsigned long long)offset, length);
    if (trace->violations++ == 0) {
        memcpy(trace->message, message, sizeof message);
    }
    if (!trace->quiet) {
        fprintf(stderr, "medium contract broken: %s\n", message);
    }
}

/* Called with the lock held. True when the range may be passed on. */
static bool trace_range(media_trace *trace, bool write, uint32_t segment, uint64_t offset, const void *buffer,
                        size_t length)
{
    const ckb_geometry *geometry = &trace->below.geometry;
    uint64_t unit = write ? geometry->write_unit : geometry->read_unit;
    const char *what = NULL;
    if (segment >= geometry->segment_count) {
        what = "segment out of bounds";
    } else if (offset > geometry->segment_bytes || length > geometry->segment_bytes - offset) {
        what = "range out of bounds";
    } else if (length == 0) {
        what = "empty range";
    } else if (offset % unit != 0) {
        what = "offset not aligned";
    } else if (length % unit != 0) {
        what = "length not aligned";
    } else if ((uintptr_t)buffer % geometry->buffer_align != 0) {
        what = "buffer not aligned";
    }
    if (what) {
        trace_violation(trace, what, segment, offset, length);
    }
    return !what;
}

static int trace_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    media_trace *trace = context;
    pthread_mutex_lock(&trace->lock);
    trace->reads++;
    trace->bytes_read += length;
    bool good = trace_range(trace, false, segment, offset, buffer, length);
    pthread_mutex_unlock(&trace->lock);
    return good ? trace->below.read(trace->below.context, segment, offset, buffer, length) : CKB_IO;
}

/* Called with the lock held. True when the write may be passed on. */
static bool trace_write_begin(media_trace *trace, uint32_t segment, uint64_t offset, const void *buffer,
                              size_t length)
{
    if (!trace_range(trace, true, segment, offset, buffer, length)) {
        return false;
    }
    media_trace_segment *state = &trace->segments[segment];
    const char *what = NULL;
    if (!state->erased) {
        what = "write before erase";
    } else if (state->busy) {
        what = "write beside another write or erase";
    } else if (offset < state->end) {
        what = "unit written twice, or offsets not rising";
    }
    if (what) {
        trace_violation(trace, what, segment, offset, length);
        return false;
    }
    state->busy++;
    state->end = offset + length;
    return true;
}

static void trace_end(media_trace *trace, uint32_t segment)
{
    pthread_mutex_lock(&trace->lock);
    trace->segments[segment].busy--;
    pthread_mutex_unlock(&trace->lock);
}

static int trace_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    media_trace *trace = context;
    pthread_mutex_lock(&trace->lock);
    trace->writes++;
    trace->bytes_written += length;
    bool good = trace_write_begin(trace, segment, offset, buffer, length);
    pthread_mutex_unlock(&trace->lock);
    if (!good) {
        return CKB_IO;
    }
    int status = trace->below.write(trace->below.context, segment, offset, buffer, length);
    trace_end(trace, segment);
    return status;
}

static int trace_erase(void *context, uint32_t segment)
{
    media_trace *trace = context;
    const char *what = NULL;
    pthread_mutex_lock(&trace->lock);
    trace->erases++;
    if (segment >= trace->below.geometry.segment_count) {
        what = "segment out of bounds";
    } else if (trace->segments[segment].busy) {
        what = "erase beside another write or erase";
    } else {
        trace->segments[segment].busy++;
    }
    if (what) {
        trace_violation(trace, what, segment, 0, 0);
    }
    pthread_mutex_unlock(&trace->lock);
    if (what) {
        return CKB_IO;
    }
    int status = trace->below.erase(trace->below.context, segment);
    if (status == CKB_OK) {
        pthread_mutex_lock(&trace->lock);
        trace->segments[segment].erased = true;
        trace->segments[segment].end = 0;
        pthread_mutex_unlock(&trace->lock);
    }
    trace_end(trace, segment);
    return status;
}

static int trace_sync(void *context, uint32_t segment)
{
    media_trace *trace = context;
    pthread_mutex_lock(&trace->lock);
    trace->syncs++;
    bool good = segment < trace->below.geometry.segment_count;
    if (!good) {
        trace_violation(trace, "segment out of bounds", segment, 0, 0);
    }
    pthread_mutex_unlock(&trace->lock);
    return good ? trace->below.sync(trace->below.context, segment) : CKB_IO;
}

void media_trace_init(media_trace *trace, const ckb_medium *below)
{
    memset(trace, 0, sizeof *trace);
    trace->below = *below;
    size_t bytes = below->geometry.segment_count * sizeof *trace->segments;
    trace->segments = media_alloc(bytes);
    memset(trace->segments, 0, bytes);
    pthread_mutex_init(&trace->lock, NULL);
}

void media_trace_free(media_trace *trace)
{
    pthread_mutex_destroy(&trace->lock);
    free(trace->segments);
    trace->segments = NULL;
}

ckb_medium media_trace_medium(media_trace *trace)
{
    ckb_medium medium = {trace, trace->below.geometry, trace_read, trace_write, trace_erase, trace_sync};
    return medium;
}

/* -------------------------------------------------------------------------------------------- >>crash */

/* Called with the lock held. */
static media_event *crash_append(media_crash *crash, media_event_kind kind)
{
    if (crash->event_count == crash->event_capacity) {
        crash->event_capacity = crash->event_capacity ? crash->event_capacity * 2 : 1024;
        crash->events = grow(crash->events, crash->event_capacity * sizeof *crash->events);
    }
    media_event *event = &crash->events[crash->event_count++];
    memset(event, 0, sizeof *event);
    event->kind = kind;
    return event;
}

/* Called with the lock held. */
static size_t crash_keep(media_crash *crash, const void *data, size_t bytes)
{
    if (crash->arena_capacity - crash->arena_used < bytes) {
        crash->arena_capacity = (crash->arena_used + bytes) * 2;
        crash->arena = grow(crash->arena, crash->arena_capacity);
    }
    size_t place = crash->arena_used;
    memcpy(crash->arena + place, data, bytes);
    crash->arena_used += bytes;
    return place;
}

/* Counts an operation; false when the power is gone. */
static bool crash_enter(media_crash *crash, size_t *events_before)
{
    pthread_mutex_lock(&crash->lock);
    bool powered = crash->operations < crash->cut_after;
    crash->operations += powered;
    *events_before = crash->event_count;
    pthread_mutex_unlock(&crash->lock);
    return powered;
}

static int crash_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    media_crash *crash = context;
    size_t before;
    if (!crash_enter(crash, &before)) {
        return CKB_IO;
    }
    return crash->below.read(crash->below.context, segment, offset, buffer, length);
}

static int crash_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    media_crash *crash = context;
    size_t before;
    if (!crash_enter(crash, &before)) {
        return CKB_IO;
    }
    int status = crash->below.write(crash->below.context, segment, offset, buffer, length);
    if (status == CKB_OK) {
        pthread_mutex_lock(&crash->lock);
        size_t place = crash_keep(crash, buffer, length);
        media_event *event = crash_append(crash, MEDIA_EVENT_WRITE);
        event->segment = segment;
        event->offset = offset;
        event->length = length;
        event->data = place;
        pthread_mutex_unlock(&crash->lock);
    }
    return status;
}

static int crash_erase(void *context, uint32_t segment)
{
    media_crash *crash = context;
    size_t before;
    if (!crash_enter(crash, &before)) {
        return CKB_IO;
    }
    int status = crash->below.erase(crash->below.context, segment);
    if (status == CKB_OK) {
        pthread_mutex_lock(&crash->lock);
        crash_append(crash, MEDIA_EVENT_ERASE)->segment = segment;
        pthread_mutex_unlock(&crash->lock);
    }
    return status;
}

static int crash_sync(void *context, uint32_t segment)
{
    media_crash *crash = context;
    size_t before;
    if (!crash_enter(crash, &before)) {
        return CKB_IO;
    }
    if (crash->slow_sync_ns) {
        struct timespec pause = {0, crash->slow_sync_ns};
        nanosleep(&pause, NULL);
    }
    int status = crash->below.sync(crash->below.context, segment);
    if (status == CKB_OK) {
        pthread_mutex_lock(&crash->lock);
        media_event *event = crash_append(crash, MEDIA_EVENT_SYNC);
        event->segment = segment;
        event->covers = before;
        pthread_mutex_unlock(&crash->lock);
    }
    return status;
}

void media_crash_init(media_crash *crash, const ckb_medium *below)
{
    memset(crash, 0, sizeof *crash);
    crash->below = *below;
    crash->cut_after = MEDIA_NEVER;
    pthread_mutex_init(&crash->lock, NULL);
}

void media_crash_free(media_crash *crash)
{
    pthread_mutex_destroy(&crash->lock);
    free(crash->events);
    free(crash->arena);
}

void media_crash_restart(media_crash *crash)
{
    crash->event_count = 0;
    crash->arena_used = 0;
    crash->operations = 0;
    crash->cut_after = MEDIA_NEVER;
}

ckb_medium media_crash_medium(media_crash *crash)
{
    ckb_medium medium = {crash, crash->below.geometry, crash_read, crash_write, crash_erase, crash_sync};
    return medium;
}

size_t media_crash_note(media_crash *crash, int note, uint64_t first, int64_t second)
{
    pthread_mutex_lock(&crash->lock);
    size_t number = crash->event_count;
    media_event *event = crash_append(crash, MEDIA_EVENT_NOTE);
    event->note = note;
    event->first = first;
    event->second = second;
    pthread_mutex_unlock(&crash->lock);
    return number;
}

size_t media_crash_steps(const media_crash *crash)
{
    size_t steps = 0;
    for (size_t i = 0; i < crash->event_count; i++) {
        steps += crash->events[i].kind != MEDIA_EVENT_NOTE;
    }
    return steps;
}

bool media_crash_save(const media_crash *crash, FILE *file)
{
    return fwrite(&crash->event_count, sizeof crash->event_count, 1, file) == 1 &&
           fwrite(&crash->arena_used, sizeof crash->arena_used, 1, file) == 1 &&
           fwrite(crash->events, sizeof *crash->events, crash->event_count, file) == crash->event_count &&
           fwrite(crash->arena, 1, crash->arena_used, file) == crash->arena_used;
}

bool media_crash_load(media_crash *crash, FILE *file)
{
    size_t event_count, arena_used;
    if (fread(&event_count, sizeof event_count, 1, file) != 1 ||
        fread(&arena_used, sizeof arena_used, 1, file) != 1) {
        return false;
    }
    crash->events = grow(crash->events, (event_count + 1) * sizeof *crash->events);
    crash->arena = grow(crash->arena, arena_used + 1);
    crash->event_count = crash->event_capacity = event_count;
    crash->arena_used = crash->arena_capacity = arena_used;
    return fread(crash->events, sizeof *crash->events, event_count, file) == event_count &&
           fread(crash->arena, 1, arena_used, file) == arena_used;
}

/* ------------------------------------------------------------------------------------------- >>cursor */

void media_cursor_init(media_cursor *cursor, const media_crash *log, const ckb_geometry *geometry,
                       const uint8_t *base)
{
    memset(cursor, 0, sizeof *cursor);
    cursor->log = log;
    cursor->geometry = *geometry;
    size_t bytes = media_volume_bytes(geometry);
    cursor->durable = media_alloc(bytes);
    cursor->written = media_alloc(bytes / geometry->write_unit);
    cursor->segments = media_alloc(geometry->segment_count * sizeof *cursor->segments);
    media_cursor_rewind(cursor, base, NULL);
}

void media_cursor_free(media_cursor *cursor)
{
    free(cursor->durable);
    free(cursor->written);
    free(cursor->pending);
    free(cursor->segments);
}

void media_cursor_rewind(media_cursor *cursor, const uint8_t *base, const media_trace_segment *attempted)
{
    size_t bytes = media_volume_bytes(&cursor->geometry);
    memcpy(cursor->durable, base, bytes);
    memset(cursor->written, 1, bytes / cursor->geometry.write_unit);
    size_t segments = cursor->geometry.segment_count * sizeof *cursor->segments;
    memset(cursor->segments, 0, segments);
    if (attempted) {
        memcpy(cursor->segments, attempted, segments);
    }
    cursor->next = 0;
    cursor->step = 0;
    cursor->pending_count = 0;
}

static size_t cursor_unit(const media_cursor *cursor, uint32_t segment, uint64_t offset)
{
    return (size_t)((cursor->geometry.segment_bytes * segment + offset) / cursor->geometry.write_unit);
}

static void cursor_apply(media_cursor *cursor, const media_event *event)
{
    size_t unit = cursor->geometry.write_unit;
    uint8_t *written = cursor->written + cursor_unit(cursor, event->segment, event->offset);
    if (event->kind == MEDIA_EVENT_ERASE) {
        memset(written, 0, (size_t)(cursor->geometry.segment_bytes / unit));
    } else {
        size_t place = (size_t)(cursor->geometry.segment_bytes * event->segment + event->offset);
        memcpy(cursor->durable + place, cursor->log->arena + event->data, event->length);
        memset(written, 1, event->length / unit);
    }
}

static void cursor_sync(media_cursor *cursor, const media_event *sync)
{
    size_t kept = 0;
    for (size_t i = 0; i < cursor->pending_count; i++) {
        const media_event *event = &cursor->log->events[cursor->pending[i]];
        if (event->segment == sync->segment && cursor->pending[i] < sync->covers) {
            cursor_apply(cursor, event);
        } else {
            cursor->pending[kept++] = cursor->pending[i];
        }
    }
    cursor->pending_count = kept;
}

static void cursor_pend(media_cursor *cursor, const media_event *event)
{
    if (cursor->pending_count == cursor->pending_capacity) {
        cursor->pending_capacity = cursor->pending_capacity ? cursor->pending_capacity * 2 : 64;
        cursor->pending = grow(cursor->pending, cursor->pending_capacity * sizeof *cursor->pending);
    }
    cursor->pending[cursor->pending_count++] = (size_t)(event - cursor->log->events);
    media_trace_segment *segment = &cursor->segments[event->segment];
    if (event->kind == MEDIA_EVENT_ERASE) {
        segment->erased = true;
        segment->end = 0;
    } else if (event->offset + event->length > segment->end) {
        segment->end = event->offset + event->length;
    }
}

const media_event *media_cursor_advance(media_cursor *cursor)
{
    if (cursor->next == cursor->log->event_count) {
        return NULL;
    }
    const media_event *event = &cursor->log->events[cursor->next++];
    cursor->step += event->kind != MEDIA_EVENT_NOTE;
    if (event->kind == MEDIA_EVENT_SYNC) {
        cursor_sync(cursor, event);
    } else if (event->kind != MEDIA_EVENT_NOTE) {
        cursor_pend(cursor, event);
    }
    return event;
}

void media_crash_resume(media_crash *crash, const media_cursor *cursor)
{
    media_crash_restart(crash);
    for (size_t i = 0; i < cursor->pending_count; i++) {
        const media_event *event = &cursor->log->events[cursor->pending[i]];
        media_event *copy = crash_append(crash, event->kind);
        copy->segment = event->segment;
        copy->offset = event->offset;
        copy->length = event->length;
        if (event->kind == MEDIA_EVENT_WRITE) {
            copy->data = crash_keep(crash, cursor->log->arena + event->data, event->length);
        }
    }
}

void media_cursor_show(const media_cursor *cursor, uint8_t *image)
{
    memcpy(image, cursor->durable, media_volume_bytes(&cursor->geometry));
    for (size_t i = 0; i < cursor->pending_count; i++) {
        const media_event *event = &cursor->log->events[cursor->pending[i]];
        if (event->kind == MEDIA_EVENT_WRITE) {
            memcpy(image + cursor->geometry.segment_bytes * event->segment + event->offset,
                   cursor->log->arena + event->data, event->length);
        }
    }
}

/* -------------------------------------------------------------------------------------- >>materialise */

/* One power cut: which pending units are there, and what was erased looks like. */
typedef struct power_cut {
    const media_cursor *cursor;
    media_random random;
    media_way way;
    uint64_t border;    /* prefix, suffix: number of an operation; one unit: its number */
    uint64_t unit_seen; /* units passed so far */
    uint8_t *image;
} power_cut;

static uint64_t cursor_pending_units(const media_cursor *cursor)
{
    uint64_t units = 0;
    for (size_t i = 0; i < cursor->pending_count; i++) {
        const media_event *event = &cursor->log->events[cursor->pending[i]];
        units += event->kind == MEDIA_EVENT_ERASE ? 1 : event->length / cursor->geometry.write_unit;
    }
    return units;
}

/* Does operation `number` take part at all, and if so, is each of its units drawn on its own? */
static bool cut_takes(power_cut *cut, uint64_t number, bool *torn)
{
    *torn = false;
    switch (cut->way) {
    case MEDIA_WAY_NOTHING:
        return false;
    case MEDIA_WAY_PREFIX:
        return number < cut->border;
    case MEDIA_WAY_SUFFIX:
        return number >= cut->border;
    case MEDIA_WAY_TORN_PREFIX:
        *torn = number == cut->border;
        return number <= cut->border;
    case MEDIA_WAY_SUBSET:
        return media_random_next(&cut->random) & 1;
    case MEDIA_WAY_UNITS:
    case MEDIA_WAY_GARBAGE:
        *torn = true;
        return true;
    case MEDIA_WAY_ALL:
    case MEDIA_WAY_ALL_BUT_ONE:
    case MEDIA_WAY_ONLY_ONE:
    case MEDIA_WAY_COUNT:
        break;
    }
    return true;
}

static bool cut_keeps_unit(power_cut *cut, bool torn)
{
    uint64_t number = cut->unit_seen++;
    if (cut->way == MEDIA_WAY_ALL_BUT_ONE) {
        return number != cut->border;
    }
    if (cut->way == MEDIA_WAY_ONLY_ONE) {
        return number == cut->border;
    }
    return !torn || (media_random_next(&cut->random) & 1);
}

static void cut_write(power_cut *cut, const media_event *event, bool torn)
{
    const media_cursor *cursor = cut->cursor;
    size_t unit = cursor->geometry.write_unit;
    uint8_t *to = cut->image + cursor->geometry.segment_bytes * event->segment + event->offset;
    const uint8_t *from = cursor->log->arena + event->data;
    for (size_t done = 0; done < event->length; done += unit) {
        if (cut_keeps_unit(cut, torn)) {
            memcpy(to + done, from + done, unit);
        } else if (cut->way == MEDIA_WAY_GARBAGE) {
            media_fill fill = (media_fill)media_random_below(&cut->random, MEDIA_FILL_MIXED);
            fill_unit(to + done, unit, fill, event->segment, event->offset + done);
        }
    }
}

/* Fills the units of a segment that `written` (may be null) does not mark. */
static void cut_erase(power_cut *cut, uint32_t segment, const uint8_t *written)
{
    const media_cursor *cursor = cut->cursor;
    size_t unit = cursor->geometry.write_unit;
    media_fill fill = (media_fill)media_random_below(&cut->random, MEDIA_FILL_COUNT);
    uint8_t *to = cut->image + cursor->geometry.segment_bytes * segment;
    for (size_t offset = 0; offset < cursor->geometry.segment_bytes; offset += unit) {
        if (!written || !written[offset / unit]) {
            media_fill one = fill != MEDIA_FILL_MIXED
                                 ? fill
                                 : (media_fill)media_random_below(&cut->random, MEDIA_FILL_MIXED);
            fill_unit(to + offset, unit, one, segment, offset);
        }
    }
}

static void cut_pending(power_cut *cut)
{
    const media_cursor *cursor = cut->cursor;
    for (size_t i = 0; i < cursor->pending_count; i++) {
        const media_event *event = &cursor->log->events[cursor->pending[i]];
        bool torn;
        if (!cut_takes(cut, i, &torn)) {
            continue;
        }
        if (event->kind == MEDIA_EVENT_WRITE) {
            cut_write(cut, event, torn);
        } else if (cut_keeps_unit(cut, torn)) {
            cut_erase(cut, event->segment, NULL);
        }
    }
}

void media_cursor_materialise(const media_cursor *cursor, uint64_t seed, uint64_t choice, uint8_t *image)
{
    power_cut cut = {.cursor = cursor, .way = (media_way)(choice % MEDIA_WAY_COUNT), .image = image};
    cut.random = media_random_from(seed, cursor->step, choice / MEDIA_WAY_COUNT * 16 + (uint64_t)cut.way);
    bool by_unit = cut.way == MEDIA_WAY_ALL_BUT_ONE || cut.way == MEDIA_WAY_ONLY_ONE;
    cut.border =
        media_random_below(&cut.random, by_unit ? cursor_pending_units(cursor) : cursor->pending_count + 1);
    memcpy(image, cursor->durable, media_volume_bytes(&cursor->geometry));
    bool fill = media_random_next(&cut.random) & 1;
    for (uint32_t segment = 0; fill && segment < cursor->geometry.segment_count; segment++) {
        const uint8_t *written = cursor->written + cursor_unit(cursor, segment, 0);
        if (memchr(written, 0, (size_t)(cursor->geometry.segment_bytes / cursor->geometry.write_unit))) {
            cut_erase(&cut, segment, written);
        }
    }
    cut_pending(&cut);
}

/* -------------------------------------------------------------------------------------------- >>fault */

/* Counts an operation and says which effect it meets. */
static media_fault_effect fault_enter(media_fault *fault, unsigned kind, uint32_t segment,
                                      media_fault_rule *rule)
{
    media_fault_effect effect = MEDIA_FAULT_NONE;
    pthread_mutex_lock(&fault->lock);
    *rule = fault->rule;
    if ((rule->kinds & kind) && segment >= rule->from) {
        uint64_t number = fault->seen++;
        if (number == rule->at || (rule->forever && number > rule->at)) {
            effect = rule->effect;
        }
    }
    if (effect != MEDIA_FAULT_NONE) {
        fault->hit = fault->fired++ == 0 ? kind : fault->hit;
    }
    pthread_mutex_unlock(&fault->lock);
    if (effect == MEDIA_FAULT_DELAY && rule->hook) {
        rule->hook(rule->hook_context);
    }
    return effect;
}

static int fault_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    media_fault *fault = context;
    media_fault_rule rule;
    media_fault_effect effect = fault_enter(fault, MEDIA_FAULT_READ, segment, &rule);
    if (effect == MEDIA_FAULT_ERROR || effect == MEDIA_FAULT_SHORT || effect == MEDIA_FAULT_LATE) {
        memset(buffer, 0xEE, effect == MEDIA_FAULT_ERROR ? 0 : length);
        return rule.status;
    }
    int status = fault->below.read(fault->below.context, segment, offset, buffer, length);
    if (effect == MEDIA_FAULT_CORRUPT) {
        uint64_t bit = mix(offset + segment) % (length * 8);
        ((uint8_t *)buffer)[bit / 8] ^= (uint8_t)(1u << (bit % 8));
    }
    return status;
}

static int fault_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    media_fault *fault = context;
    media_fault_rule rule;
    media_fault_effect effect = fault_enter(fault, MEDIA_FAULT_WRITE, segment, &rule);
    const ckb_medium *below = &fault->below;
    if (effect == MEDIA_FAULT_ERROR || effect == MEDIA_FAULT_DROP) {
        return effect == MEDIA_FAULT_DROP ? CKB_OK : rule.status;
    }
    if (effect == MEDIA_FAULT_SHORT) {
        size_t units = length / below->geometry.write_unit;
        size_t part = (size_t)(mix(offset + segment) % (units + 1)) * below->geometry.write_unit;
        int status = part ? below->write(below->context, segment, offset, buffer, part) : CKB_OK;
        return status ? status : rule.status;
    }
    int status = below->write(below->context, segment, offset, buffer, length);
    return effect == MEDIA_FAULT_LATE && status == CKB_OK ? rule.status : status;
}

static int fault_erase(void *context, uint32_t segment)
{
    media_fault *fault = context;
    media_fault_rule rule;
    media_fault_effect effect = fault_enter(fault, MEDIA_FAULT_ERASE, segment, &rule);
    if (effect == MEDIA_FAULT_ERROR || effect == MEDIA_FAULT_SHORT) {
        return rule.status;
    }
    if (effect == MEDIA_FAULT_DROP) {
        return CKB_OK;
    }
    int status = fault->below.erase(fault->below.context, segment);
    return effect == MEDIA_FAULT_LATE && status == CKB_OK ? rule.status : status;
}

static int fault_sync(void *context, uint32_t segment)
{
    media_fault *fault = context;
    media_fault_rule rule;
    media_fault_effect effect = fault_enter(fault, MEDIA_FAULT_SYNC, segment, &rule);
    if (effect == MEDIA_FAULT_ERROR || effect == MEDIA_FAULT_SHORT) {
        return rule.status;
    }
    if (effect == MEDIA_FAULT_DROP) {
        return CKB_OK;
    }
    int status = fault->below.sync(fault->below.context, segment);
    return effect == MEDIA_FAULT_LATE && status == CKB_OK ? rule.status : status;
}

void media_fault_init(media_fault *fault, const ckb_medium *below)
{
    memset(fault, 0, sizeof *fault);
    fault->below = *below;
    pthread_mutex_init(&fault->lock, NULL);
}

void media_fault_arm(media_fault *fault, const media_fault_rule *rule)
{
    fault->rule = *rule;
    fault->seen = 0;
    fault->fired = 0;
    fault->hit = 0;
}

void media_fault_disarm(media_fault *fault)
{
    static const media_fault_rule none;
    media_fault_arm(fault, &none);
}

ckb_medium media_fault_medium(media_fault *fault)
{
    ckb_medium medium = {fault, fault->below.geometry, fault_read, fault_write, fault_erase, fault_sync};
    return medium;
}
