//go:build unix && !linux

package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

// Executable returns the file of this program.
func Executable() (string, error) { return os.Executable() }

// psArgs has one option for each column: what follows the equals sign in an argument
// is a heading.
var psArgs = []string{"ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "state="}

// Table returns all processes that this user can see.
func Table() ([]Process, error) {
	//nolint:noctx // it ends by itself
	output, err := (&exec.Cmd{Path: "/bin/ps", Args: psArgs, Env: []string{}}).Output()
	if err != nil {
		return nil, err
	}
	var table []Process
	for line := range bytes.Lines(output) {
		var p Process
		var state string
		if _, err := fmt.Sscan(string(line), &p.PID, &p.Parent, &p.Group, &state); err == nil {
			p.Stopped, p.Zombie = state[0] == 'T', state[0] == 'Z'
			table = append(table, p)
		}
	}
	return table, nil
}
