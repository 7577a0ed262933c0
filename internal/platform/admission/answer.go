// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrladmission "sigs.k8s.io/controller-runtime/pkg/webhook/admission"
	kjson "sigs.k8s.io/json"

	"diwan.dev/diwan/internal/platform/typo"
)

const (
	// MaxReasons bounds the faults in one answer; the rest are counted.
	MaxReasons = 16
	// maxReason bounds the text of one fault, in bytes.
	maxReason = 512
)

// Decode reads an object as the API server does, and returns a warning for
// each field that is not read.
func Decode(raw []byte, into any) (warnings []string, err error) {
	strict, err := kjson.UnmarshalStrict(raw, into)
	if err != nil {
		return nil, err
	}
	for i, s := range strict {
		if i == MaxReasons {
			return append(warnings, fmt.Sprintf("%d more fields are ignored", len(strict)-i)), nil
		}
		warnings = append(warnings, shorten(s.Error())+" is ignored"+typo.Hint(into, s))
	}
	return warnings, nil
}

// Patched answers with what changes raw into object.
func Patched(raw []byte, object any) ctrladmission.Response {
	text, err := json.Marshal(object)
	if err != nil {
		return ctrladmission.Errored(http.StatusInternalServerError, err)
	}
	return ctrladmission.PatchResponseFromRaw(raw, text)
}

// Decide allows an object without faults.
func Decide(req ctrladmission.Request, errs field.ErrorList) ctrladmission.Response {
	if len(errs) == 0 {
		return ctrladmission.Allowed("")
	}
	kind := schema.GroupKind{Group: req.Kind.Group, Kind: req.Kind.Kind}
	status := apierrors.NewInvalid(kind, req.Name, bound(errs)).Status()
	answer := ctrladmission.Denied("")
	answer.Result = &status
	return answer
}

// Unreadable refuses an object that cannot be decoded. run is the field that
// holds an object of any kind, if there is one.
func Unreadable(err error, run *field.Path) ctrladmission.Response {
	reason := shorten(err.Error())
	var wrong *json.UnmarshalTypeError
	switch {
	case runtime.IsMissingKind(err) && run != nil:
		reason = field.Required(run.Child("kind"), "an object has apiVersion and kind, for example batch/v1 and Job").Error()
	case errors.As(err, &wrong):
		reason = fmt.Sprintf("%s: is a %s, but must be of type %s", wrong.Field, shorten(wrong.Value), wrong.Type)
	}
	return ctrladmission.Errored(http.StatusBadRequest, fmt.Errorf("cannot read the object: %s", reason))
}

// bound keeps an answer short enough to read and to send.
func bound(errs field.ErrorList) field.ErrorList {
	out := make(field.ErrorList, 0, min(len(errs), MaxReasons+1))
	for i, e := range errs {
		if i == MaxReasons {
			return append(out, field.Invalid(field.NewPath("spec"), field.OmitValueType{}, fmt.Sprintf("and %d more faults", len(errs)-i)))
		}
		if text, ok := e.BadValue.(string); ok {
			e.BadValue = shorten(text)
		}
		e.Field, e.Detail = shorten(e.Field), shorten(e.Detail)
		out = append(out, e)
	}
	return out
}

func shorten(text string) string {
	if len(text) <= maxReason {
		return text
	}
	return strings.ToValidUTF8(text[:maxReason], "") + "…"
}

// Before is the object as it was before an update, nil at a creation.
func Before[T any](req ctrladmission.Request) (*T, error) {
	if len(req.OldObject.Raw) == 0 {
		return nil, nil
	}
	old := new(T)
	return old, json.Unmarshal(req.OldObject.Raw, old)
}

// IsWrongType reports whether err is about a JSON value of a wrong type.
func IsWrongType(err error) bool {
	var wrong *json.UnmarshalTypeError
	return errors.As(err, &wrong)
}
