// SPDX-License-Identifier: Apache-2.0

package diwan_test

import (
	"bytes"
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

// TestWebhooksKnowTheAPIServer asks the webhooks of a laptop as another user of the
// machine can, who has no certificate. The API server has one, and gets answers.
func TestWebhooksKnowTheAPIServer(t *testing.T) {
	l := newLab(t, report)
	var hooks admissionregistrationv1.ValidatingWebhookConfiguration
	if err := l.client.Get(t.Context(), client.ObjectKey{Name: "katib.kubeflow.org"}, &hooks); err != nil {
		t.Fatal(err)
	}
	stranger := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(stranger.CloseIdleConnections)
	for _, hook := range hooks.Webhooks {
		response, err := stranger.Post(*hook.ClientConfig.URL, "application/json", bytes.NewReader([]byte("{}")))
		if err == nil {
			response.Body.Close()
			t.Errorf("%s answers a stranger: %s", hook.Name, response.Status)
		} else if !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("%s refuses a stranger with %v, want that a certificate is required", hook.Name, err)
		}
	}
	for reason, c := range map[string]struct{ namespace, want string }{
		"another namespace": {"elsewhere", "configMapNamespace: Forbidden"},
		"its own":           {l.namespace, "not a YAML or JSON object"},
	} {
		e := l.manifest("x", 1, 1, func(e *v1beta1.Experiment) {
			e.Spec.TrialTemplate.SuccessCondition, e.Spec.TrialTemplate.FailureCondition = "status.succeeded", "status.failed"
			e.Spec.TrialTemplate.TrialSource = v1beta1.TrialSource{ConfigMap: &v1beta1.ConfigMapSource{ConfigMapNamespace: c.namespace, ConfigMapName: "things", TemplatePath: "password"}}
		})
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.namespace, Name: "things"}, Data: map[string]string{"password": "hush"}}
		if err := l.client.Create(t.Context(), m); client.IgnoreAlreadyExists(err) != nil {
			t.Fatal(err)
		}
		if err := l.client.Create(t.Context(), e); !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("a template of %s: %v, want %q and no word of it", reason, err, c.want)
		}
	}
}
