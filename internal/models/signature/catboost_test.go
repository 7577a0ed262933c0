// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"os"
	"testing"
	"testing/fstest"
)

func TestHostileCatBoost(t *testing.T) {
	t.Parallel()
	cbm, err := os.ReadFile("testdata/catboost.cbm")
	if err != nil {
		t.Fatal(err)
	}
	changed := func(change func([]byte)) fstest.MapFS {
		data := bytes.Clone(cbm)
		change(data)
		return one("m.cbm", data)
	}
	file := func(text string) fstest.MapFS { return one("m.json", []byte(text)) }
	refuse(t, []hostile{
		{name: "truncated", files: one("m.cbm", cbm[:2000]), want: "more than the file"},
		{name: "short", files: one("m.cbm", cbm[:6]), want: "middle of a value"},
		{name: "root", files: changed(func(d []byte) { d[10] = 0xff }), want: "outside of the model"},
		{name: "table", files: changed(func(d []byte) { d[0x1a] = 0x70 }), want: "outside of the model"},
		{name: "no trees", files: file(`{"model_info":{}}`), want: "no trees"},
		{name: "index", files: file(`{"oblivious_trees":[],"features_info":{"float_features":[{"flat_feature_index":-1}]}}`), want: `index "-1"`},
		{name: "hole", files: file(`{"oblivious_trees":[],"features_info":{"float_features":[{"flat_feature_index":1000000000}]}}`), want: "number 0 is missing"},
	})
}

func FuzzCatBoost(f *testing.F) { fuzzFormat(f, CatBoost, "m.cbm", "catboost.cbm", "catboost.json") }
