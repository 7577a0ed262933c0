// SPDX-License-Identifier: Apache-2.0

package containerlog

import (
	"bytes"
	"errors"
	"io"
)

// errLimit ends a Copy that has written as many bytes as it may.
var errLimit = errors.New("limit reached")

// printer writes bytes of a log, with timestamps and up to a limit.
type printer struct {
	w       io.Writer
	left    int64
	limited bool
	stamps  bool
	reader  *reader
	fresh   bool         // the next byte begins a line
	stamped bytes.Buffer // one block with its stamps
}

// print writes p, which lies at offset in the log.
func (o *printer) print(p []byte, offset int64) error {
	if !o.stamps || len(p) == 0 {
		return o.write(p)
	}
	o.stamped.Reset()
	for len(p) > 0 {
		if o.fresh {
			at := o.reader.clock.timeOf(offset, o.reader.log)
			o.stamped.WriteString(at.UTC().Format(stampFormat))
			o.stamped.WriteByte(' ')
		}
		n := bytes.IndexByte(p, '\n') + 1
		o.fresh = n > 0
		if n == 0 {
			n = len(p)
		}
		o.stamped.Write(p[:n])
		p, offset = p[n:], offset+int64(n)
	}
	return o.write(o.stamped.Bytes())
}

func (o *printer) write(p []byte) error {
	if len(p) == 0 {
		return nil
	}
	if !o.limited {
		_, err := o.w.Write(p)
		return err
	}
	p = p[:min(int64(len(p)), o.left)]
	n, err := o.w.Write(p)
	if o.left -= int64(n); err == nil && o.left == 0 {
		err = errLimit
	}
	return err
}
