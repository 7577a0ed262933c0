// SPDX-License-Identifier: Apache-2.0

package podtest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/testing/chance"
)

// TestKilled kills the collectors of trials at random moments, also as their
// programs end, and wants each point once.
func TestKilled(t *testing.T) {
	t.Parallel()
	l, random := newLab(t), chance.New(t)
	const trials, points = 4, 400
	container := fmt.Sprintf(`command: [sh, -c, "i=0; while [ $i -lt %d ]; do echo loss=$i; i=$((i+1)); [ $((i %% 8)) = 0 ] && sleep 0.05; done; printf acc=1"]`, points)
	for i := range trials {
		l.trial(fmt.Sprint("killed-", i), "", container)
	}
	killed := 0
	for i := range trials {
		name := fmt.Sprint("killed-", i)
		// The first is killed as soon as it runs, the last as its program ends.
		for want := i * (points - 10) / (trials - 1); len(l.values(name, "loss")) < want; {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		}
		for deadline := time.Now().Add(5 * time.Second); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
			if n := kill(l.namespace, name); n > 0 {
				killed += n
				break
			}
		}
	}
	for i := range trials {
		name := fmt.Sprint("killed-", i)
		trial := l.ended(name, 2*time.Minute)
		values := l.values(name, "loss")
		if len(values) != points || !trial.Status.Conditions.IsTrue(v1beta1.ConditionSucceeded) {
			t.Errorf("trial %s has %d points, want %d: %+v\n%s", name, len(values), points, trial.Status.Conditions, l.log(name, "metrics-logger-and-collector"))
			continue
		}
		for step, v := range values {
			if v != strconv.Itoa(step) {
				t.Errorf("trial %s: point %d is %s", name, step, v)
				break
			}
		}
		if acc := l.values(name, "acc"); len(acc) != 1 {
			t.Errorf("trial %s: the last line is there %d times", name, len(acc))
		}
	}
	if killed == 0 {
		t.Error("no collector was killed")
	}
}

// kill ends the collector of a trial as if it had crashed, and reports how many
// there were.
func kill(namespace, trial string) int {
	found := 0
	processes, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, process := range processes {
		text, err := os.ReadFile(process)
		if err != nil || !bytes.HasPrefix(text, []byte("diwan-collector\x00")) ||
			!bytes.Contains(text, []byte(fmt.Sprintf(`"Namespace":%q,"Name":%q`, namespace, trial))) {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(process))); err == nil && syscall.Kill(pid, syscall.SIGKILL) == nil {
			found++
		}
	}
	return found
}
