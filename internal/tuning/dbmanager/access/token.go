// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
	"fmt"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/podtoken"
	"diwan.dev/diwan/internal/tuning/dbmanager"
)

// ofToken returns the namespace in which the holder of a token may do verb to a
// trial: the one asked for, else that of the token's service account.
func (k *Kubernetes) ofToken(ctx context.Context, token, asked, name string, verb dbmanager.Verb) (string, error) {
	return k.permit(ctx, token, authorizationv1.ResourceAttributes{Namespace: asked, Verb: string(verb), Resource: "trials", Name: name})
}

// permit returns the namespace in which the holder of a token may do what the
// attributes say to a kind of ours: theirs, else that of the token's service
// account.
func (k *Kubernetes) permit(ctx context.Context, token string, what authorizationv1.ResourceAttributes) (string, error) {
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	if err := k.API.Create(ctx, review); err != nil {
		return "", unavailable("review the bearer token", err)
	}
	if !review.Status.Authenticated {
		return "", status.Errorf(codes.Unauthenticated, "the bearer token is not valid: %s", review.Status.Error)
	}
	user := review.Status.User
	what.Group, what.Version = v1beta1.GroupVersion.Group, v1beta1.GroupVersion.Version
	what.Namespace = cmp.Or(what.Namespace, podtoken.AccountNamespace(user.Username))
	object := what.Resource
	if what.Name != "" {
		object = fmt.Sprintf("trial %.300q", what.Name)
	}
	if what.Namespace == "" {
		return "", status.Errorf(codes.InvalidArgument, "%s has no namespace: specify the namespace of %s in the request, or in the metadata %s", user.Username, object, NamespaceKey)
	}
	ask := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		ResourceAttributes: &what,
	}}
	for key, values := range user.Extra {
		ask.Spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	if err := k.API.Create(ctx, ask); err != nil {
		return "", unavailable("review the access to "+object, err)
	}
	if !ask.Status.Allowed {
		return "", status.Errorf(codes.PermissionDenied, "%s may not %s %s in namespace %.300q", user.Username, what.Verb, object, what.Namespace)
	}
	return what.Namespace, nil
}
