// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"go.yaml.in/yaml/v3"
)

// longMLmodel is the longest MLmodel file that is read, in bytes. Most have two kilobytes.
const longMLmodel = 4 << 20

// mlmodel is the file that describes a model to MLflow.
// https://mlflow.org/docs/latest/ml/model
type mlmodel struct {
	Flavors   map[string]map[string]any `yaml:"flavors"`
	Signature struct {
		Inputs  string `yaml:"inputs"`
		Outputs string `yaml:"outputs"`
		Params  string `yaml:"params"`
	} `yaml:"signature"`
	RunID   string `yaml:"run_id"`
	UUID    string `yaml:"model_uuid"`
	Version string `yaml:"mlflow_version"`
	Created string `yaml:"utc_time_created"`
}

// readMLflow reads an MLmodel file, and the model that it is about.
func readMLflow(r *reading, f *file) error {
	if f.size > longMLmodel {
		return f.errorf(-1, "an MLmodel file of %d bytes: %d are the most", f.size, longMLmodel)
	}
	text, err := f.all()
	if err != nil {
		return err
	}
	var model mlmodel
	if err := yaml.Unmarshal(text, &model); err != nil {
		return f.fail(-1, err)
	}
	if len(model.Flavors) == 0 {
		return f.errorf(-1, "it lists no flavors: this is no MLmodel file")
	}
	r.sig.Flavors = slices.Sorted(maps.Keys(model.Flavors))
	if model.Version != "" {
		r.sig.Producer = "mlflow " + model.Version
	}
	r.sig.setMetadata("run_id", model.RunID)
	r.sig.setMetadata("model_uuid", model.UUID)
	r.sig.setMetadata("utc_time_created", model.Created)
	r.sig.setMetadata("params", model.Signature.Params)
	for _, part := range []struct {
		name, schema string
		to           *[]Tensor
	}{{"inputs", model.Signature.Inputs, &r.sig.Inputs}, {"outputs", model.Signature.Outputs, &r.sig.Outputs}} {
		if part.schema == "" {
			continue
		}
		member := &file{r: r, name: f.name, member: "signature." + part.name, at: bytes.NewReader([]byte(part.schema)), size: int64(len(part.schema))}
		columns, err := member.json(0, member.size, everything)
		if err != nil {
			return err
		}
		if err := mlflowColumns(r, columns, part.to); err != nil {
			return member.fail(-1, err)
		}
	}
	if loader, ok := model.Flavors["python_function"]["loader_module"].(string); ok {
		r.sig.Callables = append(r.sig.Callables, loader)
	}
	return r.contained(f, model.Flavors)
}

// mlflowTypes are the types of columns.
var mlflowTypes = map[string]string{"double": "float64", "float": "float32", "long": "int64", "integer": "int32", "boolean": "bool", "binary": "bytes"}

// mlflowColumns reads a schema: columns with a type, or tensors with a type and a shape.
func mlflowColumns(r *reading, schema document, to *[]Tensor) error {
	columns, ok := schema.([]document)
	if !ok {
		return errors.New("the schema is no list")
	}
	for _, column := range columns {
		t := Tensor{Name: getText(column, "name"), Type: getText(column, "type"), Shape: Fixed(-1)}
		if t.Type == "tensor" {
			t.Type = getText(column, "tensor-spec", "dtype")
			shape, ok := get(column, "tensor-spec", "shape").([]document)
			if !ok {
				return fmt.Errorf("the tensor %q has no shape", t.Name)
			}
			var err error
			if t.Shape, err = shapeOf(shape); err != nil {
				return fmt.Errorf("the tensor %q: %w", t.Name, err)
			}
		} else if kind, known := mlflowTypes[t.Type]; known {
			t.Type = kind
		}
		if err := r.list(to, t); err != nil {
			return err
		}
	}
	return nil
}

// contained reads the model that the folder wraps, if it is of a known format.
func (r *reading) contained(f *file, flavors map[string]map[string]any) error {
	for _, flavor := range slices.Sorted(maps.Keys(flavors)) {
		for _, key := range []string{"pickled_model", "model_data", "data", "model_binary", "saved_model_dir"} {
			name, _ := flavors[flavor][key].(string)
			if name == "" || flavor == "python_function" {
				continue
			}
			name = path.Join(path.Dir(f.name), name)
			if !fs.ValidPath(name) || name != path.Dir(f.name) && path.Dir(f.name) != "." && !within(path.Dir(f.name), name) {
				return f.errorf(-1, "flavors.%s.%s leads out of the model's folder", flavor, key)
			}
			found, err := r.detect(name)
			if err == nil && found.format == MLflow {
				return f.errorf(-1, "flavors.%s.%s is another folder of MLflow", flavor, key)
			}
			if errors.Is(err, ErrUnknownFormat) || errors.Is(err, ErrUnsupported) || errors.Is(err, fs.ErrNotExist) {
				r.sig.note("flavors.%s.%s: %v", flavor, key, err)
				continue
			}
			if err != nil {
				return err
			}
			if r.sig.Contained, err = r.within(name, ""); err != nil {
				return err
			}
			r.sig.Parameters = r.sig.Contained.Parameters
			return nil
		}
	}
	return nil
}

// within reports whether a path is below a folder.
func within(dir, name string) bool {
	return len(name) > len(dir)+1 && name[:len(dir)] == dir && name[len(dir)] == '/'
}
