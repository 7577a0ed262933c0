// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"
)

// katibConfig is what the tests write of a KatibConfig.
type katibConfig struct {
	Init struct {
		Controller struct {
			TrialResources []string `json:"trialResources,omitempty"`
		} `json:"controller"`
	} `json:"init"`
	Runtime struct {
		Suggestions []serviceEntry `json:"suggestions,omitempty"`
	} `json:"runtime"`
}

type serviceEntry struct {
	AlgorithmName string `json:"algorithmName"`
	Endpoint      string `json:"endpoint,omitempty"`
	Image         string `json:"image,omitempty"`
}

// configure changes the configuration that all tests of the package share.
func (l *lab) configure(change func(*katibConfig)) {
	l.t.Helper()
	const key = "katib-config.yaml"
	l.eventually(func() string {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "kubeflow", Name: "katib-config"}}
		err := l.client.Get(l.t.Context(), client.ObjectKeyFromObject(m), m)
		if err != nil && !apierrors.IsNotFound(err) {
			l.t.Fatal(err)
		}
		var config katibConfig
		if err := yaml.Unmarshal([]byte(m.Data[key]), &config); err != nil {
			l.t.Fatal(err)
		}
		change(&config)
		text, err := yaml.Marshal(config)
		if err != nil {
			l.t.Fatal(err)
		}
		m.Data = map[string]string{key: string(text)}
		if m.ResourceVersion == "" {
			err = l.client.Create(l.t.Context(), m)
		} else {
			err = l.client.Update(l.t.Context(), m)
		}
		switch {
		case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
			return err.Error()
		case err != nil:
			l.t.Fatal(err)
		}
		return ""
	})
}
