// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"diwan.dev/diwan/api/manager/v1beta1"
)

// reporting is the variable by which the test's own program is a trial that
// reports by gRPC.
const reporting = "DIWAN_E2E_REPORT"

// report writes into a diary that it begins, reports NAME=VALUE arguments as
// metrics, and writes that it ends. As a client should, it retries while
// nobody answers, and first looks whether an earlier try was heard.
func report(arguments []string) int {
	diary, metrics := arguments[0], arguments[1:]
	trial := os.Getenv("KATIB_TRIAL_NAME")
	err := errors.Join(note(diary, "begin "+trial), pushed(trial, metrics), note(diary, "end "+trial))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

// note adds a line to the diary.
func note(diary, line string) error {
	file, err := os.OpenFile(diary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(file, line)
	return errors.Join(err, file.Close())
}

func pushed(trial string, metrics []string) error {
	log := &v1beta1.ObservationLog{}
	for _, metric := range metrics {
		name, value, _ := strings.Cut(metric, "=")
		log.MetricLogs = append(log.MetricLogs, &v1beta1.MetricLog{
			TimeStamp: time.Now().UTC().Format(time.RFC3339Nano),
			Metric:    &v1beta1.Metric{Name: name, Value: value},
		})
	}
	conn, err := grpc.NewClient("katib-db-manager.kubeflow:6789", grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := v1beta1.NewDBManagerClient(conn)
	deadline := time.Now().Add(3 * time.Minute)
	for {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		have, err := client.GetObservationLog(ctx, &v1beta1.GetObservationLogRequest{TrialName: trial})
		if err == nil && len(have.GetObservationLog().GetMetricLogs()) == 0 {
			_, err = client.ReportObservationLog(ctx, &v1beta1.ReportObservationLogRequest{TrialName: trial, ObservationLog: log})
		}
		cancel()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(200 * time.Millisecond)
	}
}
