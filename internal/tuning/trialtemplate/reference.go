// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"errors"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// propertyOpen begins a reference to a property of the trial.
const propertyOpen = "${trialSpec."

// property is a property of the trial that a reference names: Name, or Labels
// with a key.
type property struct {
	name, key string
	indexed   bool
}

// propertyOf reads a trial parameter's reference; ok is false when it refers
// to a parameter of the search space.
func propertyOf(reference string) (p property, ok bool) {
	_, rest, _ := strings.Cut(reference, propertyOpen)
	whole, _, ok := cutName(rest)
	if !ok {
		return property{}, false
	}
	name, key, indexed := strings.Cut(whole, "[")
	if indexed && strings.HasSuffix(key, "]") {
		return property{name: name, key: strings.TrimSuffix(key, "]"), indexed: true}, true
	}
	return property{name: whole}, true
}

// of returns the property's value for a trial created from a template.
func (p property) of(template *unstructured.Unstructured, trialName, namespace string) (string, error) {
	if p.indexed {
		return p.entry(template)
	}
	switch p.name {
	case "Name":
		return trialName, nil
	case "Namespace":
		return namespace, nil
	case "Kind":
		return template.GetKind(), nil
	case "APIVersion":
		return template.GetAPIVersion(), nil
	case "Labels", "Annotations":
		return "", fmt.Errorf("${trialSpec.%s} needs a key: write ${trialSpec.%s[key]}", p.name, p.name)
	}
	return "", errUnknownProperty(p.name)
}

func (p property) entry(template *unstructured.Unstructured) (string, error) {
	var entries map[string]string
	switch p.name {
	case "Labels":
		entries = template.GetLabels()
	case "Annotations":
		entries = template.GetAnnotations()
	default:
		return "", errUnknownProperty(p.name)
	}
	if v, ok := entries[p.key]; ok {
		return v, nil
	}
	return "", fmt.Errorf("${trialSpec.%s[%s]}: the template has no such key", p.name, p.key)
}

func errUnknownProperty(name string) error {
	return errors.New("${trialSpec." + name + "} is unknown; use Name, Namespace, Kind, APIVersion, Labels[key] and Annotations[key]")
}
