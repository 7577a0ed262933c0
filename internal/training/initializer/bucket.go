// SPDX-License-Identifier: Apache-2.0

package initializer

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"
)

// bucketPage is a part of a list of objects (ListObjectsV2).
type bucketPage struct {
	Contents []struct {
		Key  string
		Size int64
	}
	IsTruncated           bool
	NextContinuationToken string
}

// fetchBucket fetches the objects of a bucket whose keys begin with a prefix.
func fetchBucket(ctx context.Context, c Config, from *url.URL) (int, error) {
	prefix := strings.TrimPrefix(from.Path, "/")
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	base := "https://" + from.Host + ".s3." + c.Region + ".amazonaws.com"
	if c.Endpoint != "" {
		base = strings.TrimSuffix(c.Endpoint, "/") + "/" + from.Host
	}
	sign := func(r *http.Request) {
		if c.AccessKeyID != "" {
			c.sign(r, time.Now())
		}
	}
	n, token := 0, ""
	for {
		query := url.Values{"list-type": {"2"}, "prefix": {prefix}}
		if token != "" {
			query.Set("continuation-token", token)
		}
		resp, err := c.get(ctx, base+"/?"+query.Encode(), sign)
		if err != nil {
			return n, err
		}
		var page bucketPage
		err = xml.NewDecoder(io.LimitReader(resp.Body, 64<<20)).Decode(&page)
		resp.Body.Close()
		if err != nil {
			return n, fmt.Errorf("the list of objects: %w", err)
		}
		for _, o := range page.Contents {
			if strings.HasSuffix(o.Key, "/") || c.ignores(o.Key) {
				continue
			}
			name := strings.TrimLeft(strings.TrimPrefix(o.Key, prefix), "/")
			if name == "" {
				name = path.Base(o.Key)
			}
			if err := c.download(ctx, name, o.Size, base+"/"+escapeKey(o.Key), sign); err != nil {
				return n, err
			}
			n++
		}
		if token = page.NextContinuationToken; !page.IsTruncated || token == "" {
			return n, nil
		}
	}
}

// nothing is the SHA-256 of an empty body.
const nothing = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

// sign signs a request without a body as AWS Signature Version 4 has it.
func (c *Config) sign(r *http.Request, now time.Time) {
	day, instant := now.UTC().Format("20060102"), now.UTC().Format("20060102T150405Z")
	r.Header.Set("X-Amz-Date", instant)
	r.Header.Set("X-Amz-Content-Sha256", nothing)
	if c.SessionToken != "" {
		r.Header.Set("X-Amz-Security-Token", c.SessionToken)
	}
	headers := map[string]string{"host": r.URL.Host}
	for name, values := range r.Header {
		if name = strings.ToLower(name); strings.HasPrefix(name, "x-amz-") || name == "range" {
			headers[name] = strings.TrimSpace(values[0])
		}
	}
	names := make([]string, 0, len(headers))
	for name := range headers {
		names = append(names, name)
	}
	slices.Sort(names)
	var canonical strings.Builder
	fmt.Fprintf(&canonical, "%s\n%s\n%s\n", r.Method, r.URL.EscapedPath(), strings.ReplaceAll(r.URL.Query().Encode(), "+", "%20"))
	for _, name := range names {
		fmt.Fprintf(&canonical, "%s:%s\n", name, headers[name])
	}
	fmt.Fprintf(&canonical, "\n%s\n%s", strings.Join(names, ";"), nothing)
	sum := sha256.Sum256([]byte(canonical.String()))
	scope := day + "/" + c.Region + "/s3/aws4_request"
	key := []byte("AWS4" + c.SecretAccessKey)
	for _, part := range []string{day, c.Region, "s3", "aws4_request", "AWS4-HMAC-SHA256\n" + instant + "\n" + scope + "\n" + hex.EncodeToString(sum[:])} {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(part))
		key = mac.Sum(nil)
	}
	r.Header.Set("Authorization", fmt.Sprintf("AWS4-HMAC-SHA256 Credential=%s/%s, SignedHeaders=%s, Signature=%s",
		c.AccessKeyID, scope, strings.Join(names, ";"), hex.EncodeToString(key)))
}

// escapeKey is a key as it stands in a signed URL: all but letters, digits and
// "-._~/" is escaped.
func escapeKey(key string) string {
	var out strings.Builder
	for _, b := range []byte(key) {
		switch {
		case b >= 'a' && b <= 'z', b >= 'A' && b <= 'Z', b >= '0' && b <= '9', strings.IndexByte("-._~/", b) >= 0:
			out.WriteByte(b)
		default:
			fmt.Fprintf(&out, "%%%02X", b)
		}
	}
	return out.String()
}
