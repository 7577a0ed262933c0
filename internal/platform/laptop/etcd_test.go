// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
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

// TestDamagedStorage starts on data of which pages were overwritten.
func TestDamagedStorage(t *testing.T) {
	t.Parallel()
	home := t.TempDir()
	dir, log := filepath.Join(home, "etcd"), filepath.Join(home, "log")
	server, err := startEtcd(t.Context(), dir, log)
	if err != nil {
		t.Fatal(err)
	}
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{server.endpoint}})
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []string{"/a", "/b", "/c"} {
		if _, err := client.Put(t.Context(), key, strings.Repeat("x", 20_000)); err != nil {
			t.Fatal(err)
		}
	}
	client.Close()
	server.stop()
	if server, err = startEtcd(t.Context(), dir, log); err != nil {
		t.Fatalf("on good data: %v", err)
	}
	server.stop()

	path := filepath.Join(dir, "member", "snap", "db")
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	const page = 4096
	for name, damage := range map[string]func(data []byte) []byte{
		"Pages": func(data []byte) []byte {
			copy(data[2*page:], bytes.Repeat([]byte{0xa5}, len(data)-2*page))
			return data
		},
		"Zeros": func(data []byte) []byte { clear(data[2*page:]); return data },
		"Short": func(data []byte) []byte { return data[:3*page] },
		"Heads": func(data []byte) []byte { clear(data[:2*page]); return data },
		"Empty": func([]byte) []byte { return []byte("none") },
	} {
		if err := os.WriteFile(path, damage(bytes.Clone(good)), 0o600); err != nil {
			t.Fatal(err)
		}
		server, err := startEtcd(t.Context(), dir, log)
		if err == nil {
			server.stop()
			t.Errorf("%s: damaged data was not noticed", name)
			continue
		}
		for _, want := range []string{path, "restore the directory etcd"} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q in it", name, err, want)
			}
		}
	}
	if _, err := os.Stat(filepath.Join(home, "sockets")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the directory of the sockets is left: %v", err)
	}
}

// startEtcd returns a server of the data in dir that runs.
func startEtcd(ctx context.Context, dir, log string) (*etcdServer, error) {
	e, err := newEtcd(dir, log)
	if err != nil {
		return nil, err
	}
	if err := e.start(ctx); err != nil {
		e.stop()
		return nil, err
	}
	return e, nil
}
