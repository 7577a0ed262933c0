// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	"sigs.k8s.io/yaml"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/trialtemplate"
)

// house has objects of which each is there in one of two worlds. Whoever asks
// must not be able to tell in which.
type house struct {
	client.Reader
	full bool
}

func (h house) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if !h.full {
		return fmt.Errorf("there is no %s", key)
	}
	into.SetName(key.Name)
	into.SetUID("known-to-its-readers")
	into.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: v1beta1.GroupVersion.String(), Kind: v1beta1.TrialKind, Name: "trial", UID: "known-to-its-readers", Controller: ptr.To(true)}})
	into.SetLabels(map[string]string{v1beta1.LabelComponent: v1beta1.ComponentTrialTemplates, "secret": "hush"})
	return nil
}

// TestStrangersLearnNothing asks, as anyone who reaches the port may, in the name
// of an administrator about objects of a namespace, and wants the same answer
// whether they are there or not.
func TestStrangersLearnNothing(t *testing.T) {
	t.Parallel()
	const pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, OWNER}, spec: {containers: [{name: main, image: private}]}}"
	owner := "ownerReferences: [{apiVersion: batch/v1, kind: Job, name: job, uid: guessed, controller: true}]"
	cases := map[string]struct{ path, object string }{
		"TemplateOfNamespace": {PathValidateExperiment, inConfigMap("ns")},
		"TemplateOfOperator":  {PathValidateExperiment, inConfigMap("kubeflow")},
		"TemplateElsewhere":   {PathValidateExperiment, inConfigMap("other")},
		"PodByLabel":          {PathMutatePod, strings.Replace(pod, "OWNER", "labels: {katib.kubeflow.org/trial: trial}", 1)},
		"PodByOwner":          {PathMutatePod, strings.Replace(pod, "OWNER", owner, 1)},
		"PodByBoth":           {PathMutatePod, strings.Replace(pod, "OWNER", "labels: {katib.kubeflow.org/trial: trial}, "+owner, 1)},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var answers []string
			for _, full := range []bool{false, true} {
				objects := house{full: full}
				handler := Handlers(Config{
					Templates:  trialtemplate.Library{Reader: objects, Namespace: "kubeflow"},
					Algorithms: v1beta1.Algorithms{Search: map[string]bool{"random": true}, Check: func(*v1beta1.ExperimentSpec) error { return nil }},
					Ancestry:   NewAncestry(readable{objects}, clock.RealClock{}),
				})[c.path]
				raw, err := yaml.YAMLToJSON([]byte(c.object))
				if err != nil {
					t.Fatal(err)
				}
				request := admissionv1.AdmissionRequest{UID: "1", Namespace: "ns", Object: runtime.RawExtension{Raw: raw},
					UserInfo: authenticationv1.UserInfo{Username: "admin", Groups: []string{"system:masters"}}}
				text, err := json.Marshal(handler(t.Context(), ctrladmission.Request{AdmissionRequest: request}))
				if err != nil {
					t.Fatal(err)
				}
				answers = append(answers, string(text))
			}
			if answers[0] != answers[1] {
				t.Errorf("the answer tells what is there:\n%s\n%s", answers[0], answers[1])
			}
		})
	}
}

// readable finds nothing without an error, as the API server does.
type readable struct{ house }

func (r readable) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	if !r.full {
		return nil // with no UID
	}
	return r.house.Get(ctx, key, into)
}

// inConfigMap is an experiment whose template is in a ConfigMap of a namespace.
func inConfigMap(namespace string) string {
	frame, _, _ := strings.Cut(experiment, "    trialSpec:")
	return frame + "    configMap: {configMapName: secrets, configMapNamespace: " + namespace + ", templatePath: password}\n"
}
