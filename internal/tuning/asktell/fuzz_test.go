// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// nobody refuses everyone: what comes before is what is tried.
type nobody struct{}

func (nobody) Namespace(context.Context, string, string, string) (string, error) {
	return "", status.Error(codes.PermissionDenied, "nobody may")
}

// FuzzRequests checks that no request harms the server: whatever comes, the
// answer is an error in JSON that blames the caller.
func FuzzRequests(f *testing.F) {
	config := DefaultConfig()
	config.Access = nobody{}
	handler := New(config).Handler()
	for method, body := range map[string]string{
		"create":   `{"name": "e", "spec": {"parameters": [{"name": "x", "feasibleSpace": {"min": "0"}}], "trialTemplate": {"external": {"leaseSeconds": 1}}}}`,
		"ask":      `{"experiment": "e", "request_id": "r", "wait_seconds": 1e9, "worker": "é"}`,
		"report":   `{"trial": "t", "lease": "l", "sequence": "18446744073709551615", "metrics": {"loss": "NaN", "": -0}}`,
		"complete": `{"trial": "t", "lease": "l", "failed": true, "message": "\ud800"}`,
		"get":      `{"experiment": "e", "namespace": "../"}`,
	} {
		f.Add(method, []byte(body))
	}
	f.Fuzz(func(t *testing.T, method string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/", bytes.NewReader(body))
		r.URL, r.Header = &url.URL{Path: "/v1/" + method}, http.Header{"Content-Type": {"application/json"}}
		r = r.WithContext(context.WithValue(t.Context(), http.LocalAddrContextKey, net.Addr(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 2})))
		w := httptest.NewRecorder()
		handler.ServeHTTP(w, r)
		if w.Code == http.StatusNotFound || w.Code == http.StatusMethodNotAllowed || w.Code/100 == 3 {
			return // no method of ours
		}
		var answer struct{ Code, Message string }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || answer.Message == "" || (w.Code != http.StatusBadRequest && w.Code != http.StatusForbidden) {
			t.Errorf("%s %q: %d %s", method, body, w.Code, w.Body)
		}
	})
}
