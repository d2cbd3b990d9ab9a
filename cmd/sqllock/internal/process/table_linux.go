package process

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Executable returns the file of this program, even if another file has replaced it
// since.
func Executable() (string, error) { return "/proc/self/exe", nil }

// Table returns all processes that this user can see, or an error if it may miss one that has not ended.
func Table() ([]Process, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, err
	}
	var table []Process
	for _, entry := range entries {
		if _, err := strconv.Atoi(entry.Name()); err != nil {
			continue // no process
		}
		switch p, err := read(entry.Name()); {
		case err == nil:
			table = append(table, p)
		case !errors.Is(err, ErrEnded) && !errors.Is(err, fs.ErrPermission):
			return nil, err
		}
	}
	return table, nil
}

// read returns the process of a number. Its error is ErrEnded if there is none.
func read(pid string) (Process, error) {
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ESRCH): // before it was opened, or after
		return Process{}, ErrEnded
	case err != nil:
		return Process{}, err
	}
	// The second field of proc(5) is the command's name, which may contain any characters.
	p, ok := parse(pid, bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:]))
	if !ok {
		return Process{}, fmt.Errorf("/proc/%s/stat is %q", pid, stat)
	}
	return p, nil
}

// parse reads the fields of a stat file from the third on, the state.
func parse(pid string, fields [][]byte) (p Process, ok bool) {
	if len(fields) < 3 {
		return p, false
	}
	numbers := [...]*int{&p.PID, &p.Parent, &p.Group}
	for i, text := range []string{pid, string(fields[1]), string(fields[2])} {
		n, err := strconv.Atoi(text)
		if err != nil {
			return p, false
		}
		*numbers[i] = n
	}
	const started = 22 - 3 // its number in proc(5), and that of the first
	if len(fields) > started {
		p.Started = string(fields[started])
	}
	p.Stopped, p.Zombie = string(fields[0]) == "T", string(fields[0]) == "Z"
	return p, true
}
