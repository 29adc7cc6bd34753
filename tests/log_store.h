/* Logs of a volume in memory: known entries, and sentences about what can be read of them. */
#ifndef LOG_STORE_H
#define LOG_STORE_H

#include "store.h"

#include <stdarg.h>

enum { ENTRY_BYTES_MAX = 200, TEXT_BYTES = 4000 };

/* An open log with a cursor that stops at damage and one that goes on behind it. */
typedef struct log_handle {
    store *s;
    ckb_log *log;
    ckb_log_cursor *plain, *salvage;
    void *memory, *plain_memory, *salvage_memory;
    size_t bytes, cursor_bytes;
    uint64_t salt; /* of the bytes appended from now on */
    ckb_fault fault;
} log_handle;

/* ---------------------------------------------------------------------------------------------- >>open */

static inline store *log_store_make(uint64_t segment_bytes, uint32_t segments, uint32_t unit)
{
    store *s = store_make(segment_bytes, segments, unit, NULL);
    cr_assert_eq(store_format(s), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    return s;
}

static inline int log_open_with(log_handle *l, const char *name, const ckb_log_config *config)
{
    const ckb_geometry *g = &l->s->medium.geometry;
    size_t bytes = ckb_log_memory(g, config);
    if (bytes > l->bytes) {
        free(l->memory);
        l->memory = malloc(bytes);
        l->bytes = bytes;
    }
    int status = ckb_log_open(l->s->volume, name, config, l->memory, bytes, &l->log, &l->fault);
    if (status != CKB_OK)
        return status;
    cr_assert_eq(ckb_log_cursor_open(l->log, 0, l->plain_memory, l->cursor_bytes, &l->plain), CKB_OK);
    cr_assert_eq(ckb_log_cursor_open(l->log, CKB_SALVAGE, l->salvage_memory, l->cursor_bytes, &l->salvage),
                 CKB_OK);
    return CKB_OK;
}

static inline int log_open(log_handle *l, const char *name)
{
    return log_open_with(l, name, NULL);
}

static inline log_handle *log_handle_make(store *s)
{
    log_handle *l = calloc(1, sizeof(*l));
    l->s = s;
    l->cursor_bytes = ckb_log_cursor_memory(&s->medium.geometry, 0);
    l->plain_memory = malloc(l->cursor_bytes);
    l->salvage_memory = malloc(l->cursor_bytes);
    return l;
}

/* Creates the log and opens it. */
static inline log_handle *log_new(store *s, const char *name, uint64_t first)
{
    log_handle *l = log_handle_make(s);
    cr_assert_eq(ckb_log_create(s->volume, name, first), CKB_OK);
    cr_assert_eq(log_open(l, name), CKB_OK);
    return l;
}

static inline void log_handle_free(log_handle *l)
{
    free(l->memory);
    free(l->plain_memory);
    free(l->salvage_memory);
    free(l);
}

/* Mounts as after a crash and opens the log again. */
static inline int log_crash(log_handle *l, const char *name)
{
    cr_assert_eq(store_mount(l->s), CKB_OK);
    return log_open(l, name);
}

/* The same after a clean end. */
static inline int log_remount(log_handle *l, const char *name)
{
    cr_assert_eq(ckb_unmount(l->s->volume), CKB_OK);
    return log_crash(l, name);
}

static inline ckb_log_info info_of(log_handle *l)
{
    ckb_log_info info;
    ckb_log_stat(l->log, &info);
    return info;
}

/* ------------------------------------------------------------------------------------------- >>entries */

static inline size_t entry_length(uint64_t index)
{
    return (size_t)(index * 37 % 150);
}

static inline uint64_t entry_term(uint64_t index, uint64_t salt)
{
    return index * 1000 + salt;
}

static inline void entry_fill(uint8_t bytes[ENTRY_BYTES_MAX], uint64_t index, uint64_t salt)
{
    test_fill(bytes, entry_length(index), index * 1000 + salt);
}

/* Appends the entries from `from` to `to`, which must be the next ones. */
static inline void append(log_handle *l, uint64_t from, uint64_t to)
{
    uint8_t bytes[ENTRY_BYTES_MAX];
    for (uint64_t index = from; index <= to; index++) {
        uint64_t got = 0;
        entry_fill(bytes, index, l->salt);
        int status = ckb_log_append(l->log, entry_term(index, l->salt), bytes, entry_length(index), 0, &got);
        cr_assert_eq(status, CKB_OK, "append of %llu: %s", (unsigned long long)index, ckb_status_text(status));
        cr_assert_eq(got, index, "got index %llu, not %llu", (unsigned long long)got,
                     (unsigned long long)index);
    }
}

static inline void commit(log_handle *l)
{
    ckb_log_info info = info_of(l);
    cr_assert_eq(ckb_log_commit(l->log, info.last), CKB_OK);
}

static inline void append_durably(log_handle *l, uint64_t from, uint64_t to)
{
    append(l, from, to);
    commit(l);
}

/* Appends from `from` on until the log has that many segments; returns the last index, not yet durable. */
static inline uint64_t append_until(log_handle *l, uint64_t from, uint32_t segments)
{
    while (info_of(l).segments < segments) {
        append(l, from, from);
        from++;
    }
    return from - 1;
}

/* Are these the bytes that `append` makes, under this salt or an earlier one? Fills `*salt`. */
static inline bool entry_is_known(const ckb_entry *entry, const uint8_t *bytes, uint64_t *salt)
{
    uint8_t expected[ENTRY_BYTES_MAX];
    *salt = entry->term - entry->index * 1000;
    if (*salt >= 1000 || entry->length != entry_length(entry->index))
        return false;
    entry_fill(expected, entry->index, *salt);
    return memcmp(bytes, expected, entry->length) == 0;
}

static inline ckb_entry entry_at(log_handle *l, uint64_t index)
{
    uint8_t bytes[ENTRY_BYTES_MAX];
    ckb_entry entry;
    int status = ckb_log_read(l->plain, index, &entry, bytes, sizeof(bytes));
    cr_assert_eq(status, CKB_OK, "entry %llu: %s", (unsigned long long)index, ckb_status_text(status));
    return entry;
}

/* ------------------------------------------------------------------------------------------- >>sentences */

typedef struct sentence {
    char text[TEXT_BYTES];
    size_t used;
    uint64_t from, to; /* the run of entries that is not said yet */
    const char *what;
} sentence;

__attribute__((format(printf, 2, 3))) static inline void say(sentence *t, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    int length = vsnprintf(t->text + t->used, sizeof(t->text) - t->used, format, list);
    va_end(list);
    cr_assert(length >= 0 && (size_t)length < sizeof(t->text) - t->used, "too much to say");
    t->used += (size_t)length;
}

static inline void say_run(sentence *t)
{
    if (!t->what)
        return;
    say(t, "%s%llu", t->used ? ", " : "", (unsigned long long)t->from);
    if (t->to > t->from)
        say(t, "-%llu", (unsigned long long)t->to);
    say(t, "%s%s", t->what[0] >= 'a' ? " " : "", t->what);
    t->what = NULL;
}

/* Joins what is the same for entries in a row. */
static inline void say_entry(sentence *t, uint64_t index, const char *what)
{
    if (t->what && index == t->to + 1 && strcmp(t->what, what) == 0) {
        t->to = index;
        return;
    }
    say_run(t);
    t->from = t->to = index;
    t->what = what;
}

/* What became of an entry that was read: its salt in primes, so that each re-append shows. */
static inline const char *entry_kind(const ckb_entry *entry, const uint8_t *bytes)
{
    static const char *const kinds[] = {"", "'", "''", "'''"};
    uint64_t salt;
    return entry_is_known(entry, bytes, &salt) && salt < 4 ? kinds[salt] : "wrong";
}

/* Reads on with a cursor until it ends or fails: "1-4, 7-9, end". */
static inline void say_walk(sentence *t, ckb_log_cursor *cursor, uint64_t from)
{
    uint8_t bytes[ENTRY_BYTES_MAX];
    ckb_entry entry;
    int status;
    ckb_log_seek(cursor, from);
    while ((status = ckb_log_next(cursor, &entry, bytes, sizeof(bytes))) == CKB_OK)
        say_entry(t, entry.index, entry_kind(&entry, bytes));
    say_run(t);
    say(t, "%s%s", t->used ? ", " : "", ckb_status_text(status));
}

#define WITH_EXPECTED(expected, format) \
    do { \
        va_list list_; \
        va_start(list_, format); \
        vsnprintf(expected, sizeof(expected), format, list_); \
        va_end(list_); \
    } while (0)

/* What the cursor that stops at damage reads from the first entry on. */
__attribute__((format(printf, 2, 3))) static inline void assert_walk(log_handle *l, const char *format, ...)
{
    sentence t = {.used = 0};
    char expected[TEXT_BYTES];
    WITH_EXPECTED(expected, format);
    say_walk(&t, l->plain, info_of(l).first);
    cr_assert_str_eq(t.text, expected);
}

/* The same for the cursor that goes on behind damage. */
__attribute__((format(printf, 2, 3))) static inline void assert_salvage(log_handle *l, const char *format, ...)
{
    sentence t = {.used = 0};
    char expected[TEXT_BYTES];
    WITH_EXPECTED(expected, format);
    say_walk(&t, l->salvage, info_of(l).first);
    cr_assert_str_eq(t.text, expected);
}

/* What each of these entries answers when it is read by its index, the last first: "1-4, 5-6 corrupt, 7". */
__attribute__((format(printf, 4, 5))) static inline void assert_reads(log_handle *l, uint64_t from, uint64_t to,
                                                                      const char *format, ...)
{
    sentence t = {.used = 0};
    char expected[TEXT_BYTES];
    const char *what[1000];
    uint8_t bytes[ENTRY_BYTES_MAX];
    ckb_entry entry;
    WITH_EXPECTED(expected, format);
    cr_assert_lt(to - from, 1000);
    for (uint64_t index = to; index >= from; index--) {
        int status = ckb_log_read(l->plain, index, &entry, bytes, sizeof(bytes));
        what[index - from] = status == CKB_OK ? entry_kind(&entry, bytes) : ckb_status_text(status);
    }
    for (uint64_t index = from; index <= to; index++)
        say_entry(&t, index, what[index - from]);
    say_run(&t);
    cr_assert_str_eq(t.text, expected);
}

static inline int say_finding(void *context, const ckb_finding *finding)
{
    sentence *t = context;
    char text[200];
    ckb_fault_text(&finding->fault, text, sizeof(text));
    say(t, "%s%s%s%s", t->used ? "; " : "", finding->log, finding->log[0] ? ": " : "", text);
    return 0;
}

/* All that a check finds, with the log's name where it knows it. */
__attribute__((format(printf, 2, 3))) static inline void assert_check(store *s, const char *format, ...)
{
    sentence t = {.used = 0};
    char expected[TEXT_BYTES];
    ckb_check_report report;
    WITH_EXPECTED(expected, format);
    int status = ckb_check(s->volume, s->reader, say_finding, &t, &report);
    cr_assert_str_eq(t.text, expected);
    cr_assert_eq(status, report.damage ? CKB_CORRUPT : CKB_OK);
}

/* The fault of the first read that does not say CKB_OK, from the first entry on. */
__attribute__((format(printf, 2, 3))) static inline void assert_read_fault(log_handle *l, const char *format,
                                                                           ...)
{
    sentence t = {.used = 0};
    char expected[TEXT_BYTES];
    ckb_fault fault;
    WITH_EXPECTED(expected, format);
    say_walk(&t, l->plain, info_of(l).first);
    ckb_log_cursor_fault(l->plain, &fault);
    assert_text(&fault, expected);
}

__attribute__((format(printf, 2, 3))) static inline void assert_damage(store *s, const char *format, ...)
{
    char expected[TEXT_BYTES];
    WITH_EXPECTED(expected, format);
    assert_first_damage(s, expected);
}

__attribute__((format(printf, 2, 3))) static inline void assert_last(store *s, const char *format, ...)
{
    char expected[TEXT_BYTES];
    WITH_EXPECTED(expected, format);
    assert_last_fault(s, expected);
}

/* The log's newest index is the one before `next`, which the next append gets. */
static inline void assert_goes_on(log_handle *l, uint64_t next)
{
    cr_assert_eq(info_of(l).last, next - 1, "the last index is %llu", (unsigned long long)info_of(l).last);
    l->salt++;
    append_durably(l, next, next);
    l->salt--;
}

/* ------------------------------------------------------------------------------------------------ >>forge
 * Records with other content than the library wrote, under good checksums. */

static inline uint64_t get_little(const uint8_t *bytes, int count)
{
    uint64_t value = 0;
    for (int i = count - 1; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

static inline void put_little(uint8_t *bytes, int count, uint64_t value)
{
    for (int i = 0; i < count; i++, value >>= 8)
        bytes[i] = (uint8_t)value;
}

/* The checksum's raw state, without its inversions. */
static inline uint32_t crc_more(uint32_t state, const void *bytes, size_t length)
{
    return ~ckb_crc32c(~state, bytes, length);
}

static inline uint32_t crc_more8(uint32_t state, uint64_t value)
{
    uint8_t bytes[8];
    put_little(bytes, 8, value);
    return crc_more(state, bytes, 8);
}

static inline uint64_t epoch_of(store *s, uint32_t segment)
{
    return get_little(at(s, segment, 32), 8);
}

/* State from which the checksum of a header (purpose 0) or payload (1) starts; see RECORD in FORMAT. */
static inline uint32_t seed_of(store *s, uint32_t segment, uint64_t offset, uint64_t purpose)
{
    uint32_t state = crc_more(UINT32_MAX, at(s, segment, 16), 16);
    state = crc_more8(crc_more8(state, epoch_of(s, segment)), segment);
    return crc_more8(state, offset / 8 | purpose << 32);
}

static inline uint32_t header_crc(store *s, uint32_t segment, uint64_t offset)
{
    const uint8_t *r = at(s, segment, offset);
    return crc_more(seed_of(s, segment, offset, 0), r + 4, (size_t)get_little(r + 6, 2) - 4);
}

/* Makes a changed header verify again, and with `payload` a changed payload too. */
static inline void reseal(store *s, uint32_t segment, uint64_t offset, bool payload)
{
    uint8_t *r = at(s, segment, offset);
    if (payload) {
        uint32_t state = seed_of(s, segment, offset, 1);
        put_little(r + 12, 4, crc_more(state, r + get_little(r + 6, 2), (size_t)get_little(r + 8, 4)));
    }
    put_little(r, 4, header_crc(s, segment, offset));
}

/* Does a record of this type verify there? */
static inline bool record_is(store *s, uint32_t segment, uint64_t offset, uint8_t type)
{
    const uint8_t *r = at(s, segment, offset);
    uint64_t bytes = get_little(r + 6, 2);
    return r[4] == type && bytes >= 24 && bytes <= 128 && get_little(r, 4) == header_crc(s, segment, offset);
}

/* The journal's side in force: 0 for the even segments, 1 for the odd ones. */
static inline uint32_t journal_side(store *s)
{
    return memcmp(at(s, 1, 0), at(s, 0, 0), 8) == 0 && epoch_of(s, 1) > epoch_of(s, 0);
}

static inline uint32_t journal_span(store *s)
{
    return (uint32_t)get_little(at(s, 0, 56), 4);
}

/* Where a fact stands, and the record that holds it. */
typedef struct fact_place {
    uint8_t *fact;
    uint32_t segment;
    uint64_t record;
} fact_place;

/* Looks for a fact of this kind and number in one FACTS record. */
static inline void find_fact_in(store *s, uint32_t segment, uint64_t record, uint64_t kind, uint64_t a,
                                fact_place *found)
{
    uint64_t facts = get_little(at(s, segment, record + 8), 4) / 24;
    for (uint64_t n = 0; n < facts; n++) {
        uint8_t *fact = at(s, segment, record + 24 + n * 24);
        if (get_little(fact, 4) == kind && get_little(fact + 4, 4) == a) {
            fact_place place = {fact, segment, record};
            *found = place;
        }
    }
}

/* The newest fact of this kind and number in the journal. */
static inline fact_place find_fact(store *s, uint64_t kind, uint64_t a)
{
    fact_place found = {NULL, 0, 0};
    uint32_t unit = s->medium.geometry.write_unit, side = journal_side(s);
    for (uint32_t j = side; j < 2 * journal_span(s) && epoch_of(s, j) == epoch_of(s, side); j += 2)
        for (uint64_t offset = unit; offset + unit < s->medium.geometry.segment_bytes; offset += unit)
            if (record_is(s, j, offset, 7))
                find_fact_in(s, j, offset, kind, a, &found);
    cr_assert_not_null(found.fact, "the journal has no fact %u about %u", (unsigned)kind, (unsigned)a);
    return found;
}

/* Makes another fact of the newest one of this kind and number. */
static inline void forge_fact(store *s, uint64_t kind, uint64_t number, uint64_t a, uint64_t b, uint64_t c)
{
    fact_place place = find_fact(s, kind, number);
    put_little(place.fact + 4, 4, a);
    put_little(place.fact + 8, 8, b);
    put_little(place.fact + 16, 8, c);
    reseal(s, place.segment, place.record, true);
}

#endif
