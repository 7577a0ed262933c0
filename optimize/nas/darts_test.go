// SPDX-License-Identifier: Apache-2.0

package nas_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/nas"
)

// supernet is a config for a one-shot search.
func supernet() nas.Config {
	return nas.Config{Layers: 3, Operations: []nas.Operation{
		{Type: "separable_convolution", Parameters: []optimize.Parameter{optimize.Categorical("filter_size", "3", "5")}},
		{Type: "skip_connection", Parameters: []optimize.Parameter{optimize.Int("none", 1, 2)}},
		{Type: "none"},
		{Type: "max_pooling", Parameters: []optimize.Parameter{optimize.Discrete("filter_size", 3), optimize.Int("stride", 1, 2)}},
	}}
}

// TestOneShot holds assignments to the bytes that Katib's service writes.
func TestOneShot(t *testing.T) {
	t.Parallel()
	space, err := nas.OneShot(supernet(), []optimize.Assignment{
		{Name: "w_lr", Value: "1e-2"}, {Name: "batch_size", Value: "None"}, {Name: "mine", Value: `say "é"`},
	})
	if err != nil {
		t.Fatal(err)
	}
	sampler, err := optimize.New("darts", map[string]string{"w_lr": "1e-2", "mine": "", "random_state": "1"}, optimize.Problem{Space: space})
	if err != nil {
		t.Fatal(err)
	}
	h := optimize.NewHistory(space)
	p, err := sampler.Sample(t.Context(), h)
	if err != nil {
		t.Fatal(err)
	}
	want := []optimize.Assignment{
		{Name: "algorithm-settings", Value: `{'num_epochs': 50, 'w_lr': '1e-2', 'w_lr_min': 0.001, 'w_momentum': 0.9, 'w_weight_decay': 0.0003, ` +
			`'w_grad_clip': 5.0, 'alpha_lr': 0.0003, 'alpha_weight_decay': 0.001, 'batch_size': null, 'num_workers': 4, 'init_channels': 16, ` +
			`'print_step': 50, 'num_nodes': 4, 'stem_multiplier': 3, 'mine': 'say \'\u00e9\''}`},
		{Name: "search-space", Value: "['separable_convolution_3x3', 'separable_convolution_5x5', 'skip_connection', 'none', 'max_pooling_3x3']"},
		{Name: "num-layers", Value: "3"},
	}
	if diff := cmp.Diff(want, p.Assignments()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if again, err := space.Parse(want); err != nil || again.String() != p.String() {
		t.Errorf("it reads back as %v, %v", again, err)
	}
	h.Add(p)
	if p, err := sampler.Sample(t.Context(), h); !errors.Is(err, optimize.ErrExhausted) {
		t.Errorf("a second suggestion %v, %v", p, err)
	}
}

func TestBadOneShots(t *testing.T) {
	t.Parallel()
	setting := func(name, value string) []optimize.Assignment {
		return []optimize.Assignment{{Name: name, Value: value}}
	}
	cases := []struct {
		reason   string
		settings []optimize.Assignment
		change   func(*nas.Config)
		want     string
	}{
		{"epochs are counted", setting("num_epochs", "1.5"), nil, `setting num_epochs is "1.5": want an integer from 1`},
		{"from 1", setting("num_epochs", "0"), nil, "num_epochs"},
		{"a rate is not below 0", setting("w_lr_min", "-1"), nil, `setting w_lr_min is "-1": want a number from 0`},
		{"and is a number", setting("alpha_lr", "nan"), nil, "alpha_lr"},
		{"None is for batches alone", setting("num_workers", "None"), nil, "num_workers"},
		{"there are layers", nil, func(c *nas.Config) { c.Layers = 0 }, "number of layers is 0"},
		{"and operations", nil, func(c *nas.Config) { c.Operations = nil }, "operations are missing"},
		{"whose sizes are listed", nil, func(c *nas.Config) { c.Operations[3].Parameters = c.Operations[3].Parameters[1:] }, `parameter "stride" is int`},
	}
	for _, c := range cases {
		config := supernet()
		if c.change != nil {
			c.change(&config)
		}
		if _, err := nas.OneShot(config, c.settings); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
		}
	}
	space, err := optimize.NewSpace(optimize.Int("n", 1, 1))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := optimize.New("darts", nil, optimize.Problem{Space: space}); err == nil || !strings.Contains(err.Error(), "nasConfig") {
		t.Errorf("darts on another space: got %v", err)
	}
}
