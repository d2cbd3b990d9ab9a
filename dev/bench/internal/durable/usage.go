package durable

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of times in /proc on Linux.
const tick = 10 * time.Millisecond

// CPU returns the processor time that the server's processes have used, those
// that have ended included.
func (s *Server) CPU() time.Duration {
	var total time.Duration
	for _, pid := range s.Processes() {
		total += spent(pid)
	}
	return total
}

// spent is the time of a process and of its children that it has waited for.
func spent(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The command's name stands in parentheses and may contain anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const utime, cstime = 11, 14
	var ticks int64
	for _, field := range fields[utime : cstime+1] {
		n, _ := strconv.ParseInt(field, 10, 64) // the kernel writes numbers
		ticks += n
	}
	return time.Duration(ticks) * tick
}

// LogLines returns how many lines the server has written to its log.
func (s *Server) LogLines() int {
	text, _ := os.ReadFile(s.Log()) // no log has no lines
	return bytes.Count(text, []byte("\n"))
}
