// SPDX-License-Identifier: Apache-2.0

package node

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/securitycontext"
	"k8s.io/utils/ptr"

	"diwan.dev/diwan/internal/platform/node/capability"
	"diwan.dev/diwan/internal/platform/node/container"
	"diwan.dev/diwan/internal/platform/node/seccomp"
)

// secure says who a container runs as and what it may do.
func (w *worker) secure(pod *corev1.Pod, c *corev1.Container, s *setting, spec *container.Spec) error {
	for _, field := range ignored(pod, c, s.pulled != nil) {
		w.warn("Degraded", fmt.Sprintf("container %s: %s", c.Name, field))
	}
	if s.pulled == nil {
		var lacks string
		if spec.User, lacks = userOf(pod, c, ownRights(s.runtime.Mounts()), ownUser()); lacks != "" {
			w.warn("Degraded", lacks)
		}
		return nil
	}
	err := w.secureImage(pod, c, s, spec)
	if err != nil {
		return &waitError{reason: "CreateContainerConfigError", err: err}
	}
	return nil
}

// secureImage is secure for a container in an image.
func (w *worker) secureImage(pod *corev1.Pod, c *corev1.Container, s *setting, spec *container.Spec) error {
	if err := refused(pod); err != nil {
		return err
	}
	who, err := w.imageUser(pod, c, s)
	if err != nil {
		return err
	}
	spec.User = who
	security, complaints, err := securityOf(pod, c, w.node.mayBePrivileged(c), w.node.seccompDir())
	if err != nil {
		return err
	}
	for _, complaint := range complaints {
		w.warn("Degraded", fmt.Sprintf("container %s: %s", c.Name, complaint))
	}
	spec.Security = security
	if spec.Sysctls, err = sysctlsOf(pod); err != nil {
		return err
	}
	if spec.Among, err = w.among(pod, c); err != nil {
		return err
	}
	spec.SharesProcesses = ptr.Deref(pod.Spec.ShareProcessNamespace, false) && spec.Among == nil
	layers := s.pulled.Dirs()
	slices.Reverse(layers)
	context := cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	spec.Root = &container.Root{
		ImageID: s.img.ID, Layers: layers, ReadOnly: ptr.Deref(context.ReadOnlyRootFilesystem, false),
	}
	return nil
}

// refused says what a Pod asks for that no container in an image gets here, with the remedy: without
// it the Pod would not be what its author means.
func refused(pod *corev1.Pod) error {
	for _, f := range []struct {
		set           bool
		field, remedy string
	}{
		{pod.Spec.HostPID, "hostPID", "containers in images have process IDs of their own; run the Pod as processes of this machine with runtimeClassName: process"},
		{pod.Spec.HostIPC, "hostIPC", "containers in images have IPC of their own; run the Pod as processes of this machine with runtimeClassName: process"},
	} {
		if f.set {
			return fmt.Errorf("%s is refused: %s", f.field, f.remedy)
		}
	}
	return nil
}

// mayBePrivileged reports whether the image table allows a container to be privileged.
func (n *Node) mayBePrivileged(c *corev1.Container) bool {
	entry := n.cfg.Images.Entry(c.Image)
	return entry != nil && entry.Privileged
}

// seccompDir has the profiles of type Localhost.
func (n *Node) seccompDir() string { return filepath.Join(n.cfg.Dir, "seccomp") }

// securityOf is what a container in an image may do, by a kubelet's rules, and what
// of its wishes has no effect. RuntimeDefault is the seccomp profile of containers
// that name none. dir has the profiles of type Localhost.
func securityOf(pod *corev1.Pod, c *corev1.Container, allowPrivileged bool, dir string) (_ *container.Security, complaints []string, err error) {
	context := cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	if ptr.Deref(context.Privileged, false) {
		if !allowPrivileged {
			return nil, nil, fmt.Errorf("securityContext.privileged of container %s is refused: name the capabilities that it needs in securityContext.capabilities.add, or allow it for the image with `diwan images map %s --runtime image --privileged`", c.Name, c.Image)
		}
		return &container.Security{Capabilities: capability.All, Privileged: true}, nil, nil
	}
	s := &container.Security{
		NoNewPrivileges: context.AllowPrivilegeEscalation != nil && !*context.AllowPrivilegeEscalation,
		Masked:          securitycontext.ConvertToRuntimeMaskedPaths(context.ProcMount),
		ReadOnly:        securitycontext.ConvertToRuntimeReadonlyPaths(context.ProcMount),
	}
	wish := cmp.Or(context.Capabilities, &corev1.Capabilities{})
	if s.Capabilities, err = capability.Default().Apply(names(wish.Add), names(wish.Drop)); err != nil {
		return nil, nil, err
	}
	profile := context.SeccompProfile
	if profile == nil && pod.Spec.SecurityContext != nil {
		profile = pod.Spec.SecurityContext.SeccompProfile
	}
	machine, err := seccomp.ThisMachine(s.Capabilities.Names())
	if err != nil {
		return nil, nil, err
	}
	program, skipped, err := seccomp.Select(profile, dir, machine)
	if err != nil {
		return nil, nil, err
	}
	for _, rule := range skipped {
		complaints = append(complaints, "its seccomp profile: "+rule)
	}
	if program != nil {
		s.Seccomp, s.SeccompFlags = program.Bytes(), program.Flags
	}
	return s, complaints, nil
}

func names(list []corev1.Capability) []string {
	all := make([]string, len(list))
	for i, c := range list {
		all[i] = string(c)
	}
	return all
}

// safeSysctls are those that a kubelet allows: each affects the Pod's own namespaces
// alone (k8s.io/kubernetes/pkg/kubelet/sysctl).
var safeSysctls = []string{
	"kernel.shm_rmid_forced", "net.ipv4.ip_local_port_range", "net.ipv4.tcp_syncookies", "net.ipv4.ping_group_range",
	"net.ipv4.ip_unprivileged_port_start", "net.ipv4.ip_local_reserved_ports", "net.ipv4.tcp_keepalive_time",
	"net.ipv4.tcp_fin_timeout", "net.ipv4.tcp_keepalive_intvl", "net.ipv4.tcp_keepalive_probes", "net.ipv4.tcp_rmem",
	"net.ipv4.tcp_wmem", "net.ipv4.tcp_slow_start_after_idle", "net.ipv4.tcp_notsent_lowat",
}

// sysctlsOf are a Pod's kernel parameters. Any user may listen on any port in a
// container, as with other runtimes.
func sysctlsOf(pod *corev1.Pod) (map[string]string, error) {
	all := map[string]string{}
	if !pod.Spec.HostNetwork {
		all["net.ipv4.ip_unprivileged_port_start"] = "0"
	}
	if pod.Spec.SecurityContext == nil {
		return all, nil
	}
	for _, s := range pod.Spec.SecurityContext.Sysctls {
		name := strings.ReplaceAll(s.Name, "/", ".")
		switch {
		case !slices.Contains(safeSysctls, name):
			return nil, fmt.Errorf("SysctlForbidden: securityContext.sysctls: %q is not allowed; allowed are %s", s.Name, strings.Join(safeSysctls, ", "))
		case strings.HasPrefix(name, "net.") && pod.Spec.HostNetwork:
			return nil, fmt.Errorf("SysctlForbidden: securityContext.sysctls: %q would change the host's network: do not set hostNetwork", s.Name)
		case strings.ContainsAny(s.Value, "\n\x00"):
			return nil, fmt.Errorf("securityContext.sysctls: the value of %q has a line break", s.Name)
		}
		all[name] = s.Value
	}
	return all, nil
}

// ignored names the fields that a container sets and that have no effect here, with
// the remedy.
func ignored(pod *corev1.Pod, c *corev1.Container, inImage bool) []string {
	var all []string
	add := func(set bool, field, remedy string) {
		if set {
			all = append(all, field+" has no effect: "+remedy)
		}
	}
	context := cmp.Or(c.SecurityContext, &corev1.SecurityContext{})
	of := cmp.Or(pod.Spec.SecurityContext, &corev1.PodSecurityContext{})
	if !inImage {
		const remedy = "the container is a process of this machine; run it in its image with runtimeClassName: image"
		add(ptr.Deref(context.ReadOnlyRootFilesystem, false), "securityContext.readOnlyRootFilesystem", remedy)
		add(ptr.Deref(context.Privileged, false), "securityContext.privileged", remedy)
		add(context.Capabilities != nil && len(context.Capabilities.Add) > 0, "securityContext.capabilities.add", remedy)
		add(len(of.Sysctls) > 0, "securityContext.sysctls", remedy)
		return all
	}
	add(pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers, "hostUsers: false", "containers have the users of this machine, less their capabilities; run Diwan as an ordinary user, where each container has a user namespace")
	add(context.SELinuxOptions != nil || of.SELinuxOptions != nil, "securityContext.seLinuxOptions", "this machine's node sets no labels; remove the field")
	profile := cmp.Or(context.AppArmorProfile, of.AppArmorProfile)
	add(profile != nil && profile.Type == corev1.AppArmorProfileTypeLocalhost, "securityContext.appArmorProfile", "this machine's node applies no AppArmor profiles; use seccompProfile")
	return all
}
