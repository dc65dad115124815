"""Names for benchmarks/projects.py that nobody thought of: drawn from the whole index, kept where a release looks like a project.

    python benchmarks/project_names.py --seed 5619 --count 7000 --output candidates.index.2.txt
    python benchmarks/project_names.py --seed 5620 --count 8000 --output candidates.index.3.txt
    python benchmarks/project_names.py --seed 5621 --count 9000 --output candidates.index.4.txt
    python benchmarks/project_names.py --seed 5622 --count 8000 --narrow --output candidates.index.5.txt

Of all names with a word of the field in them, `--count` are asked for in an order drawn by seed. Kept are those whose newest release has
100 kB (400 kB in the lists 2 to 4) to 60 MB, requires torch (where a wheel says so), and has 30 Python files (60; where a wheel
lists them). Names of earlier lists are left out. No release is fetched for this: only its size, its metadata and the list of its files.
"""

from __future__ import annotations

import argparse
import io
import random
import re
import ssl
import sys
import urllib.error
import urllib.request
import zipfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from fresh_packages import INDEX, TOPICS, newest
from projects import HERE, MOST_BYTES

# Names with one of these in them are often about training models; those of `fresh_packages.TOPICS`, too.
WORDS = (
    *TOPICS,
    *("diffus", "llm", "gnn", "triton", "cuda", "gpu", "deep", "vision", "speech", "tts", "gan", "lora", "train", "tensor", "diff"),
    *("learn", "infer", "kernel", "moe", "mamba", "rwkv", "bert", "gpt", "vlm", "detect", "segment", "mmcv"),
)  # fmt: skip
# Names with one of these in them often write gradients, kernels or loops over time themselves.
NARROW = (
    *("triton", "kernel", "cuda", "gpu", "flash", "mamba", "ssm", "rwkv", "rnn", "lstm", "gru", "recurr", "spik", "snn", "autograd", "grad"),
    *("quant", "fp8", "moe", "attention", "attn", "sparse", "splat", "gauss", "render", "nerf", "ode", "solver", "hyperb", "manifold"),
    *("equivar", "e3nn", "deform", "mmcv", "mmdet", "point", "bayes", "pinn", "physic", "fft", "wave", "scan", "torch", "neuro", "linalg"),
    *("vllm", "sglang", "llm", "fla", "megatron", "deepspeed", "unsloth", "liger", "tts", "asr", "vits", "diffus", "recsys", "fbgemm"),
)  # fmt: skip
LEAST_BYTES, LEAST_FILES = 100_000, 30
TAIL = 1 << 20  # of a wheel: the list of its files, for all but the largest


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=5619)
    parser.add_argument("--count", type=int, default=6000)
    parser.add_argument("--narrow", action="store_true", help="only names that promise gradients of their own")
    parser.add_argument("--output", required=True)
    given = parser.parse_args()
    # One context for all: making one for each address takes more time than asking.
    handler = urllib.request.HTTPSHandler(context=ssl.create_default_context())
    urllib.request.install_opener(urllib.request.build_opener(handler))
    known = {name for path in HERE.glob("candidates*.txt") for name in path.read_text().split()}
    names = sorted(set(_all_names(NARROW if given.narrow else WORDS)) - known)
    drawn = random.Random(given.seed).sample(names, min(given.count, len(names)))
    kept: list[str] = []
    with ThreadPoolExecutor(64) as pool:
        for count, (name, keep) in enumerate(zip(drawn, pool.map(_looks_like_a_project, drawn), strict=True), 1):
            kept += [name] if keep else []
            if count % 500 == 0 or count == len(drawn):  # asking takes many minutes, and may be cut off
                (HERE / given.output).write_text("\n".join(sorted(kept)) + "\n")
                print(f"{len(names)} names, {count} asked for, {len(kept)} kept", flush=True)


def _all_names(words: Sequence[str]) -> list[str]:
    with urllib.request.urlopen(f"{INDEX}/", timeout=120) as answer:
        names = re.findall(r'href="(?:/simple/)?([^"/]+)/"', answer.read().decode())
    return [name for name in names if any(word in name for word in words)]


def _looks_like_a_project(name: str) -> bool:
    try:
        package = newest(name)
        if package is None or not LEAST_BYTES <= _size(package.url) <= MOST_BYTES:
            return False
        return not package.url.endswith(".whl") or (_requires_torch(package.url) and _files(package.url) >= LEAST_FILES)
    except (OSError, ValueError, zipfile.BadZipFile) as error:  # one strange release among thousands
        print(f"{name}: {type(error).__name__}: {error}", file=sys.stderr)
        return False


def _size(url: str) -> int:
    with urllib.request.urlopen(urllib.request.Request(url, method="HEAD"), timeout=60) as answer:
        return int(answer.headers["Content-Length"])


def _requires_torch(url: str) -> bool:
    """Whether its metadata says so; True where the index does not serve them."""
    try:
        with urllib.request.urlopen(f"{url}.metadata", timeout=60) as answer:
            return re.search(rb"(?im)^requires-dist:\s*torch\b", answer.read()) is not None
    except urllib.error.HTTPError:
        return True


def _files(url: str) -> int:
    """How many Python files the list at the end of a wheel names."""
    with urllib.request.urlopen(urllib.request.Request(url, headers={"Range": f"bytes=-{TAIL}"}), timeout=60) as answer:
        tail = answer.read()
    with zipfile.ZipFile(io.BytesIO(tail)) as archive:
        return sum(name.endswith(".py") for name in archive.namelist())


if __name__ == "__main__":
    main()
