# Parts that build the core for other machines, and run it there.

part_size() {
    need arm-none-eabi-gcc gcc-arm-none-eabi
    need python3 python3
    tests/size.sh "$work" >"$work/sizes" 2>&1 || {
        cat "$work/sizes"
        return 1
    }
    say "$(grep -v deepest "$work/sizes" | sed 's/^size: //' | paste -sd ';' | sed 's/;/; /g')"
}

# Builds the self-test; $1 names the machine, $2 runs the program (empty: itself), the rest compiles it.
selftest() {
    local name=$1 run=$2
    shift 2
    quiet "$@" -std=c99 $WARNINGS -I. -o "$work/$name" tests/selftest.c
    # shellcheck disable=SC2086
    $run "$work/$name" >"$work/$name.out" || {
        echo "$name: exit $?"
        cat "$work/$name.out"
        return 1
    }
    if ! cmp -s "$work/$name.out" "$work/expected"; then
        [ ! -e "$work/expected" ] || {
            echo "$name says: $(cat "$work/$name.out")"
            echo "x86-64 says: $(cat "$work/expected")"
            return 1
        }
        mv "$work/$name.out" "$work/expected"
    fi
    ran="$ran $name"
}

part_selftest() {
    local ran="" missing="" include
    include="-idirafter /usr/include/$(gcc -print-multiarch 2>/dev/null || echo x86_64-linux-gnu)"
    selftest x86-64 "" gcc -O2
    selftest x86-64-portable-crc "" gcc -O1 -fno-builtin -DCKB_THREADS -pthread -ffreestanding
    selftest x86-64-small "" gcc -Os -static
    if have clang; then selftest clang "" clang -O2; else missing="$missing clang"; fi
    if have musl-gcc; then selftest musl "" musl-gcc -O2 -static; else missing="$missing musl-tools"; fi
    if echo 'int main(void){return 0;}' | gcc -m32 -x c -o "$work/m32" - 2>/dev/null && "$work/m32"; then
        # shellcheck disable=SC2086
        selftest i386 "" gcc -m32 $include -O2
        # shellcheck disable=SC2086
        if have clang; then selftest i386-clang "" clang -m32 $include -O1; fi
    else
        missing="$missing gcc-12-multilib"
    fi
    if have s390x-linux-gnu-gcc && have qemu-s390x-static; then
        selftest s390x qemu-s390x-static s390x-linux-gnu-gcc -O2 -static
    else
        missing="$missing gcc-s390x-linux-gnu qemu-user-static"
    fi
    if have aarch64-linux-gnu-gcc && have qemu-aarch64-static; then
        selftest aarch64 qemu-aarch64-static aarch64-linux-gnu-gcc -O2 -static
        selftest aarch64-crc qemu-aarch64-static aarch64-linux-gnu-gcc -march=armv8-a+crc -O2 -static
    else
        missing="$missing gcc-aarch64-linux-gnu qemu-user-static"
    fi
    say "the same medium byte for byte on$ran${missing:+; SKIPPED, not installed:$missing}"
}

part_memcheck() {
    need valgrind valgrind
    quiet gcc -std=c99 -g -O1 -I. -o "$work/selftest" tests/selftest.c
    quiet valgrind -q --error-exitcode=99 --leak-check=full "$work/selftest"
    say "valgrind finds nothing in the self-test"
}
