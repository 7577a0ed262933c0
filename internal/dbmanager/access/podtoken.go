// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/dbmanager"
)

// What a TokenReview tells about the Pod that a token was made for.
const (
	extraPodName = "authentication.kubernetes.io/pod-name"
	extraPodUID  = "authentication.kubernetes.io/pod-uid"
)

// reviewed is a Pod that a token was made for, and the trial whose label it bore.
type reviewed struct {
	namespace, pod, trial string
	until                 time.Time
}

// reviews keeps what reviews of Pods' tokens came to, for a minute each: a
// collector reports several times a second.
type reviews struct {
	mu   sync.Mutex
	kept map[[sha256.Size]byte]reviewed
}

const (
	reviewFresh = time.Minute
	maxReviews  = 10_000
)

func (r *reviews) get(key [sha256.Size]byte, now time.Time) (reviewed, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	found, ok := r.kept[key]
	return found, ok && now.Before(found.until)
}

func (r *reviews) put(key [sha256.Size]byte, what reviewed) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.kept == nil || len(r.kept) >= maxReviews {
		r.kept = map[[sha256.Size]byte]reviewed{}
	}
	r.kept[key] = what
}

// isPodToken reports whether a token says that it is for a DBManager alone, as
// those are that Pods of trials are given. Whether it is true, a review tells.
func isPodToken(token string) bool {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return false
	}
	text, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return false
	}
	var claims struct {
		Audience []string `json:"aud"`
	}
	return json.Unmarshal(text, &claims) == nil && slices.Contains(claims.Audience, dbmanager.Audience)
}

// ofPodToken returns the namespace of the Pod that a token was made for, if that
// Pod may do verb to a trial there.
func (k *Kubernetes) ofPodToken(ctx context.Context, token, asked, name string, verb dbmanager.Verb) (string, error) {
	key := sha256.Sum256([]byte(token))
	now := time.Now()
	found, ok := k.reviews.get(key, now)
	if !ok {
		var err error
		if found, err = k.review(ctx, token); err != nil {
			return "", err
		}
		found.until = now.Add(reviewFresh)
		k.reviews.put(key, found)
	}
	if (asked == "" || asked == found.namespace) && mayPod(found.trial, name, verb) {
		return found.namespace, nil
	}
	return "", notThisPod(found.namespace, found.pod, found.trial, verb, name)
}

// review finds out which Pod a token was made for.
func (k *Kubernetes) review(ctx context.Context, token string) (reviewed, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: []string{dbmanager.Audience}}}
	if err := k.API.Create(ctx, review); err != nil {
		return reviewed{}, unavailable("review the Pod's token", err)
	}
	if !review.Status.Authenticated || !slices.Contains(review.Status.Audiences, dbmanager.Audience) {
		return reviewed{}, status.Errorf(codes.Unauthenticated, "the Pod's token is not valid: %s", review.Status.Error)
	}
	user := review.Status.User
	names, uids := user.Extra[extraPodName], user.Extra[extraPodUID]
	namespace := accountNamespace(user.Username)
	if len(names) != 1 || len(uids) != 1 || namespace == "" {
		return reviewed{}, status.Errorf(codes.Unauthenticated, "the token of %s is none of a Pod's", user.Username)
	}
	pod := &corev1.Pod{}
	err := k.API.Get(ctx, client.ObjectKey{Namespace: namespace, Name: names[0]}, pod)
	switch {
	case apierrors.IsNotFound(err), err == nil && string(pod.UID) != uids[0]:
		return reviewed{}, status.Errorf(codes.Unauthenticated, "Pod %s/%s, whose token this is, is gone", namespace, names[0])
	case err != nil:
		return reviewed{}, unavailable("read Pod "+namespace+"/"+names[0], err)
	}
	return reviewed{namespace: namespace, pod: pod.Name, trial: pod.Labels[v1beta1.LabelTrial]}, nil
}

// mayPod reports whether a Pod that bears a trial's label may do verb to a trial
// of its namespace.
func mayPod(own, name string, verb dbmanager.Verb) bool {
	return verb == dbmanager.Get || verb == dbmanager.Update && own == name
}

func notThisPod(namespace, pod, own string, verb dbmanager.Verb, name string) error {
	return status.Errorf(codes.PermissionDenied, "Pod %s/%s may not %s the metrics of trial %.300q: it may report for its own trial, %q, and read those of its namespace",
		namespace, pod, verb, name, own)
}
