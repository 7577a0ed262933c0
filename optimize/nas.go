// SPDX-License-Identifier: Apache-2.0

package optimize

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"

	"diwan.dev/diwan/optimize/internal/controller"
	"diwan.dev/diwan/optimize/internal/random"
	"diwan.dev/diwan/optimize/internal/settings"
)

// ENASConfig configures [NewENAS]. The defaults are Katib's, which are the
// paper's except for the learning rate and the weights of skips.
type ENASConfig struct {
	// Hidden is the number of units of the controller's LSTM, at least 1.
	Hidden int
	// Temperature, greater than 0, divides logits: the higher, the longer the
	// controller explores. 0 does not divide.
	Temperature float64
	// Tanh, greater than 0, bounds logits, so that no choice becomes certain:
	// one of two is at most exp(2·Tanh) times as likely as the other. 0 does not
	// bound.
	Tanh float64
	// EntropyWeight, from 0, is the weight of the entropy of the choices beside
	// an advantage, which is of the order of 1.
	EntropyWeight float64
	// BaselineDecay, from 0 to 1, is how much a reward counts in the baseline
	// beside the next: 1 is the mean of all rewards.
	BaselineDecay float64
	// LearningRate, greater than 0 and at most 1, is the step of Adam for each
	// lesson.
	LearningRate float64
	// SkipTarget, from 0 to 1, is the target probability of a skip
	// connection, and SkipWeight, from 0, the weight of the divergence from
	// it.
	SkipTarget, SkipWeight float64
	// TrainSteps, at least 1, is how many lessons the controller has after each
	// result.
	TrainSteps int
}

// DefaultENASConfig is Katib's.
func DefaultENASConfig() ENASConfig {
	return ENASConfig{
		Hidden: 64, Temperature: 5, Tanh: 2.25, EntropyWeight: 1e-5, BaselineDecay: 0.999,
		LearningRate: 5e-5, SkipTarget: 0.4, SkipWeight: 0.8, TrainSteps: 50,
	}
}

// NewENAS returns the sampler whose points are the architectures that a
// recurrent network writes down, which learns by reinforcement which ones are
// good (Pham, Guan, Zoph, Le and Dean, "Efficient neural architecture search
// via parameter sharing", 2018). The space is one that
// [diwan.dev/diwan/optimize/nas.Space] returns, or of the same form: for each
// layer, from 0, a categorical parameter whose list is the operations, the same
// for all layers, and then one of two values for each earlier layer.
//
// Rewards are the ranks of the values, as the quantiles of a normal
// distribution, so that neither their scale nor a single one that is far off
// matters; trials that failed are the worst. After each result, in the order of
// the suggestions, the controller has some lessons of REINFORCE, each on one of
// the architectures tried so far; with a low learning rate several make one
// longer step of Adam, in the direction of their mean. An architecture that is
// worse than the baseline counts the less the less likely the controller is to
// make it again (Le Roux et al., "Tapered off-policy REINFORCE",
// arXiv:2503.14286), which keeps it from being pushed away without end.
func NewENAS(space *Space, seed uint64, c ENASConfig) (Sampler, error) {
	if err := space.check(); err != nil {
		return nil, err
	}
	layers, err := architectureLayers(space)
	if err != nil {
		return nil, err
	}
	if err := c.validate(); err != nil {
		return nil, err
	}
	return &enas{seed: seed, learner: controller.Learner{
		Config: controller.Config{
			Layers: layers, Operations: len(space.axes[0].List), Hidden: c.Hidden,
			Temperature: c.Temperature, Tanh: c.Tanh, EntropyWeight: c.EntropyWeight,
			SkipTarget: math.Min(math.Max(c.SkipTarget, 0.001), 0.999), SkipWeight: c.SkipWeight,
			LearningRate: c.LearningRate,
		},
		Seed: seed, BaselineDecay: c.BaselineDecay, Lessons: c.TrainSteps,
	}}, nil
}

type enas struct {
	seed uint64

	mu      sync.Mutex
	learner controller.Learner
}

// architectureLayers returns how many layers the architectures of a space have.
func architectureLayers(space *Space) (int, error) {
	layers := 0
	for controller.Decisions(layers) < space.Len() {
		layers++
	}
	wrong := controller.Decisions(layers) != space.Len()
	for i := 0; i < space.Len() && !wrong; i++ {
		a, l := &space.axes[i], 0
		for controller.Decisions(l+1) <= i {
			l++
		}
		choices := 2
		if i == controller.Decisions(l) {
			choices = len(space.axes[0].List)
		}
		wrong = a.Kind != KindCategorical || a.Parent != "" || len(a.List) != choices
	}
	if wrong {
		return 0, fmt.Errorf("space is not an architecture space: want that of nasConfig, built by package nas")
	}
	return layers, nil
}

func (c ENASConfig) validate() error {
	for _, s := range []struct {
		name string
		ok   bool
		want string
	}{
		{"hidden", c.Hidden >= 1, "a number from 1"},
		{"temperature", c.Temperature >= 0, "a number from 0"},
		{"tanh", c.Tanh >= 0, "a number from 0"},
		{"entropy weight", c.EntropyWeight >= 0, "a number from 0"},
		{"baseline decay", c.BaselineDecay >= 0 && c.BaselineDecay <= 1, "a number from 0 to 1"},
		{"learning rate", c.LearningRate > 0 && c.LearningRate <= 1, "a number greater than 0 and at most 1"},
		{"skip target", c.SkipTarget >= 0 && c.SkipTarget <= 1, "a number from 0 to 1"},
		{"skip weight", c.SkipWeight >= 0, "a number from 0"},
		{"train steps", c.TrainSteps >= 1, "a number from 1"},
	} {
		if !s.ok {
			return fmt.Errorf("%s of the controller is out of range: want %s", s.name, s.want)
		}
	}
	return nil
}

func (e *enas) Sample(ctx context.Context, h *History) (Point, error) {
	if exhausted(h) {
		return Point{}, ErrExhausted
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	policy, err := e.learner.Learn(ctx, outcomes(h))
	if err != nil {
		return Point{}, err
	}
	numbers := random.New(e.seed, uint64(h.Len()))
	return novel(h, draws, func() Point {
		p := h.space.point()
		for i, d := range policy.Sample(numbers.Float) {
			p.at[i] = float64(d)
		}
		return p
	})
}

// outcomes returns what came of the architectures of a history, known results
// first and then by index.
func outcomes(h *History) []controller.Outcome {
	var outcomes []controller.Outcome
	for _, trials := range [][]Trial{h.known, h.trials} {
		for _, t := range trials {
			if t.State == Pending || t.State == Lost {
				continue
			}
			o := controller.Outcome{Decisions: make([]int, len(t.Point.at)), Loss: math.Inf(1)}
			for i, at := range t.Point.at {
				o.Decisions[i] = int(at)
			}
			if len(t.Values) > 0 && t.Feasible() {
				o.Loss = h.Direction().loss(t.Value())
			}
			outcomes = append(outcomes, o)
		}
	}
	return outcomes
}

// numberUnlessNone returns a setting that is a number, or 0 for None.
func numberUnlessNone(s *settings.Reader, name string, byDefault float64, in settings.Range) float64 {
	if s.Text(name, "") == "None" {
		return 0
	}
	return s.Float(name, byDefault, in)
}

func enasAlgorithm() maker {
	const prefix = "controller_"
	names := []string{randomState}
	for _, name := range []string{"hidden_size", "temperature", "tanh_const", "entropy_weight", "baseline_decay",
		"learning_rate", "skip_target", "skip_weight", "train_steps", "log_every_steps"} {
		names = append(names, prefix+name)
	}
	return maker{
		settings: slices.Sorted(slices.Values(names)),
		build: func(s *settings.Reader, p Problem) (Sampler, error) {
			c := DefaultENASConfig()
			positiveUnit := settings.Range{Holds: func(v float64) bool { return v > 0 && v <= 1 }, Text: "greater than 0 and at most 1"}
			c.Hidden = s.Int(prefix+"hidden_size", c.Hidden, settings.UpTo(1, mostHidden))
			c.Temperature = numberUnlessNone(s, prefix+"temperature", c.Temperature, settings.Positive)
			c.Tanh = numberUnlessNone(s, prefix+"tanh_const", c.Tanh, settings.Positive)
			c.EntropyWeight = numberUnlessNone(s, prefix+"entropy_weight", c.EntropyWeight, settings.NotNegative)
			c.BaselineDecay = s.Float(prefix+"baseline_decay", c.BaselineDecay, settings.UnitInterval)
			c.LearningRate = s.Float(prefix+"learning_rate", c.LearningRate, positiveUnit)
			c.SkipTarget = s.Float(prefix+"skip_target", c.SkipTarget, settings.UnitInterval)
			c.SkipWeight = numberUnlessNone(s, prefix+"skip_weight", c.SkipWeight, settings.NotNegative)
			c.TrainSteps = s.Int(prefix+"train_steps", c.TrainSteps, settings.UpTo(1, mostLessons))
			s.Int(prefix+"log_every_steps", 1, settings.AtLeast(1)) // Katib's logs; nothing is logged here
			return NewENAS(p.Space, p.Seed, c)
		},
	}
}

// OneShot is the name of the only parameter, with one value, of a space for
// darts, as [diwan.dev/diwan/optimize/nas.OneShot] makes it.
const OneShot = "one-shot"

// dartsAlgorithm is a search that its single trial does itself. Its settings
// are the trial's and in the point of the space, whose creator has checked
// them.
func dartsAlgorithm() maker {
	return maker{
		open: true,
		build: func(_ *settings.Reader, p Problem) (Sampler, error) {
			if err := p.Space.check(); err != nil {
				return nil, err
			}
			if n, finite := p.Space.Size(); !finite || n != 1 || p.Space.Parameter(0).Name != OneShot {
				return nil, fmt.Errorf("space is not a one-shot search space: want that of nasConfig, built by package nas")
			}
			return oneShot{}, nil
		},
	}
}

type oneShot struct{}

func (oneShot) Sample(ctx context.Context, h *History) (Point, error) {
	p, err := unseen(h, 0)
	if err != nil {
		return Point{}, err
	}
	return p, ctx.Err()
}
