#!/usr/bin/env bash
# Runs every test. Packages that work with MLX run as they are; those that do not reach it, and
# those of ui, which only link it, run with the race detector. Which is which is asked of go.
#
#   scripts/test.sh [race] [flags for go test]      race: only the pure Go packages
#   FIRESTEEL_LONG=1 scripts/test.sh                the long grids as well
set -euo pipefail
cd "$(dirname "$0")/.."

only=""
if [ "${1:-}" = race ]; then
	only=race
	shift
fi
if [ -z "${tags+set}" ]; then
	tags=""
	[ "$(uname -s)" = Darwin ] || tags=x11
fi

# One line for each package that has tests: its path, then all that its test program links.
listed=$(go list -test -tags "$tags" -f '{{.ImportPath}} {{join .Deps " "}} ' ./...)
listed=$(grep '^[^ ]*\.test ' <<<"$listed" || true)
[ -n "$listed" ] || {
	echo "there is no test here" >&2
	exit 1
}
native=$(grep ' firesteel/mlxbind[ ]' <<<"$listed" | sed 's/\.test .*//' | grep -v '^firesteel/ui' || true)
pure=$( (grep -v ' firesteel/mlxbind[ ]' <<<"$listed" || true; grep '^firesteel/ui' <<<"$listed" || true) | sed 's/\.test .*//' | sort -u)

# Packages are tested beside each other, so each takes one core.
export OPENBLAS_NUM_THREADS=${OPENBLAS_NUM_THREADS:-1}

status=0
# shellcheck disable=SC2086 # lists of packages
if [ -n "$pure" ]; then go test -race -tags "$tags" "$@" $pure || status=1; fi
# shellcheck disable=SC2086
if [ -z "$only" ] && [ -n "$native" ]; then go test -tags "$tags" "$@" $native || status=1; fi
exit $status
