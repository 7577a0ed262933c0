// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"diwan.dev/diwan/api/models/v1alpha1"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func version(number int64, changes ...func(*v1alpha1.ModelVersion)) *v1alpha1.ModelVersion {
	v := &v1alpha1.ModelVersion{
		ObjectMeta: metav1.ObjectMeta{Name: v1alpha1.ModelVersionName("digits", number)},
		Spec:       v1alpha1.ModelVersionSpec{Model: "digits", Version: number, Stage: v1alpha1.StageNone},
	}
	for _, change := range changes {
		change(v)
	}
	return v
}

func inUse(v *v1alpha1.ModelVersion) {
	metav1.SetMetaDataAnnotation(&v.ObjectMeta, v1alpha1.AnnotationInUse+"web", "")
}
func deleted(v *v1alpha1.ModelVersion) { v.DeletionTimestamp = &metav1.Time{Time: noon} }
func in(stage v1alpha1.Stage) func(*v1alpha1.ModelVersion) {
	return func(v *v1alpha1.ModelVersion) { v.Spec.Stage = stage }
}

func numbers(versions []*v1alpha1.ModelVersion) []int64 {
	var all []int64
	for _, v := range versions {
		all = append(all, v.Spec.Version)
	}
	return all
}

func TestDecide(t *testing.T) {
	t.Parallel()
	two := int32(2)
	for name, tt := range map[string]struct {
		spec     v1alpha1.ModelSpec
		versions []*v1alpha1.ModelVersion
		expired  []int64
		aliases  map[int64][]string
		missing  string
	}{
		"nothing": {aliases: map[int64][]string{}},
		"all stay": {
			versions: []*v1alpha1.ModelVersion{version(2), version(1), version(10)},
			aliases:  map[int64][]string{10: {"latest"}},
		},
		"the newest stay": {
			spec:     v1alpha1.ModelSpec{KeepVersions: &two},
			versions: []*v1alpha1.ModelVersion{version(4), version(2), version(9), version(1)},
			expired:  []int64{1, 2},
			aliases:  map[int64][]string{9: {"latest"}},
		},
		"what is used stays": {
			spec: v1alpha1.ModelSpec{KeepVersions: &two, Aliases: map[string]int64{"champion": 1}},
			versions: []*v1alpha1.ModelVersion{
				version(1), version(2, inUse), version(3, in(v1alpha1.StageProduction)), version(4, in(v1alpha1.StageStaging)), version(5, in(v1alpha1.StageArchived)),
				version(6), version(7), version(8),
			},
			expired: []int64{5, 6},
			aliases: map[int64][]string{1: {"champion"}, 8: {"latest"}},
		},
		"what is being deleted does not count": {
			spec:     v1alpha1.ModelSpec{KeepVersions: &two, Aliases: map[string]int64{"champion": 4, "b": 3, "a": 3}},
			versions: []*v1alpha1.ModelVersion{version(1), version(3), version(4, deleted)},
			aliases:  map[int64][]string{3: {"a", "b", "latest"}, 4: {"champion"}},
			missing:  "spec.aliases names versions that do not exist: champion: 4; point them to another version or remove them",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &v1alpha1.Model{ObjectMeta: metav1.ObjectMeta{Name: "digits", Generation: 3}, Spec: tt.spec}
			plan := Decide(m, tt.versions, noon)
			if diff := cmp.Diff(tt.expired, numbers(plan.Expired)); diff != "" {
				t.Errorf("expired (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tt.aliases, plan.Aliases); diff != "" {
				t.Errorf("aliases (-want +got):\n%s", diff)
			}
			resolved := meta.FindStatusCondition(plan.Status.Conditions, v1alpha1.ModelResolved)
			if (resolved.Status == metav1.ConditionTrue) != (tt.missing == "") || tt.missing != "" && resolved.Message != tt.missing {
				t.Errorf("the condition is %+v, want the message %q", resolved, tt.missing)
			}
			// A plan that was carried out has no successor.
			again := Decide(&v1alpha1.Model{ObjectMeta: m.ObjectMeta, Spec: m.Spec, Status: plan.Status}, tt.versions, noon.Add(time.Hour))
			if diff := cmp.Diff(plan.Status, again.Status); diff != "" {
				t.Errorf("the status changes when nothing does (-first +second):\n%s", diff)
			}
		})
	}
}

// TestVersionsAreKept has random histories: what has a reason to stay stays, the newest
// do, everything else goes, and numbers only grow.
func TestVersionsAreKept(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		m := &v1alpha1.Model{Spec: v1alpha1.ModelSpec{Aliases: map[string]int64{}}}
		keep := rapid.Int32Range(1, 5).Draw(t, "keep")
		m.Spec.KeepVersions = &keep
		var versions []*v1alpha1.ModelVersion
		for round := range rapid.IntRange(1, 20).Draw(t, "rounds") {
			next := version(m.Status.HighestVersion+1, in(rapid.SampledFrom([]v1alpha1.Stage{v1alpha1.StageNone, v1alpha1.StageProduction, v1alpha1.StageArchived}).Draw(t, "stage")))
			if rapid.Bool().Draw(t, "used") {
				inUse(next)
			}
			if rapid.Bool().Draw(t, "alias") {
				m.Spec.Aliases[fmt.Sprint("a", round)] = next.Spec.Version
			}
			versions = append(versions, next)
			before := m.Status.HighestVersion
			plan := Decide(m, versions, noon)
			if m.Status = plan.Status; m.Status.HighestVersion <= before {
				t.Fatalf("the highest version went from %d to %d", before, m.Status.HighestVersion)
			}
			for i, v := range versions {
				free := !InUse(v) && v.Spec.Stage != v1alpha1.StageProduction && !slices.ContainsFunc(plan.Aliases[v.Spec.Version], func(a string) bool { return a != Latest })
				want := free && i < len(versions)-int(keep)
				if got := slices.Contains(plan.Expired, v); got != want {
					t.Fatalf("version %d of %v expires: %v, want %v", v.Spec.Version, numbers(versions), got, want)
				}
			}
			versions = slices.DeleteFunc(versions, func(v *v1alpha1.ModelVersion) bool { return slices.Contains(plan.Expired, v) })
		}
	})
}
