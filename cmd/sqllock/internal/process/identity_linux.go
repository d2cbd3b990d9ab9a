package process

import "strconv"

// startOf returns when a process was started. Its error is ErrEnded if the process has ended.
func startOf(pid int) (started string, err error) {
	p, err := read(strconv.Itoa(pid))
	if err == nil && p.Zombie {
		err = ErrEnded
	}
	return p.Started, err
}
