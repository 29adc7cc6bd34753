#!/bin/bash
# Usage: tests/devices.sh CHUNKBENCH [MEBIBYTES]
# Real block devices: loop devices with sectors of 512 and 4096 bytes. On each the write workload with
# verification, a stream put and got, a kill -9 in the middle and a check. Exit 77 with a line that says why when
# this machine does not let us make loop devices.
set -eu
program=$(realpath "$1")
stream_mib=${2:-1024}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/chunkbench-devices-XXXXXX")
device=
writer=

clean() {
    [ -z "$writer" ] || kill -KILL "$writer" 2>/dev/null || true
    [ -z "$writer" ] || wait "$writer" 2>/dev/null || true
    [ -z "$device" ] || losetup -d "$device" 2>/dev/null || true
    rm -rf "$work"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP

fail() {
    echo "devices: $device ($sector-byte sectors): $*"
    exit 1
}

if [ "$(id -u)" != 0 ] || ! command -v losetup >/dev/null; then
    echo "no loop devices: needs root and losetup"
    exit 77
fi
need_mib=$((stream_mib * 9 / 4 + 512)) # chunks of 4 MiB may leave half of each segment empty
free_mib=$(df --output=avail -BM "$work" | tail -n 1 | tr -dc 0-9)
if [ "$free_mib" -lt "$need_mib" ]; then
    echo "no loop devices: $work has $free_mib MiB free, $need_mib are needed"
    exit 77
fi

# A stream that does not compress and is the same each time.
stream() {
    openssl enc -aes-128-ctr -K 00112233445566778899aabbccddeeff -iv 0 -nosalt </dev/zero 2>/dev/null |
        head -c "$((stream_mib * 1048576 + 12345))"
}

on_device() {
    "$program" write -n 100000 -s 1K -t 1,4 --verify "$device" >"$work/out" 2>&1 || fail "write: exit $? $(cat "$work/out")"
    "$program" format --destroy "$device" >"$work/out" 2>&1 || fail "format: exit $? $(cat "$work/out")"
    local got
    stream | tee >(sha256sum >"$work/sum") | "$program" put "$device" 3/7 - >"$work/out" 2>"$work/err" ||
        fail "put: exit $? $(cat "$work/err")"
    got=$("$program" get "$device" 3/7 - 2>"$work/err" | sha256sum) || fail "get: exit $? $(cat "$work/err")"
    [ "$got" = "$(cat "$work/sum")" ] || fail "get does not give what was put"
    "$program" check "$device" >"$work/out" 2>&1 || fail "check: exit $? $(cat "$work/out")"
    "$program" write --sync each --keep --destroy --acks - -t 4 -n 100000 "$device" >"$work/acks" 2>"$work/err" &
    writer=$!
    sleep 2
    kill -KILL $writer || fail "the writer ended by itself: $(cat "$work/err")"
    wait $writer 2>/dev/null || true
    writer=
    sed -i -e '$a\' "$work/acks"
    tail -n 1 "$work/acks" | grep -qE '^[0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9a-f]+$' || sed -i '$d' "$work/acks"
    [ -s "$work/acks" ] || fail "nothing was acknowledged in 2 s"
    "$program" check --acks "$work/acks" "$device" >"$work/out" 2>&1 || fail "after kill -9: exit $? $(cat "$work/out")"
    acknowledged="$acknowledged $(wc -l <"$work/acks")"
}

acknowledged=
for sector in 512 4096; do
    truncate -s "${need_mib}M" "$work/image"
    if ! device=$(losetup --find --show --sector-size "$sector" "$work/image" 2>"$work/err"); then
        device=
        echo "no loop devices: $(cat "$work/err")"
        exit 77
    fi
    found=$(blockdev --getss "$device" 2>/dev/null || echo unknown)
    [ "$found" = "$sector" ] || fail "the sector is $found"
    on_device
    losetup -d "$device"
    device=
    rm "$work/image"
done
echo "512 and 4096 byte sectors: write, put and get of $stream_mib MiB, kill -9 (acknowledged:$acknowledged), check"
