// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// hidden is what no tenant but its owner may read.
const hidden = "correct-horse-battery"

// testReferences has a tenant of the namespace red refer to what they may not
// read, and a Pod without credentials ask the webhooks about it.
func (f *foreign) testReferences(t *testing.T, red, blue tenant) {
	ctx := t.Context()
	frame, template, ok := strings.Cut(reporter("NAME", 2, 2, "/dev/null"), "    trialSpec:\n")
	if !ok {
		t.Fatal("the experiment has no template")
	}
	template = strings.ReplaceAll("\n"+template, "\n      ", "\n")
	uses := func(name, namespace, configMap, path string) string {
		return strings.Replace(frame, "NAME", name, 1) + fmt.Sprintf(`    configMap: {configMapName: %s, configMapNamespace: %s, templatePath: %s}
    successCondition: status.conditions.#(type=="Complete")#|#(status=="True")#
    failureCondition: status.conditions.#(type=="Failed")#|#(status=="True")#
`, configMap, namespace, path)
	}
	put := func(by tenant, namespace, name string, labels map[string]string) {
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Data: map[string]string{
			"template": template, "password": hidden, "object": "{apiVersion: batch/v1, kind: Job, spec: {" + hidden + ": ${trialParameters.x}}}",
		}}
		if _, err := by.kube.CoreV1().ConfigMaps(namespace).Create(ctx, m, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	all := tenant{f.kube, f.any}
	put(red, "red", "things", nil)
	put(blue, "blue", "things", nil)
	put(all, f.home, "things", nil)
	put(all, f.home, "shared", map[string]string{"katib.kubeflow.org/component": "trial-templates"})

	for _, path := range []string{"template", "password", "object", "none"} {
		err := create(ctx, red.any, "red", uses("refused", "blue", "things", path))
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), "configMapNamespace") || strings.Contains(err.Error(), hidden) {
			t.Errorf("a template of another namespace, key %s: %v, want that the namespace is forbidden", path, err)
		}
	}
	for name, c := range map[string]struct{ namespace, configMap, path, want string }{
		"own":      {"red", "things", "template", "Succeeded"},
		"shared":   {f.home, "shared", "template", "Succeeded"},
		"password": {"red", "things", "password", "Failed"},
		"object":   {f.home, "shared", "object", "Failed"},
		"unshared": {f.home, "things", "template", ""},
	} {
		if err := create(ctx, red.any, "red", uses(name, c.namespace, c.configMap, c.path)); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		eventually(t, 2*time.Minute, func() error {
			object, err := red.any.Resource(experiments).Namespace("red").Get(ctx, name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			if status := fmt.Sprint(object.Object["status"]); strings.Contains(status, hidden) {
				t.Fatalf("%s: the status quotes the ConfigMap: %s", name, status)
			}
			if c.want == "" {
				return f.waitsForLabel(ctx, red, name)
			}
			if _, _, ok := condition(object, c.want); !ok {
				return fmt.Errorf("experiment %s is not %s: %v", name, c.want, object.Object["status"])
			}
			return nil
		})
	}
	events, err := red.kube.EventsV1().Events("red").List(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events.Items {
		if strings.Contains(e.Note, hidden) {
			t.Errorf("an event quotes a ConfigMap: %s", e.Note)
		}
	}
	f.testStranger(t, uses)
}

// waitsForLabel wants an event to say that a template is not for all.
func (f *foreign) waitsForLabel(ctx context.Context, who tenant, experiment string) error {
	events, err := who.kube.EventsV1().Events("red").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, e := range events.Items {
		if e.Regarding.Kind == "Experiment" && e.Regarding.Name == experiment && strings.Contains(e.Note, "katib.kubeflow.org/component=trial-templates") {
			return nil
		}
	}
	return fmt.Errorf("no event on experiment %s says that the template needs a label", experiment)
}

// testStranger asks the webhooks' port as any Pod can, in the name of an
// administrator: the answer must not depend on what a namespace holds.
func (f *foreign) testStranger(t *testing.T, uses func(name, namespace, configMap, path string) string) {
	pods := f.operators()
	if len(pods) == 0 {
		t.Fatal("there are no operators")
	}
	client := http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	t.Cleanup(client.CloseIdleConnections)
	ask := func(path, namespace, object string) string {
		decoded, err := decode(object)
		if err != nil {
			t.Fatal(err)
		}
		raw, err := decoded.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		review := admissionv1.AdmissionReview{Request: &admissionv1.AdmissionRequest{
			UID: "1", Namespace: namespace, Operation: admissionv1.Create, Object: runtime.RawExtension{Raw: raw},
			UserInfo: authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}},
		}}
		review.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("AdmissionReview"))
		body, err := json.Marshal(review)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Post("https://"+net.JoinHostPort(pods[0].Status.PodIP, "8443")+path, "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		text, err := io.ReadAll(response.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	pod := func(job string) string {
		return `{apiVersion: v1, kind: Pod, metadata: {name: p, labels: {katib.kubeflow.org/trial: ` + job + `},
			ownerReferences: [{apiVersion: batch/v1, kind: Job, name: ` + job + `, uid: guessed, controller: true}]},
			spec: {containers: [{name: main, image: report}]}}`
	}
	trials, err := f.any.Resource(trials).Namespace("blue").List(t.Context(), metav1.ListOptions{})
	if err != nil || len(trials.Items) == 0 {
		t.Fatalf("there are no trials: %v", err)
	}
	there := trials.Items[0].GetName()
	for name, c := range map[string]struct{ path, known, unknown string }{
		"ConfigMap": {"/validate-experiment", uses("x", "blue", "things", "password"), uses("x", "blue", "nothing", "password")},
		"Key":       {"/validate-experiment", uses("x", "blue", "things", "password"), uses("x", "blue", "things", "nothing")},
		"Operator":  {"/validate-experiment", uses("x", f.home, "katib-config", "katib-config.yaml"), uses("x", f.home, "nothing", "katib-config.yaml")},
		"Pod":       {"/mutate-pod", pod(there), pod("nothing")},
	} {
		known, unknown := ask(c.path, "blue", c.known), ask(c.path, "blue", c.unknown)
		if known != unknown || strings.Contains(known, hidden) || !strings.Contains(known, `"allowed"`) {
			t.Errorf("%s: whoever reaches the webhooks learns what is there:\n%s\n%s", name, known, unknown)
		}
	}
}
