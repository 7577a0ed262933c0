// SPDX-License-Identifier: Apache-2.0

package laptop

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"diwan.dev/diwan/internal/platform/domain"
)

// The default storage class gives each claim a directory under the home.
const (
	storageClassName   = "local"
	storageProvisioner = "diwan.dev/local"
	bindCompleted      = "pv.kubernetes.io/bind-completed"
	provisionedBy      = "pv.kubernetes.io/provisioned-by"
)

// storageClass is the default class of the local cluster.
func storageClass() *storagev1.StorageClass {
	reclaim, binding := corev1.PersistentVolumeReclaimDelete, storagev1.VolumeBindingImmediate
	return &storagev1.StorageClass{
		ObjectMeta: metav1.ObjectMeta{
			Name:        storageClassName,
			Annotations: map[string]string{"storageclass.kubernetes.io/is-default-class": "true"},
		},
		Provisioner:       storageProvisioner,
		ReclaimPolicy:     &reclaim,
		VolumeBindingMode: &binding,
	}
}

// claims binds PersistentVolumeClaims to directories. It stands in for
// upstream's volume binder and provisioners, of which one node with local
// directories needs little: a claim gets the volume that it names, else a
// free one that fits, else a new directory when its class is ours.
type claims struct {
	client client.Client
	dir    string
}

// domain is the reconciler as a domain of the laptop's own.
func (r *claims) domain() domain.Domain {
	return domain.Domain{Name: "volumes", SetUp: r.setUp}
}

func (r *claims) setUp(mgr *domain.Host) error {
	r.client = mgr.GetClient()
	return ctrl.NewControllerManagedBy(mgr).
		Named("local-claims").
		For(&corev1.PersistentVolumeClaim{}).
		Watches(&corev1.PersistentVolume{}, handler.EnqueueRequestsFromMapFunc(claimOf)).
		Complete(r)
}

// claimOf is the claim that a volume is meant for.
func claimOf(_ context.Context, obj client.Object) []ctrl.Request {
	ref := obj.(*corev1.PersistentVolume).Spec.ClaimRef
	if ref == nil {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}}}
}

// Reconcile binds a claim, or lets go of the volumes of one that is gone.
func (r *claims) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	var claim corev1.PersistentVolumeClaim
	err := r.client.Get(ctx, req.NamespacedName, &claim)
	if apierrors.IsNotFound(err) {
		return ctrl.Result{}, r.release(ctx, req.NamespacedName, "")
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("cannot read claim %s: %w", req, err)
	}
	if err := r.release(ctx, req.NamespacedName, claim.UID); err != nil {
		return ctrl.Result{}, err
	}
	if claim.Status.Phase == corev1.ClaimBound || claim.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	volume, err := r.volumeFor(ctx, &claim)
	if err != nil || volume == nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, r.bind(ctx, &claim, volume)
}

// volumeFor finds or makes the volume of a claim; nil while there is none.
func (r *claims) volumeFor(ctx context.Context, claim *corev1.PersistentVolumeClaim) (*corev1.PersistentVolume, error) {
	var volumes corev1.PersistentVolumeList
	if err := r.client.List(ctx, &volumes); err != nil {
		return nil, fmt.Errorf("cannot list volumes: %w", err)
	}
	for i := range volumes.Items {
		if volume := &volumes.Items[i]; fits(claim, volume) {
			return volume, nil
		}
	}
	if claim.Spec.VolumeName != "" || claim.Spec.StorageClassName == nil {
		return nil, nil
	}
	var class storagev1.StorageClass
	if err := r.client.Get(ctx, types.NamespacedName{Name: *claim.Spec.StorageClassName}, &class); err != nil {
		return nil, client.IgnoreNotFound(err)
	}
	if class.Provisioner != storageProvisioner {
		return nil, nil
	}
	return r.provision(ctx, claim, &class)
}

// fits says whether claim may have volume.
func fits(claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) bool {
	if ref := volume.Spec.ClaimRef; ref != nil {
		return ref.Namespace == claim.Namespace && ref.Name == claim.Name && (ref.UID == "" || ref.UID == claim.UID)
	}
	if claim.Spec.VolumeName != "" {
		return claim.Spec.VolumeName == volume.Name
	}
	if claim.Spec.StorageClassName == nil || *claim.Spec.StorageClassName != volume.Spec.StorageClassName {
		return false
	}
	want, have := claim.Spec.Resources.Requests.Storage(), volume.Spec.Capacity.Storage()
	if want.Cmp(*have) > 0 {
		return false
	}
	modes := map[corev1.PersistentVolumeAccessMode]bool{}
	for _, mode := range volume.Spec.AccessModes {
		modes[mode] = true
	}
	for _, mode := range claim.Spec.AccessModes {
		if !modes[mode] {
			return false
		}
	}
	return true
}

// provision makes a directory and a volume for it.
func (r *claims) provision(ctx context.Context, claim *corev1.PersistentVolumeClaim, class *storagev1.StorageClass) (*corev1.PersistentVolume, error) {
	name := "pvc-" + string(claim.UID)
	path := filepath.Join(r.dir, name)
	err := os.MkdirAll(path, 0o777)
	if err == nil {
		err = os.Chmod(path, 0o777) // despite the umask: users in images write to it
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a directory for claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	volume := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: map[string]string{provisionedBy: storageProvisioner}},
		Spec: corev1.PersistentVolumeSpec{
			Capacity:                      corev1.ResourceList{corev1.ResourceStorage: *claim.Spec.Resources.Requests.Storage()},
			AccessModes:                   claim.Spec.AccessModes,
			PersistentVolumeReclaimPolicy: *class.ReclaimPolicy,
			StorageClassName:              class.Name,
			VolumeMode:                    claim.Spec.VolumeMode,
			ClaimRef:                      referenceTo(claim),
			PersistentVolumeSource: corev1.PersistentVolumeSource{
				HostPath: &corev1.HostPathVolumeSource{Path: path},
			},
		},
	}
	if err := r.client.Create(ctx, volume); err != nil && !apierrors.IsAlreadyExists(err) {
		return nil, fmt.Errorf("cannot create volume %s: %w", name, err)
	}
	return volume, nil
}

func referenceTo(claim *corev1.PersistentVolumeClaim) *corev1.ObjectReference {
	return &corev1.ObjectReference{
		APIVersion: "v1", Kind: "PersistentVolumeClaim",
		Namespace: claim.Namespace, Name: claim.Name, UID: claim.UID,
	}
}

// bind makes volume and claim point at each other. Each step can be repeated.
func (r *claims) bind(ctx context.Context, claim *corev1.PersistentVolumeClaim, volume *corev1.PersistentVolume) error {
	volume = volume.DeepCopy()
	if ref := volume.Spec.ClaimRef; ref == nil || ref.UID != claim.UID {
		volume.Spec.ClaimRef = referenceTo(claim)
		if err := r.client.Update(ctx, volume); err != nil {
			return fmt.Errorf("cannot bind volume %s: %w", volume.Name, err)
		}
	}
	volume.Status.Phase = corev1.VolumeBound
	if err := r.client.Status().Update(ctx, volume); err != nil {
		return fmt.Errorf("cannot bind volume %s: %w", volume.Name, err)
	}
	claim = claim.DeepCopy()
	metav1.SetMetaDataAnnotation(&claim.ObjectMeta, bindCompleted, "yes")
	claim.Spec.VolumeName = volume.Name
	if err := r.client.Update(ctx, claim); err != nil {
		return fmt.Errorf("cannot bind claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	claim.Status.Phase = corev1.ClaimBound
	claim.Status.AccessModes = volume.Spec.AccessModes
	claim.Status.Capacity = volume.Spec.Capacity
	if err := r.client.Status().Update(ctx, claim); err != nil {
		return fmt.Errorf("cannot bind claim %s/%s: %w", claim.Namespace, claim.Name, err)
	}
	return nil
}

// release lets go of the volumes that belong to a claim of this name with
// another UID: those that we made are removed with their data when their
// policy says Delete, the others are marked Released.
func (r *claims) release(ctx context.Context, name types.NamespacedName, uid types.UID) error {
	var volumes corev1.PersistentVolumeList
	if err := r.client.List(ctx, &volumes); err != nil {
		return fmt.Errorf("cannot list volumes: %w", err)
	}
	for i := range volumes.Items {
		volume := volumes.Items[i].DeepCopy()
		ref := volume.Spec.ClaimRef
		if ref == nil || ref.Namespace != name.Namespace || ref.Name != name.Name || ref.UID == "" || ref.UID == uid {
			continue
		}
		if volume.Spec.PersistentVolumeReclaimPolicy == corev1.PersistentVolumeReclaimDelete && volume.Annotations[provisionedBy] == storageProvisioner {
			if err := os.RemoveAll(filepath.Join(r.dir, "pvc-"+string(ref.UID))); err != nil {
				return fmt.Errorf("cannot remove the data of volume %s: %w", volume.Name, err)
			}
			if err := r.client.Delete(ctx, volume); client.IgnoreNotFound(err) != nil {
				return fmt.Errorf("cannot delete volume %s: %w", volume.Name, err)
			}
			continue
		}
		if volume.Status.Phase == corev1.VolumeReleased {
			continue
		}
		volume.Status.Phase = corev1.VolumeReleased
		if err := r.client.Status().Update(ctx, volume); err != nil {
			return fmt.Errorf("cannot release volume %s: %w", volume.Name, err)
		}
	}
	return nil
}
