// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"encoding/json"
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"
	"strings"
)

// Format is the format of a model, as a word.
type Format string

// The formats that are read.
const (
	Safetensors Format = "safetensors"
	GGUF        Format = "gguf"
	ONNX        Format = "onnx"
	XGBoost     Format = "xgboost"
	LightGBM    Format = "lightgbm"
	CatBoost    Format = "catboost"
	// Sklearn is a pickle or a joblib file of a scikit-learn estimator.
	Sklearn Format = "sklearn"
	// Pickle is any other pickle.
	Pickle Format = "pickle"
	// SavedModel is TensorFlow's folder with a saved_model.pb.
	SavedModel Format = "savedmodel"
	// GraphDef is TensorFlow's frozen graph.
	GraphDef Format = "graphdef"
	// Keras is a .keras archive.
	Keras Format = "keras"
	// KerasH5 is a Keras model, or its weights, in HDF5.
	KerasH5     Format = "keras-h5"
	TorchScript Format = "torchscript"
	// TorchExport is a .pt2 archive of torch.export.
	TorchExport Format = "torch-export"
	// TorchPickle is what torch.save writes: tensors and objects in a pickle.
	TorchPickle Format = "torch-pickle"
	PMML        Format = "pmml"
	Caffe       Format = "caffe"
	MXNet       Format = "mxnet"
	TensorRT    Format = "tensorrt"
	// MLflow is a folder with an MLmodel file.
	MLflow Format = "mlflow"
)

// Signature is what a model file or folder holds.
type Signature struct {
	Format Format `json:"format"`
	// FormatVersion is the version of the format itself, such as an ONNX IR version.
	FormatVersion string `json:"formatVersion,omitempty"`
	// Producer is the program that wrote the model, with its version if known.
	Producer string `json:"producer,omitempty"`
	// Files are those that the model consists of, by name.
	Files []File `json:"files"`
	// Size is the size of Files together, in bytes.
	Size int64 `json:"size"`

	// Inputs and Outputs are those of the model's main function. They are empty where
	// the format has none: safetensors holds weights alone.
	Inputs  []Tensor `json:"inputs,omitempty"`
	Outputs []Tensor `json:"outputs,omitempty"`
	// Functions are all functions of a model that has several.
	Functions []Function `json:"functions,omitempty"`

	// Parameters counts the numbers in the model's weights. Nil: unknown.
	Parameters *int64 `json:"parameters,omitempty"`
	// Tensors are the stored weights, in the order of the file.
	Tensors []Tensor `json:"tensors,omitempty"`
	// Quantization is how weights are quantized, in the format's own words ("Q4_K_M").
	Quantization string `json:"quantization,omitempty"`
	// Operators counts the operators or layers of the graph by type.
	Operators map[string]int `json:"operators,omitempty"`
	// Opsets are the versions of ONNX operator sets, by domain.
	Opsets map[string]int64 `json:"opsets,omitempty"`

	// Features are the names of the columns of a tabular model's input.
	Features []string `json:"features,omitempty"`
	// Classes are the labels that a classifier tells apart, if the model names them.
	Classes []string `json:"classes,omitempty"`
	// Trees describes a tree ensemble.
	Trees *Trees `json:"trees,omitempty"`
	// Estimator is the object in a scikit-learn model.
	Estimator *Estimator `json:"estimator,omitempty"`
	// Flavors are the forms in which an MLflow folder holds its model.
	Flavors []string `json:"flavors,omitempty"`
	// Contained is the signature of the file that an MLflow folder wraps.
	Contained *Signature `json:"contained,omitempty"`

	// Callables are the functions and classes that loading the model with its
	// framework would call or look up. Anything unexpected here is a reason not to
	// load it. Sorted.
	Callables []string `json:"callables,omitempty"`
	// Unsafe are the Callables that can run arbitrary code, such as os.system, and
	// code that the model carries, such as a Keras Lambda. Sorted. That it is empty
	// proves nothing.
	Unsafe []string `json:"unsafe,omitempty"`
	// Metadata are the format's own entries about the model, as text.
	Metadata map[string]string `json:"metadata,omitempty"`
	// Notes say what could not be read, and what is odd.
	Notes []string `json:"notes,omitempty"`
}

// File is one file of a model.
type File struct {
	// Name is relative to the root that was read, with slashes.
	Name string `json:"name"`
	// Size is in bytes.
	Size int64 `json:"size"`
}

// Function is one of the entry points of a model.
type Function struct {
	Name    string   `json:"name"`
	Inputs  []Tensor `json:"inputs,omitempty"`
	Outputs []Tensor `json:"outputs,omitempty"`
}

// Tensor is a named value: an input, an output or a weight.
type Tensor struct {
	Name string `json:"name"`
	// Type is the type of the elements: float32, bfloat16, int64, bool, string, …, a
	// quantized type of GGUF (Q4_K), or for other things than tensors a type
	// expression: seq(map(int64, float32)). "" if the model does not tell.
	Type string `json:"type,omitempty"`
	// Shape is the shape; nil if not even the rank is known, empty for a scalar. A
	// column of a table has the shape [-1].
	Shape Shape `json:"shape"`
	// Values are the values that a categorical column may have.
	Values []string `json:"values,omitempty"`
}

// Shape is the dimensions of a tensor, outermost first.
type Shape []Dim

// Dim is a dimension. In JSON a known one is a number, a symbolic one is a string,
// an unknown one is -1.
type Dim struct {
	// Size is the number of elements, -1 if unknown.
	Size int64
	// Symbol names a dimension whose Size is unknown: equal symbols are equal sizes.
	Symbol string
}

// Unknown is a dimension of which nothing is known.
var Unknown = Dim{Size: -1}

// Fixed is the shape of known dimensions; -1 is an unknown one.
func Fixed(sizes ...int64) Shape {
	shape := make(Shape, len(sizes))
	for i, size := range sizes {
		shape[i] = Dim{Size: size}
	}
	return shape
}

// String is the symbol or the size.
func (d Dim) String() string {
	if d.Symbol != "" {
		return d.Symbol
	}
	return strconv.FormatInt(d.Size, 10)
}

// MarshalJSON writes a number or a symbol.
func (d Dim) MarshalJSON() ([]byte, error) {
	if d.Symbol != "" {
		return json.Marshal(d.Symbol)
	}
	return strconv.AppendInt(nil, d.Size, 10), nil
}

// UnmarshalJSON reads what MarshalJSON writes.
func (d *Dim) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && text[0] == '"' {
		d.Size = -1
		return json.Unmarshal(text, &d.Symbol)
	}
	d.Symbol = ""
	return json.Unmarshal(text, &d.Size)
}

// String is the shape in brackets: [batch 3 -1]; "?" for an unknown rank.
func (s Shape) String() string {
	if s == nil {
		return "?"
	}
	texts := make([]string, len(s))
	for i, d := range s {
		texts[i] = d.String()
	}
	return "[" + strings.Join(texts, " ") + "]"
}

// elements is the number of elements of a shape whose dimensions are all known.
func (s Shape) elements() (int64, error) {
	product, zero := uint64(1), false
	for _, d := range s {
		if d.Size < 0 {
			return 0, fmt.Errorf("shape %v has no number of elements", s)
		}
		if zero = zero || d.Size == 0; zero {
			continue
		}
		high, low := bits.Mul64(product, uint64(d.Size))
		if high != 0 || low > math.MaxInt64 {
			return 0, fmt.Errorf("shape %v has more elements than 63 bits can count", s)
		}
		product = low
	}
	if zero {
		return 0, nil
	}
	return int64(product), nil
}

// sum is the sum of two counts; it stays at the largest one rather than overflow.
func sum(a, b int64) int64 {
	if b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// Trees describes a tree ensemble.
type Trees struct {
	// Count is the number of trees; a classifier with k classes may have k per round.
	Count int64 `json:"count"`
	// Nodes is the number of their nodes, leaves included. 0: unknown.
	Nodes int64 `json:"nodes,omitempty"`
	// Features is the number of columns of the input.
	Features int64 `json:"features,omitempty"`
	// Classes is the number of classes, 0 if it is no classifier or not told.
	Classes int64 `json:"classes,omitempty"`
	// Objective is what was minimized, in the booster's own words.
	Objective string `json:"objective,omitempty"`
	// Booster is the kind of booster, such as gbtree, dart or gblinear.
	Booster string `json:"booster,omitempty"`
}

// Estimator is a scikit-learn estimator.
type Estimator struct {
	// Name is its name in a pipeline.
	Name string `json:"name,omitempty"`
	// Class is its class with the module: sklearn.linear_model._logistic.LogisticRegression.
	Class string `json:"class"`
	// Steps are those of a pipeline, or the parts of a composed estimator.
	Steps []Estimator `json:"steps,omitempty"`
}

func (s *Signature) addParameters(n int64) {
	if s.Parameters == nil {
		s.Parameters = new(int64)
	}
	*s.Parameters = sum(*s.Parameters, n)
}

func (s *Signature) note(format string, args ...any) {
	if text := fmt.Sprintf(format, args...); !slices.Contains(s.Notes, text) {
		s.Notes = append(s.Notes, text)
	}
}

func (s *Signature) setMetadata(key, value string) {
	if value == "" {
		return
	}
	if s.Metadata == nil {
		s.Metadata = map[string]string{}
	}
	s.Metadata[key] = value
}

func (s *Signature) countOperator(name string) {
	if s.Operators == nil {
		s.Operators = map[string]int{}
	}
	s.Operators[name]++
}

// addFunction adds one of several functions.
func (s *Signature) addFunction(f Function) { s.Functions = append(s.Functions, f) }
