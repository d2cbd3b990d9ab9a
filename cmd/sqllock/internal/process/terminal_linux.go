package process

import "os"

// HasTerminal reports whether this process has a controlling terminal.
func HasTerminal() bool {
	_, terminal, _ := terminalState()
	return terminal != "0"
}

// isInForeground reports whether the keys of the terminal send signals to the process
// group of this process.
func isInForeground() bool {
	group, _, foreground := terminalState()
	return group == foreground
}

// terminalState returns the process group, the controlling terminal ("0": none)
// and the terminal's foreground group, as in proc(5).
func terminalState() (group, terminal, foreground string) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return "", "", ""
	}
	fields := statFields(stat)
	if len(fields) < 6 {
		return "", "", ""
	}
	return string(fields[2]), string(fields[4]), string(fields[5])
}
