// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"crypto/sha512"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A request is sent to a handler without a network. The headers are pairs.
func request(r *Registry, method, target string, body []byte, headers ...string) *httptest.ResponseRecorder {
	req := httptest.NewRequest(method, "http://127.0.0.1:5000/", bytes.NewReader(body))
	if u, err := url.Parse("http://127.0.0.1:5000" + target); err == nil {
		req.URL = u
	} else {
		req.URL = &url.URL{Path: target}
	}
	req.SetBasicAuth("anyone", testToken)
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			req.Host = headers[i+1]
		default:
			req.Header.Set(headers[i], headers[i+1])
		}
		if headers[i+1] == "" {
			req.Header.Del(headers[i])
		}
	}
	recorder := httptest.NewRecorder()
	r.Handler().ServeHTTP(recorder, req)
	return recorder
}

// code returns the status and the error code of an answer.
func code(t testing.TB, res *httptest.ResponseRecorder) string {
	t.Helper()
	if res.Code < 400 {
		return fmt.Sprint(res.Code)
	}
	var body struct {
		Errors []struct{ Code, Message string }
	}
	if err := json.Unmarshal(res.Body.Bytes(), &body); err != nil || len(body.Errors) != 1 || body.Errors[0].Message == "" {
		t.Fatalf("the error %d is not as the specification says: %q", res.Code, res.Body)
	}
	return fmt.Sprint(res.Code, " ", body.Errors[0].Code)
}

func TestAnswers(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	blob := []byte("a blob")
	if err := r.PushBlob(t.Context(), "repo", string(FromBytes(blob)), bytes.NewReader(blob)); err != nil {
		t.Fatal(err)
	}
	manifest := image(t, "", nil, blob)
	digest, sha := string(FromBytes(manifest)), string(FromBytes(blob))
	large := append(bytes.Repeat([]byte(" "), MaxManifest), manifest...)
	nowhere := "sha256:" + strings.Repeat("0", 64)
	wrongSize := bytes.ReplaceAll(manifest, []byte(`"size":6`), []byte(`"size":7`))
	absent := bytes.ReplaceAll(manifest, []byte(sha), []byte(nowhere))
	long := strings.Repeat("a", 256)

	for _, c := range []struct {
		reason, method, target string
		body                   []byte
		headers                []string
		want                   string
	}{
		{"the base", "GET", "/v2/", nil, nil, "200"},
		{"the base without a slash", "GET", "/v2", nil, nil, "200"},
		{"a manifest", "PUT", "/v2/repo/manifests/tag", manifest, []string{"Content-Type", ociManifest}, "201"},
		{"parameters of a type count for nothing", "PUT", "/v2/repo/manifests/tag", manifest, []string{"Content-Type", ociManifest + "; charset=utf-8"}, "201"},
		{"a manifest names its type", "PUT", "/v2/repo/manifests/" + digest, manifest, nil, "201"},
		{"an escaped colon", "GET", "/v2/repo/manifests/" + strings.Replace(digest, ":", "%3A", 1), nil, nil, "200"},
		{"a known manifest", "GET", "/v2/repo/manifests/tag", nil, []string{"If-None-Match", `"` + digest + `"`}, "304"},
		{"another type", "PUT", "/v2/repo/manifests/tag", manifest, []string{"Content-Type", dockerManifest}, "400 MANIFEST_INVALID"},
		{"no manifest's type", "PUT", "/v2/repo/manifests/tag", []byte(`{}`), []string{"Content-Type", "text/html"}, "400 MANIFEST_INVALID"},
		{"no JSON", "PUT", "/v2/repo/manifests/tag", []byte(`{"a`), []string{"Content-Type", ociManifest}, "400 MANIFEST_INVALID"},
		{"no type", "PUT", "/v2/repo/manifests/tag", []byte(`{}`), nil, "400 MANIFEST_INVALID"},
		{"CVE-2021-41190", "PUT", "/v2/repo/manifests/tag", []byte(`{"config":{},"manifests":[]}`), []string{"Content-Type", ociIndex}, "400 MANIFEST_INVALID"},
		{"keys that differ in case", "PUT", "/v2/repo/manifests/tag", []byte(`{"manifests":[],"Manifests":[]}`), []string{"Content-Type", ociIndex}, "400 MANIFEST_INVALID"},
		{"a wrong size", "PUT", "/v2/repo/manifests/tag", wrongSize, []string{"Content-Type", ociManifest}, "400 MANIFEST_INVALID"},
		{"a blob that is not there", "PUT", "/v2/repo/manifests/tag", absent, []string{"Content-Type", ociManifest}, "404 MANIFEST_BLOB_UNKNOWN"},
		{"a blob of another repository", "PUT", "/v2/other/manifests/tag", manifest, []string{"Content-Type", ociManifest}, "404 MANIFEST_BLOB_UNKNOWN"},
		{"too large", "PUT", "/v2/repo/manifests/tag", large, []string{"Content-Type", ociManifest}, "413 SIZE_INVALID"},
		{"another digest", "PUT", "/v2/repo/manifests/" + nowhere, manifest, []string{"Content-Type", ociManifest}, "400 DIGEST_INVALID"},
		{"no tag", "PUT", "/v2/repo/manifests/.tag", manifest, []string{"Content-Type", ociManifest}, "400 MANIFEST_INVALID"},
		{"a long tag", "PUT", "/v2/repo/manifests/" + long[:129], manifest, []string{"Content-Type", ociManifest}, "400 MANIFEST_INVALID"},
		{"further tags", "PUT", "/v2/repo/manifests/" + digest + "?tag=a&tag=B", manifest, []string{"Content-Type", ociManifest}, "201"},
		{"further tags of a tag", "PUT", "/v2/repo/manifests/tag?tag=a", manifest, []string{"Content-Type", ociManifest}, "400 MANIFEST_INVALID"},
		{"a further tag that is none", "PUT", "/v2/repo/manifests/" + digest + "?tag=../a", manifest, []string{"Content-Type", ociManifest}, "400 MANIFEST_INVALID"},
		{"no such manifest", "GET", "/v2/repo/manifests/none", nil, nil, "404 MANIFEST_UNKNOWN"},
		{"a blob in use", "DELETE", "/v2/repo/blobs/" + sha, nil, nil, "405 UNSUPPORTED"},
		{"no such blob", "GET", "/v2/repo/blobs/" + nowhere, nil, nil, "404 BLOB_UNKNOWN"},
		{"no such blob in this repository", "GET", "/v2/other/blobs/" + sha, nil, nil, "404 BLOB_UNKNOWN"},
		{"no digest", "GET", "/v2/repo/blobs/latest", nil, nil, "400 DIGEST_INVALID"},
		{"an unknown hash", "GET", "/v2/repo/blobs/md5:" + strings.Repeat("0", 32), nil, nil, "400 DIGEST_INVALID"},
		{"capitals in a digest", "GET", "/v2/repo/blobs/" + strings.ToUpper(sha), nil, nil, "400 DIGEST_INVALID"},
		{"a path as a digest", "GET", "/v2/repo/blobs/sha256:..", nil, nil, "400 DIGEST_INVALID"},
		{"a range", "GET", "/v2/repo/blobs/" + sha, nil, []string{"Range", "bytes=2-"}, "206"},
		{"no such repository", "GET", "/v2/none/tags/list", nil, nil, "404 NAME_UNKNOWN"},
		{"referrers of an unknown repository", "GET", "/v2/none/referrers/" + nowhere, nil, nil, "200"},
		{"referrers of no digest", "GET", "/v2/repo/referrers/tag", nil, nil, "400 DIGEST_INVALID"},
		{"no number", "GET", "/v2/repo/tags/list?n=-1", nil, nil, "400 UNSUPPORTED"},
		{"no such upload", "PATCH", "/v2/repo/blobs/uploads/01234567-89ab-cdef-0123-456789abcdef", blob, nil, "404 BLOB_UPLOAD_UNKNOWN"},
		{"a path as an upload", "PATCH", "/v2/repo/blobs/uploads/..", blob, nil, "404 BLOB_UPLOAD_UNKNOWN"},
		{"a single POST", "POST", "/v2/repo/blobs/uploads/?digest=" + sha, blob, nil, "201"},
		{"a single POST of something else", "POST", "/v2/repo/blobs/uploads/?digest=" + nowhere, blob, nil, "400 DIGEST_INVALID"},
		{"an upload with an unknown hash", "POST", "/v2/repo/blobs/uploads/?digest-algorithm=md5", nil, nil, "400 DIGEST_INVALID"},
		{"a mount of what is not there", "POST", "/v2/repo/blobs/uploads/?mount=" + nowhere + "&from=other", nil, nil, "202"},
		{"a mount from a repository without it", "POST", "/v2/third/blobs/uploads/?from=other&mount=" + sha, nil, nil, "202"},
		{"a mount", "POST", "/v2/third/blobs/uploads/?from=repo&mount=" + sha, nil, nil, "201"},
		{"a mount from a path", "POST", "/v2/third/blobs/uploads/?from=../../repo&mount=" + sha, nil, nil, "400 NAME_INVALID"},
		{"capitals", "GET", "/v2/Repo/tags/list", nil, nil, "400 NAME_INVALID"},
		{"dots", "GET", "/v2/../tags/list", nil, nil, "400 NAME_INVALID"},
		{"dots within", "GET", "/v2/a/../b/tags/list", nil, nil, "400 NAME_INVALID"},
		{"escaped dots", "GET", "/v2/%2e%2e/tags/list", nil, nil, "404 UNSUPPORTED"},
		{"an escaped slash", "GET", "/v2/a%2fb/tags/list", nil, nil, "404 UNSUPPORTED"},
		{"an escaped NUL", "GET", "/v2/a%00/tags/list", nil, nil, "404 UNSUPPORTED"},
		{"own directories", "GET", "/v2/repo/_tags/tags/list", nil, nil, "400 NAME_INVALID"},
		{"a long name", "GET", "/v2/" + long + "/tags/list", nil, nil, "400 NAME_INVALID"},
		{"components like endpoints", "GET", "/v2/manifests/tags/list/tags/list", nil, nil, "404 NAME_UNKNOWN"},
		{"a name like uploads", "GET", "/v2/a/blobs/uploads/manifests/x", nil, nil, "404 MANIFEST_UNKNOWN"},
		{"no endpoint", "GET", "/v2/repo/else/x", nil, nil, "404 UNSUPPORTED"},
		{"outside", "GET", "/v1/", nil, nil, "404 UNSUPPORTED"},
		{"no such method", "POST", "/v2/repo/manifests/tag", nil, nil, "405 UNSUPPORTED"},

		{"no credentials to read", "GET", "/v2/repo/tags/list", nil, []string{"Authorization", ""}, "200"},
		{"no credentials to write", "DELETE", "/v2/repo/manifests/none", nil, []string{"Authorization", ""}, "401 UNAUTHORIZED"},
		{"no credentials at the base", "GET", "/v2/", nil, []string{"Authorization", ""}, "401 UNAUTHORIZED"},
		{"empty credentials", "GET", "/v2/repo/tags/list", nil, []string{"Authorization", "Basic Og=="}, "200"},
		{"wrong credentials", "GET", "/v2/repo/tags/list", nil, []string{"Authorization", "Bearer wrong"}, "401 UNAUTHORIZED"},
		{"credentials of another kind", "GET", "/v2/repo/tags/list", nil, []string{"Authorization", "Digest x"}, "401 UNAUTHORIZED"},
		{"empty credentials to write", "DELETE", "/v2/repo/manifests/none", nil, []string{"Authorization", "Basic Og=="}, "401 UNAUTHORIZED"},
		{"a bearer", "DELETE", "/v2/repo/manifests/none", nil, []string{"Authorization", "Bearer " + testToken}, "404 MANIFEST_UNKNOWN"},
		{"a rebound name", "GET", "/v2/", nil, []string{"Host", "evil.example:5000"}, "403 DENIED"},
		{"no name", "GET", "/v2/", nil, []string{"Host", ""}, "403 DENIED"},
		{"another address", "GET", "/v2/", nil, []string{"Host", "192.0.2.1:5000"}, "403 DENIED"},
		{"a name that ends well", "GET", "/v2/", nil, []string{"Host", "evil-localhost"}, "403 DENIED"},
		{"localhost", "GET", "/v2/", nil, []string{"Host", "LocalHost:5000"}, "200"},
		{"below localhost", "GET", "/v2/", nil, []string{"Host", "registry.localhost"}, "200"},
		{"IPv6", "GET", "/v2/", nil, []string{"Host", "[::1]:5000"}, "200"},
		{"another site", "GET", "/v2/", nil, []string{"Sec-Fetch-Site", "cross-site"}, "403 DENIED"},
		{"another port", "GET", "/v2/", nil, []string{"Sec-Fetch-Site", "same-site"}, "403 DENIED"},
		{"the user", "GET", "/v2/", nil, []string{"Sec-Fetch-Site", "none"}, "200"},
		{"another origin", "POST", "/v2/repo/blobs/uploads/", nil, []string{"Origin", "http://localhost:3000"}, "403 DENIED"},
		{"a hidden origin", "POST", "/v2/repo/blobs/uploads/", nil, []string{"Origin", "null"}, "403 DENIED"},
		{"the same origin", "POST", "/v2/repo/blobs/uploads/", nil, []string{"Origin", "http://127.0.0.1:5000"}, "202"},
	} {
		res := request(r, c.method, c.target, c.body, c.headers...)
		if got := code(t, res); got != c.want {
			t.Errorf("%s: %s %.100s: %s, want %s: %s", c.reason, c.method, c.target, got, c.want, res.Body)
		}
		if res.Code == http.StatusUnauthorized && !strings.HasPrefix(res.Header().Get("WWW-Authenticate"), "Basic ") {
			t.Errorf("%s: no challenge", c.reason)
		}
	}
	res := request(r, "GET", "/v2/repo/manifests/B", nil)
	if diff := cmp.Diff(string(manifest), res.Body.String()); diff != "" {
		t.Error(diff)
	}
	if got := request(r, "GET", "/v2/repo/blobs/"+sha, nil, "Range", "bytes=2-").Body.String(); got != "blob" {
		t.Errorf("the range is %q", got)
	}
}

func TestNobodyWithoutPolicy(t *testing.T) {
	t.Parallel()
	r := openTest(t, func(c *Config) { c.Authorize = nil })
	for _, target := range []string{"/v2/", "/v2/_catalog", "/v2/a/tags/list", "/elsewhere"} {
		if got := code(t, request(r, "GET", target, nil)); !strings.HasPrefix(got, "40") || got[:3] == "404" {
			t.Errorf("%s: %s", target, got)
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	blob := []byte("blob")
	if err := r.PushBlob(t.Context(), "repo", string(FromBytes(blob)), bytes.NewReader(blob)); err != nil {
		t.Fatal(err)
	}
	want := []string{"A", "B", "_", "a", "a-b", "b", "z.9"}
	if _, _, err := r.PushManifest("repo", Push{Reference: "a", Tags: want, Data: image(t, "", nil, blob)}); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < len(want)+2; n++ {
		var got []string
		next := fmt.Sprintf("/v2/repo/tags/list?n=%d", n)
		for next != "" {
			res := request(r, "GET", next, nil)
			var list struct{ Tags []string }
			if err := json.Unmarshal(res.Body.Bytes(), &list); err != nil || len(list.Tags) > n {
				t.Fatalf("%s: %v: %s", next, err, res.Body)
			}
			got = append(got, list.Tags...)
			next, _, _ = strings.Cut(strings.TrimPrefix(res.Header().Get("Link"), "<"), ">")
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("in pages of %d: %s", n, diff)
		}
	}
	if res := request(r, "GET", "/v2/repo/tags/list?n=0", nil); res.Header().Get("Link") != "" || !strings.Contains(res.Body.String(), `"tags":[]`) {
		t.Errorf("no tags: %s", res.Body)
	}
}

// TestReferrerPages has more annotations than one page may have.
func TestReferrerPages(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	blob := []byte("blob")
	if err := r.PushBlob(t.Context(), "repo", string(FromBytes(blob)), bytes.NewReader(blob)); err != nil {
		t.Fatal(err)
	}
	subject := Descriptor{MediaType: ociManifest, Digest: FromBytes([]byte("not there")), Size: 1}
	want := map[Digest]bool{}
	for i := range 4 {
		d, of, err := r.PushManifest("repo", Push{Reference: fmt.Sprint("t", i), Data: image(t, strings.Repeat(fmt.Sprint(i), 3<<19), &subject, blob)})
		if err != nil || of != subject.Digest {
			t.Fatal(err, of)
		}
		want[d.Digest] = true
	}
	pages := 0
	next := "/v2/repo/referrers/" + string(subject.Digest) + "?artifactType=" + url.QueryEscape("application/vnd.oci.image.layer.v1.tar")
	for ; next != ""; pages++ {
		res := request(r, "GET", next, nil)
		if res.Body.Len() > MaxManifest || res.Header().Get("OCI-Filters-Applied") != "artifactType" {
			t.Errorf("a page of %d bytes: %v", res.Body.Len(), res.Header())
		}
		var index struct{ Manifests []Descriptor }
		if err := json.Unmarshal(res.Body.Bytes(), &index); err != nil || len(index.Manifests) == 0 {
			t.Fatal(err, res.Code)
		}
		for _, d := range index.Manifests {
			if !want[d.Digest] {
				t.Errorf("%s is listed twice, or does not refer to this", d.Digest)
			}
			delete(want, d.Digest)
		}
		next, _, _ = strings.Cut(strings.TrimPrefix(res.Header().Get("Link"), "<"), ">")
	}
	if len(want) > 0 || pages < 2 {
		t.Errorf("%d referrers are missing from %d pages", len(want), pages)
	}
}

// TestChunks pushes a blob in pieces, with all that may go wrong in between.
func TestChunks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func() *Registry {
		t.Helper()
		r, err := Open(Config{Dir: dir, Authorize: TokenPolicy(testToken, false)})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := open()
	data := bytes.Repeat([]byte("0123456789"), 10)
	digest := fmt.Sprintf("sha512:%x", sha512.Sum512(data)) // the algorithm is told at the end
	at := request(r, "POST", "/v2/repo/blobs/uploads/", nil).Header().Get("Location")
	send := func(method, query string, from, to int, want, wantRange string) {
		t.Helper()
		var headers []string
		var body []byte
		if to > from {
			body = data[from:to]
			headers = []string{"Content-Range", fmt.Sprintf("%d-%d", from, to-1)}
		}
		res := request(r, method, at+query, body, headers...)
		if got := code(t, res); got != want || res.Header().Get("Range") != wantRange {
			t.Errorf("%s of %d-%d: %s %s, want %s %s: %s", method, from, to, got, res.Header().Get("Range"), want, wantRange, res.Body)
		}
	}
	send("GET", "", 0, 0, "204", "0-0")
	send("PATCH", "", 10, 20, "416 BLOB_UPLOAD_INVALID", "0-0")
	send("PATCH", "", 0, 20, "202", "0-19")
	send("PATCH", "", 0, 20, "416 BLOB_UPLOAD_INVALID", "0-19")
	if res := request(r, "PATCH", at, data[:5], "Content-Range", "20-29"); code(t, res) != "400 SIZE_INVALID" {
		t.Error(res.Code, res.Body)
	}
	if res := request(r, "PATCH", at, data[:5], "Content-Range", "x"); code(t, res) != "416 BLOB_UPLOAD_INVALID" {
		t.Error(res.Code, res.Body)
	}
	if res := request(r, "PATCH", strings.Replace(at, "repo", "other", 1), data[:5]); code(t, res) != "404 BLOB_UPLOAD_UNKNOWN" {
		t.Error(res.Code, res.Body)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	r = open()
	send("GET", "", 0, 0, "204", "0-19")
	send("PATCH", "", 20, 60, "202", "0-59")
	if got := r.Usage().Bytes; got != 60 {
		t.Errorf("%d bytes are in use", got)
	}
	send("PUT", "?digest=sha256:1", 60, 100, "400 DIGEST_INVALID", "")
	send("PUT", "?digest="+digest, 70, 100, "416 BLOB_UPLOAD_INVALID", "0-59")
	send("PUT", "?digest="+digest, 60, 100, "201", "")
	send("GET", "", 0, 0, "404 BLOB_UPLOAD_UNKNOWN", "")
	if got := request(r, "GET", "/v2/repo/blobs/"+digest, nil); !bytes.Equal(got.Body.Bytes(), data) {
		t.Errorf("pulled %q", got.Body)
	}
	if got := r.Usage().Bytes; got != 100 {
		t.Errorf("%d bytes are in use", got)
	}
	at = request(r, "POST", "/v2/repo/blobs/uploads/", nil).Header().Get("Location")
	send("PATCH", "", 0, 20, "202", "0-19")
	send("DELETE", "", 0, 0, "204", "")
	send("DELETE", "", 0, 0, "404 BLOB_UPLOAD_UNKNOWN", "")
	if names := must(os.ReadDir(filepath.Join(dir, uploadsDir))); len(names) > 0 {
		t.Errorf("uploads are left: %v", names)
	}
	if got := r.Usage().Bytes; got != 100 {
		t.Errorf("%d bytes are in use", got)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestCutConnection sends half of a body. What has arrived is kept.
func TestCutConnection(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	at := request(r, "POST", "/v2/repo/blobs/uploads/", nil).Header().Get("Location")
	req := httptest.NewRequest("PATCH", at, io.MultiReader(strings.NewReader("half"), brokenReader{}))
	req.Host = "localhost"
	req.SetBasicAuth("a", testToken)
	res := httptest.NewRecorder()
	r.Handler().ServeHTTP(res, req)
	if got := code(t, res); got != "400 BLOB_UPLOAD_INVALID" {
		t.Error(got)
	}
	if got := request(r, "GET", at, nil).Header().Get("Range"); got != "0-3" {
		t.Errorf("the range is %s", got)
	}
	whole := "half and half"
	if got := code(t, request(r, "PUT", at+"?digest="+string(FromBytes([]byte(whole))), []byte(whole[4:]))); got != "201" {
		t.Error(got)
	}
}

type brokenReader struct{}

func (brokenReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

func TestBudget(t *testing.T) {
	t.Parallel()
	r := openTest(t, func(c *Config) { c.MaxBytes = 1000 })
	push := func(n int, headers ...string) string {
		data := bytes.Repeat([]byte{byte(n)}, n)
		return code(t, request(r, "POST", "/v2/repo/blobs/uploads/?digest="+string(FromBytes(data)), data, headers...))
	}
	if got := push(600); got != "201" {
		t.Error(got)
	}
	if got := push(500); got != "403 DENIED" {
		t.Error(got)
	}
	if got := r.Usage(); got != (Usage{600, 1000}) {
		t.Errorf("%+v", got)
	}
	// The same content again needs room while it comes.
	if got := push(400); got != "201" {
		t.Error(got)
	}
	if got := code(t, request(r, "POST", "/v2/repo/blobs/uploads/", nil)); got != "403 DENIED" {
		t.Error(got)
	}
	if _, err := r.Collect(t.Context(), Options{Grace: 1}); err != nil {
		t.Fatal(err)
	}
	if got := push(700); got != "201" || r.Usage().Bytes != 700 {
		t.Error(got, r.Usage())
	}
}

// TestLinks puts symbolic links into the directory that lead out of it.
func TestLinks(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	data := []byte("secret")
	if err := os.WriteFile(secret, data, 0o600); err != nil {
		t.Fatal(err)
	}
	r := openTest(t, func(c *Config) { c.Log = nil })
	digest := FromBytes(data)
	if err := r.PushBlob(t.Context(), "repo", string(digest), bytes.NewReader(data)); err != nil {
		t.Fatal(err)
	}
	content := filepath.Join(r.config.Dir, filepath.FromSlash(contentFile(digest)))
	if err := os.Remove(content); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(secret, content); err != nil {
		t.Fatal(err)
	}
	if res := request(r, "GET", "/v2/repo/blobs/"+string(digest), nil); res.Code == http.StatusOK {
		t.Error("a link was followed out of the directory")
	}
	outside := t.TempDir()
	if err := os.Symlink(outside, filepath.Join(r.config.Dir, repositoriesDir, "linked")); err != nil {
		t.Fatal(err)
	}
	if got := code(t, request(r, "POST", "/v2/linked/blobs/uploads/?digest="+string(FromBytes(nil)), nil)); got == "201" {
		t.Error("a push went through a link")
	}
	if names := must(os.ReadDir(outside)); len(names) > 0 {
		t.Errorf("outside of the directory: %v", names)
	}
}

func TestOneOwner(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	if _, err := Open(Config{Dir: r.config.Dir}); err == nil || !strings.Contains(err.Error(), "another process") {
		t.Errorf("opened twice: %v", err)
	}
}

func TestEnsureToken(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "token")
	first, err := EnsureToken(file)
	if err != nil {
		t.Fatal(err)
	}
	if again, err := EnsureToken(file); err != nil || again != first {
		t.Errorf("%q, %v; want %q", again, err, first)
	}
	if mode := must(os.Stat(file)).Mode(); mode != 0o600 {
		t.Error(mode)
	}
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureToken(file); err == nil {
		t.Error("a token that others can read was taken")
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := errors.Join(os.Chmod(file, 0o600), os.Symlink(file, link)); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureToken(link); err == nil {
		t.Error("a link was followed")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := EnsureToken(file); err == nil {
		t.Error("an empty token was taken")
	}
}

func TestLoopbackOnly(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	listener := must(net.Listen("tcp", ":0"))
	if err := r.Serve(t.Context(), listener); err == nil {
		t.Error("served every address")
	}
}
