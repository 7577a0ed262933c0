// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"flag"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"diwan.dev/diwan/internal/diwan/commands"
	"diwan.dev/diwan/internal/platform/cli"
	"diwan.dev/diwan/internal/platform/laptop"
)

var update = flag.Bool("update", false, "rewrite the expected output in testdata/script")

// TestMain makes this test binary the program diwan where a script calls it: each call is a
// process of its own, as a user's is.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"diwan": func() { os.Exit(cli.Main(commands.House(), os.Args[1:], cli.Std())) },
		"exits": exits,
	})
}

// waitUp is the script command `waitup`: it waits until a diwan owns the home.
func waitUp(script *testscript.TestScript, _ bool, _ []string) {
	home := laptop.Home(script.Getenv("DIWAN_HOME"))
	await(script, func() bool { return home.Owner() != 0 })
}

// waitFile is the script command `waitfile FILE`: it waits until the file exists.
func waitFile(script *testscript.TestScript, _ bool, args []string) {
	await(script, func() bool {
		_, err := os.Stat(script.MkAbs(args[0]))
		return err == nil
	})
}

// await waits until a condition holds.
func await(script *testscript.TestScript, holds func() bool) {
	for deadline := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			script.Fatalf("the condition does not hold after a minute")
		}
	}
}

// TestScripts runs the command line as users do. Scripts under testdata/script need no cluster.
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, params("testdata/script"))
}

// TestClusterScripts runs the command line with local clusters.
func TestClusterScripts(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("starts clusters")
	}
	testscript.Run(t, params("testdata/cluster"))
}

func params(dir string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Cmds:                map[string]func(*testscript.TestScript, bool, []string){"waitup": waitUp, "waitfile": waitFile},
		Setup: func(env *testscript.Env) error {
			env.Setenv("DIWAN_HOME", env.WorkDir+"/home")
			env.Setenv("HOME", env.WorkDir)
			env.Setenv("KUBECONFIG", env.WorkDir+"/no-kubeconfig")
			env.Setenv("LANG", "C.UTF-8")
			return nil
		},
	}
}
