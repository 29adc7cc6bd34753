/* What very many segments of logs cost: a mount reads and works in proportion to their number, and so does
 * dropping them. Reads are counted, and the basic blocks of the library that run; nothing is timed. */
#define _GNU_SOURCE
#define CHUNKBENCH_IMPLEMENTATION /* counted, see work.h */
#include "log_store.h"
#include "work.h"

enum { BYTES = 4096, ENTRY_BYTES = 1200, LOGS_MAX = 16, FEW = 1000, MANY = 10000 };

/* Logs that share a volume. */
typedef struct logs {
    store *s;
    log_handle *log[LOGS_MAX];
    uint32_t count;
    uint64_t reads, read_bytes;
    int (*read)(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length);
} logs;

/* What something took. */
typedef struct costs {
    uint64_t reads, read_bytes, blocks;
} costs;

static logs *counted; /* a test has one medium */

static int count_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    counted->reads++;
    counted->read_bytes += length;
    return counted->read(context, segment, offset, buffer, length);
}

static costs costs_begin(const logs *all)
{
    costs c = {all->reads, all->read_bytes, work_blocks};
    return c;
}

static void costs_end(const logs *all, costs *c)
{
    c->reads = all->reads - c->reads;
    c->read_bytes = all->read_bytes - c->read_bytes;
    c->blocks = work_blocks - c->blocks;
}

static const char *log_name(uint32_t n)
{
    static const char names[LOGS_MAX][2] = {"a", "b", "c", "d", "e", "f", "g", "h",
                                            "i", "j", "k", "l", "m", "n", "o", "p"};
    return names[n];
}

/* A volume with room for that many segments of logs. */
static void logs_make(logs *all, uint32_t count, uint32_t segments, uint32_t unit)
{
    ckb_config config = {.max_logs = LOGS_MAX};
    memset(all, 0, sizeof(*all));
    store *s = all->s = store_make(BYTES, segments + segments / 16 + 40, unit, &config);
    counted = all;
    all->read = s->medium.read;
    s->medium.read = count_read;
    all->count = count;
    cr_assert_eq(store_format(s), CKB_OK);
    cr_assert_eq(store_mount(s), CKB_OK);
    for (uint32_t i = 0; i < count; i++)
        all->log[i] = log_new(s, log_name(i), 1);
}

static void logs_free(logs *all)
{
    for (uint32_t i = 0; i < all->count; i++)
        log_handle_free(all->log[i]);
    store_free(all->s);
}

/* Appends to the logs in turn until they have so many segments together; they lie between each other. */
static void logs_fill(logs *all, uint32_t segments)
{
    static const uint8_t bytes[ENTRY_BYTES] = {1};
    uint32_t each = segments / all->count;
    for (bool more = true; more;) {
        more = false;
        for (uint32_t i = 0; i < all->count; i++) {
            if (info_of(all->log[i]).segments == each)
                continue;
            cr_assert_eq(ckb_log_append(all->log[i]->log, 1, bytes, sizeof(bytes), 0, NULL), CKB_OK);
            more = true;
        }
    }
    for (uint32_t i = 0; i < all->count; i++)
        commit(all->log[i]);
}

/* Mounts and opens the logs, which must be as they were. */
static costs logs_mount(logs *all)
{
    ckb_log_info before[LOGS_MAX];
    for (uint32_t i = 0; i < all->count; i++)
        before[i] = info_of(all->log[i]);
    costs c = costs_begin(all);
    cr_assert_eq(store_mount(all->s), CKB_OK);
    for (uint32_t i = 0; i < all->count; i++)
        cr_assert_eq(log_open(all->log[i], log_name(i)), CKB_OK);
    costs_end(all, &c);
    for (uint32_t i = 0; i < all->count; i++) {
        ckb_log_info info = info_of(all->log[i]);
        cr_assert_eq(info.last, before[i].last);
        cr_assert_eq(info.segments, before[i].segments);
    }
    return c;
}

/* Costs of so many segments are at most 1.2 times as much for each as those of few. */
static void expect_linear(const char *what, const costs *c, uint64_t segments, const costs *few)
{
    printf("log-scale: %s, %llu segments: each %.2f reads, %.0f bytes, %.0f basic blocks\n", what,
           (unsigned long long)segments, (double)c->reads / (double)segments,
           (double)c->read_bytes / (double)segments, (double)c->blocks / (double)segments);
    cr_expect_leq(c->reads * FEW * 5, few->reads * segments * 6, "%s: reads", what);
    cr_expect_leq(c->read_bytes * FEW * 5, few->read_bytes * segments * 6, "%s: bytes", what);
    cr_expect_leq(c->blocks * FEW * 5, few->blocks * segments * 6, "%s: work", what);
}

static void mounts_are_linear(const char *what, uint32_t count, uint32_t unit, bool clean)
{
    static const uint32_t segments[] = {FEW, 2500, 5000, MANY};
    costs few = {0, 0, 0};
    for (size_t i = 0; i < sizeof(segments) / sizeof(segments[0]); i++) {
        logs all;
        logs_make(&all, count, segments[i], unit);
        logs_fill(&all, segments[i]);
        if (clean)
            cr_assert_eq(ckb_unmount(all.s->volume), CKB_OK);
        costs c = logs_mount(&all);
        few = i == 0 ? c : few;
        expect_linear(what, &c, segments[i], &few);
        logs_free(&all);
    }
}

Test(log_scale, a_mount_after_a_clean_end_reads_and_works_in_proportion_to_the_segments)
{
    mounts_are_linear("mount, clean", 1, 64, true);
}

Test(log_scale, a_mount_after_a_crash_reads_and_works_in_proportion_to_the_segments)
{
    mounts_are_linear("mount, crash", 1, 64, false);
}

Test(log_scale, a_mount_after_a_crash_reads_segments_without_seal_in_proportion_too)
{
    mounts_are_linear("mount, crash, no seals", 1, 512, false);
}

Test(log_scale, a_mount_of_sixteen_logs_reads_and_works_in_proportion_to_their_segments)
{
    mounts_are_linear("mount, 16 logs", LOGS_MAX, 64, true);
}

/* Purges all entries, and waits for the space. */
static costs purge_all(logs *all)
{
    uint64_t next = info_of(all->log[0]).last + 1;
    bool more = true;
    costs c = costs_begin(all);
    cr_assert_eq(ckb_log_purge(all->log[0]->log, next), CKB_OK);
    while (more)
        cr_assert_eq(ckb_maintain(all->s->volume, 1000, &more), CKB_OK);
    costs_end(all, &c);
    cr_assert_leq(info_of(all->log[0]).segments, 1);
    return c;
}

Test(log_scale, purging_segments_and_freeing_them_takes_work_in_proportion_to_their_number)
{
    costs few = {0, 0, 0};
    for (uint32_t segments = FEW; segments <= MANY; segments += MANY - FEW) {
        logs all;
        logs_make(&all, 1, segments, 64);
        logs_fill(&all, segments);
        costs c = purge_all(&all);
        few = segments == FEW ? c : few;
        expect_linear("purge", &c, segments, &few);
        logs_free(&all);
    }
}

/* Cuts off the newest entry as often as that. */
static costs truncate_a_little(logs *all, uint32_t times)
{
    costs c = costs_begin(all);
    for (uint32_t i = 0; i < times; i++)
        cr_assert_eq(ckb_log_truncate(all->log[0]->log, info_of(all->log[0]).last - 1), CKB_OK);
    costs_end(all, &c);
    return c;
}

Test(log_scale, truncating_a_little_does_not_cost_more_on_a_large_log)
{
    costs few = {0, 0, 0};
    for (uint32_t segments = FEW; segments <= MANY; segments += MANY - FEW) {
        logs all;
        logs_make(&all, 1, segments, 64);
        logs_fill(&all, segments);
        truncate_a_little(&all, 1); /* the first write of a mount moves the journal */
        costs c = truncate_a_little(&all, 100);
        few = segments == FEW ? c : few;
        cr_expect_leq(c.blocks * 5, few.blocks * 6, "%llu and %llu basic blocks", (unsigned long long)c.blocks,
                      (unsigned long long)few.blocks);
        logs_free(&all);
    }
}
