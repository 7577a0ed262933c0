// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/uuid"
	"sigs.k8s.io/controller-runtime/pkg/client"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/lease"
)

const (
	// maxWait bounds how long an Ask waits for a trial.
	maxWait = time.Minute
	// settle limits how long an Ask waits for the cache to show its write.
	settle = 2 * time.Second
)

// Ask gives the caller a trial.
func (s *Server) Ask(ctx context.Context, r *asktell.AskRequest) (*asktell.AskReply, error) {
	id, wait, err := checkAsk(r)
	if err != nil {
		return nil, err
	}
	namespace, err := s.Access.Namespace(ctx, r.GetNamespace(), "update", "trials")
	if err != nil {
		return nil, err
	}
	release, err := s.alone(ctx, namespace+"/"+id)
	if err != nil {
		return nil, err
	}
	defer release()
	patience := time.NewTimer(wait)
	defer patience.Stop()
	for {
		changed := s.changes.wait()
		e, err := s.experiment(ctx, namespace, r.GetExperiment())
		if err != nil {
			return nil, err
		}
		if e.Spec.TrialTemplate == nil || e.Spec.TrialTemplate.External == nil {
			return nil, status.Errorf(codes.FailedPrecondition, "experiment %s/%s does not support ask and tell: set spec.trialTemplate.external", e.Namespace, e.Name)
		}
		t, err := s.take(ctx, e, id, r.GetWorker())
		switch {
		case err != nil:
			return nil, err
		case t != nil:
			return &asktell.AskReply{Trial: trialOf(e, t)}, nil
		case e.IsCompleted():
			return &asktell.AskReply{Done: true}, nil
		}
		select {
		case <-changed:
		case <-patience.C:
			return &asktell.AskReply{}, nil
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// checkAsk reads the lease's name and how long to wait.
func checkAsk(r *asktell.AskRequest) (id string, wait time.Duration, err error) {
	id = cmp.Or(r.GetRequestId(), string(uuid.NewUUID()))
	seconds := r.GetWaitSeconds()
	switch {
	case len(id) > maxID:
		return "", 0, status.Errorf(codes.InvalidArgument, "request_id has %d bytes: want at most %d", len(id), maxID)
	case strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) }):
		return "", 0, status.Errorf(codes.InvalidArgument, "request_id is %q: want printable characters", id)
	case len(r.GetWorker()) > maxWorker:
		return "", 0, status.Errorf(codes.InvalidArgument, "worker has %d bytes: want at most %d", len(r.GetWorker()), maxWorker)
	case !(seconds >= 0 && seconds <= maxWait.Seconds()):
		return "", 0, status.Errorf(codes.InvalidArgument, "wait_seconds is %g: want 0 to %g", seconds, maxWait.Seconds())
	}
	return id, time.Duration(seconds * float64(time.Second)), nil
}

// alone waits until no other call has this request's ID in its namespace, for
// example when a client that gave up waiting retries.
func (s *Server) alone(ctx context.Context, id string) (release func(), err error) {
	for {
		s.mu.Lock()
		other, busy := s.asking[id]
		if !busy {
			mine := make(chan struct{})
			s.asking[id] = mine
			s.mu.Unlock()
			return func() {
				s.mu.Lock()
				delete(s.asking, id)
				s.mu.Unlock()
				close(mine)
			}, nil
		}
		s.mu.Unlock()
		select {
		case <-other:
		case <-ctx.Done():
			return nil, status.FromContextError(ctx.Err()).Err()
		}
	}
}

// take returns the trial that the request has already got, or gives it a free
// one; nil where there is none.
func (s *Server) take(ctx context.Context, e *v1beta1.Experiment, id, worker string) (*v1beta1.Trial, error) {
	var had v1beta1.TrialList
	if err := s.Cache.List(ctx, &had, client.InNamespace(e.Namespace), client.MatchingFields{byLease: id}); err != nil {
		return nil, failure("look for lease "+id, err)
	}
	if len(had.Items) > 0 {
		if t := &had.Items[0]; t.Labels[v1beta1.LabelExperiment] == e.Name {
			return t, nil
		}
		return nil, status.Errorf(codes.AlreadyExists, "request_id %q was used for another experiment", id)
	}
	if e.IsCompleted() || e.Spec.Suspend {
		return nil, nil
	}
	var free v1beta1.TrialList
	if err := s.Cache.List(ctx, &free, client.InNamespace(e.Namespace), client.MatchingFields{byFree: e.Name}); err != nil {
		return nil, failure("look for trials of experiment "+e.Name, err)
	}
	for {
		t := s.offer(free.Items)
		if t == nil {
			return nil, nil
		}
		lease.Acquire(t, id, worker, s.Clock.Now())
		// Who gives up waiting meanwhile finds the trial by the request's ID.
		written := context.WithoutCancel(ctx)
		switch err := s.write(written, t); {
		case err == nil:
			s.settled(written, t)
			return t, nil
		case !apierrors.IsConflict(err) && !apierrors.IsNotFound(err):
			return nil, failure(fmt.Sprintf("lease trial %s/%s", t.Namespace, t.Name), err)
		}
	}
}

// maxOffered limits the memory of offered trials. Forgetting one only costs a
// write conflict.
const maxOffered = 10_000

// offer returns the first free trial that no call has been offered in this
// version.
func (s *Server) offer(free []v1beta1.Trial) *v1beta1.Trial {
	slices.SortFunc(free, func(a, b v1beta1.Trial) int { return cmp.Compare(indexOf(&a), indexOf(&b)) })
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.offered) > maxOffered {
		clear(s.offered)
	}
	for i := range free {
		if t := &free[i]; s.offered[t.UID] != t.ResourceVersion {
			s.offered[t.UID] = t.ResourceVersion
			return t
		}
	}
	return nil
}

// indexOf is the number of a trial's suggestion.
func indexOf(t *v1beta1.Trial) int {
	i, _ := strconv.Atoi(t.Annotations[v1beta1.AnnotationTrialIndex])
	return i
}

// settled waits a while until the cache has a lease that was written, so that
// the same request, sent again, finds it.
func (s *Server) settled(ctx context.Context, t *v1beta1.Trial) {
	patience := time.NewTimer(settle)
	defer patience.Stop()
	for {
		changed := s.changes.wait()
		seen := &v1beta1.Trial{}
		if err := s.Cache.Get(ctx, client.ObjectKeyFromObject(t), seen); err != nil || lease.Is(seen, t.Status.Lease.ID) {
			return
		}
		select {
		case <-changed:
		case <-patience.C:
			return
		}
	}
}
