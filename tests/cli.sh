#!/bin/bash
# Usage: tests/cli.sh PATH/TO/chunkbench
# What a user sees of the program: exit codes, what goes to stdout and to stderr, files that come and go,
# interrupts, audits. Prints what failed and at the end `N passed, N failed`.
set -u
program=$(realpath "$1")
work=$(mktemp -d "${TMPDIR:-/tmp}/chunkbench-cli-XXXXXX")
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
passed=0
failed=0

pass() { passed=$((passed + 1)); }
fail() {
    failed=$((failed + 1))
    echo "FAILED: $*"
    sed 's/^/    stdout: /' "$work/out" 2>/dev/null | head -n 5
    sed 's/^/    stderr: /' "$work/err" 2>/dev/null | head -n 5
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
    timeout 120 "$program" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    if [ $code = "$expected" ]; then pass; else fail "exit $code, expected $expected: $*"; fi
}

# refuse TEXT ARGUMENT...: a usage error that says TEXT, prints nothing and touches nothing.
refuse() {
    local text=$1
    shift
    run 2 "$@"
    check "\"$text\" in the message of: $*" grep -qF -- "$text" "$work/err"
    check "nothing on stdout: $*" test ! -s "$work/out"
}

# Runs a program, in place of this shell, with the dispositions of a terminal: under nohup or in the background
# some signals are ignored, programs leave it at that, and a shell cannot trap what was ignored when it started.
interactively() { exec env --default-signal=INT,TERM,HUP "$@"; }

# Is the file one JSON document, read strictly?
json() {
    python3 - "$1" <<'END'
import json, sys
def refuse(text): raise ValueError(text)
json.load(open(sys.argv[1], encoding="utf-8"), parse_constant=refuse)
END
}

# value FILE EXPRESSION: evaluates it with the document as d.
value() { python3 -c 'import json,sys; d=json.load(open(sys.argv[1])); print(eval(sys.argv[2]))' "$1" "$2"; }
equal() { [ "$1" = "$2" ] || { echo "    is \"$1\", expected \"$2\""; false; }; }
empty() { [ -z "$(ls -A "$1")" ]; }

# ---- usage ----

run 2
run 0 --version
check version grep -qE '^chunkbench [0-9]+\.[0-9]+\.[0-9]+ ' out
run 0 --help
for command in qualify write cmdw log teragen format info ls put get rm compact append dump check scrub export import; do
    run 0 "$command" --help
    check "examples of $command" grep -q '^examples:' out
done
run 2 unknown
mkdir touch
cd touch || exit 1
refuse '"frobnicate" is no command' frobnicate
refuse '--threads: "0" is out of range (1 to 1024)' write -t 0
refuse '--threads: "1025" is out of range (1 to 1024)' write -t 1025
refuse '--threads: "4294967297" is out of range (1 to 1024)' write -t 4294967297
refuse '--threads: "-1" is not a count' write -t -1
refuse '--size: "0" is out of range (1 to 1G)' write -s 0
refuse '--duration: "0s" is out of range (1ms to 1000h)' write --duration 0s
refuse '--duration: "1e20s" is not a duration' write --duration 1e20s
refuse '--duration: "10" is not a duration' write --duration 10
refuse '--rate: "nan" is not a rate' write --rate nan
refuse '--count: "0x10" is not a count' write -n 0x10
refuse '--sync: none makes nothing durable' write --sync none --acks - ram:64M
refuse 'unknown option --acks' qualify --acks x
refuse 'unknown option --segment' ls --segment 4M .
refuse 'one argument too many: b' info a b
refuse 'missing argument' put a
refuse '"3" is not CONTAINER/BLOCK (numbers)' put . 3
refuse '"3/x" is not' put . 3/x
refuse '"1/2/4294967296" is not' get . 1/2/4294967296
refuse 'only one of --json, --csv and --acks' write --json - --csv -
refuse 'nothing of ram:64M can be kept' write --keep ram:64M
refuse 'ram:x' write ram:x
refuse 'RAM holds nothing' info ram:64M
refuse '/nowhere/at/all' write /nowhere/at/all
refuse 'runs; at most 1024' write -n 1 -t "$(seq -s, 1 32)" -s "$(seq -s, 1 32)" --sync end,each ram:64M
mkfifo ../fifo
refuse fifo write file:../fifo
refuse /dev/null write /dev/null
refuse 'no volume here' info .
check "nothing was touched" empty .
cd ..

# ---- results ----

run 0 write -n 2000 -t 1,2 --verify ram:64M
check "text has a row per run" equal "$(grep -cE '^ +[12] +1 KiB' out)" 2
check "verified" grep -q '2000 chunks read back equal after a remount, 0 not' out
check "no progress when short" test ! -s err
run 0 write -n 2000 -t 1,2 -s 1K,5000 --sync end,each,7 --json - ram:64M
check "one JSON document" json out
check "12 results" equal "$(value out 'len(d["results"])')" 12
check "counts" equal "$(value out 'sum(r["operations"] for r in d["results"])')" 24000
check "rate, count and time agree" equal "$(value out \
    'all(abs(r["rate_per_s"] * r["elapsed_ns"] / 1e9 / r["operations"] - 1) < 1e-5 for r in d["results"])')" True
check "rate, size and MiB/s agree" equal "$(value out \
    'all(abs(r["adjusted_rate_per_s"] * r["size_bytes"] / 1048576 / r["mib_per_s"] - 1) < 1e-3 for r in d["results"])')" True
check "percentiles rise" equal "$(value out 'all(sorted(l) == l for l in [[r["latency_ns"][k] for k in
    ("min", "p50", "p75", "p95", "p98", "p99", "p999", "max")] for r in d["results"]])')" True
check "small latencies are not 0" equal "$(value out 'all(r["latency_ns"]["p50"] > 0 for r in d["results"])')" True
check "command line" equal "$(value out 'd["environment"]["command_line"].split()[1]')" write
run 0 write -n 100 -t 1 --json result.json --csv result.csv ram:64M
check "JSON file" json result.json
check "text beside it" grep -q 'adjusted/s' out
check "CSV has as many fields as headings" equal "$(awk -F, '{ print NF }' result.csv | sort -u | wc -l)" 1
run 0 write -n 1000 -t 1 --format dropwizard ram:64M
number='[0-9]+\.[0-9]+(E-?[0-9]+)?'
line="^type=TIMER, name=chunk-write, count=1000"
for field in min max mean stddev median p75 p95 p98 p99 p999 mean_rate m1 m5 m15; do
    line="$line, $field=$number"
done
check "the field's line" grep -qE "$line, rate_unit=events/second, duration_unit=milliseconds$" out
check "the field's totals" grep -qx 'Successful executions: 1000' out
env LC_ALL=de_DE.UTF-8 "$program" write -n 100 -t 1 --rate 1000.5 --json - ram:64M >out 2>err
check "dots in any locale" json out
check "rate" equal "$(value out 'd["settings"]["rate_per_s"]')" 1000.5
run 0 write --dry-run -n 1000 -t 1,2 touch
check "plan names the bytes" grep -q 'payload bytes to write: 2048000' out
check "dry run touches nothing" empty touch
run 5 write -n 1000000 -t 1 ram:64M
check "both sizes in the message" grep -q '1000000 chunks of 1 KiB and 1 writers need .* ram:64M has room for 64 MiB' err
run 0 write --duration 300ms -t 2 --verify --json - ram:16M
check "timed run goes round" equal "$(value out 'd["results"][0]["bytes"] > 16 << 20 and d["results"][0]["verify_failures"] == 0')" True
start=$(date +%s%N)
run 0 write --duration 1s --rate 0.1 -t 64 ram:128M
check "a low rate does not prolong a run" test $((($(date +%s%N) - start) / 1000000)) -lt 2500

# ---- results of logs ----

run 0 log -n 3000 -t 1,8 --segment 64K,1M --verify ram:64M
check "a speed row per run" test "$(grep -cE '^ +[18] +256 B +(64 K|1 M)iB' out)" -ge 4
check "entries verified" grep -q '3000 entries read back equal after a remount, 0 not' out
check "no disk is said" grep -q 'No iostat line: nobody counts' out
check "which segments" grep -qE '^Log segments of (64 K|1 M)iB are .* with 1 thread, .* with 8 threads' out
check "what threads gain" grep -qE '^8 threads reach [0-9]+ appends/s, [0-9.]+ times the [0-9]+/s of 1 thread, with ' out
check "no WAL in memory" grep -q '^Fit for a WAL: no. Nothing on this target survives power loss' out
run 0 log -n 300 -t 2 -s 64-4K --ahead 0,4 --sync each,16,none .
check "one segment size: no comparison" test "$(grep -c '^Log segments' out)" = 0
check "which policy" grep -qE '^Sync policy \(ahead 0\): sync (16|each) gives the most, .*; sync none gives .*, nothing durable\.$' out
check "what preparing ahead gains" grep -qE '^Segments prepared ahead \(sync each\): ahead [04] gives the most, ' out
check "two threads are not what etcd asks for" grep -qE '^99 of 100 appends by 2 threads \(.*\) were durable within .*; etcd.s rule ' out
run 0 log -n 300 -s 64-4K .
check "fit for a WAL" grep -qE '^Fit for a WAL: (yes|no)\. 99 of 100 durable appends of up to 4 KiB took up to ' out
check "short runs are said of a log" grep -q '; --duration 30s gives them.$' out
run 0 log -n 300 --sync none ram:64M
check "nothing durable" grep -q '^Nothing was made durable' out
mkdir logbench
run 0 log -n 2000 -t 1,8 -s 100,64-4K --sync each,64,5ms --verify --json - logbench
check "log is JSON" json out
check "12 log results" equal "$(value out 'len(d["results"])')" 12
check "all entries are there" equal "$(value out 'all(r["operations"] == r["verified"] == r["last"] == 2000 and r["verify_failures"] == 0 for r in d["results"])')" True
check "sync axis" equal "$(value out 'sorted({str(r["sync"]) for r in d["results"]})')" "['5ms', '64', 'each']"
check "waits add up" equal "$(value out 'all(abs((r["queue_wait_ns"]["mean"] + r["device_wait_ns"]["mean"]) / r["durable_latency_ns"]["mean"] - 1) < 0.2 for r in d["results"])')" True
check "threads share syncs" equal "$(value out 'all(r["entries_per_sync"] > 1.2 for r in d["results"] if r["threads"] == 8)')" True
check "nothing left of a log" empty logbench
for prepare in none reserve zero; do
    run 0 log -n 200 --segment 64K --ahead 0,2 --prepare $prepare --verify --csv - logbench
    check "log CSV has as many fields as headings" equal "$(awk -F, '{ print NF }' out | sort -u | wc -l)" 1
done
# The examples of the help, as pasted, but for their time.
chunkbench() { "$program" "$@" >out 2>err; }
mkdir examples && cd examples || exit 1
"$program" log --help | sed -nE '/^examples:/,$ { s/--duration [0-9]+s/--duration 200ms/; s/^  (chunkbench .*)/\1/p }' >../examples.txt
check "log has examples" test "$(wc -l <../examples.txt)" -ge 5
while read -r example; do check "example: $example" eval "$example"; done <../examples.txt
check "an example leaves a result" json log.json
check "examples leave nothing else" equal "$(ls)" "$(printf 'err\nlog.json\nout')"
cd ..
refuse '--prepare: only a directory has' log --dry-run -n 10 --prepare zero ram:64M
refuse '--prepare: only a directory has' log -n 10 --prepare zero ram:64M
refuse '--sync: none makes nothing durable' log --sync none --acks - ram:64M
refuse '--size: "4K-64" is neither' log -s 4K-64 ram:64M
refuse '--sync: "end" is not known (none, each, 1 to 65536 or 10us to 1m)' log --sync end ram:64M
run 0 log --dry-run -n 1000 -t 1,2 -s 64-4K touch
check "plan of a log" grep -q '^2 threads, entries of up to 4 KiB, segments of .* MiB: 1000 entries, ' out
check "dry run of a log touches nothing" empty touch
run 0 log --dry-run -n 1000 --segment 16K,64K touch
check "small segments of a directory" test "$(grep -c 'segments of \(16\|64\) KiB: ' out)" = 2
run 0 log -n 200 --segment 16K,64K --json - file:sweep.img:64M
check "what does not fit is left out of a sweep" equal "$(value out '[r["segment_bytes"] for r in d["results"]]')" "[65536]"
check "and that is said" equal "$(value out 'sum("1 of 2 runs left out; the first, " in w and w.endswith("at least 65536") for w in d["warnings"])')" 1
run 0 log --dry-run -n 200 --segment 16K,64K file:sweep.img:64M
check "so does the plan" grep -q '^1 of 2 runs left out; the first, entries of 256 B in segments of 16 KiB: ' out
run 0 write -n 200 --segment 64K,32M --json - ram:64M
check "also of a sweep of writes" equal "$(value out '[r["segment_bytes"] for r in d["results"]]')" "[65536]"
refuse 'segment size 16384 bytes; expected' log -n 200 --segment 16K file:sweep.img:64M
refuse 'segment size 4096 bytes; expected' log -n 200 --segment 4K,16K file:sweep.img:64M
refuse 'there is no such image; a new one needs a size' log --dry-run file:sweep.img
run 5 log -n 1000 --segment 4M ram:16M
check "no advice that does not help" grep -q 'has room for 16 MiB; smaller segments need less' err
run 5 log -n 1000000 ram:16M
check "log room in the message" grep -q 'ram:16M has room for 16 MiB; --purge-behind needs less' err
run 0 log --duration 500ms -t 4 --verify --json - ram:16M
check "timed log goes round" equal "$(value out 'd["results"][0]["first"] > 1 and d["results"][0]["verify_failures"] == 0')" True
run 0 log -n 2000 -t 4 --verify file:log.img:64M
check "the image of a log is removed again" test ! -e log.img
run 0 log -n 1000 -t 4 --keep --acks log-acks.txt logbench
check "each entry is acknowledged once" equal "$(sort -u log-acks.txt | wc -l)" 1000
check "lines of acknowledgements" equal "$(grep -cE '^log [0-9]+ 256 [0-9a-f]{8}$' log-acks.txt)" 1000
run 0 check --acks log-acks.txt logbench
run 0 dump --json -n 3 logbench bench
check "terms are 1" equal "$(grep -c '"term":1,' out)" 3
(interactively "$program" log --duration 20s -t 4 --json - ram:64M >out 2>err) &
sleep 0.5
kill -INT $!
code=0
wait $! || code=$?
check "INT of a log" equal $code 130
check "INT of a log: JSON" equal "$(value out 'd["interrupted"]')" True

# ---- rows of TeraGen ----

run 0 teragen -n 10000 -m 1,2,92 -s 64K --verify ram:64M
check "a row per run with the checksum" equal "$(grep -cE '^ +(1|2|92) +10000 +64 KiB .* 21555350172850$' out)" 3
check "rows verified" equal "$(grep -c '10000 rows read back equal after a remount, 0 not' out)" 3
check "counters of a stream" grep -qE '^  mapper 1: rows=5000, chunks=8, write.call=10000, write.allTime=[0-9.]+, hsync.call=0, hsync.allTime=0.000, hflush.call=0, .*, close.call=1, close.allTime=' out
check "many mappers are told by their extremes" grep -q '^  slowest, mapper ' out
check "then and now" equal "$(grep -c '^Then, 2020' out)" 3
check "the sentence" grep -qE '^[0-9]+ mappers? writes? .* rows/s with the final sync; a write call takes .* ns on average. Checksum 21555350172850, as it must be\.$' out
run 0 teragen -n 400 --json - ram:64M
part=$(value out 'd["results"][0]["checksum"]')
run 0 teragen --start-row 400 -n 600 -m 2 --verify --json - ram:64M
check "parts add up" equal "$(value out "(d['results'][0]['checksum'] + $part) % 2**64")" 2173251765740
check "rows are not known by their number alone" test "$(value out '"as it must be" in str(d)')" = False
run 0 teragen --start-row 4294967290 -n 10 -m 3 --verify ram:64M
check "rows go on behind 2^32" grep -q '10 rows read back equal' out
mkdir rows
run 0 teragen -n 20000 -m 1,3 -s 64K,256K --sync none,end,5000 --verify --json - rows
check "teragen is JSON" json out
check "12 teragen results" equal "$(value out 'len(d["results"])')" 12
check "one checksum" equal "$(value out 'len({r["checksum"] for r in d["results"]})')" 1
check "two writes a row" equal "$(value out 'all(sum(s["write_calls"] for s in r["streams"]) == r["write_calls"] == 40000 == 2 * r["verified"] for r in d["results"])')" True
check "chunks follow from the bytes of each mapper" equal "$(value out 'all(s["chunks"] == -(-s["rows"] * 100 // r["chunk_bytes"]) for r in d["results"] for s in r["streams"] if r["sync"] in ("none", "end"))')" True
check "an hsync after every 5000 rows" equal "$(value out 'all(s["hsync_calls"] == s["rows"] // 5000 for r in d["results"] for s in r["streams"] if r["sync"] == 5000)')" True
check "nothing left of rows" empty rows
run 0 teragen -n 1000 -m 1,2 --csv - file:rows.img:64M
check "teragen CSV has as many fields as headings" equal "$(awk -F, '{ print NF }' out | sort -u | wc -l)" 1
check "checksum in CSV" equal "$(grep -c ',2173251765740$' out)" 2
check "the image of rows is removed again" test ! -e rows.img
run 0 teragen --dry-run -n 1000000 -m 2 rows
check "plan of rows" grep -q '^2 threads, rows of 100 B, segments of .* MiB: 1000000 rows, ' out
check "bytes of rows" grep -qx 'payload bytes to write: 100000000' out
check "dry run of rows touches nothing" empty rows
run 5 teragen -n 100000000 ram:64M
check "room for rows in the message" grep -qE '100000000 rows of 100 B and 2 mappers need .* GiB in segments of .*; ram:64M has room for 64 MiB' err
refuse '--chunk: 8388608 bytes; segments of 4194304 bytes hold chunks of up to' teragen -s 8M --segment 4M ram:256M
refuse '--sync: "each" is not known (none, end or 1 to' teragen --sync each ram:64M
refuse '--mappers: "0" is out of range' teragen -m 0 ram:64M
(interactively "$program" teragen -n 20000000 -m 2 --json - ram:4G >out 2>err) &
sleep 0.5
kill -INT $!
code=0
wait $! || code=$?
check "INT of rows" equal $code 130
check "INT of rows: JSON" equal "$(value out 'd["interrupted"]')" True

# ---- scratch volumes ----

mkdir scratch
run 0 write -n 1000 -t 4 --verify scratch
check "nothing left in the directory" empty scratch
run 0 write -n 1000 -t 2 --keep scratch
check "kept" test "$(ls scratch | wc -l)" -gt 2
run 0 check scratch
run 0 write -n 1000 -t 2 --keep scratch
mkdir foreign
echo mine >foreign/file
refuse 'must be empty or hold a scratch volume' write -n 10 --keep foreign
check "foreign file is as it was" equal "$(cat foreign/file)" mine
run 0 write -n 1000 -t 2 --verify file:image:64M
check "the image is removed again" test ! -e image
run 0 format file:image:64M
refuse image write -n 1000 file:image
run 0 info file:image
run 0 write -n 1000 -t 2 --destroy file:image
run 0 write -n 1000 -t 2 file:image
cp "$program" foreign/program
refuse program write -n 10 file:foreign/program
check "a foreign file is not overwritten" cmp -s "$program" foreign/program

# ---- the store ----

head -c 10000000 /dev/urandom >data
run 0 format store
refuse store format store
run 0 put store 3/7 data
run 0 put store 3/8 -s 1000 /dev/null
head -c 5000 data >piece
for i in 1 2 3 4 5; do sleep 0.02; head -c 1000 piece; done | "$program" put store 3/9 -s 1500 >out 2>err
check "put from a slow pipe" equal $? 0
run 1 put store 3/7 data
check "a block is not replaced" grep -q 'block 3/7 is there' err
run 0 put store 3/7 --overwrite piece
run 0 get store 3/7 copy
check "get gives what was put" cmp -s piece copy
run 0 put store 3/7 --overwrite data
"$program" get store 3/7 | cmp -s - data
check "get into a pipe" equal $? 0
run 0 get store 3/8 copy
check "an empty block" test ! -s copy
run 0 ls store 3
check "ls of a container" equal "$(cut -f1,3 out | tr '\t\n' ' ;')" "container/block bytes;3/7 10000000;3/8 0;3/9 5000;"
run 0 ls store 3/9
check "ls of a block" equal "$(tail -n 2 out | cut -f1,3 | tr '\t\n' ' ;')" "3/9/3 500;3/9/4 0;"
run 0 ls store
check "ls of all" equal "$(tail -n 1 out | cut -f1,2,4 | tr '\t' ' ')" "3 OPEN 10005000"
run 0 info --json store
check "info is JSON" json out
check "containers" equal "$(value out 'd["containers"]')" 1
check "what is in them" equal "$(value out 'd["container_list"][0]["id"], d["container_list"][0]["state"], d["container_list"][0]["bytes"]')" "(3, 'OPEN', 10005000)"
check "what the mount took" equal "$(value out 'd["mount_ns"] > 0, d["mount_read"]')" "(True, 'no checkpoint: all segments')"
run 2 info --json nowhere
check "info of nothing is JSON" json out
run 0 format --segment 128K file:many:64M
run 0 put file:many 1/1 -s 1000 piece
run 0 info file:many
check "no checkpoint of five chunks" grep -qx 'checkpoint_entries: 0' out
head -c 2000000 data >pieces
run 0 put file:many 1/2 -s 1000 pieces
run 0 info file:many
check "a checkpoint when it is worth it" grep -qx 'checkpoint_entries: 2007' out
check "the mount took it" grep -qx 'mount_checkpoint_entries: 2007' out
check "and says so" grep -qx 'mount_read: the checkpoint, and segments written since' out
run 0 check --deep file:many
check "a deep check" grep -qx '2007 chunks are where a mount without the checkpoint finds them, 0 differences' out
run 0 check --deep --json file:many
check "and as JSON" json out
check "nothing differs" equal "$(value out 'd["compared"], d["differences"], d["error"]')" "(2007, [], None)"
run 0 rm store 3/9
run 1 get store 3/9
check "deleted is said" grep -q deleted err
run 1 get store 9/9
check "not found is said" grep -q 'not found' err
run 0 check --json store
check "check is JSON" json out
check "nothing is damaged" equal "$(value out 'd["damage"]')" 0
run 0 rm store 3
run 1 rm store 3
run 0 format --segment 256K file:holes:16M
head -c 2000000 /dev/urandom >some
run 0 put -s 16K file:holes 1/1 some
run 0 put -s 16K file:holes 1/2 some
run 0 rm file:holes 1/1
run 0 compact file:holes
check "compact says what it did" grep -Eq '^[0-9.]+ [A-Za-z]+ were moved, .* became free; 0 of [0-9]+ deletes' out
run 0 info file:holes
check "what counts is there" grep -qx 'chunks: 124' out
check "no delete is remembered" grep -qx 'deletes_remembered: 0' out
check "nothing leaks" equal "$(awk '/^(live|dead|free|reserved)_bytes:/ { sum += $2 } END { print sum }' out)" 16777216
run 0 get file:holes 1/2 back
check "what was moved is the same" cmp -s some back

# ---- growth ----

for target in file:small grown; do
    run 0 format --segment 256K --size 8M $target
    run 0 put $target 1/1 some
    run 0 info $target
    before=$(awk '/^free_bytes/ { print $2 }' out)
    refuse 'the volume has 8388608 bytes and cannot shrink to 4194304' format --grow --size 4M $target
    refuse '--logs is of a new volume' format --grow --logs 7 $target
    run 0 format --grow --dry-run --size 24M $target
    run 0 info $target
    check "a dry run changes nothing: $target" grep -qx 'segment_count: 32' out
    run 0 format --grow --size 24M $target
    check "grew: $target" grep -qx "$target: grew from 32 segments, 8 MiB, to 96, 24 MiB" out
    run 0 info $target
    check "has all of it: $target" grep -qx 'segment_count: 96' out
    check "free: $target" test "$(awk '/^free_bytes/ { print $2 }' out)" -gt $((before + (15 << 20)))
    run 0 format --grow --size 24M $target
    check "nothing to do: $target" grep -qx "$target: has all of it already: 24 MiB" out
    run 0 format --grow --size 40M $target
    run 0 get $target 1/1 back
    check "the same after growth: $target" cmp -s some back
    for block in 2 3 4 5 6 7 8 9; do run 0 put $target 1/$block some; done
    run 0 check $target
done
refuse 'a directory grows to a size that must be given' format --grow grown
run 5 format --grow --size 900T grown
check "what is free is said" grep -Eq 'grown: growing by [0-9]+ bytes, and [0-9]+ are free' err
truncate -s 64M small
run 0 info file:small
check "a larger image is not used by itself" grep -qx 'segment_count: 160' out
run 0 format --grow file:small
run 0 info file:small
check "but when told" grep -qx 'segment_count: 256' out
truncate -s 48M small
run 0 get file:small 1/9 back
check "nothing is lost in what was cut off" cmp -s some back
check "both sizes are said" grep -q 'cut short: it has 50331648 bytes, the volume in it 67108864' err
run 4 put file:small 1/10 some
check "and again when it is refused" grep -q 'cut short: it has 50331648 bytes, the volume in it 67108864' err
rm -rf small grown

# ---- dump of segments ----

for target in file:segments segments.d; do
    run 0 format --segment 256K --size 8M $target
    run 0 put -s 64K $target 5/1 some
    "$program" append $target lines - <piece >out 2>err
    run 0 dump --segments $target
    check "a line for each segment" equal "$(wc -l <out)" 33
    check "two of the journal" equal "$(cut -f 2 out | grep -c journal)" 2
    check "chunks and a log" equal "$(awk -F '\t' 'NR > 1 && $4 > 0 { print $3 }' out | sort -u | paste -sd ,)" chunks,lines
    check "headers are good" equal "$(awk -F '\t' 'NR > 1 && $2 != "free" { print $7 }' out | sort -u)" good
    run 0 dump --segments --json $target
    check "segments are JSON" json out
    check "all of them" equal "$(value out 'len(d["segments"]), d["error"]')" "(32, None)"
    refuse '--hex is about entries' dump --segments --hex $target
    refuse 'not log lines' dump --segments $target lines
done
# Both sides of the journal lose a record behind their headers: no mount, and still something to see.
for at in 4200 266344; do printf XXXXXXXX | dd of=segments bs=1 seek=$at conv=notrunc 2>dd; done
run 4 info file:segments
run 4 dump --segments file:segments
check "why it does not mount" grep -q 'corrupt: journal' err
check "and its segments" equal "$(wc -l <out)" 33
check "by their headers" equal "$(awk -F '\t' '$7 == "good" && $2 == "unknown"' out | wc -l)" "$("$program" dump --segments segments.d | awk -F '\t' '$7 == "good"' | wc -l)"
run 4 dump --segments --json file:segments
check "JSON of what does not mount" json out
run 2 dump --segments --json file:nowhere
check "and of what is not there" json out
rm -rf segments segments.d

# ---- export and import ----

run 0 format --segment 1M --size 32M origin
run 0 format --segment 256K file:other:32M
run 0 put -s 64K origin 5/1 some
run 0 put -s 1000 origin 5/2 piece
run 0 export origin 5 five
check "an export to a file prints nothing" test ! -s out
run 0 import file:other five
check "import says what it made" grep -Eqx '5: [0-9]+ bytes in [0-9]+ chunks, durable' out
run 1 import file:other five
"$program" export origin 5 | "$program" import --as 6 file:other >out 2>err
check "through a pipe" equal $? 0
for container in 5 6; do
    run 0 get file:other $container/1 back
    check "the same in $container" cmp -s some back
done
head -c 700000 five >part
run 4 import --as 7 file:other part
check "a stream that ends too soon" grep -Eq 'part, byte [0-9]+ of the stream: corrupt' err
check "and what to do" grep -q 'container 7 holds a part; --resume goes on with it' err
run 0 import --as 7 --resume file:other five
run 0 get file:other 7/1 back
check "resumed" cmp -s some back
run 1 export origin 4 four
refuse 'is not CONTAINER' export origin 5/1
run 3 import file:other no-such-file
run 4 import --as 8 file:other /dev/null
"$program" export origin 5 >/dev/full 2>err
check "a full disk" equal $? 3
rm -rf origin other five part

# ---- scrub ----

run 0 scrub file:holes
check "scrub says that a pass is complete" grep -qx 'pass 1 complete: 0 damaged places in it' out
run 0 scrub --json file:holes
check "scrub is JSON" json out
check "and verified the chunks" equal "$(value out 'd["chunks"], d["damage"], d["passes"], d["interrupted"]')" "(124, 0, 2, False)"
run 0 info file:holes
check "info knows of two passes" grep -qx 'scrub_passes: 2' out
(interactively timeout -s INT 1 "$program" scrub --rate 300K file:holes >out 2>err)
check "an interrupted scrub says where it goes on" grep -Eqx 'interrupted; the next scrub goes on with segment [0-9]+ of 64' out
run 0 info file:holes
check "and remembers it" grep -Eqx 'scrub_segment: [1-9][0-9]*' out
run 0 scrub file:holes
run 0 ls file:holes 1/2
python3 - holes some <<'END'
import sys
image = open(sys.argv[1], 'r+b')
held = image.read()
wanted = open(sys.argv[2], 'rb').read()[16384 + 4000:16384 + 4100]
at = held.find(wanted)
while at >= 0: # where it was once, too
    image.seek(at)
    image.write(bytes([held[at] ^ 1]))
    at = held.find(wanted, at + 1)
END
run 4 scrub file:holes
check "a damaged chunk is named" grep -Eq 'segment [0-9]+ offset [0-9]+: .*: container 1 block 2 chunk 1$' out
run 4 scrub --json file:holes
check "and in JSON" equal "$(value out 'd["findings"][0]["container"], d["findings"][0]["block"], d["findings"][0]["chunk"], d["chunks_bad"], d["chunks"]')" "(1, 2, 1, 1, 123)"
run 0 ls file:holes
check "its container is unhealthy" grep -Eq '^1[[:space:]]UNHEALTHY' out
run 1 put file:holes 1/9 some
run 4 get file:holes 1/2 back
run 4 check file:holes
run 0 rm file:holes 1
run 2 scrub --json file:nowhere
check "what cannot be opened is JSON, too" json out
check "with the reason" equal "$(value out '"ENOENT" in d["error"]')" True
run 2 check --json file:nowhere
check "of check as well" json out
refuse 'out of range' scrub --rate 0 file:holes
refuse 'is out of range (1 to 100)' compact --percent 0 file:holes
rm -f some back holes
head -c 300000000 /dev/zero >large
run 0 format file:small:64M
run 5 put file:small 1/1 large
check "a failed put leaves nothing" equal "$("$program" ls file:small 1 | wc -l)" 1
run 0 put file:small 1/2 data
rm large

# ---- logs ----

# The first columns of out, a line each: "index term bytes;1 0 14;".
columns() { cut -f"$1" out | tr '\t\n' ' ;'; }

seq -f 'entry number %.0f' 1000 >lines
run 0 format --segment 64K -s 16M logs
run 0 ls logs
check "no log, no table" equal "$(wc -l <out)" 1
run 1 dump logs
check "no log is said" grep -q 'there is no log' err
run 0 append logs events lines
check "says what was appended" equal "$(cat out)" 'events: 1000 entries, 1 to 1000, durable'
run 0 dump --data logs
check "dump gives what was appended" cmp -s out lines
run 0 dump --from 41 -n 2 logs events
check "dump" equal "$(columns 1-3)" "index term bytes;41 0 15;42 0 15;"
check "place" grep -qE '^41.*	[0-9]+:[0-9]+$' out
run 0 dump --from 1001 logs events
check "nothing yet behind the last" equal "$(wc -l <out)" 1
run 1 dump --from 1002 logs events
check "the last is named" grep -q 'entry 1002 is not there, the last one is 1000' err
printf 'one\n\nthree\0bytes\nlast' | "$program" append --term 18446744073709551615 logs other >out 2>err
run 0 dump logs other
check "empty entries and cut lines" equal "$(columns 1-3)" \
    "index term bytes;1 18446744073709551615 3;2 18446744073709551615 0;3 18446744073709551615 11;4 18446744073709551615 4;"
run 0 dump --hex --from 3 -n 1 logs other
check "hex dump" grep -qxF '  00000000  74 68 72 65 65 00 62 79  74 65 73                 |three.bytes|' out
run 0 dump --json --hex --from 3 -n 1 logs other
check "an entry is JSON" json out
check "its fields" equal "$(value out 'd["index"], d["term"], d["bytes"], bytes.fromhex(d["hex"])')" \
    "(3, 18446744073709551615, 11, b'three\\x00bytes')"
run 2 dump logs
check "several logs are listed" grep -q 'which of its 2 logs? events, other' err
run 1 dump logs third
refuse '--data goes neither with' dump --data --hex logs
refuse '--follow cannot tell damage' dump --follow --salvage logs
head -c 65536 data >large
run 2 append --whole logs other large
check "too large an entry" grep -q 'entry 1 of the input is larger than the' err
head -c 60000 data >large
run 0 append --whole logs other large
run 0 dump --data --from 5 logs other
check "a large entry" equal "$(head -c -1 out | sha256sum)" "$(sha256sum <large)"
run 0 ls logs
check "ls of logs" equal "$(tail -n 3 out | cut -f1-4 | tr '\t\n' ' ;')" \
    "log first last durable;events 1 1000 1000;other 1 5 5;"
run 0 info --json logs
check "logs of info" equal "$(value out 'd["logs"], [(l["name"], l["last"]) for l in d["log_list"]]')" \
    "(2, [('events', 1000), ('other', 5)])"
run 0 check --json logs
check "check counts entries" equal "$(value out 'd["entries"], d["entries_bad"]')" "(1005, 0)"
refuse 'either CONTAINER[/BLOCK[/CHUNK]] or --log' rm logs
refuse '--before and --after are for' rm --before 5 logs 3
run 0 rm --log events --before 501 logs
run 1 dump --from 500 logs events
check "the first is named" grep -q 'entry 500 is purged, the first one is 501' err
run 0 rm --log events --after 900 logs
run 0 append logs events lines
check "goes on behind the last kept" equal "$(cat out)" 'events: 1000 entries, 901 to 1900, durable'
run 0 rm --log other logs
run 1 rm --log other logs
run 0 dump --data logs
check "what is left" equal "$(sha256sum <out)" "$(cat <(sed -n 501,900p lines) lines | sha256sum)"

# acks_of DIRECTORY: what a writer would have acknowledged of the log that is there.
acks_of() {
    "$program" dump --json "$1" bench |
        sed -nE 's/^\{"index":([0-9]+),.*"bytes":([0-9]+),.*"crc32c":"([0-9a-f]{8})".*/log \1 \2 \3/p'
}
run 0 append logs bench lines
acks_of logs >acks.txt
run 0 check --acks acks.txt logs
check "entries are audited" grep -qx '1000 acknowledged, 0 of them replaced later; 1000 present, 0 missing' out
run 0 rm --log bench --before 101 logs
run 0 check --acks acks.txt logs
check "purged is not missing" grep -qx '1000 acknowledged, 0 of them replaced later; 900 present, 100 purged, 0 missing' out
sed '$s/.*/log 1001 5 00000000/' acks.txt >ghost.txt
run 4 check --acks ghost.txt logs
check "a missing entry is named" grep -qx 'first missing: line 1000: log bench entry 1001 (5 bytes, 00000000): end' out
sed '500s/ [0-9a-f]*$/ 01234567/' acks.txt >ghost.txt
run 4 check --json --acks ghost.txt logs
check "another content" equal "$(value out 'd["acks"]["missing"], d["acks"]["first_missing"][:30]')" "(1, 'line 500: log bench entry 500 ')"
sed '7s/.*/log 0 5 00000000/' acks.txt >ghost.txt
run 2 check --acks ghost.txt logs
check "a bad line is named" grep -q 'line 7 is no acknowledgement' err

# One byte of one entry, then a whole segment.
cp -r logs damaged
place=$("$program" dump --from 1200 -n 1 logs events | tail -n 1 | cut -f4)
file=$(printf 'damaged/segment-%08d' "${place%:*}")
offset=$(grep -obUaF 'entry number 300' "$file" | head -n 1 | cut -d: -f1)
check "the place is that of the entry" test $((offset - ${place#*:})) -gt 0 -a $((offset - ${place#*:})) -lt 100
printf X | dd of="$file" bs=1 seek="$offset" conv=notrunc status=none
run 4 dump --data damaged events
check "up to the damage" equal "$(tail -n 1 out)" 'entry number 299'
check "the damage is named" grep -q "segment ${place%:*} offset ${place#*:}\b" err
run 4 dump --data --salvage damaged events
check "salvage goes on" equal "$(sed -n '700,$p' out | sha256sum)" "$(sed -n '301,$p' lines | sha256sum)"
check "what was passed over" grep -q "passed over: .*segment ${place%:*} offset ${place#*:}\b" err
run 4 check damaged
check "check names log and entry" grep -q ': log events entry 1200$' out
rm -r damaged
cp -r logs damaged
run 0 append damaged events lines # so that it is not the log's last segment
rm "$(printf 'damaged/segment-%08d' "${place%:*}")"
run 4 dump --data damaged events
run 4 dump --data --salvage damaged events
check "entries on both sides" equal "$(sed -n '1p;$p' out | tr '\n' ';')" "entry number 501;entry number 1000;"
run 4 check damaged
check "check names the segment" grep -q "^segment ${place%:*}: in use under epoch [0-9]*, its header is missing" out
check "check names the log and what it lost" grep -qE '^entries [0-9]+ to [0-9]+ are lost: .*: log events$' out
rm -r damaged
cp -r logs damaged
rm "$(printf 'damaged/segment-%08d' "${place%:*}")"
run 4 dump --data damaged events
check "newer entries may be lost" grep -q "entries from 901 on may be lost with segment ${place%:*}\b" err
check "nothing is printed as if it were all" test ! -s out
run 4 dump --data --salvage damaged events
check "what is left" equal "$(tail -n 1 out)" "entry number 900"
run 4 append damaged events lines
run 0 rm --log events damaged
rm -r damaged

# A log is followed while its writer holds the volume.
run 0 append logs live /dev/null
for i in $(seq 40); do echo "line $i"; sleep 0.05; done | "$program" append logs live >/dev/null 2>&1 &
sleep 0.3
run 2 dump logs live
check "a reader with a lock is kept away" grep -q 'in use' err
run 0 dump --data --follow -n 35 logs live
check "follow prints what appears" equal "$(sha256sum <out)" "$(seq -f 'line %.0f' 35 | sha256sum)"
wait $!
check "the writer did not notice" equal $? 0
interactively "$program" dump --data --follow --from 36 logs live >out 2>err &
sleep 1
"$program" append logs live <<<"one more" >/dev/null
check "a writer can open what is followed" equal $? 0
sleep 1
kill -INT $!
code=0
wait $! || code=$?
check "an interrupted follow" equal $code 130
check "followed to the end" equal "$(tail -n 1 out)" "one more"

# A log is truncated and appended to again between two looks of its follower: past the place, up to it, and not
# as far.
seq 10 | "$program" append --term 1 logs cut >/dev/null
interactively "$program" dump --follow logs cut >out 2>err &
sleep 1.2
"$program" rm --log cut --after 7 logs && seq 108 112 | "$program" append --term 2 logs cut >/dev/null
sleep 2.2
"$program" rm --log cut --after 10 logs && seq 2 | "$program" append --term 3 logs cut >/dev/null
sleep 2.2
"$program" rm --log cut --after 2 logs && seq 1 | "$program" append --term 4 logs cut >/dev/null
sleep 2.2
seq 2 | "$program" append --term 4 logs cut >/dev/null
sleep 1.2
kill -INT $!
code=0
wait $! || code=$?
check "a follow beside truncations" equal $code 130
check "replaced entries are printed again" equal "$(columns 1,2)" "index term;$(seq -f '%.0f 1' 10 | tr '\n' ';')$(
    seq -f '%.0f 2' 8 12 | tr '\n' ';')11 3;12 3;3 4;4 4;5 4;"
check "truncations are said" equal "$(cut -d: -f2- err | tr '\n' ';')" " cut: truncated to 7: entries up to 10 were printed; cut: truncated to 10: entries up to 12 were printed; cut: truncated to 2: entries up to 12 were printed;"

# ---- stdout and descriptors ----

code=0
"$program" write -n 100 -t 1 ram:64M >/dev/full 2>err || code=$?
check "full stdout is an I/O error" equal $code 3
code=0
"$program" ls store >/dev/full 2>err || code=$?
check "full stdout of ls" equal $code 3
code=0
"$program" write -n 100 -t 1 ram:64M >&- 2>err || code=$?
check "closed stdout is an I/O error" equal $code 3
"$program" put store 5/1 data <&- >&- 2>&-
"$program" write -n 1000 --keep scratch <&- >&- 2>&-
run 0 check store
run 0 check scratch
run 0 get store 5/1 copy
check "no text went into the store" cmp -s data copy
(set +o pipefail; "$program" get store 5/1 2>err | head -c 10 >/dev/null)
run 0 check store

# ---- interrupts ----

mkdir scratch2
for signal in INT TERM HUP; do
    case $signal in INT) expected=130 ;; TERM) expected=143 ;; *) expected=129 ;; esac
    for delay in 0.05 0.4; do
        interactively "$program" write --duration 20s -t 4 --json - scratch2 >out 2>err &
        sleep 0.1
        sleep $delay
        kill -$signal $!
        code=0
        wait $! || code=$?
        check "$signal after $delay s" equal $code $expected
        check "$signal: JSON" json out
        check "$signal: marked" equal "$(value out 'd["interrupted"]')" True
        check "$signal: nothing left" empty scratch2
    done
done 2>/dev/null

# ---- acknowledgements ----

rm -rf acks && mkdir acks
for round in 1 2 3; do
    "$program" write --sync each --keep --acks - -t 4 --duration 20s acks >acks.txt 2>err &
    for _ in $(seq 100); do [ "$(wc -l <acks.txt)" -gt $((round * 50)) ] && break; sleep 0.05; done
    kill -KILL $!
    wait $! 2>/dev/null
    check "some were acknowledged" test "$(wc -l <acks.txt)" -gt 10
    run 0 check --acks acks.txt acks
    check "none is missing" grep -q ' 0 missing' out
done 2>/dev/null
head -c -3 acks.txt >cut.txt
run 0 check --acks cut.txt acks
run 0 check --json --acks acks.txt acks
check "audit is JSON" json out
tail -n 1 acks.txt | awk '{ print $1, $2 + 1000000, $3, $4, $5 }' >ghost.txt
run 4 check --acks ghost.txt acks
check "first missing is named" grep -q '^first missing: line 1: container' out
awk 'NR == 5 { print "nonsense" } { print }' acks.txt >bad.txt
run 2 check --acks bad.txt acks
check "a bad line is named" grep -q 'line 5 is no acknowledgement' err
run 0 write --sync 16 --keep --acks acks2.txt -n 1000 -t 3 --json - acks
check "every operation is acknowledged" equal "$(sort -u acks2.txt | wc -l)" 1000
run 0 check --acks acks2.txt acks

# ---- progress ----

"$program" write --duration 2s -t 2 ram:64M >out 2>err
check "no carriage return off a terminal" equal "$(tr -cd '\r' <err | wc -c)" 0
check "at most one line per ten seconds" test "$(wc -l <err)" -le 1

# ---- qualify ----

# The verdict is the exit code; a busy or slow disk may be unfit, and what lies in memory always is.
"$program" qualify --budget 6s -t 1,2 --log-segment 64K,1M scratch >out 2>err
code=$?
check "a sentence" grep -qE '^[12] writer threads? reach(es)? [0-9]+ % \([0-9]+-[0-9]+ %\) of the best' out
check "a sentence on segments" grep -qE '^Log segments of (64 K|1 M)iB are ' out
check "a verdict" grep -qE '^Fit for a WAL: (yes|no)\. .*99 of 100 durable appends of 2300 B took up to' out
check "the verdict is the exit code" equal $code "$(grep -c '^Fit for a WAL: no' out)"
check "short runs are said" grep -q 'only .* s were measured, at least 30.0 s are wanted' out

"$program" qualify --budget 4s -t 1,2 --log-segment 1M --json - file:q.img:256M >out 2>err
code=$?
check "qualify is JSON" json out
check "answer" equal "$(value out 'd["answer"]["threads"] in (1, 2)')" True
check "answer on segments" equal "$(value out 'd["segment_answer"]["segment_bytes"]')" 1048576
check "answer on a WAL" equal "$(value out 'd["wal_answer"]["durable_latency_ns"]["count"] > 10')" True
check "its verdict is the exit code" equal $code "$(value out 'int(not d["wal_answer"]["pass"])')"
run 1 qualify --budget 2s -t 1 --log-segment 1M ram:64M
check "RAM is no place for a WAL" grep -q '^Fit for a WAL: no. Nothing on this target survives power loss' out

echo "$passed passed, $failed failed"
[ $failed = 0 ]
