#!/bin/sh
# Usage: tests/size.sh BUILD
# Prints text, data, bss and worst stack of the core at -Os for a Cortex-M3 and for x86-64, against the bars of
# the design. A bar that is missed is said and does not fail; data or bss that is not empty does. Besides, what of
# the core's text a program links that calls only some functions: bars are not held against that.
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

linked() { # name, functions, options
    name=$1 functions=$2
    shift 2
    command -v arm-none-eabi-gcc >/dev/null || return 0
    roots=
    for function in $functions; do
        roots="$roots -u $function"
    done
    arm-none-eabi-gcc -mcpu=cortex-m3 -mthumb -std=c99 -Os -ffreestanding -ffunction-sections -fdata-sections "$@" \
        -DCHUNKBENCH_IMPLEMENTATION -x c -c -o "$out/sections.o" chunkbench.h
    # shellcheck disable=SC2086
    arm-none-eabi-ld -r --gc-sections $roots -o "$out/linked.o" "$out/sections.o"
    text=$(arm-none-eabi-size "$out/linked.o" | awk 'NR == 2 { print $1 }')
    echo "size: $name, linked: text $text: $(echo "$functions" | sed 's/ckb_//g')"
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
base="ckb_format ckb_mount ckb_unmount"
linked "Cortex-M3, log only" "$base ckb_log_create ckb_log_open ckb_log_append ckb_log_commit ckb_log_read \
ckb_log_cursor_open ckb_log_next ckb_log_truncate ckb_log_purge ckb_log_close" -DCKB_NO_CHUNKS -DCKB_NO_STATUS_TEXT
linked "Cortex-M3, log only, append and read" "ckb_mount ckb_log_open ckb_log_append ckb_log_cursor_open ckb_log_next" \
    -DCKB_NO_CHUNKS -DCKB_NO_STATUS_TEXT
linked "Cortex-M3, chunks only" "$base ckb_container_create ckb_writer_open ckb_chunk_write ckb_chunk_delete \
ckb_reader_open ckb_chunk_read ckb_writer_close" -DCKB_NO_LOG -DCKB_NO_STATUS_TEXT
measure "x86-64, all" 0 0 gcc size -fno-pie
exit $failed
