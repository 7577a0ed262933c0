# SPDX-License-Identifier: Apache-2.0
"""Makes models, and compares those that were compressed with the originals in onnxruntime.

    models.py make DIR    writes NAME.onnx, with the inputs in NAME.npz
    models.py judge DIR   compares each NAME.METHOD.onnx, and prints what it finds in JSON
"""
import glob
import json
import os
import sys
import warnings

import numpy as np
import onnx
from onnx import TensorProto as T
from onnx import helper, numpy_helper

rng = np.random.default_rng(0)
node = helper.make_node


def weight(name, *shape):
    return numpy_helper.from_array((rng.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))).astype(np.float32), name)


def ints(name, *values):
    return numpy_helper.from_array(np.array(values, np.int64), name)


def value(name, shape, kind=T.FLOAT):
    return helper.make_tensor_value_info(name, kind, shape)


def model(nodes, inputs, outputs, weights, opset=21, ir=10):
    if ir < 4:
        inputs = inputs + [value(w.name, w.dims, w.data_type) for w in weights]
    graph = helper.make_graph(nodes, "g", inputs, outputs, weights)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir)
    made.metadata_props.add(key="author", value="somebody")
    onnx.checker.check_model(made, full_check=True)
    return made


def normal(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def digits():
    from sklearn.datasets import load_digits
    from sklearn.model_selection import train_test_split
    from sklearn.neural_network import MLPClassifier
    from skl2onnx import to_onnx

    x, y = load_digits(return_X_y=True)
    x = (x / 16).astype(np.float32)
    x, test, y, labels = train_test_split(x, y, test_size=0.3, random_state=0, stratify=y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mlp = MLPClassifier((256, 256, 256), max_iter=15, random_state=0).fit(x, y)
    return to_onnx(mlp, x[:1], options={"zipmap": False}), {"X": test, "labels": labels}


def cnn():
    return model([
        node("Conv", ["x", "k1", "b1"], ["c1"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["c1", "s", "b1", "mean", "var"], ["n1"]),
        node("Relu", ["n1"], ["r1"]),
        node("MaxPool", ["r1"], ["p1"], kernel_shape=[2, 2], strides=[2, 2]),
        node("Conv", ["p1", "k2"], ["c2"], group=4),
        node("ConvTranspose", ["c2", "k3"], ["c3"], strides=[2, 2]),
        node("GlobalAveragePool", ["c3"], ["g"]),
        node("Flatten", ["g"], ["f"]),
        node("Gemm", ["f", "w", "b"], ["y"], transB=1, alpha=0.5),
        node("Gemm", ["f", "w", "b"], ["z"], transB=1),
    ], [value("x", ["n", 3, 12, 12])], [value("y", ["n", 40]), value("z", ["n", 40])],
        [weight("k1", 16, 3, 3, 3), weight("b1", 16), weight("k2", 16, 4, 3, 3), weight("k3", 16, 24, 3, 3), weight("w", 40, 24), weight("b", 40),
         numpy_helper.from_array(np.ones(16, np.float32), "s"), weight("mean", 16), numpy_helper.from_array(np.ones(16, np.float32), "var")],
    ), {"x": normal(4, 3, 12, 12)}


def text():
    constant = node("Constant", [], ["w"], value=weight("", 32, 32))
    return model([
        constant,
        node("Gather", ["table", "ids"], ["e"]),
        node("Transpose", ["e"], ["t"], perm=[1, 0, 2]),
        node("LSTM", ["t", "W", "R", "B"], ["h", "last"], hidden_size=24),
        node("Squeeze", ["last", "zero"], ["s"]),
        node("MatMul", ["e", "w"], ["m"]),
        node("ReduceMean", ["m", "one"], ["mean"], keepdims=0),
        node("Gather", ["mean", "zero"], ["first"]),
        node("Concat", ["s", "mean"], ["y"], axis=1),
    ], [value("ids", ["n", 6], T.INT64)], [value("y", ["n", 56]), value("first", [1, 32])],
        [weight("table", 50, 32), weight("W", 1, 96, 32), weight("R", 1, 96, 24), weight("B", 1, 192), ints("zero", 0), ints("one", 1)],
    ), {"ids": rng.integers(0, 50, (5, 6))}


def old():
    """Opset 9, of which many operators have other inputs since, and weights among the inputs."""
    return model([
        node("MatMul", ["x", "w"], ["m"]),
        node("Clip", ["m"], ["c"], min=-0.5, max=1.5),
        node("Dropout", ["c"], ["d"], ratio=0.4),
        node("Softmax", ["d"], ["s"]),
        node("Slice", ["s"], ["sl"], starts=[1], ends=[3], axes=[1]),
        node("Split", ["sl"], ["a", "b"], axis=2, split=[12, 20]),
        node("ReduceSum", ["a"], ["r"], axes=[2], keepdims=0),
        node("Unsqueeze", ["r"], ["u"], axes=[2]),
        node("Squeeze", ["u"], ["q"], axes=[2]),
        node("LogSoftmax", ["b"], ["l"], axis=-1),
    ], [value("x", [2, 4, 16])], [value("q", [2, 2]), value("l", [2, 2, 20])], [weight("w", 16, 32)], opset=9, ir=3), {"x": normal(2, 4, 16)}


def branches():
    """Graphs in a node, which use values and weights of the outer one."""
    then = helper.make_graph([node("MatMul", ["h", "w2"], ["t"])], "then", [], [value("t", ["n", 16])])
    other = helper.make_graph([node("Mul", ["h", "h"], ["o"])], "other", [], [value("o", ["n", 16])])
    return model([
        node("MatMul", ["x", "w1"], ["h"]),
        node("ReduceSum", ["h"], ["sum"], keepdims=0),
        node("Greater", ["sum", "limit"], ["condition"]),
        node("If", ["condition"], ["i"], then_branch=then, else_branch=other),
        node("MatMul", ["i", "w2"], ["y"]),
    ], [value("x", ["n", 16])], [value("y", ["n", 16])],
        [weight("w1", 16, 16), weight("w2", 16, 16), numpy_helper.from_array(np.float32(-1e30), "limit")]), {"x": normal(3, 16)}


def tables():
    """A weight that is used in two ways, one that is an output too, and masks beyond the range of float16."""
    return model([
        node("Gather", ["w", "ids"], ["e"]),
        node("Gemm", ["e", "w"], ["p"], transB=1),
        node("Where", ["mask", "p", "low"], ["m"]),
        node("Softmax", ["m"], ["y"]),
        node("TopK", ["y", "k"], ["top", "places"]),
    ], [value("ids", ["n"], T.INT64), value("mask", ["n", 40], T.BOOL)],
        [value("y", ["n", 40]), value("top", ["n", 3]), value("v", [16, 16])],
        [weight("w", 40, 32), weight("v", 16, 16), numpy_helper.from_array(np.float32(-1e9), "low"), ints("k", 3)],
    ), {"ids": rng.integers(0, 40, 7), "mask": rng.random((7, 40)) > 0.3}


def make(folder):
    for build in digits, cnn, text, old, branches, tables:
        made, inputs = build()
        name = os.path.join(folder, build.__name__)
        np.savez(name + ".npz", **inputs)
        onnx.save(made, name + ".onnx")
    onnx.save(cnn()[0], os.path.join(folder, "split.onnx"), save_as_external_data=True, location="split.weights", size_threshold=100)
    np.savez(os.path.join(folder, "split.npz"), x=normal(4, 3, 12, 12))


def run(path, inputs):
    import onnxruntime

    onnx.checker.check_model(path, full_check=True)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options).run(None, inputs)


def judge(folder):
    found = {}
    for original in glob.glob(os.path.join(folder, "*.npz")):
        base = original.removesuffix(".npz")
        inputs = dict(np.load(original))
        labels = inputs.pop("labels", None)
        want = run(base + ".onnx", inputs)
        for path in [base + ".onnx"] + glob.glob(base + ".*.onnx"):
            got = run(path, inputs)
            made = onnx.load(path)
            floats = [(a.astype(np.float64), b) for a, b in zip(got, want) if b.dtype == np.float32]
            weights = {w.name: numpy_helper.to_array(w) for w in made.graph.initializer}
            answer = {
                "error": max(float(np.abs(a - b).max() / np.abs(b).max()) for a, b in floats),
                "types": [str(a.dtype) for a in got] == [str(b.dtype) for b in want],
                "metadata": [p.value for p in made.metadata_props],
                "operators": sorted({n.op_type for n in made.graph.node}),
                "zeros": {name: float(np.mean(w == 0)) for name, w in weights.items() if w.dtype == np.float32 and w.size},
            }
            if labels is not None:
                answer["accuracy"] = float(np.mean(got[0] == labels))
            found[os.path.basename(path)] = answer
    json.dump(found, sys.stdout)


{"make": make, "judge": judge}[sys.argv[1]](sys.argv[2])
