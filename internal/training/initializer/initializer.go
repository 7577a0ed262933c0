// SPDX-License-Identifier: Apache-2.0

package initializer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// Config specifies what to fetch, and how.
type Config struct {
	// URI is where: file://, hf://, s3:// or oci://. Required.
	URI string
	// Directory is where files are put. Required.
	Directory string
	// Ignore are shell patterns of files that are left out, by path and by name.
	Ignore []string
	// Model says that hf:// names a model, and not data.
	Model bool
	// AccessToken is for hf://.
	AccessToken string
	// Endpoint, AccessKeyID, SecretAccessKey, SessionToken and Region are for
	// s3://. The endpoint is a URL; default that of Amazon. For hf:// it is the
	// URL of the hub. Without a key, requests are not signed.
	Endpoint, AccessKeyID, SecretAccessKey, SessionToken, Region string
	// Insecure has oci:// use HTTP without TLS.
	Insecure bool
	// Client makes requests. Default http.DefaultClient.
	Client *http.Client
	// Log is called for each file. May be nil.
	Log func(format string, args ...any)
}

// weights are what Kubeflow Trainer leaves out of models: files of other formats
// than safetensors.
const weights = "*.msgpack,*.h5,*.bin,*.pt,*.pth"

// FromEnvironment reads a Config from variables, which are Kubeflow Trainer's:
// STORAGE_URI, IGNORE_PATTERNS, ACCESS_TOKEN or HF_TOKEN, ENDPOINT or HF_ENDPOINT,
// ACCESS_KEY_ID, SECRET_ACCESS_KEY, SESSION_TOKEN, REGION.
func FromEnvironment(getenv func(string) string, model bool) Config {
	first := func(names ...string) string {
		for _, name := range names {
			if v := getenv(name); v != "" {
				return v
			}
		}
		return ""
	}
	c := Config{
		URI: getenv("STORAGE_URI"), Model: model, Directory: "/workspace/dataset",
		AccessToken: first("ACCESS_TOKEN", "HF_TOKEN"),
		Endpoint:    getenv("ENDPOINT"),
		AccessKeyID: getenv("ACCESS_KEY_ID"), SecretAccessKey: getenv("SECRET_ACCESS_KEY"), SessionToken: getenv("SESSION_TOKEN"),
		Region:   getenv("REGION"),
		Insecure: getenv("INSECURE") == "true",
	}
	if strings.HasPrefix(c.URI, "hf://") {
		c.Endpoint = first("HF_ENDPOINT", "ENDPOINT")
	}
	patterns := getenv("IGNORE_PATTERNS")
	if model {
		c.Directory = "/workspace/model"
		if patterns == "" {
			patterns = weights
		}
	}
	for p := range strings.SplitSeq(patterns, ",") {
		if p = strings.TrimSpace(p); p != "" {
			c.Ignore = append(c.Ignore, p)
		}
	}
	return c
}

// Fetch fetches all files and returns how many there are. No files are an error:
// a training without data is of no use.
func Fetch(ctx context.Context, c Config) (int, error) {
	if c.Client == nil {
		c.Client = http.DefaultClient
	}
	if c.Log == nil {
		c.Log = func(string, ...any) {}
	}
	if c.URI == "" {
		return 0, errors.New("cannot fetch: STORAGE_URI is empty; set storageUri in the TrainJob or its runtime")
	}
	from, err := url.Parse(c.URI)
	if err != nil {
		return 0, fmt.Errorf("cannot fetch %s: %w", c.URI, err)
	}
	if err := os.MkdirAll(c.Directory, 0o755); err != nil {
		return 0, fmt.Errorf("cannot fetch %s: %w", c.URI, err)
	}
	sources := map[string]func(context.Context, Config, *url.URL) (int, error){"file": copyFiles, "hf": fetchHub, "s3": fetchBucket, "oci": fetchImage}
	fetch, ok := sources[from.Scheme]
	if !ok {
		return 0, fmt.Errorf("cannot fetch %s: the scheme must be one of file, hf, s3 and oci", c.URI)
	}
	n, err := fetch(ctx, c, from)
	if err != nil {
		return n, fmt.Errorf("cannot fetch %s: %w", c.URI, err)
	}
	if n == 0 {
		return 0, fmt.Errorf("cannot fetch %s: there are no files, or the ignore patterns exclude all of them", c.URI)
	}
	return n, nil
}

// ignores reports whether a file is left out.
func (c *Config) ignores(name string) bool {
	for _, p := range c.Ignore {
		for _, n := range []string{name, path.Base(name)} {
			if ok, err := path.Match(p, n); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// save writes a file of size bytes, unless it exists; a negative size is
// unknown. The name is untrusted: it must not escape the directory.
func (c *Config) save(name string, size int64, open func() (io.ReadCloser, error)) error {
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return fmt.Errorf("the name %q escapes the directory", name)
	}
	target := filepath.Join(c.Directory, filepath.FromSlash(name))
	if have, err := os.Stat(target); err == nil && size >= 0 && have.Size() == size {
		c.Log("%s already exists", name)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	in, err := open()
	if err != nil {
		return err
	}
	defer in.Close()
	part, err := os.CreateTemp(filepath.Dir(target), ".part-*")
	if err != nil {
		return err
	}
	defer os.Remove(part.Name()) // gone when it has its name
	n, err := io.Copy(part, in)
	if err = errors.Join(err, part.Chmod(0o644), part.Close()); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if size >= 0 && n != size {
		return fmt.Errorf("%s has %d bytes, want %d", name, n, size)
	}
	c.Log("%s: %d bytes", name, n)
	return os.Rename(part.Name(), target)
}

// attempts is how often a request is made that the server or the network failed,
// after waits that double from a second.
const attempts = 4

// download saves the content at an address as a file of a size, -1 if unknown.
// prepare adds credentials to each request.
func (c *Config) download(ctx context.Context, name string, size int64, address string, prepare func(*http.Request)) error {
	return c.save(name, size, func() (io.ReadCloser, error) {
		resp, err := c.get(ctx, address, prepare)
		if err != nil {
			return nil, err
		}
		return resp.Body, nil
	})
}

// get makes a request; prepare may add to it.
func (c *Config) get(ctx context.Context, address string, prepare func(*http.Request)) (*http.Response, error) {
	var failed error
	for i := range attempts {
		if i > 0 {
			select {
			case <-ctx.Done():
				return nil, errors.Join(failed, context.Cause(ctx))
			case <-time.After(time.Second << (i - 1)):
			}
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
		if err != nil {
			return nil, err
		}
		prepare(req)
		resp, err := c.Client.Do(req)
		switch {
		case err != nil:
			failed = err
		case resp.StatusCode == http.StatusOK:
			return resp, nil
		default:
			text, _ := io.ReadAll(io.LimitReader(resp.Body, 512)) // a hint at most
			resp.Body.Close()
			failed = fmt.Errorf("GET %s: %s %s", req.URL.Redacted(), resp.Status, strings.TrimSpace(string(text)))
			if resp.StatusCode < 500 && resp.StatusCode != http.StatusTooManyRequests {
				return nil, failed
			}
		}
		if ctx.Err() != nil {
			return nil, failed
		}
	}
	return nil, failed
}

// copyFiles copies a file, or a directory with all in it.
func copyFiles(_ context.Context, c Config, from *url.URL) (int, error) {
	if from.Host != "" && from.Host != "localhost" {
		return 0, fmt.Errorf("the path must be absolute: file:///…, and not on the host %s", from.Host)
	}
	root := filepath.FromSlash(from.Path)
	n := 0
	err := filepath.WalkDir(root, func(file string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(root, file)
		if err != nil {
			return err
		}
		if name == "." {
			name = filepath.Base(root)
		}
		name = filepath.ToSlash(name)
		info, err := os.Stat(file)
		if err != nil || info.IsDir() || c.ignores(name) {
			return err
		}
		n++
		return c.save(name, info.Size(), func() (io.ReadCloser, error) { return os.Open(file) })
	})
	return n, err
}
