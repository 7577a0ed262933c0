// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"diwan.dev/diwan/optimize/internal/settings"
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

// Problem is the problem that an algorithm searches.
type Problem struct {
	Space *Space
	// Seed is used where the settings have no random_state.
	Seed uint64
	// Budget is the search's budget, as far as known. It may change when the
	// search resumes after an interruption.
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
//   - random. Setting random_state, an integer from 0.
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
//   - cmaes, for at least one parameter that is not categorical. Settings
//     random_state; sigma, of the range of a parameter (1/6, which is also what 0
//     means); restart_strategy none or None, ipop (the default) or bipop; and beyond Katib's, popsize, separable, with_margin and
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
	sampler, wrong, err := build(name, values, p)
	if err := errors.Join(wrong, err); err != nil {
		return nil, err
	}
	return made{sampler, name, maps.Clone(values), p.Seed, p.Budget}, nil
}

// build creates a sampler. Of the errors, wrong is about the name and the
// settings, and err about the rest.
func build(name string, values map[string]string, p Problem) (sampler Sampler, wrong, err error) {
	m, err := find(name)
	if err != nil {
		return nil, err, nil
	}
	if err := m.checkNames(name, values); err != nil {
		return nil, err, nil
	}
	s := settings.New(values)
	p.Seed = s.Seed(randomState, p.Seed)
	if sampler, err = m.build(s, p); err == nil {
		err = p.Space.check()
	}
	if err != nil {
		err = fmt.Errorf("algorithm %s: %w", name, err)
	}
	if wrong = s.Err(); wrong != nil {
		wrong = fmt.Errorf("algorithm %s: %w", name, wrong)
	}
	return sampler, wrong, err
}

// CheckSettings checks that an algorithm can search a problem with some
// settings and its budget. The rules are Katib's. For a problem without a
// space only the name and the settings are checked.
func CheckSettings(name string, values map[string]string, p Problem) error {
	_, wrong, err := build(name, values, p)
	if p.Space == nil {
		return wrong
	}
	if err := errors.Join(wrong, err); err != nil {
		return err
	}
	m, err := find(name)
	if err != nil || m.check == nil {
		return err
	}
	if err := m.check(p); err != nil {
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
	build func(s *settings.Reader, p Problem) (Sampler, error)
	// check returns what build does not, about the budget; nil for nothing.
	check func(p Problem) error
}

const randomState = "random_state"

// The greatest numbers of what takes memory and time with each suggestion.
const (
	mostCandidates = 100_000
	mostPopulation = 10_000
	mostHidden     = 1_000
	mostLessons    = 100_000
)

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

// ForAlgorithm returns the parameters of a space as an algorithm with some
// settings takes them, which are not always quite what the user declared: Katib
// ignores the range of the parameter that is a resource, and its examples have
// one of a single value there. Where that parameter is a double or int whose
// range is a single value or does not contain r_l, the range is extended so that
// it reaches from r_min, or 1, to r_l. Settings that are wrong change nothing;
// New says so.
func ForAlgorithm(name string, values map[string]string, parameters []Parameter) []Parameter {
	if m, err := find(name); err != nil || !slices.Contains(m.settings, "r_l") {
		return parameters
	}
	number := func(setting string, byDefault float64) float64 {
		v, err := strconv.ParseFloat(strings.TrimSpace(values[setting]), 64)
		if err != nil || !(v > 0) || v > maxInt {
			return byDefault
		}
		return v
	}
	most := number("r_l", 0)
	i := slices.IndexFunc(parameters, func(p Parameter) bool { return p.Name == values["resource_name"] })
	if i < 0 || most == 0 || (parameters[i].Kind != KindInt && parameters[i].Kind != KindDouble) {
		return parameters
	}
	parameters = slices.Clone(parameters)
	p := &parameters[i]
	if p.Min < p.Max && p.Min <= most && p.Max >= most {
		return parameters
	}
	least := number("r_min", math.Min(1, most))
	if p.Kind == KindInt {
		most, least = math.Floor(most), math.Floor(least)
	}
	p.Min, p.Max = math.Min(p.Min, least), math.Max(most, p.Max)
	if p.Distribution == Normal || p.Distribution == LogNormal {
		p.Distribution = Uniform // the range was its mean and deviation
	}
	return parameters
}
