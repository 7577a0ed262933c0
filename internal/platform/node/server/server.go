// SPDX-License-Identifier: Apache-2.0

package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
)

// Config configures a Server.
type Config struct {
	// NodeName is the node's name, for statistics.
	NodeName string
	// Backend is the node.
	Backend Backend
	// Certificate is the serving certificate; kube-apiserver checks it
	// against its --kubelet-certificate-authority and the node's address.
	Certificate tls.Certificate
	// Authority signs the clients' certificates.
	Authority *x509.CertPool
	// Clients are the allowed common names: that of kube-apiserver's
	// --kubelet-client-certificate. An empty list allows nobody.
	Clients []string
	// StreamIdle ends an exec, attach or port-forward session in which nothing
	// moved for so long. Default 4 h, as kubelets do.
	StreamIdle time.Duration
	// StreamCreation is how long a client may take to open its streams. Default 30 s.
	StreamCreation time.Duration
	// Log logs failed sessions; the zero Logger is silent.
	Log logr.Logger
}

// Default returns the configuration with the kubelet's times.
func Default() Config {
	return Config{StreamIdle: 4 * time.Hour, StreamCreation: 30 * time.Second}
}

// Server serves the kubelet's API.
type Server struct {
	cfg      Config
	sessions sync.WaitGroup // handlers and what they started
	conns    connections
}

// New checks the configuration.
func New(cfg Config) (*Server, error) {
	switch {
	case cfg.Backend == nil:
		return nil, errors.New("cannot create kubelet server: no backend")
	case cfg.Authority == nil || len(cfg.Certificate.Certificate) == 0:
		return nil, errors.New("cannot create kubelet server: it needs a certificate and the CA of its clients")
	}
	base := Default()
	if cfg.StreamIdle <= 0 {
		cfg.StreamIdle = base.StreamIdle
	}
	if cfg.StreamCreation <= 0 {
		cfg.StreamCreation = base.StreamCreation
	}
	return &Server{cfg: cfg, conns: connections{open: map[*connection]struct{}{}}}, nil
}

// Serve answers on l until ctx is done, then ends all sessions and returns
// when they have ended. It closes l.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 30 * time.Second,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ConnContext:       connectionContext,
		ErrorLog:          discardHandshakes(s.cfg.Log),
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(tls.NewListener(s.conns.listen(l), s.tls())) }()
	var err error
	select {
	case <-ctx.Done():
		server.Close()
		<-failed
	case err = <-failed:
		err = fmt.Errorf("cannot serve the kubelet API: %w", err)
	}
	cancel()
	s.conns.close()
	s.sessions.Wait()
	return err
}

// tls asks for a certificate without checking it: authenticated does, so that
// a client without a good one hears 401. Streams need HTTP/1.1.
func (s *Server) tls() *tls.Config {
	return &tls.Config{
		Certificates: []tls.Certificate{s.cfg.Certificate},
		ClientAuth:   tls.RequestClientCert,
		MinVersion:   tls.VersionTLS12,
		NextProtos:   []string{"http/1.1"},
	}
}

// Handler is the API without its listener. Every request must come with TLS
// and a good client certificate.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "ok") })
	mux.HandleFunc("GET /pods", s.pods)
	mux.HandleFunc("GET /pods/{$}", s.pods)
	mux.HandleFunc("GET /stats/summary", s.summary)
	mux.HandleFunc("GET /metrics/resource", s.metrics)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for _, method := range []string{"GET ", "POST "} {
		for _, uid := range []string{"", "/{uid}"} {
			mux.HandleFunc(method+"/exec/{namespace}/{pod}"+uid+"/{container}", s.exec)
			mux.HandleFunc(method+"/attach/{namespace}/{pod}"+uid+"/{container}", s.attach)
			mux.HandleFunc(method+"/portForward/{namespace}/{pod}"+uid, s.portForward)
		}
	}
	return s.authenticated(mux)
}

// authenticated serves the clients that may do everything, and counts sessions.
func (s *Server) authenticated(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.known(r.TLS) {
			http.Error(w, "Unauthorized", http.StatusUnauthorized)
			return
		}
		s.sessions.Add(1)
		defer s.sessions.Done()
		next.ServeHTTP(w, r)
	})
}

func (s *Server) known(state *tls.ConnectionState) bool {
	if state == nil || len(state.PeerCertificates) == 0 {
		return false
	}
	leaf := state.PeerCertificates[0]
	options := x509.VerifyOptions{
		Roots:         s.cfg.Authority,
		Intermediates: x509.NewCertPool(),
		KeyUsages:     []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	for _, c := range state.PeerCertificates[1:] {
		options.Intermediates.AddCert(c)
	}
	if _, err := leaf.Verify(options); err != nil {
		return false
	}
	return slices.Contains(s.cfg.Clients, leaf.Subject.CommonName)
}

// fail answers with the error's text, as kubelets do.
func fail(w http.ResponseWriter, err error, otherwise int) {
	if errors.Is(err, ErrNotFound) {
		otherwise = http.StatusNotFound
	}
	http.Error(w, err.Error(), otherwise)
}
