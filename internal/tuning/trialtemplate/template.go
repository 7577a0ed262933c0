// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// Template is a trial template that is ready to render. It is never changed,
// so that it may be kept and used by several goroutines.
type Template struct {
	// parameters are the names that the template may use.
	parameters []v1beta1.TrialParameterSpec
	// tree is the template as an object. With text, it is the parsed text
	// before any value is substituted.
	tree *unstructured.Unstructured
	// text is the template of a ConfigMap, and empty for one in the spec.
	text string
	// conditional are the parameters of the search space that only some trials
	// have.
	conditional map[string]bool
}

// Load returns the template of an experiment of a namespace. The library is used
// only if the template is in a ConfigMap. An error wraps [ErrForbidden] if the
// experiment may not use that ConfigMap, and [ErrBroken] if the ConfigMap holds no
// template. The template shares the experiment's memory.
func Load(ctx context.Context, namespace string, e *v1beta1.ExperimentSpec, library Library) (*Template, error) {
	t, conditional := e.TrialTemplate, map[string]bool{}
	for _, p := range e.Parameters {
		if p.When != nil {
			conditional[p.Name] = true
		}
	}
	switch {
	case t.TrialSpec != nil:
		return &Template{parameters: t.TrialParameters, tree: t.TrialSpec, conditional: conditional}, nil
	case t.ConfigMap != nil:
		text, err := library.fetch(ctx, namespace, t.ConfigMap)
		if err != nil {
			return nil, err
		}
		tree, err := parse(text)
		if err != nil {
			return nil, broken{fmt.Errorf("cannot use %s: it is %w", describe(t.ConfigMap), err)}
		}
		return &Template{parameters: t.TrialParameters, tree: tree, text: text, conditional: conditional}, nil
	}
	return nil, errors.New("cannot load the trial template: neither trialSpec nor configMap is set")
}

// Render returns the run object of one trial. Every assignment must be used by
// a trial parameter, and every trial parameter must find its value. That of a
// parameter which the trial does not have is empty; in a list of the spec's
// template, such as args, a text without blanks that has no other value is left
// out.
func (t *Template) Render(trialName, namespace string, assignments []v1beta1.ParameterAssignment) (*unstructured.Unstructured, error) {
	values, err := t.values(trialName, namespace, assignments)
	if err != nil {
		return nil, fmt.Errorf("cannot render the template of trial %s: %w", trialName, err)
	}
	object, err := t.expand(values)
	if err != nil {
		return nil, fmt.Errorf("cannot render the template of trial %s: %w", trialName, err)
	}
	object.SetName(trialName)
	object.SetNamespace(namespace)
	return object, nil
}

// expand returns a copy of the template with values put in.
func (t *Template) expand(v values) (*unstructured.Unstructured, error) {
	if t.text != "" {
		return parse(expand(t.text, v.lookup))
	}
	tree, _ := expandTree(t.tree.Object, v).(map[string]any)
	return &unstructured.Unstructured{Object: tree}, nil
}

// values returns the value of each trial parameter, by the parameter's name.
func (t *Template) values(trialName, namespace string, assignments []v1beta1.ParameterAssignment) (values, error) {
	assigned := make(map[string]string, len(assignments))
	for _, a := range assignments {
		assigned[a.Name] = a.Value
	}
	found := make(values, len(t.parameters))
	used := make(map[string]bool, len(assignments))
	for _, p := range t.parameters {
		if prop, ok := propertyOf(p.Reference); ok {
			v, err := prop.of(t.tree, trialName, namespace)
			if err != nil {
				return nil, fmt.Errorf("trial parameter %q: %w", p.Name, err)
			}
			found[p.Name] = value{text: v}
			continue
		}
		v, ok := assigned[p.Reference]
		if !ok && t.conditional[p.Reference] {
			found[p.Name] = value{absent: true}
			continue
		}
		if !ok {
			return nil, fmt.Errorf("trial parameter %q refers to %q, which has no value", p.Name, p.Reference)
		}
		found[p.Name], used[p.Reference] = value{text: v}, true
	}
	for _, a := range assignments {
		if !used[a.Name] {
			return nil, fmt.Errorf("no trial parameter refers to %q; add one to spec.trialTemplate.trialParameters", a.Name)
		}
	}
	return found, nil
}

// parse reads the first document of YAML or JSON text as an object. Its error
// does not quote the text, which whoever sees the error may not be allowed to read.
func parse(text string) (*unstructured.Unstructured, error) {
	const firstRead = 4096 // how far the decoder looks for a JSON object's brace
	object := &unstructured.Unstructured{}
	if err := utilyaml.NewYAMLOrJSONDecoder(strings.NewReader(text), firstRead).Decode(object); err != nil || object.Object == nil {
		return nil, errors.New("not a YAML or JSON object with apiVersion and kind")
	}
	return object, nil
}
