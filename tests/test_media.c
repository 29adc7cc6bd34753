/* Tests of the media in platform/: one contract for all of them, then what is special to each kind of
 * target, then scratch directories and the parsers. Block devices are loop devices over a file that has no
 * name any more; they and all mounts vanish with the process of the test, whatever happens in it. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#define CHUNKBENCH_IMPLEMENTATION
#include "chunkbench.h"

#include <dirent.h>
#include <errno.h>
#include <linux/blkpg.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>

#include "loop.h"
#include "platform/platform.h"
#include "test.h"

ReportHook(POST_ALL)(struct criterion_global_stats *stats)
{
    (void)stats;
    test_leftovers_remove();
}

/* ---- opening things ---- */

static char place[TEST_PATH_BYTES]; /* the temporary directory of this test */

static void place_make(void)
{
    umask(022);
    signal(SIGXFSZ, SIG_IGN);
    test_directory_make(place);
}

static void place_remove(void)
{
    test_tree_remove(place);
}

static const char *in_place(const char *prefix, const char *name)
{
    static char text[4][2 * TEST_PATH_BYTES];
    static unsigned turn;
    char *to = text[turn++ % 4];
    snprintf(to, sizeof text[0], "%s%s/%s", prefix, place, name);
    return to;
}

static void target_make(const char *text, uint64_t segment_bytes, uint64_t size_bytes, ckb_target *target)
{
    ckb_target_options options = {.create = true, .segment_bytes = segment_bytes, .size_bytes = size_bytes};
    int status = ckb_target_open(text, &options, target);
    cr_assert_eq(status, CKB_OK, "%s: %d: %s", text, status, target->error);
}

static void target_close(ckb_target *target)
{
    cr_assert_eq(ckb_target_close(target), CKB_OK);
}

static void volume_format(const ckb_medium *medium, bool scratch)
{
    ckb_format_config config = {.max_containers = 1};
    ckb_fault fault;
    size_t bytes = ckb_format_memory(&medium->geometry);
    void *memory = malloc(bytes);
    cr_assert_eq(ckb_volume_id_make(config.volume_id, scratch), CKB_OK);
    cr_assert_eq(ckb_format(medium, &config, memory, bytes, &fault), CKB_OK);
    free(memory);
}

/* A target with an empty volume on it, closed again. */
static void volume_make(const char *text, uint64_t segment_bytes, uint64_t size_bytes, bool scratch)
{
    ckb_target target;
    target_make(text, segment_bytes, size_bytes, &target);
    volume_format(&target.medium, scratch);
    target_close(&target);
}

/* Opens, expects a failure with this status and a message that contains `said`. */
static void open_fails(const char *text, const ckb_target_options *options, int expected, const char *said)
{
    ckb_target target;
    int status = ckb_target_open(text, options, &target);
    cr_assert_eq(status, expected, "%s: status %d, expected %d: %s", text, status, expected, target.error);
    cr_assert_not_null(strstr(target.error, said), "\"%s\" does not say \"%s\"", target.error, said);
    cr_assert_eq(target.state, NULL);
    cr_assert_eq(ckb_target_close(&target), CKB_OK);
}

/* The status of opening in another process. */
static int open_elsewhere(const char *text, bool read_only)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        ckb_target target;
        ckb_target_options options = {.read_only = read_only};
        _exit(-ckb_target_open(text, &options, &target));
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    cr_assert(WIFEXITED(status));
    return -WEXITSTATUS(status);
}

static const ckb_target_options create = {.create = true};
static const ckb_target_options destroy = {.create = true, .destroy = true};
static const ckb_target_options read_only = {.read_only = true};

/* ---- loop devices ---- */

/* Makes a loop device of so many zero bytes, or skips the test aloud. */
static void loop_make(loop *l, uint64_t bytes, uint32_t sector_bytes)
{
    loop_make_of(l, in_place("", "backing"), bytes, sector_bytes);
}

/* Runs a program with the device as its last argument; false when there is no such program. */
static bool run_on(const char *program, const char *option, const char *value, const char *path)
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execlp(program, program, option, value, path, (char *)NULL);
        _exit(127);
    }
    cr_assert_eq(waitpid(child, &status, 0), child);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* From here on, mounts of this process are seen by nobody else and end with it. */
static void mounts_unshare(void)
{
    if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) {
        test_skip("no mounts of its own here (%s)", strerror(errno));
    }
}

/* ---- the contract of a medium ---- */

/* Memory aligned to 4096, and one byte beyond when `off` is set. */
static unsigned char *buffer_make(size_t bytes, bool off)
{
    unsigned char *buffer = aligned_alloc(4096, (bytes + 8191) / 4096 * 4096);
    cr_assert_not_null(buffer);
    return buffer + (off ? 1 : 0);
}

static void segment_write(const ckb_medium *m, uint32_t segment, uint64_t offset, size_t length, uint64_t seed)
{
    unsigned char *buffer = buffer_make(length, false);
    test_fill(buffer, length, seed);
    cr_assert_eq(m->write(m->context, segment, offset, buffer, length), CKB_OK);
    free(buffer);
}

static void segment_expect(const ckb_medium *m, uint32_t segment, uint64_t offset, size_t length, uint64_t seed)
{
    unsigned char *buffer = buffer_make(length, false);
    unsigned char *expected = buffer_make(length, false);
    test_fill(expected, length, seed);
    cr_assert_eq(m->read(m->context, segment, offset, buffer, length), CKB_OK);
    cr_assert_eq(memcmp(buffer, expected, length), 0, "segment %u offset %llu differs", segment,
                 (unsigned long long)offset);
    free(buffer);
    free(expected);
}

static void geometry_is_one_the_core_accepts(const ckb_medium *m)
{
    const ckb_geometry *g = &m->geometry;
    cr_assert_geq(g->segment_count, 4u);
    cr_assert(g->write_unit >= 8 && g->write_unit <= 65536 && (g->write_unit & (g->write_unit - 1)) == 0);
    cr_assert(g->read_unit >= 1 && (g->read_unit & (g->read_unit - 1)) == 0);
    cr_assert(g->buffer_align >= 1 && (g->buffer_align & (g->buffer_align - 1)) == 0);
    cr_assert_eq(g->segment_bytes % g->write_unit, 0u);
    cr_assert_eq(g->segment_bytes % g->read_unit, 0u);
    cr_assert_geq(g->segment_bytes / g->write_unit, 16u);
}

static void every_segment_keeps_its_own_bytes(const ckb_medium *m)
{
    size_t length = (size_t)m->geometry.segment_bytes;
    for (uint32_t segment = 0; segment < m->geometry.segment_count; segment++) {
        cr_assert_eq(m->erase(m->context, segment), CKB_OK);
        segment_write(m, segment, 0, length, segment);
    }
    for (uint32_t segment = 0; segment < m->geometry.segment_count; segment++) {
        cr_assert_eq(m->sync(m->context, segment), CKB_OK);
        segment_expect(m, segment, 0, length, segment);
    }
}

static void single_units_are_written_and_read(const ckb_medium *m)
{
    uint32_t unit = m->geometry.write_unit;
    cr_assert_eq(m->erase(m->context, 1), CKB_OK);
    for (uint32_t at = 0; at < 16; at++) {
        segment_write(m, 1, (uint64_t)at * unit, unit, 100 + at);
    }
    cr_assert_eq(m->sync(m->context, 1), CKB_OK);
    for (uint32_t at = 0; at < 16; at++) {
        segment_expect(m, 1, (uint64_t)at * unit, unit > m->geometry.read_unit ? unit : m->geometry.read_unit,
                       100 + at);
    }
}

static void an_erased_segment_takes_new_bytes(const ckb_medium *m)
{
    for (uint64_t life = 0; life < 3; life++) {
        cr_assert_eq(m->erase(m->context, 2), CKB_OK);
        segment_write(m, 2, 0, m->geometry.write_unit, life);
        cr_assert_eq(m->sync(m->context, 2), CKB_OK);
        segment_expect(m, 2, 0, m->geometry.write_unit, life);
    }
}

static void the_last_unit_of_the_last_segment_is_there(const ckb_medium *m)
{
    uint32_t last = m->geometry.segment_count - 1;
    uint64_t offset = m->geometry.segment_bytes - m->geometry.write_unit;
    cr_assert_eq(m->erase(m->context, last), CKB_OK);
    segment_write(m, last, offset, m->geometry.write_unit, 7);
    cr_assert_eq(m->sync(m->context, last), CKB_OK);
    segment_expect(m, last, offset, m->geometry.write_unit, 7);
}

static void what_lies_outside_is_refused(const ckb_medium *m)
{
    size_t unit = m->geometry.write_unit;
    uint64_t end = m->geometry.segment_bytes;
    uint32_t beyond = m->geometry.segment_count;
    unsigned char *buffer = buffer_make(unit * 2, false);
    cr_assert_eq(m->read(m->context, beyond, 0, buffer, unit), CKB_INVALID);
    cr_assert_eq(m->write(m->context, beyond, 0, buffer, unit), CKB_INVALID);
    cr_assert_eq(m->erase(m->context, beyond), CKB_INVALID);
    cr_assert_eq(m->sync(m->context, beyond), CKB_INVALID);
    cr_assert_eq(m->read(m->context, 0, end, buffer, unit), CKB_INVALID);
    cr_assert_eq(m->write(m->context, 0, end - unit, buffer, unit * 2), CKB_INVALID);
    cr_assert_eq(m->write(m->context, 0, UINT64_MAX - unit + 1, buffer, unit), CKB_INVALID);
    free(buffer);
}

static void buffers_of_any_alignment_work(const ckb_medium *m)
{
    size_t length =
        m->geometry.write_unit * 3u > 300000 ? m->geometry.write_unit * 3u : (size_t)m->geometry.segment_bytes;
    unsigned char *odd = buffer_make(length, true);
    unsigned char *back = buffer_make(length, true);
    if (m->geometry.buffer_align == 1 || m->geometry.read_unit > 1) { /* announced, or bounced */
        test_fill(odd, length, 5);
        cr_assert_eq(m->erase(m->context, 3), CKB_OK);
        cr_assert_eq(m->write(m->context, 3, 0, odd, length), CKB_OK);
        cr_assert_eq(m->sync(m->context, 3), CKB_OK);
        segment_expect(m, 3, 0, length, 5);
        cr_assert_eq(m->read(m->context, 3, 0, back, length), CKB_OK);
        cr_assert_eq(memcmp(odd, back, length), 0);
    }
    free(odd - 1);
    free(back - 1);
}

static void any_byte_range_can_be_read(const ckb_medium *m)
{
    static const size_t cuts[] = {0, 1, 511, 512, 513, 4095, 4096, 4097, 7777};
    size_t length = (size_t)m->geometry.segment_bytes;
    unsigned char *whole = buffer_make(length, false);
    unsigned char *part = buffer_make(length, true);
    cr_assert_eq(m->erase(m->context, 0), CKB_OK);
    test_fill(whole, length, 9);
    cr_assert_eq(m->write(m->context, 0, 0, whole, length), CKB_OK);
    for (size_t from = 0; from < sizeof cuts / sizeof cuts[0]; from++) {
        for (size_t count = 0; count < sizeof cuts / sizeof cuts[0]; count++) {
            size_t rest = length - cuts[from] < cuts[count] ? length - cuts[from] : cuts[count];
            cr_assert_eq(m->read(m->context, 0, cuts[from], part, rest), CKB_OK);
            cr_assert_eq(memcmp(part, whole + cuts[from], rest), 0, "from %zu, %zu bytes", cuts[from], rest);
        }
    }
    cr_assert_eq(m->read(m->context, 0, 1, part, length - 1), CKB_OK);
    cr_assert_eq(memcmp(part, whole + 1, length - 1), 0);
    free(whole);
    free(part - 1);
}

typedef struct contract_thread {
    const ckb_medium *medium;
    uint32_t first;
    int status;
} contract_thread;

/* Writes, syncs and reads back its own segments: every fourth. */
static void *thread_write(void *context)
{
    contract_thread *t = context;
    const ckb_medium *m = t->medium;
    uint32_t unit = m->geometry.write_unit;
    unsigned char *buffer = aligned_alloc(4096, 65536);
    unsigned char *back = aligned_alloc(4096, 65536);
    for (uint32_t round = 0; round < 16 && t->status == CKB_OK; round++) {
        for (uint32_t segment = t->first; segment < m->geometry.segment_count && t->status == CKB_OK;
             segment += 4) {
            uint64_t offset = (uint64_t)round * unit;
            test_fill(buffer, unit, (uint64_t)segment << 8 | round);
            t->status = round == 0 ? m->erase(m->context, segment) : CKB_OK;
            t->status = t->status ? t->status : m->write(m->context, segment, offset, buffer, unit);
            t->status = t->status || round % 8 != 7 ? t->status : m->sync(m->context, segment);
            t->status = t->status ? t->status : m->read(m->context, segment, offset, back, unit);
            if (t->status == CKB_OK && memcmp(buffer, back, unit) != 0) {
                t->status = CKB_CORRUPT;
            }
        }
    }
    free(buffer);
    free(back);
    return NULL;
}

static void four_threads_work_on_different_segments(const ckb_medium *m)
{
    pthread_t ids[4];
    contract_thread threads[4];
    for (uint32_t at = 0; at < 4; at++) {
        threads[at] = (contract_thread){m, at, CKB_OK};
        cr_assert_eq(pthread_create(&ids[at], NULL, thread_write, &threads[at]), 0);
    }
    for (uint32_t at = 0; at < 4; at++) {
        cr_assert_eq(pthread_join(ids[at], NULL), 0);
        cr_assert_eq(threads[at].status, CKB_OK);
    }
}

/* The media: each opens one of about a megabyte and hands it to a contract. */

typedef void (*contract)(const ckb_medium *medium);

static void on_target(const char *text, uint64_t segment_bytes, contract check)
{
    ckb_target target;
    target_make(text, segment_bytes, 1048576, &target);
    check(&target.medium);
    target_close(&target);
}

static void on_directory(contract check)
{
    on_target(in_place("", "volume"), 16384, check);
}

static void on_image(contract check)
{
    on_target(in_place("file:", "image:1M"), 65536, check);
}

static void on_buffered_image(contract check)
{
    ckb_target_options options = {.create = true, .buffered = true, .segment_bytes = 65536};
    ckb_target target;
    cr_assert_eq(ckb_target_open(in_place("file:", "image:1M"), &options, &target), CKB_OK);
    cr_assert_not(target.direct);
    check(&target.medium);
    target_close(&target);
}

static void on_ram(contract check)
{
    on_target("ram:1M", 16384, check);
}

static void on_port_template(contract check)
{
    ckb_medium medium;
    ckb_port_medium(&medium);
    check(&medium);
}

static void on_loop(uint32_t sector_bytes, contract check)
{
    loop l;
    ckb_target target;
    loop_make(&l, 1048576, sector_bytes);
    target_make(l.path, 65536, 0, &target);
    cr_assert_eq(target.sector_bytes, sector_bytes);
    cr_assert(target.direct);
    check(&target.medium);
    target_close(&target);
}

static void on_device_of_512(contract check)
{
    on_loop(512, check);
}

static void on_device_of_4096(contract check)
{
    on_loop(4096, check);
}

#define CONTRACT(medium, check) \
    Test(medium, check, .init = place_make, .fini = place_remove) \
    { \
        on_##medium(check); \
    }
#define CONTRACTS(medium) \
    CONTRACT(medium, geometry_is_one_the_core_accepts) \
    CONTRACT(medium, every_segment_keeps_its_own_bytes) \
    CONTRACT(medium, single_units_are_written_and_read) \
    CONTRACT(medium, an_erased_segment_takes_new_bytes) \
    CONTRACT(medium, the_last_unit_of_the_last_segment_is_there) \
    CONTRACT(medium, what_lies_outside_is_refused) \
    CONTRACT(medium, buffers_of_any_alignment_work) \
    CONTRACT(medium, any_byte_range_can_be_read) \
    CONTRACT(medium, four_threads_work_on_different_segments)

CONTRACTS(directory)
CONTRACTS(image)
CONTRACTS(buffered_image)
CONTRACTS(ram)
CONTRACTS(port_template)
CONTRACTS(device_of_512)
CONTRACTS(device_of_4096)

/* ---- locks and descriptors ---- */

static void second_opener_is_refused(const char *text)
{
    ckb_target target;
    volume_make(text, 65536, 1048576, false);
    cr_assert_eq(ckb_target_open(text, NULL, &target), CKB_OK, "%s", target.error);
    open_fails(text, NULL, CKB_BUSY, "in use");
    open_fails(text, &read_only, CKB_BUSY, "in use");
    cr_assert_eq(open_elsewhere(text, false), CKB_BUSY); /* the failures above must not have dropped the lock */
    cr_assert_eq(open_elsewhere(text, true), CKB_BUSY);
    segment_write(&target.medium, 1, 65536 - 4096, 4096, 1); /* and the first handle works */
    target_close(&target);
    cr_assert_eq(open_elsewhere(text, false), CKB_OK);
}

Test(lock, directory_refuses_a_second_opener, .init = place_make, .fini = place_remove)
{
    second_opener_is_refused(in_place("", "volume"));
}

Test(lock, image_refuses_a_second_opener, .init = place_make, .fini = place_remove)
{
    second_opener_is_refused(in_place("file:", "image:1M"));
}

Test(lock, device_refuses_a_second_opener, .init = place_make, .fini = place_remove)
{
    loop l;
    loop_make(&l, 1048576, 512);
    second_opener_is_refused(l.path);
}

Test(lock, holds_through_a_link_and_a_relative_path, .init = place_make, .fini = place_remove)
{
    ckb_target directory, image;
    volume_make(in_place("", "volume"), 65536, 1048576, false);
    volume_make(in_place("file:", "image:1M"), 65536, 0, false);
    cr_assert_eq(symlink("volume", in_place("", "link")), 0);
    cr_assert_eq(symlink("image", in_place("", "image-link")), 0);
    cr_assert_eq(link(in_place("", "image"), in_place("", "image-name")), 0);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &directory), CKB_OK);
    cr_assert_eq(ckb_target_open(in_place("file:", "image"), NULL, &image), CKB_OK);
    cr_assert_eq(chdir(place), 0);
    open_fails("link", NULL, CKB_BUSY, "in use");
    open_fails("./link/../volume", NULL, CKB_BUSY, "in use");
    open_fails("file:image-link", NULL, CKB_BUSY, "in use");
    open_fails("file:./image-name", NULL, CKB_BUSY, "in use");
    cr_assert_eq(open_elsewhere("link", false), CKB_BUSY);
    cr_assert_eq(open_elsewhere("file:image-link", false), CKB_BUSY);
    target_close(&directory);
    target_close(&image);
    cr_assert_eq(chdir("/"), 0);
}

/* A reader that asks for no lock sees what the writer writes, and keeps no writer away. */
static void reader_beside_a_writer(const char *text)
{
    const ckb_target_options beside = {.read_only = true, .beside_writer = true};
    ckb_target writer, reader;
    volume_make(text, 65536, 1048576, false);
    cr_assert_eq(ckb_target_open(text, NULL, &writer), CKB_OK, "%s", writer.error);
    cr_assert_eq(ckb_target_open(text, &beside, &reader), CKB_OK, "%s", reader.error);
    segment_write(&writer.medium, 1, 65536 - 4096, 4096, 1);
    segment_expect(&reader.medium, 1, 65536 - 4096, 4096, 1);
    target_close(&writer);
    cr_assert_eq(open_elsewhere(text, false), CKB_OK);
    target_close(&reader);
}

Test(lock, directory_can_be_read_beside_a_writer, .init = place_make, .fini = place_remove)
{
    reader_beside_a_writer(in_place("", "volume"));
}

Test(lock, image_can_be_read_beside_a_writer, .init = place_make, .fini = place_remove)
{
    reader_beside_a_writer(in_place("file:", "image:1M"));
}

Test(lock, device_can_be_read_beside_a_writer, .init = place_make, .fini = place_remove)
{
    loop l;
    loop_make(&l, 1048576, 512);
    reader_beside_a_writer(l.path);
}

Test(lock, only_a_reader_goes_without, .init = place_make, .fini = place_remove)
{
    const ckb_target_options beside = {.beside_writer = true};
    volume_make(in_place("", "volume"), 65536, 1048576, false);
    open_fails(in_place("", "volume"), &beside, CKB_INVALID, "only a reader can go without a lock");
}

static pthread_barrier_t race_start;

static void *race_open(void *context)
{
    ckb_target *target = calloc(1, sizeof *target);
    intptr_t won = 0;
    for (int round = 0; round < 200; round++) {
        pthread_barrier_wait(&race_start);
        int status = ckb_target_open(context, NULL, target);
        won += status == CKB_OK ? 1 : 0;
        won += status != CKB_OK && status != CKB_BUSY ? 1000000 : 0;
        pthread_barrier_wait(&race_start);
        ckb_target_close(target);
    }
    free(target);
    return (void *)won;
}

static void one_of_two_wins(char *text)
{
    pthread_t other;
    void *theirs;
    pthread_barrier_init(&race_start, NULL, 2);
    cr_assert_eq(pthread_create(&other, NULL, race_open, text), 0);
    intptr_t ours = (intptr_t)race_open(text);
    pthread_join(other, &theirs);
    cr_assert_eq(ours + (intptr_t)theirs, 200);
}

Test(lock, lets_exactly_one_of_two_threads_in, .init = place_make, .fini = place_remove)
{
    char text[2 * TEST_PATH_BYTES];
    snprintf(text, sizeof text, "%s", in_place("", "volume"));
    volume_make(text, 65536, 1048576, false);
    one_of_two_wins(text);
    snprintf(text, sizeof text, "%s", in_place("file:", "image:1M"));
    volume_make(text, 65536, 0, false);
    one_of_two_wins(text);
}

static uint32_t descriptors_count(bool without_cloexec)
{
    DIR *list = opendir("/proc/self/fd");
    struct dirent *entry;
    uint32_t count = 0;
    while ((entry = readdir(list)) != NULL) {
        int file = atoi(entry->d_name);
        if (entry->d_name[0] != '.' && file != dirfd(list)) {
            count += !without_cloexec || (fcntl(file, F_GETFD) & FD_CLOEXEC) == 0 ? 1 : 0;
        }
    }
    closedir(list);
    return count;
}

Test(descriptors, are_closed_in_programs_that_are_started, .init = place_make, .fini = place_remove)
{
    uint32_t before = descriptors_count(true);
    ckb_target targets[2];
    volume_make(in_place("", "volume"), 65536, 1048576, false);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &targets[0]), CKB_OK);
    target_make(in_place("file:", "image:1M"), 65536, 0, &targets[1]);
    every_segment_keeps_its_own_bytes(&targets[0].medium);
    cr_assert_eq(descriptors_count(true), before);
    pid_t child = fork();
    if (child == 0) {
        execlp("sleep", "sleep", "30", (char *)NULL);
        _exit(127);
    }
    usleep(100000);
    target_close(&targets[0]);
    target_close(&targets[1]);
    volume_make(in_place("file:", "image:1M"), 65536, 0,
                false); /* its lock is free, the child has no part in it */
    kill(child, SIGKILL);
    waitpid(child, NULL, 0);
}

Test(descriptors, a_thousand_segments_need_few, .init = place_make, .fini = place_remove)
{
    struct rlimit limit = {64, 64};
    ckb_target target;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    uint32_t before = descriptors_count(false);
    target_make(in_place("", "volume"), 65536, 1024 * 65536, &target);
    cr_assert_eq(target.medium.geometry.segment_count, 1024u);
    every_segment_keeps_its_own_bytes(&target.medium);
    cr_assert_leq(descriptors_count(false), before + 20);
    four_threads_work_on_different_segments(&target.medium);
    cr_assert_leq(descriptors_count(false), before + 20);
    target_close(&target);
    cr_assert_eq(descriptors_count(false), before);
}

Test(descriptors, are_few_enough_when_the_process_has_hardly_any_left, .init = place_make, .fini = place_remove)
{
    struct rlimit limit = {64, 64};
    ckb_target target;
    int files[64];
    uint32_t count = 0;
    cr_assert_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    target_make(in_place("", "volume"), 8192, 64 * 8192, &target);
    for (uint32_t segment = 0; segment < 4; segment++) {
        cr_assert_eq(target.medium.erase(target.medium.context, segment), CKB_OK);
    }
    while ((files[count] = dup(0)) >= 0) {
        count++;
    }
    every_segment_keeps_its_own_bytes(&target.medium);
    while (count > 0) {
        close(files[--count]);
    }
    target_close(&target);
}

Test(descriptors, none_is_left_after_an_open_that_fails, .init = place_make, .fini = place_remove)
{
    uint32_t before = descriptors_count(false);
    open_fails(in_place("", "missing"), NULL, CKB_NOTFOUND, "no such file");
    open_fails(place, NULL, CKB_NOTFOUND, "no volume here");
    open_fails(in_place("file:", "image:20K"), &create, CKB_INVALID, "too small");
    cr_assert_eq(descriptors_count(false), before);
}

/* ---- directory ---- */

Test(directory, is_found_again_with_its_geometry, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    ckb_target_options other = {.segment_bytes = 65536};
    ckb_target_options larger = {.size_bytes = 2097152};
    volume_make(in_place("", "volume"), 32768, 1048576, false);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &target), CKB_OK);
    cr_assert(target.existing);
    cr_assert_not(target.scratch);
    cr_assert_eq(target.medium.geometry.segment_bytes, 32768u);
    cr_assert_eq(target.medium.geometry.segment_count, 32u);
    cr_assert_eq(target.warnings.count, 0u);
    target_close(&target);
    open_fails(in_place("", "volume"), &other, CKB_INVALID, "its segments have 32768 bytes, expected 65536");
    open_fails(in_place("", "volume"), &larger, CKB_INVALID, "the volume has 1048576 bytes, expected 2097152");
}

Test(directory, is_not_made_over_a_volume_unless_told, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    ckb_target_options other = {.create = true, .destroy = true, .segment_bytes = 65536, .size_bytes = 1048576};
    volume_make(in_place("", "volume"), 32768, 1048576, false);
    open_fails(in_place("", "volume"), &create, CKB_EXISTS, "holds a volume of 32 segments of 32768 bytes");
    cr_assert_eq(ckb_target_open(in_place("", "volume"), &other, &target), CKB_OK, "%s", target.error);
    cr_assert_not(test_exists(in_place("", "volume"), "segment-00000000")); /* of another size */
    volume_format(&target.medium, true);
    target_close(&target);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), &create, &target), CKB_OK); /* a scratch volume */
    cr_assert(target.scratch);
    target_close(&target);
}

Test(directory, survives_a_damaged_first_header, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    volume_make(in_place("", "volume"), 32768, 1048576, false);
    cr_assert_eq(truncate(in_place("", "volume/segment-00000000"), 0), 0);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &target), CKB_OK);
    cr_assert_not_null(strstr(target.warnings.text[0], "segment 1 was used"));
    cr_assert_not_null(strstr(target.warnings.text[1], "1 segment files do not fit"));
    target_close(&target);
    cr_assert_eq(truncate(in_place("", "volume/segment-00000001"), 0), 0);
    open_fails(in_place("", "volume"), NULL, CKB_NOTFOUND, "no volume here");
    open_fails(in_place("", "volume"), &create, CKB_EXISTS, "segment files but no volume");
}

Test(directory, tells_a_missing_or_short_file_from_an_error, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    unsigned char buffer[512];
    char text[CKB_ERROR_BYTES];
    target_make(in_place("", "volume"), 16384, 1048576, &target);
    const ckb_medium *m = &target.medium;
    cr_assert_eq(m->read(m->context, 5, 0, buffer, sizeof buffer), CKB_CORRUPT);
    ckb_target_failure(&target, text, sizeof text);
    cr_assert_not_null(strstr(text, "segment-00000005 offset 0: no such file or directory (ENOENT)"), "%s",
                       text);
    cr_assert_eq(m->erase(m->context, 5), CKB_OK);
    cr_assert_eq(truncate(in_place("", "volume/segment-00000005"), 1000), 0);
    cr_assert_eq(m->read(m->context, 5, 0, buffer, sizeof buffer), CKB_OK);
    cr_assert_eq(m->read(m->context, 5, 512, buffer, sizeof buffer), CKB_CORRUPT);
    ckb_target_failure(&target, text, sizeof text);
    cr_assert_not_null(strstr(text, "the file ends after 1000 bytes, expected 16384"), "%s", text);
    cr_assert_eq(symlink("segment-00000005", in_place("", "volume/segment-00000006")), 0);
    cr_assert_eq(mkfifo(in_place("", "volume/segment-00000007"), 0600), 0);
    cr_assert_eq(m->read(m->context, 6, 0, buffer, sizeof buffer), CKB_IO);
    cr_assert_eq(m->erase(m->context, 6), CKB_IO);
    cr_assert_eq(m->read(m->context, 7, 0, buffer, sizeof buffer), CKB_IO);
    ckb_target_failure(&target, text, sizeof text);
    cr_assert_not_null(strstr(text, "segment-00000006 offset 0: is a symbolic link (ELOOP)"), "%s", text);
    cr_assert_eq(m->write(m->context, 9, 0, buffer, sizeof buffer), CKB_IO); /* never erased */
    target_close(&target);
}

Test(directory, ignores_odd_names_and_reports_odd_sizes, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    volume_make(in_place("", "volume"), 16384, 1048576, false);
    test_file_make(in_place("", "volume/segment-7"), "x", 1);
    test_file_make(in_place("", "volume/segment-0000001x"), "x", 1);
    test_file_make(in_place("", "volume/segment-99999999999999999999"), "x", 1);
    test_file_make(in_place("", "volume/notes"), "x", 1);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &target), CKB_OK);
    cr_assert_eq(target.warnings.count, 0u);
    target_close(&target);
    test_file_make(in_place("", "volume/segment-00000009"), "x", 1);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &target), CKB_OK);
    cr_assert_not_null(
        strstr(target.warnings.text[0], "segment-00000009: 1 bytes, expected a file of 16384 bytes"));
    cr_assert_eq(target.medium.erase(target.medium.context, 9), CKB_OK); /* left by a crash: gets its size */
    segment_write(&target.medium, 9, 16384 - 512, 512, 1);
    target_close(&target);
}

/* Gives up root, if this is root, so that permissions mean something. */
static void root_leave(void)
{
    if (geteuid() == 0) {
        cr_assert_eq(chown(place, 65534, 65534), 0);
        cr_assert_eq(seteuid(65534), 0);
    }
}

Test(directory, makes_whole_files_of_mode_0600_under_any_umask, .init = place_make, .fini = place_remove)
{
    static const mode_t masks[] = {0, 022, 077, 0177, 0777};
    root_leave();
    for (size_t at = 0; at < sizeof masks / sizeof masks[0]; at++) {
        struct stat facts;
        ckb_target target;
        cr_assert_eq(mkdir(in_place("", "volume"), 0700), 0);
        umask(masks[at]);
        volume_make(in_place("", "volume"), 16384, 1048576, false);
        cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &target), CKB_OK, "%s", target.error);
        cr_assert_eq(target.medium.erase(target.medium.context, 3), CKB_OK);
        cr_assert_eq(stat(in_place("", "volume/segment-00000003"), &facts), 0);
        cr_assert_eq(facts.st_mode & 07777, 0600u);
        cr_assert_eq(facts.st_size, 16384);
        cr_assert_eq((long)facts.st_blocks * 512, 16384L);
        target_close(&target);
        cr_assert_eq(umask(022), masks[at]); /* nobody else changed it */
        test_tree_remove(in_place("", "volume"));
    }
    cr_assert_eq(seteuid(getuid()), 0);
}

Test(directory, names_a_file_that_may_not_be_opened, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    char umasked[2 * TEST_PATH_BYTES];
    root_leave();
    volume_make(in_place("", "volume"), 16384, 1048576, false);
    cr_assert_eq(chmod(in_place("", "volume/segment-00000001"), 0400), 0);
    open_fails(in_place("", "volume"), NULL, CKB_READONLY,
               "volume/segment-00000001: permission denied (EACCES)");
    cr_assert_eq(ckb_target_open(in_place("", "volume"), &read_only, &target), CKB_OK, "%s", target.error);
    target_close(&target);
    cr_assert_eq(chmod(in_place("", "volume/segment-00000001"), 0600), 0);
    cr_assert_eq(chmod(in_place("", "volume/chunkbench.lock"), 0), 0);
    open_fails(in_place("", "volume"), NULL, CKB_READONLY, "chunkbench.lock: permission denied (EACCES)");
    cr_assert_eq(chmod(in_place("", "volume/chunkbench.lock"), 0600), 0);
    cr_assert_eq(chmod(in_place("", "volume"), 0555), 0);
    cr_assert_eq(ckb_target_open(in_place("", "volume"), NULL, &target), CKB_OK, "%s", target.error);
    cr_assert_eq(target.medium.erase(target.medium.context, 9), CKB_IO);
    target_close(&target);
    cr_assert_eq(chmod(in_place("", "volume"), 0), 0);
    open_fails(in_place("", "volume"), NULL, CKB_READONLY, "volume: permission denied (EACCES)");
    cr_assert_eq(chmod(in_place("", "volume"), 0700), 0);
    umask(0777);
    open_fails(in_place("", "new"), &create, CKB_READONLY, "the umask takes the owner's own access");
    umask(022);
    snprintf(umasked, sizeof umasked, "%s", in_place("", "new"));
    cr_assert_neq(access(umasked, F_OK), 0);
    cr_assert_eq(seteuid(getuid()), 0);
}

Test(directory, opens_read_only_where_nothing_can_be_written, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    unsigned char buffer[512];
    volume_make(in_place("", "volume"), 16384, 1048576, false);
    cr_assert_eq(unlink(in_place("", "volume/chunkbench.lock")), 0);
    mounts_unshare();
    cr_assert_eq(mount(in_place("", "volume"), in_place("", "volume"), NULL, MS_BIND, NULL), 0);
    cr_assert_eq(mount(NULL, in_place("", "volume"), NULL, MS_REMOUNT | MS_BIND | MS_RDONLY, NULL), 0);
    open_fails(in_place("", "volume"), NULL, CKB_READONLY, "read-only file system");
    cr_assert_eq(ckb_target_open(in_place("", "volume"), &read_only, &target), CKB_OK, "%s", target.error);
    cr_assert_not_null(strstr(target.warnings.text[0], "without a lock"));
    const ckb_medium *m = &target.medium;
    cr_assert_eq(m->read(m->context, 0, 0, buffer, sizeof buffer), CKB_OK);
    cr_assert_eq(m->write(m->context, 0, 0, buffer, sizeof buffer), CKB_READONLY);
    cr_assert_eq(m->erase(m->context, 0), CKB_READONLY);
    cr_assert_eq(m->sync(m->context, 0), CKB_READONLY);
    target_close(&target);
    cr_assert_eq(umount2(in_place("", "volume"), MNT_DETACH), 0);
}

Test(directory, says_no_space_makes_nothing_by_halves_and_goes_on, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    uint32_t made = 0;
    mounts_unshare();
    cr_assert_eq(mount("none", place, "tmpfs", 0, "size=4m"), 0);
    target_make(in_place("", "volume"), 524288, 64 * 1048576, &target);
    cr_assert_str_eq(target.sync_kind, "none (tmpfs)");
    cr_assert_not_null(strstr(target.warnings.text[0], "fewer than the 67108864 of the volume"));
    const ckb_medium *m = &target.medium;
    while (m->erase(m->context, made) == CKB_OK) {
        segment_write(m, made, 0, 524288, made);
        made++;
    }
    cr_assert(made >= 6 && made <= 8);
    char name[64];
    snprintf(name, sizeof name, "volume/segment-%08u", made);
    cr_assert_eq(m->erase(m->context, made), CKB_NOSPACE);
    cr_assert_not(test_exists(place, name));
    segment_expect(m, 0, 0, 524288, 0);
    cr_assert_eq(unlink(in_place("", "volume/segment-00000000")), 0); /* somebody makes room */
    target_close(&target);
    target_make(in_place("", "other"), 131072, 1048576, &target);
    cr_assert_eq(target.medium.erase(target.medium.context, 0), CKB_OK);
    target_close(&target);
    cr_assert_eq(umount2(place, MNT_DETACH), 0);
}

Test(directory, says_no_space_at_a_file_size_limit, .init = place_make, .fini = place_remove)
{
    struct rlimit limit = {100000, RLIM_INFINITY};
    ckb_target target;
    target_make(in_place("", "volume"), 131072, 2097152, &target);
    cr_assert_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    cr_assert_eq(target.medium.erase(target.medium.context, 0), CKB_NOSPACE);
    cr_assert_not(test_exists(place, "volume/segment-00000000"));
    target_close(&target);
    ckb_target_options other = {.create = true, .segment_bytes = 131072, .size_bytes = 2097152};
    open_fails(in_place("", "other"), &other, CKB_NOSPACE,
               "segments of 131072 bytes are above this process's file size limit of 100000");
    open_fails(in_place("file:", "image:1M"), &create, CKB_NOSPACE, "file size limit");
    cr_assert_not(test_exists(place, "other"));
    cr_assert_not(test_exists(place, "image"));
}

Test(directory, does_not_follow_a_link_in_place_of_its_lock, .init = place_make, .fini = place_remove)
{
    char canary[8] = "";
    test_file_make(in_place("", "canary"), "canary", 6);
    cr_assert_eq(mkdir(in_place("", "volume"), 0700), 0);
    cr_assert_eq(symlink("../canary", in_place("", "volume/chunkbench.lock")), 0);
    open_fails(in_place("", "volume"), &create, CKB_INVALID, "chunkbench.lock: is a symbolic link");
    cr_assert_eq(unlink(in_place("", "volume/chunkbench.lock")), 0);
    cr_assert_eq(mkfifo(in_place("", "volume/chunkbench.lock"), 0600), 0);
    open_fails(in_place("", "volume"), &create, CKB_IO, "chunkbench.lock: invalid argument");
    FILE *file = fopen(in_place("", "canary"), "r");
    cr_assert_eq(fread(canary, 1, sizeof canary, file), 6u);
    fclose(file);
    cr_assert_str_eq(canary, "canary");
}

Test(directory, works_at_long_paths_or_says_so_before_making_anything, .init = place_make, .fini = place_remove)
{
    static const size_t totals[] = {254, 255, 256, 511, 512, 1023, 4000, 4094, 4095, 4096};
    char *path = calloc(1, 8192);
    for (size_t at = 0; at < sizeof totals / sizeof totals[0]; at++) {
        ckb_target target;
        size_t length = strlen(place);
        int parent = open(place, O_RDONLY | O_DIRECTORY);
        snprintf(path, 8192, "%s", place);
        while (length + 202 < totals[at]) { /* parents, made by their descriptors: mkdir has the same limit */
            memset(path + length + 1, 'd', 200);
            path[length] = '/';
            path[length + 201] = '\0';
            mkdirat(parent, path + length + 1, 0700);
            int next = openat(parent, path + length + 1, O_RDONLY | O_DIRECTORY);
            close(parent);
            parent = next;
            length += 201;
        }
        close(parent);
        path[length] = '/';
        memset(path + length + 1, 'v', totals[at] - length - 1);
        path[totals[at]] = '\0';
        ckb_target_options options = {.create = true, .segment_bytes = 16384, .size_bytes = 1048576};
        int status = ckb_target_open(path, &options, &target);
        cr_assert_eq(status, totals[at] <= 4095 ? CKB_OK : CKB_INVALID, "%zu: %s", totals[at], target.error);
        if (status == CKB_OK) {
            single_units_are_written_and_read(&target.medium);
            target_close(&target);
        } else {
            cr_assert_not_null(strstr(target.error, "path too long: 4096 bytes"), "%s", target.error);
        }
    }
    memset(path, 'c', 256);
    path[256] = '\0';
    open_fails(in_place("", path), &create, CKB_INVALID, "name too long");
    free(path);
    cr_assert_eq(chdir(place), 0);
    (void)system("rm -rf -- ./*"); /* nftw has the limit that is tested here */
    cr_assert_eq(chdir("/"), 0);
}

Test(directory, names_what_stands_in_the_way, .init = place_make, .fini = place_remove)
{
    test_file_make(in_place("", "file"), "x", 1);
    open_fails(in_place("", "missing"), NULL, CKB_NOTFOUND, "missing: no such file or directory (ENOENT)");
    open_fails(in_place("", "missing/volume"), &create, CKB_NOTFOUND, "no such file or directory (ENOENT)");
    open_fails(in_place("", "file"), &create, CKB_INVALID, "file: is a file; an image is given as file:PATH");
    open_fails(in_place("", "file/volume"), &create, CKB_INVALID, "not a directory (ENOTDIR)");
    open_fails("", NULL, CKB_INVALID, "the target is empty");
    open_fails(place, &(ckb_target_options){.create = true, .read_only = true}, CKB_INVALID,
               "cannot be made read-only");
    open_fails(
        in_place("", "v"), &(ckb_target_options){.create = true, .segment_bytes = 1000}, CKB_INVALID,
        "segment size 1000 bytes; expected a multiple of its write unit of 512 bytes, and at least 8192");
    cr_assert_not(test_exists(place, "v")); /* nothing half-made */
}

/* ---- image and device ---- */

Test(image, is_made_whole_and_found_again, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    struct stat facts;
    volume_make(in_place("file:", "image:4M"), 0, 0, false);
    cr_assert_eq(stat(in_place("", "image"), &facts), 0);
    cr_assert_eq(facts.st_size, 4194304);
    cr_assert_geq((long)facts.st_blocks * 512, 4194304L);
    cr_assert_eq(facts.st_mode & 07777, 0600u);
    cr_assert_eq(ckb_target_open(in_place("file:", "image"), NULL, &target), CKB_OK, "%s", target.error);
    cr_assert_eq(target.capacity_bytes, 4194304u);
    cr_assert_eq(target.medium.geometry.write_unit, 4096u);
    cr_assert_str_eq(target.sync_kind, "fdatasync");
    target_close(&target);
    open_fails(in_place("file:", "image"), &create, CKB_EXISTS, "holds a volume of 64 segments of 65536 bytes");
    open_fails(in_place("file:", "image:8M"), NULL, CKB_INVALID,
               "the volume has 4194304 bytes, expected 8388608");
    cr_assert_eq(stat(in_place("", "image"), &facts), 0);
    cr_assert_eq(facts.st_size, 4194304); /* an existing volume is never extended */
}

Test(image, is_found_by_its_second_header, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    int file;
    volume_make(in_place("file:", "image:4M"), 131072, 0, false);
    file = open(in_place("", "image"), O_RDWR);
    cr_assert_eq(pwrite(file, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 0), 16);
    cr_assert_eq(ckb_target_open(in_place("file:", "image"), NULL, &target), CKB_OK, "%s", target.error);
    cr_assert_eq(target.medium.geometry.segment_bytes, 131072u);
    cr_assert_not_null(strstr(target.warnings.text[0], "segment 1 was used"));
    target_close(&target);
    cr_assert_eq(pwrite(file, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16, 131072), 16);
    close(file);
    open_fails(in_place("file:", "image"), NULL, CKB_NOTFOUND, "no volume here");
}

Test(image, that_is_cut_short_opens_read_only, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    unsigned char *buffer = buffer_make(4096, false);
    volume_make(in_place("file:", "image:1M"), 65536, 0, false);
    cr_assert_eq(truncate(in_place("", "image"), 1048576 - 65536 - 100), 0);
    open_fails(in_place("file:", "image"), NULL, CKB_CORRUPT,
               "cut short: it has 982940 bytes, the volume in it 1048576");
    cr_assert_eq(ckb_target_open(in_place("file:", "image"), &read_only, &target), CKB_OK);
    const ckb_medium *m = &target.medium;
    cr_assert_eq(m->read(m->context, 13, 0, buffer, 4096), CKB_OK);
    cr_assert_eq(m->read(m->context, 14, 61440, buffer, 4096), CKB_CORRUPT);
    cr_assert_eq(m->read(m->context, 15, 0, buffer, 4096), CKB_CORRUPT);
    target_close(&target);
    cr_assert_eq(truncate(in_place("", "image"), 1048576 + 100), 0);
    cr_assert_eq(ckb_target_open(in_place("file:", "image"), NULL, &target), CKB_OK);
    cr_assert_eq(target.unused_bytes, 100u);
    target_close(&target);
    free(buffer);
}

Test(image, of_odd_size_is_rounded_down_and_nothing_behind_the_limit_changes, .init = place_make,
     .fini = place_remove)
{
    static const uint64_t sizes[] = {1048576 + 512, 1048576 + 4095, 1048576 - 1};
    for (size_t at = 0; at < sizeof sizes / sizeof sizes[0]; at++) {
        ckb_target target;
        unsigned char *canary = buffer_make(65536, false);
        unsigned char *back = buffer_make(65536, false);
        ckb_target_options options = {
            .create = true, .destroy = true, .size_bytes = sizes[at], .segment_bytes = 65536};
        int file = open(in_place("", "image"), O_RDWR | O_CREAT | O_TRUNC, 0600);
        memset(canary, 0xC5, 65536);
        cr_assert_eq(pwrite(file, canary, 65536, (off_t)sizes[at]), 65536);
        cr_assert_eq(ckb_target_open(in_place("file:", "image"), &options, &target), CKB_OK, "%s",
                     target.error);
        cr_assert_eq(target.capacity_bytes, sizes[at] / 65536 * 65536);
        cr_assert_eq(target.unused_bytes, sizes[at] % 65536);
        every_segment_keeps_its_own_bytes(&target.medium);
        target_close(&target);
        cr_assert_eq(pread(file, back, 65536, (off_t)sizes[at]), 65536);
        cr_assert_eq(memcmp(canary, back, 65536), 0);
        close(file);
        free(canary);
        free(back);
    }
    open_fails(in_place("file:", "tiny:12287"), &create, CKB_INVALID, "too small");
    open_fails(in_place("file:", "tiny:0"), &create, CKB_INVALID, "is no size");
    cr_assert_not(test_exists(place, "tiny"));
}

Test(image, of_something_else_is_not_overwritten_unless_told, .init = place_make, .fini = place_remove)
{
    static const struct {
        long offset;
        const char *bytes;
        size_t length;
        const char *name;
    } foreign[] = {
        {0x438, "\x53\xEF", 2, "an ext2, ext3 or ext4 file system"},
        {0, "XFSB", 4, "an XFS file system"},
        {0x10040, "_BHRfS_M", 8, "a Btrfs file system"},
        {0, "LUKS\xBA\xBE", 6, "a LUKS volume"},
        {512, "LABELONE", 8, "an LVM2 physical volume"},
        {4086, "SWAPSPACE2", 10, "swap space"},
        {3, "NTFS    ", 8, "an NTFS file system"},
        {510, "\x55\xAA", 2, "a partition table or boot sector"},
        {512, "EFI PART", 8, "a GPT partition table"},
        {2097152 - 512, "EFI PART", 8, "a backup GPT partition table"},
        {4096, "\xFC\x4E\x2B\xA9", 4, "a member of a software RAID"},
        {2097152 - 65536, "\xFC\x4E\x2B\xA9", 4, "a member of a software RAID"},
        {2097152 - 8192, "\xFC\x4E\x2B\xA9", 4, "a member of a software RAID"},
        {131072 + 3072, "\x0C\xB1\xBA\0\0\0\0\0", 8, "a ZFS pool member"},
        {0, "\x1F\x8B\x08", 3, "a gzip file"},
        {1048575, "!", 1, "unknown content (first byte that is not blank at offset 1048575)"},
    };
    for (size_t at = 0; at < sizeof foreign / sizeof foreign[0]; at++) {
        ckb_target target;
        int file = open(in_place("", "image"), O_RDWR | O_CREAT | O_TRUNC, 0600);
        cr_assert_eq(ftruncate(file, 2097152), 0);
        cr_assert_eq(pwrite(file, foreign[at].bytes, foreign[at].length, foreign[at].offset),
                     (ssize_t)foreign[at].length);
        close(file);
        open_fails(in_place("file:", "image"), &create, CKB_EXISTS, foreign[at].name);
        cr_assert_eq(ckb_target_open(in_place("file:", "image"), &destroy, &target), CKB_OK);
        target_close(&target);
    }
}

Test(image, of_another_kind_is_refused, .init = place_make, .fini = place_remove)
{
    cr_assert_eq(mkfifo(in_place("", "fifo"), 0600), 0);
    open_fails(in_place("file:", "fifo"), &destroy, CKB_INVALID, "is a FIFO, expected an image file");
    open_fails(in_place("file:", ""), &destroy, CKB_INVALID, "is a directory, expected an image file");
    open_fails("file:/dev/null", &destroy, CKB_INVALID, "is a character device, expected an image file");
    open_fails("/dev/null", &destroy, CKB_INVALID, "is a character device, expected a block device");
    open_fails("/dev/fd", &destroy, CKB_INVALID, "is a directory, expected a block device");
    open_fails("/dev/no-such-device", &destroy, CKB_NOTFOUND, "no such file");
    open_fails("file:", &destroy, CKB_INVALID, "the target is empty");
    open_fails(in_place("file:", "missing"), &create, CKB_INVALID, "a new one needs a size");
    open_fails(in_place("file:", "missing:1M"), NULL, CKB_NOTFOUND, "no such file");
    open_fails(in_place("file:", "missing:12Q"), &create, CKB_INVALID, "\"12Q\" is no size");
    open_fails(in_place("file:", "missing:-1"), &create, CKB_INVALID, "\"-1\" is no size");
    open_fails(in_place("file:", "missing:99999999999T"), &create, CKB_INVALID, "at most 2^63-1 bytes");
    cr_assert_not(test_exists(place, "missing"));
}

Test(image, above_four_gigabytes_is_addressed_right, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    uint64_t segment_bytes = (uint64_t)5 << 30;
    ckb_target_options options = {.create = true, .segment_bytes = segment_bytes};
    int file = open(in_place("", "image"), O_RDWR | O_CREAT, 0600);
    cr_assert_eq(ftruncate(file, (off_t)(4 * segment_bytes)), 0); /* sparse */
    close(file);
    cr_assert_eq(ckb_target_open(in_place("file:", "image"), &options, &target), CKB_OK, "%s", target.error);
    static const uint64_t offsets[] = {0, 0x7FFFF000, 0x80000000, 0xFFFFF000, 0x100000000, 0x13FFFF000};
    for (uint32_t at = 0; at < 24; at++) {
        segment_write(&target.medium, at / 6, offsets[at % 6], 4096, at);
    }
    for (uint32_t at = 0; at < 24; at++) {
        segment_expect(&target.medium, at / 6, offsets[at % 6], 4096, at);
    }
    target_close(&target);
}

Test(device, is_found_again, .init = place_make, .fini = place_remove)
{
    loop l;
    ckb_target target;
    loop_make(&l, 4194304 + 512, 512);
    volume_make(l.path, 65536, 0, true);
    cr_assert_eq(ckb_target_open(l.path, NULL, &target), CKB_OK, "%s", target.error);
    cr_assert_eq(target.capacity_bytes, 4194304u);
    cr_assert_eq(target.unused_bytes, 512u);
    cr_assert(target.scratch);
    target_close(&target);
    cr_assert_eq(ckb_target_open(l.path, &create, &target), CKB_OK); /* a scratch volume may go */
    target_close(&target);
    open_fails(l.path, &(ckb_target_options){.create = true, .size_bytes = 8388608}, CKB_INVALID,
               "has 4194816 bytes, expected at least 8388608");
}

Test(device, keeps_a_canary_behind_the_limit, .init = place_make, .fini = place_remove)
{
    loop l;
    ckb_target target;
    char back[6];
    ckb_target_options options = {
        .create = true, .destroy = true, .size_bytes = 1048576, .segment_bytes = 65536};
    loop_make(&l, 2097152, 4096);
    cr_assert_eq(pwrite(l.backing, "canary", 6, 1048576), 6);
    cr_assert_eq(ckb_target_open(l.path, &options, &target), CKB_OK, "%s", target.error);
    every_segment_keeps_its_own_bytes(&target.medium);
    target_close(&target);
    cr_assert_eq(pread(l.backing, back, 6, 1048576), 6);
    cr_assert_eq(memcmp(back, "canary", 6), 0);
}

Test(device, of_one_sector_is_refused, .init = place_make, .fini = place_remove)
{
    loop l;
    loop_make(&l, 512, 512);
    open_fails(l.path, &create, CKB_INVALID, "too small: 512 bytes hold 0 segments");
}

Test(device, that_is_mounted_is_refused_even_with_destroy, .init = place_make, .fini = place_remove)
{
    loop l;
    loop_make(&l, 16777216, 512);
    if (!run_on("mkfs.ext4", "-q", "-F", l.path)) {
        test_skip("no mkfs.ext4 here");
    }
    open_fails(l.path, &create, CKB_EXISTS, "holds an ext2, ext3 or ext4 file system");
    open_fails(l.path, NULL, CKB_NOTFOUND, "no volume here");
    mounts_unshare();
    cr_assert_eq(mkdir(in_place("", "mounted"), 0700), 0);
    cr_assert_eq(mount(l.path, in_place("", "mounted"), "ext4", 0, NULL), 0);
    open_fails(l.path, &destroy, CKB_BUSY, "mounted on ");
    cr_assert_eq(umount2(in_place("", "mounted"), 0), 0);
    ckb_target target;
    cr_assert_eq(ckb_target_open(l.path, &destroy, &target), CKB_OK, "%s", target.error);
    target_close(&target);
}

/* A partition table of one entry that covers the disk from sector 2048 on, as the kernel reads it. */
static void partition_table_write(int backing, uint32_t sectors)
{
    unsigned char table[512] = {0};
    uint32_t count = sectors - 2048;
    table[446 + 4] = 0x83;
    table[446 + 9] = 8; /* 2048 */
    for (uint32_t byte = 0; byte < 4; byte++) {
        table[446 + 12 + byte] = (unsigned char)(count >> (8 * byte));
    }
    table[510] = 0x55;
    table[511] = 0xAA;
    cr_assert_eq(pwrite(backing, table, sizeof table, 0), (ssize_t)sizeof table);
}

/* Adds a partition from sector 2048 on: by a call, since not every kernel reads partition tables. */
static bool partition_add(const loop *l, char path[48])
{
    struct loop_info64 info;
    struct blkpg_partition partition = {.start = 1048576, .length = 32505856, .pno = 1};
    struct blkpg_ioctl_arg request = {
        .op = BLKPG_ADD_PARTITION, .datalen = sizeof partition, .data = &partition};
    char number_path[96];
    unsigned int major_number, minor_number;
    if (ioctl(l->file, LOOP_GET_STATUS64, &info) != 0) {
        return false;
    }
    info.lo_flags |= LO_FLAGS_PARTSCAN;
    (void)ioctl(l->file, LOOP_SET_STATUS64, &info);
    if (ioctl(l->file, BLKPG, &request) != 0 && errno != EBUSY) { /* busy: it was found in the table */
        return false;
    }
    snprintf(number_path, sizeof number_path, "/sys/block/%.20s/%.20sp1/dev", l->path + 5, l->path + 5);
    FILE *file = fopen(number_path, "r");
    bool known = file != NULL && fscanf(file, "%u:%u", &major_number, &minor_number) == 2;
    if (file != NULL) {
        fclose(file);
    }
    snprintf(path, 48, "%.24sp1", l->path);
    return known &&
           (access(path, F_OK) == 0 || mknod(path, S_IFBLK | 0600, makedev(major_number, minor_number)) == 0);
}

Test(device, with_partitions_is_refused, .init = place_make, .fini = place_remove)
{
    loop l;
    char partition[48];
    loop_make(&l, 33554432, 512);
    partition_table_write(l.backing, 65536);
    open_fails(l.path, &create, CKB_EXISTS, "a partition table or boot sector");
    if (!partition_add(&l, partition)) {
        test_skip("no partitions of loop devices here");
    }
    if (!run_on("mkfs.ext4", "-q", "-F", partition)) {
        test_skip("no mkfs.ext4 here");
    }
    open_fails(l.path, &create, CKB_EXISTS, "has partitions, for example ");
    mounts_unshare();
    cr_assert_eq(mkdir(in_place("", "mounted"), 0700), 0);
    cr_assert_eq(mount(partition, in_place("", "mounted"), "ext4", 0, NULL), 0);
    open_fails(l.path, &destroy, CKB_BUSY, "is mounted on ");
    cr_assert_eq(umount2(in_place("", "mounted"), 0), 0);
}

Test(device, made_with_small_sectors_works_on_large_ones, .init = place_make, .fini = place_remove)
{
    loop l;
    ckb_target target;
    char *whole = calloc(1, 1048576);
    loop_make(&l, 1048576, 512);
    volume_make(l.path, 65536, 0, false);
    cr_assert_eq(pread(l.backing, whole, 1048576, 0), 1048576);
    close(l.file);
    loop_make(&l, 1048576, 4096);
    cr_assert_eq(pwrite(l.backing, whole, 1048576, 0), 1048576);
    cr_assert_eq(ckb_target_open(l.path, NULL, &target), CKB_OK, "%s", target.error);
    if (target.medium.geometry.write_unit < 4096) {
        cr_assert_not(target.direct);
        cr_assert_not_null(
            strstr(target.warnings.text[0], "made for sectors of 512 bytes, this device has 4096"));
    }
    every_segment_keeps_its_own_bytes(&target.medium);
    target_close(&target);
    free(whole);
}

/* ---- RAM and sizes ---- */

Test(ram, that_does_not_fit_is_refused, .init = place_make, .fini = place_remove)
{
    ckb_target target;
    open_fails("ram:8T", &create, CKB_NOSPACE, "ram: 8 TiB do not fit into memory");
    open_fails("ram:", &create, CKB_INVALID, "expected a size such as ram:64M");
    open_fails("ram:0", &create, CKB_INVALID, "expected a size");
    open_fails("ram:x", &create, CKB_INVALID, "ram:x: expected a size");
    open_fails("ram:99999999999T", &create, CKB_INVALID, "2^64 bytes or more");
    open_fails("ram:1K", &create, CKB_INVALID, "too small");
    open_fails("ram:1M", NULL, CKB_NOTFOUND, "memory holds no volume");
    target_make("ram:1M", 0, 0, &target);
    cr_assert_str_eq(target.sync_kind, "none (ram)");
    cr_assert_eq(target.medium.geometry.write_unit, 64u);
    target_close(&target);
}

Test(ram, of_the_callers_refuses_impossible_geometry)
{
    static unsigned char memory[4096];
    ckb_ram ram;
    ckb_medium medium;
    cr_assert_eq(ckb_ram_medium(&ram, &medium, memory, sizeof memory, 1024, 4), CKB_INVALID);
    cr_assert_eq(ckb_ram_medium(&ram, &medium, memory, sizeof memory, 1024, 24), CKB_INVALID);
    cr_assert_eq(ckb_ram_medium(&ram, &medium, memory, sizeof memory, 0, 8), CKB_INVALID);
    cr_assert_eq(ckb_ram_medium(&ram, &medium, memory, sizeof memory, 1028, 8), CKB_INVALID);
    cr_assert_eq(ckb_ram_medium(&ram, &medium, memory, sizeof memory, 8192, 8), CKB_INVALID);
    cr_assert_eq(ckb_ram_medium(&ram, &medium, memory, sizeof memory, 1000, 8), CKB_OK);
    cr_assert_eq(medium.geometry.segment_count, 4u);
}

Test(target, chooses_a_segment_size_that_suits_the_capacity)
{
    cr_assert_eq(ckb_default_segment_bytes((uint64_t)1 << 40, 512), 67108864u);
    cr_assert_eq(ckb_default_segment_bytes((uint64_t)1 << 34, 512), 67108864u);
    cr_assert_eq(ckb_default_segment_bytes((uint64_t)1 << 30, 512), 4194304u);
    cr_assert_eq(ckb_default_segment_bytes(1400u << 20, 512), 4194304u);
    cr_assert_eq(ckb_default_segment_bytes(1600u << 20, 512), 8388608u);
    cr_assert_eq(ckb_default_segment_bytes(4194304, 512), 65536u);
    cr_assert_eq(ckb_default_segment_bytes(262144, 512), 32768u);
    cr_assert_eq(ckb_default_segment_bytes(1, 512), 8192u);
    cr_assert_eq(ckb_default_segment_bytes(1, 4096), 65536u);
}

/* ---- scratch directories ---- */

static uint32_t entries_count(const char *path)
{
    DIR *list = opendir(path);
    struct dirent *entry;
    uint32_t count = 0;
    while ((entry = readdir(list)) != NULL) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 ? 1 : 0;
    }
    closedir(list);
    return count;
}

Test(scratch, is_removed_with_its_volume_and_nothing_else, .init = place_make, .fini = place_remove)
{
    ckb_scratch scratch;
    char error[CKB_ERROR_BYTES], path[CKB_PATH_BYTES + 32];
    struct stat facts;
    test_file_make(in_place("", "canary"), "x", 1);
    cr_assert_eq(ckb_scratch_create(place, &scratch, error), CKB_OK, "%s", error);
    cr_assert_eq(stat(scratch.path, &facts), 0);
    cr_assert_eq(facts.st_mode & 07777, 0700u);
    volume_make(scratch.path, 16384, 1048576, true);
    cr_assert_eq(ckb_scratch_remove(&scratch, error), CKB_OK, "%s", error);
    cr_assert_eq(ckb_scratch_remove(&scratch, error), CKB_OK);
    cr_assert_eq(entries_count(place), 1u);
    cr_assert_eq(ckb_scratch_create(place, &scratch, error), CKB_OK);
    snprintf(path, sizeof path, "%s/mine", scratch.path);
    test_file_make(path, "x", 1);
    snprintf(path, sizeof path, "%s/segment-00000000", scratch.path);
    cr_assert_eq(symlink("../canary", path), 0);
    cr_assert_eq(ckb_scratch_remove(&scratch, error), CKB_EXISTS);
    cr_assert_not_null(strstr(error, "in it is not a volume's"), "%s", error);
    cr_assert(test_exists(place, "canary"));
    cr_assert(test_exists(scratch.path, "mine"));
}

Test(scratch, of_a_killed_run_is_removed_by_the_next_one, .init = place_make, .fini = place_remove)
{
    ckb_scratch scratch, running;
    char error[CKB_ERROR_BYTES];
    pid_t child = fork();
    if (child == 0) {
        cr_assert_eq(ckb_scratch_create(place, &scratch, error), CKB_OK);
        volume_make(scratch.path, 16384, 1048576, true);
        _exit(0); /* as after a kill: nothing is cleaned up */
    }
    waitpid(child, NULL, 0);
    cr_assert_eq(entries_count(place), 1u);
    cr_assert_eq(ckb_scratch_create(place, &running, error), CKB_OK, "%s", error);
    cr_assert_eq(entries_count(place), 1u);
    cr_assert_eq(ckb_scratch_create(place, &scratch, error), CKB_OK);
    cr_assert_eq(entries_count(place), 2u); /* the one that runs stays */
    cr_assert_eq(ckb_scratch_remove(&scratch, error), CKB_OK);
    cr_assert_eq(ckb_scratch_remove(&running, error), CKB_OK);
    cr_assert_eq(entries_count(place), 0u);
}

Test(scratch, uses_a_directory_itself_only_when_it_may, .init = place_make, .fini = place_remove)
{
    ckb_scratch scratch, second;
    char error[CKB_ERROR_BYTES];
    const char *path = in_place("", "kept");
    cr_assert_eq(ckb_scratch_adopt(path, &scratch, error), CKB_OK, "%s", error);
    volume_make(path, 16384, 1048576, true);
    cr_assert_eq(ckb_scratch_adopt(path, &second, error), CKB_BUSY);
    ckb_scratch_keep(&scratch);
    cr_assert(test_exists(path, "segment-00000000"));
    cr_assert_eq(ckb_scratch_adopt(path, &scratch, error), CKB_OK, "%s", error);
    cr_assert_not(test_exists(path, "segment-00000000"));
    test_file_make(in_place("", "kept/mine"), "x", 1);
    ckb_scratch_keep(&scratch);
    cr_assert_eq(ckb_scratch_adopt(path, &scratch, error), CKB_EXISTS);
    cr_assert_not_null(strstr(error, "it holds mine"), "%s", error);
    volume_make(in_place("", "real"), 16384, 1048576, false);
    cr_assert_eq(ckb_scratch_adopt(in_place("", "real"), &scratch, error), CKB_EXISTS);
    cr_assert_not_null(strstr(error, "a volume that is none"), "%s", error);
    cr_assert(test_exists(in_place("", "real"), "segment-00000000"));
}

Test(scratch, marks_volume_ids)
{
    uint8_t first[16], second[16];
    cr_assert_eq(ckb_volume_id_make(first, true), CKB_OK);
    cr_assert_eq(ckb_volume_id_make(second, true), CKB_OK);
    cr_assert(ckb_volume_id_is_scratch(first));
    cr_assert_neq(memcmp(first, second, 16), 0);
    cr_assert_eq(ckb_volume_id_make(second, false), CKB_OK);
    cr_assert_not(ckb_volume_id_is_scratch(second));
}

/* ---- host and parsers ---- */

static void thread_mark(void *context)
{
    *(int *)context = 1;
}

Test(host, knows_this_machine, .init = place_make, .fini = place_remove)
{
    ckb_host_facts facts;
    ckb_warnings warnings = {0};
    ckb_host_thread thread;
    int ran = 0;
    ckb_host_facts_read(place, &facts);
    cr_assert(strncmp(facts.kernel, "Linux ", 6) == 0);
    cr_assert_gt(facts.cores, 0u);
    cr_assert_gt(facts.memory_bytes, facts.memory_available_bytes);
    cr_assert_gt(facts.free_bytes, 0u);
    cr_assert_neq(facts.file_system[0], '\0');
    ckb_host_warn(&facts, 1, facts.cores + 1, &warnings);
    cr_assert_geq(warnings.count, 2u);
    uint64_t before = ckb_host_clock_ns();
    ckb_host_sleep_ns(2000000);
    cr_assert_geq(ckb_host_clock_ns() - before, 2000000u);
    cr_assert_eq(ckb_host_thread_start(&thread, thread_mark, &ran), CKB_OK);
    cr_assert_eq(ckb_host_thread_join(&thread), CKB_OK);
    cr_assert_eq(ran, 1);
}

Test(parse, reads_sizes)
{
    static const struct {
        const char *text;
        int status;
        uint64_t bytes;
    } table[] = {
        {"0", CKB_OK, 0},
        {"4096", CKB_OK, 4096},
        {"512B", CKB_OK, 512},
        {"1K", CKB_OK, 1024},
        {"1k", CKB_OK, 1024},
        {"64KiB", CKB_OK, 65536},
        {"3M", CKB_OK, 3145728},
        {"2GB", CKB_OK, 2147483648},
        {"1T", CKB_OK, 1099511627776},
        {"18446744073709551615", CKB_OK, UINT64_MAX},
        {"16777215T", CKB_OK, 18446742974197923840u},
        {"18446744073709551616", CKB_TOOBIG, 0},
        {"16777216T", CKB_TOOBIG, 0},
        {"99999999999999999999999K", CKB_TOOBIG, 0},
        {"", CKB_INVALID, 0},
        {"K", CKB_INVALID, 0},
        {"-1", CKB_INVALID, 0},
        {"+1", CKB_INVALID, 0},
        {" 1", CKB_INVALID, 0},
        {"1 ", CKB_INVALID, 0},
        {"1 K", CKB_INVALID, 0},
        {"0x10", CKB_INVALID, 0},
        {"1e3", CKB_INVALID, 0},
        {"1.5G", CKB_INVALID, 0},
        {"1,5G", CKB_INVALID, 0},
        {"nan", CKB_INVALID, 0},
        {"inf", CKB_INVALID, 0},
        {"1KK", CKB_INVALID, 0},
        {"1iB", CKB_INVALID, 0},
        {"1Ki", CKB_INVALID, 0},
        {"1P", CKB_INVALID, 0},
    };
    for (size_t at = 0; at < sizeof table / sizeof table[0]; at++) {
        uint64_t bytes = 0;
        cr_assert_eq(ckb_parse_size(table[at].text, &bytes), table[at].status, "\"%s\"", table[at].text);
        cr_assert_eq(bytes, table[at].bytes, "\"%s\"", table[at].text);
    }
}

Test(parse, reads_durations)
{
    static const struct {
        const char *text;
        int status;
        uint64_t ns;
    } table[] = {
        {"0", CKB_OK, 0},
        {"250ns", CKB_OK, 250},
        {"10us", CKB_OK, 10000},
        {"1.5ms", CKB_OK, 1500000},
        {"30s", CKB_OK, 30000000000},
        {"1.5s", CKB_OK, 1500000000},
        {"0.000000001s", CKB_OK, 1},
        {"0.0000000001s", CKB_OK, 0},
        {"1.000000000000000000000000000001s", CKB_OK, 1000000000},
        {"10m", CKB_OK, 600000000000},
        {"0.1h", CKB_OK, 360000000000},
        {"2h", CKB_OK, 7200000000000},
        {"18446744073709551615ns", CKB_OK, UINT64_MAX},
        {"18446744073709551616ns", CKB_TOOBIG, 0},
        {"5124096h", CKB_TOOBIG, 0},
        {"", CKB_INVALID, 0},
        {"1", CKB_INVALID, 0},
        {"s", CKB_INVALID, 0},
        {".5s", CKB_INVALID, 0},
        {"1.s", CKB_INVALID, 0},
        {"1,5s", CKB_INVALID, 0},
        {"-1s", CKB_INVALID, 0},
        {"+1s", CKB_INVALID, 0},
        {"1 s", CKB_INVALID, 0},
        {"1s ", CKB_INVALID, 0},
        {"1e3s", CKB_INVALID, 0},
        {"0x1s", CKB_INVALID, 0},
        {"nan", CKB_INVALID, 0},
        {"1d", CKB_INVALID, 0},
        {"1S", CKB_INVALID, 0},
    };
    for (size_t at = 0; at < sizeof table / sizeof table[0]; at++) {
        uint64_t ns = 0;
        cr_assert_eq(ckb_parse_duration(table[at].text, &ns), table[at].status, "\"%s\"", table[at].text);
        cr_assert_eq(ns, table[at].ns, "\"%s\"", table[at].text);
    }
}

Test(parse, splits_target_strings)
{
    static const struct {
        const char *text;
        ckb_target_kind kind;
        const char *path;
        uint64_t size;
    } table[] = {
        {"ram:64M", CKB_TARGET_RAM, "", 67108864},
        {"/srv/data", CKB_TARGET_DIRECTORY, "/srv/data", 0},
        {".", CKB_TARGET_DIRECTORY, ".", 0},
        {"./ram:64M", CKB_TARGET_DIRECTORY, "./ram:64M", 0},
        {"/dev/shm/x", CKB_TARGET_DIRECTORY, "/dev/shm/x", 0},
        {"/dev/sdb", CKB_TARGET_DEVICE, "/dev/sdb", 0},
        {"file:image", CKB_TARGET_IMAGE, "image", 0},
        {"file:image:1G", CKB_TARGET_IMAGE, "image", 1073741824},
        {"file:a:b", CKB_TARGET_IMAGE, "a:b", 0},
        {"file:/x:1/b", CKB_TARGET_IMAGE, "/x:1/b", 0},
        {"file:a:b:4K", CKB_TARGET_IMAGE, "a:b", 4096},
    };
    for (size_t at = 0; at < sizeof table / sizeof table[0]; at++) {
        char path[CKB_PATH_BYTES], error[CKB_ERROR_BYTES];
        ckb_target_kind kind;
        uint64_t size = 1;
        cr_assert_eq(ckb_target_parse(table[at].text, &kind, path, &size, error), CKB_OK, "%s", error);
        cr_assert_eq(kind, table[at].kind, "%s", table[at].text);
        cr_assert_str_eq(path, table[at].path);
        cr_assert_eq(size, table[at].size, "%s", table[at].text);
    }
}
