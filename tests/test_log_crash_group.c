/* Power cuts at any operation while several threads commit to logs together, and with larger units. */
#include "sweep.h"

#include <criterion/criterion.h>

Test(log_crash_group, keeps_acknowledged_entries_of_group_commits_when_power_fails)
{
    static sweep now = {.name = "log-threads", .seed = 14, .target = 40000, .threaded = true};
    now.shape = sweep_log_64;
    sweep_run(&now, 600);
}

Test(log_crash_group, keeps_acknowledged_entries_in_units_of_256_bytes)
{
    static sweep now = {.name = "log-256", .seed = 15, .target = 36000};
    now.shape = sweep_log_256;
    sweep_run(&now, 1200);
}

Test(log_crash_group, keeps_acknowledged_entries_in_sectors_of_512_bytes)
{
    static sweep now = {.name = "log-512", .seed = 16, .target = 20000};
    now.shape = sweep_log_512;
    sweep_run(&now, 900);
}

Test(log_crash_group, keeps_acknowledged_entries_in_pages_of_4096_bytes)
{
    static sweep now = {.name = "log-4096", .seed = 17, .target = 5000};
    now.shape = sweep_log_4096;
    sweep_run(&now, 400);
}
