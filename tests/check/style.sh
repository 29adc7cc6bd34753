# Parts that look at the source.

part_format() {
    need clang-format clang-format
    local files
    files=$(ls chunkbench.h main.c platform/*.[ch] tests/*.[ch])
    # shellcheck disable=SC2086
    if ! clang-format --dry-run -Werror $files 2>"$work/output"; then
        grep -oE '^[^:]+:[0-9]+' "$work/output" | cut -d: -f1 | uniq -c
        echo "run: make format"
        return 1
    fi
    say "$(wc -w <<<"$files") files as .clang-format wants them"
}

# What is not a test keeps to functions that fit a screen.
part_functions() {
    need ctags universal-ctags
    local longest
    longest=$(ctags --languages=C --langmap=C:+.h --kinds-C=f --fields=+ne -o - chunkbench.h main.c platform/*.[ch] |
        sed -nE 's/^([^\t]+)\t([^\t]+)\t.*\tline:([0-9]+).*\tend:([0-9]+).*/\1 \2 \3 \4/p' |
        awk '{ print $4 - $3 + 1, $1, $2 ":" $3 }' | sort -rn)
    [ "$(wc -l <<<"$longest")" -gt 300 ] || {
        echo "ctags found only $(wc -l <<<"$longest") functions"
        return 1
    }
    if [ "$(head -n 1 <<<"$longest" | cut -d' ' -f1)" -gt 70 ]; then
        echo "longer than 70 lines:"
        awk '$1 > 70' <<<"$longest"
        return 1
    fi
    say "$(wc -l <<<"$longest") functions, the longest is $(head -n 1 <<<"$longest" | awk '{ print $2, "with", $1, "lines" }')"
}
