// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"diwan.dev/diwan/internal/platform/domain"
)

// TestReady waits for every kind of every version.
func TestReady(t *testing.T) {
	t.Parallel()
	kind := func(version, plural string) domain.Kind {
		return domain.Kind{GroupVersionKind: schema.GroupVersionKind{Group: "example.com", Version: version}, Plural: plural}
	}
	kinds := []domain.Kind{kind("v1", "apples"), kind("v1", "pears"), kind("v2", "pears")}
	for _, c := range []struct {
		reason string
		served map[string][]string
		want   bool
	}{
		{"nothing is served", nil, false},
		{"a version is missing", map[string][]string{"v1": {"apples", "pears"}}, false},
		{"a kind is missing", map[string][]string{"v1": {"pears"}, "v2": {"pears"}}, false},
		{"all are served", map[string][]string{"v1": {"pears", "apples", "apples/status"}, "v2": {"pears"}}, true},
	} {
		mux := http.NewServeMux()
		for version, resources := range c.served {
			list := metav1.APIResourceList{TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: "example.com/" + version}
			for _, name := range resources {
				list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
			}
			mux.HandleFunc("/apis/example.com/"+version, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "application/json")
				if err := json.NewEncoder(w).Encode(list); err != nil {
					t.Error(err)
				}
			})
		}
		server := httptest.NewServer(mux)
		t.Cleanup(server.Close)
		if got := ready(t.Context(), &rest.Config{Host: server.URL}, kinds); got != c.want {
			t.Errorf("%s: ready is %t", c.reason, got)
		}
	}
}
