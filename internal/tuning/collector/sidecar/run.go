// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"diwan.dev/diwan/api/kubeflow/v1beta1"
	"diwan.dev/diwan/internal/tuning/collector"
	"diwan.dev/diwan/internal/tuning/dbmanager/remotestore"
	"diwan.dev/diwan/observation"
)

// Pod is what a container knows about its own Pod.
type Pod struct{ UID, IP string }

// Run collects until ctx ends and then what is left, retrying until hurry ends.
// out shows the output of the trial's program, log the problems.
func Run(ctx, hurry context.Context, c Config, pod Pod, store observation.Store, out, log io.Writer) error {
	bounds := collector.DefaultConfig()
	bounds.Dial = dialPod(pod.IP)
	told := &warnings{trial: c.Spec.Trial, log: log}
	told.to, _ = store.(warner)
	observer, err := collector.New(only{&c.Spec}, store, bounds).Observe(ctx, c.subject(pod, told))
	switch {
	case err != nil:
		return err
	case observer == nil:
		return fmt.Errorf("cannot collect metrics of kind %s: there is nothing to read", c.Spec.Kind)
	}
	defer observer.Close()
	var printing sync.WaitGroup
	defer printing.Wait()
	end, stop := context.WithCancel(context.WithoutCancel(ctx))
	defer stop()
	if file := c.shown(); file != "" {
		printing.Go(func() { show(end, file, out) })
	}
	return (&loop{config: c, observer: observer, warnings: told, log: log}).run(ctx, hurry)
}

// shown is the file that out repeats, as Katib's collector does.
func (c Config) shown() string {
	switch {
	case c.Dir != "":
		return c.Dir.Output()
	case c.Spec.Kind == collector.File:
		return c.Spec.Path
	}
	return ""
}

// subject is the trial's container. All runs of it have one output.
func (c Config) subject(pod Pod, told *warnings) collector.Subject {
	labels := map[string]string{v1beta1.LabelTrial: c.Spec.Trial.Name}
	for key, value := range c.Spec.PodLabels {
		labels[key] = value
	}
	return collector.Subject{
		Pod: &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
			Namespace: c.Spec.Trial.Namespace, UID: types.UID(pod.UID), Labels: labels,
		}},
		Container:     c.Spec.Container,
		Address:       pod.IP,
		Output:        c.Dir.Output(),
		OutputStart:   func() int64 { return 0 },
		HostPath:      func(path string) (string, bool) { return path, false },
		HostDirectory: func(path string) (string, bool) { return path, false },
		Warn:          told.add,
	}
}

// only is the one trial of a collector in a Pod.
type only struct{ spec *collector.Spec }

// Spec implements [collector.Trials].
func (o only) Spec(context.Context, observation.Trial) (*collector.Spec, bool, error) {
	return o.spec, true, nil
}

// loop reads what a trial produces, periodically.
type loop struct {
	config   Config
	observer collector.Observer
	warnings *warnings
	log      io.Writer
	told     string // what was wrong last
	stored   string // the run of the program of which all is stored
}

func (l *loop) run(ctx, hurry context.Context) error {
	for ctx.Err() == nil {
		err := l.look(ctx)
		if errors.Is(err, remotestore.ErrEnded) {
			return l.giveUp(ctx, err)
		}
		wait := lookInterval
		if l.tell(ctx, err) {
			wait = lookRetry
		} else {
			l.warnings.send(ctx, false)
		}
		sleep(ctx, wait)
	}
	for {
		err := l.finish(hurry)
		if err == nil || errors.Is(err, remotestore.ErrEnded) {
			return nil
		}
		l.tell(hurry, err)
		if sleep(hurry, lookRetry); hurry.Err() != nil {
			return fmt.Errorf("cannot store the last metrics: %w", err)
		}
	}
}

// look reads what is new, and everything if the program has exited.
func (l *loop) look(ctx context.Context) error {
	if l.config.Dir != "" {
		run, err := l.config.Dir.Ended()
		if err != nil {
			return err
		}
		if run != "" && run != l.stored {
			return l.finish(ctx)
		}
	}
	return l.observer.Look(ctx, time.Now())
}

// finish takes everything and says so to the program's container.
func (l *loop) finish(ctx context.Context) error {
	run := ""
	if l.config.Dir != "" {
		var err error
		if run, err = l.config.Dir.Ended(); err != nil {
			return err
		}
	}
	if err := l.observer.Finish(ctx, time.Now()); err != nil {
		return err
	}
	l.warnings.send(ctx, true) // before the trial ends
	if run == "" {
		return nil
	}
	if err := l.config.Dir.Stored(run); err != nil {
		return err
	}
	l.stored = run
	return nil
}

// giveUp waits for the end of a Pod whose trial takes no more metrics, and holds
// up nobody.
func (l *loop) giveUp(ctx context.Context, why error) error {
	l.tell(ctx, why)
	for l.config.Dir != "" && ctx.Err() == nil {
		if run, err := l.config.Dir.Ended(); err == nil && run != "" && run != l.stored && l.config.Dir.Stored(run) == nil {
			l.stored = run
		}
		sleep(ctx, lookInterval)
	}
	<-ctx.Done()
	return nil
}

// tell logs a problem, once while it stays the same, and reports whether
// there is one.
func (l *loop) tell(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		l.told = ""
		return false
	}
	if text := err.Error(); text != l.told {
		l.told = text
		fmt.Fprintln(l.log, "diwan:", text)
	}
	return true
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
