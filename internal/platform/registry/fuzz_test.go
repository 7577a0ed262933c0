// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzPath checks that no path leads out of a repository's directory.
func FuzzPath(f *testing.F) {
	for _, seed := range []string{
		"/v2/", "/v2/_catalog", "/v2/a/b/manifests/latest", "/v2/a/blobs/uploads/", "/v2/a/blobs/uploads/x", "/v2/a/tags/list",
		"/v2/../../etc/passwd", "/v2/a%2f..%2f/manifests/%2e%2e", "/v2/a//b/blobs/sha256:..", "/v2/a/referrers/sha256%3A00", "/v2/a\x00/manifests/b", "/v2/blobs/uploads/",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		u, err := url.ParseRequestURI(text)
		if err != nil {
			return
		}
		found, err := parsePath(u)
		if err != nil {
			return
		}
		if found.kind == base || found.kind == catalog {
			return
		}
		if !validName(found.repo) || strings.Contains(found.arg, "/") {
			t.Fatalf("%q is %+v", text, found)
		}
		dir := path.Join(repositoriesDir, found.repo)
		for _, part := range strings.Split(found.repo, "/") {
			if !filepath.IsLocal(part) || part[0] == '.' || part[0] == '_' {
				t.Fatalf("%q has the component %q", text, part)
			}
		}
		if d, err := ParseDigest(found.arg); err == nil {
			for _, file := range []string{blobLink(found.repo, d), manifestLink(found.repo, d), referrersDir(found.repo, d)} {
				if !strings.HasPrefix(file, dir+"/_") {
					t.Fatalf("%q is the file %q", text, file)
				}
			}
		}
		if checkTag(found.arg) == nil {
			if file := tagLink(found.repo, found.arg); path.Dir(file) != dir+"/_tags" {
				t.Fatalf("%q is the file %q", text, file)
			}
		}
	})
}

// FuzzTag checks that each tag has a file name of its own, in lower case.
func FuzzTag(f *testing.F) {
	for _, seed := range []string{"latest", "V1.0", "_A-b", strings.Repeat("Z", 128), "a!01", "."} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if tag, ok := tagOf(text); ok && (checkTag(tag) != nil || tagFile(tag) != text) {
			t.Fatalf("the file %q is of the tag %q", text, tag)
		}
		if checkTag(text) != nil {
			return
		}
		file := tagFile(text)
		if back, ok := tagOf(file); !ok || back != text {
			t.Fatalf("%q has the file %q, of the tag %q", text, file, back)
		}
		if file != strings.ToLower(file) || len(file) > 255 {
			t.Fatalf("%q has the file %q", text, file)
		}
	})
}

// FuzzManifest checks what an accepted manifest can make the registry look for.
func FuzzManifest(f *testing.F) {
	blob := []byte("blob")
	f.Add(ociManifest, image(f, "note", &Descriptor{Digest: FromBytes(nil)}, blob, blob))
	f.Add(ociIndex, indexOf(f, Descriptor{MediaType: ociManifest, Digest: FromBytes(blob), Size: 4}))
	f.Add(dockerManifest, []byte(`{"schemaVersion":2,"config":{"digest":"sha256:.."},"layers":null}`))
	f.Add(dockerList, []byte(`{"manifests":[{"size":-1}]}`))
	f.Add(ociIndex, []byte(`{"a":`+strings.Repeat("[", 20000)))
	f.Fuzz(func(t *testing.T, mediaType string, data []byte) {
		m, err := parseManifest(mediaType, data)
		if err != nil {
			if asError(err).Status != http.StatusBadRequest {
				t.Fatal(err)
			}
			return
		}
		if isIndex(mediaType) && len(m.blobs()) > 0 || !isIndex(mediaType) && len(m.Manifests) > 0 {
			t.Fatalf("both an index and an image: %q", data)
		}
		described := append(m.blobs(), m.Manifests...)
		if m.Subject != nil {
			described = append(described, *m.Subject)
		}
		for _, d := range described {
			if _, err := ParseDigest(string(d.Digest)); err != nil || !filepath.IsLocal(contentFile(d.Digest)) || d.Size < 0 {
				t.Fatalf("accepted %+v", d)
			}
		}
	})
}

// FuzzRequest sends requests of all kinds to one registry. None may fail for a
// reason of the registry's own.
func FuzzRequest(f *testing.F) {
	digest := string(FromBytes([]byte("blob")))
	f.Add("PUT", "/v2/a/manifests/tag?tag=x", "Content-Type", ociManifest, image(f, "", nil, []byte("blob")))
	f.Add("POST", "/v2/a/blobs/uploads/?digest="+digest, "Content-Range", "0-3", []byte("blob"))
	f.Add("POST", "/v2/a/blobs/uploads/?mount="+digest+"&from=b", "Content-Length", "0", []byte(nil))
	f.Add("GET", "/v2/a/blobs/"+digest, "Range", "bytes=0-1,1-2,-9", []byte(nil))
	f.Add("GET", "/v2/a/tags/list?n=1&last=%00", "Accept", "*/*", []byte(nil))
	f.Add("DELETE", "/v2/a/manifests/"+digest, "Host", "[::1", []byte(nil))
	f.Add("GET", "/v2/a/referrers/"+digest+"?artifactType=%ff", "Origin", "::", []byte(nil))
	r := openTest(f)
	f.Fuzz(func(t *testing.T, method, target, header, value string, body []byte) {
		if req, err := http.NewRequest(method, "/", nil); err != nil || req.Method == "" || header == "" {
			return
		}
		if res := request(r, method, target, body, header, value); res.Code >= 500 {
			t.Fatalf("%s %s: %d", method, target, res.Code)
		}
	})
}
