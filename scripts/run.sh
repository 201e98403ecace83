#!/usr/bin/env bash
# Opens the window that `make build` left, or says in words what to do where there is no screen.
set -eu
cd "$(dirname "$0")/.."

if [ "$(uname -s)" = Linux ] && [ -z "${DISPLAY:-}" ]; then
	cat >&2 <<'WORDS'

Firesteel is built, but there is no screen here to open its window on (DISPLAY is not set).
You can
  - start it from a desktop session:       make run
  - give it a display that nobody sees:    xvfb-run make run
  - use it without a window:               ./firesteel generate --prompt "Tell me a story about a brave dog."
  - see what else it does:                 ./firesteel --help

WORDS
	exit 1
fi
exec ./firesteel "$@"
