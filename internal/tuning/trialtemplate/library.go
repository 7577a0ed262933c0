// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

var (
	// ErrForbidden is wrapped by the error about a ConfigMap in a namespace whose
	// templates an experiment may not use.
	ErrForbidden = errors.New("the experiment may not use templates in this namespace")
	// ErrBroken is wrapped by the error about a ConfigMap that holds no template.
	ErrBroken = errors.New("the ConfigMap has no such template")
)

type (
	forbidden struct{ error }
	broken    struct{ error }
)

// Is implements errors.Is.
func (forbidden) Is(target error) bool { return target == ErrForbidden }

// Is implements errors.Is.
func (broken) Is(target error) bool { return target == ErrBroken }

// Library finds the templates in ConfigMaps. The operator reads them with its own
// permissions, so an experiment may use only those in its own namespace, and
// those in the operator's namespace that are labeled as trial templates.
type Library struct {
	// Reader reads ConfigMaps. Nil: none can be read here.
	Reader client.Reader
	// Namespace is the operator's own.
	Namespace string
}

// permits reports whether experiments in a namespace may use the ConfigMaps
// of another.
func (l Library) permits(namespace, of string) error {
	switch {
	case of == namespace, of == l.Namespace && of != "":
		return nil
	case l.Namespace == namespace || l.Namespace == "":
		return fmt.Errorf("must be %q, the Experiment's namespace: copy the ConfigMap there", namespace)
	}
	return fmt.Errorf("must be %q, the Experiment's namespace, or %q, the operator's: copy the ConfigMap there", namespace, l.Namespace)
}

// fetch returns the text of a template.
func (l Library) fetch(ctx context.Context, namespace string, source *v1beta1.ConfigMapSource) (string, error) {
	if err := l.permits(namespace, source.ConfigMapNamespace); err != nil {
		return "", forbidden{fmt.Errorf("cannot use %s: configMapNamespace %w", describe(source), err)}
	}
	if l.Reader == nil {
		return "", fmt.Errorf("cannot read %s: ConfigMaps are not available here", describe(source))
	}
	m := &corev1.ConfigMap{}
	err := l.Reader.Get(ctx, client.ObjectKey{Namespace: source.ConfigMapNamespace, Name: source.ConfigMapName}, m)
	shared := source.ConfigMapNamespace != namespace
	switch {
	case shared && (apierrors.IsNotFound(err) || err == nil && m.Labels[v1beta1.LabelComponent] != v1beta1.ComponentTrialTemplates):
		return "", fmt.Errorf("cannot read %s: namespace %s has no ConfigMap with this name and the label %s=%s, which allows other namespaces to use it",
			describe(source), source.ConfigMapNamespace, v1beta1.LabelComponent, v1beta1.ComponentTrialTemplates)
	case err != nil:
		return "", fmt.Errorf("cannot read %s: %w", describe(source), err)
	}
	text, ok := m.Data[source.TemplatePath]
	switch {
	case !ok:
		return "", broken{fmt.Errorf("cannot use %s: the ConfigMap has no such key", describe(source))}
	case text == "":
		return "", broken{fmt.Errorf("cannot use %s: it is empty", describe(source))}
	}
	return text, nil
}

func describe(source *v1beta1.ConfigMapSource) string {
	return fmt.Sprintf("template %q of ConfigMap %s/%s", source.TemplatePath, source.ConfigMapNamespace, source.ConfigMapName)
}
