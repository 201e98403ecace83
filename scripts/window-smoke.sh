#!/usr/bin/env bash
# Opens the window on a display of its own with a fresh home folder, types a prompt with the
# keyboard, lets the built-in pair answer, takes a picture before and after, and ends it.
# Fails when the window does not come, no answer appears, Fyne reports work on the wrong thread,
# or SIGTERM does not end it cleanly within five seconds.
#
#   scripts/window-smoke.sh PROGRAM [FOLDER FOR THE PICTURES]
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:?which program?}")
pictures=${2:-.deps/pictures}
if [ -z "${FIRESTEEL_OWN_DISPLAY:-}" ]; then
	FIRESTEEL_OWN_DISPLAY=yes exec xvfb-run -a -s "-screen 0 1280x800x24" scripts/window-smoke.sh "$program" "$pictures"
fi

home=$(mktemp -d)
log=$home/output
pid=""
finish() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	rm -rf "$home"
}
trap finish EXIT
fail() {
	printf 'window: %s\n' "$*"
	import -window root "$pictures/failed.png" 2>/dev/null || true
	[ ! -s "$log" ] || { echo "It printed:" && tail -n 40 "$log"; }
	exit 1
}
now() { date +%s%3N; }
alive() { kill -0 "$pid" 2>/dev/null; }

mkdir -p "$pictures"
started=$(now)
env -u XDG_CONFIG_HOME -u XDG_CACHE_HOME -u XDG_DATA_HOME -u XDG_STATE_HOME \
	HOME="$home" LANG=en_US.UTF-8 FYNE_THEME=light LIBGL_ALWAYS_SOFTWARE=1 \
	"$program" >"$log" 2>&1 </dev/null &
pid=$!

until window=$(xdotool search --onlyvisible --name '^Firesteel' 2>/dev/null | head -n 1) && [ -n "$window" ]; do
	alive || fail "the program ended before its window came"
	[ $(($(now) - started)) -lt 20000 ] || fail "no window came within 20 s"
	sleep 0.05
done
printf 'window: on screen after %d ms\n' $(($(now) - started))

# There is no window manager here to hand out the keyboard.
sleep 4
xdotool windowfocus --sync "$window" 2>/dev/null || true
import -window root "$pictures/first-start.png"
xdotool type --delay 30 "Tell me a story about Mia and a brave dog."
sleep 1
import -window root "$pictures/typed.png"
xdotool key Return

# The answer is done when the conversation's part of the picture stays the same for two seconds.
conversation=960x560+310+60
before="" same=0
for _ in $(seq 40); do
	sleep 1
	alive || fail "the program ended while it was writing"
	now_seen=$(import -window root -crop $conversation +repage rgb:- | cksum)
	if [ "$now_seen" = "$before" ]; then same=$((same + 1)); else same=0; fi
	before=$now_seen
	[ $same -lt 2 ] || break
done
import -window root "$pictures/answered.png"
changed=$(compare -metric AE -fuzz 10% \( "$pictures/typed.png" -crop $conversation +repage \) \
	\( "$pictures/answered.png" -crop $conversation +repage \) null: 2>&1 || true)
printf 'window: %s picture points changed where the answer belongs\n' "$changed"
[ "${changed%%.*}" -ge 4000 ] || fail "no answer appeared"

asked=$(now)
kill -TERM "$pid"
while alive; do
	[ $(($(now) - asked)) -lt 5000 ] || fail "SIGTERM did not end it within 5 s"
	sleep 0.05
done
status=0
wait "$pid" || status=$?
pid=""
[ $status = 0 ] || fail "it ended with status $status"
if grep -q "Error in Fyne call thread" "$log"; then fail "Fyne reports work on the wrong thread"; fi
printf 'window: ended cleanly %d ms after SIGTERM\n' $(($(now) - asked))
