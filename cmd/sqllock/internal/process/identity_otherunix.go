//go:build unix && !linux

package process

import (
	"os/exec"
	"strconv"
	"strings"
)

// startOf returns when a process was started, if it has not ended.
func startOf(pid int) (started string, ok bool) {
	//nolint:noctx // it ends by itself
	output, err := (&exec.Cmd{Path: "/bin/ps", Args: []string{"ps", "-p", strconv.Itoa(pid), "-o", "state=", "-o", "lstart="}, Env: []string{}}).Output()
	state, started, ok := strings.Cut(strings.TrimSpace(string(output)), " ")
	return strings.TrimSpace(started), err == nil && ok && state[0] != 'Z'
}
