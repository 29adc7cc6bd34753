#!/bin/bash
# Usage: tests/readme.sh CHUNKBENCH
# Tries the examples of README.md: a block fenced as ```c is compiled without a warning, and run when it has a
# main; one fenced as ```sh runs line by line in an empty directory with the program in the PATH. Blocks with
# another fence are prose.
set -eu
program=$(realpath "$1")
top=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
awk -v out="$work/block" '
    /^```/ && inside { inside = 0; close(file); next }
    /^```(c|sh)$/ { inside = 1; file = sprintf("%s-%02d.%s", out, ++count, substr($0, 4)); next }
    inside { print > file }' "$top/README.md"
mkdir "$work/bin"
ln -s "$program" "$work/bin/chunkbench"
compiled=0
ran=0
warnings="-std=gnu11 -Wall -Wextra -Wpedantic -Wshadow -Wundef -Werror"

compile_and_run() {
    local source=$1 name=${1%.c}
    if ! grep -q 'int main' "$source"; then
        gcc $warnings -I"$top" -I"$top/platform" -c -o "$name.o" "$source"
        return
    fi
    gcc $warnings -g -I"$top" -I"$top/platform" -o "$name" "$source" "$top"/platform/*.c -lpthread
    mkdir "$name.run"
    (cd "$name.run" && "$name" >"$name.out" 2>&1) || {
        echo "readme: $(basename "$source"): exit $?"
        cat "$name.out"
        exit 1
    }
    ran=$((ran + 1))
}

for block in "$work"/block-*; do
    case $block in
    *.c)
        compile_and_run "$block"
        compiled=$((compiled + 1))
        ;;
    *.sh)
        mkdir "${block%.sh}.run"
        while IFS= read -r line; do
            (cd "${block%.sh}.run" && PATH="$work/bin:$PATH" bash -euo pipefail -c "$line") \
                >"$work/out" 2>&1 </dev/null || {
                echo "readme: exit $?: $line"
                cat "$work/out"
                exit 1
            }
            ran=$((ran + 1))
        done <"$block"
        ;;
    esac
done
[ $((compiled + ran)) -gt 0 ] || {
    echo "readme: no example found"
    exit 1
}
echo "$compiled C examples compiled, $ran programs and command lines run"
