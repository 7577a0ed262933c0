// SPDX-License-Identifier: Apache-2.0

package nas

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"diwan.dev/diwan/optimize"
)

// The assignments of a one-shot search, named as in Katib.
const (
	// SettingsName names the settings of the search, such as {'w_lr': 0.025}.
	SettingsName = "algorithm-settings"
	// PrimitivesName names the operations, such as ['max_pooling_3x3'].
	PrimitivesName = "search-space"
	// LayersName names the number of layers.
	LayersName = "num-layers"
)

// dartsSetting is a setting of DARTS (Liu, Simonyan and Yang, "DARTS:
// differentiable architecture search", 2019, appendix A.1).
type dartsSetting struct {
	name, byDefault string
	whole           bool
	least           float64
}

func dartsSettings() []dartsSetting {
	return []dartsSetting{
		{"num_epochs", "50", true, 1},
		{"w_lr", "0.025", false, 0},
		{"w_lr_min", "0.001", false, 0},
		{"w_momentum", "0.9", false, 0},
		{"w_weight_decay", "0.0003", false, 0},
		{"w_grad_clip", "5.0", false, 0},
		{"alpha_lr", "0.0003", false, 0},
		{"alpha_weight_decay", "0.001", false, 0},
		{"batch_size", "128", true, 1},
		{"num_workers", "4", true, 0},
		{"init_channels", "16", true, 1},
		{"print_step", "50", true, 1},
		{"num_nodes", "4", true, 1},
		{"stem_multiplier", "3", true, 1},
	}
}

// OneShot returns the space with one point for a trial that searches by itself,
// such as DARTS. The trial gets the number of layers, the operations, and the
// settings of DARTS: Katib's defaults, then those given, as strings. Unknown
// settings are passed on; None means none, which of the settings of DARTS only
// batch_size may be.
//
// Of an operation the first parameter says the sizes of its filter: its values
// make a primitive each, such as separable_convolution_3x3. The operation
// skip_connection, and any without parameters, is one primitive.
func OneShot(c Config, settings []optimize.Assignment) (*optimize.Space, error) {
	primitives, err := c.primitives()
	var problems []error
	if c.Layers < 1 || c.Layers > MaxLayers {
		problems = append(problems, fmt.Errorf("number of layers is %d: want from 1 to %d", c.Layers, MaxLayers))
	}
	problems = append(problems, err, checkDarts(settings))
	if err := errors.Join(problems...); err != nil {
		return nil, err
	}
	shown := []optimize.Assignment{
		{Name: SettingsName, Value: showDarts(settings)},
		{Name: PrimitivesName, Value: "[" + strings.Join(primitives, ", ") + "]"},
		{Name: LayersName, Value: strconv.Itoa(c.Layers)},
	}
	only := optimize.Categorical(optimize.OneShot, "all")
	space, err := optimize.NewSpace(only)
	if err != nil {
		return nil, fmt.Errorf("cannot create space of one point: %w", err)
	}
	return space.Presented(optimize.Presentation{
		Write: func([]optimize.Assignment) []optimize.Assignment { return append([]optimize.Assignment(nil), shown...) },
		Read: func(given []optimize.Assignment) ([]optimize.Assignment, error) {
			for _, a := range given {
				if a.Name == PrimitivesName {
					return []optimize.Assignment{{Name: only.Name, Value: only.List[0]}}, nil
				}
			}
			return nil, errors.New("there is no " + PrimitivesName)
		},
	}), nil
}

// primitives returns the quoted names of what an edge of the network may be.
func (c Config) primitives() ([]string, error) {
	if _, err := c.Choices(); err != nil {
		return nil, err
	}
	var names []string
	for i, o := range c.Operations {
		if o.Type == "skip_connection" || len(o.Parameters) == 0 {
			names = append(names, quote(o.Type))
			continue
		}
		sizes := o.Parameters[0].List
		if len(sizes) == 0 {
			return nil, fmt.Errorf("operation %d, %q: parameter %q is %s: want a list of the sizes of its filter",
				i+1, o.Type, o.Parameters[0].Name, o.Parameters[0].Kind)
		}
		for _, size := range sizes {
			names = append(names, quote(fmt.Sprintf("%s_%sx%s", o.Type, size, size)))
		}
	}
	return names, nil
}

func checkDarts(given []optimize.Assignment) error {
	known := map[string]dartsSetting{}
	for _, s := range dartsSettings() {
		known[s.name] = s
	}
	var problems []error
	for _, a := range given {
		if s, ok := known[a.Name]; ok && !s.allows(a.Value) {
			kind := "a number"
			if s.whole {
				kind = "an integer"
			}
			problems = append(problems, fmt.Errorf("setting %s is %q: want %s from %v", a.Name, a.Value, kind, s.least))
		}
	}
	return errors.Join(problems...)
}

func (s dartsSetting) allows(text string) bool {
	if s.name == "batch_size" && text == "None" {
		return true
	}
	text = strings.TrimSpace(text)
	if s.whole {
		n, err := strconv.Atoi(text)
		return err == nil && float64(n) >= s.least
	}
	v, err := strconv.ParseFloat(text, 64)
	return err == nil && v >= s.least && !math.IsInf(v, 0)
}

// showDarts writes the settings as Katib does: defaults as numbers, those that
// were given as texts, in the order of Katib's list and then as they come.
func showDarts(given []optimize.Assignment) string {
	values := map[string]string{}
	var names []string
	for _, s := range dartsSettings() {
		names, values[s.name] = append(names, s.name), s.byDefault
	}
	for _, a := range given {
		if _, ok := values[a.Name]; !ok {
			names = append(names, a.Name)
		}
		if values[a.Name] = quote(a.Value); a.Value == "None" {
			values[a.Name] = "null"
		}
	}
	for i, name := range names {
		names[i] = quote(name) + ": " + values[name]
	}
	return "{" + strings.Join(names, ", ") + "}"
}
