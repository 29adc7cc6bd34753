#!/bin/sh
# Usage: tests/size.sh BUILD
# Prints text, data, bss and worst stack of the core at -Os for a Cortex-M3 and for x86-64, against the bars of
# the design. A bar that is missed is said and does not fail; data or bss that is not empty does.
set -eu
cd "$(dirname "$0")/.."
out=$1/size
mkdir -p "$out"
failed=0

measure() { # name, text bar, stack bar (0: none), compiler, size program, options
    name=$1 text_bar=$2 stack_bar=$3 compiler=$4 size=$5
    shift 5
    if ! command -v "$compiler" >/dev/null; then
        echo "size: $name: SKIPPED, $compiler is missing"
        return 0
    fi
    $compiler -std=c99 -Os -ffreestanding -fstack-usage -fcallgraph-info=su "$@" -DCHUNKBENCH_IMPLEMENTATION \
        -x c -c -o "$out/core.o" chunkbench.h
    $size "$out/core.o" >"$out/size.txt"
    read -r text data bss _ <<END
$(tail -n 1 "$out/size.txt")
END
    stack=$(python3 tests/stack.py "$out/core.ci")
    verdict=ok
    if [ "$text_bar" != 0 ] && { [ "$text" -gt "$text_bar" ] || [ "${stack%% *}" -gt "$stack_bar" ]; }; then
        verdict=MISSED
    fi
    if [ "$data" != 0 ] || [ "$bss" != 0 ]; then
        verdict="FAILED, data and bss must be 0"
        failed=1
    fi
    bar=
    [ "$text_bar" = 0 ] || bar=" (bars $text_bar, $stack_bar)"
    echo "size: $name: text $text, data $data, bss $bss, stack ${stack%% *}$bar: $verdict"
    echo "size: $name: deepest: ${stack#* }"
}

m3="-mcpu=cortex-m3 -mthumb"
# shellcheck disable=SC2086
{
    measure "Cortex-M3, all" 28672 600 arm-none-eabi-gcc arm-none-eabi-size $m3
    measure "Cortex-M3, log only" 10240 600 arm-none-eabi-gcc arm-none-eabi-size $m3 -DCKB_NO_CHUNKS \
        -DCKB_NO_STATUS_TEXT
    measure "Cortex-M3, chunks only" 28672 600 arm-none-eabi-gcc arm-none-eabi-size $m3 -DCKB_NO_LOG
    measure "Cortex-M3, read only" 28672 600 arm-none-eabi-gcc arm-none-eabi-size $m3 -DCKB_READ_ONLY \
        -DCKB_NO_STATUS_TEXT
}
measure "x86-64, all" 0 0 gcc size -fno-pie
exit $failed
