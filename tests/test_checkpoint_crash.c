/* Power cuts at any operation of a workload that checkpoints as often as it can. Each state is mounted with the
 * checkpoint and without, and both must show the same. */
#include "sweep.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(checkpoint_crash, mounts_show_the_same_with_and_without_it_when_power_fails_at_any_operation)
{
    static sweep now = {.name = "checkpoint", .seed = 11, .target = 8000};
    now.shape = sweep_checkpoint;
    sweep_run(&now, 900);
}

Test(checkpoint_crash, mounts_show_the_same_with_and_without_it_beside_logs_and_large_chunks)
{
    static sweep now = {.name = "checkpoint-log", .seed = 12, .target = 5000};
    now.shape = sweep_checkpoint_log;
    sweep_run(&now, 900);
}

Test(checkpoint_crash, mounts_show_the_same_with_and_without_it_while_compaction_moves_records)
{
    static sweep now = {.name = "tidy", .seed = 14, .target = 10000};
    now.shape = sweep_tidy;
    sweep_run(&now, 2500);
}

Test(checkpoint_crash, mounts_show_the_same_with_and_without_it_when_threads_write)
{
    static sweep now = {.name = "checkpoint-threads", .seed = 13, .target = 4000, .threaded = true};
    now.shape = sweep_checkpoint;
    sweep_run(&now, 500);
}
