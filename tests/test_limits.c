/* Limits that many writers reach at once. */
#define _GNU_SOURCE
#include "store.h"

#include <pthread.h>

enum { THREADS = 64, ROUNDS = 200, LIMIT = 40000, LENGTH = 700 };

typedef struct worker {
    store *s;
    ckb_writer *writer;
    uint64_t container;
    uint32_t number;
    uint32_t written;
    int status; /* of the write that did not go through */
} worker;

static void *write_until_refused(void *context)
{
    worker *me = context;
    uint8_t bytes[LENGTH];
    memset(bytes, (int)me->number, sizeof bytes);
    do {
        ckb_chunk_id id = {me->container, me->number, me->written};
        me->status = ckb_chunk_write(me->writer, &id, bytes, sizeof bytes, 0);
        me->written += me->status == CKB_OK;
    } while (me->status == CKB_OK);
    return NULL;
}

Test(limits, of_a_container_are_reached_exactly_by_64_threads)
{
    static worker workers[THREADS];
    static pthread_t threads[THREADS];
    ckb_config config = {.max_chunks = 4000, .max_containers = 8, .container_bytes = LIMIT};
    store *s = store_new_with(SEGMENT_BYTES, 24, UNIT, &config);
    for (uint64_t round = 0; round < ROUNDS; round++) {
        uint64_t container = 100 + round;
        uint32_t written = 0;
        cr_assert_eq(ckb_container_create(s->volume, container), CKB_OK, "round %u", (unsigned)round);
        for (uint32_t n = 0; n < THREADS; n++) {
            workers[n] = (worker){s, s->writer, container, n, 0, CKB_OK};
            cr_assert_eq(pthread_create(&threads[n], NULL, write_until_refused, &workers[n]), 0);
        }
        for (uint32_t n = 0; n < THREADS; n++) {
            pthread_join(threads[n], NULL);
            cr_assert_eq(workers[n].status, CKB_TOOBIG, "%d", workers[n].status);
            written += workers[n].written;
        }
        cr_assert_eq(written, LIMIT / LENGTH, "round %u: %u chunks", (unsigned)round, written);
        ckb_container_info info;
        cr_assert_eq(ckb_container_stat(s->volume, container, &info), CKB_OK);
        cr_assert_eq(info.bytes, (LIMIT / LENGTH) * LENGTH);
        cr_assert_eq(info.chunks, LIMIT / LENGTH);
        cr_assert_eq(ckb_container_delete(s->volume, container), CKB_OK);
        cr_assert_eq(ckb_maintain(s->volume, 100, NULL), CKB_OK);
    }
    store_free(s);
}

Test(limits, of_a_container_leave_room_for_what_is_replaced_or_deleted)
{
    ckb_config config = {.container_bytes = 1000};
    store *s = store_new_with(SEGMENT_BYTES, SEGMENTS, UNIT, &config);
    uint8_t bytes[1001] = {0};
    ckb_chunk_id a = chunk_id(1), b = chunk_id(2);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 1001, 0), CKB_TOOBIG);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 600, 0), CKB_OK);
    cr_assert_eq(ckb_chunk_write(s->writer, &b, bytes, 401, 0), CKB_TOOBIG);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 1000, CKB_OVERWRITE), CKB_OK);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 1001, CKB_OVERWRITE), CKB_TOOBIG);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 300, CKB_OVERWRITE), CKB_OK);
    cr_assert_eq(ckb_chunk_write(s->writer, &b, bytes, 700, 0), CKB_OK);
    cr_assert_eq(ckb_chunk_delete(s->writer, &a, 0), CKB_OK);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 301, CKB_OVERWRITE), CKB_TOOBIG);
    cr_assert_eq(ckb_chunk_write(s->writer, &a, bytes, 300, CKB_OVERWRITE), CKB_OK);
    for (int look = 0; look < 2; look++) {
        ckb_container_info info;
        cr_assert_eq(ckb_container_stat(s->volume, 7, &info), CKB_OK);
        cr_assert_eq(info.bytes, 1000);
        cr_assert_eq(info.chunks, 2);
        cr_assert_eq(ckb_unmount(s->volume), CKB_OK);
        cr_assert_eq(store_mount(s), CKB_OK);
    }
    store_free(s);
}
