#!/usr/bin/env bash
# Quantizes models of real size (random weights in the shape of the 12B drafter, 6.86 GB, and of a
# target of 8.8 GB) and prints size, time and peak memory beside what copying alone takes.
#
#   scripts/bench-quantize.sh FOLDER WITH 30 GB FREE [drafter|target]
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(realpath "${1:?which folder has 30 GB free?}")
for model in ${2:-drafter target}; do
	rm -rf "$place/$model-smaller"
	FIRESTEEL_LARGE=$model FIRESTEEL_LARGE_IN=$place go test -count=1 -timeout 60m -run '^TestLarge$' ./core/quantize -v | grep -E '^\{|FAIL|large_test'
	rm -rf "${place:?}/$model" "$place/$model-smaller"
done
