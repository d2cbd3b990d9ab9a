package process

import (
	"bytes"
	"os"
	"strconv"
)

// startOf returns when a process was started, if it has not ended.
func startOf(pid int) (started string, ok bool) {
	text := strconv.Itoa(pid)
	stat, err := os.ReadFile("/proc/" + text + "/stat")
	if err != nil {
		return "", false
	}
	p, ok := parse(text, bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]))
	return p.Started, ok && !p.Zombie
}
