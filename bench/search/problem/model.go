// SPDX-License-Identifier: Apache-2.0

package problem

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
)

// Evaluator trains a model on data with some values of its parameters, and
// returns its loss under cross validation. The seed decides the folds.
type Evaluator func(ctx context.Context, model string, seed int, values map[string]string) (float64, error)

// Models returns scikit-learn models to tune on data that comes with it. The
// instance decides the folds of the cross validation.
func Models(evaluate Evaluator, instance int) []*Problem {
	spaces := []struct {
		name       string
		parameters []Parameter
	}{
		{"svc-digits", []Parameter{
			oneOf("kernel", "rbf", "poly", "sigmoid", "linear"),
			double("C", 1e-3, 1e3).log(),
			double("gamma", 1e-5, 1e1).log().when("kernel", "rbf", "poly", "sigmoid"),
			integer("degree", 2, 5).when("kernel", "poly"),
			double("coef0", -1, 1).when("kernel", "poly", "sigmoid"),
		}},
		{"svr-diabetes", []Parameter{
			oneOf("kernel", "rbf", "poly", "linear"),
			double("C", 1e-2, 1e4).log(),
			double("epsilon", 1e-2, 1e2).log(),
			double("gamma", 1e-4, 1e1).log().when("kernel", "rbf", "poly"),
			integer("degree", 2, 4).when("kernel", "poly"),
		}},
		{"forest-cancer", []Parameter{
			integer("trees", 5, 60).log(),
			integer("depth", 1, 20),
			double("features", 0.05, 1),
			integer("split", 2, 30).log(),
			integer("leaf", 1, 20).log(),
			oneOf("criterion", "gini", "entropy"),
			oneOf("bootstrap", "yes", "no"),
		}},
		{"boosting-diabetes", []Parameter{
			double("learning_rate", 5e-3, 1).log(),
			integer("trees", 10, 100).log(),
			integer("depth", 1, 8),
			double("subsample", 0.3, 1),
			double("features", 0.1, 1),
			integer("leaf", 1, 50).log(),
			oneOf("loss", "squared_error", "absolute_error", "huber"),
			double("alpha", 0.5, 0.99).when("loss", "huber"),
		}},
		{"network-digits", []Parameter{
			integer("layers", 1, 2),
			integer("width1", 8, 64).log(),
			integer("width2", 8, 64).log().when("layers", "2"),
			double("learning_rate", 1e-4, 1e-1).log(),
			double("alpha", 1e-7, 1e0).log(),
			integer("batch", 16, 128).log(),
			oneOf("activation", "relu", "tanh", "logistic"),
			oneOf("solver", "adam", "sgd"),
			double("momentum", 0, 0.99).when("solver", "sgd"),
		}},
		{"neighbours-digits", []Parameter{
			integer("neighbours", 1, 50).log(),
			oneOf("weights", "uniform", "distance"),
			oneOf("metric", "euclidean", "manhattan", "chebyshev", "cosine"),
			integer("components", 2, 60).log(),
			oneOf("scaling", "none", "standard", "range"),
		}},
		{"elastic-diabetes", []Parameter{
			double("alpha", 1e-5, 1e2).log(),
			double("l1_ratio", 0, 1),
			oneOf("scaling", "none", "standard", "range", "robust"),
			integer("powers", 1, 2),
			oneOf("interactions", "no", "yes").when("powers", "2"),
		}},
		{"logistic-cancer", []Parameter{
			double("C", 1e-4, 1e4).log(),
			oneOf("penalty", "l1", "l2", "elasticnet"),
			double("l1_ratio", 0, 1).when("penalty", "elasticnet"),
			oneOf("scaling", "standard", "range", "robust", "quantile"),
			double("tolerance", 1e-4, 1e-1).log(),
			integer("components", 2, 30),
		}},
	}
	problems := make([]*Problem, len(spaces))
	for i, s := range spaces {
		problems[i] = &Problem{
			Name: fmt.Sprintf("model/%s/i%d", s.name, instance), Family: "model", Parameters: s.parameters, Optimum: math.NaN(),
			Evaluate: func(ctx context.Context, p Point, _ *rand.Rand) (Value, error) {
				v, err := evaluate(ctx, s.name, instance, p.Text())
				return Value{v, v}, err
			},
		}
	}
	return problems
}
