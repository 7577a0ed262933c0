// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
)

func TestPMML(t *testing.T) {
	t.Parallel()
	sig, err := Read(t.Context(), one("m.pmml", []byte(pmmlOf(
		`<DataField name="a" optype="continuous" dataType="double"/><DataField name="c" optype="categorical" dataType="string"><Value value="x"/><Value value="?" property="missing"/></DataField>`+
			`<DataField name="y" optype="categorical" dataType="integer"><Value value="0"/><Value value="1"/></DataField>`,
		`<MiningField name="y" usageType="target"/><MiningField name="a"/><MiningField name="c" usageType="active"/>`))), "m.pmml", Options{})
	if err != nil {
		t.Fatal(err)
	}
	text := strings.TrimSpace(fmt.Sprintln(sig.Inputs, sig.Outputs, sig.Classes, sig.Trees.Count))
	if want := "[{a float64 [-1] []} {c string [-1] [x]}] [{y int64 [-1] [0 1]} {p float64 [-1] []}] [0 1] 1"; text != want {
		t.Errorf("it was read as %s, want %s", text, want)
	}
}

func pmmlOf(fields, mining string) string {
	return `<?xml version="1.0" encoding="UTF-8"?><PMML version="4.4"><Header><Application name="x" version="1"/></Header><DataDictionary>` + fields +
		`</DataDictionary><TreeModel functionName="classification"><MiningSchema>` + mining +
		`</MiningSchema><Output><OutputField name="p" dataType="double"/></Output><Node/></TreeModel></PMML>`
}

func TestHostilePMML(t *testing.T) {
	t.Parallel()
	file := func(text string) fstest.MapFS { return one("m.pmml", []byte(text)) }
	field := `<DataField name="a" dataType="double"/>`
	entities := `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;">]><PMML version="4"><X>&b;</X></PMML>`
	refuse(t, []hostile{
		{name: "other root", files: file(`<html/>`), want: "root element is html"},
		{name: "no model", files: file(`<PMML version="4.4"><Header/></PMML>`), want: "no model"},
		{name: "unclosed", files: file(`<PMML version="4.4"><Header>`), want: "unexpected EOF"},
		{name: "not declared", files: file(pmmlOf(field, `<MiningField name="b"/>`)), want: `"b" is used and not declared`},
		{name: "target", files: file(pmmlOf(field, `<MiningField name="b" usageType="target"/>`)), want: "predicted and not declared"},
		{name: "twice", files: file(pmmlOf(field+field, "")), want: "declared twice"},
		{name: "depth", files: file(`<PMML version="4.4">` + strings.Repeat("<a>", 1000)), limit: "Depth"},
		{name: "entities", files: file(entities), want: "document type"},
		{name: "external entity", files: file(`<!DOCTYPE x SYSTEM "file:///etc/passwd"><PMML version="4"/>`), want: "document type"},
		{name: "unknown entity", files: file(`<PMML version="4.4"><A>&x;</A></PMML>`), want: "entity"},
		{name: "long text", files: file(`<PMML version="4.4"><A>` + strings.Repeat("a", 9<<20)), want: "more than 8388608 bytes"},
		{name: "many fields", files: file(pmmlOf(manyFields(30_000), "")), limit: "Memory"},
	})
}

func manyFields(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, `<DataField name="f%d" dataType="double"/>`, i)
	}
	return text.String()
}

func FuzzPMML(f *testing.F) {
	f.Add([]byte(pmmlOf(`<DataField name="a" dataType="double"/>`, `<MiningField name="a"/>`)))
	fuzzFormat(f, PMML, "m.pmml", "*.pmml")
}
