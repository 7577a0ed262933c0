// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"diwan.dev/diwan/internal/platform/node/containerlog"
)

// logQuery is the part of corev1.PodLogOptions that a node answers.
type logQuery struct {
	containerlog.Options
	previous bool
}

// logs serves the output of a container.
func (s *Server) logs(w http.ResponseWriter, r *http.Request) {
	query, err := parseLogQuery(r.URL.Query(), time.Now())
	if err != nil {
		fail(w, err, http.StatusUnprocessableEntity)
		return
	}
	file, err := s.cfg.Backend.Log(r.Context(), r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container"), query.previous)
	if err != nil {
		fail(w, err, http.StatusBadRequest)
		return
	}
	out := &flusher{w: w, control: http.NewResponseController(w), each: query.Follow}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if query.Follow {
		out.control.Flush()
	}
	err = containerlog.Copy(r.Context(), out, file.Path, query.Options, file.Ended)
	if err == nil {
		return
	}
	if !errors.Is(err, context.Canceled) {
		s.cfg.Log.Info("A log was not sent completely", "path", file.Path, "reason", err.Error())
	}
	if !out.begun && !query.Follow {
		fail(w, err, http.StatusInternalServerError)
		return
	}
	panic(http.ErrAbortHandler) // the client must not take this for the log's end
}

// flusher sends each write at once when each is set.
type flusher struct {
	w       http.ResponseWriter
	control *http.ResponseController
	each    bool
	begun   bool
}

func (f *flusher) Write(p []byte) (int, error) {
	f.begun = true
	n, err := f.w.Write(p)
	if err == nil && f.each {
		err = f.control.Flush()
	}
	return n, err
}

// parseLogQuery reads the options as kubelets do, with the rules of the API
// server's validation.
func parseLogQuery(q url.Values, now time.Time) (logQuery, error) {
	out := logQuery{Options: containerlog.Options{Tail: containerlog.All}}
	p := parser{query: q}
	out.Follow, out.Timestamps, out.previous = p.boolean("follow"), p.boolean("timestamps"), p.boolean("previous")
	if tail, ok := p.integer("tailLines", 0); ok {
		out.Tail = tail
	}
	if limit, ok := p.integer("limitBytes", 1); ok {
		out.Limit = limit
	}
	if seconds, ok := p.integer("sinceSeconds", 1); ok {
		out.Since = now.Add(-time.Duration(min(seconds, int64(now.Unix()))) * time.Second)
		if q.Has("sinceTime") {
			p.err = errors.New("sinceSeconds and sinceTime: at most one may be given")
		}
	}
	if text := q.Get("sinceTime"); text != "" {
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			p.err = fmt.Errorf("sinceTime: want an RFC 3339 time: %w", err)
		}
		out.Since = at
	}
	switch stream := q.Get("stream"); stream {
	case "", corev1.LogStreamAll:
	case corev1.LogStreamStdout, corev1.LogStreamStderr:
		p.err = fmt.Errorf("stream: this node keeps standard output and error in one log, so only %s can be shown", corev1.LogStreamAll)
	default:
		p.err = fmt.Errorf("stream: want %s, got %q", corev1.LogStreamAll, stream)
	}
	return out, p.err
}

// parser parses query values and keeps the first error.
type parser struct {
	query url.Values
	err   error
}

func (p *parser) boolean(name string) bool {
	text := p.query.Get(name)
	if text == "" {
		return false
	}
	value, err := strconv.ParseBool(text)
	if err != nil && p.err == nil {
		p.err = fmt.Errorf("%s: want true or false, got %q", name, text)
	}
	return value
}

func (p *parser) integer(name string, least int64) (int64, bool) {
	text := p.query.Get(name)
	if text == "" {
		return 0, false
	}
	value, err := strconv.ParseInt(text, 10, 64)
	if (err != nil || value < least) && p.err == nil {
		p.err = fmt.Errorf("%s: want an integer from %d on, got %q", name, least, text)
	}
	return value, true
}
