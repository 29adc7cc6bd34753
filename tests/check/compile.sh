# Parts that compile the header in every way that is promised.


# One build in which every warning speaks: gcc's of data flow need an optimiser, clang's need none.
warn() {
    local cc=$1
    shift
    case $cc in
    gcc) quiet gcc $WARNINGS -O1 "$@" $IMPLEMENTATION -c -o "$work/warn.o" ;;
    clang) quiet clang $WARNINGS "$@" $IMPLEMENTATION -fsyntax-only ;;
    esac
}

part_compilers() {
    need clang clang
    local count=0 cc standard mode
    for cc in gcc clang; do
        for standard in c99 c11 c17; do
            for mode in "" "-DCKB_THREADS" "-DCKB_THREADS -DCHUNKBENCH_BENCH" "-DCKB_STATIC"; do
                # The dialect changes what is accepted, not how data flow.
                if [ $standard = c99 ]; then
                    warn $cc -std=c99 $mode
                else
                    quiet $cc -std=$standard $WARNINGS $mode $IMPLEMENTATION -fsyntax-only
                fi
                count=$((count + 1))
            done
            quiet $cc -std=$standard $WARNINGS -DCHUNKBENCH_BENCH -x c chunkbench.h -fsyntax-only
        done
        for standard in 99 11 17; do
            quiet $cc -std=c$standard $WARNINGS -I. -DCKB_THREADS= -DCHUNKBENCH_BENCH= -fsyntax-only platform/ram.c \
                platform/port_template.c
        done
        quiet $cc -std=c11 $WARNINGS -I. -DCKB_THREADS= -DCHUNKBENCH_BENCH= -fsyntax-only platform/*.c
        quiet $cc -std=gnu11 $WARNINGS -I. -DCKB_THREADS= -DCHUNKBENCH_BENCH= -fsyntax-only main.c
    done
    say "gcc and clang, C99, C11, C17: $count builds without a warning"
}

# The only headers that can be found are the compiler's own, and of these only four are used.
part_freestanding() {
    local cc own
    mkdir -p "$work/empty"
    : >"$work/empty/limits.h" # where gcc's limits.h looks for one of libc
    for cc in gcc clang; do
        have $cc || continue
        own=$($cc -print-file-name=include)
        quiet $cc -std=c99 -ffreestanding -nostdinc -isystem "$own" -isystem "$work/empty" $WARNINGS -Os \
            $IMPLEMENTATION -c -o "$work/free.o"
        $cc -std=c99 -ffreestanding -nostdinc -isystem "$own" -isystem "$work/empty" -H $IMPLEMENTATION \
            -fsyntax-only 2>"$work/headers"
        quiet_none "headers beside the four" "$(sed -nE 's/^\.+ .*\/([^/]+)$/\1/p' "$work/headers" | sort -u |
            grep -vxE 'stddef\.h|stdint(-gcc)?\.h|stdbool\.h|(sys)?limits\.h|__stddef[a-z_]*\.h' || true)"
        quiet_none "undefined symbols beside mem*" "$(nm -u "$work/free.o" | awk '{ print $2 }' |
            grep -vxE 'mem(cpy|move|set|cmp)' || true)"
    done
    say "C99, stddef stdint stdbool limits, needs memcpy memmove memset memcmp only"
}

quiet_none() {
    [ -z "$2" ] || {
        echo "$1:" $2
        return 1
    }
}

part_cplusplus() {
    local cc standard
    quiet gcc -std=c99 -O0 -DCHUNKBENCH_BENCH $IMPLEMENTATION -c -o "$work/core.o"
    for cc in g++ clang++; do
        have $cc || continue
        for standard in c++11 c++17 c++20; do
            echo '#include "chunkbench.h"
int main() { return ckb_status_text(0) == nullptr; }' >"$work/user.cc"
            quiet $cc -std=$standard -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wundef -Werror -I. \
                -DCHUNKBENCH_BENCH -c -o "$work/user.o" "$work/user.cc"
            quiet $cc -o "$work/user" "$work/user.o" -x none "$work/core.o"
            quiet "$work/user"
        done
    done
    say "declarations include from C++11, C++17 and C++20 and link against C"
}

part_includes() {
    local place
    for place in first last twice late; do
        case $place in
        first) printf '#include "chunkbench.h"\n#include <stdio.h>\n#include <string.h>\n' ;;
        last) printf '#include <string.h>\n#include <stdio.h>\n#include "chunkbench.h"\n' ;;
        twice) printf '#include "chunkbench.h"\n#include "chunkbench.h"\n' ;;
        late) printf '#include "chunkbench.h"\n#define CHUNKBENCH_IMPLEMENTATION\n#include "chunkbench.h"\n' ;;
        esac >"$work/$place.c"
        echo 'int main(void) { return ckb_version() == NULL; }' >>"$work/$place.c"
        if [ $place != late ]; then
            quiet gcc -std=c99 $WARNINGS -I. -DCHUNKBENCH_IMPLEMENTATION -o "$work/$place" "$work/$place.c"
        else
            quiet gcc -std=c99 $WARNINGS -I. -o "$work/$place" "$work/$place.c"
        fi
        quiet "$work/$place"
    done
    say "first, last, twice, and the implementation after the declarations"
}

# One file has the implementation, another uses it.
part_units() {
    echo '#include "chunkbench.h"
unsigned other(void);
unsigned other(void) { return ckb_crc32c(0, "123456789", 9); }' >"$work/one.c"
    echo '#include "chunkbench.h"
unsigned other(void);
int main(void) { return other() != 0xE3069283u || ckb_crc32c(0, "123456789", 9) != 0xE3069283u; }' >"$work/two.c"
    quiet gcc -std=c99 $WARNINGS -I. -DCHUNKBENCH_IMPLEMENTATION -c -o "$work/one.o" "$work/one.c"
    quiet gcc -std=c99 $WARNINGS -I. -c -o "$work/two.o" "$work/two.c"
    quiet gcc -o "$work/units" "$work/one.o" "$work/two.o"
    quiet "$work/units"
    say "one implements, one uses"
}

# Two files with a private copy each, in one program.
part_static() {
    local cc
    for cc in gcc clang; do
        have $cc || continue
        for unit in one two; do
            [ -e "$work/$unit.c" ] || part_units
            quiet $cc -std=c99 $WARNINGS -I. -DCKB_STATIC -DCHUNKBENCH_IMPLEMENTATION -c -o "$work/$unit.o" \
                "$work/$unit.c"
            quiet_none "symbols of a static copy" "$(nm -g "$work/$unit.o" | grep -i ckb || true)"
        done
        quiet $cc -o "$work/static" "$work/one.o" "$work/two.o"
        quiet "$work/static"
    done
    say "two private copies in one program, no symbol of theirs outside"
}

# Each macro of the header's configuration alone; a new one must be entered here.
part_macros() {
    cat >"$work/mutex.h" <<'END'
#define CKB_THREADS
typedef struct port_lock { int taken; } port_lock;
void port_lock_do(port_lock *lock, int what);
void port_wait(port_lock *condition, port_lock *lock);
#define CKB_MUTEX port_lock
#define CKB_MUTEX_INIT(mutex) port_lock_do(mutex, 0)
#define CKB_MUTEX_DESTROY(mutex) port_lock_do(mutex, 1)
#define CKB_MUTEX_LOCK(mutex) port_lock_do(mutex, 2)
#define CKB_MUTEX_UNLOCK(mutex) port_lock_do(mutex, 3)
#define CKB_CONDITION port_lock
#define CKB_CONDITION_INIT(condition) port_lock_do(condition, 4)
#define CKB_CONDITION_DESTROY(condition) port_lock_do(condition, 5)
#define CKB_CONDITION_WAIT(condition, mutex) port_wait(condition, mutex)
#define CKB_CONDITION_BROADCAST(condition) port_lock_do(condition, 6)
#define CKB_CONDITION_SIGNAL(condition) port_lock_do(condition, 7)
END
    cat >"$work/config.h" <<'END'
#include <stddef.h>
#include <stdint.h>
uint32_t port_crc(uint32_t state, const void *data, size_t bytes);
#define CKB_CRC32C port_crc
END
    cat >"$work/assert.h" <<'END'
void port_assert(int good);
#define CKB_ASSERT(condition) port_assert((condition) ? 1 : 0)
END
    local known="CKB_API|CKB_ASSERT|CKB_CONFIG|CKB_CRC32C|CKB_MUTEX|CKB_NO_STATUS_TEXT|CKB_READ_ONLY|CKB_STATIC"
    known="$known|CKB_THREADS|CKB_NO_CHUNKS|CKB_NO_LOG"
    quiet_none "macros of the header that are not tried here" "$(grep -E '^ *#(if|elif)' chunkbench.h |
        grep -oE '\bCKB_[A-Z0-9_]+' | sort -u | grep -vxE "$known" || true)"
    local count=0 cc mode
    for cc in gcc clang; do
        have $cc || continue
        while read -r mode; do
            warn $cc -std=c99 $mode
            # Static declarations need their definitions beside them.
            case $mode in *CKB_STATIC*) ;; *) quiet $cc -std=c99 $WARNINGS $mode -x c chunkbench.h -fsyntax-only ;; esac
            count=$((count + 1))
        done <<END
-DCKB_THREADS
-DCKB_READ_ONLY
-DCKB_READ_ONLY -DCKB_THREADS
-DCKB_NO_STATUS_TEXT
-DCKB_NO_STATUS_TEXT -DCKB_READ_ONLY
-DCKB_NO_CHUNKS
-DCKB_NO_CHUNKS -DCKB_THREADS
-DCKB_NO_CHUNKS -DCKB_READ_ONLY
-DCKB_NO_CHUNKS -DCKB_STATIC
-DCKB_NO_CHUNKS -DCKB_NO_STATUS_TEXT
-DCKB_NO_LOG
-DCKB_NO_LOG -DCKB_THREADS
-DCKB_NO_LOG -DCKB_READ_ONLY
-DCKB_NO_LOG -DCKB_STATIC
-DCKB_STATIC
-DCKB_STATIC -DCKB_READ_ONLY
-DCKB_API=extern
-DCKB_CONFIG="$work/config.h"
-DCKB_CONFIG="$work/assert.h"
-DCKB_CONFIG="$work/mutex.h"
-DCHUNKBENCH_BENCH
-DCHUNKBENCH_BENCH -DCKB_NO_STATUS_TEXT
-DCHUNKBENCH_BENCH -DCKB_STATIC
END
    done
    say "$count builds"
}

part_symbols() {
    local mode
    for mode in "" "-DCKB_THREADS" "-DCKB_THREADS -DCHUNKBENCH_BENCH"; do
        quiet gcc -std=c99 -O1 -fno-pie $mode $IMPLEMENTATION -c -o "$work/symbols.o"
        quiet_none "global symbols without ckb_" "$(nm -g --defined-only "$work/symbols.o" | awk '{ print $3 }' |
            grep -v '^ckb_' || true)"
        quiet_none "local functions without ckbi_ or ckb_" "$(nm --defined-only "$work/symbols.o" |
            awk '$2 == "t" { print $3 }' | grep -vE '^ckbi?_' || true)"
        quiet_none "data that can be written" "$(nm --defined-only "$work/symbols.o" |
            awk '$2 ~ /^[bBcCdDgGsS]$/ { print $3 }' || true)"
    done
    say "all begin with ckb_, nothing writable"
}
