// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"diwan.dev/diwan/elastic"
)

// session is one connection.
type session struct {
	agent *Agent
	conn  net.Conn
	lines *bufio.Scanner
	mu    sync.Mutex // of writing
}

// serve answers one connection until it ends or ctx does.
func (a *Agent) serve(ctx context.Context, conn net.Conn) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	defer conn.Close()
	s := &session{agent: a, conn: conn, lines: bufio.NewScanner(conn)}
	s.lines.Buffer(make([]byte, 0, 4096), maxLine)
	request, err := s.next()
	if err == nil {
		switch {
		case request.Join != nil:
			err = s.member(ctx, *request.Join)
		case request.Watch:
			err = s.watch(ctx)
		default:
			err = errors.New("cannot serve the request: the first request must be join or watch")
		}
	}
	if err != nil {
		s.write(Reply{Error: err.Error()})
	}
}

// next reads a request.
func (s *session) next() (Request, error) {
	s.conn.SetReadDeadline(time.Now().Add(s.agent.config.WorkerTimeout))
	if !s.lines.Scan() {
		if err := s.lines.Err(); err != nil {
			return Request{}, err
		}
		return Request{}, net.ErrClosed
	}
	return ParseRequest(s.lines.Bytes())
}

func (s *session) write(r Reply) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.conn.SetWriteDeadline(time.Now().Add(s.agent.config.WorkerTimeout))
	return json.NewEncoder(s.conn).Encode(r)
}

// watch sends states to one that is no member.
func (s *session) watch(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var reader sync.WaitGroup
	defer reader.Wait()
	defer s.conn.Close()
	s.conn.SetReadDeadline(time.Time{})
	reader.Go(func() { // only to learn that the other end is gone
		defer cancel()
		for s.lines.Scan() {
		}
	})
	s.states(ctx)
	return nil
}

// states sends the states until ctx ends.
func (s *session) states(ctx context.Context) {
	for {
		state, changed := s.agent.latest()
		if s.write(Reply{State: &state}) != nil {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}

// member has a worker take part until it leaves, its connection ends or it falls silent.
func (s *session) member(ctx context.Context, join Join) error {
	a := s.agent
	if !a.attach() {
		return errors.New("cannot join: another worker is attached to this agent")
	}
	detach := sync.OnceFunc(a.detach)
	defer detach()
	a.place <- struct{}{} // the worker before may be taking leave
	defer func() {
		a.publish(State{Rank: -1, Waiting: noWorker})
		<-a.place
	}()
	self := a.newMember(join)
	m, err := newMembership(a.config, self, a.publish)
	if err != nil {
		return err
	}
	log := a.config.Log.With("member", self.ID)
	log.Info("the worker joins", "address", self.Address, "gossip", m.self.Gossip)
	a.publish(State{Rank: -1, Waiting: "no view yet"})

	sending, stop := context.WithCancel(ctx)
	var parts sync.WaitGroup
	parts.Go(func() { m.run(ctx) })
	if err = s.write(Reply{Member: &m.self}); err == nil {
		parts.Go(func() { s.states(sending) })
		err = s.listen(m)
	}
	switch {
	case err == nil:
		log.Info("the worker has finished")
	case errors.Is(err, os.ErrDeadlineExceeded): // if it comes back it joins again
		log.Warn("the worker stopped sending heartbeats", "for", a.config.WorkerTimeout)
	default:
		log.Warn("the worker is gone", "error", err)
		s.write(Reply{Error: err.Error()}) // for a worker that is still connected
	}
	detach()
	stop()
	s.conn.Close()
	close(m.leave)
	parts.Wait()
	return nil
}

// listen reads the worker's requests; it returns nil when the worker leaves.
func (s *session) listen(m *membership) error {
	for {
		request, err := s.next()
		switch {
		case err != nil:
			return err
		case request.Leave:
			return nil
		case request.Broken != nil:
			select {
			case <-m.broken: // an older wish
			default:
			}
			m.broken <- elastic.View{History: request.Broken.History, Number: request.Broken.Number}
		case request.Join != nil || request.Watch:
			return errors.New("cannot serve the request: the worker has already joined")
		}
	}
}
