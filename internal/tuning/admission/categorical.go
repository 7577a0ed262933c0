// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"

	kjson "sigs.k8s.io/json"
)

// mendCategorical returns the object with each array of
// spec.parameters[].feasibleSpace.distribution moved to list, its values as
// text, and whether there was any. search.categorical of the kubeflow-katib
// SDK 0.19.0 puts the values there by mistake.
func mendCategorical(raw []byte) ([]byte, bool) {
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &object); err != nil {
		return nil, false
	}
	spec, _ := object["spec"].(map[string]any)
	parameters, _ := spec["parameters"].([]any)
	found := false
	for _, p := range parameters {
		p, _ := p.(map[string]any)
		space, _ := p["feasibleSpace"].(map[string]any)
		values, misplaced := space["distribution"].([]any)
		if _, has := space["list"]; !misplaced || has {
			continue
		}
		delete(space, "distribution")
		space["list"] = texts(values)
		found = true
	}
	if !found {
		return nil, false
	}
	mended, err := json.Marshal(object)
	return mended, err == nil
}

// texts are values as text: a string as it is, anything else as JSON.
func texts(values []any) []string {
	list := make([]string, len(values))
	for i, v := range values {
		text, ok := v.(string)
		if !ok {
			b, _ := json.Marshal(v) // it came from JSON
			text = string(b)
		}
		list[i] = text
	}
	return list
}
