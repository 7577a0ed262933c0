// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/apiserver/pkg/warning"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/core"
	corev1conversion "k8s.io/kubernetes/pkg/apis/core/v1"

	"diwan.dev/diwan/internal/platform/node"
)

// forecastName is the admission plugin's name in kube-apiserver's list.
const forecastName = "DiwanForecast"

// forecaster is an admission plugin that warns who creates a Pod or a Job of what the
// node will find missing, such as an image that stands for nothing: they would
// else see a Pod that waits, as `kubectl run` does, without a word.
type forecaster struct {
	forecast *node.Forecast
	own      []string // users who read no warnings
}

var _ admission.ValidationInterface = forecaster{}

func newForecaster(forecast *node.Forecast, own ...string) admission.Factory {
	return func(io.Reader) (admission.Interface, error) { return forecaster{forecast, own}, nil }
}

// Handles implements admission.Interface.
func (forecaster) Handles(operation admission.Operation) bool { return operation == admission.Create }

// Validate implements admission.ValidationInterface. It refuses nothing: what is missing may come.
func (f forecaster) Validate(ctx context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	if a.GetSubresource() != "" || a.GetUserInfo() == nil || slices.Contains(f.own, a.GetUserInfo().GetName()) {
		return nil
	}
	template := core.PodTemplateSpec{}
	switch object := a.GetObject().(type) {
	case *core.Pod:
		template.ObjectMeta, template.Spec = object.ObjectMeta, object.Spec
	case *batch.Job:
		template = object.Spec.Template
	default:
		return nil
	}
	converted := &corev1.PodTemplateSpec{}
	if err := corev1conversion.Convert_core_PodTemplateSpec_To_v1_PodTemplateSpec(&template, converted, nil); err != nil {
		return nil // the registry says what is wrong
	}
	pod := &corev1.Pod{ObjectMeta: converted.ObjectMeta, Spec: converted.Spec}
	for _, c := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		if _, err := f.forecast.Container(pod, &c); err != nil {
			warning.AddWarning(ctx, "", fmt.Sprintf("container %s: %v", c.Name, err))
		}
	}
	return nil
}
