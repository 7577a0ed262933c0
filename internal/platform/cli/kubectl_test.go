// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestTakeHome(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		reason     string
		args, left []string
		home       string
	}{
		{"a word of its own", []string{"--home", "/d", "get", "pods"}, []string{"get", "pods"}, "/d"},
		{"with its value", []string{"--home=/d", "get"}, []string{"get"}, "/d"},
		{"a program's own flag is left alone", []string{"exec", "p", "--", "x", "--home", "/d"}, []string{"exec", "p", "--", "x", "--home", "/d"}, ""},
		{"without a value it is an error of kubectl's", []string{"--home"}, []string{"--home"}, ""},
		{"nothing", nil, nil, ""},
	} {
		o := &options{}
		if diff := cmp.Diff(c.left, o.takeHome(c.args)); diff != "" || o.home != c.home {
			t.Errorf("%s: home %q (-want +got)\n%s", c.reason, o.home, diff)
		}
	}
}
