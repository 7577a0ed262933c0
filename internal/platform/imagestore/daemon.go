// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
)

// LoadDaemon brings images into the store that a Docker daemon on this machine has, or Podman's service
// that speaks its language. socket is the path of its unix socket, most often /var/run/docker.sock.
func (s *Store) LoadDaemon(ctx context.Context, socket string, o LoadOptions, names ...Name) ([]*Image, error) {
	if len(names) == 0 {
		return nil, errors.New("cannot load images: no names are given")
	}
	q := make(url.Values)
	for _, n := range names {
		q.Add("names", n.Familiar())
	}
	fail := func(kind Kind, err error) error {
		return &Error{Kind: kind, Name: names[0].String() + " from the daemon at " + socket, Err: err}
	}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://docker/images/get?"+q.Encode(), nil)
	if err != nil {
		return nil, fail(Internal, err)
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return nil, fail(Unavailable, err)
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		kind := Unavailable
		if resp.StatusCode == http.StatusNotFound {
			kind = NotFound
		}
		return nil, fail(kind, fmt.Errorf("it answers %s", resp.Status))
	}
	defer resp.Body.Close()
	return s.LoadReader(ctx, resp.Body, o)
}
