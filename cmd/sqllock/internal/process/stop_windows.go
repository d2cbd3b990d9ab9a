package process

import "os"

// NotifyStops does nothing: Windows does not stop processes.
func NotifyStops(chan<- os.Signal) {}

// IsStop returns false.
func IsStop(os.Signal) bool { return false }

// IsContinue returns false.
func IsContinue(os.Signal) bool { return false }

// Stop does nothing.
func (c *Child) Stop() {}

// Resume does nothing.
func (c *Child) Resume() {}

// StopSelf does nothing.
func StopSelf() {}
