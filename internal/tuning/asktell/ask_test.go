// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	asktell "diwan.dev/diwan/api/asktell/v1"
	"diwan.dev/diwan/api/kubeflow/v1beta1"
)

func TestCheckAsk(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason  string
		request *asktell.AskRequest
		want    string // in the error, "" for none
	}{
		"Plain":   {"a UUID, say", &asktell.AskRequest{RequestId: "0b1c-é", WaitSeconds: 60}, ""},
		"Nothing": {"an ID is made up", &asktell.AskRequest{}, ""},
		"Long":    {"it is kept in the trial", &asktell.AskRequest{RequestId: strings.Repeat("x", 201)}, "201 bytes"},
		"Control": {"no database keeps it", &asktell.AskRequest{RequestId: "a\x00"}, "printable"},
		"Worker":  {"it is kept too", &asktell.AskRequest{Worker: strings.Repeat("x", 201)}, "worker"},
		"Wait":    {"connections do not last", &asktell.AskRequest{WaitSeconds: 61}, "wait_seconds"},
		"Less":    {"nor go back", &asktell.AskRequest{WaitSeconds: -1}, "wait_seconds"},
		"NaN":     {"nor is this a time", &asktell.AskRequest{WaitSeconds: math.NaN()}, "wait_seconds"},
	} {
		id, _, err := checkAsk(c.request)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q: %s", name, err, c.want, c.reason)
		}
		if err == nil && id == "" {
			t.Errorf("%s: no ID", name)
		}
	}
}

// TestOffer checks that a trial is offered once in each version, the lowest
// number first.
func TestOffer(t *testing.T) {
	t.Parallel()
	trial := func(index, version string) v1beta1.Trial {
		return v1beta1.Trial{ObjectMeta: metav1.ObjectMeta{UID: types.UID("trial " + index), ResourceVersion: version, Annotations: map[string]string{v1beta1.AnnotationTrialIndex: index}}}
	}
	s, got := New(DefaultConfig()), ""
	for _, free := range [][]v1beta1.Trial{
		{trial("10", "1"), trial("2", "1")},
		{trial("10", "1"), trial("2", "1")},
		{trial("10", "1"), trial("2", "1")},
		{trial("10", "1"), trial("2", "7")}, // it was given back
	} {
		if t := s.offer(free); t != nil {
			got += " " + t.Annotations[v1beta1.AnnotationTrialIndex]
		} else {
			got += " none"
		}
	}
	if want := " 2 10 none 2"; got != want {
		t.Errorf("offered%s, want%s", got, want)
	}
}

// TestAlone has a request wait for an earlier one of its ID, and for no other.
func TestAlone(t *testing.T) {
	t.Parallel()
	s := New(DefaultConfig())
	release, err := s.alone(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.alone(t.Context(), "b")
	if err != nil {
		t.Fatal(err)
	}
	other()
	hasty, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if _, err := s.alone(hasty, "a"); err == nil {
		t.Error("two calls have the same ID")
	}
	done := make(chan error)
	go func() {
		again, err := s.alone(t.Context(), "a")
		if err == nil {
			again()
		}
		done <- err
	}()
	release()
	if err := <-done; err != nil {
		t.Error(err)
	}
	if len(s.asking) != 0 {
		t.Errorf("%d calls are remembered", len(s.asking))
	}
}
