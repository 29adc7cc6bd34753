/* Power cuts at any operation while several threads share writers, and of a second history. */
#include "sweep.h"

#include <criterion/criterion.h>

Test(chunks_crash_group, keep_acknowledged_bytes_when_power_fails_at_any_operation_of_another_history)
{
    static sweep now = {.name = "two", .seed = 2, .target = 34000};
    now.shape = sweep_small;
    sweep_run(&now, 1500);
}

Test(chunks_crash_group, keep_acknowledged_bytes_of_group_commits_when_power_fails)
{
    static sweep now = {.name = "threads", .seed = 3, .target = 30000, .threaded = true};
    now.shape = sweep_small;
    sweep_run(&now, 600);
}
