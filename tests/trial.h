/* Faults at every operation of a workload.
 *
 * A trial runs a workload over a fresh volume with one fault of the medium, holds the answers against what
 * must be said, unmounts, and then mounts what power cuts would leave. A sweep of trials lets each operation
 * fail in turn, once and for good. A failure prints an id; CKB_REPLAY=id runs exactly that one. */
#ifndef CKB_TESTS_TRIAL_H
#define CKB_TESTS_TRIAL_H

#include "workload.h"

/* One kind of fault. */
typedef struct fault_case {
    const char *name;
    unsigned kinds;
    media_fault_effect effect;
    int status;
    bool sticky; /* the mount must take no more writes */
    bool lying;  /* the medium claims what is not so: only wrong data is a violation */
} fault_case;

/* Reads first, then writes and syncs, then erases. */
enum {
    FAULT_WRITES = 2,
    FAULT_WRITE_ERROR = 2,
    FAULT_WRITE_SHORT = 3,
    FAULT_SYNC_ERROR = 7,
    FAULT_SYNC_LATE = 8
};
enum { FAULT_ERASES = 9, FAULT_CASES = 13 };
extern const fault_case fault_cases[FAULT_CASES];

struct trial;

/* What the trials of a sweep do. */
typedef struct trial_plan {
    const world_shape *shape;
    /* Works over the armed fault. True when somebody was told of a failure. */
    bool (*run)(struct trial *all, uint64_t seed, world_verdict *verdict);
    /* After a failed write or sync: nothing is taken any more, by nobody, and it is said. */
    void (*expect_sticky)(struct trial *all, world_verdict *verdict);
    /* What is there now may be old or new or an error, but never bytes of something else. */
    void (*expect_no_wrong_data)(struct trial *all, bool errors_allowed, world_verdict *verdict);
} trial_plan;

typedef struct trial {
    const trial_plan *plan;
    test_world world;
    world_table *table;
    uint8_t *formatted; /* an empty volume */
    media_trace_segment *segments;
    uint8_t *image;
    media_cursor cursor;
    test_oracle oracle;
    const fault_case *now;
    uint64_t at;
    bool forever;
    const char *only; /* id to replay */
    uint64_t runs, violations;
} trial;

void trial_open(trial *all, const trial_plan *plan, uint64_t seed);
void trial_close(trial *all);
/* Back to the empty volume, nothing mounted, no fault. */
void trial_reset(trial *all);
/* Lets the fault of this trial wait for its operation. */
void trial_arm(trial *all);
void trial_report(trial *all, const char *test, const world_verdict *verdict);
/* Mounts what power cuts now would leave, and holds it against what was promised. */
void trial_cut(trial *all, world_verdict *verdict);
/* The same for one choice. */
void trial_cut_and_check(trial *all, uint64_t choice, world_verdict *verdict);
/* All cases from `first` to before `last`, at each operation. Asserts that there are no violations. */
void trial_sweep(const trial_plan *plan, const char *test, const fault_case *first, const fault_case *last);

/* The volume cannot be trusted any more, or an operation of the medium failed. */
static inline bool trial_is_failure(int status)
{
    return status == CKB_IO || status == CKB_FAILED;
}

#endif
