// SPDX-License-Identifier: Apache-2.0

package podlog

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Query says whose log is wanted.
type Query struct {
	Namespace string
	// Name is NAME or KIND/NAME.
	Name string
	// Container is the one to show; "" for the main one.
	Container string
	// Follow follows the log: for an experiment, that of a running trial.
	Follow bool
}

// Log is a log that was found.
type Log struct {
	Namespace, Pod, Container string
	// File is the newest log on this machine of a Pod that is gone; "" where the Pod exists.
	File string
	// Why describes the choice made for the user; "" if there was none.
	Why string
	// Others are the other Pods and containers that could have been chosen, as the user would name them.
	Others []string
}

// Finder finds logs in one cluster.
type Finder struct {
	Client client.Client
	// Kinds are those whose logs can be found.
	Kinds Kinds
	// Logs is the directory of logs of a cluster on this machine; "" for another cluster.
	Logs string
}

// match is an object that has the name.
type match struct {
	Kind
	name  string
	uid   types.UID
	owner types.UID
}

func (m match) String() string { return m.Kind.name() + "/" + m.name }

// Find returns the log that a name stands for.
func (f *Finder) Find(ctx context.Context, q Query) (*Log, error) {
	wanted, name, typed := strings.Cut(q.Name, "/")
	if !typed {
		wanted, name = "", q.Name
	}
	matches, err := f.matches(ctx, q.Namespace, wanted, name)
	if err != nil {
		return nil, err
	}
	switch {
	case len(matches) > 1:
		var choices []string
		for _, m := range matches {
			choices = append(choices, m.String())
		}
		return nil, fmt.Errorf("cannot choose a log: %s are all named %s; specify KIND/NAME", strings.Join(choices, ", "), name)
	case len(matches) == 1:
		return f.of(ctx, q, matches[0])
	}
	// Pods, trials and Jobs are deleted; their output is kept on a laptop.
	if pods := recorded(f.Logs, q.Namespace, name); len(pods) > 0 {
		return f.answer(q, pods, "", "")
	}
	return nil, fmt.Errorf("cannot find %s in namespace %s: no %s has that name; `diwan kubectl get experiments,trials,pods -n %s` lists what exists",
		q.Name, q.Namespace, cmp.Or(wanted, "Pod, trial, experiment or job"), q.Namespace)
}

// matches returns the objects of a name, without those that another of them has made.
func (f *Finder) matches(ctx context.Context, namespace, wanted, name string) ([]match, error) {
	var found []match
	known := wanted == ""
	for _, k := range f.Kinds {
		if wanted != "" && !strings.EqualFold(wanted, k.Kind) && !strings.EqualFold(wanted, k.Kind+"s") {
			continue
		}
		known = true
		object := &metav1.PartialObjectMetadata{}
		object.SetGroupVersionKind(k.GroupVersionKind)
		err := f.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, object)
		switch {
		case err == nil:
			m := match{Kind: k, name: name, uid: object.UID}
			if owner := metav1.GetControllerOf(object); owner != nil {
				m.owner = owner.UID
			}
			found = append(found, m)
		case apierrors.IsNotFound(err), meta.IsNoMatchError(err), apierrors.IsForbidden(err) && wanted == "":
		default:
			return nil, fmt.Errorf("cannot read %s %s: %w", k.name(), name, err)
		}
	}
	if !known {
		return nil, fmt.Errorf("cannot find the log of a %s: KIND must be one of %s; for others use `diwan kubectl logs`", wanted, strings.Join(f.Kinds.Names(), ", "))
	}
	return topmost(found), nil
}

// topmost leaves out objects that others of them own, and other versions of the same object.
func topmost(all []match) []match {
	var top []match
	for _, m := range all {
		owned := slices.ContainsFunc(all, func(o match) bool { return o.uid == m.owner })
		if !owned && !slices.ContainsFunc(top, func(o match) bool { return o.uid == m.uid }) {
			top = append(top, m)
		}
	}
	return top
}

// of returns the log of an object.
func (f *Finder) of(ctx context.Context, q Query, m match) (*Log, error) {
	if m.GroupVersionKind == podKind {
		pod := &corev1.Pod{}
		if err := f.Client.Get(ctx, types.NamespacedName{Namespace: q.Namespace, Name: m.name}, pod); err != nil {
			return nil, fmt.Errorf("cannot read pod %s: %w", m.name, err)
		}
		return f.answer(q, []candidate{f.Kinds.candidateOf(pod, nil)}, "", "")
	}
	source := &Source{Object: m.String(), Name: m.name, Label: m.PodLabel, Container: m.Container}
	if m.Source != nil {
		var err error
		if source, err = m.Source(ctx, f.Client, types.NamespacedName{Namespace: q.Namespace, Name: m.name}, q.Follow); err != nil {
			return nil, err
		}
	}
	return f.ofPods(ctx, q, source)
}

// ofPods returns the log of one of the Pods that a label gives to an object.
func (f *Finder) ofPods(ctx context.Context, q Query, s *Source) (*Log, error) {
	pods := &corev1.PodList{}
	if err := f.Client.List(ctx, pods, client.InNamespace(q.Namespace), client.MatchingLabels{s.Label: s.Name}); err != nil {
		return nil, fmt.Errorf("cannot list the Pods of %s: %w", s.Object, err)
	}
	var candidates []candidate
	for i := range pods.Items {
		candidates = append(candidates, f.Kinds.candidateOf(&pods.Items[i], s.Primary))
	}
	if len(candidates) == 0 {
		candidates = recorded(f.Logs, q.Namespace, s.Name)
	}
	if len(candidates) == 0 && f.Logs == "" {
		return nil, fmt.Errorf("cannot find a log of %s: it has no Pod, or no longer has one; `retain: true` in an experiment's trialTemplate keeps the Pods of trials", s.Object)
	}
	if len(candidates) == 0 {
		return nil, fmt.Errorf("cannot find a log of %s: it has no Pod yet; `diwan kubectl describe %s -n %s` says why", s.Object, s.Object, q.Namespace)
	}
	return f.answer(q, candidates, s.Container, s.Why)
}

// answer chooses among Pods and their containers.
func (f *Finder) answer(q Query, pods []candidate, container, why string) (*Log, error) {
	order(pods)
	chosen := pods[0]
	log := &Log{Namespace: q.Namespace, Pod: chosen.name, Why: why}
	var containers []string
	if chosen.pod != nil {
		for _, c := range slices.Concat(chosen.pod.Spec.InitContainers, chosen.pod.Spec.Containers) {
			containers = append(containers, c.Name)
		}
		log.Container = cmp.Or(q.Container, mainContainer(chosen.pod, container))
	} else {
		files := recordedContainers(f.Logs, q.Namespace, chosen.name)
		for _, file := range files {
			containers = append(containers, file.container)
		}
		log.Container = cmp.Or(q.Container, container)
		if q.Container == "" && !slices.Contains(containers, log.Container) && len(containers) > 0 {
			log.Container = containers[0]
		}
		for _, file := range files {
			if file.container == log.Container {
				log.File = file.path
			}
		}
	}
	if len(containers) == 0 {
		return nil, fmt.Errorf("cannot find a log of pod %s: %w", chosen.name, errors.New("no output of it was kept"))
	}
	if !slices.Contains(containers, log.Container) {
		return nil, fmt.Errorf("cannot find container %s in pod %s: it has %s", log.Container, chosen.name, strings.Join(containers, ", "))
	}
	for _, p := range pods[1:] {
		log.Others = append(log.Others, p.name)
	}
	for _, c := range containers {
		if c != log.Container {
			log.Others = append(log.Others, "-c "+c)
		}
	}
	return log, nil
}

// Names returns the names of the objects in a namespace that have logs, as far as they can be read.
func (f *Finder) Names(ctx context.Context, namespace string) []string {
	var names []string
	for _, k := range f.Kinds {
		list := &metav1.PartialObjectMetadataList{}
		list.SetGroupVersionKind(k.GroupVersion().WithKind(k.Kind + "List"))
		if err := f.Client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			continue // a kind that this cluster does not have
		}
		for _, item := range list.Items {
			names = append(names, item.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
