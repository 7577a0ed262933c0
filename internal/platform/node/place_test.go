// SPDX-License-Identifier: Apache-2.0

package node

import (
	"errors"
	"strings"
	"testing"

	"diwan.dev/diwan/internal/platform/node/image"
)

func TestPlace(t *testing.T) {
	t.Parallel()
	mapped := &image.Entry{Image: "acme/train", Command: []string{"train"}}
	machine := &image.Entry{Image: "*", Runtime: image.RuntimeProcess}
	pulled := &image.Entry{Image: "acme/*", Runtime: image.RuntimeImage}
	for _, tc := range []struct {
		name    string
		handler string
		entry   *image.Entry
		want    string
	}{
		{"unmapped", "", nil, "in its image: the image table does not map it"},
		{"mapped", "", mapped, "as a process of this machine: the entry acme/train of the image table maps it"},
		{"all others mapped", "", machine, "as a process of this machine: the entry * of the image table maps it"},
		{"class over no entry, process", image.RuntimeProcess, nil, "as a process of this machine: the Pod's RuntimeClass says so"},
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

func TestRemedyOfDefault(t *testing.T) {
	t.Parallel()
	cause := errors.New("no network")
	err := placeOf("", nil).orProcess("acme/train:v1", cause)
	if !errors.Is(err, cause) || !strings.Contains(err.Error(), "diwan images map acme/train:v1 --runtime process") || !strings.Contains(err.Error(), "runtimeClassName: process") {
		t.Errorf("the error of a default says %v", err)
	}
	if err := placeOf(image.RuntimeImage, nil).orProcess("acme/train:v1", cause); err != cause {
		t.Errorf("where the Pod chose its image, the error is %v", err)
	}
}
