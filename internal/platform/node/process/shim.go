// SPDX-License-Identifier: Apache-2.0

package process

import "strings"

// script is the shim. Its parameters are the program and its arguments.
//
// The program runs in a subshell that executes it: there traps are back to the
// default, words like "exit" are programs and not the shell's own, and the files
// 3 to 7 are closed. The shell waits for it in the foreground, so SIGINT is not ignored
// in it. File 4 keeps the program's standard error, so that the shell's own
// words ("Killed") stay out of it; file 5 is container.Spec.Hold. A run with a
// keeper has two more, keeper.Kept.Run and Done: the shell closes the one and waits
// for the end of the other, so that all output is in the log when it ends; without a
// keeper both steps fail at once. The script exits with the program's code, which
// serves the node where the run file could not be written because the disk is full.
const script = `trap : HUP INT QUIT TERM ALRM USR1 USR2
echo $$ >&3
exec 4>&2 2>/dev/null
(exec "$@") 2>&4 3>&- 4>&- 5>&- 6>&- 7>&-
code=$?
echo $code >&3
exec 6>&-
read -r end <&7
exit $code`

// shim returns the command line that runs args under the shim.
func shim(args []string) []string {
	return append([]string{"/bin/sh", "-c", script, "sh"}, args...)
}

// split separates the variables that a shell passes on from those whose names
// it does not know ("my.var"), which the program gets through env(1).
func split(env []string) (plain, odd []string) {
	for _, v := range env {
		name, _, found := strings.Cut(v, "=")
		switch {
		case !found || name == "":
		case isName(name):
			plain = append(plain, v)
		default:
			odd = append(odd, v)
		}
	}
	return plain, odd
}

// isName reports whether a shell takes s for a variable's name.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
