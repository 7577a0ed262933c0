// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"errors"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	nodev1 "k8s.io/api/node/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"diwan.dev/diwan/internal/platform/imagestore"
	"diwan.dev/diwan/internal/platform/node/image"
	"diwan.dev/diwan/internal/platform/node/imagepull"
	"diwan.dev/diwan/internal/platform/node/runstate"
)

// ImageDir is the directory of a home's images, and RegistriesFile says how
// registries are reached.
const (
	ImageDir       = "image-store"
	RegistriesFile = "registries.yaml"
)

// runtimeClasses are what a Pod may name to say in what its containers run.
func runtimeClasses() []*nodev1.RuntimeClass {
	var classes []*nodev1.RuntimeClass
	for _, handler := range []string{image.RuntimeProcess, image.RuntimeImage} {
		classes = append(classes, &nodev1.RuntimeClass{ObjectMeta: metav1.ObjectMeta{Name: handler}, Handler: handler})
	}
	return classes
}

// puller opens the home's store of images. Images of the home's registry are pulled with its
// token, others with Docker's credentials.
func puller(home Home, own Registry) (*imagepull.Puller, error) {
	store, err := imagestore.Open(imagestore.Config{Dir: home.Path(ImageDir)})
	if err != nil {
		return nil, err
	}
	return imagepull.New(store, home.Path(RegistriesFile), authn.NewMultiKeychain(own, authn.DefaultKeychain)), nil
}

// ImagesInUse says of an image which container runs in it, or has it as a volume, as POD/NAME/ATTEMPT by the
// Pod's UID; "" if none does. It knows the containers that there are now, whether or
// not the cluster runs.
func ImagesInUse(home Home) (func(*imagestore.Image) string, error) {
	runs, err := runstate.List(home.Path("node", "sandboxes"))
	processes, other := runstate.List(home.Path("node", "pods")) // which may have volumes of images
	if err := errors.Join(err, other); err != nil {
		return nil, fmt.Errorf("cannot list the containers: %w", err)
	}
	used := map[string]string{}
	for _, run := range append(runs, processes...) {
		record, _, err := run.Read()
		if err != nil {
			continue // it is being removed, or has not begun
		}
		for _, id := range record.Spec.Images() {
			used[id] = record.Spec.ID.String()
		}
	}
	return func(i *imagestore.Image) string {
		for id, by := range used {
			if i.Is(id) {
				return by
			}
		}
		return ""
	}, nil
}
