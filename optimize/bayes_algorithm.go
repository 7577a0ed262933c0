// SPDX-License-Identifier: Apache-2.0

package optimize

// bayesianAlgorithm is Katib's bayesianoptimization, which is scikit-optimize's
// Optimizer:
//
//   - base_estimator: GP (the default), RF, ET or GBRT;
//   - n_initial_points: 10;
//   - acq_func: LogEI (the default), EI, PI, LCB, gp_hedge, and EIps and PIps,
//     which are EI and PI because what a trial takes is not known;
//   - acq_optimizer: auto or lbfgs, which climb where there is a gradient, or
//     sampling, which compares candidates alone;
//   - random_state.
func bayesianAlgorithm() maker {
	return maker{
		settings: []string{"base_estimator", "n_initial_points", "acq_func", "acq_optimizer", randomState},
		build: func(s *settings, p Problem) (Sampler, error) {
			c := DefaultGPConfig()
			c.InitialPoints = s.int("n_initial_points", c.InitialPoints, notNegative)
			c.Acquisition = acquisitions[s.choice("acq_func", "LogEI", "EI", "PI", "LCB", "gp_hedge", "EIps", "PIps")]
			c.Climb = s.choice("acq_optimizer", "auto", "lbfgs", "sampling") != "sampling"
			estimator := s.choice("base_estimator", "GP", "RF", "ET", "GBRT")
			if err := s.err(); err != nil {
				return nil, nil
			}
			if estimator == "GP" {
				return NewGP(p.Space, p.Seed, c)
			}
			trees := DefaultForestConfig()
			trees.InitialPoints, trees.Acquisition, trees.Kind = c.InitialPoints, c.Acquisition, estimators[estimator]
			return NewForest(p.Space, p.Seed, trees)
		},
	}
}

var (
	acquisitions = map[string]Acquisition{
		"LogEI": LogEI, "EI": LogEI, "EIps": LogEI, "PI": PI, "PIps": PI, "LCB": LCB, "gp_hedge": Hedge,
	}
	estimators = map[string]ForestKind{"RF": RandomForest, "ET": ExtraTrees, "GBRT": GradientBoosting}
)
