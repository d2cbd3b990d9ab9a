package exec

import "github.com/sqllock/sqllock/cmd/sqllock/internal/process"

// end ends a command whose lease is lost: Windows can only kill it.
func (x *execution) end(c *process.Child) {
	c.Kill()
	<-c.Ended
}
