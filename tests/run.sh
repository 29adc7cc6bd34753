#!/bin/bash
# Usage: tests/run.sh BUILD [TEST...]
# Runs Criterion binaries (all in BUILD/tests without TEST) on all cores, then tests/cli.sh and tests/cases.sh
# unless tests were named or NO_CLI is set. Prints what failed, a line for each, and at the very end
# `N passed, N failed`.
set -eu
cd "$(dirname "$0")/.."
build=$1
shift
jobs=$(nproc)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

tests=("$@")
if [ $# = 0 ]; then
    for source in tests/test_*.c; do
        tests+=("$(basename "$source" .c)")
    done
fi

# Writes "passed failed" of one binary to its .count file.
run_one() {
    local name=$1 code=0 start=$SECONDS passed failed line
    "$build/tests/$name" -j1 >"$work/$name.log" 2>&1 </dev/null || code=$?
    line=$(grep -a 'Synthesis: Tested' "$work/$name.log" | tail -n 1 || true)
    passed=$(sed -n 's/.*Passing: [^0-9]*\([0-9]*\).*/\1/p' <<<"$line" | sed 's/\x1b\[[0-9;]*m//g')
    failed=$(sed -n 's/.*Tested: [^0-9]*\([0-9]*\).*/\1/p' <<<"$line")
    failed=$((${failed:-0} - ${passed:-0}))
    if [ $code != 0 ] && [ $failed = 0 ]; then
        failed=1
    fi
    if [ $code = 0 ] && [ "${passed:-0}" = 0 ]; then
        failed=1 # a binary without a single test is a mistake
    fi
    echo "${passed:-0} $failed" >"$work/$name.count"
    if [ $failed != 0 ]; then
        sed 's/^/    /' "$work/$name.log"
        echo "test: $name: ${passed:-0} passed, $failed FAILED (exit $code, $((SECONDS - start)) s)"
    else
        echo "test: $name: $passed passed ($((SECONDS - start)) s)"
    fi
}

running=0
for name in "${tests[@]}"; do
    if [ $running -ge "$jobs" ]; then
        wait -n || true
        running=$((running - 1))
    fi
    run_one "$name" &
    running=$((running + 1))
done
wait

passed=0
failed=0
for name in "${tests[@]}"; do
    read -r good bad <"$work/$name.count" || { good=0; bad=1; }
    passed=$((passed + good))
    failed=$((failed + bad))
done

if [ $# = 0 ] && [ -z "${NO_CLI:-}" ]; then
    for script in cli cases; do
        code=0
        tests/$script.sh "$build/chunkbench" >"$work/cli.log" 2>&1 || code=$?
        line=$(grep -aE '^[0-9]+ passed, [0-9]+ failed$' "$work/cli.log" | tail -n 1 || true)
        read -r good bad <<<"$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed$/\1 \2/p' <<<"$line") "
        good=${good:-0}
        bad=${bad:-0}
        if [ $code != 0 ] && [ "$bad" = 0 ] || [ -z "$line" ]; then
            bad=$((bad + 1))
        fi
        if [ "$bad" != 0 ]; then
            sed 's/^/    /' "$work/cli.log"
            echo "test: $script: $good passed, $bad FAILED (exit $code)"
        else
            echo "test: $script: $good passed"
        fi
        passed=$((passed + good))
        failed=$((failed + bad))
    done
fi
echo "$passed passed, $failed failed"
[ $failed = 0 ]
