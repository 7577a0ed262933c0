// SPDX-License-Identifier: Apache-2.0

// Package trainingjob reconciles the jobs that train on several machines:
// TFJob, PyTorchJob, MPIJob, XGBoostJob, PaddleJob, JAXJob and MXJob.
//
//	job, its Pods and Services, the time ─decide─▶ status, Pods and Services to
//	                                               create or delete, when to
//	                                               look again
//
// One engine serves all kinds. decide is a pure function of what is stored; the
// reconciler around it writes the status first, then does the rest. What a kind
// has of its own is a [Framework]: what its programs need to be told of each
// other, and which replicas say that the job is done.
//
// # Nothing is counted twice
//
// A Pod that failed and is to be replaced is written to status.leavingPods, in
// the same write that counts the restart, before it is deleted. From then on it
// does not count; when it is gone it leaves the list. So the process may be
// killed at any instruction. Pods that go because the job was suspended or
// scaled down are in the list too, lest their end be taken for a failure.
//
// A Pod may be gone before anyone saw its end. The status says of each type which
// replicas have begun; one of these that has no Pod was lost, which is a failure
// like any other, and has not begun any more, in the write that counts it. It
// says too how often containers were restarted within the Pods that are there,
// lest that be forgotten with a Pod.
//
// Pods and Services have the names of their replicas, so that creating one
// twice is refused by the API server.
package trainingjob
