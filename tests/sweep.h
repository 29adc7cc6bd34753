/* Power-cut sweep over workloads of chunks, or of chunks and logs.
 *
 * A workload runs once over a crash medium, which logs every change of the medium and every promise of the
 * library. Then, for each operation in that log and for many choices of what of the unsynced rest reached
 * the medium, the volume that a power cut would leave is made and mounted, and held against the promises.
 * On it some more work is done, the power is cut again, and the result mounted and checked once more; now
 * and then a hundred more appends and a third mount follow.
 *
 * A failure prints an id; CKB_REPLAY=id runs exactly that one. CKB_SWEEP_STATES sets another number of
 * states for each test, CKB_SWEEP_SEED is added to their seeds. */
#ifndef CKB_TESTS_SWEEP_H
#define CKB_TESTS_SWEEP_H

#include "workload.h"

typedef struct sweep {
    const char *name;
    uint64_t seed;
    size_t target; /* distinct states wanted */
    world_shape shape;
    world_table *table;
    int32_t recorded_actions;
    test_world recorded; /* the workload ran here */
    uint8_t *base;       /* the formatted volume before it */
    media_trace_segment *base_segments;
    test_world first;  /* mounted after the first cut */
    test_world second; /* and after the second */
    media_cursor cursor, second_cursor;
    test_oracle oracle, second_oracle;
    observation seen, second_seen;
    uint8_t *image, *second_image;
    media_set states;  /* different images */
    media_set checked; /* different images with different promises */
    uint64_t second_cuts, kills, third_mounts, violations;
    char log_path[128]; /* of a run that is not repeatable from its seed */
    bool threaded;
    bool forget_syncs; /* a control: the sweep must find out */
} sweep;

/* Small segments, so that rolls and journal switches are frequent. */
extern const world_shape sweep_small;
/* Large chunks: more than a window of 16 KiB and more than a writer's buffer; sectors of 512 bytes. */
extern const world_shape sweep_large;
/* Compaction whenever it gains anything: of small chunks, and of large ones. */
extern const world_shape sweep_compact, sweep_compact_large;
/* With room for checkpoints, which begin as often as they can; beside a log they take several segments. */
extern const world_shape sweep_checkpoint, sweep_checkpoint_log;
/* Both, and an index that deletes soon fill. */
extern const world_shape sweep_tidy;
/* So many segments that the journal takes several on each side. */
extern const world_shape sweep_many;
/* Logs and chunks, by write unit: from bytes on a small chip to pages. Most segments are of a few entries. */
extern const world_shape sweep_log_8, sweep_log_64, sweep_log_256, sweep_log_512, sweep_log_4096;

/* Fill name, seed, target, shape and threaded; `steps` is the length of the workload. Asserts that there
 * are no violations and as many states as wanted. */
void sweep_run(sweep *now, size_t steps);

/* A control: what every sync promised is taken back, and the sweep must notice. */
void sweep_control(sweep *now, size_t steps);

#endif
