// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"context"

	"k8s.io/apimachinery/pkg/util/sets"

	"diwan.dev/diwan/internal/platform/cli/manifest"
)

// warningCode is that of all warnings of an API server (RFC 7234).
const warningCode = 299

// warnings forwards the API server's warnings, each once.
type warnings struct {
	tell func(string)
	told sets.Set[string]
}

type aboutKey struct{}

// about says for warnings to which object requests belong.
func about(ctx context.Context, object manifest.Object) context.Context {
	name := object.GetName()
	if name == "" {
		name = object.GetGenerateName() + "…"
	}
	return context.WithValue(ctx, aboutKey{}, object.GetKind()+" "+name+": ")
}

// HandleWarningHeaderWithContext is called for each warning of an answer.
func (w *warnings) HandleWarningHeaderWithContext(ctx context.Context, code int, _, text string) {
	subject, _ := ctx.Value(aboutKey{}).(string)
	if text = subject + text; code == warningCode && !w.told.Has(text) {
		w.told.Insert(text)
		w.tell("warning: " + text)
	}
}
