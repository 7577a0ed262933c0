// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"io"

	"github.com/go-logr/zapr"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"k8s.io/klog/v2"
)

// Forms of the log.
const (
	logText = "text"
	logJSON = "json"
)

// logAsJSON makes Kubernetes' libraries and ours log one JSON object per line:
// ts (RFC 3339), level (info or error), logger, msg, which is constant, and
// structured keys. flush flushes buffered lines.
func logAsJSON(to io.Writer) (flush func()) {
	keys := zap.NewProductionEncoderConfig()
	keys.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(keys), zapcore.Lock(zapcore.AddSync(to)), zapcore.InfoLevel)
	klog.SetLogger(zapr.NewLogger(zap.New(core)))
	return klog.Flush
}
