package exec

import "os/exec"

// There are no gates where there are no watchdogs.
type gate struct{}

func newGate(*exec.Cmd) (*gate, error) { return nil, nil }

func (*gate) started() {}

func (*gate) named(err error) error { return err }

func (*gate) open() error { return nil }

func (*gate) abandon() {}

func isGate() bool { return false }

func runGate() {}
