#!/bin/sh
# Checks the web page: its vendored libraries, its types, and the page in Chromium.
# It installs its tools into node_modules when package-lock.json has changed, and Node.js and Chromium if they are
# missing and it runs as root.
#
#   crates/onward-server/page-tests/check.sh [ARGUMENTS OF node --test…]
#
# ONWARD_BIN is the program `onward` (target/debug/onward), CHROMIUM_BIN the browser (/usr/bin/chromium).
# With ONWARD_TOOLS_ONLY it ends when the tools are installed.
set -eu
cd "$(dirname "$0")"

missing=
command -v npm > /dev/null || missing="$missing nodejs npm"
test -n "${CHROMIUM_BIN:-}" || command -v chromium > /dev/null || missing="$missing chromium"
if test -n "$missing"; then
    if test "$(id -u)" != 0 || ! command -v apt-get > /dev/null; then
        echo "missing:$missing; install them, or name the browser in CHROMIUM_BIN" >&2
        exit 1
    fi
    apt-get update -qq
    # shellcheck disable=SC2086
    apt-get install -qq -y --no-install-recommends $missing fonts-dejavu-core > /dev/null
fi
# Debian's Node.js may be older than 20. The package `node` of the npm registry contains the program.
if ! node -e 'process.exit(Number(process.versions.node.split(".")[0]) >= 20 ? 0 : 1)'; then
    folder=${XDG_CACHE_HOME:-$HOME/.cache}/onward/node-20
    npm install --prefix "$folder" --no-audit --no-fund --silent node@20
    PATH=$folder/node_modules/.bin:$PATH
    export PATH
fi
if ! test node_modules/.package-lock.json -nt package-lock.json; then
    npm ci --no-audit --no-fund --silent
    touch node_modules/.package-lock.json
fi
test -z "${ONWARD_TOOLS_ONLY:-}" || exit 0
# The vendored files are what was published: the lock file has the digests of the packages.
for pair in preact/dist/preact.mjs:preact.js preact/hooks/dist/hooks.mjs:hooks.js htm/dist/htm.mjs:htm.js \
    @preact/signals/dist/signals.mjs:signals.js @preact/signals-core/dist/signals-core.mjs:signals-core.js; do
    cmp "node_modules/${pair%%:*}" "../page/vendor/${pair##*:}"
done
npm run --silent types
if test -n "${ONWARD_TEST_LINES:-}"; then
    set -- --test-reporter=./support/lines-reporter.js "$@"
fi
# A test that fails may leave a server, which must not keep the check from its end.
node --test --test-force-exit --test-concurrency=2 "$@" tests/*.test.js
