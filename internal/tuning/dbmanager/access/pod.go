// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"net/netip"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/dbmanager"
)

// ofPod returns the namespace of the Pod at an address, if that Pod may do verb
// to a trial there.
func (k *Kubernetes) ofPod(ctx context.Context, at netip.Addr, asked, name string, verb dbmanager.Verb) (string, error) {
	pods, err := k.podsAt(ctx, at)
	if err != nil {
		return "", err
	}
	for i := range pods {
		pod := &pods[i]
		if asked != "" && asked != pod.Namespace {
			continue
		}
		if mayPod(pod.Labels[v1beta1.LabelTrial], name, verb) {
			return pod.Namespace, nil
		}
	}
	if len(pods) == 0 {
		return "", status.Errorf(codes.Unauthenticated, "%s is not the address of a single Pod: send a bearer token", at)
	}
	return "", notThisPod(pods[0].Namespace, pods[0].Name, pods[0].Labels[v1beta1.LabelTrial], verb, name)
}

// podsAt returns the Pods that run at an address, which is one. It waits a
// while for the first.
func (k *Kubernetes) podsAt(ctx context.Context, at netip.Addr) ([]corev1.Pod, error) {
	patience := time.NewTimer(k.Patience)
	defer patience.Stop()
	for {
		var list corev1.PodList
		if err := k.API.List(ctx, &list, client.MatchingFields{"status.podIP": at.String()}); err != nil {
			return nil, unavailable("find the Pod at "+at.String(), err)
		}
		var pods []corev1.Pod
		for _, pod := range list.Items {
			ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
			if !ended && !pod.Spec.HostNetwork {
				pods = append(pods, pod)
			}
		}
		if len(pods) > 0 {
			return pods, nil
		}
		again := time.NewTimer(50 * time.Millisecond)
		select {
		case <-again.C:
		case <-patience.C:
			again.Stop()
			return nil, nil
		case <-ctx.Done():
			again.Stop()
			return nil, unavailable("find the Pod at "+at.String(), ctx.Err())
		}
	}
}
