// SPDX-License-Identifier: Apache-2.0

package asktell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	asktell "diwan.dev/diwan/api/asktell/v1"
)

// Port is the HTTP port of ask and tell.
const Port = 6790

// maxBody bounds a request, in bytes.
const maxBody = 1 << 20

// Handler serves the methods over HTTP: each is a POST to /v1/ and its name in
// lower case, with the request in JSON. An error is an object with the code and
// the message that gRPC gives it.
//
// Requests of web pages are rejected: a page in the browser of a laptop's owner
// is not the owner.
func (s *Server) Handler() http.Handler {
	mux := http.NewServeMux()
	for _, method := range asktell.AskTell_ServiceDesc.Methods {
		mux.HandleFunc("POST /v1/"+strings.ToLower(method.MethodName), func(w http.ResponseWriter, r *http.Request) {
			reply, err := s.call(r, func(ctx context.Context, decode func(any) error) (any, error) {
				return method.Handler(s, ctx, decode, nil)
			})
			if err != nil {
				writeError(w, err)
				return
			}
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write(reply)
		})
	}
	return mux
}

// call has a method answer a request.
func (s *Server) call(r *http.Request, method func(ctx context.Context, decode func(any) error) (any, error)) ([]byte, error) {
	if kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); kind != "application/json" {
		return nil, status.Error(codes.InvalidArgument, "the request's Content-Type must be application/json")
	}
	if r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != "" {
		return nil, status.Error(codes.PermissionDenied, "requests from web pages are not allowed")
	}
	body, err := io.ReadAll(http.MaxBytesReader(nil, r.Body, maxBody))
	if err != nil {
		return nil, status.Errorf(codes.InvalidArgument, "cannot read the request: %v", err)
	}
	reply, err := method(callerOf(r), func(m any) error {
		if err := protojson.Unmarshal(body, m.(proto.Message)); err != nil {
			return status.Errorf(codes.InvalidArgument, "the request does not match api/asktell/v1/asktell.proto: %v", err)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true}.Marshal(reply.(proto.Message))
}

// callerOf returns the caller's identity, as gRPC would.
func callerOf(r *http.Request) context.Context {
	ctx := r.Context()
	from := &peer.Peer{LocalAddr: r.Context().Value(http.LocalAddrContextKey).(net.Addr)}
	if addr, err := net.ResolveTCPAddr("tcp", r.RemoteAddr); err == nil {
		from.Addr = addr
	}
	ctx = peer.NewContext(ctx, from)
	if token := r.Header.Get("Authorization"); token != "" {
		ctx = metadata.NewIncomingContext(ctx, metadata.Pairs("authorization", token))
	}
	return ctx
}

// statusOf are the HTTP statuses of gRPC's codes; others are internal errors.
var statusOf = map[codes.Code]int{
	codes.InvalidArgument: http.StatusBadRequest, codes.Unauthenticated: http.StatusUnauthorized, codes.PermissionDenied: http.StatusForbidden,
	codes.NotFound: http.StatusNotFound, codes.AlreadyExists: http.StatusConflict, codes.FailedPrecondition: http.StatusConflict,
	codes.ResourceExhausted: http.StatusInsufficientStorage, codes.Unavailable: http.StatusServiceUnavailable, codes.DeadlineExceeded: http.StatusGatewayTimeout,
	codes.Canceled: 499,
}

func writeError(w http.ResponseWriter, err error) {
	s := status.Convert(err)
	code, known := statusOf[s.Code()]
	if !known {
		code = http.StatusInternalServerError
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(map[string]string{"code": s.Code().String(), "message": s.Message()})
}

// ServeHTTP answers on some listeners until ctx ends, and closes them.
func (s *Server) ServeHTTP(ctx context.Context, listeners ...net.Listener) error {
	server := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       10 * time.Minute,
		MaxHeaderBytes:    64 << 10,
	}
	requests, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server.BaseContext = func(net.Listener) context.Context { return requests }
	group, ctx := errgroup.WithContext(ctx)
	for _, l := range listeners {
		group.Go(func() error {
			if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
				return fmt.Errorf("cannot serve ask and tell on %s: %w", l.Addr(), err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ctx.Done()
		cancel() // who waits for a trial need not
		grace, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer done()
		if err := server.Shutdown(grace); err != nil {
			_ = server.Close()
		}
		return nil
	})
	return group.Wait()
}
