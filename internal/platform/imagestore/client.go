// SPDX-License-Identifier: Apache-2.0

package imagestore

import (
	"context"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/go-containerregistry/pkg/authn"
)

const (
	// tries is how often a request for a blob is made that brings nothing new. Manifests are asked for
	// less often, since kubelets try again by themselves, and mirrors, since there is the original.
	tries         = 6
	triesManifest = 3
	triesMirror   = 2
	// maxRetryAfter bounds the wait that a registry asks for.
	maxRetryAfter = time.Minute
	maxRedirects  = 10
	maxToken      = 1 << 20
	userAgent     = "diwan"
)

// errIdle says that a registry sent nothing for too long.
var errIdle = errors.New("the registry sent nothing for too long")

// backoff is the wait before the n-th repetition, from 0: from half a second to 30, with jitter.
func backoff(n int) time.Duration {
	d := min(time.Second<<min(n, 10), 30*time.Second)
	return d/2 + rand.N(d/2)
}

// client asks one endpoint for one repository.
type client struct {
	endpoint endpoint
	http     *http.Client
	idle     time.Duration
	backoff  func(int) time.Duration
	// candidates are credentials to try in turn. It is never empty.
	candidates []authn.Authenticator
	// failed: this endpoint has failed, and is not asked again if there is another.
	failed atomic.Bool

	mu            sync.Mutex
	candidate     int
	authorization string // the header for the endpoint; "" until it is asked for
}

func (s *Store) newClient(e endpoint, candidates []authn.Authenticator) *client {
	var rt http.RoundTripper = s.config.Transport
	if rt == nil || e.tls.RootCAs != nil || e.tls.InsecureSkipVerify {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = e.tls
		t.DisableCompression = true
		t.ResponseHeaderTimeout = s.config.Idle
		rt = t
	}
	if len(candidates) == 0 {
		candidates = []authn.Authenticator{authn.Anonymous}
	}
	c := &client{endpoint: e, idle: s.config.Idle, backoff: s.config.backoff, candidates: candidates}
	c.http = &http.Client{Transport: rt, CheckRedirect: checkRedirect}
	return c
}

// close closes idle connections.
func (c *client) close() { c.http.CloseIdleConnections() }

// checkRedirect permits redirects that do not leave TLS, and takes credentials away from those to
// other hosts: net/http keeps them for subdomains and other ports.
func checkRedirect(req *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects {
		return fmt.Errorf("it was redirected more than %d times", maxRedirects)
	}
	last := via[len(via)-1].URL
	if req.URL.Scheme != "https" && (req.URL.Scheme != "http" || last.Scheme != "http") {
		return failf(Unsupported, "%s redirects to %s, and only redirects by https are followed", last.Host, abbreviate(req.URL.Redacted()))
	}
	if first := via[0].URL; req.URL.Host != first.Host || req.URL.Scheme != first.Scheme {
		req.Header.Del("Authorization")
	}
	return nil
}

// httpError is an answer that is not what was asked for.
type httpError struct {
	status int
	text   string
	// wait is what the registry asks to wait.
	wait time.Duration
}

// Error is the status, and what the registry says of it.
func (e *httpError) Error() string {
	s := fmt.Sprintf("the registry answers %d %s", e.status, http.StatusText(e.status))
	if e.text != "" {
		s += ": " + e.text
	}
	return s
}

// temporary says whether the same request may succeed soon.
func temporary(err error) bool {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	if errors.As(err, &dns) && dns.IsNotFound || errors.As(err, &cert) || errors.As(err, &record) {
		return false
	}
	var he *httpError
	if errors.As(err, &he) {
		return he.status == http.StatusTooManyRequests || he.status == http.StatusRequestTimeout || he.status >= 500
	}
	return KindOf(err) == Unavailable
}

// retry calls f until it succeeds, fails for good, or has failed tries times. f returns whether it made
// progress: then counting starts again.
func (c *client) retry(ctx context.Context, tries int, f func() (progress bool, err error)) error {
	if c.endpoint.mirror {
		tries = min(tries, triesMirror)
	}
	for n := 0; ; n++ {
		progress, err := f()
		if err == nil || !temporary(err) || ctx.Err() != nil {
			return err
		}
		if progress {
			n = 0
		}
		if n+1 >= tries {
			return err
		}
		wait := c.backoff(n)
		var he *httpError
		if errors.As(err, &he) && he.wait > 0 {
			wait = he.wait
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(wait):
		}
	}
}

// get asks for a path below the repository, with the credentials that the registry wants. Success is
// one of the statuses. Reads of the body fail when the registry is idle for too long.
func (c *client) get(ctx context.Context, path string, header http.Header, statuses ...int) (*http.Response, error) {
	u := c.endpoint.base + "/v2/" + c.endpoint.repository + "/" + path
	for {
		authorization, candidate := c.credentials()
		resp, err := c.send(ctx, u, header, authorization)
		if err != nil {
			return nil, err
		}
		if err := checkStatus(resp, statuses); err == nil {
			return resp, nil
		} else if resp.StatusCode != http.StatusUnauthorized {
			// Registries also answer 403 and 404 to those who may not know.
			if k := KindOf(err); (k == Unauthorized || k == NotFound) && c.advance(candidate) {
				continue
			}
			return nil, err
		} else {
			next, authErr := c.authorize(ctx, resp.Header.Values("WWW-Authenticate"), candidate)
			if authErr == nil && next != authorization {
				c.mu.Lock()
				c.authorization = next
				c.mu.Unlock()
				// Once more; a fresh token that is refused, too, is the end of this candidate.
				resp, sendErr := c.send(ctx, u, header, next)
				if sendErr != nil {
					return nil, sendErr
				}
				if err = checkStatus(resp, statuses); err == nil {
					return resp, nil
				}
				authErr = err
			}
			if authErr != nil {
				err = authErr
			}
			if temporary(err) || !c.advance(candidate) {
				return nil, err
			}
		}
	}
}

func (c *client) credentials() (authorization string, candidate int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.authorization, c.candidate
}

// advance goes on from a candidate to the next, if there is one.
func (c *client) advance(from int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.candidate != from {
		return true
	}
	if c.candidate+1 >= len(c.candidates) {
		return false
	}
	c.candidate++
	c.authorization = ""
	return true
}

// send makes one request.
func (c *client) send(ctx context.Context, u string, header http.Header, authorization string) (*http.Response, error) {
	idleCtx, cancel := context.WithCancelCause(ctx)
	timer := time.AfterFunc(c.idle, func() { cancel(errIdle) })
	req, err := http.NewRequestWithContext(idleCtx, http.MethodGet, u, nil)
	if err != nil {
		cancel(nil)
		timer.Stop()
		return nil, err
	}
	for k, v := range header {
		req.Header[k] = v
	}
	req.Header.Set("User-Agent", userAgent)
	// A transport that decompresses would break digests and ranges.
	req.Header.Set("Accept-Encoding", "identity")
	if authorization != "" {
		req.Header.Set("Authorization", authorization)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		timer.Stop()
		cause := context.Cause(idleCtx)
		cancel(nil)
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(cause, errIdle):
			return nil, as(Unavailable, fmt.Errorf("cannot reach %s: %w", c.endpoint.host, errIdle))
		}
		var ue *url.Error
		if errors.As(err, &ue) {
			err = ue.Err // without the URL, which may hold a signature
		}
		if strings.Contains(err.Error(), http.ErrSchemeMismatch.Error()) {
			return nil, failf(Unsupported, "%s speaks HTTP without TLS, which is used only if registries.yaml says plainHTTP for it", c.endpoint.host)
		}
		return nil, as(Unavailable, fmt.Errorf("cannot reach %s: %w", c.endpoint.host, err))
	}
	timer.Stop()
	resp.Body = &idleBody{body: resp.Body, ctx: idleCtx, parent: ctx, cancel: cancel, timer: timer, idle: c.idle}
	return resp, nil
}

// idleBody ends a body that nothing comes from.
type idleBody struct {
	body   io.ReadCloser
	ctx    context.Context
	parent context.Context
	cancel context.CancelCauseFunc
	timer  *time.Timer
	idle   time.Duration
}

// Read reads.
func (b *idleBody) Read(p []byte) (int, error) {
	b.timer.Reset(b.idle)
	n, err := b.body.Read(p)
	b.timer.Stop() // what the reader does meanwhile is not the registry's time
	if err != nil && err != io.EOF {
		switch {
		case b.parent.Err() != nil:
			err = context.Cause(b.parent)
		case errors.Is(context.Cause(b.ctx), errIdle):
			err = as(Unavailable, errIdle)
		default:
			err = as(Unavailable, fmt.Errorf("the connection to the registry broke: %w", err))
		}
	}
	return n, err
}

// Close closes the body.
func (b *idleBody) Close() error {
	b.timer.Stop()
	b.cancel(nil)
	return b.body.Close()
}

// checkStatus closes the body of an answer with another status, and says what it means.
func checkStatus(resp *http.Response, statuses []int) error {
	for _, s := range statuses {
		if resp.StatusCode != s {
			continue
		}
		if strings.HasPrefix(strings.ToLower(resp.Header.Get("Content-Type")), "text/html") {
			resp.Body.Close()
			return failf(Unsupported, "%s answers with a web page: it is not a registry, or something stands in between", resp.Request.URL.Host)
		}
		return nil
	}
	defer resp.Body.Close()
	e := &httpError{status: resp.StatusCode}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 4096))
	var answer struct {
		Errors []struct{ Code, Message string }
	}
	if json.Unmarshal(b, &answer) == nil && len(answer.Errors) > 0 {
		e.text = abbreviate(strings.TrimSpace(answer.Errors[0].Code + " " + answer.Errors[0].Message))
	}
	if after, err := strconv.Atoi(resp.Header.Get("Retry-After")); err == nil && after > 0 {
		e.wait = min(time.Duration(min(after, 3600))*time.Second, maxRetryAfter)
	}
	kind := Unavailable
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		kind = Unauthorized
	case http.StatusNotFound, http.StatusGone:
		kind = NotFound
	}
	return &classified{kind: kind, err: e}
}

// authorize answers a registry's challenges with a candidate's credentials: it returns the header.
func (c *client) authorize(ctx context.Context, challenges []string, candidate int) (string, error) {
	cfg, err := authn.Authorization(ctx, c.candidates[candidate])
	if err != nil {
		return "", failf(Unauthorized, "cannot get the credentials for %s: %w", c.endpoint.host, err)
	}
	if cfg.Username == "" && cfg.Password == "" && cfg.Auth != "" {
		if b, err := base64.StdEncoding.DecodeString(cfg.Auth); err == nil {
			cfg.Username, cfg.Password, _ = strings.Cut(string(b), ":")
		}
	}
	if cfg.RegistryToken != "" {
		return "Bearer " + cfg.RegistryToken, nil
	}
	basic := ""
	if cfg.Username != "" || cfg.Password != "" {
		basic = "Basic " + base64.StdEncoding.EncodeToString([]byte(cfg.Username+":"+cfg.Password))
	}
	for _, header := range challenges {
		switch scheme, params := parseChallenge(header); scheme {
		case "bearer":
			return c.token(ctx, params, basic, cfg.IdentityToken)
		case "basic":
			if basic == "" {
				return "", failf(Unauthorized, "the registry %s wants a user name and a password", c.endpoint.host)
			}
			return basic, nil
		}
	}
	return "", failf(Unauthorized, "the registry %s answers 401 Unauthorized and names no way to log in", c.endpoint.host)
}

// token gets a token from the service that a registry names
// (github.com/distribution/distribution docs/spec/auth/token.md, oauth.md).
func (c *client) token(ctx context.Context, params map[string]string, basic, identity string) (string, error) {
	realm, err := url.Parse(params["realm"])
	if err != nil || realm.Host == "" || realm.Scheme != "https" && (realm.Scheme != "http" || !strings.HasPrefix(c.endpoint.base, "http://")) {
		return "", failf(Unauthorized, "the registry %s names the token service %q, which is not an https address", c.endpoint.host, abbreviate(params["realm"]))
	}
	scope := params["scope"]
	if scope == "" {
		scope = "repository:" + c.endpoint.repository + ":pull"
	}
	var resp *http.Response
	if identity != "" {
		resp, err = c.postToken(ctx, realm.String(), url.Values{
			"grant_type": {"refresh_token"}, "refresh_token": {identity}, "client_id": {userAgent},
			"service": {params["service"]}, "scope": {scope},
		})
	} else {
		q := realm.Query()
		q.Set("scope", scope)
		if params["service"] != "" {
			q.Set("service", params["service"])
		}
		realm.RawQuery = q.Encode()
		resp, err = c.send(ctx, realm.String(), nil, basic)
	}
	if err != nil {
		return "", fmt.Errorf("cannot get a token: %w", err)
	}
	if err := checkStatus(resp, []int{http.StatusOK}); err != nil {
		return "", fmt.Errorf("cannot get a token: %w", err)
	}
	defer resp.Body.Close()
	var answer struct {
		Token       string `json:"token"`
		AccessToken string `json:"access_token"`
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxToken))
	if err != nil {
		return "", fmt.Errorf("cannot get a token: %w", err)
	}
	if err := json.Unmarshal(b, &answer); err != nil {
		return "", failf(Unauthorized, "cannot get a token: %s answers something else: %w", realm.Host, err)
	}
	if answer.Token == "" {
		answer.Token = answer.AccessToken
	}
	if answer.Token == "" {
		return "", failf(Unauthorized, "cannot get a token: %s answers without one", realm.Host)
	}
	return "Bearer " + answer.Token, nil
}

// postToken exchanges an identity token.
func (c *client) postToken(ctx context.Context, realm string, form url.Values) (*http.Response, error) {
	ctx, cancel := context.WithTimeout(ctx, c.idle)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, realm, strings.NewReader(form.Encode()))
	if err != nil {
		cancel()
		return nil, err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("User-Agent", userAgent)
	// The body holds a secret: it is not repeated for another address.
	once := *c.http
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := once.Do(req)
	if err != nil {
		cancel()
		return nil, as(Unavailable, err)
	}
	resp.Body = &cancelBody{ReadCloser: resp.Body, cancel: cancel}
	return resp, nil
}

type cancelBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close closes the body.
func (b *cancelBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}

// parseChallenge parses a WWW-Authenticate header with one challenge. Scheme and names are lower-case.
func parseChallenge(header string) (scheme string, params map[string]string) {
	scheme, rest, _ := strings.Cut(strings.TrimSpace(header), " ")
	params = make(map[string]string)
	for rest = strings.TrimLeft(rest, " ,"); rest != ""; rest = strings.TrimLeft(rest, " ,") {
		key, value, ok := strings.Cut(rest, "=")
		if !ok {
			break
		}
		value = strings.TrimLeft(value, " ")
		if strings.HasPrefix(value, `"`) {
			var b strings.Builder
			i := 1
			for ; i < len(value) && value[i] != '"'; i++ {
				if value[i] == '\\' && i+1 < len(value) {
					i++
				}
				b.WriteByte(value[i])
			}
			params[strings.ToLower(strings.TrimSpace(key))] = b.String()
			rest = value[min(i+1, len(value)):]
		} else {
			v, after, _ := strings.Cut(value, ",")
			params[strings.ToLower(strings.TrimSpace(key))] = strings.TrimSpace(v)
			rest = after
		}
	}
	return strings.ToLower(scheme), params
}
