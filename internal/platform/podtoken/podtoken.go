// SPDX-License-Identifier: Apache-2.0

// Package podtoken identifies the Pod that a token was issued to.
//
// A Pod gets such a token through a projected volume, for one audience;
// Kubernetes signs it and binds it to the Pod. The receiver asks the API
// server:
//
//	token, audience ─TokenReview─▶ namespace, name and UID of a Pod ─▶ its labels
package podtoken

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// What a TokenReview says about the Pod that a token was issued to.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// Pod is the Pod of a token, as it was when the token was reviewed.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
}

// Invalid says why a token is none of a Pod's for the audience.
type Invalid string

// Error implements error.
func (i Invalid) Error() string { return string(i) }

// Reviewer reviews tokens. It caches each result for a minute, because
// programs report often. The zero value is ready to use.
type Reviewer struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]kept
}

type kept struct {
	pod   Pod
	until time.Time
}

const (
	fresh   = time.Minute
	maxKept = 10_000
)

// Review returns the Pod that a token for an audience was issued to. The error
// is an [Invalid], or one from the API server, where it creates TokenReviews
// and gets Pods.
func (r *Reviewer) Review(ctx context.Context, api client.Client, token, audience string) (Pod, error) {
	key, now := sha256.Sum256([]byte(audience+"\x00"+token)), time.Now()
	if pod, ok := r.get(key, now); ok {
		return pod, nil
	}
	pod, err := review(ctx, api, token, audience)
	if err != nil {
		return Pod{}, err
	}
	r.put(key, kept{pod, now.Add(fresh)})
	return pod, nil
}

func (r *Reviewer) get(key [sha256.Size]byte, now time.Time) (Pod, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.kept[key]
	return found.pod, ok && now.Before(found.until)
}

func (r *Reviewer) put(key [sha256.Size]byte, what kept) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= maxKept {
		r.kept = map[[sha256.Size]byte]kept{}
	}
	r.kept[key] = what
}

func review(ctx context.Context, api client.Client, token, audience string) (Pod, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{audience}}}
	if err := api.Create(ctx, review); err != nil {
		return Pod{}, fmt.Errorf("cannot review the Pod's token: %w", err)
	}
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, audience) {
		return Pod{}, Invalid("the Pod's token is not valid: " + review.Status.Error)
	}
	user := review.Status.User
	names, uids := user.Extra[extraPodName], user.Extra[extraPodUID]
	namespace := AccountNamespace(user.Username)
	if len(names) != 1 || len(uids) != 1 || namespace == "" {
		return Pod{}, Invalid(fmt.Sprintf("the token of %s is not a Pod's", user.Username))
	}
	pod := &corev1.Pod{}
	err := api.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names[0]}, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != uids[0]:
		return Pod{}, Invalid(fmt.Sprintf("Pod %s/%s, which the token belongs to, is gone", namespace, names[0]))
	case err != nil:
		return Pod{}, fmt.Errorf("cannot read Pod %s/%s: %w", namespace, names[0], err)
	}
	return Pod{Namespace: namespace, Name: pod.Name, Labels: pod.Labels}, nil
}

// AccountNamespace is the namespace of a service account by its user name, ""
// for other users.
func AccountNamespace(user string) string {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return ""
	}
	namespace, _, _ := strings.Cut(account, ":")
	return namespace
}
