// SPDX-License-Identifier: Apache-2.0

package mlflow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

// Clients returns a client of the Kubernetes API with the rights of whoever sent the
// request. An error that is an [*Error] is the answer.
type Clients func(*http.Request) (client.Client, error)

// The codes of errors, by MLflow's names (databricks.proto).
const (
	codeInvalid     = "INVALID_PARAMETER_VALUE"
	codeMissing     = "RESOURCE_DOES_NOT_EXIST"
	codeExists      = "RESOURCE_ALREADY_EXISTS"
	codeDenied      = "PERMISSION_DENIED"
	codeAnonymous   = "UNAUTHENTICATED"
	codeInternal    = "INTERNAL_ERROR"
	codeUnavailable = "TEMPORARILY_UNAVAILABLE"
	codeNoEndpoint  = "ENDPOINT_NOT_FOUND"
)

// Error is an answer that is an error.
type Error struct {
	Code    string `json:"error_code"`
	Message string `json:"message"`
	status  int
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

func refuse(status int, code, format string, args ...any) *Error {
	return &Error{code, fmt.Sprintf(format, args...), status}
}

func invalid(format string, args ...any) *Error {
	return refuse(http.StatusBadRequest, codeInvalid, format, args...)
}

func missing(format string, args ...any) *Error {
	return refuse(http.StatusNotFound, codeMissing, format, args...)
}

// Unauthenticated is the answer to who does not say who they are; how says what helps.
func Unauthenticated(how string) *Error {
	return refuse(http.StatusUnauthorized, codeAnonymous, "%s", how)
}

// Handler returns the handler of a tracking URI. The URI may end in /namespaces/NAME;
// without, it is about the namespace of that name here.
//
// Requests of web pages are refused: a page in a user's browser is not the user.
func Handler(clients Clients, namespace string) http.Handler {
	mux := http.NewServeMux()
	for _, m := range methods() {
		for verb := range strings.FieldsSeq(m.verbs) {
			for _, prefix := range []string{"", "/namespaces/{namespace}"} {
				mux.HandleFunc(verb+" "+prefix+"/api/2.0/mlflow/"+m.path, func(w http.ResponseWriter, r *http.Request) {
					in := r.PathValue("namespace")
					if in == "" {
						in = namespace
					}
					reply, err := serve(r, clients, in, m.answer)
					if err != nil {
						writeError(w, r, err)
						return
					}
					write(w, http.StatusOK, reply)
				})
			}
		}
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		writeError(w, r, refuse(http.StatusNotFound, codeNoEndpoint,
			"there is no %s %.200s: this is a model registry, which has registered models and their versions; log runs to a tracking server, and set it with mlflow.set_tracking_uri apart from mlflow.set_registry_uri", r.Method, r.URL.Path))
	})
	return mux
}

// call is one call.
type call struct {
	client.Client
	namespace string
	request   request
}

func serve(r *http.Request, clients Clients, namespace string, answer func(context.Context, *call) (any, error)) (any, error) {
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil, refuse(http.StatusForbidden, codeDenied, "requests from web pages are not allowed")
	}
	c := &call{namespace: namespace}
	if err := c.request.read(r); err != nil {
		return nil, err
	}
	var err error
	if c.Client, err = clients(r); err != nil {
		return nil, err
	}
	return answer(r.Context(), c)
}

// request has the fields of all requests.
type request struct {
	Name            string   `json:"name"`
	NewName         string   `json:"new_name"`
	Version         number   `json:"version"`
	Description     *string  `json:"description"`
	Tags            []tag    `json:"tags"`
	Key             string   `json:"key"`
	Value           string   `json:"value"`
	Alias           string   `json:"alias"`
	Source          string   `json:"source"`
	RunID           string   `json:"run_id"`
	RunLink         string   `json:"run_link"`
	Stage           string   `json:"stage"`
	Stages          []string `json:"stages"`
	ArchiveExisting bool     `json:"archive_existing_versions"`
	Filter          string   `json:"filter"`
	MaxResults      number   `json:"max_results"`
	OrderBy         []string `json:"order_by"`
	PageToken       string   `json:"page_token"`
}

// number is an integer, which MLflow's clients also send as text.
type number int64

// UnmarshalJSON implements json.Unmarshaler.
func (n *number) UnmarshalJSON(text []byte) error {
	s := strings.Trim(string(text), `"`)
	if s == "" || s == "null" {
		return nil
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("%.50q is not a whole number", s)
	}
	*n = number(v)
	return nil
}

// read reads the parameters of a URL and the body's JSON.
func (q *request) read(r *http.Request) error {
	if err := q.parameters(r.URL.Query()); err != nil {
		return err
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return invalid("cannot read the request: %v", err)
	}
	if len(body) == 0 {
		return nil
	}
	if err := json.Unmarshal(body, q); err != nil {
		return invalid("cannot read the request as JSON: %v", err)
	}
	return nil
}

// parameters reads the parameters of a URL, which are those of a GET.
func (q *request) parameters(values url.Values) error {
	for key, to := range map[string]*string{
		"name": &q.Name, "key": &q.Key, "value": &q.Value, "alias": &q.Alias, "stage": &q.Stage, "filter": &q.Filter, "page_token": &q.PageToken,
	} {
		*to = values.Get(key)
	}
	for key, to := range map[string]*number{"version": &q.Version, "max_results": &q.MaxResults} {
		if err := to.UnmarshalJSON([]byte(values.Get(key))); err != nil {
			return invalid("parameter %s: %v", key, err)
		}
	}
	q.OrderBy, q.Stages = values["order_by"], values["stages"]
	return nil
}

// failure is an error of the Kubernetes API in MLflow's words; what names the thing.
func failure(what string, err error) error {
	var mine *Error
	switch {
	case err == nil, errors.As(err, &mine):
		return err
	case apierrors.IsNotFound(err):
		return missing("%s does not exist", what)
	case apierrors.IsAlreadyExists(err):
		return refuse(http.StatusBadRequest, codeExists, "%s already exists", what)
	case apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return invalid("%s: %v", what, err)
	case apierrors.IsForbidden(err):
		return refuse(http.StatusForbidden, codeDenied, "%s: %v", what, err)
	case apierrors.IsUnauthorized(err):
		return Unauthenticated("the API server does not know the token: " + err.Error())
	}
	return refuse(http.StatusServiceUnavailable, codeUnavailable, "%s: %v", what, err)
}

func writeError(w http.ResponseWriter, r *http.Request, err error) {
	var e *Error
	if !errors.As(err, &e) {
		klog.FromContext(r.Context()).WithName("mlflow").Error(err, "Cannot answer", "path", r.URL.Path)
		e = refuse(http.StatusInternalServerError, codeInternal, "internal error")
	}
	write(w, e.status, e)
}

func write(w http.ResponseWriter, status int, reply any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(reply) // whoever left does not need the answer
}
