# SPDX-License-Identifier: Apache-2.0
"""Records values of COCO's functions: pip install coco-experiment==2.8.2, then python bbob.py > bbob.csv."""

from cocoex import BareProblem

print("function,dimension,instance,point,value,optimum")
for f in range(1, 25):
    for d in (2, 5, 10, 20):
        for instance in (1, 7, 15):
            problem = BareProblem("bbob", f, d, instance)
            for k in range(2):
                x = [((37 * i + 11 * k + 5 * f) % 101) / 10.1 - 5 for i in range(d)]
                print(f"{f},{d},{instance},{k},{problem(x)!r},{problem.best_value()!r}")
