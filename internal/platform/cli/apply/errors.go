// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"diwan.dev/diwan/internal/platform/cli/manifest"
	"diwan.dev/diwan/internal/platform/typo"
)

// Error is an object in a file that could not be applied, with the causes and a
// hint.
type Error struct {
	// Object is the object as it was written.
	Object manifest.Object
	// Causes are the problems, each with its field if there is one.
	Causes []string
	// Hint says what the user can do; "" if unknown.
	Hint string
	// Err is the error from the API server or the connection.
	Err error
}

// Error is the message in several lines: the place, the causes, the hint.
func (e *Error) Error() string {
	var b strings.Builder
	name := e.Object.GetName()
	if name == "" {
		name = e.Object.GetGenerateName() + "…"
	}
	fmt.Fprintf(&b, "cannot apply %s %s from %s:", e.Object.GetKind(), name, e.Object.Source)
	if len(e.Causes) == 1 {
		b.WriteString(" " + e.Causes[0])
	} else {
		for _, cause := range e.Causes {
			b.WriteString("\n  " + cause)
		}
	}
	if e.Hint != "" {
		b.WriteString("\n" + e.Hint)
	}
	return b.String()
}

// Unwrap returns the error from the API server.
func (e *Error) Unwrap() error { return e.Err }

// namespaceError says that an object and the command line name different namespaces.
type namespaceError struct{ written, asked string }

func (e *namespaceError) Error() string {
	return fmt.Sprintf("metadata.namespace is %q, but the command line specifies %q", e.written, e.asked)
}

// explain turns an error about an object into one that a user can act on. existed is whether the
// cluster had the object already.
func (a *Applier) explain(ctx context.Context, object manifest.Object, existed bool, err error) error {
	result := &Error{Object: object, Causes: Causes(object.GroupVersionKind(), err), Err: err}
	var (
		elsewhere *namespaceError
		noKind    *meta.NoKindMatchError
	)
	switch {
	case errors.As(err, &noKind), meta.IsNoMatchError(err):
		result.Causes, result.Hint = a.unknownKind(object.GroupVersionKind())
	case errors.As(err, &elsewhere):
		result.Hint = "remove -n, or the namespace in the file"
	case apierrors.IsNotFound(err) && strings.Contains(err.Error(), "namespaces"):
		result.Hint = fmt.Sprintf("create the namespace first: diwan kubectl create namespace %s%s",
			object.GetNamespace(), typo.DidYouMean(a.similarNamespace(ctx, object.GetNamespace())))
	case existed && (apierrors.IsInvalid(err) || apierrors.IsForbidden(err)):
		result.Hint = "it already exists with different content: change metadata.name, or start over with --restart"
	case apierrors.IsForbidden(err):
		result.Hint = "these credentials do not permit that: ask the cluster's administrator, or choose others with --context"
	}
	return result
}

// Causes lists the problems of an object of a kind from an error of the API server, each with its
// field if there is one. The API server joins the causes of an invalid object into one message, but
// also lists them.
func Causes(gvk schema.GroupVersionKind, err error) []string {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return []string{err.Error()}
	}
	var causes []string
	if details := status.Status().Details; details != nil {
		for _, cause := range details.Causes {
			if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
				continue
			}
			text := cause.Message
			if cause.Field != "" && !strings.HasPrefix(text, cause.Field) {
				text = cause.Field + ": " + text
			}
			causes = append(causes, text)
		}
	}
	if len(causes) == 0 {
		message := strings.TrimSuffix(status.Status().Message, ".")
		if _, denied, ok := strings.Cut(message, " denied the request: "); ok {
			message = denied
		}
		causes = fieldFaults(gvk, message)
	}
	slices.Sort(causes)
	return slices.Compact(causes)
}

// unknownKind says that the cluster does not serve a kind, and which of its name it does.
func (a *Applier) unknownKind(gvk schema.GroupVersionKind) (causes []string, hint string) {
	causes = []string{fmt.Sprintf("the cluster has no kind %s in apiVersion %s", gvk.Kind, gvk.GroupVersion())}
	hint = "`diwan kubectl api-resources` lists its kinds; add the CustomResourceDefinition of a new kind to the files"
	if mappings, err := a.mapper.RESTMappings(gvk.GroupKind()); err == nil && len(mappings) > 0 {
		hint = fmt.Sprintf("it has %s in apiVersion %s", gvk.Kind, mappings[0].GroupVersionKind.GroupVersion())
	}
	return causes, hint
}
