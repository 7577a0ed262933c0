// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// idleBody is how long a client may pause while it sends a body.
	idleBody = 2 * time.Minute
	// slowest is the rate in bytes per second that a pull is given at least.
	slowest = 256 << 10
	// maxPage bounds one page of a list of referrers, in bytes, as it does manifests.
	maxPage = MaxManifest
)

// endpoint serves a method of a kind of resource.
type endpoint struct {
	need  Access
	serve func(*Registry, http.ResponseWriter, *http.Request, route) error
}

var endpoints = map[kind]map[string]endpoint{
	base:      {"GET": {Read, (*Registry).serveBase}},
	catalog:   {"GET": {Read, (*Registry).serveCatalog}},
	tagList:   {"GET": {Read, (*Registry).serveTags}},
	manifests: {"GET": {Read, (*Registry).getManifest}, "PUT": {Write, (*Registry).putManifest}, "DELETE": {Write, (*Registry).deleteReference}},
	blob:      {"GET": {Read, (*Registry).getBlob}, "DELETE": {Write, (*Registry).deleteBlob}},
	uploads:   {"POST": {Write, (*Registry).postUpload}},
	uploading: {"GET": {Write, (*Registry).getUpload}, "PATCH": {Write, (*Registry).patchUpload}, "PUT": {Write, (*Registry).putUpload}, "DELETE": {Write, (*Registry).deleteUpload}},
	referrers: {"GET": {Read, (*Registry).serveReferrers}},
}

// Handler returns the registry's HTTP API. See [Registry.Serve] for a server
// with the timeouts that it needs.
func (r *Registry) Handler() http.Handler { return http.HandlerFunc(r.handle) }

func (r *Registry) handle(w http.ResponseWriter, req *http.Request) {
	w.Header().Set("Docker-Distribution-API-Version", "registry/2.0")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	if err := r.dispatch(w, req); err != nil {
		r.answerError(w, req, err)
	}
}

func (r *Registry) dispatch(w http.ResponseWriter, req *http.Request) error {
	found, pathErr := parsePath(req.URL)
	method := req.Method
	if method == http.MethodHead {
		method = http.MethodGet
	}
	served, ok := endpoints[found.kind][method]
	// Who may not read learns nothing, not even what a path means.
	if err := r.guard(req, max(served.need, Read)); err != nil {
		return err
	}
	if pathErr != nil {
		return pathErr
	}
	if !ok {
		allowed := []string{}
		for method := range endpoints[found.kind] {
			allowed = append(allowed, method)
		}
		slices.Sort(allowed)
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		return fail(http.StatusMethodNotAllowed, Unsupported, "%.20q is not supported here", req.Method)
	}
	return served.serve(r, w, req, found)
}

func (r *Registry) answerError(w http.ResponseWriter, req *http.Request, err error) {
	told := asError(err)
	if told.Status >= http.StatusInternalServerError && r.config.Log != nil {
		r.config.Log(req, err)
	}
	if told.Status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", `Basic realm="diwan registry", charset="UTF-8"`)
	}
	type item struct {
		Code    Code   `json:"code"`
		Message string `json:"message"`
	}
	answerJSON(w, told.Status, "application/json", map[string][]item{"errors": {{told.Code, told.Message}}})
}

// answerJSON answers with a value, which is of a type that has JSON.
func answerJSON(w http.ResponseWriter, status int, contentType string, value any) {
	data, _ := json.Marshal(value)
	w.Header().Set("Content-Type", contentType)
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	w.WriteHeader(status)
	_, _ = w.Write(data) // whoever cannot be reached is told nothing
}

func (r *Registry) serveBase(w http.ResponseWriter, _ *http.Request, _ route) error {
	answerJSON(w, http.StatusOK, "application/json", struct{}{})
	return nil
}

func (r *Registry) serveCatalog(w http.ResponseWriter, req *http.Request, _ route) error {
	names, err := r.Repositories()
	if err != nil {
		return err
	}
	names, err = page(w, req, names)
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, "application/json", map[string][]string{"repositories": names})
	return nil
}

func (r *Registry) serveTags(w http.ResponseWriter, req *http.Request, at route) error {
	tags, err := r.Tags(at.repo)
	if err != nil {
		return err
	}
	tags, err = page(w, req, tags)
	if err != nil {
		return err
	}
	answerJSON(w, http.StatusOK, "application/json", struct {
		Name string   `json:"name"`
		Tags []string `json:"tags"`
	}{at.repo, tags})
	return nil
}

// page returns the part of a sorted list that the parameters n and last ask
// for, and links to the next page.
func page(w http.ResponseWriter, req *http.Request, all []string) ([]string, error) {
	query := req.URL.Query()
	if last := query.Get("last"); last != "" {
		i, found := slices.BinarySearch(all, last)
		if found {
			i++
		}
		all = all[i:]
	}
	if query.Has("n") {
		n, err := strconv.ParseUint(query.Get("n"), 10, 31)
		if err != nil {
			return nil, fail(http.StatusBadRequest, Unsupported, "n must be a number, not %.20q", query.Get("n"))
		}
		if int(n) < len(all) {
			all = all[:n]
			if n > 0 {
				linkNext(w, req, url.Values{"n": {query.Get("n")}, "last": {all[n-1]}})
			}
		}
	}
	if all == nil {
		all = []string{}
	}
	return all, nil
}

func linkNext(w http.ResponseWriter, req *http.Request, query url.Values) {
	w.Header().Set("Link", fmt.Sprintf("<%s?%s>; rel=\"next\"", req.URL.Path, query.Encode()))
}

func (r *Registry) serveReferrers(w http.ResponseWriter, req *http.Request, at route) error {
	all, err := r.Referrers(at.repo, at.arg)
	if err != nil {
		return err
	}
	query := req.URL.Query()
	next := url.Values{}
	if artifactType := query.Get("artifactType"); artifactType != "" {
		all = slices.DeleteFunc(all, func(d Descriptor) bool { return d.ArtifactType != artifactType })
		w.Header().Set("OCI-Filters-Applied", "artifactType")
		next.Set("artifactType", artifactType)
	}
	last := Digest(query.Get("last"))
	all = slices.DeleteFunc(all, func(d Descriptor) bool { return d.Digest <= last })
	index := struct {
		SchemaVersion int               `json:"schemaVersion"`
		MediaType     string            `json:"mediaType"`
		Manifests     []json.RawMessage `json:"manifests"`
	}{2, ociIndex, []json.RawMessage{}}
	size := 1024
	for i, d := range all {
		data, err := json.Marshal(d)
		if err != nil {
			return err
		}
		if size += len(data) + 1; size > maxPage && i > 0 {
			next.Set("last", string(all[i-1].Digest))
			linkNext(w, req, next)
			break
		}
		index.Manifests = append(index.Manifests, data)
	}
	answerJSON(w, http.StatusOK, ociIndex, index)
	return nil
}

func (r *Registry) getManifest(w http.ResponseWriter, req *http.Request, at route) error {
	found, data, err := r.Manifest(at.repo, at.arg)
	if err == nil && req.Method == http.MethodHead {
		_, err = r.Resolve(at.repo, at.arg) // to keep it for the index that comes next
	}
	if err != nil {
		return err
	}
	describe(w, found.MediaType, found.Digest)
	if slices.Contains(req.Header.Values("If-None-Match"), etag(found.Digest)) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	w.Header().Set("Content-Length", strconv.Itoa(len(data)))
	if req.Method == http.MethodGet {
		_, _ = w.Write(data)
	}
	return nil
}

func describe(w http.ResponseWriter, mediaType string, d Digest) {
	w.Header().Set("Content-Type", mediaType)
	w.Header().Set("Docker-Content-Digest", string(d))
	w.Header().Set("ETag", etag(d))
}

func etag(d Digest) string { return `"` + string(d) + `"` }

func (r *Registry) putManifest(w http.ResponseWriter, req *http.Request, at route) error {
	data, err := io.ReadAll(io.LimitReader(r.body(w, req), MaxManifest+1))
	if err != nil {
		return fail(http.StatusBadRequest, ManifestInvalid, "the manifest ended early: %v", err)
	}
	tags := req.URL.Query()["tag"]
	if len(tags) > 0 && !strings.Contains(at.arg, ":") {
		return fail(http.StatusBadRequest, ManifestInvalid, "only a push by digest may name further tags")
	}
	pushed, subject, err := r.PushManifest(at.repo, Push{Reference: at.arg, Tags: tags, MediaType: req.Header.Get("Content-Type"), Data: data})
	if err != nil {
		return err
	}
	for _, tag := range tags {
		w.Header().Add("OCI-Tag", tag)
	}
	if subject != "" {
		w.Header().Set("OCI-Subject", string(subject))
	}
	w.Header().Set("Location", "/v2/"+at.repo+"/manifests/"+string(pushed.Digest))
	w.Header().Set("Docker-Content-Digest", string(pushed.Digest))
	w.WriteHeader(http.StatusCreated)
	return nil
}

func (r *Registry) deleteReference(w http.ResponseWriter, _ *http.Request, at route) error {
	if err := r.Delete(at.repo, at.arg); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (r *Registry) getBlob(w http.ResponseWriter, req *http.Request, at route) error {
	if req.Method == http.MethodHead {
		if _, err := r.StatBlob(at.repo, at.arg); err != nil {
			return err
		}
	}
	file, err := r.Blob(at.repo, at.arg)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	patience := time.Minute + time.Duration(info.Size()/slowest)*time.Second
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(patience)) // not every writer has deadlines
	describe(w, "application/octet-stream", Digest(at.arg))
	http.ServeContent(w, req, "", time.Time{}, file)
	return nil
}

func (r *Registry) deleteBlob(w http.ResponseWriter, _ *http.Request, at route) error {
	if err := r.DeleteBlob(at.repo, at.arg); err != nil {
		return err
	}
	w.WriteHeader(http.StatusAccepted)
	return nil
}

func (r *Registry) postUpload(w http.ResponseWriter, req *http.Request, at route) error {
	query := req.URL.Query()
	algorithm := canonical
	if named := query.Get("digest-algorithm"); named != "" {
		algorithm = named
	}
	if mount := query.Get("mount"); mount != "" {
		err := r.mount(at.repo, mount, query.Get("from"))
		if err == nil {
			created(w, at.repo, Digest(mount))
			return nil
		}
		var told *Error
		if !errors.As(err, &told) || told.Status != http.StatusNotFound {
			return err
		}
	}
	var want Digest
	if digest := query.Get("digest"); digest != "" {
		var err error
		if want, err = ParseDigest(digest); err != nil {
			return err
		}
		algorithm = want.algorithm()
	}
	u, err := r.begin(at.repo, algorithm)
	if err != nil {
		return err
	}
	if want == "" {
		accepted(w, u, http.StatusAccepted)
		return nil
	}
	u.busy <- struct{}{}
	defer u.release()
	if err := r.receive(w, req, u); err != nil {
		return errors.Join(err, r.end(u)) // the client does not know its id
	}
	if err := r.finish(u, want); err != nil {
		return err
	}
	created(w, at.repo, want)
	return nil
}

// mount takes a blob from the repository that the client names, or from any.
func (r *Registry) mount(repo, digest, from string) error {
	if from != "" {
		if _, err := r.StatBlob(from, digest); err != nil {
			return err
		}
	}
	return r.Mount(repo, digest)
}

func created(w http.ResponseWriter, repo string, d Digest) {
	w.Header().Set("Location", "/v2/"+repo+"/blobs/"+string(d))
	w.Header().Set("Docker-Content-Digest", string(d))
	w.WriteHeader(http.StatusCreated)
}

// accepted tells where an upload stands. An empty one has the range "0-0", as
// one of a single byte has.
func accepted(w http.ResponseWriter, u *upload, status int) {
	w.Header().Set("Location", "/v2/"+u.session.Repository+"/blobs/uploads/"+u.id)
	w.Header().Set("Docker-Upload-UUID", u.id)
	w.Header().Set("Range", fmt.Sprintf("0-%d", max(u.size-1, 0)))
	w.WriteHeader(status)
}

func (r *Registry) getUpload(w http.ResponseWriter, req *http.Request, at route) error {
	u, err := r.acquire(req.Context(), at.repo, at.arg)
	if err != nil {
		return err
	}
	defer u.release()
	accepted(w, u, http.StatusNoContent)
	return nil
}

func (r *Registry) patchUpload(w http.ResponseWriter, req *http.Request, at route) error {
	u, err := r.acquire(req.Context(), at.repo, at.arg)
	if err != nil {
		return err
	}
	defer u.release()
	if err := r.receive(w, req, u); err != nil {
		return err
	}
	accepted(w, u, http.StatusAccepted)
	return nil
}

func (r *Registry) putUpload(w http.ResponseWriter, req *http.Request, at route) error {
	want, err := ParseDigest(req.URL.Query().Get("digest"))
	if err != nil {
		return err
	}
	u, err := r.acquire(req.Context(), at.repo, at.arg)
	if err != nil {
		return err
	}
	defer u.release()
	if err := r.receive(w, req, u); err != nil {
		return err
	}
	if err := r.finish(u, want); err != nil {
		return err
	}
	created(w, at.repo, want)
	return nil
}

func (r *Registry) deleteUpload(w http.ResponseWriter, req *http.Request, at route) error {
	u, err := r.acquire(req.Context(), at.repo, at.arg)
	if err != nil {
		return err
	}
	defer u.release()
	if err := r.end(u); err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// receive appends a request's body to an upload, at the offset that
// Content-Range names, if it does.
func (r *Registry) receive(w http.ResponseWriter, req *http.Request, u *upload) error {
	body := r.body(w, req)
	if header := req.Header.Get("Content-Range"); header != "" {
		first, length, err := parseRange(header)
		if err != nil {
			return err
		}
		if req.ContentLength >= 0 && req.ContentLength != length {
			return fail(http.StatusBadRequest, SizeInvalid, "Content-Range has %d bytes, Content-Length %d", length, req.ContentLength)
		}
		if first != u.size {
			w.Header().Set("Location", "/v2/"+u.session.Repository+"/blobs/uploads/"+u.id)
			w.Header().Set("Range", fmt.Sprintf("0-%d", max(u.size-1, 0)))
			return fail(http.StatusRequestedRangeNotSatisfiable, BlobUploadInvalid, "the next byte of this upload is %d, not %d", u.size, first)
		}
		body = io.LimitReader(body, length)
	}
	// It is better to refuse before the body than within it.
	if max := r.config.MaxBytes; max > 0 && req.ContentLength > max-r.used.Load() {
		return r.overBudget()
	}
	return r.write(u, body)
}

// parseRange reads a Content-Range of the form that the specification gives
// it, "first-last", or of HTTP's, "bytes first-last/length".
func parseRange(header string) (first, length int64, err error) {
	text, _, _ := strings.Cut(strings.TrimPrefix(header, "bytes "), "/")
	from, to, ok := strings.Cut(text, "-")
	first, err1 := strconv.ParseInt(from, 10, 64)
	last, err2 := strconv.ParseInt(to, 10, 64)
	if !ok || err1 != nil || err2 != nil || first < 0 || last < first {
		return 0, 0, fail(http.StatusRequestedRangeNotSatisfiable, BlobUploadInvalid, "the Content-Range %.60q is not of the form first-last", header)
	}
	return first, last - first + 1, nil
}

// body returns a request's body, which fails if the client pauses for too long.
func (r *Registry) body(w http.ResponseWriter, req *http.Request) io.Reader {
	return &patientBody{http.NewResponseController(w), req.Body}
}

type patientBody struct {
	conn *http.ResponseController
	body io.Reader
}

func (p *patientBody) Read(data []byte) (int, error) {
	_ = p.conn.SetReadDeadline(time.Now().Add(idleBody)) // not every writer has deadlines
	n, err := p.body.Read(data)
	if err != nil {
		// The server watches the connection from here on, without a deadline.
		_ = p.conn.SetReadDeadline(time.Time{})
	}
	return n, err
}
