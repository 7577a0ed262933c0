// SPDX-License-Identifier: Apache-2.0

package statusserver_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/diwan"
	"diwan.dev/diwan/internal/testing/clustertest"
	"diwan.dev/diwan/internal/training/statusserver"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// bench is a namespace of the real cluster with a job, and Pods.
type bench struct {
	t         *testing.T
	api       client.Client
	namespace string
	server    *httptest.Server
}

func newBench(t *testing.T) *bench {
	t.Helper()
	c, namespace := cluster.Namespace(t)
	scheme, err := diwan.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{t, api, namespace, httptest.NewServer(statusserver.New(api))}
	t.Cleanup(b.server.Close)
	b.create(&v1alpha1.TrainJob{
		ObjectMeta: metav1.ObjectMeta{Name: "job", Namespace: namespace},
		Spec:       v1alpha1.TrainJobSpec{RuntimeRef: v1alpha1.RuntimeRef{Name: "torch-distributed"}, Suspend: ptr.To(true)},
	})
	return b
}

func (b *bench) create(o client.Object) {
	b.t.Helper()
	if err := b.api.Create(b.t.Context(), o); err != nil {
		b.t.Fatal(err)
	}
}

// pod makes a Pod, which goes nowhere, with the label of a job's Pods.
func (b *bench) pod(name, job string) *corev1.Pod {
	b.t.Helper()
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: b.namespace, Labels: map[string]string{jobset.LabelJobSetName: job}},
		Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"nowhere": "true"},
			Containers:   []corev1.Container{{Name: "node", Image: "i", Command: []string{"true"}}},
		},
	}
	b.create(p)
	return p
}

// token makes a token for an audience, as the kubelet does for a Pod; nil: one
// of the account alone.
func (b *bench) token(audience string, p *corev1.Pod) string {
	b.t.Helper()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{Audiences: []string{audience}}}
	if p != nil {
		request.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: "Pod", APIVersion: "v1", Name: p.Name, UID: p.UID}
	}
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "tester", Namespace: b.namespace}}
	if p != nil {
		account.Name = p.Spec.ServiceAccountName
	}
	_ = b.api.Create(b.t.Context(), account.DeepCopy()) // unless it is there
	if err := b.api.SubResource("token").Create(b.t.Context(), account, request); err != nil {
		b.t.Fatal(err)
	}
	return request.Status.Token
}

// post tells something, and returns the code and the message of the answer.
func (b *bench) post(path, token, body string) (int, string) {
	b.t.Helper()
	request, err := http.NewRequestWithContext(b.t.Context(), http.MethodPost, b.server.URL+path, strings.NewReader(body))
	if err != nil {
		b.t.Fatal(err)
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		b.t.Fatal(err)
	}
	defer answer.Body.Close()
	var text bytes.Buffer
	if _, err := text.ReadFrom(answer.Body); err != nil {
		b.t.Fatal(err)
	}
	var status metav1.Status
	if err := json.Unmarshal(text.Bytes(), &status); err != nil {
		b.t.Fatalf("the answer is no JSON: %s", text.String())
	}
	if answer.StatusCode == http.StatusOK {
		return answer.StatusCode, strings.TrimSpace(text.String())
	}
	return answer.StatusCode, status.Message
}

// told is what the job says that it was told.
func (b *bench) told() *v1alpha1.TrainerStatus {
	b.t.Helper()
	job := &v1alpha1.TrainJob{}
	if err := b.api.Get(context.WithoutCancel(b.t.Context()), client.ObjectKey{Namespace: b.namespace, Name: "job"}, job); err != nil {
		b.t.Fatal(err)
	}
	return job.Status.TrainerStatus
}

// TestStatus has a Pod of a job tell of its training, twice.
func TestStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path := v1alpha1.StatusPath(b.namespace, "job")
	token := b.token(v1alpha1.StatusAudience(b.namespace, "job"), b.pod("node-0", "job"))

	const first = `{"trainerStatus":{"progressPercentage":42,"estimatedRemainingSeconds":120,"metrics":[{"name":"loss","value":"0.1"}],"lastUpdatedTime":"2026-01-02T03:04:05.678901+00:00"}}`
	if code, text := b.post(path, token, first); code != http.StatusOK || !strings.Contains(text, `"progressPercentage":42`) {
		t.Fatalf("the answer is %d %s", code, text)
	}
	want := &v1alpha1.TrainerStatus{ProgressPercentage: ptr.To[int32](42), EstimatedRemainingSeconds: ptr.To[int32](120), Metrics: []v1alpha1.Metric{{Name: "loss", Value: "0.1"}}}
	got := b.told()
	if got == nil || got.LastUpdatedTime.IsZero() {
		t.Fatalf("the job was told %+v", got)
	}
	got.LastUpdatedTime = metav1.Time{}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the job was told otherwise (-want +got):\n%s", diff)
	}
	if code, text := b.post(path, token, `{"trainerStatus":{"progressPercentage":43,"lastUpdatedTime":"2026-01-02T03:04:06Z"}}`); code != http.StatusOK {
		t.Fatalf("the answer is %d %s", code, text)
	}
	if got := b.told(); got.Metrics != nil || got.EstimatedRemainingSeconds != nil || *got.ProgressPercentage != 43 {
		t.Errorf("what was told before is left: %+v", got)
	}
	if code, text := b.post(path, token, `{}`); code != http.StatusOK || text != `{}` || b.told() == nil {
		t.Errorf("to tell nothing changes something: %d %s", code, text)
	}
}

// TestStatusRefuses holds who may not tell, and what.
func TestStatusRefuses(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	path, audience := v1alpha1.StatusPath(b.namespace, "job"), v1alpha1.StatusAudience(b.namespace, "job")
	own := b.pod("node-0", "job")
	token := b.token(audience, own)
	gone := b.pod("node-1", "job")
	left := b.token(audience, gone)
	if err := b.api.Delete(t.Context(), gone, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	const good = `{"trainerStatus":{"progressPercentage":1,"lastUpdatedTime":"2026-01-02T03:04:06Z"}}`
	absent := v1alpha1.StatusPath(b.namespace, "absent")
	cases := []struct {
		reason, path, token, body string
		code                      int
		want                      string
	}{
		{"nobody", path, "", good, http.StatusForbidden, "a bearer token is missing"},
		{"no token", path, "nonsense", good, http.StatusForbidden, "not valid"},
		{"another audience", path, b.token("diwan-metrics", own), good, http.StatusForbidden, "not valid"},
		{"the token of another job's path", absent, token, good, http.StatusForbidden, "not valid"},
		{"a Pod of another job", path, b.token(audience, b.pod("stranger", "other")), good, http.StatusForbidden, "does not belong to the TrainJob"},
		{"an account that is no Pod", path, b.token(audience, nil), good, http.StatusForbidden, "is not a Pod's"},
		{"a Pod that is gone", path, left, good, http.StatusForbidden, ""},
		{"no JSON", path, token, `{"trainerStatus":`, http.StatusUnprocessableEntity, "Invalid payload"},
		{"beyond the end", path, token, strings.Replace(good, ":1,", ":101,", 1), http.StatusUnprocessableEntity, "less than or equal to 100"},
		{"no time", path, token, `{"trainerStatus":{"progressPercentage":1}}`, http.StatusUnprocessableEntity, "lastUpdatedTime"},
		{"too much", path, token, `{"trainerStatus":{"metrics":[{"name":"` + strings.Repeat("x", 1<<16) + `"}]}}`, http.StatusRequestEntityTooLarge, "Payload too large"},
		{"no such job", absent, b.token(v1alpha1.StatusAudience(b.namespace, "absent"), b.pod("ghost", "absent")), good, http.StatusNotFound, "Train job not found"},
		{"another path", "/apis", token, good, http.StatusNotFound, "Not found"},
	}
	for _, c := range cases {
		if code, message := b.post(c.path, c.token, c.body); code != c.code || !strings.Contains(message, c.want) {
			t.Errorf("%s: the answer is %d %q, want %d %q", c.reason, code, message, c.code, c.want)
		}
	}
	if got := b.told(); got != nil {
		t.Errorf("the job was told %+v", got)
	}
}
