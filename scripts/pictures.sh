#!/usr/bin/env bash
# Takes pictures of the window in every state that is worth a look (ui/window/scenes_test.go), light
# and dark, in a small window and with large text, on a display of its own. Models and jobs are
# played, so that each state comes and stays. The pictures are for people to look at.
#
# Fails when the window, or a dialog in it, does not fit the size asked for, and when Fyne reports
# work on the wrong thread.
#
#   scripts/pictures.sh FOLDER [PART]      PART: only the scenes with this in their names
set -euo pipefail
cd "$(dirname "$0")/.."

mkdir -p "${1:?where to?}"
folder=$(realpath "$1")
if [ -z "${tags+set}" ]; then
	tags=""
	[ "$(uname -s)" = Darwin ] || tags=x11
fi
program=$PWD/.deps/pictures.test
go test -c -tags "$tags pictures" -o "$program" ./ui/window

home=$(mktemp -d)
trap 'rm -rf "$home"' EXIT
mkdir -p "$home/.cache/fyne"
cd ui/window
status=0
env -u XDG_CONFIG_HOME -u XDG_CACHE_HOME HOME="$home" TMPDIR="$home" LANG=en_US.UTF-8 LIBGL_ALWAYS_SOFTWARE=1 \
	FIRESTEEL_PICTURES="$folder" FIRESTEEL_PICTURES_OF="${2:-}" \
	xvfb-run -a -s "-screen 0 2400x2000x24" "$program" -test.run '^TestPictures$' -test.timeout 60m >"$home/output" 2>&1 || status=$?
grep -v '^PASS$' "$home/output" | tail -n 60 || true
! grep -q "Error in Fyne call thread" "$home/output" || status=1
printf 'pictures: %d in %s\n' "$(find "$folder" -name '*.png' | wc -l)" "$folder"
exit $status
