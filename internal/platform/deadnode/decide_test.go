// SPDX-License-Identifier: Apache-2.0

package deadnode_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"diwan.dev/diwan/internal/platform/deadnode"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

const patience = 10 * time.Second

// node is a Node whose condition Ready is as said, "" for none yet.
func node(ready corev1.ConditionStatus, taints ...string) *corev1.Node {
	n := &corev1.Node{}
	if ready != "" {
		n.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready}}
	}
	for _, key := range taints {
		n.Spec.Taints = append(n.Spec.Taints, corev1.Taint{Key: key, Effect: corev1.TaintEffectNoExecute})
	}
	return n
}

// leaving is a Pod whose time to end is over at a moment after noon; nil is one
// that nobody deletes.
func leaving(over *time.Duration) corev1.Pod {
	p := corev1.Pod{}
	if over != nil {
		p.DeletionTimestamp = &metav1.Time{Time: noon.Add(*over)}
	}
	return p
}

func at(d time.Duration) *time.Duration { return &d }

func TestDecide(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		reason string
		node   *corev1.Node
		over   *time.Duration
		lost   bool
		after  time.Duration
	}{
		"Ready":            {"A node that answers ends its Pods itself", node("True"), at(-time.Hour), false, 0},
		"New":              {"So does one that has not yet said that it is ready", node(""), at(-time.Hour), false, 0},
		"NotReady":         {"One that says that it is not ready is alive, and so may its programs be", node("False", corev1.TaintNodeNotReady), at(-time.Hour), false, 0},
		"Stays":            {"A Pod that nobody deletes is not lost: the node may come back", node("Unknown"), nil, false, patience},
		"Ending":           {"A Pod has its time to end", node("Unknown"), at(30 * time.Second), false, 40 * time.Second},
		"Patience":         {"And a little more, in which the node may come back", node("Unknown"), at(-4 * time.Second), false, 6 * time.Second},
		"Silent":           {"Then nobody will say that it ended", node("Unknown", corev1.TaintNodeUnreachable), at(-patience), true, 0},
		"Deleted":          {"Neither will a node that is no more", nil, at(-patience), true, 0},
		"DeletedEnding":    {"Whose programs may still run, if it was deleted by mistake", nil, at(time.Second), false, 11 * time.Second},
		"OutOfService":     {"An administrator says that the machine is off", node("Unknown", corev1.TaintNodeOutOfService), at(30 * time.Second), true, 0},
		"OutOfServiceStay": {"But not that its Pods are to go", node("False", corev1.TaintNodeOutOfService), nil, false, time.Second},
		"OutOfServiceBack": {"A node that answers knows better", node("True", corev1.TaintNodeOutOfService), at(-time.Hour), false, 0},
		"JustNow":          {"The moment counts", node("Unknown"), at(1 - patience), false, time.Second},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			lost, after := deadnode.Decide(tc.node, []corev1.Pod{leaving(tc.over)}, noon, patience)
			if (len(lost) == 1) != tc.lost || after != tc.after {
				t.Errorf("%s: lost %v, look again after %v; want %v and %v", tc.reason, len(lost) == 1, after, tc.lost, tc.after)
			}
		})
	}
}

// TestEnded holds that a Pod that has ended is only of interest while its node
// keeps it from going: one that stays is not looked at again and again.
func TestEnded(t *testing.T) {
	t.Parallel()
	for _, phase := range []corev1.PodPhase{corev1.PodSucceeded, corev1.PodFailed} {
		for _, dead := range []*corev1.Node{node("Unknown"), nil, node("False", corev1.TaintNodeOutOfService)} {
			stays, goes := leaving(nil), leaving(at(-patience))
			stays.Status.Phase, goes.Status.Phase = phase, phase
			lost, after := deadnode.Decide(dead, []corev1.Pod{stays, goes}, noon, patience)
			if len(lost) != 1 || lost[0].DeletionTimestamp == nil || after != 0 {
				t.Errorf("%s: %d lost, look again after %v; want the one that is deleted, and 0", phase, len(lost), after)
			}
		}
	}
}

// TestEveryPodIsDecided holds that each Pod of a silent node is either lost or
// looked at again when its time comes, whatever the others are.
func TestEveryPodIsDecided(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		over := rapid.SliceOfN(rapid.Int64Range(-100, 100), 0, 20).Draw(rt, "seconds left")
		var pods []corev1.Pod
		due, next := 0, time.Duration(0)
		for _, s := range over {
			pods = append(pods, leaving(at(time.Duration(s)*time.Second)))
			if left := time.Duration(s)*time.Second + patience; left <= 0 {
				due++
			} else if next == 0 || left < next {
				next = left
			}
		}
		lost, after := deadnode.Decide(node("Unknown"), pods, noon, patience)
		if len(lost) != due || after != next {
			rt.Fatalf("%d lost, look again after %v; want %d and %v", len(lost), after, due, next)
		}
	})
}
