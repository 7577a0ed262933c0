// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"go.etcd.io/bbolt"
	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
	"go.uber.org/zap/buffer"
	"go.uber.org/zap/zapcore"
)

// etcdServer is etcd with one member, reached through a Unix socket in a
// directory that the user alone can enter.
type etcdServer struct {
	dir, logFile string
	sockets      string
	endpoint     string
	server       *embed.Etcd // nil until it starts
}

// slowRequest is how long a request takes that etcd's log warns of.
const slowRequest = 2 * time.Second

// newEtcd makes a server of the data in dir, and a path for its socket.
func newEtcd(dir, logFile string) (*etcdServer, error) {
	sockets, err := socketDirectory(filepath.Dir(dir))
	if err != nil {
		return nil, fmt.Errorf("cannot create a directory for etcd's socket: %w", err)
	}
	return &etcdServer{dir: dir, logFile: logFile, sockets: sockets, endpoint: "unix://" + filepath.Join(sockets, "client.sock")}, nil
}

// start opens the data and returns when etcd serves it.
func (e *etcdServer) start(ctx context.Context) error {
	if err := checkData(e.dir); err != nil {
		return err
	}
	logger, err := etcdLogger(e.logFile)
	if err != nil {
		return err
	}
	client := url.URL{Scheme: "unix", Path: filepath.Join(e.sockets, "client.sock")}

	cfg := embed.NewConfig()
	cfg.Name = "diwan"
	cfg.Dir = e.dir
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(logger)
	// The only member has no peers, and peers are not asked who they are.
	cfg.ListenClientUrls, cfg.ListenPeerUrls = []url.URL{client}, nil
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

	if e.server, err = embed.StartEtcd(cfg); err != nil {
		return fmt.Errorf("cannot start etcd on %s: %w; %s", e.dir, err, remedy)
	}
	select {
	case <-e.server.Server.ReadyNotify():
		return nil
	case err := <-e.server.Err():
		return fmt.Errorf("cannot start etcd on %s: %w", e.dir, err)
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Minute):
		return fmt.Errorf("cannot start etcd on %s: not ready after a minute; see %s", e.dir, e.logFile)
	}
}

// remedy is what may help where etcd cannot go on.
const remedy = "if the disk is full, free some space and start diwan again: nothing that it confirmed is lost; " + damageRemedy

// damageRemedy is what helps if etcd's data cannot be read.
const damageRemedy = "if the data is damaged, the objects of this cluster are lost, such as experiments and trials: " +
	"restore the directory etcd of the home from a copy, or move it away to begin without objects; metrics, logs and volumes are kept in other files"

// checkData reads all of etcd's file in dir, if there is one. etcd itself, and
// the library that keeps the file, panic at damage that they come across.
func checkData(dir string) (err error) {
	file := filepath.Join(dir, "member", "snap", "db")
	if _, err := os.Stat(file); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if damage := recover(); damage != nil {
			err = fmt.Errorf("%v", damage)
		}
		if err != nil {
			err = fmt.Errorf("cannot read the storage of the cluster, %s: %w; %s", file, err, damageRemedy)
		}
	}()
	db, err := bbolt.Open(file, 0o600, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
	if err != nil {
		return err
	}
	defer db.Close()
	return db.View(func(tx *bbolt.Tx) error {
		return tx.ForEach(func(_ []byte, bucket *bbolt.Bucket) error {
			var last []byte
			return bucket.ForEach(func(key, _ []byte) error {
				if last != nil && bytes.Compare(last, key) >= 0 {
					return errors.New("its keys are out of order")
				}
				last = key
				return nil
			})
		})
	})
}

// maxSocketPath is what the path of a Unix socket may take on every system.
const maxSocketPath = 103

// socketDirectory makes an empty directory that the user alone can enter: in
// the home, or among the temporary files if that path is too long or cannot
// stand in a URL as it is.
func socketDirectory(home string) (string, error) {
	dir := filepath.Join(home, "sockets")
	inURL := url.URL{Path: dir}
	if len(filepath.Join(dir, "client.sock")) > maxSocketPath || inURL.EscapedPath() != dir {
		return os.MkdirTemp("", "diwan-")
	}
	if err := os.RemoveAll(dir); err != nil { // those of a process that was killed
		return "", err
	}
	return dir, os.Mkdir(dir, 0o700)
}

// stop closes the data; what was acknowledged is on disk.
func (e *etcdServer) stop() {
	if e.server != nil {
		e.server.Close()
	}
	os.RemoveAll(e.sockets)
}

func etcdLogger(file string) (*zap.Logger, error) {
	cfg := zap.NewProductionConfig()
	cfg.Level = zap.NewAtomicLevelAt(zapcore.WarnLevel)
	cfg.OutputPaths, cfg.ErrorOutputPaths = []string{file}, []string{file}
	cfg.Encoding = "console"
	cfg.EncoderConfig = zap.NewDevelopmentEncoderConfig()
	logger, err := cfg.Build(zap.WrapCore(func(core zapcore.Core) zapcore.Core { return zapcore.NewTee(core, lastWords(os.Stderr)) }),
		zap.WithPanicHook(zapcore.WriteThenFatal)) // no stack: what went wrong is not in the program
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
	fields = append(fields, zap.String("remedy", remedy))
	return p.Encoder.EncodeEntry(e, fields)
}

// Clone implements zapcore.Encoder.
func (p prefixed) Clone() zapcore.Encoder { return prefixed{p.Encoder.Clone()} }
