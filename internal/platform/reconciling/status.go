// SPDX-License-Identifier: Apache-2.0

package reconciling

import (
	"context"
	"fmt"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// WriteStatus writes the status of update, an object with no metadata, to the object
// that was read, and has the tracker know it. The API server takes nothing but the
// status from it. kind is for the error.
func WriteStatus(ctx context.Context, c client.Client, writes *WriteTracker, kind string, read, update client.Object) error {
	before := read.GetResourceVersion()
	update.SetNamespace(read.GetNamespace())
	update.SetName(read.GetName())
	update.SetUID(read.GetUID())
	update.SetResourceVersion(before)
	if err := c.Status().Update(ctx, update); err != nil {
		return fmt.Errorf("cannot write the status of %s %s/%s: %w", kind, read.GetNamespace(), read.GetName(), err)
	}
	writes.Wrote(before, update)
	return nil
}

// maxMessage bounds a condition's message that holds the text of others, in bytes: an
// API server's error can name every field of an object.
const maxMessage = 2048

// Message bounds a text for the message of a condition.
func Message(text string) string {
	if len(text) <= maxMessage {
		return text
	}
	return strings.ToValidUTF8(text[:maxMessage-3], "") + "..."
}
