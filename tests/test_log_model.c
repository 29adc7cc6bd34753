/* Seeded random operations on logs against a plain model in memory, on RAM, on a directory, on an image file and on
 * a loop device; and the same list on RAM beside each of these, answer by answer. The volume is small, so that
 * it is often full.
 *
 * CKB_MODEL_SEED sets another seed, CKB_MODEL_OPERATIONS another number of operations. A failure prints an id;
 * CKB_REPLAY=id runs that seed up to that operation. */
#define _GNU_SOURCE
#include "loop.h"
#include "media.h"
#include "platform.h"
#include "test.h"

#include <inttypes.h>
#include <stdarg.h>

enum { LOGS = 3, HOLD = 8192, BATCH = 5, LOOK_EVERY = 3000, REMOUNT_EVERY = 500, SEGMENTS = 24, RESERVE = 2 };

static const char *const names[LOGS] = {"first", "second", "a-name-of-16-byt"};

typedef struct model_entry {
    uint64_t term, seed;
    uint32_t length;
} model_entry;

/* A log as it must be. `next` of the cursors is the index they read next. */
typedef struct model_log {
    bool exists;
    uint64_t first, next, durable;
    model_entry entries[HOLD];
    ckb_log *log;
    ckb_log_cursor *cursors[2]; /* the second one is for salvage */
    uint64_t at[2];
    void *memory, *cursor_memory[2];
} model_log;

/* What one operation answered. */
typedef struct answer {
    int kind, status;
    uint64_t index, first, last, durable, bytes;
    uint32_t segments, free;
} answer;

typedef struct model {
    const char *name;
    uint64_t seed, operations; /* to do */
    uint32_t segment_bytes, segment_count, unit;
    bool sealed_batches;
    media_ram ram;
    media_trace trace;
    ckb_config config;
    ckb_log_config log_config;
    void *memory, *reader_memory;
    ckb_volume *volume;
    ckb_reader *reader;
    model_log logs[LOGS];
    uint8_t *buffer, *expected;
    uint32_t max_entry;
    media_random random;
    answer *answers, now;
    uint64_t done, full, kills, remounts, looks;
    char error[300];
} model;

__attribute__((format(printf, 2, 3))) static void fail(model *m, const char *format, ...)
{
    va_list list;
    if (m->error[0])
        return;
    va_start(list, format);
    vsnprintf(m->error, sizeof m->error, format, list);
    va_end(list);
}

static uint64_t below(model *m, uint64_t limit)
{
    return media_random_below(&m->random, limit);
}

static void expect(model *m, const char *what, uint64_t index, int status, int expected)
{
    m->now.status = status;
    m->now.index = index;
    if (status != expected)
        fail(m, "%s %" PRIu64 " says %s, expected %s", what, index, ckb_status_text(status),
             ckb_status_text(expected));
}

/* ---------------------------------------------------------------------------------------------- >>reading */

static void fill(const model_entry *e, uint8_t *bytes)
{
    test_fill(bytes, e->length, e->seed);
}

/* Holds an answer of a cursor against the model; where the cursor stands next. */
static uint64_t expect_entry(model *m, const model_log *l, uint64_t index, int status, const ckb_entry *got,
                             size_t room)
{
    const model_entry *e = &l->entries[index % HOLD];
    if (index < l->first || index >= l->next) {
        expect(m, "read of", index, status, index < l->first ? CKB_PURGED : CKB_END);
        if (status == CKB_PURGED && got->index != l->first)
            fail(m, "purged: first is %" PRIu64 ", the answer %" PRIu64, l->first, got->index);
        return index;
    }
    expect(m, "read of", index, status, e->length > room ? CKB_TOOBIG : CKB_OK);
    if (got->index != index || got->length != e->length || got->term != e->term)
        fail(m, "entry %" PRIu64 " is %" PRIu64 " of %zu bytes, expected %u", index, got->index, got->length,
             e->length);
    fill(e, m->expected);
    if (status == CKB_OK && memcmp(m->buffer, m->expected, e->length) != 0)
        fail(m, "entry %" PRIu64 " holds other bytes", index);
    return status == CKB_OK ? index + 1 : index;
}

static void read_next(model *m, model_log *l, int cursor)
{
    ckb_entry got;
    size_t room = below(m, 20) ? m->max_entry : (size_t)below(m, 40);
    int status = ckb_log_next(l->cursors[cursor], &got, m->buffer, room);
    l->at[cursor] = expect_entry(m, l, l->at[cursor], status, &got, room);
}

static void seek(model *m, model_log *l, int cursor)
{
    uint64_t span = l->next - l->first;
    l->at[cursor] = l->first - (l->first > 3 ? 3 : 0) + below(m, span + 6);
    if (l->at[cursor] < l->first - 3)
        l->at[cursor] = l->first; /* beyond 2^64 */
    ckb_log_seek(l->cursors[cursor], l->at[cursor]);
    read_next(m, l, cursor);
}

/* All entries in order, and none beside them. */
static void look_at(model *m, model_log *l)
{
    ckb_entry got;
    ckb_log_seek(l->cursors[0], l->first);
    for (uint64_t index = l->first; index < l->next && !m->error[0]; index++) {
        int status = ckb_log_next(l->cursors[0], &got, m->buffer, m->max_entry);
        expect_entry(m, l, index, status, &got, m->max_entry);
    }
    expect(m, "the end", l->next, ckb_log_next(l->cursors[0], &got, m->buffer, m->max_entry), CKB_END);
    l->at[0] = l->next;
}

static int show_finding(void *context, const ckb_finding *finding)
{
    char text[200];
    ckb_fault_text(&finding->fault, text, sizeof text);
    fail(context, "check: %s%s%s", finding->log, finding->log[0] ? ": " : "", text);
    return 0;
}

static void look_at_all(model *m)
{
    ckb_check_report report;
    uint64_t entries = 0;
    for (int i = 0; i < LOGS; i++) {
        entries += m->logs[i].exists ? m->logs[i].next - m->logs[i].first : 0;
        if (m->logs[i].log)
            look_at(m, &m->logs[i]);
    }
    expect(m, "check", 0, ckb_check(m->volume, m->reader, show_finding, m, &report), CKB_OK);
    if (report.entries != entries)
        fail(m, "check saw %" PRIu64 " entries of %" PRIu64, report.entries, entries);
    m->looks++;
}

/* -------------------------------------------------------------------------------------------- >>appending */

static uint32_t some_length(model *m)
{
    switch (below(m, 16)) {
    case 0:
        return 0;
    case 1:
        return (uint32_t)below(m, m->max_entry + 1);
    case 2:
        return m->max_entry + (uint32_t)below(m, 2);
    default:
        return (uint32_t)below(m, 200);
    }
}

/* Nothing is said of a full volume but that it is full. */
static void expect_full(model *m, const model_log *l)
{
    ckb_stat stat;
    ckb_log_info info;
    ckb_volume_stat(m->volume, &stat);
    ckb_log_stat(l->log, &info);
    if (stat.segments_free + stat.segments_prepared > RESERVE && info.segments < m->log_config.max_segments)
        fail(m, "no space with %u segments left", stat.segments_free + stat.segments_prepared);
    m->full++;
}

static void append_some(model *m, model_log *l)
{
    ckb_entry_data entries[BATCH];
    model_entry drawn[BATCH];
    size_t count = below(m, 5) ? 1 : 1 + (size_t)below(m, BATCH);
    unsigned flags = below(m, 6) ? 0 : CKB_DURABLE;
    uint64_t first = 0, sum = 0, most = 0;
    uint8_t *bytes = m->buffer;
    for (size_t i = 0; i < count; i++) {
        drawn[i] = (model_entry){media_random_next(&m->random), m->done * 8 + i, some_length(m)};
        most = drawn[i].length > most ? drawn[i].length : most;
        sum += drawn[i].length + 40;
        fill(&drawn[i], bytes);
        entries[i] = (ckb_entry_data){drawn[i].term, bytes, drawn[i].length};
        bytes += drawn[i].length;
    }
    int status = ckb_log_append_many(l->log, entries, count, flags, &first);
    m->now.status = status;
    if (status == CKB_NOSPACE) {
        expect_full(m, l);
    } else if (most > m->max_entry || count > UINT64_MAX - l->next || status == CKB_TOOBIG) {
        bool may = most > m->max_entry || count > UINT64_MAX - l->next || (count > 1 && sum > m->max_entry / 3);
        expect(m, "append at", l->next, status, may ? CKB_TOOBIG : CKB_OK);
    } else {
        expect(m, "append at", l->next, status, CKB_OK);
        if (first != l->next)
            fail(m, "append got index %" PRIu64 ", expected %" PRIu64, first, l->next);
        for (size_t i = 0; i < count; i++)
            l->entries[l->next++ % HOLD] = drawn[i];
        l->durable = flags ? l->next - 1 : l->durable;
    }
}

static void commit_some(model *m, model_log *l)
{
    uint64_t index = l->first + below(m, l->next - l->first + 1);
    expect(m, "commit of", index, ckb_log_commit(l->log, index), index >= l->next ? CKB_END : CKB_OK);
    if (index < l->next && index > l->durable)
        l->durable = index;
}

/* --------------------------------------------------------------------------------------------- >>dropping */

static void purge_some(model *m, model_log *l)
{
    uint64_t span = below(m, 4) ? 10 : l->next - l->first + 5;
    uint64_t index = l->first - (l->first > 2 ? 2 : 0) + below(m, span);
    if (below(m, 16) == 0)
        index = l->next;
    bool beyond = index > l->next;
    expect(m, "purge to", index, ckb_log_purge(l->log, index), beyond ? CKB_END : CKB_OK);
    if (!beyond && index > l->first)
        l->first = index;
    l->durable = l->durable < l->first - 1 ? l->first - 1 : l->durable;
}

static void truncate_some(model *m, model_log *l)
{
    uint64_t back = below(m, 8) ? below(m, 8) : below(m, l->next - l->first + 4);
    if (back > l->next - 1)
        back = 0;
    uint64_t kept = l->next - 1 - back + (back == 0 ? below(m, 3) : 0);
    bool purged = kept < l->first - 1;
    expect(m, "truncate to", kept, ckb_log_truncate(l->log, kept), purged ? CKB_PURGED : CKB_OK);
    if (!purged && kept < l->next - 1) {
        l->next = kept + 1;
        l->durable = kept;
    }
}

static uint64_t some_index(model *m)
{
    switch (below(m, 4)) {
    case 0:
        return UINT64_C(0xFFFFFFFF) - below(m, 300);
    case 1:
        return UINT64_MAX - 2 - below(m, 300);
    default:
        return 1 + below(m, 1000);
    }
}

static void reset(model *m, model_log *l)
{
    uint64_t next = below(m, 20) ? some_index(m) : below(m, 2) ? 0 : UINT64_MAX;
    bool valid = next != 0 && next != UINT64_MAX;
    expect(m, "reset to", next, ckb_log_reset(l->log, next), valid ? CKB_OK : CKB_INVALID);
    if (valid) {
        l->first = l->next = next;
        l->durable = next - 1;
    }
}

/* -------------------------------------------------------------------------------------- >>logs and mounts */

static void open_log(model *m, int i)
{
    model_log *l = &m->logs[i];
    ckb_fault fault;
    size_t bytes = ckb_log_memory(&m->trace.below.geometry, &m->log_config);
    expect(m, "open of", (uint64_t)i,
           ckb_log_open(m->volume, names[i], &m->log_config, l->memory, bytes, &l->log, &fault),
           l->exists ? CKB_OK : CKB_NOTFOUND);
    bytes = ckb_log_cursor_memory(&m->trace.below.geometry, 0);
    for (unsigned c = 0; c < 2 && l->log; c++) {
        expect(m, "cursor", c,
               ckb_log_cursor_open(l->log, c ? CKB_SALVAGE : 0, l->cursor_memory[c], bytes, &l->cursors[c]),
               CKB_OK);
        l->at[c] = l->first;
    }
}

static void close_log(model *m, model_log *l)
{
    expect(m, "close", 0, ckb_log_close(l->log), CKB_OK);
    l->log = NULL;
    l->durable = l->next - 1;
}

static void create_or_delete(model *m, int i)
{
    model_log *l = &m->logs[i];
    if (l->log && below(m, 2)) {
        expect(m, "delete while open", 0, ckb_log_delete(m->volume, names[i]), CKB_BUSY);
        close_log(m, l);
    } else if (l->exists) {
        if (l->log)
            close_log(m, l);
        expect(m, "delete", 0, ckb_log_delete(m->volume, names[i]), CKB_OK);
        l->exists = false;
    } else {
        uint64_t first = below(m, 2) ? 0 : some_index(m);
        expect(m, "delete of none", 0, ckb_log_delete(m->volume, names[i]), CKB_NOTFOUND);
        expect(m, "create", first, ckb_log_create(m->volume, names[i], first), CKB_OK);
        expect(m, "create again", first, ckb_log_create(m->volume, names[i], first), CKB_EXISTS);
        l->exists = true;
        l->first = l->next = first ? first : 1;
        l->durable = l->next - 1;
    }
}

static void mount(model *m)
{
    ckb_medium medium = media_trace_medium(&m->trace);
    size_t bytes = ckb_volume_memory(&medium.geometry, &m->config);
    ckb_stat stat;
    ckb_fault fault;
    char text[200];
    int status = ckb_mount(&medium, &m->config, m->memory, bytes, &m->volume, &fault);
    ckb_fault_text(&fault, text, sizeof text);
    if (status != CKB_OK) {
        fail(m, "mount says %s: %s", ckb_status_text(status), text);
        return;
    }
    ckb_volume_stat(m->volume, &stat);
    ckb_volume_fault(m->volume, NULL, &fault);
    ckb_fault_text(&fault, text, sizeof text);
    if (stat.damage > 0)
        fail(m, "mount found damage: %s", text);
    expect(m, "reader", 0,
           ckb_reader_open(m->volume, m->reader_memory, ckb_reader_memory(&medium.geometry, 0), &m->reader),
           CKB_OK);
}

/* After a kill the newest entries may be missing, down to those that were made durable. */
static void expect_prefix(model *m, model_log *l)
{
    ckb_log_info info;
    ckb_log_stat(l->log, &info);
    if (info.first != l->first || info.last < l->durable || info.last >= l->next)
        fail(m,
             "after a kill %" PRIu64 " to %" PRIu64 " are there, of %" PRIu64 " to %" PRIu64
             ", durable to %" PRIu64,
             info.first, info.last, l->first, l->next - 1, l->durable);
    l->next = info.last + 1;
}

static void remount(model *m, bool kill)
{
    if (!kill)
        expect(m, "unmount", 0, ckb_unmount(m->volume), CKB_OK);
    mount(m);
    for (int i = 0; i < LOGS && !m->error[0]; i++) {
        model_log *l = &m->logs[i];
        if (!kill)
            l->durable = l->next - 1;
        open_log(m, i);
        if (l->log && kill)
            expect_prefix(m, l);
    }
    m->kills += kill;
    m->remounts += !kill;
}

/* ---------------------------------------------------------------------------------------------- >>running */

/* What is known of a log must be so. */
static void expect_info(model *m, const model_log *l)
{
    ckb_log_info info;
    ckb_stat stat;
    ckb_log_stat(l->log, &info);
    ckb_volume_stat(m->volume, &stat);
    if (info.first != l->first || info.last != l->next - 1)
        fail(m, "the log goes from %" PRIu64 " to %" PRIu64 ", expected %" PRIu64 " to %" PRIu64, info.first,
             info.last, l->first, l->next - 1);
    if (info.durable > info.last || info.durable + 1 < info.first)
        fail(m, "durable to %" PRIu64 " of %" PRIu64 " to %" PRIu64, info.durable, info.first, info.last);
    m->now.first = info.first;
    m->now.last = info.last;
    m->now.durable = info.durable;
    m->now.bytes = info.bytes;
    m->now.segments = info.segments;
    m->now.free = stat.segments_free;
}

/* Where no segment can be prepared nothing is wrong. */
static void maintain(model *m)
{
    int status = ckb_maintain(m->volume, 1 + (uint32_t)below(m, 6), NULL);
    expect(m, "maintain", 0, status, status == CKB_NOSPACE ? CKB_NOSPACE : CKB_OK);
}

static void step_in_log(model *m, model_log *l, uint64_t dice)
{
    if (l->next - l->first > HOLD - 2 * BATCH)
        purge_some(m, l);
    else if (dice < 450)
        append_some(m, l);
    else if (dice < 500)
        commit_some(m, l);
    else if (dice < 800)
        read_next(m, l, (int)below(m, 2));
    else if (dice < 900)
        seek(m, l, (int)below(m, 2));
    else if (dice < 940)
        purge_some(m, l);
    else if (dice < 980)
        truncate_some(m, l);
    else if (dice < 982)
        reset(m, l);
    else
        maintain(m);
}

static void step(model *m)
{
    int i = (int)below(m, LOGS);
    model_log *l = &m->logs[i];
    uint64_t dice = below(m, 1000);
    memset(&m->now, 0, sizeof m->now);
    m->now.kind = (int)dice;
    if (!l->exists || dice >= 999)
        create_or_delete(m, i);
    else if (!l->log)
        open_log(m, i);
    else if (dice >= 996)
        close_log(m, l);
    else
        step_in_log(m, l, dice);
    if (l->log && !m->error[0])
        expect_info(m, l);
    if (m->answers)
        m->answers[m->done] = m->now;
    m->done++;
}

static void model_open(model *m, const ckb_medium *below_it)
{
    ckb_medium medium = *below_it;
    ckb_format_config format = {{1, 2, 3, 4}, 0, LOGS};
    m->config =
        (ckb_config){.max_logs = LOGS, .max_containers = 4, .max_chunks = 16, .reserve_segments = RESERVE};
    m->log_config = (ckb_log_config){.buffer_bytes = medium.geometry.segment_bytes / 4,
                                     .max_segments = medium.geometry.segment_count / 2};
    media_trace_init(&m->trace, &medium);
    medium = media_trace_medium(&m->trace);
    m->random = media_random_from(m->seed, 78, 0);
    m->max_entry = ckb_max_entry_bytes(&medium.geometry);
    m->buffer = media_alloc_aligned((size_t)(m->max_entry + 1) * BATCH);
    m->expected = media_alloc(m->max_entry + 1);
    m->memory = media_alloc(ckb_volume_memory(&medium.geometry, &m->config));
    m->reader_memory = media_alloc(ckb_reader_memory(&medium.geometry, 0));
    for (int i = 0; i < LOGS; i++) {
        m->logs[i].memory = media_alloc(ckb_log_memory(&medium.geometry, &m->log_config));
        for (int c = 0; c < 2; c++)
            m->logs[i].cursor_memory[c] = media_alloc(ckb_log_cursor_memory(&medium.geometry, 0));
    }
    size_t bytes = ckb_format_memory(&medium.geometry);
    void *memory = media_alloc(bytes);
    expect(m, "format", 0, ckb_format(&medium, &format, memory, bytes, NULL), CKB_OK);
    free(memory);
    mount(m);
}

static void model_close(model *m)
{
    media_trace_free(&m->trace);
    for (int i = 0; i < LOGS; i++) {
        free(m->logs[i].memory);
        free(m->logs[i].cursor_memory[0]);
        free(m->logs[i].cursor_memory[1]);
    }
    free(m->buffer);
    free(m->expected);
    free(m->memory);
    free(m->reader_memory);
}

static void run_model(model *m, const ckb_medium *medium)
{
    uint64_t next_mount = REMOUNT_EVERY, next_look = LOOK_EVERY;
    model_open(m, medium);
    while (m->done < m->operations && !m->error[0]) {
        step(m);
        if (m->done >= next_mount && !m->error[0]) {
            remount(m, below(m, 3) == 0);
            next_mount = m->done + 1 + below(m, 2 * REMOUNT_EVERY);
        }
        if (m->done >= next_look && !m->error[0]) {
            look_at_all(m);
            next_look = m->done + LOOK_EVERY;
        }
    }
    if (!m->error[0])
        remount(m, false);
    if (!m->error[0])
        look_at_all(m);
    printf("%s seed %" PRIu64 ": %" PRIu64 " operations, %" PRIu64 " appends without room, %" PRIu64
           " kills, %" PRIu64 " remounts, %" PRIu64 " full comparisons\n",
           m->name, m->seed, m->done, m->full, m->kills, m->remounts, m->looks);
    cr_expect_str_eq(m->error, "", "%s\n    CKB_REPLAY='test=%s/seed=%" PRIu64 "/operation=%" PRIu64 "'",
                     m->error, m->name, m->seed, m->done);
    cr_expect_eq(m->trace.violations, 0, "%s", m->trace.message);
    model_close(m);
}

static bool model_settings(model *m)
{
    const char *id = getenv("CKB_REPLAY");
    const char *seed = getenv("CKB_MODEL_SEED");
    const char *operations = getenv("CKB_MODEL_OPERATIONS");
    char wanted[64];
    snprintf(wanted, sizeof wanted, "test=%s/", m->name);
    if (id)
        return strncmp(id, wanted, strlen(wanted)) == 0 && media_id_number(id, "seed", &m->seed) &&
               media_id_number(id, "operation", &m->operations);
    m->seed = seed ? strtoull(seed, NULL, 10) : m->seed;
    m->operations = operations ? strtoull(operations, NULL, 10) : m->operations;
    return true;
}

static void run_on_ram(model *m, const ckb_geometry *geometry)
{
    media_ram ram;
    media_ram_init(&ram, geometry);
    ckb_medium medium = media_ram_medium(&ram);
    run_model(m, &medium);
    media_ram_free(&ram);
}

Test(log_model, agrees_with_a_plain_model_in_segments_without_seal)
{
    static model m = {.name = "small", .seed = 21, .operations = 120000};
    const ckb_geometry geometry = {2048, 32, 8, 64, 8, 0};
    if (model_settings(&m))
        run_on_ram(&m, &geometry);
}

Test(log_model, agrees_with_a_plain_model_in_segments_with_seal)
{
    static model m = {.name = "sealed", .seed = 22, .operations = 120000};
    const ckb_geometry geometry = {4096, 20, 64, 64, 64, 0};
    if (model_settings(&m))
        run_on_ram(&m, &geometry);
}

Test(log_model, agrees_with_a_plain_model_in_units_of_eight_bytes)
{
    static model m = {.name = "tiny", .seed = 23, .operations = 120000};
    const ckb_geometry geometry = {1024, 48, 1, 8, 1, 0};
    if (model_settings(&m))
        run_on_ram(&m, &geometry);
}

/* ---------------------------------------------------------------------------------------------- >>targets */

static void compare_answers(const model *a, const model *b)
{
    for (uint64_t i = 0; i < a->done && i < b->done; i++) {
        const answer *x = &a->answers[i], *y = &b->answers[i];
        cr_assert(memcmp(x, y, sizeof *x) == 0,
                  "operation %" PRIu64 " (%d): on RAM %s, %" PRIu64 " to %" PRIu64 "; on %s %s, %" PRIu64
                  " to %" PRIu64,
                  i, x->kind, ckb_status_text(x->status), x->first, x->last, b->name,
                  ckb_status_text(y->status), y->first, y->last);
    }
    cr_assert_eq(a->done, b->done);
}

static void open_target(ckb_target *target, const char *text)
{
    ckb_target_options options = {.create = true,
                                  .destroy = true,
                                  .buffered = true,
                                  .segment_bytes = 65536,
                                  .size_bytes = SEGMENTS * 65536};
    cr_assert_eq(ckb_target_open(text, &options, target), CKB_OK, "%s", target->error);
}

/* The list of operations on a target and on RAM of the same geometry. */
static void run_on_target(model *m, ckb_target *target)
{
    static model beside = {.name = "beside"};
    beside.seed = m->seed;
    beside.operations = m->operations;
    beside.answers = calloc(m->operations, sizeof(answer));
    m->answers = calloc(m->operations, sizeof(answer));
    run_on_ram(&beside, &target->medium.geometry);
    run_model(m, &target->medium);
    compare_answers(&beside, m);
    free(beside.answers);
    free(m->answers);
    cr_expect_eq(ckb_target_close(target), CKB_OK, "%s", target->error);
}

Test(log_model, gives_the_answers_of_ram_on_a_directory)
{
    static model m = {.name = "directory", .seed = 24, .operations = 20000};
    static ckb_target target;
    char path[TEST_PATH_BYTES];
    if (model_settings(&m)) {
        test_directory_make(path);
        open_target(&target, path);
        run_on_target(&m, &target);
        test_tree_remove(path);
    }
}

Test(log_model, gives_the_answers_of_ram_on_an_image_file)
{
    static model m = {.name = "image", .seed = 24, .operations = 20000};
    static ckb_target target;
    char path[TEST_PATH_BYTES], text[TEST_PATH_BYTES + 64];
    if (model_settings(&m)) {
        test_directory_make(path);
        snprintf(text, sizeof text, "file:%s/image:%d", path, SEGMENTS * 65536);
        open_target(&target, text);
        run_on_target(&m, &target);
        test_tree_remove(path);
    }
}

Test(log_model, gives_the_answers_of_ram_on_a_loop_device)
{
    static model m = {.name = "loop", .seed = 24, .operations = 20000};
    static ckb_target target;
    char path[TEST_PATH_BYTES], backing[TEST_PATH_BYTES + 16];
    loop device;
    if (!model_settings(&m))
        return;
    test_directory_make(path);
    snprintf(backing, sizeof backing, "%s/backing", path);
    loop_make_of(&device, backing, SEGMENTS * 65536, 512);
    open_target(&target, device.path);
    run_on_target(&m, &target);
    test_tree_remove(path);
}
