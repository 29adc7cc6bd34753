#!/bin/bash
# Usage: tests/full.sh PATH/TO/chunkbench
# Full volumes: a directory on a tmpfs of fixed size, an image there, and a loop device, filled to the last byte by
# chunks, by a log, and by somebody else's file. What was acknowledged stays, every refusal says "no space" and exits 5,
# and after a delete, a purge, or when the file goes, writing goes on by itself (C52, C54, C58). Needs root; exits 77
# without.
set -eu
program=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/chunkbench-full-XXXXXX")
device=
mounted=
clean_up() {
    [ -z "$device" ] || losetup -d "$device" || true
    [ -z "$mounted" ] || umount "$work/disk" || true
    rm -rf "$work"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP
fail() {
    echo "FAILED: $target: $*"
    cat "$work/out" "$work/err" 2>/dev/null | tail -n 5
    exit 1
}

# expect CODE ARGUMENT...
expect() {
    local code=0 wanted=$1
    shift
    "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    [ $code = "$wanted" ] || fail "exit $code, expected $wanted: $*"
}

# Puts blocks until there is no space; their names are in the file `kept`.
fill_with_chunks() {
    local code=0
    while [ $code = 0 ]; do
        block=$((block + 1))
        code=0
        "$program" put -s 32K "$target" 1/$block "$work/data" >"$work/out" 2>"$work/err" || code=$?
        [ $code != 0 ] || echo $block >>"$work/kept"
    done
    [ $code = 5 ] || fail "exit $code from a full volume"
    grep -q 'no space' "$work/err" || fail "a full volume does not say so"
}

# Appends lines until there is no space; every line that was acknowledged is in `lines`.
fill_with_log() {
    local code=0 batch=0
    while [ $code = 0 ]; do
        batch=$((batch + 1))
        seq $((batch * 1000)) $((batch * 1000 + 999)) | sed 's/$/ a line of a log that takes what is left/' >"$work/batch"
        code=0
        "$program" append "$target" lines "$work/batch" >"$work/out" 2>"$work/err" || code=$?
        [ $code != 0 ] || cat "$work/batch" >>"$work/lines"
    done
    [ $code = 5 ] || fail "exit $code from a log without space"
    grep -q 'no space' "$work/err" || fail "a log without space does not say so"
}

all_there() {
    local kept
    while read -r kept; do
        "$program" get "$target" 1/"$kept" 2>"$work/err" | cmp -s - "$work/data" || fail "block $kept is not what was put"
    done <"$work/kept"
    [ ! -s "$work/lines" ] || "$program" dump --data "$target" lines 2>"$work/err" >"$work/out"
    if [ -s "$work/lines" ]; then
        head -n "$(wc -l <"$work/lines")" "$work/out" | cmp -s - "$work/lines" || fail "lines of the log are missing"
    fi
    expect 0 check "$target"
    expect 0 info "$target"
    awk '/^(live|dead|free|reserved)_bytes:/ { sum += $2 } /^segment_bytes:/ { bytes = $2 } /^segment_count:/ { count = $2 }
        END { exit sum != bytes * count }' "$work/out" || fail "space leaks"
}

# Deletes a third of the blocks, and goes on in what that gives.
go_on() {
    local first
    first=$(wc -l <"$work/kept")
    head -n $((first / 3)) "$work/kept" | while read -r gone; do expect 0 rm "$target" 1/"$gone"; done
    sed -i "1,$((first / 3))d" "$work/kept"
    all_there
    fill_with_chunks
    [ "$(wc -l <"$work/kept")" -ge $((first - 2)) ] || fail "only $(wc -l <"$work/kept") of $first blocks fit again"
    all_there
}

fill_all() {
    : >"$work/kept"
    : >"$work/lines"
    block=0
    expect 0 format --destroy --segment 256K ${1:+--size $1} "$target"
    fill_with_chunks
    all_there
    go_on
    # A log takes what one block leaves, and a purge gives it back.
    expect 0 rm "$target" 1/"$(tail -n 1 "$work/kept")"
    sed -i '$d' "$work/kept"
    fill_with_log
    all_there
    expect 0 rm --log lines --before $(($("$program" dump --data "$target" lines 2>"$work/err" | wc -l) + 1)) "$target"
    : >"$work/lines"
    before=$(wc -l <"$work/kept")
    fill_with_chunks
    [ "$(wc -l <"$work/kept")" -gt "$before" ] || fail "a purge gave nothing back"
    all_there
    filled="$filled; $2: $(wc -l <"$work/kept") blocks of 300000 bytes"
}

target=tmpfs
[ "$(id -u)" = 0 ] || { echo "full disks need root"; exit 77; }
mkdir "$work/disk"
mount -t tmpfs -o size=24M tmpfs "$work/disk" 2>"$work/err" || { echo "no tmpfs can be mounted"; exit 77; }
mounted=yes
head -c 300000 /dev/urandom >"$work/data"
filled=

target=$work/disk/store
fill_all 12M directory
# Somebody else's file takes the rest of the disk: segments that have no file yet get none.
rm -rf "$target"
: >"$work/kept"
: >"$work/lines"
block=0
expect 0 format --segment 256K --size 20M "$target"
expect 0 put -s 32K "$target" 1/900 "$work/data"
echo 900 >>"$work/kept"
dd if=/dev/zero of="$work/disk/foreign" bs=64K 2>/dev/null || true
fill_with_chunks
foreign=$(wc -l <"$work/kept")
[ "$foreign" -lt 20 ] || fail "a full disk took $foreign blocks"
all_there
expect 0 rm "$target" 1/900
sed -i 1d "$work/kept"
rm "$work/disk/foreign"
fill_with_chunks
[ "$(wc -l <"$work/kept")" -gt 40 ] || fail "space did not come back: $(wc -l <"$work/kept") blocks"
all_there
rm -rf "$target"

target=file:$work/disk/image
fill_all 16M image
rm -f "$work/disk/image"
truncate -s 16M "$work/disk/backing"
if device=$(losetup --find --show "$work/disk/backing" 2>"$work/err"); then
    target=$device
    fill_all "" "loop device"
else
    device=
    filled="$filled; no loop devices"
fi
echo "full: nothing acknowledged is lost, space comes back${filled}"
