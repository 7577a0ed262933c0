# SPDX-License-Identifier: Apache-2.0
"""Trains models under cross validation: a request {"model", "seed", "values"} a line, a reply {"value"} a line."""

import json
import os
import sys
import warnings

import numpy as np
from sklearn import datasets
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingRegressor, RandomForestClassifier
from sklearn.linear_model import ElasticNet, LogisticRegression
from sklearn.metrics import log_loss, root_mean_squared_error
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    MinMaxScaler,
    PolynomialFeatures,
    QuantileTransformer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC, SVR

warnings.filterwarnings("ignore")

DATA = {
    "digits": datasets.load_digits(return_X_y=True),
    "cancer": datasets.load_breast_cancer(return_X_y=True),
    "diabetes": datasets.load_diabetes(return_X_y=True),
}
DATA["digits"] = tuple(a[:600] for a in DATA["digits"])

SCALERS = {
    "none": lambda: "passthrough",
    "standard": StandardScaler,
    "range": MinMaxScaler,
    "robust": RobustScaler,
    "quantile": lambda: QuantileTransformer(n_quantiles=100),
}


def svc(v):
    return make_pipeline(
        MinMaxScaler(),
        SVC(C=v["C"], kernel=v["kernel"], gamma=v.get("gamma", "scale"), degree=v.get("degree", 3),
            coef0=v.get("coef0", 0.0), max_iter=5000),
    )


def svr(v):
    return make_pipeline(
        StandardScaler(),
        SVR(C=v["C"], epsilon=v["epsilon"], kernel=v["kernel"], gamma=v.get("gamma", "scale"),
            degree=v.get("degree", 3), max_iter=20000),
    )


def forest(v):
    return RandomForestClassifier(
        n_estimators=v["trees"], max_depth=v["depth"], max_features=v["features"], min_samples_split=v["split"],
        min_samples_leaf=v["leaf"], criterion=v["criterion"], bootstrap=v["bootstrap"] == "yes", random_state=0,
    )


def boosting(v):
    return GradientBoostingRegressor(
        learning_rate=v["learning_rate"], n_estimators=v["trees"], max_depth=v["depth"], subsample=v["subsample"],
        max_features=v["features"], min_samples_leaf=v["leaf"], loss=v["loss"], alpha=v.get("alpha", 0.9),
        random_state=0,
    )


def network(v):
    widths = [v["width1"]] + ([v["width2"]] if v["layers"] == 2 else [])
    return make_pipeline(
        MinMaxScaler(),
        MLPClassifier(
            hidden_layer_sizes=widths, learning_rate_init=v["learning_rate"], alpha=v["alpha"], batch_size=v["batch"],
            activation=v["activation"], solver=v["solver"], momentum=v.get("momentum", 0.9), max_iter=12,
            random_state=0,
        ),
    )


def neighbours(v):
    return make_pipeline(
        SCALERS[v["scaling"]](),
        PCA(n_components=v["components"], svd_solver="full"),
        KNeighborsClassifier(n_neighbors=v["neighbours"], weights=v["weights"], metric=v["metric"]),
    )


def elastic(v):
    return make_pipeline(
        PolynomialFeatures(v["powers"], interaction_only=v.get("interactions") == "yes", include_bias=False),
        SCALERS[v["scaling"]](),
        ElasticNet(alpha=v["alpha"], l1_ratio=v["l1_ratio"], max_iter=2000),
    )


def logistic(v):
    ratio = {"l1": 1.0, "l2": 0.0}.get(v["penalty"], v.get("l1_ratio"))
    return make_pipeline(
        SCALERS[v["scaling"]](),
        PCA(n_components=v["components"], svd_solver="full"),
        LogisticRegression(C=v["C"], l1_ratio=ratio, solver="saga", tol=v["tolerance"], max_iter=100, random_state=0),
    )


def error_rate(truth, model, x):
    return float(np.mean(model.predict(x) != truth))


def cross_entropy(truth, model, x):
    return log_loss(truth, np.nan_to_num(model.predict_proba(x), nan=1e-9), labels=model.classes_)


def deviation(truth, model, x):
    return root_mean_squared_error(truth, np.clip(np.nan_to_num(model.predict(x), nan=1e3), -1e3, 1e3))


MODELS = {
    "svc-digits": (svc, "digits", error_rate),
    "svr-diabetes": (svr, "diabetes", deviation),
    "forest-cancer": (forest, "cancer", cross_entropy),
    "boosting-diabetes": (boosting, "diabetes", deviation),
    "network-digits": (network, "digits", cross_entropy),
    "neighbours-digits": (neighbours, "digits", error_rate),
    "elastic-diabetes": (elastic, "diabetes", deviation),
    "logistic-cancer": (logistic, "cancer", cross_entropy),
}


def parse(text):
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


def evaluate(name, seed, values):
    """The mean loss over three folds."""
    make, data, loss = MODELS[name]
    x, y = DATA[data]
    folds = (KFold if loss is deviation else StratifiedKFold)(3, shuffle=True, random_state=seed)
    values = {k: parse(v) for k, v in values.items()}
    losses = []
    for train, test in folds.split(x, y):
        model = make(values).fit(x[train], y[train])
        losses.append(loss(y[test], model, x[test]))
    return float(np.mean(losses))


def main():
    out = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            reply = {"value": evaluate(request["model"], request["seed"], request["values"])}
        except Exception as e:
            reply = {"error": f"{type(e).__name__}: {e}"[:500]}
        print(json.dumps(reply), file=out, flush=True)


main()
