// SPDX-License-Identifier: Apache-2.0

package collector

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// page gets a page that a Pod serves.
type page struct {
	url    *url.URL
	header http.Header
	client *http.Client
	max    int64 // bytes
}

// newPage returns the page that an action describes, on the Pod's address
// unless the action names a host.
func newPage(get *corev1.HTTPGetAction, address string, config Config) (*page, error) {
	port, err := strconv.Atoi(get.Port.String())
	if err != nil || port < 1 || port > 65535 {
		return nil, fmt.Errorf("cannot get metrics from port %q: want a number from 1 to 65535", get.Port.String())
	}
	if get.Host != "" {
		address = get.Host
	}
	scheme := "http"
	if get.Scheme != "" {
		scheme = strings.ToLower(string(get.Scheme))
	}
	at, err := url.Parse(scheme + "://" + net.JoinHostPort(address, strconv.Itoa(port)) + "/" + strings.TrimPrefix(get.Path, "/"))
	if err != nil {
		return nil, fmt.Errorf("cannot get metrics: %w", err)
	}
	p := &page{url: at, max: config.MaxPage, header: http.Header{
		"User-Agent": {"diwan"},
		"Accept":     {"text/plain;version=0.0.4,*/*;q=0.1"},
	}}
	for _, h := range get.HTTPHeaders {
		p.header.Add(h.Name, h.Value)
	}
	p.client = &http.Client{
		// No proxy, and any certificate, as in a probe of kubelet's.
		Transport:     &http.Transport{DialContext: config.Dial, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, IdleConnTimeout: time.Minute},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return p, nil
}

// get returns the content of the page.
func (p *page) get(ctx context.Context) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url.String(), nil)
	if err != nil {
		return nil, err
	}
	request.Header, request.Host = p.header, p.header.Get("Host")
	answer, err := p.client.Do(request)
	if wrapped := (*url.Error)(nil); errors.As(err, &wrapped) {
		err = wrapped.Err // the caller names the page
	}
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	n, err := io.Copy(&body, io.LimitReader(answer.Body, p.max+1))
	switch {
	case err != nil:
		return nil, &pageError{fmt.Errorf("the page is truncated: %w", err)}
	case answer.StatusCode != http.StatusOK:
		return nil, &pageError{fmt.Errorf("the response is %s", answer.Status)}
	case n > p.max:
		return nil, &pageError{fmt.Errorf("the page has more than %d bytes", p.max)}
	}
	return body.Bytes(), nil
}

func (p *page) close() { p.client.CloseIdleConnections() }

// pageError is a problem with a served page: waiting does not help.
type pageError struct{ error }

func (e *pageError) Unwrap() error { return e.error }
