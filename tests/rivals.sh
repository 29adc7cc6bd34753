#!/bin/sh
# Makes sure that what `make ceilings` measures beside the library is there: fio and SQLite. Installs them as root
# or by sudo, or says what is missing; the program skips the rows of a rival that it does not find.
set -u
packages=
command -v fio >/dev/null || packages="$packages fio"
[ -n "$(find /lib /usr/lib /usr/local/lib -name libsqlite3.so.0 2>/dev/null | head -n 1)" ] ||
    packages="$packages libsqlite3-0"
[ -n "$packages" ] || exit 0
echo "missing:$packages: installing"
if [ "$(id -u)" = 0 ]; then
    as_root=
elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
    as_root="sudo -n"
else
    echo "cannot install them as this user; run: sudo apt-get install$packages" >&2
    exit 0
fi
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# shellcheck disable=SC2086
if ! { $as_root apt-get update && $as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y \
    --no-install-recommends $packages; } >"$log" 2>&1; then
    tail -n 3 "$log" >&2
    echo "installing$packages failed" >&2
fi
exit 0
