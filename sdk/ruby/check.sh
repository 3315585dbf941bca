#!/bin/sh
# Checks the Ruby SDK: syntax, lint, signatures, tests, conformance, and the gem.
# It installs Debian's packages of Ruby if they are missing and it runs as root.
#
#   sdk/ruby/check.sh [ARGUMENTS OF MINITEST…]
#
# ONWARD_BIN chooses the program `onward` (target/debug/onward).
# With ONWARD_TOOLS_ONLY it ends when the tools are installed.
set -eu
cd "$(dirname "$0")"

if ! command -v ruby > /dev/null || ! command -v rubocop > /dev/null; then
    if test "$(id -u)" != 0 || ! command -v apt-get > /dev/null; then
        echo "ruby or rubocop is missing; install Ruby 3.1 or newer with minitest, rbs and rubocop" >&2
        exit 1
    fi
    apt-get update -qq
    apt-get install -qq -y --no-install-recommends ruby ruby-minitest rubocop > /dev/null
fi

test -z "${ONWARD_TOOLS_ONLY:-}" || exit 0
rubocop --format quiet
ruby check_signatures.rb
ruby -w -e 'Dir["./test/*_test.rb"].sort.each { |path| require path }' -- "$@"

# The built gem holds every file, installs into an empty folder, and runs a handler from there.
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
gem build --silent --strict --output "$built/onward.gem" onward.gemspec
onward=${ONWARD_BIN:-../../target/debug/onward}
onward=$(cd "$(dirname "$onward")" && pwd)/$(basename "$onward")
ruby=$(pwd)
export GEM_HOME="$built/home" GEM_PATH="$built/home"
gem install --silent --local --no-document "$built/onward.gem"
cd "$built"
ruby -w -e '
require "onward/testing"
$LOADED_FEATURES.grep(%r{/onward/}).each { |path| path.start_with?(ENV["GEM_HOME"]) or abort("#{path} is not of the gem") }
app = Onward::Worker.new
app.handler("double") { |number| 2 * number }
Onward::Testing.run(app, "double", 21).value == 42 or abort("the handler of the gem failed")
'

# The gem of this platform holds the program: in an empty folder the quick start needs nothing else.
if test -f "$onward"; then
    began=$(date +%s)
    cp -r "$ruby" "$built/source"
    mkdir "$built/source/libexec"
    strip -o "$built/source/libexec/onward" "$onward"
    platform=$(ruby -e 'puts "#{Gem::Platform.local.cpu}-#{Gem::Platform.local.os}"')
    (cd "$built/source" && ONWARD_PLATFORM=$platform gem build --silent --strict --output "$built/platform.gem" onward.gemspec)
    export GEM_HOME="$built/platform" GEM_PATH="$built/platform"
    gem install --silent --local --no-document "$built/platform.gem"
    sed -n '/^```ruby$/,/^```$/p' "$ruby/README.md" | sed -n '2,/^```$/p' | sed '$d' > app.rb
    PATH=$GEM_HOME/bin:$PATH
    unset ONWARD_STORE
    onward work --quiet --app "ruby app.rb" &
    greeting=$(onward submit --kind greet --wait '{"name": "Ada"}')
    kill $!
    wait $! || true
    test "$greeting" = '"Hello, Ada"' || { echo "the quick start of the gem printed $greeting" >&2; exit 1; }
    echo "test package gem ... ok <$(($(date +%s) - began)).000s>"
fi
