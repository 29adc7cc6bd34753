#!/bin/sh
# Makes sure that the Criterion library is there: installs it as root or by sudo, or says what is missing.
set -eu

found() {
    echo '#include <criterion/criterion.h>' | ${CC:-gcc} -E -x c - >/dev/null 2>&1
}

found && exit 0
echo "Criterion is missing: installing libcriterion-dev"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "cannot install it as this user; run: sudo apt-get install libcriterion-dev" >&2
    exit 1
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
if ! { $as_root apt-get update && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y libcriterion-dev; } \
    >"$log" 2>&1 || ! found; then
    cat "$log" >&2
    echo "installing libcriterion-dev failed; the tests need it" >&2
    exit 1
fi
