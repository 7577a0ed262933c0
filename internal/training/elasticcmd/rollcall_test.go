// SPDX-License-Identifier: Apache-2.0

package elasticcmd

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestHosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		pods, reason string
		want         []string
	}{
		{`{"spec":{"nodeName":"n"},"status":{"phase":"Running","podIP":"10.0.0.1"}}`, "it runs", []string{"10.0.0.1"}},
		{`{"spec":{"nodeName":"n"},"status":{"phase":"Pending","podIP":"10.0.0.1"}}`, "it may run, and the kubelet has not said so yet", []string{"10.0.0.1"}},
		{`{"spec":{"nodeName":"n"},"status":{"phase":"Unknown","podIP":"fd00::0:1"}}`, "its machine is lost, and may be alive", []string{"fd00::1"}},
		{`{"metadata":{"name":"p"},"spec":{"nodeName":"n"},"status":{"phase":"Pending"}}`, "its address is not known", []string{"Pod p"}},
		{`{"spec":{},"status":{"phase":"Pending"}}`, "it has no machine", nil},
		{`{"spec":{"nodeName":"n"},"status":{"phase":"Failed","podIP":"10.0.0.1"}}`, "it has ended", nil},
		{`{"spec":{"nodeName":"n"},"status":{"phase":"Succeeded","podIP":"10.0.0.1"}}`, "it has ended", nil},
		{
			`{"spec":{"nodeName":"n"},"status":{"podIP":"10.0.0.1"}},{"spec":{"nodeName":"n"},"status":{"podIP":"10.0.0.1"}}`,
			"two on the network of one machine", []string{"10.0.0.1", "10.0.0.1"},
		},
	} {
		var list pods
		if err := json.Unmarshal([]byte(`{"items":[`+c.pods+`]}`), &list); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, list.hosts()); diff != "" {
			t.Errorf("%s: (-want +got)\n%s", c.reason, diff)
		}
	}
}

// TestListHostsFails has answers that are no list: none may pass for one of nobody.
func TestListHostsFails(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		status       int
		text, reason string
	}{
		{http.StatusForbidden, `{"message":"pods is forbidden"}`, "must be allowed to list Pods"},
		{http.StatusOK, `{"items":[{"spec":`, "unexpected EOF"},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Header.Get("Authorization") != "Bearer secret" {
				t.Errorf("the token is not shown: %v", r.Header)
			}
			w.WriteHeader(c.status)
			w.Write([]byte(c.text))
		}))
		if hosts, err := listHosts(t.Context(), server.Client(), server.URL, "secret"); err == nil || !strings.Contains(err.Error(), c.reason) {
			t.Errorf("%d %s: %v, %v; want an error with %q", c.status, c.text, hosts, err, c.reason)
		}
		server.Close()
	}
}
