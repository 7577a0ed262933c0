// SPDX-License-Identifier: Apache-2.0

package typo

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"

	kjson "sigs.k8s.io/json"
)

// Hint returns the suffix for a strict decoding error about an object of the
// type of into: the field that was probably meant.
func Hint(into any, strict error) string {
	var at kjson.FieldError
	if !errors.As(strict, &at) || !strings.HasPrefix(strict.Error(), "unknown field ") {
		return ""
	}
	return DidYouMean(Field(reflect.TypeOf(into), at.FieldPath()))
}

// DidYouMean returns the suffix for a message about an unknown name, "" if
// nothing is close to it.
func DidYouMean(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %q?", name)
}

// brackets are the index or the key of a list's item in a path.
var brackets = regexp.MustCompile(`\[(?:[^\]"]|"[^"]*")*\]`)

// Field returns the field that the last name of a path was probably meant to
// be, "" where none is close. The path, such as spec.containers[0].comand,
// begins in an object of a type.
func Field(object reflect.Type, path string) string {
	steps := strings.Split(strings.TrimPrefix(brackets.ReplaceAllString(path, ""), "."), ".")
	last := len(steps) - 1
	for _, step := range steps[:last] {
		if object = under(object, step); object == nil {
			return ""
		}
	}
	fields, ok := fieldsOf(elem(object))
	if !ok {
		return ""
	}
	names := make([]string, len(fields))
	for i, f := range fields {
		names[i] = f.name
	}
	return Nearest(steps[last], names)
}

// under is the type of a field, or of the values of a map; nil if that is unknown.
func under(object reflect.Type, name string) reflect.Type {
	object = elem(object)
	if object.Kind() == reflect.Map {
		return object.Elem()
	}
	fields, _ := fieldsOf(object)
	for _, f := range fields {
		if f.name == name {
			return f.of
		}
	}
	return nil
}

// elem takes pointers and lists off a type.
func elem(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	return t
}

// field is a field as JSON has it.
type field struct {
	name string
	of   reflect.Type
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// fieldsOf lists the fields of a struct, false if t is none or has a JSON form
// of its own.
func fieldsOf(t reflect.Type) ([]field, bool) {
	if t.Kind() != reflect.Struct || reflect.PointerTo(t).Implements(unmarshaler) {
		return nil, false
	}
	var fields []field
	for i := range t.NumField() {
		f := t.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-" || !f.IsExported():
		case name == "" && f.Anonymous:
			inline, _ := fieldsOf(elem(f.Type))
			fields = append(fields, inline...)
		case name != "":
			fields = append(fields, field{name, f.Type})
		}
	}
	return fields, true
}
