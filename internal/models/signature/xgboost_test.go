// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

// xgboostJSON is a model with these trees.
func xgboostJSON(param, trees string, count int) string {
	return fmt.Sprintf(`{"learner":{"learner_model_param":%s,"objective":{"name":"reg:squarederror"},`+
		`"gradient_booster":{"name":"gbtree","model":{"gbtree_model_param":{"num_trees":"%d"},"trees":[%s]}}},"version":[3,1,0]}`, param, count, trees)
}

func TestHostileXGBoost(t *testing.T) {
	t.Parallel()
	const tree = `{"tree_param":{"num_nodes":"3"},"left_children":[1,-1,-1],"split_conditions":[NaN,Infinity,-1E-3]}`
	const param = `{"num_feature":"4","num_class":"0"}`
	file := func(text string) fstest.MapFS { return one("m.json", []byte(text)) }
	ubj := func(text string) fstest.MapFS { return one("m.ubj", []byte(text)) }
	learner := "{L\x00\x00\x00\x00\x00\x00\x00\x07learner"
	refuse(t, []hostile{
		{name: "no learner", files: file(`{"learner":1,"version":[]}`), want: "no learner"},
		{name: "features", files: file(xgboostJSON(`{"num_feature":"-4"}`, tree, 1)), want: `num_feature is "-4"`},
		{name: "features overflow", files: file(xgboostJSON(`{"num_feature":"99999999999999999999"}`, tree, 1)), want: "num_feature is"},
		{name: "classes", files: file(xgboostJSON(`{"num_feature":"4","num_class":"-1"}`, tree, 1)), want: "num_class is -1"},
		{name: "trees", files: file(xgboostJSON(param, tree, 1000000000)), want: `has 1 trees and claims "1000000000"`},
		{name: "nodes", files: file(xgboostJSON(param, strings.ReplaceAll(tree, `"3"`, `"-3"`), 1)), want: `tree 0 has "-3" nodes`},
		{name: "depth in what is skipped", files: file(xgboostJSON(param, `{"x":`+strings.Repeat("[", 10000), 1)), limit: "Depth"},
		{name: "truncated", files: file(xgboostJSON(param, tree, 1)[:200]), want: "ends too early"},
		{name: "trailing", files: file(xgboostJSON(param, tree, 1) + "{}"), want: "follows the end"},
		{name: "twice", files: file(`{"learner":{},"learner":{},"version":1}`), want: "occurs twice"},
		{name: "zeros", files: file(`{"learner":` + strings.Repeat("\x00", 100) + `"gradient_booster"`), want: "neither a number"},
		{name: "names", files: file(`{"learner":{"feature_names":["a"],"learner_model_param":` + param + `,"gradient_booster":{"name":"gblinear"}}}`), want: "names 1 features and has 4"},
		{name: "binary", files: one("m.xgboost", []byte("binf\x00\x00\x00\x3f")), want: "old binary format"},
		{name: "binary without magic", files: one("m.deprecated", []byte("\x00\x00\x00\x3f\x1e\x00\x00\x00")), want: "old binary format"},
		{name: "ubj length", files: ubj("{L\x7f\xff\xff\xff\xff\xff\xff\xff"), want: "more than the rest"},
		{name: "ubj negative length", files: ubj("{L\xff\xff\xff\xff\xff\xff\xff\xff"), want: "a length is -1"},
		{name: "ubj length type", files: ubj("{S"), want: "type of a length"},
		{name: "ubj array", files: ubj(learner + "[$d#L\x00\x00\x00\xff\x00\x00\x00\x00"), want: "claims 1095216660480 items"},
		{name: "ubj array of nothing", files: ubj(learner + "[$Z#L\x00\x00\x00\xff\x00\x00\x00\x00]"), limit: "Memory"},
		{name: "ubj object", files: ubj(learner + "{#L\x00\x00\x00\xff\x00\x00\x00\x00"), want: "claims 1095216660480 items"},
		{name: "ubj type without number", files: ubj(learner + "[$d["), want: "no number of items"},
		{name: "ubj depth", files: ubj(learner + strings.Repeat("[", 10000)), limit: "Depth"},
		{name: "ubj depth by type", files: ubj(learner + strings.Repeat("[$[#i\x01", 10000)), limit: "Depth"},
		{name: "ubj truncated", files: ubj(learner + "{"), want: "ends too early"},
		{name: "ubj type", files: ubj(learner + "?"), want: "no type of a value"},
		{name: "ubj trailing", files: ubj("{}x"), want: "follows the end"},
	})
	_, err := Read(t.Context(), one("m.model", []byte("binf\x00\x00\x00\x3f")), "m.model", Options{})
	if !errors.Is(err, ErrUnsupported) {
		t.Errorf("the old format: %v, want ErrUnsupported", err)
	}
	sig, err := Read(t.Context(), file(xgboostJSON(param, tree, 1)), "m.json", Options{})
	if err != nil || sig.Trees.Nodes != 3 {
		t.Errorf("a model with NaN: %v, %v", err, sig)
	}
}

// TestTreesAreNotKept reads a model of 10 MB of trees in little memory.
func TestTreesAreNotKept(t *testing.T) {
	const trees = 100
	tree := `{"tree_param":{"num_nodes":"3"},"left_children":[` + strings.Repeat("1,", 50_000) + `1]}`
	data := []byte(xgboostJSON(`{"num_feature":"4"}`, strings.Repeat(tree+",", trees-1)+tree, trees))
	files := one("m.json", data)
	got := allocated(func() {
		if sig, err := Read(t.Context(), files, "m.json", Options{}); err != nil || sig.Trees.Count != trees {
			t.Errorf("%v, %v", sig, err)
		}
	})
	if got > 1<<20 {
		t.Errorf("reading %d bytes allocated %d", len(data), got)
	}
}

func FuzzXGBoost(f *testing.F) {
	f.Add([]byte("{U\x07learner[$U#i\x02\x00\x01U\x07version[]}"))
	fuzzFormat(f, XGBoost, "m.json", "*-xgboost.*[nj]")
}
