#!/bin/bash
# Usage: tests/kill.sh CHUNKBENCH [ROUNDS]
# Rounds of kill -9, at a random moment up to half a second, on a writer that acknowledges what is durable;
# after each one nothing that was acknowledged may be missing. Then a segment file is removed by hand: that must
# be found and named. The moment comes from RANDOM, whose seed is printed and can be given as KILL_SEED.
set -eu
program=$(realpath "$1")
rounds=${2:-100}
seed=${KILL_SEED:-$$}
RANDOM=$seed
directory=$(mktemp -d "${TMPDIR:-/tmp}/chunkbench-kill-XXXXXX")
trap 'rm -rf "$directory"' EXIT
cd "$directory"
acknowledged=0
kills=0

fail() {
    echo "kill: seed $seed, round $round: $*"
    exit 1
}

# Large chunks fill segments fast, so that the kill also meets the moments when one is full and the next begins.
write() {
    exec "$program" write --sync each --keep --acks - --segment 4M -n 60000 "$@" volume
}

for round in $(seq "$rounds"); do
    options=(-t $((1 + RANDOM % 8)) -s $((RANDOM % 2 == 0 ? 1 + RANDOM % 4000 : 32768 + RANDOM)))
    [ $((RANDOM % 2)) = 0 ] || options+=(--shared)
    write "${options[@]}" >acks 2>errors &
    writer=$!
    sleep "$(printf '0.%03d' $((1 + RANDOM % 500)))"
    kill -KILL $writer 2>/dev/null || fail "the writer ended by itself: $(cat errors)"
    wait $writer 2>/dev/null || true
    kills=$((kills + 1))
    # A line that the kill cut in two says nothing.
    sed -i -e '$a\' acks
    if [ "$(tail -c 1 acks | wc -l)" = 1 ] && ! tail -n 1 acks | grep -qE '^[0-9]+ [0-9]+ [0-9]+ [0-9]+ [0-9a-f]+$'; then
        sed -i '$d' acks
    fi
    lines=$(wc -l <acks)
    [ "$lines" -gt 0 ] || continue
    acknowledged=$((acknowledged + lines))
    "$program" check --acks acks volume >check.out 2>check.err ||
        fail "exit $?, options ${options[*]}: $(cat check.out check.err)"
    grep -q "^$lines acknowledged" check.out || fail "not all $lines lines were audited: $(cat check.out)"
done
[ $acknowledged -gt "$rounds" ] || fail "only $acknowledged acknowledgements in $rounds rounds"

round="after the last"
"$program" write --sync each --keep --acks - --segment 4M -s 60000 -n 500 -t 2 volume >acks 2>errors
"$program" check --acks acks volume >check.out 2>check.err || fail "check of a whole volume: exit $?"
victim=$(find volume -name 'segment-*' | sort | sed -n 6p)
[ -n "$victim" ] || fail "no segment file to remove: $(ls volume)"
rm "$victim"
code=0
"$program" check --acks acks volume >check.out 2>check.err || code=$?
[ $code = 4 ] || fail "a removed segment file: exit $code, expected 4: $(cat check.out check.err)"
number=$(basename "$victim" | tr -dc 0-9)
grep -qE "segment $((10#$number))\b" check.out check.err ||
    fail "$(basename "$victim") is missing and not named: $(cat check.out check.err)"
echo "$kills kills, $acknowledged acknowledged, 0 missing; a removed $(basename "$victim") is found and named"
