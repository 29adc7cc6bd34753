/* The logs of a volume under test, and the states that a power cut may leave them in.
 *
 * A log is known by the numbers of the actions that appended its entries. Each entry carries that number in its
 * term, so that whatever comes back says where it is from. Structural operations (create, delete, truncate,
 * purge, reset) run one at a time for each log; appends and commits may come from several threads. */
#ifndef CKB_TESTS_LOG_WORLD_H
#define CKB_TESTS_LOG_WORLD_H

#include "media.h"

struct test_world;
struct test_oracle;
struct observation;
struct world_action;

enum {
    LOG_SLOTS = 3,
    LOG_WINDOW = 1024, /* a log has fewer entries at any time */
    LOG_RANGES = 2     /* before and after an operation that is under way, or failed */
};

#define LOG_LAST_INDEX (UINT64_MAX - 1) /* the largest there can be */
#define LOG_UNKNOWN (-1)                /* no append is known to have got this index */

/* The first thing that went wrong, as one line; empty while all is well. */
typedef struct world_verdict {
    char text[512];
} world_verdict;

void verdict_set(world_verdict *verdict, const char *format, ...) __attribute__((format(printf, 2, 3)));
static inline bool verdict_good(const world_verdict *verdict)
{
    return verdict->text[0] == 0;
}

/* A log as it is. Entry `index` was appended by action at[index % LOG_WINDOW]. */
typedef struct log_content {
    bool exists;
    uint64_t first, last;
    int32_t at[LOG_WINDOW];
} log_content;

/* States that differ only in how many of the newest entries are there. */
typedef struct log_range {
    bool exists;
    uint64_t first;
    uint64_t lowest, highest; /* the last index, at least and at most */
} log_range;

/* All states that a power cut may leave a log in. */
typedef struct log_target {
    log_range ranges[LOG_RANGES];
    uint32_t count;
    uint32_t unknown; /* appends that failed without telling their index; each may be among the others */
    int32_t at[LOG_WINDOW];
} log_target;

typedef struct log_world {
    uint32_t count; /* log slots in use */
    log_content newest[LOG_SLOTS];
    ckb_log *open[LOG_SLOTS];
    ckb_log_cursor *cursors[LOG_SLOTS];
    void *memory[LOG_SLOTS], *cursor_memory[LOG_SLOTS];
    size_t memory_bytes, cursor_bytes;
    uint32_t max_entry;
    bool crowded; /* several threads append to a log: an index need not be the next one */
    pthread_mutex_t lock;
    uint64_t refused; /* appends that found no room */
} log_world;

void log_world_init(struct test_world *world);
void log_world_free(struct test_world *world);
/* Nothing is mounted any more, or again. */
void log_world_forget(struct test_world *world);
const char *log_name(uint32_t slot);

/* ------------------------------------------------------------------------------------------- >>log-calls
 * Each makes notes around one call of the library and takes over into `newest` what it did. */

int world_log_open(struct test_world *world, uint32_t slot);
int world_log_close(struct test_world *world, uint32_t slot);
/* Terms are set here. */
int world_log_append(struct test_world *world, uint32_t slot, ckb_entry_data *entries, size_t count,
                     unsigned flags, world_verdict *verdict);
int world_log_commit(struct test_world *world, uint32_t slot, uint64_t index);
/* Takes ckb_log_stat at its word: what it says is durable is as good as committed. */
void world_log_believe(struct test_world *world, uint32_t slot);
/* `kind` is WORLD_LOG_CREATE, _DELETE, _TRUNCATE, _PURGE or _RESET; `argument` its index. */
int world_log_change(struct test_world *world, int kind, uint32_t slot, uint64_t argument);
/* Around ckb_unmount, which makes durable what is open. */
void log_unmount_begin(struct test_world *world, int32_t commits[LOG_SLOTS]);
void log_unmount_end(struct test_world *world, const int32_t commits[LOG_SLOTS], int status);

/* ------------------------------------------------------------------------------------------ >>log-oracle */

void log_oracle_init(struct test_oracle *oracle);
/* Takes in a note. */
void log_oracle_note(struct test_oracle *oracle, const media_event *event);
void log_oracle_rebase(struct test_oracle *oracle, const struct observation *seen);
/* Copies what is used of a log. */
void log_content_copy(log_content *to, const log_content *from);
/* Opens all logs and holds every entry against the oracle. Fills `seen`. */
void log_check(struct test_world *world, const struct test_oracle *oracle, struct observation *seen,
               world_verdict *verdict);
/* Entries of all logs, and their bytes. */
void log_sums(const struct test_world *world, const struct observation *seen, uint64_t *entries,
              uint64_t *bytes);

/* ------------------------------------------------------------------------------------------ >>log-random */

/* Each draws its details and holds the answer against what is allowed now. */
int log_random_append(struct test_world *world, media_random *random, uint32_t slot, uint64_t kinds,
                      world_verdict *verdict);
/* Of any entry that is there. */
void log_random_commit(struct test_world *world, media_random *random, uint32_t slot, world_verdict *verdict);
void log_random_read(struct test_world *world, media_random *random, uint32_t slot, world_verdict *verdict);
/* Purges half of the log or all of it, and maintains. */
void log_make_room(struct test_world *world, media_random *random, uint32_t slot, world_verdict *verdict);
/* Creates or opens the log when it is not open. */
void log_bring_up(struct test_world *world, media_random *random, uint32_t slot, world_verdict *verdict);
/* After several threads appended: no index was left out. */
void log_expect_whole(struct test_world *world, uint32_t slot, world_verdict *verdict);
/* Anything that can be done to a log. */
void log_random_step(struct test_world *world, media_random *random, uint32_t slot, world_verdict *verdict);

#endif
