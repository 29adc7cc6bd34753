# Read by the scripts of make check; the current directory is the top of the repository.
# A part is a function part_NAME that prints one line of what it found out and fails when it is not as it
# should be; what it prints besides is shown only then.

WARNINGS="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow -Wstrict-prototypes
    -Wmissing-prototypes -Wcast-align -Wvla -Wundef -Werror"
BUILD=${BUILD:-build}
IMPLEMENTATION="-DCHUNKBENCH_IMPLEMENTATION -x c chunkbench.h"

# The result of a part: printed behind its name.
say() {
    echo "$*" >"$work/result"
}

# A command that must succeed quietly; its output is shown when it does not.
quiet() {
    "$@" >"$work/output" 2>&1 || {
        local code=$?
        echo "exit $code: $*"
        head -n 40 "$work/output"
        return 1
    }
}

have() {
    command -v "$1" >/dev/null
}

# Ends a part that cannot run here. In CI, where everything was installed, that is a failure.
skip() {
    say "SKIPPED: $*"
    exit 77
}

need() {
    local tool=$1 package=$2
    have "$tool" || skip "$tool is missing; install $package"
}
