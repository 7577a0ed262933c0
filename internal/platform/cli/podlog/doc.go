// SPDX-License-Identifier: Apache-2.0

// Package podlog finds the log for a name, and prints it.
//
// A user knows the name of a trial, a job or an experiment, but a log belongs to a container of a
// Pod. [Find] maps one to the other:
//
//	NAME ─▶ objects of that name ─▶ a search's best or newest trial
//	     ─▶ the Pods of the trial or job, the one that leads first ─▶ its main container
//
// On a laptop logs outlive their Pods: if an object no longer has a Pod, its remaining log files are
// found by name. Pure functions choose the Pod and the container (choose.go). The choice among
// several is part of the answer, so that the user can choose another.
package podlog
