// SPDX-License-Identifier: Apache-2.0

package v1alpha2

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

const manifest = `
metadata: {name: set}
spec:
  replicatedJobs:
  - name: leader
    template: {spec: {parallelism: 1, completions: 1, template: {spec: {containers: [{name: c, volumeMounts: [{name: data, mountPath: /d}]}]}}}}
  - name: workers
    replicas: 2
    dependsOn: [{name: leader, status: Ready}]
    template: {spec: {parallelism: 3, completions: 3}}
  network: {subdomain: sub}
  coordinator: {replicatedJob: workers, jobIndex: 1, podIndex: 2}
  successPolicy: {operator: All, targetReplicatedJobs: [leader]}
  failurePolicy: {maxRestarts: 3, rules: [{action: FailJobSet, onJobFailureReasons: [BackoffLimitExceeded], onJobFailureMessagePatterns: ["^a.*"], targetReplicatedJobs: [workers]}]}
  volumeClaimPolicies: [{templates: [{metadata: {name: data}, spec: {accessModes: [ReadWriteOnce]}}]}]
`

func newSet(t *testing.T, text string) *JobSet {
	t.Helper()
	set := &JobSet{}
	if err := yaml.UnmarshalStrict([]byte(text), set); err != nil {
		t.Fatal(err)
	}
	set.SetDefaults()
	return set
}

func TestValidate(t *testing.T) {
	t.Parallel()
	cases := []struct{ reason, old, new, want string }{
		{"nothing is wrong", "", "", ""},
		{"a name too long for Pods", "name: set", "name: " + strings.Repeat("s", 50), "JobSet name is too long"},
		{"the first job depends on another", "- name: leader\n", "- name: leader\n    dependsOn: [{name: workers, status: Ready}]\n", "spec.replicatedJobs[0].dependsOn[0].name: Invalid value: \"workers\": must be an earlier replicated job"},
		{"two jobs of a name", "- name: workers", "- name: leader", "Duplicate value"},
		{"a status that there is not", "status: Ready", "status: Running", "Unsupported value: \"Running\""},
		{"both orders", "network:", "startupPolicy: {startupPolicyOrder: InOrder}\n  network:", "mutually exclusive"},
		{"a subdomain that is no name", "subdomain: sub", "subdomain: Sub", "spec.network.subdomain"},
		{"a Pod that there is not", "podIndex: 2", "podIndex: 3", "spec.coordinator.podIndex"},
		{"a Job that there is not", "jobIndex: 1", "jobIndex: 2", "spec.coordinator.jobIndex"},
		{"a target that there is not", "targetReplicatedJobs: [leader]", "targetReplicatedJobs: [x]", "spec.successPolicy.targetReplicatedJobs[0]"},
		{"a rule's target that there is not", "targetReplicatedJobs: [workers]", "targetReplicatedJobs: [x]", "spec.failurePolicy.rules[0].targetReplicatedJobs[0]"},
		{"an action behind a gate", "action: FailJobSet", "action: RestartJob", "Unsupported value: \"RestartJob\""},
		{"a strategy behind a gate", "maxRestarts: 3", "maxRestarts: 3, restartStrategy: InPlaceRestart", "Unsupported value: \"InPlaceRestart\""},
		{"a reason that there is not", "BackoffLimitExceeded", "Backoff", "onJobFailureReasons[0]"},
		{"a pattern that is none", `"^a.*"`, `"("`, "error parsing regexp"},
		{"a rule without a good name", "action: FailJobSet", "name: 1st, action: FailJobSet", "must match"},
		{"a claim that nothing mounts", "metadata: {name: data}", "metadata: {name: other}", "no container has a volume mount"},
		{"a claim elsewhere", "metadata: {name: data}", "metadata: {name: data, namespace: ns}", "claims are created in the JobSet's namespace"},
		{"a controller without a domain", "network:", "managedBy: me\n  network:", "domain-prefixed path"},
		{"more Pods than can be counted", "replicas: 2", "replicas: 2000000000", "replicas times parallelism"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			text := manifest
			if c.old != "" {
				if text = strings.Replace(manifest, c.old, c.new, 1); text == manifest {
					t.Fatalf("the manifest lacks %q", c.old)
				}
			}
			got := ""
			if errs := newSet(t, text).Validate(); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}

func TestValidateUpdate(t *testing.T) {
	t.Parallel()
	suspended := strings.Replace(manifest, "network:", "suspend: true\n  network:", 1)
	patched := func(text string) string {
		return strings.Replace(text, "template: {spec: {containers", "template: {metadata: {labels: {a: b}}, spec: {tolerations: [{key: k}], containers", 1)
	}
	cases := []struct{ reason, old, new, want string }{
		{"suspend, resume", manifest, suspended, ""},
		{"a time to live", manifest, strings.Replace(manifest, "network:", "ttlSecondsAfterFinished: 3\n  network:", 1), ""},
		{"Pods while they run", manifest, patched(manifest), "spec.replicatedJobs: Forbidden"},
		{"Pods while they rest", suspended, patched(suspended), ""},
		{"Pods as they are let go on", suspended, patched(manifest), ""},
		{"the number of Jobs while they rest", suspended, strings.Replace(suspended, "replicas: 2", "replicas: 3", 1), "spec.replicatedJobs: Forbidden"},
		{"the failure policy", suspended, strings.Replace(suspended, "maxRestarts: 3", "maxRestarts: 4", 1), "spec.failurePolicy: Forbidden"},
	}
	for _, c := range cases {
		t.Run(c.reason, func(t *testing.T) {
			t.Parallel()
			got := ""
			if errs := newSet(t, c.new).ValidateUpdate(newSet(t, c.old)); len(errs) > 0 {
				got = errs.ToAggregate().Error()
			}
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q in it", got, c.want)
			}
		})
	}
}
