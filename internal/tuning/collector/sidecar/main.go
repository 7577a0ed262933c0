// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"diwan.dev/diwan/internal/tuning/dbmanager/remotestore"
)

// Name is the program's name.
const Name = "diwan-collector"

// Main is the program: its one argument is a Config as JSON. It ends when it is
// asked to, which kubelet does when the Pod's other containers have ended, and
// everything is stored. It returns the exit code.
func Main(args []string) int {
	if err := collect(args); err != nil {
		fmt.Fprintln(os.Stderr, "diwan:", err)
		return 1
	}
	return 0
}

func collect(args []string) error {
	if len(args) != 1 {
		return errors.New("usage: " + Name + " CONFIGURATION; injected by the operator into the Pods of trials")
	}
	config, err := Parse(args[0])
	if err != nil {
		return err
	}
	conn, err := config.Connect()
	if err != nil {
		return err
	}
	defer conn.Close()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	// Once asked to stop it continues until it has stored everything, or
	// kubelet kills it.
	pod := Pod{UID: os.Getenv(EnvPodUID), IP: os.Getenv(EnvPodIP)}
	return Run(ctx, context.Background(), config, pod, remotestore.New(conn), os.Stdout, os.Stderr)
}
