#include "workload.h"

#include <stdlib.h>
#include <string.h>

/* Notes in the log of the crash medium. */
enum {
    NOTE_LOG_BEGIN = 100, /* first: number of the first action, second: so many */
    NOTE_LOG_RETURN       /* first: number of the last one, second: status */
};

enum { LOG_MANY = 6, LOG_CROWD = 120 };

/* ------------------------------------------------------------------------------------------- >>log-state */

static log_range content_range(const log_content *log)
{
    log_range range = {log->exists, log->first, log->last, log->last};
    return range;
}

/* What a structural operation makes of a log. While it is under way a truncation may have come any part of
 * its way; all others happen at once. */
static log_range range_after(const log_range *before, int kind, uint64_t argument, bool under_way)
{
    log_range empty = {true, argument, argument - 1, argument - 1};
    log_range none = {false, 0, 0, 0};
    log_range after = *before;
    switch (kind) {
    case WORLD_LOG_CREATE:
    case WORLD_LOG_RESET:
        return empty;
    case WORLD_LOG_DELETE:
        return none;
    case WORLD_LOG_PURGE:
        after.first = argument;
        after.lowest = argument - 1 > after.lowest ? argument - 1 : after.lowest;
        break;
    default:
        after.lowest = argument < after.lowest ? argument : after.lowest;
        if (!under_way) {
            after.lowest = after.highest = argument;
        }
    }
    return after;
}

/* Forgets who appended what is not within the range. */
static void keep_entries(int32_t at[LOG_WINDOW], const log_range *range)
{
    uint64_t kept = range->exists ? range->highest + 1 - range->first : 0;
    for (uint64_t i = kept; i < LOG_WINDOW; i++) {
        at[(range->first + i) % LOG_WINDOW] = LOG_UNKNOWN;
    }
}

void log_content_copy(log_content *to, const log_content *from)
{
    to->exists = from->exists;
    to->first = from->first;
    to->last = from->last;
    memcpy(to->at, from->at, from->exists ? sizeof to->at : 0);
}

static uint64_t log_entries(const log_content *log)
{
    return log->exists ? log->last + 1 - log->first : 0;
}

/* ------------------------------------------------------------------------------------------- >>log-calls */

const char *log_name(uint32_t slot)
{
    static const char *const names[LOG_SLOTS] = {"a", "second-log", "sixteen-bytes-xx"};
    return names[slot];
}

void log_world_init(test_world *world)
{
    log_world *logs = &world->logs;
    const ckb_geometry *geometry = &world->shape.geometry;
    logs->count = world->shape.logs;
    if (logs->count == 0) {
        return;
    }
    pthread_mutex_init(&logs->lock, NULL);
    logs->max_entry = ckb_max_entry_bytes(geometry);
    logs->memory_bytes = ckb_log_memory(geometry, &world->shape.log);
    logs->cursor_bytes = ckb_log_cursor_memory(geometry, world->shape.reader_bytes);
    for (uint32_t slot = 0; slot < logs->count; slot++) {
        logs->memory[slot] = media_alloc(logs->memory_bytes);
        logs->cursor_memory[slot] = media_alloc(logs->cursor_bytes);
    }
}

void log_world_free(test_world *world)
{
    if (world->logs.count > 0) {
        pthread_mutex_destroy(&world->logs.lock);
    }
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        free(world->logs.memory[slot]);
        free(world->logs.cursor_memory[slot]);
    }
}

void log_world_forget(test_world *world)
{
    memset(world->logs.open, 0, sizeof world->logs.open);
}

static bool volume_failed(test_world *world)
{
    ckb_stat stat;
    ckb_volume_stat(world->volume, &stat);
    return stat.failed;
}

int world_log_open(test_world *world, uint32_t slot)
{
    log_world *logs = &world->logs;
    int status = ckb_log_open(world->volume, log_name(slot), &world->shape.log, logs->memory[slot],
                              logs->memory_bytes, &logs->open[slot], &world->fault_seen);
    if (status != CKB_OK) {
        logs->open[slot] = NULL;
        return status;
    }
    if (volume_failed(world)) { /* what its last close could not make durable is gone */
        ckb_log_info info;
        ckb_log_stat(logs->open[slot], &info);
        logs->newest[slot].last = info.last;
    }
    return ckb_log_cursor_open(logs->open[slot], 0, logs->cursor_memory[slot], logs->cursor_bytes,
                               &logs->cursors[slot]);
}

/* Adds actions and says in the log of the medium that they begin. */
static int32_t log_begin(test_world *world, const world_action *actions, size_t count)
{
    int32_t number = world_table_add(world->table, actions, count);
    media_crash_note(&world->crash, NOTE_LOG_BEGIN, (uint64_t)number, (int64_t)count);
    return number;
}

/* What was refused has changed nothing. Of what failed that is only known when the mount goes on, or had failed
 * before. */
static void log_return(test_world *world, int32_t number, size_t count, int status, bool failed_before)
{
    bool failure = status == CKB_IO || status == CKB_FAILED;
    bool idle = status != CKB_OK && (!failure || failed_before || !volume_failed(world));
    for (size_t i = 0; i < count; i++) {
        world->table->items[(size_t)number + i].idle |= idle;
    }
    media_crash_note(&world->crash, NOTE_LOG_RETURN, (uint64_t)number + count - 1, status);
}

static int32_t log_commit_begin(test_world *world, uint32_t slot, uint64_t index)
{
    world_action action = {.kind = WORLD_LOG_COMMIT, .slot = slot, .durable = true, .index = index};
    return log_begin(world, &action, 1);
}

int world_log_commit(test_world *world, uint32_t slot, uint64_t index)
{
    bool failed_before = volume_failed(world);
    int32_t number = log_commit_begin(world, slot, index);
    int status = ckb_log_commit(world->logs.open[slot], index);
    log_return(world, number, 1, status, failed_before);
    return status;
}

void world_log_believe(test_world *world, uint32_t slot)
{
    ckb_log_info info;
    ckb_log_stat(world->logs.open[slot], &info);
    int32_t number = log_commit_begin(world, slot, info.durable);
    log_return(world, number, 1, CKB_OK, false);
}

int world_log_close(test_world *world, uint32_t slot)
{
    bool failed_before = volume_failed(world);
    int32_t number = log_commit_begin(world, slot, world->logs.newest[slot].last);
    int status = ckb_log_close(world->logs.open[slot]);
    log_return(world, number, 1, status, failed_before);
    world->logs.open[slot] = NULL;
    return status;
}

void log_unmount_begin(test_world *world, int32_t commits[LOG_SLOTS])
{
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        commits[slot] = LOG_UNKNOWN;
        if (world->logs.open[slot]) {
            commits[slot] = log_commit_begin(world, slot, world->logs.newest[slot].last);
        }
    }
}

void log_unmount_end(test_world *world, const int32_t commits[LOG_SLOTS], int status)
{
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        if (commits[slot] != LOG_UNKNOWN) { /* without space all is durable, only not marked clean */
            media_crash_note(&world->crash, NOTE_LOG_RETURN, (uint64_t)commits[slot],
                             status == CKB_NOSPACE ? CKB_OK : status);
        }
    }
}

/* An entry says in its term which action it is from. */
static uint64_t log_term(int32_t number)
{
    return (uint64_t)number * UINT64_C(0x9E3779B97F4A7C15) << 32 | (uint32_t)number;
}

/* Takes over an entry that was appended. Called with the lock held. */
static void log_take(test_world *world, uint32_t slot, uint64_t index, int32_t number, world_verdict *verdict)
{
    log_content *log = &world->logs.newest[slot];
    int32_t *place = &log->at[index % LOG_WINDOW];
    uint64_t offset = index - log->first, next = log->last + 1 - log->first;
    world->table->items[number].index = index;
    if (offset > next + (world->logs.crowded ? LOG_WINDOW / 2 : 0) ||
        (offset < next && *place != LOG_UNKNOWN)) {
        verdict_set(verdict, "log %s: appended as %llu behind %llu..%llu", log_name(slot),
                    (unsigned long long)index, (unsigned long long)log->first, (unsigned long long)log->last);
        return;
    }
    if (offset >= LOG_WINDOW - LOG_MANY) {
        fprintf(stderr, "test: more than %d entries in a log\n", LOG_WINDOW);
        abort();
    }
    *place = number;
    log->last = offset < next ? log->last : index;
}

int world_log_append(test_world *world, uint32_t slot, ckb_entry_data *entries, size_t count, unsigned flags,
                     world_verdict *verdict)
{
    world_action actions[LOG_MANY];
    uint64_t index = 0;
    bool failed_before = volume_failed(world);
    memset(actions, 0, sizeof actions);
    for (size_t i = 0; i < count; i++) {
        actions[i].kind = WORLD_LOG_APPEND;
        actions[i].slot = slot;
        actions[i].durable = flags & CKB_DURABLE;
        actions[i].length = entries[i].length;
        memcpy(&actions[i].data, &entries[i].data, sizeof entries[i].data);
    }
    int32_t number = log_begin(world, actions, count);
    for (size_t i = 0; i < count; i++) {
        entries[i].term = log_term(number + (int32_t)i);
    }
    bool alone = count == 1 && number % 8 != 0;
    int status = alone ? ckb_log_append(world->logs.open[slot], entries->term, entries->data, entries->length,
                                        flags, &index)
                       : ckb_log_append_many(world->logs.open[slot], entries, count, flags, &index);
    if (status == CKB_OK) {
        pthread_mutex_lock(&world->logs.lock);
        for (size_t i = 0; i < count; i++) {
            log_take(world, slot, index + i, number + (int32_t)i, verdict);
        }
        pthread_mutex_unlock(&world->logs.lock);
    }
    log_return(world, number, count, status, failed_before);
    return status;
}

/* Is it one of the calls that are good and do nothing? */
static bool changes_nothing(const log_content *log, int kind, uint64_t argument)
{
    return (kind == WORLD_LOG_TRUNCATE && argument >= log->last) ||
           (kind == WORLD_LOG_PURGE && argument <= log->first);
}

static int log_call(test_world *world, int kind, uint32_t slot, uint64_t argument)
{
    switch (kind) {
    case WORLD_LOG_CREATE:
        return ckb_log_create(world->volume, log_name(slot), argument);
    case WORLD_LOG_DELETE:
        return ckb_log_delete(world->volume, log_name(slot));
    case WORLD_LOG_TRUNCATE:
        return ckb_log_truncate(world->logs.open[slot], argument);
    case WORLD_LOG_PURGE:
        return ckb_log_purge(world->logs.open[slot], argument);
    default:
        return ckb_log_reset(world->logs.open[slot], argument);
    }
}

int world_log_change(test_world *world, int kind, uint32_t slot, uint64_t argument)
{
    log_content *log = &world->logs.newest[slot];
    bool failed_before = volume_failed(world);
    uint64_t index = kind == WORLD_LOG_CREATE && argument == 0 ? 1 : argument;
    world_action action = {.kind = (world_kind)kind,
                           .slot = slot,
                           .durable = true,
                           .index = index,
                           .idle = changes_nothing(log, kind, index)};
    int32_t number = log_begin(world, &action, 1);
    int status = log_call(world, kind, slot, argument);
    log_return(world, number, 1, status, failed_before);
    if (status == CKB_OK && !action.idle) {
        log_range before = content_range(log);
        log_range after = range_after(&before, kind, index, false);
        log->exists = after.exists;
        log->first = after.first;
        log->last = after.highest;
        keep_entries(log->at, &after);
    }
    return status;
}

/* ------------------------------------------------------------------------------------------ >>log-oracle */

static void target_set(log_target *target, const log_range *range)
{
    target->ranges[0] = *range;
    target->count = 1;
    target->unknown = 0;
    keep_entries(target->at, range);
}

void log_oracle_init(test_oracle *oracle)
{
    static const log_range none;
    for (uint32_t slot = 0; slot < LOG_SLOTS; slot++) {
        target_set(&oracle->logs[slot], &none);
    }
}

void log_oracle_rebase(test_oracle *oracle, const observation *seen)
{
    for (uint32_t slot = 0; slot < LOG_SLOTS; slot++) {
        log_range range = content_range(&seen->logs[slot]);
        memcpy(oracle->logs[slot].at, seen->logs[slot].at, range.exists ? sizeof seen->logs[slot].at : 0);
        target_set(&oracle->logs[slot], &range);
    }
}

static void target_append(log_target *target, const world_action *action, int32_t number)
{
    if (action->index == 0) {
        target->unknown++;
        return;
    }
    for (uint32_t i = 0; i < target->count; i++) {
        log_range *range = &target->ranges[i];
        range->highest = action->index > range->highest ? action->index : range->highest;
    }
    target->at[action->index % LOG_WINDOW] = number;
}

static void target_begin(log_target *target, const world_action *action)
{
    if (target->count == LOG_RANGES) {
        fprintf(stderr, "test: a second operation on a log beside one that may have happened\n");
        abort();
    }
    target->ranges[target->count++] = range_after(&target->ranges[0], (int)action->kind, action->index, true);
}

/* It happened, and so did all before it. */
static void target_return(log_target *target, const world_action *action)
{
    log_range after = range_after(&target->ranges[0], (int)action->kind, action->index, false);
    target_set(target, &after);
}

/* Says nothing about what an operation that is under way, or failed, may have made of the log. */
static void target_durable(log_target *target, uint64_t index)
{
    log_range *range = &target->ranges[0];
    range->lowest = range->lowest < index && range->exists ? index : range->lowest;
}

static void oracle_begin_actions(test_oracle *oracle, int32_t first, int64_t count)
{
    for (int32_t number = first; number < first + (int32_t)count; number++) {
        const world_action *action = &oracle->table->items[number];
        log_target *target = &oracle->logs[action->slot];
        if (action->idle || action->kind == WORLD_LOG_COMMIT) {
            continue;
        }
        if (action->kind == WORLD_LOG_APPEND) {
            target_append(target, action, number);
        } else {
            target_begin(target, action);
        }
    }
}

static void oracle_return_actions(test_oracle *oracle, int32_t last, int64_t status)
{
    const world_action *action = &oracle->table->items[last];
    log_target *target = &oracle->logs[action->slot];
    if (status != CKB_OK || action->idle) {
        return;
    }
    if (action->kind == WORLD_LOG_APPEND || action->kind == WORLD_LOG_COMMIT) {
        if (action->durable) {
            target_durable(target, action->index);
        }
    } else {
        target_return(target, action);
    }
    oracle->promises += action->durable;
}

void log_oracle_note(test_oracle *oracle, const media_event *event)
{
    if (event->note == NOTE_LOG_BEGIN) {
        oracle->begun = (int32_t)(event->first + (uint64_t)event->second);
        oracle_begin_actions(oracle, (int32_t)event->first, event->second);
    } else if (event->note == NOTE_LOG_RETURN) {
        oracle_return_actions(oracle, (int32_t)event->first, event->second);
    }
}

/* ------------------------------------------------------------------------------------------- >>log-check */

/* One log held against what is allowed. */
typedef struct log_look {
    test_world *world;
    uint32_t slot;
    const int32_t *at; /* who may have appended its entries */
    log_content *seen;
    world_verdict *verdict;
} log_look;

/* Finds the append that a term names; null when there was none in this log. */
static const world_action *find_append(const log_look *now, uint64_t term, int32_t *number)
{
    const world_table *table = now->world->table;
    *number = (int32_t)(uint32_t)term;
    if (*number < 0 || *number >= table->count || log_term(*number) != term) {
        return NULL;
    }
    const world_action *action = &table->items[*number];
    return action->kind == WORLD_LOG_APPEND && action->slot == now->slot ? action : NULL;
}

/* Where no append is known to have got the index, any that failed may have; once. */
static bool may_be_at(const log_look *now, uint64_t index, const world_action *action, int32_t number)
{
    int32_t allowed = now->at[index % LOG_WINDOW];
    if (allowed != LOG_UNKNOWN || action->index != 0 || action->idle) {
        return allowed == number;
    }
    for (uint64_t before = now->seen->first; before < index; before++) {
        if (now->seen->at[before % LOG_WINDOW] == number) {
            return false;
        }
    }
    return true;
}

/* Holds what was read against the append that it should be from. */
static void check_entry(log_look *now, uint64_t index, const ckb_entry *entry)
{
    int32_t number;
    const world_action *action = find_append(now, entry->term, &number);
    bool right = action && entry->index == index && may_be_at(now, index, action, number) &&
                 action->length == entry->length &&
                 (entry->length == 0 || memcmp(action->data, now->world->buffer, entry->length) == 0);
    now->seen->at[index % LOG_WINDOW] = number;
    if (!right) {
        verdict_set(now->verdict,
                    "log %s entry %llu: read as %llu, %zu bytes by action %d at segment %u offset %llu; should "
                    "be by %d",
                    log_name(now->slot), (unsigned long long)index, (unsigned long long)entry->index,
                    entry->length, number, entry->segment, (unsigned long long)entry->offset,
                    now->at[index % LOG_WINDOW]);
    }
}

static void complain(log_look *now, const char *what, uint64_t index, int status)
{
    char text[160];
    ckb_fault fault;
    ckb_log_cursor_fault(now->world->logs.cursors[now->slot], &fault);
    ckb_fault_text(&fault, text, sizeof text);
    verdict_set(now->verdict, "log %s of %llu..%llu: %s of %llu says %s (%s)", log_name(now->slot),
                (unsigned long long)now->seen->first, (unsigned long long)now->seen->last, what,
                (unsigned long long)index, ckb_status_text(status), text);
}

/* Every entry in order, then the end. */
static void check_entries(log_look *now)
{
    ckb_log_cursor *cursor = now->world->logs.cursors[now->slot];
    ckb_entry entry;
    ckb_log_seek(cursor, now->seen->first);
    for (uint64_t left = log_entries(now->seen); left > 0 && verdict_good(now->verdict); left--) {
        uint64_t index = now->seen->last - left + 1;
        int status = ckb_log_next(cursor, &entry, now->world->buffer, now->world->buffer_bytes);
        if (status == CKB_OK) {
            check_entry(now, index, &entry);
        } else {
            complain(now, "reading on", index, status);
        }
    }
    int status = ckb_log_next(cursor, &entry, now->world->buffer, now->world->buffer_bytes);
    if (status != CKB_END) {
        complain(now, "reading behind the end", now->seen->last, status);
    }
}

/* One entry by its index, which need not be there. */
static void check_read(log_look *now, uint64_t index)
{
    ckb_log_cursor *cursor = now->world->logs.cursors[now->slot];
    ckb_entry entry = {0, 0, 0, 0, 0};
    int status = ckb_log_read(cursor, index, &entry, now->world->buffer, now->world->buffer_bytes);
    int expected = index < now->seen->first ? CKB_PURGED : index > now->seen->last ? CKB_END : CKB_OK;
    if (status != expected) {
        complain(now, "reading", index, status);
    } else if (status == CKB_PURGED && entry.index != now->seen->first) {
        verdict_set(now->verdict, "log %s: reading %llu, which is purged, names %llu as the first, not %llu",
                    log_name(now->slot), (unsigned long long)index, (unsigned long long)entry.index,
                    (unsigned long long)now->seen->first);
    } else if (status == CKB_OK) {
        check_entry(now, index, &entry);
    }
}

/* A buffer that is one byte short is said to be, and changes nothing. */
static void check_short_buffer(log_look *now, uint64_t index)
{
    ckb_log_cursor *cursor = now->world->logs.cursors[now->slot];
    const world_action *action = &now->world->table->items[now->seen->at[index % LOG_WINDOW]];
    ckb_entry entry;
    if (action->length == 0) {
        return;
    }
    int status = ckb_log_read(cursor, index, &entry, now->world->buffer, action->length - 1);
    if (status != CKB_TOOBIG || entry.length != action->length) {
        complain(now, "reading into a short buffer", index, status);
        return;
    }
    status = ckb_log_next(cursor, &entry, now->world->buffer, action->length);
    if (status == CKB_OK) {
        check_entry(now, index, &entry);
    } else {
        complain(now, "reading again", index, status);
    }
}

/* The ends from both sides, and some of the middle backwards. */
static void check_places(log_look *now)
{
    uint64_t entries = log_entries(now->seen);
    check_read(now, now->seen->last + 1);
    for (uint64_t step = 0; step < 3 && entries > 0; step++) {
        check_read(now, now->seen->last - (entries - 1) * step / 2);
    }
    if (now->seen->first > 1) {
        check_read(now, now->seen->first - 1);
    }
    if (entries > 0 && verdict_good(now->verdict)) {
        check_short_buffer(now, now->seen->last);
    }
}

/* First and last as one of the ranges allows. */
static bool in_range(const log_content *log, const log_range *range, uint32_t unknown)
{
    if (!log->exists || !range->exists) {
        return log->exists == range->exists;
    }
    return log->first == range->first && log->last >= range->lowest && log->last <= range->highest + unknown;
}

static void check_range(log_look *now, const log_target *target)
{
    char allowed[200] = "";
    size_t used = 0;
    for (uint32_t i = 0; i < target->count; i++) {
        const log_range *range = &target->ranges[i];
        if (in_range(now->seen, range, target->unknown)) {
            return;
        }
        int wrote = range->exists
                        ? snprintf(allowed + used, sizeof allowed - used, " %llu..[%llu to %llu]",
                                   (unsigned long long)range->first, (unsigned long long)range->lowest,
                                   (unsigned long long)range->highest)
                        : snprintf(allowed + used, sizeof allowed - used, " none");
        used += (size_t)wrote;
    }
    verdict_set(now->verdict, "log %s: %s%llu..%llu, allowed:%s", log_name(now->slot),
                now->seen->exists ? "" : "missing, ", (unsigned long long)now->seen->first,
                (unsigned long long)now->seen->last, allowed);
}

/* What the list of logs says; false when the log is not in it. */
static bool find_listed(log_look *now, ckb_log_info *found)
{
    ckb_log_info info;
    uint32_t cursor = 0, times = 0;
    int status;
    memset(found, 0, sizeof *found);
    while ((status = ckb_log_list(now->world->volume, &cursor, &info)) == CKB_OK) {
        if (strcmp(info.name, log_name(now->slot)) == 0) {
            *found = info;
            times++;
        }
    }
    if (status != CKB_END || times > 1) {
        verdict_set(now->verdict, "list of logs shows %s %u times, ends with %s", log_name(now->slot), times,
                    ckb_status_text(status));
    }
    return times > 0;
}

/* First and last as list and stat say. */
static void look_at_ends(log_look *now)
{
    ckb_log_info listed, info;
    test_world *world = now->world;
    now->seen->exists = find_listed(now, &listed);
    now->seen->first = now->seen->last = 0;
    int status = world->logs.open[now->slot] ? CKB_OK : world_log_open(world, now->slot);
    if (status != (now->seen->exists ? CKB_OK : CKB_NOTFOUND)) {
        char text[160];
        ckb_fault_text(&world->fault_seen, text, sizeof text);
        verdict_set(now->verdict, "log %s: open says %s (%s)", log_name(now->slot), ckb_status_text(status),
                    text);
    }
    if (!now->seen->exists || status != CKB_OK) {
        return;
    }
    ckb_log_stat(world->logs.open[now->slot], &info);
    now->seen->first = info.first;
    now->seen->last = info.last;
    if (info.first != listed.first || info.last != listed.last || info.durable > info.last ||
        info.last + 1 < info.first || info.last + 1 - info.first >= LOG_WINDOW || !info.is_open) {
        verdict_set(now->verdict, "log %s: stat says %llu..%llu (durable %llu), the list said %llu..%llu",
                    log_name(now->slot), (unsigned long long)info.first, (unsigned long long)info.last,
                    (unsigned long long)info.durable, (unsigned long long)listed.first,
                    (unsigned long long)listed.last);
    }
}

void log_check(test_world *world, const test_oracle *oracle, observation *seen, world_verdict *verdict)
{
    uint32_t there = 0;
    ckb_stat stat;
    for (uint32_t slot = 0; slot < LOG_SLOTS; slot++) {
        const log_target *target = &oracle->logs[slot];
        log_look now = {world, slot, target->at, &seen->logs[slot], verdict};
        seen->logs[slot].exists = false;
        if (slot >= world->logs.count || !verdict_good(verdict)) {
            continue;
        }
        look_at_ends(&now);
        check_range(&now, target);
        if (seen->logs[slot].exists && verdict_good(verdict)) {
            log_range range = content_range(&seen->logs[slot]);
            keep_entries(seen->logs[slot].at, &range);
            check_entries(&now);
            check_places(&now);
            there++;
        }
    }
    ckb_volume_stat(world->volume, &stat);
    if (verdict_good(verdict) && stat.logs != there) {
        verdict_set(verdict, "stat says %u logs, there are %u", stat.logs, there);
    }
}

void log_sums(const test_world *world, const observation *seen, uint64_t *entries, uint64_t *bytes)
{
    *entries = *bytes = 0;
    for (uint32_t slot = 0; slot < world->logs.count; slot++) {
        const log_content *log = &seen->logs[slot];
        *entries += log_entries(log);
        for (uint64_t i = 0; i < log_entries(log); i++) {
            *bytes += world->table->items[log->at[(log->first + i) % LOG_WINDOW]].length;
        }
    }
}

/* ------------------------------------------------------------------------------------------ >>log-random */

/* Where a log may begin: small, around 2^32, near the top, or not at all. */
static uint64_t pick_index(media_random *random)
{
    switch (media_random_below(random, 10)) {
    case 0:
        return UINT64_MAX - media_random_below(random, 2);
    case 1:
        return LOG_LAST_INDEX - media_random_below(random, 40);
    case 2:
    case 3:
        return (UINT64_C(1) << 32) - media_random_below(random, 20);
    case 4:
        return media_random_next(random) >> 8;
    default:
        return media_random_below(random, 100);
    }
}

static bool index_good(uint64_t index)
{
    return index >= 1 && index <= LOG_LAST_INDEX;
}

/* What a structural operation may answer now. */
static unsigned change_statuses(const log_content *log, int kind, uint64_t argument)
{
    bool refused = false;
    switch (kind) {
    case WORLD_LOG_CREATE:
        return WORLD_BIT(argument == 0 || index_good(argument) ? CKB_OK : CKB_INVALID);
    case WORLD_LOG_RESET:
        return WORLD_BIT(index_good(argument) ? CKB_OK : CKB_INVALID);
    case WORLD_LOG_TRUNCATE:
        refused = argument < log->last && argument + 1 < log->first;
        return WORLD_BIT(refused ? CKB_PURGED : CKB_OK);
    case WORLD_LOG_PURGE:
        refused = argument > log->first && argument > log->last + 1;
        return WORLD_BIT(refused ? CKB_END : CKB_OK);
    default:
        return WORLD_BIT(CKB_OK);
    }
}

/* First, last and what is durable, after an answer. */
static void expect_ends(test_world *world, uint32_t slot, const char *after, uint64_t durable,
                        world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    ckb_log_info info;
    if (world->logs.crowded || !world->logs.open[slot]) {
        return;
    }
    ckb_log_stat(world->logs.open[slot], &info);
    if (info.first != log->first || info.last != log->last || info.durable < durable ||
        info.durable > info.last) {
        verdict_set(verdict, "log %s after %s: %llu..%llu, durable %llu; should be %llu..%llu, durable %llu",
                    log_name(slot), after, (unsigned long long)info.first, (unsigned long long)info.last,
                    (unsigned long long)info.durable, (unsigned long long)log->first,
                    (unsigned long long)log->last, (unsigned long long)durable);
    }
}

static int log_change(test_world *world, int kind, const char *what, uint32_t slot, uint64_t argument,
                      world_verdict *verdict)
{
    unsigned allowed = change_statuses(&world->logs.newest[slot], kind, argument);
    int status = world_log_change(world, kind, slot, argument);
    verdict_status(verdict, what, slot, status, allowed);
    expect_ends(world, slot, what, 0, verdict);
    return status;
}

void log_bring_up(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    log_content *log = &world->logs.newest[slot];
    while (!log->exists && verdict_good(verdict)) {
        log_change(world, WORLD_LOG_CREATE, "create of log", slot, pick_index(random), verdict);
    }
    if (!world->logs.open[slot] && verdict_good(verdict)) {
        verdict_status(verdict, "open of log", slot, world_log_open(world, slot), WORLD_BIT(CKB_OK));
        expect_ends(world, slot, "open", 0, verdict);
    }
}

void log_make_room(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    uint64_t entries = log_entries(log);
    uint64_t first = media_random_below(random, 2) ? log->last + 1 : log->first + entries / 2;
    log_change(world, WORLD_LOG_PURGE, "purge of log", slot, first, verdict);
    world_maintain(world, 64, verdict);
}

/* Entries to append, with their memory. */
typedef struct log_batch {
    ckb_entry_data entries[LOG_MANY];
    uint8_t *memory[LOG_MANY];
    size_t count, bytes;
} log_batch;

/* Aligned for the medium in every second call, so that large entries go both ways: past the buffers and
 * through them. The same in every run of a seed. */
static void batch_add(log_batch *batch, test_world *world, media_random *random, size_t length, uint64_t kinds)
{
    uint8_t *memory = media_alloc_aligned(length + 8);
    uint8_t *data = memory + (media_random_below(random, 2) ? 0 : 8);
    size_t drawn = length < world->logs.max_entry ? length : world->logs.max_entry;
    world_payload_fill(world, random, (world_payload)media_random_below(random, kinds), data, drawn);
    memset(data + drawn, 0, length - drawn);
    batch->memory[batch->count] = memory;
    batch->entries[batch->count].data = data;
    batch->entries[batch->count].length = length;
    batch->count++;
    batch->bytes += length;
}

/* Several take room for headers too, and for what is padded whenever a buffer is written in between: whether the
 * largest fit together is the library's to say. So it is, beside other threads, how many indexes are left. */
static unsigned append_statuses(const test_world *world, uint32_t slot, const log_batch *batch)
{
    unsigned written = WORLD_BIT(CKB_OK) | WORLD_BIT(CKB_NOSPACE);
    size_t most = world->logs.max_entry;
    uint64_t indexes = LOG_LAST_INDEX - world->logs.newest[slot].last;
    if (batch->bytes > most || indexes < batch->count) {
        return WORLD_BIT(CKB_TOOBIG);
    }
    size_t padded = 64 + 2 * (size_t)world->shape.geometry.write_unit;
    size_t writes = batch->count + batch->bytes / world->shape.log.buffer_bytes + 2;
    bool fits = batch->count == 1 || batch->bytes + padded * writes <= most;
    bool surely = fits && (!world->logs.crowded || indexes > LOG_CROWD);
    return surely ? written : written | WORLD_BIT(CKB_TOOBIG);
}

/* No room although segments are free that nobody has a claim on? */
static void expect_full(test_world *world, world_verdict *verdict)
{
    ckb_stat stat;
    uint32_t reserve = world->shape.config.reserve_segments;
    reserve = reserve ? reserve : world->shape.geometry.segment_count < 12 ? 1 : 2;
    ckb_volume_stat(world->volume, &stat);
    if (!world->logs.crowded && stat.segments_free > reserve + 1) {
        verdict_set(verdict, "append finds no space, %u segments are free", stat.segments_free);
    }
}

/* Appends the batch and frees its memory. */
static int batch_append(log_batch *batch, test_world *world, uint32_t slot, unsigned flags,
                        world_verdict *verdict)
{
    unsigned allowed = append_statuses(world, slot, batch);
    int status = world_log_append(world, slot, batch->entries, batch->count, flags, verdict);
    verdict_status(verdict, "append to log", slot, status, allowed);
    if (status == CKB_NOSPACE) {
        __atomic_fetch_add(&world->logs.refused, 1, __ATOMIC_RELAXED);
        expect_full(world, verdict);
    }
    bool durable = status == CKB_OK && (flags & CKB_DURABLE);
    expect_ends(world, slot, "append", durable ? world->logs.newest[slot].last : 0, verdict);
    for (size_t i = 0; i < batch->count; i++) {
        free(batch->memory[i]);
    }
    return status;
}

int log_random_append(test_world *world, media_random *random, uint32_t slot, uint64_t kinds,
                      world_verdict *verdict)
{
    log_batch batch = {.count = 0};
    uint64_t most = world->logs.max_entry;
    size_t count = media_random_below(random, 8) ? 1 : 2 + (size_t)media_random_below(random, LOG_MANY - 1);
    while (batch.count < count) {
        size_t length = world_payload_length(world, random, count > 1 ? most / 4 : most);
        if (media_random_below(random, 60) == 0) {
            length = (size_t)most + 1;
        }
        batch_add(&batch, world, random, length, kinds);
    }
    return batch_append(&batch, world, slot, media_random_below(random, 4) == 0 ? CKB_DURABLE : 0, verdict);
}

void log_random_commit(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    uint64_t index = log->last + 1 - media_random_below(random, media_random_below(random, 2) ? 3 : 20);
    bool beyond = index > log->last;
    int status = world_log_commit(world, slot, index);
    unsigned sooner = beyond && world->logs.crowded ? WORLD_BIT(CKB_OK) : 0; /* others append meanwhile */
    verdict_status(verdict, "commit of log", slot, status, sooner | WORLD_BIT(beyond ? CKB_END : CKB_OK));
    expect_ends(world, slot, "commit", !beyond && index >= log->first ? index : 0, verdict);
}

void log_random_read(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    log_content *log = &world->logs.newest[slot];
    log_look now = {world, slot, log->at, log, verdict};
    uint64_t entries = log_entries(log);
    uint64_t index = log->first + media_random_below(random, entries + 2);
    world_log_believe(world, slot);
    check_read(&now, index - media_random_below(random, 2));
    if (entries > 0 && media_random_below(random, 4) == 0) {
        check_short_buffer(&now, log->first + media_random_below(random, entries));
    }
}

/* Appends entries as long as those that were cut off, or a little shorter or longer, so that what they leave
 * behind fits seamlessly. */
static void append_in_place(test_world *world, media_random *random, uint32_t slot, const size_t *lengths,
                            uint64_t count, world_verdict *verdict)
{
    for (uint64_t i = 0; i < count && verdict_good(verdict); i++) {
        log_batch batch = {.count = 0};
        size_t length = lengths[i] + (size_t)media_random_below(random, 3);
        length -= length > 0 && media_random_below(random, 2);
        length = length > world->logs.max_entry ? world->logs.max_entry : length;
        batch_add(&batch, world, random, length, WORLD_PAYLOAD_COUNT);
        batch_append(&batch, world, slot, media_random_below(random, 2) ? CKB_DURABLE : 0, verdict);
    }
}

static void random_truncate(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    uint64_t entries = log_entries(log);
    uint64_t dice = media_random_below(random, 16);
    size_t lengths[3];
    uint64_t cut = 0;
    uint64_t kept = dice == 0   ? log->first - 1
                    : dice == 1 ? log->first - 2
                    : dice == 2 ? log->last + media_random_below(random, 2)
                                : log->last - media_random_below(random, 1 + (entries < 8 ? entries : 8));
    for (uint64_t index = kept + 1; index <= log->last && index >= log->first && cut < 3; index++) {
        lengths[cut++] = world->table->items[log->at[index % LOG_WINDOW]].length;
    }
    int status = log_change(world, WORLD_LOG_TRUNCATE, "truncate of log", slot, kept, verdict);
    if (status == CKB_OK && media_random_below(random, 2)) {
        append_in_place(world, random, slot, lengths, cut, verdict);
    }
}

static void random_purge(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    uint64_t dice = media_random_below(random, 16);
    uint64_t first = dice == 0   ? log->last + 1
                     : dice == 1 ? log->last + 2
                     : dice == 2 ? log->first - media_random_below(random, 2)
                                 : log->first + media_random_below(random, log_entries(log) + 1);
    log_change(world, WORLD_LOG_PURGE, "purge of log", slot, first, verdict);
}

static void random_delete(test_world *world, uint32_t slot, world_verdict *verdict)
{
    int status = ckb_log_delete(world->volume, log_name(slot));
    verdict_status(verdict, "delete of open log", slot, status, WORLD_BIT(CKB_BUSY));
    verdict_status(verdict, "close of log", slot, world_log_close(world, slot), WORLD_BIT(CKB_OK));
    log_change(world, WORLD_LOG_DELETE, "delete of log", slot, 0, verdict);
}

void log_expect_whole(test_world *world, uint32_t slot, world_verdict *verdict)
{
    const log_content *log = &world->logs.newest[slot];
    for (uint64_t i = 0; i < log_entries(log); i++) {
        if (log->at[(log->first + i) % LOG_WINDOW] == LOG_UNKNOWN) {
            verdict_set(verdict, "log %s of %llu..%llu: nobody was given %llu", log_name(slot),
                        (unsigned long long)log->first, (unsigned long long)log->last,
                        (unsigned long long)(log->first + i));
        }
    }
    expect_ends(world, slot, "work by several threads", 0, verdict);
}

void log_random_step(test_world *world, media_random *random, uint32_t slot, world_verdict *verdict)
{
    log_bring_up(world, random, slot, verdict);
    uint64_t dice = media_random_below(random, 1000);
    if (!verdict_good(verdict)) {
        return;
    }
    if (log_entries(&world->logs.newest[slot]) > LOG_CROWD) {
        log_make_room(world, random, slot, verdict);
    } else if (dice < 600) {
        int status = log_random_append(world, random, slot, WORLD_PAYLOAD_COUNT, verdict);
        if (status == CKB_NOSPACE && !world->logs.crowded && media_random_below(random, 3) == 0) {
            world_make_room(world, random, verdict);
        } else if (status == CKB_NOSPACE) {
            log_make_room(world, random, slot, verdict);
        } else if (status == CKB_TOOBIG && world->logs.newest[slot].last == LOG_LAST_INDEX) {
            log_change(world, WORLD_LOG_RESET, "reset of log", slot, 1 + media_random_below(random, 50),
                       verdict);
        }
    } else if (dice < 690) {
        log_random_commit(world, random, slot, verdict);
    } else if (dice < 750) {
        log_random_read(world, random, slot, verdict);
    } else if (dice < 840) {
        random_truncate(world, random, slot, verdict);
    } else if (dice < 910) {
        random_purge(world, random, slot, verdict);
    } else if (dice < 925) {
        log_change(world, WORLD_LOG_RESET, "reset of log", slot, pick_index(random), verdict);
    } else if (dice < 935) {
        random_delete(world, slot, verdict);
    } else if (dice < 955) {
        verdict_status(verdict, "close of log", slot, world_log_close(world, slot), WORLD_BIT(CKB_OK));
    } else {
        world_maintain(world, 1 + (uint32_t)media_random_below(random, 12), verdict);
    }
}
