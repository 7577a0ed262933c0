// SPDX-License-Identifier: Apache-2.0

package initializer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/crane"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

// fetched fetches into a new directory and returns what is in it.
func fetched(t *testing.T, c Config) (map[string]string, error) {
	t.Helper()
	if c.Directory == "" {
		c.Directory = filepath.Join(t.TempDir(), "in", "here")
	}
	n, err := Fetch(t.Context(), c)
	files := map[string]string{}
	walk := filepath.WalkDir(c.Directory, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil // nothing was written
		}
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(c.Directory, path)
		files[name] = string(text)
		return err
	})
	if walk != nil {
		t.Fatal(walk)
	}
	if err == nil && n != len(files) {
		t.Errorf("Fetch says %d files, there are %d", n, len(files))
	}
	return files, err
}

func TestFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"a.csv": "1,2", "sub/b.csv": "3", "sub/c.bin": "no"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := fetched(t, Config{URI: "file://" + dir, Ignore: []string{"*.bin"}})
	if diff := cmp.Diff(map[string]string{"a.csv": "1,2", "sub/b.csv": "3"}, got); diff != "" || err != nil {
		t.Errorf("a directory: %v\n%s", err, diff)
	}
	got, err = fetched(t, Config{URI: "file://" + dir + "/a.csv"})
	if diff := cmp.Diff(map[string]string{"a.csv": "1,2"}, got); diff != "" || err != nil {
		t.Errorf("a file: %v\n%s", err, diff)
	}
}

// hubServer is a hub with one data set, in two pages, which fails at first.
func hubServer(t *testing.T, downloads *atomic.Int32) *httptest.Server {
	files := map[string]string{"README.md": "read", "data/train 1.csv": "1,2,3", "weights.bin": "no"}
	var failed atomic.Bool
	var s *httptest.Server
	s = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer secret" {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if strings.HasPrefix(r.URL.Path, "/api/datasets/acme/cars/tree/main/") {
			if failed.CompareAndSwap(false, true) {
				http.Error(w, "later", http.StatusServiceUnavailable)
				return
			}
			list := []hubFile{{"directory", "data", 0}, {"file", "data/train 1.csv", 5}}
			if r.URL.Query().Get("cursor") == "" {
				w.Header().Set("Link", fmt.Sprintf(`<%s/api/datasets/acme/cars/tree/main/?cursor=2>; rel="next"`, s.URL))
				list = []hubFile{{"file", "README.md", 4}, {"file", "weights.bin", 2}}
			}
			_ = json.NewEncoder(w).Encode(list)
			return
		}
		text, ok := files[strings.TrimPrefix(r.URL.Path, "/datasets/acme/cars/resolve/main/")]
		if !ok {
			http.NotFound(w, r)
			return
		}
		downloads.Add(1)
		_, _ = io.WriteString(w, text)
	}))
	t.Cleanup(s.Close)
	return s
}

func TestHub(t *testing.T) {
	t.Parallel()
	var downloads atomic.Int32
	s := hubServer(t, &downloads)
	c := Config{URI: "hf://acme/cars", Endpoint: s.URL, AccessToken: "secret", Ignore: []string{"*.bin"}, Directory: t.TempDir()}
	want := map[string]string{"README.md": "read", "data/train 1.csv": "1,2,3"}
	for range 2 {
		if got, err := fetched(t, c); err != nil || !cmp.Equal(want, got) {
			t.Fatalf("%v\n%s", err, cmp.Diff(want, got))
		}
	}
	if n := downloads.Load(); n != 2 {
		t.Errorf("%d downloads of 2 files, the second time none is needed", n)
	}
	c.AccessToken, c.Directory = "", t.TempDir()
	if _, err := fetched(t, c); err == nil || !strings.Contains(err.Error(), "401 Unauthorized who are you?") {
		t.Errorf("without a token: %v", err)
	}
}

func TestBucket(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential=key/") {
			http.Error(w, "not signed", http.StatusForbidden)
			return
		}
		switch {
		case r.URL.Path == "/bucket/data/a b+c.csv":
			_, _ = io.WriteString(w, "12345")
		case r.URL.Path == "/bucket/data/deep/d.csv":
			_, _ = io.WriteString(w, "67")
		case r.URL.Query().Get("continuation-token") == "more":
			_, _ = io.WriteString(w, `<ListBucketResult><Contents><Key>data/deep/d.csv</Key><Size>2</Size></Contents></ListBucketResult>`)
		case r.URL.Query().Get("prefix") == "data":
			_, _ = io.WriteString(w, `<ListBucketResult><IsTruncated>true</IsTruncated><NextContinuationToken>more</NextContinuationToken>
				<Contents><Key>data/</Key><Size>0</Size></Contents><Contents><Key>data/a b+c.csv</Key><Size>5</Size></Contents></ListBucketResult>`)
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	got, err := fetched(t, Config{URI: "s3://bucket/data", Endpoint: s.URL, AccessKeyID: "key", SecretAccessKey: "s"})
	if diff := cmp.Diff(map[string]string{"a b+c.csv": "12345", "deep/d.csv": "67"}, got); diff != "" || err != nil {
		t.Errorf("%v\n%s", err, diff)
	}
}

// TestSignature holds signatures to the examples in Amazon's documentation of
// Signature Version 4 for S3.
func TestSignature(t *testing.T) {
	t.Parallel()
	c := Config{AccessKeyID: "AKIAIOSFODNN7EXAMPLE", SecretAccessKey: "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY", Region: "us-east-1"}
	for _, example := range []struct{ address, byteRange, want string }{
		{"https://examplebucket.s3.amazonaws.com/test.txt", "bytes=0-9", "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
		{"https://examplebucket.s3.amazonaws.com/?lifecycle", "", "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
		{"https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J", "", "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
	} {
		r := httptest.NewRequest(http.MethodGet, example.address, nil)
		if example.byteRange != "" {
			r.Header.Set("Range", example.byteRange)
		}
		c.sign(r, time.Date(2013, 5, 24, 0, 0, 0, 0, time.UTC))
		if got := r.Header.Get("Authorization"); !strings.HasSuffix(got, "Signature="+example.want) {
			t.Errorf("%s: %s, want the signature %s", example.address, got, example.want)
		}
	}
}

func TestImage(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer s.Close()
	host := strings.TrimPrefix(s.URL, "http://")
	files, err := crane.Image(map[string][]byte{"data/a.csv": []byte("1"), "b.csv": []byte("2")})
	if err != nil {
		t.Fatal(err)
	}
	artifact, err := mutate.Append(empty.Image, mutate.Addendum{
		Layer:       static.NewLayer([]byte("weights"), types.MediaType("application/octet-stream")),
		Annotations: map[string]string{title: "model.safetensors"},
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		image v1.Image
		want  map[string]string
	}{
		"image":    {files, map[string]string{"data/a.csv": "1", "b.csv": "2"}},
		"artifact": {artifact, map[string]string{"model.safetensors": "weights"}},
	} {
		if err := crane.Push(c.image, host+"/acme/"+name+":v1", crane.Insecure); err != nil {
			t.Fatal(err)
		}
		got, err := fetched(t, Config{URI: "oci://" + host + "/acme/" + name + ":v1", Insecure: true})
		if diff := cmp.Diff(c.want, got); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

func TestRefused(t *testing.T) {
	t.Parallel()
	evil := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Has("recursive") {
			_ = json.NewEncoder(w).Encode([]hubFile{{"file", "../../evil", 1}})
		}
	}))
	defer evil.Close()
	for _, c := range []struct{ reason, uri, want string }{
		{"nothing to fetch", "", "STORAGE_URI is empty"},
		{"a scheme that is not known", "gs://bucket/x", "must be one of file, hf, s3 and oci"},
		{"a directory that is not there", "file:///nonexistent/x", "no such file"},
		{"an empty directory", "file://" + t.TempDir(), "there are no files"},
		{"another machine's file", "file://host/x", "must be absolute"},
		{"no repository", "hf://acme", "want hf://OWNER/NAME"},
		{"a name that leads elsewhere", "hf://acme/evil", "escapes the directory"},
	} {
		dir := t.TempDir()
		_, err := fetched(t, Config{URI: c.uri, Endpoint: evil.URL, Directory: filepath.Join(dir, "in", "here")})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q in it", c.reason, err, c.want)
		}
		if _, err := os.Stat(filepath.Join(dir, "evil")); err == nil {
			t.Errorf("%s: a file was written outside of the directory", c.reason)
		}
	}
}

func TestFromEnvironment(t *testing.T) {
	t.Parallel()
	env := map[string]string{"STORAGE_URI": "hf://a/b", "HF_TOKEN": "t", "IGNORE_PATTERNS": "*.md, *.txt,"}
	got := FromEnvironment(func(name string) string { return env[name] }, false)
	want := Config{URI: "hf://a/b", AccessToken: "t", Ignore: []string{"*.md", "*.txt"}, Directory: "/workspace/dataset"}
	if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b func(string, ...any)) bool { return true })); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if model := FromEnvironment(func(string) string { return "" }, true); len(model.Ignore) != 5 || model.Directory != "/workspace/model" {
		t.Errorf("a model: %+v", model)
	}
}
