#!/usr/bin/env python3
"""The least objective of l1-regularized logistic regression, as scikit-learn's solvers find it.

    build/release/bench/sparse_bench write rows.libsvm
    bench/sparse_reference.py rows.libsvm --features 5000 --l1 1e-3

Prints a JSON object for each solver, with the objective that docs/sparse.md states. saga does not penalize the bias, as
Arbalest; liblinear does, so it is given a bias of 1000 times the length, whose penalty is small. Needs scikit-learn 1.8 or newer.
"""
import argparse
import json
import os
import time

import numpy as np
import sklearn
from sklearn.datasets import load_svmlight_file
from sklearn.linear_model import LogisticRegression


def objective(model, rows, labels, l1):
    """Returns (1/n) sum log(1 + exp(-y (w x + b))) + l1 |w|_1."""
    margins = labels * (rows @ model.coef_.ravel() + model.intercept_[0])
    return float(np.logaddexp(0.0, -margins).mean() + l1 * np.abs(model.coef_).sum())


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file")
    parser.add_argument("--features", type=int, required=True)
    parser.add_argument("--l1", type=float, required=True)
    parser.add_argument("--iterations", type=int, default=2000)
    options = parser.parse_args()
    rows, labels = load_svmlight_file(options.file, n_features=options.features)
    rows.indices, rows.indptr = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)  # what liblinear takes
    solvers = {"saga": {"tol": 1e-6}, "liblinear": {"tol": 1e-6, "intercept_scaling": 1000.0}}
    for name, settings in solvers.items():
        model = LogisticRegression(l1_ratio=1.0, solver=name, C=1.0 / (len(labels) * options.l1),
                                   max_iter=options.iterations, random_state=1, **settings)
        start = time.perf_counter()
        model.fit(rows, labels)
        print(json.dumps({"solver": name, "scikit_learn": sklearn.__version__, "l1": options.l1,
                          "objective": objective(model, rows, labels, options.l1),
                          "non_zeros": int(np.count_nonzero(model.coef_)), "iterations": int(np.max(model.n_iter_)),
                          "seconds": time.perf_counter() - start, "load_average": os.getloadavg()[0]}))


if __name__ == "__main__":
    main()
