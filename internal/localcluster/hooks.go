// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"errors"
	"fmt"

	genericapiserver "k8s.io/apiserver/pkg/server"
	"k8s.io/klog/v2"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	rbacrest "k8s.io/kubernetes/pkg/registry/rbac/rest"
	schedulingrest "k8s.io/kubernetes/pkg/registry/scheduling/rest"
)

// The hooks that write upstream's default roles and priority classes, under
// names of ours.
const (
	rolesHook           = "diwan/bootstrap-roles"
	priorityClassesHook = "diwan/bootstrap-priority-classes"
)

// disableDefaults keeps kube-apiserver from writing its default objects by
// itself: it ends the process if they are not written within 30 s, as when the
// machine is busy, or the server is stopped meanwhile.
func disableDefaults(config *app.Config) {
	config.KubeAPIs.ControlPlane.Generic.DisabledPostStartHooks.Insert(rbacrest.PostStartHookName, schedulingrest.PostStartHookName)
}

// writeDefaults has the server write its default objects once it runs, however
// long that takes.
func writeDefaults(server *genericapiserver.GenericAPIServer) error {
	_, roles, err := rbacrest.RESTStorageProvider{}.PostStartHook()
	if err != nil {
		return fmt.Errorf("cannot make the default roles: %w", err)
	}
	return errors.Join(
		server.AddPostStartHook(rolesHook, insist(rolesHook, roles)),
		server.AddPostStartHook(priorityClassesHook, insist(priorityClassesHook, schedulingrest.AddSystemPriorityClasses())),
	)
}

// insist returns a hook that runs another one until that succeeds or the server
// stops, and never fails.
func insist(name string, hook genericapiserver.PostStartHookFunc) genericapiserver.PostStartHookFunc {
	return func(c genericapiserver.PostStartHookContext) error {
		for {
			err := hook(c)
			if err == nil || c.Err() != nil {
				return nil
			}
			klog.FromContext(c).Error(err, "Trying again", "hook", name)
		}
	}
}
