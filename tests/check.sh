#!/bin/bash
# Usage: tests/check.sh [PART...]
# Runs the parts of `make check` (all without arguments), prints a line for each and at the end
# `N passed, N failed`. A part that cannot run on this machine is said to be skipped and counts as neither.
set -eu
cd "$(dirname "$0")/.."
top=$(mktemp -d)
work=$top
trap 'rm -rf "$top"' EXIT
trap 'exit 130' INT TERM HUP
. tests/check/common.sh
. tests/check/compile.sh
. tests/check/portable.sh
. tests/check/dynamic.sh
. tests/check/style.sh

parts=("$@")
if [ $# = 0 ]; then
    # The longest first, so that no core idles at the end.
    parts=(sanitize race devices kill full selftest compilers macros symbols cplusplus static freestanding size readme
        memcheck includes units race-plain format functions)
fi

# One part, in a subshell of its own with a directory of its own: it ends at its first error.
run_part() {
    local part=$1 code=0 start=$SECONDS
    work=$top/$part
    mkdir -p "$work"
    (set -eu; "part_${part//-/_}") >"$work/log" 2>&1
    code=$?
    case $code in
    0) echo "check: $part: $(cat "$work/result" 2>/dev/null || echo ok) ($((SECONDS - start)) s)" ;;
    77) echo "check: $part: $(cat "$work/result")" ;;
    *)
        sed 's/^/    /' "$work/log"
        echo "check: $part: FAILED ($((SECONDS - start)) s)"
        ;;
    esac >"$work/line"
    cat "$work/line" # in one piece, several parts print at once
    echo $code >"$work/code"
}

# What several parts use is built before they start, not by two of them at once.
make -s -j"$(nproc)" BUILD="$BUILD" "$BUILD/chunkbench" "$BUILD/tests/race" >"$top/build.log" 2>&1 || {
    tail -n 40 "$top/build.log"
    echo "check: the build FAILED; parts that need it will, too"
}

set +e
running=0
jobs=$(nproc)
for part in "${parts[@]}"; do
    if [ $running -ge "$jobs" ]; then
        wait -n
        running=$((running - 1))
    fi
    run_part "$part" &
    running=$((running + 1))
done
wait

passed=0
failed=0
skipped=0
for part in "${parts[@]}"; do
    case $(cat "$top/$part/code" 2>/dev/null) in
    0) passed=$((passed + 1)) ;;
    77) skipped=$((skipped + 1)) ;;
    *) failed=$((failed + 1)) ;;
    esac
done
if [ $skipped != 0 ]; then
    echo "check: $skipped parts SKIPPED, see above"
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
