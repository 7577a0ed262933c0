// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"fmt"
	"path"
	"slices"
	"strings"
)

// torchScalars are the values of ScalarType in torch/_export/serde/schema.py.
var torchScalars = map[int64]string{
	1: "uint8", 2: "int8", 3: "int16", 4: "int32", 5: "int64", 6: "float16", 7: "float32", 8: "float64",
	9: "complex32", 10: "complex64", 11: "complex128", 12: "bool", 13: "bfloat16", 28: "uint16",
	29: "float8_e4m3fn", 30: "float8_e5m2", 31: "float8_e4m3fnuz", 32: "float8_e5m2fnuz", 33: "float8_e8m0fnu", 34: "uint32", 35: "uint64",
}

// exportSelection leaves out of a program what only running it needs.
func exportSelection(p string) bool {
	switch p[strings.LastIndexByte(p, '.')+1:] {
	case "metadata", "stack_trace", "strides", "device":
		return false
	case "inputs", "outputs":
		return !strings.HasSuffix(p, "nodes[].inputs") && !strings.HasSuffix(p, "nodes[].outputs")
	}
	return true
}

// readTorchExport reads an archive of torch.export.save. Sample inputs and weights that
// are pickles are left alone.
func readTorchExport(r *reading, f *file) error {
	a, err := f.archive()
	if err != nil {
		return err
	}
	root, program := "", ""
	for _, name := range a.names() {
		dir, base := path.Split(name)
		if base == "archive_format" && strings.Count(dir, "/") == 1 {
			root = dir
		}
		if program == "" && path.Ext(name) == ".json" && path.Base(dir) == "models" {
			program = name
		}
	}
	if program == "" {
		return f.errorf(-1, "the archive has no models/NAME.json")
	}
	if version := root + "archive_version"; a.has(version) {
		v, err := a.open(version)
		if err != nil {
			return err
		}
		text, err := v.text(0, min(v.size, 20), "the version")
		if err != nil {
			return err
		}
		r.sig.FormatVersion = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	}
	p, err := a.open(program)
	if err != nil {
		return err
	}
	model, err := p.json(0, p.size, exportSelection)
	if err != nil {
		return err
	}
	if err := exportGraph(r, model); err != nil {
		return p.fail(-1, err)
	}
	return exportWeights(r, a, root)
}

// exportGraph reads inputs, outputs and operators of an ExportedProgram.
func exportGraph(r *reading, model document) error {
	if version := getText(model, "torch_version"); version != "" {
		r.sig.Producer = "torch " + version
	}
	if schema, ok := get(model, "schema_version").(object); ok {
		r.sig.setMetadata("schema_version", getText(schema, "major")+"."+getText(schema, "minor"))
	}
	graph := get(model, "graph_module", "graph")
	for _, node := range getList(graph, "nodes") {
		if err := r.operator(getText(node, "target")); err != nil {
			return err
		}
	}
	value := func(name string) (Tensor, error) { return exportTensor(name, get(graph, "tensor_values", name)) }
	for _, spec := range getList(model, "graph_module", "signature", "input_specs") {
		// A user's input is a tensor or a plain value.
		name := getText(spec, "user_input", "arg", "as_tensor", "name")
		if name == "" {
			continue
		}
		t, err := value(name)
		if err == nil {
			err = r.list(&r.sig.Inputs, t)
		}
		if err != nil {
			return err
		}
	}
	for _, spec := range getList(model, "graph_module", "signature", "output_specs") {
		name := getText(spec, "user_output", "arg", "as_tensor", "name")
		if name == "" {
			continue
		}
		t, err := value(name)
		if err == nil {
			err = r.list(&r.sig.Outputs, t)
		}
		if err != nil {
			return err
		}
	}
	if ranges, ok := get(model, "range_constraints").(object); ok {
		for symbol := range ranges {
			r.sig.setMetadata("range "+symbol, getText(ranges, symbol, "min_val")+" to "+getText(ranges, symbol, "max_val"))
		}
	}
	return nil
}

// exportTensor reads a TensorMeta: sizes are numbers or expressions of symbols.
func exportTensor(name string, meta document) (Tensor, error) {
	number, _ := getInt(meta, "dtype")
	t := Tensor{Name: name, Type: torchScalars[number]}
	sizes, ok := get(meta, "sizes").([]document)
	if !ok {
		return t, nil
	}
	t.Shape = Shape{}
	for i, size := range sizes {
		dim := Unknown
		if n, ok := getInt(size, "as_int"); ok {
			if n < 0 {
				return t, fmt.Errorf("%s: dimension %d is %d", name, i, n)
			}
			dim.Size = n
		} else if dim.Symbol = getText(size, "as_expr", "expr_str"); dim.Symbol == "" {
			return t, fmt.Errorf("%s: dimension %d is neither a number nor an expression", name, i)
		}
		// As printed by SymPy: Symbol('s77', positive=True, integer=True).
		if symbol, ok := strings.CutPrefix(dim.Symbol, "Symbol('"); ok {
			if end := strings.IndexByte(symbol, '\''); end > 0 && strings.Count(dim.Symbol, "Symbol(") == 1 && strings.HasSuffix(dim.Symbol, ")") {
				dim.Symbol = symbol[:end]
			}
		}
		t.Shape = append(t.Shape, dim)
	}
	return t, nil
}

// exportWeights lists the weights, which are files of raw numbers beside their config.
func exportWeights(r *reading, a *archive, root string) error {
	name := root + "data/weights/model_weights_config.json"
	if !a.has(name) {
		r.sig.note("the archive does not describe its weights")
		return nil
	}
	f, err := a.open(name)
	if err != nil {
		return err
	}
	config, err := f.json(0, f.size, everything)
	if err != nil {
		return err
	}
	weights, _ := get(config, "config").(object)
	r.sig.addParameters(0)
	names := make([]string, 0, len(weights))
	for name := range weights {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		t, err := exportTensor(name, get(weights[name], "tensor_meta"))
		if err != nil {
			return f.fail(-1, err)
		}
		if t.Shape == nil {
			return f.errorf(-1, "the weight %q has no shape", name)
		}
		stored := root + "data/weights/" + getText(weights[name], "path_name")
		if !a.has(stored) {
			return f.errorf(-1, "the weight %q is stored in %q, which the archive does not have", name, stored)
		}
		if get(weights[name], "use_pickle") == true {
			r.sig.note("the weight %q is a pickle", name)
		}
		if err := r.addTensor(t); err != nil {
			return f.fail(-1, err)
		}
	}
	return nil
}
