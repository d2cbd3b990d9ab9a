package process

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// Executable returns the file of this program, even if another file has replaced it
// since.
func Executable() (string, error) { return "/proc/self/exe", nil }

// Table returns all processes that this user can see.
func Table() ([]Process, error) {
	paths, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		return nil, err
	}
	var table []Process
	for _, path := range paths {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended meanwhile
		}
		// The second field of proc(5) is the command's name, which may contain any characters.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if p, ok := parse(filepath.Base(filepath.Dir(path)), fields); ok {
			table = append(table, p)
		}
	}
	return table, nil
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
