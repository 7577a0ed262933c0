// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"net/http"
	"net/url"
	"strings"
)

// kind is a kind of resource that the specification has endpoints for.
type kind int

const (
	base kind = iota
	catalog
	tagList
	manifests
	blob
	uploads // where uploads begin
	uploading
	referrers
)

// route is what a request's path names.
type route struct {
	kind kind
	repo string
	arg  string // a tag, a digest or an upload's id
}

// parsePath finds what a path names. It is read from its end, since a
// repository's name may have components like "manifests". The name is checked,
// the argument is not.
func parsePath(u *url.URL) (route, error) {
	unknown := fail(http.StatusNotFound, Unsupported, "this registry serves the OCI distribution API below /v2/, and nothing at this path")
	rest, ok := strings.CutPrefix(u.Path, "/v2/")
	switch {
	case u.Path == "/v2", ok && rest == "":
		return route{kind: base}, nil
	case !ok, !plain(u):
		return route{}, unknown
	case rest == "_catalog":
		return route{kind: catalog}, nil
	}
	if repo, ok := strings.CutSuffix(strings.TrimSuffix(rest, "/"), "/blobs/uploads"); ok {
		return route{uploads, repo, ""}, checkName(repo)
	}
	parent, arg := cutLast(rest)
	if repo, ok := strings.CutSuffix(parent, "/blobs/uploads"); ok {
		return route{uploading, repo, arg}, checkName(repo)
	}
	repo, collection := cutLast(parent)
	found := route{repo: repo, arg: arg}
	switch {
	case collection == "manifests":
		found.kind = manifests
	case collection == "blobs":
		found.kind = blob
	case collection == "referrers":
		found.kind = referrers
	case collection == "tags" && arg == "list":
		found.kind = tagList
	default:
		return route{}, unknown
	}
	return found, checkName(repo)
}

func cutLast(path string) (parent, last string) {
	i := strings.LastIndexByte(path, '/')
	return path[:max(i, 0)], path[i+1:]
}

// plain reports whether a path is written without escapes, of which none is
// needed. Some clients escape the colon of digests.
func plain(u *url.URL) bool {
	escaped := u.EscapedPath()
	return strings.Count(escaped, "%") == strings.Count(strings.ToUpper(escaped), "%3A")
}
