// SPDX-License-Identifier: Apache-2.0

package access

import (
	"context"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/dbmanager"
)

// ofToken returns the namespace in which the holder of a token may do verb to a
// trial: the one asked for, else that of the token's service account.
func (k *Kubernetes) ofToken(ctx context.Context, token, asked, name string, verb dbmanager.Verb) (string, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := k.API.Create(ctx, review); err != nil {
		return "", unavailable("review the bearer token", err)
	}
	if !review.Status.Authenticated {
		return "", status.Errorf(codes.Unauthenticated, "the bearer token is not valid: %s", review.Status.Error)
	}
	user := review.Status.User
	namespace := asked
	if namespace == "" {
		namespace = accountNamespace(user.Username)
	}
	if namespace == "" {
		return "", status.Errorf(codes.InvalidArgument, "%s has no namespace: name that of trial %.300q in the metadata %s", user.Username, name, NamespaceKey)
	}
	ask := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Name: name, Verb: string(verb),
			Group: v1beta1.GroupVersion.Group, Version: v1beta1.GroupVersion.Version, Resource: "trials",
		},
	}}
	for key, values := range user.Extra {
		ask.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := k.API.Create(ctx, ask); err != nil {
		return "", unavailable("review the access to trial "+name, err)
	}
	if !ask.Status.Allowed {
		return "", status.Errorf(codes.PermissionDenied, "%s may not %s trial %.300q in namespace %.300q", user.Username, verb, name, namespace)
	}
	return namespace, nil
}

// accountNamespace is the namespace of a service account by its user name, ""
// for other users.
func accountNamespace(user string) string {
	account, ok := strings.CutPrefix(user, "system:serviceaccount:")
	if !ok {
		return ""
	}
	namespace, _, _ := strings.Cut(account, ":")
	return namespace
}
