# SPDX-License-Identifier: Apache-2.0
"""Random search with nothing but the standard library: the simplest adapter, and the tests' peer."""

import random

from protocol import serve


class Adapter:
    def __init__(self, parameters, seed, trials, parallel):
        self.parameters = parameters
        self.rng = random.Random(seed)

    def ask(self):
        return {p.name: p.draw(self.rng) for p in self.parameters}

    def tell(self, index, value):
        pass

    def load(self, points, values):
        pass


serve(Adapter)
