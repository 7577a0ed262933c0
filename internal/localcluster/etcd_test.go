// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

func TestLastWords(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	log := zap.New(lastWords(zapcore.AddSync(&out)), zap.WithPanicHook(zapcore.WriteThenGoexit))
	log.Error("that goes on")
	done := make(chan struct{})
	go func() {
		defer close(done)
		log.With(zap.String("member", "diwan")).Panic("failed to commit", zap.Error(errors.New("no space left on device")))
	}()
	<-done
	got := out.String()
	for _, want := range []string{"diwan: the cluster's storage ended the process: failed to commit", "no space left on device", "free some space"} {
		if !strings.Contains(got, want) {
			t.Errorf("said %q, want %q", got, want)
		}
	}
	if strings.Count(got, "\n") != 1 {
		t.Errorf("said %q, want one line", got)
	}
}
