// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// etcdServer is etcd with one member, reached through a Unix socket in a
// directory that the user alone can enter.
type etcdServer struct {
	server   *embed.Etcd
	sockets  string
	endpoint string
}

// slowRequest is how long a request takes that etcd's log warns of.
const slowRequest = 2 * time.Second

// startEtcd opens the data in dir and returns when etcd serves it.
func startEtcd(ctx context.Context, dir, logFile string) (*etcdServer, error) {
	sockets, err := socketDirectory(filepath.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("cannot create a directory for etcd's socket: %w", err)
	}
	logger, err := etcdLogger(logFile)
	if err != nil {
		return nil, err
	}
	client := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "client.sock")}
	peer := url.URL{Scheme: "unix", Path: filepath.Join(sockets, "peer.sock")}

	cfg := embed.NewConfig()
	cfg.Name = "diwan"
	cfg.Dir = dir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	cfg.ListenClientUrls, cfg.ListenPeerUrls = []url.URL{client}, []url.URL{peer}
	// Advertised to nobody, since there is one member; the form is checked.
	nobody := url.URL{Scheme: "http", Host: "127.0.0.1:2380"}
	cfg.AdvertiseClientUrls, cfg.AdvertisePeerUrls = []url.URL{nobody}, []url.URL{nobody}
	cfg.InitialCluster = cfg.InitialClusterFromName(cfg.Name)
	// A single member elects itself: short ticks make that quick.
	cfg.TickMs, cfg.ElectionMs = 20, 200
	cfg.QuotaBackendBytes = 8 << 30
	cfg.MaxRequestBytes = 4 << 20
	// On a busy machine a tenth of a second, the default, passes now and then, and
	// each time is a long line in the log.
	cfg.WarningApplyDuration, cfg.WarningUnaryRequestDuration = slowRequest, slowRequest
	// kube-apiserver compacts the history itself; the log needs no long tail.
	cfg.SnapshotCount = 10_000
	// Nor does another member need to catch up: entries are kept in memory for that.
	cfg.SnapshotCatchUpEntries = 100

	server, err := embed.StartEtcd(cfg)
	if err != nil {
		os.RemoveAll(sockets)
		return nil, fmt.Errorf("cannot start etcd on %s: %w; is the disk full or the data damaged?", dir, err)
	}
	e := &etcdServer{server: server, sockets: sockets, endpoint: "unix://" + client.Path}
	select {
	case <-server.Server.ReadyNotify():
		return e, nil
	case err := <-server.Err():
		e.stop()
		return nil, fmt.Errorf("cannot start etcd on %s: %w", dir, err)
	case <-ctx.Done():
		e.stop()
		return nil, ctx.Err()
	case <-time.After(time.Minute):
		e.stop()
		return nil, fmt.Errorf("cannot start etcd on %s: not ready after a minute; see %s", dir, logFile)
	}
}

// maxSocketPath is what the path of a Unix socket may take on every system.
const maxSocketPath = 103

// socketDirectory makes an empty directory that the user alone can enter: in
// the home, or where that has too long a path among the temporary files.
func socketDirectory(home string) (string, error) {
	dir := filepath.Join(home, "sockets")
	if len(filepath.Join(dir, "client.sock")) > maxSocketPath {
		return os.MkdirTemp("", "diwan-")
	}
	if err := os.RemoveAll(dir); err != nil { // those of a process that was killed
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// stop closes the data; what was acknowledged is on disk.
func (e *etcdServer) stop() {
	e.server.Close()
	os.RemoveAll(e.sockets)
}

func etcdLogger(file string) (*zap.Logger, error) {
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(zapcore.WarnLevel)
	cfg.OutputPaths, cfg.ErrorOutputPaths = []string{file}, []string{file}
	cfg.Encoding = "console"
	cfg.EncoderConfig = zap.NewDevelopmentEncoderConfig()
	logger, err := cfg.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return zapcore.NewTee(core, lastWords(os.Stderr)) }))
	if err != nil {
		return nil, fmt.Errorf("cannot write etcd's log to %s: %w", file, err)
	}
	return logger, nil
}

// lastWords writes to w what etcd ends the process for, such as a full disk:
// the log may be on that disk too.
func lastWords(w zapcore.WriteSyncer) zapcore.Core {
	encoder := zapcore.NewConsoleEncoder(zapcore.EncoderConfig{MessageKey: "message", ConsoleSeparator: " "})
	return zapcore.NewCore(prefixed{encoder}, w, zap.DPanicLevel)
}

// prefixed begins each line with what ends, and says what may help.
type prefixed struct{ zapcore.Encoder }

// EncodeEntry implements zapcore.Encoder.
func (p prefixed) EncodeEntry(e zapcore.Entry, fields []zapcore.Field) (*buffer.Buffer, error) {
	e.Message = "diwan: the cluster's storage ended the process: " + e.Message
	fields = append(fields, zap.String("remedy", "if the disk is full, free some space; then start diwan again: nothing that it confirmed is lost"))
	return p.Encoder.EncodeEntry(e, fields)
}

// Clone implements zapcore.Encoder.
func (p prefixed) Clone() zapcore.Encoder { return prefixed{p.Encoder.Clone()} }
