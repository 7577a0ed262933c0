# SPDX-License-Identifier: Apache-2.0
"""Measures `diwan model compress` beside onnxruntime's own quantizers on the same models.

    pip install -r internal/models/compress/testdata/requirements.txt
    go build -o diwan ./cmd/diwan
    python bench/models/compress.py ./diwan > bench/results/compress.md

Accuracy is on the third of scikit-learn's digits that no model was trained with, by several seeds. Latency is the
median of runs of one thread, the variants in turns. Time and memory are those of the whole process.
"""
import argparse
import os
import subprocess
import sys
import tempfile
import time
import warnings

import numpy as np

DIWAN = {
    "diwan int8": ["--method", "int8"],
    "diwan dynamic-int8": ["--method", "dynamic-int8"],
    "diwan dynamic-int8, 7 bits": ["--method", "dynamic-int8", "--reduce-range"],
    "diwan fp16": ["--method", "fp16"],
    "diwan prune 50 %": ["--method", "prune", "--sparsity", "0.5"],
}
OTHERS = ["quantize_dynamic", "quantize_dynamic, per channel", "convert_float_to_float16"]
FOLDED = "diwan int8, disable_quant_qdq"
VARIANTS = ["original", "diwan int8", FOLDED, "diwan dynamic-int8", "diwan dynamic-int8, 7 bits", "diwan fp16", "diwan prune 50 %"] + OTHERS


def other(name, source, target):
    """Compresses by what onnxruntime has, in a process of its own."""
    import logging

    logging.disable(logging.WARNING)
    if name == "convert_float_to_float16":
        import onnx
        from onnxruntime.transformers.float16 import convert_float_to_float16

        onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), target)
        return
    from onnxruntime.quantization import quantize_dynamic

    quantize_dynamic(source, target, per_channel=name.endswith("per channel"))


def digits(seed, path):
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from skl2onnx import to_onnx

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    x, test, y, labels = train_test_split(x, y, test_size=0.3, random_state=seed, stratify=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlp = MLPClassifier((256, 256, 256), max_iter=60, random_state=seed).fit(x, y)
    with open(path, "wb") as file:
        file.write(to_onnx(mlp, x[:1], options={"zipmap": False}).SerializeToString())
    return test, labels


def layers(width, count, path):
    """A model of random matrices, as large as wanted."""
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = np.random.default_rng(0)
    nodes, weights = [], []
    for i in range(count):
        matrix = rng.standard_normal((width, width), dtype=np.float32) / np.float32(np.sqrt(width))
        weights.append(numpy_helper.from_array(matrix, f"w{i}"))
        nodes += [helper.make_node("MatMul", [f"x{i}", f"w{i}"], [f"h{i}"]), helper.make_node("Relu", [f"h{i}"], [f"x{i + 1}"])]
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n", width])
    graph = helper.make_graph(nodes, "layers", [value("x0")], [value(f"x{count}")], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10), path)
    return rng.standard_normal((64, width), dtype=np.float32)


# A process counts as its peak also that of the one it was forked from, so that one is small.
MEASURED = """
import os, sys, time
start = time.perf_counter()
pid = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 1, "/dev/null", os.O_WRONLY, 0)])
_, status, usage = os.wait4(pid, 0)
print(time.perf_counter() - start, usage.ru_maxrss / 1000)
sys.exit(os.waitstatus_to_exitcode(status) != 0)
"""


def process(command):
    """Runs a command; returns its seconds and its peak memory in MB."""
    ran = subprocess.run([sys.executable, "-S", "-c", MEASURED, *command], capture_output=True, text=True)
    if ran.returncode:
        sys.exit(f"{command}: {ran.stderr}")
    seconds, memory = ran.stdout.split()
    return float(seconds), float(memory)


def session(path, folded):
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    if folded:
        options.add_session_config_entry("session.disable_quant_qdq", "1")
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def latencies(sessions, x, runs):
    """Medians in microseconds, the sessions in turns."""
    taken = {name: [] for name in sessions}
    for _ in range(runs):
        for name, s in sessions.items():
            inputs = {s.get_inputs()[0].name: x}
            s.run(None, inputs)
            start = time.perf_counter()
            s.run(None, inputs)
            taken[name].append(time.perf_counter() - start)
    return {name: np.median(t) * 1e6 for name, t in taken.items()}


def compress(diwan, folder, source, costs):
    paths = {"original": source}
    for name in list(DIWAN) + OTHERS:
        target = os.path.join(folder, os.path.basename(source) + "." + name.replace(" ", "-").replace("%", "") + ".onnx")
        if name in DIWAN:
            command = [diwan, "model", "compress", source, target, "--home", os.path.join(folder, "home")] + DIWAN[name]
        else:
            command = [sys.executable, __file__, "-", "--other", name, source, target]
        costs.setdefault(name, []).append(process(command))
        paths[name] = target
    paths[FOLDED] = paths["diwan int8"]
    return paths


def table(header, rows):
    print("| " + " | ".join(header) + " |\n|" + "---|" * len(header))
    for row in rows:
        print("| " + " | ".join(row) + " |")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("diwan", help="the program")
    parser.add_argument("--other", nargs=3, help=argparse.SUPPRESS)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--rounds", type=int, default=15, help="runs of the large model")
    parser.add_argument("--width", type=int, default=2048, help="of the large model's matrices")
    parser.add_argument("--layers", type=int, default=12)
    a = parser.parse_args()
    if a.other:
        return other(*a.other)
    with tempfile.TemporaryDirectory() as folder:
        trained(a, folder)
        large(a, folder)


def taken(name, costs):
    if name not in costs:
        return ["", ""]
    return [f"{np.median([c[0] for c in costs[name]]):.2f}", f"{max(c[1] for c in costs[name]):.0f}"]


def trained(a, folder):
    import onnxruntime

    flags = next((l for l in open("/proc/cpuinfo") if l.startswith("flags")), "").split()
    found = [f for f in ("avx2", "avx512f", "avx512_vnni", "avx_vnni", "amx_int8") if f in flags]
    accuracy, costs, sizes, speed = {}, {}, {}, {}
    for seed in range(a.seeds):
        source = os.path.join(folder, f"digits{seed}.onnx")
        x, labels = digits(seed, source)
        paths = compress(a.diwan, folder, source, costs)
        sessions = {name: session(path, name == FOLDED) for name, path in paths.items()}
        for name, s in sessions.items():
            accuracy.setdefault(name, []).append(float(np.mean(s.run(None, {s.get_inputs()[0].name: x})[0] == labels)))
            sizes[name] = os.path.getsize(paths[name])
        if seed == 0:
            speed = {n: latencies(sessions, x[:n], a.runs) for n in (1, 64)}
    print(f"""# compress

`diwan model compress` beside what onnxruntime {onnxruntime.__version__} has for it, on the same models and run by the same onnxruntime, one
thread. Repeat with `python bench/models/compress.py ./diwan`, of which the first lines say what it needs.

Processor: {os.cpu_count()} cores, {", ".join(found)}. Load of the machine at the end: {os.getloadavg()[0]:.2f}.

## A trained classifier

An MLP 64-256-256-256-10 of scikit-learn on its digits, converted by skl2onnx; {a.seeds} seeds, each with its own split; the
{len(labels)} images of a test are a third of all, so one image is {100 / len(labels):.2f} points. Latency in µs, of the first seed.
""")
    def points(name):
        change = 100 * (np.array(accuracy[name]) - np.array(accuracy["original"]))
        mean = f"{100 * np.mean(accuracy[name]):.2f} %"
        return [mean, "" if name == "original" else f"{change.min():+.2f} to {change.max():+.2f}"]

    rows = [[name, *points(name), f"{sizes[name]:,}", f"{sizes[name] / sizes['original']:.3f}", f"{speed[1][name]:.1f}", f"{speed[64][name]:.0f}", *taken(name, costs)]
            for name in VARIANTS]
    table(["", "accuracy", "change, points", "bytes", "of the original", "batch 1", "batch 64", "seconds", "peak MB"], rows)


def large(a, folder):
    costs = {}
    source = os.path.join(folder, "large.onnx")
    x = layers(a.width, a.layers, source)
    paths = compress(a.diwan, folder, source, costs)
    original = os.path.getsize(source)
    reference = session(source, False).run(None, {"x0": x})[0]
    sessions = {name: session(paths[name], name == FOLDED) for name in VARIANTS}
    speed = {n: latencies(sessions, x[:n], a.rounds) for n in (1, 64)}
    rows = []
    for name, s in sessions.items():
        off = np.abs(s.run(None, {"x0": x})[0] - reference).max() / np.abs(reference).max()
        size = os.path.getsize(paths[name])
        ms = [f"{speed[n][name] / 1000:.1f}" for n in speed]
        rows.append([name, f"{size / 1e6:.1f}", f"{size / original:.3f}", f"{100 * off:.2f} %", *ms, *taken(name, costs)])
    print(f"""
## A large model

{a.layers} random matrices of {a.width} × {a.width} with Relu between them: no accuracy, but the largest difference of an output, of
the largest output. Latency in ms.
""")
    table(["", "MB", "of the original", "difference", "batch 1", "batch 64", "seconds", "peak MB"], rows)


if __name__ == "__main__":
    main()
