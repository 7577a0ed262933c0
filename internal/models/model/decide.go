// SPDX-License-Identifier: Apache-2.0

package model

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/api/models/v1alpha1"
)

// Latest is the alias that every model has for its newest version.
const Latest = "latest"

// Plan is what follows from a Model and its versions.
type Plan struct {
	// Status is the model's.
	Status v1alpha1.ModelStatus
	// Aliases are those of each version, by number, sorted. Versions without one are not in it.
	Aliases map[int64][]string
	// Expired are the versions to delete, oldest first.
	Expired []*v1alpha1.ModelVersion
}

// Decide returns the plan for a model and its versions, in any order. Versions that
// are being deleted no longer count. now is the time of conditions that change.
func Decide(m *v1alpha1.Model, versions []*v1alpha1.ModelVersion, now time.Time) Plan {
	var present []*v1alpha1.ModelVersion
	for _, v := range versions {
		if v.DeletionTimestamp.IsZero() {
			present = append(present, v)
		}
	}
	slices.SortFunc(present, func(a, b *v1alpha1.ModelVersion) int { return int(a.Spec.Version - b.Spec.Version) })
	plan := Plan{Status: *m.Status.DeepCopy(), Aliases: map[int64][]string{}}
	numbers := map[int64]bool{}
	for _, v := range present {
		numbers[v.Spec.Version] = true
	}
	var missing []string
	for _, alias := range slices.Sorted(maps.Keys(m.Spec.Aliases)) {
		number := m.Spec.Aliases[alias]
		plan.Aliases[number] = append(plan.Aliases[number], alias)
		if !numbers[number] {
			missing = append(missing, fmt.Sprintf("%s: %d", alias, number))
		}
	}
	plan.Expired = expired(m, present, plan.Aliases)
	s := &plan.Status
	s.ObservedGeneration, s.Versions, s.LatestVersion = m.Generation, int32(len(present)), 0
	if len(present) > 0 {
		s.LatestVersion = present[len(present)-1].Spec.Version
		s.HighestVersion = max(s.HighestVersion, s.LatestVersion)
		plan.Aliases[s.LatestVersion] = append(plan.Aliases[s.LatestVersion], Latest)
		slices.Sort(plan.Aliases[s.LatestVersion])
	}
	resolved := metav1.Condition{
		Type: v1alpha1.ModelResolved, Status: metav1.ConditionTrue, Reason: v1alpha1.ReasonAliasesResolved, Message: "every alias names a version that exists",
		ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(now),
	}
	if len(missing) > 0 {
		resolved.Status, resolved.Reason = metav1.ConditionFalse, v1alpha1.ReasonVersionMissing
		resolved.Message = fmt.Sprintf("spec.aliases names versions that do not exist: %s; point them to another version or remove them", strings.Join(missing, ", "))
	}
	meta.SetStatusCondition(&s.Conditions, resolved)
	return plan
}

// expired are the versions, sorted by number, that spec.keepVersions lets go.
func expired(m *v1alpha1.Model, present []*v1alpha1.ModelVersion, aliases map[int64][]string) []*v1alpha1.ModelVersion {
	if m.Spec.KeepVersions == nil || len(present) <= int(*m.Spec.KeepVersions) {
		return nil
	}
	var gone []*v1alpha1.ModelVersion
	for _, v := range present[:len(present)-int(*m.Spec.KeepVersions)] {
		if len(aliases[v.Spec.Version]) == 0 && v.Spec.Stage != v1alpha1.StageStaging && v.Spec.Stage != v1alpha1.StageProduction && !InUse(v) {
			gone = append(gone, v)
		}
	}
	return gone
}

// InUse reports whether something says that it uses the version's files.
func InUse(v *v1alpha1.ModelVersion) bool {
	for key := range v.Annotations {
		if strings.HasPrefix(key, v1alpha1.AnnotationInUse) {
			return true
		}
	}
	return false
}
