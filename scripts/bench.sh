#!/usr/bin/env bash
# Measures Firesteel beside mlx-lm and mlx-dspark on the demo pair, in float32 with the same
# OpenBLAS, interleaved in one run, and prints a table. Needs, the first time, the network for the two
# Python packages.
#
#   scripts/bench.sh [--prompts N] [--repeat N]
set -euo pipefail
cd "$(dirname "$0")/.."

home=.deps/bench
if [ ! -f "$home/ready" ]; then
	rm -rf "$home"
	python3 -m venv "$home"
	"$home/bin/pip" install -q --disable-pip-version-check "mlx[cpu]==0.32.2" mlx-lm==0.32.2 mlx-dspark==0.20.3
	touch "$home/ready"
fi
blas=$(ldconfig -p | sed -n 's/.*libopenblas\.so\.0 .*=> //p' | head -n 1)
[ -n "$blas" ] || {
	echo "bench: libopenblas.so.0 is missing; make setup installs it" >&2
	exit 1
}
HF_HUB_OFFLINE=1 TRANSFORMERS_VERBOSITY=error BENCH_BLAS="$blas" "$home/bin/python" scripts/bench.py "$@"
