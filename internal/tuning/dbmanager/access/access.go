// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
	"crypto/subtle"
	"net"
	"net/netip"
	"strings"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/platform/podtoken"
	"diwan.dev/diwan/internal/tuning/dbmanager"
	"diwan.dev/diwan/observation"
)

// NamespaceKey is the key of the metadata that names the trial's namespace.
const NamespaceKey = dbmanager.NamespaceKey

// Kubernetes is a [dbmanager.Access]. It needs to get trials, list Pods, and
// create TokenReviews and SubjectAccessReviews.
type Kubernetes struct {
	// Trials reads trials; it may be a cache. Required.
	Trials client.Reader
	// API is the API server itself. Required.
	API client.Client
	// Owner is the bearer token of the one who owns everything here. "": there is
	// no such owner.
	Owner string
	// Local reports whether a connection from peer to here comes from a program
	// of that owner, who then needs no token to report, read and delete metrics:
	// Katib's clients cannot send one. Nil: none does.
	Local func(peer, here netip.AddrPort) bool
	// Patience is how long a Pod may speak before the API server knows its
	// address.
	Patience time.Duration

	tokens podtoken.Reviewer
}

// New returns an Access with a Patience of 5 s: a node writes the address of a
// Pod within some milliseconds, and a busy one within seconds.
func New(trials client.Reader, api client.Client) *Kubernetes {
	return &Kubernetes{Trials: trials, API: api, Patience: 5 * time.Second}
}

// Trial implements [dbmanager.Access].
func (k *Kubernetes) Trial(ctx context.Context, name string, verb dbmanager.Verb) (observation.Trial, error) {
	if name == "" {
		return observation.Trial{}, status.Error(codes.InvalidArgument, "trial_name is missing")
	}
	namespace, err := k.namespace(ctx, name, verb)
	if err != nil {
		return observation.Trial{}, err
	}
	t, err := k.find(ctx, namespace, name)
	if err != nil {
		return observation.Trial{}, err
	}
	if verb == dbmanager.Update && (t.IsCompleted() || !t.DeletionTimestamp.IsZero()) {
		return observation.Trial{}, status.Errorf(codes.FailedPrecondition, "trial %s/%s has ended: it accepts no more metrics", namespace, name)
	}
	return observation.Trial{Namespace: namespace, Name: name}, nil
}

// namespace returns where the trial that the caller means is, if they may do
// verb to it there.
func (k *Kubernetes) namespace(ctx context.Context, name string, verb dbmanager.Verb) (string, error) {
	asked := single(ctx, NamespaceKey)
	switch token := bearer(ctx); {
	case token == "":
	case k.isOwner(token):
		return k.ofOwner(ctx, asked, name)
	case isPodToken(token):
		return k.ofPodToken(ctx, token, asked, name, verb)
	default:
		return k.ofToken(ctx, token, asked, name, verb)
	}
	from, to, err := addresses(ctx)
	if err != nil {
		return "", err
	}
	if k.Local != nil && k.Local(from, to) {
		return k.ofOwner(ctx, asked, name)
	}
	return k.ofPod(ctx, from.Addr(), asked, name, verb)
}

// Namespace returns the caller's namespace, asked if they specified one, if
// their bearer token permits verb on a resource of the group kubeflow.org
// there. If they specify none, it is "default" for the owner of a laptop, else
// that of the token's service account.
func (k *Kubernetes) Namespace(ctx context.Context, asked, verb, resource string) (string, error) {
	switch token := bearer(ctx); {
	case token == "" && k.Owner != "":
		return "", status.Error(codes.Unauthenticated, "the request has no bearer token: the owner's token is in the file token in this cluster's home")
	case token == "":
		return "", status.Error(codes.Unauthenticated, "the request has no bearer token")
	case k.isOwner(token):
		return cmp.Or(asked, "default"), nil
	default:
		return k.permit(ctx, token, authorizationv1.ResourceAttributes{Namespace: asked, Verb: verb, Resource: resource})
	}
}

// bearer returns the bearer token of a request, "" for none.
func bearer(ctx context.Context) string {
	return strings.TrimPrefix(single(ctx, "authorization"), "Bearer ")
}

// isOwner reports whether a token is the owner's.
func (k *Kubernetes) isOwner(token string) bool {
	return k.Owner != "" && subtle.ConstantTimeCompare([]byte(token), []byte(k.Owner)) == 1
}

// find reads the trial, also one that is too new for a cache.
func (k *Kubernetes) find(ctx context.Context, namespace, name string) (*v1beta1.Trial, error) {
	t, key := &v1beta1.Trial{}, client.ObjectKey{Namespace: namespace, Name: name}
	if len(content.IsPathSegmentName(namespace))+len(content.IsPathSegmentName(name)) > 0 {
		return nil, status.Errorf(codes.NotFound, "trial name %.300q in namespace %.300q is invalid", name, namespace)
	}
	err := k.Trials.Get(ctx, key, t)
	if apierrors.IsNotFound(err) {
		err = k.API.Get(ctx, key, t)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, status.Errorf(codes.NotFound, "trial %.300q not found in namespace %.300q", name, namespace)
	case err != nil:
		return nil, unavailable("read trial "+namespace+"/"+name, err)
	}
	return t, nil
}

// ofOwner returns the namespace of the only trial of a name.
func (k *Kubernetes) ofOwner(ctx context.Context, asked, name string) (string, error) {
	if asked != "" {
		return asked, nil
	}
	var all v1beta1.TrialList
	if err := k.Trials.List(ctx, &all, client.UnsafeDisableDeepCopy); err != nil {
		return "", unavailable("look for trial "+name, err)
	}
	found := ""
	for i := range all.Items {
		switch t := &all.Items[i]; {
		case t.Name != name:
		case found != "":
			return "", status.Errorf(codes.FailedPrecondition, "namespaces %s and %s both have a trial %s: specify the namespace in the metadata %s", found, t.Namespace, name, NamespaceKey)
		default:
			found = t.Namespace
		}
	}
	if found == "" {
		return "", status.Errorf(codes.NotFound, "trial %.300q not found in any namespace", name)
	}
	return found, nil
}

// addresses are both ends of the caller's connection.
func addresses(ctx context.Context) (from, to netip.AddrPort, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return from, to, status.Error(codes.Internal, "the caller's address is unknown")
	}
	if from, ok = addrPort(p.Addr); !ok {
		return from, to, status.Errorf(codes.Unauthenticated, "the caller's address %v is not a Pod's: send a bearer token", p.Addr)
	}
	to, _ = addrPort(p.LocalAddr)
	return from, to, nil
}

func addrPort(a net.Addr) (netip.AddrPort, bool) {
	tcp, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}, false
	}
	p := tcp.AddrPort()
	return netip.AddrPortFrom(p.Addr().Unmap(), p.Port()), true
}

// single returns the only value of a key of the metadata, "" for none.
func single(ctx context.Context, key string) string {
	values := metadata.ValueFromIncomingContext(ctx, key)
	if len(values) != 1 {
		return ""
	}
	return values[0]
}

// unavailable says that the Kubernetes API did not answer.
func unavailable(what string, err error) error {
	if s := status.FromContextError(err); s.Code() != codes.Unknown {
		return status.Errorf(s.Code(), "cannot %s: %v", what, err)
	}
	return status.Errorf(codes.Unavailable, "cannot %s: %v", what, err)
}
