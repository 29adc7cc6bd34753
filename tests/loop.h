/* Loop devices over a file that has no name any more: they vanish with the process of the test, whatever happens
 * in it. */
#ifndef LOOP_H
#define LOOP_H

#include "test.h"

#include <errno.h>
#include <linux/loop.h>
#include <sys/ioctl.h>

typedef struct loop {
    int file; /* keeps the device; it detaches itself when the last descriptor goes */
    int backing;
    char path[32];
} loop;

static inline int loop_attach(loop *l, uint32_t sector_bytes)
{
    struct loop_config config = {.fd = (uint32_t)l->backing, .block_size = sector_bytes};
    config.info.lo_flags = LO_FLAGS_AUTOCLEAR;
    int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC);
    int number = control < 0 ? -1 : ioctl(control, LOOP_CTL_GET_FREE);
    if (control >= 0) {
        close(control);
    }
    if (number < 0) {
        return errno;
    }
    snprintf(l->path, sizeof l->path, "/dev/loop%d", number);
    l->file = open(l->path, O_RDWR | O_CLOEXEC);
    if (l->file < 0) {
        return errno;
    }
    if (ioctl(l->file, LOOP_CONFIGURE, &config) != 0) {
        int error = errno;
        close(l->file);
        return error;
    }
    return 0;
}

/* Makes a loop device of so many zero bytes, in a file that is made at `path`, or skips the test aloud. */
static inline void loop_make_of(loop *l, const char *path, uint64_t bytes, uint32_t sector_bytes)
{
    int error = EBUSY;
    l->backing = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    cr_assert_geq(l->backing, 0);
    unlink(path);
    cr_assert_eq(ftruncate(l->backing, (off_t)bytes), 0);
    for (int attempt = 0; attempt < 50 && error == EBUSY; attempt++) { /* other tests take them as well */
        error = loop_attach(l, sector_bytes);
        if (error == EBUSY) {
            usleep(20000);
        }
    }
    if (error != 0) {
        test_skip("no loop devices here (%s)", strerror(error));
    }
}

#endif
