// SPDX-License-Identifier: Apache-2.0

// Package volume makes the volumes of Pods as directories of this machine.
//
// # Model
//
// [Manager.Prepare] makes all volumes of a Pod, [Manager.Mounts] says which
// directory a container sees at which path, [Manager.Release] removes what was
// the Pod's own. Prepare is idempotent; after a restart of the node it is called
// again for each Pod that lives on.
//
// There are three sorts of volumes:
//
//	own       emptyDir, and what shows the Pod itself (downwardAPI)
//	shared    configMap, secret, projected: the content depends on the
//	          namespace, the service account and the volume's source alone, so
//	          Pods that agree in those share one directory, read-only
//	foreign   hostPath and persistent volumes: directories that exist anyway
//
// Sharing is what makes the service account token, which nearly every Pod
// mounts, cost nothing from the second Pod on: one TokenRequest and one
// directory serve all Pods of a service account. The token is bound to the
// service account and not to one Pod, and renewed at four fifths of its life. A
// token for an audience that the volume names is bound to the Pod, as kubelet's,
// and the Pod's own.
//
// Content follows its objects: when a Pod starts, ConfigMaps and Secrets are read
// anew (not more often than once a second each), and a running Pod sees changes
// within [Config.Refresh]. A change replaces all files of a volume at once, by
// the symbolic link ..data, as kubelet does.
//
// A volume that cannot be made yet (its ConfigMap does not exist) is a
// [*PendingError]: the caller tells the user and tries again.
package volume
