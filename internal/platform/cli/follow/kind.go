// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/internal/platform/cli/progress"
)

// Kind is how objects of one kind are followed.
type Kind struct {
	// Name is the kind's, and APIVersions are those of manifests. Required.
	Name        string
	APIVersions []string
	// Object and List are empty ones, of the version that is watched. Required.
	Object client.Object
	List   client.ObjectList
	// Status is what an object says of itself. Required.
	Status func(client.Object) progress.Status
	// Unit is what an object counts.
	Unit progress.Unit
	// PodLabel is the label by which its Pods name it, "" where it has none of its own; UnitLabel is that
	// by which they name what it counts, "" where it counts Pods.
	PodLabel, UnitLabel string
	// Search is about the trials of a kind that counts them. Nil of others.
	Search *Search
	// Quiet are reasons of warnings that are no news: how an object ended, which is shown anyway, and
	// what a reconciler tries again at once.
	Quiet []string
	// Slim, if set, drops from an object what is large and not shown.
	Slim func(client.Object)
}

// Search is how objects with trials are followed. All is required but Slim.
type Search struct {
	// Objective is what an object optimises.
	Objective func(client.Object) progress.Objective
	// Trial and List are empty ones.
	Trial client.Object
	List  client.ObjectList
	// Label is the label by which a trial names what has it.
	Label string
	// Has reports whether a trial with the label is that of the object with a UID, and not of an earlier
	// one of its name.
	Has func(trial client.Object, uid types.UID) bool
	// Read is what is shown of a trial.
	Read func(client.Object) progress.Trial
	// Prefix is what the names of an object's trials begin with, by its own name.
	Prefix func(name string) string
	// Slim drops from a trial what is large and not shown.
	Slim func(client.Object)
}

// Of makes a function of one type a function of any object, which must be of that type.
func Of[O client.Object, R any](read func(O) R) func(client.Object) R {
	return func(object client.Object) R { return read(object.(O)) }
}

// Kubernetes are the kinds of Kubernetes itself that come to an end.
func Kubernetes() Kinds {
	return Kinds{
		{
			Name: "Job", APIVersions: []string{"batch/v1"},
			Object: &batchv1.Job{}, List: &batchv1.JobList{},
			Status: Of(jobStatus), Unit: progress.Pods,
			PodLabel: batchv1.JobNameLabel,
			Quiet: []string{
				batchv1.JobReasonBackoffLimitExceeded, batchv1.JobReasonDeadlineExceeded, batchv1.JobReasonPodFailurePolicy,
				batchv1.JobReasonFailedIndexes, batchv1.JobReasonMaxFailedIndexesExceeded,
			},
		},
		{
			Name: "Pod", APIVersions: []string{"v1"},
			Object: &corev1.Pod{}, List: &corev1.PodList{},
			Status: Of(podStatus), Slim: slimPod,
		},
	}
}

// Kinds are those that come to an end which can be watched.
type Kinds []Kind

// Named is how objects of a kind are followed, nil if they are not.
func (kinds Kinds) Named(name string) *Kind {
	i := slices.IndexFunc(kinds, func(k Kind) bool { return k.Name == name })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// Followable reports whether objects of a kind come to an end that can be watched.
func (kinds Kinds) Followable(apiVersion, name string) bool {
	k := kinds.Named(name)
	return k != nil && slices.Contains(k.APIVersions, apiVersion)
}

// Deleted is the status of an object that was deleted, by what was last seen of it. It has ended as it
// says itself, for what has ended may be cleaned away before its end was seen; else it has failed.
func (k *Kind) Deleted(name string, last client.Object) progress.Status {
	if status := k.Status(last); status.Condition != "" {
		return status
	}
	return progress.Status{
		Condition: progress.ConditionFailed, Reason: "Deleted",
		Message: fmt.Sprintf("%s %s was deleted", k.Name, name),
	}
}

// Made reports whether something is the object of a name or, by its own name, what that made.
func (k *Kind) Made(thing, name string) bool {
	return Belongs(thing, name) || k.Search != nil && Belongs(thing, k.Search.Prefix(name))
}

// Belongs reports whether a Pod is the one of a name, or one that a job or a trial of that name made.
func Belongs(pod, name string) bool {
	return pod == name || strings.HasPrefix(pod, name+"-")
}
