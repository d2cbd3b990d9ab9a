package process

import "time"

// KillAfter waits until the child and its group have ended, and kills what is left of
// them after the grace period.
func (c *Child) KillAfter(grace time.Duration) {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	select {
	case <-c.Ended:
	case <-deadline.C:
		c.Kill()
		<-c.Ended
		return
	}
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for c.groupHasMembers() {
		select {
		case <-poll.C:
		case <-deadline.C:
			c.Kill()
			return
		}
	}
}
