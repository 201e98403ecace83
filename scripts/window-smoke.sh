#!/usr/bin/env bash
# Opens the window on a display of its own with a fresh home folder and uses it with the keyboard:
#
#   - types a prompt, lets the built-in pair answer, and takes a picture before and after;
#   - ends it by force in the middle of an answer, and looks whether the next start offers that again;
#   - as often as told (6 times, if not told), starts it, types, and quits: in turn by closing the
#     window, with Ctrl-Q and with SIGTERM; in the middle of an answer, after it, and while the models
#     are still being loaded. The models then lie in a read-only folder with a difficult name.
#
# Fails when the window does not come or no answer appears, when quitting takes more than five
# seconds, does not end with status 0 or leaves a process or an unfinished file behind, when what the
# window remembers is lost or can't be read any more, when anything is written beside the models, and
# when Fyne reports work on the wrong thread.
#
#   scripts/window-smoke.sh PROGRAM [TIMES]
set -euo pipefail
cd "$(dirname "$0")/.."

program=$(realpath "${1:?which program?}")
times=${2:-6}
pictures=.deps/pictures
if [ -z "${FIRESTEEL_OWN_DISPLAY:-}" ]; then
	FIRESTEEL_OWN_DISPLAY=yes exec xvfb-run -a -s "-screen 0 1280x800x24" scripts/window-smoke.sh "$program" "$times"
fi

home=$(mktemp -d)
log=$home/output
kept=$home/.config/Firesteel
pid=""
models="" # the folder of the pair in use, "" for the one that comes with the app
finish() {
	[ -z "$pid" ] || kill -KILL "$pid" 2>/dev/null || true
	chmod -R u+w "$home" && rm -rf "$home"
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

# wait_for WHAT MILLISECONDS COMMAND…: until the command succeeds.
wait_for() {
	local what=$1 until=$(($(now) + $2))
	shift 2
	until "$@" >/dev/null 2>&1; do
		alive || fail "the program ended before $what"
		[ "$(now)" -lt $until ] || fail "waited for too long: $what"
		sleep 0.05
	done
}

shown() {
	window=$(xdotool search --onlyvisible --name '^Firesteel' 2>/dev/null | head -n 1)
	[ -n "$window" ]
}

# start: the window is on the screen and has the keyboard.
start() {
	mkdir -p "$home/tmp"
	began=$(now)
	env -u XDG_CONFIG_HOME -u XDG_CACHE_HOME -u XDG_DATA_HOME -u XDG_STATE_HOME \
		HOME="$home" TMPDIR="$home/tmp" LANG=en_US.UTF-8 FYNE_THEME=light LIBGL_ALWAYS_SOFTWARE=1 \
		setsid "$program" >"$log" 2>&1 </dev/null &
	pid=$!
	wait_for "the window comes" 20000 shown
	came=$(($(now) - began))
	# There is no window manager here to hand out the keyboard.
	xdotool windowfocus --sync "$window" 2>/dev/null || true
}

# What is being written is in a journal of the process's own until it has ended.
writes() { grep -q '"answer":"[^"]' "$kept/unfinished-$pid.json"; }
asked() { [ -e "$kept/unfinished-$pid.json" ]; }
answered() { ! asked; }

prompt="Tell me a story about Mia and a brave dog."
ask() {
	xdotool type --delay 8 "$prompt"
	xdotool key Return
	wait_for "the prompt is taken" 10000 asked
	grep -q "\"prompt\":\"$prompt\"" "$kept/unfinished-$pid.json" 2>/dev/null || ! asked || fail "what was typed is not what is asked"
}

# finish_answer: the answer has ended; one that goes on and on is stopped, as a person would.
finish_answer() {
	local until=$(($(now) + 20000))
	while ! answered && alive && [ "$(now)" -lt $until ]; do sleep 0.05; done
	answered || xdotool key Escape
	wait_for "the answer has ended" 20000 answered
}

# ended ROUTE: the program has been told to end, and does so cleanly.
ended() {
	local told status=0 left
	told=$(now)
	while alive; do
		[ $(($(now) - told)) -lt 5000 ] || fail "it did not end within 5 s of $1"
		sleep 0.02
	done
	took=$(($(now) - told))
	wait "$pid" || status=$?
	[ $status = 0 ] || fail "it ended with status $status after $1"
	# A compiler that MLX had begun may live for some seconds more.
	for _ in $(seq 200); do
		pgrep -s "$pid" >/dev/null || break
		sleep 0.1
	done
	! pgrep -as "$pid" || fail "a process is left after $1"
	! grep -q "Error in Fyne call thread" "$log" || fail "Fyne reports work on the wrong thread"
	# MLX keeps what it compiled for this processor in a folder of its own.
	left=$(find "$home/tmp" "$kept" "$home/.cache/Firesteel" -mindepth 1 -path "$home/tmp/mlx" -prune -o \
		\( -path "$home/tmp/*" -o -name '.?*' -o -name '*.new' -o -name '*.part*' \) -print)
	[ -z "$left" ] || fail "files are left after $1: $left"
	# What a person once set must have come through, and nothing been set aside as unreadable.
	! ls "$kept"/settings.json.* 2>/dev/null || fail "what was remembered can't be read after $1"
	[ -z "$models" ] || remembered || fail "what was remembered is lost after $1"
	pid=""
}

# remembered: the settings can be read and still hold what was put into them.
remembered() {
	python3 - "$kept/settings.json" "$models" <<'END'
import json, sys
kept = json.load(open(sys.argv[1], encoding="utf-8"))
folder = sys.argv[2]
assert kept["creativity"] == 0.9 and kept["width"] >= 640, kept
assert kept["target"] == folder + "/target" and kept["drafter"] == folder + "/drafter", kept
END
}

mkdir -p "$pictures"
start
printf 'window: on screen after %d ms\n' "$came"
sleep 4
import -window root "$pictures/first-start.png"
xdotool type --delay 30 "$prompt"
sleep 1
import -window root "$pictures/typed.png"
xdotool key Return
wait_for "the prompt is taken" 10000 asked
finish_answer
sleep 1
import -window root "$pictures/answered.png"
conversation=960x560+310+60
different() {
	compare -metric AE -fuzz 10% \( "$pictures/$1" -crop $conversation +repage \) \
		\( "$pictures/$2" -crop $conversation +repage \) null: 2>&1 || true
}
changed=$(different typed.png answered.png)
printf 'window: %s picture points changed where the answer belongs\n' "$changed"
[ "${changed%%.*}" -ge 4000 ] || fail "no answer appeared"
kill -TERM "$pid"
ended SIGTERM
printf 'window: ended cleanly %d ms after SIGTERM\n' "$took"

start
ask
wait_for "words come" 20000 writes
kill -KILL "$pid"
wait "$pid" 2>/dev/null || true
page=$kept/unfinished-$pid.json
grep -q '"answer":"[^"]' "$page" || fail "the answer that was cut off is not on the disk"
start
sleep 2
import -window root "$pictures/cut-off.png"
changed=$(different first-start.png cut-off.png)
printf 'window: killed in the middle of an answer; %s picture points differ from a first start where it is offered\n' "$changed"
[ "${changed%%.*}" -ge 2000 ] || fail "what was cut off is not offered"
rm "$page"
kill -TERM "$pid"
ended SIGTERM

# From here on the pair is a person's own, where nothing can be written and names are difficult.
models="$home/Modèle  100% #1 “🦊” it's"
cp -R models/demo/pair "$models"
chmod -R a-w "$models"
listed() { (cd "$models" && find . -exec stat -c '%n %s %Y %a' {} + | sort); }
before=$(listed)
python3 - "$kept/settings.json" "$models" <<'END'
import json, sys
folder = sys.argv[2]
json.dump({"creativity": 0.9, "target": folder + "/target", "drafter": folder + "/drafter"}, open(sys.argv[1], "w", encoding="utf-8"))
END

slowest=0
for i in $(seq 0 $((times - 1))); do
	start
	case $((i / 3 % 3)) in
	0) ask && wait_for "words come" 20000 writes ;;
	1) ask && finish_answer ;;
	2) xdotool type --delay 2 "$prompt" ;;
	esac
	case $((i % 3)) in
	0) route="closing the window" && python3 scripts/close-window.py "$window" ;;
	1) route="Ctrl-Q" && xdotool key ctrl+q ;;
	2) route="SIGTERM" && kill -TERM "$pid" ;;
	esac
	# While an answer is being written, a person is asked.
	if [ $((i / 3 % 3)) = 0 ] && [ "$route" != SIGTERM ]; then
		sleep 0.3
		xdotool key Tab Tab space 2>/dev/null || true
	fi
	ended "$route"
	[ $took -le $slowest ] || slowest=$took
	rm -f "$kept"/unfinished-*.json
done
[ "$(listed)" = "$before" ] || fail "the models' folder was changed"
[ "$times" = 0 ] || printf 'window: started and quit %d times, each cleanly and within %d ms\n' "$times" $slowest
