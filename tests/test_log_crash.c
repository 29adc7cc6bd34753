/* Power cuts at any operation of a workload on logs, with chunks in the same volume. */
#include "sweep.h"

#include <criterion/criterion.h>
#include <stdlib.h>

Test(log_crash, keeps_acknowledged_entries_when_power_fails_at_any_operation)
{
    static sweep now = {.name = "log-64", .seed = 11, .target = 60000};
    now.shape = sweep_log_64;
    sweep_run(&now, 1500);
}

Test(log_crash, keeps_acknowledged_entries_in_units_of_8_bytes)
{
    static sweep now = {.name = "log-8", .seed = 12, .target = 40000};
    now.shape = sweep_log_8;
    sweep_run(&now, 1200);
}

Test(log_crash, sweep_notices_a_medium_that_forgets_what_was_synced)
{
    static sweep now = {.name = "log-control", .seed = 13, .target = 3000, .forget_syncs = true};
    now.shape = sweep_log_64;
    if (!getenv("CKB_REPLAY")) {
        sweep_control(&now, 60);
    }
}
