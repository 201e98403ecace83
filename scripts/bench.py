"""Speed of Firesteel beside its Python peers on the demo pair; called by bench.sh.

Every way of writing takes each prompt in turn, so that a slow spell of the machine falls on
all alike. What counts is tokens after the first over the time from the first to the last,
greedy, up to 160 tokens; the texts are compared with the recorded ones. The last line of
standard output is one JSON object.
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAIR = ROOT / "models" / "demo" / "pair"
TOKENS = 160


def peers():
    """A child process that has the BLAS preloaded and does what it is told, a line at a time."""
    env = {**os.environ, "LD_PRELOAD": os.environ["BENCH_BLAS"]}
    return subprocess.Popen([sys.executable, __file__, "--serve"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True, env=env)


def widened(work):
    """The pair as the peer opens it: float32, the target wrapped as a unified model."""
    import mlx.core as mx

    target, drafter = work / "target", work / "drafter"
    shutil.rmtree(work, ignore_errors=True)
    for folder in (target, drafter):
        folder.mkdir(parents=True)
    for name, prefix in (("target", "language_model."), ("drafter", "")):
        tensors = {}
        for file in sorted((PAIR / name).glob("*.safetensors")):
            tensors |= {prefix + k: v.astype(mx.float32) for k, v in mx.load(str(file)).items()}
        mx.save_safetensors(str(work / name / "model.safetensors"), tensors, {"format": "mlx"})
    for file in PAIR.joinpath("target").glob("*.json*"):
        if "safetensors" not in file.name:
            shutil.copy(file, target)
    shutil.copy(PAIR / "target" / "chat_template.jinja", target)
    shutil.copy(PAIR / "drafter" / "config.json", drafter)
    text = json.loads((PAIR / "target" / "config.json").read_text())
    absent = text["vocab_size"]  # an id that no text has
    (target / "config.json").write_text(json.dumps({
        "architectures": ["Gemma4UnifiedForConditionalGeneration"], "model_type": "gemma4_unified",
        "text_config": {**text, "model_type": "gemma4_unified_text", "dtype": "float32"},
        "vision_config": None, "audio_config": None, "dtype": "float32",
        "image_token_id": absent, "audio_token_id": absent + 1, "video_token_id": absent + 2,
        **{k: text[k] for k in ("vocab_size", "hidden_size", "eos_token_id", "pad_token_id", "tie_word_embeddings")},
    }))
    return target, drafter


def serve():
    import mlx.core as mx

    mx.set_default_device(mx.cpu)
    target, drafter = widened(ROOT / ".deps" / "bench" / "pair")
    from mlx_dspark import load_drafter, load_target, speculative_generate
    from mlx_dspark.load import DRAFTER_WINDOW_DEFAULT
    from mlx_lm.generate import generate_step
    from mlx_lm.utils import load

    peer, tokenizer = load_target(str(target), require_tap=True)
    guesser, _ = load_drafter(str(drafter), quantize=False)
    guesser.ctx_window = DRAFTER_WINDOW_DEFAULT
    plain, _ = load(str(PAIR / "target"))
    plain.set_dtype(mx.float32)
    mx.eval(plain.parameters())
    print("ready", flush=True)
    for line in sys.stdin:
        way, prompt, wanted = json.loads(line)
        if way == "mlx-lm":
            out, first = [], 0.0
            for token, _ in generate_step(mx.array(prompt), plain, max_tokens=wanted):
                first = first or time.perf_counter()
                out.append(int(token))
            speed = (len(out) - 1) / (time.perf_counter() - first)
        else:
            r = speculative_generate(peer, tokenizer, guesser, prompt_ids=prompt, max_new_tokens=TOKENS,
                                     max_draft_tokens=int(way.split()[-1]), lookup_drafts=False, temperature=0.0)
            out, speed = list(r.token_ids), (r.num_tokens - 1) / (r.seconds - r.prefill_seconds)
        print(json.dumps([speed, out]), flush=True)


def own():
    """Firesteel in one process, answering a line at a time like the peers."""
    subprocess.run(["go", "test", "-c", "-o", ".deps/bench.test", "./core/engine"], cwd=ROOT, check=True)
    return subprocess.Popen([str(ROOT / ".deps" / "bench.test"), "-test.run", "TestServe", "-test.timeout", "0"],
                            cwd=ROOT / "core" / "engine", env={**os.environ, "FIRESTEEL_SERVE": "1"},
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ask(child, line):
    child.stdin.write(json.dumps(line) + "\n")
    child.stdin.flush()
    return json.loads(child.stdout.readline())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prompts", type=int, default=6)
    parser.add_argument("--repeat", type=int, default=3)
    options = parser.parse_args()
    prompts = json.loads((ROOT / "models" / "testdata" / "demo" / "demo-pair.json").read_text())[: options.prompts]
    child, mine = peers(), own()
    for process in (child, mine):
        assert process.stdout.readline().strip() == "ready"

    def theirs(way, p):
        return ask(child, [way, p["prompt_ids"], len(p["greedy_ids"][:TOKENS])])  # mlx-lm's step knows no stop tokens

    def ours(p, gamma):
        return ask(mine, {"Prompt": p["prompt"], "Gamma": gamma, "Limit": TOKENS})

    ways = {"Firesteel, plain": lambda p: ours(p, 0)}
    for gamma in (3, 5, 7):
        ways[f"Firesteel, γ {gamma}"] = lambda p, g=gamma: ours(p, g)
    ways["mlx-lm"] = lambda p: theirs("mlx-lm", p)
    for cap in (4, 5, 7):
        ways[f"mlx-dspark, {cap}"] = lambda p, c=cap: theirs(f"mlx-dspark {c}", p)

    speeds, equal = {w: [] for w in ways}, dict.fromkeys(ways, 0)
    for turn in range(options.repeat + 1):  # the first turn warms up
        for i, p in enumerate(prompts):
            order = list(ways)
            shift = (turn * len(prompts) + i) % len(order)
            for way in order[shift:] + order[:shift]:
                speed, ids = ways[way](p)
                if turn:
                    speeds[way].append(speed)
                    equal[way] += ids[:TOKENS] == [t for t in p["greedy_ids"][:TOKENS]][: len(ids[:TOKENS])]
        print(f"turn {turn} of {options.repeat}", file=sys.stderr)
    for process in (child, mine):
        process.stdin.close()
    runs = options.repeat * len(prompts)
    medians = {w: statistics.median(s) for w, s in speeds.items()}
    plain = medians["Firesteel, plain"]
    print(f"\n| | tokens a second (median of {runs}) | ÷ our plain | texts equal |\n|---|---|---|---|")
    for way, speed in medians.items():
        print(f"| {way} | {speed:.0f} | {speed / plain:.2f} | {equal[way]}/{runs} |")

    def best(name):
        return max((w for w in medians if w.startswith(name) and not w.endswith("plain")), key=medians.get)

    def ratio(a, b):
        return round(statistics.median(x / y for x, y in zip(speeds[a], speeds[b])), 3)

    drafting, peer = best("Firesteel"), best("mlx-dspark")
    print(json.dumps({
        "plain_over_mlx_lm": ratio("Firesteel, plain", "mlx-lm"), "drafting_over_plain": ratio(drafting, "Firesteel, plain"),
        "drafting_over_mlx_dspark": ratio(drafting, peer), "best": drafting, "peer_best": peer,
        "medians": {w: round(s, 1) for w, s in medians.items()},
    }))


serve() if "--serve" in sys.argv else main()
