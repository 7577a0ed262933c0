// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Algorithm is a sampler that can be asked for by name.
type Algorithm struct {
	// Name is the algorithm's, as in Katib.
	Name string
	// Settings are the names of its settings, sorted.
	Settings []string
}

// Budget bounds a search. A zero field does not bound.
type Budget struct {
	// MaxTrials is how many suggestions there may be, Parallel how many of
	// them may be pending at once.
	MaxTrials, Parallel int
}

// Problem is what an algorithm is to search.
type Problem struct {
	Space *Space
	// Seed is used where the settings have no random_state.
	Seed uint64
	// Budget is what is known of how long the search is to be. It may differ
	// when the search goes on after an interruption.
	Budget Budget
}

// ErrUnknown is wrapped by errors about a name that no algorithm has.
var ErrUnknown = errors.New("unknown algorithm")

// Known returns the algorithms by name.
func Known() []Algorithm {
	makers := makers()
	known := make([]Algorithm, 0, len(makers))
	for _, name := range slices.Sorted(maps.Keys(makers)) {
		m := makers[name]
		known = append(known, Algorithm{Name: name, Settings: slices.Sorted(slices.Values(m.settings))})
	}
	return known
}

// New returns the sampler of an algorithm for one problem.
//
//   - random. Setting random_state, a whole number from 0.
//
//   - grid. Each double needs a step. Without the setting random_state it goes
//     in the order of [NewGrid], with it in that of [NewShuffledGrid].
//
//   - sobol. Setting random_state; setting scramble, true (the default) for
//     [NewSobol] or false for [NewPlainSobol]. Katib's has no settings.
//
//   - halton, with the settings of sobol.
//
//   - tpe. Settings random_state; n_EI_candidates, or as Optuna writes it
//     n_ei_candidates (24), from 1; n_startup_trials (10), from 0; prior_weight
//     (1), greater than 0; and gamma, between 0 and 1, which if given makes the
//     best gamma·√n of n trials good, as in hyperopt. See [TPEConfig].
//
//   - multivariate-tpe. Settings random_state, n_startup_trials (10) and
//     n_ei_candidates (24), from 0.
//
//   - cmaes, for at least two doubles or ints. Settings random_state; sigma, of
//     the range of a parameter (1/6); restart_strategy none, ipop (the default)
//     or bipop; and beyond Katib's, popsize, separable, with_margin and
//     surrogate: see [CMAESConfig].
//
//   - pbt. Settings suggestion_trial_dir, n_population, from 5, and
//     truncation_threshold, all of which are needed; resample_probability and
//     random_state: see [PBTConfig].
//
//   - nsga2. Settings random_state, population_size (50), crossover_probability
//     (0.9), swapping_probability (0.5), mutation_probability (one in as many
//     as there are parameters): see [NSGA2Config].
//
//   - regularized-evolution. Settings random_state, population_size (a fifth of
//     the trials, from 10 to 100), sample_size (a quarter of that): see
//     [EvolutionConfig].
//
//   - enas, for a space of package nas. Settings controller_hidden_size,
//     controller_temperature, controller_tanh_const, controller_entropy_weight,
//     controller_baseline_decay, controller_learning_rate,
//     controller_skip_target, controller_skip_weight and controller_train_steps
//     are the fields of [ENASConfig]; four of them may be None, which is 0.
//     controller_log_every_steps has no effect.
//
//   - darts, for a one-shot space of package nas, which has the settings.
//
//   - hyperband ([HyperbandConfig]): resource_name and r_l, both required; r_min,
//     eta, random_state.
//
//   - asha ([ASHAConfig]): those of hyperband; brackets; sampler, which is where
//     new configurations come from: random (the default) or multivariate-tpe.
//
//   - bohb ([BOHBConfig]): those of hyperband; min_points_in_model (one more than
//     there are other parameters), from 1; random_fraction (1/3); top_n_percent
//     (15), the part of the good ones; num_samples (64), the candidates.
//
//   - bayesianoptimization. Settings base_estimator, GP (the default, [NewGP])
//     or RF, ET or GBRT ([NewForest]); n_initial_points (10); acq_func, LogEI
//     (the default), EI, PI, LCB, gp_hedge, EIps or PIps; acq_optimizer, auto
//     (the default), lbfgs or sampling; random_state.
//
// An error wraps [ErrUnknown] where the name is the cause.
func New(name string, values map[string]string, p Problem) (Sampler, error) {
	m, err := find(name)
	if err != nil {
		return nil, err
	}
	if err := m.checkNames(name, values); err != nil {
		return nil, err
	}
	s := &settings{values: values}
	p.Seed = s.seed(p.Seed)
	sampler, err := m.build(s, p)
	if err := errors.Join(s.err(), err); err != nil {
		return nil, fmt.Errorf("algorithm %s: %w", name, err)
	}
	return sampler, nil
}

// CheckSettings returns what would keep an algorithm from searching a problem
// with some settings, its budget included, or nil. The rules are Katib's.
func CheckSettings(name string, values map[string]string, p Problem) error {
	if _, err := New(name, values, p); err != nil {
		return err
	}
	m, err := find(name)
	if err != nil || m.check == nil {
		return err
	}
	s := &settings{values: values}
	if err := errors.Join(m.check(s, p), s.err()); err != nil {
		return fmt.Errorf("algorithm %s: %w", name, err)
	}
	return nil
}

// maker is what New knows of an algorithm.
type maker struct {
	settings []string
	open     bool // it takes any other setting too
	// build makes the sampler. Settings that are wrong are noted in s, other
	// problems returned.
	build func(s *settings, p Problem) (Sampler, error)
	// check returns what build does not, about the budget; nil for nothing.
	check func(s *settings, p Problem) error
}

const randomState = "random_state"

func makers() map[string]maker {
	return map[string]maker{
		"random":               randomAlgorithm(),
		"grid":                 gridAlgorithm(),
		"sobol":                sobolAlgorithm(),
		"halton":               haltonAlgorithm(),
		"tpe":                  tpeAlgorithm(),
		"multivariate-tpe":     multivariateTPEAlgorithm(),
		"auto":                 autoAlgorithm(),
		"bayesianoptimization": bayesianAlgorithm(),
		"cmaes":                cmaesAlgorithm(),
		"nsga2":                nsga2Algorithm(),
		"hyperband":            hyperbandAlgorithm(),
		"asha":                 ashaAlgorithm(),
		"bohb":                 bohbAlgorithm(),
		"pbt":                  pbtAlgorithm(),
		"enas":                 enasAlgorithm(),
		"darts":                dartsAlgorithm(),

		"regularized-evolution": evolutionAlgorithm(),
	}
}

func find(name string) (maker, error) {
	makers := makers()
	m, ok := makers[name]
	if !ok {
		return m, fmt.Errorf("%w %q: want one of %s", ErrUnknown, name, strings.Join(slices.Sorted(maps.Keys(makers)), ", "))
	}
	return m, nil
}

func (m maker) checkNames(name string, values map[string]string) error {
	for _, setting := range slices.Sorted(maps.Keys(values)) {
		if !m.open && !slices.Contains(m.settings, setting) {
			return fmt.Errorf("algorithm %s: unknown setting %q: want one of %s", name, setting, strings.Join(m.settings, ", "))
		}
	}
	return nil
}
