// SPDX-License-Identifier: Apache-2.0

// Package trainingjob reconciles the training jobs: TFJob, PyTorchJob, MPIJob,
// XGBoostJob, PaddleJob, JAXJob and MXJob.
//
//	job, its Pods and Services, the time ─decide─▶ status, Pods and Services to
//	                                               create or delete, when to
//	                                               look again
//
// One engine serves all kinds. decide is a pure function of stored state; the
// reconciler around it writes the status first, then does the rest. What is
// specific to a kind is its [Framework]: how its programs find each other, and
// which replicas determine that the job is done.
//
// # Nothing is counted twice
//
// A failed Pod to be replaced is recorded in status.leavingPods, in the same
// write that counts the restart, before it is deleted. From then on it does not
// count; when it is gone it is removed from the list. So the process may be
// killed at any instruction. Pods deleted because the job was suspended or scaled
// down are in the list too, so that their end does not count as a failure.
//
// A Pod may disappear before its end is observed. The status records for each
// type which replicas have started; if one of these has no Pod, it was lost,
// which is a failure like any other; the write that counts it also marks the
// replica as not started. The status also records container restarts within
// existing Pods, so that they are not forgotten with a Pod.
//
// Pods and Services are named after their replicas, so that the API server
// rejects creating one twice.
package trainingjob
