/* Sizes and durations as users type them. Digits are read here and not by strtoull or strtod, which accept
 * signs, blanks, hexadecimal and, with the locale, other decimal points. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <string.h>

#include "os.h"

/* Reads digits from *text on. CKB_INVALID: there is none. */
static int digits_read(const char **text, uint64_t *value)
{
    const char *at = *text;
    uint64_t sum = 0;
    bool too_big = false;
    while (*at >= '0' && *at <= '9') {
        uint64_t digit = (uint64_t)(*at - '0');
        too_big = too_big || sum > (UINT64_MAX - digit) / 10;
        sum = too_big ? 0 : sum * 10 + digit;
        at++;
    }
    if (at == *text) {
        return CKB_INVALID;
    }
    *text = at;
    *value = sum;
    return too_big ? CKB_TOOBIG : CKB_OK;
}

/* The power of two of a size suffix, or -1. */
static int suffix_shift(const char *suffix)
{
    int shift = 0;
    switch (*suffix) {
    case 'k':
    case 'K':
        shift = 10;
        break;
    case 'm':
    case 'M':
        shift = 20;
        break;
    case 'g':
    case 'G':
        shift = 30;
        break;
    case 't':
    case 'T':
        shift = 40;
        break;
    default:
        break;
    }
    if (shift != 0) {
        suffix++;
    }
    bool known =
        strcmp(suffix, "") == 0 || strcmp(suffix, "B") == 0 || (shift != 0 && strcmp(suffix, "iB") == 0);
    return known ? shift : -1;
}

int ckb_parse_size(const char *text, uint64_t *bytes)
{
    uint64_t value = 0;
    int status = digits_read(&text, &value);
    int shift = suffix_shift(text);
    if (status == CKB_INVALID || shift < 0) {
        return CKB_INVALID;
    }
    if (status == CKB_TOOBIG || value > UINT64_MAX >> shift) {
        return CKB_TOOBIG;
    }
    *bytes = value << shift;
    return CKB_OK;
}

/* Nanoseconds in a unit, 0 when there is no such unit. */
static uint64_t unit_ns(const char *unit)
{
    static const struct {
        const char *name;
        uint64_t ns;
    } known[] = {
        {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000},
    };
    for (size_t at = 0; at < sizeof known / sizeof known[0]; at++) {
        if (strcmp(known[at].name, unit) == 0) {
            return known[at].ns;
        }
    }
    return 0;
}

int ckb_parse_duration(const char *text, uint64_t *duration_ns)
{
    uint64_t whole = 0;
    if (strcmp(text, "0") == 0) {
        *duration_ns = 0;
        return CKB_OK;
    }
    int status = digits_read(&text, &whole);
    if (status == CKB_INVALID) {
        return CKB_INVALID;
    }
    const char *fraction = "";
    if (*text == '.') {
        uint64_t ignored;
        fraction = ++text;
        if (digits_read(&text, &ignored) == CKB_INVALID) {
            return CKB_INVALID;
        }
    }
    uint64_t unit = unit_ns(text);
    if (unit == 0) {
        return CKB_INVALID;
    }
    uint64_t part = 0;
    for (uint64_t scale = unit; *fraction >= '0' && *fraction <= '9' && scale != 0; fraction++, scale /= 10) {
        part += (uint64_t)(*fraction - '0') * scale / 10;
    }
    if (status == CKB_TOOBIG || whole > (UINT64_MAX - part) / unit) {
        return CKB_TOOBIG;
    }
    *duration_ns = whole * unit + part;
    return CKB_OK;
}

const char *ckb_size_text(uint64_t bytes, char *text, size_t room)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (unit < 4 && bytes != 0 && bytes % 1024 == 0) {
        bytes /= 1024;
        unit++;
    }
    ckb_os_text(text, room, "%llu %s", (unsigned long long)bytes, units[unit]);
    return text;
}
