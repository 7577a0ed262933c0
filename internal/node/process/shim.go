// SPDX-License-Identifier: Apache-2.0

package process

import (
	"strings"

	"diwan.dev/diwan/internal/node/container"
)

// script is the shim. Its parameters are: bind mounts to make, as triples of
// source, target and "ro" or "rw", ended by ":" (only in user namespaces; else
// there are none); the directory to change to, or ""; the program and its
// arguments.
//
// The program runs in a subshell that executes it: there traps are back to the
// default, words like "exit" are programs and not the shell's own, and file 3
// is closed. The shell waits for it in the foreground, so SIGINT is not ignored
// in it. File 4 keeps the program's standard error, so that the shell's own
// words ("Killed") stay out of it. The script exits with the program's code, which serves the node where
// the run file could not be written because the disk is full.
const script = `trap : HUP INT QUIT TERM ALRM USR1 USR2
echo $$ >&3
exec 4>&2 2>/dev/null
while [ "$1" != : ]; do
  mount --rbind "$1" "$2" 2>&4 || { echo 125 >&3; exit 125; }
  [ "$3" = rw ] || mount -o remount,bind,ro "$2"
  shift 3
done
[ -z "$2" ] || cd "$2" 2>&4 || { echo 125 >&3; exit 125; }
shift 2
(exec "$@") 2>&4 3>&- 4>&-
code=$?
echo $code >&3
exit $code`

// shim returns the command line that runs args under the shim.
func shim(mounts []container.Mount, dir string, args []string) []string {
	argv := []string{"/bin/sh", "-c", script, "sh"}
	for _, m := range mounts {
		mode := "rw"
		if m.ReadOnly {
			mode = "ro"
		}
		argv = append(argv, m.Source, m.Target, mode)
	}
	argv = append(argv, ":", dir)
	return append(argv, args...)
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

// isName tells whether a shell takes s for a variable's name.
func isName(s string) bool {
	for i, c := range []byte(s) {
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != ""
}
