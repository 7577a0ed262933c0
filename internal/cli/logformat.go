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

// logAsJSON has Kubernetes' libraries and ours write one JSON object a line:
// ts (RFC 3339), level (info or error), logger, msg, which is constant, and what
// the message is about by its own keys. flush writes what is held back.
func logAsJSON(to io.Writer) (flush func()) {
	keys := zap.NewProductionEncoderConfig()
	keys.EncodeTime = zapcore.RFC3339NanoTimeEncoder
	core := zapcore.NewCore(zapcore.NewJSONEncoder(keys), zapcore.Lock(zapcore.AddSync(to)), zapcore.InfoLevel)
	klog.SetLogger(zapr.NewLogger(zap.New(core)))
	return klog.Flush
}
