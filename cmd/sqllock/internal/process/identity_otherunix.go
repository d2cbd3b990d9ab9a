//go:build unix && !linux

package process

import (
	"errors"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
)

// startOf returns when a process was started. Its error is ErrEnded if the process has ended.
func startOf(pid int) (started string, err error) {
	//nolint:noctx // it ends by itself
	output, err := (&exec.Cmd{Path: "/bin/ps", Args: []string{"ps", "-p", strconv.Itoa(pid), "-o", "state=", "-o", "lstart="}, Env: []string{}}).Output()
	text := strings.TrimSpace(string(output))
	var status *exec.ExitError
	if text == "" && errors.As(err, &status) && status.ExitCode() == 1 {
		return "", ErrEnded
	}
	if err != nil {
		return "", err
	}
	state, started, ok := strings.Cut(text, " ")
	switch {
	case strings.HasPrefix(state, "Z"):
		return "", ErrEnded
	case !ok:
		return "", fmt.Errorf("ps says %q", text)
	default:
		return strings.TrimSpace(started), nil
	}
}
