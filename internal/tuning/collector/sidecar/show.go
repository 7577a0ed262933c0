// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"io"
	"os"
)

// show prints a file's content as it grows, until ctx ends and all of it was
// shown. A file that has become shorter was rewritten.
func show(ctx context.Context, path string, out io.Writer) {
	var file *os.File
	defer func() {
		if file != nil {
			file.Close()
		}
	}()
	shown := int64(0)
	for last := false; ; {
		if file == nil {
			file, _ = os.Open(path) // not there yet
		}
		if file != nil {
			if info, err := file.Stat(); err == nil && info.Size() < shown {
				shown = 0
			}
			n, _ := io.Copy(out, io.NewSectionReader(file, shown, 1<<62))
			shown += n
		}
		if last {
			return
		}
		sleep(ctx, lookInterval)
		last = ctx.Err() != nil
	}
}
