// SPDX-License-Identifier: Apache-2.0

package nas_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"diwan.dev/diwan/optimize"
	"diwan.dev/diwan/optimize/nas"
)

// network is a config with six operations.
func network(layers int) nas.Config {
	return nas.Config{
		Layers: layers, Inputs: []int{32, 32, 3}, Outputs: []int{10},
		Operations: []nas.Operation{
			{Type: "convolution", Parameters: []optimize.Parameter{
				optimize.Categorical("filter_size", "5"),
				optimize.Categorical("num_filter", "128"),
				optimize.Categorical("stride", "1", "2"),
			}},
			{Type: "reduction", Parameters: []optimize.Parameter{
				optimize.Categorical("reduction_type", "max_pooling", "avg_pooling"),
				optimize.Int("pool_size", 2, 3),
			}},
		},
	}
}

func TestChoices(t *testing.T) {
	t.Parallel()
	c := network(1)
	c.Operations = append(c.Operations, nas.Operation{Type: "dropout", Parameters: []optimize.Parameter{optimize.Double("rate", 0.1, 0.35).By(0.1)}},
		nas.Operation{Type: "identity"})
	choices, err := c.Choices()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, choice := range choices {
		text := choice.Type
		for _, v := range choice.Parameters {
			text += " " + v.Name + "=" + v.Text
		}
		got = append(got, text)
	}
	want := []string{
		"convolution filter_size=5 num_filter=128 stride=1",
		"convolution filter_size=5 num_filter=128 stride=2",
		"reduction reduction_type=max_pooling pool_size=2",
		"reduction reduction_type=max_pooling pool_size=3",
		"reduction reduction_type=avg_pooling pool_size=2",
		"reduction reduction_type=avg_pooling pool_size=3",
		"dropout rate=0.1",
		"dropout rate=0.2",
		"dropout rate=0.3",
		"identity",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestAssignments holds assignments to the bytes that Katib's service writes
// for the same architecture: json.dumps of Python with ' for ".
func TestAssignments(t *testing.T) {
	t.Parallel()
	space, err := nas.Space(network(3))
	if err != nil {
		t.Fatal(err)
	}
	shown := []optimize.Assignment{
		{Name: "architecture", Value: "[[3], [0, 1], [3, 0, 1]]"},
		{Name: "nn_config", Value: "{'num_layers': 3, 'input_sizes': [32, 32, 3], 'output_sizes': [10], 'embedding': {" +
			"'3': {'opt_id': 3, 'opt_type': 'reduction', 'opt_params': {'reduction_type': 'max_pooling', 'pool_size': 3}}, " +
			"'0': {'opt_id': 0, 'opt_type': 'convolution', 'opt_params': {'filter_size': '5', 'num_filter': '128', 'stride': '1'}}}}"},
	}
	p, err := space.Parse(shown)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(shown, p.Assignments()); diff != "" {
		t.Errorf("assignments (-want +got):\n%s", diff)
	}
	want := []nas.Layer{{Operation: 3}, {Operation: 0, Skips: []bool{true}}, {Operation: 3, Skips: []bool{false, true}}}
	if diff := cmp.Diff(want, nas.Architecture(p, network(3))); diff != "" {
		t.Errorf("architecture (-want +got):\n%s", diff)
	}
}

// TestPoints holds that each architecture is a point, is read back as it is
// shown, and is JSON once the quotes are.
func TestPoints(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		c := network(rapid.IntRange(1, 6).Draw(rt, "layers"))
		c.Operations[0].Parameters[0] = optimize.Categorical("filter_size", rapid.SliceOfNDistinct(
			rapid.StringMatching(`[^'"\\]{0,3}`), 1, 4, rapid.ID).Draw(rt, "list")...)
		space, err := nas.Space(c)
		if err != nil {
			rt.Fatal(err)
		}
		u := make([]float64, space.Len())
		for i := range u {
			u[i] = rapid.Float64Range(0, 1).Draw(rt, "u")
		}
		p := space.Quantile(u)
		shown := p.Assignments()
		again, err := space.Parse(shown)
		if err != nil {
			rt.Fatal(err)
		}
		if diff := cmp.Diff(shown, again.Assignments()); diff != "" {
			rt.Fatalf("it reads back as another:\n%s", diff)
		}
		for _, a := range shown {
			if text := strings.ReplaceAll(a.Value, "'", `"`); !json.Valid([]byte(text)) {
				rt.Fatalf("%s is no JSON: %s", a.Name, text)
			}
		}
	})
}

func TestUnreadableArchitectures(t *testing.T) {
	t.Parallel()
	space, err := nas.Space(network(2))
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		"":                    "list of integer lists",
		"[[0]]":               "has 1 layers",
		"[[0], [1]]":          "layer 2",
		"[[0], [1, 2]]":       "not in its list",
		"[[6], [1, 1]]":       "not in its list",
		"[[0], [1, 1], [2,3]": "list of integer lists",
		"[[0.5], [1, 1]]":     "list of integer lists",
	} {
		_, err := space.Parse([]optimize.Assignment{{Name: nas.ArchitectureName, Value: text}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("architecture %q: got %v, want an error with %q", text, err, want)
		}
	}
	if _, err := space.Parse(nil); err == nil {
		t.Error("a point without architecture is read")
	}
}

func TestBadConfigs(t *testing.T) {
	t.Parallel()
	many := make([]string, 200)
	for i := range many {
		many[i] = strings.Repeat("x", i+1)
	}
	cases := []struct {
		reason string
		change func(*nas.Config)
		want   string
	}{
		{"a network has layers", func(c *nas.Config) { c.Layers = 0 }, "number of layers is 0"},
		{"but not without end", func(c *nas.Config) { c.Layers = 101 }, "number of layers is 101"},
		{"it has an input", func(c *nas.Config) { c.Inputs = nil }, "input sizes are missing"},
		{"and an output", func(c *nas.Config) { c.Outputs = []int{0} }, "output sizes have 0"},
		{"layers do something", func(c *nas.Config) { c.Operations = nil }, "operations are missing"},
		{"which has a name", func(c *nas.Config) { c.Operations[1].Type = "" }, "type is empty"},
		{"and parameters that are valid", func(c *nas.Config) { c.Operations[0].Parameters[0].List = nil }, `parameter "filter_size": list is empty`},
		{"and end", func(c *nas.Config) { c.Operations[0].Parameters[0] = optimize.Double("rate", 0, 1) }, `"rate" has no step`},
		{"soon", func(c *nas.Config) {
			c.Operations[0].Parameters[0], c.Operations[0].Parameters[1] = optimize.Categorical("a", many...), optimize.Categorical("b", many...)
		}, "too many combinations"},
	}
	for _, c := range cases {
		config := network(2)
		c.change(&config)
		if _, err := nas.Space(config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want an error with %q", c.reason, err, c.want)
		}
	}
}
