#!/usr/bin/env bash
# Type-checks the macOS side, on Linux with zig as the C compiler. The window is left out: its
# macOS files need Apple's own headers, so nothing but drawing belongs there.
set -euo pipefail
cd "$(dirname "$0")/.."

packages=()
for room in mlxbind models core ui/words ui/command; do
	[ ! -d $room ] || packages+=("./$room/...")
done

if [ "$(uname -s)" = Darwin ]; then
	scripts/setup.sh
	go vet ./...
else
	scripts/setup.sh zig
	CC="'$PWD/.deps/zig/ziglang/zig' cc -target aarch64-macos" CGO_ENABLED=1 GOOS=darwin GOARCH=arm64 \
		go vet "${packages[@]}"
fi
echo "check-darwin: ${packages[*]} type-check for macOS on Apple silicon"
