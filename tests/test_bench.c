/* The bench part: statistics, numbers, options, and whole runs of the workloads over RAM with a clock that
 * only moves when something takes time. It compiles the implementation into itself to reach its insides. */
#define CHUNKBENCH_IMPLEMENTATION
#include "chunkbench.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "platform.h"
#include "ports.h"

/* ------------------------------------------------------------------------------------------ >>histogram */

static ckb_histogram histogram_make(unsigned digits)
{
    ckb_histogram histogram;
    size_t bytes = ckb_histogram_memory(digits);
    cr_assert_eq(ckb_histogram_init(&histogram, digits, malloc(bytes), bytes), CKB_OK);
    return histogram;
}

/* C114: the rank is an integer, so one sample per bucket gives exactly that sample. */
Test(histogram, percentiles_have_exact_ranks_for_1_to_5000_samples)
{
    static const uint32_t percentiles[] = {50000, 75000, 90000, 95000, 99000, 99900, 99950, 99990};
    ckb_histogram histogram = histogram_make(3);
    for (uint32_t n = 1; n <= 5000; n++) {
        ckb_histogram_add(&histogram, ckbi_histogram_middle(histogram.sub_bits, n - 1));
        for (size_t i = 0; i < sizeof percentiles / sizeof percentiles[0]; i++) {
            uint32_t rank = (uint32_t)(((uint64_t)n * percentiles[i] + 99999) / 100000);
            uint64_t expected = ckbi_histogram_middle(histogram.sub_bits, rank - 1);
            cr_assert_eq(ckb_histogram_percentile(&histogram, percentiles[i]), expected, "n %u percentile %u",
                         n, percentiles[i]);
        }
    }
    free(histogram.buckets);
}

Test(histogram, keeps_three_significant_digits_from_1_ns_to_hours)
{
    static const struct {
        unsigned digits;
        uint64_t parts;
    } precisions[] = {{3, 1000}, {2, 100}, {1, 10}};
    uint64_t random = 1;
    for (size_t i = 0; i < 3; i++) {
        ckb_histogram histogram = histogram_make(precisions[i].digits);
        for (unsigned k = 0; k < 200000; k++) {
            random = ckbi_mix(random);
            uint64_t value = random >> (20 + random % 44);
            uint64_t shown =
                ckbi_histogram_middle(histogram.sub_bits, ckbi_histogram_place(histogram.sub_bits, value));
            uint64_t error = shown > value ? shown - value : value - shown;
            cr_assert(error * precisions[i].parts <= value, "%u digits: %llu became %llu", precisions[i].digits,
                      (unsigned long long)value, (unsigned long long)shown);
        }
        free(histogram.buckets);
    }
    cr_assert_eq(ckb_histogram_memory(4), 0);
    cr_assert_eq(ckb_histogram_memory(0), ckb_histogram_memory(3));
}

Test(histogram, true_maximum_survives_beyond_the_last_bucket)
{
    ckb_histogram histogram = histogram_make(3);
    ckb_histogram_add(&histogram, 5);
    ckb_histogram_add(&histogram, UINT64_MAX);
    cr_assert_eq(histogram.max, UINT64_MAX);
    cr_assert_eq(histogram.min, 5);
    cr_assert_eq(ckb_histogram_percentile(&histogram, 50000), 5);
    free(histogram.buckets);
}

static void histogram_compare(const ckb_histogram *a, const ckb_histogram *b)
{
    cr_assert_eq(a->count, b->count);
    cr_assert_eq(a->sum, b->sum);
    cr_assert_eq(a->min, b->min);
    cr_assert_eq(a->max, b->max);
    cr_assert_eq(a->squares_low, b->squares_low);
    cr_assert_eq(a->squares_high, b->squares_high);
    cr_assert_eq(memcmp(a->buckets, b->buckets, a->bucket_count * sizeof(uint64_t)), 0);
}

Test(histogram, merging_in_any_order_equals_one_histogram_of_all)
{
    ckb_histogram parts[3], left = histogram_make(3), right = histogram_make(3), all = histogram_make(3);
    uint64_t random = 7;
    for (unsigned p = 0; p < 3; p++)
        parts[p] = histogram_make(3);
    for (unsigned k = 0; k < 30000; k++) {
        random = ckbi_mix(random);
        uint64_t value = random >> (12 + random % 50);
        ckb_histogram_add(&parts[k % 7 % 3], value);
        ckb_histogram_add(&all, value);
    }
    for (unsigned p = 0; p < 3; p++) {
        cr_assert_eq(ckb_histogram_merge(&left, &parts[p]), CKB_OK);
        cr_assert_eq(ckb_histogram_merge(&right, &parts[2 - p]), CKB_OK);
    }
    histogram_compare(&left, &all);
    histogram_compare(&right, &all);
    ckb_histogram coarse = histogram_make(2);
    cr_assert_eq(ckb_histogram_merge(&all, &coarse), CKB_INVALID);
    ckb_histogram *const made[] = {&left, &right, &all, &coarse, &parts[0], &parts[1], &parts[2]};
    for (size_t i = 0; i < sizeof made / sizeof made[0]; i++)
        free(made[i]->buckets);
}

Test(histogram, mean_and_deviation_are_those_of_all_values)
{
    ckb_histogram histogram = histogram_make(3);
    ckb_latency latency;
    long double sum = 0, squares = 0, mean;
    static uint64_t values[100000];
    for (unsigned k = 0; k < 100000; k++) {
        values[k] = UINT64_C(1000000000000) + ckbi_mix(k) % 1000; /* a large mean and a small deviation */
        ckb_histogram_add(&histogram, values[k]);
        sum += (long double)values[k];
    }
    mean = sum / 100000;
    for (unsigned k = 0; k < 100000; k++)
        squares += ((long double)values[k] - mean) * ((long double)values[k] - mean);
    ckb_histogram_latency(&histogram, &latency);
    cr_assert_float_eq(latency.mean, (double)mean, 0.001);
    cr_assert_float_eq(latency.stddev, sqrt((double)(squares / 100000)), 0.0001);
    free(histogram.buckets);
}

/* C113: without values everything is there and nothing is made up. */
Test(histogram, empty_one_has_no_values)
{
    ckb_histogram histogram = histogram_make(3), other = histogram_make(3);
    ckb_latency latency;
    ckb_histogram_merge(&other, &histogram);
    ckb_histogram_latency(&other, &latency);
    cr_assert_eq(latency.count, 0);
    cr_assert_eq(latency.max, 0);
    cr_assert_eq(ckb_histogram_percentile(&other, 99000), 0);
    ckb_histogram_add(&other, 42);
    ckb_histogram_latency(&other, &latency);
    cr_assert_eq(latency.p999, 42);
    cr_assert_eq(latency.stddev, 0.0);
    free(histogram.buckets);
    free(other.buckets);
}

/* ------------------------------------------------------------------------------------------ >>meter */

/* Events of three 5 s ticks (or one), and what Dropwizard Metrics 3.2.4 makes of them. */
Test(meter, rates_equal_dropwizards_to_the_last_digit)
{
    static const struct {
        uint64_t events[3];
        const char *rates[3];
    } vectors[] = {
        {{594122}, {"118824.4", "118824.4", "118824.4"}},
        {{584982}, {"116996.40000000001", "116996.40000000001", "116996.40000000001"}},
        {{825057}, {"165011.40000000002", "165011.40000000002", "165011.40000000002"}},
        {{935643}, {"187128.59999999998", "187128.59999999998", "187128.59999999998"}},
        {{262752, 289556, 297473}, {"53499.98244308232", "52752.31922855491", "52618.40702974219"}},
        {{253849, 293537, 307893}, {"52217.93513722455", "51077.48224260141", "50873.41427434891"}},
        {{270207, 309418, 303603}, {"55152.33267127673", "54279.27519759456", "54121.6100603089"}},
    };
    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        ckb_meter meter;
        double rates[3];
        char text[CKB_DOUBLE_TEXT_BYTES];
        uint64_t now_ns = 1000;
        ckb_meter_start(&meter, now_ns);
        for (unsigned k = 0; k < 3 && vectors[i].events[k] != 0; k++) {
            ckb_meter_mark(&meter, now_ns + 1, vectors[i].events[k]);
            now_ns += UINT64_C(5000000001);
        }
        ckb_meter_rates(&meter, now_ns, rates);
        for (unsigned k = 0; k < 3; k++) {
            ckb_double_text(rates[k], text);
            cr_assert_str_eq(text, vectors[i].rates[k], "vector %zu rate %u", i, k);
        }
    }
}

Test(meter, ticks_only_after_more_than_five_seconds)
{
    ckb_meter meter;
    double rates[3];
    ckb_meter_start(&meter, 0);
    ckb_meter_mark(&meter, 0, 100);
    cr_assert_eq(ckb_meter_rates(&meter, UINT64_C(5000000000), rates), 20.0);
    cr_assert_eq(rates[0], 0.0);
    ckb_meter_rates(&meter, UINT64_C(5000000001), rates);
    cr_assert_float_eq(rates[0], 20.0, 1e-9);
    cr_assert_eq(ckb_meter_rates(&meter, 0, rates), 0.0, "no time has passed: no rate");
}

/* ------------------------------------------------------------------------------------------ >>numbers */

static const char *double_text(double value)
{
    static char text[CKB_DOUBLE_TEXT_BYTES];
    cr_assert_eq(ckb_double_text(value, text), strlen(text));
    return text;
}

Test(numbers, doubles_print_as_java_prints_them)
{
    cr_assert_str_eq(double_text(0.0), "0.0");
    cr_assert_str_eq(double_text(1.0), "1.0");
    cr_assert_str_eq(double_text(-2.5), "-2.5");
    cr_assert_str_eq(double_text(9999999.0), "9999999.0");
    cr_assert_str_eq(double_text(1e7), "1.0E7");
    cr_assert_str_eq(double_text(12345678.0), "1.2345678E7");
    cr_assert_str_eq(double_text(0.001), "0.001");
    cr_assert_str_eq(double_text(9e-4), "9.0E-4");
    cr_assert_str_eq(double_text(1e23), "1.0E23");
    cr_assert_str_eq(double_text(1.7976931348623157e308), "1.7976931348623157E308");
    cr_assert_str_eq(double_text(11550.5015735705), "11550.5015735705");
    cr_assert_str_eq(double_text(NAN), "0.0");
    cr_assert_str_eq(double_text(INFINITY), "0.0");
    /* Durations of the field's line, from whole nanoseconds to milliseconds. */
    cr_assert_str_eq(double_text(35166 / 1e6), "0.035166");
    cr_assert_str_eq(double_text(72524 / 1e6), "0.072524");
    cr_assert_str_eq(double_text(85028 / 1e6), "0.085028");
    cr_assert_str_eq(double_text(263912 / 1e6), "0.263912");
}

/* Digits before an exponent, without leading and trailing zeros. */
static size_t significant_digits(const char *text)
{
    size_t count = 0, zeros = 0;
    for (; *text != '\0' && *text != 'E' && *text != 'e'; text++) {
        if (*text < '0' || *text > '9')
            continue;
        zeros = *text == '0' ? zeros + 1 : 0;
        count += count != 0 || *text != '0';
    }
    return count > zeros ? count - zeros : 1;
}

Test(numbers, doubles_read_back_and_none_is_longer_than_needed)
{
    uint64_t random = 3;
    for (unsigned k = 0; k < 300000; k++) {
        double value, decimal = (double)(random % 1000000000) / 1000.0;
        char shortest[40];
        random = ckbi_mix(random);
        memcpy(&value, &random, sizeof value);
        value = k % 3 == 0 ? decimal : k % 3 == 1 ? (double)(random >> 20) / 1e6 : value;
        if (!isfinite(value))
            continue;
        const char *text = double_text(value);
        cr_assert_eq(strtod(text, NULL), value, "%s is not %.17g", text, value);
        for (int digits = 1; digits <= 17; digits++) {
            (void)snprintf(shortest, sizeof shortest, "%.*e", digits - 1, value);
            if (strtod(shortest, NULL) == value)
                break;
        }
        cr_assert_leq(significant_digits(text), significant_digits(shortest), "%s, but %s is enough", text,
                      shortest);
    }
}

/* What a function of `out` prints. */
#define PRINTED(call) \
    do { \
        ckbi_message printed_message; \
        ckbi_out *out = ckbi_message_start(&printed_message, printed, sizeof printed); \
        call; \
        ckbi_out_end(out); \
    } while (0)

Test(numbers, people_see_units_and_three_digits)
{
    static const struct {
        uint64_t duration_ns;
        const char *text;
    } durations[] = {{0, "0 ns"},
                     {999, "999 ns"},
                     {1000, "1.00 us"},
                     {12340, "12.3 us"},
                     {123456, "123 us"},
                     {1500000, "1.50 ms"},
                     {UINT64_C(2000000000), "2.00 s"},
                     {UINT64_C(7200000000000), "7200 s"}};
    static const struct {
        uint64_t size_bytes;
        const char *text;
    } sizes[] = {{0, "0 B"},       {1, "1 B"},         {1024, "1 KiB"},
                 {1025, "1025 B"}, {1 << 20, "1 MiB"}, {(1 << 20) + (1 << 18), "1.25 MiB"}};
    char printed[64];
    for (size_t i = 0; i < sizeof durations / sizeof durations[0]; i++) {
        PRINTED(ckbi_out_duration(out, durations[i].duration_ns));
        cr_assert_str_eq(printed, durations[i].text);
    }
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        PRINTED(ckbi_out_size(out, sizes[i].size_bytes));
        cr_assert_str_eq(printed, sizes[i].text);
    }
    PRINTED(ckbi_out_fixed(out, 1.9996, 3));
    cr_assert_str_eq(printed, "2.000");
    PRINTED(ckbi_out_fixed(out, -0.0625, 2));
    cr_assert_str_eq(printed, "-0.06");
    PRINTED(ckbi_out_fixed(out, NAN, 2));
    cr_assert_str_eq(printed, "-");
}

/* ------------------------------------------------------------------------------------------ >>options */

static const ckb_option table[] = {
    {"count", 'n', CKB_OPTION_COUNT, false, "COUNT", "1000", 1, 1000000, NULL, "how many"},
    {"threads", 't', CKB_OPTION_COUNT, true, "LIST", "1,2", 1, 1024, NULL, "threads"},
    {"size", 's', CKB_OPTION_SIZE, true, "LIST", "1K", 1, UINT64_C(1) << 30, NULL, "size"},
    {"time", '\0', CKB_OPTION_DURATION, false, "TIME", NULL, 1000000, UINT64_C(3600000000000000), NULL, "time"},
    {"rate", 'r', CKB_OPTION_RATE, false, "RATE", NULL, 1, 1000000, NULL, "rate"},
    {"sync", '\0', CKB_OPTION_CHOICE, true, "LIST", "end", 1, 65536, "none|end|each", "sync"},
    {"format", '\0', CKB_OPTION_CHOICE, false, "FORMAT", "text", 0, 0, "text|json", "format"},
    {"name", 'p', CKB_OPTION_TEXT, false, "TEXT", NULL, 1, 8, NULL, "name"},
    {"verify", 'v', CKB_OPTION_FLAG, false, NULL, NULL, 0, 0, NULL, "verify"},
};

enum { COUNT, THREADS, SIZE, TIME, RATE, SYNC, FORMAT, NAME, VERIFY, TABLE_COUNT };

static ckb_option_value parsed[TABLE_COUNT];
static const char *operands[2];
static uint32_t operand_count;
static char message[256];

/* Splits `line` at spaces; "''" stands for an empty argument. */
static int parse(const char *line)
{
    static char copy[512];
    const char *arguments[32];
    const ckb_option_set set = {table, TABLE_COUNT, parsed};
    int count = 0;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
        arguments[count++] = strcmp(at, "''") == 0 ? "" : at;
    ckb_options_defaults(&set);
    return ckb_options_parse(&set, 1, count, arguments, operands, 2, &operand_count, message, sizeof message);
}

Test(options, defaults_come_from_the_table)
{
    cr_assert_eq(parse(""), CKB_OK);
    cr_assert_eq(parsed[COUNT].number[0], 1000);
    cr_assert_not(parsed[COUNT].given);
    cr_assert_eq(parsed[THREADS].count, 2);
    cr_assert_eq(parsed[SIZE].number[0], 1024);
    cr_assert_eq(parsed[TIME].count, 0);
    cr_assert(parsed[SYNC].chosen[0] && parsed[SYNC].number[0] == 1);
    cr_assert_eq(parsed[VERIFY].count, 0);
}

Test(options, values_are_taken_in_every_form)
{
    cr_assert_eq(parse("-n5 --threads=1,5,10,60 ram:1G -s 1,1k,4K,1M,2MiB,3KB,1G --time 1.5ms -v -- -n"),
                 CKB_OK);
    cr_assert_eq(parsed[COUNT].number[0], 5);
    cr_assert_eq(parsed[THREADS].count, 4);
    cr_assert_eq(parsed[THREADS].number[3], 60);
    static const uint64_t sizes[] = {1, 1024, 4096, 1 << 20, 2 << 20, 3072, 1 << 30};
    cr_assert_eq(parsed[SIZE].count, 7);
    cr_assert_eq(memcmp(parsed[SIZE].number, sizes, sizeof sizes), 0);
    cr_assert_eq(parsed[TIME].number[0], 1500000);
    cr_assert_eq(parsed[VERIFY].number[0], 1);
    cr_assert_eq(operand_count, 2);
    cr_assert_str_eq(operands[0], "ram:1G");
    cr_assert_str_eq(operands[1], "-n");
    cr_assert_eq(parse("--sync none,64,each -r 0.001 -p abc -"), CKB_OK);
    cr_assert(parsed[SYNC].count == 3 && parsed[SYNC].chosen[0] && !parsed[SYNC].chosen[1] &&
              parsed[SYNC].chosen[2]);
    cr_assert_eq(parsed[SYNC].number[1], 64);
    cr_assert_eq(parsed[RATE].number[0], 1);
    cr_assert_str_eq(parsed[NAME].text, "abc");
    cr_assert_str_eq(operands[0], "-");
    static const struct {
        const char *line;
        uint64_t duration_ns;
    } times[] = {{"--time 1000us", 1000000},
                 {"--time 2ms", 2000000},
                 {"--time 30s", UINT64_C(30000000000)},
                 {"--time 10m", UINT64_C(600000000000)},
                 {"--time 2h", UINT64_C(7200000000000)},
                 {"--time 0.001s", 1000000},
                 {"--time 1.000000009s", 1000000009},
                 {"--time 1000h", UINT64_C(3600000000000000)}};
    for (size_t i = 0; i < sizeof times / sizeof times[0]; i++) {
        cr_assert_eq(parse(times[i].line), CKB_OK, "%s: %s", times[i].line, message);
        cr_assert_eq(parsed[TIME].number[0], times[i].duration_ns, "%s", times[i].line);
    }
}

Test(options, refusals_name_option_value_and_bounds)
{
    static const struct {
        const char *line, *message;
    } bad[] = {
        {"-n 0", "--count: \"0\" is out of range (1 to 1000000)"},
        {"-n 1000001", "--count: \"1000001\" is out of range (1 to 1000000)"},
        {"-n -1", "--count: \"-1\" is not a count (digits; 1 to 1000000)"},
        {"-n +1", "--count: \"+1\" is not a count (digits; 1 to 1000000)"},
        {"-n ''", "--count: \"\" is not a count (digits; 1 to 1000000)"},
        {"-n 0x10", "--count: \"0x10\" is not a count (digits; 1 to 1000000)"},
        {"-n 1e3", "--count: \"1e3\" is not a count (digits; 1 to 1000000)"},
        {"-n 10K", "--count: \"10K\" is not a count (digits; 1 to 1000000)"},
        {"-n nan", "--count: \"nan\" is not a count (digits; 1 to 1000000)"},
        {"-n 18446744073709551617", "--count: \"18446744073709551617\" is out of range (1 to 1000000)"},
        {"-n 1,2", "--count: \"1,2\" is not a count (digits; 1 to 1000000)"},
        {"-n 99999999999999999999999999999999999999999x",
         "--count: \"9999999999999999999999999999999999999999...\" is not a count (digits; 1 to 1000000)"},
        {"-t 1,,2", "--threads: \"\" is not a count (digits; 1 to 1024)"},
        {"-t 1,", "--threads: \"\" is not a count (digits; 1 to 1024)"},
        {"-t 1,1025", "--threads: \"1025\" is out of range (1 to 1024)"},
        {"-t 4294967297", "--threads: \"4294967297\" is out of range (1 to 1024)"},
        {"-t 1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1",
         "--threads: more than 32 values in the list"},
        {"-s 0", "--size: \"0\" is out of range (1 to 1G)"},
        {"-s 0K", "--size: \"0K\" is out of range (1 to 1G)"},
        {"-s 1.5K", "--size: \"1.5K\" is not a size (digits, then K, M, G or T; 1 to 1G)"},
        {"-s K", "--size: \"K\" is not a size (digits, then K, M, G or T; 1 to 1G)"},
        {"-s 1KK", "--size: \"1KK\" is not a size (digits, then K, M, G or T; 1 to 1G)"},
        {"-s 1iB", "--size: \"1iB\" is not a size (digits, then K, M, G or T; 1 to 1G)"},
        {"-s 17179869184G", "--size: \"17179869184G\" is out of range (1 to 1G)"},
        {"--time 0s", "--time: \"0s\" is out of range (1ms to 1000h)"},
        {"--time 1ns", "--time: \"1ns\" is out of range (1ms to 1000h)"},
        {"--time 10", "--time: \"10\" is not a duration (digits, then ns, us, ms, s, m or h; 1ms to 1000h)"},
        {"--time -1s", "--time: \"-1s\" is not a duration (digits, then ns, us, ms, s, m or h; 1ms to 1000h)"},
        {"--time 1e9s",
         "--time: \"1e9s\" is not a duration (digits, then ns, us, ms, s, m or h; 1ms to 1000h)"},
        {"--time 1.s", "--time: \"1.s\" is not a duration (digits, then ns, us, ms, s, m or h; 1ms to 1000h)"},
        {"--time 99999999999999h", "--time: \"99999999999999h\" is out of range (1ms to 1000h)"},
        {"-r 0", "--rate: \"0\" is out of range (0.001 to 1000)"},
        {"-r 1,5", "--rate: \"1,5\" is not a rate (per second; 0.001 to 1000)"},
        {"-r inf", "--rate: \"inf\" is not a rate (per second; 0.001 to 1000)"},
        {"--sync sometimes", "--sync: \"sometimes\" is not known (none, end, each or 1 to 65536)"},
        {"--sync 0", "--sync: \"0\" is out of range (none, end, each or 1 to 65536)"},
        {"--format xml", "--format: \"xml\" is not known (text, json)"},
        {"-p ''", "--name: \"\" is out of range (at most 8 bytes)"},
        {"-p 123456789", "--name: \"123456789\" is out of range (at most 8 bytes)"},
        {"--verify=1", "--verify takes no value"},
        {"-n 1 --count 2", "--count is given twice"},
        {"-n", "--count wants a value"},
        {"--what 1", "unknown option --what"},
        {"-x", "unknown option -x"},
        {"a b c", "one argument too many: c"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(parse(bad[i].line), CKB_INVALID, "%s", bad[i].line);
        cr_expect_str_eq(message, bad[i].message);
    }
}

static const ckb_option policies[] = {
    {"size", 's', CKB_OPTION_SPAN, true, "LIST", "256", 1, UINT64_C(1) << 30, NULL, "size"},
    {"sync", '\0', CKB_OPTION_POLICY, true, "LIST", "each", 1, 65536, "none|each", "sync"},
};

static ckb_option_value policy_values[2];

static int parse_policies(const char *first, const char *second)
{
    const char *const arguments[] = {first, second};
    ckb_option_set set = {policies, 2, policy_values};
    ckb_options_defaults(&set);
    return ckb_options_parse(&set, 1, 2, arguments, operands, 2, &operand_count, message, sizeof message);
}

Test(options, spans_of_sizes_and_policies_by_count_or_time)
{
    cr_assert_eq(parse_policies("-s", "100,64-4K,7-7"), CKB_OK, "%s", message);
    cr_assert_eq(policy_values[0].count, 3);
    cr_assert_eq(policy_values[0].number[0], 100);
    cr_assert_eq(policy_values[0].last[0], 100);
    cr_assert_eq(policy_values[0].number[1], 64);
    cr_assert_eq(policy_values[0].last[1], 4096);
    cr_assert_eq(policy_values[0].last[2], 7);
    cr_assert_eq(parse_policies("--sync", "none,each,64,10ms"), CKB_OK, "%s", message);
    cr_assert(policy_values[1].chosen[0] && policy_values[1].number[0] == 0);
    cr_assert(policy_values[1].chosen[1] && policy_values[1].number[1] == 1);
    cr_assert(!policy_values[1].chosen[2] && !policy_values[1].timed[2] && policy_values[1].number[2] == 64);
    cr_assert(policy_values[1].timed[3] && policy_values[1].number[3] == 10000000);
}

Test(options, bad_spans_and_policies_are_refused_with_their_bounds)
{
    static const struct {
        const char *option, *value, *message;
    } bad[] = {
        {"-s", "4K-64",
         "--size: \"4K-64\" is neither a size (digits, then K, M, G or T) nor SMALLEST-LARGEST (1 to 1G)"},
        {"-s", "64-",
         "--size: \"64-\" is neither a size (digits, then K, M, G or T) nor SMALLEST-LARGEST (1 to 1G)"},
        {"-s", "-64",
         "--size: \"-64\" is neither a size (digits, then K, M, G or T) nor SMALLEST-LARGEST (1 to 1G)"},
        {"-s", "0-64", "--size: \"0-64\" is out of range (1 to 1G)"},
        {"-s", "64-2G", "--size: \"64-2G\" is out of range (1 to 1G)"},
        {"--sync", "end", "--sync: \"end\" is not known (none, each, 1 to 65536 or 10us to 1m)"},
        {"--sync", "0", "--sync: \"0\" is out of range (none, each, 1 to 65536 or 10us to 1m)"},
        {"--sync", "65537", "--sync: \"65537\" is out of range (none, each, 1 to 65536 or 10us to 1m)"},
        {"--sync", "1us", "--sync: \"1us\" is out of range (none, each, 1 to 65536 or 10us to 1m)"},
        {"--sync", "2h", "--sync: \"2h\" is out of range (none, each, 1 to 65536 or 10us to 1m)"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        cr_expect_eq(parse_policies(bad[i].option, bad[i].value), CKB_INVALID, "%s", bad[i].value);
        cr_expect_str_eq(message, bad[i].message);
    }
}

Test(options, every_default_of_every_workload_is_in_its_own_bounds)
{
    const ckb_workload *workload;
    for (uint32_t i = 0; (workload = ckb_workload_at(i)) != NULL; i++) {
        cr_assert_leq(workload->option_count, CKB_WORKLOAD_OPTIONS_MAX);
        for (uint32_t k = 0; k < workload->option_count; k++) {
            const ckb_option *option = &workload->options[k];
            ckb_option_value value;
            ckbi_message text;
            if (option->standard == NULL)
                continue;
            cr_assert_eq(ckbi_option_set_text(option, &value, option->standard,
                                              ckbi_message_start(&text, message, sizeof message)),
                         CKB_OK, "%s", message);
        }
    }
}

/* ------------------------------------------------------------------------------------------ >>disk */

/* Ten seconds of a disk, worked out by hand from sysstat's formulas. */
Test(disk, columns_are_those_of_iostat)
{
    static const char before_line[] =
        " 254       0 vda 1000 10 8000 500 2000 20 64000 4000 0 3000 4500 7 0 9 1 5 5\n";
    static const char after_line[] =
        " 254       0 vda 1100 15 9600 550 4000 120 96000 12000 2 8000 12600 7 0 9 1 5 5\n";
    uint64_t before[CKB_DISK_COUNTER_COUNT], after[CKB_DISK_COUNTER_COUNT];
    char name[CKB_DISK_TEXT_BYTES];
    ckb_disk_use use;
    memset(&use, 0, sizeof use);
    cr_assert(ckb_host_disk_line(before_line, 254, 0, name, before));
    cr_assert(ckb_host_disk_line(after_line, 254, 0, name, after));
    cr_assert_str_eq(name, "vda");
    ckb_disk_use_of(before, after, UINT64_C(10000000000), &use);
    cr_assert_float_eq(use.read_merges_per_s, 0.5, 1e-12);
    cr_assert_float_eq(use.write_merges_per_s, 10.0, 1e-12);
    cr_assert_float_eq(use.reads_per_s, 10.0, 1e-12);
    cr_assert_float_eq(use.writes_per_s, 200.0, 1e-12);
    cr_assert_float_eq(use.read_mib_per_s, 0.078125, 1e-12);
    cr_assert_float_eq(use.write_mib_per_s, 1.5625, 1e-12);
    cr_assert_float_eq(use.request_sectors, 16.0, 1e-12);
    cr_assert_float_eq(use.queue_length, 0.81, 1e-12);
    cr_assert_float_eq(use.wait_ms, 8050.0 / 2100.0, 1e-12);
    cr_assert_float_eq(use.read_wait_ms, 0.5, 1e-12);
    cr_assert_float_eq(use.write_wait_ms, 4.0, 1e-12);
    cr_assert_float_eq(use.service_ms, 5000.0 / 2100.0, 1e-12);
    cr_assert_float_eq(use.busy_percent, 50.0, 1e-12);
}

Test(disk, idle_disk_and_counters_that_go_round_are_no_trouble)
{
    uint64_t before[CKB_DISK_COUNTER_COUNT] = {0}, after[CKB_DISK_COUNTER_COUNT] = {0};
    ckb_disk_use use;
    memset(&use, 0, sizeof use);
    ckb_disk_use_of(before, after, 0, &use);
    cr_assert_eq(use.wait_ms, 0.0);
    cr_assert_eq(use.busy_percent, 0.0);
    before[CKB_DISK_WRITES] = UINT32_MAX - 5;
    after[CKB_DISK_WRITES] = 4;
    ckb_disk_use_of(before, after, UINT64_C(1000000000), &use);
    cr_assert_float_eq(use.writes_per_s, 10.0, 1e-12);
}

Test(disk, lines_of_other_devices_and_short_ones_are_passed_over)
{
    uint64_t counters[CKB_DISK_COUNTER_COUNT];
    char name[CKB_DISK_TEXT_BYTES];
    cr_assert_not(ckb_host_disk_line("254 1 vda1 1 2 3 4 5 6 7 8 9 10 11", 254, 0, name, counters));
    cr_assert_not(ckb_host_disk_line("254 0 vda 1 2 3 4 5 6 7 8 9 10", 254, 0, name, counters));
    cr_assert_not(ckb_host_disk_line("", 254, 0, name, counters));
    cr_assert(ckb_host_disk_line("254 0 vda 1 2 3 4 5 6 7 8 9 10 11", 254, 0, name, counters));
    cr_assert_eq(counters[CKB_DISK_WEIGHTED_MS], 11);
}

/* ------------------------------------------------------------------------------------------ >>pattern */

static int compare_words(const void *a, const void *b)
{
    uint64_t first, second;
    memcpy(&first, a, sizeof first);
    memcpy(&second, b, sizeof second);
    return first < second ? -1 : first > second;
}

/* C120: neither compression nor deduplication has anything to find, inside a chunk or between chunks. */
Test(pattern, no_eight_bytes_occur_twice_and_content_can_be_made_again)
{
    enum { CHUNKS = 64, BYTES = 40000 };
    static ckbi_pattern pattern;
    static uint64_t words[CHUNKS * BYTES / 8];
    static uint8_t again[BYTES];
    ckbi_pattern_set(&pattern, 5);
    for (uint32_t i = 0; i < CHUNKS; i++)
        ckbi_pattern_fill(&pattern, i % 4, i / 4, (uint8_t *)words + (size_t)i * BYTES, BYTES);
    ckbi_pattern_fill(&pattern, 3, 2, again, BYTES);
    cr_assert_eq(memcmp(again, (uint8_t *)words + (size_t)11 * BYTES, BYTES), 0);
    qsort(words, CHUNKS * BYTES / 8, 8, compare_words);
    for (size_t i = 1; i < CHUNKS * BYTES / 8; i++)
        cr_assert_neq(words[i], words[i - 1]);
    for (uint32_t bytes = 1; bytes < 200; bytes++) {
        again[bytes] = 0xA5;
        ckbi_pattern_fill(&pattern, 0, bytes, again, bytes);
        cr_assert_eq(again[bytes], 0xA5, "nothing is written behind %u bytes", bytes);
    }
}

/* ------------------------------------------------------------------------------------------ >>runs */

/* A world for runs: RAM that can fail or take time, and a clock that moves by what happens. */
typedef struct world {
    ckb_medium ram_medium, medium, mounted;
    ckb_ram ram;
    void *memory;
    ckb_bench_target target;
    ckb_bench_host host;
    ckb_volume *volume;
    void *volume_memory;
    void *run_memory;
    ckb_config config;
    uint64_t now_ns;
    uint64_t write_count, fail_from; /* writes from this one on fail; 0: none */
    uint64_t sync_count, stall_at;   /* this sync takes stall_ns */
    uint64_t stall_ns;
    uint64_t acknowledged, interrupt_after_ns;
    uint64_t disk_readings;
    unsigned progress_calls;
    char text[1 << 16];
    size_t used;
} world;

static world w;

static int world_read(void *context, uint32_t segment, uint64_t offset, void *buffer, size_t length)
{
    (void)context;
    return w.ram_medium.read(w.ram_medium.context, segment, offset, buffer, length);
}

static int world_write(void *context, uint32_t segment, uint64_t offset, const void *buffer, size_t length)
{
    (void)context;
    w.now_ns += length;
    if (w.fail_from != 0 && ++w.write_count >= w.fail_from)
        return CKB_IO;
    return w.ram_medium.write(w.ram_medium.context, segment, offset, buffer, length);
}

static int world_erase(void *context, uint32_t segment)
{
    (void)context;
    return w.ram_medium.erase(w.ram_medium.context, segment);
}

static int world_sync(void *context, uint32_t segment)
{
    (void)context;
    w.now_ns += ++w.sync_count == w.stall_at ? w.stall_ns : 1000;
    return w.ram_medium.sync(w.ram_medium.context, segment);
}

static uint64_t world_now(void *context)
{
    (void)context;
    return w.now_ns += 10;
}

static void world_wait(void *context, uint64_t duration_ns)
{
    (void)context;
    w.now_ns += duration_ns + 100;
}

static bool world_interrupted(void *context)
{
    (void)context;
    return w.interrupt_after_ns != 0 && w.now_ns >= w.interrupt_after_ns;
}

static void world_progress(void *context, const ckb_progress *progress)
{
    (void)context;
    (void)progress;
    w.progress_calls++;
}

static int world_acknowledge(void *context, const ckb_chunk_id *id, uint32_t length, uint32_t crc32c)
{
    (void)context;
    (void)id;
    (void)length;
    (void)crc32c;
    w.acknowledged++;
    return CKB_OK;
}

static int world_acknowledge_entry(void *context, uint64_t index, uint32_t length, uint32_t crc32c)
{
    (void)context;
    (void)length;
    (void)crc32c;
    cr_assert_eq(index, ++w.acknowledged);
    return CKB_OK;
}

/* A disk that does a write of 16 sectors in 1 ms at each reading. */
static bool world_disk(void *context, char name[CKB_DISK_TEXT_BYTES], uint64_t counters[CKB_DISK_COUNTER_COUNT])
{
    (void)context;
    memset(counters, 0, CKB_DISK_COUNTER_COUNT * sizeof *counters);
    (void)snprintf(name, CKB_DISK_TEXT_BYTES, "disk0");
    counters[CKB_DISK_WRITES] = ++w.disk_readings;
    counters[CKB_DISK_WRITE_SECTORS] = 16 * w.disk_readings;
    counters[CKB_DISK_WRITE_MS] = w.disk_readings;
    return true;
}

static int world_describe(void *context, const ckb_bench_need *need, ckb_geometry *geometry,
                          uint64_t *room_bytes)
{
    (void)context;
    (void)need;
    *geometry = w.medium.geometry;
    *room_bytes = geometry->segment_bytes * geometry->segment_count;
    return CKB_OK;
}

static int world_mount(ckb_volume **volume, ckb_fault *fault)
{
    size_t bytes = ckb_volume_memory(&w.medium.geometry, &w.config);
    w.volume_memory = realloc(w.volume_memory, bytes);
    int status = ckb_mount(&w.mounted, &w.config, w.volume_memory, bytes, &w.volume, fault);
    *volume = w.volume;
    return status;
}

static int world_fresh(void *context, const ckb_bench_need *need, ckb_volume **volume, ckb_fault *fault)
{
    static uint8_t format_count; /* memory that comes back may still hold an older volume */
    ckb_format_config format = {{1, 2, ++format_count}, need->max_containers, need->max_logs};
    size_t bytes = ckb_format_memory(&w.medium.geometry);
    void *memory = malloc(bytes);
    (void)context;
    int status = ckb_format(&w.medium, &format, memory, bytes, fault);
    free(memory);
    w.config = (ckb_config){.max_chunks = need->max_chunks,
                            .max_containers = need->max_containers,
                            .max_logs = need->max_logs,
                            .max_writers = need->max_writers,
                            .prepare_ahead = need->prepare_ahead};
    w.mounted = w.medium;
    if (need->wrap != NULL)
        need->wrap(need->wrap_context, &w.mounted);
    return status == CKB_OK ? world_mount(volume, fault) : status;
}

static int world_done(void *context)
{
    (void)context;
    int status = w.volume != NULL ? ckb_unmount(w.volume) : CKB_OK;
    w.volume = NULL;
    return status;
}

static int world_remount(void *context, ckb_volume **volume, ckb_fault *fault)
{
    int status = world_done(context);
    return status == CKB_OK ? world_mount(volume, fault) : status;
}

static int world_raw(void *context, const ckb_bench_need *need, ckb_medium *medium, ckb_fault *fault)
{
    (void)context;
    (void)need;
    (void)fault;
    *medium = w.medium;
    return CKB_OK;
}

static void world_open(size_t bytes, uint64_t segment_bytes)
{
    free(w.memory);
    free(w.volume_memory);
    free(w.run_memory);
    memset(&w, 0, sizeof w);
    w.memory = malloc(bytes);
    cr_assert_eq(ckb_ram_medium(&w.ram, &w.ram_medium, w.memory, bytes, segment_bytes, 512), CKB_OK);
    w.medium = w.ram_medium;
    w.medium.context = &w;
    w.medium.read = world_read;
    w.medium.write = world_write;
    w.medium.erase = world_erase;
    w.medium.sync = world_sync;
    w.target = (ckb_bench_target){&w,          "world",       false,      NULL,     world_describe,
                                  world_fresh, world_remount, world_done, world_raw};
    w.host = (ckb_bench_host){.context = &w,
                              .now_ns = world_now,
                              .wait_ns = world_wait,
                              .interrupted = world_interrupted,
                              .progress = world_progress,
                              .target = &w.target,
                              .command_line = "test \"quoted\"\n\xff",
                              .histogram_digits = 3};
    w.now_ns = 1000;
}

static ckb_option_value values[CKB_WORKLOAD_OPTIONS_MAX];

/* Runs a workload with options as one would type them. */
static ckb_bench_report *run(const char *name, const char *line)
{
    static char copy[256];
    const char *arguments[32];
    const ckb_workload *workload = ckb_workload_find(name);
    ckb_option_set set = {workload->options, workload->option_count, values};
    ckb_bench_report *report = NULL;
    size_t bytes = 0;
    int count = 0;
    (void)snprintf(copy, sizeof copy, "%s", line);
    for (char *at = strtok(copy, " "); at != NULL; at = strtok(NULL, " "))
        arguments[count++] = at;
    ckb_options_defaults(&set);
    cr_assert_eq(ckb_options_parse(&set, 1, count, arguments, NULL, 0, &operand_count, message, sizeof message),
                 CKB_OK, "%s", message);
    message[0] = '\0';
    if (ckb_bench_memory(&w.host, workload, values, &bytes, message, sizeof message) != CKB_OK)
        return NULL;
    free(w.run_memory);
    w.run_memory = malloc(bytes);
    ckb_bench_run(&w.host, workload, values, w.run_memory, bytes, &report);
    cr_assert_not_null(report, "the memory that was asked for is enough");
    return report;
}

static int world_sink(void *context, const char *text, size_t bytes)
{
    (void)context;
    cr_assert(w.used + bytes < sizeof w.text);
    memcpy(w.text + w.used, text, bytes);
    w.used += bytes;
    w.text[w.used] = '\0';
    return CKB_OK;
}

static const char *print(const ckb_bench_report *report, int format)
{
    ckb_sink sink = {&w, world_sink};
    w.used = 0;
    w.text[0] = '\0';
    cr_assert_eq(ckb_bench_print(report, format, &sink), CKB_OK);
    return w.text;
}

/* ---- a strict reader of JSON: returns what follows the value, or null ---- */

static const char *json_value(const char *at);

static const char *json_string_end(const char *at)
{
    if (*at++ != '"')
        return NULL;
    for (; *at != '"'; at++) {
        if ((unsigned char)*at < 0x20)
            return NULL;
        if (*at == '\\' && strchr("\"\\/bfnrtu", *++at) == NULL)
            return NULL;
    }
    return at + 1;
}

static const char *json_number_end(const char *at)
{
    char *end;
    if (*at != '-' && (*at < '0' || *at > '9'))
        return NULL;
    if (at[0] == '0' && at[1] >= '0' && at[1] <= '9')
        return NULL;
    (void)strtod(at, &end);
    return end;
}

static const char *json_list_end(const char *at, char close, bool pairs)
{
    while (*at == '\n')
        at++;
    if (*at == close)
        return at + 1;
    for (;;) {
        while (*at == '\n')
            at++;
        if (pairs) {
            at = json_string_end(at);
            if (at == NULL || *at++ != ':')
                return NULL;
        }
        at = json_value(at);
        if (at == NULL)
            return NULL;
        if (*at == close)
            return at + 1;
        if (*at++ != ',')
            return NULL;
    }
}

static const char *json_value(const char *at)
{
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < 3; i++)
        if (strncmp(at, words[i], strlen(words[i])) == 0)
            return at + strlen(words[i]);
    if (*at == '{')
        return json_list_end(at + 1, '}', true);
    if (*at == '[')
        return json_list_end(at + 1, ']', false);
    return *at == '"' ? json_string_end(at) : json_number_end(at);
}

/* Is there a word that begins with nan or inf? ("maintenance" does not.) */
static bool has_no_number(const char *text)
{
    for (const char *at = text; *at != '\0'; at++) {
        bool inside = at > text && ((at[-1] >= 'a' && at[-1] <= 'z') || at[-1] == '_');
        if (!inside && (strncmp(at, "nan", 3) == 0 || strncmp(at, "inf", 3) == 0))
            return true;
    }
    return false;
}

/* C121, C113: valid whatever happened, and the keys are always there. */
static void assert_json(const ckb_bench_report *report)
{
    static const char *const keys[] = {
        "\"tool\":",        "\"version\":",  "\"command\":",     "\"target\":", "\"settings\":",
        "\"environment\":", "\"warnings\":", "\"interrupted\":", "\"error\":",  "\"results\":"};
    static const char *const result_keys[] = {"\"threads\":",    "\"operations\":",
                                              "\"failures\":",   "\"bytes\":",
                                              "\"elapsed_ns\":", "\"sync_ns\":",
                                              "\"rate_per_s\":", "\"adjusted_rate_per_s\":",
                                              "\"mib_per_s\":",  "\"latency_ns\":{\"count\":",
                                              "\"p999\":"};
    const char *text = print(report, CKB_PRINT_JSON), *end = json_value(text);
    cr_assert(end != NULL && strcmp(end, "\n") == 0, "not JSON: %s", text);
    cr_assert_not(has_no_number(text), "%s", text);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        cr_assert_not_null(strstr(text, keys[i]), "%s", keys[i]);
    for (size_t i = 0; report->result_count != 0 && i < sizeof result_keys / sizeof result_keys[0]; i++)
        cr_assert_not_null(strstr(text, result_keys[i]), "%s", result_keys[i]);
    for (int format = CKB_PRINT_TEXT; format <= CKB_PRINT_DROPWIZARD; format++) {
        print(report, format);
        cr_assert_not(has_no_number(w.text), "%s", w.text);
    }
}

Test(runs, write_puts_down_and_reads_back_what_was_asked)
{
    world_open(64 << 20, 1 << 20);
    ckb_bench_report *report = run("write", "-n 5000 -t 1 -s 1K,300 --sync end,7,each --verify");
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_eq(report->result_count, 6);
    for (uint32_t i = 0; i < 6; i++) {
        const ckb_bench_result *result = &report->results[i];
        cr_assert_eq(result->operations, 5000);
        cr_assert_eq(result->verified, 5000);
        cr_assert_eq(result->verify_failures, 0);
        cr_assert_eq(result->latency.count, 5000);
        cr_assert_eq(result->bytes, 5000 * result->size_bytes);
        cr_assert_eq(result->durable_latency.count, result->sync == CKBI_SYNC_END ? 0 : 5000);
        cr_assert(result->finished);
    }
    assert_json(report);
    cr_assert_not_null(
        strstr(print(report, CKB_PRINT_DROPWIZARD), "type=TIMER, name=chunk-write, count=5000, min="));
    cr_assert_not_null(strstr(w.text, "\nFailures: 0\nSuccessful executions: 5000\n"));
}

Test(runs, sync_none_never_passes_for_durable)
{
    world_open(16 << 20, 1 << 20);
    ckb_bench_report *report = run("write", "-n 100 -t 1 --sync none");
    cr_assert_eq(report->status, CKB_OK);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_JSON), "\"sync_ns\":null"));
    cr_assert_not_null(strstr(w.text, "\"adjusted_rate_per_s\":null"));
    cr_assert_not_null(strstr(w.text, "nothing was made durable"));
    w.host.acknowledge = world_acknowledge;
    cr_assert_null(run("write", "-n 100 -t 1 --sync each,none"));
    cr_assert_str_eq(message, "--sync: none makes nothing durable that could be acknowledged");
}

/* C142: when everything fails the run still ends, and its result is a valid one. */
Test(runs, failing_medium_ends_the_run_with_counts_and_a_message)
{
    static const char *const lines[] = {"-n 5000 -t 1", "-n 5000 -t 1 -f --sync each",
                                        "-n 5000 -t 1 --sync each --verify"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        world_open(64 << 20, 1 << 20);
        w.fail_from = 12;
        ckb_bench_report *report = run("write", lines[i]);
        cr_assert_eq(report->status, CKB_IO, "%s", lines[i]);
        cr_assert(report->failed);
        cr_assert_neq(report->message[0], '\0');
        assert_json(report);
    }
    world_open(64 << 20, 1 << 20);
    w.fail_from = 1;
    ckb_bench_report *report = run("write", "-n 10 -t 1");
    cr_assert_eq(report->status, CKB_IO);
    cr_assert_eq(report->results[0].operations, 0);
    assert_json(report);
}

Test(runs, every_durable_operation_is_acknowledged_once)
{
    static const char *const syncs[] = {"each", "7", "end"};
    for (size_t i = 0; i < 3; i++) {
        char line[64];
        world_open(16 << 20, 1 << 20);
        w.host.acknowledge = world_acknowledge;
        (void)snprintf(line, sizeof line, "-n 1000 -t 1 --sync %s", syncs[i]);
        const ckb_bench_report *report = run("write", line);
        cr_assert_eq(report->status, CKB_OK, "sync %s: %s", syncs[i], report->message);
        cr_assert_eq(w.acknowledged, 1000, "sync %s: %llu", syncs[i], (unsigned long long)w.acknowledged);
    }
}

/* C117: one stall of 2 s in an open loop of 1000/s shows up in the latency of the 2000 that it held up. */
Test(runs, open_loop_counts_from_the_intended_start)
{
    world_open(64 << 20, 1 << 20);
    w.stall_at = 5000;
    w.stall_ns = UINT64_C(2000000000);
    ckb_bench_report *report = run("write", "-n 20000 -t 1 --rate 1000 --sync each");
    const ckb_bench_result *result = &report->results[0];
    cr_assert_eq(report->status, CKB_OK);
    cr_assert_eq(result->operations, 20000);
    cr_assert_float_eq((double)result->elapsed_ns, 20e9, 1e8);
    cr_assert_float_eq((double)result->durable_latency.max, 2e9, 1e7);
    cr_assert_float_eq((double)result->durable_latency.p95, 1e9, 1e8);
    cr_assert_leq(result->service_latency.max, 1000000, "the stalled sync is not part of applying");
    cr_assert_not_null(strstr(print(report, CKB_PRINT_TEXT), "open loop"));
    cr_assert_gt(w.progress_calls, 10);
    cr_assert_lt(w.progress_calls, 25);
}

/* C138: a rate below one per run does not keep it from ending. */
Test(runs, duration_ends_a_run_whatever_the_rate)
{
    static const char *const lines[] = {"--rate 0.1 --duration 5s -t 1", "--rate 1 --duration 5s -t 1",
                                        "--rate 1000000000 --duration 50ms -t 1", "--duration 50ms -t 1"};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        world_open(32 << 20, 1 << 20);
        ckb_bench_report *report = run("write", lines[i]);
        uint64_t wanted_ns = i < 2 ? UINT64_C(5000000000) : 50000000;
        cr_assert_eq(report->status, CKB_OK, "%s: %s", lines[i], report->message);
        cr_assert_geq(report->results[0].elapsed_ns, wanted_ns - 1000, "%s", lines[i]);
        cr_assert_leq(report->results[0].elapsed_ns, wanted_ns + 20000000, "%s", lines[i]);
        cr_assert_gt(report->results[0].operations, 0);
        assert_json(report);
    }
}

/* C154: a run that only time ends goes round in a bounded set of chunks, and what is there is the latest. */
Test(runs, timed_run_overwrites_its_oldest_chunks_and_verifies)
{
    world_open(4 << 20, 64 << 10);
    ckb_bench_report *report = run("write", "--duration 50ms -t 1 --verify");
    const ckb_bench_result *result = &report->results[0];
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_gt(result->operations * 1024, 8 << 20, "it wrote more than the medium holds");
    cr_assert_lt(result->verified, 4096);
    cr_assert_gt(result->verified, 100);
    cr_assert_eq(result->verify_failures, 0);
}

/* C128: what was measured until then is kept and marked. */
Test(runs, interrupt_keeps_what_was_measured)
{
    world_open(64 << 20, 1 << 20);
    w.interrupt_after_ns = 5000000;
    ckb_bench_report *report = run("write", "-n 40000 -t 1,1");
    cr_assert_eq(report->status, CKB_OK);
    cr_assert(report->interrupted);
    cr_assert_eq(report->result_count, 1, "the second run is not begun");
    cr_assert_gt(report->results[0].operations, 100);
    cr_assert_lt(report->results[0].operations, 40000);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_JSON), "\"interrupted\":true"));
    assert_json(report);
}

/* C132 */
Test(runs, clock_that_goes_back_is_no_time_and_ends_nothing)
{
    ckb_bench_host host = {.now_ns = world_now};
    ckbi_clock clock = {0, 0, 0};
    w.now_ns = UINT64_C(20000000000);
    uint64_t first_ns = ckbi_clock_read(&clock, &host);
    w.now_ns -= 200;
    cr_assert_eq(ckbi_clock_read(&clock, &host), first_ns, "a small step is no time");
    w.now_ns += 1000;
    cr_assert_gt(ckbi_clock_read(&clock, &host), first_ns);
    w.now_ns -= UINT64_C(10000000000);
    uint64_t stepped_ns = ckbi_clock_read(&clock, &host);
    w.now_ns += 1000;
    cr_assert_eq(ckbi_clock_read(&clock, &host), stepped_ns + 1010, "after a large one time goes on");
    cr_assert_eq(clock.steps, 2);
}

Test(runs, what_does_not_fit_is_refused_before_anything_is_written)
{
    world_open(8 << 20, 64 << 10);
    cr_assert_null(run("write", "-n 100000 -t 1"));
    cr_assert_not_null(strstr(message, "100000 chunks of 1 KiB and 1 writers need "), "%s", message);
    cr_assert_not_null(strstr(message, "world has room for 8 MiB"), "%s", message);
    cr_assert_null(run("write", "-n 10 -t 1 -s 1M"));
    cr_assert_not_null(strstr(message, "--size: 1048576 bytes; segments of 65536 bytes hold chunks of up to "),
                       "%s", message);
    cr_assert_null(run("write", "-n 10 -t 2"));
    cr_assert_str_eq(message, "--threads: this host has no threads; only 1 is possible");
    cr_assert_eq(w.now_ns, 1000, "nothing was written, no clock was read");
}

Test(runs, memory_may_be_unaligned_and_too_little_is_refused)
{
    const ckb_workload *workload = ckb_workload_find("write");
    ckb_option_set set = {workload->options, workload->option_count, values};
    const char *arguments[] = {"-t", "1", "-n", "100"};
    ckb_bench_report *report;
    size_t bytes;
    world_open(8 << 20, 64 << 10);
    ckb_options_defaults(&set);
    ckb_options_parse(&set, 1, 4, arguments, NULL, 0, &operand_count, message, sizeof message);
    cr_assert_eq(ckb_bench_memory(&w.host, workload, values, &bytes, message, sizeof message), CKB_OK);
    uint8_t *memory = malloc(bytes + 1);
    cr_assert_eq(ckb_bench_run(&w.host, workload, values, memory + 1, bytes, &report), CKB_OK);
    cr_assert_eq(ckb_bench_run(&w.host, workload, values, memory, 100, &report), CKB_INVALID);
    cr_assert_neq(ckb_bench_run(&w.host, workload, values, memory, bytes / 2, &report), CKB_OK);
    free(memory);
}

/* ------------------------------------------------------------------------------------------ >>log */

Test(log_runs, entries_are_counted_synced_and_read_back)
{
    static const double per_sync[] = {1.0, 64.0};
    world_open(64 << 20, 1 << 20);
    ckb_bench_report *report = run("log", "-n 6400 -s 100,64-4K --sync each,64 --verify");
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_eq(report->result_count, 4);
    for (uint32_t i = 0; i < 4; i++) {
        const ckb_bench_result *result = &report->results[i];
        cr_assert(result->is_log && result->finished);
        cr_assert_eq(result->operations, 6400);
        cr_assert_eq(result->verified, 6400);
        cr_assert_eq(result->verify_failures, 0);
        cr_assert_eq(result->latency.count, 6400);
        cr_assert_eq(result->durable_latency.count, 6400);
        cr_assert_eq(result->log.rolled.count + result->log.others.count, 6400);
        cr_assert_eq(result->log.rolls, result->log.rolled.count);
        cr_assert_eq(result->log.last, 6400);
        /* A full segment is synced once more when it is left. */
        cr_assert_float_eq(ckbi_entries_per_sync(result), per_sync[i / 2], per_sync[i / 2] * 0.15);
        cr_assert_eq(result->size_min_bytes, i % 2 == 0 ? 100 : 64);
        if (i % 2 == 0)
            cr_assert_eq(result->bytes, 640000);
        else
            cr_assert_float_eq((double)result->bytes / 6400.0, 2080.0, 60.0, "uniform: %llu",
                               (unsigned long long)result->bytes);
    }
    assert_json(report);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_JSON), "\"kind\":\"log\""));
    cr_assert_not_null(strstr(w.text, "\"size_bytes\":null,"), "a span is no single size");
    cr_assert_not_null(strstr(w.text, "\"size_bytes\":[100,[64,4096]]"), "but the settings have it");
    cr_assert_not_null(strstr(w.text, "\"iostat\":null"));
    cr_assert_not_null(
        strstr(print(report, CKB_PRINT_TEXT), "No iostat line: nobody counts what a disk below world"));
}

/* Queue wait and device wait are two parts of one wait. */
Test(log_runs, waits_add_up_to_the_durable_latency)
{
    world_open(64 << 20, 1 << 20);
    ckb_bench_report *report = run("log", "-n 1000 --sync 10");
    const ckb_bench_result *result = &report->results[0];
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_eq(result->log.queue_wait.count, 1000);
    cr_assert_eq(result->log.device_wait.count, 1000);
    cr_assert_float_eq(result->log.queue_wait.mean + result->log.device_wait.mean, result->durable_latency.mean,
                       1.0);
    cr_assert_gt(result->log.device_wait.min, 1000, "a sync takes 1000 ns in this world");
    cr_assert_gt(result->log.queue_wait.max, 50, "the first of ten waits for the others");
}

Test(log_runs, interval_makes_entries_durable_in_time)
{
    world_open(64 << 20, 1 << 20);
    ckb_bench_report *report = run("log", "-n 2000 --rate 10000 --sync 10ms");
    const ckb_bench_result *result = &report->results[0];
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_eq(result->durable_latency.count, 2000);
    cr_assert_leq(result->durable_latency.max, 10300000, "%llu",
                  (unsigned long long)result->durable_latency.max);
    cr_assert_float_eq((double)result->log.commits, 20.0, 2.0);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_JSON), "\"sync\":\"10ms\""));
    assert_json(report);
}

Test(log_runs, sync_none_never_passes_for_durable)
{
    world_open(16 << 20, 1 << 20);
    ckb_bench_report *report = run("log", "-n 100 --sync none --verify");
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_eq(report->results[0].verified, 100);
    cr_assert_eq(report->results[0].log.commits, 0);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_JSON), "\"adjusted_rate_per_s\":null"));
    cr_assert_not_null(strstr(w.text, "nothing was made durable"));
    w.host.acknowledge_entry = world_acknowledge_entry;
    cr_assert_null(run("log", "-n 100 --sync each,none"));
    cr_assert_str_eq(message, "--sync: none makes nothing durable that could be acknowledged");
}

Test(log_runs, every_entry_is_acknowledged_once_in_order)
{
    static const char *const syncs[] = {"each", "7", "10ms"};
    for (size_t i = 0; i < 3; i++) {
        char line[64];
        world_open(16 << 20, 1 << 20);
        w.host.acknowledge_entry = world_acknowledge_entry;
        (void)snprintf(line, sizeof line, "-n 1000 --sync %s", syncs[i]);
        const ckb_bench_report *report = run("log", line);
        cr_assert_eq(report->status, CKB_OK, "sync %s: %s", syncs[i], report->message);
        cr_assert_eq(w.acknowledged, 1000, "sync %s: %llu", syncs[i], (unsigned long long)w.acknowledged);
    }
}

Test(log_runs, purges_behind_itself_and_goes_on_for_ever)
{
    static const char *const lines[] = {"--duration 100ms --verify", "-n 100000 --purge-behind 2000 --verify"};
    for (size_t i = 0; i < 2; i++) {
        world_open(4 << 20, 64 << 10);
        ckb_bench_report *report = run("log", lines[i]);
        const ckb_bench_result *result = &report->results[0];
        cr_assert_eq(report->status, CKB_OK, "%s: %s", lines[i], report->message);
        cr_assert_gt(result->operations * 512, 8 << 20, "it wrote more than the medium holds");
        cr_assert_gt(result->log.first, 1);
        cr_assert_eq(result->verified, result->log.last - result->log.first + 1);
        cr_assert_eq(result->verify_failures, 0);
        if (i == 1)
            cr_assert_geq(result->verified, 2000);
    }
}

Test(log_runs, failing_medium_ends_the_run_with_the_entry_in_the_message)
{
    world_open(64 << 20, 1 << 20);
    w.fail_from = 50;
    ckb_bench_report *report = run("log", "-n 5000");
    cr_assert_eq(report->status, CKB_IO);
    cr_assert(report->failed);
    cr_assert_not_null(strstr(report->message, "thread 0, entry "), "%s", report->message);
    assert_json(report);
}

Test(log_runs, what_does_not_fit_is_refused_before_anything_is_written)
{
    world_open(8 << 20, 64 << 10);
    cr_assert_null(run("log", "-n 100000"));
    cr_assert_not_null(strstr(message, "100000 entries of up to 256 B need "), "%s", message);
    cr_assert_not_null(strstr(message, "world has room for 8 MiB; --purge-behind needs less"), "%s", message);
    cr_assert_null(run("log", "-n 10 -s 64-1M"));
    cr_assert_not_null(strstr(message, "--size: 1048576 bytes; segments of 65536 bytes hold entries of up to "),
                       "%s", message);
    cr_assert_null(run("log", "-n 10 -t 2"));
    cr_assert_str_eq(message, "--threads: this host has no threads; only 1 is possible");
    cr_assert_eq(w.now_ns, 1000, "nothing was written, no clock was read");
}

Test(log_runs, disk_below_is_shown_over_the_same_interval)
{
    world_open(16 << 20, 1 << 20);
    w.host.disk = world_disk;
    ckb_bench_report *report = run("log", "-n 100");
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert_str_eq(report->results[0].log.disk.name, "disk0");
    cr_assert_float_eq(report->results[0].log.disk.request_sectors, 16.0, 1e-12);
    cr_assert_float_eq(report->results[0].log.disk.write_wait_ms, 1.0, 1e-12);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_TEXT), "What disk0 did meanwhile"));
    cr_assert_not_null(strstr(w.text, "rrqm/s"));
    cr_assert_not_null(
        strstr(print(report, CKB_PRINT_JSON), "\"iostat\":{\"device\":\"disk0\",\"rrqm_per_s\":0.000"));
    assert_json(report);
}

/* Which commit made an entry durable: the first that began after it, of those that ended. */
Test(log_runs, group_of_an_entry_is_the_first_that_began_after_it)
{
    static ckbi_watch watch;
    ckbi_watch_group found;
    memset(&watch, 0, sizeof watch);
    cr_assert_not(ckbi_watch_find(&watch, 0, 1000, &found));
    for (uint64_t i = 0; i < 100; i++) {
        ckbi_watch_group group = {100 * i, 100 * i + 90};
        watch.groups[watch.group_count++ % CKBI_WATCH_GROUPS] = group;
    }
    cr_assert(ckbi_watch_find(&watch, 9550, 9700, &found));
    cr_assert_eq(found.begin_ns, 9600);
    cr_assert(ckbi_watch_find(&watch, 9600, 9990, &found));
    cr_assert_eq(found.begin_ns, 9600);
    cr_assert_not(ckbi_watch_find(&watch, 9850, 9950, &found), "its sync ends later");
    cr_assert_not(ckbi_watch_find(&watch, 9950, 9999, &found));
}

/* ------------------------------------------------------------------------------------------ >>qualify */

Test(qualify, range_is_an_interval_of_order_statistics)
{
    static const struct {
        uint32_t rounds, skip;
        double confidence;
    } cases[] = {{1, 0, 0.0},      {3, 0, 0.75},      {5, 0, 0.9375},
                 {7, 0, 0.984375}, {8, 1, 0.9296875}, {15, 3, 0.96484375}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double confidence;
        cr_assert_eq(ckbi_rank_interval(cases[i].rounds, &confidence), cases[i].skip, "%u rounds",
                     cases[i].rounds);
        cr_assert_float_eq(confidence, cases[i].confidence, 1e-12, "%u rounds: %f", cases[i].rounds,
                           confidence);
    }
}

static ckb_qualify_answer answer_of(uint32_t count, const uint32_t *threads, const double *shares)
{
    ckb_qualify_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.rounds = 5;
    answer.row_count = count;
    for (uint32_t i = 0; i < count; i++) {
        answer.rows[i].threads = threads[i];
        answer.rows[i].of_best = shares[i];
        answer.rows[i].of_best_low = shares[i] - 0.02;
        answer.rows[i].of_best_high = shares[i] + 0.02;
        answer.rows[i].of_ceiling = 0.91;
    }
    answer.answer = ckbi_answer_choose(&answer);
    return answer;
}

Test(qualify, sentence_says_the_fewest_threads_that_are_enough)
{
    static const uint32_t threads[] = {1, 2, 4};
    char text[CKB_BENCH_MESSAGE_BYTES];
    ckb_qualify_answer answer = answer_of(3, threads, (const double[]){0.97, 0.99, 1.0});
    ckbi_answer_sentence(&answer, text);
    cr_assert_str_eq(text,
                     "1 writer thread reaches 97 % (95-99 %) of the best this target gives, and 91 % of plain "
                     "sequential writing; more threads gain nothing.");
    answer = answer_of(3, threads, (const double[]){0.40, 0.98, 0.98});
    ckbi_answer_sentence(&answer, text);
    cr_assert_str_eq(text,
                     "2 writer threads reach 98 % (96-100 %) of the best this target gives, and 91 % of plain "
                     "sequential writing; 1 thread reaches 40 %; more threads gain nothing.");
    answer = answer_of(3, threads, (const double[]){0.40, 0.60, 0.98});
    ckbi_answer_sentence(&answer, text);
    cr_assert_str_eq(text,
                     "4 writer threads reach 98 % (96-100 %) of the best this target gives, and 91 % of plain "
                     "sequential writing; 2 threads reach 60 %.");
}

static ckb_segment_answer segments_of(const double (*shares)[2])
{
    static const uint64_t sizes[] = {16 << 10, 1 << 20, 4 << 20};
    ckb_segment_answer answer;
    memset(&answer, 0, sizeof answer);
    answer.rounds = 5;
    answer.row_count = 3;
    answer.thread_counts = 2;
    answer.threads[0] = 1;
    answer.threads[1] = 16;
    for (uint32_t i = 0; i < 3; i++) {
        ckb_segment_row *row = &answer.rows[i];
        row->segment_bytes = sizes[i];
        for (uint32_t which = 0; which < 2; which++) {
            row->of_best[which] = shares[i][which];
            row->of_best_low[which] = shares[i][which] - 0.02;
            row->of_best_high[which] = shares[i][which] + 0.02;
            row->entries_per_sync[which] = which == 0 ? 1.0 : 4.0 * (i + 1);
            row->roll_ns[which] = 2000000.0;
            row->other_ns[which] = 120000.0;
        }
    }
    answer.answer = ckbi_study_choose(&answer);
    ckbi_study_sentence(&answer);
    return answer;
}

Test(qualify, segments_are_the_smallest_that_are_good_with_either_thread_count)
{
    ckb_segment_answer answer = segments_of((const double[][2]){{0.97, 0.80}, {0.96, 0.97}, {1.0, 1.0}});
    cr_assert_str_eq(
        answer.sentence,
        "Log segments of 1 MiB are the smallest within 5 % of the best for durable appends: 96 % (94-98 %) "
        "with 1 thread, 97 % (95-99 %) with 16 threads; 16 KiB reach 97 % and 80 %: 4.00 instead of 8.00 "
        "entries per sync with 16 threads, an append that rolls takes 2.00 ms and another one 120 us.");
    answer = segments_of((const double[][2]){{0.97, 0.96}, {0.96, 0.97}, {1.0, 1.0}});
    cr_assert_eq(answer.rows[answer.answer].segment_bytes, 16 << 10);
    cr_assert_not_null(strstr(answer.sentence, "with 16 threads: 4.00 entries per sync"), "%s",
                       answer.sentence);
    answer = segments_of((const double[][2]){{1.0, 0.5}, {0.8, 0.9}, {0.7, 1.0}});
    cr_assert_eq(answer.rows[answer.answer].segment_bytes, 1 << 20);
    cr_assert_not_null(strstr(answer.sentence, "are the best compromise, none come within 5 %"), "%s",
                       answer.sentence);
}

Test(qualify, verdict_on_a_wal_is_etcds_rule_and_says_what_it_rests_on)
{
    static ckb_bench_report report;
    static ckb_bench_result result;
    world_open(1 << 20, 64 << 10);
    report.host = &w.host;
    result.size_bytes = result.size_min_bytes = 2300;
    result.elapsed_ns = UINT64_C(30000000000);
    result.durable_latency.count = 250000;
    result.durable_latency.p50 = 110000;
    result.durable_latency.p99 = result.log.p99_low = result.log.p99_high = 400000;
    result.durable_latency.p999 = 2000000;
    ckbi_wal_answer(&report, &result, "enough helps.", "longer helps.");
    cr_assert_str_eq(
        report.wal_answer.sentence,
        "Fit for a WAL: yes. 99 of 100 durable appends of 2300 B took up to 400 us (400 us-400 us), 25.0 times "
        "less than the 10.0 ms that etcd allows; p50 110 us, p99.9 2.00 ms, which 250 of 250000 samples "
        "exceed.");
    cr_assert(report.wal_answer.pass && report.wal_answer.sure);
    result.elapsed_ns /= 2;
    ckbi_wal_answer(&report, &result, "enough helps.", "longer helps.");
    cr_assert_str_eq(report.wal_answer.caution,
                     "Too little to be sure: only 15.0 s were measured, at least 30.0 s are "
                     "wanted; enough helps.");
    w.target.volatile_medium = true;
    ckbi_wal_answer(&report, &result, "enough helps.", "longer helps.");
    cr_assert(!report.wal_answer.pass, "what is volatile never passes");
    w.target.volatile_medium = false;
    result.durable_latency.p99 = 14000000;
    ckbi_wal_answer(&report, &result, "enough helps.", "longer helps.");
    cr_assert_not(report.wal_answer.pass);
    cr_assert_not_null(strstr(report.wal_answer.sentence, "1.40 times the 10.0 ms"), "%s",
                       report.wal_answer.sentence);
}

/* A finished run of a log, durable, with a p99 of 1 ms. */
static ckb_bench_result run_of(uint64_t segment_bytes, uint32_t threads, uint64_t sync_every,
                               uint64_t operations)
{
    ckb_bench_result result;
    memset(&result, 0, sizeof result);
    result.is_log = result.finished = true;
    result.segment_bytes = segment_bytes;
    result.threads = threads;
    result.size_bytes = result.size_min_bytes = 256;
    result.sync = sync_every == 1 ? CKBI_SYNC_EACH : CKBI_SYNC_EVERY;
    result.sync_every = sync_every;
    result.operations = result.log.commits = operations;
    result.elapsed_ns = UINT64_C(1000000000);
    result.durable_latency.count = operations;
    result.durable_latency.p99 = 1000000;
    return result;
}

Test(qualify, sweep_of_a_log_is_answered_by_what_can_be_compared)
{
    static ckb_bench_report report;
    ckb_bench_result results[] = {run_of(64 << 10, 4, 64, 40000), run_of(64 << 10, 1, 64, 30000),
                                  run_of(1 << 20, 4, 64, 80000),  run_of(1 << 20, 1, 64, 31000),
                                  run_of(4 << 20, 4, 64, 81000),  run_of(4 << 20, 1, 64, 10000),
                                  run_of(1 << 20, 1, 1, 5000),    run_of(16 << 20, 4, 64, 99000)};
    world_open(1 << 20, 64 << 10);
    report.host = &w.host;
    report.results = results;
    report.result_count = sizeof results / sizeof results[0];
    results[5].finished = false; /* so that 4 MiB lack one thread; 16 MiB do, too */
    ckbi_log_answer(&report);
    cr_assert(report.has_segment_answer && report.has_wal_answer);
    cr_assert_eq(report.segment_answer.row_count, 2);
    cr_assert_str_eq(report.segment_answer.sentence, "Log segments of 1 MiB are the smallest within 5 % of the "
                                                     "best for durable appends: 100 % (31000/s) with "
                                                     "1 thread, 100 % (80000/s) with 4 threads; 64 KiB reach "
                                                     "97 % and 50 %: 1.00 instead of 1.00 entries per "
                                                     "sync with 4 threads.");
    cr_assert_eq(report.wal_answer.latency.count, 5000, "the run whose each append was durable");
    cr_assert_not(report.failed, "a sweep answers, it does not judge");
}

Test(qualify, fills_its_budget_and_answers_on_a_world_of_its_own)
{
    world_open(64 << 20, 1 << 20);
    ckb_bench_report *report = run("qualify", "-t 1 --budget 4s --log-segment 1M");
    cr_assert_eq(report->status, CKB_OK, "%s", report->message);
    cr_assert(report->has_answer && report->has_segment_answer && report->has_wal_answer);
    cr_assert_geq(report->answer.rounds, 5);
    cr_assert_geq(report->segment_answer.rounds, 5);
    cr_assert_float_eq((double)report->wal_answer.measured_ns, 2e9, 1e7);
    cr_assert(report->wal_answer.pass);
    cr_assert_leq(w.now_ns, UINT64_C(5200000000), "%llu", (unsigned long long)w.now_ns);
    cr_assert_eq(report->answer.rows[0].of_best, 1.0);
    assert_json(report);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_TEXT), "1 writer thread reaches 100 % (100-100 %)"), "%s",
                       w.text);
    cr_assert_not_null(strstr(w.text, "Log segments of 1 MiB are the smallest within 5 %"), "%s", w.text);
    cr_assert_not_null(strstr(w.text, "Fit for a WAL: yes."), "%s", w.text);
}

Test(qualify, interrupted_one_is_valid_and_has_no_answer)
{
    world_open(64 << 20, 1 << 20);
    w.interrupt_after_ns = 2000000;
    ckb_bench_report *report = run("qualify", "-t 1 --budget 1s");
    cr_assert(report->interrupted);
    cr_assert_not(report->has_answer);
    cr_assert_not_null(strstr(print(report, CKB_PRINT_JSON), "\"answer\":null"));
    assert_json(report);
}
