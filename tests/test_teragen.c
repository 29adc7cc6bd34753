/* The rows of TeraGen and their checksums, against what others made. */
#define _GNU_SOURCE
#include "test.h"

#include "chunkbench.h"

enum { BATCH = 100 };

static void row_hex(uint64_t row, char hex[2 * CKB_TERAGEN_ROW_BYTES + 1])
{
    uint8_t bytes[CKB_TERAGEN_ROW_BYTES];
    ckb_teragen teragen;
    ckb_teragen_seek(&teragen, row);
    ckb_teragen_make(&teragen, bytes, 1);
    for (size_t i = 0; i < sizeof bytes; i++) {
        snprintf(hex + 2 * i, 3, "%02x", bytes[i]);
    }
}

/* The sum of rows `first` to before `end`. */
static ckb_teragen_sum sum_of(const ckb_crc32_table *table, uint64_t first, uint64_t end)
{
    static uint8_t rows[BATCH * CKB_TERAGEN_ROW_BYTES];
    ckb_teragen_sum sum = {0, 0};
    ckb_teragen teragen;
    ckb_teragen_seek(&teragen, first);
    while (teragen.row < end) {
        size_t count = end - teragen.row < BATCH ? (size_t)(end - teragen.row) : BATCH;
        ckb_teragen_make(&teragen, rows, count);
        ckb_teragen_add(&sum, table, rows, count);
    }
    return sum;
}

/* As printed by TeraGen itself. */
static const char *const field_rows[] = {
    "4a696d47726179524950001130303030303030303030303030303030303030303030303030303030"
    "303030308899aabb3232323230303030323232323030303032323232303030303232323230303030"
    "32323232303030303030303031313131ccddeeff",
    "95e0e48262b3edfe0447001130303030303030303030303030303030303030303030303030303030"
    "303030318899aabb3939393934343434383838383535353543434343373737373535353535353535"
    "42424242363636363434343436363636ccddeeff",
};

Test(teragen, makes_the_rows_that_the_field_makes)
{
    char hex[2 * CKB_TERAGEN_ROW_BYTES + 1];
    for (uint64_t row = 0; row < sizeof field_rows / sizeof field_rows[0]; row++) {
        row_hex(row, hex);
        cr_assert_str_eq(hex, field_rows[row], "row %d", (int)row);
    }
}

Test(teragen, makes_rows_alike_from_any_row_on)
{
    static uint8_t rows[1000 * CKB_TERAGEN_ROW_BYTES], one[CKB_TERAGEN_ROW_BYTES];
    ckb_teragen teragen;
    ckb_teragen_seek(&teragen, 0);
    ckb_teragen_make(&teragen, rows, 1000);
    for (uint64_t row = 0; row < 1000; row++) {
        ckb_teragen_seek(&teragen, row);
        ckb_teragen_make(&teragen, one, 1);
        cr_assert_arr_eq(one, rows + row * CKB_TERAGEN_ROW_BYTES, sizeof one);
    }
    ckb_teragen_seek(&teragen, UINT64_C(0xFEDCBA9876543210));
    ckb_teragen_make(&teragen, one, 1);
    cr_assert_arr_eq(one + 12, "0000000000000000FEDCBA9876543210", 32);
}

Test(teragen, sums_as_the_field_prints_them)
{
    static ckb_crc32_table table;
    ckb_crc32_table_init(&table);
    cr_assert_eq(sum_of(&table, 0, 1000).low, UINT64_C(2173251765740));
    cr_assert_eq(sum_of(&table, 0, 10000).low, UINT64_C(21555350172850));
    cr_assert_eq(sum_of(&table, 0, 1000000).low, UINT64_C(2148987642402270));
    cr_assert_eq(sum_of(&table, 0, 333).low + sum_of(&table, 333, 1000).low, UINT64_C(2173251765740));
}

Test(teragen, sum_carries_into_its_upper_half)
{
    static ckb_crc32_table table;
    uint8_t row[CKB_TERAGEN_ROW_BYTES] = {1};
    ckb_teragen_sum sum = {UINT64_MAX, 7};
    ckb_crc32_table_init(&table);
    ckb_teragen_add(&sum, &table, row, 1);
    cr_assert_eq(sum.high, 8);
    cr_assert_eq(sum.low, ckb_crc32(&table, 0, row, sizeof row) - 1);
}

/* Bit by bit, straight from the polynomial. */
static uint32_t crc32_slowly(const uint8_t *bytes, size_t length)
{
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        state ^= bytes[i];
        for (unsigned bit = 0; bit < 8; bit++) {
            state = state & 1 ? state >> 1 ^ 0xEDB88320u : state >> 1;
        }
    }
    return ~state;
}

Test(teragen, crc32_is_that_of_zlib_for_any_length_and_place)
{
    static ckb_crc32_table table;
    uint8_t bytes[300];
    ckb_crc32_table_init(&table);
    cr_assert_eq(ckb_crc32(&table, 0, "123456789", 9), 0xCBF43926u);
    cr_assert_eq(ckb_crc32(&table, 0, "", 0), 0);
    test_fill(bytes, sizeof bytes, 4);
    for (size_t from = 0; from < 9; from++) {
        for (size_t length = 0; length < 280; length++) {
            uint32_t crc = ckb_crc32(&table, 0, bytes + from, length);
            cr_assert_eq(crc, crc32_slowly(bytes + from, length));
            uint32_t half = ckb_crc32(&table, 0, bytes + from, length / 3);
            cr_assert_eq(ckb_crc32(&table, half, bytes + from + length / 3, length - length / 3), crc);
        }
    }
}
