#!/bin/sh
# Checks the TypeScript SDK: types, lint, format, tests, conformance, and the packed package.
# It installs its tools into node_modules when package-lock.json has changed, and Node.js 20 if that is
# missing and it runs as root.
#
#   sdk/typescript/check.sh [ARGUMENTS OF node --test…]
#
# ONWARD_BIN is the program `onward` (target/debug/onward).
# With ONWARD_TOOLS_ONLY it ends when the tools are installed.
set -eu
cd "$(dirname "$0")"

if ! command -v npm > /dev/null; then
    if test "$(id -u)" != 0 || ! command -v apt-get > /dev/null; then
        echo "npm is missing; install Node.js 20 or newer" >&2
        exit 1
    fi
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends nodejs npm > /dev/null
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
npm run --silent compile
npm run --silent lint
if test -n "${ONWARD_TEST_LINES:-}"; then
    set -- --test-reporter=./build/tests/lines-reporter.js "$@"
fi
node --test "$@" build/tests/*.test.js

# The packages of this platform hold the program: in an empty folder the quick start needs nothing else.
onward=${ONWARD_BIN:-../../target/debug/onward}
if test -f "$onward"; then
    began=$(date +%s)
    built=$(mktemp -d)
    trap 'rm -rf "$built"' EXIT
    strip -o "$built/program" "$onward"
    platform=$(node -p '`${process.platform}-${process.arch}`')
    other=$(node package-program.mjs platform "$built/program" "$platform" "$built")
    main=$(node package-program.mjs main "$platform" "$built")
    printf '{"type": "module", "private": true}' > "$built/package.json"
    sed -n '/^```typescript$/,/^```$/p' README.md | sed -n '2,/^```$/p' | sed '$d' > "$built/app.mjs"
    zod=$(pwd)/node_modules/zod
    (
        cd "$built"
        npm install --offline --no-audit --no-fund --silent "$other" "$main"
        ln -s "$zod" node_modules/zod
        PATH=$built/node_modules/.bin:$PATH
        unset ONWARD_STORE
        onward work --quiet --app "node app.mjs" &
        greeting=$(onward submit --kind greet --wait '{"name": "Ada"}')
        kill $!
        wait $! || true
        test "$greeting" = '"Hello, Ada"' || { echo "the quick start of the package printed $greeting" >&2; exit 1; }
    )
    echo "test package npm ... ok <$(($(date +%s) - began)).000s>"
fi
