// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"slices"
	"strings"
)

// readKeras reads a .keras archive: its config, and the names and shapes of its weights.
func readKeras(r *reading, f *file) error {
	a, err := f.archive()
	if err != nil {
		return err
	}
	part := func(name string) (document, error) {
		m, err := a.open(name)
		if err != nil {
			return nil, err
		}
		return m.json(0, m.size, everything)
	}
	metadata, err := part("metadata.json")
	if err != nil {
		return err
	}
	config, err := part("config.json")
	if err != nil {
		return err
	}
	if version := getText(metadata, "keras_version"); version != "" {
		r.sig.Producer = "keras " + version
	}
	r.sig.setMetadata("date_saved", getText(metadata, "date_saved"))
	k := &kerasReader{r: r}
	if err := k.model(config); err != nil {
		return f.fail(-1, err)
	}
	if !a.has("model.weights.h5") {
		r.sig.note("the archive has no weights")
		return nil
	}
	weights, err := a.open("model.weights.h5")
	if err != nil {
		return err
	}
	h, err := weights.hdf5()
	if err != nil {
		return err
	}
	return k.weights(h, nil)
}

// readKerasH5 reads a model or weights in HDF5.
func readKerasH5(r *reading, f *file) error {
	h, err := f.hdf5()
	if err != nil {
		return err
	}
	attributes := map[string]string{}
	k := &kerasReader{r: r}
	if err := k.weights(h, attributes); err != nil {
		return err
	}
	if version := attributes["keras_version"]; version != "" {
		r.sig.Producer = "keras " + version
	}
	r.sig.setMetadata("backend", attributes["backend"])
	config := attributes["model_config"]
	if config == "" {
		r.sig.note("the file holds weights only: no inputs and outputs")
		return nil
	}
	member := &file{r: r, name: f.name, member: "model_config", at: bytes.NewReader([]byte(config)), size: int64(len(config))}
	model, err := member.json(0, member.size, everything)
	if err != nil {
		return err
	}
	return member.fail(-1, k.model(model))
}

type kerasReader struct{ r *reading }

// weights lists the datasets that are weights. Attributes of the root that are texts
// are kept, if asked for.
func (k *kerasReader) weights(h *hdf5, attributes map[string]string) error {
	h.dataset = func(path string, t Tensor) error {
		// Optimizers' state and random seeds are saved, too.
		if first, _, _ := strings.Cut(path, "/"); first == "optimizer" || first == "optimizer_weights" || strings.Contains(path, "seed_generator") {
			return nil
		}
		return k.r.addTensor(t)
	}
	h.text = func(path, name, value string) error {
		if attributes != nil && (path == "" || path == "model_weights") {
			attributes[name] = value
		}
		return nil
	}
	if k.r.sig.Parameters == nil {
		k.r.sig.addParameters(0)
	}
	if err := h.walk("", h.root, 1); err != nil {
		return err
	}
	if h.partial {
		k.r.sig.note("some weights are stored in a way that is not read")
	}
	return nil
}

// model reads the config of a model.
func (k *kerasReader) model(model document) error {
	if err := k.code(model, 1); err != nil {
		return err
	}
	sig := k.r.sig
	sig.setMetadata("class_name", getText(model, "class_name"))
	sig.setMetadata("name", getText(model, "config", "name"))
	layers := getList(model, "config", "layers")
	if list, ok := get(model, "config").([]document); ok {
		layers = list // of Sequential, before Keras 2.2
	}
	byName := map[string]document{}
	for _, layer := range layers {
		sig.countOperator(getText(layer, "class_name"))
		byName[k.name(layer)] = layer
	}
	if err := k.r.hold(96 * int64(len(layers))); err != nil {
		return err
	}
	inputs, outputs := k.ends(get(model, "config", "input_layers")), k.ends(get(model, "config", "output_layers"))
	if len(inputs) == 0 && len(layers) > 0 {
		inputs, outputs = []string{k.name(layers[0])}, []string{k.name(layers[len(layers)-1])}
	}
	for _, name := range inputs {
		t, err := k.input(name, byName[name], model)
		if err != nil {
			return err
		}
		if err := k.r.list(&sig.Inputs, t); err != nil {
			return err
		}
	}
	for _, name := range outputs {
		t, err := k.output(name, byName[name])
		if err != nil {
			return err
		}
		if err := k.r.list(&sig.Outputs, t); err != nil {
			return err
		}
	}
	return nil
}

// name is a layer's name: in functional models it is beside the config.
func (k *kerasReader) name(layer document) string {
	if name := getText(layer, "name"); name != "" {
		return name
	}
	return getText(layer, "config", "name")
}

// ends are the names in input_layers and output_layers: ["x", 0, 0], a list of such, or
// an object of them.
func (k *kerasReader) ends(d document) []string {
	switch d := d.(type) {
	case []document:
		if len(d) > 0 {
			if name, ok := d[0].(string); ok {
				return []string{name}
			}
		}
		var names []string
		for _, item := range d {
			if list, ok := item.([]document); ok && len(list) > 0 {
				names = append(names, getText(list[0]))
			}
		}
		return names
	case object:
		var names []string
		for _, item := range d {
			names = append(names, k.ends(item)...)
		}
		slices.Sort(names)
		return names
	}
	return nil
}

// dtype is a layer's type, which may be a policy.
func (k *kerasReader) dtype(layer document) string {
	if name := getText(layer, "config", "dtype"); name != "" {
		return name
	}
	return getText(layer, "config", "dtype", "config", "name")
}

func (k *kerasReader) input(name string, layer, model document) (Tensor, error) {
	t := Tensor{Name: name, Type: k.dtype(layer)}
	for _, shape := range []document{
		get(layer, "config", "batch_shape"), get(layer, "config", "batch_input_shape"),
		get(layer, "build_config", "input_shape"), get(model, "config", "build_input_shape"),
	} {
		if list, ok := shape.([]document); ok {
			var err error
			t.Shape, err = shapeOf(list)
			return t, err
		}
	}
	return t, nil
}

// output tells the shape of a dense layer, which most models end with.
func (k *kerasReader) output(name string, layer document) (Tensor, error) {
	t := Tensor{Name: name, Type: k.dtype(layer)}
	input, ok := get(layer, "build_config", "input_shape").([]document)
	units, dense := getInt(layer, "config", "units")
	if !ok || !dense || getText(layer, "class_name") != "Dense" || len(input) == 0 || units < 0 {
		return t, nil
	}
	shape, err := shapeOf(input)
	if err != nil {
		return t, err
	}
	shape[len(shape)-1] = Dim{Size: units}
	t.Shape = shape
	return t, nil
}

// code finds what of a model's config is code, or needs code that Keras does not have.
func (k *kerasReader) code(d document, depth int) error {
	if err := k.r.nest(depth); err != nil {
		return err
	}
	switch d := d.(type) {
	case []document:
		for _, item := range d {
			if err := k.code(item, depth+1); err != nil {
				return err
			}
		}
	case object:
		class, module := getText(d, "class_name"), getText(d, "module")
		full := strings.TrimPrefix(module+"."+class, ".")
		switch {
		case class == "Lambda" || class == "__lambda__":
			k.found(&k.r.sig.Unsafe, full)
			k.found(&k.r.sig.Callables, full)
		case class != "" && module != "" && module != "keras" && !strings.HasPrefix(module, "keras.") && module != "builtins":
			k.found(&k.r.sig.Callables, full)
		case class != "" && getText(d, "registered_name") != "" && module != "builtins" && getText(d, "registered_name") != class && !strings.HasPrefix(module, "keras"):
			k.found(&k.r.sig.Callables, getText(d, "registered_name"))
		}
		for _, item := range d {
			if err := k.code(item, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (k *kerasReader) found(in *[]string, name string) {
	if !slices.Contains(*in, name) && len(*in) < 1000 {
		*in = append(*in, name)
	}
}
