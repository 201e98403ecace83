#!/usr/bin/env bash
# Collects the licences of everything that ships in the program, for Linux and for macOS, into the
# one file that the window shows them from. To be run after a dependency was added or updated, on
# either system; the result is the same.
#
#   Go modules            those that the program is compiled from; texts from Go's module cache
#   MLX                   its own text, and the notices in its headers, from what set-up fetched
#   the rest that is      from scripts/licences, for nothing that is fetched carries it. Each file is
#   in MLX and mlx-c      named after the version that the pinned MLX is built with
#
# The file is plain text. A line "== name@version" begins an entry; lines that follow one another name
# those that share the text below them.
set -euo pipefail
cd "$(dirname "$0")/.."
export LC_ALL=C

result=ui/window/licences/licences.txt
wheel=.deps/wheel
part=$(mktemp -d)
trap 'rm -rf "$part"' EXIT
fail() {
	printf 'licences: %s\n' "$*" >&2
	exit 1
}

# pinned NAME: a version that set-up fetches.
pinned() { sed -n "s/^$1=//p" scripts/setup.sh; }

# add NAME FILE…: an entry whose text is in the files, one after the other.
add() {
	local name=$1 text sum
	shift
	text=$(awk 'FNR == 1 && NR > 1 { print "\n" } { sub(/[ \t\r]+$/, ""); if (seen || $0 != "") { print; seen = 1 } }' "$@")
	[ -n "$text" ] || fail "the licence of $name is empty"
	! grep -q '^== ' <<<"$text" || fail "the licence of $name has a line that looks like the beginning of an entry"
	sum=$(cksum <<<"$text" | tr ' ' -)
	if [ ! -f "$part/$sum.text" ]; then
		printf '%s\n' "$text" >"$part/$sum.text"
		printf '%s\n' "$sum" >>"$part/order"
	fi
	printf '== %s\n' "$name" >>"$part/$sum.names"
}

# notice FILE: the comments in a header that speak of a copyright other than Apple's.
notice() {
	awk '
		function flush() { if (theirs) { printf "%s", block } block = ""; theirs = 0 }
		!inside && /^\/\*/ { flush(); inside = 1 }
		inside || /^\/\// {
			line = $0
			sub(/^(\/\/ ?|\/\*+ ?)/, "", line)
			sub(/\*\/$/, "", line)
			block = block line "\n"
			if (tolower(line) ~ /copyright.*[0-9][0-9][0-9][0-9]/ && line !~ /Apple/) { theirs = 1 }
			if (inside && /\*\//) { inside = 0 }
			next
		}
		{ flush() }' "$1"
}

# modules SYSTEM ARCHITECTURE TAGS: path, version and folder of what the program is compiled from.
modules() {
	CGO_ENABLED=1 GOOS=$1 GOARCH=$2 go list -tags "$3" -deps \
		-f '{{with .Module}}{{if not .Main}}{{.Path}}{{"\t"}}{{.Version}}{{"\t"}}{{.Dir}}{{end}}{{end}}' .
}

# title MODULE FILE VERSION: what to call a file that lies deeper in a module, with its version.
title() {
	case $1/$2 in
	fyne.io/fyne/v2/theme/font/LICENSE.txt) echo "Noto Sans (in Fyne)" ;;
	fyne.io/fyne/v2/theme/font/LICENSE_Inter.txt) echo "Inter (in Fyne)" ;;
	fyne.io/fyne/v2/theme/font/LICENSE_DejaVu-Powerline.txt) echo "DejaVu Sans Mono (in Fyne)" ;;
	fyne.io/fyne/v2/theme/font/LICENSE_EmojiOneColor.txt) echo "EmojiOne Color (in Fyne)" ;;
	github.com/go-gl/glfw/v3.4/glfw/glfw/*) echo "GLFW@3.4" ;;
	*/LICENSE) echo "$1/${2%/*}@$3" ;;
	*) echo "$1/$2@$3" ;;
	esac
}

add "Firesteel" LICENSE
add "Firesteel Demo and its drafter" LICENSE

mlx=$(pinned mlx_version)
text=$(ls $wheel/mlx_*-"$mlx".dist-info/licenses/LICENSE) || fail "MLX $mlx is not here; \`make setup\` fetches it"
add "MLX@$mlx" "$text"
(cd $wheel/mlx/include/mlx && grep -rliE 'copyright.*[0-9]{4}' . | sort) | while read -r header; do
	notice "$wheel/mlx/include/mlx/$header" >"$part/notice"
	[ ! -s "$part/notice" ] || add "MLX/${header#./}@$mlx" "$part/notice"
done
[ -f "scripts/licences/mlx-c@$(pinned crate_version).txt" ] || fail "scripts/licences has another version of mlx-c than set-up fetches"
for text in scripts/licences/*.txt; do
	name=${text##*/}
	add "${name%.txt}" "$text"
done

{ modules linux amd64 x11 && modules darwin arm64 ""; } | sort -u >"$part/modules"
while IFS=$'\t' read -r path version folder; do
	texts=$(cd "$folder" && find . -type f \( -iname '*licen[cs]e*' -o -iname 'copying*' -o -iname 'notice*' -o -iname 'patents*' -o -iname 'authors*' \) \
		! -name '*.go' ! -path '*/testdata/*' ! -path './cmd/*' | sort)
	own=()
	while read -r text; do
		text=${text#./}
		case $text in
		*/*) add "$(title "$path" "$text" "$version")" "$folder/$text" ;;
		?*) own+=("$folder/$text") ;;
		esac
	done <<<"$texts"
	[ ${#own[@]} -gt 0 ] || fail "$path has no licence"
	add "$path@$version" "${own[@]}"
	# The project of Go licenses all its parts alike, and a Go from a package manager may lack the file.
	[ "$path" != golang.org/x/sys ] || add "Go" "${own[@]}"
done <"$part/modules"

while read -r sum; do
	sort "$part/$sum.names"
	echo
	cat "$part/$sum.text"
	echo
done <"$part/order" >"$part/result"
mkdir -p "${result%/*}"
mv "$part/result" $result
printf 'licences: %d entries, %d texts\n' "$(grep -c '^== ' $result)" "$(wc -l <"$part/order")"
