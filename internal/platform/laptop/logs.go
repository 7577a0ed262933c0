// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"flag"
	"fmt"
	"io"
	"os"
	_ "unsafe" // for go:linkname

	"github.com/go-logr/logr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

// maxLog is the size above which a start moves the log aside, once.
const maxLog = 64 << 20

// etcdClientLogger is where the API server's etcd client logs. It writes to the
// terminal, with each request that is cut off at the end, and cannot be told
// otherwise but by this variable of the server's.
//
//go:linkname etcdClientLogger k8s.io/apiserver/pkg/storage/storagebackend/factory.etcd3ClientLogger
var etcdClientLogger *zap.Logger

// redirectLogs sends what the components log to a file. The returned function
// flushes and closes it.
func redirectLogs(path string) (func(), error) {
	if info, err := os.Stat(path); err == nil && info.Size() > maxLog {
		if err := os.Rename(path, path+".old"); err != nil {
			return nil, fmt.Errorf("cannot rotate %s: %w", path, err)
		}
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("cannot open the log: %w", err)
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	for name, value := range map[string]string{"logtostderr": "false", "alsologtostderr": "false", "stderrthreshold": "FATAL", "one_output": "true"} {
		if err := flags.Set(name, value); err != nil {
			return nil, fmt.Errorf("cannot configure the log: %w", err)
		}
	}
	klog.SetOutput(file)
	ctrl.SetLogger(logr.New(klog.Background().GetSink()))
	etcdClientLogger = zap.New(
		zapcore.NewCore(zapcore.NewJSONEncoder(zap.NewProductionEncoderConfig()), zapcore.AddSync(file), zap.WarnLevel),
		zap.ErrorOutput(zapcore.AddSync(io.Discard))) // a client may outlive the file
	return func() {
		klog.Flush()
		klog.SetOutput(os.Stderr)
		file.Close()
	}, nil
}
