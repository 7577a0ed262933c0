// SPDX-License-Identifier: Apache-2.0

package model_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/models/v1alpha1"
	"diwan.dev/diwan/internal/testing/clustertest"
)

var cluster clustertest.Shared

func TestMain(m *testing.M) { os.Exit(cluster.Run(m)) }

// bench is a namespace of a real cluster, in which the reconciler runs.
type bench struct {
	*testing.T
	client.Client
	namespace string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	c, namespace := cluster.Namespace(t)
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	api, err := client.New(c.RESTConfig(), client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	return &bench{t, api, namespace}
}

func (b *bench) eventually(check func() error) {
	b.Helper()
	var last error
	if err := wait.PollUntilContextTimeout(b.Context(), 50*time.Millisecond, time.Minute, true, func(context.Context) (bool, error) {
		last = check()
		return last == nil, nil
	}); err != nil {
		b.Fatalf("%v: %v", err, last)
	}
}

func (b *bench) version(model string, number int64, changes ...func(*v1alpha1.ModelVersion)) *v1alpha1.ModelVersion {
	v := &v1alpha1.ModelVersion{
		ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: v1alpha1.ModelVersionName(model, number)},
		Spec:       v1alpha1.ModelVersionSpec{Model: model, Version: number, URI: "s3://bucket/model"},
	}
	for _, change := range changes {
		change(v)
	}
	return v
}

func (b *bench) create(objects ...client.Object) {
	b.Helper()
	for _, o := range objects {
		if err := b.Create(b.Context(), o); err != nil {
			b.Fatal(err)
		}
	}
}

// present are the versions of a model that exist, each with its aliases.
func (b *bench) present(model string) map[string]string {
	b.Helper()
	var list v1alpha1.ModelVersionList
	if err := b.List(b.Context(), &list, client.InNamespace(b.namespace), client.MatchingLabels{v1alpha1.LabelModel: model}); err != nil {
		b.Fatal(err)
	}
	all := map[string]string{}
	for _, v := range list.Items {
		all[v.Name] = strings.Join(v.Status.Aliases, ",")
	}
	return all
}

// TestModel has versions come and go: the Model is made, they belong to it, aliases
// follow, only the newest stay, and all go with the Model.
func TestModel(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	b.create(b.version("digits", 1), b.version("digits", 2), b.version("letters", 1))
	m := &v1alpha1.Model{}
	key := client.ObjectKey{Namespace: b.namespace, Name: "digits"}
	b.eventually(func() error { return b.Get(t.Context(), key, m) })
	b.eventually(func() error {
		if diff := cmp.Diff(map[string]string{"digits-v1": "", "digits-v2": "latest"}, b.present("digits")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	keep := int32(1)
	change := client.MergeFrom(m.DeepCopy())
	m.Spec.KeepVersions, m.Spec.Aliases = &keep, map[string]int64{"champion": 1, "next": 4}
	if err := b.Patch(t.Context(), m, change); err != nil {
		t.Fatal(err)
	}
	b.create(b.version("digits", 3))
	b.eventually(func() error {
		if diff := cmp.Diff(map[string]string{"digits-v1": "champion", "digits-v3": "latest"}, b.present("digits")); diff != "" {
			return errors.New(diff)
		}
		return nil
	})
	b.eventually(func() error {
		if err := b.Get(t.Context(), key, m); err != nil {
			return err
		}
		c := meta.FindStatusCondition(m.Status.Conditions, v1alpha1.ModelResolved)
		if m.Status.Versions != 2 || m.Status.LatestVersion != 3 || m.Status.HighestVersion != 3 || c == nil || c.Reason != v1alpha1.ReasonVersionMissing {
			return fmt.Errorf("the status is %+v", m.Status)
		}
		return nil
	})
	if err := b.Delete(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	b.eventually(func() error {
		if left := b.present("digits"); len(left) > 0 {
			return fmt.Errorf("%v are left", left)
		}
		return nil
	})
	if err := b.Get(t.Context(), key, m); !apierrors.IsNotFound(err) {
		t.Errorf("the model was made again: %v", err)
	}
	b.eventually(func() error {
		if got := b.present("letters"); len(got) != 1 {
			return fmt.Errorf("of the other model there is %v", got)
		}
		return nil
	})
}

// TestRules sends the API server what it must refuse.
func TestRules(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	v := b.version("digits", 1, func(v *v1alpha1.ModelVersion) { v.Spec.Metrics = map[string]string{"accuracy": "0.9"} })
	b.create(v)
	refused := func(err error, want string) {
		t.Helper()
		if !apierrors.IsInvalid(err) || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	for want, change := range map[string]func(*v1alpha1.ModelVersionSpec){
		"spec.uri: Forbidden":                   func(s *v1alpha1.ModelVersionSpec) { s.URI = "s3://bucket/other" },
		"spec.version: Forbidden":               func(s *v1alpha1.ModelVersionSpec) { s.Version = 2 },
		"spec.metrics: Forbidden":               func(s *v1alpha1.ModelVersionSpec) { s.Metrics = map[string]string{"accuracy": "1"} },
		"spec.metrics: Forbidden: is immutable": func(s *v1alpha1.ModelVersionSpec) { s.Metrics = nil },
		"spec.stage: Unsupported value":         func(s *v1alpha1.ModelVersionSpec) { s.Stage = "production" },
	} {
		next := &v1alpha1.ModelVersion{}
		b.eventually(func() error { // it is being adopted, too
			if err := b.Get(t.Context(), client.ObjectKeyFromObject(v), next); err != nil {
				return err
			}
			change(&next.Spec)
			if err := b.Update(t.Context(), next); err == nil || apierrors.IsConflict(err) {
				return fmt.Errorf("want %q: %v", want, err)
			} else {
				refused(err, want)
			}
			return nil
		})
	}
	for want, v := range map[string]*v1alpha1.ModelVersion{
		"must be the model's name, -v and the version": b.version("digits", 2, func(v *v1alpha1.ModelVersion) { v.Name = "mine" }),
		"must be a URI":                        b.version("digits", 2, func(v *v1alpha1.ModelVersion) { v.Spec.URI = "/srv/model" }),
		"must end with a digest":               b.version("digits", 2, func(v *v1alpha1.ModelVersion) { v.Spec.URI = "oci://registry.example.com/digits:v2" }),
		"should be greater than or equal to 1": b.version("digits", 0),
	} {
		refused(b.Create(t.Context(), v), want)
	}
	for want, aliases := range map[string]map[string]int64{
		"neither latest nor look like":    {"latest": 1},
		"must begin with a letter":        {"1st": 1},
		"must be the number of a version": {"champion": 0},
	} {
		m := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Namespace: b.namespace, Name: "m"}, Spec: v1alpha1.ModelSpec{Aliases: aliases}}
		refused(b.Create(t.Context(), m), want)
	}
}
