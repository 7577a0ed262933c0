// SPDX-License-Identifier: Apache-2.0

package node

import (
	"testing"

	"diwan.dev/diwan/internal/platform/node/image"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	mapped := &image.Entry{Image: "acme/train", Command: []string{"train"}}
	pulled := &image.Entry{Image: "acme/*", Runtime: image.RuntimeImage}
	for _, tc := range []struct {
		name    string
		handler string
		entry   *image.Entry
		want    string
	}{
		{"unmapped", "", nil, "as a process of this machine: its image is not in the image table"},
		{"mapped", "", mapped, "as a process of this machine: the entry acme/train of the image table maps it"},
		{"pulled", "", pulled, "in its image: the entry acme/* of the image table says so"},
		{"class over no entry", image.RuntimeImage, nil, "in its image: the Pod's RuntimeClass says so"},
		{"class over an entry", image.RuntimeImage, mapped, "in its image: the Pod's RuntimeClass says so"},
		{"class over an entry that pulls", image.RuntimeProcess, pulled, "as a process of this machine: the Pod's RuntimeClass says so"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			if got := placeOf(tc.handler, tc.entry).String(); got != tc.want {
				t.Errorf("it runs %q, want %q", got, tc.want)
			}
		})
	}
}
