/* Every single bit of a small volume with two logs and a container flipped: the right data or an error that names
 * the place, never wrong data, never a shorter log without a word, never a crash.
 *
 * A failure prints an id; CKB_REPLAY=id runs exactly that one. */
#define _GNU_SOURCE
#include "log_store.h"
#include "media.h"

/* What one flipped bit led to. */
typedef enum outcome {
    OUTCOME_RIGHT,          /* all data, nothing reported: the bit means nothing */
    OUTCOME_REPORTED,       /* all data, and damage or a dropped tail reported */
    OUTCOME_MOUNT_REFUSED,  /* CKB_CORRUPT or CKB_VERSION from the mount */
    OUTCOME_OPEN_REFUSED,   /* a log opens for salvage only, the rest is right */
    OUTCOME_READ_REFUSED,   /* some entries are CKB_CORRUPT, the others right */
    OUTCOME_MISSING_LOUDLY, /* something is not there, and damage is reported */
    OUTCOME_TAIL_CUT,       /* something is not there, and a dropped tail is reported */
    OUTCOME_WRONG,
    OUTCOME_COUNT
} outcome;

static const char *const outcome_names[OUTCOME_COUNT] = {
    "right",        "right and reported",   "mount refused", "open refused",
    "read refused", "missing and reported", "tail cut",      "WRONG"};

enum { BYTES = 2048, COUNT = 9, LOGS = 2, CHUNKS = 5, AROUND = 3, RANGE = 80 };

/* What a read of one entry answers. */
typedef struct answer {
    int status;
    uint64_t term;
} answer;

/* A log whose content is known exactly. */
typedef struct truth {
    const char *name;
    uint64_t first, last, from; /* answers are known from this index on */
    answer answers[RANGE];
} truth;

typedef struct specimen {
    const char *name;
    bool clean;
    uint32_t unit;
    size_t stride; /* every bit, or one in so many */
    store *s;
    log_handle *logs[LOGS];
    truth truths[LOGS];
    uint8_t *image;
    ckb_stat stat; /* while all is well */
    uint64_t counts[OUTCOME_COUNT];
    char verdict[300];
} specimen;

/* What is wrong with a mounted volume, piece by piece. */
typedef struct difference {
    uint32_t closed;  /* logs that open for salvage only */
    uint32_t refused; /* reads that say CKB_CORRUPT */
    uint32_t missing; /* not there, or an older state */
    uint32_t shorter; /* logs that take appends and end before they should */
    uint32_t good;    /* reads of a log that say CKB_OK */
    uint32_t wrong;   /* bytes that were never there, or a refusal that names no place */
} difference;

/* ------------------------------------------------------------------------------------------- >>specimens */

static void specimen_logs(specimen *now)
{
    log_handle *a = now->logs[0] = log_new(now->s, "a", 1);
    log_handle *b = now->logs[1] = log_new(now->s, "b", UINT64_C(0xFFFFFFFE));
    append_durably(a, 1, 16);
    append_durably(b, UINT64_C(0xFFFFFFFE), UINT64_C(0x100000003));
    cr_assert_eq(ckb_log_truncate(a->log, 14), CKB_OK);
    a->salt = 1;
    append(a, 15, 24);
    commit(a);
    append_durably(a, 25, 30);
    cr_assert_eq(ckb_log_purge(a->log, 4), CKB_OK);
    append(b, UINT64_C(0x100000004), UINT64_C(0x100000004));
}

/* What a crash leaves: entries behind the last clean end, some of them committed. */
static void specimen_crash(specimen *now)
{
    log_handle *a = now->logs[0], *b = now->logs[1];
    cr_assert_eq(store_mount(now->s), CKB_OK);
    cr_assert(log_open(a, "a") == CKB_OK && log_open(b, "b") == CKB_OK);
    append_durably(a, 31, 33);
    append_durably(a, 34, 34);
    cr_assert_eq(ckb_log_purge(a->log, 6), CKB_OK);
    append_durably(b, UINT64_C(0x100000005), UINT64_C(0x100000006));
}

/* Notes what each read says while all is well. */
static void truth_note(truth *t, const char *name, log_handle *l)
{
    ckb_entry entry;
    uint8_t bytes[ENTRY_BYTES_MAX];
    t->name = name;
    t->first = info_of(l).first;
    t->last = info_of(l).last;
    t->from = t->first > AROUND ? t->first - AROUND : 1;
    for (uint64_t n = 0; n < RANGE; n++) {
        t->answers[n].status = ckb_log_read(l->plain, t->from + n, &entry, bytes, sizeof(bytes));
        t->answers[n].term = entry.term;
    }
    cr_assert_lt(t->last - t->from, RANGE - AROUND);
}

static void specimen_open(specimen *now)
{
    ckb_config config = {.max_chunks = 64, .max_containers = 2, .max_logs = LOGS, .max_writers = 1};
    store *s = now->s = store_new_with(BYTES, COUNT, now->unit, &config);
    put(s, 0, 1);
    specimen_logs(now);
    cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
    if (!now->clean)
        specimen_crash(now);
    now->image = malloc((size_t)BYTES * COUNT);
    memcpy(now->image, s->image, (size_t)BYTES * COUNT);
    cr_assert_eq(store_mount(s), CKB_OK);
    now->stat = stat_of(s);
    cr_assert(now->stat.damage == 0 && now->stat.clean == now->clean);
    for (int i = 0; i < LOGS; i++) {
        cr_assert_eq(log_open(now->logs[i], i ? "b" : "a"), CKB_OK);
        truth_note(&now->truths[i], i ? "b" : "a", now->logs[i]);
    }
}

static void specimen_close(specimen *now)
{
    for (int i = 0; i < LOGS; i++)
        log_handle_free(now->logs[i]);
    store_free(now->s);
    free(now->image);
}

/* --------------------------------------------------------------------------------------------- >>compare */

static bool names_a_place(const ckb_fault *fault)
{
    return fault->status == CKB_CORRUPT && fault->topic != CKB_TOPIC_NONE && fault->index != 0;
}

static void compare_entry(log_handle *l, uint64_t index, const answer *right, difference *found)
{
    ckb_entry entry;
    ckb_fault fault;
    uint8_t bytes[ENTRY_BYTES_MAX];
    uint64_t salt;
    int status = ckb_log_read(l->plain, index, &entry, bytes, sizeof(bytes));
    found->good += status == CKB_OK;
    bool known = status == CKB_OK && entry.index == index && entry_is_known(&entry, bytes, &salt);
    if (status == right->status && (status != CKB_OK || (known && entry.term == right->term)))
        return;
    ckb_log_cursor_fault(l->plain, &fault);
    if (status == CKB_CORRUPT && names_a_place(&fault))
        found->refused++;
    else if (known || status == CKB_PURGED || status == CKB_END)
        found->missing++;
    else
        found->wrong++;
}

/* A cursor shows what reads by index show. */
static void compare_walk(log_handle *l, difference *found)
{
    ckb_entry entry;
    uint8_t bytes[ENTRY_BYTES_MAX];
    uint64_t salt, last = 0, walked = 0;
    ckb_log_seek(l->salvage, info_of(l).first);
    while (walked <= RANGE && ckb_log_next(l->salvage, &entry, bytes, sizeof(bytes)) == CKB_OK) {
        found->wrong += entry.index <= last || !entry_is_known(&entry, bytes, &salt);
        last = entry.index;
        walked++;
    }
    found->wrong += walked != found->good;
}

static void compare_log(specimen *now, int i, difference *found)
{
    const truth *t = &now->truths[i];
    log_handle *l = now->logs[i];
    ckb_log_config salvage = {.salvage = true};
    int status = log_open(l, t->name);
    if (status == CKB_CORRUPT) {
        found->closed++;
        found->wrong += !names_a_place(&l->fault);
        status = log_open_with(l, t->name, &salvage);
    } else if (status == CKB_OK) {
        found->shorter += info_of(l).last < t->last;
    }
    if (status != CKB_OK) {
        found->missing += status == CKB_NOTFOUND;
        found->wrong += status != CKB_NOTFOUND;
        return;
    }
    found->good = 0;
    for (uint64_t n = 0; n < RANGE; n++)
        compare_entry(l, t->from + n, &t->answers[n], found);
    compare_walk(l, found);
}

static outcome judge(const specimen *now, const difference *found, int check)
{
    ckb_stat stat = stat_of(now->s);
    bool dropped = stat.dropped_tails > now->stat.dropped_tails || stat.dropped_bytes > now->stat.dropped_bytes;
    if (found->wrong || (found->refused + found->closed > 0 && check == CKB_OK))
        return OUTCOME_WRONG; /* reads and check must agree */
    if (found->shorter && (now->clean || !dropped))
        return OUTCOME_WRONG;
    if (found->missing && !found->closed)
        return dropped && !now->clean ? OUTCOME_TAIL_CUT : stat.damage ? OUTCOME_MISSING_LOUDLY : OUTCOME_WRONG;
    if (found->closed)
        return OUTCOME_OPEN_REFUSED;
    if (found->refused)
        return OUTCOME_READ_REFUSED;
    return stat.damage || dropped || check != CKB_OK ? OUTCOME_REPORTED : OUTCOME_RIGHT;
}

/* ------------------------------------------------------------------------------------------------ >>flips */

static outcome look(specimen *now)
{
    difference found = {0, 0, 0, 0, 0, 0};
    ckb_check_report report;
    int status = store_mount(now->s);
    snprintf(now->verdict, sizeof(now->verdict), "mount says %s", ckb_status_text(status));
    if (status != CKB_OK)
        return status == CKB_CORRUPT || status == CKB_VERSION ? OUTCOME_MOUNT_REFUSED : OUTCOME_WRONG;
    for (int i = 0; i < LOGS; i++)
        compare_log(now, i, &found);
    int got = get(now->s, 0);
    found.refused += got == CKB_CORRUPT;
    found.missing += got == CKB_NOTFOUND || got == CKB_DELETED;
    int check = ckb_check(now->s->volume, now->s->reader, NULL, NULL, &report);
    snprintf(
        now->verdict, sizeof(now->verdict),
        "%u closed, %u refused, %u missing, %u shorter, %u wrong, check %s, damage %llu, dropped tails %llu",
        found.closed, found.refused, found.missing, found.shorter, found.wrong, ckb_status_text(check),
        (unsigned long long)stat_of(now->s).damage, (unsigned long long)stat_of(now->s).dropped_tails);
    return judge(now, &found, check);
}

static void flip(specimen *now, size_t bit)
{
    uint8_t *byte = &now->s->image[bit / 8];
    *byte ^= (uint8_t)(1u << (bit % 8));
    outcome result = look(now);
    *byte ^= (uint8_t)(1u << (bit % 8));
    if (result == OUTCOME_WRONG && now->counts[OUTCOME_WRONG] < 10)
        fprintf(stderr, "segment %zu offset %zu bit %zu: %s\n    CKB_REPLAY='test=%s/bit=%zu'\n",
                bit / 8 / BYTES, bit / 8 % BYTES, bit % 8, now->verdict, now->name, bit);
    now->counts[result]++;
}

static void flip_every_bit(specimen *now)
{
    const char *id = getenv("CKB_REPLAY");
    uint64_t only = 0;
    char wanted[64];
    size_t bits = (size_t)BYTES * COUNT * 8, flips = 0;
    snprintf(wanted, sizeof(wanted), "test=%s/", now->name);
    bool one = id && media_id_number(id, "bit", &only);
    if (id && strncmp(id, wanted, strlen(wanted)) != 0)
        return;
    specimen_open(now);
    for (size_t bit = one ? (size_t)only : 0; bit < (one ? (size_t)only + 1 : bits); bit += now->stride) {
        flip(now, bit);
        flips++;
    }
    cr_expect_arr_eq(now->image, now->s->image, bits / 8, "a mount, an open or a read wrote to the medium");
    printf("%s: %zu bits flipped:", now->name, flips);
    for (int i = 0; i < OUTCOME_COUNT; i++)
        printf(" %llu %s%s", (unsigned long long)now->counts[i], outcome_names[i],
               i + 1 < OUTCOME_COUNT ? "," : "\n");
    cr_expect_eq(now->counts[OUTCOME_WRONG], 0);
    if (!one)
        cr_expect(now->counts[OUTCOME_READ_REFUSED] > 0 && now->counts[OUTCOME_RIGHT] > 0 &&
                  now->counts[OUTCOME_OPEN_REFUSED] > 0);
    specimen_close(now);
}

Test(log_bits, give_the_right_data_or_an_error_when_any_bit_of_a_clean_volume_flips)
{
    static specimen now = {.name = "clean", .clean = true, .unit = 64, .stride = 1};
    flip_every_bit(&now);
}

Test(log_bits, give_the_right_data_or_an_error_when_bits_of_a_volume_without_seals_flip)
{
    static specimen now = {.name = "unsealed", .clean = false, .unit = 64, .stride = 7};
    flip_every_bit(&now);
}

Test(log_bits, give_the_right_data_or_an_error_when_any_bit_of_an_unclean_volume_flips)
{
    static specimen now = {.name = "unclean", .clean = false, .unit = 32, .stride = 1};
    flip_every_bit(&now);
}
