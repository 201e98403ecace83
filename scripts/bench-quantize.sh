#!/usr/bin/env bash
# Quantizes models of real size to 4 bits in groups of 64 and prints size, time and peak memory beside
# what copying and the arithmetic alone take. Their weights are random, their shapes those of the
# published drafter for Gemma 4 12B (6.86 GB) and of the target Qwen3-4B (8.04 GB, in three files). Of
# the smaller target it also shows what it holds, and has it write a few words, which mean nothing.
#
#   scripts/bench-quantize.sh FOLDER WITH 21 GB FREE [drafter|target]
set -euo pipefail
cd "$(dirname "$0")/.."
place=$(realpath "${1:?which folder has 21 GB free?}")
for model in ${2:-drafter target}; do
	rm -rf "$place/$model-smaller"
	FIRESTEEL_LARGE=$model FIRESTEEL_LARGE_IN=$place go test -count=1 -timeout 60m -run '^TestLarge$' ./core/quantize -v | grep -E '^\{|FAIL|large_test'
	if [ "$model" = target ]; then
		rm -rf "${place:?}/target"
		go build -tags headless -o "$place/firesteel" .
		"$place/firesteel" inspect "$place/target-smaller"
		"$place/firesteel" generate --target "$place/target-smaller" --prompt "Once" --max-tokens 4
		rm "$place/firesteel"
	fi
	rm -rf "${place:?}/$model" "$place/$model-smaller"
done
