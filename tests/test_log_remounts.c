/* Remounts without end of a log that grows and is purged behind, half of them after a power cut: what was durable
 * is there, no segment is leaked, and no mount reads more because of those before it. CKB_TEST_SCALE=20 makes it a
 * fifth of the remounts. */
#define _GNU_SOURCE
#include "log_store.h"

/* ---------------------------------------------------------------------------------------------- >>medium
 * RAM in front of a store's image: it counts, and knows what no sync covers yet. */

typedef struct tiny {
    ckb_medium below;
    store *s;
    uint8_t *durable; /* the image without what no sync covers */
    bool *dirty;      /* segments that differ in it */
    uint32_t *erases; /* of each segment */
    uint64_t reads, read_bytes;
    uint64_t random;
} tiny;

static int tiny_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    tiny *t = context;
    t->reads++;
    t->read_bytes += length;
    return t->below.read(t->below.context, segment, offset, buffer, length);
}

static int tiny_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    tiny *t = context;
    t->dirty[segment] = true;
    return t->below.write(t->below.context, segment, offset, buffer, length);
}

static int tiny_erase(void *context, uint32_t segment)
{
    tiny *t = context;
    t->erases[segment]++;
    return t->below.erase(t->below.context, segment);
}

static int tiny_sync(void *context, uint32_t segment)
{
    tiny *t = context;
    size_t bytes = (size_t)t->below.geometry.segment_bytes;
    if (t->dirty[segment])
        memcpy(t->durable + segment * bytes, at(t->s, segment, 0), bytes);
    t->dirty[segment] = false;
    return CKB_OK;
}

static uint64_t tiny_random(tiny *t, uint64_t below)
{
    t->random ^= t->random << 13;
    t->random ^= t->random >> 7;
    t->random ^= t->random << 17;
    return t->random % below;
}

/* Of what no sync covers a segment keeps all, nothing, or what lies below some place. */
static void tiny_cut_power(tiny *t)
{
    uint64_t bytes = t->below.geometry.segment_bytes, units = bytes / t->below.geometry.write_unit;
    for (uint32_t i = 0; i < t->below.geometry.segment_count; i++) {
        if (!t->dirty[i])
            continue;
        uint64_t way = tiny_random(t, 3);
        uint64_t kept = way == 0 ? bytes : way == 1 ? 0 : bytes / units * tiny_random(t, units + 1);
        memcpy(at(t->s, i, kept), t->durable + i * bytes + kept, (size_t)(bytes - kept));
        memcpy(t->durable + i * bytes, at(t->s, i, 0), (size_t)bytes);
        t->dirty[i] = false;
    }
}

/* A formatted volume, not yet mounted. */
static store *tiny_store(tiny *t, uint64_t segment_bytes, uint32_t segments, uint32_t unit)
{
    store *s = store_make(segment_bytes, segments, unit, NULL);
    memset(t, 0, sizeof(*t));
    t->s = s;
    t->below = s->medium;
    t->durable = calloc(segments, (size_t)segment_bytes);
    t->dirty = calloc(segments, sizeof(*t->dirty));
    t->erases = calloc(segments, sizeof(*t->erases));
    t->random = 88172645463325252u;
    ckb_medium medium = {t, s->medium.geometry, tiny_read, tiny_write, tiny_erase, tiny_sync};
    s->medium = medium;
    cr_assert_eq(store_format(s), CKB_OK);
    return s;
}

static void tiny_free(tiny *t)
{
    free(t->durable);
    free(t->dirty);
    free(t->erases);
    store_free(t->s);
}

/* ------------------------------------------------------------------------------------------- >>remounts */

enum { SEGMENTS_IN_ALL = 40, SEGMENTS_KEPT = 8, ENTRIES_AT_ONCE = 1024, LOOK_EVERY = 100, PARTS = 5 };

/* What some mounts in a row have read. */
typedef struct costs {
    uint64_t mounts, reads, read_bytes;
    uint64_t most_reads, most_bytes;
} costs;

/* A log that is remounted for ever, and what must be in it. */
typedef struct growing {
    tiny medium;
    store *s;
    log_handle *l;
    uint64_t first, last, durable;
    uint16_t salts[ENTRIES_AT_ONCE]; /* of the entry `index` at its remainder */
    uint64_t journal_epoch;
    bool clean; /* the last life ended with an unmount */
} growing;

static void costs_add(costs *c, uint64_t reads, uint64_t read_bytes)
{
    c->mounts++;
    c->reads += reads;
    c->read_bytes += read_bytes;
    c->most_reads = reads > c->most_reads ? reads : c->most_reads;
    c->most_bytes = read_bytes > c->most_bytes ? read_bytes : c->most_bytes;
}

/* Mounts and opens the log. */
static void growing_mount(growing *g, costs *c)
{
    uint64_t reads = g->medium.reads, bytes = g->medium.read_bytes;
    cr_assert_eq(store_mount(g->s), CKB_OK);
    cr_assert_eq(log_open(g->l, "a"), CKB_OK);
    costs_add(c, g->medium.reads - reads, g->medium.read_bytes - bytes);
}

static void growing_expect_entry(growing *g, uint64_t index, uint64_t life)
{
    uint8_t bytes[ENTRY_BYTES_MAX];
    ckb_entry entry;
    uint64_t salt = 0;
    int status = ckb_log_read(g->l->plain, index, &entry, bytes, sizeof(bytes));
    cr_assert_eq(status, CKB_OK, "life %llu, entry %llu of %llu-%llu: %s", (unsigned long long)life,
                 (unsigned long long)index, (unsigned long long)g->first, (unsigned long long)g->last,
                 ckb_status_text(status));
    cr_assert(entry_is_known(&entry, bytes, &salt) && salt == g->salts[index % ENTRIES_AT_ONCE],
              "life %llu: entry %llu is of life %llu, not of %u", (unsigned long long)life,
              (unsigned long long)index, (unsigned long long)salt, g->salts[index % ENTRIES_AT_ONCE]);
}

/* What was durable is there, of the rest a prefix, and a purge is for ever. */
static void growing_expect(growing *g, uint64_t life)
{
    ckb_log_info info = info_of(g->l);
    cr_assert_eq(info.first, g->first, "life %llu: first is %llu, not %llu", (unsigned long long)life,
                 (unsigned long long)info.first, (unsigned long long)g->first);
    cr_assert(info.last >= (g->clean ? g->last : g->durable) && info.last <= g->last,
              "life %llu: last is %llu, not from %llu to %llu", (unsigned long long)life,
              (unsigned long long)info.last, (unsigned long long)g->durable, (unsigned long long)g->last);
    cr_assert_eq(info.durable, g->clean ? info.last : info.first - 1);
    g->last = info.last;
    if (g->last < g->first)
        return;
    growing_expect_entry(g, g->first, life);
    growing_expect_entry(g, g->last, life);
    growing_expect_entry(g, g->first + tiny_random(&g->medium, g->last + 1 - g->first), life);
}

/* Every segment is the journal's, free, or the log's; every entry is there, and nothing was found damaged. */
static void growing_expect_no_leak(growing *g, uint64_t life)
{
    bool more = true;
    while (more)
        cr_assert_eq(ckb_maintain(g->s->volume, 100, &more), CKB_OK);
    ckb_stat stat = stat_of(g->s);
    cr_assert_eq(stat.segments_free + stat.segments_prepared + stat.segments_journal + info_of(g->l).segments,
                 stat.geometry.segment_count,
                 "life %llu: %u free, %u prepared, %u of the journal, %u of the log", (unsigned long long)life,
                 stat.segments_free, stat.segments_prepared, stat.segments_journal, info_of(g->l).segments);
    cr_assert_eq(stat.damage, 0);
    for (uint64_t index = g->first; index <= g->last; index++)
        growing_expect_entry(g, index, life);
    assert_reads(g->l, g->last + 1, g->last + 1, "%llu end", (unsigned long long)g->last + 1);
}

/* One to three entries, durable or not; a purge when the log has many segments. */
static void growing_append(growing *g, uint64_t life)
{
    uint64_t from = g->last + 1, count = 1 + tiny_random(&g->medium, 3);
    g->l->salt = life % 1000;
    append(g->l, from, g->last + count);
    for (uint64_t index = from; index < from + count; index++)
        g->salts[index % ENTRIES_AT_ONCE] = (uint16_t)g->l->salt;
    g->last += count;
    if (tiny_random(&g->medium, 2) == 0) {
        commit(g->l);
        g->durable = g->last;
        cr_assert_eq(info_of(g->l).durable, g->last);
    }
    if (info_of(g->l).segments > SEGMENTS_KEPT) {
        g->first += 1 + (g->last - g->first) / 2;
        cr_assert_eq(ckb_log_purge(g->l->log, g->first), CKB_OK);
    }
    cr_assert_lt(g->last - g->first, ENTRIES_AT_ONCE);
}

/* Ends a life: with an unmount, or with a power cut. */
static void growing_end(growing *g)
{
    ckb_stat stat = stat_of(g->s);
    cr_assert_gt(stat.journal_epoch, g->journal_epoch, "no later life may use an epoch of this one");
    g->journal_epoch = stat.journal_epoch;
    g->clean = tiny_random(&g->medium, 2) == 0;
    if (g->clean)
        cr_assert_eq(ckb_unmount(g->s->volume), CKB_OK);
    else
        tiny_cut_power(&g->medium);
    if (g->clean)
        g->durable = g->last;
}

/* The last mounts of all read what the first ones did, and a little more by chance. */
static void expect_no_growth(const costs *early, const costs *late)
{
    cr_expect_leq(late->reads * early->mounts * 20, early->reads * late->mounts * 21);
    cr_expect_leq(late->read_bytes * early->mounts * 20, early->read_bytes * late->mounts * 21);
    cr_expect_leq(late->most_reads * 5, early->most_reads * 6);
    cr_expect_leq(late->most_bytes * 5, early->most_bytes * 6);
    printf("log-remounts: first fifth %.1f reads a mount, at most %llu; last fifth %.1f, at most %llu\n",
           (double)early->reads / (double)early->mounts, (unsigned long long)early->most_reads,
           (double)late->reads / (double)late->mounts, (unsigned long long)late->most_reads);
}

/* Wear spreads: no segment that the log could use is left out for ever. */
static void expect_even_wear(const growing *g)
{
    uint32_t least = UINT32_MAX, most = 0;
    for (uint32_t i = stat_of(g->s).segments_journal; i < SEGMENTS_IN_ALL; i++) {
        least = g->medium.erases[i] < least ? g->medium.erases[i] : least;
        most = g->medium.erases[i] > most ? g->medium.erases[i] : most;
    }
    cr_expect(least > 0 && most / 2 <= least, "from %u to %u erases of a segment", least, most);
}

static uint64_t scaled(uint64_t lives)
{
    const char *percent = getenv("CKB_TEST_SCALE");
    return percent ? lives * strtoull(percent, NULL, 10) / 100 : lives;
}

static void remount(uint64_t segment_bytes, uint32_t unit, uint64_t lives)
{
    growing g = {.first = 1};
    costs parts[PARTS];
    memset(parts, 0, sizeof(parts));
    g.s = tiny_store(&g.medium, segment_bytes, SEGMENTS_IN_ALL, unit);
    cr_assert_eq(store_mount(g.s), CKB_OK);
    cr_assert_eq(ckb_log_create(g.s->volume, "a", 1), CKB_OK);
    g.l = log_handle_make(g.s);
    for (uint64_t life = 0; life < lives; life++) {
        growing_mount(&g, &parts[life * PARTS / lives]);
        growing_expect(&g, life);
        growing_append(&g, life);
        if (life % LOOK_EVERY == 0)
            growing_expect_no_leak(&g, life);
        growing_end(&g);
    }
    cr_expect_gt(g.first, lives / 2, "the log was purged behind all the time");
    expect_no_growth(&parts[0], &parts[PARTS - 1]);
    cr_assert_eq(store_mount(g.s), CKB_OK);
    expect_even_wear(&g);
    log_handle_free(g.l);
    tiny_free(&g.medium);
}

Test(log_remounts, a_hundred_thousand_leak_nothing_and_make_no_mount_longer)
{
    remount(4096, 64, scaled(100000));
}

Test(log_remounts, in_the_smallest_segments)
{
    remount(512, 8, scaled(20000));
}

Test(log_remounts, in_segments_without_seal)
{
    remount(2048, 64, scaled(20000));
}
