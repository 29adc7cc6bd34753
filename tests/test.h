/* Helpers that several test files share: temporary directories and files. Criterion runs every test in a
 * process of its own, so that a test may change limits, umask or mounts; what one leaves behind when an
 * assertion stops it is removed at the end by the process that runs them all. */
#ifndef TEST_H
#define TEST_H

#include <criterion/criterion.h>
#include <criterion/hooks.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEST_PATH_BYTES 512

/* Skips the test aloud: Criterion by itself only says so when asked to be verbose. */
#define test_skip(...) \
    do { \
        fprintf(stderr, "SKIPPED: " __VA_ARGS__); \
        fputc('\n', stderr); \
        cr_skip_test(__VA_ARGS__); \
    } while (0)

static inline const char *test_root(void)
{
    const char *root = getenv("TMPDIR");
    return root != NULL && root[0] != '\0' && strlen(root) < 200 ? root : "/tmp";
}

/* Makes an empty directory. Its name carries the number of the process that runs all tests. */
static inline void test_directory_make(char path[TEST_PATH_BYTES])
{
    snprintf(path, TEST_PATH_BYTES, "%s/chunkbench-test-%ld-XXXXXX", test_root(), (long)getppid());
    cr_assert_not_null(mkdtemp(path), "no temporary directory under %s", test_root());
}

static inline int test_tree_entry_remove(const char *path, const struct stat *facts, int kind, struct FTW *walk)
{
    (void)facts;
    (void)kind;
    (void)walk;
    return remove(path);
}

/* Removes a directory with all that is in it, without following links or leaving its file system. */
static inline void test_tree_remove(const char *path)
{
    (void)nftw(path, test_tree_entry_remove, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static inline void test_leftovers_remove(void)
{
    char pattern[TEST_PATH_BYTES];
    glob_t found;
    snprintf(pattern, sizeof pattern, "%s/chunkbench-test-%ld-*", test_root(), (long)getpid());
    if (glob(pattern, GLOB_NOSORT, NULL, &found) == 0) {
        for (size_t at = 0; at < found.gl_pathc; at++) {
            test_tree_remove(found.gl_pathv[at]);
        }
        globfree(&found);
    }
}

/* Bytes that depend on the seed and the place, so that nothing that was moved compares equal. */
static inline void test_fill(void *bytes, size_t length, uint64_t seed)
{
    unsigned char *at = bytes;
    for (size_t index = 0; index < length; index++) {
        uint64_t mixed = (seed + index / 8 + 1) * 0x9E3779B97F4A7C15u;
        mixed ^= mixed >> 29;
        at[index] = (unsigned char)(mixed * 0xBF58476D1CE4E5B9u >> (8 * (index % 8)));
    }
}

static inline bool test_exists(const char *directory, const char *name)
{
    struct stat facts;
    int file = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool found = file >= 0 && fstatat(file, name, &facts, AT_SYMLINK_NOFOLLOW) == 0;
    if (file >= 0) {
        close(file);
    }
    return found;
}

/* Makes a file with the given content. */
static inline void test_file_make(const char *path, const void *bytes, size_t length)
{
    FILE *file = fopen(path, "wb");
    cr_assert_not_null(file, "cannot make %s", path);
    cr_assert_eq(fwrite(bytes, 1, length, file), length);
    cr_assert_eq(fclose(file), 0);
}

#endif
