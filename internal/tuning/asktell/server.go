// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/lease"
	"diwan.dev/diwan/observation"
)

// Server answers as an AskTell. New makes one.
type Server struct {
	asktell.UnimplementedAskTellServer
	Config
	changes bell

	mu sync.Mutex
	// offered are the versions in which this server has tried to give trials
	// away, by their UID: the cache may not show yet that they are not free.
	offered map[types.UID]string
	// instants are when leases reported last.
	instants map[string]time.Time
	// asking are the pending requests by namespace and ID; their channel is
	// closed when they end.
	asking map[string]chan struct{}
}

// New returns a server.
func New(c Config) *Server {
	return &Server{Config: c, offered: map[types.UID]string{}, instants: map[string]time.Time{}, asking: map[string]chan struct{}{}}
}

// Follow keeps the server informed until ctx ends. Without it, programs that
// wait for a trial wait in vain.
func (s *Server) Follow(ctx context.Context) error {
	stop, err := s.changes.follow(ctx, s.Cache)
	if err != nil {
		return err
	}
	<-ctx.Done()
	stop()
	return nil
}

// experiment reads an experiment, also one that is too new for the cache.
func (s *Server) experiment(ctx context.Context, namespace, name string) (*v1beta1.Experiment, error) {
	e := &v1beta1.Experiment{}
	return e, s.find(ctx, "experiment", namespace, name, e)
}

// find reads an object, also one that is too new for the cache.
func (s *Server) find(ctx context.Context, kind, namespace, name string, o client.Object) error {
	if name == "" {
		return status.Errorf(codes.InvalidArgument, "%s is missing", kind)
	}
	if len(content.IsPathSegmentName(namespace))+len(content.IsPathSegmentName(name)) > 0 {
		return status.Errorf(codes.NotFound, "%s name %.300q in namespace %.300q is invalid", kind, name, namespace)
	}
	key := client.ObjectKey{Namespace: namespace, Name: name}
	err := s.Cache.Get(ctx, key, o)
	if apierrors.IsNotFound(err) {
		err = s.API.Get(ctx, key, o)
	}
	return failure(fmt.Sprintf("read %s %s/%s", kind, namespace, name), err)
}

// leased reads the trial that a lease is of: from the cache if it is good there,
// else from the API server.
func (s *Server) leased(ctx context.Context, namespace, name, id string) (*v1beta1.Trial, error) {
	t := &v1beta1.Trial{}
	if err := s.find(ctx, "trial", namespace, name, t); err != nil {
		return nil, err
	}
	if lease.Held(t, id, s.Clock.Now()) {
		return t, nil
	}
	return t, s.refresh(ctx, t)
}

// refresh reads a trial from the API server.
func (s *Server) refresh(ctx context.Context, t *v1beta1.Trial) error {
	return failure(fmt.Sprintf("read trial %s/%s", t.Namespace, t.Name), s.API.Get(ctx, client.ObjectKeyFromObject(t), t))
}

// lost says that a trial is not, or no longer, the caller's.
func lost(t *v1beta1.Trial, id string) error {
	why := "another program has it, or it is waiting for one"
	switch {
	case t.Spec.External == nil:
		why = "Kubernetes runs it"
	case !t.DeletionTimestamp.IsZero():
		why = "it is being deleted"
	case lease.Is(t, id):
		why = "its lease expired, or the trial was already completed"
	}
	return status.Errorf(codes.FailedPrecondition, "lease %.200q is not valid for trial %s/%s: %s", id, t.Namespace, t.Name, why)
}

// write writes a trial's status on condition that nobody else has.
func (s *Server) write(ctx context.Context, t *v1beta1.Trial) error {
	// The server takes nothing but the status from this object.
	update := &v1beta1.Trial{Status: t.Status}
	update.Namespace, update.Name, update.UID, update.ResourceVersion = t.Namespace, t.Name, t.UID, t.ResourceVersion
	err := s.API.Status().Update(ctx, update)
	t.ResourceVersion = update.ResourceVersion
	return err
}

// change makes a change to a trial's status that others may change as well,
// until it is written or change reports that there is nothing to write.
func (s *Server) change(ctx context.Context, t *v1beta1.Trial, change func() (write bool, err error)) error {
	for {
		write, err := change()
		if err != nil || !write {
			return err
		}
		err = s.write(ctx, t)
		if !apierrors.IsConflict(err) {
			return failure(fmt.Sprintf("write the status of trial %s/%s", t.Namespace, t.Name), err)
		}
		if err := s.refresh(ctx, t); err != nil {
			return err
		}
	}
}

// failure returns an error with the gRPC status that tells clients whether to
// retry; nil for nil.
func failure(what string, err error) error {
	if err == nil {
		return nil
	}
	code := codes.Unavailable
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		code = status.FromContextError(err).Code()
	case apierrors.IsNotFound(err):
		code = codes.NotFound
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		code = codes.InvalidArgument
	case apierrors.IsForbidden(err):
		code = codes.PermissionDenied
	case errors.Is(err, observation.ErrFull):
		code = codes.ResourceExhausted
	case errors.Is(err, observation.ErrCorrupt):
		code = codes.DataLoss
	}
	return status.Errorf(code, "cannot %s: %v", what, err)
}
