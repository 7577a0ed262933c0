// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"diwan.dev/diwan/internal/testing/chance"
)

// image returns an image manifest of blobs.
func image(t testing.TB, note string, subject *Descriptor, blobs ...[]byte) []byte {
	t.Helper()
	layers := []Descriptor{}
	for _, data := range blobs {
		layers = append(layers, Descriptor{MediaType: "application/vnd.oci.image.layer.v1.tar", Digest: FromBytes(data), Size: int64(len(data))})
	}
	return must(json.Marshal(map[string]any{
		"schemaVersion": 2, "mediaType": ociManifest, "config": layers[0], "layers": layers[1:],
		"subject": subject, "annotations": map[string]string{"note": note},
	}))
}

func indexOf(t testing.TB, children ...Descriptor) []byte {
	t.Helper()
	return must(json.Marshal(map[string]any{"schemaVersion": 2, "mediaType": ociIndex, "manifests": children}))
}

// whole checks that a manifest and all that it needs can be pulled.
func whole(r *Registry, repo, ref string) error {
	d, data, err := r.Manifest(repo, ref)
	if err != nil {
		return err
	}
	if FromBytes(data) != d.Digest {
		return fmt.Errorf("the manifest of %s has the digest %s", ref, FromBytes(data))
	}
	m, err := parseManifest(d.MediaType, data)
	if err != nil {
		return err
	}
	for _, part := range m.blobs() {
		file, err := r.Blob(repo, string(part.Digest))
		if err != nil {
			return err
		}
		content, err := io.ReadAll(file)
		if err := errors.Join(err, file.Close()); err != nil {
			return err
		}
		if FromBytes(content) != part.Digest {
			return fmt.Errorf("the blob %s has the digest %s", part.Digest, FromBytes(content))
		}
	}
	for _, child := range m.Manifests {
		if err := whole(r, repo, string(child.Digest)); err != nil {
			return err
		}
	}
	return nil
}

// worker pushes, deletes and pulls manifests of its own, made of blobs that all
// workers share.
type worker struct {
	*Registry
	t      *testing.T
	id     int
	rng    *rand.Rand
	blobs  [][]byte
	tagged map[[2]string]Descriptor // by repository and tag: what was acknowledged
}

func (w *worker) repo() string { return fmt.Sprintf("team/repo-%d", w.rng.IntN(2)) }

// push pushes as clients do: only blobs that the registry says it lacks.
// Between the question and the manifest, content may be collected when the
// grace period is as short as here; then a client begins anew.
func (w *worker) push(ctx context.Context, repo, ref string, subject *Descriptor) (Descriptor, error) {
	blobs := [][]byte{w.blobs[w.rng.IntN(len(w.blobs))], w.blobs[w.rng.IntN(len(w.blobs))], w.blobs[w.rng.IntN(len(w.blobs))]}
	data := image(w.t, fmt.Sprintf("%d/%d", w.id, w.rng.IntN(3)), subject, blobs...)
	if ref == "" {
		ref = string(FromBytes(data))
	}
	for {
		for _, blob := range blobs {
			if _, err := w.StatBlob(repo, string(FromBytes(blob))); err == nil {
				continue
			}
			if w.rng.IntN(2) == 0 && w.Mount(repo, string(FromBytes(blob))) == nil {
				continue
			}
			if err := w.PushBlob(ctx, repo, string(FromBytes(blob)), bytes.NewReader(blob)); err != nil {
				return Descriptor{}, err
			}
		}
		d, _, err := w.PushManifest(repo, Push{Reference: ref, Data: data})
		var told *Error
		if errors.As(err, &told) && told.Code == ManifestBlobUnknown && ctx.Err() == nil {
			continue
		}
		return d, err
	}
}

func (w *worker) step(ctx context.Context) error {
	repo, tag := w.repo(), fmt.Sprintf("W%d-%d", w.id, w.rng.IntN(4))
	key := [2]string{repo, tag}
	switch w.rng.IntN(10) {
	case 0, 1, 2, 3:
		d, err := w.push(ctx, repo, tag, nil)
		if err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		w.tagged[key] = d
	case 4: // an index of an image without a tag and of one that has one
		child, err := w.push(ctx, repo, "", nil)
		if err != nil {
			return fmt.Errorf("push of a child: %w", err)
		}
		d, _, err := w.PushManifest(repo, Push{Reference: tag, Data: indexOf(w.t, child)})
		var told *Error
		if errors.As(err, &told) && told.Code == ManifestBlobUnknown {
			return nil // collected before it was listed
		}
		if err != nil {
			return fmt.Errorf("push of an index: %w", err)
		}
		w.tagged[key] = d
	case 5: // what refers to something tagged stays with it
		subject, ok := w.tagged[key]
		if !ok {
			return nil
		}
		d, err := w.push(ctx, repo, "", &subject)
		if err != nil {
			return fmt.Errorf("push of a referrer: %w", err)
		}
		all, err := w.Referrers(repo, string(subject.Digest))
		if err != nil {
			return err
		}
		if !slices.ContainsFunc(all, func(other Descriptor) bool { return other.Digest == d.Digest }) {
			return fmt.Errorf("the referrer %s of %s is not listed", d.Digest, tag)
		}
		if err := whole(w.Registry, repo, string(d.Digest)); err != nil {
			return fmt.Errorf("a referrer: %w", err)
		}
	case 6:
		if _, ok := w.tagged[key]; !ok {
			return nil
		}
		if err := w.Delete(repo, tag); err != nil {
			return fmt.Errorf("delete %s: %w", tag, err)
		}
		delete(w.tagged, key)
	case 7:
		d, ok := w.tagged[key]
		if !ok {
			return nil
		}
		err := w.Delete(repo, string(d.Digest))
		var told *Error
		if errors.As(err, &told) && told.Code == Unsupported {
			return nil // an index lists it
		}
		if err != nil {
			return fmt.Errorf("delete %s: %w", d.Digest, err)
		}
		for other, named := range w.tagged {
			if other[0] == repo && named.Digest == d.Digest {
				delete(w.tagged, other)
			}
		}
	case 8:
		_ = w.DeleteBlob(repo, string(FromBytes(w.blobs[w.rng.IntN(len(w.blobs))])))
	}
	return w.check()
}

// check pulls all that was acknowledged.
func (w *worker) check() error {
	for key, d := range w.tagged {
		found, err := w.Resolve(key[0], key[1])
		if err == nil && found.Digest != d.Digest {
			err = fmt.Errorf("it names %s instead of %s", found.Digest, d.Digest)
		}
		if err == nil {
			err = whole(w.Registry, key[0], key[1])
		}
		if err != nil {
			return fmt.Errorf("the tag %s of %s is not whole: %w", key[1], key[0], err)
		}
	}
	return nil
}

// TestCollectWhilePushing collects without any grace while clients push and
// delete. Whatever happens, what has a tag can be pulled.
func TestCollectWhilePushing(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	seed := chance.Seed(t)
	var blobs [][]byte
	for i := range 12 {
		blobs = append(blobs, fmt.Appendf(nil, "blob %d", i))
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var pushing, collecting sync.WaitGroup
	workers := make([]*worker, 4)
	for i := range workers {
		w := &worker{r, t, i, rand.New(rand.NewPCG(seed, uint64(i))), blobs, map[[2]string]Descriptor{}}
		workers[i] = w
		pushing.Go(func() {
			for range 60 {
				if err := w.step(ctx); err != nil {
					t.Errorf("worker %d: %v", i, err)
					return
				}
			}
		})
	}
	var total Collected
	collecting.Go(func() {
		for ctx.Err() == nil {
			done, err := r.Collect(ctx, Options{UntaggedAge: 1, Grace: 1})
			if err != nil && ctx.Err() == nil {
				t.Error(err)
				return
			}
			total.Manifests += done.Manifests
			total.Blobs += done.Blobs
			total.Bytes += done.Bytes
		}
	})
	pushing.Wait()
	stop()
	collecting.Wait()
	if total.Manifests == 0 || total.Blobs == 0 || total.Bytes == 0 {
		t.Errorf("collected only %+v", total)
	}

	// At rest, nothing remains but what tags need, and all of that.
	for range 2 {
		if _, err := r.Collect(t.Context(), Options{UntaggedAge: 1, Grace: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, w := range workers {
		if err := w.check(); err != nil {
			t.Error(err)
		}
		for key := range w.tagged {
			if err := r.Delete(key[0], key[1]); err != nil {
				t.Error(err)
			}
		}
	}
	// Manifests are removed one by one, children after their indexes.
	if _, err := r.Collect(t.Context(), Options{UntaggedAge: 1, Grace: 1}); err != nil {
		t.Fatal(err)
	}
	if used := r.Usage().Bytes; used != 0 {
		t.Errorf("%d bytes are left of nothing", used)
	}
	if names := must(r.files.names(repositoriesDir)); len(names) > 0 {
		t.Errorf("directories are left of nothing: %v", names)
	}
}

// age makes a file look as if it had last been used a while ago.
func age(t testing.TB, r *Registry, file string, by time.Duration) {
	t.Helper()
	then := time.Now().Add(-by)
	if err := r.files.root.Chtimes(file, then, then); err != nil {
		t.Fatal(err)
	}
}

func TestGrace(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	asked, forgotten, young := []byte("asked"), []byte("forgotten"), []byte("young")
	for _, data := range [][]byte{asked, forgotten, young} {
		d := FromBytes(data)
		if err := r.PushBlob(t.Context(), "repo", string(d), bytes.NewReader(data)); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(data, young) {
			age(t, r, blobLink("repo", d), 2*time.Hour)
			age(t, r, contentFile(d), 2*time.Hour)
		}
	}
	if _, err := r.StatBlob("repo", string(FromBytes(asked))); err != nil {
		t.Fatal(err)
	}
	done, err := r.Collect(t.Context(), Options{})
	if err != nil || done != (Collected{Blobs: 1, Bytes: int64(len(forgotten))}) {
		t.Errorf("collected %+v, %v", done, err)
	}
	if _, err := r.StatBlob("repo", string(FromBytes(forgotten))); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the forgotten blob: %v", err)
	}
	if _, _, err := r.PushManifest("repo", Push{Reference: "tag", Data: image(t, "", nil, asked, young)}); err != nil {
		t.Error(err)
	}
	if err := whole(r, "repo", "tag"); err != nil {
		t.Error(err)
	}
}

// TestAbandoned collects an upload to which nothing comes, and one that cannot
// be resumed, but none that is in use.
func TestAbandoned(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	begin := func(data string) *upload {
		t.Helper()
		u, err := r.begin("repo", "sha256")
		if err == nil {
			err = r.write(u, strings.NewReader(data))
		}
		if err != nil {
			t.Fatal(err)
		}
		return u
	}
	young, idle, busy, damaged := begin("young"), begin("idle"), begin("busy"), begin("damaged")
	for _, u := range []*upload{idle, busy, damaged} {
		age(t, r, u.dataFile(), 48*time.Hour)
	}
	busy.busy <- struct{}{}
	if err := r.files.root.WriteFile(damaged.sessionFile(), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	delete(r.uploads, damaged.id) // as after a restart
	done, err := r.Collect(t.Context(), Options{})
	if want := (Collected{Uploads: 2, Bytes: int64(len("idle") + len("damaged"))}); err != nil || done != want {
		t.Errorf("collected %+v, %v; want %+v", done, err, want)
	}
	busy.release()
	for _, u := range []*upload{young, busy} {
		if err := r.write(u, strings.NewReader("!")); err != nil {
			t.Error(err)
		}
		if err := r.finish(u, sum("sha256", u.hash)); err != nil {
			t.Error(err)
		}
	}
	if _, err := r.acquire(t.Context(), "repo", idle.id); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an upload that was collected: %v", err)
	}
	if got, want := r.Usage().Bytes, int64(len("young!")+len("busy!")); got != want {
		t.Errorf("%d bytes are in use, want %d", got, want)
	}
}

func TestUntagged(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	push := func(tag, note string, subject *Descriptor) Descriptor {
		t.Helper()
		blob := []byte(note)
		if err := r.PushBlob(t.Context(), "repo", string(FromBytes(blob)), bytes.NewReader(blob)); err != nil {
			t.Fatal(err)
		}
		data := image(t, note, subject, blob)
		if tag == "" {
			tag = string(FromBytes(data))
		}
		d, _, err := r.PushManifest("repo", Push{Reference: tag, Data: data})
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	old := push("tag", "old", nil)
	signature := push("", "signature", &old)
	age(t, r, manifestLink("repo", old.Digest), 2*time.Hour)
	age(t, r, manifestLink("repo", signature.Digest), 2*time.Hour)
	collect := func(want int) {
		t.Helper()
		done, err := r.Collect(t.Context(), Options{UntaggedAge: time.Hour, Grace: 1})
		if err != nil || done.Manifests != want {
			t.Errorf("collected %+v, %v; want %d manifests", done, err, want)
		}
	}
	collect(0) // the tag needs both
	push("tag", "new", nil)
	collect(0) // the old image lost its tag just now
	age(t, r, manifestLink("repo", old.Digest), 2*time.Hour)
	if _, err := r.Collect(t.Context(), Options{Grace: 1}); err != nil {
		t.Fatal(err)
	}
	if err := whole(r, "repo", string(old.Digest)); err != nil {
		t.Errorf("without an age for what is untagged: %v", err)
	}
	age(t, r, manifestLink("repo", old.Digest), 2*time.Hour) // which Resolve had renewed
	collect(2)
	if err := whole(r, "repo", "tag"); err != nil {
		t.Error(err)
	}
}
