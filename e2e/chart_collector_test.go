// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	oci "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	ocimutate "github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// testCollector wants what a trial prints to be collected by the container that
// its Pod is given.
func (f *foreign) testCollector(t *testing.T) {
	f.namespace("printing")
	text := strings.Replace(shape{name: "x", trials: 2, parallel: 2, command: "echo loss=${trialParameters.x}"}.manifest(), "namespace: default", "namespace: printing", 1)
	if err := create(t.Context(), f.any, "printing", text); err != nil {
		t.Fatal(err)
	}
	for _, trial := range f.succeeded(t, "printing", "x", 2*time.Minute) {
		metrics, _, _ := unstructured.NestedSlice(trial.Object, "status", "observation", "metrics")
		if value := strings.TrimPrefix(assignments(&trial), "x="); !strings.Contains(fmt.Sprint(metrics), "latest:"+value) {
			t.Errorf("trial %s observed %v, want %s", trial.GetName(), metrics, value)
		}
	}
}

// testImages runs trials whose manifests do not say what they run: the operator
// asks the image's registry. One writes no event file, of which its users hear.
func (f *foreign) testImages(t *testing.T) {
	f.namespace("images")
	image := f.registry(t) + "/team/train:1"
	reference, err := name.ParseReference(image)
	if err != nil {
		t.Fatal(err)
	}
	train, err := ocimutate.Config(empty.Image, oci.Config{Entrypoint: []string{"sh", "-c", "echo loss=$0"}, Cmd: []string{"9"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(reference, train); err != nil {
		t.Fatal(err)
	}
	const runs = "image: report, args: [/dev/null, "
	for name, kind := range map[string]string{"printing": "StdOut", "silent": "TensorFlowEvent"} {
		text := strings.NewReplacer("kind: Push", "kind: "+kind, runs+`"loss=${trialParameters.x}"]`, "image: '"+image+`', args: ["${trialParameters.x}"]`).Replace(reporter(name, 1, 1, "/dev/null"))
		if strings.Contains(text, runs) {
			t.Fatalf("the manifest still says what runs:\n%s", text)
		}
		if err := create(t.Context(), f.any, "images", text); err != nil {
			t.Fatal(err)
		}
	}
	f.succeeded(t, "images", "printing", 2*time.Minute)
	eventually(t, time.Minute, func() error {
		events, err := f.kube.EventsV1().Events("images").List(t.Context(), metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, e := range events.Items {
			if e.Regarding.Kind == "Trial" && strings.HasPrefix(e.Regarding.Name, "silent-") && e.Reason == "MetricsCollection" && strings.Contains(e.Note, "no event file") {
				return nil
			}
		}
		return fmt.Errorf("no event on the trial says that it has written no event file: %d events", len(events.Items))
	})
}

// registry runs a registry that Pods of the cluster reach, and returns its
// address.
func (f *foreign) registry(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", net.JoinHostPort(f.cluster.Gateway(), "0"))
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{Handler: registry.New(registry.Logger(log.New(io.Discard, "", 0))), ReadHeaderTimeout: time.Minute}
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = server.Serve(listener)
	}()
	t.Cleanup(func() {
		server.Close()
		<-done
	})
	return listener.Addr().String()
}
