/* Directories for one benchmark, and their removal.
 *
 * A mark file says that a benchmark made the directory; whoever uses it holds the mark's lock. Names are
 * random and made exclusively, so that a link planted under a guessed name is never followed. Removal
 * works on descriptors and names that a volume consists of, never on links or names of others. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "os.h"

#define PREFIX "chunkbench-scratch-"
#define ATTEMPTS 16u
static const char mark_text[] = "chunkbench scratch directory: may be removed when no chunkbench runs\n";

static int refuse(char error[CKB_ERROR_BYTES], const char *path, int status, const char *what)
{
    ckb_os_shown shown;
    ckb_os_text(error, CKB_ERROR_BYTES, "%s: %s", ckb_os_show(path, &shown), what);
    return status;
}

static int refuse_error(char error[CKB_ERROR_BYTES], const char *path, int number)
{
    return refuse(error, path, ckb_os_status(number), ckb_os_error_text(number));
}

/* Opens and locks the mark of a directory. 0, ENOENT, EWOULDBLOCK, EINVAL: not a mark, or another errno. */
static int mark_lock(int directory, int *mark)
{
    char text[sizeof mark_text];
    size_t got = 0;
    struct stat facts;
    int error = ckb_os_open(directory, CKB_OS_MARK_NAME, O_RDWR | O_NOFOLLOW | O_NONBLOCK, 0, mark);
    if (error != 0) {
        return error;
    }
    error = ckb_os_lock(*mark, false);
    if (error == 0) {
        error = ckb_os_read(*mark, text, sizeof text, 0, &got);
    }
    bool known = got == sizeof mark_text - 1 && memcmp(text, mark_text, got) == 0;
    if (error == 0 && (fstat(*mark, &facts) != 0 || !S_ISREG(facts.st_mode) || !known)) {
        error = EINVAL;
    }
    if (error != 0) {
        close(*mark);
        *mark = -1;
    }
    return error;
}

static int mark_make(int directory, int *mark)
{
    int error = ckb_os_make(directory, CKB_OS_MARK_NAME, mark);
    if (error != 0) {
        return error;
    }
    error = ckb_os_lock(*mark, false);
    if (error == 0) {
        error = ckb_os_write(*mark, mark_text, sizeof mark_text - 1, 0);
    }
    if (error != 0) {
        (void)unlinkat(directory, CKB_OS_MARK_NAME, 0);
        close(*mark);
        *mark = -1;
    }
    return error;
}

/* Calls `each` for every entry but "." and ".." until it returns non-zero, which is returned. */
static int entries_each(int directory, int (*each)(int directory, const char *name, void *context),
                        void *context)
{
    struct dirent *entry;
    int file = -1;
    int result = ckb_os_open(directory, ".", O_RDONLY | O_DIRECTORY, 0, &file);
    if (result != 0) {
        return result;
    }
    DIR *list = fdopendir(file);
    if (list == NULL) {
        close(file);
        return ENOMEM;
    }
    while (errno = 0, result == 0 && (entry = readdir(list)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0) {
            result = each(directory, entry->d_name, context);
        }
    }
    result = result != 0 ? result : errno;
    closedir(list);
    return result;
}

/* A regular file with a name that volumes use; a link is not. */
static bool ours(int directory, const char *name)
{
    struct stat facts;
    uint32_t segment;
    bool known = ckb_os_segment_number(name, &segment) || strcmp(name, CKB_OS_LOCK_NAME) == 0 ||
                 strcmp(name, CKB_OS_MARK_NAME) == 0;
    return known && fstatat(directory, name, &facts, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(facts.st_mode);
}

static int stranger_find(int directory, const char *name, void *context)
{
    char *stranger = context;
    if (ours(directory, name)) {
        return 0;
    }
    ckb_os_text(stranger, NAME_MAX + 1, "%s", name);
    return EEXIST;
}

/* Removes a file of a volume, but not the mark: it goes last, so that a removal that was stopped is
 * recognized. */
static int volume_file_remove(int directory, const char *name, void *context)
{
    (void)context;
    if (!ours(directory, name) || strcmp(name, CKB_OS_MARK_NAME) == 0) {
        return 0;
    }
    return unlinkat(directory, name, 0) == 0 || errno == ENOENT ? 0 : errno;
}

/* ---- what killed runs left ---- */

static int abandoned_remove(int parent, const char *name, void *context)
{
    int directory = -1, mark = -1;
    (void)context;
    if (strncmp(name, PREFIX, sizeof PREFIX - 1) != 0 ||
        ckb_os_open(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0, &directory) != 0) {
        return 0;
    }
    if (mark_lock(directory, &mark) == 0) { /* nobody holds it: its owner is gone */
        if (entries_each(directory, volume_file_remove, NULL) == 0) {
            (void)unlinkat(directory, CKB_OS_MARK_NAME, 0);
            (void)unlinkat(parent, name, AT_REMOVEDIR);
        }
        close(mark);
    }
    close(directory);
    return 0;
}

/* ---- making ---- */

static int parent_open(const char *directory, int *parent, char error[CKB_ERROR_BYTES])
{
    *parent = -1;
    if (strlen(directory) + 64 >= CKB_PATH_BYTES) {
        return refuse(error, directory, CKB_INVALID, "path too long for a scratch directory in it");
    }
    int number = ckb_os_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0, parent);
    return number == 0 ? CKB_OK : refuse_error(error, directory, number);
}

static int name_make(char name[64])
{
    unsigned char random[8];
    int status = ckb_random(random, sizeof random);
    size_t at = sizeof PREFIX - 1;
    memcpy(name, PREFIX, at);
    for (size_t byte = 0; byte < sizeof random; byte++, at += 2) {
        name[at] = "0123456789abcdef"[random[byte] >> 4];
        name[at + 1] = "0123456789abcdef"[random[byte] & 15];
    }
    name[at] = '\0';
    return status;
}

/* One attempt. EEXIST: the name is taken, or a sweeper was quicker; try another. */
static int scratch_try(ckb_scratch *scratch)
{
    if (name_make(scratch->name) != CKB_OK) {
        return EIO;
    }
    if (mkdirat(scratch->parent, scratch->name, 0700) != 0) {
        return errno;
    }
    int error = ckb_os_open(scratch->parent, scratch->name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0,
                            &scratch->directory);
    if (error == 0) {
        error = mark_make(scratch->directory, &scratch->mark);
    }
    if (error != 0) {
        if (scratch->directory >= 0) {
            close(scratch->directory);
        }
        (void)unlinkat(scratch->parent, scratch->name, AT_REMOVEDIR);
        scratch->directory = -1;
    }
    return error == EWOULDBLOCK ? EEXIST : error;
}

static void scratch_clear(ckb_scratch *scratch)
{
    memset(scratch, 0, sizeof *scratch);
    scratch->directory = scratch->parent = scratch->mark = -1;
}

int ckb_scratch_create(const char *directory, ckb_scratch *scratch, char error[CKB_ERROR_BYTES])
{
    int number = EEXIST;
    error[0] = '\0';
    scratch_clear(scratch);
    int status = parent_open(directory, &scratch->parent, error);
    if (status != CKB_OK) {
        return status;
    }
    (void)entries_each(scratch->parent, abandoned_remove, NULL); /* best effort: they may be another user's */
    for (uint32_t attempt = 0; attempt < ATTEMPTS && number == EEXIST; attempt++) {
        number = scratch_try(scratch);
    }
    if (number != 0) {
        close(scratch->parent);
        scratch_clear(scratch);
        return refuse_error(error, directory, number);
    }
    const char *slash = directory[strlen(directory) - 1] == '/' ? "" : "/";
    ckb_os_text(scratch->path, sizeof scratch->path, "%s%s%s", directory, slash, scratch->name);
    return CKB_OK;
}

/* Takes possession of a directory that is open: its mark if it has one, otherwise it must be empty. */
static int directory_adopt(const char *path, ckb_scratch *scratch, char error[CKB_ERROR_BYTES])
{
    char stranger[NAME_MAX + 1] = "", text[NAME_MAX + 64];
    bool files = false;
    int number = mark_lock(scratch->directory, &scratch->mark);
    if (number == EWOULDBLOCK) {
        return refuse(error, path, CKB_BUSY, "a benchmark is running in it");
    }
    if (number != 0 && number != ENOENT) {
        return refuse(error, path, CKB_EXISTS, "its mark of a scratch volume is not one of ours");
    }
    bool marked = number == 0;
    number = entries_each(scratch->directory, stranger_find, stranger);
    if (number == 0 && !marked) {
        for (uint32_t segment = 0; segment < 2; segment++) {
            char name[CKB_OS_NAME_BYTES];
            ckb_os_segment_name(segment, name);
            files = files || faccessat(scratch->directory, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
        }
    }
    if (number == EEXIST || files) {
        ckb_os_text(text, sizeof text, "must be empty or hold a scratch volume; it holds %s",
                    files ? "a volume that is none" : stranger);
        return refuse(error, path, CKB_EXISTS, text);
    }
    if (number == 0) {
        number = marked ? entries_each(scratch->directory, volume_file_remove, NULL)
                        : mark_make(scratch->directory, &scratch->mark);
    }
    if (number == EEXIST || number == EWOULDBLOCK) {
        return refuse(error, path, CKB_BUSY, "a benchmark is starting in it");
    }
    return number == 0 ? CKB_OK : refuse_error(error, path, number);
}

int ckb_scratch_adopt(const char *directory, ckb_scratch *scratch, char error[CKB_ERROR_BYTES])
{
    error[0] = '\0';
    scratch_clear(scratch);
    if (strlen(directory) >= CKB_PATH_BYTES) {
        return refuse(error, directory, CKB_INVALID, "path too long");
    }
    bool made = mkdir(directory, 0700) == 0;
    if (!made && errno != EEXIST) {
        return refuse_error(error, directory, errno);
    }
    int number = ckb_os_open(AT_FDCWD, directory, O_RDONLY | O_DIRECTORY, 0, &scratch->directory);
    int status =
        number == 0 ? directory_adopt(directory, scratch, error) : refuse_error(error, directory, number);
    if (status == CKB_OK) {
        ckb_os_text(scratch->path, sizeof scratch->path, "%s", directory);
        scratch->keep = true;
        return CKB_OK;
    }
    ckb_scratch_keep(scratch);
    if (made) {
        (void)rmdir(directory);
    }
    return status;
}

/* ---- letting go ---- */

void ckb_scratch_keep(ckb_scratch *scratch)
{
    const int files[] = {scratch->directory, scratch->parent, scratch->mark};
    for (size_t at = 0; at < sizeof files / sizeof files[0]; at++) {
        if (files[at] >= 0) {
            close(files[at]);
        }
    }
    scratch->directory = scratch->parent = scratch->mark = -1;
}

int ckb_scratch_remove(ckb_scratch *scratch, char error[CKB_ERROR_BYTES])
{
    char stranger[NAME_MAX + 1] = "";
    error[0] = '\0';
    if (scratch->directory < 0) {
        return CKB_OK;
    }
    int number = entries_each(scratch->directory, volume_file_remove, NULL);
    if (number == 0) {
        number = entries_each(scratch->directory, stranger_find, stranger);
    }
    if (number == 0 && unlinkat(scratch->directory, CKB_OS_MARK_NAME, 0) != 0) {
        number = errno;
    }
    if (number == 0 && !scratch->keep && unlinkat(scratch->parent, scratch->name, AT_REMOVEDIR) != 0) {
        number = errno;
    }
    ckb_scratch_keep(scratch);
    if (number == EEXIST) {
        char text[NAME_MAX + 64];
        ckb_os_text(text, sizeof text, "stays: %s in it is not a volume's", stranger);
        return refuse(error, scratch->path, CKB_EXISTS, text);
    }
    return number == 0 ? CKB_OK : refuse_error(error, scratch->path, number);
}
