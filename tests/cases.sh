#!/bin/bash
# Usage: tests/cases.sh PATH/TO/chunkbench
# What went wrong in other stores, tried on whole files with the program. Prints what failed and at the end
# `N passed, N failed`.
set -u
program=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/chunkbench-cases-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0
# Kilobytes of address space; a build with ASan reserves its shadow there and takes no limit.
address_limit=65536
if grep -q __asan_init "$program"; then
    address_limit=unlimited
fi

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    stdout: /' out 2>/dev/null | head -n 3
    sed 's/^/    stderr: /' err 2>/dev/null | head -n 3
}

# check NAME COMMAND...: passes when the command succeeds.
check() {
    local name=$1
    shift
    if "$@"; then pass; else fail "$name"; fi
}

# run CODE ARGUMENT...: runs the program, expects this exit code; output goes to the files out and err.
run() {
    local code=0 expected=$1
    shift
    timeout 60 "$program" "$@" >out 2>err </dev/null || code=$?
    if [ $code = "$expected" ]; then pass; else fail "exit $code, expected $expected: $*"; fi
}

# The file with the newest epoch of a volume, by its header.
newest() {
    for file in "$1"/segment-*; do
        echo "$(od -An -tu8 -j32 -N8 "$file") $file"
    done | sort -n | awk 'END { print $2 }'
}

head -c 3000000 /dev/urandom >data
run 0 format --segment 256K -s 32M base
for block in 1 2 3; do run 0 put base 1/$block -s 50000 data; done

# C04, C07: the newest segment file is empty, random, or has only its header.
for kind in empty random header; do
    cp -r base t
    file=$(newest t)
    number=$((10#$(basename "$file" | tr -dc 0-9)))
    case $kind in
    empty) : >"$file" ;;
    random) head -c 4096 /dev/urandom >"$file" ;;
    header) truncate -s 512 "$file" ;;
    esac
    for _ in 1 2; do
        run 4 check t
        check "C04 $kind: segment $number is named" grep -q "segment $number\b" out
    done
    run 0 put t 1/9 data
    for block in 9 1 2; do
        run 0 get t 1/$block copy
        check "C04 $kind: block $block" cmp -s data copy
    done
    run 4 get t 1/3 copy # its last chunks are lost: that is not the end of the block
    rm -r t
done

# C07, C155: two lost segments; the space of the others is there, and comes back.
cp -r base t
rm t/segment-0000001[23]
run 4 check t
for block in $(seq 10 19); do "$program" put t 2/"$block" data >/dev/null 2>err || break; done
check "C07: no more files than the volume has segments" test "$(ls t/segment-* | wc -l)" -le 128
"$program" put t 2/99 data >out 2>err
run 0 rm t 2
run 0 put t 3/1 data
run 0 get t 3/1 copy
check "C155: put in the space of what was deleted" cmp -s data copy
rm -r t

# C38: a segment file under another name is missed, and is there again under its own.
cp -r base t
file=$(newest t)
mv "$file" "${file/0000/}"
run 4 check t
mv "${file/0000/}" "$file"
run 0 check t
rm -r t

# C18: any first bytes, in little memory.
file=$(newest base)
cp -r base t
for seed in $(seq 20); do
    openssl enc -aes-128-ctr -K "$(printf %032x "$seed")" -iv 0 -nosalt </dev/zero 2>/dev/null | head -c 64 |
        dd of="t/$(basename "$file")" conv=notrunc status=none
    code=0
    (ulimit -v "$address_limit"; "$program" check t >out 2>err) || code=$?
    check "C18: exit $code with seed $seed" test $code = 4
done
rm -r t

# C22: what is behind the end of a segment file is not part of it, and is said.
cp -r base t
printf x >>"$(newest t)"
"$program" check t >out 2>err
check "C22: the file that is too long is named" grep -q "$(basename "$(newest t)")" out err
rm -r t

# C81: after a format nothing of the earlier life is there.
run 0 format --segment 1M file:image:32M
run 0 put file:image 1/1 data
run 0 format --segment 1M --destroy file:image
run 1 get file:image 1/1 copy
run 0 put file:image 1/2 -s 50000 data
run 1 get file:image 1/1 copy
run 0 check file:image

# C82: an image that was cut short says so.
truncate -s 20M image
for command in info ls check get; do
    if [ $command = get ]; then run 0 get file:image 1/2 copy; else "$program" $command file:image >out 2>err; fi
    check "C82: $command of a cut image says so" grep -q 'cut short' out err
done
run 4 put file:image 1/3 data

# C86: segments so small for so large a volume that the journal takes several of them.
run 0 format --segment 16K -s 64M small
run 0 put small 1/1 data
run 0 get small 1/1 copy
check "C86: the bytes are there" cmp -s data copy
run 0 check small

# C38: a log over more than a hundred segment files is read in the order of its entries.
mkdir numbers
run 0 log -n 6000 -s 400 --segment 16K --sync 64 --keep numbers
check "C38: more than 128 files" test "$(ls numbers/segment-* | wc -l)" -gt 128
"$program" dump --json numbers bench >dump
check "C38: entries in their order" cmp -s <(seq 6000) <(sed -nE 's/^\{"index":([0-9]+),.*/\1/p' dump)
run 0 check numbers

# C47: groups of more entries than a segment has room for stay inside their segments.
mkdir groups
run 0 log -n 2000 -t 32 -s 8000 --segment 64K --sync each --keep --acks groups.acks groups
check "C47: no file is longer than a segment" test -z "$(find groups -name 'segment-*' -size +64k)"
run 0 check --acks groups.acks groups

# C13, C56: errors of single system calls. The leak detector does not run under strace.
if command -v strace >/dev/null && [ $address_limit != unlimited ]; then
    inject() { # CALL WHAT CODE ARGUMENT...
        local code=0 call=$1 what=$2 expected=$3
        shift 3
        timeout 60 strace -f -qq -o trace -e "trace=$call" -e "inject=$call:$what" "$program" "$@" >out 2>err || code=$?
        check "$call $what: exit $code, expected $expected" test $code = "$expected"
        check "$call $what: it was met" grep -q INJECTED trace
    }
    cp -r numbers t
    find t -type f -exec sha256sum {} + | sort >before
    for at in 1 2 3 10 50 200; do
        inject pread64 "error=EIO:when=$at" 3 check t
        check "C13: read $at is said to be an I/O error" grep -q EIO err
    done
    check "C13: nothing was changed" cmp -s before <(find t -type f -exec sha256sum {} + | sort)
    run 0 check t
    rm -r t
    mkdir reserve
    for error in EOPNOTSUPP ENOSYS EINVAL; do
        inject fallocate "error=$error" 0 log -n 500 --segment 64K --verify reserve
        check "C56: $error is said once" test "$(grep -c 'cannot reserve space' out)" = 1
    done
    inject fallocate error=EINTR:when=1 0 log -n 500 --segment 64K --verify reserve
    inject fallocate error=ENOSPC 0 log -n 500 --segment 64K --verify reserve # a plain write finds room
    inject fallocate error=EBADF 3 log -n 500 --segment 64K reserve
else
    echo "SKIPPED: C13 and C56 need strace, and a program without a leak detector"
fi

# C135, C136: threads and lists without end.
run 2 write -s "$(seq -s, 1 10000)" ram:64M
(ulimit -s 256; "$program" write -t 64 -n 10000 ram:1G >out 2>err)
check "C136: a small stack" test $? = 0

echo "$passed passed, $failed failed"
[ $failed = 0 ]
