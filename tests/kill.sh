#!/bin/bash
# Usage: tests/kill.sh CHUNKBENCH [ROUNDS [DEVICE [WORKLOAD...]]]
# Rounds of kill -9, at a random moment up to half a second, on a writer that acknowledges what is durable;
# after each one nothing that was acknowledged may be missing. Then a segment is removed by hand, or overwritten on
# a device: that must be found and named. All of it for each workload, write and log, in a directory or on the
# DEVICE. The moment comes from RANDOM, whose seed is printed and can be given as KILL_SEED.
set -eu
program=$(realpath "$1")
rounds=${2:-100}
device=${3:-}
workloads=(write log)
[ $# -le 3 ] || workloads=("${@:4}")
seed=${KILL_SEED:-$$}
RANDOM=$seed
directory=$(mktemp -d "${TMPDIR:-/tmp}/chunkbench-kill-XXXXXX")
target=${device:-volume}
writer=
clean() {
    [ -z "$writer" ] || kill -KILL "$writer" 2>/dev/null || true
    rm -rf "$directory"
}
trap clean EXIT
trap 'exit 130' INT TERM HUP
cd "$directory"
line='([0-9]+ [0-9]+ [0-9]+ [0-9]+|log [0-9]+ [0-9]+) [0-9a-f]{8}'

fail() {
    echo "kill: $workload${device:+ on $device}: seed $seed, round $round: $*"
    exit 1
}

run_writer() {
    exec "$program" "$workload" --sync each --keep ${device:+--destroy} --acks - "$@" "$target"
}

# Large chunks fill segments fast, so that the kill also meets the moments when one is full and the next begins;
# so do small segments with a log.
choose_options() {
    local size=$((RANDOM % 2 == 0 ? 1 + RANDOM % 4000 : 32768 + RANDOM)) segment=4M
    if [ "$workload" = log ]; then
        size=$((RANDOM % 4 == 0 ? 4000 + RANDOM % 8000 : 1 + RANDOM % 1000))
        # On a device of 4096-byte sectors 16 KiB would be four sectors: too few for a segment.
        case $((RANDOM % 3)) in 0) segment=$([ -n "$device" ] && echo 128K || echo 16K) ;; 1) segment=64K ;; *) segment=1M ;; esac
    fi
    options=(-t $((1 + RANDOM % 8)) -s $size --segment $segment -n $((size < 4096 ? 60000 : 200000000 / size)))
    [ $((RANDOM % 2)) = 0 ] || return 0
    case $workload in write) options+=(--shared) ;; log) options+=(--purge-behind $((100 + RANDOM % 2000))) ;; esac
}

check_volume() {
    local code=0
    "$program" check --acks acks "$target" >check.out 2>check.err || code=$?
    [ $code = "$1" ] || fail "check: exit $code, expected $1, options ${options[*]}: $(cat check.out check.err)"
}

kill_once() {
    local lines
    choose_options
    run_writer "${options[@]}" >acks 2>errors &
    writer=$!
    sleep "$(printf '0.%03d' $((1 + RANDOM % 500)))"
    kill -KILL $writer 2>/dev/null || fail "the writer ended by itself, options ${options[*]}: $(cat errors)"
    wait $writer 2>/dev/null || true
    writer=
    kills=$((kills + 1))
    # A line that the kill cut in two says nothing.
    sed -i -e '$a\' acks
    tail -n 1 acks | grep -qxE "$line" || sed -i '$d' acks
    lines=$(wc -l <acks)
    [ "$lines" -gt 0 ] || return 0
    acknowledged=$((acknowledged + lines))
    check_volume 0
    grep -q "^$lines acknowledged" check.out || fail "not all $lines lines were audited: $(cat check.out)"
}

# The segment that is lost: one that holds part of what was acknowledged, and not the last.
choose_victim() {
    local first
    victim=6
    if [ "$workload" = log ]; then
        first=$("$program" dump --json "$target" bench | sed -n '1s/.*"segment":\([0-9]*\).*/\1/p')
        victim=$("$program" dump --json "$target" bench | sed -nE 's/.*"segment":([0-9]+).*/\1/p' | uniq |
            grep -vx "$first" | head -n 1)
    fi
}

lose_segment() {
    local bytes
    if [ -n "$device" ]; then
        bytes=$("$program" info --json "$target" | sed -E 's/.*"segment_bytes":([0-9]+).*/\1/')
        dd if=/dev/zero of="$device" bs="$bytes" seek="$victim" count=1 conv=notrunc,fsync status=none
    else
        rm "$(printf '%s/segment-%08d' "$target" "$victim")"
    fi
}

for workload in "${workloads[@]}"; do
    acknowledged=0
    kills=0
    for round in $(seq "$rounds"); do
        kill_once
    done
    [ $acknowledged -gt "$rounds" ] || fail "only $acknowledged acknowledgements in $rounds rounds"

    round="after the last"
    options=(--segment 4M -s 60000 -n 500 -t 2)
    (run_writer "${options[@]}") >acks 2>errors || fail "exit $?: $(cat errors)"
    check_volume 0
    choose_victim
    lose_segment
    check_volume 4
    grep -qE "segment $victim\b" check.out check.err ||
        fail "segment $victim is lost and not named: $(cat check.out check.err)"
    [ "$workload" != log ] || grep -qE "\blog bench\b" check.out || fail "the log is not named: $(cat check.out)"
    echo "$workload: $kills kills, $acknowledged acknowledged, 0 missing; lost segment $victim is found and named"
done
