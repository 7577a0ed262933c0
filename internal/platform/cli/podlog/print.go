// SPDX-License-Identifier: Apache-2.0

package podlog

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes/typed/core/v1"
)

// Options say how much of a log is printed.
type Options struct {
	// Follow prints until the container has ended.
	Follow bool
	// Previous is the log of the container before its last restart.
	Previous bool
	// Tail is how many lines at the end to print; all if negative.
	Tail int64
}

// Print writes a log to out. If it is followed and its container has not started, notice is called with
// the reason.
func Print(ctx context.Context, pods v1.PodsGetter, log *Log, o Options, out io.Writer, notice func(string)) error {
	if log.File != "" {
		return printFile(log, o, out)
	}
	if !o.Previous {
		if err := begun(ctx, pods, log, o.Follow, notice); err != nil {
			return err
		}
	}
	options := &corev1.PodLogOptions{Container: log.Container, Follow: o.Follow, Previous: o.Previous}
	if o.Tail >= 0 {
		options.TailLines = &o.Tail
	}
	stream, err := pods.Pods(log.Namespace).GetLogs(log.Pod, options).Stream(ctx)
	if err != nil {
		return fmt.Errorf("cannot read the log of pod %s: %w", log.Pod, err)
	}
	defer stream.Close()
	if _, err := io.Copy(out, stream); err != nil && ctx.Err() == nil {
		return fmt.Errorf("cannot read the log of pod %s to its end: %w", log.Pod, err)
	}
	return context.Cause(ctx)
}

// begun returns when the log's container has started, and fails where it has not and is not waited for.
func begun(ctx context.Context, pods v1.PodsGetter, log *Log, follow bool, notice func(string)) error {
	told := ""
	err := wait.PollUntilContextCancel(ctx, 500*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		pod, err := pods.Pods(log.Namespace).Get(ctx, log.Pod, metav1.GetOptions{})
		if err != nil {
			return false, fmt.Errorf("cannot read pod %s: %w", log.Pod, err)
		}
		why := waitsFor(pod, log.Container)
		switch {
		case why == "":
			return true, nil
		case !follow || pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded:
			return false, fmt.Errorf("cannot find a log of pod %s: its container %s has not run: %s", log.Pod, log.Container, why)
		case why != told:
			notice(fmt.Sprintf("container %s of pod %s is waiting: %s", log.Container, log.Pod, why))
			told = why
		}
		return false, nil
	})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// printFile prints the log of a Pod that is gone.
func printFile(log *Log, o Options, out io.Writer) error {
	if o.Previous {
		return fmt.Errorf("cannot find a log of container %s of pod %s before its last restart: the Pod is gone; its remaining logs are next to %s", log.Container, log.Pod, log.File)
	}
	file, err := os.Open(log.File)
	if err != nil {
		return fmt.Errorf("cannot read the log of pod %s: %w", log.Pod, err)
	}
	defer file.Close()
	if o.Tail < 0 {
		_, err = io.Copy(out, file)
	} else {
		err = printTail(file, o.Tail, out)
	}
	if err != nil {
		return fmt.Errorf("cannot read the log of pod %s to its end: %w", log.Pod, err)
	}
	return nil
}

// printTail prints the last lines of a log, which is at most some 50 MiB long.
func printTail(in io.Reader, lines int64, out io.Writer) error {
	text, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	at := len(text)
	for n := int64(0); n < lines && at > 0; n++ {
		at = bytes.LastIndexByte(text[:at-1], '\n') + 1
	}
	_, err = out.Write(text[at:])
	return err
}
