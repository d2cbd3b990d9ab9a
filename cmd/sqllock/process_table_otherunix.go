//go:build unix && !linux

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
)

func thisProgram() (string, error) { return os.Executable() }

// psArgs has an option for each column: an equals sign makes a heading of all
// that follows it in the argument.
var psArgs = []string{"ps", "-A", "-o", "pid=", "-o", "ppid=", "-o", "pgid=", "-o", "state="}

// processes returns all processes that can be seen.
func processes() ([]process, error) {
	//nolint:noctx // it ends by itself
	output, err := (&exec.Cmd{Path: "/bin/ps", Args: psArgs, Env: []string{}}).Output()
	if err != nil {
		return nil, err
	}
	var table []process
	for line := range bytes.Lines(output) {
		var p process
		var state string
		if _, err := fmt.Sscan(string(line), &p.pid, &p.parent, &p.group, &state); err == nil {
			p.stopped, p.zombie = state[0] == 'T', state[0] == 'Z'
			table = append(table, p)
		}
	}
	return table, nil
}
