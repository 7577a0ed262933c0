// SPDX-License-Identifier: Apache-2.0

package trialtemplate

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/tidwall/gjson"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// State is the state of a run object.
type State string

// The states of a run object.
const (
	Running   State = "Running"
	Succeeded State = "Succeeded"
	Failed    State = "Failed"
)

// Outcome is the state of a run object, with the reason and message of its
// own condition, if any.
type Outcome struct {
	State   State
	Reason  string
	Message string
}

// Evaluate reads from a run object how it went. success and failure are GJSON
// queries on the object's JSON; a query holds when its result is an object or
// an array that is not empty. Failure is asked first. Reason and message come
// from the result, or from its first element.
func Evaluate(run *unstructured.Unstructured, success, failure string) (Outcome, error) {
	var visible any = run.Object
	if onStatus(success) && onStatus(failure) {
		// The rest of the object, which is most of it, cannot matter.
		visible = map[string]any{"status": run.Object["status"]}
	}
	text, err := json.Marshal(visible)
	if err != nil {
		return Outcome{}, fmt.Errorf("cannot evaluate the conditions on %s %s: %w", run.GetKind(), run.GetName(), err)
	}
	return EvaluateJSON(text, success, failure), nil
}

// EvaluateJSON is Evaluate on a run object in JSON.
func EvaluateJSON(run []byte, success, failure string) Outcome {
	if o, ok := query(run, failure); ok {
		o.State = Failed
		return o
	}
	if o, ok := query(run, success); ok {
		o.State = Succeeded
		return o
	}
	return Outcome{State: Running}
}

func onStatus(query string) bool {
	return query == "" || strings.HasPrefix(query, "status.")
}

func query(run []byte, path string) (Outcome, bool) {
	if path == "" {
		return Outcome{}, false
	}
	found := gjson.GetBytes(run, path)
	if found.IsArray() {
		elements := found.Array()
		if len(elements) == 0 {
			return Outcome{}, false
		}
		found = elements[0]
	} else if !found.IsObject() {
		return Outcome{}, false
	}
	return Outcome{Reason: textOf(found, "reason"), Message: textOf(found, "message")}, true
}

func textOf(object gjson.Result, key string) string {
	if v := object.Get(key); v.Type == gjson.String {
		return v.Str
	}
	return ""
}
