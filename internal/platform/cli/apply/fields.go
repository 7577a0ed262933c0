// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"fmt"
	"reflect"
	"regexp"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"

	"diwan.dev/diwan/internal/platform/typo"
)

// The forms of the API server's faults in fields: those of server-side apply,
// of which one answer has several, and those of the strict decoder.
var (
	typedPatch    = regexp.MustCompile(`^failed to create typed patch object \([^)]*\): (?:errors:\s*)?`)
	undeclared    = regexp.MustCompile(`^\.?(\S.*): field not declared in schema$`)
	mistyped      = regexp.MustCompile(`(?s)^\.?(\S.*): expected (\w+)(?: \([^)]*\))?, got (.*)$`)
	wrapped       = regexp.MustCompile(`(?s)^&(?:value\.valueUnstructured)?\{(?:Value:)?(.*)\}$`)
	strictUnknown = regexp.MustCompile(`unknown field "([^"]+)"`)
)

// fieldFaults splits a message of the API server into the faults in the fields
// of an object, and says each as a user would.
func fieldFaults(gvk schema.GroupVersionKind, message string) []string {
	var object reflect.Type // stays nil for kinds that the server alone knows
	if known, err := scheme.Scheme.New(gvk); err == nil {
		object = reflect.TypeOf(known)
	}
	meant := func(path string) string {
		if object == nil {
			return ""
		}
		return typo.DidYouMean(typo.Field(object, path))
	}
	if at := typedPatch.FindStringIndex(message); at != nil {
		faults := strings.Split(message[at[1]:], "\n")
		for i, fault := range faults {
			fault = strings.TrimSpace(fault)
			if m := undeclared.FindStringSubmatch(fault); m != nil {
				fault = "unknown field " + m[1] + meant(m[1])
			} else if m := mistyped.FindStringSubmatch(fault); m != nil {
				fault = m[1] + ": " + typeFault(m[2], m[3])
			}
			faults[i] = fault
		}
		return faults
	}
	if _, faults, ok := strings.Cut(message, "strict decoding error: "); ok {
		var all []string
		for fault := range strings.SplitSeq(faults, ", ") {
			if m := strictUnknown.FindStringSubmatch(fault); m != nil {
				fault = "unknown field " + m[1] + meant(m[1])
			}
			all = append(all, fault)
		}
		return all
	}
	return []string{message}
}

// typeFault says that a field has a value of the wrong type. got is the value, or
// its type, as Go prints it.
func typeFault(want, got string) string {
	if m := wrapped.FindStringSubmatch(got); m != nil {
		got = m[1]
	}
	_, err := strconv.ParseFloat(got, 64)
	number := err == nil
	is, quote := got, ""
	switch {
	case strings.HasPrefix(got, "map["):
		is = "an object"
	case strings.HasPrefix(got, "[]"), strings.HasPrefix(got, "["):
		is = "a list"
	case got == "string":
		is = "text"
	case got == "bool":
		is = "true or false"
	case got == "<nil>", strings.HasSuffix(got, "(nil)"):
		is = "empty"
	case number:
		is, quote = "the number "+got, ": put it in quotes"
	case got == "true":
		quote = ": put it in quotes (YAML reads y, yes and on as true)"
	case got == "false":
		quote = ": put it in quotes (YAML reads n, no and off as false)"
	}
	switch want {
	case "string":
		return "must be a string, not " + is + quote
	case "numeric":
		return "must be a number, not " + is
	case "boolean":
		return "must be true or false, not " + is
	case "map":
		return "must be an object, not " + is
	case "list":
		return "must be a list, not " + is
	}
	return fmt.Sprintf("must be of type %s, not %s", want, is)
}
