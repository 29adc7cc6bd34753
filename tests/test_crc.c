/* CRC-32C through the public function: published vectors, every path of the implementation against a
 * bitwise reference, and the property that callers rely on: a result can be continued. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "chunkbench.h"

enum { SWEEP_BYTES = 1500, ALIGNMENT_COUNT = 16 };

/* One bit at a time, straight from the definition. */
static uint32_t reference_crc(const unsigned char *bytes, size_t count)
{
    uint32_t state = UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        state ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            state = state >> 1 ^ (state & 1 ? UINT32_C(0x82F63B78) : 0);
    }
    return ~state;
}

static unsigned char *random_bytes(size_t count)
{
    unsigned char *bytes = malloc(count);
    cr_assert_not_null(bytes);
    uint32_t state = 2463534242u;
    for (size_t i = 0; i < count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        bytes[i] = (unsigned char)(state >> 24);
    }
    return bytes;
}

Test(crc, thirty_two_zeros_give_the_value_of_rfc_3720)
{
    const unsigned char bytes[32] = {0};
    cr_assert_eq(ckb_crc32c(0, bytes, sizeof bytes), UINT32_C(0x8A9136AA));
}

Test(crc, thirty_two_ones_give_the_value_of_rfc_3720)
{
    unsigned char bytes[32];
    memset(bytes, 0xFF, sizeof bytes);
    cr_assert_eq(ckb_crc32c(0, bytes, sizeof bytes), UINT32_C(0x62A8AB43));
}

Test(crc, incrementing_bytes_give_the_value_of_rfc_3720)
{
    unsigned char bytes[32];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)i;
    cr_assert_eq(ckb_crc32c(0, bytes, sizeof bytes), UINT32_C(0x46DD794E));
}

Test(crc, decrementing_bytes_give_the_value_of_rfc_3720)
{
    unsigned char bytes[32];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (unsigned char)(31 - i);
    cr_assert_eq(ckb_crc32c(0, bytes, sizeof bytes), UINT32_C(0x113FDB5C));
}

Test(crc, the_nine_digits_give_the_check_value_of_the_catalogue)
{
    cr_assert_eq(ckb_crc32c(0, "123456789", 9), UINT32_C(0xE3069283));
}

Test(crc, no_bytes_change_nothing)
{
    cr_assert_eq(ckb_crc32c(0, NULL, 0), 0u);
    cr_assert_eq(ckb_crc32c(UINT32_C(0xE3069283), NULL, 0), UINT32_C(0xE3069283));
}

Test(crc, every_length_at_every_alignment_agrees_with_the_definition)
{
    unsigned char *bytes = random_bytes(SWEEP_BYTES + ALIGNMENT_COUNT);
    for (size_t start = 0; start < ALIGNMENT_COUNT; start++)
        for (size_t count = 0; count <= SWEEP_BYTES; count++)
            cr_assert_eq(ckb_crc32c(0, bytes + start, count), reference_crc(bytes + start, count),
                         "alignment %zu, length %zu", start, count);
    free(bytes);
}

Test(crc, lengths_around_large_blocks_agree_with_the_definition)
{
    const size_t counts[] = {4095, 4096, 4097, 16384, 64895, 64896, 64897, 65536, 129792, 129793, 200003};
    unsigned char *bytes = random_bytes(200004);
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        cr_assert_eq(ckb_crc32c(0, bytes + 1, counts[i]), reference_crc(bytes + 1, counts[i]), "length %zu",
                     counts[i]);
    free(bytes);
}

Test(crc, a_result_continues_across_any_split)
{
    enum { BYTES = 2000 };
    unsigned char *bytes = random_bytes(BYTES);
    const uint32_t whole = ckb_crc32c(0, bytes, BYTES);
    for (size_t cut = 0; cut <= BYTES; cut++)
        cr_assert_eq(ckb_crc32c(ckb_crc32c(0, bytes, cut), bytes + cut, BYTES - cut), whole, "split at %zu",
                     cut);
    free(bytes);
}

Test(crc, every_single_bit_flip_in_a_chunk_changes_the_result)
{
    enum { BYTES = 1024 };
    unsigned char *bytes = random_bytes(BYTES);
    const uint32_t whole = ckb_crc32c(0, bytes, BYTES);
    for (size_t bit = 0; bit < (size_t)8 * BYTES; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
        cr_assert_neq(ckb_crc32c(0, bytes, BYTES), whole, "bit %zu", bit);
        bytes[bit / 8] ^= (unsigned char)(1u << bit % 8);
    }
    free(bytes);
}
