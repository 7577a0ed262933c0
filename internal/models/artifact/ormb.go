// SPDX-License-Identifier: Apache-2.0

package artifact

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.yaml.in/yaml/v3"

	"diwan.dev/diwan/internal/models/signature"
)

const (
	// ORMBFile is the name of the file with a model's metadata, beside the folder [ModelDir].
	ORMBFile = "ormbfile.yaml"
	// ModelDir is the folder of a model's files in ormb's layout.
	ModelDir = "model"
	// maxORMBFile bounds ormbfile.yaml.
	maxORMBFile = 1 << 20
)

// Metadata is ormbfile.yaml, and the configuration of ormb's artifacts (ormb pkg/model/types.go).
type Metadata struct {
	Author          string                  `json:"author,omitempty" yaml:"author,omitempty"`
	Created         time.Time               `json:"created,omitzero" yaml:"created,omitempty"`
	Description     string                  `json:"description,omitempty" yaml:"description,omitempty"`
	Tags            []string                `json:"tags,omitempty" yaml:"tags,omitempty"`
	Labels          map[string]string       `json:"labels,omitempty" yaml:"labels,omitempty"`
	Format          string                  `json:"format,omitempty" yaml:"format,omitempty"`
	GPUType         string                  `json:"gpuType,omitempty" yaml:"gpuType,omitempty"`
	Framework       string                  `json:"framework,omitempty" yaml:"framework,omitempty"`
	Metrics         map[string][]NamedValue `json:"metrics,omitempty" yaml:"metrics,omitempty"`
	HyperParameters []NamedValue            `json:"hyperParameters,omitempty" yaml:"hyperParameters,omitempty"`
	Signature       *ORMBSignature          `json:"signature,omitempty" yaml:"signature,omitempty"`
	Training        *Origin                 `json:"training,omitempty" yaml:"training,omitempty"`
	Dataset         *Origin                 `json:"dataset,omitempty" yaml:"dataset,omitempty"`
	// DirectoryStructure are the names of the files, from model/ on.
	DirectoryStructure []string `json:"directoryStructure,omitempty" yaml:"directoryStructure,omitempty"`
}

// NamedValue is a metric or a hyper-parameter.
type NamedValue struct {
	Name  string `json:"name" yaml:"name"`
	Value string `json:"value" yaml:"value"`
}

// ORMBSignature is a signature in ormb's form.
type ORMBSignature struct {
	Inputs  []ORMBTensor   `json:"inputs,omitempty" yaml:"inputs,omitempty"`
	Outputs []ORMBTensor   `json:"outputs,omitempty" yaml:"outputs,omitempty"`
	Layers  map[string]int `json:"layers,omitempty" yaml:"layers,omitempty"`
}

// ORMBTensor is an input or an output.
type ORMBTensor struct {
	Name string `json:"name,omitempty" yaml:"name,omitempty"`
	// Size is the shape; -1 is a dimension that varies.
	Size  []int64 `json:"size,omitempty" yaml:"size,omitempty,flow"`
	DType string  `json:"dType,omitempty" yaml:"dType,omitempty"`
	// OpType and Values are PMML's.
	OpType string   `json:"opType,omitempty" yaml:"opType,omitempty"`
	Values []string `json:"values,omitempty" yaml:"values,omitempty"`
}

// Origin is the repository that something was made from.
type Origin struct {
	Git struct {
		Repository string `json:"repository,omitempty" yaml:"repository,omitempty"`
		Revision   string `json:"revision,omitempty" yaml:"revision,omitempty"`
	} `json:"git,omitempty" yaml:"git,omitempty"`
}

// ReadORMBFile reads ormbfile.yaml in a folder. The error wraps fs.ErrNotExist if there is none.
func ReadORMBFile(dir fs.FS) (*Metadata, error) {
	f, err := dir.Open(ORMBFile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxORMBFile+1))
	if err != nil {
		return nil, err
	}
	if len(text) > maxORMBFile {
		return nil, fmt.Errorf("%s has more than %d bytes", ORMBFile, maxORMBFile)
	}
	var m Metadata
	if err := yaml.Unmarshal(text, &m); err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", ORMBFile, err)
	}
	return &m, nil
}

// YAML is the text of ormbfile.yaml.
func (m *Metadata) YAML() ([]byte, error) {
	var text bytes.Buffer
	e := yaml.NewEncoder(&text)
	e.SetIndent(2)
	if err := e.Encode(m); err != nil {
		return nil, err
	}
	return text.Bytes(), e.Close()
}

// ORMBFormats are ormb's words for formats, by Diwan's.
var ormbFormats = map[signature.Format]string{
	signature.SavedModel: "SavedModel", signature.ONNX: "ONNX", signature.KerasH5: "H5", signature.PMML: "PMML",
	signature.Caffe: "CaffeModel", signature.MXNet: "MXNetParams", signature.TorchScript: "TorchScript",
	signature.GraphDef: "GraphDef", signature.TensorRT: "TensorRT", signature.Sklearn: "SKLearn",
	signature.XGBoost: "XGBoost", signature.MLflow: "MLflow", signature.Pickle: "Pickle",
}

// frameworks are the programs that formats belong to, where they belong to one.
var frameworks = map[signature.Format]string{
	signature.SavedModel: "TensorFlow", signature.GraphDef: "TensorFlow", signature.Keras: "Keras", signature.KerasH5: "Keras",
	signature.TorchScript: "PyTorch", signature.TorchExport: "PyTorch", signature.TorchPickle: "PyTorch",
	signature.Sklearn: "scikit-learn", signature.XGBoost: "XGBoost", signature.LightGBM: "LightGBM", signature.CatBoost: "CatBoost",
	signature.Caffe: "Caffe", signature.MXNet: "MXNet", signature.TensorRT: "TensorRT", signature.MLflow: "MLflow",
}

// Describe completes metadata by what was read in the model.
func (m *Metadata) Describe(s *signature.Signature) {
	if s == nil {
		return
	}
	if m.Format == "" {
		m.Format = ormbFormats[s.Format]
		if m.Format == "" {
			m.Format = "Others"
		}
	}
	if m.Framework == "" {
		m.Framework = frameworks[s.Format]
	}
	if m.Signature == nil && (len(s.Inputs) > 0 || len(s.Outputs) > 0 || len(s.Operators) > 0) {
		m.Signature = &ORMBSignature{Inputs: ormbTensors(s.Inputs), Outputs: ormbTensors(s.Outputs), Layers: s.Operators}
	}
}

func ormbTensors(tensors []signature.Tensor) []ORMBTensor {
	var all []ORMBTensor
	for _, t := range tensors {
		o := ORMBTensor{Name: t.Name, DType: t.Type, Values: t.Values}
		for _, d := range t.Shape {
			o.Size = append(o.Size, d.Size)
		}
		all = append(all, o)
	}
	return all
}

// ormbFiles are the files that a format of ormb demands once in the folder model/, by pattern
// (ormb pkg/model/format.go).
var ormbFiles = map[string][][]string{
	"SavedModel": {{"saved_model.pb"}}, "ONNX": {{"*.onnx"}}, "H5": {{"*.h5"}}, "PMML": {{"*.pmml"}},
	"CaffeModel": {{"*.caffemodel"}, {"*.prototxt"}}, "NetDef": {{"init_net.pb"}, {"predict_net.pb"}},
	"MXNetParams": {{"*symbol.json"}, {"*.params"}}, "TorchScript": {{"*.pt"}}, "GraphDef": {{"*.graphdef"}},
	"TensorRT": {{"*.plan", "*.engine"}}, "SKLearn": {{"*.joblib"}}, "XGBoost": {{"*.xgboost"}}, "MLflow": {{"MLmodel"}},
	"Pickle": {{"*.pickle"}}, "Others": nil,
}

// CheckORMB refuses what ormb refuses to save: names are the entries of the folder model/.
func CheckORMB(format string, names []string) error {
	if format == "" {
		return fmt.Errorf("%s has no format: say one of %s", ORMBFile, strings.Join(formats(), ", "))
	}
	wanted, known := ormbFiles[format]
	if !known {
		return fmt.Errorf("the format %q in %s is not ormb's: it must be one of %s", abbreviate(format), ORMBFile, strings.Join(formats(), ", "))
	}
	if format == "PMML" && len(names) != 1 {
		return errors.New("a model of the format PMML is one file")
	}
	for _, patterns := range wanted {
		count := 0
		for _, name := range names {
			if slices.ContainsFunc(patterns, func(p string) bool { ok, _ := path.Match(p, name); return ok }) {
				count++
			}
		}
		if count != 1 {
			return fmt.Errorf("a model of the format %s has one file %s in %s/, not %d", format, strings.Join(patterns, " or "), ModelDir, count)
		}
	}
	return nil
}

func formats() []string {
	var all []string
	for name := range ormbFiles {
		all = append(all, name)
	}
	slices.Sort(all)
	return all
}

// ORMBLayer describes the archive of ormb's artifacts.
func ORMBLayer(d ocispec.Descriptor) ocispec.Descriptor {
	d.MediaType = mediaTypeORMBLayer
	return d
}

// PackORMB makes the configuration and the manifest of ormb's artifacts.
func PackORMB(m *Metadata, layer ocispec.Descriptor, annotations map[string]string) (config, manifest []byte, err error) {
	if config, err = json.Marshal(m); err != nil {
		return nil, nil, err
	}
	return encode(config, mediaTypeORMBConfig, ocispec.Manifest{Layers: []ocispec.Descriptor{layer}, Annotations: annotations})
}

// ORMBMetadata reads the configuration of an ormb artifact.
func ORMBMetadata(config []byte) (*Metadata, error) {
	var m Metadata
	if err := json.Unmarshal(config, &m); err != nil {
		return nil, fmt.Errorf("its configuration is not ormb's: %w", err)
	}
	return &m, nil
}
