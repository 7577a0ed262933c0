// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// answers is an API server with these objects, by path.
func answers(objects map[string]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		object, ok := objects[r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			object = `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`
		}
		fmt.Fprint(w, object)
	}
}

// TestCollectorLogs holds which requests are answered with another log. That
// the log is the trial's is held by the end-to-end tests.
func TestCollectorLogs(t *testing.T) {
	t.Parallel()
	const pod = `{"kind":"Pod","apiVersion":"v1","metadata":{"labels":{%s}},"spec":{"containers":[{"name":"main"},{"name":"%s"}]}}`
	const trial = `"katib.kubeflow.org/trial":"t-1"`
	server := httptest.NewServer(answers(map[string]string{
		"/api/v1/namespaces/ns/pods/trial":                    fmt.Sprintf(pod, trial, "beside"),
		"/api/v1/namespaces/ns/pods/injected":                 fmt.Sprintf(pod, trial, collectorContainer),
		"/api/v1/namespaces/ns/pods/other":                    fmt.Sprintf(pod, "", "beside"),
		"/api/v1/namespaces/ns/pods/orphan":                   fmt.Sprintf(pod, `"katib.kubeflow.org/trial":"gone"`, "beside"),
		"/apis/kubeflow.org/v1beta1/namespaces/ns/trials/t-1": `{"spec":{"primaryContainerName":"main"}}`,
	}))
	t.Cleanup(server.Close)
	kube, err := kubernetes.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	const collector = "?container=metrics-logger-and-collector&follow=true"
	for _, c := range []struct{ reason, request, want string }{
		{"the collector of a trial prints what its program prints", "/api/v1/namespaces/ns/pods/trial/log" + collector, "/api/v1/namespaces/ns/pods/trial/log?container=main&follow=true"},
		{"another container has its own log", "/api/v1/namespaces/ns/pods/trial/log?container=beside", ""},
		{"a request that names no container", "/api/v1/namespaces/ns/pods/trial/log", ""},
		{"a collector that is there has its own log", "/api/v1/namespaces/ns/pods/injected/log" + collector, ""},
		{"a Pod that is no trial's", "/api/v1/namespaces/ns/pods/other/log" + collector, ""},
		{"a Pod whose trial is gone", "/api/v1/namespaces/ns/pods/orphan/log" + collector, ""},
		{"a Pod that is not there", "/api/v1/namespaces/ns/pods/none/log" + collector, ""},
		{"something else of a Pod", "/api/v1/namespaces/ns/pods/trial/exec" + collector, ""},
		{"something that is no Pod's", "/apis/batch/v1/ns/pods/trial/log" + collector, ""},
	} {
		want := c.want
		if want == "" {
			want = c.request
		}
		var got string
		next := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.URL.RequestURI() })
		collectorLogs{next: next, kube: kube}.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodGet, c.request, nil))
		if got != want {
			t.Errorf("%s: %s became %s, want %s", c.reason, c.request, got, want)
		}
	}
}
