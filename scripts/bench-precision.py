#!/usr/bin/env python3
"""Quantizes the built-in target and its drafter in several ways, has each write the answers to the
reference prompts, and prints a table: size, memory, words a check, speed.

    scripts/bench-precision.py [--tokens 100] [--prompts 12]

One prompt is answered by all of them before the next, so that what else the machine does falls on
all alike. Memory is MLX's peak with both models loaded, in float32 where nothing is packed."""

import argparse
import json
import pathlib
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAIR = ROOT / "models" / "demo" / "pair"
WAYS = [("3-bit", ["--bits", "3"]), ("4-bit", ["--bits", "4"]), ("recommended", ["--recipe", "recommended"]),
        ("6-bit", ["--bits", "6"]), ("8-bit", ["--bits", "8"])]


def firesteel(*args):
    done = subprocess.run([ROOT / "firesteel", *map(str, args)], check=True, capture_output=True, text=True)
    return json.loads(done.stdout.strip().splitlines()[-1])


def megabytes(folder):
    return sum(f.stat().st_size for f in folder.iterdir() if f.suffix == ".safetensors") / 1e6


def alike(one, other):
    """How many tokens two texts begin with in common."""
    n = 0
    while n < min(len(one), len(other)) and one[n] == other[n]:
        n += 1
    return n


def main():
    flags = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    flags.add_argument("--tokens", type=int, default=100)
    flags.add_argument("--prompts", type=int, default=12)
    asked = flags.parse_args()
    recorded = json.loads((ROOT / "models" / "testdata" / "demo" / "demo-pair.json").read_text())
    prompts = [r["prompt"] for r in recorded][: asked.prompts]
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        pairs = {("both", "full"): (PAIR / "target", PAIR / "drafter")}
        for part in ("drafter", "target"):
            for name, how in WAYS:
                made = place / f"{part}-{name}"
                firesteel("quantize", PAIR / part, made, *how, "--json")
                pairs[part, name] = (PAIR / "target", made) if part == "drafter" else (made, PAIR / "drafter")
        runs = {key: [] for key in pairs}
        for prompt in prompts:
            for key, (target, drafter) in pairs.items():
                runs[key].append(firesteel("generate", "--target", target, "--drafter", drafter, "--prompt", prompt,
                                           "--max-tokens", asked.tokens, "--temperature", 0, "--json"))
        full = runs["both", "full"]
        print(f"{len(prompts)} prompts, up to {asked.tokens} tokens each, temperature 0\n")
        print("| packed | how | size, MB | peak memory, MB | words a check | tokens a second | same first tokens |")
        print("|---|---|---|---|---|---|---|")
        for key, (target, drafter) in pairs.items():
            rounds = sum(r["rounds"] for r in runs[key])
            tau = sum(r["accepted"] + r["rounds"] for r in runs[key]) / rounds
            speed = statistics.median(r["tokens_per_second"] for r in runs[key])
            peak = max(r["peak_memory_bytes"] for r in runs[key]) / 1e6
            same = statistics.mean(alike(r["token_ids"], f["token_ids"]) for r, f in zip(runs[key], full))
            size = {"drafter": f"{megabytes(drafter):.1f}", "target": f"{megabytes(target):.1f}",
                    "both": f"{megabytes(target):.1f} + {megabytes(drafter):.1f}"}[key[0]]
            print(f"| {key[0]} | {key[1]} | {size} | {peak:.0f} | {tau:.2f} | {speed:.0f} | {same:.0f} |")


if __name__ == "__main__":
    main()
