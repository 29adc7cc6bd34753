# Parts that run programs under a detector, or kill them.

part_sanitize() {
    local build=$BUILD/sanitize code=0
    tests/criterion.sh
    quiet make -s -j2 BUILD="$build" CFLAGS="-O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all" STATIC= \
        tests "$build/chunkbench"
    export CKB_SWEEP_STATES=${CKB_SWEEP_STATES:-3000} CKB_MODEL_OPERATIONS=${CKB_MODEL_OPERATIONS:-20000}
    export CKB_TEST_SCALE=${CKB_TEST_SCALE:-20}
    ASAN_OPTIONS=detect_leaks=1:detect_stack_use_after_return=1 tests/run.sh "$build" >"$work/tests" 2>&1 || code=$?
    if [ $code != 0 ]; then
        cat "$work/tests"
        return 1
    fi
    say "$(tail -n 1 "$work/tests") under ASan and UBSan, the CLI's included"
}

part_race_plain() {
    quiet make -s BUILD="$BUILD" "$BUILD/tests/race"
    "$BUILD/tests/race" "${RACE_PLAIN_SECONDS:-6}" >"$work/race"
    say "$(sed 's/^race: //' "$work/race" | paste -sd '; ')"
}

# Without address randomisation: gcc's detector does not know all layouts of newer kernels.
part_race() {
    local build=$BUILD/race
    quiet make -s BUILD="$build" CFLAGS="-O1 -g -fsanitize=thread" "$build/tests/race"
    TSAN_OPTIONS="halt_on_error=0 exitcode=66 second_deadlock_stack=1" \
        setarch -R "$build/tests/race" "${RACE_SECONDS:-30}" >"$work/race" 2>"$work/races" || {
        head -n 60 "$work/races"
        echo "$(grep -c '^SUMMARY' "$work/races" || true) reports in all"
        cat "$work/race"
        return 1
    }
    say "$(sed 's/^race: //' "$work/race" | paste -sd '; ')"
}

# For each workload. Long runs: KILL_ROUNDS=200 DEVICE_KILLS=100 (on each of two sector sizes).
part_kill() {
    quiet make -s BUILD="$BUILD" "$BUILD/chunkbench"
    tests/kill.sh "$BUILD/chunkbench" "${KILL_ROUNDS:-60}" >"$work/kill" || {
        cat "$work/kill"
        return 1
    }
    say "$(paste -sd '|' "$work/kill" | sed 's/|/; /g')"
}

part_devices() {
    local code=0
    quiet make -s BUILD="$BUILD" "$BUILD/chunkbench"
    tests/devices.sh "$BUILD/chunkbench" "${DEVICE_STREAM:-1024}" "${DEVICE_KILLS:-3}" >"$work/devices" || code=$?
    if [ $code = 77 ]; then
        skip "$(tail -n 1 "$work/devices")"
    elif [ $code != 0 ]; then
        cat "$work/devices"
        return 1
    fi
    say "$(tail -n 1 "$work/devices")"
}

part_full() {
    local code=0
    quiet make -s BUILD="$BUILD" "$BUILD/chunkbench"
    tests/full.sh "$BUILD/chunkbench" >"$work/full" || code=$?
    if [ $code = 77 ]; then
        skip "$(tail -n 1 "$work/full")"
    elif [ $code != 0 ]; then
        cat "$work/full"
        return 1
    fi
    say "$(sed 's/^full: //' "$work/full")"
}

part_readme() {
    [ -e README.md ] || skip "there is no README.md"
    quiet make -s BUILD="$BUILD" "$BUILD/chunkbench"
    tests/readme.sh "$BUILD/chunkbench" >"$work/readme" || {
        cat "$work/readme"
        return 1
    }
    say "$(tail -n 1 "$work/readme")"
}
