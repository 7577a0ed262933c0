// SPDX-License-Identifier: Apache-2.0

package early

import (
	"errors"
	"slices"
	"strconv"
)

// A Job and a Result travel as texts: numbers in decimal with a colon after each, strings with
// their length before them. Package encoding/json would do, but what it imports costs a monitor
// more time than all else in it.

// coder writes fields, or reads them where reading is set.
type coder struct {
	text    []byte
	reading bool
	err     error
}

var errCode = errors.New("the text is not of this version of the program")

func number[T ~int | ~int32 | ~uint32 | ~uint64 | ~uintptr](c *coder, n *T) {
	if !c.reading {
		c.text = append(strconv.AppendInt(c.text, int64(*n), 10), ':')
		return
	}
	end := slices.Index(c.text, ':')
	if c.err != nil || end < 0 {
		c.err = errCode
		return
	}
	value, err := strconv.ParseInt(string(c.text[:end]), 10, 64)
	if err != nil {
		c.err = errCode
		return
	}
	*n, c.text = T(value), c.text[end+1:]
}

func text[T ~string | ~[]byte](c *coder, s *T) {
	size := len(*s)
	number(c, &size)
	switch {
	case !c.reading:
		c.text = append(c.text, *s...)
	case c.err != nil || size < 0 || size > len(c.text):
		c.err = errCode
	case size == 0:
		*s = *new(T)
	default:
		*s, c.text = T(string(c.text[:size])), c.text[size:]
	}
}

func flag(c *coder, f *bool) {
	n := 0
	if *f {
		n = 1
	}
	number(c, &n)
	*f = n == 1
}

func list[T any](c *coder, l *[]T, each func(c *coder, one *T)) {
	size := len(*l)
	number(c, &size)
	if c.reading {
		if c.err != nil || size < 0 || size > len(c.text) {
			c.err = errCode
			return
		}
		*l = nil
		if size > 0 {
			*l = make([]T, size)
		}
	}
	for i := range *l {
		each(c, &(*l)[i])
	}
}

func (j *Job) code(c *coder) {
	number(c, &j.Join)
	number(c, &j.JoinBegan)
	number(c, &j.Among)
	number(c, &j.AmongBegan)
	flag(c, &j.AmongUser)
	flag(c, &j.Idle)
	list(c, &j.Args, text)
	list(c, &j.Env, text)
	text(c, &j.Dir)
	number(c, &j.UID)
	number(c, &j.GID)
	list(c, &j.Groups, number)
	flag(c, &j.Userns)
	number(c, &j.Capabilities)
	flag(c, &j.NoNewPrivileges)
	text(c, &j.Seccomp)
	number(c, &j.SeccompFlags)
	flag(c, &j.Direct)
	flag(c, &j.TTY)
	flag(c, &j.InGroup)
	list(c, &j.Tasks, text)
	list(c, &j.Layers, text)
	text(c, &j.Scratch)
	flag(c, &j.ReadOnly)
	flag(c, &j.Privileged)
	list(c, &j.Masked, text)
	list(c, &j.Fixed, text)
	list(c, &j.Mounts, func(c *coder, m *Mount) {
		text(c, &m.Source)
		text(c, &m.Target)
		flag(c, &m.ReadOnly)
		flag(c, &m.Optional)
		text(c, &m.Base)
		list(c, &m.Layers, text)
	})
	text(c, &j.Hostname)
	text(c, &j.Netns)
	list(c, &j.Sysctls, text)
	flag(c, &j.Kept)
}

func (r *Result) code(c *coder) {
	number(c, &r.PID)
	text(c, &r.Mounts)
	text(c, &r.Error)
	number(c, &r.Code)
}

// Encode is the job as a text.
func (j *Job) Encode() []byte {
	c := &coder{}
	j.code(c)
	return c.text
}

// Decode reads the text of a job.
func (j *Job) Decode(text []byte) error {
	c := &coder{text: text, reading: true}
	j.code(c)
	return c.end()
}

// Encode is the result as a text.
func (r *Result) Encode() []byte {
	c := &coder{}
	r.code(c)
	return c.text
}

// Decode reads the text of a result.
func (r *Result) Decode(text []byte) error {
	c := &coder{text: text, reading: true}
	r.code(c)
	return c.end()
}

func (c *coder) end() error {
	if c.err == nil && len(c.text) > 0 {
		c.err = errCode
	}
	return c.err
}
