// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2"
	"oras.land/oras-go/v2/content/memory"
	orasremote "oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
)

var basic = remote.WithAuth(&authn.Basic{Username: "anyone", Password: testToken})

func TestGoContainerRegistry(t *testing.T) {
	t.Parallel()
	address := serveTest(t, openTest(t))
	ref := func(s string) name.Reference {
		t.Helper()
		parsed, err := name.ParseReference(address + "/" + s)
		if err != nil {
			t.Fatal(err)
		}
		return parsed
	}
	image := must(random.Image(300<<10, 4))
	index := must(random.Index(10<<10, 2, 3))
	if err := remote.Write(ref("team/image:V1"), image, basic); err != nil {
		t.Fatal(err)
	}
	if err := remote.Write(ref("other/image:v1"), image, basic); err != nil { // mounts
		t.Fatal(err)
	}
	if err := remote.WriteIndex(ref("team/index:latest"), index, basic); err != nil {
		t.Fatal(err)
	}

	// Without credentials one may pull.
	pulled := must(remote.Image(ref("team/image:V1")))
	if err := validate.Image(pulled); err != nil {
		t.Error(err)
	}
	if got, want := must(pulled.Digest()), must(image.Digest()); got != want {
		t.Errorf("pulled %s, pushed %s", got, want)
	}
	if err := validate.Index(must(remote.Index(ref("team/index:latest")))); err != nil {
		t.Error(err)
	}
	if _, err := remote.Head(ref("team/image:v1")); !notFound(err) {
		t.Errorf("the tag v1, where only V1 was pushed: %v", err)
	}
	if err := remote.Write(ref("team/image:v2"), image); err == nil {
		t.Error("a push without credentials succeeded")
	}
	if err := remote.Write(ref("team/image:v2"), image, remote.WithAuth(&authn.Basic{Username: "a", Password: "wrong"})); err == nil {
		t.Error("a push with wrong credentials succeeded")
	}
	if err := remote.Tag(ref("team/image:a").(name.Tag), pulled, basic); err != nil {
		t.Error(err)
	}
	host := must(name.NewRegistry(address))
	if diff := cmp.Diff([]string{"other/image", "team/image", "team/index"}, must(remote.Catalog(t.Context(), host))); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"V1", "a"}, must(remote.List(ref("team/image").Context(), remote.WithPageSize(1)))); diff != "" {
		t.Error(diff)
	}

	// A child of an index stays, the index and its tags go.
	child := must(index.IndexManifest()).Manifests[0].Digest
	if err := remote.Delete(ref("team/index@"+child.String()), basic); err == nil {
		t.Error("a manifest that an index lists was deleted")
	}
	if err := remote.Delete(ref("team/index@"+must(index.Digest()).String()), basic); err != nil {
		t.Error(err)
	}
	if _, err := remote.Get(ref("team/index:latest")); !notFound(err) {
		t.Errorf("a deleted index: %v", err)
	}
	if err := remote.Delete(ref("team/index@"+child.String()), basic); err != nil {
		t.Error(err)
	}
}

func notFound(err error) bool {
	var e *transport.Error
	return errors.As(err, &e) && e.StatusCode == http.StatusNotFound
}

// TestORAS pushes what a model is: an artifact with types of its own, and
// manifests that refer to it.
func TestORAS(t *testing.T) {
	t.Parallel()
	r := openTest(t)
	address := serveTest(t, r)
	repo := must(orasremote.NewRepository(address + "/models/iris"))
	repo.PlainHTTP = true
	repo.Client = &auth.Client{Credential: auth.StaticCredential(address, auth.Credential{Username: "anyone", Password: testToken})}
	ctx := t.Context()

	weights := bytes.Repeat([]byte("weights"), 100_000)
	source := memory.New()
	layer := must(oras.PushBytes(ctx, source, "application/vnd.cncf.model.weight.v1.raw", weights))
	model := must(oras.PackManifest(ctx, source, oras.PackManifestVersion1_1, "application/vnd.cncf.model.manifest.v1+json", oras.PackManifestOptions{
		Layers: []ocispec.Descriptor{layer}, ManifestAnnotations: map[string]string{"accuracy": "0.97"},
	}))
	if err := source.Tag(ctx, model, "v1"); err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		kind := fmt.Sprintf("application/vnd.example.signature.v%d", i%2)
		must(oras.PackManifest(ctx, source, oras.PackManifestVersion1_1, kind, oras.PackManifestOptions{
			Subject: &model, ManifestAnnotations: map[string]string{"by": fmt.Sprint(i)},
		}))
	}
	if _, err := oras.ExtendedCopy(ctx, source, "v1", repo, "v1", oras.DefaultExtendedCopyOptions); err != nil {
		t.Fatal(err)
	}

	target := memory.New()
	got, err := oras.Copy(ctx, repo, "v1", target, "v1", oras.DefaultCopyOptions)
	if err != nil {
		t.Fatal(err)
	}
	if got.Digest != model.Digest {
		t.Errorf("pulled %s, pushed %s", got.Digest, model.Digest)
	}
	if data := must(io.ReadAll(must(target.Fetch(ctx, layer)))); !bytes.Equal(data, weights) {
		t.Error("the weights differ")
	}
	listed := func(artifactType string) (annotations []string) {
		t.Helper()
		err := repo.Referrers(ctx, model, artifactType, func(page []ocispec.Descriptor) error {
			for _, d := range page {
				annotations = append(annotations, d.ArtifactType+" "+d.Annotations["by"])
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		slices.Sort(annotations)
		return annotations
	}
	want := []string{"application/vnd.example.signature.v0 0", "application/vnd.example.signature.v0 2", "application/vnd.example.signature.v1 1"}
	if diff := cmp.Diff(want, listed("")); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(want[2:], listed("application/vnd.example.signature.v1")); diff != "" {
		t.Error(diff)
	}
	// The tag of the fallback, which clients write where a registry has no
	// referrers API, must not be there.
	if diff := cmp.Diff([]string{"v1"}, must(r.Tags("models/iris"))); diff != "" {
		t.Error(diff)
	}
	if err := repo.Delete(ctx, model); err != nil {
		t.Error(err)
	}
}
