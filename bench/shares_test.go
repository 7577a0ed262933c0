// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"runtime/pprof"
	"testing"
	"time"
)

// TestComponents holds which component a stack belongs to.
func TestComponents(t *testing.T) {
	t.Parallel()
	cases := map[string]struct{ reason, stack, want string }{
		"Own":     {"What a reconciler has others do is its own", "encoding/json.Marshal\ndiwan.dev/diwan/internal/training/trainingjob.(*reconciler).act\nk8s.io/client-go/rest.(*Request).Do", "Diwan's reconcilers"},
		"Webhook": {"A call of a webhook is not the API server's", "k8s.io/apiserver/pkg/admission/plugin/webhook/mutating.(*Plugin).Admit\nk8s.io/apiserver/pkg/endpoints/handlers.createHandler", "Diwan's webhooks, and the calls of them"},
		"Garbage": {"Memory is collected for all", "runtime.scanobject\nruntime.gcAssistAlloc\ngo.etcd.io/etcd/server/v3/mvcc.(*store).Range", "garbage collection"},
		"Other":   {"Some belongs to none", "runtime.findRunnable\nruntime.mcall", others},
	}
	for name, tc := range cases {
		if got := component(tc.stack); got != tc.want {
			t.Errorf("%s: %s: %s, want %s", name, tc.reason, got, tc.want)
		}
	}
}

// TestShares reads a profile of this process.
func TestShares(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cpu")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(200 * time.Millisecond); time.Now().Before(end); {
	}
	pprof.StopCPUProfile()
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	parts, err := shares(t.Context(), path)
	if err != nil || parts[others] < 0.9 {
		t.Errorf("the parts are %v (%v), want all of others", parts, err)
	}
	if _, err := shares(t.Context(), path+".missing"); err == nil {
		t.Error("a profile that is missing is read")
	}
}
