// SPDX-License-Identifier: Apache-2.0

// Package statusserver receives progress reports of trainings: the percentage done,
// the estimated remaining time, the model's metrics. It writes them to
// status.trainerStatus of the TrainJob.
//
//	Pod ─POST, token─▶ the Pod of the token is the job's ─▶ status.trainerStatus
//
// Path, request, responses and the token's audience are those of Kubeflow Trainer
// v2.3, which the kubeflow SDK's update_trainjob_status and the callback of Hugging
// Face's transformers use. Authorization is stricter: not any Pod in the namespace,
// only the job's own.
package statusserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	jobset "diwan.dev/diwan/api/jobset/v1alpha2"
	"diwan.dev/diwan/api/trainer/v1alpha1"
	"diwan.dev/diwan/internal/platform/podtoken"
)

// Pattern is the requests that are answered, for http.ServeMux.
var Pattern = http.MethodPost + " " + v1alpha1.StatusPath("{namespace}", "{name}")

// Manager is Kubeflow Trainer's field manager.
const Manager = "trainer-status"

// maxBody bounds a request, in bytes.
const maxBody = 1 << 16

type server struct {
	api    client.Client
	tokens podtoken.Reviewer
}

// New returns what answers requests. api speaks to the API server itself; it
// creates TokenReviews, gets Pods, and patches the status of TrainJobs.
func New(api client.Client) http.Handler {
	s := &server{api: api}
	mux := http.NewServeMux()
	mux.HandleFunc(Pattern, s.update)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "Not found")
	})
	return mux
}

// Where Pods of TrainJobs find the server, by Kubeflow Trainer's names.
const (
	Namespace = "kubeflow-system"
	Service   = "kubeflow-trainer-controller-manager"
	PortName  = "status-server"
	Port      = 10443
	Host      = Service + "." + Namespace + ".svc"
)

// Serve has a handler answer on some listeners until ctx ends, with bounds on how
// long a request may take.
func Serve(ctx context.Context, handler http.Handler, listeners ...net.Listener) error {
	server := &http.Server{
		Handler: handler, ReadTimeout: 10 * time.Second, WriteTimeout: 20 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxBody,
		ErrorLog: slog.NewLogLogger(logr.ToSlogHandler(klog.Background().WithName("status-server")), slog.LevelInfo),
	}
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	group, _ := errgroup.WithContext(ctx)
	for _, l := range listeners {
		group.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("the status server ended: %w", err)
			}
			return nil
		})
	}
	return group.Wait()
}

// update writes a progress report.
func (s *server) update(w http.ResponseWriter, r *http.Request) {
	job := types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("name")}
	err := s.authorize(r.Context(), r.Header.Get("Authorization"), job)
	var invalid podtoken.Invalid
	switch {
	case errors.As(err, &invalid):
		refuse(w, http.StatusForbidden, metav1.StatusReasonForbidden, "Forbidden: "+invalid.Error())
		return
	case err != nil:
		s.internal(w, job, err)
		return
	}
	var request v1alpha1.UpdateTrainJobStatusRequest
	err = json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(&request)
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		refuse(w, http.StatusRequestEntityTooLarge, metav1.StatusReasonRequestEntityTooLarge, "Payload too large")
		return
	case err != nil:
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, "Invalid payload: "+err.Error())
		return
	}
	if request.TrainerStatus != nil {
		if err := s.write(r.Context(), job, request.TrainerStatus); err != nil {
			s.explain(w, job, err)
			return
		}
	}
	answer(w, http.StatusOK, request)
}

// authorize returns a [podtoken.Invalid] unless the caller is one of the job's
// Pods.
func (s *server) authorize(ctx context.Context, header string, job types.NamespacedName) error {
	words := strings.Fields(header)
	if len(words) != 2 || !strings.EqualFold(words[0], "Bearer") {
		return podtoken.Invalid("a bearer token is missing")
	}
	pod, err := s.tokens.Review(ctx, s.api, words[1], v1alpha1.StatusAudience(job.Namespace, job.Name))
	switch {
	case err != nil:
		return err
	case pod.Namespace != job.Namespace, pod.Labels[jobset.LabelJobSetName] != job.Name:
		return podtoken.Invalid("Pod " + pod.Namespace + "/" + pod.Name + " does not belong to the TrainJob")
	}
	return nil
}

// write replaces the status that was told before.
func (s *server) write(ctx context.Context, job types.NamespacedName, status *v1alpha1.TrainerStatus) error {
	patch, err := json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion.String(), "kind": v1alpha1.TrainJobKind,
		"metadata": map[string]any{"namespace": job.Namespace, "name": job.Name},
		"status":   map[string]any{"trainerStatus": status},
	})
	if err != nil {
		return err
	}
	object := &v1alpha1.TrainJob{ObjectMeta: metav1.ObjectMeta{Namespace: job.Namespace, Name: job.Name}}
	return s.api.Status().Patch(ctx, object, client.RawPatch(types.ApplyPatchType, patch), client.FieldOwner(Manager), client.ForceOwnership)
}

// explain says why a status was not written.
func (s *server) explain(w http.ResponseWriter, job types.NamespacedName, err error) {
	switch {
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		refuse(w, http.StatusUnprocessableEntity, metav1.StatusReasonInvalid, err.Error())
	case apierrors.IsNotFound(err):
		refuse(w, http.StatusNotFound, metav1.StatusReasonNotFound, "Train job not found")
	default:
		s.internal(w, job, err)
	}
}

func (s *server) internal(w http.ResponseWriter, job types.NamespacedName, err error) {
	klog.Background().WithName("trainer-status").Error(err, "Cannot accept the status of a TrainJob", "trainJob", job)
	refuse(w, http.StatusInternalServerError, metav1.StatusReasonInternalError, "Internal error")
}

func refuse(w http.ResponseWriter, code int32, reason metav1.StatusReason, message string) {
	answer(w, int(code), metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure, Message: message, Reason: reason, Code: code,
	})
}

func answer(w http.ResponseWriter, code int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(body) // who does not wait for the answer need not have it
}
