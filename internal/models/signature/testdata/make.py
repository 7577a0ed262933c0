# SPDX-License-Identifier: Apache-2.0
"""Makes the models of this folder, and beside each NAME the framework's own answer
about it, NAME.answer.json: the part of a Signature that the framework can tell.

    make.py FOLDER [GROUP...]

Without groups, all whose framework can be imported are made. The frameworks do not
fit into one environment: see requirements-*.txt.
"""

import json
import os
import pathlib
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "-1")

OUT = pathlib.Path(".")


def answer(name, **signature):
    text = json.dumps(signature, indent=1, sort_keys=True)
    (OUT / f"{name}.answer.json").write_text(text + "\n")


def tensor(name, kind, shape):
    return {"name": name, "type": kind, "shape": shape}


def iris():
    from sklearn.datasets import load_iris

    data = load_iris()
    return data.data, data.target


def safetensors():
    import numpy
    from safetensors import safe_open
    from safetensors.numpy import save_file

    def tell(paths):
        tensors, count = [], 0
        for path in paths:
            with safe_open(path, framework="numpy") as f:
                for name in f.keys():
                    part = f.get_tensor(name)
                    tensors.append(tensor(name, str(part.dtype), list(part.shape)))
                    count += part.size
        return {"tensors": sorted(tensors, key=lambda t: t["name"]), "parameters": count}

    a = {
        "embed.weight": numpy.arange(12, dtype=numpy.float32).reshape(3, 4),
        "head.bias": numpy.zeros(3, dtype=numpy.float16),
        "ids": numpy.arange(2, dtype=numpy.int64),
        "scale": numpy.array(2.0),
    }
    save_file(a, OUT / "small.safetensors", metadata={"format": "np"})
    answer("small.safetensors", format="safetensors", metadata={"format": "np"}, **tell([OUT / "small.safetensors"]))

    folder = OUT / "sharded"
    folder.mkdir(exist_ok=True)
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    parts = [{k: a[k] for k in ("embed.weight", "ids")}, {k: a[k] for k in ("head.bias", "scale")}]
    for shard, part in zip(shards, parts):
        save_file(part, folder / shard)
    index = {
        "metadata": {"total_size": sum(v.nbytes for v in a.values())},
        "weight_map": {k: shard for shard, part in zip(shards, parts) for k in part},
    }
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    answer("sharded", format="safetensors", **tell([folder / s for s in shards]))


def gguf():
    import numpy
    from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter, quantize

    writer = GGUFWriter(OUT / "small.gguf", "llama")
    writer.add_context_length(128)
    writer.add_float32("llama.rope.freq_base", 10000.0)
    writer.add_file_type(2)
    writer.add_token_list(["<s>", "a", "b"])
    writer.add_custom_alignment(64)
    rows = numpy.linspace(-1, 1, 4 * 64, dtype=numpy.float32).reshape(4, 64)
    writer.add_tensor("token_embd.weight", quantize(rows, GGMLQuantizationType.Q4_0), raw_dtype=GGMLQuantizationType.Q4_0)
    writer.add_tensor("output_norm.weight", numpy.ones(64, dtype=numpy.float32))
    writer.add_tensor("blk.0.attn_q.weight", numpy.ones((8, 64), dtype=numpy.float16))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()

    reader = GGUFReader(OUT / "small.gguf")
    kinds = {"F32": "float32", "F16": "float16"}
    answer(
        "small.gguf",
        format="gguf",
        formatVersion="3",
        quantization="Q4_0",
        parameters=int(sum(t.n_elements for t in reader.tensors)),
        tensors=[
            tensor(t.name, kinds.get(t.tensor_type.name, t.tensor_type.name), [int(d) for d in reversed(t.shape)])
            for t in reader.tensors
        ],
        metadata={
            "general.architecture": reader.get_field("general.architecture").contents(),
            "llama.context_length": str(reader.get_field("llama.context_length").contents()),
        },
    )


def onnx_answer(model, **more):
    import onnx

    kinds = {"float": "float32", "double": "float64"}

    def kind(t):
        which = t.WhichOneof("value")
        if which == "tensor_type":
            name = onnx.TensorProto.DataType.Name(t.tensor_type.elem_type).lower()
            return kinds.get(name, name)
        if which == "sequence_type":
            return f"seq({kind(t.sequence_type.elem_type)})"
        if which == "map_type":
            key = onnx.TensorProto.DataType.Name(t.map_type.key_type).lower()
            return f"map({key}, {kind(t.map_type.value_type)})"
        raise ValueError(which)

    def value(v):
        shape = None
        if v.type.WhichOneof("value") == "tensor_type":
            shape = [d.dim_param or (d.dim_value if d.HasField("dim_value") else -1) for d in v.type.tensor_type.shape.dim]
        return tensor(v.name, kind(v.type), shape)

    weights = {i.name for i in model.graph.initializer}
    operators = {}
    for node in model.graph.node:
        name = node.op_type if node.domain in ("", "ai.onnx") else f"{node.domain}.{node.op_type}"
        operators[name] = operators.get(name, 0) + 1
    count = 0
    for i in model.graph.initializer:
        size = 1
        for d in i.dims:
            size *= d
        count += size
    return dict(
        format="onnx",
        formatVersion=str(model.ir_version),
        producer=f"{model.producer_name} {model.producer_version}".strip(),
        opsets={o.domain or "ai.onnx": o.version for o in model.opset_import},
        inputs=[value(v) for v in model.graph.input if v.name not in weights],
        outputs=[value(v) for v in model.graph.output],
        operators=operators,
        parameters=count,
        **more,
    )


def onnx():
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    rng = numpy.random.default_rng(0)
    w1 = rng.standard_normal((4, 16), dtype=numpy.float32)
    w2 = rng.standard_normal((16, 3), dtype=numpy.float32)
    graph = helper.make_graph(
        [
            helper.make_node("MatMul", ["x", "w1"], ["h"]),
            helper.make_node("Relu", ["h"], ["a"]),
            helper.make_node("MatMul", ["a", "w2"], ["y"]),
        ],
        "mlp",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, 3])],
        [numpy_helper.from_array(w1, "w1"), numpy_helper.from_array(w2, "w2")],
    )
    model = helper.make_model(graph, producer_name="make", producer_version="1", opset_imports=[helper.make_opsetid("", 17)])
    onnx.checker.check_model(model)
    onnx.save(model, OUT / "mlp.onnx")
    answer("mlp.onnx", **onnx_answer(onnx.load(OUT / "mlp.onnx")))

    folder = OUT / "external"
    folder.mkdir(exist_ok=True)
    (folder / "mlp.onnx.data").unlink(missing_ok=True)
    onnx.save(model, folder / "mlp.onnx", save_as_external_data=True, location="mlp.onnx.data", size_threshold=0)
    size = sum(p.stat().st_size for p in folder.iterdir())
    answer("external", **onnx_answer(onnx.load(folder / "mlp.onnx"), size=size))

    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = iris()
    pipeline = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    onnx.save(to_onnx(pipeline, x[:1].astype(numpy.float32)), OUT / "sklearn.onnx")
    answer("sklearn.onnx", **onnx_answer(onnx.load(OUT / "sklearn.onnx")))


def boosted(trees, features, classes, objective, **more):
    known = dict(count=trees, features=features, objective=objective, **more)
    if classes:
        known["classes"] = classes
    return known


def xgboost():
    import xgboost

    x, y = iris()
    names = ["sepal_l", "sepal_w", "petal_l", "petal_w"]

    def tell(booster, name, outputs):
        booster.save_model(OUT / name)
        config = json.loads(booster.save_config())["learner"]
        nodes = sum(len(booster.get_dump()[i].splitlines()) for i in range(len(booster.get_dump())))
        answer(
            name,
            format="xgboost",
            formatVersion=".".join(xgboost.__version__.split(".")),
            features=booster.feature_names,
            trees=boosted(
                len(booster.get_dump()),
                booster.num_features(),
                int(config["learner_model_param"]["num_class"]) or (2 if "binary" in config["objective"]["name"] else 0),
                config["objective"]["name"],
                nodes=nodes,
                booster=config["gradient_booster"]["name"],
            ),
            inputs=[tensor("features", "float32", [-1, booster.num_features()])],
            outputs=[tensor("prediction", "float32", outputs)],
        )

    data = xgboost.DMatrix(x, y, feature_names=names)
    multi = xgboost.train({"objective": "multi:softprob", "num_class": 3, "max_depth": 2}, data, 4)
    for ending in ("json", "ubj"):
        tell(multi, f"iris-xgboost.{ending}", [-1, 3])
    binary = xgboost.DMatrix(x, y == 1, feature_names=names)
    tell(xgboost.train({"objective": "binary:logistic", "max_depth": 2, "booster": "dart"}, binary, 3), "dart-xgboost.ubj", [-1])

    linear = xgboost.train({"booster": "gblinear", "objective": "reg:squarederror"}, data, 2)
    linear.save_model(OUT / "linear-xgboost.json")
    answer("linear-xgboost.json", format="xgboost", trees={"booster": "gblinear", "features": 4}, parameters=5)


def lightgbm():
    import lightgbm

    x, y = iris()

    def tell(name, params, labels, outputs, classes, objective):
        params = {"verbose": -1, "num_leaves": 4, "min_data_in_leaf": 5, **params}
        booster = lightgbm.train(params, lightgbm.Dataset(x, labels, feature_name=["a", "b", "c", "d"]), 3)
        booster.save_model(OUT / name)
        booster = lightgbm.Booster(model_file=OUT / name)
        leaves = sum(t["num_leaves"] for t in booster.dump_model()["tree_info"])
        answer(
            name,
            format="lightgbm",
            formatVersion="v4",
            features=booster.feature_name(),
            trees=boosted(booster.num_trees(), booster.num_feature(), classes, objective, nodes=2 * leaves - booster.num_trees()),
            inputs=[tensor("features", "float64", [-1, 4])],
            outputs=[tensor("prediction", "float64", outputs)],
        )

    tell("multi-lightgbm.txt", {"objective": "multiclass", "num_class": 3}, y, [-1, 3], 3, "multiclass")
    tell("binary-lightgbm.txt", {"objective": "binary"}, y == 1, [-1], 2, "binary")
    tell("forest-lightgbm.txt", {"objective": "regression", "boosting": "rf", "bagging_freq": 1, "bagging_fraction": 0.5}, y, [-1], 0, "regression")


def sklearn():
    import pickle

    import joblib
    import numpy
    from sklearn.compose import ColumnTransformer
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.neural_network import MLPClassifier
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import MinMaxScaler, StandardScaler

    x, y = iris()

    def path(estimator):
        return type(estimator).__module__ + "." + type(estimator).__qualname__

    def describe(estimator, name=None):
        told = {"class": path(estimator)}
        if name:
            told["name"] = name
        if isinstance(estimator, Pipeline):
            told["steps"] = [describe(step, name) for name, step in estimator.steps]
        if isinstance(estimator, ColumnTransformer):
            told["steps"] = [describe(step, name) for name, step, _ in estimator.transformers_]
        return told

    def told(estimator, **more):
        return dict(
            format="sklearn",
            estimator=describe(estimator),
            inputs=[{"name": "features", "shape": [-1, estimator.n_features_in_]}],
            classes=[str(c) for c in estimator.classes_],
            unsafe=None,
            **more,
        )

    scaler = ColumnTransformer([("low", MinMaxScaler(), [0, 1]), ("rest", StandardScaler(), [2, 3])])
    logistic = LogisticRegression()
    pipeline = Pipeline([("prepare", scaler), ("model", logistic)]).fit(x, y)
    names = numpy.array(["setosa", "versicolor", "virginica"])
    named = Pipeline([("scale", StandardScaler()), ("model", LogisticRegression())]).fit(x, names[y])
    forest = RandomForestClassifier(5, max_depth=2, random_state=0).fit(x, y)
    network = MLPClassifier([5], max_iter=10).fit(x, y)

    def size(*arrays):
        return int(sum(a.size for a in arrays))

    weights = size(logistic.coef_, logistic.intercept_)
    for protocol in (0, 2, 5):
        (OUT / f"pipeline-{protocol}.pkl").write_bytes(pickle.dumps(pipeline, protocol))
        answer(f"pipeline-{protocol}.pkl", **told(pipeline, parameters=weights))
    joblib.dump(pipeline, OUT / "pipeline.joblib")
    answer("pipeline.joblib", **told(pipeline, parameters=weights))
    joblib.dump(pipeline, OUT / "pipeline-zlib.joblib", compress=3)
    answer("pipeline-zlib.joblib", **told(pipeline, parameters=weights))
    joblib.dump(named, OUT / "named.joblib")
    answer("named.joblib", **told(named, parameters=weights))
    joblib.dump(forest, OUT / "forest.joblib")
    nodes = sum(e.tree_.node_count for e in forest.estimators_)
    answer("forest.joblib", **told(forest, trees={"count": 5, "features": 4, "classes": 3, "nodes": nodes}))
    (OUT / "network.pkl").write_bytes(pickle.dumps(network))
    answer("network.pkl", **told(network, parameters=size(*network.coefs_, *network.intercepts_)))


def skops():
    import skops.io
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    x, y = iris()
    model = make_pipeline(StandardScaler(), LogisticRegression()).fit(x, y)
    skops.io.dump(model, OUT / "model.skops")
    answer(
        "model.skops",
        format="sklearn",
        estimator={
            "class": "sklearn.pipeline.Pipeline",
            "steps": [
                {"name": name, "class": type(step).__module__ + "." + type(step).__name__} for name, step in model.steps
            ],
        },
        metadata={"_skops_version": skops.__version__},
    )


def catboost():
    import catboost

    x, y = iris()
    model = catboost.CatBoostClassifier(iterations=4, depth=2, verbose=False, allow_writing_files=False)
    model.fit(x, y)
    for ending, kind in (("json", "json"), ("cbm", "cbm"), ("onnx", "onnx"), ("pmml", "pmml")):
        if ending == "pmml":
            continue  # for one class or a binary target only
        model.save_model(OUT / f"catboost.{ending}", format=kind)
        if ending == "onnx":
            import onnx as library

            answer("catboost.onnx", **onnx_answer(library.load(OUT / "catboost.onnx")))
            continue
        answer(
            f"catboost.{ending}",
            format="catboost",
            producer=f"catboost {catboost.__version__}",
            features=model.feature_names_,
            classes=[str(c) for c in model.classes_],
            trees={"count": model.tree_count_, "features": 4, "classes": 3, "objective": "MultiClass"},
            inputs=[tensor("features", "float32", [-1, 4])],
        )
    binary = catboost.CatBoostClassifier(iterations=2, depth=1, verbose=False, allow_writing_files=False)
    binary.fit(x, y == 1)
    binary.save_model(OUT / "catboost.pmml", format="pmml")
    answer("catboost.pmml", format="pmml", formatVersion="4.3", features=[f"feature_{i}" for i in range(4)])


def network():
    import keras

    keras.utils.set_random_seed(0)
    return keras.Sequential(
        [keras.Input((4,), name="x"), keras.layers.Dense(3, activation="relu"), keras.layers.Dense(2, name="y")]
    )


def tensorflow():
    import shutil

    import tensorflow as tf
    from tensorflow.core.protobuf import saved_model_pb2
    from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

    model = network()
    folder = OUT / "savedmodel"
    shutil.rmtree(folder, ignore_errors=True)
    model.export(folder, verbose=False)
    (folder / "fingerprint.pb").unlink(missing_ok=True)

    def told(info):
        shape = [d.size for d in info.tensor_shape.dim]
        return tensor(None, tf.as_dtype(info.dtype).name, shape)

    graph = saved_model_pb2.SavedModel.FromString((folder / "saved_model.pb").read_bytes()).meta_graphs[0]
    definition = graph.signature_def["serving_default"]
    functions = [n for n in graph.signature_def if not n.startswith("__saved_model_")]
    answer(
        "savedmodel",
        format="savedmodel",
        formatVersion="1",
        producer=f"tensorflow {tf.__version__}",
        inputs=[{**told(t), "name": n} for n, t in definition.inputs.items()],
        outputs=[{**told(t), "name": n} for n, t in definition.outputs.items()],
        functions=[{"name": n} for n in functions],
        parameters=model.count_params(),
        metadata={"tags": "serve"},
        size=sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()),
    )

    function = tf.function(lambda x: model(x)).get_concrete_function(tf.TensorSpec([None, 4], tf.float32, "x"))
    frozen = convert_variables_to_constants_v2(function).graph.as_graph_def()
    (OUT / "frozen.pb").write_bytes(frozen.SerializeToString(deterministic=True))
    operators = {}
    for node in frozen.node:
        operators[node.op] = operators.get(node.op, 0) + 1
    answer(
        "frozen.pb",
        format="graphdef",
        inputs=[tensor("x", "float32", [-1, 4])],
        outputs=[{"name": "Identity"}],
        operators=operators,
        parameters=model.count_params(),
    )


def keras():
    import keras

    model = network()
    branches = [keras.Input((4,), name="left"), keras.Input((None, 3), name="right", dtype="int32")]
    pooled = keras.layers.GlobalAveragePooling1D()(keras.layers.Rescaling(2.0)(branches[1]))
    joined = keras.layers.Dense(1, name="score")(keras.layers.Concatenate()([branches[0], pooled]))
    functional = keras.Model(branches, joined)

    def told(model, kind):
        return dict(
            format=kind,
            producer=f"keras {keras.__version__}",
            inputs=[tensor(i.name, i.dtype, [-1 if d is None else d for d in i.shape]) for i in model.inputs],
            parameters=model.count_params(),
        )

    for name, model, outputs in (
        ("sequential", model, [tensor("y", "float32", [-1, 2])]),
        ("functional", functional, [tensor("score", "float32", [-1, 1])]),
    ):
        model.save(OUT / f"{name}.keras")
        answer(f"{name}.keras", **told(model, "keras"), outputs=outputs)
        model.save(OUT / f"{name}.h5")
        answer(f"{name}.h5", **told(model, "keras-h5"))
    functional.save_weights(OUT / "functional.weights.h5")
    answer("functional.weights.h5", format="keras-h5", parameters=functional.count_params())


def torch():
    import zipfile

    import torch

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.BatchNorm1d(8), torch.nn.Linear(8, 2)).eval()

    def told():
        state = model.state_dict()
        tensors = [tensor(n, str(t.dtype).removeprefix("torch."), list(t.shape)) for n, t in state.items()]
        return dict(tensors=tensors, parameters=sum(t.numel() for t in state.values()))

    torch.save(model.state_dict(), OUT / "state.pt")
    answer("state.pt", format="torch-pickle", unsafe=None, **told())
    torch.save(model.state_dict(), OUT / "legacy.pt", _use_new_zipfile_serialization=False)
    answer("legacy.pt", format="torch-pickle", unsafe=None, **told())
    torch.save({"epoch": 3, "model": model, "shared": [model[0].weight]}, OUT / "checkpoint.pth")
    answer("checkpoint.pth", format="torch-pickle", parameters=told()["parameters"])

    torch.jit.save(torch.jit.script(model), OUT / "whole.pt")
    with zipfile.ZipFile(OUT / "whole.pt") as whole, zipfile.ZipFile(OUT / "script.pt", "w") as script:
        for member in whole.infolist():
            if not member.filename.endswith(".debug_pkl"):  # they name files of this machine
                script.writestr(member.filename, whole.read(member))
    (OUT / "whole.pt").unlink()
    answer("script.pt", format="torchscript", inputs=[{"name": "input", "shape": None}], **told())

    if not hasattr(torch, "export"):
        return
    batch = torch.export.Dim("batch", max=64)
    program = torch.export.export(model, (torch.zeros(2, 4),), dynamic_shapes=({0: batch},))
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names files of this machine
    torch.export.save(program, OUT / "export.pt2")
    operators = {}
    for node in program.graph.nodes:
        if node.op == "call_function":
            name = f"torch.ops.{node.target}"
            operators[name] = operators.get(name, 0) + 1
    (symbol,) = program.range_constraints
    answer(
        "export.pt2",
        format="torch-export",
        producer=f"torch {torch.__version__}",
        inputs=[tensor("input", "float32", [str(symbol), 4])],
        outputs=[{"type": "float32", "shape": [str(symbol), 2]}],
        operators=operators,
        **told(),
    )


GROUPS = [safetensors, gguf, onnx, xgboost, lightgbm, sklearn, skops, catboost, tensorflow, keras, torch]


def main():
    global OUT
    OUT = pathlib.Path(sys.argv[1])
    OUT.mkdir(parents=True, exist_ok=True)
    chosen = sys.argv[2:]
    for group in GROUPS:
        if chosen and group.__name__ not in chosen:
            continue
        try:
            group()
        except ModuleNotFoundError as e:
            if chosen:
                raise
            print(f"{group.__name__}: left out: {e}", file=sys.stderr)


if __name__ == "__main__":
    main()
