package record

import (
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// ThisMachine describes the machine; dir is where servers have their data.
func ThisMachine(dir string) Machine {
	return Machine{
		CPU:    field("/proc/cpuinfo", "model name", ":"),
		Cores:  runtime.NumCPU(),
		Memory: field("/proc/meminfo", "MemTotal", ":"),
		Kernel: said("uname", "-sr"),
		System: strings.Trim(field("/etc/os-release", "PRETTY_NAME", "="), `"`),
		Disk:   said("stat", "--file-system", "--format=%T", dir),
	}
}

// field returns what stands behind a name in a file of lines, or "".
func field(path, name, separator string) string {
	text, _ := os.ReadFile(path) // what is not there is not told
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, separator)
		if ok && strings.TrimSpace(before) == name {
			return strings.TrimSpace(after)
		}
	}
	return ""
}

func said(command string, arguments ...string) string {
	output, _ := exec.Command(command, arguments...).Output() //nolint:noctx // they end at once
	return strings.TrimSpace(string(output))
}
