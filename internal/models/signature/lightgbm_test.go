// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"strings"
	"testing"
	"testing/fstest"
)

const lightGBMHead = "tree\nversion=v4\nnum_class=1\nmax_feature_idx=1\nobjective=binary sigmoid:1\nfeature_names=a b\ntree_sizes=10\n\n"

func TestHostileLightGBM(t *testing.T) {
	t.Parallel()
	file := func(text string) fstest.MapFS { return one("m.txt", []byte(text)) }
	const tree = "Tree=0\nnum_leaves=2\nleaf_value=1 2\n\n"
	const end = "end of trees\n"
	refuse(t, []hostile{
		{name: "truncated header", files: file("tree\nversion=v4\n"), want: "truncated"},
		{name: "truncated trees", files: file(lightGBMHead + tree), want: "truncated"},
		{name: "features", files: file(strings.Replace(lightGBMHead, "idx=1", "idx=999999999999", 1) + tree + end), want: "max_feature_idx"},
		{name: "negative features", files: file(strings.Replace(lightGBMHead, "idx=1", "idx=-5", 1) + tree + end), want: "max_feature_idx"},
		{name: "names", files: file(strings.Replace(lightGBMHead, "idx=1", "idx=7", 1) + tree + end), want: "names 2 features and has 8"},
		{name: "classes", files: file(strings.Replace(lightGBMHead, "class=1", "class=0", 1) + tree + end), want: "num_class"},
		{name: "sizes", files: file(strings.Replace(lightGBMHead, "sizes=10", "sizes=1 2 3", 1) + tree + end), want: "has 1 trees and claims 3"},
		{name: "order", files: file(lightGBMHead + strings.Replace(tree, "Tree=0", "Tree=5", 1) + end), want: `tree "5" comes where tree 0`},
		{name: "leaves", files: file(lightGBMHead + strings.Replace(tree, "leaves=2", "leaves=-2", 1) + end), want: `"-2" leaves`},
		{name: "twice", files: file(lightGBMHead + "version=v3\n" + tree + end), want: "twice"},
		{name: "zero", files: file("tree\n\x00"), want: "zero byte"},
		{name: "long value", files: file("tree\nfeature_names=" + strings.Repeat("a", 5<<20)), limit: "Memory"},
		{name: "many keys", files: file("tree\n" + manyLines(100_000)), limit: "Memory"},
	})
	// What is not kept may be long.
	long := lightGBMHead + strings.Replace(tree, "1 2", strings.Repeat("1 ", 1<<20), 1) + end + strings.Repeat("x", 1<<20)
	if sig, err := Read(t.Context(), file(long), "m.txt", Options{}); err != nil || sig.Trees.Nodes != 3 {
		t.Errorf("long lines: %v, %v", sig, err)
	}
}

func manyLines(n int) string {
	var text strings.Builder
	for i := range n {
		text.WriteString("k")
		for ; i > 0; i /= 26 {
			text.WriteByte(byte('a' + i%26))
		}
		text.WriteString("=\n")
	}
	return text.String()
}

func FuzzLightGBM(f *testing.F) {
	f.Add([]byte(lightGBMHead + "end of trees\n"))
	fuzzFormat(f, LightGBM, "m.txt", "*-lightgbm.txt")
}
