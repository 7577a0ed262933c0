// SPDX-License-Identifier: Apache-2.0

// Package volume provides the volumes of Pods as directories on this machine.
//
// # Model
//
// [Manager.Prepare] creates all volumes of a Pod, [Manager.Mounts] returns which
// directory a container sees at which path, [Manager.Release] removes the Pod's
// own volumes. Prepare is idempotent; after a restart of the node it is called
// again for each running Pod.
//
// There are three kinds of volumes:
//
//	own       emptyDir, and what shows the Pod itself (downwardAPI)
//	shared    configMap, secret, projected: the content depends on the
//	          namespace, the service account and the volume's source alone, so
//	          Pods that agree in those share one directory, read-only
//	foreign   hostPath and persistent volumes: directories that exist anyway
//
// Because of sharing, the service account token, which nearly every Pod mounts,
// costs nothing from the second Pod on: one TokenRequest and one directory serve
// all Pods of a service account. The token is bound to the service account and
// not to one Pod, and renewed at four fifths of its lifetime. If the volume
// specifies an audience, the token is bound to the Pod, as with kubelet, and not
// shared.
//
// Content follows its objects: when a Pod starts, ConfigMaps and Secrets are
// reread (at most once a second each), and a running Pod sees changes within
// [Config.Refresh]. A change replaces all files of a volume at once, through the
// symbolic link ..data, as in kubelet.
//
// A volume that cannot be created yet (its ConfigMap does not exist) is a
// [*PendingError]: the caller tells the user and retries.
package volume
