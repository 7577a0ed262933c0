// SPDX-License-Identifier: Apache-2.0

package access

import (
	"cmp"
	"context"
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
	"diwan.dev/diwan/internal/dbmanager"
	"diwan.dev/diwan/internal/podtoken"
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
	// Local reports whether a connection from peer to here comes from a program
	// of the one who owns everything here. Nil: none does.
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
		return observation.Trial{}, status.Errorf(codes.FailedPrecondition, "trial %s/%s has ended: it takes no more metrics", namespace, name)
	}
	return observation.Trial{Namespace: namespace, Name: name}, nil
}

// namespace returns where the trial that the caller means is, if they may do
// verb to it there.
func (k *Kubernetes) namespace(ctx context.Context, name string, verb dbmanager.Verb) (string, error) {
	asked := single(ctx, NamespaceKey)
	if token := strings.TrimPrefix(single(ctx, "authorization"), "Bearer "); token != "" {
		if isPodToken(token) {
			return k.ofPodToken(ctx, token, asked, name, verb)
		}
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

// Namespace returns the namespace that the caller means, asked where they named
// one, if they may do verb to a resource of the group kubeflow.org there: the
// owner of a laptop, or the holder of a token. Where they name none, it is
// "default" for the former and that of the service account for the latter.
func (k *Kubernetes) Namespace(ctx context.Context, asked, verb, resource string) (string, error) {
	if token := single(ctx, "authorization"); token != "" {
		return k.permit(ctx, strings.TrimPrefix(token, "Bearer "), authorizationv1.ResourceAttributes{Namespace: asked, Verb: verb, Resource: resource})
	}
	from, to, err := addresses(ctx)
	if err != nil {
		return "", err
	}
	if k.Local == nil || !k.Local(from, to) {
		return "", status.Errorf(codes.Unauthenticated, "%s is not known: send a bearer token", from.Addr())
	}
	return cmp.Or(asked, "default"), nil
}

// find reads the trial, also one that is too new for a cache.
func (k *Kubernetes) find(ctx context.Context, namespace, name string) (*v1beta1.Trial, error) {
	t, key := &v1beta1.Trial{}, client.ObjectKey{Namespace: namespace, Name: name}
	if len(content.IsPathSegmentName(namespace))+len(content.IsPathSegmentName(name)) > 0 {
		return nil, status.Errorf(codes.NotFound, "no trial can have the name %.300q in namespace %.300q", name, namespace)
	}
	err := k.Trials.Get(ctx, key, t)
	if apierrors.IsNotFound(err) {
		err = k.API.Get(ctx, key, t)
	}
	switch {
	case apierrors.IsNotFound(err):
		return nil, status.Errorf(codes.NotFound, "there is no trial %.300q in namespace %.300q", name, namespace)
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
			return "", status.Errorf(codes.FailedPrecondition, "namespaces %s and %s both have a trial %s: name one in the metadata %s", found, t.Namespace, name, NamespaceKey)
		default:
			found = t.Namespace
		}
	}
	if found == "" {
		return "", status.Errorf(codes.NotFound, "there is no trial %.300q in any namespace", name)
	}
	return found, nil
}

// addresses are both ends of the caller's connection.
func addresses(ctx context.Context) (from, to netip.AddrPort, err error) {
	p, ok := peer.FromContext(ctx)
	if !ok {
		return from, to, status.Error(codes.Internal, "the caller's address is not known")
	}
	if from, ok = addrPort(p.Addr); !ok {
		return from, to, status.Errorf(codes.Unauthenticated, "the caller's address %v is none of a Pod: send a bearer token", p.Addr)
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
