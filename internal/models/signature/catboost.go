// SPDX-License-Identifier: Apache-2.0

package signature

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// catboostSelection leaves out the trees.
var catboostSelection = except("oblivious_trees[]", "trees[]", "ctr_data", "features_info.float_features[].borders")

// readCatBoost reads a model in JSON or in CatBoost's own format, cbm.
func readCatBoost(r *reading, f *file) error {
	head, err := f.peek(0, 4)
	if err != nil {
		return err
	}
	if string(head) == "CBM1" {
		return readCBM(r, f)
	}
	model, err := f.json(0, f.size, catboostSelection)
	if err != nil {
		return err
	}
	trees, ok := get(model, "oblivious_trees").(omitted)
	if !ok {
		trees, ok = get(model, "trees").(omitted)
	}
	if !ok {
		return f.errorf(-1, "it has no trees: this is no model of CatBoost")
	}
	names := map[int64]string{}
	info := get(model, "features_info")
	for _, kind := range []string{"float_features", "categorical_features", "text_features", "embedding_features"} {
		for _, feature := range getList(info, kind) {
			index, ok := getInt(feature, "flat_feature_index")
			if !ok || index < 0 {
				return f.errorf(-1, "a feature has the index %q", getText(feature, "flat_feature_index"))
			}
			names[index] = getText(feature, "feature_id")
		}
	}
	about := get(model, "model_info")
	return r.catboost(f, names, trees.Items, func(name string) (document, error) { return get(about, name), nil })
}

// catboost fills the signature from features by index and the entries about the model.
func (r *reading) catboost(f *file, names map[int64]string, trees int64, about func(string) (document, error)) error {
	r.sig.Trees = &Trees{Count: trees, Features: int64(len(names)), Booster: "oblivious"}
	for i := range int64(len(names)) {
		name, known := names[i]
		if !known {
			return f.errorf(-1, "it has %d features, of which number %d is missing", len(names), i)
		}
		if name == "" {
			name = strconv.FormatInt(i, 10)
		}
		r.sig.Features = append(r.sig.Features, name)
	}
	r.sig.Producer = "catboost"
	version, err := about("catboost_version_info")
	if err != nil {
		return err
	}
	if text, ok := version.(string); ok {
		if _, rest, found := strings.Cut(text, "CatBoost release "); found {
			number, _, _ := strings.Cut(rest, " ")
			r.sig.Producer += " " + strings.TrimSuffix(number, ".")
		}
	}
	classes, err := about("class_params")
	if err != nil {
		return err
	}
	r.sig.Classes = getTexts(classes, "class_names")
	r.sig.Trees.Classes = int64(len(r.sig.Classes))
	params, err := about("params")
	if err != nil {
		return err
	}
	r.sig.Trees.Objective = getText(params, "loss_function", "type")
	r.sig.setMetadata("loss_function", r.sig.Trees.Objective)
	for _, name := range []string{"model_guid", "train_finish_time"} {
		value, err := about(name)
		if err != nil {
			return err
		}
		r.sig.setMetadata(name, getText(value))
	}
	r.sig.Inputs = []Tensor{{Name: "features", Type: "float32", Shape: Fixed(-1, int64(len(names)))}}
	shape := Fixed(-1)
	if n := int64(len(r.sig.Classes)); n > 2 {
		shape = Fixed(-1, n)
	}
	r.sig.Outputs = []Tensor{{Name: "prediction", Type: "float64", Shape: shape}}
	return nil
}

// readCBM reads CBM1, a length, and a FlatBuffer of that length: a TModelCore.
// https://github.com/catboost/catboost/blob/master/catboost/libs/model/flatbuffers/model.fbs
func readCBM(r *reading, f *file) error {
	length, err := f.u32(4, little)
	if err != nil {
		return err
	}
	if err := f.span(8, int64(length), "the model"); err != nil {
		return err
	}
	b := flatbuffer{f: f, end: 8 + int64(length)}
	root, err := b.follow(8)
	if err != nil {
		return err
	}
	version, err := b.text(root, 0)
	if err != nil {
		return err
	}
	r.sig.FormatVersion = version
	about := map[string]string{}
	if err := b.each(root, 2, func(entry int64) error {
		key, err := b.text(entry, 0)
		if err != nil {
			return err
		}
		value, err := b.text(entry, 1)
		about[key] = value
		return err
	}); err != nil {
		return err
	}
	at, err := b.field(root, 1)
	if err != nil {
		return err
	}
	if at == 0 {
		return f.errorf(root, "it has no trees")
	}
	trees, err := b.follow(at)
	if err != nil {
		return err
	}
	_, count, err := b.vector(trees, 2)
	if err != nil {
		return err
	}
	names := map[int64]string{}
	// Categorical features are number, flat number and name; the others differ.
	for field, parts := range map[int][2]int{4: {1, 2}, 5: {2, 4}} {
		if err := b.each(trees, field, func(feature int64) error {
			at, err := b.field(feature, parts[0])
			if err != nil {
				return err
			}
			index := uint32(0)
			if at != 0 {
				if index, err = f.u32(at, little); err != nil {
					return err
				}
			}
			names[int64(index)], err = b.text(feature, parts[1])
			return err
		}); err != nil {
			return err
		}
	}
	return r.catboost(f, names, count, func(name string) (document, error) {
		text := about[name]
		if !strings.HasPrefix(text, "{") {
			return text, nil
		}
		member := &file{r: r, name: f.name, member: name, at: bytes.NewReader([]byte(text)), size: int64(len(text))}
		return member.json(0, member.size, everything)
	})
}

// flatbuffer reads tables and vectors of FlatBuffers: each is reached by offsets, which
// may lead anywhere. https://flatbuffers.dev/internals
type flatbuffer struct {
	f   *file
	end int64
}

// follow is the place to which the offset at a place leads.
func (b flatbuffer) follow(at int64) (int64, error) {
	offset, err := b.f.u32(at, little)
	if err != nil {
		return 0, err
	}
	to := at + int64(offset)
	if to < 8 || to > b.end-4 {
		return 0, b.f.errorf(at, "an offset leads to byte %d, outside of the model", to)
	}
	return to, b.f.r.visit()
}

// field is the place of a field of a table, 0 if the table does not have it.
func (b flatbuffer) field(table int64, number int) (int64, error) {
	back, err := b.f.u32(table, little)
	if err != nil {
		return 0, err
	}
	at := table - int64(int32(back))
	if at < 8 || at > b.end-4 {
		return 0, b.f.errorf(table, "a table is described at byte %d, outside of the model", at)
	}
	size, err := b.f.need(at, 2)
	if err != nil {
		return 0, err
	}
	entry := 4 + 2*int64(number)
	if entry+2 > int64(little.Uint16(size)) {
		return 0, nil
	}
	offset, err := b.f.need(at+entry, 2)
	if err != nil {
		return 0, err
	}
	if n := int64(little.Uint16(offset)); n != 0 {
		return table + n, nil
	}
	return 0, nil
}

// vector is the place and length of a vector, 0 of one that is missing.
func (b flatbuffer) vector(table int64, number int) (at, n int64, err error) {
	at, err = b.field(table, number)
	if err != nil || at == 0 {
		return 0, 0, err
	}
	if at, err = b.follow(at); err != nil {
		return 0, 0, err
	}
	length, err := b.f.u32(at, little)
	if err != nil {
		return 0, 0, err
	}
	if int64(length) > b.end-at-4 {
		return 0, 0, b.f.errorf(at, "a vector claims %d items, more than the rest of the model", length)
	}
	return at + 4, int64(length), nil
}

// each visits the tables of a vector.
func (b flatbuffer) each(table int64, number int, visit func(int64) error) error {
	at, n, err := b.vector(table, number)
	if err != nil {
		return err
	}
	if n > (b.end-at)/4 {
		return b.f.errorf(at, "a vector claims %d tables, more than the rest of the model", n)
	}
	for i := range n {
		if err := b.f.r.hold(64); err != nil {
			return b.f.fail(at, err)
		}
		entry, err := b.follow(at + 4*i)
		if err != nil {
			return err
		}
		if err := visit(entry); err != nil {
			return err
		}
	}
	return nil
}

// text is a field that is a string, "" if it is missing.
func (b flatbuffer) text(table int64, number int) (string, error) {
	at, n, err := b.vector(table, number)
	if err != nil || at == 0 {
		return "", err
	}
	text, err := b.f.text(at, n, fmt.Sprintf("the text of field %d", number))
	return strings.ToValidUTF8(text, "\ufffd"), err
}
