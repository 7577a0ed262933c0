// SPDX-License-Identifier: Apache-2.0

package initializer

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

const hub = "https://huggingface.co"

// hubFile is the hub's description of a file.
type hubFile struct {
	Type string `json:"type"`
	Path string `json:"path"`
	Size int64  `json:"size"`
}

// fetchHub fetches a repository of the Hugging Face hub, or a directory of one:
// hf://owner/name[/directory], of the revision main, or of another one that
// follows an "@" after the name.
func fetchHub(ctx context.Context, c Config, from *url.URL) (int, error) {
	name, directory, _ := strings.Cut(strings.TrimPrefix(from.Path, "/"), "/")
	name, revision, chosen := strings.Cut(name, "@")
	if from.Host == "" || name == "" {
		return 0, fmt.Errorf("want hf://OWNER/NAME")
	}
	if !chosen {
		revision = "main"
	}
	base, kind, prefix := c.Endpoint, "datasets", "datasets/"
	if base == "" {
		base = hub
	}
	if c.Model {
		kind, prefix = "models", ""
	}
	repository := from.Host + "/" + name
	base = strings.TrimSuffix(base, "/")
	authorize := func(r *http.Request) {
		if c.AccessToken != "" {
			r.Header.Set("Authorization", "Bearer "+c.AccessToken)
		}
	}
	next := fmt.Sprintf("%s/api/%s/%s/tree/%s/%s?recursive=true", base, kind, repository, url.PathEscape(revision), directory)
	n := 0
	for next != "" {
		resp, err := c.get(ctx, next, authorize)
		if err != nil {
			return n, err
		}
		var files []hubFile
		err = json.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(&files)
		resp.Body.Close()
		if err != nil {
			return n, fmt.Errorf("the hub's list of files: %w", err)
		}
		for _, f := range files {
			if f.Type != "file" || c.ignores(f.Path) {
				continue
			}
			escaped := (&url.URL{Path: f.Path}).EscapedPath()
			address := fmt.Sprintf("%s/%s%s/resolve/%s/%s", base, prefix, repository, url.PathEscape(revision), escaped)
			if err := c.download(ctx, f.Path, f.Size, address, authorize); err != nil {
				return n, err
			}
			n++
		}
		if next, err = following(base, resp.Header.Get("Link")); err != nil {
			return n, err
		}
	}
	return n, nil
}

// following is the address of the next page, "" after the last. The token goes
// there too, so that it must be the same server.
func following(base, link string) (string, error) {
	address, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(link), "<"), ">")
	if !ok || !strings.Contains(rest, `rel="next"`) {
		return "", nil
	}
	if !strings.HasPrefix(address, base+"/") {
		return "", fmt.Errorf("the next page of the hub's list is elsewhere: %s", address)
	}
	return address, nil
}
