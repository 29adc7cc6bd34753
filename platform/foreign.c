/* What must not be overwritten: devices in use, and content of somebody else's. */
#define _GNU_SOURCE
#define _FILE_OFFSET_BITS 64
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "os.h"

#define HEAD_BYTES 1048576u
#define TAIL_BYTES 135168u /* back to the superblock of an old software RAID, 64 KiB aligned */

typedef struct signature {
    const char *name;
    uint32_t offset;
    uint8_t length;
    const char *bytes;
} signature;

/* Offsets are from the start. From the layouts these systems document. */
static const signature signatures[] = {
    {"an ext2, ext3 or ext4 file system", 0x438, 2, "\x53\xEF"},
    {"an XFS file system", 0, 4, "XFSB"},
    {"a Btrfs file system", 0x10040, 8, "_BHRfS_M"},
    {"an F2FS file system", 0x400, 4, "\x10\x20\xF5\xF2"},
    {"an EROFS file system", 0x400, 4, "\xE2\xE1\xF5\xE0"},
    {"a NILFS2 file system", 0x406, 2, "\x34\x34"},
    {"a JFS file system", 0x8000, 4, "JFS1"},
    {"a ReiserFS file system", 0x10034, 6, "ReIsEr"},
    {"a bcachefs file system or bcache device", 0x1018, 4, "\xC6\x85\x73\xF6"},
    {"an NTFS file system", 3, 8, "NTFS    "},
    {"an exFAT file system", 3, 8, "EXFAT   "},
    {"a BitLocker volume", 3, 8, "-FVE-FS-"},
    {"a FAT file system", 0x36, 3, "FAT"},
    {"a FAT file system", 0x52, 5, "FAT32"},
    {"an ISO 9660 image", 0x8001, 5, "CD001"},
    {"a squashfs image", 0, 4, "hsqs"},
    {"an APFS container", 32, 4, "NXSB"},
    {"an HFS+ file system", 0x400, 2, "H+"},
    {"swap space", 4086, 10, "SWAPSPACE2"},
    {"swap space", 16374, 10, "SWAPSPACE2"},
    {"swap space", 65526, 10, "SWAPSPACE2"},
    {"an LVM2 physical volume", 0, 8, "LABELONE"},
    {"an LVM2 physical volume", 512, 8, "LABELONE"},
    {"an LVM2 physical volume", 1024, 8, "LABELONE"},
    {"an LVM2 physical volume", 1536, 8, "LABELONE"},
    {"a LUKS volume", 0, 6, "LUKS\xBA\xBE"},
    {"a member of a software RAID", 0, 4, "\xFC\x4E\x2B\xA9"},
    {"a member of a software RAID", 4096, 4, "\xFC\x4E\x2B\xA9"},
    {"a BlueStore device", 0, 22, "bluestore block device"},
    {"an ASM disk", 32, 8, "ORCLDISK"},
    {"a GPT partition table", 512, 8, "EFI PART"},
    {"a GPT partition table", 4096, 8, "EFI PART"},
    {"a partition table or boot sector", 510, 2, "\x55\xAA"},
    {"a qcow2 image", 0, 4, "QFI\xFB"},
    {"a VMDK image", 0, 4, "KDMV"},
    {"a zip archive", 0, 4, "PK\3\4"},
    {"a gzip file", 0, 3, "\x1F\x8B\x08"},
    {"an xz file", 0, 6,
     "\xFD"
     "7zXZ\0"},
    {"a zstd file", 0, 4, "\x28\xB5\x2F\xFD"},
    {"a bzip2 file", 0, 3, "BZh"},
    {"a 7z archive", 0, 6, "7z\xBC\xAF\x27\x1C"},
    {"a tar archive", 257, 5, "ustar"},
    {"an SQLite database", 0, 16, "SQLite format 3"},
    {"a program", 0, 4,
     "\x7F"
     "ELF"},
    {"a PDF document", 0, 5, "%PDF-"},
};

/* ZFS writes its magic into a ring of uberblocks in the second half of each label. */
static bool zfs_at(const unsigned char *head, size_t bytes)
{
    for (size_t at = 131072; at + 8 <= bytes && at < 262144; at += 1024) {
        if (memcmp(head + at, "\x0C\xB1\xBA\0\0\0\0\0", 8) == 0 ||
            memcmp(head + at, "\0\0\0\0\0\xBA\xB1\x0C", 8) == 0) {
            return true;
        }
    }
    return false;
}

static const char *head_signature(const unsigned char *head, size_t bytes)
{
    for (size_t at = 0; at < sizeof signatures / sizeof signatures[0]; at++) {
        const signature *s = &signatures[at];
        if (s->offset + (size_t)s->length <= bytes && memcmp(head + s->offset, s->bytes, s->length) == 0) {
            return s->name;
        }
    }
    return zfs_at(head, bytes) ? "a ZFS pool member" : NULL;
}

/* Signatures that are found from the end. */
static const char *tail_signature(const unsigned char *tail, size_t bytes, uint64_t size_bytes)
{
    const uint64_t tail_at = size_bytes - bytes;
    const uint64_t raid_old = (size_bytes & ~(uint64_t)65535) - 65536; /* format 0.90 */
    const uint64_t raid_end = (size_bytes / 512 - 16) / 8 * 8 * 512;   /* format 1.0 */
    const uint64_t gpt[] = {size_bytes - 512, size_bytes - 4096};
    if (size_bytes < 131072) {
        return NULL; /* no room for any of them */
    }
    for (size_t at = 0; at < 2; at++) {
        if (memcmp(tail + (gpt[at] - tail_at), "EFI PART", 8) == 0) {
            return "a backup GPT partition table";
        }
    }
    if (memcmp(tail + (raid_old - tail_at), "\xFC\x4E\x2B\xA9", 4) == 0 ||
        memcmp(tail + (raid_end - tail_at), "\xFC\x4E\x2B\xA9", 4) == 0) {
        return "a member of a software RAID";
    }
    return NULL;
}

/* The first byte that is not blank: neither all zero nor all 0xFF. `bytes` when there is none. */
static size_t blank_until(const unsigned char *head, size_t bytes)
{
    unsigned char blank = bytes != 0 && head[0] == 0xFF ? 0xFF : 0;
    size_t at = 0;
    while (at < bytes && head[at] == blank) {
        at++;
    }
    return at;
}

/* ---- sysfs ---- */

static bool directory_has_entries(const char *path)
{
    DIR *list = opendir(path);
    struct dirent *entry;
    bool found = false;
    if (list == NULL) {
        return false;
    }
    while (!found && (entry = readdir(list)) != NULL) {
        found = entry->d_name[0] != '.';
    }
    closedir(list);
    return found;
}

/* Where the device number "MAJOR:MINOR" is mounted. Reads mountinfo, whose third field it is. */
static bool mounted_at(const char *number, char place[CKB_WARNING_BYTES])
{
    FILE *list = fopen("/proc/self/mountinfo", "re");
    char line[2048], device[32], mount_point[1024];
    bool found = false;
    if (list == NULL) {
        return false;
    }
    while (!found && fgets(line, (int)sizeof line, list) != NULL) {
        if (sscanf(line, "%*s %*s %31s %*s %1023s", device, mount_point) == 2 && strcmp(device, number) == 0) {
            ckb_os_text(place, CKB_WARNING_BYTES, "%.300s", mount_point);
            found = true;
        }
    }
    fclose(list);
    return found;
}

/* Whether one device (a disk or one of its partitions) is mounted or has something stacked on it. */
static bool one_in_use(const char *sysfs, const char *number, char why[CKB_WARNING_BYTES])
{
    char place[CKB_WARNING_BYTES], holders[512];
    if (mounted_at(number, place)) {
        ckb_os_text(why, CKB_WARNING_BYTES, "mounted on %.280s", place);
        return true;
    }
    ckb_os_text(holders, sizeof holders, "%s/holders", sysfs);
    if (directory_has_entries(holders)) {
        ckb_os_text(why, CKB_WARNING_BYTES, "in use by another device that is made of it");
        return true;
    }
    return false;
}

/* Calls for each partition of a disk until one returns true. */
static bool partitions_any(const char *sysfs, bool (*look)(const char *sysfs, const char *number, char *why),
                           char *name, size_t name_bytes, char *why)
{
    DIR *list = opendir(sysfs);
    struct dirent *entry;
    bool found = false;
    if (list == NULL) {
        return false;
    }
    while (!found && (entry = readdir(list)) != NULL) {
        char path[512], number[32];
        ckb_os_text(path, sizeof path, "%.128s/%.200s/partition", sysfs, entry->d_name);
        if (entry->d_name[0] == '.' || access(path, F_OK) != 0) {
            continue;
        }
        ckb_os_text(path, sizeof path, "%.128s/%.200s/dev", sysfs, entry->d_name);
        if (!ckb_os_line(path, number, sizeof number)) {
            continue;
        }
        path[strlen(path) - 4] = '\0';
        ckb_os_text(name, name_bytes, "%.60s", entry->d_name);
        found = look == NULL || look(path, number, why);
    }
    closedir(list);
    return found;
}

static void sysfs_path(dev_t device, char path[64], char number[32])
{
    ckb_os_text(number, 32, "%u:%u", major(device), minor(device));
    ckb_os_text(path, 64, "/sys/dev/block/%u:%u", major(device), minor(device));
}

int ckb_os_device_in_use(ckb_target *target, dev_t device)
{
    char sysfs[64], number[32], partition[64], why[CKB_WARNING_BYTES];
    ckb_os_shown shown;
    sysfs_path(device, sysfs, number);
    if (one_in_use(sysfs, number, why)) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: %s", ckb_os_show(target->path, &shown), why);
        return CKB_BUSY;
    }
    if (partitions_any(sysfs, one_in_use, partition, sizeof partition, why)) {
        ckb_os_text(target->error, CKB_ERROR_BYTES, "%s: its partition %s is %s",
                    ckb_os_show(target->path, &shown), partition, why);
        return CKB_BUSY;
    }
    return CKB_OK;
}

/* ---- content ---- */

/* Reads a range whole into memory from aligned_alloc, as O_DIRECT wants it. Null: it could not be read. */
static unsigned char *range_read(int file, uint64_t offset, size_t bytes)
{
    size_t got = 0;
    size_t room = (bytes + 4095) / 4096 * 4096;
    unsigned char *range = aligned_alloc(4096, room != 0 ? room : 4096);
    if (range != NULL && (ckb_os_read(file, range, bytes, offset, &got) != 0 || got != bytes)) {
        free(range);
        return NULL;
    }
    return range;
}

static const char *content_find(int file, uint64_t size_bytes, size_t *foreign_at)
{
    size_t head_bytes = size_bytes < HEAD_BYTES ? (size_t)size_bytes : HEAD_BYTES;
    size_t tail_bytes = size_bytes < TAIL_BYTES ? (size_t)size_bytes : TAIL_BYTES;
    unsigned char *head = range_read(file, 0, head_bytes);
    unsigned char *tail = range_read(file, size_bytes - tail_bytes, tail_bytes);
    const char *name = "something that cannot be read";
    *foreign_at = head_bytes;
    if (head != NULL && tail != NULL) {
        name = head_signature(head, head_bytes);
        if (name == NULL) {
            name = tail_signature(tail, tail_bytes, size_bytes);
        }
        *foreign_at = blank_until(head, head_bytes);
        if (name == NULL && *foreign_at < head_bytes) {
            name = "unknown content";
        }
    }
    free(head);
    free(tail);
    return name;
}

int ckb_os_foreign(ckb_target *target, int file, uint64_t size_bytes, dev_t device)
{
    char sysfs[64], number[32], partition[64], why[CKB_WARNING_BYTES];
    ckb_os_shown shown;
    size_t foreign_at = 0;
    const char *path = ckb_os_show(target->path, &shown);
    sysfs_path(device, sysfs, number);
    if (device != 0 && partitions_any(sysfs, NULL, partition, sizeof partition, why)) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: has partitions, for example %s; it is only overwritten when told "
                    "to destroy it",
                    path, partition);
        return CKB_EXISTS;
    }
    const char *name = content_find(file, size_bytes, &foreign_at);
    if (name != NULL) {
        ckb_os_text(target->error, CKB_ERROR_BYTES,
                    "%s: holds %s (first byte that is not blank at offset %lu); it is only "
                    "overwritten when told to destroy it",
                    path, name, (unsigned long)foreign_at);
        return CKB_EXISTS;
    }
    return CKB_OK;
}
