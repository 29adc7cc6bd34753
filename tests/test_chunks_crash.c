/* Power cuts at any operation of a chunk workload, and of a format. */
#include "sweep.h"

#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

Test(chunks_crash, keep_acknowledged_bytes_when_power_fails_at_any_operation)
{
    static sweep now = {.name = "one", .seed = 1, .target = 34000};
    now.shape = sweep_small;
    sweep_run(&now, 1500);
}

Test(chunks_crash, keep_large_chunks_when_power_fails)
{
    static sweep now = {.name = "large", .seed = 4, .target = 8000};
    now.shape = sweep_large;
    sweep_run(&now, 700);
}

Test(chunks_crash, keep_what_compaction_moves_when_power_fails)
{
    static sweep now = {.name = "compact", .seed = 11, .target = 12000};
    now.shape = sweep_compact;
    sweep_run(&now, 2500);
}

Test(chunks_crash, keep_large_chunks_that_compaction_moves_when_power_fails)
{
    static sweep now = {.name = "compact-large", .seed = 12, .target = 4000};
    now.shape = sweep_compact_large;
    sweep_run(&now, 900);
}

Test(chunks_crash, keep_what_a_journal_of_several_segments_says_when_power_fails)
{
    static sweep now = {.name = "many", .seed = 7, .target = 8000};
    now.shape = sweep_many;
    sweep_run(&now, 700);
}

Test(chunks_crash, sweep_notices_a_medium_that_forgets_what_was_synced)
{
    static sweep now = {.name = "control", .seed = 5, .target = 3000, .forget_syncs = true};
    now.shape = sweep_small;
    if (!getenv("CKB_REPLAY")) {
        sweep_control(&now, 60);
    }
}

/* Power fails while a volume is formatted again: the old volume, the new one, or none; never a mixture. */
static void check_format_state(test_world *world, const uint8_t *image, bool begun, bool done, size_t step,
                               uint64_t choice)
{
    uint8_t payload[100];
    size_t got = 0;
    world_load(world, image, NULL);
    int status = world_mount(world);
    bool none = status == CKB_NOTFOUND || status == CKB_CORRUPT;
    cr_expect(status == CKB_OK || (none && begun && !done), "step %zu choice %d: mount says %s", step,
              (int)choice, ckb_status_text(status));
    if (status != CKB_OK) {
        return;
    }
    ckb_container_info info;
    ckb_chunk_id id = world_chunk_id(world, 0);
    int container = ckb_container_stat(world->volume, id.container, &info);
    int chunk = ckb_chunk_read(world->reader, &id, 0, payload, sizeof payload, &got);
    bool is_old =
        container == CKB_OK && chunk == CKB_OK && got == 100 && payload[0] == 'o' && payload[99] == 'o';
    bool is_new = container == CKB_NOTFOUND && chunk == CKB_NOTFOUND;
    cr_expect((is_old && !done) || (is_new && begun), "step %zu choice %d: container %s, chunk %s", step,
              (int)choice, ckb_status_text(container), ckb_status_text(chunk));
}

Test(chunks_crash, format_leaves_the_old_volume_the_new_one_or_none_when_power_fails)
{
    static test_world old, mounted;
    world_table *table = world_table_new();
    media_cursor cursor;
    uint8_t payload[100];
    size_t bytes = media_volume_bytes(&sweep_small.geometry);
    uint8_t *base = media_alloc(bytes), *image = media_alloc(bytes);
    world_init(&old, &sweep_small, table, NULL);
    world_init(&mounted, &sweep_small, table, NULL);
    memset(payload, 'o', sizeof payload);
    cr_assert_eq(world_format(&old, 50), CKB_OK);
    cr_assert_eq(world_mount(&old), CKB_OK);
    cr_assert_eq(world_writer_open(&old, 0), CKB_OK);
    cr_assert_eq(world_create(&old, 0), CKB_OK);
    cr_assert_eq(world_put(&old, 0, 0, payload, sizeof payload, 0), CKB_OK);
    cr_assert_eq(world_unmount(&old), CKB_OK);
    memcpy(base, old.ram.image, bytes);
    media_crash_restart(&old.crash);
    cr_assert_eq(world_format(&old, 51), CKB_OK);
    media_cursor_init(&cursor, &old.crash, &sweep_small.geometry, base);
    size_t steps = media_crash_steps(&old.crash), states = 0;
    do {
        for (uint64_t choice = 0; choice < 100; choice++, states++) {
            media_cursor_materialise(&cursor, 50, choice, image);
            check_format_state(&mounted, image, cursor.step > 0, cursor.step == steps, cursor.step, choice);
        }
    } while (media_cursor_advance(&cursor));
    printf("format: %zu states\n", states);
    media_cursor_free(&cursor);
    world_free(&old);
    world_free(&mounted);
    world_table_free(table);
    free(base);
    free(image);
}
