// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/podtoken"
	"diwan.dev/diwan/internal/tuning/dbmanager"
)

// isPodToken reports whether a token claims to be only for a DBManager, like
// those of trials' Pods. A review verifies it.
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
	pod, err := k.tokens.Review(ctx, k.API, token, dbmanager.Audience)
	var invalid podtoken.Invalid
	switch {
	case errors.As(err, &invalid):
		return "", status.Error(codes.Unauthenticated, invalid.Error())
	case err != nil:
		return "", unavailable("identify the Pod", err)
	}
	trial := pod.Labels[v1beta1.LabelTrial]
	if (asked == "" || asked == pod.Namespace) && mayPod(trial, name, verb) {
		return pod.Namespace, nil
	}
	return "", notThisPod(pod.Namespace, pod.Name, trial, verb, name)
}

// mayPod reports whether a Pod with a trial's label may do verb to a trial in
// its namespace.
func mayPod(own, name string, verb dbmanager.Verb) bool {
	return verb == dbmanager.Get || verb == dbmanager.Update && own == name
}

func notThisPod(namespace, pod, own string, verb dbmanager.Verb, name string) error {
	return status.Errorf(codes.PermissionDenied, "Pod %s/%s may not %s the metrics of trial %.300q: it may report for its own trial, %q, and read those of its namespace",
		namespace, pod, verb, name, own)
}
