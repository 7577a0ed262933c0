// SPDX-License-Identifier: Apache-2.0

package entry

import (
	"errors"
	"fmt"
	"os"
	"time"
)

// Name is the program's name. It is found beside diwan's own.
const Name = "diwan-entry"

const usage = `usage: ` + Name + ` install DIR
       ` + Name + ` run DIR PATIENCE COMMAND [ARGUMENT...]`

// Main is the program: it takes the arguments after its name and returns the
// exit code.
func Main(args []string) int {
	switch {
	case len(args) == 2 && args[0] == "install":
		self, err := os.Executable()
		if err == nil {
			err = Dir(args[1]).Install(self)
		}
		return report(err)
	case len(args) > 3 && args[0] == "run":
		patience, err := time.ParseDuration(args[2])
		if err != nil {
			return report(err)
		}
		return Run(Options{Dir: Dir(args[1]), Patience: patience, Out: os.Stdout, Err: os.Stderr}, args[3:])
	}
	return report(errors.New(usage))
}

// report prints an error.
func report(err error) int {
	if err == nil {
		return 0
	}
	fmt.Fprintln(os.Stderr, err)
	return exitNotRunnable
}

// Command is the wrapped command of a container.
func Command(dir Dir, patience time.Duration) []string {
	return []string{dir.Program(), "run", string(dir), patience.String()}
}
