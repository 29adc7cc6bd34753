#!/bin/bash
# Usage: tests/devices.sh CHUNKBENCH [MEBIBYTES [ROUNDS]]
# Real block devices: loop devices with sectors of 512 and 4096 bytes. On each the log and write workloads
# with verification, a stream put and got, a log appended and dumped, ROUNDS of kill -9 for each workload, and checks.
# Exit 77 with a line that says why when this machine does not let us make loop devices.
set -eu
tests=$(realpath "$(dirname "$0")")
program=$(realpath "$1")
stream_mib=${2:-1024}
rounds=${3:-3}
work=$(mktemp -d "${TMPDIR:-/var/tmp}/chunkbench-devices-XXXXXX")
device=
killer=

clean() {
    [ -z "$killer" ] || kill "$killer" 2>/dev/null || true
    [ -z "$killer" ] || wait "$killer" 2>/dev/null || true
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

# Ten runs; segments of 16 KiB have too few sectors where those have 4096 bytes, and are left out.
log_sweep() {
    local runs=10 sweep=(log -n 1000 --segment "16K,64K,1M,4M,16M" -t 1,16 --sync each)
    [ "$sector" = 512 ] || runs=8
    "$program" "${sweep[@]}" --verify --csv - "$device" >"$work/out" 2>&1 || fail "log: exit $? $(cat "$work/out")"
    [ "$(grep -c '^log,' "$work/out")" = $runs ] || fail "log: not $runs runs: $(cut -d, -f1-5 "$work/out")"
    "$program" log -n 100 --json - "$device" >"$work/out" 2>&1 || fail "log: exit $? $(cat "$work/out")"
    grep -q '"sync_call":"fdatasync"' "$work/out" || fail "the device is taken for memory: $(cat "$work/out")"
    "$program" "${sweep[@]}" --dry-run "$device" >"$work/out" 2>&1 || fail "log plan: exit $? $(cat "$work/out")"
    [ "$(grep -c '^[0-9]* threads\?, ' "$work/out")" = $runs ] || fail "log plan: not $runs runs: $(cat "$work/out")"
    [ $runs = 10 ] || grep -q '^2 of 10 runs left out; the first, .* 16 KiB: .* 65536$' "$work/out" ||
        fail "log plan: $(cat "$work/out")"
}

on_device() {
    log_sweep
    "$program" write -n 100000 -s 1K -t 1,4 --verify "$device" >"$work/out" 2>&1 || fail "write: exit $? $(cat "$work/out")"
    "$program" format --destroy "$device" >"$work/out" 2>&1 || fail "format: exit $? $(cat "$work/out")"
    local got
    stream | tee >(sha256sum >"$work/sum") | "$program" put "$device" 3/7 - >"$work/out" 2>"$work/err" ||
        fail "put: exit $? $(cat "$work/err")"
    got=$("$program" get "$device" 3/7 - 2>"$work/err" | sha256sum) || fail "get: exit $? $(cat "$work/err")"
    [ "$got" = "$(cat "$work/sum")" ] || fail "get does not give what was put"
    "$program" check "$device" >"$work/out" 2>&1 || fail "check: exit $? $(cat "$work/out")"
    seq 100000 >"$work/lines"
    "$program" append "$device" lines "$work/lines" >"$work/out" 2>&1 || fail "append: exit $? $(cat "$work/out")"
    "$program" dump --data "$device" lines 2>"$work/err" | cmp -s - "$work/lines" ||
        fail "dump does not give what was appended: $(cat "$work/err")"
    "$program" check "$device" >"$work/out" 2>&1 || fail "check with a log: exit $? $(cat "$work/out")"
    # In the background, so that a signal reaches this script's clean-up at once.
    "$tests/kill.sh" "$program" "$rounds" "$device" >"$work/out" 2>&1 &
    killer=$!
    wait $killer || fail "$(cat "$work/out")"
    killer=
    kills="$kills; $(sed "s/^/$sector bytes: /" "$work/out" | paste -sd '|' | sed 's/|/; /g')"
}

# The device becomes larger below a volume; and is then made smaller again.
grow_device() {
    head -c 3000000 /dev/urandom >"$work/kept"
    "$program" format --destroy --segment 1M "$device" >"$work/out" 2>&1 || fail "format: $(cat "$work/out")"
    "$program" put "$device" 1/1 "$work/kept" >"$work/out" 2>&1 || fail "put: $(cat "$work/out")"
    truncate -s "+64M" "$work/image"
    losetup -c "$device"
    "$program" info "$device" 2>"$work/err" | grep -qx "segment_count: $need_mib" || fail "it grew by itself"
    "$program" format --grow "$device" >"$work/out" 2>&1 || fail "grow: $(cat "$work/out")"
    grep -q "to $((need_mib + 64))," "$work/out" || fail "grow says $(cat "$work/out")"
    "$program" get "$device" 1/1 - 2>"$work/err" | cmp -s - "$work/kept" || fail "not the same after growth"
    "$program" check "$device" >"$work/out" 2>&1 || fail "check after growth: $(cat "$work/out")"
    truncate -s "${need_mib}M" "$work/image"
    losetup -c "$device"
    "$program" put "$device" 1/2 "$work/kept" >"$work/out" 2>&1 && fail "writes to a device that was cut"
    grep -q "cut short: it has $((need_mib << 20)) bytes, the volume in it $(((need_mib + 64) << 20))" "$work/out" ||
        fail "a device that was cut: $(cat "$work/out")"
    "$program" get "$device" 1/1 - 2>"$work/err" | cmp -s - "$work/kept" || fail "not readable after the cut"
}

kills=
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
    grow_device
    losetup -d "$device"
    device=
    rm "$work/image"
done
echo "512 and 4096 byte sectors: log sweeps, write, put and get of $stream_mib MiB, append and dump, kill -9$kills"
